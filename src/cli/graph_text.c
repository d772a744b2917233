/* A graph for people: one line for each op, in the order of the program, in the modules and loops that it
 * stands in. */
#include "graph_int.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FLOP_COLUMN = 60, NOTE_COLUMN = 92 };

/* ---- one line --------------------------------------------------------------------------------------- */

typedef struct printer {
    const etch_graph_report *report;
    cli_way way;
    /* in whose terms names are said */
    size_t module;
    /* by tensor: the op that gives it, or NONE */
    size_t *producer;
    /* by tensor: by an op that does something, or a loop */
    bool *is_read;
    cli_line line;
} printer;

static void put_place(printer *p, const etch_location *location)
{
    if (location->path)
        cli_put(&p->line, "%s:%u", location->path, (unsigned)location->line);
}

static void end_line_at(printer *p, const etch_location *location)
{
    if (location->path)
        cli_put_to(&p->line, NOTE_COLUMN);
    put_place(p, location);
    putchar('\n');
}

static void put_dim_list(printer *p, const etch_view_tensor *t)
{
    cli_put(&p->line, "[");
    for (size_t i = 0; i < t->dim_count; i++)
        cli_put(&p->line, "%s%s", i ? "," : "", p->report->dims[t->dims[i]].name);
    cli_put(&p->line, "]");
}

/* A name as the module at hand would say it; of another one's tensor, with the way there. */
static void put_name(printer *p, size_t index)
{
    const etch_view_tensor *t = &p->report->tensors[index];
    if (t->added_to != ETCH_VIEW_NONE)
        t = &p->report->tensors[t->added_to];
    if (t->module == p->module)
        cli_put(&p->line, "%s", t->name);
    else
        cli_put(&p->line, "%s.%s", p->report->modules[t->module].path, t->name);
}

/* q[B,S,H]: bf16 */
static void put_typed(printer *p, size_t index)
{
    put_name(p, index);
    put_dim_list(p, &p->report->tensors[index]);
    cli_put(&p->line, ": %s", etch_dtype_name(p->report->tensors[index].dtype));
}

static void put_names(printer *p, const size_t *tensors, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        cli_put(&p->line, "%s", i ? ", " : "");
        put_name(p, tensors[i]);
    }
}

static void put_all_typed(printer *p, const size_t *tensors, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        cli_put(&p->line, "%s", i ? ", " : "");
        put_typed(p, tensors[i]);
    }
}

static bool is_number(const char *text)
{
    return text[strspn(text, "0123456789")] == '\0';
}

/* A number where there is one, else the formula over dims. */
static const char *shortest(const char *value, const char *by_dims)
{
    return is_number(value) ? value : by_dims;
}

/* ---- modules and loops ------------------------------------------------------------------------------ */

/* Inputs and weights of a module or loop, before its first op. */
static void print_declared(printer *p, const cli_step *step, size_t depth)
{
    p->module = step->module;
    for (size_t i = cli_first_declared(&p->way, step); i != ETCH_VIEW_NONE;
         i = cli_next_declared(&p->way, i)) {
        const etch_view_tensor *t = &p->report->tensors[i];
        cli_begin_line(&p->line, depth);
        cli_put(&p->line, "%s%s ", t->frozen && !t->buffer ? "frozen " : "",
                t->buffer ? "buffer" : etch_tensor_kind_name(t->kind));
        put_typed(p, i);
        if (t->constant)
            cli_put(&p->line, " = %s", t->constant);
        end_line_at(p, &t->location);
    }
}

static void print_module(printer *p, size_t index, size_t depth, bool forward)
{
    const etch_view_module *m = &p->report->modules[index];
    p->module = m->parent == ETCH_VIEW_NONE ? index : m->parent;
    cli_begin_line(&p->line, depth);
    if (forward && m->result_count > 0) {
        put_all_typed(p, m->results, m->result_count);
        cli_put(&p->line, " = ");
    }
    cli_put(&p->line, "%s", m->name);
    if (forward && m->argument_count > 0) {
        cli_put(&p->line, "(");
        put_names(p, m->arguments, m->argument_count);
        cli_put(&p->line, ")");
    }
    end_line_at(p, &m->location);
}

/* What an iteration carries on, of whatever class it is. */
static void put_carried(printer *p, const etch_view_loop *loop, size_t carry)
{
    bool any = false;
    for (size_t i = 0; i < p->report->loop_count; i++) {
        const etch_view_loop *other = &p->report->loops[i];
        if (other->number != loop->number)
            continue;
        cli_put(&p->line, "%s", any ? " or " : "");
        put_name(p, other->carries[carry].out);
        any = true;
    }
}

