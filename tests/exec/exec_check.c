#include "exec_check.h"

#include "graph/cost/cost_int.h"

#include <math.h>

double exec_loss(const etch_training *training, exec_data *data)
{
    etch_arena *scratch = etch_arena_new(etch_arena_mem(training->graph->arena));
    exec_run *run = exec_run_new(scratch, training, data);
    for (uint32_t m = 0; m < run->env.micro; m++)
        exec_run_forward(run, m);
    double loss = run->env.failure ? NAN : run->loss;
    etch_arena_free(run->values.arena);
    etch_arena_free(scratch);
    return loss;
}

/* ---- gradients against differences ------------------------------------------------------------------ */

typedef struct probe {
    const etch_training *training;
    exec_data *data;
    exec_array *weight;
    const double *direction, *start; /* by element */
    double loss;
} probe;

static void go_to(const probe *p, double step)
{
    for (size_t i = 0; i < p->weight->size; i++)
        p->weight->at[i] = p->start[i] + step * p->direction[i];
}

static double rise(const probe *p, double step)
{
    go_to(p, step);
    double ahead = exec_loss(p->training, p->data);
    go_to(p, -step);
    double rise = ahead - exec_loss(p->training, p->data);
    go_to(p, 0);
    return rise;
}

/* The slope of the loss along `direction` is that of the gradient. Where the loss bends much, by differences
 * of fourth order and by shorter steps. */
static bool slope_fits(const probe *p, const exec_array *gradient)
{
    double derived = 0, size = 0;
    for (size_t i = 0; i < gradient->size; i++) {
        derived += gradient->at[i] * p->direction[i];
        size += fabs(p->direction[i]);
    }
    double floor = 1e-8 * (1 + fabs(p->loss));
    double allowed = 1e-5 * fmax(fabs(derived), 1e-3 * size * exec_array_largest(gradient)) + floor;
    if (fabs(rise(p, 1e-5) / 2e-5 - derived) <= allowed)
        return true;
    for (double h = 1e-4; h > 1e-7; h /= 10)
        if (fabs((8 * rise(p, h) - rise(p, 2 * h)) / (12 * h) - derived) <= allowed)
            return true;
    return false; /* also for NaN */
}

static bool weight_fits(const probe *p, const exec_array *gradient, double *direction, uint64_t seed,
                        bool every_element)
{
    for (size_t i = 0; i < gradient->size; i++)
        direction[i] = every_element ? 0 : 2 * exec_random(seed, i) - 1;
    if (!every_element)
        return slope_fits(p, gradient);
    for (size_t i = 0; i < gradient->size; i++) {
        direction[i] = 1;
        if (!slope_fits(p, gradient))
            return false;
        direction[i] = 0;
    }
    return true;
}

/* All instances of one weight. `gradient`: NULL when it is said to have none. */
static bool gradient_fits(exec_run *run, const etch_tensor *weight, const etch_tensor *gradient,
                          uint64_t seed, bool every_element)
{
    for (uint32_t k = 0; k < exec_instances(weight->region->loop); k++) {
        exec_array *values = run->data->tensors.at[weight->id][k];
        exec_array **made = gradient ? run->gradients.at[gradient->id] : NULL;
        const exec_array *slopes = made && made[k] ? made[k] : exec_array_like(run->env.arena, values);
        double *start = ETCH_NEW_ARRAY(run->env.arena, values->size, double);
        double *direction = ETCH_NEW_ARRAY(run->env.arena, values->size, double);
        for (size_t i = 0; i < values->size; i++)
            start[i] = values->at[i];
        const probe p = {run->env.training, run->data, values, direction, start, run->loss};
        if (!exec_arrays_alike(values, slopes) ||
            !weight_fits(&p, slopes, direction, seed + k, every_element))
            return false;
    }
    return true;
}

