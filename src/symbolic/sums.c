/* Sums over an index.
 *
 * A sum of callers runs over the integers low..high and is empty when there are none. Here its index is
 * shifted to run from 0 to count - 1 and becomes a variable without a name, the same for all sums that hold
 * equally deep sums: sums that differ in the name of the index, or in where it begins, are one expression.
 *
 * Sums are linear: each term is summed alone, without the factors that do not depend on the index. Powers of
 * the index close by Faulhaber's formula,
 *
 *     sum of k^e over 0 <= k < n  =  1/(e+1) * sum over j of binomial(e+1, j) * B(j) * n^(e+1-j)
 *
 * with the Bernoulli numbers B(1) = -1/2 (Graham, Knuth, Patashnik: Concrete Mathematics, 6.5). What has the
 * index inside an opaque atom or in a denominator stays an atom of its own, until the count is a number. */
#include "symbolic/symbolic_int.h"

enum {
    /* terms of a sum that are written out */
    UNROLLED = 64,
    /* values that are added up when no variable is left */
    MOST_LOOPED = 10000000,
    /* of the index, in closed form */
    HIGHEST_POWER = 100
};

/* ---- what is inside ------------------------------------------------------------------------------------ */

uint32_t sym_sum_level(etch_expr a)
{
    uint32_t level = 0;
    for (uint32_t i = 0; (a->flags & ETCH_SYM_HAS_OPAQUE) && i < a->count; i++)
        for (uint32_t j = 0; j < a->terms[i].mono->count; j++) {
            uint32_t inside = a->terms[i].mono->at[j].atom->sum_level;
            level = inside > level ? inside : level;
        }
    return level;
}

/* Is `var` the only variable in `a`, but for those that sums inside bind? */
static bool is_only_variable(etch_sym *sym, etch_expr a, const sym_atom *var)
{
    sym_scratch_mark mark = sym_scratch_top(sym);
    bool *seen = sym_scratch_take(sym, sym->vars.count, sizeof *seen);
    uint32_t inside = sym_sum_level(a);
    sym_mark_vars(sym, a, seen);
    bool only = true;
    for (uint32_t i = 0; only && i < sym->vars.count; i++) {
        const sym_atom *other = sym->vars.at[i];
        bool bound = other->bound_level > 0 && other->bound_level <= inside;
        only = !seen[i] || other == var || bound;
    }
    sym_scratch_release(sym, mark);
    return only;
}

/* ---- closed forms -------------------------------------------------------------------------------------- */

static sym_coef binomial(etch_sym *sym, uint32_t n, uint32_t k)
{
    sym_coef value = ETCH_SYM_ONE;
    for (uint32_t i = 0; i < k; i++)
        value = sym_coef_mul(sym, value, sym_coef_of(sym, n - i, i + 1));
    return value;
}

/* The Bernoulli numbers up to B(n), each from those before. */
static const sym_coef *bernoulli(etch_sym *sym, uint32_t n)
{
    for (uint32_t m = sym->bernoulli.count; m <= n; m++) {
        sym_coef sum = m == 0 ? ETCH_SYM_MINUS_ONE : ETCH_SYM_ZERO;
        for (uint32_t j = 0; j < m; j++)
            sum = sym_coef_add(sym, sum, sym_coef_mul(sym, binomial(sym, m + 1, j), sym->bernoulli.at[j]));
        sym_coef value = sym_coef_mul(sym, sum, sym_coef_of(sym, -1, m + 1));
        ETCH_PUSH(sym->arena, &sym->bernoulli, value);
    }
    return sym->bernoulli.at;
}

/* The sum of k^exp over 0 <= k < count. */
static etch_expr sum_of_powers(etch_sym *sym, etch_expr count, uint32_t exp)
{
    if (exp > HIGHEST_POWER)
        sym_limit_of(sym, "power of the index of a sum", HIGHEST_POWER);
    const sym_coef *numbers = bernoulli(sym, exp);
    etch_expr sum = sym->zero;
    for (uint32_t j = 0; j <= exp; j++) {
        sym_coef coef = sym_coef_mul(sym, binomial(sym, exp + 1, j), numbers[j]);
        sum = sym_mul(sym, sym_add(sym, sum, sym_constant(sym, coef)), count);
    }
    return sym_scale(sym, sum, sym->unit, sym_coef_of(sym, 1, exp + 1));
}

/* ---- one by one ---------------------------------------------------------------------------------------- */

static etch_expr unroll(etch_sym *sym, uint32_t count, const sym_atom *var, etch_expr body)
{
    etch_expr terms[UNROLLED];
    for (uint32_t k = 0; k < count; k++)
        terms[k] = sym_put(sym, body, var, sym_constant(sym, sym_coef_of(sym, k, 1)));
    return etch_sum(sym, count, terms);
}

/* What is added up so far: sums of 1, 2, 4, ... values, as the bits of `count` say. Fractions have long sums,
 * of which so each is short until late. */
typedef struct running {
    sym_coef at[64];
    uint32_t held;
    uint64_t count;
} running;

static void add_value(etch_sym *sym, running *r, sym_coef value)
{
    for (uint64_t bits = r->count++; bits & 1; bits >>= 1)
        value = sym_coef_add(sym, r->at[--r->held], value);
    r->at[r->held++] = value;
}

static sym_coef total_of(etch_sym *sym, const running *r)
{
    sym_coef total = ETCH_SYM_ZERO;
    for (uint32_t i = r->held; i-- > 0;)
        total = sym_coef_add(sym, total, r->at[i]);
    return total;
}

