/* Exact values, and assignments that satisfy all facts: they refute false statements and are shown as
 * witnesses. */
#include <string.h>

#include "symbolic/symbolic_int.h"

/* ---- evaluation ---------------------------------------------------------------------------------------- */

/* Powers with more bits than this have no value here: points are small numbers. */
enum { MOST_BITS = 20000 };

/* Terms of sums that one evaluation adds up. */
enum { SUM_STEPS = 5000 };

/* Powers of words are multiplied up one by one. */
enum { WORD_POWERS = 3 };

typedef enum value_state { NOT_YET, DEFINED, UNDEFINED } value_state;

/* The value of an opaque atom in the evaluation with this stamp. */
typedef struct sym_value {
    uint64_t stamp;
    value_state state;
    sym_coef value;
} sym_value;

static bool eval(etch_sym *sym, etch_expr a, const sym_coef *values, sym_coef *result);

/* The sum over 0..count-1, within the steps that are left. */
static bool eval_sum(etch_sym *sym, const sym_atom *atom, const sym_coef *values, sym_coef *result)
{
    sym_coef count, term;
    *result = ETCH_SYM_ZERO;
    if (!eval(sym, atom->args[0], values, &count))
        return false;
    if (sym_coef_sign(count) <= 0)
        return true;
    if (!sym_coef_is_small(count) || count.num / count.den >= sym->sum_steps_left)
        return false;
    /* released with all that the evaluation took: long numbers of later steps lie behind it */
    sym_coef *inside = sym_scratch_take(sym, sym->vars.count, sizeof *inside);
    memcpy(inside, values, sym->vars.count * sizeof *inside);
    uint64_t stamp = sym->atom_values_stamp;
    bool defined = true;
    for (int64_t k = 0; defined && k < (count.num + count.den - 1) / count.den; k++) {
        if (sym->sum_steps_left == 0) {
            defined = false;
            break;
        }
        sym->sum_steps_left--;
        sym->atom_values_stamp = ++sym->atom_values_stamps; /* what the index is in has a new value */
        inside[atom->bound->index] = sym_coef_of(sym, k, 1);
        defined = eval(sym, atom->args[1], inside, &term);
        if (defined)
            *result = sym_coef_add(sym, *result, term);
    }
    sym->atom_values_stamp = stamp;
    return defined;
}

static bool eval_opaque(etch_sym *sym, const sym_atom *atom, const sym_coef *values, sym_coef *result)
{
    if (atom->kind == ETCH_SYM_SUM)
        return eval_sum(sym, atom, values, result);
    if (!eval(sym, atom->args[0], values, result))
        return false;
    if (atom->kind == ETCH_SYM_FLOOR)
        *result = sym_coef_floor(sym, *result);
    if (atom->kind == ETCH_SYM_POW2)
        *result = sym_coef_is_power_of_two(*result) ? ETCH_SYM_ONE : ETCH_SYM_ZERO;
    if (atom->kind == ETCH_SYM_RECIP) {
        if (sym_coef_is_zero(*result))
            return false;
        *result = sym_coef_inv(sym, *result);
    }
    for (uint32_t i = 1; i < atom->count; i++) {
        sym_coef other;
        if (!eval(sym, atom->args[i], values, &other))
            return false;
        if (sym_coef_compare(other, *result) > 0)
            *result = other;
    }
    return true;
}

static bool eval_atom(etch_sym *sym, const sym_atom *atom, const sym_coef *values, sym_coef *result)
{
    if (atom->kind == ETCH_SYM_VAR) {
        *result = values[atom->index];
        return true;
    }
    sym_value *known = &sym->atom_values[atom->id];
    if (known->stamp != sym->atom_values_stamp) {
        bool defined = eval_opaque(sym, atom, values, &known->value);
        known->stamp = sym->atom_values_stamp;
        known->state = defined ? DEFINED : UNDEFINED;
    }
    *result = known->value;
    return known->state == DEFINED;
}

/* num/den *= value^exp in words; false, and nothing is done, where that does not fit. */
static bool multiply_words(int64_t *num, int64_t *den, sym_coef value, int32_t exp)
{
    int64_t product = exp < 0 ? *den : *num;
    const int32_t times = exp < 0 ? -exp : exp;
    if (value.den != 1 || times > WORD_POWERS)
        return false;
    for (int32_t k = 0; k < times; k++)
        if (__builtin_mul_overflow(product, value.num, &product))
            return false;
    *(exp < 0 ? den : num) = product;
    return true;
}

