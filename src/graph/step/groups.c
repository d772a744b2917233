/* The weight groups of a placement: those of the training graph, apart where stages use their weights
 * differently, and together where they are of one root.
 *
 * requires: the chain of stages, zero_axes. provides: placed->weight_groups. */
#include "graph/step/step_int.h"

/* The line whose root has the weight; NULL: none. */
static const etch_zero *root_of(const etch_placed *placed, const etch_tensor *weight)
{
    const etch_zero *zero = etch_zero_of(placed, weight);
    return etch_zero_roots(zero, weight) ? zero : NULL;
}

static bool are_used_alike(const etch_placed *placed, const etch_tensor *a, const etch_tensor *b)
{
    if (!placed->stages)
        return true;
    const etch_stage_uses *x = &placed->stages->uses[a->id], *y = &placed->stages->uses[b->id];
    bool alike = x->count == y->count;
    for (uint32_t i = 0; alike && i < x->count; i++)
        alike = x->at[i].position == y->at[i].position && x->at[i].body == y->at[i].body &&
                x->at[i].runs == y->at[i].runs;
    return alike;
}

/* The group of the weight, which is one of `whole`. Those made of this one begin with `first`. */
static etch_weight_group *share_of_group(etch_placed *placed, uint32_t first, const etch_weight_group *whole,
                                         const etch_tensor *weight)
{
    const etch_zero *root = root_of(placed, weight);
    for (uint32_t i = root ? 0 : first; i < placed->weight_groups.count; i++) {
        const etch_tensor *other = placed->weight_groups.at[i]->weights.at[0];
        if (root_of(placed, other) == root && are_used_alike(placed, other, weight))
            return placed->weight_groups.at[i];
    }
    etch_weight_group *share = ETCH_NEW(placed->arena, etch_weight_group);
    share->loop = whole->loop;
    share->body = whole->body;
    share->segment = whole->segment;
    share->id = placed->weight_groups.count;
    ETCH_PUSH(placed->arena, &placed->weight_groups, share);
    return share;
}

void etch_placed_weight_groups(etch_placed *placed)
{
    const etch_training *training = placed->training;
    for (uint32_t u = 0; u < training->weight_groups.count; u++) {
        const etch_weight_group *whole = training->weight_groups.at[u];
        const uint32_t first = placed->weight_groups.count;
        for (uint32_t i = 0; i < whole->weights.count; i++) {
            etch_weight_group *share = share_of_group(placed, first, whole, whole->weights.at[i]);
            ETCH_PUSH(placed->arena, &share->weights, whole->weights.at[i]);
            ETCH_PUSH(placed->arena, &share->copies, whole->copies.at[i]);
        }
    }
}
