/* Proofs of p >= 0 and p > 0 for all values that the facts allow. Sound and incomplete: every step
 * replaces the statement by one that implies it.
 *
 *     1/(sum)     multiply by the sum when its sign is known
 *     floor(R)    lies between R - 1 + 1/q and R, where R takes multiples of 1/q; is at least n when R is
 *     max{..}     is one of its arguments, and at least each of them
 *     pow2(x)     is 0 or 1; where it is 1, x >= 1
 *     sum{..}     grows with its terms: they are bounded as above, for every index
 *     facts       n = d * quotient;  a = b + slack
 *     the end     multiply by the denominators, write x = lower + x', expand: no coefficient is negative
 *
 * The search is bounded by a number of steps and of terms. Statements that are false at a known point are
 * given up at once. */
#include <string.h>

#include "symbolic/symbolic_int.h"

enum { PROOF_STEPS = 1500, PROOF_WORK = 10000, PROOF_DEPTH = 12, PROOF_GIVEN = 16 };

/* Statements that grow beyond these are given up. */
enum { SHIFTED_TERMS = 5000, MOST_TERMS = 2000, MOST_PRODUCTS = 20000, MOST_EXPONENT = 16 };

/* Squares are looked for in sums and products that are not longer. */
enum { SQUARE_TERMS = 12 };

/* Marks in the memo of finished proofs. */
static const char proved, failed;

/* One statement on its way, and what was used to get there. */
typedef struct proof {
    etch_sym *sym;
    /* left */
    uint32_t steps;
    /* statements met before */
    sym_memo *failed;
    /* by index: quotients and slacks in use */
    bool *spent;
    /* what holds in the case of a max at hand: each >= 0 */
    etch_expr given[PROOF_GIVEN];
    uint32_t given_count;
    uint32_t facts[PROOF_DEPTH];
    uint32_t fact_count;
} proof;

static bool prove(proof *p, etch_expr a, uint32_t depth);

/* ---- the end of a proof -------------------------------------------------------------------------------- */

/* Never negative, as powers that have a value. One argument of a max is 0; a sum has a product in it. */
static bool nonnegative_monomial(const sym_mono *mono)
{
    for (uint32_t i = 0; i < mono->count; i++) {
        const sym_atom *atom = mono->at[i].atom;
        bool nonnegative = mono->at[i].exp % 2 == 0 || atom->kind == ETCH_SYM_MAX ||
                           (atom->kind == ETCH_SYM_VAR && (atom->is_real || atom->lower >= 0)) ||
                           atom->kind == ETCH_SYM_POW2 ||
                           (atom->kind == ETCH_SYM_SUM && nonnegative_monomial(atom->args[1]->terms[0].mono));
        if (!nonnegative)
            return false;
    }
    return true;
}

static bool plainly_nonnegative(etch_expr a)
{
    for (uint32_t i = 0; i < a->count; i++)
        if (sym_coef_sign(a->terms[i].coef) < 0 || !nonnegative_monomial(a->terms[i].mono))
            return false;
    return true;
}

/* Notes that the proof succeeded with what is in use, and with lower bounds that facts gave to variables
 * of `a`. */
static bool succeed(proof *p, etch_expr a)
{
    etch_sym *sym = p->sym;
    if (!sym->tracing)
        return true;
    for (uint32_t i = 0; i < p->fact_count; i++)
        sym_used_fact(sym, p->facts[i]);
    for (uint32_t i = 0; i < a->count; i++)
        for (uint32_t j = 0; j < a->terms[i].mono->count; j++)
            sym_used_fact(sym, a->terms[i].mono->at[j].atom->lower_fact);
    return true;
}

etch_expr sym_clear_denominators(etch_sym *sym, etch_expr a)
{
    const sym_mono *below = sym_mono_below(sym, a);
    for (uint32_t i = 0; i < below->count; i++)
        if (!sym_atom_is_positive(sym, below->at[i].atom, true))
            return NULL;
    return sym_scale(sym, a, sym_mono_pow(sym, below, -1), ETCH_SYM_ONE);
}

/* Takes from the work that all proofs under way may do, counted in terms; false when there is none left. */
static bool spend_work(etch_sym *sym, uint64_t terms)
{
    sym->proof_work = terms < sym->proof_work ? sym->proof_work - (uint32_t)terms : 0;
    return sym->proof_work > 0;
}

/* The least value of each variable of `original`, as the sum x + lower to put in its place; false when
 * that would make too many terms. */
