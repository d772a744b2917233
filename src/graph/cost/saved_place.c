/* Where in memory values of the forward pass are: under views, and along the chains that loops carry on.
 *
 * What a loop carries is asked again by every loop around it, and by every value that is read: each answer is
 * kept. */
#include "graph/cost/cost_int.h"

/* All arrays by tensor id. */
struct etch_saved_ways {
    /* what enters an iteration as this tensor; NULL: nothing does */
    const etch_carry **in;
    /* what leaves a loop as it, in the first body */
    const etch_carry **result;
    /* of what enters as it: what is carried on; NULL: not asked yet */
    const etch_tensor **carried;
    /* NULL: not asked yet */
    const etch_tensor **place;
    /* of what enters as it: the first that is carried on alike; NULL: not asked yet */
    const etch_carry **alike;
    /* carried on: the first that hands it on in the body that was asked last */
    const etch_carry **first_of;
};

/* ---- the carried values of a graph ------------------------------------------------------------------- */

/* Goes as deep as loops are nested. */
static void find_carries(etch_saved_ways *w, const etch_region *region)
{
    for (uint32_t i = 0; i < region->carries.count; i++)
        w->in[region->carries.at[i].in->id] = &region->carries.at[i];
    for (uint32_t i = 0; i < region->items.count; i++) {
        const etch_loop *loop = region->items.at[i].loop;
        for (uint32_t n = 0; loop && n < etch_loop_carries(loop)->count; n++) {
            const etch_carry *carry = &etch_loop_carries(loop)->at[n];
            if (carry->result)
                w->result[carry->result->id] = carry;
        }
        for (uint32_t n = 0; loop && n < loop->bodies.count; n++)
            find_carries(w, loop->bodies.at[n]);
    }
}

etch_saved_ways *etch_saved_ways_new(const etch_training *training)
{
    const etch_graph *graph = training->graph;
    const uint32_t count = graph->tensors.count;
    etch_saved_ways *w = ETCH_NEW(graph->arena, etch_saved_ways);
    w->in = ETCH_NEW_ARRAY(graph->arena, count, const etch_carry *);
    w->result = ETCH_NEW_ARRAY(graph->arena, count, const etch_carry *);
    w->carried = ETCH_NEW_ARRAY(graph->arena, count, const etch_tensor *);
    w->place = ETCH_NEW_ARRAY(graph->arena, count, const etch_tensor *);
    w->alike = ETCH_NEW_ARRAY(graph->arena, count, const etch_carry *);
    w->first_of = ETCH_NEW_ARRAY(graph->arena, count, const etch_carry *);
    find_carries(w, graph->forward);
    find_carries(w, training->backward);
    return w;
}

const etch_carry *etch_saved_carry_in(const etch_saved_ways *w, const etch_tensor *tensor)
{
    return w->in[tensor->id];
}

const etch_loop *etch_saved_loop_of(const etch_carry *carry)
{
    return carry->in->region->loop;
}

static bool is_single(const etch_carry *carry)
{
    return etch_saved_loop_of(carry)->bodies.count == 1;
}

const etch_carry *etch_saved_in_class(const etch_carry *carry, uint32_t class)
{
    const etch_region *body = carry->in->region;
    return &body->loop->bodies.at[class]->carries.at[carry - body->carries.at];
}

/* ---- what a loop carries -------------------------------------------------------------------------- */

/* Behind views of one region and of those around it. */
static const etch_tensor *under_views(const etch_tensor *tensor)
{
    while (tensor->producer && tensor->producer->row->role == ETCH_ROLE_FREE)
        tensor = tensor->producer->ins[0];
    return tensor;
}

