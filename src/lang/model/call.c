/* Calls: modules, with their dims and parameters, and ops of the table. */
#include <string.h>

#include "lang/model/model_int.h"

/* Functions of the language that a later version gives meaning to. */
static const char *const later_functions[] = {"gather_sum", "subsample", "triangle"};

/* Keywords of ops that a later version gives meaning to, unless they say "nothing" (0, false, none). */
static const char *const later_keywords[] = {"mask"};

static bool is_among(const char *name, const char *const *list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(list[i], name) == 0)
            return true;
    return false;
}

/* ---- arguments of modules --------------------------------------------------------------------------- */

static bool is_listed(etch_dim *const *dims, uint32_t count, const etch_dim *dim)
{
    for (uint32_t i = 0; i < count; i++)
        if (etch_dim_is_meant(dim, dims[i]))
            return true;
    return false;
}

/* The first argument whose shape has `..` says what that stands for. */
static void take_rest(etch_env *callee, const etch_ast_tensor *formal, const etch_tensor *value)
{
    etch_arena *arena = callee->builder->spec->arena;
    ETCH_VEC(etch_dim *) named = {0}, rest = {0};
    bool has_rest = false;
    for (uint32_t i = 0; i < formal->axes.count; i++) {
        const etch_ast_axis *axis = &formal->axes.at[i];
        if (axis->rest)
            has_rest = true;
        else if (axis->size->kind == ETCH_AST_NAME)
            ETCH_PUSH(arena, &named, etch_env_dim(callee, axis->size->name));
    }
    if (!has_rest || callee->rest.known)
        return;
    for (uint32_t i = 0; i < value->rank; i++)
        if (!is_listed(named.at, named.count, value->dims[i]))
            ETCH_PUSH(arena, &rest, value->dims[i]);
    callee->rest = (etch_dims){.at = rest.at, .count = rest.count, .known = true};
}

static bool has_meant(const etch_tensor *value, const etch_dim *declared)
{
    for (uint32_t i = 0; i < value->rank; i++)
        if (etch_dim_is_meant(value->dims[i], declared))
            return true;
    return false;
}

/* Do the dims fit what is declared? Says both shapes where they do not. */
static bool shape_fits(etch_env *env, const etch_ast_tensor *declared, const etch_tensor *value,
                       const etch_ast_item *item, etch_span span)
{
    etch_spec *spec = env->builder->spec;
    if (!declared->shaped)
        return true;
    etch_dims dims = etch_env_shape(env, &declared->axes);
    if (dims.broken)
        return false;
    bool fits = true;
    for (uint32_t i = 0; i < value->rank && fits; i++)
        fits = is_listed(dims.at, dims.count, value->dims[i]);
    for (uint32_t i = 0; i < dims.count && fits; i++) /* it is the same along a dim of `..` that it lacks */
        fits = has_meant(value, dims.at[i]) || is_listed(env->rest.at, env->rest.count, dims.at[i]);
    if (fits)
        return true;
    etch_diag *diag =
        etch_error(spec->diags, ETCH_E_SHAPE_MISMATCH, span, "%s has dims %s, but %s of %s is %s",
                   value->name, etch_dims_text(spec->arena, etch_dims_of(value)), declared->name.text,
                   item->name.text, etch_dims_text(spec->arena, ETCH_DIMS(dims)));
    etch_note(diag, declared->span, "declared here");
    return false;
}

/* Stands in for an argument that has a mistake, so that the body can be read for its own: a tensor as the
 * module wants it. NULL where that is not said: a shape with `..`, or none. */
static etch_tensor *stand_in(etch_env *callee, const etch_ast_tensor *formal)
{
    for (uint32_t i = 0; i < formal->axes.count; i++)
        if (formal->axes.at[i].rest)
            return NULL;
    if (!formal->shaped)
        return NULL;
    etch_dims dims = etch_env_shape(callee, &formal->axes);
    if (dims.broken)
        return NULL;
    return etch_graph_input(callee->builder->graph, formal->name.text, ETCH_DIMS(dims),
                            callee->builder->graph->dtypes.act, formal->span);
}

