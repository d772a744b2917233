/* From a spec to costs: each step is made once, when it is first asked for. */
#include "session/session_int.h"

#include <string.h>

const etch_settings *etch_session_settings(etch_session *session, const etch_plan *plan)
{
    const etch_session_options *o = &session->options;
    for (uint32_t i = 0; i < session->in_force.count; i++) {
        const etch_in_force *known = session->in_force.at[i];
        if (known->plan == plan && known->defaults == o->defaults)
            return known->fine ? &known->settings : NULL;
    }
    etch_in_force *bound = ETCH_NEW(session->arena, etch_in_force);
    bound->plan = plan;
    bound->defaults = o->defaults;
    bound->fine = etch_spec_bind(session->spec, o->config, o->sets, (uint32_t)o->set_count, o->defaults, plan,
                                 &bound->settings);
    ETCH_PUSH(session->arena, &session->in_force, bound);
    return bound->fine ? &bound->settings : NULL;
}

bool etch_session_plan(etch_session *session, const etch_plan **plan)
{
    const char *name = session->options.plan;
    *plan = etch_spec_plan(session->spec, name, name != NULL, (etch_span){0, 0});
    return *plan || !name;
}

/* A model that is not trained: its forward pass alone, as one microbatch. */
static etch_training *forward_only(etch_session *session, etch_graph *graph)
{
    etch_training *training = ETCH_NEW(session->arena, etch_training);
    training->graph = graph;
    training->train.micro = etch_int(session->sym, 1);
    return training;
}

static bool build(etch_session *session, etch_pipeline *p)
{
    etch_model *model = etch_spec_elaborate(session->spec, p->run, p->settings);
    if (!model)
        return false;
    p->training =
        model->trains ? etch_train_derive(model->graph, &model->train) : forward_only(session, model->graph);
    if (!p->training)
        return false;
    etch_graph_costs(p->training, &p->graph_costs);
    p->model = model;
    return true;
}

static bool same_name(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

etch_pipeline *etch_pipeline_get(etch_session *session, const char *run, const char *plan_name,
                                 bool needs_plan, etch_span asked)
{
    if (!run)
        run = session->options.run;
    if (!plan_name)
        plan_name = session->options.plan;
    const etch_plan *plan = etch_spec_plan(session->spec, plan_name, needs_plan || plan_name != NULL, asked);
    if (!plan && (needs_plan || plan_name))
        return NULL;
    const etch_settings *settings = etch_session_settings(session, plan);
    if (!settings)
        return NULL;
    for (uint32_t i = 0; i < session->pipelines.count; i++) {
        etch_pipeline *known = session->pipelines.at[i];
        if (known->settings == settings && same_name(known->run, run))
            return known->model ? known : NULL;
    }
    etch_pipeline *p = ETCH_NEW(session->arena, etch_pipeline);
    p->run = run;
    p->plan = plan;
    p->settings = settings;
    ETCH_PUSH(session->arena, &session->pipelines, p);
    return build(session, p) ? p : NULL;
}

bool etch_pipeline_place(etch_pipeline *p)
{
    if (!p->tried_to_place) {
        p->tried_to_place = true;
        p->placed = etch_place(p->training, p->plan);
        if (p->placed)
            etch_placed_costs(p->placed, &p->placed_costs);
    }
    return p->placed != NULL;
}

const etch_cost_list *etch_pipeline_costs(etch_pipeline *p, etch_measure measure)
{
    if (measure == ETCH_PARAMS || measure == ETCH_FLOPS)
        return &p->graph_costs;
    return etch_pipeline_place(p) ? &p->placed_costs : NULL;
}

etch_expr etch_pipeline_apply(etch_session *session, const etch_pipeline *p, etch_expr expr)
{
    return etch_settings_apply(session->sym, p->settings, expr);
}

typedef struct binding_list {
    etch_session *session;
    etch_binding_row *rows;
    size_t count;
} binding_list;

static etch_status list_bindings(void *data)
{
    binding_list *l = data;
    etch_session *session = l->session;
    const etch_plan *plan;
    const etch_settings *settings =
        etch_session_plan(session, &plan) ? etch_session_settings(session, plan) : NULL;
    if (!settings)
        return ETCH_EINPUT;
    l->rows = ETCH_NEW_ARRAY(session->arena, settings->count, etch_binding_row);
    for (l->count = 0; l->count < settings->count; l->count++) {
        const etch_setting *s = &settings->at[l->count];
        l->rows[l->count] = (etch_binding_row){s->name, etch_expr_text(session->sym, s->value), s->from};
    }
    return ETCH_OK;
}

etch_status etch_session_bindings(etch_session *session, const etch_binding_row **rows, size_t *count)
{
    binding_list l = {.session = session};
    etch_status status = etch_session_run(session, list_bindings, &l);
    *rows = status == ETCH_OK ? l.rows : NULL;
    *count = status == ETCH_OK ? l.count : 0;
    return status;
}
