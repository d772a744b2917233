/* Seconds: how long kernels take on a machine, and the numbers of a machine from measurements. Part of
 * etch/etch.h.
 *
 * A machine is a spec with a `device`, and a `cluster` of it for collectives. Its numbers are exact decimals.
 * The formulas are those of docs/time.md, which says where they come from and how far they are from what was
 * measured; p-norms have no exact value, so that times are intervals. */
#ifndef ETCH_TIME_H
#define ETCH_TIME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "etch/export.h"
#include "etch/session.h"
#include "etch/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The value of a formula, in seconds, is at least `low` and at most `high`. They are as near to each other as
 * doubles are, up to some units in the last place. */
typedef struct etch_seconds {
    double low, high;
} etch_seconds;

typedef enum etch_kernel_kind {
    /* y[m,n] = x[m,k] w[k,n] */
    ETCH_KERNEL_PRODUCT,
    /* `groups` products, whose rows are m together: experts */
    ETCH_KERNEL_GROUPED,
    /* fused attention */
    ETCH_KERNEL_ATTENTION,
    /* what only moves bytes */
    ETCH_KERNEL_ELEMENTWISE,
    /* of the ranks of one node */
    ETCH_KERNEL_COLLECTIVE,
    /* a product on a systolic array */
    ETCH_KERNEL_SYSTOLIC,
    ETCH_KERNEL_KINDS
} etch_kernel_kind;
/* "products", ..: the word of the `fit` line; NULL for none. */
ETCH_API const char *etch_kernel_kind_name(etch_kernel_kind kind);

typedef enum etch_node_collective {
    ETCH_NODE_ALL_REDUCE,
    ETCH_NODE_ALL_GATHER,
    ETCH_NODE_REDUCE_SCATTER,
    ETCH_NODE_ALL_TO_ALL,
    ETCH_NODE_COLLECTIVES
} etch_node_collective;
/* "all_reduce", ..; NULL for none. */
ETCH_API const char *etch_node_collective_name(etch_node_collective op);

/* One kernel. Members that its kind does not have are 0. */
typedef struct etch_kernel_call {
    etch_kernel_kind kind;
    /* of the operands: "bf16"; peaks are of a dtype. Not of collectives and elementwise kernels */
    const char *dtype;
    /* of the result of a product; NULL: that of the operands, or one of 2 bytes where theirs is smaller */
    const char *result;
    uint64_t m, n, k, groups;
    /* grouped: the result is the gradient of the weights, k times n for each group, and a row of x and one of
     * the gradient of y are operands */
    bool weights;
    uint64_t batch, queries, keys, heads, kv_heads;
    /* of queries and keys, and of values */
    uint64_t head_dim, value_dim;
    /* each query sees the keys up to its own place, the last query all of them */
    bool causal;
    bool backward;
    /* read and written; of a collective the largest buffer: gathered, or before it is scattered */
    uint64_t bytes;
    etch_node_collective op;
    uint64_t ranks;
} etch_kernel_call;

/* How a row of a table takes part in a fit. */
typedef enum etch_fit_part {
    /* it was fitted */
    ETCH_FIT_USED,
    /* it could have been, and is kept to see how good the fit is */
    ETCH_FIT_KEPT_OUT,
    /* too small for the formula, or of a dtype with a time of its own */
    ETCH_FIT_ASIDE,
    /* the table says that it is not for fitting */
    ETCH_FIT_GIVEN,
    ETCH_FIT_PARTS
} etch_fit_part;
/* "used", "kept out", "aside", "given"; NULL for none. */
ETCH_API const char *etch_fit_part_name(etch_fit_part part);

typedef struct etch_fit_line {
    etch_kernel_call kernel;
    /* of the table, from 1 */
    uint32_t line;
    etch_fit_part part;
    /* measured, in seconds */
    double measured;
    etch_seconds predicted;
    /* (predicted - measured)/measured */
    double error;
    /* of a systolic array, else 0 */
    uint64_t cycles;
} etch_fit_line;

