/* The header of symbolic: exact expressions over named parameters.
 *
 * An expression is an interned, immutable, canonical sparse Laurent polynomial over the rationals. Its atoms
 * are variables and interned opaque applications: floor(R), max{...}, pow2(x), 1/(sum). Equal canonical forms
 * are the same pointer. `mod`, `//`, `ceil`, `min`, `abs` are rewritten into these on construction, and
 * recovered by the printer. Coefficients are machine words while they fit, GMP numbers after; never a wrong
 * value.
 *
 * One context per thread. Everything lives in the arena that the context was made with; limits (terms of
 * one expression, exponents, digits, depth) end in `etch_trap(ETCH_ELIMIT)`. NULL stands for "undefined"
 * (a division by zero) and goes through every operation: NULL in, NULL out.
 *
 * Variables are integers >= 1 unless declared otherwise. Output (printing, order of terms) depends on the
 * order in which variables were declared and on nothing else of the history. */
#ifndef ETCH_SYMBOLIC_H
#define ETCH_SYMBOLIC_H

#include "base/base.h"
#include "etch/notation.h" /* etch_notation, etch_form: how expressions are written */
#include "etch/program.h"

typedef struct etch_sym etch_sym;
typedef const struct etch_poly *etch_expr;

etch_sym *etch_sym_new(etch_arena *arena);

/* ---- limits -------------------------------------------------------------------------------------------- */

/* What a context may do before it ends in `etch_trap(ETCH_ELIMIT)`. 0 stands for the default, which is given
 * behind each. Bytes are limited by the account (`etch_mem`) of the arena. */
typedef struct etch_sym_limits {
    /* of one expression: 200,000 */
    uint32_t terms;
    /* magnitude, of one atom in one term: 1,000,000; at most 2^30 */
    uint32_t exponent;
    /* decimal, of a number's numerator or denominator: 100,000; at most 10^9 */
    uint32_t digits;
    /* opaque atoms inside opaque atoms: 100; at most 400 */
    uint32_t depth;
    /* brackets and operators in text: 500; at most 2,000 */
    uint32_t nesting;
    /* opaque ones in the context: 100,000 */
    uint32_t atoms;
    /* products of coefficients and the like, in all: 10^10 */
    uint64_t operations;
} etch_sym_limits;

/* Sets all limits; the count of operations starts again. NULL: the defaults. */
void etch_sym_set_limits(etch_sym *sym, const etch_sym_limits *limits);
/* Operations counted since the context was made or its limits were set. */
uint64_t etch_sym_operations(const etch_sym *sym);
/* Counts operations of a caller as those of this context: what takes as long ends as soon. */
void etch_sym_charge(etch_sym *sym, uint64_t operations);
/* Which limit ended the work, as text for people ("terms of one expression: 200000"); NULL: none did. */
const char *etch_sym_limit_reached(const etch_sym *sym);
/* Ends the work of a caller that has a limit of its own, as one of those above does. */
void etch_sym_end_at_limit(etch_sym *sym, const char *what, uint64_t limit) ETCH_NORETURN;

/* After a trap for a limit (`etch_sym_limit_reached` says so) in a call that neither declares nor assumes:
 * the context can be used again, and what was made before is as it was. */
void etch_sym_recover(etch_sym *sym);

/* ---- sharing between threads --------------------------------------------------------------------------- */

/* From now on the context is only read: it can be forked, its expressions compiled, and whatever takes no
 * context can be asked of them, by any number of threads at a time. There is no way back. */
void etch_sym_freeze(etch_sym *sym);
bool etch_sym_is_frozen(const etch_sym *sym);
/* A context in `arena`, of an account of this thread's, that begins with the variables, facts and limits
 * of a frozen one, and ends before it. It belongs to one thread, as any other; variables and facts can be
 * added. */
etch_sym *etch_sym_fork(const etch_sym *frozen, etch_arena *arena);
/* What stands in the fork for an expression of the frozen context; the same pointer each time, while no
 * facts are added. Expressions of `sym` itself, and NULL, are given back as they are. */
etch_expr etch_sym_adopt(etch_sym *sym, etch_expr a);

/* ---- building ------------------------------------------------------------------------------------------ */

/* The variable `name` (NUL-terminated; copied), declared by the first call. */
etch_expr etch_var(etch_sym *sym, const char *name);
/* Widens or narrows what is known of a variable: it is an integer >= `lower`; or any real > 0. Before it
 * is used in facts. */
void etch_var_at_least(etch_sym *sym, etch_expr var, int64_t lower);
void etch_var_real(etch_sym *sym, etch_expr var);

