/* list("F0 F1 B0 B1", "F0 B0 F1 B1"): an order that a plan writes itself, a string for each stage.
 *
 * Such a schedule is made for its plan; the one of the table only has the name. There are no closed forms:
 * what is in flight is counted along the actions, which are of one number of stages and of microbatches. */
#include "graph/plan/schedules/generator.h"

#include <inttypes.h>

enum { FORWARD, INPUTS, WEIGHTS, PASSES };

static int first_pass(etch_action action)
{
    return action.kind == ETCH_ACTION_FORWARD
               ? FORWARD
               : (action.kind == ETCH_ACTION_WEIGHT_GRADIENTS ? WEIGHTS : INPUTS);
}

static int last_pass(etch_action action)
{
    return action.kind == ETCH_ACTION_FORWARD ? FORWARD : etch_action_ends(action) ? WEIGHTS : INPUTS;
}

/* ---- every action once --------------------------------------------------------------------------------- */

static etch_action of_pass(const etch_action_order *order, int pass, uint64_t place)
{
    static const etch_action_kind kinds[] = {[FORWARD] = ETCH_ACTION_FORWARD,
                                             [INPUTS] = ETCH_ACTION_INPUT_GRADIENTS,
                                             [WEIGHTS] = ETCH_ACTION_WEIGHT_GRADIENTS};
    const bool whole = pass == INPUTS && !order->has_halves;
    return (etch_action){.kind = whole ? ETCH_ACTION_BACKWARD : kinds[pass],
                         .chunk = (uint32_t)(place % order->chunks),
                         .microbatch = place / order->chunks};
}

/* `seen`: by pass and by microbatch and chunk, 1 + where the action stands. Microbatches beyond the number of
 * actions are not noted: then one before them is missing. */
static bool note_action(const etch_action_order *order, uint32_t stage, uint64_t at, uint64_t *seen[PASSES],
                        etch_order_fault *fault)
{
    const etch_action action = order->actions[stage][at];
    const uint64_t place = action.microbatch * order->chunks + action.chunk;
    if (place > order->counts[stage])
        return true;
    for (int pass = first_pass(action); pass <= last_pass(action); pass++) {
        if (seen[pass][place]) {
            *fault = (etch_order_fault){
                .kind = ETCH_ORDER_TWICE, .stage = stage, .at = at, .before = seen[pass][place] - 1};
            return false;
        }
        if (pass > FORWARD && !seen[pass - 1][place]) {
            *fault = (etch_order_fault){.kind = ETCH_ORDER_EARLY,
                                        .stage = stage,
                                        .at = at,
                                        .needed = of_pass(order, pass - 1, place)};
            return false;
        }
        seen[pass][place] = at + 1;
    }
    return true;
}

/* Does the microbatch go through the chunk? Of a chain that is there more than once those of its copy do. */
static bool passes(const etch_action_order *order, uint32_t stage, uint64_t place)
{
    const etch_chunk_place chunk = {stage, (uint32_t)(place % order->chunks)};
    return place / order->chunks % etch_chunk_copies(order->map) ==
           etch_chunk_copy(order->map, order->stages, chunk);
}

static bool check_stage(etch_arena *arena, const etch_action_order *order, uint32_t stage,
                        etch_order_fault *fault)
{
    const uint64_t count = order->counts[stage], all = order->microbatches * order->chunks;
    uint64_t *seen[PASSES];
    for (int pass = FORWARD; pass < PASSES; pass++)
        seen[pass] = ETCH_NEW_ARRAY(arena, (size_t)count + 1, uint64_t);
    for (uint64_t i = 0; i < count; i++)
        if (!note_action(order, stage, i, seen, fault))
            return false;
    for (uint64_t place = 0; place < all && place <= count; place++)
        for (int pass = FORWARD; pass < PASSES; pass++)
            if (!seen[pass][place] && passes(order, stage, place)) {
                *fault = (etch_order_fault){
                    .kind = ETCH_ORDER_MISSING, .stage = stage, .needed = of_pass(order, pass, place)};
                return false;
            }
    return true;
}

/* ---- does it stall? ------------------------------------------------------------------------------------ */

typedef struct running {
    const etch_action_order *order;
    /* by stage */
    uint64_t *next;
    /* of forward, and of backward or its first half, by model chunk and microbatch */
    bool *done[2];
} running;

static bool *done_at(const running *r, bool back, uint64_t model_chunk, uint64_t microbatch)
{
    return &r->done[back][model_chunk * r->order->microbatches + microbatch];
}

/* What an action of the stage waits for that another one, or the stage itself, has yet to do. Its own earlier
 * passes stand before it. False: nothing. */
