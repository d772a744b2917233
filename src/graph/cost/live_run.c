/* The run of a placed program. */
#include "graph/cost/live_run.h"

/* What a step takes, in operations on formulas. */
enum { OPERATIONS_OF_STEP = 8 };

/* ---- turns --------------------------------------------------------------------------------------------- */

static const etch_loop *root_of(const etch_loop *loop)
{
    return etch_forward_body(loop->bodies.at[0])->loop;
}

const etch_live_turns *etch_live_turns_of(const etch_live_run *r, const etch_loop *loop)
{
    return r->turns[root_of(loop)->id];
}

/* Iterations in a row that one chunk runs, or none here. */
typedef struct piece {
    etch_expr low, high;
    uint32_t chunk;
} piece;

/* Those of a piece whose classes have one period; the first has the residue `phase`. */
typedef struct cell {
    const etch_loop *loop;
    const uint32_t *class_of;
    uint32_t period, phase, chunk;
    etch_expr low, high;
    etch_live_turns *out;
} cell;

static etch_expr valued(const etch_live_run *r, etch_expr amount)
{
    const etch_expr value = r->values ? r->values->put(r->values->data, amount) : NULL;
    return value && etch_is_constant(value) ? value : amount;
}

/* How many iterations at each end may differ from those between: a value may be carried by as many
 * iterations as there are carried values. */
static uint32_t end_turns(const etch_live_run *r, const etch_live_loop *loop)
{
    uint32_t late = 0;
    for (uint32_t c = 0; c < loop->bodies.count; c++)
        for (uint32_t k = 0; k < loop->bodies.at[c]->carries.count; k++) {
            const uint32_t out = etch_live_under(r->program, loop->bodies.at[c]->carries.at[k].out);
            for (uint32_t i = 0; i < loop->bodies.at[c]->carries.count; i++)
                late += i != k && loop->bodies.at[c]->carries.at[i].in == out;
        }
    return 1 + late;
}

static uint32_t class_of(const cell *c, uint64_t iteration)
{
    return c->class_of ? c->class_of[(c->phase + iteration) % c->period] : 0;
}

static void add_turns(const etch_live_run *r, const cell *c, uint64_t first, uint64_t count, etch_expr copies)
{
    const uint32_t begin = c->out->at.count;
    for (uint64_t i = first; i < first + count; i++) {
        const uint32_t span = copies == etch_int(r->sym, 1) ? c->out->at.count : begin;
        if (class_of(c, i) != ETCH_NO_CLASS)
            ETCH_PUSH(r->arena, &c->out->at,
                      (etch_live_turn){.class = class_of(c, i),
                                       .copies = copies,
                                       .first = etch_add(r->sym, c->low, etch_int(r->sym, (int64_t)i)),
                                       .stride = c->period,
                                       .chunk = c->chunk,
                                       .span = span});
    }
}

/* Of an open number of iterations: those of a class that no other turn stands for are of its first turn
 * between. */
static void count_open(const etch_live_run *r, const cell *c, uint32_t begin)
{
    etch_sym *sym = r->sym;
    bool *done = ETCH_NEW_ARRAY(r->arena, c->loop->bodies.count, bool);
    for (uint32_t t = begin; t < c->out->at.count; t++) {
        etch_live_turn *turn = &c->out->at.at[t];
        int64_t others = 0;
        turn->first = NULL;
        if (!etch_is_zero(turn->copies))
            continue;
        for (uint32_t i = begin; i < c->out->at.count; i++)
            others += c->out->at.at[i].class == turn->class && !etch_is_zero(c->out->at.at[i].copies);
        if (!done[turn->class])
            turn->copies =
                etch_sub(sym, etch_class_count(sym, c->loop->bodies.at[turn->class], c->low, c->high),
                         etch_int(sym, others));
        done[turn->class] = true;
    }
}

