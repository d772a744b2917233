/* The actions of one microbatch on a stage, and the intervals of memory in them. */
#include "graph/cost/live_actions.h"

/* ---- one action ---------------------------------------------------------------------------------------- */

/* What a part is memory of in the chunk at work: of itself, where a message has brought it. */
static uint32_t memory_here(const etch_live_actions *w, uint32_t memory)
{
    while (w->run->memories.at[memory].part_of && !(w->brought[memory] & etch_live_chunk_bit(w->chunk)))
        memory = w->run->memories.at[memory].part_of;
    return memory;
}

/* Is it there in this action? */
static bool is_there(const etch_live_actions *w, uint32_t memory)
{
    return w->last[memory] && w->intervals.at[w->last[memory] - 1].death >= w->begin;
}

/* The interval of this action, which the memory begins with it unless something has made it since. */
static etch_live_interval *interval_of(etch_live_actions *w, uint32_t memory, uint32_t birth)
{
    const etch_live_memory *m = &w->run->memories.at[memory];
    const bool lasts = m->is_weight && m->lasts != ETCH_KEEP_GROUP;
    etch_live_interval *known = w->last[memory] ? &w->intervals.at[w->last[memory] - 1] : NULL;
    if (known && (known->death >= w->begin || lasts))
        return known;
    if (known && w->pass == ETCH_PASS_WEIGHTS && known->pass == ETCH_PASS_BACKWARD &&
        known->chunk == w->chunk) {
        known->waits = true;
        return known;
    }
    if (m->is_gathered && w->moment_of[m->since] && w->moment_of[m->since] < birth)
        birth = w->moment_of[m->since];
    ETCH_PUSH(w->arena, &w->intervals,
              (etch_live_interval){.memory = memory,
                                   .birth = birth,
                                   .death = w->begin,
                                   .chunk = w->chunk,
                                   .name = m->name,
                                   .pass = w->pass});
    w->last[memory] = w->intervals.count;
    return &w->intervals.at[w->intervals.count - 1];
}

/* The first turn of a chunk in a loop, or the one after its last. */
static uint32_t turn_at(const etch_live_turns *turns, uint32_t chunk, bool after)
{
    uint32_t at = 0;
    for (uint32_t t = 0; t < turns->at.count; t++)
        if (turns->at.at[t].chunk == chunk) {
            at = t + after;
            if (!after)
                return at;
        }
    return at;
}

/* The memory of a value of a cut: what a loop carries is what enters the iteration after it. */
static uint32_t cut_memory(const etch_live_actions *w, const etch_value *value, bool after, bool is_backward)
{
    const etch_live_program *p = w->run->program;
    const etch_live_region *region = is_backward ? p->backward : p->forward;
    for (uint32_t i = 0; i < region->items.count; i++) {
        const etch_live_loop *loop = region->items.at[i].loop;
        for (uint32_t k = 0; loop && k < loop->bodies.at[0]->carries.count; k++) {
            if (loop->bodies.at[0]->carries.at[k].in != value->id)
                continue;
            const etch_live_turns *turns = etch_live_turns_of(w->run, loop->loop);
            const uint32_t turn = turn_at(turns, w->chunk, after) - is_backward;
            if (turn >= turns->at.count)
                return 0;
            const etch_live_region *body = loop->bodies.at[turns->at.at[turn].class];
            return etch_live_memory_in(w->run, body->carries.at[k].in, turn);
        }
    }
    return etch_live_memory_of(w->run, value->id);
}

/* A value of a message: as which name, and what memory that is where it is sent and received. */
typedef struct sent_value {
    uint32_t name, memory;
} sent_value;

typedef ETCH_VEC(sent_value) message;

/* What is received or sent at an end of the chunk: after it, or before. Zeros are not sent, but where they
 * are read they are memory. */
static message message_at(const etch_live_actions *w, bool after, bool is_backward, bool is_sent)
{
    etch_expr iteration = NULL;
    const etch_cut *cut = w->view ? etch_live_cut_of(w->view, w->chunk, after, &iteration) : NULL;
    const etch_crossings none = {0}, *list = !cut ? &none : is_backward ? &cut->backward : &cut->forward;
    message all = {0};
    for (uint32_t i = 0; i < list->count; i++) {
        const uint32_t memory = cut_memory(w, list->at[i].value, after, is_backward);
        etch_crossing read = list->at[i];
        read.is_made = read.is_made || !is_sent;
        if (memory &&
            !etch_is_zero(etch_crosses(w->sym, w->view->stages, cut, &read, is_backward, iteration)))
            ETCH_PUSH(w->arena, &all, (sent_value){read.value->id, memory});
    }
    return all;
}

