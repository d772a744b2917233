/* The tokens of a step, as a model has them: what its losses judge or, where none does, what it looks up. */
#include "graph/ir/ir_int.h"

#include "graph/ir/cursor.h"

/* The labels that an op holds its first operand against; NULL: it does not. */
static const etch_tensor *labels_of(const etch_op *op)
{
    for (uint32_t i = 0; i < op->in_count && op->row->over == ETCH_FACTOR_STAT; i++)
        if (etch_row_is_index(op->row, i))
            return op->ins[i];
    return NULL;
}

/* The input by which an op looks up rows of a weight; NULL: it does not. */
static const etch_tensor *looked_up_by(const etch_op *op)
{
    if (op->row->family != ETCH_FAMILY_LOOKUP || etch_route_root(op->ins[0])->kind != ETCH_WEIGHT)
        return NULL;
    const etch_tensor *indices = etch_route_root(op->ins[1]);
    return indices->kind == ETCH_INPUT ? indices : NULL;
}

static etch_expr size_of(const void *data, const etch_dim *dim)
{
    (void)data;
    return dim->size;
}

static void add(const etch_graph *graph, const etch_tensor *tensor, etch_token_counts *out)
{
    if (!tensor)
        return;
    etch_expr count = etch_elements(graph->sym, tensor, size_of, NULL);
    for (uint32_t i = 0; i < out->count; i++)
        if (out->at[i].count == count)
            return;
    ETCH_PUSH(graph->arena, out, (etch_token_count){count, tensor});
}

etch_token_counts etch_graph_tokens(const etch_graph *graph)
{
    etch_token_counts judged = {0}, read = {0};
    for (etch_cursor at = {.root = graph->forward}; etch_cursor_next(&at);) {
        if (!at.item->op)
            continue;
        add(graph, labels_of(at.item->op), &judged);
        add(graph, looked_up_by(at.item->op), &read);
    }
    return judged.count > 0 ? judged : read;
}
