/* The rows of a placement, and of a pipeline, out of their JSON trees. */
#include "tree_read.h"

CLI_TREE_KIND(etch_dtype, etch_dtype_name)
CLI_TREE_KIND(etch_placed_by, etch_placed_by_name)
CLI_TREE_KIND(etch_rule, etch_rule_name)
CLI_TREE_KIND(etch_phrase_role, etch_phrase_role_name)
CLI_TREE_KIND(etch_schedule_kind, etch_schedule_kind_name)
CLI_TREE_KIND(etch_action_kind, etch_action_kind_name)

/* ---- a placement --------------------------------------------------------------------------------------- */

static etch_view_axis read_axis(cli_pool *pool, const json_t *tree, const json_t *row)
{
    (void)pool;
    (void)tree;
    return (etch_view_axis){.name = cli_tree_text(row, "name"),
                            .size = cli_tree_text(row, "size"),
                            .location = cli_tree_location(row, "location")};
}

/* Axes by name, as indices into the mesh. */
static const size_t *read_axes(cli_pool *pool, const json_t *tree, const json_t *row, const char *key,
                               size_t *count)
{
    const json_t *names = json_object_get(row, key), *mesh = json_object_get(tree, "mesh");
    size_t *axes = cli_pool_take(pool, json_array_size(names), sizeof *axes);
    *count = axes ? json_array_size(names) : 0;
    for (size_t i = 0; i < *count; i++) {
        const char *name = json_string_value(json_array_get(names, i));
        while (axes[i] < json_array_size(mesh) &&
               strcmp(cli_tree_text(json_array_get(mesh, axes[i]), "name"), name) != 0)
            axes[i]++;
    }
    return axes;
}

static etch_view_pad read_pad(cli_pool *pool, const json_t *tree, const json_t *row)
{
    (void)pool;
    (void)tree;
    return (etch_view_pad){.dim = cli_tree_index(row, "dim"),
                           .size = cli_tree_text(row, "size"),
                           .location = cli_tree_location(row, "location")};
}

static const char *read_label(cli_pool *pool, const json_t *tree, const json_t *row)
{
    (void)pool;
    (void)tree;
    return json_string_value(row);
}

static etch_view_value read_value(cli_pool *pool, const json_t *tree, const json_t *row)
{
    const json_t *list = json_object_get(row, "shards");
    etch_view_shard *shards = cli_pool_take(pool, json_array_size(list), sizeof *shards);
    etch_view_value v = {.tensor = cli_tree_index(row, "tensor"),
                         .place = cli_tree_text(row, "place"),
                         .shards = shards,
                         .shard_count = shards ? json_array_size(list) : 0,
                         .bytes = cli_tree_text(row, "bytes"),
                         .bytes_by_dims = cli_tree_text(row, "bytes_by_dims"),
                         .step = cli_tree_index(row, "step"),
                         .source = etch_placed_by_in(row, "source"),
                         .line = cli_tree_location(row, "line")};
    for (size_t i = 0; i < v.shard_count; i++) {
        const json_t *shard = json_array_get(list, i);
        shards[i].dim = cli_tree_index(shard, "dim");
        shards[i].axes = read_axes(pool, tree, shard, "axes", &shards[i].axis_count);
        shards[i].line = cli_tree_location(shard, "line");
    }
    v.partial = read_axes(pool, tree, row, "partial", &v.partial_count);
    v.maximum = read_axes(pool, tree, row, "maximum", &v.maximum_count);
    v.parts = read_axes(pool, tree, row, "parts", &v.part_count);
    return v;
}

static etch_view_step read_step(cli_pool *pool, const json_t *tree, const json_t *row)
{
    (void)tree;
    etch_view_step s = {.name = cli_tree_text(row, "name"),
                        .phase = etch_phase_in(row, "phase"),
                        .module = cli_tree_index(row, "module"),
                        .loop = cli_tree_index(row, "loop"),
                        .collective = cli_tree_index(row, "collective"),
                        .adds_to = cli_tree_index(row, "adds_to"),
                        .passes = cli_tree_flag(row, "passes"),
                        .location = cli_tree_location(row, "location")};
    s.ins = cli_tree_indices(pool, row, "ins", &s.in_count);
    s.outs = cli_tree_indices(pool, row, "outs", &s.out_count);
    return s;
}

static etch_view_carried read_carried(cli_pool *pool, const json_t *tree, const json_t *row)
{
    (void)pool;
    (void)tree;
    return (etch_view_carried){.loop = cli_tree_index(row, "loop"),
                               .init = cli_tree_index(row, "init"),
                               .in = cli_tree_index(row, "in"),
                               .out = cli_tree_index(row, "out"),
                               .result = cli_tree_index(row, "result")};
}

static etch_view_share read_share(cli_pool *pool, const json_t *tree, const json_t *row)
{
    (void)pool;
    (void)tree;
    return (etch_view_share){.times = cli_tree_text(row, "times"),
                             .bytes = cli_tree_text(row, "bytes"),
                             .wire = cli_tree_text(row, "wire"),
                             .bytes_human = cli_tree_text(row, "bytes_human"),
                             .wire_human = cli_tree_text(row, "wire_human")};
}

static const etch_view_share *read_shares(cli_pool *pool, const json_t *row, const char *key)
{
    const etch_view_share *shares;
    size_t count;
    CLI_TREE_LIST(pool, row, key, etch_view_share, read_share, shares, count);
    return shares;
}

static etch_phrase_view read_phrase(cli_pool *pool, const json_t *tree, const json_t *row)
{
    (void)pool;
    (void)tree;
    return (etch_phrase_view){.role = etch_phrase_role_in(row, "part"),
                              .text = cli_tree_text(row, "text"),
                              .of_plan = cli_tree_flag(row, "of_plan"),
                              .location = cli_tree_location(row, "location")};
}

