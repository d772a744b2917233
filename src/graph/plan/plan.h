/* Plans as data: meshes, shards, pins, scopes, stages, ZeRO. Part of what other modules see of graph. */
#ifndef ETCH_GRAPH_PLAN_PLAN_H
#define ETCH_GRAPH_PLAN_PLAN_H

#include "graph/ir/ir.h"
#include "graph/plan/schedules/schedule.h"

#define ETCH_MAX_AXES 16

typedef struct etch_axis {
    const char *name;
    /* a variable, or an expression over variables */
    etch_expr size;
    etch_span span;
} etch_axis;

/* dim -> mesh axes, outermost first; none: cleared. */
typedef struct etch_shard {
    const char *dim;
    /* indices into the mesh */
    uint32_t axes[ETCH_MAX_AXES];
    uint32_t axis_count;
    /* does the spec have a dim of this name? Else that has been said. */
    bool known;
    /* of a pin: a dim without @ */
    bool bare;
    etch_span span;
} etch_shard;

typedef struct etch_pin {
    /* a tag, or "module.tensor" */
    const char *selector;
    /* the dims that it lists; without axes: held whole */
    ETCH_VEC(etch_shard) shards;
    /* `..`: the other dims are held as the map has them, whole else */
    bool rest;
    etch_span span;
} etch_pin;

/* ---- ZeRO ---------------------------------------------------------------------------------------------- */

/* ZeRO: ranks hold shards of that which they would hold alike.
 *
 * Level 1 divides the states of the optimizer, level 2 gradients as well, level 3 (FSDP) the weights, too. Of
 * each weight it divides what a rank holds under the plan's shards: laid out flat, padded to equal parts,
 * among the ranks of those axes of the line that replicate the weight. */

/* Weight groups that weights are gathered ahead when a plan does not say. */
enum { ETCH_ZERO_AHEAD = 1 };

/* How long the copies last that level 3 gathers. */
typedef enum etch_keep {
    /* until the unit has computed: gathered in forward, and again in backward */
    ETCH_KEEP_GROUP,
    /* from forward to backward of the same microbatch */
    ETCH_KEEP_MICROBATCH,
    /* for all microbatches */
    ETCH_KEEP_STEP
} etch_keep;

/* `zero 3 @ (nodes,gpus), root = true, keep = false, prefetch = 1, reduce = microbatch`: of the whole plan,
 * or of a scope, whose weights it is about in place of the line around it. */
typedef struct etch_zero {
    /* 0: no such line */
    uint32_t level;
    /* bits of mesh axes */
    uint32_t axes;
    /* gradients are added up whole, and reduced once a step: always so with level 1 */
    bool whole;
    /* each tensor is reduced, and gathered, by itself */
    bool by_weight;
    /* the rest: of level 3 */
    etch_keep keep;
    /* the weights that no iteration has are one weight group, whose copies last until backward */
    bool root;
    /* of `axes`: backward gathers over these only, from parts that forward leaves; 0: not said */
    uint32_t backward_axes;
    /* how many units ahead of what computes weights are gathered */
    uint64_t ahead;
    /* loops whose iterations are gathered one by one; without any, all outermost ones */
    const char *const *weight_groups;
    const etch_span *group_spans;
    uint32_t group_count;
    etch_span span;
} etch_zero;

/* ---- scopes -------------------------------------------------------------------------------------------- */

/* `for SELECTOR { .. }`: modules, loops, tags, module.tensor. */
typedef struct etch_override {
    const char *const *selectors;
    uint32_t selector_count;
    /* the scope that it stands in: its place in the plan's list plus one; 0: in none */
    uint32_t outer;
    ETCH_VEC(etch_shard) shards;
    ETCH_VEC(etch_pin) pins;
    /* level 0 and no span: it has no such line */
    etch_zero zero;
    etch_span span;
} etch_override;

/* A name for a product of mesh axes: `axis dp = (edp, ep)`. Shards and pins hold the axes themselves. */
typedef struct etch_product {
    const char *name;
    /* indices into the mesh, outermost first */
    uint32_t axes[ETCH_MAX_AXES];
    uint32_t axis_count;
    etch_span span;
} etch_product;

/* A line without effect: a line of a plan without meaning yet, as long as its axes are 1; what a plan of an
 * imported file speaks of and the spec lacks. */
typedef struct etch_pending {
    /* "zero 3 @ dp", as written; "dim A" */
    const char *text;
    /* bits of mesh axes */
    uint32_t axes;
    etch_span span;
} etch_pending;

/* `stage (embed, layer, head) @ pp, schedule = one_f_one_b`: the model is a chain of layers, the iterations
 * of the loops and the blocks that are listed, and stages take consecutive ones. */
typedef struct etch_stage_line {
    /* loops, tags, modules */
    const char *const *selectors;
    const etch_span *selector_spans;
    /* does the spec have something of this name? Else that has been said. NULL: all */
    const bool *selectors_known;
    uint32_t selector_count;
    /* indices into the mesh, outermost first: together they number the stages */
    uint32_t axes[ETCH_MAX_AXES];
    uint32_t axis_count;
    const etch_schedule *schedule;
    /* chunks of units that each stage holds: 1 unless the schedule interleaves */
    etch_expr chunks;
    /* units of each chunk, in the order of the chain; NULL: spread evenly */
    const etch_expr *counts;
    uint32_t count_count;
    etch_span span;
} etch_stage_line;

/* `pad V = 128*tp`: ranks hold the dim as if its size were a multiple of that. */
typedef struct etch_pad {
    const char *dim;
    etch_expr multiple;
    /* as in etch_shard */
    bool known;
    etch_span span;
} etch_pad;

