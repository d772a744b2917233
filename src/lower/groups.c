/* Communication groups: which ranks share all coordinates but those of some mesh axes. */
#include "lower/lower_int.h"

#include <string.h>

static bool is_inside(const etch_family *family, uint32_t axis)
{
    return family->axes >> axis & 1;
}

uint32_t etch_group_id(const etch_job *job, const etch_family *family, uint32_t rank)
{
    uint32_t group = 0, weight = 1;
    for (uint32_t axis = job->mesh_count; axis-- > 0;) {
        uint32_t size = job->mesh[axis].size;
        if (!is_inside(family, axis)) {
            group += rank % size * weight;
            weight *= size;
        }
        rank /= size;
    }
    return family->first_id + group;
}

uint32_t etch_group_rank(const etch_job *job, const etch_family *family, uint32_t group, uint32_t k)
{
    uint32_t rank = 0, weight = 1;
    for (uint32_t axis = job->mesh_count; axis-- > 0;) {
        uint32_t size = job->mesh[axis].size;
        uint32_t *number = is_inside(family, axis) ? &k : &group;
        rank += *number % size * weight;
        *number /= size;
        weight *= size;
    }
    return rank;
}

/* The smallest of `sets` above `last`; 0 when there is none. */
static uint32_t next_set(const uint32_t *sets, uint32_t count, uint32_t last)
{
    uint32_t next = 0;
    for (uint32_t i = 0; i < count; i++)
        if (sets[i] > last && (next == 0 || sets[i] < next))
            next = sets[i];
    return next;
}

void etch_families_make(etch_arena *arena, const etch_placed *placed, const uint32_t *sets, uint32_t count,
                        etch_job *job, uint16_t *family_of)
{
    etch_family *families = ETCH_NEW_ARRAY(arena, count, etch_family);
    uint32_t made = 0, id = 1;
    for (uint32_t set = next_set(sets, count, 0); set != 0; set = next_set(sets, count, set)) {
        etch_family *family = &families[made];
        const char *label = etch_axes_label(placed, set);
        *family = (etch_family){.first_id = id, .size = 1, .axes = set};
        family->label = etch_copy_text(arena, label, strlen(label));
        for (uint32_t axis = 0; axis < job->mesh_count; axis++)
            if (is_inside(family, axis))
                family->size *= job->mesh[axis].size;
        family->count = job->rank_count / family->size;
        id += family->count;
        for (uint32_t i = 0; i < count; i++)
            if (sets[i] == set)
                family_of[i] = (uint16_t)made;
        made++;
    }
    job->families = families;
    job->family_count = made;
}
