/* Sums over an index: their values against sums that are added up, and when two of them are one
 * expression. */
#include "oracle.h"

#include <stdio.h>
#include <string.h>

static etch_expr parse(etch_sym *sym, const char *text)
{
    size_t at;
    return etch_expr_parse(sym, text, strlen(text), &at);
}

/* In `text` the name "e" is the index of this level. */
static etch_expr sum_of(etch_sym *sym, uint32_t level, etch_expr low, etch_expr high, const tree *body)
{
    etch_expr vars[VARS];
    for (uint32_t i = 0; i < VARS; i++)
        vars[i] = etch_var(sym, var_names[i]);
    vars[4] = etch_index(sym, level);
    return etch_sum_over(sym, vars[4], low, high, tree_build_with(sym, body, vars));
}

/* ---- values -------------------------------------------------------------------------------------------- */

/* The sum of the tree over the integers e from low to high; false where a term is undefined. */
static bool added_up(const tree *body, point *p, const mpq_t low, const mpq_t high, mpq_t sum)
{
    mpq_t term;
    mpz_t first, last;
    mpq_init(term);
    mpz_inits(first, last, NULL);
    mpz_cdiv_q(first, mpq_numref(low), mpq_denref(low));
    mpz_fdiv_q(last, mpq_numref(high), mpq_denref(high));
    mpq_set_ui(sum, 0, 1);
    bool defined = true;
    for (; defined && mpz_cmp(first, last) <= 0; mpz_add_ui(first, first, 1)) {
        mpq_set_z(p->at[4], first);
        defined = tree_value(body, p, term);
        mpq_add(sum, sum, term);
    }
    mpz_clears(first, last, NULL);
    mpq_clear(term);
    return defined;
}

static void sums_have_the_value(etch_arena *arena, uint64_t seed, const tree_shape *bodies,
                                const tree_shape *bounds, uint32_t runs)
{
    enum { POINTS = 5 };
    chance c = chance_new(seed);
    point p;
    mpq_t low, high, expected, found;
    uint32_t compared = 0;
    point_init(&p);
    mpq_inits(low, high, expected, found, NULL);
    for (uint32_t i = 0; i < chance_runs(runs); i++) {
        etch_arena *own = etch_arena_new(etch_arena_mem(arena));
        etch_sym *sym = etch_sym_new(own);
        declare_vars(sym, &c);
        tree *from = tree_random(own, &c, bounds), *to = tree_random(own, &c, bounds);
        tree *body = tree_random(own, &c, bodies);
        etch_expr sum = sum_of(sym, 0, tree_build(sym, from), tree_build(sym, to), body);
        for (uint32_t k = 0; k < POINTS; k++) {
            point_random(&p, &c, 8);
            if (!tree_value(from, &p, low) || !tree_value(to, &p, high))
                continue;
            if (!added_up(body, &p, low, high, expected))
                continue;
            bool defined = sum && expr_value(sym, sum, &p, found);
            /* an undefined expression says nothing of an empty sum */
            CHANCE_ASSERT(&c, defined ? mpq_equal(expected, found) : mpq_cmp(low, high) > 0 || !sum,
                          "sum of %s for e from %s to %s at %s", tree_str(own, body), tree_str(own, from),
                          tree_str(own, to), point_str(own, &p));
            compared += defined;
        }
        etch_arena_free(own);
    }
    ck_assert_uint_gt(compared, chance_runs(runs) * POINTS / 2);
    mpq_clears(low, high, expected, found, NULL);
    point_clear(&p);
}

static const tree_shape linear = {"+-N", "", 3, 2, 6};

static void polynomials(etch_arena *arena)
{
    sums_have_the_value(arena, 41, &(tree_shape){"+-**^N", "", 5, 4, 9}, &linear, 500);
}

static void functions(etch_arena *arena)
{
    sums_have_the_value(arena, 42, &(tree_shape){"+-*fcq%MmP", "abc235", 5, 4, 9}, &linear, 500);
}

static void fractions(etch_arena *arena)
{
    sums_have_the_value(arena, 43, &(tree_shape){"+-*/q", "ab(2", 5, 3, 9}, &linear, 400);
}