static bool shifts_of(etch_sym *sym, etch_expr original, etch_expr cleared, etch_expr *shift)
{
    uint64_t total = 0;
    for (uint32_t i = 0; i < cleared->count; i++) {
        uint64_t terms = 1;
        const sym_mono *mono = cleared->terms[i].mono;
        for (uint32_t j = 0; j < mono->count && terms <= SHIFTED_TERMS; j++) {
            const sym_atom *atom = mono->at[j].atom;
            terms *= (uint64_t)mono->at[j].exp + 1;
            if (atom->lower == ETCH_SYM_UNBOUNDED)
                return false;
            if (!shift[atom->index] && atom->lower != 0)
                shift[atom->index] = sym_add_int(sym, atom->self, atom->lower);
        }
        total += terms;
    }
    /* a variable in a denominator is not 0 */
    for (uint32_t i = 0; i < original->count; i++)
        for (uint32_t j = 0; j < original->terms[i].mono->count; j++) {
            const sym_power *power = &original->terms[i].mono->at[j];
            if (power->exp < 0 && power->atom->lower == 0 && !power->atom->is_real)
                shift[power->atom->index] = sym_add_int(sym, power->atom->self, 1);
        }
    return total <= SHIFTED_TERMS && spend_work(sym, total);
}

/* Is `larger` the product `mono` times variables that have a shift? */
static bool is_above(const sym_mono *larger, const sym_mono *mono, const etch_expr *shift)
{
    uint32_t j = 0;
    for (uint32_t i = 0; i < larger->count; i++) {
        const sym_power *power = &larger->at[i];
        const bool both = j < mono->count && mono->at[j].atom == power->atom;
        const int32_t exp = both ? mono->at[j].exp : 0;
        j += both;
        if (power->exp < exp || (power->exp > exp && !shift[power->atom->index]))
            return false;
    }
    return j == mono->count;
}

/* Is there a negative term that no positive one adds to when variables are shifted up? It stays negative. */
static bool stays_negative(etch_sym *sym, etch_expr a, const etch_expr *shift)
{
    for (uint32_t i = 0; i < a->count; i++)
        for (uint32_t j = 0; j < a->terms[i].mono->count; j++)
            if (a->terms[i].mono->at[j].atom->lower < 0)
                return false;
    for (uint32_t i = 0; i < a->count; i++) {
        bool helped = sym_coef_sign(a->terms[i].coef) > 0;
        sym_count_work(sym, 1);
        for (uint32_t k = 0; !helped && k < a->count; k++)
            helped =
                sym_coef_sign(a->terms[k].coef) > 0 && is_above(a->terms[k].mono, a->terms[i].mono, shift);
        if (!helped)
            return true;
    }
    return false;
}

/* For expressions in variables only: is every coefficient >= 0 once the variables start from 0? */
static bool nonnegative_from_lower_bounds(etch_sym *sym, etch_expr a)
{
    etch_expr cleared = sym_clear_denominators(sym, a);
    /* shifting leaves the leading term as it is */
    if (!cleared || sym_coef_sign(sym_leading_coef(cleared)) < 0)
        return false;
    sym_scratch_mark mark = sym_scratch_top(sym);
    etch_expr *shift = sym_scratch_take(sym, sym->vars.count, sizeof *shift);
    bool ok = shifts_of(sym, a, cleared, shift) && !stays_negative(sym, cleared, shift);
    if (ok) {
        etch_expr shifted = sym_replace(sym, cleared, shift);
        for (uint32_t i = 0; ok && i < shifted->count; i++)
            ok = sym_coef_sign(shifted->terms[i].coef) >= 0;
    }
    sym_scratch_release(sym, mark);
    return ok;
}

/* Sums of any length that grow with every variable: is the least value, where all are at their lower bounds,
 * >= 0? */
static bool nonnegative_in_corner(etch_sym *sym, etch_expr a)
{
    sym_coef least = ETCH_SYM_ZERO;
    for (uint32_t i = 0; i < a->count; i++) {
        const sym_mono *mono = a->terms[i].mono;
        sym_coef value = a->terms[i].coef;
        if (sym_coef_sign(value) < 0 && mono->count)
            return false;
        for (uint32_t j = 0; j < mono->count; j++) {
            const sym_atom *atom = mono->at[j].atom;
            if (atom->kind != ETCH_SYM_VAR || atom->lower < 0 || mono->at[j].exp < 0 ||
                mono->at[j].exp > MOST_EXPONENT)
                return false;
            sym_coef power = sym_coef_pow(sym, sym_coef_of(sym, atom->lower, 1), mono->at[j].exp);
            value = sym_coef_mul(sym, value, power);
        }
        least = sym_coef_add(sym, least, value);
    }
    return sym_coef_sign(least) >= 0;
}

