/* Statements with the values in force: decided where they say something. */
#include "session/core/core.h"

#include <string.h>

etch_claim etch_claim_apply(etch_session *session, const etch_claim *written, const etch_settings *settings)
{
    etch_claim claim = *written;
    claim.left = etch_settings_apply(session->sym, settings, written->left);
    claim.right = etch_settings_apply(session->sym, settings, written->right);
    return claim;
}

const char *etch_witness_text(etch_session *session, const etch_witness *witness)
{
    etch_buf text = {.arena = session->arena};
    for (uint32_t i = 0; i < witness->count; i++)
        etch_buf_printf(&text, "%s%s = %s", i ? ", " : "", etch_expr_text(session->sym, witness->vars[i]),
                        etch_expr_text(session->sym, witness->values[i]));
    return text.text;
}

void etch_forget_open(etch_session *session)
{
    session->open_axes.count = 0;
    session->open_stages.count = 0;
}

static void remark_open_stages(etch_session *session)
{
    for (uint32_t i = 0; i < session->open_stages.count; i++)
        etch_remark(session->diags, ETCH_E_QUERY_AXES, (etch_span){0, 0},
                    "holds for %s, each with an iteration of the loop", session->open_stages.at[i].text);
}

static void remark_open_axes(etch_session *session)
{
    if (session->open_axes.count == 0)
        return;
    etch_buf names = {.arena = session->arena};
    for (uint32_t i = 0; i < session->open_axes.count; i++)
        etch_buf_printf(&names, "%s%s > 1", i ? ", " : "", session->open_axes.at[i].name);
    etch_remark(session->diags, ETCH_E_QUERY_AXES, (etch_span){0, 0},
                "holds for %s: an axis of 1 has no collectives", names.text);
}

void etch_remark_open(etch_session *session)
{
    remark_open_axes(session);
    remark_open_stages(session);
    etch_forget_open(session);
}

/* ---- where a statement says something ------------------------------------------------------------------ */

/* Expressions that are not 0 wherever it does. */
typedef ETCH_VEC(etch_expr) guards;

static bool may_be_zero(etch_session *session, etch_expr value)
{
    const etch_claim nonzero = {.relation = ETCH_REL_NE, .left = value, .right = etch_int(session->sym, 0)};
    return etch_claim_holds(session->spec, &nonzero, NULL) != ETCH_YES;
}

static guards find_guards(etch_session *session, const etch_claim *written, const etch_settings *settings,
                          etch_judgement *out)
{
    etch_sym *sym = session->sym;
    guards all = {0};
    for (uint32_t i = 0; i < written->divisor_count; i++) {
        etch_expr divisor = etch_settings_apply(sym, settings, written->divisors[i]);
        if (divisor && may_be_zero(session, divisor))
            ETCH_PUSH(session->arena, &all, divisor);
    }
    out->nonzero = all.at;
    out->nonzero_count = all.count;
    for (uint32_t i = 0; i < session->open_axes.count; i++) {
        etch_expr above_one = etch_sub(sym, session->open_axes.at[i].size, etch_int(sym, 1));
        if (above_one && may_be_zero(session, above_one))
            ETCH_PUSH(session->arena, &all, above_one);
    }
    for (uint32_t i = 0; i < session->open_stages.count; i++) {
        etch_expr formed = etch_settings_apply(sym, settings, session->open_stages.at[i].in_form);
        if (formed && may_be_zero(session, formed))
            ETCH_PUSH(session->arena, &all, formed);
    }
    return all;
}

/* Is every guard other than 0 at the witness? One with variables that the witness leaves open is for some
 * values of them: nothing ties them to those that are given. */
static bool is_guarded(etch_session *session, const guards *all, const etch_witness *witness)
{
    for (uint32_t i = 0; i < all->count; i++) {
        etch_expr value =
            etch_subst(session->sym, all->at[i], witness->count, witness->vars, witness->values);
        if (!value || etch_is_zero(value))
            return false;
    }
    return true;
}

/* The same question, times the squares of all guards: where one is 0 it is true. Of `>` only what refutes
 * `>=`. */
