/* The chain of layers in numbers: which of them each stage holds, and what goes from one to the next. */
#include "lower/lower_int.h"

/* ---- questions ----------------------------------------------------------------------------------------- */

bool etch_held_any(const etch_held *held, etch_bound_interval layers)
{
    for (uint32_t chunk = 0; chunk < held->count; chunk++)
        if (etch_overlap(held->chunks[chunk], layers).end > 0)
            return true;
    return false;
}

etch_bound_interval etch_layers_from(etch_bound_interval layers, etch_bound_interval held)
{
    const etch_bound_interval both = etch_overlap(layers, held);
    return both.end > 0 ? (etch_bound_interval){both.first - layers.first, both.end - layers.first} : both;
}

uint64_t etch_held_members(const etch_held *held, etch_bound_interval layers, const etch_classes *classes,
                           uint32_t class)
{
    uint64_t members = 0;
    for (uint32_t chunk = 0; chunk < held->count; chunk++)
        members += etch_class_members(classes, class, etch_layers_from(layers, held->chunks[chunk]));
    return members;
}

/* Does the stage run a task that lists its stages? */
static bool is_of_task(const etch_held *held, const etch_weight_task *task)
{
    const etch_group_set *group = &task->task.group;
    for (uint32_t i = 0; i < group->stage_count; i++)
        if (group->stages[i] == held->stage)
            return true;
    return !group->stages;
}

/* The norm counts a gradient once, of the first copy of the chain. */
static const etch_held *counted(const etch_held *held, const etch_weight_task *task)
{
    return task->role == ETCH_END_NORM && held->of_first_copy ? held->of_first_copy : held;
}

uint64_t etch_weight_task_groups(const etch_held *of, const etch_weight_task *task)
{
    const etch_held *held = counted(of, task);
    if (!is_of_task(held, task))
        return 0;
    if (task->staged)
        return etch_held_members(held, task->uses.at[0].layers, task->classes, task->class);
    for (uint32_t i = 0; i < task->uses.count; i++)
        if (etch_held_members(held, task->uses.at[i].layers, task->uses.at[i].classes,
                              task->uses.at[i].class) > 0)
            return etch_class_members(task->classes, task->class,
                                      (etch_bound_interval){0, task->weight_groups});
    return 0;
}

bool etch_weight_task_has(const etch_held *of, const etch_weight_task *task, uint64_t weight_group)
{
    const etch_held *held = counted(of, task);
    const uint64_t layer = task->uses.at[0].layers.first + weight_group;
    return etch_class_at(task->classes, weight_group) == task->class &&
           (!task->staged || etch_held_any(held, (etch_bound_interval){layer, layer + 1}));
}

uint32_t etch_weight_task_item(const etch_outline *outline, const etch_held *held,
                               const etch_weight_task *task)
{
    const etch_body *backward = outline->backward;
    uint32_t last = UINT32_MAX;
    for (uint32_t g = 0; g < task->task.gradients.count; g++) {
        const etch_gradient *gradient = &outline->gradients.at[task->task.gradients.at[g]];
        for (uint32_t i = 0; i < gradient->adders.count; i++) {
            const uint32_t item = gradient->adders.at[i];
            if (etch_held_any(held, backward->items.at[item].layers) && (last == UINT32_MAX || item > last))
                last = item;
        }
    }
    for (uint32_t item = backward->items.count; last == UINT32_MAX && item-- > 0;)
        if (etch_held_any(held, backward->items.at[item].layers))
            last = item;
    return last;
}

/* ---- cutting ------------------------------------------------------------------------------------------- */

bool etch_is_cut(const etch_outliner *o)
{
    return o->extent->pipe.stages > 1;
}

/* Of one stage: one layer, whatever the plan would cut. */
static const etch_bound_interval everything = {0, 1};

etch_bound_interval etch_layers_at(etch_outliner *o, etch_position position)
{
    return etch_is_cut(o) ? etch_layers_of_position(&o->numbers, position) : everything;
}

