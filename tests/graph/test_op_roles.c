/* What conventions of counting find in a graph, by rows that the built-in table lacks. */
#include "graph/ir/families/family.h"
#include "sample.h"
#include "suite.h"

#include <string.h>

static bool hides_scores(const etch_op *op)
{
    return op->attrs.causal;
}

/* The built-in table, a row that chooses among the elements of a dim, and one that hides some of them. */
static const etch_table *larger_table(etch_arena *arena)
{
    static const etch_row rows[] = {{.name = "best",
                                     .operands = "x",
                                     .options = ETCH_KW_OVER,
                                     .shape = etch_shape_first,
                                     .role = ETCH_ROLE_KERNEL,
                                     .family = ETCH_FAMILY_CHOICE,
                                     .flop = {.by = &etch_flop_per_operand, .constants = {1}}},
                                    {.name = "hide",
                                     .operands = "x",
                                     .options = ETCH_KW_OVER | ETCH_KW_CAUSAL,
                                     .shape = etch_shape_first,
                                     .role = ETCH_ROLE_KERNEL,
                                     .hides = hides_scores,
                                     .flop = {.by = &etch_flop_per_result, .constants = {1}}}};
    static const etch_rows made_up = {rows, sizeof rows / sizeof *rows};
    const etch_table *builtin = etch_table_builtin();
    const etch_rows **families = ETCH_NEW_ARRAY(arena, builtin->count + 1, const etch_rows *);
    memcpy(families, builtin->families, builtin->count * sizeof *families);
    families[builtin->count] = &made_up;
    etch_table *table = ETCH_NEW(arena, etch_table);
    *table = (etch_table){families, builtin->count + 1};
    return table;
}

/* FLOP of forward under a convention, by the items of the graph. */
static int64_t forward_flop(const sample *x, const etch_training *training, etch_count count)
{
    const etch_op_roles *marks = etch_op_roles_of(training, x->arena);
    etch_cost_list items = {0};
    int64_t sum = 0;
    etch_graph_costs(training, &items);
    for (uint32_t i = 0; i < items.count; i++) {
        etch_cost item = items.at[i];
        if (item.measure == ETCH_FLOPS && etch_count_apply(&count, marks, training, NULL, &item))
            sum += sample_value(etch_mul(x->sym, item.each, item.times));
    }
    return sum;
}

/* scores = x * w [B,S,F]; best(softmax(scores + bias)) over F; y = x * v [B,S,V] that nothing else reads. */
static void a_product_that_is_chosen_by_is_a_router(etch_arena *arena)
{
    sample *x = sample_new(arena);
    etch_graph_use_table(x->graph, larger_table(arena));
    etch_tensor *input = sample_input(x, "x", "bsh", ETCH_BF16);
    etch_tensor *scores = sample_product(x, "scores", input, sample_weight(x, "w", "hf"), "bsf");
    etch_tensor *shifted = sample_sum(x, "shifted", scores, sample_weight(x, "bias", "f"));
    etch_tensor *p = sample_call(x, "p", "softmax", shifted, NULL, 'f', NULL);
    sample_call(x, "chosen", "best", p, NULL, 'f', NULL);
    sample_product(x, "y", input, sample_weight(x, "v", "hv"), "bsv");
    const etch_training training = {.graph = x->graph, .train = {.micro = etch_int(x->sym, 1)}};
    const int64_t tokens = 8 * 16, router = 2 * tokens * 32 * 64, logits = 2 * tokens * 32 * 128;
    const int64_t others = tokens * 64 * (1 + 5 + 1); /* the bias, softmax, the choice */
    ck_assert_int_eq(forward_flop(x, &training, (etch_count){0}), router + logits + others);
    const unsigned char no_router = 1, no_logits = 2; /* places among the values */
    ck_assert_str_eq(etch_count_value_name(ETCH_COUNT_ROUTER, no_router), "no");
    ck_assert_str_eq(etch_count_value_name(ETCH_COUNT_LOGITS, no_logits), "no");
    const etch_count unrouted = {.at = {[ETCH_COUNT_ROUTER] = no_router}};
    ck_assert_int_eq(forward_flop(x, &training, unrouted), logits + others);
    const etch_count headless = {.at = {[ETCH_COUNT_LOGITS] = no_logits}};
    ck_assert_int_eq(forward_flop(x, &training, headless), router + others);
}

static etch_tensor *hidden(sample *x, etch_tensor *scores, etch_dim *keys)
{
    etch_dim_list along = {0};
    ETCH_PUSH(x->arena, &along, keys);
    const etch_attrs attrs = {.causal = true, .over = ETCH_DIMS(along)};
    etch_dim_alias(keys, x->s); /* the queries that the mask pairs them with */
    return etch_graph_call(x->graph, etch_row_called(x->graph->table, "hide"), &scores, 1, &attrs,
                           (etch_dim_view){0}, (etch_span){0, 0});
}

/* dropout(hide(relu(q * k) [B,S,F])) * v [B,S,V] * wo: only what q, k and v take part in has pairs. */
static void scores_under_a_mask_are_halved(etch_arena *arena)
{
    sample *x = sample_new(arena);
    etch_graph_use_table(x->graph, larger_table(arena));
    etch_tensor *q =
        sample_product(x, "q", sample_input(x, "x", "bsh", ETCH_BF16), sample_weight(x, "w", "bh"), "bsh");
    etch_tensor *scores = sample_product(x, "scores", q, sample_input(x, "k", "bfh", ETCH_BF16), "bsf");
    etch_tensor *p = hidden(x, sample_call(x, "r", "relu", scores, NULL, 0, NULL), x->f);
    p = sample_call(x, "p", "dropout", p, NULL, 0, etch_ratio(x->sym, 1, 10));
    etch_tensor *o = sample_product(x, "o", p, sample_input(x, "v", "bfv", ETCH_BF16), "bsv");
    sample_product(x, "y", o, sample_weight(x, "wo", "vh"), "bsh");
    const etch_training training = {.graph = x->graph, .train = {.micro = etch_int(x->sym, 1)}};
    const int64_t pairs = 8 * 16 * 64, output = 2 * 8 * 16 * 128 * 32;
    const int64_t others = 8 * 16 * 32 + pairs * (1 + 1 + 2); /* the queries, relu, the mask, dropout */
    ck_assert_int_eq(forward_flop(x, &training, (etch_count){0}), 2 * pairs * (32 + 128) + output + others);
    const unsigned char half = 1; /* its place among the values */
    ck_assert_str_eq(etch_count_value_name(ETCH_COUNT_CAUSAL, half), "half");
    const etch_count halved = {.at = {[ETCH_COUNT_CAUSAL] = half}};
    ck_assert_int_eq(forward_flop(x, &training, halved), pairs * (32 + 128) + output + others);
}

START_TEST(test_mask)
{
    etch_with_arena(scores_under_a_mask_are_halved);
}
END_TEST

START_TEST(test_router)
{
    etch_with_arena(a_product_that_is_chosen_by_is_a_router);
}
END_TEST

Suite *etch_suite(void)
{
    Suite *suite = suite_create("graph.marks");
    ETCH_ADD_TESTS(suite, test_router, test_mask);
    return suite;
}
