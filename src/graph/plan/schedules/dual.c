/* What DualPipe and DualPipeV have in common (DeepSeek-AI 2024, arXiv 2412.19437; the order of actions is
 * that of github.com/deepseek-ai/DualPipe). A stage has two chunks of the model, of which the first is the
 * earlier one. Most forward actions share a slot with a backward one, so that what each sends, all-to-alls
 * above all, passes while the other computes.
 *
 * Stage i of p is a row of phases: forward through chunk 0; forward through both chunks in turns; chunk 1
 * back in halves, and forward; then slots of a forward and a backward action, the chunks in turns; as forward
 * runs out, backward alone, in the end in halves, of which the second ones fill what would be waiting. It
 * trains with 2p microbatches in each chunk or more. */
#include "graph/plan/schedules/generator.h"

/* ---- actions ------------------------------------------------------------------------------------------ */

typedef struct row {
    etch_action_list *list;
    /* by chunk: those so far */
    uint64_t forward[2], inputs[2], weights[2];
} row;

static void forward(row *r, uint32_t chunk)
{
    etch_action_add(r->list, ETCH_ACTION_FORWARD, chunk, r->forward[chunk]++);
}

static void inputs(row *r, uint32_t chunk)
{
    etch_action_add(r->list, ETCH_ACTION_INPUT_GRADIENTS, chunk, r->inputs[chunk]++);
}

static void weights(row *r, uint32_t chunk)
{
    etch_action_add(r->list, ETCH_ACTION_WEIGHT_GRADIENTS, chunk, r->weights[chunk]++);
}

/* Both halves in one slot: the gradients of inputs leave at its end. */
static void backward(row *r, uint32_t chunk)
{
    inputs(r, chunk);
    etch_action_add_to_slot(r->list, ETCH_ACTION_WEIGHT_GRADIENTS, chunk, r->weights[chunk]++);
}

static void forward_and_backward(row *r, uint32_t chunk)
{
    const uint32_t other = 1 - chunk;
    forward(r, chunk);
    etch_action_add_to_slot(r->list, ETCH_ACTION_INPUT_GRADIENTS, other, r->inputs[other]++);
    etch_action_add_to_slot(r->list, ETCH_ACTION_WEIGHT_GRADIENTS, other, r->weights[other]++);
}

/* The end of a row: `mine` microbatches are still to go back through each chunk, and `after` more through
 * chunk 0. Of the first ones as many go in one slot as there are second halves at the very end. */
static void drain(row *r, uint64_t mine, uint64_t after)
{
    for (uint64_t k = 0; k < 2 * mine; k++) {
        const uint32_t chunk = 1 - (uint32_t)(k % 2);
        if (k < mine)
            backward(r, chunk);
        else
            inputs(r, chunk);
    }
    for (uint64_t k = mine; k < 2 * mine + after; k++) {
        weights(r, k < 2 * mine ? 1 - (uint32_t)(k % 2) : 0);
        if (k - mine < after)
            inputs(r, 0);
    }
}

static void train(row *r, const etch_pipe *pipe, uint32_t stage)
{
    const uint64_t mine = (uint64_t)stage + 1, after = pipe->stages - mine;
    for (uint64_t k = 0; k < 2 * after; k++)
        forward(r, 0);
    for (uint64_t k = 0; k < mine; k++) {
        forward(r, 0);
        forward(r, 1);
    }
    for (uint64_t k = 0; k < after; k++) {
        inputs(r, 1);
        weights(r, 1);
        forward(r, 1);
    }
    for (uint64_t k = 0; k + 2 * (uint64_t)pipe->stages < pipe->microbatches + mine; k++) {
        if (k > 0 || after > 0) {
            forward_and_backward(r, 0);
        } else { /* the last stage does not let the others wait for its first gradients */
            forward(r, 0);
            backward(r, 1);
        }
        forward_and_backward(r, 1);
    }
    for (uint64_t k = 0; k < after; k++) {
        backward(r, 1);
        forward_and_backward(r, 1);
    }
    drain(r, mine, after);
}

void etch_actions_dual(etch_action_list *list, const etch_pipe *pipe, uint32_t stage)
{
    row r = {.list = list};
    if (pipe->trains)
        train(&r, pipe, stage);
    else
        etch_actions_to_and_fro(list, pipe, stage);
}

/* As in forward_and_backward. */
bool etch_dual_pairs(const etch_schedule *schedule, const etch_pipe_sizes *sizes, etch_expr stage,
                     uint32_t forward, uint32_t backward)
{
    (void)schedule;
    (void)sizes;
    (void)stage;
    return forward != backward;
}

/* ---- closed forms, of 2p microbatches in each chunk and more ------------------------------------------- */

static etch_expr twice(etch_sym *sym, etch_expr value)
{
    return etch_mul(sym, etch_int(sym, 2), value);
}

/* Until either half of chunk 0 min(m, 2p - i), of chunk 1 min(m, i + 1). Between the halves of chunk 0
 * min(i + 1, ceil(p/2)), of chunk 1 max(1, floor((i + 1)/2)). */
etch_expr etch_dual_chunk_in_flight(etch_sym *sym, const etch_pipe_sizes *sizes, uint32_t chunks,
                                    uint32_t chunk, etch_hold hold, etch_expr stage)
{
    const etch_expr one = etch_int(sym, 1), two = etch_int(sym, 2), mine = etch_add(sym, stage, one);
    (void)chunks;
    if (hold != ETCH_HOLD_INPUTS_TO_WEIGHTS)
        return etch_min(sym, sizes->microbatches,
                        chunk == 0 ? etch_sub(sym, twice(sym, sizes->stages), stage) : mine);
    return chunk == 0 ? etch_min(sym, mine, etch_ceil(sym, etch_div(sym, sizes->stages, two)))
                      : etch_max(sym, one, etch_floor_div(sym, mine, two));
}

/* min(2p + 1, min(m, 2p - i) + min(m, i + 1)): as published, one chunk more than p microbatches in both. */
etch_expr etch_dual_in_flight(etch_sym *sym, const etch_pipe_sizes *sizes, etch_expr stage)
{
    const etch_expr most = etch_add(sym, twice(sym, sizes->stages), etch_int(sym, 1));
    const etch_expr first = etch_dual_chunk_in_flight(sym, sizes, 2, 0, ETCH_HOLD_FORWARD_TO_INPUTS, stage);
    const etch_expr second = etch_dual_chunk_in_flight(sym, sizes, 2, 1, ETCH_HOLD_FORWARD_TO_INPUTS, stage);
    return etch_min(sym, most, etch_add(sym, first, second));
}

etch_expr etch_dual_between_halves(etch_sym *sym, const etch_pipe_sizes *sizes, etch_expr stage)
{
    (void)sizes;
    return etch_add(sym, stage, etch_int(sym, 1));
}

/* (p - 1)/(3m): published as (p - 1)(F&B + B - 3W), where F, I and W are equal, B is I and W, and F&B all
 * three. */
etch_expr etch_dual_bubble(etch_sym *sym, const etch_pipe_sizes *sizes)
{
    return etch_div(sym, etch_bubble_of_others(sym, sizes), etch_int(sym, 3));
}
