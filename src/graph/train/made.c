/* Which cotangents are zeros where loops run no iteration, and what is not computed then.
 *
 * requires: a derived backward pass. provides: etch_tensor.made, etch_op.runs.
 *
 * A reverse loop that begins with zeros hands out zeros where no iteration adds to them. What made a value is
 * followed through the pass as alternatives: in each, classes of iterations that must run. Inside of a body
 * its own class runs. Where an alternative needs nothing, or nothing but loops that surely have iterations,
 * the value is made. */
#include "graph/ir/cursor.h"
#include "graph/train/train_int.h"

/* Bodies of the backward pass, by how many iterations they have: bits. */
typedef uint64_t bodies;

enum { MOST_BODIES = 64, MOST_ALTERNATIVES = 16 };

typedef struct makers {
    /* of no other alternative a part */
    bodies at[MOST_ALTERNATIVES];
    /* 0: nothing makes it */
    uint32_t count;
} makers;

typedef struct making {
    etch_sym *sym;
    etch_arena *arena;
    /* by tensor id; NULL: of forward, or recomputed */
    const makers **of;
    /* iterations of bodies that may run none */
    etch_expr open[MOST_BODIES];
    uint32_t open_count;
    /* a loop carries what was not known when its body was looked at */
    bool changed;
} making;

/* ---- alternatives -------------------------------------------------------------------------------------- */

static const makers always = {.at = {0}, .count = 1};

static bool is_always(const makers *m)
{
    return m->count == 1 && !m->at[0];
}

/* Adds an alternative, unless a part of it is there. True when it is new. More than there is room for count
 * as made. */
static bool add_alternative(makers *to, bodies needs)
{
    uint32_t left = 0;
    for (uint32_t i = 0; i < to->count; i++)
        if ((to->at[i] & needs) == to->at[i])
            return false;
    for (uint32_t i = 0; i < to->count; i++)
        if ((to->at[i] & needs) != needs)
            to->at[left++] = to->at[i];
    to->count = left;
    if (left == MOST_ALTERNATIVES)
        *to = always;
    else
        to->at[to->count++] = needs;
    return true;
}

static bool add_makers(makers *to, const makers *from, bodies with)
{
    bool changed = false;
    for (uint32_t i = 0; i < from->count; i++)
        changed = add_alternative(to, from->at[i] | with) || changed;
    return changed;
}

/* The bit of bodies with so many iterations; 0 where there surely are some. */
static bodies bit_of(making *m, etch_expr count)
{
    for (uint32_t i = 0; i < m->open_count; i++)
        if (m->open[i] == count)
            return (bodies)1 << i;
    if (m->open_count == MOST_BODIES || etch_at_least(m->sym, count, etch_int(m->sym, 1), NULL) == ETCH_YES)
        return 0;
    m->open[m->open_count] = count;
    return (bodies)1 << m->open_count++;
}

/* 1 where it is made, else 0; NULL: always, or never: what nothing makes is computed as what is made. */
static etch_expr expr_of(const making *m, const makers *of)
{
    etch_expr sum = etch_int(m->sym, 0);
    if (of->count == 0 || is_always(of))
        return NULL;
    for (uint32_t i = 0; i < of->count; i++) {
        etch_expr all = etch_int(m->sym, 1);
        for (uint32_t k = 0; k < m->open_count; k++)
            if (of->at[i] >> k & 1)
                all = etch_mul(m->sym, all, etch_some(m->sym, m->open[k]));
        sum = etch_add(m->sym, sum, all);
    }
    return etch_some(m->sym, sum);
}

/* ---- the pass ------------------------------------------------------------------------------------------ */

static void set(const making *m, etch_tensor *tensor, const makers *to)
{
    const makers **of = &m->of[tensor->id];
    if (is_always(to)) { /* as for almost all */
        *of = &always;
    } else {
        makers *own = ETCH_NEW(m->arena, makers);
        *own = *to;
        *of = own;
    }
    tensor->made = expr_of(m, to);
}