static void abridge(const etch_live_run *r, const cell *c, uint32_t ends)
{
    etch_sym *sym = r->sym;
    const uint32_t begin = c->out->at.count;
    const uint64_t side = (uint64_t)ends * c->period;
    const etch_expr one = etch_int(sym, 1);
    int64_t length;
    if (!etch_to_i64(etch_sub(sym, c->high, c->low), &length)) {
        add_turns(r, c, 0, side, one);
        add_turns(r, c, side, c->period, etch_int(sym, 0));
        add_turns(r, c, side + c->period, side, one);
        count_open(r, c, begin);
        return;
    }
    if (length <= 0) /* a count below 0 is refused when it is used */
        return;
    const uint64_t count = (uint64_t)length;
    if (count <= 2 * side + c->period) {
        add_turns(r, c, 0, count, one);
        return;
    }
    const uint64_t first = side + (count - 2 * side) % c->period, rest = count - first - side;
    add_turns(r, c, 0, first, one);
    add_turns(r, c, first, c->period, etch_int(sym, (int64_t)(rest / c->period)));
    add_turns(r, c, count - side, side, one);
}

static void add_piece(const etch_live_run *r, const etch_live_loop *loop, piece p, etch_live_turns *out)
{
    etch_sym *sym = r->sym;
    const etch_pattern *pattern = loop->loop->pattern;
    const uint32_t ends = end_turns(r, loop);
    cell c = {.loop = loop->loop, .period = 1, .chunk = p.chunk, .low = p.low, .high = p.high, .out = out};
    if (!pattern) {
        abridge(r, &c, ends);
        return;
    }
    c.period = pattern->period;
    for (uint32_t i = 0; i < pattern->segments.count; i++) {
        int64_t first = 0;
        c.class_of = pattern->segments.at[i].class_of;
        c.low = etch_larger(sym, valued(r, pattern->segments.at[i].first), p.low);
        c.high = etch_larger(sym, etch_smaller(sym, valued(r, pattern->segments.at[i].end), p.high), c.low);
        c.phase = etch_to_i64(c.low, &first) && first > 0 ? (uint32_t)(first % c.period) : 0;
        abridge(r, &c, ends);
    }
}

static void find_turns(const etch_live_run *r, const etch_live_loop *loop, bool is_top)
{
    const etch_loop *root = root_of(loop->loop);
    const etch_stage_view *view = r->program->view;
    const etch_expr count = valued(r, root->count);
    etch_live_turns *turns = r->turns[root->id] = ETCH_NEW(r->arena, etch_live_turns);
    if (!is_top || !view || !etch_position_is_loop(view->stages, loop->position)) {
        add_piece(r, loop, (piece){etch_int(r->sym, 0), count, ETCH_NO_CHUNK}, turns);
        return;
    }
    const etch_layer_intervals *held = &view->ranges[etch_position_segment(loop->position)];
    etch_expr low = etch_int(r->sym, 0);
    for (uint32_t i = 0; i < held->count; i++) {
        const etch_expr first = valued(r, held->at[i].low), end = valued(r, held->at[i].high);
        if (low != first)
            add_piece(r, loop, (piece){low, first, ETCH_NO_CHUNK}, turns);
        add_piece(r, loop, (piece){first, end, held->at[i].chunk}, turns);
        low = end;
    }
    const etch_position last = etch_position_at(etch_position_segment(loop->position), ETCH_LAST_OF);
    if (low != count && etch_is_zero(etch_stage_share(view, last)))
        add_piece(r, loop, (piece){low, count, ETCH_NO_CHUNK}, turns);
}

/* Goes as deep as loops are nested. */
static void find_all_turns(const etch_live_run *r, const etch_live_region *region)
{
    for (uint32_t i = 0; i < region->items.count; i++) {
        const etch_live_loop *loop = region->items.at[i].loop;
        if (loop && !etch_live_turns_of(r, loop->loop))
            find_turns(r, loop, !region->of->loop);
        for (uint32_t k = 0; loop && k < loop->bodies.count; k++)
            find_all_turns(r, loop->bodies.at[k]);
    }
}

/* ---- memory -------------------------------------------------------------------------------------------- */

