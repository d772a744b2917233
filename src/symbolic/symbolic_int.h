/* What the files of this module share. See symbolic.h for what an expression is.
 *
 *     coef.c       rational numbers                      integrality.c  what is known to be an integer
 *     gmp_memory.c what GMP takes its memory from
 *     mono.c       products of powers of atoms           prove.c        p >= 0, p > 0
 *     poly.c       interning, sorted lists of terms      points.c       assignments that satisfy all facts
 *     arith.c      + - * ^                               facts.c        what is assumed
 *     fraction.c   division, common denominators         decide.c       the public questions
 *     atoms.c      floor, max, 1/(sum)                   subst.c        replacing variables
 *     context.c    tables, scratch memory, variables     parse.c        reading
 *     calculus.c   derivatives                           collect.c      coefficients
 *     growth.c     degrees, leading terms                print_int.h    writing
 *     fork.c       frozen contexts                       program_int.h  compiled evaluation
 *
 * Functions named sym_* take and give expressions that are canonical under the facts of the moment, never
 * NULL unless said so. Public functions (etch_*) bring their operands into that form first. */
#ifndef ETCH_SYMBOLIC_INT_H
#define ETCH_SYMBOLIC_INT_H

#include <gmp.h>

#include "symbolic/symbolic.h"

enum {
    /* words of coefficients held or multiplied at a time */
    ETCH_SYM_MAX_WORK = 50000000,
    /* What is kept counts as operations, about one for each 5 bytes: a limit of operations is one of memory,
     * too. */
    ETCH_SYM_WORK_OF_NODE = 16,
    /* in a table that no cache holds */
    ETCH_SYM_WORK_OF_LOOKUP = 12,
    ETCH_SYM_WORK_OF_TERM = 5,
    ETCH_SYM_WORK_OF_POWER = 3,
    /* reduced to lowest terms, too */
    ETCH_SYM_WORK_OF_LIMB = 16,
    /* proofs within proofs */
    ETCH_SYM_MAX_NESTED = 16,
    ETCH_SYM_SMALL = 64
};

/* ---- context.c: tables, memos, scratch ----------------------------------------------------------------- */

/* Begins everything that is interned. */
typedef struct sym_node {
    uint64_t hash;
} sym_node;

/* Interned nodes by hash, open addressing. */
typedef struct sym_table {
    struct sym_slot {
        /* that of the node, so that others need not be looked at */
        uint64_t hash;
        sym_node *node;
    } * slots;
    /* a power of two */
    uint32_t count, capacity;
} sym_table;

/* Walks the nodes with this hash: `for (probe = 0; (node = sym_table_next(t, hash, &probe));)`. */
static inline sym_node *sym_table_next(const sym_table *table, uint64_t hash, uint32_t *probe);
void sym_table_add(etch_sym *sym, sym_table *table, sym_node *node);
/* The same right after sym_table_next found nothing more; `probe` as that left it. */
void sym_table_add_missed(etch_sym *sym, sym_table *table, sym_node *node, uint32_t probe);

/* A map from pointers to pointers. */
typedef struct sym_memo {
    struct sym_memo_slot {
        const void *key;
        const void *value;
    } * slots;
    /* a power of two */
    uint32_t count, capacity;
} sym_memo;

/* The value of `key`, NULL when there is none. */
const void *sym_memo_get(const sym_memo *memo, const void *key);
/* Sets it; `value` is not NULL. */
void sym_memo_put(etch_sym *sym, sym_memo *memo, const void *key, const void *value);
void sym_memo_clear(sym_memo *memo);

/* What two-sided operations gave for the operands that they had last: one place per pair, the newer one
 * stays. It saves work and changes no result. */
typedef enum sym_operation {
    ETCH_SYM_OP_ADD,
    ETCH_SYM_OP_SUB,
    ETCH_SYM_OP_MUL,
    ETCH_SYM_OP_DIV
} sym_operation;
typedef struct sym_recent {
    struct sym_recent_slot {
        sym_operation operation;
        /* its id */
        uint32_t b;
        etch_expr a, result;
    } * slots;
    /* a power of two */
    uint32_t capacity;
} sym_recent;

