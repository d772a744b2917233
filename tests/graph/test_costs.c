/* Cost items: how often what is done, and that items, kernels, buckets and updates tell one story. */
#include "end_work.h"
#include "sample.h"
#include "suite.h"

#include <string.h>

static sample *residual_model(etch_arena *arena)
{
    sample *x = sample_residual(arena);
    sample_shard(x, "F", TP);
    return x;
}

/* Three groups of two layers x = x + dropout(mlp(x)), the loss. */
static sample *nested_model(etch_arena *arena)
{
    const etch_span nowhere = {0, 0};
    sample *x = sample_new(arena);
    etch_graph *graph = x->graph;
    etch_tensor *value = sample_input(x, "x", "bsh", ETCH_BF16);
    etch_graph_begin(graph, "group", etch_int(x->sym, 3), nowhere);
    etch_tensor *outer = etch_graph_carry(graph, value, nowhere);
    etch_graph_begin(graph, "layer", etch_int(x->sym, 2), nowhere);
    etch_tensor *inner = etch_graph_carry(graph, outer, nowhere);
    etch_graph_enter(graph, "mlp", nowhere);
    etch_tensor *y = sample_mlp(x, etch_graph_pass(graph, ETCH_ENTER, inner, "x", nowhere));
    y = etch_graph_pass(graph, ETCH_LEAVE, y, "y", nowhere);
    etch_graph_leave(graph);
    etch_tensor *dropped = sample_call(x, "d", "dropout", y, NULL, 0, etch_ratio(x->sym, 1, 10));
    etch_tensor *z = sample_sum(x, "z", inner, dropped);
    etch_graph_end(graph, &z, &value, 1);
    etch_graph_end(graph, &value, &value, 1);
    sample_loss(x, value);
    sample_shard(x, "B", DP);
    sample_shard(x, "F", TP);
    return x;
}

/* ---- numbers ------------------------------------------------------------------------------------------- */

/* 128 tokens of the whole job; 12 FLOP of AdamW for each of 10,304 weights. */
static void the_job_counts_every_token_once(etch_arena *arena)
{
    sample *x = residual_model(arena);
    etch_placed *placed = sample_place(x);
    etch_cost_list items = {0};
    etch_graph_costs(placed->training, &items);
    const int64_t norms = 2 * 4 * 128 * 32, products = 3 * 2 * 128 * 32 * 64, head = 2 * 128 * 32 * 128;
    const int64_t elementwise = 5 * 128 * 64 + 128 * 64 + 128 * 32, loss = 5 * 128 * 128;
    ck_assert_int_eq(sample_total(x, &items, ETCH_PARAMS, ETCH_PHASE_COUNT), 10304);
    ck_assert_int_eq(sample_total(x, &items, ETCH_FLOPS, ETCH_FORWARD),
                     norms + products + head + elementwise + loss);
    /* Backward: each product twice; the norms 9; silu 9, its product 2, the sum of two cotangents of h 1;
     * the loss 4. */
    const int64_t ew_backward = (9 + 2) * 128 * 64 + 128 * 32;
    ck_assert_int_eq(sample_total(x, &items, ETCH_FLOPS, ETCH_BACKWARD),
                     2 * 9 * 128 * 32 + 2 * (products + head) + ew_backward + 4 * 128 * 128);
    ck_assert_int_eq(sample_total(x, &items, ETCH_FLOPS, ETCH_OPTIMIZER), 12 * 10304);
    ck_assert_int_eq(sample_total(x, &items, ETCH_FLOPS, ETCH_RECOMPUTE), 0);
}

START_TEST(test_job)
{
    etch_with_arena(the_job_counts_every_token_once);
}
END_TEST

