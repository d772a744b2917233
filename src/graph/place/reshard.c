/* Moves between placements (R5): what differs between how a value is held and how it is needed is a
 * collective. */
#include "graph/place/place_int.h"

bool etch_place_equal(const etch_placer *p, const etch_state *a, const etch_state *b)
{
    for (uint32_t i = 0; i < p->axis_count; i++)
        if (a[i] != b[i])
            return false;
    return true;
}

etch_value *etch_value_new(etch_placer *p, etch_tensor *tensor, const etch_state *place)
{
    etch_value *value = ETCH_NEW(p->arena, etch_value);
    value->tensor = tensor;
    value->made = tensor->made;
    value->id = p->placed->value_count++;
    value->place = ETCH_NEW_ARRAY(p->arena, p->axis_count, etch_state);
    for (uint32_t a = 0; place && a < p->axis_count; a++)
        value->place[a] = place[a];
    etch_map_require(p, tensor, value->place);
    return value;
}

etch_step *etch_step_new(etch_placer *p, etch_op *op, const etch_row *row, uint32_t ins, uint32_t outs)
{
    etch_step *step = ETCH_NEW(p->arena, etch_step);
    *step = (etch_step){.op = op,
                        .row = row,
                        .phase = p->phase,
                        .scope = p->scope,
                        .factor = ETCH_NEW_ARRAY(p->arena, p->axis_count, etch_state),
                        .ins = ETCH_NEW_ARRAY(p->arena, ins, etch_value *),
                        .outs = ETCH_NEW_ARRAY(p->arena, outs, etch_value *),
                        .accumulate_into = ETCH_NEW_ARRAY(p->arena, outs, etch_tensor *),
                        .in_count = ins,
                        .out_count = outs,
                        .kernel = UINT32_MAX,
                        .id = p->placed->step_count++};
    ETCH_PUSH(p->arena, &p->region->items, (etch_placed_item){.step = step});
    return step;
}

etch_value *etch_step_result(etch_placer *p, etch_step *step, uint32_t i, etch_tensor *tensor,
                             const etch_state *place)
{
    step->outs[i] = etch_value_new(p, tensor, place);
    step->outs[i]->step = step;
    return step->outs[i];
}

etch_step *etch_step_alike(etch_placer *p, etch_op *op, etch_value *const *ins, uint32_t in_count,
                           etch_tensor *tensor, const etch_state *place)
{
    etch_step *step = etch_step_new(p, op, op->row, in_count, 1);
    for (uint32_t i = 0; i < in_count; i++)
        step->ins[i] = ins[i];
    for (uint32_t a = 0; a < p->axis_count; a++)
        step->factor[a] = etch_without_partial(place[a]);
    etch_step_result(p, step, 0, tensor, place);
    return step;
}

/* `out` is as `those` on the axes in `mask`, and as `others` on all else. */
static void mix(const etch_placer *p, uint32_t mask, const etch_state *those, const etch_state *others,
                etch_state *out)
{
    for (uint32_t a = 0; a < p->axis_count; a++)
        out[a] = mask >> a & 1 ? those[a] : others[a];
}

static etch_collective move_of(etch_state from, etch_state to)
{
    if (from == to)
        return ETCH_NO_COLLECTIVE;
    if (!from)
        return ETCH_SLICE;
    if (etch_is_partial(from))
        return to ? ETCH_REDUCE_SCATTER : ETCH_ALL_REDUCE;
    return to ? ETCH_ALL_TO_ALL : ETCH_ALL_GATHER;
}

/* ---- in which order ---------------------------------------------------------------------------------- */

enum { MOVE_KINDS = ETCH_ALL_GATHER };

/* Sizes shrink first. */
static const etch_collective shrink_first[MOVE_KINDS] = {ETCH_SLICE, ETCH_REDUCE_SCATTER, ETCH_ALL_TO_ALL,
                                                         ETCH_ALL_REDUCE, ETCH_ALL_GATHER};

/* Does `other`, on a dim that `axis` leaves or joins now, keep it from that? Only the innermost axis of a dim
 * may leave it or join it: the shards of the outer ones stay where they are. Slots have no order that would
 * have to be kept. But what is to leave any dim leaves before another joins: that one would divide shards,
 * and what is left when they are gathered is not its part of the whole. */
