/* What the files of this room share. See symbolic.h for what an expression is.
 *
 *     coef.c       rational numbers                      integrality.c  what is known to be an integer
 *     mono.c       products of powers of atoms           prove.c        p >= 0, p > 0
 *     poly.c       interning, sorted lists of terms      points.c       assignments that satisfy all facts
 *     arith.c      + - * ^                               facts.c        what is assumed
 *     fraction.c   division, common denominators         decide.c       the questions of the door
 *     atoms.c      floor, max, 1/(sum)                   subst.c        replacing variables
 *     context.c    tables, scratch memory, variables     print.c, parse.c
 *
 * Functions named sym_* take and give expressions that are canonical under the facts of the moment, never
 * NULL unless said so. Functions of the door (etch_*) bring their operands into that form first. */
#ifndef ETCH_SYMBOLIC_INT_H
#define ETCH_SYMBOLIC_INT_H

#include <gmp.h>

#include "symbolic/symbolic.h"

enum {
    SYM_MAX_TERMS = 200000,     /* of one expression */
    SYM_MAX_EXPONENT = 1000000, /* of one atom in one term */
    SYM_MAX_DIGITS = 100000,    /* of one number */
    SYM_MAX_LIMBS = 5200,       /* the same in words */
    SYM_MAX_WORK = 50000000,    /* products of coefficients, weighed by their length, in one multiplication */
    SYM_MAX_DEPTH = 100,        /* opaque atoms inside opaque atoms */
    SYM_MAX_ATOMS = 100000,     /* opaque ones in one context */
    SYM_MAX_NESTED = 16,        /* proofs within proofs */
    SYM_MAX_NESTING = 500       /* of brackets and operators in text */
};

/* ---- context.c: tables, memos, scratch ----------------------------------------------------------------- */

/* Begins everything that is interned. */
typedef struct sym_node {
    uint64_t hash;
} sym_node;

/* Interned nodes by hash, open addressing. */
typedef struct sym_table {
    sym_node **slots;
    uint32_t count, capacity; /* a power of two */
} sym_table;

/* Walks the nodes with this hash: `for (probe = 0; (node = sym_table_next(t, hash, &probe));)`. */
sym_node *sym_table_next(const sym_table *table, uint64_t hash, uint32_t *probe);
void sym_table_add(etch_sym *sym, sym_table *table, sym_node *node);

/* A map from pointers to pointers. */
typedef struct sym_memo {
    struct sym_memo_slot {
        const void *key;
        const void *value;
    } * slots;
    uint32_t count, capacity; /* a power of two */
} sym_memo;

/* The value of `key`, NULL when there is none. */
const void *sym_memo_get(const sym_memo *memo, const void *key);
/* Sets it; `value` is not NULL. */
void sym_memo_put(etch_sym *sym, sym_memo *memo, const void *key, const void *value);
void sym_memo_clear(sym_memo *memo);

/* Scratch memory is given back in reverse order: `mark = sym_scratch_top(sym)`, take,
 * `sym_scratch_release(sym, mark)`. What a trap leaves behind stays with the arena. */
typedef struct sym_scratch_mark {
    struct sym_scratch_chunk *chunk;
    size_t used;
} sym_scratch_mark;

sym_scratch_mark sym_scratch_top(const etch_sym *sym);
void sym_scratch_release(etch_sym *sym, sym_scratch_mark mark);
/* `count` zeroed objects of `size` bytes. */
void *sym_scratch_take(etch_sym *sym, size_t count, size_t size);

void sym_limit(etch_sym *sym) ETCH_NORETURN; /* traps with ETCH_ELIMIT */

static inline uint64_t sym_mix(uint64_t hash, uint64_t value)
{
    uint64_t x = (hash ^ value) * UINT64_C(0x9e3779b97f4a7c15);
    return x ^ (x >> 29);
}

/* ---- coef.c: rational numbers -------------------------------------------------------------------------- */

typedef struct sym_big {
    int32_t num_size; /* limbs; negative for a negative number */
    int32_t den_size;
    const mp_limb_t *num, *den;
} sym_big;

/* A rational number in lowest terms. den > 0: both fit and num != INT64_MIN. den == 0: `big`, and it would
 * not fit. So each value has one representation. */
