/* What is done to weights at the end of a step. FLOP: adamw 12, sgd 2, with momentum 4. In 8 bits each state
 * takes 4 more: it is read by a product with the scale of its block, and written by an absolute value and a
 * comparison, which find the largest of the block, and a division by that; the code that is nearest is looked
 * up. Scales are of 2,048 elements (Dettmers, Lewis, Shleifer, Zettlemoyer: 8-bit Optimizers via Block-wise
 * Quantization, ICLR 2022, section 2.1).
 *
 * lamb (You et al.: Large Batch Optimization for Deep Learning, ICLR 2020, algorithm 2): 10 as adamw makes
 * its change, 4 for the sums of squares of that and of the weight; 2 to take it off, times a rate. */
#include "graph/ir/families/family.h"

static etch_update_work work_on_elements(const etch_update_call *call)
{
    const etch_expr constant = etch_int(call->sym, call->row->flop.constants[0]);
    return (etch_update_work){.flop = etch_mul(call->sym, call->elements, constant)};
}

enum {
    READS_ALL = ETCH_UPDATE_GRADIENT | ETCH_UPDATE_WEIGHT | ETCH_UPDATE_STATES,
    WRITES_ALL = ETCH_UPDATE_WEIGHT | ETCH_UPDATE_STATES,
    CHANGES = ETCH_UPDATE_CHANGE | ETCH_UPDATE_WEIGHT
};

/* An optimizer whose update is one pass over all that there is of a weight. */
#define ETCH_UPDATES(label, text, constant, ...)                                           \
    ETCH_ROW(label, "gradient", text, .flop = ETCH_PER_OPERAND(constant), .updates = true, \
             .work = work_on_elements, .update_reads = READS_ALL, .update_writes = WRITES_ALL, __VA_ARGS__)

static const etch_row rows[] = {
    ETCH_UPDATES("adamw", "AdamW: two moments, bias correction, decay, update", 12, .states = 2,
                 .with_8_bits = "adamw_8bit"),
    ETCH_UPDATES("adamw_8bit",
                 "adamw(bits = 8): moments of a byte, and a scale for each 2,048 elements of one", 20,
                 .states = 2, .state_block = 2048),
    ETCH_UPDATES("sgd", "the weight less the gradient times a rate", 2, .with_momentum = "sgd_momentum"),
    ETCH_UPDATES(
        "sgd_momentum",
        "sgd(momentum = m): the gradient is added to m times the momentum, which is taken off the weight", 4,
        .states = 1),
    ETCH_ROW("lamb", "gradient",
             "LAMB: what adamw changes a matrix or other weight by, times the norm of the one by that of the "
             "other",
             .flop = ETCH_PER_OPERAND(2), .updates = true, .states = 2, .before = {"lamb_norms"},
             .of_matrices = true, .work = work_on_elements, .update_reads = CHANGES,
             .update_writes = ETCH_UPDATE_WEIGHT),
    ETCH_ROW("lamb_norms", "gradient", "before that: the change as of adamw, two sums of squares",
             .flop = ETCH_PER_OPERAND(14), .work = work_on_elements, .update_reads = READS_ALL,
             .update_writes = ETCH_UPDATE_STATES | ETCH_UPDATE_CHANGE, .share = ETCH_SHARE_SUMS, .sums = 2),
    ETCH_ROW("grad_norm", "gradient", "sum of squares of the gradients, for clipping",
             .flop = ETCH_PER_OPERAND(2), .use = ETCH_USE_NORM),
    ETCH_ROW("ema", "weight", "exponential moving average of a weight over steps: a = d a + (1 - d) w",
             .flop = ETCH_PER_OPERAND(3), .use = ETCH_USE_EMA),
};

ETCH_FAMILY(optimizers);
