/* ZB-V (Qi et al. 2023, arXiv 2401.10241, section 6): two chunks in each stage, of which the second comes
 * back from the last stage to the first, and backward in halves. A microbatch turns where it is, so that the
 * first gradients come back early: without a bubble where F, I and W are equal, and stages hold no more than
 * the first one of one forward, one backward.
 *
 * Stage i is a row of phases: forward through chunk 0 until the first microbatch comes back from the later
 * stages; forward through both in turns until its gradients do; chunk 1 forward and backward; then forward
 * and backward through both. In the end the gradients of inputs go first, because others wait for them. Fewer
 * than 2p - 1 microbatches are filled up with others, whose actions are left out. */
#include "graph/plan/schedules/generator.h"

/* ---- actions ------------------------------------------------------------------------------------------ */

typedef struct row {
    etch_action_list *list;
    uint64_t microbatches;
    /* by kind and chunk: those so far */
    uint64_t done[ETCH_ACTION_COUNT][2];
} row;

static void add(row *r, etch_action_kind kind, uint32_t chunk)
{
    const uint64_t microbatch = r->done[kind][chunk]++;
    if (microbatch < r->microbatches)
        etch_action_add(r->list, kind, chunk, microbatch);
}

static void forward(row *r, uint32_t chunk)
{
    add(r, ETCH_ACTION_FORWARD, chunk);
}

static void backward(row *r, uint32_t chunk)
{
    add(r, ETCH_ACTION_INPUT_GRADIENTS, chunk);
    add(r, ETCH_ACTION_WEIGHT_GRADIENTS, chunk);
}

/* The second halves that are left of a chunk. */
static void weights(row *r, uint32_t chunk)
{
    while (r->done[ETCH_ACTION_WEIGHT_GRADIENTS][chunk] < r->done[ETCH_ACTION_INPUT_GRADIENTS][chunk])
        add(r, ETCH_ACTION_WEIGHT_GRADIENTS, chunk);
}

static void train(row *r, const etch_pipe *pipe, uint32_t stage)
{
    const uint64_t after = pipe->stages - stage, least = 2 * (uint64_t)pipe->stages - 1;
    const uint64_t total = pipe->microbatches < least ? least : pipe->microbatches;
    for (uint64_t k = 0; k < 2 * after - 1; k++)
        forward(r, 0);
    for (uint32_t k = 0; k < stage; k++) {
        forward(r, 1);
        forward(r, 0);
    }
    for (uint64_t k = 0; k < after; k++) {
        forward(r, 1);
        backward(r, 1);
    }
    while (r->done[ETCH_ACTION_FORWARD][1] < total) {
        if (r->done[ETCH_ACTION_FORWARD][0] < total)
            forward(r, 0);
        backward(r, 0);
        forward(r, 1);
        backward(r, 1);
    }
    for (uint32_t k = 0; k < stage; k++) {
        add(r, ETCH_ACTION_INPUT_GRADIENTS, 0);
        add(r, ETCH_ACTION_INPUT_GRADIENTS, 1);
    }
    for (uint64_t k = 0; k < after; k++) {
        add(r, ETCH_ACTION_INPUT_GRADIENTS, 0);
        add(r, ETCH_ACTION_WEIGHT_GRADIENTS, 0);
    }
    weights(r, 1);
    weights(r, 0);
}

static void actions(etch_action_list *list, const etch_pipe *pipe, uint32_t stage)
{
    row r = {.list = list, .microbatches = pipe->microbatches};
    if (pipe->trains)
        train(&r, pipe, stage);
    else
        etch_actions_to_and_fro(list, pipe, stage);
}

/* ---- closed forms ------------------------------------------------------------------------------------- */

static etch_expr positive(etch_sym *sym, etch_expr value)
{
    return etch_max(sym, etch_int(sym, 0), value);
}

static etch_expr twice(etch_sym *sym, etch_expr value)
{
    return etch_mul(sym, etch_int(sym, 2), value);
}

/* 2p - 1 - m, or 0: microbatches that are filled up. */
static etch_expr missing(etch_sym *sym, const etch_pipe_sizes *sizes)
{
    const etch_expr least = etch_sub(sym, twice(sym, sizes->stages), etch_int(sym, 1));
    return positive(sym, etch_sub(sym, least, sizes->microbatches));
}

/* Of chunk 0 min(m, 2p - i), of chunk 1 min(m, i + 1), until the first half and until the second. Between
 * both: 1 + min(i, m - p) or 1, and i less the missing ones, or 1. */
static etch_expr chunk_in_flight(etch_sym *sym, const etch_pipe_sizes *sizes, uint32_t chunks, uint32_t chunk,
                                 etch_hold hold, etch_expr stage)
{
    const etch_expr one = etch_int(sym, 1), micro = sizes->microbatches;
    (void)chunks;
    if (hold != ETCH_HOLD_INPUTS_TO_WEIGHTS)
        return etch_min(sym, micro,
                        chunk == 0 ? etch_sub(sym, twice(sym, sizes->stages), stage)
                                   : etch_add(sym, stage, one));
    if (chunk == 1)
        return etch_max(sym, one, etch_sub(sym, stage, missing(sym, sizes)));
    return etch_add(sym, one, positive(sym, etch_min(sym, stage, etch_sub(sym, micro, sizes->stages))));
}

/* min(2p, min(m, 2p - i) + min(m, i + 1)): as much as p microbatches in both chunks. */
static etch_expr in_flight(etch_sym *sym, const etch_pipe_sizes *sizes, etch_expr stage)
{
    const etch_expr first = chunk_in_flight(sym, sizes, 2, 0, ETCH_HOLD_FORWARD_TO_INPUTS, stage);
    const etch_expr second = chunk_in_flight(sym, sizes, 2, 1, ETCH_HOLD_FORWARD_TO_INPUTS, stage);
    return etch_min(sym, twice(sym, sizes->stages), etch_add(sym, first, second));
}

/* 1 + max(0, min(i, m - p)) + max(0, i - max(0, 2p - 1 - m)) */
static etch_expr between_halves(etch_sym *sym, const etch_pipe_sizes *sizes, etch_expr stage)
{
    const etch_expr first = chunk_in_flight(sym, sizes, 2, 0, ETCH_HOLD_INPUTS_TO_WEIGHTS, stage);
    return etch_add(sym, first, positive(sym, etch_sub(sym, stage, missing(sym, sizes))));
}

/* max(0, 2p - 1 - m) / (3m), as F, I and W are equal: 0 from 2p - 1 microbatches on, as published. */
static etch_expr bubble(etch_sym *sym, const etch_pipe_sizes *sizes)
{
    return etch_div(sym, missing(sym, sizes), etch_mul(sym, etch_int(sym, 3), sizes->microbatches));
}

const etch_schedule etch_schedule_zb_v = {.name = "zb_v",
                                          .chunks = 2,
                                          .map = ETCH_MAP_MIRRORED,
                                          .has_halves = true,
                                          .actions = actions,
                                          .in_flight = in_flight,
                                          .until_weights = in_flight,
                                          .between_halves = between_halves,
                                          .chunk_in_flight = chunk_in_flight,
                                          .bubble = bubble,
                                          .bubble_is_exact = true};
