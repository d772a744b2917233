/* What is known to be an integer.
 *
 * A term is one when its coefficient is and no exponent is negative; or when facts repair it. A fact d | n
 * says that the ratio n/d is an integer, so a term is one when the term divided by a ratio is: one
 * "spends" n and gets d back. Facts chain this way (tp | heads, heads | hidden), and a search tries the
 * alternatives. */
#include "symbolic/symbolic_int.h"

enum { SPEND_DEPTH = 10, SPEND_STEPS = 400, MAX_PRODUCT = 3 };

bool sym_atom_is_integer(etch_sym *sym, sym_atom *atom)
{
    switch (atom->kind) {
    case ETCH_SYM_VAR:
        return !atom->is_real;
    case ETCH_SYM_FLOOR:
    case ETCH_SYM_POW2:
        return true;
    case ETCH_SYM_RECIP:
    ETCH_SYM_SHOWN_CASES:
        return false;
    case ETCH_SYM_SUM:
        return sym_is_integer(sym, atom->args[1]);
    case ETCH_SYM_MAX:
        break;
    }
    if (atom->checked == sym->epoch)
        return atom->is_integer;
    bool is_integer = true;
    for (uint32_t i = 0; is_integer && i < atom->count; i++)
        is_integer = sym_is_integer(sym, atom->args[i]);
    atom->is_integer = is_integer;
    atom->checked = sym->epoch;
    return is_integer;
}

static bool plainly_integer(etch_sym *sym, const sym_mono *mono, sym_coef coef)
{
    if (!sym_coef_is_integer(coef) || (mono->flags & ETCH_SYM_HAS_NEGATIVE))
        return false;
    for (uint32_t i = 0; i < mono->count; i++)
        if (!sym_atom_is_integer(sym, mono->at[i].atom))
            return false;
    return true;
}

static uint32_t count_of_max(const sym_mono *mono)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < mono->count; i++)
        count += mono->at[i].atom->kind == ETCH_SYM_MAX;
    return count;
}

/* c * m * max{..} takes only the values c * m * argument. */
static bool integer_for_each_argument(etch_sym *sym, const sym_mono *mono, sym_coef coef)
{
    if (count_of_max(mono) > MAX_PRODUCT)
        return false;
    for (uint32_t i = 0; i < mono->count; i++) {
        sym_atom *atom = mono->at[i].atom;
        if (atom->kind != ETCH_SYM_MAX || mono->at[i].exp != 1)
            continue;
        etch_expr factor = sym_monomial(sym, sym_mono_div(sym, mono, sym_mono_of(sym, atom, 1)), coef);
        for (uint32_t k = 0; k < atom->count; k++) {
            if (atom->args[k]->flags & ETCH_SYM_HAS_RECIP)
                return false;
            if (!sym_is_integer(sym, sym_mul_plain(sym, atom->args[k], factor)))
                return false;
        }
        return true;
    }
    return false;
}

typedef struct search {
    etch_sym *sym;
    uint32_t steps;
    sym_terms *seen;
} search;

static bool seen_before(search *s, const sym_mono *mono, sym_coef coef)
{
    for (uint32_t i = 0; i < s->seen->count; i++)
        if (s->seen->at[i].mono == mono && sym_coef_equal(s->seen->at[i].coef, coef))
            return true;
    sym_terms_push(s->sym, s->seen, mono, coef);
    return false;
}

/* Does the term hold the powers that the ratio's numerator asks for? */
static bool holds_numerator(const sym_mono *mono, const sym_mono *ratio)
{
    for (uint32_t i = 0; i < ratio->count; i++)
        if (ratio->at[i].exp > 0 && sym_mono_exp(mono, ratio->at[i].atom) < ratio->at[i].exp)
            return false;
    return true;
}

static bool spend_ratios(search *s, const sym_mono *mono, sym_coef coef, uint32_t depth)
{
    etch_sym *sym = s->sym;
    if (plainly_integer(sym, mono, coef))
        return true;
    if (depth == 0 || s->steps == 0 || seen_before(s, mono, coef))
        return false;
    s->steps--;
    for (uint32_t i = 0; i < sym->ratios.count; i++) {
        const sym_ratio *ratio = &sym->ratios.at[i];
        if (!holds_numerator(mono, ratio->mono))
            continue;
        const sym_mono *rest = sym_mono_div(sym, mono, ratio->mono);
        if (spend_ratios(s, rest, sym_coef_div(sym, coef, ratio->coef), depth - 1))
            return true;
    }
    return false;
}

