/* The regions of a model that the scopes of a plan speak of: calls of modules, loops, statements. They are
 * nested, as the program is; two selectors may choose the same one. Found once, before anything is placed.
 *
 * requires: a training graph and a plan. provides: for each op and tensor of the forward pass the innermost
 * region that it is in, for each region the axes whose use its scopes change. */
#include <string.h>

#include "graph/ir/cursor.h"
#include "graph/ir/row.h"
#include "graph/plan/plan_regions.h"

/* A region while the others are looked for: which forward ops it has. */
typedef struct area {
    etch_plan_region plan_region;
    /* by op id */
    bool *has;
    uint32_t size;
    /* by tensor id */
    bool *only_reader;
} area;

typedef ETCH_VEC(area *) area_list;

typedef struct finder {
    const etch_graph *graph;
    const etch_plan *plan;
    etch_arena *arena;
    area_list areas;
} finder;

/* ---- what a selector chooses -------------------------------------------------------------------------- */

static void take(area *a, const etch_graph *graph, const etch_choice *selected)
{
    for (etch_cursor at = {.root = graph->forward}; etch_cursor_next(&at);)
        if (at.item->op && etch_choice_has(selected, at.item->op, at.in)) {
            a->has[at.item->op->id] = true;
            a->size++;
        }
}

static bool is_same(const etch_choice *a, const etch_choice *b)
{
    if (a->result && b->result && a->result->producer)
        return a->result->producer == b->result->producer;
    return a->call == b->call && a->loop == b->loop && a->result == b->result;
}

/* By tensor: is it read, and by no op that the area has not? */
static void find_readers(const finder *f, area *a)
{
    const etch_graph *graph = f->graph;
    bool *elsewhere = ETCH_NEW_ARRAY(f->arena, graph->tensors.count, bool);
    a->only_reader = ETCH_NEW_ARRAY(f->arena, graph->tensors.count, bool);
    for (etch_cursor at = {.root = graph->forward}; etch_cursor_next(&at);)
        for (uint32_t k = 0; at.item->op && k < at.item->op->in_count; k++) {
            const uint32_t id = at.item->op->ins[k]->id;
            a->only_reader[id] = true;
            elsewhere[id] = elsewhere[id] || !a->has[at.item->op->id];
        }
    for (uint32_t i = 0; i < graph->tensors.count; i++)
        a->only_reader[i] = a->only_reader[i] && !elsewhere[i];
}

/* The area of a region, a new one unless it was chosen before. */
static area *area_of(finder *f, etch_choice what)
{
    for (uint32_t i = 0; i < f->areas.count; i++)
        if (is_same(&f->areas.at[i]->plan_region.what, &what))
            return f->areas.at[i];
    area *a = ETCH_NEW(f->arena, area);
    *a = (area){.plan_region = {.what = what}, .has = ETCH_NEW_ARRAY(f->arena, f->graph->op_count, bool)};
    take(a, f->graph, &what);
    find_readers(f, a);
    ETCH_PUSH(f->arena, &f->areas, a);
    return a;
}

/* ---- nesting ------------------------------------------------------------------------------------------- */

/* Of regions that have the same ops the loop is outside, then the statement, then the call that is all of
 * it. */
static uint32_t depth_of(const etch_plan_region *plan_region)
{
    return plan_region->what.loop ? 0 : plan_region->what.result ? 1 : 2;
}

/* A statement has the weights that nothing else reads. */
static bool has_weight(const area *a, const etch_tensor *weight)
{
    return etch_choice_has_weight(&a->plan_region.what, weight) ||
           (a->plan_region.what.result && a->only_reader[weight->id]);
}

/* Does one region hold the other? They are equal or nested or apart. */
static bool holds(const finder *f, const area *outer, const area *inner)
{
    if (outer == inner)
        return true;
    if (inner->plan_region.what.result && inner->plan_region.what.result->kind == ETCH_WEIGHT)
        return has_weight(outer, inner->plan_region.what.result);
    const bool larger =
        outer->size > inner->size ||
        (outer->size == inner->size && depth_of(&outer->plan_region) < depth_of(&inner->plan_region));
    for (uint32_t i = 0; i < f->graph->op_count && larger; i++)
        if (inner->has[i])
            return outer->has[i];
    return false;
}

