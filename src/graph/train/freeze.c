/* `freeze = llama`: weights that a train block does not train. */
#include "graph/ir/cursor.h"
#include "graph/train/train_int.h"

/* Freezes what the selector names: the weights of a call or a loop, those that a statement reads; false when
 * that has no weights. */
static bool freeze(etch_graph *graph, const char *selector)
{
    const etch_choices chosen = etch_choose(graph, selector);
    bool any = false;
    for (uint32_t i = 0; i < chosen.count; i++) {
        for (uint32_t k = 0; k < graph->weights.count; k++)
            if (etch_choice_has_weight(&chosen.at[i], graph->weights.at[k]))
                any = graph->weights.at[k]->frozen = true;
        for (etch_cursor at = {.root = graph->forward}; chosen.at[i].result && etch_cursor_next(&at);)
            if (at.item->op && etch_choice_has(&chosen.at[i], at.item->op, at.in))
                for (uint32_t k = 0; k < at.item->op->in_count; k++)
                    if (at.item->op->ins[k]->kind == ETCH_WEIGHT)
                        any = at.item->op->ins[k]->frozen = true;
    }
    return any;
}

static void report_unknown(const etch_graph *graph, const char *selector, etch_span span)
{
    etch_diag *diag =
        etch_error(graph->diags, ETCH_E_FREEZE_UNKNOWN, span,
                   "model %s has no weights to freeze under the name '%s'", graph->model, selector);
    etch_help_selector(graph, diag, selector,
                       "name a module that is called, a loop, a tag, or a tensor as module.tensor");
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
