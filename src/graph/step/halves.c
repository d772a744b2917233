/* The halves of the backward pass, where a schedule runs them as actions of their own: what earlier stages
 * wait for comes first, all else when there is time.
 *
 * requires: kernels, cuts. provides: `weight_half` of the steps of backward.
 *
 * A kernel is of the first half when it makes what a message takes along, or what a kernel of the first half
 * reads; so is what is recomputed. What is left makes gradients of weights, and nothing of the first half
 * reads it. */
#include "graph/step/step_int.h"

typedef struct halving {
    /* by value id: read in the first half, or sent */
    bool *needed;
    bool changed;
} halving;

static void need(halving *h, etch_value *value)
{
    bool *needed = &h->needed[etch_value_memory(value, NULL)->id];
    h->changed = h->changed || !*needed;
    *needed = true;
}

static bool is_needed(const halving *h, const etch_kernel *kernel)
{
    for (uint32_t i = 0; i < kernel->steps.count; i++)
        for (uint32_t k = 0; k < kernel->steps.at[i]->out_count; k++)
            if (h->needed[kernel->steps.at[i]->outs[k]->id])
                return true;
    return false;
}

static void put_first(halving *h, const etch_kernel *kernel)
{
    for (uint32_t i = 0; i < kernel->steps.count; i++) {
        etch_step *step = kernel->steps.at[i];
        step->weight_half = false;
        for (uint32_t k = 0; k < step->in_count; k++)
            need(h, step->ins[k]);
    }
}

/* What is needed of a loop-carried value in one place is needed in every iteration before. */
static void look_at_carry(halving *h, const etch_placed_loop *loop, uint32_t carry)
{
    const etch_placed_carry *first = &loop->bodies.at[0]->carries.at[carry];
    bool needed = first->result && h->needed[first->result->id];
    for (uint32_t i = 0; i < loop->bodies.count; i++)
        needed = needed || h->needed[loop->bodies.at[i]->carries.at[carry].in->id];
    if (needed && first->init)
        need(h, first->init);
    for (uint32_t i = 0; needed && i < loop->bodies.count; i++)
        need(h, loop->bodies.at[i]->carries.at[carry].out);
}

static void look_at_region(halving *h, const etch_placed_region *region)
{
    for (uint32_t i = region->kernels.count; i-- > 0;) {
        const etch_kernel *kernel = region->kernels.at[i];
        if (kernel->anchor->weight_half && is_needed(h, kernel))
            put_first(h, kernel);
    }
    for (uint32_t k = 0; k < region->carries.count; k++)
        look_at_carry(h, region->loop, k);
}

/* All but what is recomputed, until something needs it. */
static void begin_with_weights(halving *h, const etch_placed_region *region)
{
    for (uint32_t i = 0; i < region->kernels.count; i++) {
        const etch_kernel *kernel = region->kernels.at[i];
        for (uint32_t k = 0; k < kernel->steps.count; k++)
            kernel->steps.at[k]->weight_half = kernel->anchor->phase == ETCH_BACKWARD;
        if (!kernel->anchor->weight_half)
            put_first(h, kernel);
    }
}

void etch_halves_find(const etch_placed *placed)
{
    const etch_stages *stages = placed->stages;
    if (!stages || !placed->backward || !etch_schedule_has_halves(stages->line->schedule))
        return;
    halving h = {.needed = ETCH_NEW_ARRAY(placed->arena, placed->value_count, bool)};
    for (uint32_t i = 0; i < placed->regions.count; i++)
        begin_with_weights(&h, placed->regions.at[i]);
    for (uint32_t i = 0; i < stages->cuts.count; i++)
        for (uint32_t k = 0; k < stages->cuts.at[i].backward.count; k++)
            need(&h, stages->cuts.at[i].backward.at[k].value);
    do {
        h.changed = false;
        for (uint32_t i = placed->regions.count; i-- > 0;)
            look_at_region(&h, placed->regions.at[i]);
    } while (h.changed);
}
