/* Checks: everything that a spec holds is built, and what it claims is decided. */
#include "session/query/query.h"

#include <string.h>

typedef struct checking {
    etch_session *session;
    etch_check_report *report;
    ETCH_VEC(etch_plan_requirement) requirements;
    ETCH_VEC(etch_absence) absences;
    ETCH_VEC(etch_unsuited) unsuited;
    /* the one that is taken when a command names none; may be NULL */
    const etch_plan *plan;
    ETCH_VEC(etch_verdict) verdicts;
    /* of lowering, when everything is bound */
    etch_status status;
    /* a claim could not be decided */
    bool unknown;
} checking;

/* ---- models and plans ------------------------------------------------------------------------------- */

static bool has_requirement(const checking *c, const char *plan, const char *text)
{
    for (uint32_t i = 0; i < c->requirements.count; i++)
        if (strcmp(c->requirements.at[i].plan, plan) == 0 && strcmp(c->requirements.at[i].text, text) == 0)
            return true;
    return false;
}

/* Do the values contradict a requirement of the plan? What has no value yet contradicts nothing. `size`,
 * `divisor`: with the values. */
static bool is_contradicted(etch_session *session, const etch_compiled *p, const etch_requirement *r,
                            etch_expr *size, etch_expr *divisor)
{
    *size = etch_compiled_apply(session, p, r->size);
    *divisor = etch_compiled_apply(session, p, r->divisor);
    if (!*size || !*divisor)
        return false;
    if (etch_is_constant(*size) && etch_is_constant(*divisor))
        return etch_divides(session->sym, *divisor, *size, NULL) == ETCH_NO;
    return etch_above(session->sym, *divisor, *size, NULL) == ETCH_YES;
}

static bool speak_alike(etch_sym *sym, etch_expr a, etch_expr b)
{
    const etch_expr *of_a, *of_b;
    const uint32_t a_count = a ? etch_vars_of(sym, a, &of_a) : 0,
                   b_count = b ? etch_vars_of(sym, b, &of_b) : 0;
    for (uint32_t i = 0; i < a_count; i++)
        for (uint32_t k = 0; k < b_count; k++)
            if (of_a[i] == of_b[k])
                return true;
    return false;
}

/* Is it assumed that a division leaves this rest, which is not 0? */
static bool is_assumed_rest(etch_session *session, etch_expr rest)
{
    etch_sym *sym = session->sym;
    const etch_claim *facts;
    const uint32_t count = etch_spec_assumptions(session->spec, &facts);
    for (uint32_t i = 0; i < count; i++)
        if (facts[i].relation == ETCH_REL_EQ && facts[i].left == rest && facts[i].right &&
            etch_different(sym, facts[i].right, etch_int(sym, 0), NULL) == ETCH_YES)
            return true;
    return false;
}

/* Whatever the values are, does what is assumed of them leave no way to meet the requirement? */
static void check_excluded(etch_session *session, const etch_compiled *p, const etch_requirement *r)
{
    etch_sym *sym = session->sym;
    etch_expr rest = etch_mod(sym, r->size, r->divisor), zero = etch_int(sym, 0);
    const bool less = etch_above(sym, r->divisor, r->size, NULL) == ETCH_YES;
    const bool rests =
        rest && (etch_different(sym, rest, zero, NULL) == ETCH_YES || is_assumed_rest(session, rest));
    if (!less && !rests)
        return;
    const char *size = etch_expr_text(sym, r->size), *divisor = etch_expr_text(sym, r->divisor);
    etch_diag *diag = etch_error(session->diags, ETCH_E_PLAN_EXCLUDED, r->span,
                                 "plan '%s' demands %s | %s, which the assumptions of the spec exclude",
                                 p->plan->name, divisor, size);
    if (less)
        etch_note(diag, r->dim->span, "%s has %s elements, less than %s", r->dim->name, size, divisor);
    else
        etch_note(diag, r->dim->span, "%s has %s elements, which leave a rest", r->dim->name, size);
    const etch_claim *facts;
    const uint32_t count = etch_spec_assumptions(session->spec, &facts);
    for (uint32_t i = 0; i < count; i++) {
        const etch_claim *fact = &facts[i];
        if (speak_alike(sym, fact->left, r->size) || speak_alike(sym, fact->right, r->size) ||
            speak_alike(sym, fact->left, r->divisor) || speak_alike(sym, fact->right, r->divisor))
            etch_note(diag, fact->span, "it is assumed that %s", fact->text);
    }
    etch_help(diag, "divide %s otherwise, or leave out the assumption", r->dim->name);
}

