#include "exec_ops.h"
#include "exec_ops_parts.h"
#include "exec_ops_recurrence.h"
#include "exec_ops_route.h"
#include "exec_ops_scan.h"
#include "exec_ops_walk.h"
#include "exec_ops_window.h"

#include "graph/ir/row.h"

#include <math.h>
#include <string.h>

static void mismatch(exec_call *call, const exec_array *a, const exec_array *b)
{
    exec_fail(call->env, "%s: %s meets %s", etch_row_name(call->op->row), exec_array_text(call->arena, a),
              exec_array_text(call->arena, b));
}

bool exec_agree(exec_call *call, const exec_array *a, const exec_array *b)
{
    if (exec_arrays_agree(a, b))
        return true;
    mismatch(call, a, b);
    return false;
}

exec_walk exec_walk_call(exec_call *call, const exec_array *const *arrays, size_t count)
{
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t k = 0; k < i; k++)
            if (!exec_agree(call, arrays[i], arrays[k]))
                return (exec_walk){.ended = true};
    return exec_walk_over((uint32_t)count, arrays);
}

double exec_element(exec_call *call, const exec_walk *walk, const exec_array *array, const etch_dim *special,
                    uint32_t index)
{
    const double *found = exec_walk_lookup(walk, array, special, index);
    if (!found)
        exec_fail(call->env, "%s reads what is not there: only %s", etch_row_name(call->op->row),
                  exec_array_text(call->arena, array));
    return found ? *found : 0;
}

uint32_t exec_whole_dims(exec_call *call, const exec_array *array, etch_dim *const *dims, uint32_t count)
{
    uint32_t product = 1;
    for (uint32_t i = 0; i < count; i++) {
        int at = exec_array_find(array, dims[i]);
        if (at < 0 || array->count[at] != exec_size(call->env, dims[i])) {
            exec_fail(call->env, "%s needs all of %s and has %s", etch_row_name(call->op->row), dims[i]->name,
                      exec_array_text(call->arena, array));
            return 0;
        }
        product *= array->count[at];
    }
    return product;
}

static exec_array *rows_of(exec_call *call, const exec_array *x)
{
    const etch_attrs *attrs = &call->op->attrs;
    return exec_array_less(call->arena, x, attrs->over.at, attrs->over.count);
}

/* ---- products and sums --------------------------------------------------------------------------------- */

/* A mask that hides later keys, and those that are `window` or more before; no dims: nothing is hidden. */
typedef struct mask {
    const etch_dim *query, *key;
    uint32_t window; /* 0: none */
} mask;

static bool is_hidden(const exec_call *call, const exec_walk *w, mask hide)
{
    if (!hide.key)
        return false;
    /* The queries are the last of the sequence: keys before the first of them come out of a cache. */
    const uint32_t before = exec_size(call->env, hide.key) - exec_size(call->env, hide.query);
    const uint32_t key = exec_position(call->env, hide.key, exec_walk_index(w, hide.key));
    const uint32_t query = before + exec_position(call->env, hide.query, exec_walk_index(w, hide.query));
    return key > query || (hide.window && query - key >= hide.window);
}

/* y += sum of a*b over the dims that y lacks. Returns the number of combinations that are not hidden. */
static int64_t contract(exec_call *call, exec_array *y, const exec_array *a, const exec_array *b, mask hide)
{
    int64_t combinations = 0;
    exec_walk w = WALK(y, a, b);
    while (exec_walk_next(&w)) {
        if (is_hidden(call, &w, hide))
            continue;
        y->at[w.at[0]] += a->at[w.at[1]] * b->at[w.at[2]];
        combinations++;
    }
    return combinations;
}

static bool sums_a_dim(const exec_call *call)
{
    for (uint32_t k = 0; k < call->op->in_count; k++)
        for (uint32_t i = 0; i < call->ins[k]->rank; i++)
            if (exec_array_find(call->outs[0], call->ins[k]->dims[i]) < 0)
                return true;
    return false;
}

/* Multiplications alone when nothing is summed. */
static void run_einsum(exec_call *call)
{
    int64_t combinations = contract(call, call->outs[0], call->ins[0], call->ins[1], (mask){0});
    call->flop += combinations * (sums_a_dim(call) ? 2 : 1);
}

static void run_div(exec_call *call)
{
    exec_walk w = WALK(call->outs[0], call->ins[0], call->ins[1]);
    for (const int each = sums_a_dim(call) ? 2 : 1; exec_walk_next(&w); call->flop += each)
        call->outs[0]->at[w.at[0]] += call->ins[0]->at[w.at[1]] / call->ins[1]->at[w.at[2]];
}

