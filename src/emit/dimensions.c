/* Collectives along whole dimensions of the network, which need no group: `involved_dim` says who takes part.
 * The dimensions are the axes of the mesh of more than one rank, innermost first.
 *
 * ASTRA-sim numbers the collectives of a rank that are of no group one after the other, whatever dimensions
 * they are along, and lets those of one number meet. So all members of a group must have issued as many of
 * them before: it is true of the ranks of a stage, which all issue the same, and not of different stages. An
 * all-to-all that is of a group takes the first entry of its list of algorithms where that is the only one,
 * and one along dimensions needs an entry for each: either all of them are along dimensions, or none is. */
#include "emit/emit_int.h"

uint32_t etch_dimension_count(const etch_job *job)
{
    uint32_t count = 0;
    for (uint32_t axis = 0; axis < job->mesh_count; axis++)
        count += job->mesh[axis].size > 1;
    return count;
}

/* Bit i: dimension i. */
static uint64_t dimensions_of(const etch_job *job, const etch_group_family *family)
{
    uint64_t found = 0, dimension = 1;
    for (uint32_t axis = job->mesh_count; axis-- > 0;) {
        if (job->mesh[axis].size <= 1)
            continue;
        if (family->axes >> axis & 1)
            found |= dimension;
        dimension <<= 1;
    }
    return found;
}

/* Are its groups whole dimensions, each of ranks of one stage? That of all ranks is one group in any case,
 * and runs along all dimensions as it is. */
static bool is_along(const etch_job *job, const etch_group_family *family)
{
    bool along = !family->across && !family->members && family->size < job->rank_count;
    for (uint32_t i = 0; i < job->stage_axis_count; i++)
        along = along && !(family->axes >> job->stage_axes[i] & 1 && job->mesh[job->stage_axes[i]].size > 1);
    return along;
}

static bool exchanges(const etch_job *job, uint32_t family)
{
    for (uint32_t i = 0; i < job->program_count; i++)
        for (uint32_t k = 0; k < job->programs[i].node_count; k++) {
            const etch_node *node = &job->programs[i].nodes[k];
            if (node->type == ETCH_NODE_COLL && node->family == family &&
                node->collective == ETCH_COMM_ALL_TO_ALL)
                return true;
        }
    return false;
}

/* The next collective of one of these families; the number of nodes when there is none. */
static uint32_t next_along(const etch_class_program *program, const etch_group_family *families, uint32_t id)
{
    while (id < program->node_count &&
           !(program->nodes[id].type == ETCH_NODE_COLL && families[program->nodes[id].family].dimensions))
        id++;
    return id;
}

static bool issue_alike(const etch_class_program *a, const etch_class_program *b,
                        const etch_group_family *families)
{
    uint32_t i = next_along(a, families, 0), k = next_along(b, families, 0);
    while (i < a->node_count && k < b->node_count && a->nodes[i].family == b->nodes[k].family) {
        i = next_along(a, families, i + 1);
        k = next_along(b, families, k + 1);
    }
    return i == a->node_count && k == b->node_count;
}

/* Do all ranks of each stage issue the same? */
static bool stages_are_alike(const etch_job *job, const etch_group_family *families)
{
    const uint32_t parts = job->stage_axis_count > 0 ? job->work_share_count : job->program_count;
    for (uint32_t i = 1; i < job->program_count; i++)
        if (i % parts > 0 && !issue_alike(&job->programs[i - 1], &job->programs[i], families))
            return false;
    return true;
}

static void number_families(etch_group_family *families, uint32_t count)
{
    uint32_t id = 1;
    for (uint32_t i = 0; i < count; i++) {
        families[i].first_id = families[i].dimensions ? 0 : id;
        id += families[i].dimensions ? 0 : families[i].count;
    }
}

const etch_job *etch_groups_choose(etch_arena *arena, const etch_job *job, etch_group_form form)
{
    const uint32_t count = job->family_count;
    if (form == ETCH_GROUPS_FILE || (form == ETCH_GROUPS_AUTO && etch_group_count(job) <= ETCH_MOST_GROUP_ID))
        return job;
    etch_group_family *families = ETCH_NEW_ARRAY(arena, count, etch_group_family);
    bool exchange_along = true;
    for (uint32_t i = 0; i < count; i++) {
        families[i] = job->families[i];
        if (exchanges(job, i))
            exchange_along =
                exchange_along && (is_along(job, &families[i]) || families[i].size == job->rank_count);
    }
    for (uint32_t i = 0; i < count; i++)
        if (is_along(job, &families[i]) && (exchange_along || !exchanges(job, i)))
            families[i].dimensions = dimensions_of(job, &families[i]);
    if (!stages_are_alike(job, families))
        return job;
    number_families(families, count);
    etch_job *chosen = ETCH_NEW(arena, etch_job);
    *chosen = *job;
    chosen->families = families;
    return chosen;
}
