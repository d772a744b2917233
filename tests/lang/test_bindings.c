/* Values of params and mesh axes: where they come from, and which are refused. */
#include "specs.h"
#include "suite.h"

#include <string.h>

/* One binding of a spec. `sets` are separated by spaces; `plan` may be NULL. */
typedef struct binding_case {
    const char *text, *config, *sets, *plan;
    bool defaults;
    const char *settings; /* NULL: it fails */
    const char *messages;
} binding_case;

static void run(etch_arena *arena, const binding_case *c)
{
    spec_scene s = specs_load(arena, c->text);
    specs_expect(c->text, specs_messages(&s), "");
    ETCH_VEC(const char *) sets = {0};
    for (const char *at = c->sets ? c->sets : ""; *at;) {
        const size_t length = strcspn(at, " ");
        ETCH_PUSH(arena, &sets, etch_copy_text(arena, at, length));
        at += length + (at[length] == ' ');
    }
    const etch_plan *plan = c->plan ? etch_spec_plan(s.spec, c->plan, true, (etch_span){0, 0}) : NULL;
    ck_assert((plan != NULL) == (c->plan != NULL));
    etch_settings settings;
    const bool fine =
        etch_spec_bind(s.spec, NULL, c->config, sets.at, sets.count, c->defaults, plan, &settings);
    const char *what = etch_text(arena, "%s(sets: %s)", c->text, c->sets ? c->sets : "");
    specs_expect(what, specs_messages(&s), c->messages);
    ck_assert_msg(fine == (c->settings != NULL), "%s", what);
    if (fine)
        specs_expect(what, specs_settings(&s, &settings), c->settings);
    specs_end(&s);
}

static void run_all(etch_arena *arena, const binding_case *cases, size_t count)
{
    for (size_t i = 0; i < count; i++)
        run(arena, &cases[i]);
}
#define RUN_ALL(arena, cases) run_all((arena), (cases), sizeof(cases) / sizeof *(cases))

#define TWO "param a, b = 2\nconfig c { a = 10, b = 20 }\nconfig d { a = 30 }\n"
#define MESH "param n\nparallel p { mesh [dp, tp] }\nparallel q { mesh [dp] }\n"
#define FOLDED "parallel p { mesh [edp = dp/ep, ep]\n axis dp = (edp, ep) }\n"

static void precedence(etch_arena *arena)
{
    static const binding_case cases[] = {
        {TWO, NULL, NULL, NULL, false, "", ""},
        {TWO, NULL, NULL, NULL, true, "b = 2 (default)", ""},
        {TWO, "c", NULL, NULL, true, "a = 10 (config), b = 20 (config)", ""},
        {TWO, "d", NULL, NULL, true, "a = 30 (config), b = 2 (default)", ""},
        {TWO, "d", NULL, NULL, false, "a = 30 (config)", ""},
        {TWO, "c", "b=5", NULL, true, "a = 10 (config), b = 5 (set)", ""},
        {TWO, "c", "b=5,a=6", NULL, true, "a = 6 (set), b = 5 (set)", ""},
        {TWO, NULL, "b=5 b=7", NULL, true, "b = 7 (set)", ""},
        {"use config d\n" TWO, NULL, NULL, NULL, false, "a = 30 (config)", ""},
        {"use config d\n" TWO, "c", NULL, NULL, false, "a = 10 (config), b = 20 (config)", ""},
        /* only the spec's own `use` counts */
        {"import \"b.etch\"\n--- b.etch\nuse config d\n" TWO, NULL, NULL, NULL, false, "", ""},
    };
    RUN_ALL(arena, cases);
}

START_TEST(set_goes_before_config_and_config_before_default)
{
    etch_with_arena(precedence);
}
END_TEST