typedef struct sym_coef {
    union {
        int64_t num;
        const sym_big *big;
    };
    int64_t den;
} sym_coef;

#define SYM_ZERO ((sym_coef){.num = 0, .den = 1})
#define SYM_ONE ((sym_coef){.num = 1, .den = 1})
#define SYM_MINUS_ONE ((sym_coef){.num = -1, .den = 1})

static inline bool sym_coef_is_small(sym_coef a)
{
    return a.den != 0;
}
static inline bool sym_coef_is_zero(sym_coef a)
{
    return a.num == 0 && a.den == 1;
}
static inline bool sym_coef_is_one(sym_coef a)
{
    return a.num == 1 && a.den == 1;
}

sym_coef sym_coef_of(etch_sym *sym, int64_t num, int64_t den); /* den != 0 */
/* The value of decimal text; false when it is not such text. */
bool sym_coef_parse(etch_sym *sym, const char *text, size_t length, sym_coef *value);
sym_coef sym_coef_add(etch_sym *sym, sym_coef a, sym_coef b);
sym_coef sym_coef_sub(etch_sym *sym, sym_coef a, sym_coef b);
sym_coef sym_coef_mul(etch_sym *sym, sym_coef a, sym_coef b);
sym_coef sym_coef_div(etch_sym *sym, sym_coef a, sym_coef b); /* b != 0 */
sym_coef sym_coef_neg(etch_sym *sym, sym_coef a);
sym_coef sym_coef_inv(etch_sym *sym, sym_coef a);                   /* a != 0 */
sym_coef sym_coef_pow(etch_sym *sym, sym_coef a, int64_t exponent); /* a != 0 when the exponent is negative */
sym_coef sym_coef_abs(etch_sym *sym, sym_coef a);
sym_coef sym_coef_floor(etch_sym *sym, sym_coef a);
/* The greatest g such that a/g and b/g are integers; gcd(0, b) = |b|. */
sym_coef sym_coef_gcd(etch_sym *sym, sym_coef a, sym_coef b);
sym_coef sym_coef_numerator(etch_sym *sym, sym_coef a);
sym_coef sym_coef_denominator(etch_sym *sym, sym_coef a);
int sym_coef_sign(sym_coef a);
int sym_coef_compare(sym_coef a, sym_coef b);
bool sym_coef_equal(sym_coef a, sym_coef b);
bool sym_coef_is_integer(sym_coef a);
uint64_t sym_coef_hash(sym_coef a);
uint32_t sym_coef_limbs(sym_coef a); /* numerator and denominator together */
/* Appends an integer in decimal. */
void sym_coef_print(sym_coef a, etch_buf *out);

/* ---- atoms, monomials, polynomials --------------------------------------------------------------------- */

typedef enum sym_kind { SYM_VAR, SYM_FLOOR, SYM_MAX, SYM_RECIP } sym_kind;

/* A variable or an opaque application. Atoms have a total order, that of `label`: variables as declared,
 * then the variables of proofs, then opaque atoms by structure. A label may change when atoms are added,
 * their order never. */
typedef struct sym_atom {
    sym_node node;
    uint64_t label;
    uint32_t id; /* dense over all atoms */
    sym_kind kind;
    uint32_t depth; /* 0: a variable */
    etch_expr self; /* the atom as an expression */
    /* variables */
    const char *name;       /* NULL: a variable of proofs */
    uint32_t index;         /* in sym->vars */
    int64_t lower;          /* the greatest integer that it is known to reach at least */
    int64_t declared_lower; /* without facts */
    uint32_t lower_fact;    /* which fact raised it, or SYM_DECLARED */
    bool is_real;           /* any number > 0 */
    etch_expr definition;   /* what an equality says it is, in variables that have no definition; or NULL */
    uint32_t definition_fact;
    /* opaque atoms */
    uint32_t count;
    const etch_expr
        *args; /* floor: 1; 1/(sum): 1; max: at least 2, the first is 0, the others in increasing order */
    bool is_integer; /* in epoch `checked` */
    uint32_t checked;
} sym_atom;

typedef struct sym_power {
    sym_atom *atom;
    int32_t exp; /* not 0 */
} sym_power;

