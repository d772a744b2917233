#include "exec_run.h"

#include "exec_made.h"
#include "exec_summed.h"

#include "graph/ir/row.h"

#include <math.h>
#include <string.h>

/* ---- data ---------------------------------------------------------------------------------------------- */

static bool is_integer(const etch_tensor *tensor)
{
    return tensor->dtype == ETCH_I64 || tensor->dtype == ETCH_I32 || tensor->dtype == ETCH_I8;
}

static exec_array *drawn(etch_arena *arena, const etch_tensor *tensor, uint64_t key)
{
    exec_array *array = ETCH_NEW(arena, exec_array);
    for (uint32_t i = 0; i < tensor->rank; i++)
        exec_array_add_dim(array, tensor->dims[i], 0, exec_integer(tensor->dims[i]->size));
    exec_array_fill(arena, array);
    for (size_t i = 0; i < array->size; i++) {
        double x = exec_random(key, i);
        array->at[i] = is_integer(tensor) ? (double)(int)(x * 1000) : 2 * x - 1;
    }
    return array;
}

exec_data *exec_data_new(etch_arena *arena, const etch_training *training, uint64_t seed)
{
    const etch_graph *graph = training->graph;
    exec_data *data = ETCH_NEW(arena, exec_data);
    data->env = exec_env_new(arena, training);
    data->tensors = exec_store_new(arena, graph->tensors.count);
    for (uint32_t id = 0; id < graph->tensors.count; id++) {
        const etch_tensor *tensor = graph->tensors.at[id];
        if (tensor->kind != ETCH_WEIGHT && tensor->kind != ETCH_INPUT)
            continue;
        uint32_t instances = exec_instances(tensor->region->loop);
        exec_slot(&data->env, &data->tensors, id, tensor->region->loop);
        for (uint32_t k = 0; k < instances; k++)
            data->tensors.at[id][k] = drawn(arena, tensor, exec_mix(exec_mix(seed, id), k));
    }
    return data;
}

void exec_data_stop(exec_data *data)
{
    data->stopped = ETCH_NEW_ARRAY(data->env.arena, data->env.micro, exec_store);
    for (uint32_t m = 0; m < data->env.micro; m++)
        data->stopped[m] = exec_store_new(data->env.arena, data->tensors.count);
}

/* ---- values -------------------------------------------------------------------------------------------- */

/* The part of an input that a microbatch sees. */
static exec_array *part_of_input(exec_run *run, const etch_tensor *tensor)
{
    const exec_array *all = *exec_slot(&run->env, &run->data->tensors, tensor->id, tensor->region->loop);
    const etch_dim *batch = run->env.training->train.batch;
    exec_array *part = exec_whole(&run->env, run->values.arena, tensor);
    exec_walk w = exec_walk_over(1, (const exec_array *[]){part});
    while (exec_walk_next(&w)) {
        uint32_t index =
            batch ? exec_walk_index(&w, batch) + run->env.microbatch * exec_size(&run->env, batch) : 0;
        part->at[w.at[0]] = *exec_walk_lookup(&w, all, batch, index);
    }
    return part;
}

/* What the model says: a number, or indices along its dim. */
static void fill_constant(exec_run *run, const etch_tensor *tensor, exec_array *array)
{
    const etch_expr number = tensor->constant->number;
    const double each = number ? exec_real(run->env.training->graph->sym, number) : 0;
    exec_walk w = exec_walk_over(1, (const exec_array *[]){array});
    while (exec_walk_next(&w))
        array->at[w.at[0]] = number ? each : exec_walk_index(&w, tensor->dims[0]);
}

/* The seed of the backward pass is one; other constants of it are zeros. */
static exec_array *constant(exec_run *run, const etch_tensor *tensor)
{
    exec_array *array = exec_whole(&run->env, run->values.arena, tensor);
    if (tensor->constant)
        fill_constant(run, tensor, array);
    else if (!tensor->of)
        array->at[0] = 1;
    return array;
}

