/* Rings: ranks that share the queries of an attention have one block of its keys and values after the other.
 * A block goes from rank to rank while each computes with the one that it has; the results go on from those
 * of the blocks before. Backward sends the blocks round once more, and with them their gradients, which end
 * where the block is at home. A column of the op's row says what goes round. */
#include "graph/place/place_int.h"

/* The dim along which the operand has blocks on the axis; NULL: it is held otherwise. */
static etch_state block_dim(const etch_placing *pl, uint32_t operand, uint32_t axis)
{
    const etch_state state = pl->ins[operand]->place[axis];
    return etch_is_sharded(state) && etch_dim_among(pl->op->attrs.over, state) ? state : NULL;
}

/* The operand at this slot of the row; UINT32_MAX: it does not go round. */
static uint32_t rotating(const etch_op *op, uint32_t slot)
{
    return op->row->rotates >> slot & 1 ? etch_op_index(op, slot) : UINT32_MAX;
}

enum { MOST_SLOTS = 32 };

etch_state etch_ring_dim(const etch_placer *p, const etch_placing *pl, uint32_t axis, etch_state factor)
{
    const etch_op *op = pl->op;
    etch_state round = NULL;
    if (!p->plan->rings || !op->row->rotates || !factor)
        return NULL;
    if (op->forward && !(p->steps[op->forward->id]->ring >> axis & 1))
        return NULL;
    for (uint32_t slot = 0; slot < MOST_SLOTS; slot++) {
        const uint32_t i = rotating(op, slot);
        if (i == UINT32_MAX)
            continue;
        const etch_state state = block_dim(pl, i, axis);
        if (!state || (round && round != state) || etch_has_dim(op->ins[i], factor))
            return NULL;
        round = state;
    }
    return round;
}

/* ---- what has no meaning yet --------------------------------------------------------------------------- */

static void refuse(etch_placer *p, const etch_placing *pl, const char *why, const char *help)
{
    etch_diag *diag = etch_place_error(p, ETCH_E_PLAN_LATER, p->plan->attend_span,
                                       "%s: a ring of it is not given meaning yet", why);
    etch_note(diag, pl->op->span, "this attention");
    etch_help(diag, "%s", help);
}

static const char *const gather_instead = "without the line ranks gather all keys and values";

/* An operand that does not go round but has the dim of the blocks: a bias of scores. */
static const etch_tensor *beside_blocks(const etch_op *op)
{
    for (uint32_t i = 0; i < op->in_count; i++) {
        bool goes = false;
        for (uint32_t slot = 0; slot < MOST_SLOTS; slot++)
            goes = goes || rotating(op, slot) == i;
        for (uint32_t d = 0; d < op->attrs.over.count && !goes; d++)
            if (etch_has_dim(op->ins[i], op->attrs.over.at[d]))
                return op->ins[i];
    }
    return NULL;
}

/* Are there as many keys as queries, divided alike? Then the blocks of both are of one sequence. */
static bool is_of_one_sequence(const etch_placer *p, const etch_placing *pl, const etch_dim *query)
{
    const etch_dim_view over = pl->op->attrs.over;
    return over.count == 1 && !over.at[0]->window_of &&
           etch_placed_size(p->placed, over.at[0]) == etch_placed_size(p->placed, query) &&
           etch_axes_held(p->plan, pl->factor, query) == pl->ring;
}

/* Operands of which one is divided into blocks on the axis, and another one is not. */
static bool is_mixed(const etch_placing *pl, uint32_t axis)
{
    uint32_t held = 0;
    for (uint32_t slot = 0; slot < MOST_SLOTS; slot++) {
        const uint32_t i = rotating(pl->op, slot);
        held += i != UINT32_MAX && pl->factor[axis] && block_dim(pl, i, axis);
    }
    return held && !(pl->ring >> axis & 1);
}

static bool has_weight(const etch_op *op)
{
    for (uint32_t slot = 0; slot < MOST_SLOTS; slot++) {
        const uint32_t i = rotating(op, slot);
        if (i != UINT32_MAX && etch_route_root(op->ins[i])->kind == ETCH_WEIGHT)
            return true;
    }
    return false;
}

