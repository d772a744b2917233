/* Canonical forms, as they print. */
#include <stdio.h>
#include <string.h>

#include "suite.h"
#include "symbolic/symbolic.h"

typedef struct form {
    const char *text, *prints;
} form;

static etch_expr parse(etch_sym *sym, const char *text)
{
    size_t at;
    return etch_expr_parse(sym, text, strlen(text), &at);
}

static void check_forms(etch_arena *arena, const form *forms, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        etch_sym *sym = etch_sym_new(arena);
        for (const char *name = "abcdefghij"; *name; name++)
            etch_var(sym, (char[]){*name, 0});
        etch_expr e = parse(sym, forms[i].text);
        ck_assert_msg(e != NULL, "%s has no value", forms[i].text);
        ck_assert_msg(strcmp(etch_expr_text(sym, e), forms[i].prints) == 0, "%s prints as %s, not as %s",
                      forms[i].text, etch_expr_text(sym, e), forms[i].prints);
        ck_assert_msg(parse(sym, forms[i].prints) == e, "%s does not parse back", forms[i].prints);
    }
}

#define FORMS(test, ...)                                         \
    static void test##_forms(etch_arena *arena)                  \
    {                                                            \
        static const form forms[] = {__VA_ARGS__};               \
        check_forms(arena, forms, sizeof forms / sizeof *forms); \
    }                                                            \
    START_TEST(test)                                             \
    {                                                            \
        etch_with_arena(test##_forms);                           \
    }                                                            \
    END_TEST

FORMS(test_numbers, {"0", "0"}, {"-0", "0"}, {"007", "7"}, {"0.3", "3/10"}, {"1.50", "3/2"}, {"6/8", "3/4"},
      {"-3/4", "-3/4"}, {"1/3 + 1/6", "1/2"}, {"2^10", "1024"}, {"2^-2", "1/4"}, {"2^3^2", "512"},
      {"-2^2", "-4"}, {"(-2)^2", "4"}, {"--3", "3"}, {"2 - -3", "5"}, {"7 // 2", "3"}, {"-7 // 2", "-4"},
      {"-7 % 3", "2"}, {"7 % -3", "-2"}, {"ceil(7/2)", "4"}, {"ceil(-7/2)", "-3"}, {"floor(-7/2)", "-4"},
      {"abs(-3)", "3"}, {"max(3, 5, 4)", "5"}, {"min(3, 5, 4)", "3"}, {"12 / 4 / 3", "1"},
      {"12 / (4 / 3)", "9"}, {"2 + 3*4", "14"})

FORMS(test_polynomials, {"b + a", "a + b"}, {"b - a", "b - a"}, {"1 - a", "1 - a"}, {"c*b*a", "a*b*c"},
      {"a + a", "2*a"}, {"a - a", "0"}, {"3*a/4", "3*a/4"}, {"-3*a/(4*b)", "-3*a/(4*b)"},
      {"a/b/c", "a/(b*c)"}, {"a/(b/c)", "a*c/b"}, {"a^-1", "1/a"}, {"1/a^2", "1/a^2"}, {"a^0", "1"},
      {"(a*b)^3", "a^3*b^3"}, {"(2*a)^-2", "1/(4*a^2)"}, {"-a^2", "-a^2"}, {"(-a)^2", "a^2"},
      {"(a + b)^2", "a^2 + 2*a*b + b^2"}, {"(a + b)*(a - b)", "a^2 - b^2"},
      {"b + a^2 + c*a + 1", "a^2 + a*c + b + 1"}, {"2*b*c*d^2/e + floor(a/8)", "2*b*c*d^2/e + floor(a/8)"},
      {"96*a*b*c*d^2*(1 + b/(6*d) + e/(16*c*d))", "2*a*b*d*(8*c*(b + 6*d) + 3*e)"})

FORMS(test_quotients, {"(a*b + b)/b", "a + 1"}, {"(a^3 - b^3)/(a - b)", "a^2 + a*b + b^2"},
      {"(a^2 - b^2)/(a + b)", "a - b"}, {"(a + b)/(2*a + 2*b)", "1/2"}, {"1/(a + b)", "1/(a + b)"},
      {"1/(2*a + 2*b)", "1/(2*(a + b))"}, {"1/(b - a)", "-1/(a - b)"}, {"a/(a - b) - b/(a - b)", "1"},
      {"1/(a + b) + 1/(a - b)", "2*a/(a^2 - b^2)"}, {"(a + 1)/(b + 1)", "(a + 1)/(b + 1)"},
      {"a + 1/(b + 1)", "a + 1/(b + 1)"}, {"a*b/(c*(a + b))", "a*b/(c*(a + b))"},
      {"(a - 1)/(b + a - 1)", "(a - 1)/(a + b - 1)"}, {"1/(1/a + 1/b)", "a*b/(a + b)"},
      {"(a + b)^-2", "1/(a^2 + 2*a*b + b^2)"}, {"(a + b)/((a + b)*(c + d))", "1/(c + d)"},
      {"1/(1/(a + b))", "a + b"}, {"(a + b)/(a^2 - b^2)", "1/(a - b)"},
      {"(a/b + 1)/(c + 1)", "(a/b + 1)/(c + 1)"})

FORMS(test_floors, {"floor(a)", "a"}, {"floor(a + 1/2)", "a"}, {"floor(a/2 + 1/3)", "floor(a/2)"},
      {"a // 8", "floor(a/8)"}, {"(a + 8) // 8", "floor(a/8) + 1"}, {"(a - 8) // 8", "floor(a/8) - 1"},
      {"(2*a + 3) // 2", "a + 1"}, {"(a + 7) // 8", "ceil(a/8)"}, {"ceil(a/8)", "ceil(a/8)"},
      {"(a - 1) // 8 + 1", "ceil(a/8)"}, {"ceil((a + b)/c)", "ceil((a + b)/c)"},
      {"(a + b + c - 1) // c", "ceil((a + b)/c)"}, {"(a*b + c) // b", "a + floor(c/b)"},
      {"floor(-a/8)", "-ceil(a/8)"}, {"-(-a // 8)", "ceil(a/8)"}, {"(a // 2) // 3", "floor(a/6)"},
      {"(a // b) // c", "floor(a/(b*c))"}, {"(a // 2 + 1) // 3", "floor((a + 2)/6)"}, {"a // (a + b)", "0"},
      {"(a - 1) // a", "0"}, {"-a // (a + b)", "-1"}, {"(a + b + 1) // (a + b)", "1"},
      {"b*(a // b)", "b*floor(a/b)"}, {"floordiv(a, 3)", "floor(a/3)"}, {"ceildiv(a, 3)", "ceil(a/3)"})

FORMS(test_mods, {"a % 8", "a % 8"}, {"(a + 8) % 8", "a % 8"}, {"mod(a, 8)", "a % 8"}, {"(a*b) % b", "0"},
      {"(a*b + c) % b", "c % b"}, {"3*(a % 8)", "3*(a % 8)"}, {"a % 8 + 1", "a % 8 + 1"},
      {"(a + b) % c", "(a + b) % c"}, {"-(a % b)", "-(a % b)"}, {"a*(b % c)/d", "a*(b % c)/d"},
      {"(a % 8) % 4", "a % 4"}, {"b*(a // b) + a % b", "a"}, {"2*a - 2*b*(a // b)", "2*(a % b)"},
      {"a % (b*c)", "a % (b*c)"}, {"a/(b % c)", "a/(b % c)"})

FORMS(test_extrema, {"max(b, a)", "max(a, b)"}, {"max(a, a)", "a"}, {"max(a, 1)", "a"},
      {"max(a, a + 1)", "a + 1"}, {"min(a, 1)", "1"}, {"max(2*a, 2*b)", "2*max(a, b)"},
      {"max(a + c, b + c)", "c + max(a, b)"}, {"max(a*c, b*c)", "c*max(a, b)"},
      {"max(a/c, b/c)", "max(a, b)/c"}, {"max(a/2, 1)", "max(a, 2)/2"}, {"max(a, max(b, c))", "max(a, b, c)"},
      {"max(max(b, a), c)", "max(a, b, c)"}, {"max(a, max(b, a))", "max(a, b)"}, {"min(b, a)", "min(a, b)"},
      {"min(c, min(b, a))", "min(a, b, c)"}, {"-max(-a, -b)", "min(a, b)"},
      {"max(a, b) + min(a, b)", "a + b"}, {"max(a, b) - min(a, b)", "abs(a - b)"},
      {"abs(b - a)", "abs(a - b)"}, {"abs(a)", "a"}, {"abs(-a)", "a"},
      {"max(min(a, b), c)", "max(min(a, b), c)"}, {"min(max(a, b), c)", "min(c, max(a, b))"},
      {"a*max(b, c)", "a*max(b, c)"}, {"1/max(a, b)", "1/max(a, b)"}, {"a/min(a, b)", "a/min(a, b)"},
      {"a/min(a, b)*min(a, b)", "a"}, {"floor(max(a, b)/c)", "floor(max(a, b)/c)"},
      {"max(a, b) % 5", "max(a, b) % 5"}, {"2*c - 3*max(a, b)", "2*c - 3*max(a, b)"})

/* ---- errors -------------------------------------------------------------------------------------------- */

typedef struct bad_text {
    const char *text;
    size_t at; /* of the error */
} bad_text;

static void errors_have_their_place(etch_arena *arena)
{
    static const bad_text cases[] = {
        {"", 0},        {"a +", 3},        {"(a", 2},
        {"a)", 1},      {"a b", 2},        {"a + * b", 4},
        {"foo(a)", 0},  {"1 + max(a)", 4}, {"floor(a, b)", 0},
        {"mod(a)", 0},  {"a ^ b", 4},      {"a ^ (1/2)", 4},
        {"max(a,)", 6}, {"a ** b", 3},     {"3x", 1},
        {"a $ b", 2},   {"1.", 1},         {".5", 0},
        {"a & b", 2},   {"()", 1},         {"max()", 4},
        {"a = b", 2},   {"1/0", 3},        {"a/(b - b)", 9},
        {"a % 0", 5},   {"0^-1", 4},       {"1/(1/a - 1/a) + b", 17},
    };
    etch_sym *sym = etch_sym_new(arena);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t at = 99;
        ck_assert_ptr_null(etch_expr_parse(sym, cases[i].text, strlen(cases[i].text), &at));
        ck_assert_msg(at == cases[i].at, "%s: error at %zu, not at %zu", cases[i].text, at, cases[i].at);
    }
}

