/* libetch: exact formulas.
 *
 *     etch_algebra *al;
 *     if (etch_algebra_new(NULL, &al) != ETCH_OK)
 *         return 1;
 *     etch_formula seq = etch_formula_variable(al, "seq"), tp = etch_formula_variable(al, "tp");
 *     etch_algebra_assume(al, ETCH_REL_DIVIDES, tp, seq, 0, NULL);
 *     etch_formula share = etch_formula_floor_div(al, seq, tp);
 *     puts(etch_formula_text(al, share, ETCH_PLAIN, ETCH_EXPANDED));           // seq/tp
 *     if (etch_algebra_status(al) != ETCH_OK)
 *         fputs(etch_algebra_message(al), stderr);
 *     etch_algebra_free(al);
 *
 * A formula is kept in a canonical form: a sum of products of powers of variables and of functions (floor,
 * max, 1/(sum), sums over an index), powers of either sign, with rational coefficients of any size. Formulas
 * of one algebra whose canonical forms are equal are the same pointer. What equals by facts or by the nature
 * of floor and max has mostly the same form, too; `etch_algebra_decide` tells. Variables are integers >= 1
 * unless declared otherwise. All values are exact.
 *
 * Errors. Functions that make a formula return NULL when it has no value (a division by zero), when an
 * operand is NULL, or when they fail; so a whole calculation can be checked once at its end, by
 * `etch_algebra_status`. It keeps the first failure until `etch_algebra_clear`:
 *   ETCH_EINPUT   a division by zero, an operand that is NULL, text that cannot be read
 *   ETCH_ELIMIT   a limit of the algebra. After a limit of etch_algebra_options other than `memory` it can be
 *                 used on (after `etch_algebra_clear`), unless it was met in declaring or assuming
 *   ETCH_ENOMEM   memory is out. This, and ETCH_ELIMIT for `memory`, exhaust the algebra: every later call
 *                 fails
 * On a frozen algebra such functions return NULL, others ETCH_EINPUT, and no failure is kept.
 *
 * Ownership. Formulas, texts and arrays that are handed out belong to the algebra and live until it is freed.
 * Texts and arrays that are given to the library are copied. Texts are UTF-8 and end with a NUL.
 *
 * Threads. An algebra belongs to one thread at a time. A frozen one is shared: any number of threads may fork
 * and compile from it. Programs (etch/program.h) are shared, too. */
#ifndef ETCH_EXPR_H
#define ETCH_EXPR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "etch/export.h"
#include "etch/notation.h"
#include "etch/program.h"
#include "etch/relation.h"
#include "etch/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct etch_algebra etch_algebra;
typedef const struct etch_poly *etch_formula;

/* ---- algebras --------------------------------------------------------------------------------------- */

/* Limits; 0 stands for the default. */
typedef struct etch_algebra_options {
    /* sizeof(etch_algebra_options); see etch/etch.h */
    size_t struct_size;
    /* bytes that the algebra may hold: 1 GiB */
    size_t memory;
    /* of one formula: 200,000 */
    uint32_t terms;
    /* of one variable in one term, its magnitude: 1,000,000; at most 2^30 */
    uint32_t exponent;
    /* of a number's numerator or denominator: 100,000; at most 10^9 */
    uint32_t digits;
    /* functions inside functions: 100; at most 400 */
    uint32_t depth;
    /* of brackets and operators in text that is read: 500; at most 2,000 */
    uint32_t nesting;
    /* different ones (floor, max, ...) in the algebra: 100,000 */
    uint32_t functions;
    /* products of coefficients and the like, of the algebra's life: 10^10 */
    uint64_t operations;
} etch_algebra_options;

/* An empty algebra; `options` NULL: all zero. ETCH_EINPUT: the options do not say their size, or set what
 * this library does not know; the algebra is there for its message, and all other calls fail. ETCH_ENOMEM,
 * with `*algebra` NULL. */
ETCH_API etch_status etch_algebra_new(const etch_algebra_options *options, etch_algebra **algebra);

/* Ends an algebra, with all its formulas. NULL is allowed. A fork has to end before what it is a fork of. */
ETCH_API void etch_algebra_free(etch_algebra *algebra);

