/* The chain of units that a stage line makes of a model: its links, what is alive between them, which weights
 * stages share; and one stage seen alone, as numbers and as formulas. */
#include "end_work.h"
#include "suite.h"
#include "verify.h"

#include "sample.h"

#include <string.h>

enum { PP = 2 }; /* the axis of the stages, behind DP and TP */
static const etch_span nowhere = {0, 0};

/* ---- a model in stages --------------------------------------------------------------------------------- */

/* An embedding, loop layer { x = x + mlp(x) }, a norm, the loss. `tied`: the head is the embedding. */
static sample *decoder(etch_arena *arena, bool tied)
{
    sample *x = sample_new(arena);
    etch_tensor *table = sample_weight(x, "emb", "vh");
    etch_tensor *e = sample_call(x, "e", "gather", table, sample_input(x, "ids", "bs", ETCH_I32), 'v', NULL);
    sample_tag(x, e, "embed");
    etch_tensor *out;
    etch_graph_begin(x->graph, "layer", etch_var(x->sym, "layers"), nowhere);
    etch_tensor *in = etch_graph_carry(x->graph, e, nowhere);
    etch_tensor *sum = sample_sum(x, "x", in, sample_mlp(x, in));
    etch_graph_end(x->graph, &sum, &out, 1);
    const uint32_t before = x->graph->op_count;
    etch_tensor *n = sample_call(x, "n", "rms_norm", out, sample_weight(x, "gain", "h"), 'h', NULL);
    etch_tensor *head = tied ? table : sample_weight(x, "out", "vh");
    etch_tensor *z = sample_product(x, "z", n, head, "bsv");
    sample_tag(x, z, "head");
    etch_graph_state(x->graph, z, before);
    etch_tensor *labels = sample_input(x, "labels", "bs", ETCH_I32);
    sample_tag(x, sample_call(x, "l", "cross_entropy", z, labels, 'v', NULL), "loss");
    sample_shard(x, "B", DP);
    sample_shard(x, "F", TP);
    return x;
}

static etch_stage_line *set_stages(sample *x, const char *const *names, uint32_t count)
{
    etch_stage_line *line = ETCH_NEW(x->arena, etch_stage_line);
    ETCH_PUSH(x->arena, &x->plan.mesh, (etch_axis){.name = "pp", .size = etch_var(x->sym, "pp")});
    *line = (etch_stage_line){.selectors = names,
                              .selector_spans = ETCH_NEW_ARRAY(x->arena, count, etch_span),
                              .selector_count = count,
                              .axes = {PP},
                              .axis_count = 1,
                              .schedule = etch_schedule_default(),
                              .chunks = etch_int(x->sym, 1)};
    x->plan.stage = line;
    return line;
}

static const char *const units[] = {"embed", "layer", "head"};

static etch_placed *placed_decoder(etch_arena *arena, bool tied)
{
    sample *x = decoder(arena, tied);
    set_stages(x, units, 3);
    return sample_place(x);
}

/* Of a chain of so many layers. */
static void expect_views(const etch_placed *placed, const etch_stage_numbers *numbers, uint64_t layers)
{
    etch_sym *sym = placed->training->graph->sym;
    const etch_expr var = etch_var(sym, "layers"), value = etch_int(sym, (int64_t)layers);
    const char *wrong = verify_views(placed, numbers, &(verify_binding){1, &var, &value});
    ck_assert_msg(!wrong, "%s", wrong);
}

static const char *text(const etch_placed *placed, etch_expr expr)
{
    return etch_expr_text(placed->training->graph->sym, expr);
}

/* ---- the chain ----------------------------------------------------------------------------------------- */

static void chain_in_program_order(etch_arena *arena)
{
    static const char *const shuffled[] = {"head", "embed", "layer"};
    sample *x = decoder(arena, false);
    set_stages(x, shuffled, 3);
    const etch_placed *placed = sample_place(x);
    const etch_stages *stages = placed->stages;
    ck_assert_uint_eq(stages->segments.count, 3);
    for (uint32_t i = 0; i < 3; i++)
        ck_assert_str_eq(stages->segments.at[i].name, units[i]);
    ck_assert_str_eq(text(placed, stages->layers), "layers + 2");
    ck_assert_str_eq(text(placed, stages->segments.at[2].first), "layers + 1");
    ck_assert_str_eq(text(placed, stages->segments.at[1].count), "layers");
}

START_TEST(test_chain)
{
    etch_with_arena(chain_in_program_order);
}
END_TEST

