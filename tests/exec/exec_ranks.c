#include "exec_ranks.h"
#include "exec_made.h"
#include "exec_ops_route.h"
#include "exec_summed.h"
#include "exec_traffic.h"

#include "graph/step/kernel.h"

#include <math.h>
#include <string.h>

/* "step `dx = all_reduce(..)` in the backward pass" */
static const char *step_text(const exec_ranks *ranks, const etch_step *step)
{
    return etch_text(ranks->env.arena, "%s step %u, %s -> %s", etch_phase_name(step->phase), step->id,
                     etch_row_name(step->row), step->out_count ? step->outs[0]->tensor->name : "nothing");
}

/* ---- values -------------------------------------------------------------------------------------------- */

/* Weights, inputs and constants are there when they are asked for. */
static bool is_given(const etch_value *value)
{
    etch_kind kind = value->tensor->kind;
    return !value->step && (kind == ETCH_WEIGHT || kind == ETCH_INPUT || kind == ETCH_CONSTANT);
}

static const etch_loop *home_of(const exec_ranks *ranks, const etch_value *value)
{
    return is_given(value) ? value->tensor->region->loop : ranks->home[value->id];
}

exec_array **exec_ranks_slot(exec_ranks *ranks, const etch_value *value, uint32_t rank)
{
    return exec_slot(&ranks->env, &ranks->values, value->id * ranks->mesh.ranks + rank,
                     home_of(ranks, value));
}

/* A rank's part of a value that is given. */
exec_array *exec_ranks_cut(exec_ranks *ranks, const etch_value *value, uint32_t rank)
{
    const exec_array *all = exec_run_value(ranks->reference, &ranks->env, value->tensor);
    exec_array *part = ETCH_NEW(ranks->values.arena, exec_array);
    *part = exec_mesh_part(&ranks->mesh, &ranks->env, value->tensor, value->place, rank);
    exec_array_fill(ranks->values.arena, part);
    exec_walk w = exec_walk_over(1, (const exec_array *[]){part});
    while (exec_walk_next(&w))
        part->at[w.at[0]] = *exec_walk_lookup(&w, all, NULL, 0);
    return part;
}

static void run_step(exec_ranks *ranks, etch_step *step);

/* The weights that a stage reads are those that it has. To show one is not to read it. */
bool *exec_ranks_use(exec_ranks *ranks, const etch_tensor *tensor)
{
    if (!ranks->chain || tensor->kind != ETCH_WEIGHT)
        return NULL;
    bool **uses = &ranks->uses[tensor->id];
    if (!*uses)
        *uses = ETCH_NEW_ARRAY(ranks->env.arena, exec_instances(tensor->region->loop), bool);
    return &(*uses)[exec_instance(&ranks->env, tensor->region->loop)];
}

static bool is_nowhere(const exec_ranks *ranks, const etch_step *step)
{
    return ranks->chain && exec_is_nowhere(ranks->placed, step);
}

/* Is it made when it is asked for: what is no node, and on stages a view? */
static bool is_made_when_read(const exec_ranks *ranks, const etch_value *value)
{
    if (!value->step)
        return false;
    if (is_nowhere(ranks, value->step))
        return true;
    return value->step->kernel == UINT32_MAX && ranks->order == EXEC_KERNELS;
}

exec_array *exec_ranks_find(exec_ranks *ranks, const etch_value *value, uint32_t rank)
{
    exec_array **found = exec_ranks_slot(ranks, value, rank);
    if (!*found && is_given(value)) {
        *found =
            value->sharded_flat ? exec_ranks_range(ranks, value, rank) : exec_ranks_cut(ranks, value, rank);
        (*found)->use = exec_ranks_use(ranks, value->tensor);
    }
    if (!*found && is_made_when_read(ranks, value))
        run_step(ranks, value->step);
    return *found;
}

exec_array *exec_ranks_get(exec_ranks *ranks, const etch_value *value, uint32_t rank)
{
    exec_array *found = exec_ranks_find(ranks, value, rank);
    if (!found && value->step && value->step->collective)
        exec_fail(&ranks->env, "%s over %s cannot make %s", etch_row_name(value->step->row),
                  etch_axes_label(ranks->placed, value->step->axes), value->tensor->name);
    if (!found || !exec_is_open(&ranks->env, home_of(ranks, value)))
        exec_fail(&ranks->env, "%s is read where it is not made", value->tensor->name);
    return found;
}

static void set(exec_ranks *ranks, const etch_value *value, uint32_t rank, exec_array *array)
{
    const exec_array part = exec_mesh_part(&ranks->mesh, &ranks->env, value->tensor, value->place, rank);
    if (!exec_arrays_alike(&part, array))
        exec_fail(&ranks->env, "%s is %s on rank %u, its place says %s", value->tensor->name,
                  exec_array_text(ranks->env.arena, array), rank, exec_array_text(ranks->env.arena, &part));
    *exec_ranks_slot(ranks, value, rank) = array;
}

