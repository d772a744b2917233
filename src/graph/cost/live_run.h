/* A run of a placed program: its steps one after the other, and the memory that they make and read.
 *
 * A loop is run with a few iterations, its turns: the first ones, some for those between, of which there may
 * be many, and the last ones. Iterations between are alike, so that the most at a time is there at one of the
 * turns; what outlives an iteration between is there as often as there are such iterations. */
#ifndef ETCH_GRAPH_COST_LIVE_RUN_H
#define ETCH_GRAPH_COST_LIVE_RUN_H

#include "graph/cost/live.h"

/* An iteration of a loop, and of its copies in backward. */
typedef struct etch_live_turn {
    uint32_t class;
    /* iterations that it stands for, where one makes what others do not */
    etch_expr copies;
    /* the first of them, and how far apart they are; NULL: it stands for an open number of them */
    etch_expr first;
    uint32_t stride;
    /* of the stage; of a loop that is not divided among stages that of what is around it */
    uint32_t chunk;
    /* the first turn of those that stand for iterations in turn: of a period; or itself */
    uint32_t span;
} etch_live_turn;

typedef struct etch_live_turns {
    ETCH_VEC(etch_live_turn) at;
    /* the one that is run */
    uint32_t now;
} etch_live_turns;

/* Of a loop around the step that has made a memory. */
typedef struct etch_live_level {
    const etch_loop *root;
    /* its turn at work, and the event with which the turns of the span began */
    uint32_t turn, begin;
    /* the memory of the other iterations that the turn stands for; 0: nothing has asked for it */
    uint32_t others;
} etch_live_level;

/* The last one stands for all chunks that have no bit of their own. */
static inline uint64_t etch_live_chunk_bit(uint32_t chunk)
{
    return (uint64_t)1 << (chunk < 63 ? chunk : 63);
}

/* What a step has made, until the last step that reads it. */
typedef struct etch_live_memory {
    uint32_t name;
    /* the memory that it is a part of, and nothing else, but where a message has brought it; 0: none */
    uint32_t part_of;
    etch_live_pass pass;
    /* forward has made it, and backward of this chunk of the stage reads it, the first that does; or
     * ETCH_NO_CHUNK */
    uint32_t saved_from;
    /* the chunks whose backward pass does: etch_live_chunk_bit */
    uint64_t saved_in;
    /* the event that has made it */
    uint32_t made;
    /* a copy of a weight, or a part of one, which is not saved; of one that is gathered how long it lasts,
     * the event from which on it is there, and the weight group that it is gathered for */
    bool is_weight, is_gathered;
    etch_keep lasts;
    uint32_t since, group;
    /* of one that is gathered: the chunk that does it; the first of those that one step gathers, in a row,
     * and how many */
    uint32_t chunk, first, together;
    /* and the interval of the top level in which it does */
    uint32_t interval;
    /* of one run of the step; times the iterations that it stands for, and, of a gathered copy that backward
     * reads, those of the loop of the top level as well */
    etch_expr each, copies, lasting;
    /* of a copy of a weight: iterations that it is of, of loops that begin after it was gathered */
    etch_expr instances;
    /* the outermost first */
    etch_live_level *levels;
    uint32_t level_count;
} etch_live_memory;

/* A step, or the begin or the end of an iteration. */
typedef struct etch_live_event {
    etch_live_pass pass;
    uint32_t chunk;
    ETCH_VEC(uint32_t) makes;
    ETCH_VEC(uint32_t) reads;
    /* an iteration ends, and carries */
    bool carries;
    /* the loop of forward whose turn it is in, of the top level; NULL: between such loops */
    const etch_loop *loop;
    uint32_t turn;
} etch_live_event;

/* A weight group, as traces count them: an iteration of a loop of the top level, or what lies between such
 * loops, cut where something is gathered after what has computed. */
typedef struct etch_live_group {
    etch_live_pass pass;
    uint32_t chunk;
    /* its first node; ETCH_NO_EVENT: it has none */
    uint32_t event;
} etch_live_group;

#define ETCH_NO_EVENT UINT32_MAX

