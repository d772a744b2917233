/* Partial cotangents that need no reduction of their own (R6): all that is made of them is reduced anyway. */
#include "graph/ir/cursor.h"
#include "graph/place/place_int.h"

typedef ETCH_VEC(const etch_op *) op_list;

typedef struct walk {
    etch_placer *p;
    /* of backward, in program order */
    op_list ops;
    /* By tensor id, bits of axes: those on which it is partial because its op sums there, */
    uint32_t *summed;
    /* those on which all that reads it passes on a partial sum, and adds it to what is reduced anyway, */
    uint32_t *passes;
    /* and whether anything reads it. */
    bool *is_read;
} walk;

static bool is_backward(const etch_tensor *tensor)
{
    return tensor->producer && tensor->producer->phase == ETCH_BACKWARD;
}

static uint32_t all_axes(const etch_placer *p)
{
    return (1u << p->axis_count) - 1;
}

/* How an axis divides the work of an op: as it does that of its forward op. */
static etch_state factor_of(const etch_placer *p, const etch_op *op, uint32_t axis)
{
    const etch_step *forward = op->forward ? p->steps[op->forward->id] : NULL;
    return forward ? forward->factor[axis] : NULL;
}

static uint32_t axes_summed(const etch_placer *p, const etch_op *op, const etch_tensor *result)
{
    uint32_t axes = 0;
    for (uint32_t a = 0; a < p->axis_count; a++) {
        const etch_state f = factor_of(p, op, a);
        if (f && etch_op_factor(op, f) == ETCH_FACTOR_PASS && !etch_has_dim(result, f) &&
            !etch_has_dim(result, etch_op_dim_linked(op, f)))
            axes |= 1u << a;
    }
    return axes;
}

static void find_summed(walk *w, const etch_op *op)
{
    const bool is_total = op->row->use == ETCH_USE_TOTAL;
    const bool shows = is_total ? etch_is_seen_through(w->p, op->outs[0]->of) : etch_op_is_view(op);
    for (uint32_t i = 0; i < op->out_count; i++) {
        uint32_t *summed = &w->summed[op->outs[i]->id];
        *summed = axes_summed(w->p, op, op->outs[i]);
        for (uint32_t k = 0; shows && k < op->in_count; k++)
            *summed |= w->summed[op->ins[k]->id];
    }
}

/* Of the total of a value: a summand is added to others that are partial, and all of them are moved once. One
 * that is alone is the total, which may be partial where the value is replicated. */
static uint32_t passes_total(const walk *w, const etch_op *op, uint32_t summand)
{
    const etch_value *made = w->p->made[etch_origin(op->outs[0])->id];
    uint32_t others = 0;
    for (uint32_t i = 0; i < op->in_count; i++)
        others |= i != summand ? w->summed[op->ins[i]->id] : 0;
    if (op->in_count > 1 || !made)
        return others;
    return etch_axes_held(w->p->plan, made->place, NULL) & w->passes[op->outs[0]->id];
}

/* Axes on which a partial sum as operand `k` alone goes through, and what it makes is reduced anyway. */
static uint32_t passes_op(const walk *w, const etch_op *op, uint32_t k)
{
    uint32_t axes = all_axes(w->p);
    if (op->row->use == ETCH_USE_TOTAL)
        return passes_total(w, op, k);
    if (!etch_op_is_view(op)) {
        if (!etch_passes_alone(op, k) || !(etch_has_result_dims(op, op->ins[k]) || etch_op_sums(op)))
            return 0;
        for (uint32_t i = 0; i < op->in_count; i++)
            if (i != k && is_backward(op->ins[i]))
                return 0;
        for (uint32_t a = 0; a < w->p->axis_count; a++)
            if (factor_of(w->p, op, a))
                axes &= ~(1u << a);
    }
    for (uint32_t i = 0; i < op->out_count; i++)
        axes &= w->passes[op->outs[i]->id];
    return axes;
}

/* Of a tensor that nothing reads: over axes that replicate a weight its gradient is reduced once a step. */
static uint32_t passes_unread(const walk *w, const etch_tensor *tensor)
{
    const etch_value *weight = tensor->adds_to ? w->p->placed->weight_of[tensor->adds_to->of->id] : NULL;
    return weight ? etch_axes_held(w->p->plan, weight->place, NULL) & all_axes(w->p) : 0;
}

static void find_passes(walk *w, const etch_op *op)
{
    for (uint32_t i = 0; i < op->out_count; i++)
        if (!w->is_read[op->outs[i]->id])
            w->passes[op->outs[i]->id] = passes_unread(w, op->outs[i]);
    for (uint32_t k = 0; k < op->in_count; k++) {
        const uint32_t id = op->ins[k]->id;
        if (!is_backward(op->ins[k]))
            continue;
        w->passes[id] &= passes_op(w, op, k);
        w->is_read[id] = true;
    }
}

/* Loop-carried values are never partial. */
static void find_carried(walk *w, const etch_loop *loop)
{
    for (uint32_t k = 0; k < loop->bodies.count; k++)
        for (uint32_t i = 0; i < loop->bodies.at[k]->carries.count; i++) {
            const etch_carry *c = &loop->bodies.at[k]->carries.at[i];
            w->passes[c->out->id] = 0;
            w->is_read[c->out->id] = true;
            if (c->init) {
                w->passes[c->init->id] = 0;
                w->is_read[c->init->id] = true;
            }
        }
}

bool etch_is_seen_through(const etch_placer *p, const etch_tensor *tensor)
{
    const etch_op *op = tensor->producer;
    return op && (etch_op_is_view(op) || etch_joint_is_open(p, op));
}

void etch_passing_find(etch_placer *p)
{
    const uint32_t tensors = p->graph->tensors.count;
    walk w = {.p = p,
              .summed = ETCH_NEW_ARRAY(p->arena, tensors, uint32_t),
              .passes = ETCH_NEW_ARRAY(p->arena, tensors, uint32_t),
              .is_read = ETCH_NEW_ARRAY(p->arena, tensors, bool)};
    for (uint32_t i = 0; i < tensors; i++)
        w.passes[i] = all_axes(p);
    for (etch_cursor at = {.root = p->training->backward}; etch_cursor_next(&at);) {
        if (at.item->loop) {
            find_carried(&w, at.item->loop);
        } else if (at.item->op->phase == ETCH_BACKWARD) {
            ETCH_PUSH(p->arena, &w.ops, at.item->op);
            find_summed(&w, at.item->op);
        }
    }
    for (uint32_t i = w.ops.count; i-- > 0;)
        find_passes(&w, w.ops.at[i]);
    p->passes = w.passes;
}
