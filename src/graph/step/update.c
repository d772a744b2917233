/* Weights at the end of a step: what each part of an update works on, computes and moves, what ranks tell
 * each other after it, and what the optimizer keeps. */
#include "graph/step/step_int.h"

#include "graph/ir/row.h"

/* ---- what the optimizer keeps -------------------------------------------------------------------------- */

uint32_t etch_weight_copy_bytes(const etch_training *training)
{
    const etch_dtypes *dtypes = &training->graph->dtypes;
    return etch_dtype_bytes(etch_dtype_or(dtypes->master, dtypes->optim));
}

uint32_t etch_lasting_master_bytes(const etch_training *training)
{
    const etch_optimizer *optimizer = &training->train.optimizer;
    return ((uint32_t)optimizer->master + optimizer->ema) * etch_weight_copy_bytes(training);
}

uint32_t etch_master_bytes(const etch_training *training)
{
    const bool copies = training->train.optimizer.main_grads;
    return etch_lasting_master_bytes(training) +
           (copies ? etch_dtype_bytes(training->graph->dtypes.optim) : 0);
}

etch_expr etch_moment_bytes(const etch_training *training, const etch_row *row, etch_expr elements)
{
    etch_sym *sym = training->graph->sym;
    const etch_dtypes *dtypes = &training->graph->dtypes;
    const uint32_t width = etch_dtype_bytes(etch_dtype_or(dtypes->moments, dtypes->optim));
    if (!row->state_block)
        return etch_mul(sym, elements, etch_int(sym, row->states * width));
    const etch_expr scales = etch_ceil(sym, etch_div(sym, elements, etch_int(sym, row->state_block)));
    const etch_expr bytes =
        etch_add(sym, elements, etch_mul(sym, scales, etch_int(sym, etch_dtype_bytes(ETCH_F32))));
    return etch_mul(sym, etch_int(sym, row->states), bytes);
}

/* ---- the parts of an update ---------------------------------------------------------------------------- */

static const etch_matrix *matrix_of(const etch_training *training, const etch_tensor *weight)
{
    const etch_matrix *matrix = training->matrices ? &training->matrices[weight->id] : NULL;
    return matrix && matrix->rows ? matrix : NULL;
}

const etch_row *etch_optimizer_of(const etch_training *training, const etch_tensor *weight)
{
    const etch_optimizer *optimizer = &training->train.optimizer;
    const etch_matrix *matrix = optimizer->row->matrices_alone ? matrix_of(training, weight) : NULL;
    const bool rests = optimizer->row->matrices_alone && !(matrix && !matrix->is_outer);
    return rests ? optimizer->rest : optimizer->row;
}

const etch_row *etch_update_part(const etch_training *training, const etch_tensor *weight, uint32_t part)
{
    const etch_row *row = etch_optimizer_of(training, weight);
    if (part == ETCH_MOST_PARTS_BEFORE)
        return row;
    return row->before[part] ? etch_row_named(training->graph->table, row->before[part]) : NULL;
}

/* The dims of its matrices: all that it has, when it is none. */
static uint32_t matrix_dims(const etch_matrix *matrix)
{
    return matrix ? matrix->rows | matrix->columns : UINT32_MAX;
}

/* The product of the sizes of those of its dims that are in `mask`. */
static etch_expr size_of_dims(const etch_training *training, const etch_tensor *weight, uint32_t mask,
                              etch_size_fn size, const void *data)
{
    etch_expr product = etch_int(training->graph->sym, 1);
    for (uint32_t d = 0; d < weight->rank; d++)
        if (mask >> d & 1)
            product = etch_mul(training->graph->sym, product, size(data, weight->dims[d]));
    return product;
}

/* Axes along which the plan's lines divide those dims. */
static uint32_t axes_of_dims(const etch_placed *placed, const etch_tensor *weight, uint32_t mask)
{
    uint32_t axes = 0;
    for (uint32_t d = 0; d < weight->rank; d++)
        if (mask >> d & 1)
            axes |= etch_axes_held(placed->plan, placed->weight_of[weight->id]->place, weight->dims[d]);
    return axes;
}

static etch_update_call call_of(const etch_training *training, const etch_tensor *weight, const etch_row *row)
{
    etch_update_call call = {
        .sym = training->graph->sym, .row = row, .steps = training->train.optimizer.steps};
    const etch_matrix *matrix = matrix_of(training, weight);
    if (!matrix)
        return call;
    call.rows = size_of_dims(training, weight, matrix->rows, etch_size_in_training, training);
    call.columns = size_of_dims(training, weight, matrix->columns, etch_size_in_training, training);
    return call;
}

/* The dims that count matrices. */
static uint32_t counting_dims(const etch_training *training, const etch_tensor *weight)
{
    return ~matrix_dims(matrix_of(training, weight));
}

static etch_expr size_in_placed(const void *placed, const etch_dim *dim)
{
    return etch_placed_size(placed, dim);
}

/* On a rank. */
static etch_expr held_matrices(const etch_placed *placed, const etch_tensor *weight)
{
    etch_sym *sym = placed->training->graph->sym;
    const uint32_t counting = counting_dims(placed->training, weight);
    return etch_div(sym, size_of_dims(placed->training, weight, counting, size_in_placed, placed),
                    etch_group_size(placed, axes_of_dims(placed, weight, counting)));
}

