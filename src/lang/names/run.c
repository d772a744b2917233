/* Runs: train and infer blocks. Which one is meant, which model it runs, which params it binds. */
#include "lang/names/symbols.h"

#include <string.h>

/* ---- which one ----------------------------------------------------------------------------------------- */

const etch_ast_def *etch_run_option(const etch_symbol *run, const char *name)
{
    const etch_ast_defs *defs = &run->item->defs;
    for (uint32_t i = 0; i < defs->count; i++)
        if (strcmp(defs->at[i].name.text, name) == 0)
            return &defs->at[i];
    return NULL;
}

static bool is_run(const etch_symbol *symbol)
{
    return symbol->kind == ETCH_SYMBOL_TRAIN || symbol->kind == ETCH_SYMBOL_INFER;
}

static bool spec_sees(const etch_spec *spec, const etch_symbol *symbol)
{
    for (uint32_t i = 0; i < spec->main->symbols.count; i++)
        if (spec->main->symbols.at[i] == symbol)
            return true;
    return false;
}

/* The model that a block names, without reporting anything. */
static const etch_symbol *named_model(const etch_symbol *run)
{
    const etch_ast_def *def = etch_run_option(run, "model");
    const etch_symbol *symbol = def && def->value->kind == ETCH_AST_NAME
                                    ? etch_namespace_find(run->home, def->value->name.text)
                                    : NULL;
    return symbol && symbol->kind == ETCH_SYMBOL_MODEL ? symbol : NULL;
}

uint32_t etch_run_candidates(const etch_spec *spec, const etch_symbol *const **list)
{
    ETCH_VEC(const etch_symbol *) own = {0}, imported = {0};
    bool own_models = false;
    for (uint32_t i = 0; i < spec->symbols.count; i++) {
        const etch_symbol *symbol = spec->symbols.at[i];
        own_models = own_models || (symbol->kind == ETCH_SYMBOL_MODEL && symbol->home == spec->main);
        if (!is_run(symbol))
            continue;
        if (symbol->home == spec->main)
            ETCH_PUSH(spec->arena, &own, symbol);
        else if (named_model(symbol) && spec_sees(spec, named_model(symbol)))
            ETCH_PUSH(spec->arena, &imported, symbol);
    }
    const bool choose_own = own.count > 0 || own_models;
    *list = choose_own ? own.at : imported.at;
    return choose_own ? own.count : imported.count;
}

/* The candidates of the kind that is taken when no run is named: train blocks, without any infer blocks. */
typedef struct choice {
    etch_symbol_kind kind;
    uint32_t count;
    /* when `count` is 1 */
    const etch_symbol *only;
} choice;

static choice choose(const etch_spec *spec)
{
    const etch_symbol *const *list;
    const uint32_t count = etch_run_candidates(spec, &list);
    choice c = {.kind = ETCH_SYMBOL_INFER};
    for (uint32_t i = 0; i < count; i++)
        if (list[i]->kind == ETCH_SYMBOL_TRAIN)
            c.kind = ETCH_SYMBOL_TRAIN;
    for (uint32_t i = 0; i < count; i++)
        if (list[i]->kind == c.kind) {
            c.only = c.count ? NULL : list[i];
            c.count++;
        }
    return c;
}

/* The run called `name`: a candidate, else what the spec sees under this name, else one whose model it
 * sees. */
static const etch_symbol *run_named(const etch_spec *spec, const char *name)
{
    const etch_symbol *const *list;
    const uint32_t count = etch_run_candidates(spec, &list);
    for (uint32_t i = 0; i < count; i++)
        if (list[i]->name == name)
            return list[i];
    const etch_symbol *symbol = etch_namespace_find(spec->main, name);
    if (symbol && is_run(symbol))
        return symbol;
    for (uint32_t i = 0; i < spec->symbols.count; i++) {
        symbol = spec->symbols.at[i];
        if (is_run(symbol) && symbol->name == name && named_model(symbol) &&
            spec_sees(spec, named_model(symbol)))
            return symbol;
    }
    return NULL;
}

const etch_symbol *etch_run_in_force(const etch_spec *spec, const char *run)
{
    if (run)
        return run_named(spec, etch_name_of(spec->names, run));
    return choose(spec).only;
}

static const etch_symbol *report_unknown_run(etch_spec *spec, const char *run, etch_span asked)
{
    const char *const *names;
    const uint32_t count = etch_spec_list(spec, ETCH_LIST_RUNS, &names);
    etch_diag *diag = etch_error(spec->diags, ETCH_E_RUN, asked, "there is no run '%s'", run);
    etch_suggest_name(diag, run, names, count);
    etch_note(diag, (etch_span){0, 0}, "train and infer blocks: %s", etch_listing_text(spec, ETCH_LIST_RUNS));
    return NULL;
}

static void report_several(etch_spec *spec, const choice *c)
{
    const etch_symbol *const *list;
    const uint32_t count = etch_run_candidates(spec, &list);
    etch_buf names = {.arena = spec->arena};
    etch_buf_puts(&names, "");
    for (uint32_t i = 0; i < count; i++)
        if (list[i]->kind == c->kind)
            etch_buf_printf(&names, "%s%s", names.length ? ", " : "", list[i]->name);
    etch_diag *diag = etch_error(spec->diags, ETCH_E_RUN, (etch_span){0, 0}, "the spec has several %ss: %s",
                                 etch_symbol_kind_name(c->kind), names.text);
    for (uint32_t i = 0; i < count; i++)
        if (list[i]->kind == c->kind)
            etch_note(diag, list[i]->item->span, "'%s' is here", list[i]->name);
    etch_help(diag, "say which one is meant: --run NAME, or run = NAME in a quantity");
}

