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
#include <string.h>

#include "graph/stage/stage_int.h"

typedef struct staging {
    etch_placer *p;
    etch_placed *placed;
    etch_stages *stages;
    /* along the backward pass, where stage positions fall */
    bool backward;
    /* by value id */
    /* where it is made; ETCH_NO_POSITION: it can be had anywhere */
    etch_position *made_at;
    /* its first reader in the region in work */
    etch_position *first;
    /* its last reader */
    etch_position *last;
    bool *made_backward;
} staging;

/* Its first layer: with all of a segment that is a loop, each of its iterations would do what is done
 * once. */
static const etch_position chain_begin = ETCH_FIRST_OF;

bool etch_position_is_loop(const etch_stages *stages, etch_position position)
{
    return etch_position_side(position) == ETCH_ALL_OF &&
           stages->segments.at[etch_position_segment(position)].loop;
}

/* ---- stage positions ----------------------------------------------------------------------------------- */

static bool is_view(const etch_step *step)
{
    return step->op && step->collective == ETCH_NO_COLLECTIVE && etch_op_is_view(step->op);
}

static etch_position nearer(const staging *s, etch_position a, etch_position b, bool later)
{
    if (a == ETCH_NO_POSITION || b == ETCH_NO_POSITION)
        return a == ETCH_NO_POSITION ? b : a;
    return (a > b) == (later != s->backward) ? a : b;
}

static etch_position made_at(const staging *s, etch_value *value)
{
    return s->made_at[etch_value_root(value)->id];
}

/* The iterations of a loop that come first and last in the order of the region. */
static etch_position side_of_loop(const staging *s, etch_position position, bool begin)
{
    const etch_side side = begin == s->backward ? ETCH_LAST_OF : ETCH_FIRST_OF;
    return etch_position_is_loop(s->stages, position)
               ? etch_position_at(etch_position_segment(position), side)
               : position;
}

static etch_position loop_begin(const staging *s, etch_position position)
{
    return side_of_loop(s, position, true);
}

static etch_position loop_end(const staging *s, etch_position position)
{
    return side_of_loop(s, position, false);
}

/* The results of an item; of a loop without a reader NULL. */
static uint32_t result_count(const etch_placed_item *item)
{
    return item->step ? item->step->out_count : etch_loop_carries(item->loop)->count;
}

static etch_value *result_at(const etch_placed_item *item, uint32_t k)
{
    return item->step ? item->step->outs[k] : etch_loop_carries(item->loop)->at[k].result;
}

/* ---- what is read ------------------------------------------------------------------------------------ */

typedef void read_visitor(void *data, etch_value *value, etch_position at);

static void visit_inits(const etch_placed_loop *loop, etch_position at, read_visitor *visit, void *data)
{
    for (uint32_t i = 0; i < etch_loop_carries(loop)->count; i++)
        if (etch_loop_carries(loop)->at[i].init)
            visit(data, etch_loop_carries(loop)->at[i].init, at);
}

static void visit_outs(const etch_placed_loop *loop, etch_position at, read_visitor *visit, void *data)
{
    for (uint32_t k = 0; k < loop->bodies.count; k++)
        for (uint32_t i = 0; i < loop->bodies.at[k]->carries.count; i++)
            visit(data, loop->bodies.at[k]->carries.at[i].out, at);
}

static void visit_operands(const etch_step *step, etch_position at, read_visitor *visit, void *data)
{
    for (uint32_t i = 0; !is_view(step) && i < step->in_count; i++)
        visit(data, step->ins[i], at);
}

/* Values that a loop of the top level reads: the values that it begins with at `begin`, all else, at any
 * depth, at `body`. Those that it makes itself have no stage position, so that reading it says nothing. */
static void visit_loop(const etch_placed_loop *loop, etch_position begin, etch_position body,
                       read_visitor *visit, void *data)
{
    visit_inits(loop, begin, visit, data);
    visit_outs(loop, body, visit, data);
    for (uint32_t k = 0; k < loop->bodies.count; k++)
        for (etch_placed_cursor at = {.root = loop->bodies.at[k]}; etch_placed_cursor_next(&at);)
            if (at.item->step) {
                visit_operands(at.item->step, body, visit, data);
            } else {
                visit_inits(at.item->loop, body, visit, data);
                visit_outs(at.item->loop, body, visit, data);
            }
}

