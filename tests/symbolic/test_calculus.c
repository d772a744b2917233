/* Derivatives against exact differences of independently computed values; degrees, leading and dominant
 * terms, collecting. */
#include "oracle.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static etch_expr parse(etch_sym *sym, const char *text)
{
    size_t at;
    return etch_expr_parse(sym, text, strlen(text), &at);
}

static etch_sym *new_context(etch_arena *arena)
{
    etch_sym *sym = etch_sym_new(arena);
    declare_vars(sym, NULL);
    return sym;
}

/* ---- derivatives --------------------------------------------------------------------------------------- */

/* The degree that a tree of + - * ^ max and so on can have at most. */
static uint64_t degree_bound(const tree *t)
{
    if (t->op == 'v' || t->op == '#')
        return t->op == 'v';
    uint64_t a = degree_bound(t->a), b = t->b ? degree_bound(t->b) : 0;
    if (t->op == '^')
        return a * (uint64_t)t->num;
    if (t->op == '*')
        return a + b;
    return a > b ? a : b;
}

/* The derivative by variable `var` of a tree that is, from p on for degree * |step|, a polynomial of at
 * most that degree: with the differences D f = f(x + step) - f(x),  f' = 1/step * (D - D^2/2 + D^3/3 - ..)
 * f. */
static void exact_slope(const tree *t, const point *p, uint32_t var, const mpq_t step, uint32_t degree,
                        mpq_t slope)
{
    mpq_t *values = calloc(degree + 1, sizeof *values), part;
    point moved;
    point_init(&moved);
    mpq_init(part);
    for (uint32_t i = 0; i < VARS; i++)
        mpq_set(moved.at[i], p->at[i]);
    for (uint32_t k = 0; k <= degree; k++) {
        mpq_init(values[k]);
        ck_assert(tree_value(t, &moved, values[k]));
        mpq_add(moved.at[var], moved.at[var], step);
    }
    mpq_set_ui(slope, 0, 1);
    for (uint32_t k = 1; k <= degree; k++) {
        for (uint32_t i = 0; i + k <= degree; i++)
            mpq_sub(values[i], values[i + 1], values[i]);
        mpq_set_si(part, k % 2 ? 1 : -1, k);
        mpq_mul(part, part, values[0]);
        mpq_add(slope, slope, part);
    }
    mpq_div(slope, slope, step);
    for (uint32_t k = 0; k <= degree; k++)
        mpq_clear(values[k]);
    mpq_clear(part);
    point_clear(&moved);
    free(values);
}

/* Compares where the slopes to both sides are one. */
static void check_slope(etch_arena *arena, etch_sym *sym, const tree *t, chance *c, uint32_t *checked)
{
    uint32_t var = (uint32_t)chance_below(c, 4), degree = (uint32_t)degree_bound(t);
    etch_expr slope = etch_diff(sym, tree_build(sym, t), etch_var(sym, var_names[var]), NULL);
    CHANCE_ASSERT(c, slope, "%s has no derivative", tree_str(arena, t));
    mpq_t right, left, step, ours;
    mpq_inits(right, left, step, ours, NULL);
    point p;
    point_init(&p);
    point_random(&p, c, 30);
    for (uint32_t i = 0; i < VARS; i++) /* above what variables are known to reach */
        mpz_add_ui(mpq_numref(p.at[i]), mpq_numref(p.at[i]), var_kinds[i] == VAR_REAL ? 0 : 1);
    mpq_set_si(step, 1, 1000003);
    exact_slope(t, &p, var, step, degree, right);
    mpq_neg(step, step);
    exact_slope(t, &p, var, step, degree, left);
    if (mpq_equal(left, right)) {
        bool defined = expr_value(sym, slope, &p, ours);
        CHANCE_ASSERT(c, defined && mpq_equal(ours, right), "the derivative of %s by %s is %s: wrong at %s",
                      tree_str(arena, t), var_names[var], etch_expr_text(sym, slope), point_str(arena, &p));
        ++*checked;
    }
    point_clear(&p);
    mpq_clears(right, left, step, ours, NULL);
}

