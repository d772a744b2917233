/* Cotangents that nothing has made. A reverse loop begins with zeros; where it runs no iteration, these are
 * what it hands out, and what would be computed of them alone is zeros as well: it takes no FLOP. */
#ifndef ETCH_TEST_EXEC_MADE_H
#define ETCH_TEST_EXEC_MADE_H

#include "exec_ops.h"

/* Says of the results of an op of backward who has made them. */
void exec_note_made(exec_call *call);
/* Can an op that counts so many FLOP, if it computes all, be said to take these? Zeros that the iterations of
 * a loop add to count as made or not. */
bool exec_flop_agrees(const exec_call *call, int64_t counted, int64_t said);

#endif
