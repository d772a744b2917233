/* Products and sums, most of them written with operators. */
#include "graph/ir/families/family.h"

/* sum, when it is called: all but `over`; the kept dims say it from then on. */
static bool kept(etch_call *call, etch_dim_list *out)
{
    if (!etch_shape_less(call, out))
        return false;
    call->attrs.over_count = 0;
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
    {.name = "einsum",
     .operands = "a b",
     .shape = kept,
     .uncalled = true,
     .role = ETCH_ROLE_PRODUCT,
     .linear = ETCH_LINEAR_EACH,
     .flop = {.by = &per_product},
     .matmul = true,
     .grads = ETCH_GRADS({"einsum", "d0 others", "each"}),
     .use = ETCH_USE_PRODUCT,
     .help = "a * b: product; dims that the result lacks are summed"},
    {.name = "div",
     .operands = "a b",
     .shape = kept,
     .uncalled = true,
     .role = ETCH_ROLE_PRODUCT,
     .linear = ETCH_LINEAR_FIRST,
     .flop = {.by = &per_product},
     .grads = ETCH_GRADS({"div", "d0 x1", "0"}, {"div_db", "d0 x0|y0 x1", "1"}),
     .use = ETCH_USE_QUOTIENT,
     .help = "a / b, broadcast by name; dims that the result lacks are summed"},
    {.name = "div_db",
     .operands = "d a b",
     .role = ETCH_ROLE_PRODUCT,
     .linear = ETCH_LINEAR_FIRST,
     .flop = {.by = &per_divisor, .constants = {3, 2}},
     .help = "minus the cotangent times a over b b, or times the quotient over b, whichever is kept"},
    {.name = "add",
     .operands = "a b...",
     .shape = etch_shape_union,
     .uncalled = true,
     .role = ETCH_ROLE_POINTWISE,
     .linear = ETCH_LINEAR_JOINT,
     .flop = {.by = &etch_flop_per_addition, .constants = {1}},
     .grads = ETCH_GRADS({"sum", "d0", "added"}, {"negated_sum", "d0", "taken"}),
     .use = ETCH_USE_SUM,
     .help = "a + b + c: one sum of all its terms, broadcast by name"},
    {.name = "sub",
     .operands = "a b",
     .shape = etch_shape_union,
     .uncalled = true,
     .role = ETCH_ROLE_POINTWISE,
     .linear = ETCH_LINEAR_JOINT,
     .flop = {.by = &etch_flop_per_result, .constants = {1}},
     .grads = ETCH_GRADS({"sum", "d0", "0"}, {"negated_sum", "d0", "1"}),
     .use = ETCH_USE_DIFFERENCE,
     .help = "a - b, broadcast by name"},
    {.name = "sum",
     .operands = "x",
     .needs = ETCH_KW_OVER,
     .shape = kept,
     .role = ETCH_ROLE_POINTWISE,
     .linear = ETCH_LINEAR_EACH,
     .flop = {.by = &etch_flop_per_operand, .constants = {1}},
     .elide_same = true,
     .grads = ETCH_GRADS({"broadcast", "d0", "0"}),
     .use = ETCH_USE_REDUCTION,
     .help = "sum over dims"},
    {.name = "mean",
     .operands = "x",
     .needs = ETCH_KW_OVER,
     .use = ETCH_USE_AVERAGE,
     .help = "mean over dims: a sum, then a scale by one over the number of elements"},
    {.name = "max",
     .operands = "x",
     .needs = ETCH_KW_OVER,
     .shape = etch_shape_less,
     .role = ETCH_ROLE_POINTWISE,
     .over = ETCH_FACTOR_WHOLE,
     .flop = {.by = &etch_flop_per_operand, .constants = {1}},
     .grads = ETCH_GRADS({"max_dx", "d0 x0", "0"}),
     .help = "largest element over dims"},
    {.name = "max_dx",
     .operands = "d x",
     .role = ETCH_ROLE_POINTWISE,
     .over = ETCH_FACTOR_WHOLE,
     .flop = {.by = &etch_flop_per_result, .constants = {2}},
     .help = "the cotangent where the first largest element is, which is looked for again"},
    {.name = "negated_sum",
     .operands = "x",
     .role = ETCH_ROLE_POINTWISE,
     .linear = ETCH_LINEAR_EACH,
     .flop = {.by = &etch_flop_per_operand, .constants = {1}},
     .help = "minus the sum over dims"},
    {.name = "broadcast",
     .operands = "x",
     .role = ETCH_ROLE_POINTWISE,
     .linear = ETCH_LINEAR_EACH,
     .help = "the same value along new dims"},
    {.name = "scale",
     .operands = "x",
     .needs = ETCH_KW_NUMBER,
     .shape = etch_shape_union,
     .role = ETCH_ROLE_POINTWISE,
     .linear = ETCH_LINEAR_EACH,
     .flop = {.by = &etch_flop_per_result, .constants = {1}},
     .grads = ETCH_GRADS({"scale", "d0", "0"}),
     .use = ETCH_USE_SCALE,
     .help = "x times a number"},
    {.name = "shift",
     .operands = "x",
     .needs = ETCH_KW_NUMBER,
     .shape = etch_shape_union,
     .uncalled = true,
     .role = ETCH_ROLE_POINTWISE,
     .flop = {.by = &etch_flop_per_result, .constants = {1}},
     .grads = ETCH_GRADS({"sum", "d0", "0"}),
     .use = ETCH_USE_SHIFT,
     .help = "x plus a number"},
};

ETCH_FAMILY(products);
