/* Pairs of query and key that an attention is counted by, against counting them one by one. */
#include "sample.h"
#include "suite.h"

#include "graph/ir/row.h"

#include <check.h>
#include <string.h>

static const etch_span nowhere = {0, 0};

static etch_expr read(sample *x, const char *text)
{
    size_t at;
    etch_expr e = etch_expr_parse(x->sym, text, strlen(text), &at);
    ck_assert_msg(e != NULL, "%s: error at %zu", text, at);
    return e;
}

/* Pairs of `s` queries, the last of which sees `t` keys, with a window of `w`: FLOP of a causal attention
 * whose keys and values have one element, 4 of each pair. */
static etch_expr pairs_of(sample *x, etch_expr s, etch_expr t, etch_expr w)
{
    etch_graph *graph = x->graph;
    etch_dim *queries = etch_graph_dim(graph, "Q", s, false, nowhere);
    etch_dim *keys = etch_graph_dim(graph, "T", t, false, nowhere);
    etch_dim *width = etch_graph_dim(graph, "D", etch_int(x->sym, 1), false, nowhere);
    etch_tensor *q = etch_graph_weight(graph, "q", (etch_dim_view){(etch_dim *[]){queries, width}, 2},
                                       ETCH_BF16, false, nowhere);
    etch_tensor *k = etch_graph_weight(graph, "k", (etch_dim_view){(etch_dim *[]){keys, width}, 2}, ETCH_BF16,
                                       false, nowhere);
    const etch_attrs attrs = {.over = {&keys, 1}, .dot = {&width, 1}, .causal = true, .window = w};
    etch_tensor *ins[] = {q, k, k};
    etch_tensor *o = etch_graph_call(graph, etch_row_called(graph->table, "sdpa"), ins, 3, &attrs,
                                     (etch_dim_view){0}, nowhere);
    ck_assert_ptr_nonnull(o);
    etch_training training = {.graph = graph, .train = x->train};
    etch_cost_list items = {0};
    etch_graph_costs(&training, &items);
    return etch_div(x->sym, items.at[items.count - 1].each, etch_int(x->sym, 4));
}

/* ---- numbers ------------------------------------------------------------------------------------------- */

/* Query j is the (t - s + j)-th of its sequence. */
static int64_t counted(int64_t s, int64_t t, int64_t w)
{
    int64_t pairs = 0;
    for (int64_t j = 0; j < s; j++)
        for (int64_t i = 0; i < t; i++)
            pairs += i <= t - s + j && (w == 0 || t - s + j - i < w);
    return pairs;
}

static void check_numbers(sample *x, int64_t s, int64_t t, int64_t w)
{
    etch_expr window = w ? etch_int(x->sym, w) : NULL;
    int64_t said = sample_value(pairs_of(x, etch_int(x->sym, s), etch_int(x->sym, t), window));
    ck_assert_msg(said == counted(s, t, w), "S = %lld, T = %lld, W = %lld: %lld pairs, not %lld",
                  (long long)s, (long long)t, (long long)w, (long long)counted(s, t, w), (long long)said);
}

static void numbers(etch_arena *arena)
{
    for (int64_t s = 1; s <= 8; s++)
        for (int64_t t = s; t <= s + 7; t++)
            for (int64_t w = 0; w <= t + 2; w++) {
                etch_arena *own = etch_arena_new(etch_arena_mem(arena));
                check_numbers(sample_new(own), s, t, w);
                etch_arena_free(own);
            }
}

START_TEST(pairs_are_counted_one_by_one)
{
    etch_with_arena(numbers);
}
END_TEST

/* ---- symbols ------------------------------------------------------------------------------------------- */

/* Values for the symbols, put into the formula, give what counting gives. */
static void check_symbols(etch_arena *arena, const char *size_of_s, const char *size_of_t)
{
    sample *x = sample_new(arena);
    etch_expr s = read(x, size_of_s), t = read(x, size_of_t), w = etch_var(x->sym, "W");
    etch_expr formula = pairs_of(x, s, t, w);
    const etch_expr vars[] = {etch_var(x->sym, "S"), etch_var(x->sym, "past"), w};
    for (int64_t i = 1; i <= 6; i++)
        for (int64_t past = 1; past <= 4; past++)
            for (int64_t window = 1; window <= 12; window++) {
                const etch_expr values[] = {etch_int(x->sym, i), etch_int(x->sym, past),
                                            etch_int(x->sym, window)};
                int64_t queries = sample_value(etch_subst(x->sym, s, 3, vars, values));
                int64_t keys = sample_value(etch_subst(x->sym, t, 3, vars, values));
                ck_assert_int_eq(sample_value(etch_subst(x->sym, formula, 3, vars, values)),
                                 counted(queries, keys, window));
            }
}

static void symbols(etch_arena *arena)
{
    check_symbols(arena, "S", "S");
    check_symbols(arena, "S", "S + past");
    check_symbols(arena, "1", "1 + past");
}

START_TEST(formulas_count_pairs)
{
    etch_with_arena(symbols);
}
END_TEST

/* What is known of the window leaves no minimum in the formula. */
static void check_known(etch_arena *arena, const char *longer, const char *shorter, const char *keys,
                        const char *expected)
{
    sample *x = sample_new(arena);
    int64_t other;
    ck_assert_int_eq(etch_assume_at_least(x->sym, read(x, longer), read(x, shorter), 0, &other), ETCH_OK);
    etch_expr found = pairs_of(x, read(x, "S"), read(x, keys), read(x, "W"));
    ck_assert_msg(found == read(x, expected), "%s >= %s: %s", longer, shorter, etch_expr_text(x->sym, found));
}

static void known(etch_arena *arena)
{
    check_known(arena, "S", "W", "S", "S*W - W*(W - 1)/2");
    check_known(arena, "W", "S", "S", "S*(S + 1)/2");
    check_known(arena, "past", "W", "S + past", "S*W");
    check_known(arena, "W", "S + past", "S + past", "S*(S + past) - S*(S - 1)/2");
}

START_TEST(facts_simplify_windows)
{
    etch_with_arena(known);
}
END_TEST

Suite *etch_suite(void)
{
    Suite *suite = suite_create("attention");
    ETCH_ADD_TESTS(suite, pairs_are_counted_one_by_one, formulas_count_pairs, facts_simplify_windows);
    return suite;
}
