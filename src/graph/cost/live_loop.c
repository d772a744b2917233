/* Loops of the fold. The iterations of a loop lie in pieces, which a stage runs or does not, and a piece in
 * the segments of the loop's pattern. Each is run from its first iteration on, until an iteration begins as
 * an earlier one did: the rest is counted, not run. */
#include "graph/cost/live_int.h"

/* Iterations in a row that one stage runs, or none of which it does. */
typedef struct piece {
    etch_expr low, high;
    /* there are as many, at least */
    int64_t least;
    bool is_here;
} piece;

/* Those of a piece whose classes have one period. */
typedef struct cell {
    etch_expr length;
    int64_t least;
    bool is_here;
    /* NULL: one class */
    const uint32_t *class_of;
    uint32_t period, phase;
    /* from the last one to the first */
    bool falls;
} cell;

/* Between two iterations. */
typedef struct state {
    const etch_live_entry *entries;
    /* how many values were settled */
    uint32_t settled;
} state;

/* The iterations that were run: states are one more. */
typedef struct run {
    ETCH_VEC(state) states;
    ETCH_VEC(uint32_t) classes;
    ETCH_VEC(etch_live_counts) counts;
    /* the last state is the one so many before it; 0: nothing comes after it */
    uint32_t period;
} run;

typedef struct looping {
    etch_live_walk *w;
    const etch_live_loop *loop;
    uint32_t carries;
    /* the loop-carried values as they are now */
    etch_live_entry *entries;
    ETCH_VEC(piece) pieces;
    /* its iterations are layers of the chain of stages */
    bool is_staged;
    /* from the last iteration to the first, as backward goes */
    bool falls;
    /* by class: what an iteration counts, and is it known? */
    etch_live_counts *base;
    bool *has_base;
    /* what others count more or less */
    etch_live_counts other;
} looping;

/* ---- states -------------------------------------------------------------------------------------------- */

static bool entries_equal(const looping *l, const etch_live_entry *a, const etch_live_entry *b)
{
    for (uint32_t k = 0; k < l->carries; k++)
        if (a[k].value != b[k].value || a[k].is_own != b[k].is_own || a[k].made_as != b[k].made_as)
            return false;
    return true;
}

static bool states_equal(const looping *l, const state *a, const state *b)
{
    return a->settled == b->settled && entries_equal(l, a->entries, b->entries);
}

static state state_now(const looping *l)
{
    etch_live_walk *w = l->w;
    etch_live_entry *copy = ETCH_NEW_ARRAY(w->arena, l->carries, etch_live_entry);
    for (uint32_t k = 0; k < l->carries; k++) {
        copy[k] = l->entries[k];
        if (!copy[k].is_own && !(copy[k].value & ETCH_LIVE_FORWARD) && w->values.at[copy[k].value].is_settled)
            copy[k].value = ETCH_LIVE_SETTLED;
    }
    return (state){copy, w->settled.count};
}

static void go_back(const looping *l, const state *to)
{
    etch_live_walk *w = l->w;
    while (w->settled.count > to->settled)
        w->values.at[w->settled.at[--w->settled.count]].is_settled = false;
    for (uint32_t k = 0; k < l->carries; k++)
        l->entries[k] = to->entries[k];
}

static bool counts_equal(const etch_live_counts *a, const etch_live_counts *b)
{
    bool equal = a->count == b->count;
    for (uint32_t i = 0; equal && i < a->count; i++)
        equal = a->at[i].name == b->at[i].name && a->at[i].times == b->at[i].times;
    return equal;
}

/* ---- counting ------------------------------------------------------------------------------------------ */

static void add_all(const looping *l, etch_live_counts *to, const etch_live_counts *counts, etch_expr times)
{
    for (uint32_t i = 0; i < counts->count; i++)
        etch_live_add(l->w->sym, l->w->arena, to, counts->at[i].name,
                      etch_mul(l->w->sym, counts->at[i].times, times));
}

/* `times` iterations of the class count this: the first that is said stands for all of the class. */
static void count_class(looping *l, uint32_t class, const etch_live_counts *counts, etch_expr times)
{
    if (!l->has_base[class])
        l->base[class] = *counts;
    l->has_base[class] = true;
    if (counts_equal(&l->base[class], counts))
        return;
    add_all(l, &l->other, counts, times);
    add_all(l, &l->other, &l->base[class], etch_neg(l->w->sym, times));
}