/* The sum of the values of `body`; NULL when one has none. */
static etch_expr add_values(etch_sym *sym, int64_t count, const sym_atom *var, etch_expr body)
{
    if (count > MOST_LOOPED)
        sym_limit_of(sym, "terms of a sum that is added up", MOST_LOOPED);
    sym_scratch_mark mark = sym_scratch_top(sym);
    sym_coef *values = sym_scratch_take(sym, sym->vars.count, sizeof *values), value;
    running sum = {.count = 0};
    for (uint32_t i = 0; i < sym->vars.count; i++)
        values[i] = ETCH_SYM_ZERO;
    bool defined = true;
    for (int64_t k = 0; defined && k < count; k++) {
        values[var->index] = sym_coef_of(sym, k, 1);
        if (!sym_eval(sym, body, values, &value)) {
            /* undefined, or too much for an evaluation of a point */
            etch_expr term = sym_put(sym, body, var, sym_constant(sym, values[var->index]));
            defined = term && sym_is_constant(term);
            value = defined ? sym_constant_of(term) : ETCH_SYM_ZERO;
        }
        add_value(sym, &sum, value);
    }
    sym_scratch_release(sym, mark);
    return defined ? sym_constant(sym, total_of(sym, &sum)) : NULL;
}

/* ---- sums ---------------------------------------------------------------------------------------------- */

/* The sum of one product that depends on the index in all of its factors. */
static etch_expr sum_of_product(etch_sym *sym, etch_expr count, sym_atom *var, const sym_mono *product)
{
    if (product->count == 0)
        return count;
    if (product->count == 1 && product->at[0].atom == var && product->at[0].exp > 0)
        return sum_of_powers(sym, count, (uint32_t)product->at[0].exp);
    etch_expr body = sym_monomial(sym, product, ETCH_SYM_ONE);
    int64_t number;
    if (etch_to_i64(count, &number)) {
        if (number <= UNROLLED)
            return unroll(sym, (uint32_t)number, var, body);
        if (is_only_variable(sym, body, var))
            return add_values(sym, number, var, body);
    }
    uint32_t inside = sym_sum_level(body), beside = sym_sum_level(count);
    sym_atom *bound = sym_bound_var(sym, 1 + (inside > beside ? inside : beside));
    if (bound == var) {
        etch_expr args[] = {count, body};
        return sym_atom_intern(sym, ETCH_SYM_SUM, 2, args)->self;
    }
    /* the level falls with every round: what is put in may make sums inside close, and no new ones */
    etch_expr renamed = sym_put(sym, body, var, bound->self);
    return renamed ? sym_sum(sym, count, bound, renamed) : NULL;
}

/* Divides a product into the factors that depend on the variable and the others. */
static void split_product(etch_sym *sym, const sym_mono *mono, const sym_atom *var,
                          const sym_mono **dependent, const sym_mono **others)
{
    *dependent = *others = sym->unit;
    for (uint32_t i = 0; i < mono->count; i++) {
        sym_atom *atom = mono->at[i].atom;
        const sym_mono **part =
            atom == var || (atom->kind != ETCH_SYM_VAR && sym_depends_on(sym, atom->self, var)) ? dependent
                                                                                                : others;
        *part = sym_mono_mul(sym, *part, sym_mono_of(sym, atom, mono->at[i].exp));
    }
}

/* How many integers k >= 0 are less than `count`. */
static etch_expr natural_count(etch_sym *sym, etch_expr count)
{
    count = sym_neg(sym, sym_floor(sym, sym_neg(sym, count)));
    if (sym_is_nonnegative(sym, count))
        return count;
    etch_expr args[] = {sym->zero, count};
    return sym_max(sym, 2, args);
}

etch_expr sym_sum(etch_sym *sym, etch_expr count, sym_atom *var, etch_expr body)
{
    count = natural_count(sym, count);
    etch_expr sum = sym->zero;
    for (uint32_t i = 0; i < body->count && count->count; i++) {
        const sym_mono *dependent, *others;
        split_product(sym, body->terms[i].mono, var, &dependent, &others);
        etch_expr part = sum_of_product(sym, count, var, dependent);
        if (!part)
            return NULL;
        sum = sym_add(sym, sum, sym_mul(sym, part, sym_monomial(sym, others, body->terms[i].coef)));
    }
    return sum;
}

/* ---- the entry points ---------------------------------------------------------------------------------- */

etch_expr etch_index(etch_sym *sym, uint32_t level)
{
    if (level >= sym->limits.depth)
        sym_limit_of(sym, "sums inside sums", sym->limits.depth);
    return sym_index_var(sym, level)->self;
}

etch_expr etch_sum_over(etch_sym *sym, etch_expr index, etch_expr low, etch_expr high, etch_expr body)
{
    const sym_atom *var = index ? sym_atom_of(index) : NULL;
    low = etch_ceil(sym, low);
    high = etch_floor(sym, high);
    body = sym_refresh(sym, body);
    if (!var || !var->is_index || !low || !high || !body)
        return NULL;
    uint32_t level = sym_sum_level(low), inside = sym_sum_level(body), above = sym_sum_level(high);
    level = inside > level ? inside : level;
    sym_atom *bound = sym_bound_var(sym, 1 + (above > level ? above : level));
    etch_expr shifted = sym_put(sym, body, var, sym_add(sym, low, bound->self));
    return shifted ? sym_sum(sym, sym_add_int(sym, sym_sub(sym, high, low), 1), bound, shifted) : NULL;
}
