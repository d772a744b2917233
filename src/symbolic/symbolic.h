/* The door of symbolic: exact expressions over named parameters.
 *
 * An expression is an interned, immutable, canonical sparse Laurent polynomial over the rationals. Its
 * atoms are variables and interned opaque applications: floor(R), max{...}, 1/(sum). Equal canonical forms
 * are the same pointer. `mod`, `//`, `ceil`, `min`, `abs` are rewritten into these on construction, and
 * recovered by the printer. Coefficients are machine words while they fit, GMP numbers after; never a
 * wrong value.
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

typedef struct etch_sym etch_sym;
typedef const struct etch_poly *etch_expr;

etch_sym *etch_sym_new(etch_arena *arena);

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
etch_expr etch_min(etch_sym *sym, etch_expr a, etch_expr b);
etch_expr etch_abs(etch_sym *sym, etch_expr a);

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

typedef enum etch_relation {
    ETCH_REL_EQ,
    ETCH_REL_NE,
    ETCH_REL_LE,
    ETCH_REL_GE,
    ETCH_REL_LT,
    ETCH_REL_GT,
    ETCH_REL_DIVIDES, /* left divides right */
    ETCH_REL_TRUE     /* left is not 0 */
} etch_relation;

/* A statement that somebody wrote: an assumption, a check. `left` is NULL where it could not be evaluated. */
typedef struct etch_claim {
    etch_relation relation;
    etch_expr left, right;
    const char *text; /* as written */
    etch_span span;
} etch_claim;

/* ---- questions ----------------------------------------------------------------------------------------- */

/* Values of variables that make a statement false and satisfy every fact: `count` pairs, in order of
 * declaration. */
typedef struct etch_witness {
    uint32_t count;
    const etch_expr *vars;
    const etch_expr *values; /* constants */
} etch_witness;

/* Does it hold for all values that the facts allow? ETCH_NO only with a witness (`witness` may be NULL).
 * NULL operands: ETCH_UNKNOWN. */
etch_truth etch_equal(etch_sym *sym, etch_expr a, etch_expr b, etch_witness *witness);
etch_truth etch_at_least(etch_sym *sym, etch_expr a, etch_expr b, etch_witness *witness);
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
/* The variable's name when `a` is a single variable, else NULL. */
const char *etch_var_name(etch_expr a);
/* The variables in `a`, also inside opaque atoms, in order of declaration. The array lives in the arena of
 * `sym`. */
uint32_t etch_vars_of(etch_sym *sym, etch_expr a, const etch_expr **vars);

/* Replaces `count` variables by expressions, all at once, and simplifies again under the facts. Constants
 * for all variables: exact evaluation. NULL when a denominator becomes 0. */
etch_expr etch_subst(etch_sym *sym, etch_expr a, uint32_t count, const etch_expr *vars,
                     const etch_expr *values);

/* ---- text ---------------------------------------------------------------------------------------------- */

/* Plain form: `2*B*S*H^2/tp + floor(a/8)`; operators `+ - * / // % ^`, functions `max min abs floor ceil`.
 * Terms of higher total degree first, then by order of declaration. Law: etch_expr_parse of what is
 * printed is the same pointer. */
void etch_expr_print(etch_sym *sym, etch_expr a, etch_buf *out);
const char *etch_expr_text(etch_sym *sym, etch_expr a);
/* Parses the plain form; unknown names become variables. NULL on a syntax error with `*error_at` set to
 * its byte offset, or when the value is undefined (`*error_at` = length). */
etch_expr etch_expr_parse(etch_sym *sym, const char *text, size_t length, size_t *error_at);

#endif
