/* Which steps run as one node.
 *
 * A product, norm, ... anchors a kernel. An elementwise step joins the kernel that makes its latest operand; where a collective or a loop
 * makes it, or nothing in the region does, the step begins a kernel without an anchor, which the first anchor that reads it takes over.
 *
 * A kernel stands in the order of its region where its anchor stands, or its first step while it has none. Everything that a kernel reads
 * then stands before it: an anchor reads what stands before the anchor; a step joins where its latest operand is made, so that the others
 * are made there or before; and a kernel that is taken over moves down to the anchor, past nothing that reads it. */
#include <assert.h>

#include "graph/kernel_int.h"

typedef struct group {
    struct group *into; /* the group that took this one over */
    const etch_placed_region *region;
    uint32_t item;     /* where it stands */
    etch_step *anchor; /* NULL: elementwise steps only */
    etch_phase phase;
    bool read; /* by something that stands outside */
    etch_kernel *kernel;
} group;

/* What makes a value: a group, a loop, or nothing that runs (region NULL). */
typedef struct maker {
    const etch_placed_region *region;
    group *group;  /* NULL: a loop */
    uint32_t item; /* of the loop */
} maker;

typedef struct grouping {
    etch_placed *placed;
    etch_arena *scratch;
    maker *makers;         /* by value id */
    group **groups;        /* by step id; NULL: no node */
    etch_kernel **made_by; /* by value id */
} grouping;

/* An operand, traced to what makes it. */
typedef struct origin {
    maker by;
    bool sharded; /* a rank's own shard of it is read */
} origin;

static group *group_now(group *g)
{
    while (g->into)
        g = g->into;
    return g;
}

static origin origin_of(const grouping *g, etch_value *operand)
{
    origin found = {.sharded = false};
    found.by = g->makers[etch_value_memory(operand, &found.sharded)->id];
    if (found.by.group)
        found.by.group = group_now(found.by.group);
    return found;
}

static uint32_t item_of(const origin *from)
{
    return from->by.group ? from->by.group->item : from->by.item;
}

static void note_read(const origin *from, const group *reader)
{
    if (from->by.group && from->by.group != reader)
        from->by.group->read = true;
}

/* Does the step divide its work as the value is divided, on the dims that both have? */
static bool is_placed_alike(const etch_placed *placed, const etch_step *step, const etch_value *value)
{
    for (uint32_t axis = 0; axis < placed->plan->mesh.count; axis++) {
        etch_state factor = step->factor[axis], place = value->place[axis];
        if (factor && !etch_has_dim(value->tensor, factor))
            factor = NULL;
        if (place == ETCH_PARTIAL)
            place = NULL;
        if (factor != place)
            return false;
    }
    return true;
}

/* The group that an elementwise step joins, or NULL. */
static group *group_before(const grouping *g, const etch_placed_region *region, const etch_step *step)
{
    origin latest = {.sharded = false};
    const etch_value *operand = NULL;
    for (uint32_t i = 0; i < step->in_count; i++) {
        origin from = origin_of(g, step->ins[i]);
        if (from.by.region != region)
            continue;
        if (from.sharded)
            return NULL;
        if (!operand || item_of(&from) > item_of(&latest)) {
            latest = from;
            operand = step->ins[i];
        }
    }
    group *before = latest.by.group;
    if (!before || before->phase != step->phase)
        return NULL;
    if (before->anchor && etch_step_role(before->anchor) == ROLE_MOVE)
        return NULL;
    return is_placed_alike(g->placed, step, operand) ? before : NULL;
}

/* May `anchor` take over the group that makes `operand`? */
static bool is_free_to_take(const grouping *g, const origin *from, const group *taker,
                            const etch_value *operand)
{
    const group *taken = from->by.group;
    return taken && !taken->anchor && !taken->read && !from->sharded && taken->region == taker->region &&
           taken->phase == taker->phase && is_placed_alike(g->placed, taker->anchor, operand);
}

static void take_over_operands(const grouping *g, group *taker)
{
    const etch_step *step = taker->anchor;
    for (uint32_t i = 0; i < step->in_count; i++) { /* a group of which a shard is read as well stays apart */
        origin from = origin_of(g, step->ins[i]);
        if (from.sharded)
            note_read(&from, taker);
    }
    for (uint32_t i = 0; i < step->in_count; i++) {
        origin from = origin_of(g, step->ins[i]);
        if (is_free_to_take(g, &from, taker, step->ins[i]))
            from.by.group->into = taker;
    }
}

static group *group_new(const grouping *g, const etch_placed_region *region, uint32_t item, etch_step *first)
{
    group *made = ETCH_NEW(g->scratch, group);
    made->region = region;
    made->item = item;
    made->phase = first->phase;
    return made;
}

