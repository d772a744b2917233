/* The programs whose live ranges are asked for: a training graph, and a placement of it. */
#include "graph/cost/live.h"

uint32_t etch_live_under(const etch_live_program *p, uint32_t name)
{
    while (p->names[name].shows != name)
        name = p->names[name].shows;
    return name;
}

/* A cache is counted by itself: here are the bytes of what a rolling one shows beside what it keeps. */
static etch_expr value_bytes(const etch_live_program *p, const etch_value *value)
{
    const etch_expr one = etch_value_bytes(p->placed, value);
    const etch_expr all = value->blocks ? etch_mul(p->sym, value->blocks, one) : one;
    const bool stays = etch_value_stays(value);
    return stays ? etch_sub(p->sym, all, etch_value_kept_bytes(p->placed, value)) : all;
}

etch_expr etch_live_bytes(const etch_live_program *p, uint32_t name)
{
    etch_live_name *n = &p->names[name];
    if (!n->bytes)
        n->bytes =
            p->placed ? value_bytes(p, n->value)
                      : etch_mul(p->sym, etch_elements(p->sym, n->tensor, etch_size_in_training, p->training),
                                 etch_int(p->sym, etch_dtype_bytes(n->tensor->dtype)));
    return n->bytes;
}

static etch_live_program *program_new(const etch_training *training, etch_arena *arena, uint32_t names)
{
    etch_live_program *p = ETCH_NEW(arena, etch_live_program);
    *p = (etch_live_program){.training = training,
                             .sym = training->graph->sym,
                             .arena = arena,
                             .names = ETCH_NEW_ARRAY(arena, names, etch_live_name),
                             .name_count = names};
    for (uint32_t i = 0; i < names; i++)
        p->names[i].shows = i;
    return p;
}

static void name_at(etch_live_program *p, uint32_t name, const etch_region *region, bool derived)
{
    if (name == ETCH_NO_NAME)
        return;
    p->names[name].region = region;
    p->names[name].derived = derived;
}

static void name_loop(etch_live_program *p, const etch_live_loop *loop, const etch_region *around,
                      bool derived)
{
    for (uint32_t c = 0; c < loop->bodies.count; c++)
        for (uint32_t k = 0; k < loop->bodies.at[c]->carries.count; k++) {
            const etch_live_carry *carry = &loop->bodies.at[c]->carries.at[k];
            name_at(p, carry->in, loop->bodies.at[c]->of, derived);
            name_at(p, carry->result, around, derived);
            p->names[carry->in].is_carried = !derived;
            if (carry->result != ETCH_NO_NAME)
                p->names[carry->result].is_carried = !derived;
        }
}

/* What no iteration changes is what has entered the loop. */
static void name_invariants(etch_live_program *p, const etch_live_loop *loop)
{
    for (uint32_t k = 0; k < etch_loop_carries(loop)->count; k++) {
        const etch_live_carry *first = &etch_loop_carries(loop)->at[k];
        bool is_invariant = first->init != ETCH_NO_NAME;
        for (uint32_t c = 0; c < loop->bodies.count && is_invariant; c++) {
            const etch_live_carry *carry = &loop->bodies.at[c]->carries.at[k];
            is_invariant = etch_live_under(p, carry->out) == carry->in;
        }
        for (uint32_t c = 0; c < loop->bodies.count && is_invariant; c++)
            p->names[loop->bodies.at[c]->carries.at[k].in].shows = first->init;
        if (is_invariant && first->result != ETCH_NO_NAME)
            p->names[first->result].shows = first->init;
    }
}

/* Iterations that gather a weight from outside of their loop leave one part of it, that of the last. */
static const etch_region *home_of(const etch_live_program *p, uint32_t name, const etch_region *region)
{
    const etch_value *value = p->names[name].value;
    const bool is_part = value && value->sharded_flat && value->step && value->step->phase == ETCH_FORWARD;
    const bool is_outer = is_part && !etch_region_is_in_loop(value->tensor->region, region->loop);
    return is_outer ? value->tensor->region : region;
}

