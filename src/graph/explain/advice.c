/* Advice where the requirements of a plan are not met. */
#include <string.h>

#include "graph/explain/explain.h"
#include "graph/ir/row.h"

static bool speaks_of(etch_sym *sym, etch_expr size, etch_expr var)
{
    const etch_expr *vars;
    const uint32_t count = etch_vars_of(sym, size, &vars);
    for (uint32_t i = 0; i < count; i++)
        if (vars[i] == var)
            return true;
    return false;
}

/* The dim that counts what there is for each of `dim`, in one tensor with it: heads in groups that share
 * keys. NULL: there is none. */
static const etch_dim *partner_of(const etch_graph *graph, const etch_dim *dim)
{
    for (uint32_t i = 0; i < graph->tensors.count; i++) {
        const etch_tensor *tensor = graph->tensors.at[i];
        for (uint32_t d = 0; etch_has_dim(tensor, dim) && d < tensor->rank; d++)
            if (tensor->dims[d] != dim && speaks_of(graph->sym, tensor->dims[d]->size, dim->size))
                return tensor->dims[d];
    }
    return NULL;
}

/* "kv" for a size of kv_heads, "g" for the dim G. */
static const char *axis_name(etch_arena *arena, const etch_dim *dim)
{
    const char *size = etch_var_name(dim->size);
    if (size)
        return etch_copy_text(arena, size, strcspn(size, "_"));
    char *name = etch_copy_text(arena, dim->name, strcspn(dim->name, "'"));
    for (char *c = name; *c; c++)
        *c = *c >= 'A' && *c <= 'Z' ? (char)(*c - 'A' + 'a') : *c;
    return name;
}

const char *etch_two_axes_text(const etch_placed *placed, const etch_requirement *r, int64_t size,
                               int64_t divisor)
{
    const etch_graph *graph = placed->training->graph;
    etch_arena *arena = placed->arena;
    const char *axis = etch_var_name(r->divisor);
    if (!axis || size <= 1 || size >= divisor || divisor % size != 0)
        return NULL;
    const etch_dim *partner = partner_of(graph, r->dim);
    if (!partner)
        return NULL;
    const char *parts = etch_expr_text(graph->sym, r->size), *one = axis_name(arena, r->dim);
    const char *two = axis_name(arena, partner);
    return etch_text(arena,
                     "mesh [.., %s = min(%s, %s), %s = %s/min(%s, %s)], axis %s = (%s, %s), shard %s @ %s, "
                     "%s @ %s",
                     one, axis, parts, two, axis, axis, parts, axis, one, two, r->dim->name, one,
                     partner->name, two);
}
