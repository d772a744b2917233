/* The placed graph in numbers: regions become bodies, kernels become tasks, and what a kernel reads
 * becomes the cell that will hold its maker. A collective over axes of one rank each is no task: its
 * result is its operand. */
#include "lower/lower_int.h"

#include <inttypes.h>

/* ---- numbers ------------------------------------------------------------------------------------------- */

/* Names the first dim of `value` that the mesh does not divide evenly. */
static void note_uneven_dim(etch_outliner *o, etch_diag *diag, const etch_value *value)
{
    etch_sym *sym = o->graph->sym;
    for (uint32_t d = 0; d < value->tensor->rank; d++) {
        const etch_dim *dim = value->tensor->dims[d];
        etch_expr whole = etch_bound_value(o->bound, etch_placed_size(o->placed, dim));
        int64_t parts = 1;
        uint32_t axes = 0;
        for (uint32_t axis = 0; axis < o->extent->axis_count; axis++)
            if (value->place[axis] == dim) {
                parts *= o->extent->axis_size[axis];
                axes |= UINT32_C(1) << axis;
            }
        etch_expr part = whole ? etch_div(sym, whole, etch_int(sym, parts)) : NULL;
        if (!part || etch_is_integer_constant(part))
            continue;
        const char *over =
            axes ? etch_text(o->arena, " over mesh axes %s", etch_axes_label(o->placed, axes)) : "";
        etch_note(diag, dim->span, "dim %s of '%s' has %s elements%s", dim->name, value->tensor->name,
                  etch_expr_text(sym, part), over);
    }
}

static bool has_ragged_dim(const etch_value *value)
{
    for (uint32_t d = 0; d < value->tensor->rank; d++)
        if (value->tensor->dims[d]->ragged)
            return true;
    return false;
}

/* Sizes on average may be fractions: the kernel's numbers are rounded up. */
static bool is_ragged(const etch_kernel *kernel)
{
    for (uint32_t i = 0; i < kernel->steps.count; i++) {
        const etch_step *step = kernel->steps.at[i];
        for (uint32_t k = 0; k < step->in_count; k++)
            if (has_ragged_dim(step->ins[k]))
                return true;
        for (uint32_t k = 0; k < step->out_count; k++)
            if (has_ragged_dim(step->outs[k]))
                return true;
    }
    return false;
}

static etch_span span_of(const etch_kernel *kernel)
{
    if (!kernel)
        return (etch_span){0, 0};
    return kernel->anchor->op ? kernel->anchor->op->span : kernel->anchor->outs[0]->tensor->span;
}

static void report_fraction(etch_outliner *o, etch_expr value, const char *what, const etch_kernel *kernel,
                            const char *name)
{
    etch_diag *diag = etch_error(o->placed->diags, ETCH_E_NODE_FRACTION, span_of(kernel),
                                 "'%s' has %s %s on each rank", name, etch_bound_text(o->bound, value), what);
    for (uint32_t i = 0; kernel && i < kernel->steps.count; i++) {
        const etch_step *step = kernel->steps.at[i];
        for (uint32_t k = 0; k < step->in_count; k++)
            note_uneven_dim(o, diag, step->ins[k]);
        for (uint32_t k = 0; k < step->out_count; k++)
            note_uneven_dim(o, diag, step->outs[k]);
    }
    if (o->status == ETCH_OK)
        o->status = ETCH_EINPUT;
}

uint64_t etch_task_number(etch_outliner *o, etch_expr expr, const char *what, const etch_kernel *kernel,
                          const char *name)
{
    etch_expr value = etch_bound_value(o->bound, expr);
    if (value && !etch_is_integer_constant(value) && kernel && is_ragged(kernel))
        value = etch_ceil(o->graph->sym, value);
    int64_t number;
    if (!value || !etch_is_integer_constant(value) ||
        etch_constant_compare(o->graph->sym, value, etch_int(o->graph->sym, 0)) < 0) {
        report_fraction(o, value, what, kernel, name);
        return 0;
    }
    if (etch_to_i64(value, &number))
        return (uint64_t)number;
    if (o->status == ETCH_ELIMIT)
        return 0; /* the first one says enough */
    etch_diag *diag = etch_error(o->placed->diags, ETCH_E_NODE_TOO_LARGE, span_of(kernel),
                                 "'%s' has %s %s on each rank: more than the 9223372036854775807 of a node",
                                 name, etch_bound_text(o->bound, value), what);
    etch_help(diag, "more microbatches or a larger mesh make nodes smaller");
    o->status = ETCH_ELIMIT;
    return 0;
}

