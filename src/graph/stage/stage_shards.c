/* Shards and parts, which are cut where they are read.
 *
 * Those of what the forward pass has made, where backward cuts them again in a unit after the one that has
 * made the whole: there is what forward has sent, so that backward reads what forward has cut. Those of what
 * is there anyway, weights and inputs, each unit that reads them cuts itself: they are not sent. */
#include "graph/stage/stage_int.h"

bool etch_stage_is_own_shard(const etch_staging *s, const etch_step *step)
{
    return step->collective == ETCH_SLICE && !s->made_backward[etch_value_root(step->ins[0])->id];
}

/* The same shard, which a step of the forward pass has cut; NULL: none has. */
static etch_value *cut_forward(const etch_staging *s, const etch_step *step)
{
    const etch_value *shard = step->outs[0];
    for (uint32_t i = 0; i < s->forward_pass.count; i++) {
        const etch_step *other = s->forward_pass.items[i].step;
        if (other && other->collective == ETCH_SLICE && other->outs[0]->tensor == shard->tensor &&
            etch_value_root(other->ins[0]) == etch_value_root(step->ins[0]) &&
            etch_place_equal(s->p, other->outs[0]->place, shard->place))
            return other->outs[0];
    }
    return NULL;
}

static void put(etch_value **value, const etch_value *from, etch_value *to)
{
    if (*value == from)
        *value = to;
}

void etch_stage_exchange(const etch_placed_region *region, const etch_value *from, etch_value *to)
{
    for (uint32_t i = 0; i < region->carries.count; i++) {
        put(&region->carries.at[i].init, from, to);
        put(&region->carries.at[i].out, from, to);
    }
    for (uint32_t i = 0; i < region->items.count; i++) {
        const etch_placed_item *item = &region->items.at[i];
        for (uint32_t k = 0; item->step && k < item->step->in_count; k++)
            put(&item->step->ins[k], from, to);
        for (uint32_t k = 0; item->loop && k < item->loop->bodies.count; k++)
            etch_stage_exchange(item->loop->bodies.at[k], from, to);
    }
}

/* Is something of the results read after the unit that makes the whole? */
static bool is_read_behind(const etch_staging *s, const etch_step *step)
{
    const etch_position made = etch_stage_made_at(s, step->ins[0]);
    for (uint32_t i = 0; made != ETCH_NO_POSITION && i < step->out_count; i++) {
        const etch_position first = s->first[step->outs[i]->id];
        if (first != ETCH_NO_POSITION && first > made)
            return true;
    }
    return false;
}

/* Is the shard read there, and cut by the forward pass? Then nobody reads it any more. */
static bool read_shard_instead(const etch_staging *s, const etch_step *step)
{
    if (!etch_stage_is_own_shard(s, step) || !is_read_behind(s, step))
        return false;
    etch_value *shard = cut_forward(s, step);
    if (shard)
        etch_stage_exchange(s->placed->backward, step->outs[0], shard);
    return shard;
}

/* The same of parts that are recomputed, of what the forward pass has made and keeps. */
static bool read_parts_instead(const etch_staging *s, const etch_placed_item *item)
{
    const etch_step *step = item->step;
    if (step->phase != ETCH_RECOMPUTE || !etch_step_shows(step) || etch_stage_is_view(item) ||
        !is_read_behind(s, step))
        return false;
    const etch_step *forward = s->p->steps[step->op->forward->id];
    const etch_value *whole = etch_value_memory(step->ins[0], NULL);
    if (s->made_backward[whole->id] || etch_value_memory(forward->ins[0], NULL) != whole)
        return false;
    for (uint32_t i = 0; i < step->out_count; i++)
        if (!etch_place_equal(s->p, step->outs[i]->place, forward->outs[i]->place))
            return false;
    for (uint32_t i = 0; i < step->out_count; i++)
        etch_stage_exchange(s->placed->backward, step->outs[i], forward->outs[i]);
    return true;
}

