/* Breadth first (Lamy-Poirier 2022, arXiv 2211.05953): GPipe with v chunks in every stage. All microbatches
 * go through chunk 0, then through chunk 1, and so on, backward from the last chunk to the first, so that a
 * stage is done with one chunk after the other. */
#include "graph/plan/schedules/generator.h"

static void actions(etch_action_list *list, const etch_pipe *pipe, uint32_t stage)
{
    (void)stage;
    for (uint32_t chunk = 0; chunk < pipe->chunks; chunk++)
        for (uint64_t m = 0; m < pipe->microbatches; m++)
            etch_action_add(list, ETCH_ACTION_FORWARD, chunk, m);
    for (uint32_t chunk = pipe->trains ? pipe->chunks : 0; chunk-- > 0;)
        for (uint64_t m = 0; m < pipe->microbatches; m++)
            etch_action_add(list, ETCH_ACTION_BACKWARD, chunk, m);
}

/* m v */
static etch_expr in_flight(etch_sym *sym, const etch_pipe_sizes *sizes, etch_expr stage)
{
    (void)stage;
    return etch_mul(sym, sizes->microbatches, sizes->chunks);
}

/* m */
static etch_expr chunk_in_flight(etch_sym *sym, const etch_pipe_sizes *sizes, uint32_t chunks, uint32_t chunk,
                                 etch_hold hold, etch_expr stage)
{
    (void)hold;
    (void)sym;
    (void)chunks;
    (void)chunk;
    (void)stage;
    return sizes->microbatches;
}

/* (p - 1 + (v - 1) max(p - m, 0)) / (m v): with fewer microbatches than stages the first stage waits between
 * its chunks, too. */
static etch_expr bubble(etch_sym *sym, const etch_pipe_sizes *sizes)
{
    const etch_expr one = etch_int(sym, 1), zero = etch_int(sym, 0);
    const etch_expr missing = etch_max(sym, zero, etch_sub(sym, sizes->stages, sizes->microbatches));
    const etch_expr between = etch_mul(sym, etch_sub(sym, sizes->chunks, one), missing);
    return etch_div(sym, etch_add(sym, etch_sub(sym, sizes->stages, one), between),
                    etch_mul(sym, sizes->microbatches, sizes->chunks));
}

const etch_schedule etch_schedule_breadth_first = {.name = "breadth_first",
                                                   .has_chunks = true,
                                                   .actions = actions,
                                                   .in_flight = in_flight,
                                                   .chunk_in_flight = chunk_in_flight,
                                                   .bubble = bubble,
                                                   .bubble_is_exact = true};
