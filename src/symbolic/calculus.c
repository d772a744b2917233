/* Derivatives, and floors taken away. */
#include "symbolic/symbolic_int.h"

/* What stands in a memo for "has no derivative". */
static const struct etch_poly undefined;

typedef struct differ {
    etch_sym *sym;
    sym_atom *var;
    /* opaque atom -> its derivative */
    sym_memo memo;
    bool piecewise;
} differ;

static etch_expr diff(differ *d, etch_expr a);

sym_atom *sym_var_of(etch_expr var)
{
    sym_atom *atom = var ? sym_atom_of(var) : NULL;
    return atom && atom->kind == ETCH_SYM_VAR && !atom->definition ? atom : NULL;
}

bool sym_depends_on(etch_sym *sym, etch_expr a, const sym_atom *var)
{
    sym_scratch_mark mark = sym_scratch_top(sym);
    bool *seen = sym_scratch_take(sym, sym->vars.count, sizeof *seen);
    sym_mark_vars(sym, a, seen);
    bool depends = seen[var->index];
    sym_scratch_release(sym, mark);
    return depends;
}

/* ---- opaque atoms -------------------------------------------------------------------------------------- */

/* 1 where gap > 0, 0 where gap < 0. Where `gap` takes multiples of 1/q only, `at_zero` is its value at 0;
 * else it has none there. */
static etch_expr step(etch_sym *sym, etch_expr gap, bool at_zero)
{
    etch_expr grid, above[] = {sym->zero, gap}, below[] = {sym->zero, gap};
    if (!sym_grid(sym, gap, &grid))
        return gap->count ? sym_div(sym, sym_max(sym, 2, above), gap) : NULL;
    etch_expr least = sym_div(sym, sym->one, grid);
    if (at_zero)
        above[1] = sym_add(sym, gap, least);
    else
        below[1] = sym_sub(sym, gap, least);
    return sym_mul(sym, grid, sym_sub(sym, sym_max(sym, 2, above), sym_max(sym, 2, below)));
}

/* 1 where the i-th argument is the greatest, and the first of those that are. NULL: undefined. */
static etch_expr chosen(etch_sym *sym, const sym_atom *max, uint32_t i)
{
    etch_expr x = max->args[i], before = sym->one, after = sym->one;
    uint32_t later = max->count - i - 1;
    if (i > 0)
        before = step(sym, sym_sub(sym, x, sym_max(sym, i, max->args)), false);
    if (later > 0)
        after = step(sym, sym_sub(sym, x, sym_max(sym, later, max->args + i + 1)), true);
    return before && after ? sym_mul(sym, before, after) : NULL;
}

static etch_expr diff_max(differ *d, const sym_atom *max)
{
    etch_sym *sym = d->sym;
    etch_expr sum = sym->zero;
    for (uint32_t i = 0; i < max->count; i++) {
        etch_expr slope = diff(d, max->args[i]);
        if (!slope)
            return NULL;
        if (slope->count == 0)
            continue;
        etch_expr here = chosen(sym, max, i);
        if (!here)
            return NULL;
        sum = sym_add(sym, sum, sym_mul(sym, slope, here));
    }
    return sum;
}

/* Between the jumps of the count, term by term. */
static etch_expr diff_sum_over(differ *d, const sym_atom *sum)
{
    etch_expr slope = diff(d, sum->args[1]);
    d->piecewise = d->piecewise || sym_depends_on(d->sym, sum->args[0], d->var);
    return slope ? sym_sum(d->sym, sum->args[0], sum->bound, slope) : NULL;
}

/* The derivative of an opaque atom but 1/(sum); NULL: it has none. */
static etch_expr diff_atom(differ *d, const sym_atom *atom)
{
    etch_expr known = sym_memo_get(&d->memo, atom);
    if (!known) {
        bool depends = sym_depends_on(d->sym, atom->self, d->var);
        d->piecewise = d->piecewise || (depends && atom->kind != ETCH_SYM_SUM);
        known = d->sym->zero;
        if (depends && atom->kind != ETCH_SYM_FLOOR && atom->kind != ETCH_SYM_POW2)
            known = atom->kind == ETCH_SYM_MAX ? diff_max(d, atom) : diff_sum_over(d, atom);
        sym_memo_put(d->sym, &d->memo, atom, known ? known : &undefined);
    }
    return known == &undefined ? NULL : known;
}

