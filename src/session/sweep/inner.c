/* One variable, the others fixed: where the statement turns, and the admissible values on both sides. */
#include "session/sweep/solve_int.h"

#include <stdlib.h>
#include <string.h>

/* Values that are asked for, in search of an admissible one; and of finitely many, all. */
enum { MOST_WALKED = 1 << 17, MOST_EACH = 1 << 20 };

/* The same where the step is run for each. */
enum { MOST_RUN = 1 << 10 };

static uint32_t last_of(const etch_solver *s)
{
    return s->frame->axis_count - 1;
}

/* ---- points -------------------------------------------------------------------------------------------- */

static void fill_point(const etch_solver *s, const etch_probe *p, etch_solution_point *out)
{
    etch_arena *arena = s->sweep->arena;
    const char **values = ETCH_NEW_ARRAY(arena, s->frame->axis_count, const char *);
    for (uint32_t i = 0; i < last_of(s); i++)
        values[i] = etch_exact_text(arena, s->row[i]);
    values[last_of(s)] = etch_exact_text(arena, p->value);
    *out = (etch_solution_point){values, etch_exact_text(arena, p->left), etch_exact_text(arena, p->right)};
}

static const etch_solution_point *point_of(const etch_solver *s, const etch_probe *p)
{
    if (!p)
        return NULL;
    etch_solution_point *point = ETCH_NEW(s->sweep->arena, etch_solution_point);
    fill_point(s, p, point);
    return point;
}

static void set_answers(const etch_solver *s, etch_solution_row *row, const etch_probe *const *probes,
                        uint32_t count)
{
    etch_solution_point *points = ETCH_NEW_ARRAY(s->sweep->arena, count, etch_solution_point);
    for (uint32_t i = 0; i < count; i++)
        fill_point(s, probes[i], &points[i]);
    row->answers = points;
    row->answer_count = count;
}

static bool are_equal(const etch_solver *s, const etch_probe *p)
{
    return etch_exact_compare(s->sweep->arena, p->left, p->right) == 0;
}

/* ---- each value ---------------------------------------------------------------------------------------- */

typedef ETCH_VEC(etch_probe) etch_probes;
typedef ETCH_VEC(const etch_probe *) probe_list;

static int compare_values(const void *a, const void *b)
{
    const etch_exact x = ((const etch_probe *)a)->value, y = ((const etch_probe *)b)->value;
    __extension__ typedef __int128 wide;
    const wide left = (wide)x.number * y.denominator, right = (wide)y.number * x.denominator;
    return left < right ? -1 : left > right;
}

/* Rising, each once, without those that are refused. */
static uint32_t keep_admissible(etch_probe *probes, uint32_t count)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < count; i++)
        if (probes[i].state != ETCH_PROBE_REFUSED)
            probes[kept++] = probes[i];
    return kept;
}

/* Of an equation: where the sides are equal, or between which values they change places. */
static void conclude_equation(const etch_solver *s, const etch_probe *probes, uint32_t count,
                              etch_solution_row *row)
{
    probe_list equal = {0};
    const etch_probe *sides[2] = {NULL, NULL};
    for (uint32_t i = 0; i < count; i++) {
        if (are_equal(s, &probes[i]))
            ETCH_PUSH(s->sweep->arena, &equal, &probes[i]);
        if (i > 0 && !sides[0] && probes[i].state != probes[i - 1].state) {
            sides[0] = &probes[i - 1];
            sides[1] = &probes[i];
        }
    }
    row->kind = equal.count > 1 ? ETCH_SOLUTION_SOME : ETCH_SOLUTION_EQUAL;
    if (equal.count == 1)
        row->answer = point_of(s, equal.at[0]);
    else if (equal.count > 1)
        set_answers(s, row, equal.at, equal.count);
    else if (sides[0])
        set_answers(s, row, sides, 2);
}

