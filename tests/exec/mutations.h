/* Ways of making rows of the op table wrong, which tests must notice. */
#ifndef MUTATIONS_H
#define MUTATIONS_H

#include "graph/ir/row.h"

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

/* Of the columns of optimizers; ended by one without a name. */
extern const mutation update_mutations[];

#endif
