/* `recompute = ...`: what it says, in train blocks and plans alike. */
#include "lang/names/symbols.h"

#include <string.h>

static void report(etch_spec *spec, etch_span span)
{
    etch_diag *diag =
        etch_error(spec->diags, ETCH_E_TRAIN_OPTION, span,
                   "recompute is a loop, a module, a tag, a list of them, full, needed or none");
    etch_help(diag,
              "write recompute = layer, (attention.core, mlp.h), layer(first = 8), full, needed(layer)");
}

static bool is_word(const etch_ast_expr *value, const char *word)
{
    return value->kind == ETCH_AST_NAME && strcmp(value->name.text, word) == 0;
}

/* Reads `fit(76*10^9)`. False after an error. */
static bool read_fit(etch_spec *spec, const etch_ast_expr *call, const etch_lookup *lookup,
                     etch_recompute *out)
{
    if (call->args.count != 1 || call->args.at[0].name.text || out->fit) {
        etch_diag *diag =
            etch_error(spec->diags, ETCH_E_TRAIN_OPTION, call->span,
                       out->fit ? "fit stands once" : "fit says how many bytes a rank may hold");
        etch_help(diag, "write recompute = fit(76*10^9), or (core, fit(76*10^9))");
        return false;
    }
    out->fit = etch_number_of(spec, call->args.at[0].value, lookup);
    out->fit_span = call->span;
    return out->fit != NULL;
}

/* Adds `layer(first = 8)`, `full(first = 8)` or `fit(76*10^9)`. False after an error. */
static bool add_first(etch_spec *spec, const etch_ast_expr *call, const etch_lookup *lookup,
                      etch_recompute *out)
{
    if (strcmp(call->name.text, "fit") == 0)
        return read_fit(spec, call, lookup, out);
    const etch_ast_arg *arg = call->args.count == 1 ? &call->args.at[0] : NULL;
    if (!arg || !arg->name.text || strcmp(arg->name.text, "first") != 0 ||
        strcmp(call->name.text, "needed") == 0 || strcmp(call->name.text, "none") == 0) {
        report(spec, arg && arg->name.text ? arg->name.span : call->span);
        return false;
    }
    const etch_expr first = etch_number_of(spec, arg->value, lookup);
    const char *selector = strcmp(call->name.text, "full") == 0 ? NULL : call->name.text;
    if (first)
        ETCH_PUSH(spec->arena, &out->selectors, (etch_recomputed){selector, call->span, first, 0});
    return first != NULL;
}

/* Adds a selector, or those of a list. False after an error. */
static bool add_selectors(etch_spec *spec, const etch_ast_expr *value, const etch_lookup *lookup,
                          etch_recompute *out)
{
    if (value->kind == ETCH_AST_TUPLE) {
        bool fine = true;
        for (uint32_t i = 0; i < value->items.count; i++)
            fine = add_selectors(spec, value->items.at[i], lookup, out) && fine;
        return fine;
    }
    if (value->kind == ETCH_AST_CALL)
        return add_first(spec, value, lookup, out);
    if (value->kind != ETCH_AST_NAME || is_word(value, "none") || is_word(value, "full") ||
        is_word(value, "needed")) {
        if (value->kind != ETCH_AST_BROKEN)
            report(spec, value->span);
        return false;
    }
    ETCH_PUSH(spec->arena, &out->selectors,
              (etch_recomputed){.selector = value->name.text, .span = value->span});
    return true;
}

bool etch_recompute_of(etch_spec *spec, const etch_ast_def *def, const etch_lookup *lookup,
                       etch_recompute *out)
{
    const etch_ast_expr *value = def->value;
    *out = (etch_recompute){.span = def->span};
    if (is_word(value, "none"))
        return true;
    out->all = is_word(value, "full") || is_word(value, "needed");
    out->needed = is_word(value, "needed");
    if (out->all)
        return true;
    if (value->kind != ETCH_AST_CALL || strcmp(value->name.text, "needed") != 0)
        return add_selectors(spec, value, lookup, out);
    out->needed = true;
    bool fine = value->args.count > 0;
    if (!fine)
        report(spec, value->span);
    for (uint32_t i = 0; i < value->args.count; i++) {
        if (value->args.at[i].name.text)
            report(spec, value->args.at[i].name.span);
        fine =
            !value->args.at[i].name.text && add_selectors(spec, value->args.at[i].value, lookup, out) && fine;
    }
    return fine;
}