static void slopes_are_exact(etch_arena *arena, uint64_t seed, const tree_shape *shape, uint32_t runs)
{
    chance c = chance_new(seed);
    uint32_t checked = 0;
    for (uint32_t i = 0; i < chance_runs(runs); i++) {
        etch_arena *own = etch_arena_new(etch_arena_mem(arena));
        etch_sym *sym = new_context(own);
        tree *t = tree_random(own, &c, shape);
        if (degree_bound(t) <= 12)
            check_slope(own, sym, t, &c, &checked);
        etch_arena_free(own);
    }
    ck_assert_uint_gt(checked, chance_runs(runs) / 4);
}

static void polynomials_have_exact_slopes(etch_arena *arena)
{
    slopes_are_exact(arena, 71, &(tree_shape){"+-**^N", "", 8, 5, 9}, 600);
}

static void maxima_have_exact_slopes(etch_arena *arena)
{
    slopes_are_exact(arena, 72, &(tree_shape){"+-*MmA", "", 5, 4, 9}, 600);
}

/* (f/g)' g^2 = f' g - f g' for any f and g, also with functions inside. */
static void quotients_follow_the_rule(etch_arena *arena)
{
    static const tree_shape shape = {"+-*/^N", "((a2", 4, 3, 5};
    chance c = chance_new(73);
    for (uint32_t i = 0; i < chance_runs(300); i++) {
        etch_arena *own = etch_arena_new(etch_arena_mem(arena));
        etch_sym *sym = new_context(own);
        tree *s = tree_random(own, &c, &shape), *t = tree_random(own, &c, &shape);
        etch_expr f = tree_build(sym, s), g = tree_build(sym, t), x = etch_var(sym, "a");
        etch_expr quotient = f && g ? etch_div(sym, f, g) : NULL;
        if (quotient) {
            etch_expr df = etch_diff(sym, f, x, NULL), dg = etch_diff(sym, g, x, NULL);
            etch_expr left = etch_mul(sym, etch_diff(sym, quotient, x, NULL), etch_mul(sym, g, g));
            etch_expr right = etch_sub(sym, etch_mul(sym, df, g), etch_mul(sym, f, dg));
            CHANCE_ASSERT(&c, left == right, "(%s)/(%s): %s and %s", tree_str(own, s), tree_str(own, t),
                          etch_expr_text(sym, left), etch_expr_text(sym, right));
        }
        etch_arena_free(own);
    }
}

typedef struct slope_case {
    const char *text, *var, *slope;
    bool piecewise;
} slope_case;

static const slope_case slopes[] = {
    {"3*a^2*b/c + a", "a", "6*a*b/c + 1", false},
    {"3*a^2*b/c + a", "c", "-3*a^2*b/c^2", false},
    {"1/(a + b)", "a", "-1/(a + b)^2", false},
    {"b*floor(a/8)", "a", "0", true},
    {"b*floor(a/8)", "b", "floor(a/8)", false},
    {"a % 8", "a", "1", true},
    {"max(a*b, c) + floor(d/8)", "c", "max(c - a*b + 1, 0) - max(c - a*b, 0)", true},
    {"max(r, 1/2)", "r", "max(2*r - 1, 0)/(2*r - 1)", true},
    {"sum(i, 1, b, floor(i*c/8)*a^2)", "a", "2*a*sum(i, 1, b, floor(i*c/8))", false},
    {"sum(i, 1, b, a/(a + i))", "a", "sum(i, 1, b, i/(a + i)^2)", false},
    {"sum(i, 1, floor(a/4), floor(i*c/8))", "a", "0", true},
    {"7", "a", "0", false},
};

static void slopes_are_as_expected(etch_arena *arena)
{
    for (size_t i = 0; i < sizeof slopes / sizeof *slopes; i++) {
        etch_sym *sym = new_context(arena);
        bool piecewise;
        etch_expr slope =
            etch_diff(sym, parse(sym, slopes[i].text), etch_var(sym, slopes[i].var), &piecewise);
        ck_assert_msg(slope == parse(sym, slopes[i].slope), "d(%s)/d%s is %s", slopes[i].text, slopes[i].var,
                      etch_expr_text(sym, slope));
        ck_assert_msg(piecewise == slopes[i].piecewise, "d(%s)/d%s: %s", slopes[i].text, slopes[i].var,
                      piecewise ? "piecewise" : "not piecewise");
    }
}

