/* How sequences and slots lie on ranks, so that each does its part of the work: see exec_mesh_note_slots. */
#include "exec_ops_route.h"
#include "exec_ranks.h"

#include <string.h>

/* Ranks that share the queries of a causal attention have two chunks each. */
static void lay_out_queries(exec_ranks *ranks, const etch_step *step)
{
    const etch_dim *query =
        strcmp(etch_row_name(step->row), "sdpa") == 0 ? exec_causal_query(step->op) : NULL;
    uint32_t sharing = 1;
    for (uint32_t a = 0; a < ranks->mesh.axes && query; a++)
        sharing *= step->factor[a] == query ? ranks->mesh.size[a] : 1;
    if (sharing == 1 || ranks->placed->plan->contiguous)
        return;
    const etch_graph *graph = ranks->placed->training->graph;
    uint32_t *padded = ETCH_NEW_ARRAY(ranks->env.arena, graph->dims.count, uint32_t);
    for (uint32_t i = 0; i < graph->dims.count; i++)
        padded[i] = exec_mesh_padded(&ranks->mesh, graph->dims.at[i], ranks->env.size[i]);
    exec_lay_out(&ranks->env, query, sharing, padded);
    exec_lay_out(&ranks->reference->env, query, sharing, padded);
}

/* One lane for every axis that divides the slots. */
static exec_route *route_by(exec_ranks *ranks, const etch_tensor *indices, const etch_dim *slots)
{
    exec_routes *routes = ranks->env.routes;
    for (uint32_t i = 0; i < routes->count; i++)
        if (routes->at[i].indices == indices && routes->at[i].slots == slots)
            return &routes->at[i];
    EXEC_REQUIRE(routes->count < sizeof routes->at / sizeof *routes->at);
    exec_route *route = &routes->at[routes->count++];
    *route = (exec_route){.indices = indices, .slots = slots};
    for (uint32_t a = 0; a < ranks->mesh.axes; a++)
        if (exec_mesh_divides(&ranks->mesh, slots, a))
            route->lanes[route->lane_count++] = (exec_lane){.axis = a, .count = ranks->mesh.size[a]};
    return route;
}

static void name_lane(exec_ranks *ranks, exec_route *route, uint32_t axis, const etch_dim *token)
{
    uint32_t i = 0;
    while (i < route->lane_count && route->lanes[i].axis != axis)
        i++;
    EXEC_REQUIRE(i < route->lane_count);
    exec_lane *lane = &route->lanes[i];
    if (lane->dim && lane->dim != token)
        exec_fail(&ranks->env, "slots are those of parts of %s and of parts of %s", lane->dim->name,
                  token->name);
    lane->dim = token;
}

/* Into how many parts the lanes of the route cut their token dims, and in which order. */
static void find_parts(const exec_ranks *ranks, exec_route *route)
{
    for (uint32_t i = 0; i < route->lane_count; i++) {
        exec_lane *lane = &route->lanes[i];
        lane->parts = lane->count, lane->inside = 1;
        for (uint32_t k = 0; k < route->lane_count; k++) {
            const exec_lane *other = &route->lanes[k];
            if (k == i || !lane->dim || other->dim != lane->dim)
                continue;
            lane->parts *= other->count;
            if (exec_mesh_is_outside(&ranks->mesh, lane->dim, lane->axis, other->axis))
                lane->inside *= other->count;
        }
        if (lane->dim && exec_mesh_is_slots(&ranks->mesh, lane->dim)) { /* routed once more */
            const exec_cells cells = exec_mesh_cells(&ranks->mesh, lane->dim, lane->axis);
            lane->parts = cells.parts, lane->inside = cells.inside;
        }
    }
}

/* Ranks that divide tokens have the slots that their tokens fill. */
static void lay_out_slots(exec_ranks *ranks, const etch_step *step)
{
    const etch_attrs *attrs = &step->op->attrs;
    exec_route *route = route_by(ranks, exec_route_indices(step->op), attrs->to.at[0]);
    for (uint32_t a = 0; a < ranks->mesh.axes; a++)
        for (uint32_t i = 0; i < attrs->to.count; i++)
            if (step->factor[a] == attrs->from.at[i])
                name_lane(ranks, route, a, attrs->from.at[i]);
    find_parts(ranks, route);
}

void exec_ranks_lay_out(exec_ranks *ranks, const etch_step *step)
{
    lay_out_queries(ranks, step);
    if (step->phase == ETCH_FORWARD && exec_is_route(step->op))
        lay_out_slots(ranks, step);
}
