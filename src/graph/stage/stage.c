/* Stages: a placed graph as a chain of units that may be cut between any two.
 *
 * requires: placed regions, before kernels are made. provides: the entries of the chain, the home of every
 * step and loop of the top level, what is alive where the chain may be cut, where weights are used.
 *
 * What the plan lists is at home where it is listed. Everything else of the forward pass runs where its last
 * operand that has a home is made; with none, where its first consumer runs. What is derived runs where its
 * forward op does; sums of cotangents where the last part of them arrives. A value crosses a cut as its
 * producer left it, but never as a partial sum: the move that resolves one, or that a pin asks for, runs with
 * the producer, every other move with its first consumer. */
#include <string.h>

#include "graph/stage/stage_int.h"

typedef struct staging {
    etch_placer *p;
    etch_placed *placed;
    etch_stages *stages;
    bool backward; /* along the backward pass, where homes fall */
    /* by value id */
    etch_home *since; /* where it is made; ETCH_NO_HOME: it can be had anywhere */
    etch_home *first; /* its first reader in the region in work */
    etch_home *last;  /* its last reader */
    bool *made_backward;
} staging;

/* Its first unit: with all of an entry that is a loop, each of its iterations would do what is done once. */
static const etch_home chain_begin = ETCH_FIRST_OF;

bool etch_home_is_loop(const etch_stages *stages, etch_home home)
{
    return etch_home_side(home) == ETCH_ALL_OF && stages->entries.at[etch_home_entry(home)].loop;
}

/* ---- homes ---------------------------------------------------------------------------------------------- */

static bool is_view(const etch_step *step)
{
    return step->op && step->move == ETCH_NO_MOVE && etch_op_is_view(step->op);
}

static etch_home later(const staging *s, etch_home a, etch_home b)
{
    if (a == ETCH_NO_HOME || b == ETCH_NO_HOME)
        return a == ETCH_NO_HOME ? b : a;
    return (a > b) != s->backward ? a : b;
}

static etch_home earlier(const staging *s, etch_home a, etch_home b)
{
    if (a == ETCH_NO_HOME || b == ETCH_NO_HOME)
        return a == ETCH_NO_HOME ? b : a;
    return (a < b) != s->backward ? a : b;
}

static etch_home since(const staging *s, etch_value *value)
{
    return s->since[etch_value_root(value)->id];
}

/* The iterations of a loop that come first and last in the order of the region. */
static etch_home loop_begin(const staging *s, etch_home home)
{
    etch_side side = s->backward ? ETCH_LAST_OF : ETCH_FIRST_OF;
    return etch_home_is_loop(s->stages, home) ? etch_home_at(etch_home_entry(home), side) : home;
}

static etch_home loop_end(const staging *s, etch_home home)
{
    etch_side side = s->backward ? ETCH_FIRST_OF : ETCH_LAST_OF;
    return etch_home_is_loop(s->stages, home) ? etch_home_at(etch_home_entry(home), side) : home;
}

/* ---- what is read ------------------------------------------------------------------------------------ */

typedef void read_visitor(void *data, etch_value *value, etch_home at);

/* What the body of a loop reads, at any depth. What it makes itself has no home, so that reading it says
 * nothing. Goes as deep as loops are nested. */
static void visit_body(const etch_placed_region *region, etch_home at, read_visitor *visit, void *data)
{
    for (uint32_t i = 0; i < region->items.count; i++) {
        const etch_step *step = region->items.at[i].step;
        const etch_placed_loop *loop = region->items.at[i].loop;
        for (uint32_t k = 0; step && !is_view(step) && k < step->in_count; k++)
            visit(data, step->ins[k], at);
        for (uint32_t k = 0; loop && k < etch_loop_carries(loop)->count; k++)
            if (etch_loop_carries(loop)->at[k].init)
                visit(data, etch_loop_carries(loop)->at[k].init, at);
        for (uint32_t k = 0; loop && k < loop->bodies.count; k++)
            visit_body(loop->bodies.at[k], at, visit, data);
    }
    for (uint32_t k = 0; k < region->carries.count; k++)
        visit(data, region->carries.at[k].out, at);
}

