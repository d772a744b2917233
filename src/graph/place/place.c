/* Placement: a plan applied to a training graph, op by op, axis by axis.
 *
 * requires: a training graph and a plan whose axes are indices into its mesh. provides: placed regions with
 * every collective, kernels, buckets, updates, requirements.
 *
 * The rules (R1-R9) are told in docs/placement.md. In short: the plan's maps place weights, inputs and what
 * pins name; every other placement follows from the op's row, factor by factor; where a value is not as its
 * consumer needs it, the difference is a collective. */
#include <string.h>

#include "graph/place/place_int.h"

enum {
    ALL_AXES = (1 << ETCH_MAX_AXES) - 1,
    /* of sums whose terms are sums that wait themselves, one walk for each; further ones do not wait */
    MOST_WALKS = 8
};

static void place_region(etch_placer *p, etch_placed_region *into);

/* ---- which version of a value an op reads ----------------------------------------------------------- */

/* Consumers see a pinned value as the pin holds it; later passes see a partial result as forward resolved
 * it. */
static etch_value *value_for(const etch_placer *p, const etch_tensor *tensor)
{
    uint32_t id = tensor->id;
    if (p->pinned[id])
        return p->pinned[id];
    const bool again =
        p->phase == ETCH_RECOMPUTE && tensor->producer && tensor->producer->phase == ETCH_FORWARD;
    if ((p->phase == ETCH_BACKWARD || again) && p->resolved[id])
        return p->resolved[id];
    return p->made[id];
}

static uint32_t partial_axes(const etch_placer *p, const etch_value *value)
{
    return etch_axes_partial(p->plan, value->place);
}

static uint32_t summed_axes(const etch_placer *p, const etch_value *value)
{
    return etch_axes_held(p->plan, value->place, ETCH_PARTIAL);
}

/* Is the walk where the tensor is made, and not deeper in a loop? */
static bool is_at_position(const etch_placer *p, const etch_tensor *tensor)
{
    const etch_region *position = tensor->region, *here = p->region->of;
    return position && position->loop == here->loop && position->index == here->index;
}

static etch_value *reshard_over(etch_placer *p, etch_value *value, const etch_state *need, uint32_t mask,
                                etch_provenance provenance)
{
    etch_value *moved = etch_reshard_value(p, value, need, mask, provenance);
    uint32_t id = value->tensor->id;
    bool resolves = moved != value && partial_axes(p, value) && !partial_axes(p, moved);
    if (p->phase != ETCH_BACKWARD && resolves && !p->resolved[id] && is_at_position(p, value->tensor))
        p->resolved[id] = moved;
    return moved;
}

static etch_value *reshard(etch_placer *p, etch_value *value, const etch_state *need,
                           etch_provenance provenance)
{
    return reshard_over(p, value, need, ALL_AXES, provenance);
}

/* ---- one op ----------------------------------------------------------------------------------------- */

static void reshard_operands(etch_placer *p, etch_placing *pl)
{
    const etch_provenance provenance = {ETCH_RULE_OPERAND, .op = pl->op};
    for (uint32_t i = 0; i < pl->op->in_count; i++)
        pl->ins[i] = reshard(p, pl->ins[i], pl->need[i], provenance);
}

/* A gradient goes to where its weight is; over axes that replicate the weight it may stay partial, to be
 * reduced once per step (R9). */
static etch_value *reshard_to_gradient(etch_placer *p, etch_value *summand, const etch_tensor *gradient)
{
    const etch_value *weight = p->placed->weight_of[gradient->of->id];
    etch_state need[ETCH_MAX_AXES];
    for (uint32_t a = 0; a < p->axis_count; a++) {
        bool partial = !weight->place[a] && summand->place[a] == ETCH_PARTIAL;
        need[a] = partial ? ETCH_PARTIAL : weight->place[a];
        if (partial)
            p->placed->sync_axes[gradient->of->id] |= 1u << a;
    }
    return reshard(p, summand, need, (etch_provenance){ETCH_RULE_WEIGHT, .tensor = gradient});
}

