/* The executor's views and ops that put tensors side by side or take them apart. */
#ifndef ETCH_TEST_EXEC_OPS_PARTS_H
#define ETCH_TEST_EXEC_OPS_PARTS_H

#include "exec_ops.h"

void exec_run_view(exec_call *call); /* renames, merges and splits of dims */
void exec_run_concat(exec_call *call);
void exec_run_split(exec_call *call);
void exec_run_pad(exec_call *call);
void exec_run_pad_dx(exec_call *call);

#endif
