/* What statements about quantities say of all rows of a case behind some values: where a side of one moves
 * one way only with each axis behind, which is proved, its extreme decides for all of them. Which of these
 * rows are refused must be known without looking at them, so that they count as they would row by row:
 * conditions speak of the axes before alone, or what they ask of an axis behind is met by all of its values
 * as it is by their greatest common divisor. */
#include "session/sweep/sweep_int.h"

#include <string.h>

/* Proofs take longer than looking at fewer rows. */
#define LEAST_BEHIND UINT64_C(256)

typedef struct behind {
    const etch_sweep_case *self;
    const etch_case_formulas *given;
    etch_sym *sym;
    etch_arena *arena;
    /* by axis: its variable; of its values, all integers above 0: the least, the largest, what divides all */
    etch_expr *vars;
    int64_t *least, *largest, *common;
    /* the first axis behind */
    uint32_t first;
    /* of the level that is made */
    ETCH_VEC(etch_expr) formulas;
    ETCH_VEC(etch_case_must) musts;
    ETCH_VEC(etch_sweep_claim) claims;
    ETCH_VEC(uint32_t) of;
} behind;

/* ---- axes ---------------------------------------------------------------------------------------------- */

static int64_t gcd(int64_t a, int64_t b)
{
    while (b != 0) {
        const int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* Have all values of an axis one case, and are they plain numbers? */
static bool look_at_axis(behind *b, uint32_t i)
{
    const etch_sweep_axis *axis = &b->self->key.frame->axes[i];
    bool fine = axis->values && axis->value_count > 0 && !axis->decides && !axis->is_factor && !axis->real;
    b->vars[i] = etch_var(b->sym, axis->name);
    for (uint32_t k = 0; fine && k < axis->value_count; k++) {
        const etch_exact value = axis->values[k];
        fine = !value.text && value.denominator == 1 && value.number > axis->is_size;
        if (!fine)
            break;
        b->least[i] = k == 0 || value.number < b->least[i] ? value.number : b->least[i];
        b->largest[i] = value.number > b->largest[i] ? value.number : b->largest[i];
        b->common[i] = gcd(b->common[i], value.number);
    }
    return fine;
}

static bool speaks_of(const behind *b, etch_expr formula)
{
    const etch_expr *vars;
    const uint32_t count = etch_vars_of(b->sym, formula, &vars);
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t k = b->first; k < b->self->key.frame->axis_count; k++)
            if (vars[i] == b->vars[k])
                return true;
    return false;
}

/* ---- conditions ---------------------------------------------------------------------------------------- */

/* A product of powers above 0 of the axes behind, at what divides all of their values: at these it is a
 * multiple of that. NULL: it is none. */
static etch_expr at_common(const behind *b, etch_expr formula)
{
    const uint32_t count = b->self->key.frame->axis_count - b->first;
    const etch_expr *vars = b->vars + b->first;
    etch_collected *parts;
    if (etch_collect(b->sym, formula, count, vars, &parts) != 1 || speaks_of(b, parts[0].coef))
        return NULL;
    etch_expr *values = ETCH_NEW_ARRAY(b->arena, count, etch_expr);
    for (uint32_t i = 0; i < count; i++) {
        int64_t low, high;
        if (!etch_degree(b->sym, parts[0].mono, vars[i], &low, &high) || low < 0 || low != high)
            return NULL;
        values[i] = etch_int(b->sym, b->common[b->first + i]);
    }
    return etch_subst(b->sym, formula, count, vars, values);
}

/* Adds a condition on the axes before from which that on all follows. False: there is none. */
static bool add_must(behind *b, const etch_case_must *given)
{
    etch_expr left = b->given->musts[given->left], right = b->given->musts[given->right];
    const bool of_left = speaks_of(b, left), number = given->must.kind == ETCH_MUST_BE_NUMBER;
    const bool of_right = !number && speaks_of(b, right);
    if (of_left && number && !given->must.share)
        left = at_common(b, left);
    else if (of_right && !of_left && given->must.kind == ETCH_MUST_DIVIDE)
        right = at_common(b, right);
    else if (of_left || of_right)
        return false;
    etch_case_must own = *given;
    own.left = own.right = b->formulas.count;
    if (!left || !right)
        return false;
    ETCH_PUSH(b->arena, &b->formulas, left);
    if (!number) {
        own.right = b->formulas.count;
        ETCH_PUSH(b->arena, &b->formulas, right);
    }
    ETCH_PUSH(b->arena, &b->musts, own);
    return true;
}

/* ---- statements ---------------------------------------------------------------------------------------- */

/* The least, or largest, that a formula may be behind; NULL: nobody can tell. A formula of which both are
 * told is defined everywhere. */
static etch_expr extreme_of(const behind *b, etch_expr formula, bool least)
{
    for (uint32_t i = b->first; formula && i < b->self->key.frame->axis_count; i++) {
        const etch_trend trend = etch_trend_of(b->sym, formula, b->vars[i]);
        if (trend == ETCH_TREND_CONSTANT)
            continue;
        etch_expr at = etch_int(b->sym, (trend == ETCH_TREND_RISING) == least ? b->least[i] : b->largest[i]);
        formula = trend == ETCH_TREND_UNKNOWN ? NULL : etch_subst(b->sym, formula, 1, &b->vars[i], &at);
    }
    return formula;
}

static void add_bound(behind *b, uint32_t statement, etch_relation relation, etch_expr bound)
{
    const etch_sweep_claim claim = {relation, b->formulas.count, b->formulas.count + 1};
    ETCH_PUSH(b->arena, &b->formulas, bound);
    ETCH_PUSH(b->arena, &b->formulas, etch_int(b->sym, 0));
    ETCH_PUSH(b->arena, &b->claims, claim);
    ETCH_PUSH(b->arena, &b->of, statement);
}

/* False: it may be undefined for some row behind. */
static bool add_statement(behind *b, uint32_t i)
{
    const etch_sweep_claim *claim = &b->self->claim[i];
    etch_expr left = b->given->claims[claim->left], right = b->given->claims[claim->right];
    if (!extreme_of(b, left, true) || !extreme_of(b, right, true))
        return false;
    etch_expr gap = etch_sub(b->sym, left, right);
    const bool below = claim->relation == ETCH_REL_LE || claim->relation == ETCH_REL_LT;
    const bool above = claim->relation == ETCH_REL_GE || claim->relation == ETCH_REL_GT;
    etch_expr bound = below || above ? extreme_of(b, gap, below) : NULL;
    if (bound)
        add_bound(b, b->self->claim_of[i], claim->relation, bound);
    return true;
}

/* ---- levels -------------------------------------------------------------------------------------------- */

static void keep_level(const behind *b, etch_case_cut *out)
{
    etch_arena *arena = b->self->arena;
    if (b->claims.count == 0 ||
        etch_compile(b->sym, b->formulas.count, b->formulas.at, &out->program) != ETCH_OK)
        return;
    out->inputs = etch_frame_inputs(arena, b->self->key.frame, out->program);
    etch_case_must *musts = ETCH_NEW_ARRAY(arena, b->musts.count, etch_case_must);
    etch_sweep_claim *claims = ETCH_NEW_ARRAY(arena, b->claims.count, etch_sweep_claim);
    uint32_t *of = ETCH_NEW_ARRAY(arena, b->of.count, uint32_t);
    if (b->musts.count)
        memcpy(musts, b->musts.at, b->musts.count * sizeof *musts);
    memcpy(claims, b->claims.at, b->claims.count * sizeof *claims);
    memcpy(of, b->of.at, b->of.count * sizeof *of);
    out->musts = musts;
    out->must_count = b->musts.count;
    out->claims = claims;
    out->of = of;
    out->count = b->claims.count;
}

/* False: none is to be had here, and so none of fewer values. */
static bool make_level(behind *b, etch_case_cut *out)
{
    bool fine = true;
    b->formulas.count = b->musts.count = b->claims.count = b->of.count = 0;
    for (uint32_t i = 0; fine && i < b->self->must_count; i++)
        fine = add_must(b, &b->self->must[i]);
    for (uint32_t i = 0; fine && i < b->self->claim_count; i++)
        fine = add_statement(b, i);
    if (fine)
        keep_level(b, out);
    return fine;
}

void etch_case_find_cuts(etch_sweep_case *self, const etch_case_formulas *given)
{
    const etch_sweep_frame *frame = self->key.frame;
    const uint32_t count = frame->axis_count;
    behind b = {.self = self, .given = given, .sym = given->sym, .arena = given->arena};
    if (!frame->cuts || self->key.by_row || self->claim_count == 0 || count < 2)
        return;
    b.vars = ETCH_NEW_ARRAY(b.arena, count, etch_expr);
    b.least = ETCH_NEW_ARRAY(b.arena, count, int64_t);
    b.largest = ETCH_NEW_ARRAY(b.arena, count, int64_t);
    b.common = ETCH_NEW_ARRAY(b.arena, count, int64_t);
    self->cuts = ETCH_NEW_ARRAY(self->arena, count, etch_case_cut);
    for (b.first = count; b.first-- > 1;) {
        const etch_sweep_cuts *cuts = &frame->cuts[b.first - 1];
        if (!look_at_axis(&b, b.first) || cuts->rows == 0 || !cuts->plain_before)
            break;
        if (cuts->rows >= LEAST_BEHIND && !make_level(&b, &self->cuts[b.first - 1]))
            break;
    }
}
