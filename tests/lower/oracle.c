#include "oracle.h"
#include "end_work.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_PATH = 4 };

/* One run of a kernel, or a task of the end of the step. */
typedef struct event event;

typedef ETCH_VEC(event *) event_list;

/* An accumulator of a gradient: the weight's, for iterations of the loops around the weight. */
typedef struct accumulator {
    const etch_tensor *gradient;
    int64_t path[MOST_PATH]; /* outermost first */
    uint32_t depth;
} accumulator;

struct event {
    bool issued;
    uint32_t id;
    oracle_node node;
    event_list parents;
    ETCH_VEC(accumulator) adds;
    uint32_t slot;
    uint32_t awaits; /* how many of the collectives it waits for, at any distance: the first so many */
    uint32_t
        comp; /* the last computation that it is or waits for, at any distance, counted from 1; 0: none */
};

/* What is known in one run of a region. */
typedef struct env {
    struct env *outer;
    struct env *undone; /* backward: the environment of the iteration that this one undoes */
    const etch_placed_loop *loop;
    int64_t iteration;
    event **kernels; /* by kernel of the region */
    struct {
        const etch_value *value;
        event_list makers;
    } * values;
    uint32_t value_count, value_capacity;
    struct {
        const etch_placed_loop *loop;
        struct env **iterations;
    } * loops;
    uint32_t loop_count, loop_capacity;
} env;

/* Marks between events: an iteration of an outermost backward loop has ended, or a stretch between loops. */
typedef struct mark {
    uint32_t after;          /* events issued before it */
    const etch_loop *undone; /* NULL: a stretch */
    int64_t iteration;
    bool last_microbatch;
} mark;

typedef struct interpreter {
    etch_arena *arena;
    const built *b;
    const shape *shape;
    event_list issued;
    ETCH_VEC(mark) marks;
    uint32_t slot;
    int64_t microbatch;
} interpreter;

/* ---- environments -------------------------------------------------------------------------------------- */

static env *new_env(const interpreter *in, env *outer, const etch_placed_region *region)
{
    env *e = ETCH_NEW(in->arena, env);
    e->outer = outer;
    e->kernels = ETCH_NEW_ARRAY(in->arena, region->kernels.count, event *);
    return e;
}

static event_list *own_makers(env *e, const etch_value *value)
{
    for (uint32_t i = 0; i < e->value_count; i++)
        if (e->values[i].value == value)
            return &e->values[i].makers;
    return NULL;
}

static event_list makers_of(env *e, const etch_value *value)
{
    for (; e; e = e->outer)
        for (env *seen = e; seen; seen = seen->undone) {
            event_list *own = own_makers(seen, value);
            if (own)
                return *own;
        }
    return (event_list){0};
}

static void define(const interpreter *in, env *e, const etch_value *value, event_list makers)
{
    if (e->value_count == e->value_capacity)
        e->values = etch_vec_grow(in->arena, e->values, &e->value_capacity, sizeof *e->values);
    e->values[e->value_count].value = value;
    e->values[e->value_count++].makers = makers;
}

static env **iterations_of(env *e, const etch_placed_loop *loop)
{
    for (; e; e = e->outer)
        for (env *seen = e; seen; seen = seen->undone)
            for (uint32_t i = 0; i < seen->loop_count; i++)
                if (seen->loops[i].loop == loop)
                    return seen->loops[i].iterations;
    return NULL;
}

/* ---- the step by step run ------------------------------------------------------------------------------ */

static char letter_of(etch_phase phase)
{
    return "FRBSO"[phase];
}

static bool is_wide(const interpreter *in, uint32_t axes)
{
    return (axes >> DP & 1 && in->shape->dp > 1) || (axes >> TP & 1 && in->shape->tp > 1);
}

static event *new_event(const interpreter *in)
{
    event *made = ETCH_NEW(in->arena, event);
    made->slot = in->slot;
    made->node.microbatch = in->microbatch;
    return made;
}

static event *event_of(const interpreter *in, env *e, const etch_kernel *kernel, uint32_t index)
{
    if (e->kernels[index])
        return e->kernels[index];
    event *made = new_event(in);
    made->node.collective = kernel->anchor->collective != ETCH_NO_COLLECTIVE;
    made->node.move = kernel->anchor->collective;
    made->node.axes = kernel->anchor->axes;
    made->node.phase = letter_of(kernel->anchor->phase);
    made->node.flop = made->node.collective ? 0 : value_of(in->b, kernel->flop);
    made->node.bytes = value_of(in->b, kernel->bytes);
    e->kernels[index] = made;
    return made;
}

