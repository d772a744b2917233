/* Declarations that the files of step share. */
#ifndef ETCH_GRAPH_STEP_STEP_INT_H
#define ETCH_GRAPH_STEP_STEP_INT_H

#include "graph/step/kernel.h"

/* Fills reads, writes, FLOP and bytes of all kernels. Needs the dtypes of moves. */
void etch_kernel_io(etch_placed *placed);
/* Says which steps of backward are of its second half, where the schedule runs halves. */
void etch_halves_find(const etch_placed *placed);
/* The tasks of the end of a step. Needs the weight groups (`weight_groups`), `sync_axes` and `zero_axes`. */
void etch_step_end(etch_placed *placed, etch_step_tasks *out);
/* Says in which dtype every move sends what it moves. */
void etch_comm_dtypes_find(etch_placed *placed);

#endif