const exec_array *exec_run_value(exec_run *run, const exec_env *env, const etch_tensor *tensor)
{
    const etch_loop *home = tensor->region->loop;
    if (tensor->kind == ETCH_WEIGHT)
        return *exec_slot(env, &run->data->tensors, tensor->id, home);
    exec_array **slot = exec_slot(env, &run->values, tensor->id, home);
    if (!*slot && tensor->kind == ETCH_INPUT)
        *slot = part_of_input(run, tensor);
    if (!*slot && tensor->kind == ETCH_CONSTANT)
        *slot = constant(run, tensor);
    return *slot;
}

static exec_array *value(exec_run *run, const etch_tensor *tensor)
{
    const exec_array *array = exec_run_value(run, &run->env, tensor);
    if (!array || !exec_is_open(&run->env, tensor->region->loop))
        exec_fail(&run->env, "%s is read before it is made", tensor->name);
    return (exec_array *)(uintptr_t)array;
}

static void set_value(exec_run *run, const etch_tensor *tensor, exec_array *array)
{
    *exec_slot(&run->env, &run->values, tensor->id, tensor->region->loop) = array;
}

exec_array *exec_run_gradient(exec_run *run, const exec_env *env, const etch_tensor *gradient)
{
    exec_array **slot = exec_slot(env, &run->gradients, gradient->id, gradient->region->loop);
    if (!*slot)
        *slot = exec_whole(env, run->gradients.arena, gradient);
    return *slot;
}

static void add_to_gradient(exec_run *run, const etch_tensor *gradient, const exec_array *part)
{
    exec_array *sum = exec_run_gradient(run, &run->env, gradient);
    exec_walk w = exec_walk_over(2, (const exec_array *[]){sum, part});
    sum->summed += fmax(part->summed, exec_array_largest(part));
    while (exec_walk_next(&w))
        sum->at[w.at[0]] += part->at[w.at[1]];
}

/* ---- ops ----------------------------------------------------------------------------------------------- */

bool exec_is_loss(const etch_tensor *tensor)
{
    for (uint32_t i = 0; i < tensor->tag_count; i++)
        if (strcmp(tensor->tags[i], "loss") == 0)
            return true;
    return false;
}

uint64_t exec_salt(const exec_env *env, const etch_op *op)
{
    const etch_op *first = op;
    while (first->forward)
        first = first->forward;
    return exec_mix(first->id, exec_instance(env, first->outs[0]->region->loop));
}

static etch_expr size_in_graph(const void *data, const etch_dim *dim)
{
    return etch_training_size(data, dim);
}

static void check_flop(exec_run *run, const exec_call *call)
{
    const etch_training *training = run->env.training;
    int64_t said = exec_integer(etch_op_flop(training->graph->sym, call->op, size_in_graph, training));
    if (!exec_flop_agrees(call, call->flop, said))
        exec_fail(&run->env, "%s of %s takes %lld FLOP, the table says %lld", etch_row_name(call->op->row),
                  call->op->outs[0]->name, (long long)call->flop, (long long)said);
}

/* ---- what backward reads of forward -------------------------------------------------------------------- */

static exec_array *memory_of(exec_array *array)
{
    while (array->memory)
        array = array->memory;
    return array;
}

/* A view reads nothing; what reads the view does. */
static void track(exec_run *run, const exec_call *call)
{
    const etch_op *op = call->op;
    if (op->row->role == ETCH_ROLE_FREE) {
        for (uint32_t i = 0; i < op->out_count; i++)
            call->outs[i]->memory = (exec_array *)(uintptr_t)call->ins[0];
        return;
    }
    for (uint32_t i = 0; i < op->out_count && op->phase == ETCH_FORWARD; i++)
        call->outs[i]->made_as = op->outs[i];
    for (uint32_t i = 0; i < op->in_count && op->phase != ETCH_FORWARD; i++) {
        exec_array *array = memory_of((exec_array *)(uintptr_t)call->ins[i]);
        if (!array->made_as || array->kept_for)
            continue;
        array->kept_for = op;
        run->kept += array->size * etch_dtype_bytes(array->made_as->dtype);
        run->kept_values++;
    }
}

