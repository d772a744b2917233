/* What the files of compiled evaluation share. etch/program.h says what a program is.
 *
 *     compile.c       expressions -> operations, each once
 *     program.c       operations -> program: registers, one block of memory
 *     evaluate.c      a batch: from each kind of numbers to the next one
 *     words.c         blocks of configurations in integers of 64 bits
 *     wides.c         the same of 128 bits; what both do is in lanes.inc
 *     fractions.c     one configuration in fractions of integers of 128 bits
 *     rationals.c     one configuration in rational numbers of any size
 *
 * All kinds of numbers run the same instructions. */
#ifndef ETCH_SYMBOLIC_PROGRAM_PROGRAM_INT_H
#define ETCH_SYMBOLIC_PROGRAM_PROGRAM_INT_H

#include "etch/program.h"
#include "symbolic/symbolic_int.h"

/* Operands a and b are the indices of earlier instructions, unless said otherwise. */
typedef enum etch_program_op {
    /* a: index of the constant */
    ETCH_OP_CONSTANT,
    /* a: index of the variable */
    ETCH_OP_LOAD,
    ETCH_OP_ADD,
    ETCH_OP_SUB,
    ETCH_OP_MUL,
    /* a/b */
    ETCH_OP_DIV,
    /* floor(a/b) */
    ETCH_OP_FLOOR_DIV,
    ETCH_OP_MAX,
    /* a to the power b >= 2, a number */
    ETCH_OP_POW,
    /* 1 if a is 1, 2, 4, .., else 0 */
    ETCH_OP_POW2,
    /* A loop over k = 0, 1, ... as long as k < a. Its value is k; b: the ETCH_OP_SUM that ends it. */
    ETCH_OP_LOOP,
    /* the end of loop b: adds up a, which is computed between them; the value is the sum */
    ETCH_OP_SUM
} etch_program_op;

enum { ETCH_MOST_LOOPED = 1000000 /* rounds of the loops of one configuration */ };

typedef struct etch_instruction {
    /* program_op */
    uint32_t op;
    uint32_t a, b;
    /* register of the result; of constants and loads: none */
    uint32_t place;
} etch_instruction;

/* An integer. size == 0: `small`; else so many limbs, negative for a negative number. */
typedef struct etch_program_constant {
    int64_t small;
    int32_t size;
    const mp_limb_t *limbs;
} etch_program_constant;

/* The instruction that has the value of a formula. */
typedef struct etch_program_output {
    uint32_t instruction, formula;
} etch_program_output;

struct etch_program {
    uint32_t instruction_count, register_count, variable_count, constant_count, formula_count;
    const etch_instruction *code;
    const etch_program_constant *constants;
    const char *const *variables;
    /* one for each formula, in the order of the instructions */
    const etch_program_output *outputs;
};

static inline bool op_has_operands(uint32_t op)
{
    return op != ETCH_OP_CONSTANT && op != ETCH_OP_LOAD;
}
/* Is b an instruction whose value is needed? */
static inline bool op_is_binary(uint32_t op)
{
    return op_has_operands(op) && op != ETCH_OP_POW && op != ETCH_OP_POW2 && op != ETCH_OP_LOOP;
}

/* ---- compile.c ----------------------------------------------------------------------------------------- */

/* The operations of a set of expressions, in an order in which they can be executed. */
typedef struct etch_operations {
    ETCH_VEC(etch_instruction) code;
    ETCH_VEC(sym_coef) constants;
    /* in order of declaration */
    ETCH_VEC(const sym_atom *) variables;
    /* one for each expression, in the order of the instructions */
    etch_program_output *outputs;
} etch_operations;

/* Everything is made in `arena`, which may trap; `sym` is read only. */
void program_operations(const etch_sym *sym, etch_arena *arena, uint32_t count, const etch_expr *exprs,
                        etch_operations *out);

/* ---- words.c, wides.c: blocks of configurations -------------------------------------------------------- */

enum { ETCH_PROGRAM_BLOCK = 256 }; /* configurations at most */

/* For integers of one width:
 *
 *     operand   where the values of an instruction are; `same`: one for all configurations
 *     block     `operands` and `singles` by instruction; `variables` the values of each variable (of those
 *               that differ); `registers` ETCH_PROGRAM_BLOCK values each. `write` is called with the values
 *               of
 *               each formula
 *     singles   computes what all configurations share, for all blocks of a batch; false: some of it fails
 *     run       computes a block, and marks the configurations that failed */
#define ETCH_PROGRAM_LANES(prefix, number)                                    \
    typedef struct prefix##_operand {                                         \
        const number *at;                                                     \
        bool same;                                                            \
    } prefix##_operand;                                                       \
    typedef struct prefix##_block {                                           \
        const etch_program *program;                                          \
        const etch_column *columns;                                           \
        size_t count;                                                         \
        prefix##_operand *operands;                                           \
        number *singles, *registers;                                          \
        const number **variables;                                             \
        void (*write)(void *data, uint32_t formula, prefix##_operand values); \
        void *data;                                                           \
        const etch_program_output *output; /* the next one to be written */   \
    } prefix##_block;                                                         \
    bool prefix##_singles(prefix##_block *k);                                 \
    void prefix##_run(prefix##_block *k, unsigned char *failed);

ETCH_PROGRAM_LANES(words, int64_t)
ETCH_PROGRAM_LANES(wides, sym_wide)

/* ---- values of one configuration ----------------------------------------------------------------------- */

/* The value of a formula. Exact numbers are kept by the workspace. */
typedef struct etch_outcome {
    etch_value_kind kind;
    /* ETCH_VALUE_INTEGER */
    int64_t value;
    sym_wide num, den;
    /* of numbers that do not fit into num/den; malloc'ed; or NULL */
    char *text;
} etch_outcome;

/* A configuration: row `at` of the columns. */
typedef struct etch_configuration {
    const etch_column *columns;
    size_t at;
} etch_configuration;

static inline int64_t column_value(const etch_column *column, size_t at)
{
    return column->values[column->same ? 0 : at];
}
static inline int64_t column_denominator(const etch_column *column, size_t at)
{
    return column->denominators ? column->denominators[column->same ? 0 : at] : 1;
}

/* fractions.c. num/den in lowest terms, den > 0; den == 0: undefined. */
typedef struct etch_word_fraction {
    sym_wide num, den;
} etch_word_fraction;

/* `values`: room for one fraction for each instruction. False when a number does not fit: then the outcomes
 * say nothing. */
bool program_run_fractions(const etch_program *program, const etch_configuration *at,
                           etch_word_fraction *values, etch_outcome *outcomes);

/* rationals.c: registers. */
typedef struct etch_rationals etch_rationals;
etch_rationals *program_rationals_new(const etch_program *program); /* NULL: memory is out */
void program_rationals_free(etch_rationals *r);
/* False when memory is out: the registers are of no use any more then. */
bool program_run_rationals(const etch_program *program, const etch_configuration *at, etch_rationals *r,
                           etch_outcome *outcomes) ETCH_MUST_CHECK;

#endif
