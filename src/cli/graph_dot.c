/* A graph for Graphviz: a node for each op and for each tensor that none gives, a cluster for each module and
 * loop. */
#include "dot.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct drawing {
    const etch_graph_report *report;
    cli_way way;
    /* by tensor: the op that gives it, or NONE */
    size_t *producer;
    /* by tensor: what leaves the last iteration of the loop that it is a result of, or NONE */
    size_t *result;
    /* by tensor: has it a node of its own? */
    bool *is_drawn;
} drawing;

static bool begin(drawing *d, const etch_graph_report *report)
{
    const size_t count = report->tensor_count + 1;
    *d = (drawing){.report = report,
                   .producer = calloc(count, sizeof *d->producer),
                   .result = calloc(count, sizeof *d->result),
                   .is_drawn = calloc(count, sizeof *d->is_drawn)};
    return d->producer && d->result && d->is_drawn && cli_way_begin(&d->way, report);
}

static void end(drawing *d)
{
    free(d->producer);
    free(d->result);
    free(d->is_drawn);
    cli_way_end(&d->way);
}

static void find_producers(drawing *d)
{
    const etch_graph_report *r = d->report;
    for (size_t i = 0; i < r->tensor_count; i++)
        d->producer[i] = d->result[i] = ETCH_VIEW_NONE;
    for (size_t i = 0; i < r->op_count; i++)
        for (size_t k = 0; k < r->ops[i].out_count; k++)
            d->producer[r->ops[i].outs[k]] = i;
    for (size_t i = 0; i < r->loop_count; i++)
        for (size_t k = 0; k < r->loops[i].carry_count; k++)
            if (!r->loops[i].iterations) /* else it is not known which class comes last */
                d->result[r->loops[i].carries[k].result] = r->loops[i].carries[k].out;
}

/* The tensor that is drawn for a value: the one behind arguments and results of modules and loops. */
static size_t drawn(const drawing *d, size_t tensor)
{
    for (;;) {
        const size_t op = d->producer[tensor];
        if (op != ETCH_VIEW_NONE && d->report->ops[op].passes)
            tensor = d->report->ops[op].ins[0];
        else if (op == ETCH_VIEW_NONE && d->result[tensor] != ETCH_VIEW_NONE)
            tensor = d->result[tensor];
        else
            return tensor;
    }
}

/* ---- text ------------------------------------------------------------------------------------------- */

static void put_type(const etch_graph_report *r, const etch_view_tensor *t)
{
    cli_dot_text(t->name);
    putchar('[');
    for (size_t i = 0; i < t->dim_count; i++) {
        fputs(i ? "," : "", stdout);
        cli_dot_text(r->dims[t->dims[i]].name);
    }
    printf("]: %s", etch_dtype_name(t->dtype));
}

/* ---- nodes ------------------------------------------------------------------------------------------ */

static void draw_tensor(drawing *d, size_t index, size_t depth)
{
    const etch_view_tensor *t = &d->report->tensors[index];
    const bool is_kept = t->kind == ETCH_WEIGHT || t->kind == ETCH_GRADIENT;
    if (d->is_drawn[index])
        return;
    d->is_drawn[index] = true;
    cli_dot_indent(depth);
    printf("t%zu [shape=%s label=\"", index, is_kept ? "cylinder" : "ellipse");
    put_type(d->report, t);
    fputs("\"]\n", stdout);
}

/* What stands at the beginning of a module or loop: what is declared there, what a loop carries. */
static void draw_beginning(void *data, size_t depth, char section)
{
    drawing *d = data;
    const cli_step *step = &d->way.steps[depth];
    const etch_graph_report *r = d->report;
    for (size_t i = 0; step->is_loop && i < r->loops[step->loop].carry_count; i++)
        draw_tensor(d, r->loops[step->loop].carries[i].in, depth + 1);
    if (section != 'f')
        return;
    for (size_t i = cli_first_declared(&d->way, step); i != ETCH_VIEW_NONE; i = cli_next_declared(&d->way, i))
        draw_tensor(d, i, depth + 1);
}

static cli_dot_item item_of(const void *data, size_t index)
{
    const etch_view_op *op = &((const drawing *)data)->report->ops[index];
    return (cli_dot_item){op->phase, op->module, op->loop, op->passes};
}

