/* The op table: one row per op. Shapes, costs, gradients and placement of every op follow from its row.
 *
 * FLOP constants: a multiply-add is 2; one for each addition, product, comparison, division or elementary
 * function of an element. sigmoid 4 (negate, exponential, add, divide), silu 5, tanh 5, gelu 8 (tanh form),
 * softplus 3; rms_norm 4 (square and add, scale by the root, gain), layer_norm 5, their backward 9; softmax 5
 * (maximum, subtract, exponential, add, divide), its backward 4; rope 3, dropout 2; adamw 12. */
#include <string.h>

#include "graph/row_int.h"

#define GRADS(...) ((const etch_grad[]){__VA_ARGS__, {NULL, NULL, NULL}})

/* A function of one operand, element by element, and its derivative times the cotangent. */
#define UNARY(label, cost, text)                                                                       \
    {                                                                                                  \
        .name = label, .operands = "x", .called = true, .shape = SHAPE_UNION, .role = ROLE_POINTWISE,  \
        .basis = BASIS_RESULT, .flop = cost, .grads = GRADS({label "_dx", "d0 x0", "0"}), .help = text \
    }
#define UNARY_DX(label, cost)                                                             \
    {                                                                                     \
        .name = label, .operands = "d x", .shape = SHAPE_TARGETS, .role = ROLE_POINTWISE, \
        .basis = BASIS_RESULT, .flop = cost, .help = "cotangent times the derivative"     \
    }

