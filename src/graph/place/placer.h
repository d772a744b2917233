/* The walk that decides op by op, as the passes after it and explanations see it: its tables, and what it knows of
 * the lines of the plan. */
#ifndef ETCH_GRAPH_PLACE_PLACER_H
#define ETCH_GRAPH_PLACE_PLACER_H

#include "graph/place/steps.h"
#include "graph/plan/parts.h"

/* A moved copy of a value, shared by the consumers of one phase in one region (R8). */
typedef struct copy {
    etch_value *from, *to;
    const etch_placed_region *region;
    etch_phase phase;
} copy;

/* What a result is wanted as: a state for every axis. */
typedef struct demand {
    bool known; /* something is asked of it */
    etch_state place[ETCH_MAX_AXES];
} demand;

/* The i-th value that a loop hands on; loop NULL: none. */
typedef struct handing {
    const etch_loop *loop;
    uint32_t i;
} handing;

typedef struct use {
    uint32_t count;      /* consumers in the same region and phase; those elsewhere count twice */
    const etch_op *only; /* the consumer when there is one */
    handing init;        /* the loop that it enters, when that is its only use */
    bool read_back;      /* an op of backward reads it */
} use;

/* The token dim that each axis divides, for ops that route by the same indices. */
typedef struct route {
    const etch_tensor *indices;
    etch_state tokens[ETCH_MAX_AXES];
} route;

typedef struct placer {
    etch_placed *placed;
    const etch_training *training;
    const etch_plan *plan;
    etch_graph *graph;
    etch_arena *arena;
    etch_sym *sym;
    uint32_t axis_count;
    /* by tensor id */
    etch_value **made;   /* as its producer left it */
    etch_value **pinned; /* as a pin or a loop holds it: what consumers see */
    etch_value *
        *resolved; /* of a partial result: the first copy without partial sums, which backward reads */
    use *uses;
    demand *wants;
    /* by op id */
    etch_step **steps;
    /* by loop id: the forward loop's placed form */
    etch_placed_loop **loops;
    ETCH_VEC(copy) copies;
    ETCH_VEC(route) routes;
    etch_parts parts;
    /* the place in work */
    etch_placed_region *region;
    bool failed;
} placer;

/* Places what a training graph computes by the rules R1-R8. NULL after an error. */
placer *etch_place_ops(const etch_training *training, const etch_plan *plan);

/* The first line of the plan, wherever it stands, that puts the dim, or else one that it was renamed from or to, on
 * all of `axes` (bits); NULL when there is none. */
const etch_shard *etch_map_entry(const placer *p, const etch_dim *dim, uint32_t axes);
/* Order of the axes on one dim: is `inner` inside `outer` as the plan writes them? */
bool etch_map_is_inside(const placer *p, const etch_dim *dim, uint32_t inner, uint32_t outer);
/* The line that pins a tensor; nowhere: none does. */
etch_span etch_map_pin_line(const placer *p, const etch_tensor *tensor);
bool etch_place_equal(const placer *p, const etch_state *a, const etch_state *b);

#endif