/* The one of a loss is a term as well. */
static void look_at_sum(const making *m, etch_op *op)
{
    etch_expr *terms = ETCH_NEW_ARRAY(m->arena, op->in_count, etch_expr);
    makers made = {0};
    for (uint32_t i = 0; i < op->in_count; i++) {
        const makers *of = m->of[op->ins[i]->id];
        add_makers(&made, of ? of : &always, 0);
        terms[i] = op->ins[i]->made;
    }
    set(m, op->outs[0], &made);
    op->runs = etch_additions(m->sym, terms, op->in_count);
}

/* What is made of zeros alone is zeros; what is no cotangent does not count. */
static void look_at_op(const making *m, etch_op *op)
{
    makers made = {0};
    bool any = false;
    for (uint32_t i = 0; i < op->in_count; i++) {
        const makers *of = m->of[op->ins[i]->id];
        any = any || of;
        if (of)
            add_makers(&made, of, 0);
    }
    for (uint32_t i = 0; i < op->out_count; i++)
        set(m, op->outs[i], any ? &made : &always);
    op->runs = op->outs[0]->made;
}

static void look_at_region(making *m, const etch_region *region);

/* Inside of the body what the others need is needed still. */
static void enter_body(const making *m, const etch_region *body, const makers *carried, bodies own)
{
    for (uint32_t i = 0; i < body->carries.count; i++) {
        makers in = {0};
        for (uint32_t k = 0; k < carried[i].count; k++)
            add_alternative(&in, carried[i].at[k] & ~own);
        set(m, body->carries.at[i].in, &in);
    }
}

/* Adds what an iteration makes, which the next one has. */
static void leave_body(making *m, const etch_region *body, makers *carried, bodies own)
{
    for (uint32_t i = 0; i < body->carries.count; i++) {
        const makers *of = m->of[body->carries.at[i].out->id];
        if (of)
            m->changed = add_makers(&carried[i], of, own) || m->changed;
    }
}

/* What a loop carries is that of its result, as it is known so far. Goes as deep as loops are nested. */
static void look_at_loop(making *m, const etch_loop *loop)
{
    const uint32_t count = etch_loop_carries(loop)->count;
    makers *carried = ETCH_NEW_ARRAY(m->arena, count, makers);
    for (uint32_t i = 0; i < count; i++) {
        const etch_carry *c = &etch_loop_carries(loop)->at[i];
        if (m->of[c->result->id])
            carried[i] = *m->of[c->result->id];
        if (c->init)
            add_makers(&carried[i], m->of[c->init->id] ? m->of[c->init->id] : &always, 0);
    }
    for (uint32_t k = 0; k < loop->bodies.count; k++) {
        const etch_region *body = loop->bodies.at[k];
        const bodies own = bit_of(m, body->count);
        enter_body(m, body, carried, own);
        look_at_region(m, body);
        leave_body(m, body, carried, own);
    }
    for (uint32_t i = 0; i < count; i++)
        set(m, etch_loop_carries(loop)->at[i].result, &carried[i]);
}

static void look_at_region(making *m, const etch_region *region)
{
    for (uint32_t i = 0; i < region->items.count; i++) {
        etch_op *op = region->items.at[i].op;
        const etch_loop *loop = region->items.at[i].loop;
        if (loop && etch_loop_phase(loop) == ETCH_BACKWARD)
            look_at_loop(m, loop);
        else if (op && op->phase == ETCH_BACKWARD && op->row->use == ETCH_USE_TOTAL)
            look_at_sum(m, op);
        else if (op && op->phase == ETCH_BACKWARD)
            look_at_op(m, op);
    }
}

/* Surely run all loops of most models: then all is made. */
static bool any_may_be_empty(making *m, const etch_region *region)
{
    for (etch_cursor at = {.root = region}; etch_cursor_next(&at);)
        for (uint32_t k = 0; at.item->loop && k < at.item->loop->bodies.count; k++)
            if (bit_of(m, at.item->loop->bodies.at[k]->count))
                return true;
    return false;
}

void etch_made_find(etch_training *training)
{
    const etch_graph *graph = training->graph;
    making m = {.sym = graph->sym, .arena = graph->arena};
    if (!any_may_be_empty(&m, training->backward))
        return;
    m.of = ETCH_NEW_ARRAY(m.arena, graph->tensors.count, const makers *);
    do {
        m.changed = false;
        look_at_region(&m, training->backward);
    } while (m.changed); /* until no iteration makes anything that the next one does not know of */
}
