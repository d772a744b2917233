/* Bytes that kernels read and write, counted on runs, against what the product says: of all rows of the op table divided in every
 * way, of models of the zoo and of random models, with kernels of each granularity. */
#include "exec_cases.h"
#include "exec_check.h"
#include "exec_random.h"
#include "exec_traffic.h"
#include "exec_zoo.h"
#include "suite.h"

#include <stdlib.h>
#include <string.h>

enum { MODELS = 200 };

/* ---- rows --------------------------------------------------------------------------------------------- */

static const char *const names[] = {"", "B", "S", "T", "H", "K", "D", "V", "P", "E", "C", "W", "N", "Y"};

/* Refused: NULL. */
static const char *check_plan(exec_model *m, const char *recompute, const char *lines,
                              etch_granularity granularity)
{
    const etch_training *training = exec_train(m, recompute);
    const etch_placed *placed = etch_place(training, exec_plan(m->arena, m->sym, lines), granularity);
    if (!placed || !exec_requirements_hold(placed))
        return NULL;
    const char *failure = exec_check_traffic(placed, 3);
    return failure ? etch_text(m->arena, "%s, by %s: %s", lines, etch_granularity_name(granularity), failure)
                   : NULL;
}

static void check_case(etch_arena *outer, const exec_case *c, const char *dim, etch_granularity granularity)
{
    etch_arena *arena = etch_arena_new(etch_arena_mem(outer));
    exec_model *m = exec_case_build(arena, c, NULL);
    const char *plan = *dim ? etch_text(arena, "a=2 | %s@a", dim) : "";
    const char *failure = exec_case_way_of(c).serves ? NULL : check_plan(m, NULL, plan, granularity);
    ck_assert_msg(!failure, "%s, %s", c->name, failure);
    etch_arena_free(arena);
}

static void rows(etch_arena *arena)
{
    const exec_case *c;
    for (uint32_t i = 0; (c = exec_case_at(i)) != NULL; i++)
        for (size_t k = 0; k < sizeof names / sizeof *names; k++)
            for (etch_granularity g = 0; g < ETCH_GRANULARITY_COUNT; g++)
                check_case(arena, c, names[k], g);
}

START_TEST(rows_move_what_is_said)
{
    etch_with_arena(rows);
}
END_TEST

/* ---- models ------------------------------------------------------------------------------------------- */

static void zoo(etch_arena *arena)
{
    for (const exec_zoo *z = exec_models; z->name; z++)
        for (uint32_t i = 0; z->plans[i]; i++) {
            etch_arena *own = etch_arena_new(etch_arena_mem(arena));
            const char *failure = check_plan(z->build(own, 2), z->recompute, z->plans[i],
                                             (etch_granularity)(i % ETCH_GRANULARITY_COUNT));
            ck_assert_msg(!failure, "%s, %s", z->name, failure);
            etch_arena_free(own);
        }
}

START_TEST(models_of_the_zoo_move_what_is_said)
{
    etch_with_memory((size_t)1 << 30, zoo);
}
END_TEST

static void random_models(etch_arena *arena)
{
    const char *mult = getenv("ETCH_TEST_MULT"), *start = getenv("ETCH_TEST_SEED");
    const uint64_t first = start ? strtoull(start, NULL, 10) : 1;
    const uint64_t count = MODELS * (mult ? strtoull(mult, NULL, 10) : 1);
    for (uint64_t seed = first; seed < first + count; seed++) {
        etch_arena *own = etch_arena_new(etch_arena_mem(arena));
        exec_dice dice = {exec_mix(seed, 0)}, plans = {exec_mix(seed, 1)};
        const char *recompute;
        exec_model *m = (seed % 2 ? exec_random_model : exec_random_wide_model)(own, &dice, &recompute);
        const char *plan = exec_random_plan(m, &plans);
        const char *failure =
            check_plan(m, recompute, plan, (etch_granularity)(seed % ETCH_GRANULARITY_COUNT));
        ck_assert_msg(!failure, "ETCH_TEST_SEED=%llu: %s", (unsigned long long)seed, failure);
        etch_arena_free(own);
    }
}

START_TEST(random_models_move_what_is_said)
{
    etch_with_memory((size_t)1 << 30, random_models);
}
END_TEST

Suite *etch_suite(void)
{
    Suite *suite = suite_create("traffic");
    ETCH_ADD_TESTS(suite, rows_move_what_is_said, models_of_the_zoo_move_what_is_said,
                   random_models_move_what_is_said);
    return suite;
}
