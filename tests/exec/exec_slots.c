#include "exec_slots.h"
#include "exec_sums.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- what there is ------------------------------------------------------------------------------------ */

static uint32_t chunk_of(const exec_slots *s, uint32_t stage, const etch_action *action)
{
    return exec_chain_link(&s->chain, stage, action->chunk);
}

static exec_store *values_of(const exec_slots *s, uint32_t chunk, uint32_t microbatch)
{
    return &s->values[chunk * s->microbatches + microbatch];
}

/* The message that a chunk receives. */
static exec_message *message_to(const exec_slots *s, uint32_t chunk, uint32_t microbatch, bool backward)
{
    return &(backward ? s->backward : s->forward)[chunk * s->microbatches + microbatch];
}

/* One for each microbatch; they add to the gradients of the step. */
static exec_run **new_references(etch_arena *arena, const etch_placed *placed, uint64_t seed, uint32_t count)
{
    exec_data *data = exec_data_new(arena, placed->training, seed);
    exec_run **runs = ETCH_NEW_ARRAY(arena, count, exec_run *);
    for (uint32_t m = 0; m < count; m++) {
        runs[m] = exec_run_new(arena, placed->training, data);
        runs[m]->gradients = runs[0]->gradients;
    }
    return runs;
}

/* Laid out as ranks have it, which is known when these are made. */
static void run_references(exec_slots *s)
{
    for (uint32_t m = 0; m < s->microbatches && !s->failure; m++) {
        exec_run *run = s->reference[m];
        run->env.pairs = s->reference[0]->env.pairs;
        run->env.padded = s->reference[0]->env.padded;
        run->env.routes = s->reference[0]->env.routes;
        exec_run_forward(run, m);
        exec_run_backward(run);
        s->failure = run->env.failure;
    }
}

exec_slots *exec_slots_new(etch_arena *arena, const etch_placed *placed, uint64_t seed)
{
    exec_slots *s = ETCH_NEW(arena, exec_slots);
    *s = (exec_slots){.arena = arena, .placed = placed, .chain = exec_chain_new(arena, placed)};
    const uint32_t chunks = s->chain.chunk_count, stages = s->chain.stages;
    const etch_pipe pipe = exec_chain_pipe(&s->chain);
    s->microbatches = (uint32_t)pipe.microbatches;
    const etch_action **actions = ETCH_NEW_ARRAY(arena, stages, const etch_action *);
    s->action_count = (uint32_t)etch_action_count(&pipe);
    s->reference = new_references(arena, placed, seed, s->microbatches);
    s->stages = ETCH_NEW_ARRAY(arena, stages, exec_ranks *);
    s->began = ETCH_NEW_ARRAY(arena, stages, uint32_t *);
    s->next = ETCH_NEW_ARRAY(arena, stages, uint32_t);
    s->values = ETCH_NEW_ARRAY(arena, chunks * s->microbatches, exec_store);
    s->forward = ETCH_NEW_ARRAY(arena, chunks * s->microbatches, exec_message);
    s->backward = ETCH_NEW_ARRAY(arena, chunks * s->microbatches, exec_message);
    for (uint32_t i = 0; i < stages; i++) {
        actions[i] = etch_actions(arena, &pipe, i);
        s->stages[i] = placed->stages ? exec_ranks_of_stage(arena, &s->chain, i, s->reference[0])
                                      : exec_ranks_new(arena, placed, s->reference[0], EXEC_PROGRAM);
        s->began[i] = ETCH_NEW_ARRAY(arena, s->action_count, uint32_t);
    }
    s->pending = ETCH_NEW_ARRAY(arena, chunks * s->microbatches, exec_store);
    for (uint32_t i = 0; i < chunks * s->microbatches; i++) {
        s->values[i] = exec_store_new(arena, placed->value_count * s->stages[0]->mesh.ranks);
        s->pending[i] = exec_store_new(arena, s->stages[0]->gradients.count);
    }
    s->actions = actions;
    run_references(s);
    return s;
}

