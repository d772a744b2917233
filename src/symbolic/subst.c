/* Replacing variables: by the caller's values, by what equalities say, inside proofs. */
#include <string.h>

#include "symbolic/symbolic_int.h"

/* What stands in a memo for "undefined". */
static const struct etch_poly undefined;

typedef struct rewriter {
    etch_sym *sym;
    /* by index of the variable; NULL: stays */
    const etch_expr *values;
    /* of them; younger variables stay */
    uint32_t count;
    /* of opaque atoms; NULL: they stay as they are */
    sym_memo *memo;
    /* builds each max; NULL: as it is built */
    sym_max_fn max;
} rewriter;

static etch_expr rewrite(rewriter *r, etch_expr a);
static etch_expr value_of(rewriter *r, const sym_atom *atom);

static etch_expr rebuild_atom(rewriter *r, const sym_atom *atom)
{
    etch_sym *sym = r->sym;
    sym_scratch_mark mark = sym_scratch_top(sym);
    etch_expr *args = sym_scratch_take(sym, atom->count, sizeof *args), result = NULL;
    uint32_t done = 0;
    while (done < atom->count && (args[done] = rewrite(r, atom->args[done])))
        done++;
    if (done == atom->count) {
        if (atom->kind == ETCH_SYM_FLOOR)
            result = sym_floor(sym, args[0]);
        else if (atom->kind == ETCH_SYM_MAX)
            result = r->max ? r->max(sym, atom->count, args) : sym_max(sym, atom->count, args);
        else if (atom->kind == ETCH_SYM_POW2)
            result = sym_pow2(sym, args[0]);
        else if (atom->kind == ETCH_SYM_SUM)
            result = sym_sum(sym, args[0], sym_atom_of(value_of(r, atom->bound)), args[1]);
        else
            result = sym_div(sym, sym->one, args[0]);
    }
    sym_scratch_release(sym, mark);
    return result;
}

/* What an atom becomes; NULL: undefined. */
static etch_expr value_of(rewriter *r, const sym_atom *atom)
{
    if (atom->kind == ETCH_SYM_VAR)
        return atom->index < r->count && r->values[atom->index] ? r->values[atom->index] : atom->self;
    if (!r->memo)
        return atom->self;
    etch_expr value = sym_memo_get(r->memo, atom);
    if (!value) {
        value = rebuild_atom(r, atom);
        sym_memo_put(r->sym, r->memo, atom, value ? value : &undefined);
    }
    return value == &undefined ? NULL : value;
}

/* The product of the powers of a term that are no single terms, times coef * mono. */
static etch_expr expand(rewriter *r, const sym_term *term, const sym_mono *mono, sym_coef coef)
{
    etch_expr product = sym_monomial(r->sym, mono, coef);
    for (uint32_t i = 0; product && i < term->mono->count; i++) {
        etch_expr value = value_of(r, term->mono->at[i].atom);
        if (value->count == 1 && !(value->flags & ETCH_SYM_HAS_RECIP))
            continue;
        etch_expr power = sym_pow(r->sym, value, term->mono->at[i].exp);
        product = power ? sym_mul(r->sym, product, power) : NULL;
    }
    return product;
}

/* Adds what a term becomes to `out`, or to `fractions` if it has an atom 1/(sum). False: undefined. */
static bool rewrite_term(rewriter *r, const sym_term *term, sym_terms *out, etch_expr *fractions)
{
    etch_sym *sym = r->sym;
    const sym_mono *mono = sym->unit;
    sym_coef coef = term->coef;
    bool expands = false;
    for (uint32_t i = 0; i < term->mono->count; i++) {
        etch_expr value = value_of(r, term->mono->at[i].atom);
        int32_t exp = term->mono->at[i].exp;
        if (!value || (value->count == 0 && exp < 0))
            return false;
        if (value->count == 1 && !(value->flags & ETCH_SYM_HAS_RECIP)) {
            mono = sym_mono_mul(sym, mono, sym_mono_pow(sym, value->terms[0].mono, exp));
            if (!sym_coef_is_one(value->terms[0].coef))
                coef = sym_coef_mul(sym, coef, sym_coef_pow(sym, value->terms[0].coef, exp));
        } else {
            expands = true;
        }
    }
    if (!expands) {
        sym_terms_push(sym, out, mono, coef);
        return true;
    }
    etch_expr product = expand(r, term, mono, coef);
    if (product && (product->flags & ETCH_SYM_HAS_RECIP))
        *fractions = sym_add(sym, *fractions, product);
    else if (product)
        sym_terms_push_all(sym, out, product);
    return product;
}

