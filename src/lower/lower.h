/* The header of lower: from a placed training graph and one binding to the programs of the ranks.
 *
 * Ranks whose program is equal up to group ids form a class; a class has one program. A job is everything
 * that emission needs: it holds no expression any more, only numbers, and is not written to again (any
 * number of threads may read it). */
#ifndef ETCH_LOWER_H
#define ETCH_LOWER_H

#include "graph/graph.h"

/* Values as Chakra's NodeType and CollectiveCommType have them. */
typedef enum etch_node_type {
    /* from the memory of the host to the device's, and back */
    ETCH_NODE_LOAD = 2,
    ETCH_NODE_STORE = 3,
    ETCH_NODE_COMP = 4,
    ETCH_NODE_SEND = 5,
    ETCH_NODE_RECV = 6,
    ETCH_NODE_COLL = 7
} etch_node_type;
typedef enum etch_comm_type {
    ETCH_COMM_ALL_REDUCE = 0,
    ETCH_COMM_ALL_GATHER = 2,
    ETCH_COMM_ALL_TO_ALL = 6,
    ETCH_COMM_REDUCE_SCATTER = 7,
    ETCH_COMM_KINDS
} etch_comm_type;

/* One node. Its id is its index in the program: the issue order. */
typedef struct etch_node {
    /* COMP: FLOP, at least 1 (see `padded_flop` of the totals) */
    uint64_t flop;
    /* COMP: read plus written, at least 1, more where it is the first of a rank; LOAD, STORE: what is moved,
     * at least 1; others: payload as in comm_size, at least 64 */
    uint64_t bytes;
    /* offset into `names` of a NUL-terminated name */
    uint32_t name;
    /* index into `deps` */
    uint32_t first_dep;
    /* ids of parents: ascending, unique, each below this node's id */
    uint32_t dep_count;
    union {
        /* SEND, RECV: below ETCH_TAG_END, one for each message between two ranks */
        uint32_t tag;
        /* COMP: index into `workloads` of the job, where that is asked for */
        uint32_t workload;
    };
    /* SEND, RECV: index into `peers` of the program */
    uint16_t peer;
    /* COLL: index into `families` of the job */
    uint16_t family;
    /* etch_node_type */
    uint8_t type;
    /* COLL: etch_comm_type */
    uint8_t collective;
    /* COLL, SEND: it waits for the communication before it for the order alone, and reads nothing of it */
    bool only_ordered;
} etch_node;

/* What the time of a computation depends on, beside its FLOP and bytes. */
typedef struct etch_workload {
    /* etch_product_kind */
    uint8_t kind;
    /* attention: its gradient */
    bool backward;
    /* of the operands of the products; NULL: it has none */
    const char *dtype;
    /* of the products alone */
    uint64_t flop;
    /* it is known how long it takes, in picoseconds, whatever the machine */
    bool is_measured;
    uint64_t lasts;
    /* attention: that a query may see */
    uint64_t keys;
    /* `batch` products of a matrix of m and k, and one of k and n; 0: it is none */
    uint64_t m, n, k, batch;
} etch_workload;

/* Annotations of a node, which simulators do not read: X(enumerator, name, is its value a text?). A node
 * has those that mean something of it: no microbatch at the end of a step, no layer outside of loops. */
#define ETCH_ANNOTATIONS(X)                                                                   \
    X(PHASE, "phase", true)            /* forward, recompute, backward, sync, optimizer */    \
    X(LAYER, "layer", false)           /* iteration of the outermost loop around it */        \
    X(MICROBATCH, "microbatch", false) /* from 0 */                                           \
    X(OP_TYPE, "op_type", true)        /* the op's name, of communication the collective's */ \
    X(MODULE, "module", true)          /* dotted path of modules from the model; none of messages */
typedef enum etch_annotation {
#define X(enumerator, name, text) ETCH_ANNOTATION_##enumerator,
    ETCH_ANNOTATIONS(X)
#undef X
        ETCH_ANNOTATION_COUNT
} etch_annotation;
/* "phase"; NULL for ETCH_ANNOTATION_COUNT and above. */
const char *etch_annotation_name(etch_annotation annotation);
bool etch_annotation_is_text(etch_annotation annotation);

typedef union etch_annotation_value {
    const char *text;
    /* at most INT64_MAX */
    uint64_t number;
} etch_annotation_value;

typedef struct etch_annotated {
    /* bits 1 << etch_annotation */
    unsigned given;
    etch_annotation_value value[ETCH_ANNOTATION_COUNT];
} etch_annotated;

