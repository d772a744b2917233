/* `recompute = fit(76*10^9)`: a loop around compilation, as what fits depends on memory.
 *
 * The model is compiled once with an open number of layers that are recomputed, the first of the loops of the
 * top level, and its memory evaluated with each number, from none on, until it fits. It need not fall with
 * every layer (what a recomputed layer works on is added where a stage has none yet), so none is left out. */
#include "session/core/core.h"

#include <string.h>

enum { MOST_FITTED = 4096 };

typedef struct fitting {
    etch_session *session;
    etch_compiled *p;
    /* with the open number */
    etch_compiled *open;
    etch_expr number, limit;
    /* that there are */
    etch_expr layers;
    uint64_t most;
    /* the stage that did not fit last, which is asked first */
    uint32_t worst;
    etch_setting *settings;
} fitting;

/* The plan, which recomputes so many layers instead of as many as it takes. */
static const etch_plan *plan_with(const fitting *f, etch_expr first)
{
    const etch_plan *plan = f->p->plan;
    etch_arena *arena = f->session->arena;
    etch_plan *copy = ETCH_NEW(arena, etch_plan);
    *copy = *plan;
    copy->recompute.fit = NULL;
    memset(&copy->recompute.selectors, 0, sizeof copy->recompute.selectors);
    for (uint32_t i = 0; i < plan->recompute.selectors.count; i++)
        ETCH_PUSH(arena, &copy->recompute.selectors, plan->recompute.selectors.at[i]);
    ETCH_PUSH(arena, &copy->recompute.selectors,
              ((etch_recomputed){.span = plan->recompute.fit_span, .first = first}));
    return copy;
}

/* ---- the memory of a rank ------------------------------------------------------------------------------ */

/* A pipeline with a number put in. */
typedef struct trial {
    const fitting *f;
    etch_compiled compiled;
    etch_settings settings;
} trial;

static trial trial_of(const fitting *f, uint64_t layers)
{
    trial t = {.f = f, .settings = *f->p->settings};
    f->settings[t.settings.count].value = etch_int(f->session->sym, (int64_t)layers);
    t.settings.at = f->settings;
    t.settings.count++;
    t.settings.needed = NULL;
    t.compiled = (etch_compiled){.run = f->open->run,
                                 .plan = f->open->plan,
                                 .model = f->open->model,
                                 .training = f->open->training,
                                 .placed = f->open->placed,
                                 .tried_to_place = true};
    return t;
}

static etch_expr put(void *data, etch_expr amount)
{
    const trial *t = data;
    return etch_compiled_apply(t->f->session, &t->compiled,
                               etch_at_work_share(t->compiled.placed, amount, NULL));
}

/* Says all that has no value, of what a rank holds, of the mesh, and of how many layers there are. */
static void report_open(const fitting *f)
{
    etch_session *session = f->session;
    const etch_plan *plan = f->p->plan;
    trial t = trial_of(f, 0);
    t.compiled.settings = &t.settings;
    const etch_cost_list *costs = etch_compiled_stage_memory(session, &t.compiled, NULL, false, NULL);
    etch_expr *open = ETCH_NEW_ARRAY(session->arena, costs->count + plan->mesh.count + 2, etch_expr);
    uint32_t count = 0;
    for (uint32_t i = 0; i < costs->count; i++)
        open[count++] = put(&t, etch_mul(session->sym, costs->at[i].each, costs->at[i].times));
    for (uint32_t i = 0; i < plan->mesh.count; i++)
        open[count++] = put(&t, plan->mesh.at[i].size);
    open[count++] = f->limit;
    open[count++] = f->layers;
    etch_diag *diag = etch_error(session->diags, ETCH_E_UNBOUND, plan->recompute.fit_span,
                                 "which layers fit depends on numbers: the memory of a rank is none yet");
    etch_help_unbound(session, diag, open, count);
}

/* memory(peak) of a rank of the stage. */
static etch_expr peak_of(trial *t, const etch_stage_item *stage)
{
    etch_session *session = t->f->session;
    const etch_valuation values = {put, t};
    const etch_cost_list *costs = etch_compiled_stage_memory(session, &t->compiled, stage, true, &values);
    etch_expr *amounts = ETCH_NEW_ARRAY(session->arena, costs->count, etch_expr);
    uint32_t count = 0;
    for (uint32_t i = 0; i < costs->count; i++) {
        const etch_cost *cost = &costs->at[i];
        if (cost->measure == ETCH_HELD || cost->measure == ETCH_CACHED)
            amounts[count++] = put(t, etch_mul(session->sym, cost->each, cost->times));
    }
    return etch_sum(session->sym, count, amounts);
}

typedef enum outcome { FITS, IS_TOO_LARGE, FAILED } outcome;

static outcome try_stage(fitting *f, trial *t, const etch_stage_list *stages, uint32_t stage)
{
    const etch_expr peak = peak_of(t, &stages->at[stage]);
    if (!peak || !etch_is_constant(peak)) {
        report_open(f);
        return FAILED;
    }
    if (etch_constant_compare(f->session->sym, peak, f->limit) <= 0)
        return FITS;
    f->worst = stage;
    return IS_TOO_LARGE;
}

