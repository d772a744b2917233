/* The program of a stage: every run of every task, in issue order, with the nodes that it waits for.
 *
 * A node waits for the makers of what it reads, and for those that hold the order: a collective or a send for
 * the one before it; a node that waits for nothing in its interval, which is an action or an iteration in it,
 * for the last computation before the interval; a receive for the last computation of the action two before
 * the one that needs it, beside whose send it is posted. Two actions of a slot run in turns, each until it
 * communicates: a turn is an interval of computations, and what passes meanwhile no part of it. A node that
 * adds into a gradient waits for the one that did so before, so that the last of them stands for all. */
#include "lower/unroll_int.h"

#include <inttypes.h>
#include <stdio.h>

/* ---- kernels ------------------------------------------------------------------------------------------- */

static void gather_ahead(etch_unroller *u, uint32_t node);

static uint32_t run_once(etch_unroller *u, const etch_task *task, const etch_body *body)
{
    const uint32_t first_dep = u->dep_count;
    etch_unroll_wait_for_reads(u, task);
    etch_unroll_wait_for_gradients(u, task);
    const uint32_t id = etch_unroll_issue(u, task, first_dep);
    etch_unroll_made(u, task, body, id);
    return id;
}

/* What goes round stands beside the runs that it is for. */
static void run_task(etch_unroller *u, const etch_task *task, const etch_body *body)
{
    if (u->finds_gathers || task->goes_round)
        return;
    gather_ahead(u, task->ring ? etch_unroll_ring(u, task, body) : run_once(u, task, body));
}

/* ---- gathers of weights -------------------------------------------------------------------------------- */

/* As weights are gathered: an iteration of a loop of the top level; an interval of tasks between such loops,
 * cut where something is gathered after what has computed. */
static void begin_weight_group(etch_unroller *u, const etch_task *task)
{
    etch_weight_group_count *groups = &u->at->weight_groups;
    if (groups->begins || (task->gathers && groups->computes)) {
        groups->number = ++u->weight_group_count;
        groups->computes = false;
    }
    groups->begins = false;
    groups->computes = groups->computes || !task->gathers;
}

/* A gather is issued earlier than its weight group begins, so the gathers are known before they are met. */
static void find_gather(etch_unroller *u, const etch_task *task, const etch_body *body)
{
    const etch_gather_run run = {.task = task,
                                 .repeat = body->repeat,
                                 .iteration = u->at->run[body->depth],
                                 .microbatch = u->at->prefix.microbatch,
                                 .weight_group = u->at->weight_groups.number,
                                 .id = ETCH_UNMADE};
    ETCH_PUSH(u->arena, &u->gathers, run);
}

/* Behind `trigger`, the first node of a unit before; when there is none, after all that has computed. The
 * part that backward gathers from is there since forward gathered: that communication is earlier. */
static void issue_gather(etch_unroller *u, etch_gather_run *run, uint32_t trigger)
{
    const etch_prefix outer = u->at->prefix;
    etch_prefix_begin(u, true, run->microbatch);
    if (run->repeat)
        etch_prefix_extend(&u->at->prefix, run->repeat->name, run->iteration);
    const uint32_t first_dep = u->dep_count;
    etch_unroll_wait(u, trigger != ETCH_NO_NODE ? trigger : u->last_comp);
    run->id = etch_unroll_issue(u, run->task, first_dep);
    u->at->prefix = outer;
}

static void issue_gathers(etch_unroller *u, uint64_t last_unit, uint32_t trigger)
{
    for (; u->gathers_issued < u->gathers.count && u->gathers.at[u->gathers_issued].weight_group <= last_unit;
         u->gathers_issued++)
        issue_gather(u, &u->gathers.at[u->gathers_issued], trigger);
}

/* A unit finds what was gathered for it. */
static void take_gather(etch_unroller *u, const etch_task *task, const etch_body *body)
{
    uint32_t *kept = &u->kept[etch_register_index(u, body, task->index)];
    if (!task->once || *kept == ETCH_NO_NODE) {
        if (u->finds_gathers)
            find_gather(u, task, body);
        else
            issue_gathers(u, u->weight_group_count, ETCH_NO_NODE);
        *kept = u->gathers.at[u->gathers_met++].id;
    }
    *etch_register_at(u, body, task->index) = *kept;
}

