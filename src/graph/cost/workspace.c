/* The workspace: memory beside weights, their gradients and states, and saved values, while the passes of a
 * microbatch run: the most at a time.
 *
 * requires: a placed graph. provides: the size of the largest workspace of one rank, as a formula.
 *
 * A value is there from the step that makes it to the last step that reads it, in the order of the program.
 * Views are the memory that they show; results that are added into gradients in place are none. What
 * iterations of a loop make for another loop, as a layer that is recomputed does for its gradient, is there
 * for all of them. What forward keeps for backward on the stage is counted with the activations, and not
 * here; what is kept on another stage alone is there as long as steps of this one work on it.
 *
 * Where ranks hold weights in parts, copies of a weight group's weights are there from when they are
 * gathered, ahead of the weight group, to its end, and so are its gradients, from when they are made, where
 * each microbatch reduces them. */
#include "graph/cost/live.h"

/* A region of the program, with its place in the order of all steps. */
typedef struct interval {
    /* NULL: forward, or backward, as a whole */
    struct interval *parent;
    const etch_region *of;
    /* positions, the last one included */
    uint32_t begin, end;
    /* of all bodies of the loop */
    uint32_t loop_begin, loop_end;
} interval;

typedef struct life {
    /* NULL: not in memory, or not counted here */
    const etch_value *value;
    /* where it is made */
    interval *owner;
    uint32_t birth, death;
    /* of one run of the region that makes it; all that are there */
    etch_expr each, copies;
    /* for backward: counted elsewhere */
    bool kept;
    /* something there makes or reads it */
    bool on_stage;
} life;

typedef struct sweep {
    const etch_placed *placed;
    const etch_stage_view *stage;
    etch_sym *sym;
    etch_arena *arena;
    /* which values the stage saves, and which it has */
    const etch_live_program *live;
    /* by value id */
    life *lives;
    /* of the step in work */
    uint32_t position;
    bool backward;
    /* does the stage run what is in work? */
    bool here;
    /* of the loop of the top level in work */
    uint32_t loop_begin;
    /* where those begin whose weights are gathered */
    ETCH_VEC(uint32_t) weight_groups;
    /* by position */
    ETCH_VEC(bool) on_stage;
} sweep;

/* ---- lives --------------------------------------------------------------------------------------------- */

static const etch_value *memory_of(const etch_value *value)
{
    while (etch_step_shows(value->step))
        value = value->step->ins[0];
    return value;
}

static void bear(sweep *s, const etch_value *value, interval *owner, uint32_t birth)
{
    s->lives[value->id] = (life){.value = value,
                                 .owner = owner,
                                 .birth = birth,
                                 .death = birth,
                                 .each = etch_int(s->sym, 1),
                                 .copies = etch_int(s->sym, 1),
                                 .on_stage = s->here};
}

/* A value that a loop carries. In a forward loop it may be an input all along, which is there anyway. */
static void bear_carried(sweep *s, const etch_value *value, interval *owner)
{
    const etch_live_name *name = &s->live->names[etch_live_under(s->live, value->id)];
    if (name->derived || name->holds)
        bear(s, value, owner, s->position);
}

static bool is_inside(const interval *inner, const interval *outer)
{
    while (inner && inner != outer)
        inner = inner->parent;
    return inner != NULL;
}

/* The body of `outer`'s loops that holds `inner`. */
static const interval *below(const interval *inner, const interval *outer)
{
    while (inner->parent != outer)
        inner = inner->parent;
    return inner;
}

static const interval *pass_of(const interval *at)
{
    while (at->parent)
        at = at->parent;
    return at;
}

static void lengthen(life *l, uint32_t death)
{
    if (death > l->death)
        l->death = death;
}

/* `reader` reads the value at the position in work. */
static void read_value(sweep *s, const etch_value *value, interval *reader)
{
    life *l = &s->lives[memory_of(value)->id];
    const interval *common = l->owner;
    if (!l->value || (!s->here && pass_of(reader) != pass_of(l->owner)))
        return; /* what backward reads elsewhere is kept there */
    l->on_stage = l->on_stage || s->here;
    if (is_inside(reader, l->owner)) {
        lengthen(l, reader == l->owner ? s->position : below(reader, l->owner)->loop_end);
        return;
    }
    etch_expr copies = l->each;
    for (; common && !is_inside(reader, common); common = common->parent)
        copies = etch_mul(s->sym, copies, common->of->loop ? common->of->count : etch_int(s->sym, 1));
    l->copies = copies;
    l->birth = below(l->owner, common)->loop_begin;
    lengthen(l, reader == common || !common ? s->position : below(reader, common)->loop_end);
}

