/* The executor's tables and losses, and the rows of a test's own table (test_table.c). */
#include "exec_ops_walk.h"

#include <math.h>

static uint32_t index_at(const exec_call *call, const exec_array *ids, size_t at, const etch_dim *dim)
{
    return (uint32_t)ids->at[at] % exec_size(call->env, dim);
}

/* Rows that a rank does not hold are zero: another rank has them. */
static void run_gather(exec_call *call)
{
    const exec_array *table = call->ins[0], *ids = call->ins[1];
    const etch_dim *over = call->op->attrs.over.at[0];
    if (!exec_agree(call, table, call->outs[0]))
        return;
    exec_walk w = WALK(call->outs[0], ids);
    while (exec_walk_next(&w)) {
        const double *row = exec_walk_lookup(&w, table, over, index_at(call, ids, w.at[1], over));
        call->outs[0]->at[w.at[0]] = row ? *row : 0;
    }
}

static void run_scatter(exec_call *call)
{
    const exec_array *d = call->ins[0], *ids = call->ins[1];
    const etch_dim *over = call->op->attrs.over.at[0];
    if (!exec_agree(call, d, call->outs[0]))
        return;
    exec_walk w = WALK(d, ids);
    while (exec_walk_next(&w)) {
        double *row = exec_walk_lookup(&w, call->outs[0], over, index_at(call, ids, w.at[1], over));
        if (row)
            *row += d->at[w.at[0]];
    }
}

/* Tokens of a step over the whole job: what the loss is the mean of. */
static double tokens_of(const exec_array *labels)
{
    double count = 1;
    for (uint32_t i = 0; i < labels->rank; i++)
        count *= exec_integer(labels->dims[i]->size);
    return count;
}

static void run_cross_entropy(exec_call *call)
{
    const exec_array *z = call->ins[0], *labels = call->ins[1];
    const etch_dim *over = call->op->attrs.over.at[0];
    if (!exec_whole_dims(call, z, call->op->attrs.over.at, call->op->attrs.over.count))
        return;
    exec_array *log_sum = call->outs[1];
    exec_log_sums(call, z, log_sum);
    exec_walk w = WALK(log_sum, labels);
    while (exec_walk_next(&w)) {
        double target = exec_element(call, &w, z, over, index_at(call, labels, w.at[1], over));
        call->outs[0]->at[0] += (log_sum->at[w.at[0]] - target) / tokens_of(labels);
    }
}

static void run_token_nll(exec_call *call)
{
    const exec_array *z = call->ins[0], *labels = call->ins[1];
    const etch_dim *over = call->op->attrs.over.at[0];
    if (!exec_whole_dims(call, z, call->op->attrs.over.at, call->op->attrs.over.count))
        return;
    exec_log_sums(call, z, call->outs[1]);
    exec_walk w = WALK(call->outs[0], call->outs[1], labels);
    while (exec_walk_next(&w))
        call->outs[0]->at[w.at[0]] = call->outs[1]->at[w.at[1]] -
                                     exec_element(call, &w, z, over, index_at(call, labels, w.at[2], over));
}

static void run_token_nll_dx(exec_call *call)
{
    const exec_array *d = call->ins[0], *z = call->ins[1], *labels = call->ins[2], *log_sum = call->ins[3];
    const etch_dim *over = call->op->attrs.over.at[0];
    exec_walk w = WALK(call->outs[0], z, labels, log_sum, d);
    while (exec_walk_next(&w)) {
        double p = exp(z->at[w.at[1]] - log_sum->at[w.at[3]]);
        bool target = exec_walk_index(&w, over) == index_at(call, labels, w.at[2], over);
        call->outs[0]->at[w.at[0]] = d->at[w.at[4]] * (p - target);
    }
}