/* The slope of a/b to b is -a/b^2, which is -y/b. */
static void run_div_db(exec_call *call)
{
    const bool from_result = exec_reads_result(call);
    call->flop =
        contract(call, call->outs[0], call->ins[0], call->ins[1], (mask){0}) * (sums_a_dim(call) ? 2 : 1);
    exec_walk w = WALK(call->outs[0], call->ins[2]);
    for (; exec_walk_next(&w); call->flop += from_result ? 2 : 3) {
        const double b = call->ins[2]->at[w.at[1]];
        call->outs[0]->at[w.at[0]] /= from_result ? -b : -b * b;
    }
}

static void run_add(exec_call *call)
{
    const bool is_pair = strcmp(etch_row_name(call->op->row), "sub") == 0;
    for (uint32_t i = 0; i < call->op->in_count; i++) {
        const bool taken = is_pair ? i == 1 : call->op->attrs.taken >> i & 1;
        exec_walk w = WALK(call->outs[0], call->ins[i]);
        for (; exec_walk_next(&w); call->flop += i > 0)
            call->outs[0]->at[w.at[0]] += (taken ? -1 : 1) * call->ins[i]->at[w.at[1]];
    }
}

/* Also a copy: then no dim is summed. */
static void run_sum(exec_call *call)
{
    const double sign = strcmp(etch_row_name(call->op->row), "negated_sum") == 0 ? -1 : 1;
    exec_walk w = WALK(call->outs[0], call->ins[0]);
    while (exec_walk_next(&w)) {
        call->outs[0]->at[w.at[0]] += sign * call->ins[0]->at[w.at[1]];
        call->flop++;
    }
}

static void run_broadcast(exec_call *call)
{
    exec_walk w = WALK(call->outs[0], call->ins[0]);
    while (exec_walk_next(&w))
        call->outs[0]->at[w.at[0]] = call->ins[0]->at[w.at[1]];
}

static void run_total(exec_call *call)
{
    for (uint32_t i = 0; i < call->op->in_count; i++) {
        if (!exec_arrays_alike(call->outs[0], call->ins[i]))
            mismatch(call, call->outs[0], call->ins[i]);
        exec_walk w = WALK(call->outs[0], call->ins[i]);
        while (exec_walk_next(&w)) {
            call->outs[0]->at[w.at[0]] += call->ins[i]->at[w.at[1]];
            call->flop += i > 0;
        }
    }
}

/* ---- views --------------------------------------------------------------------------------------------- */

/* The operand as the result calls its dims. */
static exec_array renamed(const exec_call *call, const exec_array *x)
{
    const etch_attrs *attrs = &call->op->attrs;
    exec_array seen = *x;
    for (uint32_t i = 0; i < seen.rank; i++)
        for (uint32_t m = 0; m < attrs->to.count; m++)
            if (x->dims[i] == attrs->from.at[m])
                seen.dims[i] = attrs->to.at[m];
    return seen;
}

/* What earlier runs have left depends on the place alone, and how long ago it was: a rolling cache has the
 * last of it. */
static double left_before(exec_call *call, const exec_walk *w)
{
    const exec_array *y = call->outs[0];
    uint64_t element = 0;
    for (uint32_t d = 0; d < y->rank; d++) {
        const etch_dim *dim = y->dims[d];
        const bool is_cache = dim == call->op->attrs.to.at[0];
        const uint32_t at = exec_walk_index(w, dim);
        element += exec_mix(is_cache ? 0 : dim->id, is_cache ? exec_size(call->env, dim) - at : at);
    }
    return 2 * exec_random(call->salt, element) - 1;
}

static void run_append(exec_call *call)
{
    const exec_array *x = call->ins[0];
    etch_dim *const *from = call->op->attrs.from.at, *const *to = call->op->attrs.to.at;
    if (!exec_whole_dims(call, x, from, 1) || !exec_whole_dims(call, call->outs[0], to, 1))
        return;
    const uint32_t past = exec_size(call->env, to[0]) - exec_size(call->env, from[0]);
    exec_walk w = WALK(call->outs[0]);
    while (exec_walk_next(&w)) {
        const uint32_t index = exec_walk_index(&w, to[0]);
        call->outs[0]->at[w.at[0]] =
            index < past ? left_before(call, &w) : exec_element(call, &w, x, from[0], index - past);
    }
}

