/* The chain of units in numbers: which of them each stage holds, and what goes from one to the next. */
#include "lower/lower_int.h"

/* ---- questions ------------------------------------------------------------------------------------------ */

uint32_t etch_link_count(const etch_chain *chain)
{
    return chain->stage_count * chain->chunk_count;
}

bool etch_stage_holds(const etch_chain *chain, uint32_t stage, etch_window units)
{
    for (uint32_t link = stage; link < etch_link_count(chain); link += chain->stage_count) {
        etch_window held = etch_overlap(chain->windows[link], units);
        if (held.first < held.end)
            return true;
    }
    return false;
}

uint64_t etch_stage_members(const etch_chain *chain, uint32_t stage, etch_window units,
                            const etch_classes *classes, uint32_t class)
{
    uint64_t held = 0;
    for (uint32_t link = stage; link < etch_link_count(chain); link += chain->stage_count) {
        etch_window part = etch_overlap(chain->windows[link], units);
        if (part.first < part.end)
            held += etch_class_members(classes, class,
                                       (etch_window){part.first - units.first, part.end - units.first});
    }
    return held;
}

bool etch_unit_task_runs(const etch_chain *chain, uint32_t stage, const etch_unit_task *task)
{
    for (uint32_t i = 0; i < task->use_count; i++)
        if (etch_stage_holds(chain, stage, task->uses[i]))
            return true;
    return false;
}

/* ---- windows -------------------------------------------------------------------------------------------- */

static uint64_t bound_number(etch_outliner *o, etch_expr expr)
{
    uint64_t number = 0;
    etch_lower_require(o->arena, etch_to_u64(etch_bound_value(o->bound, expr), &number));
    return number;
}

/* The sizes of a chain of more than one stage. */
static etch_stage_numbers numbers_of(etch_outliner *o)
{
    const etch_stages *stages = o->placed->stages;
    const etch_stage_line *line = stages->line;
    uint64_t *entries = ETCH_NEW_ARRAY(o->arena, stages->entries.count, uint64_t);
    uint64_t *counts = ETCH_NEW_ARRAY(o->arena, line->count_count, uint64_t);
    for (uint32_t i = 0; i < stages->entries.count; i++)
        entries[i] = bound_number(o, stages->entries.at[i].count);
    for (uint32_t i = 0; i < line->count_count; i++)
        counts[i] = bound_number(o, line->counts[i]);
    return (etch_stage_numbers){.stages = o->extent->stage_count,
                                .chunks = o->extent->chunk_count,
                                .units = bound_number(o, stages->units),
                                .entries = entries,
                                .counts = line->counts ? counts : NULL};
}

static void cut_chain(etch_outliner *o, etch_chain *chain)
{
    const etch_stage_numbers numbers = numbers_of(o);
    uint64_t first = 0;
    if (!etch_stage_numbers_fit(o->placed, &numbers)) {
        o->status = ETCH_EINPUT;
        return;
    }
    const uint64_t links = (uint64_t)chain->stage_count * chain->chunk_count;
    if (links > ETCH_MAX_RANKS) {
        etch_too_many_nodes(o, o->placed->plan->stage->span, "there are too many chunks");
        return;
    }
    chain->windows = ETCH_NEW_ARRAY(o->arena, links, etch_window);
    for (uint64_t i = 0; i < links; i++) {
        const uint64_t count = etch_link_units(&numbers, i);
        chain->windows[i] = (etch_window){first, first + count};
        first += count;
    }
}

/* One stage holds everything: one unit, whatever the plan would cut. */
static const etch_window everything = {0, 1};

static void hold_all(etch_outliner *o, etch_chain *chain)
{
    chain->windows = ETCH_NEW(o->arena, etch_window);
    chain->windows[0] = everything;
}

static etch_window entry_units(etch_outliner *o, const etch_stage_entry *entry)
{
    const uint64_t first = bound_number(o, entry->first);
    return (etch_window){first, first + bound_number(o, entry->count)};
}

bool etch_is_cut(const etch_outliner *o)
{
    return o->extent->stage_count > 1;
}