static void add_requirement(checking *c, const etch_compiled *p, const char *text, etch_span span)
{
    if (!has_requirement(c, p->plan->name, text))
        ETCH_PUSH(c->session->arena, &c->requirements,
                  (etch_plan_requirement){p->plan->name, text, etch_locate(c->session, span)});
}

/* Every chunk needs a unit; counts are those of the chunks, and add up to all units. */
static void list_stage_requirements(checking *c, etch_compiled *p)
{
    etch_session *session = c->session;
    etch_sym *sym = session->sym;
    const etch_stages *stages = p->placed->stages;
    if (!stages)
        return;
    const etch_stage_line *line = stages->line;
    const etch_expr copies = etch_int(sym, etch_stage_copies(stages));
    etch_expr model_chunks = etch_div(sym, line->chunks, copies), sum = etch_int(sym, 0);
    for (uint32_t i = 0; i < line->axis_count; i++)
        model_chunks = etch_mul(sym, model_chunks, p->plan->mesh.at[line->axes[i]].size);
    for (uint32_t i = 0; i < line->count_count; i++)
        sum = etch_add(sym, sum, line->counts[i]);
    const char *text = etch_expr_text(sym, model_chunks), *layers = etch_expr_text(sym, stages->layers);
    if (!line->counts) {
        add_requirement(c, p, etch_text(session->arena, "%s <= %s", text, layers), line->span);
        return;
    }
    add_requirement(c, p, etch_text(session->arena, "%s == %u", text, (unsigned)line->count_count),
                    line->span);
    if (sum != stages->layers)
        add_requirement(c, p, etch_text(session->arena, "%s == %s", layers, etch_expr_text(sym, sum)),
                        line->span);
}

/* What the run binds itself: that is not there to be chosen. */
static etch_settings run_settings(etch_session *session, const etch_compiled *p)
{
    ETCH_VEC(etch_setting) own = {0};
    for (uint32_t i = 0; i < p->settings->count; i++)
        if (p->settings->at[i].from == ETCH_GIVEN_BY_RUN)
            ETCH_PUSH(session->arena, &own, p->settings->at[i]);
    return (etch_settings){.at = own.at, .count = own.count};
}

/* Of each plan once, also when it is placed for several runs. */
static void list_absences(checking *c, const etch_plan *plan)
{
    for (uint32_t i = 0; i < c->absences.count; i++)
        if (strcmp(c->absences.at[i].plan, plan->name) == 0)
            return;
    for (uint32_t i = 0; i < plan->lacks.count; i++) {
        const etch_pending *lack = &plan->lacks.at[i];
        ETCH_PUSH(c->session->arena, &c->absences,
                  (etch_absence){plan->name, lack->text, etch_locate(c->session, lack->span)});
    }
}

/* What only its placement shows that a plan of a file for many models is not for this one; said at `line`. */
static void list_idle(checking *c, const etch_plan *plan, const char *lack, etch_span line)
{
    if (!plan->shared || c->session->options.plan)
        return;
    for (uint32_t i = 0; i < c->absences.count; i++)
        if (strcmp(c->absences.at[i].text, lack) == 0 && strcmp(c->absences.at[i].plan, plan->name) == 0)
            return;
    ETCH_PUSH(c->session->arena, &c->absences,
              (etch_absence){plan->name, lack, etch_locate(c->session, line)});
}

static void list_requirements(checking *c, etch_compiled *p)
{
    etch_session *session = c->session;
    const etch_settings own = run_settings(session, p);
    const bool fine = session->options.defaults || etch_compiled_fit(session, p);
    for (uint32_t i = 0; i < p->placed->requirements.count; i++) {
        const etch_requirement *r = &p->placed->requirements.at[i];
        if (fine && !session->options.defaults &&
            !(etch_is_constant(r->size) && etch_is_constant(r->divisor)))
            check_excluded(session, p, r);
        if (etch_divides(session->sym, r->divisor, r->size, NULL) == ETCH_YES)
            continue; /* the spec's own assumptions say so */
        etch_expr size = etch_settings_apply(session->sym, &own, r->size);
        const char *text = etch_text(session->arena, "%s | %s", etch_expr_text(session->sym, r->divisor),
                                     etch_expr_text(session->sym, size ? size : r->size));
        add_requirement(c, p, text, r->span);
    }
    if (p->plan->ranks.count)
        add_requirement(c, p,
                        etch_text(session->arena, "%s == %s",
                                  etch_expr_text(session->sym, etch_plan_ranks(session->sym, p->plan)),
                                  etch_expr_text(session->sym, p->plan->ranks.count)),
                        p->plan->ranks.span);
    list_stage_requirements(c, p);
}