static void run_slice(exec_call *call)
{
    const exec_array seen = renamed(call, call->ins[0]);
    if (!exec_agree(call, call->ins[0], call->outs[0]) ||
        !exec_whole_dims(call, call->ins[0], call->op->attrs.from.at, 1))
        return;
    exec_walk w = WALK(call->outs[0]);
    while (exec_walk_next(&w))
        call->outs[0]->at[w.at[0]] = exec_element(call, &w, &seen, NULL, 0);
}

static void run_slice_dx(exec_call *call)
{
    const exec_array seen = renamed(call, call->outs[0]);
    if (!exec_agree(call, call->ins[0], call->outs[0]) ||
        !exec_whole_dims(call, call->outs[0], call->op->attrs.from.at, 1))
        return;
    exec_walk w = WALK(call->ins[0]);
    while (exec_walk_next(&w)) {
        double *into = exec_walk_lookup(&w, &seen, NULL, 0);
        if (into)
            *into += call->ins[0]->at[w.at[0]];
        call->flop++;
    }
}

/* ---- one element at a time -------------------------------------------------------------------------- */

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

static double gelu_tanh(double x)
{
    return tanh(0.7978845608028654 * (x + 0.044715 * x * x * x));
}

static double gelu_dx(double x)
{
    double t = gelu_tanh(x), inner = 0.7978845608028654 * (1 + 3 * 0.044715 * x * x);
    return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * inner;
}

static double unary(const char *name, double x)
{
    if (strcmp(name, "relu") == 0)
        return x > 0 ? x : 0;
    if (strcmp(name, "sigmoid") == 0)
        return sigmoid(x);
    if (strcmp(name, "silu") == 0)
        return x * sigmoid(x);
    if (strcmp(name, "gelu") == 0)
        return 0.5 * x * (1 + gelu_tanh(x));
    if (strcmp(name, "tanh") == 0)
        return tanh(x);
    if (strcmp(name, "exp") == 0)
        return exp(x);
    return fmax(x, 0) + log1p(exp(-fabs(x))); /* softplus */
}

static double unary_dx(const char *name, double x)
{
    double s = sigmoid(x);
    if (strcmp(name, "relu_dx") == 0)
        return x > 0 ? 1 : 0;
    if (strcmp(name, "sigmoid_dx") == 0)
        return s * (1 - s);
    if (strcmp(name, "silu_dx") == 0)
        return s + x * s * (1 - s);
    if (strcmp(name, "gelu_dx") == 0)
        return gelu_dx(x);
    if (strcmp(name, "tanh_dx") == 0)
        return 1 - tanh(x) * tanh(x);
    if (strcmp(name, "exp_dx") == 0)
        return exp(x);
    return s; /* softplus_dx */
}

/* From y, the result. */
static double unary_dy(const char *name, double y)
{
    if (strcmp(name, "relu_dx") == 0)
        return y > 0 ? 1 : 0;
    if (strcmp(name, "sigmoid_dx") == 0)
        return y * (1 - y);
    if (strcmp(name, "tanh_dx") == 0)
        return 1 - y * y;
    if (strcmp(name, "exp_dx") == 0)
        return y;
    return NAN; /* does not follow */
}

static void run_unary(exec_call *call)
{
    exec_walk w = WALK(call->outs[0], call->ins[0]);
    while (exec_walk_next(&w))
        call->outs[0]->at[w.at[0]] = unary(etch_row_name(call->op->row), call->ins[0]->at[w.at[1]]);
}

static void run_unary_dx(exec_call *call)
{
    exec_walk w = WALK(call->outs[0], call->ins[0], call->ins[1]);
    double (*slope)(const char *, double) = exec_reads_result(call) ? unary_dy : unary_dx;
    while (exec_walk_next(&w))
        call->outs[0]->at[w.at[0]] =
            call->ins[0]->at[w.at[1]] * slope(etch_row_name(call->op->row), call->ins[1]->at[w.at[2]]);
}

static void run_scale(exec_call *call)
{
    const double number = exec_real(call->env->training->graph->sym, call->op->attrs.number);
    exec_walk w = WALK(call->outs[0], call->ins[0]);
    while (exec_walk_next(&w))
        call->outs[0]->at[w.at[0]] = number * call->ins[0]->at[w.at[1]];
}

static void run_shift(exec_call *call)
{
    const double number = exec_real(call->env->training->graph->sym, call->op->attrs.number);
    exec_walk w = WALK(call->outs[0], call->ins[0]);
    while (exec_walk_next(&w))
        call->outs[0]->at[w.at[0]] = number + call->ins[0]->at[w.at[1]];
}