/* Errors of some of the rows, as absolute values of `error`. */
typedef struct etch_fit_errors {
    size_t rows;
    /* the smallest error that half, or nine tenths, of the rows do not exceed */
    double median, p90;
} etch_fit_errors;

typedef struct etch_fit_options {
    /* sizeof(etch_fit_options) */
    size_t struct_size;
    /* the table: its name in messages, its `length` bytes */
    const char *name, *text;
    size_t length;
    /* keep the numbers that the machine has, and say how good they are */
    bool check;
    /* a table of steps: the stack whose factors they are of; its `launch`, where the cluster has the stack */
    const char *stack;
    /* folders, as in etch_session_options, for the imports of the specs of steps; NULL: none */
    const char *folders;
    /* steps are run on so many threads; 0: one */
    unsigned threads;
} etch_fit_options;

/* A row of a table of steps. Seconds. */
typedef struct etch_fit_step {
    uint32_t line;
    /* used, or given */
    etch_fit_part part;
    double measured, predicted;
    /* what factors say of it that were fitted without it; 0: no row was kept out */
    double kept_out;
} etch_fit_step;

typedef struct etch_fitting {
    /* ETCH_KERNEL_KINDS: the table is one of steps */
    etch_kernel_kind kind;
    const char *device;
    /* the line to put into the machine: "fit products overhead = 2.9 us, ...", "stack megatron { ... }" */
    const char *line;
    /* by etch_fit_part */
    etch_fit_errors errors[ETCH_FIT_PARTS];
    const etch_fit_line *rows;
    size_t row_count;
    /* of a table of steps, in place of `rows` */
    const etch_fit_step *steps;
    size_t step_count;
} etch_fitting;

/* Finds the numbers of the session's only device, or of the first level of its only cluster, from a table of
 * measurements; of steps, the factors of a stack of its only cluster. The same table gives the same bytes.
 * ETCH_EINPUT: the table, the machine, or a step of the table, does not do. */
ETCH_API etch_status etch_session_fit(etch_session *session, const etch_fit_options *options,
                                      const etch_fitting **fitting);

/* How long a kernel takes on the session's only device; of collectives on the first level of its only
 * cluster. ETCH_EINPUT: the machine does not say enough. */
ETCH_API etch_status etch_session_kernel_time(etch_session *session, const etch_kernel_call *kernel,
                                              etch_seconds *seconds);

/* ---- a step on a machine ------------------------------------------------------------------------------- */

typedef enum etch_simulation_work {
    ETCH_STEP_COMPUTES,
    ETCH_STEP_MEETS,
    ETCH_STEP_SENDS,
    ETCH_STEP_RECEIVES,
    /* from the memory of the host, and to it */
    ETCH_STEP_LOADS,
    ETCH_STEP_STORES,
    ETCH_STEP_WORKS
} etch_simulation_work;
/* "compute", "collective", "send", "receive", "load", "store"; NULL for none. */
ETCH_API const char *etch_simulation_work_name(etch_simulation_work work);

typedef struct etch_simulation_options {
    /* sizeof(etch_simulation_options) */
    size_t struct_size;
    /* an open session whose spec has one cluster; NULL: the cluster is that of the simulated spec. It reports
     * nothing: what is wrong is said by the session that simulates. */
    etch_session *machine;
    /* collectives and sends of a rank follow each other in the order of traces; else those over different
     * axes run side by side */
    bool one_stream;
    /* classes say when each node begins, and how long it takes */
    bool times;
    /* a stack of the cluster; NULL: kernels take as long as they do alone */
    const char *stack;
    /* how many times as long the device of `slow_rank` computes, a decimal, "1.2"; NULL: no device is slow */
    const char *slow;
    uint32_t slow_rank;
    /* and what nodes are; not of traces */
    bool nodes;
    /* The path of traces that are run instead of a spec, and the file of their groups, as in
     * etch_verification_options; NULL: the session's spec. */
    const char *traces, *groups;
} etch_simulation_options;

