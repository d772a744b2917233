/* What is assumed, brought into the forms that the rest uses:
 *
 *     d | n     the ratio n/d is an integer (integrality.c); a variable of n is d times a quotient (prove.c)
 *     a >= b    a variable is some other expression plus a slack >= 0 (prove.c); or has a greater lower bound
 *     pow2(x)   x is a power of two, or is none (powers.c)
 *     a == b    one variable is replaced by an expression in the others, everywhere (subst.c)
 *
 * Facts are kept as they were given, and an equality derives all forms again. Whether one contradicts the
 * others is asked of prove.c; which one, by noting what the proof used. */
#include <string.h>

#include "symbolic/symbolic_int.h"

void sym_new_epoch(etch_sym *sym)
{
    sym->epoch++;
    sym_memo_clear(&sym->fresh);
    sym_memo_clear(&sym->floors);
    sym_memo_clear(&sym->ceilings);
    sym_memo_clear(&sym->proofs);
    for (uint32_t i = 0; sym->definitions && i < sym->vars.count; i++)
        sym->vars.at[i]->definition = sym_refresh(sym, sym->vars.at[i]->definition);
}

void sym_used_fact(etch_sym *sym, uint32_t fact)
{
    if (fact != ETCH_SYM_DECLARED && (sym->last_fact == ETCH_SYM_DECLARED || fact > sym->last_fact))
        sym->last_fact = fact;
}

/* A variable of proofs that is at least `lower`. They are used again whenever the forms are derived again. */
static sym_atom *proof_var(etch_sym *sym, int64_t lower)
{
    if (sym->proof_vars_used == sym->proof_vars.count)
        ETCH_PUSH(sym->arena, &sym->proof_vars, sym_atom_new_var(sym, NULL, lower));
    sym_atom *atom = sym->proof_vars.at[sym->proof_vars_used++];
    atom->lower = lower;
    return atom;
}

/* ---- a >= b -------------------------------------------------------------------------------------------- */

/* The term of `a` with var^1 when no other term has the variable: its index; else a->count. */
static uint32_t only_term_with(etch_expr a, const sym_atom *var)
{
    uint32_t found = a->count;
    for (uint32_t i = 0; i < a->count; i++) {
        int32_t exp = sym_mono_exp(a->terms[i].mono, var);
        if (exp != 0 && (exp != 1 || found < a->count))
            return a->count;
        if (exp != 0)
            found = i;
    }
    return found;
}

/* Solves a == 0 for the variable in term `at`, which it occurs in to the power 1 and nowhere else. */
static etch_expr solve(etch_sym *sym, etch_expr a, uint32_t at, sym_atom *var)
{
    const sym_term *term = &a->terms[at];
    const sym_mono *factor = sym_mono_div(sym, term->mono, sym_mono_of(sym, var, 1));
    etch_expr rest = sym_sub(sym, sym_monomial(sym, term->mono, term->coef), a);
    return sym_scale(sym, rest, sym_mono_pow(sym, factor, -1), sym_coef_inv(sym, term->coef));
}

static bool positive_factors(etch_sym *sym, const sym_mono *mono)
{
    for (uint32_t i = 0; i < mono->count; i++)
        if (!sym_atom_is_positive(sym, mono->at[i].atom, false))
            return false;
    return true;
}

/* May one divide by what stands beside var^1 in the monomial? */
static bool positive_factors_beside(etch_sym *sym, const sym_mono *mono, sym_atom *var)
{
    return positive_factors(sym, sym_mono_div(sym, mono, sym_mono_of(sym, var, 1)));
}

/* The ways to write a variable of gap = coef * var * factor + rest >= 0 as solution +- slack: those whose
 * coefficient has the sign of `sign`. */
static bool add_bound_alternatives(etch_sym *sym, etch_expr gap, sym_atom *slack, uint32_t fact, int sign)
{
    bool any = false;
    for (uint32_t v = 0; v < sym->vars.count; v++) {
        sym_atom *var = sym->vars.at[v];
        uint32_t at = only_term_with(gap, var);
        if (at == gap->count || sym_coef_sign(gap->terms[at].coef) != sign)
            continue;
        if (!positive_factors_beside(sym, gap->terms[at].mono, var))
            continue;
        etch_expr value = solve(sym, gap, at, var);
        value = sign > 0 ? sym_add(sym, value, slack->self) : sym_sub(sym, value, slack->self);
        ETCH_PUSH(sym->arena, &sym->alternatives, (sym_alternative){var, value, slack, fact, sign > 0});
        any = true;
    }
    return any;
}