static void uneven_bounds(etch_arena *arena)
{
    sums_have_the_value(arena, 44, &(tree_shape){"+-*qMA", "ab3", 5, 3, 9},
                        &(tree_shape){"+-/qm", "ab23", 4, 2, 9}, 400);
}

/* ---- one expression ------------------------------------------------------------------------------------ */

static void expect_same(etch_sym *sym, etch_expr a, etch_expr b, const char *what)
{
    ck_assert_msg(a && a == b, "%s: %s is not %s", what, etch_expr_text(sym, a), etch_expr_text(sym, b));
}

/* Floors of what differs by an integer have more than one form; they are never said to be different. */
typedef struct sameness {
    uint32_t asked, same;
} sameness;

static void note_sameness(etch_sym *sym, chance *c, sameness *s, etch_expr a, etch_expr b, const char *what)
{
    s->asked++;
    s->same += a == b;
    CHANCE_ASSERT(c, a == b || etch_equal(sym, a, b, NULL) != ETCH_NO, "%s: %s is not %s", what,
                  etch_expr_text(sym, a), etch_expr_text(sym, b));
}

static void equal_sums_are_one_expression(etch_arena *arena)
{
    static const tree_shape bodies = {"+-*", "", 5, 3, 9};
    chance c = chance_new(45);
    sameness shifts = {0, 0}, sums = {0, 0};
    for (uint32_t i = 0; i < chance_runs(300); i++) {
        etch_arena *own = etch_arena_new(etch_arena_mem(arena));
        etch_sym *sym = etch_sym_new(own);
        declare_vars(sym, &c);
        etch_expr low = tree_build(sym, tree_random(own, &c, &linear));
        etch_expr high = tree_build(sym, tree_random(own, &c, &linear)), one = etch_int(sym, 1);
        tree *f = tree_random(own, &c, &bodies), *g = tree_random(own, &c, &bodies);
        tree divisor = {.op = 'v', .num = (int64_t)chance_below(&c, 4), .den = 1};
        tree quotient = {.op = chance_below(&c, 2) ? 'q' : '%', .a = f, .b = &divisor};
        f = &quotient;
        etch_expr sum = sum_of(sym, 0, low, high, f);
        if (!sum)
            continue;
        expect_same(sym, sum, sum_of(sym, 3, low, high, f), "the name of the index");
        /* e - 1 from low + 1 to high + 1 */
        etch_expr vars[VARS], index = etch_index(sym, 1);
        for (uint32_t k = 0; k < VARS; k++)
            vars[k] = etch_var(sym, var_names[k]);
        vars[4] = etch_sub(sym, index, one);
        etch_expr shifted = tree_build_with(sym, f, vars);
        note_sameness(sym, &c, &shifts, sum,
                      etch_sum_over(sym, index, etch_add(sym, low, one), etch_add(sym, high, one), shifted),
                      "where the index begins");
        const tree both = {.op = '+', .a = f, .b = g};
        etch_expr other = sum_of(sym, 0, low, high, g);
        if (other)
            note_sameness(sym, &c, &sums, etch_add(sym, sum, other), sum_of(sym, 0, low, high, &both),
                          "sums are linear");
        etch_arena_free(own);
    }
    ck_assert_uint_ge(shifts.same * 10, shifts.asked * 9);
    ck_assert_uint_ge(sums.same * 10, sums.asked * 9);
}

