#include "exec_alive.h"
#include "exec_check.h"
#include "exec_traffic.h"

#include "graph/cost/cost_int.h"

/* The action in which a step was run. */
static uint32_t action_at(const exec_slots *s, uint32_t stage, uint32_t time)
{
    uint32_t action = 0;
    while (action + 1 < s->action_count && s->began[stage][action + 1] <= time)
        action++;
    return action;
}

/* The most of some sizes at a time; each is there from `from[i]` to `to[i]`, both included. */
typedef struct timeline {
    uint64_t *begun, *ended;
    uint32_t length;
} timeline;

static timeline timeline_new(etch_arena *arena, uint32_t length)
{
    return (timeline){ETCH_NEW_ARRAY(arena, length + 1, uint64_t),
                      ETCH_NEW_ARRAY(arena, length + 1, uint64_t), length};
}

static void add(const timeline *t, uint32_t from, uint32_t to, uint64_t bytes)
{
    t->begun[from] += bytes;
    t->ended[to] += bytes;
}

static uint64_t most_of(const timeline *t)
{
    uint64_t most = 0, now = 0;
    for (uint32_t i = 0; i < t->length; i++) {
        now += t->begun[i];
        most = now > most ? now : most;
        now -= t->ended[i];
    }
    return most;
}

/* The most in the steps of an action. */
static uint64_t most_in(const exec_slots *s, uint32_t stage, const timeline *t, uint32_t action)
{
    const bool is_last = action + 1 == s->action_count;
    const uint32_t from = s->began[stage][action], end = is_last ? t->length : s->began[stage][action + 1];
    uint64_t most = 0, now = 0;
    for (uint32_t i = 0; i < end; i++) {
        now += t->begun[i];
        most = i >= from && now > most ? now : most;
        now -= t->ended[i];
    }
    return most;
}

/* The most of slots that a forward and a backward action share: they may be at any of their steps at once.
 * `always`: what is there all the time, and once. */
static uint64_t most_of_shared(const exec_slots *s, uint32_t stage, const timeline *t, uint64_t always)
{
    const etch_action *actions = s->actions[stage];
    uint64_t most = 0;
    for (uint32_t i = 0; i < s->action_count; i++) {
        uint64_t back = 0;
        const uint64_t end = etch_slot_end(actions, s->action_count, i);
        for (uint32_t k = i + 1; k < end && actions[i].kind == ETCH_ACTION_FORWARD; k++) {
            const uint64_t own = most_in(s, stage, t, k) - always;
            back = own > back ? own : back;
        }
        const uint64_t both = back + (back > 0 ? most_in(s, stage, t, i) : 0);
        most = both > most ? both : most;
    }
    return most;
}

