/* Bindings: which value each param and mesh axis has, and from where. */
#include "lang/lang.h"
#include "lang/model/blocks.h"
#include "lang/names/series.h"
#include "lang/plan/lookup.h"
#include "lang/spec_int.h"

#include <string.h>

enum { ETCH_VALUE_DEPTH = 200 };
enum { VALUE_NEW, VALUE_OPEN, VALUE_DONE };

const char *etch_given_by_name(etch_given_by by)
{
    static const char *const names[ETCH_GIVEN_BY_COUNT] = {[ETCH_GIVEN_BY_RUN] = "run",
                                                           [ETCH_GIVEN_BY_SET] = "set",
                                                           [ETCH_GIVEN_BY_CONFIG] = "config",
                                                           [ETCH_GIVEN_BY_DEFAULT] = "default"};
    return (unsigned)by < ETCH_GIVEN_BY_COUNT ? names[by] : NULL;
}

/* A name that may have a value. */
typedef struct slot {
    etch_expr var;
    const char *name;
    /* NULL: an axis */
    const etch_param *param;
    etch_range range;
    /* where the name is declared */
    etch_span span;
    /* NULL: none; and as it is written */
    etch_expr value, written;
    etch_given_by from;
    etch_span value_span;
    /* of `value`: does it still speak of other slots? */
    uint8_t state;
    /* the user wants it without a value */
    bool open;
    /* no param or axis: the tokens of a step, which one of those is to make so many */
    bool tokens;
} slot;

typedef struct binder {
    etch_spec *spec;
    /* may be NULL */
    const etch_plan *plan;
    /* params in order of declaration, then what the mesh is made of */
    ETCH_VEC(slot) slots;
    ETCH_VEC(etch_hidden) hidden;
} binder;

/* ---- slots --------------------------------------------------------------------------------------------- */

static binder new_binder(etch_spec *spec, const etch_plan *plan)
{
    binder b = {.spec = spec, .plan = plan};
    for (uint32_t i = 0; i < spec->params.count; i++) {
        const etch_param *param = &spec->params.at[i];
        ETCH_PUSH(spec->arena, &b.slots,
                  (slot){.var = param->var,
                         .name = param->name,
                         .param = param,
                         .range = spec->ranges[i],
                         .span = param->span});
    }
    const etch_axis *axes;
    const uint32_t count = plan ? etch_plan_vars(spec, plan, &axes) : 0;
    for (uint32_t i = 0; i < count; i++)
        ETCH_PUSH(
            spec->arena, &b.slots,
            (slot){.var = axes[i].size, .name = axes[i].name, .range = {.least = 1}, .span = axes[i].span});
    return b;
}

static int32_t slot_of_var(const binder *b, etch_expr var)
{
    for (uint32_t i = 0; i < b->slots.count; i++)
        if (b->slots.at[i].var == var)
            return (int32_t)i;
    return -1;
}

/* A param that the spec does not see, by its own name when no other has it. */
static int32_t hidden_param(const binder *b, const char *name)
{
    int32_t found = -1;
    for (uint32_t i = 0; i < b->spec->symbols.count; i++) {
        const etch_symbol *symbol = b->spec->symbols.at[i];
        if (symbol->kind != ETCH_SYMBOL_PARAM || (symbol->name != name && symbol->param->name != name))
            continue;
        if (symbol->param->name == name)
            return slot_of_var(b, symbol->param->var);
        if (found >= 0)
            return -1;
        found = slot_of_var(b, symbol->param->var);
    }
    return found;
}

static const char *mesh_text(const binder *b)
{
    etch_buf text = {.arena = b->spec->arena};
    for (uint32_t i = 0; i < b->plan->mesh.count; i++)
        etch_buf_printf(&text, "%s%s", i ? ", " : "", b->plan->mesh.at[i].name);
    return b->plan->mesh.count ? text.text : "";
}

/* ---- names --------------------------------------------------------------------------------------------- */

