/* What is done to weights at the end of a step. FLOP: adamw 12, sgd 2, with momentum 4. In 8 bits each state
 * takes 4 more: it is read by a product with the scale of its block, and written by an absolute value and a
 * comparison, which find the largest of the block, and a division by that; the code that is nearest is looked
 * up. Scales are of 2,048 elements (Dettmers, Lewis, Shleifer, Zettlemoyer: 8-bit Optimizers via Block-wise
 * Quantization, ICLR 2022, section 2.1). */
#include "graph/ir/families/family.h"

static const etch_row rows[] = {
    ETCH_ROW("adamw", "gradient", "AdamW: two moments, bias correction, decay, update",
             .flop = ETCH_PER_OPERAND(12), .updates = true, .states = 2, .with_8_bits = "adamw_8bit"),
    ETCH_ROW("adamw_8bit", "gradient",
             "adamw(bits = 8): moments of a byte, and a scale for each 2,048 elements of one",
             .flop = ETCH_PER_OPERAND(20), .updates = true, .states = 2, .state_block = 2048),
    ETCH_ROW("sgd", "gradient", "the weight less the gradient times a rate", .flop = ETCH_PER_OPERAND(2),
             .updates = true, .with_momentum = "sgd_momentum"),
    ETCH_ROW(
        "sgd_momentum", "gradient",
        "sgd(momentum = m): the gradient is added to m times the momentum, which is taken off the weight",
        .flop = ETCH_PER_OPERAND(4), .updates = true, .states = 1),
    ETCH_ROW("grad_norm", "gradient", "sum of squares of the gradients, for clipping",
             .flop = ETCH_PER_OPERAND(2), .use = ETCH_USE_NORM),
    ETCH_ROW("ema", "weight", "exponential moving average of a weight over steps: a = d a + (1 - d) w",
             .flop = ETCH_PER_OPERAND(3), .use = ETCH_USE_EMA),
};

ETCH_FAMILY(optimizers);
