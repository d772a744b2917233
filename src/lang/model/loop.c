/* Loops: `repeat n as i { ... }` becomes one body for each class of iterations.
 *
 * Conditions on the index decide what an iteration does. The body is elaborated once for each way in which
 * they can come out: a condition that the decisions before it leave open is taken to hold, and once the body
 * is done it is elaborated again with the last of these decisions turned round, until all have been. So only
 * conditions that are reached make classes, and what cannot happen makes none.
 *
 * What a condition says is kept as breaks, iterations from which on it holds, and as residues modulo a
 * period. Breaks are formulas, and their order need not be known: for every set of breaks that an iteration
 * can have passed there is a segment from the greatest of them to the least of the others. */
#include <string.h>

#include "lang/model/model_int.h"
#include "lang/names/series.h"

enum { MOST_BREAKS = 30, MOST_INTERVALS = 256, MOST_PERIOD = 256, MOST_CLASSES = 64 };
#define NO_BREAK UINT32_MAX

/* A condition: the break `low` is passed and `high` is not, or the residue is one of these; or the
 * contrary. */
typedef struct index_test {
    /* NO_BREAK: says nothing */
    uint32_t low, high;
    /* 1: says nothing */
    uint32_t modulus;
    /* by residue: does it hold? */
    bool *residues;
    bool negated;
} index_test;

typedef struct decision {
    uint32_t test;
    bool holds;
} decision;

typedef ETCH_VEC(decision) decisions;

/* Iterations that have passed the same breaks. */
typedef struct interval {
    /* bits of breaks */
    uint32_t passed;
    etch_expr first, end;
} interval;

struct etch_turn {
    etch_env *env;
    const char *name;
    etch_expr count;
    ETCH_VEC(etch_expr) breaks;
    /* What facts say of a break, as bits: the breaks that are not after it; and whether it is at the start or
     * before it, at the end or after it. */
    uint32_t reaches[MOST_BREAKS], at_start, at_end;
    uint32_t period;
    ETCH_VEC(index_test) tests;
    /* those that may have iterations */
    ETCH_VEC(interval) intervals;
    /* of the body in work, */
    decisions path;
    /* as far as it has come to them */
    uint32_t at;
    /* of the bodies that are done */
    ETCH_VEC(decisions) classes;
};

/* ---- what an iteration can be -------------------------------------------------------------------------- */

/* Are there no iterations from `first` to before `end`, whatever the params are? */
static bool is_empty(etch_sym *sym, etch_expr first, etch_expr end)
{
    return etch_at_least(sym, first, end, NULL) == ETCH_YES;
}

/* May an iteration that has passed these of the first `at` breaks have passed the next one, or not? */
static bool can_be(const etch_turn *t, uint32_t passed, uint32_t at, bool is_passed)
{
    if ((is_passed ? t->at_end : t->at_start) >> at & 1)
        return false;
    for (uint32_t k = 0; k < at; k++) {
        const bool other = passed >> k & 1;
        if (other != is_passed && (is_passed ? t->reaches[at] >> k : t->reaches[k] >> at) & 1)
            return false;
    }
    return true;
}

/* The iterations that have passed these breaks and no others; false when there are none. */
static bool interval_of(const etch_turn *t, uint32_t passed, interval *out)
{
    etch_sym *sym = t->env->builder->spec->sym;
    *out = (interval){.passed = passed, .first = etch_int(sym, 0), .end = t->count};
    for (uint32_t i = 0; i < t->breaks.count; i++) {
        etch_expr at = etch_larger(sym, etch_int(sym, 0), etch_smaller(sym, t->breaks.at[i], t->count));
        if (passed >> i & 1)
            out->first = etch_larger(sym, out->first, at);
        else
            out->end = etch_smaller(sym, out->end, at);
    }
    return !is_empty(sym, out->first, out->end);
}