static const etch_row table[] = {
    /* products and sums: written with operators */
    {.name = "einsum",
     .operands = "a b",
     .shape = SHAPE_KEPT,
     .role = ROLE_PRODUCT,
     .linear = LINEAR_EACH,
     .basis = BASIS_PRODUCT,
     .matmul = true,
     .grads = GRADS({"einsum", "d0 others", "each"}),
     .help = "a * b: product; dims that the result lacks are summed"},
    {.name = "add",
     .operands = "a b",
     .shape = SHAPE_UNION,
     .role = ROLE_POINTWISE,
     .linear = LINEAR_JOINT,
     .basis = BASIS_RESULT,
     .flop = 1,
     .grads = GRADS({"sum", "d0", "each"}),
     .help = "a + b, broadcast by name"},
    {.name = "sub",
     .operands = "a b",
     .shape = SHAPE_UNION,
     .role = ROLE_POINTWISE,
     .linear = LINEAR_JOINT,
     .basis = BASIS_RESULT,
     .flop = 1,
     .grads = GRADS({"sum", "d0", "0"}, {"negated_sum", "d0", "1"}),
     .help = "a - b, broadcast by name"},
    {.name = "sum",
     .operands = "x",
     .takes = ETCH_KW_OVER,
     .needs = ETCH_KW_OVER,
     .called = true,
     .shape = SHAPE_KEPT,
     .role = ROLE_POINTWISE,
     .linear = LINEAR_EACH,
     .basis = BASIS_OPERAND,
     .flop = 1,
     .elide_same = true,
     .grads = GRADS({"broadcast", "d0", "0"}),
     .help = "sum over dims"},
    {.name = "negated_sum",
     .operands = "x",
     .shape = SHAPE_TARGETS,
     .role = ROLE_POINTWISE,
     .linear = LINEAR_EACH,
     .basis = BASIS_OPERAND,
     .flop = 1,
     .help = "minus the sum over dims"},
    {.name = "broadcast",
     .operands = "x",
     .shape = SHAPE_TARGETS,
     .role = ROLE_POINTWISE,
     .linear = LINEAR_EACH,
     .basis = BASIS_NONE,
     .help = "the same value along new dims"},
    {.name = "scale",
     .operands = "x",
     .takes = ETCH_KW_NUMBER,
     .needs = ETCH_KW_NUMBER,
     .called = true,
     .shape = SHAPE_UNION,
     .role = ROLE_POINTWISE,
     .linear = LINEAR_EACH,
     .basis = BASIS_RESULT,
     .flop = 1,
     .grads = GRADS({"scale", "d0", "0"}),
     .help = "x times a number"},
    {.name = "shift",
     .operands = "x",
     .takes = ETCH_KW_NUMBER,
     .needs = ETCH_KW_NUMBER,
     .shape = SHAPE_UNION,
     .role = ROLE_POINTWISE,
     .basis = BASIS_RESULT,
     .flop = 1,
     .grads = GRADS({"sum", "d0", "0"}),
     .help = "x plus a number"},

    /* views: no node, no FLOP */
    {.name = "identity",
     .operands = "x",
     .called = true,
     .shape = SHAPE_UNION,
     .role = ROLE_FREE,
     .linear = LINEAR_EACH,
     .grads = GRADS({"sum", "d0", "0"}),
     .help = "x itself"},
    {.name = "rename",
     .operands = "x",
     .shape = SHAPE_RENAMED,
     .role = ROLE_FREE,
     .linear = LINEAR_EACH,
     .grads = GRADS({"renamed_back", "d0", "0"}),
     .help = "x[S->S']: the same elements under another dim"},
    {.name = "renamed_back",
     .operands = "d",
     .shape = SHAPE_TARGETS,
     .role = ROLE_FREE,
     .linear = LINEAR_EACH,
     .inverts_map = true,
     .help = "gradient of rename"},
    {.name = "cache",
     .operands = "x",
     .takes = ETCH_KW_OVER,
     .needs = ETCH_KW_OVER,
     .called = true,
     .shape = SHAPE_CACHED,
     .role = ROLE_FREE,
     .linear = LINEAR_EACH,
     .grads = GRADS({"renamed_back", "d0", "0"}),
     .serving = "append",
     .help = "keys or values that queries may see; in training a renaming"},
    {.name = "append",
     .operands = "x",
     .takes = ETCH_KW_OVER,
     .needs = ETCH_KW_OVER,
     .shape = SHAPE_CACHED,
     .role = ROLE_POINTWISE,
     .over = FACTOR_WHOLE,
     .basis = BASIS_NONE,
     .touch = TOUCH_ROWS_WRITTEN,
     .stays = true,
     .help = "what cache is when a model is served: written behind what is kept"},
    {.name = "slice",
     .operands = "x",
     .takes = ETCH_KW_OVER | ETCH_KW_TO,
     .needs = ETCH_KW_OVER | ETCH_KW_TO,
     .called = true,
     .shape = SHAPE_TOP,
     .role = ROLE_FREE,
     .over = FACTOR_WHOLE,
     .linear = LINEAR_EACH,
     .grads = GRADS({"slice_dx", "d0", "0"}),
     .help = "the first elements of a dim"},
    {.name = "slice_dx",
     .operands = "d",
     .shape = SHAPE_TARGETS,
     .role = ROLE_POINTWISE,
     .over = FACTOR_WHOLE,
     .linear = LINEAR_EACH,
     .basis = BASIS_OPERAND,
     .flop = 1,
     .touch = TOUCH_ROWS_WRITTEN,
     .help = "gradient of slice: added into the first elements"},

    /* elementwise */
    UNARY("relu", 1, "max(x, 0)"),
    UNARY("sigmoid", 4, "1/(1 + exp(-x))"),
    UNARY("silu", 5, "x sigmoid(x)"),
    UNARY("gelu", 8, "x times the normal distribution function, tanh form"),
    UNARY("tanh", 5, "hyperbolic tangent"),
    UNARY("exp", 1, "exponential"),
    UNARY("softplus", 3, "log(1 + exp(x))"),
    UNARY_DX("relu_dx", 1),
    UNARY_DX("sigmoid_dx", 7),
    UNARY_DX("silu_dx", 9),
    UNARY_DX("gelu_dx", 14),
    UNARY_DX("tanh_dx", 8),
    UNARY_DX("exp_dx", 2),
    UNARY_DX("softplus_dx", 5),
    {.name = "rope",
     .operands = "x",
     .takes = ETCH_KW_OVER,
     .needs = ETCH_KW_OVER,
     .called = true,
     .shape = SHAPE_FIRST,
     .role = ROLE_POINTWISE,
     .over = FACTOR_WHOLE,
     .linear = LINEAR_EACH,
     .basis = BASIS_RESULT,
     .flop = 3,
     .grads = GRADS({"rope_dx", "d0", "0"}),
     .help = "rotary position embedding"},
    {.name = "rope_dx",
     .operands = "d",
     .shape = SHAPE_TARGETS,
     .role = ROLE_POINTWISE,
     .over = FACTOR_WHOLE,
     .linear = LINEAR_EACH,
     .basis = BASIS_RESULT,
     .flop = 3,
     .help = "the inverse rotation"},
    {.name = "dropout",
     .operands = "x",
     .takes = ETCH_KW_NUMBER,
     .needs = ETCH_KW_NUMBER,
     .called = true,
     .shape = SHAPE_FIRST,
     .role = ROLE_POINTWISE,
     .basis = BASIS_RESULT,
     .flop = 2,
     .extra = "mask",
     .grads = GRADS({"dropout_dx", "d0 y1", "0"}),
     .help = "zero with a probability, scale the rest; keeps a mask of one byte an element"},
    {.name = "dropout_dx",
     .operands = "d mask",
     .shape = SHAPE_TARGETS,
     .role = ROLE_POINTWISE,
     .basis = BASIS_RESULT,
     .flop = 2,
     .help = "the same mask on the cotangent"},

    /* normalisation */
    {.name = "rms_norm",
     .operands = "x | g",
     .takes = ETCH_KW_OVER,
     .needs = ETCH_KW_OVER,
     .called = true,
     .shape = SHAPE_FIRST,
     .role = ROLE_KERNEL,
     .over = FACTOR_WHOLE,
     .basis = BASIS_RESULT,
     .flop = 4,
     .grads = GRADS({"rms_norm_bwd", "d0 x0 x1", "0 1"}),
     .help = "x over its root mean square, times a gain"},
    {.name = "rms_norm_bwd",
     .operands = "d x | g",
     .shape = SHAPE_TARGETS,
     .role = ROLE_KERNEL,
     .over = FACTOR_WHOLE,
     .basis = BASIS_OPERAND,
     .flop = 9,
     .help = "gradients of x and of the gain; statistics are computed again"},
    {.name = "layer_norm",
     .operands = "x | g b",
     .takes = ETCH_KW_OVER,
     .needs = ETCH_KW_OVER,
     .called = true,
     .shape = SHAPE_FIRST,
     .role = ROLE_KERNEL,
     .over = FACTOR_WHOLE,
     .basis = BASIS_RESULT,
     .flop = 5,
     .grads = GRADS({"layer_norm_bwd", "d0 x0 x1", "0 1 2"}),
     .help = "x less its mean over its deviation, times a gain, plus a bias"},
    {.name = "layer_norm_bwd",
     .operands = "d x | g",
     .shape = SHAPE_TARGETS,
     .role = ROLE_KERNEL,
     .over = FACTOR_WHOLE,
     .basis = BASIS_OPERAND,
     .flop = 9,
     .help = "gradients of x, of the gain and of the bias; statistics are computed again"},
    {.name = "softmax",
     .operands = "x",
     .takes = ETCH_KW_OVER,
     .needs = ETCH_KW_OVER,
     .called = true,
     .shape = SHAPE_FIRST,
     .role = ROLE_KERNEL,
     .over = FACTOR_WHOLE,
     .basis = BASIS_RESULT,
     .flop = 5,
     .grads = GRADS({"softmax_dx", "d0 y0", "0"}),
     .help = "exp(x) over its sum"},
    {.name = "softmax_dx",
     .operands = "d p",
     .shape = SHAPE_TARGETS,
     .role = ROLE_KERNEL,
     .over = FACTOR_WHOLE,
     .basis = BASIS_RESULT,
     .flop = 4,
     .help = "p (d - sum(d p))"},

    /* attention in one kernel: scores are never in memory; backward computes them again */
    {.name = "sdpa",
     .operands = "q k v",
     .takes = ETCH_KW_OVER | ETCH_KW_DOT | ETCH_KW_CAUSAL,
     .needs = ETCH_KW_OVER | ETCH_KW_DOT,
     .called = true,
     .shape = SHAPE_ATTEND,
     .role = ROLE_KERNEL,
     .over = FACTOR_WHOLE,
     .dot = FACTOR_WHOLE,
     .basis = BASIS_SCORES,
     .flop = 2,
     .flop_width = 2,
     .matmul = true,
     .extra = "stat",
     .grads = GRADS({"sdpa_bwd", "d0 x0 x1 x2 y0 y1", "0 1 2"}),
     .help = "scaled dot-product attention: two products over pairs of query and key"},
    {.name = "sdpa_bwd",
     .operands = "d q k v o stat",
     .shape = SHAPE_TARGETS,
     .role = ROLE_KERNEL,
     .over = FACTOR_WHOLE,
     .dot = FACTOR_WHOLE,
     .basis = BASIS_SCORES,
     .flop = 6,
     .flop_width = 4,
     .matmul = true,
     .scores_first = 1,
     .help = "gradients of q, k, v: five products, the first of them the scores again"},

    /* looking up and losses */
    {.name = "gather",
     .operands = "table ids",
     .takes = ETCH_KW_OVER,
     .needs = ETCH_KW_OVER,
     .called = true,
     .shape = SHAPE_LOOKUP,
     .role = ROLE_KERNEL,
     .basis = BASIS_NONE,
     .touch = TOUCH_ROWS_READ,
     .grads = GRADS({"scatter", "d0 x1", "0"}),
     .help = "rows of a table by index; moves only the rows that it reads"},
    {.name = "scatter",
     .operands = "d ids",
     .shape = SHAPE_TARGETS,
     .role = ROLE_KERNEL,
     .basis = BASIS_OPERAND,
     .flop = 1,
     .touch = TOUCH_ROWS_WRITTEN,
     .help = "rows added into a table by index"},
    {.name = "cross_entropy",
     .operands = "z labels",
     .takes = ETCH_KW_OVER,
     .needs = ETCH_KW_OVER,
     .called = true,
     .shape = SHAPE_LOSS,
     .role = ROLE_KERNEL,
     .over = FACTOR_STAT,
     .basis = BASIS_OPERAND,
     .flop = 5,
     .stat_reductions = 3,
     .extra = "stat",
     .grads = GRADS({"cross_entropy_dx", "d0 x0 x1 y1", "0"}),
     .help = "mean over tokens of -log softmax(z) at the label; over a sharded dim: maximum, sum and target "
             "logit are reduced"},
    {.name = "cross_entropy_dx",
     .operands = "d z labels stat",
     .shape = SHAPE_TARGETS,
     .role = ROLE_KERNEL,
     .basis = BASIS_RESULT,
     .flop = 4,
     .help = "softmax(z) less one at the label, times the scale of the mean"},

    /* what the derivations add */
    {.name = "add_cotangents",
     .operands = "d",
     .shape = SHAPE_TARGETS,
     .role = ROLE_POINTWISE,
     .linear = LINEAR_JOINT,
     .basis = BASIS_TOTAL,
     .flop = 1,
     .help = "sum of the cotangents of one value"},
    {.name = "accumulate",
     .operands = "d",
     .shape = SHAPE_TARGETS,
     .role = ROLE_POINTWISE,
     .linear = LINEAR_EACH,
     .basis = BASIS_OPERAND,
     .flop = 1,
     .help = "a gradient added into its accumulator, where no product does it"},
    {.name = "adamw",
     .operands = "gradient",
     .shape = SHAPE_TARGETS,
     .role = ROLE_KERNEL,
     .basis = BASIS_OPERAND,
     .flop = 12,
     .help = "AdamW: two moments, bias correction, decay, update"},
    {.name = "grad_norm",
     .operands = "gradient",
     .shape = SHAPE_LOSS,
     .role = ROLE_KERNEL,
     .basis = BASIS_OPERAND,
     .flop = 2,
     .help = "sum of squares of the gradients, for clipping"},

    /* moves between placements */
    {.name = "slice_shard",
     .operands = "x",
     .shape = SHAPE_FIRST,
     .role = ROLE_MOVE,
     .help = "a rank's own shard of what it holds: free"},
    {.name = "reduce_scatter",
     .operands = "x",
     .shape = SHAPE_FIRST,
     .role = ROLE_MOVE,
     .help = "partial sums to shards"},
    {.name = "all_to_all",
     .operands = "x",
     .shape = SHAPE_FIRST,
     .role = ROLE_MOVE,
     .help = "shards on one dim to shards on another"},
    {.name = "all_reduce",
     .operands = "x",
     .shape = SHAPE_FIRST,
     .role = ROLE_MOVE,
     .help = "partial sums to their sum everywhere"},
    {.name = "all_gather",
     .operands = "x",
     .shape = SHAPE_FIRST,
     .role = ROLE_MOVE,
     .help = "shards to the whole everywhere"},
};