/* With the first node of a unit, those that follow gather what they need. */
static void gather_ahead(etch_unroller *u, uint32_t node)
{
    if (u->group_begun == u->at->weight_groups.number)
        return;
    u->group_begun = u->at->weight_groups.number;
    if (u->outline->ahead > 0)
        issue_gathers(u, u->at->weight_groups.number + u->outline->ahead, node);
}

/* ---- where buckets stand ------------------------------------------------------------------------------- */

static bool holds_item(const etch_unroller *u, uint32_t item)
{
    return etch_held_any(u->held, u->outline->backward->items.at[item].layers);
}

/* Buckets of the top level stand at the end of the interval between loops that completes them. */
static void place_buckets(etch_unroller *u)
{
    const etch_body *backward = u->outline->backward;
    u->after = ETCH_NEW_ARRAY(u->arena, backward->items.count, etch_weight_tasks);
    for (uint32_t i = 0; i < u->outline->weight_tasks.count; i++) {
        etch_weight_task *bucket = u->outline->weight_tasks.at[i];
        if (bucket->role != ETCH_END_REDUCE || bucket->loop_name.text ||
            etch_weight_task_groups(u->held, bucket) == 0)
            continue;
        uint32_t at = etch_weight_task_item(u->outline, u->held, bucket);
        etch_lower_require(u->arena, at != UINT32_MAX);
        while (backward->items.at[at].task && at + 1 < backward->items.count &&
               backward->items.at[at + 1].task && holds_item(u, at + 1))
            at++;
        ETCH_PUSH(u->arena, &u->after[at], bucket);
    }
}

/* ---- bodies -------------------------------------------------------------------------------------------- */

/* The iterations of a loop that run in the chunk at work: those of its units, when they are layers. */
static etch_bound_interval iterations_of(const etch_unroller *u, const etch_body_item *item)
{
    return item->staged ? etch_layers_from(item->layers, u->at->layers)
                        : (etch_bound_interval){0, item->repeat->count};
}

static const etch_body *body_at(const etch_repeat *repeat, uint64_t iteration)
{
    return repeat->bodies[etch_class_at(repeat->classes, iteration)];
}

/* Buckets follow what completes them, but let the message of the action go first: the stage before waits for
 * it. */
static void run_due(etch_unroller *u)
{
    for (uint32_t i = 0; u->at->weight_half && i < u->due.count; i++)
        etch_unroll_weight_task(u, u->due.at[i].task, u->due.at[i].weight_group);
    u->due.count = u->at->weight_half ? 0 : u->due.count;
}

static bool chunk_holds(const etch_unroller *u, uint32_t chunk, const etch_body_item *item)
{
    return etch_overlap(u->held->chunks[chunk], item->layers).end > 0;
}

/* Has the microbatch at work been forward through the chunk, and not all the way back? */
static bool is_under_way(const etch_unroller *u, uint32_t chunk)
{
    for (uint32_t i = 0; i < u->frames.count; i++) {
        const etch_frame *f = &u->frames.at[i];
        if (f->taken && f->chunk == chunk && f->microbatch == u->at->prefix.microbatch)
            return true;
    }
    return false;
}

/* Has the part run for the last time on the stage: in the step, or for the microbatch at work? A loop may be
 * in several chunks, which make gradients of weights in any order. */
static bool is_complete(const etch_unroller *u, const etch_body_item *item, bool in_step)
{
    bool complete = true;
    for (uint32_t chunk = 0; complete && chunk < u->held->count; chunk++)
        if (in_step ? u->left[chunk] > 0 : chunk != u->at->chunk && is_under_way(u, chunk))
            complete = !chunk_holds(u, chunk, item);
    return complete;
}

/* Buckets that follow an item of the backward body. */
static void add_due(etch_unroller *u, uint32_t item_index, const etch_body_item *item)
{
    const bool last = u->at->ending && is_complete(u, item, true), now = is_complete(u, item, false);
    for (uint32_t i = 0; i < u->after[item_index].count; i++) {
        const etch_weight_task *bucket = u->after[item_index].at[i];
        if (bucket->every_microbatch ? now : last)
            ETCH_PUSH(u->arena, &u->due, (etch_due){bucket, 0});
    }
}