/* The kernels of test_kernels.c, twice: two microbatches. 5,696 weights are on a rank. */
static void a_rank_counts_its_part(etch_arena *arena)
{
    sample *x = residual_model(arena);
    etch_placed *placed = sample_place(x);
    etch_cost_list items = {0};
    etch_placed_costs(placed, NULL, &items);
    const int64_t forward_flop = 4096 + 35328 + 33280 + 32768 + 5120 + 262144 + 20480;
    const int64_t forward_bytes = 4160 + 5120 + 6144 + 4096 + 8256 + 18432 + 8452;
    ck_assert_int_eq(sample_total(x, &items, ETCH_RANK_FLOPS, ETCH_FORWARD), 2 * forward_flop);
    ck_assert_int_eq(sample_total(x, &items, ETCH_TRAFFIC, ETCH_FORWARD), 2 * forward_bytes);
    ck_assert_int_eq(sample_total(x, &items, ETCH_RANK_FLOPS, ETCH_OPTIMIZER), 12 * 5696);
    ck_assert_int_eq(sample_total(x, &items, ETCH_TRAFFIC, ETCH_OPTIMIZER), 30 * 5696);
    ck_assert_int_eq(sample_total(x, &items, ETCH_COMM, ETCH_FORWARD), 2 * 2048);
    ck_assert_int_eq(sample_total(x, &items, ETCH_COMM, ETCH_BACKWARD), 2 * 2048);
    ck_assert_int_eq(sample_total(x, &items, ETCH_COMM, ETCH_SYNC), 4 * 5696);
    /* A ring of 4 sends 2 * 3/4 of what it reduces, a ring of 2 all of it. */
    ck_assert_int_eq(sample_total(x, &items, ETCH_WIRE, ETCH_FORWARD), 2 * 3072);
    ck_assert_int_eq(sample_total(x, &items, ETCH_WIRE, ETCH_SYNC), 4 * 5696);
}

START_TEST(test_rank)
{
    etch_with_arena(a_rank_counts_its_part);
}
END_TEST

/* Sequence parallelism: the same bytes on the wire as all-reduces, as halves. */
static void rings_send_by_kind(etch_arena *arena)
{
    sample *x = residual_model(arena);
    sample_pin(x, "residual", "B", "S");
    etch_placed *placed = sample_place(x);
    etch_cost_list items = {0};
    etch_placed_costs(placed, NULL, &items);
    int64_t gathered = 0, sent = 0;
    for (uint32_t i = 0; i < items.count; i++) {
        const etch_cost *item = &items.at[i];
        if (item->phase != ETCH_BACKWARD || item->collective != ETCH_ALL_GATHER)
            continue;
        ck_assert_uint_eq(item->axes, 1u << TP);
        int64_t bytes = sample_value(etch_mul(x->sym, item->each, item->times));
        *(item->measure == ETCH_COMM ? &gathered : &sent) += bytes;
    }
    /* dy, gathered over tp: a shard of 512 bytes in, three of others out, in each microbatch. */
    ck_assert_int_eq(gathered, 2 * 512);
    ck_assert_int_eq(sent, 2 * 3 * 512);
    ck_assert_int_eq(sample_total(x, &items, ETCH_COMM, ETCH_FORWARD), 2 * 2048);
    ck_assert_int_eq(sample_total(x, &items, ETCH_WIRE, ETCH_FORWARD), 2 * 2048 * 3 / 4);
}

START_TEST(test_rings)
{
    etch_with_arena(rings_send_by_kind);
}
END_TEST

static void clipping_adds_a_norm_and_one_reduction(etch_arena *arena)
{
    sample *without = residual_model(arena), *with = residual_model(arena);
    with->train.clip = true;
    etch_cost_list a = {0}, b = {0}, graph = {0};
    etch_placed_costs(sample_place(without), NULL, &a);
    etch_placed *placed = sample_place(with);
    etch_placed_costs(placed, NULL, &b);
    etch_graph_costs(placed->training, &graph);
    ck_assert_int_eq(sample_total(with, &b, ETCH_RANK_FLOPS, ETCH_OPTIMIZER), (12 + 2) * 5696);
    ck_assert_int_eq(sample_total(with, &b, ETCH_TRAFFIC, ETCH_OPTIMIZER), (30 + 4) * 5696 + 4);
    ck_assert_int_eq(sample_total(with, &b, ETCH_COMM, ETCH_SYNC), 4 * 5696 + 4);
    ck_assert_int_eq(sample_total(with, &b, ETCH_WIRE, ETCH_SYNC),
                     4 * 5696 + 7); /* 2 * 7/8 of 4 bytes over 8 ranks */
    ck_assert_int_eq(sample_total(with, &graph, ETCH_FLOPS, ETCH_OPTIMIZER), (12 + 2) * 10304);
    ck_assert_int_eq(sample_total(without, &a, ETCH_COMM, ETCH_SYNC), 4 * 5696);
}