/* c * var + k >= 0: raises the lower bound of the variable. */
static bool raise_lower(etch_sym *sym, etch_expr gap, uint32_t fact)
{
    if (gap->count > 2 || gap->terms[0].mono->count != 1 ||
        (gap->count == 2 && gap->terms[1].mono->count != 0))
        return false;
    sym_atom *var = gap->terms[0].mono->at[0].atom;
    if (gap->terms[0].mono->at[0].exp != 1 || var->is_real || sym_coef_sign(gap->terms[0].coef) < 0)
        return false;
    sym_coef least = sym_constant_of(solve(sym, gap, 0, var));
    least = sym_coef_neg(sym, sym_coef_floor(sym, sym_coef_neg(sym, least)));
    if (!sym_coef_is_small(least))
        return false;
    if (least.num > var->lower) {
        var->lower = least.num;
        var->lower_fact = fact;
    }
    return true;
}

/* The only opaque atom of `a`, in one term that is a number times the atom; NULL when that is not so. */
static sym_atom *lone_opaque(etch_expr a, sym_coef *coef)
{
    sym_atom *found = NULL;
    for (uint32_t i = 0; i < a->count; i++) {
        const sym_mono *mono = a->terms[i].mono;
        if (!(mono->flags & ETCH_SYM_HAS_OPAQUE))
            continue;
        if (found || mono->count != 1 || mono->at[0].exp != 1)
            return NULL;
        found = mono->at[0].atom;
        *coef = a->terms[i].coef;
    }
    return found;
}

static etch_status add_bound(etch_sym *sym, etch_expr gap, uint32_t fact);
static etch_status take_divides(etch_sym *sym, etch_expr d, etch_expr n, uint32_t fact);
static etch_status take_powers(etch_sym *sym, const sym_mono *powers, bool are_powers, uint32_t fact);
static const sym_mono *powers_in_gap(etch_sym *sym, etch_expr gap, bool *are_powers);

/* c*floor(R) + rest >= 0 for an integer rest/c: says as much as c*R + rest >= 0 when c > 0; else that R is at
 * most the multiple of 1/q below rest/-c + 1. */
static etch_status add_floor_bound(etch_sym *sym, const sym_atom *floor, sym_coef c, etch_expr rest,
                                   uint32_t fact)
{
    etch_expr others = sym_scale(sym, rest, sym->unit, sym_coef_inv(sym, sym_coef_abs(sym, c))), grid;
    if (!sym_is_integer(sym, others))
        return ETCH_EUNKNOWN;
    if (sym_coef_sign(c) > 0)
        return add_bound(sym, sym_add(sym, floor->args[0], others), fact);
    if (!sym_grid(sym, floor->args[0], &grid))
        return ETCH_EUNKNOWN;
    etch_expr most = sym_sub(sym, sym_add_int(sym, others, 1), sym_div(sym, sym->one, grid));
    return add_bound(sym, sym_sub(sym, most, floor->args[0]), fact);
}

/* Bounds of one floor, or by a max: what is above a max is above each of its arguments. */
static etch_status add_opaque_bound(etch_sym *sym, etch_expr gap, uint32_t fact)
{
    sym_coef c;
    const sym_atom *atom = lone_opaque(gap, &c);
    if (!atom)
        return ETCH_EUNKNOWN;
    etch_expr rest = sym_sub(sym, gap, sym_scale(sym, atom->self, sym->unit, c));
    if (atom->kind == ETCH_SYM_FLOOR)
        return add_floor_bound(sym, atom, c, rest, fact);
    if (atom->kind != ETCH_SYM_MAX || sym_coef_sign(c) > 0)
        return ETCH_EUNKNOWN;
    etch_status status = ETCH_OK;
    for (uint32_t i = 0; i < atom->count; i++)
        if (add_bound(sym, sym_add(sym, rest, sym_scale(sym, atom->args[i], sym->unit, c)), fact) != ETCH_OK)
            status = ETCH_EUNKNOWN;
    return status;
}

