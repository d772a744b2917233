/* The JSON tree of a graph: docs/show-json.md. Tensors, ops, loops and modules refer to each other by their
 * index. */
#include "graph_int.h"

json_t *cli_tree_end(json_t *root, bool failed)
{
    if (!failed)
        return root;
    json_decref(root);
    return NULL;
}

json_t *cli_json_index(size_t index)
{
    return index == ETCH_VIEW_NONE ? json_null() : json_integer((json_int_t)index);
}

json_t *cli_json_indices(const size_t *indices, size_t count, bool *failed)
{
    json_t *list = json_array();
    for (size_t i = 0; i < count; i++)
        cli_json_append(list, cli_json_index(indices[i]), failed);
    return list;
}

static json_t *dim_json(const etch_view_dim *d, bool *failed)
{
    json_t *row = json_object();
    cli_json_set(row, "name", cli_json_text(d->name), failed);
    cli_json_set(row, "size", cli_json_text(d->size), failed);
    cli_json_set(row, "average", json_boolean(d->average), failed);
    cli_json_set(row, "divided", json_boolean(d->divided), failed);
    return row;
}

static json_t *tensor_json(const etch_view_tensor *t, bool *failed)
{
    json_t *row = json_object(), *tags = json_array();
    for (size_t i = 0; i < t->tag_count; i++)
        cli_json_append(tags, cli_json_text(t->tags[i]), failed);
    cli_json_set(row, "name", cli_json_text(t->name), failed);
    cli_json_set(row, "kind", cli_json_text(etch_tensor_kind_name(t->kind)), failed);
    cli_json_set(row, "dtype", cli_json_text(etch_dtype_name(t->dtype)), failed);
    cli_json_set(row, "dims", cli_json_indices(t->dims, t->dim_count, failed), failed);
    cli_json_set(row, "bytes", cli_json_text(t->bytes), failed);
    cli_json_set(row, "module", cli_json_index(t->module), failed);
    cli_json_set(row, "loop", cli_json_index(t->loop), failed);
    cli_json_set(row, "of", cli_json_index(t->of), failed);
    cli_json_set(row, "added_to", cli_json_index(t->added_to), failed);
    cli_json_set(row, "frozen", json_boolean(t->frozen), failed);
    cli_json_set(row, "passed", json_boolean(t->passed), failed);
    cli_json_set(row, "tags", tags, failed);
    cli_json_set(row, "location", cli_json_location(&t->location, failed), failed);
    if (t->constant)
        cli_json_set(row, "constant", cli_json_text(t->constant), failed);
    if (t->buffer)
        cli_json_set(row, "buffer", json_boolean(t->buffer), failed);
    return row;
}

static json_t *op_json(const etch_view_op *op, bool *failed)
{
    json_t *row = json_object();
    cli_json_set(row, "name", cli_json_text(op->name), failed);
    cli_json_set(row, "arguments", cli_json_text(op->arguments), failed);
    cli_json_set(row, "phase", cli_json_text(etch_phase_name(op->phase)), failed);
    cli_json_set(row, "ins", cli_json_indices(op->ins, op->in_count, failed), failed);
    cli_json_set(row, "outs", cli_json_indices(op->outs, op->out_count, failed), failed);
    cli_json_set(row, "module", cli_json_index(op->module), failed);
    cli_json_set(row, "loop", cli_json_index(op->loop), failed);
    cli_json_set(row, "forward", cli_json_index(op->forward), failed);
    cli_json_set(row, "derives", cli_json_text(op->derives), failed);
    cli_json_set(row, "flop", cli_json_text(op->flop), failed);
    cli_json_set(row, "flop_by_dims", cli_json_text(op->flop_by_dims), failed);
    cli_json_set(row, "runs", cli_json_text(op->runs), failed);
    cli_json_set(row, "passes", json_boolean(op->passes), failed);
    cli_json_set(row, "location", cli_json_location(&op->location, failed), failed);
    return row;
}

