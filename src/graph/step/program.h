/* The step program: what the ranks of a plan do in one step, as one tree, nothing unrolled and nothing bound. Formulas,
 * sizes and traces are folds over it. Part of what other modules see of graph.
 *
 * A task is one node of a trace each time that it runs. Its contributions say op by op, or weight by weight, what it
 * computes and moves: the numbers of the node are their sums. */
#ifndef ETCH_GRAPH_STEP_PROGRAM_H
#define ETCH_GRAPH_STEP_PROGRAM_H

#include "graph/stage/stage.h"

typedef enum etch_task_kind {
    ETCH_TASK_COMPUTE,
    ETCH_TASK_COLLECTIVE,
    ETCH_TASK_MESSAGE /* one stage sends it, the next one in the direction of the pass receives it */
} etch_task_kind;

/* What a task does at the end of a step; the order is that in which they come. */
typedef enum etch_end_role {
    ETCH_END_NONE,          /* of forward, backward, or a message */
    ETCH_END_REDUCE,        /* ranks that replicate weights add up their gradients */
    ETCH_END_REDUCE_SHARED, /* so do stages that use the same weights */
    ETCH_END_NORM,          /* clipping: the sum of the squares of the gradients that a rank has */
    ETCH_END_NORM_REDUCE,   /* and its sum over all ranks */
    ETCH_END_UPDATE,        /* the optimizer */
    ETCH_END_GATHER         /* weights that ranks have updated in parts */
} etch_end_role;

typedef enum etch_when {
    ETCH_EACH_MICROBATCH,
    ETCH_FIRST_MICROBATCH,
    ETCH_ONCE_A_STEP /* when the last microbatch has made what it reads */
} etch_when;

/* Which stages do what a contribution of the end says for its weight group. */
typedef enum etch_doers {
    ETCH_EVERY_STAGE, /* it is of no weight group */
    ETCH_ALL_USERS,   /* every stage that uses the weights */
    ETCH_FIRST_USER,  /* the first of them */
    ETCH_SHARED_USERS /* those of them that are not alone */
} etch_doers;

/* What one op, one operand of a collective, or one weight adds to a task. Amounts are those of one rank; NULL: none. */
typedef struct etch_step_contribution {
    const etch_step *step; /* the op, or the collective; NULL: of the end, or of a message */
    const etch_tensor
        *tensor;           /* the result; the weight that is gathered, or that the end is of; NULL: of none */
    etch_tensor *gradient; /* of the end: of that weight */
    const etch_unit *group; /* of the end: whose weight it is; NULL: of none */
    const etch_row *row;    /* of the op, the collective or the optimizer */
    etch_scope *scope;      /* the module that it counts for */
    etch_span span;
    etch_expr flop;
    etch_expr read, written; /* bytes of memory */
    etch_expr payload;       /* bytes that the rank puts into the collective, or into the message */
    etch_expr cached;        /* bytes that outlive the run */
    etch_expr copies;        /* how often one run of the task does it: copies of the weight in its group */
} etch_step_contribution;

typedef struct etch_step_task {
    etch_task_kind kind;
    etch_phase phase;
    etch_when when;
    etch_move move; /* collective or message */
    uint32_t axes;  /* the mesh axes that it is over */
    etch_cause cause;
    etch_expr flop;            /* of one run; */
    etch_expr bytes;           /* read plus written, or the payload */
    const etch_kernel *kernel; /* its steps; NULL: of the end, or a message */
    etch_home position;        /* of the top level of forward and backward: where in the chain of stages */
    const etch_cut *cut;       /* message: where it crosses */
    etch_end_role end;
    etch_doers doers;       /* of the end */
    const etch_unit *group; /* of the end: the weights that one run is of; NULL: of all groups */
    ETCH_VEC(etch_step_contribution) contributions;
} etch_step_task;

/* A loop: as many iterations as it counts, each of the class that the loop's pattern says. */
typedef struct etch_step_repeat {
    const etch_placed_loop *loop;
    ETCH_VEC(struct etch_step_body *) bodies; /* by class */
    etch_home position;                       /* of the top level */
} etch_step_repeat;

typedef struct etch_step_item {
    etch_step_task *task; /* one of the two */
    etch_step_repeat *repeat;
} etch_step_item;

typedef struct etch_step_body {
    ETCH_VEC(etch_step_item) items; /* in issue order */
    const etch_placed_region *region;
} etch_step_body;

typedef ETCH_VEC(etch_step_task *) etch_step_tasks;

/* Weights that are reduced, updated and gathered together. */
typedef struct etch_weight_group {
    const etch_unit *weights;
    etch_step_tasks end; /* its tasks of the end: by role, but what stages do together is last */
} etch_weight_group;

typedef struct etch_step_program {
    const etch_placed *placed;
    etch_expr micro;                    /* microbatches of a step */
    etch_step_body *forward, *backward; /* backward may be NULL */
    etch_step_tasks messages;           /* along the chain: forward, then backward; none without stages */
    ETCH_VEC(etch_weight_group) groups; /* in the order of their first use */
    etch_step_tasks end;                /* by role; reductions: of the weights that were used last first */
} etch_step_program;

/* ---- folds --------------------------------------------------------------------------------------------- */

/* Where and how often something runs. */
typedef struct etch_task_place {
    etch_expr runs; /* in a step, on a rank of the stage */
    const etch_region
        *body; /* of the innermost loop of forward that it is in, or that it is derived from; NULL: none */
} etch_task_place;

typedef void etch_step_visitor(void *data, const etch_step_task *task,
                               const etch_step_contribution *contribution, const etch_task_place *place);

/* Goes over every contribution to the step of a rank: what a body does itself before its loops, what is done with one
 * weight at the end before the next. `view`: of a stage, of which nothing may be there (`runs` is
 * 0 then); NULL: there is one stage, which sends no messages. */
void etch_step_each(const etch_step_program *program, const etch_stage_view *view, etch_step_visitor *visit,
                    void *data);

#endif
