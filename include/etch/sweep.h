/* Sweeps: quantities of many configurations, each as exact as a query's. Part of etch/etch.h. */
#ifndef ETCH_SWEEP_H
#define ETCH_SWEEP_H

#include "etch/world.h"

#ifdef __cplusplus
extern "C" {
#endif

/* How rows are written. */
typedef enum etch_sweep_format { ETCH_SWEEP_CSV, ETCH_SWEEP_JSONL, ETCH_SWEEP_TABLE } etch_sweep_format;
/* "csv", "jsonl", "table"; NULL after the last. */
ETCH_API const char *etch_sweep_format_name(etch_sweep_format format);

/* A machine that steps run on. */
typedef struct etch_sweep_machine {
    /* what rows call it */
    const char *name;
    /* path of its spec, with one cluster */
    const char *spec;
} etch_sweep_machine;

/* What to compute, and for what. Texts of axes are "tp = 1, 2, 4": numbers, range(first, last[, step]),
 * powers(base, from, to), divisors(number), also in [ ]; they may speak of params and of the axes before.
 * Everything but `struct_size` may be zero, as long as something is to be computed. */
typedef struct etch_sweep_options {
    /* sizeof(etch_sweep_options) */
    size_t struct_size;
    /* a block `sweep NAME { .. }` of the spec, whose lines hold where the members below are not given; axes
     * and conditions are added to it. NULL: none */
    const char *sweep;
    const char *const *over;
    size_t over_count;
    /* "a,b" or "all"; NULL: that of the session */
    const char *plans, *configs;
    /* statements, each text may have several, joined by commas: only rows for which all hold. An equation
     * over mesh axes, and `ranks == N`, is solved: axes that have no values take those that it leaves */
    const char *const *where;
    size_t where_count;
    /* expressions, joined by commas */
    const char *select;
    /* an expression: only the `top` rows (0: one) where it is least, the least first */
    const char *best;
    size_t top;
    /* expressions: only the rows that no other is better than, in all of them; not with `best` */
    const char *pareto;
    etch_sweep_format format;
    /* where to write: a file, which appears when all of it is there; NULL: `write` gets it. It returns false
     * to end the sweep */
    const char *file;
    bool (*write)(void *data, const char *bytes, size_t length);
    void *data;
    /* 0 counts as 1. The bytes written do not depend on it */
    unsigned threads;
    /* say of each reason for which rows are left out what a query says of the first such row */
    bool explain;
    /* also more rows than 10^8 */
    bool yes;
    /* "3/8": only the third of eight shares of the rows, into `file`, a part for `etch_session_merge`. NULL:
     * all */
    const char *shard;
    /* go on with what an earlier call, which ended in whatever way, has left of the same sweep, and leave
     * what a later one can go on with, "<file>.part". The bytes of `file` are the same */
    bool resume;
    /* a file for a picture of the rows, SVG: of a Pareto front of two expressions, or of the first expression
     * over two axes; NULL: none */
    const char *plot;
    /* machines, for quantities of a run of the step: all of them, with a column for their names, or one
     * without, where `names_machines` is false; none: that of the spec */
    const etch_sweep_machine *machines;
    size_t machine_count;
    bool names_machines;
    /* folders of what they import; numbers that are set in each, "nvlink.bandwidth = 900 GB/s"; a stack of
     * each. NULL: none */
    const char *machine_folders;
    const char *const *machine_sets;
    size_t machine_set_count;
    const char *stack;
    /* a folder for the traces of the best rows, or of the Pareto front: one for each, named by the values of
     * its columns, with the files that `etch_session_lower` writes; NULL: none. `verify`: they are read
     * again, as by `etch_session_verify`, and what does not always run to its end is an error */
    const char *lower;
    bool verify;
    /* train and infer blocks, "a,b" or "all"; NULL: that of the session */
    const char *runs;
    /* processes that share the rows (etch/world.h), not with `shard`; NULL: this one has all. The bytes
     * written do not depend on it */
    etch_world *world;
    /* look at each row, also where a condition fails for all that have some values in common, which are
     * counted at once otherwise: the same output, later */
    bool every_row;
} etch_sweep_options;

typedef struct etch_sweep_report {
    /* of the sweep, and of these: written; for which a condition does not hold; refused, as a query refuses
     * them */
    uint64_t rows, written, unmet, refused;
    /* formulas were compiled for so many cases: plans, values that decide structure, axes of 1 */
    uint64_t cases;
    /* `etch_session_cancel` ended it early; what was complete is written */
    bool stopped;
} etch_sweep_report;

/* Computes all rows, in order: plans, then configs, then the axes as they are given, the last one fastest. A
 * row is refused where a query of one of its expressions with these values, and defaults for all others, is.
 * Values are those of that query, exact. ETCH_EINPUT: the request has errors, or no row is left. ETCH_ELIMIT:
 * it was stopped. */
ETCH_API etch_status etch_session_sweep(etch_session *session, const etch_sweep_options *options,
                                        const etch_sweep_report **report);

/* Makes of all `count` parts of a sweep, in any order, what the sweep would have written. Of the options
 * `file`, `write` and `data` count. The session needs no spec. ETCH_EINPUT: one is missing, not finished, or
 * of another sweep; or no row is left. */
ETCH_API etch_status etch_session_merge(etch_session *session, const char *const *parts, size_t count,
                                        const etch_sweep_options *options, const etch_sweep_report **report);

#ifdef __cplusplus
}
#endif

#endif
