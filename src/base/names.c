/* Interned names, and the nearest of several names. */
#include "base/base.h"

#include <string.h>

typedef struct entry {
    const char *text;
    size_t length;
    uint32_t hash;
} entry;

/* Open addressing with linear probing; at most half full. Nothing ever walks the table in its order. */
struct etch_names {
    etch_arena *arena;
    entry *slots;
    /* capacity is a power of two */
    size_t count, capacity;
};

enum { FIRST_SLOTS = 64 };

etch_names *etch_names_new(etch_arena *arena)
{
    etch_names *names = ETCH_NEW(arena, etch_names);
    names->arena = arena;
    names->capacity = FIRST_SLOTS;
    names->slots = ETCH_NEW_ARRAY(arena, names->capacity, entry);
    return names;
}

/* FNV-1a. */
static uint32_t hash_text(const char *text, size_t length)
{
    uint32_t hash = 2166136261u;
    for (size_t i = 0; i < length; i++)
        hash = (hash ^ (unsigned char)text[i]) * 16777619u;
    return hash;
}

/* The slot that holds the text, or the free one where it belongs. */
static entry *find_slot(const etch_names *names, const char *text, size_t length, uint32_t hash)
{
    size_t i = hash & (names->capacity - 1);
    for (;; i = (i + 1) & (names->capacity - 1)) {
        entry *slot = &names->slots[i];
        if (!slot->text)
            return slot;
        if (slot->hash == hash && slot->length == length && memcmp(slot->text, text, length) == 0)
            return slot;
    }
}

static void grow(etch_names *names)
{
    const entry *old = names->slots;
    size_t old_capacity = names->capacity;
    names->slots = ETCH_NEW_ARRAY(names->arena, old_capacity * 2, entry);
    names->capacity = old_capacity * 2;
    for (size_t i = 0; i < old_capacity; i++) {
        if (old[i].text)
            *find_slot(names, old[i].text, old[i].length, old[i].hash) = old[i];
    }
}

const char *etch_name(etch_names *names, const char *text, size_t length)
{
    uint32_t hash = hash_text(text, length);
    entry *slot = find_slot(names, text, length, hash);
    if (slot->text)
        return slot->text;
    if (names->count >= names->capacity / 2) {
        grow(names);
        slot = find_slot(names, text, length, hash);
    }
    *slot = (entry){etch_copy_text(names->arena, text, length), length, hash};
    names->count++;
    return slot->text;
}

const char *etch_name_of(etch_names *names, const char *text)
{
    return etch_name(names, text, strlen(text));
}

/* Whether at most `edits` insertions, deletions, replacements or swaps of neighbours turn `a` into `b`.
 * Equal first letters never need an edit, so the search branches at differences only: 4^edits ways. */
static bool within(const char *a, const char *b, unsigned edits)
{
    while (*a && *a == *b)
        a++, b++;
    if (!*a && !*b)
        return true;
    if (edits == 0)
        return false;
    if (*a && within(a + 1, b, edits - 1))
        return true;
    if (*b && within(a, b + 1, edits - 1))
        return true;
    if (!*a || !*b)
        return false;
    if (within(a + 1, b + 1, edits - 1))
        return true;
    return a[1] && a[0] == b[1] && a[1] == b[0] && within(a + 2, b + 2, edits - 1);
}

const char *etch_nearest(const char *text, const char *const *candidates, size_t count)
{
    const size_t length = strlen(text);
    for (unsigned edits = 0; edits <= 2 && edits < length; edits++) {
        for (size_t i = 0; i < count; i++) {
            if (within(text, candidates[i], edits))
                return candidates[i];
        }
    }
    return NULL;
}