START_TEST(test_clip)
{
    etch_with_arena(clipping_adds_a_norm_and_one_reduction);
}
END_TEST

/* ---- formulas ------------------------------------------------------------------------------------------ */

static void use_variables(sample *x)
{
    x->b->size = etch_var(x->sym, "batch");
    x->s->size = etch_var(x->sym, "seq");
    x->h->size = etch_var(x->sym, "hidden");
    x->f->size = etch_var(x->sym, "ffn");
    x->v->size = etch_var(x->sym, "vocab");
    x->train.micro = etch_var(x->sym, "micro");
    x->plan.mesh.at[DP].size = etch_var(x->sym, "dp");
    x->plan.mesh.at[TP].size = etch_var(x->sym, "tp");
}

static etch_expr formula(sample *x, const etch_cost_list *items, etch_measure measure, etch_phase phase)
{
    etch_expr sum = etch_int(x->sym, 0);
    for (uint32_t i = 0; i < items->count; i++)
        if (items->at[i].measure == measure && items->at[i].phase == phase)
            sum = etch_add(x->sym, sum, etch_mul(x->sym, items->at[i].each, items->at[i].times));
    return sum;
}

#define ASSERT_FORMULA(x, items, measure, phase, text) \
    ck_assert_str_eq(etch_expr_text((x)->sym, formula((x), (items), (measure), (phase))), normal((x), (text)))

/* The formula `text` as the printer writes it. */
static const char *normal(sample *x, const char *text)
{
    size_t error_at = 0;
    etch_expr parsed = etch_expr_parse(x->sym, text, strlen(text), &error_at);
    ck_assert_msg(parsed != NULL, "%s, at %zu", text, error_at);
    return etch_expr_text(x->sym, parsed);
}

/* The number of microbatches cancels where work is in proportion to tokens, and stays where weights are
 * read. */
static void sizes_may_be_variables(etch_arena *arena)
{
    sample *x = residual_model(arena);
    use_variables(x);
    etch_placed *placed = sample_place(x);
    etch_cost_list job = {0}, rank = {0};
    etch_graph_costs(placed->training, &job);
    etch_placed_costs(placed, NULL, &rank);
    ASSERT_FORMULA(x, &job, ETCH_FLOPS, ETCH_FORWARD,
                   "batch*seq*(9*hidden + 6*hidden*ffn + 6*ffn + 2*hidden*vocab + 5*vocab)");
    ASSERT_FORMULA(x, &job, ETCH_FLOPS, ETCH_OPTIMIZER, "12*(2*hidden + 3*hidden*ffn + hidden*vocab)");
    ASSERT_FORMULA(x, &rank, ETCH_RANK_FLOPS, ETCH_FORWARD,
                   "batch*seq/dp*(9*hidden + 6*hidden*ffn/tp + 6*ffn/tp + 2*hidden*vocab + 5*vocab)");
    ASSERT_FORMULA(x, &rank, ETCH_COMM, ETCH_FORWARD, "2*batch*seq*hidden/dp");
    ASSERT_FORMULA(x, &rank, ETCH_WIRE, ETCH_BACKWARD, "2*(tp - 1)/tp*2*batch*seq*hidden/dp");
    ASSERT_FORMULA(x, &rank, ETCH_COMM, ETCH_SYNC, "4*(2*hidden + 3*hidden*ffn/tp + hidden*vocab)");
    /* For each token: ten times a row of hidden (x h; h; h; y; x y z n; n), six of ffn (gate s; s up a;
     * a), the logits twice, a label and a statistic. For each microbatch: the weights and the loss. */
    ASSERT_FORMULA(x, &rank, ETCH_TRAFFIC, ETCH_FORWARD,
                   "batch*seq/dp*(2*10*hidden + 2*6*ffn/tp + 2*2*vocab + 8)"
                   " + micro*(4*hidden + 6*hidden*ffn/tp + 2*hidden*vocab + 4)");
}

START_TEST(test_formulas)
{
    etch_with_arena(sizes_may_be_variables);
}
END_TEST

/* ---- loops --------------------------------------------------------------------------------------------- */

