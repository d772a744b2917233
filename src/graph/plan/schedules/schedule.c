/* The table of schedules, and what is asked of any. */
#include <string.h>

#include "graph/plan/schedules/generator.h"

/* ---- the table -------------------------------------------------------------------------------------- */

static const etch_schedule *const schedules[ETCH_SCHEDULE_COUNT] = {
    [ETCH_SCHEDULE_GPIPE] = &etch_schedule_gpipe,
    [ETCH_SCHEDULE_ONE_F_ONE_B] = &etch_schedule_one_f_one_b,
    [ETCH_SCHEDULE_INTERLEAVED] = &etch_schedule_interleaved,
};

const etch_schedule *etch_schedule_at(uint32_t index)
{
    return index < ETCH_SCHEDULE_COUNT ? schedules[index] : NULL;
}

const etch_schedule *etch_schedule_named(const char *name)
{
    for (uint32_t i = 0; i < ETCH_SCHEDULE_COUNT; i++)
        if (strcmp(schedules[i]->name, name) == 0)
            return schedules[i];
    return NULL;
}

const etch_schedule *etch_schedule_default(void)
{
    return &etch_schedule_one_f_one_b;
}

const char *etch_schedule_name(const etch_schedule *schedule)
{
    return schedule->name;
}

etch_schedule_kind etch_schedule_kind_of(const etch_schedule *schedule)
{
    unsigned kind = 0;
    while (kind < ETCH_SCHEDULE_COUNT && schedules[kind] != schedule)
        kind++;
    return (etch_schedule_kind)kind;
}

const char *etch_schedule_kind_name(etch_schedule_kind kind)
{
    return (unsigned)kind < ETCH_SCHEDULE_COUNT ? schedules[kind]->name : NULL;
}

bool etch_schedule_has_chunks(const etch_schedule *schedule)
{
    return schedule->has_chunks;
}

/* ---- actions ------------------------------------------------------------------------------------------ */

uint64_t etch_action_count(const etch_pipe *pipe)
{
    return pipe->microbatches * pipe->chunks * (pipe->trains ? 2 : 1);
}

const etch_action *etch_actions(etch_arena *arena, const etch_pipe *pipe, uint32_t stage)
{
    etch_action_list list = {ETCH_NEW_ARRAY(arena, (size_t)etch_action_count(pipe), etch_action), 0};
    pipe->schedule->actions(&list, pipe, stage);
    return list.at;
}

uint64_t etch_in_flight(const etch_action *actions, uint64_t count)
{
    uint64_t now = 0, most = 0;
    for (uint64_t i = 0; i < count; i++) {
        now = actions[i].backward ? now - 1 : now + 1;
        most = now > most ? now : most;
    }
    return now == 0 ? most : 0; /* else nothing goes back */
}

/* ---- formulas --------------------------------------------------------------------------------------- */

etch_expr etch_in_flight_formula(etch_sym *sym, const etch_schedule *schedule, const etch_pipe_sizes *sizes,
                                 etch_expr stage)
{
    return schedule->in_flight(sym, sizes, stage);
}

etch_expr etch_chunk_in_flight_formula(etch_sym *sym, const etch_schedule *schedule,
                                       const etch_pipe_sizes *sizes, uint32_t chunks, uint32_t chunk,
                                       etch_expr stage)
{
    if (schedule->chunk_in_flight && chunks > 1)
        return schedule->chunk_in_flight(sym, sizes, chunks, chunk, stage);
    const etch_pipe_sizes one_chunk = {sizes->stages, etch_int(sym, 1), sizes->microbatches};
    return schedule->in_flight(sym, &one_chunk, stage);
}

etch_expr etch_bubble_formula(etch_sym *sym, const etch_schedule *schedule, const etch_pipe_sizes *sizes)
{
    return schedule->bubble(sym, sizes);
}
