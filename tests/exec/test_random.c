/* Random models under random plans: gradients are slopes, and ranks compute what one rank computes.
 * ETCH_TEST_SEED chooses the first model, ETCH_TEST_MULT multiplies their number: 200 makes 100,000. A
 * failure prints its seed, and the model and plan as a spec, but of models that are served, which `etch dump`
 * and the other commands read. */
#include "effort.h"
#include "exec_check.h"
#include "exec_random.h"
#include "exec_spec.h"
#include "suite.h"
#include "verify.h"

#include "graph/cost/cost_int.h"
#include "graph/ir/row.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MODELS = 500,
    RICH_MODELS = 300,
    PADDED_MODELS = 60,
    PART_MODELS = 100,
    SERVED_MODELS = 200,
    PLANS = 3
};

typedef struct tally {
    uint32_t placed, refused;
    uint32_t padded, shared;    /* of those placed: with padded dims, and batches that ranks share unevenly */
    uint32_t in_part;           /* of which some iterations of a loop are recomputed */
    uint32_t kinds[EXEC_KINDS]; /* models with a plan that is placed */
    uint64_t counted;           /* the last of them */
} tally;

/* Where models and plans come from. */
typedef struct source {
    const char *name;
    exec_model *(*model)(etch_arena *arena, exec_dice *dice, const char **recompute);
    const char *(*plan)(const exec_model *m, exec_dice *dice);
    bool in_part; /* some classes of iterations are recomputed */
} source;

static const source plain = {"plain", exec_random_model, exec_random_plan, false},
                    odd = {"odd", exec_random_odd_model, exec_random_plan, false},
                    rich = {"rich", exec_random_rich_model, exec_random_rich_plan, false},
                    padded = {"padded", exec_random_padded_model, exec_random_padded_plan, false},
                    written = {"written", exec_random_as_written, exec_random_rich_plan, false},
                    served = {"served", NULL, exec_random_rich_plan, false},
                    in_part = {"in part", exec_random_wide_model, exec_random_plan, true};

/* One of the models with one of its plans; without a plan where the number is 0. */
typedef struct instance {
    const source *from;
    uint64_t seed;
    uint32_t number;
    const char *recompute; /* what is recomputed; NULL: nothing */
    exec_model *m;
    etch_plan *plan;
    etch_training *training;
    bool in_part; /* some iterations of a loop are recomputed */
} instance;

static instance instance_of(etch_arena *arena, const source *from, uint64_t seed, uint32_t number)
{
    exec_dice dice = {exec_mix(seed, 0)}, plans = {exec_mix(seed, 1 + number)};
    instance i = {.from = from, .seed = seed, .number = number};
    if (from->model)
        i.m = from->model(arena, &dice, &i.recompute);
    else
        i.training = exec_random_served_model(arena, &dice, &i.m);
    i.plan = number ? exec_plan(arena, i.m->sym, from->plan(i.m, &plans)) : NULL;
    i.in_part = from->in_part && exec_random_recompute_part(i.m, &dice);
    i.training = from->model ? exec_train(i.m, i.recompute) : i.training;
    return i;
}

/* Fails unless there is nothing to say. */
static void expect_nothing(const instance *i, const char *failure)
{
    if (!failure)
        return;
    fprintf(stderr, "# ETCH_TEST_SEED=%llu, %s, plan %u, recompute %s: %s\n%s", (unsigned long long)i->seed,
            i->from->name, i->number, i->recompute ? i->recompute : "none", failure,
            i->from->model ? exec_spec_text(i->m, i->plan) : "");
    ck_abort_msg("ETCH_TEST_SEED=%llu, %s, plan %u (the spec is printed above): %s",
                 (unsigned long long)i->seed, i->from->name, i->number, failure);
}

static void count_kinds(const instance *i, tally *t)
{
    bool shared = false;
    for (uint32_t k = 0; k < i->plan->pads.count; k++)
        shared = shared || strcmp(i->plan->pads.at[k].dim, "B") == 0;
    t->padded += i->plan->pads.count > shared;
    t->shared += shared;
    for (uint32_t k = 0; k < EXEC_KINDS && t->counted != i->seed; k++)
        t->kinds[k] += i->m->kinds >> k & 1;
    t->counted = i->seed;
}

/* ---- padding ---------------------------------------------------------------------------------------- */

/* What a line of the plan makes of the dim's size, under this name or the one that it was renamed from. */
static etch_expr padded_size(const instance *i, const etch_dim *dim)
{
    const etch_pad *pad = etch_pad_of(i->plan, dim);
    const bool micro = dim == i->m->train.batch || dim->alias == i->m->train.batch;
    if (!pad)
        return dim->size;
    const uint32_t parts = micro ? exec_integer(i->m->train.micro) : 1,
                   size = exec_integer(dim->size) / parts, multiple = exec_integer(pad->multiple);
    return etch_int(i->m->sym, parts * ((size + multiple - 1) / multiple * multiple));
}

