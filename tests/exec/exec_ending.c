/* The end of a step on simulated ranks: gradients are reduced, weights are changed in the parts that their
 * ranks update, and gathered. A part is a range of the elements that a rank holds, laid out flat, with zeros
 * behind the last. */
#include "end_work.h"
#include "exec_change.h"
#include "exec_ranks.h"
#include "exec_summed.h"

#include "graph/step/kernel.h"

#include <math.h>
#include <string.h>

enum { MOST_RANKS = 64 };

/* What a rank holds of one instance of a gradient, then of its weight. */
typedef struct flat {
    size_t first, count;
    double *at;
} flat;

/* One instance of one gradient, on all ranks. */
typedef struct instance {
    const etch_tensor *gradient;
    uint32_t number;    /* of the instance */
    uint32_t done;      /* axes over which it has been reduced */
    bool is_loaded;     /* its states have come from the memory of the host, and have not gone back */
    size_t size, parts; /* elements on a rank, parts that they are updated in */
    flat ranks[MOST_RANKS];
    exec_change *change; /* its update, where that has parts */
} instance;

typedef struct ending {
    exec_ranks *ranks;
    etch_arena *arena;
    bool finish; /* the step; else a microbatch */
    ETCH_VEC(instance) all;
} ending;

static const double step_size = 0.5;

static uint32_t ranks_of(const ending *e, uint32_t axes)
{
    return exec_mesh_count(&e->ranks->mesh, axes);
}

static uint32_t place_among(const ending *e, uint32_t rank, uint32_t axes)
{
    return exec_mesh_place(&e->ranks->mesh, rank, axes);
}

/* The rank's part of `whole`, which one rank has: in the order in which the rank holds it. */
static exec_array *part_of(const ending *e, const etch_tensor *weight, uint32_t rank, const exec_array *whole)
{
    exec_array *part = ETCH_NEW(e->arena, exec_array);
    *part = exec_mesh_part(&e->ranks->mesh, &e->ranks->env, weight,
                           e->ranks->placed->weight_of[weight->id]->place, rank);
    exec_array_fill(e->arena, part);
    exec_walk w = exec_walk_over(1, (const exec_array *[]){part});
    while (exec_walk_next(&w))
        part->at[w.at[0]] = *exec_walk_lookup(&w, whole, NULL, 0);
    return part;
}

static exec_array *weights_of(const ending *e, const instance *x)
{
    return e->ranks->reference->data->tensors.at[x->gradient->of->id][x->number];
}

/* ---- parts ------------------------------------------------------------------------------------------ */

/* Keeps the `place`-th of `parts` equal ranges of what the rank holds. */
static void cut(flat *f, uint32_t place, uint32_t parts)
{
    f->count /= parts;
    f->first += place * f->count;
    f->at += place * f->count;
}

/* Elements that a rank holds of a weight, with the padding of the plan: behind the others, as zeros. */
static size_t held_size(const ending *e, const etch_tensor *weight)
{
    const exec_mesh *mesh = &e->ranks->mesh;
    const etch_state *place = e->ranks->placed->weight_of[weight->id]->place;
    size_t size = 1;
    for (uint32_t d = 0; d < weight->rank; d++)
        size *= exec_mesh_padded(mesh, weight->dims[d], exec_size(&e->ranks->env, weight->dims[d]));
    for (uint32_t a = 0; a < mesh->axes; a++)
        size /= etch_is_sharded(place[a]) ? mesh->size[a] : 1;
    return size;
}

/* Where a gradient is the same on all ranks of an axis that divides the update, each takes its part. */
static void lay_flat(const ending *e, instance *x, const exec_array *held, uint32_t rank)
{
    const etch_placed *placed = e->ranks->placed;
    const uint32_t weight = x->gradient->of->id;
    const uint32_t zero = placed->zero_axes[weight], alike = zero & ~placed->sync_axes[weight];
    flat *f = &x->ranks[rank];
    x->size = held_size(e, x->gradient->of);
    x->parts = ranks_of(e, zero);
    f->count = (x->size + x->parts - 1) / x->parts * x->parts;
    f->at = ETCH_NEW_ARRAY(e->arena, f->count, double);
    memcpy(f->at, held->at, held->size * sizeof *held->at);
    cut(f, place_among(e, rank, alike), ranks_of(e, alike));
}

