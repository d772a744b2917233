/* A placement for Graphviz: a node for each step, collectives apart from ops by shape, colour and what they
 * cost; a cluster for each module and loop, and for the end of the step. */
#include "dot.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct drawing {
    const etch_placement_report *report;
    const etch_graph_report *graph;
    cli_way way;
    /* by value without a step: has it a node? */
    bool *is_drawn;
    /* by tensor: has its gradient a node? */
    bool *has_gradient;
    /* by value: what leaves the last iteration of the loop that it is a result of, or NONE */
    size_t *result;
    /* by tensor: the gradient of a weight, or NONE */
    size_t *gradient_of;
} drawing;

static bool begin(drawing *d, const etch_placement_report *report)
{
    const etch_graph_report *graph = report->graph;
    *d = (drawing){.report = report,
                   .graph = graph,
                   .is_drawn = calloc(report->value_count + 1, sizeof *d->is_drawn),
                   .result = calloc(report->value_count + 1, sizeof *d->result),
                   .has_gradient = calloc(graph->tensor_count + 1, sizeof *d->has_gradient),
                   .gradient_of = calloc(graph->tensor_count + 1, sizeof *d->gradient_of)};
    return d->is_drawn && d->result && d->has_gradient && d->gradient_of && cli_way_begin(&d->way, graph);
}

static void end(drawing *d)
{
    free(d->is_drawn);
    free(d->result);
    free(d->has_gradient);
    free(d->gradient_of);
    cli_way_end(&d->way);
}

static void find_ends(drawing *d)
{
    for (size_t i = 0; i < d->report->value_count; i++)
        d->result[i] = ETCH_VIEW_NONE;
    for (size_t i = 0; i < d->report->carried_count; i++) {
        const etch_view_carried *h = &d->report->carried[i];
        if (!d->graph->loops[h->loop].iterations) /* else it is not known which class comes last */
            d->result[h->result] = h->out;
    }
    for (size_t i = 0; i < d->graph->tensor_count; i++)
        d->gradient_of[i] = ETCH_VIEW_NONE;
    for (size_t i = 0; i < d->graph->tensor_count; i++) {
        const etch_view_tensor *t = &d->graph->tensors[i];
        if (t->kind == ETCH_GRADIENT && t->of != ETCH_VIEW_NONE)
            d->gradient_of[t->of] = i;
    }
}

/* The value that is drawn for another: the one behind arguments and results of modules and loops. */
static size_t drawn(const drawing *d, size_t value)
{
    for (;;) {
        const size_t step = d->report->values[value].step;
        if (step != ETCH_VIEW_NONE && d->report->steps[step].passes)
            value = d->report->steps[step].ins[0];
        else if (step == ETCH_VIEW_NONE && d->result[value] != ETCH_VIEW_NONE)
            value = d->result[value];
        else
            return value;
    }
}

/* ---- text ---------------------------------------------------------------------------------------------- */

static void put_value(const drawing *d, size_t index)
{
    const etch_view_value *v = &d->report->values[index];
    cli_dot_text(d->graph->tensors[v->tensor].name);
    cli_dot_text(v->place);
}

static void put_collective(const drawing *d, size_t index)
{
    const etch_view_collective *c = &d->report->collectives[index];
    printf("#%zu %s over ", index + 1, etch_collective_name(c->collective));
    cli_dot_text(c->group);
    fputs("\\n", stdout);
    cli_dot_text(c->bytes_by_dims && c->bytes[strspn(c->bytes, "0123456789")] ? c->bytes_by_dims : c->bytes);
    fputs(" bytes", stdout);
    for (size_t i = 0; i < c->why_count; i++)
        if (c->why[i].role == ETCH_PHRASE_NEEDS) {
            fputs("\\n", stdout);
            cli_dot_text(c->why[i].text);
        }
}

/* ---- nodes --------------------------------------------------------------------------------------------- */

/* What no step makes. */
static void draw_source(drawing *d, size_t value, size_t depth)
{
    const bool is_weight = d->graph->tensors[d->report->values[value].tensor].kind == ETCH_WEIGHT;
    if (d->is_drawn[value] || d->report->values[value].step != ETCH_VIEW_NONE)
        return;
    d->is_drawn[value] = true;
    cli_dot_indent(depth);
    printf("v%zu [shape=%s label=\"", value, is_weight ? "cylinder" : "ellipse");
    put_value(d, value);
    fputs("\"]\n", stdout);
}

static void draw_gradient(drawing *d, size_t tensor, size_t depth)
{
    if (d->has_gradient[tensor])
        return;
    d->has_gradient[tensor] = true;
    cli_dot_indent(depth);
    printf("t%zu [shape=cylinder label=\"", tensor);
    cli_dot_text(d->graph->tensors[tensor].name);
    fputs("\"]\n", stdout);
}

/* What a loop carries stands at its beginning. */
static void draw_beginning(void *data, size_t depth, char section)
{
    drawing *d = data;
    const cli_step *at = &d->way.steps[depth];
    (void)section;
    for (size_t i = 0; at->is_loop && i < d->report->carried_count; i++)
        if (d->report->carried[i].loop == at->loop)
            draw_source(d, d->report->carried[i].in, depth + 1);
}

static cli_dot_item item_of(const void *data, size_t index)
{
    const etch_view_step *s = &((const drawing *)data)->report->steps[index];
    return (cli_dot_item){s->phase, s->module, s->loop, s->passes};
}