/* ---- stage positions ----------------------------------------------------------------------------------- */

static etch_position loop_position(const etch_stages *stages, const etch_loop *loop)
{
    for (uint32_t i = 0; i < stages->segments.count; i++)
        if (stages->segments.at[i].loop == loop)
            return etch_position_at(i, ETCH_ALL_OF);
    return ETCH_NO_POSITION;
}

static etch_position position_of_op(const staging *s, const etch_op *op)
{
    if (op->forward && s->p->steps[op->forward->id])
        return s->p->steps[op->forward->id]->position;
    const uint32_t segment = s->backward ? ETCH_NO_SEGMENT : s->stages->segment_of_op[op->id];
    return segment == ETCH_NO_SEGMENT ? ETCH_NO_POSITION : etch_position_at(segment, ETCH_ALL_OF);
}

/* Does the move run with what makes its operand? */
static bool moves_at_once(const staging *s, const etch_step *step)
{
    const etch_value *from = step->ins[0], *to = step->outs[0];
    for (uint32_t a = 0; a < s->p->axis_count; a++)
        if (from->place[a] == ETCH_PARTIAL && to->place[a] != ETCH_PARTIAL)
            return true;
    return step->collective == ETCH_SLICE || s->p->pinned[to->tensor->id] == to ||
           etch_place_equal(s->p, from->place, to->place); /* a statistic */
}

static void set_step_position(const staging *s, etch_step *step)
{
    etch_position ready = ETCH_NO_POSITION; /* where its operands are */
    for (uint32_t i = 0; i < step->in_count; i++)
        ready = nearer(s, ready, made_at(s, step->ins[i]), true);
    if (step->collective != ETCH_NO_COLLECTIVE) {
        step->position = moves_at_once(s, step) ? ready : ETCH_NO_POSITION;
    } else {
        step->position = position_of_op(s, step->op);
        if (step->position == ETCH_NO_POSITION)
            step->position = ready;
        ready = step->position;
    }
    for (uint32_t i = 0; i < step->out_count; i++)
        s->made_at[step->outs[i]->id] = ready;
}

static void set_results(const staging *s, const etch_placed_loop *loop)
{
    for (uint32_t i = 0; i < etch_loop_carries(loop)->count; i++)
        if (etch_loop_carries(loop)->at[i].result)
            s->made_at[etch_loop_carries(loop)->at[i].result->id] = loop_end(s, loop->position);
}

typedef struct collecting {
    const staging *s;
    etch_position ready;
} collecting;

static void collect_ready(void *data, etch_value *value, etch_position at)
{
    collecting *c = data;
    (void)at;
    c->ready = nearer(c->s, c->ready, made_at(c->s, value), true);
}

static void set_loop_position(const staging *s, etch_placed_loop *loop)
{
    const etch_position position = loop_position(s->stages, loop->loop);
    if (loop->forward) {
        loop->position = loop->forward->position;
    } else if (position != ETCH_NO_POSITION) {
        loop->position = position;
    } else {
        collecting c = {s, ETCH_NO_POSITION};
        visit_loop(loop, 0, 0, collect_ready, &c);
        loop->position = c.ready;
    }
    set_results(s, loop);
}

static void note_first(void *data, etch_value *value, etch_position at)
{
    const staging *s = data;
    etch_position *first = &s->first[etch_value_root(value)->id];
    *first = nearer(s, *first, at, false);
}

/* Values without a stage position get that of their first reader. Items are gone through from the last on. */
static void settle_step(staging *s, etch_step *step)
{
    if (is_view(step)) {
        step->position = ETCH_NO_POSITION; /* it does nothing */
        return;
    }
    for (uint32_t i = 0; step->position == ETCH_NO_POSITION && i < step->out_count; i++)
        step->position = s->first[step->outs[i]->id];
    for (uint32_t i = 0; step->position == ETCH_NO_POSITION && i < step->in_count; i++)
        step->position = made_at(s, step->ins[i]);
    if (step->position == ETCH_NO_POSITION)
        step->position = chain_begin; /* made of nothing, for nobody */
    for (uint32_t i = 0; i < step->out_count; i++)
        s->made_at[step->outs[i]->id] = step->position;
    visit_operands(step, step->position, note_first, s);
}