/* Goes as deep as there are breaks. */
static void add_intervals(etch_turn *t, uint32_t passed, uint32_t at)
{
    interval s;
    if (t->intervals.count > MOST_INTERVALS)
        return;
    if (at == t->breaks.count) {
        if (interval_of(t, passed, &s))
            ETCH_PUSH(t->env->builder->spec->arena, &t->intervals, s);
        return;
    }
    if (can_be(t, passed, at, false))
        add_intervals(t, passed, at + 1);
    if (can_be(t, passed, at, true))
        add_intervals(t, passed | UINT32_C(1) << at, at + 1);
}

static void find_intervals(etch_turn *t)
{
    t->intervals.count = 0;
    if (t->breaks.count <= MOST_BREAKS)
        add_intervals(t, 0, 0);
}

/* May the interval have an iteration with this residue? */
static bool has_residue(const etch_turn *t, const interval *s, uint32_t residue)
{
    int64_t first, end;
    if (!etch_to_i64(s->first, &first) || !etch_to_i64(s->end, &end) || end - first >= t->period)
        return true;
    for (int64_t i = first; i < end; i++)
        if (i % t->period == residue)
            return true;
    return false;
}

static bool holds(const index_test *test, uint32_t passed, uint32_t residue)
{
    const bool low = test->low == NO_BREAK || passed >> test->low & 1;
    const bool high = test->high == NO_BREAK || !(passed >> test->high & 1);
    const bool fits = !test->residues || test->residues[residue % test->modulus];
    return (low && high && fits) != test->negated;
}

static bool agrees(const etch_turn *t, const decisions *path, uint32_t count, uint32_t passed,
                   uint32_t residue)
{
    for (uint32_t i = 0; i < count; i++)
        if (holds(&t->tests.at[path->at[i].test], passed, residue) != path->at[i].holds)
            return false;
    return true;
}

/* ---- decisions ----------------------------------------------------------------------------------------- */

/* Does the test hold in the body in work? Where that is open, it is decided. */
static bool decide(etch_turn *t, uint32_t test)
{
    bool can_hold = false, can_fail = false;
    if (t->at < t->path.count && t->path.at[t->at].test == test)
        return t->path.at[t->at++].holds;
    for (uint32_t i = 0; i < t->intervals.count; i++)
        for (uint32_t residue = 0; residue < t->period; residue++) {
            const interval *s = &t->intervals.at[i];
            if (!agrees(t, &t->path, t->at, s->passed, residue) || !has_residue(t, s, residue))
                continue;
            const bool yes = holds(&t->tests.at[test], s->passed, residue);
            can_hold = can_hold || yes;
            can_fail = can_fail || !yes;
        }
    if (!can_hold || !can_fail)
        return can_hold;
    t->path.count = t->at++;
    ETCH_PUSH(t->env->builder->spec->arena, &t->path, (decision){test, true});
    return true;
}

/* Turns the last decision round that has not been; false when there is none left. */
static bool turn_round(etch_turn *t)
{
    t->path.count = t->at;
    t->at = 0;
    while (t->path.count > 0 && !t->path.at[t->path.count - 1].holds)
        t->path.count--;
    if (t->path.count == 0)
        return false;
    t->path.at[t->path.count - 1].holds = false;
    return true;
}

/* ---- conditions ---------------------------------------------------------------------------------------- */

/* The bound name of an index in the expression, or NULL. The tree's height bounds the recursion. */
static const etch_bound_name *index_in(const etch_env *env, const etch_ast_expr *expr)
{
    const etch_bound_name *found = NULL;
    if (!expr)
        return NULL;
    if (expr->kind == ETCH_AST_NAME) {
        found = etch_env_find(env, expr->name.text);
        return found && found->kind == ETCH_BOUND_INDEX ? found : NULL;
    }
    if (expr->kind == ETCH_AST_CALL)
        for (uint32_t i = 0; i < expr->args.count && !found; i++)
            found = index_in(env, expr->args.at[i].value);
    if (expr->kind == ETCH_AST_LIST)
        for (uint32_t i = 0; i < expr->items.count && !found; i++)
            found = index_in(env, expr->items.at[i]);
    if (expr->kind == ETCH_AST_NEGATE || expr->kind == ETCH_AST_BINARY || expr->kind == ETCH_AST_COMPARE)
        found = index_in(env, expr->left);
    if (!found && (expr->kind == ETCH_AST_BINARY || expr->kind == ETCH_AST_COMPARE))
        found = index_in(env, expr->right);
    return found;
}