/* Takes gap >= 0. ETCH_EUNKNOWN: of no use for proofs, or not all of it. */
static etch_status add_bound(etch_sym *sym, etch_expr gap, uint32_t fact)
{
    if (gap->flags & ETCH_SYM_HAS_RECIP) {
        sym_fraction x = sym_split(sym, gap);
        if (!sym_is_positive(sym, x.den))
            return ETCH_EUNKNOWN;
        gap = x.num;
    }
    if (gap->flags & ETCH_SYM_HAS_OPAQUE) {
        bool are_powers;
        const sym_mono *powers = powers_in_gap(sym, gap, &are_powers);
        return powers ? take_powers(sym, powers, are_powers, fact) : add_opaque_bound(sym, gap, fact);
    }
    gap = sym_clear_denominators(sym, gap);
    if (!gap || sym_is_constant(gap))
        return ETCH_EUNKNOWN;
    const sym_mono *common = sym_mono_content(sym, gap);
    if (positive_factors(sym, common))
        gap = sym_scale(sym, gap, sym_mono_pow(sym, common, -1), ETCH_SYM_ONE);
    if (raise_lower(sym, gap, fact))
        return ETCH_OK;
    sym_atom *slack = proof_var(sym, 0);
    /* writing the greater side through the smaller keeps coefficients positive */
    if (!add_bound_alternatives(sym, gap, slack, fact, 1) &&
        !add_bound_alternatives(sym, gap, slack, fact, -1))
        return ETCH_EUNKNOWN;
    ETCH_PUSH(sym->arena, &sym->bounds, (sym_bound){gap, slack, fact});
    return ETCH_OK;
}

/* Takes that all of the pow2 are 1, so that their arguments are integers >= 1; or that the only one is 0. */
static etch_status take_powers(etch_sym *sym, const sym_mono *powers, bool are_powers, uint32_t fact)
{
    if (!are_powers && powers->count > 1)
        return ETCH_EUNKNOWN;
    for (uint32_t i = 0; i < powers->count; i++) {
        etch_expr x = powers->at[i].atom->args[0], above_one = sym_add_int(sym, x, -1);
        ETCH_PUSH(sym->arena, &sym->known_powers, (sym_known_power){x, are_powers, fact});
        sym->power_sources++;
        if (are_powers && !sym_is_integer(sym, x))
            (void)take_divides(sym, sym->one, x, fact);
        if (are_powers && !sym_is_nonnegative(sym, above_one))
            (void)add_bound(sym, above_one, fact);
    }
    return ETCH_OK;
}

/* Is gap >= 0 a statement about pow2 alone? */
static const sym_mono *powers_in_gap(etch_sym *sym, etch_expr gap, bool *are_powers)
{
    const sym_mono *found = sym_powers_of(sym_add_int(sym, gap, 1));
    *are_powers = found;
    return found ? found : sym_powers_of(sym_neg(sym, gap));
}

static etch_status take_at_least(etch_sym *sym, etch_expr a, etch_expr b, uint32_t fact)
{
    etch_expr gap = sym_sub(sym, a, b);
    if (sym_is_positive(sym, sym_neg(sym, gap)))
        return ETCH_EINPUT;
    return sym_is_nonnegative(sym, gap) ? ETCH_OK : add_bound(sym, gap, fact);
}

/* ---- d | n --------------------------------------------------------------------------------------------- */

/* What the quotient coef * mono, a known integer, is at least; -1 when its sign is not known. */
static int64_t least_quotient(etch_sym *sym, const sym_mono *mono)
{
    int64_t least = 1;
    for (uint32_t i = 0; i < mono->count; i++) {
        const sym_power *power = &mono->at[i];
        if (sym_atom_is_positive(sym, power->atom, power->exp < 0))
            continue;
        if (power->atom->kind != ETCH_SYM_VAR || power->atom->lower < 0)
            return -1;
        least = 0;
    }
    return least;
}

/* var = quotient / (coef * mono/var) for the variables of the numerator. */
static void add_ratio_alternatives(etch_sym *sym, const sym_ratio *ratio)
{
    for (uint32_t i = 0; i < ratio->mono->count; i++) {
        sym_power power = ratio->mono->at[i];
        if (power.exp != 1)
            continue;
        const sym_mono *others = sym_mono_div(sym, ratio->mono, sym_mono_of(sym, power.atom, 1));
        if (!positive_factors(sym, sym_mono_part(sym, others, 1)))
            continue;
        etch_expr value = sym_scale(sym, ratio->quotient->self, sym_mono_pow(sym, others, -1),
                                    sym_coef_inv(sym, ratio->coef));
        ETCH_PUSH(sym->arena, &sym->alternatives,
                  (sym_alternative){power.atom, value, ratio->quotient, ratio->fact, false});
    }
}

