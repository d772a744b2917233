/* Pipeline schedules.
 *
 * All of them are one pattern (Narayanan et al. 2021, arXiv 2104.04473): a stage takes its forward actions in
 * one order and its backward actions in another; some forward actions come first (the warmup), then forward
 * and backward take turns, then the rest goes backward. They differ in the length of the warmup.
 *
 * With chunks, microbatches go in groups of p: the first group through chunk 0, then through chunk 1, and so
 * on, backward from the last chunk to the first. A last group of fewer is filled up with microbatches whose
 * slots are left out in the end. What remains keeps the order of a schedule that does not stall, so it cannot
 * stall either, and it holds no more. Taking the smaller group as it is would stall: of 4 stages with 3
 * chunks and 5 microbatches, each would wait for another. */
#include <string.h>

#include "graph/plan/schedules/schedule.h"

struct etch_schedule {
    const char *name;
    bool has_chunks;
    /* forward actions before the first pair */
    uint64_t (*warmup)(const etch_pipe *pipe, uint32_t stage);
    etch_expr (*in_flight)(etch_sym *sym, const etch_pipe_sizes *sizes, etch_expr after);
};

/* ---- the table -------------------------------------------------------------------------------------- */

/* `after`: how many stages follow. */

static uint64_t warmup_gpipe(const etch_pipe *pipe, uint32_t stage)
{
    (void)stage;
    return pipe->microbatches;
}

static etch_expr in_flight_gpipe(etch_sym *sym, const etch_pipe_sizes *sizes, etch_expr after)
{
    (void)sym;
    (void)after;
    return sizes->microbatches;
}

static uint64_t warmup_one_f_one_b(const etch_pipe *pipe, uint32_t stage)
{
    return pipe->stages - stage - 1;
}

/* min(m, p - i) */
static etch_expr in_flight_one_f_one_b(etch_sym *sym, const etch_pipe_sizes *sizes, etch_expr after)
{
    return etch_min(sym, sizes->microbatches, etch_add(sym, after, etch_int(sym, 1)));
}

static uint64_t warmup_interleaved(const etch_pipe *pipe, uint32_t stage)
{
    const uint64_t after = pipe->stages - stage - 1;
    return 2 * after + (uint64_t)(pipe->chunks - 1) * pipe->stages;
}

/* (v - 1) min(m, p) + min(m, 2 (p - i - 1) + 1): the published 2 (p - i - 1) + (v - 1) p + 1, at most m v,
 * where the stages divide the microbatches, and no more elsewhere. */
static etch_expr in_flight_interleaved(etch_sym *sym, const etch_pipe_sizes *sizes, etch_expr after)
{
    const etch_expr one = etch_int(sym, 1), micro = sizes->microbatches;
    const etch_expr first = etch_add(sym, etch_mul(sym, etch_int(sym, 2), after), one);
    return etch_add(sym,
                    etch_mul(sym, etch_sub(sym, sizes->chunks, one), etch_min(sym, micro, sizes->stages)),
                    etch_min(sym, micro, first));
}

static const etch_schedule schedules[] = {
    {"gpipe", false, warmup_gpipe, in_flight_gpipe},
    {"one_f_one_b", false, warmup_one_f_one_b, in_flight_one_f_one_b},
    {"interleaved", true, warmup_interleaved, in_flight_interleaved},
};
enum { DEFAULT = 1, SCHEDULE_COUNT = sizeof schedules / sizeof *schedules };

const etch_schedule *etch_schedule_at(uint32_t index)
{
    return index < SCHEDULE_COUNT ? &schedules[index] : NULL;
}

const etch_schedule *etch_schedule_named(const char *name)
{
    for (uint32_t i = 0; i < SCHEDULE_COUNT; i++)
        if (strcmp(schedules[i].name, name) == 0)
            return &schedules[i];
    return NULL;
}

const etch_schedule *etch_schedule_default(void)
{
    return &schedules[DEFAULT];
}

const char *etch_schedule_name(const etch_schedule *schedule)
{
    return schedule->name;
}

bool etch_schedule_has_chunks(const etch_schedule *schedule)
{
    return schedule->has_chunks;
}

/* ---- slots ------------------------------------------------------------------------------------------ */

uint64_t etch_action_count(const etch_pipe *pipe)
{
    return pipe->microbatches * pipe->chunks * (pipe->trains ? 2 : 1);
}

/* Slots in one direction, those that fill up the last group counted. */
static uint64_t filled_count(const etch_pipe *pipe)
{
    const uint64_t groups = (pipe->microbatches + pipe->stages - 1) / pipe->stages;
    return groups * pipe->stages * pipe->chunks;
}

