/* The halves of the backward pass, where a schedule runs them as actions of their own: what earlier stages
 * wait for comes first, all else when there is time.
 *
 * requires: the tasks of backward, cuts. provides: `weight_half` of each.
 *
 * A task is of the first half when it makes what a message takes along, or what a task of the first half
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

static bool is_needed(const halving *h, const etch_step_task *task)
{
    if (task->phase == ETCH_RECOMPUTE)
        return true;
    for (uint32_t i = 0; i < task->kernel->steps.count; i++) {
        const etch_step *step = task->kernel->steps.at[i];
        for (uint32_t k = 0; k < step->out_count; k++)
            if (h->needed[step->outs[k]->id])
                return true;
    }
    return false;
}

static void look_at_task(halving *h, etch_step_task *task)
{
    if (!task->weight_half || !is_needed(h, task))
        return;
    task->weight_half = false;
    for (uint32_t i = 0; i < task->kernel->steps.count; i++)
        for (uint32_t k = 0; k < task->kernel->steps.at[i]->in_count; k++)
            need(h, task->kernel->steps.at[i]->ins[k]);
}

/* What is needed of a loop-carried value in one place is needed in every iteration before. */
static void look_at_carry(halving *h, const etch_placed_loop *loop, uint32_t carry)
{
    const etch_placed_carry *first = &loop->bodies.at[0]->carries.at[carry];
    bool needed = h->needed[first->result->id];
    for (uint32_t i = 0; i < loop->bodies.count; i++)
        needed = needed || h->needed[loop->bodies.at[i]->carries.at[carry].in->id];
    if (needed && first->init)
        need(h, first->init);
    for (uint32_t i = 0; needed && i < loop->bodies.count; i++)
        need(h, loop->bodies.at[i]->carries.at[carry].out);
}

/* Goes as deep as loops are nested. */
static void look_at_body(halving *h, const etch_step_body *body)
{
    for (uint32_t i = body->items.count; i-- > 0;) {
        const etch_step_repeat *repeat = body->items.at[i].repeat;
        if (!repeat) {
            look_at_task(h, body->items.at[i].task);
            continue;
        }
        for (uint32_t k = 0; k < repeat->loop->bodies.at[0]->carries.count; k++)
            look_at_carry(h, repeat->loop, k);
        for (uint32_t k = 0; k < repeat->bodies.count; k++)
            look_at_body(h, repeat->bodies.at[k]);
    }
}

static void begin_with_weights(const etch_step_body *body)
{
    for (uint32_t i = 0; i < body->items.count; i++) {
        const etch_step_repeat *repeat = body->items.at[i].repeat;
        if (!repeat)
            body->items.at[i].task->weight_half = true;
        for (uint32_t k = 0; repeat && k < repeat->bodies.count; k++)
            begin_with_weights(repeat->bodies.at[k]);
    }
}

static void mark_steps(const etch_step_body *body)
{
    for (uint32_t i = 0; i < body->items.count; i++) {
        const etch_step_task *task = body->items.at[i].task;
        const etch_step_repeat *repeat = body->items.at[i].repeat;
        for (uint32_t k = 0; task && k < task->kernel->steps.count; k++)
            task->kernel->steps.at[k]->weight_half = task->weight_half;
        for (uint32_t k = 0; repeat && k < repeat->bodies.count; k++)
            mark_steps(repeat->bodies.at[k]);
    }
}

void etch_halves_find(const etch_placed *placed, const etch_step_program *program)
{
    const etch_stages *stages = placed->stages;
    if (!stages || !program->backward || !etch_schedule_has_halves(stages->line->schedule))
        return;
    halving h = {.needed = ETCH_NEW_ARRAY(placed->arena, placed->value_count, bool)};
    begin_with_weights(program->backward);
    for (uint32_t i = 0; i < stages->cuts.count; i++)
        for (uint32_t k = 0; k < stages->cuts.at[i].backward.count; k++)
            need(&h, stages->cuts.at[i].backward.at[k]);
    do {
        h.changed = false;
        look_at_body(&h, program->backward);
    } while (h.changed);
    mark_steps(program->backward);
}