/* Integers of one monomial: h/2 and h/3 make h/6; and a plain product is an integer itself. */
static sym_coef finest(etch_sym *sym, const sym_mono *mono, sym_coef coef)
{
    coef = sym_coef_abs(sym, coef);
    if (!(mono->flags & ETCH_SYM_HAS_NEGATIVE))
        coef = sym_coef_gcd(sym, coef, ETCH_SYM_ONE);
    for (uint32_t i = 0; i < sym->ratios.count; i++)
        if (sym->ratios.at[i].mono == mono)
            coef = sym_coef_gcd(sym, coef, sym->ratios.at[i].coef);
    return coef;
}

/* Takes that the single term `a` is an integer. ETCH_EUNKNOWN: of no use. */
static etch_status add_ratio(etch_sym *sym, etch_expr a, uint32_t fact)
{
    const sym_mono *mono = a->terms[0].mono;
    for (uint32_t i = 0; i < mono->count; i++)
        if (!sym_atom_is_integer(sym, mono->at[i].atom))
            return ETCH_EUNKNOWN;
    if (sym_is_odd_part_of_power(sym, mono, a->terms[0].coef))
        return ETCH_EINPUT;
    sym_ratio ratio = {mono, finest(sym, mono, a->terms[0].coef), NULL, fact};
    int64_t least = mono->flags & ETCH_SYM_HAS_OPAQUE ? -1 : least_quotient(sym, mono);
    if (least >= 0) {
        ratio.quotient = proof_var(sym, least);
        add_ratio_alternatives(sym, &ratio);
    }
    ETCH_PUSH(sym->arena, &sym->ratios, ratio);
    sym->power_sources += sym_mono_part(sym, mono, 1) == sym->unit;
    if (least == 1 && sym_mono_part(sym, mono, 1) == sym->unit) {
        /* tp | 8: tp is at most 8 */
        etch_expr below = sym_monomial(sym, sym_mono_pow(sym, mono, -1), ETCH_SYM_ONE);
        (void)add_bound(sym, sym_sub(sym, sym_constant(sym, ratio.coef), below), fact);
    }
    return ETCH_OK;
}

static etch_status take_divides(etch_sym *sym, etch_expr d, etch_expr n, uint32_t fact)
{
    etch_expr ratio = sym_div(sym, n, d);
    if (!ratio)
        return ETCH_EINPUT;
    if (sym_is_constant(ratio))
        return sym_coef_is_integer(sym_constant_of(ratio)) ? ETCH_OK : ETCH_EINPUT;
    if (sym_is_positive(sym, ratio) && sym_is_positive(sym, sym_sub(sym, sym->one, ratio)))
        return ETCH_EINPUT;
    if (ratio->count == 1 && !(ratio->flags & ETCH_SYM_HAS_RECIP))
        return add_ratio(sym, ratio, fact);
    return sym_is_integer(sym, ratio) ? ETCH_OK : ETCH_EUNKNOWN;
}

/* ---- a == b -------------------------------------------------------------------------------------------- */

/* How good it is to replace a variable by `value`; less is better. */
static int replacement_rank(etch_sym *sym, const sym_atom *var, etch_expr value)
{
    bool subtracts = false, integer_atoms = true;
    for (uint32_t i = 0; i < value->count; i++) {
        subtracts = subtracts || sym_coef_sign(value->terms[i].coef) < 0;
        for (uint32_t j = 0; j < value->terms[i].mono->count; j++)
            integer_atoms = integer_atoms && sym_atom_is_integer(sym, value->terms[i].mono->at[j].atom);
    }
    /* that the value is an integer can be kept as a fact when it is a single term */
    bool keeps_integer = var->is_real || sym_is_integer(sym, value) || (value->count <= 1 && integer_atoms);
    return !keeps_integer ? 2 : subtracts ? 1 : 0;
}