static void stop_gradient(exec_run *run, const etch_op *op, exec_array *made)
{
    if (!run->data->stopped || strcmp(etch_row_name(op->row), "stop_gradient") != 0)
        return;
    exec_store *store = &run->data->stopped[run->env.microbatch];
    exec_array **slot = exec_slot(&run->env, store, op->outs[0]->id, op->outs[0]->region->loop);
    if (!*slot) {
        *slot = exec_array_like(store->arena, made);
        memcpy((*slot)->at, made->at, made->size * sizeof *made->at);
    }
    memcpy(made->at, (*slot)->at, made->size * sizeof *made->at);
}

static void run_op(exec_run *run, const etch_op *op)
{
    exec_call call = {
        .env = &run->env, .arena = run->values.arena, .op = op, .salt = exec_salt(&run->env, op)};
    for (uint32_t i = 0; i < op->in_count; i++)
        call.ins[i] = value(run, op->ins[i]);
    for (uint32_t i = 0; i < op->out_count; i++)
        call.outs[i] = exec_whole(&run->env, run->values.arena, op->outs[i]);
    if (run->env.failure)
        return;
    exec_op(&call);
    exec_note_made(&call);
    exec_note_summed(&call);
    if (op->phase == ETCH_FORWARD)
        stop_gradient(run, op, call.outs[0]);
    if (run->flop_matters)
        check_flop(run, &call);
    track(run, &call);
    for (uint32_t i = 0; i < op->out_count; i++) {
        set_value(run, op->outs[i], call.outs[i]);
        if (op->outs[i]->adds_to)
            add_to_gradient(run, op->outs[i]->adds_to, call.outs[i]);
    }
    if (op->phase == ETCH_FORWARD && exec_is_loss(op->outs[0]))
        run->loss += call.outs[0]->at[0];
}

/* ---- regions ------------------------------------------------------------------------------------------- */

static void run_region(exec_run *run, const etch_region *region);

static void run_loop(exec_run *run, const etch_loop *loop)
{
    uint32_t count = etch_loop_carries(loop)->count;
    exec_array **handed = ETCH_NEW_ARRAY(run->values.arena, count, exec_array *);
    for (uint32_t i = 0; i < count; i++) {
        const etch_carry *carry = &etch_loop_carries(loop)->at[i];
        handed[i] =
            carry->init ? value(run, carry->init) : exec_whole(&run->env, run->values.arena, carry->in);
        if (!carry->init)
            handed[i]->made = exec_integer(loop->count) ? EXEC_OPEN : EXEC_NOTHING;
    }
    for (uint32_t turn = 0; turn < exec_integer(loop->count); turn++) {
        const etch_region *body = loop->bodies.at[exec_turn_class(loop, turn)];
        exec_iterate(&run->env, loop, turn);
        for (uint32_t i = 0; i < count; i++)
            set_value(run, body->carries.at[i].in, handed[i]);
        run_region(run, body);
        for (uint32_t i = 0; i < count; i++)
            handed[i] = value(run, body->carries.at[i].out);
        exec_iterated(&run->env, loop);
    }
    for (uint32_t i = 0; i < count; i++)
        set_value(run, etch_loop_carries(loop)->at[i].result, handed[i]);
}

static void run_region(exec_run *run, const etch_region *region)
{
    for (uint32_t i = 0; i < region->items.count && !run->env.failure; i++) {
        if (region->items.at[i].op)
            run_op(run, region->items.at[i].op);
        else
            run_loop(run, region->items.at[i].loop);
    }
}

exec_run *exec_run_new(etch_arena *arena, const etch_training *training, exec_data *data)
{
    exec_run *run = ETCH_NEW(arena, exec_run);
    *run = (exec_run){.env = exec_env_new(arena, training), .data = data};
    run->gradients = exec_store_new(arena, training->graph->tensors.count);
    return run;
}

void exec_run_forward(exec_run *run, uint32_t microbatch)
{
    if (run->values.arena)
        etch_arena_free(run->values.arena);
    run->values = exec_store_new(etch_arena_new(etch_arena_mem(run->env.arena)),
                                 run->env.training->graph->tensors.count);
    run->env.microbatch = microbatch;
    run->kept = run->kept_values = 0;
    run_region(run, run->env.training->graph->forward);
}

void exec_run_backward(exec_run *run)
{
    if (run->env.training->backward)
        run_region(run, run->env.training->backward);
}
