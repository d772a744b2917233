/* Do values mean something? Lower says so, of all of them and of some: what it refuses is refused by every
 * question, in its words. */
#include "session/core/core.h"

static etch_values values_of(etch_session *session, const etch_settings *settings)
{
    etch_given *given = ETCH_NEW_ARRAY(session->arena, settings->count, etch_given);
    for (uint32_t i = 0; i < settings->count; i++) {
        const etch_setting *s = &settings->at[i];
        given[i] = (etch_given){s->var, s->name, s->value, etch_given_by_name(s->from), s->span};
    }
    etch_values values = {.given = given, .given_count = settings->count};
    values.fact_count = etch_spec_assumptions(session->spec, &values.facts);
    return values;
}

static bool check(etch_session *session, const etch_values *values)
{
    etch_arena *scratch = etch_arena_new(session->mem);
    const bool fine = etch_values_check(scratch, session->sym, session->diags, values);
    etch_arena_free(scratch);
    return fine;
}

bool etch_check_assumptions(etch_session *session, const etch_settings *settings)
{
    const etch_values values = values_of(session, settings);
    return check(session, &values);
}

etch_values etch_compiled_values(etch_session *session, const etch_compiled *p, const etch_placed *placed)
{
    etch_values values = values_of(session, p->settings);
    values.training = p->training;
    values.placed = placed;
    return values;
}

bool etch_compiled_allow(etch_session *session, etch_compiled *p)
{
    if (!p->allowed) {
        const etch_values values = etch_compiled_values(session, p, NULL);
        p->allowed = check(session, &values);
    }
    return p->allowed;
}

bool etch_compiled_divide(etch_session *session, etch_compiled *p)
{
    if (!p->divided && etch_compiled_place(session, p)) {
        const etch_values values = etch_compiled_values(session, p, p->placed);
        p->divided = check(session, &values);
    }
    return p->divided;
}

bool etch_compiled_fit(etch_session *session, etch_compiled *p)
{
    if (!p->fits)
        p->fits = etch_compiled_divide(session, p) && etch_session_stages_fit(session, p);
    return p->fits;
}
