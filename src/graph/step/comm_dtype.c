/* In which dtype collectives send what they move: that of the tensor, unless `dtype` lines say another
 * one for weights, for gradients, or for what is on its way to experts and back. */
#include "graph/step/step_int.h"

/* The value before moves, renames and identities. */
static const etch_value *source_of(const etch_value *value)
{
    while (value->step && (!value->step->op || etch_op_is_view(value->step->op)))
        value = etch_value_before(value);
    return value;
}

/* ---- routes -------------------------------------------------------------------------------------------- */

static bool is_routing(const etch_step *step, etch_routing routing)
{
    return step && step->op && step->op->row->routing == routing;
}

static void send_as(etch_step *collective, etch_comm_dtype comm_dtype)
{
    collective->comm_dtype = etch_dtype_or(comm_dtype.dtype, collective->ins[0]->tensor->dtype);
    collective->block = comm_dtype.block;
}

/* An op that takes tokens out of capacity slots reads the results of the experts. */
static void mark_return(const etch_step *step, const etch_dtypes *dtypes)
{
    const etch_value *value = step->ins[0];
    for (; value->step && (!value->step->op || etch_op_is_view(value->step->op));
         value = etch_value_before(value))
        if (!value->step->op)
            send_as(value->step, dtypes->combine);
}

/* ---- steps --------------------------------------------------------------------------------------------- */

static void find_comm_dtype(etch_step *collective, const etch_dtypes *dtypes)
{
    const etch_value *source = source_of(collective->ins[0]);
    etch_comm_dtype comm_dtype = {0, 0};
    if (source->tensor->kind == ETCH_WEIGHT)
        comm_dtype.dtype = dtypes->weights_comm;
    else if (source->tensor->kind == ETCH_GRADIENT || source->tensor->adds_to)
        comm_dtype.dtype = dtypes->grads_comm;
    else if (is_routing(source->step, ETCH_ROUTING_FILLS))
        comm_dtype = dtypes->dispatch;
    send_as(collective, comm_dtype);
}

void etch_comm_dtypes_find(etch_placed *placed)
{
    const etch_dtypes *dtypes = &placed->training->graph->dtypes;
    for (etch_placed_cursor at = {.root = placed->forward, .then = placed->backward};
         etch_placed_cursor_next(&at);) {
        etch_step *step = at.item->step;
        if (step && !step->op && step->in_count > 0)
            find_comm_dtype(step, dtypes);
        else if (is_routing(step, ETCH_ROUTING_EMPTIES))
            mark_return(step, dtypes);
    }
}

/* Weights that are gathered together have each a dtype of its own. */
etch_dtype etch_comm_dtype_of(const etch_placed *placed, const etch_step *collective, uint32_t operand)
{
    return collective->copies ? etch_dtype_or(placed->training->graph->dtypes.weights_comm,
                                              collective->ins[operand]->tensor->dtype)
                              : collective->comm_dtype;
}

etch_expr etch_payload_by(const etch_placed *placed, const etch_step *collective, uint32_t operand,
                          etch_expr elements)
{
    etch_sym *sym = placed->training->graph->sym;
    const uint32_t width = etch_dtype_bytes(etch_comm_dtype_of(placed, collective, operand));
    if (collective->copies)
        elements = etch_mul(sym, elements, collective->copies[operand]);
    if (collective->collective == ETCH_PERMUTE) /* to each of the other ranks a block */
        elements = etch_mul(sym, elements,
                            etch_sub(sym, etch_group_size(placed, collective->axes), etch_int(sym, 1)));
    const etch_expr bytes = etch_mul(sym, elements, etch_int(sym, width));
    if (!collective->block)
        return bytes;
    const etch_expr scales = etch_ceil(sym, etch_div(sym, elements, etch_int(sym, collective->block)));
    return etch_add(sym, bytes, etch_mul(sym, scales, etch_int(sym, etch_dtype_bytes(ETCH_F32))));
}

etch_expr etch_payload_of(const etch_placed *placed, const etch_step *collective, uint32_t operand)
{
    return etch_payload_by(placed, collective, operand,
                           etch_value_elements(placed, collective->ins[operand]));
}

etch_expr etch_payload(const etch_placed *placed, const etch_step *collective)
{
    etch_sym *sym = placed->training->graph->sym;
    etch_expr bytes = etch_int(sym, 0);
    for (uint32_t i = 0; i < collective->in_count; i++)
        bytes = etch_add(sym, bytes, etch_payload_of(placed, collective, i));
    return bytes;
}

etch_expr etch_kernel_payload(const etch_placed *placed, const etch_kernel *kernel)
{
    etch_sym *sym = placed->training->graph->sym;
    etch_expr bytes = etch_int(sym, 0);
    for (uint32_t i = 0; i < kernel->steps.count; i++)
        bytes = etch_add(sym, bytes, etch_payload(placed, kernel->steps.at[i]));
    return bytes;
}
