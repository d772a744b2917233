/* Steps of a shape, row by row: how long the tasks take. Rows that have one flow are gone through together,
 * and their errors, which nearly all rows have in common, once for all of them. */
#include "simulate/shape_int.h"

#include <string.h>

enum { TIMER_SLOTS = 1 << 14, TIMER_WORDS = 12 };

typedef struct timer_slot {
    uint64_t key[TIMER_WORDS];
    etch_picoseconds time;
    bool is_known;
} timer_slot;

/* What entries last, by entry; of messages by level, behind those of all entries. */
typedef struct timed_row {
    etch_picoseconds *entries, *messages;
    const etch_shape_place *place;
    etch_step_time *out;
    bool *is_told;
} timed_row;

struct etch_timer {
    etch_arena *arena;
    /* by hash: the last one asked for */
    timer_slot *slots;
    etch_lane_room *room;
    /* of which rows are being timed */
    const etch_step_shape *shape;
    const etch_stack *stack;
    /* rows of one flow that wait for each other */
    const etch_shape_flow *flow;
    timed_row rows[ETCH_LANES];
    uint32_t row_count, levels;
    /* scratch, which grows: times of rows, one after the other; numbers of a run */
    etch_picoseconds *times;
    etch_lanes *entries, *durations;
    uint32_t time_room, entry_room, duration_room;
    /* Errors whose sum is known, by entry and then by duration; of `error_flow`, NULL: none. */
    const etch_shape_flow *error_flow;
    double *errors, error;
    uint32_t error_room;
};