static etch_truth ask_guarded(etch_session *session, const etch_claim *claim, const guards *all,
                              etch_witness *witness)
{
    etch_sym *sym = session->sym;
    etch_claim product = *claim;
    const bool strict = claim->relation == ETCH_REL_GT || claim->relation == ETCH_REL_LT;
    if (strict)
        product.relation = claim->relation == ETCH_REL_GT ? ETCH_REL_GE : ETCH_REL_LE;
    else if (claim->relation != ETCH_REL_EQ && claim->relation != ETCH_REL_GE &&
             claim->relation != ETCH_REL_LE)
        return ETCH_UNKNOWN;
    for (uint32_t i = 0; i < all->count; i++) {
        etch_expr square = etch_pow(sym, all->at[i], 2);
        product.left = etch_mul(sym, product.left, square);
        product.right = etch_mul(sym, product.right, square);
    }
    const etch_truth truth = etch_claim_holds(session->spec, &product, witness);
    return strict && truth != ETCH_NO ? ETCH_UNKNOWN : truth;
}

/* Is it so for all axes from 2 on? Each open axis that is a variable becomes 1 more than a variable of its
 * own, which none of the facts about the axis speak of: what is proved so is true. */
static bool proved_above_one(etch_session *session, const etch_claim *claim)
{
    etch_sym *sym = session->sym;
    const uint32_t count = session->open_axes.count;
    etch_expr *vars = ETCH_NEW_ARRAY(session->arena, count, etch_expr);
    etch_expr *values = ETCH_NEW_ARRAY(session->arena, count, etch_expr);
    uint32_t found = 0;
    for (uint32_t i = 0; i < count; i++) {
        const char *name = etch_var_name(session->open_axes.at[i].size);
        bool known = !name;
        for (uint32_t k = 0; !known && k < found; k++)
            known = vars[k] == session->open_axes.at[i].size;
        if (known)
            continue;
        etch_expr less = etch_var(sym, etch_text(session->arena, "(%s - 1)", name));
        vars[found] = session->open_axes.at[i].size;
        values[found++] = etch_add(sym, less, etch_int(sym, 1));
    }
    etch_claim above = *claim;
    above.left = etch_subst(sym, claim->left, found, vars, values);
    above.right = etch_subst(sym, claim->right, found, vars, values);
    return found > 0 && above.left && above.right &&
           etch_claim_holds(session->spec, &above, NULL) == ETCH_YES;
}

/* The value at a witness; variables that it leaves open have the value `open`. */
static etch_expr value_at(etch_session *session, etch_expr expr, const etch_witness *witness, int64_t open)
{
    etch_sym *sym = session->sym;
    const etch_expr *vars;
    etch_expr value = expr ? etch_subst(sym, expr, witness->count, witness->vars, witness->values) : NULL;
    const uint32_t count = value ? etch_vars_of(sym, value, &vars) : 0;
    etch_expr *values = ETCH_NEW_ARRAY(session->arena, count, etch_expr);
    for (uint32_t i = 0; i < count; i++)
        values[i] = etch_int(sym, open);
    return count > 0 ? etch_subst(sym, value, count, vars, values) : value;
}

static bool is_named(const etch_claim *claim, const etch_plan *plan)
{
    for (uint32_t i = 0; i < claim->plan_count; i++)
        if (strcmp(claim->plans[i], plan->name) == 0)
            return true;
    return false;
}

/* The placed pipelines whose quantities a claim may speak of: of the plans that it names, and of the one in
 * force. */
static bool concerns(etch_session *session, const etch_claim *claim, const etch_compiled *p)
{
    const etch_plan *in_force =
        etch_spec_plan(session->spec, session->options.plan, false, (etch_span){0, 0});
    return p->placed && (is_named(claim, p->plan) || p->plan == in_force);
}

/* Can this plan divide everything evenly at the witness? A size that the witness leaves open may be one that
 * much divides. */
