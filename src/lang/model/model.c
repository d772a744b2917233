/* Statements of modules and models. */
#include <string.h>

#include "lang/model/model_int.h"

/* ---- statements ------------------------------------------------------------------------------------- */

static const char **tag_list(etch_spec *spec, const etch_ast_names *tags)
{
    const char **list = ETCH_NEW_ARRAY(spec->arena, tags->count, const char *);
    for (uint32_t i = 0; i < tags->count; i++)
        list[i] = tags->at[i].text;
    return list;
}

etch_dtype etch_declared_dtype(etch_spec *spec, const etch_ast_tensor *tensor, etch_dtype usual)
{
    if (!tensor->type.text)
        return usual;
    etch_dtype dtype = etch_dtype_of(tensor->type.text);
    if (dtype != ETCH_DTYPE_COUNT)
        return dtype;
    etch_diag *diag = etch_error(spec->diags, ETCH_E_CALL_ARGUMENTS, tensor->type.span, "unknown dtype %s",
                                 tensor->type.text);
    etch_help(diag, "one of f64 f32 bf16 f16 f8 i64 i32 i8 bool");
    return usual;
}

static bool is_tagged(const etch_ast_names *tags, const char *tag)
{
    for (uint32_t i = 0; i < tags->count; i++)
        if (strcmp(tags->at[i].text, tag) == 0)
            return true;
    return false;
}

static void declare_weights(etch_env *env, const etch_ast_stmt *stmt)
{
    etch_spec *spec = env->builder->spec;
    const bool buffer = is_tagged(&stmt->tags, "buffer"), frozen = buffer || is_tagged(&stmt->tags, "frozen");
    for (uint32_t i = 0; i < stmt->tensors.count; i++) {
        const etch_ast_tensor *w = &stmt->tensors.at[i];
        const etch_dtype dtype = etch_declared_dtype(spec, w, env->builder->graph->dtypes.weights);
        bool is_known;
        etch_tensor *weight = etch_env_weight(env, w, dtype, frozen, &is_known);
        if (weight)
            weight->buffer = buffer;
        if (weight && w->type.text)
            weight->dtype_of = weight;
        if (!is_known)
            etch_graph_label(weight, w->name.text, tag_list(spec, &stmt->tags), stmt->tags.count, w->span);
        etch_env_declare(env,
                         (etch_bound_name){.name = w->name.text, .kind = ETCH_BOUND_TENSOR, .tensor = weight},
                         w->name.span);
    }
}

static void declare_dims(etch_env *env, const etch_ast_stmt *stmt)
{
    for (uint32_t i = 0; i < stmt->dims.count; i++) {
        const etch_ast_def *def = &stmt->dims.at[i];
        etch_lookup lookup = etch_env_lookup(env);
        etch_expr size = etch_value_of(env->builder->spec, def->value, &lookup);
        etch_dim *dim = etch_env_new_dim(env, def, size);
        etch_env_declare(env, (etch_bound_name){.name = def->name.text, .kind = ETCH_BOUND_DIM, .dim = dim},
                         def->name.span);
    }
}

/* A name that is assigned keeps one entry, so that a loop can tell what it changes. */
static void assign(etch_env *env, const char *name, etch_tensor *tensor, etch_span span)
{
    etch_bound_name *bound = etch_env_find(env, name);
    if (!tensor)
        etch_builder_lost(env->builder);
    const etch_bound_name result = {.name = name, .kind = ETCH_BOUND_TENSOR, .tensor = tensor, .span = span};
    if (bound && bound->kind == ETCH_BOUND_TENSOR)
        bound->tensor = tensor;
    else if (bound && bound->kind != ETCH_BOUND_NOTHING)
        etch_env_declare(env, result, span); /* a dim, a number, an index: it would be hidden */
    else
        etch_env_bind(env, result);
}

/* Dims declared for a target: on the left, in the signature, or by the value that it replaces inside a loop.
 */
