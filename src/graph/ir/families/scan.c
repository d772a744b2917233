/* The state-space scan: its shape, and its FLOP by the chunked algorithm (Dao and Gu 2024, arXiv
 * 2405.21060, section 6).
 *
 * Operands u[..,S,P], dt[..,S], a[..], b[..,S,N], c[..,S,N]: heads are the dims of dt beside S, groups
 * those of b and c beside S and N, of which each group serves several heads; P is the width that u has
 * beside the heads.
 *     h[t] = exp(-dt[t] exp(a)) h[t-1] + dt[t] b[t] u[t],   y[t] = c[t] h[t]
 * Per chunk of L positions there are L(L+1)/2 pairs of a position and an earlier one, or itself.
 *
 * In one kernel, chunk by chunk. Forward: products c b and those with u over pairs in a chunk; the state
 * that a chunk adds and what the state before it gives, at each position; states carried to the next
 * chunk. Backward computes the products c b and the states again; each other product has two gradients,
 * and so has carrying. The decays are not counted, like what is between the products of an attention. */
#include "graph/ir/families/family.h"

/* ---- shape --------------------------------------------------------------------------------------- */

static bool scan_error(const etch_call *call, const etch_tensor *t, const etch_dim *dim, const char *what)
{
    return etch_call_refuse(call, ETCH_E_SHAPE_MISMATCH, "%s has dim %s, %s", etch_call_tensor(call, t),
                            dim->name, what);
}

/* Are the dims of `t` among those of `of`, but for `state`? */
static bool is_within(const etch_call *call, const etch_tensor *t, const etch_tensor *of)
{
    const etch_dim *dim = etch_dim_beside(t, of, NULL, call->attrs.state);
    return !dim || etch_call_refuse(call, ETCH_E_SHAPE_MISMATCH, "%s has dim %s, which %s lacks",
                                    etch_call_tensor(call, t), dim->name, etch_call_tensor(call, of));
}

static bool chunks_fit(const etch_call *call)
{
    etch_graph *graph = call->graph;
    const etch_dim *over = call->attrs.over.at[0];
    if (etch_divides(graph->sym, call->attrs.chunk, over->size, NULL) == ETCH_YES)
        return true;
    etch_diag *diag = etch_call_error(call, ETCH_E_UNEQUAL_SIZES, "chunk = %s is not known to divide %s = %s",
                                      etch_call_number(call, call->attrs.chunk), over->name,
                                      etch_call_number(call, over->size));
    return etch_help(diag, "add `assume %s | %s`", etch_call_number(call, call->attrs.chunk),
                     etch_call_number(call, over->size));
}

static bool has_sequence_and_state(const etch_call *call)
{
    const etch_attrs *attrs = &call->attrs;
    static const bool has_state[] = {false, false, false, true, true};
    for (uint32_t i = 0; i < call->in_count; i++) {
        const etch_tensor *t = call->ins[i];
        const bool is_rate = i == 2;
        if (!is_rate && !etch_shape_has(call, t, attrs->over, "over"))
            return false;
        if (is_rate && etch_has_dim(t, attrs->over.at[0]))
            return scan_error(call, t, attrs->over.at[0], "but a rate is the same at all positions");
        if (has_state[i] && !etch_shape_has(call, t, attrs->state, "state"))
            return false;
        for (uint32_t k = 0; k < attrs->state.count && !has_state[i]; k++)
            if (etch_has_dim(t, attrs->state.at[k]))
                return scan_error(call, t, attrs->state.at[k], "which is of the state");
    }
    return true;
}

static bool scan(etch_call *call, etch_dim_list *out)
{
    const etch_tensor *u = call->ins[0], *dt = call->ins[1], *a = call->ins[2], *b = call->ins[3],
                      *c = call->ins[4];
    if (!has_sequence_and_state(call) || !is_within(call, dt, u) || !is_within(call, a, dt) ||
        !is_within(call, b, dt) || !is_within(call, b, c) || !is_within(call, c, b) || !chunks_fit(call))
        return false;
    etch_dims_add_beside(call, out, u, (etch_dim_view){0});
    return true;
}

/* Of a first order: decays have dims of what is added. */
static bool recurrence(etch_call *call, etch_dim_list *out)
{
    const etch_tensor *a = call->ins[0], *b = call->ins[1];
    if (!etch_shape_has(call, a, call->attrs.over, "over") ||
        !etch_shape_has(call, b, call->attrs.over, "over") || !is_within(call, a, b))
        return false;
    etch_dims_add_beside(call, out, b, (etch_dim_view){0});
    return true;
}

