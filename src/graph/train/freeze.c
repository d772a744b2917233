/* `freeze = llama`: weights that a train block does not train. */
#include <string.h>

#include "graph/train/train_int.h"

/* Is the tensor declared or made in a module of this path, or in a loop of this name? */
static bool is_inside(const etch_tensor *tensor, const char *selector)
{
    for (const etch_scope *scope = tensor->scope; scope; scope = scope->parent)
        if (etch_scope_is_called(scope, selector, strlen(selector)))
            return true;
    for (const etch_region *region = tensor->region; region; region = region->parent)
        if (region->loop && strcmp(region->loop->name, selector) == 0)
            return true;
    return false;
}

static bool freeze_weight(etch_tensor *tensor)
{
    if (tensor->kind == ETCH_WEIGHT)
        tensor->frozen = true;
    return tensor->kind == ETCH_WEIGHT;
}

/* The weights that the statement reads whose result is `tensor`. Goes as deep as loops are nested. */
static bool freeze_statement(const etch_region *region, const etch_tensor *tensor)
{
    bool any = false;
    for (uint32_t i = 0; i < region->items.count; i++) {
        const etch_item *item = &region->items.at[i];
        if (item->loop) {
            for (uint32_t b = 0; b < item->loop->bodies.count; b++)
                any = freeze_statement(item->loop->bodies.at[b], tensor) || any;
            continue;
        }
        const bool made = tensor->end_op > tensor->first_op
                              ? item->op->id >= tensor->first_op && item->op->id < tensor->end_op
                              : item->op == tensor->producer;
        for (uint32_t k = 0; made && k < item->op->in_count; k++)
            any = freeze_weight(item->op->ins[k]) || any;
    }
    return any;
}

/* Freezes what the selector names; false when that has no weights. */
static bool freeze(etch_graph *graph, const char *selector)
{
    bool any = false;
    for (uint32_t i = 0; i < graph->weights.count; i++)
        if (is_inside(graph->weights.at[i], selector))
            any = freeze_weight(graph->weights.at[i]);
    for (uint32_t i = 0; i < graph->tensors.count; i++) {
        etch_tensor *tensor = graph->tensors.at[i];
        if (!etch_tensor_is_selected(tensor, selector))
            continue;
        any = freeze_weight(tensor) || any;
        any = freeze_statement(graph->forward, tensor) || any;
    }
    return any;
}

static void report_unknown(const etch_graph *graph, const char *selector, etch_span span)
{
    const etch_name_list names = etch_graph_selectors(graph);
    etch_diag *diag =
        etch_error(graph->diags, ETCH_E_FREEZE_UNKNOWN, span,
                   "model %s has no weights to freeze under the name '%s'", graph->model, selector);
    const char *near = etch_nearest(selector, names.at, names.count);
    if (near && strcmp(near, selector) != 0)
        etch_help(diag, "did you mean '%s'?", near);
    else
        etch_help(diag, "name a module that is called, a loop, a tag, or a tensor as module.tensor");
}

bool etch_freeze(etch_graph *graph, const etch_train *train)
{
    bool fine = true;
    for (uint32_t i = 0; i < train->freeze_count; i++)
        if (!freeze(graph, train->freeze[i])) {
            report_unknown(graph, train->freeze[i],
                           train->freeze_spans ? train->freeze_spans[i] : train->span);
            fine = false;
        }
    return fine;
}