/* What one rank has; NULL when nothing was ever added. */
static const exec_array *expected_gradient(const ending *e, const instance *x)
{
    exec_array **instances = e->ranks->reference->gradients.at[x->gradient->id];
    return instances ? instances[x->number] : NULL;
}

static exec_array **part_slot(const ending *e, const instance *x, uint32_t rank)
{
    exec_array ***instances = &e->ranks->reduced.at[x->gradient->id * e->ranks->mesh.ranks + rank];
    if (!*instances)
        *instances =
            ETCH_NEW_ARRAY(e->ranks->reduced.arena, exec_instances(x->gradient->region->loop), exec_array *);
    return &(*instances)[x->number];
}

/* Does each microbatch add what is reduced of its gradient, or of the parts of it? */
static bool is_held_in_parts(const ending *e, const etch_tensor *gradient)
{
    return e->ranks->placed->plan->reduce_each ||
           etch_zero_divides(e->ranks->placed, gradient->of, ETCH_HOLDS_GRADIENT) != 0;
}

/* The axes that each microbatch reduces over. */
static uint32_t axes_of_microbatch(const ending *e, uint32_t weight)
{
    const etch_placed *placed = e->ranks->placed;
    const uint32_t all = placed->sync_axes[weight];
    return placed->plan->reduce_each ? all : all & placed->zero_axes[weight];
}

/* The sums of the microbatches; zero where nothing was added. */
static void begin_in_parts(const ending *e, instance *x)
{
    const uint32_t weight = x->gradient->of->id, zero = e->ranks->placed->zero_axes[weight];
    x->size = held_size(e, x->gradient->of);
    x->parts = ranks_of(e, zero);
    x->done = axes_of_microbatch(e, weight);
    for (uint32_t r = 0; r < e->ranks->mesh.ranks; r++) {
        const exec_array *sum = *part_slot(e, x, r);
        flat *f = &x->ranks[r];
        const bool expected = expected_gradient(e, x) != NULL;
        if (e->ranks->chain ? sum && !expected : (sum != NULL) != expected)
            exec_fail(&e->ranks->env, "%s is added to on one side only", x->gradient->name);
        f->count = (x->size + x->parts - 1) / x->parts;
        f->first = f->count * exec_ranks_place(e->ranks, x->gradient->of, zero, r);
        f->at = ETCH_NEW_ARRAY(e->arena, f->count, double);
        if (sum && sum->size == f->count)
            memcpy(f->at, sum->at, f->count * sizeof *f->at);
        else if (sum)
            exec_fail(&e->ranks->env, "rank %u holds %zu elements of %s", r, sum->size, x->gradient->name);
    }
}

/* Adds what the microbatch has given to the parts, and forgets it. */
static void add_to_parts(const ending *e, const instance *x)
{
    exec_ranks *ranks = e->ranks;
    const uint32_t weight = x->gradient->of->id;
    if (x->done != axes_of_microbatch(e, weight))
        exec_fail(&ranks->env, "%s is not reduced with its microbatch", x->gradient->name);
    for (uint32_t r = 0; r < ranks->mesh.ranks && !ranks->env.failure; r++) {
        exec_array **sum = part_slot(e, x, r),
                   **held = ranks->gradients.at[x->gradient->id * ranks->mesh.ranks + r];
        const flat *f = &x->ranks[r];
        if (!held || !held[x->number])
            continue;
        if (!*sum) {
            *sum = ETCH_NEW(ranks->reduced.arena, exec_array);
            (*sum)->size = f->count;
            (*sum)->at = ETCH_NEW_ARRAY(ranks->reduced.arena, f->count, double);
        }
        for (size_t i = 0; i < f->count; i++)
            (*sum)->at[i] += f->at[i];
        held[x->number] = NULL;
    }
}

/* The layer of the chain that an instance of a weight is of; UINT32_MAX: of none. */
static uint32_t layer_of(const exec_chain *chain, const etch_tensor *weight, uint32_t number)
{
    const etch_loop *outermost = weight->region->loop;
    while (outermost && exec_outer(outermost))
        outermost = exec_outer(outermost);
    const etch_stages *stages = chain->placed->stages;
    for (uint32_t i = 0; outermost && i < stages->segments.count; i++)
        if (stages->segments.at[i].loop == outermost)
            return chain->first[i] +
                   number / (exec_instances(weight->region->loop) / exec_integer(outermost->count));
    return UINT32_MAX;
}

