/* Products of long sums, whose exponents are packed: against the same product term by term, and against
 * values at points. */
#include "oracle.h"

#include <stdio.h>

/* A random sum: what its exponents and coefficients are like. */
typedef struct sum_shape {
    uint32_t terms, vars; /* at most */
    int64_t least_exp, greatest_exp;
    uint32_t bits;         /* of a coefficient */
    uint64_t denominators; /* from 1 */
} sum_shape;

typedef struct long_sum {
    uint32_t count;
    etch_expr *terms;
    etch_expr value;
} long_sum;

static etch_expr random_number(etch_sym *sym, chance *c, const sum_shape *shape)
{
    etch_expr value = etch_int(sym, 1), two = etch_int(sym, 2);
    value = etch_pow(sym, two, (int64_t)chance_below(c, shape->bits + 1));
    value = etch_add(sym, value, etch_int(sym, (int64_t)chance_below(c, 3) - 1));
    if (chance_below(c, 2))
        value = etch_neg(sym, value);
    return etch_div(sym, value, etch_int(sym, 1 + (int64_t)chance_below(c, shape->denominators)));
}

static long_sum random_sum(etch_arena *arena, etch_sym *sym, chance *c, const sum_shape *shape)
{
    long_sum s = {.count = 2 + (uint32_t)chance_below(c, shape->terms)};
    uint64_t exponents = (uint64_t)(shape->greatest_exp - shape->least_exp) + 1;
    s.terms = ETCH_NEW_ARRAY(arena, s.count, etch_expr);
    for (uint32_t i = 0; i < s.count; i++) {
        s.terms[i] = random_number(sym, c, shape);
        for (uint32_t k = 0; k < shape->vars; k++) {
            int64_t exp = shape->least_exp + (int64_t)chance_below(c, exponents);
            if (chance_below(c, 3))
                s.terms[i] = etch_mul(sym, s.terms[i], etch_pow(sym, etch_var(sym, var_names[k]), exp));
        }
    }
    s.value = etch_sum(sym, s.count, s.terms);
    return s;
}

static void products_are_sums_of_products(etch_arena *arena, uint64_t seed, const sum_shape *left,
                                          const sum_shape *right, uint32_t runs)
{
    chance c = chance_new(seed);
    for (uint32_t i = 0; i < chance_runs(runs); i++) {
        etch_arena *own = etch_arena_new(etch_arena_mem(arena));
        etch_sym *sym = etch_sym_new(own);
        declare_vars(sym, &c);
        long_sum a = random_sum(own, sym, &c, left), b = random_sum(own, sym, &c, right);
        etch_expr product = etch_mul(sym, a.value, b.value);
        etch_expr *rows = ETCH_NEW_ARRAY(own, a.count, etch_expr);
        for (uint32_t k = 0; k < a.count; k++)
            rows[k] = etch_mul(sym, a.terms[k], b.value);
        CHANCE_ASSERT(&c, product == etch_sum(sym, a.count, rows), "(%s)*(%s) is %s",
                      etch_expr_text(sym, a.value), etch_expr_text(sym, b.value),
                      etch_expr_text(sym, product));
        ck_assert_ptr_eq(product, etch_mul(sym, b.value, a.value));
        /* of one with itself */
        ck_assert_ptr_eq(etch_mul(sym, a.value, a.value), etch_pow(sym, a.value, 2));
        etch_arena_free(own);
    }
}

static void small_numbers(etch_arena *arena)
{
    const sum_shape shape = {60, 4, 0, 6, 8, 1};
    products_are_sums_of_products(arena, 61, &shape, &shape, 60);
}

static void negative_exponents_and_fractions(etch_arena *arena)
{
    const sum_shape shape = {50, 5, -3, 4, 20, 12};
    products_are_sums_of_products(arena, 62, &shape, &shape, 60);
}

static void borders_of_words(etch_arena *arena)
{
    /* products of coefficients pass 2^31, 2^62, 2^63, 2^64 and 2^127, and so do their sums */
    static const uint32_t bits[] = {16, 30, 31, 32, 61, 62, 63, 64, 126};
    for (size_t i = 0; i < sizeof bits / sizeof *bits; i++)
        for (size_t k = 0; k < sizeof bits / sizeof *bits; k++) {
            const sum_shape left = {40, 2, 0, 3, bits[i], 1}, right = {40, 2, 0, 3, bits[k], 1 + k % 2};
            products_are_sums_of_products(arena, 63 + i, &left, &right, 3);
        }
}

