/* Classes of ranks: the coarsest partition that is equitable. It begins with the programs, and with a device
 * that is slow as a class of its own; then classes whose ranks meet unlike ones are divided, until none is.
 * Ranks of a class meet the same classes at the same nodes, on the same levels: by induction over the events
 * each node begins at the same time on all of them. */
#include <stdlib.h>

#include "simulate/simulate_int.h"

typedef ETCH_VEC(uint32_t) number_list;

static int by_value(const void *a, const void *b)
{
    return etch_order(*(const uint32_t *)a, *(const uint32_t *)b);
}

/* Family, spread, then each class of the group, and how often. `sorted` has room for the group. */
static void describe_group(const etch_sim *sim, uint32_t family, uint32_t group, const uint32_t *class_of,
                           uint32_t *sorted, etch_arena *arena, number_list *out)
{
    const uint32_t size = sim->job->families[family].size;
    const uint32_t *members = sim->members[family] + (size_t)group * size;
    bool rises = true;
    for (uint32_t k = 0; k < size; k++) {
        sorted[k] = class_of[members[k]];
        rises = rises && (k == 0 || sorted[k - 1] <= sorted[k]);
    }
    if (!rises)
        qsort(sorted, size, sizeof *sorted, by_value);
    out->count = 0;
    ETCH_PUSH(arena, out, family);
    ETCH_PUSH(arena, out, sim->spread_of[family][group]);
    for (uint32_t k = 0; k < size; k++) {
        if (k == 0 || sorted[k] != sorted[k - 1]) {
            ETCH_PUSH(arena, out, sorted[k]);
            ETCH_PUSH(arena, out, 0);
        }
        out->at[out->count - 1]++;
    }
}

/* What the rank meets. */
static void describe_rank(const etch_sim *sim, uint32_t rank, uint32_t *const *kinds, etch_arena *arena,
                          number_list *out)
{
    const etch_job *job = sim->job;
    const etch_class_program *program = &job->programs[job->class_of[rank]];
    out->count = 0;
    ETCH_PUSH(arena, out, sim->class_of[rank]);
    for (uint32_t f = 0; f < job->family_count; f++) {
        const uint32_t group = sim->group_of[f][rank];
        ETCH_PUSH(arena, out, group == UINT32_MAX ? UINT32_MAX : kinds[f][group]);
    }
    for (uint32_t i = 0; i < program->peer_count; i++) {
        const uint32_t other = etch_peer_rank(job, program->peers[i], rank);
        ETCH_PUSH(arena, out, sim->class_of[other]);
        ETCH_PUSH(arena, out, etch_sim_path(sim, rank, other));
    }
}

/* Divides classes once; how many there are then. */
static uint32_t divide(const etch_sim *sim)
{
    const etch_job *job = sim->job;
    etch_arena *arena = etch_arena_new(etch_arena_mem(sim->arena));
    etch_sim_words groups = {.arena = arena}, ranks = {.arena = arena};
    uint32_t **kinds = ETCH_NEW_ARRAY(arena, job->family_count, uint32_t *);
    uint32_t *sorted = ETCH_NEW_ARRAY(arena, job->rank_count, uint32_t);
    uint32_t *next = ETCH_NEW_ARRAY(arena, job->rank_count, uint32_t);
    number_list text = {0};
    for (uint32_t f = 0; f < job->family_count; f++) {
        kinds[f] = ETCH_NEW_ARRAY(arena, job->families[f].count, uint32_t);
        for (uint32_t g = 0; g < job->families[f].count; g++) {
            describe_group(sim, f, g, sim->class_of, sorted, arena, &text);
            kinds[f][g] = etch_sim_number(&groups, text.at, text.count);
        }
    }
    for (uint32_t r = 0; r < job->rank_count; r++) {
        describe_rank(sim, r, kinds, arena, &text);
        next[r] = etch_sim_number(&ranks, text.at, text.count);
    }
    for (uint32_t r = 0; r < job->rank_count; r++)
        sim->class_of[r] = next[r];
    const uint32_t count = ranks.lists.count;
    etch_arena_free(arena);
    return count;
}

