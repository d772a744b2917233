/* A family of ops that only this test has, with shapes, costs, gradients and factors: they compile,
 * differentiate, shard and run with nothing else changed. */
#include "exec_cases.h"
#include "exec_check.h"
#include "suite.h"
#include "verify.h"

#include "graph/ir/families/family.h"

#include <string.h>

/* The dims of x, which has those that the weight works along. */
static bool excite_dims(etch_call *call, etch_dim_list *out)
{
    const etch_tensor *x = call->ins[0], *w = call->ins[1];
    if (!etch_shape_has(call, x, (etch_dim_view){w->dims, w->rank}, "w"))
        return false;
    etch_dims_add_beside(call, out, x, (etch_dim_view){0});
    return true;
}

static etch_expr excite_flop(const etch_flop_call *call)
{
    return etch_flop_times(call, call->op->row->flop.constants[1],
                           etch_flop_elements(call, call->op->ins[0]));
}

static const etch_flop per_excited = {excite_flop, "# times # FLOP per excited element"};

static const etch_row made_up[] = {
    ETCH_POINTWISE("bend", "x", "x/(1 + |x|)", .shape = etch_shape_first, .flop = ETCH_PER_RESULT(3),
                   .grads = ETCH_GRADS({"bend_dx", "d0 x0", "0"})),
    ETCH_POINTWISE("bend_dx", "d x", "gradient of bend", .flop = ETCH_PER_RESULT(4)),
    ETCH_ROW("excite", "x w", "x times the weighted sum of its squares", .needs = ETCH_KW_OVER,
             .shape = excite_dims, .over = ETCH_FACTOR_WHOLE,
             .flop = {.by = &per_excited, .constants = {1, 4}},
             .extra = {.name = "energy", .dtype = ETCH_F32, .like = ETCH_EXTRA_OF(0)},
             .grads = ETCH_GRADS({"excite_bwd", "d0 x0 x1 y1", "0 1"})),
    ETCH_ROW("excite_bwd", "d x w energy", "gradients of x and w", .over = ETCH_FACTOR_WHOLE,
             .flop = ETCH_PER_OPERAND(9)),
};
static const etch_rows family = {made_up, sizeof made_up / sizeof *made_up};

/* The builtin families and the one above. */
static const etch_table *own_table(etch_arena *arena)
{
    const etch_table *builtin = etch_table_builtin();
    const etch_rows **families = ETCH_NEW_ARRAY(arena, builtin->count + 1, const etch_rows *);
    memcpy(families, builtin->families, builtin->count * sizeof *families);
    families[builtin->count] = &family;
    etch_table *table = ETCH_NEW(arena, etch_table);
    *table = (etch_table){families, builtin->count + 1};
    return table;
}

static void describe(etch_arena *arena)
{
    etch_buf out = {.arena = arena};
    etch_row_describe(etch_row_named(own_table(arena), "excite"), &out);
    ck_assert_ptr_nonnull(strstr(out.text, "1 times 4 FLOP per excited element; x times the weighted sum"));
}

START_TEST(made_up_rows_say_what_they_cost)
{
    etch_with_arena(describe);
}
END_TEST

static etch_tensor *two_layers(exec_model *m)
{
    etch_tensor *x = exec_weight(m, "x", "B S H");
    etch_tensor *h = exec_product(m, "h", x, exec_weight(m, "w1", "H D"), "B S D");
    h = exec_call_row(m, "h", "bend", "", h, NULL, NULL);
    h = exec_call_row(m, "h", "excite", "D", h, exec_weight(m, "g", "D"), NULL);
    return exec_product(m, "y", h, exec_weight(m, "w2", "D K"), "B S K");
}

static const exec_case network = {"made-up rows", two_layers};

static exec_model *build(etch_arena *arena)
{
    const exec_case_setting setting = {.table = own_table(arena)};
    return exec_case_build(arena, &network, &setting);
}

static void differentiate(etch_arena *arena)
{
    const char *failure = exec_check_gradients(exec_train(build(arena), NULL), 3, true);
    ck_assert_msg(!failure, "%s", failure);
}

START_TEST(made_up_rows_are_differentiated)
{
    etch_with_arena(differentiate);
}
END_TEST

static const etch_op *find_op(const etch_region *region, const char *row)
{
    for (uint32_t i = 0; i < region->items.count; i++)
        if (strcmp(region->items.at[i].op->row->name, row) == 0)
            return region->items.at[i].op;
    return NULL;
}

