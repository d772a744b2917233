/* A step program to make mistakes in, for the test of the verifier. */
#ifndef ETCH_TEST_VICTIM_H
#define ETCH_TEST_VICTIM_H

#include "sample.h"

/* The axis of the stages, after DP and TP. */
enum { PP = 2 };

typedef struct victim {
    etch_placed *placed;
    etch_step_program *program;
    etch_step_body *forward, *layer; /* the top level of forward, and the body of its loop */
    etch_step_repeat *loop;
    etch_step_body *backward, *layer_back;
    etch_sym *sym;
} victim;

/* A tied decoder of three layers in stages over PP, clipped, with a program of its own; `level`: of ZeRO,
 * over DP. */
victim victim_new(etch_arena *arena, uint32_t level);
/* The first task of the body whose anchor is of the row. */
etch_step_task *victim_task(const etch_step_body *body, const char *row);
/* The place in the end of the task of this role that so many come before; the first task of the role. */
uint32_t victim_place(const victim *x, etch_end_role role, uint32_t number);
etch_step_task *victim_end(const victim *x, etch_end_role role);
/* The kernel of a task of the top level of forward, or of its loop. */
etch_kernel *victim_kernel(const victim *x, const etch_step_body *body, const etch_step_task *task);

/* A vector without one of its members. */
#define TAKE_OUT(vec, place)                                    \
    do {                                                        \
        for (uint32_t k_ = (place); k_ + 1 < (vec).count; k_++) \
            (vec).at[k_] = (vec).at[k_ + 1];                    \
        (vec).count--;                                          \
    } while (0)

#define SWAP(type, a, b)     \
    do {                     \
        type swapped_ = (a); \
        (a) = (b);           \
        (b) = swapped_;      \
    } while (0)

#endif
