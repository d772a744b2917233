/* What is known where an op is built: facts, and what the branches around it say. */
#include "graph/ir/ir_int.h"

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