static void print_loop(printer *p, size_t index, size_t depth)
{
    const etch_view_loop *l = &p->report->loops[index];
    p->module = l->module;
    cli_begin_line(&p->line, depth);
    cli_put(&p->line, "repeat %s as %s", l->total, l->name);
    if (l->iterations)
        cli_put(&p->line, ", %s", l->iterations);
    if (l->undoes != ETCH_VIEW_NONE)
        cli_put(&p->line, ", the last iteration first");
    end_line_at(p, &l->location);
    for (size_t i = 0; i < l->carry_count; i++) {
        const etch_view_carry *c = &l->carries[i];
        cli_begin_line(&p->line, depth + 1);
        put_typed(p, c->in);
        cli_put(&p->line, ": at first ");
        if (c->init == ETCH_VIEW_NONE)
            cli_put(&p->line, "zeros");
        else
            put_name(p, c->init);
        cli_put(&p->line, ", then ");
        put_carried(p, l, i);
        cli_put(&p->line, " of the iteration before; the last one gives ");
        put_name(p, c->result);
        putchar('\n');
    }
}

static void go_to_op(printer *p, const etch_view_op *op)
{
    cli_way_to(&p->way, op->module, op->loop);
    for (size_t i = p->way.common; i < p->way.depth; i++) {
        const cli_step *step = &p->way.steps[i];
        if (step->is_loop)
            print_loop(p, step->loop, i + 1);
        else
            print_module(p, step->module, i + 1, cli_is_forward(op->phase));
        if (cli_is_forward(op->phase))
            print_declared(p, step, i + 2);
    }
    p->module = op->module;
}

/* ---- ops -------------------------------------------------------------------------------------------- */

static bool same_name(const printer *p, size_t a, size_t b)
{
    const etch_view_tensor *left = &p->report->tensors[a], *right = &p->report->tensors[b];
    return left->module == right->module && strcmp(left->name, right->name) == 0;
}

/* Why the op is there: "gradient of gelu, " */
static void put_reason(printer *p, etch_phase phase, const char *derives)
{
    if (phase == ETCH_RECOMPUTE)
        cli_put(&p->line, "%s again, ", derives);
    else if (phase == ETCH_BACKWARD && derives)
        cli_put(&p->line, "gradient of %s, ", derives);
    else if (phase == ETCH_BACKWARD)
        cli_put(&p->line, "gradients of all uses, ");
}

/* The gradient of a value with one use is that of the use. */
static size_t origin(const printer *p, size_t tensor)
{
    const etch_graph_report *r = p->report;
    size_t op = p->producer[tensor];
    while (op != ETCH_VIEW_NONE && r->ops[op].passes && r->ops[op].phase == ETCH_BACKWARD) {
        tensor = r->ops[op].ins[0];
        op = p->producer[tensor];
    }
    return tensor;
}

static bool is_added(const printer *p, size_t tensor)
{
    return p->report->tensors[tensor].added_to != ETCH_VIEW_NONE;
}

static bool adds_all(const printer *p, const etch_view_op *op)
{
    for (size_t i = 0; i < op->out_count; i++)
        if (!is_added(p, op->outs[i]))
            return false;
    return true;
}

static void print_op(printer *p, const etch_view_op *op)
{
    const bool adds = adds_all(p, op);
    cli_begin_line(&p->line, p->way.depth + 1);
    for (size_t i = 0; i < op->out_count; i++) {
        cli_put(&p->line, "%s%s", i ? ", " : "", is_added(p, op->outs[i]) && !adds ? "+" : "");
        put_typed(p, op->outs[i]);
    }
    if (op->passes) {
        cli_put(&p->line, " = ");
        put_name(p, origin(p, op->ins[0]));
        putchar('\n');
        return;
    }
    cli_put(&p->line, " %s %s(", adds ? "+=" : "=", op->name);
    put_names(p, op->ins, op->in_count);
    cli_put(&p->line, "%s%s)", *op->arguments ? ", " : "", op->arguments);
    if (strcmp(op->flop, "0") != 0) {
        cli_put_to(&p->line, FLOP_COLUMN);
        cli_put(&p->line, "%s FLOP", shortest(op->flop, op->flop_by_dims));
    }
    cli_put_to(&p->line, NOTE_COLUMN);
    put_reason(p, op->phase, op->derives);
    put_place(p, &op->location);
    putchar('\n');
}