static void expressions(etch_arena *arena)
{
    static const binding_case cases[] = {
        {"param a, b = 2\n", NULL, "a=3*b", NULL, true, "a = 6 (set), b = 2 (default)", ""},
        {"param a, b = 2\n", NULL, "a=3*b", NULL, false, "a = 3*b (set)", ""},
        {"param a, b, c\n", NULL, "a=b+1,b=c+1,c=1", NULL, true, "a = 3 (set), b = 2 (set), c = 1 (set)", ""},
        {"param a, b = 2*a\n", NULL, "a=4", NULL, true, "a = 4 (set), b = 8 (default)", ""},
        {"param a\ndim A = 3*a\nparam b\n", NULL, "a=2,b=A", NULL, true, "a = 2 (set), b = 6 (set)", ""},
        {"param a, r real\n", NULL, "r=0.25,a=max(2,7//2)", NULL, true, "a = 3 (set), r = 1/4 (set)", ""},
        {"param a >= 0, b = 0, c >= -2\n", NULL, "a=0,c=-1", NULL, true,
         "a = 0 (set), b = 0 (default), c = -1 (set)", ""},
        {"param a\n", NULL, "a=123456789012345678901234567890", NULL, true,
         "a = 123456789012345678901234567890 (set)", ""},
        /* a param that the spec does not see, by its own name */
        {"import \"b.etch\" (A)\n--- b.etch\nparam h\ndim A = h\n", NULL, "h=4", NULL, true, "h = 4 (set)",
         ""},
        /* a config resolves its names in its own file */
        {"import \"b.etch\" as b\nparam n = 1\n--- b.etch\nparam n, m\nconfig c { n = 2, m = 2*n }\n", "b.c",
         NULL, NULL, true, "b.n = 2 (config), b.m = 4 (config), n = 1 (default)", ""},
    };
    RUN_ALL(arena, cases);
}

START_TEST(values_are_expressions_over_params)
{
    etch_with_arena(expressions);
}
END_TEST

static void axes(etch_arena *arena)
{
    static const binding_case cases[] = {
        {MESH, NULL, "dp=2,tp=4", "p", false, "dp = 2 (set), tp = 4 (set)", ""},
        {MESH, NULL, "tp=4", "p", true, "dp = 1 (default), tp = 4 (set)", ""},
        {MESH, NULL, "dp=2,n=4*dp", "p", false, "n = 8 (set), dp = 2 (set)", ""},
        /* without a plan, values of axes wait for one */
        {MESH, NULL, "tp=4,n=4*tp", NULL, false, "n = 16 (set), tp = 4 (set)", ""},
        {MESH, NULL, "tp=4", "q", false, NULL,
         "E0502 --set:1:1 plan 'q' has no mesh axis 'tp'\n"
         "  note a.etch:4:10 its mesh is [dp]\n"},
        {FOLDED, NULL, "dp=8,ep=4", "p", true, "dp = 8 (set), ep = 4 (set)", ""},
        {FOLDED, NULL, NULL, "p", true, "dp = 1 (default), ep = 1 (default)", ""},
        {FOLDED, NULL, "edp=8", "p", true, NULL,
         "E0506 --set:1:1 in plan 'p', 'edp' is dp/ep: its size follows from others\n"
         "  note a.etch:2:10 the plan is here\n"},
        {"parallel p { mesh [a, b]\n axis c = (a, b) }\n", NULL, "c=8", "p", true, NULL,
         "E0506 --set:1:1 in plan 'p', 'c' is a*b: its size follows from others\n"
         "  note a.etch:2:10 the plan is here\n"},
        /* an axis that is a param */
        {"param tp, dp = 4\nparallel p { mesh [dp, tp] }\n", NULL, NULL, "p", true,
         "tp = 1 (default), dp = 4 (default)", ""},
        {"param n\nconfig c { tp = 2 }\n" FOLDED "parallel q { mesh [tp] }\n", "c", NULL, "q", false,
         "tp = 2 (config)", ""},
        {MESH, NULL, "tp=0", "p", false, NULL,
         "E0504 --set:1:4 tp = 0 is less than 1\n"
         "  note a.etch:3:24 'tp' is declared here\n"},
    };
    RUN_ALL(arena, cases);
}

START_TEST(mesh_axes_of_the_plan_are_bound_like_params)
{
    etch_with_arena(axes);
}
END_TEST

