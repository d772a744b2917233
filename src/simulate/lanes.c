/* Steps of several rows at a time: the longest paths through what slots do, and the events of all classes,
 * whose middle is left out once it repeats itself. */
#include "simulate/shape_int.h"

#include <math.h>

struct etch_lane_room {
    etch_arena *arena;
    etch_lanes *sums, *cells, *ends;
    uint32_t sum_room, cell_room, end_room;
};

typedef struct running {
    const etch_step_shape *shape;
    const etch_shape_flow *flow;
    const etch_lanes *entries, *durations;
    etch_lanes *sums, *cells, *ends;
    uint32_t count;
    /* repeats from this one on are told by those before it; UINT32_MAX: all are gone through */
    uint32_t told;
    /* by how much later each is than the one before */
    etch_lanes later;
    etch_lanes step;
} running;

etch_lane_room *etch_lane_room_new(etch_arena *arena)
{
    etch_lane_room *room = ETCH_NEW(arena, etch_lane_room);
    room->arena = arena;
    return room;
}

/* ---- lanes --------------------------------------------------------------------------------------------- */

/* The larger ones. As functions of their own these become a few instructions, of several lanes each. */
__attribute__((noinline)) static void raise(double *restrict at, const double *restrict other)
{
    for (int i = 0; i < ETCH_LANES; i++)
        at[i] = other[i] > at[i] ? other[i] : at[i];
}

__attribute__((noinline)) static void raise_later(double *restrict at, const double *restrict begin,
                                                  const double *restrict by)
{
    for (int i = 0; i < ETCH_LANES; i++) {
        const double end = begin[i] + by[i];
        at[i] = end > at[i] ? end : at[i];
    }
}

static void add(etch_lanes *at, const etch_lanes *other)
{
    for (int i = 0; i < ETCH_LANES; i++)
        at->at[i] += other->at[i];
}

/* ---- paths --------------------------------------------------------------------------------------------- */

static void find_sums(const running *r)
{
    for (uint32_t i = 0; i < r->shape->sums.count; i++) {
        const etch_shape_sum *sum = &r->shape->sums.at[i];
        etch_lanes all = {{0}};
        for (uint32_t k = sum->first_term; k < sum->first_term + sum->term_count; k++) {
            const etch_tape_term *term = &r->shape->terms.at[k];
            for (int l = 0; l < ETCH_LANES; l++)
                all.at[l] += term->times * r->entries[term->entry].at[l];
        }
        r->sums[i] = all;
    }
}

static void find_paths(const running *r)
{
    const uint32_t *sources = r->shape->cell_sources.at;
    r->cells[0] = (etch_lanes){{0}};
    for (uint32_t i = 1; i < r->shape->cells.count; i++) {
        const etch_shape_cell *cell = &r->shape->cells.at[i];
        etch_lanes *own = &r->cells[i];
        *own = (etch_lanes){{0}};
        for (uint32_t k = cell->first_source; k < cell->first_source + cell->source_count; k++)
            raise(own->at, r->cells[sources[k]].at);
        add(own, &r->sums[cell->sum]);
    }
}

/* ---- events -------------------------------------------------------------------------------------------- */

static const etch_lanes *end_in(const running *r, uint32_t repeat, uint32_t which)
{
    return &r->ends[r->flow->repeated[(size_t)repeat * r->flow->each_count + which]];
}

/* As what comes after the middle sees it: there it has all of its repeats. */
static etch_lanes end_of(const running *r, uint32_t event)
{
    const etch_flow_event *e = &r->flow->events[event];
    if (e->repeat == UINT32_MAX)
        return r->ends[event];
    const uint64_t repeat = e->repeat + r->flow->extra;
    if (repeat < r->told)
        return *end_in(r, (uint32_t)repeat, e->which);
    const double since = (double)(repeat - r->told + 1);
    etch_lanes end = *end_in(r, r->told - 1, e->which);
    for (int i = 0; i < ETCH_LANES; i++)
        end.at[i] += since * r->later.at[i];
    return end;
}

static void end_event(running *r, uint32_t event)
{
    const uint32_t duration = r->flow->events[event].duration;
    if (duration != UINT32_MAX)
        add(&r->ends[event], &r->durations[duration]);
    if (r->flow->events[event].is_last)
        raise(r->step.at, r->ends[event].at);
}

static void go_through(running *r, uint32_t event)
{
    const etch_flow_event *e = &r->flow->events[event];
    const etch_flow_source *sources = r->flow->sources + e->first_source;
    etch_lanes *end = &r->ends[event];
    *end = (etch_lanes){{0}};
    for (uint32_t i = 0; i < e->source_count; i++)
        raise_later(end->at, r->ends[sources[i].event].at, r->cells[sources[i].cell].at);
    end_event(r, event);
}