/* A number for the turns of the loops around a region that are run, below `size`. */
static uint32_t turns_at(const etch_live_run *r, const etch_region *region, uint32_t *size)
{
    uint32_t index = 0;
    *size = 1;
    for (const etch_region *body = region; body && body->loop; body = body->parent) {
        const etch_live_turns *turns = etch_live_turns_of(r, body->loop);
        index = index * turns->at.count + turns->now;
        *size *= turns->at.count;
    }
    return index;
}

/* By the turns of the loops around a name; NULL: it is an input or a weight. */
static uint32_t *slot_of(const etch_live_run *r, uint32_t name)
{
    const etch_region *region = r->program->names[name].region;
    uint32_t size;
    if (!region)
        return NULL;
    const uint32_t index = turns_at(r, region, &size);
    if (!r->memory_of[name])
        r->memory_of[name] = ETCH_NEW_ARRAY(r->arena, size, uint32_t);
    return &r->memory_of[name][index];
}

uint32_t etch_live_memory_of(const etch_live_run *r, uint32_t name)
{
    const uint32_t *slot = name == ETCH_NO_NAME ? NULL : slot_of(r, name);
    return slot ? *slot : 0;
}

uint32_t etch_live_memory_in(const etch_live_run *r, uint32_t name, uint32_t turn)
{
    return r->memory_of[name] ? r->memory_of[name][turn] : 0;
}

static void bind(const etch_live_run *r, uint32_t name, uint32_t memory)
{
    if (name != ETCH_NO_NAME)
        *slot_of(r, name) = memory;
}

static etch_live_event *event_now(const etch_live_run *r)
{
    return &r->events.at[r->events.count - 1];
}

static void begin_event(etch_live_run *r, uint32_t chunk)
{
    etch_sym_charge(r->sym, OPERATIONS_OF_STEP);
    ETCH_PUSH(r->arena, &r->events,
              (etch_live_event){.pass = r->pass, .chunk = chunk, .loop = r->turning, .turn = r->turn});
}

static etch_live_level *levels_of(const etch_live_run *r)
{
    etch_live_level *levels = ETCH_NEW_ARRAY(r->arena, r->spans.count, etch_live_level);
    for (uint32_t i = 0; i < r->spans.count; i++)
        levels[i] = (etch_live_level){.root = r->spans.at[i].root,
                                      .turn = r->turns[r->spans.at[i].root->id]->now,
                                      .begin = r->spans.at[i].begin};
    return levels;
}

static etch_live_memory *make(etch_live_run *r, uint32_t name)
{
    const etch_live_memory made = {.name = name,
                                   .pass = r->pass,
                                   .saved_from = ETCH_NO_CHUNK,
                                   .is_weight = r->program->names[name].tensor->kind == ETCH_WEIGHT,
                                   .lasts = ETCH_KEEP_MICROBATCH,
                                   .each = etch_int(r->sym, 1),
                                   .instances = etch_int(r->sym, 1),
                                   .copies = etch_int(r->sym, 1),
                                   .levels = levels_of(r),
                                   .level_count = r->spans.count};
    ETCH_PUSH(r->arena, &event_now(r)->makes, r->memories.count);
    bind(r, name, r->memories.count);
    ETCH_PUSH(r->arena, &r->memories, made);
    return &r->memories.at[r->memories.count - 1];
}

static bool is_open(const etch_live_run *r, const etch_region *body)
{
    for (uint32_t i = 0; i < r->open.count; i++)
        if (r->open.at[i] == body)
            return true;
    return false;
}

static const etch_live_turn *turn_of(const etch_live_run *r, const etch_region *body)
{
    const etch_live_turns *turns = etch_live_turns_of(r, body->loop);
    return &turns->at.at[turns->now];
}

/* How many iterations the turns stand for in which the region is run; `outer`: of the loop of the top level,
 * too. */
static etch_expr copies_of(const etch_live_run *r, const etch_region *region, bool outer)
{
    etch_expr copies = etch_int(r->sym, 1);
    for (; region->loop && (outer || region->parent->loop); region = region->parent)
        copies = etch_mul(r->sym, copies, turn_of(r, region)->copies);
    return copies;
}

