/* What slots do. A program is made slot by slot, and what is made for one depends on the actions around it,
 * on whether a microbatch is the first or the last, and on nothing else that changes while stages are full.
 * So a slot of the whole step does what slots of the brief one do that stand among the same actions. Whether
 * these really all do the same is looked at, node by node; else the brief job shows nothing. */
#include <string.h>

#include "simulate/brief_int.h"

/* Actions before and after a slot that what it does may depend on: of slots; and how far back it may say `the
 * last one before`. */
enum { SLOTS_BEFORE = 2, SLOTS_AFTER = 1, SLOTS_BACK = 3 };

typedef ETCH_VEC(uint32_t) words;

/* ---- actions ------------------------------------------------------------------------------------------- */

static size_t place_of(const etch_sim_slots *slots, const etch_action *action)
{
    return ((size_t)action->kind * slots->chunks + action->chunk) * slots->microbatches + action->microbatch;
}

static etch_sim_slots list_slots(etch_arena *arena, const etch_pipe *pipe, uint32_t stage)
{
    const uint64_t count = etch_action_count(pipe);
    etch_sim_slots slots = {.actions = etch_actions(arena, pipe, stage),
                            .microbatches = pipe->microbatches,
                            .step = etch_schedule_copies(pipe->schedule),
                            .chunks = pipe->chunks,
                            .first = ETCH_NEW_ARRAY(arena, (size_t)count + 1, uint32_t)};
    slots.slot_of =
        ETCH_NEW_ARRAY(arena, (size_t)ETCH_ACTION_COUNT * pipe->chunks * pipe->microbatches, uint32_t);
    for (uint64_t i = 0, end; i < count; i = end) {
        end = etch_slot_end(slots.actions, count, i);
        for (uint64_t k = i; k < end; k++)
            slots.slot_of[place_of(&slots, &slots.actions[k])] = slots.count;
        slots.first[slots.count++] = (uint32_t)i;
    }
    slots.first[slots.count] = (uint32_t)count;
    slots.content = ETCH_NEW_ARRAY(arena, (size_t)slots.count + 1, uint32_t);
    return slots;
}

/* The actions around a slot, and which of them are of the first or last microbatch, or of its own. */
static void describe_place(const etch_sim_slots *slots, uint32_t slot, etch_arena *arena, words *out)
{
    enum { NONE = 1, END = 2, ACTION = 16, IS_FIRST = 1 << 8, IS_LAST = 1 << 9, IS_SAME = 1 << 10 };
    out->count = 0;
    if (slot == slots->count)
        return;
    const uint64_t own = slots->actions[slots->first[slot]].microbatch;
    for (int64_t i = (int64_t)slot - SLOTS_BEFORE; i <= (int64_t)slot + SLOTS_AFTER; i++) {
        if (i < 0 || i >= slots->count) {
            ETCH_PUSH(arena, out, i < 0 ? 0 : NONE);
            continue;
        }
        for (uint32_t k = slots->first[i]; k < slots->first[i + 1]; k++) {
            const etch_action *action = &slots->actions[k];
            uint32_t word = ACTION + (uint32_t)action->kind;
            word |= action->microbatch < slots->step ? IS_FIRST : 0;
            word |= action->microbatch + slots->step >= slots->microbatches ? IS_LAST : 0;
            word |= action->microbatch == own ? IS_SAME : 0;
            ETCH_PUSH(arena, out, word);
            ETCH_PUSH(arena, out, action->chunk);
        }
        ETCH_PUSH(arena, out, END);
    }
}

/* ---- what nodes wait for ------------------------------------------------------------------------------- */

uint32_t etch_brief_action(const etch_brief_program *p, uint32_t node)
{
    const etch_sim_slots *slots = &p->brief;
    const uint32_t slot = p->slot_of[node], tag = p->of->nodes[node].tag;
    const uint64_t microbatch = (tag >> 1) / slots->chunks;
    const uint32_t first = slots->first[slot];
    uint32_t at = first;
    while (at < slots->first[slot + 1] && !(slots->actions[at].microbatch == microbatch &&
                                            etch_action_goes_back(slots->actions[at]) == (tag & 1)))
        at++;
    return at - first;
}

