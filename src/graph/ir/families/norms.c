/* Normalisation along dims. FLOP: rms_norm 4 (square and add, scale by the root, gain), layer_norm and
 * batch_norm 5, their backward 9. */
#include "graph/ir/families/family.h"

/* batch_norm: statistics along all dims that are not kept. */
static bool batch_statistics(etch_call *call, etch_dim_list *out)
{
    const etch_tensor *x = call->ins[0];
    etch_dim_list rest = {0};
    if (call->attrs.sync)
        return etch_call_later(call, "(.., sync = true)", ": each rank takes the statistics of what it has");
    if (!etch_shape_has(call, x, call->attrs.kept, "keep"))
        return false;
    etch_dims_add_beside(call, &rest, x, call->attrs.kept);
    call->attrs.over = ETCH_DIMS(rest);
    return etch_shape_first(call, out);
}

/* Along `over`, and its gradient. */
#define NORM(label, names, cost, into, text)                                                      \
    ETCH_ROW(label, names, text, .family = ETCH_FAMILY_NORM, .needs = ETCH_KW_OVER,               \
             .shape = etch_shape_first, .over = ETCH_FACTOR_WHOLE, .flop = ETCH_PER_RESULT(cost), \
             .grads = ETCH_GRADS({label "_bwd", "d0 x0 x1", into}))
#define NORM_BWD(label, text)                                                               \
    ETCH_ROW(label, "d x | g", text, .family = ETCH_FAMILY_NORM, .over = ETCH_FACTOR_WHOLE, \
             .flop = ETCH_PER_OPERAND(9))

static const etch_row rows[] = {
    NORM("rms_norm", "x | g", 4, "0 1", "x over its root mean square, times a gain"),
    NORM_BWD("rms_norm_bwd", "gradients of x and of the gain; statistics are computed again"),
    NORM("layer_norm", "x | g b", 5, "0 1 2",
         "x less its mean over its deviation, times a gain, plus a bias"),
    NORM_BWD("layer_norm_bwd", "gradients of x, of the gain and of the bias; statistics are computed again"),
    ETCH_ROW("batch_norm", "x | g b",
             "x less its mean over its deviation along all dims but those kept, of the part that a rank has; "
             "times a gain, plus a bias",
             .options = ETCH_KW_SYNC, .needs = ETCH_KW_KEPT, .shape = batch_statistics,
             .flop = ETCH_PER_RESULT(5), .grads = ETCH_GRADS({"batch_norm_bwd", "d0 x0 x1", "0 1 2"})),
    ETCH_ROW("batch_norm_bwd", "d x | g",
             "gradients of x, of the gain and of the bias; statistics are computed again",
             .flop = ETCH_PER_OPERAND(9)),
};

ETCH_FAMILY(norms);
