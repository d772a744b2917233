/* Assertions that hold for every placed graph. */
#include "lower/lower_int.h"

void etch_lower_require(etch_arena *arena, bool holds)
{
    if (!holds)
        etch_trap(etch_arena_mem(arena), ETCH_EINTERNAL);
}
