/* How large may a value be: the largest, or least, value for which a statement holds. Part of etch/etch.h. */
#ifndef ETCH_SOLVE_H
#define ETCH_SOLVE_H

#include "etch/session.h"

#ifdef __cplusplus
extern "C" {
#endif

/* How an answer was found. */
typedef enum etch_solving {
    /* by any of these, the first that can: closed, bisection, each */
    ETCH_SOLVE_AUTO,
    /* the sides are equal at one place, which was computed: their difference is linear, or a quotient with a
     * linear numerator */
    ETCH_SOLVE_CLOSED,
    /* their difference was proved to rise or to fall from each admissible value to the next */
    ETCH_SOLVE_BISECTION,
    /* all admissible values, which are finitely many, were looked at */
    ETCH_SOLVE_EACH
} etch_solving;
/* "auto", "closed", "bisection", "each"; NULL after the last. */
ETCH_API const char *etch_solving_name(etch_solving method);

/* What to solve for. Each of `names` is a param or a mesh axis; "NAME = VALUES", as of a sweep, only these
 * values of it. All but the last need values where there are several. */
typedef struct etch_solve_options {
    /* sizeof(etch_solve_options) */
    size_t struct_size;
    const char *const *names;
    size_t name_count;
    etch_solving method;
    /* 0 counts as 1. Nothing depends on it but the time that it takes */
    unsigned threads;
    /* a session of the machine on which steps run whose times are asked for; NULL: that of the spec */
    const etch_session *machine;
    /* what runs on it, as `etch_query_options` has it; NULL: nothing that it says */
    const char *stack;
} etch_solve_options;

/* Values of the names, one of each, and what the sides of the statement are there. */
typedef struct etch_solution_point {
    const char *const *values;
    const char *left, *right;
} etch_solution_point;

typedef enum etch_solution_kind {
    /* `answer` is the largest value for which it holds, `fails` the next one, for which it does not */
    ETCH_SOLUTION_LARGEST,
    /* the least one, and the one before it */
    ETCH_SOLUTION_LEAST,
    /* it holds for every admissible value: `answer` is the largest, NULL: there is none */
    ETCH_SOLUTION_EVERY,
    /* it holds for `answers`, which have others between them for which it does not */
    ETCH_SOLUTION_SOME,
    /* of an equation: the sides are equal at `answer`; NULL: at no admissible value, and `answers` are those
     * where one side, and then the other one, is larger */
    ETCH_SOLUTION_EQUAL
} etch_solution_kind;
/* "largest", "least", "every", "some", "equal"; NULL after the last. */
ETCH_API const char *etch_solution_kind_name(etch_solution_kind kind);

/* One answer: of the last name, for some values of those before. */
typedef struct etch_solution_row {
    etch_solution_kind kind;
    etch_solving method;
    const etch_solution_point *answer;
    /* NULL: there is no such value */
    const etch_solution_point *fails;
    const etch_solution_point *answers;
    size_t answer_count;
} etch_solution_row;

typedef struct etch_solution {
    const char *statement;
    /* the sides as they were written, and what is between them: "<=" */
    const char *left, *right, *relation;
    const char *const *names;
    size_t name_count;
    /* one; of several names the frontier: without those that another is better than */
    const etch_solution_row *rows;
    size_t row_count;
} etch_solution;

/* Solves "A <= B", also with <, >=, > and ==. A value is admissible where no query of the sides refuses it:
 * sizes divide, assumptions hold. What has no value takes its default. ETCH_EINPUT: the request has errors,
 * or the statement holds for no admissible value. ETCH_EUNKNOWN: none of the methods can tell, and the
 * messages say why. The solution is NULL then. */
ETCH_API etch_status etch_session_solve(etch_session *session, const char *statement,
                                        const etch_solve_options *options, const etch_solution **solution);

#ifdef __cplusplus
}
#endif

#endif