/* The same model with sizes that are what the plan pads to, under the plan without these lines. */
static etch_placed *place_enlarged(etch_arena *arena, const instance *i)
{
    exec_dice dice = {exec_mix(i->seed, 0)}, plans = {exec_mix(i->seed, 1 + i->number)};
    instance large = {.from = i->from};
    large.m = i->from->model(arena, &dice, &large.recompute);
    large.plan = exec_plan(arena, large.m->sym, i->from->plan(large.m, &plans));
    const etch_graph *graph = large.m->graph;
    etch_expr *sizes = ETCH_NEW_ARRAY(arena, graph->dims.count, etch_expr);
    for (uint32_t d = 0; d < graph->dims.count; d++)
        sizes[d] = padded_size(&large, graph->dims.at[d]);
    for (uint32_t d = 0; d < graph->dims.count; d++)
        graph->dims.at[d]->size = sizes[d];
    large.plan->pads.count = 0;
    return etch_place(exec_train(large.m, large.recompute), large.plan, ETCH_GRANULARITY_KERNEL);
}

/* What a rank keeps of a microbatch until backward. */
static uint64_t saved_bytes(const etch_placed *placed)
{
    etch_saved_list saved = {0};
    uint64_t bytes = 0;
    etch_placed_saved(placed, NULL, ETCH_HOLD_FORWARD_TO_INPUTS, &saved);
    for (uint32_t i = 0; i < saved.count; i++)
        bytes += (uint64_t)exec_integer(saved.at[i].elements) * saved.at[i].width *
                 exec_integer(saved.at[i].times);
    return bytes;
}

/* Padded elements cost what others do: a rank computes, moves, sends and keeps as much as one of the larger
 * model. */
static const char *check_padding(etch_arena *arena, const instance *i, const etch_placed *placed)
{
    const etch_placed *large = place_enlarged(arena, i);
    etch_sym *sym = large ? large->training->graph->sym : NULL;
    etch_cost_list ours = {0}, theirs = {0};
    if (!large)
        return "the larger model is refused";
    etch_placed_costs(placed, NULL, &ours);
    etch_placed_costs(large, NULL, &theirs);
    if (ours.count != theirs.count)
        return etch_text(arena, "%u costs with padding, %u of the larger model", ours.count, theirs.count);
    for (uint32_t k = 0; k < ours.count; k++) {
        const etch_cost *a = &ours.at[k], *b = &theirs.at[k];
        const char *one = etch_expr_text(i->m->sym, etch_mul(i->m->sym, a->each, a->times));
        const char *other = etch_expr_text(sym, etch_mul(sym, b->each, b->times));
        if (a->measure != b->measure || a->phase != b->phase || strcmp(one, other) != 0)
            return etch_text(arena, "measure %d of %s, %s: %s with padding, %s of the larger model",
                             (int)a->measure, a->row ? etch_row_name(a->row) : "-",
                             a->tensor ? a->tensor->name : "-", one, other);
    }
    if (saved_bytes(placed) != saved_bytes(large))
        return etch_text(arena, "%" PRIu64 " bytes are saved with padding, %" PRIu64 " of the larger model",
                         saved_bytes(placed), saved_bytes(large));
    const uint32_t said = exec_integer(etch_workspace_bytes(placed, NULL, NULL, NULL)),
                   more = exec_integer(etch_workspace_bytes(large, NULL, NULL, NULL));
    return said == more
               ? NULL
               : etch_text(arena, "%u bytes are worked on with padding, %u of the larger model", said, more);
}

/* A plan may be refused, with a reason, or ask for other sizes. */
static void check_plan(etch_arena *arena, const source *from, uint64_t seed, uint32_t number, tally *t)
{
    const instance i = instance_of(arena, from, seed, number);
    etch_placed *placed = verified(etch_place(i.training, i.plan, ETCH_GRANULARITY_KERNEL));
    if (!placed) {
        expect_nothing(&i, etch_error_count(i.m->diags) > 0 ? NULL : "refused without a reason");
        t->refused++;
        return;
    }
    if (!exec_requirements_hold(placed)) {
        t->refused++;
        return;
    }
    t->placed++;
    t->in_part += i.in_part;
    count_kinds(&i, t);
    const char *failure = exec_check_placed(placed, seed);
    if (!failure && i.plan->pads.count && i.from->model)
        failure = check_padding(arena, &i, placed);
    if (!failure)
        return;
    etch_buf dump = {.arena = arena};
    etch_placed_dump(placed, &dump);
    fputs(dump.text, stderr);
    expect_nothing(&i, failure);
}

static void check_gradients(etch_arena *arena, const source *from, uint64_t seed)
{
    const instance i = instance_of(arena, from, seed, 0);
    expect_nothing(&i, exec_check_gradients(i.training, seed, false));
    expect_nothing(&i, exec_check_saved(i.training, seed));
}

typedef void (*checking)(etch_arena *arena, const source *from, uint64_t seed, uint32_t part, tally *t);

static tally each_case(etch_arena *arena, const source *from, uint32_t models, checking body)
{
    uint64_t first = etch_test_seed(1), count = etch_effort(models);
    tally t = {0};
    for (uint64_t seed = first; seed < first + count; seed++)
        for (uint32_t part = 0; part <= PLANS; part++) {
            etch_arena *own = etch_arena_new(etch_arena_mem(arena));
            body(own, from, seed, part, &t);
            etch_arena_free(own);
        }
    ck_assert_msg(3 * t.placed > 2 * t.refused, "%u plans placed, %u refused", t.placed, t.refused);
    return t;
}