static void borders_of_packing(etch_arena *arena)
{
    /* ranges of exponents whose words just fit, or do not: 64 bits, and more atoms than are packed */
    static const int64_t spread[] = {1, 127, 128, 255, 256, 32767, 65535, 65536, 400000};
    for (size_t i = 0; i < sizeof spread / sizeof *spread; i++)
        for (uint32_t vars = 1; vars <= VARS; vars++) {
            const sum_shape left = {30, vars, -spread[i], spread[i], 10, 1}, right = {30, vars, 0, 2, 10, 3};
            products_are_sums_of_products(arena, 80 + i, &left, &left, 1);
            products_are_sums_of_products(arena, 90 + i, &left, &right, 1);
        }
}

static void many_variables(etch_arena *arena)
{
    enum { COUNT = 100 };
    etch_sym *sym = etch_sym_new(arena);
    etch_expr vars[COUNT], squares[COUNT * (COUNT + 1) / 2];
    uint32_t count = 0;
    for (int i = 0; i < COUNT; i++)
        vars[i] = etch_var(sym, etch_text(arena, "v%d", i));
    for (int i = 0; i < COUNT; i++)
        for (int k = 0; k <= i; k++)
            squares[count++] = etch_mul(sym, etch_int(sym, i == k ? 1 : 2), etch_mul(sym, vars[i], vars[k]));
    etch_expr sum = etch_sum(sym, COUNT, vars);
    ck_assert_ptr_eq(etch_mul(sym, sum, sum), etch_sum(sym, count, squares));
}

/* The value of a product is the product of values. */
static void values_agree(etch_arena *arena)
{
    const sum_shape shape = {50, 5, -2, 3, 70, 5};
    chance c = chance_new(64);
    point p;
    mpq_t left, right, both;
    point_init(&p);
    mpq_inits(left, right, both, NULL);
    for (uint32_t i = 0; i < chance_runs(40); i++) {
        etch_arena *own = etch_arena_new(etch_arena_mem(arena));
        etch_sym *sym = etch_sym_new(own);
        declare_vars(sym, &c);
        long_sum a = random_sum(own, sym, &c, &shape), b = random_sum(own, sym, &c, &shape);
        point_random(&p, &c, 20);
        ck_assert(expr_value(sym, a.value, &p, left) && expr_value(sym, b.value, &p, right));
        ck_assert(expr_value(sym, etch_mul(sym, a.value, b.value), &p, both));
        mpq_mul(left, left, right);
        CHANCE_ASSERT(&c, mpq_equal(left, both), "(%s)*(%s) at %s", etch_expr_text(sym, a.value),
                      etch_expr_text(sym, b.value), point_str(own, &p));
        etch_arena_free(own);
    }
    mpq_clears(left, right, both, NULL);
    point_clear(&p);
}

/* All operations take one expression for both operands. */
static void operands_may_be_the_same(etch_arena *arena)
{
    static const tree_shape shape = {"+-*/q%MmA^P", "abc23(", 5, 3, 9};
    chance c = chance_new(65);
    etch_sym *sym = etch_sym_new(arena);
    declare_vars(sym, NULL);
    for (uint32_t i = 0; i < chance_runs(200); i++) {
        etch_expr e = tree_build(sym, tree_random(arena, &c, &shape));
        if (!e || etch_is_zero(e))
            continue;
        ck_assert_ptr_eq(etch_add(sym, e, e), etch_mul(sym, e, etch_int(sym, 2)));
        ck_assert_ptr_eq(etch_sub(sym, e, e), etch_int(sym, 0));
        ck_assert_ptr_eq(etch_mul(sym, e, e), etch_pow(sym, e, 2));
        ck_assert_ptr_eq(etch_div(sym, e, e), etch_int(sym, 1));
        ck_assert_ptr_eq(etch_floor_div(sym, e, e), etch_int(sym, 1));
        ck_assert_ptr_eq(etch_mod(sym, e, e), etch_int(sym, 0));
        ck_assert_ptr_eq(etch_max(sym, e, e), e);
        ck_assert_ptr_eq(etch_min(sym, e, e), e);
        ck_assert_int_eq(etch_equal(sym, e, e, NULL), ETCH_YES);
        ck_assert_int_eq(etch_at_least(sym, e, e, NULL), ETCH_YES);
        ck_assert_int_eq(etch_divides(sym, e, e, NULL), ETCH_YES);
    }
}

#define CASE(name)             \
    START_TEST(test_##name)    \
    {                          \
        etch_with_arena(name); \
    }                          \
    END_TEST

CASE(small_numbers)
CASE(negative_exponents_and_fractions)
CASE(borders_of_words)
CASE(borders_of_packing)
CASE(many_variables)
CASE(values_agree)
CASE(operands_may_be_the_same)

Suite *etch_suite(void)
{
    Suite *suite = suite_create("products");
    ETCH_ADD_TESTS(suite, test_small_numbers, test_negative_exponents_and_fractions, test_borders_of_words,
                   test_borders_of_packing, test_many_variables, test_values_agree,
                   test_operands_may_be_the_same);
    return suite;
}