/* ---- bodies -------------------------------------------------------------------------------------------- */

void etch_too_many_nodes(etch_outliner *o, etch_span span, const char *what)
{
    if (o->status != ETCH_OK)
        return;
    etch_error(o->placed->diags, ETCH_E_TOO_MANY_NODES, span,
               "%s: a program holds fewer than %" PRIu32 " nodes", what, ETCH_MOST_NODES);
    o->status = ETCH_ELIMIT;
}

uint8_t etch_collective_of(etch_move move)
{
    switch (move) {
    case ETCH_ALL_REDUCE:
        return ETCH_COMM_ALL_REDUCE;
    case ETCH_ALL_GATHER:
        return ETCH_COMM_ALL_GATHER;
    case ETCH_ALL_TO_ALL:
        return ETCH_COMM_ALL_TO_ALL;
    case ETCH_REDUCE_SCATTER:
        return ETCH_COMM_REDUCE_SCATTER;
    case ETCH_NO_MOVE:
    case ETCH_SLICE:
    case ETCH_SEND:
    case ETCH_MOVE_COUNT:
        break;
    }
    return 0;
}

/* The task of a kernel and the cell of its body that keeps its node; none for a collective that moves
 * nothing. */
static void add_task(etch_outliner *o, etch_body *body, const etch_kernel *kernel)
{
    const etch_step *anchor = kernel->anchor;
    bool moves = anchor->move != ETCH_NO_MOVE;
    uint32_t axes = moves ? anchor->axes & o->extent->wide : 0;
    if (moves && axes == 0)
        return;
    etch_task *task = ETCH_NEW(o->arena, etch_task);
    task->kernel = kernel;
    task->type = moves ? ETCH_NODE_COLL : ETCH_NODE_COMP;
    task->collective = etch_collective_of(anchor->move);
    task->op_type = moves ? etch_move_name(anchor->move) : etch_row_name(anchor->row);
    task->group = (etch_group_set){.axes = axes};
    task->slot = body->slots++;
    task->gathers = anchor->copies != NULL;
    task->once = anchor->once;
    o->outline->gathers_weights = o->outline->gathers_weights || task->gathers;
    for (uint32_t i = 0; i < kernel->steps.count; i++)
        o->made_by[kernel->steps.at[i]->id] = (etch_cell){body, task->slot};
    etch_part part = {.task = task};
    if (!body->parent)
        part.units = etch_units_at(o, anchor->home);
    ETCH_PUSH(o->arena, &body->parts, part);
}

static etch_body *add_body(etch_outliner *o, const etch_placed_region *region, etch_body *parent,
                           const etch_repeat *repeat);

/* The bodies of a loop, and where they keep what they are handed. */
static void add_bodies(etch_outliner *o, etch_repeat *repeat, etch_body *parent)
{
    repeat->body_count = repeat->loop->bodies.count;
    repeat->bodies = ETCH_NEW_ARRAY(o->arena, repeat->body_count, etch_body *);
    for (uint32_t k = 0; k < repeat->body_count; k++) {
        const etch_placed_region *region = repeat->loop->bodies.at[k];
        etch_body *body = repeat->bodies[k] = add_body(o, region, parent, repeat);
        body->taken = ETCH_NEW_ARRAY(o->arena, repeat->handed_count, etch_taken);
        for (uint32_t i = 0; i < repeat->handed_count; i++) {
            body->taken[i].in = body->slots++;
            o->handed[region->carries.at[i].in->id] = (etch_cell){body, body->taken[i].in};
        }
    }
}

static void add_repeat(etch_outliner *o, etch_body *body, const etch_placed_loop *loop)
{
    etch_repeat *repeat = ETCH_NEW(o->arena, etch_repeat);
    repeat->loop = loop;
    repeat->reverse = loop->loop->forward != NULL;
    repeat->name = etch_loop_label(o->arena, loop->loop, &repeat->name_length);
    etch_lower_require(o->arena, etch_to_u64(etch_bound_value(o->bound, loop->loop->count), &repeat->count));
    repeat->classes = etch_classes_make(o, loop->loop);
    repeat->handed_count = etch_loop_carries(loop)->count;
    repeat->handed = ETCH_NEW_ARRAY(o->arena, repeat->handed_count, etch_handed);
    repeat->handing = ETCH_NEW_ARRAY(o->arena, repeat->handed_count, uint32_t);
    add_bodies(o, repeat, body);
    for (uint32_t i = 0; i < repeat->handed_count; i++) {
        const etch_value *result = etch_loop_carries(loop)->at[i].result;
        repeat->handed[i].result = body->slots++;
        if (result)
            o->handed[result->id] = (etch_cell){body, repeat->handed[i].result};
    }
    etch_part part = {.repeat = repeat};
    if (!body->parent) {
        part.units = etch_units_at(o, loop->home);
        part.staged = etch_is_cut(o) && etch_home_is_loop(o->placed->stages, loop->home);
    }
    ETCH_PUSH(o->arena, &body->parts, part);
}

