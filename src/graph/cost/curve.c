/* Memory over time: the order of a stage, with what is kept of each microbatch and what is worked on.
 *
 * What is kept is that of memory(activations), value by value. What iterations of a loop keep is there from
 * the step of the iteration in forward to that in backward; another value from the step that makes it to the
 * last that reads it. What does not share out evenly among iterations counts from the begin of forward to the
 * end of backward. Where backward goes in halves, what is kept changes with actions alone, and the second
 * half is one row, with the most that it works on. Of two actions that share a slot each row has the most
 * that the other works on as well. */
#include "graph/cost/curve_int.h"

/* A value that a chunk keeps of a microbatch. */
typedef struct kept {
    const etch_saved *saved;
    uint32_t chunk;
    etch_hold hold;
    uint64_t each, times;
    /* in the steps of forward and of backward: bytes that are there; NULL where it is kept for other
     * actions */
    const uint64_t *during[2];
} kept;

typedef struct curve {
    etch_curve_making making;
    ETCH_VEC(kept) all;
    /* by chunk: bytes in the steps of its actions; of all of a microbatch, by hold */
    uint64_t **during[2];
    uint64_t *whole[ETCH_HOLD_COUNT];
    ETCH_VEC(etch_curve_row) rows;
} curve;

/* ---- what is kept -------------------------------------------------------------------------------------- */

/* The loop of the top level in whose iterations the value is kept, and its class; NULL: none. */
static const etch_loop *loop_of(const etch_region *body, uint32_t *class)
{
    if (!body || !body->loop)
        return NULL;
    while (body->parent && body->parent->loop)
        body = body->parent;
    const etch_region *root = etch_forward_body(body);
    *class = root->index;
    return root->loop;
}

/* The steps of the iterations of the class: of the first run of the loop in forward, of the last in
 * backward. */
static uint64_t count_steps(const etch_curve_action *action, const etch_loop *loop, uint32_t class, bool back,
                            uint32_t *run)
{
    uint64_t count = 0;
    *run = UINT32_MAX;
    for (uint32_t i = 0; i < action->step_count; i++) {
        const etch_curve_interval *s = action->steps[i].of;
        if (s->loop == loop && s->class == class && (*run == UINT32_MAX || back))
            *run = s->run_of_loop;
    }
    for (uint32_t i = 0; i < action->step_count; i++) {
        const etch_curve_interval *s = action->steps[i].of;
        count += s->loop == loop && s->class == class && s->run_of_loop == *run;
    }
    return count;
}

/* Where the memory of the value is made, or read last, in the action; UINT32_MAX: nowhere. */
static uint32_t step_of_value(const curve *c, const kept *k, bool back)
{
    const etch_live_actions *live = c->making.live;
    const etch_live_pass pass = back ? ETCH_PASS_BACKWARD : ETCH_PASS_FORWARD;
    const uint32_t memory = etch_live_memory_of(live->run, k->saved->value->id);
    uint32_t moment = 0;
    for (uint32_t i = 0; i < live->intervals.count && memory; i++) {
        const etch_live_interval *there = &live->intervals.at[i];
        if (there->memory == memory && there->chunk == k->chunk && there->pass == pass)
            moment = back ? there->death : there->birth;
    }
    return moment ? etch_curve_step_at(&c->making.actions[back][k->chunk], moment) : UINT32_MAX;
}

/* How many of the value are there while each step of the action is run. */
static const uint64_t *times_during(const curve *c, const kept *k, bool back)
{
    const etch_curve_action *action = &c->making.actions[back][k->chunk];
    uint64_t *times = ETCH_NEW_ARRAY(c->making.arena, action->step_count, uint64_t);
    uint32_t class = 0, run;
    const etch_loop *loop = loop_of(k->saved->body, &class);
    const uint64_t steps = loop ? count_steps(action, loop, class, back, &run) : 0;
    const uint64_t each = steps > 0 ? k->times / steps : 0;
    const uint32_t once = loop ? UINT32_MAX : step_of_value(c, k, back);
    uint64_t held = once == UINT32_MAX ? k->times - each * steps : 0;
    for (uint32_t n = 0; n < action->step_count; n++) {
        const uint32_t i = back ? action->step_count - 1 - n : n;
        const etch_curve_interval *s = action->steps[i].of;
        if (steps > 0 && s->loop == loop && s->class == class && s->run_of_loop == run)
            held += each;
        if (i == once)
            held += k->times;
        times[i] = held;
    }
    return times;
}

