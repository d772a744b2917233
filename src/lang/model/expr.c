/* Tensor expressions: sums of products over named dims. */
#include <string.h>

#include "lang/model/model_int.h"

/* A value inside an expression: a tensor, or a number that scales or shifts one. */
typedef struct operand {
    etch_tensor *tensor;
    etch_expr number;
    bool failed;
    /* made by this expression */
    bool fresh;
} operand;

typedef ETCH_VEC(const etch_ast_expr *) expr_list;

static operand evaluate(etch_env *env, const etch_ast_expr *expr, const etch_dims *want);

static operand failure(void)
{
    return (operand){.failed = true};
}

static operand of_tensor(etch_tensor *tensor, bool fresh)
{
    return (operand){.tensor = tensor, .failed = !tensor, .fresh = fresh};
}

static operand of_number(etch_expr number)
{
    return (operand){.number = number, .failed = !number};
}

/* ---- numbers beside tensors ------------------------------------------------------------------------- */

static operand scaled(etch_env *env, operand x, etch_expr number, etch_span span)
{
    etch_sym *sym = env->builder->spec->sym;
    if (x.failed || !number)
        return failure();
    if (!x.tensor)
        return of_number(etch_mul(sym, x.number, number));
    if (number == etch_int(sym, 1))
        return x;
    return of_tensor(etch_graph_scale(env->builder->graph, x.tensor, number, span), true);
}

/* ---- sums ------------------------------------------------------------------------------------------- */

typedef ETCH_VEC(etch_tensor *) tensor_list;

/* What is added up, and what is taken away from that. */
typedef struct terms {
    tensor_list added, taken;
    etch_expr number;
    bool failed;
} terms;

/* Goes as deep as the expression does. */
static void add_terms(etch_env *env, const etch_ast_expr *expr, bool taken, const etch_dims *want, terms *t)
{
    etch_spec *spec = env->builder->spec;
    if (expr->kind == ETCH_AST_BINARY && (expr->op == '+' || expr->op == '-')) {
        add_terms(env, expr->left, taken, want, t);
        add_terms(env, expr->right, taken != (expr->op == '-'), want, t);
        return;
    }
    if (expr->kind == ETCH_AST_NEGATE) {
        add_terms(env, expr->left, !taken, want, t);
        return;
    }
    const operand value = evaluate(env, expr, want);
    t->failed = t->failed || value.failed;
    if (value.failed)
        return;
    if (!value.tensor)
        t->number = taken ? etch_sub(spec->sym, t->number, value.number)
                          : etch_add(spec->sym, t->number, value.number);
    else if (taken)
        ETCH_PUSH(spec->arena, &t->taken, value.tensor);
    else
        ETCH_PUSH(spec->arena, &t->added, value.tensor);
}

/* Where no result is declared, a sum broadcasts to one of its terms: two that each have a dim of their own
 * are a slip. */
static bool is_broadcast(etch_env *env, const tensor_list *all, etch_span span)
{
    const etch_tensor *most = all->at[0];
    for (uint32_t i = 0; i < all->count; i++)
        most = all->at[i]->rank > most->rank ? all->at[i] : most;
    for (uint32_t i = 0; i < all->count; i++) {
        const etch_tensor *a = all->at[i]->id < most->id ? all->at[i] : most,
                          *b = a == most ? all->at[i] : most;
        if (etch_covers(most, all->at[i]))
            continue;
        etch_spec *spec = env->builder->spec;
        etch_diag *diag = etch_error(spec->diags, ETCH_E_SHAPE_MISMATCH, span,
                                     "%s%s and %s%s are not added: each has a dim that the other lacks",
                                     a->name, etch_dims_text(spec->arena, etch_dims_of(a)), b->name,
                                     etch_dims_text(spec->arena, etch_dims_of(b)));
        etch_help(diag, "declare the dims of the result if both are to be broadcast: y[..] = ...");
        return false;
    }
    return true;
}