static const char *check_gradients(exec_run *run, uint64_t seed, bool every_element)
{
    const etch_training *training = run->env.training;
    exec_data_stop(run->data);
    for (uint32_t m = 0; m < run->env.micro && !run->env.failure; m++) {
        exec_run_forward(run, m);
        exec_run_backward(run);
    }
    if (run->env.failure)
        return run->env.failure;
    if (!isfinite(run->loss))
        return "the loss is not finite";
    for (uint32_t i = 0; i < training->gradients.count; i++) {
        const etch_tensor *weight = training->graph->weights.at[i], *gradient = training->gradients.at[i];
        if (!weight->frozen && !gradient_fits(run, weight, gradient, seed, every_element))
            return etch_text(run->env.arena, "d%s is not the slope of the loss", weight->name);
    }
    return NULL;
}

const char *exec_check_gradients(const etch_training *training, uint64_t seed, bool every_element)
{
    etch_arena *arena = training->graph->arena;
    exec_run *run = exec_run_new(arena, training, exec_data_new(arena, training, seed));
    run->flop_matters = true;
    const char *failure = check_gradients(run, seed, every_element);
    etch_arena_free(run->values.arena);
    return failure;
}

/* ---- what is saved ---------------------------------------------------------------------------------- */

const char *exec_check_saved(const etch_training *training, uint64_t seed)
{
    const etch_graph *graph = training->graph;
    etch_arena *arena = graph->arena;
    exec_run *run = exec_run_new(arena, training, exec_data_new(arena, training, seed));
    exec_run_forward(run, 0);
    exec_run_backward(run);
    etch_saved_list saved = {0};
    etch_graph_saved(training, &saved);
    uint64_t bytes = 0, values = 0;
    for (uint32_t i = 0; i < saved.count; i++) {
        const etch_saved *s = &saved.at[i];
        bytes += (uint64_t)exec_integer(s->elements) * s->width * exec_integer(s->times);
        values += exec_integer(s->times);
    }
    const char *failure = run->env.failure;
    if (!failure && (bytes != run->kept || values != run->kept_values))
        failure =
            etch_text(arena, "%llu values of %llu bytes are said to be saved; %llu of %llu bytes are read",
                      (unsigned long long)values, (unsigned long long)bytes,
                      (unsigned long long)run->kept_values, (unsigned long long)run->kept);
    etch_arena_free(run->values.arena);
    return failure;
}

/* ---- ranks ------------------------------------------------------------------------------------------ */

/* Has the first rank read in the backward pass of a microbatch what it is said to keep for it? */
static const char *check_rank_saved(const exec_ranks *ranks)
{
    const etch_placed *placed = ranks->placed;
    etch_saved_list saved = {0};
    uint64_t bytes = 0;
    etch_placed_saved(placed, NULL, ETCH_HOLD_FORWARD_TO_INPUTS, &saved);
    for (uint32_t i = 0; i < saved.count; i++) {
        const etch_saved *s = &saved.at[i];
        bytes += (uint64_t)exec_integer(s->elements) * s->width * exec_integer(s->times);
    }
    if (bytes == ranks->kept)
        return NULL;
    return etch_text(placed->arena, "%llu bytes are said to be saved on a rank; %llu are read",
                     (unsigned long long)bytes, (unsigned long long)ranks->kept);
}

/* Does it have as much at a time beside that as the formula says? One microbatch alone has none of the
 * weights that are gathered for the next one. */
static const char *check_working(const exec_ranks *ranks)
{
    const uint64_t said = exec_integer(etch_workspace_bytes(ranks->placed, NULL, NULL, NULL));
    const bool has_next = ranks->env.micro > 1 && ranks->placed->plan->zero.ahead > 0;
    if (ranks->working == said || (has_next && ranks->gathers.count > 0 && ranks->working < said))
        return NULL;
    return etch_text(ranks->placed->arena, "%llu bytes are said to be worked on at a time; there are %llu",
                     (unsigned long long)said, (unsigned long long)ranks->working);
}