static void add_item(etch_live_program *p, etch_live_region *to, etch_live_item item, bool derived)
{
    if (item.loop && !derived)
        name_invariants(p, item.loop);
    for (uint32_t i = 0; i < item.outs.count; i++) {
        name_at(p, item.outs.at[i], home_of(p, item.outs.at[i], to->of), derived);
        if (item.shows)
            p->names[item.outs.at[i]].shows = item.ins.at[0];
    }
    if (item.loop)
        name_loop(p, item.loop, to->of, derived);
    ETCH_PUSH(p->arena, &to->items, item);
}

/* ---- a training graph ---------------------------------------------------------------------------------- */

static uint32_t id_of(const etch_tensor *tensor)
{
    return tensor ? tensor->id : ETCH_NO_NAME;
}

/* Is it a value of the forward pass that would be gone if it were not kept? */
static bool is_made(const etch_tensor *tensor)
{
    return tensor->kind == ETCH_ACT && !tensor->of && tensor->producer &&
           tensor->producer->phase == ETCH_FORWARD;
}

/* Goes as deep as loops are nested. */
static etch_live_region *training_region(etch_live_program *p, const etch_region *region, bool derived)
{
    etch_live_region *to = ETCH_NEW(p->arena, etch_live_region);
    to->of = region;
    for (uint32_t i = 0; i < region->carries.count; i++) {
        const etch_carry *c = &region->carries.at[i];
        ETCH_PUSH(p->arena, &to->carries,
                  (etch_live_carry){id_of(c->init), id_of(c->in), id_of(c->out), id_of(c->result)});
    }
    for (uint32_t i = 0; i < region->items.count; i++) {
        const etch_op *op = region->items.at[i].op;
        const etch_loop *loop = region->items.at[i].loop;
        etch_live_item item = {.op = op, .position = ETCH_NO_POSITION};
        item.shows = op && op->row->role == ETCH_ROLE_FREE;
        item.reads = !item.shows;
        for (uint32_t k = 0; op && k < op->in_count; k++)
            ETCH_PUSH(p->arena, &item.ins, op->ins[k]->id);
        for (uint32_t k = 0; op && k < op->out_count; k++)
            ETCH_PUSH(p->arena, &item.outs, op->outs[k]->id);
        if (loop) {
            item.loop = ETCH_NEW(p->arena, etch_live_loop);
            *item.loop = (etch_live_loop){.loop = loop, .position = ETCH_NO_POSITION};
        }
        for (uint32_t k = 0; loop && k < loop->bodies.count; k++)
            ETCH_PUSH(p->arena, &item.loop->bodies, training_region(p, loop->bodies.at[k], derived));
        add_item(p, to, item, derived);
    }
    return to;
}

etch_live_program *etch_live_of_training(const etch_training *training)
{
    const etch_graph *graph = training->graph;
    etch_live_program *p = program_new(training, graph->arena, graph->tensors.count);
    for (uint32_t i = 0; i < graph->tensors.count; i++) {
        p->names[i].tensor = graph->tensors.at[i];
        p->names[i].counts = is_made(graph->tensors.at[i]);
    }
    p->forward = training_region(p, graph->forward, false);
    p->backward = training_region(p, training->backward, true);
    return p;
}

/* ---- a placement --------------------------------------------------------------------------------------- */

static uint32_t value_id(etch_live_program *p, const etch_value *value)
{
    if (!value)
        return ETCH_NO_NAME;
    p->names[value->id].tensor = value->tensor;
    p->names[value->id].value = value;
    return value->id;
}

/* Has forward made the value, or does a loop of it carry it on? */
static bool is_of_forward(const etch_value *value)
{
    if (value->step)
        return value->step->phase == ETCH_FORWARD;
    for (const etch_region *in = value->tensor->region; in && in->loop; in = in->parent)
        if (in->loop->forward || in->loop->repeats)
            return false;
    return !value->tensor->of;
}

/* Is it a part of what forward has made, which a later phase takes where it is? Of weights it is a copy. */
static bool is_taken_in_place(const etch_step *step)
{
    return step->collective == ETCH_SLICE && step->phase != ETCH_FORWARD && !step->copies &&
           step->ins[0]->tensor->kind != ETCH_WEIGHT && is_of_forward(etch_value_memory(step->ins[0], NULL));
}

/* Is the step in none of the halves of backward, but a name wherever it is read? */
static bool is_name(const etch_step *step)
{
    return etch_step_shows(step) || is_taken_in_place(step);
}