/* Does a rank of each stage fit with so many layers recomputed? */
static outcome try_layers(fitting *f, uint64_t layers)
{
    trial t = trial_of(f, layers);
    t.compiled.settings = &t.settings;
    etch_stage_list stages = {0};
    outcome found = FITS;
    if (!etch_session_stages(f->session, &t.compiled, NULL, f->p->plan->recompute.fit_span, &stages))
        return FAILED;
    const uint32_t first = f->worst < stages.count ? f->worst : 0;
    for (uint32_t i = 0; i < stages.count && found == FITS; i++)
        found = try_stage(f, &t, &stages, i == 0 ? first : i <= first ? i - 1 : i);
    return found;
}

/* ---- the number of layers ------------------------------------------------------------------------------ */

static void report_none(fitting *f)
{
    etch_sym *sym = f->session->sym;
    trial t = trial_of(f, f->most);
    t.compiled.settings = &t.settings;
    etch_stage_list stages = {0};
    etch_expr most = etch_int(sym, 0);
    if (!etch_session_stages(f->session, &t.compiled, NULL, f->p->plan->recompute.fit_span, &stages))
        return;
    for (uint32_t i = 0; i < stages.count; i++)
        most = etch_max(sym, most, peak_of(&t, &stages.at[i]));
    etch_diag *diag =
        etch_error(f->session->diags, ETCH_E_RECOMPUTE_FIT, f->p->plan->recompute.fit_span,
                   "memory(peak) is more than %s however many layers are recomputed: %s with all %llu",
                   etch_expr_text(sym, f->limit), etch_expr_text(sym, most), (unsigned long long)f->most);
    etch_help(diag, "divide the model over more ranks, or run more and smaller microbatches");
}

/* The layers that there are. False after an error. */
static bool count_layers(fitting *f)
{
    etch_session *session = f->session;
    const etch_region *forward = f->open->model->graph->forward;
    etch_expr sum = etch_int(session->sym, 0);
    for (uint32_t i = 0; i < forward->items.count; i++)
        if (forward->items.at[i].loop)
            sum = etch_add(session->sym, sum, forward->items.at[i].loop->count);
    f->layers = sum = etch_compiled_apply(session, f->p, sum);
    f->limit = etch_compiled_apply(session, f->p, f->limit);
    if (!sum || !etch_is_constant(sum) || !f->limit || !etch_is_constant(f->limit)) {
        report_open(f);
        return false;
    }
    if (etch_to_u64(sum, &f->most) && f->most <= MOST_FITTED)
        return true;
    etch_error(session->diags, ETCH_E_RECOMPUTE_FIT, f->p->plan->recompute.fit_span,
               "fit counts through %d layers at most: this model has %s", MOST_FITTED,
               etch_expr_text(session->sym, sum));
    return false;
}

/* Compiles the model with an open number. False after an error. */
static bool open_up(fitting *f)
{
    etch_session *session = f->session;
    f->number = etch_var(session->sym, "recomputed layers");
    etch_var_at_least(session->sym, f->number, 0);
    f->open = ETCH_NEW(session->arena, etch_compiled);
    *f->open = (etch_compiled){.run = f->p->run, .plan = plan_with(f, f->number), .settings = f->p->settings};
    etch_compiled_build(session, f->open);
    const etch_settings *own = f->p->settings;
    f->settings = ETCH_NEW_ARRAY(session->arena, own->count + 1, etch_setting);
    for (uint32_t i = 0; i < own->count; i++)
        f->settings[i] = own->at[i];
    f->settings[own->count] = (etch_setting){.var = f->number, .name = "recomputed layers"};
    return f->open->model != NULL;
}

/* The fewest layers that fit. False after an error. */
static bool fit(fitting *f, uint64_t *layers)
{
    outcome found = IS_TOO_LARGE;
    if (!open_up(f))
        return false;
    *layers = 0;
    if (!f->open->model->trains)
        return true; /* nothing is kept, and nothing recomputed */
    if (!etch_compiled_place(f->session, f->open) || !count_layers(f))
        return false;
    for (*layers = 0; *layers <= f->most; ++*layers) {
        found = try_layers(f, *layers);
        if (found != IS_TOO_LARGE)
            return found == FITS;
    }
    report_none(f);
    return false;
}

static void fit_layers(etch_session *session, etch_compiled *p)
{
    fitting f = {.session = session, .p = p, .limit = p->plan->recompute.fit};
    uint64_t layers;
    p->waits = false;
    if (!fit(&f, &layers))
        return;
    p->fitted = plan_with(&f, etch_int(session->sym, (int64_t)layers));
    p->fitted_layers = layers;
    p->fitted_of = f.most;
    etch_compiled_build(session, p);
}

etch_compiled *etch_compiled_get(etch_session *session, const char *run, const char *plan_name,
                                 bool needs_plan, etch_span asked)
{
    etch_compiled *p = etch_compiled_find(session, run, plan_name, needs_plan, asked);
    if (p && p->waits)
        fit_layers(session, p);
    if (p && p->model)
        return p;
    etch_compiled_lost(session);
    return NULL;
}