static uint32_t partial_axes(const exec_ranks *ranks, const etch_state *place)
{
    uint32_t axes = 0;
    for (uint32_t a = 0; a < ranks->mesh.axes; a++)
        if (place[a] == ETCH_PARTIAL || place[a] == ETCH_PARTIAL_MAX)
            axes |= 1u << a;
    return axes;
}

static bool is_maximum(const exec_ranks *ranks, const etch_state *place)
{
    return etch_axes_held(ranks->placed->plan, place, ETCH_PARTIAL_MAX) != 0;
}

/* The sum of the parts of a group that all hold the same range, or the largest of each element: what rank
 * `rank` sees after an all-reduce. */
static exec_array *reduce_over(exec_ranks *ranks, etch_arena *arena, exec_array *const *parts, uint32_t axes,
                               bool maximum, uint32_t rank)
{
    exec_array *sum = exec_array_like(arena, parts[rank]);
    for (size_t i = 0; maximum && i < sum->size; i++)
        sum->at[i] = -INFINITY;
    for (uint32_t r = 0; r < ranks->mesh.ranks; r++) {
        if (!exec_mesh_is_group(&ranks->mesh, r, rank, axes))
            continue;
        if (!exec_arrays_alike(sum, parts[r]))
            exec_fail(&ranks->env, "ranks %u and %u reduce different parts: %s, %s", rank, r,
                      exec_array_text(ranks->env.arena, sum), exec_array_text(ranks->env.arena, parts[r]));
        for (size_t i = 0; i < sum->size && !ranks->env.failure; i++)
            sum->at[i] = maximum ? fmax(sum->at[i], parts[r]->at[i]) : sum->at[i] + parts[r]->at[i];
    }
    return sum;
}

static exec_array **parts_of(exec_ranks *ranks, const etch_value *value)
{
    exec_array **parts = ETCH_NEW_ARRAY(ranks->values.arena, ranks->mesh.ranks, exec_array *);
    for (uint32_t r = 0; r < ranks->mesh.ranks; r++)
        parts[r] = exec_ranks_get(ranks, value, r);
    return parts;
}

/* Is the part of `expected` that a rank holds as it should be? */
static void compare_part(exec_ranks *ranks, const exec_array *part, uint32_t rank, const exec_array *expected,
                         const char *what)
{
    const double allowed = exec_allowed(expected);
    exec_walk w = exec_walk_over(1, (const exec_array *[]){part});
    while (exec_walk_next(&w)) {
        double right = *exec_walk_lookup(&w, expected, NULL, 0), now = part->at[w.at[0]];
        if (!(fabs(right - now) <= allowed))
            exec_fail(&ranks->env, "%s is %.12g on rank %u, on one rank it is %.12g", what, now, rank, right);
    }
}

/* The same for the parts of all ranks, which are summands or maxima where `place` says so. */
static void compare(exec_ranks *ranks, exec_array *const *parts, const etch_state *place,
                    const exec_array *expected, const char *what)
{
    etch_arena *scratch = etch_arena_new(etch_arena_mem(ranks->env.arena));
    const uint32_t partial = partial_axes(ranks, place);
    const bool maximum = is_maximum(ranks, place);
    for (uint32_t r = 0; r < ranks->mesh.ranks && !ranks->env.failure; r++)
        compare_part(ranks, reduce_over(ranks, scratch, parts, partial, maximum, r), r, expected, what);
    etch_arena_free(scratch);
}

/* Is the value that `step` reads or makes as `tensor` what one rank has? */
static void check_value(exec_ranks *ranks, const etch_step *step, const etch_value *value,
                        const etch_tensor *tensor, const char *role)
{
    const exec_array *expected = exec_run_value(ranks->reference, &ranks->env, tensor);
    if (ranks->env.failure || !expected)
        return;
    exec_array **parts = parts_of(ranks, value);
    if (!ranks->env.failure)
        compare(ranks, parts, value->place, expected,
                etch_text(ranks->values.arena, "%s: %s %s", step_text(ranks, step), role, tensor->name));
}

/* ---- what backward reads of forward -------------------------------------------------------------------- */

/* It is there anyway. */
static bool is_shard_of_input(const etch_step *step)
{
    return step->collective == ETCH_SLICE && step->outs[0]->tensor->kind == ETCH_INPUT;
}

/* A rank's array is memory of its own where an op or a move of the forward pass has made it. */
static void note_made(const etch_step *step, exec_array *array, uint32_t output)
{
    const etch_tensor *tensor = step->outs[output]->tensor;
    const bool given = tensor->kind == ETCH_WEIGHT || is_shard_of_input(step);
    if (step->phase == ETCH_FORWARD && !given && !array->made_as)
        array->made_as = tensor;
}

