/* Placement, shared by its files: where plans put tensors (plan_map.c), what results are wanted for
 * (demand.c), moves (move.c), and the walk that decides op by op (place.c). The rules' numbers are those of
 * docs/placement.md. */
#ifndef ETCH_GRAPH_PLACE_INT_H
#define ETCH_GRAPH_PLACE_INT_H

#include "graph/kernel_int.h"
#include "graph/row_int.h"

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

/* A part of the model that scopes of the plan speak of: a call of a module, a loop, or a statement (or a weight). */
typedef struct etch_part {
    const etch_scope *call; /* one of the three */
    const etch_loop *loop;
    const etch_tensor *result;                 /* of the statement, or the weight */
    struct etch_part *outer;                   /* the next one around it; NULL: none */
    ETCH_VEC(const etch_override *) overrides; /* its scopes, as the plan has them: later ones overrule */
    uint32_t touched;                          /* bits of the axes whose use they change */
} etch_part;

/* The innermost part of each, or NULL. */
typedef struct etch_parts {
    etch_part **of_op, **of_tensor; /* by id, of the forward pass */
    etch_part **of_call, **of_loop; /* that are parts themselves */
    etch_part **around;             /* by scope id */
} etch_parts;

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

/* ---- plan_parts.c ---- */

/* Finds the parts that the scopes of the plan speak of. */
void etch_plan_parts_find(placer *p);
/* The innermost part that a tensor, or the one that it derives from, is in; NULL: none. */
const etch_part *etch_part_of(const placer *p, const etch_tensor *tensor);
/* The innermost part that the ops of a call are in; NULL: none. */
const etch_part *etch_part_around(const placer *p, const etch_scope *scope);

/* A value goes into parts or out of one. */
typedef struct etch_crossing {
    uint32_t axes;         /* bits of the axes that the parts touch; 0: nothing is asked for */
    const etch_part *to;   /* where it comes to be; NULL: in no part */
    const etch_part *part; /* which one it enters or leaves: the outermost */
    bool leaves;
} etch_crossing;
/* What an op of the forward pass, or a copy of one, asks of an operand: as arguments and what else comes from outside enter
 * its parts, or as a result leaves its call. */
etch_crossing etch_part_crossed(const placer *p, const etch_op *op, const etch_tensor *operand);
/* What a tensor goes to as the result of a statement, and what a loop hands on when it ends. */
etch_crossing etch_part_left(const placer *p, const etch_tensor *tensor);
etch_crossing etch_part_of_loop_left(const placer *p, const etch_loop *loop);
/* Why `tensor` is moved there; `op` may be NULL. */
etch_cause etch_part_cause(const etch_crossing *crossing, const etch_op *op, const etch_tensor *tensor);

/* ---- padding.c ---- */

/* Reports dims that the plan pads and that the model cannot do without their order. */
void etch_padding_check(placer *p);
/* Remarks on lines of the spec's own plan that speak of dims which no tensor of the model has. */
void etch_plan_remark_idle(const placer *p);

/* ---- plan_map.c ---- */

/* The axes that the map of a part (NULL: of the model) gives a dim, outermost first; NULL entry when the map does
 * not name it. */
const etch_shard *etch_map_dim(const placer *p, const etch_part *part, const etch_dim *dim);
/* The state of every axis for a tensor with these dims under the map of `part` (R1). Reports an axis that
 * would divide two dims. */
void etch_map_place(placer *p, const etch_part *part, const etch_tensor *tensor, etch_state *place);
/* The pin of a tensor of the forward pass; false when there is none. Reports dims that it lacks. */
bool etch_map_pin(placer *p, const etch_tensor *tensor, etch_state *place);
/* Where a tensor that is held as `now` is to be when it crosses. */
void etch_map_cross(placer *p, const etch_crossing *crossing, const etch_tensor *tensor,
                    const etch_state *now, etch_state *place);
/* The line of that pin. */
etch_span etch_map_pin_line(const placer *p, const etch_tensor *tensor);
/* The first line of the plan, wherever it stands, that puts the dim, or else one that it was renamed from or to, on
 * all of `axes` (bits); NULL when there is none. */
const etch_shard *etch_map_entry(const placer *p, const etch_dim *dim, uint32_t axes);
/* Order of the axes on one dim: is `inner` inside `outer` as the plan writes them? */
bool etch_map_is_inside(const placer *p, const etch_dim *dim, uint32_t inner, uint32_t outer);
/* Reports lines that give a dim the same axes in different orders. */
void etch_map_check_orders(placer *p);
/* Records what the placement of a tensor demands of sizes. */
void etch_map_require(placer *p, const etch_tensor *tensor, const etch_state *place);
/* Records that each rank of `axes`, which divide `dim`, holds two chunks of it. */
void etch_map_require_pairs(placer *p, const etch_dim *dim, uint32_t axes);

/* ---- uneven.c ---- */

/* Which part of `dim` a rank has that `axes` divide, from 0: a formula of its coordinates. Notes that they matter. */
etch_expr etch_part_index(placer *p, const etch_dim *dim, uint32_t axes);

/* ---- demand.c ---- */

void etch_demand_uses(placer *p, const etch_region *region);
/* What the results of a region's ops are wanted as (R3), last op first. */
void etch_demand_region(placer *p, const etch_region *region);
/* The placement in which a loop hands a value on (R7). */
void etch_demand_carry(placer *p, handing value, etch_state *place);
/* The loop value that a forward tensor, or a recomputed copy of one, is at the end of an iteration; none for
 * most. */
handing etch_demand_handed_on(const etch_tensor *tensor);

/* ---- stage_chain.c ---- */

/* Finds the entries of the chain that the line of `stages` lists. False after an error. */
bool etch_stage_chain(placer *p, etch_stages *stages);

/* ---- stage.c ---- */

/* Sets the homes of steps and loops, and `stages`, when the plan has a stage line. */
void etch_stages_find(placer *p);

/* ---- move.c ---- */

etch_value *etch_value_new(placer *p, etch_tensor *tensor, const etch_state *place);
etch_step *etch_step_new(placer *p, etch_op *op, const etch_row *row, etch_phase phase, etch_scope *scope,
                         uint32_t ins, uint32_t outs);
/* Brings `value` to the states `need` on the axes in `mask`; other axes keep theirs. At most one collective
 * of a kind (R5). */
etch_value *etch_move_value(placer *p, etch_value *value, const etch_state *need, uint32_t mask,
                            etch_phase phase, etch_scope *scope, etch_cause cause);
/* Axes, as bits, that would stay on a dim of the value while one outside of them leaves it. */
uint32_t etch_move_left_behind(const placer *p, const etch_value *value, const etch_state *need);
/* A collective that leaves the placement as it is: the reduction of a statistic. */
etch_value *etch_move_reduce(placer *p, etch_value *value, uint32_t axes, etch_phase phase, etch_scope *scope,
                             etch_cause cause);
bool etch_place_equal(const placer *p, const etch_state *a, const etch_state *b);

#endif
