/* Values of the forward pass that are saved for the backward pass.
 *
 * requires: a training graph. provides: the values that are read again, each once, with the op that needs it.
 *
 * Nothing is typed in: what an op's gradient reads follows from its row, and so does what is kept. A value is
 * where it is in memory: views (renames, slices, the edges of modules) are looked through. A loop hands a
 * value on from iteration to iteration: what enters one iteration is what the one before has made. Such a
 * chain of n iterations has n + 1 places, the first of which came from outside and the last of which leaves;
 * either may belong to another chain as well, and is counted there or here, not twice.
 *
 * Where iterations are not alike, a chain is counted exactly when every class that changes the value reads
 * what enters it, or none does. Else a value that one class reads when it has made it, and another when it
 * enters, counts twice; so does an older value that one carries on and another reads when it enters. */
#include <stdlib.h>

#include "graph/cost/cost_int.h"

typedef struct keeping {
    const etch_training *training;
    etch_sym *sym;
    etch_arena *arena;
    /* tensors */
    uint32_t count;
    etch_saved_ways *ways;
    /* by tensor id: the first op that reads the value in backward; NULL: nothing does */
    const etch_op **reader;
    /* by tensor id: 1 + the item that counts the value; 0: none does yet */
    uint32_t *item;
    /* whose part is counted; NULL: all of it */
    etch_saved_stage *stage;
    /* of which one is counted, of each value */
    etch_expr shards;
    /* as ranks of it hold them; NULL: as the model does */
    const etch_placed *placed;
    bool changed;
    etch_saved_list all;
} keeping;

/* Is it a value of the forward pass that would be gone if it were not kept? */
static bool is_kept(const etch_tensor *tensor)
{
    const bool forward = !tensor->producer || tensor->producer->phase == ETCH_FORWARD;
    return tensor->kind == ETCH_ACT && !tensor->of && forward;
}

/* ---- reads ------------------------------------------------------------------------------------------ */

/* `position`: where the stages read it. */
static void note_at(keeping *k, const etch_tensor *tensor, const etch_op *reader, etch_position position)
{
    const etch_tensor *place = etch_saved_place_of(k->ways, tensor);
    if (etch_saved_stage_note(k->stage, place, position))
        k->changed = true;
    if (k->reader[place->id])
        return;
    k->reader[place->id] = reader;
    k->changed = true;
}

/* The value that `chain` begins or ends with, or carries on: with one of its iterations. */
static void note(keeping *k, const etch_carry *chain, const etch_tensor *tensor, const etch_op *reader)
{
    const etch_side side = tensor == chain->result ? ETCH_LAST_OF : ETCH_FIRST_OF;
    note_at(k, tensor, reader, etch_saved_stage_side(k->stage, chain->in->region, side));
}

/* In the order of the backward pass. Views read nothing: what reads them does. */
static void read_region(etch_arena *arena, const etch_region *region, etch_readings *out)
{
    for (uint32_t i = 0; i < region->items.count; i++) {
        const etch_op *op = region->items.at[i].op;
        const etch_loop *loop = region->items.at[i].loop;
        for (uint32_t n = 0; op && op->row->role != ETCH_ROLE_FREE && n < op->in_count; n++)
            ETCH_PUSH(arena, &out->all, (etch_reading){op->ins[n], op, ETCH_NO_POSITION});
        for (uint32_t n = 0; loop && n < loop->bodies.count; n++)
            read_region(arena, loop->bodies.at[n], out);
    }
}

/* The class of the first iteration. */
static uint32_t first_class(etch_sym *sym, const etch_loop *loop)
{
    const etch_pattern *pattern = loop->pattern;
    for (uint32_t i = 0; pattern && i < pattern->segments.count; i++) {
        const etch_segment *s = &pattern->segments.at[i];
        if (etch_is_zero(s->first) && etch_at_least(sym, s->end, etch_int(sym, 1), NULL) == ETCH_YES)
            return s->class_of[0];
    }
    return 0;
}

/* Do all classes that change the value read what enters them? */
static bool all_read(const keeping *k, const etch_carry *carry)
{
    for (uint32_t n = 0; n < etch_saved_loop_of(carry)->bodies.count; n++) {
        const etch_carry *c = etch_saved_in_class(carry, n);
        if (!etch_saved_is_invariant(k->ways, c) && !k->reader[c->in->id])
            return false;
    }
    return true;
}

