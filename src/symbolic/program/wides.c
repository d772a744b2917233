/* Blocks of configurations in checked integers of 128 bits. */
#include "symbolic/program/wide_int.h"

typedef etch_wide number;
#define LANES(name) wides_##name

static inline bool constant_fits(const etch_program_constant *constant, number *result)
{
    return wide_constant_fits(constant, result);
}

static inline bool add_fails(etch_wide a, etch_wide b, etch_wide *result)
{
    return !add_fits(a, b, result);
}

static inline bool sub_fails(etch_wide a, etch_wide b, etch_wide *result)
{
    return !add_fits(a, -b, result);
}

static inline bool mul_fails(etch_wide a, etch_wide b, etch_wide *result)
{
    return !mul_fits(a, b, result);
}

static inline bool max_fails(etch_wide a, etch_wide b, etch_wide *result)
{
    *result = a > b ? a : b;
    return false;
}

static inline bool div_fails(etch_wide a, etch_wide b, etch_wide *result)
{
    *result = b != 0 ? quotient_of(a, b) : 0;
    return b == 0 || *result * b != a;
}

static inline bool floor_div_fails(etch_wide a, etch_wide b, etch_wide *result)
{
    *result = b == 0 ? 0 : b < 0 ? floor_of(-a, -b) : floor_of(a, b);
    return b == 0;
}

#include "symbolic/program/lanes.inc"
