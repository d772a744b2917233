/* One graph, or several, for each row that a graph may have: what the tests of the op table run. */
#ifndef ETCH_TEST_EXEC_CASES_H
#define ETCH_TEST_EXEC_CASES_H

#include "exec_model.h"

typedef struct exec_case {
    const char *name;
    etch_tensor *(*build)(exec_model *m); /* the result under test */
} exec_case;

/* What is special about a case. */
typedef struct exec_case_way {
    const char *name;
    bool serves;           /* the result is asked for, and nothing is trained */
    const char *optimizer; /* of the step; NULL: adamw */
    bool momentum;         /* that it keeps */
    uint32_t bits;         /* of its states; 0: as their dtype says */
    bool ema;              /* of the weights */
} exec_case_way;
exec_case_way exec_case_way_of(const exec_case *c);

/* NULL past the end. */
const exec_case *exec_case_at(uint32_t index);
/* NULL: there is none of this name. */
const exec_case *exec_case_called(const char *name);

/* Of files of their own; each ends with a case without a name. */
extern const exec_case exec_attention_cases[], exec_function_cases[], exec_structure_cases[];

typedef struct exec_case_setting {
    const etch_table *table; /* NULL: the builtin one */
    uint32_t partial; /* bits of weights, in the order in which they are made: sums over a dim Z, and so
                                partial sums where Z is divided */
} exec_case_setting;

/* The case with a loss: its result times random numbers, summed. `setting` may be NULL. */
exec_model *exec_case_build(etch_arena *arena, const exec_case *c, const exec_case_setting *setting);

#endif
