/* Options that stand in place of those of plans: `--set 'plan.schedule = gpipe'`. */
#include "lang/plan/plan_int.h"

#include <string.h>

/* The names of all options, of plans and of their stage lines. */
static uint32_t options_of(etch_spec *spec, const char *const **names)
{
    ETCH_VEC(const char *) all = {0};
    const char *name;
    for (uint32_t i = 0; (name = etch_plan_option_at(i)) != NULL; i++)
        ETCH_PUSH(spec->arena, &all, name);
    for (uint32_t i = 0; (name = etch_stage_option_at(i)) != NULL; i++)
        ETCH_PUSH(spec->arena, &all, name);
    *names = all.at;
    return all.count;
}

bool etch_plan_has_option(const char *text, size_t length)
{
    const char *name;
    for (uint32_t i = 0; (name = etch_plan_option_at(i)) != NULL; i++)
        if (strlen(name) == length && strncmp(name, text, length) == 0)
            return true;
    for (uint32_t i = 0; (name = etch_stage_option_at(i)) != NULL; i++)
        if (strlen(name) == length && strncmp(name, text, length) == 0)
            return true;
    return false;
}

static bool is_option(etch_spec *spec, const etch_ast_def *def)
{
    if (etch_plan_has_option(def->name.text, strlen(def->name.text)))
        return true;
    const char *const *names;
    const uint32_t count = options_of(spec, &names);
    etch_diag *diag = etch_error(spec->diags, ETCH_E_PLAN_OPTION, def->name.span,
                                 "a plan has no option '%s' that could be set", def->name.text);
    etch_suggest_name(diag, def->name.text, names, count);
    etch_buf list = {.arena = spec->arena};
    for (uint32_t i = 0; i < count; i++)
        etch_buf_printf(&list, "%s%s", i ? ", " : "", names[i]);
    etch_help(diag, "it has %s", list.text);
    return false;
}

void etch_plans_set(etch_spec *spec, const char *text)
{
    const char *options = strchr(text, '.');
    etch_ast_defs defs = {0};
    if (!options) {
        etch_error(spec->diags, ETCH_E_PLAN_OPTION, (etch_span){0, 0}, "'%s' sets no option of plans", text);
        return;
    }
    const etch_source *source = etch_source_add(spec->diags, "set", options + 1, strlen(options + 1));
    if (!source) {
        etch_error(spec->diags, ETCH_E_SOURCES_TOO_LARGE, (etch_span){0, 0},
                   "the options that are set and the files of the spec are too large together");
        return;
    }
    if (!etch_ast_parse_options(&spec->context, source, &defs))
        return;
    for (uint32_t i = 0; i < defs.count; i++) {
        if (!is_option(spec, &defs.at[i]))
            continue;
        if (etch_plan_set_of(spec, defs.at[i].name.text))
            etch_error(spec->diags, ETCH_E_PLAN_OPTION, defs.at[i].span, "'plan.%s' is set twice",
                       defs.at[i].name.text);
        else
            ETCH_PUSH(spec->arena, &spec->plan_sets, defs.at[i]);
    }
}

const char *etch_plans_set_text(etch_spec *spec)
{
    etch_buf out = {.arena = spec->arena};
    for (uint32_t i = 0; i < spec->plan_sets.count; i++) {
        for (const char *c = etch_written(spec, spec->plan_sets.at[i].span); *c; c++)
            if (!strchr(" \t\n", *c))
                etch_buf_add(&out, c, 1);
        etch_buf_puts(&out, "\n");
    }
    return out.text;
}
