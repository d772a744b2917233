/* A placed graph with stages, run as its schedule says: every stage does its actions in turn, one microbatch
 * through one model chunk in one direction, with messages between chunks. A stage has what it has made and
 * received, and nothing else. */
#ifndef ETCH_TEST_EXEC_SLOTS_H
#define ETCH_TEST_EXEC_SLOTS_H

#include "exec_ranks.h"

/* What goes from one chunk to the next for a microbatch: values alive at the cut, or cotangents. */
typedef struct exec_message {
    bool is_sent;
    exec_array ***arrays; /* by value of the cut and rank; of a value that is not sent NULL, or zeros */
    bool *is_unsent;      /* by value */
} exec_message;

typedef struct exec_slots {
    etch_arena *arena;
    const etch_placed *placed;
    exec_chain chain;
    uint32_t microbatches;
    const etch_action *const *actions; /* by stage */
    uint32_t action_count;             /* of each stage */
    exec_run **reference;              /* by microbatch */
    exec_ranks **stages;
    exec_store *values;               /* by chunk and microbatch */
    exec_store *pending;              /* by the same */
    exec_message *forward, *backward; /* by chunk that receives it and microbatch */
    uint32_t **began;                 /* by stage and action: the step of its ranks with which it began */
    uint32_t *next;                   /* by stage: its action in work */
    ETCH_VEC(exec_array *) received;  /* on first ranks, in the order of arrival */
    uint32_t unread;                  /* weights that stages are said to have, and do not read */
    uint32_t surplus;                 /* values that are sent and nobody reads there or further on */
    const char *unneeded;             /* the first of them; NULL: there is none */
    const char *failure;
} exec_slots;

/* Of a placed graph whose chain fits. */
exec_slots *exec_slots_new(etch_arena *arena, const etch_placed *placed, uint64_t seed);
/* Runs all actions of all stages, then the end of the step. A stall is a failure that names who waits for
 * whom. */
void exec_slots_run(exec_slots *slots);
/* Forgets what the runs on one rank have computed. */
void exec_slots_release(exec_slots *slots);
/* Runs it with data of the seed. NULL, or what is wrong. Weights and messages of loops of several classes may
 * be on stages that do not read them. */
const char *exec_check_slots(const etch_placed *placed, uint64_t seed);

#endif