/* The region itself when it is in none. */
static etch_plan_region *deeper(const finder *f, etch_plan_region *plan_region, area *other)
{
    const area *now = (const area *)plan_region; /* its first member */
    const bool is_deeper = other->plan_region.overrides.count > 0 && (!now || holds(f, now, other));
    return is_deeper ? &other->plan_region : plan_region;
}

static void nest(const finder *f)
{
    for (uint32_t i = 0; i < f->areas.count; i++) {
        etch_plan_region **outer = &f->areas.at[i]->plan_region.outer;
        for (uint32_t k = 0; k < f->areas.count; k++)
            if (k != i && holds(f, f->areas.at[k], f->areas.at[i]))
                *outer = deeper(f, *outer, f->areas.at[k]);
    }
}

/* ---- what is in which region --------------------------------------------------------------------------- */

static void place_op(const finder *f, const etch_plan_regions *plan_regions, const etch_op *op)
{
    etch_plan_region *around = NULL, *made_in = NULL; /* what leaves a call is made outside of it */
    for (uint32_t k = 0; k < f->areas.count; k++) {
        area *a = f->areas.at[k];
        const bool left = op->edge == ETCH_LEAVE && a->plan_region.what.call == op->scope;
        around = a->has[op->id] ? deeper(f, around, a) : around;
        made_in = a->has[op->id] && !left ? deeper(f, made_in, a) : made_in;
    }
    plan_regions->of_op[op->id] = around;
    if (op->edge && op->scope)
        plan_regions->around[op->scope->id] = around;
    for (uint32_t k = 0; k < op->out_count; k++)
        plan_regions->of_tensor[op->outs[k]->id] = made_in;
}

static void place_carries(const finder *f, const etch_plan_regions *plan_regions, const etch_loop *loop)
{
    area body = {.has = ETCH_NEW_ARRAY(f->arena, f->graph->op_count, bool)};
    take(&body, f->graph, &(etch_choice){.loop = loop});
    etch_plan_region *inside = NULL, *around = NULL;
    for (uint32_t k = 0; k < f->areas.count; k++) {
        area *a = f->areas.at[k];
        const bool is_loop = a->plan_region.what.loop == loop,
                   larger = a->size > body.size && holds(f, a, &body);
        inside = is_loop || larger ? deeper(f, inside, a) : inside;
        around = larger ? deeper(f, around, a) : around;
    }
    for (uint32_t k = 0; k < loop->bodies.count; k++)
        for (uint32_t c = 0; c < loop->bodies.at[k]->carries.count; c++) {
            plan_regions->of_tensor[loop->bodies.at[k]->carries.at[c].in->id] = inside;
            plan_regions->of_tensor[loop->bodies.at[k]->carries.at[c].result->id] = around;
        }
}

static void place_given(const finder *f, const etch_plan_regions *plan_regions)
{
    const etch_graph *graph = f->graph;
    for (uint32_t i = 0; i < graph->tensors.count; i++) {
        const etch_tensor *tensor = graph->tensors.at[i];
        for (uint32_t k = 0; k < f->areas.count; k++) {
            area *a = f->areas.at[k];
            const bool is_model = a->plan_region.what.call && !a->plan_region.what.call->parent;
            if ((tensor->kind == ETCH_INPUT && is_model) ||
                (tensor->kind == ETCH_WEIGHT && has_weight(a, tensor)))
                plan_regions->of_tensor[i] = deeper(f, plan_regions->of_tensor[i], a);
        }
    }
}

/* ---- scopes of the plan -------------------------------------------------------------------------------- */

/* Has the scope of the plan chosen the area? */
static bool is_of(const area *a, const etch_override *o)
{
    for (uint32_t k = 0; k < a->plan_region.overrides.count; k++)
        if (a->plan_region.overrides.at[k] == o)
            return true;
    return false;
}

/* Is the area inside one that the override chooses? */
static bool is_inside(const finder *f, const etch_override *o, const area *inner)
{
    for (uint32_t i = 0; i < f->areas.count; i++)
        if (is_of(f->areas.at[i], o) && holds(f, f->areas.at[i], inner))
            return true;
    return false;
}

