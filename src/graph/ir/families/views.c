/* The same elements under other dims: no node and no FLOP. What runs that serve a model keep is written,
 * though. */
#include "graph/ir/families/family.h"

/* The op's map is from one dim to the other; both, in the arena. */
static etch_dim *const *map_one(etch_call *call, etch_dim *from, etch_dim *to)
{
    etch_dim **pair = ETCH_NEW_ARRAY(call->graph->arena, 2, etch_dim *);
    pair[0] = from, pair[1] = to;
    etch_dim_alias(to, from);
    call->attrs.from = (etch_dim_view){pair, 1};
    call->attrs.to = (etch_dim_view){pair + 1, 1};
    return pair;
}

/* The one new dim among those that are declared, which takes the place of `over`. NULL after an error. */
static etch_dim *cache_dim(const etch_call *call)
{
    const etch_attrs *attrs = &call->attrs;
    if (!etch_shape_has(call, call->ins[0], attrs->over, "over"))
        return NULL;
    etch_dim *to = etch_call_new_dim(call, NULL);
    if (to)
        return to;
    etch_diag *diag = etch_error(call->graph->diags, ETCH_E_SHAPE_MISMATCH, call->span,
                                 "%s needs declared result dims with one new dim in place of %s",
                                 call->called->name, attrs->over.at[0]->name);
    etch_help(diag, "write kc[B,T,K,D] = %s(k, over = %s)", call->called->name, attrs->over.at[0]->name);
    return NULL;
}

/* What a rolling cache shows a run of `all` that there have been: the run's own elements, and of those before
 * what the first of them sees. One dim for each window; `all` where it hides nothing. */
static etch_dim *window_of(const etch_call *call, etch_dim *all, const etch_dim *own)
{
    etch_graph *graph = call->graph;
    etch_sym *sym = graph->sym;
    const etch_expr window = call->attrs.window;
    if (!window || etch_graph_at_least(graph, window, all->size))
        return all;
    for (uint32_t i = 0; i < graph->dims.count; i++) {
        etch_dim *dim = graph->dims.at[i];
        if (dim->window_of == all && dim->window == window && dim->alias == own)
            return dim;
    }
    etch_expr most = etch_add(sym, window, etch_sub(sym, own->size, etch_int(sym, 1)));
    etch_dim *dim =
        etch_graph_dim(graph, all->name, etch_smaller(sym, all->size, most), all->average_sized, all->span);
    dim->window_of = all;
    dim->window = window;
    return dim;
}

/* cache, when serving: `over` is added after what the cache holds already, which makes the new dim. Both
 * belong to one memory that is filled along them. */
static bool appended(etch_call *call, etch_dim_list *out)
{
    etch_graph *graph = call->graph;
    etch_attrs *attrs = &call->attrs;
    etch_dim *to = cache_dim(call), *from = to ? attrs->over.at[0] : NULL;
    if (!to || !etch_call_has_window(call))
        return false;
    const etch_expr zero = etch_int(graph->sym, 0);
    etch_expr held = to->grows ? etch_subst(graph->sym, to->size, 1, &graph->step, &zero) : to->size;
    etch_truth fits = etch_at_least(graph->sym, held, from->size, NULL);
    if (fits != ETCH_YES && !etch_graph_at_least(graph, held, from->size)) {
        etch_diag *diag =
            etch_error(graph->diags, ETCH_E_UNEQUAL_SIZES, call->span,
                       "%s: %s = %s %s the %s = %s elements of %s", call->called->name, to->name,
                       etch_call_number(call, held), fits == ETCH_NO ? "cannot hold" : "is not known to hold",
                       from->name, etch_call_number(call, from->size), call->ins[0]->name);
        return etch_help(diag, "declare what the cache holds after the run: dim %s ~ past + %s", to->name,
                         from->name);
    }
    if (graph->step && !to->grows)
        to->size = etch_add(graph->sym, to->size, etch_mul(graph->sym, graph->step, from->size));
    to->grows = graph->step != NULL;
    attrs->over = (etch_dim_view){map_one(call, from, window_of(call, to, from)), 2};
    return etch_shape_replaced(call, out);
}

/* cache, when training: the one new dim takes the size of `over`. */
static bool cached(etch_call *call, etch_dim_list *out)
{
    etch_graph *graph = call->graph;
    etch_attrs *attrs = &call->attrs;
    etch_dim *to = cache_dim(call), *from = to ? attrs->over.at[0] : NULL;
    if (!to || !etch_call_has_window(call))
        return false;
    etch_expr extra = etch_sub(graph->sym, to->size, from->size);
    if (!etch_is_zero(etch_graph_with_defaults(graph, extra))) {
        etch_diag *diag =
            etch_error(graph->diags, ETCH_E_CACHE_NOT_EMPTY, call->span,
                       "%s = %s is not %s = %s, but training starts with an empty cache", to->name,
                       etch_call_number(call, to->size), from->name, etch_call_number(call, from->size));
        return etch_note(diag, to->span, "%s is declared here", to->name);
    }
    to->size = from->size;
    map_one(call, from, to);
    attrs->over.count = 0;
    attrs->window = NULL;
    return etch_shape_replaced(call, out);
}

static const etch_row rows[] = {
    ETCH_FREE("identity", "x", "x itself", .shape = etch_shape_union, .grads = ETCH_GRADS({"sum", "d0", "0"}),
              .use = ETCH_USE_COPY, .view = true),
    ETCH_FREE("stop_gradient", "x", "x itself, of which backward knows nothing: it has no cotangent",
              .shape = etch_shape_union, .view = true),
    ETCH_FREE("transpose", "x", "x itself: the order of dims has no meaning", .shape = etch_shape_union,
              .grads = ETCH_GRADS({"sum", "d0", "0"}), .view = true),
    ETCH_FREE("rename", "x", "x[S->S'], x[(N,P)->M], x[M->(N,P)]: the same elements under other dims",
              .shape = etch_shape_replaced, .uncalled = true,
              .grads = ETCH_GRADS({"renamed_back", "d0", "0"}), .use = ETCH_USE_RENAMING, .view = true),
    ETCH_FREE("renamed_back", "d", "gradient of rename", .inverts_map = true, .view = true),
    ETCH_FREE("cache", "x", "keys or values that queries may see; in training a renaming",
              .needs = ETCH_KW_OVER, .options = ETCH_KW_WINDOW, .one = ETCH_KW_OVER, .shape = cached,
              .grads = ETCH_GRADS({"renamed_back", "d0", "0"}), .view = true, .serving = "append"),
    ETCH_POINTWISE("append", "x", "what cache is when a model is served: written behind what is kept",
                   .needs = ETCH_KW_OVER, .options = ETCH_KW_WINDOW, .one = ETCH_KW_OVER, .shape = appended,
                   .uncalled = true, .over = ETCH_FACTOR_WHOLE, .touch = ETCH_TOUCH_ROWS_WRITTEN,
                   .dtype = ETCH_RESULT_AS_OPERAND, .stays = ETCH_EXTRA_OF(0)),
};

ETCH_FAMILY(views);