/* What a loop of the top level reads: the values that it begins with at `begin`, all else at `body`. */
static void visit_loop(const etch_placed_loop *loop, etch_home begin, etch_home body, read_visitor *visit,
                       void *data)
{
    for (uint32_t i = 0; i < etch_loop_carries(loop)->count; i++)
        if (etch_loop_carries(loop)->at[i].init)
            visit(data, etch_loop_carries(loop)->at[i].init, begin);
    for (uint32_t k = 0; k < loop->bodies.count; k++)
        visit_body(loop->bodies.at[k], body, visit, data);
}

/* ---- homes ---------------------------------------------------------------------------------------------- */

static etch_home loop_home(const etch_stages *stages, const etch_loop *loop)
{
    for (uint32_t i = 0; i < stages->entries.count; i++)
        if (stages->entries.at[i].loop == loop)
            return etch_home_at(i, ETCH_ALL_OF);
    return ETCH_NO_HOME;
}

static etch_home home_of_op(const staging *s, const etch_op *op)
{
    if (op->forward && s->p->steps[op->forward->id])
        return s->p->steps[op->forward->id]->home;
    const uint32_t entry = s->backward ? ETCH_NO_ENTRY : s->stages->entry_of_op[op->id];
    return entry == ETCH_NO_ENTRY ? ETCH_NO_HOME : etch_home_at(entry, ETCH_ALL_OF);
}

/* Does the move run with what makes its operand? */
static bool moves_at_once(const staging *s, const etch_step *step)
{
    const etch_value *from = step->ins[0], *to = step->outs[0];
    for (uint32_t a = 0; a < s->p->axis_count; a++)
        if (from->place[a] == ETCH_PARTIAL && to->place[a] != ETCH_PARTIAL)
            return true;
    return step->move == ETCH_SLICE || s->p->pinned[to->tensor->id] == to ||
           etch_place_equal(s->p, from->place, to->place); /* a statistic */
}

static void set_step_home(const staging *s, etch_step *step)
{
    etch_home ready = ETCH_NO_HOME; /* where its operands are */
    for (uint32_t i = 0; i < step->in_count; i++)
        ready = later(s, ready, since(s, step->ins[i]));
    if (step->move != ETCH_NO_MOVE) {
        step->home = moves_at_once(s, step) ? ready : ETCH_NO_HOME;
    } else {
        step->home = home_of_op(s, step->op);
        if (step->home == ETCH_NO_HOME)
            step->home = ready;
        ready = step->home;
    }
    for (uint32_t i = 0; i < step->out_count; i++)
        s->since[step->outs[i]->id] = ready;
}

typedef struct collecting {
    const staging *s;
    etch_home ready;
} collecting;

static void collect_ready(void *data, etch_value *value, etch_home at)
{
    collecting *c = data;
    (void)at;
    c->ready = later(c->s, c->ready, since(c->s, value));
}

static void set_loop_home(const staging *s, etch_placed_loop *loop)
{
    const etch_home home = loop_home(s->stages, loop->loop);
    if (loop->forward) {
        loop->home = loop->forward->home;
    } else if (home != ETCH_NO_HOME) {
        loop->home = home;
    } else {
        collecting c = {s, ETCH_NO_HOME};
        visit_loop(loop, 0, 0, collect_ready, &c);
        loop->home = c.ready;
    }
    for (uint32_t i = 0; i < etch_loop_carries(loop)->count; i++)
        if (etch_loop_carries(loop)->at[i].result)
            s->since[etch_loop_carries(loop)->at[i].result->id] = loop_end(s, loop->home);
}

static void note_first(void *data, etch_value *value, etch_home at)
{
    const staging *s = data;
    etch_home *first = &s->first[etch_value_root(value)->id];
    *first = earlier(s, *first, at);
}

/* What has no home yet gets that of its first reader. Items are gone through from the last on. */
static void settle_step(staging *s, etch_step *step)
{
    if (is_view(step)) {
        step->home = ETCH_NO_HOME; /* it does nothing */
        return;
    }
    for (uint32_t i = 0; step->home == ETCH_NO_HOME && i < step->out_count; i++)
        step->home = s->first[step->outs[i]->id];
    for (uint32_t i = 0; step->home == ETCH_NO_HOME && i < step->in_count; i++)
        step->home = since(s, step->ins[i]);
    if (step->home == ETCH_NO_HOME)
        step->home = chain_begin; /* made of nothing, for nobody */
    for (uint32_t i = 0; i < step->out_count; i++)
        s->since[step->outs[i]->id] = step->home;
    for (uint32_t i = 0; i < step->in_count; i++)
        note_first(s, step->ins[i], step->home);
}