/* What is kept is what the rule of the gradient reads, and no more. */
static void save(etch_arena *arena)
{
    const etch_training *training = exec_train(build(arena), NULL);
    const etch_op *excite = find_op(training->graph->forward, "excite"),
                  *backward = find_op(training->backward, "excite_bwd");
    ck_assert_ptr_nonnull(backward);
    ck_assert_uint_eq(backward->in_count, 4);
    ck_assert_ptr_eq(backward->ins[1], excite->ins[0]);
    ck_assert_ptr_eq(backward->ins[3], excite->outs[1]);
    ck_assert_int_eq(excite->outs[1]->dtype, ETCH_F32);
    ck_assert_uint_eq(excite->outs[1]->rank, 2);
}

START_TEST(made_up_rows_say_what_is_saved)
{
    etch_with_arena(save);
}
END_TEST

static uint32_t flop_of(const etch_training *training, const char *row)
{
    etch_cost_list costs = {0};
    uint32_t flop = 0;
    etch_graph_costs(training, &costs);
    for (uint32_t i = 0; i < costs.count; i++)
        if (costs.at[i].measure == ETCH_FLOPS && strcmp(costs.at[i].row->name, row) == 0)
            flop += exec_integer(costs.at[i].each);
    return flop;
}

static void cost(etch_arena *arena)
{
    const etch_training *training = exec_train(build(arena), NULL);
    const uint32_t elements = 4 * 8 * 4; /* B S D */
    ck_assert_uint_eq(flop_of(training, "bend"), 3 * elements);
    ck_assert_uint_eq(flop_of(training, "bend_dx"), 4 * elements);
    ck_assert_uint_eq(flop_of(training, "excite"), 4 * elements);
    ck_assert_uint_eq(flop_of(training, "excite_bwd"), 9 * elements);
}

START_TEST(made_up_rows_cost_what_they_say)
{
    etch_with_arena(cost);
}
END_TEST

static etch_placed *placed_by(etch_arena *arena, const char *plan)
{
    exec_model *m = build(arena);
    return verified(etch_place(exec_train(m, NULL), exec_plan(arena, m->sym, plan), ETCH_GRANULARITY_KERNEL));
}

static void shard(etch_arena *arena)
{
    static const char *const plans[] = {"a=2 | B@a",
                                        "a=2 b=2 | B@a S@b",
                                        "a=2 | H@a",
                                        "a=2 | K@a",
                                        "a=2 | D@a",
                                        "a=2 b=2 | D@a K@b",
                                        "a=2 b=2 c=2 | B@a S@b H@c",
                                        "a=2 b=2 | H@a K@b | zero a"};
    for (size_t i = 0; i < sizeof plans / sizeof *plans; i++) {
        etch_placed *placed = placed_by(arena, plans[i]);
        ck_assert_msg(placed != NULL, "%s", plans[i]);
        const char *failure = exec_check_placed(placed, 3);
        ck_assert_msg(!failure, "%s: %s", plans[i], failure);
    }
}

START_TEST(made_up_rows_are_sharded)
{
    etch_with_arena(shard);
}
END_TEST

static uint32_t moves_before(const etch_placed_region *region, const char *row, etch_collective move)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < region->items.count; i++) {
        const etch_step *step = region->items.at[i].step;
        count += step->collective == move;
        if (step->op && step->collective == ETCH_NO_COLLECTIVE && strcmp(step->row->name, row) == 0)
            return count;
    }
    return UINT32_MAX;
}

/* A partial sum is reduced before what is not linear; what an op needs as a whole is gathered. */
static void move(etch_arena *arena)
{
    const etch_placed *sums = placed_by(arena, "a=2 | H@a"), *shards = placed_by(arena, "a=2 | D@a");
    ck_assert_uint_eq(moves_before(sums->forward, "bend", ETCH_ALL_REDUCE), 1);
    ck_assert_uint_eq(moves_before(shards->forward, "bend", ETCH_ALL_GATHER), 0);
    ck_assert_uint_ge(moves_before(shards->forward, "excite", ETCH_ALL_GATHER), 1);
}

START_TEST(made_up_rows_ask_for_collectives)
{
    etch_with_arena(move);
}
END_TEST

Suite *etch_suite(void)
{
    Suite *suite = suite_create("table");
    ETCH_ADD_TESTS(suite, made_up_rows_say_what_they_cost, made_up_rows_are_differentiated,
                   made_up_rows_say_what_is_saved, made_up_rows_cost_what_they_say, made_up_rows_are_sharded,
                   made_up_rows_ask_for_collectives);
    return suite;
}
