/* Attention: the kernel, and a softmax of scores. Options of both: masks, caps, biases, sinks, pairs that
 * only the user knows. FLOP: softmax 5 (maximum, subtract, exponential, add, divide), its backward 4. */
#include "graph/ir/families/family.h"

/* ---- queries ------------------------------------------------------------------------------------- */

/* Is one dim another name of the other? */
static bool are_aliases(const etch_dim *a, const etch_dim *b)
{
    return a && b && (a->alias == b || b->alias == a);
}

/* The dim of `q` that the keys `over` are paired with; NULL when it cannot be told. `k`: the keys, or
 * NULL where `q` has the scores. */
static const etch_dim *paired(const etch_attrs *attrs, const etch_tensor *q, const etch_tensor *k)
{
    const etch_dim *key = attrs->over.count == 1 ? attrs->over.at[0] : NULL, *only = NULL;
    uint32_t candidates = k ? 0 : 2; /* with several, only a renaming can tell */
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

/* Late queries see more keys than early ones under a mask, and as many as others with a window, which hides
 * keys from late queries only. */
static etch_division divide(const etch_op *op)
{
    etch_tensor *const *ins = op->ins + op->row->scores_first;
    const etch_attrs *attrs = &op->attrs;
    return (etch_division){.queries = paired(attrs, ins[0], ins[1]),
                           .counted = attrs->causal || attrs->pairs,
                           .grows = attrs->causal,
                           .uneven = attrs->window != NULL};
}

/* ---- dims of the operands that may be left out --------------------------------------------------- */

/* Operand `slot` of the call, or NULL. */
static const etch_tensor *operand(const etch_call *call, uint32_t slot)
{
    const etch_op probe = {.in_count = call->in_count, .attrs = call->attrs};
    uint32_t index = etch_op_index(&probe, slot);
    return index == UINT32_MAX ? NULL : call->ins[index];
}

/* Every dim of `t` is one of the scores: of the queries or (`keys` not NULL) of the keys, and not summed. */
static bool fits_scores(const etch_call *call, const etch_tensor *t, const etch_tensor *keys,
                        const char *what)
{
    for (uint32_t i = 0; t && i < t->rank; i++) {
        const etch_dim *dim = t->dims[i];
        bool known = etch_has_dim(call->ins[0], dim) || (keys && etch_has_dim(keys, dim));
        if (known && !etch_dim_among(call->attrs.dot, dim))
            continue;
        etch_diag *diag =
            etch_call_error(call, ETCH_E_SHAPE_MISMATCH, "the %s %s has dim %s, which %s lack", what,
                            etch_call_tensor(call, t), dim->name, keys ? "the scores" : "the rows of scores");
        return etch_note(diag, call->span, "queries are %s, keys %s", etch_call_tensor(call, call->ins[0]),
                         etch_call_tensor(call, call->ins[1]));
    }
    return true;
}

/* All keys that there have been: what a rolling cache shows is the last of them. */
static const etch_dim *all_keys(const etch_attrs *attrs)
{
    const etch_dim *keys = attrs->over.at[0];
    return keys->window_of ? keys->window_of : keys;
}

/* How many these are, with the other dims of keys; `size` NULL: as they are declared. */
static etch_expr key_count(etch_sym *sym, const etch_attrs *attrs, etch_size_fn size, const void *data)
{
    const etch_dim_view others = {attrs->over.at + 1, attrs->over.count - 1};
    const etch_dim *keys = all_keys(attrs);
    return etch_mul(sym, size ? size(data, keys) : keys->size, etch_dims_size(sym, others, size, data));
}

/* ---- numbers ------------------------------------------------------------------------------------- */

/* A rolling cache keeps what a window shows, and no more. */
static bool are_kept(const etch_call *call)
{
    const etch_attrs *attrs = &call->attrs;
    for (uint32_t i = 0; i < attrs->over.count; i++) {
        const etch_dim *keys = attrs->over.at[i];
        if (!keys->window_of ||
            (attrs->window && etch_graph_at_least(call->graph, keys->window, attrs->window)))
            continue;
        const char *kept = etch_call_number(call, keys->window);
        etch_diag *diag = etch_call_error(
            call, ETCH_E_CALL_ARGUMENTS, "a cache keeps the last %s elements of %s, but a query sees %s",
            kept, keys->name, attrs->window ? etch_call_number(call, attrs->window) : "all");
        return etch_help(diag, "give both one window: %s(.., causal = true, window = %s)", call->row->name,
                         kept);
    }
    return true;
}

/* A window is a number of keys; one that is never shorter than the sequence is none. */
static bool check_window(etch_call *call)
{
    etch_sym *sym = call->graph->sym;
    const etch_expr window = call->attrs.window;
    if (!call->attrs.causal) {
        etch_diag *diag =
            etch_call_error(call, ETCH_E_CALL_ARGUMENTS,
                            "a window counts keys back from a query, and nothing says which come before");
        return etch_help(diag, "add causal = true");
    }
    if (!etch_call_has_window(call))
        return false;
    if (etch_at_least(sym, window, key_count(sym, &call->attrs, NULL, NULL), NULL) == ETCH_YES)
        call->attrs.window = NULL;
    return true;
}

/* ---- masks --------------------------------------------------------------------------------------- */

/* Masks and counted pairs need to know which dim the queries are. `keys`: NULL where operand 0 has the
 * scores. */
static bool has_queries(const etch_call *call, const etch_tensor *keys)
{
    const etch_tensor *q = call->ins[0];
    if (paired(&call->attrs, q, keys))
        return true;
    etch_diag *diag =
        etch_call_error(call, ETCH_E_SHAPE_MISMATCH, "which dim of %s is the sequence that %s pairs with?",
                        etch_call_tensor(call, q), call->attrs.over.at[0]->name);
    return etch_help(diag,
                     "%s needs keys that were renamed from the queries' dim: x[S->S'], or cache(k, over = S)",
                     call->attrs.causal ? "a causal mask" : "`pairs`");
}

/* A head that only the keys have would be summed away unless the values have it, too. */
static bool heads_are_kept(const etch_call *call)
{
    const etch_tensor *q = call->ins[0], *k = call->ins[1], *v = call->ins[2];
    const etch_dim *dim = etch_dim_beside(k, q, v, call->attrs.dot);
    if (!dim)
        return true;
    return etch_call_refuse(call, ETCH_E_SHAPE_MISMATCH,
                            "the keys %s have dim %s, which neither the queries %s nor the values %s have",
                            etch_call_tensor(call, k), dim->name, etch_call_tensor(call, q),
                            etch_call_tensor(call, v));
}

/* ---- shapes -------------------------------------------------------------------------------------- */

/* Do mask, window and cap go together, and with the dims? Forgets a window that hides nothing. */
static bool options_fit(etch_call *call, const etch_tensor *keys)
{
    etch_sym *sym = call->graph->sym;
    const etch_attrs *attrs = &call->attrs;
    if ((attrs->causal || attrs->pairs) && !has_queries(call, keys))
        return false;
    if (!are_kept(call) || (attrs->window && !check_window(call)))
        return false;
    if (attrs->cap && !etch_graph_above(call->graph, attrs->cap, etch_int(sym, 0)))
        return etch_call_wrong_number(call, "cap", attrs->cap, "positive");
    return true;
}

/* Of the scores, which operand 0 has. */
static bool masked(etch_call *call, etch_dim_list *out)
{
    return etch_shape_first(call, out) && options_fit(call, NULL);
}

/* Queries and value width: (q + v) less over, less dot where v lacks it. */
static bool attend_dims(const etch_call *call, etch_dim_list *out)
{
    etch_graph *graph = call->graph;
    const etch_attrs *attrs = &call->attrs;
    const etch_tensor *q = call->ins[0], *k = call->ins[1], *v = call->ins[2];
    if (!etch_shape_has(call, q, attrs->dot, "dot") || !etch_shape_has(call, k, attrs->dot, "dot") ||
        !etch_shape_has(call, k, attrs->over, "over") || !etch_shape_has(call, v, attrs->over, "over"))
        return false;
    for (uint32_t i = 0; i < q->rank; i++)
        if (etch_dim_among(attrs->over, q->dims[i])) {
            etch_diag *diag =
                etch_call_error(call, ETCH_E_SHAPE_MISMATCH, "the queries %s have the dim %s of the keys",
                                etch_call_tensor(call, q), q->dims[i]->name);
            return etch_help(diag, "rename it in the keys and values: k[%s->%s']", q->dims[i]->name,
                             q->dims[i]->name);
        }
    const etch_tensor *sides[] = {q, v};
    for (uint32_t s = 0; s < 2; s++)
        for (uint32_t i = 0; i < sides[s]->rank; i++) {
            etch_dim *dim = sides[s]->dims[i];
            bool dotted = etch_dim_among(attrs->dot, dim) && !etch_has_dim(v, dim);
            if (!dotted && !etch_dim_among(attrs->over, dim))
                etch_dim_add(graph, out, dim);
        }
    return true;
}

static bool attend(etch_call *call, etch_dim_list *out)
{
    return attend_dims(call, out) && options_fit(call, call->ins[1]) && heads_are_kept(call) &&
           fits_scores(call, operand(call, 3), NULL, "sink") &&
           fits_scores(call, operand(call, 4), call->ins[1], "bias");
}

/* ---- FLOP ---------------------------------------------------------------------------------------- */

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

/* Pairs that a window of W keys hides from S queries, the last of which sees T keys: that one loses T -
 * W, each before it one less, down to T - W - (S - 1), as long as there is something to lose. */
static etch_expr hidden_by_window(etch_sym *sym, etch_expr s, etch_expr t, etch_expr w)
{
    etch_expr most = etch_sub(sym, t, w);
    if (s == etch_int(sym, 1))
        return etch_max(sym, most, etch_int(sym, 0));
    return etch_sub(sym, triangle_above(sym, most), triangle_above(sym, etch_sub(sym, most, s)));
}

/* Pairs of query and key: S*T, or S*T - S(S-1)/2 when a query sees no later key, less what a window hides. */
static etch_expr score_pairs(const etch_flop_call *call, const etch_dim *query)
{
    etch_sym *sym = call->sym;
    const etch_attrs *attrs = &call->op->attrs;
    const etch_expr keys = key_count(sym, attrs, call->size, call->data);
    if (attrs->pairs)
        return attrs->pairs;
    if (!query)
        return keys;
    etch_expr s = etch_flop_size(call, query), pairs = etch_mul(sym, s, keys);
    if (!attrs->causal)
        return pairs;
    if (call->rule->pairs != ETCH_PAIRS_EXACT) {
        etch_expr shown = attrs->window ? etch_min(sym, keys, attrs->window) : keys;
        return etch_mul(sym, etch_mul(sym, s, shown),
                        etch_ratio(sym, 1, call->rule->pairs == ETCH_PAIRS_FULL ? 1 : 2));
    }
    etch_expr seen = etch_sub(sym, pairs, triangle(sym, s));
    return attrs->window ? etch_sub(sym, seen, hidden_by_window(sym, s, keys, attrs->window)) : seen;
}

/* Contiguous parts of the queries see the keys up to their end: those before all queries (of a cache), and
 * those of the parts before. What a convention counts of a causal attention, and pairs that only the user
 * knows, are spread evenly all the same. */
static etch_expr seen(const etch_flop_call *call, etch_expr share, etch_expr parts, const etch_dim **keys)
{
    etch_sym *sym = call->sym;
    const etch_attrs *attrs = &call->op->attrs;
    if (call->rule->pairs != ETCH_PAIRS_EXACT || attrs->pairs)
        return NULL;
    const etch_dim_view other_keys = {attrs->over.at + 1, attrs->over.count - 1};
    etch_expr queries = etch_flop_size(call, etch_op_counted_queries(call->op));
    etch_expr before = etch_sub(sym, key_count(sym, attrs, call->size, call->data), queries);
    etch_expr end = etch_mul(sym, etch_add(sym, share, etch_int(sym, 1)), etch_div(sym, queries, parts));
    *keys = all_keys(attrs);
    return etch_div(sym, etch_add(sym, before, end), etch_flop_product(call, other_keys));
}

/* Is it a dim that the scores sum, or one of the keys? */
static bool is_scored(const etch_op *op, const etch_dim *dim)
{
    return etch_dim_among(op->attrs.dot, dim) || etch_dim_among(op->attrs.over, dim);
}

/* Constants: per pair, those of each element of the dot dims and of the value width. */
static etch_expr pair_flop(const etch_flop_call *call)
{
    etch_sym *sym = call->sym;
    const etch_op *op = call->op;
    const etch_row *row = op->row;
    const etch_tensor *q = op->ins[row->scores_first], *k = op->ins[row->scores_first + 1],
                      *v = op->ins[row->scores_first + 2];
    const etch_dim *query = etch_op_counted_queries(op);
    const etch_expr dot = etch_flop_product(call, op->attrs.dot);
    etch_expr width = etch_int(sym, 1), heads = etch_int(sym, 1);
    for (uint32_t i = 0; i < q->rank; i++)
        if (q->dims[i] != query && !is_scored(op, q->dims[i]))
            heads = etch_mul(sym, heads, etch_flop_size(call, q->dims[i]));
    heads = etch_mul(sym, heads, etch_flop_beside(call, k, q, op->attrs.dot, op->attrs.over));
    for (uint32_t i = 0; i < v->rank; i++) { /* what v has beside heads, batch and keys is its width */
        bool dotted = etch_dim_among(op->attrs.dot, v->dims[i]);
        bool shared = etch_has_dim(k, v->dims[i]) || etch_has_dim(q, v->dims[i]);
        if (dotted || !shared)
            width = etch_mul(sym, width, etch_flop_size(call, v->dims[i]));
    }
    const uint32_t per_dot = row->flop.constants[0] - (call->rule->once ? row->flop.again : 0);
    return etch_mul(sym, etch_mul(sym, heads, score_pairs(call, query)),
                    etch_add(sym, etch_flop_times(call, per_dot, dot),
                             etch_flop_times(call, row->flop.constants[1], width)));
}

static const etch_flop per_pair = {pair_flop, "# and # FLOP per pair and element of key and of value width"};

static bool hides_scores(const etch_op *op)
{
    return op->attrs.causal;
}

/* ---- rows ---------------------------------------------------------------------------------------- */

static const etch_row rows[] = {
    ETCH_ROW("softmax", "x", "exp(x) over its sum; a mask leaves the FLOP as they are",
             .options = ETCH_KW_CAUSAL | ETCH_KW_WINDOW, .needs = ETCH_KW_OVER, .shape = masked,
             .over = ETCH_FACTOR_WHOLE, .hides = hides_scores, .flop = ETCH_PER_RESULT(5),
             .grads = ETCH_GRADS({"softmax_dx", "d0 y0", "0"})),
    ETCH_ROW("softmax_dx", "d p", "p (d - sum(d p))", .over = ETCH_FACTOR_WHOLE, .flop = ETCH_PER_RESULT(4)),
    ETCH_ROW("sdpa", "q k v | sink bias",
             "scaled dot-product attention: two products over pairs of query and key; the scores are capped, "
             "then a bias is added; a sink is one more logit of each row",
             .options = ETCH_KW_CAUSAL | ETCH_KW_WINDOW | ETCH_KW_CAP | ETCH_KW_PAIRS,
             .needs = ETCH_KW_OVER | ETCH_KW_DOT, .shape = attend, .over = ETCH_FACTOR_WHOLE,
             .dot = ETCH_FACTOR_WHOLE, .divide = divide, .seen = seen,
             .rotates = ETCH_EXTRA_OF(1) | ETCH_EXTRA_OF(2), .flop = {.by = &per_pair, .constants = {2, 2}},
             .matmul = true, .extra = {.name = "stat", .dtype = ETCH_F32, .like = ETCH_EXTRA_OF(0)},
             .extra_reads = ETCH_EXTRA_OF(0) | ETCH_EXTRA_OF(1),
             .grads = ETCH_GRADS({"sdpa_bwd", "d0 x0 x1 x2 y0 y1 x3 x4", "0 1 2 3 4"})),
    ETCH_ROW("sdpa_bwd", "d q k v o stat | sink bias",
             "gradients of q, k, v, sink and bias: five products, the first of them the scores again",
             .over = ETCH_FACTOR_WHOLE, .dot = ETCH_FACTOR_WHOLE, .divide = divide, .seen = seen,
             .rotates = ETCH_EXTRA_OF(2) | ETCH_EXTRA_OF(3),
             .flop = {.by = &per_pair, .constants = {6, 4}, .again = 2}, .matmul = true, .scores_first = 1),
};

ETCH_FAMILY(attention);