/* The first failure since the beginning or `etch_algebra_clear`, ETCH_OK when there was none; and what it
 * was, in words ("" for none): "terms of one expression: 200000". Of a frozen algebra: as it was when it was
 * frozen. */
ETCH_API etch_status etch_algebra_status(const etch_algebra *algebra);
ETCH_API const char *etch_algebra_message(const etch_algebra *algebra);
/* Forgets the failure, unless the algebra is exhausted. */
ETCH_API void etch_algebra_clear(etch_algebra *algebra);

/* Makes an algebra immutable, for good. It can be forked and compiled from, by any number of threads at a
 * time; `etch_formula_integer` and `etch_formula_name` work on its formulas; all else fails. */
ETCH_API void etch_algebra_freeze(etch_algebra *algebra);

/* An algebra for one thread that begins with the variables, facts and limits of a frozen one. It takes
 * formulas of the frozen one (and of those that this one is a fork of) in all functions, where they mean the
 * same, and gives its own. `etch_formula_same` compares both kinds. Cost: that of declaring the variables and
 * of assuming the facts; formulas are brought over when they are first used. ETCH_EINPUT: `frozen` is not.
 * ETCH_ENOMEM, ETCH_ELIMIT: with `*fork` NULL. */
ETCH_API etch_status etch_algebra_fork(const etch_algebra *frozen, etch_algebra **fork);

/* ---- variables and facts ---------------------------------------------------------------------------- */

/* The variable `name`, declared by the first call: an integer >= 1. The order of declaration is that of
 * printing. */
ETCH_API etch_formula etch_formula_variable(etch_algebra *algebra, const char *name);

/* Says otherwise, before the variable is used: an integer >= `lower`; or any real number > 0. ETCH_EINPUT: it
 * is no variable. */
ETCH_API etch_status etch_algebra_declare_integer(etch_algebra *algebra, etch_formula variable,
                                                  int64_t lower);
ETCH_API etch_status etch_algebra_declare_real(etch_algebra *algebra, etch_formula variable);

/* Assumes that `left relation right` holds, wherever both sides are defined, for formulas that are made and
 * questions that are asked afterwards. ETCH_REL_EQ, LE, GE and DIVIDES; LT and GT of integers. Sides of
 * DIVIDES are products and quotients (tp | hidden/heads). An equality replaces one of its variables by what
 * it equals. ETCH_REL_NE, and TRUE (`left` is not 0, `right` may be NULL), serve proofs of the same
 * difference, and when they are about pow2: pow2(tp) is true, so tp is a power of two.
 *
 * `origin` is any number of the caller's for this fact. ETCH_EINPUT: it contradicts what is known; `*other`
 * (may be NULL) is the origin of one of the facts that it contradicts, or -1 for a declaration or for facts
 * that had simplified the sides; it is not assumed. ETCH_EUNKNOWN: of a form that cannot be used:
 * counterexamples respect it, proofs do not use it. These two are not kept by `etch_algebra_status`. */
ETCH_API etch_status etch_algebra_assume(etch_algebra *algebra, etch_relation relation, etch_formula left,
                                         etch_formula right, int64_t origin, int64_t *other);

/* ---- making formulas -------------------------------------------------------------------------------- */

ETCH_API etch_formula etch_formula_number(etch_algebra *algebra, int64_t value);
ETCH_API etch_formula etch_formula_fraction(etch_algebra *algebra, int64_t numerator, int64_t denominator);
/* Reads a formula in a notation (all but ETCH_LATEX), as `etch_formula_text` writes it: "2*B*S*H^2/tp +
 * floor(a/8)"; numbers of any length, decimal fractions are exact. Names that are new declare variables. NULL
 * with ETCH_EINPUT when it cannot be read: `*error_at` (may be NULL) is the offset of the byte that is wrong,
 * or the length when the formula has no value. */
ETCH_API etch_formula etch_formula_read(etch_algebra *algebra, const char *text, size_t length,
                                        etch_notation notation, size_t *error_at);