bool etch_slot_of_wait(const etch_sim_slots *slots, uint32_t slot, const etch_wait *wait, uint32_t *out)
{
    if (wait->form == ETCH_WAIT_BACK) {
        *out = slot - wait->where;
        return wait->where <= slot;
    }
    const uint32_t own = wait->where % ETCH_WAIT_BEFORE;
    etch_action action = slots->actions[slots->first[slot] + own];
    action.kind =
        (etch_action_kind)(wait->where >> ETCH_WAIT_KIND & ((1u << (ETCH_WAIT_CHUNK - ETCH_WAIT_KIND)) - 1));
    action.chunk = wait->where >> ETCH_WAIT_CHUNK;
    const bool is_before = wait->where & ETCH_WAIT_BEFORE;
    if (is_before && action.microbatch < slots->step)
        return false;
    action.microbatch -= is_before ? slots->step : 0;
    *out = slots->slot_of[place_of(slots, &action)];
    return true;
}

static uint32_t slot_end(const etch_brief_program *p, uint32_t slot)
{
    return slot < p->brief.count ? p->of->slots[slot + 1] : p->of->node_count;
}

static uint32_t name_action(uint32_t own, const etch_action *action, bool before)
{
    return own | (before ? ETCH_WAIT_BEFORE : 0) | (uint32_t)action->kind << ETCH_WAIT_KIND |
           action->chunk << ETCH_WAIT_CHUNK;
}

/* By slot and stream the last node before it. */
static void list_last(const etch_sim *sim, etch_brief_program *p)
{
    const uint32_t streams = etch_sim_streams(sim), slots = p->brief.count;
    uint32_t *now = ETCH_NEW_ARRAY(sim->arena, streams, uint32_t), node = 0;
    p->last_before = ETCH_NEW_ARRAY(sim->arena, ((size_t)slots + 1) * streams, uint32_t);
    p->slot_of = ETCH_NEW_ARRAY(sim->arena, p->of->node_count, uint32_t);
    for (uint32_t s = 0; s < streams; s++)
        now[s] = UINT32_MAX;
    for (uint32_t slot = 0; slot <= slots; slot++) {
        memcpy(p->last_before + (size_t)slot * streams, now, streams * sizeof *now);
        for (; node < slot_end(p, slot); node++) {
            const uint32_t stream = etch_sim_stream(sim, p->of, &p->of->nodes[node]);
            p->slot_of[node] = slot;
            if (stream != UINT32_MAX)
                now[stream] = node;
        }
    }
}

/* The number of a node in its slot, or among what that receives. */
static uint32_t name_node(const etch_brief_program *p, uint32_t node)
{
    const uint32_t first = p->of->slots[p->slot_of[node]];
    uint32_t receives = 0;
    if (p->of->nodes[node].type != ETCH_NODE_RECV)
        return node - first;
    for (uint32_t i = first; i < node; i++)
        receives += p->of->nodes[i].type == ETCH_NODE_RECV;
    return ETCH_WAIT_RECEIVE | receives;
}

etch_wait etch_brief_wait(const etch_sim *sim, const etch_brief_program *p, uint32_t node, uint32_t dep)
{
    const uint32_t slot = p->slot_of[node], other = p->slot_of[dep];
    const uint32_t stream = etch_sim_stream(sim, p->of, &p->of->nodes[dep]);
    const uint32_t streams = etch_sim_streams(sim);
    const etch_sim_slots *slots = &p->brief;
    if (slot == other)
        return (etch_wait){ETCH_WAIT_HERE, 0, dep - p->of->slots[slot]};
    for (uint32_t back = 0; stream != UINT32_MAX && back <= SLOTS_BACK && other + back < slot; back++)
        if (p->last_before[(size_t)(slot - back) * streams + stream] == dep)
            return (etch_wait){ETCH_WAIT_LAST, stream, back};
    for (uint32_t i = slots->first[slot]; slot < slots->count && i < slots->first[slot + 1]; i++) {
        const etch_wait wait = {ETCH_WAIT_SINCE,
                                name_action(i - slots->first[slot], &slots->actions[i], true), stream};
        uint32_t since;
        if (stream != UINT32_MAX && etch_slot_of_wait(slots, slot, &wait, &since) && since < slot &&
            p->last_before[(size_t)(since + 1) * streams + stream] == dep)
            return wait;
    }
    if (slot - other <= SLOTS_BEFORE)
        return (etch_wait){ETCH_WAIT_BACK, slot - other, name_node(p, dep)};
    for (uint32_t i = slots->first[slot]; slot < slots->count && i < slots->first[slot + 1]; i++)
        for (uint32_t k = slots->first[other]; k < slots->first[other + 1]; k++) {
            const uint64_t before = slots->actions[i].microbatch - slots->actions[k].microbatch;
            if (before == 0 || before == slots->step)
                return (etch_wait){ETCH_WAIT_SAME,
                                   name_action(i - slots->first[slot], &slots->actions[k], before != 0),
                                   name_node(p, dep)};
        }
    return (etch_wait){ETCH_WAIT_UNKNOWN, 0, 0};
}

