/* A placement for people: what the collectives of a step add up to, one line for each of them, the reasons,
 * and then where every tensor is, in the order of the program. */
#include "graph_int.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NOTE_COLUMN = 92 };

typedef struct printer {
    const etch_placement_report *report;
    /* of all collectives, beside the totals of the report */
    etch_view_comm sum;
    const etch_graph_report *graph;
    cli_way way;
    /* in whose terms names are said */
    size_t module;
    /* by value: has its placement been printed? */
    bool *is_told;
    cli_line line;
} printer;

static bool is_nowhere(const etch_location *at)
{
    return !at->path;
}

static void put_place(printer *p, const etch_location *at)
{
    if (!is_nowhere(at))
        cli_put(&p->line, "%s:%u", at->path, (unsigned)at->line);
}

static void end_line_at(printer *p, const etch_location *at)
{
    if (!is_nowhere(at))
        cli_put_to(&p->line, NOTE_COLUMN);
    put_place(p, at);
    putchar('\n');
}

static bool is_number(const char *text)
{
    return text[strspn(text, "0123456789")] == '\0';
}

/* ---- names --------------------------------------------------------------------------------------------- */

/* A name as the module at hand would say it; of another one's tensor, with the way there. */
static void put_name(printer *p, size_t index)
{
    const etch_view_tensor *t = &p->graph->tensors[index];
    if (t->added_to != ETCH_VIEW_NONE)
        t = &p->graph->tensors[t->added_to];
    if (t->module == p->module)
        cli_put(&p->line, "%s", t->name);
    else
        cli_put(&p->line, "%s.%s", p->graph->modules[t->module].path, t->name);
}

static void put_value(printer *p, size_t index)
{
    put_name(p, p->report->values[index].tensor);
    cli_put(&p->line, "%s", p->report->values[index].place);
}

/* ---- the first screen ---------------------------------------------------------------------------------- */

static void print_mesh(const etch_placement_report *r)
{
    for (size_t i = 0; i < r->axis_count; i++) {
        const etch_view_axis *axis = &r->axes[i];
        const bool is_free = strcmp(axis->name, axis->size) == 0;
        cli_print_field(i ? "" : "mesh", is_free ? "%s" : "%s = %s", axis->name, axis->size);
    }
}

static void print_summary(const etch_placement_report *r)
{
    const etch_graph_report *g = r->graph;
    cli_print_field("model", "%s", g->model);
    if (g->config)
        cli_print_field("config", "%s", g->config);
    cli_print_field("plan", is_nowhere(&r->location) ? "%s" : "%s, %s:%u", r->plan,
                    r->location.path ? r->location.path : "", (unsigned)r->location.line);
    if (g->part)
        cli_print_field("part", g->calls > 1 ? "%s, the first of %zu" : "%s", g->part, g->calls);
    print_mesh(r);
    if (r->fitted_layers != ETCH_VIEW_NONE)
        cli_print_field("recompute", "%zu of %zu layers, the fewest that fit", r->fitted_layers,
                        r->fitted_of);
    if (strcmp(g->micro, "1") != 0)
        cli_print_field("micro", "%s", g->micro);
    for (size_t i = 0; i < g->dim_count; i++) {
        const etch_view_dim *d = &g->dims[i];
        cli_print_field(i ? "" : "dims", "%s %s %s%s", d->name, d->average ? "~" : "=", d->size,
                        d->divided ? ", of which a microbatch has 1/micro" : "");
    }
    for (size_t i = 0; i < r->pad_count; i++)
        cli_print_field(i ? "" : "padded", "%s = %s", g->dims[r->pads[i].dim].name, r->pads[i].size);
}

static bool same_share(const etch_view_share *a, const etch_view_share *b)
{
    return strcmp(a->times, b->times) == 0 && strcmp(a->bytes, b->bytes) == 0;
}

/* Are all collectives of both stages the same? */
static bool same_stage(const etch_placement_report *r, size_t a, size_t b)
{
    for (size_t i = 0; i < r->collective_count; i++)
        if (!same_share(&r->collectives[i].shares[a], &r->collectives[i].shares[b]))
            return false;
    return true;
}

/* The stage after the last one that is like `first`. */
static size_t stages_alike(const etch_placement_report *r, size_t first)
{
    size_t end = first + 1;
    while (end < r->stage_count && same_stage(r, first, end))
        end++;
    return end;
}

