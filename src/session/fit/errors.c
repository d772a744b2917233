/* Why nothing is fitted, and how far predictions are off. */
#include "session/fit/fit_int.h"

#include <stdlib.h>

etch_status etch_fit_refuse(etch_session *session, const char *why)
{
    etch_error(session->diags, ETCH_E_FIT, (etch_span){0, 0}, "%s", why);
    return ETCH_EINPUT;
}

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The smallest error that `share` of them, in tenths, do not exceed. */
static double quantile(const double *sorted, size_t count, size_t share)
{
    return sorted[(share * count + 9) / 10 - 1];
}

etch_fit_errors etch_fit_errors_of(double *errors, size_t count)
{
    if (count == 0)
        return (etch_fit_errors){0};
    qsort(errors, count, sizeof *errors, by_size);
    return (etch_fit_errors){
        .rows = count, .median = quantile(errors, count, 5), .p90 = quantile(errors, count, 9)};
}
