/* In which dtype collectives send what they move: that of the tensor, unless `dtype` lines say another one for
 * weights, for gradients, or for what is on its way to experts and back. */
#include "graph/kernel_int.h"

/* The value before moves, renames and identities. */
static const etch_value *source_of(const etch_value *value)
{
    while (value->step && (!value->step->op || etch_op_is_view(value->step->op)))
        value = value->step->ins[0];
    return value;
}

/* ---- routes -------------------------------------------------------------------------------------------- */

/* The gradient of what takes tokens out of slots puts their cotangents in. */
static bool has_route(const etch_op *op, etch_shape shape, etch_shape opposite)
{
    if (!op)
        return false;
    return op->row->shape == shape ||
           (op->row->shape == SHAPE_TARGETS && op->forward && op->forward->row->shape == opposite);
}

static bool fills_slots(const etch_op *op)
{
    return has_route(op, SHAPE_ROUTED, SHAPE_RETURNED);
}

static bool empties_slots(const etch_op *op)
{
    return has_route(op, SHAPE_RETURNED, SHAPE_ROUTED);
}

/* What takes tokens out of slots reads what has come back from experts. */
static void mark_return(const etch_step *step, const etch_dtypes *dtypes)
{
    const etch_value *value = step->ins[0];
    for (; value->step && (!value->step->op || etch_op_is_view(value->step->op)); value = value->step->ins[0])
        if (!value->step->op)
            value->step->travels = etch_dtype_or(dtypes->combine, value->tensor->dtype);
}

/* ---- steps --------------------------------------------------------------------------------------------- */

static etch_dtype usual_dtype(const etch_step *move, const etch_dtypes *dtypes)
{
    const etch_tensor *tensor = move->ins[0]->tensor;
    const etch_value *source = source_of(move->ins[0]);
    if (source->tensor->kind == ETCH_WEIGHT)
        return etch_dtype_or(dtypes->weights_comm, tensor->dtype);
    if (source->tensor->kind == ETCH_GRADIENT || source->tensor->adds_to)
        return etch_dtype_or(dtypes->grads_comm, tensor->dtype);
    if (source->step && fills_slots(source->step->op))
        return etch_dtype_or(dtypes->dispatch, tensor->dtype);
    return tensor->dtype;
}

static void travel_in(const etch_dtypes *dtypes, const etch_placed_region *region)
{
    for (uint32_t i = 0; i < region->items.count; i++) {
        etch_step *step = region->items.at[i].step;
        const etch_placed_loop *loop = region->items.at[i].loop;
        for (uint32_t k = 0; loop && k < loop->bodies.count; k++)
            travel_in(dtypes, loop->bodies.at[k]);
        if (!step)
            continue;
        if (!step->op && step->in_count > 0)
            step->travels = usual_dtype(step, dtypes);
        else if (empties_slots(step->op))
            mark_return(step, dtypes);
    }
}

void etch_travel(etch_placed *placed)
{
    const etch_dtypes *dtypes = &placed->training->graph->dtypes;
    travel_in(dtypes, placed->forward);
    if (placed->backward)
        travel_in(dtypes, placed->backward);
}

etch_expr etch_payload(const etch_placed *placed, const etch_step *move)
{
    etch_sym *sym = placed->training->graph->sym;
    etch_expr elements = etch_int(sym, 0);
    for (uint32_t i = 0; i < move->in_count; i++)
        elements = etch_add(sym, elements, etch_value_elements(placed, move->ins[i]));
    return etch_mul(sym, elements, etch_int(sym, etch_dtype_bytes(move->travels)));
}
