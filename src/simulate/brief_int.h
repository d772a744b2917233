/* A step told from a brief job: stages repeat what they do, slot by slot, so that few slots have to be looked
 * at node by node.
 *
 *     slots.c     what slots do, and which of them do the same
 *     weave.c     how long it takes from what a slot waits for to what others wait for in it
 *     brief.c     the step, slot by slot */
#ifndef ETCH_SIMULATE_BRIEF_INT_H
#define ETCH_SIMULATE_BRIEF_INT_H

#include "simulate/simulate_int.h"

/* ---- slots.c ------------------------------------------------------------------------------------------- */

/* What a node waits for, as its slot sees it. */
typedef enum etch_wait_form {
    /* its host, which has launched the nodes before the slot */
    ETCH_WAIT_LAUNCH,
    /* node `what` of the slot */
    ETCH_WAIT_HERE,
    /* the last of stream `where` before the slot that is `what` slots earlier, 0: before this one */
    ETCH_WAIT_LAST,
    /* the last of stream `what` when the slot of the action `where` has ended, see below */
    ETCH_WAIT_SINCE,
    /* node `what` of the slot that does the action `where`, for the same microbatch, or for the one
     * before it */
    ETCH_WAIT_SAME,
    /* node `what` of the slot that is `where` slots earlier */
    ETCH_WAIT_BACK,
    /* there is no name for it */
    ETCH_WAIT_UNKNOWN
} etch_wait_form;

typedef struct etch_wait {
    etch_wait_form form;
    uint32_t where, what;
} etch_wait;

/* `where` of SINCE and SAME: which action of its own slot has the microbatch, and whether it is the one
 * before that which counts; from these bits on the kind of the other action, and its chunk. */
enum { ETCH_WAIT_BEFORE = 8, ETCH_WAIT_KIND = 4, ETCH_WAIT_CHUNK = 8 };
/* In `what` of SAME and BACK, with n: the node is receive number n of its slot. */
#define ETCH_WAIT_RECEIVE (UINT32_C(1) << 31)

/* The slots of a stage, of a number of microbatches. */
typedef struct etch_sim_slots {
    const etch_action *actions;
    uint64_t microbatches;
    /* from one microbatch of a chunk to the next: 1 unless the chain is there more than once */
    uint64_t step;
    /* by slot, and one more: its first action */
    uint32_t *first;
    uint32_t count;
    /* by kind, chunk and microbatch: the slot of the action */
    uint32_t *slot_of;
    uint32_t chunks;
    /* by slot: what it does; that after all slots is the end of the step */
    uint32_t *content;
} etch_sim_slots;

/* What one slot does, or several. */
typedef struct etch_sim_content {
    /* one of the brief program that does it */
    uint32_t slot;
    uint32_t node_count;
    /* by node: do others have to know when it ends? */
    bool *is_marked;
    /* by node: its number among those that are marked */
    uint32_t *mark_of;
    uint32_t mark_count;
    /* by stream: its last node of the slot; UINT32_MAX: none */
    uint32_t *last;
} etch_sim_content;

/* What is done at a place, and in how many slots of the brief step. */
typedef struct etch_sim_seen {
    uint32_t content, seen;
} etch_sim_seen;

typedef struct etch_brief_program {
    const etch_class_program *of;
    const etch_sim_program *prepared;
    etch_sim_edges edges;
    /* by node of the brief program */
    uint32_t *slot_of;
    /* by slot and stream, and of the end of the step: the last node before it; UINT32_MAX: none */
    uint32_t *last_before;
    etch_sim_slots brief, whole;
    ETCH_VEC(etch_sim_content) contents;
    /* places of slots, as words, and what is done there */
    etch_sim_words known;
    ETCH_VEC(etch_sim_seen) places;
} etch_brief_program;

/* The slots of the program of a stage, and what each does. False: the whole step does what the brief one does
 * not show. */
bool etch_brief_read(etch_sim *sim, const etch_sim_program *prepared, uint32_t stage,
                     etch_brief_program *out);
/* The slots of a stage with the whole step's microbatches, and what each does. False: that was not shown. */
bool etch_brief_whole(etch_arena *arena, etch_brief_program *p, const etch_pipe *pipe, uint32_t stage,
                      etch_sim_slots *out);
etch_wait etch_brief_wait(const etch_sim *sim, const etch_brief_program *p, uint32_t node, uint32_t dep);
/* The slot of what a slot waits for: SINCE, SAME, BACK. False: there is none. */
bool etch_slot_of_wait(const etch_sim_slots *slots, uint32_t slot, const etch_wait *wait, uint32_t *out);
/* The number of a message's action in its slot. */
uint32_t etch_brief_action(const etch_brief_program *p, uint32_t node);

/* ---- weave.c ------------------------------------------------------------------------------------------- */

/* Picoseconds, and the error of them; both are the most of all paths, each by itself. */
typedef struct etch_sim_span {
    uint64_t count, error;
} etch_sim_span;

/* `count` of what is not known yet, or of no path. */
#define ETCH_SIM_NEVER UINT64_MAX

/* What a mark comes after, and by how much. `what` of HERE, SAME and BACK is a mark. */
typedef struct etch_sim_thread {
    etch_wait wait;
    /* SAME, BACK: what the slot does */
    uint32_t content;
    etch_sim_span lasts;
} etch_sim_thread;

typedef enum etch_mark_kind {
    ETCH_MARK_ENDS,
    ETCH_MARK_SENDS,
    ETCH_MARK_RECEIVES,
    ETCH_MARK_MEETS
} etch_mark_kind;

/* A node that others have to know. Its threads lead to its end; where other ranks take part, to the time from
 * which on it may begin. */
typedef struct etch_sim_mark {
    etch_mark_kind kind;
    uint32_t first_thread, thread_count;
    etch_sim_span lasts;
    /* of a message: the class at the other end, the number of its action in the slot, the rest of its tag */
    uint32_t other, action, row, back;
    /* MEETS: of the groups of sim */
    uint32_t group;
} etch_sim_mark;

typedef struct etch_sim_weave {
    etch_sim_mark *marks;
    uint32_t mark_count;
    ETCH_VEC(etch_sim_thread) threads;
    uint32_t node_count;
    /* of all nodes, one after the other */
    uint64_t work;
    /* by stream: the mark of its last node; UINT32_MAX: none */
    const uint32_t *last;
} etch_sim_weave;

/* What the content is for a class. */
void etch_sim_weave_make(etch_sim *sim, const etch_brief_program *p, uint32_t class, uint32_t content,
                         etch_sim_weave *out);

/* ---- brief.c ------------------------------------------------------------------------------------------- */

/* The step of a brief job whose classes are known. False: the job does not show it. */
bool etch_sim_brief(etch_sim *sim, etch_step_time *out);

#endif