/* ---- what they take ------------------------------------------------------------------------------------ */

/* The average of the weights goes with the last part. */
static etch_update_work work_of(const etch_training *training, const etch_update_call *call)
{
    const etch_optimizer *optimizer = &training->train.optimizer;
    etch_update_work work = call->row->work(call);
    if (call->row->updates && optimizer->ema) {
        const uint32_t flop = etch_row_for(training->graph, ETCH_USE_EMA)->flop.constants[0];
        work.flop =
            etch_add(call->sym, work.flop, etch_mul(call->sym, call->elements, etch_int(call->sym, flop)));
    }
    return work;
}

etch_update_work etch_update_of_job(const etch_training *training, const etch_tensor *weight,
                                    const etch_row *row)
{
    etch_update_call call = call_of(training, weight, row);
    call.elements = etch_elements(call.sym, weight, etch_size_in_training, training);
    call.matrices =
        size_of_dims(training, weight, counting_dims(training, weight), etch_size_in_training, training);
    return work_of(training, &call);
}

/* Bytes of one element of what a part reads, or writes, but for what the optimizer keeps. A copy of the
 * gradients is written and read where they are read. */
static uint32_t width_of(const etch_training *training, const etch_tensor *weight, const etch_row *row,
                         bool writes)
{
    const etch_dtypes *dtypes = &training->graph->dtypes;
    const etch_optimizer *optimizer = &training->train.optimizer;
    const unsigned uses = writes ? row->update_writes : row->update_reads;
    const uint32_t own = etch_dtype_bytes(weight->dtype), copy = etch_weight_copy_bytes(training);
    const uint32_t grads = etch_dtype_bytes(dtypes->grads);
    const uint32_t main_grad = optimizer->main_grads ? etch_dtype_bytes(dtypes->optim) : 0;
    uint32_t width = 0;
    if (row->update_reads & ETCH_UPDATE_GRADIENT)
        width += main_grad + (writes ? 0 : grads);
    if (uses & ETCH_UPDATE_CHANGE)
        width += main_grad ? main_grad : grads;
    if (uses & ETCH_UPDATE_FACTOR)
        width += etch_dtype_bytes(ETCH_BF16);
    if (uses & ETCH_UPDATE_WEIGHT)
        width += writes ? own + (optimizer->master ? copy : 0) : optimizer->master ? copy : own;
    if (row->updates && optimizer->ema)
        width += copy;
    return width;
}

static etch_expr plus(etch_sym *sym, etch_expr sum, etch_expr more)
{
    return more ? etch_add(sym, sum, more) : sum;
}

etch_update_work etch_update_of_rank(const etch_placed *placed, const etch_tensor *weight,
                                     const etch_row *row, etch_expr elements)
{
    const etch_training *training = placed->training;
    etch_update_call call = call_of(training, weight, row);
    etch_sym *sym = call.sym;
    call.elements = elements;
    call.matrices = held_matrices(placed, weight);
    etch_update_work work = work_of(training, &call);
    const etch_expr states = etch_moment_bytes(training, etch_optimizer_of(training, weight), elements);
    etch_expr *const bytes[2] = {&work.read, &work.written};
    for (int writes = 0; writes < 2; writes++) {
        const unsigned uses = writes ? row->update_writes : row->update_reads;
        const etch_expr width = etch_int(sym, width_of(training, weight, row, writes));
        const etch_expr more = *bytes[writes];
        *bytes[writes] = plus(sym, etch_mul(sym, elements, width), more);
        if (uses & ETCH_UPDATE_STATES)
            *bytes[writes] = etch_add(sym, *bytes[writes], states);
    }
    return work;
}

/* ---- what ranks share ---------------------------------------------------------------------------------- */

etch_update_shared etch_update_shared_of(const etch_placed *placed, const etch_tensor *weight,
                                         const etch_row *row, etch_expr elements)
{
    etch_sym *sym = placed->training->graph->sym;
    const uint32_t dims = matrix_dims(matrix_of(placed->training, weight));
    const bool whole = row->share == ETCH_SHARE_MATRIX;
    const uint32_t width = whole ? etch_dtype_bytes(ETCH_BF16) : row->sums * etch_dtype_bytes(ETCH_F32);
    return (etch_update_shared){
        .collective = whole ? ETCH_ALL_GATHER : ETCH_ALL_REDUCE,
        .axes = axes_of_dims(placed, weight, dims) | placed->zero_axes[weight->id],
        .payload = etch_mul(sym, whole ? elements : held_matrices(placed, weight), etch_int(sym, width)),
    };
}

/* ---- gradients ----------------------------------------------------------------------------------------- */

uint32_t etch_clip_flop(const etch_training *training)
{
    return etch_row_for(training->graph, ETCH_USE_NORM)->flop.constants[0];
}

etch_tensor **etch_gradients_by_weight(const etch_training *training, etch_arena *arena)
{
    const etch_graph *graph = training->graph;
    etch_tensor **by_id = ETCH_NEW_ARRAY(arena, graph->tensors.count, etch_tensor *);
    for (uint32_t i = 0; i < training->gradients.count; i++)
        by_id[graph->weights.at[i]->id] = training->gradients.at[i];
    return by_id;
}