static void report_unknown(const binder *b, const etch_namespace *space, etch_ast_name name)
{
    etch_spec *spec = b->spec;
    ETCH_VEC(const char *) names = {0};
    for (uint32_t i = 0; i < space->symbols.count; i++)
        if (space->symbols.at[i]->kind == ETCH_SYMBOL_PARAM)
            ETCH_PUSH(spec->arena, &names, space->names.at[i]);
    for (uint32_t i = spec->params.count; i < b->slots.count; i++)
        ETCH_PUSH(spec->arena, &names, b->slots.at[i].name);
    etch_diag *diag = etch_error(spec->diags, ETCH_E_UNKNOWN_BINDING, name.span,
                                 "there is no param or mesh axis '%s'", name.text);
    etch_suggest_name(diag, name.text, names.at, names.count);
}

static void report_no_param(const binder *b, const etch_symbol *symbol, etch_ast_name name)
{
    etch_diag *diag =
        etch_error(b->spec->diags, ETCH_E_NOT_A_PARAM, name.span, "'%s' is a %s: only params have values",
                   name.text, etch_symbol_kind_name(symbol->kind));
    if (symbol->kind == ETCH_SYMBOL_DIM)
        etch_note(diag, symbol->def->span, "its size is declared here");
}

static void report_computed(const binder *b, etch_ast_name name)
{
    const etch_plan *plan = b->plan;
    etch_spec *spec = b->spec;
    etch_expr size = etch_plan_value(spec, plan, name.text);
    etch_diag *diag = etch_error(spec->diags, ETCH_E_NOT_A_PARAM, name.span,
                                 "in plan '%s', '%s' is %s: its size follows from others", plan->name,
                                 name.text, size ? etch_expr_text(spec->sym, size) : "undefined");
    etch_note(diag, plan->span, "the plan is here");
}

static void report_no_axis(const binder *b, etch_ast_name name)
{
    etch_diag *diag = etch_error(b->spec->diags, ETCH_E_AXIS_NOT_IN_PLAN, name.span,
                                 "plan '%s' has no mesh axis '%s'", b->plan->name, name.text);
    etch_note(diag, b->plan->span, "its mesh is [%s]", mesh_text(b));
}

/* May the size of a step be given as `tokens`? Nothing else is called so, and there is a step. */
static bool is_tokens(const binder *b, const char *name)
{
    const char *const *models;
    return strcmp(name, "tokens") == 0 && etch_spec_list(b->spec, ETCH_LIST_MODELS, &models) > 0;
}

/* A name that is nowhere declared. */
static int32_t add_slot(binder *b, const char *name, bool tokens)
{
    ETCH_PUSH(
        b->spec->arena, &b->slots,
        (slot){.var = etch_var(b->spec->sym, name), .name = name, .range = {.least = 1}, .tokens = tokens});
    return (int32_t)b->slots.count - 1;
}

/* The slot of a name as `space` sees it; with `all`, of any file. -1 after an error. */
static int32_t find_slot(binder *b, const etch_namespace *space, etch_ast_name name, bool all)
{
    etch_spec *spec = b->spec;
    const etch_symbol *symbol = etch_namespace_find(space, name.text);
    if (symbol && symbol->kind == ETCH_SYMBOL_PARAM)
        return slot_of_var(b, symbol->param->var);
    for (uint32_t i = spec->params.count; i < b->slots.count; i++)
        if (strcmp(b->slots.at[i].name, name.text) == 0)
            return (int32_t)i;
    const int32_t hidden = all && !symbol ? hidden_param(b, name.text) : -1;
    if (hidden >= 0)
        return hidden;
    if (b->plan && etch_plan_value(spec, b->plan, name.text)) {
        report_computed(b, name);
    } else if (etch_plans_mention(spec, name.text)) {
        if (!b->plan ||
            etch_named_plans_mention(spec, name.text)) /* the value waits for a plan that has it */
            return add_slot(b, name.text, false);
        report_no_axis(b, name);
    } else if (symbol) {
        report_no_param(b, symbol, name);
    } else if (is_tokens(b, name.text)) {
        return add_slot(b, name.text, true);
    } else {
        report_unknown(b, space, name);
    }
    return -1;
}