static bool is_of_stage(const exec_ranks *ranks, uint32_t layer)
{
    for (uint32_t c = 0; c < ranks->chain->chunk_count; c++)
        if (ranks->chain->stage_of[c] == ranks->stage && exec_chain_has(ranks->chain->chunks[c], layer))
            return true;
    return false;
}

/* Does the stage have a layer in which the weight is said to be used? */
static bool is_said_there(const exec_ranks *ranks, const etch_tensor *weight)
{
    const etch_stage_uses *uses = &ranks->placed->stages->uses[weight->id];
    for (uint32_t i = 0; i < uses->count; i++) {
        const etch_stage_use *use = &uses->at[i];
        const uint32_t entry = exec_chain_layers(ranks->chain, use->position);
        const uint32_t first = exec_chain_position(ranks->chain, use->position);
        const uint32_t count = entry == UINT32_MAX ? 1 : ranks->chain->count[entry];
        for (uint32_t k = 0; k < count && exec_integer(use->runs) > 0; k++)
            if (is_of_stage(ranks, first + k) &&
                (!use->body || exec_turn_class(use->body->loop, k) == use->body->index))
                return true;
    }
    return false;
}

/* Does the stage have this instance of the weight: is it of a layer there, or used there? Where the plan says
 * so and nothing there reads it, it is counted. */
static bool is_on_stage(const ending *e, const etch_tensor *weight, uint32_t number)
{
    exec_ranks *ranks = e->ranks;
    if (!ranks->chain)
        return true;
    const uint32_t layer = layer_of(ranks->chain, weight, number);
    if (layer != UINT32_MAX)
        return is_of_stage(ranks, layer);
    const bool *uses = ranks->uses[weight->id];
    const bool is_used = uses && uses[number], is_said = is_said_there(ranks, weight);
    if (is_used && !is_said)
        exec_fail(&ranks->env, "%s is read on stage %u and is not said to be there", weight->name,
                  ranks->stage);
    ranks->unread += is_said && !is_used;
    return is_said;
}

/* What was never added to is zero. */
static void begin(const ending *e, instance *x)
{
    exec_ranks *ranks = e->ranks;
    const exec_array *weights = weights_of(e, x);
    for (uint32_t r = 0; r < ranks->mesh.ranks; r++) {
        exec_array **held = ranks->gradients.at[x->gradient->id * ranks->mesh.ranks + r];
        const bool added = held && held[x->number];
        const exec_array *zeros = exec_array_like(e->arena, part_of(e, x->gradient->of, r, weights));
        const bool expected = expected_gradient(e, x) != NULL;
        if (ranks->chain ? added && !expected : added != expected)
            exec_fail(&ranks->env, "%s is added to on one side only", x->gradient->name);
        lay_flat(e, x, added ? held[x->number] : zeros, r);
    }
}

/* ---- collectives ------------------------------------------------------------------------------------ */

/* Sums what the ranks of each group hold; all hold the same range. */
static void sum_parts(const ending *e, instance *x, uint32_t axes)
{
    flat before[MOST_RANKS];
    memcpy(before, x->ranks, sizeof before);
    for (uint32_t r = 0; r < e->ranks->mesh.ranks; r++) {
        flat *f = &x->ranks[r];
        f->at = ETCH_NEW_ARRAY(e->arena, f->count, double);
        for (uint32_t other = 0; other < e->ranks->mesh.ranks; other++) {
            if (!exec_mesh_is_group(&e->ranks->mesh, r, other, axes))
                continue;
            if (before[other].first != f->first || before[other].count != f->count)
                exec_fail(&e->ranks->env, "%s: ranks %u and %u reduce different parts", x->gradient->name, r,
                          other);
            for (size_t i = 0; i < f->count && !e->ranks->env.failure; i++)
                f->at[i] += before[other].at[i];
        }
    }
}

static void reduce(const ending *e, instance *x, const end_work *bucket)
{
    if (bucket->axes & (x->done | ~e->ranks->placed->sync_axes[x->gradient->of->id]))
        exec_fail(&e->ranks->env, "%s is reduced twice, or where it is not partial", x->gradient->name);
    x->done |= bucket->axes;
    sum_parts(e, x, bucket->axes);
    for (uint32_t r = 0; bucket->collective == ETCH_REDUCE_SCATTER && r < e->ranks->mesh.ranks; r++)
        cut(&x->ranks[r], place_among(e, r, bucket->axes), ranks_of(e, bucket->axes));
}

