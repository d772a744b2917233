/* A placement as a report: where every tensor is, in the order of the program, and which collectives are
 * between. */
#include "session/view/plan_int.h"

#include <string.h>

/* ---- steps of the part --------------------------------------------------------------------------------- */

/* Over axes that are bound to 1 nothing moves. */
static bool communicates(const etch_plan_viewing *v, const etch_step *step)
{
    return step->collective != ETCH_NO_COLLECTIVE && (step->axes & v->how.axes);
}

static const etch_op *forward_op(const etch_op *op)
{
    while (op->forward)
        op = op->forward;
    return op;
}

static const etch_scope *scope_of(const etch_plan_viewing *v, const etch_step *step)
{
    return etch_view_scope(&v->view, step->op ? forward_op(step->op)->scope : step->scope);
}

static void mention_step(etch_plan_viewing *v, const etch_step *step)
{
    etch_view_mention_scope(&v->view, scope_of(v, step));
    for (uint32_t i = 0; i < step->in_count; i++)
        etch_view_mention(&v->view, step->ins[i]->tensor);
    for (uint32_t i = 0; i < step->out_count; i++) {
        etch_view_mention(&v->view, step->outs[i]->tensor);
        if (step->accumulate_into[i])
            etch_view_mention(&v->view, step->accumulate_into[i]);
    }
}

/* Where a gradient is carried on as it is, the value is that of another tensor. */
static void add_carry(etch_plan_viewing *v, const etch_placed_carry *carry, size_t loop)
{
    const etch_value *ends[] = {carry->init, carry->in, carry->out, carry->result};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (ends[i])
            etch_view_mention(&v->view, ends[i]->tensor);
    ETCH_PUSH(v->view.arena, &v->carries, (etch_shown_carry){carry, loop});
}

/* Goes as deep as loops are nested. */
static void find_steps(etch_plan_viewing *v, const etch_placed_region *region, const etch_region *forward)
{
    const size_t loop = region->loop ? etch_view_loop_at(&v->view, region->of) : ETCH_VIEW_NONE;
    for (uint32_t i = 0; loop != ETCH_VIEW_NONE && i < region->carries.count; i++)
        add_carry(v, &region->carries.at[i], loop);
    for (uint32_t i = 0; i < region->items.count; i++) {
        const etch_step *step = region->items.at[i].step;
        const etch_placed_loop *inner = region->items.at[i].loop;
        for (uint32_t k = 0; inner && k < inner->bodies.count; k++)
            find_steps(v, inner->bodies.at[k], etch_forward_body(inner->bodies.at[k]->of));
        if (!step)
            continue;
        if (step->provenance.rule == ETCH_RULE_PIN)
            v->pin_reshards[step->ins[0]->tensor->id] = true;
        etch_scope *scope = step->op ? forward_op(step->op)->scope : step->scope;
        const bool idle = step->collective != ETCH_NO_COLLECTIVE && !communicates(v, step);
        if (idle ||
            (v->view.selector && !etch_view_selected_of(&v->view, scope, forward, step->outs[0]->tensor)))
            continue;
        v->step_at[step->id] = v->steps.count;
        ETCH_PUSH(v->view.arena, &v->steps, (etch_shown_step){step, loop});
        mention_step(v, step);
    }
}

/* ---- values -------------------------------------------------------------------------------------------- */

static const etch_view_shard *shards_of(const etch_plan_viewing *v, const etch_value *value, size_t *count)
{
    const etch_tensor *t = value->tensor;
    etch_view_shard *shards = ETCH_NEW_ARRAY(v->view.arena, t->rank, etch_view_shard);
    *count = 0;
    for (uint32_t i = 0; i < t->rank; i++) {
        uint32_t axes[ETCH_MAX_AXES];
        const uint32_t axis_count = etch_place_axes(&v->how, value->place, t->dims[i], axes);
        if (!axis_count)
            continue;
        size_t *list = ETCH_NEW_ARRAY(v->view.arena, axis_count, size_t);
        for (uint32_t k = 0; k < axis_count; k++)
            list[k] = axes[k];
        const etch_span line = etch_place_line(v->placed, t->scope, t->dims[i], axes[0]);
        shards[(*count)++] = (etch_view_shard){v->view.dim_at[t->dims[i]->id], list, axis_count,
                                               etch_locate(v->view.session, line)};
    }
    return shards;
}

