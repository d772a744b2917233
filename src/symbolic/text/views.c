/* Other ways to write a floor or max, which construction rewrote: with the atom X,
 *
 *     X = floor(N/n)         N % n = N - n*X                   X = N/n - (N % n)/n
 *     X = floor(F)           ceil(G) = X + r                   X = ceil(G) - r       for a number r
 *                            ceil(-F) = -X                     X = -ceil(-F)
 *     X = max{0, d..}        max(T + d.., T) = T + X           X = max(..) - T
 *                            min(T - d.., T) = T - X           X = T - min(..)
 *     X = max{0, d}          abs(d) = 2*X - d                  X = abs(d)/2 + d/2
 *                            [x >= 0] = max{0, x + 1} - max{0, x}
 *
 * Each is an identity between expressions: construction makes the same canonical form of both sides, which is
 * what `sym_view_holds` asks.
 */
#include <string.h>

#include "symbolic/text/text_int.h"

/* The views so far, and what they are of. */
typedef struct viewing {
    etch_sym *sym;
    sym_atom *atom;
    sym_view *at;
    uint32_t count;
} viewing;

static void add_view(viewing *v, sym_kind kind, uint32_t count, const etch_expr *args, sym_term scale,
                     etch_expr rest)
{
    if (v->count == ETCH_SYM_MAX_VIEWS)
        return;
    sym_atom *shown = sym_atom_intern(v->sym, kind, count, args);
    for (uint32_t i = 0; i < v->count; i++)
        if (v->at[i].shown == shown)
            return;
    etch_expr scaled = sym_scale(v->sym, shown->self, scale.mono, scale.coef);
    v->at[v->count++] = (sym_view){shown, scale, rest, sym_add(v->sym, scaled, rest)};
}

static sym_term number(etch_sym *sym, int64_t num, int64_t den)
{
    return (sym_term){sym->unit, sym_coef_of(sym, num, den)};
}

/* ---- floor --------------------------------------------------------------------------------------------- */

static void add_mod(viewing *v, const sym_rules *rules)
{
    etch_sym *sym = v->sym;
    etch_expr F = v->atom->args[0];
    sym_term n = sym_denominator(sym, F);
    if ((F->flags & ETCH_SYM_HAS_RECIP) || rules->mods == ETCH_SYM_NO_MODS ||
        (rules->mods == ETCH_SYM_MODS_BY_NUMBERS && n.mono->count > 0))
        return;
    etch_expr args[] = {sym_scale(sym, F, n.mono, n.coef), sym_monomial(sym, n.mono, n.coef)};
    if (args[1] != sym->one)
        add_view(v, ETCH_SYM_SHOWN_MOD, 2, args,
                 (sym_term){sym_mono_pow(sym, n.mono, -1), sym_coef_neg(sym, sym_coef_inv(sym, n.coef))}, F);
}

/* floor(F) = ceil(G) - r with G = F + 1/n less its integer part. */
static void add_ceil(viewing *v)
{
    etch_sym *sym = v->sym;
    etch_expr grid, F = v->atom->args[0];
    if (!sym_grid(sym, F, &grid))
        return;
    etch_expr G = sym_add(sym, F, sym_div(sym, sym->one, grid));
    sym_coef constant = ETCH_SYM_ZERO;
    for (uint32_t i = 0; i < G->count; i++)
        if (G->terms[i].mono->count == 0)
            constant = sym_coef_floor(sym, G->terms[i].coef);
    G = sym_sub(sym, G, sym_constant(sym, constant));
    if (G->count > F->count)
        return;
    etch_expr rest = sym_constant(sym, sym_coef_sub(sym, constant, ETCH_SYM_ONE));
    add_view(v, ETCH_SYM_SHOWN_CEIL, 1, &G, number(sym, 1, 1), rest);
}

/* floor(F) = -ceil(-F), of a difference of variables and numbers that is below 0 where these are 1. */
static void add_turned(viewing *v)
{
    etch_sym *sym = v->sym;
    etch_expr F = v->atom->args[0];
    sym_coef at_ones = ETCH_SYM_ZERO;
    bool above = false;
    for (uint32_t i = 0; i < F->count; i++) {
        at_ones = sym_coef_add(sym, at_ones, F->terms[i].coef);
        above = above || sym_coef_sign(F->terms[i].coef) > 0;
    }
    if (!above || (F->flags & ETCH_SYM_HAS_OPAQUE) || sym_coef_sign(at_ones) >= 0)
        return;
    etch_expr turned = sym_neg(sym, F);
    add_view(v, ETCH_SYM_SHOWN_CEIL, 1, &turned, number(sym, -1, 1), sym->zero);
}

