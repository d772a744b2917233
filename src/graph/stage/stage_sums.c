/* Sums of cotangents that come from several later units of the chain are made where they meet, so that one of
 * them goes on along the chain. */
#include "graph/stage/stage_int.h"

/* Which item of the region makes the value; a view counts. */
static uint32_t maker_of(const etch_placed_region *region, const etch_value *value)
{
    for (uint32_t i = 0; i < region->items.count; i++) {
        const etch_placed_item *item = &region->items.at[i];
        for (uint32_t k = 0; item->loop && k < etch_loop_carries(item->loop)->count; k++)
            if (etch_loop_carries(item->loop)->at[k].result == value)
                return i;
        if (item->step && item->step == value->step)
            return i;
    }
    return 0; /* it is there from the beginning */
}

/* Puts the last item of a region behind another one. */
static void move_behind(etch_placed_region *region, uint32_t other)
{
    const etch_placed_item moved = region->items.at[region->items.count - 1];
    for (uint32_t i = region->items.count - 1; i > other + 1; i--)
        region->items.at[i] = region->items.at[i - 1];
    region->items.at[other + 1] = moved;
}

/* Adds the first terms of a sum, and puts their sum in their place. */
static void add_first(const etch_staging *s, etch_step *step, uint32_t count)
{
    etch_placed_region *region = s->placed->backward;
    etch_placer *p = s->p;
    const etch_op *op = step->op;
    uint32_t last = 0;
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t at = maker_of(region, step->ins[i]);
        last = at > last ? at : last;
    }
    p->region = region;
    p->phase = step->phase;
    p->scope = step->scope;
    step->ins[0] = etch_place_sum(p, op, step->ins, count, 0);
    move_behind(region, last);
    step->in_count -= count - 1;
    for (uint32_t i = 1; i < step->in_count; i++)
        step->ins[i] = step->ins[i + count - 1];
    etch_op *rest = ETCH_NEW(p->arena, etch_op);
    *rest = *op;
    rest->in_count = step->in_count;
    rest->ins = ETCH_NEW_ARRAY(p->arena, rest->in_count, etch_tensor *);
    for (uint32_t i = 0; i < rest->in_count; i++)
        rest->ins[i] = step->ins[i]->tensor;
    rest->runs = etch_place_additions(p, step->ins, rest->in_count);
    step->op = rest;
}

/* How far behind on the chain a term is made; what can be had anywhere is not. */
static uint32_t distance_of(const etch_staging *s, const etch_step *step, uint32_t i)
{
    const etch_position at = etch_stage_made_at(s, step->ins[i]);
    return at == ETCH_NO_POSITION || at <= step->position ? 0 : at - step->position;
}

/* The terms of a sum in the order in which they arrive. */
static void sort_terms(const etch_staging *s, etch_step *step)
{
    for (uint32_t i = 1; i < step->in_count; i++)
        for (uint32_t k = i; k > 0 && distance_of(s, step, k) > distance_of(s, step, k - 1); k--) {
            etch_value *term = step->ins[k];
            step->ins[k] = step->ins[k - 1];
            step->ins[k - 1] = term;
        }
}

bool etch_stage_add_on_the_way(const etch_staging *s)
{
    const etch_placed_region *region = s->placed->backward;
    bool any = false;
    for (uint32_t i = 0; region && i < region->items.count; i++) {
        const uint32_t count_before = region->items.count;
        etch_step *step = region->items.at[i].step;
        if (!step || !step->op || step->op->row->use != ETCH_USE_TOTAL)
            continue;
        sort_terms(s, step);
        for (uint32_t meet; step->in_count > 2 && (meet = distance_of(s, step, 1)) > 0; any = true) {
            uint32_t count = 2;
            while (count < step->in_count && distance_of(s, step, count) == meet)
                count++;
            add_first(s, step, count);
        }
        i += region->items.count - count_before; /* sums that were put in front: they have no position yet */
    }
    return any;
}
