/* The end of a step, and what gradients need before it: reductions, the norm, updates, gathers. */
#include "lower/unroll_int.h"

/* The first register of a gradient's copies in one weight group. */
static uint64_t group_gradients(const etch_gradient *gradient, uint64_t weight_group)
{
    return gradient->first_register + weight_group * gradient->group_copies;
}

/* For the gradients that a task of the end of the step reads. */
static void wait_for_gradients(etch_unroller *u, const etch_weight_task *weight_task, uint64_t weight_group)
{
    for (uint32_t i = 0; i < weight_task->task.gradients.count; i++) {
        const etch_gradient *g = &u->outline->gradients.at[weight_task->task.gradients.at[i]];
        const uint64_t first = group_gradients(g, weight_group);
        for (uint64_t k = 0; k < g->group_copies; k++) {
            const bool added = u->gradients[first + k] != ETCH_NO_NODE;
            etch_unroll_wait(u, added ? u->gradients[first + k] : u->reduced[first + k]);
        }
    }
}

/* Notes the node that makes a task's gradients from now on. The next microbatch makes them anew where each
 * adds to the part of a rank. */
static void make_gradients(etch_unroller *u, const etch_weight_task *weight_task, uint64_t weight_group,
                           uint32_t id)
{
    const etch_task *task = &weight_task->task;
    for (uint32_t i = 0; i < task->gradients.count; i++) {
        const etch_gradient *g = &u->outline->gradients.at[task->gradients.at[i]];
        const uint64_t first = group_gradients(g, weight_group);
        for (uint64_t k = 0; k < g->group_copies; k++) {
            u->gradients[first + k] = weight_task->anew ? ETCH_NO_NODE : id;
            u->reduced[first + k] = id;
        }
    }
}

/* A piece of a stream waits for all that it is of, and is their maker as far as it has them: the last piece
 * of a task stands for those before it. */
static void send_piece(etch_unroller *u, const etch_stream_piece *piece)
{
    const etch_prefix outer = u->at->prefix;
    etch_task task = piece->members[0].task->task;
    task.bytes = piece->bytes;
    task.name = piece->stream->name;
    task.module = NULL; /* of any */
    etch_prefix_begin(u, false, 0);
    etch_prefix_extend(&u->at->prefix, etch_word_of("bucket"), piece->number);
    u->at->prefix.in_layer = false;
    const uint32_t first_dep = u->dep_count;
    for (uint32_t i = 0; i < piece->member_count; i++)
        wait_for_gradients(u, piece->members[i].task, piece->members[i].weight_group);
    const uint32_t id = etch_unroll_issue(u, &task, first_dep);
    u->at->prefix = outer;
    for (uint32_t i = 0; i < piece->member_count; i++)
        make_gradients(u, piece->members[i].task, piece->members[i].weight_group, id);
}

void etch_unroll_weight_task(etch_unroller *u, const etch_weight_task *weight_task, uint64_t weight_group)
{
    etch_stream_piece piece;
    if (weight_task->stream) {
        etch_flows_add(u->flows, (etch_due){weight_task, weight_group});
        while (etch_flows_next(u->flows, &piece))
            send_piece(u, &piece);
        return;
    }
    const uint32_t first_dep = u->dep_count;
    wait_for_gradients(u, weight_task, weight_group);
    if (weight_task->task.type == ETCH_NODE_COMP) { /* one after the other, as the optimizer steps through */
        etch_unroll_wait_for_states(u, weight_task, weight_group);
        etch_unroll_wait(u, u->clipped);
        etch_unroll_wait(u, u->last_comp);
    }
    const uint32_t id = etch_unroll_issue_of_group(u, weight_task, weight_group, first_dep);
    make_gradients(u, weight_task, weight_group, id);
}

static bool is_of_update(const etch_weight_task *task)
{
    return task->role >= ETCH_END_PREPARE && task->role <= ETCH_END_UPDATE;
}

/* All parts of the update of one weight group. */
static void update_group(etch_unroller *u, uint32_t first, uint64_t weight_group)
{
    const etch_weight_tasks *tasks = &u->outline->weight_tasks;
    for (uint32_t t = first; t < tasks->count; t++) {
        const etch_weight_task *task = tasks->at[t];
        if (is_of_update(task) && task->group == tasks->at[first]->group &&
            etch_weight_task_groups(u->held, task) > 0 && etch_weight_task_has(u->held, task, weight_group))
            etch_unroll_weight_task(u, task, weight_group);
    }
    etch_unroll_return_states(u, tasks->at[first], weight_group, u->last_comp);
}

/* The first task of the update of the weight group with the least id from `least` on; as many as there are
 * tasks: there is no such group. */
static uint32_t next_updated(const etch_weight_tasks *tasks, uint32_t least)
{
    uint32_t found = tasks->count;
    for (uint32_t t = 0; t < tasks->count; t++) {
        const etch_weight_task *task = tasks->at[t];
        if (is_of_update(task) && task->group->id >= least &&
            (found == tasks->count || task->group->id < tasks->at[found]->group->id))
            found = t;
    }
    return found;
}

/* What the update of a group makes for its parts is gone before that of the next one. */
static void run_updates(etch_unroller *u)
{
    const etch_weight_tasks *tasks = &u->outline->weight_tasks;
    for (uint32_t t = next_updated(tasks, 0); t < tasks->count;
         t = next_updated(tasks, tasks->at[t]->group->id + 1))
        for (uint64_t i = 0; i < tasks->at[t]->weight_groups; i++)
            update_group(u, t, i);
}

static void run_reduction(etch_unroller *u, const etch_weight_task *task, uint64_t weight_group)
{
    if (!task->every_microbatch)
        etch_unroll_weight_task(u, task, weight_group);
}

/* Adds a weight group's work to the norm, which is counted up in the last of the nodes. */
static void add_to_norm(etch_unroller *u, const etch_weight_task *weight_task, uint64_t weight_group)
{
    u->norm->flop += weight_task->task.flop;
    u->norm->bytes += weight_task->task.bytes;
    wait_for_gradients(u, weight_task, weight_group);
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
    etch_unroll_each_group(u, ETCH_END_NORM, false, add_to_norm);
    u->clipped = etch_unroll_issue(u, &norm, first_dep);
    u->norm = NULL;
    if (!outline->norm_reduce)
        return;
    first_dep = u->dep_count;
    etch_unroll_wait(u, u->clipped);
    u->clipped = etch_unroll_issue(u, outline->norm_reduce, first_dep);
}

/* Reductions may wait for the end of the backward pass: gradients that are sent in pieces are reduced in the
 * order in which that has made them, so that the weight groups that were used last come first. */
void etch_unroll_end(etch_unroller *u)
{
    etch_unroll_begin_interval(u);
    if (u->outline->reduce_last)
        etch_unroll_each_group(u, ETCH_END_REDUCE, u->outline->streams.count > 0, run_reduction);
    etch_unroll_each_group(u, ETCH_END_REDUCE_SHARED, false, etch_unroll_weight_task);
    run_norm(u);
    etch_unroll_begin_states(u);
    run_updates(u);
    etch_unroll_each_group(u, ETCH_END_GATHER, false, etch_unroll_weight_task);
}