static bool bind_arguments(etch_env *caller, etch_env *callee, const etch_ast_item *item,
                           const etch_ast_expr *call, etch_tensor **values)
{
    for (uint32_t i = 0; i < item->inputs.count; i++) {
        const etch_ast_tensor *formal = &item->inputs.at[i];
        if (values[i])
            take_rest(callee, formal, values[i]);
        else
            values[i] = stand_in(callee, formal);
        if (!values[i] || !shape_fits(callee, formal, values[i], item, call->args.at[i].value->span))
            return false;
        etch_tensor *inside = etch_graph_pass(caller->builder->graph, ETCH_ENTER, values[i],
                                              formal->name.text, call->args.at[i].value->span);
        etch_env_declare(
            callee, (etch_bound_name){.name = formal->name.text, .kind = ETCH_BOUND_TENSOR, .tensor = inside},
            formal->name.span);
    }
    for (uint32_t i = 0; i < callee->names.count; i++) { /* tensors that came as parameters */
        etch_bound_name *b = &callee->names.at[i];
        if (i < item->defs.count && b->kind == ETCH_BOUND_TENSOR && b->tensor)
            b->tensor = etch_graph_pass(caller->builder->graph, ETCH_ENTER, b->tensor, b->name, call->span);
    }
    return true;
}

/* The arguments by position; NULL for one that has a mistake of its own. False when they are too few or too
 * many. */
static bool evaluate_arguments(etch_env *caller, const etch_ast_item *item, const etch_ast_expr *call,
                               etch_tensor ***out)
{
    etch_spec *spec = caller->builder->spec;
    uint32_t given = etch_positional_count(call), wanted = item->inputs.count;
    if (given != wanted) {
        etch_diag *diag =
            etch_error(spec->diags, ETCH_E_CALL_ARGUMENTS, call->span, "%s takes %u argument%s, %u given",
                       item->name.text, wanted, wanted == 1 ? "" : "s", given);
        etch_note(diag, item->name.span, "it is %s", etch_module_signature(spec, item));
        return false;
    }
    etch_tensor **values = ETCH_NEW_ARRAY(spec->arena, wanted, etch_tensor *);
    for (uint32_t i = 0; i < wanted; i++) {
        bool fresh;
        values[i] = caller->builder->inside->tensor(caller, call->args.at[i].value, NULL, &fresh);
    }
    *out = values;
    return true;
}

/* Calls end somewhere. A module without parameters does the same again in itself, for ever; one that has some
 * may count them down. */
static bool may_enter(etch_builder *b, const etch_symbol *symbol, const etch_ast_expr *call)
{
    const char *way = etch_calls_itself(b, symbol), *name = symbol->item->name.text;
    const bool deep = b->depth >= ETCH_CALL_DEPTH;
    if (!deep && (!way || symbol->item->defs.count > 0))
        return true;
    etch_diag *diag = way ? etch_error(b->spec->diags, ETCH_E_CALL_DEPTH, call->span,
                                       "%s calls itself without end: %s", name, way)
                          : etch_error(b->spec->diags, ETCH_E_CALL_DEPTH, call->span,
                                       "more than %d calls inside each other", ETCH_CALL_DEPTH);
    etch_note(diag, symbol->item->name.span, "%s is declared here", name);
    etch_help(diag, "what repeats is written as `repeat n { ... }`");
    b->stopped = true;
    return false;
}

static bool takes_results(etch_spec *spec, const etch_ast_item *item, const etch_ast_expr *call,
                          uint32_t results)
{
    if (item->results.count == results)
        return true;
    etch_diag *diag =
        etch_error(spec->diags, ETCH_E_CALL_ARGUMENTS, call->span, "%s has %u result%s, %u taken",
                   item->name.text, item->results.count, item->results.count == 1 ? "" : "s", results);
    etch_note(diag, item->name.span, "it is %s", etch_module_signature(spec, item));
    return false;
}