bool etch_spec_settable(etch_spec *spec, const etch_plan *plan, etch_ast_name name, etch_expr *var,
                        bool *absent)
{
    binder b = new_binder(spec, plan);
    const etch_symbol *symbol = etch_namespace_find(spec->main, name.text);
    bool of_plan = symbol && symbol->kind == ETCH_SYMBOL_PARAM;
    for (uint32_t i = spec->params.count; i < b.slots.count; i++)
        of_plan = of_plan || strcmp(b.slots.at[i].name, name.text) == 0;
    *absent =
        plan && !of_plan && !etch_plan_value(spec, plan, name.text) && etch_plans_mention(spec, name.text);
    const int32_t index = *absent ? -1 : find_slot(&b, spec->main, name, true);
    *var = index < 0 ? NULL : b.slots.at[index].var;
    return index >= 0;
}

/* ---- values by origin ---------------------------------------------------------------------------------- */

static void give(binder *b, int32_t index, etch_expr value, etch_given_by from, etch_span span)
{
    slot *s = &b->slots.at[index];
    if (!value)
        return;
    s->open = value == s->var && from == ETCH_GIVEN_BY_SET; /* `--set micro=micro` */
    s->value = s->written = s->open ? NULL : value;
    s->from = from;
    s->value_span = span;
}

/* May something weaker still give it a value? */
static bool is_free(const slot *s)
{
    return !s->value && !s->open;
}

static bool is_name(const etch_ast_expr *expr, const char *name)
{
    return expr->kind == ETCH_AST_NAME && strcmp(expr->name.text, name) == 0;
}

static void bind_set(binder *b, const char *text)
{
    etch_spec *spec = b->spec;
    etch_ast_defs defs = {0};
    const etch_source *source = etch_source_add(spec->diags, "--set", text, strlen(text));
    if (!source) {
        etch_error(spec->diags, ETCH_E_SOURCES_TOO_LARGE, (etch_span){0, 0},
                   "the values and the files of the spec are too large together");
        return;
    }
    if (!etch_ast_parse_settings(&spec->context, source, &defs))
        return;
    const etch_lookup lookup = etch_plan_lookup(spec, spec->main, b->plan);
    for (uint32_t i = 0; i < defs.count; i++) {
        const etch_ast_def *def = &defs.at[i];
        const int32_t index = find_slot(b, spec->main, def->name, true);
        if (index < 0)
            continue;
        /* also a param that the spec does not see by this name */
        const bool leaves = is_name(def->value, def->name.text);
        const slot *s = &b->slots.at[index];
        etch_expr value = leaves ? s->var : etch_param_value(spec, s->param, def->value, &lookup);
        give(b, index, value, ETCH_GIVEN_BY_SET, def->value->span); /* the last one counts */
    }
}

static bool binds(const etch_symbol *run, const etch_ast_def *def)
{
    const bool option = run->kind == ETCH_SYMBOL_TRAIN ? etch_is_train_option(def->name.text)
                                                       : etch_is_infer_option(def->name.text);
    return !option && etch_run_names_param(run, def);
}

/* Lines of the run: they hold whatever the user says otherwise, because the run is what they make it. */
static void bind_run(binder *b, const etch_symbol *run)
{
    const etch_lookup lookup = etch_plan_lookup(b->spec, run->home, b->plan);
    for (uint32_t i = 0; i < run->item->defs.count; i++) {
        const etch_ast_def *def = &run->item->defs.at[i];
        if (!binds(run, def))
            continue;
        const int32_t index = find_slot(b, run->home, def->name, false);
        if (index < 0)
            continue;
        const slot *s = &b->slots.at[index];
        if (s->value)
            ETCH_PUSH(b->spec->arena, &b->hidden,
                      (etch_hidden){s->name, run->name, s->value_span, def->span});
        give(b, index, etch_param_value(b->spec, s->param, def->value, &lookup), ETCH_GIVEN_BY_RUN,
             def->value->span);
    }
}

static const etch_symbol *find_config(etch_spec *spec, const char *name)
{
    const etch_symbol *symbol = etch_namespace_find(spec->main, etch_name_of(spec->names, name));
    if (symbol && symbol->kind == ETCH_SYMBOL_CONFIG)
        return symbol;
    const char *const *names;
    const uint32_t count = etch_spec_list(spec, ETCH_LIST_CONFIGS, &names);
    etch_diag *diag =
        etch_error(spec->diags, ETCH_E_UNKNOWN_CONFIG, (etch_span){0, 0}, "there is no config '%s'", name);
    etch_suggest_name(diag, name, names, count);
    etch_note(diag, (etch_span){0, 0}, "configs: %s", etch_listing_text(spec, ETCH_LIST_CONFIGS));
    return NULL;
}