/* ---- sums of terms ------------------------------------------------------------------------------------- */

/* The place of the variable in a product, or the count of its powers. */
static uint32_t place_of(const sym_mono *mono, const sym_atom *var)
{
    uint32_t i = 0;
    while (i < mono->count && mono->at[i].atom != var)
        i++;
    return i;
}

/* Variables only: all terms lose the same factor, so they stay in order. */
static etch_expr diff_polynomial(etch_sym *sym, etch_expr a, const sym_atom *var)
{
    sym_terms *out = sym_terms_new(sym);
    for (uint32_t i = 0; i < a->count; i++) {
        const sym_term *term = &a->terms[i];
        uint32_t at = place_of(term->mono, var);
        if (at == term->mono->count)
            continue;
        int32_t exp = term->mono->at[at].exp;
        sym_coef coef =
            exp == 1 ? term->coef : sym_coef_mul(sym, term->coef, (sym_coef){.num = exp, .den = 1});
        sym_terms_push(sym, out, sym_mono_lower(sym, term->mono, at), coef);
    }
    return sym_terms_finish(sym, out);
}

/* What the opaque factors of a term contribute; NULL: undefined. */
static etch_expr diff_opaque_factors(differ *d, const sym_term *term)
{
    etch_sym *sym = d->sym;
    etch_expr sum = sym->zero;
    for (uint32_t i = 0; sum && i < term->mono->count; i++) {
        sym_power power = term->mono->at[i];
        if (power.atom->kind == ETCH_SYM_VAR)
            continue;
        etch_expr slope = diff_atom(d, power.atom);
        if (!slope)
            return NULL;
        if (slope->count == 0)
            continue;
        const sym_mono *others = sym_mono_div(sym, term->mono, sym_mono_of(sym, power.atom, 1));
        sym_coef coef = sym_coef_mul(sym, term->coef, (sym_coef){.num = power.exp, .den = 1});
        sum = sym_add(sym, sum, sym_mul(sym, sym_monomial(sym, others, coef), slope));
    }
    return sum;
}

/* Of an expression without atoms 1/(sum). */
static etch_expr diff_terms(differ *d, etch_expr a)
{
    etch_expr result = diff_polynomial(d->sym, a, d->var);
    if (!(a->flags & ETCH_SYM_HAS_OPAQUE))
        return result;
    for (uint32_t i = 0; i < a->count; i++) {
        etch_expr more = diff_opaque_factors(d, &a->terms[i]);
        if (!more)
            return NULL;
        if (more->count)
            result = sym_add(d->sym, result, more);
    }
    return result;
}

/* (n/m)' = (n'm - nm')/m^2 */
static etch_expr diff(differ *d, etch_expr a)
{
    etch_sym *sym = d->sym;
    if (!(a->flags & ETCH_SYM_HAS_RECIP))
        return diff_terms(d, a);
    sym_fraction x = sym_split(sym, a);
    etch_expr num = diff_terms(d, x.num), den = diff_terms(d, x.den);
    if (!num || !den)
        return NULL;
    if (den->count == 0)
        return sym_div(sym, num, x.den);
    etch_expr top = sym_sub(sym, sym_mul(sym, num, x.den), sym_mul(sym, x.num, den));
    return sym_div(sym, top, sym_mul(sym, x.den, x.den));
}

/* ---- replacing opaque atoms ---------------------------------------------------------------------------- */

