/* ZB-H1 (Qi et al. 2023, arXiv 2401.10241, section 2.2): one forward, one backward, with backward in halves.
 * Stage i makes gradients of weights i microbatches after those of inputs, so that every stage holds as much
 * as the first one, and fills with them what would be the end of the bubble. */
#include "graph/plan/schedules/generator.h"

static void actions(etch_action_list *list, const etch_pipe *pipe, uint32_t stage)
{
    etch_actions_in_turns(list, pipe, pipe->stages - stage - 1, stage);
}

/* min(m, p - i) */
static etch_expr in_flight(etch_sym *sym, const etch_pipe_sizes *sizes, etch_expr stage)
{
    return etch_min(sym, sizes->microbatches, etch_sub(sym, sizes->stages, stage));
}

/* min(m, p) */
static etch_expr until_weights(etch_sym *sym, const etch_pipe_sizes *sizes, etch_expr stage)
{
    (void)stage;
    return etch_min(sym, sizes->microbatches, sizes->stages);
}

/* min(m, i + 1) */
static etch_expr between_halves(etch_sym *sym, const etch_pipe_sizes *sizes, etch_expr stage)
{
    return etch_min(sym, sizes->microbatches, etch_add(sym, stage, etch_int(sym, 1)));
}

/* ((p - 1)(F + I) - (min(m, p) - 1) W) / (m (F + I + W)), which is (p - 1)(F + I - W) for p microbatches and
 * more, as published; here all three are equal. */
static etch_expr bubble(etch_sym *sym, const etch_pipe_sizes *sizes)
{
    const etch_expr one = etch_int(sym, 1), zero = etch_int(sym, 0);
    const etch_expr missing = etch_max(sym, zero, etch_sub(sym, sizes->stages, sizes->microbatches));
    const etch_expr waits = etch_add(sym, etch_sub(sym, sizes->stages, one), missing);
    return etch_div(sym, waits, etch_mul(sym, etch_int(sym, 3), sizes->microbatches));
}

const etch_schedule etch_schedule_zb_h1 = {.name = "zb_h1",
                                           .has_halves = true,
                                           .actions = actions,
                                           .in_flight = in_flight,
                                           .until_weights = until_weights,
                                           .between_halves = between_halves,
                                           .bubble = bubble};
