/* The memory of a run: what a name stands for, and until when it is read. */
#include "graph/cost/live_run_int.h"

uint32_t etch_live_turns_at(const etch_live_run *r, const etch_region *region, uint32_t *size)
{
    uint32_t index = 0;
    *size = 1;
    for (const etch_region *body = region; body && body->loop; body = body->parent) {
        const etch_live_turns *turns = etch_live_turns_of(r, body->loop);
        index = index * turns->at.count + turns->now;
        *size *= turns->at.count;
    }
    return index;
}

/* By the turns of the loops around a name; NULL: it is an input or a weight. */
static uint32_t *slot_of(const etch_live_run *r, uint32_t name)
{
    const etch_region *region = r->program->names[name].region;
    uint32_t size;
    if (!region)
        return NULL;
    const uint32_t index = etch_live_turns_at(r, region, &size);
    if (!r->memory_of[name])
        r->memory_of[name] = ETCH_NEW_ARRAY(r->arena, size, uint32_t);
    return &r->memory_of[name][index];
}

uint32_t etch_live_memory_of(const etch_live_run *r, uint32_t name)
{
    const uint32_t *slot = name == ETCH_NO_NAME ? NULL : slot_of(r, name);
    return slot ? *slot : 0;
}

uint32_t etch_live_memory_in(const etch_live_run *r, uint32_t name, uint32_t turn)
{
    return r->memory_of[name] ? r->memory_of[name][turn] : 0;
}

void etch_live_put(const etch_live_run *r, uint32_t name, uint32_t memory)
{
    if (name != ETCH_NO_NAME)
        *slot_of(r, name) = memory;
}

etch_live_event *etch_live_event_now(const etch_live_run *r)
{
    return &r->events.at[r->events.count - 1];
}

void etch_live_begin_event(etch_live_run *r, uint32_t chunk)
{
    etch_sym_charge(r->sym, ETCH_OPERATIONS_OF_STEP);
    ETCH_PUSH(r->arena, &r->events,
              (etch_live_event){.pass = r->pass, .chunk = chunk, .loop = r->turning, .turn = r->turn});
}

static etch_live_level *levels_of(const etch_live_run *r)
{
    etch_live_level *levels = ETCH_NEW_ARRAY(r->arena, r->spans.count, etch_live_level);
    for (uint32_t i = 0; i < r->spans.count; i++)
        levels[i] = (etch_live_level){.root = r->spans.at[i].root,
                                      .turn = r->turns[r->spans.at[i].root->id]->now,
                                      .begin = r->spans.at[i].begin};
    return levels;
}

etch_live_memory *etch_live_make(etch_live_run *r, uint32_t name)
{
    const etch_live_memory made = {.name = name,
                                   .pass = r->pass,
                                   .saved_from = ETCH_NO_CHUNK,
                                   .made = r->events.count - 1,
                                   .is_weight = r->program->names[name].tensor->kind == ETCH_WEIGHT,
                                   .lasts = ETCH_KEEP_MICROBATCH,
                                   .each = etch_int(r->sym, 1),
                                   .instances = etch_int(r->sym, 1),
                                   .copies = etch_int(r->sym, 1),
                                   .levels = levels_of(r),
                                   .level_count = r->spans.count};
    ETCH_PUSH(r->arena, &etch_live_event_now(r)->makes, r->memories.count);
    etch_live_put(r, name, r->memories.count);
    ETCH_PUSH(r->arena, &r->memories, made);
    return &r->memories.at[r->memories.count - 1];
}

static bool is_open(const etch_live_run *r, const etch_region *body)
{
    for (uint32_t i = 0; i < r->open.count; i++)
        if (r->open.at[i] == body)
            return true;
    return false;
}

static const etch_live_turn *turn_of(const etch_live_run *r, const etch_region *body)
{
    const etch_live_turns *turns = etch_live_turns_of(r, body->loop);
    return &turns->at.at[turns->now];
}

etch_expr etch_live_copies_of(const etch_live_run *r, const etch_region *region, bool outer)
{
    etch_expr copies = etch_int(r->sym, 1);
    for (; region->loop && (outer || region->parent->loop); region = region->parent)
        copies = etch_mul(r->sym, copies, turn_of(r, region)->copies);
    return copies;
}

/* Is the memory made in iterations of the loop? What enters it may be known by names in there as well. */
static bool is_made_in(const etch_live_run *r, const etch_live_memory *m, const etch_loop *loop)
{
    return etch_region_is_in_loop(r->program->names[m->name].region, loop);
}

bool etch_live_is_from_forward(const etch_live_run *r, const etch_live_memory *m)
{
    return m->pass == ETCH_PASS_FORWARD && r->pass != ETCH_PASS_FORWARD;
}

/* Has the first half of backward made it, for the second? */
static bool waits(const etch_live_run *r, const etch_live_memory *m)
{
    return m->pass == ETCH_PASS_BACKWARD && r->pass == ETCH_PASS_WEIGHTS;
}

