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
    ETCH_NODE_COMP = 4,
    ETCH_NODE_SEND = 5,
    ETCH_NODE_RECV = 6,
    ETCH_NODE_COLL = 7
} etch_node_type;
typedef enum etch_comm_type {
    ETCH_COMM_ALL_REDUCE = 0,
    ETCH_COMM_ALL_GATHER = 2,
    ETCH_COMM_ALL_TO_ALL = 6,
    ETCH_COMM_REDUCE_SCATTER = 7
} etch_comm_type;

/* One node. Its id is its index in the program: the issue order. */
typedef struct etch_node {
    uint64_t flop;  /* COMP: FLOP, at least 1 (see `padded_flop` of the totals) */
    uint64_t bytes; /* COMP: read plus written, at least 1; others: payload as in comm_size, at least 64 */
    uint32_t name;  /* offset into `names` of a NUL-terminated name */
    uint32_t first_dep; /* index into `deps` */
    uint32_t dep_count; /* ids of parents: ascending, unique, each below this node's id */
    uint32_t tag;       /* SEND, RECV: below ETCH_TAG_END, one for each message between two ranks */
    uint16_t peer;      /* SEND, RECV: index into `peers` of the program */
    uint16_t family;    /* COLL: index into `families` of the job */
    uint8_t type;       /* etch_node_type */
    uint8_t collective; /* COLL: etch_comm_type */
} etch_node;

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
    uint64_t number; /* at most INT64_MAX */
} etch_annotation_value;

typedef struct etch_annotated {
    unsigned given; /* bits 1 << etch_annotation */
    etch_annotation_value value[ETCH_ANNOTATION_COUNT];
} etch_annotated;

/* How nodes are named. */
typedef enum etch_naming {
    ETCH_NAMES_SHORT, /* "F0.layer3.attention.q": phase and microbatch, loops, modules, tensor */
    ETCH_NAMES_FULL,  /* "COMP_NODE.forward.mb0.stage0.layer3.llama.block.attention.q": also Chakra's type,
                         the stage and all modules */
    ETCH_NAMES_NONE,  /* nothing */
    ETCH_NAMING_COUNT
} etch_naming;
/* "short"; NULL for ETCH_NAMING_COUNT and above. */
const char *etch_naming_name(etch_naming naming);

typedef struct etch_class_program {
    const etch_node *nodes;
    uint32_t node_count;
    const uint32_t *deps;
    const char *names;
    const etch_annotated *annotated; /* by node; NULL: nothing is said of any */
    const int64_t *peers;            /* ranks that messages come from or go to, less the rank's own */
    uint32_t peer_count;
} etch_class_program;

enum { ETCH_TAG_END = 500000000 }; /* simulators number other messages from here on */

/* Communication groups over one set of mesh axes: every combination of the other axes' coordinates is one
 * group. Ids of a family are consecutive, in the order of those coordinates, outermost axis first, or stage
 * by stage where only some stages use the family.
 * Families are few and in the order of first id. Only groups that some node uses exist, and none is of one
 * rank. */
typedef struct etch_group_family {
    uint32_t first_id;      /* ids start at 1 over all families */
    uint32_t count;         /* groups in the family */
    uint32_t size;          /* ranks in each group */
    uint64_t axes;          /* bit i: mesh axis i varies inside a group */
    const char *label;      /* the axes' names as a user writes them: "tp", "(dp,tp)" */
    const uint32_t *stages; /* ascending; NULL: ranks of all stages have groups */
    uint32_t stage_count;
    bool across; /* a group has a rank of each of `stages`; else its ranks are all of one of them */
} etch_group_family;

typedef struct etch_mesh_axis {
    const char *name;
    uint32_t size;
} etch_mesh_axis;

/* Sums over the nodes of one rank of the stage. 128 bits: no sum of 2^32 nodes overflows. */
__extension__ typedef unsigned __int128 etch_total;
typedef struct etch_comm_total {
    uint8_t type;       /* etch_node_type: COLL, SEND or RECV */
    uint8_t collective; /* COLL: etch_comm_type */
    const char *axes;   /* label, as in a query: axis = tp */
    etch_total bytes;   /* sum of comm_size less padding */
    etch_total padded;  /* bytes that the minimum of 64 added */
    uint64_t count;     /* nodes */
} etch_comm_total;
typedef struct etch_stage_total {
    uint32_t ranks;
    uint32_t stage, work_share; /* of the stages, and of the parts of each that do unequal work */
    uint32_t nodes;             /* of one rank */
    etch_total flop;            /* sum of num_ops less padding */
    etch_total padded_flop;     /* what the minimum of 1 added */
    etch_total bytes;           /* sum of tensor_size less padding */
    etch_total padded_bytes;
    const etch_comm_total *comm;
    uint32_t comm_count;
} etch_stage_total;

