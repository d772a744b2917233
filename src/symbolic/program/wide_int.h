/* Checked integers of 128 bits. */
#ifndef ETCH_SYMBOLIC_PROGRAM_WIDE_INT_H
#define ETCH_SYMBOLIC_PROGRAM_WIDE_INT_H

#include "symbolic/program/program_int.h"

typedef sym_wide etch_wide;
__extension__ typedef unsigned __int128 etch_unsigned_wide;

/* -greatest is the least one that is used: every number has a magnitude. */
static const etch_wide greatest = (etch_wide)(~(etch_unsigned_wide)0 >> 1);

static inline bool is_word(etch_wide a)
{
    return a == (int64_t)a;
}

static inline etch_unsigned_wide magnitude(etch_wide a)
{
    return a < 0 ? -(etch_unsigned_wide)a : (etch_unsigned_wide)a;
}

static inline bool add_fits(etch_wide a, etch_wide b, etch_wide *result)
{
    return !__builtin_add_overflow(a, b, result) && *result >= -greatest;
}

/* Written out: compilers call a function for it that not every runtime library has. */
static inline bool long_product_fits(etch_wide a, etch_wide b, etch_wide *result)
{
    etch_unsigned_wide x = magnitude(a), y = magnitude(b);
    if (x >> 64 && y >> 64)
        return false;
    etch_unsigned_wide longer = x >> 64 ? x : y, word = x >> 64 ? y : x;
    etch_unsigned_wide high = (longer >> 64) * word, low = (etch_unsigned_wide)(uint64_t)longer * word;
    if (high >> 63)
        return false;
    etch_unsigned_wide product = (high << 64) + low;
    if (product < low || product > (etch_unsigned_wide)greatest)
        return false;
    *result = (a < 0) != (b < 0) ? -(etch_wide)product : (etch_wide)product;
    return true;
}

static inline bool mul_fits(etch_wide a, etch_wide b, etch_wide *result)
{
    if (!is_word(a) || !is_word(b))
        return long_product_fits(a, b, result);
    *result = a * b;
    return true;
}

/* Towards zero; den != 0. */
static inline etch_wide quotient_of(etch_wide num, etch_wide den)
{
    if (is_word(num) && is_word(den) && den != -1)
        return (int64_t)num / (int64_t)den;
    return num / den;
}

static inline etch_wide floor_of(etch_wide num, etch_wide den) /* den > 0 */
{
    etch_wide quotient = quotient_of(num, den);
    return quotient - (quotient * den > num);
}

static inline bool wide_constant_fits(const etch_program_constant *constant, etch_wide *result)
{
    *result = constant->small;
    if (constant->size == 0)
        return true;
    int32_t size = constant->size < 0 ? -constant->size : constant->size;
    etch_unsigned_wide value = constant->limbs[0];
    if (size > 2)
        return false;
    if (size == 2)
        value |= (etch_unsigned_wide)constant->limbs[1] << 64;
    if (value > (etch_unsigned_wide)greatest)
        return false;
    *result = constant->size < 0 ? -(etch_wide)value : (etch_wide)value;
    return true;
}

#endif