/* ---- messages ----------------------------------------------------------------------------------------- */

/* A value of a cut where it is alive: what a loop hands on is the argument of the iteration behind the
 * cut. */
typedef struct alive {
    const etch_value *value;
    const etch_placed_loop *loop; /* NULL: a value of the top level */
    uint32_t turn;
} alive;

static alive alive_at(const exec_slots *s, const etch_value *value, uint32_t position, bool backward)
{
    const etch_placed_region *region = backward ? s->placed->backward : s->placed->forward;
    for (uint32_t i = 0; i < region->items.count; i++) {
        const etch_placed_loop *loop = region->items.at[i].loop;
        for (uint32_t k = 0; loop && k < etch_loop_carries(loop)->count; k++) {
            if (etch_loop_carries(loop)->at[k].in != value)
                continue;
            const uint32_t entry = exec_chain_layers(&s->chain, loop->position);
            const uint32_t into = position - s->chain.first[entry];
            const uint32_t turn = backward ? s->chain.count[entry] - into : into;
            const etch_placed_region *body = loop->bodies.at[exec_turn_class(loop->loop, turn)];
            return (alive){body->carries.at[k].in, loop, turn};
        }
    }
    return (alive){value, NULL, 0};
}

/* Where a stage has it in the microbatch whose values are set. */
static exec_array **place_of(exec_ranks *ranks, const alive *a, uint32_t rank)
{
    if (a->loop)
        exec_iterate(&ranks->env, a->loop->loop, a->turn);
    exec_array **place = exec_ranks_slot(ranks, a->value, rank);
    if (a->loop)
        exec_iterated(&ranks->env, a->loop->loop);
    return place;
}

static const etch_cut *cut_of(const exec_slots *s, uint32_t receiver, bool backward, uint32_t *position)
{
    *position = backward ? s->chain.chunks[receiver].high : s->chain.chunks[receiver].low;
    return exec_chain_cut(&s->chain, *position);
}

static exec_array *memory_of(exec_array *array)
{
    while (array->memory)
        array = array->memory;
    return array;
}

/* Does the message before a stage position say that it has the value? */
static bool is_said_sent(const exec_slots *s, const etch_cut *cut, const etch_crossing *crossing,
                         bool backward, uint32_t position)
{
    etch_sym *sym = s->placed->training->graph->sym;
    const etch_expr iteration = etch_int(sym, (int64_t)position - s->chain.first[cut->segment]);
    return exec_integer(etch_crosses(sym, s->placed->stages, cut, crossing, backward, iteration)) > 0;
}

/* Or is it zeros, which both stages have? */
static bool is_said_read(const exec_slots *s, const etch_cut *cut, const etch_crossing *crossing,
                         bool backward, uint32_t position)
{
    etch_crossing made = *crossing;
    made.is_made = true;
    return is_said_sent(s, cut, &made, backward, position);
}

typedef ETCH_VEC(etch_crossing) crossing_list;

static void add_value(exec_slots *s, crossing_list *list, etch_value *value)
{
    for (uint32_t i = 0; i < list->count; i++)
        if (list->at[i].value == value)
            return;
    if (value)
        ETCH_PUSH(s->arena, list, (etch_crossing){.value = value});
}

/* What is said to cross the cut, so many, and after that all else that loops and steps of the pass hand on:
 * nothing makes it other than zeros, or nothing reads it. */
static crossing_list crossings_of(exec_slots *s, const etch_cut *cut, bool backward)
{
    const etch_placed_region *region = backward ? s->placed->backward : s->placed->forward;
    const etch_crossings *said = backward ? &cut->backward : &cut->forward;
    crossing_list list = {0};
    for (uint32_t i = 0; i < said->count; i++)
        ETCH_PUSH(s->arena, &list, said->at[i]);
    for (uint32_t i = 0; i < region->items.count; i++) {
        const etch_placed_item *item = &region->items.at[i];
        const bool is_here =
            item->loop && cut->inside && item->loop->position == etch_position_at(cut->segment, ETCH_ALL_OF);
        for (uint32_t k = 0; item->loop && k < etch_loop_carries(item->loop)->count; k++) {
            add_value(s, &list, etch_loop_carries(item->loop)->at[k].result);
            if (is_here)
                add_value(s, &list, etch_loop_carries(item->loop)->at[k].in);
        }
        for (uint32_t k = 0; item->step && k < item->step->out_count; k++)
            add_value(s, &list, item->step->outs[k]);
    }
    return list;
}

