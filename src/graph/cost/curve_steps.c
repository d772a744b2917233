/* Actions in intervals: from the events of a run to the iterations of a step, and the most that is worked on
 * in each. */
#include "graph/cost/curve_int.h"

uint64_t etch_curve_sum(etch_curve_making *c, uint64_t a, uint64_t b)
{
    uint64_t sum;
    if (!__builtin_add_overflow(a, b, &sum) && sum <= INT64_MAX)
        return sum;
    c->result = ETCH_CURVE_OPEN;
    return 0;
}

uint64_t etch_curve_product(etch_curve_making *c, uint64_t a, uint64_t b)
{
    uint64_t product;
    if (!__builtin_mul_overflow(a, b, &product) && product <= INT64_MAX)
        return product;
    c->result = ETCH_CURVE_OPEN;
    return 0;
}

uint64_t etch_curve_number(etch_curve_making *c, etch_expr amount)
{
    const etch_valuation *values = c->options->values;
    const etch_expr value = amount ? values->put(values->data, amount) : NULL;
    uint64_t number;
    if (value && etch_to_u64(value, &number) && number <= INT64_MAX)
        return number;
    c->result = ETCH_CURVE_OPEN;
    return 0;
}

/* ---- what is worked on --------------------------------------------------------------------------------- */

etch_curve_kind etch_curve_kind_of(const etch_live_actions *live, const etch_live_interval *there)
{
    const etch_value *value = live->run->program->names[there->name].value;
    const etch_step *step = value->step;
    if (live->run->memories.at[there->memory].is_weight)
        return ETCH_CURVE_GATHERED;
    const bool moves = step && step->collective != ETCH_NO_COLLECTIVE && step->collective != ETCH_SLICE;
    return there->is_received || moves ? ETCH_CURVE_COMMUNICATION : ETCH_CURVE_WORKSPACE;
}

/* By kind and moment: the bytes that are there. */
typedef struct levels {
    uint64_t *at[ETCH_CURVE_KINDS];
} levels;

static levels levels_of(etch_curve_making *c)
{
    const etch_live_actions *live = c->live;
    levels all;
    for (int k = 0; k < ETCH_CURVE_KINDS; k++)
        all.at[k] = ETCH_NEW_ARRAY(c->arena, (size_t)live->now + 2, uint64_t);
    for (uint32_t i = 0; i < live->intervals.count; i++) {
        const etch_live_interval *there = &live->intervals.at[i];
        if (etch_live_is_saved(live, there))
            continue;
        const uint64_t bytes = etch_curve_number(c, live->sizes.at[there->size]);
        uint64_t *at = all.at[etch_curve_kind_of(live, there)];
        at[there->birth] += bytes; /* what is taken away makes the sums right, also where these wrap */
        at[there->death + 1] -= bytes;
    }
    for (int k = 0; k < ETCH_CURVE_KINDS; k++)
        for (uint32_t t = 1; t <= live->now; t++)
            all.at[k][t] += all.at[k][t - 1];
    return all;
}

static void find_fullest(etch_curve_making *c, const levels *all, etch_curve_interval *s)
{
    uint64_t most = 0;
    s->fullest = s->begin;
    for (uint32_t t = s->begin; t <= s->end; t++) {
        uint64_t sum = 0;
        for (int k = 0; k < ETCH_CURVE_KINDS; k++)
            sum = etch_curve_sum(c, sum, all->at[k][t]);
        if (sum <= most)
            continue;
        most = sum;
        s->fullest = t;
    }
    for (int k = 0; k < ETCH_CURVE_KINDS; k++)
        s->bytes[k] = all->at[k][s->fullest];
}

/* ---- intervals ----------------------------------------------------------------------------------------- */

typedef ETCH_VEC(etch_curve_interval) intervals;

static etch_curve_interval interval_of(etch_curve_making *c, const etch_live_event *event,
                                       uint32_t run_of_loop)
{
    etch_curve_interval s = {.loop = event->loop, .run_of_loop = run_of_loop, .copies = 1};
    if (!event->loop)
        return s;
    const etch_live_turn *turn = &etch_live_turns_of(c->live->run, event->loop)->at.at[event->turn];
    s.class = turn->class;
    s.first = etch_curve_number(c, turn->first);
    s.stride = turn->stride;
    s.copies = etch_curve_number(c, turn->copies);
    return s;
}

/* What begins a loop and makes nothing is no interval of its own: it belongs to what comes next. */
static bool is_idle(const etch_live_event *event)
{
    return !event->loop && event->makes.count == 0 && event->reads.count == 0;
}