static etch_view_collective read_collective(cli_pool *pool, const json_t *tree, const json_t *row)
{
    etch_view_collective c = {.collective = etch_collective_in(row, "collective"),
                              .phase = etch_phase_in(row, "phase"),
                              .group = cli_tree_text(row, "group"),
                              .ranks = cli_tree_text(row, "ranks"),
                              .step = cli_tree_index(row, "step"),
                              .before = cli_tree_text(row, "before"),
                              .after = cli_tree_text(row, "after"),
                              .module = cli_tree_index(row, "module"),
                              .loop = cli_tree_index(row, "loop"),
                              .bytes = cli_tree_text(row, "bytes"),
                              .dtype = etch_dtype_in(row, "dtype"),
                              .bytes_by_dims = cli_tree_text(row, "bytes_by_dims"),
                              .shares = read_shares(pool, row, "stages"),
                              .rule = etch_rule_in(row, "rule")};
    c.axes = read_axes(pool, tree, row, "axes", &c.axis_count);
    c.tensors = cli_tree_indices(pool, row, "tensors", &c.tensor_count);
    CLI_TREE_LIST(pool, row, "why", etch_phrase_view, read_phrase, c.why, c.why_count);
    return c;
}

static etch_view_comm read_total(cli_pool *pool, const json_t *tree, const json_t *row)
{
    (void)tree;
    return (etch_view_comm){.collective = etch_collective_in(row, "collective"),
                            .group = cli_tree_text(row, "group"),
                            .shares = read_shares(pool, row, "stages")};
}

bool cli_plan_read(cli_pool *pool, const json_t *tree, etch_graph_report *graph, etch_placement_report *r)
{
    *r = (etch_placement_report){.graph = graph,
                                 .plan = cli_tree_text(tree, "plan"),
                                 .location = cli_tree_location(tree, "location"),
                                 .sums = read_shares(pool, tree, "sum"),
                                 .fitted_layers = ETCH_VIEW_NONE,
                                 .fitted_of = ETCH_VIEW_NONE};
    const json_t *fitted = json_object_get(tree, "fitted");
    if (json_is_object(fitted)) {
        r->fitted_layers = cli_tree_index(fitted, "layers");
        r->fitted_of = cli_tree_index(fitted, "of");
    }
    CLI_TREE_LIST(pool, tree, "mesh", etch_view_axis, read_axis, r->axes, r->axis_count);
    CLI_TREE_LIST(pool, tree, "pads", etch_view_pad, read_pad, r->pads, r->pad_count);
    CLI_TREE_LIST(pool, tree, "stages", const char *, read_label, r->stages, r->stage_count);
    CLI_TREE_LIST(pool, tree, "values", etch_view_value, read_value, r->values, r->value_count);
    CLI_TREE_LIST(pool, tree, "steps", etch_view_step, read_step, r->steps, r->step_count);
    CLI_TREE_LIST(pool, tree, "handed", etch_view_carried, read_carried, r->carried, r->carried_count);
    CLI_TREE_LIST(pool, tree, "collectives", etch_view_collective, read_collective, r->collectives,
                  r->collective_count);
    CLI_TREE_LIST(pool, tree, "totals", etch_view_comm, read_total, r->totals, r->total_count);
    return cli_graph_read(pool, tree, graph);
}

/* ---- a pipeline ---------------------------------------------------------------------------------------- */

static etch_pipeline_slot read_slot(cli_pool *pool, const json_t *tree, const json_t *row)
{
    (void)pool;
    (void)tree;
    return (etch_pipeline_slot){.kind = etch_action_kind_in(row, "direction"),
                                .chunk = (uint32_t)cli_tree_number(row, "chunk"),
                                .link = cli_tree_number(row, "link"),
                                .microbatch = cli_tree_number(row, "microbatch"),
                                .start = cli_tree_number(row, "start"),
                                .end = cli_tree_number(row, "end"),
                                .overlaps = json_is_true(json_object_get(row, "overlaps"))};
}

static etch_pipeline_stage read_stage(cli_pool *pool, const json_t *tree, const json_t *row)
{
    (void)tree;
    etch_pipeline_stage stage = {.in_flight = cli_tree_number(row, "in_flight")};
    CLI_TREE_LIST(pool, row, "slots", etch_pipeline_slot, read_slot, stage.slots, stage.slot_count);
    return stage;
}

bool cli_pipeline_read(cli_pool *pool, const json_t *tree, etch_pipeline_report *r)
{
    *r = (etch_pipeline_report){.model = cli_tree_text(tree, "model"),
                                .plan = cli_tree_text(tree, "plan"),
                                .config = cli_tree_text(tree, "config"),
                                .schedule = etch_schedule_kind_in(tree, "schedule"),
                                .chunks = (uint32_t)cli_tree_number(tree, "chunks"),
                                .microbatches = cli_tree_number(tree, "microbatches"),
                                .time = cli_tree_number(tree, "time"),
                                .bubble = cli_tree_text(tree, "bubble"),
                                .bubble_formula = cli_tree_text(tree, "bubble_formula"),
                                .in_flight_formula = cli_tree_text(tree, "in_flight_formula")};
    CLI_TREE_LIST(pool, tree, "stages", etch_pipeline_stage, read_stage, r->stages, r->stage_count);
    const etch_pipeline_stage *first = r->stage_count > 0 ? r->stages : NULL;
    for (size_t i = 0; first && i < first->slot_count; i++) /* where there is training each stage goes back */
        r->trains = r->trains || first->slots[i].kind != ETCH_ACTION_FORWARD;
    return !pool->failed;
}
