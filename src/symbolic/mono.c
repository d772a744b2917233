/* Interned products of powers of atoms. */
#include <string.h>

#include "symbolic/symbolic_int.h"

/* The buffer in which products are put together. */
static sym_power *powers_for(etch_sym *sym, size_t count)
{
    if (count > UINT32_MAX / 4)
        sym_limit(sym);
    if (count > sym->powers_capacity) {
        sym->powers_capacity = (uint32_t)count * 2 + 32;
        sym->powers = ETCH_NEW_ARRAY(sym->arena, sym->powers_capacity, sym_power);
    }
    return sym->powers;
}

static uint32_t flags_of(const sym_power *power)
{
    uint32_t flags = power->exp < 0 ? ETCH_SYM_HAS_NEGATIVE : 0;
    if (power->atom->kind == ETCH_SYM_VAR)
        return flags | ETCH_SYM_HAS_VAR;
    return flags | ETCH_SYM_HAS_OPAQUE | (power->atom->kind == ETCH_SYM_RECIP ? ETCH_SYM_HAS_RECIP : 0);
}

/* A monomial whose powers are to be set. */
static sym_mono *new_mono(etch_sym *sym, uint32_t count, uint64_t hash)
{
    if (count > 1) /* see poly.c */
        sym_count_work(sym, ETCH_SYM_WORK_OF_NODE + (uint64_t)ETCH_SYM_WORK_OF_POWER * count);
    sym_mono *mono = etch_alloc(sym->arena, sizeof *mono + count * sizeof *mono->at);
    mono->node.hash = hash;
    mono->count = count;
    return mono;
}

/* Sets what follows from the powers. */
static void describe(sym_mono *mono)
{
    for (uint32_t i = 0; i < mono->count; i++) {
        mono->degree += mono->at[i].exp;
        mono->flags |= flags_of(&mono->at[i]);
        if (mono->depth < mono->at[i].atom->depth)
            mono->depth = mono->at[i].atom->depth;
    }
}

/* Takes a monomial that was looked for in vain. */
static const sym_mono *add(etch_sym *sym, sym_mono *mono, uint32_t probe)
{
    mono->id = sym->mono_count++;
    sym_table_add_missed(sym, &sym->monos, &mono->node, probe);
    return mono;
}

/* The monomial of `count` powers in order; `hash` is theirs. */
static const sym_mono *intern(etch_sym *sym, const sym_power *powers, uint32_t count, uint64_t hash)
{
    uint32_t probe = 0;
    if (count > 1)
        sym_count_work(sym, ETCH_SYM_WORK_OF_LOOKUP);
    for (sym_node *node; (node = sym_table_next(&sym->monos, hash, &probe));) {
        const sym_mono *mono = (const sym_mono *)node;
        bool equal = mono->count == count;
        for (uint32_t i = 0; equal && i < count; i++)
            equal = mono->at[i].atom == powers[i].atom && mono->at[i].exp == powers[i].exp;
        if (equal)
            return mono;
    }
    sym_mono *mono = new_mono(sym, count, hash);
    for (uint32_t i = 0; i < count; i++)
        mono->at[i] = powers[i];
    describe(mono);
    return add(sym, mono, probe);
}

int32_t sym_checked_exponent(etch_sym *sym, int64_t exp)
{
    if (exp > sym->limits.exponent || exp < -(int64_t)sym->limits.exponent)
        sym_limit_of(sym, "exponent of one factor", sym->limits.exponent);
    return (int32_t)exp;
}

const sym_mono *sym_mono_from(etch_sym *sym, const sym_power *powers, uint32_t count)
{
    uint64_t hash = 0;
    for (uint32_t i = 0; i < count; i++)
        hash += powers[i].atom->node.hash * (uint64_t)powers[i].exp;
    return intern(sym, powers, count, hash);
}

/* Is `mono` the product `a` with exponent `exp` for its i-th atom, which leaves it when that is 0? */
static bool is_lowered(const sym_mono *mono, const sym_mono *a, uint32_t i, int32_t exp)
{
    uint32_t gone = exp == 0;
    if (mono->count != a->count - gone)
        return false;
    for (uint32_t k = 0; k < i; k++)
        if (mono->at[k].atom != a->at[k].atom || mono->at[k].exp != a->at[k].exp)
            return false;
    if (!gone && (mono->at[i].atom != a->at[i].atom || mono->at[i].exp != exp))
        return false;
    for (uint32_t k = i + 1; k < a->count; k++)
        if (mono->at[k - gone].atom != a->at[k].atom || mono->at[k - gone].exp != a->at[k].exp)
            return false;
    return true;
}