/* ---- variables: facts ---------------------------------------------------------------------------------- */

/* May the atom, which occurs in `a`, be replaced by `value` in all its powers? */
static bool replaceable(etch_expr a, const sym_atom *atom, etch_expr value)
{
    bool found = false;
    for (uint32_t i = 0; i < a->count; i++) {
        int32_t exp = sym_mono_exp(a->terms[i].mono, atom);
        if (value->count != 1 && (exp < 0 || exp > MOST_EXPONENT))
            return false;
        found = found || exp != 0;
    }
    return found && (uint64_t)a->count * value->count <= MOST_PRODUCTS;
}

static etch_expr replace_one(etch_sym *sym, etch_expr a, const sym_atom *var, etch_expr value)
{
    sym_scratch_mark mark = sym_scratch_top(sym);
    etch_expr *values = sym_scratch_take(sym, sym->vars.count, sizeof *values);
    values[var->index] = value;
    etch_expr result = sym_replace(sym, a, values);
    sym_scratch_release(sym, mark);
    return result;
}

static bool prove_by_facts(proof *p, etch_expr a, uint32_t depth)
{
    etch_sym *sym = p->sym;
    etch_expr cleared = sym_clear_denominators(sym, a);
    a = cleared ? cleared : a;
    for (uint32_t i = 0; i < sym->alternatives.count; i++) {
        sym_alternative way = sym->alternatives.at[i];
        if (p->spent[way.spends->index] || !replaceable(a, way.var, way.value))
            continue;
        p->spent[way.spends->index] = true;
        p->facts[p->fact_count++] = way.fact;
        bool ok = prove(p, replace_one(sym, a, way.var, way.value), depth - 1);
        p->fact_count--;
        p->spent[way.spends->index] = false;
        if (ok)
            return true;
    }
    return false;
}

/* ---- opaque atoms -------------------------------------------------------------------------------------- */

/* a = factor * atom + rest; the factor may hold further powers of the atom. */
typedef struct pivot {
    sym_atom *atom;
    etch_expr factor, rest;
} pivot;

static pivot pivot_on(etch_sym *sym, etch_expr a, sym_atom *atom)
{
    const sym_mono *one_power = sym_mono_of(sym, atom, 1);
    sym_terms *factor = sym_terms_new(sym), *rest = sym_terms_new(sym);
    for (uint32_t i = 0; i < a->count; i++) {
        const sym_mono *mono = a->terms[i].mono;
        if (sym_mono_exp(mono, atom) > 0)
            sym_terms_push(sym, factor, sym_mono_div(sym, mono, one_power), a->terms[i].coef);
        else
            sym_terms_push(sym, rest, mono, a->terms[i].coef);
    }
    etch_expr f = sym_terms_finish(sym, factor), r = sym_terms_finish(sym, rest);
    return (pivot){atom, f, r};
}

/* rest + factor * value */
static bool prove_with(proof *p, etch_expr rest, etch_expr factor, etch_expr value, uint32_t depth)
{
    etch_sym *sym = p->sym;
    if ((uint64_t)factor->count * value->count > MOST_PRODUCTS)
        return false;
    return prove(p, sym_add(sym, rest, sym_mul(sym, factor, value)), depth - 1);
}

/* The greatest integer that the expression may be proved to reach: its least value over a few points,
 * rounded down. */
static bool guess_lower_bound(etch_sym *sym, etch_expr a, etch_expr *bound)
{
    enum { POINTS = 4 };
    sym_coef least = ETCH_SYM_ZERO, value;
    bool found = false;
    for (uint32_t i = 0; i < POINTS; i++) {
        const sym_coef *point = sym_point(sym, i);
        if (!point || !sym_eval(sym, a, point, &value))
            continue;
        if (!found || sym_coef_compare(value, least) < 0)
            least = value;
        found = true;
    }
    *bound = sym_constant(sym, sym_coef_floor(sym, least));
    return found && sym_is_nonnegative(sym, sym_sub(sym, a, *bound));
}

