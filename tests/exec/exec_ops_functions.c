/* Functions of elements, reductions to the largest, losses of elements. */
#include "exec_ops.h"
#include "exec_ops_walk.h"

#include <math.h>
#include <string.h>

static bool agree(exec_call *call, const exec_array *a, const exec_array *b)
{
    if (exec_arrays_agree(a, b))
        return true;
    exec_fail(call->env, "%s: %s meets %s", etch_row_name(call->op->row), exec_array_text(call->arena, a),
              exec_array_text(call->arena, b));
    return false;
}

/* A walk over all operands, and then `outs` of the results. */
static exec_walk walk(exec_call *call, uint32_t outs)
{
    const exec_array *all[EXEC_WALK_ARRAYS];
    uint32_t count = 0;
    for (uint32_t i = 0; i < call->op->in_count; i++)
        all[count++] = call->ins[i];
    for (uint32_t i = 0; i < outs; i++)
        all[count++] = call->outs[i];
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t k = 0; k < i; k++)
            if (!agree(call, all[i], all[k]))
                return (exec_walk){.ended = true};
    return exec_walk_over(count, all);
}

static double number(const exec_call *call, double usual)
{
    const etch_expr said = call->op->attrs.number;
    return said ? exec_real(call->env->training->graph->sym, said) : usual;
}

void exec_log_sums(exec_call *call, const exec_array *x, exec_array *rows)
{
    exec_array *largest = exec_array_like(call->arena, rows);
    for (size_t i = 0; i < largest->size; i++)
        largest->at[i] = -INFINITY;
    exec_walk m = WALK(x, largest);
    while (exec_walk_next(&m))
        largest->at[m.at[1]] = fmax(largest->at[m.at[1]], x->at[m.at[0]]);
    exec_walk s = WALK(x, largest, rows);
    while (exec_walk_next(&s))
        rows->at[s.at[2]] += x->at[s.at[0]] == -INFINITY ? 0 : exp(x->at[s.at[0]] - largest->at[s.at[1]]);
    for (size_t i = 0; i < rows->size; i++)
        rows->at[i] = largest->at[i] == -INFINITY ? -INFINITY : log(rows->at[i]) + largest->at[i];
}

/* ---- functions of one element -------------------------------------------------------------------------- */

static double value_of(const char *name, double x, double c)
{
    if (strcmp(name, "log") == 0)
        return log(x);
    if (strcmp(name, "sqrt") == 0)
        return sqrt(x);
    if (strcmp(name, "rsqrt") == 0)
        return 1 / sqrt(x);
    if (strcmp(name, "square") == 0)
        return x * x;
    if (strcmp(name, "abs") == 0)
        return fabs(x);
    if (strcmp(name, "reciprocal") == 0)
        return 1 / x;
    return c * tanh(x / c); /* softcap */
}

bool exec_reads_result(const exec_call *call)
{
    const etch_tensor *read = call->op->ins[1], *made = call->op->forward->outs[0];
    if (read->producer && read->producer->phase == ETCH_BACKWARD)
        return false; /* a cotangent */
    for (; read; read = read->of)
        if (read == made)
            return true;
    return false;
}

/* From y, the result. */
static double slope_at(const char *name, double y, double c)
{
    if (strcmp(name, "sqrt_dx") == 0)
        return 1 / (2 * y);
    if (strcmp(name, "rsqrt_dx") == 0)
        return -y * y * y / 2;
    if (strcmp(name, "reciprocal_dx") == 0)
        return -y * y;
    if (strcmp(name, "softcap_dx") == 0)
        return 1 - y / c * (y / c);
    return NAN; /* does not follow */
}

static double slope_of(const char *name, double x, double c)
{
    if (strcmp(name, "log_dx") == 0)
        return 1 / x;
    if (strcmp(name, "sqrt_dx") == 0)
        return 1 / (2 * sqrt(x));
    if (strcmp(name, "rsqrt_dx") == 0)
        return -1 / (2 * x * sqrt(x));
    if (strcmp(name, "square_dx") == 0)
        return 2 * x;
    if (strcmp(name, "abs_dx") == 0)
        return x > 0 ? 1 : -1;
    if (strcmp(name, "reciprocal_dx") == 0)
        return -1 / (x * x);
    return 1 - tanh(x / c) * tanh(x / c); /* softcap_dx */
}

static void run_function(exec_call *call)
{
    exec_walk w = walk(call, 1);
    while (exec_walk_next(&w))
        call->outs[0]->at[w.at[1]] =
            value_of(etch_row_name(call->op->row), call->ins[0]->at[w.at[0]], number(call, 0));
}

static void run_slope(exec_call *call)
{
    exec_walk w = walk(call, 1);
    double (*slope)(const char *, double, double) = exec_reads_result(call) ? slope_at : slope_of;
    while (exec_walk_next(&w))
        call->outs[0]->at[w.at[2]] =
            call->ins[0]->at[w.at[0]] *
            slope(etch_row_name(call->op->row), call->ins[1]->at[w.at[1]], number(call, 0));
}

/* ---- the largest of a row ------------------------------------------------------------------------------ */

static void run_max(exec_call *call)
{
    const exec_array *x = call->ins[0], *y = call->outs[0];
    if (!agree(call, x, y))
        return;
    for (size_t i = 0; i < y->size; i++)
        y->at[i] = -INFINITY;
    exec_walk w = exec_walk_over(2, (const exec_array *[]){x, y});
    while (exec_walk_next(&w))
        y->at[w.at[1]] = fmax(y->at[w.at[1]], x->at[w.at[0]]);
}

