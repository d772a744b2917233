/* The public interface of formulas (etch/expr.h): values, failures, limits, forks, threads. */
#include "suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "etch/expr.h"

static etch_algebra *new_algebra(const etch_algebra_options *options)
{
    etch_algebra *al;
    ck_assert_int_eq(etch_algebra_new(options, &al), ETCH_OK);
    return al;
}

static etch_formula get(etch_algebra *al, const char *text)
{
    etch_formula f = etch_formula_read(al, text, strlen(text), ETCH_PLAIN, NULL);
    ck_assert_msg(f != NULL, "%s: %s", text, etch_algebra_message(al));
    return f;
}

static void check_text(etch_algebra *al, etch_formula f, const char *expected)
{
    ck_assert_str_eq(etch_formula_text(al, f, ETCH_PLAIN, ETCH_EXPANDED), expected);
}

/* ---- making -------------------------------------------------------------------------------------------- */

START_TEST(operations)
{
    etch_algebra *al = new_algebra(NULL);
    etch_formula a = etch_formula_variable(al, "a"), b = etch_formula_variable(al, "b");
    etch_formula two = etch_formula_number(al, 2), half = etch_formula_fraction(al, 2, 4);
    const etch_formula list[] = {a, b, two, a};
    const struct {
        etch_formula made;
        const char *text;
    } cases[] = {
        {etch_formula_add(al, a, b), "a + b"},
        {etch_formula_sub(al, a, b), "a - b"},
        {etch_formula_mul(al, a, half), "a/2"},
        {etch_formula_div(al, a, b), "a/b"},
        {etch_formula_neg(al, a), "-a"},
        {etch_formula_pow(al, b, -2), "1/b^2"},
        {etch_formula_total(al, 4, list), "2*a + b + 2"},
        {etch_formula_total(al, 0, NULL), "0"},
        {etch_formula_floor(al, half), "0"},
        {etch_formula_ceil(al, half), "1"},
        {etch_formula_floor_div(al, a, b), "a//b"},
        {etch_formula_mod(al, a, b), "a % b"},
        {etch_formula_max(al, a, b), "max(a, b)"},
        {etch_formula_min(al, a, two), "min(a, 2)"},
        {etch_formula_abs(al, etch_formula_neg(al, b)), "b"},
        {etch_formula_pow2(al, etch_formula_mul(al, a, b)), "pow2(a)*pow2(b)"},
        {etch_formula_substitute(al, get(al, "a^2 + b"), 2, list, (etch_formula[]){b, a}), "b^2 + a"},
        {etch_formula_derivative(al, get(al, "a^3*b"), a, NULL), "3*a^2*b"},
        {etch_formula_relax(al, get(al, "a // b")), "a/b"},
        {etch_formula_leading(al, get(al, "a^2*b + a*b^9"), a), "a^2*b"},
        {etch_formula_dominant(al, get(al, "a^2*b + a*b")), "a^2*b"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        etch_formula expected = get(al, cases[i].text);
        ck_assert_msg(cases[i].made == expected, "%s, not %s",
                      etch_formula_text(al, cases[i].made, ETCH_PLAIN, ETCH_EXPANDED), cases[i].text);
        ck_assert(etch_formula_same(al, cases[i].made, expected));
    }
    ck_assert(!etch_formula_same(al, a, b));
    ck_assert(!etch_formula_same(al, NULL, NULL));
    etch_formula k = etch_formula_index(al, 0);
    check_text(al, etch_formula_sum(al, k, etch_formula_number(al, 1), a, k), "a^2/2 + a/2");
    int64_t value = 0;
    ck_assert(etch_formula_integer(etch_formula_number(al, INT64_MIN), &value) && value == INT64_MIN);
    ck_assert(!etch_formula_integer(half, &value) && !etch_formula_integer(NULL, &value));
    ck_assert_str_eq(etch_formula_name(b), "b");
    ck_assert_ptr_null(etch_formula_name(two));
    bool piecewise = false;
    etch_formula_derivative(al, get(al, "a*floor(a/2)"), a, &piecewise);
    ck_assert(piecewise);
    ck_assert_int_eq(etch_algebra_status(al), ETCH_OK);
    etch_algebra_free(al);
}
END_TEST

START_TEST(parts)
{
    etch_algebra *al = new_algebra(NULL);
    etch_formula f = get(al, "a*b^2*c + 3*a*b^2 - floor(c/2)"), b = get(al, "b");
    const etch_formula *variables;
    const etch_formula_part *found;
    size_t count;
    ck_assert_int_eq(etch_formula_variables(al, f, &variables, &count), ETCH_OK);
    ck_assert_uint_eq(count, 3);
    ck_assert_str_eq(etch_formula_name(variables[2]), "c");
    ck_assert_int_eq(etch_formula_collect(al, f, 1, &b, &found, &count), ETCH_OK);
    ck_assert_uint_eq(count, 2);
    check_text(al, found[0].product, "b^2");
    check_text(al, found[0].coefficient, "a*c + 3*a");
    int64_t low, high;
    ck_assert_int_eq(etch_formula_degree(al, get(al, "b^3 + 1/b"), b, &low, &high), ETCH_OK);
    ck_assert(low == -1 && high == 3);
    ck_assert_int_eq(etch_algebra_status(al), ETCH_OK);
    ck_assert_int_eq(etch_formula_degree(al, f, get(al, "a + b"), &low, &high), ETCH_EINPUT);
    etch_algebra_free(al);
}
END_TEST

START_TEST(notations)
{
    static const etch_notation all[] = {ETCH_PLAIN, ETCH_C, ETCH_PYTHON, ETCH_JSON};
    etch_algebra *al = new_algebra(NULL);
    etch_formula f = get(al, "2*a^2/b - floor(a/3)*max(a, b)/7");
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        const char *text = etch_formula_text(al, f, all[i], ETCH_EXPANDED);
        ck_assert_msg(etch_formula_read(al, text, strlen(text), all[i], NULL) == f, "%s", text);
    }
    const char *const names[] = {"x", "y"};
    const etch_formula both[] = {f, get(al, "a")};
    const char *code = etch_formula_assignments(al, 2, both, names, ETCH_PYTHON, ETCH_EXPANDED);
    ck_assert_ptr_nonnull(strstr(code, "y = a"));
    ck_assert_str_eq(etch_formula_text(al, NULL, ETCH_PLAIN, ETCH_EXPANDED), "undefined");
    ck_assert_ptr_null(etch_formula_assignments(al, 2, both, names, ETCH_JSON, ETCH_EXPANDED));
    ck_assert_int_eq(etch_algebra_status(al), ETCH_EINPUT);
    etch_algebra_free(al);
}
END_TEST

