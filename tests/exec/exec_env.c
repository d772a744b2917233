#include "exec_env.h"

#include <stdio.h>
#include <string.h>

/* ---- sequences ----------------------------------------------------------------------------------------- */

static uint32_t first_of(const exec_env *env, const etch_dim *dim)
{
    uint32_t first = dim->id;
    while (env->sequence[first] != first)
        first = env->sequence[first];
    return first;
}

/* The shorter one: a cache adds to a sequence what was there before. */
static void join(exec_env *env, const etch_dim *from, const etch_dim *to)
{
    const uint32_t a = first_of(env, from), b = first_of(env, to);
    if (env->size[b] < env->size[a])
        env->sequence[a] = b;
    else
        env->sequence[b] = a;
}

static uint32_t outermost_of(const exec_env *env, uint32_t dim)
{
    while (env->outermost[dim] != dim)
        dim = env->outermost[dim];
    return dim;
}

bool exec_are_outermost(const exec_env *env, const etch_dim *a, const etch_dim *b)
{
    return outermost_of(env, a->id) == outermost_of(env, b->id);
}

/* A dim that is merged with others, or made of one that is split, is another sequence: its places are
 * others, but the parts that it is cut into may be the same. */
static void join_renamed(exec_env *env, const etch_op *op)
{
    const char *name = etch_row_name(op->row);
    const etch_attrs *attrs = &op->attrs;
    const bool renames =
        strcmp(name, "rename") == 0 || strcmp(name, "cache") == 0 || strcmp(name, "append") == 0;
    for (uint32_t i = 0; renames && i < attrs->to.count; i++) {
        const bool last = i + 1 == attrs->to.count;
        if (attrs->from.at[i] && attrs->to.at[i])
            env->outermost[outermost_of(env, attrs->from.at[i]->id)] = outermost_of(env, attrs->to.at[i]->id);
        if (attrs->from.at[i] && attrs->to.at[i] && (last || (attrs->from.at[i + 1] && attrs->to.at[i + 1])))
            join(env, attrs->from.at[i], attrs->to.at[i]);
    }
}

static void find_sequences(exec_env *env, const etch_region *region)
{
    for (uint32_t i = 0; i < region->items.count; i++) {
        const etch_item *item = &region->items.at[i];
        if (item->op)
            join_renamed(env, item->op);
        for (uint32_t k = 0; item->loop && k < item->loop->bodies.count; k++)
            find_sequences(env, item->loop->bodies.at[k]);
    }
}

exec_env exec_env_new(etch_arena *arena, const etch_training *training)
{
    const etch_graph *graph = training->graph;
    exec_env env = {
        .arena = arena,
        .training = training,
        .now = ETCH_NEW_ARRAY(arena, graph->loop_count, uint32_t),
        .open = ETCH_NEW_ARRAY(arena, graph->loop_count, bool),
        .size = ETCH_NEW_ARRAY(arena, graph->dims.count, uint32_t),
        .padded = ETCH_NEW_ARRAY(arena, graph->dims.count, uint32_t),
        .sequence = ETCH_NEW_ARRAY(arena, graph->dims.count, uint32_t),
        .pairs = ETCH_NEW_ARRAY(arena, graph->dims.count, uint32_t),
        .micro = exec_integer(training->train.micro),
    };
    for (uint32_t i = 0; i < graph->dims.count; i++)
        env.size[i] = exec_integer(etch_training_size(training, graph->dims.at[i]));
    env.outermost = ETCH_NEW_ARRAY(arena, graph->dims.count, uint32_t);
    for (uint32_t i = 0; i < graph->dims.count; i++)
        env.sequence[i] = env.outermost[i] = i;
    find_sequences(&env, graph->forward);
    return env;
}

void exec_fail(exec_env *env, const char *format, ...)
{
    if (env->failure)
        return;
    char text[600];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    env->failure = etch_text(env->arena, "%s", text);
}

/* ---- sizes --------------------------------------------------------------------------------------------- */

