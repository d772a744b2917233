/* Expressions from outside the spec, and the spec's own checks: values over params, dims, mesh axes and
 * quantities. */
#include "lang/lang.h"
#include "lang/model/blocks.h"
#include "lang/names/symbols.h"
#include "lang/plan/lookup.h"

#include <string.h>

/* ---- quantities ---------------------------------------------------------------------------------------- */

typedef struct asking {
    etch_spec *spec;
    etch_lookup names;
    /* may be NULL */
    const etch_plan *plan;
    const etch_quantities *quantities;
} asking;

/* The text of a selector or name: `layer`, `attention.wq`, `model`; a stage may be a number. */
static const char *selector_of(etch_spec *spec, const etch_ast_expr *value, bool number)
{
    if (value->kind == ETCH_AST_NAME || (number && value->kind == ETCH_AST_INTEGER))
        return value->name.text;
    if (value->kind != ETCH_AST_BROKEN)
        etch_error(spec->diags, ETCH_E_QUERY_ARGUMENT, value->span, "a name stands here%s",
                   number ? ", or a number" : "");
    return NULL;
}

static bool read_axes(etch_spec *spec, const etch_ast_expr *value, etch_quantity *q)
{
    const bool several = value->kind == ETCH_AST_TUPLE;
    q->axis_count = several ? value->items.count : 1;
    q->axis_span = value->span;
    const char **axes = ETCH_NEW_ARRAY(spec->arena, q->axis_count, const char *);
    for (uint32_t i = 0; i < q->axis_count; i++) {
        axes[i] = selector_of(spec, several ? value->items.at[i] : value, false);
        if (!axes[i])
            return false;
    }
    q->axes = axes;
    return true;
}

/* Is it an item of a counting convention, or a preset of all of them? */
static bool is_count(const char *name)
{
    if (strcmp(name, "count") == 0)
        return true;
    size_t i = 0;
    while (etch_count_item_name(i) && strcmp(etch_count_item_name(i), name) != 0)
        i++;
    return etch_count_item_name(i) != NULL;
}

static bool read_count(etch_spec *spec, const etch_ast_arg *arg, etch_quantity *q)
{
    etch_count_word *words = ETCH_NEW_ARRAY(spec->arena, q->count_words + 1, etch_count_word);
    const bool preset = strcmp(arg->name.text, "count") == 0;
    const char *value = selector_of(spec, arg->value, false);
    for (uint32_t i = 0; i < q->count_words; i++) {
        words[i + preset] = q->counts[i]; /* items say what differs from the preset, in whatever order */
        if (preset ? q->counts[i].item == NULL
                   : q->counts[i].item && strcmp(q->counts[i].item, arg->name.text) == 0) {
            etch_error(spec->diags, ETCH_E_QUERY_ARGUMENT, arg->name.span, "'%s' is given twice",
                       arg->name.text);
            return false;
        }
    }
    words[preset ? 0 : q->count_words] =
        (etch_count_word){preset ? NULL : arg->name.text, value, arg->value->span};
    q->counts = words;
    q->count_words++;
    return value != NULL;
}

static bool read_buffers(etch_spec *spec, const etch_ast_expr *value, etch_quantity *q)
{
    q->buffers = value->kind == ETCH_AST_TRUTH && value->truth;
    q->buffers_span = value->span;
    if (value->kind == ETCH_AST_TRUTH)
        return true;
    if (value->kind != ETCH_AST_BROKEN)
        etch_error(spec->diags, ETCH_E_QUERY_ARGUMENT, value->span, "buffers is true or false");
    return false;
}

static etch_lookup query_lookup(etch_spec *spec, const etch_plan *plan, const etch_quantities *quantities);

static const char *const numbers[] = {"tokens", "price", "mtbf", "checkpoint", "restart"};

