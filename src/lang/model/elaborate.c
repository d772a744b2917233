/* The elaboration of a model into a graph: which one, its inputs, its body, what its run asks for. */
#include <string.h>

#include "lang/model/model_int.h"
#include "lang/names/series.h"

static const etch_symbol *only_model(etch_spec *spec)
{
    const etch_symbol *own = NULL, *any = NULL;
    uint32_t own_count = 0, count = 0;
    for (uint32_t i = 0; i < spec->main->symbols.count; i++) {
        const etch_symbol *symbol = spec->main->symbols.at[i];
        if (symbol->kind != ETCH_SYMBOL_MODEL)
            continue;
        any = symbol, count++;
        if (symbol->home == spec->main)
            own = symbol, own_count++;
    }
    if (own_count == 1)
        return own;
    if (own_count == 0 && count == 1)
        return any;
    etch_diag *diag = etch_error(spec->diags, ETCH_E_NO_MODEL, (etch_span){0, 0},
                                 count ? "the spec has %u models and no train block that names one"
                                       : "the spec has no model",
                                 own_count ? own_count : count);
    etch_help(diag, "write `train { model = NAME, ... }`");
    return NULL;
}

/* What every param is without a word from the user: for questions that structure asks. Those with a value
 * come first. */
static void set_defaults(etch_builder *b)
{
    etch_spec *spec = b->spec;
    ETCH_VEC(etch_expr) vars = {0}, values = {0};
    etch_settings settings = *b->settings;
    settings.needed = NULL; /* a param needs nothing as long as nobody asks for it */
    for (uint32_t pass = 0; pass < 2; pass++) {
        for (uint32_t i = 0; i < spec->params.count; i++) {
            const etch_param *param = &spec->params.at[i];
            const etch_expr given = etch_settings_apply(spec->sym, &settings, param->var);
            const bool is_open = given == param->var;
            const etch_expr value = is_open ? param->value : given;
            if (!value || is_open != (pass == 1))
                continue;
            ETCH_PUSH(spec->arena, &vars, param->var);
            ETCH_PUSH(spec->arena, &values, value);
            if (!param->length)
                continue;
            ETCH_PUSH(spec->arena, &vars, param->length);
            ETCH_PUSH(spec->arena, &values, etch_int(spec->sym, etch_series_of(spec, value)->count));
        }
        if (pass == 0)
            b->graph->given_count = vars.count;
    }
    b->graph->default_vars = vars.at;
    b->graph->default_values = values.at;
    b->graph->default_count = vars.count;
}

void etch_env_inputs(etch_env *env, const etch_ast_item *item)
{
    etch_spec *spec = env->builder->spec;
    for (uint32_t i = 0; i < item->inputs.count; i++) {
        const etch_ast_tensor *formal = &item->inputs.at[i];
        etch_dims dims = etch_env_shape(env, &formal->axes);
        etch_tensor *input =
            dims.broken ? NULL
                        : etch_graph_input(env->builder->graph, formal->name.text, ETCH_DIMS(dims),
                                           etch_declared_dtype(spec, formal, env->builder->graph->dtypes.act),
                                           formal->span);
        if (input && formal->type.text)
            input->dtype_of = input;
        etch_env_declare(
            env, (etch_bound_name){.name = formal->name.text, .kind = ETCH_BOUND_TENSOR, .tensor = input},
            formal->name.span);
    }
}

/* What the statements of the model itself called so last: a program that builds one gives names to
 * results. */
static etch_tensor *made_as(const etch_env *env, const char *name)
{
    const etch_graph *graph = env->builder->graph;
    for (uint32_t i = graph->tensors.count; i-- > 0;) {
        etch_tensor *tensor = graph->tensors.at[i];
        const bool own = tensor->region == graph->forward && tensor->scope && !tensor->scope->parent;
        if (own && tensor->kind == ETCH_ACT && strcmp(tensor->name, name) == 0)
            return tensor;
    }
    return NULL;
}

