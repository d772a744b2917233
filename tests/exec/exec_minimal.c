#include "exec_minimal.h"

#include "graph/ir/row.h"

#include <string.h>

const char *const exec_waste_names[EXEC_WASTES] = {"twice", "from afar", "cut", "back", "early", "chain"};

typedef struct reader {
    const etch_step *step; /* NULL: a loop hands the value on */
} reader;

typedef struct place {
    const etch_step *step;
    const etch_placed_region *region;
} place;

typedef struct search {
    const etch_placed *placed;
    uint32_t axes; /* bits of those with several ranks */
    ETCH_VEC(place) moves;
    ETCH_VEC(reader) * readers; /* by value id */
    exec_findings *out;
} search;

/* ---- who reads what ------------------------------------------------------------------------------------ */

static void add_reader(search *s, const etch_value *value, const etch_step *step)
{
    if (value)
        ETCH_PUSH(s->placed->arena, &s->readers[value->id], (reader){step});
}

static void read_region(search *s, const etch_placed_region *region)
{
    for (uint32_t i = 0; i < region->carries.count; i++)
        add_reader(s, region->carries.at[i].out, NULL);
    for (uint32_t i = 0; i < region->items.count; i++) {
        const etch_step *step = region->items.at[i].step;
        const etch_placed_loop *loop = region->items.at[i].loop;
        for (uint32_t k = 0; step && k < step->in_count; k++)
            add_reader(s, step->ins[k], step);
        if (step && step->collective != ETCH_NO_COLLECTIVE)
            ETCH_PUSH(s->placed->arena, &s->moves, (place){step, region});
        for (uint32_t k = 0; loop && k < loop->bodies.at[0]->carries.count; k++)
            add_reader(s, loop->bodies.at[0]->carries.at[k].init, NULL);
        for (uint32_t k = 0; loop && k < loop->bodies.count; k++)
            read_region(s, loop->bodies.at[k]);
    }
}

/* The only step that reads the value, behind other names of it; NULL when there are others or none. */
static const etch_step *only_reader(const search *s, const etch_value *value)
{
    for (;;) {
        if (s->readers[value->id].count != 1)
            return NULL;
        const etch_step *step = s->readers[value->id].at[0].step;
        if (!step || !step->op || !etch_op_is_view(step->op))
            return step;
        value = step->outs[0];
    }
}

static bool is_added(const etch_step *step, const etch_value *value)
{
    for (uint32_t i = 0; i < step->out_count; i++)
        if (step->outs[i] == value && step->accumulate_into[i])
            return true;
    return false;
}

/* ---- places -------------------------------------------------------------------------------------------- */

static bool is_at(const search *s, const etch_value *a, const etch_state *b)
{
    for (uint32_t i = 0; i < s->placed->plan->mesh.count; i++)
        if (s->axes & (1u << i) && a->place[i] != b[i])
            return false;
    return true;
}

static const char *text_of(const search *s, const etch_value *value)
{
    etch_buf buf = {.arena = s->placed->arena};
    etch_buf_printf(&buf, "%s[", value->tensor->name);
    const char *before = "";
    for (uint32_t a = 0; a < s->placed->plan->mesh.count; a++)
        if (value->place[a]) {
            etch_buf_printf(&buf, "%s%s@%s", before, value->place[a]->name, s->placed->plan->mesh.at[a].name);
            before = ",";
        }
    etch_buf_puts(&buf, "]");
    return buf.text;
}

static const char *step_text(const search *s, const etch_step *step)
{
    return etch_text(s->placed->arena, "%s %u: %s over %s, %s -> %s (%s)", etch_phase_name(step->phase),
                     step->id,
                     step->collective ? etch_collective_name(step->collective) : etch_row_name(step->row),
                     etch_axes_label(s->placed, step->axes), text_of(s, step->ins[0]),
                     text_of(s, step->outs[0]), etch_rule_name(step->provenance.rule));
}

