/* The order in which a stage works. */
#include "lower/lower_int.h"

uint64_t etch_slot_count(uint64_t micro, bool trains)
{
    return trains ? 2 * micro : micro;
}

etch_slot etch_slot_at(uint64_t index, bool trains)
{
    if (!trains)
        return (etch_slot){.backward = false, .microbatch = index};
    return (etch_slot){.backward = index % 2 == 1, .microbatch = index / 2};
}