/* ---- facts and questions ------------------------------------------------------------------------------- */

START_TEST(facts)
{
    etch_algebra *al = new_algebra(NULL);
    etch_formula tp = etch_formula_variable(al, "tp"), heads = etch_formula_variable(al, "heads");
    etch_formula shift = etch_formula_variable(al, "shift"), rate = etch_formula_variable(al, "rate");
    int64_t other = 0;
    ck_assert_int_eq(etch_algebra_declare_integer(al, shift, -4), ETCH_OK);
    ck_assert_int_eq(etch_algebra_declare_real(al, rate), ETCH_OK);
    ck_assert_int_eq(etch_algebra_assume(al, ETCH_REL_DIVIDES, tp, heads, 11, NULL), ETCH_OK);
    ck_assert_int_eq(etch_algebra_assume(al, ETCH_REL_GT, heads, etch_formula_number(al, 9), 12, NULL),
                     ETCH_OK);
    ck_assert_int_eq(etch_algebra_assume(al, ETCH_REL_LT, heads, etch_formula_number(al, 10), 13, &other),
                     ETCH_EINPUT);
    ck_assert_int_eq(other, 12);
    ck_assert_int_eq(etch_algebra_status(al), ETCH_OK);
    check_text(al, etch_formula_floor_div(al, heads, tp), "heads/tp");

    static const struct {
        etch_relation relation;
        const char *left, *right;
        etch_truth truth;
    } cases[] = {
        {ETCH_REL_GE, "heads", "tp", ETCH_YES},
        {ETCH_REL_GE, "tp", "heads", ETCH_NO},
        {ETCH_REL_LE, "tp", "heads", ETCH_YES},
        {ETCH_REL_GT, "heads", "9", ETCH_YES},
        {ETCH_REL_LT, "9", "heads", ETCH_YES},
        {ETCH_REL_LT, "heads", "10", ETCH_NO},
        {ETCH_REL_EQ, "(a + 1)^2", "a^2 + 2*a + 1", ETCH_YES},
        {ETCH_REL_EQ, "a", "heads", ETCH_NO},
        {ETCH_REL_NE, "heads", "9", ETCH_YES},
        {ETCH_REL_NE, "heads", "10", ETCH_NO},
        {ETCH_REL_DIVIDES, "tp", "3*heads", ETCH_YES},
        {ETCH_REL_DIVIDES, "heads", "tp", ETCH_NO},
        {ETCH_REL_GE, "shift", "-4", ETCH_YES},
        {ETCH_REL_GE, "shift", "-3", ETCH_NO},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        etch_truth truth;
        etch_counterexample values;
        ck_assert_int_eq(etch_algebra_decide(al, cases[i].relation, get(al, cases[i].left),
                                             get(al, cases[i].right), &truth, &values),
                         ETCH_OK);
        ck_assert_msg(truth == cases[i].truth, "%zu: %s, %s", i, cases[i].left, cases[i].right);
        ck_assert_int_eq(values.count > 0, truth == ETCH_NO);
        ck_assert_int_eq(etch_algebra_decide(al, cases[i].relation, get(al, cases[i].left),
                                             get(al, cases[i].right), &truth, NULL),
                         ETCH_OK);
    }
    etch_truth truth;
    ck_assert_int_eq(etch_algebra_decide(al, ETCH_REL_TRUE, heads, NULL, &truth, NULL), ETCH_OK);
    ck_assert_int_eq(truth, ETCH_YES);
    etch_counterexample values;
    ck_assert_int_eq(etch_algebra_is_integer(al, rate, &truth, &values), ETCH_OK);
    ck_assert_int_eq(truth, ETCH_NO);
    ck_assert_str_eq(values.names[0], "rate");
    ck_assert_int_eq(etch_algebra_status(al), ETCH_OK);
    ck_assert_int_eq(etch_algebra_decide(al, ETCH_REL_EQ, heads, NULL, &truth, &values), ETCH_EINPUT);
    ck_assert_int_eq(truth, ETCH_UNKNOWN);
    etch_algebra_clear(al);
    ck_assert_int_eq(etch_algebra_declare_real(al, get(al, "a + 1")), ETCH_EINPUT);
    etch_formula apart = etch_formula_variable(al, "apart");
    ck_assert_int_eq(etch_algebra_assume(al, ETCH_REL_NE, tp, tp, 1, NULL), ETCH_EINPUT);
    ck_assert_int_eq(etch_algebra_assume(al, ETCH_REL_NE, tp, apart, 2, NULL), ETCH_EUNKNOWN);
    ck_assert_int_eq(etch_algebra_decide(al, ETCH_REL_NE, apart, tp, &truth, NULL), ETCH_OK);
    ck_assert_int_eq(truth, ETCH_YES);
    ck_assert_int_eq(etch_algebra_assume(al, ETCH_REL_TRUE, etch_formula_pow2(al, apart), NULL, 3, NULL),
                     ETCH_OK);
    check_text(al, etch_formula_pow2(al, get(al, "8*apart")), "1");
    etch_algebra_free(al);
}
END_TEST

