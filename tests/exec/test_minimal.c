/* What plans that everybody knows communicate, op by op, against what is derived by hand: how many
 * collectives of a kind a layer has forward and backward, over which axes, and of what. Kinds and dims are
 * those of the papers; bytes are compared elsewhere. */
#include "end_work.h"
#include "exec_bind.h"
#include "exec_plans.h"
#include "suite.h"
#include "verify.h"

#include <stdlib.h>
#include <string.h>

/* ---- counting ------------------------------------------------------------------------------------------ */

typedef struct wanted {
    etch_phase phase;
    etch_collective collective;
    const char *axes; /* as a user writes them */
    const char *with; /* a dim that the tensor has; NULL: any */
    const char *without;
} wanted;

static bool has_dim_called(const etch_tensor *tensor, const char *name)
{
    for (uint32_t i = 0; i < tensor->rank; i++)
        if (strcmp(tensor->dims[i]->name, name) == 0)
            return true;
    return false;
}

static bool is_wanted(const etch_placed *placed, const wanted *w, const etch_step *step)
{
    const etch_tensor *tensor = step->in_count ? step->ins[0]->tensor : NULL;
    return step->collective == w->collective && step->phase == w->phase &&
           (!w->axes || strcmp(etch_axes_label(placed, step->axes), w->axes) == 0) &&
           (!w->with || has_dim_called(tensor, w->with)) &&
           (!w->without || !has_dim_called(tensor, w->without));
}

/* In loops too, each body once. */
static uint32_t count_in(const etch_placed *placed, const etch_placed_region *region, const wanted *w)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < region->items.count; i++) {
        const etch_step *step = region->items.at[i].step;
        const etch_placed_loop *loop = region->items.at[i].loop;
        count += step && is_wanted(placed, w, step);
        for (uint32_t k = 0; loop && k < loop->bodies.count; k++)
            count += count_in(placed, loop->bodies.at[k], w);
    }
    return count;
}

static uint32_t count_moves(const etch_placed *placed, wanted w)
{
    return count_in(placed, w.phase == ETCH_FORWARD ? placed->forward : placed->backward, &w);
}

/* Of the loop's body alone. */
static uint32_t count_in_layer(const etch_placed *placed, wanted w)
{
    const etch_placed_region *region = w.phase == ETCH_FORWARD ? placed->forward : placed->backward;
    uint32_t count = 0;
    for (uint32_t i = 0; i < region->items.count; i++)
        for (uint32_t k = 0; region->items.at[i].loop && k < region->items.at[i].loop->bodies.count; k++)
            count += count_in(placed, region->items.at[i].loop->bodies.at[k], &w);
    return count;
}

static etch_placed *placed_text(etch_arena *arena, const char *text, const char *plan)
{
    const char *path = etch_text(arena, "%s/models/case.etch", getenv("ETCH_SOURCE_DIR"));
    const exec_bound bound = exec_bind(arena, path, text, NULL, plan, NULL);
    etch_placed *placed =
        bound.training ? verified(etch_place(bound.training, bound.plan, ETCH_GRANULARITY_KERNEL)) : NULL;
    ck_assert_msg(placed, "%s", exec_messages(arena, bound.diags));
    return placed;
}

/* A shipped model with a plan of its own, or with one that it ships. */
static etch_placed *placed_model(etch_arena *arena, const char *model, const char *plan)
{
    const bool own = strchr(plan, '@') != NULL;
    return placed_text(
        arena,
        own ? etch_text(arena, "etch 1\nimport \"%s.etch\"\nparallel own {\n%s}\n", model, plan)
            : etch_text(arena, "etch 1\nimport \"%s.etch\"\n", model),
        own ? "own" : plan);
}

static etch_placed *placed_family(etch_arena *arena, const char *name, const char *plan)
{
    const exec_family *f = exec_families;
    while (strcmp(f->name, name) != 0)
        f++;
    return placed_text(
        arena, etch_text(arena, "etch 1\n%strain { %s }\nparallel own {\n%s}\n", f->text, f->run, plan),
        "own");
}

#define EXPECT(count, placed, ...) ck_assert_uint_eq(count_moves(placed, (wanted){__VA_ARGS__}), count)
#define EXPECT_LAYER(count, placed, ...) \
    ck_assert_uint_eq(count_in_layer(placed, (wanted){__VA_ARGS__}), count)

/* ---- dense models -------------------------------------------------------------------------------------- */

/* Queries, keys, values and the result change hands: four all-to-alls forward, four backward, and nothing
 * else over cp in a layer. */
