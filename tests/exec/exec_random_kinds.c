/* Statements that plain random models lack. */
#include "exec_random_scene.h"

#include "exec_env.h"

#include <string.h>

const char *const exec_kind_names[EXEC_KINDS] = {
    [EXEC_KIND_ACTIVATION] = "functions whose result or argument serves",
    [EXEC_KIND_HAND_NORM] = "norms written by hand",
    [EXEC_KIND_GAIN_PLUS_ONE] = "norms times a gain and one",
    [EXEC_KIND_HAND_SOFTMAX] = "softmax written by hand",
    [EXEC_KIND_PARALLEL_SUM] = "sums of attention, mlp and residual",
    [EXEC_KIND_COPIES] = "copies along a new dim",
    [EXEC_KIND_CONSTANT] = "constants",
    [EXEC_KIND_IOTA] = "iota",
    [EXEC_KIND_BUFFER] = "buffers",
    [EXEC_KIND_SCATTER] = "scatter",
    [EXEC_KIND_CONTRAST] = "renames of the accumulated dim",
    [EXEC_KIND_CAST] = "casts",
    [EXEC_KIND_GROUPED] = "keys and values with fewer heads",
    [EXEC_KIND_NO_GRADIENT] = "weights without a gradient",
    [EXEC_KIND_BRANCHES] = "sums of branches that have names, factors and signs",
    [EXEC_KIND_CACHE] = "caches",
    [EXEC_KIND_ROLLING] = "rolling caches",
};

static etch_tensor *called(exec_scene *s, const char *row, const char *over, etch_tensor *x)
{
    return exec_call_row(s->m, exec_fresh(s, "f"), row, over, x, NULL, NULL);
}

static etch_tensor *shifted(exec_scene *s, etch_tensor *x, int num, int den)
{
    return exec_call_number(s->m, exec_fresh(s, "f"), "shift", num, den, x);
}

static etch_tensor *times(exec_scene *s, etch_tensor *x, etch_tensor *y)
{
    return exec_product(s->m, exec_fresh(s, "m"), x, y, exec_dims_text(s, exec_dims_of(x, y)));
}

/* `x` along some dim through a weight to another one; NULL where there is none, or the result is large. */
static etch_tensor *projected(exec_scene *s, etch_tensor *x)
{
    etch_dim *from = exec_any_dim(s, x), *to = exec_new_dim(s, x);
    if (!from || !to)
        return NULL;
    exec_dim_set keeps = exec_dims_without(exec_dims_of(x, NULL), from),
                 of_weight = {.at = {from, to}, .count = 2};
    exec_dim_set_add(&keeps, to);
    if (!exec_is_small(keeps))
        return NULL;
    etch_tensor *weight = exec_weight_with(s, of_weight);
    return exec_product(s->m, exec_fresh(s, "p"), x, weight, exec_dims_text(s, keeps));
}

/* Of numbers where the function has no pole and no kink nearby. */
static etch_tensor *applied(exec_scene *s, const char *row, etch_tensor *x)
{
    if (strcmp(row, "exp") == 0)
        return called(s, row, "", exec_squashed(s, x));
    if (strcmp(row, "sqrt") == 0 || strcmp(row, "rsqrt") == 0 || strcmp(row, "reciprocal") == 0 ||
        strcmp(row, "log") == 0)
        return called(s, row, "", shifted(s, called(s, "square", "", exec_squashed(s, x)), 1, 2));
    return called(s, row, "", x);
}