static bool is_zeros(const exec_array *array)
{
    bool zeros = array != NULL;
    for (size_t i = 0; zeros && i < array->size; i++)
        zeros = array->at[i] == 0;
    return zeros;
}

/* What nobody sends is zeros on both sides, or nobody may read it. */
static exec_array **unsent(exec_slots *s, exec_ranks *ranks, const alive *a)
{
    exec_array **arrays = ETCH_NEW_ARRAY(s->arena, ranks->mesh.ranks, exec_array *);
    for (uint32_t r = 0; r < ranks->mesh.ranks; r++) {
        arrays[r] = *place_of(ranks, a, r);
        if (!is_zeros(arrays[r]))
            return NULL;
    }
    return arrays;
}

/* The message leaves when the last of its values is there. */
static void note_send(const exec_message *message, uint32_t count)
{
    uint32_t complete = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (message->is_unsent[i])
            continue;
        const exec_array *array = memory_of(message->arrays[i][0]);
        complete = array->born > complete ? array->born : complete;
    }
    for (uint32_t i = 0; i < count; i++) {
        if (message->is_unsent[i])
            continue;
        exec_array *array = memory_of(message->arrays[i][0]);
        array->read = array->read < complete ? complete : array->read;
    }
}

/* What is in the message is what the cut says, and as many bytes. */
static void send(exec_slots *s, exec_ranks *ranks, uint32_t receiver, uint32_t microbatch, bool backward)
{
    uint32_t position;
    const etch_cut *cut = cut_of(s, receiver, backward, &position);
    exec_message *message = message_to(s, receiver, microbatch, backward);
    const uint32_t said_count = (backward ? &cut->backward : &cut->forward)->count;
    const crossing_list all = crossings_of(s, cut, backward);
    const uint32_t count = all.count;
    uint32_t said = exec_integer(backward ? cut->backward_bytes : cut->forward_bytes), bytes = 0;
    message->arrays = ETCH_NEW_ARRAY(s->arena, count, exec_array **);
    message->is_unsent = ETCH_NEW_ARRAY(s->arena, count, bool);
    for (uint32_t i = 0; i < count && !ranks->env.failure; i++) {
        const etch_value *value = all.at[i].value;
        const alive a = alive_at(s, value, position, backward);
        message->is_unsent[i] = i >= said_count || !is_said_sent(s, cut, &all.at[i], backward, position);
        if (message->is_unsent[i]) {
            message->arrays[i] = unsent(s, ranks, &a);
            said -= i < said_count && etch_crossing_may_be_sent(&all.at[i])
                        ? exec_integer(etch_value_bytes(s->placed, value))
                        : 0;
            continue;
        }
        message->arrays[i] = ETCH_NEW_ARRAY(s->arena, ranks->mesh.ranks, exec_array *);
        for (uint32_t r = 0; r < ranks->mesh.ranks; r++) {
            exec_array *array = *place_of(ranks, &a, r);
            if (!array) {
                exec_fail(&ranks->env, "%s is not there to be sent", value->tensor->name);
                break;
            }
            message->arrays[i][r] = array;
        }
        if (!ranks->env.failure)
            bytes += (uint32_t)message->arrays[i][0]->size * etch_dtype_bytes(value->tensor->dtype);
    }
    if (!ranks->env.failure)
        note_send(message, count);
    if (bytes != said)
        exec_fail(&ranks->env, "a message has %u bytes, %u are said", bytes, said);
    message->is_sent = true;
}

