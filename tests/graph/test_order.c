/* Orders that plans list: those of the table's schedules are taken, others just when they do not stall. */
#include "suite.h"

#include "graph/graph.h"
#include "graph/plan/schedules/generator.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_STAGES = 4, MOST_MICRO = 8, MOST_CHUNKS = 3 };

static etch_action_order *order_of(etch_arena *arena, const etch_pipe *pipe)
{
    const etch_action **actions = ETCH_NEW_ARRAY(arena, pipe->stages, const etch_action *);
    uint64_t *counts = ETCH_NEW_ARRAY(arena, pipe->stages, uint64_t);
    for (uint32_t stage = 0; stage < pipe->stages; stage++) {
        actions[stage] = etch_actions(arena, pipe, stage);
        counts[stage] = etch_action_count(pipe);
    }
    etch_action_order *order = ETCH_NEW(arena, etch_action_order);
    *order = (etch_action_order){.stages = pipe->stages,
                                 .chunks = pipe->chunks,
                                 .map = etch_schedule_map(pipe->schedule),
                                 .microbatches = pipe->microbatches,
                                 .has_halves = etch_schedule_has_halves(pipe->schedule),
                                 .actions = actions,
                                 .counts = counts};
    return order;
}

static etch_pipe listed_pipe(etch_arena *arena, const etch_action_order *order, bool trains)
{
    return (etch_pipe){etch_order_schedule(arena, order), order->stages, order->chunks, order->microbatches,
                       trains};
}

static bool same(etch_action a, etch_action b)
{
    return a.kind == b.kind && a.chunk == b.chunk && a.microbatch == b.microbatch && a.overlaps == b.overlaps;
}

/* ---- the table's orders -------------------------------------------------------------------------------- */

/* The most that is held at a time, counted action by action. */
static uint64_t peak(const etch_pipe *pipe, const etch_action *slots, etch_hold hold, uint32_t chunk)
{
    uint64_t now = 0, most = 0;
    for (uint64_t i = 0; i < etch_action_count(pipe); i++) {
        const etch_action_kind kind = slots[i].kind;
        const bool inputs = kind == ETCH_ACTION_INPUT_GRADIENTS,
                   weights = kind == ETCH_ACTION_WEIGHT_GRADIENTS;
        const bool whole = kind == ETCH_ACTION_BACKWARD, between = hold == ETCH_HOLD_INPUTS_TO_WEIGHTS;
        if (chunk < pipe->chunks && slots[i].chunk != chunk)
            continue;
        now += between ? inputs : kind == ETCH_ACTION_FORWARD;
        now -= (whole && !between) || (hold == ETCH_HOLD_FORWARD_TO_INPUTS ? inputs : weights);
        most = now > most ? now : most;
    }
    return most;
}

/* Of each stage by its number, and of the stage number i, which as a variable is at least 1. */
static void check_counts(etch_arena *arena, const etch_pipe *pipe)
{
    etch_sym *sym = etch_sym_new(arena);
    const etch_expr i = etch_var(sym, "i");
    const etch_pipe_sizes sizes = {etch_int(sym, pipe->stages), etch_int(sym, pipe->chunks),
                                   etch_int(sym, (int64_t)pipe->microbatches)};
    for (uint32_t stage = 0; stage < pipe->stages; stage++)
        for (etch_hold hold = 0; hold < ETCH_HOLD_COUNT; hold++) {
            const etch_action *slots = etch_actions(arena, pipe, stage);
            const etch_expr number = etch_int(sym, stage);
            const etch_expr any = etch_in_flight_formula(sym, pipe->schedule, &sizes, hold, i);
            const etch_expr own = etch_in_flight_formula(sym, pipe->schedule, &sizes, hold, number);
            ck_assert_ptr_eq(own, etch_int(sym, (int64_t)peak(pipe, slots, hold, UINT32_MAX)));
            ck_assert(stage == 0 || etch_subst(sym, any, 1, &i, &number) == own);
            for (uint32_t chunk = 0; chunk < pipe->chunks; chunk++)
                ck_assert_ptr_eq(etch_chunk_in_flight_formula(sym, pipe->schedule, &sizes, pipe->chunks,
                                                              chunk, hold, number),
                                 etch_int(sym, (int64_t)peak(pipe, slots, hold, chunk)));
        }
}

