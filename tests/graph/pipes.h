/* Pipelines of every size, as tests of schedules look at them. */
#ifndef ETCH_TEST_PIPES_H
#define ETCH_TEST_PIPES_H

#include "suite.h"

#include "graph/graph.h"
#include "graph/plan/schedules/generator.h"

#include <string.h>

enum { MOST_STAGES = 16, MOST_MICRO = 64, MOST_CHUNKS = 4 };

typedef void (*visit_fn)(etch_arena *arena, const etch_pipe *pipe);

/* The most that are looked at. */
static inline uint32_t chunks_of(const etch_schedule *schedule)
{
    return etch_schedule_has_chunks(schedule) ? MOST_CHUNKS : etch_schedule_chunks(schedule);
}

static inline bool is_named(const etch_schedule *schedule, const char *name)
{
    return strcmp(etch_schedule_name(schedule), name) == 0;
}

/* Chains that each stage has a chunk of: DualPipe's goes through the stages from either end. */
static inline uint32_t copies_of(const etch_schedule *schedule)
{
    return is_named(schedule, "dualpipe") ? 2 : 1;
}

/* DualPipe fills its stages twice before anything comes back. */
static inline uint32_t least_micro(const etch_schedule *schedule, uint32_t stages, bool trains)
{
    const bool is_dual = is_named(schedule, "dualpipe") || is_named(schedule, "dualpipev");
    return trains && is_dual ? 2 * stages : copies_of(schedule);
}

/* As many stages, and microbatches, for each of them. */
static inline bool shares_out(const etch_schedule *schedule, uint64_t stages, uint64_t microbatches)
{
    return stages % copies_of(schedule) == 0 && microbatches % copies_of(schedule) == 0;
}

/* Visits the schedule at every size, each with an arena of its own; only training runs, or both kinds. */
static inline void each_size(etch_arena *arena, const etch_schedule *schedule, bool forward_only_too,
                             visit_fn visit)
{
    for (uint32_t p = 1; p <= MOST_STAGES; p++)
        for (uint32_t m = 1; m <= MOST_MICRO; m++)
            for (uint32_t v = etch_schedule_chunks(schedule); v <= chunks_of(schedule); v++)
                for (int trains = forward_only_too ? 0 : 1; trains < 2; trains++) {
                    if (m < least_micro(schedule, p, trains == 1) || !shares_out(schedule, p, m))
                        continue;
                    etch_arena *own = etch_arena_new(etch_arena_mem(arena));
                    visit(own, &(etch_pipe){schedule, p, v, m, trains == 1});
                    etch_arena_free(own);
                }
}

static inline void each_pipe(etch_arena *arena, bool forward_only_too, visit_fn visit)
{
    const etch_schedule *schedule;
    for (uint32_t k = 0; (schedule = etch_schedule_at(k)) != NULL; k++)
        if (!etch_schedule_takes_order(schedule))
            each_size(arena, schedule, forward_only_too, visit);
}

/* Which link of the chain a chunk of a stage is. Of a chain from either end the first one is the earlier. */
static inline uint32_t link_of(const etch_pipe *pipe, uint32_t stage, uint32_t chunk)
{
    const uint32_t from_end = pipe->stages - 1 - stage;
    if (copies_of(pipe->schedule) == 2)
        return (chunk == 0) == (stage < from_end) ? stage : from_end;
    const char *name = etch_schedule_name(pipe->schedule);
    const bool comes_back = strcmp(name, "zb_v") == 0 || strcmp(name, "dualpipev") == 0;
    if (comes_back && chunk == 1)
        return 2 * pipe->stages - 1 - stage;
    return chunk * pipe->stages + stage;
}

static inline bool divides(const etch_pipe *pipe)
{
    return pipe->microbatches % pipe->stages == 0;
}

static inline void fail_at(const etch_pipe *pipe, const char *what)
{
    ck_abort_msg("%s, %u stages, %u chunks, %u microbatches%s: %s", etch_schedule_name(pipe->schedule),
                 (unsigned)pipe->stages, (unsigned)pipe->chunks, (unsigned)pipe->microbatches,
                 pipe->trains ? "" : ", forward only", what);
}

static inline void require(const etch_pipe *pipe, bool holds, const char *what)
{
    if (!holds)
        fail_at(pipe, what);
}

/* Backward as a whole counts with its first half. */
enum { FORWARD, BACK, WEIGHTS, PASSES };

static inline int pass_of(etch_action action)
{
    static const int passes[] = {[ETCH_ACTION_FORWARD] = FORWARD,
                                 [ETCH_ACTION_BACKWARD] = BACK,
                                 [ETCH_ACTION_INPUT_GRADIENTS] = BACK,
                                 [ETCH_ACTION_WEIGHT_GRADIENTS] = WEIGHTS};
    return passes[action.kind];
}

static inline etch_expr number(etch_sym *sym, uint64_t value)
{
    return etch_int(sym, (int64_t)value);
}

static etch_pipe_sizes sizes_of(etch_sym *sym, const etch_pipe *pipe)
{
    return (etch_pipe_sizes){number(sym, pipe->stages), number(sym, pipe->chunks),
                             number(sym, pipe->microbatches)};
}

#endif
