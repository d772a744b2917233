/* Calls under the session's guard: memory that runs out and limits end them, not the program. */
#include "session/core/core.h"

/* Tells a body that returned from one that was cut short: only the latter leaves `finished` unset. */
typedef struct guarded {
    etch_session *session;
    etch_status (*body)(void *data);
    void *data;
    bool finished;
} guarded;

/* Input is refused with a reason. Without one it is not the input that is wrong. */
static etch_status run_guarded(void *data)
{
    guarded *g = data;
    etch_status status = g->body(g->data);
    g->finished = true;
    if (status == ETCH_EINPUT && etch_error_count(g->session->diags) == 0)
        return ETCH_EINTERNAL;
    return status;
}

static etch_status report_formula(void *data)
{
    const etch_session *session = data;
    etch_error(session->diags, ETCH_E_FORMULA_TOO_LARGE, (etch_span){0, 0},
               "a formula is too large: the limit of %s", etch_sym_limit_reached(session->sym));
    return ETCH_OK;
}

static etch_status report_memory(void *data)
{
    const etch_session *session = data;
    etch_diag *diag = etch_error(session->diags, ETCH_E_SESSION_MEMORY, (etch_span){0, 0},
                                 "the session is too large: the limit of bytes that it may hold: %zu",
                                 etch_mem_limit(session->mem));
    etch_help(diag, "ask for less at a time, or of a smaller model");
    return ETCH_OK;
}

/* Ends a session in which a call was cut short, with a message of the limit that it met. */
static etch_status exhaust(etch_session *session, etch_status status)
{
    const bool formula = status == ETCH_ELIMIT && session->loaded && etch_sym_limit_reached(session->sym);
    etch_arena_free(session->room);
    session->room = NULL;
    if (formula && etch_guard(session->mem, report_formula, session) != ETCH_OK)
        status = ETCH_ENOMEM; /* not even for a message */
    /* What lives in the arena may be half made; giving it back makes room for the messages. An arena
     * that began under the guard of the call is gone already. */
    if (session->loaded)
        etch_arena_free(session->arena);
    session->arena = NULL;
    session->spec = NULL;
    if (status == ETCH_ELIMIT && !formula && etch_guard(session->mem, report_memory, session) != ETCH_OK)
        status = ETCH_ENOMEM;
    return status;
}

etch_status etch_session_run_plain(etch_session *session, etch_status (*body)(void *data), void *data)
{
    if (session->broken != ETCH_OK)
        return session->broken;
    if (session->sym)
        etch_sym_set_limits(session->sym, &(etch_sym_limits){.operations = ETCH_REQUEST_OPERATIONS});
    session->timed_runs = NULL;
    guarded g = {session, body, data, false};
    etch_status status = etch_guard(session->mem, run_guarded, &g);
    if (!g.finished)
        session->broken = status = exhaust(session, status);
    return status;
}

static etch_status refuse_without_spec(void *data)
{
    const etch_session *session = data;
    etch_error(session->diags, ETCH_NO_CODE, (etch_span){0, 0}, "the session was opened without a spec");
    return ETCH_EINPUT;
}

etch_status etch_session_run(etch_session *session, etch_status (*body)(void *data), void *data)
{
    if (session->loaded && !session->options.spec)
        return etch_session_run_plain(session, refuse_without_spec, session);
    return etch_session_run_plain(session, body, data);
}

etch_status etch_session_run_bound(etch_session *session, etch_status (*body)(void *data), void *data)
{
    const bool defaults = session->options.defaults;
    session->options.defaults = true;
    const etch_status status = etch_session_run(session, body, data);
    session->options.defaults = defaults;
    return status;
}
