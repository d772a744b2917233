/* From what a slot waits for to what others wait for in it: of each pair the longest path, so that nodes in
 * between need not be looked at again. */
#include "simulate/brief_int.h"

typedef struct weaving {
    etch_sim *sim;
    const etch_brief_program *program;
    uint32_t class;
    const etch_sim_content *content;
    etch_sim_weave *out;
    /* where paths begin: what lasts is not set */
    ETCH_VEC(etch_sim_thread) begins;
    /* by node of the slot and begin: the longest path from it to the end of the node; a node that others take
     * part in is a begin itself. There is room for `width` begins */
    etch_sim_span *spans;
    uint32_t width;
} weaving;

/* The number of a begin, which may be new. */
static uint32_t begin_of(weaving *w, etch_wait wait, uint32_t content)
{
    for (uint32_t i = 0; i < w->begins.count; i++) {
        const etch_wait *known = &w->begins.at[i].wait;
        if (known->form == wait.form && known->where == wait.where && known->what == wait.what)
            return i;
    }
    ETCH_PUSH(w->sim->arena, &w->begins, (etch_sim_thread){.wait = wait, .content = content});
    return w->begins.count - 1;
}

static uint32_t content_of(const weaving *w, uint32_t node)
{
    return w->program->brief.content[w->program->slot_of[node]];
}

/* What the node waits for outside of the slot: names nodes by their marks. */
static etch_wait outer_wait(const weaving *w, uint32_t node, uint32_t dep, uint32_t *content)
{
    etch_wait wait = etch_brief_wait(w->sim, w->program, node, dep);
    *content = 0;
    if ((wait.form == ETCH_WAIT_SAME || wait.form == ETCH_WAIT_BACK) && wait.what < ETCH_WAIT_RECEIVE) {
        *content = content_of(w, dep);
        wait.what = w->program->contents.at[*content].mark_of[wait.what];
    }
    return wait;
}

static const etch_sim_group *group_of(const weaving *w, const etch_node *node, uint32_t *number)
{
    *number = w->sim->groups_of[(size_t)w->class * w->sim->job->family_count + node->family];
    return &w->sim->groups.at[*number];
}

static etch_mark_kind kind_of(const weaving *w, const etch_node *node)
{
    uint32_t number;
    if (node->type == ETCH_NODE_SEND)
        return ETCH_MARK_SENDS;
    if (node->type == ETCH_NODE_RECV)
        return ETCH_MARK_RECEIVES;
    return node->type == ETCH_NODE_COLL && group_of(w, node, &number)->class_count > 1 ? ETCH_MARK_MEETS
                                                                                       : ETCH_MARK_ENDS;
}

static etch_sim_span lasts_of(const weaving *w, uint32_t index)
{
    etch_sim *sim = w->sim;
    const etch_node *node = &w->program->of->nodes[index];
    uint32_t timed = w->program->prepared->detail[index], number;
    if (node->type == ETCH_NODE_COLL) {
        timed = etch_sim_collective(sim, node, group_of(w, node, &number)->spread);
    } else if (node->type != ETCH_NODE_COMP && !etch_node_moves(node->type)) {
        const uint32_t rank = sim->first_rank[w->class];
        const uint32_t peer = etch_peer_rank(sim->job, w->program->of->peers[node->peer], rank);
        timed = etch_sim_message(sim, node->bytes, etch_sim_path(sim, rank, peer));
    }
    return (etch_sim_span){sim->times.at[timed].count, sim->times.at[timed].error};
}

static void raise(uint64_t *at, uint64_t to)
{
    *at = *at > to ? *at : to;
}

/* Paths to `to` that go on from `from`, which ends with it. */
static void join(const weaving *w, etch_sim_span *to, const etch_sim_span *from)
{
    for (uint32_t b = 0; b < w->begins.count; b++) {
        if (from[b].count == ETCH_SIM_NEVER)
            continue;
        if (to[b].count == ETCH_SIM_NEVER) {
            to[b] = from[b];
            continue;
        }
        raise(&to[b].count, from[b].count);
        raise(&to[b].error, from[b].error);
    }
}

static void join_begin(etch_sim_span *to, uint64_t count)
{
    if (to->count == ETCH_SIM_NEVER)
        *to = (etch_sim_span){count, 0};
    else
        raise(&to->count, count);
}

/* All that the node waits for. */
static void join_waits(weaving *w, uint32_t index, etch_sim_span *to)
{
    const etch_brief_program *p = w->program;
    const uint32_t first = p->of->slots[w->content->slot];
    join_begin(&to[0], etch_sim_launched(w->sim, index - first));
    for (uint32_t k = p->edges.first[index]; k < p->edges.first[index + 1]; k++) {
        const uint32_t dep = p->edges.deps.at[k];
        uint32_t content;
        if (dep >= first) {
            join(w, to, w->spans + (size_t)(dep - first) * w->width);
            continue;
        }
        const etch_wait wait = outer_wait(w, index, dep, &content);
        join_begin(&to[begin_of(w, wait, content)], 0);
    }
}

