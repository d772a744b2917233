/* Weights that ranks hold in parts (ZeRO-3, FSDP): gathers before what reads them.
 *
 * requires: placed regions whose steps read weights whole, stage positions, zero_axes. provides: the same
 * regions with gathers, and steps that read their copies.
 *
 * A weight group is an iteration of an outermost loop, or what lies between two of them and runs in one
 * stage. Where it begins there is one all-gather for each zero line and set of axes, of all weights that the
 * weight group reads; or one for each weight. Backward has weight groups of its own, which gather again,
 * unless copies last longer: what they read, and the weights whose gradients they make. Units have copies of
 * their own, where they do not last; where they do, and there is one stage, a weight that no iteration has is
 * gathered once, for all that reads it. What a line calls its root is gathered where forward begins. */
#include "graph/step/step_int.h"

/* A weight that has a gathered copy. */
typedef struct gathered_copy {
    etch_value *whole;
    /* what backward gathers from, if that is no part of the rank's own; else NULL */
    etch_value *shard;
    /* of the forward pass: where it is gathered; NULL at the top level */
    const etch_region *body;
    /* at the top level */
    etch_position position;
} gathered_copy;

typedef struct wanted {
    /* as the plan's shards place it */
    etch_value *weight;
    /* of what reads it first */
    etch_phase phase;
    const etch_zero *zero;
    etch_keep keep;
    /* to gather it over; 0: there is a gathered copy */
    uint32_t axes;
    const gathered_copy *kept;
} wanted;

/* What a weight group wants of all that it reads: what is gathered for others as well, or what is not. */
typedef enum taking { TAKES_ALL, TAKES_COMMON, TAKES_OWN } taking;

typedef struct weight_group {
    taking takes;
    /* of forward, of the loop's iterations; NULL: of the top level */
    const etch_region *body;
    /* of the top level: counted over its loops */
    uint32_t interval;
    etch_position position;
    /* item before which it gathers */
    uint32_t first;
    ETCH_VEC(wanted) wants;
    ETCH_VEC(gathered_copy) copies;
    /* of the region at work: views of weights, and shards of them, to those made anew of the copies */
    etch_map views;
} weight_group;

typedef ETCH_VEC(etch_placed_item) item_list;

typedef struct sharder {
    etch_placed *placed;
    etch_arena *arena, *scratch;
    bool backward;
    /* by tensor id: the rank's own part of a weight, once it is asked for */
    etch_value **shards;
    /* what forward has gathered */
    ETCH_VEC(gathered_copy) kept;
    /* of the region at work, made anew */
    item_list items;
} sharder;

/* ---- values -------------------------------------------------------------------------------------------- */

/* A view, or a rank's shard, of a value: it reads nothing by itself. */
static bool is_free(const etch_step *step)
{
    return etch_step_role(step) == ETCH_ROLE_FREE && !step->accumulate_into[0];
}

/* The divided weight that the value shows all or a shard of; NULL for most. */
static etch_value *weight_under_views(const sharder *s, etch_value *value)
{
    etch_value *memory = etch_value_memory(value, NULL);
    const bool divided = !memory->step && memory->tensor->kind == ETCH_WEIGHT &&
                         etch_zero_divides(s->placed, memory->tensor, ETCH_HOLDS_WEIGHT) != 0;
    return divided ? memory : NULL;
}

static etch_value *value_like(const sharder *s, const etch_value *like, uint32_t sharded_flat)
{
    etch_value *value = ETCH_NEW(s->arena, etch_value);
    *value = *like;
    value->sharded_flat = sharded_flat;
    value->step = NULL;
    value->id = s->placed->value_count++;
    return value;
}

/* A step with so many operands and results, in the region at work. */
static etch_step *add_step(sharder *s, const etch_step *like, uint32_t ins, uint32_t outs)
{
    etch_step *step = ETCH_NEW(s->arena, etch_step);
    *step = *like;
    step->id = s->placed->step_count++;
    step->kernel = UINT32_MAX;
    step->in_count = ins;
    step->out_count = outs;
    step->ins = ETCH_NEW_ARRAY(s->arena, ins, etch_value *);
    step->outs = ETCH_NEW_ARRAY(s->arena, outs, etch_value *);
    step->accumulate_into = ETCH_NEW_ARRAY(s->arena, outs, etch_tensor *);
    ETCH_PUSH(s->scratch, &s->items, (etch_placed_item){.step = step});
    return step;
}