/* Puts together what the ranks of each group hold. */
static void gather(const ending *e, instance *x, const end_work *bucket)
{
    flat before[MOST_RANKS];
    memcpy(before, x->ranks, sizeof before);
    for (uint32_t r = 0; r < e->ranks->mesh.ranks; r++) {
        flat all = {.count = before[r].count * x->parts};
        all.at = ETCH_NEW_ARRAY(e->arena, all.count, double);
        for (uint32_t other = 0; other < e->ranks->mesh.ranks; other++)
            if (exec_mesh_is_group(&e->ranks->mesh, r, other, bucket->axes))
                memcpy(all.at + before[other].first, before[other].at, before[other].count * sizeof *all.at);
        x->ranks[r] = all;
    }
}

/* How many there are of a unit that a rank has any of: the iterations of a class that are on its stage, or
 * were run just now. */
static uint32_t runs_of(const ending *e, const etch_weight_group *unit)
{
    const exec_ranks *ranks = e->ranks;
    uint32_t runs = 0;
    if (!unit->body)
        return 1;
    if (!ranks->chain || exec_outer(unit->loop))
        return exec_integer(unit->body->count);
    const etch_position home = etch_stage_position_of(ranks->placed, unit->loop);
    if (home == ETCH_NO_POSITION)
        return exec_integer(unit->body->count);
    for (uint32_t i = 0; i < exec_integer(unit->loop->count); i++) {
        const uint32_t layer = exec_chain_position(ranks->chain, home) + i;
        const bool is_here = e->finish ? is_of_stage(ranks, layer) : exec_chain_has(ranks->interval, layer);
        runs += is_here && exec_class(unit->loop, i) == unit->body->index;
    }
    return runs;
}

static bool holds(const end_work *bucket, const etch_tensor *gradient)
{
    for (uint32_t i = 0; i < bucket->gradients.count; i++)
        if (bucket->gradients.at[i] == gradient)
            return true;
    return false;
}

/* Runs the collective for all its gradients; what they put in is its payload. */
static void run_bucket(const ending *e, const end_work *bucket)
{
    const bool gathers = bucket->collective == ETCH_ALL_GATHER;
    const uint32_t grads = etch_dtype_bytes(e->ranks->placed->training->graph->dtypes.grads);
    size_t bytes = 0;
    bool any = false;
    for (uint32_t i = 0; i < e->all.count && !e->ranks->env.failure; i++) {
        instance *x = &e->all.at[i];
        if (!holds(bucket, x->gradient))
            continue;
        any = true;
        bytes += x->ranks[0].count * (gathers ? etch_dtype_bytes(x->gradient->of->dtype) : grads);
        if (gathers)
            gather(e, x, bucket);
        else
            reduce(e, x, bucket);
    }
    if (any && bytes != (size_t)runs_of(e, bucket->weight_group) * exec_integer(bucket->bytes))
        exec_fail(&e->ranks->env, "%s over %s moves %zu bytes, %u are said",
                  etch_collective_name(bucket->collective), etch_axes_label(e->ranks->placed, bucket->axes),
                  bytes, runs_of(e, bucket->weight_group) * exec_integer(bucket->bytes));
}

/* ---- checks ----------------------------------------------------------------------------------------- */

/* Is what each rank holds its range of what one rank has, and the whole of it when `whole`? */
static void compare(const ending *e, const instance *x, const exec_array *expected, bool whole,
                    const char *what)
{
    const double allowed = exec_allowed(expected);
    for (uint32_t r = 0; r < e->ranks->mesh.ranks; r++) {
        const flat *f = &x->ranks[r];
        const exec_array *right = part_of(e, x->gradient->of, r, expected);
        const size_t share = (x->size + x->parts - 1) / x->parts;
        if (f->count != (whole ? share * x->parts : share))
            exec_fail(&e->ranks->env, "rank %u holds %zu elements of %s, not %zu", r, f->count, what, share);
        for (size_t i = 0; i < f->count; i++) {
            const double value = f->first + i < right->size ? right->at[f->first + i] : 0;
            if (!(fabs(value - f->at[i]) <= allowed))
                exec_fail(&e->ranks->env, "%s is %.12g on rank %u, on one rank it is %.12g", what, f->at[i],
                          r, value);
        }
    }
}

