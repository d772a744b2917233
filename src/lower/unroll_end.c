/* The end of a step, and what gradients need before it: reductions, the norm, updates, gathers. */
#include "lower/unroll_int.h"

/* The first cell of a gradient's copies in one unit. */
static uint64_t unit_gradients(const etch_gradient *gradient, uint64_t unit)
{
    return gradient->first_cell + unit * gradient->unit_copies;
}

/* For the gradients that a task of the end of the step reads. */
static void wait_for_gradients(etch_unroller *u, const etch_unit_task *unit_task, uint64_t unit)
{
    for (uint32_t i = 0; i < unit_task->task.gradients.count; i++) {
        const etch_gradient *g = &u->outline->gradients.at[unit_task->task.gradients.at[i]];
        const uint64_t first = unit_gradients(g, unit);
        for (uint64_t k = 0; k < g->unit_copies; k++) {
            const bool added = u->gradients[first + k] != ETCH_NO_NODE;
            etch_unroll_wait(u, added ? u->gradients[first + k] : u->reduced[first + k]);
        }
    }
}

/* What makes a task's gradients from now on. The next microbatch makes them anew where each adds to the part of a
 * rank. */
static void make_gradients(etch_unroller *u, const etch_unit_task *unit_task, uint64_t unit, uint32_t id)
{
    const etch_task *task = &unit_task->task;
    for (uint32_t i = 0; i < task->gradients.count; i++) {
        const etch_gradient *g = &u->outline->gradients.at[task->gradients.at[i]];
        const uint64_t first = unit_gradients(g, unit);
        for (uint64_t k = 0; k < g->unit_copies; k++) {
            u->gradients[first + k] = unit_task->anew ? ETCH_NO_NODE : id;
            u->reduced[first + k] = id;
        }
    }
}

/* A piece of a stream waits for all that it is of, and is their maker as far as it has them: the last piece of a
 * task stands for those before it. */
static void send_piece(etch_unroller *u, const etch_stream_piece *piece)
{
    const etch_prefix outer = u->prefix;
    etch_task task = piece->members[0].task->task;
    task.bytes = piece->bytes;
    task.name = piece->stream->name;
    task.name_length = piece->stream->name_length;
    task.module = NULL; /* of any */
    etch_prefix_begin(u, false, 0);
    etch_prefix_extend(&u->prefix, "bucket", 6, piece->number);
    u->prefix.in_layer = false;
    const uint32_t first_dep = u->dep_count;
    for (uint32_t i = 0; i < piece->member_count; i++)
        wait_for_gradients(u, piece->members[i].task, piece->members[i].unit);
    const uint32_t id = etch_unroll_issue(u, &task, first_dep);
    u->prefix = outer;
    for (uint32_t i = 0; i < piece->member_count; i++)
        make_gradients(u, piece->members[i].task, piece->members[i].unit, id);
}

void etch_unroll_unit_task(etch_unroller *u, const etch_unit_task *unit_task, uint64_t unit)
{
    const etch_task *task = &unit_task->task;
    const etch_prefix outer = u->prefix;
    etch_stream_piece piece;
    if (unit_task->stream) {
        etch_flows_add(u->flows, (etch_due){unit_task, unit});
        while (etch_flows_next(u->flows, &piece))
            send_piece(u, &piece);
        return;
    }
    etch_prefix_begin(u, unit_task->every_microbatch, outer.microbatch);
    if (unit_task->loop_name)
        etch_prefix_extend(&u->prefix, unit_task->loop_name, unit_task->loop_name_length, unit);
    uint32_t first_dep = u->dep_count;
    wait_for_gradients(u, unit_task, unit);
    if (task->type == ETCH_NODE_COMP) { /* one after the other, as the optimizer steps through its groups */
        etch_unroll_wait(u, u->clipped);
        etch_unroll_wait(u, u->last_comp);
    }
    uint32_t id = etch_unroll_issue(u, task, first_dep);
    u->prefix = outer;
    make_gradients(u, unit_task, unit, id);
}

static bool is_of_class(const etch_unit_task *task, uint64_t unit)
{
    return etch_class_at(task->classes, unit) == task->class;
}

/* Calls `run` for the units of the task that the stage holds. */
static void each_unit(etch_unroller *u, const etch_unit_task *task,
                      void (*run)(etch_unroller *u, const etch_unit_task *task, uint64_t unit))
{
    const etch_chain *chain = &u->outline->chain;
    if (!task->staged) {
        for (uint64_t unit = 0; unit < task->units && etch_unit_task_runs(chain, u->stage, task); unit++)
            if (is_of_class(task, unit))
                run(u, task, unit);
        return;
    }
    for (uint32_t link = u->stage; link < etch_link_count(chain); link += chain->stage_count) {
        etch_window held = etch_overlap(chain->windows[link], task->uses[0]);
        for (uint64_t unit = held.first; unit < held.end; unit++)
            if (is_of_class(task, unit - task->uses[0].first))
                run(u, task, unit - task->uses[0].first);
    }
}

static void run_units(etch_unroller *u, const etch_unit_tasks *list)
{
    for (uint32_t i = 0; i < list->count; i++)
        each_unit(u, list->at[i], etch_unroll_unit_task);
}

/* What is sent in pieces is reduced in the order in which the backward pass has made it: the units that were used
 * last come first. */
static void run_backwards(etch_unroller *u, const etch_unit_task *task)
{
    const etch_chain *chain = &u->outline->chain;
    for (uint64_t unit = task->units; unit-- > 0;)
        if (is_of_class(task, unit) && etch_unit_task_holds(chain, u->stage, task, unit))
            etch_unroll_unit_task(u, task, unit);
}

void etch_unroll_reduce_last(etch_unroller *u)
{
    const etch_unit_tasks *buckets = &u->outline->buckets;
    for (uint32_t i = 0; i < buckets->count; i++) {
        if (buckets->at[i]->every_microbatch)
            continue;
        if (u->outline->streams.count == 0)
            each_unit(u, buckets->at[i], etch_unroll_unit_task);
        else
            run_backwards(u, buckets->at[i]);
    }
}

/* Adds a unit's work to the norm, which is counted up in the last of the nodes. */
static void add_to_norm(etch_unroller *u, const etch_unit_task *unit_task, uint64_t unit)
{
    etch_task *norm = u->norm;
    const etch_task *task = &unit_task->task;
    norm->flop += task->flop;
    norm->bytes += task->bytes;
    wait_for_gradients(u, unit_task, unit);
}

static void run_norm(etch_unroller *u)
{
    const etch_outline *outline = u->outline;
    if (!outline->norm)
        return;
    etch_prefix_begin(u, false, 0);
    etch_task norm = *outline->norm;
    u->norm = &norm;
    uint32_t first_dep = u->dep_count;
    for (uint32_t i = 0; i < outline->norms.count; i++)
        each_unit(u, outline->norms.at[i], add_to_norm);
    u->clipped = etch_unroll_issue(u, &norm, first_dep);
    u->norm = NULL;
    if (!outline->norm_reduce)
        return;
    first_dep = u->dep_count;
    etch_unroll_wait(u, u->clipped);
    u->clipped = etch_unroll_issue(u, outline->norm_reduce, first_dep);
}

void etch_unroll_end(etch_unroller *u)
{
    etch_unroll_begin_stretch(u);
    if (u->outline->chain.reduce_last)
        etch_unroll_reduce_last(u);
    run_units(u, &u->outline->ties);
    run_norm(u);
    run_units(u, &u->outline->updates);
    run_units(u, &u->outline->gathers);
}