static void report_no_output(etch_env *env, const etch_symbol *run, etch_ast_name name)
{
    etch_spec *spec = env->builder->spec;
    ETCH_VEC(const char *) names = {0};
    for (uint32_t i = 0; i < env->names.count; i++)
        if (env->names.at[i].kind == ETCH_BOUND_TENSOR)
            ETCH_PUSH(spec->arena, &names, env->names.at[i].name);
    etch_diag *diag = etch_error(spec->diags, ETCH_E_UNKNOWN_NAME, name.span, "model %s makes no tensor '%s'",
                                 env->builder->graph->model, name.text);
    etch_note(diag, run->item->name.span, "run '%s' is declared here", run->name);
    etch_suggest_name(diag, name.text, names.at, names.count);
}

static etch_dim *train_dim(void *data, etch_ast_name name)
{
    return etch_env_dim(data, name);
}

/* Microbatches are parts of the inputs: does one have the dim that is split? */
static bool batch_is_of_inputs(etch_spec *spec, const etch_graph *graph, const etch_symbol *run,
                               const etch_dim *batch)
{
    for (uint32_t i = 0; i < graph->tensors.count; i++)
        if (graph->tensors.at[i]->kind == ETCH_INPUT && etch_has_dim(graph->tensors.at[i], batch))
            return true;
    etch_error(spec->diags, ETCH_E_TRAIN_OPTION, etch_run_option(run, "accumulate")->value->span,
               "no input of model %s has dim %s, which microbatches are to split", graph->model, batch->name);
    return false;
}

/* The tensors that an infer block asks for: by name, else what the model returns. Nothing else is
 * computed. */
static bool keep_outputs(etch_env *env, const etch_symbol *run, etch_train *train, etch_tensor **results,
                         uint32_t count)
{
    etch_spec *spec = env->builder->spec;
    etch_env global = {.builder = env->builder, .home = run->home};
    etch_ast_names names;
    if (!etch_infer_read(spec, run, train_dim, &global, train, &names))
        return false;
    if (train->batch && !batch_is_of_inputs(spec, env->builder->graph, run, train->batch))
        return false;
    if (names.count == 0) {
        if (count > 0) /* a model that a program builds does not say what it returns */
            etch_graph_keep(env->builder->graph, results, count);
        return true;
    }
    etch_tensor **wanted = ETCH_NEW_ARRAY(spec->arena, names.count, etch_tensor *);
    for (uint32_t i = 0; i < names.count; i++) {
        const etch_bound_name *bound = etch_env_find(env, names.at[i].text);
        wanted[i] =
            bound && bound->kind == ETCH_BOUND_TENSOR ? bound->tensor : made_as(env, names.at[i].text);
        if (!wanted[i] && !(bound && bound->kind == ETCH_BOUND_TENSOR)) {
            report_no_output(env, run, names.at[i]);
            return false;
        }
    }
    etch_graph_keep(env->builder->graph, wanted, names.count);
    return true;
}

etch_builder etch_builder_new(etch_spec *spec, const etch_settings *settings, const etch_symbol *symbol,
                              const etch_dtypes *dtypes, uint32_t errors)
{
    const etch_ast_item *item = symbol->item;
    static const etch_settings nothing = {0};
    static const etch_inside inside = {etch_env_tensor, etch_env_body, etch_env_results, etch_env_one_value};
    etch_builder b = {
        .spec = spec, .settings = settings ? settings : &nothing, .inside = &inside, .errors = errors};
    b.graph = etch_graph_new(spec->arena, spec->sym, spec->diags, *dtypes, item->name.text, item->name.span);
    b.global_dims = ETCH_NEW_ARRAY(spec->arena, spec->symbols.count, etch_dim *);
    set_defaults(&b);
    etch_symbol_read(spec, symbol);
    return b;
}

