/* Train blocks: what they say. */
#include "lang/model/model_int.h"

#include <string.h>

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

static etch_diag *later(const filling *f, etch_span span, const char *what)
{
    return etch_error(f->spec->diags, ETCH_E_LATER, span,
                      "%s is part of the language but is not given meaning yet", what);
}

static void read_model(filling *f, const etch_ast_def *def)
{
    (void)f;
    (void)def; /* etch_run_model reads it */
}

void etch_run_accumulate(etch_spec *spec, const etch_symbol *run, const etch_ast_def *def,
                         etch_dim *(*dim_of)(void *data, etch_ast_name name), void *data, etch_train *train)
{
    const etch_ast_expr *value = def->value;
    if (value->kind != ETCH_AST_TUPLE || value->items.count != 2 ||
        value->items.at[0]->kind != ETCH_AST_NAME) {
        etch_error(spec->diags, ETCH_E_TRAIN_OPTION, value->span,
                   "accumulate is a dim and the number of microbatches: accumulate = (B, micro)");
        return;
    }
    const etch_lookup lookup = etch_global_lookup(spec, run->home);
    train->batch = dim_of(data, value->items.at[0]->name);
    train->micro = etch_number_of(spec, value->items.at[1], &lookup);
}

static void read_accumulate(filling *f, const etch_ast_def *def)
{
    etch_run_accumulate(f->spec, f->symbol, def, f->dim_of, f->data, f->train);
}

/* Of Muon, where nothing is said (Jordan et al., 2024). */
enum { USUAL_STEPS = 5 };

/* ---- optimizers ---------------------------------------------------------------------------------------- */

static void read_truth(filling *f, const etch_ast_arg *arg, bool *out)
{
    if (arg->value->kind == ETCH_AST_TRUTH)
        *out = arg->value->truth;
    else
        wrong(f, arg->value->span, etch_text(f->spec->arena, "%s is true or false", arg->name.text));
}

/* Which row sgd is depends on whether it keeps one: only 0 or false is no momentum. Muon always does. */
static void read_momentum(filling *f, const etch_ast_expr *value)
{
    etch_sym *sym = f->spec->sym;
    const etch_lookup lookup = etch_global_lookup(f->spec, f->symbol->home);
    const etch_row *own = f->train->optimizer.row;
    const etch_row *row = etch_optimizer_with_momentum(etch_table_builtin(), own);
    const bool may_be_none = row != NULL;
    if (value->kind == ETCH_AST_TRUTH && may_be_none) {
        f->train->optimizer.row = value->truth ? row : own;
        return;
    }
    etch_expr number = etch_value_of(f->spec, value, &lookup);
    if (!number || (may_be_none && etch_is_zero(number)))
        return;
    if (etch_is_constant(number) && (etch_constant_compare(sym, number, etch_int(sym, 0)) < !may_be_none ||
                                     etch_constant_compare(sym, number, etch_int(sym, 1)) >= 0)) {
        wrong(f, value->span,
              may_be_none ? "momentum is true, false, or at least 0 and below 1"
                          : "momentum is above 0 and below 1");
        return;
    }
    f->train->optimizer.row = may_be_none ? row : own;
}

/* How often products are made: a whole number. */
static void read_steps(filling *f, const etch_ast_expr *value)
{
    etch_sym *sym = f->spec->sym;
    const etch_lookup lookup = etch_global_lookup(f->spec, f->symbol->home);
    const etch_expr steps = etch_number_of(f->spec, value, &lookup);
    uint64_t count;
    if (steps && etch_is_constant(steps) &&
        (!etch_to_u64(steps, &count) || etch_constant_compare(sym, steps, etch_int(sym, 1)) < 0))
        wrong(f, value->span, "steps is a whole number, at least 1: muon(steps = 5)");
    else
        f->train->optimizer.steps = steps ? steps : f->train->optimizer.steps;
}

/* 8, or 32: as without it. */
static void read_bits(filling *f, const etch_ast_expr *value)
{
    etch_sym *sym = f->spec->sym;
    const etch_lookup lookup = etch_global_lookup(f->spec, f->symbol->home);
    const etch_expr bits = etch_value_of(f->spec, value, &lookup);
    if (!bits)
        return;
    if (bits == etch_int(sym, 8))
        f->train->optimizer.row = etch_optimizer_with_8_bits(etch_table_builtin(), f->train->optimizer.row);
    else if (bits != etch_int(sym, 32))
        wrong(f, value->span, "moments have 8 bits, or 32: other widths are a dtype, moments = bf16");
}

