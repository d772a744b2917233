/* What is done to weights at the end of a step. FLOP: adamw 12, sgd 2, with momentum 4. In 8 bits each state
 * takes 4 more: it is read by a product with the scale of its block, and written by an absolute value and a
 * comparison, which find the largest of the block, and a division by that; the code that is nearest is looked
 * up. Scales are of 2,048 elements (Dettmers, Lewis, Shleifer, Zettlemoyer: 8-bit Optimizers via Block-wise
 * Quantization, ICLR 2022, section 2.1).
 *
 * lamb (You et al.: Large Batch Optimization for Deep Learning, ICLR 2020, algorithm 2): 10 as adamw makes
 * its change, 4 for the sums of squares of that and of the weight; 2 to take it off, times a rate.
 *
 * muon (Jordan et al., 2024: Muon, an optimizer for hidden layers in neural networks): 4 for the momentum,
 * and the gradient moved along it; products of matrices in bf16; 3 to shrink the weight and to take the
 * change off. Of a matrix X of m rows and n columns, m the fewer, each of its steps makes A = X X', B = b
 * A + c A A and a X + B X: products of 2 m m n, 2 m m m and 2 m m n, and beside them 3 of each element of
 * A and 2 of each of X. Before the first, X is divided by its norm: 3 of each of its elements. */
#include "graph/ir/families/family.h"

static etch_update_work work_on_elements(const etch_update_call *call)
{
    const etch_expr constant = etch_int(call->sym, call->row->flop.constants[0]);
    return (etch_update_work){.flop = etch_mul(call->sym, call->elements, constant)};
}

/* `often`, for each matrix that the rank works on: a of each element of X, b of each of A. */
static etch_expr sides(const etch_update_call *call, etch_expr often, uint32_t a, uint32_t b)
{
    etch_sym *sym = call->sym;
    const etch_expr m = etch_smaller(sym, call->rows, call->columns);
    const etch_expr x = etch_mul(sym, etch_int(sym, a), etch_mul(sym, call->rows, call->columns));
    const etch_expr square = etch_mul(sym, etch_int(sym, b), etch_mul(sym, m, m));
    return etch_mul(sym, etch_mul(sym, often, call->matrices), etch_add(sym, x, square));
}

/* The products of a step: of two of m by m by n, and of one of m by m by m. */
static etch_expr products(const etch_update_call *call)
{
    etch_sym *sym = call->sym;
    const etch_expr m = etch_smaller(sym, call->rows, call->columns);
    return etch_mul(sym, etch_mul(sym, call->steps, m), sides(call, etch_int(sym, 1), 4, 2));
}

/* Each product is a kernel, which reads its operands and what it adds to, each once. */
static etch_update_work work_on_matrices(const etch_update_call *call)
{
    etch_sym *sym = call->sym;
    const uint32_t *constants = call->row->flop.constants, width = etch_dtype_bytes(ETCH_BF16);
    const etch_expr once = etch_int(sym, 1);
    const etch_expr flop = etch_add(sym, sides(call, once, constants[0], 0),
                                    sides(call, call->steps, constants[1], constants[2]));
    const etch_expr read = etch_add(sym, sides(call, once, 2, 0), sides(call, call->steps, 2, 2));
    const etch_expr written = etch_add(sym, sides(call, once, 1, 0), sides(call, call->steps, 1, 2));
    return (etch_update_work){.flop = etch_add(sym, flop, products(call)),
                              .product_flop = products(call),
                              .read = etch_mul(sym, read, etch_int(sym, width)),
                              .written = etch_mul(sym, written, etch_int(sym, width))};
}

static const etch_flop of_matrices = {
    .help = "# FLOP per element, in each step # per element and # per element of its square, and products"};

#define ETCH_PER_STEP(...)                               \
    {                                                    \
        .by = &of_matrices, .constants = { __VA_ARGS__ } \
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
    ETCH_ROW("muon", "gradient",
             "Muon, of matrices: what Newton and Schulz's products make of the momentum is taken off",
             .flop = ETCH_PER_OPERAND(3), .updates = true, .states = 1,
             .before = {"muon_momentum", "newton_schulz"}, .of_matrices = true, .matrices_alone = true,
             .work = work_on_elements, .update_reads = ETCH_UPDATE_FACTOR | ETCH_UPDATE_WEIGHT,
             .update_writes = ETCH_UPDATE_WEIGHT),
    ETCH_ROW("muon_momentum", "gradient", "before that: the momentum, and the gradient moved along it",
             .flop = ETCH_PER_OPERAND(4), .work = work_on_elements,
             .update_reads = ETCH_UPDATE_GRADIENT | ETCH_UPDATE_STATES,
             .update_writes = ETCH_UPDATE_STATES | ETCH_UPDATE_FACTOR, .share = ETCH_SHARE_MATRIX),
    ETCH_ROW("newton_schulz", "matrix",
             "then: three products in each step, which make a matrix nearly orthogonal",
             .flop = ETCH_PER_STEP(3, 2, 3), .work = work_on_matrices),
    ETCH_ROW("grad_norm", "gradient", "sum of squares of the gradients, for clipping",
             .flop = ETCH_PER_OPERAND(2), .use = ETCH_USE_NORM),
    ETCH_ROW("ema", "weight", "exponential moving average of a weight over steps: a = d a + (1 - d) w",
             .flop = ETCH_PER_OPERAND(3), .use = ETCH_USE_EMA),
};

ETCH_FAMILY(optimizers);
