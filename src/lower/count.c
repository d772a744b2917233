/* How large the program of a stage is, before it is unrolled: nodes, parents, bytes of names. And which rows
 * its totals have. */
#include "lower/lower_int.h"

#include <inttypes.h>
#include <stdlib.h>

static uint32_t digits(uint64_t number)
{
    uint32_t count = 1;
    for (; number >= 10; number /= 10)
        count++;
    return count;
}

/* ---- every task ---------------------------------------------------------------------------------------- */

typedef struct fold {
    const etch_outline *outline;
    uint32_t stage;
    void (*visit)(void *data, const etch_task_run *run);
    void *data;
} fold;

/* `runs`: of the body, in a microbatch. Goes as deep as loops are nested. */
static void each_in_body(const fold *f, const etch_body *body, etch_total runs, uint32_t prefix)
{
    const etch_model_chunks *model_chunks = &f->outline->model_chunks;
    const bool all = f->stage == ETCH_EVERY_STAGE;
    for (uint32_t i = 0; i < body->items.count && runs > 0; i++) {
        const etch_body_item *item = &body->items.at[i];
        const etch_repeat *repeat = item->repeat;
        if (!all && !body->parent && !etch_stage_holds(model_chunks, f->stage, item->layers))
            continue;
        if (item->task) {
            const etch_total times = item->task->once ? runs : runs * f->outline->micro;
            f->visit(f->data, &(etch_task_run){item->task, NULL, times, prefix});
        }
        for (uint32_t k = 0; repeat && k < repeat->body_count; k++)
            each_in_body(
                f, repeat->bodies[k],
                runs *
                    (item->staged && !all
                         ? etch_stage_members(model_chunks, f->stage, item->layers, repeat->classes, k)
                         : etch_class_members(repeat->classes, k, (etch_bound_interval){0, repeat->count})),
                prefix + repeat->name_length + digits(repeat->count) + 1);
    }
}

static void each_weight_task(const fold *f, const etch_weight_tasks *list)
{
    const uint64_t micro = f->outline->micro;
    for (uint32_t i = 0; i < list->count; i++) {
        etch_weight_task *w = list->at[i];
        const uint64_t groups =
            f->stage == ETCH_EVERY_STAGE
                ? etch_class_members(w->classes, w->class, (etch_bound_interval){0, w->weight_groups})
                : etch_weight_task_groups(&f->outline->model_chunks, f->stage, w);
        const etch_total times = (etch_total)groups * (w->every_microbatch ? micro : 1);
        if (groups > 0)
            f->visit(f->data,
                     &(etch_task_run){&w->task, w, times,
                                      3 + digits(micro) + w->loop_name_length + digits(w->weight_groups)});
    }
}

void etch_outline_each(const etch_outline *outline, uint32_t stage,
                       void (*visit)(void *data, const etch_task_run *run), void *data)
{
    const fold f = {outline, stage, visit, data};
    const etch_weight_tasks *const ends[] = {&outline->buckets, &outline->shared_reductions,
                                             &outline->updates, &outline->gathers};
    etch_body *const passes[] = {outline->forward, outline->backward};
    etch_task *const norms[] = {outline->norm, outline->norm_reduce};
    for (uint32_t i = 0; i < 2 && passes[i]; i++)
        each_in_body(&f, passes[i], 1, 2 + digits(outline->micro));
    for (uint32_t i = 0; i < sizeof ends / sizeof *ends; i++)
        each_weight_task(&f, ends[i]);
    for (uint32_t i = 0; i < 2 && norms[i]; i++)
        visit(data, &(etch_task_run){norms[i], NULL, 1, 2});
}

/* ---- counts and registers ------------------------------------------------------------------------------ */

typedef struct counting {
    const etch_outliner *o;
    const etch_model_chunks *model_chunks;
    uint32_t stage;
    /* bytes that a full name has and a short one has not */
    uint32_t more_name;
    etch_total nodes, deps, names;
} counting;

/* `times`: how often the task runs in a step. `prefix`: bytes of its name before its own, at most. */
static void count_task(counting *c, const etch_task *task, etch_total times, uint32_t prefix)
{
    enum { ORDER_PARENTS = 6 }; /* the communication before it, the computations before it */
    c->nodes += times;
    c->deps += times * ((etch_total)task->read_count + task->gradients.count + ORDER_PARENTS);
    c->names += times * ((etch_total)prefix + task->name_length + 1 + c->more_name);
}

/* Each copy of a gradient may be a parent. What a stream sends is no node of its own. */
static void count_run(void *data, const etch_task_run *run)
{
    counting *c = data;
    if (!run->weight_task || run->weight_task->stream == 0)
        count_task(c, run->task, run->times, run->prefix);
    for (uint32_t g = 0; run->weight_task && g < run->task->gradients.count; g++)
        c->deps += run->times * c->o->outline->gradients.at[run->task->gradients.at[g]].group_copies;
}

/* Parents of one weight group of a task that is sent in pieces: the piece that ends within it, and the one
 * that goes on, wait for the same. */
static etch_total most_parents(const counting *c, const etch_weight_tasks *list, uint32_t stream)
{
    etch_total most = 0;
    for (uint32_t i = 0; i < list->count; i++) {
        etch_total parents = 0;
        for (uint32_t g = 0; list->at[i]->stream == 1 + stream && g < list->at[i]->task.gradients.count; g++)
            parents += c->o->outline->gradients.at[list->at[i]->task.gradients.at[g]].group_copies;
        most = parents > most ? parents : most;
    }
    return most;
}

