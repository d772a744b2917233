/* Which statements cut: they fail for some values of the first axes whatever those behind are, so that no row
 * behind is looked at. A statement whose axes all have values is decided; one that others follow, by the
 * extreme of what follows, where it is a sum of products of powers and so rises, or falls, with each of them.
 *
 * What is cut counts as it would row by row: as rows for which a condition does not hold. So a statement may
 * cut where those before it are defined for all rows, which would be refused otherwise, and the others are
 * known to hold for some row, which a message might ask. */
#include "session/sweep/frame_int.h"

#include <string.h>

/* Fewer rows are looked at as fast; more are cut by the values of the next axis. */
#define LEAST_CUT UINT64_C(16)
#define MOST_CUT (UINT64_C(1) << 40)

/* The statements of a frame as the first axes decide them. */
typedef struct cutting {
    etch_framing *f;
    /* by axis: all its values are above 0, and within its bounds; the least and the largest that it may have,
     * NULL: nobody knows */
    bool *positive;
    etch_expr *least, *largest;
    /* of the level that is made */
    ETCH_VEC(etch_expr) formulas;
    ETCH_VEC(etch_sweep_claim) claims;
    ETCH_VEC(uint32_t) of;
} cutting;

/* ---- axes ---------------------------------------------------------------------------------------------- */

static etch_expr constant_of(etch_sym *sym, etch_exact value)
{
    return etch_div(sym, etch_int(sym, value.number), etch_int(sym, value.denominator));
}

static void look_at_axis(cutting *c, uint32_t i)
{
    const etch_framing *f = c->f;
    const etch_sweep_axis *axis = &f->axes.at[i];
    etch_sym *sym = f->session->sym;
    c->positive[i] = true;
    if (axis->is_free) {
        c->least[i] = etch_int(sym, 1);
        c->largest[i] = etch_int(sym, (int64_t)f->frame->product);
        return;
    }
    for (uint32_t k = 0; k < axis->piece_count; k++)
        c->positive[i] = c->positive[i] && axis->pieces[k].kind == ETCH_VALUES_DIVISORS;
    etch_exact least = {1, 1, NULL}, largest = {1, 1, NULL};
    for (uint32_t k = 0; k < axis->value_count; k++) {
        const etch_exact value = axis->values[k];
        c->positive[i] = c->positive[i] && !value.text && value.number > 0;
        if (k == 0 || etch_exact_compare(f->sweep->arena, value, least) < 0)
            least = value;
        if (k == 0 || etch_exact_compare(f->sweep->arena, value, largest) > 0)
            largest = value;
    }
    if (axis->value_count > 0 && c->positive[i]) {
        c->least[i] = constant_of(sym, least);
        c->largest[i] = constant_of(sym, largest);
    }
}

static uint32_t axis_of(const cutting *c, etch_expr var)
{
    uint32_t i = 0;
    while (i < c->f->vars.count && c->f->vars.at[i] != var)
        i++;
    return i;
}

/* ---- formulas ------------------------------------------------------------------------------------------ */

/* The last axis that a formula speaks of, and behind it; 0: none. */
static uint32_t behind(const cutting *c, etch_expr formula)
{
    const etch_expr *vars;
    const uint32_t count = etch_vars_of(c->f->session->sym, formula, &vars);
    uint32_t last = 0;
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t axis = axis_of(c, vars[i]) + 1;
        last = axis > last ? axis : last;
    }
    return last;
}

/* How a formula moves with each of its axes: it is a sum of products of powers, all numbers above 0. UNKNOWN:
 * it is not; `var` NULL: in none of them in particular. */
