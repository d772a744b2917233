/* Declarations that the files of cost share: items, counting conventions (count.c, op_roles.c), and saved
 * values: the count (saved.c), one rank's part of it (rank_saved.c), and which of it lies on a stage
 * (saved_stage.c). */
#ifndef ETCH_GRAPH_COST_COST_INT_H
#define ETCH_GRAPH_COST_COST_INT_H

#include "graph/cost/cost.h"
#include "graph/step/kernel.h"

/* ---- items --------------------------------------------------------------------------------------------- */

/* The item of a saved value. */
etch_cost etch_cost_of_saved(etch_sym *sym, etch_measure measure, const etch_saved *saved);
/* The item of a weight: `each` for one copy, of `times` copies. */
etch_cost etch_cost_of_weight(etch_measure measure, const etch_tensor *weight, etch_expr each,
                              etch_expr times);
/* The most bytes that a rank of a stage (NULL: of all) holds at a time beside states and what is kept.
 * `values`: as etch_placed_workspace takes them. */
etch_expr etch_workspace_bytes(const etch_placed *placed, const etch_stage_view *stage,
                               const etch_valuation *values);
/* By tensor id of a weight: how much of it one token uses; NULL where no op reads it. */
etch_expr *etch_active_shares(const etch_graph *graph, etch_arena *arena);

/* ---- op_roles.c ---------------------------------------------------------------------------------------- */

/* The roles of an op for a counting convention, beside its row. */
typedef enum etch_op_role_bit {
    /* a product that chooses experts */
    ETCH_OP_ROUTER = 1 << 0,
    /* a product whose result, element by element, the loss or the caller reads */
    ETCH_OP_LOGITS = 1 << 1,
    /* a norm of what a weight has projected and the next weights project again */
    ETCH_OP_LATENT_NORM = 1 << 2,
    /* looks up rows of a weight */
    ETCH_OP_EMBEDDING = 1 << 3,
    /* a product of scores, some of which a mask hides, with all pairs of tokens */
    ETCH_OP_MASKED = 1 << 4,
    /* a norm in a statement tagged `mtp`: around a prediction of further tokens */
    ETCH_OP_MTP_NORM = 1 << 5
} etch_op_role_bit;

struct etch_op_roles {
    /* by id of a forward op: bits of etch_op_role_bit */
    unsigned char *of;
    /* placements add ops, which have no marks */
    uint32_t op_count;
    /* by dim id: tokens of a sequence, which attend to each other */
    bool *sequence;
    /* is there such a dim? */
    bool has_sequence;
};

/* ---- saved_stage.c ------------------------------------------------------------------------------------- */

/* Where in the chain of stages values are read. All functions take NULL, too: everything is in one place. */
typedef struct etch_saved_stage etch_saved_stage;
etch_saved_stage *etch_saved_stage_new(const etch_placed *placed, const etch_stage_view *view);
/* Notes that the value is read at `position`, unless that is ETCH_NO_POSITION; is that new? */
bool etch_saved_stage_note(etch_saved_stage *stage, const etch_tensor *place, etch_position position);
/* The stage position of the first or the last iteration of the loop of the top level around `body`, of
 * forward or recomputed. */
etch_position etch_saved_stage_side(const etch_saved_stage *stage, const etch_region *body, etch_side side);
/* How many of the values at this place there are: one for each iteration of the loops around it, of those
 * that the stage runs; at top level 1 where the stage reads it, else 0. */
etch_expr etch_saved_stage_times(const etch_saved_stage *stage, etch_sym *sym, const etch_tensor *place);
/* How often the stage runs the first or the last iteration of the loop with this body. */
etch_expr etch_saved_stage_ends(const etch_saved_stage *stage, etch_sym *sym, const etch_region *body,
                                etch_side side);
/* In how many intervals of iterations the stage runs the loop: what enters one was made by another stage. */
etch_expr etch_saved_stage_intervals(const etch_saved_stage *stage, etch_sym *sym, const etch_region *body);
/* How the values of a training graph are carried on from iteration to iteration. */
typedef struct etch_saved_ways etch_saved_ways;
etch_saved_ways *etch_saved_ways_new(const etch_training *training);
/* The loop-carried value that enters an iteration as this tensor; NULL: nothing does. */
const etch_carry *etch_saved_carry_in(const etch_saved_ways *w, const etch_tensor *tensor);
const etch_loop *etch_saved_loop_of(const etch_carry *carry);
/* The same value in another class of iterations. */
const etch_carry *etch_saved_in_class(const etch_carry *carry, uint32_t class);
/* The tensor that an iteration carries out: made in it, or one that has entered it as this or another value,
 * or one that is older than the loop. */
const etch_tensor *etch_saved_carried_out(etch_saved_ways *w, const etch_carry *carry);
/* Does an iteration carry on what has entered it? Does every iteration? */
bool etch_saved_is_invariant(etch_saved_ways *w, const etch_carry *carry);
bool etch_saved_is_forwarded(etch_saved_ways *w, const etch_carry *carry);
/* Does each iteration make what it carries on? Does an iteration of any class? */
bool etch_saved_is_produced(etch_saved_ways *w, const etch_carry *carry);
bool etch_saved_some_produce(etch_saved_ways *w, const etch_carry *carry);
/* Another value, of which this one is the version before: the iterations make that and carry on here what it
 * was. NULL for others. */
const etch_carry *etch_saved_ahead_of(etch_saved_ways *w, const etch_carry *carry);
/* The value in memory. What a loop carries untouched is what entered it. */
const etch_tensor *etch_saved_place_of(etch_saved_ways *w, const etch_tensor *tensor);

/* ---- saved.c ------------------------------------------------------------------------------------------- */

/* A value of the forward pass, or of what is recomputed, that is read by a later phase. */
typedef struct etch_reading {
    const etch_tensor *tensor;
    const etch_op *reader;
    /* of the reader; ETCH_NO_POSITION without stages */
    etch_position position;
} etch_reading;

typedef struct etch_readings {
    /* in the order of the backward pass */
    ETCH_VEC(etch_reading) all;
    /* in how many parts values lie on ranks, each of which keeps one */
    etch_expr shards;
    /* whose ranks those are; NULL: of the whole job */
    const etch_placed *placed;
} etch_readings;

/* Fills in the values that are saved for these reads. */
void etch_saved_for(const etch_training *training, const etch_readings *readings, etch_saved_stage *stage,
                    etch_saved_list *out);

#endif