static void report_no_argument(const filling *f, const char *optimizer, const etch_ast_arg *arg,
                               const char *const *known, uint32_t count)
{
    static const char *const others[] = {"beta1", "beta2", "decay", "nesterov"};
    for (uint32_t i = 0; i < sizeof others / sizeof *others; i++)
        if (strcmp(arg->name.text, others[i]) == 0) {
            later(f, arg->name.span, etch_text(f->spec->arena, "'%s' of an optimizer", others[i]));
            return;
        }
    etch_diag *diag = etch_error(f->spec->diags, ETCH_E_TRAIN_OPTION, arg->name.span,
                                 "%s has no argument '%s'", optimizer, arg->name.text);
    etch_suggest_name(diag, arg->name.text, known, count);
    etch_buf list = {.arena = f->spec->arena};
    for (uint32_t i = 0; i < count; i++)
        etch_buf_printf(&list, "%s%s", i ? ", " : "", known[i]);
    etch_help(diag, "its arguments are %s", list.text);
}

/* An argument of some optimizers. */
typedef struct optimizer_argument {
    const char *name;
    bool (*is_of)(const etch_table *table, const etch_row *optimizer);
    void (*read)(filling *f, const etch_ast_expr *value);
} optimizer_argument;

static bool has_momentum(const etch_table *table, const etch_row *optimizer)
{
    return etch_optimizer_with_momentum(table, optimizer) || etch_optimizer_is_of_matrices(optimizer);
}

static bool has_bits(const etch_table *table, const etch_row *optimizer)
{
    return etch_optimizer_with_8_bits(table, optimizer) != NULL;
}

static bool is_of_matrices(const etch_table *table, const etch_row *optimizer)
{
    (void)table;
    return etch_optimizer_is_of_matrices(optimizer);
}

static void read_rest(filling *f, const etch_ast_expr *value);

static const optimizer_argument arguments[] = {{"momentum", has_momentum, read_momentum},
                                               {"bits", has_bits, read_bits},
                                               {"steps", is_of_matrices, read_steps},
                                               {"rest", is_of_matrices, read_rest}};
enum { ARGUMENT_COUNT = sizeof arguments / sizeof *arguments };

/* `alone`: the optimizer is of all weights; else of the rest, and says nothing of what is kept of all. */
static void read_optimizer_argument(filling *f, const etch_row *row, const etch_ast_arg *arg, bool alone)
{
    const char *known[2 + ARGUMENT_COUNT] = {"master", "main_grads"};
    uint32_t count = alone ? 2 : 0;
    if (!arg->name.text) {
        wrong(f, arg->value->span, "arguments of an optimizer have names: adamw(master = true)");
        return;
    }
    for (uint32_t i = 0; i < ARGUMENT_COUNT; i++) {
        if (!arguments[i].is_of(etch_table_builtin(), row))
            continue;
        known[count++] = arguments[i].name;
        if (strcmp(arg->name.text, arguments[i].name) == 0) {
            arguments[i].read(f, arg->value);
            return;
        }
    }
    const bool is_master = strcmp(arg->name.text, "master") == 0;
    const bool is_of_all = is_master || strcmp(arg->name.text, "main_grads") == 0;
    if (is_of_all && alone)
        read_truth(f, arg, is_master ? &f->train->optimizer.master : &f->train->optimizer.main_grads);
    else if (is_of_all)
        wrong(
            f, arg->name.span,
            etch_text(f->spec->arena, "'%s' is of all weights, and stands outside of rest", arg->name.text));
    else
        report_no_argument(f, etch_row_name(row), arg, known, count);
}