static etch_placed_by source_of_reshard(const etch_provenance *provenance)
{
    switch (provenance->rule) {
    case ETCH_RULE_PIN:
        return ETCH_PLACED_BY_PIN;
    case ETCH_RULE_LOOP:
        return ETCH_PLACED_BY_LOOP;
    case ETCH_RULE_ENTER:
    case ETCH_RULE_LEAVE:
        return ETCH_PLACED_BY_SCOPE;
    default:
        return ETCH_PLACED_BY_MOVE;
    }
}

/* What says where the value is, and the line. */
static etch_placed_by source_of(const etch_plan_viewing *v, const etch_value *value, etch_span *line)
{
    const etch_tensor *t = value->tensor;
    const etch_step *step = value->step;
    *line = (etch_span){0, 0};
    if (value->sharded_flat)
        *line = etch_zero_of(v->placed, t)->span;
    if (value->sharded_flat)
        return ETCH_PLACED_BY_ZERO;
    if (!step)
        return t->kind == ETCH_WEIGHT || t->kind == ETCH_INPUT ? ETCH_PLACED_BY_MAP
               : t->kind == ETCH_CONSTANT                      ? ETCH_PLACED_BY_OP
                                                               : ETCH_PLACED_BY_LOOP;
    if (step->collective != ETCH_NO_COLLECTIVE) {
        if (step->provenance.rule != ETCH_RULE_LOOP)
            *line = step->provenance.line;
        return source_of_reshard(&step->provenance);
    }
    if (step->phase == ETCH_BACKWARD || v->pin_reshards[t->id])
        return ETCH_PLACED_BY_OP;
    *line = etch_place_pin(v->placed, t);
    return line->start ? ETCH_PLACED_BY_PIN : ETCH_PLACED_BY_OP;
}

static etch_value *behind_nothing(const etch_plan_viewing *v, etch_value *value)
{
    while (value->step && value->step->collective != ETCH_NO_COLLECTIVE && !communicates(v, value->step))
        value = etch_value_before(value);
    return value;
}

static size_t value_index(etch_plan_viewing *v, etch_value *value)
{
    value = behind_nothing(v, value);
    if (v->value_at[value->id] != ETCH_VIEW_NONE)
        return v->value_at[value->id];
    etch_view_value row = {.tensor = v->view.tensor_at[value->tensor->id],
                           .place = etch_value_text(&v->how, value),
                           .bytes = etch_plan_text(v, etch_value_bytes(v->placed, value)),
                           .bytes_by_dims = etch_plan_bytes_by_dims(v, &value, 1),
                           .step = ETCH_VIEW_NONE};
    const etch_plan *plan = v->placed->plan;
    etch_span line;
    row.shards = shards_of(v, value, &row.shard_count);
    row.partial =
        etch_plan_axis_list(v, etch_axes_held(plan, value->place, ETCH_PARTIAL), &row.partial_count);
    row.maximum =
        etch_plan_axis_list(v, etch_axes_held(plan, value->place, ETCH_PARTIAL_MAX), &row.maximum_count);
    row.parts = etch_plan_axis_list(v, value->sharded_flat, &row.part_count);
    row.source = source_of(v, value, &line);
    row.line = etch_locate(v->view.session, line);
    v->value_at[value->id] = v->values.count;
    ETCH_PUSH(v->view.arena, &v->values, row);
    return v->values.count - 1;
}

