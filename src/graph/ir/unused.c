/* Weights that make no difference: nothing reads them, or only what no result of the model depends on. */
#include "graph/ir/cursor.h"
#include "graph/ir/ir_int.h"

/* A module that is called in several places may use its weight in one of them only. */
static bool is_used_elsewhere(const etch_graph *graph, const bool *needed, const etch_tensor *weight)
{
    for (uint32_t i = 0; i < graph->weights.count; i++)
        if (needed[graph->weights.at[i]->id] && graph->weights.at[i]->span.start == weight->span.start)
            return true;
    return false;
}

/* A loss, or a cache, which later runs read. */
static bool is_result(const etch_tensor *tensor)
{
    return etch_has_tag(tensor, "loss") ||
           (tensor->producer && tensor->producer->row->stays & ETCH_EXTRA_OF(tensor->output));
}

/* Is it declared in a loop that has no iteration? Then there is none of it. */
static bool is_idle(const etch_graph *graph, const etch_tensor *weight)
{
    for (uint32_t i = 0; i < graph->idle_loops.count; i++)
        if (etch_region_is_in_loop(weight->region, graph->idle_loops.at[i]))
            return true;
    return false;
}

/* `reader`: the first op that reads it; NULL: none does. */
static void warn(const etch_graph *graph, const etch_tensor *weight, const etch_op *reader)
{
    etch_diag *diag =
        etch_warning(graph->diags, ETCH_E_UNUSED_WEIGHT, weight->span,
                     reader ? "no result depends on weight %s" : "weight %s is never used", weight->name);
    if (reader)
        etch_note(diag, reader->span, "what is made from it here is not used");
    etch_help(diag, "it counts among the parameters all the same: remove it, or use it");
}

void etch_graph_warn_unused(const etch_graph *graph, etch_tensor *const *results, uint32_t count)
{
    const etch_sift sift = etch_sift_of(graph);
    const etch_op **reader = ETCH_NEW_ARRAY(graph->arena, graph->tensors.count, const etch_op *);
    bool any = false;
    for (etch_cursor at = {.root = graph->forward}; etch_cursor_next(&at);)
        for (uint32_t k = 0; at.item->op && k < at.item->op->in_count; k++)
            if (!reader[at.item->op->ins[k]->id])
                reader[at.item->op->ins[k]->id] = at.item->op;
    for (uint32_t i = 0; i < count; i++)
        if (results[i])
            any = sift.needed[results[i]->id] = results[i]->is_result = true;
    for (uint32_t i = 0; i < graph->tensors.count; i++)
        if (graph->tensors.at[i] && is_result(graph->tensors.at[i]))
            any = sift.needed[i] = true;
    etch_region_mark(&sift, graph->forward);
    for (uint32_t i = 0; i < graph->weights.count; i++) {
        etch_tensor *weight = graph->weights.at[i];
        weight->is_unused = !sift.needed[weight->id] && (any || !reader[weight->id]);
        if (weight->is_unused && !is_idle(graph, weight) && !is_used_elsewhere(graph, sift.needed, weight))
            warn(graph, weight, reader[weight->id]);
    }
}
