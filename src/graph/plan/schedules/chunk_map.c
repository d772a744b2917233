/* How the chain of model chunks goes through the stages. */
#include "graph/plan/schedules/chunk_map.h"

/* Along the chain; or where it comes back. */
static uint32_t mirrored(etch_chunk_map map, uint32_t stages, uint64_t chunk, uint32_t stage)
{
    return map == ETCH_MAP_MIRRORED && chunk % 2 == 1 ? stages - 1 - stage : stage;
}

uint64_t etch_model_chunk(etch_chunk_map map, uint32_t stages, etch_chunk_place place)
{
    return (uint64_t)place.chunk * stages + mirrored(map, stages, place.chunk, place.stage);
}

etch_chunk_place etch_chunk_place_of(etch_chunk_map map, uint32_t stages, uint64_t model_chunk)
{
    const uint32_t chunk = (uint32_t)(model_chunk / stages), at = (uint32_t)(model_chunk % stages);
    return (etch_chunk_place){mirrored(map, stages, chunk, at), chunk};
}

bool etch_chunk_turns(etch_chunk_map map, uint32_t stages, uint64_t model_chunk)
{
    return etch_chunk_place_of(map, stages, model_chunk).stage ==
           etch_chunk_place_of(map, stages, model_chunk + 1).stage;
}

bool etch_chain_ends_first(etch_chunk_map map, uint32_t chunks)
{
    return map == ETCH_MAP_MIRRORED && chunks % 2 == 0;
}
