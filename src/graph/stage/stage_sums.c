/* Sums of cotangents that come from several later units of the chain are made where they meet, so that one of
 * them goes on along the chain. What a loop adds up begins with what is known where the loop begins. */
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

/* Puts the last item of a region after another one. */
static void move_behind(etch_placed_region *region, uint32_t other)
{
    const etch_placed_item moved = region->items.at[region->items.count - 1];
    for (uint32_t i = region->items.count - 1; i > other + 1; i--)
        region->items.at[i] = region->items.at[i - 1];
    region->items.at[other + 1] = moved;
}

/* Puts other terms in the place of those of a sum. */
static void set_terms(etch_placer *p, etch_step *step, etch_value *const *terms, uint32_t count)
{
    etch_op *op = ETCH_NEW(p->arena, etch_op);
    *op = *step->op;
    step->ins = ETCH_NEW_ARRAY(p->arena, count, etch_value *);
    op->ins = ETCH_NEW_ARRAY(p->arena, count, etch_tensor *);
    step->in_count = op->in_count = count;
    for (uint32_t i = 0; i < count; i++) {
        step->ins[i] = terms[i];
        op->ins[i] = terms[i]->tensor;
    }
    op->runs = etch_place_additions(p, terms, count);
    step->op = op;
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
    step->ins[count - 1] = step->ins[0];
    set_terms(p, step, step->ins + count - 1, step->in_count - (count - 1));
}

/* How far on along the chain a term is made; what can be had anywhere is not. */
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

static bool is_total(const etch_step *step)
{
    return step && step->op && step->op->row->use == ETCH_USE_TOTAL;
}

bool etch_stage_add_on_the_way(const etch_staging *s)
{
    const etch_placed_region *region = s->placed->backward;
    bool any = false;
    for (uint32_t i = 0; region && i < region->items.count; i++) {
        const uint32_t count_before = region->items.count;
        etch_step *step = region->items.at[i].step;
        if (!is_total(step))
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

/* ---- what loops add up --------------------------------------------------------------------------------- */

/* A value that a loop of the chain adds up, and hands out as a term of a sum. */
typedef struct added_up {
    /* the loop among the items; NULL: there is none */
    const etch_placed_loop *loop;
    uint32_t item, carry;
} added_up;

static bool carries(const etch_loop *loop, const etch_tensor *tensor)
{
    for (uint32_t b = 0; b < loop->bodies.count; b++)
        for (uint32_t k = 0; k < loop->bodies.at[b]->carries.count; k++)
            if (loop->bodies.at[b]->carries.at[k].in == tensor)
                return true;
    return false;
}

/* Is it the cotangent of a value from outside of the loop? That of what the forward loop carries is made anew
 * in each iteration; where that is recomputed, what it does not need is carried by the first one only. */
static bool is_from_outside(const etch_placed_loop *loop, uint32_t carry)
{
    const etch_tensor *of = etch_loop_carries(loop)->at[carry].in->tensor->of;
    const etch_loop *again = loop->loop->forward;
    if (!again)
        return false;
    return !carries(again, of) && !carries(etch_forward_body(loop->loop->bodies.at[0])->loop, of);
}

static added_up added_up_as(const etch_staging *s, const etch_value *term)
{
    const etch_placed_region *region = s->placed->backward;
    for (uint32_t i = 0; i < region->items.count; i++) {
        const etch_placed_loop *loop = region->items.at[i].loop;
        for (uint32_t k = 0; loop && k < etch_loop_carries(loop)->count; k++)
            if (etch_loop_carries(loop)->at[k].result == term)
                return etch_position_is_loop(s->stages, loop->position) && is_from_outside(loop, k)
                           ? (added_up){loop, i, k}
                           : (added_up){.loop = NULL};
    }
    return (added_up){.loop = NULL};
}

/* How many items of a region, however deep, read the value, under whatever name. */
static uint32_t count_reads(const etch_placed_region *region, const etch_value *root)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < region->carries.count; i++) {
        const etch_placed_carry *carry = &region->carries.at[i];
        count += etch_value_root(carry->out) == root;
        count += carry->init && etch_value_root(carry->init) == root;
    }
    for (uint32_t i = 0; i < region->items.count; i++) {
        const etch_placed_item *item = &region->items.at[i];
        for (uint32_t k = 0; item->step && !etch_stage_is_view(item) && k < item->step->in_count; k++)
            count += etch_value_root(item->step->ins[k]) == root;
        for (uint32_t b = 0; item->loop && b < item->loop->bodies.count; b++)
            count += count_reads(item->loop->bodies.at[b], root);
    }
    return count;
}