static void ulysses(etch_arena *arena)
{
    const etch_placed *p = placed_model(arena, "llama", "ulysses");
    for (etch_phase phase = ETCH_FORWARD; phase <= ETCH_BACKWARD; phase += ETCH_BACKWARD) {
        EXPECT_LAYER(4, p, phase, ETCH_ALL_TO_ALL, "cp", NULL, NULL);
        EXPECT_LAYER(0, p, phase, ETCH_ALL_GATHER, "cp", NULL, NULL);
        EXPECT_LAYER(0, p, phase, ETCH_REDUCE_SCATTER, "cp", NULL, NULL);
        EXPECT_LAYER(0, p, phase, ETCH_ALL_REDUCE, "cp", NULL, NULL);
    }
}

/* With a ring besides: keys and values are gathered over it, of the heads that a rank has, backward again,
 * and their gradients come back. */
static void ulysses_in_a_ring(etch_arena *arena)
{
    const etch_placed *p = placed_model(arena, "llama",
                                        "mesh [dp, ring, uly, tp]\n"
                                        "shard B @ dp, S @ (ring,uly), K @ tp, F @ tp, V @ tp\n"
                                        "for core { shard S @ ring, K @ (tp,uly) }\n");
    EXPECT_LAYER(4, p, ETCH_FORWARD, ETCH_ALL_TO_ALL, "uly", NULL, NULL);
    EXPECT_LAYER(4, p, ETCH_BACKWARD, ETCH_ALL_TO_ALL, "uly", NULL, NULL);
    EXPECT_LAYER(2, p, ETCH_FORWARD, ETCH_ALL_GATHER, "ring", "K", "G");
    EXPECT_LAYER(2, p, ETCH_BACKWARD, ETCH_ALL_GATHER, "ring", "K", "G");
    EXPECT_LAYER(2, p, ETCH_BACKWARD, ETCH_REDUCE_SCATTER, "ring", "K", "G");
}

/* Bias and dropout stand between the product and the residual: the sum is divided before them. */
static void scattered_before_bias(etch_arena *arena)
{
    const etch_placed *p = placed_model(arena, "gpt", "megatron_sp");
    EXPECT_LAYER(2, p, ETCH_FORWARD, ETCH_REDUCE_SCATTER, "tp", "H", NULL);
    EXPECT_LAYER(2, p, ETCH_FORWARD, ETCH_ALL_GATHER, "tp", "H", NULL);
    EXPECT_LAYER(0, p, ETCH_FORWARD, ETCH_ALL_REDUCE, "tp", NULL, NULL);
    EXPECT_LAYER(0, p, ETCH_BACKWARD, ETCH_ALL_REDUCE, "tp", NULL, NULL);
}

/* A head of keys for each rank of tp, and g ranks for each of them: what q, k and v read is gathered once
 * over both. Gradients of keys and values, of which g ranks have summands, are never added up: what is made
 * of them is added to what queries contribute, which is scattered over both axes, or is the gradient of a
 * weight. */
static void heads_over_two_axes(etch_arena *arena)
{
    const etch_placed *p = placed_model(arena, "llama",
                                        "mesh [dp, tp, g]\n"
                                        "shard B @ dp, K @ tp, G @ g, F @ (tp,g), V @ (tp,g)\n"
                                        "pin residual [B@dp, S@(tp,g), H]\n");
    EXPECT_LAYER(2, p, ETCH_FORWARD, ETCH_ALL_GATHER, "(tp,g)", "H", NULL);
    EXPECT_LAYER(2, p, ETCH_FORWARD, ETCH_ALL_GATHER, NULL, NULL, NULL);
    EXPECT_LAYER(2, p, ETCH_FORWARD, ETCH_REDUCE_SCATTER, "(tp,g)", "H", NULL);
    EXPECT_LAYER(0, p, ETCH_FORWARD, ETCH_ALL_REDUCE, NULL, NULL, NULL);
    EXPECT_LAYER(2, p, ETCH_BACKWARD, ETCH_REDUCE_SCATTER, "(tp,g)", "H", NULL);
    EXPECT_LAYER(2, p, ETCH_BACKWARD, ETCH_REDUCE_SCATTER, NULL, NULL, NULL);
    EXPECT_LAYER(0, p, ETCH_BACKWARD, ETCH_ALL_REDUCE, NULL, NULL, NULL);
}

/* Gains see a part of the sequence: one all-reduce over dp and tp for those of a layer, one over dp for its
 * other weights, and none over tp alone. */
