/* The run of a placed program. */
#include "graph/cost/live_run_int.h"

/* ---- steps --------------------------------------------------------------------------------------------- */

/* A gradient that ranks hold in parts is whole until it is reduced. */
static void make_result(etch_live_run *r, const etch_live_item *item, uint32_t k, uint32_t chunk)
{
    const etch_tensor *gradient = item->step->accumulate_into[k];
    if (!gradient) {
        if (item->step->outs[k]->sharded_flat)
            etch_live_make_part(r, item, k, chunk);
        else
            etch_live_make(r, item->outs.at[k]);
        return;
    }
    etch_live_put(r, item->outs.at[k], 0);
    etch_live_reach_copies(r, gradient->of, chunk);
    if (etch_zero_divides(r->program->placed, gradient->of, ETCH_HOLDS_GRADIENT)) /* else added up in place */
        etch_live_add_to_whole(r, item, k, chunk);
}

/* Is the result the memory of the operand: a view, or in backward a slice of what forward has made? A slice
 * of a weight is memory of its own, also of a copy that forward has gathered. */
static bool is_in_place(const etch_live_run *r, const etch_step *step)
{
    if (step->collective != ETCH_SLICE || step->copies || r->pass == ETCH_PASS_FORWARD)
        return etch_step_shows(step);
    const etch_live_memory *m = &r->memories.at[etch_live_memory_of(r, step->ins[0]->id)];
    return m->pass == ETCH_PASS_FORWARD && !m->is_weight;
}

/* Another name for the memory of an operand; of a part of it one that a message may bring by itself. */
static void show(etch_live_run *r, const etch_live_item *item, uint32_t name)
{
    const uint32_t id = etch_live_memory_of(r, item->ins.at[0]);
    const bool is_part = id && etch_step_shows(item->step) && !etch_op_is_view(item->step->op);
    etch_live_put(r, name, id);
    if (!is_part || r->memories.at[id].is_weight)
        return;
    etch_live_memory part = r->memories.at[id];
    part.name = name;
    part.part_of = id;
    etch_live_put(r, name, r->memories.count);
    ETCH_PUSH(r->arena, &r->memories, part);
}

static void run_step(etch_live_run *r, const etch_live_item *item, uint32_t chunk)
{
    const etch_step *step = item->step;
    const bool is_shard = step->collective == ETCH_SLICE && step->outs[0]->tensor->kind == ETCH_INPUT;
    const bool is_in = is_in_place(r, step);
    if (!etch_step_shows(step)) {
        etch_live_begin_event(r, chunk);
        etch_live_count_group(r, step, chunk);
        for (uint32_t k = 0; k < step->in_count && !is_in && !step->copies; k++)
            etch_live_read_name(r, step->ins[k]->id);
    }
    if (step->copies) {
        etch_live_gather(r, item, chunk);
        return;
    }
    for (uint32_t k = 0; k < item->outs.count; k++)
        etch_live_note_origin(r, item->outs.at[k], chunk);
    for (uint32_t k = 0; k < item->outs.count; k++)
        if (is_in)
            show(r, item, item->outs.at[k]);
        else if (is_shard || etch_is_zero(etch_live_bytes(r->program, item->outs.at[k])))
            etch_live_put(r, item->outs.at[k], 0); /* what is there anyway */
        else
            make_result(r, item, k, chunk);
}

/* ---- regions ------------------------------------------------------------------------------------------- */

static void run_region(etch_live_run *r, const etch_live_region *region, uint32_t chunk);

/* The memory of what a loop carries; 0: the chunk does not have it, and nothing there reads it. */
static uint32_t carried_memory(const etch_live_run *r, uint32_t name, uint32_t chunk)
{
    const uint32_t memory = etch_live_memory_of(r, name);
    return memory && etch_live_has(r, name, chunk) ? memory : 0;
}

