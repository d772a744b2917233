/* Notations: what is written in one of them reads back as the same expression, in every form, and does not
 * depend on history. Golden cases show what people see. */
#include "oracle.h"

#include <stdio.h>
#include <string.h>

static const etch_notation all[] = {ETCH_PLAIN, ETCH_LATEX, ETCH_C, ETCH_PYTHON, ETCH_JSON};
static const char *const notation_names[] = {"plain", "LaTeX", "C", "Python", "JSON"};
static const char *const form_names[] = {"shortest", "expanded", "factored", "relative"};
enum { NOTATIONS = 5, FORMS = 4 };

static etch_expr parse(etch_sym *sym, const char *text)
{
    size_t at;
    return etch_expr_parse(sym, text, strlen(text), &at);
}

static const char *written(etch_arena *arena, etch_sym *sym, etch_expr e, etch_notation notation,
                           etch_form form)
{
    etch_buf out = {.arena = arena};
    etch_expr_write(sym, e, notation, form, &out);
    return out.text;
}

/* ---- reading back -------------------------------------------------------------------------------------- */

static void check_reads_back(etch_arena *arena, etch_sym *sym, etch_expr e, const chance *c)
{
    for (uint32_t n = 0; n < NOTATIONS; n++)
        for (uint32_t f = 0; f < FORMS && all[n] != ETCH_LATEX; f++) {
            const char *text = written(arena, sym, e, all[n], (etch_form)f);
            size_t at;
            etch_expr back = etch_expr_read(sym, text, strlen(text), all[n], &at);
            CHANCE_ASSERT(c, back == e, "%s, written as %s %s: %s, reads as %s", etch_expr_text(sym, e),
                          form_names[f], notation_names[n], text,
                          back ? etch_expr_text(sym, back) : "an error");
        }
}

/* Braces, brackets and \left..\right come in pairs. */
static void check_balanced(const char *latex, const chance *c)
{
    int braces = 0, brackets = 0, sides = 0;
    for (const char *t = latex; *t; t++) {
        braces += (*t == '{') - (*t == '}');
        brackets += (*t == '(') - (*t == ')');
        sides += (strncmp(t, "\\left", 5) == 0) - (strncmp(t, "\\right", 6) == 0);
        CHANCE_ASSERT(c, braces >= 0 && brackets >= 0 && sides >= 0, "%s closes what is not open", latex);
    }
    CHANCE_ASSERT(c, braces == 0 && brackets == 0 && sides == 0, "%s leaves something open", latex);
}

static void reads_back(etch_arena *arena, uint64_t seed, const tree_shape *shape, uint32_t runs)
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
        etch_expr e = tree_build(sym, tree_random(own, &c, shape));
        if (!e)
            continue;
        check_reads_back(own, sym, e, &c);
        for (uint32_t f = 0; f < FORMS; f++)
            check_balanced(written(own, sym, e, ETCH_LATEX, (etch_form)f), &c);
    }
}

static void polynomials_read_back(etch_arena *arena)
{
    reads_back(arena, 61, &(tree_shape){"+-**/^N", "abcde23", 8, 5, 9}, 1000);
}

static void fractions_read_back(etch_arena *arena)
{
    reads_back(arena, 62, &(tree_shape){"+-*/", "(((a2", 4, 4, 5}, 500);
}

static void everything_reads_back(etch_arena *arena)
{
    reads_back(arena, 63, &(tree_shape){"+-*/^fcq%MmANP", "abcde2345(", 8, 4, 9}, 1500);
}

static void large_numbers_read_back(etch_arena *arena)
{
    reads_back(arena, 64, &(tree_shape){"+-**/^fcq%MmAP", "abcde2345(", 8, 4, INT64_MAX / 2 - 1}, 500);
}

/* c * sum(i, low, high, body) + d, with what the index is added to and multiplied by. */
static void sums_read_back(etch_arena *arena)
{
    static const tree_shape outside = {"+-*fM", "abc23", 4, 2, 9},
                            inside = {"+-*fcq%MmAP", "abc2345", 4, 3, 9};
    chance c = chance_new(65);
    for (uint32_t i = 0; i < chance_runs(150); i++) {
        etch_arena *own = etch_arena_new(etch_arena_mem(arena));
        etch_sym *sym = etch_sym_new(own);
        declare_vars(sym, &c);
        etch_expr index = etch_index(sym, 0);
        etch_expr body = tree_build(sym, tree_random(own, &c, &inside)),
                  factor = tree_build(sym, tree_random(own, &c, &outside));
        body = etch_floor(sym,
                          etch_div(sym, etch_add(sym, body, etch_mul(sym, factor, index)), etch_int(sym, 7)));
        etch_expr low = tree_build(sym, tree_random(own, &c, &outside)),
                  high = tree_build(sym, tree_random(own, &c, &outside));
        etch_expr sum = etch_sum_over(sym, index, low, high, body);
        sum = etch_add(sym, etch_mul(sym, sum, factor), low);
        if (sum)
            check_reads_back(own, sym, sum, &c);
        etch_arena_free(own);
    }
}

