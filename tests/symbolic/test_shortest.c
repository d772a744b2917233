/* The shortest form: what people see of a formula. It reads back as the same expression, is not longer than
 * the expanded form, and says a floor or maximum in one way. */
#include "oracle.h"

#include <stdio.h>
#include <string.h>

static etch_expr parse(etch_sym *sym, const char *text)
{
    size_t at;
    return etch_expr_parse(sym, text, strlen(text), &at);
}

static const char *written(etch_arena *arena, etch_sym *sym, etch_expr e, etch_form form)
{
    etch_buf out = {.arena = arena};
    etch_expr_write(sym, e, ETCH_PLAIN, form, &out);
    return out.text;
}

/* ---- golden cases -------------------------------------------------------------------------------------- */

typedef struct golden {
    const char *text, *expected;
} golden;

static const golden goldens[] = {
    /* one of max and min, in all terms */
    {"micro - max(micro - pp + stage, 0)", "min(micro, pp - stage)"},
    {"a*micro - a*max(micro - pp + stage, 0)", "a*min(micro, pp - stage)"},
    {"a*min(micro, pp - stage) + a*b*micro - a*b*max(micro - pp + stage, 0)",
     "a*min(micro, pp - stage)*(b + 1)"},
    {"a*micro + b*c*micro - (a + b*c)*max(micro - pp, 0)", "min(micro, pp)*(b*c + a)"},
    {"seq^2 - max(seq - a, 0)^2 + min(seq, a)", "seq^2 - max(seq - a, 0)^2 + seq - max(seq - a, 0)"},
    {"c + max(a - c, b - c, 0)", "max(a, b, c)"},
    {"2*max(a, b) - a - b", "abs(a - b)"},
    /* as a min, where a max of what is less than 0 would do */
    {"c + max(a - c, b - c, 0) - dp + max(-a, -b)", "max(a, b, c) - dp - min(a, b)"},
    {"max(layers, 0 - max(1 - floor(micro/pp), a - b))", "max(min(floor(micro/pp) - 1, b - a), layers)"},
    {"seq - pp*max(-(28 % pp), -stage)", "pp*min(stage, 28 % pp) + seq"},
    {"-a*floor((stage - 82)/pp)*min(pp - stage, 1)", "a*ceil((82 - stage)/pp)*min(pp - stage, 1)"},
    /* with the number that stands beside it */
    {"max(a - max(1, 2 + b - c, 1 + b - seq) + 1, 0)", "max(a - max(b - seq, b - c + 1, 0), 0)"},
    /* what is left of a number is not less than 0 */
    {"-a*floor((stage - 34)/pp)", "a*ceil((34 - stage)/pp)"},
    {"b - a*floor((stage - 34)/pp) - c*floor((stage - 34)/pp)", "ceil((34 - stage)/pp)*(a + c) + b"},
    {"a*floor((stage - 34)/pp) + b", "a*floor((stage - 34)/pp) + b"},
    {"b - floor((layers - stage)/pp)", "b - floor((layers - stage)/pp)"},
    {"b - floor(layers/pp)", "b - floor(layers/pp)"},
    /* numbers of stages, and padding */
    {"260*floor(4095/dp) + 260", "260*ceil(4096/dp)"},
    {"260*floor(4095/dp) + 30*floor(511/dp) + 290", "30*ceil(512/dp) + 260*ceil(4096/dp)"},
    {"a*floor((b - 1)/dp) + a", "a*ceil(b/dp)"},
    /* beside what a rest would merge with */
    {"4*ceil(4096/dp)*(2*dp + 3) + 7*ceil(512/dp)*(2*dp + 1) + 9 + 5/dp",
     "7*ceil(512/dp)*(2*dp + 1) + 4*ceil(4096/dp)*(2*dp + 3) + 9 + 5/dp"},
    {"4*ceil(4096/(8*dp))*(2*dp + 3) + 5/dp", "4*ceil(512/dp)*(2*dp + 3) + 5/dp"},
    {"dp - 4095 % dp", "dp - 4095 % dp"},
    {"a*(4096 % dp) + a", "a*(4096 % dp) + a"},
    {"ceil(a/dp)*ceil(b/pp)", "ceil(b/pp)*ceil(a/dp)"},
    {"6*a*floor((layers - stage + 1)/pp) + 6*a", "6*a*ceil((layers - stage + 2)/pp)"},
    {"b*floor(a/b)", "b*floor(a/b)"},
    {"stage*floor(layers/pp) + layers - pp*floor(layers/pp)", "stage*floor(layers/pp) + layers % pp"},
    {"stage*floor(layers/pp) + layers % pp - max(layers % pp - stage, 0)",
     "stage*floor(layers/pp) + min(layers % pp, stage)"},
    /* common factors, over sums as well */
    {"a*b + a*c", "a*b + a*c"},
    {"16*a*b^2*layers + 96*a*b*layers*c + 6*a*b*micro", "2*a*b*(8*layers*(b + 6*c) + 3*micro)"},
    {"layers*(a*b + c*dp + 2) + micro*(a*b + c*dp + 2)", "(layers + micro)*(a*b + c*dp + 2)"},
    {"layers*(a*b + c*dp + 2) - (a*b + c*dp + 2)", "(layers - 1)*(a*b + c*dp + 2)"},
    {"a*(b + c + dp) + floor(micro/pp)*(b + c + dp) + 3*pp", "(a + floor(micro/pp))*(b + c + dp) + 3*pp"},
    {"(a*b + a*c)/dp - (a*b + a*c)/(dp*pp)", "a*(b + c - (b + c)/pp)/dp"},
    {"floor((a*b*c + a*b*dp)/8)", "floor(a*b*(c + dp)/8)"},
    /* a sum begins with what is not subtracted */
    {"b - a", "b - a"},
    {"-a - b", "-a - b"},
    {"1 - a - b", "1 - a - b"},
};

