/* Moves: what a rank gets is put together from what the ranks of its group hold.
 *
 * Two moves in a row may pass through a layout that is none of their plan's. S@(b,c) becomes H@b by an
 * all-to-all over b and an all-gather over c: in between, a rank holds the parts of S that belong to its c,
 * which lie apart. Such a value is not made; the next move starts from what was there before, as one exchange
 * over all the axes, where it is known that every step of it can be done. */
#include "exec_ranks.h"

#include "graph/step/kernel.h"

#include <math.h>

/* Moves in a row, from `base` to the result of the last. No axis is moved twice. */
typedef struct chain {
    const etch_value *base, *end;
    uint32_t length, axes[ETCH_COLLECTIVE_COUNT]; /* by kind */
    uint32_t turn[ETCH_MAX_AXES];                 /* by axis: which move it is in, counted from the last */
} chain;

static bool is_partial(etch_state state)
{
    return state == ETCH_PARTIAL || state == ETCH_PARTIAL_MAX;
}

static bool is_shard(etch_state state)
{
    return state && !is_partial(state);
}

/* Does the move do on every one of its axes what its kind says, and nothing elsewhere? */
static bool states_fit(const exec_ranks *ranks, const etch_step *step)
{
    for (uint32_t a = 0; a < ranks->mesh.axes; a++) {
        etch_state from = step->ins[0]->place[a], to = step->outs[0]->place[a];
        bool fits[ETCH_COLLECTIVE_COUNT] = {
            [ETCH_SLICE] = !from && is_shard(to),
            [ETCH_REDUCE_SCATTER] = is_partial(from) && is_shard(to),
            [ETCH_ALL_TO_ALL] = is_shard(from) && is_shard(to) && from != to,
            [ETCH_ALL_REDUCE] = is_partial(from) && !to,
            [ETCH_ALL_GATHER] = is_shard(from) && !to,
            [ETCH_PERMUTE] = is_shard(from) && from == to,
        };
        bool named = step->axes & (1u << a);
        if (named ? !fits[step->collective] : from != to)
            return false;
    }
    return true;
}

static uint32_t all_axes(const chain *c)
{
    uint32_t axes = 0;
    for (uint32_t move = 0; move < ETCH_COLLECTIVE_COUNT; move++)
        axes |= c->axes[move];
    return axes;
}

static uint32_t axes_on(const exec_ranks *ranks, const etch_value *value, const etch_dim *dim)
{
    uint32_t axes = 0;
    for (uint32_t a = 0; a < ranks->mesh.axes; a++)
        if (value->place[a] == dim)
            axes |= 1u << a;
    return axes;
}

/* May axis `a` change on the dim as it does, next to axis `b`? One that stays must be outside. One that joins
 * must not divide shards that another is still to give up. */
static bool pair_fits(const exec_ranks *ranks, const chain *c, const etch_dim *dim, uint32_t a, uint32_t b)
{
    uint32_t before = axes_on(ranks, c->base, dim), after = axes_on(ranks, c->end, dim);
    bool changes = (before ^ after) & (1u << a), stays = before & after & (1u << b);
    bool joins = after & ~before & (1u << a), leaves = before & ~after & (1u << b);
    if (changes && stays && !exec_mesh_is_slots(&ranks->mesh, dim))
        return exec_mesh_is_outside(&ranks->mesh, dim, b, a);
    return !(joins && leaves) || c->turn[b] >= c->turn[a];
}

/* Can the steps of several moves be done one after the other? */
static bool is_feasible(const exec_ranks *ranks, const chain *c)
{
    const etch_tensor *tensor = c->end->tensor;
    for (uint32_t i = 0; i < tensor->rank && c->length > 1; i++)
        for (uint32_t a = 0; a < ranks->mesh.axes; a++)
            for (uint32_t b = 0; b < ranks->mesh.axes; b++)
                if (!pair_fits(ranks, c, tensor->dims[i], a, b))
                    return false;
    return true;
}

/* Is the base what the largest of is to be found, not summands? Nothing is both. */
static bool is_maximum(exec_ranks *ranks, const chain *c)
{
    uint32_t maxima = 0, sums = 0;
    for (uint32_t a = 0; a < ranks->mesh.axes; a++) {
        maxima += c->base->place[a] == ETCH_PARTIAL_MAX;
        sums += c->base->place[a] == ETCH_PARTIAL;
    }
    if (maxima && sums)
        exec_fail(&ranks->env, "%s is partial in two ways", c->base->tensor->name);
    return maxima != 0;
}

