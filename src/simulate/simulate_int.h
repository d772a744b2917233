/* What the files of simulate share. */
#ifndef ETCH_SIMULATE_INT_H
#define ETCH_SIMULATE_INT_H

#include "simulate/simulate.h"

/* ---- words.c: lists of numbers, each kept once --------------------------------------------------------- */

typedef struct etch_sim_list {
    uint32_t first, count;
} etch_sim_list;

typedef struct etch_sim_words {
    etch_arena *arena;
    ETCH_VEC(uint32_t) pool;
    ETCH_VEC(etch_sim_list) lists;
    /* indices of lists plus one; the capacity is 0 or a power of two */
    uint32_t *cells;
    uint32_t capacity;
} etch_sim_words;

/* The number of the list: equal lists have the same. Numbers rise from 0 with each new list. */
uint32_t etch_sim_number(etch_sim_words *words, const uint32_t *list, uint32_t count);
const uint32_t *etch_sim_list_at(const etch_sim_words *words, uint32_t number, uint32_t *count);

/* ---- the simulation ------------------------------------------------------------------------------------ */

/* Groups of ranks that are alike: the same classes, as often, on the same levels. */
typedef struct etch_sim_group {
    uint32_t family;
    /* of `spreads` */
    uint32_t spread;
    /* different ones */
    const uint32_t *classes;
    uint32_t class_count;
} etch_sim_group;

typedef struct etch_sim {
    /* scratch, and that of the result */
    etch_arena *arena, *results;
    etch_diags *diags;
    const etch_job *job;
    const etch_simulate_options *options;
    const etch_cluster *cluster;
    /* by level: ranks of one unit of it; UINT32_MAX: all */
    const uint32_t *units;
    /* by family: the ranks of its groups, one group after the other; and by rank its group, or UINT32_MAX */
    uint32_t **members, **group_of;
    /* by family and group: how the group lies on the levels */
    uint32_t **spread_of;
    etch_sim_words spreads;
    /* by rank */
    uint32_t *class_of;
    uint32_t class_count;
    /* the one rank whose device is slow; UINT32_MAX: none is */
    uint32_t slow_class;
    /* by class */
    uint32_t *first_rank, *rank_count;
    ETCH_VEC(etch_sim_group) groups;
    /* by class and family: of `groups`, or UINT32_MAX */
    uint32_t *groups_of;
    /* of communication; by family, of messages between stages, and by axis of those along rings */
    const char **labels;
    uint32_t label_count;
    uint32_t *family_label, message_label, *ring_label;
    /* of what goes from the memory of the host, and to it; where the job has that */
    uint32_t load_label, store_label;
    /* what takes no time: communication of this label, or, as `label_count`, what computes; UINT32_MAX:
     * nothing */
    uint32_t free;
    /* what has a time of its own, and that; by number of `timed` */
    etch_sim_words timed;
    ETCH_VEC(etch_picoseconds) times;
    /* the first thing that the machine lacks; NULL: nothing */
    const char *lacks;
} etch_sim;

/* ---- simulate.c ---------------------------------------------------------------------------------------- */

/* Names what communication is over. */
void etch_sim_label(etch_sim *sim);

/* ---- levels.c ------------------------------------------------------------------------------------------ */

/* Fills what levels and groups of ranks have to do with each other. False, with an error, where the ranks do
 * not fit on the levels. Notes in the result where they divide a group unevenly. */
bool etch_sim_place(etch_sim *sim, etch_simulated *result);
/* The innermost level that two ranks are on together. */
uint32_t etch_sim_path(const etch_sim *sim, uint32_t a, uint32_t b);

/* ---- classes.c ----------------------------------------------------------------------------------------- */

/* The coarsest equitable partition of the ranks. False, with an error, where it has too many classes. */
bool etch_sim_classes(etch_sim *sim);

/* ---- durations.c --------------------------------------------------------------------------------------- */

/* What the machine is asked for a computation of so many bytes. */
etch_computation etch_sim_computation(const etch_workload *load, uint64_t bytes);
/* The largest buffer of a collective: of a gather what all put in; and what it is for the machine. */
uint64_t etch_sim_buffer(uint8_t collective, uint64_t bytes, uint32_t ranks);
etch_node_collective etch_sim_collective_of(uint8_t collective);

/* The number of a time, of `sim->times`. What the machine lacks is noted. */
uint32_t etch_sim_compute(etch_sim *sim, const etch_node *node, bool slow);
uint32_t etch_sim_collective(etch_sim *sim, const etch_node *node, uint32_t spread);
uint32_t etch_sim_message(etch_sim *sim, uint64_t bytes, uint32_t level);
uint32_t etch_sim_move(etch_sim *sim, uint64_t bytes);

/* ---- prepare.c: programs as the engine wants them ------------------------------------------------------ */

typedef struct etch_sim_message_key {
    etch_peer peer;
    uint32_t tag;
    bool receives;
    uint32_t node;
} etch_sim_message_key;

typedef struct etch_sim_program {
    const etch_class_program *of;
    /* by node: those that wait for it, from `follows[first_follower[i]]` on; for how many it waits */
    uint32_t *first_follower, *follows, *waits;
    /* COMP, LOAD, STORE: the number of its time; COLL: how many of its family are before it */
    uint32_t *detail;
    /* by family: its nodes, in order */
    uint32_t **collectives, *collective_count;
    /* sorted by all members but the last */
    etch_sim_message_key *messages;
    uint32_t message_count;
} etch_sim_program;

/* Computations wait for those before them. `streams`: communication waits for that before it in its stream
 * as well. */
