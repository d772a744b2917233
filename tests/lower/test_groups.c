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
    etch_family family = {.first_id = 7, .size = 1, .axes = axes};
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

static void megatron_numbers_neighbours_first(etch_arena *arena)
{
    mesh *m = ETCH_NEW(arena, mesh);
    m->axes[0] = (etch_mesh_axis){"dp", 2};
    m->axes[1] = (etch_mesh_axis){"tp", 3};
    m->job = (etch_job){.rank_count = 6, .mesh = m->axes, .mesh_count = 2};
    const etch_family tp = {.first_id = 1, .count = 2, .size = 3, .axes = 2};
    const etch_family dp = {.first_id = 3, .count = 3, .size = 2, .axes = 1};
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
    ETCH_ADD_TESTS(suite, test_random_meshes, test_by_hand);
    return suite;
}
