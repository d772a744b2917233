/* The longest paths through what slots do, for any times: as weave.c finds them, but of nodes one after the
 * other only what they add up to is kept, of paths only those that others have to know, and slots that are
 * alike share them. */
#include "simulate/shape_int.h"

#include <string.h>

typedef struct taping {
    etch_tape_maker *maker;
    const etch_brief_program *program;
    uint32_t class;
    const etch_sim_content *content;
    etch_shape_content *out;
    etch_tape tape;
    /* where paths begin, whose weights are not set */
    ETCH_VEC(etch_shape_thread) begins;
    /* by node of the slot: its node of the tape */
    uint32_t *node_of;
    /* by node of the slot: how many of the slot wait for it */
    uint32_t *followers;
    /* what it is of, as words */
    ETCH_VEC(uint32_t) text;
} taping;

static etch_arena *arena_of(const taping *t)
{
    return t->maker->shape->arena;
}

/* The number of a begin, which may be new. */
static uint32_t begin_of(taping *t, etch_wait wait, uint32_t content)
{
    for (uint32_t i = 0; i < t->begins.count; i++) {
        const etch_wait *known = &t->begins.at[i].wait;
        if (known->form == wait.form && known->where == wait.where && known->what == wait.what)
            return i;
    }
    ETCH_PUSH(arena_of(t), &t->begins, (etch_shape_thread){.wait = wait, .content = content});
    return t->begins.count - 1;
}

static uint32_t begin_outside(taping *t, uint32_t node, uint32_t dep)
{
    const etch_brief_program *p = t->program;
    etch_wait wait = etch_brief_wait(t->maker->sim, p, node, dep);
    uint32_t content = 0;
    if ((wait.form == ETCH_WAIT_SAME || wait.form == ETCH_WAIT_BACK) && wait.what < ETCH_WAIT_RECEIVE) {
        content = p->brief.content[p->slot_of[dep]];
        wait.what = p->contents.at[content].mark_of[wait.what];
    }
    return begin_of(t, wait, content);
}

static uint32_t group_of(const taping *t, const etch_node *node)
{
    const etch_sim *sim = t->maker->sim;
    return sim->groups_of[(size_t)t->class * sim->job->family_count + node->family];
}

static etch_mark_kind kind_of(const taping *t, const etch_node *node)
{
    if (node->type == ETCH_NODE_SEND)
        return ETCH_MARK_SENDS;
    if (node->type == ETCH_NODE_RECV)
        return ETCH_MARK_RECEIVES;
    return node->type == ETCH_NODE_COLL && t->maker->sim->groups.at[group_of(t, node)].class_count > 1
               ? ETCH_MARK_MEETS
               : ETCH_MARK_ENDS;
}

static uint32_t entry_of(const taping *t, uint32_t index)
{
    etch_step_shape *shape = t->maker->shape;
    const etch_node *node = &t->program->of->nodes[index];
    const etch_shape_entry entry = {.task = t->program->of->tasks[index],
                                    .starts = node->type == ETCH_NODE_COMP &&
                                              t->program->prepared->detail[index] != 0,
                                    .family = node->type == ETCH_NODE_COLL ? node->family : 0};
    for (uint32_t i = 0; i < shape->entries.count; i++)
        if (shape->entries.at[i].task == entry.task && shape->entries.at[i].starts == entry.starts)
            return i;
    ETCH_PUSH(shape->arena, &shape->entries, entry);
    return shape->entries.count - 1;
}

static void add_term(taping *t, etch_tape_node *node, uint32_t entry)
{
    for (uint32_t i = node->first_term; i < node->first_term + node->term_count; i++)
        if (t->tape.terms.at[i].entry == entry) {
            t->tape.terms.at[i].times++;
            return;
        }
    ETCH_PUSH(arena_of(t), &t->tape.terms, (etch_tape_term){entry, 1});
    node->term_count++;
}

/* Does the node follow the last of the tape alone, and nothing else that one? */
static bool goes_on(const taping *t, uint32_t local, etch_mark_kind kind)
{
    const etch_brief_program *p = t->program;
    const uint32_t first = p->of->slots[t->content->slot], index = first + local;
    if (kind != ETCH_MARK_ENDS || t->tape.nodes.count == 0 ||
        p->edges.first[index + 1] - p->edges.first[index] != 1)
        return false;
    const uint32_t dep = p->edges.deps.at[p->edges.first[index]];
    if (dep < first)
        return false;
    const uint32_t before = dep - first;
    return t->followers[before] == 1 && !t->content->is_marked[before] &&
           t->node_of[before] == t->tape.nodes.count - 1 && kind_of(t, &p->of->nodes[dep]) == ETCH_MARK_ENDS;
}

