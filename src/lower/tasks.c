/* Functions that the passes over an outline share: numbers of tasks, the registers that keep nodes,
 * limits. */
#include "lower/lower_int.h"

#include <inttypes.h>

/* Names the first dim of `value` that the mesh does not divide evenly. */
static void note_uneven_dim(etch_outliner *o, etch_diag *diag, const etch_value *value)
{
    etch_sym *sym = o->bound->sym;
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

/* The operands of a step, then its results; NULL past the last. */
static const etch_value *value_at(const etch_step *step, uint32_t i)
{
    return i < step->in_count                     ? step->ins[i]
           : i - step->in_count < step->out_count ? step->outs[i - step->in_count]
                                                  : NULL;
}

/* Sizes on average may be fractions: the kernel's numbers are rounded up. */
static bool is_average(const etch_kernel *kernel)
{
    bool average = false;
    const etch_value *value;
    for (uint32_t i = 0; i < kernel->steps.count; i++)
        for (uint32_t k = 0; (value = value_at(kernel->steps.at[i], k)) != NULL; k++)
            for (uint32_t d = 0; d < value->tensor->rank; d++)
                average = average || value->tensor->dims[d]->average_sized;
    return average;
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
    const etch_value *of;
    for (uint32_t i = 0; kernel && i < kernel->steps.count; i++)
        for (uint32_t k = 0; (of = value_at(kernel->steps.at[i], k)) != NULL; k++)
            note_uneven_dim(o, diag, of);
    if (o->status == ETCH_OK)
        o->status = ETCH_EINPUT;
}

uint64_t etch_task_number(etch_outliner *o, etch_expr expr, const char *what, const etch_kernel *kernel,
                          const char *name)
{
    etch_expr value = etch_bound_value(o->bound, expr);
    if (value && !etch_is_integer_constant(value) && kernel && is_average(kernel))
        value = etch_ceil(o->bound->sym, value);
    int64_t number;
    if (!value || !etch_is_integer_constant(value) ||
        etch_constant_compare(o->bound->sym, value, etch_int(o->bound->sym, 0)) < 0) {
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

/* As traces call them. */
static const etch_collective by_code[ETCH_COMM_KINDS] = {
    [ETCH_COMM_ALL_REDUCE] = ETCH_ALL_REDUCE,
    [ETCH_COMM_ALL_GATHER] = ETCH_ALL_GATHER,
    [ETCH_COMM_ALL_TO_ALL] = ETCH_ALL_TO_ALL,
    [ETCH_COMM_REDUCE_SCATTER] = ETCH_REDUCE_SCATTER,
};

etch_collective etch_collective_of_code(uint8_t code)
{
    return code < ETCH_COMM_KINDS ? by_code[code] : ETCH_NO_COLLECTIVE;
}

static uint8_t code_of(etch_collective collective)
{
    uint8_t code = ETCH_COMM_KINDS - 1;
    while (code > 0 && etch_collective_of_code(code) != collective)
        code--;
    return code;
}

void etch_task_begin(const etch_outliner *o, etch_task *task, const etch_step_task *of, const etch_row *row)
{
    static const uint8_t types[] = {[ETCH_TASK_COMPUTE] = ETCH_NODE_COMP,
                                    [ETCH_TASK_COLLECTIVE] = ETCH_NODE_COLL,
                                    [ETCH_TASK_MESSAGE] = ETCH_NODE_SEND,
                                    [ETCH_TASK_LOAD] = ETCH_NODE_LOAD,
                                    [ETCH_TASK_STORE] = ETCH_NODE_STORE};
    task->type = types[of->kind];
    task->phase = of->phase;
    task->op_type = task->type == ETCH_NODE_LOAD    ? "load"
                    : task->type == ETCH_NODE_STORE ? "store"
                                                    : etch_row_name(row);
    task->collective = task->type == ETCH_NODE_COLL ? code_of(of->collective) : 0;
    task->group.axes = of->axes & o->extent->larger_axes;
}

void etch_task_size(etch_outliner *o, etch_task *task, const etch_step_task *of)
{
    if (task->type == ETCH_NODE_COMP)
        task->flop = etch_task_number(o, of->flop, "FLOP", of->kernel, task->name.text);
    else if (task->type == ETCH_NODE_COLL)
        ETCH_PUSH(o->arena, &o->outline->collectives, task);
    task->bytes = etch_task_number(o, of->bytes, "bytes", of->kernel, task->name.text);
    if (o->outline->form)
        task->number = etch_form_task(o, task->type, task->collective, of->kernel && is_average(of->kernel),
                                      task->type == ETCH_NODE_COMP ? of->flop : NULL, of->bytes);
}

uint64_t etch_bound_number(etch_outliner *o, etch_expr expr)
{
    uint64_t number = 0;
    etch_lower_require(o->arena, etch_to_u64(etch_bound_value(o->bound, expr), &number));
    if (o->outline->form)
        etch_form_guard(o, expr, number);
    return number;
}

void etch_too_many_nodes(etch_outliner *o, etch_span span, const char *what)
{
    if (o->status != ETCH_OK)
        return;
    etch_error(o->placed->diags, ETCH_E_TOO_MANY_NODES, span,
               "%s: the program of a rank holds at most %d nodes", what, (int)ETCH_MOST_RANK_NODES);
    o->status = ETCH_ELIMIT;
}

/* The register of what makes `value`, as a task in `reader` finds it: under views, and collectives that move
 * nothing. */
etch_register etch_register_of(etch_outliner *o, const etch_value *value, const etch_body *reader)
{
    etch_register reg = {NULL, 0};
    while (value) {
        reg = value->step ? o->made_by[value->step->id] : o->carried[value->id];
        if (reg.body || !value->step || value->step->in_count == 0 || value->step->copies)
            break;
        etch_lower_require(o->arena, value->step->in_count == 1);
        value = value->step->ins[0];
    }
    /* The reader runs inside the same loops, or inside those that undo or repeat them. */
    const etch_body *owner = reg.body;
    if (!owner)
        return reg;
    etch_lower_require(o->arena, owner->depth <= reader->depth);
    while (reader->depth > owner->depth)
        reader = reader->parent;
    for (; owner != reader; owner = owner->parent, reader = reader->parent)
        etch_lower_require(o->arena, !owner->repeat || (owner->repeat->count == reader->repeat->count &&
                                                        owner->class == reader->class));
    return reg;
}