etch_expr etch_int(etch_sym *sym, int64_t value);
etch_expr etch_ratio(etch_sym *sym, int64_t num, int64_t den); /* NULL when den == 0 */
/* Exact value of decimal text: "128256", "0.3", any number of digits. NULL when it is not such text. */
etch_expr etch_number(etch_sym *sym, const char *text, size_t length);

etch_expr etch_add(etch_sym *sym, etch_expr a, etch_expr b);
etch_expr etch_sub(etch_sym *sym, etch_expr a, etch_expr b);
/* The sum of `count` expressions, 0 for none: for long sums much cheaper than adding one by one. */
etch_expr etch_sum(etch_sym *sym, uint32_t count, const etch_expr *terms);
etch_expr etch_neg(etch_sym *sym, etch_expr a);
etch_expr etch_mul(etch_sym *sym, etch_expr a, etch_expr b);
etch_expr etch_div(etch_sym *sym, etch_expr a, etch_expr b);      /* exact quotient; NULL when b is 0 */
etch_expr etch_pow(etch_sym *sym, etch_expr a, int64_t exponent); /* negative: of the reciprocal */
etch_expr etch_floor(etch_sym *sym, etch_expr a);
etch_expr etch_ceil(etch_sym *sym, etch_expr a);
etch_expr etch_floor_div(etch_sym *sym, etch_expr a, etch_expr b); /* floor(a/b) */
etch_expr etch_mod(etch_sym *sym, etch_expr a, etch_expr b);       /* a - b*floor(a/b) */
etch_expr etch_max(etch_sym *sym, etch_expr a, etch_expr b);
/* The largest of `count` > 0 arguments: as etch_max of one after the other, but most are compared with each
 * other instead of with a max. */
etch_expr etch_max_of(etch_sym *sym, uint32_t count, const etch_expr *args);
/* The same expression, in which no max has an argument that is below the mean of two others. NULL when it is
 * undefined. */
etch_expr etch_remade(etch_sym *sym, etch_expr a);
etch_expr etch_min(etch_sym *sym, etch_expr a, etch_expr b);
etch_expr etch_abs(etch_sym *sym, etch_expr a);
/* 1 where `a` is a power of two (1, 2, 4, ..), else 0. */
etch_expr etch_pow2(etch_sym *sym, etch_expr a);
/* [a >= 0]: 1 where it holds, else 0; of the floor of `a`, which changes nothing. Made from max. */
etch_expr etch_iverson(etch_sym *sym, etch_expr a);
/* `then` where a >= 0, `otherwise` elsewhere; undefined where either is. */
etch_expr etch_select(etch_sym *sym, etch_expr a, etch_expr then, etch_expr otherwise);

/* The sum of `body` over the integers i with low <= i <= high, 0 when there are none. `index` is i: the
 * variable of etch_index for some level that no sum around this one has. It stands for any integer and has
 * a meaning inside sums only. Powers of the index close by Faulhaber's formula; what has it inside a
 * function or below a line stays a sum until its count is a number. NULL: a term is undefined, or `index`
 * is no index. */
etch_expr etch_index(etch_sym *sym, uint32_t level);
etch_expr etch_sum_over(etch_sym *sym, etch_expr index, etch_expr low, etch_expr high, etch_expr body);

/* ---- facts --------------------------------------------------------------------------------------------- */

/* Facts hold for expressions built afterwards. `origin` is handed back when facts contradict (a span, an
 * index: whatever the caller knows the fact by). ETCH_EINPUT: it contradicts what is known, `*other` says
 * which fact (or -1: the declaration of a variable, or an equality that had simplified the sides before
 * they were given); the fact is not taken. ETCH_EUNKNOWN: of a form that the core cannot use yet; it is
 * remembered for witnesses only.
 *
 * d and n of `d | n` are products and quotients (`tp | hidden/heads`, `128 | vocab`). An equality replaces
 * one variable everywhere: one whose value needs no subtraction, among those the one declared last; what
 * its declaration says stays known. Statements hold wherever both sides are defined. */
etch_status etch_assume_divides(etch_sym *sym, etch_expr d, etch_expr n, int64_t origin,
                                int64_t *other) ETCH_MUST_CHECK;
etch_status etch_assume_equal(etch_sym *sym, etch_expr a, etch_expr b, int64_t origin,
                              int64_t *other) ETCH_MUST_CHECK;
etch_status etch_assume_at_least(etch_sym *sym, etch_expr a, etch_expr b, int64_t origin,
                                 int64_t *other) ETCH_MUST_CHECK;