/* Between two products or not; the argument may be read by another statement, too. */
static void add_activation(exec_scene *s)
{
    static const char *const rows[] = {"relu", "relu", "sigmoid", "tanh",       "exp",
                                       "sqrt", "log",  "rsqrt",   "reciprocal", "square"};
    etch_tensor *x = exec_any_value(s);
    etch_tensor *in = exec_roll(s->dice, 4) ? projected(s, x) : x;
    if (!in)
        return;
    etch_tensor *out = applied(s, rows[exec_roll(s->dice, sizeof rows / sizeof *rows)], in);
    etch_tensor *last = exec_roll(s->dice, 3) ? projected(s, out) : NULL;
    exec_mark(s, EXEC_KIND_ACTIVATION);
    if (exec_roll(s->dice, 3) == 0)
        exec_keep_value(s, in);
    if (exec_roll(s->dice, 3) == 0)
        exec_keep_value(s, out);
    exec_keep_value(s, last ? last : out);
}

/* x divided by the root of the mean of its squares; with a gain, or a gain and one. */
static void add_hand_norm(exec_scene *s)
{
    etch_tensor *x = exec_any_value(s);
    etch_dim *over = exec_any_dim(s, x);
    if (!over || x->rank < 2)
        return;
    etch_tensor *square = exec_roll(s->dice, 2) ? times(s, x, x) : called(s, "square", "", x);
    etch_tensor *mean = shifted(s, called(s, "mean", over->name, square), 1, 2), *y;
    if (exec_roll(s->dice, 2))
        y = times(s, x, called(s, "rsqrt", "", mean));
    else
        y = exec_quotient(s->m, exec_fresh(s, "q"), x, called(s, "sqrt", "", mean),
                          exec_dims_text(s, exec_dims_of(x, NULL)));
    etch_tensor *gain = exec_weight_with(s, (exec_dim_set){.at = {over}, .count = 1});
    exec_mark(s, EXEC_KIND_HAND_NORM);
    switch (exec_roll(s->dice, 3)) {
    case 0:
        y = times(s, y, gain);
        break;
    case 1:
        y = times(s, y, shifted(s, gain, 1, 1));
        break;
    default:
        break;
    }
    exec_keep_value(s, y);
}

/* As Gemma has it, and often a product behind it. */
static void add_gain_plus_one(exec_scene *s)
{
    etch_tensor *x = exec_any_value(s);
    etch_dim *over = exec_any_dim(s, x);
    if (!over)
        return;
    etch_tensor *gain = exec_weight_with(s, (exec_dim_set){.at = {over}, .count = 1});
    etch_tensor *y = times(s, called(s, "rms_norm", over->name, x), shifted(s, gain, 1, 1));
    etch_tensor *after = exec_roll(s->dice, 3) ? projected(s, y) : NULL;
    exec_mark(s, EXEC_KIND_GAIN_PLUS_ONE);
    if (after)
        exec_keep_value(s, exec_squashed(s, after));
    exec_keep_value(s, y);
}

static void add_hand_softmax(exec_scene *s)
{
    etch_tensor *x = exec_any_value(s);
    etch_dim *over = exec_any_dim(s, x);
    if (!over || x->rank < 2)
        return;
    etch_tensor *most = called(s, "max", over->name, x);
    if (exec_roll(s->dice, 3))
        most = called(s, "stop_gradient", "", most);
    etch_tensor *e = called(s, "exp", "", exec_difference(s->m, exec_fresh(s, "x"), x, most));
    const exec_dim_set rest = exec_dims_without(exec_dims_of(x, NULL), over);
    etch_tensor *sum = exec_reduce(s->m, exec_fresh(s, "r"), e, exec_dims_text(s, rest));
    exec_mark(s, EXEC_KIND_HAND_SOFTMAX);
    exec_keep_value(
        s, exec_quotient(s->m, exec_fresh(s, "q"), e, sum, exec_dims_text(s, exec_dims_of(x, NULL))));
}

