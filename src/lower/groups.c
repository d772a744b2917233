/* Communication groups: which ranks share all coordinates but those of some mesh axes. */
#include "lower/lower_int.h"

#include <stdlib.h>
#include <string.h>

static bool is_inside(const etch_group_family *family, uint32_t axis)
{
    return family->axes >> axis & 1;
}

static bool is_stage_axis(const etch_job *job, uint32_t axis)
{
    for (uint32_t i = 0; i < job->stage_axis_count; i++)
        if (job->stage_axes[i] == axis)
            return true;
    return false;
}

/* Does the coordinate on this axis tell groups of the family apart? Where the family lists stages, their
 * axes do not: the place in the list does. */
static bool tells_apart(const etch_job *job, const etch_group_family *family, uint32_t axis)
{
    return !is_inside(family, axis) && !(family->stages && is_stage_axis(job, axis));
}

uint32_t etch_mesh_stride(const etch_job *job, uint32_t axis)
{
    uint32_t stride = 1;
    while (++axis < job->mesh_count)
        stride *= job->mesh[axis].size;
    return stride;
}

uint32_t etch_rank_coordinate(const etch_job *job, uint32_t rank, uint32_t axis)
{
    return rank / etch_mesh_stride(job, axis) % job->mesh[axis].size;
}

uint32_t etch_peer_rank(const etch_job *job, etch_peer peer, uint32_t rank)
{
    if (!peer.shift)
        return (uint32_t)((int64_t)rank + peer.offset);
    const int64_t size = job->mesh[peer.axis].size, at = etch_rank_coordinate(job, rank, peer.axis);
    const int64_t to = ((at + peer.shift) % size + size) % size;
    return (uint32_t)((int64_t)rank + (to - at) * etch_mesh_stride(job, peer.axis));
}

etch_peer etch_peer_back(etch_peer peer)
{
    return (etch_peer){-peer.offset, peer.axis, -peer.shift};
}

int etch_peer_order(etch_peer a, etch_peer b)
{
    if (a.offset != b.offset)
        return a.offset < b.offset ? -1 : 1;
    if (a.axis != b.axis)
        return etch_order(a.axis, b.axis);
    return a.shift == b.shift ? 0 : a.shift < b.shift ? -1 : 1;
}

uint32_t etch_stage_of(const etch_job *job, uint32_t rank)
{
    uint32_t stage = 0;
    for (uint32_t i = 0; i < job->stage_axis_count; i++) {
        const uint32_t axis = job->stage_axes[i];
        stage = stage * job->mesh[axis].size + etch_rank_coordinate(job, rank, axis);
    }
    return stage;
}

uint32_t etch_stage_rank(const etch_job *job, uint32_t stage)
{
    uint32_t rank = 0;
    for (uint32_t i = job->stage_axis_count; i-- > 0;) {
        uint32_t axis = job->stage_axes[i], size = job->mesh[axis].size;
        rank += stage % size * etch_mesh_stride(job, axis);
        stage /= size;
    }
    return rank;
}

/* Groups of a family on each of its stages. */
static uint32_t groups_on_stage(const etch_job *job, const etch_group_family *family)
{
    uint32_t count = 1;
    for (uint32_t axis = 0; axis < job->mesh_count; axis++)
        if (tells_apart(job, family, axis))
            count *= job->mesh[axis].size;
    return count;
}

uint32_t etch_group_id(const etch_job *job, const etch_group_family *family, uint32_t rank)
{
    uint32_t group = 0, place = 0;
    if (family->stages) {
        uint32_t stage = etch_stage_of(job, rank);
        while (place < family->stage_count && family->stages[place] != stage)
            place++;
        if (place == family->stage_count)
            return 0;
    }
    for (uint32_t axis = 0; axis < job->mesh_count; axis++)
        if (tells_apart(job, family, axis))
            group = group * job->mesh[axis].size + etch_rank_coordinate(job, rank, axis);
    return family->first_id + (family->across ? 0 : place * groups_on_stage(job, family)) + group;
}

uint32_t etch_group_rank(const etch_job *job, const etch_group_family *family, uint32_t group, uint32_t k)
{
    if (family->members)
        return family->members[(size_t)group * family->size + k];
    uint32_t rank = 0;
    if (family->across) {
        rank = etch_stage_rank(job, family->stages[k]);
    } else if (family->stages) {
        uint32_t on_stage = groups_on_stage(job, family);
        rank = etch_stage_rank(job, family->stages[group / on_stage]);
        group %= on_stage;
    }
    for (uint32_t axis = job->mesh_count; axis-- > 0;) {
        bool inside = is_inside(family, axis) && !family->across;
        if (!inside && !tells_apart(job, family, axis))
            continue;
        uint32_t size = job->mesh[axis].size;
        uint32_t *number = inside ? &k : &group;
        rank += *number % size * etch_mesh_stride(job, axis);
        *number /= size;
    }
    return rank;
}

