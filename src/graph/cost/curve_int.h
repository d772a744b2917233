/* What the files of the curve share: an action in intervals. */
#ifndef ETCH_GRAPH_COST_CURVE_INT_H
#define ETCH_GRAPH_COST_CURVE_INT_H

#include "graph/cost/curve.h"
#include "graph/cost/live_actions.h"

/* One interval of an action as the run has it: a turn of a loop of the top level, or what lies between. */
typedef struct etch_curve_interval {
    /* NULL: between loops */
    const etch_loop *loop;
    uint32_t class;
    /* counts the loops of the action */
    uint32_t run_of_loop;
    /* iterations that the turn stands for: the first, how far apart they are, how many */
    uint64_t first, stride, copies;
    /* from which moment to which; the one with the most, and that */
    uint32_t begin, end, fullest;
    uint64_t bytes[ETCH_CURVE_KINDS];
} etch_curve_interval;

/* One of its iterations. */
typedef struct etch_curve_step {
    const etch_curve_interval *of;
    uint64_t iteration;
} etch_curve_step;

typedef struct etch_curve_action {
    etch_curve_step *steps;
    uint32_t step_count;
} etch_curve_action;

typedef struct etch_curve_making {
    const etch_curve_options *options;
    etch_arena *arena;
    const etch_live_actions *live;
    /* by pass and chunk; of a second half that is not apart those of backward */
    etch_curve_action *actions[ETCH_PASSES];
    etch_curve_result result;
} etch_curve_making;

/* They note what does not fit. */
uint64_t etch_curve_sum(etch_curve_making *c, uint64_t a, uint64_t b);
uint64_t etch_curve_product(etch_curve_making *c, uint64_t a, uint64_t b);
/* The value of an amount. */
uint64_t etch_curve_number(etch_curve_making *c, etch_expr amount);
etch_curve_kind etch_curve_kind_of(const etch_live_actions *live, const etch_live_interval *there);
/* Fills `actions`. */
void etch_curve_find_steps(etch_curve_making *c);
/* The step in which a moment of the action is; UINT32_MAX: none. */
uint32_t etch_curve_step_at(const etch_curve_action *action, uint32_t moment);

#endif