/* Weights, inputs and constants that are seen. */
static void add_sources(etch_plan_viewing *v)
{
    for (uint32_t i = 0; i < v->steps.count; i++)
        for (uint32_t k = 0; k < v->steps.at[i].step->in_count; k++) {
            etch_value *in = v->steps.at[i].step->ins[k];
            if (!in->step &&
                (in->tensor->kind == ETCH_WEIGHT || in->tensor->kind == ETCH_INPUT || in->tensor->constant))
                value_index(v, in);
        }
}

/* ---- rows of steps ------------------------------------------------------------------------------------- */

static const size_t *value_list(etch_plan_viewing *v, etch_value *const *values, uint32_t count)
{
    size_t *list = ETCH_NEW_ARRAY(v->view.arena, count, size_t);
    for (uint32_t i = 0; i < count; i++)
        list[i] = value_index(v, values[i]);
    return list;
}

static size_t adds_to(const etch_plan_viewing *v, const etch_step *step)
{
    for (uint32_t i = 0; i < step->out_count; i++)
        if (step->accumulate_into[i])
            return v->view.tensor_at[step->accumulate_into[i]->id];
    return ETCH_VIEW_NONE;
}

static etch_view_step view_of_step(etch_plan_viewing *v, const etch_shown_step *shown)
{
    const etch_step *step = shown->step;
    return (etch_view_step){
        .name = step->collective ? etch_collective_name(step->collective) : etch_row_name(step->row),
        .phase = step->phase,
        .ins = value_list(v, step->ins, step->in_count),
        .in_count = step->in_count,
        .outs = value_list(v, step->outs, step->out_count),
        .out_count = step->out_count,
        .module = v->view.scope_at[scope_of(v, step)->id],
        .loop = shown->loop,
        .collective = v->collective_at[step->id],
        .adds_to = adds_to(v, step),
        .passes = step->op && etch_view_passes(step->op),
        .location = etch_locate(v->view.session, step->op ? step->op->span : step->outs[0]->tensor->span)};
}

static void add_carries(etch_plan_viewing *v)
{
    etch_view_carried *rows = ETCH_NEW_ARRAY(v->view.arena, v->carries.count, etch_view_carried);
    for (uint32_t i = 0; i < v->carries.count; i++) {
        const etch_placed_carry *c = v->carries.at[i].carry;
        rows[i] =
            (etch_view_carried){v->carries.at[i].loop, c->init ? value_index(v, c->init) : ETCH_VIEW_NONE,
                                value_index(v, c->in), value_index(v, c->out), value_index(v, c->result)};
    }
    v->report->carried = rows;
    v->report->carried_count = v->carries.count;
}

static void add_steps(etch_plan_viewing *v)
{
    etch_view_step *steps = ETCH_NEW_ARRAY(v->view.arena, v->steps.count, etch_view_step);
    add_sources(v);
    for (uint32_t i = 0; i < v->steps.count; i++) {
        steps[i] = view_of_step(v, &v->steps.at[i]);
        for (uint32_t k = 0; k < steps[i].out_count; k++)
            v->values.at[steps[i].outs[k]].step = i;
    }
    v->report->steps = steps;
    v->report->step_count = v->steps.count;
    add_carries(v);
    v->report->values = v->values.at;
    v->report->value_count = v->values.count;
}

/* ---- the plan itself ----------------------------------------------------------------------------------- */

