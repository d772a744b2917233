/* The size of a step given as a number of tokens: the equation between what the model has and what is asked,
 * solved for the one name that has no value. */
#include "lang/lang.h"
#include "lang/names/symbols.h"
#include "lang/spec_int.h"

typedef struct solving {
    etch_spec *spec;
    const etch_token_goal *goal;
    const char *model;
    /* of a step, as the model has them */
    etch_expr tokens;
    /* the tokens less the goal, with values: 0 where the goal is reached */
    etch_expr excess;
} solving;

static const char *text_of(const solving *s, etch_expr value)
{
    return etch_expr_text(s->spec->sym, value);
}

/* An error at the goal, with what a step has. */
static etch_diag *refuse(const solving *s, const char *why)
{
    etch_diag *diag = etch_error(s->spec->diags, ETCH_E_TOKENS, s->goal->span, "tokens = %s %s",
                                 text_of(s, s->goal->value), why);
    etch_note(diag, (etch_span){0, 0}, "a step of %s has %s tokens", s->model, text_of(s, s->tokens));
    return diag;
}

/* ---- what a step has ----------------------------------------------------------------------------------- */

static bool refuse_model(const solving *s, const etch_token_counts *counts)
{
    etch_spec *spec = s->spec;
    etch_diag *diag = etch_error(spec->diags, ETCH_E_TOKENS, s->goal->span,
                                 counts->count ? "model %s has several numbers of tokens"
                                               : "model %s has no tokens: it compares nothing with labels, "
                                                 "and looks nothing up by an input",
                                 s->model);
    for (uint32_t i = 0; i < counts->count; i++)
        etch_note(diag, counts->at[i].tensor->span, "%s are %s",
                  etch_tensor_text(spec->arena, counts->at[i].tensor), text_of(s, counts->at[i].count));
    return etch_help(diag, "give the sizes of which a step is made instead");
}

/* False after an error. What the elaboration remarks on is said again by who asks for the model. */
static bool find_tokens(solving *s)
{
    etch_spec *spec = s->spec;
    const etch_diags_mark start = etch_diags_now(spec->diags);
    const uint32_t errors = etch_error_count(spec->diags);
    const etch_model *model = etch_spec_elaborate(spec, s->goal->run, &s->goal->all, NULL);
    if (!model)
        return false;
    if (etch_error_count(spec->diags) == errors)
        etch_diags_retract(spec->diags, &start);
    const etch_token_counts counts = etch_graph_tokens(model->graph);
    s->model = model->name;
    if (counts.count != 1)
        return refuse_model(s, &counts);
    s->tokens = counts.at[0].count;
    return true;
}

/* ---- the name that has no value ------------------------------------------------------------------------ */

static uint32_t open_names(solving *s, const etch_settings *settings, const etch_expr **vars)
{
    etch_sym *sym = s->spec->sym;
    etch_expr tokens = etch_settings_apply(sym, settings, s->tokens);
    etch_expr value = etch_settings_apply(sym, settings, s->goal->value);
    s->excess = tokens && value ? etch_sub(sym, tokens, value) : NULL;
    return s->excess ? etch_vars_of(sym, s->excess, vars) : 0;
}

static bool refuse_several(const solving *s, const etch_expr *vars, uint32_t count)
{
    etch_buf names = {.arena = s->spec->arena};
    for (uint32_t i = 0; i < count; i++)
        etch_buf_printf(&names, "%s%s", i ? ", " : "", etch_var_name(vars[i]));
    etch_diag *diag =
        refuse(s, etch_text(s->spec->arena, "does not say which is meant: %s have no values of their own",
                            names.text));
    return etch_help(diag, "give all of them but one: --set %s=...", etch_var_name(vars[count - 1]));
}

/* All that a step is made of has values: they make as many tokens, or contradict it. */
static bool compare(const solving *s)
{
    etch_sym *sym = s->spec->sym;
    if (s->excess && etch_is_zero(s->excess))
        return true;
    if (!s->excess)
        return refuse(s, "is undefined with the other values") == NULL;
    etch_expr tokens = etch_settings_apply(sym, &s->goal->given, s->tokens);
    etch_diag *diag = refuse(
        s, etch_text(s->spec->arena, "contradicts the other values, which make %s", text_of(s, tokens)));
    const etch_expr *vars;
    etch_vars_of(sym, s->tokens, &vars);
    return etch_help(diag,
                     "leave one without a value, --set %s=%s, or leave out the tokens, --set tokens=tokens",
                     etch_var_name(vars[0]), etch_var_name(vars[0]));
}

/* The name to be solved for: NULL, and `*fine`, where there is none to be; not `*fine` after an error.
 * Defaults give way: they count where several names are left without them. */
