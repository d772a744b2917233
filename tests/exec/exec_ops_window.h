/* The executor's ops that slide a window: convolutions and pooling, place by place. */
#ifndef ETCH_TEST_EXEC_OPS_WINDOW_H
#define ETCH_TEST_EXEC_OPS_WINDOW_H

#include "exec_ops.h"

void exec_run_conv(exec_call *call);
void exec_run_conv_from(exec_call *call);
void exec_run_conv_dx(exec_call *call);
void exec_run_conv_dw(exec_call *call);
void exec_run_max_pool(exec_call *call);
void exec_run_max_pool_dx(exec_call *call);
void exec_run_avg_pool(exec_call *call);
void exec_run_avg_pool_dx(exec_call *call);

#endif