/* A sum is of all its terms, in whatever order they are written: what is added, less what is taken away. */
static operand sum_of(etch_env *env, const etch_ast_expr *expr, const etch_dims *want)
{
    etch_sym *sym = env->builder->spec->sym;
    etch_graph *graph = env->builder->graph;
    const etch_span span = expr->op_span;
    terms t = {.number = etch_int(sym, 0)};
    add_terms(env, expr, false, want, &t);
    if (t.failed)
        return failure();
    const uint32_t added = t.added.count;
    tensor_list all = t.added;
    for (uint32_t i = 0; i < t.taken.count; i++)
        ETCH_PUSH(env->builder->spec->arena, &all, t.taken.at[i]);
    if (all.count == 0)
        return of_number(t.number);
    if (!want && !is_broadcast(env, &all, span))
        return failure();
    etch_tensor *sum = etch_graph_sum(graph, all.at, all.count, added ? added : all.count, span);
    if (sum && !added)
        sum = etch_graph_scale(graph, sum, etch_int(sym, -1), span);
    if (sum && !etch_is_zero(t.number))
        sum = etch_graph_shift(graph, sum, t.number, span);
    return of_tensor(sum, true);
}

/* ---- products --------------------------------------------------------------------------------------- */

static void flatten(etch_env *env, const etch_ast_expr *expr, expr_list *out)
{
    if (expr->kind == ETCH_AST_BINARY && expr->op == '*') {
        flatten(env, expr->left, out);
        ETCH_PUSH(env->builder->spec->arena, out, expr->right);
    } else {
        ETCH_PUSH(env->builder->spec->arena, out, expr);
    }
}

/* Dims to keep after a factor: those of the result and those that later factors have. A list also where they
 * are none: `l[] = a * b` sums all. */
static etch_dims kept_dims(etch_env *env, const etch_dims *want, const operand *later, uint32_t count)
{
    etch_arena *arena = env->builder->spec->arena;
    ETCH_VEC(etch_dim *) list = {0};
    for (uint32_t i = 0; i < want->count; i++)
        ETCH_PUSH(arena, &list, want->at[i]);
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t d = 0; later[i].tensor && d < later[i].tensor->rank; d++)
            ETCH_PUSH(arena, &list, later[i].tensor->dims[d]);
    return (etch_dims){
        .at = list.at ? list.at : ETCH_NEW(arena, etch_dim *), .count = list.count, .known = true};
}

/* n factors from left to right; a dim is summed at the last factor that has it. */
static operand product(etch_env *env, const etch_ast_expr *expr, const etch_dims *want)
{
    etch_spec *spec = env->builder->spec;
    expr_list parts = {0};
    flatten(env, expr, &parts);
    operand *factors = ETCH_NEW_ARRAY(spec->arena, parts.count, operand);
    etch_expr number = etch_int(spec->sym, 1);
    operand result = {0};
    uint32_t count = 0;
    for (uint32_t i = 0; i < parts.count; i++) {
        operand factor = evaluate(env, parts.at[i], NULL);
        if (factor.failed)
            result.failed = true;
        else if (factor.tensor)
            factors[count++] = factor;
        else
            number = etch_mul(spec->sym, number, factor.number);
    }
    if (result.failed)
        return result;
    if (count == 0)
        return of_number(number);
    result = factors[0];
    for (uint32_t i = 1; i < count && !result.failed; i++) {
        etch_dims keep = want ? kept_dims(env, want, factors + i + 1, count - i - 1) : (etch_dims){0};
        result = of_tensor(etch_graph_product(env->builder->graph, result.tensor, factors[i].tensor,
                                              want ? ETCH_DIMS(keep) : (etch_dim_view){0}, expr->span),
                           true);
    }
    return scaled(env, result, number, expr->span);
}

