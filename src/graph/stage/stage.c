/* Stages: a placed graph as a chain of layers that may be cut between any two.
 *
 * requires: placed regions, before kernels are made. provides: the segments of the chain, the stage position
 * of every step and loop of the top level, what is alive where the chain may be cut, where weights are used.
 *
 * What the plan lists is at stage position where it is listed. Everything else of the forward pass runs where
 * its last operand that has a stage position is made; with none, where its first consumer runs. What is
 * derived runs where its forward op does; sums of cotangents where the last part of them arrives. A value
 * crosses a cut as its producer left it, but never as a partial sum: the move that resolves one, or that a
 * pin asks for, runs with the producer, every other move with its first consumer. */
#include "graph/stage/stage_int.h"

static etch_position *no_positions(const etch_staging *s)
{
    etch_position *positions = ETCH_NEW_ARRAY(s->p->arena, s->placed->value_count, etch_position);
    for (uint32_t i = 0; i < s->placed->value_count; i++)
        positions[i] = ETCH_NO_POSITION;
    return positions;
}

/* ---- stage positions ----------------------------------------------------------------------------------- */

static etch_position nearer(const etch_staging *s, etch_position a, etch_position b, bool later)
{
    if (a == ETCH_NO_POSITION || b == ETCH_NO_POSITION)
        return a == ETCH_NO_POSITION ? b : a;
    return (a > b) == (later != s->backward) ? a : b;
}

static etch_position position_of_op(const etch_staging *s, const etch_op *op)
{
    if (op->forward && s->p->steps[op->forward->id])
        return s->p->steps[op->forward->id]->position;
    const uint32_t segment = s->backward ? ETCH_NO_SEGMENT : s->stages->segment_of_op[op->id];
    return segment == ETCH_NO_SEGMENT ? ETCH_NO_POSITION : etch_position_at(segment, ETCH_ALL_OF);
}

/* A loop that undoes or repeats another one has its place. */
static etch_position position_of_loop(const etch_staging *s, const etch_placed_loop *loop)
{
    const etch_loop *repeated = loop->loop->repeats;
    if (loop->forward)
        return loop->forward->position;
    return repeated ? s->p->loops[repeated->id]->position : etch_stage_position_of(s->placed, loop->loop);
}

/* Does the move run with what makes its operand? Backward cuts what forward has made where it reads that. */
static bool moves_at_once(const etch_staging *s, const etch_step *step)
{
    const etch_value *from = step->ins[0], *to = step->outs[0];
    const uint32_t resolved =
        etch_axes_partial(s->p->plan, from->place) & ~etch_axes_partial(s->p->plan, to->place);
    const bool cuts = step->collective == ETCH_SLICE && !(s->backward && etch_stage_is_own_shard(s, step));
    return resolved || cuts || s->p->pinned[to->tensor->id] == to ||
           etch_place_equal(s->p, from->place, to->place); /* a statistic */
}

/* Where the last of what an item reads is made. */
static etch_position ready_at(const etch_staging *s, const etch_stage_reads *reads)
{
    etch_position ready = ETCH_NO_POSITION;
    for (uint32_t k = 0; k < reads->count; k++)
        ready = nearer(s, ready, etch_stage_made_at(s, reads->at[k].value), true);
    return ready;
}

static void set_made(const etch_staging *s, const etch_placed_item *item, etch_position at)
{
    for (uint32_t k = 0; k < etch_stage_result_count(item); k++)
        if (etch_stage_result_at(item, k))
            s->made_at[etch_stage_result_at(item, k)->id] = item->loop ? etch_stage_loop_end(s, at) : at;
}

static void set_position(const etch_staging *s, const etch_placed_item *item, const etch_stage_reads *reads)
{
    const etch_position ready = ready_at(s, reads);
    if (item->step && item->step->collective != ETCH_NO_COLLECTIVE) {
        item->step->position = moves_at_once(s, item->step) ? ready : ETCH_NO_POSITION;
        set_made(s, item, ready);
        return;
    }
    const etch_position at = item->step ? position_of_op(s, item->step->op) : position_of_loop(s, item->loop);
    *etch_stage_item_position(item) = at == ETCH_NO_POSITION ? ready : at;
    set_made(s, item, *etch_stage_item_position(item));
}

/* Values without a stage position get that of their first reader. Items are gone through from the last on. */
static void settle(const etch_staging *s, const etch_placed_item *item, const etch_stage_reads *reads)
{
    etch_position at = *etch_stage_item_position(item);
    for (uint32_t k = 0; at == ETCH_NO_POSITION && k < etch_stage_result_count(item); k++)
        if (etch_stage_result_at(item, k))
            at = s->first[etch_stage_result_at(item, k)->id];
    for (uint32_t k = 0; at == ETCH_NO_POSITION && k < reads->count; k++)
        at = etch_stage_made_at(s, reads->at[k].value);
    if (at == ETCH_NO_POSITION)
        at = ETCH_CHAIN_BEGIN; /* made of nothing, for nobody */
    *etch_stage_item_position(item) = at;
    set_made(s, item, at);
    for (uint32_t k = 0; k < reads->count; k++) {
        etch_position *first = &s->first[etch_value_root(reads->at[k].value)->id];
        *first = nearer(s, *first, item->loop ? etch_stage_loop_begin(s, at) : at, false);
    }
}

