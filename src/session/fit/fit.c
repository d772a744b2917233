/* Numbers of machines from measurements: which table is of what. */
#include "session/fit/fit_int.h"

/* What the table holds; one of steps is fitted outside of this call. */
static etch_status read_source(void *data)
{
    etch_fit_request *f = data;
    etch_session *session = f->session;
    const etch_fit_options *o = f->options;
    if (!o->text || !o->name)
        return etch_fit_refuse(session, "the options name no table");
    f->source = etch_source_add(session->diags, o->name, o->text, o->length);
    if (!f->source) {
        etch_error(session->diags, ETCH_E_SOURCES_TOO_LARGE, (etch_span){0, 0},
                   "'%s' is larger than the %d bytes that a table may have", o->name, ETCH_TOTAL_LIMIT);
        return ETCH_ELIMIT;
    }
    f->steps = etch_is_table_of_steps(session->arena, f->source);
    if (f->steps || !o->stack)
        return ETCH_OK;
    return etch_fit_refuse(session,
                           "factors of a stack are fitted to steps: the table has no columns spec, seconds");
}

etch_status etch_session_fit(etch_session *session, const etch_fit_options *options,
                             const etch_fitting **result)
{
    etch_fit_options own;
    const char *unfit = etch_options_read(options, &own, sizeof own);
    etch_fit_request f = {.session = session, .options = &own};
    etch_status status =
        unfit ? etch_session_refuse(session, unfit) : etch_session_run(session, read_source, &f);
    if (status == ETCH_OK)
        status = f.steps ? etch_fit_steps(&f) : etch_session_run(session, etch_fit_kernels, &f);
    *result = status == ETCH_OK ? f.result : NULL;
    return status;
}