static void count_streams(counting *c)
{
    enum { BUCKET_BYTES = 6 + 20 + 3 }; /* "bucket", its number, dots and the phase */
    const etch_outline *outline = c->o->outline;
    for (uint32_t i = 0; i < outline->streams.count; i++) {
        const etch_task task = {.name_length = outline->streams.at[i].name_length};
        const etch_total pieces = etch_stream_pieces(outline, c->stage, i);
        count_task(c, &task, pieces, BUCKET_BYTES);
        c->deps += pieces * (most_parents(c, &outline->buckets, i) + most_parents(c, &outline->gathers, i));
    }
}

/* A message is a node with its sender and one with its receiver. */
static void count_messages(counting *c, const etch_chunk_message *messages)
{
    enum { NAME_BYTES = ETCH_MESSAGE_NAME + 24 };
    for (uint32_t model_chunk = 0; model_chunk + 1 < etch_model_chunk_count(c->model_chunks); model_chunk++) {
        const etch_chunk_message *m = &messages[model_chunk];
        bool mine = model_chunk % c->model_chunks->stage_count == c->stage;
        bool other = (model_chunk + 1) % c->model_chunks->stage_count == c->stage;
        if (m->wire_count == 0 || (!mine && !other))
            continue;
        etch_total times = (etch_total)c->o->extent->micro * ((uint32_t)mine + (uint32_t)other);
        c->nodes += times;
        c->deps += times * ((etch_total)m->wire_count + 3);
        c->names += times * (NAME_BYTES + c->more_name);
    }
}

/* A trace has a node at least. */
static void report_nothing(etch_outliner *o, uint32_t stage)
{
    const etch_span nowhere = {0, 0};
    o->status = ETCH_EINPUT;
    if (!etch_is_cut(o)) {
        etch_error(o->placed->diags, ETCH_E_NOTHING_TO_RUN, nowhere, "model %s computes nothing",
                   o->graph->model);
        return;
    }
    etch_diag *diag = etch_error(o->placed->diags, ETCH_E_NOTHING_TO_RUN, o->placed->stages->line->span,
                                 "stage %" PRIu32 " of model %s computes nothing: a trace would be empty",
                                 stage, o->graph->model);
    etch_help(diag, "leave out of the line what computes nothing, or have fewer stages");
}

etch_size etch_outline_count(etch_outliner *o, uint32_t stage)
{
    const etch_outline *outline = o->outline;
    counting c = {.o = o, .model_chunks = &outline->model_chunks, .stage = stage};
    c.more_name = outline->naming == ETCH_NAMES_FULL ? ETCH_FULL_NAME : 0;
    etch_outline_each(outline, stage, count_run, &c);
    count_streams(&c);
    count_messages(&c, outline->model_chunks.forward);
    if (outline->backward)
        count_messages(&c, outline->model_chunks.backward);
    c.deps += outline->norm ? outline->gradient_registers : 0;
    if (outline->naming == ETCH_NAMES_NONE)
        c.names = 1;
    const etch_total tags = (etch_total)2 * o->extent->micro * outline->model_chunks.chunk_count;
    if ((c.model_chunks->stage_count > 1 && tags > ETCH_TAG_END) || c.nodes > ETCH_MOST_NODES ||
        c.deps > UINT32_MAX || c.names > UINT32_MAX)
        etch_too_many_nodes(o, (etch_span){0, 0}, "the step is too long");
    if (o->status == ETCH_OK && c.nodes == 0)
        report_nothing(o, stage);
    return (etch_size){(uint64_t)c.nodes, (uint64_t)c.deps, (uint64_t)c.names};
}

void etch_outline_registers(etch_outliner *o)
{
    etch_total registers = 0;
    for (uint32_t i = 0; i < o->outline->bodies.count; i++) {
        etch_body *body = o->outline->bodies.at[i];
        body->first_register = (uint64_t)registers;
        registers += (etch_total)body->runs * body->register_count;
    }
    if (registers > UINT32_MAX)
        etch_too_many_nodes(o, (etch_span){0, 0}, "the step is too long");
    o->outline->register_count = (uint64_t)registers;
}

/* ---- collectives that run ------------------------------------------------------------------------------ */

static int compare_tallies(const void *a, const void *b)
{
    const etch_tally *x = a, *y = b;
    if (x->collective != y->collective)
        return x->collective < y->collective ? -1 : 1;
    return x->axes < y->axes ? -1 : x->axes > y->axes;
}

static etch_tally tally_of(const etch_task *task)
{
    return (etch_tally){.collective = task->collective, .axes = task->group.axes};
}

static uint32_t find_tally(const etch_outline *outline, const etch_task *task)
{
    etch_tally tally = tally_of(task);
    uint32_t i = 0;
    while (i < outline->tallies.count && compare_tallies(&outline->tallies.at[i], &tally) != 0)
        i++;
    return i;
}

static void add_tally(void *data, const etch_task_run *run)
{
    const etch_outliner *o = data;
    if (run->task->type == ETCH_NODE_COLL && find_tally(o->outline, run->task) == o->outline->tallies.count)
        ETCH_PUSH(o->arena, &o->outline->tallies, tally_of(run->task));
}

static void set_tally(void *data, const etch_task_run *run)
{
    const etch_outliner *o = data;
    if (run->task->type == ETCH_NODE_COLL)
        run->task->tally = find_tally(o->outline, run->task);
}

void etch_outline_tally(etch_outliner *o)
{
    etch_outline *outline = o->outline;
    etch_outline_each(outline, ETCH_EVERY_STAGE, add_tally, o);
    if (outline->tallies.count > 0)
        qsort(outline->tallies.at, outline->tallies.count, sizeof(etch_tally), compare_tallies);
    etch_outline_each(outline, ETCH_EVERY_STAGE, set_tally, o);
}