/* Plans are made for some runs of a spec, not for all. One that the values of an infer block exclude, as
 * tokens of a sequence are no longer divided when there is one, is not for it, unless the user names the
 * run, or nothing else can be run with the plan in use. */
static bool concerns(const checking *c, const etch_compiled *p)
{
    etch_session *session = c->session;
    const char *const *runs;
    const bool is_only = etch_spec_list(session->spec, ETCH_LIST_RUNS, &runs) == 1 && p->plan == c->plan;
    if (!p->model->serves || session->options.run || is_only)
        return true;
    for (uint32_t i = 0; i < p->placed->requirements.count; i++) {
        etch_expr size, divisor;
        if (is_contradicted(session, p, &p->placed->requirements.at[i], &size, &divisor))
            return false;
    }
    return true;
}

/* Of each plan once, also when it is unsuited for several runs. */
static void add_unsuited(checking *c, const etch_plan *plan, const etch_diag *why)
{
    for (uint32_t i = 0; i < c->unsuited.count; i++)
        if (strcmp(c->unsuited.at[i].plan, plan->name) == 0)
            return;
    ETCH_PUSH(c->session->arena, &c->unsuited,
              (etch_unsuited){plan->name, why->message, etch_locate(c->session, why->span)});
}

/* Places a plan. That one of a file of plans for many models does not suit this one is no mistake, unless it
 * is the one that is used. */
static bool place(checking *c, etch_compiled *p)
{
    etch_session *session = c->session;
    const etch_diags_mark start = etch_diags_now(session->diags);
    if (etch_compiled_place(session, p))
        return true;
    if (!p->plan->shared || p->plan == c->plan || !etch_diags_since(session->diags, &start))
        return false;
    add_unsuited(c, p->plan, etch_diags_retract(session->diags, &start));
    p->tried_to_place = false; /* a check line that asks for it is told so */
    return false;
}

/* One model under each plan, or under the one that was asked for. */
static void check_run(checking *c, const char *run)
{
    etch_session *session = c->session;
    const etch_check_report *report = c->report;
    if (report->plan_count == 0) {
        etch_compiled *p = etch_compiled_get(session, run, NULL, false, (etch_span){0, 0});
        if (p)
            etch_compiled_allow(session, p);
        return;
    }
    for (size_t i = 0; i < report->plan_count; i++) {
        const char *plan = session->options.plan ? session->options.plan : report->plans[i];
        etch_compiled *p = etch_compiled_get(session, run, plan, true, (etch_span){0, 0});
        const etch_job *job;
        if (p)
            list_absences(c, p->plan);
        if (p)
            etch_compiled_allow(session, p);
        if (p && place(c, p) && concerns(c, p)) {
            if (p->placed->has_idle_rings)
                list_idle(c, p->plan, "attention that goes round", p->plan->attend_span);
            if (etch_offload_is_idle(p->placed))
                list_idle(c, p->plan, "states of the optimizer", p->plan->offload.span);
            list_requirements(c, p);
            if (session->options.defaults && c->status == ETCH_OK && !p->model->graph->steps)
                c->status = etch_compiled_lower(session, p, NULL, &job);
        }
        if (session->options.plan)
            return;
    }
}

static void check_models(checking *c)
{
    const etch_check_report *report = c->report;
    const char *const *runs;
    const uint32_t run_count = etch_spec_list(c->session->spec, ETCH_LIST_RUNS, &runs);
    if (c->session->options.run || (run_count == 0 && report->model_count > 0)) {
        check_run(c, NULL);
        return;
    }
    for (uint32_t i = 0; i < run_count; i++)
        check_run(c, runs[i]);
}

/* ---- configs ------------------------------------------------------------------------------------------- */

/* One run with the values of the config that is in force for now: as far as a query, or lowering, would look
 * at them. */
