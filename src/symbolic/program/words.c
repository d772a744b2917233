/* Blocks of configurations in checked integers of 64 bits. */
#include "symbolic/program/program_int.h"

typedef int64_t number;
#define LANES(name) words_##name

static inline bool constant_fits(const etch_program_constant *constant, number *result)
{
    *result = constant->small;
    return constant->size == 0;
}

static inline bool add_fails(int64_t a, int64_t b, int64_t *result)
{
    return __builtin_add_overflow(a, b, result);
}

static inline bool sub_fails(int64_t a, int64_t b, int64_t *result)
{
    return __builtin_sub_overflow(a, b, result);
}

static inline bool mul_fails(int64_t a, int64_t b, int64_t *result)
{
    return __builtin_mul_overflow(a, b, result);
}

static inline bool max_fails(int64_t a, int64_t b, int64_t *result)
{
    *result = a > b ? a : b;
    return false;
}

static inline bool div_fails(int64_t a, int64_t b, int64_t *result)
{
    if (b == 0 || (a == INT64_MIN && b == -1)) {
        *result = 0;
        return true;
    }
    *result = a / b;
    return a % b != 0;
}

static inline bool floor_div_fails(int64_t a, int64_t b, int64_t *result)
{
    if (b == 0 || (a == INT64_MIN && b == -1)) {
        *result = 0;
        return true;
    }
    int64_t quotient = a / b, rest = a % b;
    *result = quotient - (rest != 0 && (rest < 0) != (b < 0));
    return false;
}

#include "symbolic/program/lanes.inc"
