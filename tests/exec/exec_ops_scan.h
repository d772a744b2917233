/* The executor's state-space scan, chunk by chunk: each multiply-add of the products is counted. */
#ifndef ETCH_TEST_EXEC_OPS_SCAN_H
#define ETCH_TEST_EXEC_OPS_SCAN_H

#include "exec_ops.h"

void exec_run_ssd(exec_call *call);
void exec_run_ssd_bwd(exec_call *call);

#endif