static void check_values(checking *c, const char *run)
{
    etch_session *session = c->session;
    etch_compiled *p = etch_compiled_get(session, run, NULL, false, (etch_span){0, 0});
    if (!p || !etch_compiled_allow(session, p) || !p->plan)
        return;
    if (etch_compiled_place(session, p) && concerns(c, p))
        etch_compiled_fit(session, p);
}

static void check_config(checking *c, const char *config)
{
    etch_session *session = c->session;
    const char *const asked = session->options.config;
    const char *const *runs;
    const uint32_t count = etch_spec_list(session->spec, ETCH_LIST_RUNS, &runs);
    session->options.config = config;
    etch_diags_note_all(session->diags, etch_text(session->arena, "with config '%s'", config));
    const etch_settings *settings = etch_session_settings(session, c->plan);
    if (settings && etch_check_assumptions(session, settings)) {
        const bool one = session->options.run || count == 0;
        if (one && c->report->model_count > 0)
            check_values(c, NULL);
        for (uint32_t i = 0; !one && i < count; i++)
            check_values(c, runs[i]);
    }
    etch_diags_note_all(session->diags, NULL);
    session->options.config = asked;
}

/* Where no values are asked for, all configs are looked at: what is wrong with one would be said of its first
 * use. */
static void check_configs(checking *c)
{
    const etch_session_options *o = &c->session->options;
    const char *in_force = etch_spec_config(c->session->spec, o->config);
    if (o->config || o->set_count > 0)
        return;
    for (size_t i = 0; i < c->report->config_count; i++)
        if (!in_force || strcmp(in_force, c->report->configs[i]) != 0)
            check_config(c, c->report->configs[i]);
}

/* ---- claims ----------------------------------------------------------------------------------------- */

static void explain(etch_session *session, etch_diag *diag, const etch_judgement *judged)
{
    const etch_claim *c = &judged->claim;
    const etch_witness *witness = &judged->witness;
    etch_sym *sym = session->sym;
    const etch_span nowhere = {0, 0};
    etch_note(diag, nowhere, "left side:  %s", etch_expr_text(sym, c->left));
    etch_note(diag, nowhere, "right side: %s", etch_expr_text(sym, c->right));
    if (c->relation != ETCH_REL_DIVIDES)
        etch_note(diag, nowhere, "difference: %s", etch_expr_text(sym, etch_sub(sym, c->left, c->right)));
    if (witness->count == 0)
        return;
    etch_expr left = etch_subst(sym, c->left, witness->count, witness->vars, witness->values);
    etch_expr right = etch_subst(sym, c->right, witness->count, witness->vars, witness->values);
    etch_note(diag, nowhere, "for %s: left %s, right %s", etch_witness_text(session, witness),
              left ? etch_expr_text(sym, left) : "undefined",
              right ? etch_expr_text(sym, right) : "undefined");
}

static etch_truth judge(checking *c, const etch_claim *written, const etch_settings *settings)
{
    etch_session *session = c->session;
    const etch_judgement judged = etch_session_judge(session, written, settings);
    const bool defined = judged.claim.left && judged.claim.right;
    if (judged.truth == ETCH_YES)
        return ETCH_YES;
    if (judged.truth == ETCH_NO) {
        explain(session,
                etch_error(session->diags, ETCH_E_CHECK_REFUTED, written->span, "this check does not hold"),
                &judged);
        return ETCH_NO;
    }
    etch_diag *diag = etch_warning(session->diags, ETCH_E_CHECK_UNKNOWN, written->span,
                                   defined ? "this check could be neither proved nor refuted"
                                           : "this check is undefined for these values: a divisor is 0");
    if (defined)
        explain(session, diag, &judged);
    c->unknown = true;
    return ETCH_UNKNOWN;
}

typedef ETCH_VEC(etch_setting) setting_list;

/* Adds the value that `from` has for an axis, unless there is one. */
static void add_axis(etch_arena *arena, setting_list *all, const etch_settings *from, etch_expr axis)
{
    for (uint32_t i = 0; i < all->count; i++)
        if (all->at[i].var == axis)
            return;
    for (uint32_t i = 0; i < from->count; i++)
        if (from->at[i].var == axis)
            ETCH_PUSH(arena, all, from->at[i]);
}

