/* Queries: the value of an expression, and tables of one quantity. */
#include "session/query/query.h"

#include <string.h>

#define QUERY_NAME "query" /* the path in messages about the expression */

typedef struct asking {
    etch_session *session;
    const char *text;
    etch_query_options options;
    etch_answer *answer;
    etch_unit unit;
    /* a derivative has steps */
    bool piecewise;
    /* of a timed quantity alone; else its ends are NULL */
    etch_within within;
} asking;

/* The quantity that the expression consists of; NULL when it is more than one or none. */
static const etch_quantity_row *single_quantity(const asking *a, etch_quantity *quantity)
{
    return etch_spec_quantity(a->session->spec, a->text, QUERY_NAME, quantity)
               ? etch_quantity_row_of(quantity->name)
               : NULL;
}

static bool check_breakdown(const asking *a, const etch_quantity_row *row, const etch_quantity *quantity)
{
    etch_diags *diags = a->session->diags;
    const char *by = etch_breakdown_name(a->options.by);
    if (!row) {
        etch_diag *diag = etch_error(diags, ETCH_E_QUERY_TABLE, (etch_span){0, 0},
                                     "%s%s needs an expression that is one quantity alone",
                                     a->options.why ? "--why" : "--by ", a->options.why ? "" : by);
        etch_help(diag, "for example flops(step); `etch help quantities` lists them");
        return false;
    }
    if (row->timing) {
        etch_diag *diag =
            etch_error(diags, ETCH_E_QUERY_TABLE, quantity->span, "'%s' is no sum of parts", row->name);
        etch_help(diag, "`etch simulate` says where the time of a step goes");
        return false;
    }
    if (a->options.why || row->breakdowns >> a->options.by & 1)
        return true;
    etch_diag *diag =
        etch_error(diags, ETCH_E_QUERY_TABLE, quantity->span, "'%s' cannot be split by %s", row->name, by);
    etch_buf names = {.arena = a->session->arena};
    for (unsigned i = 1; etch_breakdown_name((etch_breakdown)i); i++)
        if (row->breakdowns >> i & 1)
            etch_buf_printf(&names, "%s%s", names.length ? ", " : "", etch_breakdown_name((etch_breakdown)i));
    etch_help(diag, "it can be split by %s", names.text);
    return false;
}

/* ---- of the value: its derivative, its leading terms --------------------------------------------------- */

/* The variable that a param, dim or mesh axis of this name is. NULL after a reported error. */
static etch_expr find_variable(const asking *a, const char *name, const etch_plan *plan,
                               const etch_settings *settings)
{
    etch_session *session = a->session;
    const uint32_t errors = etch_error_count(session->diags);
    etch_expr var = etch_spec_value(session->spec, name, "variable", plan, NULL);
    if (etch_error_count(session->diags) > errors)
        return NULL;
    etch_expr value = etch_settings_apply(session->sym, settings, var);
    if (value && value == var && etch_var_name(var))
        return var;
    etch_diag *diag = etch_error(session->diags, ETCH_E_QUERY_VARIABLE, (etch_span){0, 0},
                                 "'%s' is no variable of the value: it is %s", name,
                                 value ? etch_expr_text(session->sym, value) : "undefined");
    if (value && etch_is_constant(value) && !etch_is_constant(var))
        etch_help(diag, "leave it without a value: --set %s=%s", name, name);
    else
        etch_help(diag, "name a param, a mesh axis, or a dim whose size is one param");
    return NULL;
}

/* A question about a value. `var` is NULL when it is the value itself. */
static etch_expr transform(asking *a, etch_expr value, etch_expr var)
{
    if (!var)
        return value;
    if (a->options.leading)
        return etch_leading(a->session->sym, value, var);
    bool piecewise = false;
    etch_expr derivative = etch_diff(a->session->sym, value, var, &piecewise);
    a->piecewise = a->piecewise || piecewise;
    return derivative;
}

static etch_amount amount_of(const asking *a, etch_expr value)
{
    return etch_amount_of(a->session, value, a->unit, a->options.notation, a->options.form);
}

/* ---- tables -------------------------------------------------------------------------------------------- */

typedef struct group {
    const char *label;
    etch_expr sum;
} group;
typedef ETCH_VEC(group) groups;

/* Groups as they are found by their labels: 1 + the index of a group, by hash, with room for all. */
typedef struct group_index {
    uint32_t *slots, mask;
} group_index;

static group_index index_for(etch_arena *arena, uint32_t most)
{
    uint32_t size = 16;
    while (size < 2 * (uint64_t)most)
        size *= 2;
    return (group_index){ETCH_NEW_ARRAY(arena, size, uint32_t), size - 1};
}