static void check_gradient(const ending *e, const instance *x)
{
    const exec_array *expected = expected_gradient(e, x);
    if (x->done != e->ranks->placed->sync_axes[x->gradient->of->id])
        exec_fail(&e->ranks->env, "%s is not reduced over all axes", x->gradient->name);
    if (!expected)
        expected = exec_array_like(e->arena, weights_of(e, x));
    compare(e, x, expected, false, x->gradient->name);
}

/* What a part of an update is, element by element: FLOP; tensors in f32 that it reads or writes, the gradient
 * or what takes its place; whether it reads the weight, and writes it as well; states, read and written. */
typedef struct rule {
    const char *name;
    uint32_t flop, singles, weight, states;
    /* what products read or have made, in bf16 */
    uint32_t factors;
    /* of a state: bytes of an element, and elements that share a scale of 4 bytes; 0: none do */
    uint32_t width, block;
} rule;

static const rule *rule_named(const char *name)
{
    static const rule rules[] = {
        {"adamw", 12, 1, 2, 2, 0, 4, 0},        {"adamw_8bit", 20, 1, 2, 2, 0, 1, 2048},
        {"sgd", 2, 1, 2, 0, 0, 4, 0},           {"sgd_momentum", 4, 1, 2, 1, 0, 4, 0},
        {"lamb_norms", 14, 2, 1, 2, 0, 4, 0},   {"lamb", 2, 1, 2, 0, 0, 4, 0},
        {"muon_momentum", 4, 1, 0, 1, 1, 4, 0}, {"muon", 3, 0, 2, 0, 1, 4, 0}};
    uint32_t i = 0;
    while (strcmp(rules[i].name, name) != 0)
        EXEC_REQUIRE(++i < sizeof rules / sizeof *rules);
    return &rules[i];
}

static const rule *rule_of(const end_work *work)
{
    return rule_named(etch_row_name(work->row));
}

/* The part of the weight's update that reads and writes states. */
static const rule *rule_of_states(const ending *e, const etch_tensor *weight)
{
    const char *name = etch_row_name(etch_optimizer_of(e->ranks->placed->training, weight));
    return rule_named(strcmp(name, "lamb") == 0   ? "lamb_norms"
                      : strcmp(name, "muon") == 0 ? "muon_momentum"
                                                  : name);
}

/* Bytes of states of so many elements of a weight that are in the memory of the host: moments, master copies
 * in f32. */
static size_t states_away(const ending *e, const etch_tensor *weight, size_t elements)
{
    const uint32_t away = e->ranks->placed->plan->offload.states;
    const rule *r = rule_of_states(e, weight);
    const size_t scales = r->block ? (elements + r->block - 1) / r->block : 0;
    const bool master = e->ranks->placed->training->train.optimizer.master;
    return (away & ETCH_OFFLOAD_MOMENTS ? r->states * (elements * r->width + 4 * scales) : 0) +
           (away & ETCH_OFFLOAD_MASTER && master ? 4 * elements : 0);
}

/* Each rank changes its part of the weight against the gradient. */
static void update(const ending *e, instance *x)
{
    if (!x->is_loaded && states_away(e, x->gradient->of, 1) > 0)
        exec_fail(&e->ranks->env, "%s is updated without its states", x->gradient->of->name);
    for (uint32_t r = 0; r < e->ranks->mesh.ranks; r++) {
        flat *f = &x->ranks[r];
        const exec_array *held = part_of(e, x->gradient->of, r, weights_of(e, x));
        const double *change = x->change ? exec_change_of_part(x->change, r) : f->at;
        for (size_t i = 0; i < f->count && f->first + i < held->size; i++)
            f->at[i] = held->at[f->first + i] - step_size * change[i];
    }
}

static void check_weight(const ending *e, const instance *x)
{
    if (x->is_loaded)
        exec_fail(&e->ranks->env, "states of %s do not go back", x->gradient->of->name);
    const exec_array *old = weights_of(e, x);
    const exec_array *slope = expected_gradient(e, x);
    exec_array *expected = exec_array_like(e->arena, old);
    if (!slope)
        slope = exec_array_like(e->arena, old);
    const double *change = x->change ? exec_change_of_whole(x->change, slope) : NULL;
    exec_walk w = exec_walk_over(3, (const exec_array *[]){expected, old, slope});
    while (exec_walk_next(&w))
        expected->at[w.at[0]] =
            old->at[w.at[1]] - step_size * (change ? change[w.at[1]] : slope->at[w.at[2]]);
    const bool whole = !etch_zero_divides(e->ranks->placed, x->gradient->of, ETCH_HOLDS_WEIGHT);
    compare(e, x, expected, whole, x->gradient->of->name);
}

