/* What simulating specs and simulating traces share. */
#ifndef ETCH_SESSION_API_SIMULATE_INT_H
#define ETCH_SESSION_API_SIMULATE_INT_H

#include "session/query/query.h"

/* The job of the traces of a folder, as etch_verify finds them: without errors, and each computation with its
 * duration where the trace has one. Computations without are products in bf16. They have to finish under the
 * protocol, eager or rendezvous. */
etch_status etch_traces_job(etch_session *session, const char *path, const char *groups,
                            etch_protocol protocol, const etch_job **job) ETCH_MUST_CHECK;

#endif
