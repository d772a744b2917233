/* How expressions grow: degrees, leading terms, dominated terms. Floors count as their arguments. */
#include "symbolic/symbolic_int.h"

enum { LEADING_ROUNDS = 8, MAX_COMPARED = 64 };

/* a ~ var^low as var goes to 0, var^high as it goes to infinity. */
typedef struct growth {
    int64_t low, high;
    /* false: a sum that did not close over the variable */
    bool known;
} growth;

typedef struct grower {
    etch_sym *sym;
    const sym_atom *var;
    /* of opaque atoms */
    sym_memo growths;
    /* of maxima: their leading terms */
    sym_memo leads;
    /* of opaque atoms: what they are for large values of the variable */
    sym_memo settled;
} grower;

static growth growth_of(grower *g, etch_expr a);

/* ---- degrees ------------------------------------------------------------------------------------------- */

static growth either(growth a, growth b)
{
    return (growth){a.low < b.low ? a.low : b.low, a.high > b.high ? a.high : b.high, a.known && b.known};
}

static growth growth_of_max(grower *g, const sym_atom *max)
{
    growth all = growth_of(g, max->args[1]);
    for (uint32_t i = 2; i < max->count; i++)
        all = either(all, growth_of(g, max->args[i]));
    return all;
}

static growth growth_of_atom(grower *g, const sym_atom *atom)
{
    if (atom->kind == ETCH_SYM_VAR)
        return (growth){atom == g->var, atom == g->var, true};
    const growth *known = sym_memo_get(&g->growths, atom);
    if (known)
        return *known;
    growth *result = ETCH_NEW(g->sym->arena, growth);
    if (atom->kind == ETCH_SYM_POW2 || !sym_depends_on(g->sym, atom->self, g->var))
        *result = (growth){0, 0, true};
    else if (atom->kind == ETCH_SYM_FLOOR)
        *result = growth_of(g, atom->args[0]);
    else if (atom->kind == ETCH_SYM_MAX)
        *result = growth_of_max(g, atom);
    sym_memo_put(g->sym, &g->growths, atom, result);
    return *result;
}

static int64_t plus_product(grower *g, int64_t sum, int64_t exp, int64_t degree)
{
    int64_t product, result;
    if (__builtin_mul_overflow(exp, degree, &product) || __builtin_add_overflow(sum, product, &result))
        sym_limit(g->sym);
    return result;
}

static growth growth_of_mono(grower *g, const sym_mono *mono)
{
    growth all = {0, 0, true};
    for (uint32_t i = 0; i < mono->count; i++) {
        growth one = growth_of_atom(g, mono->at[i].atom);
        all.low = plus_product(g, all.low, mono->at[i].exp, one.low);
        all.high = plus_product(g, all.high, mono->at[i].exp, one.high);
        all.known = all.known && one.known;
    }
    return all;
}

/* Of a sum without atoms 1/(sum), not 0. */
static growth growth_of_sum(grower *g, etch_expr a)
{
    growth all = growth_of_mono(g, a->terms[0].mono);
    for (uint32_t i = 1; i < a->count; i++)
        all = either(all, growth_of_mono(g, a->terms[i].mono));
    return all;
}

/* Of an expression that is not 0. */
static growth growth_of(grower *g, etch_expr a)
{
    sym_fraction x = sym_split(g->sym, a);
    growth above = growth_of_sum(g, x.num), below = growth_of_sum(g, x.den);
    return (growth){plus_product(g, above.low, -1, below.low), plus_product(g, above.high, -1, below.high),
                    above.known && below.known};
}

/* ---- leading terms ------------------------------------------------------------------------------------- */

static etch_expr leading(grower *g, etch_expr a);

/* Drops the arguments that another exceeds for large values of the variable. */
static etch_expr drop_outgrown(grower *g, etch_expr *args, uint32_t count)
{
    for (uint32_t i = 0; i < count;) {
        bool outgrown = false;
        for (uint32_t j = 0; j < count && !outgrown; j++) {
            etch_expr lead = j == i ? NULL : leading(g, sym_sub(g->sym, args[j], args[i]));
            outgrown = lead && sym_is_positive(g->sym, lead);
        }
        if (outgrown)
            args[i] = args[--count];
        else
            i++;
    }
    return sym_max(g->sym, count, args);
}

