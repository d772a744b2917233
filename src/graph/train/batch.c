/* Dims that follow the batch: what it is renamed to, merged into, split into or joined to inside the model. A
 * microbatch has its part of them, as it has of the batch.
 *
 * requires: a forward graph. provides: `part_of` of its dims. */
#include "graph/ir/cursor.h"
#include "graph/train/train_int.h"

typedef struct follower {
    const etch_graph *graph;
    const etch_dim *batch;
    bool changed, failed;
} follower;

static bool follows(const follower *f, const etch_dim *dim)
{
    return dim && (dim == f->batch || dim->part_of);
}

static void mark(follower *f, etch_dim *dim)
{
    f->changed = f->changed || !follows(f, dim);
    if (dim && dim != f->batch)
        dim->part_of = f->batch;
}

/* How many of the pairs from `first` to before `end` have such a dim on this side. */
static uint32_t count(const follower *f, etch_dim_view side, uint32_t first, uint32_t end)
{
    uint32_t found = 0;
    for (uint32_t i = first; i < end; i++)
        found += follows(f, side.at[i]);
    return found;
}

static bool joins_or_splits(const etch_op *op)
{
    return etch_row_is_several(op->row) || (op->row->each & ETCH_KW_OVER);
}

/* The end of the group of a renaming that begins at `first`. */
static uint32_t group_end(const etch_attrs *attrs, uint32_t first)
{
    uint32_t end = first + 1;
    while (end < attrs->to.count && !(attrs->from.at[end] && attrs->to.at[end]))
        end++;
    return end;
}

/* Of what dims are split into, the outermost one has the parts. */
static void follow_renaming(follower *f, const etch_attrs *attrs)
{
    for (uint32_t first = 0, end; first < attrs->to.count; first = end) {
        end = group_end(attrs, first);
        if (count(f, attrs->from, first, end))
            mark(f, attrs->to.at[first]);
    }
}

/* What is joined follows when all parts do; what is split has such parts only. */
static void follow_parts(follower *f, const etch_op *op)
{
    const etch_attrs *attrs = &op->attrs;
    const uint32_t parts = attrs->from.count;
    const bool splits = etch_row_is_several(op->row);
    if (splits ? !follows(f, attrs->to.at[0]) : count(f, attrs->from, 0, parts) < parts)
        return;
    for (uint32_t i = 0; i < parts; i++)
        mark(f, attrs->from.at[i]);
    mark(f, attrs->to.at[0]);
}

static void follow_slots(follower *f, etch_dim *dim)
{
    for (uint32_t i = 0; i < dim->packed_from.count; i++)
        if (dim->packed_from.at[i]->part_of)
            mark(f, dim);
}

static void follow_all(follower *f)
{
    for (f->changed = true; f->changed;) {
        f->changed = false;
        for (etch_cursor at = {.root = f->graph->forward}; etch_cursor_next(&at);) {
            const etch_op *op = at.item->op;
            if (op && op->row->use == ETCH_USE_RENAMING)
                follow_renaming(f, &op->attrs);
            else if (op && joins_or_splits(op))
                follow_parts(f, op);
        }
        for (uint32_t i = 0; i < f->graph->dims.count; i++)
            follow_slots(f, f->graph->dims.at[i]);
    }
}

/* ---- what cannot be ------------------------------------------------------------------------------------ */

static etch_diag *refuse(follower *f, etch_span span, const char *what, const etch_dim *dim)
{
    f->failed = true;
    const bool made = dim != f->batch;
    return etch_error(f->graph->diags, ETCH_E_MICROBATCH, span, "%s: a microbatch has a part of %s%s%s", what,
                      dim->name, made ? ", which is made of the batch " : "", made ? f->batch->name : "");
}

/* The dims of a renaming, of an op on parts, or another map follow together or not at all. */
static void check_pairs(follower *f, const etch_op *op, uint32_t first, uint32_t end)
{
    const etch_attrs *attrs = &op->attrs;
    const bool renames = op->row->use == ETCH_USE_RENAMING, parts = joins_or_splits(op);
    const uint32_t from = count(f, attrs->from, first, end), to = count(f, attrs->to, first, end);
    const bool whole = parts && from == end - first && to == end - first;
    if ((!from && !to) || (renames && from && to) || whole)
        return;
    uint32_t which = first;
    const etch_dim_view side = from ? attrs->from : attrs->to;
    while (!follows(f, side.at[which]))
        which++;
    etch_diag *diag =
        refuse(f, op->span, etch_text(f->graph->arena, "%s of %s", op->row->name, side.at[which]->name),
               side.at[which]);
    if (parts)
        etch_help(diag, "all parts are to be of the batch: rename it, x[B->B'], and join B and B'");
    else if (renames)
        etch_help(diag, "what takes the name is to be of the batch, too");
    else
        etch_help(diag, "leave out `accumulate` to run the step as one microbatch");
}

static void check_op(follower *f, const etch_op *op)
{
    const etch_attrs *attrs = &op->attrs;
    if (op->row->links)
        return;
    if (op->row->use != ETCH_USE_RENAMING) {
        if (attrs->to.count > 0 && attrs->from.count > 0)
            check_pairs(f, op, 0, attrs->to.count);
        return;
    }
    for (uint32_t first = 0, end; first < attrs->to.count; first = end) {
        end = group_end(attrs, first);
        check_pairs(f, op, first, end);
    }
}

/* An input has the batch itself; a weight is the same for all microbatches. */
static void check_given(follower *f, const etch_tensor *tensor)
{
    const bool given = tensor->kind == ETCH_INPUT || tensor->kind == ETCH_WEIGHT;
    for (uint32_t i = 0; given && i < tensor->rank; i++)
        if (tensor->dims[i]->part_of) {
            etch_diag *diag =
                refuse(f, tensor->span, etch_tensor_text(f->graph->arena, tensor), tensor->dims[i]);
            etch_help(diag,
                      tensor->kind == ETCH_INPUT ? "declare the input with %s, and rename that"
                                                 : "%s is another size for each microbatch",
                      tensor->kind == ETCH_INPUT ? f->batch->name : tensor->dims[i]->name);
            return;
        }
}

bool etch_train_follow_batch(const etch_graph *graph, const etch_train *train)
{
    follower f = {.graph = graph, .batch = train->batch};
    for (uint32_t i = 0; i < graph->dims.count; i++)
        graph->dims.at[i]->part_of = NULL;
    if (!train->batch || !train->micro || train->micro == etch_int(graph->sym, 1))
        return true;
    follow_all(&f);
    for (etch_cursor at = {.root = graph->forward}; etch_cursor_next(&at);)
        if (at.item->op)
            check_op(&f, at.item->op);
    for (uint32_t i = 0; i < graph->tensors.count; i++)
        check_given(&f, graph->tensors.at[i]);
    return !f.failed;
}
