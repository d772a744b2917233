/* The header of graph: the op table, forward graphs with named dimensions, and what is derived from them.
 *
 *     builder -> forward graph -> etch_train_derive -> training graph
 *             -> etch_place -> placed graph, its kernels and costs
 *
 * Sizes are those of the whole job, except the dim that `accumulate` names: inside a training graph it is the
 * size of one microbatch (see `etch_training_size`). Graphs live in the arena that they were made with and
 * are not changed once the next stage has begun. Errors go to the diagnostics of the graph. */
#ifndef ETCH_GRAPH_H
#define ETCH_GRAPH_H

#include "graph/cost/cost.h"
#include "graph/cost/curve.h"
#include "graph/explain/explain.h"
#include "graph/ir/builder.h"
#include "graph/ir/cursor.h"
#include "graph/ir/ir.h"
#include "graph/place/place.h"
#include "graph/plan/plan.h"
#include "graph/stage/stage.h"
#include "graph/step/program.h"
#include "graph/step/step.h"
#include "graph/train/train.h"

/* The passes from a model to the step of its ranks, in their order. */
typedef enum etch_pass {
    /* the forward graph, before it comes here */
    ETCH_PASS_MODEL,
    /* gradients, recomputation: `etch_train_derive` */
    ETCH_PASS_TRAIN,
    ETCH_PASS_PLACE,
    ETCH_PASS_STAGE,
    ETCH_PASS_SHARD,
    ETCH_PASS_FUSE,
    ETCH_PASS_STEP,
    ETCH_PASS_COUNT
} etch_pass;

const char *etch_pass_name(etch_pass pass); /* "place"; NULL for ETCH_PASS_COUNT and above */

/* Applies a plan by the rules R1-R9 (docs/placement.md): collectives appear where placements differ. NULL
 * after an error. */
etch_placed *etch_place(const etch_training *training, const etch_plan *plan, etch_granularity granularity);
/* The same without FLOP and bytes of memory of kernels, which `etch_kernels_count` fills in: communication
 * and what ranks hold do not need them. */
etch_placed *etch_place_uncounted(const etch_training *training, const etch_plan *plan,
                                  etch_granularity granularity);
/* The same up to the pass `last`, ETCH_PASS_PLACE or a later one, for looking at what it has made. */
etch_placed *etch_place_until(const etch_training *training, const etch_plan *plan,
                              etch_granularity granularity, etch_pass last);

#endif