static void settle_loop(staging *s, etch_placed_loop *loop)
{
    for (uint32_t i = 0; loop->position == ETCH_NO_POSITION && i < etch_loop_carries(loop)->count; i++)
        if (etch_loop_carries(loop)->at[i].result)
            loop->position = s->first[etch_loop_carries(loop)->at[i].result->id];
    if (loop->position == ETCH_NO_POSITION)
        loop->position = chain_begin;
    set_results(s, loop);
    visit_loop(loop, loop_begin(s, loop->position), loop_begin(s, loop->position), note_first, s);
}

static void set_positions(staging *s, const etch_placed_region *region, bool backward)
{
    s->backward = backward;
    for (uint32_t i = 0; i < region->items.count; i++) {
        if (region->items.at[i].loop)
            set_loop_position(s, region->items.at[i].loop);
        else if (!is_view(region->items.at[i].step))
            set_step_position(s, region->items.at[i].step);
    }
    for (uint32_t i = region->items.count; i-- > 0;) {
        if (region->items.at[i].loop)
            settle_loop(s, region->items.at[i].loop);
        else
            settle_step(s, region->items.at[i].step);
    }
}

/* ---- what is alive at a cut ---------------------------------------------------------------------------- */

/* `last` is kept in the order of the chain: for a value of the forward pass the greatest stage position that
 * reads it, in either pass; for one of the backward pass the least. `s->backward` is that of the value. */
static void note_last(void *data, etch_value *value, etch_position at)
{
    const staging *s = data;
    const uint32_t id = etch_value_root(value)->id;
    if (s->made_at[id] != ETCH_NO_POSITION && s->made_backward[id] == s->backward)
        s->last[id] = nearer(s, s->last[id], at, true);
}

/* Reads of the region by values of one direction. */
static void note_reads(staging *s, const etch_placed_region *region, bool backward)
{
    s->backward = backward;
    for (uint32_t i = 0; i < region->items.count; i++) {
        const etch_placed_loop *loop = region->items.at[i].loop;
        const etch_step *step = region->items.at[i].step;
        if (loop) {
            visit_loop(loop, loop_begin(s, loop->position), loop_end(s, loop->position), note_last, s);
            continue;
        }
        visit_operands(step, step->position, note_last, s);
    }
}

/* Is a value that is made at `made` and read last at `last` alive where the chain is cut between the stage
 * positions `before` and `after`? */
static bool is_alive(const staging *s, etch_position made, etch_position last, etch_position before,
                     etch_position after)
{
    if (made == ETCH_NO_POSITION || last == ETCH_NO_POSITION)
        return false;
    return s->backward ? made >= after && last <= before : made <= before && last >= after;
}

static const etch_placed_loop *placed_loop_at(const etch_placed_region *region, etch_position position)
{
    for (uint32_t i = 0; i < region->items.count; i++) {
        const etch_placed_loop *loop = region->items.at[i].loop;
        if (loop && loop->position == position)
            return loop;
    }
    return NULL;
}

typedef ETCH_VEC(etch_value *) value_list;

static value_list alive_at(staging *s, const etch_placed_region *region, bool backward, const etch_cut *cut)
{
    value_list list = {0};
    const etch_position before = cut->inside ? etch_position_at(cut->segment, ETCH_FIRST_OF)
                                             : etch_position_at(cut->segment - 1, ETCH_LAST_OF);
    const etch_position after = etch_position_at(cut->segment, cut->inside ? ETCH_LAST_OF : ETCH_FIRST_OF);
    s->backward = backward;
    for (uint32_t i = 0; i < region->items.count; i++) {
        const etch_placed_item *item = &region->items.at[i];
        for (uint32_t k = 0; !(item->step && is_view(item->step)) && k < result_count(item); k++) {
            etch_value *value = result_at(item, k);
            if (value && is_alive(s, s->made_at[value->id], s->last[value->id], before, after))
                ETCH_PUSH(s->p->arena, &list, value);
        }
    }
    const etch_placed_loop *cut_loop =
        cut->inside ? placed_loop_at(region, etch_position_at(cut->segment, ETCH_ALL_OF)) : NULL;
    for (uint32_t k = 0; cut_loop && k < etch_loop_carries(cut_loop)->count; k++)
        ETCH_PUSH(s->p->arena, &list, etch_loop_carries(cut_loop)->at[k].in);
    return list;
}

