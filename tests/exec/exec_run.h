/* A training graph run on one rank that holds everything. */
#ifndef ETCH_TEST_EXEC_RUN_H
#define ETCH_TEST_EXEC_RUN_H

#include "exec_ops.h"

/* Elements of all weights (one set for each iteration of the loops around them) and inputs (the whole batch).
 */
typedef struct exec_data {
    exec_env env;
    exec_store tensors; /* by tensor id */
    /* By microbatch, and by tensor id: what the first run has had where gradients stop, which all later runs
     * have there, too. NULL: each run has its own. */
    exec_store *stopped;
} exec_data;

/* From now on gradients stop, as those that are derived do, also for differences of losses. */
void exec_data_stop(exec_data *data);

/* Random data; weights and real inputs are in -1..1. */
exec_data *exec_data_new(etch_arena *arena, const etch_training *training, uint64_t seed);

typedef struct exec_run {
    exec_env env;
    exec_data *data;
    exec_store values;    /* by tensor id: of one microbatch */
    exec_store gradients; /* by tensor id of the gradient: of all microbatches so far */
    double loss;          /* of all microbatches so far */
    bool flop_matters;    /* what is counted must be what the op table says */
    uint64_t kept;        /* bytes of the forward pass that the backward pass of the microbatch has read */
    uint32_t kept_values; /* how many values those are */
} exec_run;

exec_run *exec_run_new(etch_arena *arena, const etch_training *training, exec_data *data);
/* Runs the passes of one microbatch. Values stay until the next forward pass. */
void exec_run_forward(exec_run *run, uint32_t microbatch);
void exec_run_backward(exec_run *run);
/* The array of a tensor in the iterations in force of `env`; NULL when it was not made. */
const exec_array *exec_run_value(exec_run *run, const exec_env *env, const etch_tensor *tensor);
/* A gradient in the iterations in force. */
exec_array *exec_run_gradient(exec_run *run, const exec_env *env, const etch_tensor *gradient);
/* What tells the executions of a random op apart: the forward op and its iteration. */
uint64_t exec_salt(const exec_env *env, const etch_op *op);
bool exec_is_loss(const etch_tensor *tensor);

#endif