static etch_dims target_dims(etch_env *env, const etch_ast_tensor *target)
{
    if (target->shaped)
        return etch_env_shape(env, &target->axes);
    etch_dims dims = etch_env_result(env, target->name.text);
    if (dims.known)
        return dims;
    const etch_bound_name *bound = etch_env_find(env, target->name.text);
    const etch_region *region = env->builder->graph->region;
    if (!region->loop || !bound || bound->kind != ETCH_BOUND_TENSOR || !bound->tensor)
        return dims;
    for (uint32_t i = 0; i < region->carries.count; i++)
        if (strcmp(region->carries.at[i].in->name, target->name.text) == 0) {
            const etch_tensor *in = region->carries.at[i].in;
            return (etch_dims){.at = (etch_dim **)(uintptr_t)in->dims, .count = in->rank, .known = true};
        }
    return dims;
}

/* Which of several operands brings a dim along. */
static void note_operands(etch_spec *spec, etch_diag *diag, const etch_tensor *value)
{
    const etch_op *op = value->producer;
    if (!op || op->in_count < 2)
        return;
    etch_buf text = {.arena = spec->arena};
    for (uint32_t i = 0; i < op->in_count; i++)
        etch_buf_printf(&text, "%s%s%s", i ? ", " : "", op->ins[i]->name,
                        etch_dims_text(spec->arena, etch_dims_of(op->ins[i])));
    etch_note(diag, op->span, "%s of %s", etch_row_name(op->row), text.text);
}

static bool is_among(const etch_dims *dims, const etch_dim *dim)
{
    for (uint32_t i = 0; i < dims->count; i++)
        if (etch_dim_is_meant(dim, dims->at[i]))
            return true;
    return false;
}

/* Is it smaller than what is declared, and nothing else? */
static bool lacks_only(const etch_tensor *value, const etch_dims *want)
{
    for (uint32_t i = 0; i < value->rank; i++)
        if (!is_among(want, value->dims[i]))
            return false;
    return value->rank < want->count;
}

static bool result_fits(etch_spec *spec, const etch_ast_tensor *target, const etch_tensor *value,
                        const etch_dims *want)
{
    bool fits = value->rank == want->count;
    for (uint32_t i = 0; i < value->rank && fits; i++)
        fits = is_among(want, value->dims[i]);
    if (fits)
        return true;
    etch_diag *diag = etch_error(spec->diags, ETCH_E_SHAPE_MISMATCH, target->span,
                                 "%s is declared %s, but its value has dims %s", target->name.text,
                                 etch_dims_text(spec->arena, ETCH_DIMS(*want)),
                                 etch_dims_text(spec->arena, etch_dims_of(value)));
    note_operands(spec, diag, value);
    if (lacks_only(value, want))
        etch_help(diag,
                  "a tensor is copied along new dims by a statement of its own: first t = .., then %s%s = t",
                  target->name.text, etch_dims_text(spec->arena, ETCH_DIMS(*want)));
    for (uint32_t i = 0; i < value->rank; i++)
        if (!is_among(want, value->dims[i]))
            etch_help(diag, "%s is not summed, because no product has it in both factors",
                      value->dims[i]->name);
    return false;
}

/* A tensor that a statement names is copied along dims that the statement declares and that it lacks. What is
 * computed has to have them, and so has what is declared elsewhere: there one that is missing is a slip. */
static bool is_copied(const etch_ast_stmt *stmt, const etch_tensor *value, const etch_dims *want)
{
    const bool is_renamed = stmt->value->kind == ETCH_AST_RENAME && !stmt->value->called;
    return (is_renamed || stmt->value->kind == ETCH_AST_NAME) && stmt->tensors.at[0].shaped &&
           !want->broken && lacks_only(value, want);
}

static bool is_told(const etch_builder *b, const etch_tensor *source)
{
    for (uint32_t i = 0; i < b->told.count; i++)
        if (b->told.at[i] == source)
            return true;
    return false;
}

/* What has been cast, or declared: by its name, or by the cast where it has none. */
static const char *source_text(etch_spec *spec, const etch_tensor *source)
{
    const etch_op *cast = source->producer;
    const bool unnamed = cast && strcmp(source->name, etch_row_name(cast->row)) == 0;
    return unnamed ? etch_text(spec->arena, "%s(%s, ..)", source->name, cast->ins[0]->name) : source->name;
}

