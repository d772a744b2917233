/* The workspace: memory beside weights, their gradients and states, and saved values, while the passes of a
 * microbatch run: the most at a time.
 *
 * requires: a placed graph. provides: the size of the largest workspace of one rank, as a formula.
 *
 * A fold over the run of the program: what is made is there from the step that makes it to the last that
 * reads it, action by action (live_actions.h). What is saved for backward on the stage is counted with the
 * activations, and not here. Where a forward and a backward action share a slot, what is there is the most of
 * each: which steps meet follows from when each of them communicates, and nothing from all the numbers. */
#include "graph/cost/live_actions.h"

#include <string.h>

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
static void add_moment(const etch_live_actions *w, moments *most, const int32_t *counts)
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

/* Of the moments from `first` to before `end`; with what is there all the time, or without. */
static void find_moments(const etch_live_actions *w, uint32_t first, uint32_t end, bool always, moments *most)
{
    sizes_at *born = ETCH_NEW_ARRAY(w->arena, w->now + 1, sizes_at);
    sizes_at *gone = ETCH_NEW_ARRAY(w->arena, w->now + 1, sizes_at);
    int32_t *counts = ETCH_NEW_ARRAY(w->arena, w->sizes.count, int32_t);
    bool grows = false;
    for (uint32_t i = 0; i < w->intervals.count; i++) {
        const etch_live_interval *there = &w->intervals.at[i];
        if (etch_live_is_saved(w, there) || (!always && etch_live_is_always(w, there)))
            continue;
        ETCH_PUSH(w->arena, &born[there->birth], there->size);
        ETCH_PUSH(w->arena, &gone[there->death], there->size);
    }
    for (uint32_t t = 0; t < end; t++) {
        for (uint32_t i = 0; i < born[t].count; i++)
            counts[born[t].at[i]]++;
        grows = grows || born[t].count > 0 || (first > 0 && t == first);
        if (t >= first && grows && (gone[t].count > 0 || t + 1 == end))
            add_moment(w, most, counts);
        grows = grows && gone[t].count == 0;
        for (uint32_t i = 0; i < gone[t].count; i++)
            counts[gone[t].at[i]]--;
    }
}

/* Of an empty list: 0. */
typedef ETCH_VEC(etch_expr) amounts;

static etch_expr greatest(const etch_live_actions *w, const amounts *of)
{
    return of->count > 0 ? etch_max_of(w->sym, of->count, of->at) : etch_int(w->sym, 0);
}

static etch_expr most_at_a_time(const etch_live_actions *w, etch_live_moments when, bool always)
{
    moments most = {0};
    amounts candidates = {0};
    find_moments(w, when.begin, when.end, always, &most);
    for (uint32_t i = 0; i < most.count; i++) {
        etch_expr sum = etch_int(w->sym, 0);
        for (uint32_t k = 0; k < w->sizes.count; k++)
            if (most.at[i][k] != 0)
                sum =
                    etch_add(w->sym, sum, etch_mul(w->sym, etch_int(w->sym, most.at[i][k]), w->sizes.at[k]));
        ETCH_PUSH(w->arena, &candidates, sum);
    }
    return greatest(w, &candidates);
}

/* A stage, and the order that it works in. */
typedef struct slots_of_stage {
    const etch_schedule *schedule;
    etch_pipe_sizes sizes;
    etch_expr stage;
} slots_of_stage;

static bool shares_slot(const slots_of_stage *slots, uint32_t forward, uint32_t back)
{
    return etch_schedule_pairs(slots->schedule, &slots->sizes, slots->stage, forward, back);
}

/* The most of the chunks that share slots with this one, which goes forward; NULL: none does. */
static etch_expr most_beside(const etch_live_actions *w, const slots_of_stage *slots, uint32_t forward)
{
    amounts back = {0};
    for (uint32_t chunk = 0; chunk < w->chunks; chunk++)
        if (shares_slot(slots, forward, chunk))
            ETCH_PUSH(w->arena, &back, most_at_a_time(w, w->moments[1][chunk], false));
    return back.count > 0 ? greatest(w, &back) : NULL;
}

static bool is_paired(const etch_live_actions *w, const slots_of_stage *slots, uint32_t back)
{
    for (uint32_t chunk = 0; chunk < w->chunks; chunk++)
        if (shares_slot(slots, chunk, back))
            return true;
    return false;
}

/* Where two chunks share slots the most of both together, which is more than that of one. */
static etch_expr most_in_slots(const etch_live_actions *w, const slots_of_stage *slots)
{
    amounts candidates = {0};
    for (uint32_t chunk = 0; chunk < w->chunks; chunk++) {
        const etch_expr most = most_at_a_time(w, w->moments[0][chunk], true),
                        beside = most_beside(w, slots, chunk);
        ETCH_PUSH(w->arena, &candidates, beside ? etch_add(w->sym, most, beside) : most);
        if (!is_paired(w, slots, chunk))
            ETCH_PUSH(w->arena, &candidates, most_at_a_time(w, w->moments[1][chunk], true));
    }
    return greatest(w, &candidates);
}

etch_expr etch_workspace_bytes(const etch_placed *placed, const etch_stage_view *view,
                               const etch_stage_place *place, const etch_valuation *values)
{
    etch_arena *scratch = etch_arena_new(etch_arena_mem(placed->arena));
    const etch_live_actions *w = etch_live_actions_of(scratch, placed, view, values);
    const etch_schedule *schedule = view && placed->backward ? placed->stages->line->schedule : NULL;
    slots_of_stage slots = {.schedule = schedule};
    if (schedule) {
        const etch_expr micro = placed->training->train.micro;
        const etch_expr bound = values ? values->put(values->data, micro) : NULL;
        slots.sizes =
            (etch_pipe_sizes){place->stages, etch_int(w->sym, place->chunks), bound ? bound : micro};
        slots.stage = place->stage;
    }
    const etch_expr most = schedule && etch_schedule_overlaps(schedule)
                               ? most_in_slots(w, &slots)
                               : most_at_a_time(w, (etch_live_moments){0, w->now + 1}, true);
    etch_arena_free(scratch);
    return most;
}