START_TEST(test_errors)
{
    etch_with_arena(errors_have_their_place);
}
END_TEST

/* ---- the door's small questions ------------------------------------------------------------------------ */

static void null_goes_through(etch_arena *arena)
{
    etch_sym *sym = etch_sym_new(arena);
    etch_expr a = etch_var(sym, "a"), undefined = etch_div(sym, a, etch_int(sym, 0));
    ck_assert_ptr_null(undefined);
    ck_assert_ptr_null(etch_add(sym, undefined, a));
    ck_assert_ptr_null(etch_sub(sym, a, undefined));
    ck_assert_ptr_null(etch_mul(sym, undefined, etch_int(sym, 0)));
    ck_assert_ptr_null(etch_div(sym, a, undefined));
    ck_assert_ptr_null(etch_neg(sym, undefined));
    ck_assert_ptr_null(etch_pow(sym, undefined, 0));
    ck_assert_ptr_null(etch_floor(sym, undefined));
    ck_assert_ptr_null(etch_ceil(sym, undefined));
    ck_assert_ptr_null(etch_floor_div(sym, a, undefined));
    ck_assert_ptr_null(etch_mod(sym, undefined, a));
    ck_assert_ptr_null(etch_max(sym, undefined, a));
    ck_assert_ptr_null(etch_min(sym, a, undefined));
    ck_assert_ptr_null(etch_abs(sym, undefined));
    ck_assert_ptr_null(etch_sum(sym, 2, (etch_expr[]){a, undefined}));
    ck_assert_ptr_null(etch_subst(sym, undefined, 0, NULL, NULL));
    ck_assert_ptr_null(etch_ratio(sym, 1, 0));
    ck_assert_ptr_null(etch_number(sym, "1e5", 3));
    ck_assert_int_eq(etch_equal(sym, undefined, undefined, NULL), ETCH_UNKNOWN);
    ck_assert_int_eq(etch_at_least(sym, undefined, a, NULL), ETCH_UNKNOWN);
    ck_assert(!etch_is_constant(undefined) && !etch_is_zero(undefined) &&
              !etch_is_integer_constant(undefined));
    ck_assert_ptr_null(etch_var_name(undefined));
    const etch_expr *vars;
    ck_assert_uint_eq(etch_vars_of(sym, undefined, &vars), 0);
}