/* Of admissible values in rising order. */
static void conclude_each(const etch_solver *s, const etch_probe *probes, uint32_t count,
                          etch_solution_row *row)
{
    probe_list holding = {0};
    uint32_t turns = 0, turn = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (probes[i].state == ETCH_PROBE_HOLDS)
            ETCH_PUSH(s->sweep->arena, &holding, &probes[i]);
        if (i > 0 && probes[i].state != probes[i - 1].state) {
            turns++;
            turn = i;
        }
    }
    if (holding.count == 0)
        return;
    const bool begins = probes[0].state == ETCH_PROBE_HOLDS;
    row->kind = turns == 0  ? ETCH_SOLUTION_EVERY
                : turns > 1 ? ETCH_SOLUTION_SOME
                : begins    ? ETCH_SOLUTION_LARGEST
                            : ETCH_SOLUTION_LEAST;
    if (turns > 1) {
        set_answers(s, row, holding.at, holding.count);
        return;
    }
    row->answer = point_of(s, turns == 0 ? &probes[count - 1] : &probes[begins ? turn - 1 : turn]);
    row->fails = turns == 0 ? NULL : point_of(s, &probes[begins ? turn : turn - 1]);
}

etch_status etch_solve_each(const etch_solver *s, const etch_exact *values, uint32_t count,
                            etch_solution_row *row)
{
    etch_probe *probes = ETCH_NEW_ARRAY(s->sweep->arena, count, etch_probe);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < count; i++)
        probes[i].value = values[i];
    if (count > 0)
        qsort(probes, count, sizeof *probes, compare_values);
    for (uint32_t i = 0; i < count; i++)
        if (i == 0 || compare_values(&probes[i], &probes[kept - 1]) != 0)
            probes[kept++] = probes[i];
    const etch_status status = etch_probe_all(s, probes, kept);
    if (status != ETCH_OK)
        return status;
    kept = keep_admissible(probes, kept);
    row->method = ETCH_SOLVE_EACH;
    (s->equation ? conclude_equation : conclude_each)(s, probes, kept, row);
    return ETCH_OK;
}

/* All of a lattice, which has an end, and 1 where that is a case of its own. */
static etch_status solve_all(const etch_solver *s, const etch_turning *c, etch_solution_row *row)
{
    const etch_lattice *l = &c->lattice;
    ETCH_VEC(etch_exact) values = {0};
    etch_arena *arena = s->sweep->arena;
    if (c->is_size && c->least <= 1)
        ETCH_PUSH(arena, &values, (etch_exact){1, 1, NULL});
    if (l->divides == 0) {
        for (int64_t i = 0; i < etch_lattice_count(l); i++)
            ETCH_PUSH(arena, &values, (etch_exact){etch_lattice_at(l, i), 1, NULL});
        return etch_solve_each(s, values.at, values.count, row);
    }
    const etch_exact number = {l->divides, 1, NULL};
    etch_exact *divisors;
    uint32_t count;
    if (!l->empty && etch_piece_values(arena, ETCH_VALUES_DIVISORS, &number, 1, &divisors, &count))
        for (uint32_t i = 0; i < count; i++)
            if (divisors[i].number >= l->first && divisors[i].number <= l->last &&
                (divisors[i].number - l->first) % l->step == 0)
                ETCH_PUSH(arena, &values, divisors[i]);
    return etch_solve_each(s, values.at, values.count, row);
}

/* ---- both sides of a turn ------------------------------------------------------------------------------ */

/* The admissible value of the lattice that is next to an index, itself included, on one side. NULL: there is
 * none; `*lost`: none among those that were asked. */
