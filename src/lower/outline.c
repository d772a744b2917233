/* The placed graph in numbers: regions become bodies, kernels become tasks, and what a kernel reads
 * becomes the register that will hold its maker. A collective over axes of one rank each is no task: its
 * result is its operand. */
#include "lower/lower_int.h"

/* ---- bodies -------------------------------------------------------------------------------------------- */

/* The task of a kernel and the register of its body that keeps its node; none for a collective that moves
 * nothing. */
static void add_task(etch_outliner *o, etch_body *body, const etch_step_task *of)
{
    const etch_kernel *kernel = of->kernel;
    if (of->kind == ETCH_TASK_COLLECTIVE && !(of->axes & o->extent->larger_axes))
        return;
    etch_task *task = ETCH_NEW(o->arena, etch_task);
    etch_task_begin(o, task, of, kernel->anchor->row);
    task->of = of;
    task->index = body->register_count++;
    task->gathers = kernel->anchor->copies != NULL;
    task->goes_round = kernel->anchor->collective == ETCH_PERMUTE;
    task->once = of->when == ETCH_FIRST_MICROBATCH;
    task->weight_half = of->weight_half;
    o->outline->gathers_weights = o->outline->gathers_weights || task->gathers;
    for (uint32_t i = 0; i < kernel->steps.count; i++)
        o->made_by[kernel->steps.at[i]->id] = (etch_register){body, task->index};
    etch_body_item item = {.task = task};
    if (!body->parent)
        item.layers = etch_layers_at(o, of->position);
    ETCH_PUSH(o->arena, &body->items, item);
}

static etch_body *add_body(etch_outliner *o, const etch_step_body *of, etch_body *parent,
                           const etch_repeat *repeat);

/* The bodies of a loop, and where they keep loop-carried values. */
static void add_bodies(etch_outliner *o, etch_repeat *repeat, const etch_step_repeat *of, etch_body *parent)
{
    repeat->body_count = of->bodies.count;
    repeat->bodies = ETCH_NEW_ARRAY(o->arena, repeat->body_count, etch_body *);
    for (uint32_t k = 0; k < repeat->body_count; k++) {
        const etch_placed_region *region = of->bodies.at[k]->region;
        etch_body *body = repeat->bodies[k] = add_body(o, of->bodies.at[k], parent, repeat);
        body->taken = ETCH_NEW_ARRAY(o->arena, repeat->carried_count, etch_loop_value);
        for (uint32_t i = 0; i < repeat->carried_count; i++) {
            body->taken[i].at = body->register_count++;
            o->carried[region->carries.at[i].in->id] = (etch_register){body, body->taken[i].at};
        }
    }
}

/* Every iteration is looked at, also those of a class that does nothing. Of a loop without any work none
 * is. */
static void check_runs(etch_outliner *o, const etch_body *around, etch_repeat *repeat)
{
    repeat->works = repeat->carried_count > 0;
    for (uint32_t i = 0; i < repeat->body_count; i++)
        repeat->works = repeat->works || repeat->bodies[i]->items.count > 0;
    if (!repeat->works || (etch_total)around->runs * repeat->count <= ETCH_MOST_RUNS || o->status != ETCH_OK)
        return;
    etch_error(o->placed->diags, ETCH_E_TOO_MANY_NODES, repeat->loop->loop->span,
               "the loops run too often: more than %d iterations in a microbatch", (int)ETCH_MOST_RUNS);
    o->status = ETCH_ELIMIT;
}

static void add_repeat(etch_outliner *o, etch_body *body, const etch_step_repeat *of)
{
    const etch_placed_loop *loop = of->loop;
    etch_repeat *repeat = ETCH_NEW(o->arena, etch_repeat);
    repeat->loop = loop;
    repeat->reverse = loop->loop->forward != NULL;
    repeat->name = etch_loop_label(loop->loop);
    repeat->count = etch_bound_number(o, loop->loop->count);
    repeat->classes = etch_classes_make(o, loop->loop);
    repeat->carried_count = etch_loop_carries(loop)->count;
    repeat->carried = ETCH_NEW_ARRAY(o->arena, repeat->carried_count, etch_loop_value);
    repeat->carrying = ETCH_NEW_ARRAY(o->arena, repeat->carried_count, uint32_t);
    add_bodies(o, repeat, of, body);
    check_runs(o, body, repeat);
    for (uint32_t i = 0; i < repeat->carried_count; i++) {
        const etch_value *result = etch_loop_carries(loop)->at[i].result;
        repeat->carried[i].at = body->register_count++;
        if (result)
            o->carried[result->id] = (etch_register){body, repeat->carried[i].at};
    }
    etch_body_item item = {.repeat = repeat};
    if (!body->parent) {
        item.layers = etch_layers_at(o, of->position);
        item.staged = etch_is_cut(o) && etch_position_is_loop(o->placed->stages, of->position);
    }
    ETCH_PUSH(o->arena, &body->items, item);
}

