/* How large the program of a stage is, before it is unrolled: nodes, parents, bytes of names. */
#include "lower/lower_int.h"

#include <inttypes.h>

/* Bytes of names, at most: a number of what has nodes, dots included; the phase. */
enum { NUMBER_BYTES = 12, PHASE_BYTES = 1 };

typedef struct counting {
    /* scratch */
    etch_arena *arena;
    const etch_outline *outline;
    const etch_held *held;
    etch_total nodes, deps, names;
} counting;

/* `times`: how often the task runs in a step. `prefix`: bytes of its name before its own, at most. */
static void count_task(counting *c, const etch_task *task, etch_total times, uint32_t prefix)
{
    enum { ORDER_PARENTS = 6 }; /* the communication before it, the computations before it */
    const uint32_t more = c->outline->naming == ETCH_NAMES_FULL ? ETCH_FULL_NAME : 0;
    c->nodes += times;
    c->deps += times * ((etch_total)task->read_count + task->gradients.count + ORDER_PARENTS);
    c->names += times * ((etch_total)PHASE_BYTES + prefix + task->name.length + 1 + more);
}

/* The runs of an attention whose blocks go round, and the messages beside them, as nodes of one task. */
static void count_ring(counting *c, const etch_task *task, etch_total times, uint32_t prefix)
{
    enum { BESIDE = 4 };
    const etch_ring_task *ring = task->ring;
    const uint32_t moves = ring->out->read_count + (ring->back ? ring->back->read_count : 0);
    etch_task node = *task;
    node.read_count += moves + BESIDE;
    node.name.length = task->name.length + NUMBER_BYTES + ETCH_RING_NAME;
    count_task(c, &node, times * etch_ring_nodes(ring), prefix);
}

/* `runs`: of the body, in a microbatch. Goes as deep as loops are nested. */
static void count_body(counting *c, const etch_body *body, etch_total runs, uint32_t prefix)
{
    for (uint32_t i = 0; i < body->items.count && runs > 0; i++) {
        const etch_body_item *item = &body->items.at[i];
        const etch_repeat *repeat = item->repeat;
        if (!body->parent && !etch_held_any(c->held, item->layers))
            continue;
        const etch_task *task = item->task;
        const etch_total times = task && task->once ? runs : runs * etch_chunk_microbatches(c->outline->pipe);
        if (task && task->ring)
            count_ring(c, task, times, prefix);
        else if (task && !task->goes_round)
            count_task(c, task, times, prefix);
        for (uint32_t k = 0; repeat && k < repeat->body_count; k++) {
            const etch_bound_interval all = {0, repeat->count};
            const uint64_t members = item->staged
                                         ? etch_held_members(c->held, item->layers, repeat->classes, k)
                                         : etch_class_members(repeat->classes, k, all);
            count_body(c, repeat->bodies[k], runs * members, prefix + repeat->name.length + NUMBER_BYTES);
        }
    }
}

/* Copies of gradients that one run of the task reads: each may be a parent. */
static etch_total copies_read(const counting *c, const etch_weight_task *w)
{
    etch_total copies = 0;
    for (uint32_t g = 0; g < w->task.gradients.count; g++)
        copies += c->outline->gradients.at[w->task.gradients.at[g]].group_copies;
    return copies;
}

/* What a stream sends is no node of its own; the norm is one for all groups. */
static void count_weight_task(counting *c, const etch_weight_task *w)
{
    const etch_total microbatches = w->every_microbatch ? etch_chunk_microbatches(c->outline->pipe) : 1;
    const etch_total times = etch_weight_task_groups(c->held, w) * microbatches;
    if (w->stream == 0 && w->role != ETCH_END_NORM)
        count_task(c, &w->task, times, NUMBER_BYTES + w->loop_name.length + NUMBER_BYTES);
    c->deps += times * (copies_read(c, w) + 1); /* and the load of its states */
}

