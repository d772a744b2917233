/* The end of a step: the gradients are synchronised while the last microbatch goes back, their norm is
 * taken, the weights are updated, and gathered where ranks update a part of them each. */
#include "lower/lower_int.h"

#define GRAD_NORM "grad_norm"

/* ---- gradients ----------------------------------------------------------------------------------------- */

/* Copies: one for each iteration of the loops around the weight. */
static void count_copies(etch_outliner *o, const etch_tensor *weight, etch_gradient *gradient)
{
    const etch_loop *outermost = NULL;
    etch_total copies = 1, group_copies = 1;
    for (const etch_region *region = weight->region; region; region = region->parent) {
        if (!region->loop)
            continue;
        uint64_t count;
        etch_lower_require(o->arena, etch_to_u64(etch_bound_value(o->bound, region->loop->count), &count));
        gradient->depth++;
        outermost = region->loop;
        group_copies = copies;
        copies *= count;
        if (copies > ETCH_MOST_NODES) /* then a loop around it does not run: all runs have been counted */
            copies = ETCH_MOST_NODES;
    }
    gradient->copies = (uint64_t)copies;
    gradient->group_copies = outermost ? (uint64_t)group_copies : 1;
}

void etch_end_gradients(etch_outliner *o)
{
    const etch_training *training = o->placed->training;
    etch_outline *outline = o->outline;
    for (uint32_t i = 0; i < training->gradients.count; i++) {
        const etch_tensor *tensor = training->gradients.at[i];
        if (!tensor)
            continue;
        etch_gradient gradient = {.first_register = outline->gradient_registers};
        count_copies(o, tensor->of, &gradient);
        o->gradient_index[tensor->id] = outline->gradients.count;
        ETCH_PUSH(o->arena, &outline->gradients, gradient);
        outline->gradient_registers += gradient.copies;
    }
}

/* ---- when gradients are complete ----------------------------------------------------------------------- */

/* Notes for each gradient which parts of the backward body add to it; `number`: of the part at hand. */
static void find_adders(etch_outliner *o, const etch_body *body, uint32_t number)
{
    for (uint32_t i = 0; i < body->items.count; i++) {
        const etch_body_item *item = &body->items.at[i];
        uint32_t own = body->parent ? number : i;
        for (uint32_t g = 0; item->task && g < item->task->gradients.count; g++) {
            etch_gradient *gradient = &o->outline->gradients.at[item->task->gradients.at[g]];
            if (gradient->adders.count == 0 || gradient->adders.at[gradient->adders.count - 1] != own)
                ETCH_PUSH(o->arena, &gradient->adders, own);
        }
        for (uint32_t k = 0; item->repeat && k < item->repeat->body_count; k++)
            if (item->repeat->bodies[k]->runs > 0)
                find_adders(o, item->repeat->bodies[k], own);
    }
}

/* The loop of the backward body that undoes `loop`. */
static etch_repeat *reverse_of(const etch_body *backward, const etch_loop *loop)
{
    for (uint32_t i = 0; i < backward->items.count; i++) {
        etch_repeat *repeat = backward->items.at[i].repeat;
        if (repeat && repeat->loop->loop->forward == loop)
            return repeat;
    }
    return NULL;
}

/* The bucket of a loop's weights stands after each iteration that completes it. */
static void place_bucket(etch_outliner *o, etch_weight_task *bucket, const etch_weight_group *weight_group)
{
    if (!weight_group->loop)
        return;
    etch_repeat *repeat = reverse_of(o->outline->backward, weight_group->loop);
    etch_lower_require(o->arena, repeat && repeat->count == bucket->weight_groups);
    ETCH_PUSH(o->arena, &repeat->bodies[weight_group->body->index]->after_each, bucket);
}

/* ---- tasks --------------------------------------------------------------------------------------------- */

static void read_gradient(etch_outliner *o, etch_task *task, const etch_tensor *gradient)
{
    ETCH_PUSH(o->arena, &task->gradients, o->gradient_index[gradient->id]);
}