static bool is_in_the_way(const etch_placer *p, const etch_state *now, const etch_state *goal, uint32_t axis,
                          uint32_t other)
{
    const etch_state from = now[axis], to = goal[axis], there = now[other];
    if (!etch_is_sharded(there) || (there != from && there != to))
        return false;
    if (there == to && goal[other] != to)
        return true;
    return !there->packed_from.count && etch_map_is_inside(p->placed, there, other, axis);
}

static uint32_t axes_of_kind(const etch_placer *p, const etch_state *now, const etch_state *goal,
                             etch_collective kind)
{
    uint32_t axes = 0;
    for (uint32_t a = 0; a < p->axis_count; a++)
        if (move_of(now[a], goal[a]) == kind)
            axes |= 1u << a;
    return axes;
}

static bool may_reshard(const etch_placer *p, const etch_state *now, const etch_state *goal, uint32_t axes)
{
    for (uint32_t a = 0; a < p->axis_count; a++)
        for (uint32_t b = 0; axes & (1u << a) && b < p->axis_count; b++)
            if (!(axes & (1u << b)) && is_in_the_way(p, now, goal, a, b))
                return false;
    return true;
}

/* The first order of collectives, at most one of a kind, that leads to `goal`; NO_MOVE at its end. False:
 * there is none. */
static bool order_collectives(const etch_placer *p, const etch_state *now, const etch_state *goal,
                              etch_collective *order)
{
    bool communicates = false;
    for (uint32_t i = 0; i < MOVE_KINDS; i++) {
        const uint32_t axes = axes_of_kind(p, now, goal, shrink_first[i]);
        if (!axes)
            continue;
        communicates = true;
        if (!may_reshard(p, now, goal, axes))
            continue;
        etch_state next[ETCH_MAX_AXES];
        mix(p, axes, goal, now, next);
        *order = shrink_first[i];
        if (order_collectives(p, next, goal, order + 1))
            return true;
    }
    *order = ETCH_NO_COLLECTIVE;
    return !communicates;
}

uint32_t etch_reshard_non_innermost(const etch_placer *p, const etch_value *value, const etch_state *need)
{
    uint32_t axes = 0;
    for (uint32_t a = 0; a < p->axis_count; a++)
        for (uint32_t b = 0;
             etch_is_sharded(value->place[a]) && need[a] != value->place[a] && b < p->axis_count; b++)
            if (value->place[b] == value->place[a] && need[b] == value->place[b] &&
                is_in_the_way(p, value->place, need, a, b))
                axes |= 1u << b;
    return axes;
}

/* The axes of a line, or of the value's dim, but with `last` at the end: "(cp,dp)". */
static const char *axes_with_last(const etch_placer *p, const etch_shard *line, uint32_t other, uint32_t last)
{
    etch_buf text = {.arena = p->arena};
    for (uint32_t i = 0; line && i < line->axis_count; i++)
        if (line->axes[i] != last)
            etch_buf_printf(&text, "%s,", p->plan->mesh.at[line->axes[i]].name);
    if (!line)
        etch_buf_printf(&text, "%s,", p->plan->mesh.at[other].name);
    etch_buf_puts(&text, p->plan->mesh.at[last].name);
    return text.text;
}

/* Reports which axis is kept from moving by which, at the line that has both on the dim, or at that which
 * asks for it. */
static void refuse_reshard(etch_placer *p, const etch_value *value, const etch_state *goal,
                           const etch_provenance *provenance)
{
    for (uint32_t a = 0; a < p->axis_count && !p->failed; a++)
        for (uint32_t b = 0; value->place[a] != goal[a] && b < p->axis_count && !p->failed; b++) {
            if (a == b || !is_in_the_way(p, value->place, goal, a, b))
                continue;
            const etch_dim *dim = value->place[b];
            const char *name = p->plan->mesh.at[a].name, *other = p->plan->mesh.at[b].name;
            const etch_shard *line = etch_map_entry(p->placed, dim, (1u << a) | (1u << b));
            const etch_shard *of_one = line ? line : etch_map_entry(p->placed, dim, 1u << b);
            etch_diag *diag = etch_place_error(p, ETCH_E_NOT_INNERMOST, of_one ? of_one->span : p->plan->span,
                                               "%s must be last on %s: %s is moved while %s stays on it",
                                               name, dim->name, name, other);
            if (provenance->line.end)
                etch_note(diag, provenance->line, "this line moves it");
            etch_note(diag, value->tensor->span, "for %s", value->tensor->name);
            etch_help(diag, "write %s @ (%s): the part of the outer axis stays when the inner one goes",
                      dim->name, axes_with_last(p, line, b, a));
        }
}

