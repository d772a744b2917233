/* Buckets of a given size: what the weight groups of a stage reduce, or gather, over the same axes is one
 * stream of bytes, in the order in which it is complete, and is sent in pieces. */
#include "lower/lower_int.h"

/* ---- streams ------------------------------------------------------------------------------------------- */

/* Bytes that a rank puts into a piece, at most: of what is gathered its part. */
static uint64_t limit_of(const etch_outliner *o, const etch_task *task, uint64_t bucket)
{
    uint64_t ranks = 1;
    if (bucket == 0)
        return INT64_MAX;
    for (uint32_t a = 0; task->collective == ETCH_COMM_ALL_GATHER && a < o->extent->axis_count; a++)
        ranks *= task->group.axes >> a & 1 ? o->extent->axis_size[a] : 1;
    return bucket >= ranks ? bucket / ranks : 1;
}

/* "grads.dp.all_reduce": what the tasks of all weight groups have in common. */
static const char *name_of(const etch_outliner *o, const etch_task *task)
{
    const char *what = task->collective == ETCH_COMM_ALL_GATHER ? "weights" : "grads";
    return etch_text(o->arena, "%s.%s.%s", what, etch_axes_label(o->placed, task->group.axes), task->op_type);
}

/* Counted from 1. */
static uint32_t stream_of(etch_outliner *o, const etch_task *task, uint64_t bucket)
{
    etch_outline *outline = o->outline;
    for (uint32_t i = 0; i < outline->streams.count; i++) {
        const etch_task *known = outline->streams.at[i].like;
        if (known->collective == task->collective && known->group.axes == task->group.axes)
            return 1 + i;
    }
    const etch_stream stream = {task, limit_of(o, task, bucket), etch_word_of(name_of(o, task))};
    ETCH_PUSH(o->arena, &outline->streams, stream);
    return outline->streams.count;
}

void etch_streams_make(etch_outliner *o)
{
    const etch_plan *plan = o->placed->plan;
    const etch_weight_tasks *tasks = &o->outline->weight_tasks;
    const uint64_t bucket = plan->bucketing == ETCH_BUCKET_BY_SIZE ? etch_bound_number(o, plan->bucket) : 0;
    for (uint32_t i = 0; plan->bucketing != ETCH_BUCKET_BY_LAYER && i < tasks->count; i++) {
        etch_weight_task *w = tasks->at[i];
        const bool flows = w->role == ETCH_END_REDUCE || w->role == ETCH_END_GATHER;
        if (flows && !w->every_microbatch) /* else it goes out with its weight group */
            w->stream = stream_of(o, &w->task, bucket);
    }
}

etch_total etch_stream_bytes(const etch_outline *outline, const etch_held *held, uint32_t stream)
{
    etch_total bytes = 0;
    for (uint32_t i = 0; i < outline->weight_tasks.count; i++) {
        const etch_weight_task *w = outline->weight_tasks.at[i];
        if (w->stream == 1 + stream)
            bytes += (etch_total)w->task.bytes * etch_weight_task_groups(held, w);
    }
    return bytes;
}

etch_total etch_stream_pieces(const etch_outline *outline, const etch_held *held, uint32_t stream)
{
    const etch_total limit = outline->streams.at[stream].limit;
    return (etch_stream_bytes(outline, held, stream) + limit - 1) / limit;
}

/* ---- flows --------------------------------------------------------------------------------------------- */

typedef ETCH_VEC(etch_due) due_list;

/* Tasks that wait for the next piece of a stream. */
typedef struct flow {
    const etch_stream *stream;
    /* bytes that no task has brought yet */
    etch_total to_come;
    /* bytes that are there and not sent yet: */
    etch_total pending;
    /* of these tasks, from `first` on */
    due_list members;
    uint32_t first;
    /* bytes of that one */
    uint64_t first_left;
    /* pieces */
    uint64_t sent;
    /* tasks, from `next_held` on, whose gradients another stream has not sent yet */
    due_list held;
    uint32_t next_held;
} flow;

struct etch_flows {
    etch_arena *arena;
    /* by stream */
    flow *at;
    uint32_t count;
};

etch_flows *etch_flows_new(etch_arena *arena, const etch_outline *outline, const etch_held *held)
{
    etch_flows *flows = ETCH_NEW(arena, etch_flows);
    *flows = (etch_flows){arena, ETCH_NEW_ARRAY(arena, outline->streams.count, flow), outline->streams.count};
    for (uint32_t s = 0; s < flows->count; s++) {
        flows->at[s].stream = &outline->streams.at[s];
        flows->at[s].to_come = etch_stream_bytes(outline, held, s);
    }
    return flows;
}

static bool reads_alike(const etch_task *a, const etch_task *b)
{
    for (uint32_t i = 0; i < a->gradients.count; i++)
        for (uint32_t k = 0; k < b->gradients.count; k++)
            if (a->gradients.at[i] == b->gradients.at[k])
                return true;
    return false;
}

/* Are the same gradients still to be reduce-scattered? Shards are reduced after that. */
static bool is_held(const etch_flows *flows, const flow *f, const etch_due *due)
{
    for (uint32_t s = 0; s < flows->count; s++) {
        const flow *before = &flows->at[s];
        if (before == f || before->stream->like->collective != ETCH_COMM_REDUCE_SCATTER)
            continue;
        for (uint32_t i = before->first; i < before->members.count; i++)
            if (before->members.at[i].weight_group == due->weight_group &&
                reads_alike(&before->members.at[i].task->task, &due->task->task))
                return true;
    }
    return false;
}

void etch_flows_add(etch_flows *flows, etch_due due)
{
    flow *f = &flows->at[due.task->stream - 1];
    ETCH_PUSH(flows->arena, &f->held, due);
}

static void take_held(etch_flows *flows, flow *f)
{
    while (f->next_held < f->held.count && !is_held(flows, f, &f->held.at[f->next_held])) {
        const etch_due due = f->held.at[f->next_held++];
        if (f->first == f->members.count)
            f->first_left = due.task->task.bytes;
        ETCH_PUSH(flows->arena, &f->members, due);
        f->pending += due.task->task.bytes;
        f->to_come -= due.task->task.bytes;
    }
}

/* Takes the next bytes of the tasks that are there. */
static void cut_piece(flow *f, etch_stream_piece *piece)
{
    const uint64_t limit = f->stream->limit, bytes = f->pending < limit ? (uint64_t)f->pending : limit;
    const uint32_t start = f->first;
    *piece = (etch_stream_piece){.stream = f->stream, .number = f->sent++, .bytes = bytes};
    piece->members = &f->members.at[f->first];
    f->pending -= bytes;
    for (uint64_t taken = 0; taken < bytes;) {
        piece->member_count = f->first - start + 1;
        const uint64_t left = bytes - taken, part = f->first_left < left ? f->first_left : left;
        taken += part;
        f->first_left -= part;
        if (f->first_left == 0 && ++f->first < f->members.count)
            f->first_left = f->members.at[f->first].task->task.bytes;
    }
}

bool etch_flows_next(etch_flows *flows, etch_stream_piece *piece)
{
    for (uint32_t s = 0; s < flows->count; s++) {
        flow *f = &flows->at[s];
        take_held(flows, f);
        if (f->pending < f->stream->limit && (f->to_come > 0 || f->pending == 0))
            continue;
        cut_piece(f, piece);
        return true;
    }
    return false;
}
