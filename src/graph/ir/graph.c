/* A new graph: empty, with the builtin table. */
#include "graph/ir/ir_int.h"

etch_graph *etch_graph_new(etch_arena *arena, etch_sym *sym, etch_diags *diags, etch_dtypes dtypes,
                           const char *model, etch_span span)
{
    etch_graph *graph = ETCH_NEW(arena, etch_graph);
    graph->arena = arena;
    graph->table = etch_table_builtin();
    graph->sym = sym;
    graph->diags = diags;
    graph->dtypes = dtypes;
    graph->model = model;
    graph->forward = graph->region = ETCH_NEW(arena, etch_region);
    etch_graph_enter(graph, model, span);
    return graph;
}

/* ---- what a branch knows ------------------------------------------------------------------------------- */

/* a - (more - less): where that is at least b, so is a. */
static etch_expr lessened(const etch_graph *graph, etch_expr a, const etch_known *known)
{
    return etch_add(graph->sym, etch_sub(graph->sym, a, known->more), known->less);
}

bool etch_graph_at_least(const etch_graph *graph, etch_expr a, etch_expr b)
{
    bool is = etch_at_least(graph->sym, a, b, NULL) == ETCH_YES;
    for (uint32_t i = 0; i < graph->known.count && !is; i++)
        is = etch_at_least(graph->sym, lessened(graph, a, &graph->known.at[i]), b, NULL) == ETCH_YES;
    return is;
}

bool etch_graph_above(const etch_graph *graph, etch_expr a, etch_expr b)
{
    bool is = etch_above(graph->sym, a, b, NULL) == ETCH_YES;
    for (uint32_t i = 0; i < graph->known.count && !is; i++)
        is = etch_above(graph->sym, lessened(graph, a, &graph->known.at[i]), b, NULL) == ETCH_YES;
    return is;
}