/* Where a statement says no dtype, a remark tells of one that is wider than its class: once for each tensor
 * that has been cast or declared to be so. */
static void remark_widened(etch_builder *b, const etch_ast_tensor *target, const etch_tensor *value)
{
    etch_spec *spec = b->spec;
    const etch_tensor *source = value->dtype_of;
    const etch_dtype usual = b->graph->dtypes.act;
    const bool is_wider =
        etch_dtype_bytes(value->dtype) > etch_dtype_bytes(usual) && etch_dtype_is_real(value->dtype);
    if (!source || source == value || !is_wider || is_told(b, source))
        return;
    ETCH_PUSH(spec->arena, &b->told, source);
    if (target->type.text)
        return;
    const char *dtype = etch_dtype_name(value->dtype), *act = etch_dtype_name(usual);
    etch_diag *diag = etch_remark(spec->diags, ETCH_E_WIDENED, target->span,
                                  "%s is %s, as %s is; of its class, act, it would be %s", target->name.text,
                                  dtype, source_text(spec, source), act);
    etch_help(diag, "say which is meant: %s%s: %s, or %s", target->name.text,
              etch_dims_text(spec->arena, etch_dims_of(value)), dtype, act);
}

/* The dtype that a statement says. A name, or another look at a value, cannot say another one than it has. */
static void declare_dtype(etch_builder *b, const etch_ast_stmt *stmt, etch_tensor *value, bool fresh)
{
    etch_spec *spec = b->spec;
    const etch_ast_tensor *target = &stmt->tensors.at[0];
    const etch_dtype dtype = etch_declared_dtype(spec, target, value->dtype);
    const bool is_own = fresh && !(value->producer && etch_op_is_view(value->producer));
    if (dtype != value->dtype && !is_own) {
        etch_diag *diag =
            etch_error(spec->diags, ETCH_E_OTHER_DTYPE, target->type.span,
                       "%s is another name for what is %s", target->name.text, etch_dtype_name(value->dtype));
        etch_help(diag, "write %s = cast(%s, %s)", target->name.text, etch_written(spec, stmt->value->span),
                  etch_dtype_name(dtype));
    } else if (dtype != value->dtype || (target->type.text && !value->dtype_of)) {
        value->dtype = dtype;
        value->dtype_of = value;
    }
    if (is_own)
        remark_widened(b, target, value);
}

static void check_constant(etch_spec *spec, const etch_ast_expr *expr, const etch_tensor *value)
{
    const etch_expr number = value->constant->number;
    if (!number || etch_dtype_is_real(value->dtype) || !etch_is_constant(number) ||
        etch_is_integer_constant(number))
        return;
    etch_error(spec->diags, ETCH_E_NOT_A_NUMBER, expr->span, "%s is no integer, and %s is %s",
               etch_expr_text(spec->sym, number), value->name, etch_dtype_name(value->dtype));
}

static void let_one(etch_env *env, const etch_ast_stmt *stmt)
{
    etch_spec *spec = env->builder->spec;
    const etch_ast_tensor *target = &stmt->tensors.at[0];
    etch_dims want = target_dims(env, target);
    const uint32_t op_count = env->builder->graph->op_count;
    bool fresh = false;
    etch_tensor *value = etch_env_tensor(env, stmt->value, &want, &fresh);
    if (value && is_copied(stmt, value, &want)) {
        value = etch_graph_copies(env->builder->graph, value, ETCH_DIMS(want), stmt->span);
        fresh = true;
    }
    if (value && want.known && !want.broken && !result_fits(spec, target, value, &want))
        value = NULL;
    if (value && !fresh && stmt->tags.count) { /* another name with tags of its own */
        value = etch_graph_alias(env->builder->graph, value, stmt->span);
        fresh = true;
    }
    if (value && fresh) {
        etch_graph_label(value, target->name.text, tag_list(spec, &stmt->tags), stmt->tags.count,
                         target->span);
        etch_graph_state(env->builder->graph, value, op_count);
    }
    if (value)
        declare_dtype(env->builder, stmt, value, fresh);
    if (value && value->constant)
        check_constant(spec, stmt->value, value);
    assign(env, target->name.text, value, target->name.span);
}

