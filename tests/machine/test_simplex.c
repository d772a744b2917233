/* The simplex finds the least value of functions whose least value is known. */
#include "machine/machine_int.h"
#include "suite.h"

#include <math.h>

static double valley(const void *data, const double *x)
{
    (void)data;
    return 100 * pow(x[1] - x[0] * x[0], 2) + pow(1 - x[0], 2);
}

/* With an edge, on which the least value is. */
static double roof(const void *data, const double *x)
{
    (void)data;
    return fabs(x[0] - 3) + 2 * fabs(x[1] + x[0]) + pow(x[2] - 5, 2);
}

START_TEST(the_least_value_of_a_curved_valley)
{
    const etch_objective of = {.count = 2, .least = {-5, -5}, .most = {5, 5}, .value = valley, .data = NULL};
    double x[ETCH_FIT_NUMBERS] = {-1.2, 1};
    ck_assert_double_le(etch_minimize(&of, x), 1e-12);
    ck_assert_double_eq_tol(x[0], 1, 1e-6);
    ck_assert_double_eq_tol(x[1], 1, 1e-6);
}
END_TEST

START_TEST(the_least_value_on_an_edge_and_at_a_bound)
{
    const etch_objective of = {
        .count = 3, .least = {-9, -9, -9}, .most = {9, 9, 4}, .value = roof, .data = NULL};
    double x[ETCH_FIT_NUMBERS] = {8, 8, -8};
    ck_assert_double_eq_tol(etch_minimize(&of, x), 1, 1e-6);
    ck_assert_double_eq_tol(x[0], 3, 1e-6);
    ck_assert_double_eq_tol(x[1], -3, 1e-6);
    ck_assert_double_eq_tol(x[2], 4, 1e-9);
}
END_TEST

Suite *etch_suite(void)
{
    Suite *suite = suite_create("simplex");
    ETCH_ADD_TESTS(suite, the_least_value_of_a_curved_valley, the_least_value_on_an_edge_and_at_a_bound);
    return suite;
}
