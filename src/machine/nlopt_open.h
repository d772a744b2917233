/* NLopt, opened when a fit begins: whatever does not fit starts without it. */
#ifndef ETCH_MACHINE_NLOPT_OPEN_H
#define ETCH_MACHINE_NLOPT_OPEN_H

#include <nlopt.h>

/* The functions that a fit calls: name of the field, result, arguments as <nlopt.h> declares them. */
#define ETCH_NLOPT_FUNCTIONS(F)                                         \
    F(create, nlopt_opt, (nlopt_algorithm, unsigned))                   \
    F(destroy, void, (nlopt_opt))                                       \
    F(set_min_objective, nlopt_result, (nlopt_opt, nlopt_func, void *)) \
    F(set_lower_bounds, nlopt_result, (nlopt_opt, const double *))      \
    F(set_upper_bounds, nlopt_result, (nlopt_opt, const double *))      \
    F(set_xtol_rel, nlopt_result, (nlopt_opt, double))                  \
    F(set_maxeval, nlopt_result, (nlopt_opt, int))                      \
    F(optimize, nlopt_result, (nlopt_opt, double *, double *))

typedef struct etch_nlopt {
    void *library;
#define FIELD(name, result, arguments) result(*name) arguments;
    ETCH_NLOPT_FUNCTIONS(FIELD)
#undef FIELD
} etch_nlopt;

/* NULL; or why there is no NLopt, and nothing is to be closed. */
const char *etch_nlopt_open(etch_nlopt *out);
void etch_nlopt_close(etch_nlopt *nlopt);

#endif