static etch_expr find_unknown(solving *s, etch_expr *needed, bool *fine)
{
    const etch_expr *vars = NULL, *rest = NULL;
    const uint32_t count = open_names(s, &s->goal->given, &vars);
    *fine = true;
    *needed = NULL;
    if (count == 1)
        return vars[0];
    if (count == 0) {
        *fine = compare(s);
        return NULL;
    }
    const uint32_t left = open_names(s, &s->goal->all, &rest);
    if (left == 1) {
        *needed = s->tokens;
        return rest[0];
    }
    *fine = left > 1 ? refuse_several(s, rest, left) : refuse_several(s, vars, count);
    return NULL;
}

/* ---- its value ----------------------------------------------------------------------------------------- */

static etch_range range_of(const etch_spec *spec, etch_expr var)
{
    for (uint32_t i = 0; i < spec->params.count; i++)
        if (spec->params.at[i].var == var)
            return spec->ranges[i];
    return (etch_range){.least = 1}; /* of a mesh axis */
}

static etch_expr excess_at(const solving *s, etch_expr var, etch_expr value)
{
    return etch_subst(s->spec->sym, s->excess, 1, &var, &value);
}

/* The number of tokens where the name has this value. */
static const char *tokens_at(const solving *s, etch_expr var, etch_expr value)
{
    etch_expr goal = etch_settings_apply(s->spec->sym, &s->goal->all, s->goal->value);
    return text_of(s, etch_add(s->spec->sym, goal, excess_at(s, var, value)));
}

/* Where the excess, a*var + b with numbers a and b, is 0; NULL: it is nothing of the kind. */
static etch_expr root_of(const solving *s, etch_expr var)
{
    etch_sym *sym = s->spec->sym;
    etch_expr at_zero = excess_at(s, var, etch_int(sym, 0)), at_one = excess_at(s, var, etch_int(sym, 1));
    if (!at_zero || !at_one || !etch_is_constant(at_zero) || !etch_is_constant(at_one))
        return NULL;
    etch_expr slope = etch_sub(sym, at_one, at_zero);
    if (etch_is_zero(slope) || etch_add(sym, etch_mul(sym, slope, var), at_zero) != s->excess)
        return NULL;
    return etch_div(sym, etch_neg(sym, at_zero), slope);
}

static bool refuse_root(const solving *s, etch_expr var, etch_expr root, etch_expr least)
{
    etch_sym *sym = s->spec->sym;
    const char *name = etch_var_name(var);
    const bool low = etch_constant_compare(sym, root, least) < 0;
    etch_expr below = low ? least : etch_floor(sym, root), above = etch_add(sym, below, etch_int(sym, 1));
    etch_diag *diag =
        refuse(s, etch_text(s->spec->arena, "needs %s = %s, which is %s", name, text_of(s, root),
                            etch_is_integer_constant(root) ? "too small" : "no integer"));
    if (low)
        return etch_help(diag, "the least is tokens=%s, with %s = %s", tokens_at(s, var, below), name,
                         text_of(s, below));
    return etch_help(diag, "the nearest are tokens=%s, with %s = %s, and tokens=%s, with %s = %s",
                     tokens_at(s, var, below), name, text_of(s, below), tokens_at(s, var, above), name,
                     text_of(s, above));
}

bool etch_tokens_solve(etch_spec *spec, const etch_token_goal *goal, etch_token_answer *out)
{
    solving s = {.spec = spec, .goal = goal};
    etch_sym *sym = spec->sym;
    const etch_symbol *const *runs;
    bool fine = true;
    *out = (etch_token_answer){0};
    if (!etch_run_in_force(spec, goal->run) && !goal->run && etch_run_candidates(spec, &runs) > 1)
        return true; /* each quantity says of which run it is */
    if (!find_tokens(&s))
        return false;
    etch_expr var = find_unknown(&s, &out->needed, &fine);
    if (!var)
        return fine;
    etch_expr root = root_of(&s, var);
    if (!root) {
        etch_diag *diag =
            refuse(&s, etch_text(spec->arena, "is not solved for %s: they are no multiple of it",
                                 etch_var_name(var)));
        return etch_help(diag, "give it: --set %s=...", etch_var_name(var));
    }
    const etch_range range = range_of(spec, var);
    etch_expr least = etch_int(sym, range.type == ETCH_PARAM_REAL ? 0 : range.least);
    const int side = etch_constant_compare(sym, root, least);
    if (range.type == ETCH_PARAM_REAL && side <= 0)
        return refuse(&s, etch_text(spec->arena, "needs %s = %s, which is not above 0", etch_var_name(var),
                                    text_of(&s, root))) == NULL;
    if (range.type != ETCH_PARAM_REAL && (side < 0 || !etch_is_integer_constant(root)))
        return refuse_root(&s, var, root, least);
    out->var = var;
    out->value = root;
    return true;
}
