/* Questions about one op that its row answers: factors, roles, FLOP. */
#include "graph/ir/ir_int.h"

/* ---- questions about one op ------------------------------------------------------------------------- */

const etch_tensor *etch_origin(const etch_tensor *tensor)
{
    while (tensor->of)
        tensor = tensor->of;
    return tensor;
}

etch_factor etch_op_factor(const etch_op *op, const etch_dim *dim)
{
    if (etch_dim_among(op->attrs.over, op->attrs.over_count, dim))
        return op->row->over;
    if (etch_dim_among(op->attrs.dot, op->attrs.dot_count, dim))
        return op->row->dot;
    if (etch_dim_among(op->attrs.state, op->attrs.state_count, dim))
        return op->row->state;
    return ETCH_FACTOR_PASS;
}

uint32_t etch_op_index(const etch_op *op, uint32_t slot)
{
    uint32_t index = slot;
    if (op->attrs.absent & (1u << slot))
        return UINT32_MAX;
    for (uint32_t i = 0; i < slot; i++)
        index -= (op->attrs.absent >> i) & 1u;
    return index < op->in_count ? index : UINT32_MAX;
}

/* Dims of an op's operands that its first result lacks. */
static bool sums_a_dim(const etch_op *op)
{
    for (uint32_t i = 0; i < op->in_count; i++)
        for (uint32_t d = 0; d < op->ins[i]->rank; d++)
            if (!etch_has_dim(op->outs[0], op->ins[i]->dims[d]))
                return true;
    return false;
}

etch_role etch_op_role(const etch_op *op)
{
    if (op->row->role != ETCH_ROLE_PRODUCT)
        return op->row->role;
    return op->in_count > 1 && sums_a_dim(op) ? ETCH_ROLE_KERNEL : ETCH_ROLE_POINTWISE;
}

bool etch_op_is_view(const etch_op *op)
{
    return op->row->view;
}

static const etch_dim *mapped(etch_dim *const *from, etch_dim *const *to, uint32_t count, const etch_dim *dim)
{
    for (uint32_t i = 0; dim && i < count; i++)
        if (from[i] == dim)
            return to[i];
    return dim;
}

const etch_dim *etch_op_dim_after(const etch_op *op, const etch_dim *dim)
{
    return mapped(op->attrs.from, op->attrs.to, op->attrs.map_count, dim);
}

const etch_dim *etch_op_dim_before(const etch_op *op, const etch_dim *dim)
{
    return mapped(op->attrs.to, op->attrs.from, op->attrs.map_count, dim);
}

const etch_dim *etch_op_dim_linked(const etch_op *op, const etch_dim *dim)
{
    return op->row->links ? etch_op_dim_after(op, dim) : dim;
}

bool etch_op_is_matmul(const etch_op *op)
{
    if (!op->row->matmul)
        return false;
    if (op->row->role != ETCH_ROLE_PRODUCT)
        return true;
    if (op->in_count != 2)
        return false;
    const etch_tensor *a = op->ins[0], *b = op->ins[1], *y = op->outs[0];
    bool m = false, n = false, k = false;
    for (uint32_t i = 0; i < a->rank; i++) {
        bool other = etch_has_dim(b, a->dims[i]), kept = etch_has_dim(y, a->dims[i]);
        m = m || (!other && kept);
        k = k || (other && !kept);
    }
    for (uint32_t i = 0; i < b->rank; i++)
        n = n || (!etch_has_dim(a, b->dims[i]) && etch_has_dim(y, b->dims[i]));
    return m && n && k;
}

/* Is one dim another name of the other? */
static bool are_aliases(const etch_dim *a, const etch_dim *b)
{
    return a && b && (a->alias == b || b->alias == a);
}

const etch_dim *etch_op_query_dim(const etch_op *op)
{
    const etch_dim *key = op->attrs.over_count == 1 ? op->attrs.over[0] : NULL, *only = NULL;
    const bool scores =
        op->row->basis != ETCH_BASIS_SCORES; /* operand 0 has them: only a renaming can tell */
    const etch_tensor *q = op->ins[op->row->scores_first],
                      *k = scores ? NULL : op->ins[op->row->scores_first + 1];
    uint32_t candidates = scores ? 2 : 0; /* with several, only a renaming can tell */
    for (uint32_t i = 0; i < q->rank; i++) {
        if (k && etch_has_dim(k, q->dims[i]))
            continue;
        if (are_aliases(key, q->dims[i]))
            return q->dims[i];
        only = q->dims[i];
        candidates++;
    }
    return candidates == 1 ? only : NULL;
}

bool etch_op_is_even(const etch_op *op, const etch_dim *dim)
{
    return op->row->basis != ETCH_BASIS_SCORES || !op->attrs.window || etch_op_query_dim(op) != dim;
}

const etch_dim *etch_op_counted_queries(const etch_op *op)
{
    const bool counted = op->row->basis == ETCH_BASIS_SCORES && (op->attrs.causal || op->attrs.pairs);
    return counted ? etch_op_query_dim(op) : NULL;
}