static etch_expr rewrite(rewriter *r, etch_expr a)
{
    sym_terms *out = sym_terms_new(r->sym);
    etch_expr fractions = r->sym->zero;
    for (uint32_t i = 0; i < a->count; i++)
        if (!rewrite_term(r, &a->terms[i], out, &fractions)) {
            sym_terms_free(r->sym, out);
            return NULL;
        }
    return sym_add(r->sym, sym_terms_collect(r->sym, out), fractions);
}

/* The range of levels of the indices of sums in `seen`; false when there are none. */
static bool bound_levels(etch_sym *sym, const bool *seen, uint32_t *lowest, uint32_t *highest)
{
    uint32_t low = UINT32_MAX, high = 0;
    for (uint32_t i = 0; i < sym->bound_vars.count; i++)
        if (seen[sym->bound_vars.at[i]->index]) {
            low = low < i + 1 ? low : i + 1;
            high = i + 1;
        }
    *lowest = low;
    *highest = high;
    return high > 0;
}

/* What is put into a sum may hold indices of the same level, which the sum must not bind. Then all sums in
 * `a` get indices above those in `a`, in the values and in the other one; building them again brings their
 * levels down. */
static void keep_apart(etch_sym *sym, etch_expr a, etch_expr other, etch_expr *values, uint32_t count)
{
    uint32_t level = sym_sum_level(a), lowest, highest;
    if (level == 0)
        return;
    sym_scratch_mark mark = sym_scratch_top(sym);
    bool *seen = sym_scratch_take(sym, sym->vars.count, sizeof *seen);
    if (other)
        sym_mark_vars(sym, other, seen);
    for (uint32_t i = 0; i < count; i++)
        if (values[i])
            sym_mark_vars(sym, values[i], seen);
    if (bound_levels(sym, seen, &lowest, &highest) && lowest <= level) {
        sym_mark_vars(sym, a, seen);
        (void)bound_levels(sym, seen, &lowest, &highest);
        for (uint32_t i = 1; i <= level; i++) {
            uint32_t at = sym_bound_var(sym, i)->index;
            if (!values[at])
                values[at] = sym_bound_var(sym, i + highest)->self;
        }
    }
    sym_scratch_release(sym, mark);
}

etch_expr sym_replace(etch_sym *sym, etch_expr a, const etch_expr *values)
{
    rewriter r = {sym, values, sym->vars.count, NULL, NULL};
    return rewrite(&r, a);
}

etch_expr sym_put(etch_sym *sym, etch_expr a, const sym_atom *atom, etch_expr value)
{
    sym_scratch_mark mark = sym_scratch_top(sym);
    uint32_t count = sym->vars.count;
    etch_expr *values = sym_scratch_take(sym, count, sizeof *values);
    sym_memo memo = {0};
    if (atom->kind == ETCH_SYM_VAR)
        values[atom->index] = value;
    else
        sym_memo_put(sym, &memo, atom, value);
    keep_apart(sym, a, value, values, count);
    rewriter r = {sym, values, count, &memo, NULL};
    etch_expr result = rewrite(&r, a);
    sym_scratch_release(sym, mark);
    return result;
}

/* The definitions of all variables that have one, by index. */
static etch_expr *definitions(etch_sym *sym)
{
    etch_expr *values = sym_scratch_take(sym, sym->vars.count, sizeof *values);
    for (uint32_t i = 0; i < sym->vars.count; i++)
        values[i] = sym->vars.at[i]->definition;
    return values;
}