/* The weight groups of the chain that use the weights. */
static void set_uses(etch_outliner *o, etch_weight_task *task, const etch_weight_group *weight_group)
{
    const etch_positions *uses = etch_is_cut(o) ? etch_weight_group_uses(o->placed, weight_group) : NULL;
    task->staged = uses && uses->count == 0;
    task->use_count = uses && uses->count > 0 ? uses->count : 1;
    task->uses = ETCH_NEW_ARRAY(o->arena, task->use_count, etch_bound_interval);
    if (!uses)
        task->uses[0] = etch_layers_at(o, 0); /* one stage holds everything */
    else if (task->staged) /* nothing of backward need undo the loop: nobody may use what it makes */
        task->uses[0] = etch_layers_at(o, etch_stage_position_of(o->placed, weight_group->loop));
    for (uint32_t i = 0; uses && i < uses->count; i++)
        task->uses[i] = etch_layers_at(o, uses->at[i]);
}

static etch_weight_task *new_weight_task(etch_outliner *o, const etch_weight_group *weight_group)
{
    etch_weight_task *u = ETCH_NEW(o->arena, etch_weight_task);
    u->weight_groups = 1;
    if (weight_group->loop) {
        etch_lower_require(
            o->arena, etch_to_u64(etch_bound_value(o->bound, weight_group->loop->count), &u->weight_groups));
        u->classes = etch_classes_make(o, weight_group->loop);
        u->class = weight_group->body->index;
    }
    set_uses(o, u, weight_group);
    return u;
}

static void set_end_work(etch_outliner *o, etch_weight_task *u, const etch_update *work, const char *name)
{
    u->task.flop = etch_task_number(o, work->flop, "FLOP", NULL, name);
    u->task.bytes = etch_task_number(o, work->bytes, "bytes", NULL, name);
    for (uint32_t g = 0; g < work->gradients.count; g++)
        read_gradient(o, &u->task, work->gradients.at[g]);
}

/* The collective of a bucket, once for each weight group; NULL when its axes have one rank each. `what`: what
 * the bucket holds. */
static etch_weight_task *new_collective(etch_outliner *o, const etch_bucket *bucket, const char *what)
{
    uint32_t axes = bucket->axes & o->extent->larger_axes;
    if (axes == 0)
        return NULL;
    etch_weight_task *u = new_weight_task(o, bucket->weight_group);
    u->every_microbatch = bucket->every_microbatch;
    u->anew = u->every_microbatch && o->placed->plan->zero.level > 1 && !o->placed->plan->zero.whole;
    u->task.type = ETCH_NODE_COLL;
    u->task.collective = etch_collective_of(bucket->collective);
    u->task.group = (etch_group_set){.axes = axes};
    const char *name = etch_text(o->arena, "%s.%s.%s", what, etch_axes_label(o->placed, bucket->axes),
                                 etch_collective_name(bucket->collective));
    etch_name_weight_task(o->arena, o->outline, u, bucket->weight_group, ETCH_SYNC, name);
    u->task.op_type = etch_collective_name(bucket->collective);
    u->task.bytes = etch_task_number(o, bucket->bytes, "bytes", NULL, u->task.name);
    for (uint32_t g = 0; g < bucket->gradients.count; g++)
        read_gradient(o, &u->task, bucket->gradients.at[g]);
    return u;
}

static void add_buckets(etch_outliner *o)
{
    for (uint32_t i = 0; i < o->placed->buckets.count; i++) {
        const etch_bucket *bucket = &o->placed->buckets.at[i];
        etch_weight_task *u = new_collective(o, bucket, "grads");
        if (!u)
            continue;
        place_bucket(o, u, bucket->weight_group);
        ETCH_PUSH(o->arena, &o->outline->buckets, u);
    }
}

/* Weights are gathered when all of them are updated. */
static void add_gathers(etch_outliner *o)
{
    for (uint32_t i = 0; i < o->placed->gathers.count; i++) {
        etch_weight_task *u = new_collective(o, &o->placed->gathers.at[i], "weights");
        if (u)
            ETCH_PUSH(o->arena, &o->outline->gathers, u);
    }
}