/* The array that a stage has made, of which this one is a copy or a view. */
static const exec_array *origin_of(const exec_array *array)
{
    while (array->memory || array->sent_as)
        array = array->memory ? array->memory : array->sent_as;
    return array;
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double *sorted(etch_arena *arena, const exec_array *array)
{
    double *copy = ETCH_NEW_ARRAY(arena, array->size, double);
    memcpy(copy, array->at, array->size * sizeof *copy);
    qsort(copy, array->size, sizeof *copy, by_value);
    return copy;
}

/* Other parts of what one array holds may have the same size, views of it another order. */
static bool has_same(etch_arena *arena, const exec_array *a, const exec_array *b)
{
    return a->size == b->size && memcmp(sorted(arena, a), sorted(arena, b), a->size * sizeof(double)) == 0;
}

/* What the first rank of a stage had last of the same value: in this message as much of it, in an earlier
 * action at least as much; NULL: nothing. */
static exec_array *found(const exec_ranks *ranks, const exec_array *sent)
{
    const exec_array *origin = origin_of(sent);
    for (uint32_t i = ranks->made.count; i-- > 0;) {
        exec_array *made = ranks->made.at[i];
        const bool is_part = made->born < ranks->now && made->size > sent->size;
        if (origin_of(made) == origin && (is_part || has_same(ranks->env.arena, made, sent)))
            return made;
    }
    return NULL;
}

/* On the first rank it is memory of the stage from the begin of the action on, unless it is given: an input
 * or a weight, which is memory of nobody anywhere. */
static exec_array *copied(exec_slots *s, exec_ranks *ranks, const etch_tensor *tensor, exec_array *sent,
                          uint32_t rank, bool is_unsent, bool is_given)
{
    exec_array *copy = ETCH_NEW(s->arena, exec_array);
    *copy = *sent;
    copy->is_kept = copy->is_used = false;
    copy->sent_as = sent;
    copy->made_as = memory_of(sent)->made_as;
    copy->born = copy->read = ranks->now;
    copy->microbatch = ranks->env.microbatch;
    copy->before = rank == 0 ? found(ranks, sent) : NULL;
    const bool is_twice = copy->before && copy->before->born == ranks->now;
    copy->memory = is_twice ? copy->before : NULL;
    copy->bytes = rank == 0 && !copy->memory && !is_given && memory_of(sent)->bytes
                      ? (uint32_t)sent->size * etch_dtype_bytes(tensor->dtype)
                      : 0;
    if (rank == 0 && !is_unsent)
        ETCH_PUSH(s->arena, &s->received, copy);
    if (copy->bytes)
        ETCH_PUSH(ranks->env.arena, &ranks->made, copy);
    return copy;
}

static void receive(exec_slots *s, exec_ranks *ranks, uint32_t receiver, uint32_t microbatch, bool backward)
{
    uint32_t position;
    const etch_cut *cut = cut_of(s, receiver, backward, &position);
    const exec_message *message = message_to(s, receiver, microbatch, backward);
    const crossing_list all = crossings_of(s, cut, backward);
    const uint32_t said = (backward ? &cut->backward : &cut->forward)->count;
    for (uint32_t i = 0; i < all.count; i++) {
        const etch_value *value = all.at[i].value;
        const alive a = alive_at(s, value, position, backward);
        for (uint32_t r = 0; message->arrays[i] && r < ranks->mesh.ranks; r++)
            *place_of(ranks, &a, r) = copied(
                s, ranks, value->tensor, message->arrays[i][r], r, message->is_unsent[i],
                message->is_unsent[i] && !(i < said && is_said_read(s, cut, &all.at[i], backward, position)));
    }
}

/* ---- actions ------------------------------------------------------------------------------------------ */

static bool goes_back(const etch_action *action)
{
    return action->kind != ETCH_ACTION_FORWARD;
}

/* The chunk before and after this one in the direction of the action, between which messages go; UINT32_MAX:
 * none. Gradients of weights go nowhere. */
static uint32_t sender_to(const exec_slots *s, uint32_t chunk, const etch_action *action)
{
    if (action->kind == ETCH_ACTION_WEIGHT_GRADIENTS)
        return UINT32_MAX;
    if (goes_back(action))
        return exec_chain_ends(&s->chain, chunk) ? UINT32_MAX : chunk + 1;
    return exec_chain_begins(&s->chain, chunk) ? UINT32_MAX : chunk - 1;
}

static uint32_t receiver_of(const exec_slots *s, uint32_t chunk, const etch_action *action)
{
    if (action->kind == ETCH_ACTION_WEIGHT_GRADIENTS)
        return UINT32_MAX;
    if (!goes_back(action))
        return exec_chain_ends(&s->chain, chunk) ? UINT32_MAX : chunk + 1;
    return exec_chain_begins(&s->chain, chunk) ? UINT32_MAX : chunk - 1;
}

static void run_action(exec_slots *s, uint32_t stage, const etch_action *action)
{
    exec_ranks *ranks = s->stages[stage];
    const uint32_t chunk = chunk_of(s, stage, action), microbatch = (uint32_t)action->microbatch;
    const uint32_t receiver = receiver_of(s, chunk, action);
    ranks->values = *values_of(s, chunk, microbatch);
    ranks->pending = &s->pending[chunk * s->microbatches + microbatch];
    ranks->reference = s->reference[microbatch];
    ranks->env.microbatch = microbatch;
    ranks->interval = s->chain.chunks[chunk];
    s->began[stage][s->next[stage]] = ++ranks->now;
    if (sender_to(s, chunk, action) != UINT32_MAX)
        receive(s, ranks, chunk, microbatch, goes_back(action));
    ranks->skips[0] = action->kind == ETCH_ACTION_WEIGHT_GRADIENTS;
    ranks->skips[1] = action->kind == ETCH_ACTION_INPUT_GRADIENTS;
    exec_ranks_pass(ranks, goes_back(action));
    if (receiver != UINT32_MAX && !ranks->env.failure)
        send(s, ranks, receiver, microbatch, goes_back(action));
    if (ranks->env.failure && !s->failure)
        s->failure =
            etch_text(s->arena, "stage %u, %s of microbatch %u through chunk %u: %s", stage,
                      goes_back(action) ? "backward" : "forward", microbatch, chunk, ranks->env.failure);
}

static const etch_action *next_action(const exec_slots *s, uint32_t stage)
{
    return s->next[stage] < s->action_count ? &s->actions[stage][s->next[stage]] : NULL;
}

static bool has_message(const exec_slots *s, uint32_t stage, const etch_action *action)
{
    const uint32_t chunk = chunk_of(s, stage, action);
    return sender_to(s, chunk, action) == UINT32_MAX ||
           message_to(s, chunk, (uint32_t)action->microbatch, goes_back(action))->is_sent;
}

/* Actions that share a slot begin when all of them can. */
static bool is_ready(const exec_slots *s, uint32_t stage)
{
    const etch_action *action = next_action(s, stage), *end = s->actions[stage] + s->action_count;
    bool ready = action != NULL;
    for (; ready && action < end && (action == next_action(s, stage) || action->overlaps); action++)
        ready = has_message(s, stage, action);
    return ready;
}

/* Follows who waits for whom until a stage comes again, or one that has ended. */
static void report_stall(exec_slots *s, uint32_t stage)
{
    etch_buf text = {.arena = s->arena};
    bool *seen = ETCH_NEW_ARRAY(s->arena, s->chain.stages, bool);
    etch_buf_puts(&text, "it stalls");
    while (next_action(s, stage) && !seen[stage]) {
        const etch_action *action = next_action(s, stage);
        while (has_message(s, stage, action)) /* another one of the slot */
            action++;
        const uint32_t sender = s->chain.stage_of[sender_to(s, chunk_of(s, stage, action), action)];
        seen[stage] = true;
        etch_buf_printf(&text, "; stage %u waits for %s of microbatch %u by stage %u", stage,
                        goes_back(action) ? "backward" : "forward", (uint32_t)action->microbatch, sender);
        stage = sender;
    }
    s->failure = text.text;
}

static void run_all(exec_slots *s)
{
    for (bool moved = true; moved && !s->failure;) {
        moved = false;
        for (uint32_t stage = 0; stage < s->chain.stages && !s->failure; stage++)
            while (is_ready(s, stage) && !s->failure) {
                run_action(s, stage, next_action(s, stage));
                s->next[stage]++;
                moved = true;
            }
    }
    for (uint32_t stage = 0; stage < s->chain.stages && !s->failure; stage++)
        if (next_action(s, stage))
            report_stall(s, stage);
}

/* ---- what must hold ----------------------------------------------------------------------------------- */

static uint32_t runs_of(const exec_slots *s, const etch_step *step)
{
    uint32_t runs = 0;
    for (uint32_t i = 0; i < s->chain.stages; i++)
        runs += s->stages[i]->runs[step->id];
    return runs;
}

/* Every step runs once for each iteration and microbatch, on one stage; what only shows something wherever it
 * is read. */
static void check_runs(exec_slots *s, const etch_placed_region *region, uint32_t times)
{
    for (uint32_t i = 0; i < region->items.count && !s->failure; i++) {
        const etch_step *step = region->items.at[i].step;
        const etch_placed_loop *loop = region->items.at[i].loop;
        if (step && !exec_is_nowhere(s->placed, step) && runs_of(s, step) != times)
            s->failure = etch_text(s->arena, "%s runs %u times, not %u", step->outs[0]->tensor->name,
                                   runs_of(s, step), times);
        for (uint32_t k = 0; loop && k < loop->bodies.count; k++) {
            uint32_t iterations = 0;
            for (uint32_t turn = 0; turn < exec_integer(loop->loop->count); turn++)
                iterations += exec_turn_class(loop->loop, turn) == k;
            check_runs(s, loop->bodies.at[k], times * iterations);
        }
    }
}

/* What is sent and nobody reads there or further on. */
static void check_messages(exec_slots *s)
{
    for (uint32_t i = s->received.count; i-- > 0;) {
        const exec_array *array = s->received.at[i];
        const bool is_used = array->is_used;
        s->surplus += !is_used;
        if (!is_used)
            s->unneeded = etch_text(s->arena, "%s is sent and nobody reads it",
                                    array->made_as ? array->made_as->name : "a value");
        for (exec_array *sent = array->sent_as; sent && is_used; sent = sent->memory)
            sent->is_used = true;
    }
}

void exec_slots_run(exec_slots *s)
{
    run_all(s);
    if (!s->failure)
        check_runs(s, s->placed->forward, s->microbatches);
    if (!s->failure && s->placed->backward)
        check_runs(s, s->placed->backward, s->microbatches);
    if (!s->failure)
        check_messages(s);
    if (!s->failure)
        s->failure = exec_check_sums(s->placed);
    if (!s->failure && s->placed->backward)
        exec_stages_finish(s->stages, s->chain.stages);
    for (uint32_t i = 0; i < s->chain.stages && !s->failure; i++)
        if (s->stages[i]->env.failure)
            s->failure =
                etch_text(s->arena, "stage %u at the end of the step: %s", i, s->stages[i]->env.failure);
    for (uint32_t i = 0; i < s->chain.stages; i++)
        s->unread += s->stages[i]->unread;
}

/* The references keep their values as long as the slots run. */
void exec_slots_release(exec_slots *s)
{
    for (uint32_t m = 0; m < s->microbatches; m++)
        etch_arena_free(s->reference[m]->values.arena);
}

const char *exec_check_slots(const etch_placed *placed, uint64_t seed)
{
    exec_slots *s = exec_slots_new(placed->arena, placed, seed);
    exec_slots_run(s);
    exec_slots_release(s);
    if (!s->failure && s->unneeded)
        s->failure = s->unneeded;
    if (!s->failure && s->unread)
        s->failure = etch_text(s->arena, "%u weights are on stages that do not read them", s->unread);
    return s->failure;
}
