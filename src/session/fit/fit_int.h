/* What the fits of kernels and of steps share. */
#ifndef ETCH_SESSION_FIT_FIT_INT_H
#define ETCH_SESSION_FIT_FIT_INT_H

#include "machine/machine.h"
#include "session/core/core.h"

typedef struct etch_fit_request {
    etch_session *session;
    const etch_fit_options *options;
    /* the table */
    const etch_source *source;
    /* it is one of steps */
    bool steps;
    /* NULL until there is one */
    const etch_fitting *result;
} etch_fit_request;

/* Reports why nothing is fitted: ETCH_EINPUT. */
etch_status etch_fit_refuse(etch_session *session, const char *why);
/* The smallest of the errors, which are not negative and get sorted, that half and nine tenths of them do not
 * exceed. */
etch_fit_errors etch_fit_errors_of(double *errors, size_t count);
/* Fits a request of kernels; under the guard of the session. */
etch_status etch_fit_kernels(void *request);
/* Opens the specs of the steps and fits the stack; under no guard of the session. */
etch_status etch_fit_steps(etch_fit_request *request);

#endif
