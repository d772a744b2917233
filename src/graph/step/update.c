/* Weights at the end of a step: what the optimizer does and keeps for one element. */
#include "graph/step/step_int.h"

uint32_t etch_update_flop(const etch_training *training)
{
    const etch_optimizer *optimizer = &training->train.optimizer;
    const etch_row *ema = optimizer->ema ? etch_row_for(training->graph, ETCH_USE_EMA) : NULL;
    return (optimizer->row ? optimizer->row->flop.constants[0] : 0) + (ema ? ema->flop.constants[0] : 0);
}

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

etch_expr etch_moment_bytes(const etch_training *training, etch_expr elements)
{
    etch_sym *sym = training->graph->sym;
    const etch_dtypes *dtypes = &training->graph->dtypes;
    const etch_row *row = training->train.optimizer.row;
    const uint32_t states = row ? row->states : 0, block = row ? row->state_block : 0;
    const uint32_t width = etch_dtype_bytes(etch_dtype_or(dtypes->moments, dtypes->optim));
    if (!block)
        return etch_mul(sym, elements, etch_int(sym, states * width));
    const etch_expr scales = etch_ceil(sym, etch_div(sym, elements, etch_int(sym, block)));
    const etch_expr bytes =
        etch_add(sym, elements, etch_mul(sym, scales, etch_int(sym, etch_dtype_bytes(ETCH_F32))));
    return etch_mul(sym, etch_int(sym, states), bytes);
}

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