/* ---- failures ------------------------------------------------------------------------------------------ */

START_TEST(failures_stay_until_cleared)
{
    etch_algebra *al = new_algebra(NULL);
    etch_formula a = get(al, "a"), zero = etch_formula_sub(al, a, a);
    etch_formula none = etch_formula_div(al, a, zero);
    ck_assert_ptr_null(none);
    ck_assert_int_eq(etch_algebra_status(al), ETCH_EINPUT);
    ck_assert_ptr_nonnull(strstr(etch_algebra_message(al), "zero"));
    ck_assert_ptr_null(etch_formula_add(al, none, a));
    ck_assert_ptr_null(etch_formula_fraction(al, 1, 0));
    size_t at = 99;
    ck_assert_ptr_null(etch_formula_read(al, "a + * b", 7, ETCH_PLAIN, &at));
    ck_assert_uint_eq(at, 4);
    ck_assert_ptr_nonnull(strstr(etch_algebra_message(al), "zero")); /* the first one */
    etch_algebra_clear(al);
    ck_assert_int_eq(etch_algebra_status(al), ETCH_OK);
    ck_assert_str_eq(etch_algebra_message(al), "");
    ck_assert_ptr_null(etch_formula_read(al, "a +", 3, ETCH_PLAIN, &at));
    ck_assert_int_eq(etch_algebra_status(al), ETCH_EINPUT);
    ck_assert_ptr_eq(etch_formula_add(al, a, zero), a); /* nothing else is refused */
    etch_program *program;
    ck_assert_int_eq(etch_formula_compile(al, 1, &none, &program), ETCH_EINPUT);
    ck_assert_ptr_null(program);
    etch_algebra_free(al);
    etch_algebra_free(NULL);
}
END_TEST

