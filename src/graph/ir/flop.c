/* FLOP of one op: as its row says, under a convention of counting. */
#include "graph/ir/families/family.h"

etch_expr etch_dims_size(etch_sym *sym, etch_dim_view dims, etch_size_fn size, const void *data)
{
    etch_expr product = etch_int(sym, 1);
    for (uint32_t i = 0; i < dims.count; i++)
        product = etch_mul(sym, product, size ? size(data, dims.at[i]) : dims.at[i]->size);
    return product;
}

etch_expr etch_elements(etch_sym *sym, const etch_tensor *tensor, etch_size_fn size, const void *data)
{
    return etch_dims_size(sym, (etch_dim_view){tensor->dims, tensor->rank}, size, data);
}

/* ---- for functions of rows -------------------------------------------------------------------------- */

etch_expr etch_flop_size(const etch_flop_call *call, const etch_dim *dim)
{
    return call->size(call->data, dim);
}

etch_expr etch_flop_product(const etch_flop_call *call, etch_dim_view dims)
{
    return etch_dims_size(call->sym, dims, call->size, call->data);
}

etch_expr etch_flop_beside(const etch_flop_call *call, const etch_tensor *t, const etch_tensor *other,
                           etch_dim_view a, etch_dim_view b)
{
    etch_expr product = etch_int(call->sym, 1);
    for (uint32_t i = 0; i < t->rank; i++) {
        const etch_dim *dim = t->dims[i];
        if (!(other && etch_has_dim(other, dim)) && !etch_dim_among(a, dim) && !etch_dim_among(b, dim))
            product = etch_mul(call->sym, product, etch_flop_size(call, dim));
    }
    return product;
}

etch_expr etch_flop_elements(const etch_flop_call *call, const etch_tensor *tensor)
{
    return etch_elements(call->sym, tensor, call->size, call->data);
}

etch_expr etch_flop_times(const etch_flop_call *call, uint32_t constant, etch_expr count)
{
    return etch_mul(call->sym, etch_int(call->sym, constant), count);
}

etch_expr etch_flop_each(const etch_flop_call *call, etch_expr count)
{
    return etch_flop_times(call, call->op->row->flop.constants[0], count);
}

etch_expr etch_flop_dims(const etch_flop_call *call)
{
    const etch_op *op = call->op;
    etch_expr count = etch_flop_elements(call, op->outs[0]);
    for (uint32_t i = 0; i < op->in_count; i++)
        for (uint32_t d = 0; d < op->ins[i]->rank; d++) {
            etch_dim *dim = op->ins[i]->dims[d];
            bool counted = etch_has_dim(op->outs[0], dim);
            for (uint32_t j = 0; j < i && !counted; j++)
                counted = etch_has_dim(op->ins[j], dim);
            if (!counted)
                count = etch_mul(call->sym, count, etch_flop_size(call, dim));
        }
    return count;
}

/* ---- what rows of several families say -------------------------------------------------------------- */

static etch_expr result_flop(const etch_flop_call *call)
{
    return etch_flop_each(call, etch_flop_elements(call, call->op->outs[0]));
}

static etch_expr operand_flop(const etch_flop_call *call)
{
    return etch_flop_each(call, etch_flop_elements(call, call->op->ins[0]));
}

static etch_expr addition_flop(const etch_flop_call *call)
{
    const etch_op *op = call->op;
    const etch_expr elements = etch_flop_elements(call, op->outs[0]);
    if (op->runs)
        return etch_flop_times(call, op->row->flop.constants[0], etch_mul(call->sym, op->runs, elements));
    return etch_flop_times(call, op->row->flop.constants[0] * (op->in_count - 1), elements);
}

const etch_flop etch_flop_per_result = {result_flop, "# FLOP per element of the result"};
const etch_flop etch_flop_per_addition = {addition_flop, "# FLOP per element and addition"};
const etch_flop etch_flop_per_operand = {operand_flop, "# FLOP per element of the operand"};

/* ---- one op ----------------------------------------------------------------------------------------- */

/* Sizes under a rule. */
typedef struct narrowed {
    etch_sym *sym;
    const bool *single;
    etch_size_fn size;
    const void *data;
} narrowed;

static etch_expr narrowed_size(const void *data, const etch_dim *dim)
{
    const narrowed *n = data;
    return n->single[dim->id] ? etch_int(n->sym, 1) : n->size(n->data, dim);
}

/* What runs if it runs. */
static etch_expr flop_of(const etch_flop_call *call)
{
    const etch_op *op = call->op;
    if (call->rule->product)
        return etch_flop_times(call, 2, etch_flop_dims(call));
    if (call->rule->element)
        return etch_flop_times(call, call->rule->element, etch_flop_elements(call, op->ins[0]));
    etch_expr flop = op->row->flop.by ? op->row->flop.by->count(call) : etch_int(call->sym, 0);
    return call->rule->half ? etch_mul(call->sym, flop, etch_ratio(call->sym, 1, 2)) : flop;
}

etch_expr etch_op_flop_by(etch_sym *sym, const etch_op *op, const etch_flop_rule *rule, etch_size_fn size,
                          const void *data)
{
    const narrowed n = {sym, rule->single, size, data};
    const etch_flop_call call = {sym, op, rule, rule->single ? narrowed_size : size,
                                 rule->single ? &n : data};
    const etch_expr flop = flop_of(&call);
    return op->runs && op->row->use != ETCH_USE_TOTAL ? etch_mul(sym, flop, op->runs) : flop;
}

etch_expr etch_op_flop(etch_sym *sym, const etch_op *op, etch_size_fn size, const void *data)
{
    const etch_flop_rule as_executed = {0};
    return etch_op_flop_by(sym, op, &as_executed, size, data);
}