/* ---- moves and copies -------------------------------------------------------------------------------- */

static etch_value *reshard_once(etch_placer *p, etch_value *value, const etch_state *goal, uint32_t axes,
                                etch_collective collective, etch_provenance provenance)
{
    etch_state place[ETCH_MAX_AXES];
    mix(p, axes, goal, value->place, place);
    etch_step *step = etch_step_new(p, NULL, etch_row_of_collective(p->graph, collective), 1, 1);
    step->collective = collective;
    step->axes = axes;
    step->provenance = provenance;
    step->ins[0] = value;
    etch_value *moved = etch_step_result(p, step, 0, value->tensor, place);
    moved->made = value->made;
    return moved;
}

/* The iteration that one of the body reverses or repeats; NULL: nothing. */
static const etch_region *region_before(const etch_region *body)
{
    const etch_loop *loop = body->loop->forward ? body->loop->forward : body->loop->repeats;
    return loop ? loop->bodies.at[body->index] : NULL;
}

/* Was the copy made by the region in work, or by what that undoes or repeats? */
static bool is_before(const etch_placer *p, const etch_placed_copy *c)
{
    const etch_region *here = p->region->of, *there = c->region->of;
    if (!here->loop || !there->loop)
        return !here->loop && !there->loop;
    while (here && here != there)
        here = region_before(here);
    return here != NULL;
}

/* On how many axes something is to be sent to bring a value to `goal`: a rank's own shard is had for
 * nothing. */
static uint32_t left_to_reshard(const etch_placer *p, const etch_value *from, const etch_state *goal)
{
    uint32_t left = 0;
    for (uint32_t a = 0; a < p->axis_count; a++)
        left += from->place[a] && from->place[a] != goal[a];
    return left;
}

/* May the phase in work read the copy of an earlier one? Weights are no matter of this: they are there in
 * both. */
static bool is_kept(const etch_placer *p, const etch_placed_copy *c)
{
    return p->plan->keep_gathers && c->phase < p->phase && c->from->tensor->kind != ETCH_WEIGHT &&
           left_to_reshard(p, c->from, c->to->place) && is_before(p, c);
}

/* The value before collectives moved it. */
static const etch_value *unmoved(const etch_placer *p, const etch_value *value)
{
    while (value->step && value->step->collective != ETCH_NO_COLLECTIVE &&
           !etch_place_equal(p, value->place, value->step->ins[0]->place))
        value = value->step->ins[0];
    return value;
}

/* Does the copy hold, here and now, what `origin` holds, which no collective has moved? */
static bool is_copy_of(const etch_placer *p, const etch_placed_copy *c, const etch_value *origin)
{
    const bool shared = c->region == p->region && c->phase == p->phase;
    return c->origin == origin && (shared || is_kept(p, c));
}

static etch_value *find_copy(const etch_placer *p, const etch_value *value, const etch_state *goal)
{
    const etch_value *origin = unmoved(p, value);
    for (uint32_t i = 0; i < p->copies.count; i++) {
        const etch_placed_copy *c = &p->copies.at[i];
        if (is_copy_of(p, c, origin) && etch_place_equal(p, c->to->place, goal))
            return c->to;
    }
    return NULL;
}

/* Is the copy, on each axis, where it was, where it is to be, or whole where a part is wanted? */
static bool is_on_the_way(const etch_placer *p, const etch_value *value, const etch_value *held,
                          const etch_state *goal)
{
    for (uint32_t a = 0; a < p->axis_count; a++) {
        const bool whole = !held->place[a] && !etch_is_partial(goal[a]);
        if (held->place[a] != goal[a] && held->place[a] != value->place[a] && !whole)
            return false;
    }
    etch_collective order[MOVE_KINDS + 1];
    return order_collectives(p, held->place, goal, order);
}

