/* The chain of layers in numbers: which of them each stage holds, and what goes from one to the next. */
#include "lower/lower_int.h"

/* ---- questions ----------------------------------------------------------------------------------------- */

uint32_t etch_model_chunk_count(const etch_model_chunks *model_chunks)
{
    return model_chunks->stage_count * model_chunks->chunk_count;
}

etch_bound_interval etch_chunk_layers(const etch_model_chunks *model_chunks, uint32_t stage, uint32_t chunk)
{
    return model_chunks->intervals[(uint64_t)chunk * model_chunks->stage_count + stage];
}

bool etch_chunk_holds(const etch_model_chunks *model_chunks, uint32_t stage, uint32_t chunk,
                      etch_bound_interval layers)
{
    return etch_overlap(etch_chunk_layers(model_chunks, stage, chunk), layers).end > 0;
}

bool etch_stage_holds(const etch_model_chunks *model_chunks, uint32_t stage, etch_bound_interval layers)
{
    uint32_t chunk = 0;
    while (chunk < model_chunks->chunk_count && !etch_chunk_holds(model_chunks, stage, chunk, layers))
        chunk++;
    return chunk < model_chunks->chunk_count;
}

etch_bound_interval etch_layers_from(etch_bound_interval layers, etch_bound_interval held)
{
    const etch_bound_interval both = etch_overlap(layers, held);
    return both.end > 0 ? (etch_bound_interval){both.first - layers.first, both.end - layers.first} : both;
}

uint64_t etch_stage_members(const etch_model_chunks *model_chunks, uint32_t stage, etch_bound_interval layers,
                            const etch_classes *classes, uint32_t class)
{
    uint64_t held = 0;
    for (uint32_t chunk = 0; chunk < model_chunks->chunk_count; chunk++)
        held += etch_class_members(classes, class,
                                   etch_layers_from(layers, etch_chunk_layers(model_chunks, stage, chunk)));
    return held;
}

bool etch_weight_task_runs(const etch_model_chunks *model_chunks, uint32_t stage,
                           const etch_weight_task *task)
{
    for (uint32_t i = 0; i < task->use_count; i++)
        if (etch_stage_holds(model_chunks, stage, task->uses[i]))
            return true;
    return false;
}

/* ---- windows ------------------------------------------------------------------------------------------- */

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
    return (etch_stage_numbers){.stages = o->extent->stage_count,
                                .chunks = o->extent->chunk_count,
                                .layers = etch_bound_number(o, stages->layers),
                                .segments = segments,
                                .counts = line->counts ? counts : NULL};
}

static void cut_chain(etch_outliner *o, etch_model_chunks *model_chunks)
{
    o->numbers = numbers_of(o);
    if (!etch_stage_numbers_fit(o->placed, &o->numbers)) {
        o->status = ETCH_EINPUT;
        return;
    }
    const uint64_t chunk_total = (uint64_t)model_chunks->stage_count * model_chunks->chunk_count;
    if (chunk_total > ETCH_MAX_RANKS) {
        etch_too_many_nodes(o, o->placed->plan->stage->span, "there are too many chunks");
        return;
    }
    model_chunks->intervals = ETCH_NEW_ARRAY(o->arena, chunk_total, etch_bound_interval);
    for (uint64_t i = 0; i < chunk_total; i++)
        model_chunks->intervals[i] = etch_layers_of_chunk(&o->numbers, i);
}

/* One stage holds everything: one layer, whatever the plan would cut. */
static const etch_bound_interval everything = {0, 1};

static void hold_all(etch_outliner *o, etch_model_chunks *model_chunks)
{
    model_chunks->intervals = ETCH_NEW(o->arena, etch_bound_interval);
    model_chunks->intervals[0] = everything;
}

bool etch_is_cut(const etch_outliner *o)
{
    return o->extent->stage_count > 1;
}

