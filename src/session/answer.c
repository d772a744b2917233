/* Queries: the value of an expression, and tables of one quantity. */
#include "session/session_int.h"

#include <string.h>

#define QUERY_NAME "query" /* the path in messages about the expression */

typedef struct asking {
    etch_session *session;
    const char *text;
    etch_breakdown by;
    etch_answer *answer;
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
    const char *by = etch_breakdown_name(a->by);
    if (!row) {
        etch_diag *diag = etch_error(diags, ETCH_E_QUERY_TABLE, (etch_span){0, 0},
                                     "--by %s needs an expression that is one quantity alone", by);
        etch_help(diag, "for example flops(step); `etch help quantities` lists them");
        return false;
    }
    if (row->breakdowns >> a->by & 1)
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

typedef struct group {
    const char *label;
    etch_expr sum;
} group;
typedef ETCH_VEC(group) groups;

static groups group_picks(etch_session *session, const etch_pipeline *p, const etch_picks *picks,
                          etch_breakdown by)
{
    groups all = {0};
    for (uint32_t i = 0; i < picks->count; i++) {
        const etch_pick *pick = &picks->at[i];
        const char *label = etch_cost_label(session, p, pick->cost, by);
        uint32_t k = 0;
        while (k < all.count && strcmp(all.at[k].label, label) != 0)
            k++;
        if (k == all.count)
            ETCH_PUSH(session->arena, &all, (group){label, etch_int(session->sym, 0)});
        all.at[k].sum = etch_add(session->sym, all.at[k].sum, pick->amount);
    }
    return all;
}

static void set_rows(const asking *a, const groups *all, const char *unit, bool show_zero)
{
    etch_session *session = a->session;
    etch_row_amount *rows = ETCH_NEW_ARRAY(session->arena, all->count, etch_row_amount);
    for (uint32_t i = 0; i < all->count; i++)
        if (all->at[i].sum && (show_zero || !etch_is_zero(all->at[i].sum)))
            rows[a->answer->row_count++] =
                (etch_row_amount){all->at[i].label, etch_amount_of(session, all->at[i].sum, unit)};
    a->answer->rows = rows;
}

static void set_stage_rows(const asking *a, const etch_shares *shares, const char *unit)
{
    groups all = {0};
    for (uint32_t i = 0; i < shares->count; i++)
        ETCH_PUSH(a->session->arena, &all, (group){shares->at[i].label, shares->at[i].sum});
    set_rows(a, &all, unit, true);
    a->answer->by = etch_breakdown_name(ETCH_BY_STAGE);
    if (shares->count > 1)
        a->answer->sum_label = "heaviest";
}

static void refuse_open_stage(const asking *a, etch_span span)
{
    etch_diag *diag = etch_error(a->session->diags, ETCH_E_QUERY_STAGE, span,
                                 "which stage is the heaviest depends on values");
    etch_help(diag, "choose one: --stage first, middle or last; or ask --by stage");
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

/* The value of one quantity, with a row for each label; by stage when nothing else says which. */
static etch_expr tabulate(const asking *a, const etch_quantity_row *row, const etch_quantity *quantity)
{
    etch_session *session = a->session;
    etch_shares shares = {0};
    uint32_t which;
    const bool fine = a->by == ETCH_BY_NOTHING || check_breakdown(a, row, quantity);
    const etch_pipeline *p = fine ? etch_quantity_pick(session, quantity, row, &shares) : NULL;
    if (!p)
        return NULL;
    const etch_expr most = etch_shares_most(session, &shares, &which);
    if (a->by == ETCH_BY_STAGE || (a->by == ETCH_BY_NOTHING && which == UINT32_MAX)) {
        set_stage_rows(a, &shares, row->unit);
        if (which == UINT32_MAX)
            a->answer->sum_label = NULL;
        return most;
    }
    if (which == UINT32_MAX) {
        refuse_open_stage(a, quantity->span);
        return NULL;
    }
    remark_heaviest(session, &shares, which);
    if (a->by != ETCH_BY_NOTHING) {
        const groups all = group_picks(session, p, &shares.at[which].picks, a->by);
        set_rows(a, &all, row->unit, false);
    }
    return most;
}

static void remark_open_axes(etch_session *session)
{
    if (session->open_axes.count == 0)
        return;
    etch_buf names = {.arena = session->arena};
    for (uint32_t i = 0; i < session->open_axes.count; i++)
        etch_buf_printf(&names, "%s%s > 1", i ? ", " : "", session->open_axes.at[i]);
    etch_remark(session->diags, ETCH_E_QUERY_AXES, (etch_span){0, 0},
                "holds for %s: an axis of 1 has no collectives", names.text);
    session->open_axes.count = 0;
}

static void remark_open_stages(etch_session *session)
{
    if (session->open_stages)
        etch_remark(session->diags, ETCH_E_QUERY_AXES, (etch_span){0, 0},
                    "holds for %s, each with an iteration of the loop", session->open_stages);
    session->open_stages = NULL;
}

static etch_expr evaluate(const asking *a, const etch_quantity_row **row)
{
    etch_session *session = a->session;
    const etch_plan *plan;
    etch_quantity quantity = {0};
    if (!etch_session_plan(session, &plan))
        return NULL;
    const uint32_t errors = etch_error_count(session->diags);
    session->latest = NULL;
    *row = single_quantity(a, &quantity);
    if (etch_error_count(session->diags) > errors)
        return NULL;
    if (*row ? true : a->by != ETCH_BY_NOTHING && !quantity.name)
        return tabulate(a, *row, &quantity);
    const etch_quantities quantities = etch_session_quantities(session);
    etch_expr value = etch_spec_value(session->spec, a->text, QUERY_NAME, plan, &quantities);
    if (etch_error_count(session->diags) > errors)
        return NULL;
    /* A plan that only a quantity names knows axes that values may be given to. */
    const bool named = !plan && session->latest;
    const etch_settings *settings = named ? session->latest->settings : etch_session_settings(session, plan);
    return settings ? etch_settings_apply(session->sym, settings, value) : NULL;
}

static etch_status answer(void *data)
{
    asking *a = data;
    etch_session *session = a->session;
    const etch_quantity_row *row = NULL;
    const uint32_t errors = etch_error_count(session->diags);
    a->answer = ETCH_NEW(session->arena, etch_answer);
    a->answer->by = etch_breakdown_name(a->by);
    a->answer->sum_label = "total";
    etch_expr value = evaluate(a, &row);
    if (!value && etch_error_count(session->diags) == errors)
        etch_error(session->diags, ETCH_E_QUERY_UNDEFINED, (etch_span){0, 0},
                   "'%s' is undefined for these values: a divisor is 0", a->text);
    if (!value || etch_error_count(session->diags) > errors)
        return ETCH_EINPUT;
    remark_open_axes(session);
    remark_open_stages(session);
    a->answer->query = etch_copy_text(session->arena, a->text, strlen(a->text));
    a->answer->unit = row ? row->unit : "";
    a->answer->amount = etch_amount_of(session, value, a->answer->unit);
    return ETCH_OK;
}

etch_status etch_session_query(etch_session *session, const char *expression, etch_breakdown by,
                               const etch_answer **result)
{
    asking a = {.session = session, .text = expression, .by = by};
    etch_status status = etch_session_run(session, answer, &a);
    *result = status == ETCH_OK ? a.answer : NULL;
    return status;
}
