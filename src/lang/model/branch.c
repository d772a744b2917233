/* Branches: facts, settings and defaults decide them, or the class of iterations. */
#include "lang/model/model_int.h"

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
    const etch_graph *g = b->graph;
    claim.left = etch_subst(b->spec->sym, claim.left, g->default_count, g->default_vars, g->default_values);
    claim.right = etch_subst(b->spec->sym, claim.right, g->default_count, g->default_vars, g->default_values);
    return claim;
}

etch_truth etch_env_decide(etch_env *env, const etch_ast_expr *test)
{
    etch_builder *b = env->builder;
    etch_spec *spec = b->spec;
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
