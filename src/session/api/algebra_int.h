/* Declarations that the files behind etch/expr.h share: algebras, and requests that run under their guard.
 *
 *     algebra.c        algebras: guard, failures, freezing, forks; variables and facts
 *     algebra_make.c   making formulas, calculus
 *     algebra_ask.c    questions, taking apart, text, programs */
#ifndef ETCH_SESSION_API_ALGEBRA_INT_H
#define ETCH_SESSION_API_ALGEBRA_INT_H

#include "etch/expr.h"
#include "symbolic/symbolic.h"

struct etch_algebra {
    etch_mem *mem;
    etch_arena *arena;
    etch_sym *sym;
    /* the first failure */
    etch_status status;
    char message[160];
    /* something may be half made */
    bool exhausted;
};

/* One call. `body` runs under the guard of the algebra; operands and list are formulas of the algebra by
 * then. */
typedef struct etch_algebra_request {
    etch_status (*body)(etch_sym *sym, struct etch_algebra_request *r);
    /* it declares or assumes: a limit leaves things half made */
    bool changes;
    etch_formula a, b, c, d;
    size_t count;
    /* `count` each; values may be NULL */
    const etch_formula *list, *values;
    int64_t number, other;
    const char *text;
    size_t length;
    etch_relation relation;
    etch_notation notation;
    etch_form form;
    const char *const *names;
    etch_arena *arena;
    /* results */
    etch_formula made;
    const char *written;
    bool flag;
    etch_truth truth;
    etch_witness witness;
    const void *found;
    size_t found_count, at;
    etch_program *program;
    etch_algebra *algebra;
    bool finished;
} etch_algebra_request;

/* Runs the request, and keeps its failure unless that is an answer (ETCH_EUNKNOWN). */
etch_status etch_algebra_run(etch_algebra *algebra, etch_algebra_request *r);
/* The same for a request that makes a formula: NULL is a failure. */
etch_formula etch_algebra_make(etch_algebra *algebra, etch_algebra_request *r);
/* Keeps a failure, when it is the first, and gives it back. */
etch_status etch_algebra_fail(etch_algebra *algebra, etch_status status, const char *message);

#endif