static void closed_forms(etch_arena *arena)
{
    static const char *const forms[] = {"n", "n*(n - 1)/2", "n*(n - 1)*(2*n - 1)/6", "n^2*(n - 1)^2/4",
                                        "n*(n - 1)*(2*n - 1)*(3*n^2 - 3*n - 1)/30"};
    etch_sym *sym = etch_sym_new(arena);
    etch_expr n = etch_var(sym, "n"), i = etch_index(sym, 0), zero = etch_int(sym, 0);
    for (int64_t k = 0; k < 5; k++)
        expect_same(sym, etch_sum_over(sym, i, zero, etch_sub(sym, n, etch_int(sym, 1)), etch_pow(sym, i, k)),
                    parse(sym, forms[k]), forms[k]);
    /* causal attention: position i sees i + 1 others */
    etch_expr S = etch_var(sym, "S"), one = etch_int(sym, 1);
    expect_same(sym, etch_sum_over(sym, i, one, S, i), parse(sym, "S*(S + 1)/2"), "a triangle");
    /* pairs i < j < S */
    etch_expr j = etch_index(sym, 1), last = etch_sub(sym, S, one);
    etch_expr inner = etch_sum_over(sym, i, zero, etch_sub(sym, j, one), one);
    expect_same(sym, etch_sum_over(sym, j, zero, last, inner), parse(sym, "S*(S - 1)/2"), "pairs");
    /* nothing to sum */
    ck_assert(etch_is_zero(etch_sum_over(sym, i, S, zero, i)));
    /* a sum that is empty for small a */
    etch_expr a = etch_var(sym, "a");
    etch_expr some = etch_sum_over(sym, i, etch_int(sym, 5), a, one);
    expect_same(sym, some, parse(sym, "max(a - 4, 0)"), "as many as there are");
    ck_assert_ptr_null(etch_sum_over(sym, a, zero, S, a));
    ck_assert_ptr_null(etch_sum_over(sym, i, zero, S, NULL));
}

/* sum over i < n of floor((i + shift)/t), times `factor` */
static etch_expr floors(etch_sym *sym, etch_expr n, const char *shift, const char *t)
{
    etch_expr i = etch_index(sym, 0), zero = etch_int(sym, 0);
    etch_expr body = etch_floor_div(sym, etch_add(sym, i, parse(sym, shift)), parse(sym, t));
    return etch_sum_over(sym, i, zero, etch_sub(sym, n, etch_int(sym, 1)), body);
}

static void nested_sums_do_not_capture(etch_arena *arena)
{
    etch_sym *sym = etch_sym_new(arena);
    etch_expr n = etch_var(sym, "n"), t = etch_var(sym, "t"), a = etch_var(sym, "a"), zero = etch_int(sym, 0);
    etch_expr i = etch_index(sym, 0), j = etch_index(sym, 1), one = etch_int(sym, 1);
    etch_expr last = etch_sub(sym, n, one);
    /* sum over j < n of sum over i < n of floor((i + a*j)/t): i and j take part differently */
    etch_expr inside = etch_floor_div(sym, etch_add(sym, i, etch_mul(sym, a, j)), t);
    etch_expr inner = etch_sum_over(sym, i, zero, last, inside);
    etch_expr sum = etch_sum_over(sym, j, zero, last, inner);
    etch_expr vars[] = {n, t, a};
    for (int64_t k = 1; k < 200; k++) {
        int64_t values[] = {1 + k % 9, 1 + k % 5, 1 + k % 7}, expected = 0;
        for (int64_t y = 0; y < values[0]; y++)
            for (int64_t x = 0; x < values[0]; x++)
                expected += (x + values[2] * y) / values[1];
        etch_expr given[] = {etch_int(sym, values[0]), etch_int(sym, values[1]), etch_int(sym, values[2])};
        ck_assert_ptr_eq(etch_subst(sym, sum, 3, vars, given), etch_int(sym, expected));
        /* one variable after the other */
        etch_expr e = etch_subst(sym, sum, 1, &vars[k % 3], &given[k % 3]);
        e = etch_subst(sym, e, 1, &vars[(k + 1) % 3], &given[(k + 1) % 3]);
        ck_assert_ptr_eq(etch_subst(sym, e, 3, vars, given), etch_int(sym, expected));
    }
    /* a sum in place of a variable inside another */
    etch_expr other = floors(sym, n, "0", "t");
    etch_expr replaced = etch_subst(sym, sum, 1, &a, &other);
    etch_expr by_hand = etch_floor_div(sym, etch_add(sym, i, etch_mul(sym, other, j)), t);
    by_hand = etch_sum_over(sym, j, zero, last, etch_sum_over(sym, i, zero, last, by_hand));
    expect_same(sym, replaced, by_hand, "a sum inside a sum");
    const etch_expr *found;
    ck_assert_uint_eq(etch_vars_of(sym, sum, &found), 3);
}

