/* Cases by remainders: what holds for v = m*w + r with every r of 0..m-1 holds for every integer v. It
 * decides what floors with numbers below the line say together (Hermite's identity), and which polynomials
 * with rational coefficients take integer values (s*(s + 1)/2). */
#include "symbolic/symbolic_int.h"

enum {
    /* remainders of all variables together */
    MOST_CASES = 36,
    MOST_MODULUS = 12,
    /* variables */
    MOST_SPLIT = 3,
    /* opaque atoms inside opaque atoms */
    LOOK_INSIDE = 4,
    /* of each expression: every case expands them */
    MOST_TERMS = 64,
    /* of a variable */
    MOST_POWER = 6
};

/* What is split: variables that occur with fractions, and the common denominator of these. */
typedef struct split {
    uint32_t modulus;
    sym_atom *vars[MOST_SPLIT];
    uint32_t count;
} split;

static bool add_variable(split *s, sym_atom *var)
{
    if (var->is_real || var->lower == ETCH_SYM_UNBOUNDED || var->bound_level > 0)
        return false;
    for (uint32_t i = 0; i < s->count; i++)
        if (s->vars[i] == var)
            return true;
    if (s->count == MOST_SPLIT)
        return false;
    s->vars[s->count++] = var;
    return true;
}

static bool add_denominator(split *s, sym_coef coef)
{
    if (!sym_coef_is_small(coef) || coef.den > MOST_MODULUS)
        return false;
    uint32_t least = s->modulus, den = (uint32_t)coef.den;
    while (least % den != 0)
        least += s->modulus;
    s->modulus = least;
    return least <= MOST_MODULUS;
}

/* Notes what is fractional in `a`; false when that is too much. */
static bool look(split *s, etch_expr a, uint32_t depth)
{
    if (a->count > MOST_TERMS || (a->flags & ETCH_SYM_HAS_RECIP))
        return false;
    for (uint32_t i = 0; i < a->count; i++) {
        const sym_term *term = &a->terms[i];
        bool fraction = !sym_coef_is_integer(term->coef);
        if (fraction && !add_denominator(s, term->coef))
            return false;
        for (uint32_t j = 0; j < term->mono->count; j++) {
            sym_atom *atom = term->mono->at[j].atom;
            if (term->mono->at[j].exp > MOST_POWER)
                return false;
            if (atom->kind == ETCH_SYM_VAR && fraction && !add_variable(s, atom))
                return false;
            for (uint32_t k = 0; k < atom->count; k++)
                if (depth == 0 || !look(s, atom->args[k], depth - 1))
                    return false;
        }
    }
    return true;
}

/* The variable of proofs that stands for the quotient of the i-th variable that is split. */
static sym_atom *quotient(etch_sym *sym, uint32_t i)
{
    while (sym->quotients.count <= i)
        ETCH_PUSH(sym->arena, &sym->quotients, sym_atom_new_var(sym, NULL, 0));
    return sym->quotients.at[i];
}

/* Every remainder of variable `i` and of those behind it. */
static bool each_case(etch_sym *sym, const split *s, uint32_t i, etch_expr a, sym_claim *holds)
{
    if (i >= s->count || i >= MOST_SPLIT)
        return holds(sym, a);
    const sym_atom *var = s->vars[i];
    for (uint32_t r = 0; r < s->modulus; r++) {
        /* v = m*w + r from the least v on */
        etch_expr value = sym_scale(sym, quotient(sym, i)->self, sym->unit, sym_coef_of(sym, s->modulus, 1));
        value = sym_add(sym, value, sym_constant(sym, sym_coef_of(sym, var->lower, 1)));
        etch_expr here = sym_put(sym, a, var, sym_add_int(sym, value, r));
        if (!here || !each_case(sym, s, i + 1, here, holds))
            return false;
    }
    return true;
}

bool sym_holds_by_remainders(etch_sym *sym, etch_expr a, sym_claim *holds)
{
    split s = {.modulus = 1};
    uint32_t cases = 1;
    if (!look(&s, a, LOOK_INSIDE) || s.modulus == 1 || s.count == 0)
        return false;
    for (uint32_t i = 0; i < s.count; i++)
        cases *= s.modulus;
    return cases <= MOST_CASES && each_case(sym, &s, 0, a, holds);
}