/* The sizes of a chain of more than one stage. */
static etch_stage_numbers numbers_of(etch_outliner *o)
{
    const etch_stages *stages = o->placed->stages;
    const etch_stage_line *line = stages->line;
    uint64_t *segments = ETCH_NEW_ARRAY(o->arena, stages->segments.count, uint64_t);
    uint64_t *counts = ETCH_NEW_ARRAY(o->arena, line->count_count, uint64_t);
    for (uint32_t i = 0; i < stages->segments.count; i++)
        segments[i] = etch_bound_number(o, stages->segments.at[i].count);
    for (uint32_t i = 0; i < line->count_count; i++)
        counts[i] = etch_bound_number(o, line->counts[i]);
    return (etch_stage_numbers){.map = etch_schedule_map(o->extent->pipe.schedule),
                                .stages = o->extent->pipe.stages,
                                .chunks = o->extent->pipe.chunks,
                                .layers = etch_bound_number(o, stages->layers),
                                .segments = segments,
                                .counts = line->counts ? counts : NULL};
}

/* What a stage has of its chunks from `first` on, `count` of them. */
static etch_held *held_of(etch_outliner *o, uint32_t stage, uint32_t first, uint32_t count)
{
    const etch_chunk_map map = etch_schedule_map(o->extent->pipe.schedule);
    const uint32_t stages = o->extent->pipe.stages;
    etch_bound_interval *layers = ETCH_NEW_ARRAY(o->arena, count, etch_bound_interval);
    for (uint32_t i = 0; i < count; i++) {
        const etch_chunk_place place = {stage, first + i};
        layers[i] = etch_is_cut(o) ? etch_layers_of_chunk(&o->numbers, etch_model_chunk(map, stages, place))
                                   : everything;
    }
    etch_held *held = ETCH_NEW(o->arena, etch_held);
    *held = (etch_held){.stage = stage, .chunks = layers, .count = count};
    return held;
}

/* Of a chain that is there twice: which chunk of the stage is of the first copy. */
static uint32_t first_copy_of(const etch_pipe *pipe, uint32_t stage)
{
    const etch_chunk_map map = etch_schedule_map(pipe->schedule);
    uint32_t chunk = 0;
    while (etch_chunk_copy(map, pipe->stages, (etch_chunk_place){stage, chunk}) != 0)
        chunk++;
    return chunk;
}

void etch_chain_cut(etch_outliner *o)
{
    const uint32_t stages = o->extent->pipe.stages, chunks = o->extent->pipe.chunks;
    if (etch_is_cut(o)) {
        o->numbers = numbers_of(o);
        if (!etch_stage_numbers_fit(o->placed, &o->numbers))
            o->status = ETCH_EINPUT;
        else if ((uint64_t)stages * chunks > ETCH_MAX_RANKS)
            etch_too_many_nodes(o, o->placed->plan->stage->span, "there are too many chunks");
    }
    if (o->status != ETCH_OK)
        return;
    const bool is_twice = etch_is_cut(o) && etch_schedule_copies(o->extent->pipe.schedule) > 1;
    etch_held *held = o->outline->held = ETCH_NEW_ARRAY(o->arena, stages, etch_held);
    for (uint32_t stage = 0; stage < stages; stage++) {
        held[stage] = *held_of(o, stage, 0, chunks);
        if (is_twice)
            held[stage].of_first_copy = held_of(o, stage, first_copy_of(&o->extent->pipe, stage), 1);
    }
}

/* ---- messages ------------------------------------------------------------------------------------------ */

/* The cut that stands before layer `at`. */
static const etch_cut *cut_before(etch_outliner *o, uint64_t at)
{
    const etch_stages *stages = o->placed->stages;
    for (uint32_t i = 0; i < stages->cuts.count; i++)
        if (etch_cut_is_before(&o->numbers, &stages->cuts.at[i], at))
            return &stages->cuts.at[i];
    etch_lower_require(o->arena, false);
    return NULL;
}