static uint64_t times_in(curve *c, const etch_saved_list *list, const etch_value *value)
{
    for (uint32_t i = 0; list && i < list->count; i++)
        if (list->at[i].value == value)
            return etch_curve_number(&c->making, list->at[i].times);
    return 0;
}

/* What a chunk keeps that those before it do not. */
static void keep(curve *c, const etch_saved_list *saved, const etch_saved_list *before, uint32_t chunk,
                 etch_hold hold)
{
    etch_curve_making *m = &c->making;
    for (uint32_t i = 0; i < saved->count; i++) {
        const etch_saved *at = &saved->at[i];
        const uint64_t all = etch_curve_number(m, at->times), less = times_in(c, before, at->value);
        kept k = {.saved = at, .chunk = chunk, .hold = hold, .times = all > less ? all - less : 0};
        k.each = etch_curve_product(m, etch_curve_number(m, at->elements), at->width);
        const uint64_t bytes = etch_curve_product(m, k.each, k.times);
        c->whole[hold][chunk] = etch_curve_sum(m, c->whole[hold][chunk], bytes);
        if (hold == ETCH_HOLD_FORWARD_TO_INPUTS)
            for (int back = 0; back < 2; back++)
                k.during[back] = times_during(c, &k, back);
        ETCH_PUSH(m->arena, &c->all, k);
    }
}

static void find_kept(curve *c, etch_hold hold)
{
    etch_curve_making *m = &c->making;
    const etch_placed *placed = m->options->placed;
    const etch_stage_view *view = m->options->stage;
    const uint32_t chunks = m->live->chunks;
    etch_saved_list *of_chunk = ETCH_NEW_ARRAY(m->arena, chunks, etch_saved_list);
    c->whole[hold] = ETCH_NEW_ARRAY(m->arena, chunks, uint64_t);
    for (uint32_t chunk = 0; chunk < chunks; chunk++) {
        const etch_stage_view *of = chunks > 1 ? etch_view_of_kept(placed, view, hold, chunk) : view;
        const bool is_more = chunk > 0 && hold != ETCH_HOLD_INPUTS_TO_WEIGHTS && !m->live->is_apart;
        etch_placed_saved(placed, of, hold, &of_chunk[chunk]);
        keep(c, &of_chunk[chunk], is_more ? &of_chunk[chunk - 1] : NULL, chunk, hold);
    }
}

static void add_up(curve *c)
{
    etch_curve_making *m = &c->making;
    for (int back = 0; back < 2; back++) {
        c->during[back] = ETCH_NEW_ARRAY(m->arena, m->live->chunks, uint64_t *);
        for (uint32_t chunk = 0; chunk < m->live->chunks; chunk++)
            c->during[back][chunk] = ETCH_NEW_ARRAY(m->arena, m->actions[back][chunk].step_count, uint64_t);
    }
    for (uint32_t i = 0; i < c->all.count; i++) {
        const kept *k = &c->all.at[i];
        for (int back = 0; back < 2 && k->during[back]; back++)
            for (uint32_t s = 0; s < m->actions[back][k->chunk].step_count; s++) {
                uint64_t *sum = &c->during[back][k->chunk][s];
                *sum = etch_curve_sum(m, *sum, etch_curve_product(m, k->each, k->during[back][s]));
            }
    }
}

/* ---- rows ---------------------------------------------------------------------------------------------- */

