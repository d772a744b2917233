/* Routing by loops: what topk, dispatch, collect, their gradients and normalize compute. Where the tokens of
 * an expert go is decided here: routing is balanced, and no slot is left empty. */
#ifndef ETCH_TEST_EXEC_OPS_ROUTE_H
#define ETCH_TEST_EXEC_OPS_ROUTE_H

#include "exec_ops.h"

/* Ranks of an axis are told apart along a token dim: `count` parts at a distance of `inside` smallest parts,
 * of which there are `parts`. NULL: no token dim, the axis divides slots alone. */
typedef struct exec_lane {
    const etch_dim *dim;
    uint32_t axis, count, inside, parts;
} exec_lane;

/* Slots lie in a grid of the axes that divide them, outermost first: each has the place of the ranks whose
 * tokens fill it. */
typedef struct exec_route {
    const etch_tensor *indices;
    const etch_dim *slots;
    exec_lane lanes[ETCH_MAX_AXES];
    uint32_t lane_count;
} exec_route;

typedef struct exec_routes {
    exec_route at[16];
    uint32_t count;
} exec_routes;

/* The tensor that the op routes by, without other names. */
const etch_tensor *exec_route_indices(const etch_op *op);
/* Is it one of dispatch, collect? */
bool exec_is_route(const etch_op *op);

void exec_run_topk(exec_call *call);
void exec_run_dispatch(exec_call *call);
void exec_run_dispatch_dx(exec_call *call);
void exec_run_collect(exec_call *call);
void exec_run_collect_dx(exec_call *call);
void exec_run_load(exec_call *call);
void exec_run_normalize(exec_call *call);
void exec_run_normalize_dx(exec_call *call);

#endif
