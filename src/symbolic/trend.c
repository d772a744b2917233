/* How an expression moves as one variable grows, and where it is 0, without trying values. */
#include "symbolic/symbolic_int.h"

/* Pieces of maxima that are looked at. */
enum { MAX_PIECES = 512 };

typedef struct mover {
    etch_sym *sym;
    sym_atom *var;
    etch_expr self;
    uint32_t pieces;
} mover;

static etch_trend trend_of(mover *m, etch_expr a);

static etch_trend both(etch_trend a, etch_trend b)
{
    if (a == ETCH_TREND_CONSTANT || a == b)
        return b;
    return b == ETCH_TREND_CONSTANT ? a : ETCH_TREND_UNKNOWN;
}

static etch_trend turned(etch_trend a)
{
    return a == ETCH_TREND_RISING ? ETCH_TREND_FALLING : a == ETCH_TREND_FALLING ? ETCH_TREND_RISING : a;
}

/* Of the difference of two neighbours. */
static etch_trend proved(mover *m, etch_expr a)
{
    etch_sym *sym = m->sym;
    etch_expr next = sym_add_int(sym, m->self, 1);
    etch_expr moved = etch_subst(sym, a, 1, &m->self, &next);
    etch_expr step = moved ? sym_sub(sym, moved, a) : NULL;
    if (!step)
        return ETCH_TREND_UNKNOWN;
    if (step->count == 0)
        return ETCH_TREND_CONSTANT;
    if (sym_is_nonnegative(sym, step))
        return ETCH_TREND_RISING;
    return sym_is_nonnegative(sym, sym_neg(sym, step)) ? ETCH_TREND_FALLING : ETCH_TREND_UNKNOWN;
}

static bool depends(const mover *m, const sym_atom *atom)
{
    return sym_depends_on(m->sym, atom->self, m->var);
}

/* The atom of this kind that depends on the variable and is a factor of the term, to the power 1; what
 * stands beside it does not depend on the variable. NULL: there is none. */
static sym_atom *alone_in(const mover *m, const sym_mono *mono, sym_kind kind)
{
    sym_atom *found = NULL;
    for (uint32_t i = 0; i < mono->count; i++) {
        if (!depends(m, mono->at[i].atom))
            continue;
        if (found || mono->at[i].exp != 1 || mono->at[i].atom->kind != kind)
            return NULL;
        found = mono->at[i].atom;
    }
    return found;
}

/* a = factor*atom + rest. False: the factor depends on the variable. */
static bool take_out(const mover *m, etch_expr a, const sym_atom *atom, etch_expr *factor, etch_expr *rest)
{
    etch_sym *sym = m->sym;
    sym_terms *with = sym_terms_new(sym), *without = sym_terms_new(sym);
    bool fine = true;
    for (uint32_t i = 0; i < a->count; i++) {
        const sym_mono *mono = a->terms[i].mono;
        const bool has = sym_mono_exp(mono, atom) != 0;
        fine = fine && (!has || alone_in(m, mono, atom->kind) == atom);
        sym_terms_push(sym, has ? with : without, mono, a->terms[i].coef);
    }
    etch_expr part = sym_terms_finish(sym, with);
    *rest = sym_terms_finish(sym, without);
    *factor = fine ? sym_div(sym, part, atom->self) : NULL;
    return *factor != NULL;
}

/* factor*max{..} + rest is the greatest, or the least, of what its arguments make of it. */
static etch_trend trend_of_pieces(mover *m, etch_expr a, const sym_atom *max)
{
    etch_expr factor, rest;
    if (!take_out(m, a, max, &factor, &rest))
        return ETCH_TREND_UNKNOWN;
    etch_trend all = ETCH_TREND_CONSTANT;
    for (uint32_t i = 0; i < max->count && all != ETCH_TREND_UNKNOWN; i++) {
        if (++m->pieces > MAX_PIECES)
            return ETCH_TREND_UNKNOWN;
        all = both(all, trend_of(m, sym_add(m->sym, rest, sym_mul(m->sym, factor, max->args[i]))));
    }
    return all;
}

