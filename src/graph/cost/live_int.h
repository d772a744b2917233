/* Declarations that the files of the fold share: the walk over names (live_walk.c), loops (live_loop.c), and
 * regions (live_fold.c). */
#ifndef ETCH_GRAPH_COST_LIVE_INT_H
#define ETCH_GRAPH_COST_LIVE_INT_H

#include "graph/cost/live.h"

/* A value of which the walk knows. */
typedef struct etch_live_value {
    /* it is counted, or there anyway */
    bool is_settled;
    /* the name whose bytes it has */
    uint32_t made_as;
} etch_live_value;

/* The value 0, for all that is settled; and the values that names of forward stand for in later phases. */
#define ETCH_LIVE_SETTLED 0
#define ETCH_LIVE_FORWARD (1u << 31)

/* What enters an iteration as one of its carried values. */
typedef struct etch_live_entry {
    /* a value from outside the loop; of its own: the first entry that is the same value */
    uint32_t value;
    /* of the loop's own: an iteration has made it */
    bool is_own;
    /* where it has more bytes than its name; else ETCH_NO_NAME */
    uint32_t made_as;
} etch_live_entry;

typedef struct etch_live_walk {
    etch_live_program *program;
    etch_sym *sym;
    etch_arena *arena;
    etch_live_answers *answers;
    /* runs the items of a region, once */
    void (*run_region)(struct etch_live_walk *walk, const etch_live_region *region, bool is_here,
                       etch_live_counts *out);
    /* of the later phases: notes what they read */
    bool is_derived;
    /* by name: the value that it stands for */
    uint32_t *now;
    ETCH_VEC(etch_live_value) values;
    /* values in the order in which they were settled, but for those that are gone */
    ETCH_VEC(uint32_t) settled;
} etch_live_walk;

/* The value that a name stands for now; a new one, made under this name. */
uint32_t etch_live_value_of(const etch_live_walk *walk, uint32_t name);
uint32_t etch_live_value_new(etch_live_walk *walk, uint32_t made_as);
/* Is the value what a later phase knows by its name of forward? */
bool etch_live_is_forward(uint32_t value);
/* From here on the name stands for the value. If something reads it, and nothing has counted it, it
 * counts. */
void etch_live_bind(etch_live_walk *walk, uint32_t name, uint32_t value, bool is_here, etch_live_counts *out);
/* Takes out the names of a body of forward, NULL: all. It is known now whether later phases read them. */
void etch_live_settle_reads(etch_live_walk *walk, const etch_region *body, etch_live_counts *counts);
/* What a loop begins with: zeros are a value like any. */
etch_live_entry etch_live_enter(etch_live_walk *walk, const etch_live_carry *carry);
/* `entries`: what enters, then what is carried. `is_here`: the stage runs it. */
void etch_live_run_iteration(etch_live_walk *walk, const etch_live_region *body, bool is_here,
                             etch_live_entry *entries, etch_live_counts *out);
void etch_live_leave(etch_live_walk *walk, const etch_live_loop *loop, const etch_live_entry *entries,
                     bool is_here, etch_live_counts *out);
/* All iterations of a loop; of the top level, as far as the stage runs them. */
void etch_live_run_loop(etch_live_walk *walk, const etch_live_loop *loop, bool is_top, bool is_here,
                        etch_live_counts *out);

#endif