/* ---- questions ----------------------------------------------------------------------------------------- */

static void sums_take_part_in_proofs(etch_arena *arena)
{
    etch_sym *sym = etch_sym_new(arena);
    etch_expr S = etch_var(sym, "S"), W = etch_var(sym, "W"), i = etch_index(sym, 0), one = etch_int(sym, 1);
    etch_expr t = etch_var(sym, "t"), last = etch_sub(sym, S, one), zero = etch_int(sym, 0);
    etch_expr rounded = floors(sym, S, "0", "t");
    ck_assert_int_eq(etch_at_least(sym, rounded, zero, NULL), ETCH_YES);
    ck_assert_int_eq(etch_at_least(sym, parse(sym, "S*(S - 1)/(2*t)"), rounded, NULL), ETCH_YES);
    ck_assert_int_eq(etch_at_least(sym, floors(sym, S, "1", "t"), rounded, NULL), ETCH_YES);
    ck_assert_int_eq(etch_is_integer(sym, rounded, NULL), ETCH_YES);
    /* a sliding window sees at most W */
    etch_expr window = etch_sum_over(sym, i, zero, last, etch_min(sym, etch_add(sym, i, one), W));
    ck_assert_int_eq(etch_at_least(sym, etch_mul(sym, S, W), window, NULL), ETCH_YES);
    ck_assert_int_eq(etch_at_least(sym, parse(sym, "S*(S + 1)/2"), window, NULL), ETCH_YES);
    /* remainders */
    etch_expr rest = etch_sum_over(sym, i, zero, last, etch_mod(sym, i, t));
    ck_assert_int_eq(etch_at_least(sym, rest, zero, NULL), ETCH_YES);
    ck_assert_int_eq(
        etch_equal(sym, rest, etch_sub(sym, parse(sym, "S*(S - 1)/2"), etch_mul(sym, t, rounded)), NULL),
        ETCH_YES);
    /* no: with values that say so */
    etch_witness witness;
    ck_assert_int_eq(etch_at_least(sym, rounded, S, &witness), ETCH_NO);
    ck_assert_uint_eq(witness.count, 2);
    etch_expr left = etch_subst(sym, rounded, witness.count, witness.vars, witness.values);
    etch_expr right = etch_subst(sym, S, witness.count, witness.vars, witness.values);
    ck_assert_int_lt(etch_constant_compare(sym, left, right), 0);
    ck_assert_int_eq(etch_equal(sym, rounded, floors(sym, S, "1", "t"), &witness), ETCH_NO);
}

/* A sum against something else: sum of `body` for e from low to high, and `other`. */
typedef struct comparison {
    tree *low, *high, *body, *other;
} comparison;

/* Is the sum at least the other side there? -1: a side is undefined. */
static int at_least_there(const comparison *s, point *p)
{
    mpq_t low, high, sum, other;
    mpq_inits(low, high, sum, other, NULL);
    bool defined = tree_value(s->low, p, low) && tree_value(s->high, p, high) &&
                   tree_value(s->other, p, other) && added_up(s->body, p, low, high, sum);
    int result = !defined ? -1 : mpq_cmp(sum, other) >= 0;
    mpq_clears(low, high, sum, other, NULL);
    return result;
}

/* The values of the witness; variables that it leaves out may have any. */
static void point_of(etch_sym *sym, const etch_witness *witness, point *p)
{
    for (uint32_t i = 0; i < witness->count; i++)
        for (uint32_t v = 0; v < VARS; v++)
            if (witness->vars[i] == etch_var(sym, var_names[v]))
                constant_value(sym, witness->values[i], p->at[v]);
}

