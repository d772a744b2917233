/* Shape rules: the dims of a result, one function per rule. */
#include "graph/ir/ir_int.h"

static bool union_dims(const etch_call *call, uint32_t from, uint32_t count, etch_dim_list *out)
{
    for (uint32_t i = from; i < from + count; i++)
        for (uint32_t d = 0; d < call->ins[i]->rank; d++)
            etch_dim_add(call->graph, out, call->ins[i]->dims[d]);
    return true;
}

/* Operand 0, whose dims hold those of the other operands (gains, biases). */
static bool first_dims(const etch_call *call, etch_dim_list *out)
{
    etch_graph *graph = call->graph;
    const etch_row *row = call->row;
    etch_tensor *const *ins = call->ins;
    const etch_attrs *attrs = &call->attrs;
    etch_span span = call->span;
    if (!etch_shape_has(call, ins[0], attrs->over, attrs->over_count, "over"))
        return false;
    for (uint32_t i = 1; i < call->in_count; i++)
        for (uint32_t d = 0; d < ins[i]->rank; d++)
            if (!etch_has_dim(ins[0], ins[i]->dims[d])) {
                etch_error(graph->diags, ETCH_E_SHAPE_MISMATCH, span, "%s: %s%s has dim %s, which %s%s lacks",
                           row->name, ins[i]->name, etch_dims_text(graph->arena, ins[i]->dims, ins[i]->rank),
                           ins[i]->dims[d]->name, ins[0]->name,
                           etch_dims_text(graph->arena, ins[0]->dims, ins[0]->rank));
                return false;
            }
    return union_dims(call, 0, 1, out);
}

static bool attend_dims(const etch_call *call, etch_dim_list *out)
{
    etch_graph *graph = call->graph;
    const etch_row *row = call->row;
    const etch_attrs *attrs = &call->attrs;
    etch_span span = call->span;
    const etch_tensor *q = call->ins[0], *k = call->ins[1], *v = call->ins[2];
    if (!etch_shape_has(call, q, attrs->dot, attrs->dot_count, "dot") ||
        !etch_shape_has(call, k, attrs->dot, attrs->dot_count, "dot") ||
        !etch_shape_has(call, k, attrs->over, attrs->over_count, "over") ||
        !etch_shape_has(call, v, attrs->over, attrs->over_count, "over"))
        return false;
    for (uint32_t i = 0; i < q->rank; i++)
        if (etch_dim_among(attrs->over, attrs->over_count, q->dims[i])) {
            etch_diag *diag = etch_error(
                graph->diags, ETCH_E_SHAPE_MISMATCH, span, "%s: the queries %s%s have the dim %s of the keys",
                row->name, q->name, etch_dims_text(graph->arena, q->dims, q->rank), q->dims[i]->name);
            etch_help(diag, "rename it in the keys and values: k[%s->%s']", q->dims[i]->name,
                      q->dims[i]->name);
            return false;
        }
    const etch_tensor *sides[] = {q, v};
    for (uint32_t s = 0; s < 2; s++)
        for (uint32_t i = 0; i < sides[s]->rank; i++) {
            etch_dim *dim = sides[s]->dims[i];
            bool dotted = etch_dim_among(attrs->dot, attrs->dot_count, dim) && !etch_has_dim(v, dim);
            if (!dotted && !etch_dim_among(attrs->over, attrs->over_count, dim))
                etch_dim_add(graph, out, dim);
        }
    return true;
}

static bool lookup_dims(const etch_call *call, etch_dim_list *out)
{
    etch_graph *graph = call->graph;
    etch_tensor *const *ins = call->ins;
    const etch_attrs *attrs = &call->attrs;
    if (!etch_shape_has(call, ins[0], attrs->over, 1, "over") ||
        !etch_route_fits(call, ins[1], attrs->over[0]))
        return false;
    union_dims(call, 1, 1, out);
    for (uint32_t i = 0; i < ins[0]->rank; i++)
        if (!etch_dim_among(attrs->over, attrs->over_count, ins[0]->dims[i]))
            etch_dim_add(graph, out, ins[0]->dims[i]);
    return true;
}

static bool less_dims(const etch_call *call, etch_dim_list *out)
{
    const etch_tensor *x = call->ins[0];
    if (!etch_shape_has(call, x, call->attrs.over, call->attrs.over_count, "over"))
        return false;
    for (uint32_t i = 0; i < x->rank; i++)
        if (!etch_dim_among(call->attrs.over, call->attrs.over_count, x->dims[i]))
            etch_dim_add(call->graph, out, x->dims[i]);
    return true;
}