/* factor*floor(R) moves as factor*R does. */
static etch_trend trend_of_floor(mover *m, etch_expr a, const sym_atom *floor)
{
    etch_expr factor, rest;
    if (!take_out(m, a, floor, &factor, &rest))
        return ETCH_TREND_UNKNOWN;
    etch_trend of = trend_of(m, floor->args[0]);
    if (sym_is_nonnegative(m->sym, sym_neg(m->sym, factor)))
        of = turned(of);
    else if (!sym_is_nonnegative(m->sym, factor))
        of = ETCH_TREND_UNKNOWN;
    return of == ETCH_TREND_UNKNOWN ? of : both(of, trend_of(m, rest));
}

static sym_atom *first_alone(const mover *m, etch_expr a, sym_kind kind)
{
    sym_atom *found = NULL;
    for (uint32_t i = 0; i < a->count && !found; i++)
        found = alone_in(m, a->terms[i].mono, kind);
    return found;
}

static etch_trend trend_of(mover *m, etch_expr a)
{
    if (!a)
        return ETCH_TREND_UNKNOWN;
    if (!sym_depends_on(m->sym, a, m->var))
        return ETCH_TREND_CONSTANT;
    const etch_trend known = proved(m, a);
    if (known != ETCH_TREND_UNKNOWN)
        return known;
    sym_atom *atom = first_alone(m, a, ETCH_SYM_MAX);
    if (atom)
        return trend_of_pieces(m, a, atom);
    atom = first_alone(m, a, ETCH_SYM_FLOOR);
    return atom ? trend_of_floor(m, a, atom) : ETCH_TREND_UNKNOWN;
}

etch_trend etch_trend_of(etch_sym *sym, etch_expr a, etch_expr var)
{
    mover m = {.sym = sym, .var = sym_var_of(var), .self = var};
    a = sym_refresh(sym, a);
    return a && m.var && !m.var->is_real ? trend_of(&m, a) : ETCH_TREND_UNKNOWN;
}

/* ---- where it is 0 ------------------------------------------------------------------------------------- */

/* a = slope*var + rest; false: it is something else. */
static bool split_linear(etch_sym *sym, etch_expr a, const sym_atom *var, etch_expr *slope, etch_expr *rest)
{
    sym_terms *with = sym_terms_new(sym), *without = sym_terms_new(sym);
    bool fine = true;
    for (uint32_t i = 0; i < a->count; i++) {
        const sym_mono *mono = a->terms[i].mono;
        const int32_t exp = sym_mono_exp(mono, var);
        for (uint32_t k = 0; k < mono->count; k++)
            fine = fine && (mono->at[k].atom == var || !sym_depends_on(sym, mono->at[k].atom->self, var));
        fine = fine && (exp == 0 || exp == 1);
        sym_terms_push(sym, exp ? with : without, mono, a->terms[i].coef);
    }
    etch_expr part = sym_terms_finish(sym, with);
    *rest = sym_terms_finish(sym, without);
    *slope = fine ? sym_div(sym, part, var->self) : NULL;
    return *slope != NULL;
}

etch_trend etch_linear_root(etch_sym *sym, etch_expr a, etch_expr var, etch_expr *root)
{
    sym_atom *atom = sym_var_of(var);
    etch_expr slope, rest;
    *root = NULL;
    a = sym_refresh(sym, a);
    if (!a || !atom)
        return ETCH_TREND_UNKNOWN;
    const sym_fraction x = sym_split(sym, a);
    const sym_mono *below = sym_mono_below(sym, x.num);
    /* Powers of the variable below the line are positive factors, as the variable is. */
    etch_expr num = x.num, den = x.den;
    if (sym_mono_exp(below, atom) < 0) {
        if (atom->lower < 1 && !atom->is_real)
            return ETCH_TREND_UNKNOWN;
        num = sym_scale(sym, num,
                        sym_mono_pow(sym, sym_mono_of(sym, atom, 1), -(int64_t)sym_mono_exp(below, atom)),
                        ETCH_SYM_ONE);
    }
    const bool positive = sym_is_positive(sym, den);
    if ((!positive && !sym_is_positive(sym, sym_neg(sym, den))) ||
        !split_linear(sym, num, atom, &slope, &rest))
        return ETCH_TREND_UNKNOWN;
    if (slope->count == 0)
        return ETCH_TREND_CONSTANT;
    const bool up = sym_is_positive(sym, slope);
    if (!up && !sym_is_positive(sym, sym_neg(sym, slope)))
        return ETCH_TREND_UNKNOWN;
    *root = sym_neg(sym, sym_div(sym, rest, slope));
    return up == positive ? ETCH_TREND_RISING : ETCH_TREND_FALLING;
}
