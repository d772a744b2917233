/* Names inside modules: what they stand for, dims and their primes, numbers, branches. */
#include <string.h>

#include "lang/model/model_int.h"
#include "lang/names/series.h"

void etch_report_index(etch_env *env, etch_span span, const etch_bound_name *bound)
{
    const char *index = bound->name;
    etch_diag *diag = etch_error(env->builder->spec->diags, ETCH_E_LOOP_INDEX, span,
                                 "the index %s of a loop has no value here: it says only in an `if` which "
                                 "iterations are meant",
                                 index);
    etch_help(diag,
              "compare it, or its remainder, with what is the same in all iterations: `if %s < n`, "
              "`if %s %% 4 == 1`",
              index, index);
    etch_note_hidden(env, diag, bound);
}

etch_bound_name *etch_env_find(const etch_env *env, const char *name)
{
    for (uint32_t i = env->names.count; i-- > 0;)
        if (env->names.at[i].name == name)
            return &env->names.at[i];
    return NULL;
}

void etch_env_bind(etch_env *env, etch_bound_name bound)
{
    ETCH_PUSH(env->builder->spec->arena, &env->names, bound);
}

/* Does it stand for something? */
static bool is_there(const etch_bound_name *bound)
{
    switch (bound->kind) {
    case ETCH_BOUND_TENSOR:
        return bound->tensor != NULL;
    case ETCH_BOUND_DIM:
        return bound->dim != NULL;
    case ETCH_BOUND_NUMBER:
        return bound->number != NULL;
    case ETCH_BOUND_FUNCTION:
    case ETCH_BOUND_MODULE:
    case ETCH_BOUND_NOTHING:
    case ETCH_BOUND_INDEX:
    case ETCH_BOUND_INSTANCE:
        break;
    }
    return true;
}

/* A name that stands for something in the module already, around a loop or not. */
static void report_twice(const etch_env *env, const etch_bound_name *known, etch_span span)
{
    etch_diag *diag = etch_error(env->builder->spec->diags, ETCH_E_NAME_TWICE, span,
                                 "'%s' is defined here already", known->name);
    if (known->span.end)
        etch_note(diag, known->span, "first here, as a %s", etch_bound_kind_name(known->kind));
    etch_help(diag, "give one of them another name");
}

void etch_env_declare(etch_env *env, etch_bound_name bound, etch_span span)
{
    if (!is_there(&bound))
        etch_builder_lost(env->builder);
    const etch_bound_name *known = etch_env_find(env, bound.name);
    if (known)
        report_twice(env, known, span);
    if (known && known >= env->names.at + env->loop_names)
        return; /* what follows is read with the first, but of another loop with the one that is nearer */
    bound.span = span;
    etch_env_bind(env, bound);
}

void etch_builder_lost(const etch_builder *b)
{
    if (etch_error_count(b->spec->diags) == b->errors)
        etch_trap(etch_arena_mem(b->spec->arena), ETCH_EINTERNAL);
}

void etch_later(etch_spec *spec, etch_span span, const char *what)
{
    etch_error(spec->diags, ETCH_E_LATER, span, "%s is part of the language but is not given meaning yet",
               what);
}

/* ---- dims ------------------------------------------------------------------------------------------- */

etch_dim *etch_builder_dim(etch_builder *b, const etch_symbol *symbol)
{
    etch_dim **slot = &b->global_dims[symbol->id];
    if (!*slot)
        *slot = etch_graph_dim(b->graph, symbol->name, etch_dim_size(b->spec, symbol), symbol->def->average,
                               symbol->def->name.span);
    return *slot;
}

/* The second dim of the same size; one for each base. */
static etch_dim *prime_of(etch_builder *b, etch_dim *base, etch_span span)
{
    for (uint32_t i = 0; i < b->primes.count; i++)
        if (b->primes.at[i].base == base)
            return b->primes.at[i].prime;
    const char *name = etch_name_of(b->spec->names, etch_text(b->spec->arena, "%s'", base->name));
    etch_dim *prime = etch_graph_dim(b->graph, name, base->size, base->average_sized, span);
    ETCH_PUSH(b->spec->arena, &b->primes, (etch_prime){base, prime});
    return prime;
}