/* The step adds its result into the gradient itself, unless that has to move first. */
static void add_to_gradient(etch_placer *p, etch_step *step, uint32_t output)
{
    etch_value *summand = step->outs[output];
    etch_tensor *gradient = summand->tensor->adds_to;
    etch_value *moved = reshard_to_gradient(p, summand, gradient);
    if (moved == summand) {
        step->accumulate_into[output] = gradient;
        return;
    }
    etch_op *op = etch_op_new(p->graph, etch_row_for(p->graph, ETCH_USE_ACCUMULATION), &summand->tensor, 1, 1,
                              NULL, ETCH_BACKWARD, step->op->span);
    op->scope = step->scope;
    op->outs[0] = summand->tensor;
    op->runs = summand->made;
    etch_step *add = etch_step_alike(p, op, &moved, 1, summand->tensor, moved->place);
    add->accumulate_into[0] = gradient;
}

/* Results go to where their pin or their loop holds them (R1, R7). */
static void hold_result(etch_placer *p, const etch_op *op, etch_tensor *tensor)
{
    if (op->phase == ETCH_BACKWARD)
        return;
    etch_state place[ETCH_MAX_AXES] = {NULL};
    etch_provenance provenance = {ETCH_RULE_PIN, .tensor = tensor};
    if (etch_map_pin(p, tensor, place)) {
        provenance.line = etch_place_pin(p->placed, tensor);
    } else {
        const etch_loop_carried value = etch_request_carried_at_end(tensor);
        const etch_boundary left = etch_boundary_of_result(&p->plan_regions, tensor);
        if (!value.loop && !tensor->wanted && !(left.axes && p->uses[tensor->id].is_read))
            return;
        provenance.rule = value.loop ? ETCH_RULE_LOOP : ETCH_RULE_RESULT;
        provenance.loop = value.loop;
        if (value.loop) {
            etch_request_carried(p, value, place);
        } else if (tensor->wanted) {
            for (uint32_t a = 0; a < p->axis_count; a++)
                place[a] = etch_without_partial(p->made[tensor->id]->place[a]);
        } else {
            etch_map_boundary(p, &left, tensor, p->made[tensor->id]->place, place);
            provenance = etch_boundary_provenance(&left, op, tensor);
        }
    }
    etch_value *moved = reshard(p, p->made[tensor->id], place, provenance);
    if (moved != p->made[tensor->id])
        p->pinned[tensor->id] = moved;
}

/* Statistics over a sharded dim are reduced after the op has made its part. */
static void reduce_statistics(etch_placer *p, const etch_op *op, uint32_t axes)
{
    const etch_tensor *stat = op->outs[op->out_count - 1];
    const etch_provenance provenance = {ETCH_RULE_STATISTIC, .op = op, .tensor = stat};
    for (uint32_t i = 0; axes && i < op->row->stat_reductions; i++)
        p->made[stat->id] = etch_reshard_reduce(p, p->made[stat->id], axes, provenance);
}

static void refuse_shared_window(etch_placer *p, const etch_placing *pl, const etch_dim *query, uint32_t axes)
{
    if (etch_group_size(p->placed, axes) == etch_int(p->sym, 1))
        return;
    etch_diag *diag =
        etch_place_error(p, ETCH_E_PLAN_LATER, p->plan->span,
                         "ranks that share the queries %s of an attention with a window would not do "
                         "equal parts of it, which is not given meaning yet",
                         query->name);
    etch_help(diag, "balance = false in the plan gives them contiguous parts, of unequal work");
    etch_note(diag, pl->op->span, "this attention");
    etch_help(
        diag,
        "shard its heads or the batch instead, or gather %s in the module: for MODULE { shard %s @ () }",
        query->name, query->name);
}

/* The axes that divide work which grows along a dim: that of a causal attention along its queries. */
static uint32_t causal_axes(const etch_placer *p, const etch_placing *pl, const etch_dim **query)
{
    const etch_division division = etch_op_division(pl->op);
    *query = division.grows ? division.queries : NULL;
    return *query ? etch_axes_held(p->plan, pl->factor, *query) : 0;
}

/* Causal work grows along the queries. Ranks that share them hold an early and a late chunk each, so that all
 * do the same: the queries must be divisible into that many chunks. */
