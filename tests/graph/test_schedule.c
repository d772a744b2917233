/* Pipeline schedules: the generated orders against their definition, a simulation, and the closed forms. */
#include "pipes.h"
#include "two_groups.h"

#include <stdio.h>
#include <stdlib.h>

enum { FORWARD_TIME = 1, BACKWARD_TIME = 2 };

/* ---- slots --------------------------------------------------------------------------------------------- */

/* Does the microbatch go through the link on this stage? Even ones begin at the first stage, odd ones at the
 * last. */
static bool goes_through(const etch_pipe *pipe, uint32_t stage, etch_action action)
{
    const uint32_t link = link_of(pipe, stage, action.chunk);
    return copies_of(pipe->schedule) == 1 ||
           stage == (action.microbatch % 2 == 0 ? link : pipe->stages - 1 - link);
}

/* Each slot once; microbatches of one chunk and direction in rising order; backward in halves or not. */
static void check_slots(etch_arena *arena, const etch_pipe *pipe)
{
    for (uint32_t stage = 0; stage < pipe->stages; stage++) {
        const etch_action *slots = etch_actions(arena, pipe, stage);
        uint64_t next[PASSES][MOST_CHUNKS] = {{0}};
        for (uint64_t i = 0; i < etch_action_count(pipe); i++) {
            require(pipe, slots[i].chunk < pipe->chunks, "a chunk that is none");
            require(pipe,
                    slots[i].microbatch / copies_of(pipe->schedule) ==
                        next[pass_of(slots[i])][slots[i].chunk]++,
                    "microbatches of a chunk are out of order");
            require(pipe, goes_through(pipe, stage, slots[i]), "a microbatch of the other end");
            require(pipe,
                    (slots[i].kind == ETCH_ACTION_BACKWARD) <= !etch_schedule_has_halves(pipe->schedule),
                    "backward as a whole, and in halves");
        }
        for (uint32_t chunk = 0; chunk < pipe->chunks; chunk++) {
            const uint64_t all = pipe->microbatches / copies_of(pipe->schedule);
            require(pipe, next[0][chunk] == all, "forward slots are missing");
            require(pipe, next[1][chunk] == (pipe->trains ? all : 0),
                    "backward slots are missing, or too many");
            const bool halves_too = pipe->trains && etch_schedule_has_halves(pipe->schedule);
            require(pipe, next[2][chunk] == (halves_too ? all : 0), "second halves are missing, or too many");
        }
    }
}

static void all_slots(etch_arena *arena)
{
    each_pipe(arena, true, check_slots);
}

START_TEST(test_every_slot_once)
{
    etch_with_arena(all_slots);
}
END_TEST

/* ---- simulation ---------------------------------------------------------------------------------------- */

/* A forward action waits for the link before it, a backward one for the link behind it and for its own
 * forward action; a stage does its slots in turn. Actions that share a slot begin and end together, and take
 * what each would. */
typedef struct simulation {
    const etch_pipe *pipe;
    const etch_action *slots[MOST_STAGES];
    uint64_t next[MOST_STAGES], begin[PASSES][MOST_STAGES * MOST_CHUNKS][MOST_MICRO]; /* 0: not yet */
    uint64_t end[PASSES][MOST_STAGES * MOST_CHUNKS][MOST_MICRO];
    uint64_t free_at[MOST_STAGES];
    uint64_t start[MOST_STAGES]; /* of the first slot */
    bool random;                 /* durations and delays of messages; else these times and no delay */
    const uint64_t *times;       /* of forward, gradients of inputs, gradients of weights */
} simulation;

static const uint64_t unit_times[PASSES] = {FORWARD_TIME, BACKWARD_TIME / 2, BACKWARD_TIME / 2};

static uint64_t duration(const simulation *s, etch_action action)
{
    const uint64_t *times = s->times ? s->times : unit_times;
    if (s->random)
        return (uint64_t)(rand() % 20 + 1);
    return times[pass_of(action)] + (action.kind == ETCH_ACTION_BACKWARD ? times[WEIGHTS] : 0);
}