/* What a pass has made and an iteration carries is there to its end. */
static void run_turn(etch_live_run *r, const etch_live_region *body, uint32_t chunk, uint32_t *carried)
{
    const bool is_top = r->open.count == 1;
    if (is_top)
        r->to_turn_end.count = 0;
    for (uint32_t k = 0; k < body->carries.count; k++)
        etch_live_put(r, body->carries.at[k].in, carried[k]);
    run_region(r, body, chunk);
    etch_live_begin_event(r, chunk);
    etch_live_event_now(r)->carries = true;
    for (uint32_t k = 0; k < body->carries.count; k++) {
        carried[k] = carried_memory(r, body->carries.at[k].out, chunk);
        if (carried[k] && !etch_live_is_from_forward(r, &r->memories.at[carried[k]]))
            ETCH_PUSH(r->arena, &etch_live_event_now(r)->reads, carried[k]);
    }
    for (uint32_t i = 0; is_top && i < r->to_turn_end.count; i++)
        ETCH_PUSH(r->arena, &etch_live_event_now(r)->reads, r->to_turn_end.at[i]);
}

/* Ends the span of the innermost loop before that, with the event now. */
static void begin_span(etch_live_run *r)
{
    etch_live_span *span = &r->spans.at[r->spans.count - 1];
    for (uint32_t i = 0; i < span->reads.count; i++)
        ETCH_PUSH(r->arena, &etch_live_event_now(r)->reads, span->reads.at[i]);
    span->reads.count = 0;
    span->begin = r->events.count;
}

static const etch_cut *cut_inside(const etch_stages *stages, uint32_t segment)
{
    for (uint32_t i = 0; i < stages->cuts.count; i++)
        if (stages->cuts.at[i].segment == segment && stages->cuts.at[i].inside)
            return &stages->cuts.at[i];
    return NULL;
}

/* What nothing after the cut reads is not carried over it. */
static void cut_loop(const etch_live_run *r, const etch_live_loop *loop, uint32_t before, uint32_t after,
                     uint32_t *carried)
{
    const etch_live_turns *turns = etch_live_turns_of(r, loop->loop);
    const etch_live_turn *later = &turns->at.at[before > after ? before : after];
    const etch_cut *cut = cut_inside(r->program->view->stages, etch_position_segment(loop->position));
    const bool goes_on = turns->at.at[before].chunk == turns->at.at[after].chunk;
    if (goes_on || !cut || !later->first || r->pass == ETCH_PASS_WEIGHTS)
        return;
    for (uint32_t k = 0; k < loop->bodies.at[0]->carries.count; k++)
        if (!etch_live_is_sent(r, cut, r->pass != ETCH_PASS_FORWARD, loop->bodies.at[0]->carries.at[k].in,
                               later->first))
            carried[k] = 0;
}

/* What enters the first iteration, which the chunk runs. */
static void enter_loop(etch_live_run *r, const etch_live_loop *loop, uint32_t chunk, uint32_t *carried)
{
    const etch_live_region *first = loop->bodies.at[0];
    const bool runs = etch_live_turns_of(r, loop->loop)->at.count > 0;
    for (uint32_t b = 0; b < loop->bodies.count; b++)
        for (uint32_t k = 0; k < first->carries.count; k++)
            r->enters[loop->bodies.at[b]->carries.at[k].in] = (etch_live_slot){loop, k};
    for (uint32_t k = 0; k < first->carries.count; k++) {
        const etch_live_carry *carry = &first->carries.at[k];
        if (carry->init != ETCH_NO_NAME) {
            carried[k] = runs ? carried_memory(r, carry->init, chunk) : etch_live_memory_of(r, carry->init);
            continue;
        }
        carried[k] = r->memories.count; /* zeros */
        etch_live_make(r, runs ? carry->in : carry->result);
    }
}

/* What the last iteration, which the chunk has run, carries. Of a loop without iterations that is what has
 * entered it, wherever that is. */
static void leave_loop(etch_live_run *r, const etch_live_loop *loop, uint32_t chunk, const uint32_t *carried)
{
    const etch_live_region *first = loop->bodies.at[0];
    for (uint32_t k = 0; k < first->carries.count; k++) {
        const uint32_t result = first->carries.at[k].result;
        etch_live_put(r, result, carried[k]);
        if (etch_live_turns_of(r, loop->loop)->at.count > 0)
            etch_live_note_origin(r, result, chunk);
    }
}