/* `instance`: whose weights the call reads; NULL: weights of its own. */
static bool call_module(etch_env *caller, const etch_symbol *symbol, const etch_instance *instance,
                        const etch_ast_expr *call, etch_tensor **out, uint32_t results)
{
    etch_builder *b = caller->builder;
    const etch_ast_item *item = symbol->item;
    etch_tensor **values;
    if (!may_enter(b, symbol, call) || !takes_results(b->spec, item, call, results) ||
        !evaluate_arguments(caller, item, call, &values))
        return false;
    etch_bound_names given = instance ? etch_instance_given(instance) : (etch_bound_names){0};
    etch_env callee = {.builder = b, .home = symbol->home, .results = &item->results};
    etch_instance_enter(caller, &callee, instance, call);
    b->depth++;
    etch_symbol_read(b->spec, symbol);
    ETCH_PUSH(b->spec->arena, &b->calls, symbol);
    etch_graph_enter(b->graph, item->name.text, call->span);
    bool good = etch_parameters_given(caller, item, call, &given) &&
                etch_parameters_bind(&callee, item, call, &given) &&
                bind_arguments(caller, &callee, item, call, values);
    if (good) {
        callee.builder->inside->body(&callee, &item->body);
        good = callee.builder->inside->results(&callee, item, out);
    }
    for (uint32_t i = 0; good && i < results; i++)
        out[i] = etch_graph_pass(b->graph, ETCH_LEAVE, out[i], item->results.at[i].name.text, call->span);
    etch_graph_leave(b->graph);
    b->calls.count--;
    b->depth--;
    return good;
}

/* ---- calls of ops ----------------------------------------------------------------------------------- */

/* The dims of `over = D` or `over = (A, B)`. */
static bool keyword_dims(etch_env *env, const etch_ast_expr *expr, etch_dim_view *dims)
{
    etch_spec *spec = env->builder->spec;
    ETCH_VEC(etch_dim *) list = {0};
    bool good = true;
    uint32_t items = expr->kind == ETCH_AST_TUPLE ? expr->items.count : 1;
    for (uint32_t i = 0; i < items; i++) {
        const etch_ast_expr *item = expr->kind == ETCH_AST_TUPLE ? expr->items.at[i] : expr;
        etch_dim *dim = NULL;
        if (item->kind == ETCH_AST_NAME)
            dim = etch_env_dim(env, item->name);
        else
            etch_error(spec->diags, ETCH_E_NOT_A_DIM, item->span, "a dim is a name");
        good = good && dim;
        ETCH_PUSH(spec->arena, &list, dim);
    }
    *dims = ETCH_DIMS(list);
    return good;
}

/* The exact number that an argument says; of a dim it is the size. NULL after an error; `*nothing` for
 * `none`. */
static etch_expr keyword_number(etch_env *env, const etch_ast_arg *arg, bool *nothing)
{
    etch_spec *spec = env->builder->spec;
    const etch_bound_name bound = etch_parameter_value(env, arg->value);
    *nothing = bound.kind == ETCH_BOUND_NOTHING;
    if (bound.kind == ETCH_BOUND_NUMBER)
        return bound.number;
    if (bound.kind == ETCH_BOUND_DIM)
        return bound.dim ? bound.dim->size : NULL;
    if (bound.kind == ETCH_BOUND_INDEX)
        etch_report_index(env, arg->value->span, &bound);
    else if (!*nothing)
        etch_error(spec->diags, ETCH_E_NOT_A_NUMBER, arg->value->span, "%s is a number, and %s is a %s",
                   arg->name.text, etch_written(spec, arg->value->span), etch_bound_kind_name(bound.kind));
    return NULL;
}

static bool read_flag(etch_env *env, const etch_ast_arg *arg, bool *flag)
{
    bool nothing;
    etch_expr value = keyword_number(env, arg, &nothing);
    int64_t number;
    if (value && etch_to_i64(value, &number) && (number == 0 || number == 1)) {
        *flag = number == 1;
        return true;
    }
    if (value)
        etch_error(env->builder->spec->diags, ETCH_E_CALL_ARGUMENTS, arg->value->span, "%s is true or false",
                   arg->name.text);
    return value || nothing;
}