/* ---- history ------------------------------------------------------------------------------------------- */

/* Texts are the same in a context where other expressions were built before, in another order. */
static void notations_have_no_history(etch_arena *arena)
{
    enum { BATCH = 12 };
    static const tree_shape shape = {"+-+*/^fcq%MmAP", "abcde2345(", 8, 4, 9};
    chance c = chance_new(66);
    for (uint32_t i = 0; i < chance_runs(40); i++) {
        etch_arena *own = etch_arena_new(etch_arena_mem(arena));
        etch_sym *first = etch_sym_new(own), *second = etch_sym_new(own);
        declare_vars(first, NULL);
        declare_vars(second, NULL);
        tree *trees[BATCH];
        etch_expr there[BATCH];
        for (uint32_t k = 0; k < BATCH; k++)
            trees[k] = tree_random(own, &c, &shape);
        for (uint32_t k = BATCH; k-- > 0;) {
            (void)tree_build(second, tree_random(own, &c, &shape));
            there[k] = tree_build(second, trees[k]);
        }
        for (uint32_t k = 0; k < BATCH; k++)
            for (uint32_t n = 0; n < NOTATIONS * FORMS; n++) {
                const char *a =
                    written(own, first, tree_build(first, trees[k]), all[n / FORMS], (etch_form)(n % FORMS));
                const char *b = written(own, second, there[k], all[n / FORMS], (etch_form)(n % FORMS));
                CHANCE_ASSERT(&c, strcmp(a, b) == 0, "%s is written %s, elsewhere %s",
                              tree_str(own, trees[k]), a, b);
            }
        etch_arena_free(own);
    }
}

/* ---- golden cases -------------------------------------------------------------------------------------- */

typedef struct golden {
    const char *text;
    etch_notation notation;
    etch_form form;
    const char *expected;
} golden;