static void report_no_optimizer(const filling *f, etch_ast_name name)
{
    static const char *const others[] = {"adam",    "adagrad", "rowwise_adagrad", "adafactor", "lion",
                                         "shampoo", "none"};
    const etch_table *table = etch_table_builtin();
    ETCH_VEC(const char *) names = {0};
    const etch_row *row;
    etch_buf list = {.arena = f->spec->arena};
    for (uint32_t i = 0; (row = etch_row_at(table, i)) != NULL; i++)
        if (etch_optimizer_called(table, etch_row_name(row))) {
            etch_buf_printf(&list, "%s%s", names.count ? ", " : "", etch_row_name(row));
            ETCH_PUSH(f->spec->arena, &names, etch_row_name(row));
        }
    bool known = false;
    for (uint32_t i = 0; i < sizeof others / sizeof *others; i++)
        known = known || strcmp(name.text, others[i]) == 0;
    etch_diag *diag = known ? later(f, name.span, etch_text(f->spec->arena, "the optimizer '%s'", name.text))
                            : etch_error(f->spec->diags, ETCH_E_TRAIN_OPTION, name.span,
                                         "there is no optimizer '%s'", name.text);
    if (!known)
        etch_suggest_name(diag, name.text, names.at, names.count);
    etch_help(diag, "optimizers are %s", list.text);
}

/* The optimizer that the train block has then. False after an error. */
static bool read_optimizer_of(filling *f, const etch_ast_expr *value, bool alone)
{
    if (value->kind != ETCH_AST_NAME && value->kind != ETCH_AST_CALL) {
        wrong(f, value->span, "an optimizer is written like optimizer = adamw(master = true)");
        return false;
    }
    const etch_row *row = etch_optimizer_called(etch_table_builtin(), value->name.text);
    f->train->optimizer.row = row;
    if (!row) {
        report_no_optimizer(f, value->name);
        return false;
    }
    if (value->kind != ETCH_AST_CALL || !etch_args_are_distinct(f->spec, value, ETCH_E_TRAIN_OPTION))
        return true;
    for (uint32_t i = 0; i < value->args.count; i++)
        read_optimizer_argument(f, row, &value->args.at[i], alone);
    return true;
}

static void read_rest(filling *f, const etch_ast_expr *value)
{
    const etch_row *own = f->train->optimizer.row;
    if (read_optimizer_of(f, value, false) && etch_optimizer_is_of_matrices(f->train->optimizer.row))
        wrong(f, value->span,
              etch_text(f->spec->arena, "%s is of matrices alone: the rest needs another optimizer",
                        value->name.text));
    else
        f->train->optimizer.rest = f->train->optimizer.row;
    f->train->optimizer.row = own;
}

static void read_optimizer(filling *f, const etch_ast_def *def)
{
    f->train->optimizer.rest = etch_optimizer_called(etch_table_builtin(), "adamw");
    f->train->optimizer.steps = etch_int(f->spec->sym, USUAL_STEPS);
    read_optimizer_of(f, def->value, true);
}

/* ---- other options ------------------------------------------------------------------------------------- */

/* The names that one name or a list of them is; NULL after an error, which is `message`. */
static const char **read_names(const filling *f, const etch_ast_expr *value, uint32_t *count,
                               const char *message)
{
    const bool several = value->kind == ETCH_AST_TUPLE;
    *count = several ? value->items.count : 1;
    const char **names = ETCH_NEW_ARRAY(f->spec->arena, *count, const char *);
    for (uint32_t i = 0; i < *count; i++) {
        const etch_ast_expr *item = several ? value->items.at[i] : value;
        if (item->kind != ETCH_AST_NAME) {
            wrong(f, item->span, message);
            return NULL;
        }
        names[i] = item->name.text;
    }
    return names;
}

static void read_freeze(filling *f, const etch_ast_def *def)
{
    const etch_ast_expr *value = def->value;
    if (value->kind == ETCH_AST_NAME && strcmp(value->name.text, "none") == 0)
        return;
    const bool several = value->kind == ETCH_AST_TUPLE;
    etch_span *spans = ETCH_NEW_ARRAY(f->spec->arena, several ? value->items.count : 1, etch_span);
    for (uint32_t i = 0; i < (several ? value->items.count : 1); i++)
        spans[i] = several ? value->items.at[i]->span : value->span;
    f->train->freeze_spans = spans;
    f->train->freeze = read_names(f, value, &f->train->freeze_count,
                                  "freeze is a module, loop, tag or module.tensor, a list of them, or none");
    if (!f->train->freeze)
        f->train->freeze_count = 0;
}

