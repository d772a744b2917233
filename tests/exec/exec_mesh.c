#include "exec_ranks.h"

#include "graph/row_int.h"

#include <string.h>

exec_mesh exec_mesh_of(const etch_graph *graph, const etch_plan *plan)
{
    exec_mesh mesh = {.graph = graph, .plan = plan, .axes = plan->mesh.count, .ranks = 1};
    mesh.outside = etch_alloc_array(graph->arena, graph->dims.count, sizeof *mesh.outside);
    mesh.tokens = ETCH_NEW_ARRAY(graph->arena, graph->dims.count, uint64_t);
    for (uint32_t a = 0; a < mesh.axes; a++) {
        mesh.size[a] = exec_integer(plan->mesh.at[a].size);
        mesh.ranks *= mesh.size[a];
    }
    return mesh;
}

uint32_t exec_mesh_at(const exec_mesh *mesh, uint32_t rank, uint32_t axis)
{
    for (uint32_t a = mesh->axes; a-- > axis + 1;)
        rank /= mesh->size[a];
    return rank % mesh->size[axis];
}

bool exec_mesh_is_group(const exec_mesh *mesh, uint32_t a, uint32_t b, uint32_t axes)
{
    for (uint32_t i = 0; i < mesh->axes; i++)
        if (!(axes & (1u << i)) && exec_mesh_at(mesh, a, i) != exec_mesh_at(mesh, b, i))
            return false;
    return true;
}

/* ---- which axis of a dim is outside ----------------------------------------------------------------- */

/* In a list of shards: 1 when `a` stands before `b` on `dim`, -1 behind, 0 when they do not stand together.
 */
static int order_in(const etch_shard *shards, uint32_t count, const char *dim, uint32_t a, uint32_t b)
{
    for (uint32_t i = 0; i < count; i++) {
        int at[2] = {-1, -1};
        for (uint32_t k = 0; k < shards[i].axis_count; k++) {
            at[0] = shards[i].axes[k] == a ? (int)k : at[0];
            at[1] = shards[i].axes[k] == b ? (int)k : at[1];
        }
        if (strcmp(shards[i].dim, dim) == 0 && at[0] >= 0 && at[1] >= 0)
            return at[0] < at[1] ? 1 : -1;
    }
    return 0;
}

static int order_in_pins(const etch_pin *pins, uint32_t count, const char *dim, uint32_t a, uint32_t b)
{
    int order = 0;
    for (uint32_t i = 0; i < count && !order; i++)
        order = order_in(pins[i].shards.at, pins[i].shards.count, dim, a, b);
    return order;
}

static int order_in_plan(const etch_plan *plan, const char *dim, uint32_t a, uint32_t b)
{
    int order = order_in(plan->shards.at, plan->shards.count, dim, a, b);
    if (!order)
        order = order_in_pins(plan->pins.at, plan->pins.count, dim, a, b);
    for (uint32_t i = 0; i < plan->overrides.count && !order; i++) {
        const etch_override *o = &plan->overrides.at[i];
        order = order_in(o->shards.at, o->shards.count, dim, a, b);
        if (!order)
            order = order_in_pins(o->pins.at, o->pins.count, dim, a, b);
    }
    return order;
}

static const etch_dim *first_of(const etch_dim *dim)
{
    while (dim->twin)
        dim = dim->twin;
    return dim;
}

static void order_by_move(exec_mesh *mesh, const etch_step *step)
{
    const etch_tensor *tensor = step->ins[0]->tensor;
    for (uint32_t i = 0; i < tensor->rank; i++) {
        const etch_dim *dim = tensor->dims[i];
        for (uint32_t a = 0; a < mesh->axes && dim->holds.count; a++)
            for (uint32_t b = 0; b < mesh->axes; b++) {
                bool stays = step->ins[0]->place[a] == dim && step->outs[0]->place[a] == dim;
                bool changes = (step->ins[0]->place[b] == dim) != (step->outs[0]->place[b] == dim);
                if (stays && changes)
                    mesh->outside[dim->id][b] |= 1u << a;
            }
    }
}

/* The slots of a rank's tokens are a range: they are not divided here along one dim of the tokens and there along
 * another. */