/* Where a result is declared, dims that it lacks are summed after the division. */
static operand divided(etch_env *env, const etch_ast_expr *expr, operand b, const etch_dims *want)
{
    etch_graph *graph = env->builder->graph;
    etch_dims keep = want ? kept_dims(env, want, &b, 1) : (etch_dims){0};
    operand a = evaluate(env, expr->left, want ? &keep : NULL);
    if (a.failed)
        return a;
    if (!a.tensor) {
        etch_tensor *inverse = etch_graph_reciprocal(graph, b.tensor, expr->op_span);
        return scaled(env, of_tensor(inverse, true), a.number, expr->span);
    }
    keep = want ? kept_dims(env, want, NULL, 0) : (etch_dims){0};
    return of_tensor(etch_graph_quotient(graph, a.tensor, b.tensor,
                                         want ? ETCH_DIMS(keep) : (etch_dim_view){0}, expr->span),
                     true);
}

static operand quotient(etch_env *env, const etch_ast_expr *expr, const etch_dims *want)
{
    etch_spec *spec = env->builder->spec;
    operand b = evaluate(env, expr->right, NULL);
    if (!b.failed && b.tensor)
        return divided(env, expr, b, want);
    operand a = evaluate(env, expr->left, want);
    if (a.failed || b.failed)
        return failure();
    etch_expr inverse = etch_div(spec->sym, etch_int(spec->sym, 1), b.number);
    if (!inverse)
        etch_error(spec->diags, ETCH_E_DIVISION_BY_ZERO, expr->span, "division by zero");
    return scaled(env, a, inverse, expr->span);
}

/* ---- the other forms -------------------------------------------------------------------------------- */

static operand named(etch_env *env, const etch_ast_expr *expr)
{
    etch_spec *spec = env->builder->spec;
    const etch_bound_name *bound = etch_env_find(env, expr->name.text);
    if (bound && bound->kind == ETCH_BOUND_TENSOR)
        return of_tensor(bound->tensor, false);
    if (bound && bound->kind == ETCH_BOUND_NOTHING) {
        etch_error(spec->diags, ETCH_E_NOT_A_TENSOR, expr->span, "%s was left out by the call",
                   expr->name.text);
        return failure();
    }
    const etch_symbol *symbol = bound ? NULL : etch_namespace_find(env->home, expr->name.text);
    if (!bound && !symbol) {
        const char **near = ETCH_NEW_ARRAY(spec->arena, env->names.count, const char *);
        for (uint32_t i = 0; i < env->names.count; i++)
            near[i] = env->names.at[i].name;
        etch_unknown_name(spec, env->home, "tensor", expr->name, near, env->names.count);
        return failure();
    }
    if (symbol && symbol->kind != ETCH_SYMBOL_PARAM && symbol->kind != ETCH_SYMBOL_DIM) {
        etch_error(spec->diags, ETCH_E_NOT_A_TENSOR, expr->span, "%s is a %s, not a tensor", expr->name.text,
                   etch_symbol_kind_name(symbol->kind));
        return failure();
    }
    etch_lookup lookup = etch_env_lookup(env);
    return of_number(etch_value_of(spec, expr, &lookup));
}

static etch_dim **group_dims(etch_env *env, const etch_ast_names *names)
{
    etch_dim **dims = ETCH_NEW_ARRAY(env->builder->spec->arena, names->count, etch_dim *);
    for (uint32_t i = 0; i < names->count; i++)
        dims[i] = etch_env_dim(env, names->at[i]);
    return dims;
}

static operand called(etch_env *env, const etch_ast_expr *expr, const etch_dims *want)
{
    etch_tensor *result = NULL;
    return etch_env_call(env, expr, want, &result, 1) ? of_tensor(result, true) : failure();
}

static operand renamed(etch_env *env, const etch_ast_expr *expr)
{
    etch_spec *spec = env->builder->spec;
    const etch_bound_name *bound = expr->called ? NULL : etch_env_find(env, expr->name.text);
    if (!expr->called && (!bound || bound->kind != ETCH_BOUND_TENSOR)) {
        etch_error(spec->diags, ETCH_E_NOT_A_TENSOR, expr->name.span, "%s is not a tensor of this module",
                   expr->name.text);
        return failure();
    }
    etch_regroup *groups = ETCH_NEW_ARRAY(spec->arena, expr->renames.count, etch_regroup);
    for (uint32_t i = 0; i < expr->renames.count; i++) {
        const etch_ast_rename *r = &expr->renames.at[i];
        groups[i] = (etch_regroup){{group_dims(env, &r->from), r->from.count},
                                   {group_dims(env, &r->to), r->to.count}};
    }
    etch_tensor *x = expr->called ? called(env, expr->called, NULL).tensor : bound->tensor;
    return of_tensor(etch_graph_regroup(env->builder->graph, x, groups, expr->renames.count, expr->span),
                     true);
}

