/* What derivations add by themselves. */
#include "graph/ir/families/family.h"

static etch_expr addition_flop(const etch_flop_call *call)
{
    return etch_flop_times(call, call->op->in_count - 1, etch_flop_elements(call, call->op->outs[0]));
}

static const etch_flop per_addition = {addition_flop, "# FLOP per element and addition"};

static const etch_row rows[] = {
    ETCH_POINTWISE("add_cotangents", "d", "sum of the cotangents of one value", .linear = ETCH_LINEAR_JOINT,
                   .flop = {.by = &per_addition, .constants = {1}}, .use = ETCH_USE_TOTAL),
    ETCH_POINTWISE("accumulate", "d", "a gradient added into its accumulator, where no product does it",
                   .linear = ETCH_LINEAR_EACH, .flop = ETCH_PER_OPERAND(1), .use = ETCH_USE_ACCUMULATION),
};

ETCH_FAMILY(derived);