static void put_stages(printer *p, size_t first, size_t end)
{
    cli_put(&p->line, "stage %s", p->report->stages[first]);
    if (end > first + 1)
        cli_put(&p->line, " to %s", p->report->stages[end - 1]);
}

static void widen(int *width, int length)
{
    if (length > *width)
        *width = length;
}

enum { TOTAL_COLUMNS = 5 };

/* Numbers also as people say them; what rings send only of numbers. */
static void put_total_cell(printer *p, const etch_view_comm *c, size_t stage, int column)
{
    const etch_view_share *s = &c->shares[stage];
    switch (column) {
    case 0:
        cli_put(&p->line, "%s", c == &p->sum ? "total" : etch_collective_name(c->collective));
        break;
    case 1:
        cli_put(&p->line, "%s", c->group);
        break;
    case 2:
        cli_put(&p->line, "%s", s->times);
        break;
    case 3:
        cli_put(&p->line, s->bytes_human ? "%s (%s)" : "%s", s->bytes, s->bytes_human ? s->bytes_human : "");
        break;
    default:
        if (s->wire_human)
            cli_put(&p->line, "%s (%s)", s->wire, s->wire_human);
    }
}

static void print_total_row(printer *p, const etch_view_comm *c, size_t stage, const int *widths)
{
    cli_begin_line(&p->line, 1);
    int column = p->line.column;
    for (int k = 0; k < TOTAL_COLUMNS; k++) {
        if (k < TOTAL_COLUMNS - 1 || c->shares[stage].wire_human)
            cli_put(&p->line, "%*s", column > p->line.column ? column - p->line.column : 0, "");
        put_total_cell(p, c, stage, k);
        column += widths[k] + 2;
    }
    putchar('\n');
}

static void print_totals_of(printer *p, size_t first, size_t end)
{
    const etch_placement_report *r = p->report;
    int widths[TOTAL_COLUMNS] = {0};
    p->line.measures = true;
    for (size_t i = 0; i <= r->total_count; i++)
        for (int k = 0; k < TOTAL_COLUMNS; k++) {
            p->line.column = 0;
            put_total_cell(p, i < r->total_count ? &r->totals[i] : &p->sum, first, k);
            widen(&widths[k], p->line.column);
        }
    p->line.measures = false;
    cli_begin_line(&p->line, 0);
    cli_put(&p->line, "\none rank");
    if (r->stage_count > 1) {
        cli_put(&p->line, " of ");
        put_stages(p, first, end);
    }
    cli_put(&p->line, " in a step: collectives, how often, bytes of payload%s\n",
            p->sum.shares[first].wire_human ? ", bytes that rings send" : "");
    for (size_t i = 0; i < r->total_count; i++)
        if (strcmp(r->totals[i].shares[first].times, "0") != 0)
            print_total_row(p, &r->totals[i], first, widths);
    print_total_row(p, &p->sum, first, widths);
}

static void print_totals(printer *p)
{
    for (size_t first = 0; first < p->report->stage_count;) {
        const size_t end = stages_alike(p->report, first);
        print_totals_of(p, first, end);
        first = end;
    }
}

/* ---- one line for each collective ---------------------------------------------------------------------- */

enum { COLUMNS = 6 };

static void put_moved(printer *p, const etch_view_collective *c)
{
    const bool is_send = c->collective == ETCH_SEND, gathers = c->collective == ETCH_ALL_GATHER;
    if (c->tensor_count == 0)
        cli_put(&p->line, "%s", is_send ? "nothing" : "one number");
    else if (c->tensor_count > 1 && !is_send)
        cli_put(&p->line, "%s%zu weights", gathers ? "" : "gradients of ", c->tensor_count);
    else
        for (size_t i = 0; i < c->tensor_count; i++) {
            cli_put(&p->line, "%s",
                    i                                                   ? ", "
                    : c->step == ETCH_VIEW_NONE && !is_send && !gathers ? "gradient of "
                                                                        : "");
            put_name(p, c->tensors[i]);
        }
    if (c->step != ETCH_VIEW_NONE && c->tensor_count == 1)
        cli_put(&p->line, "%s", c->before);
}

static const char *bytes_of(const etch_view_collective *c)
{
    return is_number(c->bytes) || !c->bytes_by_dims ? c->bytes : c->bytes_by_dims;
}