/* What a chunk has of the weight group at work: the next node of the top level begins another one; it has
 * computed. */
typedef struct etch_live_grouping {
    uint32_t chunk;
    bool begins, computes;
} etch_live_grouping;

/* The name of a gathered copy. */
typedef struct etch_live_copy {
    const etch_tensor *weight;
    uint32_t name;
} etch_live_copy;

/* A part of a weight that forward leaves for backward on a stage; of one of a loop that of these turns. */
typedef struct etch_live_part {
    uint32_t name, turns, memory;
} etch_live_part;

/* A gradient that is whole until its weight group is reduced; of a weight of a loop that of these turns. */
typedef struct etch_live_gradient {
    const etch_tensor *gradient;
    uint32_t turns, chunk, memory;
} etch_live_gradient;

/* The turns at work of a loop, which stand for iterations in turn. */
typedef struct etch_live_span {
    const etch_loop *root;
    /* the event with which they began */
    uint32_t begin;
    /* what is there to their end */
    ETCH_VEC(uint32_t) reads;
} etch_live_span;

/* Where a name is what enters the iterations of a loop. NULL: it is no such name. */
typedef struct etch_live_slot {
    const etch_live_loop *loop;
    uint32_t carry;
} etch_live_slot;

/* Where a name of the top level was made: in this chunk of the stage, or on another stage. */
typedef struct etch_live_origin {
    bool is_known;
    uint32_t chunk;
    etch_live_pass pass;
} etch_live_origin;

typedef struct etch_live_run {
    etch_live_program *program;
    etch_sym *sym;
    etch_arena *arena;
    const etch_valuation *values;
    /* by id of a loop of forward */
    etch_live_turns **turns;
    /* by name and turns of the loops around it: its memory; 0: none */
    uint32_t **memory_of;
    /* by name, of loops that have been run */
    etch_live_slot *enters;
    /* by name */
    etch_live_origin *origins;
    /* bodies that are run, from the outermost on, and the spans of their loops */
    ETCH_VEC(const etch_region *) open;
    ETCH_VEC(etch_live_span) spans;
    etch_live_pass pass;
    /* what is there to the end of the iteration of the loop of the top level */
    ETCH_VEC(uint32_t) to_turn_end;
    /* the loop of the top level, of forward, and its turn, at work; NULL: none */
    const etch_loop *turning;
    uint32_t turn;
    /* how many weight groups ahead weights are gathered; 0 where none are */
    uint64_t ahead;
    ETCH_VEC(etch_live_group) groups;
    /* of the pass at work, by chunk */
    ETCH_VEC(etch_live_grouping) groupings;
    /* of the top level at work: counted over loops and what lies between them */
    uint32_t interval;
    /* where memory is read that is read with another event than the one now; else ETCH_NO_EVENT */
    uint32_t reads_at;
    ETCH_VEC(etch_live_copy) copies;
    ETCH_VEC(etch_live_part) parts;
    ETCH_VEC(etch_live_gradient) gradients;
    /* by tensor id of a weight: the weight group of the placement; NULL: none */
    const etch_weight_group **group_of;
    /* the first is none, of no pass */
    ETCH_VEC(etch_live_memory) memories;
    ETCH_VEC(etch_live_event) events;
} etch_live_run;

/* `program`: of a placement. `values`: as etch_placed_workspace takes them. */
etch_live_run *etch_live_run_of(etch_live_program *program, const etch_valuation *values);
/* The turns of a loop, or of the loop of forward that it undoes or repeats. */
const etch_live_turns *etch_live_turns_of(const etch_live_run *run, const etch_loop *loop);
/* The memory of a name in the turns that are run; 0: it has none. */
uint32_t etch_live_memory_of(const etch_live_run *run, uint32_t name);
/* The same of a name of iterations of a loop of the top level, in one of its turns. */
uint32_t etch_live_memory_in(const etch_live_run *run, uint32_t name, uint32_t turn);
/* The cut before a chunk of the stage, or after it, and where; NULL: the chain ends there. */
const etch_cut *etch_live_cut_of(const etch_stage_view *view, uint32_t chunk, bool after,
                                 etch_expr *iteration);

#endif