/* The values in force, and those of axes of the plans that were built: a claim may speak of several. */
static etch_settings with_axes(const checking *c, const etch_settings *settings)
{
    etch_session *session = c->session;
    setting_list all = {0};
    for (uint32_t i = 0; i < settings->count; i++)
        ETCH_PUSH(session->arena, &all, settings->at[i]);
    for (uint32_t i = 0; i < session->in_force.count; i++) {
        const etch_in_force *more = session->in_force.at[i];
        for (uint32_t k = 0; more->fine && more->plan && k < more->plan->mesh.count; k++)
            add_axis(session->arena, &all, &more->settings, more->plan->mesh.at[k].size);
    }
    return (etch_settings){.at = all.at, .count = all.count};
}

static void check_claims(checking *c, const etch_settings *in_force)
{
    etch_session *session = c->session;
    const etch_settings everywhere = with_axes(c, in_force), *settings = &everywhere;
    const etch_quantities quantities = etch_session_quantities(session);
    const etch_claim *claims;
    etch_forget_open(session);
    const uint32_t count = etch_spec_checks(session->spec, &quantities, &claims);
    for (uint32_t i = 0; i < count; i++) {
        if (!claims[i].left)
            continue; /* reported */
        const etch_truth truth = judge(c, &claims[i], settings);
        ETCH_PUSH(session->arena, &c->verdicts,
                  (etch_verdict){truth, claims[i].text, etch_locate(session, claims[i].span)});
    }
    etch_remark_open(session);
}

/* ---- the entry points ---------------------------------------------------------------------------------- */

static void list_names(const etch_session *session, etch_check_report *report)
{
    report->module_count = etch_spec_list(session->spec, ETCH_LIST_MODULES, &report->modules);
    report->model_count = etch_spec_list(session->spec, ETCH_LIST_MODELS, &report->models);
    report->config_count = etch_spec_list(session->spec, ETCH_LIST_CONFIGS, &report->configs);
    report->plan_count = etch_spec_list(session->spec, ETCH_LIST_PLANS, &report->plans);
}

static bool is_unsuited(const checking *c, const char *plan)
{
    for (uint32_t i = 0; i < c->unsuited.count; i++)
        if (strcmp(c->unsuited.at[i].plan, plan) == 0)
            return true;
    return false;
}

static void count_plans(checking *c)
{
    const etch_plan_file *files;
    const uint32_t count = etch_spec_plan_files(c->session->spec, &files);
    if (c->session->options.plan || c->report->model_count == 0)
        return; /* the others were not placed */
    etch_plan_count *counts = ETCH_NEW_ARRAY(c->session->arena, count, etch_plan_count);
    for (uint32_t i = 0; i < count; i++) {
        counts[i] = (etch_plan_count){.file = files[i].path, .declared = files[i].declared};
        for (uint32_t k = 0; k < files[i].seen; k++)
            counts[i].taken += !is_unsuited(c, files[i].names[k]);
    }
    c->report->plan_files = counts;
    c->report->plan_file_count = count;
}

static etch_status check(void *data)
{
    checking *c = data;
    etch_session *session = c->session;
    const uint32_t errors = etch_error_count(session->diags);
    session->of_one_case = false;
    c->report = ETCH_NEW(session->arena, etch_check_report);
    list_names(session, c->report);
    const etch_settings *settings =
        etch_session_plan(session, &c->plan) ? etch_session_settings(session, c->plan) : NULL;
    if (settings) {
        if (!session->options.defaults)
            etch_check_assumptions(session, settings);
        check_models(c);
        if (etch_error_count(session->diags) == errors)
            check_configs(c);
        if (etch_error_count(session->diags) == errors)
            etch_spec_read_rest(session->spec, settings);
        if (etch_error_count(session->diags) == errors)
            check_claims(c, settings);
    }
    count_plans(c);
    c->report->absences = c->absences.at;
    c->report->absence_count = c->absences.count;
    c->report->unsuited = c->unsuited.at;
    c->report->unsuited_count = c->unsuited.count;
    c->report->requirements = c->requirements.at;
    c->report->requirement_count = c->requirements.count;
    c->report->verdicts = c->verdicts.at;
    c->report->verdict_count = c->verdicts.count;
    if (c->status != ETCH_OK)
        return c->status;
    if (etch_error_count(session->diags) > errors)
        return ETCH_EINPUT;
    return c->unknown ? ETCH_EUNKNOWN : ETCH_OK;
}

etch_status etch_session_check(etch_session *session, const etch_check_report **report)
{
    checking c = {.session = session};
    etch_status status = etch_session_run(session, check, &c);
    *report = session->broken == ETCH_OK ? c.report : NULL;
    return status;
}
