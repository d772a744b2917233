/* The same elements under other dims: no node and no FLOP. What runs that serve a model keep is written,
 * though. */
#include "graph/ir/families/family.h"

static void map_one(etch_call *call, etch_dim *from, etch_dim *to)
{
    etch_attrs *attrs = &call->attrs;
    etch_attrs_map(call->graph->arena, attrs, 1);
    attrs->from[0] = from, attrs->to[0] = to;
}

/* The one new dim among those that are declared, which takes the place of `over`. NULL after an error. */
static etch_dim *cache_dim(const etch_call *call)
{
    const etch_attrs *attrs = &call->attrs;
    if (!etch_shape_has(call, call->ins[0], attrs->over, 1, "over"))
        return NULL;
    etch_dim *to = NULL;
    uint32_t fresh = 0;
    for (uint32_t i = 0; call->want && i < call->want_count; i++)
        if (call->want[i] && !etch_has_dim(call->ins[0], call->want[i]))
            to = call->want[i], fresh++;
    if (fresh == 1)
        return to;
    etch_diag *diag = etch_error(call->graph->diags, ETCH_E_SHAPE_MISMATCH, call->span,
                                 "%s needs declared result dims with one new dim in place of %s",
                                 call->called->name, attrs->over[0]->name);
    etch_help(diag, "write kc[B,T,K,D] = %s(k, over = %s)", call->called->name, attrs->over[0]->name);
    return NULL;
}

/* cache, when serving: `over` is added behind what the cache holds already, which makes the new dim. Both
 * belong to one memory that is filled along them. */
static bool appended(etch_call *call, etch_dim_list *out)
{
    etch_graph *graph = call->graph;
    etch_attrs *attrs = &call->attrs;
    etch_dim *to = cache_dim(call), *from = to ? attrs->over[0] : NULL;
    if (!to)
        return false;
    const etch_expr zero = etch_int(graph->sym, 0);
    etch_expr held = to->grows ? etch_subst(graph->sym, to->size, 1, &graph->step, &zero) : to->size;
    etch_truth fits = etch_at_least(graph->sym, held, from->size, NULL);
    if (fits != ETCH_YES && !etch_graph_at_least(graph, held, from->size)) {
        etch_diag *diag = etch_error(graph->diags, ETCH_E_UNEQUAL_SIZES, call->span,
                                     "%s: %s = %s %s the %s = %s elements of %s", call->called->name,
                                     to->name, etch_expr_text(graph->sym, held),
                                     fits == ETCH_NO ? "cannot hold" : "is not known to hold", from->name,
                                     etch_expr_text(graph->sym, from->size), call->ins[0]->name);
        etch_help(diag, "declare what the cache holds after the run: dim %s ~ past + %s", to->name,
                  from->name);
        return false;
    }
    if (graph->step && !to->grows)
        to->size = etch_add(graph->sym, to->size, etch_mul(graph->sym, graph->step, from->size));
    to->grows = graph->step != NULL;
    etch_dim_alias(to, from);
    attrs->over = ETCH_NEW_ARRAY(graph->arena, 2, etch_dim *);
    attrs->over[0] = from, attrs->over[1] = to, attrs->over_count = 2;
    map_one(call, from, to);
    return etch_shape_replaced(call, out);
}

/* cache, when training: the one new dim takes the size of `over`. */
static bool cached(etch_call *call, etch_dim_list *out)
{
    etch_graph *graph = call->graph;
    etch_attrs *attrs = &call->attrs;
    etch_dim *to = cache_dim(call), *from = to ? attrs->over[0] : NULL;
    if (!to)
        return false;
    etch_expr extra = etch_sub(graph->sym, to->size, from->size);
    if (!etch_is_zero(etch_subst(graph->sym, extra, graph->default_count, graph->default_vars,
                                 graph->default_values))) {
        etch_diag *diag = etch_error(graph->diags, ETCH_E_CACHE_NOT_EMPTY, call->span,
                                     "%s = %s is not %s = %s, but training starts with an empty cache",
                                     to->name, etch_expr_text(graph->sym, to->size), from->name,
                                     etch_expr_text(graph->sym, from->size));
        etch_note(diag, to->span, "%s is declared here", to->name);
        return false;
    }
    to->size = from->size;
    etch_dim_alias(to, from);
    map_one(call, from, to);
    attrs->over_count = 0;
    return etch_shape_replaced(call, out);
}

static const etch_row rows[] = {
    {.name = "identity",
     .operands = "x",
     .shape = etch_shape_union,
     .role = ETCH_ROLE_FREE,
     .linear = ETCH_LINEAR_EACH,
     .grads = ETCH_GRADS({"sum", "d0", "0"}),
     .use = ETCH_USE_COPY,
     .view = true,
     .dtype = ETCH_RESULT_AS_OPERAND,
     .help = "x itself"},
    {.name = "transpose",
     .operands = "x",
     .shape = etch_shape_union,
     .role = ETCH_ROLE_FREE,
     .linear = ETCH_LINEAR_EACH,
     .grads = ETCH_GRADS({"sum", "d0", "0"}),
     .view = true,
     .dtype = ETCH_RESULT_AS_OPERAND,
     .help = "x itself: the order of dims has no meaning"},
    {.name = "rename",
     .operands = "x",
     .shape = etch_shape_replaced,
     .uncalled = true,
     .role = ETCH_ROLE_FREE,
     .linear = ETCH_LINEAR_EACH,
     .grads = ETCH_GRADS({"renamed_back", "d0", "0"}),
     .use = ETCH_USE_RENAMING,
     .view = true,
     .dtype = ETCH_RESULT_AS_OPERAND,
     .help = "x[S->S'], x[(N,P)->M], x[M->(N,P)]: the same elements under other dims"},
    {.name = "renamed_back",
     .operands = "d",
     .role = ETCH_ROLE_FREE,
     .linear = ETCH_LINEAR_EACH,
     .inverts_map = true,
     .view = true,
     .dtype = ETCH_RESULT_AS_OPERAND,
     .help = "gradient of rename"},
    {.name = "cache",
     .operands = "x",
     .needs = ETCH_KW_OVER,
     .one = ETCH_KW_OVER,
     .shape = cached,
     .role = ETCH_ROLE_FREE,
     .linear = ETCH_LINEAR_EACH,
     .grads = ETCH_GRADS({"renamed_back", "d0", "0"}),
     .view = true,
     .dtype = ETCH_RESULT_AS_OPERAND,
     .serving = "append",
     .help = "keys or values that queries may see; in training a renaming"},
    {.name = "append",
     .operands = "x",
     .needs = ETCH_KW_OVER,
     .one = ETCH_KW_OVER,
     .shape = appended,
     .uncalled = true,
     .role = ETCH_ROLE_POINTWISE,
     .over = ETCH_FACTOR_WHOLE,
     .touch = ETCH_TOUCH_ROWS_WRITTEN,
     .dtype = ETCH_RESULT_AS_OPERAND,
     .stays = true,
     .help = "what cache is when a model is served: written behind what is kept"},
};

ETCH_FAMILY(views);
