/* Random models under random plans: gradients are slopes, and ranks compute what one rank computes.
 * ETCH_TEST_SEED chooses the first model, ETCH_TEST_MULT multiplies their number: 200 makes 100,000. A
 * failure prints its seed, and the model and plan as a spec, which `etch dump` and the other commands
 * read. */
#include "exec_check.h"
#include "exec_random.h"
#include "exec_spec.h"
#include "suite.h"
#include "verify.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MODELS = 500, PLANS = 3 };

static uint64_t number_of(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    return text ? strtoull(text, NULL, 10) : otherwise;
}

typedef struct tally {
    uint32_t placed, refused;
} tally;

/* One of the models with one of its plans; without a plan where the number is 0. */
typedef struct instance {
    uint64_t seed;
    uint32_t number;
    const char *recompute; /* what is recomputed; NULL: nothing */
    exec_model *m;
    etch_plan *plan;
    etch_training *training;
} instance;

static instance instance_of(etch_arena *arena, uint64_t seed, uint32_t number,
                            exec_model *(*model)(etch_arena *arena, exec_dice *dice, const char **recompute))
{
    exec_dice dice = {exec_mix(seed, 0)}, plans = {exec_mix(seed, 1 + number)};
    instance i = {.seed = seed, .number = number};
    i.m = model(arena, &dice, &i.recompute);
    i.plan = number ? exec_plan(arena, i.m->sym, exec_random_plan(i.m, &plans)) : NULL;
    i.training = exec_train(i.m, i.recompute);
    return i;
}

/* Fails unless there is nothing to say. */
static void expect_nothing(const instance *i, const char *failure)
{
    if (!failure)
        return;
    fprintf(stderr, "# ETCH_TEST_SEED=%llu, plan %u, recompute %s: %s\n%s", (unsigned long long)i->seed,
            i->number, i->recompute ? i->recompute : "none", failure, exec_spec_text(i->m, i->plan));
    ck_abort_msg("ETCH_TEST_SEED=%llu, plan %u (the spec is printed above): %s", (unsigned long long)i->seed,
                 i->number, failure);
}

/* A plan may be refused, with a reason, or ask for other sizes. */
static void check_plan(etch_arena *arena, uint64_t seed, uint32_t number, tally *t)
{
    const instance i = instance_of(arena, seed, number, exec_random_model);
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
    const char *failure = exec_check_placed(placed, seed);
    if (!failure)
        return;
    etch_buf dump = {.arena = arena};
    etch_placed_dump(placed, &dump);
    fputs(dump.text, stderr);
    expect_nothing(&i, failure);
}

/* Sums that are made one add up what those did that were written. */
static void check_sums(etch_arena *arena, const instance *joined)
{
    const instance written = instance_of(arena, joined->seed, 0, exec_random_model_as_written);
    const double loss = exec_loss(joined->training, exec_data_new(arena, joined->training, joined->seed)),
                 as_written =
                     exec_loss(written.training, exec_data_new(arena, written.training, joined->seed));
    if (fabs(loss - as_written) > 1e-9 * (1 + fabs(as_written)))
        expect_nothing(joined, etch_text(arena, "the loss is %g, as it is written %g", loss, as_written));
}

static void check_gradients(etch_arena *arena, uint64_t seed)
{
    const instance i = instance_of(arena, seed, 0, exec_random_model);
    check_sums(arena, &i);
    expect_nothing(&i, exec_check_gradients(i.training, seed, false));
    expect_nothing(&i, exec_check_saved(i.training, seed));
}

static void each_case(etch_arena *arena,
                      void (*body)(etch_arena *arena, uint64_t seed, uint32_t part, tally *t))
{
    uint64_t first = number_of("ETCH_TEST_SEED", 1), count = MODELS * number_of("ETCH_TEST_MULT", 1);
    tally t = {0};
    for (uint64_t seed = first; seed < first + count; seed++)
        for (uint32_t part = 0; part <= PLANS; part++) {
            etch_arena *own = etch_arena_new(etch_arena_mem(arena));
            body(own, seed, part, &t);
            etch_arena_free(own);
        }
    ck_assert_msg(t.placed > t.refused, "%u plans placed, %u refused", t.placed, t.refused);
}

static void check_model(etch_arena *arena, uint64_t seed, uint32_t part, tally *t)
{
    if (part == 0)
        check_gradients(arena, seed);
    else
        check_plan(arena, seed, part, t);
}

static void random_models(etch_arena *arena)
{
    each_case(arena, check_model);
}

START_TEST(random_models_are_right)
{
    etch_with_arena(random_models);
}
END_TEST

/* ---- sizes ------------------------------------------------------------------------------------------ */

static void check_sizes(etch_arena *arena, uint64_t seed, uint32_t part, tally *t)
{
    if (part == 0)
        return;
    const instance i = instance_of(arena, seed, part, exec_random_odd_model);
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
    each_case(arena, check_sizes);
}

START_TEST(requirements_say_what_can_be_divided)
{
    etch_with_arena(random_sizes);
}
END_TEST

Suite *etch_suite(void)
{
    Suite *suite = suite_create("random");
    ETCH_ADD_TESTS(suite, random_models_are_right, requirements_say_what_can_be_divided);
    return suite;
}