static bool is_remainder(const etch_ast_expr *expr)
{
    return expr->kind == ETCH_AST_BINARY && expr->op == '%';
}

/* Is it an index, or an index modulo something else? */
static bool is_index_side(const etch_env *env, const etch_ast_expr *expr)
{
    if (is_remainder(expr) && !index_in(env, expr->right))
        expr = expr->left;
    return expr->kind == ETCH_AST_NAME && index_in(env, expr);
}

/* `what` the conditions do that is too much. */
static void report_classes(const etch_turn *t, etch_span span, const char *what)
{
    etch_diag *diag = etch_error(t->env->builder->spec->diags, ETCH_E_LOOP_CLASSES, span,
                                 "the conditions on %s %s", t->name, what);
    etch_help(diag, "write the loop as several");
    t->env->builder->stopped = true;
}

static void compare_break(etch_turn *t, uint32_t added)
{
    etch_sym *sym = t->env->builder->spec->sym;
    etch_expr at = t->breaks.at[added];
    t->at_start |= (uint32_t)is_empty(sym, etch_int(sym, 0), at) << added;
    t->at_end |= (uint32_t)is_empty(sym, at, t->count) << added;
    for (uint32_t i = 0; i < added; i++) {
        t->reaches[added] |= (uint32_t)is_empty(sym, at, t->breaks.at[i]) << i;
        t->reaches[i] |= (uint32_t)is_empty(sym, t->breaks.at[i], at) << added;
    }
}

static uint32_t break_at(etch_turn *t, etch_expr at)
{
    for (uint32_t i = 0; i < t->breaks.count; i++)
        if (t->breaks.at[i] == at)
            return i;
    const uint32_t added = t->breaks.count;
    ETCH_PUSH(t->env->builder->spec->arena, &t->breaks, at);
    if (added < MOST_BREAKS)
        compare_break(t, added);
    return added;
}

/* The condition `index RELATION right`. */
static index_test test_of_order(etch_turn *t, etch_relation relation, etch_expr right)
{
    etch_sym *sym = t->env->builder->spec->sym;
    etch_expr from = etch_ceil(sym, right), above = etch_add(sym, etch_floor(sym, right), etch_int(sym, 1));
    index_test test = {.low = NO_BREAK, .high = NO_BREAK, .modulus = 1};
    const bool equal = relation == ETCH_REL_EQ || relation == ETCH_REL_NE;
    test.low = break_at(t, relation == ETCH_REL_GT || relation == ETCH_REL_LE ? above : from);
    if (equal)
        test.high = break_at(t, above);
    test.negated = relation == ETCH_REL_LT || relation == ETCH_REL_LE || relation == ETCH_REL_NE;
    return test;
}

static uint32_t common_multiple(uint32_t a, uint32_t b)
{
    uint32_t x = a, y = b;
    while (y) {
        uint32_t rest = x % y;
        x = y;
        y = rest;
    }
    return a / x * b;
}

