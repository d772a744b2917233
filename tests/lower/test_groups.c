/* Group ids and members against the definition: ranks that share all coordinates but those of some axes
 * are a group. */
#include "suite.h"

#include "lower/lower.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_AXES = 5, MOST_RANKS = 4 * 4 * 4 * 4 * 4 };

typedef struct mesh {
    etch_job job;
    etch_mesh_axis axes[MOST_AXES];
    uint32_t coordinates[MOST_RANKS][MOST_AXES]; /* by rank */
} mesh;

/* Counts all coordinates like an odometer, the innermost axis fastest. */
static void count_through(mesh *m)
{
    uint32_t at[MOST_AXES] = {0};
    for (uint32_t rank = 0; rank < m->job.rank_count; rank++) {
        memcpy(m->coordinates[rank], at, sizeof at);
        for (uint32_t axis = m->job.mesh_count; axis-- > 0;) {
            if (++at[axis] < m->axes[axis].size)
                break;
            at[axis] = 0;
        }
    }
}

static mesh *random_mesh(etch_arena *arena)
{
    mesh *m = ETCH_NEW(arena, mesh);
    m->job.mesh = m->axes;
    m->job.mesh_count = (uint32_t)(rand() % MOST_AXES) + 1;
    m->job.rank_count = 1;
    for (uint32_t axis = 0; axis < m->job.mesh_count; axis++) {
        m->axes[axis].size = (uint32_t)(rand() % 4) + 1;
        m->job.rank_count *= m->axes[axis].size;
    }
    count_through(m);
    return m;
}

static bool are_together(const mesh *m, uint64_t axes, uint32_t a, uint32_t b)
{
    for (uint32_t axis = 0; axis < m->job.mesh_count; axis++)
        if (!(axes >> axis & 1) && m->coordinates[a][axis] != m->coordinates[b][axis])
            return false;
    return true;
}

/* Groups are numbered in the order of their first ranks, which is that of the other axes' coordinates. */
static void check_family(const mesh *m, uint64_t axes)
{
    etch_group_family family = {.first_id = 7, .size = 1, .axes = axes};
    for (uint32_t axis = 0; axis < m->job.mesh_count; axis++)
        family.size *= axes >> axis & 1 ? m->axes[axis].size : 1;
    family.count = m->job.rank_count / family.size;
    uint32_t groups = 0;
    for (uint32_t first = 0; first < m->job.rank_count; first++) {
        bool seen = false;
        for (uint32_t before = 0; before < first && !seen; before++)
            seen = are_together(m, axes, before, first);
        if (seen)
            continue;
        uint32_t members = 0;
        for (uint32_t rank = first; rank < m->job.rank_count; rank++) {
            if (!are_together(m, axes, first, rank))
                continue;
            ck_assert_uint_eq(etch_group_rank(&m->job, &family, groups, members), rank);
            ck_assert_uint_eq(etch_group_id(&m->job, &family, rank), family.first_id + groups);
            members++;
        }
        ck_assert_uint_eq(members, family.size);
        groups++;
    }
    ck_assert_uint_eq(groups, family.count);
}

static void groups_share_the_other_coordinates(etch_arena *arena)
{
    srand(20);
    for (int i = 0; i < 12; i++) {
        const mesh *m = random_mesh(arena);
        for (uint64_t axes = 1; axes < UINT64_C(1) << m->job.mesh_count; axes++)
            check_family(m, axes);
    }
}

START_TEST(test_random_meshes)
{
    etch_with_arena(groups_share_the_other_coordinates);
}
END_TEST

/* ---- stages -------------------------------------------------------------------------------------------- */

typedef struct staged {
    mesh *m;
    uint32_t stage_axes[MOST_AXES], stage_count;
    uint32_t listed[MOST_RANKS], listed_count; /* stages that use the family */
} staged;

/* Some axes number the stages, the outermost first; some of the stages are listed. */
static bool random_stages(staged *s, mesh *m)
{
    *s = (staged){.m = m, .stage_count = 1};
    m->job.stage_axes = s->stage_axes;
    m->job.stage_axis_count = 0;
    for (uint32_t axis = 0; axis < m->job.mesh_count; axis++)
        if (rand() % 2) {
            s->stage_axes[m->job.stage_axis_count++] = axis;
            s->stage_count *= m->axes[axis].size;
        }
    for (uint32_t stage = 0; stage < s->stage_count; stage++)
        if (rand() % 2)
            s->listed[s->listed_count++] = stage;
    return s->listed_count > 0;
}

static uint32_t stage_of(const staged *s, uint32_t rank)
{
    uint32_t stage = 0;
    for (uint32_t i = 0; i < s->m->job.stage_axis_count; i++)
        stage = stage * s->m->axes[s->stage_axes[i]].size + s->m->coordinates[rank][s->stage_axes[i]];
    return stage;
}

