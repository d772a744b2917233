/* The turns of a loop: iterations that are run, and how many each stands for. */
#include "graph/cost/live_run_int.h"

const etch_loop *etch_live_root_of(const etch_loop *loop)
{
    return etch_forward_body(loop->bodies.at[0])->loop;
}

const etch_live_turns *etch_live_turns_of(const etch_live_run *r, const etch_loop *loop)
{
    return r->turns[etch_live_root_of(loop)->id];
}

/* What a turn takes, in operations on formulas, of as many as weights are gathered ahead. */
enum { OPERATIONS_OF_TURN = 60000 };

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
 * iterations as there are carried values, and weights of so many that come next are gathered. */
static uint64_t end_turns(const etch_live_run *r, const etch_live_loop *loop)
{
    uint64_t late = etch_live_root_of(loop->loop)->bodies.at[0]->parent->loop ? 0 : r->ahead;
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

static void abridge(const etch_live_run *r, const cell *c, uint64_t ends)
{
    etch_sym *sym = r->sym;
    const uint32_t begin = c->out->at.count;
    const uint64_t side = ends * c->period;
    const etch_expr one = etch_int(sym, 1);
    int64_t length;
    if (!etch_to_i64(etch_sub(sym, c->high, c->low), &length)) {
        etch_sym_charge(sym, OPERATIONS_OF_TURN * r->ahead);
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
    const uint64_t ends = end_turns(r, loop);
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
    const etch_loop *root = etch_live_root_of(loop->loop);
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
void etch_live_find_turns(const etch_live_run *r, const etch_live_region *region)
{
    for (uint32_t i = 0; i < region->items.count; i++) {
        const etch_live_loop *loop = region->items.at[i].loop;
        if (loop && !etch_live_turns_of(r, loop->loop))
            find_turns(r, loop, !region->of->loop);
        for (uint32_t k = 0; loop && k < loop->bodies.count; k++)
            etch_live_find_turns(r, loop->bodies.at[k]);
    }
}