etch_sim_program *etch_sim_prepare(etch_sim *sim, bool streams);
/* The node at the other end of a message, of the program of that rank. UINT32_MAX: there is none. */
uint32_t etch_sim_partner(const etch_sim_program *other, etch_peer peer, uint32_t tag, bool receives);
/* 0: computes; else its stream of communication, from 1 on; UINT32_MAX: receives wait in none. */
uint32_t etch_sim_stream(const etch_sim *sim, const etch_class_program *program, const etch_node *node);
/* Of `labels`: the axes that the communication of the program is over. */
uint32_t etch_sim_label_of(const etch_sim *sim, const etch_class_program *program, const etch_node *node);
/* All streams have numbers below this one. */
uint32_t etch_sim_streams(const etch_sim *sim);
typedef void (*etch_sim_edge_fn)(void *data, uint32_t before, uint32_t after);
/* Calls `edge` for each node that another waits for, and that node, in the order of the latter. Where
 * communication has several streams, what waits for the one before for the order alone does not wait.
 * Computations wait for those before. */
void etch_sim_each_edge(const etch_sim *sim, const etch_class_program *program, bool streams,
                        etch_sim_edge_fn edge, void *data);

/* When the host of a rank has launched the node: it launches one after the other, in issue order. */
uint64_t etch_sim_launched(const etch_sim *sim, uint32_t node);

/* ---- edges.c ------------------------------------------------------------------------------------------- */

/* By node, what it waits for: `deps` from `first[i]` to `first[i + 1]`. */
typedef struct etch_sim_edges {
    uint32_t *first;
    ETCH_VEC(uint32_t) deps;
} etch_sim_edges;

/* The edges of a program with streams, but those that others imply: who waits for whom in the end stays. */
etch_sim_edges etch_sim_fewest_edges(const etch_sim *sim, const etch_class_program *program);

/* ---- pace.c: a run in the order of time, where kernels are slower beside collectives ------------------- */

typedef struct etch_sim_pace etch_sim_pace;

/* A node may begin, or ends. */
typedef struct etch_sim_moment {
    uint64_t at;
    uint32_t class, node;
    bool begins;
} etch_sim_moment;

/* `slowdown` is at least 1, and at most 100. */
etch_sim_pace *etch_sim_pace_new(etch_arena *arena, etch_decimal slowdown, uint32_t class_count);
/* How long a kernel takes that is beside a collective all the time. */
uint64_t etch_sim_pace_longest(const etch_sim_pace *pace, uint64_t lasts);
/* A node may begin later. */
void etch_sim_pace_wait(etch_sim_pace *pace, uint64_t until, uint32_t class, uint32_t node);
/* A kernel begins, which takes so long alone; the last one of the class has ended. */
void etch_sim_pace_compute(etch_sim_pace *pace, uint64_t now, uint64_t lasts, uint32_t class, uint32_t node);
/* A collective, or a message, begins, and has its end. */
void etch_sim_pace_transfer(etch_sim_pace *pace, uint64_t now, uint64_t ends, uint32_t class, uint32_t node,
                            bool collective);
/* The next moment; none is before the one that was asked for last. False: there is none. */
bool etch_sim_pace_next(etch_sim_pace *pace, etch_sim_moment *out);

/* ---- engine.c ------------------------------------------------------------------------------------------ */

/* What begins and ends at once on all that take part. */
typedef struct etch_sim_event {
    /* hosts have launched it by `launched` */
    uint64_t begins, lasts, launched;
    /* of a computation, and of the two sides of a message, the class; UINT32_MAX */
    uint32_t class, other;
    /* of a collective; UINT32_MAX */
    uint32_t group;
} etch_sim_event;

/* One class while it runs. */
typedef struct etch_sim_agent {
    const etch_sim_program *program;
    /* by node; `ends` is UINT64_MAX until it is known */
    uint32_t *waits;
    uint64_t *begins, *ends, *error;
    /* by node: what has ended when it begins, and not before; UINT32_MAX as its class: its host launches it
     * then */
    etch_simulated_place *cause;
    /* by node: waits for the other side of its message; of a send that does not wait: has begun */
    bool *is_posted;
    /* by node, where sends are eager: when the bytes of a send have arrived; else NULL */
    uint64_t *arrives;
} etch_sim_agent;

typedef ETCH_VEC(etch_sim_event) etch_sim_events;

typedef struct etch_sim_run {
    etch_sim_agent *agents;
    /* each stands after all that it waits for; filled where it is asked for */
    etch_sim_events events;
    uint64_t step, error;
} etch_sim_run;

/* `streams`: as in etch_sim_prepare; without them no kernel is slower beside a collective. False where it
 * does not come to its end, which has been reported. */
bool etch_sim_go(etch_sim *sim, bool streams, etch_sim_run *run);

/* ---- account.c ----------------------------------------------------------------------------------------- */

/* Where the time of a class goes, in a run with streams. */
void etch_sim_account(const etch_sim *sim, const etch_sim_run *run, uint32_t class,
                      etch_simulated_class *out);
/* Fills the critical path of a run with streams. */
void etch_sim_critical(const etch_sim *sim, const etch_sim_run *run, etch_simulated *out);
/* The step where nothing overlaps in a rank: each works through its events one by one, in the order in which
 * the run begins them. False where that is too long to be counted. */
bool etch_sim_upper(const etch_sim *sim, const etch_sim_run *run, uint64_t *upper);
/* The longest that a stream of a rank communicates. */
uint64_t etch_sim_busiest(const etch_sim *sim, const etch_sim_run *run);

#endif