/* Solves a == 0 for the best variable, among equally good ones the one declared last. NULL: for none. */
static sym_atom *isolate(etch_sym *sym, etch_expr a, etch_expr *value)
{
    sym_atom *best = NULL;
    int best_rank = 0;
    sym_scratch_mark mark = sym_scratch_top(sym);
    bool *inside = sym_scratch_take(sym, sym->vars.count, sizeof *inside);
    for (uint32_t i = 0; i < a->count; i++)
        for (uint32_t j = 0; j < a->terms[i].mono->count; j++) {
            const sym_atom *atom = a->terms[i].mono->at[j].atom;
            for (uint32_t k = 0; k < atom->count; k++)
                sym_mark_vars(sym, atom->args[k], inside);
        }
    for (uint32_t v = sym->vars.count; v-- > 0;) {
        sym_atom *var = sym->vars.at[v];
        uint32_t at = inside[v] ? a->count : only_term_with(a, var);
        if (at == a->count || !positive_factors_beside(sym, a->terms[at].mono, var))
            continue;
        etch_expr solution = solve(sym, a, at, var);
        int rank = replacement_rank(sym, var, solution);
        if (best && rank >= best_rank)
            continue;
        best = var;
        best_rank = rank;
        *value = solution;
    }
    sym_scratch_release(sym, mark);
    return best;
}

/* Takes what the variable's declaration says of the expression that replaced it. */
static etch_status constrain_definition(etch_sym *sym, const sym_atom *var)
{
    etch_expr value = var->definition;
    if (!value)
        return ETCH_EINPUT;
    if (sym_is_constant(value)) {
        sym_coef c = sym_constant_of(value);
        if (var->is_real)
            return sym_coef_sign(c) > 0 ? ETCH_OK : ETCH_EINPUT;
        if (!sym_coef_is_integer(c))
            return ETCH_EINPUT;
    }
    if (!var->is_real && value->count == 1 && !sym_is_integer(sym, value))
        (void)add_ratio(sym, value, var->definition_fact);
    etch_expr gap = sym_sub(sym, value, sym_constant(sym, sym_coef_of(sym, var->declared_lower, 1)));
    if (sym_is_positive(sym, sym_neg(sym, gap)))
        return ETCH_EINPUT;
    if (!sym_is_nonnegative(sym, gap))
        (void)add_bound(sym, gap, var->definition_fact);
    return ETCH_OK;
}

static etch_status take_fact(etch_sym *sym, const sym_fact *fact, uint32_t index);

/* Derives the forms of all facts again. ETCH_EINPUT: sym->last_fact contradicts those before it. */
static etch_status derive_all(etch_sym *sym)
{
    sym->ratios.count = sym->bounds.count = sym->alternatives.count = sym->proof_vars_used = 0;
    sym->known_powers.count = sym->power_sources = 0;
    for (uint32_t i = 0; i < sym->vars.count; i++) {
        sym->vars.at[i]->lower = sym->vars.at[i]->declared_lower;
        sym->vars.at[i]->lower_fact = ETCH_SYM_DECLARED;
    }
    sym_new_epoch(sym);
    for (uint32_t i = 0; i < sym->vars.count; i++) {
        const sym_atom *var = sym->vars.at[i];
        if (var->definition_fact == ETCH_SYM_DECLARED)
            continue;
        etch_status status = constrain_definition(sym, var);
        if (status != ETCH_OK) {
            if (var->definition_fact < sym->facts.count) /* not the one at hand */
                sym_used_fact(sym, var->definition_fact);
            return status;
        }
    }
    for (uint32_t i = 0; i < sym->facts.count; i++)
        if (take_fact(sym, &sym->facts.at[i], i) == ETCH_EINPUT) {
            sym->last_fact = i;
            return ETCH_EINPUT;
        }
    return ETCH_OK;
}

/* Replaces the variable everywhere. When that contradicts an older fact everything is put back. */
static etch_status define(etch_sym *sym, sym_atom *var, etch_expr value, uint32_t fact)
{
    sym_scratch_mark mark = sym_scratch_top(sym);
    etch_expr *before = sym_scratch_take(sym, sym->vars.count, sizeof *before);
    uint32_t count = sym->vars.count;
    for (uint32_t i = 0; i < count; i++)
        before[i] = sym->vars.at[i]->definition;
    var->definition = value;
    var->definition_fact = fact;
    sym->definitions++;
    etch_status status = derive_all(sym);
    if (status != ETCH_OK) {
        uint32_t culprit = sym->last_fact;
        var->definition_fact = ETCH_SYM_DECLARED;
        sym->definitions--;
        for (uint32_t i = 0; i < count; i++)
            sym->vars.at[i]->definition = before[i];
        (void)derive_all(sym);
        sym->last_fact = culprit;
    }
    sym_scratch_release(sym, mark);
    return status;
}