/* The ends of a chain whose iterations are not alike. */
static void note_class(keeping *k, const etch_carry *c)
{
    const etch_op *in = k->reader[c->in->id], *out = k->reader[etch_saved_place_of(k->ways, c->out)->id];
    const uint32_t begin = first_class(k->sym, etch_saved_loop_of(c));
    if (in &&
        (c->in->region->index == begin || !etch_saved_is_produced(k->ways, etch_saved_in_class(c, begin))))
        note(k, c, c->init, in);
    if ((in && etch_saved_is_invariant(k->ways, c)) ||
        (out && etch_saved_is_produced(k->ways, c) && all_read(k, c)))
        note(k, c, c->result, in ? in : out);
    if (in && !etch_saved_is_produced(k->ways, c) && !etch_saved_is_invariant(k->ways, c))
        note(k, c, c->out, in);
}

/* A recomputed iteration makes nothing that is saved, but may carry on what is: older values, which an
 * iteration of another class reads when they enter it, or whatever reads what leaves the loop. */
static void note_again(keeping *k, const etch_carry *c)
{
    const uint32_t begin = first_class(k->sym, etch_saved_loop_of(c));
    const etch_op *reader = k->reader[c->result->id];
    for (uint32_t n = 0; n < etch_saved_loop_of(c)->bodies.count && !reader; n++)
        reader = k->reader[etch_saved_in_class(c, n)->in->id];
    if (reader && !etch_saved_is_produced(k->ways, c) && !etch_saved_is_invariant(k->ways, c))
        note(k, c, c->out, reader);
    if (reader && etch_saved_is_invariant(k->ways, etch_saved_in_class(c, begin)))
        note(k, c, c->init, reader);
}

/* The version before leaves the loop: the last but one of those that the iterations make, which is what
 * enters the last of them. */
static void note_behind(keeping *k, const etch_carry *c, const etch_carry *ahead)
{
    const etch_op *in = k->reader[ahead->in->id],
                  *out = k->reader[etch_saved_place_of(k->ways, ahead->out)->id];
    if (in || out)
        note(k, c, c->result, in ? in : out);
}

static void note_chain(keeping *k, const etch_carry *c)
{
    const etch_op *in = k->reader[c->in->id], *out = k->reader[etch_saved_place_of(k->ways, c->out)->id];
    const etch_carry *ahead = etch_saved_ahead_of(k->ways, c);
    if (in)
        note(k, c, c->init, in);
    if (in && !etch_saved_is_produced(k->ways, c))
        note(k, c, ahead ? ahead->init : c->out, in);
    if (out && etch_saved_is_produced(k->ways, c))
        note(k, c, c->result, out);
    if (ahead)
        note_behind(k, c, ahead);
}

/* Whoever reads what enters every iteration reads what enters the loop; whoever reads what every iteration
 * makes reads what leaves it. Loops that are recomputed read what enters them likewise. */
static void note_ends(keeping *k, const etch_region *region)
{
    for (uint32_t i = 0; i < region->items.count; i++) {
        const etch_loop *loop = region->items.at[i].loop;
        for (uint32_t b = 0; loop && b < loop->bodies.count; b++) {
            const etch_region *body = loop->bodies.at[b];
            for (uint32_t n = 0; !loop->forward && n < body->carries.count; n++) {
                if (loop->bodies.count == 1)
                    note_chain(k, &body->carries.at[n]);
                else
                    note_class(k, &body->carries.at[n]);
                if (loop->bodies.count > 1 && loop->repeats)
                    note_again(k, &body->carries.at[n]);
            }
            note_ends(k, body);
        }
    }
}

/* ---- counting --------------------------------------------------------------------------------------- */

static etch_expr times_of(const keeping *k, const etch_tensor *place)
{
    return etch_saved_stage_times(k->stage, k->sym, place);
}

/* How often the chain begins or ends. */
static etch_expr ends_of(const keeping *k, const etch_carry *c, etch_side side)
{
    return etch_saved_stage_ends(k->stage, k->sym, c->in->region, side);
}

static etch_expr elements_of(const keeping *k, const etch_tensor *tensor)
{
    return k->placed ? etch_elements(k->sym, tensor, etch_size_in_placement, k->placed)
                     : etch_elements(k->sym, tensor, etch_size_in_training, k->training);
}

static etch_saved *item_of(keeping *k, const etch_tensor *tensor)
{
    if (!k->item[tensor->id]) {
        const etch_saved item = {
            .tensor = tensor,
            .body = tensor->region->loop ? tensor->region : NULL,
            .elements = etch_div(k->sym, elements_of(k, tensor), k->shards),
            .width = etch_dtype_bytes(tensor->dtype),
            .times = times_of(k, tensor),
            .reader = k->reader[tensor->id],
        };
        ETCH_PUSH(k->arena, &k->all, item);
        k->item[tensor->id] = k->all.count;
    }
    return &k->all.at[k->item[tensor->id] - 1];
}

