/* Costs: what a step computes, moves and keeps, as lists of items. Part of what other modules see of
 * graph. */
#ifndef ETCH_GRAPH_COST_COST_H
#define ETCH_GRAPH_COST_COST_H

#include "graph/cost/count.h"
#include "graph/stage/stage.h"
#include "graph/step/step.h"
#include "graph/train/op_roles.h"

/* ---- what backward keeps ------------------------------------------------------------------------------- */

/* A value of the forward pass that is kept until backward, or what is recomputed there, has read it: what is
 * in memory, whatever it is called, once. Weights and inputs are there anyway. */
typedef struct etch_saved {
    /* under renames, slices and what passes in and out of modules */
    const etch_tensor *tensor;
    /* of a rank: as it lies there; else NULL */
    const etch_value *value;
    /* of the innermost loop whose iterations keep one each; NULL: kept once */
    const etch_region *body;
    /* of one, of one microbatch */
    etch_expr elements;
    /* bytes of an element */
    uint32_t width;
    /* how many of them one microbatch keeps */
    etch_expr times;
    /* the first op that reads it: why it is kept */
    const etch_op *reader;
} etch_saved;

typedef ETCH_VEC(etch_saved) etch_saved_list;
/* All of them, in the order of the forward pass. Empty without a backward pass. */
void etch_graph_saved(const etch_training *training, etch_saved_list *out);

/* Values of the forward pass of one microbatch that one rank saves until backward, or what is recomputed
 * there, has read it: each value as that reads it, a shard or a copy that forward has gathered. `stage`: what
 * it keeps of it there; NULL: there is one. As `etch_graph_saved`, with elements of the rank; `times` is of
 * the stage. `hold`: all that backward reads (ETCH_HOLD_FORWARD_TO_INPUTS); what its second half reads; what
 * its first half makes and its second half reads, where the schedule runs halves apart. */
void etch_placed_saved(const etch_placed *placed, const etch_stage_view *stage, etch_hold hold,
                       etch_saved_list *out);

/* ---- items --------------------------------------------------------------------------------------------- */

/* The quantity that a cost item counts. */
typedef enum etch_measure {
    /* elements */
    ETCH_PARAMS,
    /* of them, those that one token uses */
    ETCH_ACTIVE,
    /* FLOP, whole job, undivided */
    ETCH_FLOPS,
    /* FLOP of one rank */
    ETCH_RANK_FLOPS,
    /* bytes of one rank */
    ETCH_TRAFFIC,
    /* bytes of one rank, as comm_size counts them */
    ETCH_COMM,
    /* bytes of one rank that a ring sends */
    ETCH_WIRE,
    /* bytes between the memories of one rank's host and device */
    ETCH_HOST_TRAFFIC,
    /* bytes that the caches of one rank hold when the run has ended */
    ETCH_CACHED,
    /* bytes that one microbatch keeps for backward, whole job */
    ETCH_SAVED,
    /* the same of one rank */
    ETCH_RANK_SAVED,
    /* elements of weights that one rank holds */
    ETCH_RANK_PARAMS,
    /* bytes that one rank holds, see etch_memory */
    ETCH_HELD
} etch_measure;

/* Classes of the bytes that a rank holds. */
typedef enum etch_memory {
    ETCH_MEMORY_WEIGHTS,
    ETCH_MEMORY_GRADS,
    /* copies of the weights that the optimizer works on */
    ETCH_MEMORY_MASTER,
    /* what else it keeps of each weight */
    ETCH_MEMORY_MOMENTS,
    /* kept for backward, of all microbatches that are under way */
    ETCH_MEMORY_ACTIVATIONS,
    /* the most that is there beside that while a layer is worked on */
    ETCH_MEMORY_WORKSPACE,
    /* room for what comes from the host's memory, and goes back */
    ETCH_MEMORY_STAGING,
    /* what is in the memory of the host */
    ETCH_MEMORY_HOST,
    ETCH_MEMORY_COUNT
} etch_memory;

/* "weights", ...; NULL past the last. */
const char *etch_memory_name(etch_memory memory);