static etch_value *set_result(etch_step *step, uint32_t result, etch_value *value)
{
    value->step = step;
    return step->outs[result] = value;
}

/* ---- what weight groups read --------------------------------------------------------------------------- */

/* How long copies of the weight last that a weight group gathers: forward's for backward, when that gathers
 * it over nothing. Of a stage no iteration is the root. */
static etch_keep lasting(const sharder *s, const etch_tensor *weight, bool is_iteration)
{
    const etch_zero *zero = etch_zero_of(s->placed, weight);
    const bool over_nothing =
        zero->backward_axes && !(s->placed->zero_axes[weight->id] & zero->backward_axes);
    const bool is_root = etch_zero_roots(zero, weight) && !(is_iteration && s->placed->stages);
    return zero->keep == ETCH_KEEP_GROUP && (over_nothing || is_root) ? ETCH_KEEP_MICROBATCH : zero->keep;
}

/* Are copies of the weight made once, for all that reads it? Else each weight group has its own. */
static bool is_common(const sharder *s, const etch_tensor *weight)
{
    return !s->placed->stages && !weight->region->loop && lasting(s, weight, false) != ETCH_KEEP_GROUP;
}

static void want(const sharder *s, weight_group *u, etch_value *value, etch_phase phase)
{
    etch_value *weight = weight_under_views(s, value);
    if (!weight || (u->takes != TAKES_ALL && is_common(s, weight->tensor) != (u->takes == TAKES_COMMON)))
        return;
    for (uint32_t i = 0; i < u->wants.count; i++)
        if (u->wants.at[i].weight == weight)
            return;
    ETCH_PUSH(s->scratch, &u->wants,
              (wanted){.weight = weight, .phase = phase, .zero = etch_zero_of(s->placed, weight->tensor)});
}

static void want_inits(const sharder *s, weight_group *u, const etch_placed_loop *loop)
{
    for (uint32_t i = 0; i < etch_loop_carries(loop)->count; i++)
        if (etch_loop_carries(loop)->at[i].init)
            want(s, u, etch_loop_carries(loop)->at[i].init, etch_loop_phase(loop->loop));
}

/* A weight group is gathered as a whole: backward's has all weights whose gradients it makes, read or not, as
 * the flat parameters of FSDP. Weights that are gathered by themselves are those that are read. */
static void want_step(const sharder *s, weight_group *u, const etch_step *step)
{
    for (uint32_t i = 0; i < step->in_count && !is_free(step); i++)
        want(s, u, step->ins[i], step->phase);
    for (uint32_t i = 0; i < step->out_count; i++) {
        const etch_tensor *weight = step->accumulate_into[i] ? step->accumulate_into[i]->of : NULL;
        if (weight && !etch_zero_of(s->placed, weight)->by_weight)
            want(s, u, s->placed->weight_of[weight->id], step->phase);
    }
}

/* All that a body reads, at any depth. */
static void want_body(const sharder *s, weight_group *u, const etch_placed_region *body)
{
    for (uint32_t i = 0; i < body->items.count; i++) {
        const etch_placed_loop *loop = body->items.at[i].loop;
        if (!loop) {
            want_step(s, u, body->items.at[i].step);
            continue;
        }
        want_inits(s, u, loop);
        for (uint32_t k = 0; k < loop->bodies.count; k++)
            want_body(s, u, loop->bodies.at[k]);
    }
    for (uint32_t k = 0; k < body->carries.count; k++)
        want(s, u, body->carries.at[k].out, etch_loop_phase(body->loop->loop));
}

/* ---- copies -------------------------------------------------------------------------------------------- */

/* The forward copy that a weight group finds. */
static const gathered_copy *kept_copy(const sharder *s, const etch_tensor *weight, const etch_region *body,
                                      etch_position position)
{
    for (uint32_t i = 0; i < s->kept.count; i++) {
        const gathered_copy *k = &s->kept.at[i];
        const bool here = is_common(s, weight) || (k->body == body && (body || k->position == position));
        if (k->whole->tensor == weight && here)
            return k;
    }
    return NULL;
}

/* Over which axes the pass at work gathers the weight: all of them, or those over which forward has left
 * parts. */
