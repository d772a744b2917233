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
        wait_for_gradients(u, piece->members[i].task, piece->members[i].weight_group);
    const uint32_t id = etch_unroll_issue(u, &task, first_dep);
    u->prefix = outer;
    for (uint32_t i = 0; i < piece->member_count; i++)
        make_gradients(u, piece->members[i].task, piece->members[i].weight_group, id);
}

void etch_unroll_weight_task(etch_unroller *u, const etch_weight_task *weight_task, uint64_t weight_group)
{
    const etch_task *task = &weight_task->task;
    const etch_prefix outer = u->prefix;
    etch_stream_piece piece;
    if (weight_task->stream) {
        etch_flows_add(u->flows, (etch_due){weight_task, weight_group});
        while (etch_flows_next(u->flows, &piece))
            send_piece(u, &piece);
        return;
    }
    etch_prefix_begin(u, weight_task->every_microbatch, outer.microbatch);
    if (weight_task->loop_name)
        etch_prefix_extend(&u->prefix, weight_task->loop_name, weight_task->loop_name_length, weight_group);
    uint32_t first_dep = u->dep_count;
    wait_for_gradients(u, weight_task, weight_group);
    if (task->type == ETCH_NODE_COMP) { /* one after the other, as the optimizer steps through its groups */
        etch_unroll_wait(u, u->clipped);
        etch_unroll_wait(u, u->last_comp);
    }
    uint32_t id = etch_unroll_issue(u, task, first_dep);
    u->prefix = outer;
    make_gradients(u, weight_task, weight_group, id);
}

/* Calls `run` for the weight groups of the task that the stage holds, in the order of the model or against
 * it. */
static void each_unit(etch_unroller *u, const etch_weight_task *task, bool backwards,
                      void (*run)(etch_unroller *u, const etch_weight_task *task, uint64_t weight_group))
{
    for (uint64_t i = 0; i < task->weight_groups; i++) {
        const uint64_t group = backwards ? task->weight_groups - 1 - i : i;
        if (etch_class_at(task->classes, group) == task->class &&
            etch_weight_task_holds(&u->outline->model_chunks, u->stage, task, group))
            run(u, task, group);
    }
}

static void run_groups(etch_unroller *u, const etch_weight_tasks *list)
{
    for (uint32_t i = 0; i < list->count; i++)
        each_unit(u, list->at[i], false, etch_unroll_weight_task);
}

/* The reductions that wait for the end of the backward pass. Gradients that are sent in pieces are reduced in
 * the order in which the backward pass has made it: the weight groups that were used last come first. */
static void reduce_last(etch_unroller *u)
{
    const etch_weight_tasks *buckets = &u->outline->buckets;
    for (uint32_t i = 0; i < buckets->count; i++)
        if (!buckets->at[i]->every_microbatch)
            each_unit(u, buckets->at[i], u->outline->streams.count > 0, etch_unroll_weight_task);
}

/* Adds a weight group's work to the norm, which is counted up in the last of the nodes. */
static void add_to_norm(etch_unroller *u, const etch_weight_task *weight_task, uint64_t weight_group)
{
    etch_task *norm = u->norm;
    const etch_task *task = &weight_task->task;
    norm->flop += task->flop;
    norm->bytes += task->bytes;
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
    for (uint32_t i = 0; i < outline->norms.count; i++)
        each_unit(u, outline->norms.at[i], false, add_to_norm);
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
    etch_unroll_begin_interval(u);
    if (u->outline->model_chunks.reduce_last)
        reduce_last(u);
    run_groups(u, &u->outline->shared_reductions);
    run_norm(u);
    run_groups(u, &u->outline->updates);
    run_groups(u, &u->outline->gathers);
}
