/* What the orders of schedules have in common. */
#include "graph/plan/schedules/generator.h"

void etch_action_add(etch_action_list *list, etch_action_kind kind, uint32_t chunk, uint64_t microbatch)
{
    list->at[list->count++] = (etch_action){.kind = kind, .chunk = chunk, .microbatch = microbatch};
}

void etch_actions_in_turns(etch_action_list *list, const etch_pipe *pipe, uint64_t warmup)
{
    const uint64_t total = pipe->microbatches;
    const uint64_t lead = pipe->trains && warmup < total ? warmup : total;
    for (uint64_t k = 0; k < total + lead; k++) {
        if (k < total)
            etch_action_add(list, ETCH_ACTION_FORWARD, 0, k);
        if (pipe->trains && k >= lead)
            etch_action_add(list, ETCH_ACTION_BACKWARD, 0, k - lead);
    }
}

etch_expr etch_bubble_of_others(etch_sym *sym, const etch_pipe_sizes *sizes)
{
    return etch_div(sym, etch_sub(sym, sizes->stages, etch_int(sym, 1)), sizes->microbatches);
}
