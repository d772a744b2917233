/* Declarations that the files that unroll an outline share: one rank's program in the making. */
#ifndef ETCH_LOWER_UNROLL_INT_H
#define ETCH_LOWER_UNROLL_INT_H

#include "lower/lower_int.h"

enum { ETCH_PREFIX_BYTES = ETCH_FULL_NAME + (ETCH_LOOP_DEPTH + 1) * (ETCH_LOOP_NAME + 24) };

/* Registers of all bodies for one microbatch in flight through one chunk. */
typedef struct etch_frame {
    uint32_t *registers;
    bool taken;
    uint32_t chunk;
    uint64_t microbatch;
} etch_frame;

/* Where in the step nodes are: what stands between the phase and the rest of a name, "0.layer3.", and the
 * same for annotations. */
typedef struct etch_prefix {
    char text[ETCH_PREFIX_BYTES];
    uint32_t length;
    bool in_microbatch, in_layer;
    uint64_t microbatch, layer;
} etch_prefix;

/* The last nodes that a node waits for, at any distance, by number; 0: none. All collectives and sends are in
 * one order, so that who waits for one waits for those before it. */
typedef struct etch_reach {
    uint32_t comm, receive;
    /* counted among the computations; of a computation: itself */
    uint32_t comp;
} etch_reach;

/* A computation waits for one of the so many before it: that keeps those that are ready at once few, whatever
 * the model has side by side. */
enum { ETCH_COMP_WINDOW = 8 };

/* The weight groups that an action works through. */
typedef struct etch_weight_group_count {
    /* of the unit at work, counted over the stage, from 1 on */
    uint64_t number;
    /* the next task of the top level is of another weight group */
    bool begins;
    /* the unit at work has done more than gather */
    bool computes;
} etch_weight_group_count;

/* One run of a gather. */
typedef struct etch_gather_run {
    const etch_task *task;
    /* NULL: at the top level */
    const etch_repeat *repeat;
    uint64_t iteration, microbatch, weight_group;
    /* of its node; ETCH_UNMADE: not issued yet */
    uint32_t id;
} etch_gather_run;

/* A body that is walked through; of a loop, one iteration after the other. */
typedef struct etch_body_level {
    const etch_body *body;
    /* the next one */
    uint32_t item;
    /* NULL: the top level */
    const etch_body_item *loop;
    /* the iterations that run, how many have, and which run of the body the first of the loop is */
    etch_bound_interval turns;
    uint64_t turn, first_run;
    /* of the prefix around the loop */
    uint32_t prefix_length;
    bool in_layer;
} etch_body_level;

/* An action at work: how far it is, and what it works with. */
typedef struct etch_action_run {
    /* both halves of backward in one slot are one action */
    etch_action action;
    etch_body_level levels[ETCH_LOOP_DEPTH + 2];
    uint32_t depth;
    /* of its chunk */
    etch_bound_interval layers;
    uint32_t chunk;
    /* its frame, by number, and the registers of that */
    uint32_t frame;
    uint32_t *registers;
    /* by depth: the run at work of the body at that depth */
    uint64_t run[ETCH_LOOP_DEPTH + 2];
    etch_prefix prefix;
    etch_weight_group_count weight_groups;
    /* the last microbatch goes back through the chunk */
    bool ending;
    /* halves of backward that it runs; of forward the first is all */
    bool first_half, weight_half;
    bool has_ended;
} etch_action_run;

/* Most actions that run in turns. */
enum { ETCH_SLOT_ACTIONS = 2 };

/* States of the optimizer on their way: weight groups in the order in which they are updated. */
typedef struct etch_transfers {
    ETCH_VEC(etch_due) loads, stores;
    /* by group: its nodes */
    uint32_t *load_ids, *update_ids, *store_ids;
    /* groups whose loads have been issued; that have been updated */
    uint32_t loaded, updated;
} etch_transfers;

typedef struct etch_unroller {
    /* scratch */
    etch_arena *arena;
    const etch_job *job;
    const etch_outline *outline;
    uint32_t stage;
    const etch_held *held;
    /* the slot at work, and its action whose turn it is */
    etch_action_run slot[ETCH_SLOT_ACTIONS];
    uint32_t slot_count;
    etch_action_run *at;
    /* what is added up of the nodes, as etch_unroll says */
    etch_stage_total *total;
    etch_comm_total *comm;
    etch_node *nodes;
    /* NULL: nothing is to be said */
    etch_annotated *annotated;
    uint32_t *deps;
    char *names;
    etch_peer *peers;
    uint32_t peer_count;
    uint32_t node_count, dep_count, name_bytes;
    /* messages that have gone round a ring: their tags */
    uint32_t ring_messages;
    /* by slot: its first node; NULL: nobody wants to know */
    uint32_t *slots, slots_begun;
    /* by node: its task in the form; NULL: nobody wants to know */
    uint32_t *tasks;
    ETCH_VEC(etch_frame) frames;
    /* makers of gradients, by register */
    uint32_t *gradients;
    /* by the same: what added the last microbatch to the part of a rank */
    uint32_t *reduced;
    /* of weights, in the order of the units that need them */
    ETCH_VEC(etch_gather_run) gathers;
    /* they are being looked for, and nothing is issued */
    bool finds_gathers;
    uint32_t gathers_issued, gathers_met;
    /* by register: what was gathered for all microbatches */
    uint32_t *kept;
    /* weight groups that have begun */
    uint64_t weight_group_count;
    /* the last one that has a node */
    uint64_t group_begun;
    /* by part of the backward body: buckets that stand after it */
    etch_weight_tasks *after;
    /* buckets that are complete and not issued yet */
    ETCH_VEC(etch_due) due;
    etch_flows *flows;
    /* by chunk: backward actions still to run */
    uint64_t *left;
    /* first node of the interval; of the one that communication is in, which turns do not end */
    uint32_t interval_first, comm_interval_first;
    /* last computation before it */
    uint32_t before_interval;
    /* last computation before the slot at work; before the last one, while that receives */
    uint32_t before_action;
    /* computation that the receive of the action at work waits for */
    uint32_t posted_after;
    /* by chunk, of forward and of backward: the last computation of its last action */
    uint32_t (*last_of_chunk)[2];
    uint32_t last_comp, last_comm;
    uint32_t comp_count;
    /* the last computations, by their count */
    uint32_t window_comps[ETCH_COMP_WINDOW];
    /* by node */
    etch_reach *reaches;
    /* computations that wait for the latest of these so far */
    uint32_t late_comm, late_recv;
    /* those of them that may end after the last computation before the interval */
    uint32_t ahead_comm, ahead_recv;
    etch_transfers transfers;
    /* while it is counted up */
    etch_task *norm;
    /* makes the norm of all gradients */
    uint32_t clipped;
} etch_unroller;

