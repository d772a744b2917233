/* Random models under random plans: gradients are slopes, and ranks compute what one rank computes.
 * ETCH_TEST_SEED chooses the first case, ETCH_TEST_MULT multiplies their number. */
#include "exec_check.h"
#include "exec_random.h"
#include "suite.h"

#include <stdio.h>
#include <stdlib.h>

enum { MODELS = 200, PLANS = 4 };

static uint64_t number_of(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    return text ? strtoull(text, NULL, 10) : otherwise;
}

typedef struct tally {
    uint32_t placed, refused;
} tally;

/* A plan may be refused, with a reason. */
static void check_plan(etch_arena *arena, uint64_t seed, uint32_t number, tally *t)
{
    exec_dice dice = {exec_mix(seed, 0)}, plans = {exec_mix(seed, 1 + number)};
    const char *recompute;
    exec_model *m = exec_random_model(arena, &dice, &recompute);
    const char *text = exec_random_plan(m, &plans);
    etch_placed *placed =
        etch_place(exec_train(m, recompute), exec_plan(arena, m->sym, text), ETCH_GRANULARITY_KERNEL);
    if (!placed) {
        ck_assert_msg(etch_error_count(m->diags) > 0, "seed %llu, %s: refused without a reason",
                      (unsigned long long)seed, text);
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
    ck_abort_msg("ETCH_TEST_SEED=%llu, plan %u, %s, recompute %s: %s", (unsigned long long)seed, number, text,
                 recompute ? recompute : "nothing", failure);
}

static void check_gradients(etch_arena *arena, uint64_t seed)
{
    exec_dice dice = {exec_mix(seed, 0)};
    const char *recompute;
    exec_model *m = exec_random_model(arena, &dice, &recompute);
    etch_training *training = exec_train(m, recompute);
    const char *failure = exec_check_gradients(training, seed, false);
    if (!failure)
        failure = exec_check_saved(training, seed, false);
    ck_assert_msg(!failure, "ETCH_TEST_SEED=%llu: %s", (unsigned long long)seed, failure);
}

static void each_case(etch_arena *arena,
                      void (*body)(etch_arena *arena, uint64_t seed, uint32_t part, tally *t))
{
    uint64_t first = number_of("ETCH_TEST_SEED", 1), count = MODELS * number_of("ETCH_TEST_MULT", 1);
    tally t = {0, 0};
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
    exec_dice dice = {exec_mix(seed, 0)}, plans = {exec_mix(seed, 1 + part)};
    const char *recompute;
    exec_model *m = exec_random_odd_model(arena, &dice, &recompute);
    const char *text = exec_random_plan(m, &plans);
    etch_placed *placed =
        etch_place(exec_train(m, recompute), exec_plan(arena, m->sym, text), ETCH_GRANULARITY_KERNEL);
    if (!placed) {
        t->refused++;
        return;
    }
    t->placed++;
    const char *failure = exec_check_requirements(placed);
    ck_assert_msg(!failure, "ETCH_TEST_SEED=%llu, plan %u, %s: %s", (unsigned long long)seed, part, text,
                  failure);
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
