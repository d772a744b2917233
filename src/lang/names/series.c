/* Texts and lists as values of params. */
#include "lang/names/series.h"

#include <string.h>

const etch_series *etch_series_of(const etch_spec *spec, etch_expr value)
{
    for (uint32_t i = 0; i < spec->series.count; i++)
        if (spec->series.at[i]->value == value)
            return spec->series.at[i];
    return NULL;
}

const etch_param *etch_series_param(const etch_spec *spec, etch_expr var)
{
    for (uint32_t i = 0; i < spec->params.count; i++)
        if (spec->params.at[i].length && spec->params.at[i].var == var)
            return &spec->params.at[i];
    return NULL;
}

void etch_series_declare(etch_spec *spec, etch_param *param)
{
    param->length = etch_var(spec->sym, etch_text(spec->arena, "len(%s)", param->name));
    etch_var_at_least(spec->sym, param->length, 1);
}

/* ---- what reads it ------------------------------------------------------------------------------------- */

static const char at[] = "at", len[] = "len";

bool etch_is_at(const etch_ast_expr *expr)
{
    return expr->kind == ETCH_AST_CALL && strcmp(expr->name.text, at) == 0;
}

bool etch_is_len(const etch_ast_expr *expr)
{
    return expr->kind == ETCH_AST_CALL && strcmp(expr->name.text, len) == 0;
}

bool etch_reads_series(const char *function)
{
    return strcmp(function, at) == 0 || strcmp(function, len) == 0;
}

const etch_param *etch_series_named(etch_spec *spec, const etch_ast_expr *call, uint32_t arguments,
                                    const etch_lookup *lookup)
{
    bool fine = call->args.count == arguments;
    for (uint32_t i = 0; i < call->args.count && fine; i++)
        fine = !call->args.at[i].name.text;
    if (!fine) {
        etch_error(spec->diags, ETCH_E_FUNCTION_ARGUMENTS, call->span,
                   arguments == 2
                       ? "%s takes two arguments: a param that is a text or a list, and which of it"
                       : "%s takes one argument: a param that is a text or a list",
                   call->name.text);
        return NULL;
    }
    const etch_ast_expr *name = call->args.at[0].value;
    const etch_expr var = name->kind == ETCH_AST_NAME ? lookup->name(lookup->data, name) : NULL;
    const etch_param *param = var ? etch_series_param(spec, var) : NULL;
    if (param || (name->kind == ETCH_AST_NAME && !var))
        return param;
    etch_diag *diag = etch_error(spec->diags, ETCH_E_SERIES, name->span, "'%s' is neither a text nor a list",
                                 etch_written(spec, name->span));
    etch_help(diag, "declare it as one: `param %s text`, or `param %s list`", etch_written(spec, name->span),
              etch_written(spec, name->span));
    return NULL;
}