static void add_source(taping *t, etch_tape_node *node, uint32_t source)
{
    ETCH_PUSH(arena_of(t), &t->tape.sources, source);
    node->source_count++;
}

static void begin_node(taping *t, uint32_t index)
{
    const etch_brief_program *p = t->program;
    const uint32_t first = p->of->slots[t->content->slot];
    etch_tape_node node = {.first_source = t->tape.sources.count,
                           .first_term = t->tape.terms.count,
                           .is_begin = UINT32_MAX,
                           .first_weight = UINT32_MAX};
    for (uint32_t k = p->edges.first[index]; k < p->edges.first[index + 1]; k++) {
        const uint32_t dep = p->edges.deps.at[k];
        add_source(t, &node,
                   dep >= first ? t->node_of[dep - first] : begin_outside(t, index, dep) | ETCH_TAPE_BEGIN);
    }
    if (node.source_count == 0) /* what waits for something waits for the time 0 */
        add_source(t, &node, ETCH_TAPE_BEGIN);
    ETCH_PUSH(arena_of(t), &t->tape.nodes, node);
}

static void add_node(taping *t, uint32_t local)
{
    const uint32_t index = t->program->of->slots[t->content->slot] + local;
    const etch_mark_kind kind = kind_of(t, &t->program->of->nodes[index]);
    if (!goes_on(t, local, kind))
        begin_node(t, index);
    etch_tape_node *node = &t->tape.nodes.at[t->tape.nodes.count - 1];
    t->node_of[local] = t->tape.nodes.count - 1;
    if (kind == ETCH_MARK_ENDS)
        add_term(t, node, entry_of(t, index));
    else
        node->is_begin = begin_of(t, (etch_wait){ETCH_WAIT_HERE, 0, t->content->mark_of[local]}, 0);
}

/* ---- marks --------------------------------------------------------------------------------------------- */

/* By node of the tape and begin: is there a path to it? */
static bool *find_paths(const taping *t, etch_arena *arena)
{
    const uint32_t width = t->begins.count;
    bool *leads = ETCH_NEW_ARRAY(arena, (size_t)t->tape.nodes.count * width, bool);
    for (uint32_t i = 0; i < t->tape.nodes.count; i++) {
        const etch_tape_node *node = &t->tape.nodes.at[i];
        bool *own = leads + (size_t)i * width;
        for (uint32_t s = node->first_source; s < node->first_source + node->source_count; s++) {
            const uint32_t source = t->tape.sources.at[s];
            if (source & ETCH_TAPE_BEGIN) {
                own[source & ~ETCH_TAPE_BEGIN] = true;
                continue;
            }
            const uint32_t only = t->tape.nodes.at[source].is_begin;
            for (uint32_t b = 0; only == UINT32_MAX && b < width; b++)
                own[b] = own[b] || leads[(size_t)source * width + b];
            if (only != UINT32_MAX)
                own[only] = true;
        }
    }
    return leads;
}

static void name_mark(const taping *t, uint32_t index, etch_shape_mark *mark)
{
    const etch_sim *sim = t->maker->sim;
    const etch_class_program *p = t->program->of;
    const etch_node *node = &p->nodes[index];
    mark->entry = mark->kind == ETCH_MARK_ENDS ? UINT32_MAX : entry_of(t, index);
    if (mark->kind == ETCH_MARK_MEETS)
        mark->group = group_of(t, node);
    if (mark->kind != ETCH_MARK_SENDS && mark->kind != ETCH_MARK_RECEIVES)
        return;
    mark->other = sim->class_of[etch_peer_rank(sim->job, p->peers[node->peer], sim->first_rank[t->class])];
    mark->action = etch_brief_action(t->program, index);
    mark->row = (node->tag >> 1) % t->program->brief.chunks;
    mark->back = node->tag & 1;
}

