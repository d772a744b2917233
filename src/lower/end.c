/* The end of a step: the gradients are synchronised while the last microbatch goes back, their norm is
 * taken, the weights are updated, and gathered where ranks update a part of them each. */
#include "lower/lower_int.h"

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

/* The loop of the backward body that undoes `loop`, or the copy of it that a part around it recomputes. */
static etch_repeat *reverse_of(const etch_body *backward, const etch_loop *loop)
{
    for (uint32_t i = 0; i < backward->items.count; i++) {
        etch_repeat *repeat = backward->items.at[i].repeat;
        const etch_loop *own = repeat ? repeat->loop->loop : NULL;
        if (own && own->forward && etch_forward_body(own->bodies.at[0])->loop == loop)
            return repeat;
    }
    return NULL;
}

/* The bucket of a loop's weights stands after each iteration that completes it. */
static void place_bucket(etch_outliner *o, etch_weight_task *bucket, const etch_weight_group *weight_group)
{
    etch_repeat *repeat = reverse_of(o->outline->backward, weight_group->loop);
    etch_lower_require(o->arena, repeat && repeat->count == bucket->weight_groups);
    repeat->works = true;
    ETCH_PUSH(o->arena, &repeat->bodies[weight_group->body->index]->after_each, bucket);
}

/* ---- tasks --------------------------------------------------------------------------------------------- */

static etch_layer_use use_of(etch_outliner *o, const etch_stage_use *use)
{
    etch_layer_use layers = {.layers = etch_layers_at(o, use->position)};
    if (use->body) {
        layers.classes = etch_classes_make(o, use->body->loop);
        layers.class = use->body->index;
    }
    return layers;
}

/* The layers of the chain that use the weights. */
static void set_uses(etch_outliner *o, etch_weight_task *task, const etch_weight_group *weight_group)
{
    const etch_stage_uses *uses = etch_is_cut(o) ? etch_weight_group_uses(o->placed, weight_group) : NULL;
    task->staged = uses && uses->count == 0;
    for (uint32_t i = 0; uses && i < uses->count; i++)
        if (etch_bound_number(o, etch_stage_use_total(o->bound->sym, &uses->at[i])) > 0)
            ETCH_PUSH(o->arena, &task->uses, use_of(o, &uses->at[i]));
    if (task->uses.count > 0)
        return;
    /* Nothing of backward need undo the loop: nobody may use what it makes. One stage holds everything. */
    const etch_position at = task->staged ? etch_stage_position_of(o->placed, weight_group->loop) : 0;
    ETCH_PUSH(o->arena, &task->uses, (etch_layer_use){.layers = etch_layers_at(o, at)});
}

static etch_weight_task *new_weight_task(etch_outliner *o, etch_end_role role,
                                         const etch_weight_group *weight_group)
{
    etch_weight_task *w = ETCH_NEW(o->arena, etch_weight_task);
    w->role = role;
    w->group = weight_group;
    w->weight_groups = 1;
    if (weight_group->loop) {
        w->weight_groups = etch_bound_number(o, weight_group->loop->count);
        w->classes = etch_classes_make(o, weight_group->loop);
        w->class = weight_group->body->index;
    }
    set_uses(o, w, weight_group);
    return w;
}

/* The numbers of a task, and the gradients that it reads: loads and stores read none. */
static void set_work(etch_outliner *o, etch_task *task, const etch_step_task *of)
{
    const bool reads = !etch_node_moves(task->type);
    etch_task_size(o, task, of);
    etch_task_set_end_workload(o, task, of);
    for (uint32_t i = 0; i < of->contributions.count; i++)
        if (reads && of->contributions.at[i].gradient)
            ETCH_PUSH(o->arena, &task->gradients, o->gradient_index[of->contributions.at[i].gradient->id]);
}

/* "grads.dp.all_reduce", "update.dp.all_reduce", "adamw", "states.load" */
static const char *what_of(const etch_outliner *o, const etch_step_task *of)
{
    const char *row = etch_row_name(of->contributions.at[0].row);
    if (of->kind == ETCH_TASK_COMPUTE)
        return row;
    if (of->kind != ETCH_TASK_COLLECTIVE)
        return of->kind == ETCH_TASK_LOAD ? "states.load" : "states.store";
    const bool shares = of->end == ETCH_END_SHARE_PREPARED || of->end == ETCH_END_SHARE_REFINED;
    const char *what = of->end == ETCH_END_GATHER ? "weights" : shares ? "update" : "grads";
    return etch_text(o->arena, "%s.%s.%s", what, etch_axes_label(o->placed, of->axes), row);
}

/* The stages that share weights add up what they have: more than one. */
static bool find_users(etch_outliner *o, etch_weight_task *w)
{
    const uint32_t stages = o->outline->pipe->stages;
    uint32_t *users = ETCH_NEW_ARRAY(o->arena, stages, uint32_t), count = 0;
    for (uint32_t stage = 0; stage < stages; stage++)
        if (etch_weight_task_groups(&o->outline->held[stage], w) > 0)
            users[count++] = stage;
    w->task.group.stages = users;
    w->task.group.stage_count = count;
    return count > 1;
}

/* Of weights that iterations of the chain have each of their own: a stage and its mirror image hold the same
 * iterations, where the chain is there twice. False: none of this class. */
static bool pair_stages(etch_outliner *o, etch_weight_task *w, uint32_t stage)
{
    uint32_t *users = ETCH_NEW_ARRAY(o->arena, 2, uint32_t);
    users[0] = stage;
    users[1] = o->outline->pipe->stages - 1 - stage;
    w->task.group.stages = users;
    w->task.group.stage_count = 2;
    return etch_weight_task_groups(&o->outline->held[stage], w) > 0;
}

