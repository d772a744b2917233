/* The workspace: memory beside weights, their gradients and states, and saved values, while the passes of a
 * microbatch run: the most at a time.
 *
 * requires: a placed graph. provides: the size of the largest workspace of one rank, as a formula.
 *
 * A fold over the run of the program: what is made is there from the step that makes it to the last that
 * reads it. What is saved for backward on the stage is counted with the activations, and not here. A stage
 * runs a chunk of a pass at a time, an action: what it receives is there from the begin of the action on,
 * what it sends until the message is complete. What it keeps for no backward pass is gone when the action
 * ends, and comes again with the message that a later one begins with. */
#include "graph/cost/live_run.h"

#include <string.h>

/* When memory is there, the last moment included. */
typedef struct interval {
    uint32_t memory, birth, death, chunk;
    /* whose bytes it has: those of a message may be less than were made */
    uint32_t name;
    /* which of the sizes that is */
    uint32_t size;
} interval;

typedef struct workspace {
    const etch_live_run *run;
    const etch_stage_view *view;
    etch_sym *sym;
    etch_arena *arena;
    ETCH_VEC(interval) intervals;
    /* by memory: its last interval; by event: its moment. From 1; 0: none */
    uint32_t *last, *moment_of;
    /* by memory: the first chunk whose backward pass reads it, or a part that is no memory of its own;
     * and, of a part, by chunk whether a message brings it there: bits */
    uint32_t *saved_from;
    uint64_t *brought;
    /* of the action in work: its first moment, the last one until now, and its chunk */
    uint32_t begin, now, chunk;
    /* bytes of intervals, each once */
    ETCH_VEC(etch_expr) sizes;
} workspace;

/* ---- actions ------------------------------------------------------------------------------------------- */

/* The last one stands for all chunks that have no bit of their own. */
static uint64_t chunk_bit(uint32_t chunk)
{
    return (uint64_t)1 << (chunk < 63 ? chunk : 63);
}

/* What a part is memory of in the chunk at work: of itself, where a message has brought it. */
static uint32_t memory_here(const workspace *w, uint32_t memory)
{
    while (w->run->memories.at[memory].part_of && !(w->brought[memory] & chunk_bit(w->chunk)))
        memory = w->run->memories.at[memory].part_of;
    return memory;
}

/* Is it there in this action? */
static bool is_there(const workspace *w, uint32_t memory)
{
    return w->last[memory] && w->intervals.at[w->last[memory] - 1].death >= w->begin;
}