static void settle_loop(staging *s, etch_placed_loop *loop)
{
    for (uint32_t i = 0; loop->home == ETCH_NO_HOME && i < etch_loop_carries(loop)->count; i++)
        if (etch_loop_carries(loop)->at[i].result)
            loop->home = s->first[etch_loop_carries(loop)->at[i].result->id];
    if (loop->home == ETCH_NO_HOME)
        loop->home = chain_begin;
    for (uint32_t i = 0; i < etch_loop_carries(loop)->count; i++)
        if (etch_loop_carries(loop)->at[i].result)
            s->since[etch_loop_carries(loop)->at[i].result->id] = loop_end(s, loop->home);
    visit_loop(loop, loop_begin(s, loop->home), loop_begin(s, loop->home), note_first, s);
}

static void set_homes(staging *s, const etch_placed_region *region, bool backward)
{
    s->backward = backward;
    for (uint32_t i = 0; i < region->items.count; i++) {
        if (region->items.at[i].loop)
            set_loop_home(s, region->items.at[i].loop);
        else if (!is_view(region->items.at[i].step))
            set_step_home(s, region->items.at[i].step);
    }
    for (uint32_t i = region->items.count; i-- > 0;) {
        if (region->items.at[i].loop)
            settle_loop(s, region->items.at[i].loop);
        else
            settle_step(s, region->items.at[i].step);
    }
}

/* ---- what is alive at a cut ---------------------------------------------------------------------------- */

/* `last` is kept in the order of the chain: for a value of the forward pass the greatest home that reads it,
 * in either pass; for one of the backward pass the least. `s->backward` is that of the value. */
static void note_last(void *data, etch_value *value, etch_home at)
{
    const staging *s = data;
    const uint32_t id = etch_value_root(value)->id;
    if (s->since[id] != ETCH_NO_HOME && s->made_backward[id] == s->backward)
        s->last[id] = later(s, s->last[id], at);
}

/* Reads of the region by values of one direction. */
static void note_reads(staging *s, const etch_placed_region *region, bool backward)
{
    s->backward = backward;
    for (uint32_t i = 0; i < region->items.count; i++) {
        const etch_placed_loop *loop = region->items.at[i].loop;
        const etch_step *step = region->items.at[i].step;
        if (loop) {
            visit_loop(loop, loop_begin(s, loop->home), loop_end(s, loop->home), note_last, s);
            continue;
        }
        for (uint32_t k = 0; !is_view(step) && k < step->in_count; k++)
            note_last(s, step->ins[k], step->home);
    }
}

/* Is a value that is made at `made` and read last at `last` alive where the chain is cut between the homes
 * `before` and `after`? */
static bool is_alive(const staging *s, etch_home made, etch_home last, etch_home before, etch_home after)
{
    if (made == ETCH_NO_HOME || last == ETCH_NO_HOME)
        return false;
    return s->backward ? made >= after && last <= before : made <= before && last >= after;
}

static const etch_placed_loop *placed_loop_at(const etch_placed_region *region, etch_home home)
{
    for (uint32_t i = 0; i < region->items.count; i++) {
        const etch_placed_loop *loop = region->items.at[i].loop;
        if (loop && loop->home == home)
            return loop;
    }
    return NULL;
}

typedef ETCH_VEC(etch_value *) value_list;

/* Each once: a loop may hand on what is alive around it as well. */
static void add_alive(const staging *s, value_list *list, etch_value *value, etch_home before,
                      etch_home after)
{
    if (is_alive(s, s->since[value->id], s->last[value->id], before, after))
        ETCH_PUSH(s->p->arena, list, value);
}

