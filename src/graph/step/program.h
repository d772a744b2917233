/* The step program: what the ranks of a plan do in one step, as one tree, nothing unrolled and nothing bound.
 * Formulas, sizes and traces are folds over it. Part of what other modules see of graph.
 *
 * A task is one node of a trace each time that it runs. Its contributions say op by op, or weight by weight,
 * what it computes and moves: the numbers of the node are their sums. FLOP and bytes of memory of kernels are
 * there once they are counted (etch_kernels_count), payloads always. */
#ifndef ETCH_GRAPH_STEP_PROGRAM_H
#define ETCH_GRAPH_STEP_PROGRAM_H

#include "graph/stage/stage.h"

typedef enum etch_task_kind {
    ETCH_TASK_COMPUTE,
    ETCH_TASK_COLLECTIVE,
    /* one stage sends it, the next one in the direction of the pass receives it */
    ETCH_TASK_MESSAGE,
    /* from the memory of the host to the device's, and back */
    ETCH_TASK_LOAD,
    ETCH_TASK_STORE
} etch_task_kind;

/* ---- what a node is for its time ----------------------------------------------------------------------- */

typedef enum etch_product_kind {
    /* no product: it moves bytes */
    ETCH_PRODUCT_NONE,
    ETCH_PRODUCT_PLAIN,
    /* parts of the rows each have a weight of their own: experts */
    ETCH_PRODUCT_GROUPED,
    /* fused attention */
    ETCH_PRODUCT_ATTENTION
} etch_product_kind;

/* The product of a kernel; of several, which are one node where a plan makes nodes of blocks, the first says
 * what they are. */
typedef struct etch_kernel_product {
    etch_product_kind kind;
    /* attention: its gradient */
    bool backward;
    /* of the operands */
    etch_dtype dtype;
    /* of the products alone, on one rank; NULL: there is none */
    etch_expr flop;
    /* attention: those of the whole sequence; else NULL */
    etch_expr keys;
    /* of the first product, on one rank: `batch` times a matrix of m and k times one of k and n. NULL: it is
     * attention, no product of two matrices, or of the end of a step */
    etch_expr m, n, k, batch;
} etch_kernel_product;

/* ---- tasks --------------------------------------------------------------------------------------------- */

/* What a task does at the end of a step; the order is that in which they come. */
typedef enum etch_end_role {
    /* of forward, backward, or a message */
    ETCH_END_NONE,
    /* ranks that replicate weights add up their gradients */
    ETCH_END_REDUCE,
    /* so do stages that use the same weights */
    ETCH_END_REDUCE_SHARED,
    /* clipping: the sum of the squares of the gradients that a rank has */
    ETCH_END_NORM,
    /* and its sum over all ranks */
    ETCH_END_NORM_REDUCE,
    /* states of the optimizer that are in the memory of the host come for their update */
    ETCH_END_LOAD,
    /* the optimizer, where an update has parts: what it does first, and what ranks that have parts of a
     * weight share then; the same once more */
    ETCH_END_PREPARE,
    ETCH_END_SHARE_PREPARED,
    ETCH_END_REFINE,
    ETCH_END_SHARE_REFINED,
    /* and the last part */
    ETCH_END_UPDATE,
    /* and go back */
    ETCH_END_STORE,
    /* weights that ranks have updated in parts */
    ETCH_END_GATHER
} etch_end_role;

typedef enum etch_when {
    ETCH_EACH_MICROBATCH,
    ETCH_FIRST_MICROBATCH,
    /* when the last microbatch has made what it reads */
    ETCH_ONCE_A_STEP
} etch_when;

/* What one op, one operand of a collective, or one weight adds to a task. Amounts are those of one rank;
 * NULL: none. */
