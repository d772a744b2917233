/* Weights that ranks hold in parts: a part is a range of the elements that a rank has of the weight under the
 * plan's shards, laid out flat, with zeros behind the last. Gathers put together what the ranks of a group
 * hold, nothing else; what they make is forgotten when the unit ends that it was gathered for. */
#include "exec_ranks.h"

#include "graph/place/steps.h"
#include "graph/step/kernel.h"

#include <string.h>

static exec_array *flat_array(exec_ranks *ranks, size_t size)
{
    exec_array *array = ETCH_NEW(ranks->values.arena, exec_array);
    array->size = size;
    array->at = ETCH_NEW_ARRAY(ranks->values.arena, size, double);
    return array;
}

uint32_t exec_ranks_place(const exec_ranks *ranks, const etch_tensor *weight, uint32_t axes, uint32_t rank)
{
    const uint32_t shared = axes & ranks->placed->sync_axes[weight->id];
    return exec_mesh_place(&ranks->mesh, rank, axes & ~shared) * exec_mesh_count(&ranks->mesh, shared) +
           exec_mesh_place(&ranks->mesh, rank, shared);
}

/* The rank's range of what it has of the whole. */
static exec_array *range_of(exec_ranks *ranks, const etch_tensor *weight, const exec_array *held,
                            uint32_t axes, uint32_t rank)
{
    const size_t parts = exec_mesh_count(&ranks->mesh, axes), share = (held->size + parts - 1) / parts;
    const size_t first = share * exec_ranks_place(ranks, weight, axes, rank);
    exec_array *part = flat_array(ranks, share);
    for (size_t i = 0; i < share && first + i < held->size; i++)
        part->at[i] = held->at[first + i];
    return part;
}

exec_array *exec_ranks_range(exec_ranks *ranks, const etch_value *value, uint32_t rank)
{
    etch_value whole = *value;
    whole.sharded_flat = 0;
    return range_of(ranks, value->tensor, exec_ranks_cut(ranks, &whole, rank), value->sharded_flat, rank);
}

/* What the parts of the rank's group are together. */
static exec_array *put_together(exec_ranks *ranks, const etch_step *step, uint32_t operand, uint32_t rank)
{
    const etch_value *made = step->outs[operand];
    exec_array *whole = ETCH_NEW(ranks->values.arena, exec_array);
    *whole = exec_mesh_part(&ranks->mesh, &ranks->env, made->tensor, made->place, rank);
    exec_array_fill(ranks->values.arena, whole);
    bool *there = ETCH_NEW_ARRAY(ranks->values.arena, whole->size, bool);
    for (uint32_t r = 0; r < ranks->mesh.ranks; r++) {
        const exec_array *part = exec_mesh_is_group(&ranks->mesh, r, rank, step->axes)
                                     ? exec_ranks_get(ranks, step->ins[operand], r)
                                     : NULL;
        for (size_t i = 0; part && i < part->size; i++) {
            const size_t at = exec_ranks_place(ranks, made->tensor, step->axes, r) * part->size + i;
            if (at < whole->size) {
                whole->at[at] = part->at[i];
                there[at] = true;
            }
        }
    }
    for (size_t i = 0; i < whole->size; i++)
        if (!there[i])
            exec_fail(&ranks->env, "the parts of %s over %s are not all of it", made->tensor->name,
                      etch_axes_label(ranks->placed, step->axes));
    return whole;
}

/* ---- weight groups ------------------------------------------------------------------------------------- */

static void begin_group(exec_ranks *ranks)
{
    ETCH_PUSH(ranks->env.arena, &ranks->groups, (exec_weight_group){0, ranks->actions});
    ranks->group_begins = ranks->group_computes = false;
}

/* What only shows a value is no node of a trace. */
static bool is_node(const etch_step *step)
{
    return etch_step_role(step) != ETCH_ROLE_FREE;
}