static void loops_multiply(etch_arena *arena)
{
    sample *x = nested_model(arena);
    etch_placed *placed = sample_place(x);
    etch_cost_list items = {0};
    etch_graph_costs(placed->training, &items);
    const int64_t layer = 32 + 3 * 2048;
    ck_assert_int_eq(sample_total(x, &items, ETCH_PARAMS, ETCH_PHASE_COUNT), 6 * layer + 4096);
    ck_assert_int_eq(sample_total(x, &items, ETCH_FLOPS, ETCH_OPTIMIZER), 12 * (6 * layer + 4096));
    const int64_t mlp = 4 * 128 * 32 + 3 * 2 * 128 * 32 * 64 + 6 * 128 * 64, rest = 3 * 128 * 32;
    ck_assert_int_eq(sample_total(x, &items, ETCH_FLOPS, ETCH_FORWARD),
                     6 * (mlp + rest) + 2 * 128 * 32 * 128 + 5 * 128 * 128);
}

START_TEST(test_loops)
{
    etch_with_arena(loops_multiply);
}
END_TEST

/* With everything recomputed, forward runs twice: all of it, but for what lies outside the loops. */
static void recomputation_repeats_forward(etch_arena *arena)
{
    sample *x = nested_model(arena);
    x->train.recompute.all = true;
    etch_placed *placed = sample_place(x);
    etch_cost_list items = {0};
    etch_graph_costs(placed->training, &items);
    const int64_t outside = 2 * 128 * 32 * 128 + 5 * 128 * 128;
    ck_assert_int_eq(sample_total(x, &items, ETCH_FLOPS, ETCH_RECOMPUTE),
                     sample_total(x, &items, ETCH_FLOPS, ETCH_FORWARD) - outside);
}

START_TEST(test_recomputation)
{
    etch_with_arena(recomputation_repeats_forward);
}
END_TEST

/* ---- filters ------------------------------------------------------------------------------------------- */

/* Wherever it runs (forward, again, backward, at the end), an item says which module and loop of the spec
 * it belongs to. */
static void items_know_module_and_loop(etch_arena *arena)
{
    sample *x = nested_model(arena);
    x->train.recompute.all = true;
    etch_placed *placed = sample_place(x);
    const etch_loop *group = x->graph->forward->items.at[0].loop,
                    *layer = group->bodies.at[0]->items.at[0].loop;
    ck_assert_str_eq(layer->name, "layer");
    etch_cost_list items = {0};
    etch_graph_costs(placed->training, &items);
    etch_placed_costs(placed, NULL, &items);
    uint32_t inside = 0;
    for (uint32_t i = 0; i < items.count; i++) {
        const etch_cost *item = &items.at[i];
        const etch_loop *loop = item->body ? item->body->loop : NULL;
        ck_assert_ptr_nonnull(item->scope);
        bool mlp = strcmp(item->scope->module, "mlp") == 0;
        ck_assert_msg(!mlp || loop == layer, "item %u", i);
        ck_assert(loop == NULL || loop == group || loop == layer);
        inside += mlp;
    }
    ck_assert_uint_gt(inside, 0);
    int64_t products = 0;
    for (uint32_t i = 0; i < items.count; i++)
        if (items.at[i].measure == ETCH_FLOPS && items.at[i].matmul)
            products += sample_value(etch_mul(x->sym, items.at[i].each, items.at[i].times));
    const int64_t layers = 6 * 3 * 2 * 128 * 32 * 64, head = 2 * 128 * 32 * 128;
    ck_assert_int_eq(products, 4 * layers + 3 * head);
}

START_TEST(test_filters)
{
    etch_with_arena(items_know_module_and_loop);
}
END_TEST

/* ---- one story ----------------------------------------------------------------------------------------- */

/* FLOP or bytes of compute kernels (`moves` false), payload of collectives (true), over a step. */
static int64_t kernel_total(sample *x, const etch_placed_region *region, int64_t runs, bool moves, bool bytes)
{
    int64_t sum = 0;
    for (uint32_t i = 0; i < region->kernels.count; i++) {
        const etch_kernel *kernel = region->kernels.at[i];
        if ((kernel->anchor->collective != ETCH_NO_COLLECTIVE) == moves)
            sum += runs * sample_value(bytes ? kernel->bytes : kernel->flop);
    }
    for (uint32_t i = 0; i < region->items.count; i++) {
        const etch_placed_loop *loop = region->items.at[i].loop;
        if (loop)
            sum += kernel_total(x, loop->bodies.at[0], runs * sample_value(loop->loop->count), moves, bytes);
    }
    return sum;
}