/* Index of an element in the whole batch, whatever the microbatch. */
static uint32_t index_in_job(const exec_call *call, const exec_walk *walk, const etch_dim *dim)
{
    const exec_env *env = call->env;
    uint32_t index = exec_walk_index(walk, dim);
    return dim == env->training->train.batch ? index + env->microbatch * exec_size(env, dim) : index;
}

/* Rotates pairs of `over` by an angle that the other dims decide. */
static void run_rope(exec_call *call)
{
    const exec_array *x = call->ins[0];
    const etch_dim *over = call->op->attrs.over.at[0];
    const double turn = strcmp(etch_row_name(call->op->row), "rope_dx") == 0 ? -1 : 1;
    uint32_t width = exec_whole_dims(call, x, call->op->attrs.over.at, call->op->attrs.over.count);
    if (!width)
        return;
    exec_walk w = WALK(call->outs[0], x);
    while (exec_walk_next(&w)) {
        uint32_t i = exec_walk_index(&w, over), other = i ^ 1u;
        double position = 0;
        for (uint32_t d = 0; d < x->rank; d++)
            if (x->dims[d] != over)
                position += index_in_job(call, &w, x->dims[d]) * (1.0 + x->dims[d]->id % 5);
        double angle = turn * position / (1 + i / 2), here = x->at[w.at[1]];
        call->outs[0]->at[w.at[0]] =
            other >= width
                ? here
                : here * cos(angle) + (i % 2 ? 1 : -1) * sin(angle) * exec_element(call, &w, x, over, other);
    }
}

/* The mask depends on the op, the iteration and the element's place in the whole tensor, not on who asks. */
static void run_dropout(exec_call *call)
{
    const double rate = exec_real(call->env->training->graph->sym, call->op->attrs.number);
    const exec_array *x = call->ins[0];
    exec_walk w = WALK(call->outs[0], x, call->outs[1]);
    while (exec_walk_next(&w)) {
        uint64_t element = 0;
        for (uint32_t d = 0; d < x->rank; d++)
            element += exec_mix(x->dims[d]->id, index_in_job(call, &w, x->dims[d]));
        double kept = exec_random(call->salt, element) < rate ? 0 : 1;
        call->outs[0]->at[w.at[0]] = kept * x->at[w.at[1]] / (1 - rate);
        call->outs[1]->at[w.at[2]] = kept;
    }
}

static void run_dropout_dx(exec_call *call)
{
    const double rate = exec_real(call->env->training->graph->sym, call->op->attrs.number);
    exec_walk w = WALK(call->outs[0], call->ins[0], call->ins[1]);
    while (exec_walk_next(&w))
        call->outs[0]->at[w.at[0]] = call->ins[0]->at[w.at[1]] * call->ins[1]->at[w.at[2]] / (1 - rate);
}

/* ---- normalisation ---------------------------------------------------------------------------------- */

static bool is_centred(const exec_call *call)
{
    return strncmp(etch_row_name(call->op->row), "rms", 3) != 0;
}

/* (x - mean) / deviation, or x / root mean square; `scale` gets one over the divisor of each row. */
static exec_array *normalised(exec_call *call, const exec_array *x, exec_array *scale)
{
    const double n = exec_whole_dims(call, x, call->op->attrs.over.at, call->op->attrs.over.count);
    exec_array *mean = rows_of(call, x), *result = exec_array_like(call->arena, x);
    if (is_centred(call)) {
        exec_walk w = WALK(x, mean);
        while (exec_walk_next(&w))
            mean->at[w.at[1]] += x->at[w.at[0]] / n;
    }
    exec_walk s = WALK(x, mean, scale);
    while (exec_walk_next(&s)) {
        double centred = x->at[s.at[0]] - mean->at[s.at[1]];
        scale->at[s.at[2]] += centred * centred / n;
    }
    for (size_t i = 0; i < scale->size; i++)
        scale->at[i] = 1 / sqrt(scale->at[i] + 1e-5);
    exec_walk r = WALK(x, mean, scale, result);
    while (exec_walk_next(&r))
        result->at[r.at[3]] = (x->at[r.at[0]] - mean->at[r.at[1]]) * scale->at[r.at[2]];
    return result;
}

static void run_norm(exec_call *call)
{
    exec_array *y = call->outs[0];
    const exec_array *x = call->ins[0], *bare = normalised(call, x, rows_of(call, x));
    exec_walk w = WALK(y, bare);
    while (exec_walk_next(&w)) {
        double gain = call->op->in_count > 1 ? exec_element(call, &w, call->ins[1], NULL, 0) : 1;
        double bias = call->op->in_count > 2 ? exec_element(call, &w, call->ins[2], NULL, 0) : 0;
        y->at[w.at[0]] = bare->at[w.at[1]] * gain + bias;
    }
}

