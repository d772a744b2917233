/* Leaving out what nobody needs: of a forward graph all that the requested results do not depend on, of what
 * is recomputed all that nothing reads. An op is needed when a value that it makes is, a loop when anything
 * in it is. */
#include "graph/ir/cursor.h"
#include "graph/ir/ir_int.h"

static bool op_is_needed(const etch_sift *s, const etch_op *op)
{
    bool needed = s->acts(op);
    for (uint32_t i = 0; i < op->out_count; i++)
        needed = needed || s->needed[op->outs[i]->id];
    return needed;
}

/* Is the i-th loop-carried value needed, after the loop or in an iteration of any class? */
static bool carry_is_needed(const etch_sift *s, const etch_loop *loop, uint32_t i)
{
    bool needed = s->needed[etch_loop_carries(loop)->at[i].result->id];
    for (uint32_t b = 0; b < loop->bodies.count; b++)
        needed = needed || s->needed[loop->bodies.at[b]->carries.at[i].in->id];
    return needed;
}

static bool any_carry_is_needed(const etch_sift *s, const etch_loop *loop)
{
    bool needed = loop->forward; /* it undoes another */
    for (uint32_t i = 0; i < etch_loop_carries(loop)->count; i++)
        needed = needed || carry_is_needed(s, loop, i);
    return needed;
}

static bool loop_is_needed(const etch_sift *s, const etch_loop *loop)
{
    bool needed = any_carry_is_needed(s, loop);
    for (uint32_t b = 0; b < loop->bodies.count; b++)
        for (etch_cursor at = {.root = loop->bodies.at[b]}; !needed && etch_cursor_next(&at);)
            needed = at.item->op ? op_is_needed(s, at.item->op) : any_carry_is_needed(s, at.item->loop);
    return needed;
}

static bool item_is_needed(const etch_sift *s, const etch_item *item)
{
    return item->op ? op_is_needed(s, item->op) : loop_is_needed(s, item->loop);
}

/* May a loop carry what nobody needs? One that is recomputed carries what is. */
static bool keeps_carries(const etch_sift *s, const etch_loop *loop)
{
    return !s->carries && !loop->repeats;
}

/* True when that was not known yet. */
static bool need(const etch_sift *s, const etch_tensor *tensor)
{
    const bool known = !tensor || s->needed[tensor->id];
    if (tensor)
        s->needed[tensor->id] = true;
    return !known;
}

/* Consumers before producers. A value that an iteration needs of the one before it is needed of each. True
 * when something was not known yet. Goes as deep as loops are nested. */
static bool mark(const etch_sift *s, const etch_region *region)
{
    bool changed = false;
    for (uint32_t i = region->items.count; i-- > 0;) {
        const etch_item *item = &region->items.at[i];
        if (!item_is_needed(s, item))
            continue;
        for (uint32_t n = 0; item->op && n < item->op->in_count; n++)
            changed = need(s, item->op->ins[n]) || changed;
        for (uint32_t b = 0; item->loop && b < item->loop->bodies.count; b++) {
            const etch_region *body = item->loop->bodies.at[b];
            for (uint32_t c = 0; c < body->carries.count; c++)
                if (keeps_carries(s, item->loop) || carry_is_needed(s, item->loop, c)) {
                    changed = need(s, body->carries.at[c].out) || changed;
                    changed = need(s, body->carries.at[c].init) || changed;
                }
            changed = mark(s, body) || changed;
        }
    }
    return changed;
}

static void sweep(const etch_sift *s, etch_region *region);

static void sweep_loop(const etch_sift *s, etch_loop *loop)
{
    const uint32_t count = etch_loop_carries(loop)->count;
    bool *stays = ETCH_NEW_ARRAY(s->arena, count, bool);
    for (uint32_t i = 0; i < count; i++)
        stays[i] = keeps_carries(s, loop) || carry_is_needed(s, loop, i);
    for (uint32_t b = 0; b < loop->bodies.count; b++) {
        etch_region *body = loop->bodies.at[b];
        uint32_t left = 0;
        for (uint32_t i = 0; i < count; i++)
            if (stays[i])
                body->carries.at[left++] = body->carries.at[i];
        body->carries.count = left;
        sweep(s, body);
    }
}

static void sweep(const etch_sift *s, etch_region *region)
{
    uint32_t left = 0;
    for (uint32_t i = 0; i < region->items.count; i++) {
        const etch_item item = region->items.at[i];
        if (!item_is_needed(s, &item))
            continue;
        region->items.at[left++] = item;
        if (item.loop)
            sweep_loop(s, item.loop);
    }
    region->items.count = left;
}

void etch_region_mark(const etch_sift *sift, const etch_region *region)
{
    while (mark(sift, region)) {
    }
}

void etch_region_sift(const etch_sift *sift, etch_region *region)
{
    etch_region_mark(sift, region);
    sweep(sift, region);
}

/* Does running the op matter beside its results? */
static bool acts(const etch_op *op)
{
    return op->row->stays != 0;
}

etch_sift etch_sift_of(const etch_graph *graph)
{
    return (etch_sift){graph->arena, acts, true, ETCH_NEW_ARRAY(graph->arena, graph->tensors.count, bool)};
}

void etch_graph_keep(etch_graph *graph, etch_tensor *const *wanted, uint32_t count)
{
    const etch_sift sift = etch_sift_of(graph);
    for (uint32_t i = 0; i < count; i++)
        if (wanted[i])
            wanted[i]->wanted = sift.needed[wanted[i]->id] = true;
    etch_region_sift(&sift, graph->forward);
}