/* There and back. */
static etch_tensor *mixed(exec_scene *s, etch_tensor *x, etch_dim *from)
{
    etch_dim *inner = exec_new_dim(s, x);
    if (!inner)
        return NULL;
    exec_dim_set hidden = exec_dims_without(exec_dims_of(x, NULL), from),
                 of_weight = {.at = {from, inner}, .count = 2};
    exec_dim_set_add(&hidden, inner);
    if (!exec_is_small(hidden))
        return NULL;
    etch_tensor *up =
        exec_product(s->m, exec_fresh(s, "p"), x, exec_weight_with(s, of_weight), exec_dims_text(s, hidden));
    return exec_product(s->m, exec_fresh(s, "p"), exec_squashed(s, up), exec_weight_with(s, of_weight),
                        exec_dims_text(s, exec_dims_of(x, NULL)));
}

/* `x + a(norm(x)) + b(norm(x))`, in some order, as one sum or as two. */
static void add_parallel_sum(exec_scene *s)
{
    etch_tensor *x = exec_any_value(s);
    etch_dim *from = exec_any_dim(s, x);
    if (!from)
        return;
    etch_tensor *in = exec_roll(s->dice, 2) ? called(s, "rms_norm", from->name, x) : x;
    etch_tensor *a = mixed(s, in, from), *b = mixed(s, in, from);
    if (!a || !b)
        return;
    etch_tensor *terms[] = {x, a, b};
    const uint32_t first = exec_roll(s->dice, 3);
    terms[0] = terms[first];
    terms[first] = x;
    exec_mark(s, EXEC_KIND_PARALLEL_SUM);
    if (exec_roll(s->dice, 2))
        exec_keep_value(s, exec_sum_of(s->m, exec_fresh(s, "s"), terms, 3, 3));
    else
        exec_keep_value(s, exec_sum(s->m, exec_fresh(s, "s"), terms[0],
                                    exec_sum(s->m, exec_fresh(s, "s"), terms[1], terms[2])));
}

/* A table that is no weight: a factor of a value, or rows that are looked up by their place. */
static void add_buffer(exec_scene *s)
{
    exec_model *m = s->m;
    etch_tensor *x = exec_any_value(s);
    etch_dim *along = exec_any_dim(s, x);
    if (!along)
        return;
    const bool rows =
        exec_roll(s->dice, 2) && exec_integer(along->size) <= 8 && strcmp(along->name, "V") != 0;
    etch_tensor *buffer = exec_weight(m, exec_fresh(s, "w"), rows ? "V" : along->name);
    buffer->frozen = buffer->buffer = true;
    exec_mark(s, EXEC_KIND_BUFFER);
    if (rows)
        buffer = exec_call_row(m, exec_fresh(s, "e"), "gather", "V", buffer,
                               exec_constant(m, exec_fresh(s, "i"), along->name, 0, 0), NULL);
    if (rows)
        exec_mark(s, EXEC_KIND_IOTA);
    exec_keep_value(s,
                    exec_roll(s->dice, 2) ? times(s, x, buffer) : exec_sum(m, exec_fresh(s, "s"), x, buffer));
}

/* A weight that only `stop_gradient` leads to, or that only chooses. */
static void add_without_gradient(exec_scene *s)
{
    etch_tensor *x = exec_any_value(s);
    etch_dim *along = exec_any_dim(s, x);
    if (!along)
        return;
    etch_tensor *weight = exec_weight(s->m, exec_fresh(s, "w"), along->name);
    etch_tensor *stopped =
        called(s, "stop_gradient", "", exec_roll(s->dice, 2) ? times(s, x, weight) : weight);
    exec_mark(s, EXEC_KIND_NO_GRADIENT);
    exec_keep_value(s, times(s, exec_squashed(s, stopped), x));
}

static bool is_sequence_of_vectors(exec_scene *s, const etch_tensor *x, const etch_dim *from)
{
    static const char *const others[] = {"S", "T", "K", "D", "G", "P"};
    if (!from || x->rank != 3 || !etch_has_dim(x, exec_model_dim(s->m, "S")) ||
        !etch_has_dim(x, exec_model_dim(s->m, "B")))
        return false;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (strcmp(from->name, others[i]) == 0)
            return false;
    return true;
}