/* Arguments and results stand beside the call that they are of; gradients that are carried on, where
 * something is done with them. */
static bool is_silent(const printer *p, const etch_view_op *op)
{
    if (!op->passes || op->phase != ETCH_BACKWARD)
        return op->passes;
    return !p->is_read[op->outs[0]] || same_name(p, origin(p, op->ins[0]), op->outs[0]);
}

static void print_ops(printer *p, bool forward)
{
    bool any = false;
    for (size_t i = 0; i < p->report->op_count; i++) {
        const etch_view_op *op = &p->report->ops[i];
        if (cli_is_forward(op->phase) != forward || (is_silent(p, op) && !forward))
            continue;
        if (!any)
            printf("\n%s\n", forward ? "forward" : "backward");
        any = true;
        go_to_op(p, op); /* of forward also for arguments: a module may do nothing with them */
        if (!is_silent(p, op))
            print_op(p, op);
    }
    p->way.depth = 0;
}

/* ---- what is kept ----------------------------------------------------------------------------------- */

static void print_saved(printer *p)
{
    if (p->report->saved_count > 0)
        printf("\nkept for the backward pass: bytes of one microbatch, and what reads it first\n");
    p->module = 0;
    for (size_t i = 0; i < p->report->saved_count; i++) {
        const etch_view_saved *s = &p->report->saved[i];
        cli_begin_line(&p->line, 1);
        put_typed(p, s->tensor);
        cli_put_to(&p->line, FLOP_COLUMN);
        if (is_number(s->bytes))
            cli_put(&p->line, "%s", s->bytes);
        else if (strcmp(s->runs, "1") == 0)
            cli_put(&p->line, "%s", s->bytes_by_dims);
        else
            cli_put(&p->line, "%s times %s", s->runs, s->bytes_by_dims);
        cli_put_to(&p->line, NOTE_COLUMN);
        put_reason(p, s->reader_phase, s->reader_derives);
        put_place(p, &s->reader_location);
        putchar('\n');
    }
}

/* ---- everything ------------------------------------------------------------------------------------- */

static void print_summary(const etch_graph_report *r)
{
    cli_print_field("model", "%s", r->model);
    if (r->config)
        cli_print_field("config", "%s", r->config);
    if (r->part)
        cli_print_field("part", r->calls > 1 ? "%s, the first of %zu" : "%s", r->part, r->calls);
    if (strcmp(r->micro, "1") != 0)
        cli_print_field("micro", "%s", r->micro);
    for (size_t i = 0; i < r->dim_count; i++) {
        const etch_view_dim *d = &r->dims[i];
        cli_print_field(i ? "" : "dims", "%s %s %s%s", d->name, d->average ? "~" : "=", d->size,
                        d->divided ? ", of which a microbatch has 1/micro" : "");
    }
    for (size_t i = 0; i < r->total_count; i++)
        cli_print_field(i ? "" : "FLOP", "%s: %s", etch_phase_name(r->totals[i].phase), r->totals[i].flop);
}

static void find_uses(printer *p)
{
    const etch_graph_report *r = p->report;
    for (size_t i = 0; i < r->tensor_count; i++)
        p->producer[i] = ETCH_VIEW_NONE;
    for (size_t i = 0; i < r->op_count; i++) {
        for (size_t k = 0; k < r->ops[i].out_count; k++)
            p->producer[r->ops[i].outs[k]] = i;
        for (size_t k = 0; k < r->ops[i].in_count && !r->ops[i].passes; k++)
            p->is_read[r->ops[i].ins[k]] = true;
    }
    for (size_t i = 0; i < r->loop_count; i++)
        for (size_t k = 0; k < r->loops[i].carry_count; k++) {
            const etch_view_carry *c = &r->loops[i].carries[k];
            p->is_read[c->out] = true;
            if (c->init != ETCH_VIEW_NONE)
                p->is_read[c->init] = true;
        }
}

bool cli_print_graph_text(const etch_graph_report *report)
{
    printer p = {.report = report,
                 .producer = calloc(report->tensor_count + 1, sizeof *p.producer),
                 .is_read = calloc(report->tensor_count + 1, sizeof *p.is_read)};
    const bool fine = cli_way_begin(&p.way, report) && p.producer && p.is_read;
    if (fine) {
        find_uses(&p);
        print_summary(report);
        print_ops(&p, true);
        print_ops(&p, false);
        print_saved(&p);
    }
    cli_way_end(&p.way);
    free(p.producer);
    free(p.is_read);
    return fine;
}
