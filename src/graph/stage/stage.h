/* Stages: the chain that a plan's stage line makes of the model, and what one stage holds of it. Part of what
 * other modules see of graph. */
#ifndef ETCH_GRAPH_STAGE_STAGE_H
#define ETCH_GRAPH_STAGE_STAGE_H

#include "graph/place/place.h"

/* A segment of the chain of layers: a loop, each of whose iterations is a layer, or a block, which is one. */
typedef struct etch_stage_segment {
    /* as the plan selects it */
    const char *name;
    /* which name of the stage line that is */
    uint32_t selector;
    /* NULL: a block */
    const etch_loop *loop;
    /* layers: those of the segments before it; its own */
    etch_expr first, count;
} etch_stage_segment;

/* Where something of the chain reads a value or a weight, or makes a value. */
typedef struct etch_stage_use {
    etch_position position;
    /* of a loop whose iterations are layers: those of this class; NULL: all */
    const etch_region *body;
    /* how often there, in each of these iterations: what loops inside are counted may be 0 */
    etch_expr runs;
} etch_stage_use;

/* Along the chain, each place once. */
typedef ETCH_VEC(etch_stage_use) etch_stage_uses;

/* How often, on all stages together. */
etch_expr etch_stage_use_total(etch_sym *sym, const etch_stage_use *use);

/* What a loop does with the values that it carries. */
typedef struct etch_carrying etch_carrying;

/* A value that goes over a cut where something reads it after the cut, and something has made it. */
typedef struct etch_crossing {
    etch_value *value;
    /* something surely does; else these, of which there may be none in the iterations there */
    bool is_read, is_made;
    etch_stage_uses reads, makes;
    /* of a value that a loop carries over a cut inside of it: which it is, in place of `reads` */
    const etch_carrying *carrying;
    uint32_t carried;
} etch_crossing;

typedef ETCH_VEC(etch_crossing) etch_crossings;

/* Else nothing makes it other than zeros. */
static inline bool etch_crossing_may_be_sent(const etch_crossing *crossing)
{
    return crossing->is_made || crossing->makes.count > 0;
}

/* Where a chain may be cut: before a segment, or between the iterations of a loop. What is alive there goes
 * to the next stage in one message for each microbatch; backward, cotangents go the other way. A loop-carried
 * value is the body's argument. */
typedef struct etch_cut {
    uint32_t segment;
    /* the segment's loop; else before the segment */
    bool inside;
    etch_crossings forward, backward;
    /* of one rank and message, at most */
    etch_expr forward_bytes, backward_bytes;
} etch_cut;

/* The chain that a plan's stage line makes of the model. */
typedef struct etch_stages {
    const etch_stage_line *line;
    /* in program order, at least one */
    ETCH_VEC(etch_stage_segment) segments;
    /* of all segments */
    etch_expr layers;
    /* along the chain */
    ETCH_VEC(etch_cut) cuts;
    /* by op id: the segment that it is listed in, or ETCH_NO_SEGMENT */
    uint32_t *segment_of_op;
    /* by tensor id of a weight: where it is used; empty where each iteration of a loop of the chain has its
     * own */
    etch_stage_uses *uses;
} etch_stages;

/* Is it the stage position of a loop whose iterations are layers? */
bool etch_position_is_loop(const etch_stages *stages, etch_position position);
/* The stage position of a loop of the chain. */
etch_position etch_stage_position_of(const etch_placed *placed, const etch_loop *loop);
/* Where the weights of a weight group are used: NULL where there are no stages; empty for a loop of the
 * chain, where each iteration has its own. */
const etch_stage_uses *etch_weight_group_uses(const etch_placed *placed,
                                              const etch_weight_group *weight_group);
/* 1 where a value goes over the cut before this iteration of its segment (of a cut before the segment any),
 * else 0. `backward`: on its way back. */
etch_expr etch_crosses(etch_sym *sym, const etch_stages *stages, const etch_cut *cut,
                       const etch_crossing *crossing, bool backward, etch_expr iteration);

/* ---- one stage ----------------------------------------------------------------------------------------- */

/* Layers that a stage holds of a segment, counted from its first one. */
typedef struct etch_layer_interval {
    /* to before it */
    etch_expr low, high;
    /* how many: high - low, as it is shortest */
    etch_expr size;
    /* of the stage: whose they are */
    uint32_t chunk;
} etch_layer_interval;

typedef ETCH_VEC(etch_layer_interval) etch_layer_intervals;

/* Where a cut is: before these iterations of its segment. */
typedef ETCH_VEC(etch_expr) etch_iterations;