static etch_trend trend_of(const cutting *c, etch_expr formula, etch_expr var)
{
    etch_sym *sym = c->f->session->sym;
    const etch_expr *vars;
    const uint32_t var_count = etch_vars_of(sym, formula, &vars);
    etch_collected *parts;
    const uint32_t count = etch_collect(sym, formula, var_count, vars, &parts);
    bool rises = false, falls = false;
    for (uint32_t i = 0; i < var_count; i++) {
        const uint32_t axis = axis_of(c, vars[i]);
        if (axis == c->f->vars.count || !c->positive[axis])
            return ETCH_TREND_UNKNOWN;
    }
    for (uint32_t i = 0; i < count; i++) {
        int64_t low = 0, high = 0;
        if (!etch_is_constant(parts[i].coef))
            return ETCH_TREND_UNKNOWN;
        if (!var || (etch_degree(sym, parts[i].mono, var, &low, &high) && high == 0))
            continue;
        const bool positive = etch_constant_compare(sym, parts[i].coef, etch_int(sym, 0)) > 0;
        rises = rises || positive == (high > 0);
        falls = falls || positive != (high > 0);
    }
    return rises && falls ? ETCH_TREND_UNKNOWN
           : rises        ? ETCH_TREND_RISING
           : falls        ? ETCH_TREND_FALLING
                          : ETCH_TREND_CONSTANT;
}

/* The least, or largest, that a formula may be with the values of the axes up to `level`. NULL: unknown. */
static etch_expr extreme_of(const cutting *c, etch_expr formula, uint32_t level, bool least)
{
    etch_sym *sym = c->f->session->sym;
    for (uint32_t i = level + 1; formula && i < c->f->vars.count; i++) {
        etch_expr var = c->f->vars.at[i];
        const etch_trend trend = trend_of(c, formula, var);
        if (trend == ETCH_TREND_CONSTANT)
            continue;
        etch_expr at = (trend == ETCH_TREND_RISING) == least ? c->least[i] : c->largest[i];
        formula = trend == ETCH_TREND_UNKNOWN || !at ? NULL : etch_subst(sym, formula, 1, &var, &at);
    }
    return formula;
}

/* ---- statements ---------------------------------------------------------------------------------------- */

static void add(cutting *c, uint32_t statement, etch_relation relation, etch_expr left, etch_expr right)
{
    etch_arena *arena = c->f->session->arena;
    const etch_sweep_claim claim = {relation, c->formulas.count, c->formulas.count + (right != NULL)};
    ETCH_PUSH(arena, &c->formulas, left);
    if (right)
        ETCH_PUSH(arena, &c->formulas, right);
    ETCH_PUSH(arena, &c->claims, claim);
    ETCH_PUSH(arena, &c->of, statement);
}

/* What follows from a statement, of the axes up to `level` alone, which it speaks of. */
static void add_bounds(cutting *c, uint32_t statement, etch_relation relation, etch_expr gap, uint32_t level)
{
    etch_sym *sym = c->f->session->sym;
    const bool equal = relation == ETCH_REL_EQ;
    const bool below = equal || relation == ETCH_REL_LE || relation == ETCH_REL_LT;
    const bool above = equal || relation == ETCH_REL_GE || relation == ETCH_REL_GT;
    etch_expr least = below ? extreme_of(c, gap, level, true) : NULL;
    etch_expr largest = above ? extreme_of(c, gap, level, false) : NULL;
    if (least)
        add(c, statement, equal ? ETCH_REL_LE : relation, least, etch_int(sym, 0));
    if (largest)
        add(c, statement, equal ? ETCH_REL_GE : relation, largest, etch_int(sym, 0));
}

static void add_statement(cutting *c, uint32_t statement, uint32_t level)
{
    const etch_framing *f = c->f;
    const etch_settings *settings = f->settings;
    etch_sym *sym = f->session->sym;
    const etch_claim *claim = &f->claims[statement];
    const bool unary = claim->relation == ETCH_REL_TRUE;
    etch_expr left = etch_settings_apply(sym, settings, claim->left);
    etch_expr right = unary ? NULL : etch_settings_apply(sym, settings, claim->right);
    if (!left || (!unary && !right))
        return;
    const uint32_t ends = behind(c, left), right_ends = right ? behind(c, right) : 0;
    const uint32_t last = ends > right_ends ? ends : right_ends;
    if (last == level + 1)
        add(c, statement, claim->relation, left, right);
    else if (last > level + 1 && !unary && trend_of(c, left, NULL) != ETCH_TREND_UNKNOWN &&
             trend_of(c, right, NULL) != ETCH_TREND_UNKNOWN)
        add_bounds(c, statement, claim->relation, etch_sub(sym, left, right), level);
}

