/* The op table: one row per op. Shapes, costs, gradients and placement of every op follow from its row.
 *
 * FLOP constants: a multiply-add is 2; one for each addition, product, comparison, division or elementary function of an element.
 *   sigmoid 4 (negate, exponential, add, divide), silu 5, tanh 5, gelu 8 (tanh form), softplus 3;
 *   rms_norm 4 (square and add, scale by the root, gain), layer_norm 5, their backward 9;
 *   softmax 5 (maximum, subtract, exponential, add, divide), its backward 4; rope 3, dropout 2; adamw 12. */
#include <string.h>

#include "graph/row_int.h"

#define GRADS(...) ((const etch_grad[]){__VA_ARGS__, {NULL, NULL, NULL}})

/* A function of one operand, element by element, and its derivative times the cotangent. */
#define UNARY(label, cost, text)                                                                                      \
    {.name = label, .operands = "x", .called = true, .shape = SHAPE_UNION, .role = ROLE_POINTWISE, .basis = BASIS_RESULT, .flop = cost,         \
     .grads = GRADS({label "_dx", "d0 x0", "0"}), .help = text}
#define UNARY_DX(label, cost)                                                                                         \
    {.name = label, .operands = "d x", .shape = SHAPE_TARGETS, .role = ROLE_POINTWISE, .basis = BASIS_RESULT, .flop = cost,                     \
     .help = "cotangent times the derivative"}