static etch_status walk(const etch_solver *s, const etch_lattice *l, int64_t from, int direction,
                        const etch_probe **found, bool *lost)
{
    const int64_t count = etch_lattice_count(l);
    etch_status status = ETCH_OK;
    uint32_t chunk = 1, walked = 0;
    int64_t at = from;
    *found = NULL;
    while (status == ETCH_OK && !*found && at >= 0 && at < count && walked < MOST_WALKED) {
        const int64_t rest = direction > 0 ? count - at : at + 1;
        const uint32_t some = rest < chunk ? (uint32_t)rest : chunk;
        etch_probe *probes = ETCH_NEW_ARRAY(s->sweep->arena, some, etch_probe);
        for (uint32_t i = 0; i < some; i++)
            probes[i].value = (etch_exact){etch_lattice_at(l, at + direction * (int64_t)i), 1, NULL};
        status = etch_probe_all(s, probes, some);
        for (uint32_t i = 0; status == ETCH_OK && !*found && i < some; i++)
            if (probes[i].state != ETCH_PROBE_REFUSED)
                *found = &probes[i];
        at += direction * (int64_t)some;
        walked += some;
        chunk = chunk < ETCH_SWEEP_BLOCK / 4 ? 4 * chunk : ETCH_SWEEP_BLOCK;
    }
    *lost = !*found && at >= 0 && at < count;
    return status;
}

/* A size of 1, which is a case of its own, below the lattice. NULL: it is not admissible. */
static etch_status probe_one(const etch_solver *s, const etch_turning *c, const etch_probe **one)
{
    *one = NULL;
    if (!c->is_size || c->least > 1)
        return ETCH_OK;
    etch_probe *probe = ETCH_NEW(s->sweep->arena, etch_probe);
    probe->value = (etch_exact){1, 1, NULL};
    const etch_status status = etch_probe_all(s, probe, 1);
    if (status == ETCH_OK && probe->state != ETCH_PROBE_REFUSED)
        *one = probe;
    return status;
}

/* What is next to a turn. */
typedef struct sides {
    /* a size of 1, the first of the lattice, and those next to the turn; NULL: there is none */
    const etch_probe *one, *first, *below, *above;
    /* there is one, or none, but nobody knows */
    bool lost;
    /* the lattice turns within its end; it has no end */
    bool turns, endless;
} sides;

static etch_status find_sides(const etch_solver *s, const etch_turning *c, sides *out)
{
    const etch_lattice *l = &c->lattice;
    const int64_t count = etch_lattice_count(l);
    bool lost[3] = {false};
    *out = (sides){.turns = c->turn < count, .endless = count == INT64_MAX};
    const int64_t last = out->turns ? c->turn - 1 : out->endless ? -1 : count - 1;
    etch_status status = probe_one(s, c, &out->one);
    if (status == ETCH_OK)
        status = walk(s, l, 0, 1, &out->first, &lost[0]);
    if (status == ETCH_OK && last >= 0)
        status = walk(s, l, last, -1, &out->below, &lost[1]);
    if (status == ETCH_OK && out->turns)
        status = walk(s, l, c->turn, 1, &out->above, &lost[2]);
    /* Where none follows is no matter where the first side has the answer. */
    out->lost = lost[1] || (!out->below && lost[0]) || (lost[2] && !c->begins);
    return status;
}

static bool in_state(const etch_probe *p, bool holds)
{
    return p && p->state == (holds ? ETCH_PROBE_HOLDS : ETCH_PROBE_FAILS);
}

/* Do rows say otherwise than the formula? */
static bool contradicts(const etch_turning *c, const sides *x)
{
    return in_state(x->below, !c->begins) || in_state(x->above, c->begins) ||
           (!x->turns && in_state(x->first, !c->begins));
}

static void set_row(const etch_solver *s, etch_solution_row *row, etch_solution_kind kind,
                    const etch_probe *answer, const etch_probe *fails)
{
    row->kind = kind;
    row->answer = point_of(s, answer);
    row->fails = point_of(s, fails);
}

/* The statement holds for the first values. False: for none that is admissible. */
static bool conclude_begun(const etch_solver *s, const sides *x, etch_solution_row *row)
{
    const bool one = in_state(x->one, true);
    if (x->turns && (x->below || one)) {
        set_row(s, row, x->above ? ETCH_SOLUTION_LARGEST : ETCH_SOLUTION_EVERY, x->below ? x->below : x->one,
                x->above);
        return true;
    }
    if (x->turns || (!x->first && !one))
        return false;
    if (x->first && in_state(x->one, false))
        set_row(s, row, ETCH_SOLUTION_LEAST, x->first, x->one);
    else
        set_row(s, row, ETCH_SOLUTION_EVERY, x->endless ? NULL : x->below ? x->below : x->one, NULL);
    return true;
}

