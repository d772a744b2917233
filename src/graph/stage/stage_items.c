/* What a pass of the chain consists of: steps and loops of the top level, what they read and make, and
 * where. */
#include "graph/stage/stage_int.h"

bool etch_position_is_loop(const etch_stages *stages, etch_position position)
{
    return etch_position_side(position) == ETCH_ALL_OF &&
           stages->segments.at[etch_position_segment(position)].loop;
}

etch_position etch_stage_made_at(const etch_staging *s, etch_value *value)
{
    return s->made_at[etch_value_root(value)->id];
}

/* The iterations of a loop that come first and last in the order of the region. */
static etch_position side_of_loop(const etch_staging *s, etch_position position, bool begin)
{
    const etch_side side = begin == s->backward ? ETCH_LAST_OF : ETCH_FIRST_OF;
    return etch_position_is_loop(s->stages, position)
               ? etch_position_at(etch_position_segment(position), side)
               : position;
}

etch_position etch_stage_loop_begin(const etch_staging *s, etch_position position)
{
    return side_of_loop(s, position, true);
}

etch_position etch_stage_loop_end(const etch_staging *s, etch_position position)
{
    return side_of_loop(s, position, false);
}

/* ---- an item of the top level -------------------------------------------------------------------------- */

bool etch_stage_is_view(const etch_placed_item *item)
{
    return item->step && item->step->collective == ETCH_NO_COLLECTIVE && etch_op_is_view(item->step->op);
}

etch_position *etch_stage_item_position(const etch_placed_item *item)
{
    return item->step ? &item->step->position : &item->loop->position;
}

/* The results of an item, a view has none of its own; of a loop without a reader NULL. */
uint32_t etch_stage_result_count(const etch_placed_item *item)
{
    if (item->loop)
        return etch_loop_carries(item->loop)->count;
    return etch_stage_is_view(item) ? 0 : item->step->out_count;
}

etch_value *etch_stage_result_at(const etch_placed_item *item, uint32_t k)
{
    return item->step ? item->step->outs[k] : etch_loop_carries(item->loop)->at[k].result;
}

/* ---- what is read -------------------------------------------------------------------------------------- */

static void note_carried(etch_staging *s, const etch_placed_loop *loop)
{
    for (uint32_t k = 0; k < loop->bodies.count; k++)
        for (uint32_t i = 0; i < loop->bodies.at[k]->carries.count; i++) {
            const etch_placed_carry *carry = &loop->bodies.at[k]->carries.at[i];
            s->is_read[carry->out->id] = true;
            if (carry->init)
                s->is_read[carry->init->id] = true;
        }
}

void etch_stage_find_reads(etch_staging *s)
{
    ETCH_VEC(const etch_step *) shown = {0};
    s->is_read = ETCH_NEW_ARRAY(s->p->arena, s->placed->value_count, bool);
    for (etch_placed_cursor at = {.root = s->placed->forward, .then = s->placed->backward};
         etch_placed_cursor_next(&at);) {
        const etch_step *step = at.item->step;
        if (!step)
            note_carried(s, at.item->loop);
        else if (etch_step_shows(step))
            ETCH_PUSH(s->p->arena, &shown, step);
        for (uint32_t i = 0; step && !etch_step_shows(step) && i < step->in_count; i++)
            s->is_read[step->ins[i]->id] = true;
    }
    while (shown.count-- > 0)
        for (uint32_t i = 0; i < shown.at[shown.count]->out_count; i++)
            if (s->is_read[shown.at[shown.count]->outs[i]->id])
                s->is_read[shown.at[shown.count]->ins[0]->id] = true;
}

/* Is it a part that is cut off for nobody? That is no kernel, and needs no operand. */
static bool is_idle(const etch_staging *s, const etch_step *step)
{
    bool is_read = false;
    for (uint32_t i = 0; i < step->out_count; i++)
        is_read = is_read || s->is_read[step->outs[i]->id];
    return etch_step_shows(step) && !is_read;
}

static void add_read(const etch_staging *s, etch_stage_reads *out, etch_stage_read r)
{
    if (r.value)
        ETCH_PUSH(s->p->arena, out, r);
}

static void add_operands(const etch_staging *s, const etch_placed_item *item, etch_stage_read like,
                         etch_stage_reads *out)
{
    for (uint32_t i = 0; !etch_stage_is_view(item) && i < item->step->in_count; i++) {
        like.value = item->step->ins[i];
        add_read(s, out, like);
    }
}

/* What a loop inside of one begins with, and carries. */
static void add_carried(const etch_staging *s, const etch_placed_loop *loop, etch_stage_read like,
                        etch_stage_reads *out)
{
    for (uint32_t i = 0; i < etch_loop_carries(loop)->count; i++) {
        like.value = etch_loop_carries(loop)->at[i].init;
        add_read(s, out, like);
    }
    for (uint32_t k = 0; k < loop->bodies.count; k++)
        for (uint32_t i = 0; i < loop->bodies.at[k]->carries.count; i++) {
            like.value = loop->bodies.at[k]->carries.at[i].out;
            like.in = loop->bodies.at[k]->of;
            add_read(s, out, like);
        }
}

/* What an iteration of a class reads, and carries. */
static void add_body(const etch_staging *s, const etch_placed_region *body, etch_stage_reads *out)
{
    const etch_stage_read hands = {.how = ETCH_READ_HANDS, .body = body->of, .in = body->of};
    for (uint32_t i = 0; i < body->carries.count; i++) {
        etch_stage_read like = hands;
        like.value = body->carries.at[i].out;
        add_read(s, out, like);
    }
    for (etch_placed_cursor at = {.root = body}; etch_placed_cursor_next(&at);) {
        const etch_stage_read like = {.how = ETCH_READ, .body = body->of, .in = at.in->of};
        if (at.item->step && !is_idle(s, at.item->step))
            add_operands(s, at.item, like, out);
        else if (at.item->loop)
            add_carried(s, at.item->loop, like, out);
    }
}

/* What an item reads, a loop at any depth. Values that a loop makes itself have no stage position, so that
 * reading them says nothing. */
static etch_stage_reads reads_of(const etch_staging *s, const etch_placed_item *item)
{
    etch_stage_reads out = {0};
    const etch_stage_read begins = {.how = ETCH_READ_BEGINS}, plain = {.how = ETCH_READ};
    if (item->step && !is_idle(s, item->step))
        add_operands(s, item, plain, &out);
    for (uint32_t i = 0; item->loop && i < etch_loop_carries(item->loop)->count; i++) {
        etch_stage_read like = begins;
        like.value = etch_loop_carries(item->loop)->at[i].init;
        add_read(s, &out, like);
    }
    for (uint32_t k = 0; item->loop && k < item->loop->bodies.count; k++)
        add_body(s, item->loop->bodies.at[k], &out);
    return out;
}

etch_stage_pass etch_stage_pass_of(const etch_staging *s, const etch_placed_region *region)
{
    etch_stage_pass out = {.count = region ? region->items.count : 0};
    out.items = region ? region->items.at : NULL;
    out.reads = ETCH_NEW_ARRAY(s->p->arena, out.count, etch_stage_reads);
    for (uint32_t i = 0; i < out.count; i++)
        out.reads[i] = reads_of(s, &out.items[i]);
    return out;
}