static const char *check_order(const etch_placed *placed, exec_data *data, exec_order order, bool saved)
{
    const etch_training *training = placed->training;
    exec_run *run = exec_run_new(placed->arena, training, data);
    exec_ranks *ranks = exec_ranks_new(placed->arena, placed, run, order);
    for (uint32_t m = 0; m < run->env.micro && !run->env.failure && !ranks->env.failure; m++) {
        exec_run_forward(run, m);
        exec_run_backward(run);
        if (!run->env.failure)
            exec_ranks_run(ranks);
        if (m == 0 && saved && !run->env.failure && !ranks->env.failure)
            ranks->env.failure = check_rank_saved(ranks);
        if (m == 0 && saved && !run->env.failure && !ranks->env.failure)
            ranks->env.failure = check_working(ranks);
    }
    if (!run->env.failure && !ranks->env.failure)
        exec_ranks_finish(ranks);
    etch_arena_free(run->values.arena);
    return run->env.failure ? run->env.failure : ranks->env.failure;
}

const char *exec_check_order(const etch_placed *placed, uint64_t seed, exec_order order)
{
    return check_order(placed, exec_data_new(placed->arena, placed->training, seed), order,
                       order == EXEC_PROGRAM);
}

static const char *check_placed(const etch_placed *placed, uint64_t seed, bool memory)
{
    exec_data *data = exec_data_new(placed->arena, placed->training, seed);
    const char *failure = exec_check_rules(placed);
    if (!failure)
        failure = check_order(placed, data, EXEC_PROGRAM, memory);
    if (failure)
        return failure;
    failure = check_order(placed, data, EXEC_KERNELS, false);
    return failure ? etch_text(placed->arena, "in the order of kernels: %s", failure) : NULL;
}

const char *exec_check_placed(const etch_placed *placed, uint64_t seed)
{
    return check_placed(placed, seed, false);
}

const char *exec_check_memory(const etch_placed *placed, uint64_t seed)
{
    return check_placed(placed, seed, true);
}

/* ---- requirements ----------------------------------------------------------------------------------- */

/* The batch, and slots that its tokens fill. */
static bool is_of_batch(const etch_dim *dim, const etch_dim *batch)
{
    for (uint32_t i = 0; i < dim->packed_from.count; i++)
        if (dim->packed_from.at[i] == batch)
            return true;
    return dim == batch;
}

/* Can the ranks and microbatches divide every dim of the value evenly? */
static bool is_even(const etch_placed *placed, const etch_value *value)
{
    const etch_train *train = &placed->training->train;
    for (uint32_t i = 0; i < value->tensor->rank; i++) {
        const etch_dim *dim = value->tensor->dims[i];
        uint32_t parts = is_of_batch(dim, train->batch) ? exec_integer(train->micro) : 1;
        for (uint32_t a = 0; a < placed->plan->mesh.count; a++)
            parts *= value->place[a] == dim ? exec_integer(placed->plan->mesh.at[a].size) : 1;
        if (exec_integer(dim->size) % parts)
            return false;
    }
    return true;
}

static bool are_even(const etch_placed *placed, etch_value *const *values, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (!is_even(placed, values[i]))
            return false;
    return true;
}

/* Ranks that share the queries of a causal attention need two chunks each. */
static bool has_chunks(const etch_placed *placed, const etch_step *step)
{
    const bool attends = step->op && strcmp(etch_row_name(step->row), "sdpa") == 0;
    const etch_dim *query = attends ? exec_causal_query(step->op) : NULL;
    uint32_t parts = 1;
    for (uint32_t a = 0; query && a < placed->plan->mesh.count; a++)
        parts *= step->factor[a] == query ? exec_integer(placed->plan->mesh.at[a].size) : 1;
    return parts == 1 || placed->plan->contiguous || exec_integer(query->size) % (2 * parts) == 0;
}

static bool step_is_even(const etch_placed *placed, const etch_step *step)
{
    return are_even(placed, step->ins, step->in_count) && are_even(placed, step->outs, step->out_count) &&
           has_chunks(placed, step);
}

