/* What the table makes of a case, as text: rows, FLOP, dtypes, nodes, bytes, and what happens when a dim is
 * divided. The numbers of the executor say that results are right; this says that they are not bought with
 * needless work. */
#ifndef ETCH_TEST_EXEC_PROFILE_H
#define ETCH_TEST_EXEC_PROFILE_H

#include "exec_cases.h"

/* Names of the dims that are divided; ends with NULL. */
extern const char *const exec_divided_dims[];

/* Lines that begin with the case's name. `table` may be NULL. */
const char *exec_profile(etch_arena *arena, const exec_case *c, const etch_table *table);

#endif
