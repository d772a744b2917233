/* Placements as texts: formulas, elements and bytes of one rank. */
#include "session/view/plan_int.h"

const char *etch_plan_text(const etch_plan_viewing *v, etch_expr value)
{
    return value && etch_compiled_apply(v->view.session, v->view.p, value) ? etch_view_text(&v->view, value)
                                                                           : "undefined";
}

static etch_expr ranks_by_name(const etch_plan_viewing *v, uint32_t axes)
{
    etch_expr ranks = etch_int(v->view.sym, 1);
    for (uint32_t a = 0; a < v->placed->plan->mesh.count; a++)
        if (axes & v->how.axes & 1u << a)
            ranks = etch_mul(v->view.sym, ranks, etch_var(v->view.sym, v->placed->plan->mesh.at[a].name));
    return ranks;
}

/* Elements of a value on one rank. */
static etch_expr elements_by_dims(const etch_plan_viewing *v, const etch_value *value)
{
    etch_sym *sym = v->view.sym;
    const etch_plan *plan = v->placed->plan;
    etch_expr elements = etch_elements(sym, value->tensor, etch_view_size_by_dims, &v->view);
    for (uint32_t i = 0; i < value->tensor->rank; i++) {
        uint32_t axes[ETCH_MAX_AXES];
        const uint32_t count = etch_place_axes(&v->how, value->place, value->tensor->dims[i], axes);
        for (uint32_t k = 0; k < count;) {
            const etch_product *product = etch_product_at(plan, axes + k, count - k);
            elements =
                etch_div(sym, elements, etch_var(sym, product ? product->name : plan->mesh.at[axes[k]].name));
            k += product ? product->axis_count : 1;
        }
    }
    if (value->sharded_flat & v->how.axes)
        elements = etch_ceil(sym, etch_div(sym, elements, ranks_by_name(v, value->sharded_flat)));
    return elements;
}

const char *etch_plan_bytes_by_dims(const etch_plan_viewing *v, etch_value *const *values, uint32_t count)
{
    etch_sym *sym = v->view.sym;
    etch_expr bytes = etch_int(sym, 0);
    for (uint32_t i = 0; i < count; i++)
        bytes = etch_add(sym, bytes,
                         etch_mul(sym, elements_by_dims(v, values[i]),
                                  etch_int(sym, etch_dtype_bytes(values[i]->tensor->dtype))));
    return etch_view_dim_text(&v->view, bytes);
}

const char *etch_plan_payload_by_dims(const etch_plan_viewing *v, const etch_step *collective)
{
    etch_expr bytes = etch_int(v->view.sym, 0);
    for (uint32_t i = 0; i < collective->in_count; i++)
        bytes = etch_add(v->view.sym, bytes,
                         etch_payload_by(v->placed, collective, i, elements_by_dims(v, collective->ins[i])));
    return etch_view_dim_text(&v->view, bytes);
}

const size_t *etch_plan_axis_list(const etch_plan_viewing *v, uint32_t axes, size_t *count)
{
    size_t *list = ETCH_NEW_ARRAY(v->view.arena, ETCH_MAX_AXES, size_t);
    *count = 0;
    for (uint32_t a = 0; a < v->placed->plan->mesh.count; a++)
        if (axes & v->how.axes & 1u << a)
            list[(*count)++] = a;
    return list;
}
