/* The end of a step: the gradients are synchronised while the last microbatch goes back, their norm is
 * taken, the weights are updated. */
#include "lower/lower_int.h"

/* ---- gradients ----------------------------------------------------------------------------------------- */

/* Copies: one for each iteration of the loops around the weight. */
static void count_copies(etch_outliner *o, const etch_tensor *weight, etch_gradient *gradient)
{
    const etch_loop *outermost = NULL;
    etch_total copies = 1, unit_copies = 1;
    for (const etch_region *region = weight->region; region; region = region->parent) {
        if (!region->loop)
            continue;
        uint64_t count;
        etch_lower_require(o->arena, etch_to_u64(etch_bound_value(o->bound, region->loop->count), &count));
        gradient->depth++;
        outermost = region->loop;
        unit_copies = copies;
        copies *= count;
        if (copies > ETCH_MOST_NODES) /* then a loop around it does not run: all runs have been counted */
            copies = ETCH_MOST_NODES;
    }
    gradient->copies = (uint64_t)copies;
    gradient->unit_copies = outermost ? (uint64_t)unit_copies : 1;
}

void etch_end_gradients(etch_outliner *o)
{
    const etch_training *training = o->placed->training;
    etch_outline *outline = o->outline;
    for (uint32_t i = 0; i < training->gradients.count; i++) {
        const etch_tensor *tensor = training->gradients.at[i];
        if (!tensor)
            continue;
        etch_gradient gradient = {.first_cell = outline->gradient_cells};
        count_copies(o, tensor->of, &gradient);
        o->gradient_index[tensor->id] = outline->gradients.count;
        ETCH_PUSH(o->arena, &outline->gradients, gradient);
        outline->gradient_cells += gradient.copies;
    }
}

/* ---- when gradients are complete ----------------------------------------------------------------------- */

/* Writes to last[g] the number, from 1, of the part of the backward body that adds to gradient g last. */
static void mark_last_parts(const etch_body *body, uint32_t number, uint32_t *last)
{
    for (uint32_t i = 0; i < body->parts.count; i++) {
        const etch_part *part = &body->parts.at[i];
        uint32_t own = body->parent ? number : i + 1;
        for (uint32_t g = 0; part->task && g < part->task->gradients.count; g++)
            last[part->task->gradients.at[g]] = own;
        if (part->repeat && part->repeat->body->runs > 0)
            mark_last_parts(part->repeat->body, own, last);
    }
}

/* The last part of the stretch between loops that holds part `at`. */
static uint32_t end_of_stretch(const etch_body *body, uint32_t at)
{
    while (body->parts.at[at].task && at + 1 < body->parts.count && body->parts.at[at + 1].task)
        at++;
    return at;
}

/* The loop of the backward body that undoes `loop`. */
static etch_repeat *undoing(const etch_body *backward, const etch_loop *loop)
{
    for (uint32_t i = 0; i < backward->parts.count; i++) {
        etch_repeat *repeat = backward->parts.at[i].repeat;
        if (repeat && repeat->loop->loop->forward == loop)
            return repeat;
    }
    return NULL;
}

/* A bucket stands behind what completes its gradients: each iteration of the loop of its unit, or all up
 * to the next loop. */
static void place_bucket(etch_outliner *o, etch_unit_task *bucket, const etch_unit *unit,
                         const uint32_t *last)
{
    etch_body *backward = o->outline->backward;
    if (unit->loop) {
        etch_repeat *repeat = undoing(backward, unit->loop);
        etch_lower_require(o->arena, repeat && repeat->count == bucket->units);
        ETCH_PUSH(o->arena, &repeat->after_each, bucket);
        return;
    }
    uint32_t number = 0; /* stays 0 when the loops that would add do not run */
    for (uint32_t g = 0; g < bucket->task.gradients.count; g++)
        if (last[bucket->task.gradients.at[g]] > number)
            number = last[bucket->task.gradients.at[g]];
    etch_lower_require(o->arena, backward->parts.count > 0);
    uint32_t at = end_of_stretch(backward, number > 0 ? number - 1 : backward->parts.count - 1);
    ETCH_PUSH(o->arena, &backward->parts.at[at].after, bucket);
}

/* ---- tasks --------------------------------------------------------------------------------------------- */