ETCH_API etch_formula etch_formula_add(etch_algebra *algebra, etch_formula a, etch_formula b);
ETCH_API etch_formula etch_formula_sub(etch_algebra *algebra, etch_formula a, etch_formula b);
ETCH_API etch_formula etch_formula_mul(etch_algebra *algebra, etch_formula a, etch_formula b);
ETCH_API etch_formula etch_formula_div(etch_algebra *algebra, etch_formula a, etch_formula b); /* exact */
ETCH_API etch_formula etch_formula_neg(etch_algebra *algebra, etch_formula a);
ETCH_API etch_formula etch_formula_pow(etch_algebra *algebra, etch_formula a, int64_t exponent);
/* Of all `count`, 0 for none: much cheaper than one by one. */
ETCH_API etch_formula etch_formula_total(etch_algebra *algebra, size_t count, const etch_formula *terms);

ETCH_API etch_formula etch_formula_floor(etch_algebra *algebra, etch_formula a);
ETCH_API etch_formula etch_formula_ceil(etch_algebra *algebra, etch_formula a);
/* floor(a/b), and a - b*floor(a/b), which has the sign of b. */
ETCH_API etch_formula etch_formula_floor_div(etch_algebra *algebra, etch_formula a, etch_formula b);
ETCH_API etch_formula etch_formula_mod(etch_algebra *algebra, etch_formula a, etch_formula b);
ETCH_API etch_formula etch_formula_max(etch_algebra *algebra, etch_formula a, etch_formula b);
ETCH_API etch_formula etch_formula_min(etch_algebra *algebra, etch_formula a, etch_formula b);
ETCH_API etch_formula etch_formula_abs(etch_algebra *algebra, etch_formula a);
/* 1 where `a` is a power of two (1, 2, 4, ...), else 0. */
ETCH_API etch_formula etch_formula_pow2(etch_algebra *algebra, etch_formula a);

/* The index of a sum; sums that are inside each other have different levels 0, 1, ... It stands for any
 * integer and has a meaning inside a sum only. */
ETCH_API etch_formula etch_formula_index(etch_algebra *algebra, uint32_t level);
/* The sum of `term` over the integers index = low, ..., high; 0 when there are none. Powers of the index are
 * summed in closed form (Faulhaber's formula); what has it inside a function or in a denominator stays. */
ETCH_API etch_formula etch_formula_sum(etch_algebra *algebra, etch_formula index, etch_formula low,
                                       etch_formula high, etch_formula term);

/* ---- questions -------------------------------------------------------------------------------------- */

/* Values for which a statement is false and all facts hold, in order of declaration. */
typedef struct etch_counterexample {
    size_t count;
    const char *const *names;
    /* exact: "12", "7/2" */
    const char *const *values;
} etch_counterexample;

/* Does `left relation right` hold for all values that the declarations and facts allow and for which both
 * sides are defined? `*truth` is ETCH_YES with a proof; ETCH_NO with a counterexample, which is written to
 * `*counterexample` (may be NULL; else empty); ETCH_UNKNOWN when neither was found. (For ETCH_REL_NE, YES
 * says that the sides are different everywhere; ETCH_REL_TRUE asks whether `left` is never 0, `right` may be
 * NULL.) Proofs are found by canonical form, and for inequalities by rewriting a difference until no
 * coefficient is negative. Returns ETCH_OK, or a failure, with `*truth` ETCH_UNKNOWN. */
ETCH_API etch_status etch_algebra_decide(etch_algebra *algebra, etch_relation relation, etch_formula left,
                                         etch_formula right, etch_truth *truth,
                                         etch_counterexample *counterexample);

/* Is `a` an integer for all these values? As above. */
ETCH_API etch_status etch_algebra_is_integer(etch_algebra *algebra, etch_formula a, etch_truth *truth,
                                             etch_counterexample *counterexample);

/* ---- taking apart ----------------------------------------------------------------------------------- */

/* Are they the same formula? Pointers of one algebra may be compared directly; this function knows formulas
 * of the algebra that `algebra` is a fork of, too. False when one is NULL. */
ETCH_API bool etch_formula_same(etch_algebra *algebra, etch_formula a, etch_formula b);

