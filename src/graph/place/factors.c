/* Factors of one op (R2, R4): which dims the axes divide its work along, and how results are held then. */
#include "graph/place/place_int.h"

#include <string.h>

static bool can_divide(const etch_op *op, etch_state state)
{
    return etch_is_sharded(state) && etch_op_has_dim(op, state) &&
           etch_op_factor(op, state) != ETCH_FACTOR_WHOLE;
}

/* How a result is held over an axis of which each rank has its part of the work; so held an operand may go
 * through. */
static etch_state partial_by(const etch_op *op)
{
    return op->row->reduction == ETCH_REDUCTION_MAX ? ETCH_PARTIAL_MAX : ETCH_PARTIAL;
}

static uint32_t count_held(const etch_placing *pl, uint32_t axis, etch_state state)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < pl->op->in_count; i++)
        count += pl->ins[i]->place[axis] == state;
    return count;
}

static uint32_t count_partial(const etch_placing *pl, uint32_t axis)
{
    return count_held(pl, axis, ETCH_PARTIAL) + count_held(pl, axis, ETCH_PARTIAL_MAX);
}

static bool any_sharded(const etch_placing *pl, uint32_t axis)
{
    for (uint32_t i = 0; i < pl->op->in_count; i++)
        if (etch_is_sharded(pl->ins[i]->place[axis]))
            return true;
    return false;
}

/* A weight, under whatever name and dims. */
static bool is_weight(const etch_op *op, uint32_t operand)
{
    return etch_route_root(op->ins[operand])->kind == ETCH_WEIGHT;
}

static etch_state factor_of_operands(const etch_placing *pl, uint32_t axis, bool weights)
{
    for (uint32_t i = 0; i < pl->op->in_count; i++) {
        if (is_weight(pl->op, i) == weights && can_divide(pl->op, pl->ins[i]->place[axis]))
            return pl->ins[i]->place[axis];
    }
    return NULL;
}

static etch_state factor_of_request(const etch_placer *p, const etch_placing *pl, uint32_t axis)
{
    const etch_requested_layout *requested = &p->requests[pl->op->outs[0]->id];
    etch_state dim = requested->known ? requested->place[axis] : NULL;
    uint32_t partial = count_partial(pl, axis);
    if (!can_divide(pl->op, dim) || etch_op_factor(pl->op, dim) != ETCH_FACTOR_PASS ||
        !etch_op_is_even(pl->op, dim))
        return NULL;
    if (pl->op->row->linear == ETCH_LINEAR_JOINT &&
        count_held(pl, axis, partial_by(pl->op)) == pl->op->in_count)
        return NULL; /* a sum of partial sums stays one */
    return partial || !any_sharded(pl, axis) ? dim : NULL;
}

static etch_state *route_of(etch_placer *p, const etch_tensor *indices)
{
    const etch_tensor *root = etch_route_root(indices);
    for (uint32_t i = 0; i < p->routes.count; i++)
        if (p->routes.at[i].indices == root)
            return p->routes.at[i].tokens;
    ETCH_PUSH(p->arena, &p->routes, (etch_token_route){.indices = root});
    return p->routes.at[p->routes.count - 1].tokens;
}

/* A rank's slots are those of its tokens, in all ops that route alike: where one of them is divided along a
 * token dim, so are the others. */
static etch_state factor_of_route(etch_placer *p, const etch_op *op, uint32_t axis, etch_state state)
{
    if (!state || !op->row->links)
        return state;
    etch_state *token = &route_of(p, op->ins[op->row->lead])[axis];
    bool of_tokens = etch_op_dim_linked(op, state) != state;
    bool of_slots = etch_dim_among(op->attrs.to, state);
    if (of_tokens && !*token)
        *token = state;
    return (of_tokens || of_slots) && can_divide(op, *token) ? *token : state;
}

/* Does the operand have `dim`, under either of its names where the op maps dims (the gradient of a slice)? */
static bool operand_has(const etch_op *op, const etch_tensor *operand, const etch_dim *dim)
{
    return etch_has_dim(operand, dim) || etch_has_dim(operand, etch_op_dim_before(op, dim)) ||
           etch_has_dim(operand, etch_op_dim_after(op, dim));
}

bool etch_has_result_dims(const etch_op *op, const etch_tensor *operand)
{
    for (uint32_t d = 0; d < op->outs[0]->rank; d++)
        if (!operand_has(op, operand, op->outs[0]->dims[d]))
            return false;
    return true;
}

bool etch_passes_alone(const etch_op *op, uint32_t operand)
{
    return op->row->linear == ETCH_LINEAR_EACH || (op->row->linear == ETCH_LINEAR_FIRST && operand == 0);
}

/* Is the only partial operand summed down, with nothing but what is smaller? Then its summands are added
 * after the op, in a smaller tensor: rows of tables when they are pooled. */
