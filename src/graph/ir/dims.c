/* Dims, and lists of them. */
#include "graph/ir/ir_int.h"

bool etch_dim_among(etch_dim_view dims, const etch_dim *dim)
{
    for (uint32_t i = 0; i < dims.count; i++)
        if (dims.at[i] == dim)
            return true;
    return false;
}

bool etch_has_dim(const etch_tensor *tensor, const etch_dim *dim)
{
    return etch_dim_among(etch_dims_of(tensor), dim);
}

const etch_dim *etch_dim_beside(const etch_tensor *t, const etch_tensor *a, const etch_tensor *b,
                                etch_dim_view less)
{
    for (uint32_t i = 0; i < t->rank; i++)
        if (!etch_has_dim(a, t->dims[i]) && !(b && etch_has_dim(b, t->dims[i])) &&
            !etch_dim_among(less, t->dims[i]))
            return t->dims[i];
    return NULL;
}

bool etch_covers(const etch_tensor *a, const etch_tensor *b)
{
    return !etch_dim_beside(b, a, NULL, (etch_dim_view){0});
}

bool etch_dim_is_packed_from(const etch_dim *dim, const etch_dim *other)
{
    for (const etch_dim *d = dim; d; d = d->alias)
        for (uint32_t i = 0; i < d->packed_from.count; i++)
            if (d->packed_from.at[i] == other)
                return true;
    return dim == other || (other && dim->part_of == other);
}

bool etch_dim_is_meant(const etch_dim *dim, const etch_dim *declared)
{
    return dim == declared || (declared && dim->window_of == declared);
}

/* That of the operands which `dim` means. */
static etch_dim *dim_meant(etch_dim *dim, etch_tensor *const *ins, uint32_t count)
{
    etch_dim *meant = dim;
    for (uint32_t i = 0; i < count && dim; i++)
        for (uint32_t d = 0; d < ins[i]->rank; d++) {
            if (ins[i]->dims[d] == dim)
                return dim;
            if (ins[i]->dims[d]->window_of == dim)
                meant = ins[i]->dims[d];
        }
    return meant;
}

void etch_dims_mean(etch_graph *graph, etch_dim_view *dims, etch_tensor *const *ins, uint32_t count)
{
    for (uint32_t i = 0; i < dims->count; i++) {
        etch_dim *meant = dim_meant(dims->at[i], ins, count);
        if (meant == dims->at[i])
            continue;
        etch_dim **changed = ETCH_NEW_ARRAY(graph->arena, dims->count, etch_dim *);
        for (uint32_t k = 0; k < dims->count; k++)
            changed[k] = k == i ? meant : dims->at[k];
        dims->at = changed;
    }
}

const char *etch_dims_text(etch_arena *arena, etch_dim_view dims)
{
    etch_buf buf = {.arena = arena};
    etch_buf_puts(&buf, "[");
    for (uint32_t i = 0; i < dims.count; i++)
        etch_buf_printf(&buf, "%s%s", i ? "," : "", dims.at[i] ? dims.at[i]->name : "?");
    etch_buf_puts(&buf, "]");
    return buf.text;
}

const char *etch_tensor_text(etch_arena *arena, const etch_tensor *tensor)
{
    return etch_text(arena, "%s%s", tensor->name, etch_dims_text(arena, etch_dims_of(tensor)));
}

void etch_dim_add(etch_graph *graph, etch_dim_list *list, etch_dim *dim)
{
    if (!etch_dim_among(ETCH_DIMS(*list), dim))
        ETCH_PUSH(graph->arena, list, dim);
}

bool etch_dims_same(etch_dim_view a, etch_dim_view b)
{
    bool same = a.count == b.count;
    for (uint32_t i = 0; i < a.count && same; i++)
        same = etch_dim_among(b, a.at[i]);
    return same;
}

/* Marks `to` as another name for `from`, once; not when it is renamed back. */
void etch_dim_alias(etch_dim *to, const etch_dim *from)
{
    for (const etch_dim *earlier = from; earlier; earlier = earlier->alias)
        if (earlier == to)
            return;
    if (!to->alias)
        to->alias = from;
}

bool etch_call_later(const etch_call *call, const char *what, const char *more)
{
    etch_error(call->graph->diags, ETCH_E_LATER, call->span,
               "%s%s is part of the language but is not given meaning yet%s", call->called->name, what, more);
    return false;
}

bool etch_call_has(const etch_call *call, const etch_dim *dim)
{
    for (uint32_t i = 0; i < call->in_count; i++)
        if (etch_has_dim(call->ins[i], dim))
            return true;
    return false;
}

etch_dim *etch_call_new_dim(const etch_call *call, const etch_dim *but)
{
    etch_dim *found = NULL;
    uint32_t count = 0;
    for (uint32_t i = 0; i < call->want.count; i++) {
        etch_dim *dim = call->want.at[i];
        if (dim && dim != but && !etch_call_has(call, dim))
            found = dim, count++;
    }
    return count == 1 ? found : NULL;
}

const char *etch_call_tensor(const etch_call *call, const etch_tensor *tensor)
{
    return etch_tensor_text(call->graph->arena, tensor);
}

const char *etch_call_dims(const etch_call *call, etch_dim_view dims)
{
    return etch_dims_text(call->graph->arena, dims);
}

const char *etch_call_number(const etch_call *call, etch_expr number)
{
    return etch_expr_text(call->graph->sym, number);
}

bool etch_shape_has(const etch_call *call, const etch_tensor *t, etch_dim_view dims, const char *what)
{
    for (uint32_t i = 0; i < dims.count; i++) {
        if (!dims.at[i])
            return false;
        if (etch_has_dim(t, dims.at[i]))
            continue;
        etch_error(call->graph->diags, ETCH_E_MISSING_DIM, call->span,
                   "%s: %s has no dim %s, which `%s` names", call->called->name, etch_call_tensor(call, t),
                   dims.at[i]->name, what);
        return false;
    }
    return true;
}

void etch_dims_add(const etch_call *call, etch_dim_list *out, etch_dim_view dims)
{
    for (uint32_t i = 0; i < dims.count; i++)
        ETCH_PUSH(call->graph->arena, out, dims.at[i]);
}

void etch_dims_add_beside(const etch_call *call, etch_dim_list *out, const etch_tensor *t, etch_dim_view less)
{
    for (uint32_t i = 0; i < t->rank; i++)
        if (!etch_dim_among(less, t->dims[i]))
            etch_dim_add(call->graph, out, t->dims[i]);
}
