/* Random models in random stages: the executor runs no stages, but what must hold of any step program, and of
 * the views of its stages, holds of these. Their messages may carry partial sums of statements that no unit
 * lists, so that verify_messages is not asked. */
#include "exec_env.h"
#include "exec_random.h"
#include "exec_spec.h"
#include "suite.h"
#include "verify.h"

#include <stdio.h>
#include <string.h>

enum { MODELS = 1500, MOST_STAGES = 4 };

typedef struct tally {
    uint32_t placed, refused, chains;
} tally;

/* Some of what random models are made of, in any order. */
static const etch_stage_line *random_stages(const exec_model *m, exec_dice *dice, uint32_t axis)
{
    static const char *const names[] = {"loop0", "m0", "t0", "loop1", "m1", "t1", "t2"};
    enum { NAMES = sizeof names / sizeof *names };
    const char **selectors = ETCH_NEW_ARRAY(m->arena, NAMES, const char *);
    etch_stage_line *line = ETCH_NEW(m->arena, etch_stage_line);
    uint32_t count = 0;
    for (uint32_t i = 0, first = exec_roll(dice, NAMES); i < NAMES; i++)
        if (exec_roll(dice, 5) < 3)
            selectors[count++] = names[(first + i) % NAMES];
    *line = (etch_stage_line){.selectors = selectors,
                              .selector_spans = ETCH_NEW_ARRAY(m->arena, count, etch_span),
                              .selector_count = count,
                              .axes = {axis},
                              .axis_count = 1,
                              .schedule = etch_schedule_default(),
                              .chunks = etch_int(m->sym, 1 + exec_roll(dice, 2))};
    return line;
}

static etch_plan *random_plan(exec_model *m, exec_dice *dice)
{
    etch_plan *plan = exec_plan(m->arena, m->sym, exec_random_plan(m, dice));
    ETCH_PUSH(m->arena, &plan->mesh, (etch_axis){.name = "pp", .size = etch_int(m->sym, 2)});
    plan->stage = random_stages(m, dice, plan->mesh.count - 1);
    return plan;
}

/* Only loops are recomputed here, iteration by iteration: what else is recomputed with its stage may be read
 * by a later one, to which nothing sends it. */
static const char *of_loops(const char *recompute)
{
    return recompute && strpbrk(recompute, "tm") ? NULL : recompute;
}

static void check_model(etch_arena *arena, uint64_t seed, tally *t)
{
    exec_dice dice = {exec_mix(seed, 0)}, plans = {exec_mix(seed, 7)};
    const char *recompute;
    exec_model *m = exec_random_model(arena, &dice, &recompute);
    m->train.clip = exec_roll(&plans, 2);
    etch_plan *plan = random_plan(m, &plans);
    const etch_placed *placed = etch_place(exec_train(m, of_loops(recompute)), plan,
                                           (etch_granularity)exec_roll(&plans, ETCH_GRANULARITY_COUNT));
    if (!placed) {
        ck_assert_msg(etch_error_count(m->diags) > 0, "seed %llu: refused without a reason",
                      (unsigned long long)seed);
        t->refused++;
        return;
    }
    const char *wrong = verify_program(placed);
    if (!wrong)
        wrong = verify_chains(placed, NULL, MOST_STAGES, &t->chains);
    if (wrong)
        fprintf(stderr, "%s", exec_spec_text(m, plan));
    ck_assert_msg(!wrong, "seed %llu (the spec is printed above): %s", (unsigned long long)seed, wrong);
    t->placed++;
}

static void random_stages_of_random_models(etch_arena *arena)
{
    tally t = {0};
    for (uint64_t seed = 1; seed <= MODELS; seed++) {
        etch_arena *own = etch_arena_new(etch_arena_mem(arena));
        check_model(own, seed, &t);
        etch_arena_free(own);
    }
    ck_assert_uint_gt(t.placed, MODELS / 3);
    ck_assert_uint_gt(t.chains, MODELS / 3);
}

START_TEST(random_models_in_stages)
{
    etch_with_arena(random_stages_of_random_models);
}
END_TEST

Suite *etch_suite(void)
{
    Suite *suite = suite_create("exec.verify");
    ETCH_ADD_TESTS(suite, random_models_in_stages);
    return suite;
}