static void what_has_no_slope(etch_arena *arena)
{
    etch_sym *sym = new_context(arena);
    int64_t other;
    ck_assert_ptr_null(etch_diff(sym, NULL, etch_var(sym, "a"), NULL));
    ck_assert_ptr_null(etch_diff(sym, parse(sym, "a^2"), NULL, NULL));
    ck_assert_ptr_null(etch_diff(sym, parse(sym, "a^2"), parse(sym, "2*a"), NULL));
    ck_assert_ptr_null(etch_diff(sym, parse(sym, "floor(a/8)"), parse(sym, "floor(a/8)"), NULL));
    etch_expr before = parse(sym, "a^2*b");
    ck_assert_int_eq(etch_assume_equal(sym, parse(sym, "b"), parse(sym, "2*a"), 0, &other), ETCH_OK);
    ck_assert_ptr_null(etch_diff(sym, before, etch_var(sym, "b"), NULL));
    ck_assert_ptr_eq(etch_diff(sym, before, etch_var(sym, "a"), NULL), parse(sym, "6*a^2"));
}

/* ---- floors taken away --------------------------------------------------------------------------------- */

typedef struct text_pair {
    const char *text, *expected;
} text_pair;

static void floors_are_relaxed(etch_arena *arena)
{
    static const text_pair pairs[] = {
        {"a*floor(b/8) + 1", "a*b/8 + 1"},
        {"a % 8", "0"},
        {"max(floor(a/8), 3)", "max(a/8, 3)"},
        {"1/(floor(a/8) + b)", "1/(a/8 + b)"},
        {"b/(a % 8)", NULL},
        {"ceil(b/8)", "(b + 7)/8"},
        {"floor(floor(a*b/c)/4)", "a*b/(4*c)"},
        {"sum(i, 1, a, floor(i*b/8))", "sum(i, 1, a, i*b/8)"},
    };
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        etch_sym *sym = new_context(arena);
        etch_expr relaxed = etch_relax(sym, parse(sym, pairs[i].text));
        etch_expr expected = pairs[i].expected ? parse(sym, pairs[i].expected) : NULL;
        ck_assert_msg(relaxed == expected, "%s becomes %s", pairs[i].text, etch_expr_text(sym, relaxed));
    }
}

/* ---- growth -------------------------------------------------------------------------------------------- */

typedef struct growth_case {
    const char *text, *var;
    int64_t low, high;
    const char *leading;
} growth_case;

static const growth_case growths[] = {
    {"4*a^2*b + 3*a^2*c + b/a + 7", "a", -1, 2, "4*a^2*b + 3*a^2*c"},
    {"4*a^2*b + 3*a^2*c + b/a + 7", "d", 0, 0, "4*a^2*b + 3*a^2*c + b/a + 7"},
    {"(a^3 + b)/(a + c)", "a", 0, 2, "a^2"},
    {"(a + b)/(2*a^2 + c)", "a", 0, -1, "1/(2*a)"},
    {"floor(a*b/8)*a + a", "a", 1, 2, "a^2*b/8"},
    {"a*floor(b/8) + a", "a", 1, 1, "a*floor(b/8) + a"},
    {"max(a*b, 5) + 3", "a", 0, 1, "a*b"},
    {"max(a^2 - b, a*c)", "a", 0, 2, "a^2"},
    {"min(a, b, 2)", "a", 0, 1, "min(b, 2)"},
    {"max(a*b, a*c) + 1", "a", 0, 1, "a*max(b, c)"},
    {"max(a*b - 1, 2*a*c - d)", "a", 0, 1, "a*max(b, 2*c)"},
    {"abs(b - a)", "a", 0, 1, "a"},
    {"max(a*b, c) - a*b + c", "a", 0, 1, "c"},
    {"1/(max(a*b, a^2) - a^2 + c)", "a", 0, -2, "1/c"},
};

static void growth_is_as_expected(etch_arena *arena)
{
    for (size_t i = 0; i < sizeof growths / sizeof *growths; i++) {
        const growth_case *g = &growths[i];
        etch_sym *sym = new_context(arena);
        etch_expr e = parse(sym, g->text), var = etch_var(sym, g->var), leading = etch_leading(sym, e, var);
        int64_t low, high;
        ck_assert_msg(etch_degree(sym, e, var, &low, &high), "%s has no degree", g->text);
        ck_assert_msg(low == g->low && high == g->high, "%s by %s: %lld to %lld", g->text, g->var,
                      (long long)low, (long long)high);
        ck_assert_msg(leading == parse(sym, g->leading), "%s leads in %s with %s", g->text, g->var,
                      etch_expr_text(sym, leading));
    }
}