static const etch_row table[] = {
    /* products and sums: written with operators */
    {.name = "einsum", .operands = "a b", .shape = SHAPE_KEPT, .role = ROLE_PRODUCT, .linear = LINEAR_EACH, .basis = BASIS_PRODUCT, .matmul = true,
     .grads = GRADS({"einsum", "d0 others", "each"}), .help = "a * b: product; dims that the result lacks are summed"},
    {.name = "add", .operands = "a b", .shape = SHAPE_UNION, .role = ROLE_POINTWISE, .linear = LINEAR_JOINT, .basis = BASIS_RESULT, .flop = 1,
     .grads = GRADS({"sum", "d0", "each"}), .help = "a + b, broadcast by name"},
    {.name = "sub", .operands = "a b", .shape = SHAPE_UNION, .role = ROLE_POINTWISE, .linear = LINEAR_JOINT, .basis = BASIS_RESULT, .flop = 1,
     .grads = GRADS({"sum", "d0", "0"}, {"negated_sum", "d0", "1"}), .help = "a - b, broadcast by name"},
    {.name = "sum", .operands = "x", .takes = ETCH_KW_OVER, .needs = ETCH_KW_OVER, .called = true, .shape = SHAPE_KEPT, .role = ROLE_POINTWISE,
     .linear = LINEAR_EACH, .basis = BASIS_OPERAND, .flop = 1, .elide_same = true, .grads = GRADS({"broadcast", "d0", "0"}),
     .help = "sum over dims"},
    {.name = "negated_sum", .operands = "x", .shape = SHAPE_TARGETS, .role = ROLE_POINTWISE, .linear = LINEAR_EACH, .basis = BASIS_OPERAND, .flop = 1,
     .help = "minus the sum over dims"},
    {.name = "broadcast", .operands = "x", .shape = SHAPE_TARGETS, .role = ROLE_POINTWISE, .linear = LINEAR_EACH, .basis = BASIS_NONE,
     .help = "the same value along new dims"},
    {.name = "scale", .operands = "x", .takes = ETCH_KW_NUMBER, .needs = ETCH_KW_NUMBER, .called = true, .shape = SHAPE_UNION, .role = ROLE_POINTWISE,
     .linear = LINEAR_EACH, .basis = BASIS_RESULT, .flop = 1, .grads = GRADS({"scale", "d0", "0"}), .help = "x times a number"},

    /* views: no node, no FLOP */
    {.name = "identity", .operands = "x", .called = true, .shape = SHAPE_UNION, .role = ROLE_FREE, .linear = LINEAR_EACH,
     .grads = GRADS({"sum", "d0", "0"}), .help = "x itself"},
    {.name = "rename", .operands = "x", .shape = SHAPE_RENAMED, .role = ROLE_FREE, .linear = LINEAR_EACH,
     .grads = GRADS({"renamed_back", "d0", "0"}), .help = "x[S->S']: the same elements under another dim"},
    {.name = "renamed_back", .operands = "d", .shape = SHAPE_TARGETS, .role = ROLE_FREE, .linear = LINEAR_EACH, .inverts_map = true,
     .help = "gradient of rename"},
    {.name = "cache", .operands = "x", .takes = ETCH_KW_OVER, .needs = ETCH_KW_OVER, .called = true, .shape = SHAPE_CACHED, .role = ROLE_FREE,
     .linear = LINEAR_EACH, .grads = GRADS({"renamed_back", "d0", "0"}), .help = "keys or values that queries may see; in training a renaming"},
    {.name = "slice", .operands = "x", .takes = ETCH_KW_OVER | ETCH_KW_TO, .needs = ETCH_KW_OVER | ETCH_KW_TO, .called = true, .shape = SHAPE_TOP,
     .role = ROLE_FREE, .over = FACTOR_WHOLE, .linear = LINEAR_EACH, .grads = GRADS({"slice_dx", "d0", "0"}),
     .help = "the first elements of a dim"},
    {.name = "slice_dx", .operands = "d", .shape = SHAPE_TARGETS, .role = ROLE_POINTWISE, .over = FACTOR_WHOLE, .linear = LINEAR_EACH,
     .basis = BASIS_OPERAND, .flop = 1, .touch = TOUCH_ROWS_WRITTEN, .help = "gradient of slice: added into the first elements"},

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
    {.name = "rope", .operands = "x", .takes = ETCH_KW_OVER, .needs = ETCH_KW_OVER, .called = true, .shape = SHAPE_FIRST, .role = ROLE_POINTWISE,
     .over = FACTOR_WHOLE, .linear = LINEAR_EACH, .basis = BASIS_RESULT, .flop = 3, .grads = GRADS({"rope_dx", "d0", "0"}),
     .help = "rotary position embedding"},
    {.name = "rope_dx", .operands = "d", .shape = SHAPE_TARGETS, .role = ROLE_POINTWISE, .over = FACTOR_WHOLE, .linear = LINEAR_EACH,
     .basis = BASIS_RESULT, .flop = 3, .help = "the inverse rotation"},
    {.name = "dropout", .operands = "x", .takes = ETCH_KW_NUMBER, .needs = ETCH_KW_NUMBER, .called = true, .shape = SHAPE_FIRST,
     .role = ROLE_POINTWISE, .basis = BASIS_RESULT, .flop = 2, .extra = "mask", .grads = GRADS({"dropout_dx", "d0 y1", "0"}),
     .help = "zero with a probability, scale the rest; keeps a mask of one byte an element"},
    {.name = "dropout_dx", .operands = "d mask", .shape = SHAPE_TARGETS, .role = ROLE_POINTWISE, .basis = BASIS_RESULT, .flop = 2,
     .help = "the same mask on the cotangent"},

    /* normalisation */
    {.name = "rms_norm", .operands = "x | g", .takes = ETCH_KW_OVER, .needs = ETCH_KW_OVER, .called = true, .shape = SHAPE_FIRST, .role = ROLE_KERNEL,
     .over = FACTOR_WHOLE, .basis = BASIS_RESULT, .flop = 4, .grads = GRADS({"rms_norm_bwd", "d0 x0 x1", "0 1"}),
     .help = "x over its root mean square, times a gain"},
    {.name = "rms_norm_bwd", .operands = "d x | g", .shape = SHAPE_TARGETS, .role = ROLE_KERNEL, .over = FACTOR_WHOLE, .basis = BASIS_OPERAND, .flop = 9,
     .help = "gradients of x and of the gain; statistics are computed again"},
    {.name = "layer_norm", .operands = "x | g b", .takes = ETCH_KW_OVER, .needs = ETCH_KW_OVER, .called = true, .shape = SHAPE_FIRST,
     .role = ROLE_KERNEL, .over = FACTOR_WHOLE, .basis = BASIS_RESULT, .flop = 5, .grads = GRADS({"layer_norm_bwd", "d0 x0 x1", "0 1 2"}),
     .help = "x less its mean over its deviation, times a gain, plus a bias"},
    {.name = "layer_norm_bwd", .operands = "d x | g", .shape = SHAPE_TARGETS, .role = ROLE_KERNEL, .over = FACTOR_WHOLE, .basis = BASIS_OPERAND,
     .flop = 9, .help = "gradients of x, of the gain and of the bias; statistics are computed again"},
    {.name = "softmax", .operands = "x", .takes = ETCH_KW_OVER, .needs = ETCH_KW_OVER, .called = true, .shape = SHAPE_FIRST, .role = ROLE_KERNEL,
     .over = FACTOR_WHOLE, .basis = BASIS_RESULT, .flop = 5, .grads = GRADS({"softmax_dx", "d0 y0", "0"}), .help = "exp(x) over its sum"},
    {.name = "softmax_dx", .operands = "d p", .shape = SHAPE_TARGETS, .role = ROLE_KERNEL, .over = FACTOR_WHOLE, .basis = BASIS_RESULT, .flop = 4,
     .help = "p (d - sum(d p))"},

    /* attention in one kernel: scores are never in memory; backward computes them again */
    {.name = "sdpa", .operands = "q k v", .takes = ETCH_KW_OVER | ETCH_KW_DOT | ETCH_KW_CAUSAL, .needs = ETCH_KW_OVER | ETCH_KW_DOT, .called = true,
     .shape = SHAPE_ATTEND, .role = ROLE_KERNEL, .over = FACTOR_WHOLE, .dot = FACTOR_WHOLE, .basis = BASIS_SCORES, .flop = 2, .flop_width = 2,
     .matmul = true, .extra = "stat", .grads = GRADS({"sdpa_bwd", "d0 x0 x1 x2 y0 y1", "0 1 2"}),
     .help = "scaled dot-product attention: two products over pairs of query and key"},
    {.name = "sdpa_bwd", .operands = "d q k v o stat", .shape = SHAPE_TARGETS, .role = ROLE_KERNEL, .over = FACTOR_WHOLE, .dot = FACTOR_WHOLE,
     .basis = BASIS_SCORES, .flop = 6, .flop_width = 4, .matmul = true, .scores_first = 1,
     .help = "gradients of q, k, v: five products, the first of them the scores again"},

    /* looking up and losses */
    {.name = "gather", .operands = "table ids", .takes = ETCH_KW_OVER, .needs = ETCH_KW_OVER, .called = true, .shape = SHAPE_LOOKUP,
     .role = ROLE_KERNEL, .basis = BASIS_NONE, .touch = TOUCH_ROWS_READ, .grads = GRADS({"scatter", "d0 x1", "0"}),
     .help = "rows of a table by index; moves only the rows that it reads"},
    {.name = "scatter", .operands = "d ids", .shape = SHAPE_TARGETS, .role = ROLE_KERNEL, .basis = BASIS_OPERAND, .flop = 1,
     .touch = TOUCH_ROWS_WRITTEN, .help = "rows added into a table by index"},
    {.name = "cross_entropy", .operands = "z labels", .takes = ETCH_KW_OVER, .needs = ETCH_KW_OVER, .called = true, .shape = SHAPE_LOSS,
     .role = ROLE_KERNEL, .over = FACTOR_STAT, .basis = BASIS_OPERAND, .flop = 5, .stat_reductions = 3, .extra = "stat",
     .grads = GRADS({"cross_entropy_dx", "d0 x0 x1 y1", "0"}),
     .help = "mean over tokens of -log softmax(z) at the label; over a sharded dim: maximum, sum and target logit are reduced"},
    {.name = "cross_entropy_dx", .operands = "d z labels stat", .shape = SHAPE_TARGETS, .role = ROLE_KERNEL, .basis = BASIS_RESULT, .flop = 4,
     .help = "softmax(z) less one at the label, times the scale of the mean"},

    /* what the derivations add */
    {.name = "total", .operands = "d", .shape = SHAPE_TARGETS, .role = ROLE_POINTWISE, .linear = LINEAR_JOINT, .basis = BASIS_TOTAL, .flop = 1,
     .help = "sum of the cotangents of one value"},
    {.name = "accumulate", .operands = "d", .shape = SHAPE_TARGETS, .role = ROLE_POINTWISE, .linear = LINEAR_EACH, .basis = BASIS_OPERAND, .flop = 1,
     .help = "a gradient added into its accumulator, where no product does it"},
    {.name = "adamw", .operands = "gradient", .shape = SHAPE_TARGETS, .role = ROLE_KERNEL, .basis = BASIS_OPERAND, .flop = 12,
     .help = "AdamW: two moments, bias correction, decay, update"},
    {.name = "grad_norm", .operands = "gradient", .shape = SHAPE_LOSS, .role = ROLE_KERNEL, .basis = BASIS_OPERAND, .flop = 2,
     .help = "sum of squares of the gradients, for clipping"},

    /* moves between placements */
    {.name = "slice_shard", .operands = "x", .shape = SHAPE_FIRST, .role = ROLE_MOVE, .help = "a rank's own shard of what it holds: free"},
    {.name = "reduce_scatter", .operands = "x", .shape = SHAPE_FIRST, .role = ROLE_MOVE, .help = "partial sums to shards"},
    {.name = "all_to_all", .operands = "x", .shape = SHAPE_FIRST, .role = ROLE_MOVE, .help = "shards on one dim to shards on another"},
    {.name = "all_reduce", .operands = "x", .shape = SHAPE_FIRST, .role = ROLE_MOVE, .help = "partial sums to their sum everywhere"},
    {.name = "all_gather", .operands = "x", .shape = SHAPE_FIRST, .role = ROLE_MOVE, .help = "shards to the whole everywhere"},
};

