/* The actions of one microbatch on a stage: which memory of a run is there from when until when.
 *
 * A stage runs a chunk of a pass at a time, an action: what it receives is there from the begin of the action
 * on, what it sends until the message is complete. What it keeps for no backward pass is gone when the action
 * ends, and comes again with the message that a later one begins with. */
#ifndef ETCH_GRAPH_COST_LIVE_ACTIONS_H
#define ETCH_GRAPH_COST_LIVE_ACTIONS_H

#include "graph/cost/live_run.h"

/* When memory is there, the last moment included. */
typedef struct etch_live_interval {
    uint32_t memory, birth, death, chunk;
    /* whose bytes it has: those of a message may be less than were made */
    uint32_t name;
    /* which of the sizes that is */
    uint32_t size;
    etch_live_pass pass;
    /* the second half of backward of the chunk reads it, too */
    bool waits;
    bool is_received;
} etch_live_interval;

/* The moments of a chunk in one direction: from the first to before the end. */
typedef struct etch_live_moments {
    uint32_t begin, end;
} etch_live_moments;

typedef struct etch_live_actions {
    const etch_live_run *run;
    const etch_stage_view *view;
    etch_sym *sym;
    etch_arena *arena;
    ETCH_VEC(etch_live_interval) intervals;
    /* by memory: its last interval; by event: its moment. From 1; 0: none */
    uint32_t *last, *moment_of;
    /* by memory: the first chunk whose backward pass reads it, or a part that is no memory of its own;
     * and, of a part, by chunk whether a message brings it there: bits */
    uint32_t *saved_from;
    uint64_t *brought;
    /* the chunks are of microbatches of their own, and each keeps what it reads; and by memory the chunks
     * whose backward pass reads it: bits */
    bool is_apart;
    uint64_t *saved_in;
    /* of the action in work: its first moment, the last one until now, and its chunk */
    uint32_t begin, now, chunk;
    etch_live_pass pass;
    /* of the view */
    uint32_t chunks;
    /* by chunk, forward and back */
    etch_live_moments *moments[2];
    /* bytes of intervals, each once; numbers where the valuation makes all of them so, which `has_numbers`
     * says */
    ETCH_VEC(etch_expr) sizes;
    bool has_numbers;
} etch_live_actions;

/* Runs the actions of one microbatch, forward chunk by chunk and back, where halves are actions the second
 * after the first. All is in `arena`; `values` as etch_placed_workspace takes them. */
etch_live_actions *etch_live_actions_of(etch_arena *arena, const etch_placed *placed,
                                        const etch_stage_view *stage, const etch_valuation *values);
/* Is it there all the time? */
bool etch_live_is_always(const etch_live_actions *actions, const etch_live_interval *there);
/* Does it count with the activations, as it is kept for backward or waits for its second half, or does an
 * earlier chunk keep what it is a part of? */
bool etch_live_is_saved(const etch_live_actions *actions, const etch_live_interval *there);

#endif