static etch_expr bytes_of(const staging *s, const value_list *list)
{
    etch_expr bytes = etch_int(s->p->sym, 0);
    for (uint32_t i = 0; i < list->count; i++)
        bytes = etch_add(s->p->sym, bytes, etch_value_bytes(s->placed, list->at[i]));
    return bytes;
}

static void add_cut(staging *s, uint32_t segment, bool inside)
{
    etch_cut cut = {.segment = segment, .inside = inside};
    value_list forward = alive_at(s, s->placed->forward, false, &cut), backward = {0};
    if (s->placed->backward)
        backward = alive_at(s, s->placed->backward, true, &cut);
    for (uint32_t i = 0; i < forward.count; i++)
        ETCH_PUSH(s->p->arena, &cut.forward, forward.at[i]);
    for (uint32_t i = 0; i < backward.count; i++)
        ETCH_PUSH(s->p->arena, &cut.backward, backward.at[i]);
    cut.forward_bytes = bytes_of(s, &forward);
    cut.backward_bytes = bytes_of(s, &backward);
    ETCH_PUSH(s->p->arena, &s->stages->cuts, cut);
}

static void mark_backward_values(staging *s)
{
    const etch_placed_region *region = s->placed->backward;
    for (uint32_t i = 0; region && i < region->items.count; i++)
        for (uint32_t k = 0; k < result_count(&region->items.at[i]); k++)
            if (result_at(&region->items.at[i], k))
                s->made_backward[result_at(&region->items.at[i], k)->id] = true;
}

static void find_cuts(staging *s)
{
    note_reads(s, s->placed->forward, false);
    if (s->placed->backward) {
        note_reads(s, s->placed->backward, false); /* what backward reads of the forward pass */
        note_reads(s, s->placed->backward, true);
    }
    for (uint32_t i = 0; i < s->stages->segments.count; i++) {
        if (i > 0)
            add_cut(s, i, false);
        if (s->stages->segments.at[i].loop)
            add_cut(s, i, true);
    }
}

/* ---- order --------------------------------------------------------------------------------------------- */

/* A chain is worked through in one direction: reports what reads at `position` and is made later. */
static bool check_reader(const staging *s, const char *reader, etch_span span, etch_position ready,
                         etch_position position)
{
    if (ready == ETCH_NO_POSITION || ready <= position)
        return true;
    const char *other = s->stages->segments.at[etch_position_segment(ready)].name;
    etch_diag *diag = etch_error(s->p->graph->diags, ETCH_E_STAGE_UNIT, s->stages->line->span,
                                 "unit '%s' of the stages reads what '%s' computes, which comes later",
                                 s->stages->segments.at[etch_position_segment(position)].name, other);
    etch_note(diag, span, "%s is read here", reader);
    etch_help(diag, "statements of one tag are one unit: give those behind '%s' a tag of their own", other);
    s->p->failed = true;
    return false;
}

static void check_order(staging *s)
{
    const etch_placed_region *region = s->placed->forward;
    s->backward = false;
    for (uint32_t i = 0; i < region->items.count; i++) {
        const etch_step *step = region->items.at[i].step;
        const etch_placed_loop *loop = region->items.at[i].loop;
        collecting c = {s, ETCH_NO_POSITION};
        if (loop) {
            visit_loop(loop, 0, 0, collect_ready, &c);
            if (!check_reader(s, loop->loop->name, loop->loop->span, c.ready, loop_begin(s, loop->position)))
                return;
            continue;
        }
        if (is_view(step))
            continue;
        for (uint32_t k = 0; k < step->in_count; k++)
            if (!check_reader(s, step->ins[k]->tensor->name, step->outs[0]->tensor->span,
                              made_at(s, step->ins[k]), step->position))
                return;
    }
}

typedef struct reading {
    const staging *s;
    bool failed;
} reading;

/* A copy of a value of the forward pass that backward reads in an earlier unit than forward does is made in
 * that unit: from there it goes along the chain. */