static void add_threads(weaving *w, const etch_sim_span *to, etch_sim_mark *mark)
{
    mark->first_thread = w->out->threads.count;
    for (uint32_t b = 0; b < w->begins.count; b++) {
        if (to[b].count == ETCH_SIM_NEVER)
            continue;
        etch_sim_thread thread = w->begins.at[b];
        thread.lasts = to[b];
        ETCH_PUSH(w->sim->arena, &w->out->threads, thread);
    }
    mark->thread_count = w->out->threads.count - mark->first_thread;
}

static void name_message(const weaving *w, uint32_t index, etch_sim_mark *mark)
{
    const etch_sim *sim = w->sim;
    const etch_class_program *p = w->program->of;
    const etch_node *node = &p->nodes[index];
    mark->other = sim->class_of[etch_peer_rank(sim->job, p->peers[node->peer], sim->first_rank[w->class])];
    mark->action = etch_brief_action(w->program, index);
    mark->row = (node->tag >> 1) % w->program->brief.chunks;
    mark->back = node->tag & 1;
}

/* The node at `local` of the slot. */
static void weave_node(weaving *w, uint32_t local)
{
    const uint32_t index = w->program->of->slots[w->content->slot] + local;
    const etch_node *node = &w->program->of->nodes[index];
    const etch_sim_span lasts = lasts_of(w, index);
    etch_sim_mark mark = {.kind = kind_of(w, node), .lasts = lasts};
    etch_sim_span *to = w->spans + (size_t)local * w->width;
    for (uint32_t b = 0; b < w->width; b++)
        to[b].count = ETCH_SIM_NEVER;
    join_waits(w, index, to);
    w->out->work += lasts.count;
    for (uint32_t b = 0; mark.kind == ETCH_MARK_ENDS && b < w->begins.count; b++)
        if (to[b].count != ETCH_SIM_NEVER) {
            to[b].count += lasts.count;
            to[b].error += lasts.error;
        }
    const uint32_t number = w->content->mark_of[local];
    if (number == UINT32_MAX)
        return;
    add_threads(w, to, &mark);
    if (mark.kind == ETCH_MARK_MEETS)
        (void)group_of(w, node, &mark.group);
    else if (mark.kind != ETCH_MARK_ENDS)
        name_message(w, index, &mark);
    w->out->marks[number] = mark;
    if (mark.kind == ETCH_MARK_ENDS)
        return;
    for (uint32_t b = 0; b < w->width; b++)
        to[b].count = ETCH_SIM_NEVER;
    join_begin(&to[begin_of(w, (etch_wait){ETCH_WAIT_HERE, 0, number}, 0)], 0);
}

/* Begins of a slot, at most: its host, what nodes wait for outside, and those that others take part in. */
static uint32_t most_begins(const weaving *w)
{
    const etch_brief_program *p = w->program;
    const uint32_t first = p->of->slots[w->content->slot];
    uint32_t count = 1;
    for (uint32_t i = first; i < first + w->content->node_count; i++) {
        count += kind_of(w, &p->of->nodes[i]) != ETCH_MARK_ENDS;
        for (uint32_t k = p->edges.first[i]; k < p->edges.first[i + 1]; k++)
            count += p->edges.deps.at[k] < first;
    }
    return count;
}

void etch_sim_weave_make(etch_sim *sim, const etch_brief_program *p, uint32_t class, uint32_t content,
                         etch_sim_weave *out)
{
    const etch_sim_content *c = &p->contents.at[content];
    const uint32_t streams = etch_sim_streams(sim);
    etch_arena *arena = etch_arena_new(etch_arena_mem(sim->arena));
    weaving w = {.sim = sim, .program = p, .class = class, .content = c, .out = out};
    uint32_t *last = ETCH_NEW_ARRAY(sim->arena, streams, uint32_t);
    w.width = most_begins(&w);
    w.spans = ETCH_NEW_ARRAY(arena, (size_t)c->node_count * w.width, etch_sim_span);
    *out = (etch_sim_weave){.marks = ETCH_NEW_ARRAY(sim->arena, c->mark_count, etch_sim_mark),
                            .mark_count = c->mark_count,
                            .node_count = c->node_count,
                            .last = last};
    for (uint32_t s = 0; s < streams; s++)
        last[s] = c->last[s] == UINT32_MAX ? UINT32_MAX : c->mark_of[c->last[s]];
    (void)begin_of(&w, (etch_wait){ETCH_WAIT_LAUNCH, 0, 0}, 0);
    for (uint32_t i = 0; i < c->node_count; i++)
        weave_node(&w, i);
    etch_arena_free(arena);
}
