/* Specs with numbers: what the language makes of a text, with every param bound, so that it can be run. */
#ifndef ETCH_TEST_EXEC_BIND_H
#define ETCH_TEST_EXEC_BIND_H

#include "graph/graph.h"

typedef struct exec_bound {
    etch_diags *diags;
    etch_training *training; /* NULL after an error */
    const etch_plan *plan;   /* the one that the spec uses */
} exec_bound;

/* Reads `text` as the file `path`, which imports are relative to; takes the run, the config and the plan that
 * it uses. `sets`: as --set has them, or NULL. Sizes of the graph and of the mesh become numbers where params
 * have values. `text` NULL: that of the file. */
exec_bound exec_bind(etch_arena *arena, const char *path, const char *text, const char *run, const char *plan,
                     const char *sets);

/* The plans of a spec that trains a model and has no other runs; none of others. */
const char *const *exec_plan_names(etch_arena *arena, const char *path, uint32_t *count);

/* Messages as a user reads them. */
const char *exec_messages(etch_arena *arena, const etch_diags *diags);

#endif