static void balance_causal(etch_placer *p, const etch_placing *pl)
{
    const etch_dim *query;
    const uint32_t axes = causal_axes(p, pl, &query);
    if (pl->op->phase != ETCH_FORWARD || p->plan->contiguous)
        return;
    if (axes && !etch_op_is_even(pl->op, query))
        refuse_shared_window(p, pl, query, axes);
    else if (axes)
        etch_map_require_pairs(p, query, axes);
}

static void finish_op(etch_placer *p, etch_placing *pl)
{
    etch_op *op = pl->op;
    etch_step *step = etch_step_new(p, op, op->row, op->in_count, op->out_count);
    for (uint32_t i = 0; i < op->in_count; i++)
        step->ins[i] = pl->ins[i];
    memcpy(step->factor, pl->factor, p->axis_count * sizeof *step->factor);
    const etch_dim *query;
    const uint32_t shared = p->plan->contiguous ? causal_axes(p, pl, &query) : 0;
    if (shared)
        step->work_share = etch_work_share_index(p, query, shared);
    step->ring = pl->ring;
    p->steps[op->id] = step;
    for (uint32_t i = 0; i < op->out_count; i++)
        p->made[op->outs[i]->id] = etch_step_result(p, step, i, op->outs[i], pl->result[i]);
    etch_ring_return(p, step);
    for (uint32_t i = 0; i < op->out_count; i++)
        if (op->outs[i]->adds_to)
            add_to_gradient(p, step, i);
}

/* A dim that is the inner one of a group to be merged has no shards in the merged dim: it is made whole. */
static void gather_inner(etch_placer *p, etch_placing *pl)
{
    const etch_op *op = pl->op;
    etch_state place[ETCH_MAX_AXES] = {NULL};
    for (uint32_t a = 0; a < p->axis_count; a++) {
        etch_state state = pl->ins[0]->place[a];
        place[a] = etch_op_dim_after(op, state) ? state : NULL;
    }
    pl->ins[0] = reshard(p, pl->ins[0], place, (etch_provenance){ETCH_RULE_MERGE, .op = op});
}

/* Values that come into regions that the plan has scopes for, or leave a call, go to where their maps have
 * it. An argument or a result that nothing reads stays where it is. */
static void cross_parts(etch_placer *p, etch_placing *pl)
{
    const etch_op *op = pl->op;
    if (op->edge && !p->uses[op->outs[0]->id].is_read)
        return;
    for (uint32_t i = 0; i < op->in_count && op->phase != ETCH_BACKWARD; i++) {
        const etch_boundary boundary = etch_boundary_of_operand(&p->plan_regions, op, op->ins[i]);
        if (!boundary.axes)
            continue;
        etch_state place[ETCH_MAX_AXES];
        etch_map_boundary(p, &boundary, op->ins[i], pl->ins[i]->place, place);
        const etch_tensor *crossing = op->edge ? op->outs[0] : op->ins[i];
        pl->ins[i] = reshard(p, pl->ins[i], place, etch_boundary_provenance(&boundary, op, crossing));
    }
}

/* What is partial is resolved before it goes to another unit of the stages: where the result is wanted, if it
 * is made of it element by element. */
static void cross_units(etch_placer *p, etch_placing *pl)
{
    const etch_op *op = pl->op;
    const etch_requested_layout *requested = &p->requests[op->outs[0]->id];
    for (uint32_t i = 0; i < op->in_count && op->phase != ETCH_BACKWARD; i++) {
        const uint32_t partial = partial_axes(p, pl->ins[i]);
        if (!partial || !etch_units_cross(p, op->ins[i], op->outs[0]))
            continue;
        etch_state goal[ETCH_MAX_AXES] = {NULL};
        for (uint32_t a = 0; requested->known && etch_op_is_elementwise(op) && a < p->axis_count; a++)
            if (etch_is_sharded(requested->place[a]) && etch_has_dim(op->ins[i], requested->place[a]))
                goal[a] = requested->place[a];
        pl->ins[i] =
            reshard_over(p, pl->ins[i], goal, partial, (etch_provenance){ETCH_RULE_OPERAND, .op = op});
    }
}

/* Renames and identities hold what they are given. */
static void place_view(etch_placer *p, etch_placing *pl)
{
    etch_op *op = pl->op;
    gather_inner(p, pl);
    for (uint32_t a = 0; a < p->axis_count; a++) {
        etch_state state = etch_op_dim_after(op, pl->ins[0]->place[a]);
        pl->result[0][a] = state;
        pl->factor[a] = etch_without_partial(state);
    }
}

