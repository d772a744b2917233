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
        gradient->depth++;
        outermost = region->loop;
        group_copies = copies;
        copies *= etch_bound_number(o, region->loop->count);
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
        u->weight_groups = etch_bound_number(o, weight_group->loop->count);
        u->classes = etch_classes_make(o, weight_group->loop);
        u->class = weight_group->body->index;
    }
    set_uses(o, u, weight_group);
    return u;
}

/* The numbers of a task, and the gradients that it reads. */
static void set_work(etch_outliner *o, etch_task *task, const etch_step_task *of)
{
    const bool computes = of->kind == ETCH_TASK_COMPUTE;
    task->flop = computes ? etch_task_number(o, of->flop, "FLOP", NULL, task->name) : 0;
    task->bytes = etch_task_number(o, of->bytes, "bytes", NULL, task->name);
    for (uint32_t i = 0; i < of->contributions.count; i++)
        if (of->contributions.at[i].gradient)
            read_gradient(o, task, of->contributions.at[i].gradient);
}

/* The collective of a group, once for each of its weight groups; NULL when its axes have one rank each.
 * `what`: what it reduces or gathers. */
static etch_weight_task *new_collective(etch_outliner *o, const etch_step_task *of, const char *what)
{
    const uint32_t axes = of->axes & o->extent->larger_axes;
    if (axes == 0)
        return NULL;
    etch_weight_task *u = new_weight_task(o, of->group);
    u->every_microbatch = of->when == ETCH_EACH_MICROBATCH;
    u->anew = u->every_microbatch && o->placed->plan->zero.level > 1 && !o->placed->plan->zero.whole;
    u->task.type = ETCH_NODE_COLL;
    u->task.collective = etch_collective_code(of->collective);
    u->task.group = (etch_group_set){.axes = axes};
    const char *name = etch_text(o->arena, "%s.%s.%s", what, etch_axes_label(o->placed, of->axes),
                                 etch_collective_name(of->collective));
    etch_name_weight_task(o->arena, o->outline, u, of->group, of->phase, name);
    u->task.op_type = etch_collective_name(of->collective);
    set_work(o, &u->task, of);
    return u;
}

static void add_reduction(etch_outliner *o, const etch_step_task *of)
{
    etch_weight_task *u = new_collective(o, of, "grads");
    if (!u)
        return;
    place_bucket(o, u, of->group);
    ETCH_PUSH(o->arena, &o->outline->buckets, u);
}

/* Weights are gathered when all of them are updated. */
static void add_gather(etch_outliner *o, const etch_step_task *of)
{
    etch_weight_task *u = new_collective(o, of, "weights");
    if (u)
        ETCH_PUSH(o->arena, &o->outline->gathers, u);
}

/* The stages that share weights add up what they have. */
static void add_shared_reduction(etch_outliner *o, const etch_step_task *of)
{
    const etch_model_chunks *model_chunks = &o->outline->model_chunks;
    etch_weight_task *u = new_collective(o, of, "grads");
    if (!u)
        return;
    uint32_t *stages = ETCH_NEW_ARRAY(o->arena, model_chunks->stage_count, uint32_t), count = 0;
    for (uint32_t stage = 0; stage < model_chunks->stage_count; stage++)
        if (etch_weight_task_runs(model_chunks, stage, u))
            stages[count++] = stage;
    u->task.group = (etch_group_set){u->task.group.axes, stages, count};
    if (count > 1)
        ETCH_PUSH(o->arena, &o->outline->shared_reductions, u);
}

/* What the norm does for the weights of one group, which are the contributions from `first` to before `end`.
 * Gradients that several stages hold are counted by the first of them. */