/* What is above and below the line is collected in words, and reduced once, where it fits. */
static bool eval_term(etch_sym *sym, const sym_term *term, const sym_coef *values, sym_coef *result)
{
    const bool small = sym_coef_is_small(term->coef);
    sym_coef others = small ? ETCH_SYM_ONE : term->coef, value;
    int64_t num = small ? term->coef.num : 1, den = small ? term->coef.den : 1;
    for (uint32_t j = 0; j < term->mono->count; j++) {
        const sym_power *power = &term->mono->at[j];
        const int64_t exp = power->exp;
        if (!eval_atom(sym, power->atom, values, &value) || (exp < 0 && sym_coef_is_zero(value)))
            return false;
        if (multiply_words(&num, &den, value, power->exp))
            continue;
        if ((exp < 0 ? -exp : exp) * (int64_t)sym_coef_limbs(value) * 64 > MOST_BITS)
            return false;
        others = sym_coef_mul(sym, others, sym_coef_pow(sym, value, exp));
    }
    *result = sym_coef_of(sym, num, den);
    if (!sym_coef_is_one(others))
        *result = sym_coef_mul(sym, *result, others);
    return true;
}

static bool eval(etch_sym *sym, etch_expr a, const sym_coef *values, sym_coef *result)
{
    sym_coef total = ETCH_SYM_ZERO, product;
    sym_count_work(sym, a->count);
    for (uint32_t i = 0; i < a->count; i++) {
        if (!eval_term(sym, &a->terms[i], values, &product))
            return false;
        total = sym_coef_add(sym, total, product);
    }
    *result = total;
    return true;
}

bool sym_eval(etch_sym *sym, etch_expr a, const sym_coef *values, sym_coef *result)
{
    if (sym->atom_values_capacity < sym->atom_count) {
        sym->atom_values_capacity = sym->atom_count * 2;
        sym->atom_values = ETCH_NEW_ARRAY(sym->arena, sym->atom_values_capacity, sym_value);
    }
    sym->atom_values_stamp = ++sym->atom_values_stamps;
    sym->sum_steps_left = SUM_STEPS;
    sym_limb_mark mark = sym_limbs_begin(sym);
    bool defined = eval(sym, a, values, result);
    *result = sym_limbs_end(sym, mark, defined ? *result : ETCH_SYM_ZERO);
    return defined;
}

/* ---- candidates ---------------------------------------------------------------------------------------- */

enum { POINTS = 96, TRIES = 600, HOPELESS_TRIES = 100, REPAIRS = 6 };

/* What a variable of a point costs: to guess and check it, and to keep it; and what a fact does, besides its
 * terms. */
enum { WORK_OF_GUESS = 4, WORK_OF_KEPT = 5, WORK_OF_FACT = 3 };

/* Counts what points cost beyond evaluations. Budgets of proofs are in evaluations, and leave it out. */
static void count_points(etch_sym *sym, uint64_t operations)
{
    sym_count_work(sym, operations);
    sym->points.work += operations;
}

uint64_t sym_work_without_points(const etch_sym *sym)
{
    return etch_sym_operations(sym) - sym->points.work;
}