/* How many ranks a plan asks for: what its mesh must come to. */
typedef struct etch_rank_count {
    /* NULL: it does not say */
    etch_expr count;
    etch_span span;
} etch_rank_count;

/* The share of the gradients that one collective reduces, and of the updated weights that one gathers. */
typedef enum etch_bucketing {
    /* those of a unit */
    ETCH_BUCKET_BY_LAYER,
    /* all over the same axes */
    ETCH_BUCKET_BY_STEP,
    /* so many bytes */
    ETCH_BUCKET_BY_SIZE,
    /* whole tensors, as soon as they are so many bytes: the first time ETCH_DDP_FIRST_BUCKET, and then
     * ETCH_DDP_BUCKET */
    ETCH_BUCKET_BY_TENSOR
} etch_bucketing;

/* The defaults of PyTorch's DistributedDataParallel. */
enum { ETCH_DDP_FIRST_BUCKET = 1 << 20, ETCH_DDP_BUCKET = 25 << 20 };

/* ---- offload ------------------------------------------------------------------------------------------- */

/* States of the optimizer: copies of the weights, and what else it keeps. */
enum { ETCH_OFFLOAD_MASTER = 1, ETCH_OFFLOAD_MOMENTS = 2 };

/* Weight groups that are loaded ahead when a plan does not say. */
enum { ETCH_OFFLOAD_AHEAD = 1 };

/* `offload optimizer @ host, ahead = 1`: what is in the memory of the host instead of the device's. */
typedef struct etch_offload {
    /* bits: ETCH_OFFLOAD_.. */
    uint32_t states;
    /* how many weight groups before the one that is updated states are loaded */
    uint64_t ahead;
    /* where the plan says so; nowhere when it does not */
    etch_span span;
} etch_offload;

/* ---- the plan ------------------------------------------------------------------------------------------ */

/* What backward recomputes instead of reading it from memory: loops, by their iterations; modules; tags and
 * module.tensor, whose statements make their values again. */
typedef struct etch_recomputed {
    /* NULL, where `first` is given: every loop of the top level of the model */
    const char *selector;
    etch_span span;
    /* so many iterations of the loops of the top level that are selected, counted through them in program
     * order; NULL: all */
    etch_expr first;
    /* the scope of the plan that it stands in: its place in the plan's list plus one; 0: in none */
    uint32_t place;
} etch_recomputed;

typedef struct etch_recompute {
    ETCH_VEC(etch_recomputed) selectors;
    /* every outermost loop */
    bool all;
    /* without what nobody reads */
    bool needed;
    /* bytes: besides, the fewest first iterations of the loops of the top level with which memory(peak) is no
     * more; NULL: it does not say */
    etch_expr fit;
    etch_span fit_span;
    /* where it is said; nowhere when it is not */
    etch_span span;
} etch_recompute;

typedef struct etch_plan {
    const char *name;
    /* of an imported file: made for several models */
    bool shared;
    /* NULL: one stage */
    const etch_stage_line *stage;
    /* outermost first */
    ETCH_VEC(etch_axis) mesh;
    /* mesh axes as they number the ranks, outermost first */
    uint32_t order[ETCH_MAX_AXES];
    /* 0: in the order of the mesh */
    uint32_t order_count;
    /* nowhere when it is not said */
    etch_span order_span;
    etch_rank_count ranks;
    ETCH_VEC(etch_product) products;
    ETCH_VEC(etch_pending) pending;
    ETCH_VEC(etch_pending) lacks;
    etch_zero zero;
    /* backward reads the copies that forward has gathered, which are kept (R8) */
    bool keep_gathers;
    /* where the plan says so; nowhere when it does not */
    etch_span keep_span;
    /* gradients are reduced when the whole backward pass has ended, not layer by layer */
    bool reduce_last;
    /* layer by layer in each microbatch, not once in a step */
    bool reduce_each;
    /* where the plan says so; nowhere when it does not */
    etch_span reduce_span;
    etch_offload offload;
    /* ranks that share causal queries have contiguous parts of them, of unequal work */
    bool contiguous;
    /* as reduce_span */
    etch_span balance_span;
    /* ranks that share the sequence send keys and values from one to the next; else each gathers them */
    bool rings;
    /* as reduce_span */
    etch_span attend_span;
    etch_bucketing bucketing;
    /* ETCH_BUCKET_BY_SIZE: bytes that the ranks of a group reduce, or gather, at once */
    etch_expr bucket;
    /* as reduce_span */
    etch_span bucket_span;
    /* takes the place of the train block's where the plan says so */
    etch_recompute recompute;
    /* of its classes; others are as the spec says */
    etch_precision precision;
    ETCH_VEC(etch_shard) shards;
    ETCH_VEC(etch_pin) pins;
    ETCH_VEC(etch_override) overrides;
    /* of each dim one at most */
    ETCH_VEC(etch_pad) pads;
    etch_span span;
} etch_plan;

/* The mesh axis that is at this place, counted from the outermost, when ranks are numbered. */
uint32_t etch_plan_axis_at(const etch_plan *plan, uint32_t place);
/* Bits of the axes of a list. */
uint32_t etch_axes_of(const uint32_t *axes, uint32_t count);
/* All ranks of the mesh. */
etch_expr etch_plan_ranks(etch_sym *sym, const etch_plan *plan);
/* The longest product of the plan that the list of axes begins with; NULL: none. */
const etch_product *etch_product_at(const etch_plan *plan, const uint32_t *axes, uint32_t count);

#endif