/* What to write in place of an operator that is of numbers only. */
static void help_operator(etch_spec *spec, etch_diag *diag, const etch_ast_expr *expr)
{
    if (expr->kind != ETCH_AST_BINARY)
        return;
    const char *base = etch_written(spec, expr->left->span);
    if (expr->op == '^' && strcmp(etch_written(spec, expr->right->span), "2") == 0)
        etch_help(diag, "write square(%s)", base);
    else if (expr->op == '^')
        etch_help(diag,
                  "write a power as a product: x * x * x; square, sqrt, rsqrt and reciprocal are functions");
    else
        etch_help(diag, "'%s' is an operator of numbers: params and sizes of dims",
                  expr->op == 'f' ? "//" : "%");
}

/* `want`: declared dims that the value has, when it is a term of a statement; NULL inside other expressions,
 * where nothing is ever summed. */
static operand evaluate(etch_env *env, const etch_ast_expr *expr, const etch_dims *want)
{
    etch_spec *spec = env->builder->spec;
    switch (expr->kind) {
    case ETCH_AST_BROKEN:
        return failure();
    case ETCH_AST_INTEGER:
    case ETCH_AST_REAL: {
        etch_lookup lookup = etch_env_lookup(env);
        return of_number(etch_value_of(spec, expr, &lookup));
    }
    case ETCH_AST_NAME:
        return named(env, expr);
    case ETCH_AST_CALL:
        return called(env, expr, want);
    case ETCH_AST_RENAME:
        return renamed(env, expr);
    case ETCH_AST_NEGATE:
        return sum_of(env, expr, want);
    case ETCH_AST_BINARY:
        if (expr->op == '*')
            return product(env, expr, want);
        if (expr->op == '/')
            return quotient(env, expr, want);
        if (expr->op == '+' || expr->op == '-')
            return sum_of(env, expr, want);
        break;
    case ETCH_AST_STRING:
    case ETCH_AST_TRUTH:
    case ETCH_AST_COMPARE:
    case ETCH_AST_TUPLE:
    case ETCH_AST_LIST:
        break;
    }
    etch_diag *diag = etch_error(
        spec->diags, ETCH_E_NOT_A_TENSOR, expr->span,
        "this is not an expression of tensors: they are added, multiplied, renamed and passed to functions");
    help_operator(spec, diag, expr);
    return failure();
}

etch_tensor *etch_env_tensor(etch_env *env, const etch_ast_expr *expr, const etch_dims *want, bool *fresh)
{
    *fresh = false;
    if (want && want->broken)
        return NULL; /* what was meant is not known: anything said of the value would be a guess */
    operand value = evaluate(env, expr, want && want->known ? want : NULL);
    *fresh = value.fresh;
    if (value.number && want && want->known)
        value =
            of_tensor(etch_graph_constant(env->builder->graph, ETCH_DIMS(*want), value.number, expr->span),
                      *fresh = true);
    if (!value.failed && !value.tensor) {
        etch_diag *diag = etch_error(env->builder->spec->diags, ETCH_E_NOT_A_TENSOR, expr->span,
                                     "a number stands where a tensor is needed");
        if (want)
            etch_help(diag, "declare the dims of a constant: z[A,B] = %s",
                      etch_written(env->builder->spec, expr->span));
        else
            etch_help(diag,
                      "numbers are added to tensors, or multiply or divide them, as in x * %s; no cost "
                      "depends on their value, so that no function of them is needed",
                      etch_written(env->builder->spec, expr->span));
    }
    return value.failed ? NULL : value.tensor;
}