/* What a call of the row may say by name: its keywords and optional operands. */
static etch_name_list arguments_of(etch_spec *spec, const etch_row *row)
{
    etch_name_list known = {0};
    const etch_keyword_info *info;
    const etch_operands operands = etch_operands_of(spec->arena, row);
    for (uint32_t i = 0; (info = etch_keyword_at(i)) != NULL; i++)
        if (info->name && (etch_row_takes(row) & info->bit))
            ETCH_PUSH(spec->arena, &known, info->name);
    for (uint32_t i = operands.least; i < operands.most && operands.names[i]; i++)
        ETCH_PUSH(spec->arena, &known, operands.names[i]);
    return known;
}

/* Other libraries' words for `over`, and for what needs no word here. */
static void help_word(etch_diag *diag, const etch_row *row, const etch_name_list *known, const char *word)
{
    static const char *const dims[] = {"axis", "axes", "dim", "dims"};
    for (uint32_t i = 0; i < known->count; i++)
        if (strcmp(known->at[i], "over") == 0 && is_among(word, dims, sizeof dims / sizeof *dims))
            etch_help(diag, "dims are named: %s(..., over = D), or over = (D, E)", etch_row_name(row));
    if (strcmp(word, "keepdim") == 0 || strcmp(word, "keepdims") == 0)
        etch_help(diag, "nothing needs a dim of size 1: what lacks a dim is the same along it");
}

static bool unknown_keyword(etch_env *env, const etch_row *row, const etch_ast_arg *arg)
{
    etch_spec *spec = env->builder->spec;
    if (is_among(arg->name.text, later_keywords, sizeof later_keywords / sizeof *later_keywords)) {
        bool nothing;
        etch_expr value = keyword_number(env, arg, &nothing);
        if (nothing || (value && etch_is_zero(value)))
            return true;
        etch_later(spec, arg->name.span,
                   etch_text(spec->arena, "%s(.., %s = ..)", etch_row_name(row), arg->name.text));
        return false;
    }
    const etch_name_list known = arguments_of(spec, row);
    const char *near = etch_nearest(arg->name.text, known.at, known.count);
    etch_diag *diag = etch_error(spec->diags, ETCH_E_CALL_ARGUMENTS, arg->name.span, "%s takes no %s",
                                 etch_row_name(row), arg->name.text);
    if (near)
        etch_help(diag, "did you mean %s?", near);
    help_word(diag, row, &known, arg->name.text);
    etch_help_arguments(spec, diag, etch_row_name(row), &known);
    return false;
}

static const etch_keyword_info *find_keyword(const etch_row *row, const char *name)
{
    const etch_keyword_info *info;
    for (uint32_t i = 0; (info = etch_keyword_at(i)) != NULL; i++)
        if (info->name && strcmp(info->name, name) == 0 && (etch_row_takes(row) & info->bit))
            return info;
    return NULL;
}

/* A number that says something: NULL for 0 and `none`. False after an error. */
static bool read_number(etch_env *env, const etch_ast_arg *arg, etch_expr *number)
{
    bool nothing;
    if (arg->value->kind == ETCH_AST_TRUTH) {
        etch_lookup lookup = etch_env_lookup(env);
        return etch_number_of(env->builder->spec, arg->value, &lookup);
    }
    etch_expr value = keyword_number(env, arg, &nothing);
    if (value && !etch_is_zero(value))
        *number = value;
    return value || nothing;
}