enum { SYM_HAS_OPAQUE = 1, SYM_HAS_RECIP = 2, SYM_HAS_NEGATIVE = 4 /* exponent */, SYM_HAS_VAR = 8 };

/* An interned product of powers, atoms in increasing order. */
typedef struct sym_mono {
    sym_node node; /* sum of exponent * hash of the atom: adds up under multiplication */
    uint32_t id;   /* dense */
    uint32_t count;
    int64_t degree; /* sum of the exponents */
    uint32_t depth;
    uint32_t flags;
    sym_power at[];
} sym_mono;

typedef struct sym_term {
    const sym_mono *mono;
    sym_coef coef; /* not 0 */
} sym_term;

/* An interned expression: terms by decreasing monomial. At most one atom 1/(sum), to the power 1; see
 * fraction.c. */
struct etch_poly {
    sym_node node;
    uint32_t count;
    uint32_t id;
    uint32_t epoch; /* canonical under the facts of this epoch (and of earlier ones) */
    uint32_t depth;
    uint32_t flags; /* of all monomials */
    sym_term terms[];
};

/* mono.c */
const sym_mono *sym_mono_of(etch_sym *sym, sym_atom *atom, int64_t exp);
const sym_mono *sym_mono_mul(etch_sym *sym, const sym_mono *a, const sym_mono *b);
const sym_mono *sym_mono_div(etch_sym *sym, const sym_mono *a, const sym_mono *b);
const sym_mono *sym_mono_pow(etch_sym *sym, const sym_mono *a, int64_t exponent);
/* Lexicographic: the first atom in which they differ decides. A greater factor makes a greater product. */
int sym_mono_compare(const sym_mono *a, const sym_mono *b);
int32_t sym_mono_exp(const sym_mono *a, const sym_atom *atom);
/* Least (`sign` < 0) or greatest exponents of each atom of the two. */
const sym_mono *sym_mono_meet(etch_sym *sym, const sym_mono *a, const sym_mono *b, int sign);
/* The powers whose exponents have the sign of `sign`. */
const sym_mono *sym_mono_part(etch_sym *sym, const sym_mono *a, int sign);

/* poly.c: a list of terms on its way to become an expression. */
typedef struct sym_terms {
    sym_term *at;
    uint32_t count, capacity;
    struct sym_terms *next; /* in the pool */
} sym_terms;

sym_terms *sym_terms_new(etch_sym *sym);
void sym_terms_push(etch_sym *sym, sym_terms *list, const sym_mono *mono, sym_coef coef);
void sym_terms_push_all(etch_sym *sym, sym_terms *list, etch_expr a);
/* Interns the list, which is in order without equal monomials, and gives it back to the pool. */
etch_expr sym_terms_finish(etch_sym *sym, sym_terms *list);
/* The same for a list in any order: sorts, adds like terms, drops zeros. */
etch_expr sym_terms_collect(etch_sym *sym, sym_terms *list);
void sym_terms_free(etch_sym *sym, sym_terms *list);
/* out += a + coef * mono * b, for sorted runs of terms. */
void sym_terms_add_scaled(etch_sym *sym, sym_terms *out, const sym_term *a, uint32_t a_count,
                          const sym_term *b, uint32_t b_count, const sym_mono *mono, sym_coef coef);

etch_expr sym_monomial(etch_sym *sym, const sym_mono *mono, sym_coef coef);
etch_expr sym_constant(etch_sym *sym, sym_coef value);
/* A total order by structure. */
int sym_compare(etch_expr a, etch_expr b);
/* The atom, when `a` is one to the power 1; else NULL. */
sym_atom *sym_atom_of(etch_expr a);

static inline sym_coef sym_leading_coef(etch_expr a)
{
    return a->count ? a->terms[0].coef : SYM_ZERO;
}
static inline bool sym_is_constant(etch_expr a)
{
    return a->count == 0 || (a->count == 1 && a->terms[0].mono->count == 0);
}
/* Its value when it is a constant. */
static inline sym_coef sym_constant_of(etch_expr a)
{
    return sym_leading_coef(a);
}

/* ---- arith.c ------------------------------------------------------------------------------------------- */