static void note_read(exec_ranks *ranks, const etch_step *step, exec_array *array, uint32_t rank)
{
    for (; array->memory; array = array->memory)
        array->is_used = true;
    array->read = ranks->now;
    if (array->together && array->together != &ranks->now)
        *array->together = ranks->now;
    array->is_used = true;
    if (array->use)
        *array->use = true;
    if (rank != 0 || step->phase == ETCH_FORWARD || !array->made_as || array->is_kept)
        return;
    array->is_kept = true;
    ranks->kept += array->size * etch_dtype_bytes(array->made_as->dtype);
}

static void track(const etch_step *step, const exec_call *call)
{
    const bool is_view = step->row->role == ETCH_ROLE_FREE;
    for (uint32_t i = 0; i < step->out_count; i++) {
        if (is_view)
            call->outs[i]->memory = (exec_array *)(uintptr_t)call->ins[0];
        else
            note_made(step, call->outs[i], i);
    }
}

/* The op has made the whole statistic already; its sum is in another buffer, as that of every all-reduce. */
static exec_array *reduced(exec_ranks *ranks, const etch_step *step, uint32_t rank)
{
    exec_array *sum = ETCH_NEW(ranks->values.arena, exec_array);
    *sum = *exec_ranks_get(ranks, step->ins[0], rank);
    sum->is_kept = sum->is_used = false;
    sum->made_as = NULL;
    sum->memory = NULL;
    sum->bytes = 0;
    return sum;
}

static exec_array *memory_of(exec_array *array)
{
    while (array->memory)
        array = array->memory;
    return array;
}

static void run_move(exec_ranks *ranks, const etch_step *step)
{
    const etch_state *before = step->ins[0]->place, *after = step->outs[0]->place;
    bool statistic =
        step->collective == ETCH_ALL_REDUCE && memcmp(before, after, ranks->mesh.axes * sizeof *before) == 0;
    if (step->collective != ETCH_SLICE)
        exec_ranks_check_payload(ranks, step);
    for (uint32_t r = 0; r < ranks->mesh.ranks && !ranks->env.failure; r++) {
        exec_array *part = statistic ? reduced(ranks, step, r) : exec_ranks_move(ranks, step, r);
        exec_array *from = exec_ranks_find(ranks, step->ins[0], r);
        const bool looks =
            step->collective == ETCH_SLICE && step->phase != ETCH_FORWARD && from && memory_of(from)->made_as;
        if (part) {
            set(ranks, step->outs[0], r, part);
            note_made(step, part, 0);
        }
        if (part && looks)
            part->memory = from; /* it is a part of it: what reads the shard reads it */
        else if (part && !is_shard_of_input(step))
            exec_ranks_birth(ranks, step->outs[0]->tensor, part, r);
        if (part && r == 0 && step->collective == ETCH_PERMUTE && step->outs[0]->blocks)
            part->bytes *= exec_blocks_out(ranks, step->axes);
        if (from && !(part && looks))
            note_read(ranks, step, from, r);
    }
    if (ranks->traffic)
        exec_traffic_note(ranks->traffic, &ranks->env, step);
    if (statistic)
        check_value(ranks, step, step->outs[0], step->outs[0]->tensor, "statistic");
}

/* ---- ops ----------------------------------------------------------------------------------------------- */

/* Axes over which the op needs statistics of others: it is given what all of them hold. */
static uint32_t statistic_axes(const exec_ranks *ranks, const etch_step *step)
{
    uint32_t axes = 0;
    for (uint32_t a = 0; a < ranks->mesh.axes && step->row->stat_reductions; a++)
        for (uint32_t i = 0; i < step->op->attrs.over.count; i++)
            if (step->factor[a] == step->op->attrs.over.at[i])
                axes |= 1u << a;
    return axes;
}

/* What a group holds together of a value that is sharded over `axes`. */
static exec_array *gathered(exec_ranks *ranks, const etch_value *value, exec_array *const *parts,
                            uint32_t axes, uint32_t rank)
{
    etch_state place[ETCH_MAX_AXES] = {NULL};
    for (uint32_t a = 0; a < ranks->mesh.axes; a++)
        place[a] = axes & (1u << a) ? NULL : value->place[a];
    exec_array *all = ETCH_NEW(ranks->values.arena, exec_array);
    *all = exec_mesh_part(&ranks->mesh, &ranks->env, value->tensor, place, rank);
    exec_array_fill(ranks->values.arena, all);
    all->made = parts[rank]->made;
    exec_walk w = exec_walk_over(1, (const exec_array *[]){all});
    while (exec_walk_next(&w))
        for (uint32_t r = 0; r < ranks->mesh.ranks; r++) {
            bool member = exec_mesh_is_group(&ranks->mesh, r, rank, axes);
            const double *element = member ? exec_walk_lookup(&w, parts[r], NULL, 0) : NULL;
            if (element)
                all->at[w.at[0]] = *element;
        }
    return all;
}