/* The stages that share weights add up what they have. */
static void add_shared_reductions(etch_outliner *o)
{
    const etch_model_chunks *model_chunks = &o->outline->model_chunks;
    for (uint32_t i = 0; i < o->placed->shared_reductions.count; i++) {
        etch_weight_task *u = new_collective(o, &o->placed->shared_reductions.at[i], "grads");
        if (!u)
            continue;
        uint32_t *stages = ETCH_NEW_ARRAY(o->arena, model_chunks->stage_count, uint32_t), count = 0;
        for (uint32_t stage = 0; stage < model_chunks->stage_count; stage++)
            if (etch_weight_task_runs(model_chunks, stage, u))
                stages[count++] = stage;
        u->task.group = (etch_group_set){u->task.group.axes, stages, count};
        if (count > 1)
            ETCH_PUSH(o->arena, &o->outline->shared_reductions, u);
    }
}

/* The sum of squares over the gradients of the rank, and its sum over all ranks. Gradients that several
 * stages hold are counted by the first of them. */
static void add_norm(etch_outliner *o)
{
    etch_outline *outline = o->outline;
    etch_expr flop = etch_int(o->graph->sym, 0), bytes = etch_int(o->graph->sym, ETCH_SCALAR_BYTES);
    if (!o->placed->training->train.clip)
        return;
    outline->norm = ETCH_NEW(o->arena, etch_task);
    outline->norm->type = ETCH_NODE_COMP;
    etch_name_task(o->arena, outline->norm, ETCH_OPTIMIZER, GRAD_NORM);
    outline->norm->op_type = GRAD_NORM;
    for (uint32_t i = 0; i < o->placed->norms.count; i++) {
        const etch_update *norm = &o->placed->norms.at[i];
        etch_weight_task *u = new_weight_task(o, norm->weight_group);
        etch_expr weight_groups =
            norm->weight_group->body ? norm->weight_group->body->count : etch_int(o->graph->sym, 1);
        if (!u->staged) {
            u->use_count = 1;
            u->uses[0].end = u->uses[0].first + 1;
        }
        set_end_work(o, u, norm, GRAD_NORM);
        flop = etch_add(o->graph->sym, flop, etch_mul(o->graph->sym, weight_groups, norm->flop));
        bytes = etch_add(o->graph->sym, bytes, etch_mul(o->graph->sym, weight_groups, norm->bytes));
        ETCH_PUSH(o->arena, &outline->norms, u);
    }
    /* No stage does more than all of them. */
    etch_task_number(o, flop, "FLOP", NULL, GRAD_NORM);
    etch_task_number(o, bytes, "bytes", NULL, GRAD_NORM);
    if (o->extent->larger_axes == 0)
        return;
    outline->norm_reduce = ETCH_NEW(o->arena, etch_task);
    outline->norm_reduce->type = ETCH_NODE_COLL;
    outline->norm_reduce->collective = ETCH_COMM_ALL_REDUCE;
    outline->norm_reduce->group = (etch_group_set){.axes = o->extent->larger_axes};
    outline->norm_reduce->bytes = ETCH_SCALAR_BYTES;
    etch_name_task(o->arena, outline->norm_reduce, ETCH_SYNC, GRAD_NORM ".all_reduce");
    outline->norm_reduce->op_type = etch_collective_name(ETCH_ALL_REDUCE);
}

static void add_updates(etch_outliner *o)
{
    const etch_row *row = o->placed->training->train.optimizer.row;
    const char *what = row ? etch_row_name(row) : "update";
    for (uint32_t i = 0; i < o->placed->updates.count; i++) {
        const etch_update *update = &o->placed->updates.at[i];
        etch_weight_task *u = new_weight_task(o, update->weight_group);
        u->task.type = ETCH_NODE_COMP;
        etch_name_weight_task(o->arena, o->outline, u, update->weight_group, ETCH_OPTIMIZER, what);
        u->task.op_type = what;
        set_end_work(o, u, update, u->task.name);
        ETCH_PUSH(o->arena, &o->outline->updates, u);
    }
}

void etch_end_tasks(etch_outliner *o)
{
    if (!o->outline->backward)
        return;
    find_adders(o, o->outline->backward, 0);
    add_buckets(o);
    add_shared_reductions(o);
    add_norm(o);
    add_updates(o);
    add_gathers(o);
    etch_streams_make(o);
}