/* A condition that holds for no residue yet; false after an error. */
static bool test_of_residues(etch_turn *t, etch_expr modulus, etch_span span, index_test *test)
{
    etch_spec *spec = t->env->builder->spec;
    int64_t number;
    if (!etch_to_i64(modulus, &number) || number < 1) {
        etch_error(spec->diags, ETCH_E_LOOP_INDEX, span,
                   "the index %s of a loop is divided by %s: that must be a whole number from 1 on", t->name,
                   etch_expr_text(spec->sym, modulus));
        return false;
    }
    if (number > MOST_PERIOD || common_multiple(t->period, (uint32_t)number) > MOST_PERIOD) {
        report_classes(t, span,
                       etch_text(spec->arena, "repeat only after more than %d iterations", MOST_PERIOD));
        return false;
    }
    *test = (index_test){.low = NO_BREAK, .high = NO_BREAK, .modulus = (uint32_t)number};
    test->residues = ETCH_NEW_ARRAY(spec->arena, test->modulus, bool);
    t->period = common_multiple(t->period, test->modulus);
    return true;
}

/* Adds the residues of which `residue RELATION right` holds. */
static void add_residues(const etch_turn *t, index_test *test, etch_relation relation, etch_expr right)
{
    etch_sym *sym = t->env->builder->spec->sym;
    for (uint32_t i = 0; i < test->modulus; i++)
        test->residues[i] = test->residues[i] || etch_constants_hold(sym, relation, etch_int(sym, i), right);
}

/* The least multiple of the period that tells the first `count` iterations apart. */
static uint32_t modulus_for(const etch_turn *t, uint32_t count)
{
    const uint32_t periods = (count + t->period - 1) / t->period;
    return (periods ? periods : 1) * t->period;
}

/* Of a list of iterations, which are numbers: how many there are up to the last of them; 0 after an error. */
static uint32_t reach_of(etch_turn *t, const etch_expr *list, uint32_t count, etch_span span)
{
    int64_t reach = 0, number;
    for (uint32_t i = 0; i < count; i++) {
        etch_spec *spec = t->env->builder->spec;
        if (!etch_to_i64(list[i], &number) || number < 0) {
            etch_error(spec->diags, ETCH_E_LOOP_INDEX, span, "%s is no iteration of a loop: %s counts from 0",
                       etch_expr_text(spec->sym, list[i]), t->name);
            return 0;
        }
        reach = number >= reach ? number + 1 : reach;
    }
    if (reach <= MOST_PERIOD && modulus_for(t, (uint32_t)reach) <= MOST_PERIOD)
        return (uint32_t)reach;
    report_classes(
        t, span, etch_text(t->env->builder->spec->arena, "tell more than %d iterations apart", MOST_PERIOD));
    return 0;
}

/* The condition `index in [..]`: of the iterations up to the last of the list, by residues of a modulus that
 * is as large. False after an error. */
static bool test_of_list(etch_turn *t, const etch_expr *list, uint32_t count, etch_span span,
                         index_test *test)
{
    etch_sym *sym = t->env->builder->spec->sym;
    const uint32_t reach = reach_of(t, list, count, span);
    if (!reach || !test_of_residues(t, etch_int(sym, modulus_for(t, reach)), span, test))
        return false;
    for (uint32_t i = 0; i < count; i++)
        add_residues(t, test, ETCH_REL_EQ, list[i]);
    const etch_expr end = etch_int(sym, reach);
    if (!is_empty(sym, end, t->count))
        test->high = break_at(t, end);
    return true;
}

static bool same_test(const index_test *a, const index_test *b)
{
    return a->low == b->low && a->high == b->high && a->negated == b->negated && a->modulus == b->modulus &&
           (a->modulus == 1 || memcmp(a->residues, b->residues, a->modulus * sizeof *a->residues) == 0);
}

static uint32_t known_test(etch_turn *t, index_test test)
{
    for (uint32_t i = 0; i < t->tests.count; i++)
        if (same_test(&t->tests.at[i], &test))
            return i;
    ETCH_PUSH(t->env->builder->spec->arena, &t->tests, test);
    find_intervals(t);
    return t->tests.count - 1;
}