/* Traces leave out a loop without any node, and without values that it carries. */
void exec_ranks_begin_iteration(exec_ranks *ranks, const etch_placed_loop *loop)
{
    bool works = etch_loop_carries(loop)->count > 0;
    for (uint32_t k = 0; k < loop->bodies.count; k++)
        for (uint32_t i = 0; i < loop->bodies.at[k]->items.count; i++) {
            const etch_placed_item *item = &loop->bodies.at[k]->items.at[i];
            works = works || item->loop || is_node(item->step);
        }
    if (works)
        begin_group(ranks);
}

void exec_ranks_count_group(exec_ranks *ranks, const etch_step *step)
{
    if (!is_node(step))
        return;
    if (!ranks->region->loop && (ranks->group_begins || (step->copies && ranks->group_computes)))
        begin_group(ranks);
    if (step->copies)
        return;
    exec_weight_group *group = &ranks->groups.at[ranks->groups.count - 1];
    group->began = group->began ? group->began : ranks->now;
    ranks->group_computes = true;
}

uint32_t exec_ranks_gathered_at(const exec_ranks *ranks)
{
    const uint64_t ahead = ranks->placed->plan->zero.ahead;
    const uint32_t count = ranks->groups.count;
    for (uint32_t i = ahead + 1 < count ? count - 1 - (uint32_t)ahead : 0; ahead > 0 && i < count; i++)
        if (ranks->groups.at[i].began && (!ranks->chain || ranks->groups.at[i].action == ranks->actions))
            return ranks->groups.at[i].began;
    return ranks->now;
}

/* ---- how long copies last ------------------------------------------------------------------------------ */

/* It is there all the time. */
static void stay(exec_ranks *ranks, exec_array *made)
{
    made->born = 0;
    made->together = &ranks->now;
}

/* A part that forward leaves for backward. Microbatches of a stage are under way at the same time, and it is
 * the same for all of them. */
static void begin_part(exec_ranks *ranks, const etch_value *value, exec_array *made, uint32_t rank)
{
    const uint32_t instance = exec_instance(&ranks->env, value->tensor->region->loop);
    exec_array *first = NULL;
    for (uint32_t i = 0; i < ranks->parts.count; i++)
        if (ranks->parts.at[i].value == value && ranks->parts.at[i].instance == instance)
            first = ranks->parts.at[i].array;
    made->memory = rank == 0 ? first : NULL;
    if (made->memory)
        return;
    exec_ranks_birth(ranks, value->tensor, made, rank);
    stay(ranks, made);
    if (rank == 0)
        ETCH_PUSH(ranks->env.arena, &ranks->parts, (exec_weight_part){value, instance, made});
}

/* Begins the life of a copy. One that lasts for all microbatches is there all the time; of several
 * microbatches that are under way on a stage the copies are one. */
static void begin_copy(exec_ranks *ranks, const etch_step *step, uint32_t operand, exec_array *made,
                       uint32_t rank)
{
    const etch_keep keep = step->copies ? step->lasts : ETCH_KEEP_GROUP;
    const bool once = keep == ETCH_KEEP_STEP || (ranks->chain && keep == ETCH_KEEP_MICROBATCH);
    const uint32_t chains = ranks->chain ? ranks->chain->copies : 1; /* each has a first microbatch */
    if (once && ranks->env.microbatch >= chains)
        return;
    if (ranks->chain && step->phase == ETCH_FORWARD && step->outs[operand]->sharded_flat) {
        begin_part(ranks, step->outs[operand], made, rank);
        return;
    }
    made->together = step->copies ? ranks->together : NULL;
    exec_ranks_birth(ranks, step->ins[operand]->tensor, made, rank);
    if (rank == 0 && step->copies)
        made->born = exec_ranks_gathered_at(ranks);
    if (once)
        stay(ranks, made);
}

/* What the plan says of the copies of a weight in a run of the region: those of a root are there until
 * backward, and those that backward would gather over nothing. */
static bool should_last(const exec_ranks *ranks, const etch_placed_region *region, const etch_tensor *weight)
{
    const etch_zero *zero = etch_zero_of(ranks->placed, weight);
    const bool is_root = zero->root && !weight->region->loop && !(ranks->placed->stages && region->loop);
    const uint32_t axes = ranks->placed->zero_axes[weight->id];
    return zero->keep != ETCH_KEEP_GROUP || is_root || (zero->backward_axes && !(axes & zero->backward_axes));
}