/* Which part of uneven work a rank has. */
static etch_expr part_of(const exec_ranks *ranks, uint32_t rank)
{
    int64_t part = 0;
    for (uint32_t a = 0; a < ranks->mesh.axes; a++)
        if (ranks->placed->uneven_axes >> a & 1)
            part = part * ranks->mesh.size[a] + exec_mesh_at(&ranks->mesh, rank, a);
    return etch_int(ranks->placed->training->graph->sym, part);
}

static void check_flop(exec_ranks *ranks, const etch_step *step, uint32_t rank, const exec_call *call,
                       uint32_t statistics)
{
    if ((ranks->seen[step->id] && !step->work_share) || ranks->env.failure)
        return;
    const etch_expr flop = etch_step_flop(ranks->placed, step);
    int64_t said = exec_integer(etch_at_work_share(ranks->placed, flop, part_of(ranks, rank)));
    int64_t counted = exec_ranks_flop(ranks, step, call, statistics, rank);
    for (uint32_t a = 0; a < ranks->mesh.axes; a++)
        if (statistics & (1u << a))
            counted /= ranks->mesh.size[a];
    if (!exec_flop_agrees(call, counted, said))
        exec_fail(&ranks->env, "%s takes %lld FLOP on a rank, %lld are said", step_text(ranks, step),
                  (long long)counted, (long long)said);
}

/* Adds a rank's contribution. Where the gradient as a whole is partial over an axis and the contribution is
 * not, one rank of the axis adds it. */
static void accumulate(exec_ranks *ranks, const etch_step *step, uint32_t output, uint32_t rank)
{
    const etch_value *part = step->outs[output];
    const etch_tensor *gradient = step->accumulate_into[output], *weight = gradient->of;
    uint32_t sync = ranks->placed->sync_axes[weight->id];
    exec_store *store = ranks->skips[1] ? ranks->pending : &ranks->gradients;
    exec_array **sum =
        exec_slot(&ranks->env, store, gradient->id * ranks->mesh.ranks + rank, gradient->region->loop);
    exec_array now =
        exec_mesh_part(&ranks->mesh, &ranks->env, weight, ranks->placed->weight_of[weight->id]->place, rank);
    if (!*sum) {
        *sum = ETCH_NEW(store->arena, exec_array);
        **sum = now;
        exec_array_fill(store->arena, *sum);
    }
    if (rank == 0)
        exec_ranks_reach(ranks, weight);
    if (rank == 0)
        exec_ranks_whole(ranks, step, output, *sum);
    const exec_array *added = *exec_ranks_slot(ranks, part, rank);
    if (!exec_arrays_alike(*sum, added) || (partial_axes(ranks, part->place) & ~sync)) {
        exec_fail(&ranks->env, "%s adds %s into a gradient that is %s", step_text(ranks, step),
                  exec_array_text(ranks->env.arena, added), exec_array_text(ranks->env.arena, &now));
        return;
    }
    for (uint32_t a = 0; a < ranks->mesh.axes; a++)
        if ((sync & (1u << a)) && part->place[a] != ETCH_PARTIAL && exec_mesh_at(&ranks->mesh, rank, a))
            return;
    exec_walk w = exec_walk_over(2, (const exec_array *[]){*sum, added});
    while (exec_walk_next(&w))
        (*sum)->at[w.at[0]] += added->at[w.at[1]];
}

/* Runs the op of a step on one rank. `parts` are the operands of all ranks; `ring` is what has been made, by
 * result and rank, with so many FLOP, where blocks go round; else NULL. */
static void run_on_rank(exec_ranks *ranks, const etch_step *step, exec_array ***parts, uint32_t rank,
                        exec_array ***ring, int64_t flop)
{
    uint32_t statistics = statistic_axes(ranks, step);
    exec_call call = {.env = &ranks->env,
                      .arena = ranks->values.arena,
                      .op = step->op,
                      .salt = exec_salt(&ranks->env, step->op)};
    for (uint32_t i = 0; i < step->in_count; i++)
        call.ins[i] = statistics ? gathered(ranks, step->ins[i], parts[i], statistics, rank) : parts[i][rank];
    for (uint32_t i = 0; i < step->out_count; i++) {
        call.outs[i] = ring ? ring[i][rank] : ETCH_NEW(ranks->values.arena, exec_array);
        if (ring)
            continue;
        *call.outs[i] =
            exec_mesh_part(&ranks->mesh, &ranks->env, step->outs[i]->tensor, step->outs[i]->place, rank);
        exec_array_fill(ranks->values.arena, call.outs[i]);
    }
    call.flop = flop;
    if (!ring)
        exec_op(&call);
    if (ranks->env.failure) {
        ranks->env.failure =
            etch_text(ranks->env.arena, "%s: %s", step_text(ranks, step), ranks->env.failure);
        return;
    }
    exec_note_made(&call);
    check_flop(ranks, step, rank, &call, statistics);
    track(step, &call);
    for (uint32_t i = 0; i < step->out_count && step->row->role != ETCH_ROLE_FREE; i++)
        exec_ranks_begin(ranks, step, i, call.outs[i], rank);
    for (uint32_t i = 0; i < step->in_count && step->row->role != ETCH_ROLE_FREE; i++)
        note_read(ranks, step, parts[i][rank], rank);
    if (ranks->traffic && rank == 0)
        exec_traffic_note(ranks->traffic, &ranks->env, step);
    for (uint32_t i = 0; i < step->out_count; i++) {
        set(ranks, step->outs[i], rank, call.outs[i]);
        if (step->accumulate_into[i])
            accumulate(ranks, step, i, rank);
    }
}

