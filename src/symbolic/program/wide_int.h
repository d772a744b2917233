/* Checked integers of 128 bits. */
#ifndef ETCH_SYMBOLIC_PROGRAM_WIDE_INT_H
#define ETCH_SYMBOLIC_PROGRAM_WIDE_INT_H

#include "symbolic/program/program_int.h"

typedef sym_wide wide;
__extension__ typedef unsigned __int128 unsigned_wide;

/* -greatest is the least one that is used: every number has a magnitude. */
static const wide greatest = (wide)(~(unsigned_wide)0 >> 1);

static inline bool is_word(wide a)
{
    return a == (int64_t)a;
}

static inline unsigned_wide magnitude(wide a)
{
    return a < 0 ? -(unsigned_wide)a : (unsigned_wide)a;
}

static inline bool add_fits(wide a, wide b, wide *result)
{
    return !__builtin_add_overflow(a, b, result) && *result >= -greatest;
}

/* Written out: compilers call a function for it that not every runtime library has. */
static inline bool long_product_fits(wide a, wide b, wide *result)
{
    unsigned_wide x = magnitude(a), y = magnitude(b);
    if (x >> 64 && y >> 64)
        return false;
    unsigned_wide longer = x >> 64 ? x : y, word = x >> 64 ? y : x;
    unsigned_wide high = (longer >> 64) * word, low = (unsigned_wide)(uint64_t)longer * word;
    if (high >> 63)
        return false;
    unsigned_wide product = (high << 64) + low;
    if (product < low || product > (unsigned_wide)greatest)
        return false;
    *result = (a < 0) != (b < 0) ? -(wide)product : (wide)product;
    return true;
}

static inline bool mul_fits(wide a, wide b, wide *result)
{
    if (!is_word(a) || !is_word(b))
        return long_product_fits(a, b, result);
    *result = a * b;
    return true;
}

/* Towards zero; den != 0. */
static inline wide quotient_of(wide num, wide den)
{
    if (is_word(num) && is_word(den) && den != -1)
        return (int64_t)num / (int64_t)den;
    return num / den;
}

static inline wide floor_of(wide num, wide den) /* den > 0 */
{
    wide quotient = quotient_of(num, den);
    return quotient - (quotient * den > num);
}

static inline bool wide_constant_fits(const program_constant *constant, wide *result)
{
    *result = constant->small;
    if (constant->size == 0)
        return true;
    int32_t size = constant->size < 0 ? -constant->size : constant->size;
    unsigned_wide value = constant->limbs[0];
    if (size > 2)
        return false;
    if (size == 2)
        value |= (unsigned_wide)constant->limbs[1] << 64;
    if (value > (unsigned_wide)greatest)
        return false;
    *result = constant->size < 0 ? -(wide)value : (wide)value;
    return true;
}

#endif