static uint64_t random_bits(uint64_t candidate, uint64_t index)
{
    uint64_t x = (candidate << 32) + index + 1;
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

static void first_guess(etch_sym *sym, uint32_t candidate, sym_coef *values)
{
    static const uint32_t spread[] = {1, 12, 3, 40, 2, 5, 8, 16, 4, 25, 100, 6, 1000, 10, 3, 1 << 20};
    enum { SPREADS = sizeof spread / sizeof *spread };
    for (uint32_t i = 0; i < sym->vars.count; i++) {
        const sym_atom *var = sym->vars.at[i];
        uint64_t bits = random_bits(candidate, i);
        /* corners refute most; at every fourth candidate each variable has a size of its own */
        bool least = bits >> 40 & 1;
        uint64_t range = spread[(candidate + (candidate % 4 == 3 ? bits >> 44 : 0)) % SPREADS];
        if (!var->name)
            values[i] = ETCH_SYM_ZERO;
        else if (var->is_real)
            values[i] = sym_coef_of(sym, 1 + (int64_t)(bits % (2 * range)), 1 + (int64_t)((bits >> 32) % 4));
        else
            values[i] = sym_coef_add(sym, sym_coef_of(sym, var->lower, 1),
                                     sym_coef_of(sym, least ? 0 : (int64_t)(bits % range), 1));
    }
}

/* ---- repairs ------------------------------------------------------------------------------------------- */

static bool repair_definitions(etch_sym *sym, sym_coef *values)
{
    bool changed = false;
    for (uint32_t i = 0; sym->definitions && i < sym->vars.count; i++) {
        const sym_atom *var = sym->vars.at[i];
        sym_coef value;
        if (!var->definition || !sym_eval(sym, var->definition, values, &value) ||
            sym_coef_equal(value, values[i]))
            continue;
        values[i] = value;
        changed = true;
    }
    return changed;
}

/* Makes the ratio an integer: multiplies a variable of its numerator by what is missing, or divides one
 * below. */
static bool repair_ratio(etch_sym *sym, const sym_ratio *ratio, sym_coef *values)
{
    sym_coef value;
    if (!sym_eval(sym, sym_monomial(sym, ratio->mono, ratio->coef), values, &value) ||
        sym_coef_is_integer(value))
        return false;
    sym_coef missing = sym_coef_denominator(sym, value);
    for (int want = 1; want >= -1; want -= 2)
        for (uint32_t i = 0; i < ratio->mono->count; i++) {
            const sym_power *power = &ratio->mono->at[i];
            if (power->atom->kind != ETCH_SYM_VAR || power->exp != want)
                continue;
            sym_coef *place = &values[power->atom->index];
            sym_coef better =
                want > 0 ? sym_coef_mul(sym, *place, missing) : sym_coef_div(sym, *place, missing);
            if (!sym_coef_is_integer(better))
                continue;
            *place = better;
            return true;
        }
    return false;
}

/* Moves a variable to where the bound holds with equality, rounded to the inside. */
static bool repair_bound(etch_sym *sym, const sym_bound *bound, sym_coef *values)
{
    sym_coef value;
    if (!sym_eval(sym, bound->gap, values, &value) || sym_coef_sign(value) >= 0)
        return false;
    count_points(sym, sym->alternatives.count / 4);
    for (uint32_t i = 0; i < sym->alternatives.count; i++) {
        const sym_alternative *way = &sym->alternatives.at[i];
        if (way->spends != bound->slack || !sym_eval(sym, way->value, values, &value))
            continue;
        /* the slack counts as 0: var = value, or var >= value, or var <= value */
        sym_coef floor = sym_coef_floor(sym, value);
        bool upwards = !sym_coef_equal(floor, value) && way->is_lower;
        values[way->var->index] = upwards ? sym_coef_add(sym, floor, ETCH_SYM_ONE) : floor;
        return true;
    }
    return false;
}

/* The power of two next to `value`, from it on or (`up` false) up to it; at least 1. False: it is too far. */
static bool nearest_power(etch_sym *sym, sym_coef value, bool up, sym_coef *power)
{
    enum { MOST_DOUBLED = 60 };
    sym_coef next = ETCH_SYM_ONE;
    *power = ETCH_SYM_ONE;
    for (int i = 0; i < MOST_DOUBLED; i++) {
        int order = sym_coef_compare(next, value);
        if (order <= 0 || (up && sym_coef_compare(*power, value) < 0))
            *power = next;
        if (order >= 0)
            return true;
        next = sym_coef_add(sym, next, next);
    }
    return false;
}

/* Makes x a power of two: by a factor of one of its variables if it is a product, else by adding to one. */
static bool repair_power(etch_sym *sym, const sym_known_power *known, bool up, sym_coef *values)
{
    sym_coef value, wanted;
    if (!known->is_power || !sym_eval(sym, known->x, values, &value) || sym_coef_is_power_of_two(value) ||
        !nearest_power(sym, value, up, &wanted))
        return false;
    for (uint32_t i = 0; i < known->x->count; i++) {
        const sym_term *term = &known->x->terms[i];
        for (uint32_t j = 0; j < term->mono->count; j++) {
            const sym_power *power = &term->mono->at[j];
            if (power->atom->kind != ETCH_SYM_VAR || power->exp != 1)
                continue;
            sym_coef *place = &values[power->atom->index], better;
            if (known->x->count == 1 && sym_coef_sign(value) > 0)
                better = sym_coef_mul(sym, *place, sym_coef_div(sym, wanted, value));
            else if (term->mono->count == 1)
                better = sym_coef_add(sym, *place,
                                      sym_coef_div(sym, sym_coef_sub(sym, wanted, value), term->coef));
            else
                continue;
            if (!sym_coef_is_integer(better) || sym_coef_sign(better) <= 0)
                continue;
            *place = better;
            return true;
        }
    }
    return false;
}

static void repair(etch_sym *sym, sym_coef *values)
{
    bool changed = true;
    for (int round = 0; changed && round < REPAIRS; round++) {
        changed = false;
        for (uint32_t i = 0; i < sym->bounds.count; i++)
            changed |= repair_bound(sym, &sym->bounds.at[i], values);
        for (uint32_t i = 0; i < sym->ratios.count; i++)
            changed |= repair_ratio(sym, &sym->ratios.at[i], values);
        for (uint32_t i = 0; i < sym->known_powers.count; i++)
            changed |= repair_power(sym, &sym->known_powers.at[i], round % 2 == 0, values);
        changed |= repair_definitions(sym, values);
    }
}

/* ---- checks -------------------------------------------------------------------------------------------- */

static bool fact_holds(etch_sym *sym, const sym_fact *fact, const sym_coef *values)
{
    sym_coef a, b;
    if (!sym_eval(sym, fact->a, values, &a) || !sym_eval(sym, fact->b, values, &b))
        return false;
    switch (fact->kind) {
    case ETCH_SYM_FACT_DIVIDES:
        return !sym_coef_is_zero(a) && sym_coef_is_integer(sym_coef_div(sym, b, a));
    case ETCH_SYM_FACT_EQUAL:
        return sym_coef_equal(a, b);
    case ETCH_SYM_FACT_DIFFERENT:
        return !sym_coef_equal(a, b);
    case ETCH_SYM_FACT_AT_LEAST:
        return sym_coef_compare(a, b) >= 0;
    }
    return false;
}

static bool allowed(etch_sym *sym, const sym_coef *values)
{
    for (uint32_t i = 0; i < sym->vars.count; i++) {
        const sym_atom *var = sym->vars.at[i];
        if (!var->name)
            continue;
        const sym_coef lower = {.num = var->lower, .den = 1};
        bool in_range = var->is_real
                            ? sym_coef_sign(values[i]) > 0
                            : sym_coef_compare(values[i], lower) >= 0 && sym_coef_is_integer(values[i]);
        if (!in_range)
            return false;
    }
    for (uint32_t i = 0; i < sym->facts.count; i++) {
        count_points(sym, WORK_OF_FACT);
        if (!fact_holds(sym, &sym->facts.at[i], values))
            return false;
    }
    return true;
}

/* ---- the bank of points -------------------------------------------------------------------------------- */

const sym_coef *sym_point(etch_sym *sym, uint32_t i)
{
    sym_points *bank = &sym->points;
    if (bank->epoch != sym->epoch || bank->vars != sym->vars.count) {
        bank->epoch = sym->epoch;
        bank->vars = sym->vars.count;
        bank->tried = bank->found.count = 0;
    }
    while (bank->found.count <= i && bank->found.count < POINTS &&
           bank->tried < (bank->found.count ? TRIES : HOPELESS_TRIES)) {
        sym_scratch_mark mark = sym_scratch_top(sym);
        sym_coef *values = sym_scratch_take(sym, bank->vars, sizeof *values);
        count_points(sym, (uint64_t)WORK_OF_GUESS * bank->vars);
        first_guess(sym, bank->tried++, values);
        repair(sym, values);
        if (allowed(sym, values)) {
            count_points(sym, (uint64_t)WORK_OF_KEPT * bank->vars);
            sym_coef *kept = ETCH_NEW_ARRAY(sym->arena, bank->vars, sym_coef);
            memcpy(kept, values, bank->vars * sizeof *kept);
            ETCH_PUSH(sym->arena, &bank->found, kept);
        }
        sym_scratch_release(sym, mark);
    }
    return i < bank->found.count ? bank->found.at[i] : NULL;
}

const sym_coef *sym_point_moved(etch_sym *sym, const sym_coef *point, const sym_atom *var, int64_t value)
{
    sym_coef *values = sym_scratch_take(sym, sym->vars.count, sizeof *values);
    count_points(sym, sym->vars.count);
    memcpy(values, point, sym->vars.count * sizeof *values);
    values[var->index] = (sym_coef){.num = value, .den = 1};
    repair(sym, values);
    return allowed(sym, values) ? values : NULL;
}

bool sym_negative_at(etch_sym *sym, etch_expr a, uint32_t from, uint32_t to)
{
    enum { MOST_WORK = 20000 }; /* operations: a proof must not wait long for a hint that there is none */
    sym_coef value;
    uint64_t before = sym_work_without_points(sym);
    for (uint32_t i = from; i < to && sym_work_without_points(sym) - before < MOST_WORK; i++) {
        const sym_coef *point = sym_point(sym, i);
        if (!point)
            return false;
        if (sym_eval(sym, a, point, &value) && sym_coef_sign(value) < 0)
            return true;
    }
    return false;
}