/* ---- unroll_nodes.c ------------------------------------------------------------------------------------ */

/* "0.", or ".mb0.stage1." of a full name. */
void etch_prefix_begin(etch_unroller *u, bool in_microbatch, uint64_t microbatch);
/* "layer3." */
void etch_prefix_extend(etch_prefix *p, etch_word loop, uint64_t iteration);
/* Records a parent of the next node, unless no node makes the value. */
void etch_unroll_wait(etch_unroller *u, uint32_t maker);
/* Appends the node of a task whose parents from `first_dep` on have been recorded. Returns its id. */
uint32_t etch_unroll_append(etch_unroller *u, const etch_task *task, uint32_t first_dep);
/* The same, in order: after what it has to follow. */
uint32_t etch_unroll_issue(etch_unroller *u, const etch_task *task, uint32_t first_dep);
/* The next nodes are an interval of their own: nodes that wait for nothing in it wait for what comes before
 * it. That is its last computation, and one that may end still later, because it waits for communication and
 * the last one does not. */
void etch_unroll_begin_interval(etch_unroller *u);
/* The next computations are those of the other action of the slot: as a new interval. Communication follows
 * what it sends and the communication before it alone, and passes meanwhile. */
void etch_unroll_begin_turn(etch_unroller *u);

/* ---- unroll_values.c ----------------------------------------------------------------------------------- */

/* Where a register of a body is in the run of it that is at work: its place; itself; what makes the value. */
uint64_t etch_register_index(const etch_unroller *u, const etch_body *body, uint32_t index);
uint32_t *etch_register_at(const etch_unroller *u, const etch_body *body, uint32_t index);
uint32_t etch_maker_of(const etch_unroller *u, etch_register reg);

/* The index of the peer among those of the program. */
uint16_t etch_unroll_peer(etch_unroller *u, etch_peer peer);
/* Records what makes what a task in work reads as a parent of the next node; gradients that it adds to. */
void etch_unroll_wait_for_reads(etch_unroller *u, const etch_task *task);
void etch_unroll_wait_for_gradients(etch_unroller *u, const etch_task *task);
/* The node has made what the task makes, which is of the body. */
void etch_unroll_made(etch_unroller *u, const etch_task *task, const etch_body *body, uint32_t node);

/* ---- unroll_ring.c ------------------------------------------------------------------------------------- */

/* The runs of an attention whose blocks go round, and the messages beside them. Returns the first node. */
uint32_t etch_unroll_ring(etch_unroller *u, const etch_task *task, const etch_body *body);

/* ---- unroll_groups.c ----------------------------------------------------------------------------------- */

/* Calls `run` for the weight groups of the tasks of a role that the stage holds, in the order of the model or
 * against it. */
void etch_unroll_each_group(etch_unroller *u, etch_end_role role, bool backwards,
                            void (*run)(etch_unroller *u, const etch_weight_task *task,
                                        uint64_t weight_group));
/* Appends the node of a task of the end for a weight group, whose parents have been recorded. */
uint32_t etch_unroll_issue_of_group(etch_unroller *u, const etch_weight_task *task, uint64_t weight_group,
                                    uint32_t first_dep);

/* ---- unroll_states.c ---------------------------------------------------------------------------------- */

/* Lists what is loaded, and issues the first loads. */
void etch_unroll_begin_states(etch_unroller *u);
/* Records the load that the update of a weight group waits for. */
void etch_unroll_wait_for_states(etch_unroller *u, const etch_weight_task *update, uint64_t weight_group);
/* The group has been updated, last by the node: the next loads begin, and its states go back. */
void etch_unroll_return_states(etch_unroller *u, const etch_weight_task *update, uint64_t weight_group,
                               uint32_t id);

/* ---- unroll_end.c -------------------------------------------------------------------------------------- */

void etch_unroll_end(etch_unroller *u);
/* Runs a task of the end of the step for one of its units, which becomes the maker of its gradients: of their
 * sums, or of the weights that they have changed. */
void etch_unroll_weight_task(etch_unroller *u, const etch_weight_task *weight_task, uint64_t weight_group);

#endif