static void read_gradient(etch_outliner *o, etch_task *task, const etch_tensor *gradient)
{
    ETCH_PUSH(o->arena, &task->gradients, o->gradient_index[gradient->id]);
}

static etch_unit_task *new_unit_task(etch_outliner *o, const etch_unit *unit)
{
    etch_unit_task *u = ETCH_NEW(o->arena, etch_unit_task);
    u->units = 1;
    if (unit->loop)
        etch_lower_require(o->arena, etch_to_u64(etch_bound_value(o->bound, unit->loop->count), &u->units));
    return u;
}

static void add_buckets(etch_outliner *o, const uint32_t *last)
{
    for (uint32_t i = 0; i < o->placed->buckets.count; i++) {
        const etch_bucket *bucket = &o->placed->buckets.at[i];
        uint32_t axes = bucket->axes & o->extent->wide;
        if (axes == 0)
            continue;
        etch_unit_task *u = new_unit_task(o, bucket->unit);
        u->task.type = ETCH_NODE_COLL;
        u->task.collective = ETCH_COMM_ALL_REDUCE;
        u->task.axes = axes;
        etch_name_unit_task(
            o->arena, u, bucket->unit, 'S',
            etch_text(o->arena, "grads.%s.all_reduce", etch_axes_label(o->placed, bucket->axes)));
        u->task.bytes = etch_task_number(o, bucket->bytes, "bytes", NULL, u->task.name);
        for (uint32_t g = 0; g < bucket->gradients.count; g++)
            read_gradient(o, &u->task, bucket->gradients.at[g]);
        place_bucket(o, u, bucket->unit, last);
        ETCH_PUSH(o->arena, &o->outline->buckets, u);
    }
}

/* The sum of squares over all gradients of the rank, and its sum over all ranks. */
static void add_norm(etch_outliner *o)
{
    etch_outline *outline = o->outline;
    if (!o->placed->clip_flop)
        return;
    outline->norm = ETCH_NEW(o->arena, etch_task);
    outline->norm->type = ETCH_NODE_COMP;
    etch_name_task(o->arena, outline->norm, 'O', "grad_norm");
    outline->norm->flop = etch_task_number(o, o->placed->clip_flop, "FLOP", NULL, "grad_norm");
    outline->norm->bytes = etch_task_number(o, o->placed->clip_bytes, "bytes", NULL, "grad_norm");
    for (uint32_t g = 0; g < outline->gradients.count; g++)
        ETCH_PUSH(o->arena, &outline->norm->gradients, g);
    if (o->extent->wide == 0)
        return;
    outline->norm_reduce = ETCH_NEW(o->arena, etch_task);
    outline->norm_reduce->type = ETCH_NODE_COLL;
    outline->norm_reduce->collective = ETCH_COMM_ALL_REDUCE;
    outline->norm_reduce->axes = o->extent->wide;
    outline->norm_reduce->bytes = ETCH_SCALAR_BYTES;
    etch_name_task(o->arena, outline->norm_reduce, 'S', "grad_norm.all_reduce");
}

static void add_updates(etch_outliner *o)
{
    const etch_row *row = o->placed->training->train.optimizer.row;
    const char *what = row ? etch_row_name(row) : "update";
    for (uint32_t i = 0; i < o->placed->updates.count; i++) {
        const etch_update *update = &o->placed->updates.at[i];
        etch_unit_task *u = new_unit_task(o, update->unit);
        u->task.type = ETCH_NODE_COMP;
        etch_name_unit_task(o->arena, u, update->unit, 'O', what);
        u->task.flop = etch_task_number(o, update->flop, "FLOP", NULL, u->task.name);
        u->task.bytes = etch_task_number(o, update->bytes, "bytes", NULL, u->task.name);
        for (uint32_t g = 0; g < update->gradients.count; g++)
            read_gradient(o, &u->task, update->gradients.at[g]);
        ETCH_PUSH(o->arena, &o->outline->updates, u);
    }
}

void etch_end_tasks(etch_outliner *o)
{
    if (!o->outline->backward)
        return;
    uint32_t *last = ETCH_NEW_ARRAY(o->arena, o->outline->gradients.count, uint32_t);
    mark_last_parts(o->outline->backward, 0, last);
    add_buckets(o, last);
    add_norm(o);
    add_updates(o);
}