static bool plan_allows(etch_session *session, const etch_compiled *p, const etch_settings *settings,
                        const etch_witness *witness)
{
    enum { MUCH_DIVIDED = 5040 * 1024 };
    etch_sym *sym = session->sym;
    for (uint32_t i = 0; i < p->plan->mesh.count; i++) {
        etch_expr size =
            value_at(session, etch_settings_apply(sym, settings, p->plan->mesh.at[i].size), witness, 1);
        if (!size || !etch_is_integer_constant(size))
            return false;
    }
    for (uint32_t i = 0; i < p->placed->requirements.count; i++) {
        const etch_requirement *r = &p->placed->requirements.at[i];
        etch_expr size =
            value_at(session, etch_settings_apply(sym, settings, r->size), witness, MUCH_DIVIDED);
        etch_expr divisor = value_at(session, etch_settings_apply(sym, settings, r->divisor), witness, 1);
        etch_expr part = size && divisor ? etch_div(sym, size, divisor) : NULL;
        if (!part || !etch_is_integer_constant(part))
            return false;
    }
    return true;
}

/* Can all plans whose quantities were asked for? These mean nothing elsewhere. */
static bool plans_allow(etch_session *session, const etch_claim *claim, const etch_settings *settings,
                        const etch_witness *witness)
{
    for (uint32_t i = 0; i < session->compiled_models.count; i++) {
        const etch_compiled *p = session->compiled_models.at[i];
        if (concerns(session, claim, p) && !plan_allows(session, p, settings, witness))
            return false;
    }
    return true;
}

static bool speaks_of(etch_session *session, etch_expr expr, etch_expr var)
{
    const etch_expr *vars;
    const uint32_t count = etch_vars_of(session->sym, expr, &vars);
    for (uint32_t i = 0; i < count; i++)
        if (vars[i] == var)
            return true;
    return false;
}

/* Is the variable a divisor: of a size in the mesh of one of the plans, or the number of microbatches? */
static bool is_divisor(etch_session *session, const etch_claim *claim, etch_expr var)
{
    for (uint32_t i = 0; i < session->compiled_models.count; i++) {
        const etch_compiled *p = session->compiled_models.at[i];
        if (!concerns(session, claim, p))
            continue;
        for (uint32_t k = 0; k < p->plan->mesh.count; k++)
            if (speaks_of(session, p->plan->mesh.at[k].size, var))
                return true;
        if (p->training->train.micro == var)
            return true;
    }
    return false;
}

static bool holds_at(etch_session *session, const etch_claim *claim, const etch_witness *at)
{
    etch_claim it = *claim;
    it.left = etch_subst(session->sym, claim->left, at->count, at->vars, at->values);
    it.right = etch_subst(session->sym, claim->right, at->count, at->vars, at->values);
    return !it.left || !it.right || etch_claim_holds(session->spec, &it, NULL) != ETCH_NO;
}

/* Do the spec's assumptions hold at a point, where variables that it leaves open have the value `open`? */
static bool assumptions_hold_at(etch_session *session, const etch_settings *settings, const etch_witness *at,
                                int64_t open)
{
    const etch_claim *claims;
    const uint32_t count = etch_spec_assumptions(session->spec, &claims);
    for (uint32_t i = 0; i < count; i++) {
        etch_claim it = etch_claim_apply(session, &claims[i], settings);
        it.left = value_at(session, it.left, at, open);
        it.right = value_at(session, it.right, at, open);
        if (it.left && it.right && etch_claim_holds(session->spec, &it, NULL) == ETCH_NO)
            return false;
    }
    return true;
}

/* Is the variable the number of stages of a pipeline that has a middle? */
static bool counts_stages(etch_session *session, etch_expr var)
{
    for (uint32_t i = 0; i < session->open_stages.count; i++) {
        const etch_plan *plan = session->open_stages.at[i].plan;
        for (uint32_t k = 0; k < plan->stage->axis_count; k++)
            if (plan->mesh.at[plan->stage->axes[k]].size == var)
                return true;
    }
    return false;
}

/* A point of values that most plans divide evenly: what divides is 2, and one of it, `wide`, 4; all else is
 * one power of two. There are four stages, and the one that a formula speaks of is the second. */