/* The k-th of these actions. */
static etch_action filled_action(const etch_pipe *pipe, uint64_t k, bool backward)
{
    const uint64_t group_size = (uint64_t)pipe->stages * pipe->chunks;
    const uint64_t group = k / group_size, within = k % group_size;
    const uint32_t chunk = (uint32_t)(within / pipe->stages);
    return (etch_action){.backward = backward,
                         .chunk = backward ? pipe->chunks - 1 - chunk : chunk,
                         .microbatch = group * pipe->stages + within % pipe->stages};
}

typedef struct action_list {
    const etch_pipe *pipe;
    etch_action *at;
    uint64_t count;
} action_list;

static void add_action(action_list *list, uint64_t k, bool backward)
{
    const etch_action action = filled_action(list->pipe, k, backward);
    if (action.microbatch < list->pipe->microbatches)
        list->at[list->count++] = action;
}

const etch_action *etch_actions(etch_arena *arena, const etch_pipe *pipe, uint32_t stage)
{
    const uint64_t total = filled_count(pipe);
    uint64_t lead = pipe->trains ? pipe->schedule->warmup(pipe, stage) : total;
    if (lead > total)
        lead = total;
    action_list list = {pipe, ETCH_NEW_ARRAY(arena, (size_t)etch_action_count(pipe), etch_action), 0};
    for (uint64_t k = 0; k < total + lead; k++) {
        if (k < total)
            add_action(&list, k, false);
        if (pipe->trains && k >= lead)
            add_action(&list, k - lead, true);
    }
    return list.at;
}

uint64_t etch_in_flight(const etch_pipe *pipe, uint32_t stage)
{
    if (!pipe->trains)
        return 0;
    /* Most are under way when the first forward slot after the warmup has begun. */
    const uint64_t begun = pipe->schedule->warmup(pipe, stage) + 1;
    const uint64_t group_size = (uint64_t)pipe->stages * pipe->chunks;
    const uint64_t group = begun / group_size, before = group * pipe->stages;
    if (before >= pipe->microbatches)
        return pipe->microbatches * pipe->chunks;
    const uint64_t left = pipe->microbatches - before;
    const uint64_t size = left < pipe->stages ? left : pipe->stages;
    const uint64_t through = begun % group_size / pipe->stages, last = begun % group_size % pipe->stages;
    return before * pipe->chunks + through * size + (last < size ? last : size);
}

/* ---- formulas --------------------------------------------------------------------------------------- */

etch_expr etch_in_flight_formula(etch_sym *sym, const etch_schedule *schedule, const etch_pipe_sizes *sizes,
                                 etch_expr stage)
{
    const etch_expr following = etch_add(sym, stage, etch_int(sym, 1));
    return schedule->in_flight(sym, sizes, etch_sub(sym, sizes->stages, following));
}

/* Forward slots take chunk c for the p slots from cp on of every pv, backward actions from (v - 1 - c)p on,
 * and w + 1 slots later, w the warmup. So what is under way of a chunk rises by p in a window of p slots and
 * falls in another; how these overlap depends on 2c + 1 against v, and on the stage only where one of them
 * ends in the other. */
etch_expr etch_chunk_in_flight_formula(etch_sym *sym, const etch_schedule *schedule,
                                       const etch_pipe_sizes *sizes, uint32_t chunks, uint32_t chunk,
                                       etch_expr stage)
{
    const etch_expr zero = etch_int(sym, 0), p = sizes->stages, twice_p = etch_mul(sym, etch_int(sym, 2), p);
    const etch_expr after = etch_add(sym, etch_mul(sym, etch_int(sym, 2), stage), etch_int(sym, 1));
    const etch_expr beyond = etch_max(sym, zero, etch_sub(sym, after, p));
    const uint64_t at = 2 * (uint64_t)chunk + 1;
    etch_expr count;
    if (!schedule->has_chunks || chunks == 1)
        return etch_in_flight_formula(sym, schedule,
                                      &(etch_pipe_sizes){p, etch_int(sym, 1), sizes->microbatches}, stage);
    if (at == chunks)
        count = etch_sub(sym, twice_p, etch_min(sym, p, after));
    else
        count = at < chunks ? twice_p : p;
    if (at + 1 == chunks || chunk + 1 == chunks)
        count = etch_sub(sym, count, beyond);
    return etch_min(sym, sizes->microbatches, count);
}

etch_expr etch_bubble_formula(etch_sym *sym, const etch_schedule *schedule, const etch_pipe_sizes *sizes)
{
    const etch_expr others = etch_sub(sym, sizes->stages, etch_int(sym, 1));
    const etch_expr bubble = etch_div(sym, others, sizes->microbatches);
    return schedule->has_chunks ? etch_div(sym, bubble, sizes->chunks) : bubble;
}
