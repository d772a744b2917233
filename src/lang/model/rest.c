/* Models that no run names, and modules that no model calls: read by themselves, so that what is wrong in
 * them is found before somebody uses them.
 *
 * A module is read as if it were called with what its signature says. Where that leaves something open (what
 * a parameter is, what `..` stands for, how a branch is decided), a mistake that may come of it is none: then
 * a remark says that the module was not checked. */
#include "lang/model/model_int.h"

#include <string.h>

typedef struct reading {
    etch_spec *spec;
    const etch_symbol *symbol;
    etch_builder builder;
    etch_env env;
    /* what the signature leaves open; NULL: nothing */
    const char *open;
} reading;

/* ---- the signature ------------------------------------------------------------------------------------- */

static bool names_dim(const etch_ast_tensors *tensors, const char *name)
{
    for (uint32_t i = 0; i < tensors->count; i++)
        for (uint32_t k = 0; k < tensors->at[i].axes.count; k++) {
            const etch_ast_axis *axis = &tensors->at[i].axes.at[k];
            if (!axis->rest && axis->size->kind == ETCH_AST_NAME && axis->size->name.text == name)
                return true;
        }
    return false;
}

static bool has_rest(const etch_ast_tensors *tensors)
{
    for (uint32_t i = 0; i < tensors->count; i++)
        for (uint32_t k = 0; k < tensors->at[i].axes.count; k++)
            if (tensors->at[i].axes.at[k].rest)
                return true;
    return false;
}

/* A default, or a dim of its own where the signature says that it is one. */
static bool bind_parameter(reading *r, const etch_ast_def *def)
{
    const etch_ast_item *item = r->symbol->item;
    if (def->value)
        return etch_env_default(&r->env, def);
    if (!names_dim(&item->inputs, def->name.text) && !names_dim(&item->results, def->name.text)) {
        r->open = etch_text(r->spec->arena, "what its parameter %s is", def->name.text);
        return false;
    }
    etch_dim *dim = etch_graph_dim(r->builder.graph, def->name.text, etch_var(r->spec->sym, def->name.text),
                                   false, def->name.span);
    etch_env_declare(&r->env, (etch_bound_name){.name = def->name.text, .kind = ETCH_BOUND_DIM, .dim = dim},
                     def->name.span);
    return true;
}

static bool bind_parameters(reading *r)
{
    const etch_ast_defs *defs = &r->symbol->item->defs;
    for (uint32_t i = 0; i < defs->count; i++)
        if (!bind_parameter(r, &defs->at[i]))
            return false;
    return true;
}

/* ---- reading ------------------------------------------------------------------------------------------- */

/* Where something was left open: may the mistakes come of that? */
static bool may_be_none(const reading *r, const etch_diag *diag)
{
    for (; diag; diag = diag->next) {
        const bool of_dims = diag->code >= ETCH_E_DIM_TWICE && diag->code <= ETCH_E_CARRIED_TYPE;
        const bool undecided = diag->code == ETCH_E_UNDECIDED;
        if (diag->severity == ETCH_ERROR && !undecided && !(r->env.rest.known && of_dims))
            return false;
    }
    return true;
}

static void read_body(reading *r)
{
    const etch_ast_item *item = r->symbol->item;
    etch_tensor **results = ETCH_NEW_ARRAY(r->spec->arena, item->results.count, etch_tensor *);
    r->env.rest.known = has_rest(&item->inputs); /* of no dims */
    if (!bind_parameters(r))
        return;
    etch_env_inputs(&r->env, item);
    etch_env_body(&r->env, &item->body);
    etch_env_results(&r->env, item, results);
}

static void remark_open(const reading *r)
{
    const char *name = r->symbol->item->name.text;
    etch_diag *diag =
        etch_remark(r->spec->diags, ETCH_E_UNREAD, r->symbol->item->name.span,
                    "module %s was not checked: no model calls it, and nothing else says %s", name, r->open);
    etch_help(diag, "a call, in a model of this file or of another, checks it");
}

static void read_alone(etch_spec *spec, const etch_symbol *symbol, const etch_settings *settings)
{
    const bool is_module = symbol->kind == ETCH_SYMBOL_MODULE;
    const etch_diags_mark start = etch_diags_now(spec->diags);
    reading r = {.spec = spec, .symbol = symbol};
    r.builder = etch_builder_new(spec, settings, symbol, &spec->dtypes, etch_error_count(spec->diags));
    r.builder.alone = is_module;
    r.env = (etch_env){.builder = &r.builder, .home = symbol->home, .results = &symbol->item->results};
    etch_diags_note_all(spec->diags, is_module
                                         ? etch_text(spec->arena, "no model calls module %s", symbol->name)
                                         : etch_text(spec->arena, "no run names model %s", symbol->name));
    read_body(&r);
    etch_diags_note_all(spec->diags, NULL);
    etch_note_homonyms(&r.builder, &start);
    if (etch_error_count(spec->diags) > r.builder.errors &&
        may_be_none(&r, etch_diags_since(spec->diags, &start))) {
        etch_diags_retract(spec->diags, &start);
        r.open = r.open ? r.open : "what its dims and values are";
    }
    if (r.open)
        remark_open(&r);
}

static bool is_readable(const etch_spec *spec, const etch_symbol *symbol)
{
    const bool has_body = symbol->kind == ETCH_SYMBOL_MODULE || symbol->kind == ETCH_SYMBOL_MODEL;
    return has_body && symbol->home == spec->main && !(spec->read && spec->read[symbol->id]) &&
           !etch_native_of(spec, symbol);
}

static bool needs_values(const etch_symbol *symbol)
{
    for (uint32_t i = 0; i < symbol->item->defs.count; i++)
        if (!symbol->item->defs.at[i].value)
            return true;
    return false;
}

/* The last first, because most modules call earlier ones; those that only a call can give values to at the
 * end. */
void etch_spec_read_rest(etch_spec *spec, const etch_settings *settings)
{
    for (int round = 0; round < 2; round++)
        for (uint32_t i = spec->symbols.count; i-- > 0;) {
            const etch_symbol *symbol = spec->symbols.at[i];
            if (is_readable(spec, symbol) && (round == 1 || !needs_values(symbol)))
                read_alone(spec, symbol, settings);
        }
}