static const char *const move_rows[ETCH_MOVE_COUNT] = {
    [ETCH_SLICE] = "slice_shard",
    [ETCH_REDUCE_SCATTER] = "reduce_scatter",
    [ETCH_ALL_TO_ALL] = "all_to_all",
    [ETCH_ALL_REDUCE] = "all_reduce",
    [ETCH_ALL_GATHER] = "all_gather",
};

enum { ROW_COUNT = sizeof table / sizeof table[0] };

const etch_row *etch_row_named(const char *name) {
    for (uint32_t i = 0; i < ROW_COUNT; i++)
        if (strcmp(table[i].name, name) == 0) return &table[i];
    return NULL;
}

const etch_row *etch_row_called(const char *name) {
    const etch_row *row = etch_row_named(name);
    return row && row->called ? row : NULL;
}

const etch_row *etch_row_of_move(etch_move move) { return etch_row_named(move_rows[move]); }
const char *etch_move_name(etch_move move) { return move == ETCH_NO_MOVE ? "none" : move_rows[move]; }
const etch_row *etch_row_at(uint32_t index) { return index < ROW_COUNT ? &table[index] : NULL; }
const char *etch_row_name(const etch_row *row) { return row->name; }
unsigned etch_row_takes(const etch_row *row) { return row->takes; }
unsigned etch_row_needs(const etch_row *row) { return row->needs; }
bool etch_row_is_called(const etch_row *row) { return row->called; }

