/* What conventions of counting find in a graph: routers by what chooses, with a row that the built-in table lacks. */
#include "graph/row_int.h"
#include "sample.h"
#include "suite.h"

#include <string.h>

/* The built-in table and one row that chooses among the elements of a dim. */
static const etch_table *choosing_table(etch_arena *arena)
{
    const etch_table *builtin = etch_table_builtin();
    etch_row *rows = ETCH_NEW_ARRAY(arena, builtin->count + 1, etch_row);
    memcpy(rows, builtin->rows, builtin->count * sizeof *rows);
    rows[builtin->count] = (etch_row){.name = "best",
                                      .operands = "x",
                                      .takes = ETCH_KW_OVER,
                                      .called = true,
                                      .shape = SHAPE_FIRST,
                                      .role = ROLE_KERNEL,
                                      .family = FAMILY_CHOICE,
                                      .basis = BASIS_OPERAND,
                                      .flop = 1};
    etch_table *table = ETCH_NEW(arena, etch_table);
    *table = (etch_table){rows, builtin->count + 1};
    return table;
}

/* FLOP of forward under a convention, by the items of the graph. */
static int64_t forward_flop(const sample *x, const etch_training *training, etch_count count)
{
    const etch_marks *marks = etch_marks_of(training, x->arena);
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
    x->graph->table = choosing_table(arena);
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

START_TEST(test_router)
{
    etch_with_arena(a_product_that_is_chosen_by_is_a_router);
}
END_TEST

Suite *etch_suite(void)
{
    Suite *suite = suite_create("graph.marks");
    ETCH_ADD_TESTS(suite, test_router);
    return suite;
}