/* The copy of a value that needs the fewest collectives to reach `goal`, or the value itself. */
static etch_value *nearest(const etch_placer *p, etch_value *value, const etch_state *goal)
{
    const etch_value *origin = unmoved(p, value);
    etch_value *best = value;
    for (uint32_t i = 0; i < p->copies.count; i++) {
        const etch_placed_copy *c = &p->copies.at[i];
        if (is_copy_of(p, c, origin) && left_to_reshard(p, c->to, goal) < left_to_reshard(p, best, goal) &&
            is_on_the_way(p, value, c->to, goal))
            best = c->to;
    }
    return best;
}

/* A view is moved by moving what it shows and looking at it again, so that all views of a value share its
 * copies. */
static etch_value *reshard_view(etch_placer *p, etch_value *view, const etch_state *goal,
                                etch_provenance provenance)
{
    etch_op *op = view->step->op;
    etch_state need[ETCH_MAX_AXES] = {NULL};
    for (uint32_t a = 0; a < p->axis_count; a++)
        need[a] = etch_op_dim_before(op, goal[a]);
    etch_value *moved = etch_reshard_value(p, view->step->ins[0], need, UINT32_MAX, provenance);
    return etch_step_alike(p, op, &moved, 1, view->tensor, goal)->outs[0];
}

/* Can what a view shows be held so that the view is held as `goal`? Not when an inner dim of a group that it
 * splits is to be divided. */
static bool shows_shards(const etch_placer *p, const etch_value *view, const etch_state *goal)
{
    const etch_op *op = view->step->op;
    for (uint32_t a = 0; a < p->axis_count; a++)
        if (etch_is_sharded(goal[a]) && !etch_op_dim_before(op, goal[a]))
            return false;
    return true;
}

static void keep_copy(etch_placer *p, etch_value *from, etch_value *to)
{
    ETCH_PUSH(p->arena, &p->copies, (etch_placed_copy){from, unmoved(p, from), to, p->region, p->phase});
}

etch_value *etch_reshard_value(etch_placer *p, etch_value *value, const etch_state *need, uint32_t mask,
                               etch_provenance provenance)
{
    etch_state goal[ETCH_MAX_AXES];
    mix(p, mask, need, value->place, goal);
    if (etch_place_equal(p, value->place, goal))
        return value;
    etch_value *moved = find_copy(p, value, goal);
    if (moved)
        return moved;
    if (value->step && value->step->op && etch_op_is_view(value->step->op) && shows_shards(p, value, goal)) {
        moved = reshard_view(p, value, goal, provenance);
        keep_copy(p, value, moved);
        return moved;
    }
    moved = nearest(p, value, goal);
    etch_collective order[MOVE_KINDS + 1];
    if (!order_collectives(p, moved->place, goal, order)) {
        refuse_reshard(p, moved, goal, &provenance);
        return value;
    }
    for (const etch_collective *kind = order; *kind != ETCH_NO_COLLECTIVE; kind++) {
        const uint32_t axes = axes_of_kind(p, moved->place, goal, *kind);
        moved = reshard_once(p, moved, goal, axes, *kind, provenance);
        keep_copy(p, value, moved);
    }
    return moved;
}

etch_value *etch_reshard_reduce(etch_placer *p, etch_value *value, uint32_t axes, etch_provenance provenance)
{
    return reshard_once(p, value, value->place, axes, ETCH_ALL_REDUCE, provenance);
}

etch_value *etch_place_again(etch_placer *p, const etch_value *value)
{
    const etch_step *step = value->step;
    if (!step->op)
        return reshard_once(p, step->ins[0], value->place, step->axes, step->collective, step->provenance);
    etch_value *shown = etch_place_again(p, step->ins[0]);
    return etch_step_alike(p, (etch_op *)(uintptr_t)step->op, &shown, 1, value->tensor, value->place)
        ->outs[0];
}
