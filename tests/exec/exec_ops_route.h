/* Routing by loops: what topk, dispatch, collect, their gradients and normalize compute. Where the tokens of an
 * expert go is decided here: routing is balanced, and no slot is left empty. */
#ifndef ETCH_TEST_EXEC_OPS_ROUTE_H
#define ETCH_TEST_EXEC_OPS_ROUTE_H

#include "exec_ops.h"

/* Ranks are told apart along a token dim: `count` parts at a distance of `inside` smallest parts, of which
 * there are `parts`. */
typedef struct exec_lane {
    const etch_dim *dim;
    uint32_t axis, count, inside, parts;
} exec_lane;

/* Slots lie in the order of the ranks whose tokens fill them, outermost first. */
typedef struct exec_route {
    const etch_tensor *indices;
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