/* A task that stages of the first half share with their mirror images is one for each of them. */
static uint32_t pairs_of(const etch_outliner *o, const etch_step_task *of)
{
    const etch_stage_uses *uses = etch_is_cut(o) ? etch_weight_group_uses(o->placed, of->group) : NULL;
    const bool staged = uses && uses->count == 0;
    return of->end == ETCH_END_REDUCE_SHARED && staged ? o->outline->pipe->stages / 2 : 0;
}

/* The task of a group, once for each of its weight groups, where there are any; of stage `pair` and its
 * mirror image. */
static void add_weight_task(etch_outliner *o, const etch_step_task *of, uint32_t pair)
{
    const etch_tensor *weight = of->contributions.at[0].tensor;
    etch_weight_task *w = new_weight_task(o, of->end, of->group);
    if (etch_class_members(w->classes, w->class, (etch_bound_interval){0, w->weight_groups}) == 0)
        return;
    o->outline->moves_states = o->outline->moves_states || of->end == ETCH_END_LOAD;
    w->every_microbatch = of->when == ETCH_EACH_MICROBATCH;
    w->anew = w->every_microbatch && etch_zero_divides(o->placed, weight, ETCH_HOLDS_GRADIENT) != 0;
    etch_task_begin(o, &w->task, of, of->contributions.at[0].row);
    etch_name_weight_task(o, w, of, what_of(o, of));
    if (of->end == ETCH_END_REDUCE && of->group->loop)
        place_bucket(o, w, of->group);
    if (of->end == ETCH_END_REDUCE_SHARED && !(w->staged ? pair_stages(o, w, pair) : find_users(o, w)))
        return;
    set_work(o, &w->task, of);
    ETCH_PUSH(o->arena, &o->outline->weight_tasks, w);
}

static void add_weight_tasks(etch_outliner *o, const etch_step_task *of)
{
    const uint32_t pairs = pairs_of(o, of);
    add_weight_task(o, of, 0);
    for (uint32_t pair = 1; pair < pairs; pair++)
        add_weight_task(o, of, pair);
}

/* Of the layers that use the weights leaves the first. */
static void keep_first_use(etch_weight_task *w)
{
    uint64_t first = UINT64_MAX;
    for (uint32_t i = 0; i < w->uses.count; i++) {
        const etch_layer_use *use = &w->uses.at[i];
        uint64_t at = 0;
        while (use->classes && etch_class_at(use->classes, at) != use->class)
            at++;
        first = use->layers.first + at < first ? use->layers.first + at : first;
    }
    w->uses.count = 1;
    w->uses.at[0] = (etch_layer_use){.layers = {first, first + 1}};
}

/* What the norm does for a weight. Gradients that several stages hold are counted by the first of them. */
static void add_norm_of_weight(etch_outliner *o, const etch_step_task *of, const etch_step_contribution *c)
{
    etch_sym *sym = o->bound->sym;
    const etch_task *norm = o->outline->norm;
    etch_weight_task *w = new_weight_task(o, of->end, c->group);
    if (!w->staged)
        keep_first_use(w);
    w->task.flop = etch_task_number(o, etch_mul(sym, c->copies, c->flop), "FLOP", NULL, norm->name.text);
    w->task.bytes = etch_task_number(o, etch_mul(sym, c->copies, c->read), "bytes", NULL, norm->name.text);
    ETCH_PUSH(o->arena, &w->task.gradients, o->gradient_index[c->gradient->id]);
    ETCH_PUSH(o->arena, &o->outline->weight_tasks, w);
}

/* The sum of squares over the gradients of the rank: one node, whose numbers are those of the weights on the
 * stage, and its result. */
static void add_norm(etch_outliner *o, const etch_step_task *of)
{
    etch_task *norm = o->outline->norm = ETCH_NEW(o->arena, etch_task);
    etch_task_begin(o, norm, of, of->contributions.at[0].row);
    norm->name = etch_word_of(norm->op_type);
    for (uint32_t i = 0; i < of->contributions.count; i++) {
        const etch_step_contribution *c = &of->contributions.at[i];
        if (c->group)
            add_norm_of_weight(o, of, c);
        else
            norm->bytes = etch_task_number(o, c->written, "bytes", NULL, norm->name.text);
    }
    /* No stage does more than all of them. */
    etch_task_number(o, of->flop, "FLOP", NULL, norm->name.text);
    etch_task_number(o, of->bytes, "bytes", NULL, norm->name.text);
}

static void add_norm_reduction(etch_outliner *o, const etch_step_task *of)
{
    etch_task *task = o->outline->norm_reduce = ETCH_NEW(o->arena, etch_task);
    etch_task_begin(o, task, of, of->contributions.at[0].row);
    task->name = etch_word_of(etch_text(o->arena, "%s.%s", o->outline->norm->name.text, task->op_type));
    set_work(o, task, of);
}

/* A collective over axes of one rank each is no task. */
void etch_end_tasks(etch_outliner *o)
{
    const etch_step_tasks *end = &o->placed->program->end;
    if (!o->outline->backward)
        return;
    find_adders(o, o->outline->backward, 0);
    for (uint32_t i = 0; i < end->count; i++) {
        const etch_step_task *of = end->at[i];
        if (of->kind == ETCH_TASK_COLLECTIVE && !(of->axes & o->extent->larger_axes))
            continue;
        if (of->end == ETCH_END_NORM)
            add_norm(o, of);
        else if (of->end == ETCH_END_NORM_REDUCE)
            add_norm_reduction(o, of);
        else
            add_weight_tasks(o, of);
    }
    etch_streams_make(o);
}