/* Listed, it is itself. */
static void check_listed(etch_arena *arena, const etch_pipe *pipe)
{
    const etch_action_order *order = order_of(arena, pipe);
    etch_order_fault fault;
    ck_assert_msg(etch_order_check(arena, order, &fault), "%s is refused",
                  etch_schedule_name(pipe->schedule));
    const etch_pipe listed = listed_pipe(arena, order, true);
    ck_assert_str_eq(etch_schedule_name(listed.schedule), "list");
    ck_assert_int_eq(etch_schedule_kind_of(listed.schedule), ETCH_SCHEDULE_LIST);
    ck_assert(!etch_bubble_formula_holds(&listed));
    ck_assert_uint_eq(etch_action_count(&listed), etch_action_count(pipe));
    for (uint32_t stage = 0; stage < pipe->stages; stage++) {
        const etch_action *actions = etch_actions(arena, &listed, stage);
        for (uint64_t i = 0; i < etch_action_count(pipe); i++)
            ck_assert(same(actions[i], order->actions[stage][i]));
    }
    check_counts(arena, &listed);
}

/* DualPipe has as many stages and microbatches from either end. */
static bool shares_out(const etch_schedule *schedule, uint32_t stages, uint32_t microbatches)
{
    return strcmp(etch_schedule_name(schedule), "dualpipe") != 0 ||
           (stages % 2 == 0 && microbatches % 2 == 0);
}

static void table_as_lists(etch_arena *arena)
{
    const etch_schedule *schedule;
    for (uint32_t k = 0; !etch_schedule_takes_order(schedule = etch_schedule_at(k)); k++)
        for (uint32_t p = 1; p <= MOST_STAGES; p++)
            for (uint32_t m = 1; m <= MOST_MICRO; m++)
                for (uint32_t v = etch_schedule_chunks(schedule); /* DualPipe has two for each stage */
                     (m >= 2 * p || !etch_schedule_overlaps(schedule)) && shares_out(schedule, p, m) &&
                     v <= (etch_schedule_has_chunks(schedule) ? MOST_CHUNKS : etch_schedule_chunks(schedule));
                     v++)
                    check_listed(arena, &(etch_pipe){schedule, p, v, m, true});
}

START_TEST(test_listed_orders)
{
    etch_with_memory((size_t)1 << 30, table_as_lists);
}
END_TEST

/* ---- others -------------------------------------------------------------------------------------------- */

/* Does every stage come to its end? Looks anew at all that has been done before each action. */
static bool runs(const etch_action_order *order)
{
    uint64_t next[MOST_STAGES] = {0}, left = 0;
    bool done[2][MOST_STAGES * MOST_CHUNKS][MOST_MICRO] = {{{false}}};
    const uint32_t last = order->stages * order->chunks - 1;
    for (uint32_t stage = 0; stage < order->stages; stage++)
        left += order->counts[stage];
    for (uint64_t before = left + 1; left < before;) {
        before = left;
        for (uint32_t stage = 0; stage < order->stages; stage++) {
            if (next[stage] == order->counts[stage])
                continue;
            const etch_action action = order->actions[stage][next[stage]];
            const bool comes_back = order->map == ETCH_MAP_MIRRORED && action.chunk % 2 == 1;
            const uint32_t link =
                action.chunk * order->stages + (comes_back ? order->stages - 1 - stage : stage);
            const bool forward = action.kind == ETCH_ACTION_FORWARD, back = etch_action_goes_back(action);
            if ((forward && link > 0 && !done[0][link - 1][action.microbatch]) ||
                (back && link < last && !done[1][link + 1][action.microbatch]))
                continue;
            if (forward || back)
                done[back][link][action.microbatch] = true;
            next[stage]++;
            left--;
        }
    }
    return left == 0;
}

/* Swaps neighbours of a stage that are of different microbatches or chunks: each stage alone stays right. */
static void shuffle(etch_action *actions, uint64_t count, int swaps)
{
    for (int i = 0; i < swaps; i++) {
        const uint64_t at = (uint64_t)rand() % (count - 1);
        const etch_action first = actions[at], second = actions[at + 1];
        if (first.microbatch == second.microbatch && first.chunk == second.chunk)
            continue;
        actions[at] = second;
        actions[at + 1] = first;
    }
}

