/* Live ranges: the values of a training graph, or of one placement of it, with all that passes them on.
 *
 * A value is what one step makes in one iteration of the loops around it. It has a name wherever it is:
 * where it is made, where it enters an iteration, where it leaves a loop. A loop is run with what enters it
 * until an iteration carries what the one before did: from then on all are alike, however many there are.
 */
#ifndef ETCH_GRAPH_COST_LIVE_H
#define ETCH_GRAPH_COST_LIVE_H

#include "graph/cost/cost_int.h"

typedef struct etch_live_name {
    const etch_tensor *tensor;
    /* NULL: without a placement */
    const etch_value *value;
    /* where it is a name */
    const etch_region *region;
    /* The name that it is a view of, or of what each iteration carries on untouched; of a copy that a later
     * phase makes, what it reads for it. Itself for most. */
    uint32_t shows;
    /* of backward and recomputation */
    bool derived;
    /* made in forward, and gone if it were not kept */
    bool counts;
    /* what a loop of forward carries, at its begin, its end, or into an iteration */
    bool is_carried;
    /* of those that later phases read: which it is, in their order, from 1 */
    uint32_t order;
    /* the first op of a later phase that reads it; NULL: none */
    const etch_op *reader;
    /* a later phase reads it, where the view has that */
    bool read;
    /* bytes; NULL: not asked yet */
    etch_expr bytes;
} etch_live_name;

/* A value that a loop carries: by name, with ETCH_NO_NAME for zeros. */
typedef struct etch_live_carry {
    uint32_t init, in, out, result;
} etch_live_carry;

#define ETCH_NO_NAME UINT32_MAX
/* Of other stages. */
#define ETCH_NO_CHUNK UINT32_MAX

/* Where a chunk of a stage has a part that it reads: where it is cut, in a message that brings it though an
 * earlier chunk cuts it, or in the whole that an earlier chunk keeps though another stage cuts it. */
typedef enum etch_part_place {
    ETCH_PART_BY_POSITION,
    ETCH_PART_IS_BROUGHT,
    ETCH_PART_IS_THERE
} etch_part_place;

/* A step, or a loop. */
typedef struct etch_live_item {
    struct etch_live_loop *loop;
    /* NULL: a loop, or a step of the training graph */
    const etch_step *step;
    /* of a move: that asks for it, or the one before it where none does */
    const etch_op *op;
    ETCH_VEC(uint32_t) ins;
    ETCH_VEC(uint32_t) outs;
    /* its results are names of its operand; it reads its operands itself; another stage, or an earlier chunk
     * that keeps nothing of the operand, cuts a part off it, which only comes here in messages, as a value of
     * its own */
    bool shows, reads, is_brought;
    /* of the top level */
    etch_position position;
} etch_live_item;

typedef struct etch_live_region {
    /* the region that it is made of */
    const etch_region *of;
    ETCH_VEC(etch_live_item) items;
    ETCH_VEC(etch_live_carry) carries;
} etch_live_region;

typedef struct etch_live_loop {
    const etch_loop *loop;
    /* by class */
    ETCH_VEC(etch_live_region *) bodies;
    etch_position position;
} etch_live_loop;

/* Of a run. */
typedef enum etch_live_pass {
    ETCH_PASS_FORWARD,
    /* or its first half, where the halves are actions of their own */
    ETCH_PASS_BACKWARD,
    /* the second half */
    ETCH_PASS_WEIGHTS,
    ETCH_PASSES
} etch_live_pass;

typedef struct etch_live_program {
    const etch_training *training;
    /* NULL: of the training graph itself */
    const etch_placed *placed;
    /* NULL: one stage */
    const etch_stage_view *view;
    etch_sym *sym;
    etch_arena *arena;
    /* by tensor id; of a placement by value id */
    etch_live_name *names;
    uint32_t name_count, read_count;
    etch_live_region *forward;
    /* of a placement it may be NULL */
    etch_live_region *backward;
    /* the second half of backward, where a run has it apart; else NULL */
    etch_live_region *weights;
    /* while it is made; by step id of parts, NULL: positions say all of them */
    const etch_op *last_op;
    const etch_part_place *parts;
    /* and by value id: what an inner loop of the first half of backward carries begins with, where only the
     * second half is asked for; NULL: of others */
    etch_value **begins_with;
} etch_live_program;

/* Of a graph with a backward pass. */
etch_live_program *etch_live_of_training(const etch_training *training);
/* `hold`: what makes values, which is `forward`, and what reads them later, as in `etch_placed_saved`. It
 * lives in `arena`, as its runs do: there are as many as stages that are asked for. */
etch_live_program *etch_live_of_placed(etch_arena *arena, const etch_placed *placed,
                                       const etch_stage_view *view, etch_hold hold);
/* The same to be run: with the halves of backward apart where the stages run them so. */
etch_live_program *etch_live_of_passes(etch_arena *arena, const etch_placed *placed,
                                       const etch_stage_view *view);
/* NULL: the program has no such pass. */
const etch_live_region *etch_live_pass_of(const etch_live_program *program, etch_live_pass pass);
/* The chunk of the stage that runs what is at a position of the top level. `view`: NULL for one stage. */
uint32_t etch_live_chunk_at(const etch_stage_view *view, etch_position position);
/* The name under views. */
uint32_t etch_live_under(const etch_live_program *program, uint32_t name);
etch_expr etch_live_bytes(const etch_live_program *program, uint32_t name);

/* ---- questions (live_ask.c) ---------------------------------------------------------------------------- */

/* How often a name stands for a value that is kept. */
typedef struct etch_live_count {
    uint32_t name;
    etch_expr times;
} etch_live_count;

typedef ETCH_VEC(etch_live_count) etch_live_counts;

typedef struct etch_live_question {
    etch_expr amount;
    int64_t least;
    bool answer;
} etch_live_question;

/* What is assumed of amounts of which the facts do not say enough. */
typedef struct etch_live_answers {
    etch_sym *sym;
    etch_arena *arena;
    ETCH_VEC(etch_live_question) assumed;
    /* the first question that nothing answers */
    etch_live_question open;
    bool is_open;
} etch_live_answers;

/* Is the amount, an integer, at least that? Where nothing says so, this becomes the open question. */
bool etch_live_is_least(etch_live_answers *answers, etch_expr amount, int64_t least);
/* The same as a formula: 1 or 0. */
etch_expr etch_live_indicator(const etch_live_answers *answers, etch_expr amount, int64_t least);
/* Adds to the count of a name. */
void etch_live_add(etch_sym *sym, etch_arena *arena, etch_live_counts *counts, uint32_t name,
                   etch_expr times);
/* The counts that `fold` gives under all answers to the questions that it asks. */
typedef void (*etch_live_fold)(void *data, etch_live_answers *answers, etch_live_counts *out);
void etch_live_decide(etch_live_answers *answers, etch_live_fold fold, void *data, etch_live_counts *out);

/* ---- the fold (live_fold.c) ---------------------------------------------------------------------------- */

/* How often each name stands for a value that backward reads, each value once: under the first name, from
 * what makes it on, that something reads. */
void etch_live_kept(etch_live_program *program, etch_live_counts *out);

/* ---- gradients in parts (live_gradients.c) ------------------------------------------------------------- */

/* `program`: of ETCH_HOLD_INPUTS_TO_WEIGHTS. Adds gradients that the first half of backward makes, and that
 * are whole until they are reduced with the second; the list lives in `arena`. */
void etch_live_waiting_gradients(etch_live_program *program, etch_arena *arena, etch_saved_list *out);

#endif
