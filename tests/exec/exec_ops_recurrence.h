/* What the recurrences of single elements compute: rows of scan. */
#ifndef ETCH_TEST_EXEC_OPS_RECURRENCE_H
#define ETCH_TEST_EXEC_OPS_RECURRENCE_H

#include "exec_ops.h"

void exec_run_recurrence(exec_call *call);
void exec_run_recurrence_bwd(exec_call *call);

#endif
