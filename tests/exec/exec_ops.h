/* What every row of the op table computes, written down naively: by name, in double precision. It is the
 * oracle of the table, and shares nothing with it but names. */
#ifndef ETCH_TEST_EXEC_OPS_H
#define ETCH_TEST_EXEC_OPS_H

#include "exec_env.h"

enum { EXEC_MAX_OPERANDS = 16, EXEC_MAX_RESULTS = 16 };

/* Has the call all keys, or those of a block, be it the first that is counted or another? */
typedef enum exec_block { EXEC_NO_BLOCK, EXEC_OWN_BLOCK, EXEC_OTHER_BLOCK } exec_block;

typedef struct exec_call {
    exec_env *env;
    etch_arena *arena; /* for intermediate arrays */
    const etch_op *op;
    const exec_array *ins[EXEC_MAX_OPERANDS];
    exec_array *outs[EXEC_MAX_RESULTS]; /* zeros with the ranges that are wanted */
    uint64_t salt;                      /* tells executions of one random op apart */
    int64_t flop;                       /* of this execution, counted */
    exec_block block;
} exec_call;

/* Computes the results from the operands. Fails when the ranges of operands and results do not go together,
 * or when the op needs more of an operand than is there. */
void exec_op(exec_call *call);

/* FLOP of one element of the first result or of the first operand; COUNTED: the evaluation counts them. */
enum { EXEC_OPERAND = 100, EXEC_COUNTED = 1000 };

/* How a row is computed. */
typedef struct exec_rule {
    const char *name;
    void (*run)(exec_call *call);
    int flop;
    int from_result; /* the same where it reads the result of forward as operand 1; 0: it takes as many */
} exec_rule;
/* Is operand 1 of a derived op the result of the op that it derives from? */
bool exec_reads_result(const exec_call *call);
/* Functions of elements and reductions; ends with a name that is NULL. */
extern const exec_rule exec_function_rules[];
/* The same for tables and losses. */
extern const exec_rule exec_table_rules[];

/* The queries' dim of an op whose queries see no later key; NULL for other ops. */
const etch_dim *exec_causal_query(const etch_op *op);

/* NULL: the executor does not know the row. */
const exec_rule *exec_rule_of(const char *row);

#endif