static void run_loop(etch_live_run *r, const etch_live_loop *loop, uint32_t chunk)
{
    etch_live_turns *turns = r->turns[etch_live_root_of(loop->loop)->id];
    uint32_t *carried = ETCH_NEW_ARRAY(r->arena, loop->bodies.at[0]->carries.count, uint32_t);
    const uint32_t count = turns->at.count, begin = loop->loop->forward && count ? count - 1 : 0;
    uint32_t span = 0;
    const bool is_top = r->open.count == 1;
    const etch_stage_view *view = is_top ? r->program->view : NULL;
    const bool is_staged = view && etch_position_is_loop(view->stages, loop->position);
    uint32_t here = is_staged && count ? turns->at.at[begin].chunk : chunk;
    etch_live_begin_event(r, here);
    r->interval += is_top;
    turns->now = begin;
    enter_loop(r, loop, here, carried);
    ETCH_PUSH(r->arena, &r->spans, (etch_live_span){.root = etch_live_root_of(loop->loop)});
    for (uint32_t t = 0; t < count; t++) {
        turns->now = loop->loop->forward ? count - 1 - t : t;
        const etch_live_turn *turn = &turns->at.at[turns->now];
        if (t == 0 || turn->span != span)
            begin_span(r);
        span = turn->span;
        if (is_staged && t > 0)
            cut_loop(r, loop, loop->loop->forward ? turns->now + 1 : turns->now - 1, turns->now, carried);
        here = is_staged ? turn->chunk : chunk;
        if (is_top) {
            r->turning = etch_live_root_of(loop->loop);
            r->turn = turns->now;
            etch_live_begin_iteration(r, loop, here);
        }
        run_turn(r, loop->bodies.at[turn->class], here, carried);
        if (is_top)
            etch_live_end_loop(r, here);
    }
    if (is_top)
        r->turning = NULL;
    if (is_top && !is_staged)
        etch_live_end_loop(r, chunk);
    begin_span(r);
    r->spans.count--;
    leave_loop(r, loop, here, carried);
    r->interval += is_top;
}

/* Goes as deep as loops are nested. */
static void run_region(etch_live_run *r, const etch_live_region *region, uint32_t chunk)
{
    const bool is_top = !region->of->loop;
    ETCH_PUSH(r->arena, &r->open, region->of);
    for (uint32_t i = 0; i < region->items.count; i++) {
        const etch_live_item *item = &region->items.at[i];
        const uint32_t here = is_top ? etch_live_chunk_at(r->program->view, item->position) : chunk;
        if (item->loop)
            run_loop(r, item->loop, here);
        else
            run_step(r, item, here);
    }
    r->open.count--;
}

/* Gradients are reduced with the second half of backward: those that the first has added to wait for it. */
static void take_gradients(etch_live_run *r)
{
    for (uint32_t i = 0; i < r->gradients.count; i++) {
        etch_live_begin_event(r, r->gradients.at[i].chunk);
        ETCH_PUSH(r->arena, &etch_live_event_now(r)->reads, r->gradients.at[i].memory);
    }
}

etch_live_run *etch_live_run_of(etch_live_program *p, const etch_valuation *values)
{
    etch_live_run *r = ETCH_NEW(p->arena, etch_live_run);
    *r = (etch_live_run){.program = p,
                         .sym = p->sym,
                         .arena = p->arena,
                         .values = values,
                         .reads_at = ETCH_NO_EVENT,
                         .turns = ETCH_NEW_ARRAY(p->arena, p->training->graph->loop_count, etch_live_turns *),
                         .memory_of = ETCH_NEW_ARRAY(p->arena, p->name_count, uint32_t *),
                         .enters = ETCH_NEW_ARRAY(p->arena, p->name_count, etch_live_slot),
                         .origins = ETCH_NEW_ARRAY(p->arena, p->name_count, etch_live_origin)};
    ETCH_PUSH(r->arena, &r->memories, (etch_live_memory){.pass = ETCH_PASSES});
    etch_live_find_groups(r);
    for (r->pass = ETCH_PASS_FORWARD; r->pass < ETCH_PASSES; r->pass++) {
        const etch_live_region *region = etch_live_pass_of(p, r->pass);
        if (!region)
            continue;
        etch_live_begin_pass(r);
        r->interval++;
        if (r->pass == ETCH_PASS_WEIGHTS)
            take_gradients(r);
        etch_live_find_turns(r, region);
        run_region(r, region, 0);
    }
    etch_live_gather_next(r);
    return r;
}
