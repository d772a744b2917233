/* Options of attention, of the kernel and of a softmax of scores: masks, caps, biases, sinks, pairs that only
 * the user knows. */
#include "graph/ir/ir_int.h"

/* ---- dims of the operands that may be left out --------------------------------------------------------- */

/* Operand `slot` of the call, or NULL. */
static const etch_tensor *operand(const etch_call *call, uint32_t slot)
{
    const etch_op probe = {.in_count = call->in_count, .attrs = call->attrs};
    uint32_t index = etch_op_index(&probe, slot);
    return index == UINT32_MAX ? NULL : call->ins[index];
}

static bool is_contracted(const etch_call *call, const etch_dim *dim)
{
    return etch_dim_among(call->attrs.dot, call->attrs.dot_count, dim);
}

/* Every dim of `t` is one of the scores: of the queries or (`keys` not NULL) of the keys, and not summed. */
static bool fits_scores(const etch_call *call, const etch_tensor *t, const etch_tensor *keys,
                        const char *what)
{
    etch_graph *graph = call->graph;
    for (uint32_t i = 0; t && i < t->rank; i++) {
        const etch_dim *dim = t->dims[i];
        bool known = etch_has_dim(call->ins[0], dim) || (keys && etch_has_dim(keys, dim));
        if (known && !is_contracted(call, dim))
            continue;
        etch_diag *diag = etch_error(graph->diags, ETCH_E_SHAPE_MISMATCH, call->span,
                                     "%s: the %s %s%s has dim %s, which %s lack", call->row->name, what,
                                     t->name, etch_dims_text(graph->arena, t->dims, t->rank), dim->name,
                                     keys ? "the scores" : "the rows of scores");
        etch_note(diag, call->span, "queries are %s%s, keys %s%s", call->ins[0]->name,
                  etch_dims_text(graph->arena, call->ins[0]->dims, call->ins[0]->rank), call->ins[1]->name,
                  etch_dims_text(graph->arena, call->ins[1]->dims, call->ins[1]->rank));
        return false;
    }
    return true;
}

/* ---- numbers ------------------------------------------------------------------------------------------- */

static bool wrong_number(const etch_call *call, const char *name, etch_expr number, const char *should)
{
    etch_graph *graph = call->graph;
    etch_diag *diag =
        etch_error(graph->diags, ETCH_E_CALL_ARGUMENTS, call->span, "%s: %s = %s is not known to be %s",
                   call->row->name, name, etch_expr_text(graph->sym, number), should);
    etch_help(diag, "0 or none leaves the %s out", name);
    return false;
}

/* A window is a number of keys; one that is never shorter than the sequence is none. */
static bool check_window(etch_call *call)
{
    etch_sym *sym = call->graph->sym;
    etch_expr window = call->attrs.window, keys = etch_int(sym, 1);
    if (!call->attrs.causal) {
        etch_diag *diag =
            etch_error(call->graph->diags, ETCH_E_CALL_ARGUMENTS, call->span,
                       "%s: a window counts keys back from a query, and nothing says which come before",
                       call->row->name);
        etch_help(diag, "add causal = true");
        return false;
    }
    if (etch_at_least(sym, window, keys, NULL) != ETCH_YES || etch_is_integer(sym, window, NULL) != ETCH_YES)
        return wrong_number(call, "window", window, "a whole number of keys, 1 or more");
    for (uint32_t i = 0; i < call->attrs.over_count; i++)
        keys = etch_mul(sym, keys, call->attrs.over[i]->size);
    if (etch_at_least(sym, window, keys, NULL) == ETCH_YES)
        call->attrs.window = NULL;
    return true;
}

/* ---- masks --------------------------------------------------------------------------------------------- */

/* Masks and counted pairs need to know which dim the queries are. */
static bool has_queries(const etch_call *call)
{
    etch_graph *graph = call->graph;
    const etch_tensor *q = call->ins[0];
    const etch_op probe = {.row = call->row,
                           .ins = (etch_tensor **)(uintptr_t)call->ins,
                           .in_count = call->in_count,
                           .attrs = call->attrs};
    if (etch_op_query_dim(&probe))
        return true;
    etch_diag *diag =
        etch_error(graph->diags, ETCH_E_SHAPE_MISMATCH, call->span,
                   "%s: which dim of %s%s is the sequence that %s pairs with?", call->row->name, q->name,
                   etch_dims_text(graph->arena, q->dims, q->rank), call->attrs.over[0]->name);
    etch_help(diag, "%s needs keys that were renamed from the queries' dim: x[S->S'], or cache(k, over = S)",
              call->attrs.causal ? "a causal mask" : "`pairs`");
    return false;
}

/* A head that only the keys have would be summed away unless the values have it, too. */
static bool heads_are_kept(const etch_call *call)
{
    etch_graph *graph = call->graph;
    const etch_tensor *q = call->ins[0], *k = call->ins[1], *v = call->ins[2];
    for (uint32_t i = 0; i < k->rank; i++) {
        const etch_dim *dim = k->dims[i];
        if (etch_has_dim(q, dim) || etch_has_dim(v, dim) || is_contracted(call, dim))
            continue;
        etch_error(graph->diags, ETCH_E_SHAPE_MISMATCH, call->span,
                   "%s: the keys %s%s have dim %s, which neither the queries %s%s nor the values %s%s have",
                   call->row->name, k->name, etch_dims_text(graph->arena, k->dims, k->rank), dim->name,
                   q->name, etch_dims_text(graph->arena, q->dims, q->rank), v->name,
                   etch_dims_text(graph->arena, v->dims, v->rank));
        return false;
    }
    return true;
}

/* ---- the entry points ---------------------------------------------------------------------------------- */

bool etch_attend_check(etch_call *call)
{
    etch_sym *sym = call->graph->sym;
    const etch_attrs *attrs = &call->attrs;
    if (call->row->basis == ETCH_BASIS_WINDOW) /* causal along its one sequence: nothing is paired */
        return true;
    if ((attrs->causal || attrs->pairs) && !has_queries(call))
        return false;
    if (attrs->window && !check_window(call))
        return false;
    if (attrs->cap && etch_above(sym, attrs->cap, etch_int(sym, 0), NULL) != ETCH_YES)
        return wrong_number(call, "cap", attrs->cap, "positive");
    if (call->row->basis != ETCH_BASIS_SCORES)
        return true;
    return heads_are_kept(call) &&
           fits_scores(call, operand(call, call->row->scores_first + 3), NULL, "sink") &&
           fits_scores(call, operand(call, call->row->scores_first + 4), call->ins[1], "bias");
}