etch_expr sym_add(etch_sym *sym, etch_expr a, etch_expr b);
etch_expr sym_sub(etch_sym *sym, etch_expr a, etch_expr b);
etch_expr sym_neg(etch_sym *sym, etch_expr a);
etch_expr sym_mul(etch_sym *sym, etch_expr a, etch_expr b);
etch_expr sym_pow(etch_sym *sym, etch_expr a, int64_t exponent); /* NULL: negative power of 0 */
etch_expr sym_scale(etch_sym *sym, etch_expr a, const sym_mono *mono, sym_coef coef);
etch_expr sym_add_int(etch_sym *sym, etch_expr a, int64_t b);
/* a * b where neither has an atom 1/(sum). */
etch_expr sym_mul_plain(etch_sym *sym, etch_expr a, etch_expr b);
/* The rational content: all coefficients divided by it are integers without common factor; positive. 0 for
 * 0. */
sym_coef sym_content(etch_sym *sym, etch_expr a);
/* The monomial of least exponents of every atom over all terms. */
const sym_mono *sym_mono_content(etch_sym *sym, etch_expr a);
/* The monomial of the least negative exponents: `a` divided by it has none. */
const sym_mono *sym_mono_below(etch_sym *sym, etch_expr a);

/* ---- fraction.c ---------------------------------------------------------------------------------------- */

/* num/den, both without atoms 1/(sum). */
typedef struct sym_fraction {
    etch_expr num, den;
} sym_fraction;

sym_fraction sym_split(etch_sym *sym, etch_expr a);
/* The canonical form of num/den; den is not 0. */
etch_expr sym_join(etch_sym *sym, etch_expr num, etch_expr den);
etch_expr sym_div(etch_sym *sym, etch_expr a, etch_expr b); /* NULL when b is 0 */

/* ---- atoms.c ------------------------------------------------------------------------------------------- */

sym_atom *sym_atom_new_var(etch_sym *sym, const char *name, int64_t lower);
sym_atom *sym_atom_intern(etch_sym *sym, sym_kind kind, uint32_t count, const etch_expr *args);
etch_expr sym_floor(etch_sym *sym, etch_expr a);
etch_expr sym_max(etch_sym *sym, uint32_t count, const etch_expr *args); /* count >= 1 */
etch_expr sym_min(etch_sym *sym, uint32_t count, const etch_expr *args);
etch_expr sym_recip_atom(etch_sym *sym, etch_expr den); /* den as fraction.c prepares it */

/* ---- integrality.c ------------------------------------------------------------------------------------- */

bool sym_term_is_integer(etch_sym *sym, const sym_mono *mono, sym_coef coef);
bool sym_is_integer(etch_sym *sym, etch_expr a); /* every term is */
bool sym_atom_is_integer(etch_sym *sym, sym_atom *atom);
/* Atoms that are positive wherever an expression with them in a denominator has a value, or everywhere. */
bool sym_atom_is_positive(etch_sym *sym, const sym_atom *atom, bool in_denominator);
/* A positive q such that `a` takes only values that are multiples of 1/q; false when none is known. */
bool sym_grid(etch_sym *sym, etch_expr a, etch_expr *q);

/* ---- prove.c ------------------------------------------------------------------------------------------- */

/* Sound, incomplete: true only if it holds for all values that the facts allow. */
bool sym_is_nonnegative(etch_sym *sym, etch_expr a);
bool sym_is_positive(etch_sym *sym, etch_expr a);
/* `a`, without atoms 1/(sum), times its denominators; NULL when their sign is not known. */
etch_expr sym_clear_denominators(etch_sym *sym, etch_expr a);

/* ---- points.c ------------------------------------------------------------------------------------------ */

/* Exact value with variable i = values[i]; false where it has none. */
bool sym_eval(etch_sym *sym, etch_expr a, const sym_coef *values, sym_coef *result);
/* The i-th assignment that satisfies all facts, in an order fixed by them; NULL when there are no more. */
const sym_coef *sym_point(etch_sym *sym, uint32_t i);
/* Is `a` negative at one of points from..to-1? Then there is no proof that it is not. */
bool sym_negative_at(etch_sym *sym, etch_expr a, uint32_t from, uint32_t to);

/* ---- facts.c ------------------------------------------------------------------------------------------- */