static const char *const move_rows[ETCH_MOVE_COUNT] = {
    [ETCH_SLICE] = "slice_shard",     [ETCH_REDUCE_SCATTER] = "reduce_scatter",
    [ETCH_ALL_TO_ALL] = "all_to_all", [ETCH_ALL_REDUCE] = "all_reduce",
    [ETCH_ALL_GATHER] = "all_gather", [ETCH_SEND] = "send",
};

enum { ROW_COUNT = sizeof table / sizeof table[0] };

const etch_row *etch_row_named(const char *name)
{
    for (uint32_t i = 0; i < ROW_COUNT; i++)
        if (strcmp(table[i].name, name) == 0)
            return &table[i];
    return NULL;
}

const etch_row *etch_row_called(const char *name)
{
    const etch_row *row = etch_row_named(name);
    return row && row->called ? row : NULL;
}

const etch_row *etch_row_of_move(etch_move move)
{
    return etch_row_named(move_rows[move]);
}
const char *etch_move_name(etch_move move)
{
    return move == ETCH_NO_MOVE ? "none" : move_rows[move];
}
const etch_row *etch_row_at(uint32_t index)
{
    return index < ROW_COUNT ? &table[index] : NULL;
}
const char *etch_row_name(const etch_row *row)
{
    return row->name;
}
unsigned etch_row_takes(const etch_row *row)
{
    return row->takes;
}
unsigned etch_row_needs(const etch_row *row)
{
    return row->needs;
}
bool etch_row_is_called(const etch_row *row)
{
    return row->called;
}

