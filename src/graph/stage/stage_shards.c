/* Shards and parts, which are cut where they are read.
 *
 * Those of what the forward pass has made, where backward cuts them again in a unit after the one that has
 * made the whole: there is what forward has sent, so that backward reads what forward has cut. Those of what
 * is there anyway, weights and inputs, each unit that reads them cuts itself, and gathers weights: they are
 * not sent. */
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

/* What an item reads, under whatever name, moved; and the same, moved again at the position of the item. */
typedef struct moved_again {
    const etch_value *value;
    etch_position at;
    etch_value *again;
} moved_again;

typedef ETCH_VEC(moved_again) moves_again;

/* The move that makes the value, of a weight, or a cut of an input, at the top level; NULL: there is none. */
static etch_step *moves_given(const etch_value *value)
{
    while (value->step && etch_step_shows(value->step) && etch_op_is_view(value->step->op))
        value = value->step->ins[0];
    etch_step *step = value->step;
    if (!step || step->collective == ETCH_NO_COLLECTIVE || step->copies || value->sharded_flat)
        return NULL;
    const etch_value *given = etch_value_memory(step->ins[0], NULL);
    if (given->step)
        return moves_given(given) ? step : NULL;
    const etch_tensor_kind kind = given->tensor->kind;
    return kind == ETCH_WEIGHT || (kind != ETCH_ACT && step->collective == ETCH_SLICE) ? step : NULL;
}

/* Of the units that read what is moved, the one of the move has this reader. */
static void asked_by(const etch_staging *s, etch_step *move, const etch_step *reader)
{
    const etch_op *op = move->provenance.op;
    const etch_step *said = op ? s->p->steps[op->id] : NULL;
    if (said && reader->op && said->position != reader->position)
        move->provenance.op = reader->op;
}

static etch_value *move_at(const etch_staging *s, moves_again *moves, const etch_value *value,
                           const etch_step *reader)
{
    const etch_position at = reader->position;
    for (uint32_t i = 0; i < moves->count; i++)
        if (moves->at[i].value == value && moves->at[i].at == at)
            return moves->at[i].again;
    const etch_value *from = moves_given(value)->ins[0];
    etch_value *before = moves_given(from) ? move_at(s, moves, from, reader) : NULL;
    s->p->phase = value->step->phase;
    s->p->scope = value->step->scope;
    etch_value *again = etch_place_again(s->p, value);
    etch_step *step = moves_given(again);
    if (before)
        step->ins[0] = before;
    asked_by(s, step, reader);
    ETCH_PUSH(s->p->arena, moves, (moved_again){value, at, again});
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

/* Moves what a step reads, and another unit has moved. How many items more there are. */
static uint32_t move_for(etch_staging *s, etch_placed_region *region, uint32_t item, moves_again *moves)
{
    etch_step *step = region->items.at[item].step;
    const uint32_t before = region->items.count;
    for (uint32_t i = 0; i < step->in_count; i++) {
        etch_step *mover = moves_given(step->ins[i]);
        if (mover && mover->position != step->position)
            step->ins[i] = move_at(s, moves, step->ins[i], step);
        else if (mover)
            asked_by(s, mover, step);
    }
    put_before(s, region, before, item);
    return region->items.count - before;
}

bool etch_stage_move_where_read(etch_staging *s)
{
    etch_placed_region *const regions[] = {s->placed->forward, s->placed->backward};
    bool any = false;
    for (uint32_t r = 0; r < 2 && regions[r]; r++) {
        moves_again moves = {0};
        s->p->region = regions[r];
        for (uint32_t i = 0; i < regions[r]->items.count; i++) {
            const etch_placed_item *item = &regions[r]->items.at[i];
            if (!item->step || etch_stage_is_view(item) || item->step->position == ETCH_NO_POSITION)
                continue;
            const uint32_t more = move_for(s, regions[r], i, &moves);
            any = any || more > 0;
            i += more;
        }
    }
    return any;
}