/* ---- sums ------------------------------------------------------------------------------------------- */

static etch_expr *made_of(const etch_placer *p, etch_value *const *terms, uint32_t count)
{
    etch_expr *made = ETCH_NEW_ARRAY(p->arena, count, etch_expr);
    for (uint32_t i = 0; i < count; i++)
        made[i] = terms[i]->made;
    return made;
}

etch_expr etch_place_additions(const etch_placer *p, etch_value *const *terms, uint32_t count)
{
    return etch_additions(p->sym, made_of(p, terms, count), count);
}

static etch_expr any_made(const etch_placer *p, etch_value *const *terms, uint32_t count)
{
    return etch_any_made(p->sym, made_of(p, terms, count), count);
}

etch_value *etch_place_sum(etch_placer *p, const etch_op *op, etch_value **summands, uint32_t count,
                           uint32_t taken)
{
    if (count == 1)
        return summands[0];
    etch_tensor **tensors = ETCH_NEW_ARRAY(p->arena, count, etch_tensor *);
    for (uint32_t i = 0; i < count; i++)
        tensors[i] = summands[i]->tensor;
    etch_op *sum = etch_op_new(p->graph, op->row, tensors, count, 1, NULL, op->phase, op->span);
    sum->scope = op->scope;
    sum->attrs.taken = taken;
    sum->outs[0] = op->outs[0];
    sum->runs = etch_place_additions(p, summands, count);
    etch_value *made = etch_step_alike(p, sum, summands, count, op->outs[0], summands[0]->place)->outs[0];
    made->made = any_made(p, summands, count);
    return made;
}

/* Adds all values of `summands` that are held alike; returns how many are left. */
static uint32_t add_alike(etch_placer *p, etch_op *op, etch_value **summands, uint32_t count)
{
    etch_value **alike = ETCH_NEW_ARRAY(p->arena, count, etch_value *);
    uint32_t left = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (!summands[i])
            continue;
        uint32_t n = 0;
        const etch_value *like = summands[i];
        for (uint32_t k = i; k < count; k++)
            if (summands[k] && etch_place_equal(p, summands[k]->place, like->place)) {
                alike[n++] = summands[k];
                summands[k] = NULL;
            }
        summands[left++] = etch_place_sum(p, op, alike, n, 0);
    }
    return left;
}

/* Takes those terms out of the sum that are partial and held as term `first` is, and gives their sum. */
static etch_value *add_alike_terms(etch_placer *p, etch_op *op, etch_value **terms, uint32_t first)
{
    etch_value **alike = ETCH_NEW_ARRAY(p->arena, op->in_count, etch_value *);
    const etch_value *like = terms[first];
    uint32_t count = 0, taken = 0;
    for (uint32_t i = first; i < op->in_count; i++)
        if (terms[i] && etch_place_equal(p, terms[i]->place, like->place)) {
            taken |= (op->attrs.taken >> i & 1u) << count;
            alike[count++] = terms[i];
            terms[i] = NULL;
        }
    return etch_place_sum(p, op, alike, count, taken);
}

/* Of a sum of several terms, of which some are partial: those that are held alike are added before they are
 * moved, and are moved once. The rest is what the op adds. */
static void add_partial_terms(etch_placer *p, etch_placing *pl)
{
    etch_op *op = pl->op;
    uint32_t partial = 0;
    for (uint32_t i = 0; i < op->in_count; i++)
        partial += summed_axes(p, pl->ins[i]) != 0;
    if (op->row->use != ETCH_USE_SUM || partial < 2 || partial == op->in_count)
        return;
    etch_op *rest = ETCH_NEW(p->arena, etch_op);
    *rest = *op;
    rest->in_count = rest->attrs.taken = 0;
    rest->ins = ETCH_NEW_ARRAY(p->arena, op->in_count, etch_tensor *);
    for (uint32_t i = 0; i < op->in_count; i++) {
        if (!pl->ins[i])
            continue;
        const bool whole = !summed_axes(p, pl->ins[i]);
        etch_value *term = whole ? pl->ins[i] : add_alike_terms(p, op, pl->ins, i);
        const bool is_taken = op->attrs.taken >> i & 1u && (whole || term->tensor != op->outs[0]);
        rest->attrs.taken |= (uint32_t)is_taken << rest->in_count;
        rest->ins[rest->in_count] = term->tensor;
        pl->ins[rest->in_count++] = term;
    }
    pl->op = rest;
}