static void issue(interpreter *in, event *made)
{
    ck_assert(!made->issued);
    made->issued = true;
    made->id = in->issued.count;
    ETCH_PUSH(in->arena, &in->issued, made);
}

static void add_all(const interpreter *in, event_list *to, event_list from)
{
    for (uint32_t i = 0; i < from.count; i++)
        ETCH_PUSH(in->arena, to, from.at[i]);
}

/* The accumulator that is meant here: iterations of the loops around the weight, known by their names. */
static accumulator accumulator_here(const env *e, const etch_tensor *gradient)
{
    accumulator a = {.gradient = gradient};
    const etch_region *region = gradient->of->region;
    for (; region; region = region->parent)
        a.depth += region->loop != NULL;
    uint32_t at = a.depth;
    for (region = gradient->of->region; region; region = region->parent) {
        if (!region->loop)
            continue;
        const env *here = e;
        while (strcmp(here->loop ? here->loop->loop->name : "", region->loop->name) != 0)
            here = here->outer;
        a.path[--at] = here->iteration;
    }
    return a;
}

static void run_step(interpreter *in, env *e, const etch_placed_region *region, const etch_step *step)
{
    event_list inputs = {0};
    for (uint32_t i = 0; i < step->in_count; i++)
        add_all(in, &inputs, makers_of(e, step->ins[i]));
    bool moves = step->collective != ETCH_NO_COLLECTIVE;
    event_list outputs = inputs;
    event *made = NULL;
    if (step->kernel != UINT32_MAX && (!moves || is_wide(in, step->axes))) {
        made = event_of(in, e, region->kernels.at[step->kernel], step->kernel);
        add_all(in, &made->parents, inputs);
        outputs = (event_list){0};
        ETCH_PUSH(in->arena, &outputs, made);
    }
    for (uint32_t i = 0; i < step->out_count; i++) {
        define(in, e, step->outs[i], outputs);
        event *adder = made ? made : inputs.count > 0 ? inputs.at[0] : NULL;
        if (step->accumulate_into[i])
            ETCH_PUSH(in->arena, &adder->adds, accumulator_here(e, step->accumulate_into[i]));
    }
}

static void run_region(interpreter *in, env *e, const etch_placed_region *region);

/* The class of an iteration, as the pattern says it. */
static uint32_t class_of(const interpreter *in, const etch_loop *loop, int64_t iteration)
{
    const etch_pattern *pattern = loop->pattern;
    for (uint32_t i = 0; pattern && i < pattern->segments.count; i++) {
        const etch_segment *s = &pattern->segments.at[i];
        if (value_of(in->b, s->first) <= iteration && iteration < value_of(in->b, s->end))
            return s->class_of[(uint64_t)iteration % pattern->period];
    }
    ck_assert(!pattern);
    return 0;
}

static const etch_placed_region *body_of(const interpreter *in, const etch_placed_loop *loop,
                                         int64_t iteration)
{
    return loop->bodies.at[class_of(in, loop->loop, iteration)];
}

/* Does the unit have weights in the iteration? */
static bool has_unit(const interpreter *in, const etch_weight_group *unit, int64_t iteration)
{
    return !unit->loop || class_of(in, unit->loop, iteration) == unit->body->index;
}

static void run_loop(interpreter *in, env *around, const etch_placed_loop *loop)
{
    int64_t count = value_of(in->b, loop->loop->count);
    env **undone = loop->forward ? iterations_of(around, loop->forward) : NULL;
    env **iterations = ETCH_NEW_ARRAY(in->arena, (size_t)count, env *);
    event_list *carried = ETCH_NEW_ARRAY(in->arena, etch_loop_carries(loop)->count, event_list);
    for (uint32_t i = 0; i < etch_loop_carries(loop)->count; i++)
        if (etch_loop_carries(loop)->at[i].init)
            carried[i] = makers_of(around, etch_loop_carries(loop)->at[i].init);
    for (int64_t turn = 0; turn < count; turn++) {
        const int64_t iteration = loop->forward ? count - 1 - turn : turn;
        const etch_placed_region *body = body_of(in, loop, iteration);
        env *e = new_env(in, around, body);
        e->loop = loop;
        e->iteration = iteration;
        if (loop->forward)
            e->undone = undone[e->iteration];
        iterations[e->iteration] = e;
        if (!around->outer)
            in->slot++; /* a stretch of its own */
        for (uint32_t i = 0; i < etch_loop_carries(loop)->count; i++)
            define(in, e, body->carries.at[i].in, carried[i]);
        run_region(in, e, body);
        for (uint32_t i = 0; i < etch_loop_carries(loop)->count; i++)
            carried[i] = makers_of(e, body->carries.at[i].out);
        if (!around->outer && loop->forward)
            ETCH_PUSH(in->arena, &in->marks,
                      (mark){in->issued.count, loop->loop->forward, e->iteration,
                             in->microbatch + 1 == in->shape->micro});
    }
    for (uint32_t i = 0; i < etch_loop_carries(loop)->count; i++)
        if (etch_loop_carries(loop)->at[i].result)
            define(in, around, etch_loop_carries(loop)->at[i].result, carried[i]);
    if (around->loop_count == around->loop_capacity)
        around->loops =
            etch_vec_grow(in->arena, around->loops, &around->loop_capacity, sizeof *around->loops);
    around->loops[around->loop_count].loop = loop;
    around->loops[around->loop_count++].iterations = iterations;
}

