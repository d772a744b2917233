/* Division, and the canonical form of what it leaves behind.
 *
 * A quotient that is no Laurent polynomial is kept as  Q + R * 1/(D):  D is a polynomial of at least two
 * terms, without common factor of its terms, with coprime integer coefficients, the leading one positive;
 * D and R have no common factor; no term of R is divisible by the leading monomial of D. Q, R and D are
 * then unique, whatever the way to the quotient was: all of it goes through `sym_join`.
 *
 * The greatest common divisor is looked for within a budget that depends on the operands alone; beyond it
 * the quotient stays as it is, correct but perhaps not in lowest terms. */
#include "symbolic/symbolic_int.h"

enum { GCD_BUDGET = 200000, GCD_DEPTH = 40 };

typedef struct gcd_budget {
    /* products of terms */
    int64_t left;
    int depth;
} gcd_budget;

static bool spend(gcd_budget *b, uint64_t work)
{
    b->left = work < (uint64_t)GCD_BUDGET ? b->left - (int64_t)work - 1 : -1;
    return b->left >= 0;
}

/* ---- division of polynomials --------------------------------------------------------------------------- */

/* m / by, or NULL when that has a negative exponent where `by` has a positive one. */
static const sym_mono *monomial_quotient(etch_sym *sym, const sym_mono *m, const sym_mono *by)
{
    for (uint32_t i = 0; i < by->count; i++)
        if (sym_mono_exp(m, by->at[i].atom) < by->at[i].exp)
            return NULL;
    return sym_mono_div(sym, m, by);
}

/* Divides a by b: a = quotient * b + remainder, no term of the remainder divisible by the leading monomial
 * of b. With `exact` set gives up (false) at the first term of a remainder, or when the budget is spent. */
static bool divide(etch_sym *sym, etch_expr a, etch_expr b, gcd_budget *exact, etch_expr *quotient,
                   etch_expr *remainder)
{
    sym_terms *left = sym_terms_new(sym), *next = sym_terms_new(sym);
    sym_terms *whole = sym_terms_new(sym), *rest = sym_terms_new(sym);
    sym_coef inverse = sym_coef_inv(sym, b->terms[0].coef);
    uint64_t work = 0;
    bool ok = true;
    sym_terms_push_all(sym, left, a);
    for (uint32_t i = 0; ok && i < left->count;) {
        sym_term term = left->at[i++];
        const sym_mono *factor = monomial_quotient(sym, term.mono, b->terms[0].mono);
        if (!factor) {
            sym_terms_push(sym, rest, term.mono, term.coef);
            ok = !exact;
            continue;
        }
        sym_coef coef = sym_coef_mul(sym, term.coef, inverse);
        sym_terms_push(sym, whole, factor, coef);
        next->count = 0;
        sym_terms_add_scaled(sym, next, left->at + i, left->count - i, b->terms + 1, b->count - 1, factor,
                             sym_coef_neg(sym, coef));
        sym_terms *swap = left;
        left = next;
        next = swap;
        i = 0;
        work += left->count + b->count;
        ok = !exact || spend(exact, left->count + b->count);
        if (work > ETCH_SYM_MAX_WORK / 8)
            sym_limit(sym);
    }
    sym_terms_free(sym, left);
    sym_terms_free(sym, next);
    *quotient = sym_terms_collect(sym, whole);
    *remainder = sym_terms_finish(sym, rest);
    return ok;
}

static etch_expr divide_exactly(etch_sym *sym, etch_expr a, etch_expr b, gcd_budget *budget)
{
    etch_expr quotient, remainder;
    return divide(sym, a, b, budget, &quotient, &remainder) ? quotient : NULL;
}

/* ---- greatest common divisors -------------------------------------------------------------------------- */

/* Takes out the content, rational and monomial, and makes the leading coefficient positive. */
static etch_expr primitive(etch_sym *sym, etch_expr a)
{
    if (a->count == 0)
        return a;
    sym_coef content = sym_content(sym, a);
    if (sym_coef_sign(a->terms[0].coef) < 0)
        content = sym_coef_neg(sym, content);
    const sym_mono *mono = sym_mono_pow(sym, sym_mono_content(sym, a), -1);
    return sym_scale(sym, a, mono, sym_coef_inv(sym, content));
}

static int32_t degree_in(etch_expr a, const sym_atom *x)
{
    int32_t most = 0;
    for (uint32_t i = 0; i < a->count; i++) {
        int32_t exp = sym_mono_exp(a->terms[i].mono, x);
        most = exp > most ? exp : most;
    }
    return most;
}

