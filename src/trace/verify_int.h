/* Inside trace: what verification is made of. A rank is read once by some thread, held against the rules that
 * concern it alone, and condensed into a program; then all ranks run together.
 *
 * What threads share is from malloc; everything else lives in the arena of the call. */
#ifndef ETCH_VERIFY_INT_H
#define ETCH_VERIFY_INT_H

#include "trace/trace_int.h"

#define ETCH_NO_NODE UINT64_MAX
#define ETCH_NONE UINT32_MAX

/* ---- finding.c: what is wrong, collected on any thread ------------------------------------------------- */

typedef struct etch_finding {
    etch_severity severity;
    etch_code code;
    /* from malloc; without the rank */
    char *text;
    /* static, may be NULL */
    const char *help;
} etch_finding;

/* Findings of one rank. Of each code and severity only the first few are kept; all are counted. Warnings must
 * never take the place of an error. */
typedef struct etch_findings {
    etch_finding *at;
    uint32_t count, capacity;
    /* all of them, kept or not */
    uint32_t errors;
    bool out_of_memory;
} etch_findings;

/* A node as messages name it; `name` may be empty. */
typedef struct etch_node_ref {
    /* ETCH_NO_NODE: of the whole rank */
    uint64_t id;
    etch_trace_text name;
} etch_node_ref;

void etch_find(etch_findings *findings, etch_severity severity, etch_code code, etch_node_ref node,
               const char *help, const char *format, ...) ETCH_PRINTF(6, 7);
/* Would one more finding of this severity and code be kept? */
bool etch_findings_keep(const etch_findings *findings, etch_severity severity, etch_code code);
void etch_findings_free(etch_findings *findings);
/* Turns findings of all ranks into diagnostics; one for equal ones. */
void etch_findings_report(const etch_findings *by_rank, uint32_t rank_count, etch_arena *arena,
                          etch_diags *diags);
/* "node 17 'name'", cut to a sensible length, into `text`. */
enum { ETCH_NODE_TEXT = 160 };
const char *etch_node_text(etch_node_ref node, char text[ETCH_NODE_TEXT]);

/* ---- folder.c: which files ----------------------------------------------------------------------------- */

enum { ETCH_MOST_DIMENSIONS = 32, ETCH_MOST_ALONG = 64 };

typedef struct etch_trace_set {
    /* "out/llama" */
    const char *prefix;
    /* path of the file of groups; NULL: there is none */
    const char *groups;
    /* one more than the largest rank */
    uint32_t rank_count;
    /* by rank: its trace is compressed */
    const bool *packed;
    /* ranks below it without a trace */
    uint32_t missing;
    /* what memory.json beside the traces says of remote memory */
    enum { ETCH_REMOTE_UNKNOWN, ETCH_REMOTE_NONE, ETCH_REMOTE_SOME } remote_memory;
    /* Sizes of the dimensions of the network, innermost first, where the manifest of the traces says that
     * collectives are along some of them; else none. */
    uint32_t dimensions[ETCH_MOST_DIMENSIONS];
    uint32_t dimension_count;
    /* by which dimensions collectives are along: bit i is dimension i */
    uint64_t along[ETCH_MOST_ALONG];
    uint32_t along_count;
} etch_trace_set;

/* Finds the traces; reports what is wrong with the set as a whole. */
etch_status etch_trace_set_find(etch_arena *arena, const etch_verify_options *options, etch_diags *diags,
                                etch_trace_set *set) ETCH_MUST_CHECK;

/* ---- groups.c ------------------------------------------------------------------------------------------ */

typedef struct etch_trace_group {
    /* 0: all ranks, or those along `dimensions` */
    uint32_t id;
    /* bit i: its ranks differ in dimension i of the network; 0: it has an id, or all ranks */
    uint64_t dimensions;
    /* of ranks */
    uint32_t count;
    /* ascending; NULL for all ranks */
    const uint32_t *ranks;
    /* a rank that is listed twice, or ETCH_NONE */
    uint32_t twice;
    /* it lists `stranger`, of which there is no trace; it is not in `ranks` */
    bool beyond;
    bool used;
    int64_t stranger;
} etch_trace_group;

