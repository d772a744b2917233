/* Shards of what the forward pass has made, where backward cuts them again in a unit behind the one that has
 * made the whole: there is what forward has sent, so that backward reads the shard that forward has cut. */
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

/* Is it read behind the unit that makes the whole, and cut by the forward pass? Then nobody reads it any
 * more. */
static bool read_instead(const etch_staging *s, const etch_step *step)
{
    const etch_position made = etch_stage_made_at(s, step->ins[0]), first = s->first[step->outs[0]->id];
    const bool is_behind = made != ETCH_NO_POSITION && first != ETCH_NO_POSITION && first > made;
    etch_value *shard = is_behind ? cut_forward(s, step) : NULL;
    if (shard)
        etch_stage_exchange(s->placed->backward, step->outs[0], shard);
    return shard;
}

bool etch_stage_share_shards(const etch_staging *s)
{
    etch_placed_region *region = s->placed->backward;
    uint32_t left = 0;
    const uint32_t count = region ? region->items.count : 0;
    for (uint32_t i = 0; i < count; i++) {
        const etch_step *step = region->items.at[i].step;
        if (!step || !etch_stage_is_own_shard(s, step) || !read_instead(s, step))
            region->items.at[left++] = region->items.at[i];
    }
    if (region)
        region->items.count = left;
    return left < count;
}
