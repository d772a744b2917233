/* Random expressions that know their own value: trees, evaluated node by node with GMP rationals. Nothing
 * here shares code with the room that is tested. */
#ifndef ETCH_TEST_ORACLE_H
#define ETCH_TEST_ORACLE_H

#include "suite.h"

#include <gmp.h>

#include "symbolic/symbolic.h"

/* ---- random numbers ------------------------------------------------------------------------------------ */

typedef struct chance {
    uint64_t state, seed;
} chance;

/* Seeded by ETCH_TEST_SEED, else by `seed`. */
chance chance_new(uint64_t seed);
/* 0..below-1 */
uint64_t chance_below(chance *c, uint64_t below);
/* Runs of a property: `count` times ETCH_TEST_MULT. */
uint32_t chance_runs(uint32_t count);

/* ---- variables ----------------------------------------------------------------------------------------- */

typedef enum var_kind { VAR_POSITIVE, VAR_FROM_ZERO, VAR_FROM_MINUS_FIVE, VAR_REAL } var_kind;

enum { VARS = 8 };
/* a b c d e are integers >= 1, z >= 0, n >= -5, r any number > 0. */
extern const char *const var_names[VARS];
extern const var_kind var_kinds[VARS];
/* Declares all in this order, or in an order of `chance`. */
void declare_vars(etch_sym *sym, chance *shuffle);

typedef struct point {
    mpq_t at[VARS];
} point;
void point_init(point *p);
void point_clear(point *p);
void point_random(point *p, chance *c, uint64_t range);

/* ---- trees --------------------------------------------------------------------------------------------- */

/* op: one of + - * / for two children, ^ (a to the power num), f floor, c ceil, q floor(a/b), % mod, M
 * max, m min, A abs, P pow2, N negation, v variable `num`, # number num/den. */
typedef struct tree {
    char op;
    struct tree *a, *b;
    int64_t num, den;
} tree;

typedef struct tree_shape {
    const char *ops;      /* each as often as it stands there */
    const char *divisors; /* names of variables to divide by; digits: numbers; '(': any tree */
    uint32_t vars;        /* how many of var_names */
    uint32_t depth;
    int64_t largest; /* number */
} tree_shape;

tree *tree_random(etch_arena *arena, chance *c, const tree_shape *shape);
/* Through the operations of the door. */
etch_expr tree_build(etch_sym *sym, const tree *t);
/* With expressions of the caller in place of the variables. */
etch_expr tree_build_with(etch_sym *sym, const tree *t, const etch_expr *vars);
/* False where the value is undefined. */
bool tree_value(const tree *t, const point *p, mpq_t value);
void tree_text(const tree *t, etch_buf *out);
const char *tree_str(etch_arena *arena, const tree *t);

/* ---- comparing ----------------------------------------------------------------------------------------- */

/* Substitutes the point and reads the number that comes out; false when it is undefined or no constant. */
bool expr_value(etch_sym *sym, etch_expr e, const point *p, mpq_t value);
/* The value of a constant expression. */
void constant_value(etch_sym *sym, etch_expr e, mpq_t value);
/* The point, for messages. */
const char *point_str(etch_arena *arena, const point *p);
/* Fails with the seed. */
#define CHANCE_ASSERT(chance, condition, ...)                                    \
    do {                                                                         \
        if (!(condition)) {                                                      \
            printf("ETCH_TEST_SEED=%llu: ", (unsigned long long)(chance)->seed); \
            printf(__VA_ARGS__);                                                 \
            printf("\n");                                                        \
            ck_abort_msg("property does not hold");                              \
        }                                                                        \
    } while (0)

/* A test of the suite: what holds of random expressions, by a function of an arena. */
#define PROPERTY(name)         \
    START_TEST(test_##name)    \
    {                          \
        etch_with_arena(name); \
    }                          \
    END_TEST

#endif