/* x[B,S,from] times w[from,K,D], or w[from,K,G,D]. */
static etch_tensor *headed(exec_scene *s, etch_tensor *x, etch_dim *from, const char *dims, const char *made)
{
    etch_tensor *w = exec_weight(s->m, exec_fresh(s, "w"), etch_text(s->m->arena, "%s %s", from->name, dims));
    etch_tensor *y = exec_product(s->m, exec_fresh(s, "p"), x, w, made);
    return exec_roll(s->dice, 3) ? y : exec_call_row(s->m, exec_fresh(s, "p"), "rope", "D", y, NULL, NULL);
}

/* What attention gives, back to the dims of `x`. */
static void keep_attended(exec_scene *s, etch_tensor *x, etch_dim *from, etch_tensor *o)
{
    etch_tensor *w = exec_weight(s->m, exec_fresh(s, "w"), etch_text(s->m->arena, "K G D %s", from->name));
    etch_tensor *y =
        exec_product(s->m, exec_fresh(s, "p"), o, w, etch_text(s->m->arena, "B S %s", from->name));
    exec_keep_value(s, exec_roll(s->dice, 3) ? exec_sum(s->m, exec_fresh(s, "s"), x, y) : y);
}

/* Keys of the queries' values or of another one, renamed before they are made or afterwards. */
static void add_grouped(exec_scene *s)
{
    exec_model *m = s->m;
    etch_tensor *x = exec_any_value(s), *other = exec_any_value(s);
    etch_dim *from = exec_any_dim(s, x);
    if (!is_sequence_of_vectors(s, x, from))
        return;
    etch_tensor *seen = is_sequence_of_vectors(s, other, from) && etch_has_dim(other, from) ? other : x;
    etch_tensor *in = exec_roll(s->dice, 2) ? called(s, "rms_norm", from->name, seen) : seen;
    const bool before = exec_roll(s->dice, 2);
    in = before ? exec_rename(m, exec_fresh(s, "v"), in, "S", "T") : in;
    etch_tensor *q =
        headed(s, seen == x && exec_roll(s->dice, 2) && !before ? in : x, from, "K G D", "B S K G D");
    etch_tensor *k = headed(s, in, from, "K D", before ? "B T K D" : "B S K D");
    etch_tensor *v = headed(s, in, from, "K D", before ? "B T K D" : "B S K D");
    if (!before) {
        k = exec_rename(m, exec_fresh(s, "v"), k, "S", "T");
        v = exec_rename(m, exec_fresh(s, "v"), v, "S", "T");
    }
    exec_options options = {.causal = exec_roll(s->dice, 2)};
    if (options.causal && exec_roll(s->dice, 3) == 0)
        options.window = 1 + (int)exec_roll(s->dice, 8);
    if (exec_roll(s->dice, 4) == 0)
        options.sink = exec_weight(m, exec_fresh(s, "w"), exec_roll(s->dice, 2) ? "K" : "K G");
    exec_mark(s, EXEC_KIND_GROUPED);
    keep_attended(s, x, from, exec_attend_with(m, exec_fresh(s, "o"), q, k, v, "T", "D", options));
}

void exec_add_cached(exec_scene *s)
{
    exec_model *m = s->m;
    etch_tensor *x = exec_any_value(s);
    etch_dim *from = exec_any_dim(s, x);
    if (!is_sequence_of_vectors(s, x, from))
        return;
    const int window = exec_roll(s->dice, 2) ? 1 + (int)exec_roll(s->dice, 8) : 0;
    const bool rolls = window && exec_roll(s->dice, 3);
    etch_tensor *q = headed(s, x, from, "K G D", "B S K G D");
    etch_tensor *k =
        exec_cache(m, exec_fresh(s, "k"), headed(s, x, from, "K D", "B S K D"), "S", "P", rolls ? window : 0);
    etch_tensor *v =
        exec_cache(m, exec_fresh(s, "k"), headed(s, x, from, "K D", "B S K D"), "S", "P", rolls ? window : 0);
    keep_attended(s, x, from,
                  exec_attend_with(m, exec_fresh(s, "o"), q, k, v, "P", "D",
                                   (exec_options){.causal = true, .window = window}));
}

