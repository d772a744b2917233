/* What derivations add by themselves. */
#include "graph/ir/families/family.h"

static const etch_row rows[] = {
    ETCH_POINTWISE("add_cotangents", "d", "sum of the cotangents of one value", .linear = ETCH_LINEAR_JOINT,
                   .flop = {.by = &etch_flop_per_addition, .constants = {1}}, .use = ETCH_USE_TOTAL),
    ETCH_POINTWISE("accumulate", "d", "a gradient added into its accumulator, where no product does it",
                   .linear = ETCH_LINEAR_EACH, .flop = ETCH_PER_OPERAND(1), .use = ETCH_USE_ACCUMULATION),
};

ETCH_FAMILY(derived);