START_TEST(limits_can_be_survived)
{
    const etch_algebra_options options = {
        .struct_size = sizeof options, .terms = 500, .digits = 1000, .exponent = 5000, .nesting = 50};
    etch_algebra *al = new_algebra(&options);
    etch_formula sum = get(al, "a + b + c + d"), two = etch_formula_number(al, 2);
    for (int i = 0; i < 3; i++) {
        ck_assert_ptr_null(etch_formula_pow(al, sum, 60));
        ck_assert_int_eq(etch_algebra_status(al), ETCH_ELIMIT);
        ck_assert_ptr_nonnull(strstr(etch_algebra_message(al), "500"));
        etch_algebra_clear(al);
        ck_assert_ptr_null(etch_formula_pow(al, two, 1 << 20));
        ck_assert_ptr_null(etch_formula_pow(al, get(al, "a"), 5001));
        ck_assert_int_eq(etch_algebra_status(al), ETCH_ELIMIT);
        etch_algebra_clear(al);
        ck_assert_ptr_eq(get(al, "d + c + b + a"), sum);
        check_text(al, etch_formula_pow(al, get(al, "a + 1"), 2), "a^2 + 2*a + 1");
        ck_assert_int_eq(etch_algebra_status(al), ETCH_OK);
    }
    etch_algebra_free(al);
}
END_TEST

START_TEST(memory_exhausts)
{
    const etch_algebra_options options = {.struct_size = sizeof options, .memory = 1 << 20};
    etch_algebra *al = new_algebra(&options);
    etch_formula sum = get(al, "a + b + c + d + e + f"), power = sum;
    while (power)
        power = etch_formula_mul(al, power, sum);
    ck_assert_int_eq(etch_algebra_status(al), ETCH_ELIMIT);
    etch_algebra_clear(al);
    ck_assert_int_eq(etch_algebra_status(al), ETCH_ELIMIT);
    ck_assert_ptr_null(etch_formula_number(al, 1));
    ck_assert_ptr_null(etch_formula_text(al, sum, ETCH_PLAIN, ETCH_EXPANDED));
    etch_program *program;
    ck_assert_int_eq(etch_formula_compile(al, 1, &sum, &program), ETCH_ELIMIT);
    etch_algebra_free(al);
    const etch_algebra_options tiny = {.struct_size = sizeof tiny, .memory = 100};
    ck_assert_int_eq(etch_algebra_new(&tiny, &al), ETCH_ELIMIT);
    ck_assert_ptr_null(al);
}
END_TEST

/* Some of everything. NULL or a text that is the same in every run that is not cut short. */
static const char *some_of_everything(etch_algebra *al)
{
    etch_formula a = etch_formula_variable(al, "a"), b = etch_formula_variable(al, "b");
    etch_formula c = etch_formula_read(al, "c", 1, ETCH_PLAIN, NULL), k = etch_formula_index(al, 0);
    if (etch_algebra_assume(al, ETCH_REL_DIVIDES, a, b, 1, NULL) != ETCH_OK ||
        etch_algebra_assume(al, ETCH_REL_GE, c, b, 2, NULL) != ETCH_OK)
        return NULL;
    etch_formula third = etch_formula_div(al, etch_formula_add(al, a, c), etch_formula_add(al, b, c));
    etch_formula f = etch_formula_mul(al, etch_formula_floor_div(al, b, a), etch_formula_max(al, c, third));
    f = etch_formula_add(al, f, etch_formula_sum(al, k, a, c, etch_formula_floor_div(al, k, b)));
    f = etch_formula_sub(al, etch_formula_pow(al, f, 3), etch_formula_mod(al, c, a));
    etch_truth truth;
    etch_counterexample values;
    etch_program *program;
    if (etch_algebra_decide(al, ETCH_REL_GE, f, b, &truth, &values) != ETCH_OK ||
        etch_formula_compile(al, 1, &f, &program) != ETCH_OK)
        return NULL;
    etch_program_free(program);
    f = etch_formula_derivative(al, etch_formula_substitute(al, f, 1, &a, &b), c, NULL);
    return etch_formula_text(al, f, ETCH_PYTHON, ETCH_FACTORED);
}