/* What queries were split into, or merged to, is divided into chunks as they are. */
static bool are_chunks_whole(const exec_env *env, const etch_placed *placed, const etch_value *value)
{
    for (etch_placed_cursor at = {.root = placed->forward}; etch_placed_cursor_next(&at);) {
        const etch_step *step = at.item->step;
        const bool attends = step && step->op && strcmp(etch_row_name(step->row), "sdpa") == 0;
        const etch_dim *query = attends ? exec_causal_query(step->op) : NULL;
        for (uint32_t d = 0; query && d < value->tensor->rank; d++) {
            const etch_dim *dim = value->tensor->dims[d];
            uint32_t held = 1, all = 1;
            bool within = true; /* is it held over axes that divide the queries? */
            for (uint32_t a = 0; a < placed->plan->mesh.count; a++) {
                const uint32_t ranks = exec_integer(placed->plan->mesh.at[a].size);
                const bool divides = step->factor[a] == query, holds = value->place[a] == dim;
                all *= divides ? ranks : 1;
                held *= holds ? ranks : 1;
                within = within && (divides || !holds);
            }
            /* of fewer ranks a shard is those of several */
            const uint32_t parts = within ? held : all;
            if (exec_are_outermost(env, query, dim) && held > 1 && all > 1 &&
                exec_size(env, dim) % (2 * parts))
                return false;
        }
    }
    return true;
}

static bool has_whole_chunks(const etch_placed *placed)
{
    const exec_env env = exec_env_new(placed->arena, placed->training);
    for (etch_placed_cursor at = {.root = placed->forward, .then = placed->backward};
         !placed->plan->contiguous && etch_placed_cursor_next(&at);)
        for (uint32_t i = 0; at.item->step && i < at.item->step->out_count; i++)
            if (!are_chunks_whole(&env, placed, at.item->step->outs[i]))
                return false;
    return true;
}

static bool region_is_even(const etch_placed *placed, const etch_placed_region *region)
{
    for (uint32_t i = 0; i < region->items.count; i++) {
        const etch_step *step = region->items.at[i].step;
        const etch_placed_loop *loop = region->items.at[i].loop;
        if (step && !step_is_even(placed, step))
            return false;
        for (uint32_t k = 0; loop && k < etch_loop_carries(loop)->count; k++)
            if (!is_even(placed, etch_loop_carries(loop)->at[k].in))
                return false;
        for (uint32_t k = 0; loop && k < loop->bodies.count; k++)
            if (!region_is_even(placed, loop->bodies.at[k]))
                return false;
    }
    return true;
}

/* All weights are held, also those that no op reads. */
static bool weights_are_even(const etch_placed *placed)
{
    const etch_graph *graph = placed->training->graph;
    for (uint32_t i = 0; i < graph->weights.count; i++)
        if (!is_even(placed, placed->weight_of[graph->weights.at[i]->id]))
            return false;
    return true;
}

/* Inputs as well; a placed graph does not say where those are that no op reads. */
static bool is_of_input(const etch_placed *placed, const etch_dim *dim)
{
    const etch_graph *graph = placed->training->graph;
    for (uint32_t i = 0; i < graph->tensors.count; i++)
        if (graph->tensors.at[i]->kind == ETCH_INPUT && etch_has_dim(graph->tensors.at[i], dim))
            return true;
    return false;
}

const char *exec_check_requirements(const etch_placed *placed)
{
    const etch_dim *unmet = NULL;
    bool of_input = false;
    for (uint32_t i = 0; i < placed->requirements.count; i++) {
        const etch_requirement *need = &placed->requirements.at[i];
        if (exec_integer(need->size) % exec_integer(need->divisor) == 0)
            continue;
        unmet = need->dim;
        of_input = of_input || is_of_input(placed, unmet);
    }
    bool even = weights_are_even(placed) && region_is_even(placed, placed->forward) &&
                region_is_even(placed, placed->backward) && has_whole_chunks(placed);
    if (even && unmet && !of_input)
        return etch_text(placed->arena, "%s is required to be divided, and no value needs it", unmet->name);
    return even || unmet ? NULL : "a value cannot be divided, and all requirements are met";
}

bool exec_requirements_hold(const etch_placed *placed)
{
    for (uint32_t i = 0; i < placed->requirements.count; i++) {
        const etch_requirement *need = &placed->requirements.at[i];
        if (exec_integer(need->size) % exec_integer(need->divisor))
            return false;
    }
    return true;
}
