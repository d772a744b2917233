/* The chain of units in numbers: which of them each stage holds, and what goes from one to the next. */
#include "lower/lower_int.h"

#include <inttypes.h>

/* ---- questions ------------------------------------------------------------------------------------------ */

uint32_t etch_link_count(const etch_chain *chain)
{
    return chain->stage_count * chain->chunk_count;
}

etch_window etch_overlap(etch_window a, etch_window b)
{
    etch_window both = {a.first > b.first ? a.first : b.first, a.end < b.end ? a.end : b.end};
    return both.first < both.end ? both : (etch_window){0, 0};
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

bool etch_unit_task_runs(const etch_chain *chain, uint32_t stage, const etch_unit_task *task)
{
    for (uint32_t i = 0; i < task->use_count; i++)
        if (etch_stage_holds(chain, stage, task->uses[i]))
            return true;
    return false;
}

/* ---- windows -------------------------------------------------------------------------------------------- */

static bool fail(etch_outliner *o, etch_diag *diag, const char *help)
{
    etch_help(diag, "%s", help);
    if (o->status == ETCH_OK)
        o->status = ETCH_EINPUT;
    return false;
}

/* Does the plan count units for each link, and all of them? */
static bool check_counts(etch_outliner *o, uint64_t units, uint64_t links)
{
    const etch_stage_line *line = o->placed->plan->stage;
    etch_total total = 0;
    if (line->count_count != links) {
        etch_diag *diag = etch_error(o->placed->diags, ETCH_E_STAGE_COUNTS, line->span,
                                     "%" PRIu32 " counts of units for %" PRIu64 " stages and chunks",
                                     line->count_count, links);
        return fail(o, diag, "give one for each chunk of each stage, in the order of the model");
    }
    for (uint32_t i = 0; i < line->count_count; i++) {
        uint64_t count;
        etch_lower_require(o->arena, etch_to_u64(etch_bound_value(o->bound, line->counts[i]), &count));
        total += count;
    }
    if (total == units)
        return true;
    etch_diag *diag = etch_error(o->placed->diags, ETCH_E_STAGE_COUNTS, line->span,
                                 "the stages hold %" PRIu64 " units, but the model has %" PRIu64,
                                 (uint64_t)total, units);
    return fail(o, diag, "units are the iterations of the loops and the blocks that the line lists");
}

/* Without counts units are spread evenly. */
static bool check_spread(etch_outliner *o, uint64_t units, uint64_t links)
{
    if (units >= links)
        return true;
    etch_diag *diag = etch_error(o->placed->diags, ETCH_E_STAGE_COUNTS, o->placed->plan->stage->span,
                                 "%" PRIu64 " units do not fill %" PRIu64 " stages%s", units, links,
                                 o->extent->chunk_count > 1 ? " and chunks" : "");
    return fail(o, diag, "every stage needs a unit: fewer stages, or more units in the line");
}

/* The first links take what is left over when units are spread. */
static uint64_t count_of_link(etch_outliner *o, uint64_t units, uint64_t links, uint64_t link)
{
    const etch_stage_line *line = o->placed->plan->stage;
    uint64_t count = etch_link_units(units, links, link);
    if (links > 1 && line->counts)
        etch_lower_require(o->arena, etch_to_u64(etch_bound_value(o->bound, line->counts[link]), &count));
    return count;
}

static void set_windows(etch_outliner *o, etch_chain *chain, uint64_t units)
{
    const uint64_t links = (uint64_t)chain->stage_count * chain->chunk_count;
    uint64_t first = 0;
    const bool counted = links > 1 && o->placed->plan->stage->counts;
    if (links > 1 && !(counted ? check_counts(o, units, links) : check_spread(o, units, links)))
        return;
    if (links > ETCH_MOST_NODES) {
        etch_too_many_nodes(o, o->placed->plan->stage->span, "there are too many chunks");
        return;
    }
    chain->windows = ETCH_NEW_ARRAY(o->arena, links, etch_window);
    for (uint64_t i = 0; i < links; i++) {
        uint64_t count = count_of_link(o, units, links, i);
        chain->windows[i] = (etch_window){first, first + count};
        first += count;
    }
}

static etch_window entry_units(etch_outliner *o, const etch_stage_entry *entry)
{
    uint64_t first, count;
    etch_lower_require(o->arena, etch_to_u64(etch_bound_value(o->bound, entry->first), &first) &&
                                     etch_to_u64(etch_bound_value(o->bound, entry->count), &count));
    return (etch_window){first, first + count};
}

etch_window etch_units_at(etch_outliner *o, etch_home home)
{
    if (!o->placed->stages)
        return (etch_window){0, 1};
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
            if (repeat->loop->carries.at[k].in == in) {
                *carry = k;
                return repeat;
            }
    }
    return NULL;
}

static etch_message message_of(etch_outliner *o, const etch_body *body, etch_value *const *values,
                               uint32_t count, etch_expr bytes, const char *name)
{
    etch_message message = {.wires = ETCH_NEW_ARRAY(o->arena, count, etch_wire)};
    for (uint32_t i = 0; i < count; i++) {
        etch_wire wire = {0};
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
    chain->forward = ETCH_NEW_ARRAY(o->arena, links, etch_message);
    chain->backward = ETCH_NEW_ARRAY(o->arena, links, etch_message);
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
            for (uint32_t axis = line->axes[i] + 1; axis < o->extent->axis_count; axis++)
                stride *= o->extent->axis_size[axis];
            uint32_t size = o->extent->axis_size[line->axes[i]];
            chain->rank_of[stage] += left % size * stride;
            left /= size;
        }
    }
}

static bool has_empty_loop(etch_outliner *o)
{
    const etch_stages *stages = o->placed->stages;
    for (uint32_t i = 0; i < stages->entries.count; i++) {
        const etch_stage_entry *entry = &stages->entries.at[i];
        etch_window units = entry_units(o, entry);
        if (units.first < units.end)
            continue;
        etch_diag *diag = etch_error(o->placed->diags, ETCH_E_STAGE_COUNTS, entry->loop->span,
                                     "loop %s of the stages runs 0 times", entry->name);
        return !fail(o, diag, "leave it out of the stage line");
    }
    return false;
}

void etch_chain_make(etch_outliner *o)
{
    etch_chain *chain = &o->outline->chain;
    const etch_placed *placed = o->placed;
    *chain = (etch_chain){.stage_count = o->extent->stage_count, .chunk_count = o->extent->chunk_count};
    chain->schedule = placed->stages ? placed->stages->line->schedule : etch_schedule_default();
    chain->reduce_last = placed->plan->reduce_last;
    set_rank_steps(o, chain);
    uint64_t units = 1;
    if (placed->stages) {
        if (has_empty_loop(o))
            return;
        etch_lower_require(o->arena, etch_to_u64(etch_bound_value(o->bound, placed->stages->units), &units));
    }
    set_windows(o, chain, units);
}