/* rest + plus * floor(R) - minus * floor(R) with plus, minus >= 0. */
static bool prove_floor(proof *p, const sym_atom *atom, etch_expr rest, etch_expr plus, etch_expr minus,
                        uint32_t depth)
{
    etch_sym *sym = p->sym;
    etch_expr R = atom->args[0], grid, bound;
    if (minus->count)
        rest = sym_sub(sym, rest, sym_mul(sym, minus, R));
    if (!plus->count)
        return prove(p, rest, depth - 1);
    etch_expr lowest = sym_add_int(sym, R, -1);
    if (sym_grid(sym, R, &grid))
        lowest = sym_add(sym, lowest, sym_div(sym, sym->one, grid));
    if (prove_with(p, rest, plus, lowest, depth))
        return true;
    if (guess_lower_bound(sym, R, &bound))
        return prove_with(p, rest, plus, bound, depth);
    return sym_is_nonnegative(sym, R) && prove_with(p, rest, plus, sym->zero, depth);
}

/* Divides a sum into the terms that are plainly >= 0 and, with the opposite sign, those that are plainly
 * <= 0. */
static bool split_by_sign(etch_sym *sym, etch_expr a, etch_expr *plus, etch_expr *minus)
{
    sym_terms *up = sym_terms_new(sym), *down = sym_terms_new(sym);
    bool ok = true;
    for (uint32_t i = 0; i < a->count; i++) {
        sym_term term = a->terms[i];
        ok = ok && nonnegative_monomial(term.mono);
        if (sym_coef_sign(term.coef) > 0)
            sym_terms_push(sym, up, term.mono, term.coef);
        else
            sym_terms_push(sym, down, term.mono, sym_coef_neg(sym, term.coef));
    }
    *plus = sym_terms_finish(sym, up);
    *minus = sym_terms_finish(sym, down);
    return ok;
}

static bool prove_by_floor(proof *p, const pivot *v, uint32_t depth)
{
    etch_sym *sym = p->sym;
    etch_expr plus, minus;
    if (sym_is_nonnegative(sym, v->factor))
        return prove_floor(p, v->atom, v->rest, v->factor, sym->zero, depth);
    etch_expr opposite = sym_neg(sym, v->factor);
    if (sym_is_nonnegative(sym, opposite))
        return prove_floor(p, v->atom, v->rest, sym->zero, opposite, depth);
    return split_by_sign(sym, v->factor, &plus, &minus) &&
           prove_floor(p, v->atom, v->rest, plus, minus, depth);
}

/* Something that the product is at least (`sign` < 0) or at most, for every index: one of its floors or max
 * in place of which a bound stands, beside factors that are never negative. NULL: none is known. */
static etch_expr bounded_product(etch_sym *sym, const sym_mono *product, int sign)
{
    for (uint32_t i = 0; i < product->count; i++) {
        sym_atom *atom = product->at[i].atom;
        const sym_mono *others = sym_mono_div(sym, product, sym_mono_of(sym, atom, 1));
        if (product->at[i].exp != 1 || !nonnegative_monomial(others))
            continue;
        etch_expr bound = NULL, grid;
        if (atom->kind == ETCH_SYM_FLOOR) {
            bound = atom->args[0];
            if (sign < 0) {
                bound = sym_add_int(sym, bound, -1);
                if (sym_grid(sym, atom->args[0], &grid))
                    bound = sym_add(sym, bound, sym_div(sym, sym->one, grid));
            }
        } else if (atom->kind == ETCH_SYM_MAX && sign < 0) {
            bound = atom->args[atom->count - 1];
        } else if (atom->kind == ETCH_SYM_POW2 && sign > 0) {
            bound = sym->one;
        }
        if (bound)
            return sym_mul(sym, bound, sym_monomial(sym, others, ETCH_SYM_ONE));
    }
    return NULL;
}

/* rest + factor * sum of products: with 0 in place of a sum that is added and has no negative term, or with
 * bounds of the products. */
static bool prove_by_sum(proof *p, const pivot *v, uint32_t depth)
{
    etch_sym *sym = p->sym;
    etch_expr body = v->atom->args[1];
    bool added = sym_is_nonnegative(sym, v->factor);
    if (!added && !sym_is_nonnegative(sym, sym_neg(sym, v->factor)))
        return false;
    if (added && sym_is_nonnegative(sym, body) && prove(p, v->rest, depth - 1))
        return true;
    etch_expr bound = bounded_product(sym, body->terms[0].mono, added ? -1 : 1);
    etch_expr sum = bound ? sym_sum(sym, v->atom->args[0], v->atom->bound, bound) : NULL;
    return sum && prove_with(p, v->rest, v->factor, sum, depth);
}

