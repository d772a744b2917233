/* One of a text or list: at(kinds, layer). */
#include <string.h>

#include "lang/model/model_int.h"
#include "lang/names/series.h"

/* What the param has by settings or defaults, which are remarked on; NULL: neither. */
static const etch_series *known_value(etch_env *env, const etch_param *param, etch_span span)
{
    const etch_builder *b = env->builder;
    etch_spec *spec = b->spec;
    const etch_series *series = etch_series_of(spec, etch_settings_apply(spec->sym, b->settings, param->var));
    if (series)
        return series;
    series = etch_series_of(spec, etch_graph_with_defaults(b->graph, param->var));
    if (series)
        etch_remark(spec->diags, ETCH_E_SERIES, span, "the default of '%s' is taken", param->name);
    return series;
}

/* The same; reports a param that has none. */
static const etch_series *value_of_param(etch_env *env, const etch_param *param, etch_span span)
{
    const etch_series *series = known_value(env, param, span);
    if (series)
        return series;
    etch_diag *diag = etch_error(env->builder->spec->diags, ETCH_E_UNDECIDED, span,
                                 "'%s' has no value, which decides what layers are", param->name);
    etch_help(diag, "bind it in a config or with --set");
    return NULL;
}

static etch_expr length_of(etch_env *env, const etch_ast_expr *call)
{
    const etch_lookup lookup = etch_env_lookup(env);
    const etch_param *param = etch_series_named(env->builder->spec, call, 1, &lookup);
    const etch_series *series = param ? known_value(env, param, call->span) : NULL;
    return series ? etch_int(env->builder->spec->sym, series->count) : param ? param->length : NULL;
}

bool etch_env_one(etch_env *env, const etch_ast_expr *call, etch_one *out)
{
    const etch_lookup lookup = etch_env_lookup(env);
    const etch_param *param = etch_series_named(env->builder->spec, call, 2, &lookup);
    *out = (etch_one){.call = call};
    if (!param)
        return false;
    out->position = call->args.at[1].value;
    out->series = value_of_param(env, param, call->args.at[0].value->span);
    return out->series != NULL;
}

/* ---- tests --------------------------------------------------------------------------------------------- */

bool etch_is_test_of_one(const etch_ast_expr *test)
{
    return test->kind == ETCH_AST_COMPARE && (etch_is_at(test->left) || etch_is_at(test->right));
}

bool etch_env_tested_one(etch_env *env, const etch_ast_expr *test, etch_one *out)
{
    return etch_env_one(env, etch_is_at(test->left) ? test->left : test->right, out);
}

/* The letter that a text is compared with; 0 after an error. */
static char letter_of(etch_spec *spec, const etch_ast_expr *expr)
{
    if (expr->kind == ETCH_AST_STRING && strlen(expr->name.text) == 1)
        return expr->name.text[0];
    etch_diag *diag = etch_error(spec->diags, ETCH_E_SERIES, expr->span,
                                 "one of a text is a letter, and compared with one");
    etch_help(diag, "write it in quotes: at(kinds, layer) == \"M\"");
    return 0;
}

/* Adds the positions of which `one RELATION right` holds. */
static bool add_letters(etch_env *env, const etch_one *one, etch_relation relation,
                        const etch_ast_expr *right, bool *holds)
{
    etch_spec *spec = env->builder->spec;
    const char letter = letter_of(spec, right);
    if (letter && relation != ETCH_REL_EQ && relation != ETCH_REL_NE) {
        etch_error(spec->diags, ETCH_E_SERIES, one->call->span, "letters are equal (==) or not (!=)");
        return false;
    }
    for (uint32_t i = 0; i < one->series->count; i++)
        holds[i] = holds[i] || (one->series->letters[i] == letter) == (relation == ETCH_REL_EQ);
    return letter != 0;
}

