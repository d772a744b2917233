/* Placed graphs: how ranks hold each tensor, and the collectives where two placements differ. Part of what
 * other modules see of graph. */
#ifndef ETCH_GRAPH_PLACE_PLACE_H
#define ETCH_GRAPH_PLACE_PLACE_H

#include "graph/ir/cursor.h"
#include "graph/place/provenance.h"
#include "graph/train/train.h"

/* Products of later passes over a placed graph; their headers (graph/stage, graph/step) say more. */
typedef struct etch_stages etch_stages;
typedef struct etch_kernel etch_kernel;
typedef struct etch_step_program etch_step_program;

/* State of one tensor on one mesh axis. */
typedef const etch_dim *etch_state;          /* NULL: replicated; a dim: sharded on it */
extern const etch_dim etch_partial_mark;     /* its address: a partial sum */
extern const etch_dim etch_partial_max_mark; /* its address: a partial maximum */
#define ETCH_PARTIAL (&etch_partial_mark)
#define ETCH_PARTIAL_MAX (&etch_partial_max_mark)

/* Has each rank what its part of the work gave, be it a summand or a maximum? */
static inline bool etch_is_partial(etch_state state)
{
    return state == ETCH_PARTIAL || state == ETCH_PARTIAL_MAX;
}

static inline bool etch_is_sharded(etch_state state)
{
    return state && !etch_is_partial(state);
}

/* The same, or whole where it is partial. */
static inline etch_state etch_without_partial(etch_state state)
{
    return etch_is_partial(state) ? NULL : state;
}

/* Bits of the axes of the plan on which the state of a placement is this one. */
uint32_t etch_axes_held(const etch_plan *plan, const etch_state *place, etch_state state);
/* Bits of those on which it is partial, in one way or the other; no value is partial in both. */
uint32_t etch_axes_partial(const etch_plan *plan, const etch_state *place);

/* A tensor as one placement holds it. */
typedef struct etch_value {
    etch_tensor *tensor;
    /* by mesh axis */
    etch_state *place;
    /* of a weight, for most 0: axes among whose ranks the elements that `place` gives a rank are divided,
     * laid out flat and padded to equal parts */
    uint32_t sharded_flat;
    /* of what goes round a ring: blocks of it that a rank has at once; NULL for all else */
    etch_expr blocks;
    /* what makes it; NULL for inputs, weights, arguments of loop bodies, constants */
    struct etch_step *step;
    /* as etch_tensor.made: of a part of a sum its own */
    etch_expr made;
    uint32_t id;
} etch_value;

/* Where in the chain of layers something of the top level runs: with a block, with the first or the last
 * iteration of a loop, or with all of them. Along the chain stage positions grow. */
typedef uint32_t etch_position;
#define ETCH_NO_POSITION UINT32_MAX
#define ETCH_NO_SEGMENT UINT32_MAX

enum { ETCH_SIDES = 3 };

typedef enum etch_side { ETCH_FIRST_OF, ETCH_ALL_OF, ETCH_LAST_OF } etch_side;

static inline etch_position etch_position_at(uint32_t segment, etch_side side)
{
    return ETCH_SIDES * segment + (uint32_t)side;
}

static inline uint32_t etch_position_segment(etch_position position)
{
    return position / ETCH_SIDES;
}

static inline etch_side etch_position_side(etch_position position)
{
    return (etch_side)(position % ETCH_SIDES);
}

/* An op as one placement runs it, or a reshard between placements. */
typedef struct etch_step {
    /* NULL for a collective of the step's end (gradient bucket, clip) */
    etch_op *op;
    /* of the op; the collective's row for reshards */
    const etch_row *row;
    etch_collective collective;
    /* of a reshard: bit i for mesh axis i */
    uint32_t axes;
    /* of a reshard: dtype of what is sent, */
    etch_dtype comm_dtype;
    /* and how many elements share a scale that is sent as well; 0: none */
    uint32_t block;
    /* which dim each axis divides the work along */
    etch_state *factor;
    /* of causal queries in contiguous parts, which of them the rank has, from 0; NULL: equal work */
    etch_expr work_share;
    /* bits of axes along whose ranks blocks of operands go round while it runs, once for each: see
     * etch_ring_of; 0: there are none, and it runs once */
    uint32_t ring;
    etch_value **ins, **outs;
    uint32_t in_count, out_count;
    /* by result: the gradient that it is added into in place, or NULL */
    etch_tensor **accumulate_into;
    etch_phase phase;
    etch_scope *scope;
    /* of a reshard: why it is there */
    etch_provenance provenance;
    /* of several weights that are gathered at once, by operand: how often one run finds each; NULL for all
     * else */
    const etch_expr *copies;
    /* of a gather of weights, which stands where the weight group of level 3 begins that reads them: an
     * iteration of an outermost loop, or what lies between loops and in one stage. Lowering may issue it up
     * to `plan->zero.ahead` weight groups earlier. Its copies live until the weight group has computed,
     * unless this says more, and are gone together. */
    etch_keep lasts;
    /* of backward, where the schedule runs its halves apart: of the second (etch_halves_find) */
    bool weight_half;
    /* index in the region's kernels, or UINT32_MAX (no node) */
    uint32_t kernel;
    /* of one rank, of a step of a kernel (etch_kernels_count) */
    etch_expr flop;
    /* of the top level: where in the chain of stages */
    etch_position position;
    uint32_t id;
} etch_step;