static void bind_config(binder *b, const etch_symbol *config)
{
    etch_spec *spec = b->spec;
    const etch_lookup lookup = etch_plan_lookup(spec, config->home, b->plan);
    for (uint32_t i = 0; i < config->item->defs.count; i++) {
        const etch_ast_def *def = &config->item->defs.at[i];
        const int32_t index = find_slot(b, config->home, def->name, false);
        const slot *s = index >= 0 ? &b->slots.at[index] : NULL;
        if (s && is_free(s))
            give(b, index, etch_param_value(spec, s->param, def->value, &lookup), ETCH_GIVEN_BY_CONFIG,
                 def->value->span);
    }
}

static void bind_param_defaults(binder *b)
{
    etch_spec *spec = b->spec;
    for (uint32_t i = 0; i < spec->symbols.count; i++) {
        const etch_symbol *symbol = spec->symbols.at[i];
        /* The first slots are the params', in their order. */
        const int32_t index =
            symbol->kind == ETCH_SYMBOL_PARAM ? (int32_t)(symbol->param - spec->params.at) : -1;
        if (index >= 0 && symbol->param->value && is_free(&b->slots.at[index]))
            give(b, index, symbol->param->value, ETCH_GIVEN_BY_DEFAULT, symbol->def->value->span);
    }
}

static void bind_axis_defaults(binder *b)
{
    const etch_expr one = etch_int(b->spec->sym, 1);
    for (uint32_t i = b->spec->params.count; i < b->slots.count; i++)
        if (is_free(&b->slots.at[i]) && !b->slots.at[i].tokens)
            give(b, (int32_t)i, one, ETCH_GIVEN_BY_DEFAULT, b->slots.at[i].span);
    for (uint32_t i = 0; b->plan && i < b->plan->mesh.count; i++) {
        const int32_t index = slot_of_var(b, b->plan->mesh.at[i].size); /* a param that is an axis */
        if (index >= 0 && is_free(&b->slots.at[index]))
            give(b, index, one, ETCH_GIVEN_BY_DEFAULT, b->plan->mesh.at[i].span);
    }
}

/* ---- values that speak of one another ------------------------------------------------------------------ */

static bool settle(binder *b, uint32_t index, uint32_t depth);

/* How many a text or list has, where it has a value. */
static etch_expr length_in(const binder *b, const slot *s)
{
    const etch_series *series = s->param && s->value ? etch_series_of(b->spec, s->value) : NULL;
    return series ? etch_int(b->spec->sym, series->count) : NULL;
}

/* The value of `len(kinds)`, or the variable as it is. */
static etch_expr settled_length(const binder *b, etch_expr var)
{
    for (uint32_t i = 0; i < b->spec->params.count; i++) {
        if (b->spec->params.at[i].length != var)
            continue;
        const etch_expr length = length_in(b, &b->slots.at[i]);
        return length ? length : var;
    }
    return var;
}

static bool settle_vars(binder *b, const slot *s, const etch_expr *vars, uint32_t count, etch_expr *values,
                        uint32_t depth)
{
    for (uint32_t i = 0; i < count; i++) {
        const int32_t other = slot_of_var(b, vars[i]);
        values[i] = settled_length(b, vars[i]);
        if (other < 0 || !b->slots.at[other].value)
            continue;
        if (b->slots.at[other].state == VALUE_OPEN) {
            etch_diag *diag = etch_error(b->spec->diags, ETCH_E_BINDING_CYCLE, s->value_span,
                                         "the value of '%s' needs itself", b->slots.at[other].name);
            if (b->slots.at[other].name != s->name)
                etch_note(diag, b->slots.at[other].value_span, "'%s' is given here", b->slots.at[other].name);
            return false;
        }
        if (!settle(b, (uint32_t)other, depth + 1))
            return false;
        values[i] = b->slots.at[other].value;
    }
    return true;
}