/* A sum of some of the contributions to a cotangent, or of some terms, has no counterpart on one rank. */
static bool is_part(const etch_step *step)
{
    if (strcmp(etch_row_name(step->row), "add_cotangents") == 0)
        return true;
    return strcmp(etch_row_name(step->row), "add") == 0 &&
           step->op->id != step->outs[0]->tensor->producer->id;
}

/* Is the operand such a sum? */
static bool is_of_parts(const etch_step *step, uint32_t i)
{
    return step->op->ins[i] == step->op->outs[0];
}

static void run_op(exec_ranks *ranks, const etch_step *step)
{
    exec_array **parts[EXEC_MAX_OPERANDS];
    for (uint32_t i = 0; i < step->in_count; i++) {
        if (!is_part(step) && !is_of_parts(step, i))
            check_value(ranks, step, step->ins[i], step->op->ins[i], "operand");
        parts[i] = parts_of(ranks, step->ins[i]);
    }
    int64_t *flop = ETCH_NEW_ARRAY(ranks->values.arena, ranks->mesh.ranks, int64_t);
    exec_array ***ring =
        step->ring && !ranks->env.failure ? exec_ranks_go_round(ranks, step, parts, flop) : NULL;
    for (uint32_t r = 0; r < ranks->mesh.ranks && !ranks->env.failure; r++)
        run_on_rank(ranks, step, parts, r, ring, flop[r]);
    ranks->seen[step->id] = true;
    for (uint32_t i = 0; i < step->out_count && !is_part(step); i++)
        check_value(ranks, step, step->outs[i], step->op->outs[i], "result");
}

/* A weight that ranks hold in parts is whole in what was gathered, and nowhere else. */
static void check_parts(exec_ranks *ranks, const etch_step *step)
{
    for (uint32_t i = 0; i < step->in_count; i++) {
        const etch_value *value = step->ins[i];
        const bool whole = is_given(value) && value->tensor->kind == ETCH_WEIGHT && !value->sharded_flat;
        if (whole && etch_zero_divides(ranks->placed, value->tensor, ETCH_HOLDS_WEIGHT))
            exec_fail(&ranks->env, "%s reads all of %s", step_text(ranks, step), value->tensor->name);
    }
}

static void run_step(exec_ranks *ranks, etch_step *step)
{
    ranks->now++;
    ranks->runs[step->id]++;
    exec_ranks_count_group(ranks, step);
    check_parts(ranks, step);
    if (step->copies || (step->collective != ETCH_NO_COLLECTIVE && step->outs[0]->sharded_flat))
        exec_ranks_gather(ranks, ranks->region, step);
    else if (step->collective != ETCH_NO_COLLECTIVE)
        run_move(ranks, step);
    else
        run_op(ranks, step);
}

/* ---- regions ------------------------------------------------------------------------------------------- */

static void run_region(exec_ranks *ranks, const etch_placed_region *region);

static exec_array **zeros(exec_ranks *ranks, const etch_loop *loop, const etch_value *value)
{
    exec_array **parts = ETCH_NEW_ARRAY(ranks->values.arena, ranks->mesh.ranks, exec_array *);
    for (uint32_t r = 0; r < ranks->mesh.ranks; r++) {
        parts[r] = ETCH_NEW(ranks->values.arena, exec_array);
        *parts[r] = exec_mesh_part(&ranks->mesh, &ranks->env, value->tensor, value->place, r);
        exec_array_fill(ranks->values.arena, parts[r]);
        parts[r]->made = exec_integer(loop->count) ? EXEC_OPEN : EXEC_NOTHING;
    }
    return parts;
}