void etch_row_arity(const etch_row *row, uint32_t *least, uint32_t *most)
{
    uint32_t words = 0;
    bool optional = false;
    *least = 0;
    for (const char *at = row->operands; *at; at += strspn(at, " ")) {
        size_t length = strcspn(at, " ");
        if (*at == '|')
            optional = true;
        else if (words++, !optional)
            *least = words;
        at += length;
    }
    *most = words;
}

void etch_row_describe(const etch_row *row, etch_buf *out)
{
    static const char *const per[] = {"",
                                      "dims",
                                      "element of the result",
                                      "element of the operand",
                                      "element and addition",
                                      "pair and width"};
    etch_buf_printf(out, "%-18s %-22s ", row->name, row->operands);
    if (row->basis == BASIS_NONE)
        etch_buf_puts(out, "no FLOP");
    else if (row->basis == BASIS_PRODUCT)
        etch_buf_puts(out, "2 FLOP per combination of dims when one is summed, else 1");
    else if (row->basis == BASIS_SCORES)
        etch_buf_printf(out, "%u and %u FLOP per pair and element of key and of value width", row->flop,
                        row->flop_width);
    else
        etch_buf_printf(out, "%u FLOP per %s", row->flop, per[row->basis]);
    etch_buf_printf(out, "; %s\n", row->help);
}
