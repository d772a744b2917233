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