/* Is there something in a - b == 0 that cannot be? */
static bool cannot_be_zero(etch_sym *sym, etch_expr a)
{
    return (sym_is_constant(a) && a->count) || sym_is_positive(sym, a) ||
           sym_is_positive(sym, sym_neg(sym, a));
}

/* What is an integer because it equals its floor or ceiling: x of x - floor(x), or of a multiple; NULL:
 * nothing. */
static etch_expr equals_its_floor(etch_sym *sym, etch_expr difference)
{
    for (uint32_t i = 0; i < difference->count; i++) {
        const sym_mono *mono = difference->terms[i].mono;
        for (uint32_t j = 0; j < mono->count; j++) {
            sym_atom *atom = mono->at[j].atom;
            if (atom->kind != ETCH_SYM_FLOOR || mono->at[j].exp != 1)
                continue;
            const sym_mono *factor = sym_mono_div(sym, mono, sym_mono_of(sym, atom, 1));
            etch_expr multiple = sym_monomial(sym, factor, sym_coef_neg(sym, difference->terms[i].coef));
            etch_expr x = atom->args[0], grid;
            if (!positive_factors(sym, factor))
                continue;
            if (sym_mul(sym, multiple, sym_sub(sym, x, atom->self)) == difference)
                return x;
            /* ceil(x) = floor(x - 1/q) + 1 */
            if (!sym_grid(sym, x, &grid))
                continue;
            x = sym_add(sym, x, sym_div(sym, sym->one, grid));
            if (sym_mul(sym, multiple, sym_add_int(sym, sym_sub(sym, x, atom->self), -1)) == difference)
                return x;
        }
    }
    return NULL;
}

static etch_status take_equal(etch_sym *sym, etch_expr a, etch_expr b, uint32_t fact)
{
    etch_expr difference = sym_split(sym, sym_sub(sym, a, b)).num, value = NULL;
    if (difference->count == 0)
        return ETCH_OK;
    if (cannot_be_zero(sym, difference))
        return ETCH_EINPUT;
    const sym_mono *powers = sym_is_constant(b)   ? sym_powers_of(a)
                             : sym_is_constant(a) ? sym_powers_of(b)
                                                  : NULL;
    if (powers) {
        sym_coef number = sym_constant_of(sym_is_constant(b) ? b : a);
        bool are_powers = sym_coef_is_one(number);
        return are_powers || sym_coef_is_zero(number) ? take_powers(sym, powers, are_powers, fact)
                                                      : ETCH_EINPUT;
    }
    etch_expr integer = equals_its_floor(sym, difference);
    if (integer)
        return take_divides(sym, sym->one, integer, fact);
    /* an old fact that could not be used before; what a variable stands for has no index of a sum */
    if (fact < sym->facts.count || sym_sum_level(difference) > 0)
        return ETCH_EUNKNOWN;
    difference =
        sym_scale(sym, difference, sym_mono_pow(sym, sym_mono_below(sym, difference), -1), ETCH_SYM_ONE);
    sym_atom *var = isolate(sym, difference, &value);
    return var ? define(sym, var, value, fact) : ETCH_EUNKNOWN;
}

/* ---- a != b -------------------------------------------------------------------------------------------- */

static etch_status take_different(etch_sym *sym, etch_expr a, etch_expr b, uint32_t fact)
{
    etch_expr difference = sym_sub(sym, a, b), opposite = sym_neg(sym, difference);
    if (sym_is_positive(sym, difference) || sym_is_positive(sym, opposite))
        return ETCH_OK;
    if (sym_is_nonnegative(sym, difference) && sym_is_nonnegative(sym, opposite))
        return ETCH_EINPUT;
    const sym_mono *powers = sym_powers_of(difference);
    powers = powers ? powers : sym_powers_of(opposite);
    if (powers)
        return take_powers(sym, powers, true, fact);
    powers = sym_powers_of(sym_add_int(sym, difference, 1));
    powers = powers ? powers : sym_powers_of(sym_add_int(sym, opposite, 1));
    return powers ? take_powers(sym, powers, false, fact) : ETCH_EUNKNOWN;
}

