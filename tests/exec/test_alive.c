/* Bytes alive on a rank, measured, against what the product says: of models of the zoo and of random models,
 * under plans with and without stages. ETCH_TEST_SEED chooses the first random model, ETCH_TEST_MULT
 * multiplies their number: 250 makes 100,000; ETCH_TEST_COUNT is their number. */
#include "effort.h"
#include "exec_alive.h"
#include "exec_check.h"
#include "exec_random.h"
#include "exec_spec.h"
#include "exec_zoo.h"
#include "suite.h"

#include "graph/plan/schedules/generator.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MODELS = 400 };

typedef struct tally {
    uint32_t run, refused, stages, loose;
    uint32_t ahead;          /* of those run: weights are gathered several groups ahead */
    uint32_t padded, uneven; /* of those run: with padding; of batches that ranks share unevenly */
    uint32_t schedules[ETCH_SCHEDULE_COUNT]; /* of those with stages */
} tally;

/* ---- random models ------------------------------------------------------------------------------------ */

/* Nothing is sent, or on a stage, that nobody reads: but what an iteration hands on from outside its loop, or
 * begins a loop with, is taken for read. */
static const char *check_surplus(const exec_slots *s)
{
    if (exec_traits(s->placed) & EXEC_OUTER)
        return NULL;
    return s->unread ? "weights are on stages that do not read them" : s->unneeded;
}

static const char *check_slots(exec_slots *s, tally *t)
{
    exec_slots_run(s);
    const char *failure = s->failure ? s->failure : check_surplus(s);
    uint32_t loose = 0;
    if (!failure)
        failure = exec_check_alive(s, &loose);
    exec_slots_release(s);
    t->run++;
    t->padded += exec_is_padded(s->placed, NULL);
    t->uneven += exec_is_padded(s->placed, "B");
    t->loose += loose > 0;
    t->stages += s->chain.stages > 1;
    if (s->placed->stages)
        t->schedules[etch_schedule_kind_of(s->placed->stages->line->schedule)]++;
    return failure;
}

/* Without stages, on stages of some schedules, or of any. */
typedef enum way { ON_ONE_STAGE, ON_SOME_STAGES, ON_ANY_STAGES, WAYS } way;

typedef const char *(*planning)(const exec_model *m, exec_dice *dice);

typedef struct source {
    const char *name;
    exec_model *(*model)(etch_arena *arena, exec_dice *dice, const char **recompute);
    const planning *plan; /* by way */
    bool in_part;         /* some classes of iterations are recomputed */
} source;

static const planning plans[WAYS] = {exec_random_plan, exec_random_staged_plan, exec_random_scheduled_plan};
static const planning rich_plans[WAYS] = {exec_random_rich_plan, exec_random_rich_staged_plan,
                                          exec_random_rich_scheduled_plan};
static const planning padded_plans[WAYS] = {exec_random_padded_plan, exec_random_padded_staged_plan,
                                            exec_random_padded_scheduled_plan};
static const source plain = {"plain", exec_random_model, plans, false},
                    wide = {"wide", exec_random_wide_model, plans, false},
                    rich = {"rich", exec_random_rich_model, rich_plans, false},
                    padded = {"padded", exec_random_wide_padded_model, padded_plans, false},
                    in_part = {"in part", exec_random_wide_model, plans, true};

/* `prefetch`: another number of weight groups ahead than plans have that gather weights; 0: as they have it.
 * False: there is nothing to change. */