/* States of a byte have no other dtype. */
static bool moments_are_said_once(const etch_builder *b, const etch_symbol *run, const etch_train *train)
{
    const etch_row *row = train->optimizer.row, *rest = train->optimizer.rest;
    const etch_dtype_said said = b->graph->dtypes.moments;
    if (!row || !(etch_optimizer_has_8_bits(row) || etch_optimizer_has_8_bits(rest)) || !said)
        return true;
    etch_diag *diag =
        etch_error(b->spec->diags, ETCH_E_TRAIN_OPTION, etch_run_option(run, "optimizer")->value->span,
                   "the optimizer keeps its moments in 8 bits, and a dtype line says %s",
                   etch_dtype_name((etch_dtype)(said - 1)));
    etch_help(diag, "leave one of the two out: bits = 8, or moments");
    return false;
}

/* The body of a model and what its run says. NULL after an error. */
static etch_model *build(etch_builder *b, const etch_symbol *symbol, const etch_symbol *block)
{
    etch_spec *spec = b->spec;
    const etch_ast_item *item = symbol->item;
    const bool trains = block && block->kind == ETCH_SYMBOL_TRAIN, serves = block && !trains;
    etch_env env = {.builder = b, .home = symbol->home, .results = &item->results};
    for (uint32_t i = 0; i < item->defs.count; i++)
        etch_later(spec, item->defs.at[i].span, "a parameter of a model");
    const etch_native *native = etch_native_of(spec, symbol);
    if (native)
        etch_native_build(&env, native);
    etch_env_inputs(&env, item);
    etch_env_body(&env, &item->body);
    etch_tensor **results = ETCH_NEW_ARRAY(spec->arena, item->results.count, etch_tensor *);
    etch_env_results(&env, item, results);

    etch_model *model = ETCH_NEW(spec->arena, etch_model);
    *model = (etch_model){.graph = b->graph, .trains = trains, .serves = serves, .name = item->name.text};
    model->run = block ? block->item->name.text : NULL;
    if (block)
        model->run_span = block->item->name.text ? block->item->name.span : block->item->span;
    etch_env global = {.builder = b, .home = block ? block->home : symbol->home};
    if (trains && (!etch_train_fill(spec, block, train_dim, &global, &model->train) ||
                   !moments_are_said_once(b, block, &model->train)))
        return NULL;
    if (trains && model->train.batch && !batch_is_of_inputs(spec, b->graph, block, model->train.batch))
        return NULL;
    if (etch_error_count(spec->diags) != b->errors)
        return NULL;
    etch_graph_warn_unused(b->graph, results,
                           item->results.count); /* of the model, whatever a run asks for */
    etch_warn_uncalled(b);
    if (serves && !keep_outputs(&env, block, &model->train, results, item->results.count))
        return NULL;
    const etch_spoken spoken = etch_spoken_of(spec);
    etch_graph_join_sums(b->graph, spoken.at, spoken.count);
    return model;
}

etch_model *etch_spec_elaborate(etch_spec *spec, const char *run, const etch_settings *settings,
                                const etch_plan *plan)
{
    const uint32_t errors = etch_error_count(spec->diags);
    const etch_diags_mark start = etch_diags_now(spec->diags);
    const etch_symbol *block = etch_run_symbol(spec, run, (etch_span){0, 0});
    if (etch_error_count(spec->diags) != errors)
        return NULL;
    const bool serves = block && block->kind != ETCH_SYMBOL_TRAIN;
    const etch_symbol *symbol = block ? etch_run_model(spec, block) : only_model(spec);
    if (!symbol)
        return NULL;
    const etch_dtypes dtypes = etch_dtypes_changed(spec->dtypes, plan ? &plan->precision : NULL);
    etch_builder b = etch_builder_new(spec, settings, symbol, &dtypes, errors);
    b.graph->serves = serves;
    b.graph->steps = serves ? etch_infer_steps(spec, block) : NULL;
    b.graph->step = b.graph->steps ? etch_index(spec->sym, 0) : NULL;
    if (block && !serves)
        etch_env_limits(&b, block, plan);
    etch_model *model = build(&b, symbol, block);
    etch_note_homonyms(&b, &start);
    return model;
}