/* The rank that a message comes from or goes to. */
typedef struct etch_peer {
    /* less the rank's own; or, where there is a shift, */
    int64_t offset;
    /* so many ranks further along the ring of this axis of the job's mesh */
    uint32_t axis;
    int32_t shift;
} etch_peer;

typedef struct etch_class_program {
    const etch_node *nodes;
    uint32_t node_count;
    const uint32_t *deps;
    const char *names;
    /* by node; NULL: nothing is said of any */
    const etch_annotated *annotated;
    const etch_peer *peers;
    uint32_t peer_count;
    /* of a brief job, by slot of the schedule: its first node; then the first one after all slots */
    const uint32_t *slots;
    uint32_t slot_count;
    /* by node: the number of its task in the form of the step; NULL: not asked for */
    const uint32_t *tasks;
} etch_class_program;

enum { ETCH_TAG_END = 500000000 }; /* simulators number other messages from here on */

/* Communication groups over one set of mesh axes: every combination of the other axes' coordinates is one
 * group. Ids of a family are consecutive, in the order of those coordinates, outermost axis first, or stage
 * by stage where only some stages use the family.
 * Families are few and in the order of first id. Only groups that some node uses exist, and none is of one
 * rank. */
typedef struct etch_group_family {
    /* ids start at 1 over all families */
    uint32_t first_id;
    /* groups in the family */
    uint32_t count;
    /* ranks in each group */
    uint32_t size;
    /* bit i: mesh axis i varies inside a group */
    uint64_t axes;
    /* the axes' names as a user writes them: "tp", "(dp,tp)" */
    const char *label;
    /* ascending; NULL: ranks of all stages have groups */
    const uint32_t *stages;
    uint32_t stage_count;
    /* a group has a rank of each of `stages`; else its ranks are all of one of them */
    bool across;
    /* the ranks of its groups, one after the other, where no mesh says them; else NULL */
    const uint32_t *members;
    /* Chosen where traces are written: bit i, its groups are along dimension i of the network (mesh axes of
     * more than one rank, innermost first) and have no ids, `first_id` is 0. 0: they have ids */
    uint64_t dimensions;
} etch_group_family;

typedef struct etch_mesh_axis {
    const char *name;
    uint32_t size;
} etch_mesh_axis;

/* Sums over the nodes of one rank of the stage. 128 bits: no sum of 2^32 nodes overflows. */
__extension__ typedef unsigned __int128 etch_total;
typedef struct etch_comm_total {
    /* etch_node_type: COLL, SEND or RECV */
    uint8_t type;
    /* COLL: etch_comm_type */
    uint8_t collective;
    /* SEND, RECV: along a ring, not between stages */
    bool is_ring;
    /* label, as in a query: axis = tp */
    const char *axes;
    /* sum of comm_size less padding */
    etch_total bytes;
    /* bytes that the minimum of 64 added */
    etch_total padded;
    /* nodes */
    uint64_t count;
} etch_comm_total;
/* What goes between the memories of device and host. */
typedef struct etch_host_total {
    /* sum of tensor_size */
    etch_total bytes;
    /* nodes */
    uint64_t count;
} etch_host_total;
typedef struct etch_stage_total {
    uint32_t ranks;
    /* of the stages, and of the parts of each that do unequal work */
    uint32_t stage, work_share;
    /* of one rank */
    uint32_t nodes;
    /* sum of num_ops less padding */
    etch_total flop;
    /* what the minimum of 1 added */
    etch_total padded_flop;
    /* sum of tensor_size less padding */
    etch_total bytes;
    etch_total padded_bytes;
    const etch_comm_total *comm;
    uint32_t comm_count;
    etch_host_total loads, stores;
} etch_stage_total;

typedef struct etch_binding {
    const char *name;
    /* exact decimal text */
    const char *value;
    /* "run", "set", "config", "default" */
    const char *from;
} etch_binding;