static const golden goldens[] = {
    {"2*B*S*H^2/tp + floor(S/8)", ETCH_LATEX, ETCH_EXPANDED,
     "\\frac{2\\,B\\,S\\,H^{2}}{\\mathrm{tp}} + \\left\\lfloor \\frac{S}{8} \\right\\rfloor"},
    {"(B + 1)/(S + H) - 1/2", ETCH_LATEX, ETCH_EXPANDED, "-\\frac{1}{2} + \\frac{B + 1}{S + H}"},
    {"3*ceil((B + S)/8)*H", ETCH_LATEX, ETCH_EXPANDED,
     "3\\,H\\,\\left\\lceil \\frac{B + S}{8} \\right\\rceil"},
    {"max(H, 3)/(B + 1)", ETCH_LATEX, ETCH_EXPANDED, "\\frac{\\max\\left(H, 3\\right)}{B + 1}"},
    {"B % 8 + abs(S - H)", ETCH_LATEX, ETCH_EXPANDED, "B \\bmod 8 + \\left|S - H\\right|"},
    {"S*(B % 8)", ETCH_LATEX, ETCH_EXPANDED, "S\\,\\left(B \\bmod 8\\right)"},
    {"3*B*(max(S - H + 1, 0) - max(S - H, 0)) + 1", ETCH_LATEX, ETCH_EXPANDED,
     "3\\,B\\,\\left[S - H \\ge 0\\right] + 1"},
    {"max(B - 3, 0) - max(B - 4, 0)", ETCH_LATEX, ETCH_EXPANDED, "\\left[B - 4 \\ge 0\\right]"},
    {"kv_heads*H'", ETCH_LATEX, ETCH_EXPANDED, "\\mathrm{kv\\_heads}\\,H'"},
    {"sum(i, 1, B, floor(i*S/8))", ETCH_LATEX, ETCH_EXPANDED,
     "\\sum_{i=0}^{B - 1} \\left\\lfloor \\frac{S\\,i + S}{8} \\right\\rfloor"},
    {"2*B*S*H^2/tp + floor(S/8)", ETCH_C, ETCH_EXPANDED, "2.0*B*S*H*H/tp + floor(S/8.0)"},
    {"B/S^2 + H^9", ETCH_C, ETCH_EXPANDED, "pow(H, 9.0) + B/(S*S)"},
    {"B/(S^2*H) - 1/2", ETCH_C, ETCH_EXPANDED, "-1.0/2.0 + B/(S*S*H)"},
    {"max(B, S, H) + (B % 8)", ETCH_C, ETCH_EXPANDED, "B - 8.0*floor(B/8.0) + fmax(B, fmax(S, H))"},
    {"int*H'", ETCH_C, ETCH_EXPANDED, "_x69nt*H_x27"},
    {"2*B*S*H^2/tp + floor(S/8)", ETCH_PYTHON, ETCH_EXPANDED, "2*B*S*H**2/tp + S//8"},
    {"B*floor(S/8) - ceil(H/8)", ETCH_PYTHON, ETCH_EXPANDED, "B*(S//8) - (-(-H//8))"},
    {"floor(S/8)/2 + 1/3 + 1/floor(S/8)", ETCH_PYTHON, ETCH_EXPANDED,
     "Rational(1, 2)*(S//8) + Rational(1, 3) + Rational(1)/(S//8)"},
    {"lambda*H'", ETCH_PYTHON, ETCH_EXPANDED, "_x6Cambda*H_x27"},
    {"sum(i, 1, B, floor(i*S/8))", ETCH_PYTHON, ETCH_EXPANDED, "Sum((S*i + S)//8, (i, 0, B - 1))"},
    {"sum(i, 1, B, floor(i*S/8))", ETCH_PLAIN, ETCH_EXPANDED, "sum(i, 0, B - 1, floor((S*i + S)/8))"},
    {"24/11*B/tp - 1/2", ETCH_JSON, ETCH_EXPANDED,
     "{\"terms\": [{\"c\": \"24/11\", \"m\": {\"B\": 1, \"tp\": -1}}, {\"c\": \"-1/2\", \"m\": {}}]}"},
    {"B*floor(S/8)^2", ETCH_JSON, ETCH_EXPANDED,
     "{\"terms\": [{\"c\": \"1\", \"m\": {\"B\": 1}, \"f\": [{\"op\": \"floor\", \"args\": [{\"terms\": "
     "[{\"c\": "
     "\"1/8\", \"m\": {\"S\": 1}}]}], \"power\": 2}]}]}"},
    {"0", ETCH_JSON, ETCH_EXPANDED, "{\"terms\": []}"},
    {"96*B*S*L*H^2 + 16*B*S^2*L*H + 6*B*S*V*H", ETCH_PLAIN, ETCH_FACTORED, "2*B*S*H*(8*L*(S + 6*H) + 3*V)"},
    {"96*B*S*L*H^2 + 16*B*S^2*L*H + 6*B*S*V*H", ETCH_PLAIN, ETCH_RELATIVE,
     "16*B*S^2*H*L*(1 + 6*H/S + 3*V/(8*S*L))"},
    {"B^2 + B + 1", ETCH_PLAIN, ETCH_FACTORED, "B^2 + B + 1"},
    {"B*S/6 + B*H/4", ETCH_PLAIN, ETCH_FACTORED, "B*(2*S + 3*H)/12"},
    {"(B*S + B*H)/(L + 1)", ETCH_PLAIN, ETCH_FACTORED, "B*(S + H)/(L + 1)"},
    {"-B*S - B*H", ETCH_PLAIN, ETCH_FACTORED, "-B*(S + H)"},
};

static void goldens_hold(etch_arena *arena)
{
    for (size_t i = 0; i < sizeof goldens / sizeof *goldens; i++) {
        etch_sym *sym = etch_sym_new(arena);
        const golden *g = &goldens[i];
        for (const char *name = "BSH"; *name; name++)
            etch_var(sym, (char[]){*name, 0});
        const char *text = written(arena, sym, parse(sym, g->text), g->notation, g->form);
        ck_assert_msg(strcmp(text, g->expected) == 0, "%s is written\n%s\nnot\n%s", g->text, text,
                      g->expected);
    }
}

