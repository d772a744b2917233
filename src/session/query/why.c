/* Why a formula is what it is: its terms, and the places of the spec that each of them comes from. */
#include "session/query/query.h"

#include <string.h>

/* ---- terms --------------------------------------------------------------------------------------------- */

/* An expression as coef * mono, summed. */
typedef struct parts {
    etch_collected *at;
    uint32_t count;
} parts;

static etch_expr term_of(etch_sym *sym, const parts *value, etch_expr mono)
{
    for (uint32_t i = 0; i < value->count; i++)
        if (value->at[i].mono == mono)
            return etch_mul(sym, value->at[i].coef, mono);
    return etch_int(sym, 0);
}

etch_terms etch_terms_of(etch_session *session, etch_expr total, const etch_expr *summands, uint32_t count)
{
    etch_sym *sym = session->sym;
    const etch_expr *vars;
    const uint32_t var_count = etch_vars_of(sym, total, &vars);
    parts whole;
    whole.count = etch_collect(sym, total, var_count, vars, &whole.at);
    etch_terms terms = {.count = whole.count,
                        .whole = ETCH_NEW_ARRAY(session->arena, whole.count, etch_expr),
                        .share = ETCH_NEW_ARRAY(session->arena, (size_t)whole.count * count, etch_expr)};
    for (uint32_t i = 0; i < whole.count; i++)
        terms.whole[i] = etch_mul(sym, whole.at[i].coef, whole.at[i].mono);
    for (uint32_t k = 0; k < count; k++) {
        parts own;
        own.count = etch_collect(sym, summands[k], var_count, vars, &own.at);
        for (uint32_t i = 0; i < whole.count; i++)
            terms.share[(size_t)i * count + k] = term_of(sym, &own, whole.at[i].mono);
    }
    return terms;
}

/* ---- where they come from ------------------------------------------------------------------------------ */

const etch_phrase_view *etch_cost_explain(etch_session *session, const etch_compiled *p,
                                          const etch_cost *cost, const char *const *names, size_t *count)
{
    etch_phrases phrases = {0};
    const etch_explaining how = {p->placed, session->arena, etch_compiled_axes(session, p, UINT32_MAX), names,
                                 &phrases};
    if (cost->step)
        etch_step_explain(&how, cost->step);
    else
        etch_provenance_explain(&how, &cost->provenance, cost->axes);
    etch_phrase_view *rows = ETCH_NEW_ARRAY(session->arena, phrases.count, etch_phrase_view);
    for (uint32_t i = 0; i < phrases.count; i++)
        rows[i] = (etch_phrase_view){.role = phrases.at[i].role,
                                     .text = phrases.at[i].text,
                                     .of_plan = phrases.at[i].of_plan,
                                     .location = etch_locate(session, phrases.at[i].span)};
    *count = phrases.count;
    return rows;
}

/* What looks alike is one: calls of a module from different places of the same caller, too. */
static bool same_place(etch_session *session, const etch_compiled *p, const etch_cost *a, const etch_cost *b)
{
    return a->phase == b->phase && a->axes == b->axes && a->provenance.rule == b->provenance.rule &&
           a->provenance.line.start == b->provenance.line.start && a->span.start == b->span.start &&
           a->span.end == b->span.end && strcmp(etch_cost_op_name(a), etch_cost_op_name(b)) == 0 &&
           (a->scope == b->scope || strcmp(etch_cost_label(session, p, a, ETCH_BY_MODULE),
                                           etch_cost_label(session, p, b, ETCH_BY_MODULE)) == 0);
}

static bool moves(const etch_cost *cost)
{
    return cost->measure == ETCH_COMM || cost->measure == ETCH_WIRE;
}

/* Collectives of one line of the spec may have different reasons: the keys and the values of an attention. */
static const char *reason_text(etch_session *session, const etch_compiled *p, const etch_cost *cost)
{
    size_t count = 0;
    const etch_phrase_view *phrases = moves(cost) ? etch_cost_explain(session, p, cost, NULL, &count) : NULL;
    etch_buf text = {.arena = session->arena};
    etch_buf_puts(&text, "");
    for (size_t i = 0; i < count; i++)
        etch_buf_printf(&text, "%s\n", phrases[i].text);
    return text.text;
}

void etch_contributions_of(etch_session *session, const etch_compiled *p, const etch_picks *picks,
                           etch_contributions *out)
{
    for (uint32_t i = 0; i < picks->count; i++) {
        const etch_pick *pick = &picks->at[i];
        const char *why = reason_text(session, p, pick->cost);
        uint32_t k = 0;
        while (k < out->count &&
               !(same_place(session, p, out->at[k].cost, pick->cost) && strcmp(out->at[k].why, why) == 0))
            k++;
        if (k == out->count)
            ETCH_PUSH(session->arena, out, (etch_contribution){pick->cost, why, etch_int(session->sym, 0)});
        out->at[k].sum = etch_add(session->sym, out->at[k].sum, pick->amount);
    }
}

static etch_reason reason_of(etch_session *session, const etch_compiled *p, const etch_cost *cost)
{
    const bool weight = cost->measure == ETCH_PARAMS;
    etch_reason reason = {.op = weight ? "weight" : etch_cost_op_name(cost),
                          .module = etch_cost_label(session, p, cost, ETCH_BY_MODULE),
                          .phased = !weight,
                          .phase = weight ? ETCH_FORWARD : cost->phase,
                          .tensor = cost->tensor ? cost->tensor->name : NULL,
                          .location = etch_locate(session, cost->span)};
    if (moves(cost))
        reason.why = etch_cost_explain(session, p, cost, NULL, &reason.why_count);
    return reason;
}

void etch_answer_why(etch_session *session, const etch_compiled *p, const etch_contributions *from,
                     etch_expr total, const etch_query_options *options, etch_answer *answer)
{
    etch_expr *sums = ETCH_NEW_ARRAY(session->arena, from->count, etch_expr);
    for (uint32_t k = 0; k < from->count; k++)
        sums[k] = from->at[k].sum;
    const etch_terms terms = etch_terms_of(session, total, sums, from->count);
    etch_term *rows = ETCH_NEW_ARRAY(session->arena, terms.count, etch_term);
    for (uint32_t i = 0; i < terms.count; i++) {
        etch_reason *reasons = ETCH_NEW_ARRAY(session->arena, from->count, etch_reason);
        rows[i].amount =
            etch_amount_of(session, terms.whole[i], answer->unit, options->notation, options->form);
        for (uint32_t k = 0; k < from->count; k++) {
            const etch_expr share = terms.share[(size_t)i * from->count + k];
            if (etch_is_zero(share))
                continue;
            etch_reason *reason = &reasons[rows[i].reason_count++];
            *reason = reason_of(session, p, from->at[k].cost);
            reason->amount = etch_amount_of(session, share, answer->unit, options->notation, options->form);
        }
        rows[i].reasons = reasons;
    }
    answer->terms = rows;
    answer->term_count = terms.count;
}