typedef struct etch_job {
    uint32_t rank_count;
    /* In the order of the plan, outermost first: the rank is the mixed-radix number of its coordinates. Axes
     * of families and stages are indices into it. */
    const etch_mesh_axis *mesh;
    uint32_t mesh_count;
    /* mesh axes whose coordinates, outermost first, number the stages */
    const uint32_t *stage_axes;
    uint32_t stage_axis_count;
    /* one per class */
    const etch_class_program *programs;
    uint32_t program_count;
    /* by rank */
    const uint32_t *class_of;
    const etch_group_family *families;
    uint32_t family_count;
    /* NULL: not asked for */
    const etch_workload *workloads;
    uint32_t workload_count;
    /* by class: stage by stage, and part by part of each */
    const etch_stage_total *stages;
    /* at least 1 each; as many classes as both make */
    uint32_t stage_count, work_share_count;
    const etch_binding *bindings;
    uint32_t binding_count;
    /* names; config and run may be NULL */
    const char *model, *plan, *config, *run;
    /* nodes load, or store */
    bool uses_host;
    /* what messages are between; NULL: stages */
    const char *message_label;
    /* of a brief job: the pipeline of the step; else NULL. Programs have fewer microbatches, and are else
     * those of the step */
    const etch_pipe *pipe;
    uint64_t microbatches;
} etch_job;

/* ---- making a job -------------------------------------------------------------------------------------- */

/* The value given to a variable: a param, or the size of a mesh axis. */
typedef struct etch_given {
    etch_expr var;
    const char *name;
    /* a constant, or an expression over other variables that have values */
    etch_expr value;
    /* "run", "set", "config", "default" */
    const char *from;
    /* where it is written, or nowhere */
    etch_span span;
} etch_given;

/* Values, and what they are for. */
typedef struct etch_values {
    /* NULL: of no model; then only assumptions are looked at */
    const etch_training *training;
    /* of the training; NULL: under no plan */
    const etch_placed *placed;
    /* a job lists them in this order */
    const etch_given *given;
    uint32_t given_count;
    /* what the spec assumes and has to hold; without a value for each variable it binds nothing */
    const etch_claim *facts;
    uint32_t fact_count;
} etch_values;

/* Do the values, which may leave variables open, mean something? Otherwise reports, in the words of
 * `etch_lower`, what it refuses whatever is given besides: sizes that are no integers or too small, broken
 * assumptions, requirements of a plan. What only traces cannot have, as more ranks than they number, is not
 * asked. */
bool etch_values_check(etch_arena *scratch, etch_sym *sym, etch_diags *diags, const etch_values *values);

/* What must hold of values, as a formula over what is open. */
typedef struct etch_must {
    enum {
        /* `left` is a number as `least` and what follows say */
        ETCH_MUST_BE_NUMBER,
        /* an assumption */
        ETCH_MUST_HOLD,
        /* `left` divides `right`, where both are defined */
        ETCH_MUST_DIVIDE,
        /* the ranks that a plan asks for, and those of its mesh, which may be too many to count */
        ETCH_MUST_BE_RANKS
    } kind;
    /* of assumptions */
    etch_relation relation;
    etch_expr left, right;
    int64_t least;
    /* more than that; may be no integer; at most 1 */
    bool above, fraction, share;
    etch_code code;
    /* what it is of, without values: "dim B", "B by dp * microbatches" */
    const char *subject;
} etch_must;
typedef ETCH_VEC(etch_must) etch_musts;

/* All that `etch_values_check` asks of values but that they are integers where their variables are: values
 * that have it all are those that it accepts. */
void etch_values_musts(etch_arena *arena, etch_sym *sym, const etch_values *values, etch_musts *out);
/* Does it hold, where its sides are these constants (NULL: undefined)? */
bool etch_must_holds(etch_sym *sym, const etch_must *must, etch_expr left, etch_expr right);

/* ---- forms of steps ------------------------------------------------------------------------------------ */

/* What a task is, with numbers as they were before values were put in. */
typedef struct etch_task_form {
    /* as in etch_node */
    uint8_t type, collective;
    /* COMP: as in etch_workload; its formulas are NULL where it has none */
    uint8_t kind;
    bool backward;
    const char *dtype;
    etch_expr product_flop, keys, m, n, k, batch;
    /* `flop` of a COMP alone */
    etch_expr flop, bytes;
    /* numbers that are no integers are rounded up; else they are refused */
    bool is_average;
} etch_task_form;

typedef enum etch_guard_kind { ETCH_GUARD_EQUAL, ETCH_GUARD_ABOVE } etch_guard_kind;

/* An expression whose value was read, and what it was, or what it was above. */
typedef struct etch_value_guard {
    etch_expr expr;
    etch_guard_kind kind;
    uint64_t value;
} etch_value_guard;

/* What a job is made of. With values for which all guards hold, and as many ranks and nodes as can be
 * lowered, lowering makes the same nodes, but for the numbers of their tasks. */
