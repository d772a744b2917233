/* Instances: one set of weights that several calls of a module read.
 *
 * A weight is known by the place of its declaration: the calls that lead to it from the instance's own, and
 * what the source says there. The first call to come to a place makes the weight, in the region where the
 * instance is declared; later calls find it. */
#include <string.h>

#include "lang/model/model_int.h"

/* A call inside of a call of the instance; place 0 is that call itself. */
typedef struct shared_place {
    uint32_t caller;
    const etch_ast_expr *call;
} shared_place;

typedef struct shared_weight {
    uint32_t place;
    const etch_ast_tensor *declared;
    etch_tensor *weight;
} shared_weight;

/* A dim that a module of the instance declares: the same one in each call in which it has this size. */
typedef struct shared_dim {
    uint32_t place;
    const etch_ast_def *declared;
    etch_dim *dim;
} shared_dim;

/* An instance that a module of the instance declares: it is the same one in each call. */
typedef struct shared_inner {
    uint32_t place;
    const etch_ast_stmt *stmt;
    struct etch_shared *shared;
} shared_inner;

/* The weights of an instance. */
typedef struct etch_shared {
    /* where they are; NULL: the instance cannot have any, because a loop runs its statement in a call of
     * another one */
    etch_region *region;
    etch_span span;
    bool is_called;
    ETCH_VEC(shared_place) places;
    ETCH_VEC(shared_weight) weights;
    ETCH_VEC(shared_dim) dims;
    ETCH_VEC(shared_inner) inner;
} etch_shared;

struct etch_instance {
    const etch_ast_stmt *stmt;
    etch_bound_names given;
    etch_shared *shared;
};

etch_bound_names etch_instance_given(const etch_instance *instance)
{
    return instance->given;
}

/* ---- declarations -------------------------------------------------------------------------------------- */

/* The module that is meant; NULL after an error. */
static const etch_symbol *module_of(etch_env *env, const etch_ast_expr *value)
{
    etch_spec *spec = env->builder->spec;
    const etch_bound_name *bound = etch_env_find(env, value->name.text);
    if (bound && bound->kind == ETCH_BOUND_MODULE)
        return bound->module;
    const etch_symbol *symbol = bound ? NULL : etch_namespace_find(env->home, value->name.text);
    if (symbol && symbol->kind == ETCH_SYMBOL_MODULE)
        return symbol;
    const bool is_row = !bound && !symbol && etch_row_called(env->builder->graph->table, value->name.text);
    if (!bound && !symbol && !is_row) {
        etch_unknown_name(spec, env->home, "module", value->name, NULL, 0);
        return NULL;
    }
    const char *what = bound    ? etch_bound_kind_name(bound->kind)
                       : symbol ? etch_symbol_kind_name(symbol->kind)
                                : "function";
    etch_diag *diag = etch_error(spec->diags, ETCH_E_CALL_ARGUMENTS, value->name.span,
                                 "%s is a %s, and an instance is of a module", value->name.text, what);
    if (is_row)
        etch_help(diag, "functions have no weights: call %s where it is needed", value->name.text);
    return NULL;
}

/* Arguments by position are tensors: each call has its own. */
static bool has_parameters_only(etch_spec *spec, const etch_ast_stmt *stmt)
{
    const etch_ast_expr *value = stmt->instance.value;
    if (value->kind == ETCH_AST_NAME || etch_positional_count(value) == 0)
        return true;
    etch_diag *diag = etch_error(spec->diags, ETCH_E_CALL_ARGUMENTS, value->args.at[0].value->span,
                                 "an instance takes parameters by name; its calls take the tensors");
    etch_help(diag, "write instance %s = %s, and then %s(%s)", stmt->instance.name.text, value->name.text,
              stmt->instance.name.text, etch_written(spec, value->args.at[0].value->span));
    return false;
}