static void answers_about_sums_are_right(etch_arena *arena)
{
    static const tree_shape bodies = {"++*q%fMmP", "ab23", 5, 3, 5}, others = {"+-*q", "ab2", 4, 2, 9};
    enum { POINTS = 25 };
    chance c = chance_new(46);
    tree zero = {.op = '#', .num = 0, .den = 1};
    point p;
    uint32_t yes = 0, no = 0, asked = 0;
    point_init(&p);
    for (uint32_t i = 0; i < chance_runs(600); i++) {
        etch_arena *own = etch_arena_new(etch_arena_mem(arena));
        etch_sym *sym = etch_sym_new(own);
        declare_vars(sym, &c);
        comparison s = {tree_random(own, &c, &linear), tree_random(own, &c, &linear),
                        tree_random(own, &c, &bodies), tree_random(own, &c, &others)};
        if (chance_below(&c, 3) == 0)
            s.other = &zero;
        etch_expr sum = sum_of(sym, 0, tree_build(sym, s.low), tree_build(sym, s.high), s.body);
        etch_witness witness;
        etch_truth answer = etch_at_least(sym, sum, tree_build(sym, s.other), &witness);
        const char *what = etch_text(own, "sum of %s for e from %s to %s >= %s", tree_str(own, s.body),
                                     tree_str(own, s.low), tree_str(own, s.high), tree_str(own, s.other));
        for (int k = 0; answer == ETCH_YES && k < POINTS; k++) {
            point_random(&p, &c, k % 2 ? 4 : 15);
            CHANCE_ASSERT(&c, at_least_there(&s, &p) != 0, "%s was said to hold, not at %s", what,
                          point_str(own, &p));
        }
        point_random(&p, &c, 5);
        if (answer == ETCH_NO)
            point_of(sym, &witness, &p);
        CHANCE_ASSERT(&c, answer != ETCH_NO || at_least_there(&s, &p) == 0, "%s is not refuted by %s", what,
                      point_str(own, &p));
        asked++;
        yes += answer == ETCH_YES;
        no += answer == ETCH_NO;
        etch_arena_free(own);
    }
    printf("%u statements about sums: %u yes, %u no\n", asked, yes, no);
    ck_assert_uint_gt(yes, asked / 20);
    ck_assert_uint_gt(no, asked / 5);
    point_clear(&p);
}

/* ---- limits -------------------------------------------------------------------------------------------- */

static void large_counts(etch_arena *arena)
{
    etch_sym *sym = etch_sym_new(arena);
    etch_expr n = etch_var(sym, "n"), sum = floors(sym, n, "0", "1000");
    etch_expr count = etch_int(sym, 100000), power = parse(sym, "10^40");
    ck_assert_ptr_eq(etch_subst(sym, sum, 1, &n, &count), parse(sym, "1000*99*50"));
    etch_expr i = etch_index(sym, 0);
    etch_expr triangle = etch_sum_over(sym, i, etch_int(sym, 1), n, i);
    ck_assert_ptr_eq(etch_subst(sym, triangle, 1, &n, &power), parse(sym, "10^40*(10^40 + 1)/2"));
}

static etch_status add_too_many(void *data)
{
    etch_sym *sym = data;
    etch_expr n = etch_var(sym, "n"), count = parse(sym, "10^12");
    etch_expr sum = floors(sym, n, "0", "7");
    return etch_subst(sym, sum, 1, &n, &count) ? ETCH_OK : ETCH_EUNKNOWN;
}

static void too_large_counts(etch_arena *arena)
{
    etch_sym *sym = etch_sym_new(arena);
    ck_assert_int_eq(etch_guard(etch_arena_mem(arena), add_too_many, sym), ETCH_ELIMIT);
}

#define CASE(name)             \
    START_TEST(test_##name)    \
    {                          \
        etch_with_arena(name); \
    }                          \
    END_TEST

CASE(polynomials)
CASE(functions)
CASE(fractions)
CASE(uneven_bounds)
CASE(equal_sums_are_one_expression)
CASE(closed_forms)
CASE(nested_sums_do_not_capture)
CASE(sums_take_part_in_proofs)
CASE(answers_about_sums_are_right)
CASE(large_counts)
CASE(too_large_counts)

Suite *etch_suite(void)
{
    Suite *suite = suite_create("sums");
    ETCH_ADD_TESTS(suite, test_polynomials, test_functions, test_fractions, test_uneven_bounds,
                   test_equal_sums_are_one_expression, test_closed_forms, test_nested_sums_do_not_capture,
                   test_sums_take_part_in_proofs, test_answers_about_sums_are_right, test_large_counts,
                   test_too_large_counts);
    return suite;
}