/* Is the memory made in iterations of the loop? What enters it may be known by names in there as well. */
static bool is_made_in(const etch_live_run *r, const etch_live_memory *m, const etch_loop *loop)
{
    return etch_region_is_in_loop(r->program->names[m->name].region, loop);
}

/* Has forward made it, for backward? */
static bool is_from_forward(const etch_live_run *r, const etch_live_memory *m)
{
    return m->pass == ETCH_PASS_FORWARD && r->pass != ETCH_PASS_FORWARD;
}

/* Has the first half of backward made it, for the second? */
static bool waits(const etch_live_run *r, const etch_live_memory *m)
{
    return m->pass == ETCH_PASS_BACKWARD && r->pass == ETCH_PASS_WEIGHTS;
}

/* Copies that are gathered together are gone together, but for what waits. */
static void read_memory(etch_live_run *r, uint32_t id)
{
    const etch_live_memory *m = &r->memories.at[id];
    const bool is_together = m->is_gathered && !waits(r, m);
    const uint32_t first = is_together ? m->first : id, count = is_together ? m->together : 1;
    for (uint32_t i = first; i < first + count; i++) {
        ETCH_PUSH(r->arena, &event_now(r)->reads, i);
        if (m->is_gathered && is_from_forward(r, m))
            r->memories.at[i].copies = r->memories.at[i].lasting;
    }
}

/* The memory that other iterations have made, which a turn of the loop stands for. */
static uint32_t others_of(etch_live_run *r, uint32_t id, const etch_loop *root, etch_expr copies)
{
    const etch_live_memory *m = &r->memories.at[id];
    uint32_t i = 0;
    while (m->levels[i].root != root)
        i++;
    etch_live_level *level = &m->levels[i];
    if (level->others)
        return level->others;
    etch_live_memory others = *m;
    others.copies = copies;
    level->others = r->memories.count;
    ETCH_PUSH(r->arena, &r->events.at[level->begin].makes, level->others);
    ETCH_PUSH(r->arena, &r->memories, others);
    return level->others;
}

/* Where the loop is undone, or repeated, each iteration reads its own: those of others are there to the end
 * of the turns that stand for them. */
static void read_others(etch_live_run *r, uint32_t others, const etch_loop *root)
{
    for (uint32_t i = r->spans.count; i-- > 0;)
        if (r->spans.at[i].root == root) {
            ETCH_PUSH(r->arena, &r->spans.at[i].reads, others);
            return;
        }
    ETCH_PUSH(r->arena, &event_now(r)->reads, others);
}

/* The memory that the iterations of a turn carry where one enters them by this name: it is what enters the
 * first turn after those of the span. 0: they make none. */
static uint32_t carried_memory(const etch_live_run *r, uint32_t name, const etch_loop *root)
{
    const etch_live_slot *slot = &r->enters[etch_live_under(r->program, name)];
    etch_live_turns *turns = r->turns[root->id];
    const uint32_t now = turns->now;
    if (!slot->loop || root_of(slot->loop->loop) != root)
        return 0;
    uint32_t after = now;
    while (after < turns->at.count && turns->at.at[after].span == turns->at.at[now].span)
        after++;
    if (after == turns->at.count)
        return 0;
    turns->now = after;
    const etch_live_region *body = slot->loop->bodies.at[turns->at.at[after].class];
    const uint32_t memory = etch_live_memory_of(r, body->carries.at[slot->carry].in);
    turns->now = now;
    return memory;
}

/* Has a turn of the span at work made the memory? */
static bool is_of_span(const etch_live_run *r, uint32_t id, const etch_loop *root)
{
    const etch_live_turns *turns = r->turns[root->id];
    const etch_live_memory *m = &r->memories.at[id];
    for (uint32_t i = 0; i < m->level_count; i++)
        if (m->levels[i].root == root)
            return turns->at.at[m->levels[i].turn].span == turns->at.at[turns->now].span;
    return false;
}

/* Reading a name from outside of the loops that make the memory. Of what is saved it is known how much there
 * is: not when. */
