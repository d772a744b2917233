/* The walk that decides op by op, as the passes after it and explanations see it: its tables, and what it
 * knows of the lines of the plan. */
#ifndef ETCH_GRAPH_PLACE_PLACER_H
#define ETCH_GRAPH_PLACE_PLACER_H

#include "graph/place/steps.h"
#include "graph/plan/plan_regions.h"

/* A moved copy of a value, shared by the consumers of one phase in one region (R8). */
typedef struct etch_placed_copy {
    etch_value *from;
    /* what `from` was before collectives moved it: all that come from one are copies of each other */
    const etch_value *origin;
    etch_value *to;
    const etch_placed_region *region;
    etch_phase phase;
} etch_placed_copy;

/* The layout requested of a result: a state for every axis. */
typedef struct etch_requested_layout {
    /* something is asked of it */
    bool known;
    /* of results of backward NULL */
    etch_state *place;
} etch_requested_layout;

/* The i-th loop-carried value; loop NULL: none. */
typedef struct etch_loop_carried {
    const etch_loop *loop;
    uint32_t i;
} etch_loop_carried;

typedef struct etch_value_use {
    /* consumers in the same region and phase; those elsewhere count twice */
    uint32_t count;
    /* the consumer when there is one */
    const etch_op *only;
    /* the loop that it enters, when that is its only use; the one that it is the result of */
    etch_loop_carried init, result_of;
    /* an op of backward reads it */
    bool read_back;
    /* it is a result of the model, or something is made of it, under whatever name */
    bool is_read;
} etch_value_use;

/* The token dim that each axis divides, for ops that route by the same indices. */
typedef struct etch_token_route {
    const etch_tensor *indices;
    etch_state tokens[ETCH_MAX_AXES];
} etch_token_route;

/* Where the op in work has its operands, and what is needed of them and of the results: the room of one op
 * after the other, for the most operands and results so far. */
typedef struct etch_placing_room {
    uint32_t ins, outs;
    etch_value **operands;
    etch_state (*need)[ETCH_MAX_AXES], (*result)[ETCH_MAX_AXES];
} etch_placing_room;

typedef struct etch_placer {
    etch_placed *placed;
    const etch_training *training;
    const etch_plan *plan;
    etch_graph *graph;
    etch_arena *arena;
    etch_sym *sym;
    uint32_t axis_count;
    /* by tensor id */
    /* as its producer left it */
    etch_value **made;
    /* as a pin or a loop holds it: what consumers see */
    etch_value **pinned;
    /* of a partial result: the first copy without partial sums, which backward reads */
    etch_value **resolved;
    etch_value_use *uses;
    etch_requested_layout *requests;
    /* of backward (passing.c), bits of axes; NULL before it */
    uint32_t *passes;
    /* the unit of the stages that makes it (units.c); 0: not known, or there are none */
    uint32_t *unit;
    /* by id of the ops that training has, bits of axes: a partial operand goes through (joint.c) */
    uint32_t *joint, joint_count;
    /* more of them are known now than when the walk began; nothing is noted in the last one */
    bool again, is_last_walk;
    /* by op id */
    etch_step **steps;
    /* by loop id: the forward loop's placed form */
    etch_placed_loop **loops;
    ETCH_VEC(etch_placed_copy) copies;
    ETCH_VEC(etch_token_route) routes;
    etch_placing_room room;
    etch_plan_regions plan_regions;
    /* the place in work: what is added goes there, and is of this phase and scope */
    etch_placed_region *region;
    etch_phase phase;
    etch_scope *scope;
    /* an op has a ring */
    bool has_ring;
    bool failed;
} etch_placer;

/* Reports what cannot be placed; the end of the walk. */
#define etch_place_error(p, ...) ((p)->failed = true, etch_error((p)->graph->diags, __VA_ARGS__))

/* Places what a training graph computes by the rules R1-R8. NULL after an error. */
etch_placer *etch_place_ops(const etch_training *training, const etch_plan *plan);

/* The first line of the plan, wherever it stands, that puts the dim, or else one that it was renamed from or
 * to, on all of `axes` (bits); NULL when there is none. */
const etch_shard *etch_map_entry(const etch_placed *placed, const etch_dim *dim, uint32_t axes);
/* Order of the axes on one dim: is `inner` inside `outer` as the plan writes them? */
bool etch_map_is_inside(const etch_placed *placed, const etch_dim *dim, uint32_t inner, uint32_t outer);
/* Adds terms of a sum that are held alike, in the place in work; `taken`: bits of those that are taken
 * away. */
etch_value *etch_place_sum(etch_placer *p, const etch_op *op, etch_value **summands, uint32_t count,
                           uint32_t taken);
/* How often it adds two of them, as etch_additions. */
etch_expr etch_place_additions(const etch_placer *p, etch_value *const *terms, uint32_t count);
/* Moves once more, in the place in work, what was moved to give the value, and gives it the same names. */
etch_value *etch_place_again(etch_placer *p, const etch_value *value);
bool etch_place_equal(const etch_placer *p, const etch_state *a, const etch_state *b);

#endif