static void take_off(const keeping *k, etch_saved *item, etch_expr times)
{
    item->times = etch_sub(k->sym, item->times, times);
}

static bool same_bytes(const keeping *k, const etch_tensor *a, const etch_tensor *b)
{
    return a->dtype == b->dtype && elements_of(k, a) == elements_of(k, b);
}

/* Is the value one of older places, which are counted by themselves? */
static bool is_older(const keeping *k, const etch_tensor *tensor)
{
    const etch_carry *carry = etch_saved_carry_in(k->ways, tensor);
    return carry && !etch_saved_some_produce(k->ways, carry);
}

/* The item of `tensor` counts the end of its chain, too, once for each time that the loop is run, unless that
 * is counted, no one's to count, or more than what is seen of it. An end from further outside is the same
 * each time. */
static void claim(keeping *k, const etch_tensor *tensor, const etch_carry *chain, const etch_tensor *end)
{
    const uint32_t item = k->item[tensor->id];
    const bool counted = !is_kept(end) || k->item[end->id] || is_older(k, end) || !same_bytes(k, tensor, end);
    const etch_expr runs = ends_of(k, chain, end == chain->result ? ETCH_LAST_OF : ETCH_FIRST_OF);
    const etch_expr own = is_kept(end) ? times_of(k, end) : etch_int(k->sym, 0);
    if (k->stage && is_kept(end) && !end->region->loop) /* the end may be read on another stage */
        take_off(k, &k->all.at[item - 1],
                 counted ? etch_min(k->sym, runs, own) : etch_sub(k->sym, runs, etch_max(k->sym, runs, own)));
    else
        take_off(k, &k->all.at[item - 1], counted ? runs : etch_sub(k->sym, runs, own));
    if (!counted)
        k->item[end->id] = item;
}

/* What enters the iterations is a part of what they make: that is counted, but for the last unless that is
 * read, too. */
static void count_parts(keeping *k, const etch_carry *c, const etch_tensor *out)
{
    const bool last = k->reader[out->id] || k->reader[c->result->id], counted = k->item[out->id];
    if (!k->reader[out->id])
        k->reader[out->id] = k->reader[c->in->id];
    etch_saved *item = item_of(k, out);
    if (last)
        k->item[c->result->id] = k->item[out->id];
    else if (!counted)
        take_off(k, item, ends_of(k, c, ETCH_LAST_OF));
    k->reader[c->in->id] = NULL;
}

/* What enters the iterations stands for the chain but for its last place; else what they make does, for all
 * but the first. */
static void count_chain(keeping *k, const etch_carry *c)
{
    const etch_tensor *out = etch_saved_place_of(k->ways, c->out);
    if (!k->reader[c->in->id]) {
        if (!k->reader[out->id])
            return;
        item_of(k, out);
        claim(k, out, c, c->result);
        return;
    }
    if (!same_bytes(k, c->in, out)) {
        count_parts(k, c, out);
        return;
    }
    etch_saved *item = item_of(k, c->in);
    const etch_expr intervals = etch_saved_stage_intervals(k->stage, k->sym, c->in->region);
    if (k->item[out->id]) {
        const etch_tensor *by = k->all.at[k->item[out->id] - 1].tensor;
        take_off(k, item, etch_sub(k->sym, times_of(k, c->in), intervals));
        if (by->region != c->in->region ||
            !etch_saved_carry_in(k->ways, by)) /* which would count all but the last */
            k->item[c->result->id] = k->item[out->id];
    } else {
        k->item[out->id] = k->item[c->in->id];
        if (k->reader[out->id]) /* of an interval, the last is made here and enters an iteration elsewhere */
            take_off(k, item, etch_sub(k->sym, ends_of(k, c, ETCH_LAST_OF), intervals));
    }
    claim(k, c->in, c, etch_saved_place_of(k->ways, c->init));
}

/* Versions before: those that the chain ahead counts, and two that came from outside. */
static void count_behind(keeping *k, const etch_carry *c, const etch_carry *ahead)
{
    const bool counted = k->reader[ahead->in->id] || k->reader[etch_saved_place_of(k->ways, ahead->out)->id];
    if (counted && k->reader[c->result->id])
        k->item[c->result->id] = k->item[etch_saved_place_of(k->ways, ahead->out)->id];
    if (counted || !k->reader[c->in->id]) {
        k->reader[c->in->id] = NULL;
        return;
    }
    item_of(k, c->in);
    claim(k, c->in, c, etch_saved_place_of(k->ways, c->init));
    claim(k, c->in, c, etch_saved_place_of(k->ways, ahead->init));
}

