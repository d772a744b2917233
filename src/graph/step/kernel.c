/* Which steps run as one node: one rule for each granularity.
 *
 * requires: placed regions, items in program order. provides: kernels of every region in issue order,
 * step->kernel; the dtypes of moves.
 *
 * By default a product, norm, ... anchors a kernel. An elementwise step joins the kernel that makes its
 * latest operand; where a collective or a loop makes it, or nothing in the region does, the step begins a
 * kernel without an anchor, which the first anchor that reads it takes over. By op, every step is a kernel.
 * By library the same, but a product stands alone: elementwise steps join neither side of it.
 * By block, a step joins the one before it, as long as no collective and no loop is between them, and the
 * last product, norm, ... is the anchor. Phases stay apart: what is recomputed is no kernel of backward.
 *
 * A kernel stands in the order of its region where its anchor stands, or its first step while it has none.
 * Everything that a kernel reads then stands before it: an anchor reads what stands before the anchor; a
 * step joins where its latest operand is made, so that the others are made there or before; and a kernel
 * that is taken over moves down to the anchor, past nothing that reads it. */
#include <assert.h>

#include "graph/step/step_int.h"

typedef struct group {
    /* the group that took this one over */
    struct group *into;
    const etch_placed_region *region;
    /* where it stands */
    uint32_t item;
    /* NULL: elementwise steps only */
    etch_step *anchor;
    etch_phase phase;
    /* steps of two stages are no kernel */
    etch_position position;
    /* a collective; or a loop, which is no kernel: nothing joins it */
    bool closed;
    /* by something that stands outside */
    bool read;
    /* reads weights that were gathered for it */
    bool gathered;
    /* of the top level: counted over its loops */
    uint32_t interval;
    etch_kernel *kernel;
    /* of the kernel */
    uint32_t index;
} group;

/* The steps that a granularity lets a step join. */
typedef struct rule {
    const char *name;
    /* an elementwise step: the maker of its latest operand, or the anchor that reads it */
    bool operands;
    /* any step: the one before it */
    bool segment;
    /* but no product and no attention */
    bool alone;
} rule;

static const rule rules[ETCH_GRANULARITY_COUNT] = {
    [ETCH_GRANULARITY_KERNEL] = {.name = "kernel", .operands = true},
    [ETCH_GRANULARITY_OP] = {.name = "op"},
    [ETCH_GRANULARITY_BLOCK] = {.name = "block", .segment = true},
    [ETCH_GRANULARITY_LIBRARY] = {.name = "library", .operands = true, .alone = true},
};

const char *etch_granularity_name(etch_granularity granularity)
{
    return (unsigned)granularity < ETCH_GRANULARITY_COUNT ? rules[granularity].name : NULL;
}

typedef struct grouping {
    etch_placed *placed;
    /* of the top level, at work */
    uint32_t interval;
    const rule *rule;
    etch_arena *scratch;
    /* by value id: what makes it; NULL: nothing that runs */
    group **makers;
    /* by step id; NULL: no node */
    group **groups;
    /* of the step before, where it is a move; NULL else */
    group *before;
} grouping;

/* An operand, traced to what makes it. */
typedef struct origin {
    group *by;
    /* a rank's own shard of it is read */
    bool sharded;
} origin;

/* Is the step a product, or attention, to which the rule lets nothing join? */
static bool is_alone(const rule *by, const etch_step *step)
{
    return by->alone && step && step->op && etch_op_is_matmul(step->op);
}

static group *group_now(group *g)
{
    while (g->into)
        g = g->into;
    return g;
}

static origin origin_of(const grouping *g, etch_value *operand)
{
    origin found = {.sharded = false};
    group *by = g->makers[etch_value_memory(operand, &found.sharded)->id];
    found.by = by ? group_now(by) : NULL;
    return found;
}

static void note_read(const origin *from, group *reader)
{
    if (!from->by || from->by == reader)
        return;
    from->by->read = true;
    if (reader && from->by->anchor && from->by->anchor->copies)
        reader->gathered = true;
}

/* The group that an elementwise step joins, or NULL. Operands are held as the step divides its work, so
 * that another placement shows as a move: a collective makes the operand, or a shard of it is read. */