/* The value of a formula without variables that is an integer and fits; false otherwise. */
ETCH_API bool etch_formula_integer(etch_formula a, int64_t *value);

/* The name of a variable; NULL when `a` is no single variable. */
ETCH_API const char *etch_formula_name(etch_formula a);

/* The variables in `a`, in order of declaration: `*variables` has `*count`. */
ETCH_API etch_status etch_formula_variables(etch_algebra *algebra, etch_formula a,
                                            const etch_formula **variables, size_t *count);

/* ---- calculus --------------------------------------------------------------------------------------- */

/* `a` with values[i] in place of variables[i], all at once. */
ETCH_API etch_formula etch_formula_substitute(etch_algebra *algebra, etch_formula a, size_t count,
                                              const etch_formula *variables, const etch_formula *values);

/* The derivative of `a` by a variable, as if that could take any value. floor(R) and the bounds of sums count
 * as constant, a max as its greatest argument: `*piecewise` (may be NULL) says that there are points where
 * the formula jumps or bends, and where the derivative says nothing. */
ETCH_API etch_formula etch_formula_derivative(etch_algebra *algebra, etch_formula a, etch_formula variable,
                                              bool *piecewise);

/* floor(R) taken as R everywhere: each is off by less than 1. */
ETCH_API etch_formula etch_formula_relax(etch_algebra *algebra, etch_formula a);

/* `a` behaves like variable^low as the variable goes to 0, and like variable^high as it goes to infinity, the
 * others held; floor(R) counts as R. ETCH_EINPUT: `a` is 0, `variable` is none, or `a` has a sum over an
 * index with the variable that did not close. */
ETCH_API etch_status etch_formula_degree(etch_algebra *algebra, etch_formula a, etch_formula variable,
                                         int64_t *low, int64_t *high);

/* The terms of the highest degree in a variable: a/leading goes to 1 as it goes to infinity. floor(R) counts
 * as R. */
ETCH_API etch_formula etch_formula_leading(etch_algebra *algebra, etch_formula a, etch_formula variable);

/* Without the terms that others dominate for all values: a = O(the result) in all variables at once. */
ETCH_API etch_formula etch_formula_dominant(etch_algebra *algebra, etch_formula a);

/* coefficient * product */
typedef struct etch_formula_part {
    /* of powers of the variables that are collected by */
    etch_formula product;
    /* without them, but inside functions */
    etch_formula coefficient;
} etch_formula_part;

/* `a` as a sum of parts, one for each product of powers of the `count` variables, in order of printing. */
ETCH_API etch_status etch_formula_collect(etch_algebra *algebra, etch_formula a, size_t count,
                                          const etch_formula *variables, const etch_formula_part **parts,
                                          size_t *part_count);

/* ---- text and programs ------------------------------------------------------------------------------ */

/* `a` in a notation and form (etch/notation.h). Reading it again gives the same formula, for all notations
 * but LaTeX. NULL after a failure; "undefined" for NULL (JSON: "null"). */
ETCH_API const char *etch_formula_text(etch_algebra *algebra, etch_formula a, etch_notation notation,
                                       etch_form form);

/* Assignments of several formulas to `names`, one a line, in plain, C or Python; functions and denominators
 * that occur more than once come before them, as t1, t2, ... NULL after a failure. */
ETCH_API const char *etch_formula_assignments(etch_algebra *algebra, size_t count,
                                              const etch_formula *formulas, const char *const *names,
                                              etch_notation notation, etch_form form);

/* Compiles formulas to one program (etch/program.h), which shares subexpressions between them and refers to
 * nothing of the algebra; the algebra may be frozen. The caller ends it with `etch_program_free`. Values are
 * those of the formulas where all facts hold. ETCH_EINPUT: no formulas, or one is NULL. ETCH_ELIMIT: the
 * program would be too large. ETCH_ENOMEM. */
ETCH_API etch_status etch_formula_compile(etch_algebra *algebra, size_t count, const etch_formula *formulas,
                                          etch_program **program);

#ifdef __cplusplus
}
#endif

#endif