static bool check_ahead(etch_arena *arena, const source *from, uint64_t seed, way how, uint32_t prefetch,
                        tally *t)
{
    exec_dice dice = {exec_mix(seed, 0)}, of_plan = {exec_mix(seed, 1 + how)};
    const char *recompute;
    exec_model *m = from->model(arena, &dice, &recompute);
    const char *text = from->plan[how](m, &of_plan);
    etch_plan *plan = exec_plan(arena, m->sym, text);
    if (from->in_part && !exec_random_recompute_part(m, &of_plan))
        return false;
    if (prefetch && (plan->zero.level < 3 || plan->zero.ahead == 0))
        return false;
    plan->zero.ahead = prefetch ? prefetch : plan->zero.ahead;
    const etch_training *training = exec_train(m, recompute);
    const etch_placed *placed = etch_place(training, plan, ETCH_GRANULARITY_KERNEL);
    const exec_chain chain = placed ? exec_chain_new(arena, placed) : (exec_chain){0};
    if (!placed || !exec_requirements_hold(placed) || !exec_chain_fits(&chain)) {
        t->refused++;
        return false;
    }
    const char *failure = check_slots(exec_slots_new(arena, placed, seed), t);
    t->ahead += prefetch > 0;
    if (!failure)
        return true;
    if (prefetch)
        failure = etch_text(arena, "with prefetch = %u, %s", prefetch, failure);
    fprintf(stderr, "# ETCH_TEST_SEED=%llu, %s, plan %s: %s\n%s", (unsigned long long)seed, from->name, text,
            failure, exec_spec_text(m, plan));
    ck_abort_msg("ETCH_TEST_SEED=%llu, %s (the spec is printed above, without its stages): plan %s: %s",
                 (unsigned long long)seed, from->name, text, failure);
    return false;
}

static void check_random(etch_arena *arena, const source *from, uint64_t seed, way how, tally *t)
{
    if (check_ahead(arena, from, seed, how, 0, t))
        check_ahead(arena, from, seed, how, 2 + (uint32_t)(seed % 7), t);
}

/* Do two microbatches fill it? */
static bool runs_two(etch_arena *arena, const etch_schedule *schedule)
{
    const etch_pipe pipe = {
        .schedule = schedule, .stages = 2, .chunks = 1, .microbatches = 2, .trains = true};
    return etch_pipe_fits(etch_diags_new(arena), (etch_span){0, 0}, &pipe);
}

/* Has every schedule a share of the plans with stages, at least 1 of 60? One that wants more microbatches
 * than most models have is there at all. */
static void check_schedules(etch_arena *arena, const tally *t)
{
    for (uint32_t i = 0; i < ETCH_SCHEDULE_COUNT; i++) {
        const etch_schedule *schedule = etch_schedule_at(i);
        const char *name = etch_schedule_name(schedule);
        const uint32_t times = runs_two(arena, schedule) ? 60 : t->stages;
        printf("  %u %s\n", t->schedules[i], name);
        ck_assert_msg(times * t->schedules[i] >= t->stages, "%u of %u plans are %s", t->schedules[i],
                      t->stages, name);
    }
}

static void random_models(etch_arena *arena)
{
    const uint64_t first = etch_test_seed(1), count = etch_effort(MODELS);
    tally t = {0};
    for (uint64_t seed = first; seed < first + count; seed++)
        for (uint32_t part = 0; part < (seed % 2 ? 6 : 4); part++) {
            const source *const sources[] = {seed % 2 ? &plain : &wide, &rich, &padded};
            etch_arena *own = etch_arena_new(etch_arena_mem(arena));
            check_random(own, sources[part / 2], seed, part % 2 ? ON_ANY_STAGES : ON_ONE_STAGE, &t);
            etch_arena_free(own);
        }
    printf("%u plans, %u of them with stages, of which %u are said to keep more; %u refused; %u with "
           "padding, %u of them of the batch\n",
           t.run, t.stages, t.loose, t.refused, t.padded, t.uneven);
    ck_assert_msg(3 * t.run > 2 * t.refused && 6 * t.stages > t.run, "%u plans, %u with stages; %u refused",
                  t.run, t.stages, t.refused);
    if (count < MODELS)
        return;
    ck_assert_msg(4 * t.padded > t.run && 8 * t.uneven > t.run, "%u plans, %u with padding, %u of the batch",
                  t.run, t.padded, t.uneven);
    ck_assert_msg(40 * t.ahead > t.run, "%u plans, %u with weights several groups ahead", t.run, t.ahead);
    ck_assert_msg(10 * t.loose <= t.stages, "%u of %u are said to keep more", t.loose, t.stages);
    check_schedules(arena, &t);
}

static void check_ways(etch_arena *arena, const source *from, uint64_t seed, tally *t)
{
    for (uint32_t how = 0; how < WAYS; how++) {
        etch_arena *own = etch_arena_new(etch_arena_mem(arena));
        check_random(own, from, seed, (way)how, t);
        etch_arena_free(own);
    }
}

