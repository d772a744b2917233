/* What all of lower uses: assertions that hold for every placed graph, and words. */
#include "lower/lower_int.h"

#include <string.h>

void etch_lower_require(etch_arena *arena, bool holds)
{
    if (!holds)
        etch_trap(etch_arena_mem(arena), ETCH_EINTERNAL);
}

etch_word etch_word_of(const char *text)
{
    return (etch_word){text, (uint32_t)strlen(text)};
}