/* A condition taken apart: `side RELATION right`; right NULL: 0. */
typedef struct condition {
    /* the index or its remainder; what it is compared with */
    const etch_ast_expr *side, *right;
    /* `side in list`, or NULL */
    const etch_ast_expr *list;
    etch_relation relation;
    /* `right | side` */
    bool divisor;
} condition;

static bool take_apart(const etch_env *env, const etch_ast_expr *expr, condition *c)
{
    if (expr->kind != ETCH_AST_COMPARE) {
        *c = (condition){.side = expr, .relation = ETCH_REL_NE};
        return is_index_side(env, expr);
    }
    if (etch_is_membership(expr)) {
        *c = (condition){.side = expr->left, .list = expr->right};
        return is_index_side(env, expr->left) && !index_in(env, expr->right);
    }
    const bool on_left = is_index_side(env, expr->left);
    const etch_relation relation = etch_relation_of(expr->op);
    *c = (condition){.side = on_left ? expr->left : expr->right,
                     .right = on_left ? expr->right : expr->left,
                     .relation = on_left ? relation : etch_mirrored(relation),
                     .divisor = relation == ETCH_REL_DIVIDES};
    return is_index_side(env, c->side) && !index_in(env, c->right) && !(c->divisor && on_left) &&
           !(c->divisor && is_remainder(c->side));
}

/* Fills `test` for `side in [..]`; false after an error. */
static bool read_membership(etch_turn *t, etch_env *env, const condition *c, index_test *test)
{
    const etch_ast_exprs *items = &c->list->items;
    etch_expr *list = ETCH_NEW_ARRAY(env->builder->spec->arena, items->count, etch_expr);
    etch_expr modulus = is_remainder(c->side) ? etch_env_number(env, c->side->right) : NULL;
    bool fine = modulus || !is_remainder(c->side);
    for (uint32_t i = 0; i < items->count; i++) {
        list[i] = etch_env_number(env, items->at[i]);
        fine = fine && list[i];
    }
    if (!fine || !modulus)
        return fine && test_of_list(t, list, items->count, c->list->span, test);
    if (!test_of_residues(t, modulus, c->side->right->span, test))
        return false;
    for (uint32_t i = 0; i < items->count; i++)
        add_residues(t, test, ETCH_REL_EQ, list[i]);
    return true;
}

/* Fills `test` for `index % modulus RELATION right`; false after an error. */
static bool read_remainder(etch_turn *t, etch_relation relation, etch_expr modulus, etch_expr right,
                           etch_span span, index_test *test)
{
    if (!modulus || !right || !test_of_residues(t, modulus, span, test))
        return false;
    add_residues(t, test, relation, right);
    return true;
}

/* Fills `test`; false after an error. */
static bool read_condition(etch_turn *t, etch_env *env, const condition *c, index_test *test)
{
    etch_sym *sym = env->builder->spec->sym;
    etch_lookup lookup = etch_env_lookup(env);
    const etch_expr zero = etch_int(sym, 0);
    if (c->list)
        return read_membership(t, env, c, test);
    if (c->divisor)
        return read_remainder(t, ETCH_REL_EQ, etch_env_number(env, c->right), zero, c->right->span, test);
    if (is_remainder(c->side)) {
        etch_expr modulus = etch_env_number(env, c->side->right);
        return read_remainder(t, c->relation, modulus, c->right ? etch_env_number(env, c->right) : zero,
                              c->side->right->span, test);
    }
    etch_expr right = c->right ? etch_value_of(env->builder->spec, c->right, &lookup) : zero;
    if (!right)
        return false;
    *test = test_of_order(t, c->relation, right);
    return true;
}

/* Does the test hold in the body in work? */
static etch_truth decide_test(etch_turn *t, index_test test, etch_span span)
{
    const uint32_t known = known_test(t, test);
    if (t->breaks.count > MOST_BREAKS || t->intervals.count > MOST_INTERVALS) {
        report_classes(
            t, span,
            etch_text(t->env->builder->spec->arena, "divide it at more than %d places", MOST_BREAKS));
        return ETCH_UNKNOWN;
    }
    return decide(t, known) ? ETCH_YES : ETCH_NO;
}

