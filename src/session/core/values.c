/* Do values mean something? Lower says so, of all of them and of some: what it refuses is refused by every
 * question, in its words. */
#include "session/core/core.h"

#include <string.h>

static etch_values values_of(etch_session *session, const etch_settings *settings)
{
    etch_given *given = ETCH_NEW_ARRAY(session->arena, settings->count, etch_given);
    for (uint32_t i = 0; i < settings->count; i++) {
        const etch_setting *s = &settings->at[i];
        given[i] = (etch_given){s->var, s->name, s->value, etch_given_by_name(s->from), s->span};
    }
    etch_values values = {.given = given, .given_count = settings->count};
    values.fact_count = etch_spec_assumptions(session->spec, &values.facts);
    return values;
}

static bool check(etch_session *session, const etch_values *values)
{
    etch_arena *scratch = etch_arena_new(session->mem);
    const bool fine = etch_values_check(scratch, session->sym, session->diags, values);
    etch_arena_free(scratch);
    return fine;
}

bool etch_check_assumptions(etch_session *session, const etch_settings *settings)
{
    const etch_values values = values_of(session, settings);
    return check(session, &values);
}

etch_values etch_compiled_values(etch_session *session, const etch_compiled *p, const etch_placed *placed)
{
    etch_values values = values_of(session, p->settings);
    values.training = p->training;
    values.placed = placed;
    return values;
}

bool etch_compiled_allow(etch_session *session, etch_compiled *p)
{
    if (!p->allowed) {
        const etch_values values = etch_compiled_values(session, p, NULL);
        p->allowed = check(session, &values);
    }
    return p->allowed;
}

bool etch_compiled_divide(etch_session *session, etch_compiled *p)
{
    if (!p->divided && etch_compiled_place(session, p)) {
        const etch_values values = etch_compiled_values(session, p, p->placed);
        p->divided = check(session, &values);
    }
    return p->divided;
}

bool etch_compiled_fit(etch_session *session, etch_compiled *p)
{
    if (!p->fits)
        p->fits = etch_compiled_divide(session, p) && etch_session_stages_fit(session, p);
    return p->fits;
}

/* ---- what has none ------------------------------------------------------------------------------------- */

typedef ETCH_VEC(const char *) name_list;

static void add_vars(etch_session *session, etch_expr expr, name_list *out)
{
    const etch_expr *vars = NULL;
    const uint32_t count = expr ? etch_vars_of(session->sym, expr, &vars) : 0;
    for (uint32_t i = 0; i < count; i++) {
        const char *name = etch_var_name(vars[i]);
        bool known = !name || strcmp(name, "stage") == 0;
        for (uint32_t k = 0; k < out->count && !known; k++)
            known = strcmp(out->at[k], name) == 0;
        if (!known)
            ETCH_PUSH(session->arena, out, name);
    }
}

void etch_help_unbound(etch_session *session, etch_diag *diag, const etch_expr *exprs, uint32_t count)
{
    name_list names = {0};
    etch_buf list = {.arena = session->arena}, set = {.arena = session->arena};
    for (uint32_t i = 0; i < count; i++)
        add_vars(session, exprs[i], &names);
    for (uint32_t i = 0; i < names.count; i++) {
        etch_buf_printf(&list, "%s%s", i ? ", " : "", names.at[i]);
        etch_buf_printf(&set, "%s%s=...", i ? "," : "", names.at[i]);
    }
    if (names.count == 0)
        return;
    etch_note(diag, (etch_span){0, 0}, "no value for %s", list.text);
    etch_help(diag, "give values: --set %s%s", set.text,
              session->options.defaults ? "" : "; or --defaults: those of the spec, and 1 for mesh axes");
}

/* Is it the 1 of an axis that has no value? */
static bool is_default_axis(const etch_session *session, const etch_setting *s)
{
    const etch_param *params;
    const uint32_t count = etch_spec_params(session->spec, &params);
    for (uint32_t i = 0; i < count; i++)
        if (params[i].var == s->var)
            return s->from == ETCH_GIVEN_BY_DEFAULT && !params[i].value;
    return s->from == ETCH_GIVEN_BY_DEFAULT;
}

static bool speaks_of(etch_sym *sym, etch_expr expr, etch_expr var)
{
    const etch_expr *vars = NULL;
    const uint32_t count = etch_vars_of(sym, expr, &vars);
    for (uint32_t i = 0; i < count; i++)
        if (vars[i] == var)
            return true;
    return false;
}

void etch_remark_default_axes(etch_session *session, const etch_compiled *p, etch_expr of)
{
    etch_buf names = {.arena = session->arena}, set = {.arena = session->arena};
    etch_span span = {0, 0};
    uint32_t count = 0;
    for (uint32_t i = 0; i < p->settings->count; i++) {
        const etch_setting *s = &p->settings->at[i];
        if (!is_default_axis(session, s) || (of && !speaks_of(session->sym, of, s->var)))
            continue;
        etch_buf_printf(&names, "%s%s", count ? ", " : "", s->name);
        etch_buf_printf(&set, "%s%s=...", count ? "," : "", s->name);
        span = count++ ? span : s->span;
    }
    if (count == 0)
        return;
    etch_diag *diag = etch_remark(session->diags, ETCH_E_AXIS_DEFAULT, span,
                                  "mesh ax%s %s ha%s no value, and %s taken to be 1", count > 1 ? "es" : "is",
                                  names.text, count > 1 ? "ve" : "s", count > 1 ? "are" : "is");
    etch_help(diag, "give %s: --set %s", count > 1 ? "them" : "it", set.text);
}