/* Does the sum alone read its term? */
static bool is_read_once(const etch_staging *s, etch_value *term)
{
    return count_reads(s->placed->backward, etch_value_root(term)) == 1;
}

/* Terms of a sum, in the order in which they arrive, that are there where the loop begins. */
static uint32_t count_beforehand(const etch_staging *s, const etch_step *step, const added_up *a)
{
    const etch_position begin = etch_stage_loop_begin(s, a->loop->position);
    uint32_t count = 0;
    while (count < step->in_count && distance_of(s, step, count) > 0 &&
           etch_stage_made_at(s, step->ins[count]) >= begin)
        count++;
    return count;
}

/* Marks what an item, however deep, reads. */
static void mark_reads(const etch_placed_item *item, bool *needed)
{
    for (uint32_t i = 0; item->step && i < item->step->in_count; i++)
        needed[item->step->ins[i]->id] = true;
    for (uint32_t b = 0; item->loop && b < item->loop->bodies.count; b++) {
        const etch_placed_region *body = item->loop->bodies.at[b];
        for (uint32_t i = 0; i < body->carries.count; i++) {
            needed[body->carries.at[i].out->id] = true;
            if (body->carries.at[i].init)
                needed[body->carries.at[i].init->id] = true;
        }
        for (uint32_t i = 0; i < body->items.count; i++)
            mark_reads(&body->items.at[i], needed);
    }
}

static bool makes_any(const etch_placed_item *item, const bool *needed)
{
    for (uint32_t i = 0; item->step && i < item->step->out_count; i++)
        if (needed[item->step->outs[i]->id])
            return true;
    for (uint32_t i = 0; item->loop && i < etch_loop_carries(item->loop)->count; i++) {
        const etch_value *result = etch_loop_carries(item->loop)->at[i].result;
        if (result && needed[result->id])
            return true;
    }
    return false;
}

/* Puts the items that make the terms, and what these need, before the loop. Its new place. */
static uint32_t make_beforehand(const etch_staging *s, uint32_t loop, etch_value *const *terms,
                                uint32_t count)
{
    etch_placed_region *region = s->placed->backward;
    const uint32_t items = region->items.count;
    bool *needed = ETCH_NEW_ARRAY(s->p->arena, s->placed->value_count, bool);
    bool *is_moved = ETCH_NEW_ARRAY(s->p->arena, items, bool);
    etch_placed_item *rest = ETCH_NEW_ARRAY(s->p->arena, items, etch_placed_item);
    uint32_t left = 0;
    for (uint32_t i = 0; i < count; i++)
        needed[terms[i]->id] = true;
    for (uint32_t i = items; i-- > loop + 1;)
        if (makes_any(&region->items.at[i], needed)) {
            is_moved[i] = true;
            mark_reads(&region->items.at[i], needed);
        }
    const uint32_t first = loop;
    for (uint32_t i = first; i < items; i++)
        if (is_moved[i])
            region->items.at[loop++] = region->items.at[i];
        else
            rest[left++] = region->items.at[i];
    for (uint32_t i = 0; i < left; i++)
        region->items.at[loop + i] = rest[i];
    return loop;
}

/* A value is made where it was zeros: what adds to it does so more often. Goes as deep as loops are
 * nested. */