/* ---- costs of one op -------------------------------------------------------------------------------- */

etch_expr etch_elements(etch_sym *sym, const etch_tensor *tensor, etch_size_fn size, const void *data)
{
    etch_expr count = etch_int(sym, 1);
    for (uint32_t i = 0; i < tensor->rank; i++)
        count = etch_mul(sym, count, size(data, tensor->dims[i]));
    return count;
}

/* Product of all dims of operands and results; `*summed`: the first result lacks one. */
static etch_expr all_dims(etch_sym *sym, const etch_op *op, etch_size_fn size, const void *data)
{
    etch_expr count = etch_elements(sym, op->outs[0], size, data);
    for (uint32_t i = 0; i < op->in_count; i++)
        for (uint32_t d = 0; d < op->ins[i]->rank; d++) {
            etch_dim *dim = op->ins[i]->dims[d];
            bool counted = etch_has_dim(op->outs[0], dim);
            for (uint32_t j = 0; j < i && !counted; j++)
                counted = etch_has_dim(op->ins[j], dim);
            if (!counted)
                count = etch_mul(sym, count, size(data, dim));
        }
    return count;
}

/* Sizes, but 1 for a dim that shorter ones replace: a window stops at the places of those. */
typedef struct stops {
    const etch_op *op;
    etch_sym *sym;
    etch_size_fn size;
    const void *data;
} stops;

static etch_expr size_of_stops(const void *data, const etch_dim *dim)
{
    const stops *s = data;
    return etch_dim_among(s->op->attrs.from, s->op->attrs.map_count, dim) ? etch_int(s->sym, 1)
                                                                          : s->size(s->data, dim);
}

static etch_expr window_flop(etch_sym *sym, const etch_op *op, etch_size_fn size, const void *data)
{
    const stops s = {op, sym, size, data};
    etch_expr count = etch_mul(sym, etch_int(sym, op->row->flop), all_dims(sym, op, size_of_stops, &s));
    for (uint32_t i = 0; op->attrs.size && i < op->attrs.over_count; i++)
        count = etch_mul(sym, count, op->attrs.size);
    return count;
}

/* 0 + 1 + .. + (n - 1) */
static etch_expr triangle(etch_sym *sym, etch_expr n)
{
    return etch_mul(sym, etch_mul(sym, n, etch_sub(sym, n, etch_int(sym, 1))), etch_ratio(sym, 1, 2));
}

/* 0 + 1 + .. + n of what is positive of n */
static etch_expr triangle_above(etch_sym *sym, etch_expr n)
{
    return triangle(sym, etch_add(sym, etch_max(sym, n, etch_int(sym, 0)), etch_int(sym, 1)));
}

/* Pairs that a window of W keys hides from S queries, the last of which sees T keys: that one loses T - W,
 * each before it one less, down to T - W - (S - 1), as long as there is something to lose. */
static etch_expr hidden_by_window(etch_sym *sym, etch_expr s, etch_expr t, etch_expr w)
{
    etch_expr most = etch_sub(sym, t, w);
    if (s == etch_int(sym, 1))
        return etch_max(sym, most, etch_int(sym, 0));
    return etch_sub(sym, triangle_above(sym, most), triangle_above(sym, etch_sub(sym, most, s)));
}

/* Pairs of query and key: S*T, or S*T - S(S-1)/2 when a query sees no later key, less what a window hides. */
static etch_expr score_pairs(etch_sym *sym, const etch_op *op, const etch_flop_rule *rule,
                             const etch_dim *query, etch_size_fn size, const void *data)
{
    etch_expr keys = etch_int(sym, 1);
    for (uint32_t i = 0; i < op->attrs.over_count; i++)
        keys = etch_mul(sym, keys, size(data, op->attrs.over[i]));
    if (op->attrs.pairs)
        return op->attrs.pairs;
    if (!query)
        return keys;
    etch_expr s = size(data, query), pairs = etch_mul(sym, s, keys);
    if (!op->attrs.causal)
        return pairs;
    if (rule->pairs != ETCH_PAIRS_EXACT) {
        etch_expr shown = op->attrs.window ? etch_min(sym, keys, op->attrs.window) : keys;
        return etch_mul(sym, etch_mul(sym, s, shown),
                        etch_ratio(sym, 1, rule->pairs == ETCH_PAIRS_FULL ? 1 : 2));
    }
    etch_expr seen = etch_sub(sym, pairs, triangle(sym, s));
    return op->attrs.window ? etch_sub(sym, seen, hidden_by_window(sym, s, keys, op->attrs.window)) : seen;
}

/* Is it a dim that the scores sum, or one of the keys? */
static bool is_scored(const etch_op *op, const etch_dim *dim)
{
    return etch_dim_among(op->attrs.dot, op->attrs.dot_count, dim) ||
           etch_dim_among(op->attrs.over, op->attrs.over_count, dim);
}

