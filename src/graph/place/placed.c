/* Questions about plans and the values of a placed graph: ranks, sizes, memory, names of axes. */
#include "graph/place/place_int.h"

ETCH_CURSOR_NEXT(etch_placed_cursor, etch_placed_region);

const etch_dim etch_partial_mark = {.name = "partial"};
const etch_dim etch_partial_max_mark = {.name = "partial maximum"};

uint32_t etch_axes_held(const etch_plan *plan, const etch_state *place, etch_state state)
{
    uint32_t axes = 0;
    for (uint32_t a = 0; a < plan->mesh.count; a++)
        if (place[a] == state)
            axes |= 1u << a;
    return axes;
}

uint32_t etch_axes_partial(const etch_plan *plan, const etch_state *place)
{
    return etch_axes_held(plan, place, ETCH_PARTIAL) | etch_axes_held(plan, place, ETCH_PARTIAL_MAX);
}

/* Of a dim that a rolling cache shows a part of. */
static etch_expr kept_size(const etch_placed *placed, const etch_dim *dim)
{
    if (!dim->window_of)
        return etch_placed_size(placed, dim);
    return etch_smaller(placed->training->graph->sym, etch_placed_size(placed, dim->window_of), dim->window);
}

static etch_expr count_elements(const etch_placed *placed, const etch_value *value,
                                etch_expr (*size)(const etch_placed *, const etch_dim *))
{
    etch_sym *sym = placed->training->graph->sym;
    etch_expr count = etch_int(sym, 1);
    for (uint32_t i = 0; i < value->tensor->rank; i++)
        count = etch_mul(sym, count, size(placed, value->tensor->dims[i]));
    for (uint32_t a = 0; a < placed->plan->mesh.count; a++)
        if (etch_is_sharded(value->place[a]))
            count = etch_div(sym, count, placed->plan->mesh.at[a].size);
    if (!value->sharded_flat)
        return count;
    return etch_ceil(sym, etch_div(sym, count, etch_group_size(placed, value->sharded_flat)));
}

etch_expr etch_value_elements(const etch_placed *placed, const etch_value *value)
{
    return count_elements(placed, value, etch_placed_size);
}

static etch_expr bytes_of(const etch_placed *placed, const etch_value *value, etch_expr elements)
{
    etch_sym *sym = placed->training->graph->sym;
    return etch_mul(sym, elements, etch_int(sym, etch_dtype_bytes(value->tensor->dtype)));
}

etch_expr etch_value_bytes(const etch_placed *placed, const etch_value *value)
{
    return bytes_of(placed, value, etch_value_elements(placed, value));
}

bool etch_value_stays(const etch_value *value)
{
    return value->step && value->step->row->stays & ETCH_EXTRA_OF(value->tensor->output);
}

etch_expr etch_value_kept_bytes(const etch_placed *placed, const etch_value *value)
{
    return bytes_of(placed, value, count_elements(placed, value, kept_size));
}

etch_value *etch_value_root(etch_value *value)
{
    while (value->step && value->step->op && etch_op_is_view(value->step->op))
        value = value->step->ins[0];
    return value;
}

/* The first product of the plan that has more than one axis, all of them among `axes`; NULL when there is
 * none. */
static const etch_product *product_in(const etch_plan *plan, uint32_t axes)
{
    for (uint32_t i = 0; i < plan->products.count; i++) {
        const etch_product *product = &plan->products.at[i];
        if (product->axis_count > 1 && (etch_axes_of(product->axes, product->axis_count) & ~axes) == 0)
            return product;
    }
    return NULL;
}

etch_value *etch_value_before(const etch_value *value)
{
    const etch_step *step = value->step;
    uint32_t i = 0;
    while (step->copies && step->outs[i] != value) /* weights that are gathered at once */
        i++;
    return step->ins[i];
}

const char *etch_axes_label(const etch_placed *placed, uint32_t axes)
{
    const etch_plan *plan = placed->plan;
    etch_buf buf = {.arena = placed->arena};
    uint32_t count = 0;
    for (uint32_t a = 0; a < plan->mesh.count; a++) {
        if (!(axes & (1u << a)))
            continue;
        const etch_product *product = product_in(plan, axes);
        const uint32_t together = product ? etch_axes_of(product->axes, product->axis_count) : 0;
        const bool begins = together >> a & 1; /* at the first of its axes */
        axes &= ~(begins ? together : 1u << a);
        etch_buf_printf(&buf, "%s%s", count++ ? "," : "", begins ? product->name : plan->mesh.at[a].name);
    }
    if (!buf.length)
        return "";
    return count > 1 ? etch_text(placed->arena, "(%s)", buf.text) : buf.text;
}

etch_expr etch_group_size(const etch_placed *placed, uint32_t axes)
{
    etch_sym *sym = placed->training->graph->sym;
    etch_expr size = etch_int(sym, 1);
    for (uint32_t i = 0; i < placed->plan->mesh.count; i++)
        if (axes >> i & 1)
            size = etch_mul(sym, size, placed->plan->mesh.at[i].size);
    return size;
}

/* ---- steps --------------------------------------------------------------------------------------------- */

etch_role etch_step_role(const etch_step *step)
{
    if (step->collective != ETCH_NO_COLLECTIVE)
        return step->collective == ETCH_SLICE ? ETCH_ROLE_FREE : ETCH_ROLE_RESHARD;
    return etch_op_role(step->op);
}

bool etch_step_shows(const etch_step *step)
{
    return step && step->collective == ETCH_NO_COLLECTIVE && step->row->role == ETCH_ROLE_FREE;
}

etch_value *etch_value_memory(etch_value *value, bool *sharded)
{
    while (value->step && etch_step_role(value->step) == ETCH_ROLE_FREE) {
        if (sharded && value->step->collective == ETCH_SLICE)
            *sharded = true;
        value = value->step->ins[0];
    }
    return value;
}
