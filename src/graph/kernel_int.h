/* Kernels: how placed steps become nodes of a trace, and what the end of a step costs. */
#ifndef ETCH_GRAPH_KERNEL_INT_H
#define ETCH_GRAPH_KERNEL_INT_H

#include "graph/row_int.h"

/* Groups the steps of every region into kernels, in issue order, and fills what they read, write and cost.
 * Needs the finished regions; called once, by `etch_place`. */
void etch_kernels(etch_placed *placed, etch_granularity granularity);

/* Fills reads, writes, FLOP and bytes of all kernels. `made_by` says by value id which kernel makes a
 * value. */
void etch_kernel_io(etch_placed *placed, etch_kernel *const *made_by);

/* Fills `zero_axes`. Needs `weight_of` and `stages`; called once, by `etch_place`. False after an error. */
bool etch_zero_find(etch_placed *placed);

/* Where ranks hold weights in parts: puts gathers in front of what reads them. Needs `zero_axes`; called once, by
 * `etch_place`, before kernels are made. */
void etch_shard_weights(etch_placed *placed);

/* The axes that number the stages; none without stages. */
uint32_t etch_stage_axes(const etch_placed *placed);

/* Says in which dtype every move sends what it moves; called before etch_kernel_io. */
void etch_travel_find(etch_placed *placed);
/* Bytes that a rank puts into a move; of one operand of it. */
etch_expr etch_payload(const etch_placed *placed, const etch_step *move);
etch_expr etch_payload_of(const etch_placed *placed, const etch_step *move, uint32_t operand);

/* Fills `units`. */
void etch_placed_units(etch_placed *placed);

/* Fills buckets, updates, gathers and the clipping norm. Needs `weight_of`, `sync_axes` and `zero_axes`; called
 * once, by `etch_place`. */
void etch_updates(etch_placed *placed);

/* The phase of what a loop does: what it runs again is recomputed, also inside of a loop that undoes another. */
etch_phase etch_loop_phase(const etch_loop *loop);

/* ---- questions about steps ----------------------------------------------------------------------------- */

/* The role of a step's op; ROLE_MOVE for collectives, ROLE_FREE for a rank's own shard of a value. */
etch_role etch_step_role(const etch_step *step);
/* Is it an op whose result is its operand's memory: a view, or a slice of it? False for NULL. */
bool etch_step_shows(const etch_step *step);
/* The value whose memory `value` is, or is a part of: behind renames, identities and slices. `*sharded`
 * (may be NULL) is set when a rank's own shard was taken on the way. */
etch_value *etch_value_memory(etch_value *value, bool *sharded);
/* FLOP of one execution on one rank. */
etch_expr etch_step_flop(const etch_placed *placed, const etch_step *step);
etch_expr etch_step_flop_by(const etch_placed *placed, const etch_step *step, const etch_flop_rule *rule);
/* Ranks in a group over the mesh axes `axes`. */
etch_expr etch_group_size(const etch_placed *placed, uint32_t axes);

/* ---- costs ---------------------------------------------------------------------------------------------- */

/* What a kept value is as an item. */
etch_cost etch_cost_of_saved(etch_sym *sym, etch_measure measure, const etch_saved *saved);
/* What there is for a weight: `each` for one copy, of `times` copies. */
etch_cost etch_cost_of_weight(etch_measure measure, const etch_tensor *weight, etch_expr each,
                              etch_expr times);

/* The most bytes that a rank of a stage (NULL: of all) holds at a time beside states and what is kept. */
etch_expr etch_working_set(const etch_placed *placed, const etch_stage_view *stage);

/* ---- questions about weights --------------------------------------------------------------------------- */

/* The gradient of each weight by tensor id, NULL for other tensors and where there is none. */
etch_tensor **etch_gradients_by_weight(const etch_training *training, etch_arena *arena);
/* Elements of one copy of a weight that a rank updates: all that it holds, or its part of them, laid out flat
 * and padded to equal parts (R9). */
etch_expr etch_update_elements(const etch_placed *placed, const etch_tensor *weight);
/* The collectives that a weight takes part in at the end of a step, in the order in which they happen. */
typedef struct etch_ending_move {
    etch_move move; /* ETCH_NO_MOVE: there is none in this place */
    uint32_t axes;
    bool every_microbatch;
    etch_expr bytes; /* payload of one rank, for one copy */
} etch_ending_move;
enum { ETCH_ENDING_MOVES = 3 };
void etch_ending_moves(const etch_placed *placed, const etch_tensor *weight,
                       etch_ending_move moves[ETCH_ENDING_MOVES]);
/* FLOP and bytes of the optimizer for one element of `weight`, and how many of the bytes it reads (`reads` may be NULL);
 * zero without an optimizer. */
uint32_t etch_update_flop(const etch_training *training);
/* Bytes that the optimizer keeps of one element: copies that it works on, and all else. */
uint32_t etch_master_bytes(const etch_training *training);
uint32_t etch_moment_bytes(const etch_training *training);
uint32_t etch_update_bytes(const etch_training *training, const etch_tensor *weight, uint32_t *reads);
/* Bytes of an element of a gradient on its way to other ranks. */
uint32_t etch_sync_width(const etch_training *training);
/* FLOP and bytes of the sum of squares for one element of a gradient; its result is CLIP_RESULT_BYTES
 * long. */
uint32_t etch_clip_flop(const etch_training *training);
uint32_t etch_clip_bytes(const etch_training *training);
enum { CLIP_RESULT_BYTES = 4 };

#endif
