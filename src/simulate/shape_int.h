/* Steps of one shape: they run the same nodes, and differ in how long these take, on which mesh, and in how
 * many microbatches. What does not differ is found once.
 *
 *     shape.c     what is the same, and where groups lie on a mesh
 *     tape.c      the longest paths through what slots do, as sums over tasks
 *     flow.c      how the slots of all classes wait for each other
 *     timer.c     how long tasks take
 *     lanes.c     the steps of several rows at a time */
#ifndef ETCH_SIMULATE_SHAPE_INT_H
#define ETCH_SIMULATE_SHAPE_INT_H

#include "simulate/brief_int.h"

/* ---- tape.c -------------------------------------------------------------------------------------------- */

/* What has a time of its own: a task; as the first computation of a rank, it may be longer. */
typedef struct etch_shape_entry {
    uint32_t task;
    bool starts;
    /* COLL: its family */
    uint32_t family;
} etch_shape_entry;

/* So many times an entry. */
typedef struct etch_tape_term {
    uint32_t entry, times;
} etch_tape_term;

/* Nodes one after the other, of which each but the first waits for the one before alone. Where others take
 * part in it, it is one node, and paths end where that may begin. */
typedef struct etch_tape_node {
    /* of `sources`: indices of nodes before it, and of begins, with this bit */
    uint32_t first_source, source_count;
    /* of `terms` */
    uint32_t first_term, term_count;
    /* the begin that stands for its end; UINT32_MAX: none */
    uint32_t is_begin;
    /* by begin, from here on: the number of the weight; UINT32_MAX: nobody asks for paths to here */
    uint32_t first_weight;
} etch_tape_node;
#define ETCH_TAPE_BEGIN (UINT32_C(1) << 31)

/* What slots do, node by node. The first begin is the time 0. */
typedef struct etch_tape {
    ETCH_VEC(etch_tape_node) nodes;
    ETCH_VEC(uint32_t) sources;
    ETCH_VEC(etch_tape_term) terms;
    uint32_t width, weight_count;
} etch_tape;

/* The longest path from a begin to the end of a node: the largest of other cells, which are before it, and
 * then what the node lasts, as a number of a sum. The first cell is 0: where paths begin. */
typedef struct etch_shape_cell {
    uint32_t first_source, source_count, sum;
} etch_shape_cell;

/* Of `terms`. */
typedef struct etch_shape_sum {
    uint32_t first_term, term_count;
} etch_shape_sum;

/* By weight of a tape: its cell. */
typedef struct etch_shape_tape {
    const uint32_t *cells;
} etch_shape_tape;

/* From a begin to a mark. */
typedef struct etch_shape_thread {
    /* as in etch_sim_thread; LAUNCH is the time 0 */
    etch_wait wait;
    uint32_t content;
    uint32_t cell;
} etch_shape_thread;

/* A node that others have to know, as in etch_sim_mark. */
typedef struct etch_shape_mark {
    etch_mark_kind kind;
    uint32_t first_thread, thread_count;
    /* what it lasts where others take part */
    uint32_t entry;
    /* something in its slot begins after it, and so ends after it as well */
    bool is_followed;
    uint32_t other, action, row, back, group;
} etch_shape_mark;

typedef struct etch_shape_content {
    etch_shape_mark *marks;
    uint32_t mark_count, node_count;
    ETCH_VEC(etch_shape_thread) threads;
    /* by stream: the mark of its last node; UINT32_MAX: none */
    uint32_t *last;
} etch_shape_content;

typedef struct etch_shape_base {
    uint64_t microbatches;
    const etch_shape_flow *flow;
} etch_shape_base;

struct etch_step_shape {
    etch_arena *arena;
    const etch_job *job;
    const etch_step_form *form;
    uint32_t streams;
    /* by class, which are the programs */
    etch_brief_program *programs;
    etch_shape_content **contents;
    /* of the mesh that it was made of */
    const etch_sim_group *groups;
    uint32_t group_count;
    const uint32_t *groups_of;
    ETCH_VEC(etch_shape_entry) entries;
    ETCH_VEC(etch_shape_tape) tapes;
    ETCH_VEC(etch_shape_cell) cells;
    ETCH_VEC(uint32_t) cell_sources;
    ETCH_VEC(etch_shape_sum) sums;
    ETCH_VEC(etch_tape_term) terms;
    /* flows that grow, by their microbatches; NULL: that number shows none */
    ETCH_VEC(etch_shape_base) bases;
};

