/* Questions about one op that its row answers: factors, roles, dims. */
#include "graph/ir/ir_int.h"

/* ---- questions about one op ------------------------------------------------------------------------- */

const etch_tensor *etch_origin(const etch_tensor *tensor)
{
    while (tensor->of)
        tensor = tensor->of;
    return tensor;
}

const etch_op *etch_first_op(const etch_op *op)
{
    while (op->forward)
        op = op->forward;
    return op;
}

etch_factor etch_op_factor(const etch_op *op, const etch_dim *dim)
{
    if (etch_dim_among(op->attrs.over, dim))
        return op->row->over;
    if (etch_dim_among(op->attrs.dot, dim))
        return op->row->dot;
    if (etch_dim_among(op->attrs.state, dim))
        return op->row->state;
    return ETCH_FACTOR_PASS;
}

bool etch_op_has_dim(const etch_op *op, const etch_dim *dim)
{
    bool has = false;
    for (uint32_t i = 0; i < op->in_count && !has; i++)
        has = etch_has_dim(op->ins[i], dim);
    for (uint32_t i = 0; i < op->out_count && !has; i++)
        has = etch_has_dim(op->outs[i], dim);
    return has;
}

uint32_t etch_op_index(const etch_op *op, uint32_t slot)
{
    uint32_t index = slot;
    if (op->attrs.absent & (1u << slot))
        return UINT32_MAX;
    for (uint32_t i = 0; i < slot; i++)
        index -= (op->attrs.absent >> i) & 1u;
    return index < op->in_count ? index : UINT32_MAX;
}

bool etch_op_sums(const etch_op *op)
{
    for (uint32_t i = 0; i < op->in_count; i++)
        if (!etch_covers(op->outs[0], op->ins[i]))
            return true;
    return false;
}

etch_role etch_op_role(const etch_op *op)
{
    if (op->row->role != ETCH_ROLE_PRODUCT)
        return op->row->role;
    return op->in_count > 1 && etch_op_sums(op) ? ETCH_ROLE_KERNEL : ETCH_ROLE_POINTWISE;
}

bool etch_op_reads_result(const etch_op *op, uint32_t at)
{
    return op->forward && etch_origin(op->ins[at]) == etch_origin(op->forward->outs[0]);
}

bool etch_op_is_view(const etch_op *op)
{
    return op->row->view;
}

bool etch_op_is_elementwise(const etch_op *op)
{
    return etch_op_role(op) == ETCH_ROLE_POINTWISE || etch_op_is_view(op);
}

static const etch_dim *mapped(etch_dim_view from, etch_dim_view to, const etch_dim *dim)
{
    for (uint32_t i = 0; dim && i < from.count; i++)
        if (from.at[i] == dim)
            return to.at[i];
    return dim;
}

const etch_dim *etch_op_dim_after(const etch_op *op, const etch_dim *dim)
{
    return mapped(op->attrs.from, op->attrs.to, dim);
}

const etch_dim *etch_op_dim_before(const etch_op *op, const etch_dim *dim)
{
    return mapped(op->attrs.to, op->attrs.from, dim);
}

const etch_dim *etch_op_dim_linked(const etch_op *op, const etch_dim *dim)
{
    return op->row->links ? etch_op_dim_after(op, dim) : dim;
}

bool etch_op_is_matmul(const etch_op *op)
{
    if (!op->row->matmul)
        return false;
    if (op->row->role != ETCH_ROLE_PRODUCT)
        return true;
    if (op->in_count != 2)
        return false;
    const etch_tensor *a = op->ins[0], *b = op->ins[1], *y = op->outs[0];
    bool m = false, n = false, k = false;
    for (uint32_t i = 0; i < a->rank; i++) {
        bool other = etch_has_dim(b, a->dims[i]), kept = etch_has_dim(y, a->dims[i]);
        m = m || (!other && kept);
        k = k || (other && !kept);
    }
    for (uint32_t i = 0; i < b->rank; i++)
        n = n || (!etch_has_dim(a, b->dims[i]) && etch_has_dim(y, b->dims[i]));
    return m && n && k;
}

etch_division etch_op_division(const etch_op *op)
{
    return op->row->divide ? op->row->divide(op) : (etch_division){0};
}

bool etch_op_is_even(const etch_op *op, const etch_dim *dim)
{
    const etch_division division = etch_op_division(op);
    return !division.uneven || division.queries != dim;
}

const etch_dim *etch_op_counted_queries(const etch_op *op)
{
    const etch_division division = etch_op_division(op);
    return division.counted ? division.queries : NULL;
}

etch_tensor *etch_named_root(etch_tensor *tensor)
{
    while (tensor->producer && tensor->producer->row->use == ETCH_USE_COPY)
        tensor = tensor->producer->ins[0];
    return tensor;
}

const etch_tensor *etch_route_root(const etch_tensor *indices)
{
    while (indices->producer && etch_op_is_view(indices->producer))
        indices = indices->producer->ins[0];
    return indices;
}

void etch_part_dims(const etch_op *op, const etch_tensor *x, uint32_t part, etch_graph *graph,
                    etch_dim_list *out)
{
    for (uint32_t i = 0; i < x->rank; i++) {
        etch_dim *dim = x->dims[i] == op->attrs.to.at[part] ? op->attrs.from.at[part] : x->dims[i];
        if (dim)
            ETCH_PUSH(graph->arena, out, dim);
    }
}