/* The piece that ends within a weight group, and the one that goes on, wait for the same. */
static void count_stream(counting *c, uint32_t stream)
{
    enum { BUCKET_BYTES = sizeof "bucket" + NUMBER_BYTES };
    const etch_task task = {.name = c->outline->streams.at[stream].name};
    const etch_total pieces = etch_stream_pieces(c->arena, c->outline, c->held, stream);
    etch_total most = 0;
    for (uint32_t i = 0; i < c->outline->weight_tasks.count; i++) {
        const etch_weight_task *w = c->outline->weight_tasks.at[i];
        const etch_total copies = w->stream == 1 + stream ? copies_read(c, w) : 0;
        most = copies > most ? copies : most;
    }
    count_task(c, &task, pieces, BUCKET_BYTES);
    c->deps += pieces * most;
}

/* A message is a node with its sender and one with its receiver. */
static void count_messages(counting *c, uint32_t stage)
{
    const etch_pipe *pipe = c->outline->pipe;
    const etch_chunk_map map = etch_schedule_map(pipe->schedule);
    const uint64_t model_chunks = etch_model_chunk_count(map, pipe->stages, pipe->chunks);
    for (uint64_t i = 0; i + 1 < model_chunks; i++) {
        etch_total ends = 0;
        for (uint32_t copy = 0; copy < etch_chunk_copies(map); copy++) {
            const bool sends = etch_chunk_place_of(map, pipe->stages, copy, i).stage == stage;
            const bool receives = etch_chunk_place_of(map, pipe->stages, copy, i + 1).stage == stage;
            ends += sends != receives;
        }
        for (int back = 0; back < 2; back++) {
            const uint32_t wires = c->outline->messages[back][i].wire_count;
            const etch_task task = {.read_count = wires, .name = {NULL, ETCH_MESSAGE_NAME}};
            if (wires > 0)
                count_task(c, &task, ends * etch_chunk_microbatches(pipe), NUMBER_BYTES);
        }
    }
}

/* A trace has a node at least. */
static void report_nothing(etch_outliner *o, uint32_t stage)
{
    const etch_graph *graph = o->placed->training->graph;
    o->status = ETCH_EINPUT;
    if (!etch_is_cut(o)) {
        etch_error(o->placed->diags, ETCH_E_NOTHING_TO_RUN, (etch_span){0, 0}, "model %s computes nothing",
                   graph->model);
        return;
    }
    etch_diag *diag = etch_error(o->placed->diags, ETCH_E_NOTHING_TO_RUN, o->placed->stages->line->span,
                                 "stage %" PRIu32 " of model %s computes nothing: a trace would be empty",
                                 stage, graph->model);
    etch_help(diag, "leave out of the line what computes nothing, or have fewer stages");
}

etch_size etch_outline_count(etch_outliner *o, uint32_t stage)
{
    const etch_outline *outline = o->outline;
    counting c = {.arena = o->arena, .outline = outline, .held = &outline->held[stage]};
    count_body(&c, outline->forward, 1, NUMBER_BYTES);
    if (outline->backward)
        count_body(&c, outline->backward, 1, NUMBER_BYTES);
    for (uint32_t i = 0; i < outline->weight_tasks.count; i++)
        count_weight_task(&c, outline->weight_tasks.at[i]);
    if (outline->norm)
        count_task(&c, outline->norm, 1, NUMBER_BYTES);
    if (outline->norm_reduce)
        count_task(&c, outline->norm_reduce, 1, NUMBER_BYTES);
    for (uint32_t i = 0; i < outline->streams.count; i++)
        count_stream(&c, i);
    count_messages(&c, stage);
    if (outline->naming == ETCH_NAMES_NONE)
        c.names = 1;
    const etch_total tags = (etch_total)2 * outline->pipe->microbatches * outline->pipe->chunks;
    if ((etch_is_cut(o) && tags > ETCH_TAG_END) || c.nodes > ETCH_MOST_RANK_NODES || c.deps > UINT32_MAX ||
        c.names > UINT32_MAX)
        etch_too_many_nodes(o, (etch_span){0, 0}, "the step is too long");
    if (o->status == ETCH_OK && c.nodes == 0)
        report_nothing(o, stage);
    return (etch_size){(uint64_t)c.nodes, (uint64_t)c.deps, (uint64_t)c.names};
}
