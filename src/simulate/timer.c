/* Steps of a shape, row by row: how long the tasks take, the longest paths through slots, and the events of
 * all classes, whose middle is left out once it repeats itself. */
#include "simulate/shape_int.h"

#include <string.h>

/* Less than any time, and than any time that is added to it. */
#define NO_PATH (INT64_MIN / 2)
/* What all nodes of a step last together is below this. */
#define MOST_WORK (INT64_MAX / 4)

enum { TIMER_SLOTS = 1 << 14, TIMER_WORDS = 12 };

typedef struct timer_slot {
    uint64_t key[TIMER_WORDS];
    etch_picoseconds time;
    bool is_known;
} timer_slot;

struct etch_timer {
    etch_arena *arena;
    /* by hash: the last one asked for */
    timer_slot *slots;
    /* scratch of a row, which grows */
    etch_picoseconds *entries, *messages;
    etch_sim_span_signed *spans, *weights, *ends;
    uint32_t entry_room, message_room, span_room, weight_room, end_room;
};

etch_timer *etch_timer_new(etch_arena *arena)
{
    etch_timer *timer = ETCH_NEW(arena, etch_timer);
    timer->arena = arena;
    timer->slots = ETCH_NEW_ARRAY(arena, TIMER_SLOTS, timer_slot);
    return timer;
}

/* ---- tasks --------------------------------------------------------------------------------------------- */

/* What is asked of the machine. */
typedef struct asking {
    etch_timer *timer;
    const etch_step_shape *shape;
    const etch_shape_place *place;
    const etch_stack *stack;
    const etch_task_numbers *numbers;
} asking;

static timer_slot *slot_of(const etch_timer *timer, const uint64_t key[TIMER_WORDS])
{
    uint64_t hash = 0;
    for (int i = 0; i < TIMER_WORDS; i++) {
        hash = (hash ^ key[i]) * UINT64_C(0x9E3779B97F4A7C15);
        hash ^= hash >> 32;
    }
    return &timer->slots[hash & (TIMER_SLOTS - 1)];
}

/* The time of a key; `*slot` is where it belongs. */
static bool is_known(const asking *a, const uint64_t key[TIMER_WORDS], timer_slot **slot,
                     etch_picoseconds *out)
{
    *slot = slot_of(a->timer, key);
    *out = (*slot)->time;
    return (*slot)->is_known && memcmp((*slot)->key, key, sizeof(*slot)->key) == 0;
}

static bool keep(timer_slot *slot, const uint64_t key[TIMER_WORDS], const char *lacks, etch_picoseconds time)
{
    if (lacks)
        return false;
    memcpy(slot->key, key, sizeof slot->key);
    slot->time = time;
    slot->is_known = true;
    return true;
}

static bool time_computation(const asking *a, const etch_shape_entry *entry, etch_picoseconds *out)
{
    const etch_task_numbers *n = &a->numbers[entry->task];
    const etch_workload *load = &n->load;
    const uint64_t bytes = etch_node_bytes(ETCH_NODE_COMP, n->flop ? n->flop : 1, n->bytes, entry->starts);
    const uint64_t key[TIMER_WORDS] = {(uintptr_t)a->place->cluster,
                                       (uintptr_t)a->stack,
                                       (uintptr_t)load->dtype,
                                       (uint64_t)load->kind << 2 | (uint64_t)load->backward << 1,
                                       load->flop,
                                       bytes,
                                       load->keys,
                                       load->m,
                                       load->n,
                                       load->k,
                                       load->batch};
    timer_slot *slot;
    if (is_known(a, key, &slot, out))
        return true;
    const etch_computation computation = etch_sim_computation(load, bytes);
    etch_arena *scratch = etch_arena_new(etch_arena_mem(a->timer->arena));
    const char *lacks =
        etch_computation_time(scratch, a->place->cluster->device, a->stack, NULL, &computation, out);
    const bool fine = keep(slot, key, lacks, *out);
    etch_arena_free(scratch);
    return fine;
}