static etch_expr scores_flop(etch_sym *sym, const etch_op *op, const etch_flop_rule *rule, etch_size_fn size,
                             const void *data)
{
    const etch_tensor *q = op->ins[op->row->scores_first], *k = op->ins[op->row->scores_first + 1],
                      *v = op->ins[op->row->scores_first + 2];
    const etch_dim *query = etch_op_counted_queries(op);
    etch_expr dot = etch_int(sym, 1), width = etch_int(sym, 1), rows = etch_int(sym, 1);
    for (uint32_t i = 0; i < op->attrs.dot_count; i++)
        dot = etch_mul(sym, dot, size(data, op->attrs.dot[i]));
    for (uint32_t i = 0; i < q->rank; i++)
        if (q->dims[i] != query && !is_scored(op, q->dims[i]))
            rows = etch_mul(sym, rows, size(data, q->dims[i]));
    for (uint32_t i = 0; i < k->rank; i++)
        if (!etch_has_dim(q, k->dims[i]) && !is_scored(op, k->dims[i]))
            rows = etch_mul(sym, rows, size(data, k->dims[i]));
    for (uint32_t i = 0; i < v->rank; i++) { /* what v has beside heads, batch and keys is its width */
        bool dotted = etch_dim_among(op->attrs.dot, op->attrs.dot_count, v->dims[i]);
        bool shared = etch_has_dim(k, v->dims[i]) || etch_has_dim(q, v->dims[i]);
        if (dotted || !shared)
            width = etch_mul(sym, width, size(data, v->dims[i]));
    }
    etch_expr pairs = etch_mul(sym, rows, score_pairs(sym, op, rule, query, size, data));
    const uint32_t per_dot = op->row->flop - (rule->once ? op->row->again : 0);
    etch_expr work = etch_add(sym, etch_mul(sym, etch_int(sym, per_dot), dot),
                              etch_mul(sym, etch_int(sym, op->row->flop_width), width));
    return etch_mul(sym, pairs, work);
}

static etch_expr flop_of_row(etch_sym *sym, const etch_op *op, const etch_flop_rule *rule, etch_size_fn size,
                             const void *data)
{
    etch_expr c = etch_int(sym, op->row->flop);
    switch (op->row->basis) {
    case ETCH_BASIS_NONE:
        return etch_int(sym, 0);
    case ETCH_BASIS_PRODUCT:
        return etch_mul(sym, etch_int(sym, sums_a_dim(op) ? 2 : 1), all_dims(sym, op, size, data));
    case ETCH_BASIS_RESULT:
        return etch_mul(sym, c, etch_elements(sym, op->outs[0], size, data));
    case ETCH_BASIS_OPERAND:
        return etch_mul(sym, c, etch_elements(sym, op->ins[0], size, data));
    case ETCH_BASIS_SECOND:
        return etch_mul(sym, c, etch_elements(sym, op->ins[1], size, data));
    case ETCH_BASIS_DIMS:
        return etch_mul(sym, c, all_dims(sym, op, size, data));
    case ETCH_BASIS_TOTAL:
        return etch_mul(sym, etch_int(sym, (int64_t)op->in_count - 1),
                        etch_elements(sym, op->outs[0], size, data));
    case ETCH_BASIS_WINDOW:
        return window_flop(sym, op, size, data);
    case ETCH_BASIS_SCAN:
        return etch_scan_flop(sym, op, size, data);
    case ETCH_BASIS_SCORES:
        return scores_flop(sym, op, rule, size, data);
    }
    return NULL;
}

/* Sizes under a rule. */
typedef struct narrowed {
    etch_sym *sym;
    const bool *single;
    etch_size_fn size;
    const void *data;
} narrowed;

static etch_expr narrowed_size(const void *data, const etch_dim *dim)
{
    const narrowed *n = data;
    return n->single[dim->id] ? etch_int(n->sym, 1) : n->size(n->data, dim);
}

etch_expr etch_op_flop_by(etch_sym *sym, const etch_op *op, const etch_flop_rule *rule, etch_size_fn size,
                          const void *data)
{
    const narrowed n = {sym, rule->single, size, data};
    if (rule->single) {
        size = narrowed_size;
        data = &n;
    }
    if (rule->product)
        return etch_mul(sym, etch_int(sym, 2), all_dims(sym, op, size, data));
    if (rule->element)
        return etch_mul(sym, etch_int(sym, rule->element), etch_elements(sym, op->ins[0], size, data));
    etch_expr flop = flop_of_row(sym, op, rule, size, data);
    return rule->half ? etch_mul(sym, flop, etch_ratio(sym, 1, 2)) : flop;
}

etch_expr etch_op_flop(etch_sym *sym, const etch_op *op, etch_size_fn size, const void *data)
{
    const etch_flop_rule as_executed = {0};
    return etch_op_flop_by(sym, op, &as_executed, size, data);
}
