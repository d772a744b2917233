/* How the chain of model chunks goes through the stages. */
#include "graph/plan/schedules/chunk_map.h"

/* Along the chain; or where it comes back. */
static uint32_t mirrored(etch_chunk_map map, uint32_t stages, uint64_t chunk, uint32_t stage)
{
    return map == ETCH_MAP_MIRRORED && chunk % 2 == 1 ? stages - 1 - stage : stage;
}

uint32_t etch_chunk_copies(etch_chunk_map map)
{
    return map == ETCH_MAP_DUPLICATED ? 2 : 1;
}

uint64_t etch_model_chunk_count(etch_chunk_map map, uint32_t stages, uint32_t chunks)
{
    return (uint64_t)stages * chunks / etch_chunk_copies(map);
}

uint64_t etch_model_chunk(etch_chunk_map map, uint32_t stages, etch_chunk_place place)
{
    if (map != ETCH_MAP_DUPLICATED)
        return (uint64_t)place.chunk * stages + mirrored(map, stages, place.chunk, place.stage);
    const bool is_first = etch_chunk_copy(map, stages, place) == 0;
    return is_first ? place.stage : stages - 1 - place.stage;
}

uint32_t etch_chunk_copy(etch_chunk_map map, uint32_t stages, etch_chunk_place place)
{
    const bool is_early = place.stage < stages / 2;
    return map == ETCH_MAP_DUPLICATED && is_early == (place.chunk == 1);
}

etch_chunk_place etch_chunk_place_of(etch_chunk_map map, uint32_t stages, uint32_t copy, uint64_t model_chunk)
{
    const uint32_t chunk = (uint32_t)(model_chunk / stages), at = (uint32_t)(model_chunk % stages);
    if (map != ETCH_MAP_DUPLICATED)
        return (etch_chunk_place){mirrored(map, stages, chunk, at), chunk};
    return (etch_chunk_place){copy == 0 ? at : stages - 1 - at, at >= stages / 2};
}

bool etch_chunk_turns(etch_chunk_map map, uint32_t stages, uint64_t model_chunk)
{
    return etch_chunk_place_of(map, stages, 0, model_chunk).stage ==
           etch_chunk_place_of(map, stages, 0, model_chunk + 1).stage;
}

bool etch_chain_ends_first(etch_chunk_map map, uint32_t chunks)
{
    return map == ETCH_MAP_DUPLICATED || (map == ETCH_MAP_MIRRORED && chunks % 2 == 0);
}