static bool waits_at(const running *r, uint32_t stage, uint64_t at, uint32_t *other, etch_action *needed)
{
    const etch_action_order *order = r->order;
    const etch_action action = order->actions[stage][at];
    const etch_chunk_place here = {stage, action.chunk};
    const uint64_t model_chunk = etch_model_chunk(order->map, order->stages, here);
    const bool back = action.kind != ETCH_ACTION_FORWARD;
    const uint64_t end = back ? etch_model_chunk_count(order->map, order->stages, order->chunks) - 1 : 0;
    if (action.kind == ETCH_ACTION_WEIGHT_GRADIENTS || model_chunk == end)
        return false;
    const uint64_t source = back ? model_chunk + 1 : model_chunk - 1;
    if (*done_at(r, back, source, action.microbatch))
        return false;
    const etch_chunk_place place = etch_chunk_place_of(
        order->map, order->stages, etch_chunk_copy(order->map, order->stages, here), source);
    *other = place.stage;
    *needed = of_pass(order, back ? INPUTS : FORWARD, action.microbatch * order->chunks + place.chunk);
    return true;
}

static uint64_t slot_end(const running *r, uint32_t stage)
{
    return etch_slot_end(r->order->actions[stage], r->order->counts[stage], r->next[stage]);
}

/* What the next slot of the stage waits for: it begins when all of its actions can. `at`: which of them. */
static bool waits(const running *r, uint32_t stage, uint64_t *at, uint32_t *other, etch_action *needed)
{
    const uint64_t end = slot_end(r, stage);
    for (*at = r->next[stage]; *at < end; ++*at)
        if (waits_at(r, stage, *at, other, needed))
            return true;
    return false;
}

static void run_slot(running *r, uint32_t stage)
{
    const etch_action_order *order = r->order;
    const uint64_t end = slot_end(r, stage);
    for (; r->next[stage] < end; r->next[stage]++) {
        const etch_action action = order->actions[stage][r->next[stage]];
        const uint64_t model_chunk =
            etch_model_chunk(order->map, order->stages, (etch_chunk_place){stage, action.chunk});
        if (action.kind != ETCH_ACTION_WEIGHT_GRADIENTS)
            *done_at(r, action.kind != ETCH_ACTION_FORWARD, model_chunk, action.microbatch) = true;
    }
}

static void advance(running *r)
{
    uint64_t at;
    uint32_t other;
    etch_action needed;
    for (bool moved = true; moved;) {
        moved = false;
        for (uint32_t stage = 0; stage < r->order->stages; stage++)
            for (; r->next[stage] < r->order->counts[stage] && !waits(r, stage, &at, &other, &needed);
                 moved = true)
                run_slot(r, stage);
    }
}

/* Follows who waits for whom from a stage that does not end until one comes again: from there on it is a
 * cycle. */
static void find_cycle(etch_arena *arena, const running *r, uint32_t stage, etch_order_fault *fault)
{
    const uint32_t stages = r->order->stages;
    bool *met = ETCH_NEW_ARRAY(arena, stages, bool);
    etch_order_wait *cycle = ETCH_NEW_ARRAY(arena, stages, etch_order_wait);
    uint64_t at = 0;
    uint32_t other = 0, count = 0;
    etch_action needed = {0};
    while (!met[stage]) {
        met[stage] = true;
        waits(r, stage, &at, &other, &needed);
        stage = other;
    }
    const uint32_t first = stage;
    do {
        waits(r, stage, &at, &other, &needed);
        cycle[count++] = (etch_order_wait){.stage = stage, .at = at, .needed = needed, .other = other};
        stage = other;
    } while (stage != first);
    *fault = (etch_order_fault){
        .kind = ETCH_ORDER_STALL, .stage = first, .at = cycle[0].at, .cycle = cycle, .cycle_count = count};
}

static bool check_progress(etch_arena *arena, const etch_action_order *order, etch_order_fault *fault)
{
    const size_t cells = (size_t)(order->microbatches * order->chunks * order->stages);
    running r = {.order = order, .next = ETCH_NEW_ARRAY(arena, order->stages, uint64_t)};
    r.done[0] = ETCH_NEW_ARRAY(arena, cells, bool);
    r.done[1] = ETCH_NEW_ARRAY(arena, cells, bool);
    advance(&r);
    for (uint32_t stage = 0; stage < order->stages; stage++)
        if (r.next[stage] < order->counts[stage]) {
            find_cycle(arena, &r, stage, fault);
            return false;
        }
    return true;
}

bool etch_order_check(etch_arena *arena, const etch_action_order *order, etch_order_fault *fault)
{
    for (uint32_t stage = 0; stage < order->stages; stage++)
        if (!check_stage(arena, order, stage, fault))
            return false;
    return check_progress(arena, order, fault);
}

/* ---- the schedule -------------------------------------------------------------------------------------- */