static etch_shared *shared_new(const etch_env *env, const etch_ast_stmt *stmt)
{
    etch_shared *shared = ETCH_NEW(env->builder->spec->arena, etch_shared);
    const bool is_in_loop = env->shared && env->builder->graph->region != env->shared_call;
    *shared = (etch_shared){.region = env->shared ? env->shared->region : env->builder->graph->region,
                            .span = stmt->span};
    if (is_in_loop)
        shared->region = NULL;
    ETCH_PUSH(env->builder->spec->arena, &shared->places, (shared_place){0});
    return shared;
}

static etch_shared *shared_of(const etch_env *env, const etch_ast_stmt *stmt)
{
    etch_shared *outer = env->shared;
    for (uint32_t i = 0; outer && i < outer->inner.count; i++)
        if (outer->inner.at[i].place == env->shared_place && outer->inner.at[i].stmt == stmt)
            return outer->inner.at[i].shared;
    etch_shared *shared = shared_new(env, stmt);
    if (outer)
        ETCH_PUSH(env->builder->spec->arena, &outer->inner, (shared_inner){env->shared_place, stmt, shared});
    return shared;
}

void etch_env_instance(etch_env *env, const etch_ast_stmt *stmt)
{
    etch_spec *spec = env->builder->spec;
    const etch_ast_expr *value = stmt->instance.value;
    etch_instance *instance = ETCH_NEW(spec->arena, etch_instance);
    const etch_symbol *module =
        value->kind == ETCH_AST_BROKEN || !has_parameters_only(spec, stmt) ? NULL : module_of(env, value);
    *instance = (etch_instance){.stmt = stmt, .shared = shared_of(env, stmt)};
    if (module && value->kind == ETCH_AST_CALL &&
        !etch_parameters_given(env, module->item, value, &instance->given))
        module = NULL;
    if (module)
        ETCH_PUSH(spec->arena, &env->builder->instances, instance);
    etch_env_declare(env,
                     (etch_bound_name){.name = stmt->instance.name.text,
                                       .kind = ETCH_BOUND_INSTANCE,
                                       .module = module,
                                       .instance = instance},
                     stmt->instance.name.span);
}

void etch_warn_uncalled(const etch_builder *b)
{
    for (uint32_t i = 0; i < b->instances.count; i++) {
        const etch_ast_stmt *stmt = b->instances.at[i]->stmt;
        bool is_first = true, is_called = false;
        for (uint32_t k = 0; k < b->instances.count; k++) {
            const bool is_same = b->instances.at[k]->stmt == stmt;
            is_first = is_first && !(is_same && k < i);
            is_called = is_called || (is_same && b->instances.at[k]->shared->is_called);
        }
        if (!is_first || is_called)
            continue;
        etch_diag *diag = etch_warning(b->spec->diags, ETCH_E_INSTANCE_IDLE, stmt->instance.name.span,
                                       "nothing calls %s: it has no weights", stmt->instance.name.text);
        etch_help(diag, "call it, as in y = %s(x), or leave the line out", stmt->instance.name.text);
    }
}

/* ---- weights ------------------------------------------------------------------------------------------- */

void etch_instance_enter(const etch_env *caller, etch_env *callee, const etch_instance *instance,
                         const etch_ast_expr *call)
{
    if (instance) {
        instance->shared->is_called = true;
        callee->shared = instance->shared;
        callee->shared_call = caller->builder->graph->region;
        return;
    }
    etch_shared *shared = callee->shared = caller->shared;
    if (!shared)
        return;
    callee->shared_call = caller->shared_call;
    for (uint32_t i = 1; i < shared->places.count; i++)
        if (shared->places.at[i].caller == caller->shared_place && shared->places.at[i].call == call) {
            callee->shared_place = i;
            return;
        }
    callee->shared_place = shared->places.count;
    ETCH_PUSH(caller->builder->spec->arena, &shared->places, (shared_place){caller->shared_place, call});
}

static etch_tensor *find_weight(const etch_env *env, const etch_ast_tensor *declared)
{
    const etch_shared *shared = env->shared;
    for (uint32_t i = 0; i < shared->weights.count; i++)
        if (shared->weights.at[i].place == env->shared_place && shared->weights.at[i].declared == declared)
            return shared->weights.at[i].weight;
    return NULL;
}