/* The place of what asks for it; where it has none, that of the last line after it. */
static const etch_location *asks(const etch_view_collective *c)
{
    const etch_location *line = NULL;
    for (size_t i = 0; i < c->why_count; i++) {
        const etch_location *at = &c->why[i].location;
        if (is_nowhere(at))
            continue;
        if (c->why[i].role == ETCH_PHRASE_NEEDS)
            return at;
        if (c->why[i].role == ETCH_PHRASE_LINE)
            line = at;
    }
    return line;
}

static void put_times(printer *p, const etch_view_collective *c)
{
    const etch_placement_report *r = p->report;
    bool any = false;
    if (stages_alike(r, 0) == r->stage_count) {
        cli_put(&p->line, "%s", c->shares[0].times);
        return;
    }
    for (size_t first = 0; first < r->stage_count;) {
        size_t end = first + 1;
        while (end < r->stage_count && same_share(&c->shares[first], &c->shares[end]))
            end++;
        if (strcmp(c->shares[first].times, "0") != 0) {
            cli_put(&p->line, "%s%s", any ? "; " : "", c->shares[first].times);
            cli_put(&p->line, " in ");
            put_stages(p, first, end);
            any = true;
        }
        first = end;
    }
}

static void put_cell(printer *p, size_t index, int column)
{
    const etch_view_collective *c = &p->report->collectives[index];
    switch (column) {
    case 0:
        cli_put(&p->line, "#%zu", index + 1);
        break;
    case 1:
        cli_put(&p->line, "%s over %s", etch_collective_name(c->collective), c->group);
        break;
    case 2:
        put_moved(p, c);
        break;
    case 3:
        put_times(p, c);
        break;
    case 4:
        cli_put(&p->line, "%s%s", etch_rule_name(c->rule), asks(c) ? ", " : "");
        if (asks(c))
            put_place(p, asks(c));
        break;
    default:
        cli_put(&p->line, "%s", bytes_of(c));
    }
}

static void print_collective(printer *p, size_t index, const int widths[COLUMNS])
{
    cli_begin_line(&p->line, 1);
    int column = p->line.column;
    for (int i = 0; i < COLUMNS; i++) {
        if (i > 0)
            cli_put(&p->line, "%*s", column - p->line.column, "");
        put_cell(p, index, i);
        column += widths[i] + 2;
    }
    putchar('\n');
}

static void measure_columns(printer *p, int widths[COLUMNS])
{
    p->line.measures = true;
    for (size_t i = 0; i < p->report->collective_count; i++)
        for (int k = 0; k < COLUMNS; k++) {
            p->line.column = 0;
            put_cell(p, i, k);
            widen(&widths[k], p->line.column);
        }
    p->line.measures = false;
}

static void print_collectives(printer *p)
{
    const etch_placement_report *r = p->report;
    int widths[COLUMNS] = {0};
    etch_phase phase = ETCH_PHASE_COUNT;
    p->module = 0;
    measure_columns(p, widths);
    for (size_t i = 0; i < r->collective_count; i++) {
        if (phase != r->collectives[i].phase)
            printf("\n%s%s\n", etch_phase_name(r->collectives[i].phase),
                   i ? ""
                     : ": collectives, how often in a step, what asks for them, bytes of payload of one");
        phase = r->collectives[i].phase;
        print_collective(p, i, widths);
    }
}

/* ---- reasons ------------------------------------------------------------------------------------------- */

/* "needed whole by einsum(x, wq) in net.attention (net.etch:12; H @ tp, net.etch:30)": each phrase with its
 * lines. */
static void print_phrases(printer *p, const etch_view_collective *c, etch_phrase_role role)
{
    bool open = false, told = false;
    for (size_t i = 0; i < c->why_count; i++) {
        const etch_phrase_view *w = &c->why[i];
        const bool is_line = w->role == ETCH_PHRASE_LINE;
        if (!is_line)
            open = w->role == role;
        if (!open)
            continue;
        if (!is_line && told)
            putchar('\n');
        if (!is_line) {
            cli_begin_line(&p->line, 4);
            told = true;
        }
        cli_put(&p->line, "%s%s", is_line ? "; " : "", w->text);
        if (is_nowhere(&w->location))
            continue;
        cli_put(&p->line, is_line ? ", " : " (");
        put_place(p, &w->location);
        cli_put(&p->line, is_line ? "" : ")");
    }
    if (told)
        putchar('\n');
}

