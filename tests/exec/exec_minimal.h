/* Communication that a placed graph could do without, as far as a look at it shows: what is moved twice,
 * moved to be cut, moved and moved back, reduced too early, or in two steps. */
#ifndef ETCH_TEST_EXEC_MINIMAL_H
#define ETCH_TEST_EXEC_MINIMAL_H

#include "graph/graph.h"

typedef enum exec_waste {
    EXEC_TWICE, /* a value goes to the same place twice in one phase of one region */
    EXEC_AFAR,  /* a value is moved from where it was made, and a copy on the way is there */
    EXEC_CUT,   /* it is made whole, and each reader takes its part */
    EXEC_BACK,  /* it is divided and gathered with nothing between */
    /* summands are added, and the only reader is linear in the sum and makes less of it, or is summed again
     * */
    EXEC_EARLY,
    EXEC_CHAIN, /* two collectives of a kind, one behind the other */
    EXEC_WASTES
} exec_waste;
extern const char *const exec_waste_names[EXEC_WASTES];

typedef struct exec_finding {
    exec_waste waste;
    const etch_step *step;
    bool is_greedy; /* docs/placement.md says so */
    const char *text;
} exec_finding;

typedef ETCH_VEC(exec_finding) exec_findings;

/* Everything that is found. Axes of one rank do not count. */
void exec_find_waste(const etch_placed *placed, exec_findings *out);

#endif