static void make_copies_early(void *data, etch_value *value, etch_position at)
{
    const staging *s = data;
    const etch_position position = loop_end(s, at);
    value = etch_value_root(value);
    while (!s->made_backward[value->id] && s->made_at[value->id] != ETCH_NO_POSITION &&
           s->made_at[value->id] > position && value->step && value->step->collective != ETCH_NO_COLLECTIVE) {
        value->step->position = position;
        s->made_at[value->id] = position;
        value = etch_value_root(value->step->ins[0]);
    }
}

/* Values of the forward pass are sent to later stages only, those of the backward pass to earlier ones. */
static void check_backward_read(void *data, etch_value *value, etch_position at)
{
    reading *r = data;
    const staging *s = r->s;
    value = etch_value_memory(value, NULL); /* its own part of it a rank has wherever it reads that */
    const etch_position made = made_at(s, value);
    const bool recomputed = s->made_backward[value->id];
    if (r->failed || made == ETCH_NO_POSITION ||
        (recomputed ? made >= loop_begin(s, at) : made <= loop_end(s, at)))
        return;
    const char *name = value->tensor->name;
    const char *unit = s->stages->segments.at[etch_position_segment(at)].name;
    const char *maker = s->stages->segments.at[etch_position_segment(made)].name;
    etch_diag *diag =
        etch_error(s->p->graph->diags, ETCH_E_STAGE_UNIT, s->stages->line->span,
                   "the backward pass of unit '%s' of the stages reads %s, which '%s' %s", unit, name, maker,
                   recomputed ? "recomputes only after it" : "makes, a later unit");
    etch_note(diag, value->tensor->span, "%s is made here", name);
    if (recomputed)
        etch_help(diag, "let %s be kept, or give '%s' and '%s' one tag, and list that", name, maker, unit);
    r->failed = true;
    s->p->failed = true;
}

static void visit_backward(const staging *s, read_visitor *visit, void *data)
{
    const etch_placed_region *region = s->placed->backward;
    for (uint32_t i = 0; i < region->items.count; i++) {
        const etch_step *step = region->items.at[i].step;
        const etch_placed_loop *loop = region->items.at[i].loop;
        if (loop)
            visit_loop(loop, loop_begin(s, loop->position), loop->position, visit, data);
        for (uint32_t k = 0; step && !is_view(step) && k < step->in_count; k++)
            visit(data, step->ins[k], step->position);
    }
}

static void check_backward_order(staging *s)
{
    s->backward = true;
    reading r = {.s = s};
    visit_backward(s, check_backward_read, &r);
}

/* ---- weights ------------------------------------------------------------------------------------------- */

static void note_use(void *data, etch_value *value, etch_position at)
{
    const staging *s = data;
    const etch_tensor *tensor = etch_value_memory(value, NULL)->tensor;
    bool by_iteration = tensor->region->loop && etch_position_is_loop(s->stages, at);
    if (tensor->kind != ETCH_WEIGHT || by_iteration)
        return;
    etch_positions *uses = &s->stages->uses[tensor->id];
    uint32_t i = uses->count;
    for (uint32_t k = 0; k < uses->count; k++)
        if (uses->at[k] == at)
            return;
    ETCH_PUSH(s->p->arena, uses, at);
    for (; i > 0 && uses->at[i - 1] > at; i--)
        uses->at[i] = uses->at[i - 1];
    uses->at[i] = at;
}

static const etch_loop *outermost_loop(const etch_region *region)
{
    const etch_loop *loop = NULL;
    for (; region; region = region->parent)
        loop = region->loop ? region->loop : loop;
    return loop;
}

/* The stage position of what nothing reads: of its loop, or where the chain begins. */
static etch_position unread_position(const staging *s, const etch_tensor *weight)
{
    const etch_loop *loop = outermost_loop(weight->region);
    const etch_placed_region *forward = s->placed->forward;
    for (uint32_t i = 0; loop && i < forward->items.count; i++)
        if (forward->items.at[i].loop && forward->items.at[i].loop->loop == loop)
            return forward->items.at[i].loop->position;
    return chain_begin;
}

/* Weights that nothing reads are somewhere as well. */
static void find_unread(staging *s)
{
    const etch_graph *graph = s->p->graph;
    for (uint32_t i = 0; i < graph->weights.count; i++) {
        const etch_tensor *weight = graph->weights.at[i];
        const etch_position position = unread_position(s, weight);
        etch_positions *uses = &s->stages->uses[weight->id];
        if (uses->count == 0 && !(weight->region->loop && etch_position_is_loop(s->stages, position)))
            ETCH_PUSH(s->p->arena, uses, position);
    }
}