/* batch_norm: statistics along all dims that are not kept. */
static bool rest_dims(etch_call *call, etch_dim_list *out)
{
    const etch_tensor *x = call->ins[0];
    etch_dim_list rest = {0};
    if (call->attrs.sync) {
        etch_error(
            call->graph->diags, ETCH_E_LATER, call->span,
            "%s(.., sync = true) is part of the language but is not given meaning yet: each rank takes the "
            "statistics of what it has",
            call->row->name);
        return false;
    }
    if (!etch_shape_has(call, x, call->attrs.kept, call->attrs.kept_count, "keep"))
        return false;
    for (uint32_t i = 0; i < x->rank; i++)
        if (!etch_dim_among(call->attrs.kept, call->attrs.kept_count, x->dims[i]))
            etch_dim_add(call->graph, &rest, x->dims[i]);
    call->attrs.over = rest.at;
    call->attrs.over_count = rest.count;
    return first_dims(call, out);
}

static bool loss_dims(const etch_call *call)
{
    etch_graph *graph = call->graph;
    const etch_row *row = call->row;
    etch_tensor *const *ins = call->ins;
    const etch_attrs *attrs = &call->attrs;
    etch_span span = call->span;
    etch_dim_list left = {0};
    if (!less_dims(call, &left))
        return false;
    if (call->in_count < 2)
        return true;
    if (attrs->over_count == 0)
        return first_dims(call, &left);
    if (etch_dims_same(left.at, left.count, ins[1]->dims, ins[1]->rank))
        return true;
    etch_error(graph->diags, ETCH_E_SHAPE_MISMATCH, span, "%s: %s%s less %s does not fit %s%s", row->name,
               ins[0]->name, etch_dims_text(graph->arena, ins[0]->dims, ins[0]->rank), attrs->over[0]->name,
               ins[1]->name, etch_dims_text(graph->arena, ins[1]->dims, ins[1]->rank));
    return false;
}

static void replace_dims(const etch_call *call, etch_dim_list *out)
{
    const etch_tensor *a = call->ins[0];
    const etch_attrs *attrs = &call->attrs;
    etch_arena *arena = call->graph->arena;
    for (uint32_t i = 0; i < a->rank; i++) {
        uint32_t m = 0;
        while (m < attrs->map_count && attrs->from[m] != a->dims[i])
            m++;
        if (m == attrs->map_count) {
            ETCH_PUSH(arena, out, a->dims[i]);
            continue;
        }
        if (attrs->to[m])
            ETCH_PUSH(arena, out, attrs->to[m]);
        while (++m < attrs->map_count && !attrs->from[m]) /* the rest of its group */
            ETCH_PUSH(arena, out, attrs->to[m]);
    }
}

/* Of `from` and `to`, does `longer` have at least the elements of `shorter`? */
static bool is_longer(const etch_call *call, const etch_dim *longer, const etch_dim *shorter)
{
    etch_graph *graph = call->graph;
    etch_truth fits = etch_at_least(graph->sym, longer->size, shorter->size, NULL);
    if (fits == ETCH_YES)
        return true;
    etch_diag *diag = etch_error(graph->diags, ETCH_E_UNEQUAL_SIZES, call->span,
                                 "%s: %s = %s %s the %s = %s elements of %s", call->row->name, shorter->name,
                                 etch_expr_text(graph->sym, shorter->size),
                                 fits == ETCH_NO ? "can be more than" : "is not known to be within",
                                 longer->name, etch_expr_text(graph->sym, longer->size),
                                 call->attrs.from[0] == longer ? call->ins[0]->name : "the result");
    etch_help(diag, "add `assume %s <= %s`", etch_expr_text(graph->sym, shorter->size),
              etch_expr_text(graph->sym, longer->size));
    return false;
}

/* slice, pad: `over` (one dim) becomes the dim `to`. */
static bool has_map(etch_call *call)
{
    etch_attrs *attrs = &call->attrs;
    attrs->from = attrs->over;
    return etch_shape_has(call, call->ins[0], attrs->from, 1, "over");
}

static bool top_dims(etch_call *call, etch_dim_list *out)
{
    if (!has_map(call) || !is_longer(call, call->attrs.from[0], call->attrs.to[0]))
        return false;
    replace_dims(call, out);
    return true;
}

static bool padded_dims(etch_call *call, etch_dim_list *out)
{
    if (!has_map(call) || !is_longer(call, call->attrs.to[0], call->attrs.from[0]))
        return false;
    replace_dims(call, out);
    return true;
}