static uint32_t axes_of(const sharder *s, const wanted *w)
{
    const uint32_t axes = s->placed->zero_axes[w->weight->tensor->id], near = axes & w->zero->backward_axes;
    return s->backward && near && w->kept && w->keep == ETCH_KEEP_GROUP ? near : axes;
}

/* The part of a forward copy that backward gathers from, where that is not the rank's own part of the
 * weight. */
static etch_value *leave_shard(sharder *s, const wanted *w, const etch_step *gather, etch_value *whole)
{
    const uint32_t axes = gather->axes & w->zero->backward_axes;
    if (s->backward || !axes || axes == gather->axes || w->keep != ETCH_KEEP_GROUP)
        return NULL;
    etch_step *slice = add_step(s, gather, 1, 1);
    slice->collective = ETCH_SLICE;
    slice->row = etch_row_of_collective(s->placed->training->graph, ETCH_SLICE);
    slice->axes = axes;
    slice->copies = NULL;
    slice->ins[0] = whole;
    return set_result(slice, 0, value_like(s, whole, axes));
}

static etch_value *part_of(const sharder *s, const wanted *w)
{
    if (s->backward && w->kept && w->kept->shard)
        return w->kept->shard;
    const uint32_t id = w->weight->tensor->id;
    if (!s->shards[id])
        s->shards[id] = value_like(s, w->weight, s->placed->zero_axes[id]);
    return s->shards[id];
}

typedef ETCH_VEC(wanted *) wanted_list;

static void note_gather(sharder *s, weight_group *u, const wanted_list *wants, etch_step *gather)
{
    for (uint32_t i = 0; i < gather->in_count; i++) {
        const gathered_copy copy = {gather->outs[i], leave_shard(s, wants->at[i], gather, gather->outs[i]),
                                    u->body, u->position};
        ETCH_PUSH(s->scratch, &u->copies, copy);
        if (!s->backward)
            ETCH_PUSH(s->scratch, &s->kept, copy);
    }
}

/* One collective for these weights. */
static void add_gather(sharder *s, weight_group *u, const wanted_list *wants)
{
    const wanted *first = wants->at[0];
    const etch_step like = {
        .row = etch_row_of_collective(s->placed->training->graph, ETCH_ALL_GATHER),
        .collective = ETCH_ALL_GATHER,
        .axes = axes_of(s, first),
        .phase = first->phase,
        .scope = first->weight->tensor->scope,
        .provenance = {ETCH_RULE_WHOLE, .loop = u->body ? u->body->loop : NULL, .line = first->zero->span},
        .lasts = first->keep,
        .position = u->position,
    };
    etch_step *gather = add_step(s, &like, wants->count, wants->count);
    etch_expr *copies = ETCH_NEW_ARRAY(s->arena, wants->count, etch_expr);
    for (uint32_t i = 0; i < wants->count; i++) {
        copies[i] = etch_copies_in_group(s->placed->training->graph->sym, wants->at[i]->weight->tensor);
        gather->ins[i] = part_of(s, wants->at[i]);
        set_result(gather, i, value_like(s, wants->at[i]->weight, 0));
    }
    gather->copies = copies;
    note_gather(s, u, wants, gather);
}

/* The next weights that one collective takes, those over the least set of axes first; none: all are taken. */
static wanted_list take_wants(const sharder *s, weight_group *u)
{
    wanted_list taken = {0};
    const wanted *first = NULL;
    for (uint32_t i = 0; i < u->wants.count; i++)
        if (u->wants.at[i].axes && (!first || u->wants.at[i].axes < first->axes))
            first = &u->wants.at[i];
    const uint32_t axes = first ? first->axes : 0;
    for (uint32_t i = 0; axes && i < u->wants.count; i++) {
        wanted *w = &u->wants.at[i];
        if (w->axes != axes || w->zero != first->zero || (first->zero->by_weight && w != first))
            continue;
        w->axes = 0;
        ETCH_PUSH(s->scratch, &taken, w);
    }
    return taken;
}