/* ---- contents ------------------------------------------------------------------------------------------ */

static void put_long(etch_arena *arena, words *out, uint64_t number)
{
    ETCH_PUSH(arena, out, (uint32_t)number);
    ETCH_PUSH(arena, out, (uint32_t)(number >> 32));
}

/* What a node is: nodes that are described alike take equally long, and meet the same ranks. */
static void describe_node(const etch_brief_program *p, uint32_t node, etch_arena *arena, words *out)
{
    const etch_node *n = &p->of->nodes[node];
    ETCH_PUSH(arena, out, n->type);
    ETCH_PUSH(arena, out, p->of->tasks ? p->of->tasks[node] : 0);
    if (n->type == ETCH_NODE_COMP) {
        ETCH_PUSH(arena, out, p->prepared->detail[node]);
        return;
    }
    put_long(arena, out, n->bytes);
    if (etch_node_moves(n->type))
        return;
    if (n->type == ETCH_NODE_COLL) {
        ETCH_PUSH(arena, out, n->family);
        ETCH_PUSH(arena, out, n->collective);
        return;
    }
    ETCH_PUSH(arena, out, n->peer);
    ETCH_PUSH(arena, out, etch_brief_action(p, node));
    ETCH_PUSH(arena, out, (n->tag >> 1) % p->brief.chunks);
    ETCH_PUSH(arena, out, n->tag & 1);
}

/* All nodes of a slot, and what they wait for. False: something has no name. */
static bool describe_slot(const etch_sim *sim, const etch_brief_program *p, uint32_t slot, etch_arena *arena,
                          words *out)
{
    bool named = true;
    out->count = 0;
    for (uint32_t i = p->of->slots[slot]; i < slot_end(p, slot); i++) {
        const uint32_t first = p->edges.first[i], end = p->edges.first[i + 1];
        describe_node(p, i, arena, out);
        ETCH_PUSH(arena, out, end - first);
        for (uint32_t k = first; k < end; k++) {
            const etch_wait wait = etch_brief_wait(sim, p, i, p->edges.deps.at[k]);
            named = named && wait.form != ETCH_WAIT_UNKNOWN;
            ETCH_PUSH(arena, out, wait.form);
            ETCH_PUSH(arena, out, wait.where);
            ETCH_PUSH(arena, out, wait.what);
        }
    }
    return named;
}

/* Are classes together in a group of the family? */
static bool meets(const etch_sim *sim, uint32_t family)
{
    for (uint32_t i = 0; i < sim->groups.count; i++)
        if (sim->groups.at[i].family == family && sim->groups.at[i].class_count > 1)
            return true;
    return false;
}

static void add_content(etch_sim *sim, etch_brief_program *p, uint32_t slot)
{
    const uint32_t streams = etch_sim_streams(sim), first = p->of->slots[slot],
                   count = slot_end(p, slot) - first;
    etch_sim_content c = {.slot = slot,
                          .node_count = count,
                          .is_marked = ETCH_NEW_ARRAY(sim->arena, count, bool),
                          .mark_of = ETCH_NEW_ARRAY(sim->arena, count, uint32_t),
                          .last = ETCH_NEW_ARRAY(sim->arena, streams, uint32_t)};
    for (uint32_t s = 0; s < streams; s++)
        c.last[s] = UINT32_MAX;
    for (uint32_t i = 0; i < count; i++) {
        const etch_node *node = &p->of->nodes[first + i];
        const uint32_t stream = etch_sim_stream(sim, p->of, node);
        if (stream != UINT32_MAX)
            c.last[stream] = i;
        c.is_marked[i] = node->type == ETCH_NODE_SEND || node->type == ETCH_NODE_RECV ||
                         (node->type == ETCH_NODE_COLL && meets(sim, node->family));
    }
    for (uint32_t s = 0; s < streams; s++)
        if (c.last[s] != UINT32_MAX)
            c.is_marked[c.last[s]] = true;
    ETCH_PUSH(sim->arena, &p->contents, c);
}