static int64_t region_totals(sample *x, const etch_placed *placed, bool moves, bool bytes)
{
    int64_t micro = sample_value(x->train.micro);
    return kernel_total(x, placed->forward, micro, moves, bytes) +
           kernel_total(x, placed->backward, micro, moves, bytes);
}

static int64_t runs_of(const etch_weight_group *unit)
{
    return unit->loop ? sample_value(unit->loop->count) : 1;
}

static void items_add_up_to_nodes(etch_arena *arena)
{
    for (unsigned variant = 0; variant < 16; variant++) {
        sample *x = variant & 1 ? nested_model(arena) : residual_model(arena);
        x->train.recompute.all = variant & 2;
        x->train.clip = variant & 4;
        if (variant & 8)
            sample_pin(x, "residual", "B", "S");
        etch_placed *placed = sample_place(x);
        const end_works reductions = end_reductions(placed);
        const end_works updates = end_updates(placed);
        const end_works norms = end_norms(placed);
        etch_cost_list items = {0};
        etch_placed_costs(placed, NULL, &items);
        int64_t flop = region_totals(x, placed, false, false), bytes = region_totals(x, placed, false, true);
        int64_t comm = region_totals(x, placed, true, true);
        for (uint32_t i = 0; i < updates.count; i++) {
            flop += runs_of(updates.at[i].weight_group) * sample_value(updates.at[i].flop);
            bytes += runs_of(updates.at[i].weight_group) * sample_value(updates.at[i].bytes);
        }
        for (uint32_t i = 0; i < reductions.count; i++)
            comm += runs_of(reductions.at[i].weight_group) * sample_value(reductions.at[i].bytes);
        if (x->train.clip) {
            for (uint32_t i = 0; i < norms.count; i++) {
                flop += runs_of(norms.at[i].weight_group) * sample_value(norms.at[i].flop);
                bytes += runs_of(norms.at[i].weight_group) * sample_value(norms.at[i].bytes);
            }
            bytes += 4;
            comm += 4;
        }
        ck_assert_int_eq(sample_total(x, &items, ETCH_RANK_FLOPS, ETCH_PHASE_COUNT), flop);
        ck_assert_int_eq(sample_total(x, &items, ETCH_TRAFFIC, ETCH_PHASE_COUNT), bytes);
        ck_assert_int_eq(sample_total(x, &items, ETCH_COMM, ETCH_PHASE_COUNT), comm);
    }
}

START_TEST(test_one_story)
{
    etch_with_arena(items_add_up_to_nodes);
}
END_TEST

/* On a mesh of one rank, the rank does the work of the job. */
static void one_rank_does_all(etch_arena *arena)
{
    for (unsigned variant = 0; variant < 4; variant++) {
        sample *x = variant & 1 ? nested_model(arena) : residual_model(arena);
        x->train.recompute.all = variant & 2;
        x->plan.mesh.at[DP].size = x->plan.mesh.at[TP].size = etch_int(x->sym, 1);
        etch_placed *placed = sample_place(x);
        etch_cost_list job = {0}, rank = {0};
        etch_graph_costs(placed->training, &job);
        etch_placed_costs(placed, NULL, &rank);
        for (int phase = 0; phase <= ETCH_PHASE_COUNT; phase++)
            ck_assert_int_eq(sample_total(x, &job, ETCH_FLOPS, (etch_phase)phase),
                             sample_total(x, &rank, ETCH_RANK_FLOPS, (etch_phase)phase));
    }
}

START_TEST(test_one_rank)
{
    etch_with_arena(one_rank_does_all);
}
END_TEST

Suite *etch_suite(void)
{
    Suite *suite = suite_create("costs");
    ETCH_ADD_TESTS(suite, test_job, test_rank, test_rings, test_clip, test_formulas, test_loops,
                   test_recomputation, test_filters, test_one_story, test_one_rank);
    return suite;
}