static bool is_of_action(const etch_unroller *u, const etch_task *task)
{
    return task->weight_half ? u->at->weight_half : u->at->first_half;
}

/* Returns whether it communicates, but for what is issued ahead. */
static bool run_task_item(etch_unroller *u, const etch_task *task, const etch_body *body)
{
    if (!is_of_action(u, task))
        return false;
    if (!body->parent)
        begin_weight_group(u, task);
    if (task->gathers)
        take_gather(u, task, body);
    else
        run_task(u, task, body);
    return !task->gathers && !task->goes_round && task->type != ETCH_NODE_COMP;
}

/* ---- walks --------------------------------------------------------------------------------------------- */

/* What a walk through the body of an action comes to. */
typedef enum walk_event { WALK_GOES_ON, WALK_COMMUNICATES, WALK_ENDS } walk_event;

static etch_body_level *level_at(const etch_unroller *u)
{
    return &u->at->levels[u->at->depth - 1];
}

static uint64_t iteration_of(const etch_body_level *level)
{
    return level->loop->repeat->reverse ? level->turns.end - 1 - level->turn
                                        : level->turns.first + level->turn;
}

/* Are the first, or the last, of all iterations of the loop among those that run? What the first iteration of
 * a chunk carries in has else come with a message. */
static bool begins_loop(const etch_body_level *level)
{
    const etch_repeat *repeat = level->loop->repeat;
    return repeat->reverse ? level->turns.end == repeat->count : level->turns.first == 0;
}

static bool ends_loop(const etch_body_level *level)
{
    const etch_repeat *repeat = level->loop->repeat;
    return repeat->reverse ? level->turns.first == 0 : level->turns.end == repeat->count;
}

static uint32_t carried_count(const etch_unroller *u, const etch_repeat *repeat)
{
    return u->finds_gathers ? 0 : repeat->carried_count;
}

/* Iterations hand values on: what the last one left goes into the next, and the loop's result is what the
 * last of all left. */
static void begin_iteration(etch_unroller *u)
{
    etch_body_level *level = level_at(u);
    const etch_repeat *repeat = level->loop->repeat;
    const uint64_t iteration = iteration_of(level);
    const etch_body *body = body_at(repeat, iteration), *around = level[-1].body;
    level->body = body;
    level->item = 0;
    u->at->run[body->depth] = level->first_run + iteration;
    for (uint32_t i = 0; (level->turn > 0 || begins_loop(level)) && i < carried_count(u, repeat); i++)
        *etch_register_at(u, body, body->taken[i].at) = repeat->carrying[i];
    run_due(u);
    etch_prefix_extend(&u->at->prefix, repeat->name, iteration);
    if (!around->parent) {
        etch_unroll_begin_interval(u);
        u->at->weight_groups.number = ++u->weight_group_count;
    }
}

static void end_iteration(etch_unroller *u)
{
    etch_body_level *level = level_at(u);
    const etch_repeat *repeat = level->loop->repeat;
    const etch_body *body = level->body;
    u->at->prefix.length = level->prefix_length;
    u->at->prefix.in_layer = level->in_layer;
    for (uint32_t i = 0; i < carried_count(u, repeat); i++)
        repeat->carrying[i] = etch_maker_of(u, body->taken[i].from);
    for (uint32_t i = 0; i < body->after_each.count && u->at->weight_half && !u->finds_gathers; i++)
        if (u->at->ending || body->after_each.at[i]->every_microbatch)
            ETCH_PUSH(u->arena, &u->due, (etch_due){body->after_each.at[i], iteration_of(level)});
    level->turn++;
}

/* Goes on to the next item of the body at work. */
static void end_item(etch_unroller *u)
{
    etch_body_level *level = level_at(u);
    const etch_body_item *item = &level->body->items.at[level->item];
    if (level->body == u->outline->backward && u->at->weight_half && !u->finds_gathers)
        add_due(u, level->item, item);
    if (item->repeat && !level->body->parent)
        u->at->weight_groups.begins = true;
    level->item++;
}

