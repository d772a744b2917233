/* The spec as a whole: reading it, and what it lists. */
#include "lang/lang.h"
#include "lang/machine/machine.h"
#include "lang/model/blocks.h"
#include "lang/names/symbols.h"
#include "lang/plan/lookup.h"
#include "lang/spec_int.h"

#include <string.h>

/* ---- listings ------------------------------------------------------------------------------------------ */

uint32_t etch_spec_params(const etch_spec *spec, const etch_param **params)
{
    *params = spec->params.at;
    return spec->params.count;
}

uint32_t etch_spec_assumptions(etch_spec *spec, const etch_claim **claims)
{
    *claims = spec->assumptions.at;
    return spec->assumptions.count;
}

/* Files in the order in which a reader who follows imports at once meets them. */
static void list_file(const etch_spec *spec, const etch_ast *ast, const etch_source **files, uint32_t *count)
{
    for (uint32_t i = 0; i < *count; i++)
        if (files[i] == ast->source)
            return;
    files[(*count)++] = ast->source;
    for (uint32_t i = 0; i < ast->items.count; i++)
        if (ast->items.at[i].kind == ETCH_AST_IMPORT && ast->items.at[i].file)
            list_file(spec, ast->items.at[i].file, files, count); /* at most ETCH_IMPORT_DEPTH deep */
}

uint32_t etch_spec_files(const etch_spec *spec, const etch_source ***files)
{
    uint32_t count = 0;
    *files = ETCH_NEW_ARRAY(spec->arena, spec->files.count, const etch_source *);
    list_file(spec, spec->main->ast, *files, &count);
    return count;
}

/* ---- use lines ----------------------------------------------------------------------------------------- */

static void read_use(etch_spec *spec, const etch_namespace *space, const etch_ast_item *item, bool plan,
                     etch_span *before)
{
    const etch_symbol *symbol = etch_namespace_find(space, item->name.text);
    if (!symbol || symbol->kind != (plan ? ETCH_SYMBOL_PLAN : ETCH_SYMBOL_CONFIG)) {
        etch_diag *diag =
            etch_error(spec->diags, plan ? ETCH_E_UNKNOWN_PLAN : ETCH_E_UNKNOWN_CONFIG, item->name.span,
                       "there is no %s '%s'", plan ? "plan" : "config", item->name.text);
        const char *const *names;
        const uint32_t count = etch_spec_list(spec, plan ? ETCH_LIST_PLANS : ETCH_LIST_CONFIGS, &names);
        etch_suggest_name(diag, item->name.text, names, count);
        return;
    }
    if (before->end > 0) {
        etch_diag *diag = etch_error(spec->diags, ETCH_E_USE_TWICE, item->span, "a spec uses one %s",
                                     plan ? "plan" : "config");
        etch_note(diag, *before, "it uses this one already");
    }
    *before = item->span;
    if (space != spec->main)
        return; /* how an imported file is used alone does not matter here */
    if (plan)
        spec->use_plan = item->name.text;
    else
        spec->use_config = item->name.text;
}

static void read_uses(etch_spec *spec, const etch_namespace *space)
{
    etch_span places[2] = {{0, 0}, {0, 0}};
    for (uint32_t i = 0; i < space->ast->items.count; i++) {
        const etch_ast_item *item = &space->ast->items.at[i];
        if (item->kind != ETCH_AST_USE)
            continue;
        const bool plan = strcmp(item->what.text, "plan") == 0;
        read_use(spec, space, item, plan, &places[plan]);
    }
}

/* ---- reading ------------------------------------------------------------------------------------------- */

static void read_numbers(etch_spec *spec, const etch_spec_source *source)
{
    etch_params_declare(spec);
    etch_facts_collect(spec);
    etch_params_evaluate(spec);
    etch_dtypes_collect(spec);
    for (uint32_t i = 0; i < spec->spaces.count; i++)
        read_uses(spec, spec->spaces.at[i]);
    etch_bindings_check(spec);
    etch_machines_read(spec);
    for (size_t i = 0; i < source->machine_set_count; i++)
        etch_machines_set(spec, source->machine_sets[i]);
    for (size_t i = 0; i < source->plan_set_count; i++)
        etch_plans_set(spec, source->plan_sets[i]);
}

etch_spec *etch_spec_load(etch_arena *arena, etch_sym *sym, etch_diags *diags, const etch_spec_source *source,
                          etch_status *status)
{
    const uint32_t errors = etch_error_count(diags);
    etch_spec *spec = ETCH_NEW(arena, etch_spec);
    spec->arena = arena;
    spec->sym = sym;
    spec->diags = diags;
    spec->names = etch_names_new(arena);
    spec->context = (etch_ast_context){.arena = arena,
                                       .names = spec->names,
                                       .diags = diags,
                                       .shelf = source->shelf,
                                       .folders = source->folders};
    *status = etch_ast_load(&spec->context, source->path, source->text, &spec->files);
    if (*status != ETCH_OK)
        return NULL;
    etch_natives_declare(spec, source->natives, source->native_count);
    etch_names_collect(spec);
    if (etch_error_count(diags) == errors)
        read_numbers(spec, source); /* wrong names would be reported wherever they are used */
    if (etch_error_count(diags) == errors)
        return spec;
    *status = ETCH_EINPUT;
    return NULL;
}