static void let_several(etch_env *env, const etch_ast_stmt *stmt)
{
    etch_spec *spec = env->builder->spec;
    const uint32_t count = stmt->tensors.count, op_count = env->builder->graph->op_count;
    etch_tensor **values = ETCH_NEW_ARRAY(spec->arena, count, etch_tensor *);
    etch_dims *wants = ETCH_NEW_ARRAY(spec->arena, count, etch_dims);
    bool good = false;
    for (uint32_t i = 0; i < count; i++)
        wants[i] = target_dims(env, &stmt->tensors.at[i]);
    if (stmt->value->kind == ETCH_AST_CALL)
        good = etch_env_call(env, stmt->value, wants, values, count);
    else if (stmt->value->kind != ETCH_AST_BROKEN)
        etch_error(spec->diags, ETCH_E_CALL_ARGUMENTS, stmt->value->span, "only a call has several results");
    for (uint32_t i = 0; i < count; i++) {
        const etch_ast_tensor *target = &stmt->tensors.at[i];
        const etch_dims want = wants[i];
        if (!good || want.broken || (want.known && !result_fits(spec, target, values[i], &want)))
            values[i] = NULL;
        etch_graph_label(values[i], target->name.text, tag_list(spec, &stmt->tags), stmt->tags.count,
                         target->span);
        etch_graph_state(env->builder->graph, values[i], op_count);
        assign(env, target->name.text, values[i], target->name.span);
    }
}

/* ---- loops ------------------------------------------------------------------------------------------ */

static void add_name(etch_arena *arena, etch_carried *list, const char *name)
{
    for (uint32_t i = 0; i < list->count; i++)
        if (list->at[i] == name)
            return;
    ETCH_PUSH(arena, list, name);
}

/* Names that the statements assign, in order. The tree's height bounds the recursion. */
static void assigned_names(etch_arena *arena, const etch_ast_body *body, etch_carried *out)
{
    for (uint32_t i = 0; i < body->count; i++) {
        const etch_ast_stmt *stmt = &body->at[i];
        if (stmt->kind == ETCH_AST_LET)
            for (uint32_t k = 0; k < stmt->tensors.count; k++)
                add_name(arena, out, stmt->tensors.at[k].name.text);
        else if (stmt->kind == ETCH_AST_REPEAT)
            assigned_names(arena, &stmt->body, out);
        else if (stmt->kind == ETCH_AST_IF)
            for (uint32_t k = 0; k < stmt->arms.count; k++)
                assigned_names(arena, &stmt->arms.at[k].body, out);
    }
}

static bool may_nest(etch_builder *b, etch_span span)
{
    if (b->loops < ETCH_LOOPS_NESTED)
        return true;
    etch_error(b->spec->diags, ETCH_E_LOOPS_TOO_DEEP, span, "more than %d loops are nested",
               ETCH_LOOPS_NESTED);
    b->stopped = true;
    return false;
}

static void repeat(etch_env *env, const etch_ast_stmt *stmt)
{
    etch_spec *spec = env->builder->spec;
    etch_graph *graph = env->builder->graph;
    etch_lookup lookup = etch_env_lookup(env);
    etch_expr count = etch_value_of(spec, stmt->count, &lookup);
    etch_carried assigned = {0}, carried = {0};
    if (!count || !may_nest(env->builder, stmt->span)) {
        etch_builder_lost(env->builder);
        return;
    }
    env->builder->loops++;
    assigned_names(spec->arena, &stmt->body, &assigned);
    etch_graph_begin(graph, stmt->index.text ? stmt->index.text : "loop", count, stmt->span);
    for (uint32_t i = 0; i < assigned.count; i++) {
        etch_bound_name *bound = etch_env_find(env, assigned.at[i]);
        if (!bound || bound->kind != ETCH_BOUND_TENSOR || !bound->tensor)
            continue;
        bound->tensor = etch_graph_carry(graph, bound->tensor, stmt->span);
        bound->tensor->name = assigned.at[i];
        ETCH_PUSH(spec->arena, &carried, assigned.at[i]);
    }
    etch_env_iterate(env, stmt, count, &carried);
    env->builder->loops--;
}

