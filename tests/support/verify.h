/* A verifier of step programs: what holds of each, whatever the model and the plan, found without the passes
 * that make it. Tests call it after every placement. */
#ifndef ETCH_TEST_VERIFY_H
#define ETCH_TEST_VERIFY_H

#include "graph/graph.h"

/* Values of variables, as etch_subst takes them. */
typedef struct verify_binding {
    uint32_t count;
    const etch_expr *vars, *values;
} verify_binding;

/* NULL, or what does not hold, in words that name the task, the value or the weight:
 *
 * - every kernel of the placed regions is one task, in issue order, and every loop has a body for each class;
 * - what a task reads is made before it, where it can be seen, and at no later stage position;
 * - collectives are over axes of the mesh, and only messages and shared-weight reductions over those of the
 *   stages;
 * - each gradient is reduced once over each axis that it is partial over, before the norm, the updates, the
 *   gathers;
 * - each trained weight is in one weight group, and has one update and one term of the norm where there are
 *   any;
 * - FLOP and bytes of a task are the sums of its contributions. */
const char *verify_program(const etch_placed *placed);

/* NULL, or what a message sends as a partial sum: none does. */
const char *verify_messages(const etch_placed *placed);

/* NULL, or what does not hold of the views of the stages of a bound chain (`numbers` fit it): together they
 * are what the chain does without stages, each boundary of chunks is sent once in each direction, and what a
 * stage computes with it updates. `bound`: what the sizes in `numbers` are sizes of; NULL: there are no
 * variables in them. */
const char *verify_views(const etch_placed *placed, const etch_stage_numbers *numbers,
                         const verify_binding *bound);

/* verify_views of the chain in 1 to `most` stages, as many as fit, with these values. `*views` (may be NULL)
 * counts the chains. */
const char *verify_chains(const etch_placed *placed, const verify_binding *bound, uint32_t most,
                          uint32_t *views);

/* The placement itself (NULL too, which a plan that is refused gives), after having failed the test unless
 * all of the above holds; of chains where their sizes are numbers. */
etch_placed *verified(etch_placed *placed);

#endif