/* ---- the entry points ---------------------------------------------------------------------------------- */

static etch_status take_fact(etch_sym *sym, const sym_fact *fact, uint32_t index)
{
    etch_expr a = sym_refresh(sym, fact->a), b = sym_refresh(sym, fact->b);
    if (!a || !b)
        return ETCH_EINPUT; /* a denominator is 0 */
    switch (fact->kind) {
    case ETCH_SYM_FACT_DIVIDES:
        return take_divides(sym, a, b, index);
    case ETCH_SYM_FACT_AT_LEAST:
        return take_at_least(sym, a, b, index);
    case ETCH_SYM_FACT_EQUAL:
        return take_equal(sym, a, b, index);
    case ETCH_SYM_FACT_DIFFERENT:
        return take_different(sym, a, b, index);
    }
    return ETCH_EUNKNOWN;
}

/* Which equality made two sides differ by a number, when no proof has told: one that replaced a variable
 * of theirs, or, since it did so when they were built, the latest one that speaks of their variables. */
static void suspect_definition(etch_sym *sym, const sym_fact *fact)
{
    sym_scratch_mark mark = sym_scratch_top(sym);
    bool *seen = sym_scratch_take(sym, sym->vars.count, sizeof *seen);
    bool *about = sym_scratch_take(sym, sym->vars.count, sizeof *about);
    sym_mark_vars(sym, fact->a, seen);
    sym_mark_vars(sym, fact->b, seen);
    for (uint32_t i = 0; i < sym->vars.count; i++) {
        const sym_atom *var = sym->vars.at[i];
        if (!var->definition)
            continue;
        bool shares = seen[i];
        memset(about, 0, sym->vars.count);
        sym_mark_vars(sym, var->definition, about);
        for (uint32_t k = 0; k < sym->vars.count; k++)
            shares = shares || (about[k] && seen[k]);
        if (shares)
            sym_used_fact(sym, var->definition_fact);
    }
    sym_scratch_release(sym, mark);
}

/* Do the sides differ by a number? */
static bool differ_by_number(etch_sym *sym, const sym_fact *fact)
{
    etch_expr a = sym_refresh(sym, fact->a), b = sym_refresh(sym, fact->b);
    return !a || !b || sym_is_constant(sym_sub(sym, a, b));
}

static etch_status assume(etch_sym *sym, sym_fact fact, int64_t *other)
{
    int64_t unused;
    other = other ? other : &unused;
    *other = -1;
    if (!fact.a || !fact.b)
        return ETCH_EUNKNOWN;
    sym->tracing = true;
    sym->last_fact = ETCH_SYM_DECLARED;
    etch_status status = take_fact(sym, &fact, sym->facts.count);
    sym->tracing = false;
    if (status == ETCH_EINPUT) {
        if (sym->last_fact == ETCH_SYM_DECLARED && differ_by_number(sym, &fact))
            suspect_definition(sym, &fact);
        if (sym->last_fact < sym->facts.count)
            *other = sym->facts.at[sym->last_fact].origin;
    } else {
        ETCH_PUSH(sym->arena, &sym->facts, fact);
    }
    sym_new_epoch(sym);
    return status;
}

etch_status etch_assume_divides(etch_sym *sym, etch_expr d, etch_expr n, int64_t origin, int64_t *other)
{
    return assume(sym, (sym_fact){ETCH_SYM_FACT_DIVIDES, d, n, origin}, other);
}

etch_status etch_assume_equal(etch_sym *sym, etch_expr a, etch_expr b, int64_t origin, int64_t *other)
{
    return assume(sym, (sym_fact){ETCH_SYM_FACT_EQUAL, a, b, origin}, other);
}

etch_status etch_assume_at_least(etch_sym *sym, etch_expr a, etch_expr b, int64_t origin, int64_t *other)
{
    return assume(sym, (sym_fact){ETCH_SYM_FACT_AT_LEAST, a, b, origin}, other);
}

etch_status etch_assume_different(etch_sym *sym, etch_expr a, etch_expr b, int64_t origin, int64_t *other)
{
    return assume(sym, (sym_fact){ETCH_SYM_FACT_DIFFERENT, a, b, origin}, other);
}
