/* Train blocks: which one is meant, and what it says. */
#include "lang/elab_int.h"

#include <string.h>

/* ---- which one ----------------------------------------------------------------------------------------- */

static const etch_ast_def *find_option(const etch_ast_item *item, const char *name)
{
    for (uint32_t i = 0; i < item->defs.count; i++)
        if (strcmp(item->defs.at[i].name.text, name) == 0)
            return &item->defs.at[i];
    return NULL;
}

static bool spec_sees(const etch_spec *spec, const etch_symbol *symbol)
{
    for (uint32_t i = 0; i < spec->main->symbols.count; i++)
        if (spec->main->symbols.at[i] == symbol)
            return true;
    return false;
}

/* The model that a block names, without reporting anything. */
static const etch_symbol *named_model(const etch_symbol *train)
{
    const etch_ast_def *def = find_option(train->item, "model");
    const etch_symbol *symbol = def && def->value->kind == ETCH_AST_NAME
                                    ? etch_namespace_find(train->home, def->value->name.text)
                                    : NULL;
    return symbol && symbol->kind == SYMBOL_MODEL ? symbol : NULL;
}

uint32_t etch_train_candidates(const etch_spec *spec, const etch_symbol *const **list)
{
    ETCH_VEC(const etch_symbol *) own = {0}, imported = {0};
    bool own_models = false;
    for (uint32_t i = 0; i < spec->symbols.count; i++) {
        const etch_symbol *symbol = spec->symbols.at[i];
        own_models = own_models || (symbol->kind == SYMBOL_MODEL && symbol->home == spec->main);
        if (symbol->kind != SYMBOL_TRAIN)
            continue;
        if (symbol->home == spec->main)
            ETCH_PUSH(spec->arena, &own, symbol);
        else if (named_model(symbol) && spec_sees(spec, named_model(symbol)))
            ETCH_PUSH(spec->arena, &imported, symbol);
    }
    const bool choose_own = own.count > 0 || own_models;
    *list = choose_own ? own.at : imported.at;
    return choose_own ? own.count : imported.count;
}

static const char *run_names(const etch_spec *spec)
{
    const etch_symbol *const *list;
    const uint32_t count = etch_train_candidates(spec, &list);
    etch_buf text = {.arena = spec->arena};
    for (uint32_t i = 0; i < count; i++)
        etch_buf_printf(&text, "%s%s", i ? ", " : "", list[i]->name);
    return count ? text.text : "none";
}

static const etch_symbol *find_run(etch_spec *spec, const char *run, etch_span asked)
{
    const etch_symbol *const *list;
    const uint32_t count = etch_train_candidates(spec, &list);
    const char *name = etch_name_of(spec->names, run);
    for (uint32_t i = 0; i < count; i++)
        if (list[i]->name == name)
            return list[i];
    const etch_symbol *symbol = etch_namespace_find(spec->main, name);
    if (symbol && symbol->kind == SYMBOL_TRAIN)
        return symbol;
    if (symbol && symbol->kind == SYMBOL_INFER) {
        etch_diag *diag = etch_error(spec->diags, ETCH_E_LATER, asked.end ? asked : symbol->item->name.span,
                                     "infer blocks are part of the language but are not given meaning yet");
        etch_note(diag, symbol->item->name.span, "'%s' is declared here", run);
        return NULL;
    }
    const char **names = ETCH_NEW_ARRAY(spec->arena, count, const char *);
    for (uint32_t i = 0; i < count; i++)
        names[i] = list[i]->name;
    etch_diag *diag = etch_error(spec->diags, ETCH_E_RUN, asked, "there is no train block '%s'", run);
    etch_suggest_name(diag, run, names, count);
    etch_note(diag, (etch_span){0, 0}, "train blocks: %s", run_names(spec));
    return NULL;
}

const etch_symbol *etch_train_symbol(etch_spec *spec, const char *run, etch_span asked)
{
    if (run)
        return find_run(spec, run, asked);
    const etch_symbol *const *list;
    const uint32_t count = etch_train_candidates(spec, &list);
    if (count <= 1)
        return count ? list[0] : NULL;
    etch_diag *diag =
        etch_error(spec->diags, ETCH_E_RUN, asked, "the spec has several train blocks: %s", run_names(spec));
    for (uint32_t i = 0; i < count; i++)
        etch_note(diag, list[i]->item->span, "'%s' is here", list[i]->name);
    etch_help(diag, "say which one is meant: run = NAME");
    return NULL;
}

