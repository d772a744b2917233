/* Products and sums, most of them written with operators. */
#include "graph/ir/families/family.h"

/* sum, when it is called: all but `over`; the kept dims say it from then on. */
static bool kept(etch_call *call, etch_dim_list *out)
{
    if (!etch_shape_less(call, out))
        return false;
    call->attrs.over.count = 0;
    return true;
}

/* broadcast, when a statement makes it: the declared dims. */
static bool copied(etch_call *call, etch_dim_list *out)
{
    etch_dims_add(call, out, call->want);
    return true;
}

static etch_expr product_flop(const etch_flop_call *call)
{
    return etch_flop_times(call, etch_op_sums(call->op) ? 2 : 1, etch_flop_dims(call));
}

static const etch_flop per_product = {product_flop,
                                      "2 FLOP per combination of dims when one is summed, else 1"};

/* The cotangent times the operand, summed, and then what it is divided by. */
static etch_expr divisor_flop(const etch_flop_call *call)
{
    const uint32_t *constants = call->op->row->flop.constants;
    const uint32_t each = constants[etch_op_reads_result(call->op, 1)];
    return etch_add(call->sym, product_flop(call),
                    etch_flop_times(call, each, etch_flop_elements(call, call->op->outs[0])));
}

static const etch_flop per_divisor = {divisor_flop,
                                      "2 FLOP per combination of dims when one is summed, else 1; and # per "
                                      "element of the result from the dividend, # from the quotient"};

static const etch_row rows[] = {
    ETCH_ROW("einsum", "a b", "a * b: product; dims that the result lacks are summed", .shape = kept,
             .uncalled = true, .role = ETCH_ROLE_PRODUCT, .linear = ETCH_LINEAR_EACH,
             .flop = {.by = &per_product}, .matmul = true,
             .grads = ETCH_GRADS({"einsum", "d0 others", "each"}), .use = ETCH_USE_PRODUCT),
    ETCH_ROW("div", "a b", "a / b, broadcast by name; dims that the result lacks are summed", .shape = kept,
             .uncalled = true, .role = ETCH_ROLE_PRODUCT, .linear = ETCH_LINEAR_FIRST,
             .flop = {.by = &per_product},
             .grads = ETCH_GRADS({"div", "d0 x1", "0"}, {"div_db", "d0 x0|y0 x1", "1"}),
             .use = ETCH_USE_QUOTIENT),
    ETCH_ROW("div_db", "d a b",
             "minus the cotangent times a over b b, or times the quotient over b, whichever is kept",
             .role = ETCH_ROLE_PRODUCT, .linear = ETCH_LINEAR_FIRST,
             .flop = {.by = &per_divisor, .constants = {3, 2}}),
    ETCH_POINTWISE("add", "a b...", "a + b + c: one sum of all its terms, broadcast by name",
                   .shape = etch_shape_union, .uncalled = true, .linear = ETCH_LINEAR_JOINT,
                   .flop = {.by = &etch_flop_per_addition, .constants = {1}},
                   .grads = ETCH_GRADS({"sum", "d0", "added"}, {"negated_sum", "d0", "taken"}),
                   .use = ETCH_USE_SUM),
    ETCH_POINTWISE("sub", "a b", "a - b, broadcast by name", .shape = etch_shape_union, .uncalled = true,
                   .linear = ETCH_LINEAR_JOINT, .flop = ETCH_PER_RESULT(1),
                   .grads = ETCH_GRADS({"sum", "d0", "0"}, {"negated_sum", "d0", "1"}),
                   .use = ETCH_USE_DIFFERENCE),
    ETCH_POINTWISE("sum", "x", "sum over dims", .needs = ETCH_KW_OVER, .shape = kept,
                   .linear = ETCH_LINEAR_EACH, .flop = ETCH_PER_OPERAND(1), .elide_same = true,
                   .grads = ETCH_GRADS({"broadcast", "d0", "0"}), .use = ETCH_USE_REDUCTION),
    ETCH_ROW("mean", "x", "mean over dims: a sum, then a scale by one over the number of elements",
             .needs = ETCH_KW_OVER, .use = ETCH_USE_AVERAGE),
    ETCH_POINTWISE("max", "x", "largest element over dims", .needs = ETCH_KW_OVER, .shape = etch_shape_less,
                   .linear = ETCH_LINEAR_EACH, .reduction = ETCH_REDUCTION_MAX, .flop = ETCH_PER_OPERAND(1),
                   .grads = ETCH_GRADS({"max_dx", "d0 x0 y0 @max_ties", "0"})),
    ETCH_POINTWISE("max_ties", "x y", "how many elements are the largest", .flop = ETCH_PER_OPERAND(2)),
    ETCH_POINTWISE("max_dx", "d x y ties",
                   "the cotangent where the operand is the largest element, an equal part for each of them",
                   .flop = ETCH_PER_RESULT(2)),
    ETCH_POINTWISE("negated_sum", "x", "minus the sum over dims", .linear = ETCH_LINEAR_EACH,
                   .flop = ETCH_PER_OPERAND(1)),
    ETCH_POINTWISE("broadcast", "x", "kr[B,S,K,G,D] = k: copies along the declared dims that k lacks",
                   .shape = copied, .uncalled = true, .linear = ETCH_LINEAR_EACH,
                   .grads = ETCH_GRADS({"sum", "d0", "0"}), .dtype = ETCH_RESULT_AS_OPERAND,
                   .use = ETCH_USE_BROADCAST),
    ETCH_POINTWISE("scale", "x", "x times a number", .needs = ETCH_KW_NUMBER, .shape = etch_shape_union,
                   .linear = ETCH_LINEAR_EACH, .flop = ETCH_PER_RESULT(1),
                   .grads = ETCH_GRADS({"scale", "d0", "0"}), .use = ETCH_USE_SCALE),
    ETCH_POINTWISE("shift", "x", "x plus a number", .needs = ETCH_KW_NUMBER, .shape = etch_shape_union,
                   .uncalled = true, .flop = ETCH_PER_RESULT(1), .grads = ETCH_GRADS({"sum", "d0", "0"}),
                   .use = ETCH_USE_SHIFT),
};

ETCH_FAMILY(products);