typedef struct etch_trace_groups {
    /* ascending ids; the first is that of all ranks. Behind those with ids: the groups along dimensions, in
     * the order of `along` of the set */
    etch_trace_group *at;
    uint32_t count;
    /* with ids, and that of all ranks */
    uint32_t numbered;
    /* some groups were refused */
    bool broken;
} etch_trace_groups;

etch_status etch_trace_groups_read(etch_arena *arena, const etch_trace_set *set, etch_diags *diags,
                                   etch_trace_groups *groups) ETCH_MUST_CHECK;
/* Index of a group, ETCH_NONE when there is none. */
uint32_t etch_trace_group_find(const etch_trace_groups *groups, uint64_t id);
/* Index of the group of a rank along dimensions, ETCH_NONE where the set knows of none. */
uint32_t etch_trace_group_along(const etch_trace_groups *groups, const etch_trace_set *set,
                                uint64_t dimensions, uint32_t rank);
/* "group 3", "the ranks 0, 8, ... along the network", in `text` or static. */
enum { ETCH_GROUP_TEXT = 64 };
const char *etch_trace_group_text(const etch_trace_group *group, char text[ETCH_GROUP_TEXT]);
bool etch_trace_group_has(const etch_trace_group *group, uint32_t rank);

/* ---- rules.c: what a node says by itself --------------------------------------------------------------- */

typedef enum etch_work {
    /* Is passed over as soon as the communication slot is free, in no time. Nothing happens then: what waits
     * for it is looked at when something else of the rank ends. */
    ETCH_WORK_NOTHING,
    ETCH_WORK_COMPUTE,
    ETCH_WORK_MEMORY,
    ETCH_WORK_COLLECTIVE,
    ETCH_WORK_SEND,
    ETCH_WORK_RECEIVE
} etch_work;

/* What a run needs of a node. */
typedef struct etch_node_facts {
    etch_work work;
    uint8_t collective;
    /* bytes of communication and memory */
    uint64_t size;
    /* of computation: nominal nanoseconds */
    uint64_t time;
    /* index, or ETCH_NONE */
    uint32_t group;
    /* the other end of a message, or ETCH_NONE */
    uint32_t peer;
    int32_t tag;
    /* a communication that breaks rules: what would become of it is not to be foreseen */
    bool broken;
    /* a computation that may take no time */
    bool brief;
    /* what it does depends on the network */
    bool frail;
    /* more is sent at once than rendezvous takes */
    bool oversized;
} etch_node_facts;

typedef struct etch_rule_context {
    const etch_trace_groups *groups;
    const etch_trace_set *set;
    uint32_t rank, rank_count;
    etch_protocol protocol;
    etch_findings *findings;
} etch_rule_context;

void etch_rules_check(const etch_rule_context *context, const etch_trace_node *node, etch_node_facts *facts);

/* ---- program.c: a rank as a run needs it --------------------------------------------------------------- */

/* Communication of a program. Equal programs of different ranks differ in what `local` leads to. */
typedef struct etch_comm {
    uint64_t size;
    /* index */
    uint32_t node;
    /* collective: into `groups` of the rank; message: into `peers` */
    uint32_t local;
    /* send and receive: into `tags` of the rank; collective: its number among those of the rank that are of
     * no numbered group, from 1, where the dimensions of the network are known, or 0 */
    uint32_t message;
    uint8_t work, collective;
    /* 0: programs are compared as bytes */
    uint8_t padding[2];
} etch_comm;

/* Indexes of nodes are in the order of their ids. */
typedef struct etch_rank_program {
    uint32_t node_count, edge_count, comm_count;
    /* by node; NULL when each is its index */
    uint32_t *ids;
    /* by node: its parents */
    uint32_t *waits;
    /* by node, and one more */
    uint32_t *first_child;
    uint32_t *children;
    /* by node: its microbatch, or ETCH_NONE; NULL unless asked for */
    uint32_t *labels;
    /* by node: time of computation and memory; of communication its index in `comms` */
    uint64_t *values;
    /* by node: etch_work */
    uint8_t *work;
    etch_comm *comms;
    uint64_t hash;
    /* of `bytes` */
    size_t byte_count;
    struct etch_rank_program *next;
    /* what all arrays are in */
    uint64_t bytes[];
} etch_rank_program;