/* Room for the operands and results of an op, all of it zero. */
static void make_room(etch_placer *p, etch_placing *pl, uint32_t outs)
{
    etch_placing_room *room = &p->room;
    const uint32_t ins = pl->op->in_count;
    if (ins > room->ins) {
        room->ins = ins;
        room->operands = ETCH_NEW_ARRAY(p->arena, ins, etch_value *);
        room->need = etch_alloc_array(p->arena, ins, sizeof *room->need);
    }
    if (outs > room->outs) {
        room->outs = outs;
        room->result = etch_alloc_array(p->arena, outs, sizeof *room->result);
    }
    pl->ins = room->operands;
    pl->need = room->need;
    pl->result = room->result;
    memset(pl->need, 0, ins * sizeof *pl->need);
    memset(pl->result, 0, outs * sizeof *pl->result);
}

static void place_op(etch_placer *p, etch_op *op)
{
    etch_placing pl = {.op = etch_joint_opened(p, op), .waits = etch_joint_waits(p, op)};
    make_room(p, &pl, op->out_count);
    for (uint32_t i = 0; i < pl.op->in_count; i++)
        pl.ins[i] = value_for(p, pl.op->ins[i]);
    if (op->row->use == ETCH_USE_ACCUMULATION) /* moved before it is added, not added up twice */
        pl.ins[0] = reshard_to_gradient(p, pl.ins[0], op->outs[0]->adds_to);
    cross_parts(p, &pl);
    cross_units(p, &pl);
    etch_joint_find(p, pl.op, pl.ins);
    add_partial_terms(p, &pl);
    if (etch_op_is_view(op)) {
        place_view(p, &pl);
    } else {
        etch_factors_choose(p, &pl);
        reshard_operands(p, &pl);
        balance_causal(p, &pl);
        etch_ring_rotate(p, &pl);
    }
    if (pl.op != op) /* what was moved is a part of the sum */
        p->resolved[op->outs[0]->id] = NULL;
    finish_op(p, &pl);
    reduce_statistics(p, op, pl.stat_axes);
    for (uint32_t i = 0; i < (etch_row_is_several(op->row) ? op->out_count : 1); i++)
        hold_result(p, op, op->outs[i]);
    etch_joint_close(p, op);
}

/* ---- cotangents (R6) -------------------------------------------------------------------------------- */

/* Moves a cotangent to `goal`, except that it may stay partial where `goal` is replicated; on the axes
 * `whole` it may not. */
static etch_value *reshard_cotangent(etch_placer *p, etch_op *op, etch_value *value, const etch_state *goal,
                                     uint32_t whole)
{
    etch_tensor *of = op->outs[0]->of;
    const uint32_t summed = partial_axes(p, p->made[of->id]);
    uint32_t mask = 0, moved = 0;
    for (uint32_t a = 0; a < p->axis_count; a++) {
        if (goal[a] || value->place[a] != ETCH_PARTIAL || whole & (1u << a))
            mask |= 1u << a;
        if (mask >> a & 1 && goal[a] != value->place[a])
            moved |= 1u << a;
    }
    const etch_rule rule = moved & ~summed ? ETCH_RULE_COTANGENT : ETCH_RULE_SUMMAND;
    return reshard_over(p, value, goal, mask, (etch_provenance){rule, .op = op, .tensor = of});
}

/* Two parts that are held differently meet where neither is partial alone. */
static void level(etch_placer *p, etch_op *op, etch_value **a, etch_value **b)
{
    const etch_state none[ETCH_MAX_AXES] = {NULL};
    const uint32_t of_a = partial_axes(p, *a), of_b = partial_axes(p, *b);
    const etch_provenance provenance = {ETCH_RULE_TOTAL, .op = op, .tensor = op->outs[0]->of};
    *a = reshard_over(p, *a, none, of_a & ~of_b, provenance);
    *b = reshard_over(p, *b, none, of_b & ~of_a, provenance);
}

