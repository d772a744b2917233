/* Quantities in expressions: sums of items, and what the run of a step comes to. */
#include "session/query/query.h"

static etch_expr quantity_value(void *data, const etch_quantity *q)
{
    etch_session *session = data;
    const etch_quantity_row *row = etch_quantity_row_of(q->name);
    etch_shares shares = {0};
    uint32_t which;
    etch_within within;
    if (row && row->timing)
        return etch_timed_of(session, q, row, &within) ? within.value : NULL;
    if (!row || !etch_quantity_pick(session, q, row, &shares))
        return NULL;
    return etch_shares_most(session, &shares, &which);
}

etch_quantities etch_session_quantities(etch_session *session)
{
    static const char *const subjects[] = {[ETCH_OF_PHASE] = "step",
                                           [ETCH_OF_PART] = "model",
                                           [ETCH_OF_CALL] = "model",
                                           [ETCH_OF_CLASS] = "peak"};
    size_t count = 0;
    while (etch_quantity_row_at(count))
        count++;
    const char **names = ETCH_NEW_ARRAY(session->arena, count + 1, const char *);
    const char **examples = ETCH_NEW_ARRAY(session->arena, count, const char *);
    for (size_t i = 0; i < count; i++) {
        const etch_quantity_row *row = etch_quantity_row_at(i);
        names[i] = row->name;
        examples[i] = row->timing ? etch_text(session->arena, "%s%s", row->name, etch_timed_argument(row))
                                  : etch_text(session->arena, "%s(%s)", row->name, subjects[row->subject]);
    }
    return (etch_quantities){.value = quantity_value, .data = session, .names = names, .examples = examples};
}
