#include "exec_ranks.h"

#include <string.h>

exec_mesh exec_mesh_of(const etch_graph *graph, const etch_plan *plan)
{
    exec_mesh mesh = {.graph = graph, .plan = plan, .axes = plan->mesh.count, .ranks = 1};
    mesh.is_slots = ETCH_NEW_ARRAY(graph->arena, graph->dims.count, bool);
    mesh.divide = ETCH_NEW_ARRAY(graph->arena, graph->dims.count, uint32_t);
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

uint32_t exec_mesh_count(const exec_mesh *mesh, uint32_t axes)
{
    uint32_t count = 1;
    for (uint32_t a = 0; a < mesh->axes; a++)
        count *= axes & (1u << a) ? mesh->size[a] : 1;
    return count;
}

uint32_t exec_mesh_place(const exec_mesh *mesh, uint32_t rank, uint32_t axes)
{
    uint32_t place = 0;
    for (uint32_t a = 0; a < mesh->axes; a++)
        if (axes & (1u << a))
            place = place * mesh->size[a] + exec_mesh_at(mesh, rank, a);
    return place;
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
    while (dim->alias)
        dim = dim->alias;
    return dim;
}

/* ---- slots ------------------------------------------------------------------------------------------ */

bool exec_mesh_is_slots(const exec_mesh *mesh, const etch_dim *dim)
{
    return mesh->is_slots[first_of(dim)->id];
}

static void note_value(exec_mesh *mesh, const etch_value *value)
{
    for (uint32_t a = 0; a < mesh->axes; a++)
        if (etch_is_sharded(value->place[a]))
            mesh->divide[first_of(value->place[a])->id] |= 1u << a;
}

static void note_region(exec_mesh *mesh, const etch_placed_region *region)
{
    for (uint32_t i = 0; i < region->carries.count; i++)
        note_value(mesh, region->carries.at[i].in);
    for (uint32_t i = 0; i < region->items.count; i++) {
        const etch_step *step = region->items.at[i].step;
        const etch_placed_loop *loop = region->items.at[i].loop;
        for (uint32_t k = 0; loop && k < loop->bodies.count; k++)
            note_region(mesh, loop->bodies.at[k]);
        for (uint32_t k = 0; step && k < step->in_count; k++)
            note_value(mesh, step->ins[k]);
        for (uint32_t k = 0; step && k < step->out_count; k++)
            note_value(mesh, step->outs[k]);
    }
}

void exec_mesh_note_slots(exec_mesh *mesh, const etch_placed *placed)
{
    const etch_graph *graph = mesh->graph;
    for (uint32_t i = 0; i < graph->dims.count; i++)
        if (graph->dims.at[i]->packed_from.count)
            mesh->is_slots[first_of(graph->dims.at[i])->id] = true;
    note_region(mesh, placed->forward);
    if (placed->backward)
        note_region(mesh, placed->backward);
}

bool exec_mesh_divides(const exec_mesh *mesh, const etch_dim *slots, uint32_t axis)
{
    return mesh->divide[first_of(slots)->id] >> axis & 1;
}

exec_cells exec_mesh_cells(const exec_mesh *mesh, const etch_dim *slots, uint32_t axis)
{
    exec_cells cells = {1, 1};
    for (uint32_t a = 0; a < mesh->axes; a++) {
        uint32_t parts = exec_mesh_divides(mesh, slots, a) ? mesh->size[a] : 1;
        cells.parts *= parts;
        cells.inside *= a > axis ? parts : 1;
    }
    return cells;
}

/* The slots of the cells that are a rank's on all axes that divide the dim here. */
static void add_slots(const exec_mesh *mesh, const exec_env *env, exec_array *part, const etch_dim *dim,
                      const etch_state *place, uint32_t rank)
{
    uint32_t size = exec_size(env, dim), count = 0, *own = ETCH_NEW_ARRAY(env->arena, size, uint32_t);
    for (uint32_t slot = 0; slot < size; slot++) {
        bool is_own = true;
        for (uint32_t a = 0; a < mesh->axes; a++) {
            const exec_cells cells = exec_mesh_cells(mesh, dim, a);
            if (size % cells.parts)
                ck_abort_msg("%u parts of %s = %u", cells.parts, dim->name, size);
            uint32_t at = slot / (size / cells.parts) / cells.inside % mesh->size[a];
            is_own = is_own && (place[a] != dim || at == exec_mesh_at(mesh, rank, a));
        }
        if (is_own)
            own[count++] = slot;
    }
    exec_array_add_apart(part, dim, own, count);
}

uint32_t exec_mesh_padded(const exec_mesh *mesh, const etch_dim *dim, uint32_t size)
{
    for (uint32_t i = 0; i < mesh->plan->pads.count; i++) {
        const uint32_t multiple = exec_integer(mesh->plan->pads.at[i].multiple);
        if (strcmp(mesh->plan->pads.at[i].dim, dim->name) == 0)
            return (size + multiple - 1) / multiple * multiple;
    }
    /* keys of padded queries, by another name */
    return dim->alias && dim->alias->size == dim->size ? exec_mesh_padded(mesh, dim->alias, size) : size;
}

/* ---- parts ------------------------------------------------------------------------------------------ */

bool exec_mesh_is_outside(const exec_mesh *mesh, const etch_dim *dim, uint32_t a, uint32_t b)
{
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
        if (exec_mesh_is_slots(mesh, dim)) {
            add_slots(mesh, env, &part, dim, place, rank);
            continue;
        }
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
        const uint32_t size = exec_size(env, dim), padded = exec_mesh_padded(mesh, dim, size);
        if (padded % parts)
            ck_abort_msg("%u parts of %s = %u", parts, dim->name, padded);
        const uint32_t each = padded / parts, first = exec_index_of_slot(env, dim, index * each);
        exec_array_add_dim(&part, dim, first, exec_index_of_slot(env, dim, (index + 1) * each) - first);
        exec_array_pad(&part, each);
    }
    return part;
}