/* Kernels and loops of a region in issue order. */
static void add_parts(etch_outliner *o, etch_body *body, const etch_placed_region *region)
{
    uint32_t next = 0;
    for (uint32_t item = 0; item < region->items.count; item++) {
        const etch_placed_loop *loop = region->items.at[item].loop;
        if (!loop)
            continue;
        for (; next < region->kernels.count && region->kernels.at[next]->item < item; next++)
            add_task(o, body, region->kernels.at[next]);
        add_repeat(o, body, loop);
    }
    for (; next < region->kernels.count; next++)
        add_task(o, body, region->kernels.at[next]);
}

/* Goes as deep as loops are nested, and no deeper than ETCH_LOOP_DEPTH. */
static etch_body *add_body(etch_outliner *o, const etch_placed_region *region, etch_body *parent,
                           const etch_repeat *repeat)
{
    etch_body *body = ETCH_NEW(o->arena, etch_body);
    body->parent = parent;
    body->repeat = repeat;
    body->class = repeat ? region->of->index : 0;
    body->depth = parent ? parent->depth + 1 : 0;
    etch_total runs = parent ? (etch_total)parent->runs * repeat->count : 1;
    if (repeat && etch_class_members(repeat->classes, body->class, (etch_window){0, repeat->count}) == 0)
        runs = 0;
    if (runs > ETCH_MOST_NODES) {
        etch_too_many_nodes(o, repeat->loop->loop->span, "the loops run too often");
        runs = 0;
    }
    body->runs = (uint64_t)runs;
    if (body->depth <= ETCH_LOOP_DEPTH) {
        add_parts(o, body, region);
        return body;
    }
    if (o->status == ETCH_OK)
        etch_error(o->placed->diags, ETCH_E_LOOPS_TOO_DEEP, repeat->loop->loop->span,
                   "more than %d loops are nested", (int)ETCH_LOOP_DEPTH);
    o->status = ETCH_ELIMIT;
    return body;
}

/* ---- what tasks read ----------------------------------------------------------------------------------- */

/* The cell of what makes `value`, as a task in `reader` finds it: behind views, and collectives that move
 * nothing. */
etch_cell etch_cell_of(etch_outliner *o, const etch_value *value, const etch_body *reader)
{
    etch_cell cell = {NULL, 0};
    while (value) {
        cell = value->step ? o->made_by[value->step->id] : o->handed[value->id];
        if (cell.body || !value->step || value->step->in_count == 0 || value->step->copies)
            break;
        etch_lower_require(o->arena, value->step->in_count == 1);
        value = value->step->ins[0];
    }
    /* The reader runs inside the same loops, or inside those that undo or repeat them. */
    const etch_body *home = cell.body;
    if (!home)
        return cell;
    etch_lower_require(o->arena, home->depth <= reader->depth);
    while (reader->depth > home->depth)
        reader = reader->parent;
    for (; home != reader; home = home->parent, reader = reader->parent)
        etch_lower_require(o->arena, !home->repeat || (home->repeat->count == reader->repeat->count &&
                                                       home->class == reader->class));
    return cell;
}

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

static bool is_cell_in(const etch_cell *cells, uint32_t count, etch_cell cell)
{
    for (uint32_t i = 0; i < count; i++)
        if (cells[i].body == cell.body && cells[i].slot == cell.slot)
            return true;
    return false;
}

static void link_task(etch_outliner *o, etch_task *task, const etch_body *body)
{
    const etch_kernel *kernel = task->kernel;
    uint32_t operands = 0;
    for (uint32_t i = 0; i < kernel->steps.count; i++)
        operands += kernel->steps.at[i]->in_count;
    task->reads = ETCH_NEW_ARRAY(o->arena, operands, etch_cell);
    for (uint32_t i = 0; i < kernel->steps.count; i++) {
        const etch_step *step = kernel->steps.at[i];
        for (uint32_t k = 0; k < step->in_count; k++) {
            etch_cell cell = etch_cell_of(o, step->ins[k], body);
            bool own = cell.body == body && cell.slot == task->slot;
            if (cell.body && !own && !is_cell_in(task->reads, task->read_count, cell))
                task->reads[task->read_count++] = cell;
        }
        for (uint32_t k = 0; k < step->out_count; k++)
            if (step->accumulate_into[k])
                add_gradient(o, task, step->accumulate_into[k], body);
    }
}