uint32_t exec_integer(etch_expr constant)
{
    int64_t value = 0;
    EXEC_REQUIRE(etch_to_i64(constant, &value) && value >= 0 && value <= INT32_MAX);
    return (uint32_t)value;
}

double exec_real(etch_sym *sym, etch_expr constant)
{
    const int64_t unit = 1000000000;
    int64_t value = 0;
    EXEC_REQUIRE(etch_to_i64(etch_floor(sym, etch_mul(sym, constant, etch_int(sym, unit))), &value));
    return (double)value / (double)unit;
}

uint32_t exec_size(const exec_env *env, const etch_dim *dim)
{
    return env->size[dim->id];
}

void exec_lay_out(exec_env *env, const etch_dim *dim, uint32_t pairs, const uint32_t *padded)
{
    EXEC_REQUIRE(padded[dim->id] % (2 * pairs) == 0);
    const etch_graph *graph = env->training->graph;
    for (uint32_t i = 0; i < graph->dims.count; i++) {
        const etch_dim *like = graph->dims.at[i];
        const uint32_t first = first_of(env, like);
        const uint32_t size = padded[first == first_of(env, dim) ? dim->id : like->id];
        uint32_t fitting = pairs; /* fewer are halves, or thirds, of those, as where fewer ranks share it */
        while (fitting > 1 && (pairs % fitting || size % (2 * fitting)))
            fitting--;
        if (!exec_are_outermost(env, dim, like) || fitting == 1 || env->pairs[first] >= fitting)
            continue;
        env->pairs[first] = fitting;
        env->padded[first] = size;
    }
}

/* What lies in a slot of a sequence that is laid out. */
static uint32_t place_in(uint32_t slot, uint32_t pairs, uint32_t chunk)
{
    const uint32_t pair = slot / (2 * chunk), within = slot % (2 * chunk), late = 2 * pairs - 1 - pair;
    return within < chunk ? pair * chunk + within : late * chunk + within - chunk;
}

/* Padding lies behind the last place, which is in the middle of the slots. */
uint32_t exec_index_of_slot(const exec_env *env, const etch_dim *dim, uint32_t slot)
{
    const uint32_t first = first_of(env, dim), pairs = env->pairs[first], size = exec_size(env, dim);
    uint32_t index = 0;
    if (pairs == 0 || env->padded[first] == size)
        return slot < size ? slot : size;
    for (uint32_t i = 0; i < slot; i++)
        index += place_in(i, pairs, env->padded[first] / (2 * pairs)) < size;
    return index;
}

uint32_t exec_position(const exec_env *env, const etch_dim *dim, uint32_t index)
{
    const uint32_t first = first_of(env, dim), pairs = env->pairs[first], size = env->size[first];
    const uint32_t before = exec_size(env, dim) - size; /* in a cache: from earlier runs */
    if (pairs == 0 || index < before)
        return index;
    uint32_t slot = index - before;
    while (env->padded[first] > size && exec_index_of_slot(env, dim, slot + 1) <= index - before)
        slot++;
    return before + place_in(slot, pairs, env->padded[first] / (2 * pairs));
}

uint32_t exec_index(const exec_env *env, const etch_dim *dim, uint32_t position)
{
    const uint32_t first = first_of(env, dim), pairs = env->pairs[first], size = env->size[first];
    const uint32_t before = exec_size(env, dim) - size;
    if (pairs == 0 || position < before)
        return position;
    for (uint32_t index = before; env->padded[first] > size; index++)
        if (exec_position(env, dim, index) == position)
            return index;
    const uint32_t length = size / (2 * pairs), chunk = (position - before) / length;
    const uint32_t within = (position - before) % length, late = 2 * pairs - 1 - chunk;
    return before + (chunk < pairs ? 2 * chunk * length : (2 * late + 1) * length) + within;
}

