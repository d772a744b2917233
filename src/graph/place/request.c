/* The requested layouts of results (R3): found before a region is placed, last op first, so that all those
 * below are known. */
#include <string.h>

#include "graph/ir/cursor.h"
#include "graph/place/place_int.h"

/* ---- who uses what ---------------------------------------------------------------------------------- */

static void add_use(etch_placer *p, const etch_tensor *tensor, const etch_op *op, const etch_region *region)
{
    etch_value_use *u = &p->uses[tensor->id];
    bool near = tensor->region == region && tensor->producer && tensor->producer->phase == op->phase;
    u->only = near && u->count == 0 ? op : NULL;
    u->count += near ? 1 : 2;
}

/* A value read in the pass of another phase is saved for it and does not count: backward takes what forward
 * decided. */
static bool same_pass(const etch_tensor *tensor, const etch_op *op)
{
    return op->phase != ETCH_BACKWARD || !tensor->producer || tensor->producer->phase == ETCH_BACKWARD;
}

/* Iterations may carry what stands before the loop, as it is. */
static void add_carried_from_outside(etch_placer *p, const etch_loop *loop)
{
    for (uint32_t k = 0; k < loop->bodies.count; k++)
        for (uint32_t i = 0; i < loop->bodies.at[k]->carries.count; i++) {
            const etch_tensor *out = loop->bodies.at[k]->carries.at[i].out;
            if (out->region != loop->bodies.at[k])
                p->uses[out->id].count += 2;
        }
}

static void add_carried(etch_placer *p, const etch_loop *loop)
{
    add_carried_from_outside(p, loop);
    for (uint32_t k = 0; k < etch_loop_carries(loop)->count; k++) {
        const etch_carry *c = &etch_loop_carries(loop)->at[k];
        p->uses[c->result->id].result_of = (etch_loop_carried){loop, k};
        if (!c->init)
            continue;
        etch_value_use *u = &p->uses[c->init->id];
        u->init = u->count == 0 ? (etch_loop_carried){loop, k} : (etch_loop_carried){NULL, 0};
        u->count += 2;
    }
}

static bool is_read(const etch_placer *p, const etch_op *op)
{
    bool read = !etch_op_is_view(op) || op->row->stays != 0;
    for (uint32_t i = 0; i < op->out_count; i++)
        read = read || p->uses[op->outs[i]->id].is_read;
    return read;
}

static void read_carried(etch_placer *p, const etch_loop *loop)
{
    for (uint32_t k = 0; k < loop->bodies.count; k++)
        for (uint32_t i = 0; i < loop->bodies.at[k]->carries.count; i++) {
            const etch_carry *c = &loop->bodies.at[k]->carries.at[i];
            p->uses[c->out->id].is_read = true;
            if (c->init)
                p->uses[c->init->id].is_read = true;
        }
}

/* What is read under another name only is read if that is. */
static void find_read(etch_placer *p)
{
    ETCH_VEC(const etch_op *) ops = {0};
    for (uint32_t i = 0; i < p->graph->tensors.count; i++)
        p->uses[i].is_read = p->graph->tensors.at[i]->is_result || p->graph->tensors.at[i]->wanted;
    for (etch_cursor at = {.root = p->graph->forward, .then = p->training->backward}; etch_cursor_next(&at);)
        if (at.item->op)
            ETCH_PUSH(p->arena, &ops, at.item->op);
        else
            read_carried(p, at.item->loop);
    for (uint32_t i = ops.count; i-- > 0;)
        for (uint32_t k = 0; is_read(p, ops.at[i]) && k < ops.at[i]->in_count; k++)
            p->uses[ops.at[i]->ins[k]->id].is_read = true;
}

void etch_request_uses(etch_placer *p)
{
    find_read(p);
    for (etch_cursor at = {.root = p->graph->forward, .then = p->training->backward};
         etch_cursor_next(&at);) {
        const etch_op *op = at.item->op;
        for (uint32_t k = 0; op && k < op->in_count; k++) {
            if (same_pass(op->ins[k], op))
                add_use(p, op->ins[k], op, at.in);
            if (op->phase == ETCH_BACKWARD)
                p->uses[op->ins[k]->id].read_back = true;
        }
        if (at.item->loop)
            add_carried(p, at.item->loop);
    }
}

/* ---- carried values --------------------------------------------------------------------------------- */

etch_loop_carried etch_request_carried_at_end(const etch_tensor *tensor)
{
    const etch_tensor *first = etch_origin(tensor);
    const etch_region *region = first->region;
    for (uint32_t i = 0; i < region->carries.count; i++)
        if (region->carries.at[i].out == first)
            return (etch_loop_carried){region->loop, i};
    return (etch_loop_carried){NULL, 0};
}