/* What is read by number in another slot is marked there. */
static void mark_reads(const etch_sim *sim, etch_brief_program *p, const etch_sim_content *c)
{
    const uint32_t first = p->of->slots[c->slot];
    for (uint32_t i = first; i < first + c->node_count; i++)
        for (uint32_t k = p->edges.first[i]; k < p->edges.first[i + 1]; k++) {
            const etch_wait wait = etch_brief_wait(sim, p, i, p->edges.deps.at[k]);
            if ((wait.form == ETCH_WAIT_SAME || wait.form == ETCH_WAIT_BACK) && wait.what < ETCH_WAIT_RECEIVE)
                p->contents.at[p->brief.content[p->slot_of[p->edges.deps.at[k]]]].is_marked[wait.what] = true;
        }
}

static void number_marks(etch_brief_program *p)
{
    for (uint32_t i = 0; i < p->contents.count; i++) {
        etch_sim_content *c = &p->contents.at[i];
        for (uint32_t k = 0; k < c->node_count; k++)
            c->mark_of[k] = c->is_marked[k] ? c->mark_count++ : UINT32_MAX;
    }
}

/* ---- the whole ----------------------------------------------------------------------------------------- */

/* What the slots of the brief step do, by their places. False: slots at the same place do not do the same. */
static bool read_brief(etch_sim *sim, etch_brief_program *p)
{
    etch_arena *arena = etch_arena_new(etch_arena_mem(sim->arena));
    etch_sim_words contents = {.arena = arena};
    words text = {0};
    bool fine = true;
    for (uint32_t slot = 0; fine && slot <= p->brief.count; slot++) {
        fine = describe_slot(sim, p, slot, arena, &text);
        const uint32_t content = etch_sim_number(&contents, text.at, text.count);
        if (content == p->contents.count)
            add_content(sim, p, slot);
        p->brief.content[slot] = content;
        describe_place(&p->brief, slot, arena, &text);
        const uint32_t number = etch_sim_number(&p->known, text.at, text.count);
        if (number == p->places.count)
            ETCH_PUSH(sim->results, &p->places, (etch_sim_seen){.content = content});
        fine = fine && p->places.at[number].content == content;
        p->places.at[number].seen++;
    }
    etch_arena_free(arena);
    return fine;
}

/* A place may not be known, or repeat what has been seen only once. */
bool etch_brief_whole(etch_arena *arena, etch_brief_program *p, const etch_pipe *pipe, uint32_t stage,
                      etch_sim_slots *out)
{
    etch_arena *scratch = etch_arena_new(etch_arena_mem(arena));
    uint32_t *wanted = ETCH_NEW_ARRAY(scratch, p->places.count, uint32_t);
    words text = {0};
    bool fine = true;
    *out = list_slots(arena, pipe, stage);
    for (uint32_t slot = 0; fine && slot <= out->count; slot++) {
        describe_place(out, slot, scratch, &text);
        const uint32_t number = etch_sim_number(&p->known, text.at, text.count);
        fine = number < p->places.count;
        if (!fine)
            break;
        wanted[number]++;
        out->content[slot] = p->places.at[number].content;
    }
    for (uint32_t i = 0; i < p->places.count; i++)
        fine = fine && (wanted[i] <= p->places.at[i].seen || p->places.at[i].seen >= 2);
    etch_arena_free(scratch);
    return fine;
}

bool etch_brief_read(etch_sim *sim, const etch_sim_program *prepared, uint32_t stage, etch_brief_program *out)
{
    const etch_job *job = sim->job;
    etch_pipe brief = *job->pipe;
    brief.microbatches = job->microbatches;
    *out = (etch_brief_program){.of = prepared->of,
                                .prepared = prepared,
                                .edges = etch_sim_fewest_edges(sim, prepared->of),
                                .brief = list_slots(sim->arena, &brief, stage),
                                .known = {.arena = sim->results}};
    list_last(sim, out);
    if (out->brief.count != out->of->slot_count || !read_brief(sim, out) ||
        !etch_brief_whole(sim->arena, out, job->pipe, stage, &out->whole))
        return false;
    for (uint32_t i = 0; i < out->contents.count; i++)
        mark_reads(sim, out, &out->contents.at[i]);
    number_marks(out);
    return true;
}
