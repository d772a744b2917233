/* What the files of the verifier share. */
#ifndef ETCH_TEST_VERIFY_INT_H
#define ETCH_TEST_VERIFY_INT_H

#include "verify.h"

#include "graph/step/kernel.h"

typedef struct verifying {
    const etch_placed *placed;
    const etch_step_program *program;
    etch_sym *sym;
    etch_arena *scratch;
    uint32_t *partial; /* by tensor id of a gradient: axes over which what is added to it is partial */
    uint32_t *adds;    /* by the same: how many steps add to it */
    const char *wrong; /* the first thing that does not hold */
} verifying;

/* Notes what does not hold, unless something was noted before. Always false. */
bool verify_wrong(verifying *v, const char *format, ...) ETCH_PRINTF(2, 3);
/* A task as messages name it: "backward einsum dw", "sync all_reduce over dp of w1". */
const char *verify_task_name(const verifying *v, const etch_step_task *task);
/* Are they the same for all values? */
bool verify_same(const verifying *v, etch_expr a, etch_expr b);
/* All axes of the mesh. */
uint32_t verify_mesh_axes(const verifying *v);

/* Forward and backward: tasks, loops and what they read. */
bool verify_bodies(verifying *v);
/* Fields of a task of any kind: its axes, and that its numbers are the sums of its contributions. */
bool verify_task(verifying *v, const etch_step_task *task);
/* The weight groups and the end of the step; after verify_bodies. */
bool verify_end(verifying *v);

#endif
