/* Inside trace: a rank while it is read and condensed. */
#ifndef ETCH_RANK_INT_H
#define ETCH_RANK_INT_H

#include <stdio.h>

#include "trace/verify_int.h"

enum { ETCH_RANK_NODE_LIMIT = 1 << 22, ETCH_RANK_DEP_LIMIT = 1 << 24 };

/* ---- tensors.c: no tensor is output twice -------------------------------------------------------------- */

/* Names of tensors that nodes of a rank output. */
typedef struct etch_tensors {
    /* NUL-terminated names one after the other */
    char *text;
    size_t length, capacity;
    /* open addressing: where a name begins, plus 1 */
    uint32_t *places;
    uint32_t count, place_count;
    bool failed;
} etch_tensors;
void etch_tensors_add(etch_tensors *tensors, const etch_trace_node *node, etch_findings *findings);
void etch_tensors_free(etch_tensors *tensors);

/* ---- desk.c: a trace in memory ------------------------------------------------------------------------- */

/* What a thread uses for one rank after the other. All zero is empty. */
typedef struct etch_desk {
    /* of the file, without compression */
    uint8_t *bytes;
    size_t length, capacity;
    bool is_writable;
    etch_unpacker *unpacker;
    etch_wire wire;
} etch_desk;

/* Reads a whole trace. False when it is too long, or anything is wrong: reading it as a stream says what. */
bool etch_desk_load(etch_desk *desk, const char *path, bool is_packed);
void etch_desk_free(etch_desk *desk);

/* ---- pattern.c: traces that differ in groups and peers only -------------------------------------------- */

/* Where other traces may have another value. */
typedef struct etch_hole {
    size_t offset;
    /* the hole that it has equal bytes with: itself, or one before it */
    uint32_t of;
    uint8_t length, attribute;
} etch_hole;

/* The first node of a group or peer that has its holes. */
typedef struct etch_lead {
    size_t offset, length;
    etch_node_facts facts;
    /* of the group or peer, among those of the rank */
    uint32_t local, first_hole, hole_count;
} etch_lead;

/* What is noted of a trace while it is read. All zero is empty. */
typedef struct etch_sketch {
    /* of the trace */
    const uint8_t *bytes;
    etch_hole *holes;
    etch_lead *leads;
    uint32_t hole_count, hole_capacity, lead_count, lead_capacity;
    /* it can be no pattern */
    bool is_unfit;
} etch_sketch;

/* `bytes`: NULL when the trace is not in memory. */
void etch_sketch_begin(etch_sketch *sketch, const uint8_t *bytes);
/* A node that communicates. `local`: the index of its group or peer. */
void etch_sketch_note(etch_sketch *sketch, const etch_trace_node *node, const etch_node_facts *facts,
                      uint32_t local);
void etch_sketch_free(etch_sketch *sketch);

/* Keeps a rank that has been read, broke no rule and has a program, as a pattern, unless there are many. */
void etch_pattern_keep(etch_pattern_table *table, const etch_sketch *sketch, const etch_rank_job *job,
                       size_t length);
/* Fills what the job asks for where what is on the desk fits a pattern. ETCH_ENOMEM. */
etch_status etch_pattern_match(etch_pattern_table *table, const etch_rank_job *job, etch_desk *desk,
                               bool *matched) ETCH_MUST_CHECK;

/* locate.c: what the rules are asked with. */
etch_rule_context etch_rank_context(const etch_rank_job *job, etch_findings *findings);

/* ---- the draft ----------------------------------------------------------------------------------------- */

/* A node in the order of the file. */
typedef struct etch_draft_node {
    /* as in etch_rank_program */
    uint64_t value;
    uint32_t id;
    /* its dependencies end here, and begin where those of the node before end */
    uint32_t dep_end;
    uint32_t label;
    uint8_t work;
    bool brief;
} etch_draft_node;

typedef struct etch_rank_draft {
    const etch_rank_job *job;
    etch_draft_node *nodes;
    /* ids, then indexes of nodes */
    uint32_t *deps;
    etch_comm *comms;
    uint32_t node_count, node_capacity;
    uint32_t dep_count, dep_capacity;
    uint32_t comm_count, comm_capacity;
    uint32_t group_capacity, peer_capacity, tag_capacity;
    etch_number_table groups, peers;
    etch_tensors tensors;
    etch_sketch sketch;
    uint32_t ctrl_nodes;
    /* ids are 0, 1, 2, ... */
    bool dense;
    /* ids that are none: nothing more can be said */
    bool large_ids;
    /* no error keeps a run from making sense of it */
    bool runnable;
    /* memory is out */
    bool failed;
} etch_rank_draft;

/* locate.c: the path of a rank's trace; false when it is longer than `size`. */
enum { ETCH_RANK_PATH = 4096 };
bool etch_rank_path(const etch_trace_set *set, uint32_t rank, char *path, size_t size);

/* condense.c: ids become indexes, dependencies are checked, and the program is made. */
etch_status etch_rank_condense(etch_rank_draft *draft) ETCH_MUST_CHECK;

#endif