static void mark_stretch(interpreter *in, const env *e, const etch_placed_region *region)
{
    if (!e->outer && region == in->b->placed->backward)
        ETCH_PUSH(in->arena, &in->marks,
                  (mark){in->issued.count, NULL, 0, in->microbatch + 1 == in->shape->micro});
}

static void run_region(interpreter *in, env *e, const etch_placed_region *region)
{
    for (uint32_t i = 0; i < region->items.count; i++) {
        const etch_placed_item *item = &region->items.at[i];
        if (item->loop) {
            mark_stretch(in, e, region);
            run_loop(in, e, item->loop);
            mark_stretch(in, e, region);
            continue;
        }
        run_step(in, e, region, item->step);
        for (uint32_t k = 0; k < region->kernels.count; k++) {
            const etch_kernel *kernel = region->kernels.at[k];
            bool runs = kernel->anchor->collective == ETCH_NO_COLLECTIVE || is_wide(in, kernel->anchor->axes);
            if (kernel->item == i && runs)
                issue(in, event_of(in, e, kernel, k));
        }
    }
    mark_stretch(in, e, region);
}

/* ---- the order, and the end of the step ---------------------------------------------------------------- */

typedef struct writer {
    accumulator to;
    event *last;
} writer;

typedef struct ordering {
    interpreter *in;
    ETCH_VEC(writer) writers;
    event_list order;
    event *last_collective, *last_comp, *before_slot;
    event *latest;      /* the computation that waits for most collectives, the last of several */
    event *also_before; /* that one, where the last computation before the slot waits for fewer */
    uint32_t slot, collectives;
    ETCH_VEC(event *) comps;
    bool *bucket_done;
    event *clip;
} ordering;

static bool is_same(const accumulator *a, const accumulator *b)
{
    return a->gradient == b->gradient && a->depth == b->depth &&
           memcmp(a->path, b->path, sizeof a->path) == 0;
}

static writer *writer_to(ordering *o, const accumulator *a)
{
    for (uint32_t i = 0; i < o->writers.count; i++)
        if (is_same(&o->writers.at[i].to, a))
            return &o->writers.at[i];
    ETCH_PUSH(o->in->arena, &o->writers, (writer){.to = *a});
    return &o->writers.at[o->writers.count - 1];
}

static int by_id(const void *a, const void *b)
{
    const event *x = *(event *const *)a, *y = *(event *const *)b;
    return x->id < y->id ? -1 : x->id > y->id;
}

