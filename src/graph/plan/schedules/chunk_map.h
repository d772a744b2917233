/* Which links of the chain of model chunks each stage of a pipeline holds: the only place that knows. Part of
 * what other modules see of graph. */
#ifndef ETCH_GRAPH_PLAN_CHUNK_MAP_H
#define ETCH_GRAPH_PLAN_CHUNK_MAP_H

#include <stdbool.h>
#include <stdint.h>

/* How the chain goes through the stages. */
typedef enum etch_chunk_map {
    /* from the first to the last, and again from the first: chunk c of stage s is model chunk c*p + s */
    ETCH_MAP_LOOPED,
    /* to and fro: of odd chunks that is c*p + p-1-s. Where the chain turns, the stage goes on with what it
     * has itself, and no message is sent */
    ETCH_MAP_MIRRORED,
    /* once from the first to the last, and a second copy of it from the last to the first, of an even number
     * of stages. Chunk 0 of stage s is the earlier of model chunks s and p-1-s, chunk 1 the later one: one is
     * of the first copy, the other of the second. Even microbatches go through the first copy, odd ones
     * through the second */
    ETCH_MAP_DUPLICATED
} etch_chunk_map;

/* A chunk of a stage. */
typedef struct etch_chunk_place {
    uint32_t stage, chunk;
} etch_chunk_place;

/* How often every model chunk is there, each time on another stage; and how many there are, of so many chunks
 * in each stage. */
uint32_t etch_chunk_copies(etch_chunk_map map);
uint64_t etch_model_chunk_count(etch_chunk_map map, uint32_t stages, uint32_t chunks);
/* Which link of the chain a chunk of a stage is, of which copy of it, and the other way round. */
uint64_t etch_model_chunk(etch_chunk_map map, uint32_t stages, etch_chunk_place place);
uint32_t etch_chunk_copy(etch_chunk_map map, uint32_t stages, etch_chunk_place place);
etch_chunk_place etch_chunk_place_of(etch_chunk_map map, uint32_t stages, uint32_t copy,
                                     uint64_t model_chunk);
/* Is the model chunk after this one, if there is one, on the same stage? With one stage it is. */
bool etch_chunk_turns(etch_chunk_map map, uint32_t stages, uint64_t model_chunk);
/* Is the last link of the chain on the first stage, or on the last one alone? `chunks`: of each stage. */
bool etch_chain_ends_first(etch_chunk_map map, uint32_t chunks);

#endif