/* The next copy that there is of an instance of a weight in the microbatch at work, on the first rank; one
 * that `lasts`, or any. */
static exec_array *next_copy(exec_ranks *ranks, const etch_tensor *weight, bool lasts, uint32_t *at)
{
    for (; *at < ranks->gathers.count; ++*at)
        for (uint32_t k = 0; k < ranks->gathers.at[*at]->out_count; k++) {
            const etch_step *gather = ranks->gathers.at[*at];
            const etch_value *value = gather->outs[k];
            const bool fits = value->tensor == weight && (!lasts || gather->lasts != ETCH_KEEP_GROUP);
            exec_array *copy = fits ? *exec_ranks_slot(ranks, value, 0) : NULL;
            if (!copy)
                continue;
            ++*at;
            return copy;
        }
    return NULL;
}

/* Copies last as the plan says; a weight is gathered by itself, or the root in one collective. */
static void check_gather(exec_ranks *ranks, const etch_placed_region *region, const etch_step *step)
{
    const etch_tensor *first = step->outs[0]->tensor;
    const etch_zero *zero = etch_zero_of(ranks->placed, first);
    if ((step->lasts != ETCH_KEEP_GROUP) != should_last(ranks, region, first))
        exec_fail(&ranks->env, "copies of %s do not last as the plan says", first->name);
    if (zero->by_weight && step->in_count != 1)
        exec_fail(&ranks->env, "%s is not gathered by itself", first->name);
    for (uint32_t i = 0; i < ranks->gathers.count && !zero->by_weight && !ranks->placed->stages; i++) {
        const etch_step *other = ranks->gathers.at[i];
        const etch_tensor *of = other->outs[0]->tensor;
        if (zero->root && !first->region->loop && !of->region->loop && other != step &&
            etch_zero_of(ranks->placed, of) == zero && other->axes == step->axes &&
            (other->phase == ETCH_FORWARD) == (step->phase == ETCH_FORWARD))
            exec_fail(&ranks->env, "the root, with %s and %s, is gathered in two collectives", first->name,
                      of->name);
    }
}

/* One instance of one weight. */
static size_t run_operand(exec_ranks *ranks, const etch_step *step, uint32_t operand)
{
    const etch_value *from = step->ins[operand], *to = step->outs[operand];
    const bool gathers = step->collective == ETCH_ALL_GATHER;
    if ((gathers ? from->sharded_flat : to->sharded_flat) != step->axes ||
        (gathers ? to->sharded_flat : from->sharded_flat) != 0)
        exec_fail(&ranks->env, "%s: parts of %s before and after do not fit", etch_row_name(step->row),
                  from->tensor->name);
    uint32_t other = 0; /* on stages that each have their own it may be that of another stage */
    exec_array *copy = gathers && !ranks->placed->stages ? next_copy(ranks, to->tensor, true, &other) : NULL;
    if (copy && copy->microbatch == ranks->env.microbatch)
        exec_fail(&ranks->env, "%s is gathered, and there is a copy of it", to->tensor->name);
    for (uint32_t r = 0; r < ranks->mesh.ranks && !ranks->env.failure; r++) {
        exec_array *held = exec_ranks_get(ranks, from, r);
        if (!held)
            continue;
        exec_array *part = held->memory ? held->memory : held;
        const uint32_t read = step->copies ? exec_ranks_gathered_at(ranks) : ranks->now;
        part->read = part->read > read ? part->read : read;
        exec_array *made = gathers ? put_together(ranks, step, operand, r)
                                   : range_of(ranks, from->tensor, held, step->axes, r);
        made->use = exec_ranks_use(ranks, from->tensor);
        begin_copy(ranks, step, operand, made, r);
        *exec_ranks_slot(ranks, to, r) = made;
    }
    const exec_array *held = exec_ranks_find(ranks, from, 0);
    return held ? held->size * etch_dtype_bytes(from->tensor->dtype) : 0;
}