/* The coefficient of x^exp in `a`, a polynomial in the other atoms. */
static etch_expr coefficient(etch_sym *sym, etch_expr a, sym_atom *x, int32_t exp)
{
    const sym_mono *power = sym_mono_of(sym, x, exp);
    sym_terms *out = sym_terms_new(sym);
    for (uint32_t i = 0; i < a->count; i++)
        if (sym_mono_exp(a->terms[i].mono, x) == exp)
            sym_terms_push(sym, out, sym_mono_div(sym, a->terms[i].mono, power), a->terms[i].coef);
    return sym_terms_finish(sym, out);
}

/* Leaves in every atom of `a` its greatest exponent there, marked with the number that is returned. */
static uint64_t mark_degrees(etch_sym *sym, etch_expr a)
{
    const uint64_t mark = ++sym->degree_marks;
    for (uint32_t i = 0; i < a->count; i++)
        for (uint32_t j = 0; j < a->terms[i].mono->count; j++) {
            const sym_power *power = &a->terms[i].mono->at[j];
            if (power->atom->degree_mark != mark)
                power->atom->degree = 0;
            power->atom->degree_mark = mark;
            if (power->exp > power->atom->degree)
                power->atom->degree = power->exp;
        }
    return mark;
}

/* An atom of `a` that does not occur in `b`, or NULL. */
static sym_atom *atom_missing_from(etch_sym *sym, etch_expr a, etch_expr b)
{
    const uint64_t mark = mark_degrees(sym, b);
    for (uint32_t i = 0; i < a->count; i++)
        for (uint32_t j = 0; j < a->terms[i].mono->count; j++) {
            sym_atom *atom = a->terms[i].mono->at[j].atom;
            if (atom->degree_mark != mark || atom->degree == 0)
                return atom;
        }
    return NULL;
}

/* The atom of `a` with the least degree in it. */
static sym_atom *main_atom(etch_sym *sym, etch_expr a)
{
    sym_atom *best = NULL;
    (void)mark_degrees(sym, a);
    for (uint32_t i = 0; i < a->count; i++)
        for (uint32_t j = 0; j < a->terms[i].mono->count; j++) {
            sym_atom *atom = a->terms[i].mono->at[j].atom;
            if (!best || atom->degree < best->degree ||
                (atom->degree == best->degree && atom->label < best->label))
                best = atom;
        }
    return best;
}

static etch_expr gcd(etch_sym *sym, etch_expr a, etch_expr b, gcd_budget *budget);

/* gcd of `b` and all coefficients of `a` as a polynomial in x; b == 0: of the coefficients alone. */
static etch_expr fold_coefficients(etch_sym *sym, etch_expr a, sym_atom *x, etch_expr b, gcd_budget *budget)
{
    for (int32_t exp = degree_in(a, x); exp >= 0 && b != sym->one; exp--) {
        if (!spend(budget, a->count))
            return sym->one;
        etch_expr c = coefficient(sym, a, x, exp);
        if (c->count)
            b = b->count ? gcd(sym, b, primitive(sym, c), budget) : primitive(sym, c);
    }
    return b;
}

/* The remainder of a power of b's leading coefficient times a, divided by b, as polynomials in x; NULL
 * beyond the budget. */
static etch_expr pseudo_remainder(etch_sym *sym, etch_expr a, etch_expr b, sym_atom *x, gcd_budget *budget)
{
    int32_t degree = degree_in(b, x);
    etch_expr leading = coefficient(sym, b, x, degree);
    for (int32_t d = degree_in(a, x); d >= degree && a->count; d = degree_in(a, x)) {
        etch_expr top = coefficient(sym, a, x, d);
        if (!spend(budget, (uint64_t)a->count * leading->count + (uint64_t)b->count * top->count))
            return NULL;
        top = sym_scale(sym, top, sym_mono_of(sym, x, d - degree), ETCH_SYM_ONE);
        a = sym_sub(sym, sym_mul_plain(sym, leading, a), sym_mul_plain(sym, top, b));
    }
    return a;
}

/* Euclid's algorithm for two primitive polynomials in the same atoms. */
static etch_expr euclid(etch_sym *sym, etch_expr a, etch_expr b, gcd_budget *budget)
{
    sym_atom *x = main_atom(sym, b);
    etch_expr a_content = fold_coefficients(sym, a, x, sym->zero, budget);
    etch_expr b_content = fold_coefficients(sym, b, x, sym->zero, budget);
    etch_expr common = gcd(sym, a_content, b_content, budget);
    a = divide_exactly(sym, a, a_content, budget);
    b = divide_exactly(sym, b, b_content, budget);
    if (a && b && degree_in(a, x) < degree_in(b, x)) {
        etch_expr swap = a;
        a = b;
        b = swap;
    }
    while (a && b) {
        etch_expr rest = pseudo_remainder(sym, a, b, x, budget);
        if (!rest)
            break;
        if (rest->count == 0)
            return primitive(sym, sym_mul_plain(sym, common, b));
        if (degree_in(rest, x) == 0)
            return common;
        rest = primitive(sym, rest);
        a = b;
        b = divide_exactly(sym, rest, fold_coefficients(sym, rest, x, sym->zero, budget), budget);
    }
    return sym->one;
}