void etch_row_arity(const etch_row *row, uint32_t *least, uint32_t *most) {
    uint32_t words = 0;
    bool optional = false;
    *least = 0;
    for (const char *at = row->operands; *at; at += strspn(at, " ")) {
        size_t length = strcspn(at, " ");
        if (*at == '|') optional = true;
        else if (words++, !optional) *least = words;
        at += length;
    }
    *most = words;
}

void etch_row_describe(const etch_row *row, etch_buf *out) {
    static const char *const per[] = {"",           "dims", "element of the result", "element of the operand", "element and addition",
                                      "pair and width"};
    etch_buf_printf(out, "%-18s %-22s ", row->name, row->operands);
    if (row->basis == BASIS_NONE) etch_buf_puts(out, "no FLOP");
    else if (row->basis == BASIS_PRODUCT) etch_buf_puts(out, "2 FLOP per combination of dims when one is summed, else 1");
    else if (row->basis == BASIS_SCORES)
        etch_buf_printf(out, "%u and %u FLOP per pair and element of key and of value width", row->flop, row->flop_width);
    else etch_buf_printf(out, "%u FLOP per %s", row->flop, per[row->basis]);
    etch_buf_printf(out, "; %s\n", row->help);
}

/* ---- questions about one op ------------------------------------------------------------------------------------ */

