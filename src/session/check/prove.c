/* Proofs: a statement holds for all values that the spec allows, or for these it does not, or nobody
 * knows. */
#include "session/query/query.h"

#include <string.h>

#define PROVE_NAME "statement" /* the path in messages about it */

typedef struct proving {
    etch_session *session;
    const char *text;
    etch_proof *proof;
    etch_truth truth;
} proving;

static const char *text_or_null(etch_session *session, etch_expr expr)
{
    return expr ? etch_expr_text(session->sym, expr) : NULL;
}

static void add_conditions(etch_session *session, const etch_judgement *j, etch_proof *proof)
{
    const char **texts = ETCH_NEW_ARRAY(session->arena, j->nonzero_count, const char *);
    for (uint32_t i = 0; i < j->nonzero_count; i++)
        texts[i] = etch_text(session->arena, "%s != 0", etch_expr_text(session->sym, j->nonzero[i]));
    proof->conditions = texts;
    proof->condition_count = j->nonzero_count;
}

static void add_witness(etch_session *session, const etch_judgement *j, etch_proof *proof)
{
    const etch_witness *w = &j->witness;
    etch_sym *sym = session->sym;
    etch_assignment *values = ETCH_NEW_ARRAY(session->arena, w->count, etch_assignment);
    for (uint32_t i = 0; i < w->count; i++)
        values[i] = (etch_assignment){etch_expr_text(sym, w->vars[i]), etch_expr_text(sym, w->values[i])};
    proof->witness = values;
    proof->witness_count = w->count;
    proof->left_value = text_or_null(session, etch_subst(sym, j->claim.left, w->count, w->vars, w->values));
    proof->right_value = text_or_null(session, etch_subst(sym, j->claim.right, w->count, w->vars, w->values));
}

static void conclude(const proving *p, const etch_judgement *j)
{
    etch_session *session = p->session;
    etch_proof *proof = p->proof;
    const etch_claim *c = &j->claim;
    proof->statement = etch_copy_text(session->arena, p->text, strlen(p->text));
    proof->truth = j->truth;
    proof->left = etch_expr_text(session->sym, c->left);
    proof->right = etch_expr_text(session->sym, c->right);
    if (c->relation != ETCH_REL_DIVIDES)
        proof->difference = text_or_null(session, etch_sub(session->sym, c->left, c->right));
    add_conditions(session, j, proof);
    if (j->truth == ETCH_NO)
        add_witness(session, j, proof);
}

static etch_status prove(void *data)
{
    proving *p = data;
    etch_session *session = p->session;
    const uint32_t errors = etch_error_count(session->diags);
    const etch_plan *plan;
    session->of_one_case = false;
    if (etch_spec_plan_is_broken(session->spec, session->options.plan) || !etch_session_plan(session, &plan))
        return ETCH_EINPUT;
    const etch_settings *given = etch_session_settings(session, plan);
    if (!given || !etch_check_assumptions(session, given))
        return ETCH_EINPUT;
    session->latest = NULL;
    etch_forget_open(session);
    const etch_quantities quantities = etch_session_quantities(session);
    const etch_claim claim = etch_spec_claim(session->spec, p->text, PROVE_NAME, plan, &quantities);
    /* A plan that only a quantity names knows axes that values may be given to. */
    const bool named = claim.left && !plan && session->latest;
    const etch_settings *settings = !claim.left ? NULL
                                    : named     ? session->latest->settings
                                                : etch_session_settings(session, plan);
    if (!settings || etch_error_count(session->diags) > errors)
        return ETCH_EINPUT;
    const etch_judgement judged = etch_session_judge(session, &claim, settings);
    if (!judged.claim.left || !judged.claim.right) {
        etch_error(session->diags, ETCH_E_QUERY_UNDEFINED, claim.span,
                   "'%s' is undefined for these values: a divisor is 0", p->text);
        return ETCH_EINPUT;
    }
    etch_remark_open(session);
    p->proof = ETCH_NEW(session->arena, etch_proof);
    p->truth = judged.truth;
    conclude(p, &judged);
    return ETCH_OK;
}

etch_status etch_session_prove(etch_session *session, const char *statement, const etch_proof **result)
{
    proving p = {.session = session, .text = statement};
    etch_status status = etch_session_run(session, prove, &p);
    *result = session->broken == ETCH_OK ? p.proof : NULL;
    if (status != ETCH_OK)
        return status;
    return p.truth == ETCH_YES ? ETCH_OK : p.truth == ETCH_NO ? ETCH_EINPUT : ETCH_EUNKNOWN;
}