static void run_norm_bwd(exec_call *call)
{
    const exec_array *d = call->ins[0], *x = call->ins[1],
                     *gain = call->op->in_count > 2 ? call->ins[2] : NULL;
    exec_array *scale = rows_of(call, x), *along = rows_of(call, x), *mean = rows_of(call, x);
    const double n = exec_whole_dims(call, x, call->op->attrs.over.at, call->op->attrs.over.count);
    const exec_array *bare = normalised(call, x, scale);
    exec_array *pulled = exec_array_like(call->arena, x); /* cotangent of the bare norm */
    exec_walk w = WALK(d, bare, pulled, along, mean);
    while (exec_walk_next(&w)) {
        double g = gain ? exec_element(call, &w, gain, NULL, 0) : 1;
        pulled->at[w.at[2]] = d->at[w.at[0]] * g;
        along->at[w.at[3]] += d->at[w.at[0]] * g * bare->at[w.at[1]] / n;
        mean->at[w.at[4]] += is_centred(call) ? d->at[w.at[0]] * g / n : 0;
    }
    exec_walk r = WALK(call->outs[0], pulled, bare, scale, along, mean);
    while (exec_walk_next(&r))
        call->outs[0]->at[r.at[0]] = scale->at[r.at[3]] * (pulled->at[r.at[1]] - mean->at[r.at[5]] -
                                                           bare->at[r.at[2]] * along->at[r.at[4]]);
    for (uint32_t i = 1; i < call->op->out_count; i++) { /* gain, bias */
        exec_walk g = WALK(d, bare, call->outs[i]);
        while (exec_walk_next(&g))
            call->outs[i]->at[g.at[2]] += d->at[g.at[0]] * (i == 1 ? bare->at[g.at[1]] : 1);
    }
}

static mask causal_mask(const exec_call *call);

static void run_softmax(exec_call *call)
{
    const mask hide = causal_mask(call);
    exec_array *x = exec_array_like(call->arena, call->ins[0]);
    if (!exec_whole_dims(call, x, call->op->attrs.over.at, call->op->attrs.over.count))
        return;
    exec_walk m = WALK(x, call->ins[0]);
    while (exec_walk_next(&m))
        x->at[m.at[0]] = is_hidden(call, &m, hide) ? -INFINITY : call->ins[0]->at[m.at[1]];
    exec_array *rows = rows_of(call, x);
    exec_log_sums(call, x, rows);
    exec_walk w = WALK(call->outs[0], x, rows);
    while (exec_walk_next(&w))
        call->outs[0]->at[w.at[0]] = exp(x->at[w.at[1]] - rows->at[w.at[2]]);
}

static void run_softmax_dx(exec_call *call)
{
    const exec_array *d = call->ins[0], *p = call->ins[1];
    if (!exec_whole_dims(call, p, call->op->attrs.over.at, call->op->attrs.over.count))
        return;
    exec_array *rows = rows_of(call, p);
    exec_walk s = WALK(d, p, rows);
    while (exec_walk_next(&s))
        rows->at[s.at[2]] += d->at[s.at[0]] * p->at[s.at[1]];
    exec_walk w = WALK(call->outs[0], d, p, rows);
    while (exec_walk_next(&w))
        call->outs[0]->at[w.at[0]] = p->at[w.at[2]] * (d->at[w.at[1]] - rows->at[w.at[3]]);
}

/* ---- attention -------------------------------------------------------------------------------------- */

/* The keys' dim is another name of a dim of the queries, or of the scores; where no renaming tells, it is the
 * only one of the queries that the keys lack. */
const etch_dim *exec_causal_query(const etch_op *op)
{
    const bool back = strcmp(etch_row_name(op->row), "sdpa_bwd") == 0;
    const bool scores = strcmp(etch_row_name(op->row), "softmax") == 0;
    const etch_tensor *q = op->ins[back ? 1 : 0], *k = scores ? NULL : op->ins[back ? 2 : 1];
    const etch_dim *key = op->attrs.causal ? op->attrs.over.at[0] : NULL, *query = NULL;
    for (uint32_t i = 0; key && i < q->rank; i++) {
        if (k && etch_has_dim(k, q->dims[i]))
            continue;
        query = q->dims[i];
        if (key->alias == query || query->alias == key)
            break;
    }
    return query;
}