typedef struct etch_step_form {
    ETCH_VEC(etch_task_form) tasks;
    ETCH_VEC(etch_value_guard) guards;
    /* of the axes of the job's mesh, in its order */
    const etch_expr *mesh;
    /* of a step, which no guard is on but for what the brief job's number of them is */
    etch_expr microbatches;
    /* that of the options */
    uint32_t brief;
    /* something has numbers that are no task's, or differ by rank */
    bool is_partial;
} etch_step_form;

typedef struct etch_lower_options {
    /* of a placed graph */
    etch_values values;
    /* their names, or NULL */
    const char *config, *run;
    etch_naming naming;
    /* bits 1 << etch_annotation: those that nodes get */
    unsigned annotations;
    /* the job has `workloads` */
    bool workloads;
    /* 0: as many microbatches as the step has. From 1 on: a brief job, whose programs have as many as show
     * how stages begin and end, and what they repeat in between; the more, the greater the number. Its nodes
     * have no names. A step that has hardly more than these is lowered as it is */
    uint32_t brief;
    /* is filled; nodes have numbers of tasks, and the job is brief even where that leaves nothing out.
     * Expressions are those of the placed graph, the rest is in the arena of the job. NULL: not asked for */
    etch_step_form *form;
    /* nothing is wanted but whether it can be lowered: the job is none */
    bool only_checks;
} etch_lower_options;

enum { ETCH_MAX_RANKS = 1 << 20 };

/* Binds a placed graph to values and unrolls it. The job lives in `arena`; `placed` may end before it. What
 * is not ETCH_OK comes with a diagnostic of `placed` (except ETCH_ENOMEM and ETCH_EINTERNAL) and sets no job:
 *   ETCH_EINPUT  a value is missing, an assumption or a requirement does not hold, a size is no integer
 *   ETCH_ELIMIT  too many ranks or nodes, a node too large for a trace, more memory than the session has */
etch_status etch_lower(etch_arena *arena, const etch_lower_options *options,
                       const etch_job **job) ETCH_MUST_CHECK;

/* Does a node of the type move bytes between the memories of device and host? */
static inline bool etch_node_moves(uint8_t type)
{
    return type == ETCH_NODE_LOAD || type == ETCH_NODE_STORE;
}
/* Does it communicate: is it a collective or a message? */
static inline bool etch_node_communicates(uint8_t type)
{
    return type != ETCH_NODE_COMP && !etch_node_moves(type);
}

/* The move that traces call by this `etch_comm_type`; ETCH_NO_COLLECTIVE: none. */
etch_collective etch_collective_of_code(uint8_t collective);

/* Is a job of the form, of so many microbatches, this one but for its `pipe`? */
bool etch_form_shows(const etch_step_form *form, const etch_job *job, uint64_t microbatches);
/* What a node has as `bytes`, of what its task moves and computes. `starts`: it is the first computation of a
 * rank, and waits for nothing. */
uint64_t etch_node_bytes(uint8_t type, uint64_t flop, uint64_t bytes, bool starts);
/* A copy that lives as long as the arena, without nodes and workloads, totals and bindings. */
const etch_job *etch_job_without_nodes(etch_arena *arena, const etch_job *job);
/* Of a step of the form of the job on another mesh, whose axes are of these sizes: 1 where they are so in the
 * job, and above it elsewhere, and of stages alike. The job has one part for each stage. NULL: too many
 * ranks. */
const etch_job *etch_job_resize(etch_arena *arena, const etch_job *job, const uint32_t *sizes);

/* ---- groups -------------------------------------------------------------------------------------------- */

uint32_t etch_peer_rank(const etch_job *job, etch_peer peer, uint32_t rank);
/* How far apart ranks are that differ by one on this axis of the mesh. */
uint32_t etch_mesh_stride(const etch_job *job, uint32_t axis);
/* What the rank itself is to its peer. */
etch_peer etch_peer_back(etch_peer peer);
/* Below 0, 0 or above, as it is for sorting. */
int etch_peer_order(etch_peer a, etch_peer b);
/* The pipeline stage of a rank: 0 where there is one. */
uint32_t etch_stage_of(const etch_job *job, uint32_t rank);
/* The id of the group of `family` that `rank` belongs to; 0 when it belongs to none. */
uint32_t etch_group_id(const etch_job *job, const etch_group_family *family, uint32_t rank);
/* The `k`-th rank (in ring order: ascending) of the group with index `group` (0..count-1) of `family`. */
uint32_t etch_group_rank(const etch_job *job, const etch_group_family *family, uint32_t group, uint32_t k);

#endif