/* What is kept of iterations that are recomputed, and of the others of the same loop. */
static void recomputed_in_part(etch_arena *arena)
{
    const uint64_t first = etch_test_seed(1), count = etch_effort(MODELS);
    tally t = {0};
    for (uint64_t seed = first; seed < first + count; seed++)
        for (way how = ON_ONE_STAGE; how < WAYS; how++) {
            etch_arena *own = etch_arena_new(etch_arena_mem(arena));
            check_random(own, &in_part, seed, how, &t);
            etch_arena_free(own);
        }
    printf("%u plans, %u of them with stages; %u refused\n", t.run, t.stages, t.refused);
    ck_assert_msg(2 * t.run > t.refused && 6 * t.stages > t.run, "%u plans, %u with stages; %u refused",
                  t.run, t.stages, t.refused);
}

START_TEST(iterations_that_are_recomputed_keep_what_enters_them)
{
    etch_with_memory((size_t)1 << 30, recomputed_in_part);
}
END_TEST

/* Models and plans of which something was said wrong once. */
static void seeds(etch_arena *arena)
{
    static const uint64_t once[] = {
        /* parts in messages, slices that nobody reads, copies and parts of weights */
        2739, 4564, 5354, 6891, 8114, 10828, 13809, 25398, 31118,
        /* zeros that go through a stage */
        43896,
        /* what a loop adds up, and a term of the same sum that is known before it */
        1804, 2590, 2946, 6162, 17616, 23174, 37630, 39297, 42474, 46328, 49672, 58240, 61910, 70508,
        /* a sequence in chunks that is merged, and split so that fewer ranks share its outer dim */
        20866, 86414, 94056,
        /* sums of what cancels out, and of what is very large */
        56572, 101268,
        /* shards of weights, and parts that are recomputed, read in several units; parts that nobody reads */
        62610, 75988, 81447,
        /* what iterations keep that one turn stands for; what each hands on, and only some read */
        60972, 109600,
        /* a part that a later chunk of the stage keeps, and no earlier one the whole */
        103314, 403726,
        /* experts' tokens of a rank in one sequence only, or one choice of each */
        41094, 406954,
        /* halves of backward: parts of what forward keeps, zeros, what loops carry, copies of weights */
        500006, 1002055, 1010180, 1013933, 1015106, 1062134,
        /* what waits for the second half in two chunks */
        1066288,
        /* what one stage moves and another reads; copies before a loop that gathers the weight itself */
        1033037, 1016219,
        /* sums of whose terms a loop begins with one, or with more than it adds up; ties of what cancels */
        1043228, 1054782, 3010218,
        /* a part of a cotangent that another stage cuts */
        3018407,
        /* what inner loops that are run again begin with */
        4004486,
        /* copies that wait in several iterations */
        6057270,
        /* what loops of the second half hand on, from the last iteration to the first */
        6014480,
        /* what one iteration of a loop that is repeated makes, and one of a class of several reads */
        4002440,
        /* whole gradients that wait for the second half; parts of which the first half reads the second */
        7021542, 9102882,
        /* copies of weights that are there all the time, where actions share slots */
        9204172,
        /* parts of weights that are left for backward, and not read */
        20004314,
        /* what iterations of an inner loop that is run again enter one another with, also as a view */
        20016402, 20031238,
        /* two parts of one value, of one size, in a message */
        20022545,
        /* parts of a weight that several iterations gather; what the second half only hands on */
        30203788, 30200946, 30313944,
        /* what iterations hand on over a cut, and nothing behind it reads */
        20030423, 20036412, 20039833,
        /* copies for all microbatches on stages of a chain that is there twice */
        30613966};
    /* sequences in chunks that are renamed, and padded; what is handed on, and not read */
    static const uint64_t of_padding[] = {7023415, 20012605, 30205497};
    /* parts of a weight that several steps gather */
    static const uint64_t of_kinds[] = {30018041};
    tally t = {0};
    for (uint32_t i = 0; i < sizeof once / sizeof *once; i++)
        check_ways(arena, once[i] % 2 ? &plain : &wide, once[i], &t);
    for (uint32_t i = 0; i < sizeof of_padding / sizeof *of_padding; i++)
        check_ways(arena, &padded, of_padding[i], &t);
    for (uint32_t i = 0; i < sizeof of_kinds / sizeof *of_kinds; i++)
        check_ways(arena, &rich, of_kinds[i], &t);
    ck_assert_uint_gt(t.run, t.refused);
}

