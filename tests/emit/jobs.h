/* Jobs for the tests of emission, made without lower: random programs over a given mesh. */
#ifndef ETCH_TEST_JOBS_H
#define ETCH_TEST_JOBS_H

#include "lower/lower.h"

enum { JOB_MAX_AXES = 4, JOB_MAX_FAMILIES = 8 };

/* What a job is made of. All ranks issue the same collectives in one order; classes differ in everything
 * else. */
typedef struct job_recipe {
    uint32_t mesh[JOB_MAX_AXES];         /* sizes, outermost first; 0 ends them */
    uint64_t families[JOB_MAX_FAMILIES]; /* masks of mesh axes; 0 ends them */
    uint32_t classes;
    uint32_t collectives;  /* in every program */
    uint32_t computations; /* about as many in every program, at least one */
    uint64_t seed;
    bool annotated; /* nodes say some of what they may say, each its own */
} job_recipe;

const etch_job *job_make(etch_arena *arena, const job_recipe *recipe);
/* `job` with its own copy of the nodes of its first program, to be broken by a test. */
etch_job *job_copy(etch_arena *arena, const etch_job *job, etch_node **nodes);

/* A reproducible sequence of numbers: the next one, below `limit` (> 0). */
uint64_t job_random(uint64_t *state, uint64_t limit);

#endif