/* Reports a ring that has no meaning yet. */
static void check(etch_placer *p, const etch_placing *pl)
{
    const etch_op *op = pl->op;
    const etch_division division = etch_op_division(op);
    if (!p->plan->rings || !op->row->rotates || op->phase != ETCH_FORWARD)
        return;
    for (uint32_t a = 0; a < p->axis_count && !p->failed; a++)
        if (is_mixed(pl, a))
            refuse(p, pl,
                   etch_text(p->arena, "keys and values are not divided alike over %s",
                             p->plan->mesh.at[a].name),
                   gather_instead);
    if (!pl->ring || p->failed)
        return;
    p->has_ring = true;
    if (etch_group_size(p->placed, pl->ring) == etch_int(p->sym, 1))
        return;
    const etch_tensor *bias = beside_blocks(op);
    if (pl->ring & (pl->ring - 1))
        refuse(p, pl,
               etch_text(p->arena, "the sequence is divided over %s in the attention",
                         etch_axes_label(p->placed, pl->ring)),
               "let one axis divide it there, and the others the heads: for MODULE { shard S @ cp, K @ up }");
    else if (op->attrs.window)
        refuse(p, pl, "a query sees a window of the keys, so that most blocks would go round for nothing",
               gather_instead);
    else if (bias)
        refuse(p, pl, etch_text(p->arena, "%s has an element for each key", bias->name), gather_instead);
    else if (has_weight(op))
        refuse(p, pl, "the keys or values are a weight", gather_instead);
    else if (division.grows && division.queries && !is_of_one_sequence(p, pl, division.queries))
        refuse(p, pl, "under the mask queries and keys are not one sequence, or not divided alike",
               gather_instead);
}

/* ---- steps --------------------------------------------------------------------------------------------- */

/* The other ranks of a ring, or so many. */
static etch_expr others_at_most(const etch_placer *p, uint32_t ring, int64_t most)
{
    return etch_min(p->sym, etch_sub(p->sym, etch_group_size(p->placed, ring), etch_int(p->sym, 1)),
                    etch_int(p->sym, most));
}

/* What comes of a value that goes round: the blocks of others, or the gradient of its own. */
static etch_value *permute(etch_placer *p, const etch_op *op, etch_value *value, uint32_t ring)
{
    etch_step *step = etch_step_new(p, NULL, etch_row_of_collective(p->graph, ETCH_PERMUTE), 1, 1);
    step->collective = ETCH_PERMUTE;
    step->axes = ring;
    step->provenance =
        (etch_provenance){ETCH_RULE_RING, .op = op, .tensor = value->tensor, .line = p->plan->attend_span};
    step->ins[0] = value;
    etch_value *made = etch_step_result(p, step, 0, value->tensor, value->place);
    made->made = value->made;
    return made;
}

/* Beside its own block a rank has the one that it computes with, and the next, which comes meanwhile. */
void etch_ring_rotate(etch_placer *p, etch_placing *pl)
{
    check(p, pl);
    for (uint32_t slot = 0; slot < MOST_SLOTS && pl->ring && !p->failed; slot++) {
        const uint32_t i = rotating(pl->op, slot);
        uint32_t same = 0;
        if (i == UINT32_MAX)
            continue;
        while (same < i && pl->op->ins[same] != pl->op->ins[i])
            same++;
        if (same < i) { /* keys that are the values, too */
            pl->ins[i] = pl->ins[same];
            continue;
        }
        pl->ins[i] = permute(p, pl->op, pl->ins[i], pl->ring);
        pl->ins[i]->blocks = others_at_most(p, pl->ring, 2);
    }
}

/* Has the result blocks of what goes round? It is the gradient of that. */
static bool is_returned(const etch_step *step, uint32_t result)
{
    const etch_tensor *tensor = step->outs[result]->tensor;
    for (uint32_t d = 0; d < step->op->attrs.over.count; d++)
        if (etch_has_dim(tensor, step->op->attrs.over.at[d]))
            return true;
    return false;
}

/* Of gradients a rank has what it makes for a block, what others have made for that, which comes meanwhile,
 * and what it sends on of the block before. */
void etch_ring_return(etch_placer *p, const etch_step *step)
{
    const uint32_t ring = step->ring;
    for (uint32_t i = 0; ring && i < step->out_count; i++) {
        if (!is_returned(step, i))
            continue;
        etch_expr others = etch_mul(p->sym, etch_int(p->sym, 2), others_at_most(p, ring, 1));
        step->outs[i]->blocks = etch_add(p->sym, etch_int(p->sym, 1), others);
        p->made[step->op->outs[i]->id] = permute(p, step->op, step->outs[i], ring);
    }
}

void etch_remark_idle_rings(const etch_placed *placed)
{
    const etch_graph *graph = placed->training->graph;
    etch_diag *diag = etch_remark(graph->diags, ETCH_E_UNKNOWN_SHARD, placed->plan->attend_span,
                                  "no attention of model %s shares its sequence among ranks: this has no "
                                  "effect",
                                  graph->model);
    etch_help(diag, "shard the sequence, shard S @ cp, where attention is computed; scores that are "
                    "written by hand, as softmax(q * k), are computed from gathered keys");
}

void etch_ring_find_idle(const etch_placer *p)
{
    p->placed->has_idle_rings = p->plan->rings && !p->has_ring;
    if (p->placed->has_idle_rings && !p->plan->shared)
        etch_remark_idle_rings(p->placed);
}