static void read_recompute(filling *f, const etch_ast_def *def)
{
    const etch_lookup lookup = etch_global_lookup(f->spec, f->symbol->home);
    etch_recompute recompute;
    if (!etch_recompute_of(f->spec, def, &lookup, &recompute))
        return;
    f->train->recompute = recompute;
    if (recompute.fit)
        wrong(f, recompute.fit_span, "what fits depends on the plan: write recompute = fit(..) there");
}

static void read_clip(filling *f, const etch_ast_def *def)
{
    if (def->value->kind == ETCH_AST_NAME && strcmp(def->value->name.text, "none") == 0)
        return;
    const etch_lookup lookup = etch_global_lookup(f->spec, f->symbol->home);
    etch_expr limit = etch_number_of(f->spec, def->value, &lookup);
    if (limit && etch_is_constant(limit) &&
        etch_constant_compare(f->spec->sym, limit, etch_int(f->spec->sym, 0)) <= 0)
        wrong(f, def->value->span, "the norm that gradients are clipped to is above 0");
    f->train->clip = limit != NULL;
}

static void read_ema(filling *f, const etch_ast_def *def)
{
    etch_sym *sym = f->spec->sym;
    if (def->value->kind == ETCH_AST_NAME && strcmp(def->value->name.text, "none") == 0)
        return;
    const etch_lookup lookup = etch_global_lookup(f->spec, f->symbol->home);
    const etch_expr decay = etch_number_of(f->spec, def->value, &lookup);
    if (decay && etch_is_constant(decay) &&
        (etch_constant_compare(sym, decay, etch_int(sym, 0)) <= 0 ||
         etch_constant_compare(sym, decay, etch_int(sym, 1)) >= 0))
        wrong(f, def->value->span, "the decay of an average is above 0 and below 1: ema = 0.9999, or none");
    f->train->optimizer.ema = decay != NULL;
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
    {"ema", read_ema},
    {"freeze", read_freeze},
    {"adapt", NULL},
    {"report", NULL},
    {"save", NULL},
    {"output", NULL},
};
enum { OPTION_COUNT = sizeof options / sizeof *options };

const char *etch_train_option_at(uint32_t index)
{
    return index < OPTION_COUNT ? options[index].name : NULL;
}

bool etch_is_train_option(const char *name)
{
    for (uint32_t i = 0; i < OPTION_COUNT; i++)
        if (strcmp(options[i].name, name) == 0)
            return true;
    return false;
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
    if (etch_run_names_param(f->symbol, def))
        return; /* the settings of the run have it */
    etch_diag *diag = etch_error(f->spec->diags, ETCH_E_TRAIN_OPTION, def->name.span,
                                 "a train block has no option '%s'", def->name.text);
    if (etch_help_place_of_option(diag, def->name.text))
        return;
    etch_suggest_name(diag, def->name.text, names, OPTION_COUNT);
    uint32_t count = 0;
    for (uint32_t i = 0; i < OPTION_COUNT; i++)
        if (options[i].read)
            names[count++] = options[i].name;
    etch_help(diag, "it has %s, and binds params", etch_names_listed(f->spec->arena, names, count));
}

bool etch_train_fill(etch_spec *spec, const etch_symbol *symbol,
                     etch_dim *(*dim_of)(void *data, etch_ast_name name), void *data, etch_train *train)
{
    const uint32_t errors = etch_error_count(spec->diags);
    filling f = {.spec = spec, .symbol = symbol, .dim_of = dim_of, .data = data, .train = train};
    *train = (etch_train){.micro = etch_int(spec->sym, 1), .span = symbol->item->span};
    const etch_ast_defs *defs = &symbol->item->defs;
    for (uint32_t i = 0; i < defs->count; i++) {
        if (etch_run_says_once(spec, symbol, i))
            read_option(&f, &defs->at[i]);
    }
    const etch_ast_def *ema = train->optimizer.ema ? etch_run_option(symbol, "ema") : NULL;
    if (ema && !etch_run_option(symbol, "optimizer"))
        wrong(&f, ema->span, "an average of the weights needs an optimizer, which changes them");
    return etch_error_count(spec->diags) == errors;
}
