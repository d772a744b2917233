/* The halves of the backward pass, where a schedule runs them as actions of their own: what earlier stages
 * wait for comes first, all else when there is time.
 *
 * requires: kernels, cuts. provides: `weight_half` of the steps of backward, and of what its loops carry.
 *
 * A kernel is of the first half when it makes what a message takes along, or what a kernel of the first half
 * reads; so is what is recomputed. What is left makes gradients of weights, and nothing of the first half
 * reads it. A part is cut in the half that makes the whole, and of what is there before both in the second
 * one unless the first reads it. A loop carries a value in the half in which all that it may be is made. */
#include "graph/step/step_int.h"

typedef struct halving {
    /* by value id: read in the first half, or sent; made in the second half */
    bool *needed, *is_second;
    /* and a loop of backward carries it */
    bool *is_carried;
    bool changed;
} halving;

static void set(halving *h, bool *is_so)
{
    h->changed = h->changed || !*is_so;
    *is_so = true;
}

/* Is it a name, or a part that a rank has already? */
static bool is_part(const etch_step *step)
{
    return step && etch_step_role(step) == ETCH_ROLE_FREE;
}

/* With all that it is a part of. */
static void need(halving *h, const etch_value *value)
{
    set(h, &h->needed[value->id]);
    for (; is_part(value->step); value = value->step->ins[0])
        set(h, &h->needed[value->step->ins[0]->id]);
}

static bool makes_needed(const halving *h, const etch_step *step)
{
    for (uint32_t k = 0; k < step->out_count; k++)
        if (h->needed[step->outs[k]->id])
            return true;
    return false;
}

static bool is_needed(const halving *h, const etch_kernel *kernel)
{
    for (uint32_t i = 0; i < kernel->steps.count; i++)
        if (!is_part(kernel->steps.at[i]) && makes_needed(h, kernel->steps.at[i]))
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

static bool needs_carry(const halving *h, const etch_placed_loop *loop, uint32_t carry)
{
    const etch_value *result = loop->bodies.at[0]->carries.at[carry].result;
    bool needed = result && h->needed[result->id];
    for (uint32_t i = 0; i < loop->bodies.count; i++)
        needed = needed || h->needed[loop->bodies.at[i]->carries.at[carry].in->id];
    return needed;
}

/* What is needed of a loop-carried value in one place is needed in every iteration before. */
static void look_at_carry(halving *h, const etch_placed_loop *loop, uint32_t carry)
{
    const etch_placed_carry *first = &loop->bodies.at[0]->carries.at[carry];
    const bool needed = needs_carry(h, loop, carry);
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

/* ---- parts, and what loops carry ----------------------------------------------------------------------- */

/* Has backward made the value, or does a loop of it carry it? Weights are there, and gathered ones wait. */
static bool is_of_backward(const etch_value *value)
{
    if (value->tensor->kind == ETCH_WEIGHT)
        return false;
    if (value->step)
        return value->step->phase != ETCH_FORWARD;
    return value->tensor->of && value->tensor->kind == ETCH_ACT;
}

static void look_at_step(halving *h, etch_step *step)
{
    if (is_part(step)) {
        const etch_value *whole = etch_value_memory(step->outs[0], NULL);
        step->weight_half = is_of_backward(whole) ? h->is_second[whole->id] : !makes_needed(h, step);
    }
    for (uint32_t i = 0; i < step->out_count && step->weight_half; i++)
        set(h, &h->is_second[step->outs[i]->id]);
}

/* By half: does it make what is carried? Zeros are made by none. */
static void look_at_origin(const halving *h, etch_value *value, bool makes[2])
{
    const etch_value *whole = value ? etch_value_memory(value, NULL) : NULL;
    if (whole && (whole->step || h->is_carried[whole->id]))
        makes[h->is_second[whole->id]] = true;
}

/* Of the second half is what that makes, and zeros that the first does not need. */
static bool is_carried_later(const halving *h, const etch_placed_loop *loop, uint32_t carry)
{
    bool makes[2] = {false, false};
    look_at_origin(h, etch_loop_carries(loop)->at[carry].init, makes);
    for (uint32_t i = 0; i < loop->bodies.count; i++) {
        const etch_placed_carry *c = &loop->bodies.at[i]->carries.at[carry];
        if (etch_value_memory(c->out, NULL) != c->in)
            look_at_origin(h, c->out, makes);
    }
    return makes[1] || (!makes[0] && !needs_carry(h, loop, carry));
}

static void look_at_loop(halving *h, const etch_placed_loop *loop)
{
    for (uint32_t k = 0; k < etch_loop_carries(loop)->count; k++) {
        if (!is_carried_later(h, loop, k))
            continue;
        for (uint32_t i = 0; i < loop->bodies.count; i++) {
            loop->bodies.at[i]->carries.at[k].weight_half = true;
            set(h, &h->is_second[loop->bodies.at[i]->carries.at[k].in->id]);
        }
        if (etch_loop_carries(loop)->at[k].result)
            set(h, &h->is_second[etch_loop_carries(loop)->at[k].result->id]);
    }
}

static void note_carried(const halving *h, const etch_placed_loop *loop)
{
    for (uint32_t i = 0; i < loop->bodies.count; i++)
        for (uint32_t k = 0; k < loop->bodies.at[i]->carries.count; k++) {
            const etch_placed_carry *carry = &loop->bodies.at[i]->carries.at[k];
            h->is_carried[carry->in->id] = true;
            if (carry->result)
                h->is_carried[carry->result->id] = true;
        }
}

static void find_second(const etch_placed *placed, halving *h)
{
    for (etch_placed_cursor at = {.root = placed->backward}; etch_placed_cursor_next(&at);)
        if (at.item->loop)
            note_carried(h, at.item->loop);
    do {
        h->changed = false;
        for (etch_placed_cursor at = {.root = placed->backward}; etch_placed_cursor_next(&at);)
            if (at.item->step)
                look_at_step(h, at.item->step);
            else
                look_at_loop(h, at.item->loop);
    } while (h->changed);
}

/* ---- the entry point ----------------------------------------------------------------------------------- */

void etch_halves_find(const etch_placed *placed)
{
    const etch_stages *stages = placed->stages;
    if (!stages || !placed->backward || !etch_schedule_has_halves(stages->line->schedule))
        return;
    halving h = {.needed = ETCH_NEW_ARRAY(placed->arena, placed->value_count, bool),
                 .is_second = ETCH_NEW_ARRAY(placed->arena, placed->value_count, bool),
                 .is_carried = ETCH_NEW_ARRAY(placed->arena, placed->value_count, bool)};
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
    find_second(placed, &h);
}