static bool conclude_late(const etch_solver *s, const sides *x, etch_solution_row *row)
{
    const bool one = in_state(x->one, true);
    if (x->above && !x->below && one)
        set_row(s, row, ETCH_SOLUTION_EVERY, NULL, NULL);
    else if (x->above && (x->below || x->one))
        set_row(s, row, ETCH_SOLUTION_LEAST, x->above, x->below ? x->below : x->one);
    else if (x->above)
        set_row(s, row, ETCH_SOLUTION_EVERY, NULL, NULL);
    else if (one)
        set_row(s, row, x->first ? ETCH_SOLUTION_LARGEST : ETCH_SOLUTION_EVERY, x->one, x->first);
    return x->above || one;
}

/* Of an equation: the side nearer to the turn has equal sides, or none has. */
static bool conclude_equal(const etch_solver *s, const sides *x, etch_solution_row *row)
{
    const etch_probe *at[2] = {x->below ? x->below : x->one, x->above};
    row->kind = ETCH_SOLUTION_EQUAL;
    for (int i = 0; i < 2; i++)
        if (at[i] && are_equal(s, at[i]) && !row->answer)
            row->answer = point_of(s, at[i]);
    if (!row->answer && at[0] && at[1])
        set_answers(s, row, at, 2);
    return row->answer || row->answer_count > 0;
}

/* ---- variables that are no integers -------------------------------------------------------------------- */

/* Is the place where both sides are equal refused? What is longer than words is asked of nobody. */
static etch_status probe_root(const etch_solver *s, const char *root, bool *refused)
{
    enum { WORD_DIGITS = 18 };
    *refused = false;
    if (strlen(root) > WORD_DIGITS)
        return ETCH_OK;
    const char *slash = strchr(root, '/');
    const int64_t below = slash ? strtoll(slash + 1, NULL, 10) : 1;
    etch_probe at = {.value = {strtoll(root, NULL, 10), below, NULL}};
    const etch_status status = etch_probe_all(s, &at, 1);
    *refused = at.state == ETCH_PROBE_REFUSED;
    return status;
}

static etch_status solve_real(const etch_solver *s, etch_turning *c, etch_solution_row *row, bool *found)
{
    bool refused;
    row->kind = !c->root      ? ETCH_SOLUTION_EVERY
                : s->equation ? ETCH_SOLUTION_EQUAL
                : c->begins   ? ETCH_SOLUTION_LARGEST
                              : ETCH_SOLUTION_LEAST;
    *found = c->root || c->begins;
    if (!c->root)
        return ETCH_OK;
    const etch_status status = probe_root(s, c->root, &refused);
    if (status != ETCH_OK)
        return status;
    if (refused || !c->left || !c->right) {
        c->trouble = ETCH_TURNING_LOST;
        return ETCH_EUNKNOWN;
    }
    etch_arena *arena = s->sweep->arena;
    const etch_probe at = {.value = {0, 1, c->root},
                           .left = etch_exact_read(arena, c->left),
                           .right = etch_exact_read(arena, c->right)};
    if (c->holds_at_root || s->equation)
        row->answer = point_of(s, &at);
    else
        row->fails = point_of(s, &at);
    return ETCH_OK;
}

/* ---- the whole ----------------------------------------------------------------------------------------- */

static bool is_finite(const etch_turning *c)
{
    const int64_t most = c->trouble == ETCH_TURNING_TIMED ? MOST_RUN : MOST_EACH;
    return !c->is_real &&
           (c->lattice.empty || c->lattice.divides > 0 || etch_lattice_count(&c->lattice) <= most);
}

