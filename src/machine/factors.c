/* The factors of a stack from measured steps: least squares of the logarithms, by Gauss and Newton.
 *
 * A step is nearly a sum of what attention takes and what all else takes, so that some rounds are enough;
 * each runs all steps twice. As in fit.c, floating point decides which factors fit best, and nothing else. */
#include "machine/machine.h"

#include <math.h>

enum { ROUNDS = 12, HALVES = 6, FINE_DIGITS = 12 };

/* By how much logarithms of factors are changed to see what steps make of it. */
#define NUDGE 1e-3
/* Of logarithms: below it nothing is gained. */
#define CLOSE 2e-6
/* Factors lie between a hundredth and a hundred. */
#define LARGEST 4.605170185988092

typedef struct factors {
    /* logarithms */
    double all, attention;
} factors;

typedef struct search {
    etch_arena *arena;
    const etch_step_runs *runs;
    const bool *which;
    /* whose `launch` hosts take */
    const etch_stack *stack;
    /* seconds of the best factors so far, and with one of them nudged; by row */
    double *here, *nudged, *trial;
    /* what a factor does to the logarithm of a step, by row */
    double *by_all, *by_attention;
    etch_status status;
} search;

static etch_stack stack_of(const search *s, factors x)
{
    etch_stack stack = *s->stack;
    stack.all = etch_decimal_round(exp(x.all), FINE_DIGITS);
    stack.attention = etch_decimal_round(exp(x.attention), FINE_DIGITS);
    return stack;
}

static double gap(const search *s, uint32_t row, const double *seconds)
{
    return log(s->runs->measured[row] / seconds[row]);
}

/* Runs the steps; the sum of squares, or infinity where one cannot be run. */
static double run(search *s, factors x, double *seconds)
{
    const etch_stack stack = stack_of(s, x);
    double sum = 0;
    s->status = s->runs->run(s->runs->data, &stack, s->which, seconds);
    for (uint32_t i = 0; s->status == ETCH_OK && i < s->runs->count; i++)
        if (s->which[i])
            sum += gap(s, i, seconds) * gap(s, i, seconds);
    return s->status == ETCH_OK ? sum : HUGE_VAL;
}

static bool slopes(search *s, factors x, bool of_all, double *out)
{
    factors near = x;
    if (of_all)
        near.all += NUDGE;
    else
        near.attention += NUDGE;
    if (run(s, near, s->nudged) == HUGE_VAL)
        return false;
    for (uint32_t i = 0; i < s->runs->count; i++)
        out[i] = s->which[i] ? log(s->nudged[i] / s->here[i]) / NUDGE : 0;
    return true;
}

/* Where hosts launch in no time, both factors together scale a step: one slope is what the other leaves. */
static bool find_slopes(search *s, factors x)
{
    if (!slopes(s, x, false, s->by_attention))
        return false;
    if (s->stack->launch > 0)
        return slopes(s, x, true, s->by_all);
    for (uint32_t i = 0; i < s->runs->count; i++)
        s->by_all[i] = s->which[i] ? 1 - s->by_attention[i] : 0;
    return true;
}

/* The step to where the squares would be least if logarithms of steps were linear. Where the rows do not tell
 * attention from all else, its factor stays. */
static factors direction(const search *s, bool *apart)
{
    double aa = 0, ab = 0, bb = 0, ar = 0, br = 0;
    for (uint32_t i = 0; i < s->runs->count; i++) {
        if (!s->which[i])
            continue;
        const double r = gap(s, i, s->here), a = s->by_all[i], b = s->by_attention[i];
        aa += a * a;
        ab += a * b;
        bb += b * b;
        ar += a * r;
        br += b * r;
    }
    const double determinant = aa * bb - ab * ab;
    *apart = determinant > 1e-4 * aa * bb && determinant > 0;
    if (*apart)
        return (factors){(ar * bb - br * ab) / determinant, (br * aa - ar * ab) / determinant};
    return (factors){aa > 0 ? ar / aa : 0, 0};
}

static double clamp(double x)
{
    return fmin(fmax(x, -LARGEST), LARGEST);
}

/* Goes as far along the direction as it gets better; false: nowhere. */
static bool advance(search *s, factors step, factors *x, double *value)
{
    for (int half = 0; half < HALVES; half++) {
        const factors near = {clamp(x->all + step.all), clamp(x->attention + step.attention)};
        const double found = run(s, near, s->trial);
        if (s->status != ETCH_OK)
            return false;
        if (found < *value) {
            double *seconds = s->here;
            s->here = s->trial;
            s->trial = seconds;
            *x = near;
            *value = found;
            return true;
        }
        step.all /= 2;
        step.attention /= 2;
    }
    return false;
}

static double *numbers(const search *s)
{
    return ETCH_NEW_ARRAY(s->arena, s->runs->count, double);
}

etch_status etch_factors_find(etch_arena *arena, const etch_step_runs *runs, const bool *which,
                              etch_stack *stack, bool *apart)
{
    const etch_stack begin = *stack;
    search s = {.arena = arena, .runs = runs, .which = which, .stack = &begin};
    factors x = {log(etch_decimal_double(begin.all)), log(etch_decimal_double(begin.attention))};
    s.here = numbers(&s);
    s.nudged = numbers(&s);
    s.trial = numbers(&s);
    s.by_all = numbers(&s);
    s.by_attention = numbers(&s);
    double value = run(&s, x, s.here);
    *apart = false;
    for (int round = 0; s.status == ETCH_OK && round < ROUNDS; round++) {
        if (!find_slopes(&s, x))
            break;
        const factors step = direction(&s, apart);
        if (fabs(step.all) < CLOSE && fabs(step.attention) < CLOSE)
            break;
        if (!advance(&s, step, &x, &value))
            break;
    }
    *stack = stack_of(&s, x);
    return s.status;
}