static void add_override(finder *f, const etch_override *o, area *a)
{
    const etch_override *outer = o->outer ? &f->plan->overrides.at[o->outer - 1] : NULL;
    if (!is_of(a, o) && (!outer || is_inside(f, outer, a)))
        ETCH_PUSH(f->arena, &a->plan_region.overrides, o);
}

static void find_areas(finder *f)
{
    for (uint32_t i = 0; i < f->plan->overrides.count; i++) { /* a scope comes before those inside it */
        const etch_override *o = &f->plan->overrides.at[i];
        for (uint32_t k = 0; k < o->selector_count; k++) {
            const etch_choices chosen = etch_choose(f->graph, o->selectors[k]);
            for (uint32_t c = 0; c < chosen.count; c++)
                add_override(f, o, area_of(f, chosen.at[c]));
        }
    }
}

const etch_shard *etch_map_dim(const etch_plan *plan, const etch_plan_region *plan_region,
                               const etch_dim *dim)
{
    for (; plan_region; plan_region = plan_region->outer)
        for (uint32_t i = plan_region->overrides.count; i-- > 0;) {
            const etch_override *o = plan_region->overrides.at[i];
            const etch_shard *shard = etch_shard_find(o->shards.at, o->shards.count, dim->name);
            if (shard)
                return shard;
        }
    return etch_shard_find(plan->shards.at, plan->shards.count, dim->name);
}

/* Axes that the scopes of a region put a dim on, or take it from. */
static uint32_t touched_by(const etch_plan *plan, const etch_plan_region *plan_region)
{
    uint32_t bits = 0;
    for (uint32_t i = 0; i < plan_region->overrides.count; i++) {
        const etch_override *o = plan_region->overrides.at[i];
        for (uint32_t k = 0; k < o->shards.count; k++) {
            const etch_dim named = {.name = o->shards.at[k].dim};
            const etch_shard *outer = etch_map_dim(plan, plan_region->outer, &named);
            bits |= etch_axes_of(o->shards.at[k].axes, o->shards.at[k].axis_count);
            bits |= outer ? etch_axes_of(outer->axes, outer->axis_count) : 0;
        }
    }
    return bits;
}

static void add_lines(etch_arena *arena, const etch_shard *shards, uint32_t count,
                      etch_plan_regions *plan_regions)
{
    for (uint32_t i = 0; i < count; i++)
        ETCH_PUSH(arena, &plan_regions->lines, &shards[i]);
}

static void add_pins(etch_arena *arena, const etch_pin *pins, uint32_t count, etch_plan_regions *plan_regions)
{
    for (uint32_t i = 0; i < count; i++)
        add_lines(arena, pins[i].shards.at, pins[i].shards.count, plan_regions);
}

static void list_lines(etch_arena *arena, const etch_plan *plan, etch_plan_regions *plan_regions)
{
    add_lines(arena, plan->shards.at, plan->shards.count, plan_regions);
    add_pins(arena, plan->pins.at, plan->pins.count, plan_regions);
    for (uint32_t i = 0; i < plan->overrides.count; i++) {
        const etch_override *o = &plan->overrides.at[i];
        add_lines(arena, o->shards.at, o->shards.count, plan_regions);
        add_pins(arena, o->pins.at, o->pins.count, plan_regions);
    }
}

