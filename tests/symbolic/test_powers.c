/* pow2(x): 1 where x is a power of two, else 0. */
#include <stdio.h>
#include <string.h>

#include "suite.h"
#include "symbolic/symbolic.h"

static etch_expr parse(etch_sym *sym, const char *text)
{
    size_t at;
    etch_expr e = etch_expr_parse(sym, text, strlen(text), &at);
    ck_assert_msg(e != NULL, "%s", text);
    return e;
}

static void check_text(etch_sym *sym, const char *text, const char *prints)
{
    ck_assert_str_eq(etch_expr_text(sym, parse(sym, text)), prints);
}

/* ---- forms --------------------------------------------------------------------------------------------- */

static void forms(etch_arena *arena)
{
    static const struct {
        const char *text, *prints;
    } cases[] = {
        {"pow2(0) + pow2(-4) + pow2(3) + pow2(1/2)", "0"},
        {"pow2(1) + pow2(2) + pow2(2^62) + pow2(2^63) + pow2(2^64) + pow2(2^1000)", "6"},
        {"pow2(2^63 + 1) + pow2(-2^63) + pow2(-2^64) + pow2(3*2^64) + pow2(2^64/3)", "0"},
        {"pow2(a)", "pow2(a)"},
        {"pow2(2^70*a)", "pow2(a)"},
        {"pow2(6*a + 2*b)", "pow2(3*a + b)"},
        {"pow2(3*2^70*a)", "0"},
        {"pow2(-a)", "0"},
        {"pow2(b*a^3)", "pow2(b)*pow2(a)"},
        {"pow2(a*b + 2*a)", "pow2(b + 2)*pow2(a)"},
        {"pow2(a/2)", "pow2(a/2)"},
        {"pow2(a/b)", "pow2(a/b)"},
        {"pow2(a + 1/3)", "0"},
        {"pow2(r + 1/3)", "pow2((3*r + 1)/3)"},
        {"pow2(1/(a + b))", "pow2(1/(a + b))"},
        {"pow2(3*r)", "pow2(3*r)"},
        {"pow2(2*z)", "pow2(z)"},
        {"pow2(a*n)", "pow2(n)*pow2(a)"},
        {"pow2(n^2)", "pow2(n^2)"},
        {"pow2(pow2(a))", "pow2(a)"},
        {"sum(i, 1, 9, pow2(i))", "4"},
        {"sum(i, 1, a, b*pow2(i*c))", "b*sum(i, 0, a - 1, pow2(i + 1))*pow2(c)"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        etch_sym *sym = etch_sym_new(arena);
        for (const char *name = "abcnrz"; *name; name++)
            etch_var(sym, (char[]){*name, 0});
        etch_var_at_least(sym, etch_var(sym, "n"), -5);
        etch_var_at_least(sym, etch_var(sym, "z"), 0);
        etch_var_real(sym, etch_var(sym, "r"));
        check_text(sym, cases[i].text, cases[i].prints);
        ck_assert_ptr_eq(parse(sym, cases[i].text), parse(sym, cases[i].prints));
    }
}

static void calculus(etch_arena *arena)
{
    etch_sym *sym = etch_sym_new(arena);
    etch_expr a = etch_var(sym, "a");
    bool piecewise = false;
    ck_assert_ptr_eq(etch_diff(sym, parse(sym, "a^2*pow2(a + b)"), a, &piecewise),
                     parse(sym, "2*a*pow2(a + b)"));
    ck_assert(piecewise);
    ck_assert_ptr_eq(etch_leading(sym, parse(sym, "a^2*pow2(a + b) + a + pow2(a)"), a),
                     parse(sym, "a^2*pow2(a + b)"));
    ck_assert_ptr_eq(etch_relax(sym, parse(sym, "pow2(floor(a/3)) + floor(a/3)")),
                     parse(sym, "pow2(floor(a/3)) + a/3"));
    ck_assert_ptr_null(etch_pow2(sym, NULL));
    etch_expr b = etch_var(sym, "b"), three = etch_int(sym, 3);
    etch_expr quotient = parse(sym, "a/pow2(b)");
    ck_assert_ptr_null(etch_subst(sym, quotient, 1, &b, &three));
    ck_assert_str_eq(etch_expr_text(sym, etch_subst(sym, quotient, 1, &b, &a)), "a/pow2(a)");
}

/* ---- facts --------------------------------------------------------------------------------------------- */

static etch_status assume(etch_sym *sym, const char *text, int64_t *other)
{
    return etch_assume_equal(sym, parse(sym, text), etch_int(sym, 1), 7, other);
}

static void facts(etch_arena *arena)
{
    etch_sym *sym = etch_sym_new(arena);
    etch_expr before = parse(sym, "a*pow2(tp)"), tp = etch_var(sym, "tp"), n = etch_var(sym, "n");
    int64_t other;
    ck_assert_int_eq(assume(sym, "pow2(tp)", &other), ETCH_OK);
    check_text(sym, "a*pow2(tp) + pow2(2*tp) + pow2(tp*b)", "a + pow2(b) + 1");
    ck_assert_ptr_eq(etch_add(sym, before, etch_int(sym, 0)), etch_var(sym, "a"));
    check_text(sym, "pow2(3*tp)", "0");
    ck_assert_int_eq(etch_divides(sym, etch_int(sym, 2), tp, NULL), ETCH_NO);
    /* what was made before the fact is false of values that break it */
    etch_expr three = etch_int(sym, 3);
    ck_assert(etch_is_zero(etch_subst(sym, before, 1, &tp, &three)));
    /* the fact is named when another one contradicts it */
    ck_assert_int_eq(etch_assume_divides(sym, etch_int(sym, 6), tp, 8, &other), ETCH_EINPUT);
    ck_assert_int_eq(other, 7);
    ck_assert_int_eq(etch_assume_equal(sym, tp, etch_int(sym, 12), 8, &other), ETCH_EINPUT);
    ck_assert_int_eq(other, 7);
    /* and everything is as it was */
    ck_assert_int_eq(etch_assume_divides(sym, tp, n, 8, &other), ETCH_OK);
    check_text(sym, "pow2(n/tp)", "pow2(n)");
    ck_assert_int_eq(assume(sym, "pow2(n)", &other), ETCH_OK);
    ck_assert_int_eq(etch_assume_equal(sym, n, parse(sym, "4*m"), 9, &other), ETCH_OK);
    check_text(sym, "pow2(m)", "1");
}

/* A witness satisfies the facts. */
static void witnesses(etch_arena *arena)
{
    static const struct {
        const char *power, *least, *most,
            *statement; /* false for some tp that is a power of two in this range */
    } cases[] = {{"pow2(tp)", "1", "12", "4 - tp"},         {"pow2(tp)", "5", "100", "8 - tp"},
                 {"pow2(tp)", "1000", "1100", "1000 - tp"}, {"pow2(tp/3)", "1", "100", "3 - tp"},
                 {"pow2(tp + 1)", "1", "100", "2 - tp"},    {"pow2(n/tp)", "1", "100", "n - 2*tp"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        etch_sym *sym = etch_sym_new(arena);
        etch_expr tp = etch_var(sym, "tp"), power = parse(sym, cases[i].power);
        etch_expr statement = parse(sym, cases[i].statement);
        etch_witness w;
        ck_assert_int_eq(assume(sym, cases[i].power, NULL), ETCH_OK);
        ck_assert_int_eq(etch_assume_at_least(sym, tp, parse(sym, cases[i].least), 1, NULL), ETCH_OK);
        ck_assert_int_eq(etch_assume_at_least(sym, parse(sym, cases[i].most), tp, 1, NULL), ETCH_OK);
        ck_assert_msg(etch_at_least(sym, statement, etch_int(sym, 0), &w) == ETCH_NO, "%s", cases[i].power);
        ck_assert_ptr_eq(etch_subst(sym, power, w.count, w.vars, w.values), etch_int(sym, 1));
        etch_expr value = etch_subst(sym, statement, w.count, w.vars, w.values);
        ck_assert_int_eq(etch_constant_compare(sym, value, etch_int(sym, 0)), -1);
    }
}

/* A long chain of divisors is followed as far as the budget of steps allows, and no further. */
static void chains(etch_arena *arena)
{
    enum { LINKS = 40 };
    etch_sym *sym = etch_sym_new(arena);
    char name[16];
    ck_assert_int_eq(assume(sym, "pow2(v0)", NULL), ETCH_OK);
    for (int i = 1; i < LINKS; i++)
        for (int k = i > 3 ? i - 3 : 0; k < i; k++) {
            snprintf(name, sizeof name, "v%d", i);
            etch_expr divisor = etch_var(sym, name);
            snprintf(name, sizeof name, "v%d", k);
            ck_assert_int_eq(etch_assume_divides(sym, divisor, etch_var(sym, name), i, NULL), ETCH_OK);
        }
    check_text(sym, "pow2(v1)", "1");
    check_text(sym, "pow2(v9)", "1");
}

/* ---- compiled ------------------------------------------------------------------------------------------ */

static void programs(etch_arena *arena)
{
    static const int64_t values[] = {1, 2, 3, INT64_C(1) << 61, INT64_C(1) << 62, INT64_MAX, INT64_MAX - 1,
                                     6};
    enum { COUNT = sizeof values / sizeof *values };
    /* of a, of 2^62*a^2 (up to 2^188) and of a/3; 1/pow2(a) is undefined where a is no power of two */
    static const int64_t expected[3][COUNT] = {
        {1, 1, 0, 1, 1, 0, 0, 0}, {3, 3, 1, 3, 3, 1, 1, 1}, {0, 0, 1, 0, 0, 0, 0, 1}};
    etch_sym *sym = etch_sym_new(arena);
    const etch_expr exprs[] = {parse(sym, "pow2(a)"),
                               parse(sym, "pow2(2^62*a^2 + 0*a) + pow2(a*a + 2^63*a^0 - 2^63) + pow2(4^62)"),
                               parse(sym, "pow2(a/3)"), parse(sym, "1/pow2(a)")};
    etch_program *program;
    etch_workspace *work;
    int64_t found[4 * COUNT];
    unsigned char kinds[4 * COUNT];
    const etch_column columns[] = {{.values = values}};
    ck_assert_int_eq(etch_compile(sym, 4, exprs, &program), ETCH_OK);
    ck_assert_int_eq(etch_workspace_new(&work), ETCH_OK);
    ck_assert_int_eq(etch_program_evaluate(program, COUNT, columns, found, kinds, work), ETCH_OK);
    for (int f = 0; f < 3; f++)
        for (int i = 0; i < COUNT; i++) {
            ck_assert_int_eq(kinds[f * COUNT + i], ETCH_VALUE_INTEGER);
            ck_assert_msg(found[f * COUNT + i] == expected[f][i], "formula %d of %lld is %lld", f,
                          (long long)values[i], (long long)found[f * COUNT + i]);
        }
    for (int i = 0; i < COUNT; i++)
        ck_assert_int_eq(kinds[3 * COUNT + i], expected[0][i] ? ETCH_VALUE_INTEGER : ETCH_VALUE_UNDEFINED);
    etch_workspace_free(work);
    etch_program_free(program);
}

static void large_values(etch_arena *arena)
{
    static const int64_t values[] = {0, INT64_MAX - 1};
    etch_sym *sym = etch_sym_new(arena);
    /* at 2^63 - 2 and 0: (a + 2)^k is 2^(63k), beyond each width of integers; + 1 is none */
    const etch_expr exprs[] = {parse(sym, "pow2((a + 2)^1 + b - b)"), parse(sym, "pow2((a + 2)^2 + b)"),
                               parse(sym, "pow2((a + 2)^3 + b)"), parse(sym, "pow2((a + 2)^2 + b + 1)"),
                               parse(sym, "pow2((a + 2)^3 + b + 1)")};
    static const int64_t zero[] = {0};
    etch_program *program;
    etch_workspace *work;
    int64_t found[10];
    unsigned char kinds[10];
    etch_var_at_least(sym, etch_var(sym, "b"), 0);
    const etch_column columns[] = {{.values = values}, {.values = zero, .same = true}};
    ck_assert_int_eq(etch_compile(sym, 5, exprs, &program), ETCH_OK);
    ck_assert_int_eq(etch_workspace_new(&work), ETCH_OK);
    ck_assert_int_eq(etch_program_evaluate(program, 2, columns, found, kinds, work), ETCH_OK);
    for (int i = 0; i < 10; i++)
        ck_assert_msg(kinds[i] == ETCH_VALUE_INTEGER && found[i] == (i < 6), "formula %d: %lld", i / 2,
                      (long long)found[i]);
    etch_workspace_free(work);
    etch_program_free(program);
}

#define CASE(name)             \
    START_TEST(test_##name)    \
    {                          \
        etch_with_arena(name); \
    }                          \
    END_TEST

CASE(forms)
CASE(calculus)
CASE(facts)
CASE(witnesses)
CASE(chains)
CASE(programs)
CASE(large_values)

Suite *etch_suite(void)
{
    Suite *suite = suite_create("powers");
    ETCH_ADD_TESTS(suite, test_forms, test_calculus, test_facts, test_witnesses, test_chains, test_programs,
                   test_large_values);
    return suite;
}