/* Equation 3 of Narayanan et al. (2021), as it is printed there and multiplied out. */
static void narayanan_is_one_expression(etch_arena *arena)
{
    etch_sym *sym = etch_sym_new(arena);
    etch_expr published = parse(sym, "96*B*S*L*H^2*(1 + S/(6*H) + V/(16*L*H))");
    ck_assert_ptr_eq(published, parse(sym, "96*B*S*L*H^2 + 16*B*S^2*L*H + 6*B*S*V*H"));
    for (uint32_t n = 0; n < NOTATIONS; n++)
        for (uint32_t f = 0; f < FORMS && all[n] != ETCH_LATEX; f++) {
            const char *text = written(arena, sym, published, all[n], (etch_form)f);
            size_t at;
            ck_assert_ptr_eq(etch_expr_read(sym, text, strlen(text), all[n], &at), published);
        }
}

static void undefined_is_written(etch_arena *arena)
{
    static const char *const expected[] = {"undefined", "\\text{undefined}", "NAN", "undefined", "null"};
    etch_sym *sym = etch_sym_new(arena);
    for (uint32_t n = 0; n < NOTATIONS; n++)
        ck_assert_str_eq(written(arena, sym, NULL, all[n], ETCH_FACTORED), expected[n]);
}

/* ---- errors of reading --------------------------------------------------------------------------------- */

typedef struct bad_text {
    etch_notation notation;
    const char *text;
    size_t at;
} bad_text;

static const bad_text bad_texts[] = {
    {ETCH_PLAIN, "a +", 3},
    {ETCH_PLAIN, "a**2", 2},
    {ETCH_PLAIN, "Rational(1, 2)", 0},
    {ETCH_PLAIN, "sum(1, 2, 3, 4)", 4},
    {ETCH_PLAIN, "sum(i, 1, 2)", 11},
    {ETCH_C, "a//2", 2},
    {ETCH_C, "a % 2", 2},
    {ETCH_C, "fmax(a)", 6},
    {ETCH_C, "fmax(a, b, c)", 9},
    {ETCH_C, "fmax(a, fmax(b, c)", 18},
    {ETCH_PYTHON, "a^2", 1},
    {ETCH_PYTHON, "Sum(i, (i, 1))", 12},
    {ETCH_PYTHON, "Sum(i) + 1", 5},
    {ETCH_LATEX, "a", 0},
    {ETCH_JSON, "", 0},
    {ETCH_JSON, "{\"terms\": [}", 11},
    {ETCH_JSON, "{\"terms\": []} x", 14},
    {ETCH_JSON, "{\"other\": []}", 9},
    {ETCH_JSON, "{\"terms\": [{\"c\": \"1/\"}]}", 21},
    {ETCH_JSON, "{\"terms\": [{\"c\": \"x\"}]}", 20},
    {ETCH_JSON, "{\"terms\": [{\"c\": \"1\", \"m\": {\"a\": 1.5}}]}", 34},
    {ETCH_JSON, "{\"terms\": [{\"c\": \"1\", \"m\": {\"#1\": 1}}]}", 0},
    {ETCH_JSON, "{\"terms\": [{\"c\": \"1\", \"f\": [{\"op\": \"sin\", \"args\": []}]}]}", 53},
};

static void bad_texts_are_refused(etch_arena *arena)
{
    etch_sym *sym = etch_sym_new(arena);
    for (size_t i = 0; i < sizeof bad_texts / sizeof *bad_texts; i++) {
        const bad_text *b = &bad_texts[i];
        size_t at = 12345;
        etch_expr e = etch_expr_read(sym, b->text, strlen(b->text), b->notation, &at);
        ck_assert_msg(!e && at == b->at, "%s: %s, error at %zu", b->text, e ? "read" : "refused", at);
    }
}

/* Any prefix and any changed byte of a text is read or refused. */
static void broken_texts_are_survived(etch_arena *arena)
{
    chance c = chance_new(67);
    etch_sym *sym = etch_sym_new(arena);
    etch_expr e = parse(sym, "a*floor(b/8)^2 + max(a, b, 7)/3 - sum(i, 1, a, ceil(i*b/8))/(a + b)");
    for (uint32_t n = 0; n < NOTATIONS; n++) {
        const char *text = written(arena, sym, e, all[n], ETCH_EXPANDED);
        size_t length = strlen(text), at;
        for (size_t cut = 0; cut < length; cut++) {
            etch_expr read = etch_expr_read(sym, text, cut, all[n], &at);
            ck_assert_msg(read || at <= cut, "%.*s: error at %zu", (int)cut, text, at);
        }
        for (uint32_t i = 0; i < chance_runs(500); i++) {
            char *changed = etch_copy_text(arena, text, length);
            changed[chance_below(&c, length)] = "()[]{},:/*+-^%\"\\#ai0 "[chance_below(&c, 21)];
            etch_expr read = etch_expr_read(sym, changed, length, all[n], &at);
            ck_assert_msg(read || at <= length, "%s: error at %zu", changed, at);
        }
    }
}