/* One loop as two is held as one: what the second begins with has the pin of the first. */
bool etch_request_pinned(etch_placer *p, etch_loop_carried value, etch_state *place)
{
    while (value.loop) {
        const etch_tensor *init = etch_loop_carries(value.loop)->at[value.i].init;
        for (uint32_t k = 0; k < value.loop->bodies.count; k++)
            if (etch_map_pin(p, value.loop->bodies.at[k]->carries.at[value.i].out, place))
                return true;
        if (!init || etch_map_pin(p, init, place))
            return init;
        value = p->uses[init->id].result_of;
    }
    return false;
}

void etch_request_carried(etch_placer *p, etch_loop_carried value, etch_state *place)
{
    const etch_carry *carry = &etch_loop_carries(value.loop)->at[value.i];
    const etch_tensor *first = etch_origin(carry->in);
    if (first !=
        carry->in) { /* a cotangent, or a recomputed loop: where the forward value is, without partial sums */
        const etch_value *forward = p->pinned[first->id] ? p->pinned[first->id] : p->made[first->id];
        for (uint32_t a = 0; a < p->axis_count; a++)
            place[a] = forward ? etch_without_partial(forward->place[a]) : NULL;
        return;
    }
    if (!etch_request_pinned(p, value, place))
        etch_map_place(p, etch_plan_region_of(&p->plan_regions, carry->in), carry->in, place);
}

/* ---- requests ---------------------------------------------------------------------------------------- */

/* The dim of `tensor` that becomes `dim` in the op's result. */
static etch_state before_op(const etch_op *op, const etch_tensor *tensor, etch_state dim)
{
    if (!etch_is_sharded(dim))
        return NULL;
    if (etch_op_is_view(op))
        return etch_op_dim_before(op, dim);
    return etch_has_dim(tensor, dim) ? dim : NULL;
}

/* Seen through the only consumer. */
static void request_through(etch_placer *p, const etch_op *op, const etch_tensor *tensor,
                            etch_requested_layout *requested)
{
    const etch_requested_layout *result = &p->requests[op->outs[0]->id];
    etch_boundary boundary = etch_boundary_of_operand(&p->plan_regions, op, tensor);
    if (op->edge && !p->uses[op->outs[0]->id].is_read)
        boundary.axes = 0;
    if (!boundary.axes && (!etch_op_is_elementwise(op) || !result->known))
        return;
    etch_state now[ETCH_MAX_AXES] = {NULL};
    for (uint32_t a = 0; etch_op_is_elementwise(op) && result->known && a < p->axis_count; a++)
        now[a] = before_op(op, tensor, result->place[a]);
    if (boundary.axes)
        etch_map_boundary(p, &boundary, tensor, now, requested->place);
    else
        memcpy(requested->place, now, p->axis_count * sizeof *now);
    requested->known = true;
}

/* The result of a statement leaves it, whoever reads it. */
static void request_leaving(etch_placer *p, const etch_tensor *tensor, etch_requested_layout *requested)
{
    const etch_boundary left = etch_boundary_of_result(&p->plan_regions, tensor);
    if (!left.axes || !p->uses[tensor->id].is_read)
        return;
    etch_state now[ETCH_MAX_AXES] = {NULL};
    for (uint32_t a = 0; requested->known && a < p->axis_count; a++)
        now[a] = requested->place[a];
    etch_map_boundary(p, &left, tensor, now, requested->place);
    requested->known = true;
}

/* Ranks make copies along new dims as the map has these: each its own. */
static void request_copies(etch_placer *p, const etch_tensor *tensor, etch_requested_layout *requested)
{
    for (uint32_t i = 0; i < tensor->rank; i++)
        if (!etch_has_dim(tensor->producer->ins[0], tensor->dims[i]))
            requested->known =
                etch_map_fill(p, tensor, tensor->dims[i], requested->place) || requested->known;
}

static void request_tensor(etch_placer *p, const etch_tensor *tensor)
{
    etch_requested_layout *requested = &p->requests[tensor->id];
    const etch_value_use *u = &p->uses[tensor->id];
    etch_loop_carried value = etch_request_carried_at_end(tensor);
    if (!value.loop && u->init.loop && u->count == 2)
        value = u->init;
    requested->place = ETCH_NEW_ARRAY(p->arena, p->axis_count, etch_state);
    requested->known = true;
    if (etch_map_pin(p, tensor, requested->place))
        return;
    if (value.loop) {
        etch_request_carried(p, value, requested->place);
        return;
    }
    requested->known = false;
    if (u->only)
        request_through(p, u->only, tensor, requested);
    request_leaving(p, tensor, requested);
    if (!requested->known && tensor->producer->row->use == ETCH_USE_BROADCAST)
        request_copies(p, tensor, requested);
}

void etch_request_region(etch_placer *p, const etch_region *region)
{
    for (uint32_t i = region->items.count; i-- > 0;) {
        const etch_op *op = region->items.at[i].op;
        if (op && op->phase != ETCH_BACKWARD)
            request_tensor(p, op->outs[0]);
    }
}
