/* Placement, shared by its files: where plans put tensors (map.c), what results are wanted for (request.c),
 * moves (reshard.c), and the walk that decides op by op (place.c). The rules' numbers are those of
 * docs/placement.md. */
#ifndef ETCH_GRAPH_PLACE_PLACE_INT_H
#define ETCH_GRAPH_PLACE_PLACE_INT_H

#include "graph/place/placer.h"

/* ---- padding.c ----------------------------------------------------------------------------------------- */

/* Reports dims that the plan pads and that the model cannot do without their order. */
void etch_padding_check(etch_placer *p);
/* Remarks on lines of the spec's own plan that speak of dims which no tensor of the model has, and on pins
 * that hold whole what its map divides, and do not say so. */
void etch_plan_remark_idle(const etch_placer *p);
/* Remarks on products that are computed whole, split, and used in part. */
void etch_plan_remark_fused(const etch_placer *p);

/* ---- map.c --------------------------------------------------------------------------------------------- */

/* The state of every axis for a tensor with these dims under the map of `plan_region` (R1). Reports an axis
 * that would divide two dims. */
void etch_map_place(etch_placer *p, const etch_plan_region *plan_region, const etch_tensor *tensor,
                    etch_state *place);
/* The line of the map that a dim of a tensor is divided by; NULL: none. */
const etch_shard *etch_map_dim_of(const etch_placer *p, const etch_tensor *tensor, const etch_dim *dim);
/* Puts the dim where the map has it, on the axes that are left. False when the map does not name it. */
bool etch_map_fill(const etch_placer *p, const etch_tensor *tensor, const etch_dim *dim, etch_state *place);
/* The line that pins a tensor, or NULL. */
const etch_pin *etch_map_find_pin(const etch_placed *placed, const etch_tensor *tensor);
/* The pin of a tensor of the forward pass; false when there is none. Reports dims that it lacks. */
bool etch_map_pin(etch_placer *p, const etch_tensor *tensor, etch_state *place);
/* Where a tensor that is held as `now` is to be when it crosses. */
void etch_map_boundary(etch_placer *p, const etch_boundary *boundary, const etch_tensor *tensor,
                       const etch_state *now, etch_state *place);
/* Why `tensor` is moved there; `op` may be NULL. */
etch_provenance etch_boundary_provenance(const etch_boundary *boundary, const etch_op *op,
                                         const etch_tensor *tensor);
/* Reports lines that give a dim the same axes in different orders. */
void etch_map_check_orders(etch_placer *p);
/* Records what the placement of a tensor requires of sizes. */
void etch_map_require(etch_placer *p, const etch_tensor *tensor, const etch_state *place);
/* Records that each rank of `axes`, which divide `dim`, holds two chunks of it. */
void etch_map_require_pairs(etch_placer *p, const etch_dim *dim, uint32_t axes);
/* The same of all dims that such a one is split into, or merged to: a chunk has whole elements of them. */
void etch_map_pair_regrouped(etch_placer *p);

/* ---- uneven.c ------------------------------------------------------------------------------------------ */

/* Which part of `dim` a rank has that `axes` divide, from 0: a formula of its coordinates. Notes that they
 * matter. */
etch_expr etch_work_share_index(etch_placer *p, const etch_dim *dim, uint32_t axes);

/* ---- request.c ----------------------------------------------------------------------------------------- */

void etch_request_uses(etch_placer *p);
/* Finds the requested layouts of the results of a region's ops (R3), last op first. */
void etch_request_region(etch_placer *p, const etch_region *region);
/* The placement in which a pin holds a value that a loop carries; false when none does. */
bool etch_request_pinned(etch_placer *p, etch_loop_carried value, etch_state *place);
/* The placement in which a loop hands a value on (R7). */
void etch_request_carried(etch_placer *p, etch_loop_carried value, etch_state *place);
/* The loop value that a forward tensor, or a recomputed copy of one, is at the end of an iteration; none for
 * most. */
etch_loop_carried etch_request_carried_at_end(const etch_tensor *tensor);

/* ---- factors.c ----------------------------------------------------------------------------------------- */

typedef struct etch_placing {
    etch_op *op;
    etch_value **ins;
    /* by operand */
    etch_state (*need)[ETCH_MAX_AXES];
    /* by result */
    etch_state (*result)[ETCH_MAX_AXES];
    etch_state factor[ETCH_MAX_AXES];
    /* axes over which a statistic is reduced */
    uint32_t stat_axes;
    /* axes that would take other slots apart than elsewhere: they divide nothing */
    uint32_t excluded;
    /* axes that divide nothing, as partial sums wait for others (joint.c) */
    uint32_t waits;
    /* axes along which blocks of operands go round (ring.c) */
    uint32_t ring;
} etch_placing;

