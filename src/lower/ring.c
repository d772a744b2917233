/* Attention whose blocks go round, in numbers: the runs of a rank, and what is sent beside them. */
#include "lower/lower_int.h"

static etch_task *task_of(const etch_body *body, uint32_t index)
{
    for (uint32_t i = 0; i < body->items.count; i++)
        if (body->items.at[i].task && body->items.at[i].task->index == index)
            return body->items.at[i].task;
    return NULL;
}

/* The task that moves an operand of the step. */
static const etch_task *task_out(const etch_outliner *o, const etch_step *step, const etch_body *body)
{
    for (uint32_t i = 0; i < step->in_count; i++) {
        const etch_step *maker = step->ins[i]->step;
        if (maker && maker->collective == ETCH_PERMUTE && maker->provenance.op == step->op)
            return task_of(body, o->made_by[maker->id].index);
    }
    return NULL;
}

/* The task that moves a result of it. */
static const etch_task *task_back(const etch_step *step, const etch_body *body)
{
    for (uint32_t i = 0; i < body->items.count; i++) {
        const etch_task *task = body->items.at[i].task;
        if (task && task->goes_round && task->of->kernel->anchor->ins[0]->step == step)
            return task;
    }
    return NULL;
}

/* What goes round is read message by message. */
static void forget_read(etch_task *task, const etch_task *of, const etch_body *body)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < task->read_count; i++)
        if (task->reads[i].body != body || task->reads[i].index != of->index)
            task->reads[count++] = task->reads[i];
    task->read_count = count;
}

static uint32_t place_of_axis(const etch_outliner *o, uint32_t axes)
{
    uint32_t place = 0;
    while (!(axes >> etch_plan_axis_at(o->placed->plan, place) & 1))
        place++;
    return place;
}

static uint64_t message_bytes(etch_outliner *o, const etch_task *task)
{
    const etch_kernel *kernel = task->of->kernel;
    return etch_task_number(o, etch_ring_message(o->placed, kernel), "bytes", kernel, task->name.text);
}

/* Shares the FLOP of all runs: those for other blocks are equal, and the rest is for a rank's own. */
static void share_flop(etch_outliner *o, etch_ring_task *ring, const etch_task *task, const etch_ring *all)
{
    const uint64_t own = etch_bound_number(o, all->own), other = etch_bound_number(o, all->other);
    const etch_total work = own + (etch_total)other * (ring->runs - 1);
    ring->other.flop = (uint64_t)((etch_total)task->flop * other / work);
    ring->own.flop = task->flop - ring->other.flop * (ring->runs - 1);
}

static void size_runs(etch_outliner *o, etch_ring_task *ring, const etch_task *task)
{
    const etch_kernel *kernel = task->of->kernel;
    const char *name = task->name.text;
    const etch_ring all = etch_ring_of(o->placed, kernel->anchor);
    ring->size = etch_bound_number(o, all.size);
    ring->runs = etch_bound_number(o, all.runs);
    ring->sums = etch_bound_number(o, all.sums);
    ring->own = ring->other = ring->sum = *task;
    ring->own.ring = ring->other.ring = ring->sum.ring = NULL;
    share_flop(o, ring, task, &all);
    ring->own.bytes = ring->other.bytes = etch_task_number(o, kernel->ring.read, "bytes", kernel, name) +
                                          etch_task_number(o, kernel->ring.written, "bytes", kernel, name);
    ring->own.bytes += 2 * etch_task_number(o, kernel->ring.added, "bytes", kernel, name);
    ring->carried = etch_task_number(o, kernel->ring.carried, "bytes", kernel, name);
    ring->sum.flop = 0;
    ring->sum.bytes = 3 * etch_task_number(o, kernel->ring.returned, "bytes", kernel, name);
    ring->sum.workload = 0;
    etch_task_set_block_workload(o, &ring->own, kernel, ring->size);
    etch_task_set_block_workload(o, &ring->other, kernel, ring->size);
}

void etch_ring_outline(etch_outliner *o, etch_task *task, const etch_body *body)
{
    const etch_step *step = task->of->kernel->anchor;
    if (!(step->ring & o->extent->larger_axes) || o->status != ETCH_OK)
        return;
    etch_ring_task *ring = ETCH_NEW(o->arena, etch_ring_task);
    ring->out = task_out(o, step, body);
    ring->back = task_back(step, body);
    etch_lower_require(o->arena, ring->out != NULL);
    ring->axis = place_of_axis(o, step->ring);
    size_runs(o, ring, task);
    ring->out_bytes = message_bytes(o, ring->out);
    ring->back_bytes = ring->back ? message_bytes(o, ring->back) : 0;
    if (o->status != ETCH_OK)
        return;
    forget_read(task, ring->out, body);
    task->ring = ring;
    o->outline->has_rings = true;
}

uint64_t etch_ring_nodes(const etch_ring_task *ring)
{
    const uint64_t messages = (ring->back ? 4 : 2) * (ring->size - 1);
    return ring->runs + ring->sums + messages;
}