exec_array *exec_whole(const exec_env *env, etch_arena *arena, const etch_tensor *tensor)
{
    exec_array *array = ETCH_NEW(arena, exec_array);
    for (uint32_t i = 0; i < tensor->rank; i++)
        exec_array_add_dim(array, tensor->dims[i], 0, exec_size(env, tensor->dims[i]));
    exec_array_fill(arena, array);
    return array;
}

/* ---- loops --------------------------------------------------------------------------------------------- */

const etch_loop *exec_outer(const etch_loop *loop)
{
    return loop->bodies.at[0]->parent->loop;
}

uint32_t exec_class(const etch_loop *loop, uint32_t iteration)
{
    const etch_pattern *pattern = loop->pattern;
    uint32_t class = pattern ? ETCH_NO_CLASS : 0;
    for (uint32_t i = 0; pattern && i < pattern->segments.count; i++) {
        const etch_segment *segment = &pattern->segments.at[i];
        if (iteration < exec_integer(segment->first) || iteration >= exec_integer(segment->end))
            continue;
        EXEC_REQUIRE(class == ETCH_NO_CLASS);
        class = segment->class_of[iteration % pattern->period];
    }
    EXEC_REQUIRE(class < loop->bodies.count);
    return class;
}

uint32_t exec_turn_class(const etch_loop *loop, uint32_t turn)
{
    return exec_class(loop, loop->forward ? exec_integer(loop->count) - 1 - turn : turn);
}

void exec_iterate(exec_env *env, const etch_loop *loop, uint32_t iteration)
{
    env->now[loop->id] = iteration;
    env->open[loop->id] = true;
    const etch_loop *again = loop->repeats;
    if (again)
        exec_iterate(env, again, iteration);
    if (loop->forward)
        exec_iterate(env, loop->forward, exec_integer(loop->count) - 1 - iteration);
}

void exec_iterated(exec_env *env, const etch_loop *loop)
{
    env->open[loop->id] = false;
    const etch_loop *again = loop->repeats;
    if (again)
        exec_iterated(env, again);
    if (loop->forward)
        exec_iterated(env, loop->forward);
}

bool exec_is_open(const exec_env *env, const etch_loop *home)
{
    for (const etch_loop *loop = home; loop; loop = exec_outer(loop))
        if (!env->open[loop->id])
            return false;
    return true;
}

uint32_t exec_instances(const etch_loop *home)
{
    uint32_t count = 1;
    for (const etch_loop *loop = home; loop; loop = exec_outer(loop))
        count *= exec_integer(loop->count);
    return count;
}

bool exec_has_instance(const etch_region *region, uint32_t instance)
{
    for (; region->loop; region = region->parent) {
        const uint32_t count = exec_integer(region->loop->count);
        if (exec_class(region->loop, instance % count) != region->index)
            return false;
        instance /= count;
    }
    return true;
}

uint32_t exec_instance(const exec_env *env, const etch_loop *home)
{
    uint32_t index = 0, weight = 1;
    for (const etch_loop *loop = home; loop; loop = exec_outer(loop)) {
        index += weight * env->now[loop->id];
        weight *= exec_integer(loop->count);
    }
    return index;
}

exec_store exec_store_new(etch_arena *arena, uint32_t count)
{
    return (exec_store){.arena = arena, .count = count, .at = ETCH_NEW_ARRAY(arena, count, exec_array **)};
}

exec_array **exec_slot(const exec_env *env, exec_store *store, uint32_t id, const etch_loop *home)
{
    EXEC_REQUIRE(id < store->count);
    if (!store->at[id])
        store->at[id] = ETCH_NEW_ARRAY(store->arena, exec_instances(home), exec_array *);
    return &store->at[id][exec_instance(env, home)];
}

/* ---- numbers ------------------------------------------------------------------------------------------- */

uint64_t exec_mix(uint64_t a, uint64_t b)
{
    uint64_t x = a * 0x9e3779b97f4a7c15u + b + 0x632be59bd9b4e019u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

double exec_random(uint64_t a, uint64_t b)
{
    return (double)(exec_mix(a, b) >> 11) / (double)((uint64_t)1 << 53);
}
