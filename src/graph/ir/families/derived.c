/* What derivations add by themselves. */
#include "graph/ir/families/family.h"

static const etch_row rows[] = {
    {.name = "add_cotangents",
     .operands = "d",
     .role = ETCH_ROLE_POINTWISE,
     .linear = ETCH_LINEAR_JOINT,
     .flop = {.by = &etch_flop_per_addition, .constants = {1}},
     .use = ETCH_USE_TOTAL,
     .help = "sum of the cotangents of one value"},
    {.name = "accumulate",
     .operands = "d",
     .role = ETCH_ROLE_POINTWISE,
     .linear = ETCH_LINEAR_EACH,
     .flop = {.by = &etch_flop_per_operand, .constants = {1}},
     .use = ETCH_USE_ACCUMULATION,
     .help = "a gradient added into its accumulator, where no product does it"},
};

ETCH_FAMILY(derived);