/* The interval of this action, which the memory begins with it unless something has made it since. */
static interval *interval_of(workspace *w, uint32_t memory, uint32_t birth)
{
    const etch_live_memory *m = &w->run->memories.at[memory];
    const bool lasts = m->is_weight && m->lasts != ETCH_KEEP_GROUP;
    interval *known = w->last[memory] ? &w->intervals.at[w->last[memory] - 1] : NULL;
    if (known && (known->death >= w->begin || lasts))
        return known;
    if (m->is_gathered && w->moment_of[m->since] && w->moment_of[m->since] < birth)
        birth = w->moment_of[m->since];
    ETCH_PUSH(w->arena, &w->intervals, (interval){memory, birth, w->begin, w->chunk, m->name, 0});
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
static uint32_t cut_memory(const workspace *w, const etch_value *value, bool after, bool is_backward)
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

/* The cut before a chunk of the stage, or after it, and where; NULL: the chain ends there. */
static const etch_cut *cut_of(const workspace *w, uint32_t chunk, bool after, etch_expr *iteration)
{
    const etch_stages *stages = w->view->stages;
    const etch_layer_interval *end = NULL;
    uint32_t segment = 0;
    bool inside;
    for (uint32_t s = 0; s < stages->segments.count; s++)
        for (uint32_t i = 0; i < w->view->ranges[s].count; i++)
            if (w->view->ranges[s].at[i].chunk == chunk && (after || !end)) {
                end = &w->view->ranges[s].at[i];
                segment = s;
            }
    if (!end)
        return NULL;
    *iteration = after ? end->high : end->low;
    inside = after ? end->high != stages->segments.at[segment].count : !etch_is_zero(end->low);
    for (uint32_t i = 0; i < stages->cuts.count; i++)
        if (stages->cuts.at[i].segment == segment + (after && !inside) && stages->cuts.at[i].inside == inside)
            return &stages->cuts.at[i];
    return NULL;
}

/* A value of a message: as which name, and what memory that is where it is sent and received. */
typedef struct sent_value {
    uint32_t name, memory;
} sent_value;

typedef ETCH_VEC(sent_value) message;

/* What is received or sent at an end of the chunk: after it, or before. Zeros are not sent, but where they
 * are read they are memory. */
static message message_at(const workspace *w, bool after, bool is_backward, bool is_sent)
{
    etch_expr iteration = NULL;
    const etch_cut *cut = w->view ? cut_of(w, w->chunk, after, &iteration) : NULL;
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
static void send(workspace *w, bool is_backward)
{
    const message sent = message_at(w, !is_backward, is_backward, true);
    uint32_t complete = w->begin;
    for (uint32_t i = 0; i < sent.count; i++) {
        const uint32_t birth = interval_of(w, memory_here(w, sent.at[i].memory), w->begin)->birth;
        complete = birth > complete ? birth : complete;
    }
    for (uint32_t i = 0; i < sent.count; i++) {
        interval *there = interval_of(w, memory_here(w, sent.at[i].memory), w->begin);
        there->death = there->death < complete ? complete : there->death;
    }
}

/* What nobody sends is not handed on. Where backward reads a part that is no memory of its own, the whole is
 * kept. */
static void read_memory(workspace *w, uint32_t read, const etch_live_event *event)
{
    const uint32_t memory = memory_here(w, read);
    const bool is_kept = event->is_backward && w->run->memories.at[read].saved_from != ETCH_NO_CHUNK;
    if (is_kept && w->chunk < w->saved_from[memory])
        w->saved_from[memory] = w->chunk;
    if (!event->hands_on || is_there(w, memory))
        interval_of(w, memory, w->begin)->death = w->now;
}

static void run_action(workspace *w, uint32_t chunk, bool is_backward)
{
    w->begin = ++w->now;
    w->chunk = chunk;
    const message received = message_at(w, is_backward, is_backward, false);
    for (uint32_t i = 0; i < received.count; i++) {
        w->brought[received.at[i].memory] |= chunk_bit(chunk);
        interval_of(w, received.at[i].memory, w->begin)->name = received.at[i].name;
    }
    for (uint32_t i = 0; i < w->run->events.count; i++) {
        const etch_live_event *event = &w->run->events.at[i];
        if (event->chunk != chunk || event->is_backward != is_backward)
            continue;
        w->moment_of[i] = ++w->now;
        for (uint32_t k = 0; k < event->makes.count; k++)
            interval_of(w, event->makes.at[k], w->now)->death = w->now;
        for (uint32_t k = 0; k < event->reads.count; k++)
            read_memory(w, event->reads.at[k], event);
    }
    send(w, is_backward);
}

/* On a stage microbatches follow each other without a pause: copies that last for one are always there, and
 * what forward leaves of one for backward. */
static bool is_always(const workspace *w, const etch_live_memory *m)
{
    const bool is_left = m->is_weight && w->run->program->names[m->name].value->sharded_flat;
    if (m->is_gathered)
        return m->lasts == ETCH_KEEP_STEP || (m->lasts == ETCH_KEEP_MICROBATCH && w->view);
    return is_left && m->is_forward && w->view;
}

static void run_actions(workspace *w)
{
    uint32_t chunks = 1;
    for (uint32_t s = 0; w->view && s < w->view->stages->segments.count; s++)
        for (uint32_t i = 0; i < w->view->ranges[s].count; i++)
            if (w->view->ranges[s].at[i].chunk >= chunks)
                chunks = w->view->ranges[s].at[i].chunk + 1;
    for (uint32_t c = 0; c < chunks; c++)
        run_action(w, c, false);
    for (uint32_t c = chunks; w->run->program->backward && c-- > 0;)
        run_action(w, c, true);
    for (uint32_t i = 0; i < w->intervals.count; i++)
        if (is_always(w, &w->run->memories.at[w->intervals.at[i].memory])) {
            w->intervals.at[i].birth = 0;
            w->intervals.at[i].death = w->now;
        }
}

/* ---- the most at a time -------------------------------------------------------------------------------- */

static void find_sizes(workspace *w)
{
    const etch_expr one = etch_int(w->sym, 1);
    for (uint32_t i = 0; i < w->intervals.count; i++) {
        interval *there = &w->intervals.at[i];
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
static void put_values(workspace *w, const etch_valuation *values)
{
    etch_expr *numbers = ETCH_NEW_ARRAY(w->arena, w->sizes.count, etch_expr);
    for (uint32_t i = 0; i < w->sizes.count; i++) {
        numbers[i] = values->put(values->data, w->sizes.at[i]);
        if (!numbers[i] || !etch_is_constant(numbers[i]))
            return;
    }
    w->sizes.at = numbers;
}

/* How many of each size are there at a moment. */
typedef ETCH_VEC(const int32_t *) moments;

static bool is_covered(const int32_t *a, const int32_t *b, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (a[i] > b[i])
            return false;
    return true;
}

/* Adds a moment unless there are as many of each size at another; those of which that is so now leave. */
static void add_moment(const workspace *w, moments *most, const int32_t *counts)
{
    const uint32_t sizes = w->sizes.count;
    uint32_t left = 0;
    for (uint32_t i = 0; i < most->count; i++)
        if (is_covered(counts, most->at[i], sizes))
            return;
    for (uint32_t i = 0; i < most->count; i++)
        if (!is_covered(most->at[i], counts, sizes))
            most->at[left++] = most->at[i];
    most->count = left;
    int32_t *copy = ETCH_NEW_ARRAY(w->arena, sizes, int32_t);
    memcpy(copy, counts, sizes * sizeof *copy);
    ETCH_PUSH(w->arena, most, copy);
}

typedef ETCH_VEC(uint32_t) sizes_at;

/* Does it count with the activations, or does an earlier chunk keep what it is a part of? */
static bool is_saved(const workspace *w, const interval *there)
{
    bool is_saved = w->saved_from[there->memory] <= there->chunk;
    for (uint32_t m = there->memory; (m = w->run->memories.at[m].part_of) != 0;)
        is_saved = is_saved || w->saved_from[m] < there->chunk;
    return is_saved;
}

static void find_moments(const workspace *w, moments *most)
{
    sizes_at *born = ETCH_NEW_ARRAY(w->arena, w->now + 1, sizes_at);
    sizes_at *gone = ETCH_NEW_ARRAY(w->arena, w->now + 1, sizes_at);
    int32_t *counts = ETCH_NEW_ARRAY(w->arena, w->sizes.count, int32_t);
    bool grows = false;
    for (uint32_t i = 0; i < w->intervals.count; i++) {
        const interval *there = &w->intervals.at[i];
        if (is_saved(w, there))
            continue;
        ETCH_PUSH(w->arena, &born[there->birth], there->size);
        ETCH_PUSH(w->arena, &gone[there->death], there->size);
    }
    for (uint32_t t = 0; t <= w->now; t++) {
        for (uint32_t i = 0; i < born[t].count; i++)
            counts[born[t].at[i]]++;
        grows = grows || born[t].count > 0;
        if (grows && gone[t].count > 0)
            add_moment(w, most, counts);
        grows = grows && gone[t].count == 0;
        for (uint32_t i = 0; i < gone[t].count; i++)
            counts[gone[t].at[i]]--;
    }
}

static etch_expr most_at_a_time(const workspace *w)
{
    moments most = {0};
    ETCH_VEC(etch_expr) candidates = {0};
    find_moments(w, &most);
    for (uint32_t i = 0; i < most.count; i++) {
        etch_expr sum = etch_int(w->sym, 0);
        for (uint32_t k = 0; k < w->sizes.count; k++)
            if (most.at[i][k] != 0)
                sum =
                    etch_add(w->sym, sum, etch_mul(w->sym, etch_int(w->sym, most.at[i][k]), w->sizes.at[k]));
        ETCH_PUSH(w->arena, &candidates, sum);
    }
    return candidates.count > 0 ? etch_max_of(w->sym, candidates.count, candidates.at) : etch_int(w->sym, 0);
}

etch_expr etch_workspace_bytes(const etch_placed *placed, const etch_stage_view *stage,
                               const etch_valuation *values)
{
    etch_arena *scratch = etch_arena_new(etch_arena_mem(placed->arena));
    etch_live_program *p = etch_live_of_placed(scratch, placed, stage, ETCH_HOLD_FORWARD_TO_INPUTS);
    const etch_live_run *run = etch_live_run_of(p, values);
    workspace w = {.run = run,
                   .view = p->view,
                   .sym = p->sym,
                   .arena = p->arena,
                   .last = ETCH_NEW_ARRAY(p->arena, run->memories.count, uint32_t),
                   .saved_from = ETCH_NEW_ARRAY(p->arena, run->memories.count, uint32_t),
                   .brought = ETCH_NEW_ARRAY(p->arena, run->memories.count, uint64_t),
                   .moment_of = ETCH_NEW_ARRAY(p->arena, run->events.count + 1, uint32_t)};
    for (uint32_t i = 0; i < run->memories.count; i++)
        w.saved_from[i] = run->memories.at[i].saved_from;
    run_actions(&w);
    find_sizes(&w);
    if (values)
        put_values(&w, values);
    const etch_expr most = most_at_a_time(&w);
    etch_arena_free(scratch);
    return most;
}