/* The result for this pair, NULL when it is not there any more. */
etch_expr sym_recent_get(const etch_sym *sym, sym_operation operation, etch_expr a, etch_expr b);
void sym_recent_put(etch_sym *sym, sym_operation operation, etch_expr a, etch_expr b, etch_expr result);

/* Scratch memory is given back in reverse order: `mark = sym_scratch_top(sym)`, take,
 * `sym_scratch_release(sym, mark)`. What a trap leaves behind stays with the arena. */
typedef struct sym_scratch_mark {
    struct sym_scratch_chunk *chunk;
    size_t used;
} sym_scratch_mark;

sym_scratch_mark sym_scratch_top(const etch_sym *sym);
void sym_scratch_release(etch_sym *sym, sym_scratch_mark mark);
/* Gives back all of it. */
void sym_scratch_reset(etch_sym *sym);
/* `count` zeroed objects of `size` bytes. */
void *sym_scratch_take(etch_sym *sym, size_t count, size_t size);

/* Traps with ETCH_ELIMIT: a limit of etch_sym_limits, by its name there. */
void sym_limit_of(etch_sym *sym, const char *what, uint64_t limit) ETCH_NORETURN;
void sym_limit(etch_sym *sym) ETCH_NORETURN; /* the same for sizes that no caller sets */
/* Counts operations against their limit. */
static inline void sym_count_work(etch_sym *sym, uint64_t operations);

static inline uint64_t sym_mix(uint64_t hash, uint64_t value)
{
    uint64_t x = (hash ^ value) * UINT64_C(0x9e3779b97f4a7c15);
    return x ^ (x >> 29);
}

/* ---- gmp_memory.c: what GMP takes its memory from ------------------------------------------------------ */

/* From here to sym_gmp_end GMP takes memory, on this thread, from the account `mem`: what GMP began there
 * ends there. When memory is out, control goes to the guard of the account, which frees what GMP holds; there
 * is no account for GMP then. Nothing else may trap between the two. */
void sym_gmp_begin(etch_mem *mem);
void sym_gmp_end(void);

/* ---- coef.c: rational numbers -------------------------------------------------------------------------- */