/* ---- assignments --------------------------------------------------------------------------------------- */

static void shared_functions_are_temporaries(etch_arena *arena)
{
    etch_sym *sym = etch_sym_new(arena);
    etch_expr roots[] = {parse(sym, "B*floor(S/8) + max(B, S)"), parse(sym, "H*floor(S/8)/(B + H)"),
                         parse(sym, "max(floor(S/8), H)/(B + H) + 1"),
                         parse(sym, "B*floor(S/8) + max(B, S)")};
    static const char *const names[] = {"x", "y", "z", "w"};
    etch_buf c = {.arena = arena}, python = {.arena = arena};
    etch_exprs_write(sym, 4, roots, names, ETCH_C, ETCH_EXPANDED, &c);
    ck_assert_str_eq(c.text, "const double t1 = floor(S/8.0);\n"
                             "const double t2 = B + H;\n"
                             "const double x = B*t1 + fmax(B, S);\n"
                             "const double y = H*t1/t2;\n"
                             "const double z = 1.0 + fmax(H, t1)/t2;\n"
                             "const double w = x;\n");
    etch_exprs_write(sym, 2, roots, names, ETCH_PYTHON, ETCH_EXPANDED, &python);
    ck_assert_str_eq(python.text, "t1 = S//8\nx = B*t1 + max(B, S)\ny = H*t1/(B + H)\n");
}

static void temporaries_keep_off_names(etch_arena *arena)
{
    etch_sym *sym = etch_sym_new(arena);
    etch_expr roots[] = {parse(sym, "t1*floor(S/8)"), parse(sym, "floor(S/8) + 1")};
    static const char *const names[] = {"t_7", "y"};
    etch_buf out = {.arena = arena};
    etch_exprs_write(sym, 2, roots, names, ETCH_PYTHON, ETCH_EXPANDED, &out);
    ck_assert_str_eq(out.text, "t__1 = S//8\nt_7 = t1*t__1\ny = t__1 + 1\n");
}

/* The index of a sum is none of the variables; what is inside depends on it and stays there. */
static void indices_keep_off_names(etch_arena *arena)
{
    etch_sym *sym = etch_sym_new(arena);
    etch_expr sum = parse(sym, "i + sum(k, 0, n, floor((i*k + 1)/8) + floor((i*k + 1)/8)^2)");
    static const char *const names[] = {"x"};
    etch_buf out = {.arena = arena};
    etch_exprs_write(sym, 1, &sum, names, ETCH_PLAIN, ETCH_EXPANDED, &out);
    ck_assert_str_eq(out.text,
                     "x = i + sum(i_, 0, n, floor((i*i_ + 1)/8)) + sum(i_, 0, n, floor((i*i_ + 1)/8)^2)\n");
}

PROPERTY(polynomials_read_back)
PROPERTY(fractions_read_back)
PROPERTY(everything_reads_back)
PROPERTY(large_numbers_read_back)
PROPERTY(sums_read_back)
PROPERTY(notations_have_no_history)
PROPERTY(goldens_hold)
PROPERTY(narayanan_is_one_expression)
PROPERTY(undefined_is_written)
PROPERTY(bad_texts_are_refused)
PROPERTY(broken_texts_are_survived)
PROPERTY(shared_functions_are_temporaries)
PROPERTY(temporaries_keep_off_names)
PROPERTY(indices_keep_off_names)

Suite *etch_suite(void)
{
    Suite *suite = suite_create("notations");
    ETCH_ADD_TESTS(suite, test_polynomials_read_back, test_fractions_read_back, test_everything_reads_back,
                   test_large_numbers_read_back, test_sums_read_back, test_notations_have_no_history,
                   test_goldens_hold, test_narayanan_is_one_expression, test_undefined_is_written,
                   test_bad_texts_are_refused, test_broken_texts_are_survived,
                   test_shared_functions_are_temporaries, test_temporaries_keep_off_names,
                   test_indices_keep_off_names);
    return suite;
}
