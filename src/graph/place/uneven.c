/* Work that differs among the ranks of an axis: causal queries that are divided in contiguous parts. Late
 * queries see more keys. The formulas of such work have the coordinate of the rank on the axis in them. */
#include "graph/place/place_int.h"

etch_expr etch_coordinate(etch_sym *sym, uint32_t axis)
{
    return etch_index(sym, 1 + axis);
}

etch_expr etch_work_share_index(etch_placer *p, const etch_dim *dim, uint32_t axes)
{
    etch_expr index = etch_int(p->sym, 0);
    for (uint32_t a = 0; a < p->axis_count; a++) {
        etch_expr inside = etch_coordinate(p->sym, a);
        if (!(axes >> a & 1))
            continue;
        for (uint32_t b = 0; b < p->axis_count; b++)
            if (axes >> b & 1 && a != b && etch_map_is_inside(p->placed, dim, b, a))
                inside = etch_mul(p->sym, inside, p->plan->mesh.at[b].size);
        index = etch_add(p->sym, index, inside);
    }
    p->placed->uneven_axes |= axes;
    return index;
}

/* Puts in coordinates, by axis. */
static etch_expr put_in(const etch_placed *placed, etch_expr expr, const etch_expr *coordinates)
{
    etch_sym *sym = placed->training->graph->sym;
    etch_expr vars[ETCH_MAX_AXES], values[ETCH_MAX_AXES];
    uint32_t count = 0;
    for (uint32_t a = 0; a < placed->plan->mesh.count; a++)
        if (placed->uneven_axes >> a & 1) {
            vars[count] = etch_coordinate(sym, a);
            values[count++] = coordinates[a];
        }
    return count ? etch_subst(sym, expr, count, vars, values) : expr;
}

etch_expr etch_at_work_share(const etch_placed *placed, etch_expr expr, etch_expr number)
{
    etch_sym *sym = placed->training->graph->sym;
    etch_expr coordinates[ETCH_MAX_AXES] = {NULL}, left = number;
    uint32_t outside = placed->uneven_axes;
    for (uint32_t i = placed->plan->mesh.count; number && i-- > 0;) {
        const uint32_t a = etch_plan_axis_at(placed->plan, i);
        if (!(placed->uneven_axes >> a & 1))
            continue;
        outside &= ~(1u << a);
        if (!outside) { /* the part is one of those that there are */
            coordinates[a] = left;
            break;
        }
        const etch_expr size = placed->plan->mesh.at[a].size;
        coordinates[a] = etch_mod(sym, left, size);
        left = etch_floor_div(sym, left, size);
    }
    for (uint32_t a = 0; !number && a < placed->plan->mesh.count; a++)
        coordinates[a] = etch_sub(sym, placed->plan->mesh.at[a].size, etch_int(sym, 1));
    return put_in(placed, expr, coordinates);
}

etch_expr etch_work_share_count(const etch_placed *placed)
{
    return etch_group_size(placed, placed->uneven_axes);
}