etch_bound_interval etch_layers_at(etch_outliner *o, etch_position position)
{
    if (!etch_is_cut(o))
        return everything;
    return etch_layers_of_position(&o->numbers, position);
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

static const etch_repeat *repeat_that_hands(const etch_body *body, const etch_value *in, uint32_t *carry)
{
    for (uint32_t i = 0; i < body->items.count; i++) {
        const etch_repeat *repeat = body->items.at[i].repeat;
        for (uint32_t k = 0; repeat && k < repeat->carried_count; k++)
            if (etch_loop_carries(repeat->loop)->at[k].in == in) {
                *carry = k;
                return repeat;
            }
    }
    return NULL;
}

static etch_chunk_message message_of(etch_outliner *o, const etch_body *body, etch_value *const *values,
                                     uint32_t count, etch_expr bytes, const char *name)
{
    etch_chunk_message message = {.wires = ETCH_NEW_ARRAY(o->arena, count, etch_passed_value)};
    for (uint32_t i = 0; i < count; i++) {
        etch_passed_value wire = {0};
        wire.repeat = repeat_that_hands(body, values[i], &wire.carry);
        if (!wire.repeat)
            wire.reg = etch_register_of(o, values[i], body);
        if (wire.repeat || wire.reg.body == body)
            message.wires[message.wire_count++] = wire;
    }
    message.bytes = etch_task_number(o, bytes, "bytes", NULL, name);
    return message;
}

void etch_chunk_messages(etch_outliner *o)
{
    etch_model_chunks *model_chunks = &o->outline->model_chunks;
    const uint32_t chunk_total = etch_model_chunk_count(model_chunks);
    model_chunks->forward = ETCH_NEW_ARRAY(o->arena, chunk_total, etch_chunk_message);
    model_chunks->backward = ETCH_NEW_ARRAY(o->arena, chunk_total, etch_chunk_message);
    for (uint32_t i = 0; i + 1 < chunk_total; i++) {
        const etch_cut *cut = cut_before(o, model_chunks->intervals[i].end);
        model_chunks->forward[i] = message_of(o, o->outline->forward, cut->forward.at, cut->forward.count,
                                              cut->forward_bytes, "a message to the next stage");
        if (o->outline->backward)
            model_chunks->backward[i] =
                message_of(o, o->outline->backward, cut->backward.at, cut->backward.count,
                           cut->backward_bytes, "a message to the stage before");
    }
}

/* ---- the chain ----------------------------------------------------------------------------------------- */

/* The coordinates of stages, as steps between ranks. */
static void set_rank_steps(etch_outliner *o, etch_model_chunks *model_chunks)
{
    const etch_stage_line *line = o->placed->plan->stage;
    model_chunks->rank_of = ETCH_NEW_ARRAY(o->arena, model_chunks->stage_count, int64_t);
    for (uint32_t stage = 0; stage < model_chunks->stage_count; stage++) {
        uint32_t left = stage;
        for (uint32_t i = line ? line->axis_count : 0; i-- > 0;) {
            int64_t stride = 1;
            for (uint32_t at = o->extent->axis_count; at-- > 0;) {
                const uint32_t axis = etch_plan_axis_at(o->placed->plan, at);
                if (axis == line->axes[i])
                    break;
                stride *= o->extent->axis_size[axis];
            }
            uint32_t size = o->extent->axis_size[line->axes[i]];
            model_chunks->rank_of[stage] += left % size * stride;
            left /= size;
        }
    }
}

void etch_model_chunks_make(etch_outliner *o)
{
    etch_model_chunks *model_chunks = &o->outline->model_chunks;
    const etch_placed *placed = o->placed;
    *model_chunks =
        (etch_model_chunks){.stage_count = o->extent->stage_count, .chunk_count = o->extent->chunk_count};
    model_chunks->schedule =
        model_chunks->stage_count > 1 ? placed->stages->line->schedule : etch_schedule_default();
    model_chunks->reduce_last = placed->plan->reduce_last;
    set_rank_steps(o, model_chunks);
    if (model_chunks->stage_count > 1)
        cut_chain(o, model_chunks);
    else
        hold_all(o, model_chunks);
}