/* The name of a dtype of real numbers. */
static bool read_dtype(etch_env *env, const etch_ast_expr *expr, uint32_t *dtype)
{
    etch_dtype found = expr->kind == ETCH_AST_NAME ? etch_dtype_of(expr->name.text) : ETCH_DTYPE_COUNT;
    *dtype = (uint32_t)found + 1;
    if (etch_dtype_is_real(found))
        return true;
    etch_spec *spec = env->builder->spec;
    ETCH_VEC(const char *) known = {0};
    for (uint32_t i = 0; etch_dtype_is_real((etch_dtype)i); i++)
        ETCH_PUSH(spec->arena, &known, etch_dtype_name((etch_dtype)i));
    const char *near =
        expr->kind == ETCH_AST_NAME ? etch_nearest(expr->name.text, known.at, known.count) : NULL;
    etch_diag *diag =
        etch_error(spec->diags, ETCH_E_CALL_ARGUMENTS, expr->span, "this is no dtype of real numbers");
    if (near)
        etch_help(diag, "did you mean %s?", near);
    else
        etch_help(diag, "those are f64, f32, bf16, f16 and f8");
    return false;
}

static bool read_keyword(etch_env *env, const etch_keyword_info *info, const etch_ast_arg *arg,
                         etch_attrs *attrs)
{
    const etch_keyword_field field = etch_keyword_field_of(info, attrs);
    if (field.dims)
        return keyword_dims(env, arg->value, field.dims);
    if (field.dtype)
        return read_dtype(env, arg->value, field.dtype);
    return field.flag ? read_flag(env, arg, field.flag) : read_number(env, arg, field.number);
}

static bool needs_are_met(etch_env *env, const etch_row *row, const etch_ast_expr *call,
                          const etch_attrs *attrs)
{
    const etch_keyword_info *missing = etch_keyword_missing(row, attrs);
    if (!missing)
        return true;
    etch_diag *diag = etch_error(
        env->builder->spec->diags, ETCH_E_CALL_ARGUMENTS, call->span, "%s needs %s", etch_row_name(row),
        missing->name
            ? missing->name
            : etch_text(env->builder->spec->arena, "%s as its last argument", etch_keyword_text(missing)));
    if (missing->name)
        etch_help(diag, "write %s(..., %s = %s)", etch_row_name(row), missing->name,
                  missing->kind == ETCH_KIND_DIMS    ? "DIM"
                  : missing->kind == ETCH_KIND_DTYPE ? "DTYPE"
                                                     : "NUMBER");
    return false;
}

/* ---- operands of ops -------------------------------------------------------------------------------- */

static bool is_nothing(etch_env *env, const etch_ast_expr *arg)
{
    if (arg->kind != ETCH_AST_NAME)
        return false;
    const etch_bound_name *bound = etch_env_find(env, arg->name.text);
    return bound ? bound->kind == ETCH_BOUND_NOTHING : strcmp(arg->name.text, "none") == 0;
}

static bool read_operand(etch_env *env, const etch_ast_expr *arg, uint32_t slot, etch_operands *ins)
{
    bool fresh;
    if (slot >= ins->least && is_nothing(env, arg))
        return true;
    ins->at[slot] = env->builder->inside->tensor(env, arg, NULL, &fresh);
    return ins->at[slot] != NULL;
}

static bool read_positional(etch_env *env, const etch_row *row, const etch_ast_expr *call, etch_attrs *attrs,
                            etch_operands *ins)
{
    etch_spec *spec = env->builder->spec;
    uint32_t given = etch_positional_count(call);
    bool number = (etch_row_takes(row) & ETCH_KW_NUMBER) && given > ins->least;
    if (number) {
        const etch_ast_expr *last = call->args.at[--given].value;
        etch_lookup lookup = etch_env_lookup(env);
        attrs->number = etch_number_of(spec, last, &lookup);
        if (!attrs->number)
            return false;
    }
    if ((etch_row_takes(row) & ETCH_KW_DIM) && given > 0 &&
        !keyword_dims(env, call->args.at[--given].value, &attrs->over))
        return false;
    bool dtype = (etch_row_takes(row) & ETCH_KW_DTYPE) && given > ins->least;
    if (dtype && !read_dtype(env, call->args.at[--given].value, &attrs->dtype))
        return false;
    if (given < ins->least || given > ins->most) {
        const uint32_t bound = given < ins->least ? ins->least : ins->most;
        const char *limit = ins->least == ins->most ? "" : given < ins->least ? "at least " : "at most ";
        etch_diag *diag =
            etch_error(spec->diags, ETCH_E_CALL_ARGUMENTS, call->span, "%s takes %s%u operand%s, %u given",
                       etch_row_name(row), limit, bound, bound == 1 ? "" : "s", given);
        etch_help(diag, "write %s", etch_row_signature(spec, row));
        return false;
    }
    bool good = true;
    for (uint32_t i = 0; i < given; i++)
        good = read_operand(env, call->args.at[i].value, i, ins) && good;
    return good;
}