static void find(search *s, exec_waste waste, const etch_step *step, const etch_step *other)
{
    const char *text = step_text(s, step);
    if (other)
        text = etch_text(s->placed->arena, "%s; %s", text, step_text(s, other));
    /* The cotangent of a summand is made whole at once, on the axes of the summands alone. */
    const bool is_greedy = waste == EXEC_CHAIN && step->provenance.rule == ETCH_RULE_SUMMAND;
    ETCH_PUSH(s->placed->arena, s->out, (exec_finding){waste, step, is_greedy, text});
}

static bool is_statistic(const search *s, const etch_step *step)
{
    return is_at(s, step->ins[0], step->outs[0]->place);
}

/* ---- twice --------------------------------------------------------------------------------------------- */

/* The value that a chain of moves begins with. */
static const etch_value *origin(const etch_value *value)
{
    while (value->step && value->step->collective != ETCH_NO_COLLECTIVE)
        value = etch_value_before(value);
    return value;
}

/* Is `way` between `from` and `to`: on each axis like one of them, and nearer than `from`? */
static bool is_between(const search *s, const etch_value *from, const etch_value *way, const etch_value *to)
{
    bool nearer = false;
    for (uint32_t a = 0; a < s->placed->plan->mesh.count; a++) {
        if (!(s->axes & (1u << a)) || from->place[a] == to->place[a])
            continue;
        if (way->place[a] != from->place[a] && way->place[a] != to->place[a])
            return false;
        nearer = nearer || (way->place[a] == to->place[a] && from->place[a]); /* a slice is free */
    }
    for (uint32_t a = 0; a < s->placed->plan->mesh.count; a++)
        if (s->axes & (1u << a) && from->place[a] == to->place[a] && way->place[a] != to->place[a])
            return false;
    return nearer;
}

/* Is `whole` a copy that `to` is a part of? */
static bool has_part(const search *s, const etch_value *whole, const etch_value *to)
{
    for (uint32_t a = 0; a < s->placed->plan->mesh.count; a++)
        if (s->axes & (1u << a) && whole->place[a] != to->place[a] &&
            (whole->place[a] || etch_is_partial(to->place[a])))
            return false;
    return true;
}

static void find_twice(search *s)
{
    for (uint32_t i = 0; i < s->moves.count; i++)
        for (uint32_t k = 0; k < i; k++) {
            const place *late = &s->moves.at[i], *early = &s->moves.at[k];
            if (late->region != early->region || late->step->phase != early->step->phase ||
                origin(late->step->ins[0]) != origin(early->step->ins[0]) ||
                late->step->collective == ETCH_SLICE || is_statistic(s, late->step) ||
                !(late->step->axes & s->axes))
                continue;
            const etch_value *from = late->step->ins[0], *way = early->step->outs[0],
                             *to = late->step->outs[0];
            if (is_at(s, way, to->place))
                find(s, EXEC_TWICE, late->step, early->step);
            else if (way != from && (is_between(s, from, way, to) || has_part(s, way, to)))
                find(s, EXEC_AFAR, late->step, early->step);
        }
}

/* ---- one move and its reader --------------------------------------------------------------------------- */

static bool is_row(const etch_step *step, const char *const *names)
{
    for (; *names; names++)
        if (strcmp(etch_row_name(step->row), *names) == 0)
            return true;
    return false;
}

/* All that is made whole over `axes` is cut over the same: nobody needs the whole. */
static bool is_cut(const search *s, const etch_value *value, uint32_t axes)
{
    uint32_t cuts = 0;
    for (uint32_t i = 0; i < s->readers[value->id].count; i++) {
        const etch_step *step = s->readers[value->id].at[i].step;
        if (!step)
            return false;
        if (step->op && etch_op_is_view(step->op)) {
            if (!is_cut(s, step->outs[0], axes))
                return false;
        } else if (step->collective != ETCH_SLICE || (step->axes & axes) != axes) {
            return false;
        }
        cuts++;
    }
    return cuts > 0;
}

/* Its summands could go through the step, which makes less of them, or is summed up over the same axes
 * again. */