static bool sums_later(const etch_placing *pl, uint32_t axis)
{
    const etch_op *op = pl->op;
    const etch_tensor *sum = NULL;
    for (uint32_t i = 0; i < op->in_count; i++)
        if (pl->ins[i]->place[axis] == partial_by(op) && etch_passes_alone(op, i))
            sum = op->ins[i];
    if (!sum || count_partial(pl, axis) != 1 || op->outs[0]->rank >= sum->rank ||
        !etch_has_result_dims(op, sum))
        return false;
    for (uint32_t i = 0; i < op->in_count; i++)
        if (op->ins[i] != sum && (op->ins[i]->rank >= sum->rank || !etch_covers(sum, op->ins[i]) ||
                                  (is_weight(op, i) && pl->ins[i]->place[axis])))
            return false;
    return true;
}

static etch_state choose_factor(etch_placer *p, const etch_placing *pl, uint32_t axis)
{
    const etch_op *op = pl->op;
    if ((pl->excluded | pl->waits) & (1u << axis))
        return NULL;
    if (op->forward) {
        etch_state state = p->steps[op->forward->id]->factor[axis];
        return can_divide(op, state) ? state : NULL;
    }
    if (sums_later(pl, axis))
        return NULL;
    etch_state lead = op->row->lead ? pl->ins[op->row->lead]->place[axis] : NULL;
    etch_state state = can_divide(op, lead) ? lead : factor_of_operands(pl, axis, true);
    if (!state)
        state = factor_of_operands(pl, axis, false);
    return factor_of_route(p, op, axis, state ? state : factor_of_request(p, pl, axis));
}

uint32_t etch_passing_on(const etch_placer *p, const etch_tensor *tensor)
{
    const bool is_cotangent = tensor->producer && tensor->producer->phase == ETCH_BACKWARD;
    return is_cotangent ? p->passes[tensor->id] : 0;
}

/* Which partial operands of this axis go through the op, as bits: all of them, or one. Of several the last
 * one that backward does not ask for, too: the others are needed whole, this one nowhere. */
static uint32_t passing_partials(const etch_placer *p, const etch_placing *pl, uint32_t axis)
{
    const etch_op *op = pl->op;
    const etch_state kind = partial_by(op);
    const uint32_t partial = count_held(pl, axis, kind);
    if (op->row->linear == ETCH_LINEAR_JOINT)
        return partial == op->in_count ? UINT32_MAX : 0;
    uint32_t passing = 0;
    for (uint32_t i = 0; i < op->in_count; i++)
        if (etch_passes_alone(op, i) && pl->ins[i]->place[axis] == kind &&
            (etch_has_result_dims(op, op->ins[i]) || etch_passing_on(p, op->ins[i]) >> axis & 1) &&
            ((partial == 1 && kind == ETCH_PARTIAL) || !p->uses[op->ins[i]->id].read_back))
            passing = 1u << i;
    return passing;
}

/* A result that is made of some operands only (the statistic of an attention: queries and keys) is left whole
 * by a dim that they lack. */
static bool is_untouched(const etch_op *op, uint32_t result, const etch_dim *dim)
{
    if (result == 0 || !op->row->extra_reads)
        return false;
    for (uint32_t slot = 0; slot < 32; slot++) {
        uint32_t i = op->row->extra_reads & (1u << slot) ? etch_op_index(op, slot) : UINT32_MAX;
        if (i != UINT32_MAX && etch_has_dim(op->ins[i], dim))
            return false;
    }
    return true;
}

/* How a tensor is held where the op divides its work along `f`; `otherwise` when it has no part in that. */
static etch_state state_under(const etch_op *op, const etch_tensor *tensor, etch_state f,
                              etch_state otherwise)
{
    if (etch_has_dim(tensor, f))
        return f;
    const etch_dim *linked = etch_op_dim_linked(op, f);
    return etch_has_dim(tensor, linked) ? linked : otherwise;
}

/* How a tensor is held of which a rank has one block after the other. */
static etch_state state_of_block(const etch_tensor *tensor, etch_state round)
{
    return round && etch_has_dim(tensor, round) ? round : NULL;
}