static bool time_collective(const asking *a, const etch_shape_entry *entry, etch_picoseconds *out)
{
    const etch_task_form *form = &a->shape->form->tasks.at[entry->task];
    const uint32_t levels = a->place->cluster->levels.count, *spread = a->place->spreads[entry->family];
    const uint64_t bytes = etch_sim_buffer(
        form->collective, etch_node_bytes(form->type, 0, a->numbers[entry->task].bytes, false),
        a->place->sizes[entry->family]);
    uint64_t key[TIMER_WORDS] = {(uintptr_t)a->place->cluster, (uintptr_t)a->stack, form->collective, 1,
                                 bytes};
    enum { BEFORE = 5 };
    if (!spread || levels > 2 * (TIMER_WORDS - BEFORE))
        return false;
    for (uint32_t l = 0; l < levels; l++)
        key[BEFORE + l / 2] |= (uint64_t)spread[l] << l % 2 * 32;
    timer_slot *slot;
    if (is_known(a, key, &slot, out))
        return true;
    etch_arena *scratch = etch_arena_new(etch_arena_mem(a->timer->arena));
    const char *lacks = etch_collective_time(scratch, a->place->cluster, a->stack,
                                             etch_sim_collective_of(form->collective), bytes, spread, out);
    const bool fine = keep(slot, key, lacks, *out);
    etch_arena_free(scratch);
    return fine;
}

static bool time_message(const asking *a, uint32_t task, uint32_t level, etch_picoseconds *out)
{
    const uint64_t bytes = etch_node_bytes(ETCH_NODE_SEND, 0, a->numbers[task].bytes, false);
    const uint64_t key[TIMER_WORDS] = {(uintptr_t)a->place->cluster, (uintptr_t)a->stack, level, 2, bytes};
    timer_slot *slot;
    if (is_known(a, key, &slot, out))
        return true;
    etch_arena *scratch = etch_arena_new(etch_arena_mem(a->timer->arena));
    const char *lacks = etch_message_time(scratch, a->place->cluster, a->stack, level, bytes, out);
    const bool fine = keep(slot, key, lacks, *out);
    etch_arena_free(scratch);
    return fine;
}

/* By entry; of messages by level. The longest is left in `longest`. */
static bool time_entries(const asking *a, uint64_t *longest)
{
    const etch_step_shape *shape = a->shape;
    const uint32_t levels = a->place->cluster->levels.count;
    bool fine = true;
    *longest = 0;
    for (uint32_t i = 0; fine && i < shape->entries.count; i++) {
        const etch_shape_entry *entry = &shape->entries.at[i];
        const uint8_t type = shape->form->tasks.at[entry->task].type;
        etch_picoseconds *at = &a->timer->entries[i];
        *at = (etch_picoseconds){0};
        if (type == ETCH_NODE_COMP)
            fine = time_computation(a, entry, at);
        else if (type == ETCH_NODE_COLL)
            fine = time_collective(a, entry, at);
        for (uint32_t l = 0; fine && type == ETCH_NODE_SEND && l < levels; l++) {
            at = &a->timer->messages[(size_t)i * levels + l];
            fine = time_message(a, entry->task, l, at);
            *longest = at->count > *longest ? at->count : *longest;
            *longest = at->error > *longest ? at->error : *longest;
        }
        *longest = at->count > *longest ? at->count : *longest;
        *longest = at->error > *longest ? at->error : *longest;
    }
    return fine;
}

/* ---- paths --------------------------------------------------------------------------------------------- */

static void raise(etch_sim_span_signed *at, int64_t count, int64_t error)
{
    at->count = at->count > count ? at->count : count;
    at->error = at->error > error ? at->error : error;
}

static void run_node(const etch_timer *timer, const etch_tape *tape, const etch_tape_node *node,
                     etch_sim_span_signed *own)
{
    const uint32_t width = tape->width;
    int64_t count = 0, error = 0;
    for (uint32_t b = 0; b < width; b++)
        own[b] = (etch_sim_span_signed){NO_PATH, NO_PATH};
    for (uint32_t i = node->first_source; i < node->first_source + node->source_count; i++) {
        const uint32_t source = tape->sources.at[i];
        if (source & ETCH_TAPE_BEGIN) {
            raise(&own[source & ~ETCH_TAPE_BEGIN], 0, 0);
        } else if (tape->nodes.at[source].is_begin != UINT32_MAX) {
            raise(&own[tape->nodes.at[source].is_begin], 0, 0);
        } else {
            const etch_sim_span_signed *from = timer->spans + (size_t)source * width;
            for (uint32_t b = 0; b < width; b++)
                raise(&own[b], from[b].count, from[b].error);
        }
    }
    for (uint32_t i = node->first_term; i < node->first_term + node->term_count; i++) {
        const etch_picoseconds *time = &timer->entries[tape->terms.at[i].entry];
        count += (int64_t)(time->count * tape->terms.at[i].times);
        error += (int64_t)(time->error * tape->terms.at[i].times);
    }
    for (uint32_t b = 0; b < width; b++) {
        own[b].count += count;
        own[b].error += error;
    }
}

