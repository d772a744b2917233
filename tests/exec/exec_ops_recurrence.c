#include "exec_ops_recurrence.h"
#include "exec_ops_walk.h"

double exec_left_before(exec_call *call, const exec_walk *walk, const exec_array *state,
                        const etch_dim *special, uint32_t index)
{
    uint64_t element = 0;
    for (uint32_t d = 0; d < state->rank; d++) {
        const etch_dim *dim = state->dims[d];
        element += exec_mix(dim->id, dim == special ? index : exec_walk_index(walk, dim));
    }
    return 2 * exec_random(call->salt, element) - 1;
}

void exec_fill_left(exec_call *call, exec_array *state)
{
    exec_walk w = WALK(state);
    while (exec_walk_next(&w))
        state->at[w.at[0]] = exec_left_before(call, &w, state, NULL, 0);
}

static uint32_t length_of(exec_call *call, const exec_array *x)
{
    return exec_whole_dims(call, x, call->op->attrs.over.at, 1);
}

/* h = a h + b at one place of all elements: a multiply-add of each. */
static void go_on(exec_call *call, uint32_t t)
{
    const etch_dim *over = call->op->attrs.over.at[0];
    const exec_array *a = call->ins[0], *b = call->ins[1], *h = call->outs[0];
    exec_walk w = WALK(h);
    while (!call->env->failure && exec_walk_next(&w)) {
        if (exec_walk_index(&w, over) != t)
            continue;
        double before = 0;
        if (t > 0)
            before = exec_element(call, &w, h, over, t - 1);
        else if (call->op->out_count > 1)
            before = exec_element(call, &w, call->outs[1], NULL, 0);
        h->at[w.at[0]] = exec_element(call, &w, a, NULL, 0) * before + exec_element(call, &w, b, NULL, 0);
        call->flop += 2;
    }
}

void exec_run_recurrence(exec_call *call)
{
    const etch_dim *over = call->op->attrs.over.at[0];
    const uint32_t length = length_of(call, call->ins[1]);
    const bool serves = call->op->out_count > 1;
    if (!length_of(call, call->ins[0]) || !length)
        return;
    if (serves)
        exec_fill_left(call, call->outs[1]);
    for (uint32_t t = 0; t < length; t++)
        go_on(call, t);
    if (!serves || call->env->failure)
        return;
    exec_walk w = WALK(call->outs[1]);
    while (exec_walk_next(&w))
        call->outs[1]->at[w.at[0]] = exec_element(call, &w, call->outs[0], over, length - 1);
}

/* The cotangent of h[t] is that of the result and what the place behind hands back; a is given its product
 * with h[t-1]. Two multiply-adds of each element. */
static void go_back(exec_call *call, uint32_t t, uint32_t length)
{
    const etch_dim *over = call->op->attrs.over.at[0];
    const exec_array *d = call->ins[0], *a = call->ins[1], *h = call->ins[2];
    exec_array *of_a = call->outs[0], *of_b = call->outs[1];
    exec_walk w = WALK(d, of_a, of_b);
    while (!call->env->failure && exec_walk_next(&w)) {
        if (exec_walk_index(&w, over) != t)
            continue;
        double pulled = d->at[w.at[0]];
        if (t + 1 < length)
            pulled += exec_element(call, &w, a, over, t + 1) * exec_element(call, &w, of_b, over, t + 1);
        of_b->at[w.at[2]] = pulled;
        of_a->at[w.at[1]] += t > 0 ? pulled * exec_element(call, &w, h, over, t - 1) : 0;
        call->flop += 4;
    }
}

void exec_run_recurrence_bwd(exec_call *call)
{
    const uint32_t length = length_of(call, call->ins[0]);
    for (uint32_t t = length; t-- > 0;)
        go_back(call, t, length);
}