/* What each rank makes of its elements before ranks tell each other anything. */
static void prepare(const ending *e, instance *x)
{
    const etch_optimizer *optimizer = &e->ranks->placed->training->train.optimizer;
    const exec_array *old = weights_of(e, x);
    x->change = exec_change_new(e->arena, etch_row_name(optimizer->row),
                                optimizer->steps ? exec_integer(optimizer->steps) : 0, x->gradient->of, old);
    if (!x->change)
        return;
    exec_array *places = exec_array_like(e->arena, old);
    for (size_t i = 0; i < places->size; i++)
        places->at[i] = (double)i;
    for (uint32_t r = 0; r < e->ranks->mesh.ranks; r++) {
        const flat *f = &x->ranks[r];
        const exec_array *held = part_of(e, x->gradient->of, r, places);
        const size_t first = f->first < held->size ? f->first : held->size, left = held->size - first;
        exec_change_prepare(x->change, r, left < f->count ? left : f->count, held->at + first, f->at);
    }
}

/* Ranks of each group tell each other what they know: so many bytes each. */
static void run_share(const ending *e, const end_work *said)
{
    const exec_mesh *mesh = &e->ranks->mesh;
    size_t bytes = 0;
    bool any = false;
    for (uint32_t i = 0; i < e->all.count && !e->ranks->env.failure; i++) {
        instance *x = &e->all.at[i];
        if (!holds(said, x->gradient))
            continue;
        EXEC_REQUIRE(x->change);
        any = true;
        exec_change_share_begin(x->change);
        for (uint32_t r = 0; r < mesh->ranks; r++)
            for (uint32_t other = 0; other < mesh->ranks; other++)
                if (other != r && exec_mesh_is_group(mesh, r, other, said->axes))
                    exec_change_share(x->change, r, other);
        bytes += exec_change_share_bytes(x->change, 0, x->ranks[0].count);
    }
    if (any && bytes != (size_t)runs_of(e, said->weight_group) * exec_integer(said->bytes))
        exec_fail(&e->ranks->env, "ranks share %zu bytes of an update, %u are said", bytes,
                  exec_integer(said->bytes));
}

/* Of so many elements of a weight. Gradients are f32, and states unless the rule says otherwise, weights
 * bf16, a master copy f32, which is read instead of the weight, and written, too. */
static size_t update_bytes(const ending *e, const rule *r, size_t elements)
{
    const bool master = e->ranks->placed->training->train.optimizer.master;
    const size_t scales = r->block ? (elements + r->block - 1) / r->block : 0;
    const size_t state = elements * r->width + 4 * scales;
    const size_t read = r->weight > 0 ? (master ? 4 : 2) : 0, written = r->weight > 1 ? (master ? 6 : 2) : 0;
    return elements * (4 * r->singles + 2 * r->factors + read + written) + 2 * r->states * state;
}

/* The optimizer works on what a rank updates, padding included; products on whole matrices. */
static void check_update(const ending *e, const end_work *said)
{
    const bool multiplies = strcmp(etch_row_name(said->row), "newton_schulz") == 0;
    size_t elements = 0, flop = 0, bytes = 0, moved = 0;
    bool any = false;
    for (uint32_t i = 0; i < e->all.count; i++) {
        const instance *x = &e->all.at[i];
        if (!holds(said, x->gradient))
            continue;
        elements += x->ranks[0].count;
        flop += multiplies ? exec_change_flop(x->change, 0, &moved) : rule_of(said)->flop * x->ranks[0].count;
        bytes += multiplies ? moved : update_bytes(e, rule_of(said), x->ranks[0].count);
        any = true;
    }
    if (!any) /* of other stages */
        return;
    if (flop != (size_t)runs_of(e, said->weight_group) * exec_integer(said->flop))
        exec_fail(&e->ranks->env, "%s of %zu elements: %u FLOP are said, and %zu done",
                  etch_row_name(said->row), elements, exec_integer(said->flop), flop);
    if (bytes != (size_t)runs_of(e, said->weight_group) * exec_integer(said->bytes))
        exec_fail(&e->ranks->env, "%s of %zu elements: %u bytes are said, and %zu moved",
                  etch_row_name(said->row), elements, exec_integer(said->bytes), bytes);
}