static void tick(sweep *s)
{
    ETCH_PUSH(s->arena, &s->on_stage, s->here);
    s->position++;
}

static bool runs_at(const sweep *s, etch_position position)
{
    etch_positions one = {0};
    if (!s->stage || position == ETCH_NO_POSITION)
        return true;
    ETCH_PUSH(s->arena, &one, position);
    return !etch_is_zero(etch_stage_presence(s->sym, s->stage, &one));
}

/* ---- the program, in order ----------------------------------------------------------------------------- */

/* Two walks: the first gives regions their ends and values their begins, the second knows all readers. */
typedef struct numbered {
    const etch_placed_region *region;
    interval *at;
} numbered;
typedef ETCH_VEC(numbered) numbering;

static interval *interval_of(const numbering *all, const etch_placed_region *region)
{
    for (uint32_t i = 0; i < all->count; i++)
        if (all->at[i].region == region)
            return all->at[i].at;
    return NULL;
}

static const etch_gathering *gathering_of(const sweep *s, const etch_step *step)
{
    for (uint32_t i = 0; step->copies && i < s->placed->gatherings.count; i++)
        if (s->placed->gatherings.at[i].step == step)
            return &s->placed->gatherings.at[i];
    return NULL;
}

/* Where the weight group begins that is as many weight groups before the one in work as weights are gathered
 * ahead. */
static uint32_t gathered_at(sweep *s, const interval *here)
{
    const uint64_t ahead = s->placed->plan->zero.ahead;
    const uint32_t begin = here->parent ? s->loop_begin : s->position;
    if (s->weight_groups.count == 0 || s->weight_groups.at[s->weight_groups.count - 1] != begin)
        ETCH_PUSH(s->arena, &s->weight_groups, begin);
    const uint32_t last = s->weight_groups.count - 1;
    return ahead == 0 ? s->position : s->weight_groups.at[ahead < last ? last - (uint32_t)ahead : 0];
}

static void bear_copies(sweep *s, const etch_step *step, const etch_gathering *g, interval *here)
{
    const etch_expr weight_groups = etch_int(s->sym, (int64_t)s->placed->plan->zero.ahead + 1);
    const bool in_turn = g->lasts == ETCH_KEEP_GROUP && here->parent;
    const etch_expr all = in_turn ? weight_groups : etch_int(s->sym, 1);
    const uint32_t birth = gathered_at(s, here);
    for (uint32_t k = 0; k < step->out_count; k++) {
        life *l = &s->lives[step->outs[k]->id];
        bear(s, step->outs[k], here, birth);
        l->each = l->copies = etch_mul(s->sym, step->copies[k], all);
        l->death = g->lasts == ETCH_KEEP_STEP ? UINT32_MAX : s->position;
        l->birth = g->lasts == ETCH_KEEP_STEP ? 0 : birth;
    }
}

/* The gradients of a weight group, whole until they are reduced: see `end_group`. */
static bool is_reduced_soon(const sweep *s, const etch_tensor *gradient)
{
    return etch_zero_divides(s->placed, gradient->of, ETCH_HOLDS_GRADIENT) != 0;
}

static void bear_step(sweep *s, const etch_step *step, interval *here)
{
    const etch_gathering *g = gathering_of(s, step);
    const bool is_shard = step->collective == ETCH_SLICE && step->outs[0]->tensor->kind == ETCH_INPUT;
    if (step->row->stays || is_shard) /* a cache, which is counted by itself; a part of what is there */
        return;
    if (g) {
        bear_copies(s, step, g, here);
        return;
    }
    for (uint32_t k = 0; k < step->out_count; k++)
        if (!step->accumulate_into[k] || is_reduced_soon(s, step->accumulate_into[k]))
            bear(s, step->outs[k], here, s->position);
}

/* Gathered copies are there to the end of the weight group, and so are its gradients, for all iterations of
 * the loops in it. */