/* Gives the event the next id and its parents the rules of order. */
static void order_event(ordering *o, event *e)
{
    etch_arena *arena = o->in->arena;
    if (e->slot != o->slot) {
        o->slot = e->slot;
        o->before_slot = o->last_comp;
        o->also_before = o->last_comp && o->latest->awaits > o->last_comp->awaits ? o->latest : NULL;
    }
    e->id = o->order.count;
    event_list parents = {0};
    for (uint32_t i = 0; i < e->parents.count; i++)
        if (e->parents.at[i] != e)
            ETCH_PUSH(arena, &parents, e->parents.at[i]);
    for (uint32_t i = 0; i < e->adds.count; i++) {
        writer *w = writer_to(o, &e->adds.at[i]);
        if (w->last && w->last != e)
            ETCH_PUSH(arena, &parents, w->last);
        w->last = e;
    }
    if (e->node.collective && o->last_collective)
        ETCH_PUSH(arena, &parents, o->last_collective);
    bool inside = false;
    for (uint32_t i = 0; i < parents.count; i++)
        inside = inside || parents.at[i]->slot == e->slot;
    if (!inside && o->before_slot)
        ETCH_PUSH(arena, &parents, o->before_slot);
    if (!inside && o->also_before)
        ETCH_PUSH(arena, &parents, o->also_before);
    for (uint32_t i = 0; i < parents.count; i++)
        e->comp = parents.at[i]->comp > e->comp ? parents.at[i]->comp : e->comp;
    if (!e->node.collective) {
        if (o->comps.count >= e->comp + 8) /* none of the last eight */
            ETCH_PUSH(arena, &parents, o->comps.at[o->comps.count - 8]);
        ETCH_PUSH(arena, &o->comps, e);
        e->comp = o->comps.count;
    }
    for (uint32_t i = 0; i < parents.count; i++)
        e->awaits = parents.at[i]->awaits > e->awaits ? parents.at[i]->awaits : e->awaits;
    if (e->node.collective)
        e->awaits = ++o->collectives;
    else if (!o->latest || e->awaits >= o->latest->awaits)
        o->latest = e;
    if (parents.count > 0)
        qsort(parents.at, parents.count, sizeof(event *), by_id);
    e->node.deps = ETCH_NEW_ARRAY(arena, parents.count, uint32_t);
    for (uint32_t i = 0; i < parents.count; i++)
        if (i == 0 || parents.at[i] != parents.at[i - 1])
            e->node.deps[e->node.dep_count++] = parents.at[i]->id;
    *(e->node.collective ? &o->last_collective : &o->last_comp) = e;
    ETCH_PUSH(arena, &o->order, e);
}

static bool is_among(etch_tensor *const *gradients, uint32_t count, const etch_tensor *gradient)
{
    for (uint32_t i = 0; i < count; i++)
        if (gradients[i] == gradient)
            return true;
    return false;
}

/* The last nodes that wrote these gradients in one unit; iteration -1: in all. `into`: becomes the last
 * itself. */
static void read_gradients(ordering *o, event *e, etch_tensor *const *gradients, uint32_t count,
                           int64_t iteration, bool into)
{
    for (uint32_t i = 0; i < o->writers.count; i++) {
        writer *w = &o->writers.at[i];
        if (!is_among(gradients, count, w->to.gradient) || (iteration >= 0 && w->to.path[0] != iteration))
            continue;
        if (w->last)
            ETCH_PUSH(o->in->arena, &e->parents, w->last);
        if (into)
            w->last = e;
    }
}

static void add_bucket(ordering *o, const end_work *bucket, int64_t iteration, uint32_t slot)
{
    event *e = new_event(o->in);
    e->slot = slot;
    e->node = (oracle_node){
        .collective = true, .move = ETCH_ALL_REDUCE, .axes = bucket->axes, .phase = 'S', .microbatch = -1};
    e->node.bytes = value_of(o->in->b, bucket->bytes);
    for (uint32_t i = 0; iteration < 0 && i < bucket->gradients.count; i++)
        writer_to(o, &(accumulator){.gradient = bucket->gradients.at[i]}); /* also of zeros */
    read_gradients(o, e, bucket->gradients.at, bucket->gradients.count, iteration, true);
    order_event(o, e);
}

/* Does an event from `first` on add into a gradient of the bucket? */
static bool is_still_added_to(const ordering *o, const end_work *bucket, uint32_t first)
{
    const event_list *issued = &o->in->issued;
    for (uint32_t i = first; i < issued->count; i++)
        for (uint32_t k = 0; k < issued->at[i]->adds.count; k++)
            if (is_among(bucket->gradients.at, bucket->gradients.count, issued->at[i]->adds.at[k].gradient))
                return true;
    return false;
}

/* At a mark of the last microbatch: the buckets that are complete. */
static void add_buckets(ordering *o, const mark *m)
{
    const etch_placed *placed = o->in->b->placed;
    const uint32_t slot = o->slot; /* behind what has just been ordered */
    bool ends = m == &o->in->marks.at[o->in->marks.count - 1];
    const end_works reductions = end_reductions(placed);
    for (uint32_t i = 0; m->last_microbatch && i < reductions.count; i++) {
        const end_work *bucket = &reductions.at[i];
        if (!is_wide(o->in, bucket->axes))
            continue;
        if (m->undone && bucket->weight_group->loop == m->undone &&
            has_unit(o->in, bucket->weight_group, m->iteration))
            add_bucket(o, bucket, m->iteration, slot);
        bool complete = !m->undone && !bucket->weight_group->loop && !is_still_added_to(o, bucket, m->after);
        bool touched = ends;
        for (uint32_t k = 0; k < o->writers.count && !touched; k++)
            touched = is_among(bucket->gradients.at, bucket->gradients.count, o->writers.at[k].to.gradient);
        if (complete && touched && !o->bucket_done[i]) {
            o->bucket_done[i] = true;
            add_bucket(o, bucket, -1, slot);
        }
    }
}

