/* What the readers of JSON trees have in common, and the rows of a graph. */
#include "tree_read.h"

#include <stdlib.h>

/* ---- memory -------------------------------------------------------------------------------------------- */

typedef struct cli_block {
    struct cli_block *next;
    max_align_t objects[];
} cli_block;

void *cli_pool_take(cli_pool *pool, size_t count, size_t size)
{
    const bool fits = count <= (SIZE_MAX - sizeof(cli_block)) / size;
    cli_block *block = fits ? calloc(1, sizeof *block + count * size) : NULL;
    if (!block) {
        pool->failed = true;
        return NULL;
    }
    block->next = pool->blocks;
    pool->blocks = block;
    return block->objects;
}

void cli_pool_end(cli_pool *pool)
{
    for (cli_block *block = pool->blocks, *next; block; block = next) {
        next = block->next;
        free(block);
    }
    pool->blocks = NULL;
}

/* ---- members ------------------------------------------------------------------------------------------- */

const char *cli_tree_text(const json_t *row, const char *key)
{
    return json_string_value(json_object_get(row, key));
}

size_t cli_tree_index(const json_t *row, const char *key)
{
    const json_t *value = json_object_get(row, key);
    return json_is_integer(value) ? (size_t)json_integer_value(value) : ETCH_VIEW_NONE;
}

uint64_t cli_tree_number(const json_t *row, const char *key)
{
    return (uint64_t)json_integer_value(json_object_get(row, key));
}

bool cli_tree_flag(const json_t *row, const char *key)
{
    return json_is_true(json_object_get(row, key));
}

etch_location cli_tree_location(const json_t *row, const char *key)
{
    const json_t *at = json_object_get(row, key);
    return (etch_location){.path = cli_tree_text(at, "file"),
                           .line = (uint32_t)cli_tree_number(at, "line"),
                           .column = (uint32_t)cli_tree_number(at, "column"),
                           .end_line = (uint32_t)cli_tree_number(at, "end_line"),
                           .end_column = (uint32_t)cli_tree_number(at, "end_column")};
}

const size_t *cli_tree_indices(cli_pool *pool, const json_t *row, const char *key, size_t *count)
{
    const json_t *list = json_object_get(row, key);
    size_t *indices = cli_pool_take(pool, json_array_size(list), sizeof *indices);
    *count = indices ? json_array_size(list) : 0;
    for (size_t i = 0; i < *count; i++)
        indices[i] = (size_t)json_integer_value(json_array_get(list, i));
    return indices;
}

/* ---- a graph ------------------------------------------------------------------------------------------- */

CLI_TREE_KIND(etch_tensor_kind, etch_tensor_kind_name)
CLI_TREE_KIND(etch_dtype, etch_dtype_name)

static etch_view_dim read_dim(cli_pool *pool, const json_t *tree, const json_t *row)
{
    (void)pool;
    (void)tree;
    return (etch_view_dim){.name = cli_tree_text(row, "name"),
                           .size = cli_tree_text(row, "size"),
                           .average = cli_tree_flag(row, "average"),
                           .divided = cli_tree_flag(row, "divided")};
}

static const char *read_tag(cli_pool *pool, const json_t *tree, const json_t *row)
{
    (void)pool;
    (void)tree;
    return json_string_value(row);
}

static etch_view_tensor read_tensor(cli_pool *pool, const json_t *tree, const json_t *row)
{
    (void)tree;
    etch_view_tensor t = {.name = cli_tree_text(row, "name"),
                          .kind = etch_tensor_kind_in(row, "kind"),
                          .dtype = etch_dtype_in(row, "dtype"),
                          .bytes = cli_tree_text(row, "bytes"),
                          .module = cli_tree_index(row, "module"),
                          .loop = cli_tree_index(row, "loop"),
                          .of = cli_tree_index(row, "of"),
                          .added_to = cli_tree_index(row, "added_to"),
                          .frozen = cli_tree_flag(row, "frozen"),
                          .passed = cli_tree_flag(row, "passed"),
                          .location = cli_tree_location(row, "location"),
                          .constant = cli_tree_text(row, "constant"),
                          .buffer = cli_tree_flag(row, "buffer")};
    t.dims = cli_tree_indices(pool, row, "dims", &t.dim_count);
    CLI_TREE_LIST(pool, row, "tags", const char *, read_tag, t.tags, t.tag_count);
    return t;
}