static json_t *loop_json(const etch_view_loop *l, bool *failed)
{
    json_t *row = json_object(), *carries = json_array();
    for (size_t i = 0; i < l->carry_count; i++) {
        json_t *carry = json_object();
        cli_json_set(carry, "init", cli_json_index(l->carries[i].init), failed);
        cli_json_set(carry, "in", cli_json_index(l->carries[i].in), failed);
        cli_json_set(carry, "out", cli_json_index(l->carries[i].out), failed);
        cli_json_set(carry, "result", cli_json_index(l->carries[i].result), failed);
        cli_json_append(carries, carry, failed);
    }
    cli_json_set(row, "name", cli_json_text(l->name), failed);
    cli_json_set(row, "count", cli_json_text(l->count), failed);
    cli_json_set(row, "total", cli_json_text(l->total), failed);
    cli_json_set(row, "number", json_integer((json_int_t)l->number), failed);
    cli_json_set(row, "iterations", cli_json_text(l->iterations), failed);
    cli_json_set(row, "module", cli_json_index(l->module), failed);
    cli_json_set(row, "parent", cli_json_index(l->parent), failed);
    cli_json_set(row, "undoes", cli_json_index(l->undoes), failed);
    cli_json_set(row, "carries", carries, failed);
    cli_json_set(row, "location", cli_json_location(&l->location, failed), failed);
    return row;
}

static json_t *module_json(const etch_view_module *m, bool *failed)
{
    json_t *row = json_object();
    cli_json_set(row, "name", cli_json_text(m->name), failed);
    cli_json_set(row, "path", cli_json_text(m->path), failed);
    cli_json_set(row, "parent", cli_json_index(m->parent), failed);
    cli_json_set(row, "loop", cli_json_index(m->loop), failed);
    cli_json_set(row, "arguments", cli_json_indices(m->arguments, m->argument_count, failed), failed);
    cli_json_set(row, "results", cli_json_indices(m->results, m->result_count, failed), failed);
    cli_json_set(row, "location", cli_json_location(&m->location, failed), failed);
    return row;
}

static json_t *saved_json(const etch_view_saved *s, bool *failed)
{
    json_t *row = json_object();
    cli_json_set(row, "tensor", cli_json_index(s->tensor), failed);
    cli_json_set(row, "bytes", cli_json_text(s->bytes), failed);
    cli_json_set(row, "bytes_by_dims", cli_json_text(s->bytes_by_dims), failed);
    cli_json_set(row, "runs", cli_json_text(s->runs), failed);
    cli_json_set(row, "reader", cli_json_index(s->reader), failed);
    cli_json_set(row, "reader_name", cli_json_text(s->reader_name), failed);
    cli_json_set(row, "reader_phase", cli_json_text(etch_phase_name(s->reader_phase)), failed);
    cli_json_set(row, "reader_derives", cli_json_text(s->reader_derives), failed);
    cli_json_set(row, "reader_location", cli_json_location(&s->reader_location, failed), failed);
    return row;
}

#define LIST(kind, rows, count)                                                   \
    do {                                                                          \
        json_t *list = json_array();                                              \
        for (size_t i = 0; i < report->count; i++)                                \
            cli_json_append(list, kind##_json(&report->rows[i], failed), failed); \
        cli_json_set(root, #rows, list, failed);                                  \
    } while (false)

void cli_json_tensors(json_t *root, const etch_graph_report *report, bool *failed)
{
    LIST(dim, dims, dim_count);
    LIST(tensor, tensors, tensor_count);
}

static void set_ops(json_t *root, const etch_graph_report *report, bool *failed)
{
    LIST(op, ops, op_count);
}

void cli_json_modules(json_t *root, const etch_graph_report *report, bool *failed)
{
    LIST(loop, loops, loop_count);
    LIST(module, modules, module_count);
}

static void set_saved(json_t *root, const etch_graph_report *report, bool *failed)
{
    LIST(saved, saved, saved_count);
}

json_t *cli_graph_tree(const etch_graph_report *report)
{
    bool failed = false;
    json_t *root = json_object(), *totals = json_object();
    for (size_t i = 0; i < report->total_count; i++)
        cli_json_set(totals, etch_phase_name(report->totals[i].phase), cli_json_text(report->totals[i].flop),
                     &failed);
    cli_json_set(root, "schema", json_string("etch-show-graph/1"), &failed);
    cli_json_set(root, "model", cli_json_text(report->model), &failed);
    cli_json_set(root, "config", cli_json_text(report->config), &failed);
    cli_json_set(root, "part", cli_json_text(report->part), &failed);
    cli_json_set(root, "calls", json_integer((json_int_t)report->calls), &failed);
    cli_json_set(root, "micro", cli_json_text(report->micro), &failed);
    cli_json_set(root, "trains", json_boolean(report->trains), &failed);
    cli_json_set(root, "flop", totals, &failed);
    cli_json_tensors(root, report, &failed);
    set_ops(root, report, &failed);
    cli_json_modules(root, report, &failed);
    set_saved(root, report, &failed);
    return cli_tree_end(root, failed);
}