typedef struct etch_step_contribution {
    /* the op, or the collective; NULL: of the end, or of a message */
    const etch_step *step;
    /* the result; the weight that is gathered, or that the end is of; NULL: of none */
    const etch_tensor *tensor;
    /* of the end: of that weight */
    etch_tensor *gradient;
    /* of the end: whose weight it is; NULL: of none */
    const etch_weight_group *group;
    /* of the op, the collective or the optimizer */
    const etch_row *row;
    /* the module that it counts for */
    etch_scope *scope;
    etch_span span;
    etch_expr flop;
    /* of the end: those of products of matrices */
    etch_expr product_flop;
    /* bytes of memory */
    etch_expr read, written;
    /* bytes that the rank puts into the collective, or into the message */
    etch_expr payload;
    /* bytes that are loaded, or stored */
    etch_expr moved;
    /* of a message: what not all messages there have; NULL: what all have */
    const etch_crossing *crossing;
    /* bytes that outlive the run */
    etch_expr cached;
    /* how often one run of the task does it: copies of the weight in its group */
    etch_expr copies;
} etch_step_contribution;

typedef struct etch_step_task {
    etch_task_kind kind;
    etch_phase phase;
    etch_when when;
    /* of backward, where the schedule runs its halves apart: it makes gradients of weights alone, which no
     * stage waits for */
    bool weight_half;
    /* collective or message */
    etch_collective collective;
    /* the mesh axes that it is over */
    uint32_t axes;
    etch_provenance provenance;
    /* of one run; */
    etch_expr flop;
    /* read plus written, the payload, or what is moved */
    etch_expr bytes;
    /* its steps; NULL: of the end, or a message */
    const etch_kernel *kernel;
    /* of the top level of forward and backward: where in the chain of stages */
    etch_position position;
    /* message: where it crosses */
    const etch_cut *cut;
    etch_end_role end;
    /* of the end: the products that it computes; NULL: none */
    etch_kernel_product *product;
    /* of the end: the weights that one run is of; NULL: of all groups */
    const etch_weight_group *group;
    /* it takes one weight of the group, and no other */
    bool alone;
    ETCH_VEC(etch_step_contribution) contributions;
} etch_step_task;

/* A loop: as many iterations as it counts, each of the class that the loop's pattern says. */
typedef struct etch_step_repeat {
    const etch_placed_loop *loop;
    /* by class */
    ETCH_VEC(struct etch_step_body *) bodies;
    /* of the top level */
    etch_position position;
} etch_step_repeat;

typedef struct etch_step_item {
    /* one of the two */
    etch_step_task *task;
    etch_step_repeat *repeat;
} etch_step_item;

typedef struct etch_step_body {
    /* in issue order */
    ETCH_VEC(etch_step_item) items;
    const etch_placed_region *region;
} etch_step_body;

typedef ETCH_VEC(etch_step_task *) etch_step_tasks;

typedef struct etch_step_program {
    const etch_placed *placed;
    /* microbatches of a step */
    etch_expr micro;
    /* backward may be NULL */
    etch_step_body *forward, *backward;
    /* along the chain: forward, then backward; none without stages */
    etch_step_tasks messages;
    /* by role; reductions: of the weights that were used last first */
    etch_step_tasks end;
} etch_step_program;

/* Counts FLOP and bytes of memory of all kernels, and so of their steps, tasks and contributions; a second
 * call does nothing. */
void etch_kernels_count(struct etch_placed *placed);

etch_kernel_product etch_kernel_product_of(const etch_placed *placed, const etch_kernel *kernel);

/* ---- folds --------------------------------------------------------------------------------------------- */

/* Where and how often something runs. */
typedef struct etch_task_place {
    /* in a step, on a rank of the stage */
    etch_expr runs;
    /* of the innermost loop of forward that it is in, or that it is derived from; NULL: none */
    const etch_region *body;
} etch_task_place;

typedef void etch_step_visitor(void *data, const etch_step_task *task,
                               const etch_step_contribution *contribution, const etch_task_place *place);

/* Goes over every contribution to the step of a rank: what a body does itself before its loops, what is done
 * with one weight at the end before the next. `view`: of a stage, of which nothing may be there (`runs` is 0
 * then); NULL: there is one stage, which sends no messages. */
void etch_step_each(const etch_step_program *program, const etch_stage_view *view, etch_step_visitor *visit,
                    void *data);

/* For how many weight groups the stage runs a task of the end that is of one, which is no reduction. `view`:
 * as above. */
etch_expr etch_step_group_runs(const etch_step_program *program, const etch_stage_view *view,
                               const etch_step_task *task);

#endif