static void count_copies(etch_live_run *r, uint32_t name, uint32_t id)
{
    const etch_expr one = etch_int(r->sym, 1);
    const etch_live_memory *m = &r->memories.at[id];
    const bool is_apart = !m->part_of && !m->is_gathered && !is_from_forward(r, m) && !waits(r, m);
    const etch_region *body = r->program->names[name].region;
    etch_expr copies = one;
    for (; body->loop && !is_open(r, body); body = body->parent) {
        const etch_expr turns = turn_of(r, body)->copies;
        if (turns == one || !is_made_in(r, &r->memories.at[id], body->loop))
            continue;
        const etch_loop *root = root_of(body->loop);
        const etch_expr more = etch_mul(r->sym, etch_sub(r->sym, turns, one), copies);
        /* what enters the first of these iterations may be of an earlier one */
        const uint32_t own = is_of_span(r, id, root) ? id : carried_memory(r, name, root);
        if (is_apart && is_of_span(r, own, root))
            read_others(r, others_of(r, own, root, more), root);
        copies = etch_mul(r->sym, copies, turns);
    }
    if (copies != one && !is_apart && !r->memories.at[id].is_gathered)
        r->memories.at[id].copies = copies;
}

static void read_name(etch_live_run *r, uint32_t name)
{
    const uint32_t id = etch_live_memory_of(r, name);
    if (id == 0)
        return;
    etch_live_memory *m = &r->memories.at[id];
    read_memory(r, id);
    for (uint32_t all = id; all; all = r->memories.at[all].part_of)
        count_copies(r, name, all);
    m = &r->memories.at[id];
    if (is_from_forward(r, m) && !m->is_weight && event_now(r)->chunk < m->saved_from)
        m->saved_from = event_now(r)->chunk;
}

/* ---- steps --------------------------------------------------------------------------------------------- */

/* The event now is the first one of a weight group. */
static void begin_group(etch_live_run *r)
{
    ETCH_PUSH(r->arena, &r->groups, r->events.count - 1);
    r->group_begins = r->group_computes = false;
}

/* Of the top level: what lies between loops is cut where something is gathered after what has computed. */
static void note_step_of_group(etch_live_run *r, const etch_step *step)
{
    if (r->group_begins || (step->copies && r->group_computes))
        begin_group(r);
    r->group_computes = r->group_computes || !step->copies;
}

/* The event with which the weight group begins that is as many weight groups before the one in work as
 * weights are gathered ahead. */
static uint32_t gathered_at(const etch_live_run *r)
{
    const uint64_t ahead = r->program->placed->plan->zero.ahead;
    const uint32_t last = r->groups.count - 1;
    return ahead == 0 ? r->events.count - 1 : r->groups.at[ahead < last ? last - (uint32_t)ahead : 0];
}

/* Has an earlier iteration of this loop gathered it? */
static bool is_gathered_again(const etch_live_run *r, uint32_t name)
{
    const etch_region *body = r->program->names[name].region;
    const etch_live_turns *turns = body->loop ? etch_live_turns_of(r, body->loop) : NULL;
    for (uint32_t t = 0; turns && r->memory_of[name] && t < turns->at.count; t++)
        if (t != turns->now && r->memory_of[name][t] != 0)
            return true;
    return false;
}

/* Gathered copies are there to the end of their weight group; those of the iterations that come next as
 * well. */
static void gather(etch_live_run *r, const etch_live_item *item, uint32_t chunk)
{
    const uint32_t first = r->memories.count;
    const etch_region *body = r->open.at[r->open.count - 1];
    const etch_keep lasts = item->step->lasts;
    const etch_expr all = etch_int(r->sym, (int64_t)r->program->placed->plan->zero.ahead + 1);
    const uint32_t since = gathered_at(r);
    const bool is_always = lasts == ETCH_KEEP_STEP || (lasts == ETCH_KEEP_MICROBATCH && r->program->view);
    for (uint32_t k = 0; k < item->outs.count; k++) {
        const bool again = is_gathered_again(r, item->outs.at[k]);
        etch_live_memory *m = make(r, item->outs.at[k]);
        m->is_gathered = true;
        m->chunk = chunk;
        m->interval = r->interval;
        m->first = first;
        m->together = item->outs.count;
        m->lasts = lasts;
        if (!again)
            ETCH_PUSH(r->arena, &r->copies, (etch_live_copy){item->step->outs[k]->tensor, item->outs.at[k]});
        m->since = again && since < r->turn_begin ? r->turn_begin : since;
        m->each = m->instances = item->step->copies[k];
        m->copies = copies_of(r, body, is_always);
        m->lasting = copies_of(r, body, lasts != ETCH_KEEP_GROUP);
        if (lasts != ETCH_KEEP_GROUP || !body->loop)
            continue;
        m->each = etch_mul(r->sym, m->each, all);
        ETCH_PUSH(r->arena, &r->to_turn_end, r->memories.count - 1);
    }
}