/* The sum of parts that are held differently; what is moved for that goes to `place`. */
static etch_value *meet(etch_placer *p, etch_op *op, etch_value **summands, uint32_t count,
                        const etch_state *place)
{
    for (uint32_t i = 0; i < count; i++)
        summands[i] = reshard_cotangent(p, op, summands[i], place, 0);
    count = add_alike(p, op, summands, count);
    while (count > 1) {
        level(p, op, &summands[0], &summands[count - 1]);
        if (!etch_place_equal(p, summands[0]->place, summands[count - 1]->place))
            break;
        etch_value *pair[] = {summands[0], summands[count - 1]};
        summands[0] = etch_place_sum(p, op, pair, 2, 0);
        count--;
    }
    return summands[0];
}

/* Would a partial cotangent go on to several operands, and be added up for each? A product that sums makes
 * other tensors of it: the gradient of a weight, which is added up once a step, and less or more than it is.
 * */
static bool is_spread(const etch_op *op)
{
    const etch_op *made = etch_origin(op->outs[0])->producer;
    return op->is_shared && made && etch_op_role(made) == ETCH_ROLE_POINTWISE;
}

static void place_total(etch_placer *p, etch_op *op)
{
    const etch_tensor *of = op->outs[0]->of;
    const etch_value *made = p->made[of->id], *seen = p->pinned[of->id] ? p->pinned[of->id] : made;
    etch_state goal[ETCH_MAX_AXES], first[ETCH_MAX_AXES];
    const uint32_t partial = partial_axes(p, made);
    for (uint32_t a = 0; a < p->axis_count; a++) {
        goal[a] = etch_without_partial(made->place[a]);
        first[a] = goal[a] ? goal[a] : etch_without_partial(seen->place[a]);
    }
    etch_value **summands = ETCH_NEW_ARRAY(p->arena, op->in_count, etch_value *);
    for (uint32_t i = 0; i < op->in_count; i++) {
        summands[i] = value_for(p, op->ins[i]);
        if (partial_axes(p, summands[i]) && etch_units_cross(p, op->ins[i], op->outs[0]))
            summands[i] = reshard_cotangent(p, op, summands[i], first, ALL_AXES);
    }
    uint32_t count = add_alike(p, op, summands, op->in_count);
    etch_value *sum = count > 1 ? meet(p, op, summands, count, first) : summands[0];
    const bool leaves = partial_axes(p, sum) && etch_units_cross(p, op->outs[0], etch_origin(of));
    const uint32_t whole =
        leaves ? ALL_AXES : partial | (is_spread(op) ? ALL_AXES & ~etch_passing_on(p, op->outs[0]) : 0);
    const bool stays = etch_is_seen_through(p, of) && !leaves;
    p->made[op->outs[0]->id] = stays ? sum : reshard_cotangent(p, op, sum, goal, whole);
}

/* ---- loops ------------------------------------------------------------------------------------------ */

/* Inside backward, constants (zeros, the seed) have no producer to make them a value. */
static etch_value *value_or_constant(etch_placer *p, etch_tensor *tensor, const etch_state *place)
{
    if (tensor->kind != ETCH_CONSTANT || tensor->constant)
        return value_for(p, tensor);
    return p->made[tensor->id] = etch_value_new(p, tensor, place);
}

/* The place in work is where a loop carries its value: a carry, or what it begins with. */
static etch_value *place_carried(etch_placer *p, const etch_loop *loop, const etch_carry *c,
                                 etch_tensor *value, const etch_state *place)
{
    p->phase = etch_loop_phase(loop);
    p->scope = c->in->scope;
    return reshard(p, value_or_constant(p, value, place), place,
                   (etch_provenance){ETCH_RULE_LOOP, .tensor = value, .loop = loop});
}

/* `held`: by loop-carried value. */
static void place_body(etch_placer *p, etch_placed_region *placed, etch_state (*held)[ETCH_MAX_AXES])
{
    const etch_region *body = placed->of;
    place_region(p, placed);
    for (uint32_t i = 0; i < body->carries.count && !p->failed; i++) {
        const etch_carry *c = &body->carries.at[i];
        p->region = placed;
        placed->carries.at[i].out = place_carried(p, body->loop, c, c->out, held[i]);
    }
}