static void what_has_no_degree(etch_arena *arena)
{
    etch_sym *sym = new_context(arena);
    etch_expr a = etch_var(sym, "a"), sum = parse(sym, "sum(i, 1, b, 1/(a + i)^2)");
    int64_t low, high;
    ck_assert(!etch_degree(sym, NULL, a, &low, &high));
    ck_assert(!etch_degree(sym, parse(sym, "0"), a, &low, &high));
    ck_assert(!etch_degree(sym, a, parse(sym, "a^2"), &low, &high));
    ck_assert(!etch_degree(sym, sum, a, &low, &high));
    ck_assert_ptr_null(etch_leading(sym, sum, a));
    ck_assert_ptr_null(etch_leading(sym, NULL, a));
    ck_assert_ptr_eq(etch_leading(sym, parse(sym, "0"), a), parse(sym, "0"));
}

/* a / leading -> 1: within 1/1000 at 10^90, with the other variables small. */
static void leading_terms_lead(etch_arena *arena)
{
    static const tree_shape shape = {"+-**^MmANP/", "((a2", 4, 4, 9};
    chance c = chance_new(74);
    mpq_t value, lead, bound;
    point p;
    mpq_inits(value, lead, bound, NULL);
    point_init(&p);
    mpq_set_si(bound, 1, 1000);
    for (uint32_t i = 0; i < chance_runs(500); i++) {
        etch_arena *own = etch_arena_new(etch_arena_mem(arena));
        etch_sym *sym = new_context(own);
        tree *t = tree_random(own, &c, &shape);
        etch_expr e = tree_build(sym, t), leading = etch_leading(sym, e, etch_var(sym, "a"));
        point_random(&p, &c, 7);
        mpq_set_si(p.at[0], 1, 1);
        mpz_ui_pow_ui(mpq_numref(p.at[0]), 10, 90);
        /* where terms cancel for these values the next ones lead */
        if (tree_value(t, &p, value) && leading && expr_value(sym, leading, &p, lead) && mpq_sgn(lead) != 0) {
            mpq_div(value, value, lead);
            mpq_set_si(lead, 1, 1);
            mpq_sub(value, value, lead);
            mpq_abs(value, value);
            CHANCE_ASSERT(&c, mpq_cmp(value, bound) < 0, "%s leads with %s, not at %s", tree_str(own, t),
                          etch_expr_text(sym, leading), point_str(own, &p));
        }
        etch_arena_free(own);
    }
    point_clear(&p);
    mpq_clears(value, lead, bound, NULL);
}

static void dominated_terms_are_dropped(etch_arena *arena)
{
    static const text_pair pairs[] = {
        {"4*a*b*c^2 + 2*a*b*c + 7*b + 1", "4*a*b*c^2"},
        {"a^2*b + a*b^2 + a*b", "a^2*b + a*b^2"},
        {"a*b/c + a*b + d/a + d", "a*b + d"},
        {"floor(a/8) + b*a - 1", "a*b"},
        {"a*z + a", "a*z + a"},
        {"(a^2 + a)/(b + 1)", "a^2/(b + 1)"},
        {"0", "0"},
    };
    int64_t other;
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        etch_sym *sym = new_context(arena);
        etch_expr dominant = etch_dominant(sym, parse(sym, pairs[i].text));
        ck_assert_msg(dominant == parse(sym, pairs[i].expected), "%s: %s", pairs[i].text,
                      etch_expr_text(sym, dominant));
    }
    etch_sym *sym = new_context(arena);
    ck_assert_int_eq(etch_assume_at_least(sym, parse(sym, "b"), parse(sym, "a"), 0, &other), ETCH_OK);
    ck_assert_ptr_eq(etch_dominant(sym, parse(sym, "3*a*c + b*c + 5*a")), parse(sym, "b*c"));
}

/* ---- collecting ---------------------------------------------------------------------------------------- */