/* Numbers the paths that are asked for, within the tape. */
static void add_marks(taping *t, const bool *leads)
{
    const uint32_t first = t->program->of->slots[t->content->slot], width = t->begins.count;
    t->tape.width = width;
    t->out->marks = ETCH_NEW_ARRAY(arena_of(t), t->content->mark_count, etch_shape_mark);
    t->out->mark_count = t->content->mark_count;
    for (uint32_t i = 0; i < t->content->node_count; i++) {
        if (t->content->mark_of[i] == UINT32_MAX)
            continue;
        etch_shape_mark *mark = &t->out->marks[t->content->mark_of[i]];
        etch_tape_node *node = &t->tape.nodes.at[t->node_of[i]];
        *mark = (etch_shape_mark){.kind = kind_of(t, &t->program->of->nodes[first + i]),
                                  .is_followed = t->followers[i] > 0,
                                  .first_thread = t->out->threads.count};
        name_mark(t, first + i, mark);
        node->first_weight = t->tape.weight_count;
        t->tape.weight_count += width;
        for (uint32_t b = 0; b < width; b++) {
            if (!leads[(size_t)t->node_of[i] * width + b])
                continue;
            etch_shape_thread thread = t->begins.at[b];
            thread.cell = node->first_weight + b; /* of the tape; sharing it tells which cell it is */
            ETCH_PUSH(arena_of(t), &t->out->threads, thread);
        }
        mark->thread_count = t->out->threads.count - mark->first_thread;
    }
}

/* ---- sharing ------------------------------------------------------------------------------------------- */

static void put(taping *t, etch_arena *arena, uint32_t word)
{
    ETCH_PUSH(arena, &t->text, word);
}

static void describe(taping *t, etch_arena *arena)
{
    put(t, arena, t->tape.width);
    for (uint32_t i = 0; i < t->tape.nodes.count; i++) {
        const etch_tape_node *node = &t->tape.nodes.at[i];
        put(t, arena, node->source_count);
        put(t, arena, node->term_count);
        put(t, arena, node->is_begin);
        put(t, arena, node->first_weight);
        for (uint32_t k = 0; k < node->source_count; k++)
            put(t, arena, t->tape.sources.at[node->first_source + k]);
        for (uint32_t k = 0; k < node->term_count; k++) {
            put(t, arena, t->tape.terms.at[node->first_term + k].entry);
            put(t, arena, t->tape.terms.at[node->first_term + k].times);
        }
    }
}

/* ---- cells --------------------------------------------------------------------------------------------- */

static uint32_t sum_of(const taping *t, const etch_tape_node *node)
{
    etch_step_shape *shape = t->maker->shape;
    const etch_tape_term *terms = t->tape.terms.at + node->first_term;
    const uint32_t number =
        etch_sim_number(&t->maker->known_sums, (const uint32_t *)terms, 2 * node->term_count);
    if (number < shape->sums.count)
        return number;
    ETCH_PUSH(shape->arena, &shape->sums, ((etch_shape_sum){shape->terms.count, node->term_count}));
    for (uint32_t i = 0; i < node->term_count; i++)
        ETCH_PUSH(shape->arena, &shape->terms, terms[i]);
    return number;
}

/* By node and begin: is the path asked for, or part of one that is? */
static bool *find_needed(const taping *t, etch_arena *scratch, const bool *leads)
{
    const uint32_t width = t->tape.width;
    bool *needed = ETCH_NEW_ARRAY(scratch, (size_t)t->tape.nodes.count * width, bool);
    for (uint32_t i = t->tape.nodes.count; i-- > 0;) {
        const etch_tape_node *node = &t->tape.nodes.at[i];
        for (uint32_t b = 0; b < width; b++) {
            const size_t at = (size_t)i * width + b;
            needed[at] = leads[at] && (needed[at] || node->first_weight != UINT32_MAX);
            for (uint32_t s = node->first_source; needed[at] && s < node->first_source + node->source_count;
                 s++) {
                const uint32_t source = t->tape.sources.at[s];
                if (!(source & ETCH_TAPE_BEGIN))
                    needed[(size_t)source * width + b] = true;
            }
        }
    }
    return needed;
}

