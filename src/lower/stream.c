/* Buckets of a given size: what the weight groups of a stage reduce, or gather, over the same axes is one
 * stream of bytes, in the order in which backward completes it, and is sent in pieces. */
#include "lower/lower_int.h"

#include <stdlib.h>

/* ---- streams ------------------------------------------------------------------------------------------- */

/* Bytes that a rank puts into a piece, at most: of what is gathered its part. */
static uint64_t limit_of(const etch_outliner *o, const etch_task *task, uint64_t bucket)
{
    uint64_t ranks = 1;
    if (bucket == INT64_MAX)
        return bucket;
    for (uint32_t a = 0; task->collective == ETCH_COMM_ALL_GATHER && a < o->extent->axis_count; a++)
        ranks *= task->group.axes >> a & 1 ? o->extent->axis_size[a] : 1;
    return bucket >= ranks ? bucket / ranks : 1;
}

/* Bytes of the first piece, and of the others, whatever is cut. */
typedef struct limits {
    uint64_t first, next;
    bool of_tensors;
} limits;

static limits limits_of(etch_outliner *o)
{
    const etch_plan *plan = o->placed->plan;
    if (plan->bucketing == ETCH_BUCKET_BY_TENSOR)
        return (limits){ETCH_DDP_FIRST_BUCKET, ETCH_DDP_BUCKET, true};
    const uint64_t size =
        plan->bucketing == ETCH_BUCKET_BY_SIZE ? etch_bound_number(o, plan->bucket) : INT64_MAX;
    return (limits){size, size, false};
}

/* "grads.dp.all_reduce": what the tasks of all weight groups have in common. */
static const char *name_of(const etch_outliner *o, const etch_task *task)
{
    const char *what = task->collective == ETCH_COMM_ALL_GATHER ? "weights" : "grads";
    return etch_text(o->arena, "%s.%s.%s", what, etch_axes_label(o->placed, task->group.axes), task->op_type);
}

/* Counted from 1. */
static uint32_t stream_of(etch_outliner *o, const etch_task *task, const limits *of)
{
    etch_outline *outline = o->outline;
    for (uint32_t i = 0; i < outline->streams.count; i++) {
        const etch_task *known = outline->streams.at[i].like;
        if (known->collective == task->collective && known->group.axes == task->group.axes)
            return 1 + i;
    }
    const etch_stream stream = {.like = task,
                                .first = limit_of(o, task, of->first),
                                .limit = limit_of(o, task, of->next),
                                .of_tensors = of->of_tensors,
                                .name = etch_word_of(name_of(o, task))};
    ETCH_PUSH(o->arena, &outline->streams, stream);
    return outline->streams.count;
}

void etch_streams_make(etch_outliner *o)
{
    const etch_weight_tasks *tasks = &o->outline->weight_tasks;
    const limits of = limits_of(o);
    for (uint32_t i = 0; o->placed->plan->bucketing != ETCH_BUCKET_BY_LAYER && i < tasks->count; i++) {
        etch_weight_task *w = tasks->at[i];
        const bool flows = w->role == ETCH_END_REDUCE || w->role == ETCH_END_GATHER;
        if (flows && !w->every_microbatch) /* else it goes out with its weight group */
            w->stream = stream_of(o, &w->task, &of);
    }
}

/* ---- order --------------------------------------------------------------------------------------------- */

/* A task for one of its weight groups, and where in the stream its bytes are. */
typedef struct member {
    etch_due due;
    uint64_t major, minor;
    uint32_t task;
} member;

typedef ETCH_VEC(member) member_list;

/* As backward completes gradients, and with each all that has one: an iteration of a loop, the last one
 * first. What is gathered comes in the order of updates: by weight groups, the first iteration first. */
static int by_place(const void *a, const void *b)
{
    const member *x = a, *y = b;
    const int major = etch_order(x->major, y->major), minor = etch_order(x->minor, y->minor);
    return major ? major : minor ? minor : etch_order(x->task, y->task);
}

static void add_members(etch_arena *arena, const etch_outline *outline, const etch_held *held, uint32_t task,
                        member_list *out)
{
    const etch_weight_task *w = outline->weight_tasks.at[task];
    const bool gathers = w->role == ETCH_END_GATHER;
    if (etch_weight_task_groups(held, w) == 0)
        return;
    for (uint64_t i = 0; i < w->weight_groups; i++)
        if (etch_weight_task_has(held, w, i)) {
            const member m = {.due = {w, i},
                              .major = gathers ? w->group->id : etch_weight_task_item(outline, held, w),
                              .minor = gathers ? i : w->weight_groups - i,
                              .task = task};
            ETCH_PUSH(arena, out, m);
        }
}

static member_list members_of(etch_arena *arena, const etch_outline *outline, const etch_held *held,
                              uint32_t stream)
{
    member_list all = {0};
    for (uint32_t i = 0; i < outline->weight_tasks.count; i++)
        if (outline->weight_tasks.at[i]->stream == 1 + stream)
            add_members(arena, outline, held, i, &all);
    if (all.count > 0)
        qsort(all.at, all.count, sizeof *all.at, by_place);
    return all;
}

/* ---- pieces -------------------------------------------------------------------------------------------- */

/* The next bytes that are sent at once: the rest of the first member, members up to the last, and bytes of
 * that. */
typedef struct cut {
    const etch_stream *stream;
    const member_list *members;
    uint64_t sent;
    /* the first member that has not been sent as a whole, and its bytes that have been */
    uint32_t first;
    uint64_t first_sent;
    /* the last member of the next piece, and its bytes that are sent after that */
    uint32_t last;
    uint64_t last_sent;
    uint64_t bytes;
} cut;