static void print_weights(printer *p, const etch_view_collective *c)
{
    if (c->tensor_count < 2 || c->collective == ETCH_SEND)
        return;
    cli_begin_line(&p->line, 4);
    for (size_t i = 0; i < c->tensor_count; i++) {
        cli_put(&p->line, "%s", i ? ", " : "");
        put_name(p, c->tensors[i]);
    }
    putchar('\n');
}

/* Is the same to be said of both? */
static bool same_reason(const etch_view_collective *a, const etch_view_collective *b)
{
    bool same = a->tensor_count == b->tensor_count && a->why_count == b->why_count &&
                a->module == b->module && a->collective == b->collective && strcmp(a->group, b->group) == 0 &&
                a->before && b->before && strcmp(a->before, b->before) == 0 && a->tensor_count > 0 &&
                a->tensors[0] == b->tensors[0];
    for (size_t i = 0; same && i < a->why_count; i++)
        same = strcmp(a->why[i].text, b->why[i].text) == 0;
    return same;
}

static void print_reason(printer *p, size_t first, size_t end)
{
    const etch_view_collective *c = &p->report->collectives[first];
    p->module = 0;
    cli_begin_line(&p->line, 1);
    cli_put(&p->line, "#%zu", first + 1);
    if (end > first + 1)
        cli_put(&p->line, " to #%zu", end);
    cli_put(&p->line, " %s over %s of ", etch_collective_name(c->collective), c->group);
    put_moved(p, c);
    if (c->after && c->tensor_count == 1 && strcmp(c->before, c->after) != 0)
        cli_put(&p->line, " to %s", c->after);
    putchar('\n');
    print_weights(p, c);
    print_phrases(p, c, ETCH_PHRASE_MADE);
    print_phrases(p, c, ETCH_PHRASE_NEEDS);
}

static void print_reasons(printer *p)
{
    const etch_placement_report *r = p->report;
    if (r->collective_count > 0)
        printf("\nwhy: how the tensor is held, and what asks for something else\n");
    for (size_t first = 0; first < r->collective_count;) {
        size_t end = first + 1;
        while (end < r->collective_count && same_reason(&r->collectives[first], &r->collectives[end]))
            end++;
        print_reason(p, first, end);
        first = end;
    }
}

/* ---- placements ---------------------------------------------------------------------------------------- */

/* Behind a value: what states where it is. */
static void put_source(printer *p, size_t index)
{
    const etch_view_value *v = &p->report->values[index];
    if (v->source == ETCH_PLACED_BY_OP || v->source == ETCH_PLACED_BY_MOVE)
        return;
    cli_put_to(&p->line, NOTE_COLUMN);
    if (v->source == ETCH_PLACED_BY_MAP) {
        for (size_t i = 0; i < v->shard_count; i++)
            if (!is_nowhere(&v->shards[i].line)) {
                cli_put(&p->line, "plan ");
                put_place(p, &v->shards[i].line);
                return;
            }
        cli_put(&p->line, "whole: no line of the plan divides it");
    } else {
        cli_put(&p->line, "%s%s", etch_placed_by_name(v->source), is_nowhere(&v->line) ? "" : " ");
        put_place(p, &v->line);
    }
}

/* Inputs and weights of a module or loop, before its first step. */
static void print_declared(printer *p, const cli_step *at, size_t depth)
{
    p->module = at->module;
    for (size_t i = 0; i < p->report->value_count; i++) {
        const etch_view_value *v = &p->report->values[i];
        const etch_view_tensor *t = &p->graph->tensors[v->tensor];
        if (v->step != ETCH_VIEW_NONE || p->is_told[i] || !cli_is_declared_at(p->graph, t, at))
            continue;
        p->is_told[i] = true;
        cli_begin_line(&p->line, depth);
        cli_put(&p->line, "%s ", etch_tensor_kind_name(t->kind));
        put_value(p, i);
        put_source(p, i);
        putchar('\n');
    }
}

