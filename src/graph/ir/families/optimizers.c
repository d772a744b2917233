/* What is done to weights at the end of a step. FLOP: adamw 12, sgd 2, with momentum 4. */
#include "graph/ir/families/family.h"

static const etch_row rows[] = {
    {.name = "adamw",
     .operands = "gradient",
     .flop = {.by = &etch_flop_per_operand, .constants = {12}},
     .updates = true,
     .states = 2,
     .help = "AdamW: two moments, bias correction, decay, update"},
    {.name = "sgd",
     .operands = "gradient",
     .flop = {.by = &etch_flop_per_operand, .constants = {2}},
     .updates = true,
     .with_momentum = "sgd_momentum",
     .help = "the weight less the gradient times a rate"},
    {.name = "sgd_momentum",
     .operands = "gradient",
     .flop = {.by = &etch_flop_per_operand, .constants = {4}},
     .updates = true,
     .states = 1,
     .help =
         "sgd(momentum = m): the gradient is added to m times the momentum, which is taken off the weight"},
    {.name = "grad_norm",
     .operands = "gradient",
     .flop = {.by = &etch_flop_per_operand, .constants = {2}},
     .use = ETCH_USE_NORM,
     .help = "sum of squares of the gradients, for clipping"},
};

ETCH_FAMILY(optimizers);