/* What a move of backward makes of a value is read in its place. */
static bool shows(const etch_step *step, bool derived)
{
    return is_name(step) || (derived && step->collective != ETCH_NO_COLLECTIVE && !step->copies);
}

/* Weights are there anyway, wherever forward gathers them, and so is a rank's own shard of an input. What the
 * first half of backward gathers, and the second reads, waits for it. */
static bool is_copied(const etch_step *step, const etch_tensor *tensor)
{
    const bool is_shard = tensor->kind == ETCH_INPUT && step->collective == ETCH_SLICE;
    const bool is_there = tensor->kind == ETCH_WEIGHT && step->phase == ETCH_FORWARD;
    return step->collective != ETCH_NO_COLLECTIVE && !is_there && !is_shard;
}

/* A part of what has been made, and no other name of all of it. */
static bool is_part(const etch_step *step)
{
    return etch_step_shows(step) && !etch_op_is_view(step->op);
}

/* Does the step of the top level cut a part off what another stage has, or another chunk had? */
static bool is_brought(const etch_live_program *p, const etch_step *step)
{
    const etch_part_place known = p->parts ? p->parts[step->id] : ETCH_PART_BY_POSITION;
    if (!is_part(step) || !p->view || step->position == ETCH_NO_POSITION || known == ETCH_PART_IS_THERE)
        return false;
    return known == ETCH_PART_IS_BROUGHT || !etch_stage_holds(p->view, step->position);
}

/* Would the value be gone if it were not kept? Of what a loop carries that may be so. */
static bool may_count(const etch_live_program *p, uint32_t name)
{
    const etch_live_name *under = &p->names[etch_live_under(p, name)];
    return under->counts || under->is_carried;
}

/* Has the result memory of its own that is gone if it is not kept? Gradients are added up in theirs. */
static bool is_result(const etch_step *step, uint32_t i)
{
    return step->phase == ETCH_FORWARD ? is_made(step->outs[i]->tensor) : !step->accumulate_into[i];
}

/* Does another stage move what backward reads here? Then a message brings what comes of it. */
static bool is_moved_elsewhere(const etch_live_program *p, const etch_step *step)
{
    return step->phase != ETCH_FORWARD && step->collective != ETCH_NO_COLLECTIVE && p->view &&
           step->position != ETCH_NO_POSITION && !etch_stage_holds(p->view, step->position);
}

/* The first half has run the loops that carry the value: it may be what one began with. */
static void add_beginnings(etch_live_program *p, etch_live_item *item, etch_value *value)
{
    while (p->begins_with && (value = p->begins_with[etch_value_memory(value, NULL)->id]) != NULL)
        ETCH_PUSH(p->arena, &item->ins, value_id(p, value));
}

static etch_live_item item_of_step(etch_live_program *p, const etch_step *step, bool is_top, bool derived)
{
    const etch_op *op = step->op ? step->op : step->provenance.op;
    p->last_op = op ? op : p->last_op;
    etch_live_item item = {.step = step,
                           .op = p->last_op,
                           .position = step->position,
                           .is_brought = is_top && !derived && is_brought(p, step),
                           .reads = !etch_step_shows(step) && step->collective != ETCH_SLICE};
    item.shows = shows(step, derived) && !item.is_brought && !(is_top && is_moved_elsewhere(p, step));
    for (uint32_t k = 0; !step->copies && k < step->in_count; k++)
        ETCH_PUSH(p->arena, &item.ins, value_id(p, step->ins[k]));
    for (uint32_t k = 0; derived && !item.shows && k < step->in_count; k++)
        add_beginnings(p, &item, step->ins[k]);
    for (uint32_t k = 0; k < step->out_count; k++) {
        const etch_tensor *tensor = step->outs[k]->tensor;
        ETCH_PUSH(p->arena, &item.outs, value_id(p, step->outs[k]));
        p->names[step->outs[k]->id].counts =
            item.is_brought ? may_count(p, item.ins.at[0])
                            : !derived && (is_copied(step, tensor) ||
                                           (step->collective == ETCH_NO_COLLECTIVE && is_result(step, k)));
    }
    return item;
}

/* Steps of a region that a program has: the last one is the second half of a program that has the names of
 * backward with the values that the first half makes. */
