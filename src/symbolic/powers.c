/* Powers of two: pow2(x) is 1 where x is 1, 2, 4, .., else 0.
 *
 * The argument is taken apart where that loses nothing, so that one fact serves many formulas:
 *
 *     pow2(2^k * x) = pow2(x)              x and 2^k * x integers
 *     pow2(m * x) = 0                      x an integer, m > 1 an odd number
 *     pow2(x) = 0                          x <= 0, or an integer plus a fraction
 *     pow2(x^e * r) = pow2(x) * pow2(r)    x >= 0, x and r integers: a product of positive integers is a
 *                                          power of two when each of them is
 *     pow2(x/d) = pow2(x)                  d a power of two, x/d an integer
 *
 * What is left is looked up among what facts say of it, and is an atom otherwise. Of two powers of two, the
 * smaller one divides the other. */
#include "symbolic/symbolic_int.h"

enum { STEPS = 100 /* of a search through facts d | n */ };

/* The odd part of a positive integer. */
static sym_coef odd_part(etch_sym *sym, sym_coef a)
{
    return sym_coef_div(sym, a, sym_coef_pow(sym, ETCH_SYM_TWO, sym_coef_twos(a)));
}

/* ---- what facts say ------------------------------------------------------------------------------------ */

static const sym_known_power *known_power(const etch_sym *sym, etch_expr x)
{
    for (uint32_t i = 0; i < sym->known_powers.count; i++)
        if (sym->known_powers.at[i].x == x)
            return &sym->known_powers.at[i];
    return NULL;
}

static bool is_power_by(etch_sym *sym, sym_atom *atom, uint32_t *steps);

/* Are the number and all atoms above (`side` > 0) or below the line powers of two? */
static bool side_is_power(etch_sym *sym, const sym_mono *mono, sym_coef number, int side, uint32_t *steps)
{
    if (*steps == 0 || !sym_coef_is_one(odd_part(sym, number)))
        return false;
    --*steps;
    for (uint32_t i = 0; i < mono->count; i++)
        if (mono->at[i].exp * side > 0 && !is_power_by(sym, mono->at[i].atom, steps))
            return false;
    return true;
}

/* Is the positive `atom` below the line of an integer that has powers of two above? */
static bool divides_power(etch_sym *sym, const sym_atom *atom, uint32_t *steps)
{
    for (uint32_t i = 0; i < sym->ratios.count; i++) {
        const sym_ratio *ratio = &sym->ratios.at[i];
        if (sym_mono_exp(ratio->mono, atom) < 0 &&
            side_is_power(sym, ratio->mono, sym_coef_numerator(sym, ratio->coef), 1, steps)) {
            sym_used_fact(sym, ratio->fact);
            return true;
        }
    }
    return false;
}

/* Is the positive `atom` above the line of a power of two that has powers of two below? */
static bool is_part_of_power(etch_sym *sym, const sym_atom *atom, uint32_t *steps)
{
    for (uint32_t i = 0; i < sym->known_powers.count; i++) {
        const sym_known_power *known = &sym->known_powers.at[i];
        const sym_term *x = known->x->terms;
        if (known->is_power && known->x->count == 1 && sym_mono_exp(x->mono, atom) > 0 &&
            side_is_power(sym, x->mono, sym_coef_denominator(sym, x->coef), -1, steps)) {
            sym_used_fact(sym, known->fact);
            return true;
        }
    }
    return false;
}

static bool is_power_by(etch_sym *sym, sym_atom *atom, uint32_t *steps)
{
    const sym_known_power *known = known_power(sym, atom->self);
    if (known) {
        sym_used_fact(sym, known->fact);
        return known->is_power;
    }
    return sym_atom_is_integer(sym, atom) && sym_atom_is_positive(sym, atom, true) &&
           (divides_power(sym, atom, steps) || is_part_of_power(sym, atom, steps));
}

/* Is the integer `atom` a power of two wherever the facts hold: because one says so, or because it divides
 * one? */