/* A message leaves when the last of its values is there. */
static void send(etch_live_actions *w, bool is_backward)
{
    const message sent = message_at(w, !is_backward, is_backward, true);
    uint32_t complete = w->begin;
    for (uint32_t i = 0; i < sent.count; i++) {
        const uint32_t birth = interval_of(w, memory_here(w, sent.at[i].memory), w->begin)->birth;
        complete = birth > complete ? birth : complete;
    }
    for (uint32_t i = 0; i < sent.count; i++) {
        etch_live_interval *there = interval_of(w, memory_here(w, sent.at[i].memory), w->begin);
        there->death = there->death < complete ? complete : there->death;
    }
}

/* What nobody sends does not reach another stage. Where backward reads a part that is no memory of its own,
 * the whole is kept. */
static void read_memory(etch_live_actions *w, uint32_t read, const etch_live_event *event)
{
    const uint32_t memory = memory_here(w, read);
    const bool is_kept =
        event->pass != ETCH_PASS_FORWARD && w->run->memories.at[read].saved_from != ETCH_NO_CHUNK;
    if (is_kept && w->chunk < w->saved_from[memory])
        w->saved_from[memory] = w->chunk;
    w->saved_in[memory] |= is_kept ? etch_live_chunk_bit(w->chunk) : 0;
    if (!event->carries || is_there(w, memory))
        interval_of(w, memory, w->begin)->death = w->now;
}

static void receive(etch_live_actions *w, bool is_backward)
{
    const message received = message_at(w, is_backward, is_backward, false);
    for (uint32_t i = 0; i < received.count; i++) {
        w->brought[received.at[i].memory] |= etch_live_chunk_bit(w->chunk);
        etch_live_interval *there = interval_of(w, received.at[i].memory, w->begin);
        there->name = received.at[i].name;
        there->is_received = true;
    }
}

/* The second half of backward has no messages. */
static void run_action(etch_live_actions *w, uint32_t chunk, etch_live_pass pass)
{
    w->begin = ++w->now;
    w->chunk = chunk;
    w->pass = pass;
    if (pass != ETCH_PASS_WEIGHTS)
        receive(w, pass == ETCH_PASS_BACKWARD);
    for (uint32_t i = 0; i < w->run->events.count; i++) {
        const etch_live_event *event = &w->run->events.at[i];
        if (event->chunk != chunk || event->pass != pass)
            continue;
        w->moment_of[i] = ++w->now;
        for (uint32_t k = 0; k < event->makes.count; k++)
            interval_of(w, event->makes.at[k], w->now)->death = w->now;
        for (uint32_t k = 0; k < event->reads.count; k++)
            read_memory(w, event->reads.at[k], event);
    }
    if (pass != ETCH_PASS_WEIGHTS)
        send(w, pass == ETCH_PASS_BACKWARD);
}

/* On a stage microbatches follow each other without a pause: copies that last for one are always there, and
 * what forward leaves of one for backward. */
static bool is_always(const etch_live_actions *w, const etch_live_memory *m)
{
    const bool is_left = m->is_weight && w->run->program->names[m->name].value->sharded_flat;
    if (m->is_gathered)
        return m->lasts == ETCH_KEEP_STEP || (m->lasts == ETCH_KEEP_MICROBATCH && w->view);
    return is_left && m->pass == ETCH_PASS_FORWARD && w->view;
}