/* States come from the memory of the host, where they are, or go back to it. */
static void move_states(const ending *e, const end_work *said, bool loads)
{
    size_t bytes = 0;
    bool any = false;
    for (uint32_t i = 0; i < e->all.count; i++) {
        instance *x = &e->all.at[i];
        if (!holds(said, x->gradient))
            continue;
        if (x->is_loaded == loads)
            exec_fail(&e->ranks->env, "states of %s are %s", x->gradient->of->name,
                      loads ? "loaded twice" : "stored, and are not there");
        x->is_loaded = loads;
        bytes += states_away(e, x->gradient->of, x->ranks[0].count);
        any = true;
    }
    if (any && bytes != (size_t)runs_of(e, said->weight_group) * exec_integer(said->bytes))
        exec_fail(&e->ranks->env, "%zu bytes of states are %s, %u are said", bytes,
                  loads ? "loaded" : "stored", runs_of(e, said->weight_group) * exec_integer(said->bytes));
}

/* ---- the door --------------------------------------------------------------------------------------- */

/* Does the microbatch in work give anything to this instance? On a stage, only to those of its chunk. */
static bool is_given(const ending *e, const etch_tensor *gradient, uint32_t number)
{
    exec_array **held = e->ranks->gradients.at[gradient->id * e->ranks->mesh.ranks];
    return !e->ranks->chain || (held && held[number]);
}

/* To finish, all gradients; else those of a microbatch that go into parts. */
static void collect(ending *e)
{
    const etch_training *training = e->ranks->placed->training;
    for (uint32_t i = 0; i < training->gradients.count; i++) {
        const etch_tensor *gradient = training->gradients.at[i];
        const bool in_parts = gradient && is_held_in_parts(e, gradient);
        for (uint32_t k = 0; gradient && k < exec_instances(gradient->region->loop); k++) {
            if (!exec_has_instance(gradient->region, k) || !(e->finish || in_parts))
                continue;
            if (e->finish ? !is_on_stage(e, gradient->of, k) : !is_given(e, gradient, k))
                continue;
            instance x = {.gradient = gradient, .number = k};
            if (e->finish && in_parts)
                begin_in_parts(e, &x);
            else
                begin(e, &x);
            ETCH_PUSH(e->arena, &e->all, x);
        }
    }
}

static void run_buckets(const ending *e, bool every_microbatch)
{
    const end_works works = end_reductions(e->ranks->placed);
    for (uint32_t i = 0; i < works.count && !e->ranks->env.failure; i++)
        if (works.at[i].every_microbatch == every_microbatch)
            run_bucket(e, &works.at[i]);
}

void exec_ranks_reduce(exec_ranks *ranks)
{
    ending e = {.ranks = ranks, .arena = etch_arena_new(etch_arena_mem(ranks->env.arena))};
    EXEC_REQUIRE(ranks->mesh.ranks <= MOST_RANKS);
    collect(&e);
    run_buckets(&e, true);
    for (uint32_t i = 0; i < e.all.count && !ranks->env.failure; i++)
        add_to_parts(&e, &e.all.at[i]);
    etch_arena_free(e.arena);
}

static instance *instance_on(const ending *e, const etch_tensor *gradient, uint32_t number)
{
    for (uint32_t i = 0; i < e->all.count; i++)
        if (e->all.at[i].gradient == gradient && e->all.at[i].number == number)
            return &e->all.at[i];
    return NULL;
}

/* Adds up what the stages have of one instance: the same ranges on ranks in the same place. */
static void share(const ending *all, uint32_t count, const etch_tensor *gradient, uint32_t number)
{
    instance *first = NULL;
    for (uint32_t s = 0; s < count; s++) {
        const instance *x = instance_on(&all[s], gradient, number);
        if (x && first)
            for (uint32_t r = 0; r < all[s].ranks->mesh.ranks; r++)
                for (size_t i = 0; i < x->ranks[r].count; i++)
                    first->ranks[r].at[i] += x->ranks[r].at[i];
        first = first ? first : instance_on(&all[s], gradient, number);
    }
    for (uint32_t s = 0; s < count; s++) {
        const instance *x = instance_on(&all[s], gradient, number);
        for (uint32_t r = 0; x && x != first && r < all[s].ranks->mesh.ranks; r++)
            memcpy(x->ranks[r].at, first->ranks[r].at, x->ranks[r].count * sizeof(double));
    }
}

