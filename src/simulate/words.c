/* Lists of numbers, each kept once: equal lists have equal numbers. */
#include <string.h>

#include "simulate/simulate_int.h"

static uint32_t hash_of(const uint32_t *list, uint32_t count)
{
    uint64_t hash = count + UINT64_C(0x9e3779b97f4a7c15);
    for (uint32_t i = 0; i < count; i++) {
        hash = (hash ^ list[i]) * UINT64_C(0xff51afd7ed558ccd);
        hash ^= hash >> 32;
    }
    return (uint32_t)hash;
}

static bool is_list(const etch_sim_words *words, uint32_t number, const uint32_t *list, uint32_t count)
{
    const etch_sim_list *known = &words->lists.at[number];
    return known->count == count &&
           (count == 0 || memcmp(words->pool.at + known->first, list, count * sizeof *list) == 0);
}

/* The cell of the list, or the free one where it belongs. */
static uint32_t *cell_of(const etch_sim_words *words, const uint32_t *list, uint32_t count)
{
    uint32_t at = hash_of(list, count) & (words->capacity - 1);
    while (words->cells[at] != 0 && !is_list(words, words->cells[at] - 1, list, count))
        at = (at + 1) & (words->capacity - 1);
    return &words->cells[at];
}

static void widen(etch_sim_words *words)
{
    words->capacity = words->capacity ? 2 * words->capacity : 64;
    words->cells = ETCH_NEW_ARRAY(words->arena, words->capacity, uint32_t);
    for (uint32_t i = 0; i < words->lists.count; i++) {
        const etch_sim_list *list = &words->lists.at[i];
        *cell_of(words, words->pool.at + list->first, list->count) = i + 1;
    }
}

uint32_t etch_sim_number(etch_sim_words *words, const uint32_t *list, uint32_t count)
{
    if (2 * words->lists.count >= words->capacity)
        widen(words);
    uint32_t *cell = cell_of(words, list, count);
    if (*cell == 0) {
        const etch_sim_list new_list = {words->pool.count, count};
        for (uint32_t i = 0; i < count; i++)
            ETCH_PUSH(words->arena, &words->pool, list[i]);
        ETCH_PUSH(words->arena, &words->lists, new_list);
        *cell = words->lists.count;
    }
    return *cell - 1;
}

const uint32_t *etch_sim_list_at(const etch_sim_words *words, uint32_t number, uint32_t *count)
{
    *count = words->lists.at[number].count;
    return words->pool.at + words->lists.at[number].first;
}
