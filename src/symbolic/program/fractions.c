/* One configuration in fractions of integers of 128 bits, in lowest terms. */
#include "symbolic/program/wide_int.h"

static const etch_word_fraction undefined = {0, 0};

static etch_unsigned_wide gcd(etch_unsigned_wide a, etch_unsigned_wide b)
{
    while (b != 0 && (a >> 64 || b >> 64)) {
        etch_unsigned_wide rest = a % b;
        a = b;
        b = rest;
    }
    uint64_t x = (uint64_t)a, y = (uint64_t)b;
    if (b == 0)
        return a;
    while (y != 0) {
        uint64_t rest = x % y;
        x = y;
        y = rest;
    }
    return x;
}

/* ---- fractions: false when a number does not fit ------------------------------------------------------- */

/* num/den of any signs, den != 0, with common factors. */
static bool reduced(etch_wide num, etch_wide den, etch_word_fraction *result)
{
    etch_wide common = (etch_wide)gcd(magnitude(num), magnitude(den));
    if (den < 0)
        common = -common;
    *result = (etch_word_fraction){num / common, den / common};
    return true;
}

static bool add(etch_word_fraction a, etch_word_fraction b, etch_word_fraction *result)
{
    if (a.den == 1 && b.den == 1) {
        result->den = 1;
        return add_fits(a.num, b.num, &result->num);
    }
    etch_wide common = (etch_wide)gcd((etch_unsigned_wide)a.den, (etch_unsigned_wide)b.den), left, right, num,
              den;
    if (!mul_fits(a.num, b.den / common, &left) || !mul_fits(b.num, a.den / common, &right) ||
        !add_fits(left, right, &num) || !mul_fits(a.den / common, b.den, &den))
        return false;
    return reduced(num, den, result);
}

static bool mul(etch_word_fraction a, etch_word_fraction b, etch_word_fraction *result)
{
    if (a.den == 1 && b.den == 1) {
        result->den = 1;
        return mul_fits(a.num, b.num, &result->num);
    }
    etch_wide left = (etch_wide)gcd(magnitude(a.num), (etch_unsigned_wide)b.den);
    etch_wide right = (etch_wide)gcd(magnitude(b.num), (etch_unsigned_wide)a.den);
    return mul_fits(a.num / left, b.num / right, &result->num) &&
           mul_fits(a.den / right, b.den / left, &result->den);
}

static bool divide(etch_word_fraction a, etch_word_fraction b, etch_word_fraction *result)
{
    if (b.num == 0) {
        *result = undefined;
        return true;
    }
    if (a.den == 1 && b.den == 1) {
        *result = (etch_word_fraction){quotient_of(a.num, b.num), 1};
        return result->num * b.num == a.num || reduced(a.num, b.num, result);
    }
    etch_word_fraction inverse = {b.num < 0 ? -b.den : b.den, b.num < 0 ? -b.num : b.num};
    return mul(a, inverse, result);
}

static bool floor_divide(etch_word_fraction a, etch_word_fraction b, etch_word_fraction *result)
{
    if (a.den == 1 && b.den == 1 && b.num != 0) {
        *result = (etch_word_fraction){b.num < 0 ? floor_of(-a.num, -b.num) : floor_of(a.num, b.num), 1};
        return true;
    }
    if (!divide(a, b, result))
        return false;
    if (result->den != 0)
        *result = (etch_word_fraction){floor_of(result->num, result->den), 1};
    return true;
}

static bool max(etch_word_fraction a, etch_word_fraction b, etch_word_fraction *result)
{
    etch_wide left, right;
    if (!mul_fits(a.num, b.den, &left) || !mul_fits(b.num, a.den, &right))
        return false;
    *result = left >= right ? a : b;
    return true;
}

static bool raise(etch_word_fraction base, uint32_t exp, etch_word_fraction *result)
{
    etch_word_fraction power = {1, 1};
    for (;;) {
        if ((exp & 1) && !mul(power, base, &power))
            return false;
        exp >>= 1;
        if (exp == 0)
            break;
        if (!mul(base, base, &base))
            return false;
    }
    *result = power;
    return true;
}