/* ---- making families ----------------------------------------------------------------------------------- */

static int by_group(const void *a, const void *b)
{
    const etch_group_set *x = &(*(etch_task *const *)a)->group, *y = &(*(etch_task *const *)b)->group;
    int order = etch_order(x->axes, y->axes);
    for (uint32_t i = 0; i < x->stage_count && i < y->stage_count && !order; i++)
        order = etch_order(x->stages[i], y->stages[i]);
    return order ? order : etch_order(x->stage_count, y->stage_count);
}

static etch_group_family family_of_set(etch_arena *arena, const etch_placed *placed, const etch_job *job,
                                       const etch_group_set *set)
{
    etch_group_family family = {.size = 1, .across = set->stages != NULL};
    for (uint32_t place = 0; place < job->mesh_count; place++)
        if (set->axes >> etch_plan_axis_at(placed->plan, place) & 1)
            family.axes |= UINT64_C(1) << place;
    family.label = etch_copy_string(arena, etch_axes_label(placed, set->axes));
    for (uint32_t axis = 0; axis < job->mesh_count; axis++)
        if (is_inside(&family, axis))
            family.size *= job->mesh[axis].size;
    if (!set->stages)
        return family;
    uint32_t *stages = ETCH_NEW_ARRAY(arena, set->stage_count, uint32_t);
    memcpy(stages, set->stages, set->stage_count * sizeof *stages);
    family.stages = stages;
    family.size = family.stage_count = set->stage_count;
    return family;
}

void etch_families_make(etch_arena *arena, const etch_placed *placed, etch_tasks *collectives, etch_job *job)
{
    etch_group_family *families = ETCH_NEW_ARRAY(arena, collectives->count, etch_group_family);
    uint32_t made = 0;
    if (collectives->count > 0)
        qsort(collectives->at, collectives->count, sizeof *collectives->at, by_group);
    for (uint32_t i = 0; i < collectives->count; i++) {
        etch_task *task = collectives->at[i];
        if (i == 0 || by_group(&collectives->at[i - 1], &task) != 0)
            families[made++] = family_of_set(arena, placed, job, &task->group);
        task->family = (uint16_t)(made - 1);
    }
    job->families = families;
    job->family_count = made;
}

/* ---- numbering them ------------------------------------------------------------------------------------ */

static bool program_uses(const etch_class_program *program, uint32_t family)
{
    for (uint32_t id = 0; id < program->node_count; id++)
        if (program->nodes[id].type == ETCH_NODE_COLL && program->nodes[id].family == family)
            return true;
    return false;
}

/* Leaves only the stages that use the family, where not all do. */
static void keep_users(etch_arena *arena, const etch_job *job, etch_group_family *family, uint32_t index)
{
    uint32_t *stages = ETCH_NEW_ARRAY(arena, job->stage_count, uint32_t), count = 0; /* parts use the same */
    bool spans_stages = false;
    for (uint32_t i = 0; i < job->stage_axis_count; i++)
        spans_stages = spans_stages || is_inside(family, job->stage_axes[i]);
    if (spans_stages)
        return;
    for (uint32_t stage = 0; stage < job->stage_count; stage++)
        if (program_uses(&job->programs[stage * job->work_share_count], index))
            stages[count++] = stage;
    if (count == job->stage_count)
        return;
    family->stages = stages;
    family->stage_count = count;
}

/* Sets ids and counts of families that know their stages and sizes. */
static void number_families(const etch_job *job, etch_group_family *families)
{
    uint32_t id = 1;
    for (uint32_t i = 0; i < job->family_count; i++) {
        etch_group_family *family = &families[i];
        family->first_id = id;
        family->count = groups_on_stage(job, family);
        if (family->stages && !family->across)
            family->count *= family->stage_count;
        id += family->count;
    }
}

void etch_families_number(etch_arena *arena, etch_job *job)
{
    etch_group_family *families = ETCH_NEW_ARRAY(arena, job->family_count, etch_group_family);
    for (uint32_t i = 0; i < job->family_count; i++) {
        families[i] = job->families[i];
        keep_users(arena, job, &families[i], i);
    }
    number_families(job, families);
    job->families = families;
}

void etch_families_resize(etch_arena *arena, etch_job *job)
{
    etch_group_family *families = ETCH_NEW_ARRAY(arena, job->family_count, etch_group_family);
    for (uint32_t i = 0; i < job->family_count; i++) {
        families[i] = job->families[i];
        families[i].size = families[i].across ? families[i].stage_count : 1;
        for (uint32_t axis = 0; axis < job->mesh_count && !families[i].across; axis++)
            families[i].size *= is_inside(&families[i], axis) ? job->mesh[axis].size : 1;
    }
    number_families(job, families);
    job->families = families;
}