const char *etch_bound_kind_name(etch_bound_kind kind)
{
    static const char *const names[] = {
        "tensor", "dim", "number", "function", "module", "missing operand", "loop index", "module instance"};
    return names[kind];
}

void etch_note_hidden(const etch_env *env, etch_diag *diag, const etch_bound_name *bound)
{
    const etch_symbol *symbol = etch_namespace_find(env->home, bound->name);
    if (!symbol || !bound->span.end)
        return;
    const char *what = etch_symbol_kind_name(symbol->kind);
    etch_note(diag, bound->span, "this %s hides the %s of this name", etch_bound_kind_name(bound->kind),
              what);
    etch_note(diag, symbol->def ? symbol->def->name.span : symbol->item->name.span, "the %s is here", what);
    etch_help(diag, "give one of them another name");
}

static etch_diag *not_a_dim(const etch_env *env, etch_ast_name name, const char *what)
{
    etch_spec *spec = env->builder->spec;
    etch_diag *diag =
        etch_error(spec->diags, ETCH_E_NOT_A_DIM, name.span, "%s is a %s, not a dim", name.text, what);
    etch_help_dims_of(spec, diag, name.text);
    return diag;
}

/* As etch_env_dim; `*found` tells an unknown name from an error. */
static etch_dim *find_dim(etch_env *env, etch_ast_name name, bool *found)
{
    *found = true;
    const etch_bound_name *bound = etch_env_find(env, name.text);
    if (bound && bound->kind == ETCH_BOUND_DIM)
        return bound->dim;
    if (bound) {
        etch_note_hidden(env, not_a_dim(env, name, etch_bound_kind_name(bound->kind)), bound);
        return NULL;
    }
    const etch_symbol *symbol = etch_namespace_find(env->home, name.text);
    if (symbol && symbol->kind == ETCH_SYMBOL_DIM)
        return etch_builder_dim(env->builder, symbol);
    if (symbol) {
        not_a_dim(env, name, etch_symbol_kind_name(symbol->kind));
        return NULL;
    }
    size_t length = strlen(name.text);
    if (length > 1 && name.text[length - 1] == '\'') {
        etch_ast_name base = {etch_name(env->builder->spec->names, name.text, length - 1), name.span};
        etch_dim *dim = find_dim(env, base, found);
        return dim ? prime_of(env->builder, dim, name.span) : NULL;
    }
    *found = false;
    return NULL;
}

etch_dim *etch_env_dim(etch_env *env, etch_ast_name name)
{
    bool found;
    etch_dim *dim = find_dim(env, name, &found);
    if (found)
        return dim;
    etch_spec *spec = env->builder->spec;
    const char **near = ETCH_NEW_ARRAY(spec->arena, env->names.count, const char *);
    uint32_t count = 0;
    for (uint32_t i = 0; i < env->names.count; i++)
        if (env->names.at[i].kind == ETCH_BOUND_DIM)
            near[count++] = env->names.at[i].name;
    etch_unknown_name(spec, env->home, "dim", name, near, count);
    return NULL;
}

