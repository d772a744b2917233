/* How far two orders of the same additions may be apart: what cancels out leaves the rounding of what was
 * added, which is small beside that and not beside what is left. */
#ifndef ETCH_TEST_EXEC_SUMMED_H
#define ETCH_TEST_EXEC_SUMMED_H

#include "exec_ops.h"

/* Says of the results of an op how large the sums of absolute values are that went into them, at most. */
void exec_note_summed(exec_call *call);
/* By how much an element may differ: of what is there 1e-9, of what was added up to give it 1e-12, some
 * thousand times the rounding of a number, for as many terms and for slopes; of less than 1 as of 1. */
double exec_allowed(const exec_array *expected);

#endif
