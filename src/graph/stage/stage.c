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

typedef struct read {
    etch_value *value;
    /* a loop begins with it */
    bool begins;
} read;

typedef ETCH_VEC(read) read_list;

/* The top level of a pass. */
typedef struct pass {
    const etch_placed_item *items;
    /* by item: what it reads */
    read_list *reads;
    uint32_t count;
} pass;

typedef struct staging {
    etch_placer *p;
    etch_placed *placed;
    etch_stages *stages;
    /* the second is empty where nothing is trained */
    pass forward_pass, backward_pass;
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

static etch_position *no_positions(const staging *s)
{
    etch_position *positions = ETCH_NEW_ARRAY(s->p->arena, s->placed->value_count, etch_position);
    for (uint32_t i = 0; i < s->placed->value_count; i++)
        positions[i] = ETCH_NO_POSITION;
    return positions;
}

/* ---- an item of the top level -------------------------------------------------------------------------- */

static bool is_view(const etch_placed_item *item)
{
    return item->step && item->step->collective == ETCH_NO_COLLECTIVE && etch_op_is_view(item->step->op);
}

static etch_position *position_of(const etch_placed_item *item)
{
    return item->step ? &item->step->position : &item->loop->position;
}

/* The results of an item, a view has none of its own; of a loop without a reader NULL. */
static uint32_t result_count(const etch_placed_item *item)
{
    if (item->loop)
        return etch_loop_carries(item->loop)->count;
    return is_view(item) ? 0 : item->step->out_count;
}

static etch_value *result_at(const etch_placed_item *item, uint32_t k)
{
    return item->step ? item->step->outs[k] : etch_loop_carries(item->loop)->at[k].result;
}

static void add_read(const staging *s, etch_value *value, bool begins, read_list *out)
{
    if (value)
        ETCH_PUSH(s->p->arena, out, (read){value, begins});
}

static void add_operands(const staging *s, const etch_placed_item *item, read_list *out)
{
    for (uint32_t i = 0; !is_view(item) && i < item->step->in_count; i++)
        add_read(s, item->step->ins[i], false, out);
}

static void add_carried(const staging *s, const etch_placed_loop *loop, bool outermost, read_list *out)
{
    for (uint32_t i = 0; i < etch_loop_carries(loop)->count; i++)
        add_read(s, etch_loop_carries(loop)->at[i].init, outermost, out);
    for (uint32_t k = 0; k < loop->bodies.count; k++)
        for (uint32_t i = 0; i < loop->bodies.at[k]->carries.count; i++)
            add_read(s, loop->bodies.at[k]->carries.at[i].out, false, out);
}

/* What an item reads, a loop at any depth. Values that a loop makes itself have no stage position, so that
 * reading them says nothing. */
static read_list reads_of(const staging *s, const etch_placed_item *item)
{
    read_list out = {0};
    if (item->step)
        add_operands(s, item, &out);
    else
        add_carried(s, item->loop, true, &out);
    for (uint32_t k = 0; item->loop && k < item->loop->bodies.count; k++)
        for (etch_placed_cursor at = {.root = item->loop->bodies.at[k]}; etch_placed_cursor_next(&at);)
            if (at.item->step)
                add_operands(s, at.item, &out);
            else
                add_carried(s, at.item->loop, false, &out);
    return out;
}

static pass pass_of(const staging *s, const etch_placed_region *region)
{
    pass out = {.count = region ? region->items.count : 0};
    out.items = region ? region->items.at : NULL;
    out.reads = ETCH_NEW_ARRAY(s->p->arena, out.count, read_list);
    for (uint32_t i = 0; i < out.count; i++)
        out.reads[i] = reads_of(s, &out.items[i]);
    return out;
}

/* ---- stage positions ----------------------------------------------------------------------------------- */

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
    const uint32_t resolved = etch_axes_held(s->p->plan, from->place, ETCH_PARTIAL) &
                              ~etch_axes_held(s->p->plan, to->place, ETCH_PARTIAL);
    return resolved || step->collective == ETCH_SLICE || s->p->pinned[to->tensor->id] == to ||
           etch_place_equal(s->p, from->place, to->place); /* a statistic */
}