/* How many iterations of a cell are the t-th that was run, or alike. */
static etch_expr times_of(const looping *l, const cell *c, const run *r, uint32_t t)
{
    etch_sym *sym = l->w->sym;
    const uint32_t count = r->classes.count;
    if (r->period == 0 || t < count - r->period)
        return etch_live_indicator(l->w->answers, c->length, (int64_t)t + 1);
    const etch_expr rest = etch_add(sym, c->length, etch_int(sym, (int64_t)r->period - 1 - t));
    return etch_larger(sym, etch_int(sym, 0), etch_floor_div(sym, rest, etch_int(sym, r->period)));
}

/* Later ones first: those of which there may be most. */
static void count_cell(looping *l, const cell *c, const run *r)
{
    for (uint32_t t = r->classes.count; t-- > 0;)
        if (!l->has_base[r->classes.at[t]] || !counts_equal(&l->base[r->classes.at[t]], &r->counts.at[t]))
            count_class(l, r->classes.at[t], &r->counts.at[t], times_of(l, c, r, t));
}

/* ---- one cell ------------------------------------------------------------------------------------------ */

static uint32_t class_at(const cell *c, uint32_t t)
{
    const uint32_t turn = c->falls ? c->period - t % c->period : t;
    return c->class_of ? c->class_of[(c->phase + turn) % c->period] : 0;
}

/* Is the last state one that was before? */
static bool repeats(const looping *l, const cell *c, run *r)
{
    const uint32_t last = r->states.count - 1;
    for (uint32_t t = last; t-- > 0;)
        if ((last - t) % c->period == 0 && states_equal(l, &r->states.at[t], &r->states.at[last])) {
            r->period = last - t;
            return true;
        }
    return false;
}

/* Does an iteration carry a value by a name from outside the loop? Goes as deep as loops are nested. */
static bool carries_outer(const looping *l, const etch_live_region *body)
{
    const etch_live_walk *w = l->w;
    for (uint32_t i = 0; i < 2 * body->carries.count; i++) {
        const etch_live_carry *carry = &body->carries.at[i / 2];
        const uint32_t name = i % 2 ? carry->out : carry->init;
        const bool enters = i % 2 == 0 && body->of->loop == l->loop->loop;
        if (name == ETCH_NO_NAME || enters)
            continue;
        const uint32_t under = etch_live_under(w->program, name);
        if (!etch_region_is_in_loop(w->program->names[under].region, l->loop->loop))
            return true;
    }
    for (uint32_t i = 0; i < body->items.count; i++)
        for (uint32_t k = 0; body->items.at[i].loop && k < body->items.at[i].loop->bodies.count; k++)
            if (carries_outer(l, body->items.at[i].loop->bodies.at[k]))
                return true;
    return false;
}

/* Of values from outside, all different, each iteration makes others, all different: then the second goes as
 * the first did. */
static bool goes_on_alike(const looping *l, const state *first, const state *next)
{
    const etch_live_walk *w = l->w;
    const etch_live_region *body = l->loop->bodies.at[0];
    for (uint32_t k = 0; k < l->carries; k++) {
        const etch_live_entry *a = &first->entries[k], *b = &next->entries[k];
        const bool is_forward = a->value & ETCH_LIVE_FORWARD;
        if (!a->is_own && !b->is_own && a->value == ETCH_LIVE_SETTLED && b->value == ETCH_LIVE_SETTLED)
            continue;
        if (a->is_own || is_forward || a->value == ETCH_LIVE_SETTLED || !b->is_own || b->value != k ||
            b->made_as != ETCH_NO_NAME)
            return false;
        for (uint32_t i = 0; i < k; i++)
            if (first->entries[i].value == a->value)
                return false;
        if (etch_live_bytes(w->program, w->values.at[a->value].made_as) !=
            etch_live_bytes(w->program, body->carries.at[k].in))
            return false;
    }
    return !carries_outer(l, body);
}

