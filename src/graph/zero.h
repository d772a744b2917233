/* Part of the door of graph (graph.h includes it): ZeRO, what ranks hold in parts that they would hold alike.
 *
 * Level 1 divides the states of the optimizer, level 2 gradients as well, level 3 (FSDP) the weights, too. Of
 * each weight it divides what a rank holds under the plan's shards: laid out flat, padded to equal parts, among
 * the ranks of those axes of the line that replicate the weight. */
#ifndef ETCH_GRAPH_ZERO_H
#define ETCH_GRAPH_ZERO_H

#include "symbolic/symbolic.h"

struct etch_placed;
struct etch_step;
struct etch_tensor;

/* How long the copies last that level 3 gathers. */
typedef enum etch_keep {
    ETCH_KEEP_UNIT,       /* until the unit has computed: gathered in forward, and again in backward */
    ETCH_KEEP_MICROBATCH, /* from forward to backward of the same microbatch */
    ETCH_KEEP_STEP        /* for all microbatches */
} etch_keep;

/* `zero 3 @ (nodes,gpus), keep = false, prefetch = 1, reduce = microbatch`. */
typedef struct etch_zero {
    uint32_t level; /* 0: no such line */
    uint32_t axes;  /* bits of mesh axes */
    bool whole;     /* gradients are added up whole, and reduced once a step: always so with level 1 */
    etch_keep keep; /* the rest: of level 3 */
    uint32_t
        again; /* of `axes`: backward gathers over these only, from parts that forward leaves; 0: not said */
    uint64_t ahead; /* how many units ahead of what computes weights are gathered */
    const char *const
        *units; /* loops whose iterations are gathered one by one; without any, all outermost ones */
    const etch_span *unit_spans;
    uint32_t unit_count;
    etch_span span;
} etch_zero;

/* What a rank holds of a weight from step to step. */
typedef enum etch_holding {
    ETCH_HOLDS_STATES,   /* the optimizer's, master weights among them */
    ETCH_HOLDS_GRADIENT, /* the sum over the microbatches so far */
    ETCH_HOLDS_WEIGHT
} etch_holding;

/* The axes among whose ranks it is divided, beside those of the plan's shards. */
uint32_t etch_zero_divides(const struct etch_placed *placed, const struct etch_tensor *weight,
                           etch_holding what);
/* Elements of one copy of the weight (a loop has one for each iteration) that a rank holds, padding included. */
etch_expr etch_held_elements(const struct etch_placed *placed, const struct etch_tensor *weight,
                             etch_holding what);

/* One all-gather of the weights that a unit of level 3 reads: a unit is an iteration of an outermost loop, or what
 * lies between loops and in one stage. It stands where the unit begins; lowering may issue it up to
 * `plan->zero.ahead` units earlier. Copies live until the unit has computed, unless `lasts` says more. */
typedef struct etch_gathering {
    struct etch_step *step; /* its operands are the parts, its results the copies */
    etch_keep lasts;
} etch_gathering;
typedef ETCH_VEC(etch_gathering) etch_gatherings;

#endif
