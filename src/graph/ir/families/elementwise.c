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
#define FUNCTION(label, cost, reads, text)                                                     \
    ETCH_POINTWISE(label, "x", text, .shape = etch_shape_union, .flop = ETCH_PER_RESULT(cost), \
                   .grads = ETCH_GRADS({label "_dx", "d0 " reads, "0"}))
#define UNARY(label, cost, text) FUNCTION(label, cost, "x0", text)
#define UNARY_DX(label, cost) \
    ETCH_POINTWISE(label, "d x", "cotangent times the derivative", .flop = ETCH_PER_RESULT(cost))
/* The same where the derivative follows from the result, too. */
#define EITHER(label, cost, text) FUNCTION(label, cost, "y0|x0", text)
#define EITHER_DX(label, from_operand, from_result)                                                          \
    ETCH_POINTWISE(label, "d y",                                                                             \
                   "cotangent times the derivative, from the result or from the operand, whichever is kept", \
                   .flop = {.by = &per_slope, .constants = {from_operand, from_result}})

static const etch_row rows[] = {
    EITHER("relu", 1, "max(x, 0)"),
    EITHER("sigmoid", 4, "1/(1 + exp(-x))"),
    UNARY("silu", 5, "x sigmoid(x)"),
    UNARY("gelu", 8, "x times the normal distribution function, tanh form"),
    EITHER("tanh", 5, "hyperbolic tangent"),
    EITHER("exp", 1, "exponential"),
    UNARY("softplus", 3, "log(1 + exp(x))"),
    EITHER_DX("relu_dx", 1, 1),
    EITHER_DX("sigmoid_dx", 7, 3),
    UNARY_DX("silu_dx", 9),
    UNARY_DX("gelu_dx", 14),
    EITHER_DX("tanh_dx", 8, 3),
    EITHER_DX("exp_dx", 2, 1),
    UNARY_DX("softplus_dx", 5),
    UNARY("log", 1, "natural logarithm"),
    UNARY_DX("log_dx", 1),
    EITHER("sqrt", 1, "square root"),
    EITHER_DX("sqrt_dx", 3, 2),
    EITHER("rsqrt", 2, "1/sqrt(x)"),
    EITHER_DX("rsqrt_dx", 4, 4),
    UNARY("square", 1, "x x"),
    UNARY_DX("square_dx", 2),
    UNARY("abs", 1, "absolute value"),
    UNARY_DX("abs_dx", 1),
    ETCH_POINTWISE("reciprocal", "x", "1/x", .shape = etch_shape_union, .flop = ETCH_PER_RESULT(1),
                   .grads = ETCH_GRADS({"reciprocal_dx", "d0 y0|x0", "0"}), .use = ETCH_USE_RECIPROCAL),
    EITHER_DX("reciprocal_dx", 3, 3),
    ETCH_POINTWISE("softcap", "x", "c tanh(x/c): bounded by a number c", .number = ETCH_POSITIVE,
                   .needs = ETCH_KW_NUMBER, .shape = etch_shape_first, .flop = ETCH_PER_RESULT(7),
                   .grads = ETCH_GRADS({"softcap_dx", "d0 y0|x0", "0"})),
    EITHER_DX("softcap_dx", 9, 4),
    ETCH_POINTWISE("cast", "x", "x as another dtype", .needs = ETCH_KW_DTYPE, .shape = etch_shape_first,
                   .linear = ETCH_LINEAR_EACH, .dtype = ETCH_RESULT_SAID,
                   .grads = ETCH_GRADS({"cast_dx", "d0", "0"})),
    ETCH_POINTWISE("cast_dx", "d", "the cotangent in the dtype of the operand", .linear = ETCH_LINEAR_EACH),
    ETCH_POINTWISE("rope", "x", "rotary position embedding", .needs = ETCH_KW_OVER, .shape = etch_shape_first,
                   .over = ETCH_FACTOR_WHOLE, .linear = ETCH_LINEAR_EACH, .flop = ETCH_PER_RESULT(3),
                   .grads = ETCH_GRADS({"rope_dx", "d0", "0"})),
    ETCH_POINTWISE("rope_dx", "d", "the inverse rotation", .over = ETCH_FACTOR_WHOLE,
                   .linear = ETCH_LINEAR_EACH, .flop = ETCH_PER_RESULT(3)),
    ETCH_POINTWISE(
        "dropout", "x", "zero with a probability, scale the rest; keeps a mask of one byte an element",
        .number = ETCH_SHARE, .needs = ETCH_KW_NUMBER, .shape = etch_shape_first, .flop = ETCH_PER_RESULT(2),
        .extra = {.name = "mask", .dtype = ETCH_BOOL, .like = ETCH_EXTRA_AS_RESULT},
        .grads = ETCH_GRADS({"dropout_dx", "d0 y1", "0"})),
    ETCH_POINTWISE("dropout_dx", "d mask", "the same mask on the cotangent", .flop = ETCH_PER_RESULT(2)),
};

ETCH_FAMILY(elementwise);