/* Goes as deep as loops are nested, and no deeper than ETCH_LOOP_DEPTH. */
static etch_body *add_body(etch_outliner *o, const etch_step_body *of, etch_body *parent,
                           const etch_repeat *repeat)
{
    etch_body *body = ETCH_NEW(o->arena, etch_body);
    ETCH_PUSH(o->arena, &o->outline->bodies, body);
    body->region = of->region;
    body->parent = parent;
    body->repeat = repeat;
    body->class = repeat ? of->region->of->index : 0;
    body->depth = parent ? parent->depth + 1 : 0;
    etch_total runs = parent ? (etch_total)parent->runs * repeat->count : 1;
    if (repeat &&
        etch_class_members(repeat->classes, body->class, (etch_bound_interval){0, repeat->count}) == 0)
        runs = 0;
    if (runs > ETCH_MOST_NODES) {
        etch_too_many_nodes(o, repeat->loop->loop->span, "the loops run too often");
        runs = 0;
    }
    body->runs = (uint64_t)runs;
    if (body->depth <= ETCH_LOOP_DEPTH) {
        for (uint32_t i = 0; i < of->items.count; i++) {
            if (of->items.at[i].task)
                add_task(o, body, of->items.at[i].task);
            else
                add_repeat(o, body, of->items.at[i].repeat);
        }
        return body;
    }
    if (o->status == ETCH_OK)
        etch_error(o->placed->diags, ETCH_E_LOOPS_TOO_DEEP, repeat->loop->loop->span,
                   "more than %d loops are nested", (int)ETCH_LOOP_DEPTH);
    o->status = ETCH_ELIMIT;
    return body;
}

/* ---- what tasks read ----------------------------------------------------------------------------------- */

static void add_gradient(etch_outliner *o, etch_task *task, const etch_tensor *gradient,
                         const etch_body *body)
{
    uint32_t index = o->gradient_index[gradient->id];
    const etch_gradient *g = &o->outline->gradients.at[index];
    etch_lower_require(o->arena, g->depth <= body->depth);
    while (body->depth > g->depth)
        body = body->parent;
    etch_lower_require(o->arena, body->runs == g->copies || body->runs == 0);
    for (uint32_t i = 0; i < task->gradients.count; i++)
        if (task->gradients.at[i] == index)
            return;
    ETCH_PUSH(o->arena, &task->gradients, index);
}

static bool is_register_in(const etch_register *registers, uint32_t count, etch_register reg)
{
    for (uint32_t i = 0; i < count; i++)
        if (registers[i].body == reg.body && registers[i].index == reg.index)
            return true;
    return false;
}

static void link_task(etch_outliner *o, etch_task *task, const etch_body *body)
{
    const etch_kernel *kernel = task->of->kernel;
    uint32_t operands = 0;
    for (uint32_t i = 0; i < kernel->steps.count; i++)
        operands += kernel->steps.at[i]->in_count;
    task->reads = ETCH_NEW_ARRAY(o->arena, operands, etch_register);
    for (uint32_t i = 0; i < kernel->steps.count; i++) {
        const etch_step *step = kernel->steps.at[i];
        for (uint32_t k = 0; k < step->in_count; k++) {
            etch_register reg = etch_register_of(o, step->ins[k], body);
            bool own = reg.body == body && reg.index == task->index;
            if (reg.body && !own && !is_register_in(task->reads, task->read_count, reg))
                task->reads[task->read_count++] = reg;
        }
        for (uint32_t k = 0; k < step->out_count; k++)
            if (step->accumulate_into[k])
                add_gradient(o, task, step->accumulate_into[k], body);
    }
}

static etch_task *task_at(const etch_body *body, uint32_t index)
{
    for (uint32_t i = 0; i < body->items.count; i++) {
        etch_task *task = body->items.at[i].task;
        if (task && task->index == index)
            return task;
    }
    return NULL;
}

/* A view, or a collective that moves nothing, may be what adds into a gradient: then the maker of its
 * operand does. */