/* a != b; proofs use it for the same difference, and where it says that something is a power of two
 * (pow2(x) != 0), or is none. */
etch_status etch_assume_different(etch_sym *sym, etch_expr a, etch_expr b, int64_t origin,
                                  int64_t *other) ETCH_MUST_CHECK;

/* A statement that somebody wrote: an assumption, a check. `left` is NULL where it could not be evaluated. */
typedef struct etch_claim {
    etch_relation relation;
    etch_expr left, right;
    /* what the sides divide by, as written: they may have cancelled since */
    const etch_expr *divisors;
    uint32_t divisor_count;
    /* of a spec that it names */
    const char *const *plans;
    uint32_t plan_count;
    /* as written */
    const char *text;
    etch_span span;
} etch_claim;

/* ---- questions ----------------------------------------------------------------------------------------- */

/* Values of variables that make a statement false and satisfy every fact: `count` pairs, in order of
 * declaration. */
typedef struct etch_witness {
    uint32_t count;
    const etch_expr *vars;
    /* constants */
    const etch_expr *values;
} etch_witness;

/* Does it hold for all values that the facts allow? ETCH_NO only with a witness (`witness` may be NULL).
 * NULL operands: ETCH_UNKNOWN. */
etch_truth etch_equal(etch_sym *sym, etch_expr a, etch_expr b, etch_witness *witness);
etch_truth etch_different(etch_sym *sym, etch_expr a, etch_expr b,
                          etch_witness *witness); /* a != b everywhere */
etch_truth etch_at_least(etch_sym *sym, etch_expr a, etch_expr b, etch_witness *witness);
etch_truth etch_above(etch_sym *sym, etch_expr a, etch_expr b, etch_witness *witness); /* a > b */
etch_truth etch_divides(etch_sym *sym, etch_expr d, etch_expr n, etch_witness *witness);
etch_truth etch_is_integer(etch_sym *sym, etch_expr a, etch_witness *witness);

/* ---- taking apart, substituting, evaluating ------------------------------------------------------------ */

bool etch_is_constant(etch_expr a);
bool etch_is_zero(etch_expr a);
/* The value when it is an integer that fits; false otherwise. */
bool etch_to_i64(etch_expr a, int64_t *value);
bool etch_to_u64(etch_expr a, uint64_t *value);
/* A constant that is an integer of any size? */
bool etch_is_integer_constant(etch_expr a);
/* -1, 0, 1: order of two constants. */
int etch_constant_compare(etch_sym *sym, etch_expr a, etch_expr b);
/* Does the relation, of order or equality, hold between two constants? */
bool etch_constants_hold(etch_sym *sym, etch_relation relation, etch_expr a, etch_expr b);
/* The variable's name when `a` is a single variable, else NULL. */
const char *etch_var_name(etch_expr a);
/* The variables in `a`, also inside opaque atoms, in order of declaration. The array lives in the arena of
 * `sym`. */
uint32_t etch_vars_of(etch_sym *sym, etch_expr a, const etch_expr **vars);

/* Replaces `count` variables by expressions, all at once, and simplifies again under the facts. Constants
 * for all variables: exact evaluation. NULL when a denominator becomes 0. */
etch_expr etch_subst(etch_sym *sym, etch_expr a, uint32_t count, const etch_expr *vars,
                     const etch_expr *values);

/* ---- calculus ------------------------------------------------------------------------------------------ */

/* The derivative of `a` by the variable `var`, the other variables held, as if it could take any value. A
 * floor and the bounds of a sum are steps: constant but for jumps. A max has the derivative of its
 * greatest argument, of one of them where several are; where the difference of arguments is not known to
 * be a multiple of some fraction, that choice is written max{0, d}/d, which has no value where they are
 * equal. `*piecewise` (may be NULL) says that there are such points, jumps or bends. Where a floor stands
 * for a cost that grows smoothly, differentiate `etch_relax(a)`. NULL: `a` is undefined, or `var` is no
 * variable (or one that an equality replaced). */
etch_expr etch_diff(etch_sym *sym, etch_expr a, etch_expr var, bool *piecewise);

/* floor(R) taken as R everywhere in `a`, which is less than 1 more; so `//` is `/`, `a % b` is 0, and
 * ceil(a/8), the floor of (a + 7)/8, is (a + 7)/8. The bounds of sums stay. NULL: a denominator becomes 0. */
etch_expr etch_relax(etch_sym *sym, etch_expr a);

/* How `a` behaves as `var` goes to 0 and to infinity, the other variables held: like var^low and var^high.
 * Every floor(R) counts as R, and a max as its argument of extreme degree. Exact where `a` has no max and
 * no floor. False: `a` is 0 or undefined, `var` is no variable, or `a` has a sum that did not close over
 * it. */
