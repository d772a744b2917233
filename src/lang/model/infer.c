/* Infer blocks: what they say. */
#include "lang/model/model_int.h"

#include <string.h>

/* An option; without a meaning yet it is refused. */
static const struct option {
    const char *name;
    bool later;
} options[] = {
    {"model", false}, {"output", false}, {"accumulate", false},
    {"page", true},   {"steps", false},  {"dtype", true},
};
enum { OPTION_COUNT = sizeof options / sizeof *options };

const char *etch_infer_option_at(uint32_t index)
{
    return index < OPTION_COUNT ? options[index].name : NULL;
}

bool etch_is_infer_option(const char *name)
{
    for (uint32_t i = 0; i < OPTION_COUNT; i++)
        if (strcmp(options[i].name, name) == 0)
            return true;
    return false;
}

static void read_option(etch_spec *spec, const etch_symbol *symbol, const etch_ast_def *def)
{
    const char *names[OPTION_COUNT];
    for (uint32_t i = 0; i < OPTION_COUNT; i++) {
        names[i] = options[i].name;
        if (strcmp(options[i].name, def->name.text) != 0)
            continue;
        if (options[i].later)
            etch_error(spec->diags, ETCH_E_LATER, def->span,
                       "'%s' in an infer block is part of the language but is not given meaning yet",
                       def->name.text);
        return; /* what has a meaning is read where it is needed */
    }
    if (etch_run_names_param(symbol, def))
        return; /* the settings of the run have it */
    etch_diag *diag = etch_error(spec->diags, ETCH_E_TRAIN_OPTION, def->name.span,
                                 "an infer block has no option '%s'", def->name.text);
    etch_suggest_name(diag, def->name.text, names, OPTION_COUNT);
    etch_help(diag, "besides its options it binds params: seq = 1, past = context");
}

/* `output = z`, `output = (z, h)`. NULL: what the model returns. */
static bool read_outputs(etch_spec *spec, const etch_symbol *symbol, etch_ast_names *out)
{
    const etch_ast_def *def = etch_run_option(symbol, "output");
    *out = (etch_ast_names){0};
    if (!def)
        return true;
    const etch_ast_expr *value = def->value;
    const bool several = value->kind == ETCH_AST_TUPLE;
    for (uint32_t i = 0; i < (several ? value->items.count : 1); i++) {
        const etch_ast_expr *item = several ? value->items.at[i] : value;
        if (item->kind != ETCH_AST_NAME) {
            etch_error(spec->diags, ETCH_E_TRAIN_OPTION, item->span,
                       "outputs are given by their names: output = z, or output = (z, h)");
            return false;
        }
        ETCH_PUSH(spec->arena, out, item->name);
    }
    return true;
}

etch_expr etch_infer_steps(etch_spec *spec, const etch_symbol *symbol)
{
    etch_sym *sym = spec->sym;
    const etch_ast_def *def = etch_run_option(symbol, "steps");
    const etch_lookup lookup = etch_global_lookup(spec, symbol->home);
    etch_expr steps = def ? etch_number_of(spec, def->value, &lookup) : NULL;
    if (steps && etch_is_constant(steps) &&
        (!etch_is_integer_constant(steps) || etch_constant_compare(sym, steps, etch_int(sym, 1)) < 0)) {
        etch_error(spec->diags, ETCH_E_TRAIN_OPTION, def->value->span,
                   "steps are counted: a number from 1 on, not %s", etch_expr_text(sym, steps));
        return NULL;
    }
    return steps;
}

bool etch_infer_read(etch_spec *spec, const etch_symbol *symbol,
                     etch_dim *(*dim_of)(void *data, etch_ast_name name), void *data, etch_train *train,
                     etch_ast_names *outputs)
{
    const uint32_t errors = etch_error_count(spec->diags);
    const etch_ast_def *parts = etch_run_option(symbol, "accumulate");
    *train = (etch_train){.micro = etch_int(spec->sym, 1), .span = symbol->item->span};
    if (parts)
        etch_run_accumulate(spec, symbol, parts, dim_of, data, train);
    for (uint32_t i = 0; i < symbol->item->defs.count; i++)
        if (etch_run_says_once(spec, symbol, i))
            read_option(spec, symbol, &symbol->item->defs.at[i]);
    return read_outputs(spec, symbol, outputs) && etch_error_count(spec->diags) == errors;
}