static etch_expr settled(grower *g, etch_expr a);

static etch_expr settled_max(grower *g, const sym_atom *max)
{
    sym_scratch_mark mark = sym_scratch_top(g->sym);
    etch_expr *args = sym_scratch_take(g->sym, max->count, sizeof *args), result = NULL;
    uint32_t done = 0;
    while (done < max->count && (args[done] = settled(g, max->args[done])))
        done++;
    if (done == max->count)
        result = drop_outgrown(g, args, done);
    sym_scratch_release(g->sym, mark);
    return result;
}

static etch_expr settled_atom(void *data, const sym_atom *atom)
{
    grower *g = data;
    etch_expr known = sym_memo_get(&g->settled, atom);
    if (known)
        return known;
    if (atom->kind == ETCH_SYM_MAX && sym_depends_on(g->sym, atom->self, g->var)) {
        known = settled_max(g, atom);
    } else if (atom->kind == ETCH_SYM_RECIP) {
        known = settled(g, atom->args[0]);
        known = known ? sym_div(g->sym, g->sym->one, known) : NULL;
    }
    known = known ? known : atom->self;
    sym_memo_put(g->sym, &g->settled, atom, known);
    return known;
}

/* `a` with the maxima decided that have one greatest argument for large values of the variable. */
static etch_expr settled(grower *g, etch_expr a)
{
    return a->flags & ETCH_SYM_HAS_OPAQUE ? sym_map_atoms(g->sym, a, settled_atom, g) : a;
}

/* max{0, the leading terms of the arguments of degree `degree`}; NULL: undefined. */
static etch_expr greatest_lead(grower *g, const sym_atom *max, int64_t degree)
{
    etch_expr result = g->sym->zero;
    for (uint32_t i = 1; result && i < max->count; i++) {
        if (growth_of(g, max->args[i]).high != degree)
            continue;
        etch_expr args[] = {result, leading(g, max->args[i])};
        result = args[1] ? sym_max(g->sym, 2, args) : NULL;
    }
    return result;
}

/* The arguments that grow fastest decide; where all of them sink below 0, the next ones. */
static etch_expr leading_of_max(grower *g, const sym_atom *max)
{
    etch_expr result = g->sym->zero;
    for (int64_t below = INT64_MAX, highest; result && result->count == 0; below = highest) {
        highest = INT64_MIN;
        for (uint32_t i = 1; i < max->count; i++) {
            int64_t high = growth_of(g, max->args[i]).high;
            if (high < below && high > highest)
                highest = high;
        }
        if (highest == INT64_MIN)
            break;
        result = greatest_lead(g, max, highest);
    }
    return result;
}

static etch_expr leading_of_atom(void *data, const sym_atom *atom)
{
    grower *g = data;
    if (atom->kind != ETCH_SYM_MAX || !sym_depends_on(g->sym, atom->self, g->var))
        return atom->self;
    etch_expr known = sym_memo_get(&g->leads, atom);
    if (!known) {
        known = leading_of_max(g, atom);
        sym_memo_put(g->sym, &g->leads, atom, known ? known : atom->self);
    }
    return known;
}

/* The terms of the highest degree of a sum without atoms 1/(sum), not 0. */
static etch_expr highest_terms(grower *g, etch_expr a)
{
    int64_t highest = growth_of_sum(g, a).high;
    sym_terms *out = sym_terms_new(g->sym);
    for (uint32_t i = 0; i < a->count; i++)
        if (growth_of_mono(g, a->terms[i].mono).high == highest)
            sym_terms_push(g->sym, out, a->terms[i].mono, a->terms[i].coef);
    return sym_terms_finish(g->sym, out);
}

/* What a sum without atoms 1/(sum), not 0, leads with. Where the leading terms of maxima cancel, terms of
 * lower degree may matter: then nothing is dropped. */
