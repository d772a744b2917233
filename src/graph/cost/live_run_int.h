/* Declarations that the files of a run share: turns (live_turns.c), memory (live_memory.c), cuts
 * (live_cuts.c), weights that ranks hold in parts (live_weights.c), and steps and regions (live_run.c). */
#ifndef ETCH_GRAPH_COST_LIVE_RUN_INT_H
#define ETCH_GRAPH_COST_LIVE_RUN_INT_H

#include "graph/cost/live_run.h"

/* What a step takes, in operations on formulas. */
enum { ETCH_OPERATIONS_OF_STEP = 8 };

/* ---- turns --------------------------------------------------------------------------------------------- */

/* The loop of forward that it undoes or repeats, or itself. */
const etch_loop *etch_live_root_of(const etch_loop *loop);
/* Finds the turns of the loops of a region that have none yet. */
void etch_live_find_turns(const etch_live_run *run, const etch_live_region *region);

/* ---- memory -------------------------------------------------------------------------------------------- */

etch_live_event *etch_live_event_now(const etch_live_run *run);
void etch_live_begin_event(etch_live_run *run, uint32_t chunk);
/* A number for the turns of the loops around a region that are run, below `size`. */
uint32_t etch_live_turns_at(const etch_live_run *run, const etch_region *region, uint32_t *size);
/* How many iterations the turns stand for in which the region is run; `outer`: of the loop of the top level,
 * too. */
etch_expr etch_live_copies_of(const etch_live_run *run, const etch_region *region, bool outer);
/* From here on the name stands for the memory; 0: for none. */
void etch_live_put(const etch_live_run *run, uint32_t name, uint32_t memory);
/* Memory that the event now makes under the name. */
etch_live_memory *etch_live_make(etch_live_run *run, uint32_t name);
/* Has forward made it, for backward? */
bool etch_live_is_from_forward(const etch_live_run *run, const etch_live_memory *memory);
/* The event now reads it. Copies that are gathered together are gone together, but for what waits. */
void etch_live_read_memory(etch_live_run *run, uint32_t id);
void etch_live_read_name(etch_live_run *run, uint32_t name);

/* ---- cuts ---------------------------------------------------------------------------------------------- */

/* Does a message take the value along where the stages are cut before an iteration? Zeros, which are not
 * sent, are memory where they are read. */
bool etch_live_is_sent(const etch_live_run *run, const etch_cut *cut, bool backward, uint32_t name,
                       etch_expr iteration);
/* At the top level the chunk makes the name. */
void etch_live_note_origin(etch_live_run *run, uint32_t name, uint32_t chunk);
/* Has the chunk made what the name stands for, or does a message bring it under this name? What nothing after
 * a cut reads is not sent over it, also where its memory is, for another name. */
bool etch_live_has(const etch_live_run *run, uint32_t name, uint32_t chunk);

/* ---- weights ------------------------------------------------------------------------------------------- */

void etch_live_find_groups(etch_live_run *run);
/* A pass begins; of a loop of the top level an iteration begins, or it ends here; a step is run. */
void etch_live_begin_pass(etch_live_run *run);
void etch_live_begin_iteration(etch_live_run *run, const etch_live_loop *loop, uint32_t chunk);
void etch_live_end_loop(etch_live_run *run, uint32_t chunk);
void etch_live_count_group(etch_live_run *run, const etch_step *step, uint32_t chunk);
/* Gathers weights, from parts that are read with that. */
void etch_live_gather(etch_live_run *run, const etch_live_item *item, uint32_t chunk);
/* Makes what forward leaves of copies for backward to gather from. */
void etch_live_make_part(etch_live_run *run, const etch_live_item *item, uint32_t k, uint32_t chunk);
/* Behind all passes: what the next microbatches gather meanwhile. */
void etch_live_gather_next(etch_live_run *run);
/* A weight group has computed when the gradients of its weights are made: its copies are there until then. */
void etch_live_reach_copies(etch_live_run *run, const etch_tensor *weight, uint32_t chunk);
/* The whole gradient is there from the first step that adds to it on: until the iteration ends, or until the
 * last gradient of the weight group is made. */
void etch_live_add_to_whole(etch_live_run *run, const etch_live_item *item, uint32_t k, uint32_t chunk);

#endif
