/* The order in which the stages of a plan work, and the passes behind a step. Part of etch/etch.h. */
#ifndef ETCH_PIPELINE_H
#define ETCH_PIPELINE_H

#include "etch/session.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One microbatch through one chunk of a stage in one direction. Times are what they would be if every forward
 * slot took 1, every backward slot 2, each of its halves 1, and messages no time. */
typedef struct etch_pipeline_slot {
    etch_action_kind kind;
    uint32_t chunk;
    /* which link of the chain of all chunks that is, from 0 */
    uint64_t link;
    uint64_t microbatch;
    /* of actions that run together all that they take: each of them says it */
    uint64_t start, end;
    /* runs together with the one before it: a forward action and a backward one, or the halves of that */
    bool overlaps;
} etch_pipeline_slot;

typedef struct etch_pipeline_stage {
    /* most forward slots whose backward slot, or last half of it, has not begun; 0 without training */
    uint64_t in_flight;
    /* in the order of the stage */
    const etch_pipeline_slot *slots;
    size_t slot_count;
} etch_pipeline_stage;

typedef struct etch_pipeline_report {
    /* config may be NULL */
    const char *model, *plan, *config;
    etch_schedule_kind schedule;
    /* false: forward slots only */
    bool trains;
    /* of each stage; which links of the chain they are the schedule says */
    uint32_t chunks;
    uint64_t microbatches;
    /* end of the last slot */
    uint64_t time;
    /* time that a stage waits between its first slot and its last, of the one that waits longest, as a
     * fraction of the time that it works: "3/8"; without training until all stages have ended */
    const char *bubble;
    /* NULL when these sizes have none */
    const char *bubble_formula;
    /* of stage number `stage`; NULL without training or stages */
    const char *in_flight_formula;
    const etch_pipeline_stage *stages;
    size_t stage_count;
} etch_pipeline_report;

/* The order in which the stages of the plan work; a plan without stages has one. Binds defaults.
 * ETCH_EINPUT: values are missing, or cannot be what they are. ETCH_ELIMIT: too large to be looked at. */
ETCH_API etch_status etch_session_pipeline(etch_session *session, const etch_pipeline_report **report);

/* The result of a pass (`etch_pass_at`), as text for people: its form may change. "model" and "train" need no
 * plan. Values of params and axes are put in. ETCH_EINPUT: no such pass, or errors in the model or plan. */
ETCH_API etch_status etch_session_pass(etch_session *session, const char *pass, const char **text);

#ifdef __cplusplus
}
#endif

#endif