static bool is_number(const char *name)
{
    for (uint32_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (strcmp(numbers[i], name) == 0)
            return true;
    return false;
}

static bool read_number(etch_spec *spec, const etch_ast_arg *arg, etch_quantity *q)
{
    etch_quantity_number *all = ETCH_NEW_ARRAY(spec->arena, q->number_count + 1, etch_quantity_number);
    const etch_lookup lookup = query_lookup(spec, NULL, NULL);
    for (uint32_t i = 0; i < q->number_count; i++) {
        all[i] = q->numbers[i];
        if (strcmp(all[i].name, arg->name.text) == 0) {
            etch_error(spec->diags, ETCH_E_QUERY_ARGUMENT, arg->name.span, "'%s' is given twice",
                       arg->name.text);
            return false;
        }
    }
    etch_quantity_number *last = &all[q->number_count++];
    *last =
        (etch_quantity_number){arg->name.text, etch_value_of(spec, arg->value, &lookup), arg->value->span};
    q->numbers = all;
    return last->value != NULL;
}

/* Stores a named argument. */
static bool read_named(etch_spec *spec, const etch_ast_arg *arg, etch_quantity *q)
{
    static const char *const names[] = {"of",    "op",   "axis",  "run",    "plan",
                                        "stage", "part", "count", "buffers"};
    const char **const ends[] = {&q->of, &q->op, NULL, &q->run, &q->plan, &q->stage, &q->part};
    etch_span *const spans[] = {&q->of_span,   &q->op_span,    NULL,         NULL,
                                &q->plan_span, &q->stage_span, &q->part_span};
    const uint32_t count = sizeof names / sizeof *names;
    uint32_t i = 0;
    if (is_count(arg->name.text))
        return read_count(spec, arg, q);
    if (is_number(arg->name.text))
        return read_number(spec, arg, q);
    if (strcmp(arg->name.text, "buffers") == 0)
        return read_buffers(spec, arg->value, q);
    while (i < count && strcmp(names[i], arg->name.text) != 0)
        i++;
    if (i == count) {
        etch_diag *diag = etch_error(spec->diags, ETCH_E_QUERY_ARGUMENT, arg->name.span,
                                     "'%s' has no argument '%s'", q->name, arg->name.text);
        etch_suggest_name(diag, arg->name.text, names, count);
        etch_suggest_name(diag, arg->name.text, numbers, sizeof numbers / sizeof *numbers);
        etch_help(diag, "quantities take of, op, axis, run, plan, stage, part, count, buffers");
        return false;
    }
    if (ends[i] ? *ends[i] != NULL : q->axis_count > 0) {
        etch_error(spec->diags, ETCH_E_QUERY_ARGUMENT, arg->name.span, "'%s' is given twice", arg->name.text);
        return false;
    }
    if (!ends[i])
        return read_axes(spec, arg->value, q);
    *ends[i] = selector_of(spec, arg->value, strcmp(names[i], "stage") == 0 || strcmp(names[i], "part") == 0);
    if (spans[i])
        *spans[i] = arg->value->span;
    return *ends[i] != NULL;
}

static bool read_quantity(etch_spec *spec, const etch_ast_expr *call, etch_quantity *q)
{
    *q = (etch_quantity){.name = call->name.text, .span = call->span};
    for (uint32_t i = 0; i < call->args.count; i++) {
        const etch_ast_arg *arg = &call->args.at[i];
        if (arg->name.text) {
            if (!read_named(spec, arg, q))
                return false;
            continue;
        }
        if (i > 0) {
            etch_diag *diag = etch_error(spec->diags, ETCH_E_QUERY_ARGUMENT, arg->value->span,
                                         "'%s' has one argument without a name, the first", q->name);
            etch_help(diag, "the others are named: of, op, axis, run, plan, stage, part, count, buffers");
            return false;
        }
        q->first = selector_of(spec, arg->value, false);
        q->first_span = arg->value->span;
        if (!q->first)
            return false;
    }
    return true;
}

/* A name that nothing has: a quantity without its brackets, or a word that is none. */
static void report_word(const asking *a, etch_ast_name name)
{
    etch_spec *spec = a->spec;
    const char *const *const names = a->quantities->names;
    uint32_t count = 0;
    for (; names[count]; count++) {
        if (strcmp(names[count], name.text) != 0)
            continue;
        etch_diag *diag = etch_error(spec->diags, ETCH_E_UNKNOWN_NAME, name.span,
                                     "'%s' is a quantity: it is asked with what it is of", name.text);
        etch_help(diag, "for example %s; `etch help quantities` lists them", a->quantities->examples[count]);
        return;
    }
    ETCH_VEC(const char *) axes = {0};
    for (uint32_t i = 0; a->plan && i < a->plan->mesh.count; i++)
        ETCH_PUSH(spec->arena, &axes, a->plan->mesh.at[i].name);
    etch_diag *diag = etch_unknown_name(spec, spec->main, "name", name, axes.at, axes.count);
    etch_help(diag, "`etch help quantities` lists what can be asked");
}

static etch_expr quantity_name(void *data, const etch_ast_expr *expr)
{
    const asking *a = data;
    const char *name = expr->name.text;
    const bool known =
        etch_namespace_knows(a->spec, a->spec->main, name) ||
        (a->plan ? etch_plan_value(a->spec, a->plan, name) != NULL : etch_plans_mention(a->spec, name));
    if (known || !a->quantities)
        return a->names.name(a->names.data, expr);
    report_word(a, expr->name);
    return NULL;
}

static etch_expr quantity_call(void *data, const etch_ast_expr *call, bool *known)
{
    const asking *a = data;
    etch_spec *spec = a->spec;
    const char *name = call->name.text;
    const char *const *const names = a->quantities ? a->quantities->names : NULL;
    uint32_t count = 0;
    bool found = false;
    while (names && names[count])
        found = strcmp(names[count++], name) == 0 || found;
    if (!found && etch_is_value_function(name))
        return NULL;
    *known = true;
    if (!found) {
        ETCH_VEC(const char *) near = {0};
        for (uint32_t i = 0; i < count; i++)
            ETCH_PUSH(spec->arena, &near, names[i]);
        for (uint32_t i = 0; etch_value_functions[i]; i++)
            ETCH_PUSH(spec->arena, &near, etch_value_functions[i]);
        etch_diag *diag = etch_error(spec->diags, ETCH_E_UNKNOWN_FUNCTION, call->name.span,
                                     "there is no quantity or function '%s'", name);
        etch_suggest_name(diag, name, near.at, near.count);
        if (count > 0)
            etch_help(diag, "`etch help quantities` lists what can be asked");
        return NULL;
    }
    etch_quantity quantity;
    return read_quantity(spec, call, &quantity) ? a->quantities->value(a->quantities->data, &quantity) : NULL;
}

static etch_lookup query_lookup(etch_spec *spec, const etch_plan *plan, const etch_quantities *quantities)
{
    asking *a = ETCH_NEW(spec->arena, asking);
    *a = (asking){spec, etch_plan_lookup(spec, spec->main, plan), plan, quantities};
    return (etch_lookup){quantity_name, quantity_call, a};
}

/* ---- the entry points ---------------------------------------------------------------------------------- */

static const etch_ast_expr *parse(etch_spec *spec, const char *text, const char *source_name)
{
    const etch_source *source = etch_source_add(spec->diags, source_name, text, strlen(text));
    if (source)
        return etch_ast_parse_query(&spec->context, source);
    etch_error(spec->diags, ETCH_E_SOURCES_TOO_LARGE, (etch_span){0, 0},
               "the expression and the files of the spec are too large together");
    return NULL;
}

etch_expr etch_spec_value(etch_spec *spec, const char *text, const char *source_name, const etch_plan *plan,
                          const etch_quantities *quantities)
{
    const etch_ast_expr *expr = parse(spec, text, source_name);
    const etch_lookup lookup = query_lookup(spec, plan, quantities);
    etch_plans_name(spec, expr);
    etch_expr value = expr ? etch_value_of(spec, expr, &lookup) : NULL;
    etch_plans_name(spec, NULL);
    return value;
}

/* The claim, and which plans it names. */
static etch_claim claim_of(etch_spec *spec, const etch_ast_expr *expr, const etch_lookup *lookup)
{
    etch_plans_name(spec, expr);
    etch_claim claim = etch_claim_of(spec, expr, lookup);
    claim.plans = spec->named_plans.at;
    claim.plan_count = spec->named_plans.count;
    etch_plans_name(spec, NULL);
    return claim;
}

etch_claim etch_spec_claim(etch_spec *spec, const char *text, const char *source_name, const etch_plan *plan,
                           const etch_quantities *quantities)
{
    const etch_ast_expr *expr = parse(spec, text, source_name);
    const etch_lookup lookup = query_lookup(spec, plan, quantities);
    if (!expr)
        return (etch_claim){.relation = ETCH_REL_TRUE};
    const etch_claim claim = claim_of(spec, expr, &lookup);
    if (!claim.left || claim.relation != ETCH_REL_TRUE)
        return claim;
    etch_diag *diag = etch_error(spec->diags, ETCH_E_NOT_A_STATEMENT, claim.span,
                                 "'%s' is a value, not a statement", claim.text);
    etch_help(diag, "say what it is to be: %s == ...; or >=, <=, >, <, !=, or d | n", claim.text);
    return (etch_claim){.relation = ETCH_REL_TRUE};
}

bool etch_spec_quantity(etch_spec *spec, const char *text, const char *source_name, etch_quantity *out)
{
    *out = (etch_quantity){0};
    const etch_ast_expr *expr = parse(spec, text, source_name);
    if (!expr || expr->kind != ETCH_AST_CALL || etch_is_value_function(expr->name.text))
        return false;
    return read_quantity(spec, expr, out);
}

uint32_t etch_spec_checks(etch_spec *spec, const etch_quantities *quantities, const etch_claim **claims)
{
    const etch_lookup lookup = query_lookup(spec, NULL, quantities);
    const etch_ast_items *items = &spec->main->ast->items;
    ETCH_VEC(etch_claim) list = {0};
    for (uint32_t i = 0; i < items->count; i++)
        for (uint32_t k = 0; items->at[i].kind == ETCH_AST_CHECK && k < items->at[i].tests.count; k++)
            ETCH_PUSH(spec->arena, &list, claim_of(spec, items->at[i].tests.at[k], &lookup));
    *claims = list.at;
    return list.count;
}

/* ---- models that programs build ------------------------------------------------------------------------ */

etch_expr etch_site_value(etch_site *site, const char *text)
{
    return etch_spec_value(etch_site_spec(site), text, "network", NULL, NULL);
}