static run run_iterations(looping *l, const cell *c)
{
    etch_live_walk *w = l->w;
    run r = {0};
    int64_t length;
    const bool is_known = etch_to_i64(c->length, &length);
    ETCH_PUSH(w->arena, &r.states, state_now(l));
    for (uint32_t t = 0; !(is_known && t >= length) && class_at(c, t) != ETCH_NO_CLASS; t++) {
        etch_live_counts counts = {0};
        etch_live_run_iteration(w, l->loop->bodies.at[class_at(c, t)], c->is_here, l->entries, &counts);
        ETCH_PUSH(w->arena, &r.classes, class_at(c, t));
        ETCH_PUSH(w->arena, &r.counts, counts);
        ETCH_PUSH(w->arena, &r.states, state_now(l));
        if (repeats(l, c, &r) || w->answers->is_open)
            break;
        if (t == 0 && !c->class_of && !(is_known && length < 2) &&
            goes_on_alike(l, &r.states.at[0], &r.states.at[1])) {
            ETCH_PUSH(w->arena, &r.classes, 0);
            ETCH_PUSH(w->arena, &r.counts, counts);
            ETCH_PUSH(w->arena, &r.states, r.states.at[1]);
            r.period = 1;
            break;
        }
    }
    return r;
}

static bool all_equal(const looping *l, const run *r, uint32_t from)
{
    for (uint32_t t = from + 1; t < r->states.count; t++)
        if (!states_equal(l, &r->states.at[from], &r->states.at[t]))
            return false;
    return true;
}

/* Is `amount` a multiple? */
static bool is_multiple(const looping *l, etch_expr amount, uint32_t of)
{
    etch_sym *sym = l->w->sym;
    const etch_expr period = etch_int(sym, of), before = etch_sub(sym, amount, etch_int(sym, 1));
    return etch_live_is_least(
        l->w->answers,
        etch_sub(sym, etch_floor_div(sym, amount, period), etch_floor_div(sym, before, period)), 1);
}

/* The state after the last iteration of the cell. */
static uint32_t end_of(const looping *l, const cell *c, const run *r)
{
    const uint32_t last = r->states.count - 1, begin = last - r->period;
    uint32_t end = (uint32_t)c->least;
    int64_t length;
    if (etch_to_i64(c->length, &length) && length <= 0) /* a count below 0 is refused when it is used */
        return 0;
    if (etch_to_i64(c->length, &length))
        return length <= last ? (uint32_t)length : begin + (uint32_t)((length - begin) % r->period);
    while (end < last && !all_equal(l, r, end) && (r->period == 0 || end < begin) &&
           etch_live_is_least(l->w->answers, c->length, (int64_t)end + 1))
        end++;
    if (end >= last || end < begin || r->period < 2 || all_equal(l, r, end))
        return end < last ? end : last;
    for (end = begin; end + 1 < last; end++) {
        const etch_expr rest = etch_sub(l->w->sym, c->length, etch_int(l->w->sym, end));
        if (is_multiple(l, rest, r->period))
            break;
    }
    return end;
}

static void run_cell(looping *l, const cell *c)
{
    const run r = run_iterations(l, c);
    if (l->w->answers->is_open)
        return;
    if (c->is_here)
        count_cell(l, c, &r);
    go_back(l, &r.states.at[end_of(l, c, &r)]);
}

/* ---- iterations of several classes --------------------------------------------------------------------- */

/* One iteration of each class, all from the same state. False: they differ in what they carry. */
static bool run_each(looping *l, const piece *p, const state *from, state *to, etch_live_counts *counts)
{
    ETCH_VEC(uint32_t) settled = {0};
    for (uint32_t c = 0; c < l->loop->bodies.count; c++) {
        etch_live_walk *w = l->w;
        counts[c] = (etch_live_counts){0};
        go_back(l, from);
        etch_live_run_iteration(w, l->loop->bodies.at[c], p->is_here, l->entries, &counts[c]);
        const state now = state_now(l);
        if (c > 0 && !states_equal(l, to, &now))
            return false;
        for (uint32_t i = from->settled; i < now.settled; i++) {
            if (c == 0)
                ETCH_PUSH(w->arena, &settled, w->settled.at[i]);
            else if (settled.at[i - from->settled] != w->settled.at[i])
                return false;
        }
        *to = now;
    }
    return true;
}

/* Runs a piece whose iterations are alike whatever their classes are. False: they are not. */
static bool run_alike(looping *l, const piece *p)
{
    etch_live_walk *w = l->w;
    const uint32_t classes = l->loop->bodies.count;
    const state begin = state_now(l);
    state next, again;
    etch_live_counts *first = ETCH_NEW_ARRAY(w->arena, classes, etch_live_counts);
    etch_live_counts *later = ETCH_NEW_ARRAY(w->arena, classes, etch_live_counts);
    bool alike = run_each(l, p, &begin, &next, first) && run_each(l, p, &next, &again, later) &&
                 states_equal(l, &next, &again);
    for (uint32_t c = 0; c < classes && alike; c++)
        alike = counts_equal(&first[c], &later[c]);
    go_back(l, alike ? &next : &begin);
    if (!alike || w->answers->is_open)
        return alike;
    const etch_expr length = etch_sub(w->sym, p->high, p->low);
    if (p->least < 1 && !states_equal(l, &begin, &next) && !etch_live_is_least(w->answers, length, 1))
        go_back(l, &begin);
    for (uint32_t c = 0; c < classes && p->is_here; c++)
        count_class(l, c, &first[c], etch_class_count(w->sym, l->loop->bodies.at[c]->of, p->low, p->high));
    return true;
}