/* A node of a rank. */
typedef struct etch_simulation_node {
    /* as traces call it; "forward", ..; path of modules, NULL: of none; the op, or the collective */
    const char *name, *phase, *module, *op;
    etch_simulation_work work;
    /* index into the axes of the simulation: what it communicates over. Not of computations */
    uint32_t axes;
    /* a send, a receive: the other rank less this one. Round a ring: so many ranks further along it */
    int64_t peer;
    /* the ranks of the ring, and how far apart they are: the other rank is as far along as (rank/stride +
     * peer) modulo `ring`; 0: there is none */
    uint32_t ring, stride;
    /* FLOP of a computation; read and written, the payload, or what is moved */
    uint64_t flop, bytes;
    /* below 0: of none */
    int64_t microbatch, layer;
} etch_simulation_node;

/* Ranks whose nodes all begin and end at the same time. Picoseconds that add up to the step. */
typedef struct etch_simulation_class {
    /* as in etch_output_stage; of traces the stage is the number of the program */
    uint32_t stage, part;
    uint32_t first_rank, ranks;
    uint64_t computing;
    /* by axes: where it does not compute, and a collective or a message of it is under way */
    const uint64_t *exposed;
    /* something is still to come; nothing is */
    uint64_t waiting, idle;
    /* by node of the traces of these ranks; NULL unless asked for */
    const uint64_t *begins, *lasts;
    uint32_t node_count;
    /* likewise */
    const etch_simulation_node *nodes;
} etch_simulation_class;

/* A node of the ranks of a class, by their indices. */
typedef struct etch_simulation_place {
    uint32_t class_index, node;
} etch_simulation_place;

typedef struct etch_simulation {
    /* config, run and stack may be NULL; of traces the model is their name, and there is no plan */
    const char *model, *plan, *config, *run, *cluster, *device, *stack;
    /* of the stack, as specs have them: "1.08", "6 us" */
    const char *stack_all, *stack_attention, *stack_launch;
    /* how many times as long the device of `slow_rank` computes; NULL: none is slow */
    const char *slow;
    uint32_t slow_rank;
    uint32_t ranks;
    /* picoseconds: of the step; the formulas' own value is at most `error` away, but where a device has a
     * slowdown: there it is what roundings add up to along the run; bounds */
    uint64_t step, error, lower, upper;
    /* of a step; 0: the model does not say what its tokens are */
    uint64_t tokens;
    /* rounded down */
    uint64_t tokens_per_second;
    /* FLOP of products of forward and backward, over what all devices could do at the peak of bf16 in the
     * time of the step, in millionths, rounded down; below 0: the device has no such peak */
    int64_t mfu;
    /* the axes of communication: "tp", "(dp,tp)" */
    const char *const *axes;
    size_t axes_count;
    const etch_simulation_class *classes;
    size_t class_count;
    /* by rank: index of its class */
    const uint32_t *class_of;
    /* where times are asked for: the critical path. Each node begins when the one before it ends, which it
     * waits for; the first when it has been launched, by the hosts of all who take part in it; the last ends
     * with the step */
    const etch_simulation_place *path;
    size_t path_count;
    /* likewise, picoseconds: the step if all that communicates over some axes took no time, by axes; and if
     * all that computes did not. NULL where times are not asked for */
    const uint64_t *free_axes;
    uint64_t free_computing;
    /* of the device, a second: bytes of its memory, FLOP of products in bf16; 0: not given */
    double bandwidth, peak;
    /* as it was asked for */
    bool one_stream;
} etch_simulation;

/* Runs the step of the session's plan on a cluster. docs/time.md says what is modelled. ETCH_EINPUT: a value
 * is missing, or the machine does not do; ETCH_ELIMIT: too many ranks work at different times. */
ETCH_API etch_status etch_session_simulate(etch_session *session, const etch_simulation_options *options,
                                           const etch_simulation **simulation);

/* The devices and clusters of the session's spec as text that reads back as the same. */
ETCH_API etch_status etch_session_machines(etch_session *session, const char **text);

#ifdef __cplusplus
}
#endif

#endif