/* `a` with all powers of the atom replaced. */
static etch_expr with_value(etch_sym *sym, etch_expr a, sym_atom *atom, etch_expr value)
{
    etch_expr result = sym->zero;
    for (uint32_t i = 0; i < a->count; i++) {
        const sym_term *term = &a->terms[i];
        int32_t exp = sym_mono_exp(term->mono, atom);
        const sym_mono *others = sym_mono_div(sym, term->mono, sym_mono_of(sym, atom, exp));
        etch_expr factor = sym_monomial(sym, others, term->coef);
        result = sym_add(sym, result, sym_mul(sym, factor, sym_pow(sym, value, exp)));
    }
    return result;
}

/* The case that argument `i` is the greatest: the max is that argument. */
static bool prove_case(proof *p, etch_expr a, sym_atom *max, uint32_t i, uint32_t depth)
{
    etch_sym *sym = p->sym;
    uint32_t before = p->given_count;
    if (!replaceable(a, max, max->args[i]))
        return false;
    for (uint32_t k = 0; k < max->count && p->given_count < PROOF_GIVEN; k++)
        if (k != i)
            p->given[p->given_count++] = sym_sub(sym, max->args[i], max->args[k]);
    bool ok = prove(p, with_value(sym, a, max, max->args[i]), depth - 1);
    p->given_count = before;
    return ok;
}

/* With any one argument in its place if that makes the statement stronger; else case by case. */
static bool prove_by_max(proof *p, etch_expr a, sym_atom *max, uint32_t depth)
{
    pivot v = pivot_on(p->sym, a, max);
    if (sym_is_nonnegative(p->sym, v.factor))
        for (uint32_t i = 0; i < max->count; i++)
            if (prove_with(p, v.rest, v.factor, max->args[i], depth))
                return true;
    bool ok = true;
    for (uint32_t i = 0; ok && i < max->count; i++)
        ok = prove_case(p, a, max, i, depth);
    return ok;
}

/* factor * (larger - smaller), where a greater `gap` makes the difference greater; an integer gap is it. */
typedef struct pair {
    etch_expr factor, gap, rest;
} pair;

/* What floor(x) is the opposite of: floor(-x + 1 - 1/q), where x takes multiples of 1/q. NULL: no q is
 * known. */
static etch_expr mirrored(etch_sym *sym, etch_expr x)
{
    etch_expr grid;
    if (!sym_grid(sym, x, &grid))
        return NULL;
    return sym_sub(sym, sym_add_int(sym, sym_neg(sym, x), 1), sym_div(sym, sym->one, grid));
}

/* x.factor * floor(x) + y.factor * floor(y) as a pair: the factors are opposite, or equal and one of the
 * floors is mirrored. */
static bool pair_of_floors(etch_sym *sym, const pivot *x, const pivot *y, pair *out)
{
    etch_expr larger = x->atom->args[0], smaller = y->atom->args[0];
    if (x->factor != y->factor)
        out->factor = sym_add(sym, x->factor, y->factor) == sym->zero ? x->factor : NULL;
    else if (sym_is_nonnegative(sym, x->factor))
        smaller = mirrored(sym, smaller);
    else
        larger = mirrored(sym, larger);
    if (x->factor == y->factor)
        out->factor = sym_is_nonnegative(sym, x->factor) ? x->factor : sym_neg(sym, x->factor);
    if (!out->factor || !larger || !smaller)
        return false;
    out->gap = sym_sub(sym, larger, smaller);
    return true;
}

/* Two floors, or two sums of as many terms, that can be compared. */
static bool pair_of(etch_sym *sym, const pivot *x, const pivot *y, pair *out)
{
    out->rest = y->rest;
    if (x->atom->kind == ETCH_SYM_FLOOR && y->atom->kind == ETCH_SYM_FLOOR)
        return pair_of_floors(sym, x, y, out);
    if (x->atom->kind != ETCH_SYM_SUM || y->atom->kind != ETCH_SYM_SUM ||
        x->atom->args[0] != y->atom->args[0] || x->atom->bound != y->atom->bound ||
        sym_add(sym, x->factor, y->factor) != sym->zero)
        return false;
    out->factor = x->factor;
    out->gap = sym_sub(sym, x->atom->args[1], y->atom->args[1]);
    return true;
}

