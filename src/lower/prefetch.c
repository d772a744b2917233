/* Gathers of weights: which ones a stage runs, in the order of the units that need them. A gather is issued
 * earlier than its unit begins, behind the first node of a unit before; so they are known before they are met. */
#include "lower/lower_int.h"

/* ---- units ---------------------------------------------------------------------------------------------- */

/* As weights are gathered: an iteration of a loop of the top level; a stretch of tasks between such loops, cut
 * where something is gathered behind what has computed. */
void etch_units_begin_stretch(etch_unit_count *units)
{
    units->begins = true;
}

void etch_units_iteration(etch_unit_count *units)
{
    units->number++;
    units->begins = true;
}

void etch_units_task(etch_unit_count *units, const etch_task *task)
{
    if (units->begins || (task->gathers && units->computes)) {
        units->number++;
        units->computes = false;
    }
    units->begins = false;
    units->computes = units->computes || !task->gathers;
}

/* ---- parts of a chunk ----------------------------------------------------------------------------------- */

etch_window etch_part_turns(const etch_body_item *part, etch_window chunk)
{
    if (!part->staged)
        return (etch_window){0, part->repeat->count};
    etch_window held = etch_overlap(chunk, part->units);
    if (held.first == held.end)
        return held;
    return (etch_window){held.first - part->units.first, held.end - part->units.first};
}

const etch_body *etch_body_at(const etch_repeat *repeat, uint64_t iteration)
{
    return repeat->bodies[etch_class_at(repeat->classes, iteration)];
}

/* ---- the walk ------------------------------------------------------------------------------------------- */

typedef struct walker {
    etch_arena *arena;
    const etch_outline *outline;
    etch_unit_count units;
    uint64_t microbatch;
    bool *seen; /* by cell: what is gathered once a step has been */
    etch_gather_runs *runs;
} walker;

static void meet(walker *w, const etch_task *task, const etch_body *body, const etch_repeat *repeat,
                 uint64_t iteration)
{
    const uint64_t cell = body->first_cell + iteration * body->slots + task->slot;
    if (task->once && w->seen[cell])
        return;
    w->seen[cell] = true;
    const etch_gather_run run = {.task = task,
                                 .repeat = repeat,
                                 .iteration = iteration,
                                 .microbatch = w->microbatch,
                                 .unit = w->units.number,
                                 .id = ETCH_NO_NODE};
    ETCH_PUSH(w->arena, w->runs, run);
}

static void walk_repeat(walker *w, const etch_body_item *part, etch_window chunk)
{
    const etch_repeat *repeat = part->repeat;
    const etch_window turns = etch_part_turns(part, chunk);
    for (uint64_t turn = 0; turn < turns.end - turns.first; turn++) {
        const uint64_t iteration = repeat->reverse ? turns.end - 1 - turn : turns.first + turn;
        const etch_body *body = etch_body_at(repeat, iteration);
        etch_units_iteration(&w->units);
        for (uint32_t i = 0; i < body->parts.count; i++)
            if (body->parts.at[i].task && body->parts.at[i].task->gathers)
                meet(w, body->parts.at[i].task, body, repeat, iteration);
    }
    etch_units_begin_stretch(&w->units);
}

static void walk_slot(walker *w, const etch_body *top, etch_window chunk)
{
    etch_units_begin_stretch(&w->units);
    for (uint32_t i = 0; i < top->parts.count; i++) {
        const etch_body_item *part = &top->parts.at[i];
        const etch_window held = etch_overlap(chunk, part->units);
        if (held.first == held.end)
            continue;
        if (part->repeat) {
            walk_repeat(w, part, chunk);
            continue;
        }
        etch_units_task(&w->units, part->task);
        if (part->task->gathers)
            meet(w, part->task, top, NULL, 0);
    }
}

void etch_gather_runs_find(etch_arena *arena, const etch_outline *outline, uint32_t stage,
                           const etch_slot *slots, uint64_t slot_count, etch_gather_runs *runs)
{
    if (!outline->gathers_weights)
        return;
    walker w = {.arena = arena, .outline = outline, .runs = runs};
    w.seen = ETCH_NEW_ARRAY(arena, (size_t)outline->cell_count, bool);
    for (uint64_t i = 0; i < slot_count; i++) {
        w.microbatch = slots[i].microbatch;
        walk_slot(&w, slots[i].backward ? outline->backward : outline->forward,
                  outline->chain.windows[slots[i].chunk * outline->chain.stage_count + stage]);
    }
}
