/* Units of a stage line, as far as placement has to know them: no partial sum goes from one to another, so
 * that what resolves it runs where it is made.
 *
 * What the line lists is in the unit of its name, a loop in one of its own; everything else is where the last
 * of its operands is made, and what is derived where its forward op is, as the stages have it
 * (stage/stage.c). */
#include <string.h>

#include "graph/ir/cursor.h"
#include "graph/place/place_int.h"

/* Numbers of units, from 1 on in the order of the program; 0: not known, or no matter. */
typedef struct units {
    etch_placer *p;
    const etch_stage_line *line;
    etch_choices *chosen;
    /* by selector, and by loop id */
    uint32_t *of_selector, *of_loop;
    /* by op id */
    uint32_t *of_op;
    uint32_t count;
} units;

static bool is_listed(const units *u, const etch_item *item, const etch_region *in, uint32_t selector)
{
    const etch_choices *chosen = &u->chosen[selector];
    for (uint32_t i = 0; i < chosen->count; i++)
        if (item->op ? !chosen->at[i].loop && etch_choice_has(&chosen->at[i], item->op, in)
                     : chosen->at[i].loop == item->loop)
            return true;
    return false;
}

/* The unit that lists an item of the top level; 0: none does. */
static uint32_t listed_in(units *u, const etch_item *item, const etch_region *in)
{
    for (uint32_t k = 0; k < u->line->selector_count; k++) {
        if (!is_listed(u, item, in, k))
            continue;
        if (item->loop)
            return ++u->count;
        if (!u->of_selector[k])
            u->of_selector[k] = ++u->count;
        return u->of_selector[k];
    }
    return 0;
}

static uint32_t later(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

static uint32_t ready_at(const units *u, const etch_op *op)
{
    uint32_t ready = 0;
    for (uint32_t i = 0; i < op->in_count; i++)
        ready = later(ready, u->p->unit[op->ins[i]->id]);
    return ready;
}

/* Where the last part of a sum of cotangents arrives: units are gone through from the last on. */
static uint32_t arrives_at(const units *u, const etch_op *total)
{
    uint32_t last = 0;
    for (uint32_t i = 0; i < total->in_count; i++) {
        const uint32_t at = u->p->unit[total->ins[i]->id];
        last = at && (!last || at < last) ? at : last;
    }
    return last;
}

static uint32_t unit_of_op(const units *u, const etch_op *op)
{
    if (op->forward)
        return u->of_op[etch_first_op(op)->id];
    return op->phase == ETCH_BACKWARD ? arrives_at(u, op) : ready_at(u, op);
}

static void set_op(const units *u, const etch_op *op, uint32_t unit)
{
    u->of_op[op->id] = unit;
    for (uint32_t i = 0; i < op->out_count; i++)
        u->p->unit[op->outs[i]->id] = unit;
}

static void set_loop(const units *u, const etch_loop *loop, uint32_t unit)
{
    u->of_loop[loop->id] = unit;
    for (uint32_t i = 0; i < etch_loop_carries(loop)->count; i++)
        u->p->unit[etch_loop_carries(loop)->at[i].result->id] = unit;
    for (uint32_t k = 0; k < loop->bodies.count; k++) {
        for (uint32_t i = 0; i < loop->bodies.at[k]->carries.count; i++)
            u->p->unit[loop->bodies.at[k]->carries.at[i].in->id] = unit;
        for (uint32_t i = 0; i < loop->bodies.at[k]->items.count; i++)
            if (loop->bodies.at[k]->items.at[i].loop)
                set_loop(u, loop->bodies.at[k]->items.at[i].loop, unit);
            else
                set_op(u, loop->bodies.at[k]->items.at[i].op, unit);
    }
}

static uint32_t unit_of_loop(const units *u, const etch_loop *loop)
{
    const etch_loop *first = loop->forward ? loop->forward : loop->repeats;
    uint32_t ready = first ? u->of_loop[first->id] : 0;
    for (uint32_t k = 0; !first && k < loop->bodies.count; k++) {
        for (uint32_t i = 0; i < loop->bodies.at[k]->carries.count; i++)
            if (loop->bodies.at[k]->carries.at[i].init)
                ready = later(ready, u->p->unit[loop->bodies.at[k]->carries.at[i].init->id]);
        for (etch_cursor at = {.root = loop->bodies.at[k]}; etch_cursor_next(&at);)
            ready = at.item->op ? later(ready, ready_at(u, at.item->op)) : ready;
    }
    return ready;
}

static void walk(units *u, const etch_region *top, bool forward)
{
    for (uint32_t i = 0; top && i < top->items.count; i++) {
        const etch_item *item = &top->items.at[i];
        const uint32_t listed = forward ? listed_in(u, item, top) : 0;
        if (item->loop)
            set_loop(u, item->loop, listed ? listed : unit_of_loop(u, item->loop));
        else
            set_op(u, item->op, listed ? listed : unit_of_op(u, item->op));
    }
}

void etch_units_find(etch_placer *p)
{
    etch_arena *arena = p->arena;
    p->unit = ETCH_NEW_ARRAY(arena, p->graph->tensors.count, uint32_t);
    if (!p->plan->stage)
        return;
    const uint32_t selectors = p->plan->stage->selector_count;
    units u = {.p = p,
               .line = p->plan->stage,
               .chosen = ETCH_NEW_ARRAY(arena, selectors, etch_choices),
               .of_selector = ETCH_NEW_ARRAY(arena, selectors, uint32_t),
               .of_loop = ETCH_NEW_ARRAY(arena, p->graph->loop_count, uint32_t),
               .of_op = ETCH_NEW_ARRAY(arena, p->graph->op_count, uint32_t)};
    for (uint32_t k = 0; k < selectors; k++)
        u.chosen[k] = etch_choose(p->graph, u.line->selectors[k]);
    walk(&u, p->graph->forward, true);
    walk(&u, p->training->backward, false);
}

bool etch_units_cross(const etch_placer *p, const etch_tensor *made, const etch_tensor *reader)
{
    const uint32_t from = p->unit[made->id], to = p->unit[reader->id];
    return from && to && from != to;
}