static void draw_step(void *data, size_t index)
{
    drawing *d = data;
    const etch_view_step *s = &d->report->steps[index];
    for (size_t i = 0; i < s->in_count; i++)
        draw_source(d, drawn(d, s->ins[i]), d->way.depth);
    if (s->adds_to != ETCH_VIEW_NONE)
        draw_gradient(d, s->adds_to, d->way.depth);
    cli_dot_indent(d->way.depth);
    printf("s%zu [", index);
    if (s->collective != ETCH_VIEW_NONE) {
        fputs("shape=hexagon style=filled fillcolor=orange label=\"", stdout);
        put_collective(d, s->collective);
    } else {
        printf("label=\"%s", s->name);
    }
    for (size_t i = 0; i < s->out_count; i++) {
        fputs("\\n", stdout);
        put_value(d, s->outs[i]);
    }
    fputs("\"]\n", stdout);
}

/* Collectives that are no steps. */
static void draw_rest(drawing *d)
{
    bool any = false;
    for (size_t i = 0; i < d->report->collective_count; i++) {
        const etch_view_collective *c = &d->report->collectives[i];
        if (c->step != ETCH_VIEW_NONE)
            continue;
        if (!any)
            fputs("  subgraph cluster_end { label=\"the end of the step, and between stages\"\n", stdout);
        any = true;
        for (size_t k = 0; k < c->tensor_count; k++)
            if (d->gradient_of[c->tensors[k]] != ETCH_VIEW_NONE)
                draw_gradient(d, d->gradient_of[c->tensors[k]], 0);
        fputs("    ", stdout);
        printf("c%zu [shape=hexagon style=filled fillcolor=orange label=\"", i);
        put_collective(d, i);
        fputs("\"]\n", stdout);
    }
    if (any)
        fputs("  }\n", stdout);
    for (size_t i = 0; i < d->report->carried_count; i++) {
        const etch_view_carried *h = &d->report->carried[i];
        const size_t ends[] = {h->in, h->out, h->result, h->init == ETCH_VIEW_NONE ? h->in : h->init};
        for (size_t e = 0; e < sizeof ends / sizeof *ends; e++)
            draw_source(d, drawn(d, ends[e]), 0);
    }
}

/* ---- edges --------------------------------------------------------------------------------------------- */

static void put_end(const drawing *d, size_t value)
{
    const size_t at = drawn(d, value);
    const size_t step = d->report->values[at].step;
    if (step != ETCH_VIEW_NONE)
        printf("s%zu", step);
    else
        printf("v%zu", at);
}

static void draw_step_edges(const drawing *d, size_t index)
{
    const etch_view_step *s = &d->report->steps[index];
    for (size_t i = 0; !s->passes && i < s->in_count; i++) {
        const size_t maker = d->report->values[drawn(d, s->ins[i])].step;
        const bool crosses = maker != ETCH_VIEW_NONE && cli_is_forward(d->report->steps[maker].phase) &&
                             !cli_is_forward(s->phase);
        fputs("  ", stdout);
        put_end(d, s->ins[i]);
        printf(" -> s%zu%s\n", index, crosses ? " [style=dashed]" : "");
    }
    if (!s->passes && s->adds_to != ETCH_VIEW_NONE)
        printf("  s%zu -> t%zu [label=\"+=\"]\n", index, s->adds_to);
}

static void draw_carried_edges(const drawing *d, const etch_view_carried *h)
{
    if (h->init != ETCH_VIEW_NONE) {
        fputs("  ", stdout);
        put_end(d, h->init);
        printf(" -> v%zu\n", h->in);
    }
    for (size_t i = 0; i < d->report->carried_count; i++) {
        const etch_view_carried *other = &d->report->carried[i];
        if (other->result != h->result)
            continue;
        fputs("  ", stdout);
        put_end(d, other->out);
        printf(" -> v%zu [style=dotted constraint=false label=\"next\"]\n", h->in);
    }
    if (d->graph->loops[h->loop].iterations) {
        fputs("  ", stdout);
        put_end(d, h->out);
        printf(" -> v%zu [style=dotted]\n", h->result);
    }
}

static void draw_edges(const drawing *d)
{
    for (size_t i = 0; i < d->report->step_count; i++)
        draw_step_edges(d, i);
    for (size_t i = 0; i < d->report->carried_count; i++)
        draw_carried_edges(d, &d->report->carried[i]);
    for (size_t i = 0; i < d->report->collective_count; i++) {
        const etch_view_collective *c = &d->report->collectives[i];
        for (size_t k = 0; c->step == ETCH_VIEW_NONE && k < c->tensor_count; k++)
            if (d->gradient_of[c->tensors[k]] != ETCH_VIEW_NONE)
                printf("  t%zu -> c%zu\n", d->gradient_of[c->tensors[k]], i);
    }
}

bool cli_print_plan_dot(const etch_placement_report *report)
{
    drawing d;
    const bool fine = begin(&d, report);
    if (fine) {
        find_ends(&d);
        const cli_dot_drawing of = {&d.way, &d, report->step_count, item_of, draw_step, draw_beginning};
        cli_dot_begin(report->graph->model, report->plan);
        cli_dot_pass(&of, true);
        cli_dot_pass(&of, false);
        draw_rest(&d);
        draw_edges(&d);
        fputs("}\n", stdout);
    }
    end(&d);
    return fine;
}
