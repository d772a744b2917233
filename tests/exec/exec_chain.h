/* The chain of a plan's stage line with numbers: which layers are in which model chunk, and which stage has
 * it. Enumerated layer by layer; only the entries of the chain and the home of each step are the
 * product's. */
#ifndef ETCH_TEST_EXEC_CHAIN_H
#define ETCH_TEST_EXEC_CHAIN_H

#include "graph/graph.h"

/* Stage positions from `low` to before `high`: a stage position is a layer, counted along the whole chain. */
typedef struct exec_interval {
    uint32_t low, high;
} exec_interval;

typedef struct exec_chain {
    const etch_placed *placed;
    uint32_t stages, positions;
    uint32_t chunk_count;    /* of all stages */
    uint32_t copies;         /* of the chain: all chunks of the first, then those of the second */
    exec_interval *chunks;   /* model chunks along the chain */
    uint32_t *stage_of;      /* by model chunk */
    uint32_t *first, *count; /* by entry: its first position, and how many it has */
} exec_chain;

/* Axes, counts and loops are numbers. Without a stage line: one chunk without layers. */
exec_chain exec_chain_new(etch_arena *arena, const etch_placed *placed);
/* Which link of the chain a chunk of a stage is, counted there: earlier layers come first. */
uint32_t exec_chain_link(const exec_chain *chain, uint32_t stage, uint32_t chunk);
/* Does the chain begin with the link, or end with it? */
bool exec_chain_begins(const exec_chain *chain, uint32_t link);
bool exec_chain_ends(const exec_chain *chain, uint32_t link);
/* What its schedule orders. */
etch_pipe exec_chain_pipe(const exec_chain *chain);
/* Does every chunk have a layer, do the counts fit, and has the schedule microbatches enough? */
bool exec_chain_fits(const exec_chain *chain);
/* The loop of the top level whose iterations are layers at this home; UINT32_MAX: it is none. Else its
 * entry. */
uint32_t exec_chain_layers(const exec_chain *chain, etch_position home);
/* Where something runs that runs once. */
uint32_t exec_chain_position(const exec_chain *chain, etch_position home);
bool exec_chain_has(exec_interval interval, uint32_t position);
/* The cut of the placed graph before a stage position. */
const etch_cut *exec_chain_cut(const exec_chain *chain, uint32_t position);
/* Views are nowhere on stages, nor are parts that an iteration cuts off or that nobody reads: what they show
 * may be on another one. */
bool exec_is_nowhere(const etch_placed *placed, const etch_step *step);

#endif