/* Where the last of what an item reads is made. */
static etch_position ready_at(const staging *s, const read_list *reads)
{
    etch_position ready = ETCH_NO_POSITION;
    for (uint32_t k = 0; k < reads->count; k++)
        ready = nearer(s, ready, made_at(s, reads->at[k].value), true);
    return ready;
}

static void set_made(const staging *s, const etch_placed_item *item, etch_position at)
{
    for (uint32_t k = 0; k < result_count(item); k++)
        if (result_at(item, k))
            s->made_at[result_at(item, k)->id] = item->loop ? loop_end(s, at) : at;
}

static void set_position(const staging *s, const etch_placed_item *item, const read_list *reads)
{
    const etch_position ready = ready_at(s, reads);
    if (item->step && item->step->collective != ETCH_NO_COLLECTIVE) {
        item->step->position = moves_at_once(s, item->step) ? ready : ETCH_NO_POSITION;
        set_made(s, item, ready);
        return;
    }
    etch_position at = ETCH_NO_POSITION;
    if (item->step)
        at = position_of_op(s, item->step->op);
    else
        at = item->loop->forward ? item->loop->forward->position
                                 : etch_stage_position_of(s->placed, item->loop->loop);
    *position_of(item) = at == ETCH_NO_POSITION ? ready : at;
    set_made(s, item, *position_of(item));
}

/* Values without a stage position get that of their first reader. Items are gone through from the last on. */
static void settle(const staging *s, const etch_placed_item *item, const read_list *reads)
{
    etch_position at = *position_of(item);
    for (uint32_t k = 0; at == ETCH_NO_POSITION && k < result_count(item); k++)
        if (result_at(item, k))
            at = s->first[result_at(item, k)->id];
    for (uint32_t k = 0; at == ETCH_NO_POSITION && k < reads->count; k++)
        at = made_at(s, reads->at[k].value);
    if (at == ETCH_NO_POSITION)
        at = chain_begin; /* made of nothing, for nobody */
    *position_of(item) = at;
    set_made(s, item, at);
    for (uint32_t k = 0; k < reads->count; k++) {
        etch_position *first = &s->first[etch_value_root(reads->at[k].value)->id];
        *first = nearer(s, *first, item->loop ? loop_begin(s, at) : at, false);
    }
}

static void set_positions(staging *s, const pass *of, bool backward)
{
    s->backward = backward;
    s->first = no_positions(s);
    for (uint32_t i = 0; i < of->count; i++)
        if (!is_view(&of->items[i]))
            set_position(s, &of->items[i], &of->reads[i]);
    for (uint32_t i = of->count; i-- > 0;)
        if (is_view(&of->items[i]))
            of->items[i].step->position = ETCH_NO_POSITION; /* it does nothing */
        else
            settle(s, &of->items[i], &of->reads[i]);
}

/* ---- sums ---------------------------------------------------------------------------------------------- */

/* Which item of the region makes the value; a view counts. */
static uint32_t maker_of(const etch_placed_region *region, const etch_value *value)
{
    for (uint32_t i = 0; i < region->items.count; i++) {
        const etch_placed_item *item = &region->items.at[i];
        for (uint32_t k = 0; item->loop && k < etch_loop_carries(item->loop)->count; k++)
            if (etch_loop_carries(item->loop)->at[k].result == value)
                return i;
        if (item->step && item->step == value->step)
            return i;
    }
    return 0; /* it is there from the beginning */
}

/* Puts the last item of a region behind another one. */
static void move_behind(etch_placed_region *region, uint32_t other)
{
    const etch_placed_item moved = region->items.at[region->items.count - 1];
    for (uint32_t i = region->items.count - 1; i > other + 1; i--)
        region->items.at[i] = region->items.at[i - 1];
    region->items.at[other + 1] = moved;
}

