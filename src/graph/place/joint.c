/* Partial sums that meet in a sum (R4): what is linear in one of them waits with its reduction until they are
 * added, where another term is partial over the same axis.
 *
 * An op whose result is wanted divided reduces a partial operand at once: its work is divided then. Whether
 * another term of the sum that reads it is partial too is known where the sum is placed, which comes later.
 * So the walk notes what should have waited, and the whole is placed once more. */
#include "graph/place/place_int.h"

/* Of an op, beside the bits of axes over which a partial operand goes through: nothing makes its result, as
 * its terms are those of the sum that it is a term of. */
enum { IS_OPEN = 1 << ETCH_MAX_AXES };

static bool is_sum(const etch_op *op)
{
    return op->row->use == ETCH_USE_SUM || op->row->use == ETCH_USE_DIFFERENCE;
}

/* The axes over which the op `by` had a value reduced that it reads, maybe under another name. */
static uint32_t reduced_by(const etch_placer *p, const etch_value *value, const etch_op *by)
{
    const uint32_t left = etch_axes_held(p->plan, value->place, ETCH_PARTIAL);
    uint32_t partial = 0;
    while (value->step) {
        const etch_step *step = value->step;
        const etch_provenance *why = &step->provenance;
        const bool asked = why->rule == ETCH_RULE_OPERAND && why->op->id == by->id;
        if (step->collective != ETCH_NO_COLLECTIVE ? !asked : !etch_op_is_view(step->op))
            break;
        value = etch_value_before(value);
        partial |= step->collective ? etch_axes_held(p->plan, value->place, ETCH_PARTIAL) : 0;
    }
    return partial & ~left;
}

/* The operand that a partial sum goes through the op as; UINT32_MAX: none, or several. */
static uint32_t linear_operand(const etch_placer *p, const etch_op *op)
{
    uint32_t linear = UINT32_MAX, count = 0;
    for (uint32_t i = 0; i < op->in_count; i++)
        if (etch_passes_alone(op, i) && etch_has_result_dims(op, op->ins[i]) &&
            !p->uses[op->ins[i]->id].read_back) {
            linear = i;
            count++;
        }
    return count == 1 && etch_op_role(op) != ETCH_ROLE_PRODUCT ? linear : UINT32_MAX;
}

static void note(etch_placer *p, const etch_op *op, uint32_t axes)
{
    p->again = p->again || (axes & ~p->joint[op->id]) != 0;
    p->joint[op->id] |= axes;
}

/* ---- sums that are terms of sums ----------------------------------------------------------------------- */

/* The result of a call, or what enters one, in sight of no scope of the plan and of no pin; one op reads it,
 * and no loop begins with it. */
static bool is_bare(const etch_placer *p, const etch_op *op)
{
    const etch_tensor *out = op->outs[0];
    return p->uses[out->id].count == 1 && !etch_boundary_of_operand(&p->plan_regions, op, op->ins[0]).axes &&
           !etch_boundary_of_result(&p->plan_regions, out).axes && !etch_map_find_pin(p->placed, out) &&
           !out->wanted && !p->uses[out->id].read_back && !etch_request_carried_at_end(out).loop;
}

bool etch_joint_is_open(const etch_placer *p, const etch_op *op)
{
    const etch_op *first = etch_first_op(op);
    return op->phase != ETCH_BACKWARD && first->id < p->joint_count && p->joint[first->id] & IS_OPEN;
}

/* The sum whose terms stand for the tensor, which nothing makes; NULL: something makes it. */
static const etch_op *open_sum(const etch_placer *p, const etch_tensor *tensor)
{
    const etch_op *op = tensor->producer;
    if (!op || !etch_joint_is_open(p, op))
        return NULL;
    while (!is_sum(op))
        op = op->ins[0]->producer;
    return op;
}

static bool is_taken(const etch_op *sum, uint32_t term)
{
    return sum->row->use == ETCH_USE_DIFFERENCE ? term == 1 : sum->attrs.taken >> term & 1;
}

/* Writes the terms of a sum from `count` on, if they fit; returns how many there are. Goes as deep as open
 * sums are terms of each other. */