typedef struct sym_big {
    /* limbs; negative for a negative number */
    int32_t num_size;
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

#define ETCH_SYM_ZERO ((sym_coef){.num = 0, .den = 1})
#define ETCH_SYM_ONE ((sym_coef){.num = 1, .den = 1})
#define ETCH_SYM_TWO ((sym_coef){.num = 2, .den = 1})
#define ETCH_SYM_MINUS_ONE ((sym_coef){.num = -1, .den = 1})

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

__extension__ typedef __int128 sym_wide;

/* Between the two, long numbers live in scratch memory; the result is kept. */
typedef struct sym_limb_mark {
    sym_scratch_mark scratch;
    mp_limb_t *limbs;
    size_t limbs_left;
    bool in_scratch;
} sym_limb_mark;
sym_limb_mark sym_limbs_begin(etch_sym *sym);
sym_coef sym_limbs_end(etch_sym *sym, sym_limb_mark mark, sym_coef result);

sym_coef sym_coef_of(etch_sym *sym, int64_t num, int64_t den); /* den != 0 */
sym_coef sym_coef_of_wide(etch_sym *sym, sym_wide value);
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
int sym_coef_compare(sym_coef a, sym_coef b); /* -1, 0, 1; takes no memory */
bool sym_coef_is_integer(sym_coef a);
bool sym_coef_is_power_of_two(sym_coef a); /* 1, 2, 4, .. */
uint32_t sym_coef_twos(sym_coef a);        /* how often 2 divides an integer, which is not 0 */
uint32_t sym_coef_limbs(sym_coef a);       /* numerator and denominator together */
/* Of numbers that fit into words neither does. */
bool sym_big_equal(const sym_big *a, const sym_big *b);
uint64_t sym_big_hash(const sym_big *a);
static inline bool sym_coef_equal(sym_coef a, sym_coef b)
{
    return a.den == b.den && (a.num == b.num || (a.den == 0 && sym_big_equal(a.big, b.big)));
}
static inline uint64_t sym_coef_hash(sym_coef a)
{
    return sym_coef_is_small(a) ? sym_mix((uint64_t)a.num, (uint64_t)a.den) : sym_big_hash(a.big);
}
/* Appends an integer in decimal. */
void sym_coef_print(etch_sym *sym, sym_coef a, etch_buf *out);

/* ---- atoms, monomials, polynomials --------------------------------------------------------------------- */

typedef enum sym_kind {
    ETCH_SYM_VAR,
    ETCH_SYM_FLOOR,
    ETCH_SYM_MAX,
    ETCH_SYM_SUM,
    ETCH_SYM_POW2,
    ETCH_SYM_RECIP,
    /* of texts alone, where they stand for others: see text/views.c */
    /* args[0] % args[1] */
    ETCH_SYM_SHOWN_MOD,
    ETCH_SYM_SHOWN_CEIL,
    /* of all args */
    ETCH_SYM_SHOWN_MAX,
    ETCH_SYM_SHOWN_MIN,
    ETCH_SYM_SHOWN_ABS,
    /* [args[0] >= 0]: 1 or 0 */
    ETCH_SYM_SHOWN_BRACKET
} sym_kind;

/* The cases of atoms that no expression has but those that a text is made of. */
#define ETCH_SYM_SHOWN_CASES  \
    case ETCH_SYM_SHOWN_MOD:  \
    case ETCH_SYM_SHOWN_CEIL: \
    case ETCH_SYM_SHOWN_MAX:  \
    case ETCH_SYM_SHOWN_MIN:  \
    case ETCH_SYM_SHOWN_ABS:  \
    case ETCH_SYM_SHOWN_BRACKET

/* A variable or an opaque application. Atoms have a total order, that of `label`: variables as declared,
 * then the variables of proofs, then opaque atoms by structure. A label may change when atoms are added,
 * their order never. */
typedef struct sym_atom {
    sym_node node;
    uint64_t label;
    /* dense over all atoms */
    uint32_t id;
    sym_kind kind;
    /* 0: a variable */
    uint32_t depth;
    /* the atom as an expression */
    etch_expr self;
    /* variables */
    /* NULL: a variable of proofs, or the index of a sum */
    const char *name;
    /* in sym->vars */
    uint32_t index;
    /* the greatest integer that it is known to reach at least, or ETCH_SYM_UNBOUNDED */
    int64_t lower;
    /* without facts */
    int64_t declared_lower;
    /* which fact raised it, or ETCH_SYM_DECLARED */
    uint32_t lower_fact;
    /* any number > 0 */
    bool is_real;
    /* of a sum that is being put together: see etch_index */
    bool is_index;
    /* bound by the sums of this level; 0: by none */
    uint32_t bound_level;
    /* what an equality says it is, in variables that have no definition; or NULL */
    etch_expr definition;
    uint32_t definition_fact;
    /* opaque atoms */
    uint32_t count;
    /* floor, pow2, 1/(sum): 1; max: at least 2, the first is 0, the others in increasing order; sum: the
     * count of terms and the term, a product without coefficient */
    const etch_expr *args;
    /* of a sum: the index in its term, 0..count-1 */
    struct sym_atom *bound;
    /* sums inside sums, this one included; 0: no sum */
    uint32_t sum_level;
    /* in epoch `checked` */
    bool is_integer;
    uint32_t checked;
    /* of fraction.c, which leaves a degree here while it works on polynomials */
    uint64_t degree_mark;
    int32_t degree;
} sym_atom;

typedef struct sym_power {
    sym_atom *atom;
    /* not 0 */
    int32_t exp;
} sym_power;

#define ETCH_SYM_UNBOUNDED INT64_MIN

enum {
    ETCH_SYM_HAS_OPAQUE = 1,
    ETCH_SYM_HAS_RECIP = 2,
    ETCH_SYM_HAS_NEGATIVE = 4 /* exponent */,
    ETCH_SYM_HAS_VAR = 8
};

/* An interned product of powers, atoms in increasing order. */
typedef struct sym_mono {
    /* sum of exponent * hash of the atom: adds up under multiplication */
    sym_node node;
    /* dense */
    uint32_t id;
    uint32_t count;
    /* sum of the exponents */
    int64_t degree;
    uint32_t depth;
    uint32_t flags;
    sym_power at[];
} sym_mono;

typedef struct sym_term {
    const sym_mono *mono;
    /* not 0 */
    sym_coef coef;
} sym_term;

/* An interned expression: terms by decreasing monomial. At most one atom 1/(sum), to the power 1; see
 * fraction.c. */
struct etch_poly {
    sym_node node;
    uint32_t count;
    uint32_t id;
    /* canonical under the facts of this epoch (and of earlier ones) */
    uint32_t epoch;
    uint32_t depth;
    /* of all monomials */
    uint32_t flags;
    sym_term terms[];
};

/* mono.c */
const sym_mono *sym_mono_of(etch_sym *sym, sym_atom *atom, int64_t exp);
/* The product over its i-th atom. */
const sym_mono *sym_mono_lower(etch_sym *sym, const sym_mono *a, uint32_t i);
/* The product of powers in the order of atoms. */
const sym_mono *sym_mono_from(etch_sym *sym, const sym_power *powers, uint32_t count);
/* The exponent, when it is within the limit. */
int32_t sym_checked_exponent(etch_sym *sym, int64_t exp);
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
    /* in the pool */
    struct sym_terms *next;
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
/* Of the term with `mono`; 0 when there is none. */
sym_coef sym_coefficient(etch_expr a, const sym_mono *mono);

static inline sym_coef sym_leading_coef(etch_expr a)
{
    return a->count ? a->terms[0].coef : ETCH_SYM_ZERO;
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
/* product.c: the same for two sums. */
etch_expr sym_mul_sums(etch_sym *sym, etch_expr a, etch_expr b);
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
/* The index that sums of this level (from 1) bind, >= 0; the variable of etch_index. */
sym_atom *sym_bound_var(etch_sym *sym, uint32_t level);
sym_atom *sym_index_var(etch_sym *sym, uint32_t level);
sym_atom *sym_atom_intern(etch_sym *sym, sym_kind kind, uint32_t count, const etch_expr *args);
etch_expr sym_floor(etch_sym *sym, etch_expr a);
etch_expr sym_max(etch_sym *sym, uint32_t count, const etch_expr *args); /* count >= 1 */
/* Builds an expression again, and each max in it by `max`. NULL when it is undefined. */
typedef etch_expr (*sym_max_fn)(etch_sym *sym, uint32_t count, const etch_expr *args);
etch_expr sym_rebuild(etch_sym *sym, etch_expr a, sym_max_fn max);
etch_expr sym_min(etch_sym *sym, uint32_t count, const etch_expr *args);
etch_expr sym_recip_atom(etch_sym *sym, etch_expr den); /* den as fraction.c prepares it */

/* ---- sums.c -------------------------------------------------------------------------------------------- */

/* The sum of `body` over the integers 0 <= var < count; NULL when a term is undefined. `var` is the index of
 * a sum (sym_bound_var, sym_index_var), in `body` above the level of the sums inside. */
etch_expr sym_sum(etch_sym *sym, etch_expr count, sym_atom *var, etch_expr body);
/* The level of the deepest sum in `a`, 0 for none. */
uint32_t sym_sum_level(etch_expr a);

/* ---- powers.c ------------------------------------------------------------------------------------------ */

/* 1 where `a` is a power of two (1, 2, 4, ..), else 0. */
etch_expr sym_pow2(etch_sym *sym, etch_expr a);
/* The product when `a` is one of pow2 only, which is 1 or 0; else NULL. */
const sym_mono *sym_powers_of(etch_expr a);
/* Is mono a power of two, which coef divides by an odd number above 1? */
bool sym_is_odd_part_of_power(etch_sym *sym, const sym_mono *mono, sym_coef coef);
/* Is coef * mono an integer because what is below the line are powers of two, and those above are not
 * smaller? */
bool sym_is_divisor_of_power(etch_sym *sym, const sym_mono *mono, sym_coef coef);

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

/* ---- residues.c ---------------------------------------------------------------------------------------- */

typedef bool sym_claim(etch_sym *sym, etch_expr a);
/* Does the claim hold for `a` in all cases that the remainders of its variables make? A claim holds only if
 * it holds for all values that the facts allow. */
bool sym_holds_by_remainders(etch_sym *sym, etch_expr a, sym_claim *holds);

/* ---- points.c ------------------------------------------------------------------------------------------ */

/* Exact value with variable i = values[i]; false where it has none. */
bool sym_eval(etch_sym *sym, etch_expr a, const sym_coef *values, sym_coef *result);
/* The i-th assignment that satisfies all facts, in an order fixed by them; NULL when there are no more. */
const sym_coef *sym_point(etch_sym *sym, uint32_t i);
/* The same with one variable moved to `value` and others after it as facts ask; NULL when that is not
 * allowed. In scratch memory. */
const sym_coef *sym_point_moved(etch_sym *sym, const sym_coef *point, const sym_atom *var, int64_t value);
/* Operations counted so far, without those that making points took: which points are at hand must not change
 * how long a proof may be. */
uint64_t sym_work_without_points(const etch_sym *sym);
/* Is `a` negative at one of points from..to-1? Then there is no proof that it is not. */
bool sym_negative_at(etch_sym *sym, etch_expr a, uint32_t from, uint32_t to);

/* ---- facts.c ------------------------------------------------------------------------------------------- */

typedef enum sym_fact_kind {
    ETCH_SYM_FACT_DIVIDES,
    ETCH_SYM_FACT_EQUAL,
    ETCH_SYM_FACT_AT_LEAST,
    ETCH_SYM_FACT_DIFFERENT
} sym_fact_kind;

typedef struct sym_fact {
    sym_fact_kind kind;
    /* as given: a | b, a == b, a >= b, a != b */
    etch_expr a, b;
    int64_t origin;
} sym_fact;

#define ETCH_SYM_DECLARED UINT32_MAX /* in place of a fact: a declaration */

/* coef * mono is an integer. */
typedef struct sym_ratio {
    const sym_mono *mono;
    sym_coef coef;
    /* variable of proofs that stands for it; NULL when its sign is not known */
    sym_atom *quotient;
    uint32_t fact;
} sym_ratio;

/* x is a power of two, or is none. */
typedef struct sym_known_power {
    etch_expr x;
    bool is_power;
    uint32_t fact;
} sym_known_power;

/* gap >= 0. */
typedef struct sym_bound {
    etch_expr gap;
    /* variable of proofs that stands for it */
    sym_atom *slack;
    uint32_t fact;
} sym_bound;

/* One way to write a variable through a fact: var = value, where value contains a quotient or a slack. */
typedef struct sym_alternative {
    sym_atom *var;
    etch_expr value;
    /* the quotient or slack: each is used once in a proof */
    sym_atom *spends;
    uint32_t fact;
    /* of a bound: var >= value without the slack */
    bool is_lower;
} sym_alternative;

/* Notes that a proof used a fact (or a declaration). */
void sym_used_fact(etch_sym *sym, uint32_t fact);
/* What is known has changed: canonical forms of before may simplify further. */
void sym_new_epoch(etch_sym *sym);

/* ---- subst.c ------------------------------------------------------------------------------------------- */

/* Replaces variable i by values[i] where that is not NULL. Only in the powers of variables themselves, not
 * inside opaque atoms. */
etch_expr sym_replace(etch_sym *sym, etch_expr a, const etch_expr *values);
/* Replaces one atom everywhere, also inside others; NULL when the result is undefined. An atom that is not a
 * variable must not be below a sum over an index. */
etch_expr sym_put(etch_sym *sym, etch_expr a, const sym_atom *atom, etch_expr value);
/* The canonical form under the facts of the moment of an expression that was built before; NULL when a
 * denominator turns out to be 0. NULL gives NULL. */
static inline etch_expr sym_refresh(etch_sym *sym, etch_expr a);
etch_expr sym_refresh_anew(etch_sym *sym, etch_expr a);
/* Marks in seen[index] the variables in `a`, also inside opaque atoms. */
void sym_mark_vars(etch_sym *sym, etch_expr a, bool *seen);

/* ---- calculus.c ---------------------------------------------------------------------------------------- */

/* The atom of a variable that stands for itself; NULL: `var` is no variable, or an equality replaced it. */
sym_atom *sym_var_of(etch_expr var);
/* Does the variable occur, also inside opaque atoms? */
bool sym_depends_on(etch_sym *sym, etch_expr a, const sym_atom *var);
/* `a` with value(data, atom) in place of every opaque atom. NULL: a value is, or a denominator becomes 0. */
etch_expr sym_map_atoms(etch_sym *sym, etch_expr a, etch_expr (*value)(void *data, const sym_atom *atom),
                        void *data);
/* floor(R) taken as R, where it depends on `var` (NULL: everywhere). NULL: a denominator becomes 0. */
etch_expr sym_relax(etch_sym *sym, etch_expr a, const sym_atom *var);

/* ---- fork.c -------------------------------------------------------------------------------------------- */

/* Is it an expression of the context that `sym` is a fork of? */
bool sym_is_foreign(const etch_sym *sym, etch_expr a);

/* ---- the context --------------------------------------------------------------------------------------- */

typedef struct sym_points {
    /* for which they were made */
    uint32_t epoch, vars;
    uint32_t tried;
    /* operations counted for points of all times, evaluations left out */
    uint64_t work;
    ETCH_VEC(const sym_coef *) found;
} sym_points;

struct etch_sym {
    etch_arena *arena;
    /* from 1; grows with every fact */
    uint32_t epoch;
    bool frozen;
    /* the frozen context that this is a fork of, or NULL */
    const etch_sym *parent;
    /* of a fork */
    uint32_t first_epoch;
    /* expressions and atoms of the parent -> counterparts */
    sym_memo adopted;
    etch_sym_limits limits;
    /* limits.digits in words */
    uint32_t most_limbs;
    uint64_t operations_left;
    /* given to atoms so far: see sym_atom */
    uint64_t degree_marks;
    const char *limit_reached;

    sym_table atoms, monos, polys;
    uint32_t atom_count, mono_count, poly_count;
    /* by index */
    ETCH_VEC(sym_atom *) vars;
    /* in their order */
    ETCH_VEC(struct sym_block *) opaque;
    uint32_t opaque_count;
    const sym_mono *unit;
    etch_expr zero, one;
    /* integers from 0 on that have been asked for */
    etch_expr small[ETCH_SYM_SMALL];

    ETCH_VEC(sym_fact) facts;
    ETCH_VEC(sym_ratio) ratios;
    ETCH_VEC(sym_bound) bounds;
    ETCH_VEC(sym_alternative) alternatives;
    ETCH_VEC(sym_known_power) known_powers;
    /* facts that can tell of some variable that it is a power of two */
    uint32_t power_sources;
    /* variables that have one */
    uint32_t definitions;

    /* of this epoch: expression -> canonical form */
    sym_memo fresh;
    /* of this epoch: expression -> its floor, and what is rounded up */
    sym_memo floors, ceilings;
    /* of this epoch: expression -> proved or failed */
    sym_memo proofs;
    /* of each proof under way */
    sym_memo failed[ETCH_SYM_MAX_NESTED];
    sym_recent recent;
    uint32_t proof_nesting, proof_work;
    /* collect `last_fact`; no memo */
    bool tracing;
    /* the latest fact that successful proofs used, or ETCH_SYM_DECLARED */
    uint32_t last_fact;
    sym_points points;

    /* reused memory */
    sym_power *powers;
    uint32_t powers_capacity;
    /* by monomial: place in the list under construction, from 1 */
    uint32_t *slot_of;
    uint32_t slot_capacity;
    mp_limb_t *limbs;
    size_t limbs_left;
    /* while points are evaluated */
    bool limbs_in_scratch;
    sym_terms *pool;
    struct sym_scratch_chunk *scratch;
    size_t scratch_used;
    /* of sym_eval, by atom */
    struct sym_value *atom_values;
    uint32_t atom_values_capacity;
    /* of the evaluation at hand; of all so far */
    uint64_t atom_values_stamp, atom_values_stamps;
    /* of sums, by level */
    ETCH_VEC(sym_atom *) bound_vars, index_vars;
    /* of cases by remainders */
    ETCH_VEC(sym_atom *) quotients;
    ETCH_VEC(sym_coef) bernoulli;
    /* of sym_eval */
    uint32_t sum_steps_left;
    /* quotients and slacks, reused */
    ETCH_VEC(sym_atom *) proof_vars;
    uint32_t proof_vars_used;
};

static inline etch_expr sym_refresh(etch_sym *sym, etch_expr a)
{
    if (!a || a->epoch == sym->epoch || (!(a->flags & ETCH_SYM_HAS_OPAQUE) && !sym->definitions))
        return a;
    return sym_refresh_anew(sym, a);
}

/* Multiplicative hashing: the high bits are the well mixed ones. */
static inline uint32_t sym_home_of(uint64_t hash, uint32_t capacity)
{
    return (uint32_t)((hash * UINT64_C(0x9e3779b97f4a7c15)) >> 32) & (capacity - 1);
}

static inline sym_node *sym_table_next(const sym_table *table, uint64_t hash, uint32_t *probe)
{
    if (!table->capacity)
        return NULL;
    uint32_t home = sym_home_of(hash, table->capacity);
    for (;;) {
        const struct sym_slot *slot = &table->slots[(home + *probe) & (table->capacity - 1)];
        if (!slot->node)
            return NULL;
        ++*probe;
        if (slot->hash == hash)
            return slot->node;
    }
}

static inline void sym_count_work(etch_sym *sym, uint64_t operations)
{
    if (operations > sym->operations_left)
        sym_limit_of(sym, "counted operations", sym->limits.operations);
    sym->operations_left -= operations;
}

/* ---- proof_atoms.c: what a proof may take up ---------------------------------------------------------- */

/* A max or pow2 inside the arguments of other atoms; NULL when there is none. */
sym_atom *sym_inner_choice(etch_sym *sym, etch_expr a, uint32_t depth);
const sym_atom *sym_some_power(etch_expr a);
/* The opaque atoms of `a`, each once, in the scratch memory; at most `limit`. */
sym_atom **sym_opaque_atoms(etch_sym *sym, etch_expr a, uint32_t limit, uint32_t *count);
/* The max to go on with: one that is subtracted, since all of its cases must hold anyway; else the
 * outermost. NULL when there is none. */
sym_atom *sym_next_max(etch_expr a, sym_atom *const *atoms, uint32_t count);
/* The root of a product of even powers; NULL of others. */
const sym_mono *sym_root_of(etch_sym *sym, const sym_mono *mono);
/* Does the product have none of the atoms of x? */
bool sym_apart_from(const sym_mono *product, const sym_mono *x);

#endif