etch_window etch_units_at(etch_outliner *o, etch_home home)
{
    if (!etch_is_cut(o))
        return everything;
    etch_window units = entry_units(o, &o->placed->stages->entries.at[etch_home_entry(home)]);
    if (etch_home_side(home) == ETCH_FIRST_OF)
        units.end = units.first + 1;
    if (etch_home_side(home) == ETCH_LAST_OF)
        units.first = units.end - 1;
    return units;
}

/* ---- messages ------------------------------------------------------------------------------------------- */

/* The cut that stands before unit `at`. */
static const etch_cut *cut_before(etch_outliner *o, uint64_t at)
{
    const etch_stages *stages = o->placed->stages;
    for (uint32_t i = 0; i < stages->cuts.count; i++) {
        const etch_cut *cut = &stages->cuts.at[i];
        etch_window units = entry_units(o, &stages->entries.at[cut->entry]);
        if (cut->inside ? units.first < at && at < units.end : units.first == at)
            return cut;
    }
    etch_lower_require(o->arena, false);
    return NULL;
}

static const etch_repeat *repeat_that_hands(const etch_body *body, const etch_value *in, uint32_t *carry)
{
    for (uint32_t i = 0; i < body->parts.count; i++) {
        const etch_repeat *repeat = body->parts.at[i].repeat;
        for (uint32_t k = 0; repeat && k < repeat->handed_count; k++)
            if (etch_loop_carries(repeat->loop)->at[k].in == in) {
                *carry = k;
                return repeat;
            }
    }
    return NULL;
}

static etch_chain_message message_of(etch_outliner *o, const etch_body *body, etch_value *const *values,
                                     uint32_t count, etch_expr bytes, const char *name)
{
    etch_chain_message message = {.wires = ETCH_NEW_ARRAY(o->arena, count, etch_passed_value)};
    for (uint32_t i = 0; i < count; i++) {
        etch_passed_value wire = {0};
        wire.repeat = repeat_that_hands(body, values[i], &wire.carry);
        if (!wire.repeat)
            wire.cell = etch_cell_of(o, values[i], body);
        if (wire.repeat || wire.cell.body == body)
            message.wires[message.wire_count++] = wire;
    }
    message.bytes = etch_task_number(o, bytes, "bytes", NULL, name);
    return message;
}

void etch_chain_messages(etch_outliner *o)
{
    etch_chain *chain = &o->outline->chain;
    const uint32_t links = etch_link_count(chain);
    chain->forward = ETCH_NEW_ARRAY(o->arena, links, etch_chain_message);
    chain->backward = ETCH_NEW_ARRAY(o->arena, links, etch_chain_message);
    for (uint32_t i = 0; i + 1 < links; i++) {
        const etch_cut *cut = cut_before(o, chain->windows[i].end);
        chain->forward[i] = message_of(o, o->outline->forward, cut->forward.at, cut->forward.count,
                                       cut->forward_bytes, "a message to the next stage");
        if (o->outline->backward)
            chain->backward[i] = message_of(o, o->outline->backward, cut->backward.at, cut->backward.count,
                                            cut->backward_bytes, "a message to the stage before");
    }
}

/* ---- the chain ------------------------------------------------------------------------------------------ */

/* The coordinates of stages, as steps between ranks. */
static void set_rank_steps(etch_outliner *o, etch_chain *chain)
{
    const etch_stage_line *line = o->placed->plan->stage;
    chain->rank_of = ETCH_NEW_ARRAY(o->arena, chain->stage_count, int64_t);
    for (uint32_t stage = 0; stage < chain->stage_count; stage++) {
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
            chain->rank_of[stage] += left % size * stride;
            left /= size;
        }
    }
}

void etch_chain_make(etch_outliner *o)
{
    etch_chain *chain = &o->outline->chain;
    const etch_placed *placed = o->placed;
    *chain = (etch_chain){.stage_count = o->extent->stage_count, .chunk_count = o->extent->chunk_count};
    chain->schedule = chain->stage_count > 1 ? placed->stages->line->schedule : etch_schedule_default();
    chain->reduce_last = placed->plan->reduce_last;
    set_rank_steps(o, chain);
    if (chain->stage_count > 1)
        cut_chain(o, chain);
    else
        hold_all(o, chain);
}