/* Is it defined for all values of the axes? */
static bool is_defined(const cutting *c, uint32_t statement)
{
    const etch_framing *f = c->f;
    const etch_claim *claim = &f->claims[statement];
    etch_expr sides[] = {claim->left, claim->relation == ETCH_REL_TRUE ? claim->left : claim->right};
    for (int i = 0; i < 2; i++) {
        etch_expr side = etch_settings_apply(f->session->sym, f->settings, sides[i]);
        if (!side || trend_of(c, side, NULL) == ETCH_TREND_UNKNOWN)
            return false;
    }
    return true;
}

/* Do all statements speak of the axes up to one alone? */
static bool is_decided(const cutting *c, uint32_t level)
{
    const etch_framing *f = c->f;
    for (uint32_t s = 0; s < f->sweep->request.where.count; s++) {
        const etch_claim *claim = &f->claims[s];
        etch_expr sides[] = {claim->left, claim->relation == ETCH_REL_TRUE ? claim->left : claim->right};
        for (int i = 0; f->kinds[s] == ETCH_WHERE_PLAIN && i < 2; i++) {
            etch_expr side = etch_settings_apply(f->session->sym, f->settings, sides[i]);
            if (!side || behind(c, side) > level + 1)
                return false;
        }
    }
    return true;
}

/* ---- levels -------------------------------------------------------------------------------------------- */

static void make_level(cutting *c, uint32_t level, etch_sweep_cuts *out)
{
    etch_framing *f = c->f;
    etch_arena *arena = f->sweep->arena;
    bool defined = true;
    c->formulas.count = c->claims.count = c->of.count = 0;
    for (uint32_t s = 0; s < f->sweep->request.where.count && defined; s++)
        if (f->kinds[s] == ETCH_WHERE_PLAIN) {
            add_statement(c, s, level);
            defined = is_defined(c, s);
        }
    if (c->claims.count == 0)
        return;
    ETCH_PUSH(arena, &f->sweep->programs, NULL); /* it has an owner before it is there */
    if (etch_compile(f->session->sym, c->formulas.count, c->formulas.at, &out->program) != ETCH_OK)
        return;
    f->sweep->programs.at[f->sweep->programs.count - 1] = out->program;
    out->inputs = etch_frame_inputs(arena, f->frame, out->program);
    etch_sweep_claim *claims = ETCH_NEW_ARRAY(arena, c->claims.count, etch_sweep_claim);
    uint32_t *of = ETCH_NEW_ARRAY(arena, c->claims.count, uint32_t);
    memcpy(claims, c->claims.at, c->claims.count * sizeof *claims);
    memcpy(of, c->of.at, c->of.count * sizeof *of);
    out->claims = claims;
    out->of = of;
    out->count = c->claims.count;
}

void etch_framing_cuts(etch_framing *f)
{
    etch_arena *arena = f->session->arena;
    const uint32_t count = f->axes.count;
    cutting c = {.f = f};
    if (count < 2 || f->sweep->options->every_row)
        return;
    c.positive = ETCH_NEW_ARRAY(arena, count, bool);
    c.least = ETCH_NEW_ARRAY(arena, count, etch_expr);
    c.largest = ETCH_NEW_ARRAY(arena, count, etch_expr);
    for (uint32_t i = 0; i < count; i++)
        look_at_axis(&c, i);
    etch_sweep_cuts *cuts = ETCH_NEW_ARRAY(f->sweep->arena, count, etch_sweep_cuts);
    cuts[count - 1].rows = 1;
    for (uint32_t i = count - 1; i-- > 0;) {
        const etch_sweep_axis *next = &f->axes.at[i + 1];
        const bool known = next->values && !next->is_factor;
        cuts[i].rows = known ? cuts[i + 1].rows * next->value_count : 0;
        if (cuts[i].rows > MOST_CUT)
            break;
        cuts[i].plain_before = is_decided(&c, i);
        if (f->frame->program && (cuts[i].rows == 0 || cuts[i].rows >= LEAST_CUT))
            make_level(&c, i, &cuts[i]);
    }
    f->frame->cuts = cuts;
}