/* Bytes that must not be divided. */
static uint64_t unit_of(const cut *c, const etch_outline *outline, const etch_weight_task *w)
{
    return c->stream->of_tensors && w->task.gradients.count
               ? w->task.bytes / outline->gradients.at[w->task.gradients.at[0]].group_copies
               : 1;
}

/* False when all has been sent. */
static bool find_cut(cut *c, const etch_outline *outline)
{
    const uint64_t limit = c->sent ? c->stream->limit : c->stream->first;
    c->bytes = 0;
    for (c->last = c->first; c->last < c->members->count; c->last++) {
        const etch_weight_task *w = c->members->at[c->last].due.task;
        const uint64_t begin = c->last == c->first ? c->first_sent : 0, left = w->task.bytes - begin;
        const uint64_t unit = unit_of(c, outline, w), more = limit - c->bytes;
        const uint64_t units = unit ? more / unit + (more % unit != 0) : 0;
        const uint64_t taken = units < left / (unit ? unit : 1) ? units * unit : left;
        c->bytes += taken;
        c->last_sent = begin + taken;
        if (c->bytes >= limit)
            return true;
    }
    c->last--;
    return c->bytes > 0;
}

static void take_cut(cut *c)
{
    const bool whole = c->last_sent == c->members->at[c->last].due.task->task.bytes;
    c->first = whole ? c->last + 1 : c->last;
    c->first_sent = whole ? 0 : c->last_sent;
    c->sent++;
}

etch_total etch_stream_pieces(etch_arena *arena, const etch_outline *outline, const etch_held *held,
                              uint32_t stream)
{
    const member_list members = members_of(arena, outline, held, stream);
    cut c = {.stream = &outline->streams.at[stream], .members = &members};
    etch_total bytes = 0;
    for (uint32_t i = 0; i < members.count; i++)
        bytes += members.at[i].due.task->task.bytes;
    if (!c.stream->of_tensors)
        return (bytes + c.stream->limit - 1) / c.stream->limit;
    while (find_cut(&c, outline))
        take_cut(&c);
    return c.sent;
}

/* ---- flows --------------------------------------------------------------------------------------------- */

/* A stream on its way. */
typedef struct flow {
    member_list members;
    /* by member: it is complete */
    bool *there;
    /* those before it are there, and their gradients have been sent by other streams; where the next one to
     * come is looked for first */
    uint32_t ready, next;
    /* the next piece, unless all have been sent */
    cut cut;
    bool ends;
} flow;

struct etch_flows {
    etch_arena *arena;
    const etch_outline *outline;
    /* by stream */
    flow *at;
    uint32_t count;
};

etch_flows *etch_flows_new(etch_arena *arena, const etch_outline *outline, const etch_held *held)
{
    etch_flows *flows = ETCH_NEW(arena, etch_flows);
    const uint32_t count = outline->streams.count;
    *flows = (etch_flows){arena, outline, ETCH_NEW_ARRAY(arena, count, flow), count};
    for (uint32_t s = 0; s < count; s++) {
        flow *f = &flows->at[s];
        f->members = members_of(arena, outline, held, s);
        f->there = ETCH_NEW_ARRAY(arena, f->members.count, bool);
        f->cut = (cut){.stream = &outline->streams.at[s], .members = &f->members};
        f->ends = !find_cut(&f->cut, outline);
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
        if (before == f || before->cut.stream->like->collective != ETCH_COMM_REDUCE_SCATTER)
            continue;
        for (uint32_t i = before->cut.first; i < before->members.count; i++)
            if (before->members.at[i].due.weight_group == due->weight_group &&
                reads_alike(&before->members.at[i].due.task->task, &due->task->task))
                return true;
    }
    return false;
}

/* Most come in the order of the stream. */
void etch_flows_add(etch_flows *flows, etch_due due)
{
    flow *f = &flows->at[due.task->stream - 1];
    for (uint32_t tried = 0; tried < f->members.count; tried++, f->next++) {
        f->next = f->next < f->members.count ? f->next : 0;
        const etch_due *here = &f->members.at[f->next].due;
        if (here->task == due.task && here->weight_group == due.weight_group)
            break;
    }
    etch_lower_require(flows->arena, f->next < f->members.count);
    f->there[f->next++] = true;
}

static bool is_ready(const etch_flows *flows, flow *f)
{
    while (f->ready < f->members.count && f->there[f->ready] &&
           !is_held(flows, f, &f->members.at[f->ready].due))
        f->ready++;
    return !f->ends && f->cut.last < f->ready;
}

bool etch_flows_next(etch_flows *flows, etch_stream_piece *piece)
{
    for (uint32_t s = 0; s < flows->count; s++) {
        flow *f = &flows->at[s];
        if (!is_ready(flows, f))
            continue;
        *piece = (etch_stream_piece){.stream = f->cut.stream,
                                     .number = f->cut.sent,
                                     .bytes = f->cut.bytes,
                                     .member_count = f->cut.last - f->cut.first + 1};
        etch_due *members = ETCH_NEW_ARRAY(flows->arena, piece->member_count, etch_due);
        for (uint32_t i = 0; i < piece->member_count; i++)
            members[i] = f->members.at[f->cut.first + i].due;
        piece->members = members;
        take_cut(&f->cut);
        f->ends = !find_cut(&f->cut, flows->outline);
        return true;
    }
    return false;
}
