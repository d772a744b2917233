/* The smaller forward graph that gives the requested results only.
 *
 * requires: a checked forward graph from which nothing was derived. provides: the same without ops, loops and
 * carried values that neither the results nor the caches need. */
#include "graph/ir/cursor.h"
#include "graph/ir/ir_int.h"

typedef struct keeper {
    etch_graph *graph;
    /* by tensor id */
    bool *needed;
} keeper;

/* Does running the op matter beside its results? */
static bool acts(const etch_op *op)
{
    return op->row->stays;
}

static bool op_is_needed(const keeper *k, const etch_op *op)
{
    bool needed = acts(op);
    for (uint32_t i = 0; i < op->out_count; i++)
        needed = needed || k->needed[op->outs[i]->id];
    return needed;
}

static bool need(keeper *k, const etch_tensor *tensor)
{
    const bool known = k->needed[tensor->id];
    k->needed[tensor->id] = true;
    return !known;
}

static bool loop_acts(const etch_loop *loop)
{
    for (uint32_t i = 0; i < loop->bodies.count; i++)
        for (etch_cursor at = {.root = loop->bodies.at[i]}; etch_cursor_next(&at);)
            if (at.item->op && acts(at.item->op))
                return true;
    return false;
}

/* Is the i-th loop-carried value needed, after the loop or in an iteration of any class? */
static bool carry_is_needed(const keeper *k, const etch_loop *loop, uint32_t i)
{
    bool needed = k->needed[etch_loop_carries(loop)->at[i].result->id];
    for (uint32_t b = 0; b < loop->bodies.count; b++)
        needed = needed || k->needed[loop->bodies.at[b]->carries.at[i].in->id];
    return needed;
}

static bool loop_is_needed(const keeper *k, const etch_loop *loop)
{
    for (uint32_t i = 0; i < etch_loop_carries(loop)->count; i++)
        if (carry_is_needed(k, loop, i))
            return true;
    return loop_acts(loop);
}

static void mark_region(keeper *k, const etch_region *region);

/* A value that an iteration needs of the one before it is needed of each. True when that was not known
 * yet. */
static bool mark_carried(keeper *k, const etch_loop *loop)
{
    bool changed = false;
    for (uint32_t i = 0; i < etch_loop_carries(loop)->count; i++)
        for (uint32_t b = 0; carry_is_needed(k, loop, i) && b < loop->bodies.count; b++)
            changed = need(k, loop->bodies.at[b]->carries.at[i].out) || changed;
    return changed;
}

/* Goes as deep as loops are nested. */
static void mark_loop(keeper *k, const etch_loop *loop)
{
    bool changed = true;
    mark_carried(k, loop);
    while (changed) {
        for (uint32_t b = 0; b < loop->bodies.count; b++)
            mark_region(k, loop->bodies.at[b]);
        changed = mark_carried(k, loop);
    }
    for (uint32_t i = 0; i < etch_loop_carries(loop)->count; i++)
        if (carry_is_needed(k, loop, i))
            need(k, etch_loop_carries(loop)->at[i].init);
}

/* Backwards: consumers before producers. */
static void mark_region(keeper *k, const etch_region *region)
{
    for (uint32_t i = region->items.count; i-- > 0;) {
        const etch_item *item = &region->items.at[i];
        if (item->loop) {
            if (loop_is_needed(k, item->loop))
                mark_loop(k, item->loop);
        } else if (op_is_needed(k, item->op)) {
            for (uint32_t n = 0; n < item->op->in_count; n++)
                need(k, item->op->ins[n]);
        }
    }
}

static void sweep_region(const keeper *k, etch_region *region);

static void sweep_loop(const keeper *k, etch_loop *loop)
{
    const uint32_t count = etch_loop_carries(loop)->count;
    bool *stays = ETCH_NEW_ARRAY(k->graph->arena, count, bool);
    for (uint32_t i = 0; i < count; i++)
        stays[i] = carry_is_needed(k, loop, i);
    for (uint32_t b = 0; b < loop->bodies.count; b++) {
        etch_region *body = loop->bodies.at[b];
        uint32_t left = 0;
        for (uint32_t i = 0; i < count; i++)
            if (stays[i])
                body->carries.at[left++] = body->carries.at[i];
        body->carries.count = left;
        sweep_region(k, body);
    }
}

static void sweep_region(const keeper *k, etch_region *region)
{
    uint32_t left = 0;
    for (uint32_t i = 0; i < region->items.count; i++) {
        const etch_item item = region->items.at[i];
        if (item.op ? op_is_needed(k, item.op) : loop_is_needed(k, item.loop))
            region->items.at[left++] = item;
    }
    region->items.count = left;
    for (uint32_t i = 0; i < region->items.count; i++)
        if (region->items.at[i].loop)
            sweep_loop(k, region->items.at[i].loop);
}

void etch_graph_keep(etch_graph *graph, etch_tensor *const *wanted, uint32_t count)
{
    keeper k = {.graph = graph, .needed = ETCH_NEW_ARRAY(graph->arena, graph->tensors.count, bool)};
    for (uint32_t i = 0; i < count; i++) {
        if (!wanted[i])
            continue;
        wanted[i]->wanted = true;
        need(&k, wanted[i]);
    }
    mark_region(&k, graph->forward);
    sweep_region(&k, graph->forward);
}