/* The loop-carried values of a loop that the plan has a scope for go back to where the map around it has
 * it. */
static void leave_loop(etch_placer *p, const etch_loop *loop)
{
    const etch_boundary left = etch_boundary_of_loop(&p->plan_regions, loop);
    for (uint32_t i = 0; left.axes && i < etch_loop_carries(loop)->count && !p->failed; i++) {
        const etch_tensor *result = etch_loop_carries(loop)->at[i].result;
        etch_value *made = p->made[result->id];
        etch_state place[ETCH_MAX_AXES];
        if (etch_request_pinned(p, (etch_loop_carried){loop, i}, place) || !p->uses[result->id].is_read)
            continue;
        etch_map_boundary(p, &left, result, made->place, place);
        p->phase = etch_loop_phase(loop);
        p->scope = result->scope;
        etch_value *moved = reshard(p, made, place, etch_boundary_provenance(&left, NULL, result));
        if (moved != made)
            p->pinned[result->id] = moved;
    }
}

/* For a region of the training graph; `loop`, in `parent`: whose body it is. */
static etch_placed_region *region_new(etch_placer *p, const etch_region *of, etch_placed_loop *loop,
                                      const etch_placed_region *parent)
{
    etch_placed_region *region = ETCH_NEW(p->arena, etch_placed_region);
    *region = (etch_placed_region){.of = of, .loop = loop, .parent = parent};
    ETCH_PUSH(p->arena, &p->placed->regions, region);
    return region;
}

static void place_loop(etch_placer *p, etch_loop *loop)
{
    etch_placed_region *parent = p->region;
    etch_placed_loop *placed = ETCH_NEW(p->arena, etch_placed_loop);
    const uint32_t count = etch_loop_carries(loop)->count;
    etch_state(*held)[ETCH_MAX_AXES] = etch_alloc_array(p->arena, count, sizeof *held);
    placed->loop = loop;
    placed->forward = loop->forward ? p->loops[loop->forward->id] : NULL;
    p->loops[loop->id] = placed;
    for (uint32_t k = 0; k < loop->bodies.count; k++)
        ETCH_PUSH(p->arena, &placed->bodies, region_new(p, loop->bodies.at[k], placed, parent));
    for (uint32_t i = 0; i < count; i++) {
        const etch_carry *c = &etch_loop_carries(loop)->at[i];
        etch_placed_carry carry = {0};
        etch_request_carried(p, (etch_loop_carried){loop, i}, held[i]);
        if (c->init)
            carry.init = place_carried(p, loop, c, c->init, held[i]);
        for (uint32_t k = 0; k < loop->bodies.count; k++) {
            etch_tensor *in = loop->bodies.at[k]->carries.at[i].in;
            carry.in = p->made[in->id] = etch_value_new(p, in, held[i]);
            if (k == 0)
                carry.result = p->made[c->result->id] = etch_value_new(p, c->result, held[i]);
            ETCH_PUSH(p->arena, &placed->bodies.at[k]->carries, carry);
        }
    }
    ETCH_PUSH(p->arena, &parent->items, (etch_placed_item){.loop = placed});
    for (uint32_t k = 0; k < loop->bodies.count && !p->failed; k++)
        place_body(p, placed->bodies.at[k], held);
    p->region = parent;
    if (etch_loop_phase(loop) != ETCH_BACKWARD)
        leave_loop(p, loop);
}

static void place_region(etch_placer *p, etch_placed_region *into)
{
    const etch_region *region = into->of;
    etch_placed_region *outer = p->region;
    etch_request_region(p, region);
    p->region = into;
    for (uint32_t i = 0; i < region->items.count && !p->failed; i++) {
        etch_op *op = region->items.at[i].op;
        if (!op) {
            place_loop(p, region->items.at[i].loop);
            continue;
        }
        p->phase = op->phase;
        p->scope = op->scope;
        for (uint32_t k = 0; k < op->in_count; k++)
            value_or_constant(p, op->ins[k], NULL);
        if (op->row->use == ETCH_USE_TOTAL)
            place_total(p, op);
        else if (!etch_joint_pass_over(p, op))
            place_op(p, op);
    }
    p->region = outer;
}