static void set_positions(etch_staging *s, const etch_stage_pass *of, bool backward)
{
    s->backward = backward;
    s->first = no_positions(s);
    for (uint32_t i = 0; i < of->count; i++)
        if (!etch_stage_is_view(&of->items[i]))
            set_position(s, &of->items[i], &of->reads[i]);
    for (uint32_t i = of->count; i-- > 0;)
        if (etch_stage_is_view(&of->items[i]))
            of->items[i].step->position = ETCH_NO_POSITION; /* it does nothing */
        else
            settle(s, &of->items[i], &of->reads[i]);
}

/* ---- order --------------------------------------------------------------------------------------------- */

static const char *unit_at(const etch_staging *s, etch_position position)
{
    return s->stages->segments.at[etch_position_segment(position)].name;
}

/* A chain is worked through in one direction: reports what reads at `position` and is made later. */
static bool check_reader(const etch_staging *s, const char *reader, etch_span span, etch_position ready,
                         etch_position position)
{
    if (ready == ETCH_NO_POSITION || ready <= position)
        return true;
    etch_diag *diag = etch_place_error(s->p, ETCH_E_STAGE_UNIT, s->stages->line->span,
                                       "unit '%s' of the stages reads what '%s' computes, which comes later",
                                       unit_at(s, position), unit_at(s, ready));
    etch_note(diag, span, "%s is read here", reader);
    etch_help(diag, "statements of one tag are one unit: give those behind '%s' a tag of their own",
              unit_at(s, ready));
    return false;
}

static void check_order(etch_staging *s)
{
    const etch_stage_pass *of = &s->forward_pass;
    s->backward = false;
    for (uint32_t i = 0; i < of->count; i++) {
        const etch_step *step = of->items[i].step;
        const etch_placed_loop *loop = of->items[i].loop;
        const etch_stage_reads *reads = &of->reads[i];
        if (loop && !check_reader(s, loop->loop->name, loop->loop->span, ready_at(s, reads),
                                  etch_stage_loop_begin(s, loop->position)))
            return;
        for (uint32_t k = 0; step && k < reads->count; k++)
            if (!check_reader(s, reads->at[k].value->tensor->name, step->outs[0]->tensor->span,
                              etch_stage_made_at(s, reads->at[k].value), step->position))
                return;
    }
}

/* A copy of a value of the forward pass that backward reads in an earlier unit than forward does is made in
 * that unit: from there it goes along the chain. */
static void make_copies_early(const etch_staging *s, etch_value *value, etch_position at)
{
    const etch_position position = etch_stage_loop_end(s, at);
    value = etch_value_root(value);
    while (!s->made_backward[value->id] && s->made_at[value->id] != ETCH_NO_POSITION &&
           s->made_at[value->id] > position && value->step && value->step->collective != ETCH_NO_COLLECTIVE) {
        value->step->position = position;
        s->made_at[value->id] = position;
        value = etch_value_root(value->step->ins[0]);
    }
}

/* What must be there for a read: of a part what it is cut from, which a rank has wherever it reads its own
 * part, but for one that an earlier unit recomputes only after the read. */
static etch_value *needed_for(const etch_staging *s, etch_value *value, etch_position at)
{
    while (value->step && etch_step_role(value->step) == ETCH_ROLE_FREE) {
        const etch_position made = s->made_at[value->id];
        if (s->made_backward[value->id] && made != ETCH_NO_POSITION && made < etch_stage_loop_begin(s, at))
            return value;
        value = value->step->ins[0];
    }
    return value;
}

/* Values of the forward pass are sent to later stages only, those of the backward pass to earlier ones. */
static void check_backward_read(const etch_staging *s, etch_value *value, etch_position at)
{
    value = needed_for(s, value, at);
    const etch_position made = etch_stage_made_at(s, value);
    const bool recomputed = s->made_backward[value->id];
    if (s->p->failed || made == ETCH_NO_POSITION ||
        (recomputed ? made >= etch_stage_loop_begin(s, at) : made <= etch_stage_loop_end(s, at)))
        return;
    const char *name = value->tensor->name, *unit = unit_at(s, at), *maker = unit_at(s, made);
    etch_diag *diag =
        etch_place_error(s->p, ETCH_E_STAGE_UNIT, s->stages->line->span,
                         "the backward pass of unit '%s' of the stages reads %s, which '%s' %s", unit, name,
                         maker, recomputed ? "recomputes only after it" : "makes, a later unit");
    etch_note(diag, value->tensor->span, "%s is made here", name);
    if (recomputed)
        etch_help(diag, "let %s be kept, or give '%s' and '%s' one tag, and list that", name, maker, unit);
}