static char *text_of_everything(const etch_algebra_options *options)
{
    etch_algebra *al = new_algebra(options);
    const char *text = some_of_everything(al);
    ck_assert_msg(text != NULL, "%s", etch_algebra_message(al));
    char *copy = malloc(strlen(text) + 1);
    ck_assert_ptr_nonnull(copy);
    strcpy(copy, text);
    etch_algebra_free(al);
    return copy;
}

/* Whatever memory there is: the result, or an exhausted algebra that says so. */
START_TEST(any_amount_of_memory)
{
    char *expected = text_of_everything(NULL);
    size_t done = 0;
    for (size_t memory = 1000; done < 3; memory += memory < 200000 ? 1777 : memory / 8) {
        const etch_algebra_options options = {.struct_size = sizeof options, .memory = memory};
        etch_algebra *al;
        if (etch_algebra_new(&options, &al) != ETCH_OK)
            continue;
        const char *text = some_of_everything(al);
        if (text) {
            ck_assert_str_eq(text, expected);
            done++;
        } else {
            ck_assert_int_eq(etch_algebra_status(al), ETCH_ELIMIT);
            ck_assert_str_ne(etch_algebra_message(al), "");
            ck_assert_ptr_null(etch_formula_number(al, 1));
        }
        etch_algebra_free(al);
    }
    free(expected);
}
END_TEST

/* An algebra that met a limit at any point works on: what it gives before and after is right. */
static void check_after_limits(etch_algebra *right, const etch_algebra_options *options)
{
    static const char *const texts[] = {"floor((a + b)/(c + 2))*max(a, b, c)^2",
                                        "(a + b/c + 3)^5 - floor(a/7)*b",
                                        "min(a^2, b) + 1/(a + b) + (a*b) % c",
                                        "3^40*a - floor(floor(a/b)/c)",
                                        "a/b",
                                        "max(a, b, c) + max(floor(a/2), floor(b/3)) + floor(c/max(a, 5))"};
    etch_algebra *al = new_algebra(options);
    etch_truth truth;
    for (size_t i = 0; i < 2 * sizeof texts / sizeof *texts; i++) {
        const char *written = texts[i % (sizeof texts / sizeof *texts)];
        etch_formula f = etch_formula_read(al, written, strlen(written), ETCH_PLAIN, NULL);
        const char *text = f ? etch_formula_text(al, f, ETCH_PLAIN, ETCH_EXPANDED) : NULL;
        if (f && etch_algebra_decide(al, ETCH_REL_GE, f, etch_formula_number(al, 0), &truth, NULL) == ETCH_OK)
            ck_assert(strchr(written, '-') || truth != ETCH_NO);
        if (text)
            ck_assert_ptr_eq(get(right, text), get(right, written));
        else
            ck_assert_int_eq(etch_algebra_status(al), ETCH_ELIMIT);
        etch_algebra_clear(al);
    }
    etch_algebra_free(al);
}

START_TEST(any_limit)
{
    etch_algebra *right = new_algebra(NULL);
    for (uint32_t n = 1; n <= 60; n++) {
        check_after_limits(right,
                           &(etch_algebra_options){.struct_size = sizeof(etch_algebra_options), .terms = n});
        check_after_limits(
            right, &(etch_algebra_options){.struct_size = sizeof(etch_algebra_options), .functions = n});
        check_after_limits(right,
                           &(etch_algebra_options){.struct_size = sizeof(etch_algebra_options), .digits = n});
        check_after_limits(
            right, &(etch_algebra_options){.struct_size = sizeof(etch_algebra_options), .operations = n * n});
    }
    for (uint32_t n = 1; n <= 12; n++) {
        check_after_limits(
            right, &(etch_algebra_options){.struct_size = sizeof(etch_algebra_options), .exponent = n});
        check_after_limits(right,
                           &(etch_algebra_options){.struct_size = sizeof(etch_algebra_options), .depth = n});
        check_after_limits(
            right, &(etch_algebra_options){.struct_size = sizeof(etch_algebra_options), .nesting = n});
    }
    etch_algebra_free(right);
}
END_TEST