static uint32_t phase_of(const looping *l, etch_expr first, uint32_t period)
{
    int64_t number;
    uint32_t phase = 0;
    if (etch_to_i64(first, &number))
        return (uint32_t)(number % period);
    while (phase + 1 < period &&
           !is_multiple(l, etch_sub(l->w->sym, first, etch_int(l->w->sym, phase)), period))
        phase++;
    return phase;
}

static void run_segments(looping *l, const piece *p)
{
    etch_sym *sym = l->w->sym;
    const etch_pattern *pattern = l->loop->loop->pattern;
    for (uint32_t i = 0; i < pattern->segments.count && !l->w->answers->is_open; i++) {
        const uint32_t at = l->falls ? pattern->segments.count - 1 - i : i;
        const etch_segment *segment = &pattern->segments.at[at];
        const etch_expr first = etch_larger(sym, segment->first, p->low);
        const etch_expr end = etch_larger(sym, etch_smaller(sym, segment->end, p->high), first);
        const etch_expr begin = l->falls ? etch_sub(sym, end, etch_int(sym, 1)) : first;
        const cell c = {.length = etch_sub(sym, end, first),
                        .least = pattern->segments.count == 1 ? p->least : 0,
                        .is_here = p->is_here,
                        .class_of = segment->class_of,
                        .period = pattern->period,
                        .phase = phase_of(l, begin, pattern->period),
                        .falls = l->falls};
        run_cell(l, &c);
    }
}

static void run_piece(looping *l, const piece *p)
{
    if (l->loop->loop->pattern) {
        if (!run_alike(l, p))
            run_segments(l, p);
        return;
    }
    const cell c = {.length = etch_sub(l->w->sym, p->high, p->low),
                    .least = p->least,
                    .is_here = p->is_here,
                    .period = 1};
    run_cell(l, &c);
}

/* ---- loops --------------------------------------------------------------------------------------------- */

static void add_piece(looping *l, piece p)
{
    if (p.low != p.high)
        ETCH_PUSH(l->w->arena, &l->pieces, p);
}

/* Stages that are formulas have some iterations, and so has what lies between them. */
static void find_pieces(looping *l, bool is_top, bool is_here)
{
    etch_live_walk *w = l->w;
    const etch_stage_view *view = is_top ? w->program->view : NULL;
    const etch_position position = l->loop->position;
    etch_expr low = etch_int(w->sym, 0);
    l->is_staged = view && etch_position_is_loop(view->stages, position);
    if (!l->is_staged) {
        const bool here = is_here && (!view || !etch_is_zero(etch_stage_share(view, position)));
        add_piece(l, (piece){low, l->loop->loop->count, 0, here});
        return;
    }
    const etch_layer_intervals *held = &view->ranges[etch_position_segment(position)];
    for (uint32_t i = 0; i < held->count; i++) {
        add_piece(l, (piece){low, held->at[i].low, 1, false});
        add_piece(l, (piece){held->at[i].low, held->at[i].high, 1, is_here});
        low = held->at[i].high;
    }
    const etch_position last = etch_position_at(etch_position_segment(position), ETCH_LAST_OF);
    if (etch_is_zero(etch_stage_share(view, last)))
        add_piece(l, (piece){low, l->loop->loop->count, 1, false});
    for (uint32_t i = 0; l->falls && 2 * i + 1 < l->pieces.count; i++) {
        const piece other = l->pieces.at[l->pieces.count - 1 - i];
        l->pieces.at[l->pieces.count - 1 - i] = l->pieces.at[i];
        l->pieces.at[i] = other;
    }
}

/* The k-th carried value as it is known where it comes in: in an iteration, or after the loop. */
static uint32_t name_where(const looping *l, uint32_t k, bool leaves)
{
    const etch_live_carry *carry = &l->loop->bodies.at[0]->carries.at[k];
    return leaves && carry->result != ETCH_NO_NAME ? carry->result : carry->in;
}