void etch_factors_choose(etch_placer *p, etch_placing *pl);
/* Does a partial sum as this operand alone go through the op? */
bool etch_passes_alone(const etch_op *op, uint32_t operand);
/* The axes, as bits, on which a partial sum of the tensor goes on: all that is made of it is reduced anyway.
 * None for what is no cotangent. */
uint32_t etch_passing_on(const etch_placer *p, const etch_tensor *tensor);
/* Has the operand the dims of the result, under either of their names? */
bool etch_has_result_dims(const etch_op *op, const etch_tensor *operand);

/* ---- ring.c -------------------------------------------------------------------------------------------- */

/* The dim along which blocks of the op's operands go round the axis, as the plan wants and the op divides its
 * work along `factor`; NULL: they do not. */
etch_state etch_ring_dim(const etch_placer *p, const etch_placing *pl, uint32_t axis, etch_state factor);
/* Sends the operands round that the op is to have block by block. */
void etch_ring_rotate(etch_placer *p, etch_placing *pl);
/* Sends home the gradients that the step has made of what went round, once it has its results. */
void etch_ring_return(etch_placer *p, const etch_step *step);
/* Notes whether the rings of the plan reach nothing; remarks on it where the plan is of the model's own
 * file. */
void etch_ring_find_idle(const etch_placer *p);

/* ---- passing.c ----------------------------------------------------------------------------------------- */

/* Finds which partial cotangents go on through whatever reads them, when forward is placed. */
void etch_passing_find(etch_placer *p);
/* Is the tensor another look at one, as it is or moved by a pin or the border of a scope, or a part of a sum
 * that has its terms? Then its cotangent goes on as it is, to be added there before anything moves, and to be
 * moved once. */
bool etch_is_seen_through(const etch_placer *p, const etch_tensor *tensor);

/* ---- joint.c ------------------------------------------------------------------------------------------- */

/* Notes which ops before a sum would better have let a partial operand through, or left their terms to it;
 * p->again where some are new. */
void etch_joint_find(etch_placer *p, const etch_op *sum, etch_value *const *terms);
/* Is nothing made by the op, as a sum has its terms that comes later? */
bool etch_joint_is_open(const etch_placer *p, const etch_op *op);
/* The same of the op that the walk has come to, of which then no step is to be made. */
bool etch_joint_pass_over(etch_placer *p, const etch_op *op);
/* The sum with the terms of those that are open; `sum` itself: none is. */
etch_op *etch_joint_opened(etch_placer *p, etch_op *sum);
/* When it is placed: what is open is where the sum is. */
void etch_joint_close(etch_placer *p, const etch_op *sum);
/* The axes, as bits, over which the op does not divide its work, as what it makes is added to other partial
 * sums. Of backward: as what it makes is to be whole, and so is what it is made of. */
uint32_t etch_joint_waits(const etch_placer *p, const etch_op *op);

/* ---- units.c ------------------------------------------------------------------------------------------- */

/* Finds in which unit of the stages each tensor is made. */
void etch_units_find(etch_placer *p);
/* Goes the tensor to another unit where `reader` is made of it? */
bool etch_units_cross(const etch_placer *p, const etch_tensor *made, const etch_tensor *reader);

/* ---- reshard.c ----------------------------------------------------------------------------------------- */

etch_value *etch_value_new(etch_placer *p, etch_tensor *tensor, const etch_state *place);
/* A step of the place in work, with room for so many operands and results. */
etch_step *etch_step_new(etch_placer *p, etch_op *op, const etch_row *row, uint32_t ins, uint32_t outs);
/* Makes the `i`-th result of a step: a new value of the tensor, so placed. */
etch_value *etch_step_result(etch_placer *p, etch_step *step, uint32_t i, etch_tensor *tensor,
                             const etch_state *place);
/* A step with one result, a value of `tensor`, which divides its work as it holds that. */
etch_step *etch_step_alike(etch_placer *p, etch_op *op, etch_value *const *ins, uint32_t in_count,
                           etch_tensor *tensor, const etch_state *place);
/* Brings `value` to the states `need` on the axes in `mask`; other axes keep theirs. At most one collective
 * of a kind (R5). */
etch_value *etch_reshard_value(etch_placer *p, etch_value *value, const etch_state *need, uint32_t mask,
                               etch_provenance provenance);
/* Axes, as bits, that would stay on a dim of the value while one outside of them leaves it. */
uint32_t etch_reshard_non_innermost(const etch_placer *p, const etch_value *value, const etch_state *need);
/* A collective that leaves the placement as it is: the reduction of a statistic. */
etch_value *etch_reshard_reduce(etch_placer *p, etch_value *value, uint32_t axes, etch_provenance provenance);

#endif