static void add_norm_of_group(etch_outliner *o, const etch_step_task *of, uint32_t first, uint32_t end)
{
    etch_step_task work = {
        .kind = of->kind, .flop = etch_int(o->graph->sym, 0), .bytes = etch_int(o->graph->sym, 0)};
    for (uint32_t i = first; i < end; i++) {
        const etch_step_contribution *c = &of->contributions.at[i];
        work.flop = etch_add(o->graph->sym, work.flop, etch_mul(o->graph->sym, c->copies, c->flop));
        work.bytes = etch_add(o->graph->sym, work.bytes, etch_mul(o->graph->sym, c->copies, c->read));
        ETCH_PUSH(o->arena, &work.contributions, *c);
    }
    etch_weight_task *u = new_weight_task(o, of->contributions.at[first].group);
    if (!u->staged) {
        u->use_count = 1;
        u->uses[0].end = u->uses[0].first + 1;
    }
    u->task.name = GRAD_NORM;
    set_work(o, &u->task, &work);
    ETCH_PUSH(o->arena, &o->outline->norms, u);
}

/* The sum of squares over the gradients of the rank: one node, whose numbers are those of the groups on the
 * stage. */
static void add_norm(etch_outliner *o, const etch_step_task *of)
{
    etch_outline *outline = o->outline;
    const uint32_t count = of->contributions.count;
    outline->norm = ETCH_NEW(o->arena, etch_task);
    outline->norm->type = ETCH_NODE_COMP;
    etch_name_task(o->arena, outline->norm, of->phase, GRAD_NORM);
    outline->norm->op_type = GRAD_NORM;
    for (uint32_t first = 0, end; first < count; first = end) {
        const etch_weight_group *group = of->contributions.at[first].group;
        for (end = first + 1; end < count && of->contributions.at[end].group == group;)
            end++;
        if (group)
            add_norm_of_group(o, of, first, end);
        else /* its result */
            outline->norm->bytes =
                etch_task_number(o, of->contributions.at[first].written, "bytes", NULL, GRAD_NORM);
    }
    /* No stage does more than all of them. */
    etch_task_number(o, of->flop, "FLOP", NULL, GRAD_NORM);
    etch_task_number(o, of->bytes, "bytes", NULL, GRAD_NORM);
}

static void add_norm_reduction(etch_outliner *o, const etch_step_task *of)
{
    const uint32_t axes = of->axes & o->extent->larger_axes;
    if (axes == 0)
        return;
    etch_task *task = o->outline->norm_reduce = ETCH_NEW(o->arena, etch_task);
    task->type = ETCH_NODE_COLL;
    task->collective = etch_collective_code(of->collective);
    task->group = (etch_group_set){.axes = axes};
    etch_name_task(o->arena, task, of->phase, GRAD_NORM ".all_reduce");
    task->op_type = etch_collective_name(of->collective);
    set_work(o, task, of);
}

static void add_update(etch_outliner *o, const etch_step_task *of)
{
    const char *what = etch_row_name(o->placed->training->train.optimizer.row);
    etch_weight_task *u = new_weight_task(o, of->group);
    u->task.type = ETCH_NODE_COMP;
    etch_name_weight_task(o->arena, o->outline, u, of->group, of->phase, what);
    u->task.op_type = what;
    set_work(o, &u->task, of);
    ETCH_PUSH(o->arena, &o->outline->updates, u);
}

void etch_end_tasks(etch_outliner *o)
{
    static void (*const add[])(etch_outliner * o, const etch_step_task *of) = {
        [ETCH_END_REDUCE] = add_reduction, [ETCH_END_REDUCE_SHARED] = add_shared_reduction,
        [ETCH_END_NORM] = add_norm,        [ETCH_END_NORM_REDUCE] = add_norm_reduction,
        [ETCH_END_UPDATE] = add_update,    [ETCH_END_GATHER] = add_gather};
    const etch_step_tasks *end = &o->placed->program->end;
    if (!o->outline->backward)
        return;
    find_adders(o, o->outline->backward, 0);
    for (uint32_t i = 0; i < end->count; i++)
        add[end->at[i]->end](o, end->at[i]);
    etch_streams_make(o);
}