/* Puts values into the value of a slot, so that it speaks of no other slot that has one. False after an
 * error; the slot has no value then. */
static bool settle(binder *b, uint32_t index, uint32_t depth)
{
    etch_spec *spec = b->spec;
    slot *s = &b->slots.at[index];
    if (s->state == VALUE_DONE)
        return s->value != NULL;
    s->state = VALUE_OPEN;
    const etch_expr *vars = NULL;
    const uint32_t count = etch_vars_of(spec->sym, s->value, &vars);
    etch_expr *values = ETCH_NEW_ARRAY(spec->arena, count, etch_expr);
    bool fine = depth < ETCH_VALUE_DEPTH;
    if (!fine)
        etch_error(spec->diags, ETCH_E_TOO_DEEP, s->value_span,
                   "values need one another in a chain of more than %d", ETCH_VALUE_DEPTH);
    fine = fine && settle_vars(b, s, vars, count, values, depth);
    if (fine) {
        etch_expr value = etch_subst(spec->sym, s->value, count, vars, values);
        if (!value)
            etch_error(spec->diags, ETCH_E_VALUE_UNDEFINED, s->value_span,
                       "the value of '%s' is undefined: '%s' divides by zero", s->name,
                       etch_expr_text(spec->sym, s->value));
        fine = value != NULL;
        s->value = value;
    }
    if (!fine)
        s->value = NULL;
    s->state = VALUE_DONE;
    return fine;
}

static void check_range(const binder *b, const slot *s)
{
    etch_sym *sym = b->spec->sym;
    if (!s->value || !etch_is_constant(s->value) || (s->param && s->param->length))
        return;
    const char *text = etch_expr_text(sym, s->value);
    etch_diag *diag;
    if (s->range.type == ETCH_PARAM_REAL) {
        if (etch_constant_compare(sym, s->value, etch_int(sym, 0)) > 0)
            return;
        diag = etch_error(b->spec->diags, ETCH_E_BELOW_BOUND, s->value_span, "%s = %s is not above 0",
                          s->name, text);
    } else if (!etch_is_integer_constant(s->value)) {
        diag = etch_error(b->spec->diags, ETCH_E_NOT_AN_INTEGER, s->value_span, "%s = %s is no integer",
                          s->name, text);
    } else if (etch_constant_compare(sym, s->value, etch_int(sym, s->range.least)) < 0) {
        diag = etch_error(b->spec->diags, ETCH_E_BELOW_BOUND, s->value_span, "%s = %s is less than %lld",
                          s->name, text, (long long)s->range.least);
    } else {
        return;
    }
    etch_note(diag, s->span, "'%s' is declared here", s->name);
}

static void settle_slots(binder *b)
{
    for (uint32_t i = 0; i < b->slots.count; i++)
        if (b->slots.at[i].value)
            settle(b, i, 0);
}

static void settle_all(binder *b)
{
    settle_slots(b);
    for (uint32_t i = 0; i < b->slots.count; i++)
        check_range(b, &b->slots.at[i]);
}

static void collect(const binder *b, bool defaults, etch_settings *out)
{
    ETCH_VEC(etch_setting) list = {0};
    for (uint32_t i = 0; i < b->slots.count; i++) {
        const slot *s = &b->slots.at[i];
        const etch_expr length = length_in(b, s);
        if (!s->value || (!defaults && s->from == ETCH_GIVEN_BY_DEFAULT))
            continue;
        ETCH_PUSH(b->spec->arena, &list,
                  (etch_setting){s->var, s->name, s->value, s->from, s->value_span, s->written,
                                 .several = length != NULL});
        if (length)
            ETCH_PUSH(b->spec->arena, &list,
                      (etch_setting){s->param->length, etch_expr_text(b->spec->sym, s->param->length), length,
                                     s->from, s->value_span, length, .derived = true});
    }
    *out = (etch_settings){
        .at = list.at, .count = list.count, .hidden = b->hidden.at, .hidden_count = b->hidden.count};
}

/* ---- the tokens of a step ------------------------------------------------------------------------------ */

/* Where `tokens` has a value, gives the one name its value that makes a step of so many. The other values are
 * settled on the side: some may speak of that name. The result speaks of all whose defaults were needed. */
