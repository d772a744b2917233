/* Parameters of modules: dims, numbers, functions, modules and tensors that a call gives by name. */
#include <string.h>

#include "lang/model/model_int.h"

void etch_help_arguments(etch_spec *spec, etch_diag *diag, const char *called, const etch_name_list *known)
{
    etch_buf list = {.arena = spec->arena};
    for (uint32_t i = 0; i < known->count; i++)
        etch_buf_printf(&list, "%s%s", i ? ", " : "", known->at[i]);
    if (known->count > 0)
        etch_help(diag, "%s takes %s", called, list.text);
    else
        etch_help(diag, "%s takes no arguments with a name", called);
}

static const etch_ast_arg *find_argument(const etch_ast_expr *call, const char *name)
{
    for (uint32_t i = 0; i < call->args.count; i++)
        if (call->args.at[i].name.text && strcmp(call->args.at[i].name.text, name) == 0)
            return &call->args.at[i];
    return NULL;
}

uint32_t etch_positional_count(const etch_ast_expr *call)
{
    uint32_t count = 0;
    while (count < call->args.count && !call->args.at[count].name.text)
        count++;
    return count;
}

/* What an argument that is a name stands for, seen from `env`; ETCH_BOUND_NUMBER when it is to be
 * evaluated. */
static etch_bound_name bound_of_name(etch_env *env, etch_ast_name name)
{
    etch_spec *spec = env->builder->spec;
    const etch_bound_name *bound = etch_env_find(env, name.text);
    if (bound)
        return *bound;
    if (strcmp(name.text, "none") == 0)
        return (etch_bound_name){.kind = ETCH_BOUND_NOTHING};
    const etch_symbol *symbol = etch_namespace_find(env->home, name.text);
    if (symbol && symbol->kind == ETCH_SYMBOL_DIM)
        return (etch_bound_name){.kind = ETCH_BOUND_DIM, .dim = etch_builder_dim(env->builder, symbol)};
    if (symbol && symbol->kind == ETCH_SYMBOL_MODULE)
        return (etch_bound_name){.kind = ETCH_BOUND_MODULE, .module = symbol};
    if (symbol)
        return (etch_bound_name){.kind = ETCH_BOUND_NUMBER};
    const etch_row *row = etch_row_called(env->builder->graph->table, name.text);
    if (row)
        return (etch_bound_name){.kind = ETCH_BOUND_FUNCTION, .row = row};
    if (name.text[strlen(name.text) - 1] == '\'')
        return (etch_bound_name){.kind = ETCH_BOUND_DIM, .dim = etch_env_dim(env, name)};
    (void)spec;
    return (etch_bound_name){.kind = ETCH_BOUND_NUMBER};
}

etch_bound_name etch_parameter_value(etch_env *from, const etch_ast_expr *expr)
{
    etch_spec *spec = from->builder->spec;
    if (expr->kind == ETCH_AST_TRUTH)
        return (etch_bound_name){.kind = ETCH_BOUND_NUMBER, .number = etch_int(spec->sym, expr->truth)};
    if (expr->kind == ETCH_AST_NAME) {
        etch_bound_name bound = bound_of_name(from, expr->name);
        if (bound.kind != ETCH_BOUND_NUMBER || bound.number)
            return bound;
    }
    etch_lookup lookup = etch_env_lookup(from);
    return (etch_bound_name){.kind = ETCH_BOUND_NUMBER, .number = etch_value_of(spec, expr, &lookup)};
}

/* Is it known what the parameter is? Else that has been reported. */
static bool has_value(const etch_bound_name *bound)
{
    return bound->kind == ETCH_BOUND_DIM ? bound->dim != NULL
                                         : bound->kind != ETCH_BOUND_NUMBER || bound->number != NULL;
}

bool etch_env_default(etch_env *callee, const etch_ast_def *def)
{
    etch_bound_name bound = etch_parameter_value(callee, def->value);
    if (!has_value(&bound))
        return false;
    bound.name = def->name.text;
    etch_env_declare(callee, bound, def->name.span);
    return true;
}

static bool are_known(etch_spec *spec, const etch_ast_item *item, const etch_ast_expr *call)
{
    for (uint32_t i = 0; i < call->args.count; i++) {
        etch_ast_name name = call->args.at[i].name;
        bool known = !name.text;
        for (uint32_t k = 0; k < item->defs.count && !known; k++)
            known = strcmp(item->defs.at[k].name.text, name.text) == 0;
        if (known)
            continue;
        etch_diag *diag = etch_error(spec->diags, ETCH_E_CALL_ARGUMENTS, name.span, "%s has no parameter %s",
                                     item->name.text, name.text);
        etch_note(diag, item->name.span, "%s is declared here", item->name.text);
        etch_name_list params = {0};
        for (uint32_t k = 0; k < item->defs.count; k++)
            ETCH_PUSH(spec->arena, &params, item->defs.at[k].name.text);
        etch_suggest_name(diag, name.text, params.at, params.count);
        etch_help_arguments(spec, diag, item->name.text, &params);
        return false;
    }
    return true;
}

bool etch_parameters_given(etch_env *caller, const etch_ast_item *item, const etch_ast_expr *call,
                           etch_bound_names *out)
{
    etch_spec *spec = caller->builder->spec;
    for (uint32_t i = 0; i < item->defs.count; i++) {
        const etch_ast_def *def = &item->defs.at[i];
        const etch_ast_arg *given = find_argument(call, def->name.text);
        if (!given)
            continue;
        etch_bound_name bound = etch_parameter_value(caller, given->value);
        if (!has_value(&bound))
            return false;
        for (uint32_t k = 0; k < out->count; k++)
            if (out->at[k].name == def->name.text) {
                etch_diag *diag = etch_error(spec->diags, ETCH_E_CALL_ARGUMENTS, given->name.span,
                                             "the instance has its %s already", def->name.text);
                etch_note(diag, out->at[k].span, "given here");
                return false;
            }
        bound.name = def->name.text;
        bound.span = given->name.span;
        ETCH_PUSH(spec->arena, out, bound);
    }
    return are_known(spec, item, call);
}

bool etch_parameters_bind(etch_env *callee, const etch_ast_item *item, const etch_ast_expr *call,
                          const etch_bound_names *given)
{
    etch_spec *spec = callee->builder->spec;
    for (uint32_t i = 0; i < item->defs.count; i++) {
        const etch_ast_def *def = &item->defs.at[i];
        const etch_bound_name *value = NULL;
        for (uint32_t k = 0; k < given->count && !value; k++)
            value = given->at[k].name == def->name.text ? &given->at[k] : NULL;
        if (value) {
            etch_env_declare(callee, *value, def->name.span);
            continue;
        }
        if (!def->value) {
            etch_diag *diag = etch_error(spec->diags, ETCH_E_CALL_ARGUMENTS, call->span, "%s needs %s",
                                         item->name.text, def->name.text);
            etch_note(diag, def->name.span, "declared here");
            etch_help(diag, "write %s(..., %s = ...)", call->name.text, def->name.text);
            return false;
        }
        if (!etch_env_default(callee, def))
            return false;
    }
    return true;
}