static void place_axis(etch_placer *p, etch_placing *pl, uint32_t axis)
{
    const etch_op *op = pl->op;
    etch_state f = choose_factor(p, pl, axis), round = etch_ring_dim(p, pl, axis, f);
    pl->factor[axis] = f;
    pl->ring = (pl->ring & ~(1u << axis)) | (uint32_t)(round != NULL) << axis;
    const uint32_t passing = !f && count_partial(pl, axis) ? passing_partials(p, pl, axis) : 0;
    if (passing) {
        for (uint32_t i = 0; i < op->in_count; i++)
            pl->need[i][axis] =
                op->row->linear == ETCH_LINEAR_JOINT || passing & (1u << i) ? partial_by(op) : NULL;
        for (uint32_t i = 0; i < op->out_count; i++)
            pl->result[i][axis] = partial_by(op);
        return;
    }
    for (uint32_t i = 0; i < op->in_count; i++)
        pl->need[i][axis] = f ? state_under(op, op->ins[i], f, state_of_block(op->ins[i], round)) : NULL;
    if (!f)
        return;
    bool stat = etch_op_factor(op, f) == ETCH_FACTOR_STAT;
    if (stat)
        pl->stat_axes |= 1u << axis;
    for (uint32_t i = 0; i < op->out_count; i++) {
        bool whole = stat || is_untouched(op, i, f);
        const etch_state block = state_of_block(op->outs[i], round);
        pl->result[i][axis] = state_under(op, op->outs[i], f, whole ? NULL : block ? block : partial_by(op));
    }
}

/* The axis divides nothing after all. */
static void exclude(etch_placer *p, etch_placing *pl, uint32_t axis)
{
    pl->excluded |= 1u << axis;
    pl->stat_axes &= ~(1u << axis);
    for (uint32_t i = 0; i < pl->op->out_count; i++)
        pl->result[i][axis] = NULL;
    place_axis(p, pl, axis);
}

/* Axes that divide one token dim take the slots apart together, outer ones first, and a shard of slots is to
 * mean the same in all ops that route alike. So one may join only inside those of ops before, and one may go
 * only with those inside it. `before`: the token dims of the ops before. */
static bool takes_others_apart(const etch_placer *p, const etch_placing *pl, const etch_state *before,
                               uint32_t axis)
{
    const etch_state token = pl->factor[axis];
    for (uint32_t a = 0; a < p->axis_count; a++)
        if (a != axis && before[a] == token &&
            (etch_map_is_inside(p->placed, token, axis, a) ? pl->factor[a] : before[axis]) != token)
            return true;
    return false;
}

static void keep_slots(etch_placer *p, etch_placing *pl)
{
    etch_state before[ETCH_MAX_AXES];
    etch_state *tokens = route_of(p, pl->op->ins[pl->op->row->lead]);
    memcpy(before, tokens, sizeof before);
    for (uint32_t a = 0; a < p->axis_count; a++)
        place_axis(p, pl, a);
    for (uint32_t a = 0; a < p->axis_count; a++) {
        bool of_tokens = pl->factor[a] && etch_op_dim_linked(pl->op, pl->factor[a]) != pl->factor[a];
        if (!of_tokens || pl->op->forward || !takes_others_apart(p, pl, before, a))
            continue;
        tokens[a] = before[a];
        exclude(p, pl, a);
        a = UINT32_MAX; /* those inside it go, too */
    }
}

/* An axis inside one that an operand has to be gathered over is gathered, too, in the same collective, and
 * divides no work: tokens on (tp,g) that are needed whole on tp alone. */
static uint32_t non_innermost(const etch_placer *p, const etch_placing *pl)
{
    uint32_t axes = 0;
    for (uint32_t i = 0; i < pl->op->in_count; i++)
        axes |= etch_reshard_non_innermost(p, pl->ins[i], pl->need[i]);
    return axes;
}

static bool is_divided(const etch_placing *pl, uint32_t axis, etch_state dim)
{
    for (uint32_t i = 0; i < pl->op->in_count; i++)
        if (pl->ins[i]->place[axis] == dim)
            return true;
    return false;
}

/* An axis does not divide work because the result is wanted divided, where one outside of it joins the dim
 * later: the result is cut after that one. */
static uint32_t deferred(const etch_placer *p, const etch_placing *pl)
{
    const etch_requested_layout *requested = &p->requests[pl->op->outs[0]->id];
    uint32_t axes = 0;
    for (uint32_t b = 0; requested->known && !pl->op->forward && b < p->axis_count; b++) {
        const etch_state dim = pl->factor[b];
        if (!dim || dim->packed_from.count || pl->result[0][b] != dim || requested->place[b] != dim ||
            is_divided(pl, b, dim))
            continue;
        for (uint32_t a = 0; a < p->axis_count; a++)
            if (a != b && requested->place[a] == dim && pl->result[0][a] != dim &&
                etch_map_is_inside(p->placed, dim, b, a))
                axes |= 1u << b;
    }
    return axes;
}

void etch_factors_choose(etch_placer *p, etch_placing *pl)
{
    uint32_t axes;
    for (uint32_t a = 0; a < p->axis_count && !pl->op->row->links; a++)
        place_axis(p, pl, a);
    if (pl->op->row->links)
        keep_slots(p, pl);
    while ((axes = (non_innermost(p, pl) | deferred(p, pl)) & ~pl->excluded) != 0) {
        for (uint32_t a = 0; a < p->axis_count; a++)
            if (axes & (1u << a))
                exclude(p, pl, a);
    }
}