static void gains(etch_arena *arena)
{
    const etch_placed *p = placed_model(arena, "llama", "megatron_sp");
    uint32_t both = 0, alone = 0;
    const end_works reductions = end_reductions(p);
    for (uint32_t i = 0; i < reductions.count; i++) {
        const end_work *b = &reductions.at[i];
        const bool of_layer = b->weight_group->loop != NULL;
        both += of_layer && strcmp(etch_axes_label(p, b->axes), "(dp,tp)") == 0;
        alone += strcmp(etch_axes_label(p, b->axes), "tp") == 0;
        ck_assert_int_eq(b->collective, ETCH_ALL_REDUCE);
    }
    ck_assert_uint_eq(both, 1);
    ck_assert_uint_eq(alone, 0);
}

/* ---- experts ------------------------------------------------------------------------------------------- */

/* Summands of an expert's result are added up where the experts are, as slots: what is routed back is a
 * sum. */
static void reduced_before_routing(etch_arena *arena)
{
    const etch_placed *p = placed_model(arena, "mixtral", "moe_ep");
    EXPECT_LAYER(1, p, ETCH_FORWARD, ETCH_REDUCE_SCATTER, "tp", "C", NULL);
    EXPECT_LAYER(0, p, ETCH_FORWARD, ETCH_REDUCE_SCATTER, "tp", "Q", NULL);
    EXPECT_LAYER(1, p, ETCH_FORWARD, ETCH_REDUCE_SCATTER, "tp", "S", NULL); /* behind attention */
}

/* Tokens go and come in one all-to-all each, forward and backward, all of slots; the loss that balances
 * experts adds up one vector of shares over the ranks that share the tokens. */
static void routed(etch_arena *arena)
{
    const etch_placed *p = placed_model(arena, "mixtral", "moe_ep");
    for (etch_phase phase = ETCH_FORWARD; phase <= ETCH_BACKWARD; phase += ETCH_BACKWARD) {
        EXPECT_LAYER(2, p, phase, ETCH_ALL_TO_ALL, "ep", "C", NULL);
        EXPECT_LAYER(2, p, phase, ETCH_ALL_TO_ALL, NULL, NULL, NULL);
    }
    EXPECT_LAYER(1, p, ETCH_FORWARD, ETCH_ALL_REDUCE, NULL, NULL, NULL);
    EXPECT_LAYER(1, p, ETCH_FORWARD, ETCH_ALL_REDUCE, "(dp,tp)", "E", NULL);
    EXPECT_LAYER(0, p, ETCH_BACKWARD, ETCH_ALL_REDUCE, NULL, NULL, NULL);
}

static void shares_of_all_tokens(etch_arena *arena)
{
    const etch_placed *p = placed_model(arena, "mixtral",
                                        "mesh [data, ring, tp]\n"
                                        "shard B @ data, S @ ring, K @ tp, V @ tp\n"
                                        "pin residual [B@data, S@(ring,tp), H]\n"
                                        "for experts_mlp { shard E @ data, C @ ring, I @ tp }\n");
    EXPECT_LAYER(1, p, ETCH_FORWARD, ETCH_ALL_REDUCE, NULL, "E", NULL);
    EXPECT_LAYER(1, p, ETCH_FORWARD, ETCH_ALL_REDUCE, "(data,ring,tp)", "E", NULL);
}

/* ---- tables, towers ------------------------------------------------------------------------------------ */

/* Each rank looks up the rows that it has for all samples, pools them, and only then are the summands added
 * and divided. */
static void pooled_before_reduced(etch_arena *arena)
{
    const etch_placed *p = placed_family(arena, "dlrm",
                                         "mesh [data]\n"
                                         "shard B @ data\n"
                                         "for tables { shard R @ data, B @ () }\n");
    EXPECT(1, p, ETCH_FORWARD, ETCH_REDUCE_SCATTER, "data", "D", "L");
    EXPECT(1, p, ETCH_FORWARD, ETCH_REDUCE_SCATTER, NULL, NULL, NULL);
    EXPECT(0, p, ETCH_FORWARD, ETCH_ALL_REDUCE, NULL, "D", NULL);
    EXPECT(2, p, ETCH_FORWARD, ETCH_ALL_GATHER, "data", "L", NULL); /* indices and their weights */
    EXPECT(2, p, ETCH_FORWARD, ETCH_ALL_GATHER, NULL, NULL, NULL);
    EXPECT(1, p, ETCH_BACKWARD, ETCH_ALL_GATHER, "data", "D", "L");
}

