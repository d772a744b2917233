/* Gathers of weights: which ones a stage runs, in the order of the weight groups that need them. A gather is
 * issued earlier than its weight group begins, after the first node of a weight group before; so they are
 * known before they are met. */
#include "lower/lower_int.h"

/* ---- weight groups ------------------------------------------------------------------------------------- */

/* As weights are gathered: an iteration of a loop of the top level; an interval of tasks between such loops,
 * cut where something is gathered after what has computed. */
void etch_weight_groups_begin_interval(etch_weight_group_count *weight_groups)
{
    weight_groups->begins = true;
}

void etch_weight_groups_iteration(etch_weight_group_count *weight_groups)
{
    weight_groups->number++;
    weight_groups->begins = true;
}

void etch_weight_groups_task(etch_weight_group_count *weight_groups, const etch_task *task)
{
    if (weight_groups->begins || (task->gathers && weight_groups->computes)) {
        weight_groups->number++;
        weight_groups->computes = false;
    }
    weight_groups->begins = false;
    weight_groups->computes = weight_groups->computes || !task->gathers;
}

/* ---- parts of a chunk ---------------------------------------------------------------------------------- */

etch_bound_interval etch_item_iterations(const etch_body_item *item, etch_bound_interval chunk)
{
    if (!item->staged)
        return (etch_bound_interval){0, item->repeat->count};
    etch_bound_interval held = etch_overlap(chunk, item->layers);
    if (held.first == held.end)
        return held;
    return (etch_bound_interval){held.first - item->layers.first, held.end - item->layers.first};
}

const etch_body *etch_body_at(const etch_repeat *repeat, uint64_t iteration)
{
    return repeat->bodies[etch_class_at(repeat->classes, iteration)];
}

/* ---- the walk ------------------------------------------------------------------------------------------ */

typedef struct walker {
    etch_arena *arena;
    const etch_outline *outline;
    etch_weight_group_count weight_groups;
    uint64_t microbatch;
    /* by register: what is gathered once a step has been */
    bool *seen;
    etch_gather_runs *runs;
} walker;

static void meet(walker *w, const etch_task *task, const etch_body *body, const etch_repeat *repeat,
                 uint64_t iteration)
{
    const uint64_t reg = body->first_register + iteration * body->register_count + task->index;
    if (task->once && w->seen[reg])
        return;
    w->seen[reg] = true;
    const etch_gather_run run = {.task = task,
                                 .repeat = repeat,
                                 .iteration = iteration,
                                 .microbatch = w->microbatch,
                                 .weight_group = w->weight_groups.number,
                                 .id = ETCH_NO_NODE};
    ETCH_PUSH(w->arena, w->runs, run);
}

static void walk_repeat(walker *w, const etch_body_item *item, etch_bound_interval chunk)
{
    const etch_repeat *repeat = item->repeat;
    const etch_bound_interval turns = etch_item_iterations(item, chunk);
    for (uint64_t turn = 0; turn < turns.end - turns.first; turn++) {
        const uint64_t iteration = repeat->reverse ? turns.end - 1 - turn : turns.first + turn;
        const etch_body *body = etch_body_at(repeat, iteration);
        etch_weight_groups_iteration(&w->weight_groups);
        for (uint32_t i = 0; i < body->items.count; i++)
            if (body->items.at[i].task && body->items.at[i].task->gathers)
                meet(w, body->items.at[i].task, body, repeat, iteration);
    }
    etch_weight_groups_begin_interval(&w->weight_groups);
}

static void walk_action(walker *w, const etch_body *top, etch_bound_interval chunk)
{
    etch_weight_groups_begin_interval(&w->weight_groups);
    for (uint32_t i = 0; i < top->items.count; i++) {
        const etch_body_item *item = &top->items.at[i];
        const etch_bound_interval held = etch_overlap(chunk, item->layers);
        if (held.first == held.end)
            continue;
        if (item->repeat) {
            walk_repeat(w, item, chunk);
            continue;
        }
        etch_weight_groups_task(&w->weight_groups, item->task);
        if (item->task->gathers)
            meet(w, item->task, top, NULL, 0);
    }
}

void etch_gather_runs_find(etch_arena *arena, const etch_outline *outline, uint32_t stage,
                           const etch_action *actions, uint64_t action_count, etch_gather_runs *runs)
{
    if (!outline->gathers_weights)
        return;
    walker w = {.arena = arena, .outline = outline, .runs = runs};
    w.seen = ETCH_NEW_ARRAY(arena, (size_t)outline->register_count, bool);
    for (uint64_t i = 0; i < action_count; i++) {
        w.microbatch = actions[i].microbatch;
        walk_action(
            &w, actions[i].backward ? outline->backward : outline->forward,
            outline->model_chunks.intervals[actions[i].chunk * outline->model_chunks.stage_count + stage]);
    }
}