/* ---- forks --------------------------------------------------------------------------------------------- */

typedef struct crowd {
    const etch_algebra *frozen;
    etch_formula formula;
    const char *text;
} crowd;

/* Works with formulas of the frozen algebra in a fork; compiles from both. */
static etch_status work_in_fork(void *data, size_t i)
{
    const crowd *c = data;
    etch_algebra *fork;
    etch_program *program = NULL;
    etch_status status = etch_algebra_fork(c->frozen, &fork);
    if (status != ETCH_OK)
        return status;
    etch_formula own = etch_formula_variable(fork, "own");
    etch_formula product = etch_formula_mul(fork, c->formula, own),
                 back = etch_formula_div(fork, product, own);
    bool right = etch_formula_same(fork, back, c->formula) &&
                 strcmp(etch_formula_text(fork, back, ETCH_PLAIN, ETCH_EXPANDED), c->text) == 0;
    const etch_formula mixed[] = {c->formula, product};
    right = right && etch_formula_compile(fork, 2, mixed, &program) == ETCH_OK &&
            etch_program_variables(program) == 4 && etch_algebra_status(fork) == ETCH_OK;
    etch_program_free(program);
    etch_algebra_free(fork);
    (void)i;
    return right ? ETCH_OK : ETCH_EINTERNAL;
}

START_TEST(forks)
{
    etch_algebra *al = new_algebra(NULL), *fork;
    ck_assert_int_eq(etch_algebra_fork(al, &fork), ETCH_EINPUT);
    ck_assert_ptr_null(fork);
    get(al, "tp + heads + seq"); /* the order of declaration */
    ck_assert_int_eq(etch_algebra_assume(al, ETCH_REL_DIVIDES, get(al, "tp"), get(al, "heads"), 1, NULL),
                     ETCH_OK);
    etch_formula formula = get(al, "heads // tp + seq // 8");
    const char *text = etch_formula_text(al, formula, ETCH_PLAIN, ETCH_EXPANDED);
    const char *double_text =
        etch_formula_text(al, etch_formula_add(al, formula, formula), ETCH_PLAIN, ETCH_EXPANDED);
    etch_algebra_freeze(al);
    etch_algebra_freeze(al);
    ck_assert_ptr_null(etch_formula_add(al, formula, formula));
    ck_assert_ptr_null(etch_formula_text(al, formula, ETCH_PLAIN, ETCH_EXPANDED));
    ck_assert_int_eq(etch_algebra_assume(al, ETCH_REL_EQ, formula, formula, 1, NULL), ETCH_EINPUT);
    ck_assert_int_eq(etch_algebra_status(al), ETCH_OK);
    etch_program *program;
    ck_assert_int_eq(etch_formula_compile(al, 1, &formula, &program), ETCH_OK);
    ck_assert_uint_eq(etch_program_variables(program), 3);
    etch_program_free(program);
    crowd c = {al, formula, text};
    ck_assert_int_eq(etch_parallel(8, 24, work_in_fork, &c), ETCH_OK);

    /* a fork of a fork */
    ck_assert_int_eq(etch_algebra_fork(al, &fork), ETCH_OK);
    etch_formula twice = etch_formula_add(fork, formula, formula);
    etch_algebra_freeze(fork);
    ck_assert_int_eq(etch_formula_compile(fork, 1, &twice, &program), ETCH_OK);
    etch_program_free(program);
    ck_assert_int_eq(etch_formula_compile(fork, 1, &formula, &program), ETCH_EINPUT);
    etch_algebra *second;
    ck_assert_int_eq(etch_algebra_fork(fork, &second), ETCH_OK);
    check_text(second, twice, double_text);
    check_text(second, formula, text);
    etch_algebra_free(second);
    etch_algebra_free(fork);
    etch_algebra_free(al);
}
END_TEST

Suite *etch_suite(void)
{
    Suite *suite = suite_create("algebra");
    ETCH_ADD_TESTS(suite, operations, parts, notations, facts, failures_stay_until_cleared,
                   limits_can_be_survived, memory_exhausts, any_amount_of_memory, any_limit, forks);
    return suite;
}