/* ---- FLOP ---------------------------------------------------------------------------------------- */

/* Constants: for each pair of positions in a chunk, those of each element of the state and group and of
 * the width; for each element of the state of each head, those of each position and of each chunk. */
static etch_expr chunk_flop(const etch_flop_call *call)
{
    etch_sym *sym = call->sym;
    const uint32_t *constants = call->op->row->flop.constants;
    const etch_attrs *attrs = &call->op->attrs;
    etch_tensor *const *ins = call->op->ins + call->op->row->scores_first;
    const etch_dim_view over = attrs->over, kept = attrs->state;
    etch_expr heads = etch_flop_beside(call, ins[1], NULL, over, kept),
              groups = etch_flop_beside(call, ins[3], NULL, over, kept),
              width = etch_flop_beside(call, ins[0], ins[1], over, kept),
              state = etch_flop_product(call, attrs->state);
    etch_expr one = etch_int(sym, 1), chunk = attrs->chunk, length = etch_flop_size(call, attrs->over.at[0]);
    etch_expr pairs = etch_mul(sym, etch_add(sym, chunk, one), etch_ratio(sym, 1, 2)); /* for each position */
    etch_expr scores =
        etch_mul(sym, pairs, etch_flop_times(call, constants[0], etch_mul(sym, groups, state)));
    etch_expr values = etch_mul(sym, pairs, etch_flop_times(call, constants[1], etch_mul(sym, heads, width)));
    etch_expr cells = etch_mul(sym, heads, etch_mul(sym, state, width));
    etch_expr states = etch_flop_times(call, constants[2], cells),
              carried = etch_div(sym, etch_flop_times(call, constants[3], cells), chunk);
    etch_expr each = etch_add(sym, etch_add(sym, scores, values), etch_add(sym, states, carried));
    return etch_mul(sym, length, each);
}

static const etch_flop per_chunk = {
    chunk_flop,
    "# and # FLOP per pair in a chunk and element of the state of a group and of the width of a head, # per "
    "position and # per chunk and element of the state of a head"};

/* ---- rows ---------------------------------------------------------------------------------------- */

#define SSD_COLUMNS                                                                            \
    .needs = ETCH_KW_OVER | ETCH_KW_STATE | ETCH_KW_CHUNK, .one = ETCH_KW_OVER, .shape = scan, \
    .over = ETCH_FACTOR_WHOLE, .state = ETCH_FACTOR_WHOLE,                                     \
    .flop = {.by = &per_chunk, .constants = {2, 2, 4, 2}}, .matmul = true

static const etch_row rows[] = {
    ETCH_ROW("scan", "a b", "h = a h + b from place to place, element by element", .needs = ETCH_KW_OVER,
             .one = ETCH_KW_OVER, .shape = recurrence, .over = ETCH_FACTOR_WHOLE, .flop = ETCH_PER_RESULT(2),
             .grads = ETCH_GRADS({"scan_bwd", "d0 x0 y0", "0 1"}), .serving = "scan_from"),
    ETCH_ROW("scan_bwd", "d a y", "gradients of both operands: a scan that goes back, and products",
             .over = ETCH_FACTOR_WHOLE, .flop = ETCH_PER_OPERAND(4)),
    ETCH_FROM_STATE("scan", "a b", "scan when a model is served: from the state that the run before has left",
                    ETCH_EXTRA_AS_RESULT, .needs = ETCH_KW_OVER, .one = ETCH_KW_OVER, .shape = recurrence,
                    .over = ETCH_FACTOR_WHOLE, .flop = ETCH_PER_RESULT(2)),
    ETCH_ROW("ssd", "u dt a b c", "state-space duality (Mamba-2): h = exp(-dt exp(a)) h + dt b u, y = c h",
             SSD_COLUMNS, .serving = "ssd_from",
             .grads = ETCH_GRADS({"ssd_bwd", "d0 x0 x1 x2 x3 x4", "0 1 2 3 4"})),
    ETCH_ROW("ssd_bwd", "d u dt a b c", "gradients of all operands; scores and states are computed again",
             .over = ETCH_FACTOR_WHOLE, .state = ETCH_FACTOR_WHOLE,
             .flop = {.by = &per_chunk, .constants = {6, 4, 10, 6}}, .matmul = true, .scores_first = 1),
    ETCH_FROM_STATE("ssd", "u dt a b c",
                    "ssd when a model is served: from the state that the run before has left",
                    ETCH_EXTRA_OF(0), SSD_COLUMNS),
};

ETCH_FAMILY(scan);