static void next_iteration(etch_unroller *u)
{
    const etch_body_level *level = level_at(u);
    const etch_repeat *repeat = level->loop->repeat;
    if (level->turn < level->turns.end - level->turns.first) {
        begin_iteration(u);
        return;
    }
    for (uint32_t i = 0; ends_loop(level) && i < carried_count(u, repeat); i++)
        *etch_register_at(u, level[-1].body, repeat->carried[i].at) = repeat->carrying[i];
    u->at->depth--;
    end_item(u);
}

static void begin_loop(etch_unroller *u, const etch_body_item *item)
{
    const etch_body *around = level_at(u)->body;
    const etch_repeat *repeat = item->repeat;
    const etch_body_level level = {.loop = item,
                                   .turns = iterations_of(u, item),
                                   .first_run = u->at->run[around->depth] * repeat->count,
                                   .prefix_length = u->at->prefix.length,
                                   .in_layer = u->at->prefix.in_layer};
    for (uint32_t i = 0; begins_loop(&level) && i < carried_count(u, repeat); i++)
        repeat->carrying[i] = etch_maker_of(u, repeat->carried[i].from);
    u->at->levels[u->at->depth++] = level;
    next_iteration(u);
}

/* Weights are gathered no deeper than in the loops of the top level: who looks for gathers may leave out what
 * is inside, where no other action waits for its turn. */
static bool is_left_out(const etch_unroller *u, const etch_body *body, const etch_body_item *item)
{
    if (!body->parent)
        return !chunk_holds(u, u->at->chunk, item);
    return u->finds_gathers && u->slot_count == 1 && !(item->task && item->task->gathers);
}

/* Runs the next item of the action at work, or begins or ends an iteration. */
static walk_event walk_on(etch_unroller *u)
{
    etch_body_level *level = level_at(u);
    const etch_body *body = level->body;
    if (level->item == body->items.count) {
        if (!level->loop)
            return WALK_ENDS;
        end_iteration(u);
        next_iteration(u);
        return WALK_GOES_ON;
    }
    const etch_body_item *item = &body->items.at[level->item];
    if (is_left_out(u, body, item)) {
        level->item++;
        return WALK_GOES_ON;
    }
    run_due(u);
    if (item->repeat && item->repeat->works) {
        begin_loop(u, item);
        return WALK_GOES_ON;
    }
    const bool communicates = item->task && run_task_item(u, item->task, body);
    end_item(u);
    return communicates ? WALK_COMMUNICATES : WALK_GOES_ON;
}

/* ---- messages ------------------------------------------------------------------------------------------ */

/* Where a message of an action goes, or comes from. */
typedef struct message_end {
    etch_chunk_place place;
    const etch_chunk_message *message;
    /* which time the chain goes through the stages */
    uint32_t row;
    bool back;
} message_end;

static uint32_t *makers_new(const etch_unroller *u, uint64_t count, uint32_t maker)
{
    uint32_t *makers = ETCH_NEW_ARRAY(u->arena, (size_t)count, uint32_t);
    for (uint64_t i = 0; i < count; i++)
        makers[i] = maker;
    return makers;
}

static uint16_t peer_of(etch_unroller *u, uint32_t other_stage)
{
    const int64_t own = etch_stage_rank(u->job, u->stage);
    return etch_unroll_peer(u, (etch_peer){.offset = etch_stage_rank(u->job, other_stage) - own});
}

/* The register of a value that a message brings. */
static uint32_t *arrival_of(etch_unroller *u, const etch_passed_value *wire)
{
    if (!wire->item)
        return etch_register_at(u, wire->reg.body, wire->reg.index);
    const etch_repeat *repeat = wire->item->repeat;
    const etch_bound_interval turns = iterations_of(u, wire->item);
    const uint64_t first = repeat->reverse ? turns.end - 1 : turns.first;
    const etch_body *body = body_at(repeat, first);
    u->at->run[body->depth] = first;
    return etch_register_at(u, body, body->taken[wire->carry].at);
}

/* The node that makes what a message brings, or NO_NODE: it is zeros. */
static uint32_t sent_by(const etch_unroller *u, const etch_passed_value *wire)
{
    return wire->item ? wire->item->repeat->carrying[wire->carry] : etch_maker_of(u, wire->reg);
}

/* The node that sends the values, or that receives them. A receive is posted together with what the action
 * two before sends, and must not stand after it: of two stages, each in the middle of forward and backward
 * in turns, each would wait for the other where sends wait for their receives. */