static etch_expr leading_of_sum(grower *g, etch_expr a)
{
    for (uint32_t round = 0; round < LEADING_ROUNDS && (a->flags & ETCH_SYM_HAS_OPAQUE); round++) {
        etch_expr top = highest_terms(g, a), simpler = sym_map_atoms(g->sym, top, leading_of_atom, g);
        if (simpler == a)
            return top;
        if (!simpler || simpler->count == 0 || growth_of(g, simpler).high < growth_of_sum(g, a).high)
            return a;
        if (simpler->flags & ETCH_SYM_HAS_RECIP)
            return leading(g, simpler);
        a = simpler;
    }
    return highest_terms(g, a);
}

/* Of an expression without floors that depend on the variable. */
static etch_expr leading(grower *g, etch_expr a)
{
    sym_fraction x = sym_split(g->sym, a);
    if (x.num->count == 0)
        return x.num;
    etch_expr num = leading_of_sum(g, x.num), den = leading_of_sum(g, x.den);
    return sym_div(g->sym, num, den);
}

/* ---- dominated terms ----------------------------------------------------------------------------------- */

/* Is a/b >= 1 for all values? Quickly: a product of variables that are at least 1. */
static bool is_at_least(etch_sym *sym, const sym_mono *a, const sym_mono *b, bool prove)
{
    const sym_mono *ratio = sym_mono_div(sym, a, b);
    bool quick = true;
    for (uint32_t i = 0; i < ratio->count; i++) {
        const sym_atom *atom = ratio->at[i].atom;
        quick =
            quick && ratio->at[i].exp > 0 && atom->kind == ETCH_SYM_VAR && !atom->is_real && atom->lower >= 1;
    }
    return quick ||
           (prove && sym_is_nonnegative(sym, sym_add_int(sym, sym_monomial(sym, ratio, ETCH_SYM_ONE), -1)));
}

static etch_expr undominated_terms(etch_sym *sym, etch_expr a)
{
    sym_scratch_mark mark = sym_scratch_top(sym);
    bool *dropped = sym_scratch_take(sym, a->count + 1, sizeof *dropped), prove = a->count <= MAX_COMPARED;
    for (uint32_t i = 0; i < a->count; i++)
        for (uint32_t j = 0; j < a->count && !dropped[i]; j++)
            dropped[i] = j != i && !dropped[j] && is_at_least(sym, a->terms[j].mono, a->terms[i].mono, prove);
    sym_terms *out = sym_terms_new(sym);
    for (uint32_t i = 0; i < a->count; i++)
        if (!dropped[i])
            sym_terms_push(sym, out, a->terms[i].mono, a->terms[i].coef);
    sym_scratch_release(sym, mark);
    return sym_terms_finish(sym, out);
}

/* ---- the entry points ---------------------------------------------------------------------------------- */

bool etch_degree(etch_sym *sym, etch_expr a, etch_expr var, int64_t *low, int64_t *high)
{
    grower g = {.sym = sym, .var = sym_var_of(var)};
    a = sym_refresh(sym, a);
    if (!a || a->count == 0 || !g.var)
        return false;
    growth found = growth_of(&g, a);
    *low = found.low;
    *high = found.high;
    return found.known;
}

etch_expr etch_leading(etch_sym *sym, etch_expr a, etch_expr var)
{
    grower g = {.sym = sym, .var = sym_var_of(var)};
    a = sym_refresh(sym, a);
    a = a && g.var ? sym_relax(sym, a, g.var) : NULL;
    if (!a || a->count == 0)
        return a;
    if (!growth_of(&g, a).known)
        return NULL;
    a = settled(&g, a);
    return a ? leading(&g, a) : NULL;
}

etch_expr etch_dominant(etch_sym *sym, etch_expr a)
{
    a = sym_refresh(sym, a);
    a = a ? sym_relax(sym, a, NULL) : NULL;
    if (!a || a->count == 0)
        return a;
    sym_fraction x = sym_split(sym, a);
    return sym_div(sym, undominated_terms(sym, x.num), x.den);
}