static void even_point(etch_session *session, const etch_claim *claim, uint32_t wide, int power,
                       etch_witness *even)
{
    enum { SECOND = 1, NARROW = 2, WIDE = 4 };
    etch_expr *values = ETCH_NEW_ARRAY(session->arena, even->count, etch_expr);
    for (uint32_t i = 0; i < even->count; i++) {
        etch_expr var = even->vars[i];
        int64_t value = INT64_C(1) << power;
        if (strcmp(etch_var_name(var), "stage") == 0)
            value = SECOND;
        else if (is_divisor(session, claim, var))
            value = i == wide || counts_stages(session, var) ? WIDE : NARROW;
        values[i] = etch_int(session->sym, value);
    }
    even->values = values;
}

/* Where a plan divides something unevenly at the witness: looks for one where none does. */
static bool find_even_witness(etch_session *session, const etch_claim *claim, const etch_settings *settings,
                              const guards *all, etch_witness *witness)
{
    enum { LEAST_POWER = 3, MOST_POWER = 14 };
    etch_sym *sym = session->sym;
    const etch_expr *vars;
    const etch_claim both = {.left = etch_add(sym, etch_pow(sym, claim->left, 2), claim->right)};
    etch_witness even = {.count = etch_vars_of(sym, both.left, &vars), .vars = vars};
    for (uint32_t wide = even.count + 1; wide-- > 0;) { /* first with none of them wide */
        if (wide < even.count && !is_divisor(session, claim, vars[wide]))
            continue;
        for (int power = LEAST_POWER; power <= MOST_POWER; power++) {
            even_point(session, claim, wide, power, &even);
            if (!holds_at(session, claim, &even) && is_guarded(session, all, &even) &&
                plans_allow(session, claim, settings, &even) &&
                assumptions_hold_at(session, settings, &even, INT64_C(1) << power)) {
                *witness = even;
                return true;
            }
        }
    }
    return false;
}

static bool has_vars(etch_session *session, const etch_claim *claim)
{
    const etch_expr *vars;
    return etch_vars_of(session->sym, claim->left, &vars) > 0 ||
           etch_vars_of(session->sym, claim->right, &vars) > 0;
}

/* Does a claim hold whose sides are built again? */
static bool holds_remade(etch_session *session, const etch_claim *claim)
{
    etch_claim again = *claim;
    again.left = etch_remade(session->sym, claim->left);
    again.right = etch_remade(session->sym, claim->right);
    return again.left && again.right && etch_claim_holds(session->spec, &again, NULL) == ETCH_YES;
}

etch_judgement etch_session_judge(etch_session *session, const etch_claim *written,
                                  const etch_settings *settings)
{
    etch_judgement j = {.truth = ETCH_UNKNOWN, .claim = etch_claim_apply(session, written, settings)};
    const guards all = find_guards(session, written, settings, &j);
    if (!j.claim.left || !j.claim.right)
        return j;
    j.truth = etch_claim_holds(session->spec, &j.claim, &j.witness);
    if (j.truth == ETCH_UNKNOWN && holds_remade(session, &j.claim))
        j.truth = ETCH_YES;
    const bool doubtful = j.truth == ETCH_NO && !is_guarded(session, &all, &j.witness);
    if ((doubtful || j.truth == ETCH_UNKNOWN) && proved_above_one(session, &j.claim))
        j.truth = ETCH_YES;
    else if (doubtful)
        j.truth = ask_guarded(session, &j.claim, &all, &j.witness);
    /* what has no witness stays open; numbers need none */
    if (j.truth == ETCH_NO && has_vars(session, &j.claim) &&
        (j.witness.count == 0 || !is_guarded(session, &all, &j.witness) ||
         (!plans_allow(session, &j.claim, settings, &j.witness) &&
          !find_even_witness(session, &j.claim, settings, &all, &j.witness))))
        j.truth = ETCH_UNKNOWN;
    else if (j.truth == ETCH_UNKNOWN && has_vars(session, &j.claim) &&
             find_even_witness(session, &j.claim, settings, &all, &j.witness))
        j.truth = ETCH_NO;
    if (j.truth != ETCH_NO)
        j.witness = (etch_witness){0};
    return j;
}