/* ---- max ----------------------------------------------------------------------------------------------- */

/* [x >= 0] is made of max{0, x + 1} and max{0, x}, or of max{0, -x} and max{0, -x - 1}. */
static void add_brackets(viewing *v)
{
    etch_sym *sym = v->sym;
    if (v->atom->count != 2 || !sym_is_integer(sym, v->atom->args[1]))
        return;
    etch_expr d = v->atom->args[1], opposite = sym_neg(sym, d);
    etch_expr candidates[] = {sym_add_int(sym, d, -1), d, opposite, sym_add_int(sym, opposite, -1)};
    for (uint32_t i = 0; i < 4; i++) {
        etch_expr bracket = etch_iverson(sym, candidates[i]);
        sym_coef coef = bracket ? sym_coefficient(bracket, v->atom->self->terms[0].mono) : ETCH_SYM_ZERO;
        if (sym_coef_is_zero(coef))
            continue;
        sym_term scale = {sym->unit, sym_coef_inv(sym, coef)};
        etch_expr scaled = sym_scale(sym, bracket, scale.mono, scale.coef);
        add_view(v, ETCH_SYM_SHOWN_BRACKET, 1, &candidates[i], scale, sym_sub(sym, v->atom->self, scaled));
    }
}

static void add_abs(viewing *v)
{
    etch_sym *sym = v->sym;
    if (v->atom->count != 2)
        return;
    etch_expr d = v->atom->args[1];
    add_view(v, ETCH_SYM_SHOWN_ABS, 1, &d, number(sym, 1, 2),
             sym_scale(sym, d, sym->unit, sym_coef_of(sym, 1, 2)));
}

/* The max as one of T + d.., or as a min. */
static void add_shifted(viewing *v, sym_kind kind, etch_expr T)
{
    etch_sym *sym = v->sym;
    const sym_atom *atom = v->atom;
    const bool is_min = kind == ETCH_SYM_SHOWN_MIN;
    if (T->count == 0)
        return; /* a max is one already, and -min(-d, 0) is longer */
    etch_expr *args = sym_scratch_take(sym, atom->count, sizeof *args);
    for (uint32_t i = 0; i < atom->count; i++)
        args[i] = is_min ? sym_sub(sym, T, atom->args[i]) : sym_add(sym, T, atom->args[atom->count - 1 - i]);
    if (args[0]->count == 0) {
        args[0] = args[atom->count - 1]; /* a 0 comes last */
        args[atom->count - 1] = sym->zero;
    }
    add_view(v, kind, atom->count, args, number(sym, is_min ? -1 : 1, 1), is_min ? T : sym_neg(sym, T));
}

/* The coefficient of `mono` that all arguments but the 0 share; 0 for none. */
static sym_coef shared_coefficient(const sym_atom *atom, const sym_mono *mono)
{
    sym_coef shared = ETCH_SYM_ZERO;
    for (uint32_t i = 1; i < atom->count; i++) {
        sym_coef coef = sym_coefficient(atom->args[i], mono);
        if (i > 1 && !sym_coef_equal(coef, shared))
            return ETCH_SYM_ZERO;
        shared = coef;
    }
    return shared;
}

/* Those terms of d that all arguments but the 0 share, and that adding scale * factor * d would take from the
 * sum: T of a min, -T of a max. */
static etch_expr offered_terms(const viewing *v, etch_expr around, const sym_mono *factor, sym_coef scale)
{
    etch_sym *sym = v->sym;
    sym_terms *taken = sym_terms_new(sym);
    for (uint32_t i = 0; i < v->atom->args[1]->count; i++) {
        const sym_mono *mono = v->atom->args[1]->terms[i].mono;
        sym_coef coef = shared_coefficient(v->atom, mono);
        if (sym_coef_is_zero(coef))
            continue;
        sym_coef there = sym_coefficient(around, sym_mono_mul(sym, mono, factor));
        if (sym_coef_sign(there) * sym_coef_sign(coef) * sym_coef_sign(scale) < 0)
            sym_terms_push(sym, taken, mono, coef);
    }
    return sym_terms_finish(sym, taken);
}