typedef enum half { BOTH_HALVES, FIRST_HALF, SECOND_HALF, SECOND_HALF_ONLY } half;

/* What is a part or a view of something is of both halves. */
static bool is_of_half(const etch_step *step, half which)
{
    if (is_name(step))
        return which != SECOND_HALF_ONLY;
    return which == BOTH_HALVES || step->weight_half == (which != FIRST_HALF);
}

/* Goes as deep as loops are nested. */
static etch_live_region *placed_region(etch_live_program *p, const etch_placed_region *region, half which,
                                       bool derived)
{
    etch_live_region *to = ETCH_NEW(p->arena, etch_live_region);
    to->of = region->of;
    for (uint32_t i = 0; i < region->carries.count; i++) {
        const etch_placed_carry *c = &region->carries.at[i];
        if (which != BOTH_HALVES && c->weight_half != (which != FIRST_HALF))
            continue;
        ETCH_PUSH(p->arena, &to->carries,
                  (etch_live_carry){value_id(p, c->init), value_id(p, c->in), value_id(p, c->out),
                                    value_id(p, c->result)});
    }
    for (uint32_t i = 0; i < region->items.count; i++) {
        const etch_step *step = region->items.at[i].step;
        const etch_placed_loop *loop = region->items.at[i].loop;
        etch_live_item item = {0};
        if (step && !is_of_half(step, which))
            continue;
        if (step) {
            item = item_of_step(p, step, !region->loop, derived);
        } else {
            item.loop = ETCH_NEW(p->arena, etch_live_loop);
            *item.loop = (etch_live_loop){.loop = loop->loop, .position = loop->position};
            item.position = loop->position;
        }
        for (uint32_t k = 0; loop && k < loop->bodies.count; k++)
            ETCH_PUSH(p->arena, &item.loop->bodies, placed_region(p, loop->bodies.at[k], which, derived));
        add_item(p, to, item, derived);
    }
    return to;
}

uint32_t etch_live_chunk_at(const etch_stage_view *view, etch_position position)
{
    if (!view)
        return 0;
    if (position == ETCH_NO_POSITION || etch_is_zero(etch_stage_share(view, position)))
        return ETCH_NO_CHUNK;
    const etch_layer_intervals *held = &view->ranges[etch_position_segment(position)];
    return held->at[etch_position_side(position) == ETCH_LAST_OF ? held->count - 1 : 0].chunk;
}

/* ---- parts in later chunks ----------------------------------------------------------------------------- */

static bool note_read(const etch_live_program *p, uint32_t name, uint32_t chunk, uint32_t *first)
{
    uint32_t *of = name == ETCH_NO_NAME ? NULL : &first[etch_live_under(p, name)];
    if (!of || *of <= chunk)
        return false;
    *of = chunk;
    return true;
}

/* What is read as a loop carries it may be what the loop begins with, or what an iteration carries. Goes as
 * deep as loops are nested. True when that was not known. */
static bool note_carried(const etch_live_program *p, const etch_live_region *region, uint32_t *first)
{
    bool changed = false;
    for (uint32_t i = 0; i < region->items.count; i++) {
        const etch_live_loop *loop = region->items.at[i].loop;
        for (uint32_t b = 0; loop && b < loop->bodies.count; b++) {
            const etch_live_region *body = loop->bodies.at[b];
            changed = note_carried(p, body, first) || changed;
            for (uint32_t k = 0; k < body->carries.count; k++) {
                const etch_live_carry *carry = &body->carries.at[k];
                uint32_t chunk = first[etch_live_under(p, carry->in)];
                if (carry->result != ETCH_NO_NAME && first[etch_live_under(p, carry->result)] < chunk)
                    chunk = first[etch_live_under(p, carry->result)];
                changed = note_read(p, carry->init, chunk, first) || changed;
                for (uint32_t c = 0; c < loop->bodies.count; c++)
                    changed = note_read(p, loop->bodies.at[c]->carries.at[k].out, chunk, first) || changed;
            }
        }
    }
    return changed;
}

/* What the items of a region, however deep, read in a chunk. `first`: by name under views, the first chunk
 * that reads it. */