/* Of two primitive polynomials: their greatest common divisor, or 1 when the budget does not suffice. */
static etch_expr gcd(etch_sym *sym, etch_expr a, etch_expr b, gcd_budget *budget)
{
    if (a == b)
        return a;
    if (sym_is_constant(a) || sym_is_constant(b) || budget->depth == 0 || !spend(budget, a->count + b->count))
        return sym->one;
    budget->depth--;
    etch_expr result;
    sym_atom *x;
    if ((x = atom_missing_from(sym, a, b)))
        result = fold_coefficients(sym, a, x, b, budget);
    else if ((x = atom_missing_from(sym, b, a)))
        result = fold_coefficients(sym, b, x, a, budget);
    else
        result = euclid(sym, a, b, budget);
    budget->depth++;
    return budget->left < 0 ? sym->one : result;
}

/* ---- fractions ----------------------------------------------------------------------------------------- */

sym_fraction sym_split(etch_sym *sym, etch_expr a)
{
    etch_expr den = sym->one;
    if (!(a->flags & ETCH_SYM_HAS_RECIP))
        return (sym_fraction){a, den};
    sym_terms *whole = sym_terms_new(sym), *rest = sym_terms_new(sym);
    for (uint32_t i = 0; i < a->count; i++) {
        const sym_mono *mono = a->terms[i].mono;
        if (!(mono->flags & ETCH_SYM_HAS_RECIP)) {
            sym_terms_push(sym, whole, mono, a->terms[i].coef);
            continue;
        }
        /* 1/(sum) is the last kind of atom in the order */
        sym_atom *recip = mono->at[mono->count - 1].atom;
        den = recip->args[0];
        sym_terms_push(sym, rest, sym_mono_div(sym, mono, sym_mono_of(sym, recip, 1)), a->terms[i].coef);
    }
    etch_expr num = sym_mul_plain(sym, sym_terms_collect(sym, whole), den);
    return (sym_fraction){sym_add(sym, num, sym_terms_collect(sym, rest)), den};
}

/* num/den for coprime num and den, den as described above. */
static etch_expr assemble(etch_sym *sym, etch_expr num, etch_expr den)
{
    etch_expr whole, rest;
    divide(sym, num, den, NULL, &whole, &rest);
    const sym_mono *recip = sym_recip_atom(sym, den)->terms[0].mono;
    sym_terms *out = sym_terms_new(sym);
    sym_terms_push_all(sym, out, whole);
    for (uint32_t i = 0; i < rest->count; i++)
        sym_terms_push(sym, out, sym_mono_mul(sym, rest->terms[i].mono, recip), rest->terms[i].coef);
    return sym_terms_collect(sym, out);
}

etch_expr sym_join(etch_sym *sym, etch_expr num, etch_expr den)
{
    if (num->count == 0)
        return num;
    if (den->count == 1)
        return sym_scale(sym, num, sym_mono_pow(sym, den->terms[0].mono, -1),
                         sym_coef_inv(sym, den->terms[0].coef));
    etch_expr base = primitive(sym, den);
    const sym_mono *unit = sym_mono_div(sym, base->terms[0].mono, den->terms[0].mono);
    num = sym_scale(sym, num, unit, sym_coef_div(sym, base->terms[0].coef, den->terms[0].coef));

    const sym_mono *shift = sym_mono_content(sym, num);
    etch_expr shifted = sym_scale(sym, num, sym_mono_pow(sym, shift, -1), ETCH_SYM_ONE);
    gcd_budget budget = {GCD_BUDGET, GCD_DEPTH};
    etch_expr whole = divide_exactly(sym, shifted, base, &budget);
    if (whole)
        return sym_scale(sym, whole, shift, ETCH_SYM_ONE);
    etch_expr common = gcd(sym, primitive(sym, shifted), base, &budget);
    if (common != sym->one) {
        etch_expr left = divide_exactly(sym, shifted, common, &budget);
        etch_expr below = divide_exactly(sym, base, common, &budget);
        if (left && below)
            return sym_join(sym, sym_scale(sym, left, shift, ETCH_SYM_ONE), below);
    }
    return assemble(sym, num, base);
}

etch_expr sym_div(etch_sym *sym, etch_expr a, etch_expr b)
{
    if (b->count == 0)
        return NULL;
    if (a == b)
        return sym->one;
    sym_fraction x = sym_split(sym, a), y = sym_split(sym, b);
    if (x.den == sym->one && y.den == sym->one)
        return sym_join(sym, a, b);
    return sym_join(sym, sym_mul_plain(sym, x.num, y.den), sym_mul_plain(sym, x.den, y.num));
}