/* Every step that computes is in a unit; what is derived is where its forward op is. */
static void check_homes(const etch_placed *placed, const etch_placed_region *region)
{
    static const struct {
        const char *result;
        uint32_t segment;
    } at[] = {{"e", 0}, {"n", 2}, {"z", 2}, {"l", 2}, {"demb", 0}, {"dout", 2}, {"dgain", 2}};
    for (uint32_t i = 0; i < region->items.count; i++) {
        const etch_step *step = region->items.at[i].step;
        if (!step || step->collective != ETCH_NO_COLLECTIVE || step->kernel == UINT32_MAX)
            continue;
        ck_assert_uint_ne(step->position, ETCH_NO_POSITION);
        const char *name = step->outs[0]->tensor->name;
        for (uint32_t k = 0; k < sizeof at / sizeof *at; k++)
            if (strcmp(at[k].result, name) == 0)
                ck_assert_msg(etch_position_segment(step->position) == at[k].segment, "%s is at %u", name,
                              (unsigned)step->position);
        if (step->op && step->op->forward)
            for (uint32_t k = 0; k < placed->forward->items.count; k++) {
                const etch_step *forward = placed->forward->items.at[k].step;
                if (forward && forward->op == step->op->forward)
                    ck_assert_uint_eq(step->position, forward->position);
            }
    }
}

static void everything_has_a_home(etch_arena *arena)
{
    const etch_placed *placed = placed_decoder(arena, false);
    check_homes(placed, placed->forward);
    check_homes(placed, placed->backward);
}

START_TEST(test_homes)
{
    etch_with_arena(everything_has_a_home);
}
END_TEST

/* ---- what is alive ------------------------------------------------------------------------------------- */

/* Between any two units the residual of a rank's 32 tokens, in 2 bytes: 32 * 32 * 2; backward its
 * cotangent. */
static void residual_at_every_cut(etch_arena *arena)
{
    const etch_placed *placed = placed_decoder(arena, false);
    ck_assert_uint_eq(placed->stages->cuts.count, 3);
    for (uint32_t i = 0; i < 3; i++) {
        const etch_cut *cut = &placed->stages->cuts.at[i];
        ck_assert_int_eq(sample_value(cut->forward_bytes), 2048);
        ck_assert_int_eq(sample_value(cut->backward_bytes), 2048);
        ck_assert_uint_eq(cut->forward.count, 1);
        for (uint32_t axis = 0; axis < placed->plan->mesh.count; axis++) {
            ck_assert_ptr_ne(cut->forward.at[0].value->place[axis], ETCH_PARTIAL);
            ck_assert_ptr_ne(cut->backward.at[0].value->place[axis], ETCH_PARTIAL);
        }
    }
}

START_TEST(test_residual)
{
    etch_with_arena(residual_at_every_cut);
}
END_TEST

/* ---- weights ------------------------------------------------------------------------------------------- */

static const etch_stage_uses *uses_of(const etch_placed *placed, const char *name)
{
    const etch_graph *graph = placed->training->graph;
    for (uint32_t i = 0; i < graph->weights.count; i++)
        if (strcmp(graph->weights.at[i]->name, name) == 0)
            return &placed->stages->uses[graph->weights.at[i]->id];
    ck_abort_msg("no weight %s", name);
    return NULL;
}

static void weights_are_where_they_are_used(etch_arena *arena)
{
    const etch_placed *own = placed_decoder(arena, false), *tied = placed_decoder(arena, true);
    ck_assert_uint_eq(uses_of(own, "emb")->count, 1);
    const end_works shared_of_own = end_shared_reductions(own);
    ck_assert_uint_eq(shared_of_own.count, 0);
    ck_assert_uint_eq(uses_of(own, "w1")->count, 0); /* each layer has its own */
    ck_assert_uint_eq(uses_of(tied, "emb")->count, 2);
    const end_works shared_of_tied = end_shared_reductions(tied);
    ck_assert_uint_eq(shared_of_tied.count, 1);
    ck_assert_int_eq(sample_value(shared_of_tied.at[0].bytes), 4 * 128 * 32);
    ck_assert_uint_eq(shared_of_tied.at[0].axes, 1u << PP);
}

START_TEST(test_uses)
{
    etch_with_arena(weights_are_where_they_are_used);
}
END_TEST