/* Finds the copies that last from before, and gathers the others. */
static void begin_group(sharder *s, weight_group *u, const etch_placed_region *region)
{
    u->body = region->loop ? etch_forward_body(region->of) : NULL;
    for (uint32_t i = 0; i < u->wants.count; i++) {
        wanted *w = &u->wants.at[i];
        const etch_tensor *weight = w->weight->tensor;
        w->keep = lasting(s, weight, u->body != NULL);
        if (s->backward || w->keep != ETCH_KEEP_GROUP)
            w->kept = kept_copy(s, weight, u->body, u->position);
        w->axes = w->kept && w->keep != ETCH_KEEP_GROUP ? 0 : axes_of(s, w);
        if (w->axes == 0)
            ETCH_PUSH(s->scratch, &u->copies, *w->kept);
    }
    for (wanted_list wants; (wants = take_wants(s, u)).count > 0;)
        add_gather(s, u, &wants);
}

/* ---- readers ------------------------------------------------------------------------------------------- */

static etch_value *whole_copy(const sharder *s, const weight_group *u, const etch_tensor *weight)
{
    for (uint32_t i = 0; i < u->copies.count; i++)
        if (u->copies.at[i].whole->tensor == weight)
            return u->copies.at[i].whole;
    return kept_copy(s, weight, NULL, 0)->whole; /* a common one */
}

/* The same value of the weight group's copy. Views are made anew, before what reads them. */
static etch_value *seen_by(sharder *s, weight_group *u, etch_value *value)
{
    const etch_value *weight = weight_under_views(s, value);
    if (!weight)
        return value;
    if (value == weight)
        return whole_copy(s, u, weight->tensor);
    etch_value *const *known = etch_map_find(&u->views, value);
    if (known)
        return *known;
    const etch_step *old = value->step;
    etch_value *before = seen_by(s, u, old->ins[0]);
    etch_step *step = add_step(s, old, 1, old->out_count);
    step->ins[0] = before;
    for (uint32_t i = 0; i < old->out_count; i++) {
        set_result(step, i, value_like(s, old->outs[i], 0));
        etch_map_set(s->scratch, &u->views, old->outs[i], &step->outs[i]);
    }
    return seen_by(s, u, value);
}

static void read_inits(sharder *s, weight_group *u, const etch_placed_loop *loop)
{
    for (uint32_t i = 0; i < etch_loop_carries(loop)->count; i++) {
        etch_value *init = etch_loop_carries(loop)->at[i].init;
        if (!init)
            continue;
        init = seen_by(s, u, init);
        for (uint32_t k = 0; k < loop->bodies.count; k++)
            loop->bodies.at[k]->carries.at[i].init = init;
    }
}

/* Views of whole weights have no readers any more. */
static void read_step(sharder *s, weight_group *u, etch_step *step)
{
    const bool free = is_free(step);
    for (uint32_t i = 0; i < step->in_count && !free; i++)
        step->ins[i] = seen_by(s, u, step->ins[i]);
    if (!free || !weight_under_views(s, step->outs[0]))
        ETCH_PUSH(s->scratch, &s->items, (etch_placed_item){.step = step});
}

static void set_items(const sharder *s, etch_placed_region *region)
{
    region->items.count = 0;
    for (uint32_t i = 0; i < s->items.count; i++)
        ETCH_PUSH(s->arena, &region->items, s->items.at[i]);
}

/* ---- regions ------------------------------------------------------------------------------------------- */

static void shard_item(sharder *s, weight_group *u, etch_placed_item item, bool begins);

/* `begins`: the region is a weight group; else it is inside of one. Goes as deep as loops are nested. */
static void shard_body(sharder *s, weight_group *u, etch_placed_region *body, bool begins)
{
    const item_list outer = s->items;
    const etch_map outer_views = u->views;
    s->items = (item_list){0};
    u->views = (etch_map){0};
    if (begins)
        begin_group(s, u, body);
    for (uint32_t i = 0; i < body->items.count; i++)
        shard_item(s, u, body->items.at[i], false);
    for (uint32_t k = 0; k < body->carries.count; k++)
        body->carries.at[k].out = seen_by(s, u, body->carries.at[k].out);
    set_items(s, body);
    s->items = outer;
    u->views = outer_views;
}

/* `begins`: the iterations of a loop are weight groups. */
static void shard_item(sharder *s, weight_group *u, etch_placed_item item, bool begins)
{
    if (item.step) {
        read_step(s, u, item.step);
        return;
    }
    read_inits(s, u, item.loop);
    for (uint32_t k = 0; k < item.loop->bodies.count; k++) {
        weight_group own = {.takes = TAKES_OWN};
        if (begins)
            want_body(s, &own, item.loop->bodies.at[k]);
        shard_body(s, begins ? &own : u, item.loop->bodies.at[k], begins);
    }
    ETCH_PUSH(s->scratch, &s->items, item);
}