static void note_made(etch_placer *p, const etch_placed_region *region, etch_value *value, etch_expr made)
{
    if (!value || !value->made)
        return;
    etch_expr both[] = {value->made, made};
    value->made = etch_any_made(p->sym, both, 2);
    for (uint32_t i = 0; i < region->items.count; i++) {
        const etch_placed_item *item = &region->items.at[i];
        for (uint32_t k = 0; is_total(item->step) && k < item->step->in_count; k++)
            if (item->step->ins[k] == value) {
                set_terms(p, item->step, item->step->ins, item->step->in_count);
                note_made(p, region, item->step->outs[0], made);
            }
        for (uint32_t k = 0; item->loop && k < etch_loop_carries(item->loop)->count; k++) {
            const etch_placed_carry *carry = &etch_loop_carries(item->loop)->at[k];
            if (carry->init != value)
                continue;
            for (uint32_t b = 0; b < item->loop->bodies.count; b++)
                note_made(p, item->loop->bodies.at[b], item->loop->bodies.at[b]->carries.at[k].in, made);
            note_made(p, region, carry->result, made);
        }
    }
}

/* Takes the first terms out of a sum, and begins with them what the loop adds up. */
static void begin_with(const etch_staging *s, etch_step *step, const added_up *a, uint32_t count)
{
    etch_placer *p = s->p;
    etch_placed_region *region = s->placed->backward;
    const uint32_t at = make_beforehand(s, a->item, step->ins, count);
    etch_value *init = etch_loop_carries(a->loop)->at[a->carry].init;
    etch_value **terms = ETCH_NEW_ARRAY(p->arena, count + 1, etch_value *);
    for (uint32_t i = 0; i < count; i++)
        terms[i] = step->ins[i];
    terms[count] = init;
    p->region = region;
    p->phase = step->phase;
    p->scope = step->scope;
    if (count + (init != NULL) > 1) {
        init = etch_place_sum(p, step->op, terms, count + (init != NULL), 0);
        move_behind(region, at - 1);
    } else {
        init = terms[0];
    }
    for (uint32_t b = 0; b < a->loop->bodies.count; b++) {
        etch_placed_region *body = a->loop->bodies.at[b];
        body->carries.at[a->carry].init = init;
        note_made(p, body, body->carries.at[a->carry].in, init->made);
    }
    note_made(p, region, etch_loop_carries(a->loop)->at[a->carry].result, init->made);
    set_terms(p, step, step->ins + count, step->in_count - count);
}

/* A sum of one term is that. */
static void take_out(etch_placed_region *region, const etch_step *step)
{
    uint32_t left = 0;
    for (uint32_t i = 0; i < region->items.count; i++)
        if (region->items.at[i].step != step)
            region->items.at[left++] = region->items.at[i];
    region->items.count = left;
    etch_stage_exchange(region, step->outs[0], step->ins[0]);
}

/* The first term that a loop adds up which other terms are there for beforehand; `*count`: these, which come
 * before it. A term that others read as well goes along the chain anyway. */
static added_up find_loop(const etch_staging *s, const etch_step *step, uint32_t *count)
{
    for (uint32_t i = 1; i < step->in_count; i++) {
        const added_up a = added_up_as(s, step->ins[i]);
        *count = a.loop ? count_beforehand(s, step, &a) : 0;
        if (*count > 0 && *count <= i && is_read_once(s, step->ins[i]) &&
            (*count > 1 || is_read_once(s, step->ins[0])) &&
            step->ins[i]->tensor->dtype == step->outs[0]->tensor->dtype &&
            step->ins[0]->tensor->dtype == step->outs[0]->tensor->dtype)
            return a;
    }
    return (added_up){.loop = NULL};
}

bool etch_stage_begin_with_terms(const etch_staging *s)
{
    etch_placed_region *region = s->placed->backward;
    ETCH_VEC(etch_step *) totals = {0};
    bool any = false;
    for (uint32_t i = 0; region && i < region->items.count; i++)
        if (is_total(region->items.at[i].step))
            ETCH_PUSH(s->p->arena, &totals, region->items.at[i].step);
    for (uint32_t i = 0; i < totals.count; i++) {
        etch_step *step = totals.at[i];
        uint32_t count;
        sort_terms(s, step);
        for (added_up a; (a = find_loop(s, step, &count)).loop; any = true)
            begin_with(s, step, &a, count);
        if (step->in_count == 1)
            take_out(region, step);
    }
    return any;
}