START_TEST(test_null)
{
    etch_with_arena(null_goes_through);
}
END_TEST

static void parts_of_expressions(etch_arena *arena)
{
    etch_sym *sym = etch_sym_new(arena);
    etch_expr a = etch_var(sym, "a"), b = etch_var(sym, "b"), c = etch_var(sym, "c");
    ck_assert_ptr_eq(etch_var(sym, "a"), a);
    ck_assert_str_eq(etch_var_name(b), "b");
    ck_assert_ptr_null(etch_var_name(etch_add(sym, a, b)));
    ck_assert_ptr_null(etch_var_name(etch_floor_div(sym, a, b)));
    const etch_expr *vars;
    ck_assert_uint_eq(etch_vars_of(sym, parse(sym, "b*floor(c/(a + 1)) + b^2"), &vars), 3);
    ck_assert(vars[0] == a && vars[1] == b && vars[2] == c);
    ck_assert_uint_eq(etch_vars_of(sym, parse(sym, "a + c - a"), &vars), 1);
    ck_assert_ptr_eq(vars[0], c);
    ck_assert_ptr_eq(etch_sum(sym, 0, NULL), etch_int(sym, 0));
    ck_assert_ptr_eq(etch_sum(sym, 4, (etch_expr[]){a, b, c, a}), parse(sym, "2*a + b + c"));
    ck_assert_ptr_eq(etch_sum(sym, 2, (etch_expr[]){parse(sym, "1/(a+b)"), parse(sym, "(a+b-1)/(a+b)")}),
                     etch_int(sym, 1));
    ck_assert_int_eq(etch_constant_compare(sym, parse(sym, "1/3"), parse(sym, "0.333")), 1);
    ck_assert_int_eq(etch_constant_compare(sym, parse(sym, "-2^70"), parse(sym, "2^69")), -1);
    ck_assert_int_eq(etch_constant_compare(sym, parse(sym, "2^70"), parse(sym, "4^35")), 0);
}

START_TEST(test_parts)
{
    etch_with_arena(parts_of_expressions);
}
END_TEST

Suite *etch_suite(void)
{
    Suite *suite = suite_create("forms");
    ETCH_ADD_TESTS(suite, test_numbers, test_polynomials, test_quotients, test_floors, test_mods,
                   test_extrema, test_errors, test_null, test_parts);
    return suite;
}
