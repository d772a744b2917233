/* Substitution against the oracle: replacing variables and then evaluating is evaluating with the replaced
 * values. */
#include "oracle.h"

#include <stdio.h>
#include <string.h>

static etch_expr parse(etch_sym *sym, const char *text)
{
    size_t at;
    return etch_expr_parse(sym, text, strlen(text), &at);
}

/* A sum or product of positive integers: a value that a variable may have. */
static tree *positive_tree(etch_arena *arena, chance *c, uint32_t depth)
{
    tree *t = ETCH_NEW(arena, tree);
    if (depth == 0 || chance_below(c, 3) == 0) {
        bool var = chance_below(c, 3) != 0;
        *t = (tree){.op = var ? 'v' : '#',
                    .num = var ? (int64_t)chance_below(c, 5) : 1 + (int64_t)chance_below(c, 9),
                    .den = 1};
        return t;
    }
    *t = (tree){.op = "+*M"[chance_below(c, 3)], .den = 1};
    t->a = positive_tree(arena, c, depth - 1);
    t->b = positive_tree(arena, c, depth - 1);
    return t;
}

static void substitution_is_composition(etch_arena *arena)
{
    enum { REPLACED = 3, POINTS = 4 };
    static const tree_shape shape = {"+-*/^fcq%MmAP", "abcde234(", 8, 4, 7};
    chance c = chance_new(41);
    point p, inner;
    mpq_t expected, found;
    point_init(&p);
    point_init(&inner);
    mpq_inits(expected, found, NULL);
    for (uint32_t i = 0; i < chance_runs(2000); i++) {
        etch_arena *own = etch_arena_new(etch_arena_mem(arena));
        etch_sym *sym = etch_sym_new(own);
        declare_vars(sym, &c);
        tree *t = tree_random(own, &c, &shape), *by[REPLACED];
        etch_expr vars[REPLACED], values[REPLACED];
        for (uint32_t k = 0; k < REPLACED; k++) {
            by[k] = positive_tree(own, &c, 2);
            vars[k] = etch_var(sym, var_names[k]);
            values[k] = tree_build(sym, by[k]);
        }
        etch_expr replaced = etch_subst(sym, tree_build(sym, t), REPLACED, vars, values);
        for (uint32_t n = 0; n < POINTS; n++) {
            point_random(&p, &c, 12);
            for (uint32_t v = 0; v < VARS; v++)
                mpq_set(inner.at[v], p.at[v]);
            for (uint32_t k = 0; k < REPLACED; k++)
                ck_assert(tree_value(by[k], &p, inner.at[k]));
            if (!tree_value(t, &inner, expected))
                continue;
            bool defined = replaced && expr_value(sym, replaced, &p, found);
            CHANCE_ASSERT(&c, defined && mpq_equal(expected, found),
                          "%s with a = %s, b = %s, c = %s is %s, at %s", tree_str(own, t),
                          tree_str(own, by[0]), tree_str(own, by[1]), tree_str(own, by[2]),
                          etch_expr_text(sym, replaced), point_str(own, &p));
        }
        etch_arena_free(own);
    }
    mpq_clears(expected, found, NULL);
    point_clear(&p);
    point_clear(&inner);
}

/* Constants for some variables now and for the rest later: the same as all at once. */
static void steps_commute(etch_arena *arena)
{
    static const tree_shape shape = {"+-*/fcq%MmAP", "abcde234(", 5, 4, 7};
    chance c = chance_new(42);
    for (uint32_t i = 0; i < chance_runs(1500); i++) {
        etch_arena *own = etch_arena_new(etch_arena_mem(arena));
        etch_sym *sym = etch_sym_new(own);
        declare_vars(sym, &c);
        tree *t = tree_random(own, &c, &shape);
        etch_expr e = tree_build(sym, t), vars[5], values[5];
        for (uint32_t v = 0; v < 5; v++) {
            vars[v] = etch_var(sym, var_names[v]);
            values[v] = etch_int(sym, 1 + (int64_t)chance_below(&c, 20));
        }
        etch_expr at_once = etch_subst(sym, e, 5, vars, values);
        uint32_t first = (uint32_t)chance_below(&c, 6);
        etch_expr some = etch_subst(sym, e, first, vars, values);
        etch_expr in_steps = etch_subst(sym, some, 5 - first, vars + first, values + first);
        /* simplification between the steps may remove an undefined part, never change a value */
        CHANCE_ASSERT(&c, !at_once || at_once == in_steps, "%s: %s at once, %s in steps", tree_str(own, t),
                      etch_expr_text(sym, at_once), etch_expr_text(sym, in_steps));
        etch_arena_free(own);
    }
}