static const etch_curve_action *steps_of(const etch_curve_making *m, const etch_action *action)
{
    const etch_live_pass pass = action->kind == ETCH_ACTION_FORWARD            ? ETCH_PASS_FORWARD
                                : action->kind == ETCH_ACTION_WEIGHT_GRADIENTS ? ETCH_PASS_WEIGHTS
                                                                               : ETCH_PASS_BACKWARD;
    return &m->actions[pass][action->chunk];
}

static bool is_half(etch_action action)
{
    return action.kind == ETCH_ACTION_INPUT_GRADIENTS || action.kind == ETCH_ACTION_WEIGHT_GRADIENTS;
}

static void add_row(curve *c, uint32_t action, const etch_curve_step *step, uint64_t held)
{
    etch_curve_row row = {.action = action, .loop = step->of->loop, .iteration = step->iteration};
    for (int k = 0; k < ETCH_CURVE_KINDS; k++)
        row.bytes[k] = step->of->bytes[k];
    row.bytes[ETCH_CURVE_ACTIVATIONS] = held;
    if (c->rows.count >= c->making.options->most_rows)
        c->making.result = ETCH_CURVE_TOO_LONG;
    else
        ETCH_PUSH(c->making.arena, &c->rows, row);
}

/* The step with the most to work on: stands for an action whose steps are not known. */
static const etch_curve_step *fullest_step(const etch_curve_action *action)
{
    const etch_curve_step *most = action->steps;
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < action->step_count; i++) {
        uint64_t sum = 0;
        for (int k = 0; k < ETCH_CURVE_KINDS; k++)
            sum += action->steps[i].of->bytes[k];
        if (sum > bytes)
            most = &action->steps[i];
        bytes = sum > bytes ? sum : bytes;
    }
    return most;
}

/* The action that takes turns with this one; NULL: none. */
static const etch_action *other_of_slot(const etch_curve *out, uint32_t number)
{
    uint32_t first = number;
    while (out->actions[first].overlaps)
        first--;
    const uint64_t end = etch_slot_end(out->actions, out->action_count, first);
    if (out->actions[first].kind != ETCH_ACTION_FORWARD || end == first + 1)
        return NULL;
    return &out->actions[number == first ? first + 1 : first];
}

/* What the other action of a slot works on at most, but for what is always there. */
static void add_other(curve *c, const etch_curve *out, uint32_t number, uint32_t first_row)
{
    etch_curve_making *m = &c->making;
    const etch_action *other = other_of_slot(out, number);
    if (!other)
        return;
    const etch_curve_step *step = fullest_step(steps_of(m, other));
    uint64_t more[ETCH_CURVE_KINDS] = {0};
    for (int k = 0; k < ETCH_CURVE_KINDS; k++)
        more[k] = step->of->bytes[k];
    for (uint32_t i = 0; i < m->live->intervals.count; i++) {
        const etch_live_interval *there = &m->live->intervals.at[i];
        if (etch_live_is_always(m->live, there) && !etch_live_is_saved(m->live, there))
            more[etch_curve_kind_of(m->live, there)] -= etch_curve_number(m, m->live->sizes.at[there->size]);
    }
    for (uint32_t i = first_row; i < c->rows.count; i++)
        for (int k = 0; k < ETCH_CURVE_KINDS; k++)
            if (k != ETCH_CURVE_ACTIVATIONS)
                c->rows.at[i].bytes[k] = etch_curve_sum(m, c->rows.at[i].bytes[k], more[k]);
}

