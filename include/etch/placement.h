/* libetch: what a plan makes of a model: where every tensor is, and what is communicated, and why. */
#ifndef ETCH_PLACEMENT_H
#define ETCH_PLACEMENT_H

#include <stddef.h>

#include "etch/etch.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Numbers and formulas are exact, as in `etch_graph_report`: over params and mesh axes, with the values in
 * force; `..._by_dims` over the names of dims and mesh axes. Of a served model that runs in several steps,
 * `bytes` are those of the first one, totals those of all. Axes that are bound to 1 divide nothing and have
 * no collectives: values and steps do not mention them. */

/* A dim that ranks hold as if it were longer: formulas over dims mean this size. */
typedef struct etch_view_pad {
    size_t dim;
    const char *size;
    /* of the plan's line */
    etch_location location;
} etch_view_pad;

typedef struct etch_view_axis {
    const char *name, *size;
    etch_location location;
} etch_view_axis;

/* A dim that mesh axes divide. */
typedef struct etch_view_shard {
    /* of the graph */
    size_t dim;
    /* outermost first */
    const size_t *axes;
    size_t axis_count;
    /* of the plan, that puts the dim there; nowhere when there is none */
    etch_location line;
} etch_view_shard;

/* A tensor as some step of a plan holds it: what an op has made, and what collectives have made of that, are
 * values of one tensor. */
typedef struct etch_view_value {
    /* of the graph */
    size_t tensor;
    /* "[B@dp,S@(cp,tp),H]", and " partial over tp" or " partial maximum over tp" after it */
    const char *place;
    const etch_view_shard *shards;
    size_t shard_count;
    /* the axes over which it is a partial sum */
    const size_t *partial;
    size_t partial_count;
    /* the axes over which each rank has the maximum of its part */
    const size_t *maximum;
    size_t maximum_count;
    /* of weights: the axes whose ranks hold flat parts of what `shards` leave a rank */
    const size_t *parts;
    size_t part_count;
    /* on one rank, of one microbatch and iteration */
    const char *bytes, *bytes_by_dims;
    /* that makes it; NONE: weights, inputs, what a loop carries */
    size_t step;
    etch_placed_by source;
    /* of a pin, or of the scope; nowhere otherwise */
    etch_location line;
} etch_view_value;

/* An op, a collective, or a rank's own slice of a value, as every rank runs it. */
typedef struct etch_view_step {
    /* "einsum", "all_gather", "slice_shard" */
    const char *name;
    /* forward, recompute or backward */
    etch_phase phase;
    /* values */
    const size_t *ins, *outs;
    size_t in_count, out_count;
    /* of the graph, as those of ops */
    size_t module, loop;
    /* NONE: ops and slices */
    size_t collective;
    /* the gradient, a tensor, that the step adds its result into; NONE for most */
    size_t adds_to;
    /* hands a value on unchanged */
    bool passes;
    etch_location location;
} etch_view_step;

/* A loop-carried value, as in `etch_view_carry`, but of values. */
typedef struct etch_view_carried {
    size_t loop;
    /* `init` NONE: zeros */
    size_t init, in, out, result;
} etch_view_carried;

/* What a rank of one stage has of a collective in a step. */
typedef struct etch_view_share {
    /* how often; "0": not at all */
    const char *times;
    /* payload, of all times */
    const char *bytes;
    /* what a ring sends for it */
    const char *wire;
    /* of numbers, with a unit: "1.05 GB"; else NULL */
    const char *bytes_human, *wire_human;
} etch_view_share;

typedef struct etch_view_collective {
    /* a send is to the next stage, or to the one before */
    etch_collective collective;
    /* all but the optimizer's */
    etch_phase phase;
    /* as `--by axis` says it: "tp", "(dp,tp)" */
    const char *group;
    /* in the order of the mesh */
    const size_t *axes;
    size_t axis_count;
    /* of the group */
    const char *ranks;
    /* NONE: of the end of a step, or between stages */
    size_t step;
    /* what is moved; of the end of a step the weights */
    const size_t *tensors;
    size_t tensor_count;
    /* placements; NULL without a step */
    const char *before, *after;
    size_t module, loop;
    /* payload of one, as comm_size counts it; of buckets of a given size: of a full one */
    const char *bytes;
    /* of what is sent; ETCH_DTYPE_COUNT without a step */
    etch_dtype dtype;
    /* NULL at the end of a step */
    const char *bytes_by_dims;
    /* by stage */
    const etch_view_share *shares;
    etch_rule rule;
    const etch_phrase_view *why;
    size_t why_count;
} etch_view_collective;

/* What all collectives of one kind over one group add up to. */
typedef struct etch_view_comm {
    etch_collective collective;
    const char *group;
    /* by stage */
    const etch_view_share *shares;
} etch_view_comm;

typedef struct etch_placement_report {
    /* the same part of the graph: names, dims, modules, loops */
    const etch_graph_report *graph;
    const char *plan;
    etch_location location;
    /* outermost first */
    const etch_view_axis *axes;
    const etch_view_pad *pads;
    /* labels: "whole", or "first", "middle", "last", or "0", "1", ... */
    const char *const *stages;
    /* those of weights and inputs first, then in the order of steps */
    const etch_view_value *values;
    /* in the order of the program: forward, then backward */
    const etch_view_step *steps;
    /* by loops of the graph */
    const etch_view_carried *carried;
    /* by phase, in the order of the program */
    const etch_view_collective *collectives;
    /* by kind and group, in that order; without a part they are comm(step) and wire(step) */
    const etch_view_comm *totals;
    /* of all, by stage */
    const etch_view_share *sums;
    size_t axis_count, pad_count, stage_count, value_count, step_count, carried_count, collective_count,
        total_count;
    /* where the plan recomputes as many layers as it takes to fit: these, the first ones, and of how many;
     * else ETCH_VIEW_NONE */
    size_t fitted_layers, fitted_of;
} etch_placement_report;

/* Places the plan that the options of the session name (or the spec's only one). `options` as for
 * `etch_session_graph`: of a part only its steps and collectives. ETCH_EINPUT: errors, of the model or of the
 * plan, or there is no such part. */
ETCH_API etch_status etch_session_placement(etch_session *session, const etch_view_options *options,
                                            const etch_placement_report **report);

#ifdef __cplusplus
}
#endif

#endif