/* The forward pass says where weights are: backward runs where forward does. */
static void find_uses(staging *s)
{
    s->stages->uses = ETCH_NEW_ARRAY(s->p->arena, s->p->graph->tensors.count, etch_positions);
    for (uint32_t i = 0; i < s->placed->forward->items.count; i++) {
        const etch_placed_item *item = &s->placed->forward->items.at[i];
        if (item->loop)
            visit_loop(item->loop, item->loop->position, item->loop->position, note_use, s);
        else
            visit_operands(item->step, item->step->position, note_use, s);
    }
    find_unread(s);
}

etch_position etch_stage_position_of(const etch_placed *placed, const etch_loop *loop)
{
    return loop_position(placed->stages, loop);
}

const etch_positions *etch_weight_group_uses(const etch_placed *placed, const etch_weight_group *weight_group)
{
    return placed->stages ? &placed->stages->uses[weight_group->weights.at[0]->id] : NULL;
}

static bool same_uses(const etch_positions *a, const etch_positions *b)
{
    return a->count == b->count && (a->count == 0 || memcmp(a->at, b->at, a->count * sizeof *a->at) == 0);
}

/* The weight group for weights with these uses among those made of one group, from `first` on. */
static etch_weight_group *share_of_group(etch_placed *placed, uint32_t first, const etch_weight_group *whole,
                                         const etch_positions *uses)
{
    for (uint32_t i = first; i < placed->weight_groups.count; i++)
        if (same_uses(etch_weight_group_uses(placed, placed->weight_groups.at[i]), uses))
            return placed->weight_groups.at[i];
    etch_weight_group *share = ETCH_NEW(placed->arena, etch_weight_group);
    share->loop = whole->loop;
    share->body = whole->body;
    share->segment = whole->segment;
    share->id = placed->weight_groups.count;
    ETCH_PUSH(placed->arena, &placed->weight_groups, share);
    return share;
}

void etch_placed_weight_groups(etch_placed *placed)
{
    const etch_training *training = placed->training;
    for (uint32_t u = 0; u < training->weight_groups.count; u++) {
        etch_weight_group *weight_group = training->weight_groups.at[u];
        const uint32_t first = placed->weight_groups.count;
        if (!placed->stages) {
            ETCH_PUSH(placed->arena, &placed->weight_groups, weight_group);
            continue;
        }
        for (uint32_t i = 0; i < weight_group->weights.count; i++) {
            const etch_positions *uses = &placed->stages->uses[weight_group->weights.at[i]->id];
            etch_weight_group *share = share_of_group(placed, first, weight_group, uses);
            ETCH_PUSH(placed->arena, &share->weights, weight_group->weights.at[i]);
            ETCH_PUSH(placed->arena, &share->copies, weight_group->copies.at[i]);
        }
    }
}

/* ---- the segment points -------------------------------------------------------------------------------- */

static etch_position *no_positions(const staging *s)
{
    etch_position *positions = ETCH_NEW_ARRAY(s->p->arena, s->placed->value_count, etch_position);
    for (uint32_t i = 0; i < s->placed->value_count; i++)
        positions[i] = ETCH_NO_POSITION;
    return positions;
}

void etch_stages_find(etch_placer *p)
{
    if (!p->plan->stage)
        return;
    staging s = {.p = p, .placed = p->placed, .stages = ETCH_NEW(p->arena, etch_stages)};
    s.stages->line = p->plan->stage;
    if (!etch_stage_segments(p, s.stages))
        return;
    s.made_at = no_positions(&s);
    s.first = no_positions(&s);
    s.last = no_positions(&s);
    s.made_backward = ETCH_NEW_ARRAY(p->arena, p->placed->value_count, bool);
    set_positions(&s, p->placed->forward, false);
    s.first = no_positions(&s);
    if (p->placed->backward) {
        set_positions(&s, p->placed->backward, true);
        mark_backward_values(&s);
        visit_backward(&s, make_copies_early, &s);
    }
    check_order(&s);
    if (p->placed->backward && !p->failed)
        check_backward_order(&s);
    find_cuts(&s);
    find_uses(&s);
    p->placed->stages = s.stages;
}