/* Is it a product of powers of the variables a and c? */
static bool is_monomial_in_a_and_c(etch_sym *sym, etch_expr e)
{
    const etch_expr *vars;
    uint32_t count = etch_vars_of(sym, e, &vars);
    for (uint32_t i = 0; i < count; i++)
        if (vars[i] != etch_var(sym, "a") && vars[i] != etch_var(sym, "c"))
            return false;
    return strpbrk(etch_expr_text(sym, e), "+-") == NULL;
}

static void check_parts(etch_arena *arena, etch_sym *sym, const tree *t, const chance *c)
{
    etch_expr vars[] = {etch_var(sym, "a"), etch_var(sym, "c")}, e = tree_build(sym, t),
              sum = etch_int(sym, 0);
    etch_collected *parts;
    uint32_t count = etch_collect(sym, e, 2, vars, &parts);
    for (uint32_t i = 0; i < count; i++) {
        CHANCE_ASSERT(c, is_monomial_in_a_and_c(sym, parts[i].mono), "%s: by %s", tree_str(arena, t),
                      etch_expr_text(sym, parts[i].mono));
        for (uint32_t k = 0; k < i; k++)
            CHANCE_ASSERT(c, parts[i].mono != parts[k].mono, "%s: twice by %s", tree_str(arena, t),
                          etch_expr_text(sym, parts[i].mono));
        sum = etch_add(sym, sum, etch_mul(sym, parts[i].coef, parts[i].mono));
    }
    CHANCE_ASSERT(c, !e || sum == e, "%s is collected as %s", tree_str(arena, t), etch_expr_text(sym, sum));
}

static void parts_add_up(etch_arena *arena)
{
    static const tree_shape shapes[] = {
        {"+-**^N", "", 5, 5, 9}, {"+-*/", "(((a2", 4, 4, 5}, {"+-*/fq%MAP", "abc2(", 5, 4, 9}};
    chance c = chance_new(75);
    for (uint32_t i = 0; i < chance_runs(600); i++) {
        etch_arena *own = etch_arena_new(etch_arena_mem(arena));
        check_parts(own, new_context(own), tree_random(own, &c, &shapes[i % 3]), &c);
        etch_arena_free(own);
    }
}

static void parts_are_in_order(etch_arena *arena)
{
    etch_sym *sym = new_context(arena);
    etch_expr vars[] = {etch_var(sym, "c"), etch_var(sym, "a")};
    etch_collected *parts;
    uint32_t count =
        etch_collect(sym, parse(sym, "3*b + 2*a*b + c*a*d + c^2/b + a*7 + floor(a/8)"), 2, vars, &parts);
    static const text_pair expected[] = {
        {"a*c", "d"}, {"c^2", "1/b"}, {"a", "2*b + 7"}, {"1", "3*b + floor(a/8)"}};
    ck_assert_uint_eq(count, 4);
    for (uint32_t i = 0; i < count; i++) {
        ck_assert_str_eq(etch_expr_text(sym, parts[i].mono), expected[i].text);
        ck_assert_str_eq(etch_expr_text(sym, parts[i].coef), expected[i].expected);
    }
    ck_assert_uint_eq(etch_collect(sym, parse(sym, "0"), 2, vars, &parts), 0);
    ck_assert_uint_eq(etch_collect(sym, NULL, 2, vars, &parts), 0);
}

PROPERTY(polynomials_have_exact_slopes)
PROPERTY(maxima_have_exact_slopes)
PROPERTY(quotients_follow_the_rule)
PROPERTY(slopes_are_as_expected)
PROPERTY(what_has_no_slope)
PROPERTY(floors_are_relaxed)
PROPERTY(growth_is_as_expected)
PROPERTY(what_has_no_degree)
PROPERTY(leading_terms_lead)
PROPERTY(dominated_terms_are_dropped)
PROPERTY(parts_add_up)
PROPERTY(parts_are_in_order)

Suite *etch_suite(void)
{
    Suite *suite = suite_create("calculus");
    ETCH_ADD_TESTS(suite, test_polynomials_have_exact_slopes, test_maxima_have_exact_slopes,
                   test_quotients_follow_the_rule, test_slopes_are_as_expected, test_what_has_no_slope,
                   test_floors_are_relaxed, test_growth_is_as_expected, test_what_has_no_degree,
                   test_leading_terms_lead, test_dominated_terms_are_dropped, test_parts_add_up,
                   test_parts_are_in_order);
    return suite;
}
