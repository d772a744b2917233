/* The largest of many expressions: its value, and what it takes to find it. */
#include "suite.h"
#include "symbolic/symbolic.h"

enum { SUMS = 48, VARS = 6 };

static uint32_t next_random(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 16;
}

/* Sums of products, some of them never larger than others. */
static void make_sums(etch_sym *sym, const etch_expr *vars, etch_expr *sums)
{
    uint32_t state = 7;
    for (uint32_t i = 0; i < SUMS; i++) {
        sums[i] = etch_int(sym, 0);
        for (uint32_t k = 0; k < VARS; k++) {
            const etch_expr product = etch_mul(sym, vars[k], vars[next_random(&state) % VARS]);
            const etch_expr count = etch_int(sym, (int64_t)(next_random(&state) % 9));
            sums[i] = etch_add(sym, sums[i], etch_mul(sym, count, product));
        }
    }
}

static void declare(etch_sym *sym, etch_expr *vars)
{
    static const char *const names[VARS] = {"a", "b", "c", "d", "e", "f"};
    for (uint32_t i = 0; i < VARS; i++)
        vars[i] = etch_var(sym, names[i]);
}

static void value_is_that_of_one_after_the_other(etch_arena *arena)
{
    etch_sym *sym = etch_sym_new(arena);
    etch_expr vars[VARS], sums[SUMS], values[VARS];
    uint32_t state = 3;
    declare(sym, vars);
    make_sums(sym, vars, sums);
    const etch_expr largest = etch_max_of(sym, SUMS, sums);
    for (uint32_t i = 0; i < 200; i++) {
        for (uint32_t k = 0; k < VARS; k++)
            values[k] = etch_int(sym, 1 + (int64_t)(next_random(&state) % (i % 3 ? 1000 : 4)));
        etch_expr expected = etch_subst(sym, sums[0], VARS, vars, values);
        for (uint32_t k = 1; k < SUMS; k++)
            expected = etch_max(sym, expected, etch_subst(sym, sums[k], VARS, vars, values));
        ck_assert_ptr_eq(etch_subst(sym, largest, VARS, vars, values), expected);
    }
}

/* Comparing each with a max of all before it took 40 times as many. */
static void many_take_few_operations(etch_arena *arena)
{
    etch_sym *sym = etch_sym_new(arena);
    etch_expr vars[VARS], sums[SUMS];
    declare(sym, vars);
    make_sums(sym, vars, sums);
    const uint64_t before = etch_sym_operations(sym);
    ck_assert_ptr_nonnull(etch_max_of(sym, SUMS, sums));
    ck_assert_uint_le(etch_sym_operations(sym) - before, 2000000);
}

static void what_is_undefined_stays_so(etch_arena *arena)
{
    etch_sym *sym = etch_sym_new(arena);
    const etch_expr a = etch_var(sym, "a"), args[] = {a, NULL};
    ck_assert_ptr_null(etch_max_of(sym, 2, args));
    ck_assert_ptr_eq(etch_max_of(sym, 1, args), a);
}

START_TEST(values)
{
    etch_with_arena(value_is_that_of_one_after_the_other);
}
END_TEST

START_TEST(operations)
{
    etch_with_arena(many_take_few_operations);
}
END_TEST

START_TEST(undefined)
{
    etch_with_arena(what_is_undefined_stays_so);
}
END_TEST

Suite *etch_suite(void)
{
    Suite *suite = suite_create("largest");
    ETCH_ADD_TESTS(suite, values, operations, undefined);
    return suite;
}