static value_list alive_at(staging *s, const etch_placed_region *region, bool backward, const etch_cut *cut)
{
    value_list list = {0};
    const etch_home before =
        cut->inside ? etch_home_at(cut->entry, ETCH_FIRST_OF) : etch_home_at(cut->entry - 1, ETCH_LAST_OF);
    const etch_home after = etch_home_at(cut->entry, cut->inside ? ETCH_LAST_OF : ETCH_FIRST_OF);
    s->backward = backward;
    for (uint32_t i = 0; i < region->items.count; i++) {
        const etch_step *step = region->items.at[i].step;
        const etch_placed_loop *loop = region->items.at[i].loop;
        for (uint32_t k = 0; step && !is_view(step) && k < step->out_count; k++)
            add_alive(s, &list, step->outs[k], before, after);
        for (uint32_t k = 0; loop && k < etch_loop_carries(loop)->count; k++)
            if (etch_loop_carries(loop)->at[k].result)
                add_alive(s, &list, etch_loop_carries(loop)->at[k].result, before, after);
    }
    const etch_placed_loop *cut_loop =
        cut->inside ? placed_loop_at(region, etch_home_at(cut->entry, ETCH_ALL_OF)) : NULL;
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

static void add_cut(staging *s, uint32_t entry, bool inside)
{
    etch_cut cut = {.entry = entry, .inside = inside};
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
    for (uint32_t i = 0; region && i < region->items.count; i++) {
        const etch_step *step = region->items.at[i].step;
        const etch_placed_loop *loop = region->items.at[i].loop;
        for (uint32_t k = 0; step && k < step->out_count; k++)
            s->made_backward[step->outs[k]->id] = true;
        for (uint32_t k = 0; loop && k < etch_loop_carries(loop)->count; k++)
            if (etch_loop_carries(loop)->at[k].result)
                s->made_backward[etch_loop_carries(loop)->at[k].result->id] = true;
    }
}

static void find_cuts(staging *s)
{
    mark_backward_values(s);
    note_reads(s, s->placed->forward, false);
    if (s->placed->backward) {
        note_reads(s, s->placed->backward, false); /* what backward reads of the forward pass */
        note_reads(s, s->placed->backward, true);
    }
    for (uint32_t i = 0; i < s->stages->entries.count; i++) {
        if (i > 0)
            add_cut(s, i, false);
        if (s->stages->entries.at[i].loop)
            add_cut(s, i, true);
    }
}

/* ---- order ---------------------------------------------------------------------------------------------- */

/* A chain is worked through in one direction: reports what reads at `home` and is made later. */
static bool check_reader(const staging *s, const char *reader, etch_span span, etch_home ready,
                         etch_home home)
{
    if (ready == ETCH_NO_HOME || ready <= home)
        return true;
    const char *other = s->stages->entries.at[etch_home_entry(ready)].name;
    etch_diag *diag = etch_error(s->p->graph->diags, ETCH_E_STAGE_UNIT, s->stages->line->span,
                                 "unit '%s' of the stages reads what '%s' computes, which comes later",
                                 s->stages->entries.at[etch_home_entry(home)].name, other);
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
        collecting c = {s, ETCH_NO_HOME};
        if (loop) {
            visit_loop(loop, 0, 0, collect_ready, &c);
            if (!check_reader(s, loop->loop->name, loop->loop->span, c.ready, loop_begin(s, loop->home)))
                return;
            continue;
        }
        if (is_view(step))
            continue;
        for (uint32_t k = 0; k < step->in_count; k++)
            if (!check_reader(s, step->ins[k]->tensor->name, step->outs[0]->tensor->span,
                              since(s, step->ins[k]), step->home))
                return;
    }
}

/* ---- weights -------------------------------------------------------------------------------------------- */