const etch_symbol *etch_run_symbol(etch_spec *spec, const char *run, etch_span asked)
{
    const etch_symbol *symbol = etch_run_in_force(spec, run);
    if (symbol)
        return symbol;
    if (run)
        return report_unknown_run(spec, run, asked);
    const choice c = choose(spec);
    if (c.count > 1)
        report_several(spec, &c);
    return NULL;
}

/* ---- its model ----------------------------------------------------------------------------------------- */

static const etch_symbol *only_model(etch_spec *spec, const etch_symbol *run)
{
    const etch_symbol *found = NULL;
    uint32_t count = 0, own = 0;
    for (uint32_t i = 0; i < run->home->symbols.count; i++) {
        const etch_symbol *symbol = run->home->symbols.at[i];
        const bool is_own = symbol->home == run->home;
        if (symbol->kind != ETCH_SYMBOL_MODEL || (own > 0 && !is_own))
            continue;
        count = is_own && own == 0 ? 1 : count + 1;
        own += is_own;
        found = symbol;
    }
    if (count == 1)
        return found;
    const char *verb = run->kind == ETCH_SYMBOL_TRAIN ? "train" : "run";
    etch_diag *diag =
        count ? etch_error(spec->diags, ETCH_E_NO_MODEL, run->item->span,
                           "this %s does not say which model it %ss", etch_symbol_kind_name(run->kind), verb)
              : etch_error(spec->diags, ETCH_E_NO_MODEL, run->item->span,
                           "there is no model that this block could %s", verb);
    etch_help(diag, "name it: model = NAME");
    return NULL;
}

const etch_symbol *etch_run_model(etch_spec *spec, const etch_symbol *run)
{
    const etch_ast_def *def = etch_run_option(run, "model");
    if (!def)
        return only_model(spec, run);
    const etch_symbol *symbol = named_model(run);
    if (symbol || def->value->kind == ETCH_AST_BROKEN)
        return symbol;
    if (def->value->kind != ETCH_AST_NAME) {
        etch_error(spec->diags, ETCH_E_NO_MODEL, def->value->span, "a model is given by its name");
        return NULL;
    }
    const etch_symbol *other = etch_namespace_find(run->home, def->value->name.text);
    if (!other) {
        etch_unknown_name(spec, run->home, "model", def->value->name, NULL, 0);
        return NULL;
    }
    etch_error(spec->diags, ETCH_E_NO_MODEL, def->value->span, "'%s' is a %s, not a model",
               def->value->name.text, etch_symbol_kind_name(other->kind));
    return NULL;
}

/* ---- its lines ----------------------------------------------------------------------------------------- */

bool etch_run_names_param(const etch_symbol *run, const etch_ast_def *def)
{
    const etch_symbol *symbol = etch_namespace_find(run->home, def->name.text);
    return symbol && symbol->kind == ETCH_SYMBOL_PARAM;
}

bool etch_run_says_once(etch_spec *spec, const etch_symbol *run, uint32_t index)
{
    const etch_ast_def *def = &run->item->defs.at[index];
    const etch_ast_def *first = etch_run_option(run, def->name.text);
    if (first == def)
        return true;
    etch_diag *diag =
        etch_error(spec->diags, ETCH_E_TRAIN_OPTION, def->span, "'%s' is given twice", def->name.text);
    etch_note(diag, first->span, "it is given here already");
    return false;
}

/* ---- lists of names, those of runs among them --------------------------------------------------------- */

static uint32_t list_runs(const etch_spec *spec, const char *const **names)
{
    const etch_symbol *const *runs;
    const uint32_t count = etch_run_candidates(spec, &runs);
    const char **list = ETCH_NEW_ARRAY(spec->arena, count, const char *);
    for (uint32_t i = 0; i < count; i++)
        list[i] = runs[i]->name;
    *names = list;
    return count;
}

uint32_t etch_spec_list(const etch_spec *spec, etch_listing what, const char *const **names)
{
    static const etch_symbol_kind kinds[] = {[ETCH_LIST_MODELS] = ETCH_SYMBOL_MODEL,
                                             [ETCH_LIST_CONFIGS] = ETCH_SYMBOL_CONFIG,
                                             [ETCH_LIST_PLANS] = ETCH_SYMBOL_PLAN,
                                             [ETCH_LIST_MODULES] = ETCH_SYMBOL_MODULE};
    if (what == ETCH_LIST_RUNS)
        return list_runs(spec, names);
    const etch_namespace *space = spec->main;
    ETCH_VEC(const char *) list = {0};
    for (uint32_t i = 0; i < space->symbols.count; i++)
        if (space->symbols.at[i]->kind == kinds[what])
            ETCH_PUSH(spec->arena, &list, space->names.at[i]);
    *names = list.at;
    return list.count;
}

const char *etch_listing_text(etch_spec *spec, etch_listing what)
{
    const char *const *names;
    const uint32_t count = etch_spec_list(spec, what, &names);
    etch_buf text = {.arena = spec->arena};
    for (uint32_t i = 0; i < count; i++)
        etch_buf_printf(&text, "%s%s", i ? ", " : "", names[i]);
    return count ? text.text : "none";
}