/* Each stage of the cycle waits for what the next one does no earlier than what it waits at itself. */
static void check_cycle(const etch_action_order *order, const etch_order_fault *fault)
{
    ck_assert_int_eq(fault->kind, ETCH_ORDER_STALL);
    ck_assert_uint_gt(fault->cycle_count, 0);
    for (uint32_t i = 0; i < fault->cycle_count; i++) {
        const etch_order_wait *wait = &fault->cycle[i], *next = &fault->cycle[(i + 1) % fault->cycle_count];
        uint64_t at = 0;
        ck_assert_uint_eq(wait->other, next->stage);
        while (at < order->counts[next->stage] && !same(order->actions[next->stage][at], wait->needed))
            at++;
        ck_assert_uint_lt(at, order->counts[next->stage]);
        ck_assert_uint_ge(at, next->at);
    }
}

static bool check_shuffled(etch_arena *arena, unsigned seed)
{
    static const char *const names[] = {"one_f_one_b", "interleaved", "zb_h1", "breadth_first", "zb_v"};
    srand(seed);
    const etch_schedule *schedule = etch_schedule_named(names[seed % 5]);
    const etch_pipe pipe = {.schedule = schedule,
                            .stages = (uint32_t)(rand() % MOST_STAGES) + 1,
                            .chunks = etch_schedule_has_chunks(schedule) ? (uint32_t)(rand() % 3) + 1
                                                                         : etch_schedule_chunks(schedule),
                            .microbatches = (uint64_t)(rand() % 4) + 2,
                            .trains = true};
    const etch_action_order *order = order_of(arena, &pipe);
    for (uint32_t stage = 0; stage < pipe.stages; stage++)
        shuffle((etch_action *)(uintptr_t)order->actions[stage], order->counts[stage], rand() % 12);
    etch_order_fault fault;
    const bool taken = etch_order_check(arena, order, &fault);
    if (!taken)
        check_cycle(order, &fault);
    ck_assert_msg(taken == runs(order), "seed %u: it %s", seed, taken ? "stalls" : "does not stall");
    return taken;
}

static void shuffled_orders(etch_arena *arena)
{
    uint32_t taken = 0, all = 2000;
    for (unsigned seed = 0; seed < all; seed++)
        taken += check_shuffled(arena, seed);
    ck_assert_uint_gt(taken, all / 10);
    ck_assert_uint_lt(taken, all - all / 10);
}

START_TEST(test_shuffled_orders)
{
    etch_with_memory((size_t)1 << 30, shuffled_orders);
}
END_TEST

/* ---- by hand ------------------------------------------------------------------------------------------- */

/* F1&B0: the slot begins when both can. Stage 0 stalls where stage 1 wants microbatch 1 first, and would not
 * if its forward action had a slot of its own. */
static void shared_slots(etch_arena *arena)
{
    for (int shares = 0; shares < 2; shares++)
        for (int waits = 0; waits < 2; waits++) {
            const etch_action first[] = {{ETCH_ACTION_FORWARD, 0, 0, false},
                                         {ETCH_ACTION_FORWARD, 0, 1, false},
                                         {ETCH_ACTION_BACKWARD, 0, 0, shares},
                                         {ETCH_ACTION_BACKWARD, 0, 1, false}};
            const etch_action second[] = {{ETCH_ACTION_FORWARD, 0, 0, false},
                                          first[waits ? 1 : 2],
                                          first[waits ? 2 : 1],
                                          {ETCH_ACTION_BACKWARD, 0, 1, false}};
            etch_action own[4];
            memcpy(own, second, sizeof own);
            own[waits ? 2 : 1].overlaps = false;
            const etch_action *const actions[] = {first, own};
            const uint64_t counts[] = {4, 4};
            const etch_action_order order = {2, 1, 2, false, actions, counts, ETCH_MAP_LOOPED, shares};
            etch_order_fault fault;
            ck_assert_int_eq(etch_order_check(arena, &order, &fault), !(shares && waits));
            if (!(shares && waits))
                continue;
            ck_assert_int_eq(fault.kind, ETCH_ORDER_STALL);
            ck_assert_uint_eq(fault.cycle_count, 2);
            for (uint32_t i = 0; i < 2; i++) /* stage 0 for its B0, the second one of the slot */
                ck_assert_uint_eq(fault.cycle[i].at, fault.cycle[i].stage == 0 ? 2 : 1);
        }
}

START_TEST(test_shared_slots)
{
    etch_with_arena(shared_slots);
}
END_TEST