static void set_ranks(etch_sim *sim)
{
    sim->first_rank = ETCH_NEW_ARRAY(sim->arena, sim->class_count, uint32_t);
    sim->rank_count = ETCH_NEW_ARRAY(sim->arena, sim->class_count, uint32_t);
    for (uint32_t r = sim->job->rank_count; r-- > 0;) {
        sim->first_rank[sim->class_of[r]] = r;
        sim->rank_count[sim->class_of[r]]++;
    }
}

/* The groups that the first ranks of classes are in stand for all. */
static void set_groups(etch_sim *sim)
{
    const etch_job *job = sim->job;
    etch_sim_words known = {.arena = sim->arena};
    uint32_t *sorted = ETCH_NEW_ARRAY(sim->arena, job->rank_count, uint32_t);
    number_list text = {0};
    sim->groups_of = ETCH_NEW_ARRAY(sim->arena, (size_t)sim->class_count * job->family_count, uint32_t);
    for (uint32_t c = 0; c < sim->class_count; c++)
        for (uint32_t f = 0; f < job->family_count; f++) {
            const uint32_t group = sim->group_of[f][sim->first_rank[c]];
            uint32_t *at = &sim->groups_of[(size_t)c * job->family_count + f];
            *at = UINT32_MAX;
            if (group == UINT32_MAX)
                continue;
            describe_group(sim, f, group, sim->class_of, sorted, sim->arena, &text);
            *at = etch_sim_number(&known, text.at, text.count);
            if (*at < sim->groups.count)
                continue;
            uint32_t *classes = ETCH_NEW_ARRAY(sim->arena, text.count / 2, uint32_t);
            for (uint32_t i = 2; i < text.count; i += 2)
                classes[i / 2 - 1] = text.at[i];
            ETCH_PUSH(sim->arena, &sim->groups,
                      (etch_sim_group){f, sim->spread_of[f][group], classes, text.count / 2 - 1});
        }
}

/* The first axes whose groups are not all alike on the levels, and the level. */
static bool refuse(const etch_sim *sim)
{
    const etch_job *job = sim->job;
    etch_diag *diag = etch_error(sim->diags, ETCH_E_RUN_CLASSES, (etch_span){0, 0},
                                 "the %u ranks are %u classes that work at different times, and a run has "
                                 "at most %u",
                                 job->rank_count, sim->class_count, (unsigned)ETCH_MOST_CLASSES);
    if (job->program_count > ETCH_MOST_CLASSES)
        return etch_help(diag, "have fewer stages, or fewer parts of uneven work: there are %u and %u",
                         job->stage_count, job->work_share_count);
    for (uint32_t f = 0; f < job->family_count; f++)
        for (uint32_t g = 1; g < job->families[f].count; g++) {
            uint32_t levels, l = 0;
            const uint32_t *a = etch_sim_list_at(&sim->spreads, sim->spread_of[f][0], &levels);
            const uint32_t *b = etch_sim_list_at(&sim->spreads, sim->spread_of[f][g], &levels);
            while (l < levels && a[l] == b[l])
                l++;
            if (l == levels)
                continue;
            etch_note(diag, (etch_span){0, 0}, "groups over %s have up to %u and up to %u on level '%s'",
                      job->families[f].label, a[l], b[l], sim->cluster->levels.at[l].name);
            return etch_help(diag, "let the sizes of the mesh's inner axes divide those of the levels");
        }
    return etch_help(diag, "let the sizes of the mesh's inner axes divide those of the levels");
}

bool etch_sim_classes(etch_sim *sim)
{
    const etch_job *job = sim->job;
    sim->class_of = ETCH_NEW_ARRAY(sim->results, job->rank_count, uint32_t);
    for (uint32_t r = 0; r < job->rank_count; r++)
        sim->class_of[r] = job->class_of[r];
    const bool slow = sim->options->slow.digits != 0;
    if (slow)
        sim->class_of[sim->options->slow_rank] = job->program_count;
    uint32_t before = 0;
    sim->class_count = slow ? 0 : job->program_count; /* it may have been the only one of its program */
    do {
        before = sim->class_count;
        sim->class_count = divide(sim);
    } while (sim->class_count > before);
    set_ranks(sim);
    sim->slow_class = slow ? sim->class_of[sim->options->slow_rank] : UINT32_MAX;
    if (sim->class_count > ETCH_MOST_CLASSES)
        return refuse(sim);
    set_groups(sim);
    return true;
}