/* Where the index of the group stands, or is to stand. */
static uint32_t *find_group(const group_index *index, const groups *all, const char *label)
{
    uint32_t hash = 2166136261u; /* FNV-1a */
    for (const char *c = label; *c; c++)
        hash = (hash ^ (unsigned char)*c) * 16777619u;
    for (uint32_t at = hash & index->mask;; at = (at + 1) & index->mask)
        if (!index->slots[at] || strcmp(all->at[index->slots[at] - 1].label, label) == 0)
            return &index->slots[at];
}

static groups group_picks(etch_session *session, const etch_compiled *p, const etch_picks *picks,
                          etch_breakdown by)
{
    const group_index index = index_for(session->arena, picks->count);
    const etch_region *body = NULL; /* of the label before: those of a layer follow each other */
    const char *label = NULL;
    groups all = {0};
    for (uint32_t i = 0; i < picks->count; i++) {
        const etch_pick *pick = &picks->at[i];
        if (by != ETCH_BY_LAYER || !label || pick->cost->body != body)
            label = etch_cost_label(session, p, pick->cost, by);
        body = pick->cost->body;
        uint32_t *slot = find_group(&index, &all, label);
        if (!*slot) {
            ETCH_PUSH(session->arena, &all, (group){label, etch_int(session->sym, 0)});
            *slot = all.count;
        }
        group *of = &all.at[*slot - 1];
        of->sum = etch_add(session->sym, of->sum, pick->amount);
    }
    return all;
}

static void set_rows(const asking *a, const groups *all, bool show_zero)
{
    etch_session *session = a->session;
    etch_row_amount *rows = ETCH_NEW_ARRAY(session->arena, all->count, etch_row_amount);
    for (uint32_t i = 0; i < all->count; i++)
        if (all->at[i].sum && (show_zero || !etch_is_zero(all->at[i].sum)))
            rows[a->answer->row_count++] = (etch_row_amount){all->at[i].label, amount_of(a, all->at[i].sum)};
    a->answer->rows = rows;
}

static void set_stage_rows(asking *a, const etch_shares *shares, etch_expr var)
{
    groups all = {0};
    for (uint32_t i = 0; i < shares->count; i++)
        ETCH_PUSH(a->session->arena, &all,
                  (group){shares->at[i].label, transform(a, shares->at[i].sum, var)});
    set_rows(a, &all, true);
    a->answer->by = ETCH_BY_STAGE;
    if (shares->count > 1)
        a->answer->sum = ETCH_SUM_HEAVIEST;
}

static void refuse_open_stage(const asking *a, const etch_shares *shares, etch_span span)
{
    etch_expr *sums = ETCH_NEW_ARRAY(a->session->arena, shares->count, etch_expr);
    for (uint32_t i = 0; i < shares->count; i++)
        sums[i] = shares->at[i].sum;
    etch_diag *diag = etch_error(a->session->diags, ETCH_E_QUERY_STAGE, span,
                                 "which stage is the heaviest depends on values");
    etch_help_unbound(a->session, diag, sums, shares->count);
    etch_help(diag, "or choose one: --stage first, middle or last; or ask --by stage");
}

static void remark_heaviest(etch_session *session, const etch_shares *shares, uint32_t which)
{
    bool differ = false;
    for (uint32_t i = 0; i < shares->count; i++)
        differ = differ || shares->at[i].sum != shares->at[which].sum;
    if (differ)
        etch_remark(session->diags, ETCH_E_QUERY_HEAVIEST, (etch_span){0, 0},
                    "this is stage %s, the heaviest; --by stage shows all", shares->at[which].label);
}

/* Each group split by the terms of the whole, in their order. */
static groups split_terms(etch_session *session, const groups *sources, etch_expr total)
{
    groups all = {0};
    etch_expr *sums = ETCH_NEW_ARRAY(session->arena, sources->count, etch_expr);
    for (uint32_t k = 0; k < sources->count; k++)
        sums[k] = sources->at[k].sum;
    const etch_terms terms = etch_terms_of(session, total, sums, sources->count);
    for (uint32_t i = 0; i < terms.count; i++)
        for (uint32_t k = 0; k < sources->count; k++)
            ETCH_PUSH(session->arena, &all,
                      (group){sources->at[k].label, terms.share[(size_t)i * sources->count + k]});
    return all;
}

