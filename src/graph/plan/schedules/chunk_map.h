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
    ETCH_MAP_MIRRORED
} etch_chunk_map;

/* A chunk of a stage. */
typedef struct etch_chunk_place {
    uint32_t stage, chunk;
} etch_chunk_place;

/* Which link of the chain a chunk of a stage is, and the other way round. */
uint64_t etch_model_chunk(etch_chunk_map map, uint32_t stages, etch_chunk_place place);
etch_chunk_place etch_chunk_place_of(etch_chunk_map map, uint32_t stages, uint64_t model_chunk);
/* Is the model chunk after this one, if there is one, on the same stage? With one stage it is. */
bool etch_chunk_turns(etch_chunk_map map, uint32_t stages, uint64_t model_chunk);
/* Is the last link of the chain on the first stage, or on the last one? `chunks`: of each stage. */
bool etch_chain_ends_first(etch_chunk_map map, uint32_t chunks);

#endif