static bool could_wait(const search *s, const etch_step *move, const etch_step *step)
{
    static const char *const each[] = {"cast",    "einsum",      "sum",     "scale",   "rope",
                                       "rope_dx", "negated_sum", "cast_dx", "collect", "dispatch_dx",
                                       "conv",    "conv_dx",     NULL};
    static const char *const first[] = {"div", "div_db", NULL};
    const bool alone = is_row(step, first) && etch_value_root(step->ins[0]) == move->outs[0];
    if (!step->op || step->collective != ETCH_NO_COLLECTIVE || (!alone && !is_row(step, each)))
        return false;
    const etch_value *sum = NULL;
    for (uint32_t i = 0; i < step->in_count; i++) {
        const etch_value *in = step->ins[i];
        const bool is_it = etch_value_root((etch_value *)(uintptr_t)in) == move->outs[0];
        if (is_it && sum)
            return false; /* a square */
        if (is_it)
            sum = in;
        const bool weight = in->tensor->kind == ETCH_WEIGHT;
        for (uint32_t a = 0; a < s->placed->plan->mesh.count; a++)
            if (move->axes & (1u << a) && !is_it &&
                (in->place[a] == ETCH_PARTIAL || (in->place[a] && weight)))
                return false;
        if (!is_it && in->tensor->rank >= move->outs[0]->tensor->rank)
            return false; /* no less is to be sent for it */
    }
    if (!sum)
        return false;
    uint32_t less = 0, linked = 0;
    for (uint32_t d = 0; d < step->outs[0]->tensor->rank; d++) {
        const etch_dim *dim = step->outs[0]->tensor->dims[d];
        if (!etch_has_dim(sum->tensor, dim) && !etch_has_dim(sum->tensor, etch_op_dim_linked(step->op, dim)))
            return false; /* makes more of it */
        linked++;
    }
    less = sum->tensor->rank > linked;
    return less;
}

static void find_in_move(search *s, const etch_step *step)
{
    if (!(step->axes & s->axes) || is_statistic(s, step))
        return;
    const etch_value *made = step->outs[0];
    const bool whole = step->collective == ETCH_ALL_REDUCE || step->collective == ETCH_ALL_GATHER;
    if (whole && is_cut(s, made, step->axes & s->axes))
        find(s, EXEC_CUT, step, s->readers[made->id].at[0].step);
    const etch_step *next = only_reader(s, made);
    if (!next || is_added(step, made))
        return;
    const bool follows =
        next->collective != ETCH_NO_COLLECTIVE && next->axes & s->axes && !is_statistic(s, next);
    if (follows && next->collective == step->collective && step->collective != ETCH_SLICE)
        find(s, EXEC_CHAIN, step, next);
    if (follows && step->collective == ETCH_REDUCE_SCATTER && next->collective == ETCH_ALL_GATHER &&
        (next->axes & step->axes & s->axes))
        find(s, EXEC_BACK, step, next);
    /* Backward divides its work as forward did. */
    const bool scattered = step->collective == ETCH_REDUCE_SCATTER && step->phase != ETCH_BACKWARD;
    if ((step->collective == ETCH_ALL_REDUCE || scattered) && could_wait(s, step, next))
        find(s, EXEC_EARLY, step, next);
}

/* ---- the door ------------------------------------------------------------------------------------------ */

void exec_find_waste(const etch_placed *placed, exec_findings *out)
{
    const etch_plan *plan = placed->plan;
    search s = {.placed = placed, .out = out};
    for (uint32_t a = 0; a < plan->mesh.count; a++)
        if (plan->mesh.at[a].size != etch_int(placed->training->graph->sym, 1))
            s.axes |= 1u << a;
    s.readers = etch_alloc_array(placed->arena, placed->value_count, sizeof *s.readers);
    read_region(&s, placed->forward);
    if (placed->backward)
        read_region(&s, placed->backward);
    find_twice(&s);
    for (uint32_t i = 0; i < s.moves.count; i++)
        find_in_move(&s, s.moves.at[i].step);
}
