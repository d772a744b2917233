/* ZB-H2 (Qi et al. 2023, arXiv 2401.10241, section 2.3): ZB-H1 with almost twice the microbatches in flight.
 * Stage i begins with 2(p - i) - 1 forward actions, which fill the bubble before the first gradients come
 * back, and makes gradients of weights 2i microbatches after those of inputs. Stages end in the order in
 * which they have begun. */
#include "graph/plan/schedules/generator.h"

static void actions(etch_action_list *list, const etch_pipe *pipe, uint32_t stage)
{
    etch_actions_in_turns(list, pipe, 2 * (uint64_t)(pipe->stages - stage - 1), 2 * (uint64_t)stage);
}

/* 2n - 1 */
static etch_expr less_than_twice(etch_sym *sym, etch_expr n)
{
    return etch_sub(sym, etch_mul(sym, etch_int(sym, 2), n), etch_int(sym, 1));
}

/* min(m, 2(p - i) - 1) */
static etch_expr in_flight(etch_sym *sym, const etch_pipe_sizes *sizes, etch_expr stage)
{
    return etch_min(sym, sizes->microbatches, less_than_twice(sym, etch_sub(sym, sizes->stages, stage)));
}

/* min(m, 2p - 1) */
static etch_expr until_weights(etch_sym *sym, const etch_pipe_sizes *sizes, etch_expr stage)
{
    (void)stage;
    return etch_min(sym, sizes->microbatches, less_than_twice(sym, sizes->stages));
}

/* min(m, 2i + 1) */
static etch_expr between_halves(etch_sym *sym, const etch_pipe_sizes *sizes, etch_expr stage)
{
    return etch_min(sym, sizes->microbatches, less_than_twice(sym, etch_add(sym, stage, etch_int(sym, 1))));
}

/* ((p - 1)(F + I) - (min(m, 2p - 1) - 1) W) / (m (F + I + W)), which is (p - 1)(F + I - 2W) from 2p - 1
 * microbatches on, as published; here all three are equal. */
static etch_expr bubble(etch_sym *sym, const etch_pipe_sizes *sizes)
{
    const etch_expr zero = etch_int(sym, 0), most = less_than_twice(sym, sizes->stages);
    const etch_expr missing = etch_max(sym, zero, etch_sub(sym, most, sizes->microbatches));
    return etch_div(sym, missing, etch_mul(sym, etch_int(sym, 3), sizes->microbatches));
}

const etch_schedule etch_schedule_zb_h2 = {.name = "zb_h2",
                                           .has_halves = true,
                                           .actions = actions,
                                           .in_flight = in_flight,
                                           .until_weights = until_weights,
                                           .between_halves = between_halves,
                                           .bubble = bubble};