static void note_use(void *data, etch_value *value, etch_home at)
{
    const staging *s = data;
    const etch_tensor *tensor = etch_value_memory(value, NULL)->tensor;
    bool by_iteration = tensor->region->loop && etch_home_is_loop(s->stages, at);
    if (tensor->kind != ETCH_WEIGHT || by_iteration)
        return;
    etch_homes *uses = &s->stages->uses[tensor->id];
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

/* The home of what nothing reads: of its loop, or where the chain begins. */
static etch_home unread_home(const staging *s, const etch_tensor *weight)
{
    const etch_loop *loop = outermost_loop(weight->region);
    const etch_placed_region *forward = s->placed->forward;
    for (uint32_t i = 0; loop && i < forward->items.count; i++)
        if (forward->items.at[i].loop && forward->items.at[i].loop->loop == loop)
            return forward->items.at[i].loop->home;
    return chain_begin;
}

/* Weights that nothing reads are somewhere as well. */
static void find_unread(staging *s)
{
    const etch_graph *graph = s->p->graph;
    for (uint32_t i = 0; i < graph->weights.count; i++) {
        const etch_tensor *weight = graph->weights.at[i];
        const etch_home home = unread_home(s, weight);
        etch_homes *uses = &s->stages->uses[weight->id];
        if (uses->count == 0 && !(weight->region->loop && etch_home_is_loop(s->stages, home)))
            ETCH_PUSH(s->p->arena, uses, home);
    }
}

/* The forward pass says where weights are: backward runs where forward does. */
static void find_uses(staging *s)
{
    s->stages->uses = ETCH_NEW_ARRAY(s->p->arena, s->p->graph->tensors.count, etch_homes);
    for (uint32_t i = 0; i < s->placed->forward->items.count; i++) {
        const etch_step *step = s->placed->forward->items.at[i].step;
        const etch_placed_loop *loop = s->placed->forward->items.at[i].loop;
        if (loop)
            visit_loop(loop, loop->home, loop->home, note_use, s);
        for (uint32_t k = 0; step && !is_view(step) && k < step->in_count; k++)
            note_use(s, step->ins[k], step->home);
    }
    find_unread(s);
}

etch_home etch_stage_home_of(const etch_placed *placed, const etch_loop *loop)
{
    return loop_home(placed->stages, loop);
}

const etch_homes *etch_unit_uses(const etch_placed *placed, const etch_unit *unit)
{
    return placed->stages ? &placed->stages->uses[unit->weights.at[0]->id] : NULL;
}

static bool same_uses(const etch_homes *a, const etch_homes *b)
{
    return a->count == b->count && (a->count == 0 || memcmp(a->at, b->at, a->count * sizeof *a->at) == 0);
}

/* The unit for weights with these uses among those made of one unit, from `first` on. */
static etch_unit *part_of_unit(etch_placed *placed, uint32_t first, const etch_unit *whole,
                               const etch_homes *uses)
{
    for (uint32_t i = first; i < placed->units.count; i++)
        if (same_uses(etch_unit_uses(placed, placed->units.at[i]), uses))
            return placed->units.at[i];
    etch_unit *part = ETCH_NEW(placed->arena, etch_unit);
    part->loop = whole->loop;
    part->body = whole->body;
    part->segment = whole->segment;
    part->id = placed->units.count;
    ETCH_PUSH(placed->arena, &placed->units, part);
    return part;
}

void etch_placed_units(etch_placed *placed)
{
    const etch_training *training = placed->training;
    for (uint32_t u = 0; u < training->units.count; u++) {
        etch_unit *unit = training->units.at[u];
        const uint32_t first = placed->units.count;
        if (!placed->stages) {
            ETCH_PUSH(placed->arena, &placed->units, unit);
            continue;
        }
        for (uint32_t i = 0; i < unit->weights.count; i++) {
            const etch_homes *uses = &placed->stages->uses[unit->weights.at[i]->id];
            etch_unit *part = part_of_unit(placed, first, unit, uses);
            ETCH_PUSH(placed->arena, &part->weights, unit->weights.at[i]);
            ETCH_PUSH(placed->arena, &part->copies, unit->copies.at[i]);
        }
    }
}

/* ---- the door ------------------------------------------------------------------------------------------- */

static etch_home *no_homes(const staging *s)
{
    etch_home *homes = ETCH_NEW_ARRAY(s->p->arena, s->placed->value_count, etch_home);
    for (uint32_t i = 0; i < s->placed->value_count; i++)
        homes[i] = ETCH_NO_HOME;
    return homes;
}

static void forget_readers(const staging *s)
{
    for (uint32_t i = 0; i < s->placed->value_count; i++)
        s->first[i] = ETCH_NO_HOME;
}

void etch_stages_find(etch_placer *p)
{
    if (!p->plan->stage)
        return;
    staging s = {.p = p, .placed = p->placed, .stages = ETCH_NEW(p->arena, etch_stages)};
    s.stages->line = p->plan->stage;
    if (!etch_stage_chain(p, s.stages))
        return;
    s.since = no_homes(&s);
    s.first = no_homes(&s);
    s.last = no_homes(&s);
    s.made_backward = ETCH_NEW_ARRAY(p->arena, p->placed->value_count, bool);
    set_homes(&s, p->placed->forward, false);
    forget_readers(&s);
    if (p->placed->backward)
        set_homes(&s, p->placed->backward, true);
    check_order(&s);
    find_cuts(&s);
    find_uses(&s);
    p->placed->stages = s.stages;
}
