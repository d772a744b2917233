/* Memory over time: what a rank of each stage holds along a step. Part of etch/etch.h. */
#ifndef ETCH_MEMORY_H
#define ETCH_MEMORY_H

#include "etch/session.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What bytes are for: "weights", "grads", "optimizer" and "cache" are there all the time, "activations" are
 * kept for backward, "gathered" are copies of weights that ranks hold in parts, "communication" what
 * collectives and messages have brought, and "workspace" is all else that is worked on. */
typedef enum etch_memory_kind {
    ETCH_BYTES_OF_WEIGHTS,
    ETCH_BYTES_OF_GRADS,
    ETCH_BYTES_OF_OPTIMIZER,
    ETCH_BYTES_OF_CACHE,
    ETCH_BYTES_OF_ACTIVATIONS,
    ETCH_BYTES_OF_GATHERED,
    ETCH_BYTES_OF_COMMUNICATION,
    ETCH_BYTES_OF_WORKSPACE,
    ETCH_MEMORY_KINDS
} etch_memory_kind;
/* NULL for ETCH_MEMORY_KINDS and above. */
ETCH_API const char *etch_memory_kind_name(etch_memory_kind kind);

/* An interval of a slot: an iteration of a loop, or what lies between loops. */
typedef struct etch_memory_row {
    /* of the stage */
    uint32_t slot;
    /* NULL: between loops */
    const char *loop;
    uint64_t iteration;
    /* by kind: the most at a time */
    uint64_t bytes[ETCH_MEMORY_KINDS], total;
} etch_memory_row;

/* What is there at the peak: a tensor, with all its copies. */
typedef struct etch_memory_item {
    etch_memory_kind kind;
    const char *tensor, *module;
    etch_location location;
    uint64_t bytes;
} etch_memory_item;

typedef struct etch_memory_slot {
    etch_action_kind kind;
    uint32_t chunk;
    uint64_t microbatch;
    /* runs together with the one before it: rows of a forward action and of a backward one that do have what
     * the other works on at most */
    bool overlaps;
} etch_memory_slot;

typedef struct etch_memory_stage {
    /* in the order of the stage */
    const etch_memory_slot *slots;
    size_t slot_count;
    const etch_memory_row *rows;
    size_t row_count;
    /* the first row that holds the most */
    size_t peak;
    /* what is there then, the largest first */
    const etch_memory_item *items;
    size_t item_count;
    uint32_t stage;
} etch_memory_stage;

typedef struct etch_memory_report {
    /* config and run may be NULL */
    const char *model, *plan, *config, *run;
    const etch_memory_stage *stages;
    size_t stage_count;
    /* the first stage that holds the most */
    size_t heaviest;
} etch_memory_report;

/* What a rank of each stage of the plan holds along a step, or of the stage that the options of the session
 * name. Binds defaults. ETCH_EINPUT: values are missing, or cannot be what they are. ETCH_ELIMIT: more rows
 * than docs/limits.md has. */
ETCH_API etch_status etch_session_memory(etch_session *session, const etch_memory_report **report);

#ifdef __cplusplus
}
#endif

#endif
