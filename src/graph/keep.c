/* What is left of a forward graph when only some results are asked for.
 *
 * requires: a checked forward graph from which nothing was derived. provides: the same without ops, loops and
 * carried values that neither the results nor the caches need. */
#include "graph/row_int.h"

typedef struct keeper {
    etch_graph *graph;
    bool *needed; /* by tensor id */
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

static bool region_acts(const etch_region *region)
{
    for (uint32_t i = 0; i < region->items.count; i++) {
        const etch_item *item = &region->items.at[i];
        if (item->op ? acts(item->op) : region_acts(item->loop->body))
            return true;
    }
    return false;
}

static bool carry_is_needed(const keeper *k, const etch_carry *c)
{
    return k->needed[c->in->id] || k->needed[c->result->id];
}

static bool loop_is_needed(const keeper *k, const etch_loop *loop)
{
    for (uint32_t i = 0; i < loop->carries.count; i++)
        if (carry_is_needed(k, &loop->carries.at[i]))
            return true;
    return region_acts(loop->body);
}

static void mark_region(keeper *k, const etch_region *region);

/* What an iteration needs of the one before it is needed of each. Goes as deep as loops are nested. */
static void mark_loop(keeper *k, const etch_loop *loop)
{
    bool changed = true;
    while (changed) {
        changed = false;
        for (uint32_t i = 0; i < loop->carries.count; i++) {
            const etch_carry *c = &loop->carries.at[i];
            if (carry_is_needed(k, c))
                changed = need(k, c->out) || changed;
        }
        mark_region(k, loop->body);
        for (uint32_t i = 0; i < loop->carries.count; i++) {
            const etch_carry *c = &loop->carries.at[i];
            changed = changed || (carry_is_needed(k, c) && !k->needed[c->out->id]);
        }
    }
    for (uint32_t i = 0; i < loop->carries.count; i++)
        if (carry_is_needed(k, &loop->carries.at[i]))
            need(k, loop->carries.at[i].init);
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

static void sweep_region(const keeper *k, etch_region *region)
{
    uint32_t left = 0;
    for (uint32_t i = 0; i < region->items.count; i++) {
        const etch_item item = region->items.at[i];
        if (item.op ? op_is_needed(k, item.op) : loop_is_needed(k, item.loop))
            region->items.at[left++] = item;
    }
    region->items.count = left;
    for (uint32_t i = 0; i < region->items.count; i++) {
        etch_loop *loop = region->items.at[i].loop;
        if (!loop)
            continue;
        uint32_t kept = 0;
        for (uint32_t c = 0; c < loop->carries.count; c++)
            if (carry_is_needed(k, &loop->carries.at[c]))
                loop->carries.at[kept++] = loop->carries.at[c];
        loop->carries.count = kept;
        sweep_region(k, loop->body);
    }
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
