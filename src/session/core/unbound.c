/* What nobody has given a value: said where an answer needs it, and where a default takes its place. */
#include "session/core/core.h"

#include <string.h>

typedef ETCH_VEC(const char *) name_list;
typedef ETCH_VEC(const etch_setting *) setting_list;

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
    return s->from == ETCH_GIVEN_BY_DEFAULT && !s->derived;
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

/* Each once, also where several plans need it. */
static void add_needed(etch_session *session, const etch_settings *from, setting_list *out)
{
    for (uint32_t i = 0; from->needed && i < from->count; i++) {
        bool known = !from->needed[i] || from->at[i].from != ETCH_GIVEN_BY_DEFAULT;
        for (uint32_t k = 0; k < out->count && !known; k++)
            known = out->at[k]->var == from->at[i].var;
        if (!known)
            ETCH_PUSH(session->arena, out, &from->at[i]);
    }
}

void etch_remark_config_defaults(etch_session *session)
{
    etch_buf names = {.arena = session->arena}, values = {.arena = session->arena};
    setting_list needed = {0};
    etch_span span = {0, 0};
    for (uint32_t i = 0; i < session->in_force.count; i++)
        if (session->in_force.at[i]->fine && session->in_force.at[i]->settings.needed) {
            span = session->in_force.at[i]->settings.config_span;
            add_needed(session, &session->in_force.at[i]->settings, &needed);
        }
    for (uint32_t i = 0; i < needed.count; i++) {
        const etch_setting *s = needed.at[i];
        etch_buf_printf(&names, "%s%s", i ? ", " : "", s->name);
        etch_buf_printf(&values, "%s%s = %s", i ? ", " : "", s->name, etch_expr_text(session->sym, s->value));
    }
    if (needed.count == 0)
        return;
    etch_diag *diag =
        etch_remark(session->diags, ETCH_E_CONFIG_DEFAULT, span, "the config leaves out %s: %s taken, %s",
                    names.text, needed.count > 1 ? "their defaults are" : "its default is", values.text);
    etch_help(diag, "give others with --set; --set %s=%s leaves %s open", needed.at[0]->name,
              needed.at[0]->name, needed.at[0]->name);
}