static uint32_t issue_message(etch_unroller *u, const etch_chunk_message *message, const etch_task *task)
{
    const uint32_t first_dep = u->dep_count;
    if (task->type == ETCH_NODE_RECV) {
        etch_unroll_wait(u, u->posted_after);
        return etch_unroll_append(u, task, first_dep);
    }
    for (uint32_t i = 0; i < message->wire_count; i++)
        etch_unroll_wait(u, sent_by(u, &message->wires[i]));
    return etch_unroll_issue(u, task, first_dep);
}

/* The other end of what an action receives, or sends. False: the chain begins or ends here. */
static bool other_end(const etch_unroller *u, etch_action action, bool sends, message_end *end)
{
    const etch_pipe *pipe = u->outline->pipe;
    const etch_chunk_map map = etch_schedule_map(pipe->schedule);
    const etch_chunk_place here = {u->stage, action.chunk};
    const uint64_t model_chunk = etch_model_chunk(map, pipe->stages, here);
    const uint32_t copy = etch_chunk_copy(map, pipe->stages, here);
    const bool back = etch_action_goes_back(action);
    const bool later = sends != back; /* the other model chunk is the one after this one */
    const uint64_t count = etch_model_chunk_count(map, pipe->stages, pipe->chunks);
    const bool ends = model_chunk == (later ? count - 1 : 0);
    if (action.kind == ETCH_ACTION_WEIGHT_GRADIENTS || ends)
        return false;
    const uint64_t other = later ? model_chunk + 1 : model_chunk - 1, earlier = later ? model_chunk : other;
    *end = (message_end){.place = etch_chunk_place_of(map, pipe->stages, copy, other),
                         .message = &u->outline->messages[back][earlier],
                         .row = etch_chunk_place_of(map, pipe->stages, copy, earlier).chunk,
                         .back = back};
    return true;
}

static void pass_message(etch_unroller *u, etch_action action, const message_end *end, bool sends)
{
    const etch_pipe *pipe = u->outline->pipe;
    const etch_chunk_message *message = end->message;
    const bool is_named = u->outline->naming != ETCH_NAMES_NONE;
    char name[ETCH_MESSAGE_NAME] = "", suffix[ETCH_MESSAGE_NAME / 2] = "";
    if (is_named && pipe->chunks > 1)
        snprintf(suffix, sizeof suffix, ".chunk%" PRIu32, end->place.chunk);
    if (is_named)
        snprintf(name, sizeof name, "%s.stage%" PRIu32 "%s", sends ? "send" : "recv", end->place.stage,
                 suffix);
    const etch_task task = {.type = sends ? ETCH_NODE_SEND : ETCH_NODE_RECV,
                            .bytes = message->bytes,
                            .number = message->number,
                            .phase = end->back ? ETCH_BACKWARD : ETCH_FORWARD,
                            .op_type = sends ? "send" : "recv",
                            .name = etch_word_of(name)};
    const uint32_t id = issue_message(u, message, &task);
    u->nodes[id].peer = peer_of(u, end->place.stage);
    u->nodes[id].tag = (uint32_t)((action.microbatch * pipe->chunks + end->row) * 2 + end->back);
    for (uint32_t i = 0; i < message->wire_count && !sends; i++)
        *arrival_of(u, &message->wires[i]) = id;
}

static uint32_t frame_of(etch_unroller *u, etch_action action);

/* Where the chain turns on the stage, what one chunk has made is what the next one finds. */
static void turn(etch_unroller *u, etch_action action, const message_end *end)
{
    const etch_chunk_message *message = end->message;
    const etch_bound_interval layers = u->at->layers;
    uint32_t *registers = u->at->registers, *made = makers_new(u, message->wire_count, ETCH_NO_NODE);
    for (uint32_t i = 0; i < message->wire_count; i++)
        made[i] = sent_by(u, &message->wires[i]);
    action.chunk = end->place.chunk;
    u->at->layers = u->held->chunks[action.chunk];
    const uint32_t frame = frame_of(u, action);
    u->at->registers = u->frames.at[frame].registers;
    for (uint32_t i = 0; i < message->wire_count; i++)
        *arrival_of(u, &message->wires[i]) = made[i];
    u->at->layers = layers;
    u->at->registers = registers;
}