bool etch_dim_among(etch_dim *const *dims, uint32_t count, const etch_dim *dim) {
    for (uint32_t i = 0; i < count; i++)
        if (dims[i] == dim) return true;
    return false;
}

bool etch_has_dim(const etch_tensor *tensor, const etch_dim *dim) { return etch_dim_among(tensor->dims, tensor->rank, dim); }

etch_factor etch_op_factor(const etch_op *op, const etch_dim *dim) {
    if (etch_dim_among(op->attrs.over, op->attrs.over_count, dim)) return op->row->over;
    if (etch_dim_among(op->attrs.dot, op->attrs.dot_count, dim)) return op->row->dot;
    return FACTOR_PASS;
}

/* Dims of an op's operands that its first result lacks. */
static bool sums_a_dim(const etch_op *op) {
    for (uint32_t i = 0; i < op->in_count; i++)
        for (uint32_t d = 0; d < op->ins[i]->rank; d++)
            if (!etch_has_dim(op->outs[0], op->ins[i]->dims[d])) return true;
    return false;
}

etch_role etch_op_role(const etch_op *op) {
    if (op->row->role != ROLE_PRODUCT) return op->row->role;
    return op->in_count > 1 && sums_a_dim(op) ? ROLE_KERNEL : ROLE_POINTWISE;
}

bool etch_op_is_matmul(const etch_op *op) {
    if (!op->row->matmul) return false;
    if (op->row->role != ROLE_PRODUCT) return true;
    if (op->in_count != 2) return false;
    const etch_tensor *a = op->ins[0], *b = op->ins[1], *y = op->outs[0];
    bool m = false, n = false, k = false;
    for (uint32_t i = 0; i < a->rank; i++) {
        bool other = etch_has_dim(b, a->dims[i]), kept = etch_has_dim(y, a->dims[i]);
        m = m || (!other && kept);
        k = k || (other && !kept);
    }
    for (uint32_t i = 0; i < b->rank; i++) n = n || (!etch_has_dim(a, b->dims[i]) && etch_has_dim(y, b->dims[i]));
    return m && n && k;
}

const etch_dim *etch_op_query_dim(const etch_op *op) {
    const etch_tensor *q = op->ins[op->row->scores_first], *k = op->ins[op->row->scores_first + 1];
    const etch_dim *only = NULL;
    uint32_t candidates = 0; /* with several, only a renaming can tell */
    for (uint32_t i = 0; i < q->rank; i++) {
        if (etch_has_dim(k, q->dims[i])) continue;
        if (op->attrs.over_count == 1 && op->attrs.over[0]->twin == q->dims[i]) return q->dims[i];
        only = q->dims[i];
        candidates++;
    }
    return candidates == 1 ? only : NULL;
}

/* ---- costs of one op ---------------------------------------------------------------------------------------------- */

etch_expr etch_elements(etch_sym *sym, const etch_tensor *tensor, etch_size_fn size, const void *data) {
    etch_expr count = etch_int(sym, 1);
    for (uint32_t i = 0; i < tensor->rank; i++) count = etch_mul(sym, count, size(data, tensor->dims[i]));
    return count;
}

/* Product of all dims of operands and results; `*summed`: the first result lacks one. */
static etch_expr all_dims(etch_sym *sym, const etch_op *op, etch_size_fn size, const void *data) {
    etch_expr count = etch_elements(sym, op->outs[0], size, data);
    for (uint32_t i = 0; i < op->in_count; i++)
        for (uint32_t d = 0; d < op->ins[i]->rank; d++) {
            etch_dim *dim = op->ins[i]->dims[d];
            bool counted = etch_has_dim(op->outs[0], dim);
            for (uint32_t j = 0; j < i && !counted; j++) counted = etch_has_dim(op->ins[j], dim);
            if (!counted) count = etch_mul(sym, count, size(data, dim));
        }
    return count;
}

