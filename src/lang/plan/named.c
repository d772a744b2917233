/* The plans that one expression or statement names, `plan = NAME`: an axis of one of them may have a value
 * although another has no such axis. */
#include "lang/plan/lookup.h"

#include <string.h>

static void add_plan(etch_spec *spec, const char *name)
{
    for (uint32_t i = 0; i < spec->named_plans.count; i++)
        if (spec->named_plans.at[i] == name)
            return;
    ETCH_PUSH(spec->arena, &spec->named_plans, name);
}

/* Trees are no higher than ETCH_AST_DEPTH. */
static void find_plans(etch_spec *spec, const etch_ast_expr *expr)
{
    if (expr->kind == ETCH_AST_BINARY || expr->kind == ETCH_AST_COMPARE || expr->kind == ETCH_AST_NEGATE) {
        find_plans(spec, expr->left);
        if (expr->right)
            find_plans(spec, expr->right);
    }
    for (uint32_t i = 0; expr->kind == ETCH_AST_CALL && i < expr->args.count; i++) {
        const etch_ast_arg *arg = &expr->args.at[i];
        if (arg->name.text && strcmp(arg->name.text, "plan") == 0 && arg->value->kind == ETCH_AST_NAME)
            add_plan(spec, arg->value->name.text);
        else
            find_plans(spec, arg->value);
    }
}

void etch_plans_name(etch_spec *spec, const etch_ast_expr *expr)
{
    memset(&spec->named_plans, 0, sizeof spec->named_plans);
    if (expr)
        find_plans(spec, expr);
}

const char *etch_spec_named_plans(etch_spec *spec)
{
    etch_buf text = {.arena = spec->arena};
    for (uint32_t i = 0; i < spec->named_plans.count; i++)
        etch_buf_printf(&text, "%s%s", i ? ", " : "", spec->named_plans.at[i]);
    return spec->named_plans.count > 1 ? text.text : NULL;
}

bool etch_named_plans_mention(const etch_spec *spec, const char *axis)
{
    for (uint32_t i = 0; spec->named_plans.count > 1 && i < spec->named_plans.count; i++) {
        const etch_symbol *symbol = etch_namespace_find(spec->main, spec->named_plans.at[i]);
        if (symbol && symbol->kind == ETCH_SYMBOL_PLAN && etch_plan_mentions(symbol, axis))
            return true;
    }
    return false;
}