void etch_live_read_memory(etch_live_run *r, uint32_t id)
{
    const etch_live_memory *m = &r->memories.at[id];
    const bool is_together = m->is_gathered && !waits(r, m);
    const uint32_t at = r->reads_at == ETCH_NO_EVENT ? r->events.count - 1 : r->reads_at;
    const uint32_t first = is_together ? m->first : id, count = is_together ? m->together : 1;
    for (uint32_t i = first; i < first + count; i++) {
        ETCH_PUSH(r->arena, &r->events.at[at].reads, i);
        if (m->is_gathered && etch_live_is_from_forward(r, m))
            r->memories.at[i].copies = r->memories.at[i].lasting;
    }
}

/* The memory that other iterations have made, which a turn of the loop stands for. */
static uint32_t others_of(etch_live_run *r, uint32_t id, const etch_loop *root, etch_expr copies)
{
    const etch_live_memory *m = &r->memories.at[id];
    uint32_t i = 0;
    while (m->levels[i].root != root)
        i++;
    etch_live_level *level = &m->levels[i];
    if (level->others)
        return level->others;
    etch_live_memory others = *m;
    others.copies = copies;
    level->others = r->memories.count;
    ETCH_PUSH(r->arena, &r->events.at[level->begin].makes, level->others);
    ETCH_PUSH(r->arena, &r->memories, others);
    return level->others;
}

/* Where the loop is undone, or repeated, each iteration reads its own: those of others are there to the end
 * of the turns that stand for them. */
static void read_others(etch_live_run *r, uint32_t others, const etch_loop *root)
{
    for (uint32_t i = r->spans.count; i-- > 0;)
        if (r->spans.at[i].root == root) {
            ETCH_PUSH(r->arena, &r->spans.at[i].reads, others);
            return;
        }
    ETCH_PUSH(r->arena, &etch_live_event_now(r)->reads, others);
}

/* The memory that the iterations of a turn carry where one enters them by this name: it is what enters the
 * first turn after those of the span. 0: they make none. */
static uint32_t carried_memory(const etch_live_run *r, uint32_t name, const etch_loop *root)
{
    const etch_live_slot *slot = &r->enters[etch_live_under(r->program, name)];
    etch_live_turns *turns = r->turns[root->id];
    const uint32_t now = turns->now;
    if (!slot->loop || etch_live_root_of(slot->loop->loop) != root)
        return 0;
    uint32_t after = now;
    while (after < turns->at.count && turns->at.at[after].span == turns->at.at[now].span)
        after++;
    if (after == turns->at.count)
        return 0;
    turns->now = after;
    const etch_live_region *body = slot->loop->bodies.at[turns->at.at[after].class];
    const uint32_t memory = etch_live_memory_of(r, body->carries.at[slot->carry].in);
    turns->now = now;
    return memory;
}

/* Has a turn of the span at work made the memory? */
static bool is_of_span(const etch_live_run *r, uint32_t id, const etch_loop *root)
{
    const etch_live_turns *turns = r->turns[root->id];
    const etch_live_memory *m = &r->memories.at[id];
    for (uint32_t i = 0; i < m->level_count; i++)
        if (m->levels[i].root == root)
            return turns->at.at[m->levels[i].turn].span == turns->at.at[turns->now].span;
    return false;
}

/* Where a name is known: of a view that is made where it is read, where that is of which it is one. */
static const etch_region *home_of(const etch_live_run *r, uint32_t name)
{
    const etch_live_name *names = r->program->names;
    while (names[name].shows != name && is_open(r, names[name].region))
        name = names[name].shows;
    return names[name].region;
}

/* Reading a name from outside of the loops that make the memory. Of what is saved it is known how much there
 * is: not when. */
static void count_copies(etch_live_run *r, uint32_t name, uint32_t id)
{
    const etch_expr one = etch_int(r->sym, 1);
    const etch_live_memory *m = &r->memories.at[id];
    const bool is_apart = !m->part_of && !m->is_gathered && !etch_live_is_from_forward(r, m) && !waits(r, m);
    const etch_region *body = home_of(r, name);
    etch_expr copies = one;
    for (; body && body->loop && !is_open(r, body); body = body->parent) {
        const etch_expr turns = turn_of(r, body)->copies;
        if (turns == one || !is_made_in(r, &r->memories.at[id], body->loop))
            continue;
        const etch_loop *root = etch_live_root_of(body->loop);
        const etch_expr more = etch_mul(r->sym, etch_sub(r->sym, turns, one), copies);
        /* what enters the first of these iterations may be of an earlier one */
        const uint32_t own = is_of_span(r, id, root) ? id : carried_memory(r, name, root);
        if (is_apart && is_of_span(r, own, root))
            read_others(r, others_of(r, own, root, more), root);
        copies = etch_mul(r->sym, copies, turns);
    }
    if (copies != one && !is_apart && !r->memories.at[id].is_gathered)
        r->memories.at[id].copies = copies;
}

void etch_live_read_name(etch_live_run *r, uint32_t name)
{
    const uint32_t id = etch_live_memory_of(r, name);
    if (id == 0)
        return;
    etch_live_memory *m = &r->memories.at[id];
    etch_live_read_memory(r, id);
    for (uint32_t all = id; all; all = r->memories.at[all].part_of)
        count_copies(r, name, all);
    m = &r->memories.at[id];
    const uint32_t chunk = etch_live_event_now(r)->chunk;
    if (!etch_live_is_from_forward(r, m) || m->is_weight)
        return;
    m->saved_from = chunk < m->saved_from ? chunk : m->saved_from;
    m->saved_in |= etch_live_chunk_bit(chunk);
}