static void note_reads(const etch_live_program *p, const etch_live_item *item, uint32_t chunk,
                       uint32_t *first)
{
    for (uint32_t i = 0; !item->shows && i < item->ins.count; i++)
        note_read(p, item->ins.at[i], chunk, first);
    for (uint32_t b = 0; item->loop && b < item->loop->bodies.count; b++)
        for (uint32_t i = 0; i < item->loop->bodies.at[b]->items.count; i++)
            note_reads(p, &item->loop->bodies.at[b]->items.at[i], chunk, first);
}

/* The same of a loop whose iterations are layers: each class where it has iterations. */
static void note_layers(const etch_live_program *p, const etch_live_loop *loop, uint32_t *first)
{
    const etch_layer_intervals *held = &p->view->ranges[etch_position_segment(loop->position)];
    for (uint32_t i = 0; i < held->count; i++)
        for (uint32_t b = 0; b < loop->bodies.count; b++) {
            const etch_live_region *body = loop->bodies.at[b];
            if (etch_is_zero(etch_class_count(p->sym, body->of, held->at[i].low, held->at[i].high)))
                continue;
            for (uint32_t k = 0; k < body->items.count; k++)
                note_reads(p, &body->items.at[k], held->at[i].chunk, first);
        }
}

static void note_pass(const etch_live_program *p, const etch_live_region *pass, uint32_t *first)
{
    for (uint32_t i = 0; pass && i < pass->items.count; i++) {
        const etch_live_item *item = &pass->items.at[i];
        if (item->loop && etch_position_is_loop(p->view->stages, item->position))
            note_layers(p, item->loop, first);
        else
            note_reads(p, item, etch_live_chunk_at(p->view, item->position), first);
    }
}

static const uint32_t *first_reads(const etch_live_program *p)
{
    uint32_t *first = ETCH_NEW_ARRAY(p->arena, p->name_count, uint32_t);
    for (uint32_t i = 0; i < p->name_count; i++)
        first[i] = ETCH_NO_CHUNK;
    for (etch_live_pass pass = ETCH_PASS_BACKWARD; pass < ETCH_PASSES; pass++)
        note_pass(p, etch_live_pass_of(p, pass), first);
    for (bool changed = true; changed;) { /* loops carry to each other */
        changed = false;
        for (etch_live_pass pass = ETCH_PASS_FORWARD; pass < ETCH_PASSES; pass++)
            if (etch_live_pass_of(p, pass))
                changed = note_carried(p, etch_live_pass_of(p, pass), first) || changed;
    }
    return first;
}

/* The stage cuts the part in a chunk whose backward pass reads nothing of the whole, nor does any before. */
static bool is_cut_before(const etch_live_program *p, const etch_live_item *item, const uint32_t *first)
{
    const uint32_t chunk = etch_live_chunk_at(p->view, item->position);
    const uint32_t read = first[etch_live_under(p, item->ins.at[0])];
    return item->shows && chunk != ETCH_NO_CHUNK && read != ETCH_NO_CHUNK && read > chunk;
}

/* Another stage cuts the part, and an earlier chunk of this one than reads it has kept the whole. */
static bool is_whole_before(const etch_live_program *p, const etch_live_item *item, const uint32_t *first)
{
    const uint32_t read = first[etch_live_under(p, item->ins.at[0])];
    bool before = item->is_brought && read != ETCH_NO_CHUNK;
    for (uint32_t i = 0; i < item->outs.count; i++)
        before = before && read < first[etch_live_under(p, item->outs.at[i])];
    return before;
}

/* By step id; NULL: positions say all. */
static const etch_part_place *find_parts(const etch_live_program *p)
{
    const uint32_t *first = first_reads(p);
    etch_part_place *parts = NULL;
    for (uint32_t i = 0; i < p->forward->items.count; i++) {
        const etch_live_item *item = &p->forward->items.at[i];
        if (!item->step || !is_part(item->step))
            continue;
        const bool is_brought = is_cut_before(p, item, first);
        if (!is_brought && !is_whole_before(p, item, first))
            continue;
        parts = parts ? parts : ETCH_NEW_ARRAY(p->arena, p->placed->step_count, etch_part_place);
        parts[item->step->id] = is_brought ? ETCH_PART_IS_BROUGHT : ETCH_PART_IS_THERE;
    }
    return parts;
}