static const etch_symbol *only_model(etch_spec *spec, const etch_symbol *train)
{
    const etch_symbol *found = NULL;
    uint32_t count = 0, own = 0;
    for (uint32_t i = 0; i < train->home->symbols.count; i++) {
        const etch_symbol *symbol = train->home->symbols.at[i];
        const bool is_own = symbol->home == train->home;
        if (symbol->kind != SYMBOL_MODEL || (own > 0 && !is_own))
            continue;
        count = is_own && own == 0 ? 1 : count + 1;
        own += is_own;
        found = symbol;
    }
    if (count == 1)
        return found;
    etch_diag *diag = etch_error(spec->diags, ETCH_E_NO_MODEL, train->item->span,
                                 count ? "this train block does not say which model it trains"
                                       : "there is no model that this block could train");
    etch_help(diag, "name it: model = NAME");
    return NULL;
}

const etch_symbol *etch_train_model(etch_spec *spec, const etch_symbol *train)
{
    const etch_ast_def *def = find_option(train->item, "model");
    if (!def)
        return only_model(spec, train);
    const etch_symbol *symbol = named_model(train);
    if (symbol || def->value->kind == ETCH_AST_BROKEN)
        return symbol;
    if (def->value->kind != ETCH_AST_NAME) {
        etch_error(spec->diags, ETCH_E_NO_MODEL, def->value->span, "a model is given by its name");
        return NULL;
    }
    const etch_symbol *other = etch_namespace_find(train->home, def->value->name.text);
    if (!other) {
        etch_unknown_name(spec, train->home, "model", def->value->name, NULL, 0);
        return NULL;
    }
    etch_error(spec->diags, ETCH_E_NO_MODEL, def->value->span, "'%s' is a %s, not a model",
               def->value->name.text, etch_symbol_kind_name(other->kind));
    return NULL;
}

/* ---- what it says -------------------------------------------------------------------------------------- */

typedef struct filling {
    etch_spec *spec;
    const etch_symbol *symbol;
    etch_dim *(*dim_of)(void *data, etch_ast_name name);
    void *data;
    etch_train *train;
} filling;

static void wrong(const filling *f, etch_span span, const char *message)
{
    etch_error(f->spec->diags, ETCH_E_TRAIN_OPTION, span, "%s", message);
}

static void later(const filling *f, etch_span span, const char *what)
{
    etch_error(f->spec->diags, ETCH_E_LATER, span, "%s is part of the language but is not given meaning yet",
               what);
}

static void read_model(filling *f, const etch_ast_def *def)
{
    (void)f;
    (void)def; /* etch_train_model reads it */
}

static void read_accumulate(filling *f, const etch_ast_def *def)
{
    const etch_ast_expr *value = def->value;
    if (value->kind != ETCH_AST_TUPLE || value->items.count != 2 ||
        value->items.at[0]->kind != ETCH_AST_NAME) {
        wrong(f, value->span, "accumulate is a dim and the number of microbatches: accumulate = (B, micro)");
        return;
    }
    const etch_lookup lookup = etch_global_lookup(f->spec, f->symbol->home);
    f->train->batch = f->dim_of(f->data, value->items.at[0]->name);
    f->train->micro = etch_value_of(f->spec, value->items.at[1], &lookup);
}

static void read_optimizer_argument(filling *f, const etch_ast_arg *arg)
{
    static const char *const known[] = {"master"}, *const others[] = {"ema", "momentum", "beta1", "beta2",
                                                                      "decay"};
    if (!arg->name.text) {
        wrong(f, arg->value->span, "arguments of an optimizer have names: adamw(master = true)");
    } else if (strcmp(arg->name.text, known[0]) == 0) {
        if (arg->value->kind == ETCH_AST_TRUTH)
            f->train->optimizer.master = arg->value->truth;
        else
            wrong(f, arg->value->span, "master is true or false");
    } else {
        for (uint32_t i = 0; i < sizeof others / sizeof *others; i++)
            if (strcmp(arg->name.text, others[i]) == 0) {
                later(f, arg->name.span, etch_text(f->spec->arena, "'%s' of an optimizer", others[i]));
                return;
            }
        etch_diag *diag = etch_error(f->spec->diags, ETCH_E_TRAIN_OPTION, arg->name.span,
                                     "adamw has no argument '%s'", arg->name.text);
        etch_suggest_name(diag, arg->name.text, known, 1);
    }
}