static bool is_listed(const staged *s, uint32_t stage)
{
    for (uint32_t i = 0; i < s->listed_count; i++)
        if (s->listed[i] == stage)
            return true;
    return false;
}

static uint64_t stage_bits(const staged *s)
{
    uint64_t bits = 0;
    for (uint32_t i = 0; i < s->m->job.stage_axis_count; i++)
        bits |= UINT64_C(1) << s->stage_axes[i];
    return bits;
}

/* Every listed rank is in one group, with those that `axes` let differ; ids go from group to group without
 * gaps, and a group knows its members in rising order. */
static void check_staged_family(const staged *s, const etch_group_family *family, uint64_t axes)
{
    const mesh *m = s->m;
    uint32_t members[MOST_RANKS] = {0};
    for (uint32_t rank = 0; rank < m->job.rank_count; rank++) {
        ck_assert_uint_eq(etch_stage_of(&m->job, rank), stage_of(s, rank));
        const uint32_t id = etch_group_id(&m->job, family, rank);
        if (!is_listed(s, stage_of(s, rank))) {
            ck_assert_uint_eq(id, 0);
            continue;
        }
        ck_assert_uint_ge(id, family->first_id);
        ck_assert_uint_lt(id, family->first_id + family->count);
        const uint32_t group = id - family->first_id;
        ck_assert_uint_eq(etch_group_rank(&m->job, family, group, members[group]++), rank);
        for (uint32_t other = 0; other < rank; other++)
            if (is_listed(s, stage_of(s, other)))
                ck_assert_int_eq(etch_group_id(&m->job, family, other) == id,
                                 are_together(m, axes, other, rank));
    }
    for (uint32_t group = 0; group < family->count; group++)
        ck_assert_uint_eq(members[group], family->size);
}

static void stages_have_groups_of_their_own(etch_arena *arena)
{
    srand(21);
    for (int i = 0; i < 60; i++) {
        staged s;
        mesh *m = random_mesh(arena);
        if (!random_stages(&s, m))
            continue;
        const uint32_t on_stage = m->job.rank_count / s.stage_count;
        const etch_group_family across = {.first_id = 5,
                                          .count = on_stage,
                                          .size = s.listed_count,
                                          .axes = stage_bits(&s),
                                          .stages = s.listed,
                                          .stage_count = s.listed_count,
                                          .across = true};
        check_staged_family(&s, &across, stage_bits(&s));
        const uint64_t axes = (uint64_t)rand() & ((UINT64_C(1) << m->job.mesh_count) - 1) & ~stage_bits(&s);
        etch_group_family inside = {
            .first_id = 5, .size = 1, .axes = axes, .stages = s.listed, .stage_count = s.listed_count};
        for (uint32_t axis = 0; axis < m->job.mesh_count; axis++)
            inside.size *= axes >> axis & 1 ? m->axes[axis].size : 1;
        inside.count = s.listed_count * on_stage / inside.size;
        check_staged_family(&s, &inside, axes);
    }
}

START_TEST(test_stages)
{
    etch_with_arena(stages_have_groups_of_their_own);
}
END_TEST

/* ---- by hand ------------------------------------------------------------------------------------------- */

static void megatron_numbers_neighbours_first(etch_arena *arena)
{
    mesh *m = ETCH_NEW(arena, mesh);
    m->axes[0] = (etch_mesh_axis){"dp", 2};
    m->axes[1] = (etch_mesh_axis){"tp", 3};
    m->job = (etch_job){.rank_count = 6, .mesh = m->axes, .mesh_count = 2};
    const etch_group_family tp = {.first_id = 1, .count = 2, .size = 3, .axes = 2};
    const etch_group_family dp = {.first_id = 3, .count = 3, .size = 2, .axes = 1};
    const uint32_t tp_of[] = {1, 1, 1, 2, 2, 2}, dp_of[] = {3, 4, 5, 3, 4, 5};
    for (uint32_t rank = 0; rank < 6; rank++) {
        ck_assert_uint_eq(etch_group_id(&m->job, &tp, rank), tp_of[rank]);
        ck_assert_uint_eq(etch_group_id(&m->job, &dp, rank), dp_of[rank]);
    }
    ck_assert_uint_eq(etch_group_rank(&m->job, &tp, 1, 0), 3);
    ck_assert_uint_eq(etch_group_rank(&m->job, &dp, 1, 1), 4);
}

START_TEST(test_by_hand)
{
    etch_with_arena(megatron_numbers_neighbours_first);
}
END_TEST

Suite *etch_suite(void)
{
    Suite *suite = suite_create("groups");
    ETCH_ADD_TESTS(suite, test_random_meshes, test_stages, test_by_hand);
    return suite;
}