/* `over = X`, or `sink = s`: an optional operand by its name. */
static bool read_named(etch_env *env, const etch_row *row, const etch_ast_arg *arg, etch_attrs *attrs,
                       etch_operands *ins)
{
    const etch_keyword_info *info = find_keyword(row, arg->name.text);
    if (info)
        return read_keyword(env, info, arg, attrs);
    uint32_t slot = etch_operands_index(ins, arg->name.text);
    if (slot == UINT32_MAX)
        return unknown_keyword(env, row, arg);
    if (!ins->at[slot])
        return read_operand(env, arg->value, slot, ins);
    etch_error(env->builder->spec->diags, ETCH_E_CALL_ARGUMENTS, arg->name.span, "%s is given twice",
               arg->name.text);
    return false;
}

/* Is anything known against the dtype? An input of a module that is read alone, or stands in for an argument
 * with a mistake, has the dtype that it would be given. */
static bool may_be_index(const etch_builder *b, const etch_tensor *tensor)
{
    const bool integer = !etch_dtype_is_real(tensor->dtype) && tensor->dtype != ETCH_BOOL;
    const bool unknown = b->alone || etch_error_count(b->spec->diags) > b->errors;
    return integer || (unknown && etch_route_root(tensor)->kind == ETCH_INPUT);
}

/* Indices choose elements: they are integers. */
static bool indices_fit(const etch_env *env, const etch_row *row, const etch_ast_expr *call,
                        const etch_operands *ins)
{
    const etch_builder *b = env->builder;
    for (uint32_t i = 0; i < ins->most; i++) {
        const etch_tensor *tensor = ins->at[i];
        if (!tensor || !etch_row_is_index(row, i) || may_be_index(b, tensor))
            continue;
        etch_diag *diag =
            etch_error(b->spec->diags, ETCH_E_INDEX_DTYPE, call->args.at[i].value->span,
                       "%s of %s are indices, and %s is %s", ins->names[i], etch_row_name(row),
                       etch_tensor_text(b->spec->arena, tensor), etch_dtype_name(tensor->dtype));
        etch_note(diag, tensor->span, "%s is made here", tensor->name);
        if (tensor->kind == ETCH_INPUT || tensor->kind == ETCH_WEIGHT)
            etch_help(diag, "declare integers: %s: i32", etch_tensor_text(b->spec->arena, tensor));
        return false;
    }
    return true;
}

/* A row whose results are as many as are declared. */
static bool call_several(etch_env *env, const etch_row *row, const etch_ast_expr *call, etch_tensor *x,
                         const etch_attrs *attrs, const etch_dims *want, etch_tensor **out, uint32_t results)
{
    etch_spec *spec = env->builder->spec;
    etch_dim_view *declared = ETCH_NEW_ARRAY(spec->arena, results, etch_dim_view);
    for (uint32_t i = 0; i < results; i++) {
        if (want && want[i].broken)
            return false;
        if (!want || !want[i].known) {
            etch_diag *diag = etch_error(spec->diags, ETCH_E_CALL_ARGUMENTS, call->span,
                                         "%s needs the declared dims of every result", etch_row_name(row));
            etch_help(diag, "write (a[..,N], b[..,R]) = %s(x, over = D)", etch_row_name(row));
            return false;
        }
        declared[i] = ETCH_DIMS(want[i]);
    }
    return etch_graph_call_several(env->builder->graph, row, x, attrs, declared, out, results, call->span);
}

