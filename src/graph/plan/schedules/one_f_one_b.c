/* One forward, one backward (PipeDream-Flush: Narayanan et al. 2021, arXiv 2104.04473): a stage begins to go
 * back as soon as the first microbatch has come back to it. */
#include "graph/plan/schedules/generator.h"

static void actions(etch_action_list *list, const etch_pipe *pipe, uint32_t stage)
{
    etch_actions_in_turns(list, pipe, pipe->stages - stage - 1, 0);
}

/* min(m, p - i) */
static etch_expr in_flight(etch_sym *sym, const etch_pipe_sizes *sizes, etch_expr stage)
{
    return etch_min(sym, sizes->microbatches, etch_sub(sym, sizes->stages, stage));
}

const etch_schedule etch_schedule_one_f_one_b = {
    .name = "one_f_one_b", .actions = actions, .in_flight = in_flight, .bubble = etch_bubble_of_others};