static void receive(etch_unroller *u, etch_action action)
{
    message_end end;
    if (!other_end(u, action, false, &end))
        return;
    for (uint32_t i = 0; i < end.message->zero_count; i++)
        *arrival_of(u, &end.message->zeros[i]) = ETCH_NO_NODE;
    if (end.message->wire_count > 0 && end.place.stage != u->stage)
        pass_message(u, action, &end, false);
}

static void send(etch_unroller *u, etch_action action)
{
    message_end end;
    if (!other_end(u, action, true, &end) || end.message->wire_count == 0)
        return;
    if (end.place.stage == u->stage)
        turn(u, action, &end);
    else
        pass_message(u, action, &end, true);
}

/* ---- slots --------------------------------------------------------------------------------------------- */

/* Forgets what the chunk at work may have made in these runs of a body: of the iterations that are units only
 * its own. Goes as deep as loops are nested. */
static void clear_registers(const etch_unroller *u, uint32_t *registers, const etch_body *body,
                            etch_bound_interval runs)
{
    uint32_t *first = registers + body->first_register + runs.first * body->register_count;
    for (uint64_t i = 0; i < (runs.end - runs.first) * body->register_count; i++)
        first[i] = ETCH_UNMADE;
    for (uint32_t i = 0; i < body->items.count; i++) {
        const etch_body_item *item = &body->items.at[i];
        if (!item->repeat)
            continue;
        const uint64_t count = item->repeat->count;
        const etch_bound_interval inner = item->staged
                                              ? iterations_of(u, item)
                                              : (etch_bound_interval){runs.first * count, runs.end * count};
        for (uint32_t k = 0; k < item->repeat->body_count; k++)
            if (item->repeat->bodies[k]->runs > 0)
                clear_registers(u, registers, item->repeat->bodies[k], inner);
    }
}

/* The number of the frame of a microbatch in a chunk: the one that it has, or one that is free. */
static uint32_t frame_of(etch_unroller *u, etch_action action)
{
    uint32_t found = u->frames.count;
    for (uint32_t i = 0; i < u->frames.count; i++) {
        const etch_frame *f = &u->frames.at[i];
        if (f->taken && f->microbatch == action.microbatch && f->chunk == action.chunk)
            return i;
        if (!f->taken && found == u->frames.count)
            found = i;
    }
    if (found == u->frames.count)
        ETCH_PUSH(u->arena, &u->frames,
                  (etch_frame){.registers = makers_new(u, u->outline->register_count, ETCH_UNMADE)});
    etch_frame *f = &u->frames.at[found];
    f->taken = true;
    f->microbatch = action.microbatch;
    f->chunk = action.chunk;
    clear_registers(u, f->registers, u->outline->forward, (etch_bound_interval){0, 1});
    if (u->outline->backward)
        clear_registers(u, f->registers, u->outline->backward, (etch_bound_interval){0, 1});
    return found;
}

static void begin_action(etch_unroller *u, etch_action action)
{
    const bool back = action.kind != ETCH_ACTION_FORWARD;
    etch_action_run *at = u->at;
    at->action = action;
    at->layers = u->held->chunks[action.chunk];
    at->chunk = action.chunk;
    at->first_half = action.kind != ETCH_ACTION_WEIGHT_GRADIENTS;
    at->weight_half = etch_action_ends(action);
    at->weight_groups = (etch_weight_group_count){.number = u->weight_group_count, .begins = true};
    at->depth = 1;
    at->levels[0] = (etch_body_level){.body = back ? u->outline->backward : u->outline->forward};
    at->run[at->levels[0].body->depth] = 0;
    at->ending = at->has_ended = false;
    etch_prefix_begin(u, true, action.microbatch);
}

/* The actions that the slot runs in turns, of those that it has: both halves of a backward action are one. */
static void begin_slot(etch_unroller *u, const etch_action *actions, uint64_t count)
{
    u->slot_count = 0;
    for (uint64_t i = 0; i < count; i++) {
        etch_action action = actions[i];
        if (i + 1 < count && action.kind == ETCH_ACTION_INPUT_GRADIENTS) {
            action.kind = ETCH_ACTION_BACKWARD;
            i++;
        }
        etch_lower_require(u->arena, u->slot_count < ETCH_SLOT_ACTIONS);
        u->at = &u->slot[u->slot_count++];
        begin_action(u, action);
    }
}