static void print_way_step(printer *p, const cli_step *at, size_t depth, bool forward)
{
    const etch_view_module *m = &p->graph->modules[at->module];
    cli_begin_line(&p->line, depth);
    if (at->is_loop) {
        const etch_view_loop *l = &p->graph->loops[at->loop];
        cli_put(&p->line, "repeat %s as %s%s%s", l->total, l->name, l->iterations ? ", " : "",
                l->iterations ? l->iterations : "");
        cli_put(&p->line, "%s", l->undoes != ETCH_VIEW_NONE ? ", the last iteration first" : "");
        end_line_at(p, &l->location);
    } else {
        cli_put(&p->line, "%s", m->name);
        end_line_at(p, &m->location);
    }
    if (forward)
        print_declared(p, at, depth + 1);
}

static void go_to_step(printer *p, const etch_view_step *s)
{
    cli_way_to(&p->way, s->module, s->loop);
    for (size_t i = p->way.common; i < p->way.depth; i++)
        print_way_step(p, &p->way.steps[i], i + 1, cli_is_forward(s->phase));
    p->module = s->module;
}

/* Loop-carried values have no step: they are told where they are read first. */
static void print_carried(printer *p, const etch_view_step *s)
{
    for (size_t i = 0; i < s->in_count; i++) {
        const size_t in = s->ins[i];
        if (p->report->values[in].step != ETCH_VIEW_NONE || p->is_told[in])
            continue;
        p->is_told[in] = true;
        cli_begin_line(&p->line, p->way.depth + 1);
        cli_put(&p->line, "%s ", etch_tensor_kind_name(p->graph->tensors[p->report->values[in].tensor].kind));
        put_value(p, in);
        put_source(p, in);
        putchar('\n');
    }
}

static void print_step(printer *p, const etch_view_step *s)
{
    cli_begin_line(&p->line, p->way.depth + 1);
    if (s->collective != ETCH_VIEW_NONE && s->out_count > 1) { /* their names stand with the reasons */
        cli_put(&p->line, "%zu weights, whole = %s  #%zu\n", s->out_count, s->name, s->collective + 1);
        return;
    }
    for (size_t i = 0; i < s->out_count; i++) {
        cli_put(&p->line, "%s", i ? ", " : "");
        put_value(p, s->outs[i]);
    }
    cli_put(&p->line, " %s %s(", s->adds_to != ETCH_VIEW_NONE ? "+=" : "=", s->name);
    for (size_t i = 0; i < s->in_count; i++) {
        cli_put(&p->line, "%s", i ? ", " : "");
        put_name(p, p->report->values[s->ins[i]].tensor);
    }
    cli_put(&p->line, ")");
    if (s->collective != ETCH_VIEW_NONE)
        cli_put(&p->line, "  #%zu", s->collective + 1);
    const etch_placed_by source = p->report->values[s->outs[0]].source;
    if (source == ETCH_PLACED_BY_PIN || source == ETCH_PLACED_BY_SCOPE)
        put_source(p, s->outs[0]);
    putchar('\n');
}

static bool same_text(const etch_view_value *a, const etch_view_value *b)
{
    return strcmp(a->place, b->place) == 0;
}

/* What hands a value on as it is says nothing. */
static bool is_silent(const printer *p, const etch_view_step *s)
{
    return s->passes && same_text(&p->report->values[s->ins[0]], &p->report->values[s->outs[0]]);
}

static void print_steps(printer *p, bool forward)
{
    bool any = false;
    for (size_t i = 0; i < p->report->step_count; i++) {
        const etch_view_step *s = &p->report->steps[i];
        if (cli_is_forward(s->phase) != forward || is_silent(p, s))
            continue;
        if (!any)
            printf("\nwhere tensors are, %s\n", forward ? "forward" : "backward");
        any = true;
        go_to_step(p, s);
        print_carried(p, s);
        print_step(p, s);
    }
    p->way.depth = 0;
}

bool cli_print_plan_text(const etch_placement_report *report)
{
    printer p = {.report = report,
                 .sum = {.group = "", .shares = report->sums},
                 .graph = report->graph,
                 .is_told = calloc(report->value_count + 1, sizeof *p.is_told)};
    const bool fine = cli_way_begin(&p.way, report->graph) && p.is_told;
    if (fine) {
        print_summary(report);
        print_totals(&p);
        print_collectives(&p);
        print_reasons(&p);
        print_steps(&p, true);
        print_steps(&p, false);
    }
    cli_way_end(&p.way);
    free(p.is_told);
    return fine;
}