bool etch_degree(etch_sym *sym, etch_expr a, etch_expr var, int64_t *low, int64_t *high);

/* The terms of the highest degree in `var`: a / leading -> 1 as `var` goes to infinity, for floors that
 * grow with it (they count as R). A max keeps its arguments of the highest degree. NULL as for
 * `etch_degree`; 0 for 0. */
etch_expr etch_leading(etch_sym *sym, etch_expr a, etch_expr var);

/* Without the terms that others dominate: t is dropped when some other monomial is at least as large as
 * t's for all values that the facts allow. So a = O(etch_dominant(a)) in all variables at once. Floors
 * count as R; a quotient by a sum keeps its denominator. NULL: undefined. */
etch_expr etch_dominant(etch_sym *sym, etch_expr a);

/* How an expression moves. */
typedef enum etch_trend {
    /* this way and that, or nobody can tell */
    ETCH_TREND_UNKNOWN,
    ETCH_TREND_CONSTANT,
    /* never falls */
    ETCH_TREND_RISING,
    /* never rises */
    ETCH_TREND_FALLING
} etch_trend;

/* How `a` moves as the integer variable `var` grows by 1 at a time, wherever it is, the other variables held:
 * for all values that the facts allow the others. Sound, incomplete. */
etch_trend etch_trend_of(etch_sym *sym, etch_expr a, etch_expr var);

/* Where `a` is 0, a quotient of which the numerator is linear in `var` and the denominator is never 0: in
 * `*root`. RISING: it is negative before and positive after; FALLING: the other way round; CONSTANT: its sign
 * is that of one value everywhere, and there is no root; UNKNOWN: `a` is nothing like that. */
etch_trend etch_linear_root(etch_sym *sym, etch_expr a, etch_expr var, etch_expr *root);

/* A monomial in some variables, and what stands before it. */
typedef struct etch_collected {
    etch_expr mono, coef;
} etch_collected;

/* `a` as a sum of coef * mono: `mono` are products of powers of the `count` variables, each once, in order
 * of printing; `coef` have these variables inside opaque atoms only. The array lives in the arena of
 * `sym`. Returns its length, 0 for 0 and NULL. */
uint32_t etch_collect(etch_sym *sym, etch_expr a, uint32_t count, const etch_expr *vars,
                      etch_collected **parts);

/* ---- compiled evaluation ------------------------------------------------------------------------------- */

/* Compiles `count` expressions to one program (etch/program.h), which does not refer to `sym` any more; to
 * be ended with `etch_program_free`. Reads `sym` only: it may be frozen, and shared. Does not trap.
 * ETCH_EINPUT: no expressions, or one is NULL or not adopted by the fork `sym`. ETCH_ELIMIT: too large a
 * program. ETCH_ENOMEM. */
etch_status etch_compile(const etch_sym *sym, uint32_t count, const etch_expr *exprs,
                         etch_program **program) ETCH_MUST_CHECK;

/* ---- text ---------------------------------------------------------------------------------------------- */

/* Appends `a` in a notation and form. Law: `etch_expr_read` of it in that notation is the same pointer,
 * for all notations but LaTeX. Undefined: `undefined` (LaTeX: \text{undefined}; JSON: null). */
void etch_expr_write(etch_sym *sym, etch_expr a, etch_notation notation, etch_form form, etch_buf *out);

/* Appends several expressions of plain, C or Python as assignments, one per line, after temporaries t1,
 * t2.. (names that are no variables) for functions and denominators that occur more than once. names[i] is
 * what roots[i] is assigned to. C: `const double t1 = ...;`. */
void etch_exprs_write(etch_sym *sym, uint32_t count, const etch_expr *roots, const char *const *names,
                      etch_notation notation, etch_form form, etch_buf *out);

/* The same as etch_expr_write, plain and in the shortest form. */
void etch_expr_print(etch_sym *sym, etch_expr a, etch_buf *out);
const char *etch_expr_text(etch_sym *sym, etch_expr a);

/* Reads an expression in a notation; unknown names become variables. NULL on a syntax error with
 * `*error_at` set to its byte offset, or when the value is undefined (`*error_at` = length). LaTeX is not
 * read (`*error_at` = 0). */
etch_expr etch_expr_read(etch_sym *sym, const char *text, size_t length, etch_notation notation,
                         size_t *error_at);
/* The same for the plain notation. */
etch_expr etch_expr_parse(etch_sym *sym, const char *text, size_t length, size_t *error_at);

#endif