/* A weight of all layers has one use, in a loop, and is shared all the same. */
static void a_weight_of_all_layers_is_shared(etch_arena *arena)
{
    sample *x = sample_new(arena);
    etch_tensor *table = sample_weight(x, "emb", "vh"), *gain = sample_weight(x, "gain", "h");
    etch_tensor *e = sample_call(x, "e", "gather", table, sample_input(x, "ids", "bs", ETCH_I32), 'v', NULL);
    sample_tag(x, e, "embed");
    etch_tensor *out;
    etch_graph_begin(x->graph, "layer", etch_var(x->sym, "layers"), nowhere);
    etch_tensor *in = etch_graph_carry(x->graph, e, nowhere);
    etch_tensor *sum = sample_sum(x, "x", in, sample_call(x, "n", "rms_norm", in, gain, 'h', NULL));
    etch_graph_end(x->graph, &sum, &out, 1);
    sample_loss(x, out);
    set_stages(x, units, 2);
    const etch_placed *placed = sample_place(x);
    const etch_stage_uses *uses = uses_of(placed, "gain");
    const end_works shared = end_shared_reductions(placed);
    ck_assert_uint_eq(shared.count, 1);
    ck_assert_int_eq(sample_value(shared.at[0].bytes), 4 * 32);
    const uint64_t entries[] = {1, 5};
    const etch_stage_numbers numbers = {.stages = 3, .chunks = 1, .layers = 6, .segments = entries};
    expect_views(placed, &numbers, 5);
    for (uint32_t stage = 0; stage < 3; stage++) {
        const etch_stage_view *view = etch_stage_view_of(placed, &numbers, stage);
        ck_assert_int_eq(sample_value(etch_stage_presence(x->sym, view, uses)), 1);
        ck_assert_int_eq(sample_value(etch_stage_shares_weight(x->sym, view, uses)), 1);
        ck_assert_int_eq(sample_value(etch_stage_begins(x->sym, view, uses)), stage == 0);
    }
}

START_TEST(test_weight_of_a_loop)
{
    etch_with_arena(a_weight_of_all_layers_is_shared);
}
END_TEST

/* ---- views --------------------------------------------------------------------------------------------- */

enum { MOST_STAGES = 5, MOST_LAYERS = 13 };

static int64_t at(sample *x, etch_expr expr, int64_t layers, int64_t stages, int64_t stage)
{
    const etch_expr vars[] = {etch_var(x->sym, "layers"), etch_var(x->sym, "pp"), etch_var(x->sym, "stage")};
    const etch_expr values[] = {etch_int(x->sym, layers), etch_int(x->sym, stages), etch_int(x->sym, stage)};
    return sample_value(etch_subst(x->sym, expr, 3, vars, values));
}

/* As many messages, before the same iterations. */
static void check_ends(sample *x, const etch_iterations *bound, const etch_iterations *open, int64_t layers,
                       int64_t stages, int64_t stage)
{
    ck_assert_uint_eq(bound->count, open->count);
    for (uint32_t i = 0; i < bound->count; i++)
        ck_assert_int_eq(sample_value(bound->at[i]), at(x, open->at[i], layers, stages, stage));
}

static void check_view(sample *x, const etch_stage_view *bound, const etch_stage_view *open, int64_t layers,
                       int64_t stages, int64_t stage)
{
    for (uint32_t i = 0; i < 3; i++) {
        for (int side = 0; side < ETCH_SIDES; side++)
            ck_assert_int_eq(sample_value(bound->shares[i][side]),
                             at(x, open->shares[i][side], layers, stages, stage));
        ck_assert_int_eq(bound->held[i], open->held[i]);
        check_ends(x, &bound->forward[i], &open->forward[i], layers, stages, stage);
        check_ends(x, &bound->backward[i], &open->backward[i], layers, stages, stage);
    }
}

/* Chains of all sizes that formulas hold for: every stage has a layer. Of one that is there twice every
 * second number of stages, and two chunks in each. */
static void formulas_of_schedule(etch_arena *arena, const char *schedule)
{
    const uint32_t copies = strcmp(schedule, "dualpipe") == 0 ? 2 : 1;
    sample *x = decoder(arena, false);
    set_stages(x, units, 3)->schedule = etch_schedule_named(schedule);
    const etch_placed *placed = sample_place(x);
    etch_expr pp = etch_var(x->sym, "pp"), stage_number = etch_var(x->sym, "stage");
    for (uint32_t chunks = copies; chunks <= (copies > 1 ? copies : 3); chunks++) {
        const etch_stage_view *open[3];
        for (int class = 0; class < 3; class ++)
            open[class] = etch_stage_view_class(placed, (etch_stage_class) class, pp, chunks, stage_number);
        for (uint32_t stages = 2; stages <= MOST_STAGES; stages += copies)
            for (uint64_t layers = 2 * (uint64_t)stages * chunks / copies - 2; layers <= MOST_LAYERS;
                 layers++) {
                const uint64_t entries[] = {1, layers, 1};
                const etch_stage_numbers n = {.map = etch_schedule_map(placed->plan->stage->schedule),
                                              .stages = stages,
                                              .chunks = chunks,
                                              .layers = layers + 2,
                                              .segments = entries};
                for (uint32_t stage = 0; stage < stages; stage++) {
                    const etch_stage_view *bound = etch_stage_view_of(placed, &n, stage);
                    const etch_stage_view *of_class = open[stage == 0 ? 0 : stage + 1 == stages ? 2 : 1];
                    check_view(x, bound, of_class, (int64_t)layers, stages, stage);
                    if (copies > 1)
                        check_view(x, bound->of_first_copy, of_class->of_first_copy, (int64_t)layers, stages,
                                   stage);
                }
            }
    }
}