typedef struct etch_tape_maker {
    etch_sim *sim;
    etch_step_shape *shape;
    /* tapes, and sums of terms, as words, each kept once */
    etch_sim_words known, known_sums;
} etch_tape_maker;

/* What the content is for a class. */
void etch_tape_make(etch_tape_maker *maker, const etch_brief_program *p, uint32_t class, uint32_t content,
                    etch_shape_content *out);

/* ---- shape.c ------------------------------------------------------------------------------------------- */

struct etch_shape_place {
    const etch_cluster *cluster;
    /* by family: numbers of ranks on each level; those of groups that are in no class are NULL */
    const uint32_t **spreads;
    /* by family */
    const uint32_t *sizes;
    /* by pair of classes, the sender first: the level of messages */
    uint32_t *levels;
};

/* ---- flow.c -------------------------------------------------------------------------------------------- */

/* An event waits for this one, and ends as much later as the cell says. */
typedef struct etch_flow_source {
    uint32_t event, cell;
} etch_flow_source;

/* What an event lasts itself. */
typedef struct etch_flow_duration {
    uint32_t entry;
    /* of a message: the classes; else UINT32_MAX */
    uint32_t sends, receives;
} etch_flow_duration;

/* An end of a mark, or of one on several classes. */
typedef struct etch_flow_event {
    uint32_t first_source, source_count;
    /* of `durations`; UINT32_MAX: what it lasts is in its cells */
    uint32_t duration;
    /* the repeat of the middle that it is in, or UINT32_MAX; and which event of that */
    uint32_t repeat, which;
    /* nothing waits for it: the step may end with it */
    bool is_last;
} etch_flow_event;

struct etch_shape_flow {
    uint64_t microbatches;
    /* of all classes together */
    uint64_t nodes;
    /* each after all that it waits for; those before the middle, repeat by repeat, those after it */
    etch_flow_event *events;
    etch_flow_source *sources;
    uint32_t event_count;
    etch_flow_duration *durations;
    uint32_t duration_count;
    /* Repeats of the middle, which wait alike; 0: there is none. By repeat: what is of it, or before it,
     * stands before this event. */
    uint32_t repeats;
    uint32_t *ends;
    /* events wait for those of so many repeats before */
    uint32_t reach;
    /* by repeat, and by event of it */
    uint32_t *repeated;
    uint32_t each_count;
    /* by class: the actions before the middle, of a repeat, and before what comes after the middle */
    uint32_t *actions_before, *actions_each, *actions_until;
    /* what comes after the middle waits for nothing before it, and the other way round: of more microbatches
     * it has more repeats, and is the same else */
    bool may_grow;
    /* so many more than there are events of */
    uint64_t extra;
};
/* The time 0, as an event. */
#define ETCH_FLOW_START 0

/* ---- lanes.c ------------------------------------------------------------------------------------------- */

/* Of rows that are timed together, a number each: picoseconds, or their errors. Whole numbers below 2^53 are
 * doubles, of which machines compare and add several at a time. */
enum { ETCH_LANES = 8 };
typedef struct etch_lanes {
    double at[ETCH_LANES];
} etch_lanes;
#define ETCH_LANES_EXACT 0x1p53

typedef struct etch_lane_room etch_lane_room;
etch_lane_room *etch_lane_room_new(etch_arena *arena);

/* Goes through a flow: of `count` rows, what each entry lasts, and each duration. False: the middle does not
 * become steady as long as there are events of it, or numbers are not exact. */
bool etch_lanes_run(etch_lane_room *room, const etch_step_shape *shape, const etch_shape_flow *flow,
                    const etch_lanes *entries, const etch_lanes *durations, uint32_t count, etch_lanes *step);

#endif
