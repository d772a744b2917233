/* Making formulas. */
#include "session/api/algebra_int.h"

#include <string.h>

/* ---- numbers and text ---------------------------------------------------------------------------------- */

static etch_status make_number(etch_sym *sym, etch_algebra_request *r)
{
    r->made = etch_ratio(sym, r->number, r->other);
    return ETCH_OK;
}

etch_formula etch_formula_number(etch_algebra *al, int64_t value)
{
    return etch_formula_fraction(al, value, 1);
}

etch_formula etch_formula_fraction(etch_algebra *al, int64_t numerator, int64_t denominator)
{
    return etch_algebra_make(
        al, &(etch_algebra_request){.body = make_number, .number = numerator, .other = denominator});
}

static etch_status read_formula(etch_sym *sym, etch_algebra_request *r)
{
    r->at = r->length;
    r->made = etch_expr_read(sym, r->text, r->length, r->notation, &r->at);
    if (r->made)
        return ETCH_OK;
    return etch_algebra_fail(r->algebra, ETCH_EINPUT,
                             r->at < r->length ? "the text of a formula cannot be read"
                                               : "the text of a formula ends too early, or has no value");
}

etch_formula etch_formula_read(etch_algebra *al, const char *text, size_t length, etch_notation notation,
                               size_t *error_at)
{
    etch_algebra_request r = {.body = read_formula, .text = text, .length = length, .notation = notation};
    etch_formula made = etch_algebra_run(al, &r) == ETCH_OK ? r.made : NULL;
    if (error_at)
        *error_at = r.at;
    return made;
}

/* ---- operations ---------------------------------------------------------------------------------------- */

#define ONE_OPERAND(name)                                                                   \
    static etch_status make_##name(etch_sym *sym, etch_algebra_request *r)                  \
    {                                                                                       \
        r->made = etch_##name(sym, r->a);                                                   \
        return ETCH_OK;                                                                     \
    }                                                                                       \
    etch_formula etch_formula_##name(etch_algebra *al, etch_formula a)                      \
    {                                                                                       \
        return etch_algebra_make(al, &(etch_algebra_request){.body = make_##name, .a = a}); \
    }

#define TWO_OPERANDS(name)                                                                          \
    static etch_status make_##name(etch_sym *sym, etch_algebra_request *r)                          \
    {                                                                                               \
        r->made = etch_##name(sym, r->a, r->b);                                                     \
        return ETCH_OK;                                                                             \
    }                                                                                               \
    etch_formula etch_formula_##name(etch_algebra *al, etch_formula a, etch_formula b)              \
    {                                                                                               \
        return etch_algebra_make(al, &(etch_algebra_request){.body = make_##name, .a = a, .b = b}); \
    }

ONE_OPERAND(neg)
ONE_OPERAND(floor)
ONE_OPERAND(ceil)
ONE_OPERAND(abs)
ONE_OPERAND(pow2)
ONE_OPERAND(relax)
ONE_OPERAND(dominant)
TWO_OPERANDS(add)
TWO_OPERANDS(sub)
TWO_OPERANDS(mul)
TWO_OPERANDS(div)
TWO_OPERANDS(floor_div)
TWO_OPERANDS(mod)
TWO_OPERANDS(max)
TWO_OPERANDS(min)
TWO_OPERANDS(leading)

static etch_status make_power(etch_sym *sym, etch_algebra_request *r)
{
    r->made = etch_pow(sym, r->a, r->number);
    return ETCH_OK;
}

etch_formula etch_formula_pow(etch_algebra *al, etch_formula a, int64_t exponent)
{
    return etch_algebra_make(al, &(etch_algebra_request){.body = make_power, .a = a, .number = exponent});
}

static etch_status make_total(etch_sym *sym, etch_algebra_request *r)
{
    r->made = etch_sum(sym, (uint32_t)r->count, r->list);
    return ETCH_OK;
}

etch_formula etch_formula_total(etch_algebra *al, size_t count, const etch_formula *terms)
{
    return etch_algebra_make(al, &(etch_algebra_request){.body = make_total, .count = count, .list = terms});
}

/* ---- sums over an index -------------------------------------------------------------------------------- */

static etch_status make_index(etch_sym *sym, etch_algebra_request *r)
{
    r->made = etch_index(sym, (uint32_t)r->number);
    return ETCH_OK;
}

etch_formula etch_formula_index(etch_algebra *al, uint32_t level)
{
    return etch_algebra_make(al, &(etch_algebra_request){.body = make_index, .number = level});
}

static etch_status make_sum(etch_sym *sym, etch_algebra_request *r)
{
    r->made = etch_sum_over(sym, r->a, r->b, r->c, r->d);
    return ETCH_OK;
}

etch_formula etch_formula_sum(etch_algebra *al, etch_formula index, etch_formula low, etch_formula high,
                              etch_formula term)
{
    return etch_algebra_make(
        al, &(etch_algebra_request){.body = make_sum, .a = index, .b = low, .c = high, .d = term});
}

/* ---- calculus ------------------------------------------------------------------------------------------ */

static etch_status make_substitution(etch_sym *sym, etch_algebra_request *r)
{
    r->made = etch_subst(sym, r->a, (uint32_t)r->count, r->list, r->values);
    return ETCH_OK;
}

etch_formula etch_formula_substitute(etch_algebra *al, etch_formula a, size_t count,
                                     const etch_formula *variables, const etch_formula *values)
{
    return etch_algebra_make(
        al, &(etch_algebra_request){
                .body = make_substitution, .a = a, .count = count, .list = variables, .values = values});
}

static etch_status make_derivative(etch_sym *sym, etch_algebra_request *r)
{
    r->made = etch_diff(sym, r->a, r->b, &r->flag);
    return ETCH_OK;
}

etch_formula etch_formula_derivative(etch_algebra *al, etch_formula a, etch_formula variable, bool *piecewise)
{
    etch_algebra_request r = {.body = make_derivative, .a = a, .b = variable};
    etch_formula made = etch_algebra_make(al, &r);
    if (piecewise)
        *piecewise = r.flag;
    return made;
}