typedef struct etch_binding {
    const char *name;
    const char *value; /* exact decimal text */
    const char *from;  /* "run", "set", "config", "default" */
} etch_binding;

typedef struct etch_job {
    uint32_t rank_count;
    /* In the order of the plan, outermost first: the rank is the mixed-radix number of its coordinates. Axes of
     * families and stages are indices into it. */
    const etch_mesh_axis *mesh;
    uint32_t mesh_count;
    const uint32_t *stage_axes; /* mesh axes whose coordinates, outermost first, number the stages */
    uint32_t stage_axis_count;
    const etch_class_program *programs; /* one per class */
    uint32_t program_count;
    const uint32_t *class_of; /* by rank */
    const etch_group_family *families;
    uint32_t family_count;
    const etch_stage_total *stages;         /* by class: stage by stage, and part by part of each */
    uint32_t stage_count, work_share_count; /* at least 1 each; as many classes as both make */
    const etch_binding *bindings;
    uint32_t binding_count;
    const char *model, *plan, *config, *run; /* names; config and run may be NULL */
} etch_job;

/* ---- making a job -------------------------------------------------------------------------------------- */

/* The value given to a variable: a param, or the size of a mesh axis. */
typedef struct etch_given {
    etch_expr var;
    const char *name;
    etch_expr value;  /* a constant, or an expression over other variables that have values */
    const char *from; /* "run", "set", "config", "default" */
    etch_span span;   /* where it is written, or nowhere */
} etch_given;

/* Values, and what they are for. */
typedef struct etch_values {
    const etch_training *training; /* NULL: of no model; then only assumptions are looked at */
    const etch_placed *placed;     /* of the training; NULL: under no plan */
    const etch_given *given;       /* a job lists them in this order */
    uint32_t given_count;
    const etch_claim *
        facts; /* what the spec assumes and has to hold; without a value for each variable it binds nothing */
    uint32_t fact_count;
} etch_values;

/* Do the values, which may leave variables open, mean something? Otherwise reports, in the words of
 * `etch_lower`, what it refuses whatever is given besides: sizes that are no integers or too small, broken
 * assumptions, requirements of a plan. What only traces cannot have, as more ranks than they number, is not
 * asked. */
bool etch_values_check(etch_arena *scratch, etch_sym *sym, etch_diags *diags, const etch_values *values);

typedef struct etch_lower_options {
    etch_values values;       /* of a placed graph */
    const char *config, *run; /* their names, or NULL */
    etch_naming naming;
    unsigned annotations; /* bits 1 << etch_annotation: those that nodes get */
} etch_lower_options;

enum { ETCH_MAX_RANKS = 1 << 20 };

/* Binds a placed graph to values and unrolls it. The job lives in `arena`; `placed` may end before it. What
 * is not ETCH_OK comes with a diagnostic of `placed` (except ETCH_ENOMEM and ETCH_EINTERNAL) and sets no job:
 *   ETCH_EINPUT  a value is missing, an assumption or a requirement does not hold, a size is no integer
 *   ETCH_ELIMIT  too many ranks or nodes, a node too large for a trace, more memory than the session has */
etch_status etch_lower(etch_arena *arena, const etch_lower_options *options,
                       const etch_job **job) ETCH_MUST_CHECK;

/* ---- groups -------------------------------------------------------------------------------------------- */

/* The pipeline stage of a rank: 0 where there is one. */
uint32_t etch_stage_of(const etch_job *job, uint32_t rank);
/* The id of the group of `family` that `rank` belongs to; 0 when it belongs to none. */
uint32_t etch_group_id(const etch_job *job, const etch_group_family *family, uint32_t rank);
/* The `k`-th rank (in ring order: ascending) of the group with index `group` (0..count-1) of `family`. */
uint32_t etch_group_rank(const etch_job *job, const etch_group_family *family, uint32_t group, uint32_t k);

#endif