static const etch_tensor *find_carried_out(etch_saved_ways *w, const etch_carry *carry)
{
    const etch_tensor *tensor = carry->out;
    for (;;) {
        tensor = under_views(tensor);
        const etch_carry *other = etch_saved_carry_in(w, tensor);
        const bool here = tensor->region == carry->in->region;
        if (here && other && other != carry && other->init && is_single(other) &&
            under_views(other->out) == tensor) {
            tensor = other->init;
            continue;
        }
        const etch_carry *inner = here ? w->result[tensor->id] : NULL;
        if (!inner || !inner->init)
            return tensor;
        const etch_tensor *last = etch_saved_carried_out(w, inner);
        if (etch_saved_is_forwarded(w, inner))
            tensor = inner->init;
        else if (!is_single(inner) || last->region == inner->in->region)
            return tensor;
        else
            tensor = last;
    }
}

/* Goes as deep as loops are nested. */
const etch_tensor *etch_saved_carried_out(etch_saved_ways *w, const etch_carry *carry)
{
    const uint32_t id = carry->in->id;
    if (!w->carried[id])
        w->carried[id] = find_carried_out(w, carry);
    return w->carried[id];
}

bool etch_saved_is_invariant(etch_saved_ways *w, const etch_carry *carry)
{
    return etch_saved_carried_out(w, carry) == carry->in;
}

bool etch_saved_is_forwarded(etch_saved_ways *w, const etch_carry *carry)
{
    for (uint32_t k = 0; k < etch_saved_loop_of(carry)->bodies.count; k++)
        if (!etch_saved_is_invariant(w, etch_saved_in_class(carry, k)))
            return false;
    return true;
}

/* The first value of the loop, which has one body, that is carried on as this one is: both leave the loop as
 * one. */
static const etch_carry *first_alike(etch_saved_ways *w, const etch_carry *carry)
{
    const etch_region *body = carry->in->region;
    for (uint32_t i = 0; !w->alike[carry->in->id] && i < body->carries.count; i++) {
        const etch_carry *c = &body->carries.at[i], **first = &w->first_of[etch_saved_carried_out(w, c)->id];
        if (!*first || (*first)->in->region != body)
            *first = c;
        w->alike[c->in->id] = *first;
    }
    return w->alike[carry->in->id];
}

bool etch_saved_is_produced(etch_saved_ways *w, const etch_carry *carry)
{
    const etch_tensor *out = etch_saved_carried_out(w, carry);
    return out->region == carry->in->region && !etch_saved_carry_in(w, out);
}

bool etch_saved_some_produce(etch_saved_ways *w, const etch_carry *carry)
{
    for (uint32_t k = 0; k < etch_saved_loop_of(carry)->bodies.count; k++)
        if (etch_saved_is_produced(w, etch_saved_in_class(carry, k)))
            return true;
    return false;
}

const etch_carry *etch_saved_ahead_of(etch_saved_ways *w, const etch_carry *carry)
{
    const etch_carry *ahead =
        is_single(carry) ? etch_saved_carry_in(w, etch_saved_carried_out(w, carry)) : NULL;
    const bool here = ahead && ahead != carry && ahead->in->region == carry->in->region;
    return here && etch_saved_is_produced(w, ahead) ? ahead : NULL;
}

/* ---- places ------------------------------------------------------------------------------------------- */

static const etch_tensor *find_place(etch_saved_ways *w, const etch_tensor *tensor)
{
    for (;;) {
        tensor = under_views(tensor);
        const etch_carry *in = etch_saved_carry_in(w, tensor);
        const etch_carry *carry = in ? in : w->result[tensor->id];
        if (!carry || !carry->init)
            return tensor;
        const etch_tensor *last = etch_saved_carried_out(w, carry);
        if (etch_saved_is_forwarded(w, carry) || (is_single(carry) && under_views(carry->init) == last))
            tensor = carry->init;
        else if (in || !is_single(carry))
            return tensor;
        else if (last->region == carry->in->region)
            return first_alike(w, carry)->result;
        else
            tensor = last;
    }
}

const etch_tensor *etch_saved_place_of(etch_saved_ways *w, const etch_tensor *tensor)
{
    if (!w->place[tensor->id])
        w->place[tensor->id] = find_place(w, tensor);
    return w->place[tensor->id];
}
