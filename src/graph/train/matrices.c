/* Which weights are matrices, to optimizers that treat these in a way of their own.
 *
 * What a weight is follows from what reads it: a product sums over some of its dims, has others in its
 * result, and those that the other operands have as well count matrices. A lookup has rows, which it chooses,
 * and all else. Where readers do not agree, or one is neither, the weight is none. */
#include "graph/ir/cursor.h"
#include "graph/train/op_roles.h"
#include "graph/train/train_int.h"

typedef struct reading {
    etch_matrix matrix;
    bool is_read, is_none;
} reading;

/* Has an operand beside `own` the dim? */
static bool others_have(const etch_op *op, uint32_t own, const etch_dim *dim)
{
    for (uint32_t i = 0; i < op->in_count; i++)
        if (i != own && etch_has_dim(op->ins[i], dim))
            return true;
    return false;
}

static etch_matrix as_factor(const etch_op *op, uint32_t own, unsigned roles)
{
    const etch_tensor *weight = op->ins[own];
    etch_matrix m = {.is_outer = roles & ETCH_OP_LOGITS};
    for (uint32_t d = 0; d < weight->rank; d++) {
        if (!etch_has_dim(op->outs[0], weight->dims[d]))
            m.rows |= 1u << d;
        else if (!others_have(op, own, weight->dims[d]))
            m.columns |= 1u << d;
    }
    return m;
}

static etch_matrix as_table(const etch_op *op)
{
    const etch_tensor *weight = op->ins[0];
    etch_matrix m = {.is_outer = true};
    for (uint32_t d = 0; d < weight->rank; d++)
        *(etch_dim_among(op->attrs.over, weight->dims[d]) ? &m.rows : &m.columns) |= 1u << d;
    return m;
}

/* How the op reads its operand, a weight or a view of one. */
static reading reading_by(const etch_op *op, uint32_t own, unsigned roles)
{
    reading r = {.is_read = true};
    if (own == 0 && op->row->family == ETCH_FAMILY_LOOKUP)
        r.matrix = as_table(op);
    else if (etch_op_is_matmul(op) && !op->row->divide)
        r.matrix = as_factor(op, own, roles);
    r.is_none = !r.matrix.rows || !r.matrix.columns;
    return r;
}

/* Adds one reader to those that have been seen. */
static void join(reading *all, const reading *one)
{
    const etch_matrix *a = &all->matrix, *b = &one->matrix;
    const bool same =
        (a->rows == b->rows && a->columns == b->columns) || (a->rows == b->columns && a->columns == b->rows);
    const bool is_outer = a->is_outer || b->is_outer;
    all->is_none = all->is_none || one->is_none || (all->is_read && !same);
    if (!all->is_read)
        all->matrix = one->matrix;
    all->matrix.is_outer = is_outer;
    all->is_read = true;
}

/* The weight that the tensor is under other names; its dims may have other names there, too. */
static etch_tensor *weight_under(etch_tensor *tensor)
{
    while (tensor->producer && etch_op_is_view(tensor->producer) &&
           tensor->rank == tensor->producer->ins[0]->rank)
        tensor = tensor->producer->ins[0];
    return tensor->kind == ETCH_WEIGHT ? tensor : NULL;
}

/* Turns bits of dims of `tensor` into those of the weight that it is. False: they cannot be told. */
static bool bits_before(const etch_tensor *tensor, const etch_tensor *weight, uint32_t *mask)
{
    for (; tensor != weight; tensor = tensor->producer->ins[0]) {
        const etch_tensor *operand = tensor->producer->ins[0];
        uint32_t before = 0;
        for (uint32_t d = 0; d < tensor->rank; d++) {
            const etch_dim *dim = etch_op_dim_before(tensor->producer, tensor->dims[d]);
            for (uint32_t i = 0; i < operand->rank && *mask >> d & 1; i++)
                before |= operand->dims[i] == dim ? 1u << i : 0;
        }
        if (__builtin_popcount(before) != __builtin_popcount(*mask))
            return false;
        *mask = before;
    }
    return true;
}

/* A view of the weight is read by what reads it in turn. */
static void note_op(reading *all, const etch_op *op, unsigned roles)
{
    const bool passes = etch_op_is_view(op) && op->outs[0]->rank == op->ins[0]->rank;
    for (uint32_t i = 0; i < op->in_count && !passes; i++) {
        const etch_tensor *weight = weight_under(op->ins[i]);
        if (!weight)
            continue;
        reading here = reading_by(op, i, roles);
        here.is_none = here.is_none || !bits_before(op->ins[i], weight, &here.matrix.rows) ||
                       !bits_before(op->ins[i], weight, &here.matrix.columns);
        join(&all[weight->id], &here);
    }
}

void etch_matrices_find(etch_training *training)
{
    const etch_graph *graph = training->graph;
    etch_matrix *matrices;
    if (!training->train.optimizer.row || !training->train.optimizer.row->of_matrices)
        return;
    etch_arena *scratch = etch_arena_new(etch_arena_mem(graph->arena));
    reading *all = ETCH_NEW_ARRAY(scratch, graph->tensors.count, reading);
    const etch_op_roles *roles = etch_op_roles_of(training, scratch);
    for (etch_cursor at = {.root = graph->forward}; etch_cursor_next(&at);)
        if (at.item->op)
            note_op(all, at.item->op, roles->of[at.item->op->id]);
    training->matrices = matrices = ETCH_NEW_ARRAY(graph->arena, graph->tensors.count, etch_matrix);
    for (uint32_t i = 0; i < graph->weights.count; i++) {
        const reading *r = &all[graph->weights.at[i]->id];
        if (!r->is_none)
            matrices[graph->weights.at[i]->id] = r->matrix;
    }
    etch_arena_free(scratch);
}