static etch_expr subst_text(etch_sym *sym, const char *expr, const char *const *pairs, uint32_t count)
{
    etch_expr vars[4], values[4];
    for (uint32_t i = 0; i < count; i++) {
        vars[i] = parse(sym, pairs[2 * i]);
        values[i] = parse(sym, pairs[2 * i + 1]);
    }
    return etch_subst(sym, parse(sym, expr), count, vars, values);
}

#define SUBST(sym, expr, ...)                                 \
    subst_text(sym, expr, (const char *const[]){__VA_ARGS__}, \
               sizeof((const char *const[]){__VA_ARGS__}) / sizeof(const char *) / 2)

static void special_cases(etch_arena *arena)
{
    etch_sym *sym = etch_sym_new(arena);
    ck_assert_ptr_eq(SUBST(sym, "a^2 - b", "a", "b", "b", "a"), parse(sym, "b^2 - a"));
    ck_assert_ptr_eq(SUBST(sym, "a + b", "c", "5"), parse(sym, "a + b"));
    ck_assert_ptr_eq(SUBST(sym, "floor(a/b) + a % b", "a", "b*c"), parse(sym, "c"));
    ck_assert_ptr_eq(SUBST(sym, "max(a, b)", "a", "b + 1"), parse(sym, "b + 1"));
    ck_assert_ptr_eq(SUBST(sym, "floor(floor(a/b)/c)", "c", "2"), parse(sym, "floor(a/(2*b))"));
    ck_assert_ptr_eq(SUBST(sym, "1/(a + b)", "a", "c - b"), parse(sym, "1/c"));
    ck_assert_ptr_null(SUBST(sym, "1/(a - b)", "a", "b"));
    ck_assert_ptr_null(SUBST(sym, "c/a", "a", "0"));
    ck_assert_ptr_null(SUBST(sym, "floor(c/(a - 1)) + d", "a", "1"));
    ck_assert_ptr_null(SUBST(sym, "max(c/(a - 1), d)", "a", "1"));
    ck_assert_ptr_eq(SUBST(sym, "a*b", "a", "0"), etch_int(sym, 0));
    ck_assert_ptr_eq(SUBST(sym, "2*a^62", "a", "2"), parse(sym, "2^63"));
    ck_assert_ptr_eq(SUBST(sym, "a^20*b^20", "a", "10^9", "b", "10^9"), parse(sym, "10^360"));
    ck_assert_ptr_eq(SUBST(sym, "a/3", "a", "1"), parse(sym, "1/3"));
    etch_expr undefined = etch_div(sym, etch_int(sym, 1), etch_int(sym, 0)), a = etch_var(sym, "a");
    ck_assert_ptr_null(etch_subst(sym, a, 1, &a, &undefined));
}

/* A value for a variable that an equality replaced. */
static void replaced_variables(etch_arena *arena)
{
    etch_sym *sym = etch_sym_new(arena);
    etch_expr old = parse(sym, "h*a + d");
    int64_t other;
    ck_assert_int_eq(etch_assume_equal(sym, parse(sym, "h"), parse(sym, "a*d"), 0, &other), ETCH_OK);
    /* d, declared last, is h/a */
    ck_assert_ptr_eq(SUBST(sym, "d", "h", "64", "a", "8"), etch_int(sym, 8));
    etch_expr vars[] = {parse(sym, "h"), etch_var(sym, "a"), etch_var(sym, "d")};
    etch_expr values[] = {etch_int(sym, 64), etch_int(sym, 8), etch_int(sym, 8)};
    ck_assert_ptr_eq(etch_subst(sym, old, 3, vars, values), etch_int(sym, 520));
    ck_assert_ptr_eq(etch_subst(sym, old, 2, vars, values), etch_int(sym, 520));
}

#define CASE(name, function)       \
    START_TEST(name)               \
    {                              \
        etch_with_arena(function); \
    }                              \
    END_TEST

CASE(test_composition, substitution_is_composition)
CASE(test_steps, steps_commute)
CASE(test_special_cases, special_cases)
CASE(test_replaced_variables, replaced_variables)

Suite *etch_suite(void)
{
    Suite *suite = suite_create("subst");
    ETCH_ADD_TESTS(suite, test_composition, test_steps, test_special_cases, test_replaced_variables);
    return suite;
}