static group *group_before(const grouping *g, const etch_placed_region *region, const etch_step *step)
{
    group *latest = NULL;
    for (uint32_t i = 0; i < step->in_count; i++) {
        const origin from = origin_of(g, step->ins[i]);
        if (!from.by || from.by->region != region)
            continue;
        if (from.sharded)
            return NULL;
        if (!latest || from.by->item > latest->item)
            latest = from.by;
    }
    const bool fits = latest && latest->phase == step->phase && latest->position == step->position;
    return fits && !latest->closed && !is_alone(g->rule, latest->anchor) ? latest : NULL;
}

/* May the anchor of `taker` take over the group that makes one of its operands? Copies of weights do not last
 * until a loop has run. */
static bool is_free_to_take(const origin *from, const group *taker)
{
    const group *taken = from->by;
    if (!taken || (taken->gathered && taken->interval != taker->interval))
        return false;
    return !taken->closed && !taken->anchor && !taken->read && !from->sharded &&
           taken->region == taker->region && taken->phase == taker->phase &&
           taken->position == taker->position;
}

static void take_over_operands(const grouping *g, group *taker)
{
    const etch_step *step = taker->anchor;
    for (uint32_t i = 0; i < step->in_count; i++) { /* a group of which a shard is read as well stays apart */
        const origin from = origin_of(g, step->ins[i]);
        if (from.sharded)
            note_read(&from, taker);
    }
    for (uint32_t i = 0; i < step->in_count; i++) {
        origin from = origin_of(g, step->ins[i]);
        if (is_free_to_take(&from, taker))
            from.by->into = taker;
    }
}

static group *group_new(const grouping *g, const etch_placed_region *region, uint32_t item)
{
    group *made = ETCH_NEW(g->scratch, group);
    made->region = region;
    made->item = item;
    made->interval = g->interval;
    return made;
}

/* Do both go round for one op, and the same way? They are sent in one message. */
static bool go_together(const etch_step *a, const etch_step *b)
{
    const etch_step *from_a = a->ins[0]->step, *from_b = b->ins[0]->step;
    return a->collective == ETCH_PERMUTE && b->collective == ETCH_PERMUTE && a->axes == b->axes &&
           a->provenance.op == b->provenance.op &&
           (from_a && from_a->ring ? from_a : NULL) == (from_b && from_b->ring ? from_b : NULL);
}

/* The group that a step joins, or NULL. `open`: the group of the step before it in the region; NULL after a
 * collective or a loop. */
static group *group_to_join(const grouping *g, const etch_placed_region *region, const etch_step *step,
                            etch_role role, group *open)
{
    if (role == ETCH_ROLE_RESHARD)
        return g->before && go_together(g->before->anchor, step) ? g->before : NULL;
    if (step->ring)
        return NULL;
    if (g->rule->segment && open && open->phase == step->phase && open->position == step->position)
        return open;
    return g->rule->operands && role == ETCH_ROLE_POINTWISE ? group_before(g, region, step) : NULL;
}

/* The group of a step at `item`, NULL when it is no node. */
static group *group_step(grouping *g, const etch_placed_region *region, uint32_t item, etch_step *step,
                         group *open)
{
    etch_role role = etch_step_role(step);
    if (role == ETCH_ROLE_FREE)
        return NULL;
    group *own = group_to_join(g, region, step, role, open);
    if (!own) {
        own = group_new(g, region, item);
        own->phase = step->phase;
        own->position = step->position;
        own->closed = role == ETCH_ROLE_RESHARD || step->ring;
    }
    g->before = role == ETCH_ROLE_RESHARD ? own : NULL;
    if (role != ETCH_ROLE_POINTWISE && !(own->closed && own->anchor)) {
        own->anchor = step;
        own->item = item;
    }
    if (role == ETCH_ROLE_KERNEL && g->rule->operands && !is_alone(g->rule, step) && !step->ring)
        take_over_operands(g, own);
    for (uint32_t i = 0; i < step->in_count; i++) {
        origin from = origin_of(g, step->ins[i]);
        note_read(&from, own);
    }
    for (uint32_t i = 0; i < step->out_count; i++)
        g->makers[step->outs[i]->id] = own;
    return own;
}