static void run_tape(const etch_timer *timer, const etch_tape *tape)
{
    for (uint32_t i = 0; i < tape->nodes.count; i++) {
        const etch_tape_node *node = &tape->nodes.at[i];
        etch_sim_span_signed *own = timer->spans + (size_t)i * tape->width;
        run_node(timer, tape, node, own);
        if (node->first_weight != UINT32_MAX)
            memcpy(timer->weights + tape->first_weight + node->first_weight, own, tape->width * sizeof *own);
    }
}

/* ---- events -------------------------------------------------------------------------------------------- */

typedef struct stepping {
    const asking *asked;
    const etch_shape_flow *flow;
    etch_sim_span_signed *ends;
    /* repeats from this one on are told by those before it; UINT32_MAX: all are gone through */
    uint32_t told;
    /* by how much later each is than the one before */
    etch_sim_span_signed later;
    etch_sim_span_signed step;
} stepping;

/* As what comes after the middle sees it: there it has all of its repeats. */
static etch_sim_span_signed end_of(const stepping *s, uint32_t event)
{
    const etch_flow_event *e = &s->flow->events[event];
    if (e->repeat == UINT32_MAX)
        return s->ends[event];
    const uint64_t repeat = e->repeat + s->flow->extra;
    const uint32_t first = event - e->repeat * e->step;
    if (repeat < s->told)
        return s->ends[first + (uint32_t)repeat * e->step];
    const int64_t since = (int64_t)(repeat - s->told + 1);
    const etch_sim_span_signed known = s->ends[first + (s->told - 1) * e->step];
    return (etch_sim_span_signed){known.count + since * s->later.count, known.error + since * s->later.error};
}

static void end_event(stepping *s, uint32_t event)
{
    const etch_shape_flow *flow = s->flow;
    const etch_timer *timer = s->asked->timer;
    const etch_flow_event *e = &flow->events[event];
    etch_sim_span_signed end = {0, 0};
    for (uint32_t i = e->first_source; i < e->first_source + e->source_count; i++) {
        const etch_sim_span_signed begins =
            s->told == UINT32_MAX ? s->ends[flow->sources[i].event] : end_of(s, flow->sources[i].event);
        const etch_sim_span_signed *weight = &timer->weights[flow->sources[i].weight];
        raise(&end, begins.count + weight->count, begins.error + weight->error);
    }
    if (e->entry != UINT32_MAX) {
        const etch_shape_place *place = s->asked->place;
        const uint32_t classes = s->asked->shape->job->program_count;
        const etch_picoseconds *time =
            e->sends == UINT32_MAX
                ? &timer->entries[e->entry]
                : &timer->messages[(size_t)e->entry * place->cluster->levels.count +
                                   place->levels[(size_t)e->sends * classes + e->receives]];
        end.count += (int64_t)time->count;
        end.error += (int64_t)time->error;
    }
    s->ends[event] = end;
    raise(&s->step, end.count, end.error);
}

/* Is each of the last repeats before `told` as much later than the one before it as all others? Then those
 * that follow are: they wait for these alone, in the same way, and for the beginning of the step, which has
 * not held up the last one if that is later than the one before it. */