/* What the ranks of the group give a rank; NULL when an element is not there as often as it must be. */
static exec_array *assemble(exec_ranks *ranks, const chain *c, uint32_t rank)
{
    const exec_mesh *mesh = &ranks->mesh;
    const bool maximum = is_maximum(ranks, c);
    uint32_t group = all_axes(c) & ~c->axes[ETCH_SLICE], summands = 1;
    for (uint32_t a = 0; a < mesh->axes; a++)
        if ((c->axes[ETCH_REDUCE_SCATTER] | c->axes[ETCH_ALL_REDUCE]) & (1u << a))
            summands *= mesh->size[a];
    exec_array *result = ETCH_NEW(ranks->values.arena, exec_array);
    *result = exec_mesh_part(mesh, &ranks->env, c->end->tensor, c->end->place, rank);
    exec_array_fill(ranks->values.arena, result);
    result->made = exec_ranks_find(ranks, c->base, rank)->made;
    exec_walk w = exec_walk_over(1, (const exec_array *[]){result});
    while (exec_walk_next(&w)) {
        uint32_t found = 0;
        for (uint32_t r = 0; r < mesh->ranks; r++) {
            bool member = exec_mesh_is_group(mesh, r, rank, group);
            const exec_array *part = member ? exec_ranks_find(ranks, c->base, r) : NULL;
            const double *element = part ? exec_walk_lookup(&w, part, NULL, 0) : NULL;
            found += element != NULL;
            if (element && maximum && found > 1)
                result->at[w.at[0]] = fmax(result->at[w.at[0]], *element);
            else
                result->at[w.at[0]] += element ? *element : 0;
        }
        if (found != summands)
            return NULL;
    }
    return result;
}

/* What the first rank puts in is said to be the payload. */
void exec_ranks_check_payload(exec_ranks *ranks, const etch_step *step)
{
    const etch_value *from = step->ins[0];
    const exec_array part = exec_mesh_part(&ranks->mesh, &ranks->env, from->tensor, from->place, 0);
    const size_t one = exec_array_size(&part) * etch_dtype_bytes(from->tensor->dtype);
    const bool round = step->collective == ETCH_PERMUTE; /* a block to each of the others */
    const size_t bytes = round ? one * (exec_mesh_count(&ranks->mesh, step->axes) - 1) : one;
    const size_t said = exec_integer(etch_payload(ranks->placed, step));
    if (bytes != said)
        exec_fail(&ranks->env, "%s over %s of %s moves %zu bytes, %zu are said", etch_row_name(step->row),
                  etch_axes_label(ranks->placed, step->axes), from->tensor->name, bytes, said);
}

exec_array *exec_ranks_move(exec_ranks *ranks, const etch_step *step, uint32_t rank)
{
    chain c = {.base = step->outs[0], .end = step->outs[0]};
    if (step->collective == ETCH_PERMUTE && states_fit(ranks, step)) { /* the op passes blocks on */
        exec_array *own = ETCH_NEW(ranks->values.arena, exec_array);
        *own = *exec_ranks_get(ranks, step->ins[0], rank);
        own->is_kept = own->is_used = false;
        own->made_as = NULL;
        own->memory = NULL;
        own->bytes = 0;
        return own;
    }
    if (!states_fit(ranks, step))
        exec_fail(&ranks->env, "%s of %s: places before and after do not fit", etch_row_name(step->row),
                  step->outs[0]->tensor->name);
    for (const etch_step *s = step; s && s->collective && !(s->axes & all_axes(&c)); s = c.base->step) {
        c.base = s->ins[0];
        c.length++;
        c.axes[s->collective] |= s->axes;
        for (uint32_t a = 0; a < ranks->mesh.axes; a++)
            c.turn[a] = s->axes & (1u << a) ? c.length : c.turn[a];
        bool is_move = c.base->step && c.base->step->collective;
        if (!exec_ranks_find(ranks, c.base, rank) && is_move)
            continue;
        if (!exec_ranks_get(ranks, c.base, rank))
            return NULL;
        exec_array *result = is_feasible(ranks, &c) ? assemble(ranks, &c, rank) : NULL;
        if (result)
            return result;
    }
    return NULL;
}