static etch_view_op read_op(cli_pool *pool, const json_t *tree, const json_t *row)
{
    (void)tree;
    etch_view_op op = {.name = cli_tree_text(row, "name"),
                       .arguments = cli_tree_text(row, "arguments"),
                       .phase = etch_phase_in(row, "phase"),
                       .module = cli_tree_index(row, "module"),
                       .loop = cli_tree_index(row, "loop"),
                       .forward = cli_tree_index(row, "forward"),
                       .derives = cli_tree_text(row, "derives"),
                       .flop = cli_tree_text(row, "flop"),
                       .flop_by_dims = cli_tree_text(row, "flop_by_dims"),
                       .runs = cli_tree_text(row, "runs"),
                       .passes = cli_tree_flag(row, "passes"),
                       .location = cli_tree_location(row, "location")};
    op.ins = cli_tree_indices(pool, row, "ins", &op.in_count);
    op.outs = cli_tree_indices(pool, row, "outs", &op.out_count);
    return op;
}

static etch_view_carry read_carry(cli_pool *pool, const json_t *tree, const json_t *row)
{
    (void)pool;
    (void)tree;
    return (etch_view_carry){.init = cli_tree_index(row, "init"),
                             .in = cli_tree_index(row, "in"),
                             .out = cli_tree_index(row, "out"),
                             .result = cli_tree_index(row, "result")};
}

static etch_view_loop read_loop(cli_pool *pool, const json_t *tree, const json_t *row)
{
    (void)tree;
    etch_view_loop l = {.name = cli_tree_text(row, "name"),
                        .count = cli_tree_text(row, "count"),
                        .total = cli_tree_text(row, "total"),
                        .number = cli_tree_index(row, "number"),
                        .iterations = cli_tree_text(row, "iterations"),
                        .module = cli_tree_index(row, "module"),
                        .parent = cli_tree_index(row, "parent"),
                        .undoes = cli_tree_index(row, "undoes"),
                        .location = cli_tree_location(row, "location")};
    CLI_TREE_LIST(pool, row, "carries", etch_view_carry, read_carry, l.carries, l.carry_count);
    return l;
}

static etch_view_module read_module(cli_pool *pool, const json_t *tree, const json_t *row)
{
    (void)tree;
    etch_view_module m = {.name = cli_tree_text(row, "name"),
                          .path = cli_tree_text(row, "path"),
                          .parent = cli_tree_index(row, "parent"),
                          .loop = cli_tree_index(row, "loop"),
                          .location = cli_tree_location(row, "location")};
    m.arguments = cli_tree_indices(pool, row, "arguments", &m.argument_count);
    m.results = cli_tree_indices(pool, row, "results", &m.result_count);
    return m;
}

static etch_view_saved read_saved(cli_pool *pool, const json_t *tree, const json_t *row)
{
    (void)pool;
    (void)tree;
    return (etch_view_saved){.tensor = cli_tree_index(row, "tensor"),
                             .bytes = cli_tree_text(row, "bytes"),
                             .bytes_by_dims = cli_tree_text(row, "bytes_by_dims"),
                             .runs = cli_tree_text(row, "runs"),
                             .reader = cli_tree_index(row, "reader"),
                             .reader_name = cli_tree_text(row, "reader_name"),
                             .reader_phase = etch_phase_in(row, "reader_phase"),
                             .reader_derives = cli_tree_text(row, "reader_derives"),
                             .reader_location = cli_tree_location(row, "reader_location")};
}

static void read_totals(cli_pool *pool, const json_t *flop, etch_graph_report *report)
{
    etch_view_total *totals = cli_pool_take(pool, ETCH_PHASE_COUNT, sizeof *totals);
    for (unsigned i = 0; totals && i < ETCH_PHASE_COUNT; i++) {
        const char *text = cli_tree_text(flop, etch_phase_name((etch_phase)i));
        if (text)
            totals[report->total_count++] = (etch_view_total){(etch_phase)i, text};
    }
    report->totals = totals;
}

bool cli_graph_read(cli_pool *pool, const json_t *tree, etch_graph_report *r)
{
    *r = (etch_graph_report){.model = cli_tree_text(tree, "model"),
                             .config = cli_tree_text(tree, "config"),
                             .part = cli_tree_text(tree, "part"),
                             .calls = cli_tree_index(tree, "calls"),
                             .micro = cli_tree_text(tree, "micro"),
                             .trains = cli_tree_flag(tree, "trains")};
    CLI_TREE_LIST(pool, tree, "dims", etch_view_dim, read_dim, r->dims, r->dim_count);
    CLI_TREE_LIST(pool, tree, "tensors", etch_view_tensor, read_tensor, r->tensors, r->tensor_count);
    CLI_TREE_LIST(pool, tree, "ops", etch_view_op, read_op, r->ops, r->op_count);
    CLI_TREE_LIST(pool, tree, "loops", etch_view_loop, read_loop, r->loops, r->loop_count);
    CLI_TREE_LIST(pool, tree, "modules", etch_view_module, read_module, r->modules, r->module_count);
    CLI_TREE_LIST(pool, tree, "saved", etch_view_saved, read_saved, r->saved, r->saved_count);
    read_totals(pool, json_object_get(tree, "flop"), r);
    return !pool->failed;
}