/* The group of a step at `item`, NULL when it is no node. */
static group *group_step(const grouping *g, const etch_placed_region *region, uint32_t item, etch_step *step)
{
    etch_role role = etch_step_role(step);
    if (role == ROLE_FREE)
        return NULL;
    group *own = role == ROLE_POINTWISE ? group_before(g, region, step) : NULL;
    if (!own)
        own = group_new(g, region, item, step);
    if (role != ROLE_POINTWISE)
        own->anchor = step;
    if (role == ROLE_KERNEL)
        take_over_operands(g, own);
    for (uint32_t i = 0; i < step->in_count; i++) {
        origin from = origin_of(g, step->ins[i]);
        note_read(&from, own);
    }
    for (uint32_t i = 0; i < step->out_count; i++)
        g->makers[step->outs[i]->id] = (maker){.region = region, .group = own};
    return own;
}

static void read_by_loop(const grouping *g, etch_value *value)
{
    if (!value)
        return;
    origin from = origin_of(g, value);
    note_read(&from, NULL);
}

/* Kernels in the order of their places; steps of each in program order. */
static void make_kernels(const grouping *g, etch_placed_region *region)
{
    etch_arena *arena = g->placed->arena;
    for (uint32_t i = 0; i < region->items.count; i++) {
        etch_step *step = region->items.at[i].step;
        group *own = step ? g->groups[step->id] : NULL;
        if (!own || group_now(own)->item != i)
            continue;
        own = group_now(own);
        own->kernel = ETCH_NEW(arena, etch_kernel);
        own->kernel->item = i;
        own->kernel->anchor = step;
        ETCH_PUSH(arena, &region->kernels, own->kernel);
    }
    uint32_t next = 0;
    for (uint32_t i = 0; i < region->kernels.count; i++)
        region->kernels.at[i]->anchor->kernel = next++;
    for (uint32_t i = 0; i < region->items.count; i++) {
        etch_step *step = region->items.at[i].step;
        if (!step)
            continue;
        if (!g->groups[step->id]) {
            step->kernel = UINT32_MAX;
            continue;
        }
        etch_kernel *kernel = group_now(g->groups[step->id])->kernel;
        step->kernel = kernel->anchor->kernel;
        ETCH_PUSH(arena, &kernel->steps, step);
        for (uint32_t k = 0; k < step->out_count; k++)
            g->made_by[step->outs[k]->id] = kernel;
    }
}

/* Goes as deep as loops are nested. */
static void group_region(const grouping *g, etch_placed_region *region)
{
    for (uint32_t i = 0; i < region->items.count; i++) {
        etch_step *step = region->items.at[i].step;
        etch_placed_loop *loop = region->items.at[i].loop;
        if (step) {
            g->groups[step->id] = group_step(g, region, i, step);
            continue;
        }
        for (uint32_t k = 0; k < loop->carries.count; k++)
            read_by_loop(g, loop->carries.at[k].init);
        group_region(g, loop->body);
        for (uint32_t k = 0; k < loop->carries.count; k++) {
            etch_placed_carry *carry = &loop->carries.at[k];
            read_by_loop(g, carry->out);
            if (carry->result)
                g->makers[carry->result->id] = (maker){.region = region, .item = i};
        }
    }
    make_kernels(g, region);
}

#ifndef NDEBUG
/* Everything that a kernel reads stands before it, or is made elsewhere. */
static void check_order(const grouping *g, const etch_placed_region *region)
{
    for (uint32_t i = 0; i < region->items.count; i++)
        if (region->items.at[i].loop)
            check_order(g, region->items.at[i].loop->body);
    for (uint32_t i = 0; i < region->kernels.count; i++) {
        const etch_kernel *kernel = region->kernels.at[i];
        for (uint32_t k = 0; k < kernel->reads.count; k++) {
            origin from = origin_of(g, kernel->reads.at[k]);
            assert(from.by.region != region || item_of(&from) < kernel->item);
        }
    }
}
#endif

void etch_kernels(etch_placed *placed)
{
    etch_arena *scratch = etch_arena_new(etch_arena_mem(placed->arena));
    grouping g = {
        .placed = placed,
        .scratch = scratch,
        .makers = ETCH_NEW_ARRAY(scratch, placed->value_count, maker),
        .groups = ETCH_NEW_ARRAY(scratch, placed->step_count, group *),
        .made_by = ETCH_NEW_ARRAY(scratch, placed->value_count, etch_kernel *),
    };
    group_region(&g, placed->forward);
    if (placed->backward)
        group_region(&g, placed->backward);
    etch_kernel_io(placed, g.made_by);
#ifndef NDEBUG
    check_order(&g, placed->forward);
    if (placed->backward)
        check_order(&g, placed->backward);
#endif
    etch_arena_free(scratch);
}
