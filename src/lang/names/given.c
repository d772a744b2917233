/* Values that params are given: numbers, texts, lists. */
#include "lang/names/series.h"

#include <string.h>

/* What is said to be of this type. */
static const char *kind_of(etch_param_type type)
{
    return type == ETCH_PARAM_TEXT ? "a text" : type == ETCH_PARAM_LIST ? "a list" : "a number";
}

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

static const etch_series *read_series(etch_spec *spec, etch_param_type type, const etch_ast_expr *expr,
                                      const etch_lookup *lookup)
{
    if (expr->kind == ETCH_AST_BROKEN)
        return NULL;
    if (type == ETCH_PARAM_TEXT && expr->kind == ETCH_AST_STRING)
        return read_text(spec, expr);
    if (type == ETCH_PARAM_LIST && expr->kind == ETCH_AST_LIST)
        return read_list(spec, &expr->items, lookup);
    etch_diag *diag = etch_error(spec->diags, ETCH_E_SERIES, expr->span, "%s is needed here, not '%s'",
                                 kind_of(type), etch_written(spec, expr->span));
    etch_help(diag,
              type == ETCH_PARAM_TEXT ? "one letter for each layer: \"M-M*\"" : "numbers in [ ]: [64, 128]");
    return NULL;
}

etch_expr etch_param_value(etch_spec *spec, const etch_param *param, const etch_ast_expr *expr,
                           const etch_lookup *lookup)
{
    if (!param || !param->length)
        return etch_value_of(spec, expr, lookup);
    const etch_range *range = &spec->ranges[param - spec->params.at];
    const etch_series *series = read_series(spec, range->type, expr, lookup);
    return series ? series->value : NULL;
}
