/* Weights at the end of a step: what is done for one element, and what one weight takes part in. */
#include "graph/step/step_int.h"

/* ---- one element --------------------------------------------------------------------------------------- */

uint32_t etch_update_flop(const etch_training *training)
{
    const etch_row *row = training->train.optimizer.row;
    return row ? row->flop.constants[0] : 0;
}

uint32_t etch_master_bytes(const etch_training *training)
{
    const etch_dtypes *dtypes = &training->graph->dtypes;
    const etch_optimizer *optimizer = &training->train.optimizer;
    return (optimizer->master ? etch_dtype_bytes(etch_dtype_or(dtypes->master, dtypes->optim)) : 0) +
           (optimizer->main_grads ? etch_dtype_bytes(dtypes->optim) : 0);
}

uint32_t etch_moment_bytes(const etch_training *training)
{
    const etch_dtypes *dtypes = &training->graph->dtypes;
    const etch_row *row = training->train.optimizer.row;
    return row ? row->states * etch_dtype_bytes(etch_dtype_or(dtypes->moments, dtypes->optim)) : 0;
}

/* Reads the gradient, the weight (its master copy when there is one) and what the optimizer keeps; writes all
 * but the gradient back, and the weight as well when it has a master copy. A copy of the gradient is written
 * and read besides. */
uint32_t etch_update_bytes(const etch_training *training, const etch_tensor *weight, uint32_t *reads)
{
    const etch_row *row = training->train.optimizer.row;
    if (reads)
        *reads = 0;
    if (!row)
        return 0;
    uint32_t gradient = etch_dtype_bytes(training->graph->dtypes.grads);
    const etch_dtypes *dtypes = &training->graph->dtypes;
    uint32_t main_grad = training->train.optimizer.main_grads ? etch_dtype_bytes(dtypes->optim) : 0;
    uint32_t moments = etch_moment_bytes(training) + main_grad;
    uint32_t copy = etch_dtype_bytes(etch_dtype_or(dtypes->master, dtypes->optim));
    uint32_t own = etch_dtype_bytes(weight->dtype);
    bool master = training->train.optimizer.master;
    uint32_t read = gradient + (master ? copy : own) + moments;
    uint32_t written = own + (master ? copy : 0) + moments;
    if (reads)
        *reads = read;
    return read + written;
}

uint32_t etch_sync_width(const etch_training *training)
{
    const etch_dtypes *dtypes = &training->graph->dtypes;
    return etch_dtype_bytes(etch_dtype_or(dtypes->grads_comm, dtypes->grads));
}

uint32_t etch_clip_flop(const etch_training *training)
{
    return etch_row_for(training->graph, ETCH_USE_NORM)->flop.constants[0];
}

uint32_t etch_clip_bytes(const etch_training *training)
{
    return etch_dtype_bytes(training->graph->dtypes.grads);
}

/* ---- one weight ---------------------------------------------------------------------------------------- */

etch_expr etch_update_elements(const etch_placed *placed, const etch_tensor *weight)
{
    return etch_held_elements(placed, weight, ETCH_HOLDS_STATES);
}

/* Over axes that divide the states, partial gradients become shards, and what is left partial is all-reduced
 * as shards; a gradient that is whole on such an axis is cut without a collective, before anything moves.
 * Where ranks hold gradients in parts, each microbatch adds to the parts. */
void etch_ending_collectives(const etch_placed *placed, const etch_tensor *weight,
                             etch_ending_collective collectives[ETCH_ENDING_COLLECTIVES])
{
    const etch_training *training = placed->training;
    etch_sym *sym = training->graph->sym;
    const uint32_t partial = placed->sync_axes[weight->id], zero = placed->zero_axes[weight->id];
    const etch_expr shard = etch_update_elements(placed, weight);
    const etch_dtype_said gathered = training->graph->dtypes.weights_comm;
    etch_expr of_gradient = etch_mul(sym, shard, etch_int(sym, etch_sync_width(training)));
    etch_expr of_weight =
        etch_mul(sym, shard, etch_int(sym, etch_dtype_bytes(etch_dtype_or(gathered, weight->dtype))));
    const bool each = placed->plan->reduce_each;
    const uint32_t whole = zero & ~etch_zero_divides(placed, weight, ETCH_HOLDS_WEIGHT);
    collectives[0] = (etch_ending_collective){
        .collective = ETCH_REDUCE_SCATTER,
        .axes = partial & zero,
        .every_microbatch = each || etch_zero_divides(placed, weight, ETCH_HOLDS_GRADIENT) != 0,
        .bytes = etch_mul(sym, of_gradient, etch_group_size(placed, partial & zero))};
    collectives[1] = (etch_ending_collective){.collective = ETCH_ALL_REDUCE,
                                              .axes = partial & ~zero,
                                              .every_microbatch = each,
                                              .bytes = of_gradient};
    collectives[2] = (etch_ending_collective){
        .collective = ETCH_ALL_GATHER, .axes = training->train.optimizer.row ? whole : 0, .bytes = of_weight};
    for (uint32_t i = 0; i < ETCH_ENDING_COLLECTIVES; i++)
        if (!collectives[i].axes)
            collectives[i].collective = ETCH_NO_COLLECTIVE;
}

etch_tensor **etch_gradients_by_weight(const etch_training *training, etch_arena *arena)
{
    const etch_graph *graph = training->graph;
    etch_tensor **by_id = ETCH_NEW_ARRAY(arena, graph->tensors.count, etch_tensor *);
    for (uint32_t i = 0; i < training->gradients.count; i++)
        by_id[graph->weights.at[i]->id] = training->gradients.at[i];
    return by_id;
}
