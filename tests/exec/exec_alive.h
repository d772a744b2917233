/* Bytes that the first rank of a stage has of what microbatches make, from the step that makes or receives a
 * value to the last that reads it: measured on a run, against what the product says. */
#ifndef ETCH_TEST_EXEC_ALIVE_H
#define ETCH_TEST_EXEC_ALIVE_H

#include "exec_slots.h"

typedef struct exec_alive {
    uint64_t saved;       /* of forward, that backward of the same microbatch reads: of one microbatch */
    uint64_t activations; /* the most of that at a time, from action to action */
    uint64_t workspace;   /* the most of all else at a time, from step to step */
    uint64_t peak;        /* the most of both at a time, from step to step */
} exec_alive;

/* What models and plans have of which something is known to differ: see test_known.c. */
typedef enum exec_trait {
    EXEC_OUTER =
        1 << 0, /* a loop hands on a value from outside, or begins inside of one with what it is handed */
    EXEC_CHUNKED = 1 << 1 /* there are stages of several chunks */
} exec_trait;

uint32_t exec_traits(const etch_placed *placed);

/* Of slots that have run. */
exec_alive exec_alive_measured(const exec_slots *slots, uint32_t stage);
/* `peak`: of both. */
exec_alive exec_alive_said(const exec_slots *slots, uint32_t stage);

/* Is what is said of every stage what is measured? NULL, or what differs. That more is said to be held at a
 * time is no failure, nor that more is kept by chunks, or halves, of which not all are under way the most at
 * a time: `loose` (may be NULL) counts the stages where that is so. */
const char *exec_check_alive(const exec_slots *slots, uint32_t *loose);

/* Does a step on all ranks compute what one rank does, and keep, read and write the bytes that are said?
 * NULL, or what is wrong. */
const char *exec_check_step(const etch_placed *placed, uint64_t seed);

#endif