etch_expr sym_map_atoms(etch_sym *sym, etch_expr a, etch_expr (*value)(void *data, const sym_atom *atom),
                        void *data)
{
    etch_expr sum = sym->zero;
    sym_terms *same = sym_terms_new(sym);
    for (uint32_t i = 0; i < a->count; i++) {
        const sym_mono *mono = a->terms[i].mono;
        if (!(mono->flags & ETCH_SYM_HAS_OPAQUE)) {
            sym_terms_push(sym, same, mono, a->terms[i].coef);
            continue;
        }
        etch_expr product = sym_constant(sym, a->terms[i].coef);
        for (uint32_t j = 0; product && j < mono->count; j++) {
            const sym_power *power = &mono->at[j];
            etch_expr base = power->atom->kind == ETCH_SYM_VAR ? power->atom->self : value(data, power->atom);
            etch_expr factor = base ? sym_pow(sym, base, power->exp) : NULL;
            product = factor ? sym_mul(sym, product, factor) : NULL;
        }
        if (!product) {
            sym_terms_free(sym, same);
            return NULL;
        }
        sum = sym_add(sym, sum, product);
    }
    return sym_add(sym, sym_terms_finish(sym, same), sum);
}

typedef struct relaxer {
    etch_sym *sym;
    /* only floors that depend on it; NULL: all */
    const sym_atom *var;
    sym_memo memo;
} relaxer;

static etch_expr relaxed_atom(void *data, const sym_atom *atom);

static etch_expr relaxed(relaxer *r, etch_expr a)
{
    return a->flags & ETCH_SYM_HAS_OPAQUE ? sym_map_atoms(r->sym, a, relaxed_atom, r) : a;
}

static etch_expr relax_max(relaxer *r, const sym_atom *atom)
{
    sym_scratch_mark mark = sym_scratch_top(r->sym);
    etch_expr *args = sym_scratch_take(r->sym, atom->count, sizeof *args), result = NULL;
    uint32_t done = 0;
    while (done < atom->count && (args[done] = relaxed(r, atom->args[done])))
        done++;
    if (done == atom->count)
        result = sym_max(r->sym, atom->count, args);
    sym_scratch_release(r->sym, mark);
    return result;
}

static etch_expr relaxed_atom(void *data, const sym_atom *atom)
{
    relaxer *r = data;
    etch_expr known = sym_memo_get(&r->memo, atom), inner;
    if (known)
        return known == &undefined ? NULL : known;
    known = atom->self;
    if (r->var && !sym_depends_on(r->sym, atom->self, r->var)) {
        ; /* stays */
    } else if (atom->kind == ETCH_SYM_FLOOR) {
        known = relaxed(r, atom->args[0]);
    } else if (atom->kind == ETCH_SYM_MAX) {
        known = relax_max(r, atom);
    } else if (atom->kind == ETCH_SYM_RECIP) {
        inner = relaxed(r, atom->args[0]);
        known = inner ? sym_div(r->sym, r->sym->one, inner) : NULL;
    } else if (atom->kind == ETCH_SYM_SUM) {
        inner = relaxed(r, atom->args[1]);
        known = inner ? sym_sum(r->sym, atom->args[0], atom->bound, inner) : NULL;
    }
    sym_memo_put(r->sym, &r->memo, atom, known ? known : &undefined);
    return known;
}

etch_expr sym_relax(etch_sym *sym, etch_expr a, const sym_atom *var)
{
    relaxer r = {.sym = sym, .var = var};
    return relaxed(&r, a);
}

/* ---- the entry points ---------------------------------------------------------------------------------- */

etch_expr etch_diff(etch_sym *sym, etch_expr a, etch_expr var, bool *piecewise)
{
    differ d = {.sym = sym, .var = sym_var_of(var)};
    if (piecewise)
        *piecewise = false;
    a = sym_refresh(sym, a);
    if (!a || !d.var)
        return NULL;
    etch_expr result = diff(&d, a);
    if (piecewise)
        *piecewise = d.piecewise;
    return result;
}

etch_expr etch_relax(etch_sym *sym, etch_expr a)
{
    a = sym_refresh(sym, a);
    return a ? sym_relax(sym, a, NULL) : NULL;
}
