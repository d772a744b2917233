/* Interleaved one forward, one backward (Narayanan et al. 2021, arXiv 2104.04473): every stage holds v
 * chunks.
 *
 * Microbatches go in groups of p: the first group through chunk 0, then through chunk 1, and so on, backward
 * from the last chunk to the first. A last group of fewer is filled up with microbatches whose actions are
 * left out in the end. What remains keeps the order of a schedule that does not stall, so it cannot stall
 * either, and it holds no more. Taking the smaller group as it is would stall: of 4 stages with 3 chunks and
 * 5 microbatches, each would wait for another. */
#include "graph/plan/schedules/generator.h"

/* ---- actions ------------------------------------------------------------------------------------------ */

/* Actions in one direction, those that fill up the last group counted. */
static uint64_t filled_count(const etch_pipe *pipe)
{
    const uint64_t groups = (pipe->microbatches + pipe->stages - 1) / pipe->stages;
    return groups * pipe->stages * pipe->chunks;
}

/* Adds the k-th of these actions. */
static void add_filled(etch_action_list *list, const etch_pipe *pipe, uint64_t k, bool backward)
{
    const uint64_t group_size = (uint64_t)pipe->stages * pipe->chunks;
    const uint64_t group = k / group_size, within = k % group_size;
    const uint32_t chunk = (uint32_t)(within / pipe->stages);
    const uint64_t microbatch = group * pipe->stages + within % pipe->stages;
    if (microbatch < pipe->microbatches)
        etch_action_add(list, backward ? ETCH_ACTION_BACKWARD : ETCH_ACTION_FORWARD,
                        backward ? pipe->chunks - 1 - chunk : chunk, microbatch);
}

static void actions(etch_action_list *list, const etch_pipe *pipe, uint32_t stage)
{
    const uint64_t total = filled_count(pipe);
    const uint64_t warmup =
        2 * (uint64_t)(pipe->stages - stage - 1) + (uint64_t)(pipe->chunks - 1) * pipe->stages;
    const uint64_t lead = pipe->trains && warmup < total ? warmup : total;
    for (uint64_t k = 0; k < total + lead; k++) {
        if (k < total)
            add_filled(list, pipe, k, false);
        if (pipe->trains && k >= lead)
            add_filled(list, pipe, k - lead, true);
    }
}

/* ---- closed forms ----------------------------------------------------------------------------------- */

/* (v - 1) min(m, p) + min(m, 2 (p - i - 1) + 1): the published 2 (p - i - 1) + (v - 1) p + 1, at most m v,
 * where the stages divide the microbatches, and no more elsewhere. */
static etch_expr in_flight(etch_sym *sym, const etch_pipe_sizes *sizes, etch_expr stage)
{
    const etch_expr one = etch_int(sym, 1), micro = sizes->microbatches;
    const etch_expr after = etch_sub(sym, etch_sub(sym, sizes->stages, stage), one);
    const etch_expr first = etch_add(sym, etch_mul(sym, etch_int(sym, 2), after), one);
    return etch_add(sym,
                    etch_mul(sym, etch_sub(sym, sizes->chunks, one), etch_min(sym, micro, sizes->stages)),
                    etch_min(sym, micro, first));
}

/* Forward actions take chunk c for the p actions from cp on of every pv, backward actions from (v - 1 - c)p
 * on, and w + 1 actions later, w the warmup. So what is under way of a chunk rises by p in p actions and
 * falls in another p; how these overlap depends on 2c + 1 against v, and on the stage only where one of them
 * ends in the other. */
static etch_expr chunk_in_flight(etch_sym *sym, const etch_pipe_sizes *sizes, uint32_t chunks, uint32_t chunk,
                                 etch_hold hold, etch_expr stage)
{
    (void)hold;
    const etch_expr zero = etch_int(sym, 0), p = sizes->stages, twice_p = etch_mul(sym, etch_int(sym, 2), p);
    const etch_expr after = etch_add(sym, etch_mul(sym, etch_int(sym, 2), stage), etch_int(sym, 1));
    const etch_expr beyond = etch_max(sym, zero, etch_sub(sym, after, p));
    const uint64_t at = 2 * (uint64_t)chunk + 1;
    etch_expr count = at < chunks ? twice_p : p;
    if (at == chunks)
        count = etch_sub(sym, twice_p, etch_min(sym, p, after));
    if (at + 1 == chunks || chunk + 1 == chunks)
        count = etch_sub(sym, count, beyond);
    return etch_min(sym, sizes->microbatches, count);
}

/* (p - 1) / (m v) */
static etch_expr bubble(etch_sym *sym, const etch_pipe_sizes *sizes)
{
    return etch_div(sym, etch_bubble_of_others(sym, sizes), sizes->chunks);
}

const etch_schedule etch_schedule_interleaved = {.name = "interleaved",
                                                 .has_chunks = true,
                                                 .actions = actions,
                                                 .in_flight = in_flight,
                                                 .chunk_in_flight = chunk_in_flight,
                                                 .bubble = bubble};