static uint64_t lesser(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t later(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* Waits for the end of something done in another place. False: it is not done. */
static bool wait_for(const simulation *s, uint64_t end, uint64_t *ready)
{
    if (end == 0)
        return false;
    *ready = later(*ready, end + (s->random ? (uint64_t)(rand() % 5) : 0));
    return true;
}

/* False: the action has to wait for something that is not done. `before`: of the same slot, or NULL. */
static bool can_begin(const simulation *s, uint32_t stage, etch_action action, const etch_action *before,
                      uint64_t *ready)
{
    const etch_pipe *pipe = s->pipe;
    const uint32_t link = link_of(pipe, stage, action.chunk),
                   last = pipe->chunks * pipe->stages / copies_of(pipe->schedule) - 1;
    const uint64_t m = action.microbatch;
    const int pass = pass_of(action);
    if (pass == FORWARD && link > 0 && !wait_for(s, s->end[FORWARD][link - 1][m], ready))
        return false;
    if (pass == BACK && link < last && !wait_for(s, s->end[BACK][link + 1][m], ready))
        return false;
    if (pass == WEIGHTS && before && pass_of(*before) == BACK)
        return before->microbatch == m && before->chunk == action.chunk;
    return pass == FORWARD || s->end[pass - 1][link][m] > 0;
}

/* Does the next slot of the stage, and returns how many actions that is; 0: it has to wait. Times begin at
 * 1. */
static uint32_t step(simulation *s, uint32_t stage)
{
    const uint64_t count = etch_action_count(s->pipe);
    const etch_action *slot = &s->slots[stage][s->next[stage]];
    uint64_t ready = later(s->free_at[stage], 1), time = 0;
    uint32_t actions = 0;
    do {
        if (!can_begin(s, stage, slot[actions], actions ? &slot[actions - 1] : NULL, &ready))
            return 0;
        time += duration(s, slot[actions++]);
    } while (s->next[stage] + actions < count && slot[actions].overlaps);
    if (s->next[stage] == 0)
        s->start[stage] = ready;
    s->free_at[stage] = ready + time;
    for (uint32_t i = 0; i < actions; i++) {
        const uint32_t link = link_of(s->pipe, stage, slot[i].chunk);
        s->begin[pass_of(slot[i])][link][slot[i].microbatch] = ready;
        s->end[pass_of(slot[i])][link][slot[i].microbatch] = ready + time;
    }
    s->next[stage] += actions;
    return actions;
}

/* The time from the begin of the first slot to the end of the last. */
static uint64_t simulate(etch_arena *arena, simulation *s)
{
    const uint64_t count = etch_action_count(s->pipe);
    uint64_t left = count * s->pipe->stages, end = 1;
    for (uint32_t stage = 0; stage < s->pipe->stages; stage++)
        s->slots[stage] = etch_actions(arena, s->pipe, stage);
    while (left > 0) {
        const uint64_t before = left;
        for (uint32_t stage = 0; stage < s->pipe->stages; stage++)
            for (uint32_t done = 1; s->next[stage] < count && done > 0; left -= done)
                done = step(s, stage);
        require(s->pipe, left < before, "the stages wait for each other");
    }
    for (uint32_t stage = 0; stage < s->pipe->stages; stage++)
        end = later(end, s->free_at[stage]);
    return end - 1;
}

/* The longest time from a stage's first slot to the end of its last. */
static uint64_t longest_stage(const simulation *s)
{
    uint64_t most = 0;
    for (uint32_t stage = 0; stage < s->pipe->stages; stage++)
        most = later(most, s->free_at[stage] - s->start[stage]);
    return most;
}

static void check_makespan(etch_arena *arena, const etch_pipe *pipe)
{
    simulation *s = ETCH_NEW(arena, simulation);
    s->pipe = pipe;
    const uint64_t each = pipe->trains ? FORWARD_TIME + BACKWARD_TIME : FORWARD_TIME;
    const uint64_t busy = each * pipe->microbatches * pipe->chunks / copies_of(pipe->schedule),
                   end = simulate(arena, s);
    const uint64_t waits = (pipe->trains ? longest_stage(s) : end) - busy;
    /* of all schedules but these the first stage begins first and ends last */
    const char *name = etch_schedule_name(pipe->schedule);
    if (strcmp(name, "zb_h2") != 0 && strcmp(name, "zb_v") != 0 && pipe->trains)
        require(pipe, longest_stage(s) == end, "no stage works from begin to end");
    etch_sym *sym = etch_sym_new(arena);
    const etch_pipe_sizes sizes = sizes_of(sym, pipe);
    const etch_expr bubble =
        etch_mul(sym, etch_bubble_formula(sym, pipe->schedule, &sizes, pipe->trains), number(sym, busy));
    const int order = etch_constant_compare(sym, number(sym, waits), bubble);
    if (etch_bubble_formula_holds(pipe))
        require(pipe, order == 0, "the bubble is not what its formula says");
    else
        require(pipe, order >= 0, "the bubble is less than its formula says");
}

static void all_makespans(etch_arena *arena)
{
    each_pipe(arena, true, check_makespan);
}

START_TEST(test_never_stalls_and_bubble)
{
    etch_with_arena(all_makespans);
}
END_TEST

/* ---- bubbles by halves --------------------------------------------------------------------------------- */

/* What a stage waits, by its halves, as published, and what it waits more with few microbatches. `each`: for
 * each further stage, in F, I and W. */
typedef struct halves_row {
    const char *name;
    bool (*is_published)(const etch_pipe *pipe, const uint64_t *t);
    int64_t (*more)(int64_t stages, int64_t chunks, int64_t micro, const uint64_t *t);
    int64_t each[PASSES];
    /* where that is not published, it is more, and not as much by chance */
    bool is_more;
} halves_row;

static bool weights_fit_forward(const etch_pipe *pipe, const uint64_t *t)
{
    (void)pipe;
    return t[WEIGHTS] <= t[FORWARD];
}

static bool weights_fit_twice(const etch_pipe *pipe, const uint64_t *t)
{
    (void)pipe;
    return t[WEIGHTS] <= t[FORWARD] && 2 * t[WEIGHTS] <= t[FORWARD] + t[BACK];
}

static bool in_falling_order(const etch_pipe *pipe, const uint64_t *t)
{
    (void)pipe;
    return t[WEIGHTS] <= t[FORWARD] && t[FORWARD] <= t[BACK];
}

static bool stages_divide(const etch_pipe *pipe, const uint64_t *t)
{
    (void)t;
    return divides(pipe);
}

static int64_t none_more(int64_t stages, int64_t chunks, int64_t micro, const uint64_t *t)
{
    (void)stages, (void)chunks, (void)micro, (void)t;
    return 0;
}

static int64_t per_chunk(int64_t stages, int64_t chunks, int64_t micro, const uint64_t *t)
{
    const int64_t missing = micro < stages ? stages - micro : 0;
    return (chunks - 1) * missing * (int64_t)(t[FORWARD] + t[BACK] + t[WEIGHTS]);
}

static int64_t up_to_stages(int64_t stages, int64_t chunks, int64_t micro, const uint64_t *t)
{
    (void)chunks;
    return micro < stages ? (stages - micro) * (int64_t)t[WEIGHTS] : 0;
}

static int64_t up_to_twice(int64_t stages, int64_t chunks, int64_t micro, const uint64_t *t)
{
    return up_to_stages(2 * stages - 1, chunks, micro, t);
}

/* Slots of both chunks. */
static int64_t up_to_return(int64_t stages, int64_t chunks, int64_t micro, const uint64_t *t)
{
    const int64_t few = micro < stages ? stages - micro : 0, missing = 2 * stages - 1 - micro;
    const int64_t weights = few ? stages - 1 : missing > 0 ? missing : 0;
    return chunks * (few * (int64_t)t[FORWARD] + weights * (int64_t)t[WEIGHTS]);
}

/* Less where gradients of inputs take longer than forward: the last stage has work for as long, up to a
 * forward slot. Published is (p/2 - 1)(F&B + B - 3W), of p stages on half as many ranks: with F&B all three.
 * */
static int64_t up_to_forward(int64_t stages, int64_t chunks, int64_t micro, const uint64_t *t)
{
    const int64_t f = (int64_t)t[FORWARD], longer = (int64_t)t[BACK] - f;
    (void)chunks, (void)micro;
    if (longer <= 0)
        return 0;
    return (stages - 1) * longer < f ? -(stages - 1) * longer : -f;
}

static const halves_row by_halves[] = {
    {"gpipe", NULL, none_more, {1, 1, 1}, false},
    {"one_f_one_b", NULL, none_more, {1, 1, 1}, false},
    {"interleaved", stages_divide, none_more, {1, 1, 1}, false},
    {"breadth_first", NULL, per_chunk, {1, 1, 1}, false},
    {"zb_h1", weights_fit_forward, up_to_stages, {1, 1, -1}, true},
    {"zb_h2", weights_fit_twice, up_to_twice, {1, 1, -2}, true},
    {"zb_v", in_falling_order, up_to_return, {0, 2, -2}, false},
    {"dualpipev", in_falling_order, up_to_forward, {1, 2, -1}, false},
    {"dualpipe", in_falling_order, up_to_forward, {1, 2, -1}, false},
};

/* (p - 1) times, or (p/2 - 1) from either end, what there is for each, each slot of one of the chunks, and
 * what comes on top. Where that is not published a stage waits for more; of interleaved chunks, for no
 * less. */
static void check_halves(etch_arena *arena, const halves_row *row, const etch_pipe *pipe, const uint64_t *t)
{
    etch_arena *own = etch_arena_new(etch_arena_mem(arena));
    simulation *s = ETCH_NEW(own, simulation);
    s->pipe = pipe;
    s->times = t;
    simulate(own, s);
    const int64_t copies = copies_of(pipe->schedule), p = pipe->stages / copies, v = pipe->chunks;
    const int64_t m = (int64_t)pipe->microbatches / copies;
    const int64_t f = (int64_t)t[FORWARD], i = (int64_t)t[BACK], w = (int64_t)t[WEIGHTS];
    const int64_t waits = (int64_t)longest_stage(s) - m * v * (f + i + w);
    const int64_t published =
        (p - 1) * (row->each[FORWARD] * f + row->each[BACK] * i + row->each[WEIGHTS] * w);
    const int64_t more = row->more(p, v, m, t);
    if (!row->is_published || row->is_published(pipe, t))
        require(pipe, waits == published + more, "the bubble of halves is not as published");
    else
        require(pipe, p == 1 || waits - published >= row->is_more + (more < 0 ? more : 0),
                "the bubble of halves is less");
    etch_arena_free(own);
}

/* All of the times 1 to 4; every number of microbatches up to twice the most stages, then some. */
static void check_times(etch_arena *arena, const halves_row *row, uint32_t stages, uint32_t chunks)
{
    const etch_schedule *schedule = etch_schedule_named(row->name);
    /* where backward is whole, its halves make no difference */
    const uint32_t times = etch_schedule_has_halves(schedule) ? 4 * 4 * 4 : 4 * 4;
    for (uint32_t at = 0; at < times; at++)
        for (uint32_t m = least_micro(schedule, stages, true); m <= MOST_MICRO;
             m += m < 2 * MOST_STAGES + 2 ? 1 : 10) {
            const uint64_t t[PASSES] = {at % 4 + 1, at / 4 % 4 + 1, at / 16 % 4 + 1};
            if (shares_out(schedule, stages, m))
                check_halves(arena, row, &(etch_pipe){schedule, stages, chunks, m, true}, t);
        }
}

static void all_halves(etch_arena *arena)
{
    for (size_t k = 0; k < sizeof by_halves / sizeof *by_halves; k++)
        for (uint32_t stages = 1; stages <= MOST_STAGES; stages++)
            for (uint32_t v = etch_schedule_chunks(etch_schedule_named(by_halves[k].name));
                 v <= lesser(2, chunks_of(etch_schedule_named(by_halves[k].name))); v++)
                check_times(arena, &by_halves[k], stages, v);
}

START_TEST(test_bubbles_by_halves)
{
    etch_with_arena(all_halves);
}
END_TEST

/* ---- in flight ----------------------------------------------------------------------------------------- */

/* From when, and until when, something is held. */
static const int holds[ETCH_HOLD_COUNT][2] = {[ETCH_HOLD_FORWARD_TO_INPUTS] = {FORWARD, BACK},
                                              [ETCH_HOLD_FORWARD_TO_WEIGHTS] = {FORWARD, WEIGHTS},
                                              [ETCH_HOLD_INPUTS_TO_WEIGHTS] = {BACK, WEIGHTS}};

/* The most at a time; of one chunk, or of all (MOST_CHUNKS). Backward as a whole is both of its halves. */
static uint64_t peak(const etch_pipe *pipe, const etch_action *slots, etch_hold hold, uint32_t chunk)
{
    uint64_t now = 0, most = 0;
    for (uint64_t i = 0; i < etch_action_count(pipe); i++) {
        const bool whole = slots[i].kind == ETCH_ACTION_BACKWARD;
        const int first = pass_of(slots[i]), last = whole ? WEIGHTS : first;
        if (chunk < MOST_CHUNKS && slots[i].chunk != chunk)
            continue;
        const bool begins = first <= holds[hold][0] && holds[hold][0] <= last;
        const bool ends = first <= holds[hold][1] && holds[hold][1] <= last;
        now += begins && !ends;
        now -= ends && !begins;
        most = later(most, now);
    }
    return most;
}

/* As published: GPipe m, 1F1B min(m, p - i), interleaved 2 (p - i - 1) + (v - 1) p + 1. */
static uint64_t published(const etch_pipe *pipe, uint32_t stage)
{
    const uint64_t p = pipe->stages, v = pipe->chunks, m = pipe->microbatches;
    const char *name = etch_schedule_name(pipe->schedule);
    if (strcmp(name, "gpipe") == 0)
        return m;
    if (strcmp(name, "one_f_one_b") == 0)
        return lesser(m, p - stage);
    if (strcmp(name, "two_groups") == 0)
        return (m + 1) / 2;
    if (strcmp(name, "zb_h1") == 0) /* of the second halves: as much as the first stage of 1F1B */
        return lesser(m, p);
    if (strcmp(name, "zb_h2") == 0)
        return lesser(m, 2 * p - 1);
    if (strcmp(name, "breadth_first") == 0)
        return m * v;
    if (strcmp(name, "zb_v") == 0) /* chunks that hold half of a stage: as much as the first stage of 1F1B */
        return lesser(2 * p, lesser(m, 2 * p - stage) + lesser(m, stage + 1));
    if (strcmp(name, "dualpipev") == 0) /* one more than two for each stage */
        return 2 * p + 1 < 2 * m ? 2 * p + 1 : 2 * m;
    if (strcmp(name, "dualpipe") == 0) /* one more than one for each stage */
        return lesser(p + 1, m);
    ck_assert_str_eq(name, "interleaved");
    return lesser(m * v, 2 * (p - stage - 1) + (v - 1) * p + 1);
}

/* The most that the order holds of one chunk. */
static void check_chunks(etch_sym *sym, const etch_pipe *pipe, const etch_action *slots, etch_hold hold,
                         uint32_t stage)
{
    const etch_pipe_sizes sizes = sizes_of(sym, pipe);
    for (uint32_t chunk = 0; chunk < pipe->chunks; chunk++)
        require(pipe,
                etch_chunk_in_flight_formula(sym, pipe->schedule, &sizes, pipe->chunks, chunk, hold,
                                             number(sym, stage)) ==
                    number(sym, peak(pipe, slots, hold, chunk)),
                "in flight of a chunk: the formula has another value");
}

static void check_in_flight(etch_arena *arena, const etch_pipe *pipe)
{
    etch_sym *sym = etch_sym_new(arena);
    const etch_pipe_sizes sizes = sizes_of(sym, pipe);
    for (uint32_t stage = 0; stage < pipe->stages; stage++) {
        const etch_action *slots = etch_actions(arena, pipe, stage);
        for (etch_hold hold = 0; hold < ETCH_HOLD_COUNT; hold++) {
            const uint64_t most = peak(pipe, slots, hold, MOST_CHUNKS);
            require(pipe, etch_in_flight(slots, etch_action_count(pipe), hold) == most,
                    "in flight: not what the order holds");
            require(pipe,
                    etch_in_flight_formula(sym, pipe->schedule, &sizes, hold, number(sym, stage)) ==
                        number(sym, most),
                    "in flight: the formula has another value");
            check_chunks(sym, pipe, slots, hold, stage);
        }
        const uint64_t held = peak(pipe, slots, ETCH_HOLD_FORWARD_TO_WEIGHTS, MOST_CHUNKS);
        const uint64_t bound = published(pipe, stage);
        require(pipe, pipe->chunks == 1 || divides(pipe) ? held == bound : held <= bound,
                "in flight: not as published");
    }
}

static void all_in_flight(etch_arena *arena)
{
    each_pipe(arena, false, check_in_flight);
}

START_TEST(test_in_flight)
{
    etch_with_arena(all_in_flight);
}
END_TEST

/* The most chunk-microbatches that a stage holds at a moment: from the begin of its forward to the end of its
 * backward slot. Looks at the begin of each forward slot, as only there the number rises. */
static uint64_t held_in_time(const simulation *s, uint32_t stage)
{
    const etch_pipe *pipe = s->pipe;
    const int last = etch_schedule_has_halves(pipe->schedule) ? WEIGHTS : BACK;
    uint64_t most = 0;
    for (uint64_t i = 0; i < etch_action_count(pipe); i++) {
        const etch_action at = s->slots[stage][i];
        if (at.kind != ETCH_ACTION_FORWARD)
            continue;
        const uint64_t now = s->begin[0][link_of(pipe, stage, at.chunk)][at.microbatch];
        uint64_t held = 0;
        for (uint32_t chunk = 0; chunk < pipe->chunks; chunk++)
            for (uint64_t m = 0; m < pipe->microbatches; m++) {
                const uint32_t link = link_of(pipe, stage, chunk);
                if (!goes_through(pipe, stage, (etch_action){.chunk = chunk, .microbatch = m}))
                    continue;
                held += s->begin[FORWARD][link][m] <= now && now < s->end[last][link][m];
            }
        most = later(most, held);
    }
    return most;
}

static void check_seed(etch_arena *arena, unsigned seed)
{
    srand(seed);
    uint32_t schedules = 0;
    while (etch_schedule_at(schedules) && !etch_schedule_takes_order(etch_schedule_at(schedules)))
        schedules++;
    const etch_schedule *schedule = etch_schedule_at(seed % schedules);
    etch_pipe pipe = {.schedule = schedule,
                      .stages = (uint32_t)(rand() % 8) + 1,
                      .chunks = etch_schedule_has_chunks(schedule) ? (uint32_t)(rand() % 4) + 1
                                                                   : etch_schedule_chunks(schedule),
                      .microbatches = (uint64_t)(rand() % 20) + 1,
                      .trains = true};
    pipe.stages *= copies_of(schedule);
    pipe.microbatches *= copies_of(schedule);
    pipe.microbatches += least_micro(schedule, pipe.stages, true) - copies_of(schedule);
    simulation *s = ETCH_NEW(arena, simulation);
    s->pipe = &pipe;
    s->random = true;
    simulate(arena, s);
    for (uint32_t stage = 0; stage < pipe.stages; stage++)
        require(&pipe, held_in_time(s, stage) <= published(&pipe, stage), "holds more than was published");
}

static void random_durations(etch_arena *arena)
{
    for (unsigned seed = 0; seed < 1000; seed++) {
        etch_arena *own = etch_arena_new(etch_arena_mem(arena));
        check_seed(own, seed);
        etch_arena_free(own);
    }
}

START_TEST(test_random_durations)
{
    etch_with_arena(random_durations);
}
END_TEST

/* The closed form does not walk through slots: sizes at the limits. */
static void sizes_at_the_limits(etch_arena *arena)
{
    const etch_pipe pipe = {.schedule = etch_schedule_named("interleaved"),
                            .stages = ETCH_MOST_STAGES,
                            .chunks = ETCH_MOST_CHUNKS,
                            .microbatches = ETCH_MOST_MICROBATCHES,
                            .trains = true};
    const uint64_t p = ETCH_MOST_STAGES, v = ETCH_MOST_CHUNKS;
    etch_sym *sym = etch_sym_new(arena);
    const etch_pipe_sizes sizes = sizes_of(sym, &pipe);
    ck_assert_uint_eq(etch_action_count(&pipe), (UINT64_C(1) << 53));
    ck_assert(etch_in_flight_formula(sym, pipe.schedule, &sizes, ETCH_HOLD_FORWARD_TO_INPUTS,
                                     number(sym, 0)) == number(sym, 2 * (p - 1) + (v - 1) * p + 1));
    ck_assert(etch_in_flight_formula(sym, pipe.schedule, &sizes, ETCH_HOLD_FORWARD_TO_INPUTS,
                                     number(sym, p - 1)) == number(sym, (v - 1) * p + 1));
}

START_TEST(test_limits)
{
    etch_with_arena(sizes_at_the_limits);
}
END_TEST

/* What holds of the table's schedules holds of any, without a line in the table. */
static void a_schedule_of_ones_own(etch_arena *arena)
{
    each_size(arena, &etch_schedule_two_groups, true, check_slots);
    each_size(arena, &etch_schedule_two_groups, false, check_makespan);
    each_size(arena, &etch_schedule_two_groups, false, check_in_flight);
}

START_TEST(test_own_schedule)
{
    etch_with_arena(a_schedule_of_ones_own);
}
END_TEST

Suite *etch_suite(void)
{
    Suite *suite = suite_create("schedule");
    ETCH_ADD_TESTS(suite, test_every_slot_once, test_never_stalls_and_bubble, test_bubbles_by_halves,
                   test_in_flight, test_random_durations, test_limits, test_own_schedule);
    return suite;
}