/* What other stages send comes in messages: of a value of which the name is a part no more than that. What
 * a message brings as two names of equal size it brings once. */
static void receive(looping *l, bool leaves)
{
    etch_live_walk *w = l->w;
    const state sent = state_now(l);
    for (uint32_t k = 0; k < l->carries; k++) {
        const etch_live_entry *e = &sent.entries[k];
        const uint32_t name = name_where(l, k, leaves);
        const etch_expr bytes = etch_live_bytes(w->program, name);
        uint32_t first = 0;
        if (etch_live_is_forward(e->value) || (!e->is_own && e->value == ETCH_LIVE_SETTLED) ||
            (!e->is_own && etch_live_bytes(w->program, w->values.at[e->value].made_as) == bytes))
            continue;
        while (sent.entries[first].is_own != e->is_own || sent.entries[first].value != e->value ||
               etch_live_bytes(w->program, name_where(l, first, leaves)) != bytes)
            first++;
        l->entries[k] = (etch_live_entry){first, e->is_own, ETCH_NO_NAME};
        if (!e->is_own)
            l->entries[k].value = first == k ? etch_live_value_new(w, name) : l->entries[first].value;
    }
}

static etch_expr iterations_of(const looping *l, uint32_t class)
{
    const etch_region *body = l->loop->bodies.at[class]->of;
    return l->is_staged ? etch_stage_iterations(l->w->sym, l->w->program->view, l->loop->position, body)
                        : body->count;
}

static bool all_count(const looping *l, uint32_t name)
{
    for (uint32_t c = 0; c < l->loop->bodies.count; c++) {
        bool counts = false;
        for (uint32_t i = 0; l->has_base[c] && i < l->base[c].count; i++)
            counts = counts || l->base[c].at[i].name == name;
        if (!counts)
            return false;
    }
    return l->other.count == 0;
}

/* Is the name one of the iterations that the loop undoes? Where there are none, there is nothing to keep. */
static bool lives_inside(const looping *l, uint32_t name)
{
    const etch_region *body = l->w->program->names[name].region;
    while (body && (!body->loop || body->loop != l->loop->loop->forward))
        body = body->parent;
    return body != NULL;
}

/* Of what each iteration reads it is enough to know that there is one. */
static void add_counts(const looping *l, etch_live_counts *out)
{
    etch_sym *sym = l->w->sym;
    for (uint32_t c = 0; c < l->loop->bodies.count; c++)
        for (uint32_t i = 0; l->has_base[c] && i < l->base[c].count; i++) {
            const etch_live_count *count = &l->base[c].at[i];
            const bool is_one = l->is_staged || lives_inside(l, count->name);
            const etch_expr some = is_one ? etch_int(sym, 1) : l->loop->loop->count;
            const etch_expr times =
                l->w->is_derived && all_count(l, count->name) ? some : iterations_of(l, c);
            etch_live_add(sym, l->w->arena, out, count->name, etch_mul(sym, count->times, times));
        }
    add_all(l, out, &l->other, etch_int(sym, 1));
}

void etch_live_run_loop(etch_live_walk *w, const etch_live_loop *loop, bool is_top, bool is_here,
                        etch_live_counts *out)
{
    const etch_live_region *body = loop->bodies.at[0];
    looping l = {.w = w,
                 .loop = loop,
                 .carries = body->carries.count,
                 .entries = ETCH_NEW_ARRAY(w->arena, body->carries.count, etch_live_entry),
                 .base = ETCH_NEW_ARRAY(w->arena, loop->bodies.count, etch_live_counts),
                 .has_base = ETCH_NEW_ARRAY(w->arena, loop->bodies.count, bool),
                 .falls = loop->loop->forward != NULL};
    for (uint32_t k = 0; k < l.carries; k++)
        l.entries[k] = etch_live_enter(w, &body->carries.at[k]);
    find_pieces(&l, is_top, is_here);
    for (uint32_t i = 0; i < l.pieces.count && !w->answers->is_open; i++) {
        const bool leaves = i + 1 == l.pieces.count;
        run_piece(&l, &l.pieces.at[i]);
        if (is_top && !w->is_derived && w->program->view && !l.pieces.at[i].is_here)
            receive(&l, leaves);
    }
    add_counts(&l, out);
    etch_live_leave(w, loop, l.entries, is_here, out);
}