/* In the case at hand, or always. */
static bool nonnegative_here(proof *p, etch_expr a, uint32_t depth)
{
    return sym_is_nonnegative(p->sym, a) || (p->given_count > 0 && prove(p, a, depth - 1));
}

/* c * floor(x) - c * floor(y) >= 0 when c >= 0 and x >= y: leaves the pair out; or puts a number in its
 * place. */
static bool prove_by_pair(proof *p, etch_expr a, sym_atom *const *atoms, uint32_t count, uint32_t depth)
{
    etch_sym *sym = p->sym;
    for (uint32_t i = 0; i < count; i++) {
        pivot x = pivot_on(sym, a, atoms[i]);
        for (uint32_t j = 0; j < count && atoms[i]->kind != ETCH_SYM_MAX; j++) {
            pair found = {NULL, NULL, NULL};
            etch_expr bound;
            if (j == i)
                continue;
            pivot y = pivot_on(sym, x.rest, atoms[j]);
            if (y.factor->count == 0 || !pair_of(sym, &x, &y, &found) ||
                !sym_is_nonnegative(sym, found.factor))
                continue;
            if (atoms[i]->kind == ETCH_SYM_FLOOR && sym_is_integer(sym, found.gap))
                return prove_with(p, found.rest, found.factor, found.gap, depth);
            if (nonnegative_here(p, found.gap, depth) && prove(p, found.rest, depth - 1))
                return true;
            /* floor(x) - floor(y) >= floor(x - y) */
            if (atoms[i]->kind == ETCH_SYM_FLOOR && guess_lower_bound(sym, found.gap, &bound) &&
                bound->count && prove_with(p, found.rest, found.factor, bound, depth))
                return true;
        }
    }
    return false;
}

/* pow2(x) case by case: everywhere it is 0, or x >= 1 and it is 1. Where `a` has no value in a case it says
 * nothing. */
static bool prove_by_power(proof *p, etch_expr a, const sym_atom *power, uint32_t depth)
{
    etch_sym *sym = p->sym;
    etch_expr none = sym_put(sym, a, power, sym->zero), here = sym_put(sym, a, power, sym->one);
    if (none && !prove(p, none, depth - 1))
        return false;
    uint32_t before = p->given_count;
    if (p->given_count < PROOF_GIVEN)
        p->given[p->given_count++] = sym_add_int(sym, power->args[0], -1);
    bool ok = !here || prove(p, here, depth - 1);
    p->given_count = before;
    return ok;
}

/* Case by case for a max inside others: everywhere it is the argument that is the greatest. */
static bool prove_by_inner_choice(proof *p, etch_expr a, uint32_t depth)
{
    enum { LOOK = 4 };
    etch_sym *sym = p->sym;
    sym_atom *max = sym_inner_choice(sym, a, LOOK);
    bool ok = max != NULL;
    if (ok && max->kind == ETCH_SYM_POW2)
        return prove_by_power(p, a, max, depth);
    for (uint32_t i = 0; ok && i < max->count; i++) {
        uint32_t before = p->given_count;
        for (uint32_t k = 0; k < max->count && p->given_count < PROOF_GIVEN; k++)
            if (k != i)
                p->given[p->given_count++] = sym_sub(sym, max->args[i], max->args[k]);
        etch_expr here = sym_put(sym, a, max, max->args[i]);
        ok = here && prove(p, here, depth - 1);
        p->given_count = before;
    }
    return ok;
}

static bool prove_opaque(proof *p, etch_expr a, uint32_t depth)
{
    enum { ATOMS = 16 };
    etch_sym *sym = p->sym;
    const sym_atom *power = sym_some_power(a);
    if (power)
        return prove_by_power(p, a, power, depth); /* cases lose nothing */
    /* further steps need every opaque atom with exponents > 0 */
    a = sym_clear_denominators(sym, a);
    if (!a)
        return false;
    sym_scratch_mark mark = sym_scratch_top(sym);
    uint32_t count;
    sym_atom **atoms = sym_opaque_atoms(sym, a, ATOMS, &count), *max = sym_next_max(a, atoms, count);
    bool ok = prove_by_pair(p, a, atoms, count, depth) || prove_by_inner_choice(p, a, depth);
    if (!ok && max) {
        /* cases lose nothing: no need to try another atom first */
        ok = prove_by_max(p, a, max, depth);
    } else {
        for (uint32_t i = 0; !ok && i < count; i++) {
            pivot v = pivot_on(sym, a, atoms[i]);
            ok = atoms[i]->kind == ETCH_SYM_SUM ? prove_by_sum(p, &v, depth) : prove_by_floor(p, &v, depth);
        }
    }
    sym_scratch_release(sym, mark);
    return ok;
}