/* `held`: what is kept before the action; changes to what is kept after it. */
static void run_action(curve *c, const etch_action *action, uint32_t number, uint64_t *held)
{
    etch_curve_making *m = &c->making;
    const uint32_t chunk = action->chunk;
    const bool back = action->kind != ETCH_ACTION_FORWARD;
    const etch_curve_action *in = steps_of(m, action);
    const uint64_t whole = c->whole[ETCH_HOLD_FORWARD_TO_INPUTS][chunk];
    const bool halves = is_half(*action), ends = action->kind == ETCH_ACTION_WEIGHT_GRADIENTS;
    const uint64_t later = halves ? c->whole[ETCH_HOLD_FORWARD_TO_WEIGHTS][chunk] : 0;
    const uint64_t made = halves ? c->whole[ETCH_HOLD_INPUTS_TO_WEIGHTS][chunk] : 0;
    if (action->kind == ETCH_ACTION_INPUT_GRADIENTS)
        *held = etch_curve_sum(m, *held, made);
    if (back && !halves)
        *held -= whole;
    for (uint32_t i = 0; i < in->step_count && m->result == ETCH_CURVE_FINE && !ends; i++)
        add_row(c, number, &in->steps[i], *held + (halves ? 0 : c->during[back][chunk][i]));
    if (ends) {
        const etch_curve_step step = {fullest_step(in)->of, 0};
        add_row(c, number, &step, *held);
        c->rows.at[c->rows.count - 1].loop = NULL;
        *held -= later + made;
    }
    if (action->kind == ETCH_ACTION_INPUT_GRADIENTS)
        *held -= whole - later;
    if (!back && m->live->run->program->backward)
        *held = etch_curve_sum(m, *held, whole);
}

static void find_rows(curve *c, etch_curve *out)
{
    etch_curve_making *m = &c->making;
    const etch_pipe *pipe = &m->options->pipe;
    const uint64_t count = etch_action_count(pipe);
    uint64_t held = 0;
    if (count > m->options->most_rows) {
        m->result = ETCH_CURVE_TOO_LONG;
        return;
    }
    out->actions = etch_actions(m->arena, pipe, m->options->number);
    out->action_count = (uint32_t)count;
    for (uint32_t i = 0; i < count && m->result == ETCH_CURVE_FINE; i++) {
        const uint32_t first_row = c->rows.count;
        run_action(c, &out->actions[i], i, &held);
        add_other(c, out, i, first_row);
    }
    out->rows = c->rows.at;
    out->row_count = c->rows.count;
}

/* ---- the fullest row ----------------------------------------------------------------------------------- */

static uint64_t total_of(const etch_curve_row *row)
{
    uint64_t sum = 0;
    for (int k = 0; k < ETCH_CURVE_KINDS; k++)
        sum += row->bytes[k];
    return sum;
}

/* Microbatches of the chunk of which the hold is under way when the action is run, that of it not counted
 * where its steps are. */
static uint64_t under_way(const etch_curve *out, uint32_t action, uint32_t chunk, etch_hold hold)
{
    uint64_t count = 0;
    for (uint32_t i = 0; i <= action; i++) {
        const etch_action *a = &out->actions[i];
        const bool now = i == action;
        if (a->chunk != chunk)
            continue;
        if (a->kind == ETCH_ACTION_FORWARD)
            count += hold == ETCH_HOLD_FORWARD_TO_INPUTS && !now;
        else if (a->kind == ETCH_ACTION_BACKWARD)
            count -= hold == ETCH_HOLD_FORWARD_TO_INPUTS;
        else if (a->kind == ETCH_ACTION_INPUT_GRADIENTS)
            count += hold == ETCH_HOLD_FORWARD_TO_INPUTS    ? (now ? 0 : -UINT64_C(1))
                     : hold == ETCH_HOLD_FORWARD_TO_WEIGHTS ? !now
                                                            : 1;
        else
            count -= hold != ETCH_HOLD_FORWARD_TO_INPUTS && !now;
    }
    return count;
}

typedef ETCH_VEC(etch_curve_item) items;

static void add_item(const curve *c, items *list, etch_curve_kind kind, const etch_tensor *tensor,
                     uint64_t bytes)
{
    for (uint32_t i = 0; i < list->count; i++)
        if (list->at[i].kind == kind && list->at[i].tensor == tensor) {
            list->at[i].bytes += bytes;
            return;
        }
    if (bytes > 0)
        ETCH_PUSH(c->making.arena, list, ((etch_curve_item){kind, tensor, bytes}));
}

