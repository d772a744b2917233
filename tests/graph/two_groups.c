/* A schedule as CONTRIBUTING.md adds it: two groups of microbatches, one after the other. */
#include "two_groups.h"

#include "graph/plan/schedules/generator.h"

/* Two groups of microbatches, one after the other, each forward and backward as a whole. */
static void actions_of_groups(etch_action_list *list, const etch_pipe *pipe, uint32_t stage)
{
    const uint64_t first = (pipe->microbatches + 1) / 2;
    (void)stage;
    for (int group = 0; group < 2; group++)
        for (int backward = 0; backward < (pipe->trains ? 2 : 1); backward++)
            for (uint64_t m = group ? first : 0; m < (group ? pipe->microbatches : first); m++)
                etch_action_add(list, backward ? ETCH_ACTION_BACKWARD : ETCH_ACTION_FORWARD, 0, m);
}

static etch_expr in_flight_of_groups(etch_sym *sym, const etch_pipe_sizes *sizes, etch_expr stage)
{
    (void)stage;
    return etch_floor_div(sym, etch_add(sym, sizes->microbatches, etch_int(sym, 1)), etch_int(sym, 2));
}

/* Each group fills and drains the stages. */
static etch_expr bubble_of_groups(etch_sym *sym, const etch_pipe_sizes *sizes)
{
    const etch_expr groups = etch_min(sym, sizes->microbatches, etch_int(sym, 2));
    return etch_mul(sym, groups, etch_bubble_of_others(sym, sizes));
}

const etch_schedule etch_schedule_two_groups = {.name = "two_groups",
                                                .actions = actions_of_groups,
                                                .in_flight = in_flight_of_groups,
                                                .bubble = bubble_of_groups};
