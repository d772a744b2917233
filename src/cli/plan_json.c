/* The JSON tree of a placement: docs/show-json.md. Dims, tensors, loops and modules are those of `etch show`
 * without a plan; values, steps and collectives refer to them, and to each other, by their index. */
#include "graph_int.h"

static json_t *axis_json(const etch_view_axis *axis, bool *failed)
{
    json_t *row = json_object();
    cli_json_set(row, "name", cli_json_text(axis->name), failed);
    cli_json_set(row, "size", cli_json_text(axis->size), failed);
    cli_json_set(row, "location", cli_json_location(&axis->location, failed), failed);
    return row;
}

static json_t *pad_json(const etch_placement_report *r, const etch_view_pad *pad, bool *failed)
{
    json_t *row = json_object();
    (void)r;
    cli_json_set(row, "dim", cli_json_index(pad->dim), failed);
    cli_json_set(row, "size", cli_json_text(pad->size), failed);
    cli_json_set(row, "location", cli_json_location(&pad->location, failed), failed);
    return row;
}

static json_t *axes_json(const etch_placement_report *r, const size_t *axes, size_t count, bool *failed)
{
    json_t *list = json_array();
    for (size_t i = 0; i < count; i++)
        cli_json_append(list, cli_json_text(r->axes[axes[i]].name), failed);
    return list;
}

static json_t *value_json(const etch_placement_report *r, const etch_view_value *v, bool *failed)
{
    json_t *row = json_object(), *shards = json_array();
    for (size_t i = 0; i < v->shard_count; i++) {
        const etch_view_shard *s = &v->shards[i];
        json_t *shard = json_object();
        cli_json_set(shard, "dim", cli_json_index(s->dim), failed);
        cli_json_set(shard, "axes", axes_json(r, s->axes, s->axis_count, failed), failed);
        cli_json_set(shard, "line", cli_json_location(&s->line, failed), failed);
        cli_json_append(shards, shard, failed);
    }
    cli_json_set(row, "tensor", cli_json_index(v->tensor), failed);
    cli_json_set(row, "place", cli_json_text(v->place), failed);
    cli_json_set(row, "shards", shards, failed);
    cli_json_set(row, "partial", axes_json(r, v->partial, v->partial_count, failed), failed);
    cli_json_set(row, "maximum", axes_json(r, v->maximum, v->maximum_count, failed), failed);
    cli_json_set(row, "parts", axes_json(r, v->parts, v->part_count, failed), failed);
    cli_json_set(row, "bytes", cli_json_text(v->bytes), failed);
    cli_json_set(row, "bytes_by_dims", cli_json_text(v->bytes_by_dims), failed);
    cli_json_set(row, "step", cli_json_index(v->step), failed);
    cli_json_set(row, "source", cli_json_text(etch_placed_by_name(v->source)), failed);
    cli_json_set(row, "line", cli_json_location(&v->line, failed), failed);
    return row;
}

static json_t *step_json(const etch_placement_report *r, const etch_view_step *s, bool *failed)
{
    json_t *row = json_object();
    (void)r;
    cli_json_set(row, "name", cli_json_text(s->name), failed);
    cli_json_set(row, "phase", cli_json_text(etch_phase_name(s->phase)), failed);
    cli_json_set(row, "ins", cli_json_indices(s->ins, s->in_count, failed), failed);
    cli_json_set(row, "outs", cli_json_indices(s->outs, s->out_count, failed), failed);
    cli_json_set(row, "module", cli_json_index(s->module), failed);
    cli_json_set(row, "loop", cli_json_index(s->loop), failed);
    cli_json_set(row, "collective", cli_json_index(s->collective), failed);
    cli_json_set(row, "adds_to", cli_json_index(s->adds_to), failed);
    cli_json_set(row, "passes", json_boolean(s->passes), failed);
    cli_json_set(row, "location", cli_json_location(&s->location, failed), failed);
    return row;
}

static json_t *carried_json(const etch_placement_report *r, const etch_view_carried *h, bool *failed)
{
    json_t *row = json_object();
    (void)r;
    cli_json_set(row, "loop", cli_json_index(h->loop), failed);
    cli_json_set(row, "init", cli_json_index(h->init), failed);
    cli_json_set(row, "in", cli_json_index(h->in), failed);
    cli_json_set(row, "out", cli_json_index(h->out), failed);
    cli_json_set(row, "result", cli_json_index(h->result), failed);
    return row;
}

static json_t *shares_json(const etch_placement_report *r, const etch_view_share *shares, bool *failed)
{
    json_t *list = json_array();
    for (size_t i = 0; i < r->stage_count; i++) {
        json_t *share = json_object();
        cli_json_set(share, "stage", cli_json_text(r->stages[i]), failed);
        cli_json_set(share, "times", cli_json_text(shares[i].times), failed);
        cli_json_set(share, "bytes", cli_json_text(shares[i].bytes), failed);
        cli_json_set(share, "wire", cli_json_text(shares[i].wire), failed);
        cli_json_append(list, share, failed);
    }
    return list;
}