static uint32_t open_terms(const etch_placer *p, const etch_op *sum, bool taken, etch_op *into,
                           uint32_t count)
{
    for (uint32_t i = 0; i < sum->in_count; i++) {
        const etch_op *inner = open_sum(p, sum->ins[i]);
        const bool is_less = taken != is_taken(sum, i);
        if (inner) {
            count = open_terms(p, inner, is_less, into, count);
            continue;
        }
        if (into) {
            into->ins[count] = sum->ins[i];
            into->attrs.taken |= (uint32_t)is_less << count;
        }
        count++;
    }
    return count;
}

etch_op *etch_joint_opened(etch_placer *p, etch_op *sum)
{
    if (!is_sum(sum) || sum->phase == ETCH_BACKWARD || open_terms(p, sum, false, NULL, 0) == sum->in_count)
        return sum;
    etch_op *all = ETCH_NEW(p->arena, etch_op);
    *all = *sum;
    all->row = etch_row_for(p->graph, ETCH_USE_SUM);
    all->attrs.taken = 0;
    all->ins = ETCH_NEW_ARRAY(p->arena, ETCH_MAX_OPERANDS, etch_tensor *);
    all->in_count = open_terms(p, sum, false, all, 0);
    return all;
}

/* What is open is held as what another op makes. */
static void show_as(etch_placer *p, const etch_op *open, const etch_op *sum)
{
    const uint32_t id = open->outs[0]->id, of = sum->outs[0]->id;
    p->made[id] = p->made[of];
    p->pinned[id] = p->pinned[of];
    p->steps[open->id] = p->steps[sum->id];
}

bool etch_joint_pass_over(etch_placer *p, const etch_op *op)
{
    if (!etch_joint_is_open(p, op))
        return false;
    if (op->forward) /* of what is recomputed only the layout may be asked for */
        show_as(p, op, op->forward);
    return true;
}

void etch_joint_close(etch_placer *p, const etch_op *sum)
{
    for (uint32_t i = 0; i < sum->in_count && is_sum(sum); i++) {
        const etch_op *inner = open_sum(p, sum->ins[i]);
        for (const etch_op *op = sum->ins[i]->producer; inner; op = op->ins[0]->producer) {
            show_as(p, op, sum);
            if (op == inner)
                break;
        }
        if (inner)
            etch_joint_close(p, inner);
    }
}

/* ---- finding what should have waited ------------------------------------------------------------------- */

/* From a term of a sum on, under whatever names, to the sum that it is. */
static void open_from(etch_placer *p, const etch_op *term, const etch_op *inner)
{
    for (; term != inner; term = term->ins[0]->producer)
        note(p, term, IS_OPEN);
    note(p, inner, IS_OPEN);
}

static uint32_t follow(etch_placer *p, const etch_value *term, uint32_t axes, uint32_t *room);

/* The same of a term that is a sum, of whose terms some are partial: it leaves them to the sum that reads it,
 * which has room for so many more. `first`: the op that forwards it. */
static uint32_t follow_sum(etch_placer *p, const etch_op *first, const etch_step *step, uint32_t axes,
                           uint32_t *room)
{
    const etch_op *inner = step->outs[0]->tensor->producer;
    const uint32_t more = open_terms(p, inner, false, NULL, 0) - 1;
    uint32_t reduced = 0;
    if (more > *room)
        return 0;
    *room -= more;
    if (axes)
        open_from(p, first->id == inner->id ? inner : first, inner);
    for (uint32_t i = 0; i < step->in_count; i++) {
        uint32_t left = *room; /* when nothing is noted, that of all terms, which bounds what is looked at */
        const uint32_t now = reduced_by(p, step->ins[i], inner);
        const uint32_t before = follow(p, step->ins[i], 0, axes ? &left : room);
        reduced |= now | before;
        if (axes & before)
            follow(p, step->ins[i], axes & before, room);
    }
    return reduced;
}

/* The axes over which a term of a sum would be partial, had what is linear waited, one op after the other.
 * Those of `axes` are noted of these ops. Goes as deep as sums are terms of sums that have room for them. */
