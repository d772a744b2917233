/* Declarations that the files of cost share: items, and counting conventions (count.c, op_roles.c). */
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
/* The most bytes that a rank of a stage (`view` NULL: of all) holds at a time beside states and what is kept.
 * `stage`, which that is, and `values`: as etch_placed_workspace takes them. */
etch_expr etch_workspace_bytes(const etch_placed *placed, const etch_stage_view *view, etch_expr stage,
                               const etch_valuation *values);
/* The most bytes of states of the optimizer on the device of a stage (`view` NULL: of all) at a time, of
 * those that are in the memory of the host: of weight groups that are updated one after the other as many as
 * are loaded ahead, the one that is updated, and the one before it, which is stored. */
etch_expr etch_staging_bytes(const etch_placed *placed, const etch_stage_view *view);
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

/* The view in which a chunk of a stage of several is asked what it keeps: with all chunks before it, as what
 * they share is there once; what waits for the second half of backward each has by itself. */
const etch_stage_view *etch_view_of_kept(const etch_placed *placed, const etch_stage_view *view,
                                         etch_hold hold, uint32_t chunk);

#endif