static void read_optimizer(filling *f, const etch_ast_def *def)
{
    static const char *const known[] = {"adamw"};
    static const char *const others[] = {"sgd",  "adam", "adagrad", "rowwise_adagrad", "adafactor",
                                         "lion", "muon", "lamb",    "shampoo",         "none"};
    const etch_ast_expr *value = def->value;
    if (value->kind != ETCH_AST_NAME && value->kind != ETCH_AST_CALL) {
        wrong(f, value->span, "an optimizer is written like optimizer = adamw(master = true)");
        return;
    }
    for (uint32_t i = 0; i < sizeof others / sizeof *others; i++)
        if (strcmp(value->name.text, others[i]) == 0) {
            later(f, value->name.span, etch_text(f->spec->arena, "the optimizer '%s'", others[i]));
            return;
        }
    if (strcmp(value->name.text, known[0]) != 0) {
        etch_diag *diag = etch_error(f->spec->diags, ETCH_E_TRAIN_OPTION, value->name.span,
                                     "there is no optimizer '%s'", value->name.text);
        etch_suggest_name(diag, value->name.text, known, 1);
        return;
    }
    f->train->optimizer.row = etch_row_named(etch_table_builtin(), known[0]);
    for (uint32_t i = 0; value->kind == ETCH_AST_CALL && i < value->args.count; i++)
        read_optimizer_argument(f, &value->args.at[i]);
}

static void read_recompute(filling *f, const etch_ast_def *def)
{
    etch_recompute recompute;
    if (etch_recompute_of(f->spec, def, &recompute))
        etch_train_recompute(f->train, &recompute);
}

static void read_clip(filling *f, const etch_ast_def *def)
{
    if (def->value->kind == ETCH_AST_NAME && strcmp(def->value->name.text, "none") == 0)
        return;
    const etch_lookup lookup = etch_global_lookup(f->spec, f->symbol->home);
    etch_expr limit = etch_value_of(f->spec, def->value, &lookup);
    if (limit && etch_is_constant(limit) &&
        etch_constant_compare(f->spec->sym, limit, etch_int(f->spec->sym, 0)) <= 0)
        wrong(f, def->value->span, "the norm that gradients are clipped to is above 0");
    f->train->clip = limit != NULL;
}

/* One row per option; without a reader it has a meaning in a later version only. */
static const struct option {
    const char *name;
    void (*read)(filling *f, const etch_ast_def *def);
} options[] = {
    {"model", read_model},
    {"optimizer", read_optimizer},
    {"accumulate", read_accumulate},
    {"recompute", read_recompute},
    {"clip", read_clip},
    {"freeze", NULL},
    {"adapt", NULL},
    {"report", NULL},
    {"save", NULL},
    {"offload", NULL},
    {"keep", NULL},
    {"schedule", NULL},
    {"output", NULL},
    {"dtype", NULL},
};
enum { OPTION_COUNT = sizeof options / sizeof *options };

/* `train update { seq = prompt + gen }` binds a param for this run alone. */
static bool is_param(const filling *f, const char *name)
{
    const etch_symbol *symbol = etch_namespace_find(f->symbol->home, name);
    return symbol && symbol->kind == SYMBOL_PARAM;
}

static void read_option(filling *f, const etch_ast_def *def)
{
    const char *names[OPTION_COUNT];
    for (uint32_t i = 0; i < OPTION_COUNT; i++) {
        names[i] = options[i].name;
        if (strcmp(options[i].name, def->name.text) != 0)
            continue;
        if (options[i].read)
            options[i].read(f, def);
        else
            later(f, def->span, etch_text(f->spec->arena, "'%s' in a train block", def->name.text));
        return;
    }
    if (is_param(f, def->name.text)) {
        later(f, def->span, "a param that a train block binds");
        return;
    }
    etch_diag *diag = etch_error(f->spec->diags, ETCH_E_TRAIN_OPTION, def->name.span,
                                 "a train block has no option '%s'", def->name.text);
    etch_suggest_name(diag, def->name.text, names, OPTION_COUNT);
}

bool etch_train_fill(etch_spec *spec, const etch_symbol *symbol,
                     etch_dim *(*dim_of)(void *data, etch_ast_name name), void *data, etch_train *train)
{
    const uint32_t errors = etch_error_count(spec->diags);
    filling f = {.spec = spec, .symbol = symbol, .dim_of = dim_of, .data = data, .train = train};
    *train = (etch_train){.micro = etch_int(spec->sym, 1), .span = symbol->item->span};
    const etch_ast_defs *defs = &symbol->item->defs;
    for (uint32_t i = 0; i < defs->count; i++) {
        const etch_ast_def *first = find_option(symbol->item, defs->at[i].name.text);
        if (first != &defs->at[i]) {
            etch_diag *diag = etch_error(spec->diags, ETCH_E_TRAIN_OPTION, defs->at[i].span,
                                         "'%s' is given twice", defs->at[i].name.text);
            etch_note(diag, first->span, "it is given here already");
            continue;
        }
        read_option(&f, &defs->at[i]);
    }
    return etch_error_count(spec->diags) == errors;
}