static uint32_t follow(etch_placer *p, const etch_value *term, uint32_t axes, uint32_t *room)
{
    const etch_op *first = NULL;
    for (bool is_direct = true;;) {
        while (term->step && term->step->collective == ETCH_SLICE) /* which its reader has asked for */
            term = etch_value_before(term);
        const etch_step *step = term->step;
        const etch_op *op = step ? step->op : NULL;
        if (!step || step->collective != ETCH_NO_COLLECTIVE || !p->uses[op->outs[0]->id].only)
            return 0;
        first = first ? first : op;
        is_direct = is_direct && (is_sum(op) || op->row->use == ETCH_USE_COPY) && is_bare(p, op);
        if (is_sum(op) && is_direct)
            return follow_sum(p, first, step, axes, room);
        const uint32_t k = linear_operand(p, op);
        if (k == UINT32_MAX)
            return 0;
        const uint32_t reduced = reduced_by(p, step->ins[k], op);
        if (axes && (reduced || !is_direct))
            note(p, op, axes);
        if (reduced)
            return reduced;
        term = step->ins[k];
    }
}

/* Are they held alike but for these axes? */
static bool is_alike(const etch_placer *p, const etch_value *a, const etch_value *b, uint32_t axes)
{
    for (uint32_t i = 0; i < p->axis_count; i++)
        if (!(axes >> i & 1) && a->place[i] != b->place[i])
            return false;
    return true;
}

void etch_joint_find(etch_placer *p, const etch_op *sum, etch_value *const *terms)
{
    if (!is_sum(sum) || sum->phase != ETCH_FORWARD || p->is_last_walk)
        return;
    const uint32_t free = ETCH_MAX_OPERANDS - sum->in_count;
    uint32_t held[ETCH_MAX_OPERANDS], would[ETCH_MAX_OPERANDS], room = free;
    for (uint32_t i = 0; i < sum->in_count; i++) {
        uint32_t left = free;
        held[i] = etch_axes_held(p->plan, terms[i]->place, ETCH_PARTIAL);
        would[i] = held[i] | follow(p, terms[i], 0, &left);
        for (uint32_t k = 0; k < i; k++) {
            const uint32_t both = would[i] & would[k];
            if (!both || !is_alike(p, terms[i], terms[k], both))
                continue;
            if (both & ~held[i])
                follow(p, terms[i], both & ~held[i], &room);
            if (both & ~held[k])
                follow(p, terms[k], both & ~held[k], &room);
        }
    }
}

/* ---- backward ------------------------------------------------------------------------------------------ */

static bool is_partial(const etch_placer *p, const etch_tensor *term, uint32_t axis)
{
    const etch_op *inner = open_sum(p, term);
    bool any = false;
    for (uint32_t i = 0; inner && i < inner->in_count; i++)
        any = any || is_partial(p, inner->ins[i], axis);
    const etch_value *made = p->made[term->id];
    return inner ? any : made && made->place[axis] == ETCH_PARTIAL;
}

/* The cotangent of a term that is taken away is minus that of the others. Where it and another one are
 * needed whole, it is made of what is gathered for all. */
static bool is_made_whole(const etch_placer *p, const etch_op *op, uint32_t axis)
{
    const etch_tensor *term = op->outs[0]->of;
    uint32_t partial = 0;
    if (op->phase != ETCH_BACKWARD || !is_sum(op->forward) || op->row->linear != ETCH_LINEAR_EACH || !term ||
        !etch_dims_same(etch_dims_of(op->outs[0]), etch_dims_of(op->ins[0])))
        return false;
    for (uint32_t i = 0; i < op->forward->in_count; i++)
        partial += is_partial(p, op->forward->ins[i], axis);
    return partial > 1 && is_partial(p, etch_origin(term), axis);
}

uint32_t etch_joint_waits(const etch_placer *p, const etch_op *op)
{
    uint32_t axes = 0;
    if (!op->forward)
        return op->id < p->joint_count ? p->joint[op->id] : 0;
    for (uint32_t a = 0; a < p->axis_count; a++)
        axes |= (uint32_t)is_made_whole(p, op, a) << a;
    return axes;
}
