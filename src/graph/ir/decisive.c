/* Questions that decide the structure of a graph. */
#include "graph/ir/ir_int.h"

static void note_decisive(etch_graph *graph, etch_expr var)
{
    for (uint32_t i = 0; i < graph->decisive.count; i++)
        if (graph->decisive.at[i] == var)
            return;
    ETCH_PUSH(graph->arena, &graph->decisive, var);
}

/* With the values of the first `count` params that have one. */
static etch_expr decided(etch_graph *graph, etch_expr expr, uint32_t count)
{
    const etch_expr *vars = NULL;
    const uint32_t var_count = expr ? etch_vars_of(graph->sym, expr, &vars) : 0;
    for (uint32_t i = 0; i < var_count; i++)
        note_decisive(graph, vars[i]);
    return etch_subst(graph->sym, expr, count, graph->default_vars, graph->default_values);
}

etch_expr etch_graph_with_values(etch_graph *graph, etch_expr expr)
{
    return decided(graph, expr, graph->given_count);
}

etch_expr etch_graph_with_defaults(etch_graph *graph, etch_expr expr)
{
    return decided(graph, expr, graph->default_count);
}