etch_dims etch_env_shape(etch_env *env, const etch_ast_axes *axes)
{
    etch_spec *spec = env->builder->spec;
    etch_dims dims = {.known = true};
    ETCH_VEC(etch_dim *) list = {0};
    for (uint32_t i = 0; i < axes->count; i++) {
        const etch_ast_axis *axis = &axes->at[i];
        if (axis->rest) {
            if (!env->rest.known) {
                etch_error(
                    spec->diags, ETCH_E_NOT_A_DIM, axis->span,
                    "`..` stands for the other dims of an argument, but no argument of this module has it");
                dims.broken = true;
            }
            for (uint32_t k = 0; k < env->rest.count; k++)
                ETCH_PUSH(spec->arena, &list, env->rest.at[k]);
            continue;
        }
        etch_dim *dim = NULL;
        if (axis->size->kind == ETCH_AST_NAME)
            dim = etch_env_dim(env, axis->size->name);
        else if (axis->size->kind != ETCH_AST_BROKEN)
            etch_error(spec->diags, ETCH_E_NOT_A_DIM, axis->span,
                       "a tensor's dims are names: declare `dim X = ...` and write X");
        if (!dim)
            dims.broken = true;
        ETCH_PUSH(spec->arena, &list, dim);
    }
    dims.at = list.at;
    dims.count = list.count;
    return dims;
}

etch_dims etch_env_result(etch_env *env, const char *name)
{
    for (uint32_t i = 0; env->results && i < env->results->count; i++) {
        const etch_ast_tensor *result = &env->results->at[i];
        if (result->name.text == name && result->shaped)
            return etch_env_shape(env, &result->axes);
    }
    return (etch_dims){0};
}

/* ---- numbers ---------------------------------------------------------------------------------------- */

static void report_no_number(etch_env *env, const etch_ast_expr *expr, const etch_bound_name *bound)
{
    etch_diag *diag =
        etch_error(env->builder->spec->diags, ETCH_E_NOT_A_TENSOR, expr->span, "%s is a %s, not a number",
                   expr->name.text, etch_bound_kind_name(bound->kind));
    if (bound->kind == ETCH_BOUND_INSTANCE || bound->kind == ETCH_BOUND_MODULE)
        etch_help(diag, "call it with tensors: %s(x)", expr->name.text);
    etch_note_hidden(env, diag, bound);
}

static etch_expr lookup_name(void *data, const etch_ast_expr *expr)
{
    etch_env *env = data;
    etch_spec *spec = env->builder->spec;
    const etch_bound_name *bound = etch_env_find(env, expr->name.text);
    if (!bound) {
        etch_lookup global = etch_global_lookup(spec, env->home);
        return global.name(global.data, expr);
    }
    if (bound->kind == ETCH_BOUND_NUMBER)
        return bound->number;
    if (bound->kind == ETCH_BOUND_DIM)
        return bound->dim ? bound->dim->size : NULL;
    if (bound->kind == ETCH_BOUND_INDEX)
        etch_report_index(env, expr->span, bound);
    else
        report_no_number(env, expr, bound);
    return NULL;
}

static etch_expr lookup_call(void *data, const etch_ast_expr *call, bool *known)
{
    etch_env *env = data;
    *known = etch_reads_series(call->name.text);
    return *known ? env->builder->inside->one(env, call) : NULL;
}

etch_lookup etch_env_lookup(etch_env *env)
{
    return (etch_lookup){.name = lookup_name, .call = lookup_call, .data = env};
}

etch_expr etch_env_number(etch_env *env, const etch_ast_expr *expr)
{
    etch_spec *spec = env->builder->spec;
    etch_lookup lookup = etch_env_lookup(env);
    etch_expr value = etch_value_of(spec, expr, &lookup);
    if (!value)
        return NULL;
    value = etch_settings_apply(spec->sym, env->builder->settings, value);
    if (value && etch_is_constant(value))
        return value;
    if (value)
        value = etch_graph_with_defaults(env->builder->graph, value);
    if (value && etch_is_constant(value)) {
        etch_remark(spec->diags, ETCH_E_UNDECIDED, expr->span, "decided by the defaults of params");
        return value;
    }
    etch_diag *diag = etch_error(spec->diags, ETCH_E_UNDECIDED, expr->span,
                                 "which iterations are meant is not known: '%s' is no number",
                                 etch_written(spec, expr->span));
    etch_help(diag, "bind its params in a config or with --set");
    return NULL;
}
