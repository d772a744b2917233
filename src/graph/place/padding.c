/* Dims that a plan pads: `pad V = 128*tp`. Ranks hold and compute such a dim as if its size were a multiple
 * of that; its last elements stand for nothing, and what is computed leaves them out. The model and its
 * counts know nothing of it. */
#include <string.h>

#include "graph/ir/cursor.h"
#include "graph/place/place_int.h"

const etch_pad *etch_pad_of(const etch_plan *plan, const etch_dim *dim)
{
    for (uint32_t i = 0; i < plan->pads.count; i++)
        if (strcmp(plan->pads.at[i].dim, dim->name) == 0)
            return &plan->pads.at[i];
    /* another name of the same elements: keys of the queries' dim */
    return dim->alias && dim->alias->size == dim->size ? etch_pad_of(plan, dim->alias) : NULL;
}

etch_expr etch_placed_size(const etch_placed *placed, const etch_dim *dim)
{
    etch_sym *sym = placed->training->graph->sym;
    const etch_pad *pad = etch_pad_of(placed->plan, dim);
    etch_expr size = etch_training_size(placed->training, dim);
    if (!pad || !size || !pad->multiple)
        return size;
    return etch_mul(sym, etch_ceil(sym, etch_div(sym, size, pad->multiple)), pad->multiple);
}

/* ---- what can be padded -------------------------------------------------------------------------------- */

/* Are the two padded to the same multiple, or not at all? */
static bool are_alike(const etch_plan *plan, const etch_dim *a, const etch_dim *b)
{
    const etch_pad *one = a ? etch_pad_of(plan, a) : NULL, *other = b ? etch_pad_of(plan, b) : NULL;
    return a && b && (one ? one->multiple : NULL) == (other ? other->multiple : NULL);
}

/* Does a view give the dim one other name, which is padded as it is? */
static bool renames_alike(const etch_plan *plan, const etch_op *op, const etch_dim *dim)
{
    const etch_dim_view from = op->attrs.from, to = op->attrs.to;
    if (!etch_op_is_view(op))
        return false;
    for (uint32_t i = 0; i < from.count; i++)
        if ((from.at[i] == dim || to.at[i] == dim) && !are_alike(plan, from.at[i], to.at[i]))
            return false;
    return true;
}

/* Does the op show the first elements of the dim? */
static bool is_cut(const etch_op *op, const etch_dim *dim)
{
    return op->row->role == ETCH_ROLE_FREE && etch_dim_among(op->attrs.from, dim) &&
           etch_has_dim(op->ins[0], dim);
}

/* Does the op put elements together, take them apart, or choose the first, before the padding? */
static bool is_in_front(const etch_op *op, const etch_dim *dim)
{
    const bool from = etch_dim_among(op->attrs.from, dim), to = etch_dim_among(op->attrs.to, dim);
    return !etch_op_is_view(op) && ((to && !from) || (!to && is_cut(op, dim)));
}

/* Does the op mask scores? What no query sees is hidden as later keys are. */
static bool masks(const etch_op *op, const etch_dim *dim)
{
    return (op->row->divide || op->row->hides) && etch_dim_among(op->attrs.over, dim);
}

static const char other_name[] = "gives its elements another name, which is not padded alike";

/* Why the op cannot leave the padding of the dim out; NULL: it can. */
static const char *hindrance(const etch_plan *plan, const etch_op *op, const etch_dim *dim)
{
    const etch_attrs *a = &op->attrs;
    const bool in_front = is_in_front(op, dim);
    const bool is_mapped = etch_dim_among(a->from, dim) || etch_dim_among(a->to, dim);
    if (etch_dim_among(a->slots, dim) || etch_op_dim_linked(op, dim) != dim ||
        (is_mapped && op->row->routing != ETCH_ROUTING_NONE))
        return "routes along it";
    if (is_mapped && !in_front && !renames_alike(plan, op, dim))
        return etch_op_is_view(op) ? other_name : "gives its elements another place";
    for (uint32_t i = 0; i < op->in_count && !in_front && !masks(op, dim); i++)
        if (etch_has_dim(op->ins[i], dim) && etch_op_factor(op, dim) == ETCH_FACTOR_WHOLE)
            return "needs all of it in its order";
    return NULL;
}

/* The first op of the model that cannot, and why; NULL: all can. */
static const etch_op *first_hindered(const etch_placed *placed, const etch_dim *dim, const char **why)
{
    for (etch_cursor at = {.root = placed->training->graph->forward}; etch_cursor_next(&at);)
        if (at.item->op && (*why = hindrance(placed->plan, at.item->op, dim)) != NULL)
            return at.item->op;
    return NULL;
}

bool etch_may_be_padded(const etch_placed *placed, const etch_dim *dim)
{
    const char *why;
    return !etch_pad_of(placed->plan, dim) && !dim->average_sized && !first_hindered(placed, dim, &why);
}

static void refuse(etch_placer *p, const etch_pad *pad, const etch_dim *dim, const etch_op *op,
                   const char *why)
{
    etch_diag *diag = etch_place_error(p, ETCH_E_PAD, pad->span, "%s cannot be padded: %s", dim->name,
                                       op ? etch_text(p->arena, "%s %s", etch_row_name(op->row), why) : why);
    etch_note(diag, op ? op->span : dim->span, op ? "here" : "%s is declared here", dim->name);
    const etch_dim *first = dim->alias && dim->alias->size == dim->size ? dim->alias : dim;
    if (why == other_name)
        etch_help(diag, "pad %s alone: what it is renamed to as a whole is padded with it", first->name);
    etch_help(diag, "choose sizes that the mesh divides, or axes that divide another dim");
}

void etch_padding_check(etch_placer *p)
{
    for (uint32_t i = 0; i < p->graph->dims.count && !p->failed; i++) {
        const etch_dim *dim = p->graph->dims.at[i];
        const etch_pad *pad = etch_pad_of(p->plan, dim);
        if (!pad)
            continue;
        const bool is_average = dim->average_sized && strcmp(pad->dim, dim->name) == 0;
        const char *why = is_average ? "its size is one on average, which nothing needs to divide" : NULL;
        const etch_op *op = why ? NULL : first_hindered(p->placed, dim, &why);
        if (why)
            refuse(p, pad, dim, op, why);
    }
}