static uint64_t greater(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static bool has_halves(const exec_slots *s)
{
    return s->placed->stages && etch_schedule_has_halves(s->placed->stages->line->schedule);
}

/* Is what is kept said as the sum of parts that are not always the most at a time? So it is of chunks, of
 * halves of backward with too few microbatches to fill the pipe, and of those of an order that is listed. */
static bool is_kept_at_most(const exec_slots *s, uint32_t traits)
{
    const etch_schedule *schedule = s->placed->stages ? s->placed->stages->line->schedule : NULL;
    const uint32_t p = s->chain.stages;
    const bool fills_twice = schedule && etch_schedule_kind_of(schedule) == ETCH_SCHEDULE_ZB_H2;
    const bool is_few = s->microbatches < (fills_twice ? 2 * p - 1 : p);
    return (traits & EXEC_CHUNKED) || (has_halves(s) && (is_few || etch_schedule_order(schedule)));
}

/* The array that an earlier action keeps of the same value: it is not received a second time. What is kept
 * for no backward pass is gone when its action ends, and comes again in the message of the later one. */
static exec_array *kept_before(exec_array *array)
{
    exec_array *kept = NULL;
    for (exec_array *before = array->before; before; before = before->before)
        if (before->is_kept)
            kept = before;
    return kept;
}

/* Later arrays come later. */
static void join_kept(const exec_ranks *ranks)
{
    for (uint32_t i = ranks->made.count; i-- > 0;) {
        exec_array *array = ranks->made.at[i], *kept = kept_before(array);
        if (!kept)
            continue;
        kept->read = array->read > kept->read ? array->read : kept->read;
        array->bytes = 0;
    }
}

exec_alive exec_alive_measured(const exec_slots *s, uint32_t stage)
{
    const exec_ranks *ranks = s->stages[stage];
    const timeline kept = timeline_new(s->arena, s->action_count);
    const timeline rest = timeline_new(s->arena, ranks->now + 1),
                   all = timeline_new(s->arena, ranks->now + 1);
    exec_alive alive = {0};
    uint64_t always = 0;
    join_kept(ranks);
    for (uint32_t i = 0; i < ranks->made.count; i++) {
        const exec_array *array = ranks->made.at[i];
        const uint32_t end = exec_array_end(array);
        add(&all, array->born, end, array->bytes);
        const uint32_t from = action_at(s, stage, array->born), to = action_at(s, stage, end);
        const bool is_backward = s->actions[stage][from].kind != ETCH_ACTION_FORWARD;
        if (has_halves(s) && !array->is_kept && is_backward &&
            from != to) { /* it waits for the second half */
            add(&kept, from, to, array->bytes);
            continue;
        }
        if (!array->is_kept) {
            always += array->born == 0 && end == ranks->now ? array->bytes : 0;
            add(&rest, array->born, end, array->bytes);
            continue;
        }
        add(&kept, from, to, array->bytes);
        alive.saved += array->microbatch < s->chain.copies ? array->bytes : 0; /* one of each */
    }
    alive.activations = most_of(&kept);
    alive.workspace = greater(most_of(&rest), most_of_shared(s, stage, &rest, always));
    alive.peak = most_of(&all);
    return alive;
}

/* ---- what is said ------------------------------------------------------------------------------------- */

static const etch_stage_view *view_of(const exec_slots *s, uint32_t stage)
{
    const exec_chain *chain = &s->chain;
    const etch_stage_line *line = s->placed->plan->stage;
    if (!s->placed->stages)
        return NULL;
    const uint32_t count = s->placed->stages->segments.count;
    uint64_t *entries = ETCH_NEW_ARRAY(s->arena, count, uint64_t);
    uint64_t *counts = line->counts ? ETCH_NEW_ARRAY(s->arena, chain->chunk_count, uint64_t) : NULL;
    for (uint32_t i = 0; i < count; i++)
        entries[i] = chain->count[i];
    for (uint32_t i = 0; counts && i < chain->chunk_count; i++)
        counts[i] = exec_integer(line->counts[i]);
    const etch_stage_numbers numbers = {.map = etch_schedule_map(line->schedule),
                                        .stages = chain->stages,
                                        .chunks = chain->chunk_count / chain->stages,
                                        .layers = chain->positions,
                                        .segments = entries,
                                        .counts = counts};
    return etch_stage_view_of(s->placed, &numbers, stage);
}

/* Of loops of few iterations on stages some counts are below zero. */
static int64_t number_of(etch_expr constant)
{
    int64_t value = 0;
    EXEC_REQUIRE(etch_to_i64(constant, &value));
    return value;
}

exec_alive exec_alive_said(const exec_slots *s, uint32_t stage)
{
    etch_sym *sym = s->placed->training->graph->sym;
    const etch_stage_place place = {.stage = etch_int(sym, stage),
                                    .stages = etch_int(sym, s->chain.stages),
                                    .chunks = s->chain.chunk_count / s->chain.stages};
    etch_cost_list items = {0};
    exec_alive alive = {0};
    const etch_stage_view *view = view_of(s, stage);
    etch_placed_memory(s->placed, view, &place, &items);
    etch_placed_workspace(s->placed, view, &place, NULL, &items);
    for (uint32_t i = 0; i < items.count; i++) {
        const etch_cost *item = &items.at[i];
        if (item->measure != ETCH_RANK_SAVED && item->measure != ETCH_HELD)
            continue;
        const uint64_t bytes = (uint64_t)(number_of(item->each) * number_of(item->times));
        if (item->measure == ETCH_RANK_SAVED)
            alive.saved += bytes;
        else if (item->memory == ETCH_MEMORY_ACTIVATIONS)
            alive.activations += bytes;
        else if (item->memory == ETCH_MEMORY_WORKSPACE)
            alive.workspace += bytes;
    }
    alive.peak = alive.activations + alive.workspace;
    return alive;
}

static const char *check_stage(const exec_slots *s, uint32_t stage, uint32_t traits, uint32_t *loose)
{
    const exec_alive is = exec_alive_measured(s, stage), said = exec_alive_said(s, stage);
    const struct {
        const char *name;
        uint64_t is, said;
        bool may_be_less;
    } quantities[] = {
        {"saved", is.saved, said.saved, false},
        {"activations", is.activations, said.activations, is_kept_at_most(s, traits)},
        {"workspace", is.workspace, said.workspace, false},
        {"memory at a time", is.peak, said.peak, true},
    };
    for (uint32_t i = 0; i < sizeof quantities / sizeof *quantities; i++)
        if (quantities[i].is > quantities[i].said ||
            (quantities[i].is < quantities[i].said && !quantities[i].may_be_less))
            return etch_text(s->arena, "stage %u has %llu bytes of %s, %llu are said", stage,
                             (unsigned long long)quantities[i].is, quantities[i].name,
                             (unsigned long long)quantities[i].said);
    *loose += is.activations < said.activations;
    return NULL;
}

const char *exec_check_alive(const exec_slots *s, uint32_t *loose)
{
    uint32_t unasked = 0;
    const uint32_t traits = exec_traits(s->placed);
    const char *failure = NULL;
    for (uint32_t i = 0; i < s->chain.stages && !failure; i++)
        failure = check_stage(s, i, traits, loose ? loose : &unasked);
    return failure;
}

/* ---- traits ------------------------------------------------------------------------------------------- */

static const etch_tensor *under_views(const etch_tensor *tensor)
{
    while (tensor->producer && tensor->producer->row->role == ETCH_ROLE_FREE)
        tensor = tensor->producer->ins[0];
    return tensor;
}

/* Does an iteration hand on a value from outside the loop, or begin a loop with what was handed to it? */
static bool hands_outer(const etch_loop *loop)
{
    for (uint32_t k = 0; k < loop->bodies.count; k++) {
        const etch_region *body = loop->bodies.at[k];
        for (uint32_t i = 0; i < body->carries.count; i++)
            if (under_views(body->carries.at[i].out)->region != body)
                return true;
        for (uint32_t i = 0; i < body->items.count; i++)
            if (body->items.at[i].loop && etch_loop_carries(body->items.at[i].loop)->count)
                return true;
    }
    return false;
}

static uint32_t traits_of(const etch_region *region)
{
    uint32_t traits = 0;
    for (uint32_t i = 0; i < region->items.count; i++) {
        const etch_loop *loop = region->items.at[i].loop;
        traits |= loop && hands_outer(loop) ? EXEC_OUTER : 0;
    }
    return traits;
}

uint32_t exec_traits(const etch_placed *placed)
{
    const etch_stage_line *line = placed->plan->stage;
    uint32_t traits = traits_of(placed->training->graph->forward);
    if (line && exec_integer(line->chunks) > 1)
        traits |= EXEC_CHUNKED;
    return traits;
}

const char *exec_check_step(const etch_placed *placed, uint64_t seed)
{
    const char *failure = exec_check_placed(placed, seed);
    if (failure)
        return failure;
    exec_slots *s = exec_slots_new(placed->arena, placed, seed);
    exec_slots_run(s);
    failure = s->failure ? s->failure : exec_check_alive(s, NULL);
    exec_slots_release(s);
    return failure ? failure : exec_check_traffic(placed, seed);
}