/* N/D >= 0: the sign of D decides which way N has to lie. */
static bool prove_fraction(proof *p, etch_expr a, uint32_t depth)
{
    etch_sym *sym = p->sym;
    sym_fraction x = sym_split(sym, a);
    if (sym_is_positive(sym, x.den))
        return prove(p, x.num, depth - 1);
    return sym_is_positive(sym, sym_neg(sym, x.den)) && prove(p, sym_neg(sym, x.num), depth - 1);
}

/* A factor >= 0 that has a value everywhere: a denominator must not say that a variable is not 0. */
static bool nonnegative_factor(etch_sym *sym, const sym_mono *mono)
{
    for (uint32_t i = 0; i < mono->count; i++)
        if (mono->at[i].exp < 0 && !sym_atom_is_positive(sym, mono->at[i].atom, false))
            return false;
    return nonnegative_monomial(mono);
}

/* a >= 0 given that g >= 0: takes from `a` a multiple of g that cancels its first negative term. */
static bool prove_given(proof *p, etch_expr a, etch_expr g, uint32_t depth)
{
    etch_sym *sym = p->sym;
    uint32_t at = 0;
    while (at < a->count && sym_coef_sign(a->terms[at].coef) > 0)
        at++;
    for (uint32_t i = 0; at < a->count && i < g->count; i++) {
        if (sym_coef_sign(g->terms[i].coef) > 0)
            continue;
        const sym_mono *mono = sym_mono_div(sym, a->terms[at].mono, g->terms[i].mono);
        sym_coef coef = sym_coef_div(sym, a->terms[at].coef, g->terms[i].coef);
        if (nonnegative_factor(sym, mono) &&
            prove_with(p, a, sym_monomial(sym, mono, sym_coef_neg(sym, coef)), g, depth))
            return true;
    }
    return false;
}

/* Completes a square: c*x^2 + 2*c*x*y is c*(x + y)^2 - c*y^2, where y is all that stands beside x. */
static bool prove_by_square(proof *p, etch_expr a, uint32_t depth)
{
    etch_sym *sym = p->sym;
    etch_expr cleared = sym_clear_denominators(sym, a);
    a = cleared ? cleared : a;
    for (uint32_t i = 0; a->count <= SQUARE_TERMS && i < a->count; i++) {
        const sym_term *square = &a->terms[i];
        const sym_mono *x = sym_coef_sign(square->coef) > 0 ? sym_root_of(sym, square->mono) : NULL;
        if (!x || x->count == 0)
            continue;
        sym_coef half = sym_coef_inv(sym, sym_coef_mul(sym, square->coef, (sym_coef){.num = 2, .den = 1}));
        etch_expr root = sym->zero;
        for (uint32_t j = 0; j < a->count; j++) {
            const sym_mono *y = sym_mono_div(sym, a->terms[j].mono, x);
            if (sym_apart_from(y, x))
                root = sym_add(sym, root, sym_monomial(sym, y, sym_coef_mul(sym, a->terms[j].coef, half)));
        }
        if (root->count == 0)
            continue;
        root = sym_add(sym, root, sym_monomial(sym, x, ETCH_SYM_ONE));
        etch_expr taken = sym_scale(sym, sym_mul(sym, root, root), sym->unit, square->coef);
        if (prove(p, sym_sub(sym, a, taken), depth - 1))
            return true;
    }
    return false;
}

/* With what holds in the cases at hand, each used once. */
static bool prove_by_cases_given(proof *p, etch_expr a, uint32_t depth)
{
    for (uint32_t i = 0; i < p->given_count; i++) {
        etch_expr g = p->given[i];
        if (g->count == 0 || (g->flags & ETCH_SYM_HAS_RECIP))
            continue;
        p->given[i] = p->sym->zero;
        bool ok = prove_given(p, a, g, depth);
        p->given[i] = g;
        if (ok)
            return true;
    }
    return false;
}

/* ---- the search ---------------------------------------------------------------------------------------- */

