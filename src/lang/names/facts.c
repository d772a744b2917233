/* What a spec knows of its numbers: params, their bounds and defaults, assumptions. */
#include "lang/names/series.h"

#include <string.h>

/* ---- params -------------------------------------------------------------------------------------------- */

/* What the spec itself calls a symbol, without a dot if it can; or NULL. */
static const char *name_in_spec(const etch_spec *spec, const etch_symbol *symbol)
{
    const char *found = NULL;
    if (etch_namespace_find(spec->main, symbol->name) == symbol)
        return symbol->name;
    for (uint32_t i = 0; i < spec->main->symbols.count; i++) {
        const char *name = spec->main->names.at[i];
        if (spec->main->symbols.at[i] == symbol && (!found || !strchr(name, '.')))
            found = name;
    }
    return found;
}

/* Does another param have this name already, or a right to it because the spec sees it so? */
static bool is_taken(const etch_spec *spec, const etch_symbol *symbol, const char *name)
{
    const etch_symbol *visible = etch_namespace_find(spec->main, name);
    if (visible && visible != symbol && visible->kind == ETCH_SYMBOL_PARAM)
        return true;
    for (const etch_param *p = spec->params.at; p < symbol->param; p++)
        if (p->name == name)
            return true;
    return false;
}

/* "base" of "models/base.etch". */
static const char *stem(etch_spec *spec, const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *start = slash ? slash + 1 : path;
    char *text = etch_copy_text(spec->arena, start, strcspn(start, "."));
    for (char *c = text; *c; c++) {
        bool letter = (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') || *c == '_';
        if (!letter && (c == text || *c < '0' || *c > '9'))
            *c = '_';
    }
    return text[0] ? text : "_";
}

/* A param that the spec does not see keeps its name unless another one has it. */
static const char *unique_name(etch_spec *spec, const etch_symbol *symbol)
{
    const char *visible = name_in_spec(spec, symbol);
    const char *name = visible ? visible : symbol->name;
    if (visible || !is_taken(spec, symbol, name))
        return name;
    const char *file = stem(spec, symbol->home->ast->source->path);
    for (uint32_t i = 1;; i++) {
        const char *number = i > 1 ? etch_text(spec->arena, "%u", i) : "";
        const char *text = etch_text(spec->arena, "%s%s.%s", file, number, symbol->name);
        name = etch_name_of(spec->names, text);
        if (!is_taken(spec, symbol, name))
            return name;
    }
}

static void declare_type(etch_spec *spec, const etch_symbol *symbol, etch_range *range)
{
    const etch_ast_name *type = &symbol->def->type;
    if (!type->text)
        return;
    static const char *const types[] = {
        [ETCH_PARAM_REAL] = "real", [ETCH_PARAM_TEXT] = "text", [ETCH_PARAM_LIST] = "list"};
    for (etch_param_type i = ETCH_PARAM_REAL; i <= ETCH_PARAM_LIST; i++)
        if (strcmp(type->text, types[i]) == 0)
            range->type = i;
    if (range->type == ETCH_PARAM_REAL)
        etch_var_real(spec->sym, symbol->param->var);
    else if (range->type != ETCH_PARAM_INTEGER)
        etch_series_declare(spec, &spec->params.at[symbol->param - spec->params.at]);
    if (range->type != ETCH_PARAM_INTEGER)
        return;
    etch_diag *diag =
        etch_error(spec->diags, ETCH_E_PARAM_TYPE, type->span, "params have no type '%s'", type->text);
    etch_help(diag, "a param is an integer, or `param %s real`: any number above 0", symbol->name);
    etch_help(diag, "several in one are a `text` or a `list`");
}

/* A number for a default that is below 1 says that the param may be as small: `param past = 0`. */
static const etch_ast_expr *implied_bound(const etch_symbol *symbol, const etch_range *range)
{
    const etch_ast_expr *value = symbol->def->value;
    bool number = value && (value->kind == ETCH_AST_INTEGER || value->kind == ETCH_AST_NEGATE);
    if (!number || range->type != ETCH_PARAM_INTEGER)
        return NULL;
    if (value->kind == ETCH_AST_NEGATE)
        return value->left->kind == ETCH_AST_INTEGER ? value : NULL;
    return strspn(value->name.text, "0") == strlen(value->name.text) ? value : NULL;
}

static void declare_bound(etch_spec *spec, const etch_symbol *symbol, etch_range *range)
{
    const etch_ast_expr *least = symbol->def->least;
    if (!least)
        least = implied_bound(symbol, range);
    if (!least)
        return;
    const etch_lookup lookup = etch_global_lookup(spec, symbol->home);
    etch_expr value = etch_value_of(spec, least, &lookup);
    if (!value)
        return;
    if (etch_to_i64(value, &range->least)) {
        etch_var_at_least(spec->sym, symbol->param->var, range->least);
        return;
    }
    etch_diag *diag =
        etch_error(spec->diags, ETCH_E_PARAM_BOUND, least->span,
                   "the bound of a param is a whole number, not '%s'", etch_written(spec, least->span));
    etch_help(diag, "what depends on other params is an assumption: assume %s >= %s", symbol->name,
              etch_written(spec, least->span));
}

void etch_params_declare(etch_spec *spec)
{
    for (uint32_t i = 0; i < spec->symbols.count; i++) {
        const etch_symbol *symbol = spec->symbols.at[i];
        if (symbol->kind != ETCH_SYMBOL_PARAM)
            continue;
        etch_param *param = &spec->params.at[symbol->param - spec->params.at];
        param->name = unique_name(spec, symbol);
        param->var = etch_var(spec->sym, param->name);
    }
    for (uint32_t i = 0; i < spec->symbols.count; i++) {
        const etch_symbol *symbol = spec->symbols.at[i];
        if (symbol->kind != ETCH_SYMBOL_PARAM)
            continue;
        etch_range *range = &spec->ranges[symbol->param - spec->params.at];
        range->least = 1;
        declare_type(spec, symbol, range);
        declare_bound(spec, symbol, range);
    }
}

void etch_params_evaluate(etch_spec *spec)
{
    /* Sizes that facts were stated with do not know the facts after them. */
    for (uint32_t i = 0; i < spec->symbols.count; i++)
        if (spec->dim_sizes[i]) /* what failed was reported and stays so */
            spec->dim_states[i] = 0;
    for (uint32_t i = 0; i < spec->symbols.count; i++) {
        const etch_symbol *symbol = spec->symbols.at[i];
        if (symbol->kind == ETCH_SYMBOL_DIM)
            etch_dim_size(spec, symbol);
        if (symbol->kind != ETCH_SYMBOL_PARAM || !symbol->def->value)
            continue;
        const etch_lookup lookup = etch_global_lookup(spec, symbol->home);
        etch_param *param = &spec->params.at[symbol->param - spec->params.at];
        param->value = etch_param_value(spec, param, symbol->def->value, &lookup);
    }
}

/* ---- assumptions --------------------------------------------------------------------------------------- */

static etch_status assume(etch_spec *spec, const etch_claim *claim, int64_t origin, int64_t *other)
{
    etch_sym *sym = spec->sym;
    etch_expr low = claim->left, high = claim->right;
    switch (claim->relation) {
    case ETCH_REL_EQ:
        return etch_assume_equal(sym, low, high, origin, other);
    case ETCH_REL_DIVIDES:
        return etch_assume_divides(sym, low, high, origin, other);
    case ETCH_REL_GE:
    case ETCH_REL_GT:
        low = claim->right;
        high = claim->left;
        break;
    case ETCH_REL_LE:
    case ETCH_REL_LT:
        break;
    case ETCH_REL_NE:
    case ETCH_REL_TRUE: /* right is 0 */
        return etch_assume_different(sym, low, high, origin, other);
    }
    bool strict = claim->relation == ETCH_REL_LT || claim->relation == ETCH_REL_GT;
    if (strict && etch_is_integer(sym, low, NULL) == ETCH_YES && etch_is_integer(sym, high, NULL) == ETCH_YES)
        low = etch_add(sym, low, etch_int(sym, 1));
    return etch_assume_at_least(sym, high, low, origin, other);
}

static void report_contradiction(etch_spec *spec, const etch_claim *claim, int64_t other)
{
    etch_diag *diag = etch_error(spec->diags, ETCH_E_CONTRADICTION, claim->span,
                                 "'%s' contradicts what is known", claim->text);
    if (other >= 0 && (uint64_t)other < spec->assumptions.count) {
        const etch_claim *known = &spec->assumptions.at[other];
        etch_note(diag, known->span, "'%s' is assumed here", known->text);
        return;
    }
    for (uint32_t i = 0; i < spec->params.count; i++) {
        const etch_expr sides[] = {claim->left, claim->right};
        bool used = false;
        for (uint32_t side = 0; side < 2; side++) {
            const etch_expr *vars = NULL;
            const uint32_t count = etch_vars_of(spec->sym, sides[side], &vars);
            for (uint32_t k = 0; k < count; k++)
                used = used || vars[k] == spec->params.at[i].var;
        }
        if (used)
            etch_note(
                diag, spec->params.at[i].span, "%s is declared here: %s", spec->params.at[i].name,
                spec->ranges[i].type == ETCH_PARAM_REAL
                    ? "a number above 0"
                    : etch_text(spec->arena, "an integer from %lld on", (long long)spec->ranges[i].least));
    }
}

static void collect_fact(etch_spec *spec, const etch_namespace *space, const etch_ast_expr *test)
{
    const etch_lookup lookup = etch_global_lookup(spec, space);
    const etch_claim claim = etch_claim_of(spec, test, &lookup);
    if (!claim.left)
        return;
    int64_t other = -1;
    if (assume(spec, &claim, (int64_t)spec->assumptions.count, &other) == ETCH_EINPUT) {
        report_contradiction(spec, &claim, other);
        return;
    }
    ETCH_PUSH(spec->arena, &spec->assumptions, claim);
}

void etch_facts_collect(etch_spec *spec)
{
    for (uint32_t i = 0; i < spec->spaces.count; i++) {
        const etch_namespace *space = spec->spaces.at[i];
        for (uint32_t k = 0; k < space->ast->items.count; k++) {
            const etch_ast_item *item = &space->ast->items.at[k];
            for (uint32_t t = 0; item->kind == ETCH_AST_ASSUME && t < item->tests.count; t++)
                collect_fact(spec, space, item->tests.at[t]);
        }
    }
}