static void visit_backward(etch_staging *s,
                           void (*visit)(const etch_staging *s, etch_value *value, etch_position at))
{
    const etch_stage_pass *of = &s->backward_pass;
    s->backward = true;
    for (uint32_t i = 0; i < of->count; i++)
        for (uint32_t k = 0; k < of->reads[i].count; k++) {
            const etch_stage_read *r = &of->reads[i].at[k];
            const etch_position at = *etch_stage_item_position(&of->items[i]);
            visit(s, r->value, r->how == ETCH_READ_BEGINS ? etch_stage_loop_begin(s, at) : at);
        }
}

/* The loop of the chain, recomputed, whose iterations carry a value, by value. */
typedef const etch_placed_loop *const *carried_values;

static carried_values find_carried(const etch_staging *s)
{
    const etch_placed_loop **carried =
        ETCH_NEW_ARRAY(s->p->arena, s->placed->value_count, const etch_placed_loop *);
    for (uint32_t i = 0; i < s->backward_pass.count; i++) {
        const etch_placed_loop *loop = s->backward_pass.items[i].loop;
        if (!loop || !loop->loop->repeats || !etch_position_is_loop(s->stages, loop->position))
            continue;
        for (uint32_t k = 0; k < loop->bodies.count; k++)
            for (uint32_t c = 0; c < loop->bodies.at[k]->carries.count; c++) {
                const etch_placed_carry *carry = &loop->bodies.at[k]->carries.at[c];
                carried[carry->in->id] = loop;
                if (carry->result)
                    carried[carry->result->id] = loop;
            }
    }
    return carried;
}

/* The iterations of a stage would wait for those of the stage before, whose backward pass comes later. What
 * they only carry is read by nobody. */
static void check_carried(const etch_staging *s, carried_values carried, const etch_stage_read *read)
{
    const etch_value *value = etch_value_memory(read->value, NULL);
    const etch_placed_loop *loop = carried[value->id];
    if (!loop || s->p->failed || (read->how == ETCH_READ_HANDS && value->tensor->region == read->body))
        return;
    const char *name = value->tensor->name, *unit = unit_at(s, loop->position);
    etch_diag *diag =
        etch_place_error(s->p, ETCH_E_STAGE_UNIT, s->stages->line->span,
                         "the backward pass of iterations of '%s' reads %s, which the iterations before them "
                         "recompute only after it",
                         unit, name);
    etch_note(diag, value->tensor->span, "%s is handed on here", name);
    etch_help(diag, "recompute '%s' instead of what is around it, or let %s be kept", unit, name);
}

static void check_recomputed_loops(const etch_staging *s)
{
    const carried_values carried = find_carried(s);
    for (uint32_t i = 0; i < s->backward_pass.count; i++)
        for (uint32_t k = 0; k < s->backward_pass.reads[i].count; k++)
            check_carried(s, carried, &s->backward_pass.reads[i].at[k]);
}

static void mark_backward_values(const etch_staging *s)
{
    const etch_stage_pass *of = &s->backward_pass;
    for (uint32_t i = 0; i < of->count; i++)
        for (uint32_t k = 0; k < etch_stage_result_count(&of->items[i]); k++)
            if (etch_stage_result_at(&of->items[i], k))
                s->made_backward[etch_stage_result_at(&of->items[i], k)->id] = true;
}

/* ---- all of it ----------------------------------------------------------------------------------------- */

static void find_positions(etch_staging *s)
{
    etch_stage_find_reads(s);
    s->forward_pass = etch_stage_pass_of(s, s->placed->forward);
    s->backward_pass = etch_stage_pass_of(s, s->placed->backward);
    s->made_at = no_positions(s);
    s->made_backward = ETCH_NEW_ARRAY(s->p->arena, s->placed->value_count, bool);
    mark_backward_values(s);
    set_positions(s, &s->forward_pass, false);
    set_positions(s, &s->backward_pass, true);
}

void etch_stages_find(etch_placer *p)
{
    if (!p->plan->stage)
        return;
    etch_staging s = {.p = p, .placed = p->placed, .stages = ETCH_NEW(p->arena, etch_stages)};
    s.stages->line = p->plan->stage;
    p->placed->stages = s.stages;
    if (!etch_stage_segments(p, s.stages))
        return;
    find_positions(&s);
    if (etch_stage_share_shards(&s))
        find_positions(&s);
    if (etch_stage_move_where_read(&s))
        find_positions(&s);
    if (etch_stage_begin_with_terms(&s))
        find_positions(&s);
    if (etch_stage_add_on_the_way(&s))
        find_positions(&s);
    visit_backward(&s, make_copies_early);
    check_order(&s);
    visit_backward(&s, check_backward_read);
    check_recomputed_loops(&s);
    etch_stage_find_alive(&s);
}