static bool prove(proof *p, etch_expr a, uint32_t depth)
{
    etch_sym *sym = p->sym;
    if (plainly_nonnegative(a))
        return succeed(p, a);
    if (a->count > MOST_TERMS)
        return !p->given_count && nonnegative_in_corner(sym, a) && succeed(p, a);
    if (sym_is_constant(a) && !p->given_count)
        return false;
    if (!p->given_count && sym_memo_get(p->failed, a))
        return false;
    bool ok = false;
    if (!(a->flags & ETCH_SYM_HAS_OPAQUE) && nonnegative_from_lower_bounds(sym, a)) {
        ok = succeed(p, a);
    } else if (depth > 0 && p->steps > 0 && spend_work(sym, a->count)) {
        p->steps--;
        if (a->flags & ETCH_SYM_HAS_RECIP)
            ok = prove_fraction(p, a, depth);
        else if (a->flags & ETCH_SYM_HAS_OPAQUE)
            ok = prove_opaque(p, a, depth);
        else
            ok = prove_by_cases_given(p, a, depth) || prove_by_facts(p, a, depth) ||
                 prove_by_square(p, a, depth);
    }
    if (!ok && depth > 0 && !p->given_count)
        sym_memo_put(sym, p->failed, a, &failed);
    return ok;
}

/* A proof from the beginning. Cheap ways to an answer come first: a few points, the end of a proof at once,
 * more points. */
static bool prove_anew(etch_sym *sym, etch_expr a)
{
    enum { FIRST_POINTS = 4, ALL_POINTS = 32, EVALUATION_WORTH = 4 };
    sym_scratch_mark mark = sym_scratch_top(sym);
    proof p = {.sym = sym, .steps = PROOF_STEPS, .failed = &sym->failed[sym->proof_nesting - 1]};
    p.spent = sym_scratch_take(sym, sym->vars.count, sizeof *p.spent);
    sym_memo_clear(p.failed);
    bool ok = false;
    uint64_t before = sym_work_without_points(sym);
    if (!sym_negative_at(sym, a, 0, FIRST_POINTS)) {
        ok = prove(&p, a, 0);
        if (!ok && !sym_negative_at(sym, a, FIRST_POINTS, ALL_POINTS)) {
            (void)spend_work(sym, (sym_work_without_points(sym) - before) / EVALUATION_WORTH);
            ok = prove(&p, a, PROOF_DEPTH);
        }
    }
    sym_scratch_release(sym, mark);
    return ok;
}

bool sym_is_nonnegative(etch_sym *sym, etch_expr a)
{
    if (sym_is_constant(a))
        return sym_coef_sign(sym_constant_of(a)) >= 0;
    const void *known = sym->tracing ? NULL : sym_memo_get(&sym->proofs, a);
    if (known)
        return known == &proved;
    /* proofs that are asked for on the way are nested in the first and share its work */
    if (sym->proof_nesting == 0)
        sym->proof_work = PROOF_WORK;
    if (sym->proof_work == 0)
        return plainly_nonnegative(a);
    if (sym->proof_nesting == ETCH_SYM_MAX_NESTED)
        return false;
    sym->proof_nesting++;
    bool ok = prove_anew(sym, a);
    sym->proof_nesting--;
    /* a failure for lack of work left is no answer to a question that has all of it */
    bool cut_short = !ok && sym->proof_nesting > 0 && sym->proof_work == 0;
    if (!sym->tracing && !cut_short)
        sym_memo_put(sym, &sym->proofs, a, ok ? &proved : &failed);
    return ok;
}

bool sym_is_positive(etch_sym *sym, etch_expr a)
{
    if (sym_is_constant(a))
        return sym_coef_sign(sym_constant_of(a)) > 0;
    if (a->flags & ETCH_SYM_HAS_RECIP) {
        sym_fraction x = sym_split(sym, a);
        if (sym_is_positive(sym, x.den))
            return sym_is_positive(sym, x.num);
        return sym_is_positive(sym, sym_neg(sym, x.den)) && sym_is_positive(sym, sym_neg(sym, x.num));
    }
    etch_expr grid;
    if (sym_grid(sym, a, &grid))
        return sym_is_nonnegative(sym, sym_sub(sym, a, sym_div(sym, sym->one, grid)));
    if (!plainly_nonnegative(a))
        return false;
    for (uint32_t i = 0; i < a->count; i++) {
        bool positive = true;
        for (uint32_t j = 0; positive && j < a->terms[i].mono->count; j++)
            positive =
                sym_atom_is_positive(sym, a->terms[i].mono->at[j].atom, a->terms[i].mono->at[j].exp < 0);
        if (positive)
            return true;
    }
    return false;
}