/* The cell of the path from a begin to a node. `cells`: by node and begin, those that are there. */
static uint32_t add_cell(const taping *t, const uint32_t *cells, uint32_t index, uint32_t begin)
{
    etch_step_shape *shape = t->maker->shape;
    const etch_tape_node *node = &t->tape.nodes.at[index];
    etch_shape_cell cell = {.first_source = shape->cell_sources.count, .sum = sum_of(t, node)};
    for (uint32_t s = node->first_source; s < node->first_source + node->source_count; s++) {
        const uint32_t source = t->tape.sources.at[s];
        const bool is_outside = source & ETCH_TAPE_BEGIN;
        const uint32_t only = is_outside ? source & ~ETCH_TAPE_BEGIN : t->tape.nodes.at[source].is_begin;
        const uint32_t from = only == UINT32_MAX ? cells[(size_t)source * t->tape.width + begin] : 0;
        if (only == UINT32_MAX ? from != 0 : only == begin)
            ETCH_PUSH(shape->arena, &shape->cell_sources, from);
    }
    cell.source_count = shape->cell_sources.count - cell.first_source;
    ETCH_PUSH(shape->arena, &shape->cells, cell);
    return shape->cells.count - 1;
}

static void add_tape(const taping *t, etch_arena *scratch, const bool *leads)
{
    etch_step_shape *shape = t->maker->shape;
    const uint32_t width = t->tape.width;
    const bool *needed = find_needed(t, scratch, leads);
    uint32_t *cells = ETCH_NEW_ARRAY(scratch, (size_t)t->tape.nodes.count * width, uint32_t);
    uint32_t *of = ETCH_NEW_ARRAY(shape->arena, t->tape.weight_count, uint32_t);
    for (uint32_t i = 0; i < t->tape.nodes.count; i++)
        for (uint32_t b = 0; b < width; b++) {
            const size_t at = (size_t)i * width + b;
            if (!needed[at])
                continue;
            cells[at] = add_cell(t, cells, i, b);
            if (t->tape.nodes.at[i].first_weight != UINT32_MAX)
                of[t->tape.nodes.at[i].first_weight + b] = cells[at];
        }
    ETCH_PUSH(shape->arena, &shape->tapes, (etch_shape_tape){of});
}

/* Equal tapes are one. */
static void share(taping *t, etch_arena *scratch, const bool *leads)
{
    etch_step_shape *shape = t->maker->shape;
    describe(t, scratch);
    const uint32_t tape = etch_sim_number(&t->maker->known, t->text.at, t->text.count);
    if (tape == shape->tapes.count)
        add_tape(t, scratch, leads);
    for (uint32_t i = 0; i < t->out->threads.count; i++)
        t->out->threads.at[i].cell = shape->tapes.at[tape].cells[t->out->threads.at[i].cell];
}

static void count_followers(taping *t)
{
    const etch_brief_program *p = t->program;
    const uint32_t first = p->of->slots[t->content->slot];
    for (uint32_t i = first; i < first + t->content->node_count; i++)
        for (uint32_t k = p->edges.first[i]; k < p->edges.first[i + 1]; k++)
            if (p->edges.deps.at[k] >= first)
                t->followers[p->edges.deps.at[k] - first]++;
}

void etch_tape_make(etch_tape_maker *maker, const etch_brief_program *p, uint32_t class, uint32_t content,
                    etch_shape_content *out)
{
    const etch_sim_content *c = &p->contents.at[content];
    const uint32_t streams = maker->shape->streams;
    etch_arena *arena = maker->shape->arena, *scratch = etch_arena_new(etch_arena_mem(arena));
    taping t = {.maker = maker, .program = p, .class = class, .content = c, .out = out};
    t.node_of = ETCH_NEW_ARRAY(scratch, c->node_count, uint32_t);
    t.followers = ETCH_NEW_ARRAY(scratch, c->node_count, uint32_t);
    *out =
        (etch_shape_content){.last = ETCH_NEW_ARRAY(arena, streams, uint32_t), .node_count = c->node_count};
    for (uint32_t s = 0; s < streams; s++)
        out->last[s] = c->last[s] == UINT32_MAX ? UINT32_MAX : c->mark_of[c->last[s]];
    count_followers(&t);
    (void)begin_of(&t, (etch_wait){ETCH_WAIT_LAUNCH, 0, 0}, 0);
    for (uint32_t i = 0; i < c->node_count; i++)
        add_node(&t, i);
    const bool *leads = find_paths(&t, scratch);
    add_marks(&t, leads);
    share(&t, scratch, leads);
    etch_arena_free(scratch);
}
