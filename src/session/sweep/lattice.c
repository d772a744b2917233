/* Which integers a variable may be: conditions that are linear in it say a residue and bounds; those with it
 * as a divisor leave finitely many. What nothing is learned of stays in: it is asked value by value. */
#include "session/sweep/solve_int.h"

__extension__ typedef __int128 wide;

enum { MOST_SHIFT = 40 };
#define MOST (INT64_C(1) << MOST_SHIFT) /* of steps and of numbers in conditions */

/* rest + slope*var, or rest + below/var */
typedef struct line {
    etch_exact slope, rest, below;
} line;

static int64_t gcd(int64_t a, int64_t b)
{
    a = a < 0 ? -a : a;
    b = b < 0 ? -b : b;
    while (b != 0) {
        const int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

static int64_t lcm(int64_t a, int64_t b)
{
    const wide product = (wide)(a / gcd(a, b)) * b;
    return product > MOST ? 0 : (int64_t)product;
}

static int64_t modulo(wide a, int64_t b)
{
    const int64_t rest = (int64_t)(a % b);
    return rest < 0 ? rest + b : rest;
}

/* a*x = 1 modulo b, which has no factor in common with a. */
static int64_t inverse(int64_t a, int64_t b)
{
    int64_t old = modulo(a, b), now = b, x = 1, y = 0;
    while (now != 0) {
        const int64_t times = old / now, rest = old % now, next = x - times * y;
        old = now;
        now = rest;
        x = y;
        y = next;
    }
    return modulo(x, b);
}

/* False: it is no such formula, or has numbers that are too long. */
static bool read_line(etch_sym *sym, etch_expr formula, etch_expr var, line *out)
{
    etch_collected *parts;
    const uint32_t count = formula ? etch_collect(sym, formula, 1, &var, &parts) : 0;
    *out = (line){{0, 1, NULL}, {0, 1, NULL}, {0, 1, NULL}};
    for (uint32_t i = 0; i < count; i++) {
        int64_t low, high;
        if (!etch_is_constant(parts[i].coef) || !etch_degree(sym, parts[i].mono, var, &low, &high))
            return false;
        etch_exact *end = high == 0 ? &out->rest : high == 1 ? &out->slope : high == -1 ? &out->below : NULL;
        if (!end || !etch_exact_of(sym, parts[i].coef, end) || end->number > MOST || end->number < -MOST ||
            end->denominator > MOST)
            return false;
    }
    return formula != NULL;
}

/* Of the values only those that are `rest` modulo `step` as well. */
static void keep_class(etch_lattice *l, int64_t rest, int64_t step)
{
    const int64_t common = gcd(l->step, step), all = lcm(l->step, step);
    if (modulo((wide)l->first - rest, common) != 0) {
        l->empty = true;
        return;
    }
    if (all == 0)
        return;
    /* first + step*i with the least i that does */
    const int64_t own = step / common;
    const int64_t i =
        own == 1
            ? 0
            : modulo((wide)modulo(((wide)rest - l->first) / common, own) * inverse(l->step / common, own),
                     own);
    const wide first = l->first + (wide)l->step * i;
    l->empty = l->empty || first > INT64_MAX / 2;
    l->first = l->empty ? l->first : (int64_t)first;
    l->step = all;
}

/* The line takes integers only. */
static void keep_integers(etch_lattice *l, const line *f)
{
    if (f->below.number != 0) {
        if (f->slope.number != 0 || f->rest.denominator != 1)
            return;
        l->empty = l->empty || f->below.denominator != 1;
        l->divides = gcd(l->divides, f->below.number);
        return;
    }
    const int64_t whole = lcm(f->slope.denominator, f->rest.denominator);
    if (whole == 0)
        return;
    const int64_t slope = modulo((wide)f->slope.number * (whole / f->slope.denominator), whole);
    const int64_t rest = modulo((wide)f->rest.number * (whole / f->rest.denominator), whole);
    const int64_t common = gcd(slope, whole);
    if (rest % common != 0) {
        l->empty = true;
        return;
    }
    const int64_t step = whole / common;
    if (step > 1)
        keep_class(l, modulo((wide)(step - rest / common % step) * inverse(slope / common, step), step),
                   step);
}

static wide floor_of(wide number, wide denominator)
{
    if (denominator < 0) {
        number = -number;
        denominator = -denominator;
    }
    return number / denominator - (number % denominator < 0);
}

/* The line is at least 0, or, `above`, larger. */
static void keep_positive(etch_lattice *l, const line *f, bool above)
{
    if (f->below.number != 0 || f->slope.number == 0)
        return;
    /* where it is 0 */
    const wide number = -(wide)f->rest.number * f->slope.denominator;
    const wide denominator = (wide)f->rest.denominator * f->slope.number;
    const wide floor = floor_of(number, denominator), exact = number % denominator == 0;
    if (f->slope.number > 0) {
        const wide least = exact && !above ? floor : floor + 1;
        if (least > l->first) {
            const wide first = l->first + (least - l->first + l->step - 1) / l->step * l->step;
            l->empty = l->empty || first > INT64_MAX / 2;
            l->first = l->empty ? l->first : (int64_t)first;
        }
    } else {
        const wide last = exact && above ? floor - 1 : floor;
        if (last < l->last)
            l->last = last < 0 ? 0 : (int64_t)last;
    }
}

static void keep(etch_lattice *l, etch_sym *sym, const etch_case_must *m, const etch_expr *formulas,
                 etch_expr var)
{
    etch_expr left = formulas[m->left], right = formulas[m->right];
    const bool number = m->must.kind == ETCH_MUST_BE_NUMBER;
    const etch_relation relation = m->must.relation;
    line f;
    if (number) {
        if (!m->must.fraction && read_line(sym, left, var, &f))
            keep_integers(l, &f);
        if (read_line(sym, etch_sub(sym, left, etch_int(sym, m->must.least)), var, &f))
            keep_positive(l, &f, m->must.above);
        if (m->must.share && read_line(sym, etch_sub(sym, etch_int(sym, 1), left), var, &f))
            keep_positive(l, &f, false);
        return;
    }
    const bool holds = m->must.kind == ETCH_MUST_HOLD;
    if (m->must.kind == ETCH_MUST_DIVIDE || (holds && relation == ETCH_REL_DIVIDES)) {
        if (read_line(sym, etch_div(sym, right, left), var, &f))
            keep_integers(l, &f);
    } else if (holds && (relation == ETCH_REL_GE || relation == ETCH_REL_GT)) {
        if (read_line(sym, etch_sub(sym, left, right), var, &f))
            keep_positive(l, &f, relation == ETCH_REL_GT);
    } else if (holds && (relation == ETCH_REL_LE || relation == ETCH_REL_LT)) {
        if (read_line(sym, etch_sub(sym, right, left), var, &f))
            keep_positive(l, &f, relation == ETCH_REL_LT);
    }
}

etch_lattice etch_lattice_of(const etch_case_look *look, etch_expr var, int64_t least)
{
    etch_lattice l = {.first = least, .step = 1, .last = INT64_MAX};
    for (uint32_t i = 0; i < look->must_count && !l.empty; i++)
        keep(&l, look->session->sym, &look->musts[i], look->must_formulas, var);
    if (l.divides > 0 && l.divides < l.last)
        l.last = l.divides;
    l.empty = l.empty || l.last < l.first;
    return l;
}

int64_t etch_lattice_count(const etch_lattice *l)
{
    if (l->empty)
        return 0;
    return l->last == INT64_MAX ? INT64_MAX : (l->last - l->first) / l->step + 1;
}

int64_t etch_lattice_at(const etch_lattice *l, int64_t index)
{
    return l->first + l->step * index;
}
