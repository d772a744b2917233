/* The header of simulate: a step as events on a machine, in whole picoseconds.
 *
 * It runs the programs of a job, the ones that traces are written from. A rank has one stream of computations
 * and one or several of communication; a stream runs its nodes one after the other, in issue order. A node
 * begins when all that it waits for has ended and its stream is free; a collective when it may begin on all
 * of its ranks; a message when both of its sides may. docs/time.md has the definitions. */
#ifndef ETCH_SIMULATE_H
#define ETCH_SIMULATE_H

#include "lower/lower.h"
#include "machine/machine.h"

typedef struct etch_simulate_options {
    const etch_cluster *cluster;
    /* of the cluster; NULL: kernels take as long as they do alone, and hosts launch them in no time */
    const etch_stack *stack;
    /* one rank, below that of the job, whose device computes `slow` times as long; 0: none */
    uint32_t slow_rank;
    etch_decimal slow;
    /* all collectives and sends of a rank are one stream, in the order of traces; else each set of axes has
     * one of its own */
    bool one_stream;
    /* classes have the times of their nodes */
    bool times;
} etch_simulate_options;

enum { ETCH_MOST_CLASSES = 4096 };

/* Ranks whose nodes all begin and end at the same time. */
typedef struct etch_simulated_class {
    /* of the job */
    uint32_t program;
    uint32_t first_rank, rank_count;
    /* These add up to the step. Computing; of the rest what a transfer of the rank runs in, by label;
     * something is still to come; nothing is. */
    uint64_t computing;
    const uint64_t *exposed;
    uint64_t waiting, idle;
    /* by node: when it begins, and how long it takes; NULL unless asked for */
    const uint64_t *begins, *lasts;
} etch_simulated_class;

/* A node of a class. */
typedef struct etch_simulated_place {
    uint32_t class, node;
} etch_simulated_place;

/* A group that the levels divide unevenly: its axes, and the level; of its parts one level further inside the
 * most and the fewest in one unit of the level. */
typedef struct etch_uneven {
    /* NULL: there is none */
    const char *axes, *level;
    uint32_t most, least;
} etch_uneven;

/* Times are picoseconds. */
typedef struct etch_simulated {
    uint64_t step;
    /* the step without any rounding is at most so far away */
    uint64_t error;
    /* bounds of the step: everything overlaps that may; nothing overlaps in a rank */
    uint64_t lower, upper;
    /* the axes of communication: "tp", "(dp,tp)" */
    const char *const *labels;
    uint32_t label_count;
    /* of the job, by family: of `labels`; that of messages between stages; by axis that of rings */
    const uint32_t *family_label;
    uint32_t message_label;
    const uint32_t *ring_label;
    /* of what goes from the memory of the host, and to it, where the job has that */
    uint32_t load_label, store_label;
    /* in the order of their first ranks */
    const etch_simulated_class *classes;
    uint32_t class_count;
    /* by rank */
    const uint32_t *class_of;
    /* with `times`: what the step is as long as. Each node begins when the one before it ends, which it waits
     * for; the first when the hosts of all who take part have launched it; the last ends with the step */
    const etch_simulated_place *path;
    uint32_t path_count;
    etch_uneven uneven;
    /* with `times`: the step where what communicates over a label takes no time, by label, and behind these
     * where nothing that computes does */
    const uint64_t *free;
} etch_simulated;

/* Runs the step of a job that has its workloads. The result lives in `arena`. ETCH_EINPUT, with a diagnostic:
 * the machine lacks a number, or is too small, or the ranks wait for each other; ETCH_ELIMIT: too many
 * classes. */
etch_status etch_simulate(etch_arena *arena, etch_diags *diags, const etch_job *job,
                          const etch_simulate_options *options, const etch_simulated **out) ETCH_MUST_CHECK;

/* How long a step takes, how far that may be off, and which group the levels divide unevenly: as in
 * etch_simulated. */
typedef struct etch_step_time {
    uint64_t step, error;
    etch_uneven uneven;
} etch_step_time;

/* The same, digit by digit, from a brief job of the step, in time and memory of few microbatches,
 * and little for each slot of the others. False: they cannot be told, and a job of the whole step, which
 * `etch_simulate` runs, may say why. Either the machine lacks something, or its kernels are slower beside
 * collectives, or the brief job does not show all that the step does. */
bool etch_simulate_brief(etch_arena *arena, const etch_job *job, const etch_simulate_options *options,
                         etch_step_time *out);

/* ---- steps of one shape -------------------------------------------------------------------------------- */

/* What all steps have in common that differ in nothing but the numbers of their tasks, the sizes of their
 * mesh, and how many microbatches they are of: see etch_step_form. */
typedef struct etch_step_shape etch_step_shape;
/* Where its groups lie on the levels of a cluster, with a mesh. */
typedef struct etch_shape_place etch_shape_place;
/* How its slots wait for each other, with so many microbatches. */
typedef struct etch_shape_flow etch_shape_flow;
/* Times of tasks that have been found before, as many as there is room for; of one thread. */
typedef struct etch_timer etch_timer;

/* The numbers of a task. */
typedef struct etch_task_numbers {
    uint64_t flop, bytes;
    /* COMP */
    etch_workload load;
} etch_task_numbers;

/* Each lives in the arena, as long as what it is made of. NULL: the job does not show it, or that depends on
 * more than the shape. */
etch_step_shape *etch_step_shape_make(etch_arena *arena, const etch_job *job, const etch_step_form *form,
                                      const etch_cluster *cluster);
const etch_shape_place *etch_step_shape_place(etch_arena *arena, const etch_step_shape *shape,
                                              const etch_cluster *cluster, const uint32_t *sizes);
const etch_shape_flow *etch_step_shape_flow(etch_arena *arena, etch_step_shape *shape, uint64_t microbatches);
etch_timer *etch_timer_new(etch_arena *arena);
/* Times rows of a shape, on one cluster; `stack` may be NULL. Of each row what `etch_simulate` says of the
 * step, by task of the form, is in `out` at the end, if it is told; else that has to be asked. Rows that
 * follow each other with one flow are the quickest. */
void etch_timer_begin(etch_timer *timer, const etch_step_shape *shape, const etch_cluster *cluster,
                      const etch_stack *stack);
void etch_timer_add(etch_timer *timer, const etch_shape_place *place, const etch_shape_flow *flow,
                    const etch_task_numbers *numbers, etch_step_time *out, bool *is_told);
void etch_timer_end(etch_timer *timer);

#endif
