/* Random models and plans. Equal seeds give equal models. */
#ifndef ETCH_TEST_EXEC_RANDOM_H
#define ETCH_TEST_EXEC_RANDOM_H

#include "exec_model.h"

typedef struct exec_dice {
    uint64_t state;
} exec_dice;

/* Names of the dims that models are made of, and of those of experts: experts, their slots, choices. */
enum { EXEC_INNER_DIMS = 8 };
extern const char *const exec_inner_dims[], *const exec_expert_dims[];

/* A number below `sides`. */
uint32_t exec_roll(exec_dice *dice, uint32_t sides);

/* Says which iterations of a loop are of which class: each has some. */
void exec_random_classes(exec_model *m, etch_loop *loop, exec_dice *dice);

/* A forward graph with a loss. `*recompute` gets what to give to exec_train. */
exec_model *exec_random_model(etch_arena *arena, exec_dice *dice, const char **recompute);
/* The same model, whose sums are as it was written: each an op of its own. */
exec_model *exec_random_model_as_written(etch_arena *arena, exec_dice *dice, const char **recompute);
/* The same; at times with sizes that not every plan can divide. */
exec_model *exec_random_odd_model(etch_arena *arena, exec_dice *dice, const char **recompute);
/* The same, wider: loops of no iteration to five, of one class or several; values that arrive two or three
 * iterations late; up to four microbatches. */
exec_model *exec_random_wide_model(etch_arena *arena, exec_dice *dice, const char **recompute);
/* A plan for it as text. It may ask for what cannot be; then placing it must say so. */
const char *exec_random_plan(const exec_model *m, exec_dice *dice);
/* The same on two or three stages, of one chunk or two, of the loops of the top level and some tags. */
const char *exec_random_staged_plan(const exec_model *m, exec_dice *dice);

/* What is recomputed of a model that has so many loops: nothing (NULL), everything, or some of the loops,
 * modules and tagged values. */
const char *exec_random_recompute(const exec_model *m, uint32_t loops, exec_dice *dice);

#endif