/* What comes after a middle that is told. */
static void go_through_rest(running *r, uint32_t event)
{
    const etch_flow_event *e = &r->flow->events[event];
    const etch_flow_source *sources = r->flow->sources + e->first_source;
    etch_lanes *end = &r->ends[event];
    *end = (etch_lanes){{0}};
    for (uint32_t i = 0; i < e->source_count; i++) {
        const etch_lanes begin = end_of(r, sources[i].event);
        raise_later(end->at, begin.at, r->cells[sources[i].cell].at);
    }
    end_event(r, event);
}

/* Is each of the last repeats before `told` as much later than the one before it as all others? Then those
 * that follow are: they wait for these alone, in the same way, and for the beginning of the step, which has
 * not held up the last one if that is later than the one before it. */
static bool is_steady(running *r, uint32_t told)
{
    const etch_shape_flow *flow = r->flow;
    const uint32_t last = told - 1;
    const etch_lanes *a = end_in(r, last, 0), *b = end_in(r, last - 1, 0);
    for (int l = 0; l < ETCH_LANES; l++)
        if ((r->later.at[l] = a->at[l] - b->at[l]) < 0)
            return false;
    for (uint32_t back = 0; back < flow->reach; back++)
        for (uint32_t i = 0; i < flow->each_count; i++) {
            a = end_in(r, last - back, i);
            b = end_in(r, last - back - 1, i);
            for (int l = 0; l < ETCH_LANES; l++)
                if (a->at[l] - b->at[l] != r->later.at[l])
                    return false;
        }
    return true;
}

/* The ends of the last repeat, of all that there are. */
static void raise_last(running *r)
{
    const etch_shape_flow *flow = r->flow;
    for (uint32_t i = 0; i < flow->each_count; i++) {
        const uint32_t event = flow->repeated[(size_t)(flow->repeats - 1) * flow->each_count + i];
        const etch_lanes end = end_of(r, event);
        raise(r->step.at, end.at);
    }
}

static bool run_events(running *r)
{
    const etch_shape_flow *flow = r->flow;
    uint32_t at = ETCH_FLOW_START + 1;
    r->ends[ETCH_FLOW_START] = (etch_lanes){{0}};
    for (uint32_t repeat = 0; repeat < flow->repeats; repeat++) {
        for (; at < flow->ends[repeat]; at++)
            go_through(r, at);
        const bool is_last = repeat + 1 == flow->repeats && flow->extra == 0;
        if (repeat < flow->reach || is_last || !is_steady(r, repeat + 1))
            continue;
        r->told = repeat + 1;
        raise_last(r);
        break;
    }
    if (r->told == UINT32_MAX && flow->extra > 0)
        return false;
    if (r->told == UINT32_MAX) {
        for (; at < flow->event_count; at++)
            go_through(r, at);
        return true;
    }
    for (at = flow->ends[flow->repeats - 1]; at < flow->event_count; at++)
        go_through_rest(r, at);
    return true;
}

/* ---- the step ------------------------------------------------------------------------------------------ */

/* Room for so many, each in a line of a cache of its own. */
static etch_lanes *widen(const etch_lane_room *room, etch_lanes *old, uint32_t *known, uint32_t wanted)
{
    if (wanted <= *known)
        return old;
    *known = wanted + wanted / 2;
    char *bytes = etch_alloc_array(room->arena, (size_t)*known + 1, sizeof *old);
    return (etch_lanes *)(void *)(bytes + (sizeof *old - (uintptr_t)bytes % sizeof *old));
}

bool etch_lanes_run(etch_lane_room *room, const etch_step_shape *shape, const etch_shape_flow *flow,
                    const etch_lanes *entries, const etch_lanes *durations, uint32_t count, etch_lanes *step)
{
    room->sums = widen(room, room->sums, &room->sum_room, shape->sums.count);
    room->cells = widen(room, room->cells, &room->cell_room, shape->cells.count);
    room->ends = widen(room, room->ends, &room->end_room, flow->event_count);
    running r = {.shape = shape,
                 .flow = flow,
                 .entries = entries,
                 .durations = durations,
                 .sums = room->sums,
                 .cells = room->cells,
                 .ends = room->ends,
                 .count = count,
                 .told = UINT32_MAX};
    find_sums(&r);
    find_paths(&r);
    bool fine = run_events(&r);
    /* sums of what is not negative: as long as the largest is exact, all are */
    for (uint32_t i = 0; i < count; i++)
        fine = fine && r.step.at[i] < ETCH_LANES_EXACT;
    *step = r.step;
    return fine;
}
