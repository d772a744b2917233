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

/* Kinds of statements, bits of `kinds` of a model. */
typedef enum exec_kind {
    EXEC_KIND_ACTIVATION,
    EXEC_KIND_HAND_NORM,
    EXEC_KIND_GAIN_PLUS_ONE,
    EXEC_KIND_HAND_SOFTMAX,
    EXEC_KIND_PARALLEL_SUM,
    EXEC_KIND_COPIES,
    EXEC_KIND_CONSTANT,
    EXEC_KIND_IOTA,
    EXEC_KIND_BUFFER,
    EXEC_KIND_SCATTER,
    EXEC_KIND_CONTRAST,
    EXEC_KIND_CAST,
    EXEC_KIND_GROUPED,
    EXEC_KIND_NO_GRADIENT,
    EXEC_KIND_BRANCHES,
    EXEC_KIND_CACHE,
    EXEC_KIND_ROLLING,
    EXEC_KINDS
} exec_kind;
extern const char *const exec_kind_names[EXEC_KINDS];

/* A number below `sides`. */
uint32_t exec_roll(exec_dice *dice, uint32_t sides);

/* A forward graph with a loss. `*recompute` gets what to give to exec_train. */
exec_model *exec_random_model(etch_arena *arena, exec_dice *dice, const char **recompute);
/* Some classes of iterations of the loops of the top level are to be recomputed, others only as `recompute`
 * says. False: no loop has several. */
bool exec_random_recompute_part(const exec_model *m, exec_dice *dice);
/* The same; at times with sizes that not every plan can divide. */
exec_model *exec_random_odd_model(etch_arena *arena, exec_dice *dice, const char **recompute);
/* The same, wider: loops of no iteration to five, of one class or several; values that arrive two or three
 * iterations late; up to four microbatches. */
exec_model *exec_random_wide_model(etch_arena *arena, exec_dice *dice, const char **recompute);
/* As the first, with kinds of statements that it lacks: functions of which the result or the argument
 * is kept, norms by hand, buffers, keys with fewer heads than queries, and more (exec_kind). Plans: those of
 * exec_random_rich_plan. */
exec_model *exec_random_rich_model(etch_arena *arena, exec_dice *dice, const char **recompute);
/* The same, of sizes that no mesh divides; also with the loops of wide models. Plans: those of
 * exec_random_padded_plan. */
exec_model *exec_random_padded_model(etch_arena *arena, exec_dice *dice, const char **recompute);
exec_model *exec_random_wide_padded_model(etch_arena *arena, exec_dice *dice, const char **recompute);
/* The same as the rich one, whose sums are as it was written: each an op of its own. */
exec_model *exec_random_as_written(etch_arena *arena, exec_dice *dice, const char **recompute);
/* A model that is served, with caches of which some roll: to be placed as it is. */
etch_training *exec_random_served_model(etch_arena *arena, exec_dice *dice, exec_model **model);
/* A plan for it as text. It may ask for what cannot be; then placing it must say so. */
const char *exec_random_plan(const exec_model *m, exec_dice *dice);
/* The same with two axes for keys and queries, and padded dims where the model has sizes that nothing
 * divides. */
const char *exec_random_rich_plan(const exec_model *m, exec_dice *dice);
/* The same that pads all dims that it divides. */
const char *exec_random_padded_plan(const exec_model *m, exec_dice *dice);
/* The same on two or three stages, of one chunk or two, of the loops of the top level and some tags. */
const char *exec_random_staged_plan(const exec_model *m, exec_dice *dice);
const char *exec_random_rich_staged_plan(const exec_model *m, exec_dice *dice);
const char *exec_random_padded_staged_plan(const exec_model *m, exec_dice *dice);
/* The same, of any schedule: each of the table, or an order that is listed. */
const char *exec_random_scheduled_plan(const exec_model *m, exec_dice *dice);
const char *exec_random_rich_scheduled_plan(const exec_model *m, exec_dice *dice);
const char *exec_random_padded_scheduled_plan(const exec_model *m, exec_dice *dice);
/* Such a schedule for so many stages, as a stage line says it. */
const char *exec_random_schedule(const exec_model *m, exec_dice *dice, uint32_t stages);

/* What is recomputed of a model that has so many loops: nothing (NULL), everything, or some of the loops,
 * modules and tagged values. */
const char *exec_random_recompute(const exec_model *m, uint32_t loops, exec_dice *dice);

#endif