/* Each iteration of a loop has weights of its own, which no other loop can read. */
static bool is_outside_loops(const etch_env *env, const etch_ast_tensor *declared)
{
    if (env->shared->region && env->builder->graph->region == env->shared_call)
        return true;
    etch_diag *diag = etch_error(env->builder->spec->diags, ETCH_E_INSTANCE, declared->span,
                                 "the calls of an instance cannot share the weights of a loop inside of it");
    etch_note(diag, env->shared->span, "the instance is declared here");
    etch_help(diag, "put the loop around the calls: repeat n { instance b = block; x = b(x); y = b(y) }");
    return false;
}

/* "[H,W] = [hidden,2*ffn]" */
static const char *sizes_text(const etch_env *env, etch_dim_view dims)
{
    etch_spec *spec = env->builder->spec;
    etch_buf out = {.arena = spec->arena};
    etch_buf_printf(&out, "%s = [", etch_dims_text(spec->arena, dims));
    for (uint32_t i = 0; i < dims.count; i++)
        etch_buf_printf(&out, "%s%s", i ? "," : "",
                        dims.at[i] ? etch_expr_text(spec->sym, dims.at[i]->size) : "?");
    etch_buf_puts(&out, "]");
    return out.text;
}

static bool has_same_dims(const etch_env *env, const etch_tensor *weight, const etch_dims *dims,
                          const etch_ast_tensor *declared)
{
    bool is_same = weight->rank == dims->count;
    for (uint32_t i = 0; i < weight->rank && is_same; i++)
        is_same = weight->dims[i] == dims->at[i];
    if (is_same)
        return true;
    etch_diag *diag =
        etch_error(env->builder->spec->diags, ETCH_E_INSTANCE, declared->span,
                   "%s would be %s in this call of an instance, and is %s in the first", declared->name.text,
                   sizes_text(env, ETCH_DIMS(*dims)), sizes_text(env, etch_dims_of(weight)));
    etch_note(diag, env->shared->span, "the instance is declared here");
    etch_help(diag, "calls with weights of other dims are of another instance");
    return false;
}

etch_tensor *etch_env_weight(etch_env *env, const etch_ast_tensor *declared, etch_dtype dtype, bool frozen,
                             bool *known)
{
    etch_graph *graph = env->builder->graph;
    const etch_dims dims = etch_env_shape(env, &declared->axes);
    etch_tensor *weight = env->shared ? find_weight(env, declared) : NULL;
    *known = weight != NULL;
    if (dims.broken || (env->shared && !is_outside_loops(env, declared)))
        return NULL;
    if (weight) {
        ETCH_PUSH(env->builder->spec->arena, &weight->calls, graph->scope);
        return has_same_dims(env, weight, &dims, declared) ? weight : NULL;
    }
    weight = etch_graph_weight(graph, declared->name.text, ETCH_DIMS(dims), dtype, frozen, declared->span);
    if (!weight || !env->shared)
        return weight;
    weight->region = env->shared->region;
    ETCH_PUSH(env->builder->spec->arena, &weight->calls, graph->scope);
    ETCH_PUSH(env->builder->spec->arena, &env->shared->weights,
              (shared_weight){env->shared_place, declared, weight});
    return weight;
}

etch_dim *etch_env_new_dim(etch_env *env, const etch_ast_def *def, etch_expr size)
{
    etch_shared *shared = env->shared;
    for (uint32_t i = 0; shared && i < shared->dims.count; i++) {
        const shared_dim *known = &shared->dims.at[i];
        if (known->place == env->shared_place && known->declared == def && known->dim->size == size)
            return known->dim;
    }
    etch_dim *dim = etch_graph_dim(env->builder->graph, def->name.text, size, def->average, def->name.span);
    if (dim && shared)
        ETCH_PUSH(env->builder->spec->arena, &shared->dims, (shared_dim){env->shared_place, def, dim});
    return dim;
}