/* Where an order has halves, backward as a whole is both; without training only forward is left. */
static void mixed_order(etch_arena *arena)
{
    const etch_action listed[] = {{ETCH_ACTION_FORWARD, 0, 0, false},
                                  {ETCH_ACTION_FORWARD, 0, 1, false},
                                  {ETCH_ACTION_INPUT_GRADIENTS, 0, 0, false},
                                  {ETCH_ACTION_BACKWARD, 0, 1, false},
                                  {ETCH_ACTION_WEIGHT_GRADIENTS, 0, 0, false}};
    const etch_action expected[] = {listed[0],
                                    listed[1],
                                    listed[2],
                                    {ETCH_ACTION_INPUT_GRADIENTS, 0, 1, false},
                                    {ETCH_ACTION_WEIGHT_GRADIENTS, 0, 1, false},
                                    listed[4]};
    const etch_action *const actions[] = {listed};
    const uint64_t counts[] = {5};
    const etch_action_order order = {1, 1, 2, true, actions, counts, ETCH_MAP_LOOPED, false};
    etch_order_fault fault;
    ck_assert(etch_order_check(arena, &order, &fault));
    const etch_pipe pipe = listed_pipe(arena, &order, true), forward = listed_pipe(arena, &order, false);
    ck_assert_uint_eq(etch_action_count(&pipe), 6);
    ck_assert_uint_eq(etch_action_count(&forward), 2);
    for (uint32_t i = 0; i < 6; i++)
        ck_assert(same(etch_actions(arena, &pipe, 0)[i], expected[i]));
    for (uint32_t i = 0; i < 2; i++)
        ck_assert(same(etch_actions(arena, &forward, 0)[i], expected[i]));
    check_counts(arena, &pipe);
}

START_TEST(test_mixed_order)
{
    etch_with_arena(mixed_order);
}
END_TEST

/* F0 F1 B0 B1 with one action another one; of two microbatches and one stage. */
static void faults(etch_arena *arena)
{
    const struct {
        uint64_t at;
        etch_action instead;
        etch_order_fault_kind kind;
        uint64_t told;
        etch_action needed;
    } rows[] = {
        {1, {ETCH_ACTION_FORWARD, 0, 0, false}, ETCH_ORDER_TWICE, 1, {0}},
        {3, {ETCH_ACTION_BACKWARD, 0, 0, false}, ETCH_ORDER_TWICE, 3, {0}},
        {0, {ETCH_ACTION_BACKWARD, 0, 0, false}, ETCH_ORDER_EARLY, 0, {ETCH_ACTION_FORWARD, 0, 0, false}},
        {3,
         {ETCH_ACTION_WEIGHT_GRADIENTS, 0, 1, false},
         ETCH_ORDER_EARLY,
         3,
         {ETCH_ACTION_INPUT_GRADIENTS, 0, 1, false}},
        {3,
         {ETCH_ACTION_INPUT_GRADIENTS, 0, 1, false},
         ETCH_ORDER_MISSING,
         0,
         {ETCH_ACTION_WEIGHT_GRADIENTS, 0, 1, false}},
        {1,
         {ETCH_ACTION_FORWARD, 0, 900000000, false},
         ETCH_ORDER_EARLY,
         3,
         {ETCH_ACTION_FORWARD, 0, 1, false}},
    };
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        etch_action listed[] = {{ETCH_ACTION_FORWARD, 0, 0, false},
                                {ETCH_ACTION_FORWARD, 0, 1, false},
                                {ETCH_ACTION_BACKWARD, 0, 0, false},
                                {ETCH_ACTION_BACKWARD, 0, 1, false}};
        listed[rows[k].at] = rows[k].instead;
        const etch_action *const actions[] = {listed};
        const uint64_t counts[] = {4};
        etch_action_order order = {
            1, 1, 2, rows[k].instead.kind > ETCH_ACTION_BACKWARD, actions, counts, ETCH_MAP_LOOPED, false};
        if (rows[k].instead.microbatch >= 2)
            order.microbatches = rows[k].instead.microbatch + 1;
        etch_order_fault fault = {0};
        ck_assert(!etch_order_check(arena, &order, &fault));
        ck_assert_int_eq(fault.kind, rows[k].kind);
        ck_assert_uint_eq(fault.at, rows[k].told);
        ck_assert(rows[k].kind == ETCH_ORDER_TWICE || same(fault.needed, rows[k].needed));
    }
}

START_TEST(test_faults)
{
    etch_with_arena(faults);
}
END_TEST

Suite *etch_suite(void)
{
    Suite *suite = suite_create("order");
    ETCH_ADD_TESTS(suite, test_listed_orders, test_shuffled_orders, test_mixed_order, test_faults,
                   test_shared_slots);
    return suite;
}