/* What a rank has of its own. */
typedef struct etch_rank {
    /* NULL: it cannot be run */
    const etch_rank_program *program;
    /* from malloc */
    uint32_t *groups, *peers;
    /* of another rank, if `shares_tags` */
    int32_t *tags;
    uint32_t group_count, peer_count, tag_count;
    bool shares_tags;
    /* its communication is ordered by dependencies */
    bool ordered;
    /* whether it finishes may depend on the machine all the same */
    bool frail;
    /* under rendezvous nothing can be said of it */
    bool oversized;
} etch_rank;

/* Programs, each once; safe on any thread. */
typedef struct etch_program_table etch_program_table;
/* Of programs that have `most` bytes together; 0: as many as docs/limits.md says. NULL: memory is out */
etch_program_table *etch_program_table_new(size_t most);
void etch_program_table_free(etch_program_table *table);
uint32_t etch_program_table_count(const etch_program_table *table);
/* A program with room for everything; NULL when memory is out. */
etch_rank_program *etch_program_new(uint32_t nodes, uint32_t edges, uint32_t comms, bool ids, bool labels);
/* Takes `program` over and returns it, or the equal one that was there; NULL when all programs
 * together are too large. */
const etch_rank_program *etch_program_intern(etch_program_table *table, etch_rank_program *program);

/* ---- rank.c: reading a rank ---------------------------------------------------------------------------- */

typedef struct etch_rank_counts {
    uint64_t nodes, bytes;
    /* nodes by work */
    uint64_t of[ETCH_WORK_RECEIVE + 1];
} etch_rank_counts;

/* Traces that were read, for those that differ little; safe on any thread. NULL: memory is out. */
typedef struct etch_trace_pattern etch_trace_pattern;
typedef struct etch_pattern_table etch_pattern_table;
etch_pattern_table *etch_pattern_table_new(void);
void etch_pattern_table_free(etch_pattern_table *table);

typedef struct etch_rank_job {
    const etch_verify_options *options;
    const etch_trace_set *set;
    const etch_trace_groups *groups;
    etch_program_table *programs;
    etch_pattern_table *patterns;
    struct etch_desk *desk;
    uint32_t rank;
    etch_findings *findings;
    etch_rank *result;
    etch_rank_counts *counts;
} etch_rank_job;

/* Reads the trace of a rank. What is wrong with it are findings; the status is ETCH_OK, ETCH_ENOMEM,
 * ETCH_EIO or ETCH_ELIMIT. */
etch_status etch_rank_read(const etch_rank_job *job) ETCH_MUST_CHECK;
/* locate.c */
void etch_rank_free(etch_rank *rank);
/* A node by its id, with the name that it has in the file, which is read once more. */
typedef struct etch_named_node {
    char name[104];
    etch_node_ref ref;
} etch_named_node;
etch_node_ref etch_rank_node(const etch_trace_set *set, uint32_t rank, uint64_t id, etch_named_node *node);

/* ---- mail.c: messages that one end waits with ---------------------------------------------------------- */

typedef struct etch_mail_key {
    uint64_t size;
    uint32_t source, target;
    int32_t tag;
} etch_mail_key;

typedef enum etch_mail_end { ETCH_MAIL_SEND, ETCH_MAIL_RECEIVE } etch_mail_end;

/* What waits, by key: sends or receives, never both, first in first out. All zero is empty. */
typedef struct etch_mail {
    /* of keys; 0 is none */
    struct etch_mail_box *boxes;
    /* of nodes; 0 is none */
    struct etch_mail_item *items;
    uint32_t *buckets;
    uint32_t box_count, box_capacity, free_box, used_boxes;
    uint32_t item_count, item_capacity, free_item;
    uint32_t bucket_count;
} etch_mail;

/* Takes the node that has waited longest at the given end; false when there is none. */
bool etch_mail_take(etch_mail *mail, const etch_mail_key *key, etch_mail_end end, uint32_t *node);
/* Lets a node wait, where nothing waits at the other end; `*alone` unless another one waits with it. False
 * when memory is out. */
bool etch_mail_put(etch_mail *mail, const etch_mail_key *key, etch_mail_end end, uint32_t node,
                   bool *alone) ETCH_MUST_CHECK;
