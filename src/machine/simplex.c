/* The least value of a function of a few numbers within bounds, by the simplex of Nelder and Mead (1965): of
 * one corner more than there are numbers, the worst is reflected through the middle of the others, farther or
 * less far as that turns out, and all draw near the best one where nothing helps. Corners stay within the
 * bounds. It asks for values alone, so that the function may have edges. */
#include <math.h>
#include <string.h>

#include "machine/machine_int.h"

enum { EVALUATIONS = 4000, ROUNDS = 8 };
static const double FIRST_STEP = 0.5, CLOSE = 1e-9;

typedef struct corner {
    double x[ETCH_FIT_NUMBERS];
    double value;
} corner;

typedef struct simplex {
    const etch_objective *of;
    unsigned evaluations;
    /* from the least value to the largest; one more than there are numbers */
    corner at[ETCH_FIT_NUMBERS + 1];
} simplex;

static void evaluate(simplex *s, corner *c)
{
    for (unsigned i = 0; i < s->of->count; i++)
        c->x[i] = fmin(fmax(c->x[i], s->of->least[i]), s->of->most[i]);
    c->value = s->of->value(s->of->data, c->x);
    s->evaluations++;
}

/* Puts `c` in the place of the worst of the first `count` corners; the others are in order. */
static void insert(simplex *s, unsigned count, corner c)
{
    unsigned place = count - 1;
    for (; place > 0 && s->at[place - 1].value > c.value; place--)
        s->at[place] = s->at[place - 1];
    s->at[place] = c;
}

/* The simplex around `x`: a step along each number, back where it would leave the bounds. */
static void begin(simplex *s, const double *x)
{
    corner first = {.value = 0};
    memcpy(first.x, x, s->of->count * sizeof *x);
    evaluate(s, &first);
    insert(s, 1, first);
    for (unsigned i = 0; i < s->of->count; i++) {
        corner c = first;
        c.x[i] += c.x[i] + FIRST_STEP > s->of->most[i] ? -FIRST_STEP : FIRST_STEP;
        evaluate(s, &c);
        insert(s, i + 2, c);
    }
}

/* The corner on the line from the middle of all but the worst to the worst: 1 is there, -1 its reflection. */
static corner along(simplex *s, double by)
{
    const unsigned n = s->of->count;
    corner result = {.value = 0};
    for (unsigned i = 0; i < n; i++) {
        double middle = 0;
        for (unsigned k = 0; k < n; k++)
            middle += s->at[k].x[i] / n;
        result.x[i] = middle + by * (s->at[n].x[i] - middle);
    }
    evaluate(s, &result);
    return result;
}

static void shrink(simplex *s)
{
    for (unsigned k = 1; k <= s->of->count; k++) {
        corner c = s->at[k];
        for (unsigned i = 0; i < s->of->count; i++)
            c.x[i] = (c.x[i] + s->at[0].x[i]) / 2;
        evaluate(s, &c);
        insert(s, k + 1, c);
    }
}

static void step(simplex *s)
{
    const unsigned n = s->of->count;
    const corner reflected = along(s, -1);
    if (reflected.value < s->at[0].value) {
        const corner expanded = along(s, -2);
        insert(s, n + 1, expanded.value < reflected.value ? expanded : reflected);
        return;
    }
    if (reflected.value < s->at[n - 1].value) {
        insert(s, n + 1, reflected);
        return;
    }
    const corner contracted = along(s, reflected.value < s->at[n].value ? -0.5 : 0.5);
    if (contracted.value < fmin(reflected.value, s->at[n].value))
        insert(s, n + 1, contracted);
    else
        shrink(s);
}

static bool is_small(const simplex *s)
{
    for (unsigned k = 1; k <= s->of->count; k++)
        for (unsigned i = 0; i < s->of->count; i++)
            if (fabs(s->at[k].x[i] - s->at[0].x[i]) > CLOSE)
                return false;
    return true;
}

double etch_minimize(const etch_objective *of, double *x)
{
    double least = HUGE_VAL;
    for (int round = 0; round < ROUNDS; round++) {
        simplex s = {.of = of};
        begin(&s, x);
        while (s.evaluations < EVALUATIONS && !is_small(&s))
            step(&s);
        memcpy(x, s.at[0].x, of->count * sizeof *x);
        if (s.at[0].value >= least)
            break;
        least = s.at[0].value;
    }
    return least;
}