START_TEST(seeds_that_once_differed_are_said_right)
{
    etch_with_memory((size_t)1 << 30, seeds);
}
END_TEST

START_TEST(random_models_are_said_right)
{
    etch_with_memory((size_t)1 << 30, random_models);
}
END_TEST

/* ---- models of the zoo -------------------------------------------------------------------------------- */

static const char *loops_of(const exec_model *m, uint32_t *layers)
{
    const etch_region *forward = m->graph->forward;
    etch_buf text = {.arena = m->arena};
    etch_buf_puts(&text, "");
    *layers = 0;
    for (uint32_t i = 0; i < forward->items.count; i++) {
        const etch_loop *loop = forward->items.at[i].loop;
        if (!loop)
            continue;
        etch_buf_printf(&text, "%s%s", *layers ? "," : "", loop->name);
        *layers += exec_integer(loop->count);
    }
    return text.text;
}

/* On two stages, or without; the schedules take turns. NULL: it cannot be. */
static const char *zoo_plan(const exec_model *m, const char *lines, uint32_t number, bool staged)
{
    static const char *const schedules[] = {"gpipe", "one_f_one_b", "interleaved virtual=2",
                                            "breadth_first virtual=2"};
    uint32_t layers;
    const char *loops = loops_of(m, &layers);
    if (!staged)
        return lines;
    if (layers < 2)
        return NULL;
    return etch_text(m->arena, "pp=2 %s | stage %s@pp %s", lines, loops,
                     schedules[layers < 4 ? number % 2 : number % 4]);
}

/* Where the halves of backward are slots of their own. False: the plan cannot be. */
static bool check_halves(etch_arena *arena, const exec_zoo *zoo, uint32_t number)
{
    static const char *const schedules[] = {"zb_h2", "zb_h1", "list=F0,F1,I0,W0,B1;F0,I0,F1,B1,W0"};
    exec_model *m = zoo->build(arena, 2);
    uint32_t layers;
    const char *loops = loops_of(m, &layers);
    const char *text =
        etch_text(arena, "pp=2 %s | stage %s@pp %s", zoo->plans[number], loops, schedules[number % 3]);
    const etch_training *training = exec_train(m, zoo->recompute);
    const etch_placed *placed =
        layers < 2 ? NULL : etch_place(training, exec_plan(arena, m->sym, text), ETCH_GRANULARITY_KERNEL);
    if (!placed)
        return false;
    exec_slots *s = exec_slots_new(arena, placed, 1);
    uint32_t loose = 0;
    exec_slots_run(s);
    const char *failure = s->failure ? s->failure : exec_check_alive(s, &loose);
    exec_slots_release(s);
    ck_assert_msg(!failure && loose == 0, "%s, %s: %s", zoo->name, text,
                  failure ? failure : "more is said to be kept than is");
    return true;
}

static void halves(etch_arena *arena)
{
    uint32_t placed = 0;
    for (const exec_zoo *z = exec_models; z->name; z++)
        for (uint32_t i = 0; z->plans[i]; i++) {
            etch_arena *own = etch_arena_new(etch_arena_mem(arena));
            placed += check_halves(own, z, i);
            etch_arena_free(own);
        }
    ck_assert_uint_gt(placed, 500);
}

START_TEST(halves_of_backward_are_said_right)
{
    etch_with_memory((size_t)1 << 30, halves);
}
END_TEST

/* Stages that were looked at. */
typedef struct overlap_tally {
    /* of two chunks; where as much is said as is held; where more is */
    uint32_t chunked, exact, loose;
} overlap_tally;

/* A forward and a backward action in one slot work on what both do: every pair of their fullest steps may
 * meet, and of chunks that share no slot none does. Only what chunks keep is said as a bound. */
