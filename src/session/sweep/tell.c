/* Which rows are not printed, and why. */
#include "session/sweep/sweep_int.h"

#include <inttypes.h>
#include <string.h>

/* ---- the first row of a reason ------------------------------------------------------------------------- */

typedef struct asking {
    etch_sweep *sweep;
    const etch_tally *tally;
    etch_session *session;
} asking;

/* Whatever a query says of one of the expressions. */
static void ask_all(const asking *a)
{
    const etch_sweep_frame *frame = a->tally->frame;
    const etch_sweep_request *r = &a->sweep->request;
    const etch_answer *answer;
    const etch_proof *proof;
    const etch_query_options options = {.struct_size = sizeof options, .stack = a->sweep->options->stack};
    for (uint32_t i = 0; i < r->where.count; i++)
        if (frame->kinds[i] != ETCH_WHERE_SOLVED && frame->kinds[i] != ETCH_WHERE_TIMED &&
            etch_session_prove(a->session, frame->where[i], &proof) != ETCH_OK && !proof)
            return;
    for (uint32_t i = 0; i < r->exprs.count; i++)
        if (etch_session_query(a->session, frame->exprs[i], &options, &answer) != ETCH_OK)
            return;
}

/* Says what a query of the row says: as a remark on the row, or as the error of all. */
static void explain(etch_sweep *sweep, const etch_tally *tally, bool of_all)
{
    etch_session *session = sweep->session;
    asking a = {.sweep = sweep, .tally = tally};
    etch_status status;
    a.session = etch_frame_open(sweep, sweep->arena, tally->frame, tally->values, &status);
    if (a.session && tally->frame->machine)
        a.session->cluster = tally->frame->machine->cluster;
    if (status == ETCH_OK)
        ask_all(&a);
    const etch_diag *said = a.session ? etch_sweep_first_error(a.session) : NULL;
    const char *row = etch_text(sweep->arena, "row %" PRIu64 ", %s", tally->row + 1,
                                etch_row_text(sweep, tally->frame, tally->values));
    const char *text = said ? said->message : tally->reason.text;
    const etch_code code = said ? said->code : tally->reason.code;
    const etch_span span = said ? etch_sweep_span(session, said->span) : (etch_span){0, 0};
    etch_diag *diag = of_all ? etch_error(session->diags, code, span, "%s", text)
                             : etch_remark(session->diags, code, span, "%s: %s", row, text);
    if (of_all)
        etch_note(diag, (etch_span){0, 0}, "no row is left of %" PRIu64 ", all for this; here of %s",
                  sweep->report->rows, row);
    for (const etch_label *note = said ? said->notes : NULL; note; note = note->next)
        etch_note(diag, etch_sweep_span(session, note->span), "%s", note->message);
    for (const etch_label *help = said ? said->helps : NULL; help; help = help->next)
        etch_help(diag, "%s", help->message);
    etch_session_close(a.session);
}

/* ---- statements ---------------------------------------------------------------------------------------- */

static bool is_solved(const etch_sweep *sweep, uint32_t statement)
{
    for (uint32_t i = 0; i < sweep->frames.count; i++)
        if (!sweep->frames.at[i]->refused && sweep->frames.at[i]->kinds[statement] == ETCH_WHERE_SOLVED)
            return true;
    return false;
}

/* Which statement leaves nothing? */
static void help_unmet(etch_sweep *sweep, etch_diag *diag)
{
    bool told = false;
    for (uint32_t i = 0; i < sweep->request.where.count; i++)
        if (sweep->asked[i] > 0 && sweep->met[i] == 0) {
            etch_note(diag, (etch_span){0, 0},
                      "'%s' holds for none of the %" PRIu64 " rows that it is asked of",
                      sweep->request.where.at[i], sweep->asked[i]);
            told = true;
        }
    for (uint32_t i = 0; sweep->report->rows == 0 && i < sweep->request.where.count; i++)
        if (is_solved(sweep, i))
            etch_note(diag, (etch_span){0, 0}, "no values of the axes make '%s'", sweep->request.where.at[i]);
    if (!told && sweep->report->unmet > 0)
        etch_note(diag, (etch_span){0, 0}, "each condition holds for some row, but no row meets all of them");
}

