/* How expressions move as a variable grows: what is said of random ones holds for all values that are tried,
 * and roots are where the sign turns. What costs are made of is decided. */
#include "oracle.h"

#include <string.h>

static etch_sym *new_context(etch_arena *arena)
{
    etch_sym *sym = etch_sym_new(arena);
    declare_vars(sym, NULL);
    return sym;
}

static etch_expr parse(etch_sym *sym, const char *text)
{
    size_t at;
    etch_expr value = etch_expr_parse(sym, text, strlen(text), &at);
    ck_assert_ptr_nonnull(value);
    return value;
}

/* Values of a tree for a = 1, 2, ..., the other variables held: the order of each with the one before. */
static void check_trend(const tree *t, etch_trend trend, chance *c, const char *text)
{
    enum { STEPS = 24 };
    point p;
    mpq_t before, now, one;
    point_init(&p);
    mpq_inits(before, now, one, NULL);
    mpq_set_ui(one, 1, 1);
    point_random(&p, c, 9);
    mpq_set_ui(p.at[0], 1, 1);
    bool defined = tree_value(t, &p, before);
    for (int i = 0; i < STEPS; i++) {
        mpq_add(p.at[0], p.at[0], one);
        const bool also = tree_value(t, &p, now);
        const int order = defined && also ? mpq_cmp(now, before) : 0;
        ck_assert_msg(trend != ETCH_TREND_CONSTANT || order == 0, "constant: %s", text);
        ck_assert_msg(trend != ETCH_TREND_RISING || order >= 0, "rising: %s", text);
        ck_assert_msg(trend != ETCH_TREND_FALLING || order <= 0, "falling: %s", text);
        mpq_set(before, now);
        defined = also;
    }
    mpq_clears(before, now, one, NULL);
    point_clear(&p);
}

static void trends_hold(etch_arena *arena)
{
    chance c = chance_new(71);
    const tree_shape shapes[] = {{"++**-MMmf", "ab2", 3, 4, 6},
                                 {"+*-M/qcf", "abc3", 3, 4, 9},
                                 {"+-MmMmN", "", 2, 5, 20},
                                 {"+*^/", "ab", 2, 3, 4}};
    uint32_t known = 0, runs = chance_runs(3000);
    for (uint32_t i = 0; i < runs; i++) {
        etch_arena *scratch = etch_arena_new(etch_arena_mem(arena));
        etch_sym *sym = new_context(scratch);
        const tree *t = tree_random(scratch, &c, &shapes[i % 4]);
        etch_expr built = tree_build(sym, t);
        const etch_trend trend = built ? etch_trend_of(sym, built, etch_var(sym, "a")) : ETCH_TREND_UNKNOWN;
        known += trend == ETCH_TREND_RISING || trend == ETCH_TREND_FALLING;
        for (int k = 0; k < 4 && trend != ETCH_TREND_UNKNOWN; k++)
            check_trend(t, trend, &c, tree_str(scratch, t));
        etch_arena_free(scratch);
    }
    ck_assert_uint_gt(known, runs / 10);
}

static void roots_are_where_signs_turn(etch_arena *arena)
{
    chance c = chance_new(72);
    const tree_shape shapes[] = {{"++*-", "2", 2, 3, 9}, {"++*-/", "ab(", 2, 3, 9}};
    uint32_t known = 0, runs = chance_runs(2000);
    mpq_t value;
    mpq_init(value);
    for (uint32_t i = 0; i < runs; i++) {
        etch_arena *scratch = etch_arena_new(etch_arena_mem(arena));
        etch_sym *sym = new_context(scratch);
        const tree *t = tree_random(scratch, &c, &shapes[i % 2]);
        etch_expr built = tree_build(sym, t), root, a = etch_var(sym, "a"), b = etch_var(sym, "b");
        const etch_trend trend = built ? etch_linear_root(sym, built, a, &root) : ETCH_TREND_UNKNOWN;
        for (int64_t at = 1; at < 30 && (trend == ETCH_TREND_RISING || trend == ETCH_TREND_FALLING); at++) {
            etch_expr three = etch_int(sym, 3), place = etch_subst(sym, root, 1, &b, &three);
            const int side = etch_constant_compare(sym, etch_int(sym, at), place);
            point p;
            point_init(&p);
            point_random(&p, &c, 5);
            mpq_set_si(p.at[0], (long)at, 1);
            mpq_set_si(p.at[1], 3, 1);
            if (tree_value(t, &p, value))
                ck_assert_int_eq(mpq_sgn(value), trend == ETCH_TREND_RISING ? side : -side);
            point_clear(&p);
        }
        known += trend == ETCH_TREND_RISING || trend == ETCH_TREND_FALLING;
        etch_arena_free(scratch);
    }
    mpq_clear(value);
    ck_assert_uint_gt(known, runs / 20);
}

static void what_costs_are_made_of_is_decided(etch_arena *arena)
{
    static const struct {
        const char *text;
        etch_trend trend;
    } cases[] = {{"3*a + 7*b", ETCH_TREND_RISING},
                 {"a^2 - a", ETCH_TREND_RISING},
                 {"b/a + 4", ETCH_TREND_FALLING},
                 {"max(3*a + 100, 5*a + b, 7)", ETCH_TREND_RISING},
                 {"10*a - max(a, 3*a - 20)", ETCH_TREND_RISING},
                 {"floor(a/8) + max(a, b)", ETCH_TREND_RISING},
                 {"-2*floor(a/8) - a", ETCH_TREND_FALLING},
                 {"5*b", ETCH_TREND_CONSTANT},
                 {"a + 10/a", ETCH_TREND_UNKNOWN},
                 {"a - 2*floor(a/2)", ETCH_TREND_UNKNOWN},
                 {"(a - 5)^2", ETCH_TREND_UNKNOWN},
                 {"max(20 - a, a)", ETCH_TREND_UNKNOWN}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        etch_sym *sym = new_context(arena);
        ck_assert_msg(etch_trend_of(sym, parse(sym, cases[i].text), etch_var(sym, "a")) == cases[i].trend,
                      "%s", cases[i].text);
    }
}

PROPERTY(trends_hold)
PROPERTY(roots_are_where_signs_turn)
PROPERTY(what_costs_are_made_of_is_decided)

Suite *etch_suite(void)
{
    Suite *suite = suite_create("trend");
    ETCH_ADD_TESTS(suite, test_trends_hold, test_roots_are_where_signs_turn,
                   test_what_costs_are_made_of_is_decided);
    return suite;
}