/* May all values be looked at, where formulas say nothing, or little? */
static bool asks_each(const etch_solver *s, const etch_turning *c)
{
    const bool known = c->trouble == ETCH_TURNING_FINE || c->trouble == ETCH_TURNING_NOT_LINEAR ||
                       c->trouble == ETCH_TURNING_NOT_MONOTONE || c->trouble == ETCH_TURNING_TIMED;
    if (!known || !is_finite(c) || (s->wanted != ETCH_SOLVE_AUTO && s->wanted != ETCH_SOLVE_EACH))
        return false;
    return s->wanted == ETCH_SOLVE_EACH || c->lattice.divides > 0 || c->trouble != ETCH_TURNING_FINE;
}

static etch_status solve_turn(const etch_solver *s, etch_turning *c, etch_solution_row *row, bool *found)
{
    sides x;
    const etch_status status = find_sides(s, c, &x);
    if (status != ETCH_OK)
        return status;
    const bool odd = !c->begins && x.above && x.below && in_state(x.one, true);
    if (x.lost || contradicts(c, &x) || odd) {
        c->trouble = x.lost ? ETCH_TURNING_LOST : ETCH_TURNING_ODD;
        return ETCH_EUNKNOWN;
    }
    *found = s->equation ? conclude_equal(s, &x, row)
             : c->begins ? conclude_begun(s, &x, row)
                         : conclude_late(s, &x, row);
    return ETCH_OK;
}

/* Shows the formulas, with the variable open, to the search for the turn. */
static etch_status look(const etch_solver *s, etch_turning *c)
{
    const uint32_t count = s->frame->axis_count;
    etch_exact *values = ETCH_NEW_ARRAY(s->sweep->arena, count, etch_exact);
    memcpy(values, s->row, count * sizeof *values);
    values[count - 1] = (etch_exact){0};
    etch_sweep_case self = {.sweep = s->sweep,
                            .look = etch_turning_look,
                            .look_data = c,
                            .key = {.frame = s->frame, .values = values}};
    c->trouble = ETCH_TURNING_NO_FORMULA;
    if (s->frame->axes[count - 1].decides) {
        c->trouble = ETCH_TURNING_DECIDES;
        return ETCH_OK;
    }
    etch_status status = etch_case_begin(&self);
    if (status == ETCH_OK && self.state == ETCH_CASE_FITS)
        status = etch_case_complete(&self);
    if (self.state != ETCH_CASE_READY) {
        c->trouble = self.state == ETCH_CASE_REFUSED ? ETCH_TURNING_REFUSED : ETCH_TURNING_NO_FORMULA;
        c->why = etch_copy_string(s->sweep->arena, self.reason.text);
    }
    etch_case_free(&self);
    return status;
}

etch_status etch_solve_inner(const etch_solver *s, etch_solution_row *row, etch_turning *c, bool *found)
{
    const etch_sweep_axis *axis = &s->frame->axes[s->frame->axis_count - 1];
    *found = false;
    *row = (etch_solution_row){0};
    *c = (etch_turning){.sweep = s->sweep,
                        .name = axis->name,
                        .is_real = axis->real,
                        .is_size = axis->is_size,
                        .least = axis->least,
                        .relation = s->relation,
                        .wanted = s->wanted,
                        .method = s->wanted};
    etch_status status = look(s, c);
    if (status != ETCH_OK)
        return status;
    if (c->trouble == ETCH_TURNING_REFUSED)
        return ETCH_OK;
    if (s->frame->times && c->trouble != ETCH_TURNING_DECIDES && c->trouble != ETCH_TURNING_NO_FORMULA)
        c->trouble = ETCH_TURNING_TIMED; /* what stands in the place of its formula says nothing */
    if (asks_each(s, c)) {
        status = solve_all(s, c, row);
        *found = row->answer || row->answer_count > 0;
        return status;
    }
    if (c->trouble != ETCH_TURNING_FINE)
        return ETCH_EUNKNOWN;
    row->method = c->method;
    if (c->is_real)
        return solve_real(s, c, row, found);
    return solve_turn(s, c, row, found);
}