bool sym_term_is_integer(etch_sym *sym, const sym_mono *mono, sym_coef coef)
{
    if (plainly_integer(sym, mono, coef))
        return true;
    if (mono->flags & ETCH_SYM_HAS_RECIP)
        return false;
    if ((mono->flags & ETCH_SYM_HAS_OPAQUE) && integer_for_each_argument(sym, mono, coef))
        return true;
    if (sym_is_divisor_of_power(sym, mono, coef))
        return true;
    if (!sym->ratios.count)
        return false;
    search s = {sym, SPEND_STEPS, sym_terms_new(sym)};
    bool found = spend_ratios(&s, mono, coef, SPEND_DEPTH);
    sym_terms_free(sym, s.seen);
    return found;
}

bool sym_is_integer(etch_sym *sym, etch_expr a)
{
    for (uint32_t i = 0; i < a->count; i++)
        if (!sym_term_is_integer(sym, a->terms[i].mono, a->terms[i].coef))
            return false;
    return true;
}

bool sym_atom_is_positive(etch_sym *sym, const sym_atom *atom, bool in_denominator)
{
    switch (atom->kind) {
    case ETCH_SYM_VAR:
        return atom->is_real || atom->lower >= 1 || (atom->lower == 0 && in_denominator);
    case ETCH_SYM_FLOOR:
        return sym_is_nonnegative(sym, in_denominator ? atom->self : sym_add_int(sym, atom->self, -1));
    case ETCH_SYM_MAX: /* one argument is 0 */
        for (uint32_t i = 0; !in_denominator && i < atom->count; i++)
            if (sym_is_positive(sym, atom->args[i]))
                return true;
        return in_denominator;
    case ETCH_SYM_SUM:
        if (in_denominator)
            return sym_is_nonnegative(sym, atom->args[1]);
        return sym_is_positive(sym, atom->args[0]) && sym_is_positive(sym, atom->args[1]);
    case ETCH_SYM_POW2:
        return in_denominator;
    case ETCH_SYM_RECIP:
        return sym_is_positive(sym, atom->args[0]);
    ETCH_SYM_SHOWN_CASES:
        break;
    }
    return false;
}

/* The least common denominator of all terms, when every atom is an integer and those below are positive. */
static bool common_denominator(etch_sym *sym, etch_expr a, etch_expr *q)
{
    sym_coef number = ETCH_SYM_ONE;
    const sym_mono *mono = sym->unit;
    for (uint32_t i = 0; i < a->count; i++) {
        const sym_term *term = &a->terms[i];
        for (uint32_t j = 0; j < term->mono->count; j++) {
            sym_atom *atom = term->mono->at[j].atom;
            if (!sym_atom_is_integer(sym, atom))
                return false;
            if (term->mono->at[j].exp < 0 && !sym_atom_is_positive(sym, atom, true))
                return false;
        }
        /* gcd of 1/q and 1/d is 1 over the least common multiple */
        sym_coef unit_fraction = sym_coef_inv(sym, sym_coef_denominator(sym, term->coef));
        number = sym_coef_gcd(sym, number, unit_fraction);
        mono = sym_mono_meet(sym, mono, sym_mono_part(sym, term->mono, -1), -1);
    }
    *q = sym_monomial(sym, sym_mono_pow(sym, mono, -1), sym_coef_inv(sym, number));
    return true;
}

bool sym_grid(etch_sym *sym, etch_expr a, etch_expr *q)
{
    if (!(a->flags & ETCH_SYM_HAS_RECIP))
        return common_denominator(sym, a, q);
    sym_fraction x = sym_split(sym, a);
    etch_expr below;
    if (!common_denominator(sym, x.num, q) || !common_denominator(sym, x.den, &below) || below != sym->one)
        return false;
    if (!sym_is_positive(sym, x.den))
        return false;
    *q = sym_mul_plain(sym, *q, x.den);
    return true;
}