bool etch_env_has_index(const etch_env *env, const etch_ast_expr *test)
{
    return index_in(env, test) != NULL;
}

etch_truth etch_env_decide_index(etch_env *env, const etch_ast_expr *expr)
{
    etch_turn *t = index_in(env, expr)->turn;
    condition c;
    index_test test;
    if (!take_apart(env, expr, &c)) {
        etch_report_index(env, expr->span, index_in(env, expr));
        return ETCH_UNKNOWN;
    }
    if (!read_condition(t, env, &c, &test))
        return ETCH_UNKNOWN;
    return decide_test(t, test, expr->span);
}

/* Has the text or list one for each iteration? Reports one that has too few. */
static bool reaches_all(const etch_turn *t, const etch_one *one)
{
    etch_spec *spec = t->env->builder->spec;
    const char *name = one->call->args.at[0].value->name.text;
    const etch_expr most = etch_int(spec->sym, one->series->count);
    const etch_expr count = etch_graph_with_defaults(t->env->builder->graph, t->count);
    if (!count || etch_at_least(spec->sym, most, count, NULL) == ETCH_YES)
        return count != NULL;
    etch_diag *diag =
        etch_error(spec->diags, ETCH_E_SERIES, one->call->span, "'%s' has %u, and the loop runs %s times",
                   name, one->series->count, etch_expr_text(spec->sym, count));
    etch_help(diag, "a loop over all of them is `repeat len(%s)`", name);
    return false;
}

/* Of how many iterations each is told apart by its position; 0 after an error. */
static uint32_t positions_of(etch_turn *t, etch_env *env, const etch_one *one)
{
    if (!is_remainder(one->position))
        return reaches_all(t, one) ? modulus_for(t, one->series->count) : 0;
    const etch_expr modulus = etch_env_number(env, one->position->right);
    int64_t number;
    if (modulus && etch_to_i64(modulus, &number) && number >= 1 && number <= one->series->count)
        return (uint32_t)number;
    if (modulus)
        etch_error(env->builder->spec->diags, ETCH_E_SERIES, one->position->span,
                   "a remainder of %s reads beyond the %u that there are",
                   etch_expr_text(env->builder->spec->sym, modulus), one->series->count);
    return 0;
}

etch_truth etch_env_decide_position(etch_env *env, const etch_one *one, const bool *holds)
{
    const etch_ast_expr *position = one->position;
    etch_turn *t = index_in(env, position)->turn;
    etch_sym *sym = env->builder->spec->sym;
    index_test test;
    if (!is_index_side(env, position)) {
        etch_report_index(env, position->span, index_in(env, position));
        return ETCH_UNKNOWN;
    }
    const uint32_t modulus = positions_of(t, env, one);
    if (!modulus || !test_of_residues(t, etch_int(sym, modulus), position->span, &test))
        return ETCH_UNKNOWN;
    for (uint32_t i = 0; i < modulus && i < one->series->count; i++)
        test.residues[i] = holds[i];
    return decide_test(t, test, position->span);
}

/* ---- the loop ------------------------------------------------------------------------------------------ */

static uint32_t class_of(const etch_turn *t, uint32_t passed, uint32_t residue)
{
    for (uint32_t i = 0; i < t->classes.count; i++)
        if (agrees(t, &t->classes.at[i], t->classes.at[i].count, passed, residue))
            return i;
    return 0; /* after an error */
}

