/* What kernels are for their time: the products in them. */
#include "graph/step/step_int.h"

#include "graph/ir/row.h"

/* A weight, a gathered or recomputed copy of it, or its gradient. */
static bool is_of_weight(etch_tensor *tensor)
{
    return etch_named_root(tensor)->kind == ETCH_WEIGHT || etch_origin(tensor)->kind == ETCH_WEIGHT;
}

/* Has a weight, or its gradient, a dim that both other tensors of the product have? */
static bool is_grouped(const etch_op *op)
{
    etch_tensor *const all[3] = {op->ins[0], op->ins[1], op->outs[0]};
    for (int i = 0; i < 3; i++) {
        const etch_tensor *a = all[(i + 1) % 3], *b = all[(i + 2) % 3];
        for (uint32_t d = 0; is_of_weight(all[i]) && d < all[i]->rank; d++)
            if (etch_has_dim(a, all[i]->dims[d]) && etch_has_dim(b, all[i]->dims[d]))
                return true;
    }
    return false;
}

static etch_product_kind kind_of(const etch_op *op)
{
    if (op->row->divide) /* pairs of queries and keys */
        return ETCH_PRODUCT_ATTENTION;
    return op->in_count > 1 && is_grouped(op) ? ETCH_PRODUCT_GROUPED : ETCH_PRODUCT_PLAIN;
}

static etch_expr keys_of(const etch_placed *placed, const etch_op *op)
{
    etch_sym *sym = placed->training->graph->sym;
    const etch_dim_view over = etch_first_op(op)->attrs.over;
    etch_expr keys = etch_int(sym, 1);
    for (uint32_t i = 0; i < over.count; i++)
        keys = etch_mul(sym, keys, etch_placed_size(placed, over.at[i]));
    return keys;
}

static void multiply(const etch_placed *placed, const etch_step *step, const etch_dim *dim, etch_expr *into)
{
    *into = etch_mul(placed->training->graph->sym, *into, etch_step_dim_size(placed, step, dim));
}

/* The sides of a product of two operands. */
static void set_sides(const etch_placed *placed, const etch_step *step, etch_kernel_product *out)
{
    const etch_tensor *a = step->op->ins[0], *b = step->op->ins[1], *y = step->op->outs[0];
    out->m = out->n = out->k = out->batch = etch_int(placed->training->graph->sym, 1);
    for (uint32_t i = 0; i < a->rank; i++) {
        const bool other = etch_has_dim(b, a->dims[i]), kept = etch_has_dim(y, a->dims[i]);
        multiply(placed, step, a->dims[i], other ? (kept ? &out->batch : &out->k) : &out->m);
    }
    for (uint32_t i = 0; i < b->rank; i++)
        if (!etch_has_dim(a, b->dims[i]))
            multiply(placed, step, b->dims[i], &out->n);
}

etch_kernel_product etch_kernel_product_of(const etch_placed *placed, const etch_kernel *kernel)
{
    etch_kernel_product product = {.kind = ETCH_PRODUCT_NONE};
    for (uint32_t i = 0; i < kernel->steps.count; i++) {
        const etch_step *step = kernel->steps.at[i];
        const etch_op *op = step->op;
        if (!op || !etch_op_is_matmul(op))
            continue;
        product.flop =
            product.flop ? etch_add(placed->training->graph->sym, product.flop, step->flop) : step->flop;
        if (product.kind != ETCH_PRODUCT_NONE)
            continue;
        const etch_dtype first = op->ins[0]->dtype;
        product.kind = kind_of(op);
        product.backward = op->row != etch_first_op(op)->row;
        product.dtype = op->in_count > 1 ? etch_dtype_promoted(first, op->ins[1]->dtype) : first;
        if (product.kind == ETCH_PRODUCT_ATTENTION)
            product.keys = keys_of(placed, op);
        else if (op->row->role == ETCH_ROLE_PRODUCT && op->in_count == 2)
            set_sides(placed, step, &product);
    }
    return product;
}