static void draw_op(void *data, size_t index)
{
    drawing *d = data;
    const etch_view_op *op = &d->report->ops[index];
    for (size_t i = 0; i < op->in_count; i++) { /* what no op gives stands with its first reader */
        const size_t in = drawn(d, op->ins[i]);
        if (d->producer[in] == ETCH_VIEW_NONE)
            draw_tensor(d, in, d->way.depth);
    }
    cli_dot_indent(d->way.depth);
    printf("o%zu [label=\"%s", index, op->name);
    for (size_t i = 0; i < op->out_count; i++) {
        fputs("\\n", stdout);
        put_type(d->report, &d->report->tensors[op->outs[i]]);
    }
    fputs("\"]\n", stdout);
    for (size_t i = 0; i < op->out_count; i++)
        if (d->report->tensors[op->outs[i]].added_to != ETCH_VIEW_NONE)
            draw_tensor(d, d->report->tensors[op->outs[i]].added_to, d->way.depth);
}

/* Loops whose values nobody reads inside still hand them on. */
static void draw_rest(drawing *d)
{
    for (size_t i = 0; i < d->report->loop_count; i++)
        for (size_t k = 0; k < d->report->loops[i].carry_count; k++) {
            const etch_view_carry *c = &d->report->loops[i].carries[k];
            const size_t ends[] = {c->in, c->out, c->result, c->init == ETCH_VIEW_NONE ? c->in : c->init};
            for (size_t e = 0; e < sizeof ends / sizeof *ends; e++)
                if (d->producer[drawn(d, ends[e])] == ETCH_VIEW_NONE)
                    draw_tensor(d, drawn(d, ends[e]), 0);
        }
}

/* ---- edges ------------------------------------------------------------------------------------------ */

static void put_end(const drawing *d, size_t tensor)
{
    const size_t at = drawn(d, tensor);
    if (d->producer[at] != ETCH_VIEW_NONE)
        printf("o%zu", d->producer[at]);
    else
        printf("t%zu", at);
}

/* What the backward pass reads of the forward pass. */
static bool crosses(const drawing *d, size_t in, const etch_view_op *reader)
{
    const size_t op = d->producer[drawn(d, in)];
    return op != ETCH_VIEW_NONE && cli_is_forward(d->report->ops[op].phase) && !cli_is_forward(reader->phase);
}

static void draw_op_edges(const drawing *d, size_t index)
{
    const etch_view_op *op = &d->report->ops[index];
    for (size_t k = 0; !op->passes && k < op->in_count; k++) {
        fputs("  ", stdout);
        put_end(d, op->ins[k]);
        printf(" -> o%zu%s\n", index, crosses(d, op->ins[k], op) ? " [style=dashed]" : "");
    }
    for (size_t k = 0; k < op->out_count; k++)
        if (d->report->tensors[op->outs[k]].added_to != ETCH_VIEW_NONE)
            printf("  o%zu -> t%zu [label=\"+=\"]\n", index, d->report->tensors[op->outs[k]].added_to);
}

/* Into an iteration of the class `to` from one of the class `from`. */
static void draw_next(const drawing *d, const etch_view_carry *from, const etch_view_carry *to)
{
    fputs("  ", stdout);
    put_end(d, from->out);
    printf(" -> t%zu [style=dotted constraint=false label=\"next\"]\n", to->in);
}

static void draw_loop_edges(const drawing *d, const etch_view_loop *loop)
{
    const etch_graph_report *r = d->report;
    for (size_t k = 0; k < loop->carry_count; k++) {
        const etch_view_carry *c = &loop->carries[k];
        if (c->init != ETCH_VIEW_NONE) {
            fputs("  ", stdout);
            put_end(d, c->init);
            printf(" -> t%zu\n", c->in);
        }
        for (size_t i = 0; i < r->loop_count; i++)
            if (r->loops[i].number == loop->number)
                draw_next(d, &r->loops[i].carries[k], c);
        if (loop->iterations) {
            fputs("  ", stdout);
            put_end(d, c->out);
            printf(" -> t%zu [style=dotted]\n", c->result);
        }
    }
}

static void draw_edges(const drawing *d)
{
    for (size_t i = 0; i < d->report->op_count; i++)
        draw_op_edges(d, i);
    for (size_t i = 0; i < d->report->loop_count; i++)
        draw_loop_edges(d, &d->report->loops[i]);
}

bool cli_print_graph_dot(const etch_graph_report *report)
{
    drawing d;
    const bool fine = begin(&d, report);
    if (fine) {
        find_producers(&d);
        const cli_dot_drawing of = {&d.way, &d, report->op_count, item_of, draw_op, draw_beginning};
        cli_dot_begin(report->model, NULL);
        cli_dot_pass(&of, true);
        cli_dot_pass(&of, false);
        draw_rest(&d);
        draw_edges(&d);
        fputs("}\n", stdout);
    }
    end(&d);
    return fine;
}
