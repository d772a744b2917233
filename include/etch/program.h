/* Compiled formulas: exact values of many configurations at once.
 *
 *     etch_workspace *work;
 *     int64_t hidden[N] = {...}, values[N];
 *     unsigned char kinds[N];
 *     etch_column columns[] = {{.values = hidden}, {.values = &layers, .same = true}};
 *     etch_workspace_new(&work);
 *     etch_program_evaluate(program, N, columns, values, kinds, work);
 *
 * A program is what a set of formulas was compiled to (etch/expr.h says how): a list of instructions in which
 * subexpressions are shared by all formulas. It is immutable and refers to nothing outside of itself: any
 * number of threads may use one program at the same time, each with a workspace of its own.
 *
 * Every operation is checked. A configuration is computed with integers of 64 bits; where one does not fit or
 * a division leaves a remainder, with fractions of integers of 128 bits; where those do not fit either, with
 * rational numbers of any size. No value is ever rounded or wrapped. Values must be ones that the variables
 * may have (their declarations and all facts): formulas are simplified under these. */
#ifndef ETCH_PROGRAM_H
#define ETCH_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "etch/export.h"
#include "etch/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct etch_program etch_program;
typedef struct etch_workspace etch_workspace;

/* Ends a program. NULL is allowed. */
ETCH_API void etch_program_free(etch_program *program);

/* The formulas that it computes, in the order in which they were given. */
ETCH_API size_t etch_program_formulas(const etch_program *program);

/* How many variables there are, and the name of each, in order of declaration; NULL after the last. Names
 * live as long as the program. */
ETCH_API size_t etch_program_variables(const etch_program *program);
ETCH_API const char *etch_program_variable(const etch_program *program, size_t index);

/* Instructions, and registers of a block of configurations: what an evaluation costs. */
ETCH_API size_t etch_program_instructions(const etch_program *program);
ETCH_API size_t etch_program_registers(const etch_program *program);

/* What became of one formula in one configuration. */
typedef enum etch_value_kind {
    /* the value is in the result */
    ETCH_VALUE_INTEGER,
    /* an integer of more than 64 bits: the result is its number in the workspace */
    ETCH_VALUE_LARGE,
    /* no integer: the result is its number in the workspace */
    ETCH_VALUE_RATIONAL,
    /* a division by zero: the result is 0 */
    ETCH_VALUE_UNDEFINED,
    /* more than 100,000 digits, or a sum of more than a million terms: the result is 0 */
    ETCH_VALUE_TOO_LONG
} etch_value_kind;

/* The values of one variable. */
typedef struct etch_column {
    /* one for each configuration, or a single one with `same` */
    const int64_t *values;
    /* as many; NULL: all 1. A value is values[i]/denominators[i] */
    const int64_t *denominators;
    /* all configurations share one value: what depends on such columns only is computed once */
    bool same;
} etch_column;

/* Memory for evaluations, to be used by one thread at a time; it grows as needed and is kept. ETCH_ENOMEM, or
 * ETCH_OK. */
ETCH_API etch_status etch_workspace_new(etch_workspace **workspace);
ETCH_API void etch_workspace_free(etch_workspace *workspace); /* NULL is allowed */

/* Computes all formulas for `count` configurations. `columns`: one for each variable of the program, in its
 * order. The value of formula f in configuration i goes to values[f*count + i], what it is (etch_value_kind)
 * to kinds[f*count + i]. Numbers that the workspace kept from an earlier evaluation end. ETCH_EINPUT: a
 * denominator is not positive. ETCH_ENOMEM: memory is out. In both cases the results are not to be used. */
ETCH_API etch_status etch_program_evaluate(const etch_program *program, size_t count,
                                           const etch_column *columns, int64_t *values, unsigned char *kinds,
                                           etch_workspace *workspace);

/* A number that the latest evaluation left in the workspace (large or rational), in lowest terms: "7/2". It
 * lives until the next call with this workspace. NULL: no such number, or memory is out. */
ETCH_API const char *etch_workspace_number(etch_workspace *workspace, int64_t number);

/* The same as a fraction of two words; false when it does not fit, or there is no such number. */
ETCH_API bool etch_workspace_fraction(const etch_workspace *workspace, int64_t number, int64_t *numerator,
                                      int64_t *denominator);

#ifdef __cplusplus
}
#endif

#endif