/* All instances that one run of the region has: `loop` is the innermost one that is not begun yet. */
static size_t run_instances(exec_ranks *ranks, const etch_step *step, uint32_t operand, const etch_loop *loop,
                            const etch_loop *around)
{
    const etch_region *home = step->ins[operand]->tensor->region;
    size_t bytes = 0;
    if (loop == around || !loop)
        return exec_has_instance(home, exec_instance(&ranks->env, home->loop))
                   ? run_operand(ranks, step, operand)
                   : 0;
    for (uint32_t i = 0; i < exec_integer(loop->count); i++) {
        exec_iterate(&ranks->env, loop, i);
        bytes += run_instances(ranks, step, operand, exec_outer(loop), around);
        exec_iterated(&ranks->env, loop);
    }
    return bytes;
}

void exec_ranks_gather(exec_ranks *ranks, const etch_placed_region *region, const etch_step *step)
{
    const etch_loop *around = region->loop ? etch_forward_body(region->of)->loop : NULL;
    etch_sym *sym = ranks->placed->training->graph->sym;
    size_t bytes = 0, said = 0;
    if (step->copies && step->collective == ETCH_ALL_GATHER)
        check_gather(ranks, region, step);
    ranks->together = ETCH_NEW(ranks->env.arena, uint32_t);
    *ranks->together = ranks->now;
    for (uint32_t i = 0; i < step->in_count && !ranks->env.failure; i++) {
        const etch_loop *home = step->ins[i]->tensor->region->loop;
        bytes += run_instances(ranks, step, i, home, home ? around : NULL);
        if (step->copies)
            said +=
                exec_integer(etch_mul(sym, step->copies[i], etch_value_bytes(ranks->placed, step->ins[i])));
    }
    if (step->copies && bytes != said)
        exec_fail(&ranks->env, "weights of %zu bytes are gathered, %zu are said", bytes, said);
}

/* ---- forgetting ---------------------------------------------------------------------------------------- */

void exec_ranks_reach(exec_ranks *ranks, const etch_tensor *weight)
{
    uint32_t at = 0;
    for (exec_array *copy; (copy = next_copy(ranks, weight, false, &at)) != NULL;)
        if (copy->together && copy->together != &ranks->now)
            *copy->together = ranks->now;
}

/* Does the second half of backward, which is still to come, read the copy, or a part of it? */
static bool is_read_later(const exec_ranks *ranks, const etch_value *copy)
{
    if (!ranks->skips[1])
        return false;
    for (etch_placed_cursor at = {.root = ranks->placed->backward}; etch_placed_cursor_next(&at);)
        for (uint32_t i = 0; at.item->step && at.item->step->weight_half && i < at.item->step->in_count; i++)
            if (etch_value_memory(at.item->step->ins[i], NULL) == copy)
                return true;
    return false;
}

/* What is read later is there by itself. */
static void forget_copy(exec_ranks *ranks, const etch_value *copy, bool is_of_iteration)
{
    const bool stays = is_read_later(ranks, copy);
    for (uint32_t r = 0; r < ranks->mesh.ranks; r++) {
        exec_array ***instances = &ranks->values.at[copy->id * ranks->mesh.ranks + r];
        for (uint32_t n = 0; *instances && n < exec_instances(copy->tensor->region->loop); n++) {
            exec_array *one = (*instances)[n];
            if (r == 0 && one && one->together && is_of_iteration)
                *one->together = ranks->now;
            if (one && stays)
                one->together = NULL;
        }
        if (!stays)
            *instances = NULL;
    }
}

/* An iteration's copies are there to its end. */
void exec_ranks_forget(exec_ranks *ranks, const etch_placed_region *region, uint32_t end)
{
    for (uint32_t i = 0; i < end && !ranks->env.failure; i++) {
        const etch_step *step = region->items.at[i].step;
        const bool waited = step && ranks->skips[0] && !step->weight_half; /* of each iteration */
        if (!step || !step->copies || step->lasts != ETCH_KEEP_GROUP || waited)
            continue;
        for (uint32_t k = 0; k < step->out_count; k++)
            forget_copy(ranks, step->outs[k], region->loop != NULL);
    }
}
