/* Plans as people write them, in random combinations on models as they are shipped: the loss and all
 * gradients of up to 16 ranks are those of one. ETCH_TEST_SEED chooses the first combination, ETCH_TEST_MULT
 * multiplies their number: 200 makes 100,000; ETCH_TEST_COUNT is their number. A failure prints its seed, and
 * a spec that is to be saved in models/. */
#include "effort.h"
#include "exec_bind.h"
#include "exec_check.h"
#include "exec_minimal.h"
#include "exec_plans.h"
#include "exec_ranks.h"
#include "suite.h"
#include "verify.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

enum { COMBINATIONS = 500, PADDED = 100 };

typedef struct tally {
    uint32_t placed, refused;
    uint32_t padded, uneven; /* of those placed: with padding; of batches that ranks share unevenly */
} tally;

static void expect_nothing(uint64_t seed, const exec_combination *c, const char *failure)
{
    if (!failure)
        return;
    fprintf(stderr, "# ETCH_TEST_SEED=%llu: %s\n%s", (unsigned long long)seed, failure, c->text);
    ck_abort_msg("ETCH_TEST_SEED=%llu (the spec is printed above, to be saved in models/): %s",
                 (unsigned long long)seed, failure);
}

/* The first thing that could be done without. */
static const char *waste_of(etch_arena *arena, const etch_placed *placed)
{
    exec_findings found = {0};
    exec_find_waste(placed, &found);
    for (uint32_t i = 0; i < found.count; i++)
        if (!found.at[i].is_greedy)
            return etch_text(arena, "%s: %s", exec_waste_names[found.at[i].waste], found.at[i].text);
    return NULL;
}

typedef exec_combination (*combiner)(etch_arena *arena, uint64_t seed);

static void check_combination(etch_arena *arena, combiner combine, uint64_t seed, tally *t)
{
    const exec_combination c = combine(arena, seed);
    const char *path = etch_text(arena, "%s/models/combination.etch", getenv("ETCH_SOURCE_DIR"));
    const exec_bound bound = exec_bind(arena, path, c.text, "combination", NULL, NULL);
    expect_nothing(seed, &c, bound.training ? NULL : exec_messages(arena, bound.diags));
    etch_placed *placed = verified(etch_place(bound.training, bound.plan, ETCH_GRANULARITY_KERNEL));
    if (!placed) {
        expect_nothing(seed, &c, etch_error_count(bound.diags) > 0 ? NULL : "refused without a reason");
        t->refused++;
        return;
    }
    /* one head less is a hidden size that its own shards may not divide */
    if (combine == exec_combine_padded && !exec_requirements_hold(placed)) {
        t->refused++;
        return;
    }
    t->placed++;
    t->padded += exec_is_padded(placed, NULL);
    t->uneven += exec_is_padded(placed, "B");
    expect_nothing(seed, &c, waste_of(arena, placed));
    expect_nothing(seed, &c, exec_check_rules(placed));
    expect_nothing(seed, &c, exec_requirements_hold(placed) ? NULL : "its sizes do not fit");
    expect_nothing(seed, &c, exec_check_order(placed, seed, seed % 4 ? EXEC_PROGRAM : EXEC_KERNELS));
}

static tally each_combination(etch_arena *arena, combiner combine, uint32_t number)
{
    const uint64_t first = etch_test_seed(1), count = etch_effort(number);
    tally t = {0};
    for (uint64_t seed = first; seed < first + count; seed++) {
        etch_arena *own = etch_arena_new(etch_arena_mem(arena));
        check_combination(own, combine, seed, &t);
        etch_arena_free(own);
    }
    printf("%u combinations are right, %u of them with padding, %u of the batch; %u refused\n", t.placed,
           t.padded, t.uneven, t.refused);
    return t;
}

static void combinations(etch_arena *arena)
{
    const tally t = each_combination(arena, exec_combine, COMBINATIONS);
    ck_assert_msg(t.placed > 4 * t.refused, "%u combinations placed, %u refused", t.placed, t.refused);
}

/* 16 ranks keep all that they compute until a combination has ended. */
START_TEST(ranks_compute_what_one_computes)
{
    etch_with_memory((size_t)4 << 30, combinations);
}
END_TEST

static void padded_combinations(etch_arena *arena)
{
    const tally t = each_combination(arena, exec_combine_padded, PADDED);
    const bool few = etch_effort(PADDED) < PADDED; /* of so few nothing is known */
    ck_assert_msg(few || (2 * t.padded > t.refused && 6 * t.uneven > t.padded),
                  "%u combinations with padding, %u of the batch; %u refused", t.padded, t.uneven, t.refused);
}

START_TEST(ranks_with_padding_compute_what_one_computes)
{
    etch_with_memory((size_t)4 << 30, padded_combinations);
}
END_TEST

/* ---- what is shipped ----------------------------------------------------------------------------------- */

static void check_shipped_plan(etch_arena *arena, const char *path, const char *plan)
{
    const exec_bound bound = exec_bind(arena, path, NULL, NULL, plan, NULL);
    etch_placed *placed =
        bound.training ? verified(etch_place(bound.training, bound.plan, ETCH_GRANULARITY_KERNEL)) : NULL;
    ck_assert_msg(placed, "%s, plan %s: %s", path, plan, exec_messages(arena, bound.diags));
    const char *waste = waste_of(arena, placed);
    ck_assert_msg(!waste, "%s, plan %s: %s", path, plan, waste);
}

/* `waste_of` all plans of a spec. The number of plans. */
static uint32_t check_shipped(etch_arena *arena, const char *path)
{
    uint32_t count = 0;
    const char *const *plans = exec_plan_names(arena, path, &count);
    for (uint32_t i = 0; i < count; i++) {
        etch_arena *own = etch_arena_new(etch_arena_mem(arena));
        check_shipped_plan(own, path, plans[i]);
        etch_arena_free(own);
    }
    return count;
}

static void shipped(etch_arena *arena)
{
    const char *folder = etch_text(arena, "%s/models", getenv("ETCH_SOURCE_DIR"));
    DIR *specs = opendir(folder);
    uint32_t plans = 0;
    ck_assert_ptr_nonnull(specs);
    for (const struct dirent *entry = readdir(specs); entry; entry = readdir(specs))
        if (entry->d_name[0] != '.')
            plans += check_shipped(arena, etch_text(arena, "%s/%s", folder, entry->d_name));
    closedir(specs);
    ck_assert_uint_gt(plans, 50);
}

START_TEST(shipped_plans_waste_nothing)
{
    etch_with_arena(shipped);
}
END_TEST

Suite *etch_suite(void)
{
    Suite *suite = suite_create("plans");
    ETCH_ADD_TESTS(suite, ranks_compute_what_one_computes, ranks_with_padding_compute_what_one_computes,
                   shipped_plans_waste_nothing);
    return suite;
}