/* Sizes of a bound chain. */
typedef struct etch_stage_numbers {
    etch_chunk_map map;
    /* chunks of each stage */
    uint32_t stages, chunks;
    uint64_t layers;
    /* layers of each segment */
    const uint64_t *segments;
    /* layers of each model chunk, or NULL: spread evenly */
    const uint64_t *counts;
} etch_stage_numbers;

/* The layers that one stage holds, as numbers or as formulas. */
typedef struct etch_stage_view {
    const etch_stages *stages;
    /* of the chain; NULL: formulas, for so many stages */
    const etch_stage_numbers *numbers;
    etch_expr stage_count;
    /* of formulas: the first stage holds both ends of the chain */
    bool ends_first;
    /* by segment and side: layers */
    etch_expr (*shares)[ETCH_SIDES];
    /* by segment: where the layers are, chunk by chunk */
    etch_layer_intervals *ranges;
    /* by segment, by class of its loop: iterations, where they have been asked for */
    etch_expr **iterations;
    /* by segment: is there any of it? */
    bool *held;
    /* by segment: is that all of it? */
    bool *whole;
    /* by cut: where the stage sends messages there, each microbatch one */
    etch_iterations *forward, *backward;
    /* of a chain that is there twice: what the stage holds of the first copy, without the messages; else
     * NULL */
    const struct etch_stage_view *of_first_copy;
} etch_stage_view;

/* Layers of the chain, or iterations, from `first` to before `end`. */
typedef struct etch_bound_interval {
    uint64_t first, end;
} etch_bound_interval;

/* What both have; first == end == 0: nothing. */
etch_bound_interval etch_overlap(etch_bound_interval a, etch_bound_interval b);

/* Do they make a chain? Otherwise reports why not. */
bool etch_stage_numbers_fit(const etch_placed *placed, const etch_stage_numbers *numbers);
/* The layers of a model chunk: as they are counted, or spread evenly, when the first model chunks take what
 * is left over; those of a stage position; and is the cut the one before this layer? */
etch_bound_interval etch_layers_of_chunk(const etch_stage_numbers *numbers, uint64_t model_chunk);
etch_bound_interval etch_layers_of_position(const etch_stage_numbers *numbers, etch_position position);
bool etch_cut_is_before(const etch_stage_numbers *numbers, const etch_cut *cut, uint64_t layer);
const etch_stage_view *etch_stage_view_of(const etch_placed *placed, const etch_stage_numbers *numbers,
                                          uint32_t stage);

/* Stages that differ in kind. Formulas hold from two stages on, where the first one holds what comes before
 * the loop of the chain and some of its iterations, and the last one what comes after it and some. */
typedef enum etch_stage_class { ETCH_STAGE_FIRST, ETCH_STAGE_MIDDLE, ETCH_STAGE_LAST } etch_stage_class;

/* `number`: of a middle stage. NULL when the chain has not exactly one loop, or the plan counts layers. */
const etch_stage_view *etch_stage_view_class(const etch_placed *placed, etch_stage_class class,
                                             etch_expr stages, uint32_t chunks, etch_expr number);
/* How often the chain is there, each time on all stages. */
uint32_t etch_stage_copies(const etch_stages *stages);
/* What the stage holds of its chunks from `first` to `last`, both included; without the messages. */
const etch_stage_view *etch_stage_view_chunks(const etch_placed *placed, const etch_stage_view *view,
                                              uint32_t first, uint32_t last);
/* Layers of a stage position that the stage holds. */
etch_expr etch_stage_share(const etch_stage_view *view, etch_position position);
/* Those of them, at the stage position of a loop, that are iterations of the class of `body`. */
etch_expr etch_stage_iterations(etch_sym *sym, const etch_stage_view *view, etch_position position,
                                const etch_region *body);
/* How often the messages that it sends at a cut for a microbatch have the value; NULL: how many they are. */
etch_expr etch_stage_sends(etch_sym *sym, const etch_stage_view *view, uint32_t cut,
                           const etch_crossing *crossing, bool backward);
/* Does it hold anything of a stage position? */
bool etch_stage_holds(const etch_stage_view *view, etch_position position);
/* How many stages share a weight with these uses; none: each iteration of a loop of the chain has its own,
 * which several stages hold where the chain is there more than once. */
etch_expr etch_stage_users(etch_sym *sym, const etch_stage_view *view, const etch_stage_uses *uses);
/* 1 when the stage uses a weight with these uses, else 0; 1 when it is the first stage that does; and 1 when
 * other stages use it as well. */
etch_expr etch_stage_presence(etch_sym *sym, const etch_stage_view *view, const etch_stage_uses *uses);
etch_expr etch_stage_begins(etch_sym *sym, const etch_stage_view *view, const etch_stage_uses *uses);
etch_expr etch_stage_shares_weight(etch_sym *sym, const etch_stage_view *view, const etch_stage_uses *uses);

#endif
