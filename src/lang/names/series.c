/* Texts and lists as values of params. */
#include "lang/names/series.h"

#include <string.h>

const char *etch_series_kind(etch_param_type type)
{
    return type == ETCH_PARAM_TEXT ? "a text" : type == ETCH_PARAM_LIST ? "a list" : "a number";
}

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

/* ---- what is written ----------------------------------------------------------------------------------- */

/* The one of this name, made when it is new. */
static const etch_series *known(etch_spec *spec, const char *name, const etch_series *made)
{
    const etch_expr value = etch_var(spec->sym, name);
    const etch_series *series = etch_series_of(spec, value);
    if (series)
        return series;
    etch_series *added = ETCH_NEW(spec->arena, etch_series);
    *added = *made;
    added->value = value;
    ETCH_PUSH(spec->arena, &spec->series, added);
    return added;
}

static const etch_series *read_text(etch_spec *spec, const etch_ast_expr *expr)
{
    const char *letters = expr->name.text;
    const size_t length = strlen(letters);
    bool plain = length > 0 && length <= ETCH_SERIES_MOST;
    for (size_t i = 0; i < length && plain; i++)
        plain = letters[i] > ' ' && letters[i] <= '~';
    if (!plain) {
        etch_diag *diag = etch_error(spec->diags, ETCH_E_SERIES, expr->span,
                                     "a text of a param has 1 to %d letters or signs of ASCII, and no blanks",
                                     ETCH_SERIES_MOST);
        etch_help(diag, "one letter for each layer: \"M-M*\"");
        return NULL;
    }
    return known(spec, etch_text(spec->arena, "\"%s\"", letters),
                 &(etch_series){.letters = letters, .count = (uint32_t)length});
}

static const etch_series *read_list(etch_spec *spec, const etch_ast_exprs *items, const etch_lookup *lookup)
{
    etch_buf name = {.arena = spec->arena};
    etch_expr *numbers = ETCH_NEW_ARRAY(spec->arena, items->count, etch_expr);
    for (uint32_t i = 0; i < items->count; i++) {
        numbers[i] = etch_number_of(spec, items->at[i], lookup);
        if (!numbers[i])
            return NULL;
        if (!etch_is_constant(numbers[i])) {
            etch_error(spec->diags, ETCH_E_SERIES, items->at[i]->span,
                       "a list of a param is of numbers, not '%s'", etch_written(spec, items->at[i]->span));
            return NULL;
        }
        etch_buf_printf(&name, "%s%s", i ? ", " : "[", etch_expr_text(spec->sym, numbers[i]));
    }
    etch_buf_puts(&name, "]");
    return known(spec, name.text, &(etch_series){.numbers = numbers, .count = items->count});
}

const etch_series *etch_series_read(etch_spec *spec, etch_param_type type, const etch_ast_expr *expr,
                                    const etch_lookup *lookup)
{
    if (expr->kind == ETCH_AST_BROKEN)
        return NULL;
    if (type == ETCH_PARAM_TEXT && expr->kind == ETCH_AST_STRING)
        return read_text(spec, expr);
    if (type == ETCH_PARAM_LIST && expr->kind == ETCH_AST_LIST)
        return read_list(spec, &expr->items, lookup);
    etch_diag *diag = etch_error(spec->diags, ETCH_E_SERIES, expr->span, "%s is needed here, not '%s'",
                                 etch_series_kind(type), etch_written(spec, expr->span));
    etch_help(diag,
              type == ETCH_PARAM_TEXT ? "one letter for each layer: \"M-M*\"" : "numbers in [ ]: [64, 128]");
    return NULL;
}

/* ---- what reads it ------------------------------------------------------------------------------------- */

bool etch_is_at(const etch_ast_expr *expr)
{
    return expr->kind == ETCH_AST_CALL && strcmp(expr->name.text, "at") == 0;
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