static void end_group(sweep *s, const etch_step *step, const interval *here)
{
    for (uint32_t k = 0; step->copies && here->parent && k < step->out_count; k++)
        lengthen(&s->lives[step->outs[k]->id], here->end);
    for (uint32_t k = 0; k < step->out_count; k++) {
        life *l = &s->lives[step->outs[k]->id];
        const interval *weight_group = here;
        if (!step->accumulate_into[k] || !l->value)
            continue;
        for (; weight_group->parent && weight_group->parent->parent; weight_group = weight_group->parent) {
            l->copies = etch_mul(s->sym, l->copies, weight_group->of->count);
            l->birth = weight_group->loop_begin;
        }
        lengthen(l, weight_group->parent ? weight_group->end : s->position);
    }
}

/* Goes as deep as loops are nested. */
static void bear_region(sweep *s, const etch_placed_region *region, interval *parent, numbering *all)
{
    interval *here = ETCH_NEW(s->arena, interval);
    *here = (interval){.parent = parent, .of = region->of, .begin = s->position};
    ETCH_PUSH(s->arena, all, (numbered){region, here});
    for (uint32_t i = 0; i < region->carries.count; i++)
        bear_carried(s, region->carries.at[i].in, here);
    for (uint32_t i = 0; i < region->items.count; i++) {
        const etch_step *step = region->items.at[i].step;
        const etch_placed_loop *loop = region->items.at[i].loop;
        const uint32_t begin = s->position;
        if (!parent && s->placed->stages)
            s->here = runs_at(s, step ? step->position : loop->position);
        if (step && !etch_step_shows(step)) {
            bear_step(s, step, here);
            tick(s);
        }
        if (loop && !parent)
            s->loop_begin = begin;
        for (uint32_t k = 0; loop && k < loop->bodies.count; k++)
            bear_region(s, loop->bodies.at[k], here, all);
        for (uint32_t k = 0; loop && k < loop->bodies.count; k++) {
            interval *body = interval_of(all, loop->bodies.at[k]);
            body->loop_begin = begin;
            body->loop_end = s->position;
        }
        for (uint32_t k = 0; loop && k < etch_loop_carries(loop)->count; k++)
            if (etch_loop_carries(loop)->at[k].result)
                bear_carried(s, etch_loop_carries(loop)->at[k].result, here);
        if (loop)
            tick(s);
    }
    here->end = s->position;
    tick(s);
}

static void read_region(sweep *s, const etch_placed_region *region, const numbering *all)
{
    interval *here = interval_of(all, region);
    for (uint32_t i = 0; i < region->items.count; i++) {
        const etch_step *step = region->items.at[i].step;
        const etch_placed_loop *loop = region->items.at[i].loop;
        if (!here->parent && s->placed->stages)
            s->here = runs_at(s, step ? step->position : loop->position);
        for (uint32_t k = 0; step && !etch_step_shows(step) && k < step->in_count; k++)
            read_value(s, step->ins[k], here);
        if (step)
            end_group(s, step, here);
        for (uint32_t k = 0; loop && k < etch_loop_carries(loop)->count; k++)
            if (etch_loop_carries(loop)->at[k].init)
                read_value(s, etch_loop_carries(loop)->at[k].init, here);
        s->position += step && !etch_step_shows(step);
        for (uint32_t k = 0; loop && k < loop->bodies.count; k++)
            read_region(s, loop->bodies.at[k], all);
        s->position += loop != NULL;
    }
    for (uint32_t i = 0; i < region->carries.count; i++)
        read_value(s, region->carries.at[i].out, here);
    s->position++;
}

/* ---- what is kept is counted elsewhere ----------------------------------------------------------------- */

static void keep_value(sweep *s, const etch_value *value)
{
    life *l = &s->lives[memory_of(value)->id];
    if (l->value && l->value->tensor->kind != ETCH_WEIGHT)
        l->kept = true;
}

/* Forward values that a later phase reads on the stage: `s->lives` are those of forward only. */
static void keep_read(sweep *s)
{
    for (uint32_t i = 0; i < s->placed->value_count; i++)
        if (s->lives[i].value && s->live->names[etch_live_under(s->live, i)].read)
            keep_value(s, s->lives[i].value);
}

/* The loop-carried values of iterations are saved where those that enter them are, but for the last, which
 * may not be. */