/* Pairs of query and key: S*T, or S*T - S(S-1)/2 when a query sees no later key. */
static etch_expr score_pairs(etch_sym *sym, const etch_op *op, const etch_dim *query, etch_size_fn size, const void *data) {
    etch_expr keys = etch_int(sym, 1);
    for (uint32_t i = 0; i < op->attrs.over_count; i++) keys = etch_mul(sym, keys, size(data, op->attrs.over[i]));
    if (!query) return keys;
    etch_expr s = size(data, query), pairs = etch_mul(sym, s, keys);
    if (!op->attrs.causal) return pairs;
    etch_expr later = etch_mul(sym, etch_mul(sym, s, etch_sub(sym, s, etch_int(sym, 1))), etch_ratio(sym, 1, 2));
    return etch_sub(sym, pairs, later);
}

/* Is it a dim that the scores sum, or one of the keys? */
static bool is_scored(const etch_op *op, const etch_dim *dim) {
    return etch_dim_among(op->attrs.dot, op->attrs.dot_count, dim) || etch_dim_among(op->attrs.over, op->attrs.over_count, dim);
}

static etch_expr scores_flop(etch_sym *sym, const etch_op *op, etch_size_fn size, const void *data) {
    const etch_tensor *q = op->ins[op->row->scores_first], *k = op->ins[op->row->scores_first + 1], *v = op->ins[op->row->scores_first + 2];
    const etch_dim *query = op->attrs.causal ? etch_op_query_dim(op) : NULL;
    etch_expr dot = etch_int(sym, 1), width = etch_int(sym, 1), rows = etch_int(sym, 1);
    for (uint32_t i = 0; i < op->attrs.dot_count; i++) dot = etch_mul(sym, dot, size(data, op->attrs.dot[i]));
    for (uint32_t i = 0; i < q->rank; i++)
        if (q->dims[i] != query && !is_scored(op, q->dims[i])) rows = etch_mul(sym, rows, size(data, q->dims[i]));
    for (uint32_t i = 0; i < k->rank; i++)
        if (!etch_has_dim(q, k->dims[i]) && !is_scored(op, k->dims[i])) rows = etch_mul(sym, rows, size(data, k->dims[i]));
    for (uint32_t i = 0; i < v->rank; i++) { /* what v has beside heads, batch and keys is its width */
        bool dotted = etch_dim_among(op->attrs.dot, op->attrs.dot_count, v->dims[i]);
        bool shared = etch_has_dim(k, v->dims[i]) || etch_has_dim(q, v->dims[i]);
        if (dotted || !shared) width = etch_mul(sym, width, size(data, v->dims[i]));
    }
    etch_expr pairs = etch_mul(sym, rows, score_pairs(sym, op, query, size, data));
    etch_expr work = etch_add(sym, etch_mul(sym, etch_int(sym, op->row->flop), dot), etch_mul(sym, etch_int(sym, op->row->flop_width), width));
    return etch_mul(sym, pairs, work);
}

etch_expr etch_op_flop(etch_sym *sym, const etch_op *op, etch_size_fn size, const void *data) {
    etch_expr c = etch_int(sym, op->row->flop);
    switch (op->row->basis) {
    case BASIS_NONE: return etch_int(sym, 0);
    case BASIS_PRODUCT: return etch_mul(sym, etch_int(sym, sums_a_dim(op) ? 2 : 1), all_dims(sym, op, size, data));
    case BASIS_RESULT: return etch_mul(sym, c, etch_elements(sym, op->outs[0], size, data));
    case BASIS_OPERAND: return etch_mul(sym, c, etch_elements(sym, op->ins[0], size, data));
    case BASIS_TOTAL:
        return etch_mul(sym, etch_int(sym, (int64_t)op->in_count - 1), etch_elements(sym, op->outs[0], size, data));
    case BASIS_SCORES: return scores_flop(sym, op, size, data);
    }
    return NULL;
}