static mask causal_mask(const exec_call *call)
{
    const etch_dim *query = exec_causal_query(call->op);
    const etch_attrs *attrs = &call->op->attrs;
    uint32_t window = attrs->window ? exec_integer(attrs->window) : 0;
    return query ? (mask){query, attrs->over.at[0], window} : (mask){0};
}

/* The operand that is called so, or NULL. */
static const exec_array *operand(const exec_call *call, const char *name)
{
    const etch_operands known = etch_operands_of(call->arena, call->op->row);
    uint32_t slot = etch_operands_index(&known, name);
    uint32_t index = slot == UINT32_MAX ? slot : etch_op_index(call->op, slot);
    return index == UINT32_MAX ? NULL : call->ins[index];
}

/* cap tanh(x/cap), and its slope; the identity without a cap. */
static double capped(const exec_call *call, double x)
{
    const etch_expr cap = call->op->attrs.cap;
    const double c = cap ? exec_real(call->env->training->graph->sym, cap) : 0;
    return cap ? c * tanh(x / c) : x;
}

static double capped_slope(const exec_call *call, double x)
{
    const etch_expr cap = call->op->attrs.cap;
    const double c = cap ? exec_real(call->env->training->graph->sym, cap) : 0;
    return cap ? 1 / (cosh(x / c) * cosh(x / c)) : 1;
}

static double scores_scale(exec_call *call, const exec_array *q)
{
    return 1 / sqrt(exec_whole_dims(call, q, call->op->attrs.dot.at, call->op->attrs.dot.count));
}

/* q k summed over `dot`: zeros with the dims of both less `dot`. */
static exec_array *scores_like(exec_call *call, const exec_array *q, const exec_array *k)
{
    const etch_attrs *attrs = &call->op->attrs;
    exec_array *scores = ETCH_NEW(call->arena, exec_array);
    const exec_array *sides[] = {exec_array_less(call->arena, q, attrs->dot.at, attrs->dot.count),
                                 exec_array_less(call->arena, k, attrs->dot.at, attrs->dot.count)};
    for (uint32_t s = 0; s < 2; s++)
        for (uint32_t i = 0; i < sides[s]->rank; i++)
            if (exec_array_find(scores, sides[s]->dims[i]) < 0)
                exec_array_add_dim_of(scores, sides[s], i);
    exec_array_fill(call->arena, scores);
    return scores;
}

/* Scaled scores, capped, and the bias added; hidden ones are minus infinity. `slopes` (may be NULL): of the
 * scores in the products. */
static exec_array *scores_of(exec_call *call, const exec_array *q, const exec_array *k, exec_array *slopes)
{
    const mask hide = causal_mask(call);
    const double scale = scores_scale(call, q);
    const exec_array *bias = operand(call, "bias");
    exec_array *scores = scores_like(call, q, k);
    call->flop += 2 * contract(call, scores, q, k, hide);
    exec_walk w = WALK(scores);
    while (exec_walk_next(&w)) {
        double raw = scale * scores->at[w.at[0]], added = bias ? exec_element(call, &w, bias, NULL, 0) : 0;
        scores->at[w.at[0]] = is_hidden(call, &w, hide) ? -INFINITY : capped(call, raw) + added;
        if (slopes)
            slopes->at[w.at[0]] = scale * capped_slope(call, raw);
    }
    return scores;
}

/* The sink is one more term of each sum of exponentials. */
static void add_sink(exec_call *call, exec_array *log_sum, const exec_array *sink)
{
    exec_walk w = WALK(log_sum);
    while (sink && exec_walk_next(&w)) {
        double extra = exec_element(call, &w, sink, NULL, 0), *sum = &log_sum->at[w.at[0]];
        *sum = fmax(*sum, extra) + log1p(exp(-fabs(*sum - extra)));
    }
}

static void exponentials(exec_call *call, exec_array *scores, const exec_array *log_sum)
{
    exec_walk w = WALK(scores, log_sum);
    while (exec_walk_next(&w))
        scores->at[w.at[0]] = scores->at[w.at[0]] == -INFINITY /* and so may be all of a block */
                                  ? 0
                                  : exp(scores->at[w.at[0]] - log_sum->at[w.at[1]]);
}

/* A sink is there once, however many blocks there are. */
static const exec_array *sink_of(const exec_call *call)
{
    return call->block == EXEC_OTHER_BLOCK ? NULL : operand(call, "sink");
}

static bool has_keys(exec_call *call, const exec_array *k)
{
    return call->block || exec_whole_dims(call, k, call->op->attrs.over.at, call->op->attrs.over.count);
}