static void check_model(etch_arena *arena, const source *from, uint64_t seed, uint32_t part, tally *t)
{
    if (part == 0)
        check_gradients(arena, from, seed);
    else
        check_plan(arena, from, seed, part, t);
}

static void random_models(etch_arena *arena)
{
    each_case(arena, &plain, MODELS, check_model);
}

START_TEST(random_models_are_right)
{
    etch_with_arena(random_models);
}
END_TEST

/* ---- kinds of statements ------------------------------------------------------------------------------ */

/* Sums that are made one add up what those did that were written. */
static void check_sums(etch_arena *arena, uint64_t seed)
{
    const instance one = instance_of(arena, &rich, seed, 0), many = instance_of(arena, &written, seed, 0);
    const double loss = exec_loss(one.training, exec_data_new(arena, one.training, seed)),
                 as_written = exec_loss(many.training, exec_data_new(arena, many.training, seed));
    if (fabs(loss - as_written) > 1e-9 * (1 + fabs(as_written)))
        expect_nothing(&one, etch_text(arena, "the loss is %g, as it is written %g", loss, as_written));
}

static void check_rich(etch_arena *arena, const source *from, uint64_t seed, uint32_t part, tally *t)
{
    if (part == 0) {
        check_gradients(arena, from, seed);
        check_sums(arena, seed);
    } else {
        check_plan(arena, from, seed, part, t);
    }
}

enum { ENOUGH = 10 };

static void expect_enough(uint32_t count, const char *what)
{
    printf("# %4u %s\n", count, what);
    const uint64_t enough = etch_effort(ENOUGH);
    ck_assert_msg(count >= ENOUGH || count >= enough, "%u models or plans with %s", count, what);
}

static void rich_models(etch_arena *arena)
{
    const tally t = each_case(arena, &rich, RICH_MODELS, check_rich);
    for (uint32_t k = 0; k < EXEC_KIND_CACHE; k++)
        expect_enough(t.kinds[k], exec_kind_names[k]);
    expect_enough(t.padded, "padded dims");
    expect_enough(t.shared, "batches that ranks share unevenly");
}

START_TEST(models_of_all_kinds_are_right)
{
    etch_with_arena(rich_models);
}
END_TEST

static void models_in_part(etch_arena *arena)
{
    const tally t = each_case(arena, &in_part, PART_MODELS, check_model);
    expect_enough(t.in_part, "iterations that are recomputed, and others");
}

START_TEST(models_that_are_recomputed_in_part_are_right)
{
    etch_with_arena(models_in_part);
}
END_TEST

static void padded_models(etch_arena *arena)
{
    const tally t = each_case(arena, &padded, PADDED_MODELS, check_model);
    printf("# %4u plans, %u with padded dims, %u with batches that ranks share unevenly\n", t.placed,
           t.padded, t.shared);
    ck_assert_msg(2 * t.padded > t.placed && 8 * t.shared > t.placed, "%u plans, %u padded, %u shared",
                  t.placed, t.padded, t.shared);
}

START_TEST(models_that_no_mesh_divides_are_right)
{
    etch_with_arena(padded_models);
}
END_TEST

static void check_served(etch_arena *arena, const source *from, uint64_t seed, uint32_t part, tally *t)
{
    if (part)
        check_plan(arena, from, seed, part, t);
}

static void served_models(etch_arena *arena)
{
    const tally t = each_case(arena, &served, SERVED_MODELS, check_served);
    for (uint32_t k = EXEC_KIND_CACHE; k < EXEC_KINDS; k++)
        expect_enough(t.kinds[k], exec_kind_names[k]);
    expect_enough(t.shared, "batches that ranks share unevenly");
}

START_TEST(served_models_are_right)
{
    etch_with_arena(served_models);
}
END_TEST

/* ---- sizes ------------------------------------------------------------------------------------------ */

static void check_sizes(etch_arena *arena, const source *from, uint64_t seed, uint32_t part, tally *t)
{
    if (part == 0)
        return;
    const instance i = instance_of(arena, from, seed, part);
    etch_placed *placed = verified(etch_place(i.training, i.plan, ETCH_GRANULARITY_KERNEL));
    if (!placed) {
        t->refused++;
        return;
    }
    t->placed++;
    expect_nothing(&i, exec_check_requirements(placed));
}

static void random_sizes(etch_arena *arena)
{
    each_case(arena, &odd, MODELS, check_sizes);
}

START_TEST(requirements_say_what_can_be_divided)
{
    etch_with_arena(random_sizes);
}
END_TEST

Suite *etch_suite(void)
{
    Suite *suite = suite_create("random");
    ETCH_ADD_TESTS(suite, random_models_are_right, models_of_all_kinds_are_right,
                   models_that_are_recomputed_in_part_are_right, models_that_no_mesh_divides_are_right,
                   served_models_are_right, requirements_say_what_can_be_divided);
    return suite;
}