/* Visits everything that waits: `*at` is 0 at first; false after the last. */
bool etch_mail_next(const etch_mail *mail, uint32_t *at, etch_mail_key *key, etch_mail_end *end,
                    uint32_t *node);
void etch_mail_free(etch_mail *mail);

/* ---- run.c: all ranks together ------------------------------------------------------------------------- */

typedef enum etch_timing {
    /* nothing takes time; receives are posted late, which shows tags in use twice */
    ETCH_TIMING_NONE,
    /* see rules.c */
    ETCH_TIMING_NOMINAL,
    ETCH_TIMING_RANDOM
} etch_timing;

/* A rank during a run. */
typedef struct etch_lane {
    /* nodes some of whose parents are finished: how many are not */
    etch_number_table waits;
    /* heaps of ready nodes, smallest first */
    uint32_t *compute, *comm;
    uint32_t compute_count, compute_capacity, comm_count, comm_capacity;
    /* nodes that were released by one that was passed over */
    uint32_t *unseen;
    uint32_t unseen_count, unseen_capacity;
    /* nodes */
    uint32_t finished;
    /* the node in the communication slot, or ETCH_NONE */
    uint32_t held;
    /* the rank that came to the same collective before, or ETCH_NONE */
    uint32_t next_member;
    bool computing;
    uint32_t ready, in_flight;
    /* by label: nodes that are not finished; NULL without marks */
    uint32_t *labels_left;
    uint8_t *labels_begun;
    etch_verify_marks marks;
} etch_lane;

/* The collective that some members of a group have come to. */
typedef struct etch_meeting {
    /* members, and the latest of them */
    uint32_t count, last;
    /* the rank that came first, and what it issued */
    uint32_t first;
    const etch_comm *comm;
} etch_meeting;

typedef struct etch_run {
    const etch_rank *ranks;
    const etch_trace_groups *groups;
    uint32_t rank_count;
    etch_timing timing;
    bool rendezvous;
    uint64_t seed;
    const atomic_int *cancel;
    const etch_trace_set *set;
    /* by rank; NULL: what ranks disagree on was found before */
    etch_findings *findings;

    etch_lane *lanes;
    /* by group */
    etch_meeting *meetings;
    etch_mail mail;
    /* a stack: receives that are posted when nothing else moves */
    uint64_t *late;
    uint32_t late_count, late_capacity;
    /* a heap */
    struct etch_event *later;
    uint32_t later_count, later_capacity;
    /* a ring: rank and node */
    uint64_t *now;
    uint32_t now_first, now_count, now_capacity;
    uint64_t time, order;
    /* ranks that did not finish */
    uint32_t stalled;
    bool failed;
} etch_run;

/* Runs everything to the end, or until nothing moves any more; `run` keeps its state until it is freed.
 * ETCH_ENOMEM or ETCH_ELIMIT (cancelled). */
etch_status etch_run_go(etch_run *run) ETCH_MUST_CHECK;
void etch_run_free(etch_run *run);
uint32_t etch_program_id(const etch_rank_program *program, uint32_t node);
etch_mail_key etch_message_key(const etch_rank *rank, uint32_t number, const etch_comm *comm);

/* ---- fold.c: one rank for each class of equal ones ----------------------------------------------------- */

/* From malloc. */
typedef struct etch_fold {
    /* by class */
    etch_rank *ranks;
    etch_findings *findings;
    uint32_t rank_count;
    etch_trace_groups groups;
} etch_fold;

/* Of ranks whose communication is ordered. False when there is nothing to be gained, or memory is out. */
bool etch_fold_make(const etch_rank *ranks, uint32_t rank_count, const etch_trace_groups *groups,
                    etch_fold *fold);
/* After a run of the fold: all ranks run to their end, and there is nothing to say of it. Else all have to be
 * run. */
bool etch_fold_finishes(const etch_fold *fold, const etch_run *run);
void etch_fold_free(etch_fold *fold);

/* ---- explain.c: why ranks stall ------------------------------------------------------------------------ */

/* Diagnostics of what was left over when a run has ended: messages with one end, collectives that lack a
 * member, ranks that wait for each other. After an eager run that came to its end, what one under rendezvous
 * adds: the latter, as a warning. */
void etch_run_explain(const etch_run *run, bool adds, etch_arena *arena, etch_diags *diags);

#endif