static void formulas_are_the_numbers(etch_arena *arena)
{
    formulas_of_schedule(arena, "interleaved");
    formulas_of_schedule(arena, "zb_v");
    formulas_of_schedule(arena, "dualpipe");
}

START_TEST(test_formulas)
{
    etch_with_arena(formulas_are_the_numbers);
}
END_TEST

/* Whatever the counts, the stages hold every unit once. */
static void stages_hold_everything_once(etch_arena *arena)
{
    const etch_placed *placed = placed_decoder(arena, false), *tied = placed_decoder(arena, true);
    static const uint64_t counts[][6] = {
        {1, 4, 1, 1, 1, 1}, {4, 1, 1, 1, 1, 1}, {1, 1, 1, 1, 1, 4}, {2, 2, 2, 1, 1, 1}};
    for (uint32_t i = 0; i < 4; i++)
        for (uint32_t stages = 2; stages <= 6; stages++) {
            if (6 % stages != 0)
                continue;
            const uint64_t entries[] = {1, 7, 1};
            const etch_stage_numbers n = {.stages = stages,
                                          .chunks = 6 / stages,
                                          .layers = 9,
                                          .segments = entries,
                                          .counts = counts[i]};
            int64_t sums[3] = {0}, sends = 0;
            expect_views(placed, &n, 7);
            expect_views(tied, &n, 7);
            for (uint32_t stage = 0; stage < stages; stage++) {
                const etch_stage_view *view = etch_stage_view_of(placed, &n, stage);
                for (uint32_t k = 0; k < 3; k++) {
                    sums[k] += sample_value(view->shares[k][ETCH_ALL_OF]);
                    sends += view->forward[k].count + view->backward[k].count;
                }
            }
            for (uint32_t k = 0; k < 3; k++)
                ck_assert_int_eq(sums[k], (int64_t)entries[k]);
            ck_assert_int_eq(sends, 2 * 5); /* both ways over every cut between six chunks */
        }
}

START_TEST(test_shares)
{
    etch_with_arena(stages_hold_everything_once);
}
END_TEST

/* ---- what makes no chain ------------------------------------------------------------------------------- */

static void chains_that_cannot_be(etch_arena *arena)
{
    static const uint64_t short_counts[] = {3, 4}, long_counts[] = {5, 5}, no_counts[] = {9, 0};
    static const struct {
        uint32_t stages, counted;
        uint64_t layers;
        const uint64_t *counts;
        bool fits;
    } cases[] = {{9, 0, 7, NULL, true},          {10, 0, 7, NULL, false},
                 {2, 0, 0, NULL, false},         {2, 2, 5, short_counts, true},
                 {2, 2, 7, short_counts, false}, {2, 2, 7, long_counts, false},
                 {3, 2, 5, short_counts, false}, {2, 2, 7, no_counts, false}};
    for (uint32_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        sample *x = decoder(arena, false);
        etch_stage_line *line = set_stages(x, units, 3);
        line->count_count = cases[i].counted;
        const etch_placed *placed = sample_place(x);
        const uint64_t entries[] = {1, cases[i].layers, 1};
        const etch_stage_numbers n = {.stages = cases[i].stages,
                                      .chunks = 1,
                                      .layers = cases[i].layers + 2,
                                      .segments = entries,
                                      .counts = cases[i].counts};
        ck_assert_msg(etch_stage_numbers_fit(placed, &n) == cases[i].fits, "case %u", (unsigned)i);
        ck_assert_uint_eq(etch_error_count(x->diags), cases[i].fits ? 0 : 1);
    }
}

START_TEST(test_misfits)
{
    etch_with_arena(chains_that_cannot_be);
}
END_TEST

Suite *etch_suite(void)
{
    Suite *suite = suite_create("stages");
    ETCH_ADD_TESTS(suite, test_chain, test_homes, test_residual, test_uses, test_weight_of_a_loop,
                   test_formulas, test_shares, test_misfits);
    return suite;
}
