/* What the files of `solve` share.
 *
 *     lattice.c    the admissible values of a variable, as far as its conditions say which
 *     turning.c   where a statement begins or ends to hold, from its formula
 *     probe.c      is a value admissible, and does the statement hold there: as rows of a sweep
 *     inner.c      one variable
 *     solve.c      the whole
 *     frontier.c   several variables */
#ifndef ETCH_SESSION_SWEEP_SOLVE_INT_H
#define ETCH_SESSION_SWEEP_SOLVE_INT_H

#include "session/sweep/sweep_int.h"

/* ---- lattice.c ----------------------------------------------------------------------------------------- */

/* Integers that hold all admissible ones: first + i*step, up to `last`, that divide `divides`. */
typedef struct etch_lattice {
    /* there are none */
    bool empty;
    int64_t first, step;
    /* INT64_MAX: no end is known */
    int64_t last;
    /* 0: anything */
    int64_t divides;
} etch_lattice;

/* What the conditions of a look leave of the integers from `least` on. */
etch_lattice etch_lattice_of(const etch_case_look *look, etch_expr var, int64_t least);
/* How many there are up to `last`; INT64_MAX: no end is known. */
int64_t etch_lattice_count(const etch_lattice *lattice);
int64_t etch_lattice_at(const etch_lattice *lattice, int64_t index);

/* ---- turning.c ---------------------------------------------------------------------------------------- */

typedef enum etch_turning_trouble {
    ETCH_TURNING_FINE,
    /* the formula could not be had */
    ETCH_TURNING_NO_FORMULA,
    /* the other values are refused, whatever it is */
    ETCH_TURNING_REFUSED,
    /* the value decides structure */
    ETCH_TURNING_DECIDES,
    /* it is not linear, where that was asked for */
    ETCH_TURNING_NOT_LINEAR,
    /* nothing proves that it rises or falls */
    ETCH_TURNING_NOT_MONOTONE,
    /* no admissible value was found beside the turn */
    ETCH_TURNING_LOST,
    /* 1 is another case, and does not fit the others */
    ETCH_TURNING_ODD,
    /* a side is the result of runs of the step */
    ETCH_TURNING_TIMED
} etch_turning_trouble;

/* What formulas say of a statement left REL right, relative to one open variable. */
typedef struct etch_turning {
    /* in */
    etch_sweep *sweep;
    const char *name;
    bool is_real, is_size;
    int64_t least;
    etch_relation relation;
    etch_solving wanted;
    /* out */
    etch_turning_trouble trouble;
    /* where there are no formulas; may be NULL */
    const char *why;
    etch_lattice lattice;
    etch_solving method;
    /* does it hold for the first values of the lattice? */
    bool begins;
    /* from which index on that is otherwise; INT64_MAX: nowhere */
    int64_t turn;
    /* of a variable that is no integer: where both sides are equal, "7/2"; NULL: nowhere */
    const char *root;
    /* the sides there */
    const char *left, *right;
    bool holds_at_root;
} etch_turning;

/* Looks at the formulas of a case in which the variable is open: see etch_sweep_case.look. */
void etch_turning_look(void *data, const etch_case_look *look);

/* ---- probe.c ------------------------------------------------------------------------------------------- */

typedef enum etch_probe_state { ETCH_PROBE_REFUSED, ETCH_PROBE_HOLDS, ETCH_PROBE_FAILS } etch_probe_state;

/* A value of the last axis, and what becomes of it. */
typedef struct etch_probe {
    etch_exact value;
    etch_probe_state state;
    etch_exact left, right;
} etch_probe;

/* An inner problem: values of all axes but the last. */
typedef struct etch_solver {
    etch_sweep *sweep;
    const etch_sweep_frame *frame;
    /* of an equation: <= */
    etch_relation relation;
    bool equation;
    etch_solving wanted;
    unsigned threads;
    /* by axis; that of the last one is anything */
    etch_exact *row;
} etch_solver;

/* Computes them, in any number. */
etch_status etch_probe_all(const etch_solver *solver, etch_probe *probes, uint32_t count);

/* ---- inner.c ------------------------------------------------------------------------------------------- */

/* Solves for the last axis. `*found`: false where the statement holds for no admissible value. ETCH_EUNKNOWN:
 * `turning` says why not. */
etch_status etch_solve_inner(const etch_solver *solver, etch_solution_row *row, etch_turning *turning,
                             bool *found);
/* The same of some values. */
etch_status etch_solve_each(const etch_solver *solver, const etch_exact *values, uint32_t count,
                            etch_solution_row *row);

/* ---- frontier.c ---------------------------------------------------------------------------------------- */

/* An answer, and the values that it stands for, by axis. */
typedef struct etch_frontier_row {
    etch_solution_row row;
    const etch_exact *values;
} etch_frontier_row;

/* Leaves out, in place, what another one is better than: larger or less in each variable, as the answers fall
 * or rise with it; where they do neither, only answers of the same value are compared. */
void etch_frontier(etch_arena *arena, etch_frontier_row *rows, uint32_t *count, uint32_t names);
#endif