static void read_by_loop(const grouping *g, etch_value *value)
{
    if (!value)
        return;
    origin from = origin_of(g, value);
    note_read(&from, NULL);
}

/* The kernel of a group that stands at `item`. */
static void make_kernel(const grouping *g, etch_placed_region *region, uint32_t item, etch_step *anchor)
{
    group *own = g->groups[anchor->id];
    own->kernel = ETCH_NEW(g->placed->arena, etch_kernel);
    own->kernel->item = item;
    own->kernel->anchor = anchor;
    own->index = region->kernels.count;
    ETCH_PUSH(g->placed->arena, &region->kernels, own->kernel);
}

static void add_to_kernel(const grouping *g, etch_step *step)
{
    const group *own = group_now(g->groups[step->id]);
    step->kernel = own->index;
    ETCH_PUSH(g->placed->arena, &own->kernel->steps, step);
}

/* Kernels in the order of their places; steps of each in program order. */
static void make_kernels(const grouping *g, etch_placed_region *region)
{
    for (uint32_t i = 0; i < region->items.count; i++) {
        etch_step *step = region->items.at[i].step;
        const group *own = step ? g->groups[step->id] : NULL;
        if (own && !own->into && own->item == i)
            make_kernel(g, region, i, step);
    }
    for (uint32_t i = 0; i < region->items.count; i++) {
        etch_step *step = region->items.at[i].step;
        if (step && g->groups[step->id])
            add_to_kernel(g, step);
    }
}

/* Goes as deep as loops are nested. */
static void group_region(grouping *g, etch_placed_region *region)
{
    group *open = NULL;
    g->before = NULL;
    for (uint32_t i = 0; i < region->items.count; i++) {
        etch_step *step = region->items.at[i].step;
        etch_placed_loop *loop = region->items.at[i].loop;
        if (step) {
            group *own = g->groups[step->id] = group_step(g, region, i, step, open);
            if (own)
                open = own->closed ? NULL : own;
            continue;
        }
        open = g->before = NULL;
        for (uint32_t k = 0; k < etch_loop_carries(loop)->count; k++)
            read_by_loop(g, etch_loop_carries(loop)->at[k].init);
        for (uint32_t b = 0; b < loop->bodies.count; b++)
            group_region(g, loop->bodies.at[b]);
        g->interval += !region->loop;
        group *own = group_new(g, region, i);
        own->closed = true;
        for (uint32_t k = 0; k < etch_loop_carries(loop)->count; k++)
            if (etch_loop_carries(loop)->at[k].result)
                g->makers[etch_loop_carries(loop)->at[k].result->id] = own;
    }
    for (uint32_t k = 0; k < region->carries.count; k++)
        read_by_loop(g, region->carries.at[k].out);
    make_kernels(g, region);
}

#ifndef NDEBUG
/* Everything that a step reads is made by its kernel, stands before that, or is made elsewhere. */
static void check_order(const grouping *g, const etch_placed_region *region)
{
    for (uint32_t i = 0; i < region->items.count; i++) {
        const etch_step *step = region->items.at[i].step;
        const group *own = step && g->groups[step->id] ? group_now(g->groups[step->id]) : NULL;
        for (uint32_t k = 0; own && k < step->in_count; k++) {
            origin from = origin_of(g, step->ins[k]);
            assert(!from.by || from.by == own || from.by->region != region || from.by->item < own->item);
        }
    }
}
#endif

void etch_kernels(etch_placed *placed, etch_granularity granularity)
{
    etch_arena *scratch = etch_arena_new(etch_arena_mem(placed->arena));
    grouping g = {
        .placed = placed,
        .rule = &rules[granularity],
        .scratch = scratch,
        .makers = ETCH_NEW_ARRAY(scratch, placed->value_count, group *),
        .groups = ETCH_NEW_ARRAY(scratch, placed->step_count, group *),
    };
    group_region(&g, placed->forward);
    if (placed->backward)
        group_region(&g, placed->backward);
    etch_comm_dtypes_find(placed);
#ifndef NDEBUG
    for (uint32_t i = 0; i < placed->regions.count; i++)
        check_order(&g, placed->regions.at[i]);
#endif
    etch_arena_free(scratch);
}