static void check_overlaps(etch_arena *arena, const exec_zoo *zoo, uint32_t number, overlap_tally *seen)
{
    const bool is_dual = exec_zoo_has_microbatches(arena, zoo, zoo->plans[number], 4);
    exec_model *m = zoo->build(arena, is_dual ? 4 : 2);
    uint32_t layers;
    const char *loops = loops_of(m, &layers);
    const bool chunks = layers >= 4 && is_dual;
    const char *text = etch_text(arena, "pp=2 %s | stage %s@pp %s", zoo->plans[number], loops,
                                 chunks    ? "dualpipev"
                                 : is_dual ? "list=F0,F1,F2,&B0,F3,&B1,B2,B3;F0,B0,F1,F2,&B1,F3,&B2,B3"
                                           : "list=F0,F1,&B0,B1;F0,B0,F1,B1");
    const etch_training *training = exec_train(m, zoo->recompute);
    const etch_placed *placed =
        layers < 2 ? NULL : etch_place(training, exec_plan(arena, m->sym, text), ETCH_GRANULARITY_KERNEL);
    if (!placed)
        return;
    exec_slots *s = exec_slots_new(arena, placed, 1);
    exec_slots_run(s);
    ck_assert_msg(!s->failure, "%s, %s: %s", zoo->name, text, s->failure);
    for (uint32_t i = 0; i < s->chain.stages; i++) {
        const exec_alive is = exec_alive_measured(s, i), said = exec_alive_said(s, i);
        ck_assert_msg(is.saved == said.saved && is.activations <= said.activations &&
                          is.workspace <= said.workspace && is.peak <= said.peak,
                      "%s, %s, stage %u: less is said than is held: %llu %llu, %llu %llu", zoo->name, text, i,
                      (unsigned long long)is.activations, (unsigned long long)said.activations,
                      (unsigned long long)is.workspace, (unsigned long long)said.workspace);
        const bool exact = is.workspace == said.workspace && (chunks || is.activations == said.activations);
        seen->chunked += chunks;
        seen->exact += exact;
        seen->loose += !exact;
    }
    exec_slots_release(s);
}

static void overlaps(etch_arena *arena)
{
    overlap_tally seen = {0};
    uint32_t turn = 0;
    for (const exec_zoo *z = exec_models; z->name; z++)
        for (uint32_t i = 0; z->plans[i]; i++) {
            if (turn++ % 6 != 0)
                continue;
            etch_arena *own = etch_arena_new(etch_arena_mem(arena));
            check_overlaps(own, z, i, &seen);
            etch_arena_free(own);
        }
    ck_assert_uint_gt(seen.chunked, 4);
    ck_assert_uint_gt(seen.exact, 80);
    ck_assert_uint_eq(seen.loose, 0);
}

START_TEST(slots_of_two_actions_are_said_right)
{
    etch_with_memory((size_t)1 << 30, overlaps);
}
END_TEST

static void check_plan(etch_arena *arena, const exec_zoo *zoo, uint32_t number, bool staged)
{
    exec_model *m = zoo->build(arena, 2);
    const char *text = zoo_plan(m, zoo->plans[number], number, staged);
    const etch_training *training = exec_train(m, zoo->recompute);
    const etch_placed *placed =
        text ? etch_place(training, exec_plan(arena, m->sym, text), ETCH_GRANULARITY_KERNEL) : NULL;
    if (!placed)
        return;
    exec_slots *s = exec_slots_new(arena, placed, 1);
    uint32_t loose = 0;
    exec_slots_run(s);
    const char *failure = s->failure ? s->failure : exec_check_alive(s, &loose);
    exec_slots_release(s);
    ck_assert_msg(!failure && loose == 0, "%s, %s: %s", zoo->name, text,
                  failure ? failure : "more is said to be kept than is");
}

static void zoo(etch_arena *arena)
{
    for (const exec_zoo *z = exec_models; z->name; z++)
        for (uint32_t i = 0; z->plans[i]; i++)
            for (uint32_t staged = 0; staged < 2; staged++) {
                etch_arena *own = etch_arena_new(etch_arena_mem(arena));
                check_plan(own, z, i, staged);
                etch_arena_free(own);
            }
}

START_TEST(models_of_the_zoo_are_said_right)
{
    etch_with_memory((size_t)1 << 30, zoo);
}
END_TEST