static bool is_power(etch_sym *sym, sym_atom *atom)
{
    uint32_t steps = STEPS;
    return sym->power_sources > 0 && is_power_by(sym, atom, &steps);
}

bool sym_is_odd_part_of_power(etch_sym *sym, const sym_mono *mono, sym_coef coef)
{
    return mono->count == 1 && mono->at[0].exp > 0 &&
           !sym_coef_is_one(odd_part(sym, sym_coef_denominator(sym, coef))) &&
           is_power(sym, mono->at[0].atom);
}

/* Does an odd number above 1 divide x, or is it known to be no power? */
static bool is_no_power(etch_sym *sym, etch_expr x)
{
    const sym_known_power *known = known_power(sym, x);
    if (known)
        return !known->is_power;
    for (uint32_t i = 0; x->count == 1 && i < sym->ratios.count; i++)
        if (sym->ratios.at[i].mono == x->terms[0].mono && sym_coef_is_one(x->terms[0].coef) &&
            !sym_coef_is_one(odd_part(sym, sym_coef_denominator(sym, sym->ratios.at[i].coef))))
            return true;
    return sym_is_nonnegative(sym, sym_neg(sym, x));
}

bool sym_is_divisor_of_power(etch_sym *sym, const sym_mono *mono, sym_coef coef)
{
    const sym_mono *above = sym->unit;
    sym_coef num = sym_coef_numerator(sym, sym_coef_abs(sym, coef)), den = sym_coef_denominator(sym, coef);
    if (sym->power_sources == 0 || !sym_coef_is_one(odd_part(sym, den)))
        return false;
    for (uint32_t i = 0; i < mono->count; i++) {
        sym_power power = mono->at[i];
        if (!sym_atom_is_integer(sym, power.atom))
            return false;
        if (is_power(sym, power.atom))
            above = sym_mono_mul(sym, above, sym_mono_of(sym, power.atom, power.exp));
        else if (power.exp < 0)
            return false;
    }
    const sym_mono *below = sym_mono_pow(sym, sym_mono_part(sym, above, -1), -1);
    etch_expr dividend =
        sym_monomial(sym, sym_mono_part(sym, above, 1), sym_coef_div(sym, num, odd_part(sym, num)));
    return sym_is_nonnegative(sym, sym_sub(sym, dividend, sym_monomial(sym, below, den)));
}

/* ---- building ------------------------------------------------------------------------------------------ */

/* x without the powers of two in its coefficients, as far as it stays an integer; those below the line go
 * when x is one. */
static etch_expr without_twos(etch_sym *sym, etch_expr x)
{
    enum { SMALL = 64 };
    sym_coef content = sym_content(sym, x);
    uint32_t above = sym_coef_twos(sym_coef_numerator(sym, content));
    uint32_t below = sym_coef_twos(sym_coef_denominator(sym, content));
    if (below > 0 && sym_is_integer(sym, x))
        return sym_scale(sym, x, sym->unit, sym_coef_pow(sym, ETCH_SYM_TWO, below));
    for (uint32_t twos = above; twos > 0; twos = twos > SMALL ? SMALL : twos - 1) {
        etch_expr rest =
            sym_scale(sym, x, sym->unit, sym_coef_inv(sym, sym_coef_pow(sym, ETCH_SYM_TWO, twos)));
        if (sym_is_integer(sym, rest))
            return rest;
    }
    return x;
}

/* The integer x without divisors that are powers of two. */
static etch_expr without_power_divisors(etch_sym *sym, etch_expr x)
{
    const sym_mono *content = sym_mono_content(sym, x);
    if (!(content->flags & ETCH_SYM_HAS_NEGATIVE) || !sym_is_integer(sym, x))
        return x;
    for (uint32_t i = 0; i < content->count; i++) {
        sym_power power = content->at[i];
        if (power.exp < 0 && is_power(sym, power.atom))
            x = sym_scale(sym, x, sym_mono_of(sym, power.atom, -power.exp), ETCH_SYM_ONE);
    }
    return x;
}