/* Adds the first terms of a sum, and puts their sum in their place. */
static void add_first(const staging *s, etch_step *step, uint32_t count)
{
    etch_placed_region *region = s->placed->backward;
    etch_placer *p = s->p;
    const etch_op *op = step->op;
    uint32_t last = 0;
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t at = maker_of(region, step->ins[i]);
        last = at > last ? at : last;
    }
    p->region = region;
    p->phase = step->phase;
    p->scope = step->scope;
    step->ins[0] = etch_place_sum(p, op, step->ins, count, 0);
    move_behind(region, last);
    step->in_count -= count - 1;
    for (uint32_t i = 1; i < step->in_count; i++)
        step->ins[i] = step->ins[i + count - 1];
    etch_op *rest = ETCH_NEW(p->arena, etch_op);
    *rest = *op;
    rest->in_count = step->in_count;
    rest->ins = ETCH_NEW_ARRAY(p->arena, rest->in_count, etch_tensor *);
    for (uint32_t i = 0; i < rest->in_count; i++)
        rest->ins[i] = step->ins[i]->tensor;
    step->op = rest;
}

/* How far behind on the chain a term is made; what can be had anywhere is not. */
static uint32_t distance_of(const staging *s, const etch_step *step, uint32_t i)
{
    const etch_position at = made_at(s, step->ins[i]);
    return at == ETCH_NO_POSITION || at <= step->position ? 0 : at - step->position;
}

/* The terms of a sum in the order in which they arrive. */
static void sort_terms(const staging *s, etch_step *step)
{
    for (uint32_t i = 1; i < step->in_count; i++)
        for (uint32_t k = i; k > 0 && distance_of(s, step, k) > distance_of(s, step, k - 1); k--) {
            etch_value *term = step->ins[k];
            step->ins[k] = step->ins[k - 1];
            step->ins[k - 1] = term;
        }
}

/* Cotangents that come from several later units are added where they meet, so that one of them goes on along
 * the chain. True when there were any. */
static bool add_on_the_way(const staging *s)
{
    const etch_placed_region *region = s->placed->backward;
    bool any = false;
    for (uint32_t i = 0; region && i < region->items.count; i++) {
        etch_step *step = region->items.at[i].step;
        if (!step || !step->op || step->op->row->use != ETCH_USE_TOTAL)
            continue;
        sort_terms(s, step);
        for (uint32_t meet; step->in_count > 2 && (meet = distance_of(s, step, 1)) > 0; any = true) {
            uint32_t count = 2;
            while (count < step->in_count && distance_of(s, step, count) == meet)
                count++;
            add_first(s, step, count);
        }
    }
    return any;
}

/* ---- what is alive at a cut ---------------------------------------------------------------------------- */

/* Reads of the pass by values of one direction. `last` is kept in the order of the chain: for a value of the
 * forward pass the greatest stage position that reads it, in either pass; for one of the backward pass the
 * least. */
