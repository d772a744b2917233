/* DualPipe (DeepSeek-AI 2024, arXiv 2412.19437): the chain of p stages is there twice, once from the first to
 * the last and once from the last to the first. A stage holds two chunks, which are those of its mirror image
 * as well, and half of the microbatches come from either end. Folded in the middle it is DualPipeV of p/2
 * stages and half of the microbatches: stages i and p - 1 - i do the same, with microbatches of their own.
 * See dual.c. */
#include "graph/plan/schedules/generator.h"

static uint32_t folded_stage(const etch_pipe *pipe, uint32_t stage)
{
    return stage < pipe->stages / 2 ? stage : pipe->stages - 1 - stage;
}

/* The n-th microbatch of the copies: all of them have one, before the first has another. */
static void actions(etch_action_list *list, const etch_pipe *pipe, uint32_t stage)
{
    etch_pipe folded = *pipe;
    folded.stages = pipe->stages / 2;
    folded.microbatches = pipe->microbatches / 2;
    etch_actions_dual(list, &folded, folded_stage(pipe, stage));
    for (uint64_t i = 0; i < list->count; i++) {
        const etch_chunk_place place = {stage, list->at[i].chunk};
        list->at[i].microbatch =
            2 * list->at[i].microbatch + etch_chunk_copy(ETCH_MAP_DUPLICATED, pipe->stages, place);
    }
}

/* ---- closed forms, of an even number of stages and of 2p microbatches and more, an even number --------- */

/* min(i, p - 1 - i) */
static etch_expr folded_number(etch_sym *sym, const etch_pipe_sizes *sizes, etch_expr stage)
{
    const etch_expr after = etch_sub(sym, etch_sub(sym, sizes->stages, etch_int(sym, 1)), stage);
    return etch_min(sym, stage, after);
}

static etch_expr chunk_in_flight(etch_sym *sym, const etch_pipe_sizes *sizes, uint32_t chunks, uint32_t chunk,
                                 etch_hold hold, etch_expr stage)
{
    const etch_pipe_sizes folded = etch_pipe_sizes_folded(sym, sizes);
    return etch_dual_chunk_in_flight(sym, &folded, chunks, chunk, hold, folded_number(sym, sizes, stage));
}

/* p + 1 of both chunks at most, as published. */
static etch_expr in_flight(etch_sym *sym, const etch_pipe_sizes *sizes, etch_expr stage)
{
    const etch_pipe_sizes folded = etch_pipe_sizes_folded(sym, sizes);
    return etch_dual_in_flight(sym, &folded, folded_number(sym, sizes, stage));
}

static etch_expr between_halves(etch_sym *sym, const etch_pipe_sizes *sizes, etch_expr stage)
{
    const etch_pipe_sizes folded = etch_pipe_sizes_folded(sym, sizes);
    return etch_dual_between_halves(sym, &folded, folded_number(sym, sizes, stage));
}

/* (p - 2)/(3m): published as (p/2 - 1)(F&B + B - 3W). */
static etch_expr bubble(etch_sym *sym, const etch_pipe_sizes *sizes)
{
    const etch_pipe_sizes folded = etch_pipe_sizes_folded(sym, sizes);
    return etch_dual_bubble(sym, &folded);
}

/* Of 2 stages, which are the last one when folded, the first forward action through chunk 0 that may share a
 * slot is that of microbatch 4. */
static bool pairs(const etch_schedule *schedule, const etch_pipe_sizes *sizes, etch_expr stage,
                  uint32_t forward, uint32_t backward)
{
    uint64_t stages, microbatches;
    const bool is_least = etch_to_u64(sizes->stages, &stages) && stages == 2 &&
                          etch_to_u64(sizes->microbatches, &microbatches) && microbatches == 4;
    return etch_dual_pairs(schedule, sizes, stage, forward, backward) && !(is_least && forward == 0);
}

const etch_schedule etch_schedule_dualpipe = {.name = "dualpipe",
                                              .chunks = 2,
                                              .map = ETCH_MAP_DUPLICATED,
                                              .has_halves = true,
                                              .overlaps = true,
                                              .pairs = pairs,
                                              .least_for_stage = 2,
                                              .actions = actions,
                                              .in_flight = in_flight,
                                              .until_weights = in_flight,
                                              .between_halves = between_halves,
                                              .chunk_in_flight = chunk_in_flight,
                                              .bubble = bubble,
                                              .bubble_is_exact = true};