/* A weight group has computed when the gradients of its weights are made: its copies are there until then. */
static void reach_copies(etch_live_run *r, const etch_tensor *weight, uint32_t chunk)
{
    for (uint32_t i = 0; i < r->copies.count; i++) {
        const etch_live_copy *copy = &r->copies.at[i];
        const uint32_t id = copy->weight == weight ? etch_live_memory_of(r, copy->name) : 0;
        const etch_live_memory *m = &r->memories.at[id];
        if (id && m->chunk == chunk && (m->lasts != ETCH_KEEP_GROUP || m->interval == r->interval))
            read_memory(r, id);
    }
}

/* Is it made with the iteration of a loop, or reduced by itself? */
static bool is_apart(const etch_live_run *r, const etch_tensor *weight)
{
    return weight->region->loop || etch_zero_of(r->program->placed, weight)->by_weight;
}

/* The whole gradient is there from the first step that adds to it on: until the iteration ends, or until the
 * last gradient of the weight group is made. */
static void add_to_whole(etch_live_run *r, const etch_live_item *item, uint32_t k, uint32_t chunk)
{
    const etch_tensor *gradient = item->step->accumulate_into[k], *weight = gradient->of;
    uint32_t size;
    etch_live_gradient now = {
        .gradient = gradient, .turns = turns_at(r, weight->region, &size), .chunk = chunk};
    for (uint32_t i = 0; i < r->gradients.count; i++) {
        const etch_live_gradient *made = &r->gradients.at[i];
        const bool is_here = made->chunk == chunk;
        const bool is_same = is_here && made->gradient == gradient && made->turns == now.turns;
        const bool is_together = is_here && !is_apart(r, weight) && !is_apart(r, made->gradient->of) &&
                                 r->group_of[made->gradient->of->id] == r->group_of[weight->id];
        now.memory = is_same ? made->memory : now.memory;
        if (is_same || is_together)
            ETCH_PUSH(r->arena, &event_now(r)->reads, made->memory);
    }
    if (now.memory)
        return;
    now.memory = r->memories.count;
    make(r, item->outs.at[k])->copies = copies_of(r, weight->region, false);
    ETCH_PUSH(r->arena, &r->gradients, now);
    if (weight->region->loop)
        ETCH_PUSH(r->arena, &r->to_turn_end, now.memory);
}

/* A gradient that ranks hold in parts is whole until it is reduced. */
static void make_result(etch_live_run *r, const etch_live_item *item, uint32_t k, uint32_t chunk)
{
    const etch_tensor *gradient = item->step->accumulate_into[k];
    if (!gradient) {
        const uint32_t of = item->ins.count > 0 ? etch_live_memory_of(r, item->ins.at[0]) : 0;
        etch_live_memory *m = make(r, item->outs.at[k]);
        if (item->step->outs[k]->sharded_flat && of) { /* what backward gathers from: a part of each copy */
            m->each = m->instances = r->memories.at[of].instances;
            if (r->program->view) /* it stays, whether something reads it or not */
                m->copies = copies_of(r, r->open.at[r->open.count - 1], true);
        }
        return;
    }
    bind(r, item->outs.at[k], 0);
    reach_copies(r, gradient->of, chunk);
    if (etch_zero_divides(r->program->placed, gradient->of, ETCH_HOLDS_GRADIENT)) /* else added up in place */
        add_to_whole(r, item, k, chunk);
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
    bind(r, name, id);
    if (!is_part || r->memories.at[id].is_weight)
        return;
    etch_live_memory part = r->memories.at[id];
    part.name = name;
    part.part_of = id;
    bind(r, name, r->memories.count);
    ETCH_PUSH(r->arena, &r->memories, part);
}