/* Where other actions are halves, backward as a whole is both of them. */
static void actions(etch_action_list *list, const etch_pipe *pipe, uint32_t stage)
{
    const etch_action_order *order = pipe->schedule->order;
    for (uint64_t i = 0; i < order->counts[stage]; i++) {
        const etch_action action = order->actions[stage][i];
        if (action.kind != ETCH_ACTION_FORWARD && !pipe->trains)
            continue;
        const bool parts = action.kind == ETCH_ACTION_BACKWARD && order->has_halves;
        list->at[list->count] = action;
        list->at[list->count++].kind = parts ? ETCH_ACTION_INPUT_GRADIENTS : action.kind;
        if (!parts)
            continue;
        list->at[list->count] = action;
        list->at[list->count++].kind = ETCH_ACTION_WEIGHT_GRADIENTS;
    }
}

static bool pairs_on(const etch_action_order *order, uint32_t stage, uint32_t forward, uint32_t backward)
{
    const etch_action *actions = order->actions[stage];
    bool found = false;
    for (uint64_t i = 0; i < order->counts[stage] && !found; i++) {
        const bool begins = actions[i].kind == ETCH_ACTION_FORWARD && actions[i].chunk == forward;
        const uint64_t end = etch_slot_end(actions, order->counts[stage], i);
        for (uint64_t k = i + 1; k < end && begins; k++)
            found = found || actions[k].chunk == backward;
    }
    return found;
}

static bool pairs(const etch_schedule *schedule, const etch_pipe_sizes *sizes, etch_expr stage,
                  uint32_t forward, uint32_t backward)
{
    (void)sizes;
    const etch_action_order *order = schedule->order;
    uint64_t number;
    if (etch_to_u64(stage, &number) && number < order->stages)
        return pairs_on(order, (uint32_t)number, forward, backward);
    for (uint32_t i = 0; i < order->stages; i++)
        if (pairs_on(order, i, forward, backward))
            return true;
    return false;
}

const etch_schedule *etch_order_schedule(etch_arena *arena, const etch_action_order *order)
{
    etch_schedule *schedule = ETCH_NEW(arena, etch_schedule);
    *schedule = etch_schedule_list;
    schedule->order = order;
    schedule->has_halves = order->has_halves;
    schedule->overlaps = order->overlaps;
    schedule->map = order->map;
    return schedule;
}

const etch_schedule etch_schedule_list = {
    .name = "list", .takes_order = true, .actions = actions, .pairs = pairs};

/* ---- in flight ----------------------------------------------------------------------------------------- */

/* The most of what is held that is of this chunk; ETCH_ALL_CHUNKS: of any. */
static uint64_t most_held(const etch_action_order *order, uint32_t stage, etch_hold hold, uint32_t chunk)
{
    uint64_t now = 0, most = 0;
    for (uint64_t i = 0; i < order->counts[stage]; i++) {
        const etch_action action = order->actions[stage][i];
        const int first = first_pass(action), last = last_pass(action);
        const int from = hold == ETCH_HOLD_INPUTS_TO_WEIGHTS ? INPUTS : FORWARD;
        const int to = hold == ETCH_HOLD_FORWARD_TO_INPUTS ? INPUTS : WEIGHTS;
        if (chunk != ETCH_ALL_CHUNKS && action.chunk != chunk)
            continue;
        /* halves without a pause: between them it is held, too */
        now += first <= from && from <= last;
        most = now > most ? now : most;
        now -= first <= to && to <= last;
    }
    return most;
}

/* 1 for the stage of this number, else 0. A stage without a number is not the first one. */
static etch_expr is_stage(etch_sym *sym, etch_expr stage, uint32_t number)
{
    const etch_expr at = etch_int(sym, number), one = etch_int(sym, 1), zero = etch_int(sym, 0);
    const etch_expr apart = etch_max(sym, etch_sub(sym, stage, at), etch_sub(sym, at, stage));
    return etch_max(sym, zero, etch_sub(sym, one, apart));
}

etch_expr etch_order_in_flight(etch_sym *sym, const etch_schedule *schedule, etch_hold hold, uint32_t chunk,
                               etch_expr stage)
{
    const etch_action_order *order = schedule->order;
    uint64_t number;
    etch_expr sum = etch_int(sym, 0);
    if (hold == ETCH_HOLD_INPUTS_TO_WEIGHTS && !order->has_halves)
        return sum;
    if (etch_to_u64(stage, &number) && number < order->stages)
        return etch_int(sym, (int64_t)most_held(order, (uint32_t)number, hold, chunk));
    for (uint32_t i = 0; i < order->stages; i++)
        sum = etch_add(
            sym, sum,
            etch_mul(sym, is_stage(sym, stage, i), etch_int(sym, (int64_t)most_held(order, i, hold, chunk))));
    return sum;
}