static const etch_pattern *pattern_of(const etch_turn *t)
{
    etch_arena *arena = t->env->builder->spec->arena;
    etch_pattern *pattern = ETCH_NEW(arena, etch_pattern);
    pattern->period = t->period;
    for (uint32_t i = 0; i < t->intervals.count; i++) {
        const interval *s = &t->intervals.at[i];
        etch_segment segment = {.first = s->first, .end = s->end};
        segment.class_of = ETCH_NEW_ARRAY(arena, t->period, uint32_t);
        for (uint32_t r = 0; r < t->period; r++)
            segment.class_of[r] = has_residue(t, s, r) ? class_of(t, s->passed, r) : ETCH_NO_CLASS;
        ETCH_PUSH(arena, &pattern->segments, segment);
    }
    return pattern;
}

/* Remembers by which decisions the body came about. */
static void end_class(etch_turn *t)
{
    decisions copy = {0};
    for (uint32_t i = 0; i < t->at; i++)
        ETCH_PUSH(t->env->builder->spec->arena, &copy, t->path.at[i]);
    ETCH_PUSH(t->env->builder->spec->arena, &t->classes, copy);
}

static void bind_carried(etch_env *env, const etch_carried *carried, etch_tensor *const *values)
{
    for (uint32_t i = 0; i < carried->count; i++)
        etch_env_find(env, carried->at[i])->tensor = values[i];
}

static void read_carried(const etch_env *env, const etch_carried *carried, etch_tensor **values)
{
    for (uint32_t i = 0; i < carried->count; i++)
        values[i] = etch_env_find(env, carried->at[i])->tensor;
}

/* Is there another class to elaborate? */
static bool goes_on(etch_turn *t, const etch_ast_stmt *stmt, uint32_t errors)
{
    etch_builder *b = t->env->builder;
    end_class(t);
    if (b->stopped || etch_error_count(b->spec->diags) > errors || !turn_round(t))
        return false;
    if (t->classes.count == MOST_CLASSES)
        report_classes(t, stmt->span,
                       etch_text(b->spec->arena, "make more than %d classes of iterations", MOST_CLASSES));
    return !b->stopped;
}

/* Divides the loop where a limit of recomputation is: the body in work is one of those that are recomputed,
 * or of the others. */
static void divide_recomputed(etch_turn *t, const etch_loop_limits *limits, etch_region *body)
{
    for (uint32_t i = 0; i < limits->count; i++) {
        const index_test test = test_of_order(t, ETCH_REL_LT, limits->at[i].end);
        if (decide_test(t, test, limits->at[i].span) == ETCH_YES)
            body->recomputed = true;
    }
}

void etch_env_iterate(etch_env *env, const etch_ast_stmt *stmt, etch_expr count, const etch_carried *carried)
{
    etch_spec *spec = env->builder->spec;
    etch_graph *graph = env->builder->graph;
    etch_loop *loop = graph->region->loop;
    const uint32_t outer = env->names.count, outer_loop = env->loop_names;
    const uint32_t errors = etch_error_count(spec->diags);
    etch_tensor **values = ETCH_NEW_ARRAY(spec->arena, carried->count, etch_tensor *);
    etch_turn t = {.env = env, .name = loop->name, .count = count, .period = 1};
    etch_loop_limits limits;
    etch_env_loop_limits(env->builder, loop, &limits);
    find_intervals(&t);
    env->loop_names = outer;
    for (;;) {
        divide_recomputed(&t, &limits, graph->region);
        if (stmt->index.text)
            etch_env_declare(
                env, (etch_bound_name){.name = stmt->index.text, .kind = ETCH_BOUND_INDEX, .turn = &t},
                stmt->index.span);
        env->builder->bodies++;
        env->builder->inside->body(env, &stmt->body);
        read_carried(env, carried, values);
        env->names.count = outer; /* what the body made ends with it */
        if (!goes_on(&t, stmt, errors))
            break;
        etch_graph_next_body(graph, values, values, carried->count);
        bind_carried(env, carried, values);
    }
    env->loop_names = outer_loop;
    etch_graph_end(graph, values, values, carried->count);
    if (loop->bodies.count > 1)
        etch_graph_classes(graph, loop, pattern_of(&t));
    bind_carried(env, carried, values);
}