etch_timer *etch_timer_new(etch_arena *arena)
{
    etch_timer *timer = ETCH_NEW(arena, etch_timer);
    timer->arena = arena;
    timer->slots = ETCH_NEW_ARRAY(arena, TIMER_SLOTS, timer_slot);
    timer->room = etch_lane_room_new(arena);
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

static bool time_entries(const asking *a, const timed_row *row)
{
    const etch_step_shape *shape = a->shape;
    const uint32_t levels = a->place->cluster->levels.count;
    bool fine = true;
    for (uint32_t i = 0; fine && i < shape->entries.count; i++) {
        const etch_shape_entry *entry = &shape->entries.at[i];
        const uint8_t type = shape->form->tasks.at[entry->task].type;
        row->entries[i] = (etch_picoseconds){0};
        if (type == ETCH_NODE_COMP)
            fine = time_computation(a, entry, &row->entries[i]);
        else if (type == ETCH_NODE_COLL)
            fine = time_collective(a, entry, &row->entries[i]);
        for (uint32_t l = 0; fine && type == ETCH_NODE_SEND && l < levels; l++)
            fine = time_message(a, entry->task, l, &row->messages[(size_t)i * levels + l]);
    }
    return fine;
}

/* ---- together ------------------------------------------------------------------------------------------ */

static etch_picoseconds lasts(const etch_timer *t, const timed_row *row, const etch_flow_duration *duration)
{
    if (duration->sends == UINT32_MAX)
        return row->entries[duration->entry];
    const uint32_t classes = t->shape->job->program_count;
    return row->messages[(size_t)duration->entry * t->levels +
                         row->place->levels[(size_t)duration->sends * classes + duration->receives]];
}

/* The numbers of `count` rows from `first` on; lanes without a row have those of the first. */
static void fill(const etch_timer *t, uint32_t first, uint32_t count, bool of_errors)
{
    for (uint32_t l = 0; l < ETCH_LANES; l++) {
        const timed_row *row = &t->rows[first + (l < count ? l : 0)];
        for (uint32_t i = 0; i < t->shape->entries.count; i++)
            t->entries[i].at[l] = (double)(of_errors ? row->entries[i].error : row->entries[i].count);
        for (uint32_t i = 0; i < t->flow->duration_count; i++) {
            const etch_picoseconds time = lasts(t, row, &t->flow->durations[i]);
            t->durations[i].at[l] = (double)(of_errors ? time.error : time.count);
        }
    }
}

static bool is_error_known(const etch_timer *t, const timed_row *row)
{
    const uint32_t entries = t->shape->entries.count;
    bool same = t->error_flow == t->flow;
    for (uint32_t i = 0; same && i < entries; i++)
        same = (double)row->entries[i].error == t->errors[i];
    for (uint32_t i = 0; same && i < t->flow->duration_count; i++)
        same = (double)lasts(t, row, &t->flow->durations[i]).error == t->errors[entries + i];
    return same;
}

static void keep_errors(etch_timer *t, double error)
{
    const uint32_t entries = t->shape->entries.count, all = entries + t->flow->duration_count;
    if (all > t->error_room)
        t->errors = ETCH_NEW_ARRAY(t->arena, t->error_room = 2 * all, double);
    for (uint32_t i = 0; i < entries; i++)
        t->errors[i] = t->entries[i].at[0];
    for (uint32_t i = 0; i < t->flow->duration_count; i++)
        t->errors[entries + i] = t->durations[i].at[0];
    t->error_flow = t->flow;
    t->error = error;
}

/* False: the errors of some row are not told. */
static bool find_errors(etch_timer *t, uint32_t first, uint32_t count)
{
    bool known = true;
    for (uint32_t i = first; known && i < first + count; i++)
        known = is_error_known(t, &t->rows[i]);
    etch_lanes step;
    if (!known) {
        fill(t, first, count, true);
        if (!etch_lanes_run(t->room, t->shape, t->flow, t->entries, t->durations, count, &step))
            return false;
        keep_errors(t, step.at[0]);
    }
    for (uint32_t i = 0; i < count; i++)
        t->rows[first + i].out->error = (uint64_t)(known ? t->error : step.at[i]);
    return true;
}

static bool run_rows(etch_timer *t, uint32_t first, uint32_t count)
{
    etch_lanes step;
    if (!find_errors(t, first, count))
        return false;
    fill(t, first, count, false);
    if (!etch_lanes_run(t->room, t->shape, t->flow, t->entries, t->durations, count, &step))
        return false;
    for (uint32_t i = 0; i < count; i++) {
        t->rows[first + i].out->step = (uint64_t)step.at[i];
        *t->rows[first + i].is_told = true;
    }
    return true;
}

static void *widen(etch_arena *arena, void *old, uint32_t *room, uint32_t wanted, size_t size)
{
    if (wanted <= *room)
        return old;
    *room = 2 * wanted;
    return etch_alloc_array(arena, *room, size);
}

/* Where rows together are not told, each may be by itself. */
static void run_all(etch_timer *t)
{
    if (t->row_count > 0) {
        t->durations =
            widen(t->arena, t->durations, &t->duration_room, t->flow->duration_count, sizeof *t->durations);
        if (!run_rows(t, 0, t->row_count) && t->row_count > 1)
            for (uint32_t i = 0; i < t->row_count; i++)
                (void)run_rows(t, i, 1); /* that it is not told is said of it */
    }
    t->row_count = 0;
}

/* ---- rows ---------------------------------------------------------------------------------------------- */

void etch_timer_begin(etch_timer *t, const etch_step_shape *shape, const etch_cluster *cluster,
                      const etch_stack *stack)
{
    const uint32_t entries = shape->entries.count, levels = cluster->levels.count;
    t->shape = shape;
    t->stack = stack;
    t->levels = levels;
    t->row_count = 0;
    t->flow = t->error_flow = NULL;
    t->entries = widen(t->arena, t->entries, &t->entry_room, entries, sizeof *t->entries);
    t->times =
        widen(t->arena, t->times, &t->time_room, ETCH_LANES * (1 + levels) * entries, sizeof *t->times);
    for (uint32_t i = 0; i < ETCH_LANES; i++) {
        t->rows[i].entries = t->times + (size_t)i * (1 + levels) * entries;
        t->rows[i].messages = t->rows[i].entries + entries;
    }
}

void etch_timer_add(etch_timer *t, const etch_shape_place *place, const etch_shape_flow *flow,
                    const etch_task_numbers *numbers, etch_step_time *out, bool *is_told)
{
    const asking a = {t, t->shape, place, t->stack, numbers};
    *out = (etch_step_time){0};
    *is_told = false;
    if (t->row_count == ETCH_LANES || flow != t->flow)
        run_all(t);
    t->flow = flow;
    timed_row *row = &t->rows[t->row_count];
    row->place = place;
    row->out = out;
    row->is_told = is_told;
    if (!(t->stack && t->stack->launch) && time_entries(&a, row))
        t->row_count++;
}

void etch_timer_end(etch_timer *t)
{
    run_all(t);
}
