/* Tables of addresses: open addressing, at most half full. The old place of a table that grows stays with the
 * arena. */
#include "base/base.h"

static etch_map_cell *entry_of(const etch_map *map, const void *key)
{
    const uint64_t hash = (uint64_t)(uintptr_t)key * UINT64_C(0x9E3779B97F4A7C15);
    uint32_t at = (uint32_t)(hash >> 32) & (map->capacity - 1);
    while (map->entries[at].key && map->entries[at].key != key)
        at = (at + 1) & (map->capacity - 1);
    return &map->entries[at];
}

const void *etch_map_find(const etch_map *map, const void *key)
{
    return map->capacity > 0 ? entry_of(map, key)->value : NULL;
}

void etch_map_set(etch_arena *arena, etch_map *map, const void *key, const void *value)
{
    const etch_map old = *map;
    if (old.count >= old.capacity / 2) {
        if (old.capacity > UINT32_MAX / 2)
            etch_trap(etch_arena_mem(arena), ETCH_ELIMIT);
        map->capacity = old.capacity > 0 ? old.capacity * 2 : 16;
        map->entries = ETCH_NEW_ARRAY(arena, map->capacity, etch_map_cell);
        for (uint32_t i = 0; i < old.capacity; i++)
            if (old.entries[i].key)
                *entry_of(map, old.entries[i].key) = old.entries[i];
    }
    etch_map_cell *entry = entry_of(map, key);
    map->count += !entry->key;
    *entry = (etch_map_cell){key, value};
}
