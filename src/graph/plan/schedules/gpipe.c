/* GPipe (Huang et al. 2019, arXiv 1811.06965): all microbatches forward, then all of them backward. */
#include "graph/plan/schedules/generator.h"

static void actions(etch_action_list *list, const etch_pipe *pipe, uint32_t stage)
{
    (void)stage;
    etch_actions_in_turns(list, pipe, pipe->microbatches, 0);
}

/* m */
static etch_expr in_flight(etch_sym *sym, const etch_pipe_sizes *sizes, etch_expr stage)
{
    (void)sym;
    (void)stage;
    return sizes->microbatches;
}

const etch_schedule etch_schedule_gpipe = {
    .name = "gpipe", .actions = actions, .in_flight = in_flight, .bubble = etch_bubble_of_others};
