/* Traces that are read back, and the verdict on them. */
#include "session/query/query.h"
#include "trace/trace.h"

typedef struct verifying {
    etch_session *session;
    const etch_verification_options *options;
    const etch_verification *result;
} verifying;

static const etch_verification *convert(etch_session *session, const etch_verify_result *from)
{
    etch_verification *to = ETCH_NEW(session->arena, etch_verification);
    *to = (etch_verification){.verdict = from->verdict,
                              .eager = from->verdicts[ETCH_PROTOCOL_EAGER],
                              .rendezvous = from->verdicts[ETCH_PROTOCOL_RENDEZVOUS],
                              .ranks = from->ranks,
                              .groups = from->groups,
                              .programs = from->programs,
                              .stalled = from->stalled,
                              .nodes = from->nodes,
                              .bytes = from->bytes,
                              .computations = from->computations,
                              .collectives = from->collectives,
                              .sends = from->sends,
                              .receives = from->receives,
                              .memory = from->memory};
    if (from->marks) {
        etch_rank_marks *marks = ETCH_NEW_ARRAY(session->arena, from->ranks, etch_rank_marks);
        for (uint32_t i = 0; i < from->ranks; i++)
            marks[i] = (etch_rank_marks){from->marks[i].ready, from->marks[i].in_flight};
        to->marks = marks;
    }
    return to;
}

static etch_status verify(void *data)
{
    verifying *v = data;
    etch_session *session = v->session;
    if (!v->options->path) {
        etch_error(session->diags, ETCH_NO_CODE, (etch_span){0, 0}, "the options name no path of traces");
        return ETCH_EINPUT;
    }
    if (!etch_protocol_name(v->options->protocol)) {
        etch_error(session->diags, ETCH_NO_CODE, (etch_span){0, 0}, "there is no way %d for sends to end",
                   (int)v->options->protocol);
        return ETCH_EINPUT;
    }
    const etch_verify_options options = {.path = v->options->path,
                                         .groups = v->options->groups,
                                         .threads = v->options->threads,
                                         .protocol = v->options->protocol,
                                         .seeds = v->options->seeds,
                                         .cancel = &session->cancel};
    etch_verify_result result;
    const etch_status status = etch_verify(session->arena, &options, session->diags, &result);
    if (result.ranks > 0)
        v->result = convert(session, &result);
    return status;
}

etch_status etch_session_verify(etch_session *session, const etch_verification_options *options,
                                const etch_verification **result)
{
    etch_verification_options own;
    const char *unfit = etch_options_read(options, &own, sizeof own);
    verifying v = {.session = session, .options = &own};
    const etch_status status =
        unfit ? etch_session_refuse(session, unfit) : etch_session_run_plain(session, verify, &v);
    *result = session->broken == ETCH_OK ? v.result : NULL;
    return status;
}
