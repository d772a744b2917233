/* libetch: what a plan makes of a model: where every tensor is, and what is communicated, and why. */
#ifndef ETCH_PLACEMENT_H
#define ETCH_PLACEMENT_H

#include <stddef.h>

#include "etch/etch.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Numbers and formulas are exact, as in `etch_graph_report`: over params and mesh axes, with the values in force;
 * `..._by_dims` over the names of dims and mesh axes. Of a served model that runs in several steps, `bytes` are those
 * of the first one, totals those of all. Axes that are bound to 1 divide nothing and have no collectives: values and
 * steps do not mention them. */

/* A dim that ranks hold as if it were longer: formulas over dims mean this size. */
typedef struct etch_view_pad {
    size_t dim;
    const char *size;
    etch_location location; /* of the plan's line */
} etch_view_pad;

typedef struct etch_view_axis {
    const char *name, *size;
    etch_location location;
} etch_view_axis;

/* A dim that mesh axes divide. */
typedef struct etch_view_shard {
    size_t dim;         /* of the graph */
    const size_t *axes; /* outermost first */
    size_t axis_count;
    etch_location line; /* of the plan, that puts the dim there; nowhere when there is none */
} etch_view_shard;

/* A tensor as some step of a plan holds it: what an op has made, and what collectives have made of that, are values of
 * one tensor. */
typedef struct etch_view_value {
    size_t tensor;     /* of the graph */
    const char *place; /* "[B@dp,S@(cp,tp),H]", and " partial over tp" after it */
    const etch_view_shard *shards;
    size_t shard_count;
    const size_t *partial; /* the axes over which it is a partial sum */
    size_t partial_count;
    const size_t *parts; /* of weights: the axes whose ranks hold flat parts of what `shards` leave a rank */
    size_t part_count;
    const char *bytes, *bytes_by_dims; /* on one rank, of one microbatch and iteration */
    size_t step;                       /* that makes it; NONE: weights, inputs, what a loop carries */
    /* What says where it is. "map": the plan's lines, of weights and inputs. "zero": the zero line, of weights that
     * ranks hold in flat parts. "pin": a pin. "loop": the plan's lines, of what a loop carries. "scope": a
     * collective or slice at the edge of a call. "moved": as an op needs it. "inferred": the op that makes it. The first
     * five are stated, the others follow. */
    const char *source;
    etch_location line; /* of a pin, or of the scope; nowhere otherwise */
} etch_view_value;

/* An op, a collective, or a rank's own slice of a value, as every rank runs it. */
typedef struct etch_view_step {
    const char *name;         /* "einsum", "all_gather", "slice_shard" */
    const char *phase;        /* "forward", "recompute", "backward" */
    const size_t *ins, *outs; /* values */
    size_t in_count, out_count;
    size_t module, loop; /* of the graph, as those of ops */
    size_t collective;   /* NONE: ops and slices */
    size_t adds_to;      /* the gradient, a tensor, that the step adds its result into; NONE for most */
    bool passes;         /* hands a value on unchanged */
    etch_location location;
} etch_view_step;

/* A loop-carried value, as in `etch_view_carry`, but of values. */
typedef struct etch_view_handed {
    size_t loop;
    size_t init, in, out, result; /* `init` NONE: zeros */
} etch_view_handed;

/* What a rank of one stage has of a collective in a step. */
typedef struct etch_view_share {
    const char *times;                    /* how often; "0": not at all */
    const char *bytes;                    /* payload, of all times */
    const char *wire;                     /* what a ring sends for it */
    const char *bytes_human, *wire_human; /* of numbers, with a unit: "1.05 GB"; else NULL */
} etch_view_share;

typedef struct etch_view_collective {
    const char *name;   /* "all_reduce"; "send" to the next stage, or to the one before */
    const char *phase;  /* "forward", "recompute", "backward", "sync" */
    const char *group;  /* as `--by axis` says it: "tp", "(dp,tp)" */
    const size_t *axes; /* in the order of the mesh */
    size_t axis_count;
    const char *ranks;     /* of the group */
    size_t step;           /* NONE: of the end of a step, or between stages */
    const size_t *tensors; /* what is moved; of the end of a step the weights */
    size_t tensor_count;
    const char *before, *after; /* placements; NULL without a step */
    size_t module, loop;
    const char *bytes; /* payload of one, as comm_size counts it; of buckets of a given size: of a full one */
    const char *dtype; /* of what is sent; NULL without a step */
    const char *bytes_by_dims;     /* NULL at the end of a step */
    const etch_view_share *shares; /* by stage */
    const char *rule;              /* "operand", "pin", ...: docs/cli.md lists them */
    const etch_phrase_view *why;
    size_t why_count;
} etch_view_collective;

/* What all collectives of one kind over one group add up to. */
typedef struct etch_view_comm {
    const char *name, *group;
    const etch_view_share *shares; /* by stage */
} etch_view_comm;

typedef struct etch_placement_report {
    const etch_graph_report *graph; /* the same part of the graph: names, dims, modules, loops */
    const char *plan;
    etch_location location;
    const etch_view_axis *axes; /* outermost first */
    const etch_view_pad *pads;
    const char *const *stages;      /* labels: "whole", or "first", "middle", "last", or "0", "1", ... */
    const etch_view_value *values;  /* those of weights and inputs first, then in the order of steps */
    const etch_view_step *steps;    /* in the order of the program: forward, then backward */
    const etch_view_handed *handed; /* by loops of the graph */
    const etch_view_collective *collectives; /* by phase, in the order of the program */
    const etch_view_comm
        *totals; /* by kind and group, in that order; without a part they are comm(step) and wire(step) */
    const etch_view_share *sums; /* of all, by stage */
    size_t axis_count, pad_count, stage_count, value_count, step_count, carried_count, collective_count,
        total_count;
} etch_placement_report;

/* Places the plan that the options name (or the spec's only one). `part` as for `etch_session_graph`: only its steps
 * and collectives. ETCH_EINPUT: errors, of the model or of the plan, or there is no such part. */
ETCH_API etch_status etch_session_placement(etch_session *session, const char *part,
                                            const etch_placement_report **report);

#ifdef __cplusplus
}
#endif

#endif