/* The variables and functions that all terms of x share, as far as they are integers that are never negative:
 * their product without exponents, and in `*rest` x without them. */
static const sym_mono *shared_factors(etch_sym *sym, etch_expr x, etch_expr *rest)
{
    const sym_mono *content = sym_mono_content(sym, x), *taken = sym->unit;
    *rest = x;
    for (uint32_t i = 0; i < content->count; i++) {
        sym_power power = content->at[i];
        if (power.exp < 0 || !sym_atom_is_integer(sym, power.atom) ||
            !sym_is_nonnegative(sym, power.atom->self))
            continue;
        etch_expr left = sym_scale(sym, *rest, sym_mono_of(sym, power.atom, -power.exp), ETCH_SYM_ONE);
        if (!sym_is_integer(sym, left))
            continue;
        taken = sym_mono_mul(sym, taken, sym_mono_of(sym, power.atom, 1));
        *rest = left;
    }
    return taken;
}

/* Is x an odd number above 1 times an integer? */
static bool has_odd_factor(etch_sym *sym, etch_expr x)
{
    sym_coef odd = odd_part(sym, sym_coef_numerator(sym, sym_content(sym, x)));
    return !sym_coef_is_one(odd) && sym_is_integer(sym, sym_scale(sym, x, sym->unit, sym_coef_inv(sym, odd)));
}

/* Is x an integer plus a fraction? */
static bool is_never_integer(etch_sym *sym, etch_expr x)
{
    const sym_term *last = &x->terms[x->count - 1];
    if (last->mono->count > 0 || sym_coef_is_integer(last->coef))
        return false;
    return sym_is_integer(sym, sym_sub(sym, x, sym_constant(sym, last->coef)));
}

/* pow2(x) of what cannot be taken apart. */
static etch_expr indivisible(etch_sym *sym, etch_expr x)
{
    sym_atom *atom = sym_atom_of(x);
    const sym_known_power *known = known_power(sym, x);
    if (atom && atom->kind == ETCH_SYM_POW2)
        return x; /* 1 or 0 */
    if (x == sym->one || (known && known->is_power) || (atom && is_power(sym, atom)))
        return sym->one;
    if (is_no_power(sym, x))
        return sym->zero;
    return sym_atom_intern(sym, ETCH_SYM_POW2, 1, &x)->self;
}

etch_expr sym_pow2(etch_sym *sym, etch_expr a)
{
    if (sym_is_constant(a))
        return sym_coef_is_power_of_two(sym_constant_of(a)) ? sym->one : sym->zero;
    if (a->flags & ETCH_SYM_HAS_RECIP)
        return indivisible(sym, a);
    a = without_power_divisors(sym, without_twos(sym, a));
    if (has_odd_factor(sym, a) || is_never_integer(sym, a))
        return sym->zero;
    etch_expr rest;
    const sym_mono *factors = shared_factors(sym, a, &rest);
    etch_expr result = sym_is_constant(rest) ? sym_pow2(sym, rest) : indivisible(sym, rest);
    for (uint32_t i = 0; i < factors->count && result->count; i++)
        result = sym_mul(sym, result, indivisible(sym, factors->at[i].atom->self));
    return result;
}

const sym_mono *sym_powers_of(etch_expr a)
{
    if (a->count != 1 || !sym_coef_is_one(a->terms[0].coef))
        return NULL;
    const sym_mono *mono = a->terms[0].mono;
    for (uint32_t i = 0; i < mono->count; i++)
        if (mono->at[i].atom->kind != ETCH_SYM_POW2 || mono->at[i].exp < 0)
            return NULL;
    return mono->count ? mono : NULL;
}

/* ---- the entry points ---------------------------------------------------------------------------------- */

etch_expr etch_pow2(etch_sym *sym, etch_expr a)
{
    a = sym_refresh(sym, a);
    return a ? sym_pow2(sym, a) : NULL;
}