static json_t *collective_json(const etch_placement_report *r, const etch_view_collective *c, bool *failed)
{
    json_t *row = json_object();
    cli_json_set(row, "collective", cli_json_text(etch_collective_name(c->collective)), failed);
    cli_json_set(row, "phase", cli_json_text(etch_phase_name(c->phase)), failed);
    cli_json_set(row, "group", cli_json_text(c->group), failed);
    cli_json_set(row, "axes", axes_json(r, c->axes, c->axis_count, failed), failed);
    cli_json_set(row, "ranks", cli_json_text(c->ranks), failed);
    cli_json_set(row, "step", cli_json_index(c->step), failed);
    cli_json_set(row, "tensors", cli_json_indices(c->tensors, c->tensor_count, failed), failed);
    cli_json_set(row, "before", cli_json_text(c->before), failed);
    cli_json_set(row, "after", cli_json_text(c->after), failed);
    cli_json_set(row, "module", cli_json_index(c->module), failed);
    cli_json_set(row, "loop", cli_json_index(c->loop), failed);
    cli_json_set(row, "dtype", cli_json_text(etch_dtype_name(c->dtype)), failed);
    cli_json_set(row, "bytes", cli_json_text(c->bytes), failed);
    cli_json_set(row, "bytes_by_dims", cli_json_text(c->bytes_by_dims), failed);
    cli_json_set(row, "stages", shares_json(r, c->shares, failed), failed);
    cli_json_set(row, "rule", cli_json_text(etch_rule_name(c->rule)), failed);
    cli_json_set(row, "why", cli_json_phrases(c->why, c->why_count, failed), failed);
    return row;
}

static json_t *total_json(const etch_placement_report *r, const etch_view_comm *c, bool *failed)
{
    json_t *row = json_object();
    cli_json_set(row, "collective", cli_json_text(etch_collective_name(c->collective)), failed);
    cli_json_set(row, "group", cli_json_text(c->group), failed);
    cli_json_set(row, "stages", shares_json(r, c->shares, failed), failed);
    return row;
}

/* Adds to a list of shares what people say of their numbers. */
static void say_shares(const etch_placement_report *r, json_t *list, const etch_view_share *shares,
                       bool *failed)
{
    for (size_t i = 0; i < r->stage_count; i++) {
        json_t *share = json_array_get(list, i);
        if (shares[i].bytes_human)
            cli_json_set(share, "bytes_human", cli_json_text(shares[i].bytes_human), failed);
        if (shares[i].wire_human)
            cli_json_set(share, "wire_human", cli_json_text(shares[i].wire_human), failed);
    }
}

bool cli_plan_tree_say(json_t *tree, const etch_placement_report *report)
{
    bool failed = false;
    const json_t *totals = json_object_get(tree, "totals");
    for (size_t i = 0; i < report->total_count; i++)
        say_shares(report, json_object_get(json_array_get(totals, i), "stages"), report->totals[i].shares,
                   &failed);
    say_shares(report, json_object_get(tree, "sum"), report->sums, &failed);
    return !failed;
}

#define LIST_AS(key, kind, rows, count)                                                     \
    do {                                                                                    \
        json_t *list = json_array();                                                        \
        for (size_t i = 0; i < report->count; i++)                                          \
            cli_json_append(list, kind##_json(report, &report->rows[i], &failed), &failed); \
        cli_json_set(root, key, list, &failed);                                             \
    } while (false)
#define LIST(kind, rows, count) LIST_AS(#rows, kind, rows, count)

static json_t *fitted_json(const etch_placement_report *report, bool *failed)
{
    json_t *row = json_object();
    cli_json_set(row, "layers", cli_json_index(report->fitted_layers), failed);
    cli_json_set(row, "of", cli_json_index(report->fitted_of), failed);
    return row;
}

json_t *cli_plan_tree(const etch_placement_report *report)
{
    bool failed = false;
    const etch_graph_report *graph = report->graph;
    json_t *root = json_object(), *mesh = json_array(), *stages = json_array();
    for (size_t i = 0; i < report->axis_count; i++)
        cli_json_append(mesh, axis_json(&report->axes[i], &failed), &failed);
    for (size_t i = 0; i < report->stage_count; i++)
        cli_json_append(stages, cli_json_text(report->stages[i]), &failed);
    cli_json_set(root, "schema", json_string("etch-show-plan/1"), &failed);
    cli_json_set(root, "model", cli_json_text(graph->model), &failed);
    cli_json_set(root, "config", cli_json_text(graph->config), &failed);
    cli_json_set(root, "plan", cli_json_text(report->plan), &failed);
    cli_json_set(root, "location", cli_json_location(&report->location, &failed), &failed);
    cli_json_set(root, "part", cli_json_text(graph->part), &failed);
    cli_json_set(root, "calls", json_integer((json_int_t)graph->calls), &failed);
    cli_json_set(root, "micro", cli_json_text(graph->micro), &failed);
    cli_json_set(root, "trains", json_boolean(graph->trains), &failed);
    if (report->fitted_layers != ETCH_VIEW_NONE)
        cli_json_set(root, "fitted", fitted_json(report, &failed), &failed);
    cli_json_set(root, "mesh", mesh, &failed);
    cli_json_set(root, "stages", stages, &failed);
    cli_json_tensors(root, graph, &failed);
    cli_json_modules(root, graph, &failed);
    LIST(pad, pads, pad_count);
    LIST(value, values, value_count);
    LIST(step, steps, step_count);
    LIST_AS("handed", carried, carried, carried_count);
    LIST(collective, collectives, collective_count);
    LIST(total, totals, total_count);
    cli_json_set(root, "sum", shares_json(report, report->sums, &failed), &failed);
    return cli_tree_end(root, failed);
}