/* Equal but for what rounding does, which is not the same on all meshes. */
static bool is_largest(double x, double largest)
{
    return fabs(largest - x) <= 1e-12 + 1e-9 * fabs(largest);
}

static void run_max_ties(exec_call *call)
{
    exec_walk w = walk(call, 1);
    while (exec_walk_next(&w))
        call->outs[0]->at[w.at[2]] += is_largest(call->ins[0]->at[w.at[0]], call->ins[1]->at[w.at[1]]);
}

static void run_max_dx(exec_call *call)
{
    exec_walk w = walk(call, 1);
    while (exec_walk_next(&w))
        if (is_largest(call->ins[1]->at[w.at[1]], call->ins[2]->at[w.at[2]]))
            call->outs[0]->at[w.at[4]] = call->ins[0]->at[w.at[0]] / call->ins[3]->at[w.at[3]];
}

/* ---- losses of elements -------------------------------------------------------------------------------- */

static double elements_of(const exec_array *x)
{
    double count = 1;
    for (uint32_t i = 0; i < x->rank; i++)
        count *= exec_integer(x->dims[i]->size);
    return count;
}

/* log(1 + e^z), of large z as well. */
static double softened(double z)
{
    return fmax(z, 0) + log1p(exp(-fabs(z)));
}

static void run_bce(exec_call *call)
{
    exec_walk w = walk(call, 1);
    while (exec_walk_next(&w)) {
        double z = call->ins[0]->at[w.at[0]], label = call->ins[1]->at[w.at[1]];
        call->outs[0]->at[0] += (softened(z) - label * z) / elements_of(call->ins[0]);
    }
}

static void run_bce_bwd(exec_call *call)
{
    exec_walk w = walk(call, 2);
    while (exec_walk_next(&w)) {
        double z = call->ins[1]->at[w.at[1]], label = call->ins[2]->at[w.at[2]], p = 1 / (1 + exp(-z));
        double d = call->ins[0]->at[0] / elements_of(call->ins[1]);
        call->outs[0]->at[w.at[3]] += d * (p - label);
        call->outs[1]->at[w.at[4]] -= d * z;
        call->flop += 6;
    }
}

static void run_kl(exec_call *call)
{
    exec_walk w = walk(call, 1);
    while (exec_walk_next(&w)) {
        double difference = call->ins[1]->at[w.at[1]] - call->ins[0]->at[w.at[0]];
        call->outs[0]->at[w.at[2]] = exp(difference) - difference - 1;
    }
}

static void run_kl_bwd(exec_call *call)
{
    exec_walk w = walk(call, 2);
    while (exec_walk_next(&w)) {
        double slope = exp(call->ins[2]->at[w.at[2]] - call->ins[1]->at[w.at[1]]) - 1;
        call->outs[0]->at[w.at[3]] -= call->ins[0]->at[w.at[0]] * slope;
        call->outs[1]->at[w.at[4]] += call->ins[0]->at[w.at[0]] * slope;
    }
}

static double clip(double r, double range)
{
    return fmin(fmax(r, 1 - range), 1 + range);
}

static void run_clipped(exec_call *call)
{
    exec_walk w = walk(call, 1);
    while (exec_walk_next(&w)) {
        double r = call->ins[0]->at[w.at[0]], a = call->ins[1]->at[w.at[1]];
        call->outs[0]->at[w.at[2]] = -fmin(r * a, clip(r, number(call, 0.2)) * a);
    }
}

static void run_clipped_bwd(exec_call *call)
{
    exec_walk w = walk(call, 2);
    while (exec_walk_next(&w)) {
        double d = call->ins[0]->at[w.at[0]], r = call->ins[1]->at[w.at[1]], a = call->ins[2]->at[w.at[2]];
        double held = clip(r, number(call, 0.2));
        bool free = r * a <= held * a;
        call->outs[0]->at[w.at[3]] -= free ? d * a : 0;
        call->outs[1]->at[w.at[4]] -= d * (free ? r : held);
    }
}

const exec_rule exec_function_rules[] = {
    {"log", run_function, 1, 0},
    {"sqrt", run_function, 1, 0},
    {"rsqrt", run_function, 2, 0},
    {"square", run_function, 1, 0},
    {"abs", run_function, 1, 0},
    {"reciprocal", run_function, 1, 0},
    {"softcap", run_function, 7, 0},
    {"log_dx", run_slope, 1, 0},
    {"sqrt_dx", run_slope, 3, 2},
    {"rsqrt_dx", run_slope, 4, 4},
    {"square_dx", run_slope, 2, 0},
    {"abs_dx", run_slope, 1, 0},
    {"reciprocal_dx", run_slope, 3, 3},
    {"softcap_dx", run_slope, 9, 4},
    {"max", run_max, EXEC_OPERAND + 1, 0},
    {"max_ties", run_max_ties, EXEC_OPERAND + 2, 0},
    {"max_dx", run_max_dx, 2, 0},
    {"bce", run_bce, EXEC_OPERAND + 7, 0},
    {"bce_bwd", run_bce_bwd, EXEC_COUNTED, 0},
    {"kl", run_kl, 4, 0},
    {"kl_bwd", run_kl_bwd, EXEC_OPERAND + 5, 0},
    {"clipped", run_clipped, 6, 0},
    {"clipped_bwd", run_clipped_bwd, EXEC_OPERAND + 8, 0},
    {NULL, NULL, 0, 0},
};