/* ---- all of it --------------------------------------------------------------------------------------- */

static void place_sources(etch_placer *p)
{
    const etch_graph *g = p->graph;
    for (uint32_t i = 0; i < g->tensors.count && !p->failed; i++) {
        etch_tensor *tensor = g->tensors.at[i];
        if (tensor->kind != ETCH_INPUT && tensor->kind != ETCH_WEIGHT && !tensor->constant)
            continue;
        etch_state place[ETCH_MAX_AXES] = {NULL};
        if (!tensor->constant) /* every rank makes of a constant what it needs */
            etch_map_place(p, etch_plan_region_of(&p->plan_regions, tensor), tensor, place);
        p->made[i] = etch_value_new(p, tensor, place);
        if (tensor->kind == ETCH_WEIGHT)
            p->placed->weight_of[i] = p->made[i];
    }
}

static etch_placer *placer_new(const etch_training *training, const etch_plan *plan)
{
    etch_graph *graph = training->graph;
    etch_arena *arena = graph->arena;
    etch_placed *placed = ETCH_NEW(arena, etch_placed);
    uint32_t tensors = graph->tensors.count, ops = graph->op_count;
    *placed = (etch_placed){.training = training, .plan = plan, .arena = arena, .diags = graph->diags};
    placed->weight_of = ETCH_NEW_ARRAY(arena, tensors, etch_value *);
    placed->sync_axes = ETCH_NEW_ARRAY(arena, tensors, uint32_t);
    placed->zero_axes = ETCH_NEW_ARRAY(arena, tensors, uint32_t);
    etch_placer *p = ETCH_NEW(arena, etch_placer);
    *p = (etch_placer){.placed = placed,
                       .training = training,
                       .plan = plan,
                       .graph = graph,
                       .arena = arena,
                       .sym = graph->sym,
                       .axis_count = plan->mesh.count};
    p->made = ETCH_NEW_ARRAY(arena, tensors, etch_value *);
    p->pinned = ETCH_NEW_ARRAY(arena, tensors, etch_value *);
    p->resolved = ETCH_NEW_ARRAY(arena, tensors, etch_value *);
    p->uses = ETCH_NEW_ARRAY(arena, tensors, etch_value_use);
    p->requests = ETCH_NEW_ARRAY(arena, tensors, etch_requested_layout);
    p->steps = ETCH_NEW_ARRAY(arena, ops, etch_step *);
    p->loops = ETCH_NEW_ARRAY(arena, graph->loop_count, etch_placed_loop *);
    etch_plan_regions_find(graph, plan, &p->plan_regions);
    placed->plan_regions = &p->plan_regions;
    return p;
}

/* What is asked of the plan before anything is placed. */
static bool is_fine(etch_placer *p)
{
    etch_map_check_orders(p);
    etch_padding_check(p);
    etch_plan_remark_idle(p);
    return !p->failed;
}

static void place_all(etch_placer *p)
{
    place_sources(p);
    if (p->failed)
        return;
    etch_units_find(p);
    etch_request_uses(p);
    p->placed->forward = region_new(p, p->graph->forward, NULL, NULL);
    place_region(p, p->placed->forward);
    if (p->training->backward && !p->failed && !p->again) {
        p->placed->backward = region_new(p, p->training->backward, NULL, NULL);
        etch_passing_find(p);
        place_region(p, p->placed->backward);
    }
}

etch_placer *etch_place_ops(const etch_training *training, const etch_plan *plan)
{
    etch_placer *p = placer_new(training, plan);
    const uint32_t ops = training->graph->op_count;
    uint32_t *joint = ETCH_NEW_ARRAY(p->arena, ops, uint32_t);
    bool again = is_fine(p);
    for (uint32_t walk = 0; again; walk++) {
        if (walk > 0)
            p = placer_new(training, plan);
        p->joint = joint;
        p->joint_count = ops;
        p->is_last_walk = walk == MOST_WALKS;
        place_all(p);
        again = p->again && !p->failed;
    }
    if (!p->failed)
        etch_map_pair_regrouped(p);
    if (!p->failed)
        etch_plan_remark_fused(p);
    if (!p->failed)
        etch_ring_find_idle(p);
    return p->failed ? NULL : p;
}