static void run_actions(etch_live_actions *w)
{
    uint32_t chunks = 1;
    for (uint32_t s = 0; w->view && s < w->view->stages->segments.count; s++)
        for (uint32_t i = 0; i < w->view->ranges[s].count; i++)
            if (w->view->ranges[s].at[i].chunk >= chunks)
                chunks = w->view->ranges[s].at[i].chunk + 1;
    w->chunks = chunks;
    for (int back = 0; back < 2; back++)
        w->moments[back] = ETCH_NEW_ARRAY(w->arena, chunks, etch_live_moments);
    for (uint32_t c = 0; c < chunks; c++) {
        w->moments[0][c].begin = w->now + 1;
        run_action(w, c, ETCH_PASS_FORWARD);
        w->moments[0][c].end = w->now + 1;
    }
    for (uint32_t c = chunks; w->run->program->backward && c-- > 0;) {
        w->moments[1][c].begin = w->now + 1;
        run_action(w, c, ETCH_PASS_BACKWARD);
        if (w->run->program->weights)
            run_action(w, c, ETCH_PASS_WEIGHTS);
        w->moments[1][c].end = w->now + 1;
    }
    for (uint32_t i = 0; i < w->intervals.count; i++)
        if (is_always(w, &w->run->memories.at[w->intervals.at[i].memory])) {
            w->intervals.at[i].birth = 0;
            w->intervals.at[i].death = w->now;
        }
}

/* ---- sizes --------------------------------------------------------------------------------------------- */

static void find_sizes(etch_live_actions *w)
{
    const etch_expr one = etch_int(w->sym, 1);
    for (uint32_t i = 0; i < w->intervals.count; i++) {
        etch_live_interval *there = &w->intervals.at[i];
        const etch_live_memory *m = &w->run->memories.at[there->memory];
        etch_expr bytes = etch_live_bytes(w->run->program, there->name);
        if (m->each != one || m->copies != one)
            bytes = etch_mul(w->sym, etch_mul(w->sym, m->each, m->copies), bytes);
        for (there->size = 0; there->size < w->sizes.count && w->sizes.at[there->size] != bytes;)
            there->size++;
        if (there->size == w->sizes.count)
            ETCH_PUSH(w->arena, &w->sizes, bytes);
    }
}

/* The formula of a maximum takes long; that of numbers is the largest. */
static void put_values(etch_live_actions *w, const etch_valuation *values)
{
    etch_expr *numbers = ETCH_NEW_ARRAY(w->arena, w->sizes.count, etch_expr);
    for (uint32_t i = 0; i < w->sizes.count; i++) {
        numbers[i] = values->put(values->data, w->sizes.at[i]);
        if (!numbers[i] || !etch_is_constant(numbers[i]))
            return;
    }
    w->sizes.at = numbers;
    w->has_numbers = true;
}

/* ---- the entry points ---------------------------------------------------------------------------------- */

bool etch_live_is_always(const etch_live_actions *w, const etch_live_interval *there)
{
    return there->birth == 0 && there->death == w->now;
}

bool etch_live_is_saved(const etch_live_actions *w, const etch_live_interval *there)
{
    bool is_saved = there->waits || w->saved_from[there->memory] <= there->chunk;
    if (w->is_apart)
        return there->waits || w->saved_in[there->memory] & etch_live_chunk_bit(there->chunk);
    for (uint32_t m = there->memory; (m = w->run->memories.at[m].part_of) != 0;)
        is_saved = is_saved || w->saved_from[m] < there->chunk;
    return is_saved;
}

etch_live_actions *etch_live_actions_of(etch_arena *arena, const etch_placed *placed,
                                        const etch_stage_view *stage, const etch_valuation *values)
{
    etch_live_program *p = etch_live_of_passes(arena, placed, stage);
    const etch_live_run *run = etch_live_run_of(p, values);
    etch_live_actions *w = ETCH_NEW(arena, etch_live_actions);
    *w = (etch_live_actions){.run = run,
                             .view = p->view,
                             .sym = p->sym,
                             .arena = arena,
                             .last = ETCH_NEW_ARRAY(arena, run->memories.count, uint32_t),
                             .is_apart = stage && etch_stage_copies(stage->stages) > 1,
                             .saved_from = ETCH_NEW_ARRAY(arena, run->memories.count, uint32_t),
                             .saved_in = ETCH_NEW_ARRAY(arena, run->memories.count, uint64_t),
                             .brought = ETCH_NEW_ARRAY(arena, run->memories.count, uint64_t),
                             .moment_of = ETCH_NEW_ARRAY(arena, run->events.count + 1, uint32_t)};
    for (uint32_t i = 0; i < run->memories.count; i++) {
        w->saved_from[i] = run->memories.at[i].saved_from;
        w->saved_in[i] = run->memories.at[i].saved_in;
    }
    run_actions(w);
    find_sizes(w);
    if (values)
        put_values(w, values);
    return w;
}
