/* What the orders of schedules have in common. */
#include "graph/plan/schedules/generator.h"

void etch_action_add(etch_action_list *list, etch_action_kind kind, uint32_t chunk, uint64_t microbatch)
{
    list->at[list->count++] = (etch_action){.kind = kind, .chunk = chunk, .microbatch = microbatch};
}

void etch_action_add_to_slot(etch_action_list *list, etch_action_kind kind, uint32_t chunk,
                             uint64_t microbatch)
{
    etch_action_add(list, kind, chunk, microbatch);
    list->at[list->count - 1].overlaps = true;
}

void etch_actions_in_turns(etch_action_list *list, const etch_pipe *pipe, uint64_t warmup, uint64_t lag)
{
    const bool halves = pipe->schedule->has_halves;
    const uint64_t total = pipe->microbatches, lead = warmup < total ? warmup : total;
    for (uint64_t k = 0; k < (pipe->trains ? total + lead + lag : total); k++) {
        if (k < total)
            etch_action_add(list, ETCH_ACTION_FORWARD, 0, k);
        if (k >= lead && k - lead < total && pipe->trains)
            etch_action_add(list, halves ? ETCH_ACTION_INPUT_GRADIENTS : ETCH_ACTION_BACKWARD, 0, k - lead);
        if (k >= lead + lag && k - lead - lag < total && pipe->trains && halves)
            etch_action_add(list, ETCH_ACTION_WEIGHT_GRADIENTS, 0, k - lead - lag);
    }
}

void etch_actions_to_and_fro(etch_action_list *list, const etch_pipe *pipe, uint32_t stage)
{
    const uint64_t lead = 2 * (uint64_t)(pipe->stages - stage) - 1, total = pipe->microbatches;
    for (uint64_t k = 0; k < total + lead; k++) {
        if (k < total)
            etch_action_add(list, ETCH_ACTION_FORWARD, 0, k);
        if (k + 1 >= lead && k + 1 - lead < total)
            etch_action_add(list, ETCH_ACTION_FORWARD, 1, k + 1 - lead);
    }
}

etch_pipe_sizes etch_pipe_sizes_folded(etch_sym *sym, const etch_pipe_sizes *sizes)
{
    const etch_expr two = etch_int(sym, 2);
    return (etch_pipe_sizes){etch_div(sym, sizes->stages, two), sizes->chunks,
                             etch_div(sym, sizes->microbatches, two)};
}

etch_expr etch_bubble_of_others(etch_sym *sym, const etch_pipe_sizes *sizes)
{
    return etch_div(sym, etch_sub(sym, sizes->stages, etch_int(sym, 1)), sizes->microbatches);
}