/* ---- programs ------------------------------------------------------------------------------------------ */

static bool execute(const etch_program *p, const etch_instruction *in, const etch_configuration *at,
                    const etch_word_fraction *values, etch_word_fraction *result)
{
    if (in->op == ETCH_OP_CONSTANT) {
        result->den = 1;
        return wide_constant_fits(&p->constants[in->a], &result->num);
    }
    if (in->op == ETCH_OP_LOAD) {
        const etch_column *column = &at->columns[in->a];
        int64_t den = column_denominator(column, at->at);
        *result = (etch_word_fraction){column_value(column, at->at), den};
        return den == 1 || reduced(result->num, den, result);
    }
    etch_word_fraction a = values[in->a],
                       b = op_is_binary(in->op) ? values[in->b] : (etch_word_fraction){1, 1};
    if (a.den == 0 || b.den == 0) {
        *result = undefined;
        return true;
    }
    switch ((etch_program_op)in->op) {
    case ETCH_OP_ADD:
        return add(a, b, result);
    case ETCH_OP_SUB:
        b.num = -b.num;
        return add(a, b, result);
    case ETCH_OP_MUL:
        return mul(a, b, result);
    case ETCH_OP_DIV:
        return divide(a, b, result);
    case ETCH_OP_FLOOR_DIV:
        return floor_divide(a, b, result);
    case ETCH_OP_MAX:
        return max(a, b, result);
    case ETCH_OP_POW:
        return raise(a, in->b, result);
    case ETCH_OP_POW2:
        *result = (etch_word_fraction){a.den == 1 && a.num > 0 && (a.num & (a.num - 1)) == 0, 1};
        return true;
    default:
        return false;
    }
}

static etch_outcome outcome_of(etch_word_fraction value)
{
    if (value.den == 0)
        return (etch_outcome){.kind = ETCH_VALUE_UNDEFINED};
    if (value.den != 1)
        return (etch_outcome){.kind = ETCH_VALUE_RATIONAL, .num = value.num, .den = value.den};
    if (is_word(value.num))
        return (etch_outcome){.kind = ETCH_VALUE_INTEGER, .value = (int64_t)value.num};
    return (etch_outcome){.kind = ETCH_VALUE_LARGE, .num = value.num, .den = 1};
}

/* The instruction that follows a loop's begin or end; sets the values of both. False: too many rounds, or a
 * number does not fit. */
static bool step_loop(const etch_program *p, uint32_t at, etch_word_fraction *values, uint32_t *rounds,
                      uint32_t *next)
{
    bool begins = p->code[at].op == ETCH_OP_LOOP;
    uint32_t loop = begins ? at : p->code[at].b, end = p->code[loop].b;
    etch_word_fraction count = values[p->code[loop].a];
    *next = end + 1;
    if (begins) {
        values[loop] = values[end] = (etch_word_fraction){0, 1};
        if (count.den == 0)
            values[end] = undefined;
    } else {
        etch_word_fraction term = values[p->code[end].a];
        values[loop].num++;
        if (term.den == 0)
            values[end] = undefined;
        else if (!add(values[end], term, &values[end]))
            return false;
    }
    if (values[end].den != 0 && values[loop].num < count.num) {
        *next = loop + 1;
        return ++*rounds <= ETCH_MOST_LOOPED;
    }
    return true;
}

bool program_run_fractions(const etch_program *program, const etch_configuration *at,
                           etch_word_fraction *values, etch_outcome *outcomes)
{
    uint32_t rounds = 0;
    for (uint32_t i = 0, next; i < program->instruction_count; i = next) {
        const etch_instruction *in = &program->code[i];
        bool loops = in->op == ETCH_OP_LOOP || in->op == ETCH_OP_SUM;
        next = i + 1;
        if (loops ? !step_loop(program, i, values, &rounds, &next)
                  : !execute(program, in, at, values, &values[i]))
            return false;
    }
    for (uint32_t i = 0; i < program->formula_count; i++)
        outcomes[program->outputs[i].formula] = outcome_of(values[program->outputs[i].instruction]);
    return true;
}
