/* A new graph: empty, with the builtin table. */
#include "graph/ir/ir_int.h"

etch_graph *etch_graph_new(etch_arena *arena, etch_sym *sym, etch_diags *diags, etch_dtypes dtypes,
                           const char *model, etch_span span)
{
    etch_graph *graph = ETCH_NEW(arena, etch_graph);
    graph->arena = arena;
    etch_graph_use_table(graph, etch_table_builtin());
    graph->sym = sym;
    graph->diags = diags;
    graph->dtypes = dtypes;
    graph->model = model;
    graph->forward = graph->region = ETCH_NEW(arena, etch_region);
    etch_graph_enter(graph, model, span);
    return graph;
}