static void run_step(etch_live_run *r, const etch_live_item *item, uint32_t chunk)
{
    const etch_step *step = item->step;
    const bool is_shard = step->collective == ETCH_SLICE && step->outs[0]->tensor->kind == ETCH_INPUT;
    const bool is_in = is_in_place(r, step);
    if (!etch_step_shows(step)) {
        begin_event(r, chunk);
        if (r->open.count == 1)
            note_step_of_group(r, step);
        for (uint32_t k = 0; k < step->in_count && !is_in; k++)
            read_name(r, step->ins[k]->id);
    }
    if (step->copies) {
        gather(r, item, chunk);
        return;
    }
    for (uint32_t k = 0; k < item->outs.count; k++)
        if (is_in)
            show(r, item, item->outs.at[k]);
        else if (is_shard || etch_is_zero(etch_live_bytes(r->program, item->outs.at[k])))
            bind(r, item->outs.at[k], 0); /* what is there anyway */
        else
            make_result(r, item, k, chunk);
}

/* ---- regions ------------------------------------------------------------------------------------------- */

static void run_region(etch_live_run *r, const etch_live_region *region, uint32_t chunk);

/* What a pass has made and an iteration carries is there to its end. */
static void run_turn(etch_live_run *r, const etch_live_region *body, uint32_t chunk, uint32_t *carried)
{
    const bool is_top = r->open.count == 1;
    if (is_top) {
        r->turn_begin = r->events.count;
        r->to_turn_end.count = 0;
    }
    for (uint32_t k = 0; k < body->carries.count; k++)
        bind(r, body->carries.at[k].in, carried[k]);
    run_region(r, body, chunk);
    begin_event(r, chunk);
    event_now(r)->carries = true;
    for (uint32_t k = 0; k < body->carries.count; k++) {
        carried[k] = etch_live_memory_of(r, body->carries.at[k].out);
        if (carried[k] && !is_from_forward(r, &r->memories.at[carried[k]]))
            ETCH_PUSH(r->arena, &event_now(r)->reads, carried[k]);
    }
    for (uint32_t i = 0; is_top && i < r->to_turn_end.count; i++)
        ETCH_PUSH(r->arena, &event_now(r)->reads, r->to_turn_end.at[i]);
}