/* The register of a value, or the loop that carries it on as its argument. */
static etch_passed_value wire_of(etch_outliner *o, const etch_body *body, const etch_value *value)
{
    for (uint32_t i = 0; i < body->items.count; i++) {
        const etch_repeat *repeat = body->items.at[i].repeat;
        for (uint32_t k = 0; repeat && k < repeat->carried_count; k++)
            if (etch_loop_carries(repeat->loop)->at[k].in == value)
                return (etch_passed_value){.item = &body->items.at[i], .carry = k};
    }
    return (etch_passed_value){.reg = etch_register_of(o, value, body)};
}

/* Is it read after the cut, whatever makes it? */
static bool is_read(etch_outliner *o, const etch_cut *cut, const etch_crossing *crossing, bool backward,
                    etch_expr iteration)
{
    etch_crossing made = *crossing;
    made.is_made = true;
    return etch_bound_number(
               o, etch_crosses(o->bound->sym, o->placed->stages, cut, &made, backward, iteration)) > 0;
}

/* What crosses the cut before layer `at`. */
static etch_chunk_message message_of(etch_outliner *o, const etch_body *body, const etch_cut *cut,
                                     uint64_t at, const char *name)
{
    const bool backward = body == o->outline->backward;
    const etch_crossings *all = backward ? &cut->backward : &cut->forward;
    const uint64_t first = etch_layers_at(o, etch_position_at(cut->segment, ETCH_ALL_OF)).first;
    const etch_expr iteration = etch_int(o->bound->sym, (int64_t)(at - first));
    etch_chunk_message message = {.wires = ETCH_NEW_ARRAY(o->arena, all->count, etch_passed_value),
                                  .zeros = ETCH_NEW_ARRAY(o->arena, all->count, etch_passed_value)};
    etch_expr bytes = etch_int(o->bound->sym, 0);
    for (uint32_t i = 0; i < all->count; i++) {
        const etch_crossing *crossing = &all->at[i];
        const etch_passed_value wire = wire_of(o, body, crossing->value);
        const etch_expr crosses =
            etch_crosses(o->bound->sym, o->placed->stages, cut, crossing, backward, iteration);
        const bool is_here = wire.item || wire.reg.body == body;
        if (etch_bound_number(o, crosses) == 0) {
            if (is_here && is_read(o, cut, crossing, backward, iteration))
                message.zeros[message.zero_count++] = wire;
            continue;
        }
        bytes = etch_add(o->bound->sym, bytes, etch_value_bytes(o->placed, crossing->value));
        if (is_here)
            message.wires[message.wire_count++] = wire;
    }
    message.bytes = etch_task_number(o, bytes, "bytes", NULL, name);
    if (o->outline->form)
        message.number = etch_form_task(o, ETCH_NODE_SEND, 0, false, NULL, bytes);
    return message;
}

void etch_chain_messages(etch_outliner *o)
{
    etch_outline *outline = o->outline;
    const etch_pipe *pipe = &o->extent->pipe;
    const uint64_t chunks =
        etch_model_chunk_count(etch_schedule_map(pipe->schedule), pipe->stages, pipe->chunks);
    for (int back = 0; back < 2; back++)
        outline->messages[back] = ETCH_NEW_ARRAY(o->arena, chunks, etch_chunk_message);
    for (uint64_t i = 0; i + 1 < chunks; i++) {
        const uint64_t at = etch_layers_of_chunk(&o->numbers, i).end;
        const etch_cut *cut = cut_before(o, at);
        outline->messages[false][i] = message_of(o, outline->forward, cut, at, "a message to the next stage");
        if (outline->backward)
            outline->messages[true][i] =
                message_of(o, outline->backward, cut, at, "a message to the stage before");
    }
}