static void keep_chains(sweep *s, const etch_placed_region *region)
{
    for (uint32_t i = 0; i < region->items.count; i++) {
        const etch_placed_loop *loop = region->items.at[i].loop;
        for (uint32_t k = 0; loop && k < loop->bodies.count; k++) {
            const etch_placed_region *body = loop->bodies.at[k];
            keep_chains(s, body);
            for (uint32_t n = 0; n < body->carries.count; n++) {
                const etch_placed_carry *c = &body->carries.at[n];
                const etch_value *result = etch_loop_carries(loop)->at[n].result;
                if (!s->lives[c->in->id].kept)
                    continue;
                if (result && s->lives[result->id].kept)
                    keep_value(s, c->out);
                if (c->init)
                    keep_value(s, c->init);
            }
        }
    }
}

/* ---- the most at a time -------------------------------------------------------------------------------- */

typedef ETCH_VEC(etch_expr) expr_list;

/* By position: the sizes of the values that are there from it on, and of those that nothing after it
 * reads. */
typedef struct changes {
    uint32_t end;
    expr_list *born, *gone;
} changes;

static changes changes_of(const sweep *s)
{
    const uint32_t end = s->on_stage.count;
    const changes c = {end, ETCH_NEW_ARRAY(s->arena, end + 1, expr_list),
                       ETCH_NEW_ARRAY(s->arena, end + 1, expr_list)};
    for (uint32_t i = 0; i < s->placed->value_count; i++) {
        const life *l = &s->lives[i];
        if (!l->value || l->kept || !l->on_stage)
            continue;
        const etch_expr bytes = etch_mul(s->sym, l->copies, etch_value_bytes(s->placed, l->value));
        ETCH_PUSH(s->arena, &c.born[l->birth], bytes);
        ETCH_PUSH(s->arena, &c.gone[l->death < end ? l->death : end], bytes);
    }
    return c;
}

static etch_expr most_at_a_time(const sweep *s, const changes *c)
{
    etch_expr now = etch_int(s->sym, 0);
    expr_list candidates = {0};
    for (uint32_t t = 0; t < c->end; t++) {
        for (uint32_t i = 0; i < c->born[t].count; i++)
            now = etch_add(s->sym, now, c->born[t].at[i]);
        if (c->gone[t].count > 0 && s->on_stage.at[t])
            ETCH_PUSH(s->arena, &candidates, now);
        for (uint32_t i = 0; i < c->gone[t].count; i++)
            now = etch_sub(s->sym, now, c->gone[t].at[i]);
    }
    return candidates.count > 0 ? etch_max_of(s->sym, candidates.count, candidates.at) : now;
}

/* All sizes with the values put in. False: not all of them are numbers then. */
static bool all_numbers(const changes *c, const etch_valuation *values)
{
    for (uint32_t t = 0; t <= c->end; t++)
        for (uint32_t k = 0; k < 2; k++) {
            expr_list *list = k ? &c->gone[t] : &c->born[t];
            for (uint32_t i = 0; i < list->count; i++) {
                list->at[i] = values->put(values->data, list->at[i]);
                if (!list->at[i] || !etch_is_constant(list->at[i]))
                    return false;
            }
        }
    return true;
}

etch_expr etch_workspace_bytes(const etch_placed *placed, const etch_stage_view *stage,
                               const etch_valuation *values)
{
    numbering all = {0};
    sweep s = {.placed = placed,
               .stage = placed->stages ? stage : NULL,
               .sym = placed->training->graph->sym,
               .arena = placed->arena,
               .lives = ETCH_NEW_ARRAY(placed->arena, placed->value_count, life),
               .here = true};
    etch_live_program *live = etch_live_of_placed(placed, s.stage, ETCH_HOLD_FORWARD_TO_INPUTS);
    etch_live_find(live);
    s.live = live;
    bear_region(&s, placed->forward, NULL, &all);
    if (placed->backward) {
        keep_read(&s);
        keep_chains(&s, placed->forward);
        bear_region(&s, placed->backward, NULL, &all);
    }
    s.position = 0;
    read_region(&s, placed->forward, &all);
    if (placed->backward)
        read_region(&s, placed->backward, &all);
    changes c = changes_of(&s);
    /* the formula of a maximum takes long; that of numbers is the largest */
    if (values && !all_numbers(&c, values))
        c = changes_of(&s);
    return most_at_a_time(&s, &c);
}