static void order_by_tokens(exec_mesh *mesh, const etch_dim *slots, const etch_value *slotted,
                            const etch_value *indices)
{
    uint64_t divided = 0;
    for (uint32_t a = 0; a < mesh->axes; a++) {
        const etch_dim *tokens = indices->place[a];
        if (slotted->place[a] == slots && tokens && tokens != ETCH_PARTIAL)
            divided |= UINT64_C(1) << tokens->id;
    }
    uint64_t *known = &mesh->tokens[slots->id];
    const uint64_t both = *known & divided;
    mesh->unordered = mesh->unordered || (both != *known && both != divided);
    *known |= divided;
}

static void order_by_step(exec_mesh *mesh, const etch_step *step)
{
    if (step->move)
        order_by_move(mesh, step);
    else if (step->row->shape == SHAPE_ROUTED)
        order_by_tokens(mesh, step->op->attrs.slots[0], step->outs[0], step->ins[1]);
    else if (step->row->shape == SHAPE_RETURNED)
        order_by_tokens(mesh, step->op->attrs.over[1], step->ins[0], step->ins[1]);
}

static void order_region(exec_mesh *mesh, const etch_placed_region *region)
{
    for (uint32_t i = 0; i < region->items.count; i++) {
        const etch_step *step = region->items.at[i].step;
        const etch_placed_loop *loop = region->items.at[i].loop;
        for (uint32_t k = 0; loop && k < loop->bodies.count; k++)
            order_region(mesh, loop->bodies.at[k]);
        if (step)
            order_by_step(mesh, step);
    }
}

/* Makes a whole order of what must be: the first axis of the mesh that nothing must be outside of comes next.
 */
static bool complete(const exec_mesh *mesh, uint32_t *outside)
{
    uint32_t before = 0;
    for (uint32_t n = 0; n < mesh->axes; n++) {
        uint32_t a = 0;
        while (a < mesh->axes && ((before >> a & 1) || (outside[a] & ~before)))
            a++;
        if (a == mesh->axes)
            return false;
        outside[a] = before;
        before |= 1u << a;
    }
    return true;
}

bool exec_mesh_order_slots(exec_mesh *mesh, const etch_placed *placed)
{
    order_region(mesh, placed->forward);
    if (placed->backward)
        order_region(mesh, placed->backward);
    if (mesh->unordered)
        return false;
    for (uint32_t i = 0; i < mesh->graph->dims.count; i++)
        if (mesh->graph->dims.at[i]->holds.count && !complete(mesh, mesh->outside[i]))
            return false;
    return true;
}

bool exec_mesh_is_outside(const exec_mesh *mesh, const etch_dim *dim, uint32_t a, uint32_t b)
{
    if (dim->holds.count)
        return mesh->outside[dim->id][b] >> a & 1;
    int order = order_in_plan(mesh->plan, dim->name, a, b);
    for (uint32_t i = 0; i < mesh->graph->dims.count && !order; i++)
        if (first_of(mesh->graph->dims.at[i]) == first_of(dim))
            order = order_in_plan(mesh->plan, mesh->graph->dims.at[i]->name, a, b);
    return order ? order > 0 : a < b;
}

exec_array exec_mesh_part(const exec_mesh *mesh, const exec_env *env, const etch_tensor *tensor,
                          const etch_state *place, uint32_t rank)
{
    exec_array part = {0};
    for (uint32_t i = 0; i < tensor->rank; i++) {
        const etch_dim *dim = tensor->dims[i];
        uint32_t parts = 1, index = 0;
        for (uint32_t a = 0; a < mesh->axes; a++) {
            uint32_t inside = 1; /* parts that the axes inside `a` make */
            for (uint32_t b = 0; b < mesh->axes; b++)
                if (b != a && place[b] == dim && exec_mesh_is_outside(mesh, dim, a, b))
                    inside *= mesh->size[b];
            if (place[a] != dim)
                continue;
            index += exec_mesh_at(mesh, rank, a) * inside;
            parts *= mesh->size[a];
        }
        uint32_t size = exec_size(env, dim);
        if (size % parts)
            ck_abort_msg("%u parts of %s = %u", parts, dim->name, size);
        exec_array_add_dim(&part, dim, index * (size / parts), size / parts);
    }
    return part;
}