static void run_sdpa(exec_call *call)
{
    const exec_array *q = call->ins[0], *k = call->ins[1], *v = call->ins[2];
    if (!has_keys(call, k))
        return;
    exec_array *p = scores_of(call, q, k, NULL);
    exec_log_sums(call, p, call->outs[1]);
    add_sink(call, call->outs[1], sink_of(call));
    exponentials(call, p, call->outs[1]);
    call->flop += 2 * contract(call, call->outs[0], p, v, causal_mask(call));
}

/* The sink takes its share of each row, and gives nothing to the result. */
static void pull_sink(exec_call *call, exec_array *into, const exec_array *sink, const exec_array *log_sum,
                      const exec_array *delta)
{
    exec_walk w = WALK(into, log_sum, delta);
    while (exec_walk_next(&w)) {
        double share = exp(exec_element(call, &w, sink, NULL, 0) - log_sum->at[w.at[1]]);
        into->at[w.at[0]] -= share * delta->at[w.at[2]];
    }
}

static void add_up(exec_call *call, exec_array *into, const exec_array *from)
{
    exec_walk w = WALK(into, from);
    while (exec_walk_next(&w))
        into->at[w.at[0]] += from->at[w.at[1]];
}

static void run_sdpa_bwd(exec_call *call)
{
    const exec_array *d = call->ins[0], *q = call->ins[1], *k = call->ins[2], *v = call->ins[3],
                     *o = call->ins[4], *stat = call->ins[5];
    const mask hide = causal_mask(call);
    const exec_array *sink = operand(call, "sink"), *bias = operand(call, "bias");
    if (!has_keys(call, k))
        return;
    exec_array *slopes = scores_like(call, q, k), *p = scores_of(call, q, k, slopes);
    exec_array *dp = exec_array_like(call->arena, p);
    exponentials(call, p, stat);
    call->flop += 2 * contract(call, dp, d, v, hide);
    exec_array *delta = exec_array_like(call->arena, stat);
    exec_walk s = WALK(delta, d, o);
    while (exec_walk_next(&s))
        delta->at[s.at[0]] += d->at[s.at[1]] * o->at[s.at[2]];
    exec_walk w = WALK(dp, p, delta);
    while (exec_walk_next(&w))
        dp->at[w.at[0]] = p->at[w.at[1]] * (dp->at[w.at[0]] - delta->at[w.at[2]]);
    uint32_t next = 3;
    if (sink && call->block != EXEC_OTHER_BLOCK)
        pull_sink(call, call->outs[next], sink, stat, delta);
    next += sink != NULL;
    if (bias)
        add_up(call, call->outs[next], dp);
    exec_walk c = WALK(dp, slopes);
    while (exec_walk_next(&c))
        dp->at[c.at[0]] *= slopes->at[c.at[1]];
    call->flop += 2 * contract(call, call->outs[0], dp, k, hide);
    call->flop += 2 * contract(call, call->outs[1], dp, q, hide);
    call->flop += 2 * contract(call, call->outs[2], p, d, hide);
}

/* ---- the rows --------------------------------------------------------------------------------------- */

enum { OPERAND = EXEC_OPERAND, COUNTED = EXEC_COUNTED };