typedef enum sym_fact_kind { SYM_FACT_DIVIDES, SYM_FACT_EQUAL, SYM_FACT_AT_LEAST } sym_fact_kind;

typedef struct sym_fact {
    sym_fact_kind kind;
    etch_expr a, b; /* as given: a | b, a == b, a >= b */
    int64_t origin;
} sym_fact;

#define SYM_DECLARED UINT32_MAX /* in place of a fact: a declaration */

/* coef * mono is an integer. */
typedef struct sym_ratio {
    const sym_mono *mono;
    sym_coef coef;
    sym_atom *quotient; /* variable of proofs that stands for it; NULL when its sign is not known */
    uint32_t fact;
} sym_ratio;

/* gap >= 0. */
typedef struct sym_bound {
    etch_expr gap;
    sym_atom *slack; /* variable of proofs that stands for it */
    uint32_t fact;
} sym_bound;

/* One way to write a variable through a fact: var = value, where value contains a quotient or a slack. */
typedef struct sym_alternative {
    sym_atom *var;
    etch_expr value;
    sym_atom *spends; /* the quotient or slack: each is used once in a proof */
    uint32_t fact;
    bool is_lower; /* of a bound: var >= value without the slack */
} sym_alternative;

/* Notes that a proof used a fact (or a declaration). */
void sym_used_fact(etch_sym *sym, uint32_t fact);
/* What is known has changed: canonical forms of before may simplify further. */
void sym_new_epoch(etch_sym *sym);

/* ---- subst.c ------------------------------------------------------------------------------------------- */

/* Replaces variable i by values[i] where that is not NULL. Only in the powers of variables themselves, not
 * inside opaque atoms. */
etch_expr sym_replace(etch_sym *sym, etch_expr a, const etch_expr *values);
/* The canonical form under the facts of the moment of an expression that was built before; NULL when a
 * denominator turns out to be 0. NULL gives NULL. */
etch_expr sym_refresh(etch_sym *sym, etch_expr a);
/* Marks in seen[index] the variables in `a`, also inside opaque atoms. */
void sym_mark_vars(etch_sym *sym, etch_expr a, bool *seen);

/* ---- the context --------------------------------------------------------------------------------------- */

typedef struct sym_points {
    uint32_t epoch, vars; /* for which they were made */
    uint32_t tried;
    ETCH_VEC(const sym_coef *) found;
} sym_points;

struct etch_sym {
    etch_arena *arena;
    uint32_t epoch; /* from 1; grows with every fact */

    sym_table atoms, monos, polys;
    uint32_t atom_count, mono_count, poly_count;
    ETCH_VEC(sym_atom *) vars;   /* by index */
    ETCH_VEC(sym_atom *) opaque; /* in their order */
    const sym_mono *unit;
    etch_expr zero, one;

    ETCH_VEC(sym_fact) facts;
    ETCH_VEC(sym_ratio) ratios;
    ETCH_VEC(sym_bound) bounds;
    ETCH_VEC(sym_alternative) alternatives;
    uint32_t definitions; /* variables that have one */

    sym_memo fresh;                  /* of this epoch: expression -> canonical form */
    sym_memo floors;                 /* of this epoch: expression -> its floor */
    sym_memo proofs;                 /* of this epoch: expression -> proved or failed */
    sym_memo failed[SYM_MAX_NESTED]; /* of each proof under way */
    uint32_t proof_nesting, proof_work;
    bool tracing;       /* collect `last_fact`; no memo */
    uint32_t last_fact; /* the latest fact that successful proofs used, or SYM_DECLARED */
    sym_points points;

    /* reused memory */
    sym_power *powers;
    uint32_t powers_capacity;
    uint32_t *slot_of; /* by monomial: place in the list under construction, from 1 */
    uint32_t slot_capacity;
    mp_limb_t *limbs;
    size_t limbs_left;
    sym_terms *pool;
    struct sym_scratch_chunk *scratch;
    size_t scratch_used;
    struct sym_value *atom_values; /* of sym_eval, by atom */
    uint32_t atom_values_capacity, atom_values_stamp;
    ETCH_VEC(sym_atom *) proof_vars; /* quotients and slacks, reused */
    uint32_t proof_vars_used;
};

#endif
