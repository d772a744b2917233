/* The state-space scan: its shape, and its FLOP by the chunked algorithm (Dao and Gu 2024, arXiv 2405.21060,
 * section 6).
 *
 * Operands u[..,S,P], dt[..,S], a[..], b[..,S,N], c[..,S,N]: heads are the dims of dt beside S, groups those
 * of b and c beside S and N, of which each group serves several heads; P is the width that u has beside the
 * heads.
 *     h[t] = exp(-dt[t] exp(a)) h[t-1] + dt[t] b[t] u[t],   y[t] = c[t] h[t]
 * Per chunk of L positions there are L(L+1)/2 pairs of a position and an earlier one, or itself. */
#include "graph/ir/ir_int.h"

/* ---- shape ------------------------------------------------------------------------------------------ */

static bool scan_error(const etch_call *call, const etch_tensor *t, const etch_dim *dim, const char *what)
{
    etch_error(call->graph->diags, ETCH_E_SHAPE_MISMATCH, call->span, "%s: %s%s has dim %s, %s",
               call->row->name, t->name, etch_dims_text(call->graph->arena, t->dims, t->rank), dim->name,
               what);
    return false;
}

/* Are the dims of `t` among those of `of`, but for `state`? */
static bool is_within(const etch_call *call, const etch_tensor *t, const etch_tensor *of)
{
    for (uint32_t i = 0; i < t->rank; i++)
        if (!etch_has_dim(of, t->dims[i]) &&
            !etch_dim_among(call->attrs.state, call->attrs.state_count, t->dims[i]))
            return scan_error(call, t, t->dims[i],
                              etch_text(call->graph->arena, "which %s%s lacks", of->name,
                                        etch_dims_text(call->graph->arena, of->dims, of->rank)));
    return true;
}

static bool chunks_fit(const etch_call *call)
{
    etch_graph *graph = call->graph;
    const etch_dim *over = call->attrs.over[0];
    if (etch_divides(graph->sym, call->attrs.chunk, over->size, NULL) == ETCH_YES)
        return true;
    etch_diag *diag = etch_error(graph->diags, ETCH_E_UNEQUAL_SIZES, call->span,
                                 "%s: chunk = %s is not known to divide %s = %s", call->row->name,
                                 etch_expr_text(graph->sym, call->attrs.chunk), over->name,
                                 etch_expr_text(graph->sym, over->size));
    etch_help(diag, "add `assume %s | %s`", etch_expr_text(graph->sym, call->attrs.chunk),
              etch_expr_text(graph->sym, over->size));
    return false;
}

static bool has_sequence_and_state(const etch_call *call)
{
    const etch_attrs *attrs = &call->attrs;
    static const bool has_state[] = {false, false, false, true, true};
    for (uint32_t i = 0; i < call->in_count; i++) {
        const etch_tensor *t = call->ins[i];
        const bool is_rate = i == 2;
        if (!is_rate && !etch_shape_has(call, t, attrs->over, 1, "over"))
            return false;
        if (is_rate && etch_has_dim(t, attrs->over[0]))
            return scan_error(call, t, attrs->over[0], "but a rate is the same at all positions");
        if (has_state[i] && !etch_shape_has(call, t, attrs->state, attrs->state_count, "state"))
            return false;
        for (uint32_t k = 0; k < attrs->state_count && !has_state[i]; k++)
            if (etch_has_dim(t, attrs->state[k]))
                return scan_error(call, t, attrs->state[k], "which is of the state");
    }
    return true;
}

/* A run that serves the model goes on from the state of the one before it, which nothing holds yet. */
static bool is_kept_between_runs(const etch_call *call)
{
    if (call->graph->serves)
        etch_error(
            call->graph->diags, ETCH_E_LATER, call->span,
            "%s while serving a model, from a state that is kept, is part of the language but is not given "
            "meaning yet",
            call->row->name);
    return call->graph->serves;
}

bool etch_shape_scan(const etch_call *call, etch_dim_list *out)
{
    const etch_tensor *u = call->ins[0], *dt = call->ins[1], *a = call->ins[2], *b = call->ins[3],
                      *c = call->ins[4];
    if (is_kept_between_runs(call))
        return false;
    if (!has_sequence_and_state(call) || !is_within(call, dt, u) || !is_within(call, a, dt) ||
        !is_within(call, b, dt) || !is_within(call, b, c) || !is_within(call, c, b) || !chunks_fit(call))
        return false;
    for (uint32_t i = 0; i < u->rank; i++)
        ETCH_PUSH(call->graph->arena, out, u->dims[i]);
    return true;
}

/* ---- FLOP ------------------------------------------------------------------------------------------- */

/* Product of the sizes of the dims of `t` that are not among those of `less`, nor `over` or `state`. */
static etch_expr beside(etch_sym *sym, const etch_op *op, const etch_tensor *t, const etch_tensor *less,
                        etch_size_fn size, const void *data)
{
    etch_expr product = etch_int(sym, 1);
    for (uint32_t i = 0; i < t->rank; i++) {
        bool known = (less && etch_has_dim(less, t->dims[i])) ||
                     etch_dim_among(op->attrs.over, op->attrs.over_count, t->dims[i]) ||
                     etch_dim_among(op->attrs.state, op->attrs.state_count, t->dims[i]);
        if (!known)
            product = etch_mul(sym, product, size(data, t->dims[i]));
    }
    return product;
}

static etch_expr times(etch_sym *sym, uint32_t constant, etch_expr a, etch_expr b)
{
    return etch_mul(sym, etch_int(sym, constant), etch_mul(sym, a, b));
}

etch_expr etch_scan_flop(etch_sym *sym, const etch_op *op, etch_size_fn size, const void *data)
{
    const etch_row *row = op->row;
    etch_tensor *const *ins = op->ins + row->scores_first;
    etch_expr heads = beside(sym, op, ins[1], NULL, size, data),
              groups = beside(sym, op, ins[3], NULL, size, data),
              width = beside(sym, op, ins[0], ins[1], size, data), state = etch_int(sym, 1);
    for (uint32_t i = 0; i < op->attrs.state_count; i++)
        state = etch_mul(sym, state, size(data, op->attrs.state[i]));
    etch_expr one = etch_int(sym, 1), chunk = op->attrs.chunk, length = size(data, op->attrs.over[0]);
    etch_expr pairs = etch_mul(sym, etch_add(sym, chunk, one), etch_ratio(sym, 1, 2)); /* for each position */
    etch_expr scores = etch_mul(sym, pairs, times(sym, row->flop, groups, state));
    etch_expr values = etch_mul(sym, pairs, times(sym, row->flop_width, heads, width));
    etch_expr cells = etch_mul(sym, heads, etch_mul(sym, state, width));
    etch_expr states = times(sym, row->flop_state, one, cells),
              handed = etch_div(sym, times(sym, row->flop_chunk, one, cells), chunk);
    etch_expr each = etch_add(sym, etch_add(sym, scores, values), etch_add(sym, states, handed));
    return etch_mul(sym, length, each);
}
