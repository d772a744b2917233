/* Every operation against an oracle: the value of the canonical form is the value of the tree, at random
 * points. */
#include "oracle.h"

#include <stdio.h>

static void trees_keep_their_value(etch_arena *arena, uint64_t seed, const tree_shape *shape, uint32_t runs,
                                   uint64_t range)
{
    enum { POINTS = 6 };
    chance c = chance_new(seed);
    etch_arena *own = NULL;
    etch_sym *sym = NULL;
    point p;
    mpq_t expected, found;
    point_init(&p);
    mpq_inits(expected, found, NULL);
    for (uint32_t i = 0; i < chance_runs(runs); i++) {
        if (i % 50 == 0) {
            etch_arena_free(own);
            own = etch_arena_new(etch_arena_mem(arena));
            sym = etch_sym_new(own);
            declare_vars(sym, &c);
        }
        tree *t = tree_random(own, &c, shape);
        etch_expr e = tree_build(sym, t);
        for (uint32_t k = 0; k < POINTS; k++) {
            point_random(&p, &c, range);
            if (!tree_value(t, &p, expected))
                continue;
            bool defined = e && expr_value(sym, e, &p, found);
            CHANCE_ASSERT(&c, defined && mpq_equal(expected, found), "%s became %s, at %s",
                          tree_str(arena, t), etch_expr_text(sym, e), point_str(arena, &p));
        }
    }
    mpq_clears(expected, found, NULL);
    point_clear(&p);
}

static void polynomials(etch_arena *arena)
{
    trees_keep_their_value(arena, 1, &(tree_shape){"+-**^N", "", 5, 4, 9}, 2000, 50);
}

static void laurent_polynomials(etch_arena *arena)
{
    trees_keep_their_value(arena, 2, &(tree_shape){"+-**/^", "abcde23", 5, 4, 9}, 2000, 50);
}

static void fractions(etch_arena *arena)
{
    trees_keep_their_value(arena, 3, &(tree_shape){"+-*/", "(((a2", 4, 4, 5}, 1500, 20);
}

static void integer_functions(etch_arena *arena)
{
    trees_keep_their_value(arena, 4, &(tree_shape){"+-*fcq%q%PP", "abc23456", 5, 4, 9}, 2000, 30);
}

static void extrema(etch_arena *arena)
{
    trees_keep_their_value(arena, 5, &(tree_shape){"+-*/MmAMm", "abc23", 5, 4, 9}, 2000, 30);
}

static void everything(etch_arena *arena)
{
    trees_keep_their_value(arena, 6, &(tree_shape){"+-*/^fcq%MmANP", "abcde2345(", 8, 4, 9}, 3000, 20);
}

static void everything_with_large_numbers(etch_arena *arena)
{
    trees_keep_their_value(arena, 7, &(tree_shape){"+-**/^fcq%MmA", "abcde2345(", 8, 4, INT64_MAX / 2 - 1},
                           1500, 1u << 30);
}

/* Brackets, and a choice between two. */
static void choices(etch_arena *arena)
{
    static const tree_shape shape = {"+-*/q%MmA", "ab23", 7, 3, 9};
    chance c = chance_new(8);
    point p;
    mpq_t of, expected, found;
    point_init(&p);
    mpq_inits(of, expected, found, NULL);
    for (uint32_t i = 0; i < chance_runs(1000); i++) {
        etch_arena *own = etch_arena_new(etch_arena_mem(arena));
        etch_sym *sym = etch_sym_new(own);
        declare_vars(sym, &c);
        tree *t = tree_random(own, &c, &shape), *then = tree_random(own, &c, &shape);
        tree *otherwise = tree_random(own, &c, &shape);
        etch_expr e = tree_build(sym, t), bracket = etch_iverson(sym, e);
        etch_expr choice = etch_select(sym, e, tree_build(sym, then), tree_build(sym, otherwise));
        for (int k = 0; k < 5; k++) {
            point_random(&p, &c, 12);
            if (!tree_value(t, &p, of) || !tree_value(then, &p, expected) ||
                !tree_value(otherwise, &p, found))
                continue;
            bool here = mpq_sgn(of) >= 0;
            mpq_set(expected, here ? expected : found);
            CHANCE_ASSERT(&c,
                          bracket && expr_value(sym, bracket, &p, found) && mpq_cmp_ui(found, here, 1) == 0,
                          "[%s >= 0] became %s, at %s", tree_str(own, t), etch_expr_text(sym, bracket),
                          point_str(own, &p));
            CHANCE_ASSERT(&c, choice && expr_value(sym, choice, &p, found) && mpq_equal(expected, found),
                          "%s if %s >= 0 else %s, at %s", tree_str(own, then), tree_str(own, t),
                          tree_str(own, otherwise), point_str(own, &p));
        }
        etch_arena_free(own);
    }
    mpq_clears(of, expected, found, NULL);
    point_clear(&p);
}

PROPERTY(polynomials)
PROPERTY(laurent_polynomials)
PROPERTY(fractions)
PROPERTY(integer_functions)
PROPERTY(extrema)
PROPERTY(everything)
PROPERTY(everything_with_large_numbers)
PROPERTY(choices)

Suite *etch_suite(void)
{
    Suite *suite = suite_create("values");
    ETCH_ADD_TESTS(suite, test_polynomials, test_laurent_polynomials, test_fractions, test_integer_functions,
                   test_extrema, test_everything, test_everything_with_large_numbers, test_choices);
    return suite;
}
