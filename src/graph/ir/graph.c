/* A new graph: empty, with the builtin table; and questions that decide its structure. */
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

static void note_decisive(etch_graph *graph, etch_expr var)
{
    for (uint32_t i = 0; i < graph->decisive.count; i++)
        if (graph->decisive.at[i] == var)
            return;
    ETCH_PUSH(graph->arena, &graph->decisive, var);
}

etch_expr etch_graph_with_defaults(etch_graph *graph, etch_expr expr)
{
    const etch_expr *vars = NULL;
    const uint32_t count = expr ? etch_vars_of(graph->sym, expr, &vars) : 0;
    for (uint32_t i = 0; i < count; i++)
        note_decisive(graph, vars[i]);
    return etch_subst(graph->sym, expr, graph->default_count, graph->default_vars, graph->default_values);
}