bool etch_stage_share_shards(const etch_staging *s)
{
    etch_placed_region *region = s->placed->backward;
    uint32_t left = 0;
    const uint32_t count = region ? region->items.count : 0;
    for (uint32_t i = 0; i < count; i++) {
        const etch_placed_item item = region->items.at[i];
        if (!item.step || !(read_shard_instead(s, item.step) || read_parts_instead(s, &item)))
            region->items.at[left++] = item;
    }
    if (region)
        region->items.count = left;
    return left < count;
}

/* ---- what is there anyway ------------------------------------------------------------------------------ */

/* A shard that an item reads, under whatever name, and the same, cut again at the position of the item. */
typedef struct cut_again {
    const etch_value *shard;
    etch_position at;
    etch_value *again;
} cut_again;

typedef ETCH_VEC(cut_again) cuts_again;

/* The shard of a weight or an input that the value is, cut at the top level; NULL: it is none. */
static const etch_step *cuts_given(const etch_value *value)
{
    while (value->step && etch_step_shows(value->step) && etch_op_is_view(value->step->op))
        value = value->step->ins[0];
    const etch_step *step = value->step;
    const bool cuts = step && step->collective == ETCH_SLICE && !step->copies && !value->sharded_flat;
    const etch_value *whole = cuts ? etch_value_memory(step->ins[0], NULL) : NULL;
    return whole && !whole->step && whole->tensor->kind != ETCH_ACT ? step : NULL;
}

static etch_value *cut_at(const etch_staging *s, cuts_again *cuts, const etch_value *value, etch_position at)
{
    for (uint32_t i = 0; i < cuts->count; i++)
        if (cuts->at[i].shard == value && cuts->at[i].at == at)
            return cuts->at[i].again;
    s->p->phase = value->step->phase;
    s->p->scope = value->step->scope;
    etch_value *again = etch_place_again(s->p, value);
    ETCH_PUSH(s->p->arena, cuts, (cut_again){value, at, again});
    return again;
}

/* Puts the items from `from` on, the last ones, before another one. */
static void put_before(etch_staging *s, etch_placed_region *region, uint32_t from, uint32_t other)
{
    const uint32_t count = region->items.count - from;
    etch_placed_item *moved = ETCH_NEW_ARRAY(s->p->arena, count, etch_placed_item);
    for (uint32_t i = 0; i < count; i++)
        moved[i] = region->items.at[from + i];
    for (uint32_t i = from; i-- > other;)
        region->items.at[i + count] = region->items.at[i];
    for (uint32_t i = 0; i < count; i++)
        region->items.at[other + i] = moved[i];
}

/* Cuts what a step reads, and another unit has cut. How many items more there are. */
static uint32_t cut_for(etch_staging *s, etch_placed_region *region, uint32_t item, cuts_again *cuts)
{
    etch_step *step = region->items.at[item].step;
    const uint32_t before = region->items.count;
    for (uint32_t i = 0; i < step->in_count; i++) {
        const etch_step *cutter = cuts_given(step->ins[i]);
        if (cutter && cutter->position != step->position)
            step->ins[i] = cut_at(s, cuts, step->ins[i], step->position);
    }
    put_before(s, region, before, item);
    return region->items.count - before;
}

bool etch_stage_cut_where_read(etch_staging *s)
{
    etch_placed_region *const regions[] = {s->placed->forward, s->placed->backward};
    bool any = false;
    for (uint32_t r = 0; r < 2 && regions[r]; r++) {
        cuts_again cuts = {0};
        s->p->region = regions[r];
        for (uint32_t i = 0; i < regions[r]->items.count; i++) {
            const etch_placed_item *item = &regions[r]->items.at[i];
            if (!item->step || etch_stage_is_view(item) || item->step->position == ETCH_NO_POSITION)
                continue;
            const uint32_t more = cut_for(s, regions[r], i, &cuts);
            any = any || more > 0;
            i += more;
        }
    }
    return any;
}