/* The reduction of shared weights: on each stage that takes part its bytes are those that are said. */
static void run_tie(const ending *all, uint32_t count, const end_work *tie)
{
    const etch_training *training = all->ranks->placed->training;
    const uint32_t width = etch_dtype_bytes(training->graph->dtypes.grads);
    size_t bytes = 0;
    for (uint32_t i = 0; i < tie->gradients.count; i++) {
        const etch_tensor *gradient = tie->gradients.at[i];
        for (uint32_t k = 0; k < exec_instances(gradient->region->loop); k++) {
            const instance *x = NULL;
            for (uint32_t s = 0; s < count; s++)
                x = x ? x : instance_on(&all[s], gradient, k);
            if (!x)
                continue;
            bytes += x->ranks[0].count * width;
            share(all, count, gradient, k);
        }
    }
    const etch_weight_group *group = tie->weight_group;
    const uint32_t groups = group->body ? exec_integer(group->body->count) : 1;
    if (bytes != (size_t)groups * exec_integer(tie->bytes))
        exec_fail(&all->ranks->env, "stages add up %zu bytes, %u are said", bytes, exec_integer(tie->bytes));
}

static void check_updates(const ending *e, etch_end_role part)
{
    const end_works works = end_works_of(e->ranks->placed, part);
    for (uint32_t i = 0; i < works.count && !e->ranks->env.failure; i++)
        check_update(e, &works.at[i]);
}

static void finish_stage(ending *e)
{
    const etch_placed *placed = e->ranks->placed;
    exec_env *env = &e->ranks->env;
    for (uint32_t i = 0; i < e->all.count && !env->failure; i++)
        check_gradient(e, &e->all.at[i]);
    const end_works loads = end_loads(placed), stores = end_stores(placed);
    for (uint32_t i = 0; i < loads.count && !env->failure; i++)
        move_states(e, &loads.at[i], true);
    for (uint32_t i = 0; i < e->all.count && !env->failure; i++)
        prepare(e, &e->all.at[i]);
    check_updates(e, ETCH_END_PREPARE);
    const end_works shares = end_works_of(placed, ETCH_END_SHARE_PREPARED), gathers = end_gathers(placed);
    for (uint32_t i = 0; i < shares.count && !env->failure; i++)
        run_share(e, &shares.at[i]);
    check_updates(e, ETCH_END_REFINE);
    check_updates(e, ETCH_END_UPDATE);
    for (uint32_t i = 0; i < e->all.count && !env->failure; i++)
        update(e, &e->all.at[i]);
    for (uint32_t i = 0; i < stores.count && !env->failure; i++)
        move_states(e, &stores.at[i], false);
    for (uint32_t i = 0; i < gathers.count && !env->failure; i++)
        run_bucket(e, &gathers.at[i]);
    for (uint32_t i = 0; i < e->all.count && !env->failure; i++)
        check_weight(e, &e->all.at[i]);
}

void exec_stages_finish(exec_ranks *const *stages, uint32_t count)
{
    const etch_placed *placed = stages[0]->placed;
    etch_arena *arena = etch_arena_new(etch_arena_mem(stages[0]->env.arena));
    ending *all = ETCH_NEW_ARRAY(arena, count, ending);
    EXEC_REQUIRE(stages[0]->mesh.ranks <= MOST_RANKS);
    bool failed = false;
    for (uint32_t s = 0; s < count; s++) {
        all[s] = (ending){.ranks = stages[s], .arena = arena, .finish = true};
        collect(&all[s]);
        run_buckets(&all[s], false);
        failed = failed || stages[s]->env.failure;
    }
    const end_works shared = end_shared_reductions(placed);
    for (uint32_t i = 0; stages[0]->chain && !failed && i < shared.count; i++)
        run_tie(all, count, &shared.at[i]);
    for (uint32_t s = 0; s < count && !failed; s++)
        finish_stage(&all[s]);
    etch_arena_free(arena);
}

void exec_ranks_finish(exec_ranks *ranks)
{
    exec_stages_finish(&ranks, 1);
}