static void note_last(staging *s, const pass *of, bool backward)
{
    s->backward = backward;
    for (uint32_t i = 0; i < of->count; i++)
        for (uint32_t k = 0; k < of->reads[i].count; k++) {
            const read *r = &of->reads[i].at[k];
            const uint32_t id = etch_value_root(r->value)->id;
            const etch_position at = *position_of(&of->items[i]);
            const etch_position last = of->items[i].loop ? side_of_loop(s, at, r->begins) : at;
            if (s->made_at[id] != ETCH_NO_POSITION && s->made_backward[id] == backward)
                s->last[id] = nearer(s, s->last[id], last, true);
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

static const etch_placed_loop *loop_at(const pass *of, etch_position position)
{
    for (uint32_t i = 0; i < of->count; i++)
        if (of->items[i].loop && of->items[i].loop->position == position)
            return of->items[i].loop;
    return NULL;
}

static etch_value_list alive_at(staging *s, const pass *of, bool backward, const etch_cut *cut)
{
    etch_value_list list = {0};
    const etch_position before = cut->inside ? etch_position_at(cut->segment, ETCH_FIRST_OF)
                                             : etch_position_at(cut->segment - 1, ETCH_LAST_OF);
    const etch_position after = etch_position_at(cut->segment, cut->inside ? ETCH_LAST_OF : ETCH_FIRST_OF);
    s->backward = backward;
    for (uint32_t i = 0; i < of->count; i++)
        for (uint32_t k = 0; k < result_count(&of->items[i]); k++) {
            etch_value *value = result_at(&of->items[i], k);
            if (value && is_alive(s, s->made_at[value->id], s->last[value->id], before, after))
                ETCH_PUSH(s->p->arena, &list, value);
        }
    const etch_placed_loop *loop =
        cut->inside ? loop_at(of, etch_position_at(cut->segment, ETCH_ALL_OF)) : NULL;
    for (uint32_t k = 0; loop && k < etch_loop_carries(loop)->count; k++)
        ETCH_PUSH(s->p->arena, &list, etch_loop_carries(loop)->at[k].in);
    return list;
}

static etch_expr bytes_of(const staging *s, const etch_value_list *list)
{
    etch_expr bytes = etch_int(s->p->sym, 0);
    for (uint32_t i = 0; i < list->count; i++)
        bytes = etch_add(s->p->sym, bytes, etch_value_bytes(s->placed, list->at[i]));
    return bytes;
}

static void add_cut(staging *s, uint32_t segment, bool inside)
{
    etch_cut cut = {.segment = segment, .inside = inside};
    cut.forward = alive_at(s, &s->forward_pass, false, &cut);
    cut.backward = alive_at(s, &s->backward_pass, true, &cut);
    cut.forward_bytes = bytes_of(s, &cut.forward);
    cut.backward_bytes = bytes_of(s, &cut.backward);
    ETCH_PUSH(s->p->arena, &s->stages->cuts, cut);
}

static void mark_backward_values(const staging *s)
{
    const pass *of = &s->backward_pass;
    for (uint32_t i = 0; i < of->count; i++)
        for (uint32_t k = 0; k < result_count(&of->items[i]); k++)
            if (result_at(&of->items[i], k))
                s->made_backward[result_at(&of->items[i], k)->id] = true;
}

static void find_cuts(staging *s)
{
    note_last(s, &s->forward_pass, false);
    note_last(s, &s->backward_pass, false); /* what backward reads of the forward pass */
    note_last(s, &s->backward_pass, true);
    for (uint32_t i = 0; i < s->stages->segments.count; i++) {
        if (i > 0)
            add_cut(s, i, false);
        if (s->stages->segments.at[i].loop)
            add_cut(s, i, true);
    }
}

/* ---- order --------------------------------------------------------------------------------------------- */

static const char *unit_at(const staging *s, etch_position position)
{
    return s->stages->segments.at[etch_position_segment(position)].name;
}

/* A chain is worked through in one direction: reports what reads at `position` and is made later. */
static bool check_reader(const staging *s, const char *reader, etch_span span, etch_position ready,
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

static void check_order(staging *s)
{
    const pass *of = &s->forward_pass;
    s->backward = false;
    for (uint32_t i = 0; i < of->count; i++) {
        const etch_step *step = of->items[i].step;
        const etch_placed_loop *loop = of->items[i].loop;
        const read_list *reads = &of->reads[i];
        if (loop && !check_reader(s, loop->loop->name, loop->loop->span, ready_at(s, reads),
                                  loop_begin(s, loop->position)))
            return;
        for (uint32_t k = 0; step && k < reads->count; k++)
            if (!check_reader(s, reads->at[k].value->tensor->name, step->outs[0]->tensor->span,
                              made_at(s, reads->at[k].value), step->position))
                return;
    }
}

/* A copy of a value of the forward pass that backward reads in an earlier unit than forward does is made in
 * that unit: from there it goes along the chain. */
static void make_copies_early(const staging *s, etch_value *value, etch_position at)
{
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
static void check_backward_read(const staging *s, etch_value *value, etch_position at)
{
    value = etch_value_memory(value, NULL); /* its own part of it a rank has wherever it reads that */
    const etch_position made = made_at(s, value);
    const bool recomputed = s->made_backward[value->id];
    if (s->p->failed || made == ETCH_NO_POSITION ||
        (recomputed ? made >= loop_begin(s, at) : made <= loop_end(s, at)))
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

static void visit_backward(staging *s, void (*visit)(const staging *s, etch_value *value, etch_position at))
{
    const pass *of = &s->backward_pass;
    s->backward = true;
    for (uint32_t i = 0; i < of->count; i++)
        for (uint32_t k = 0; k < of->reads[i].count; k++) {
            const read *r = &of->reads[i].at[k];
            const etch_position at = *position_of(&of->items[i]);
            visit(s, r->value, r->begins ? loop_begin(s, at) : at);
        }
}

/* ---- weights ------------------------------------------------------------------------------------------- */

static void note_use(const staging *s, etch_value *value, etch_position at)
{
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
    const pass *of = &s->forward_pass;
    for (uint32_t i = 0; loop && i < of->count; i++)
        if (of->items[i].loop && of->items[i].loop->loop == loop)
            return of->items[i].loop->position;
    return chain_begin;
}

/* Weights that nothing reads are somewhere as well. */
static void find_unread(const staging *s)
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
static void find_uses(const staging *s)
{
    const pass *of = &s->forward_pass;
    s->stages->uses = ETCH_NEW_ARRAY(s->p->arena, s->p->graph->tensors.count, etch_positions);
    for (uint32_t i = 0; i < of->count; i++)
        for (uint32_t k = 0; k < of->reads[i].count; k++)
            note_use(s, of->reads[i].at[k].value, *position_of(&of->items[i]));
    find_unread(s);
}

etch_position etch_stage_position_of(const etch_placed *placed, const etch_loop *loop)
{
    for (uint32_t i = 0; i < placed->stages->segments.count; i++)
        if (placed->stages->segments.at[i].loop == loop)
            return etch_position_at(i, ETCH_ALL_OF);
    return ETCH_NO_POSITION;
}

const etch_positions *etch_weight_group_uses(const etch_placed *placed, const etch_weight_group *weight_group)
{
    return placed->stages ? &placed->stages->uses[weight_group->weights.at[0]->id] : NULL;
}

/* ---- all of it ----------------------------------------------------------------------------------------- */

static void find_positions(staging *s)
{
    s->forward_pass = pass_of(s, s->placed->forward);
    s->backward_pass = pass_of(s, s->placed->backward);
    s->made_at = no_positions(s);
    set_positions(s, &s->forward_pass, false);
    set_positions(s, &s->backward_pass, true);
}

void etch_stages_find(etch_placer *p)
{
    if (!p->plan->stage)
        return;
    staging s = {.p = p, .placed = p->placed, .stages = ETCH_NEW(p->arena, etch_stages)};
    s.stages->line = p->plan->stage;
    p->placed->stages = s.stages;
    if (!etch_stage_segments(p, s.stages))
        return;
    find_positions(&s);
    if (add_on_the_way(&s))
        find_positions(&s);
    s.last = no_positions(&s);
    s.made_backward = ETCH_NEW_ARRAY(p->arena, p->placed->value_count, bool);
    mark_backward_values(&s);
    visit_backward(&s, make_copies_early);
    check_order(&s);
    visit_backward(&s, check_backward_read);
    find_cuts(&s);
    find_uses(&s);
}
