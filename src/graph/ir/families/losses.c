/* Losses, and the terms that they are made of. */
#include "graph/ir/families/family.h"

/* Operand 1 (labels) has the dims of operand 0 less `over`. */
static bool labels_fit(etch_call *call)
{
    etch_tensor *const *ins = call->ins;
    const etch_attrs *attrs = &call->attrs;
    etch_dim_list left = {0};
    if (!etch_shape_less(call, &left))
        return false;
    if (call->in_count < 2)
        return true;
    if (attrs->over.count == 0)
        return etch_shape_first(call, &left);
    if (etch_dims_same(ETCH_DIMS(left), etch_dims_of(ins[1])))
        return true;
    return etch_call_refuse(call, ETCH_E_SHAPE_MISMATCH, "%s less %s does not fit %s",
                            etch_call_tensor(call, ins[0]), attrs->over.at[0]->name,
                            etch_call_tensor(call, ins[1]));
}

/* A scalar. */
static bool loss(etch_call *call, etch_dim_list *out)
{
    (void)out;
    return labels_fit(call);
}

static bool token_loss(etch_call *call, etch_dim_list *out)
{
    return labels_fit(call) && etch_shape_less(call, out);
}

static etch_expr label_flop(const etch_flop_call *call)
{
    return etch_flop_each(call, etch_flop_elements(call, call->op->ins[1]));
}

static const etch_flop per_label = {label_flop, "# FLOP per element of the second operand"};

/* Of the logits and labels of tokens, and its gradient. */
#define LABEL_LOSS(label, counted, dims, text)                                                               \
    ETCH_ROW(label, "z labels", text, .family = counted, .indices = ETCH_EXTRA_OF(1), .needs = ETCH_KW_OVER, \
             .shape = dims, .over = ETCH_FACTOR_STAT, .flop = ETCH_PER_OPERAND(5), .stat_reductions = 3,     \
             .extra = {.name = "stat", .dtype = ETCH_F32, .like = ETCH_EXTRA_OF(0)},                         \
             .grads = ETCH_GRADS({label "_dx", "d0 x0 x1 y1", "0"}), .dtype = ETCH_RESULT_F32)
#define LABEL_LOSS_DX(label, text) ETCH_ROW(label, "d z labels stat", text, .flop = ETCH_PER_RESULT(4))

static const etch_row rows[] = {
    LABEL_LOSS(
        "cross_entropy", ETCH_FAMILY_LOSS, loss,
        "mean over tokens of -log softmax(z) at the label; over a sharded dim: maximum, sum and target "
        "logit are reduced"),
    LABEL_LOSS_DX("cross_entropy_dx", "softmax(z) less one at the label, times the scale of the mean"),
    LABEL_LOSS("token_nll", ETCH_FAMILY_NONE, token_loss, "-log softmax(z) at the label, of each token"),
    LABEL_LOSS_DX("token_nll_dx", "softmax(z) less one at the label, times the cotangent of the token"),
    ETCH_ROW("bce", "z labels",
             "mean of the binary cross-entropy of sigmoid(z): softplus(z) - z times the label", .shape = loss,
             .flop = ETCH_PER_OPERAND(7), .grads = ETCH_GRADS({"bce_bwd", "d0 x0 x1", "0 1"}),
             .dtype = ETCH_RESULT_F32),
    ETCH_ROW("bce_bwd", "d z labels", "sigmoid(z) less the label, times the scale of the mean",
             .flop = {.by = &per_label, .constants = {6}}),
    ETCH_POINTWISE("kl", "p reference",
                   "exp(r - p) - (r - p) - 1 of two log-probabilities: an estimate of their divergence",
                   .shape = etch_shape_union, .flop = ETCH_PER_RESULT(4),
                   .grads = ETCH_GRADS({"kl_bwd", "d0 x0 x1", "0 1"})),
    ETCH_POINTWISE("kl_bwd", "d p reference", "d (1 - exp(r - p)), and minus that",
                   .flop = ETCH_PER_OPERAND(5)),
    ETCH_POINTWISE("clipped", "ratio advantage",
                   "-min(r a, clip(r) a), r clipped to within a number of 1 (1/5 unless it is said): the "
                   "objective of PPO",
                   .options = ETCH_KW_NUMBER, .number = ETCH_NOT_NEGATIVE, .shape = etch_shape_union,
                   .flop = ETCH_PER_RESULT(6), .grads = ETCH_GRADS({"clipped_bwd", "d0 x0 x1", "0 1"})),
    ETCH_POINTWISE("clipped_bwd", "d ratio advantage", "the slopes of the smaller of the two",
                   .flop = ETCH_PER_OPERAND(8)),
};

ETCH_FAMILY(losses);