/* What a loop hands on; NULL: it is not on the stage, and nothing may read it. */
static exec_array **handed_on(exec_ranks *ranks, etch_value *value)
{
    const etch_value *root = etch_value_root(value);
    const bool is_sent = !is_given(root) && !is_made_when_read(ranks, root);
    return is_sent && !*exec_ranks_slot(ranks, root, 0) ? NULL : parts_of(ranks, value);
}

static void set_all(exec_ranks *ranks, const etch_value *value, exec_array *const *parts)
{
    for (uint32_t r = 0; parts && r < ranks->mesh.ranks && !ranks->env.failure; r++)
        set(ranks, value, r, parts[r]);
}

static void check_carry(exec_ranks *ranks, const etch_placed_carry *carry)
{
    if (partial_axes(ranks, carry->in->place))
        exec_fail(&ranks->env, "a loop hands on %s as a partial sum", carry->in->tensor->name);
}

/* Is it of the half of backward at work? What the first half carries is where it was for the second. */
static bool is_carried(const exec_ranks *ranks, const etch_placed_loop *loop, uint32_t carry)
{
    return !ranks->skips[loop->bodies.at[0]->carries.at[carry].weight_half];
}

static void begin_loop(exec_ranks *ranks, const etch_placed_loop *loop, uint32_t turn, exec_array ***handed)
{
    const etch_placed_region *body = loop->bodies.at[turn ? exec_turn_class(loop->loop, turn) : 0];
    if (turn)
        exec_iterate(&ranks->env, loop->loop, turn);
    for (uint32_t i = 0; i < body->carries.count; i++) {
        const etch_placed_carry *carry = &body->carries.at[i];
        if (!is_carried(ranks, loop, i))
            continue;
        etch_value *init = turn ? carry->in : etch_loop_carries(loop)->at[i].init;
        handed[i] = init ? handed_on(ranks, init) : zeros(ranks, loop->loop, carry->in);
        if (ranks->traffic && init)
            exec_traffic_leave(ranks->traffic, init);
        if (!init)
            exec_ranks_birth(ranks, carry->in->tensor, handed[i][0], 0);
    }
    if (turn)
        exec_iterated(&ranks->env, loop->loop);
}

/* What leaves the last iteration, or is handed on to the turn-th, which is on another stage. */
static void end_loop(exec_ranks *ranks, const etch_placed_loop *loop, uint32_t turn, exec_array ***handed)
{
    const bool ends = turn == exec_integer(loop->loop->count);
    const etch_placed_region *body = loop->bodies.at[ends ? 0 : exec_turn_class(loop->loop, turn)];
    if (!ends)
        exec_iterate(&ranks->env, loop->loop, turn);
    for (uint32_t i = 0; i < body->carries.count && !ranks->env.failure; i++)
        if (is_carried(ranks, loop, i))
            set_all(ranks, ends ? etch_loop_carries(loop)->at[i].result : body->carries.at[i].in, handed[i]);
    if (!ends)
        exec_iterated(&ranks->env, loop->loop);
}

static void run_iteration(exec_ranks *ranks, const etch_placed_loop *loop, uint32_t turn,
                          exec_array ***handed)
{
    const etch_placed_region *body = loop->bodies.at[exec_turn_class(loop->loop, turn)];
    exec_iterate(&ranks->env, loop->loop, turn);
    if (!ranks->region->loop)
        exec_ranks_begin_iteration(ranks, loop);
    for (uint32_t i = 0; i < body->carries.count; i++)
        if (is_carried(ranks, loop, i))
            set_all(ranks, body->carries.at[i].in, handed[i]);
    run_region(ranks, body);
    for (uint32_t i = 0; i < body->carries.count && !ranks->env.failure; i++) {
        if (!is_carried(ranks, loop, i))
            continue;
        handed[i] = handed_on(ranks, body->carries.at[i].out);
        if (ranks->traffic)
            exec_traffic_leave(ranks->traffic, body->carries.at[i].out);
    }
    for (uint32_t i = 0; i < body->carries.count && !ranks->env.failure; i++) {
        exec_array *out = is_carried(ranks, loop, i) && handed[i] ? memory_of(handed[i][0]) : NULL;
        if (out)
            exec_ranks_hand_on(ranks, body, out);
    }
    if (!ranks->region->loop)
        exec_ranks_end_iteration(ranks);
    exec_ranks_forget(ranks, body, body->items.count);
    exec_iterated(&ranks->env, loop->loop);
}

/* The iterations that are run here, by turns: of a loop whose iterations are layers, those of the
 * interval. */
static exec_interval turns_of(const exec_ranks *ranks, const etch_placed_loop *loop, bool is_top)
{
    const uint32_t count = exec_integer(loop->loop->count);
    const uint32_t entry =
        ranks->chain && is_top ? exec_chain_layers(ranks->chain, loop->position) : UINT32_MAX;
    exec_interval turns = {0, count};
    if (entry == UINT32_MAX)
        return turns;
    turns.high = 0;
    for (uint32_t turn = 0; turn < count; turn++) {
        const uint32_t layer = ranks->chain->first[entry] + (loop->loop->forward ? count - 1 - turn : turn);
        if (!exec_chain_has(ranks->interval, layer))
            continue;
        turns.low = turns.high ? turns.low : turn;
        turns.high = turn + 1;
    }
    return turns;
}