static void explain(asking *a, const etch_compiled *p, const etch_picks *picks, etch_expr total,
                    etch_expr var)
{
    etch_contributions all = {0};
    etch_contributions_of(a->session, p, picks, &all);
    for (uint32_t i = 0; i < all.count; i++)
        all.at[i].sum = transform(a, all.at[i].sum, var);
    a->answer->unit = a->unit;
    etch_answer_why(a->session, p, &all, total, &a->options, a->answer);
}

/* The value of one quantity, with a row for each label; by stage when nothing else says which. */
static etch_expr tabulate(asking *a, const etch_quantity_row *row, const etch_quantity *quantity)
{
    etch_session *session = a->session;
    etch_shares shares = {0};
    uint32_t which;
    const bool fine =
        (a->options.by == ETCH_BY_NOTHING && !a->options.why) || check_breakdown(a, row, quantity);
    if (fine && row->timing && !a->options.derivative)
        return etch_timed_of(session, quantity, row, &a->within) ? a->within.value : NULL;
    const etch_compiled *p = fine ? etch_quantity_pick(session, quantity, row, &shares) : NULL;
    if (!p)
        return NULL;
    etch_expr var = NULL;
    if (a->options.derivative && !(var = find_variable(a, a->options.derivative, p->plan, p->settings)))
        return NULL;
    const etch_expr most = etch_shares_most(session, &shares, &which);
    if (a->options.by == ETCH_BY_STAGE ||
        (a->options.by == ETCH_BY_NOTHING && !a->options.why && which == UINT32_MAX)) {
        set_stage_rows(a, &shares, var);
        if (which == UINT32_MAX)
            a->answer->sum = ETCH_SUM_GREATEST;
        return transform(a, most, var);
    }
    if (which == UINT32_MAX) {
        refuse_open_stage(a, &shares, quantity->span);
        return NULL;
    }
    remark_heaviest(session, &shares, which);
    const etch_expr total = transform(a, most, var);
    if (a->options.why && total)
        explain(a, p, &shares.at[which].picks, total, var);
    if (a->options.by == ETCH_BY_NOTHING && !var) /* derivatives may remark on what they are of */
        return total;
    groups all = group_picks(session, p, &shares.at[which].picks, a->options.by);
    for (uint32_t i = 0; i < all.count; i++)
        all.at[i].sum = transform(a, all.at[i].sum, var);
    if (a->options.by == ETCH_BY_TERM && total)
        all = split_terms(session, &all, total);
    if (a->options.by != ETCH_BY_NOTHING)
        set_rows(a, &all, false);
    return total;
}

/* ---- values -------------------------------------------------------------------------------------------- */

typedef struct looking {
    etch_session *session;
    bool times;
} looking;

static etch_expr look_at(void *data, const etch_quantity *quantity)
{
    looking *l = data;
    const etch_quantity_row *row = etch_quantity_row_of(quantity->name);
    l->times = l->times || (row && row->timing);
    return etch_var(l->session->sym, "(quantity)");
}

/* A run of a step needs values: where the expression asks for one, defaults are in force, as with all that
 * runs. The caller of the request puts the option back. */
static void bind_for_times(const asking *a, const etch_plan *plan)
{
    etch_session *session = a->session;
    looking l = {.session = session};
    const etch_cluster *const *clusters;
    if (!session->machine && etch_spec_clusters(session->spec, &clusters) == 0)
        return;
    etch_quantities quantities = etch_session_quantities(session);
    quantities.value = look_at;
    quantities.data = &l;
    (void)etch_spec_value(session->spec, a->text, QUERY_NAME, plan, &quantities);
    session->options.defaults = session->options.defaults || l.times;
}

static etch_expr evaluate(asking *a)
{
    etch_session *session = a->session;
    const etch_plan *plan;
    etch_quantity quantity = {0};
    if (!etch_session_plan(session, &plan))
        return NULL;
    const uint32_t errors = etch_error_count(session->diags);
    bind_for_times(a, plan);
    if (etch_error_count(session->diags) > errors)
        return NULL;
    const etch_settings *given = etch_session_settings(session, plan);
    if (!given || !etch_check_assumptions(session, given))
        return NULL;
    session->latest = NULL;
    etch_forget_open(session);
    const etch_quantity_row *row = single_quantity(a, &quantity);
    const char *name = a->options.derivative ? a->options.derivative : a->options.leading;
    if (etch_error_count(session->diags) > errors)
        return NULL;
    a->unit = row && !name ? row->unit : ETCH_UNIT_NONE;
    if (!a->options.leading &&
        (row || ((a->options.by != ETCH_BY_NOTHING || a->options.why) && !quantity.name)))
        return tabulate(a, row, &quantity);
    const etch_quantities quantities = etch_session_quantities(session);
    etch_expr value = etch_spec_value(session->spec, a->text, QUERY_NAME, plan, &quantities);
    if (etch_error_count(session->diags) > errors)
        return NULL;
    /* A plan that only a quantity names knows axes that values may be given to. */
    const bool named = !plan && session->latest;
    const etch_settings *settings = named ? session->latest->settings : etch_session_settings(session, plan);
    if (!settings)
        return NULL;
    etch_expr var = name ? find_variable(a, name, named ? session->latest->plan : plan, settings) : NULL;
    if (name && !var)
        return NULL;
    return transform(a, etch_settings_apply(session->sym, settings, value), var);
}