/* Derivatives are mostly products that are new, each of which would be copied twice by `intern`. */
const sym_mono *sym_mono_lower(etch_sym *sym, const sym_mono *a, uint32_t i)
{
    int32_t exp = sym_checked_exponent(sym, (int64_t)a->at[i].exp - 1);
    uint64_t hash = a->node.hash - a->at[i].atom->node.hash;
    uint32_t probe = 0, gone = exp == 0;
    for (sym_node *node; (node = sym_table_next(&sym->monos, hash, &probe));)
        if (is_lowered((const sym_mono *)node, a, i, exp))
            return (const sym_mono *)node;
    sym_mono *mono = new_mono(sym, a->count - gone, hash);
    memcpy(mono->at, a->at, i * sizeof *a->at);
    if (!gone)
        mono->at[i] = (sym_power){a->at[i].atom, exp};
    memcpy(mono->at + i + 1 - gone, a->at + i + 1, (a->count - i - 1) * sizeof *a->at);
    if (a->at[i].atom->kind == ETCH_SYM_VAR) {
        /* variables come first */
        bool has_var = mono->count > 0 && mono->at[0].atom->kind == ETCH_SYM_VAR;
        mono->degree = a->degree - 1;
        mono->depth = a->depth;
        mono->flags = has_var ? a->flags : a->flags & ~(uint32_t)ETCH_SYM_HAS_VAR;
    } else {
        describe(mono);
    }
    return add(sym, mono, probe);
}

const sym_mono *sym_mono_of(etch_sym *sym, sym_atom *atom, int64_t exp)
{
    if (exp == 0)
        return intern(sym, NULL, 0, 0);
    sym_power power = {atom, sym_checked_exponent(sym, exp)};
    return intern(sym, &power, 1, atom->node.hash * (uint64_t)exp);
}

/* Walks two monomials in step: calls `pick` with the exponents of every atom in either, keeps what it
 * returns. */
static const sym_mono *combine(etch_sym *sym, const sym_mono *a, const sym_mono *b,
                               int64_t (*pick)(int64_t, int64_t))
{
    sym_power *out = powers_for(sym, (size_t)a->count + b->count);
    sym_count_work(sym, (uint64_t)a->count + b->count);
    uint32_t count = 0, i = 0, j = 0;
    uint64_t hash = 0;
    while (i < a->count || j < b->count) {
        const sym_power *left = i < a->count ? &a->at[i] : NULL, *right = j < b->count ? &b->at[j] : NULL;
        bool from_left = left && (!right || left->atom->label <= right->atom->label);
        bool from_right = right && (!left || right->atom->label <= left->atom->label);
        int64_t exp = pick(from_left ? left->exp : 0, from_right ? right->exp : 0);
        if (exp != 0) {
            sym_atom *atom = from_left ? left->atom : right->atom;
            out[count++] = (sym_power){atom, sym_checked_exponent(sym, exp)};
            hash += atom->node.hash * (uint64_t)exp;
        }
        i += from_left;
        j += from_right;
    }
    return intern(sym, out, count, hash);
}

static int64_t sum(int64_t a, int64_t b)
{
    return a + b;
}
static int64_t difference(int64_t a, int64_t b)
{
    return a - b;
}
static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}
static int64_t greatest(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

const sym_mono *sym_mono_mul(etch_sym *sym, const sym_mono *a, const sym_mono *b)
{
    if (a->count == 0)
        return b;
    return b->count == 0 ? a : combine(sym, a, b, sum);
}

const sym_mono *sym_mono_div(etch_sym *sym, const sym_mono *a, const sym_mono *b)
{
    return b->count == 0 ? a : combine(sym, a, b, difference);
}

const sym_mono *sym_mono_meet(etch_sym *sym, const sym_mono *a, const sym_mono *b, int sign)
{
    return a == b ? a : combine(sym, a, b, sign < 0 ? least : greatest);
}

const sym_mono *sym_mono_part(etch_sym *sym, const sym_mono *a, int sign)
{
    if (a->flags & ETCH_SYM_HAS_NEGATIVE)
        return combine(sym, a, sym->unit, sign < 0 ? least : greatest);
    sym_count_work(sym, a->count);
    return sign < 0 ? sym->unit : a;
}

const sym_mono *sym_mono_pow(etch_sym *sym, const sym_mono *a, int64_t exponent)
{
    if (exponent == 1 || a->count == 0)
        return a;
    if (exponent == 0)
        return sym->unit;
    (void)sym_checked_exponent(sym, exponent);
    sym_power *out = powers_for(sym, a->count);
    for (uint32_t i = 0; i < a->count; i++)
        out[i] = (sym_power){a->at[i].atom, sym_checked_exponent(sym, a->at[i].exp * exponent)};
    return intern(sym, out, a->count, a->node.hash * (uint64_t)exponent);
}

int sym_mono_compare(const sym_mono *a, const sym_mono *b)
{
    if (a == b)
        return 0;
    uint32_t i = 0;
    while (i < a->count && i < b->count && a->at[i].atom == b->at[i].atom && a->at[i].exp == b->at[i].exp)
        i++;
    bool from_a = i < a->count && (i == b->count || a->at[i].atom->label <= b->at[i].atom->label);
    bool from_b = i < b->count && (i == a->count || b->at[i].atom->label <= a->at[i].atom->label);
    int32_t left = from_a ? a->at[i].exp : 0, right = from_b ? b->at[i].exp : 0;
    return left > right ? 1 : -1;
}

int32_t sym_mono_exp(const sym_mono *a, const sym_atom *atom)
{
    for (uint32_t i = 0; i < a->count; i++)
        if (a->at[i].atom == atom)
            return a->at[i].exp;
    return 0;
}
