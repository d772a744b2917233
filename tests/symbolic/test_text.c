/* Printing and parsing: what is printed parses to the same expression, and the text does not depend on
 * history. */
#include "oracle.h"

#include <stdio.h>
#include <string.h>

static etch_expr parse(etch_sym *sym, const char *text)
{
    size_t at;
    return etch_expr_parse(sym, text, strlen(text), &at);
}

/* ---- printing and parsing back ------------------------------------------------------------------------- */

static void text_parses_back(etch_arena *arena, uint64_t seed, const tree_shape *shape, uint32_t runs)
{
    chance c = chance_new(seed);
    etch_arena *own = NULL;
    etch_sym *sym = NULL;
    for (uint32_t i = 0; i < chance_runs(runs); i++) {
        if (i % 50 == 0) {
            etch_arena_free(own);
            own = etch_arena_new(etch_arena_mem(arena));
            sym = etch_sym_new(own);
            declare_vars(sym, &c);
        }
        tree *t = tree_random(own, &c, shape);
        etch_expr e = tree_build(sym, t);
        if (!e)
            continue;
        const char *text = etch_expr_text(sym, e);
        etch_expr back = parse(sym, text);
        CHANCE_ASSERT(&c, back == e, "%s prints as %s, which parses as %s", tree_str(arena, t), text,
                      etch_expr_text(sym, back));
        etch_expr direct = parse(sym, tree_str(arena, t));
        CHANCE_ASSERT(&c, direct == e, "%s parses as %s, and is %s", tree_str(arena, t),
                      etch_expr_text(sym, direct), text);
    }
}

static void polynomials_parse_back(etch_arena *arena)
{
    text_parses_back(arena, 11, &(tree_shape){"+-**/^N", "abcde23", 5, 4, 9}, 2000);
}

static void fractions_parse_back(etch_arena *arena)
{
    text_parses_back(arena, 12, &(tree_shape){"+-*/", "(((a2", 4, 4, 5}, 1500);
}

static void everything_parses_back(etch_arena *arena)
{
    text_parses_back(arena, 13, &(tree_shape){"+-*/^fcq%MmANP", "abcde2345(", 8, 4, 9}, 4000);
}

static void everything_large_parses_back(etch_arena *arena)
{
    text_parses_back(arena, 14, &(tree_shape){"+-**/^fcq%MmA", "abcde2345(", 8, 4, INT64_MAX / 2 - 1}, 1000);
}

/* ---- history ------------------------------------------------------------------------------------------- */

/* The same value written another way: commuted, and with the operations in `associative` associated
 * differently. */
static tree *rearranged(etch_arena *arena, chance *c, const tree *t, const char *associative)
{
    tree *copy = ETCH_NEW(arena, tree);
    *copy = *t;
    copy->a = t->a ? rearranged(arena, c, t->a, associative) : NULL;
    copy->b = t->b ? rearranged(arena, c, t->b, associative) : NULL;
    if (!strchr("+*Mm", t->op))
        return copy;
    if (chance_below(c, 2)) {
        tree *swap = copy->a;
        copy->a = copy->b;
        copy->b = swap;
    }
    if (strchr(associative, t->op) && copy->a->op == copy->op && chance_below(c, 2)) {
        /* (x . y) . z  to  x . (y . z) */
        tree *x = copy->a->a, *y = copy->a->b, *z = copy->b;
        copy->a->a = y;
        copy->a->b = z;
        copy->b = copy->a;
        copy->a = x;
    }
    return copy;
}

/* Builds trees in one context in order, in another the rearranged trees backwards, after unrelated
 * expressions. */
static void text_has_no_history(etch_arena *arena, uint64_t seed, const tree_shape *shape,
                                const char *associative, uint32_t runs)
{
    enum { BATCH = 20 };
    chance c = chance_new(seed);
    for (uint32_t i = 0; i < chance_runs(runs); i++) {
        etch_arena *own = etch_arena_new(etch_arena_mem(arena));
        etch_sym *first = etch_sym_new(own), *second = etch_sym_new(own);
        declare_vars(first, NULL);
        declare_vars(second, NULL);
        tree *trees[BATCH];
        const char *texts[BATCH];
        for (uint32_t k = 0; k < BATCH; k++) {
            trees[k] = tree_random(own, &c, shape);
            etch_expr e = tree_build(first, trees[k]);
            texts[k] = etch_expr_text(first, e);
            (void)tree_build(second, tree_random(own, &c, shape));
        }
        for (uint32_t k = BATCH; k-- > 0;) {
            tree *other = rearranged(own, &c, trees[k], associative);
            const char *text = etch_expr_text(second, tree_build(second, other));
            CHANCE_ASSERT(&c, strcmp(texts[k], text) == 0, "%s is %s; written as %s it is %s",
                          tree_str(arena, trees[k]), texts[k], tree_str(arena, other), text);
        }
        etch_arena_free(own);
    }
}

static void polynomials_have_no_history(etch_arena *arena)
{
    text_has_no_history(arena, 21, &(tree_shape){"+-**/^N", "abcde23", 8, 4, 9}, "+*", 100);
}

static void fractions_have_no_history(etch_arena *arena)
{
    text_has_no_history(arena, 22, &(tree_shape){"+-+*/", "((a2", 4, 4, 5}, "+*", 60);
}

static void everything_has_no_history(etch_arena *arena)
{
    text_has_no_history(arena, 23, &(tree_shape){"+-++*/^fcq%MmMmP", "abcde2345(", 8, 4, 9}, "+*", 80);
}

static void maxima_have_no_history(etch_arena *arena)
{
    text_has_no_history(arena, 24, &(tree_shape){"M", "", 8, 5, 9}, "M", 100);
}

static void minima_have_no_history(etch_arena *arena)
{
    text_has_no_history(arena, 25, &(tree_shape){"m", "", 8, 5, 9}, "m", 100);
}

PROPERTY(polynomials_parse_back)
PROPERTY(fractions_parse_back)
PROPERTY(everything_parses_back)
PROPERTY(everything_large_parses_back)
PROPERTY(polynomials_have_no_history)
PROPERTY(fractions_have_no_history)
PROPERTY(everything_has_no_history)
PROPERTY(maxima_have_no_history)
PROPERTY(minima_have_no_history)

Suite *etch_suite(void)
{
    Suite *suite = suite_create("text");
    ETCH_ADD_TESTS(suite, test_polynomials_parse_back, test_fractions_parse_back, test_everything_parses_back,
                   test_everything_large_parses_back, test_polynomials_have_no_history,
                   test_fractions_have_no_history, test_everything_has_no_history,
                   test_maxima_have_no_history, test_minima_have_no_history);
    return suite;
}