static const exec_rule rows[] = {
    {"einsum", run_einsum, COUNTED, 0},
    {"div", run_div, COUNTED, 0},
    {"div_db", run_div_db, COUNTED, 0},
    {"add", run_add, COUNTED, 0},
    {"sub", run_add, COUNTED, 0},
    {"sum", run_sum, COUNTED, 0},
    {"negated_sum", run_sum, COUNTED, 0},
    {"broadcast", run_broadcast, 0, 0},
    {"scale", run_scale, 1, 0},
    {"shift", run_shift, 1, 0},
    {"identity", exec_run_view, 0, 0},
    {"stop_gradient", exec_run_view, 0, 0},
    {"transpose", exec_run_view, 0, 0},
    {"cast", exec_run_view, 0, 0},
    {"cast_dx", exec_run_view, 0, 0},
    {"rename", exec_run_view, 0, 0},
    {"renamed_back", exec_run_view, 0, 0},
    {"cache", exec_run_view, 0, 0},
    {"append", run_append, 0, 0},
    {"slice", run_slice, 0, 0},
    {"slice_dx", run_slice_dx, COUNTED, 0},
    {"concat", exec_run_concat, 0, 0},
    {"split", exec_run_split, 0, 0},
    {"pad", exec_run_pad, 0, 0},
    {"pad_dx", exec_run_pad_dx, 0, 0},
    {"conv", exec_run_conv, COUNTED, 0},
    {"conv_dx", exec_run_conv_dx, COUNTED, 0},
    {"conv_dw", exec_run_conv_dw, COUNTED, 0},
    {"max_pool", exec_run_max_pool, COUNTED, 0},
    {"max_pool_dx", exec_run_max_pool_dx, COUNTED, 0},
    {"avg_pool", exec_run_avg_pool, COUNTED, 0},
    {"avg_pool_dx", exec_run_avg_pool_dx, COUNTED, 0},
    {"conv_from", exec_run_conv_from, COUNTED, 0},
    {"scan", exec_run_recurrence, COUNTED, 0},
    {"scan_bwd", exec_run_recurrence_bwd, COUNTED, 0},
    {"scan_from", exec_run_recurrence, COUNTED, 0},
    {"ssd", exec_run_ssd, COUNTED, 0},
    {"ssd_from", exec_run_ssd, COUNTED, 0},
    {"ssd_bwd", exec_run_ssd_bwd, COUNTED, 0},
    {"relu", run_unary, 1, 0},
    {"sigmoid", run_unary, 4, 0},
    {"silu", run_unary, 5, 0},
    {"gelu", run_unary, 8, 0},
    {"tanh", run_unary, 5, 0},
    {"exp", run_unary, 1, 0},
    {"softplus", run_unary, 3, 0},
    {"relu_dx", run_unary_dx, 1, 0},
    {"sigmoid_dx", run_unary_dx, 7, 3},
    {"silu_dx", run_unary_dx, 9, 0},
    {"gelu_dx", run_unary_dx, 14, 0},
    {"tanh_dx", run_unary_dx, 8, 3},
    {"exp_dx", run_unary_dx, 2, 1},
    {"softplus_dx", run_unary_dx, 5, 0},
    {"rope", run_rope, 3, 0},
    {"rope_dx", run_rope, 3, 0},
    {"dropout", run_dropout, 2, 0},
    {"dropout_dx", run_dropout_dx, 2, 0},
    {"rms_norm", run_norm, 4, 0},
    {"rms_norm_bwd", run_norm_bwd, OPERAND + 9, 0},
    {"layer_norm", run_norm, 5, 0},
    {"layer_norm_bwd", run_norm_bwd, OPERAND + 9, 0},
    {"batch_norm", run_norm, 5, 0},
    {"batch_norm_bwd", run_norm_bwd, OPERAND + 9, 0},
    {"softmax", run_softmax, 5, 0},
    {"softmax_dx", run_softmax_dx, 4, 0},
    {"sdpa", run_sdpa, COUNTED, 0},
    {"sdpa_bwd", run_sdpa_bwd, COUNTED, 0},
    {"topk", exec_run_topk, COUNTED, 0},
    {"dispatch", exec_run_dispatch, 0, 0},
    {"dispatch_dx", exec_run_dispatch_dx, OPERAND + 1, 0},
    {"collect", exec_run_collect, 0, 0},
    {"collect_dx", exec_run_collect_dx, 0, 0},
    {"normalize", exec_run_normalize, 2, 0},
    {"normalize_dx", exec_run_normalize_dx, 5, 0},
    {"load", exec_run_load, OPERAND + 1, 0},
    {"add_cotangents", run_total, COUNTED, 0},
    {"accumulate", run_sum, COUNTED, 0},
    {NULL, NULL, 0, 0},
};

static const exec_rule *const tables[] = {rows, exec_function_rules, exec_table_rules};

const exec_rule *exec_rule_of(const char *name)
{
    for (size_t t = 0; t < sizeof tables / sizeof *tables; t++)
        for (const exec_rule *rule = tables[t]; rule->name; rule++)
            if (strcmp(rule->name, name) == 0)
                return rule;
    return NULL;
}

void exec_op(exec_call *call)
{
    const exec_rule *row = exec_rule_of(etch_row_name(call->op->row));
    if (!row) {
        exec_fail(call->env, "the executor has no row %s", etch_row_name(call->op->row));
        return;
    }
    row->run(call);
    if (row->from_result && exec_reads_result(call))
        call->flop = row->from_result * (int64_t)call->outs[0]->size;
    else if (row->flop < OPERAND)
        call->flop = row->flop * (int64_t)call->outs[0]->size;
    else if (row->flop < COUNTED)
        call->flop = (row->flop - OPERAND) * (int64_t)call->ins[0]->size;
}
