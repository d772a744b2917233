/* Shapes that rows of several families have, and what the keywords of a call may name. */
#include "graph/ir/families/family.h"

bool etch_shape_union(etch_call *call, etch_dim_list *out)
{
    for (uint32_t i = 0; i < call->in_count; i++)
        etch_dims_add_beside(call, out, call->ins[i], (etch_dim_view){0});
    return true;
}

bool etch_shape_first(etch_call *call, etch_dim_list *out)
{
    etch_tensor *const *ins = call->ins;
    const etch_attrs *attrs = &call->attrs;
    if (!etch_shape_has(call, ins[0], attrs->over, "over"))
        return false;
    for (uint32_t i = 1; i < call->in_count; i++) {
        const etch_dim *dim = etch_dim_beside(ins[i], ins[0], NULL, (etch_dim_view){0});
        if (dim)
            return etch_call_refuse(call, ETCH_E_SHAPE_MISMATCH, "%s has dim %s, which %s lacks",
                                    etch_call_tensor(call, ins[i]), dim->name,
                                    etch_call_tensor(call, ins[0]));
    }
    etch_dims_add_beside(call, out, ins[0], (etch_dim_view){0});
    return true;
}

bool etch_shape_less(etch_call *call, etch_dim_list *out)
{
    const etch_attrs *attrs = &call->attrs;
    if (!etch_shape_has(call, call->ins[0], attrs->over, "over"))
        return false;
    etch_dims_add_beside(call, out, call->ins[0], attrs->over);
    return true;
}

bool etch_shape_replaced(etch_call *call, etch_dim_list *out)
{
    const etch_tensor *a = call->ins[0];
    const etch_attrs *attrs = &call->attrs;
    etch_arena *arena = call->graph->arena;
    for (uint32_t i = 0; i < a->rank; i++) {
        uint32_t m = 0;
        while (m < attrs->to.count && attrs->from.at[m] != a->dims[i])
            m++;
        if (m == attrs->to.count) {
            ETCH_PUSH(arena, out, a->dims[i]);
            continue;
        }
        if (attrs->to.at[m])
            ETCH_PUSH(arena, out, attrs->to.at[m]);
        while (++m < attrs->to.count && !attrs->from.at[m]) /* the rest of its group */
            ETCH_PUSH(arena, out, attrs->to.at[m]);
    }
    return true;
}

/* ---- numbers ---------------------------------------------------------------------------------------- */

bool etch_call_wrong_number(const etch_call *call, const char *name, etch_expr number, const char *should)
{
    etch_diag *diag = etch_call_error(call, ETCH_E_CALL_ARGUMENTS, "%s = %s is not known to be %s", name,
                                      etch_call_number(call, number), should);
    return etch_help(diag, "0 or none leaves the %s out", name);
}

bool etch_call_has_window(const etch_call *call)
{
    const etch_expr window = call->attrs.window;
    if (!window || (etch_graph_at_least(call->graph, window, etch_int(call->graph->sym, 1)) &&
                    etch_is_integer(call->graph->sym, window, NULL) == ETCH_YES))
        return true;
    return etch_call_wrong_number(call, "window", window, "a whole number of keys, 1 or more");
}

/* ---- keywords --------------------------------------------------------------------------------------- */

/* The dims that one keyword names. */
static bool dims_fit(const etch_call *call, const etch_keyword_info *info, etch_dim_view dims)
{
    etch_graph *graph = call->graph;
    for (uint32_t i = 0; i < dims.count; i++) {
        if (!dims.at[i])
            return false; /* reported where it was looked up */
        if ((call->row->each & info->bit) || !etch_dim_among((etch_dim_view){dims.at, i}, dims.at[i]))
            continue;
        etch_error(graph->diags, ETCH_E_DIM_TWICE, call->span, "%s: `%s` names dim %s twice",
                   call->called->name, etch_keyword_text(info), dims.at[i]->name);
        return false;
    }
    if (dims.count == 1 || !(call->row->one & info->bit))
        return true;
    etch_error(graph->diags, ETCH_E_CALL_ARGUMENTS, call->span, "%s: `%s` is one dim, and it is %s",
               call->called->name, etch_keyword_text(info), etch_call_dims(call, dims));
    return false;
}

static bool keyword_fits(const etch_call *call, const etch_keyword_info *info)
{
    etch_attrs attrs = call->attrs;
    return dims_fit(call, info, *etch_keyword_field_of(info, &attrs).dims);
}

bool etch_keywords_fit(const etch_call *call)
{
    const etch_keyword_info *info;
    for (uint32_t i = 0; (info = etch_keyword_at(i)) != NULL; i++)
        if (info->kind == ETCH_KIND_DIMS && (etch_row_takes(call->row) & info->bit) &&
            !keyword_fits(call, info))
            return false;
    return true;
}