static void map_one(etch_call *call, etch_dim *from, etch_dim *to)
{
    etch_attrs *attrs = &call->attrs;
    attrs->from = ETCH_NEW(call->graph->arena, etch_dim *);
    attrs->to = ETCH_NEW(call->graph->arena, etch_dim *);
    attrs->from[0] = from, attrs->to[0] = to, attrs->map_count = 1;
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
static bool appended_dims(etch_call *call, etch_dim_list *out)
{
    etch_graph *graph = call->graph;
    etch_attrs *attrs = &call->attrs;
    etch_dim *to = cache_dim(call), *from = to ? attrs->over[0] : NULL;
    if (!to)
        return false;
    const etch_expr zero = etch_int(graph->sym, 0);
    etch_expr held = to->grows ? etch_subst(graph->sym, to->size, 1, &graph->step, &zero) : to->size;
    etch_truth fits = etch_at_least(graph->sym, held, from->size, NULL);
    if (fits != ETCH_YES) {
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
    replace_dims(call, out);
    return true;
}

/* cache, when training: the one new dim takes the size of `over`. */
static bool cached_dims(etch_call *call, etch_dim_list *out)
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
    replace_dims(call, out);
    return true;
}

/* sum, when it is called: all but `over`; the kept dims say it from then on. */
static bool kept_dims(etch_call *call, etch_dim_list *out)
{
    if (!less_dims(call, out))
        return false;
    call->attrs.over_count = 0;
    return true;
}

/* ---- the entry points ---------------------------------------------------------------------------------- */

/* The dims that one keyword names. */
static bool dims_fit(const etch_call *call, const etch_keyword_info *info, etch_dim *const *dims,
                     uint32_t count)
{
    etch_graph *graph = call->graph;
    for (uint32_t i = 0; i < count; i++) {
        if (!dims[i])
            return false; /* reported where it was looked up */
        if ((call->row->each & info->bit) || !etch_dim_among(dims, i, dims[i]))
            continue;
        etch_error(graph->diags, ETCH_E_DIM_TWICE, call->span, "%s: `%s` names dim %s twice",
                   call->called->name, info->name, dims[i]->name);
        return false;
    }
    if (count == 1 || !(call->row->one & info->bit))
        return true;
    etch_error(graph->diags, ETCH_E_CALL_ARGUMENTS, call->span, "%s: `%s` is one dim, and it is %s",
               call->called->name, info->name, etch_dims_text(graph->arena, dims, count));
    return false;
}

static bool keyword_fits(const etch_call *call, const etch_keyword_info *info)
{
    etch_attrs attrs = call->attrs;
    const etch_keyword_field field = etch_keyword_field_of(info, &attrs);
    return !field.dims || dims_fit(call, info, *field.dims, *field.dim_count);
}

bool etch_keywords_fit(const etch_call *call)
{
    const etch_keyword_info *info;
    for (uint32_t i = 0; (info = etch_keyword_at(i)) != NULL; i++)
        if ((call->row->takes & info->bit) && !keyword_fits(call, info))
            return false;
    return true;
}

static bool infer(etch_call *call, etch_dim_list *out)
{
    switch (call->row->shape) {
    case ETCH_SHAPE_UNION:
        return union_dims(call, 0, call->in_count, out);
    case ETCH_SHAPE_FIRST:
        return first_dims(call, out);
    case ETCH_SHAPE_REST:
        return rest_dims(call, out);
    case ETCH_SHAPE_ATTEND:
        return attend_dims(call, out);
    case ETCH_SHAPE_LOOKUP:
        return lookup_dims(call, out);
    case ETCH_SHAPE_LOSS:
        return loss_dims(call);
    case ETCH_SHAPE_TOP:
        return top_dims(call, out);
    case ETCH_SHAPE_CACHED:
        return cached_dims(call, out);
    case ETCH_SHAPE_CHOSEN:
        return etch_shape_chosen(call, out);
    case ETCH_SHAPE_ROUTED:
        return etch_shape_routed(call, out);
    case ETCH_SHAPE_RETURNED:
        return etch_shape_returned(call, out);
    case ETCH_SHAPE_INDEXED:
        for (uint32_t i = 0; i < call->attrs.over_count; i++)
            etch_dim_add(call->graph, out, call->attrs.over[i]);
        return true;
    case ETCH_SHAPE_APPENDED:
        return appended_dims(call, out);
    case ETCH_SHAPE_RENAMED:
        replace_dims(call, out);
        return true;
    case ETCH_SHAPE_KEPT:
        return kept_dims(call, out);
    case ETCH_SHAPE_LESS:
        return less_dims(call, out);
    case ETCH_SHAPE_TOKENS:
        return loss_dims(call) && less_dims(call, out);
    case ETCH_SHAPE_JOINED:
        return etch_shape_joined(call, out);
    case ETCH_SHAPE_SCAN:
        return etch_shape_scan(call, out);
    case ETCH_SHAPE_WINDOW:
        return etch_shape_window(call, out);
    case ETCH_SHAPE_PADDED:
        return padded_dims(call, out);
    case ETCH_SHAPE_PARTS:
    case ETCH_SHAPE_TARGETS:
        break;
    }
    return false;
}

bool etch_shape_infer(etch_call *call, etch_dim_list *out)
{
    return infer(call, out) && etch_attend_check(call);
}
