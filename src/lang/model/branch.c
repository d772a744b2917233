/* Branches: facts, settings and defaults decide them, or the class of iterations. */
#include "lang/model/model_int.h"
#include "lang/names/series.h"

/* What must hold when `relation` does not. */
static bool negated(etch_relation relation, etch_relation *out)
{
    static const etch_relation table[] = {
        [ETCH_REL_EQ] = ETCH_REL_NE, [ETCH_REL_NE] = ETCH_REL_EQ, [ETCH_REL_LE] = ETCH_REL_GT,
        [ETCH_REL_GE] = ETCH_REL_LT, [ETCH_REL_LT] = ETCH_REL_GE, [ETCH_REL_GT] = ETCH_REL_LE};
    if (relation == ETCH_REL_DIVIDES || relation == ETCH_REL_TRUE)
        return false;
    *out = table[relation];
    return true;
}

static etch_truth decide(etch_spec *spec, etch_claim claim)
{
    if (etch_claim_holds(spec, &claim, NULL) == ETCH_YES)
        return ETCH_YES;
    if (etch_is_constant(claim.left) && etch_is_constant(claim.right))
        return ETCH_NO;
    if (!negated(claim.relation, &claim.relation))
        return ETCH_UNKNOWN;
    return etch_claim_holds(spec, &claim, NULL) == ETCH_YES ? ETCH_NO : ETCH_UNKNOWN;
}

static etch_claim with_defaults(const etch_builder *b, etch_claim claim)
{
    claim.left = etch_graph_with_defaults(b->graph, claim.left);
    claim.right = etch_graph_with_defaults(b->graph, claim.right);
    return claim;
}

/* `at(kinds, layer) == "M"` */
static etch_truth decide_one(etch_env *env, const etch_ast_expr *test)
{
    etch_one one;
    uint32_t at;
    const bool *holds = etch_env_tested_one(env, test, &one) ? etch_env_test_each(env, test, &one) : NULL;
    if (!holds)
        return ETCH_UNKNOWN;
    if (etch_env_has_index(env, one.position))
        return etch_env_decide_position(env, &one, holds);
    if (!etch_env_place(env, &one, &at))
        return ETCH_UNKNOWN;
    return holds[at] ? ETCH_YES : ETCH_NO;
}

etch_truth etch_env_decide(etch_env *env, const etch_ast_expr *test)
{
    etch_builder *b = env->builder;
    etch_spec *spec = b->spec;
    if (etch_is_test_of_one(test))
        return decide_one(env, test);
    if (etch_env_has_index(env, test))
        return etch_env_decide_index(env, test);
    etch_lookup lookup = etch_env_lookup(env);
    etch_claim claim = etch_claim_of(spec, test, &lookup);
    if (!claim.left || !claim.right)
        return ETCH_UNKNOWN;
    claim.left = etch_settings_apply(spec->sym, b->settings, claim.left);
    claim.right = etch_settings_apply(spec->sym, b->settings, claim.right);
    etch_truth truth = decide(spec, claim);
    if (truth != ETCH_UNKNOWN)
        return truth;
    claim = with_defaults(b, claim);
    truth = claim.left && claim.right ? decide(spec, claim) : ETCH_UNKNOWN;
    if (truth != ETCH_UNKNOWN) {
        etch_remark(spec->diags, ETCH_E_UNDECIDED, test->span, "decided by the defaults of params");
        return truth;
    }
    etch_diag *diag = etch_error(spec->diags, ETCH_E_UNDECIDED, test->span,
                                 "neither facts nor bindings decide this branch");
    etch_help(diag, "bind its params in a config or with --set");
    return ETCH_UNKNOWN;
}

/* ---- what holds inside --------------------------------------------------------------------------------- */

static bool is_more(etch_spec *spec, etch_expr a, etch_expr b)
{
    return etch_at_least(spec->sym, a, b, NULL) == ETCH_YES;
}

static void know(etch_builder *b, etch_expr more, etch_expr less)
{
    ETCH_PUSH(b->spec->arena, &b->graph->known, (etch_known){more, less});
}

/* more > less */
static void know_above(etch_builder *b, etch_expr more, etch_expr less)
{
    etch_sym *sym = b->spec->sym;
    const bool whole =
        etch_is_integer(sym, more, NULL) == ETCH_YES && etch_is_integer(sym, less, NULL) == ETCH_YES;
    know(b, whole ? etch_sub(sym, more, etch_int(sym, 1)) : more, less);
}

static void know_claim(etch_builder *b, const etch_claim *c, etch_relation relation)
{
    switch (relation) {
    case ETCH_REL_EQ:
        know(b, c->left, c->right);
        know(b, c->right, c->left);
        break;
    case ETCH_REL_GE:
        know(b, c->left, c->right);
        break;
    case ETCH_REL_LE:
        know(b, c->right, c->left);
        break;
    case ETCH_REL_GT:
        know_above(b, c->left, c->right);
        break;
    case ETCH_REL_LT:
        know_above(b, c->right, c->left);
        break;
    case ETCH_REL_NE:
    case ETCH_REL_TRUE: /* right is 0 */
        if (is_more(b->spec, c->left, c->right))
            know_above(b, c->left, c->right);
        else if (is_more(b->spec, c->right, c->left))
            know_above(b, c->right, c->left);
        break;
    case ETCH_REL_DIVIDES:
        break;
    }
}

void etch_env_know(etch_env *env, const etch_ast_expr *test, bool holds)
{
    etch_builder *b = env->builder;
    const etch_lookup lookup = etch_env_lookup(env);
    if (etch_env_has_index(env, test) || etch_is_test_of_one(test) || etch_is_membership(test))
        return;
    const etch_claim claim = etch_claim_of(b->spec, test, &lookup);
    etch_relation relation = claim.relation == ETCH_REL_TRUE ? ETCH_REL_NE : claim.relation;
    if (claim.left && claim.right && (holds || negated(relation, &relation)))
        know_claim(b, &claim, relation);
}