/* Where the chain comes back, or goes both ways, two stages send to each other in both directions, and how
 * many actions lie between what each sends and needs depends on the stage: a receive is posted as soon as the
 * one before of the chunk and direction has come. */
static uint32_t *comes_after(const etch_unroller *u, etch_action action)
{
    return &u->last_of_chunk[action.chunk][etch_action_goes_back(action)];
}

static void end_walk(etch_unroller *u)
{
    u->at->has_ended = true;
    if (u->at->first_half && !u->finds_gathers)
        *comes_after(u, u->at->action) = u->last_comp;
}

/* The actions of the slot in turns: each until it communicates, or ends. Then the other one computes. */
static void walk_slot(etch_unroller *u)
{
    uint32_t left = u->slot_count, turn = 0;
    while (left > 0) {
        walk_event event = WALK_GOES_ON;
        u->at = &u->slot[turn];
        while (event == WALK_GOES_ON)
            event = walk_on(u);
        if (event == WALK_ENDS) {
            end_walk(u);
            left--;
        }
        if (left == 0 || u->slot[(turn + 1) % u->slot_count].has_ended)
            continue;
        turn = (turn + 1) % u->slot_count;
        if (u->slot_count > 1)
            etch_unroll_begin_turn(u);
    }
}

static void receive_for_action(etch_unroller *u)
{
    const etch_outline *outline = u->outline;
    const etch_action action = u->at->action;
    const bool comes_back = etch_schedule_map(outline->pipe->schedule) != ETCH_MAP_LOOPED;
    u->posted_after = comes_back ? *comes_after(u, action) : u->before_action;
    u->at->frame = frame_of(u, action);
    u->at->registers = u->frames.at[u->at->frame].registers;
    receive(u, action);
    u->at->ending = u->at->weight_half && --u->left[action.chunk] == 0 && !outline->reduce_last;
}

/* Messages leave at the end of the slot; what is complete is reduced after them. */
static void end_slot(etch_unroller *u)
{
    for (uint32_t i = 0; i < u->slot_count; i++) {
        u->at = &u->slot[i];
        u->at->ending = false;
        send(u, u->at->action);
    }
    for (uint32_t i = 0; i < u->slot_count; i++) {
        u->at = &u->slot[i];
        run_due(u);
        if (u->at->weight_half || !u->outline->backward)
            u->frames.at[u->at->frame].taken = false;
    }
}

static void run_slot(etch_unroller *u, const etch_action *actions, uint64_t count)
{
    begin_slot(u, actions, count);
    for (uint32_t i = 0; i < u->slot_count; i++) {
        u->at = &u->slot[i];
        receive_for_action(u);
    }
    etch_unroll_begin_interval(u);
    u->before_action = u->last_comp;
    walk_slot(u);
    end_slot(u);
}

/* Goes over all that the stage does once, before anything is issued: where there are weights to gather. */
static void find_gathers(etch_unroller *u, const etch_action *actions, uint64_t action_count)
{
    if (!u->outline->gathers_weights)
        return;
    u->kept = makers_new(u, u->outline->register_count, ETCH_NO_NODE);
    uint32_t *registers = makers_new(u, u->outline->register_count, ETCH_UNMADE);
    u->finds_gathers = true;
    for (uint64_t i = 0, end; i < action_count; i = end) {
        end = etch_slot_end(actions, action_count, i);
        begin_slot(u, actions + i, end - i);
        for (uint32_t k = 0; k < u->slot_count; k++)
            u->slot[k].registers = registers;
        walk_slot(u);
    }
    u->kept = makers_new(u, u->outline->register_count, ETCH_NO_NODE);
    u->finds_gathers = false;
    u->weight_group_count = 0;
    u->gathers_met = 0;
}