static void size_task(etch_outliner *o, etch_task *task)
{
    const etch_kernel *kernel = task->kernel;
    if (task->type == ETCH_NODE_COMP)
        task->flop = etch_task_number(o, kernel->flop, "FLOP", kernel, task->name);
    task->bytes = etch_task_number(o, kernel->bytes, "bytes", kernel, task->name);
}

static etch_task *task_at(const etch_body *body, uint32_t slot)
{
    for (uint32_t i = 0; i < body->parts.count; i++) {
        etch_task *task = body->parts.at[i].task;
        if (task && task->slot == slot)
            return task;
    }
    return NULL;
}

/* A view, or a collective that moves nothing, may be what adds into a gradient: then the maker of its
 * operand does. */
static void link_views(etch_outliner *o, etch_body *body, const etch_placed_region *region)
{
    for (uint32_t i = 0; i < region->items.count; i++) {
        const etch_step *step = region->items.at[i].step;
        if (!step || o->made_by[step->id].body)
            continue;
        for (uint32_t k = 0; k < step->out_count; k++) {
            if (!step->accumulate_into[k])
                continue;
            etch_cell cell = etch_cell_of(o, step->ins[0], body);
            etch_task *task = cell.body == body ? task_at(body, cell.slot) : NULL;
            etch_lower_require(o->arena, task != NULL);
            add_gradient(o, task, step->accumulate_into[k], body);
        }
    }
}

static void link_body(etch_outliner *o, etch_body *body, const etch_placed_region *region);

static void link_class(etch_outliner *o, etch_body *body, const etch_placed_region *region)
{
    for (uint32_t k = 0; k < region->carries.count; k++)
        body->taken[k].out = etch_cell_of(o, region->carries.at[k].out, body);
    link_body(o, body, region);
}

static void link_body(etch_outliner *o, etch_body *body, const etch_placed_region *region)
{
    for (uint32_t i = 0; i < body->parts.count; i++) {
        etch_task *task = body->parts.at[i].task;
        etch_repeat *repeat = body->parts.at[i].repeat;
        if (task) {
            link_task(o, task, body);
            if (body->runs > 0)
                size_task(o, task);
            continue;
        }
        for (uint32_t k = 0; k < repeat->handed_count; k++)
            repeat->handed[k].init = etch_cell_of(o, etch_loop_carries(repeat->loop)->at[k].init, body);
        for (uint32_t b = 0; b < repeat->body_count; b++)
            link_class(o, repeat->bodies[b], repeat->loop->bodies.at[b]);
    }
    link_views(o, body, region);
}

/* ---- the whole ----------------------------------------------------------------------------------------- */

etch_status etch_outline_make(etch_arena *scratch, const etch_placed *placed, etch_bound *bound,
                              const etch_extent *extent, etch_outline *outline)
{
    const etch_graph *graph = placed->training->graph;
    etch_outliner o = {
        .arena = scratch,
        .placed = placed,
        .graph = graph,
        .bound = bound,
        .extent = extent,
        .outline = outline,
        .made_by = ETCH_NEW_ARRAY(scratch, placed->step_count, etch_cell),
        .handed = ETCH_NEW_ARRAY(scratch, placed->value_count, etch_cell),
        .gradient_index = ETCH_NEW_ARRAY(scratch, graph->tensors.count, uint32_t),
    };
    outline->micro = extent->micro;
    outline->ahead = placed->plan->zero.ahead;
    etch_chain_make(&o);
    if (o.status != ETCH_OK)
        return o.status;
    outline->forward = add_body(&o, placed->forward, NULL, NULL);
    if (placed->backward)
        outline->backward = add_body(&o, placed->backward, NULL, NULL);
    if (o.status != ETCH_OK)
        return o.status;
    etch_name_tasks(scratch, placed, outline);
    etch_end_gradients(&o);
    link_body(&o, outline->forward, placed->forward);
    if (outline->backward)
        link_body(&o, outline->backward, placed->backward);
    etch_chain_messages(&o);
    etch_end_tasks(&o);
    etch_outline_tally(&o);
    etch_outline_cells(&o);
    outline->sizes = ETCH_NEW_ARRAY(scratch, outline->chain.stage_count, etch_size);
    for (uint32_t stage = 0; stage < outline->chain.stage_count && o.status == ETCH_OK; stage++)
        outline->sizes[stage] = etch_outline_count(&o, stage);
    return o.status;
}