static void count_loop(keeping *k, const etch_region *body)
{
    for (uint32_t n = 0; n < body->carries.count; n++)
        if (etch_saved_is_produced(k->ways, &body->carries.at[n]))
            count_chain(k, &body->carries.at[n]);
    for (uint32_t n = 0; n < body->carries.count; n++) {
        const etch_carry *c = &body->carries.at[n], *ahead = etch_saved_ahead_of(k->ways, c);
        if (ahead)
            count_behind(k, c, ahead);
        else if (!etch_saved_is_produced(k->ways,
                                         c)) /* older places, which are counted where they are made */
            k->reader[c->in->id] = NULL;
    }
}

/* One value of a loop whose iterations are not alike. */
static void count_classes(keeping *k, const etch_carry *first)
{
    const etch_loop *loop = etch_saved_loop_of(first);
    const bool all = all_read(k, first);
    const uint32_t begin = first_class(k->sym, loop);
    for (uint32_t n = 0; n < loop->bodies.count; n++) {
        const etch_carry *c = etch_saved_in_class(first, n);
        if (etch_saved_is_invariant(k->ways, c)
                ? all
                : !etch_saved_some_produce(k->ways,
                                           c)) /* is what enters a later one, or leaves; or is older */
            k->reader[c->in->id] = NULL;
        if (!k->reader[c->in->id])
            continue;
        const bool counted = k->item[c->in->id];
        item_of(k, c->in);
        if (n == begin && !counted)
            claim(k, c->in, c, etch_saved_place_of(k->ways, c->init));
    }
    for (uint32_t n = 0; all && n < loop->bodies.count; n++) {
        const etch_carry *c = etch_saved_in_class(first, n);
        const etch_tensor *out = etch_saved_place_of(k->ways, c->out);
        if (etch_saved_is_produced(k->ways, c) && !k->item[out->id] && same_bytes(k, c->in, out))
            k->item[out->id] = k->item[c->in->id];
    }
}

/* Inner loops first: what they count, those around them do not. */
static void count_loops(keeping *k, const etch_region *region)
{
    for (uint32_t i = 0; i < region->items.count; i++) {
        const etch_loop *loop = region->items.at[i].loop;
        if (!loop)
            continue;
        for (uint32_t b = 0; b < loop->bodies.count; b++)
            count_loops(k, loop->bodies.at[b]);
        if (loop->bodies.count == 1)
            count_loop(k, loop->bodies.at[0]);
        for (uint32_t n = 0; loop->bodies.count > 1 && n < etch_loop_carries(loop)->count; n++)
            count_classes(k, &etch_loop_carries(loop)->at[n]);
    }
}

/* ---- the entry points ---------------------------------------------------------------------------------- */

static int by_tensor(const void *a, const void *b)
{
    const etch_saved *x = a, *y = b;
    return x->tensor->id < y->tensor->id ? -1 : x->tensor->id > y->tensor->id;
}

void etch_saved_for(const etch_training *training, const etch_readings *readings, etch_saved_stage *stage,
                    etch_saved_list *out)
{
    const etch_graph *graph = training->graph;
    keeping k = {.training = training,
                 .sym = graph->sym,
                 .arena = graph->arena,
                 .count = graph->tensors.count,
                 .stage = stage,
                 .shards = readings->shards,
                 .placed = readings->placed};
    k.ways = etch_saved_ways_new(training);
    k.reader = ETCH_NEW_ARRAY(k.arena, k.count, const etch_op *);
    k.item = ETCH_NEW_ARRAY(k.arena, k.count, uint32_t);
    for (uint32_t i = 0; i < readings->all.count; i++) {
        const etch_reading *r = &readings->all.at[i];
        note_at(&k, r->tensor, r->reader, r->position);
    }
    do {
        k.changed = false;
        note_ends(&k, graph->forward);
        note_ends(&k, training->backward);
    } while (k.changed);
    count_loops(&k, graph->forward);
    for (uint32_t i = 0; i < k.count; i++)
        if (k.reader[i] && is_kept(graph->tensors.at[i]))
            item_of(&k, graph->tensors.at[i]);
    if (k.all.count > 0)
        qsort(k.all.at, k.all.count, sizeof *k.all.at, by_tensor);
    for (uint32_t i = 0; i < k.all.count; i++)
        if (!etch_is_zero(k.all.at[i].times))
            ETCH_PUSH(k.arena, out, k.all.at[i]);
}

void etch_graph_saved(const etch_training *training, etch_saved_list *out)
{
    etch_readings readings = {.shards = etch_int(training->graph->sym, 1)};
    if (!training->backward)
        return;
    read_region(training->graph->arena, training->backward, &readings);
    etch_saved_for(training, &readings, NULL, out);
}