/* What a branch would have assigned is not known: its uses stay silent. */
static void leave_unknown(etch_env *env, const etch_ast_stmt *stmt)
{
    etch_carried names = {0};
    for (uint32_t i = 0; i < stmt->arms.count; i++)
        assigned_names(env->builder->spec->arena, &stmt->arms.at[i].body, &names);
    for (uint32_t i = 0; i < names.count; i++)
        assign(env, names.at[i], NULL, stmt->span);
}

static void branch(etch_env *env, const etch_ast_stmt *stmt)
{
    const uint32_t known = env->builder->graph->known.count;
    for (uint32_t i = 0; i < stmt->arms.count; i++) {
        const etch_ast_arm *arm = &stmt->arms.at[i];
        etch_truth taken = arm->test ? etch_env_decide(env, arm->test) : ETCH_YES;
        if (taken == ETCH_UNKNOWN) {
            etch_builder_lost(env->builder);
            leave_unknown(env, stmt);
            break;
        }
        if (arm->test)
            etch_env_know(env, arm->test, taken == ETCH_YES);
        if (taken == ETCH_NO)
            continue;
        etch_env_body(env, &arm->body);
        break;
    }
    env->builder->graph->known.count = known;
}

/* Statements count as well as the ops that they make: calls and classes of iterations multiply them, too. */
static void stop_if_too_large(etch_builder *b, etch_span span)
{
    const bool ops = b->graph->op_count + b->graph->weights.count + b->bodies > ETCH_MODEL_OPS;
    const bool statements = ++b->statements > ETCH_MODEL_STATEMENTS;
    if (b->stopped || (!ops && !statements)) /* a call inside the statement may have said it already */
        return;
    if (ops)
        etch_error(b->spec->diags, ETCH_E_MODEL_TOO_LARGE, span,
                   "the model has more than %d ops, weights and bodies of loops: write what repeats as "
                   "`repeat n { ... }`",
                   ETCH_MODEL_OPS);
    else
        etch_error(b->spec->diags, ETCH_E_MODEL_TOO_LARGE, span,
                   "calls and conditions make more than %d statements of the model", ETCH_MODEL_STATEMENTS);
    b->stopped = true;
}

void etch_env_body(etch_env *env, const etch_ast_body *body)
{
    etch_builder *b = env->builder;
    for (uint32_t i = 0; i < body->count && !b->stopped; i++) {
        const etch_ast_stmt *stmt = &body->at[i];
        switch (stmt->kind) {
        case ETCH_AST_WEIGHT:
            declare_weights(env, stmt);
            break;
        case ETCH_AST_DIM:
            declare_dims(env, stmt);
            break;
        case ETCH_AST_INSTANCE:
            etch_env_instance(env, stmt);
            break;
        case ETCH_AST_LET:
            if (stmt->tuple)
                let_several(env, stmt);
            else
                let_one(env, stmt);
            break;
        case ETCH_AST_REPEAT:
            repeat(env, stmt);
            break;
        case ETCH_AST_IF:
            branch(env, stmt);
            break;
        }
        stop_if_too_large(b, stmt->span);
    }
}

bool etch_env_results(etch_env *env, const etch_ast_item *item, etch_tensor **out)
{
    etch_spec *spec = env->builder->spec;
    bool good = true;
    for (uint32_t i = 0; i < item->results.count; i++) {
        const etch_ast_tensor *result = &item->results.at[i];
        const etch_bound_name *bound = etch_env_find(env, result->name.text);
        if (!bound || bound->kind != ETCH_BOUND_TENSOR) {
            if (!env->builder->stopped)
                etch_error(spec->diags, ETCH_E_RESULT_MISSING, result->span,
                           "%s does not define its result %s", item->name.text, result->name.text);
            good = false;
            continue;
        }
        out[i] = bound->tensor;
        etch_dims want = result->shaped ? etch_env_shape(env, &result->axes) : (etch_dims){0};
        good = good && out[i] && !want.broken && (!want.known || result_fits(spec, result, out[i], &want));
    }
    if (!good)
        etch_builder_lost(env->builder);
    return good;
}