typedef ETCH_VEC(weight_group) group_list;

/* The weight group of the top level that runs in the interval, with this part of the chain. */
static uint32_t group_at(const sharder *s, group_list *weight_groups, uint32_t interval,
                         etch_position position, uint32_t item)
{
    for (uint32_t i = 0; i < weight_groups->count; i++)
        if (weight_groups->at[i].interval == interval && weight_groups->at[i].position == position)
            return i;
    ETCH_PUSH(s->scratch, weight_groups,
              (weight_group){.interval = interval, .position = position, .first = item});
    return weight_groups->count - 1;
}

/* Where the loop takes what it begins with. */
static etch_position position_before(const sharder *s, const etch_placed_loop *loop)
{
    if (!s->placed->stages || !etch_position_is_loop(s->placed->stages, loop->position))
        return loop->position;
    return etch_position_at(etch_position_segment(loop->position),
                            s->backward ? ETCH_LAST_OF : ETCH_FIRST_OF);
}

static void want_before_loop(const sharder *s, weight_group *u, const etch_placed_loop *loop)
{
    want_inits(s, u, loop);
    u->takes = TAKES_COMMON;
    for (uint32_t k = 0; k < loop->bodies.count; k++)
        want_body(s, u, loop->bodies.at[k]);
    u->takes = TAKES_ALL;
}

/* The first weight group of a stage gathers what later ones read of the root. */
static void want_roots(const sharder *s, group_list *groups)
{
    for (uint32_t i = 0; i < groups->count; i++) {
        uint32_t first = 0;
        while (groups->at[first].position != groups->at[i].position)
            first++;
        for (uint32_t k = 0; first < i && k < groups->at[i].wants.count; k++) {
            const wanted *w = &groups->at[i].wants.at[k];
            if (etch_zero_roots(w->zero, w->weight->tensor))
                want(s, &groups->at[first], w->weight, w->phase);
        }
    }
}

static void shard_top(sharder *s, etch_placed_region *region)
{
    group_list weight_groups = {0};
    const uint32_t count = region->items.count;
    uint32_t *group_of = ETCH_NEW_ARRAY(s->scratch, count, uint32_t), interval = 0;
    for (uint32_t i = 0; i < count; i++) {
        etch_step *step = region->items.at[i].step;
        const etch_placed_loop *loop = region->items.at[i].loop;
        if (step && is_free(step))
            continue;
        group_of[i] =
            group_at(s, &weight_groups, interval, loop ? position_before(s, loop) : step->position, i);
        if (loop)
            want_before_loop(s, &weight_groups.at[group_of[i]], loop);
        else
            want_step(s, &weight_groups.at[group_of[i]], step);
        interval += loop != NULL;
    }
    s->items = (item_list){0};
    if (!s->backward)
        want_roots(s, &weight_groups);
    for (uint32_t i = 0, next = 0; i < count; i++) {
        for (; next < weight_groups.count && weight_groups.at[next].first == i; next++)
            begin_group(s, &weight_groups.at[next], region);
        shard_item(s, weight_groups.count ? &weight_groups.at[group_of[i]] : NULL, region->items.at[i], true);
    }
    set_items(s, region);
}

/* ---- the entry points ---------------------------------------------------------------------------------- */

/* Does any line divide weights? */
static bool divides_weights(const etch_plan *plan)
{
    bool divides = plan->zero.level == 3;
    for (uint32_t i = 0; i < plan->overrides.count; i++)
        divides = divides || plan->overrides.at[i].zero.level == 3;
    return divides;
}

void etch_shard_weights(etch_placed *placed)
{
    etch_arena *scratch = etch_arena_new(etch_arena_mem(placed->arena));
    sharder s = {.placed = placed, .arena = placed->arena, .scratch = scratch};
    if (divides_weights(placed->plan)) {
        s.shards = ETCH_NEW_ARRAY(scratch, placed->training->graph->tensors.count, etch_value *);
        shard_top(&s, placed->forward);
        s.backward = true;
        if (placed->backward)
            shard_top(&s, placed->backward);
    }
    etch_arena_free(scratch);
}