/* Was it said of an earlier frame of this plan, config and run? */
static bool is_told(const etch_sweep *sweep, const etch_sweep_frame *frame)
{
    for (uint32_t i = 0; i < frame->number; i++) {
        const etch_sweep_frame *other = sweep->frames.at[i];
        bool same = other->refused && strcmp(other->reason.text, frame->reason.text) == 0;
        for (uint32_t k = 0; same && k <= ETCH_CHOICE_RUN && k < sweep->request.choices.count; k++) {
            const char *a = other->choices[k], *b = frame->choices[k];
            same = a && b ? strcmp(a, b) == 0 : a == b;
        }
        if (same)
            return true;
    }
    return false;
}

static void tell_frames(etch_sweep *sweep, etch_diag *diag)
{
    for (uint32_t i = 0; i < sweep->frames.count; i++) {
        const etch_sweep_frame *frame = sweep->frames.at[i];
        if (frame->refused && !is_told(sweep, frame))
            etch_note(diag, (etch_span){0, 0}, "no rows of %s: %s", etch_frame_text(sweep, frame),
                      frame->reason.text);
    }
}

static void tell_reasons(etch_sweep *sweep, etch_diag *diag)
{
    for (uint32_t i = 0; i < sweep->tallies.count; i++) {
        const etch_tally *tally = &sweep->tallies.at[i];
        etch_note(diag, (etch_span){0, 0}, "%" PRIu64 " refused, E%04u: %s", tally->count,
                  (unsigned)tally->reason.code, tally->reason.text);
    }
    if (sweep->session->spec && !sweep->options->explain && sweep->tallies.count > 0)
        etch_help(diag, "--explain says of each reason what a query says of its first row");
    for (uint32_t i = 0; sweep->options->explain && i < sweep->tallies.count; i++)
        explain(sweep, &sweep->tallies.at[i], false);
}

/* Are all rows refused for one reason, which is then the error of the sweep? */
static bool is_one_reason(const etch_sweep *sweep)
{
    const etch_sweep_report *r = sweep->report;
    for (uint32_t i = 0; i < sweep->frames.count; i++)
        if (sweep->frames.at[i]->refused)
            return false;
    return sweep->session->spec && r->rows > 0 && r->refused == r->rows && sweep->tallies.count == 1;
}

bool etch_sweep_tell(etch_sweep *sweep)
{
    const etch_sweep_report *r = sweep->report;
    etch_diags *diags = sweep->session->diags;
    bool refused = r->refused > 0 || r->unmet > 0;
    for (uint32_t i = 0; i < sweep->frames.count; i++)
        refused = refused || sweep->frames.at[i]->refused;
    if (r->written == 0 && is_one_reason(sweep)) {
        explain(sweep, &sweep->tallies.at[0], true);
        return false;
    }
    if (r->written == 0) {
        etch_diag *diag = etch_error(diags, ETCH_E_SWEEP_NONE, (etch_span){0, 0},
                                     "no row is left of %" PRIu64 ": for %" PRIu64
                                     " a condition does not hold, %" PRIu64 " are refused",
                                     r->rows, r->unmet, r->refused);
        help_unmet(sweep, diag);
        tell_frames(sweep, diag);
        tell_reasons(sweep, diag);
        return false;
    }
    if (!refused)
        return true;
    etch_diag *diag = etch_remark(diags, ETCH_E_SWEEP_LEFT_OUT, (etch_span){0, 0},
                                  "%" PRIu64 " of %" PRIu64 " rows: for %" PRIu64
                                  " a condition does not hold, %" PRIu64 " are refused",
                                  r->rows - r->unmet - r->refused, r->rows, r->unmet, r->refused);
    tell_frames(sweep, diag);
    tell_reasons(sweep, diag);
    return true;
}