typedef struct etch_placed_item {
    /* one of the two */
    etch_step *step;
    struct etch_placed_loop *loop;
} etch_placed_item;

typedef struct etch_placed_carry {
    /* init NULL: zeros; as in etch_carry */
    etch_value *init, *in, *out, *result;
    /* as of a step: the second half hands it on */
    bool weight_half;
} etch_placed_carry;

typedef struct etch_placed_region {
    ETCH_VEC(etch_placed_item) items;
    /* in issue order */
    ETCH_VEC(etch_kernel *) kernels;
    /* whose body it is, and the region around that; NULL at top level */
    struct etch_placed_loop *loop;
    const struct etch_placed_region *parent;
    /* the region that it places */
    const etch_region *of;
    ETCH_VEC(etch_placed_carry) carries;
} etch_placed_region;

typedef struct etch_placed_loop {
    etch_loop *loop;
    /* by class, as those of the loop */
    ETCH_VEC(etch_placed_region *) bodies;
    struct etch_placed_loop *forward;
    /* of the top level: ETCH_ALL_OF a segment that is this loop, or where all of it runs */
    etch_position position;
} etch_placed_loop;

ETCH_CURSOR(etch_placed_cursor, etch_placed_region, etch_placed_item);

/* `divisor` must divide `size` when the plan is bound. */
typedef struct etch_requirement {
    const etch_dim *dim;
    etch_expr size, divisor;
    /* bits of the axes in the divisor */
    uint32_t axes;
    /* the number of microbatches is in the divisor */
    bool micro;
    /* so is a 2: causal queries are shared in pairs of chunks */
    bool paired;
    /* the line of the plan that asks for it */
    etch_span span;
} etch_requirement;

typedef struct etch_placed {
    const etch_training *training;
    const etch_plan *plan;
    etch_arena *arena;
    /* backward may be NULL */
    etch_placed_region *forward, *backward;
    /* these, and all bodies of their loops */
    ETCH_VEC(etch_placed_region *) regions;
    /* of the model, as the scopes of the plan see it */
    const struct etch_plan_regions *plan_regions;
    /* NULL: the plan has one stage */
    etch_stages *stages;
    /* by tensor id: the placed weight, or NULL */
    etch_value **weight_of;
    /* By tensor id of a weight: axes over which its gradient is partial, and axes among whose ranks its
     * optimizer states are divided. */
    uint32_t *sync_axes, *zero_axes;
    /* those of the training graph, apart where their weights are in different stages */
    ETCH_VEC(etch_weight_group *)
    weight_groups;
    const etch_step_program *program;
    /* its tasks and kernels have their FLOP and bytes of memory (etch_kernels_count) */
    bool counted;
    ETCH_VEC(etch_requirement) requirements;
    /* the plan's rings reach no attention */
    bool has_idle_rings;
    /* the coordinates on these say how much work a rank has: see etch_at_work_share */
    uint32_t uneven_axes;
    uint32_t value_count, step_count;
    etch_diags *diags;
} etch_placed;

/* ---- questions ----------------------------------------------------------------------------------------- */

/* The size of a dim as the ranks hold it, all together: padded where the plan says so (etch_training_size
 * otherwise). */
etch_expr etch_placed_size(const etch_placed *placed, const etch_dim *dim);
/* The line of the plan that pads the dim, by this name or one that it was renamed from; NULL: none does. */
const etch_pad *etch_pad_of(const etch_plan *plan, const etch_dim *dim);
/* Could the plan pad the dim, which it does not yet? */
/* Remarks on rings of the plan that reach nothing. */
void etch_remark_idle_rings(const etch_placed *placed);
bool etch_may_be_padded(const etch_placed *placed, const etch_dim *dim);
/* Elements of a value on one rank, one microbatch. */
etch_expr etch_value_elements(const etch_placed *placed, const etch_value *value);
etch_expr etch_value_bytes(const etch_placed *placed, const etch_value *value);
/* Is it memory that outlives the run? */
bool etch_value_stays(const etch_value *value);
/* Of these, what is left of a cache when the run has ended. */
etch_expr etch_value_kept_bytes(const etch_placed *placed, const etch_value *value);

/* Ranks whose coordinates on the uneven axes differ do unequal work: formulas of it have etch_coordinate of
 * these axes in them. Puts in those of one of `etch_work_share_count` parts: `number` counts them from 0, in
 * the order in which ranks are numbered; NULL: of the last one, which has most. */
etch_expr etch_coordinate(etch_sym *sym, uint32_t axis);

etch_expr etch_at_work_share(const etch_placed *placed, etch_expr expr, etch_expr number);
etch_expr etch_work_share_count(const etch_placed *placed);
/* The value under renames and identities: what is in memory. */
etch_value *etch_value_root(etch_value *value);
/* The value that this one is a view of, or was resharded from: the operand of the view or move that makes
 * it. */
etch_value *etch_value_before(const etch_value *value);
/* The line that pins a tensor of the forward pass, or one that is computed again; nowhere: none does. */
etch_span etch_place_pin(const etch_placed *placed, const etch_tensor *tensor);
/* The axes of a bit set as a user writes them: "tp", "(dp,tp)", or the name that the plan gives to this
 * product. */
const char *etch_axes_label(const etch_placed *placed, uint32_t axes);

#endif