static bool call_row(etch_env *env, const etch_row *row, const etch_ast_expr *call, const etch_dims *want,
                     etch_tensor **out, uint32_t results)
{
    etch_spec *spec = env->builder->spec;
    etch_attrs attrs = {0};
    etch_operands ins = etch_operands_of(spec->arena, row);
    if (results != 1 && !etch_row_is_several(row)) {
        etch_error(spec->diags, ETCH_E_CALL_ARGUMENTS, call->span, "%s has one result, %u taken",
                   etch_row_name(row), results);
        return false;
    }
    if (!read_positional(env, row, call, &attrs, &ins))
        return false;
    for (uint32_t i = 0; i < call->args.count; i++)
        if (call->args.at[i].name.text && !read_named(env, row, &call->args.at[i], &attrs, &ins))
            return false;
    if (!needs_are_met(env, row, call, &attrs) || !indices_fit(env, row, call, &ins))
        return false;
    if (etch_row_is_several(row))
        return call_several(env, row, call, ins.at[0], &attrs, want, out, results);
    out[0] = etch_graph_call_operands(env->builder->graph, row, &ins, &attrs,
                                      want ? ETCH_DIMS(*want) : (etch_dim_view){0}, call->span);
    return out[0] != NULL;
}

/* ---- the entry points ---------------------------------------------------------------------------------- */

static bool unknown_function(etch_env *env, const etch_ast_expr *call)
{
    etch_spec *spec = env->builder->spec;
    if (is_among(call->name.text, later_functions, sizeof later_functions / sizeof *later_functions)) {
        etch_later(spec, call->name.span, etch_text(spec->arena, "the function %s", call->name.text));
        return false;
    }
    ETCH_VEC(const char *) near = {0};
    const etch_row *row;
    for (uint32_t i = 0; (row = etch_row_at(env->builder->graph->table, i)) != NULL; i++)
        if (etch_row_is_called(row))
            ETCH_PUSH(spec->arena, &near, etch_row_name(row));
    etch_diag *diag =
        etch_unknown_name(spec, env->home, "function or module", call->name, near.at, near.count);
    etch_help_word(diag, call->name.text);
    return false;
}

bool etch_env_call(etch_env *env, const etch_ast_expr *call, const etch_dims *want, etch_tensor **out,
                   uint32_t results)
{
    etch_spec *spec = env->builder->spec;
    if (env->builder->stopped || !etch_args_are_distinct(spec, call, ETCH_E_CALL_ARGUMENTS))
        return false;
    const etch_bound_name *bound = etch_env_find(env, call->name.text);
    if (bound && bound->kind == ETCH_BOUND_FUNCTION)
        return call_row(env, bound->row, call, want, out, results);
    if (bound && bound->kind == ETCH_BOUND_MODULE)
        return call_module(env, bound->module, NULL, call, out, results);
    if (bound && bound->kind == ETCH_BOUND_INSTANCE)
        return bound->module && call_module(env, bound->module, bound->instance, call, out, results);
    const etch_symbol *symbol = etch_namespace_find(env->home, call->name.text);
    if (symbol && symbol->kind == ETCH_SYMBOL_MODULE)
        return call_module(env, symbol, NULL, call, out, results);
    if (symbol && symbol->kind == ETCH_SYMBOL_MODEL) {
        etch_later(spec, call->span, "calling a model");
        return false;
    }
    /* Functions are names of their own: a param or a tensor may have the same. */
    const etch_row *row = etch_row_called(env->builder->graph->table, call->name.text);
    if (row)
        return call_row(env, row, call, want, out, results);
    if ((bound || symbol) &&
        !is_among(call->name.text, later_functions, sizeof later_functions / sizeof *later_functions)) {
        etch_error(spec->diags, ETCH_E_CALL_ARGUMENTS, call->name.span, "%s is not a function or module",
                   call->name.text);
        return false;
    }
    return unknown_function(env, call);
}