static etch_status answer(void *data)
{
    asking *a = data;
    etch_session *session = a->session;
    session->of_one_case = true;
    const uint32_t errors = etch_error_count(session->diags);
    if (!etch_breakdown_name(a->options.by) || !etch_notation_name(a->options.notation) ||
        !etch_form_name(a->options.form)) {
        etch_error(session->diags, ETCH_NO_CODE, (etch_span){0, 0},
                   "the options ask for a breakdown, notation or form that there is not");
        return ETCH_EINPUT;
    }
    if (a->options.why && a->options.by != ETCH_BY_NOTHING) {
        etch_error(session->diags, ETCH_E_QUERY_TABLE, (etch_span){0, 0},
                   "--why is a table of its own: without --by");
        return ETCH_EINPUT;
    }
    if (a->options.leading && (a->options.derivative || a->options.why || a->options.by != ETCH_BY_NOTHING)) {
        /* leading terms of rows, or of derivatives, would not add up to those of the value */
        etch_error(session->diags, ETCH_E_QUERY_TABLE, (etch_span){0, 0},
                   "leading terms are those of the value itself: without table and derivative");
        return ETCH_EINPUT;
    }
    if (etch_spec_plan_is_broken(session->spec, session->options.plan))
        return ETCH_EINPUT; /* as the request that found it, whatever is asked */
    a->answer = ETCH_NEW(session->arena, etch_answer);
    a->answer->by = a->options.by;
    etch_expr value = evaluate(a);
    if (!value && etch_error_count(session->diags) == errors)
        etch_error(session->diags, ETCH_E_QUERY_UNDEFINED, (etch_span){0, 0},
                   "'%s' is undefined for these values: a divisor is 0", a->text);
    if (!value || etch_error_count(session->diags) > errors)
        return ETCH_EINPUT;
    etch_remark_open(session);
    etch_remark_config_defaults(session);
    if (a->piecewise)
        etch_remark(session->diags, ETCH_E_QUERY_PIECEWISE, (etch_span){0, 0},
                    "the derivative holds between the steps of floors and the corners of max");
    a->answer->query = etch_copy_text(session->arena, a->text, strlen(a->text));
    a->answer->unit = a->unit;
    a->answer->count = session->options.count ? etch_count_text(session->arena, &session->count) : NULL;
    if (a->within.low)
        a->answer->amount = etch_amount_within(session, a->within.low, a->within.high, a->unit);
    else if (!a->options.rows_alone || a->answer->sum != ETCH_SUM_GREATEST)
        a->answer->amount = amount_of(a, value);
    return ETCH_OK;
}

etch_status etch_session_query(etch_session *session, const char *expression,
                               const etch_query_options *options, const etch_answer **result)
{
    asking a = {.session = session, .text = expression};
    const char *unfit = etch_options_read(options, &a.options, sizeof a.options);
    const bool defaults = session->options.defaults;
    session->machine = a.options.machine;
    session->stack = a.options.stack;
    const etch_status status =
        unfit ? etch_session_refuse(session, unfit) : etch_session_run(session, answer, &a);
    session->machine = NULL;
    session->stack = NULL;
    session->options.defaults = defaults;
    *result = status == ETCH_OK ? a.answer : NULL;
    return status;
}

const char *etch_notation_name(etch_notation notation)
{
    static const char *const names[] = {[ETCH_PLAIN] = "plain",
                                        [ETCH_LATEX] = "latex",
                                        [ETCH_C] = "c",
                                        [ETCH_PYTHON] = "python",
                                        [ETCH_JSON] = "json"};
    return (unsigned)notation < sizeof names / sizeof *names ? names[notation] : NULL;
}

const char *etch_form_name(etch_form form)
{
    static const char *const names[] = {[ETCH_SHORTEST] = "shortest",
                                        [ETCH_EXPANDED] = "expanded",
                                        [ETCH_FACTORED] = "factored",
                                        [ETCH_RELATIVE] = "relative"};
    return (unsigned)form < sizeof names / sizeof *names ? names[form] : NULL;
}
