/* Declarations that the files of cost share: items, and counting conventions (count.c). */
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
etch_expr etch_workspace_bytes(const etch_placed *placed, const etch_stage_view *view,
                               const etch_stage_place *place, const etch_valuation *values);
/* The most bytes of states of the optimizer on the device of a stage (`view` NULL: of all) at a time, of
 * those that are in the memory of the host: of weight groups that are updated one after the other as many as
 * are loaded ahead, the one that is updated, and the one before it, which is stored. */
etch_expr etch_staging_bytes(const etch_placed *placed, const etch_stage_view *view);
/* By tensor id of a weight: how much of it one token uses; NULL where no op reads it. */
etch_expr *etch_active_shares(const etch_graph *graph, etch_arena *arena);

/* The view in which a chunk of a stage of several is asked what it keeps: with all chunks before it, as what
 * they share is there once; what waits for the second half of backward each has by itself. */
const etch_stage_view *etch_view_of_kept(const etch_placed *placed, const etch_stage_view *view,
                                         etch_hold hold, uint32_t chunk);

#endif