/* One contribution: `each` happens `times` times in a step; what is saved, in a microbatch. */
typedef struct etch_cost {
    etch_measure measure;
    etch_expr each, times;
    /* traffic: of `each`, what is read, of the host's memory what is loaded; the rest is written */
    etch_expr read;
    etch_phase phase;
    /* op; NULL for params; saved: what it is kept for */
    const etch_row *row;
    /* held: what */
    etch_memory memory;
    /* counts as a product */
    bool matmul;
    /* params: has a gradient */
    bool trainable;
    /* of backward: makes gradients of weights and nothing else */
    bool of_weights;
    /* of the task, where it is one that communicates */
    etch_collective collective;
    uint32_t axes;
    /* comm, wire: how many take part in it */
    etch_expr ranks;
    etch_scope *scope;
    /* flops; NULL: of the step's end */
    const etch_op *op;
    /* of one rank: of an op, or the collective; NULL at the end of a step */
    const etch_step *step;
    /* why it communicates; the same for all weights of a weight group that take part */
    etch_provenance provenance;
    /* of the innermost forward loop that it runs in, or NULL */
    const etch_region *body;
    /* the tensor it computes, or keeps, for tags and names */
    const etch_tensor *tensor;
    etch_span span;
} etch_cost;

typedef ETCH_VEC(etch_cost) etch_cost_list;
/* All items of the graph itself (ETCH_PARAMS, ETCH_FLOPS, ETCH_SAVED). `training` without a backward pass:
 * forward only. */
void etch_graph_costs(const etch_training *training, etch_cost_list *out);
/* All items of one rank (ETCH_RANK_FLOPS, ETCH_TRAFFIC, ETCH_COMM, ETCH_WIRE, ETCH_HOST_TRAFFIC, ETCH_CACHED)
 * of a stage; NULL: of the only one. */
void etch_placed_costs(const etch_placed *placed, const etch_stage_view *stage, etch_cost_list *out);
/* Of them, those of the measures with a bit in `measures` (1u << ETCH_COMM). Items of ETCH_COUNTED_MEASURES
 * need counted kernels. */
void etch_placed_costs_of(const etch_placed *placed, const etch_stage_view *stage, uint32_t measures,
                          etch_cost_list *out);

enum { ETCH_COUNTED_MEASURES = 1 << ETCH_RANK_FLOPS | 1 << ETCH_TRAFFIC };

/* ---- what one rank holds ------------------------------------------------------------------------------- */

/* Where a stage is in its pipeline: its number, how many there are, and how many chunks each of them
 * holds. */
typedef struct etch_stage_place {
    etch_expr stage, stages;
    uint32_t chunks;
} etch_stage_place;

/* What an amount is in the answer: with the values that it is asked for. NULL: it has no value there. */
typedef struct etch_valuation {
    etch_expr (*put)(void *data, etch_expr amount);
    void *data;
} etch_valuation;

/* All items of what one rank of a stage holds: ETCH_RANK_SAVED, of one microbatch; ETCH_RANK_PARAMS;
 * ETCH_HELD but for the workspace. `place`: of the stage; not read where the plan has none. */
void etch_placed_memory(const etch_placed *placed, const etch_stage_view *stage,
                        const etch_stage_place *place, etch_cost_list *out);
/* The item of the workspace. `place`: as above. `values`: where they make every amount a number it is one,
 * without a formula after it; NULL: a formula. */
void etch_placed_workspace(const etch_placed *placed, const etch_stage_view *stage,
                           const etch_stage_place *place, const etch_valuation *values, etch_cost_list *out);

/* ---- conventions (count.h) ----------------------------------------------------------------------------- */

/* Is known what the convention needs: which dim is the tokens of a sequence, when only the last one is to
 * count? */
bool etch_count_fits(const etch_count *count, const etch_op_roles *roles);
/* An item of FLOP as the convention has it; others stay as they are. `placed`: where the item is of one rank.
 * False: it does not count. */
bool etch_count_apply(const etch_count *count, const etch_op_roles *roles, const etch_training *training,
                      const etch_placed *placed, etch_cost *item);

#endif