static void run_actions(etch_unroller *u)
{
    const etch_pipe *pipe = u->outline->pipe;
    const uint64_t action_count = etch_action_count(pipe);
    const etch_action *actions = etch_actions(u->arena, pipe, u->stage);
    u->left = ETCH_NEW_ARRAY(u->arena, pipe->chunks, uint64_t);
    u->last_of_chunk = etch_alloc_array(u->arena, pipe->chunks, sizeof *u->last_of_chunk);
    for (uint32_t i = 0; i < pipe->chunks; i++) {
        u->left[i] = etch_chunk_microbatches(pipe);
        u->last_of_chunk[i][false] = u->last_of_chunk[i][true] = ETCH_NO_NODE;
    }
    find_gathers(u, actions, action_count);
    for (uint64_t i = 0, end; i < action_count; i = end) {
        end = etch_slot_end(actions, action_count, i);
        if (u->slots)
            u->slots[u->slots_begun++] = u->node_count;
        run_slot(u, actions + i, end - i);
    }
    if (u->slots)
        u->slots[u->slots_begun] = u->node_count;
    etch_lower_require(u->arena, u->gathers_met == u->gathers.count);
}

/* The first computation takes some time on any machine: see ETCH_LEAST_FIRST_BYTES. */
static void lengthen_start(etch_unroller *u)
{
    for (uint32_t i = 0; i < u->node_count; i++) {
        etch_node *node = &u->nodes[i];
        if (node->type != ETCH_NODE_COMP || node->dep_count > 0)
            continue;
        const uint64_t bytes = etch_node_bytes(node->type, node->flop, node->bytes, true);
        u->total->padded_bytes += bytes - node->bytes;
        node->bytes = bytes;
        return;
    }
}

void etch_unroll(etch_arena *arena, const etch_job *job, const etch_outline *outline,
                 etch_class_program *program, etch_stage_total *total, etch_comm_total *comm)
{
    const etch_size *size = &outline->sizes[total->stage];
    etch_arena *scratch = etch_arena_new(etch_arena_mem(arena));
    etch_unroller *u = ETCH_NEW(scratch, etch_unroller);
    *u = (etch_unroller){.arena = scratch,
                         .job = job,
                         .outline = outline,
                         .stage = total->stage,
                         .held = &outline->held[total->stage],
                         .total = total,
                         .comm = comm};
    u->nodes = ETCH_NEW_ARRAY(arena, (size_t)size->nodes, etch_node);
    u->deps = ETCH_NEW_ARRAY(arena, (size_t)size->deps, uint32_t);
    u->names = etch_alloc(arena, (size_t)size->name_bytes);
    u->names[0] = '\0';
    if (outline->annotations != 0)
        u->annotated = ETCH_NEW_ARRAY(arena, (size_t)size->nodes, etch_annotated);
    if (outline->marks_slots)
        u->slots = ETCH_NEW_ARRAY(arena, (size_t)etch_action_count(outline->pipe) + 1, uint32_t);
    if (outline->form)
        u->tasks = ETCH_NEW_ARRAY(arena, (size_t)size->nodes, uint32_t);
    u->peers = ETCH_NEW_ARRAY(arena, 2 * ((size_t)outline->pipe->chunks + job->mesh_count) + 2, etch_peer);
    u->reaches = ETCH_NEW_ARRAY(scratch, (size_t)size->nodes, etch_reach);
    u->gradients = makers_new(u, outline->gradient_registers, ETCH_NO_NODE);
    u->reduced = makers_new(u, outline->gradient_registers, ETCH_NO_NODE);
    u->late_comm = u->late_recv = u->ahead_comm = u->ahead_recv = ETCH_NO_NODE;
    u->before_interval = u->before_action = ETCH_NO_NODE;
    u->last_comp = u->last_comm = u->clipped = ETCH_NO_NODE;
    u->flows = etch_flows_new(scratch, outline, u->held);
    u->at = u->slot;
    if (outline->backward)
        place_buckets(u);
    run_actions(u);
    etch_unroll_end(u);
    lengthen_start(u);
    etch_lower_require(scratch, u->node_count == size->nodes && u->dep_count <= size->deps &&
                                    u->name_bytes <= size->name_bytes);
    total->nodes = u->node_count;
    *program = (etch_class_program){.nodes = u->nodes,
                                    .node_count = u->node_count,
                                    .deps = u->deps,
                                    .names = u->names,
                                    .annotated = u->annotated,
                                    .peers = u->peers,
                                    .peer_count = u->peer_count,
                                    .slots = u->slots,
                                    .tasks = u->tasks,
                                    .slot_count = u->slots_begun};
    etch_arena_free(scratch);
}