static bool add_numbers(etch_env *env, const etch_one *one, etch_relation relation,
                        const etch_ast_expr *right, bool *holds)
{
    etch_sym *sym = env->builder->spec->sym;
    const etch_expr value = etch_env_number(env, right);
    for (uint32_t i = 0; value && i < one->series->count; i++)
        holds[i] = holds[i] || etch_constants_hold(sym, relation, one->series->numbers[i], value);
    return value != NULL;
}

static bool add_positions(etch_env *env, const etch_one *one, etch_relation relation,
                          const etch_ast_expr *right, bool *holds)
{
    return one->series->letters ? add_letters(env, one, relation, right, holds)
                                : add_numbers(env, one, relation, right, holds);
}

const bool *etch_env_test_each(etch_env *env, const etch_ast_expr *test, const etch_one *one)
{
    etch_spec *spec = env->builder->spec;
    bool *holds = ETCH_NEW_ARRAY(spec->arena, one->series->count, bool), fine = true;
    const bool on_left = test->left == one->call;
    const etch_relation relation = etch_relation_of(test->op);
    if (etch_is_membership(test)) {
        for (uint32_t i = 0; i < test->right->items.count; i++)
            fine = add_positions(env, one, ETCH_REL_EQ, test->right->items.at[i], holds) && fine;
        return fine ? holds : NULL;
    }
    if (relation == ETCH_REL_DIVIDES) {
        etch_error(spec->diags, ETCH_E_SERIES, test->span,
                   "one of a text or list is compared by == != < > <= >= in");
        return NULL;
    }
    fine = add_positions(env, one, on_left ? relation : etch_mirrored(relation),
                         on_left ? test->right : test->left, holds);
    return fine ? holds : NULL;
}

/* ---- values -------------------------------------------------------------------------------------------- */

bool etch_env_place(etch_env *env, const etch_one *one, uint32_t *at)
{
    etch_spec *spec = env->builder->spec;
    const etch_expr place = etch_env_number(env, one->position);
    int64_t number;
    if (!place)
        return false;
    if (etch_to_i64(place, &number) && number >= 0 && number < one->series->count) {
        *at = (uint32_t)number;
        return true;
    }
    etch_error(spec->diags, ETCH_E_SERIES, one->position->span, "%s is none of its %u, which count from 0",
               etch_expr_text(spec->sym, place), one->series->count);
    return false;
}

/* Of the list, the number that the class of iterations in work has: one after another is asked for. */
static etch_expr number_of_class(etch_env *env, const etch_one *one)
{
    const etch_series *series = one->series;
    for (uint32_t i = 0; i < series->count; i++) {
        bool *same = ETCH_NEW_ARRAY(env->builder->spec->arena, series->count, bool), first = true;
        for (uint32_t k = 0; k < series->count; k++) {
            same[k] = series->numbers[k] == series->numbers[i];
            first = first && (k >= i || !same[k]);
        }
        const etch_truth truth = first ? etch_env_decide_position(env, one, same) : ETCH_NO;
        if (truth != ETCH_NO)
            return truth == ETCH_YES ? series->numbers[i] : NULL;
    }
    return series->numbers[0]; /* there are no iterations */
}

static etch_expr number_at(etch_env *env, const etch_ast_expr *call)
{
    etch_spec *spec = env->builder->spec;
    etch_one one;
    if (!etch_env_one(env, call, &one))
        return NULL;
    if (one.series->letters) {
        etch_diag *diag = etch_error(spec->diags, ETCH_E_NOT_A_NUMBER, call->span,
                                     "one of a text stands where a number is needed");
        etch_help(diag, "compare it with a letter: if %s == \"M\"", etch_written(spec, call->span));
        return NULL;
    }
    if (etch_env_has_index(env, one.position))
        return number_of_class(env, &one);
    uint32_t at;
    return etch_env_place(env, &one, &at) ? one.series->numbers[at] : NULL;
}

etch_expr etch_env_one_value(etch_env *env, const etch_ast_expr *call)
{
    return etch_is_at(call) ? number_at(env, call) : length_of(env, call);
}