static void link_views(etch_outliner *o, const etch_body *body)
{
    const etch_placed_region *region = body->region;
    for (uint32_t i = 0; i < region->items.count; i++) {
        const etch_step *step = region->items.at[i].step;
        if (!step || o->made_by[step->id].body)
            continue;
        for (uint32_t k = 0; k < step->out_count; k++) {
            if (!step->accumulate_into[k])
                continue;
            etch_register reg = etch_register_of(o, step->ins[0], body);
            etch_task *task = reg.body == body ? task_at(body, reg.index) : NULL;
            etch_lower_require(o->arena, task != NULL);
            add_gradient(o, task, step->accumulate_into[k], body);
        }
    }
}

static void link_body(etch_outliner *o, etch_body *body)
{
    for (uint32_t k = 0; k < body->region->carries.count; k++)
        body->taken[k].from = etch_register_of(o, body->region->carries.at[k].out, body);
    for (uint32_t i = 0; i < body->items.count; i++) {
        etch_task *task = body->items.at[i].task;
        const etch_repeat *repeat = body->items.at[i].repeat;
        if (task)
            link_task(o, task, body);
        if (task && body->runs > 0 && !task->goes_round) {
            etch_task_size(o, task, task->of);
            etch_task_set_workload(o, task, task->of->kernel);
        }
        for (uint32_t k = 0; repeat && k < repeat->carried_count; k++)
            repeat->carried[k].from = etch_register_of(o, etch_loop_carries(repeat->loop)->at[k].init, body);
    }
    for (uint32_t i = 0; i < body->items.count && body->runs > 0; i++)
        if (body->items.at[i].task && body->items.at[i].task->of->kernel->anchor->ring)
            etch_ring_outline(o, body->items.at[i].task, body);
    link_views(o, body);
}

/* ---- the whole ----------------------------------------------------------------------------------------- */

static void place_registers(etch_outliner *o)
{
    etch_total registers = 0;
    for (uint32_t i = 0; i < o->outline->bodies.count; i++) {
        etch_body *body = o->outline->bodies.at[i];
        body->first_register = (uint64_t)registers;
        registers += (etch_total)body->runs * body->register_count;
    }
    if (registers > UINT32_MAX)
        etch_too_many_nodes(o, (etch_span){0, 0}, "the step is too long");
    o->outline->register_count = (uint64_t)registers;
}

static void add_passes(etch_outliner *o)
{
    const etch_step_program *program = o->placed->program;
    o->outline->forward = add_body(o, program->forward, NULL, NULL);
    if (program->backward)
        o->outline->backward = add_body(o, program->backward, NULL, NULL);
}

static void link_passes(etch_outliner *o)
{
    etch_name_tasks(o);
    etch_end_gradients(o);
    for (uint32_t i = 0; i < o->outline->bodies.count; i++)
        link_body(o, o->outline->bodies.at[i]);
    etch_chain_messages(o);
    etch_end_tasks(o);
    place_registers(o);
}

static etch_status count_stages(etch_outliner *o)
{
    const uint32_t stages = o->extent->pipe.stages;
    o->outline->sizes = ETCH_NEW_ARRAY(o->arena, stages, etch_size);
    for (uint32_t stage = 0; stage < stages && o->status == ETCH_OK; stage++)
        o->outline->sizes[stage] = etch_outline_count(o, stage);
    return o->status;
}

etch_status etch_outline_make(etch_arena *scratch, const etch_placed *placed, etch_bound *bound,
                              const etch_extent *extent, etch_outline *outline)
{
    const etch_graph *graph = placed->training->graph;
    etch_outliner o = {
        .arena = scratch,
        .placed = placed,
        .bound = bound,
        .extent = extent,
        .outline = outline,
        .made_by = ETCH_NEW_ARRAY(scratch, placed->step_count, etch_register),
        .carried = ETCH_NEW_ARRAY(scratch, placed->value_count, etch_register),
        .gradient_index = ETCH_NEW_ARRAY(scratch, graph->tensors.count, uint32_t),
    };
    outline->pipe = &extent->pipe;
    outline->ahead = placed->plan->zero.ahead;
    outline->loads_ahead = placed->plan->offload.ahead;
    outline->reduce_last = placed->plan->reduce_last;
    etch_chain_cut(&o);
    if (o.status == ETCH_OK)
        add_passes(&o);
    if (o.status != ETCH_OK)
        return o.status;
    link_passes(&o);
    return count_stages(&o);
}

etch_status etch_outline_shorten(etch_arena *scratch, const etch_placed *placed, const etch_extent *extent,
                                 etch_outline *outline)
{
    etch_outliner o = {.arena = scratch, .placed = placed, .extent = extent, .outline = outline};
    return count_stages(&o);
}