etch_expr sym_refresh_anew(etch_sym *sym, etch_expr a)
{
    etch_expr known = sym_memo_get(&sym->fresh, a);
    if (!known) {
        sym_scratch_mark mark = sym_scratch_top(sym);
        rewriter r = {sym, definitions(sym), sym->vars.count, &sym->fresh, NULL};
        known = rewrite(&r, a);
        sym_scratch_release(sym, mark);
        sym_memo_put(sym, &sym->fresh, a, known ? known : &undefined);
    }
    return known == &undefined ? NULL : known;
}

etch_expr sym_rebuild(etch_sym *sym, etch_expr a, sym_max_fn max)
{
    sym_memo memo = {0};
    rewriter r = {sym, NULL, 0, &memo, max};
    a = sym_refresh(sym, a);
    return a ? rewrite(&r, a) : NULL;
}

/* ---- variables of an expression ------------------------------------------------------------------------ */

static void mark_vars(etch_sym *sym, etch_expr a, bool *seen, sym_memo *visited)
{
    for (uint32_t i = 0; i < a->count; i++) {
        const sym_mono *mono = a->terms[i].mono;
        for (uint32_t j = 0; j < mono->count; j++) {
            const sym_atom *atom = mono->at[j].atom;
            if (atom->kind == ETCH_SYM_VAR) {
                seen[atom->index] = true;
            } else if (!sym_memo_get(visited, atom)) {
                sym_memo_put(sym, visited, atom, atom);
                for (uint32_t k = 0; k < atom->count; k++)
                    mark_vars(sym, atom->args[k], seen, visited);
            }
        }
    }
}

void sym_mark_vars(etch_sym *sym, etch_expr a, bool *seen)
{
    sym_memo visited = {0};
    mark_vars(sym, a, seen, &visited);
}

/* ---- the entry points ---------------------------------------------------------------------------------- */

uint32_t etch_vars_of(etch_sym *sym, etch_expr a, const etch_expr **vars)
{
    *vars = NULL;
    if (!a || etch_is_constant(a))
        return 0;
    sym_scratch_mark mark = sym_scratch_top(sym);
    bool *seen = sym_scratch_take(sym, sym->vars.count + 1, sizeof *seen);
    sym_mark_vars(sym, a, seen);
    ETCH_VEC(etch_expr) found = {0};
    for (uint32_t i = 0; i < sym->vars.count; i++)
        if (seen[i] && sym->vars.at[i]->name)
            ETCH_PUSH(sym->arena, &found, sym->vars.at[i]->self);
    sym_scratch_release(sym, mark);
    *vars = found.at;
    return found.count;
}

/* The caller's values by index; false when one is undefined. */
static bool given_values(etch_sym *sym, uint32_t count, const etch_expr *vars, const etch_expr *values,
                         etch_expr *by_index)
{
    for (uint32_t i = 0; i < count; i++) {
        const sym_atom *atom = vars[i] ? sym_atom_of(vars[i]) : NULL;
        if (!atom || atom->kind != ETCH_SYM_VAR)
            continue;
        etch_expr value = sym_refresh(sym, values[i]);
        if (!value)
            return false;
        by_index[atom->index] = value;
    }
    return true;
}

etch_expr etch_subst(etch_sym *sym, etch_expr a, uint32_t count, const etch_expr *vars,
                     const etch_expr *values)
{
    if (!a)
        return NULL;
    sym_scratch_mark mark = sym_scratch_top(sym);
    uint32_t var_count = sym->vars.count;
    etch_expr *by_index = sym_scratch_take(sym, var_count + 1, sizeof *by_index);
    sym_memo memo = {0};
    rewriter r = {sym, by_index, var_count, &memo, NULL};
    bool defined = given_values(sym, count, vars, values, by_index);
    keep_apart(sym, a, NULL, by_index, var_count);
    /* variables that an equality replaced take what its right side becomes */
    for (uint32_t i = 0; defined && sym->definitions && i < var_count; i++) {
        etch_expr definition = sym->vars.at[i]->definition;
        if (definition && !by_index[i])
            defined = (by_index[i] = rewrite(&r, definition));
    }
    etch_expr result = defined ? rewrite(&r, a) : NULL;
    sym_scratch_release(sym, mark);
    return result;
}