/* ---- mistakes ----------------------------------------------------------------------------------------- */

static void forget_reads(etch_placed *placed)
{
    placed->backward->items.count = 1;
}

static void widen_results(etch_placed *placed)
{
    const etch_graph *graph = placed->training->graph;
    for (uint32_t i = 0; i < graph->tensors.count; i++)
        if (graph->tensors.at[i]->kind == ETCH_ACT && !graph->tensors.at[i]->of)
            graph->tensors.at[i]->dtype = ETCH_F32;
}

static void narrow_cotangents(etch_placed *placed)
{
    for (uint32_t i = 0; i < placed->training->graph->tensors.count; i++) {
        etch_tensor *tensor = placed->training->graph->tensors.at[i];
        if (tensor->of && tensor->kind == ETCH_ACT)
            tensor->dtype = ETCH_I8;
    }
}

static void take_other_schedule(etch_placed *placed)
{
    ((etch_stage_line *)(uintptr_t)placed->plan->stage)->schedule = etch_schedule_named("gpipe");
}

static void forget_padding(etch_placed *placed)
{
    ((etch_plan *)(uintptr_t)placed->plan)->pads.count = 0;
}

static const struct {
    const char *plan;
    void (*change)(etch_placed *placed);
    const char *told;
} mistakes[] = {
    {"dp=2 tp=2 | B@dp K@tp F@tp V@tp", NULL, NULL},
    {"pp=2 dp=2 | B@dp | stage layer@pp", NULL, NULL},
    {"dp=2 tp=2 | B@dp K@tp F@tp V@tp", forget_reads, "of saved"},
    {"dp=2 tp=2 | B@dp K@tp F@tp V@tp", widen_results, "of saved"},
    {"dp=2 tp=2 | B@dp K@tp F@tp V@tp", narrow_cotangents, "of workspace"},
    {"pp=2 dp=2 | B@dp | stage layer@pp", widen_results, "of saved"},
    {"pp=2 dp=2 | B@dp | stage layer@pp", take_other_schedule, "of activations"},
    {"dp=2 tp=2 | B@dp K@tp F@tp V@tp | pad B=4 F=6", NULL, NULL},
    {"pp=2 dp=2 | B@dp | pad B=4 | stage layer@pp", NULL, NULL},
    {"dp=2 tp=2 | B@dp K@tp F@tp V@tp | pad B=4 F=6", forget_padding, "of saved"},
    {"pp=2 dp=2 | B@dp | pad B=4 | stage layer@pp", forget_padding, "of saved"},
};

/* What is changed when the slots have run is what is said. */
static void plant(etch_arena *arena)
{
    for (uint32_t i = 0; i < sizeof mistakes / sizeof *mistakes; i++) {
        etch_arena *own = etch_arena_new(etch_arena_mem(arena));
        exec_model *m = exec_models[0].build(own, 4);
        const etch_training *training = exec_train(m, NULL);
        etch_placed *placed =
            etch_place(training, exec_plan(own, m->sym, mistakes[i].plan), ETCH_GRANULARITY_KERNEL);
        exec_slots *s = exec_slots_new(own, placed, 1);
        exec_slots_run(s);
        if (mistakes[i].change)
            mistakes[i].change(placed);
        const char *failure = s->failure ? s->failure : exec_check_alive(s, NULL);
        exec_slots_release(s);
        if (mistakes[i].told)
            ck_assert_msg(failure && strstr(failure, mistakes[i].told), "mistake %u: %s", i,
                          failure ? failure : "nobody notices");
        else
            ck_assert_msg(!failure, "%s", failure);
        etch_arena_free(own);
    }
}

START_TEST(mistakes_are_noticed)
{
    etch_with_arena(plant);
}
END_TEST

Suite *etch_suite(void)
{
    Suite *suite = suite_create("alive");
    ETCH_ADD_TESTS(suite, mistakes_are_noticed, seeds_that_once_differed_are_said_right,
                   random_models_are_said_right, iterations_that_are_recomputed_keep_what_enters_them,
                   models_of_the_zoo_are_said_right, halves_of_backward_are_said_right,
                   slots_of_two_actions_are_said_right);
    return suite;
}