/* The same without a scope: rows and samples over the same ranks. */
static void rows_over_data(etch_arena *arena)
{
    const etch_placed *p = placed_family(arena, "dlrm", "mesh [data]\nshard B @ data, R @ data\n");
    EXPECT(1, p, ETCH_FORWARD, ETCH_REDUCE_SCATTER, "data", "D", "L");
    EXPECT(0, p, ETCH_FORWARD, ETCH_ALL_REDUCE, NULL, "D", NULL);
}

/* The tower works on its share of the batch on each rank of tp; its images come back in one all-gather, their
 * gradients are cut or scattered, and nothing else is sent in the tower. */
static void tower(etch_arena *arena)
{
    const char *const pins[] = {"", "pin residual [B@data, S@tp, H]\n"};
    for (int i = 0; i < 2; i++) {
        const etch_placed *p =
            placed_family(arena, "tower",
                          etch_text(arena,
                                    "mesh [data, tp]\n"
                                    "shard B @ data, K @ tp, F @ tp, V @ tp\n"
                                    "%sfor vision { shard B @ (data,tp), F @ (), A @ () }\n",
                                    pins[i]));
        EXPECT(1, p, ETCH_FORWARD, ETCH_ALL_GATHER, NULL, "P", NULL);
        EXPECT(1, p, ETCH_FORWARD, ETCH_ALL_GATHER, "tp", "P", NULL);
        for (etch_collective collective = ETCH_ALL_TO_ALL; collective <= ETCH_ALL_GATHER; collective++)
            EXPECT(0, p, ETCH_BACKWARD, collective, NULL, "P", NULL);
    }
}

/* ---- copies -------------------------------------------------------------------------------------------- */

/* One reader needs the sum whole, a later one a part of it: that is cut from the copy. */
static void cut_from_a_copy(etch_arena *arena)
{
    const etch_placed *p =
        placed_text(arena,
                    "etch 1\n"
                    "param batch, hidden, inner\n"
                    "dim B = batch, H = hidden, F = inner, O = inner\n"
                    "model m(x[B,F]) -> y[B,O] {\n"
                    "  weight w[F,H], g[H], u[H,O]\n"
                    "  a[B,H] = x * w\n"
                    "  n      = rms_norm(a, g, over = H)\n"
                    "  s[B,O] = n * u\n"
                    "  t[B,O] = a * u\n"
                    "  y      = s + t\n"
                    "  l[]    = y * y    tag loss\n"
                    "}\n"
                    "train { model = m, optimizer = adamw }\n"
                    "parallel own {\n  mesh [tp]\n  shard F @ tp\n  pin s [B@tp, O]\n  pin t [B@tp, O]\n}\n",
                    "own");
    EXPECT(1, p, ETCH_FORWARD, ETCH_ALL_REDUCE, "tp", "H", NULL);
    EXPECT(0, p, ETCH_FORWARD, ETCH_REDUCE_SCATTER, "tp", "H", NULL);
}

#define CASE(name, body)       \
    START_TEST(name)           \
    {                          \
        etch_with_arena(body); \
    }                          \
    END_TEST

CASE(ulysses_has_four_each_way, ulysses)
CASE(ulysses_in_a_ring_gathers_over_the_ring, ulysses_in_a_ring)
CASE(a_bias_and_dropout_come_behind_the_scatter, scattered_before_bias)
CASE(heads_over_two_axes_gather_once, heads_over_two_axes)
CASE(gains_are_reduced_over_dp_and_tp_at_once, gains)
CASE(experts_are_reduced_before_routing, reduced_before_routing)
CASE(experts_are_sent_twice_each_way, routed)
CASE(shares_are_of_all_tokens, shares_of_all_tokens)
CASE(tables_are_pooled_before_they_are_reduced, pooled_before_reduced)
CASE(rows_and_samples_share_ranks, rows_over_data)
CASE(a_tower_comes_back_by_itself, tower)
CASE(a_part_is_cut_from_a_copy, cut_from_a_copy)

Suite *etch_suite(void)
{
    Suite *suite = suite_create("minimal");
    ETCH_ADD_TESTS(suite, ulysses_has_four_each_way, ulysses_in_a_ring_gathers_over_the_ring,
                   a_bias_and_dropout_come_behind_the_scatter, heads_over_two_axes_gather_once,
                   gains_are_reduced_over_dp_and_tp_at_once, experts_are_reduced_before_routing,
                   experts_are_sent_twice_each_way, shares_are_of_all_tokens,
                   tables_are_pooled_before_they_are_reduced, rows_and_samples_share_ranks,
                   a_tower_comes_back_by_itself, a_part_is_cut_from_a_copy);
    return suite;
}
