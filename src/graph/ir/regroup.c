/* Views that rename, merge and split dims: x[S->S'], x[(N,P)->M], x[M->(N,P)].
 *
 * The map of such an op is a list of pairs. A pair without a dim on one side goes on with the group of the
 * pair before it: (N,P)->M is N->M, P->(none), and M->(N,P) is M->N, (none)->P. So the outermost dim of a
 * group stands for the group: where it is divided, the other side is divided; the inner dims are whole. */
#include "graph/ir/ir_int.h"

/* "S", or "(N,P)" */
static const char *side_text(etch_arena *arena, etch_dim_view dims)
{
    etch_buf buf = {.arena = arena};
    if (dims.count == 1)
        return dims.at[0]->name;
    for (uint32_t i = 0; i < dims.count; i++)
        etch_buf_printf(&buf, "%s%s", i ? "," : "(", dims.at[i]->name);
    etch_buf_puts(&buf, ")");
    return buf.text;
}

static bool sizes_agree(etch_graph *graph, const etch_regroup *g, etch_span span)
{
    etch_expr from = etch_dims_size(graph->sym, g->from, NULL, NULL),
              to = etch_dims_size(graph->sym, g->to, NULL, NULL);
    if (etch_equal(graph->sym, from, to, NULL) == ETCH_YES)
        return true;
    etch_error(graph->diags, ETCH_E_UNEQUAL_SIZES, span, "%s = %s and %s = %s are not known to be equal",
               side_text(graph->arena, g->from), etch_expr_text(graph->sym, from),
               side_text(graph->arena, g->to), etch_expr_text(graph->sym, to));
    return false;
}

/* Is no dim regrouped twice? */
static bool groups_are_apart(etch_graph *graph, const etch_tensor *a, const etch_regroup *groups,
                             uint32_t count, etch_span span)
{
    etch_dim_list seen = {0};
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t k = 0; k < groups[i].from.count; k++) {
            etch_dim *dim = groups[i].from.at[k];
            if (dim && etch_dim_among(ETCH_DIMS(seen), dim)) {
                etch_error(graph->diags, ETCH_E_DIM_TWICE, span, "dim %s of %s is renamed twice", dim->name,
                           etch_tensor_text(graph->arena, a));
                return false;
            }
            etch_dim_add(graph, &seen, dim);
        }
    return true;
}

static bool check_group(etch_graph *graph, etch_tensor *a, etch_regroup *g, etch_span span)
{
    etch_dims_mean(graph, &g->from, &a, 1);
    for (uint32_t i = 0; i < g->from.count; i++) {
        if (!g->from.at[i])
            return false;
        if (etch_has_dim(a, g->from.at[i]))
            continue;
        etch_error(graph->diags, ETCH_E_MISSING_DIM, span, "%s has no dim %s to %s",
                   etch_tensor_text(graph->arena, a), g->from.at[i]->name,
                   g->from.count > 1 ? "merge"
                   : g->to.count > 1 ? "split"
                                     : "rename");
        return false;
    }
    for (uint32_t i = 0; i < g->to.count; i++)
        if (!g->to.at[i])
            return false;
    if (g->from.count == 1 || g->to.count == 1)
        return sizes_agree(graph, g, span);
    etch_diag *diag =
        etch_error(graph->diags, ETCH_E_SHAPE_MISMATCH, span, "%s->%s merges dims and splits them at once",
                   side_text(graph->arena, g->from), side_text(graph->arena, g->to));
    return etch_help(diag, "merge them to one dim first, then split that");
}

etch_tensor *etch_graph_regroup(etch_graph *graph, etch_tensor *a, const etch_regroup *groups, uint32_t count,
                                etch_span span)
{
    if (!a || !groups_are_apart(graph, a, groups, count, span))
        return NULL;
    etch_dim_list from = {0}, to = {0};
    for (uint32_t i = 0; i < count; i++) {
        etch_regroup group = groups[i], *g = &group;
        if (!check_group(graph, a, g, span))
            return NULL;
        for (uint32_t k = 0; k < g->from.count || k < g->to.count; k++) {
            ETCH_PUSH(graph->arena, &from, k < g->from.count ? g->from.at[k] : NULL);
            ETCH_PUSH(graph->arena, &to, k < g->to.count ? g->to.at[k] : NULL);
        }
        etch_dim_alias(g->to.at[0], g->from.at[0]);
    }
    const etch_attrs attrs = {.from = ETCH_DIMS(from), .to = ETCH_DIMS(to)};
    return etch_graph_use(graph, ETCH_USE_RENAMING, &a, 1, &attrs, span);
}

etch_tensor *etch_graph_rename(etch_graph *graph, etch_tensor *a, etch_dim *const *from, etch_dim *const *to,
                               uint32_t count, etch_span span)
{
    etch_regroup *groups = ETCH_NEW_ARRAY(graph->arena, count, etch_regroup);
    for (uint32_t i = 0; i < count; i++)
        groups[i] = (etch_regroup){{&from[i], 1}, {&to[i], 1}};
    return etch_graph_regroup(graph, a, groups, count, span);
}

/* The dims of one side of pairs `first` to before `end`. */
static const char *group_text(etch_arena *arena, etch_dim_view side, uint32_t first, uint32_t end)
{
    etch_dim_list dims = {0};
    for (uint32_t i = first; i < end; i++)
        if (side.at[i])
            ETCH_PUSH(arena, &dims, side.at[i]);
    return side_text(arena, ETCH_DIMS(dims));
}

const char *etch_renaming_text(etch_arena *arena, const etch_attrs *attrs)
{
    etch_buf out = {.arena = arena};
    etch_buf_puts(&out, "");
    for (uint32_t first = 0, end; first < attrs->to.count; first = end) {
        for (end = first + 1; end < attrs->to.count && !(attrs->from.at[end] && attrs->to.at[end]);)
            end++;
        etch_buf_printf(&out, "%s%s->%s", first ? ", " : "", group_text(arena, attrs->from, first, end),
                        group_text(arena, attrs->to, first, end));
    }
    return out.text;
}