/* What the number of the sum is to a max that stands in it as it is, less what `T` has of it already: where T
 * leaves no argument 0, each has a number of its own, which another one does not make longer. Where the max
 * is multiplied, what its terms have in common with others would be seen no more. */
static etch_expr offered_number(const viewing *v, etch_expr around, const sym_mono *factor, sym_coef scale,
                                etch_expr T)
{
    etch_sym *sym = v->sym;
    sym_coef there = sym_coefficient(around, factor);
    if (T->count == 0 || v->atom->count < 3 || factor != sym->unit || sym_coef_is_zero(there))
        return sym->zero;
    sym_coef all = sym_coef_neg(sym, sym_coef_mul(sym, there, sym_coef_inv(sym, scale)));
    return sym_constant(sym, sym_coef_sub(sym, all, sym_coefficient(T, sym->unit)));
}

/* Of long arguments only what the first term offers is tried. */
static bool is_long(const sym_atom *atom)
{
    enum { LONG = 256 };
    uint32_t terms = 0;
    for (uint32_t i = 0; i < atom->count && terms < LONG; i++)
        terms += atom->args[i]->count;
    return terms >= LONG;
}

static void add_max(viewing *v, etch_expr around, const uint32_t *in, uint32_t in_count)
{
    enum { LOOKED_AT = 4 };
    etch_sym *sym = v->sym;
    const uint32_t looked_at = is_long(v->atom) ? 1 : LOOKED_AT;
    const sym_mono *own = v->atom->self->terms[0].mono;
    for (uint32_t i = 0; i < in_count && i < looked_at; i++) {
        const sym_term *term = &around->terms[in[i]];
        const sym_mono *factor = sym_mono_div(sym, term->mono, own);
        etch_expr T = offered_terms(v, around, factor, term->coef);
        add_shifted(v, ETCH_SYM_SHOWN_MAX, sym_neg(sym, T));
        add_shifted(v, ETCH_SYM_SHOWN_MIN, T);
        etch_expr with_number = sym_add(sym, T, offered_number(v, around, factor, term->coef, T));
        if (with_number != T) {
            add_shifted(v, ETCH_SYM_SHOWN_MAX, sym_neg(sym, with_number));
            add_shifted(v, ETCH_SYM_SHOWN_MIN, with_number);
        }
    }
}

uint32_t sym_views_of(etch_sym *sym, const sym_rules *rules, etch_expr around, const uint32_t *in,
                      uint32_t in_count, sym_atom *atom, sym_view *views)
{
    viewing v = {sym, atom, views, 0};
    if (atom->kind == ETCH_SYM_FLOOR) {
        add_mod(&v, rules);
        add_ceil(&v);
        add_turned(&v);
        return v.count;
    }
    if (rules->brackets)
        add_brackets(&v);
    if (!is_long(atom))
        add_abs(&v);
    add_max(&v, around, in, in_count);
    return v.count;
}

/* What the text of a view stands for. */
static etch_expr meaning(etch_sym *sym, const sym_atom *shown)
{
    const etch_expr *args = shown->args;
    if (shown->kind == ETCH_SYM_SHOWN_MOD)
        return etch_mod(sym, args[0], args[1]);
    if (shown->kind == ETCH_SYM_SHOWN_CEIL)
        return etch_ceil(sym, args[0]);
    if (shown->kind == ETCH_SYM_SHOWN_ABS)
        return etch_abs(sym, args[0]);
    if (shown->kind == ETCH_SYM_SHOWN_BRACKET)
        return etch_iverson(sym, args[0]);
    return shown->kind == ETCH_SYM_SHOWN_MIN ? sym_min(sym, shown->count, args)
                                             : sym_max(sym, shown->count, args);
}

bool sym_view_holds(etch_sym *sym, const sym_atom *atom, const sym_view *view)
{
    sym_atom *shown = view->shown;
    if (shown->checked == sym->epoch)
        return shown->is_integer; /* such atoms have no other use for it */
    etch_expr value = meaning(sym, shown);
    shown->is_integer = value && sym_add(sym, sym_scale(sym, value, view->scale.mono, view->scale.coef),
                                         view->rest) == atom->self;
    shown->checked = sym->epoch;
    return shown->is_integer;
}
