/* The load of experts: a loss, made of calls of other rows. */
#include "graph/ir/ir_int.h"

/* Experts times the sum over experts of (the share of the choices that fall on one) times (its mean score):
 * 1 when both are even. The mean is over the tokens of the whole step, as in other losses, and the shares are
 * those of a microbatch, so that the sum over microbatches is the mean of their losses. */
etch_tensor *etch_compose_load_balance(const etch_call *call)
{
    etch_graph *graph = call->graph;
    etch_sym *sym = graph->sym;
    etch_tensor *p = call->ins[0], *idx = call->ins[1];
    etch_dim *const *over = call->attrs.over;
    if (!etch_shape_has(call, p, over, 1, "over") || !etch_route_fits(call, idx, over[0]))
        return NULL;
    etch_dim_list tokens = {0};
    etch_dims_add_beside(call, &tokens, p, over, 1);
    for (uint32_t i = 0; i < tokens.count; i++) {
        if (etch_has_dim(idx, tokens.at[i]))
            continue;
        etch_error(graph->diags, ETCH_E_MISSING_DIM, call->span,
                   "%s: the scores are %s, and %s has no dim %s", call->row->name,
                   etch_call_operand_text(call, p), etch_call_operand_text(call, idx), tokens.at[i]->name);
        return NULL;
    }
    if (!etch_dims_have_elements(graph, tokens.at, tokens.count))
        return NULL;
    etch_expr count = etch_int(sym, 1);
    for (uint32_t i = 0; i < tokens.count; i++)
        count = etch_mul(sym, count, tokens.at[i]->size);
    const etch_attrs along = {.over = call->attrs.over, .over_count = 1};
    etch_tensor *load =
        etch_graph_call(graph, etch_row_for(graph, ETCH_USE_LOAD), &idx, 1, &along, NULL, 0, call->span);
    etch_tensor *scores = etch_graph_reduce(graph, p, over, 1, call->span);
    etch_tensor *both = etch_graph_product(graph, load, scores, over, 0, call->span);
    return etch_graph_scale(graph, both, etch_div(sym, over[0]->size, count), call->span);
}