/* `*now`: the moment before the action, and then its last one. */
static intervals intervals_of(etch_curve_making *c, uint32_t chunk, etch_live_pass pass, uint32_t *now)
{
    const etch_live_run *run = c->live->run;
    const etch_loop *loop = NULL;
    uint32_t turn = 0, runs = 0, begin = ++*now;
    bool opens = true;
    intervals all = {0};
    for (uint32_t i = 0; i < run->events.count; i++) {
        const etch_live_event *event = &run->events.at[i];
        if (event->chunk != chunk || event->pass != pass)
            continue;
        const uint32_t moment = c->live->moment_of[i];
        runs += loop && event->loop != loop;
        opens = opens || event->loop != loop || (loop && event->turn != turn);
        loop = event->loop;
        turn = event->turn;
        *now = moment;
        if (opens && is_idle(event))
            continue;
        if (opens) {
            ETCH_PUSH(c->arena, &all, interval_of(c, event, runs));
            all.at[all.count - 1].begin = begin;
        }
        opens = false;
        all.at[all.count - 1].end = moment;
        begin = moment + 1;
    }
    if (all.count == 0)
        ETCH_PUSH(c->arena, &all, ((etch_curve_interval){.copies = 1, .begin = begin}));
    all.at[all.count - 1].end = *now;
    return all;
}

/* ---- steps --------------------------------------------------------------------------------------------- */

/* Turns beside each other that stand for as many iterations take turns. */
static uint32_t block_end(const intervals *all, uint32_t first)
{
    const etch_curve_interval *s = &all->at[first];
    uint32_t end = first + 1;
    while (s->copies > 1 && end < all->count && all->at[end].loop == s->loop &&
           all->at[end].run_of_loop == s->run_of_loop && all->at[end].copies == s->copies &&
           all->at[end].stride == s->stride && end - first < s->stride)
        end++;
    return end;
}

/* Does the loop of the interval go through its iterations from the last to the first? */
static bool falls(const intervals *all, uint32_t at)
{
    const etch_curve_interval *s = &all->at[at], *other = NULL;
    for (uint32_t i = 0; i < all->count && s->loop; i++) {
        const etch_curve_interval *now = &all->at[i];
        if (now->loop != s->loop || now->run_of_loop != s->run_of_loop)
            continue;
        if (other)
            return now->first < other->first;
        other = now;
    }
    return false;
}

static void expand(etch_curve_making *c, const intervals *all, etch_curve_action *out)
{
    ETCH_VEC(etch_curve_step) steps = {0};
    for (uint32_t first = 0, end; first < all->count; first = end) {
        const uint64_t copies = all->at[first].copies;
        const bool down = copies > 1 && falls(all, first);
        end = block_end(all, first);
        if (copies > c->options->most_rows || steps.count > c->options->most_rows) {
            c->result = ETCH_CURVE_TOO_LONG;
            return;
        }
        for (uint64_t k = 0; k < copies; k++)
            for (uint32_t i = first; i < end; i++) {
                const etch_curve_interval *s = &all->at[i];
                const uint64_t turn = down ? copies - 1 - k : k;
                ETCH_PUSH(c->arena, &steps, ((etch_curve_step){s, s->first + turn * s->stride}));
            }
    }
    *out = (etch_curve_action){steps.at, steps.count};
}

/* `*now`: as that of `intervals_of`. */
static void find_action(etch_curve_making *c, const levels *all, uint32_t chunk, etch_live_pass pass,
                        uint32_t *now)
{
    intervals *found = ETCH_NEW(c->arena, intervals);
    *found = intervals_of(c, chunk, pass, now);
    for (uint32_t k = 0; k < found->count; k++)
        find_fullest(c, all, &found->at[k]);
    expand(c, found, &c->actions[pass][chunk]);
}

/* In the order in which the actions were run. */
void etch_curve_find_steps(etch_curve_making *c)
{
    const levels all = levels_of(c);
    const etch_live_program *program = c->live->run->program;
    const uint32_t chunks = c->live->chunks;
    uint32_t now = 0;
    for (etch_live_pass pass = ETCH_PASS_FORWARD; pass < ETCH_PASSES; pass++)
        c->actions[pass] = pass == ETCH_PASS_WEIGHTS && !program->weights
                               ? c->actions[ETCH_PASS_BACKWARD]
                               : ETCH_NEW_ARRAY(c->arena, chunks, etch_curve_action);
    for (uint32_t chunk = 0; chunk < chunks; chunk++)
        find_action(c, &all, chunk, ETCH_PASS_FORWARD, &now);
    for (uint32_t chunk = chunks; program->backward && chunk-- > 0;) {
        find_action(c, &all, chunk, ETCH_PASS_BACKWARD, &now);
        if (program->weights)
            find_action(c, &all, chunk, ETCH_PASS_WEIGHTS, &now);
    }
}

uint32_t etch_curve_step_at(const etch_curve_action *action, uint32_t moment)
{
    for (uint32_t i = 0; i < action->step_count; i++)
        if (action->steps[i].of->begin <= moment && moment <= action->steps[i].of->end)
            return i;
    return UINT32_MAX;
}