static void add_mesh(etch_plan_viewing *v)
{
    const etch_plan *plan = v->placed->plan;
    etch_view_axis *axes = ETCH_NEW_ARRAY(v->view.arena, plan->mesh.count, etch_view_axis);
    for (uint32_t i = 0; i < plan->mesh.count; i++)
        axes[i] = (etch_view_axis){plan->mesh.at[i].name, etch_plan_text(v, plan->mesh.at[i].size),
                                   etch_locate(v->view.session, plan->mesh.at[i].span)};
    const char **labels = ETCH_NEW_ARRAY(v->view.arena, v->stages.count, const char *);
    for (uint32_t i = 0; i < v->stages.count; i++)
        labels[i] = v->stages.at[i].label;
    v->report->plan = plan->name;
    v->report->location = etch_locate(v->view.session, plan->span);
    v->report->axes = axes;
    v->report->axis_count = plan->mesh.count;
    v->report->stages = labels;
    v->report->stage_count = v->stages.count;
    const etch_compiled *p = v->view.p;
    v->report->fitted_layers = p->fitted ? (size_t)p->fitted_layers : ETCH_VIEW_NONE;
    v->report->fitted_of = p->fitted ? (size_t)p->fitted_of : ETCH_VIEW_NONE;
}

static void add_pads(etch_plan_viewing *v)
{
    ETCH_VEC(etch_view_pad) rows = {0};
    for (uint32_t i = 0; i < v->view.graph->dims.count; i++) {
        const etch_dim *dim = v->view.graph->dims.at[i];
        const etch_pad *pad = v->view.dim_at[i] != ETCH_VIEW_NONE ? etch_pad_of(v->placed->plan, dim) : NULL;
        if (pad)
            ETCH_PUSH(v->view.arena, &rows,
                      (etch_view_pad){v->view.dim_at[i], etch_plan_text(v, etch_placed_size(v->placed, dim)),
                                      etch_locate(v->view.session, pad->span)});
    }
    v->report->pads = rows.at;
    v->report->pad_count = rows.count;
}

static size_t *no_indices(const etch_plan_viewing *v, size_t count)
{
    size_t *at = ETCH_NEW_ARRAY(v->view.arena, count, size_t);
    for (size_t i = 0; i < count; i++)
        at[i] = ETCH_VIEW_NONE;
    return at;
}

static void find_all(etch_plan_viewing *v)
{
    const etch_placed *placed = v->placed = v->view.p->placed;
    v->how = (etch_explaining){.placed = placed,
                               .arena = v->view.arena,
                               .axes = etch_compiled_axes(v->view.session, v->view.p, UINT32_MAX),
                               .names = v->view.names.tensors};
    v->pin_reshards = ETCH_NEW_ARRAY(v->view.arena, v->view.graph->tensors.count, bool);
    v->value_at = no_indices(v, placed->value_count);
    v->collective_at = no_indices(v, placed->step_count);
    v->step_at = no_indices(v, placed->step_count);
    find_steps(v, placed->forward, NULL);
    if (placed->backward)
        find_steps(v, placed->backward, NULL);
    etch_plan_find_collectives(v);
}

static etch_status view(void *data)
{
    etch_plan_viewing *v = data;
    etch_session *session = v->view.session;
    const uint32_t errors = etch_error_count(session->diags);
    etch_forget_open(session);
    if (!etch_view_begin(&v->view, true) ||
        !etch_session_stages(session, v->view.p, session->options.stage, (etch_span){0, 0}, &v->stages) ||
        etch_error_count(session->diags) > errors)
        return ETCH_EINPUT;
    find_all(v);
    etch_view_finish(&v->view);
    v->report = ETCH_NEW(session->arena, etch_placement_report);
    v->report->graph = v->view.report;
    add_mesh(v);
    add_pads(v);
    etch_plan_add_collectives(v);
    add_steps(v);
    etch_remark_open(session);
    return ETCH_OK;
}

etch_status etch_session_placement(etch_session *session, const etch_view_options *options,
                                   const etch_placement_report **report)
{
    etch_view_options own;
    const char *unfit = etch_options_read(options, &own, sizeof own);
    etch_plan_viewing v = {.view = {.session = session, .selector = own.part}};
    const etch_status status =
        unfit ? etch_session_refuse(session, unfit) : etch_session_run(session, view, &v);
    *report = status == ETCH_OK ? v.report : NULL;
    return status;
}