static etch_expr bind_tokens(binder *b, const char *run)
{
    etch_spec *spec = b->spec;
    const slot *tokens = NULL;
    for (uint32_t i = 0; i < b->slots.count; i++)
        if (b->slots.at[i].tokens && b->slots.at[i].value)
            tokens = &b->slots.at[i];
    if (!tokens)
        return NULL;
    const uint32_t errors = etch_error_count(spec->diags);
    binder trial = *b;
    trial.slots.at = ETCH_NEW_ARRAY(spec->arena, b->slots.count, slot);
    memcpy(trial.slots.at, b->slots.at, b->slots.count * sizeof(slot));
    settle_slots(&trial);
    if (etch_error_count(spec->diags) != errors)
        return NULL;
    etch_token_goal goal = {.run = run, .value = tokens->value, .span = tokens->value_span};
    collect(&trial, false, &goal.given);
    collect(&trial, true, &goal.all);
    etch_token_answer answer;
    const int32_t index =
        etch_tokens_solve(spec, &goal, &answer) && answer.var ? slot_of_var(b, answer.var) : -1;
    if (index >= 0)
        give(b, index, answer.value, tokens->from, tokens->value_span);
    return index >= 0 ? answer.needed : NULL;
}

/* ---- the entry points ---------------------------------------------------------------------------------- */

const char *etch_spec_config(const etch_spec *spec, const char *config)
{
    return config ? config : spec->use_config;
}

bool etch_spec_bind(etch_spec *spec, const char *run_name, const char *config, const char *const *sets,
                    uint32_t set_count, etch_defaults defaults, const etch_plan *plan, etch_settings *out)
{
    const uint32_t errors = etch_error_count(spec->diags);
    binder b = new_binder(spec, plan);
    const char *config_name = etch_spec_config(spec, config);
    *out = (etch_settings){0};
    for (uint32_t i = 0; i < set_count; i++)
        bind_set(&b, sets[i]);
    const etch_symbol *run = etch_run_in_force(spec, run_name);
    if (run)
        bind_run(&b, run);
    const etch_symbol *symbol = config_name ? find_config(spec, config_name) : NULL;
    if (symbol)
        bind_config(&b, symbol);
    const bool of_config = symbol && defaults == ETCH_DEFAULTS_OF_CONFIG;
    if (of_config || defaults == ETCH_DEFAULTS_ALL)
        bind_param_defaults(&b);
    if (defaults == ETCH_DEFAULTS_ALL)
        bind_axis_defaults(&b);
    etch_expr leaned = etch_error_count(spec->diags) == errors ? bind_tokens(&b, run_name) : NULL;
    settle_all(&b);
    collect(&b, true, out);
    if (of_config) {
        out->needed = ETCH_NEW_ARRAY(spec->arena, out->count, bool);
        out->config_span = symbol->item->name.span;
        etch_settings_need(spec->sym, out, leaned);
    }
    if (plan && etch_error_count(spec->diags) == errors)
        etch_plan_check_bound(spec, plan, out);
    return etch_error_count(spec->diags) == errors;
}

/* ---- at loading ---------------------------------------------------------------------------------------- */

static void check_config(binder *b, const etch_symbol *config)
{
    const etch_ast_defs *defs = &config->item->defs;
    for (uint32_t i = 0; i < defs->count; i++) {
        uint32_t first = 0;
        while (defs->at[first].name.text != defs->at[i].name.text)
            first++;
        if (first == i) {
            find_slot(b, config->home, defs->at[i].name, false);
            continue;
        }
        etch_diag *diag = etch_error(b->spec->diags, ETCH_E_BOUND_TWICE, defs->at[i].span,
                                     "config '%s' binds '%s' twice", config->name, defs->at[i].name.text);
        etch_note(diag, defs->at[first].span, "it is bound here already");
    }
}

void etch_bindings_check(etch_spec *spec)
{
    binder b = new_binder(spec, NULL);
    bind_param_defaults(&b);
    settle_all(&b);
    for (uint32_t i = 0; i < spec->symbols.count; i++)
        if (spec->symbols.at[i]->kind == ETCH_SYMBOL_CONFIG)
            check_config(&b, spec->symbols.at[i]);
}
