/* Functions of elements. FLOP: sigmoid 4 (negate, exponential, add, divide), silu 5, tanh 5, gelu 8 (tanh
 * form), softplus 3, a square root 1, softcap 7; rope 3, dropout 2. Where the derivative follows from the
 * result as from the operand, it takes fewer from the result: sigmoid y (1 - y) instead of 4 more for y. */
#include "graph/ir/families/family.h"

static etch_expr slope_flop(const etch_flop_call *call)
{
    const uint32_t *constants = call->op->row->flop.constants;
    return etch_flop_times(call, constants[etch_op_reads_result(call->op, 1)],
                           etch_flop_elements(call, call->op->outs[0]));
}

static const etch_flop per_slope = {slope_flop,
                                    "# FLOP per element of the result from the operand, # from the result"};

/* A function of one operand, element by element, and its derivative times the cotangent. */
#define FUNCTION(label, cost, reads, text)                                                      \
    {                                                                                           \
        .name = label, .operands = "x", .shape = etch_shape_union, .role = ETCH_ROLE_POINTWISE, \
        .flop = {.by = &etch_flop_per_result, .constants = {cost}},                             \
        .grads = ETCH_GRADS({label "_dx", "d0 " reads, "0"}), .help = text                      \
    }
#define UNARY(label, cost, text) FUNCTION(label, cost, "x0", text)
#define UNARY_DX(label, cost)                                                                                \
    {                                                                                                        \
        .name = label, .operands = "d x", .role = ETCH_ROLE_POINTWISE,                                       \
        .flop = {.by = &etch_flop_per_result, .constants = {cost}}, .help = "cotangent times the derivative" \
    }
/* The same where the derivative follows from the result, too. */
#define INVERTIBLE(label, cost, text) FUNCTION(label, cost, "y0|x0", text)
#define INVERTIBLE_DX(label, from_operand, from_result)                                                  \
    {                                                                                                    \
        .name = label, .operands = "d y", .role = ETCH_ROLE_POINTWISE,                                   \
        .flop = {.by = &per_slope, .constants = {from_operand, from_result}},                            \
        .help = "cotangent times the derivative, from the result or from the operand, whichever is kept" \
    }

static const etch_row rows[] = {
    INVERTIBLE("relu", 1, "max(x, 0)"),
    INVERTIBLE("sigmoid", 4, "1/(1 + exp(-x))"),
    UNARY("silu", 5, "x sigmoid(x)"),
    UNARY("gelu", 8, "x times the normal distribution function, tanh form"),
    INVERTIBLE("tanh", 5, "hyperbolic tangent"),
    INVERTIBLE("exp", 1, "exponential"),
    UNARY("softplus", 3, "log(1 + exp(x))"),
    INVERTIBLE_DX("relu_dx", 1, 1),
    INVERTIBLE_DX("sigmoid_dx", 7, 3),
    UNARY_DX("silu_dx", 9),
    UNARY_DX("gelu_dx", 14),
    INVERTIBLE_DX("tanh_dx", 8, 3),
    INVERTIBLE_DX("exp_dx", 2, 1),
    UNARY_DX("softplus_dx", 5),
    UNARY("log", 1, "natural logarithm"),
    UNARY_DX("log_dx", 1),
    INVERTIBLE("sqrt", 1, "square root"),
    INVERTIBLE_DX("sqrt_dx", 3, 2),
    INVERTIBLE("rsqrt", 2, "1/sqrt(x)"),
    INVERTIBLE_DX("rsqrt_dx", 4, 4),
    UNARY("square", 1, "x x"),
    UNARY_DX("square_dx", 2),
    UNARY("abs", 1, "absolute value"),
    UNARY_DX("abs_dx", 1),
    {.name = "reciprocal",
     .operands = "x",
     .shape = etch_shape_union,
     .role = ETCH_ROLE_POINTWISE,
     .flop = {.by = &etch_flop_per_result, .constants = {1}},
     .grads = ETCH_GRADS({"reciprocal_dx", "d0 y0|x0", "0"}),
     .use = ETCH_USE_RECIPROCAL,
     .help = "1/x"},
    INVERTIBLE_DX("reciprocal_dx", 3, 3),
    {.name = "softcap",
     .operands = "x",
     .number = ETCH_POSITIVE,
     .needs = ETCH_KW_NUMBER,
     .shape = etch_shape_first,
     .role = ETCH_ROLE_POINTWISE,
     .flop = {.by = &etch_flop_per_result, .constants = {7}},
     .grads = ETCH_GRADS({"softcap_dx", "d0 y0|x0", "0"}),
     .help = "c tanh(x/c): bounded by a number c"},
    INVERTIBLE_DX("softcap_dx", 9, 4),
    {.name = "cast",
     .operands = "x",
     .needs = ETCH_KW_DTYPE,
     .shape = etch_shape_first,
     .role = ETCH_ROLE_POINTWISE,
     .linear = ETCH_LINEAR_EACH,
     .dtype = ETCH_RESULT_SAID,
     .grads = ETCH_GRADS({"cast_dx", "d0", "0"}),
     .help = "x as another dtype"},
    {.name = "cast_dx",
     .operands = "d",
     .role = ETCH_ROLE_POINTWISE,
     .linear = ETCH_LINEAR_EACH,
     .help = "the cotangent in the dtype of the operand"},
    {.name = "rope",
     .operands = "x",
     .needs = ETCH_KW_OVER,
     .shape = etch_shape_first,
     .role = ETCH_ROLE_POINTWISE,
     .over = ETCH_FACTOR_WHOLE,
     .linear = ETCH_LINEAR_EACH,
     .flop = {.by = &etch_flop_per_result, .constants = {3}},
     .grads = ETCH_GRADS({"rope_dx", "d0", "0"}),
     .help = "rotary position embedding"},
    {.name = "rope_dx",
     .operands = "d",
     .role = ETCH_ROLE_POINTWISE,
     .over = ETCH_FACTOR_WHOLE,
     .linear = ETCH_LINEAR_EACH,
     .flop = {.by = &etch_flop_per_result, .constants = {3}},
     .help = "the inverse rotation"},
    {.name = "dropout",
     .operands = "x",
     .number = ETCH_SHARE,
     .needs = ETCH_KW_NUMBER,
     .shape = etch_shape_first,
     .role = ETCH_ROLE_POINTWISE,
     .flop = {.by = &etch_flop_per_result, .constants = {2}},
     .extra = {"mask", ETCH_BOOL, ETCH_EXTRA_AS_RESULT},
     .grads = ETCH_GRADS({"dropout_dx", "d0 y1", "0"}),
     .help = "zero with a probability, scale the rest; keeps a mask of one byte an element"},
    {.name = "dropout_dx",
     .operands = "d mask",
     .role = ETCH_ROLE_POINTWISE,
     .flop = {.by = &etch_flop_per_result, .constants = {2}},
     .help = "the same mask on the cotangent"},
};

ETCH_FAMILY(elementwise);