/* Ends the span of the innermost loop before that, with the event now. */
static void begin_span(etch_live_run *r)
{
    etch_live_span *span = &r->spans.at[r->spans.count - 1];
    for (uint32_t i = 0; i < span->reads.count; i++)
        ETCH_PUSH(r->arena, &event_now(r)->reads, span->reads.at[i]);
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

/* Does a message take the carried value along where the stages are cut before an iteration? Zeros, which are
 * not sent, are memory where they are read. */
static bool is_sent(const etch_live_run *r, const etch_cut *cut, uint32_t name, etch_expr iteration)
{
    const bool back = r->pass != ETCH_PASS_FORWARD;
    const etch_crossings *list = back ? &cut->backward : &cut->forward;
    for (uint32_t i = 0; i < list->count; i++) {
        etch_crossing crossing = list->at[i];
        crossing.is_made = true;
        if (crossing.value->id == name)
            return !etch_is_zero(
                etch_crosses(r->sym, r->program->view->stages, cut, &crossing, back, iteration));
    }
    return false;
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
        if (!is_sent(r, cut, loop->bodies.at[0]->carries.at[k].in, later->first))
            carried[k] = 0;
}

static void run_loop(etch_live_run *r, const etch_live_loop *loop, uint32_t chunk)
{
    etch_live_turns *turns = r->turns[root_of(loop->loop)->id];
    const etch_live_region *first = loop->bodies.at[0];
    uint32_t *carried = ETCH_NEW_ARRAY(r->arena, first->carries.count, uint32_t);
    const uint32_t count = turns->at.count, begin = loop->loop->forward && count ? count - 1 : 0;
    uint32_t span = 0;
    const bool is_top = r->open.count == 1;
    const etch_stage_view *view = is_top ? r->program->view : NULL;
    const bool is_staged = view && etch_position_is_loop(view->stages, loop->position);
    begin_event(r, is_staged ? turns->at.at[begin].chunk : chunk);
    if (is_top)
        begin_group(r);
    r->interval += is_top;
    for (uint32_t b = 0; b < loop->bodies.count; b++)
        for (uint32_t k = 0; k < first->carries.count; k++)
            r->enters[loop->bodies.at[b]->carries.at[k].in] = (etch_live_slot){loop, k};
    for (uint32_t k = 0; k < first->carries.count; k++) {
        const etch_live_carry *carry = &first->carries.at[k];
        carried[k] = etch_live_memory_of(r, carry->init);
        if (carry->init != ETCH_NO_NAME)
            continue;
        turns->now = begin;
        carried[k] = r->memories.count; /* zeros */
        make(r, count ? carry->in : carry->result);
    }
    ETCH_PUSH(r->arena, &r->spans, (etch_live_span){.root = root_of(loop->loop)});
    for (uint32_t t = 0; t < count; t++) {
        turns->now = loop->loop->forward ? count - 1 - t : t;
        const etch_live_turn *turn = &turns->at.at[turns->now];
        if (t == 0 || turn->span != span)
            begin_span(r);
        span = turn->span;
        if (is_staged && t > 0)
            cut_loop(r, loop, loop->loop->forward ? turns->now + 1 : turns->now - 1, turns->now, carried);
        if (is_top) {
            r->turning = root_of(loop->loop);
            r->turn = turns->now;
        }
        run_turn(r, loop->bodies.at[turn->class], is_staged ? turn->chunk : chunk, carried);
    }
    if (is_top)
        r->turning = NULL;
    begin_span(r);
    r->spans.count--;
    for (uint32_t k = 0; k < first->carries.count; k++)
        bind(r, first->carries.at[k].result, carried[k]);
    r->group_begins = r->group_begins || is_top;
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
        begin_event(r, r->gradients.at[i].chunk);
        ETCH_PUSH(r->arena, &event_now(r)->reads, r->gradients.at[i].memory);
    }
}

static void find_groups(etch_live_run *r)
{
    const etch_placed *placed = r->program->placed;
    r->group_of = ETCH_NEW_ARRAY(r->arena, placed->training->graph->tensors.count, const etch_weight_group *);
    for (uint32_t i = 0; i < placed->weight_groups.count; i++)
        for (uint32_t k = 0; k < placed->weight_groups.at[i]->weights.count; k++)
            r->group_of[placed->weight_groups.at[i]->weights.at[k]->id] = placed->weight_groups.at[i];
}

etch_live_run *etch_live_run_of(etch_live_program *p, const etch_valuation *values)
{
    etch_live_run *r = ETCH_NEW(p->arena, etch_live_run);
    *r = (etch_live_run){.program = p,
                         .sym = p->sym,
                         .arena = p->arena,
                         .values = values,
                         .turns = ETCH_NEW_ARRAY(p->arena, p->training->graph->loop_count, etch_live_turns *),
                         .memory_of = ETCH_NEW_ARRAY(p->arena, p->name_count, uint32_t *),
                         .enters = ETCH_NEW_ARRAY(p->arena, p->name_count, etch_live_slot)};
    ETCH_PUSH(r->arena, &r->memories, (etch_live_memory){.pass = ETCH_PASSES});
    find_groups(r);
    for (r->pass = ETCH_PASS_FORWARD; r->pass < ETCH_PASSES; r->pass++) {
        const etch_live_region *region = etch_live_pass_of(p, r->pass);
        if (!region)
            continue;
        r->group_begins = true;
        r->interval++;
        if (r->pass == ETCH_PASS_WEIGHTS)
            take_gradients(r);
        find_all_turns(r, region);
        run_region(r, region, 0);
    }
    return r;
}
