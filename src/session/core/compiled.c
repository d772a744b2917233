/* From a spec to costs: each step is made once, when it is first asked for. */
#include "session/core/core.h"

#include <string.h>

static bool same_name(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

const etch_settings *etch_run_settings(etch_session *session, const char *run, const etch_plan *plan)
{
    const etch_session_options *o = &session->options;
    const etch_defaults defaults = o->defaults            ? ETCH_DEFAULTS_ALL
                                   : session->of_one_case ? ETCH_DEFAULTS_OF_CONFIG
                                                          : ETCH_DEFAULTS_NONE;
    const char *named = etch_spec_named_plans(session->spec);
    for (uint32_t i = 0; i < session->in_force.count; i++) {
        const etch_in_force *known = session->in_force.at[i];
        /* What holds of a plan alone holds of it beside others. */
        const bool same = same_name(known->named, named) || (known->fine && !known->named);
        if (same && known->plan == plan && known->defaults == defaults && same_name(known->run, run) &&
            same_name(known->config, o->config))
            return known->fine ? &known->settings : NULL;
    }
    etch_in_force *bound = ETCH_NEW(session->arena, etch_in_force);
    bound->run = run;
    bound->plan = plan;
    bound->named = named;
    bound->defaults = defaults;
    bound->config = o->config;
    bound->fine = etch_spec_bind(session->spec, run, o->config, o->sets, (uint32_t)o->set_count, defaults,
                                 plan, &bound->settings);
    ETCH_PUSH(session->arena, &session->in_force, bound);
    return bound->fine ? &bound->settings : NULL;
}

/* The user gave a value to what the session's run binds: said once, whatever plans there are. */
static void warn_of_hidden(etch_session *session, const etch_settings *settings)
{
    for (uint32_t i = 0; i < settings->hidden_count && !session->warned_of_hidden; i++) {
        const etch_hidden *h = &settings->hidden[i];
        etch_diag *diag =
            etch_warning(session->diags, ETCH_E_RUN_BINDS, h->set,
                         "run '%s' binds '%s' itself: this value has no effect on it", h->run, h->name);
        etch_note(diag, h->bound, "it is bound here");
    }
    session->warned_of_hidden = true;
}

const etch_settings *etch_session_settings(etch_session *session, const etch_plan *plan)
{
    const etch_settings *settings = etch_run_settings(session, session->options.run, plan);
    if (settings)
        warn_of_hidden(session, settings);
    return settings;
}

bool etch_session_plan(etch_session *session, const etch_plan **plan)
{
    const char *name = session->options.plan;
    *plan = etch_spec_plan(session->spec, name, name != NULL, (etch_span){0, 0});
    return *plan || !name;
}

/* A model that is not trained: its forward pass alone, as one microbatch unless its run says otherwise. */
static etch_training *forward_only(etch_session *session, const etch_model *model)
{
    etch_training *training = ETCH_NEW(session->arena, etch_training);
    training->graph = model->graph;
    if (model->serves)
        training->train = model->train;
    else
        training->train.micro = etch_int(session->sym, 1);
    return etch_train_follow_batch(training->graph, &training->train) ? training : NULL;
}

static bool is_axis(const etch_plan *plan, const char *name)
{
    for (uint32_t i = 0; plan && i < plan->mesh.count; i++)
        if (strcmp(plan->mesh.at[i].name, name) == 0)
            return true;
    return false;
}

/* The next setting of a param from `*i` on. */
static const etch_setting *next_param(const etch_compiled *p, uint32_t *i)
{
    while (*i < p->settings->count && is_axis(p->plan, p->settings->at[*i].name))
        ++*i;
    return *i < p->settings->count ? &p->settings->at[(*i)++] : NULL;
}

/* The plan, or what has been made of it. */
static const etch_plan *plan_of(const etch_compiled *p)
{
    return p->fitted ? p->fitted : p->plan;
}

static const etch_precision *precision_of(const etch_compiled *p)
{
    return p->plan ? &p->plan->precision : NULL;
}

/* What divides the iterations of loops of the model, as only some of them are recomputed: of the plan, else
 * of the train block; NULL: nothing. */
static const etch_recompute *dividing(const etch_compiled *p, const etch_model *model)
{
    const etch_recompute *recompute = model ? &model->train.recompute : NULL;
    if (p->plan && p->plan->recompute.span.end)
        recompute = &plan_of(p)->recompute;
    for (uint32_t i = 0; recompute && i < recompute->selectors.count; i++)
        if (recompute->selectors.at[i].first)
            return recompute;
    return NULL;
}

/* Do two pipelines work on the same model? Axes of their plans have no part in it; dtypes have, and which
 * iterations are recomputed. */
static bool same_model(const etch_compiled *a, const etch_compiled *b)
{
    uint32_t i = 0, k = 0;
    if (!etch_precision_is_same(precision_of(a), precision_of(b)) ||
        dividing(a, a->model) != dividing(b, a->model))
        return false;
    for (;;) {
        const etch_setting *left = next_param(a, &i), *right = next_param(b, &k);
        if (!left || !right)
            return left == right && same_name(a->run, b->run);
        if (left->var != right->var || left->value != right->value)
            return false;
    }
}

/* Does the optimizer keep a copy of the weights? A plan that gives it a dtype asks for one. */
static bool keeps_master(const etch_compiled *p, const etch_train *train)
{
    const etch_precision *precision = precision_of(p);
    if (precision && precision->spans[ETCH_CLASS_MASTER].end)
        return !precision->no_master;
    return train->optimizer.master;
}

/* Is the same recomputed under both plans? */
static bool same_recompute(const etch_compiled *a, const etch_compiled *b)
{
    const bool of_a = a->plan && a->plan->recompute.span.end, of_b = b->plan && b->plan->recompute.span.end;
    return of_a || of_b ? a->plan == b->plan : true;
}

/* Does what is known of one hold for the other, which is of the same model? That there is none, for
 * example. */
static bool same_training(const etch_compiled *known, const etch_compiled *p)
{
    const etch_train *train = known->model ? &known->model->train : NULL;
    return same_recompute(known, p) && (!train || keeps_master(known, train) == keeps_master(p, train));
}

/* Trains the model as its block says, and as the plan changes that. */
static void derive(etch_session *session, etch_compiled *p, etch_model *model)
{
    etch_train train = model->train;
    train.optimizer.master = keeps_master(p, &train);
    if (p->plan && p->plan->recompute.span.end)
        train.recompute = plan_of(p)->recompute, train.recompute_plan = plan_of(p);
    p->training = model->trains ? etch_train_derive(model->graph, &train) : forward_only(session, model);
    if (p->training)
        p->model = model;
}

static void elaborate(etch_session *session, etch_compiled *p)
{
    etch_model *model = etch_spec_elaborate(session->spec, p->run, p->settings, plan_of(p));
    if (model)
        derive(session, p, model);
}

/* Elaborates the model, once for all plans: a second time would also say everything twice. */
void etch_compiled_build(etch_session *session, etch_compiled *p)
{
    etch_model *model = NULL;
    for (uint32_t i = 0; i < session->compiled_models.count; i++) {
        const etch_compiled *known = session->compiled_models.at[i];
        if (known == p || known->waits || !same_model(known, p))
            continue;
        model = model ? model : known->model;
        if (!same_training(known, p))
            continue;
        p->model = known->model;
        p->training = known->training;
        p->graph_costs = known->graph_costs;
        return;
    }
    if (model)
        derive(session, p, model);
    else
        elaborate(session, p);
}

etch_compiled *etch_compiled_find(etch_session *session, const char *run, const char *plan_name,
                                  bool needs_plan, etch_span asked)
{
    if (!run)
        run = session->options.run;
    if (!plan_name)
        plan_name = session->options.plan;
    const etch_plan *plan = etch_spec_plan(session->spec, plan_name, needs_plan || plan_name != NULL, asked);
    if (!plan && (needs_plan || plan_name))
        return NULL;
    const etch_settings *settings = etch_run_settings(session, run, plan);
    if (!settings)
        return NULL;
    for (uint32_t i = 0; i < session->compiled_models.count; i++) {
        etch_compiled *known = session->compiled_models.at[i];
        if (known->settings == settings && same_name(known->run, run))
            return known->model || known->waits ? known : NULL;
    }
    etch_compiled *p = ETCH_NEW(session->arena, etch_compiled);
    p->run = run;
    p->plan = plan;
    p->settings = settings;
    p->waits = plan && plan->recompute.fit;
    if (!p->waits)
        etch_compiled_build(session, p);
    ETCH_PUSH(session->arena, &session->compiled_models, p);
    return p->model || p->waits ? p : NULL;
}

void etch_compiled_lost(const etch_session *session)
{
    if (etch_error_count(session->diags) == 0)
        etch_trap(session->mem, ETCH_EINTERNAL);
}

const etch_cost_list *etch_compiled_graph_costs(etch_session *session, etch_compiled *p)
{
    if (!p->graph_costs) {
        etch_cost_list *costs = ETCH_NEW(session->arena, etch_cost_list);
        etch_graph_costs(p->training, costs);
        p->graph_costs = costs;
    }
    return p->graph_costs;
}

static etch_placed *place(etch_session *session, const etch_compiled *p)
{
    const etch_plan *plan = p->plan;
    if (!etch_spec_pending_ready(session->spec, plan, p->settings))
        return NULL;
    return etch_place_uncounted(p->training, plan, session->options.granularity);
}

bool etch_compiled_place(etch_session *session, etch_compiled *p)
{
    if (!p->tried_to_place) {
        p->tried_to_place = true;
        p->placed = place(session, p);
        if (!p->placed)
            etch_compiled_lost(session);
        else if (p->placed->has_idle_rings && p->plan->shared && session->options.plan)
            etch_remark_idle_rings(p->placed); /* of a file for many models: where the plan is asked for */
        if (p->placed && etch_offload_is_idle(p->placed) && (!p->plan->shared || session->options.plan))
            etch_remark_idle_offload(p->placed);
    }
    return p->placed != NULL;
}

etch_expr etch_compiled_apply(etch_session *session, const etch_compiled *p, etch_expr expr)
{
    return etch_settings_apply(session->sym, p->settings, expr);
}

uint32_t etch_compiled_axes(etch_session *session, const etch_compiled *p, uint32_t axes)
{
    uint32_t larger_axes = 0;
    for (uint32_t k = 0; k < p->plan->mesh.count; k++)
        if (axes >> k & 1 &&
            etch_compiled_apply(session, p, p->plan->mesh.at[k].size) != etch_int(session->sym, 1))
            larger_axes |= 1u << k;
    return larger_axes;
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
    for (uint32_t i = 0; i < settings->count; i++) {
        const etch_setting *s = &settings->at[i];
        if (!s->derived)
            l->rows[l->count++] =
                (etch_binding_row){s->name, etch_expr_text(session->sym, s->value), s->from};
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