static void refusals(etch_arena *arena)
{
    static const binding_case cases[] = {
        {TWO, "e", NULL, NULL, true, NULL,
         "E0500 there is no config 'e'\n"
         "  note configs: c, d\n"},
        {"param a\nconfig llama3_8b { a = 1 }\n", "llama3_9b", NULL, NULL, true, NULL,
         "E0500 there is no config 'llama3_9b'\n"
         "  note configs: llama3_8b\n"
         "  help did you mean 'llama3_8b'?\n"},
        {"param hidden\n", NULL, "hiden=2", NULL, true, NULL,
         "E0501 --set:1:1 there is no param or mesh axis 'hiden'\n"
         "  help did you mean 'hidden'?\n"},
        {"param hidden\ndim H = hidden\n", NULL, "H=2", NULL, true, NULL,
         "E0506 --set:1:1 'H' is a dim: only params have values\n"
         "  note a.etch:3:5 its size is declared here\n"},
        {"param a\n", NULL, "a=0", NULL, true, NULL,
         "E0504 --set:1:3 a = 0 is less than 1\n"
         "  note a.etch:2:7 'a' is declared here\n"},
        {"param a real\n", NULL, "a=-1/2", NULL, true, NULL,
         "E0504 --set:1:3 a = -1/2 is not above 0\n"
         "  note a.etch:2:7 'a' is declared here\n"},
        {"param a\n", NULL, "a=7/2", NULL, true, NULL,
         "E0505 --set:1:3 a = 7/2 is no integer\n"
         "  note a.etch:2:7 'a' is declared here\n"},
        {"param a, b\n", NULL, "a=b,b=a", NULL, true, NULL,
         "E0503 --set:1:7 the value of 'a' needs itself\n"
         "  note --set:1:3 'a' is given here\n"},
        {"param a\n", NULL, "a=a+1", NULL, true, NULL, "E0503 --set:1:3 the value of 'a' needs itself\n"},
        {"param a, b = 2*a\n", NULL, "a=b", NULL, true, NULL,
         "E0503 a.etch:2:14 the value of 'a' needs itself\n"
         "  note --set:1:3 'a' is given here\n"},
        {"param a, b\n", NULL, "a=4/(b-1),b=1", NULL, true, NULL,
         "E0508 --set:1:3 the value of 'a' is undefined: '4/(b - 1)' divides by zero\n"},
        {"param a\n", NULL, "a=\"x\"", NULL, true, NULL,
         "E0600 --set:1:3 a text stands where a number is needed\n"},
        {"param a\n", NULL, "a=bb", NULL, true, NULL, "E0210 --set:1:3 unknown name 'bb'\n"},
        {"param a\n", NULL, "a=1,", NULL, true, NULL,
         "E0110 --set:1:5 expected a name and its value, found end of the text\n"},
    };
    RUN_ALL(arena, cases);
}

START_TEST(a_bad_value_is_refused_at_its_place)
{
    etch_with_arena(refusals);
}
END_TEST

static void long_chain(etch_arena *arena)
{
    etch_buf text = {.arena = arena};
    etch_buf_puts(&text, "param a0 = 1\n");
    for (int i = 5000; i > 0; i--) /* each needs the one behind it */
        etch_buf_printf(&text, "param a%d = a%d\ndim D%d = %s%d\n", i, i - 1, i, i > 1 ? "D" : "a", i - 1);
    spec_scene s = specs_load(arena, text.text);
    ck_assert_ptr_null(s.spec);
    for (const etch_diag *diag = etch_diags_first(s.diags); diag; diag = diag->next)
        ck_assert_int_eq(diag->code, ETCH_E_TOO_DEEP);
    specs_end(&s);
}

START_TEST(a_chain_of_thousands_is_an_error_and_no_crash)
{
    etch_with_arena(long_chain);
}
END_TEST

static void application(etch_arena *arena)
{
    spec_scene s = specs_load(arena, "param a, b, c\n");
    etch_settings settings;
    const char *const sets[] = {"a=b+1", "b=2*c"};
    ck_assert(etch_spec_bind(s.spec, NULL, NULL, sets, 2, false, NULL, &settings));
    etch_expr value = etch_spec_value(s.spec, "a*b", "query", NULL, NULL);
    value = etch_settings_apply(s.sym, &settings, value);
    ck_assert_ptr_eq(value, etch_spec_value(s.spec, "4*c^2 + 2*c", "query", NULL, NULL));
    ck_assert_ptr_null(etch_settings_apply(s.sym, &settings, NULL));
    /* settings that speak of one another, as a caller may make them */
    const etch_setting loose[] = {{.var = etch_var(s.sym, "a"), .value = etch_var(s.sym, "b")},
                                  {.var = etch_var(s.sym, "b"), .value = etch_var(s.sym, "c")},
                                  {.var = etch_var(s.sym, "c"), .value = etch_int(s.sym, 3)}};
    const etch_settings chain = {.at = loose, .count = 3};
    ck_assert_ptr_eq(etch_settings_apply(s.sym, &chain, etch_var(s.sym, "a")), etch_int(s.sym, 3));
    specs_end(&s);
}

START_TEST(settings_are_put_in_until_nothing_changes)
{
    etch_with_arena(application);
}
END_TEST

Suite *etch_suite(void)
{
    Suite *suite = suite_create("bindings");
    ETCH_ADD_TESTS(suite, set_goes_before_config_and_config_before_default,
                   values_are_expressions_over_params, mesh_axes_of_the_plan_are_bound_like_params,
                   a_bad_value_is_refused_at_its_place, a_chain_of_thousands_is_an_error_and_no_crash,
                   settings_are_put_in_until_nothing_changes);
    return suite;
}
