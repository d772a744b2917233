/* Arrays and tables from malloc, for code that runs on any thread. */
#include "trace/trace_int.h"

#include <stdlib.h>
#include <string.h>

void *etch_enlarge(void *at, uint32_t *capacity, size_t size, bool *failed)
{
    if (*capacity > UINT32_MAX / 2) {
        *failed = true;
        return at;
    }
    const uint32_t larger = *capacity ? 2 * *capacity : 16;
    void *moved = realloc(at, larger * size);
    if (!moved) {
        *failed = true;
        return at;
    }
    *capacity = larger;
    return moved;
}

/* ---- numbers by number --------------------------------------------------------------------------------- */

/* Open addressing; a free place has the key FREE. */
#define FREE UINT32_MAX

static uint32_t place_of(const etch_number_table *table, uint32_t key)
{
    return (uint32_t)(key * UINT32_C(2654435769)) & (table->capacity - 1);
}

/* Where `key` is, or would go. */
static uint32_t seek(const etch_number_table *table, uint32_t key)
{
    uint32_t at = place_of(table, key);
    while (table->keys[at] != key && table->keys[at] != FREE)
        at = (at + 1) & (table->capacity - 1);
    return at;
}

uint32_t *etch_table_get(const etch_number_table *table, uint32_t key)
{
    if (table->count == 0)
        return NULL;
    const uint32_t at = seek(table, key);
    return table->keys[at] == key ? &table->values[at] : NULL;
}

static bool enlarge(etch_number_table *table)
{
    if (table->capacity > UINT32_MAX / 4)
        return false;
    etch_number_table larger = {.count = table->count,
                                .capacity = table->capacity ? 2 * table->capacity : 16};
    larger.keys = malloc((size_t)larger.capacity * sizeof *larger.keys);
    larger.values = malloc((size_t)larger.capacity * sizeof *larger.values);
    if (!larger.keys || !larger.values) {
        etch_table_free(&larger);
        return false;
    }
    memset(larger.keys, 0xff, (size_t)larger.capacity * sizeof *larger.keys);
    for (uint32_t i = 0; i < table->capacity; i++) {
        if (table->keys[i] == FREE)
            continue;
        const uint32_t at = seek(&larger, table->keys[i]);
        larger.keys[at] = table->keys[i];
        larger.values[at] = table->values[i];
    }
    etch_table_free(table);
    *table = larger;
    return true;
}

bool etch_table_add(etch_number_table *table, uint32_t key, uint32_t value)
{
    if (table->count >= table->capacity / 2 && !enlarge(table))
        return false;
    const uint32_t at = seek(table, key);
    table->keys[at] = key;
    table->values[at] = value;
    table->count++;
    return true;
}

/* What stands after the gap, and would have stood in it, moves up. */
void etch_table_remove(etch_number_table *table, const uint32_t *value)
{
    const uint32_t mask = table->capacity - 1;
    uint32_t gap = (uint32_t)(value - table->values);
    for (uint32_t at = (gap + 1) & mask; table->keys[at] != FREE; at = (at + 1) & mask) {
        const uint32_t home = place_of(table, table->keys[at]);
        if (((at - home) & mask) < ((at - gap) & mask))
            continue;
        table->keys[gap] = table->keys[at];
        table->values[gap] = table->values[at];
        gap = at;
    }
    table->keys[gap] = FREE;
    table->count--;
}

void etch_table_free(etch_number_table *table)
{
    free(table->keys);
    free(table->values);
    *table = (etch_number_table){0};
}
