/* Ways to make a column of the op table wrong. */
#ifndef ETCH_TEST_MUTATIONS_H
#define ETCH_TEST_MUTATIONS_H

#include "graph/ir/families/family.h"

/* What must notice. */
typedef enum witness {
    BY_NUMBERS, /* the executor: results, gradients, FLOP, ranks */
    BY_TRAFFIC, /* bytes that are counted on a run */
    BY_PROFILE, /* costs as they are written down */
    BY_HELP     /* what `etch help ops` tells the user */
} witness;

/* One way of making a row wrong. False: it does not apply to this row. */
typedef struct mutation {
    const char *name;
    witness seen;
    bool (*apply)(etch_row *row);
} mutation;

/* Ends with a name that is NULL. */
extern const mutation mutations[];

/* Is it of the end of a step? */
bool is_of_step(const etch_row *row);

#endif