static void add_clip(ordering *o)
{
    const etch_placed *placed = o->in->b->placed;
    const etch_training *training = placed->training;
    event *norm = new_event(o->in), *reduce = new_event(o->in);
    norm->node = (oracle_node){.phase = 'O', .microbatch = -1};
    norm->node.bytes = 4;
    const end_works norms = end_norms(placed);
    for (uint32_t i = 0; i < norms.count; i++) {
        const end_work *part = &norms.at[i];
        int64_t units = part->weight_group->body ? value_of(o->in->b, part->weight_group->body->count) : 1;
        norm->node.flop += units * value_of(o->in->b, part->flop);
        norm->node.bytes += units * value_of(o->in->b, part->bytes);
    }
    read_gradients(o, norm, training->gradients.at, training->gradients.count, -1, false);
    order_event(o, norm);
    o->clip = norm;
    if (o->in->shape->dp * o->in->shape->tp == 1)
        return;
    reduce->node = (oracle_node){
        .collective = true, .move = ETCH_ALL_REDUCE, .axes = 3, .bytes = 4, .phase = 'S', .microbatch = -1};
    ETCH_PUSH(o->in->arena, &reduce->parents, norm);
    order_event(o, reduce);
    o->clip = reduce;
}

static void add_updates(ordering *o)
{
    const etch_placed *placed = o->in->b->placed;
    const end_works updates = end_updates(placed);
    for (uint32_t i = 0; i < updates.count; i++) {
        const end_work *update = &updates.at[i];
        int64_t units =
            update->weight_group->loop ? value_of(o->in->b, update->weight_group->loop->count) : 1;
        for (int64_t unit = 0; unit < units; unit++) {
            if (!has_unit(o->in, update->weight_group, unit))
                continue;
            event *e = new_event(o->in);
            e->node = (oracle_node){.phase = 'O', .microbatch = -1};
            e->node.flop = value_of(o->in->b, update->flop);
            e->node.bytes = value_of(o->in->b, update->bytes);
            read_gradients(o, e, update->gradients.at, update->gradients.count,
                           update->weight_group->loop ? unit : -1, false);
            if (o->clip)
                ETCH_PUSH(o->in->arena, &e->parents, o->clip);
            ETCH_PUSH(o->in->arena, &e->parents, o->last_comp);
            order_event(o, e);
        }
    }
}

static void order_all(ordering *o)
{
    interpreter *in = o->in;
    uint32_t next_mark = 0;
    for (uint32_t i = 0; i <= in->issued.count; i++) {
        for (; next_mark < in->marks.count && in->marks.at[next_mark].after == i; next_mark++)
            add_buckets(o, &in->marks.at[next_mark]);
        if (i < in->issued.count)
            order_event(o, in->issued.at[i]);
    }
    in->slot++;
    const end_works norms = end_norms(in->b->placed);
    if (norms.count > 0)
        add_clip(o);
    add_updates(o);
}

oracle oracle_run(const built *b, const shape *s)
{
    interpreter in = {.arena = b->x->arena, .b = b, .shape = s};
    for (in.microbatch = 0; in.microbatch < s->micro; in.microbatch++) {
        env *forward = new_env(&in, NULL, b->placed->forward);
        run_region(&in, forward, b->placed->forward);
        in.slot++;
        env *backward = new_env(&in, NULL, b->placed->backward);
        backward->undone = forward;
        run_region(&in, backward, b->placed->backward);
        if (in.microbatch + 1 < s->micro)
            in.slot++;
    }
    in.microbatch = -1;
    ordering o = {.in = &in, .slot = 0};
    const end_works reductions = end_reductions(b->placed);
    o.bucket_done = ETCH_NEW_ARRAY(in.arena, reductions.count, bool);
    order_all(&o);
    oracle result = {.nodes = ETCH_NEW_ARRAY(in.arena, o.order.count, oracle_node), .count = o.order.count};
    for (uint32_t i = 0; i < o.order.count; i++)
        result.nodes[i] = o.order.at[i]->node;
    return result;
}