/* The number of the row's step in its action. */
static uint32_t step_of_row(const etch_curve *out, uint32_t row)
{
    uint32_t step = 0;
    while (step < row && out->rows[row - step - 1].action == out->rows[row].action)
        step++;
    return step;
}

static void list_kept(const curve *c, const etch_curve *out, items *list)
{
    const etch_curve_row *row = &out->rows[out->peak];
    const etch_action *action = &out->actions[row->action];
    const bool back = action->kind != ETCH_ACTION_FORWARD;
    const uint32_t step = step_of_row(out, out->peak);
    for (uint32_t i = 0; i < c->all.count; i++) {
        const kept *k = &c->all.at[i];
        uint64_t times = k->times * under_way(out, row->action, k->chunk, k->hold);
        if (k->chunk == action->chunk && !is_half(*action) && k->during[back])
            times += k->during[back][step];
        add_item(c, list, ETCH_CURVE_ACTIVATIONS, k->saved->tensor, times * k->each);
    }
}

/* What is there at the fullest moment of a step; with what is always there, or without. */
static void list_step(curve *c, const etch_curve_step *step, bool always, items *list)
{
    const etch_live_actions *live = c->making.live;
    for (uint32_t i = 0; i < live->intervals.count; i++) {
        const etch_live_interval *there = &live->intervals.at[i];
        if (there->birth <= step->of->fullest && step->of->fullest <= there->death &&
            !etch_live_is_saved(live, there) && (always || !etch_live_is_always(live, there)))
            add_item(c, list, etch_curve_kind_of(live, there), live->run->program->names[there->name].tensor,
                     etch_curve_number(&c->making, live->sizes.at[there->size]));
    }
}

static void list_worked_on(curve *c, const etch_curve *out, items *list)
{
    const etch_curve_row *row = &out->rows[out->peak];
    const etch_action *action = &out->actions[row->action], *other = other_of_slot(out, row->action);
    const etch_curve_action *in = steps_of(&c->making, action);
    const bool is_second = action->kind == ETCH_ACTION_WEIGHT_GRADIENTS;
    list_step(c, is_second ? fullest_step(in) : &in->steps[step_of_row(out, out->peak)], true, list);
    if (other)
        list_step(c, fullest_step(steps_of(&c->making, other)), false, list);
}

static void find_peak(curve *c, etch_curve *out)
{
    items list = {0};
    for (uint32_t i = 1; i < out->row_count; i++)
        if (total_of(&out->rows[i]) > total_of(&out->rows[out->peak]))
            out->peak = i;
    if (out->row_count > 0) {
        list_kept(c, out, &list);
        list_worked_on(c, out, &list);
    }
    out->items = list.at;
    out->item_count = list.count;
}

/* ---- the entry point ----------------------------------------------------------------------------------- */

etch_curve_result etch_placed_curve(etch_arena *arena, const etch_curve_options *options, etch_curve *out)
{
    curve c = {.making = {.options = options, .arena = arena}};
    etch_curve_making *m = &c.making;
    m->live = etch_live_actions_of(arena, options->placed, options->stage, options->values);
    *out = (etch_curve){0};
    if (!m->live->has_numbers)
        return ETCH_CURVE_OPEN;
    etch_curve_find_steps(m);
    const bool keeps = m->live->run->program->backward != NULL;
    const bool halves = options->pipe.stages > 1 && etch_schedule_has_halves(options->pipe.schedule);
    for (int hold = 0; hold < ETCH_HOLD_COUNT && m->result == ETCH_CURVE_FINE; hold++) {
        c.whole[hold] = ETCH_NEW_ARRAY(arena, m->live->chunks, uint64_t);
        if (keeps && (hold == ETCH_HOLD_FORWARD_TO_INPUTS || halves))
            find_kept(&c, (etch_hold)hold);
    }
    if (m->result == ETCH_CURVE_FINE)
        add_up(&c);
    if (m->result == ETCH_CURVE_FINE)
        find_rows(&c, out);
    if (m->result == ETCH_CURVE_FINE)
        find_peak(&c, out);
    return m->result;
}
