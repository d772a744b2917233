/* The passes that make a step of a placed graph, and what costs ask of it. */
#ifndef ETCH_GRAPH_STEP_KERNEL_H
#define ETCH_GRAPH_STEP_KERNEL_H

#include "graph/place/steps.h"
#include "graph/stage/layers.h"
#include "graph/step/program.h"
#include "graph/step/step.h"

/* Fills `zero_axes`. Needs `weight_of` and `stages`; called once, by `etch_place`. False after an error. */
bool etch_zero_find(etch_placed *placed);
/* Where ranks hold weights in parts: puts gathers before what reads them. Needs `zero_axes`; called once, by
 * `etch_place`, before kernels are made. */
void etch_shard_weights(etch_placed *placed);
/* Groups the steps of every region into kernels, in issue order. Needs the finished regions; called once, by
 * `etch_place`. */
void etch_kernels(etch_placed *placed, etch_granularity granularity);
/* Fills `weight_groups`. Needs `zero_axes` and `stages`. */
void etch_placed_weight_groups(etch_placed *placed);
/* Makes the step program; what kernels compute, read and write is not counted yet. Needs kernels and weight
 * groups; called once, by `etch_place`. */
void etch_step_program_make(etch_placed *placed);
/* The axes that number the stages; none without stages. */
uint32_t etch_stage_axes(const etch_placed *placed);
/* Bytes that a rank puts into a move; of one operand of it. */
etch_expr etch_payload(const etch_placed *placed, const etch_step *collective);
etch_expr etch_payload_of(const etch_placed *placed, const etch_step *collective, uint32_t operand);
/* The same of all moves of a kernel. */
etch_expr etch_kernel_payload(const etch_placed *placed, const etch_kernel *kernel);
/* Size of a dim of the step's op in the work of one rank. */
etch_expr etch_step_dim_size(const etch_placed *placed, const etch_step *step, const etch_dim *dim);
/* FLOP of one execution on one rank. */
etch_expr etch_step_flop(const etch_placed *placed, const etch_step *step);
etch_expr etch_step_flop_by(const etch_placed *placed, const etch_step *step, const etch_flop_rule *rule);

/* ---- questions about weights --------------------------------------------------------------------------- */

/* The gradient of each weight by tensor id, NULL for other tensors and where there is none. */
etch_tensor **etch_gradients_by_weight(const etch_training *training, etch_arena *arena);
/* The optimizer of a weight, where there is one; and the parts of its update, of which the last is this row
 * itself. NULL: it has no such part. */
const etch_row *etch_optimizer_of(const etch_training *training, const etch_tensor *weight);
const etch_row *etch_update_part(const etch_training *training, const etch_tensor *weight, uint32_t part);
enum { ETCH_LAST_PART = ETCH_MOST_PARTS_BEFORE };
/* What such a part takes for one copy of a weight: of the whole job, which says FLOP alone; on a rank, which
 * updates so many elements of it. */
etch_update_work etch_update_of_job(const etch_training *training, const etch_tensor *weight,
                                    const etch_row *part);
etch_update_work etch_update_of_rank(const etch_placed *placed, const etch_tensor *weight,
                                     const etch_row *part, etch_expr elements);
/* What ranks that have parts of the same matrix, so many elements each, share after a part of its update;
 * over no axes: nothing. */
typedef struct etch_update_shared {
    etch_collective collective;
    uint32_t axes;
    etch_expr payload;
} etch_update_shared;
etch_update_shared etch_update_shared_of(const etch_placed *placed, const etch_tensor *weight,
                                         const etch_row *part, etch_expr elements);
/* Bytes of one element of a copy of the weights. */
uint32_t etch_weight_copy_bytes(const etch_training *training);
/* Bytes that the optimizer keeps: of one element, copies that it works on; of so many that a rank has of a
 * weight, all else. */
uint32_t etch_master_bytes(const etch_training *training);
/* Of them, those that the next step reads: all but copies of gradients. */
uint32_t etch_lasting_master_bytes(const etch_training *training);
etch_expr etch_moment_bytes(const etch_training *training, const etch_row *optimizer, etch_expr elements);
/* FLOP of the sum of squares for one element of a gradient; its result is ETCH_CLIP_RESULT_BYTES long. */
uint32_t etch_clip_flop(const etch_training *training);

enum { ETCH_CLIP_RESULT_BYTES = 4 };

#endif