static void run_cross_entropy_dx(exec_call *call)
{
    const exec_array *d = call->ins[0], *z = call->ins[1], *labels = call->ins[2], *log_sum = call->ins[3];
    const etch_dim *over = call->op->attrs.over.at[0];
    exec_walk w = WALK(call->outs[0], z, labels, log_sum);
    while (exec_walk_next(&w)) {
        double p = exp(z->at[w.at[1]] - log_sum->at[w.at[3]]);
        bool target = exec_walk_index(&w, over) == index_at(call, labels, w.at[2], over);
        call->outs[0]->at[w.at[0]] = d->at[0] * (p - target) / tokens_of(labels);
    }
}

/* x / (1 + |x|) */
static void run_bend(exec_call *call)
{
    exec_walk w = WALK(call->outs[0], call->ins[0]);
    while (exec_walk_next(&w))
        call->outs[0]->at[w.at[0]] = call->ins[0]->at[w.at[1]] / (1 + fabs(call->ins[0]->at[w.at[1]]));
}

static void run_bend_dx(exec_call *call)
{
    exec_walk w = WALK(call->outs[0], call->ins[0], call->ins[1]);
    while (exec_walk_next(&w)) {
        double bound = 1 + fabs(call->ins[1]->at[w.at[2]]);
        call->outs[0]->at[w.at[0]] = call->ins[0]->at[w.at[1]] / (bound * bound);
    }
}

/* Weighted squares x x w, summed over `over` into the second result. */
static bool energies(exec_call *call, const exec_array *x, const exec_array *weight, exec_array *rows)
{
    if (!exec_whole_dims(call, x, call->op->attrs.over.at, call->op->attrs.over.count))
        return false;
    exec_walk w = WALK(x, weight, rows);
    while (exec_walk_next(&w))
        rows->at[w.at[2]] += x->at[w.at[0]] * x->at[w.at[0]] * weight->at[w.at[1]];
    return true;
}

/* x times the energy of its row. */
static void run_excite(exec_call *call)
{
    const exec_array *x = call->ins[0];
    if (!energies(call, x, call->ins[1], call->outs[1]))
        return;
    exec_walk w = WALK(call->outs[0], x, call->outs[1]);
    while (exec_walk_next(&w))
        call->outs[0]->at[w.at[0]] = x->at[w.at[1]] * call->outs[1]->at[w.at[2]];
}

/* y = x e, e = sum w x x: dx = d e + 2 w x s, dw = s x x summed, s = sum d x. */
static void run_excite_bwd(exec_call *call)
{
    const exec_array *d = call->ins[0], *x = call->ins[1], *weight = call->ins[2], *energy = call->ins[3];
    exec_array *slope = exec_array_like(call->arena, energy);
    exec_walk s = WALK(d, x, slope);
    while (exec_walk_next(&s))
        slope->at[s.at[2]] += d->at[s.at[0]] * x->at[s.at[1]];
    exec_walk own = WALK(call->outs[0], d, energy);
    while (exec_walk_next(&own))
        call->outs[0]->at[own.at[0]] = d->at[own.at[1]] * energy->at[own.at[2]];
    exec_walk w = WALK(call->outs[0], call->outs[1], x, weight, slope);
    while (exec_walk_next(&w)) {
        double value = x->at[w.at[2]], rise = slope->at[w.at[4]];
        call->outs[0]->at[w.at[0]] += 2 * weight->at[w.at[3]] * value * rise;
        call->outs[1]->at[w.at[1]] += rise * value * value;
    }
}

enum { OPERAND = EXEC_OPERAND };

const exec_rule exec_table_rules[] = {
    {"gather", run_gather, 0, 0},
    {"scatter", run_scatter, OPERAND + 1, 0},
    {"cross_entropy", run_cross_entropy, OPERAND + 5, 0},
    {"token_nll", run_token_nll, OPERAND + 5, 0},
    {"token_nll_dx", run_token_nll_dx, 4, 0},
    {"cross_entropy_dx", run_cross_entropy_dx, 4, 0},
    {"bend", run_bend, 3, 0},
    {"bend_dx", run_bend_dx, 4, 0},
    {"excite", run_excite, 4, 0},
    {"excite_bwd", run_excite_bwd, OPERAND + 9, 0},
    {NULL, NULL, 0, 0},
};