void etch_plan_regions_find(const etch_graph *graph, const etch_plan *plan, etch_plan_regions *plan_regions)
{
    finder f = {.graph = graph, .plan = plan, .arena = graph->arena};
    plan_regions->of_op = ETCH_NEW_ARRAY(graph->arena, graph->op_count, etch_plan_region *);
    plan_regions->of_tensor = ETCH_NEW_ARRAY(graph->arena, graph->tensors.count, etch_plan_region *);
    plan_regions->of_call = ETCH_NEW_ARRAY(graph->arena, graph->scopes.count, etch_plan_region *);
    plan_regions->of_loop = ETCH_NEW_ARRAY(graph->arena, graph->loop_count, etch_plan_region *);
    plan_regions->around = ETCH_NEW_ARRAY(graph->arena, graph->scopes.count, etch_plan_region *);
    list_lines(graph->arena, plan, plan_regions);
    find_areas(&f);
    if (f.areas.count == 0)
        return;
    nest(&f);
    for (uint32_t i = 0; i < f.areas.count; i++) {
        etch_plan_region *plan_region = &f.areas.at[i]->plan_region;
        const etch_choice *what = &plan_region->what;
        plan_region->touched = touched_by(plan, plan_region);
        if (what->call && plan_region->overrides.count)
            plan_regions->of_call[what->call->id] = plan_region;
        if (what->loop && plan_region->overrides.count)
            plan_regions->of_loop[what->loop->id] = plan_region;
    }
    plan_regions->around[0] = plan_regions->of_call[0];
    for (etch_cursor at = {.root = graph->forward}; etch_cursor_next(&at);)
        if (at.item->op)
            place_op(&f, plan_regions, at.item->op);
        else
            place_carries(&f, plan_regions, at.item->loop);
    place_given(&f, plan_regions);
}

const bool *etch_plan_scope_ops(const etch_graph *graph, const etch_plan *plan, uint32_t place)
{
    finder f = {.graph = graph, .plan = plan, .arena = graph->arena};
    bool *ops = ETCH_NEW_ARRAY(graph->arena, graph->op_count, bool);
    find_areas(&f);
    for (uint32_t i = 0; i < f.areas.count; i++)
        if (is_of(f.areas.at[i], &plan->overrides.at[place - 1]))
            for (uint32_t op = 0; op < graph->op_count; op++)
                ops[op] = ops[op] || f.areas.at[i]->has[op];
    return ops;
}

/* ---- questions ----------------------------------------------------------------------------------------- */

const etch_plan_region *etch_plan_region_of(const etch_plan_regions *plan_regions, const etch_tensor *tensor)
{
    return plan_regions->of_tensor[etch_origin(tensor)->id];
}

static bool is_around(const etch_plan_region *plan_region, const etch_plan_region *inner)
{
    while (inner && inner != plan_region)
        inner = inner->outer;
    return inner == plan_region;
}

/* Of what leaves a region; NULL: none. */
static etch_boundary end_of(const etch_plan_region *region)
{
    return region ? (etch_boundary){region->touched, region->outer, region, true}
                  : (etch_boundary){.leaves = true};
}

etch_boundary etch_boundary_of_operand(const etch_plan_regions *plan_regions, const etch_op *op,
                                       const etch_tensor *operand)
{
    const etch_op *first = etch_first_op(op);
    const etch_plan_region *plan_region = plan_regions->of_op[first->id],
                           *from = etch_plan_region_of(plan_regions, operand);
    etch_boundary boundary = {.to = plan_region, .plan_region = plan_region};
    if (first->edge == ETCH_LEAVE)
        return end_of(plan_regions->of_call[first->scope->id]);
    for (; plan_region && !is_around(plan_region, from); plan_region = plan_region->outer)
        if (!plan_region->what.call ||
            (first->edge == ETCH_ENTER && plan_region->what.call == first->scope)) {
            boundary.axes |= plan_region->touched;
            boundary.plan_region = plan_region;
        }
    return boundary;
}

etch_boundary etch_boundary_of_result(const etch_plan_regions *plan_regions, const etch_tensor *tensor)
{
    const etch_tensor *first = etch_origin(tensor);
    const etch_plan_region *inner = first->producer ? plan_regions->of_op[first->producer->id] : NULL;
    etch_boundary boundary = {.leaves = true};
    for (; inner; inner = inner->outer)
        if (inner->what.result && inner->what.result->producer == first->producer)
            boundary = (etch_boundary){boundary.axes | inner->touched, inner->outer, inner, true};
    return boundary;
}

etch_boundary etch_boundary_of_loop(const etch_plan_regions *plan_regions, const etch_loop *loop)
{
    while (loop->repeats)
        loop = loop->repeats;
    return end_of(plan_regions->of_loop[loop->id]);
}

const etch_plan_region *etch_plan_region_around(const etch_plan_regions *plan_regions,
                                                const etch_scope *scope)
{
    return scope ? plan_regions->around[scope->id] : NULL;
}