static void run_loop(exec_ranks *ranks, const etch_placed_loop *loop, bool is_top)
{
    const uint32_t count = etch_loop_carries(loop)->count;
    const exec_interval turns = turns_of(ranks, loop, is_top);
    exec_array ***handed = ETCH_NEW_ARRAY(ranks->values.arena, count, exec_array **);
    if (ranks->chain && is_top && turns.high == 0 && exec_integer(loop->loop->count) > 0)
        return;
    ranks->now++; /* what it begins with is read, zeros are made */
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t k = 0; k < loop->bodies.count; k++)
            check_carry(ranks, &loop->bodies.at[k]->carries.at[i]);
    begin_loop(ranks, loop, turns.low, handed);
    for (uint32_t turn = turns.low; turn < turns.high && !ranks->env.failure; turn++)
        run_iteration(ranks, loop, turn, handed);
    ranks->group_begins = ranks->group_begins || is_top;
    if (!ranks->env.failure)
        end_loop(ranks, loop, turns.high, handed);
}

bool exec_ranks_is_here(const exec_ranks *ranks, etch_position home)
{
    if (!ranks->chain)
        return true;
    return home != ETCH_NO_POSITION &&
           exec_chain_has(ranks->interval, exec_chain_position(ranks->chain, home));
}

/* Views are made where they are read; a loop of layers chooses its iterations. */
static bool runs_here(const exec_ranks *ranks, const etch_placed_region *region, const etch_placed_item *item)
{
    if (item->step && (is_nowhere(ranks, item->step) || ranks->skips[item->step->weight_half]))
        return false;
    if (!ranks->chain || region->loop)
        return true;
    if (item->loop && exec_chain_layers(ranks->chain, item->loop->position) != UINT32_MAX)
        return true;
    return exec_ranks_is_here(ranks, item->loop ? item->loop->position : item->step->position);
}

/* Kernels stand at places among the items of their region, as its loops do. */
static void run_region(exec_ranks *ranks, const etch_placed_region *region)
{
    const etch_placed_region *outer = ranks->region;
    uint32_t next = 0;
    for (uint32_t i = 0; i < region->items.count && !ranks->env.failure; i++) {
        const etch_placed_item *item = &region->items.at[i];
        ranks->region = region;
        if (item->loop && !region->loop)
            exec_ranks_forget(ranks, region, i);
        if (!runs_here(ranks, region, item))
            ; /* on another stage, or of another chunk */
        else if (item->loop)
            run_loop(ranks, item->loop, !region->loop);
        else if (ranks->order == EXEC_PROGRAM || item->step->outs[0]->sharded_flat)
            run_step(ranks, item->step); /* a part of a copy is taken while there is one */
        for (; next < region->kernels.count && region->kernels.at[next]->item == i; next++)
            for (uint32_t k = 0; k < region->kernels.at[next]->steps.count; k++)
                if (ranks->order == EXEC_KERNELS && !ranks->env.failure)
                    run_step(ranks, region->kernels.at[next]->steps.at[k]);
    }
    if (next != region->kernels.count)
        exec_fail(&ranks->env, "kernel %u of %u is out of order", next, region->kernels.count);
    ranks->region = outer;
}

/* ---- the door --------------------------------------------------------------------------------------- */

static void find_homes(exec_ranks *ranks, const etch_placed_region *region)
{
    const etch_loop *here = region->loop ? region->loop->loop : NULL;
    for (uint32_t i = 0; i < region->items.count; i++) {
        const etch_step *step = region->items.at[i].step;
        const etch_placed_loop *loop = region->items.at[i].loop;
        for (uint32_t k = 0; step && k < step->out_count; k++)
            ranks->home[step->outs[k]->id] =
                step->copies || step->outs[k]->sharded_flat ? step->outs[k]->tensor->region->loop : here;
        if (step && step->op)
            exec_ranks_lay_out(ranks, step);
        for (uint32_t b = 0; loop && b < loop->bodies.count; b++) {
            const etch_placed_region *body = loop->bodies.at[b];
            for (uint32_t k = 0; k < body->carries.count; k++) {
                ranks->home[body->carries.at[k].in->id] = loop->loop;
                ranks->home[body->carries.at[k].result->id] = here;
            }
            find_homes(ranks, body);
        }
    }
}