/* Of `x`, through weights that have `inner`: it is partial where that is divided. As it is, or in a module;
 * with a bias, and with what is linear in it. */
static etch_tensor *branch(exec_scene *s, etch_tensor *x, etch_dim *along, etch_dim *inner)
{
    exec_model *m = s->m;
    const exec_dim_set of_weight = {.at = {along, inner}, .count = 2}, of_bias = {.at = {along}, .count = 1};
    exec_dim_set wide = exec_dims_without(exec_dims_of(x, NULL), along);
    exec_dim_set_add(&wide, inner);
    const char *dims = exec_dims_text(s, exec_dims_of(x, NULL));
    etch_tensor *h =
        exec_product(m, exec_fresh(s, "h"), x, exec_weight_with(s, of_weight), exec_dims_text(s, wide));
    const uint32_t op_count = m->graph->op_count;
    const bool apart = exec_roll(s->dice, 2);
    if (apart)
        h = exec_enter(m, etch_text(m->arena, "m%u", exec_roll(s->dice, 2)), h);
    etch_tensor *y = exec_product(m, exec_fresh(s, "p"), h, exec_weight_with(s, of_weight), dims);
    if (exec_roll(s->dice, 2))
        y = exec_sum(m, exec_fresh(s, "b"), y, exec_weight_with(s, of_bias));
    const uint32_t how = exec_roll(s->dice, 6);
    if (how < 2)
        y = exec_call_number(m, exec_fresh(s, "n"), "scale", how ? 2 : -1, 1, y);
    else if (how == 2)
        y = exec_cast(m, exec_fresh(s, "c"), y, y->dtype);
    else if (how == 3)
        y = shifted(s, y, 1, 2);
    return apart ? exec_left(s, "y", y, op_count) : y;
}

/* Two of them beside each other, with what they are of, added in some order and under some names. */
static void add_branches(exec_scene *s)
{
    exec_model *m = s->m;
    etch_tensor *x = exec_any_value(s);
    etch_dim *along = exec_any_dim(s, x), *inner = exec_new_dim(s, x);
    exec_dim_set wide = exec_dims_of(x, NULL);
    if (!along || !inner)
        return;
    exec_dim_set_add(&wide, inner);
    if (!exec_is_small(wide))
        return;
    etch_tensor *a = branch(s, x, along, inner), *b = branch(s, x, along, inner);
    etch_tensor *const terms[] = {a, x, b};
    const uint32_t how = exec_roll(s->dice, 4);
    exec_mark(s, EXEC_KIND_BRANCHES);
    if (how == 0)
        exec_keep_value(s, exec_sum_of(m, exec_fresh(s, "s"), terms, 3, 2 + exec_roll(s->dice, 2)));
    else if (how == 1)
        exec_keep_value(s, exec_sum(m, exec_fresh(s, "s"), exec_sum(m, exec_fresh(s, "s"), x, a), b));
    else if (how == 2)
        exec_keep_value(s, exec_sum(m, exec_fresh(s, "s"), x, exec_difference(m, exec_fresh(s, "s"), a, b)));
    else
        exec_keep_value(s, exec_difference(m, exec_fresh(s, "s"), x, exec_sum(m, exec_fresh(s, "s"), a, b)));
}

void exec_add_kind(exec_scene *s)
{
    static void (*const kinds[])(exec_scene *) = {
        add_activation,    add_activation,   add_activation,   add_hand_norm, add_hand_norm,
        add_gain_plus_one, add_hand_softmax, add_parallel_sum, add_buffer,    add_without_gradient,
        add_grouped,       add_grouped,      add_grouped,      add_branches,  add_branches};
    kinds[exec_roll(s->dice, sizeof kinds / sizeof *kinds)](s);
}