static etch_sym *context(etch_arena *arena)
{
    static const char *const names[] = {"a", "b", "c", "seq", "layers", "micro", "dp", "pp", "stage"};
    etch_sym *sym = etch_sym_new(arena);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        (void)etch_var(sym, names[i]);
    etch_var_at_least(sym, etch_var(sym, "stage"), 0);
    return sym;
}

static void goldens_hold(etch_arena *arena)
{
    for (size_t i = 0; i < sizeof goldens / sizeof *goldens; i++) {
        etch_sym *sym = context(arena);
        etch_expr e = parse(sym, goldens[i].text);
        const char *text = written(arena, sym, e, ETCH_SHORTEST);
        ck_assert_msg(strcmp(text, goldens[i].expected) == 0, "%s is written\n%s\nnot\n%s", goldens[i].text,
                      text, goldens[i].expected);
        ck_assert_ptr_eq(parse(sym, text), e);
    }
}

/* ---- values -------------------------------------------------------------------------------------------- */

/* The texts of a sum of counts and sizes, as of stages of a pipeline, have the value of what they were made
 * of at points on the edges: the first and the last stage, fewer microbatches than stages, more ranks than
 * elements. */
static etch_expr value_at(etch_sym *sym, const char *text, int64_t layers, int64_t micro, int64_t pp,
                          int64_t stage, int64_t dp)
{
    etch_expr vars[] = {etch_var(sym, "layers"), etch_var(sym, "micro"), etch_var(sym, "pp"),
                        etch_var(sym, "stage"), etch_var(sym, "dp")};
    etch_expr values[] = {etch_int(sym, layers), etch_int(sym, micro), etch_int(sym, pp),
                          etch_int(sym, stage), etch_int(sym, dp)};
    return etch_subst(sym, parse(sym, text), 5, vars, values);
}

static const char *random_sum(etch_arena *arena, chance *c)
{
    static const char *const parts[] = {"floor(4095/dp)",
                                        "ceil(4096/dp)",
                                        "max(micro - pp + stage, 0)",
                                        "min(micro, pp - stage)",
                                        "micro",
                                        "floor((layers - stage + 1)/pp)",
                                        "floor((stage - 34)/pp)",
                                        "layers % pp",
                                        "max(layers % pp - stage, 0)",
                                        "1",
                                        "pp",
                                        "stage",
                                        "dp"};
    enum { PARTS = sizeof parts / sizeof *parts };
    etch_buf out = {.arena = arena};
    for (uint32_t i = 0; i < 8; i++)
        etch_buf_printf(&out, "%s%d*%s*%s", i ? " + " : "", (int)chance_below(c, 7) - 3,
                        parts[chance_below(c, PARTS)], parts[chance_below(c, PARTS)]);
    return out.text;
}

static void edges_have_their_values(etch_arena *arena)
{
    chance c = chance_new(91);
    for (uint32_t i = 0; i < chance_runs(300); i++) {
        etch_arena *own = etch_arena_new(etch_arena_mem(arena));
        etch_sym *sym = context(own);
        const char *made = random_sum(own, &c);
        const char *text = written(own, sym, parse(sym, made), ETCH_SHORTEST);
        for (uint32_t k = 0; k < 12; k++) {
            int64_t pp = 1 + (int64_t)chance_below(&c, 9), layers = 1 + (int64_t)chance_below(&c, 60);
            int64_t micro = 1 + (int64_t)chance_below(&c, k % 2 ? 12 : (uint64_t)pp);
            int64_t stage = k % 3 == 0 ? 0 : k % 3 == 1 ? pp - 1 : (int64_t)chance_below(&c, (uint64_t)pp);
            int64_t dp = 1 + (int64_t)chance_below(&c, k % 4 ? 64 : 9000);
            CHANCE_ASSERT(&c,
                          value_at(sym, made, layers, micro, pp, stage, dp) ==
                              value_at(sym, text, layers, micro, pp, stage, dp),
                          "%s is written %s", made, text);
        }
        etch_arena_free(own);
    }
}

/* ---- length -------------------------------------------------------------------------------------------- */

static void nothing_is_longer(etch_arena *arena)
{
    static const tree_shape shape = {"+-+*/^fcq%MmAP", "abcde2345", 8, 4, 9};
    chance c = chance_new(92);
    for (uint32_t i = 0; i < chance_runs(400); i++) {
        etch_arena *own = etch_arena_new(etch_arena_mem(arena));
        etch_sym *sym = etch_sym_new(own);
        declare_vars(sym, &c);
        etch_expr e = tree_build(sym, tree_random(own, &c, &shape));
        const char *shortest = e ? written(own, sym, e, ETCH_SHORTEST) : "";
        const char *expanded = e ? written(own, sym, e, ETCH_EXPANDED) : "";
        CHANCE_ASSERT(&c, strlen(shortest) <= strlen(expanded), "%s is longer than %s", shortest, expanded);
        etch_arena_free(own);
    }
}

PROPERTY(goldens_hold)
PROPERTY(edges_have_their_values)
PROPERTY(nothing_is_longer)

Suite *etch_suite(void)
{
    Suite *suite = suite_create("shortest");
    ETCH_ADD_TESTS(suite, test_goldens_hold, test_edges_have_their_values, test_nothing_is_longer);
    return suite;
}