static exec_ranks *new_ranks(etch_arena *arena, const etch_placed *placed, exec_run *reference,
                             exec_order order, const exec_mesh *mesh)
{
    exec_ranks *ranks = ETCH_NEW(arena, exec_ranks);
    const uint32_t tensors = placed->training->graph->tensors.count;
    *ranks = (exec_ranks){
        .env = exec_env_new(arena, placed->training),
        .placed = placed,
        .mesh = *mesh,
        .reference = reference,
        .order = order,
        .home = ETCH_NEW_ARRAY(arena, placed->value_count, const etch_loop *),
        .seen = ETCH_NEW_ARRAY(arena, placed->step_count, bool),
        .uses = ETCH_NEW_ARRAY(arena, tensors, bool *),
        .runs = ETCH_NEW_ARRAY(arena, placed->step_count, uint32_t),
    };
    ranks->gradients = exec_store_new(arena, tensors * ranks->mesh.ranks);
    ranks->reduced = exec_store_new(arena, tensors * ranks->mesh.ranks);
    exec_mesh_note_slots(&ranks->mesh, placed);
    ranks->env.routes = reference->env.routes = ETCH_NEW(arena, exec_routes);
    for (etch_placed_cursor at = {.root = placed->forward, .then = placed->backward};
         etch_placed_cursor_next(&at);)
        if (at.item->step && at.item->step->copies)
            ETCH_PUSH(arena, &ranks->gathers, at.item->step);
    find_homes(ranks, placed->forward);
    if (placed->backward)
        find_homes(ranks, placed->backward);
    return ranks;
}

exec_ranks *exec_ranks_new(etch_arena *arena, const etch_placed *placed, exec_run *reference,
                           exec_order order)
{
    const exec_mesh mesh = exec_mesh_of(placed->training->graph, placed->plan);
    return new_ranks(arena, placed, reference, order, &mesh);
}

exec_ranks *exec_ranks_of_stage(etch_arena *arena, const exec_chain *chain, uint32_t stage,
                                exec_run *reference)
{
    const etch_placed *placed = chain->placed;
    exec_mesh mesh = exec_mesh_of(placed->training->graph, placed->plan);
    for (uint32_t i = 0; i < placed->plan->stage->axis_count; i++) {
        uint32_t *size = &mesh.size[placed->plan->stage->axes[i]];
        mesh.ranks /= *size;
        *size = 1;
    }
    exec_ranks *ranks = new_ranks(arena, placed, reference, EXEC_PROGRAM, &mesh);
    ranks->chain = chain;
    ranks->stage = stage;
    return ranks;
}

static void take_pending(exec_ranks *ranks, uint32_t id)
{
    const etch_graph *graph = ranks->placed->training->graph;
    const uint32_t instances = exec_instances(graph->tensors.at[id / ranks->mesh.ranks]->region->loop);
    for (uint32_t i = 0; i < instances; i++) {
        const exec_array *added = ranks->pending->at[id][i];
        if (!ranks->gradients.at[id])
            ranks->gradients.at[id] = ETCH_NEW_ARRAY(ranks->gradients.arena, instances, exec_array *);
        exec_array **sum = &ranks->gradients.at[id][i];
        for (size_t k = 0; added && *sum && k < added->size; k++)
            (*sum)->at[k] += added->at[k];
        if (!*sum)
            *sum = ranks->pending->at[id][i];
        if (*sum)
            (*sum)->read = ranks->now; /* it is reduced with the second half */
    }
}

void exec_ranks_pass(exec_ranks *ranks, bool backward)
{
    for (uint32_t id = 0; ranks->skips[0] && id < ranks->pending->count; id++)
        if (ranks->pending->at[id])
            take_pending(ranks, id);
    const etch_placed_region *region = backward ? ranks->placed->backward : ranks->placed->forward;
    ranks->group_read = ETCH_NEW_ARRAY(ranks->env.arena, ranks->placed->weight_groups.count, uint32_t);
    ranks->of_iteration.count = ranks->of_iteration.capacity = 0;
    ranks->group_begins = true;
    ranks->pass_began = ranks->now;
    ranks->actions++;
    run_region(ranks, region);
    exec_ranks_forget(ranks, region, region->items.count);
    if (backward && !ranks->skips[1] && !ranks->env.failure)
        exec_ranks_reduce(ranks);
}

void exec_ranks_run(exec_ranks *ranks)
{
    ranks->values = exec_store_new(etch_arena_new(etch_arena_mem(ranks->env.arena)),
                                   ranks->placed->value_count * ranks->mesh.ranks);
    ranks->env.microbatch = ranks->reference->env.microbatch;
    ranks->made.count = ranks->groups.count = ranks->now = 0;
    exec_ranks_pass(ranks, false);
    if (!ranks->env.failure && ranks->placed->backward)
        exec_ranks_pass(ranks, true);
    ranks->working = exec_ranks_most(ranks);
    etch_arena_free(ranks->values.arena);
    ranks->values.arena = NULL;
}