static bool has_chunks(const etch_stage_view *view)
{
    for (uint32_t s = 0; view && s < view->stages->segments.count; s++)
        for (uint32_t i = 0; i < view->ranges[s].count; i++)
            if (view->ranges[s].at[i].chunk > 0)
                return true;
    return false;
}

/* What a program has of a placement: what makes values, forward (BOTH_HALVES) or the first half of backward;
 * what reads them; and does the second half read them by itself, for a run? */
typedef struct selection {
    half makes, reads;
    bool is_apart;
} selection;

static void find_beginnings(etch_live_program *p)
{
    p->begins_with = ETCH_NEW_ARRAY(p->arena, p->name_count, etch_value *);
    for (etch_placed_cursor at = {.root = p->placed->backward}; etch_placed_cursor_next(&at);)
        for (uint32_t b = 0; at.item->loop && b < at.item->loop->bodies.count; b++) {
            const etch_placed_region *body = at.item->loop->bodies.at[b];
            for (uint32_t k = 0; body->parent->loop && k < body->carries.count; k++)
                if (!body->carries.at[k].weight_half)
                    p->begins_with[body->carries.at[k].in->id] = body->carries.at[k].init;
        }
}

static etch_live_program *program_of(etch_arena *arena, const etch_placed *placed,
                                     const etch_stage_view *view, selection of, const etch_part_place *parts)
{
    etch_live_program *p = program_new(placed->training, arena, placed->value_count);
    p->placed = placed;
    p->view = placed->stages ? view : NULL;
    p->parts = parts;
    if (of.makes == BOTH_HALVES && of.reads == SECOND_HALF)
        find_beginnings(p);
    p->forward = of.makes == FIRST_HALF ? placed_region(p, placed->backward, FIRST_HALF, false)
                                        : placed_region(p, placed->forward, BOTH_HALVES, false);
    if (placed->backward)
        p->backward = placed_region(p, placed->backward, of.reads, true);
    if (of.is_apart)
        p->weights = placed_region(p, placed->backward, SECOND_HALF, true);
    return p;
}

static etch_live_program *selected(etch_arena *arena, const etch_placed *placed, const etch_stage_view *view,
                                   selection of)
{
    etch_live_program *p = program_of(arena, placed, view, of, NULL);
    const etch_part_place *parts = p->backward && has_chunks(p->view) ? find_parts(p) : NULL;
    return parts ? program_of(arena, placed, view, of, parts) : p;
}

/* One stage goes back without pause. */
static bool has_halves(const etch_placed *placed, const etch_stage_view *view)
{
    const etch_expr one = etch_int(placed->training->graph->sym, 1);
    if (!placed->stages || !placed->backward || !view)
        return false;
    const bool is_cut = view->numbers ? view->numbers->stages > 1 : view->stage_count != one;
    return is_cut && etch_schedule_has_halves(placed->stages->line->schedule);
}

etch_live_program *etch_live_of_placed(etch_arena *arena, const etch_placed *placed,
                                       const etch_stage_view *view, etch_hold hold)
{
    static const selection selections[ETCH_HOLD_COUNT] = {
        [ETCH_HOLD_FORWARD_TO_INPUTS] = {.makes = BOTH_HALVES, .reads = BOTH_HALVES},
        [ETCH_HOLD_FORWARD_TO_WEIGHTS] = {.makes = BOTH_HALVES, .reads = SECOND_HALF},
        [ETCH_HOLD_INPUTS_TO_WEIGHTS] = {.makes = FIRST_HALF, .reads = SECOND_HALF_ONLY},
    };
    return selected(arena, placed, view, selections[hold]);
}

etch_live_program *etch_live_of_passes(etch_arena *arena, const etch_placed *placed,
                                       const etch_stage_view *view)
{
    const bool is_apart = has_halves(placed, view);
    return selected(arena, placed, view,
                    (selection){BOTH_HALVES, is_apart ? FIRST_HALF : BOTH_HALVES, is_apart});
}

const etch_live_region *etch_live_pass_of(const etch_live_program *p, etch_live_pass pass)
{
    const etch_live_region *const passes[ETCH_PASSES] = {p->forward, p->backward, p->weights};
    return passes[pass];
}