static bool is_steady(stepping *s, uint32_t told)
{
    const etch_shape_flow *flow = s->flow;
    const uint32_t first = flow->first_repeat[0], step = flow->events[first].step, last = told - 1;
    const etch_sim_span_signed *a = &s->ends[first + last * step], *b = a - step;
    const etch_sim_span_signed later = {a->count - b->count, a->error - b->error};
    if (later.count < 0 || later.error < 0)
        return false;
    for (uint32_t back = 0; back < flow->reach; back++)
        for (uint32_t i = 0; i < flow->first_count; i++) {
            const uint32_t own = flow->events[flow->first_repeat[i]].step;
            const etch_sim_span_signed *x = &s->ends[flow->first_repeat[i] + (last - back) * own];
            if (x->count - x[-(int64_t)own].count != later.count ||
                x->error - x[-(int64_t)own].error != later.error)
                return false;
        }
    s->later = later;
    return true;
}

/* The ends of the last repeat, of all that there are. */
static void raise_last(stepping *s)
{
    const etch_shape_flow *flow = s->flow;
    for (uint32_t i = 0; i < flow->first_count; i++) {
        const uint32_t event = flow->first_repeat[i];
        const etch_sim_span_signed end = end_of(s, event + (flow->repeats - 1) * flow->events[event].step);
        raise(&s->step, end.count, end.error);
    }
}

/* False: the middle does not become steady as long as there are events of it. */
static bool run_events(stepping *s)
{
    const etch_shape_flow *flow = s->flow;
    uint32_t at = 0;
    s->ends[ETCH_FLOW_START] = (etch_sim_span_signed){0, 0};
    for (uint32_t repeat = 0; repeat < flow->repeats; repeat++) {
        for (; at < flow->ends[repeat]; at++)
            end_event(s, flow->order[at]);
        const bool is_last = repeat + 1 == flow->repeats && flow->extra == 0;
        if (repeat < flow->reach || is_last || !is_steady(s, repeat + 1))
            continue;
        s->told = repeat + 1;
        raise_last(s);
        break;
    }
    if (s->told == UINT32_MAX && flow->extra > 0)
        return false;
    if (s->told != UINT32_MAX)
        at = flow->ends[flow->repeats - 1];
    for (; at < flow->order_count; at++)
        end_event(s, flow->order[at]);
    return true;
}

/* ---- the step ------------------------------------------------------------------------------------------ */

static void *widen(etch_arena *arena, void *old, uint32_t *room, uint64_t wanted, size_t size)
{
    if (wanted <= *room)
        return old;
    *room = (uint32_t)(2 * wanted);
    return etch_alloc_array(arena, *room, size);
}

static void make_room(etch_timer *t, const etch_step_shape *shape, const etch_shape_flow *flow,
                      uint32_t levels)
{
    uint64_t spans = 0;
    for (uint32_t i = 0; i < shape->tapes.count; i++) {
        const uint64_t own = (uint64_t)shape->tapes.at[i].nodes.count * shape->tapes.at[i].width;
        spans = own > spans ? own : spans;
    }
    t->entries = widen(t->arena, t->entries, &t->entry_room, shape->entries.count, sizeof *t->entries);
    t->messages = widen(t->arena, t->messages, &t->message_room, (uint64_t)shape->entries.count * levels,
                        sizeof *t->messages);
    t->spans = widen(t->arena, t->spans, &t->span_room, spans, sizeof *t->spans);
    t->weights = widen(t->arena, t->weights, &t->weight_room, shape->weight_count, sizeof *t->weights);
    t->ends = widen(t->arena, t->ends, &t->end_room, flow->event_count, sizeof *t->ends);
}

bool etch_timer_step(etch_timer *timer, const etch_step_shape *shape, const etch_shape_place *place,
                     const etch_shape_flow *flow, const etch_stack *stack, const etch_task_numbers *numbers,
                     etch_step_time *out)
{
    const asking a = {timer, shape, place, stack, numbers};
    __extension__ typedef unsigned __int128 wide;
    uint64_t longest;
    if (stack && stack->launch)
        return false;
    make_room(timer, shape, flow, place->cluster->levels.count);
    if (!time_entries(&a, &longest) || (wide)longest * flow->nodes > MOST_WORK)
        return false;
    for (uint32_t i = 0; i < shape->tapes.count; i++)
        run_tape(timer, &shape->tapes.at[i]);
    stepping s = {.asked = &a, .flow = flow, .ends = timer->ends, .told = UINT32_MAX};
    const bool fine = run_events(&s);
    *out = (etch_step_time){.step = (uint64_t)s.step.count, .error = (uint64_t)s.step.error};
    return fine;
}
