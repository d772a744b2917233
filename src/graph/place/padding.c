/* Dims that a plan pads: `pad V = 128*tp`. Ranks hold and compute such a dim as if its size were a multiple
 * of that; its last elements stand for nothing, and what is computed leaves them out. The model and its
 * counts know nothing of it. */
#include <string.h>

#include "graph/ir/cursor.h"
#include "graph/place/place_int.h"

static const etch_pad *pad_of(const etch_plan *plan, const etch_dim *dim)
{
    for (uint32_t i = 0; i < plan->pads.count; i++)
        if (strcmp(plan->pads.at[i].dim, dim->name) == 0)
            return &plan->pads.at[i];
    return NULL;
}

etch_expr etch_placed_size(const etch_placed *placed, const etch_dim *dim)
{
    etch_sym *sym = placed->training->graph->sym;
    const etch_pad *pad = pad_of(placed->plan, dim);
    etch_expr size = etch_training_size(placed->training, dim);
    if (!pad || !size || !pad->multiple)
        return size;
    return etch_mul(sym, etch_ceil(sym, etch_div(sym, size, pad->multiple)), pad->multiple);
}

/* ---- what can be padded -------------------------------------------------------------------------------- */

/* Why the op cannot leave the padding of the dim out; NULL: it can. */
static const char *hindrance(const etch_op *op, const etch_dim *dim)
{
    const etch_attrs *a = &op->attrs;
    if (etch_dim_among(a->from, dim) || etch_dim_among(a->to, dim))
        return "gives its elements another name or place";
    if (etch_dim_among(a->slots, dim) || etch_op_dim_linked(op, dim) != dim)
        return "routes along it";
    for (uint32_t i = 0; i < op->in_count; i++)
        if (etch_has_dim(op->ins[i], dim) && etch_op_factor(op, dim) == ETCH_FACTOR_WHOLE)
            return "needs all of it in its order";
    return NULL;
}

/* The first op of the model that cannot, and why; NULL: all can. */
static const etch_op *first_hindered(const etch_graph *graph, const etch_dim *dim, const char **why)
{
    for (etch_cursor at = {.root = graph->forward}; etch_cursor_next(&at);)
        if (at.item->op && (*why = hindrance(at.item->op, dim)) != NULL)
            return at.item->op;
    return NULL;
}

static const char *hindrance_of_size(const etch_training *training, const etch_dim *dim)
{
    const etch_dim *batch = training->train.batch;
    if (dim->average_sized)
        return "its size is one on average, which nothing needs to divide";
    return batch && etch_dim_is_packed_from(dim, batch) ? "it is what microbatches divide" : NULL;
}

bool etch_may_be_padded(const etch_placed *placed, const etch_dim *dim)
{
    const char *why;
    return !pad_of(placed->plan, dim) && !hindrance_of_size(placed->training, dim) &&
           !first_hindered(placed->training->graph, dim, &why);
}

static void refuse(etch_placer *p, const etch_pad *pad, const etch_dim *dim, const etch_op *op,
                   const char *why)
{
    etch_diag *diag = etch_place_error(p, ETCH_E_PAD, pad->span, "%s cannot be padded: %s", dim->name,
                                       op ? etch_text(p->arena, "%s %s", etch_row_name(op->row), why) : why);
    etch_note(diag, op ? op->span : dim->span, op ? "here" : "%s is declared here", dim->name);
    etch_help(diag, "choose sizes that the mesh divides, or axes that divide another dim");
}

void etch_padding_check(etch_placer *p)
{
    for (uint32_t i = 0; i < p->graph->dims.count && !p->failed; i++) {
        const etch_dim *dim = p->graph->dims.at[i];
        const etch_pad *pad = pad_of(p->plan, dim);
        if (!pad)
            continue;
        const char *why = hindrance_of_size(p->training, dim);
        const etch_op *op = why ? NULL : first_hindered(p->graph, dim, &why);
        if (why)
            refuse(p, pad, dim, op, why);
    }
}
