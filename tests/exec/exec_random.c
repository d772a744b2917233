#include "exec_random_scene.h"

#include "exec_env.h"
#include "exec_spec.h"

#include "graph/ir/row.h"

#include <string.h>

static const etch_span nowhere = {0, 0};

/* Sizes that all meshes below can divide, and others. Dims that are renamed into each other are equal. */
static const char sizes[] = "B=8 S=8 T=8 H=4 H'=4 F=8 K=4 D=4 V=8 E=4 Q=2 C=32 M=32 M'=32 L=4 B'=8 Z=2 Y=4";
static const char *const odd_sizes[] = {
    "B=8 S=6 T=6 H=4 H'=4 F=8 K=4 D=4 V=8 E=4 Q=2 C=24 M=24 M'=32 L=4 B'=8 Z=2 Y=3",
    "B=4 S=4 T=4 H=8 H'=8 F=6 K=2 D=4 V=12 E=4 Q=2 C=8 M=32 M'=12 L=3 B'=4 Z=2 Y=2",
    "B=12 S=8 T=8 H=2 H'=2 F=4 K=8 D=4 V=8 E=4 Q=2 C=48 M=16 M'=32 L=2 B'=12 Z=4 Y=2"};
/* Of rich models: also batches and sequences that no mesh divides, and a head too few. */
static const char *const rich_sizes[] = {
    "B=8 S=8 T=8 H=4 H'=4 F=8 K=4 D=4 V=8 G=2 E=4 Q=2 C=32 M=32 M'=32 L=4 B'=8 Z=2 Y=4",
    "B=8 S=8 T=8 H=2 H'=2 F=8 K=2 D=4 V=8 G=4 E=4 Q=2 C=32 M=16 M'=16 L=4 B'=8 Z=2 Y=4",
    "B=6 S=6 T=6 H=4 H'=4 F=8 K=3 D=4 V=8 G=2 E=2 Q=2 C=36 M=24 M'=24 L=4 B'=6 Z=2 Y=3"};
/* Of models under plans that pad: hardly a dim that a mesh divides, some of fewer elements than ranks. */
static const char *const padded_sizes[] = {
    "B=10 S=9 T=9 H=4 H'=4 F=6 K=3 D=3 V=7 G=3 E=2 Q=2 C=90 M=36 M'=18 L=3 B'=10 Z=3 Y=3",
    "B=6 S=8 T=8 H=5 H'=5 F=10 K=5 D=2 V=9 G=3 E=2 Q=2 C=48 M=40 M'=50 L=5 B'=6 Z=2 Y=4",
    "B=2 S=7 T=7 H=4 H'=4 F=6 K=1 D=5 V=5 G=5 E=2 Q=2 C=14 M=28 M'=6 L=3 B'=2 Z=7 Y=1"};
/* Of models that are served: P is what the caches hold in the end. */
static const char *const served_sizes[] = {
    "B=8 S=4 T=4 P=7 H=4 H'=4 F=8 K=4 D=4 V=8 G=2 E=4 Q=2 C=16 M=16 M'=32 L=4 B'=8 Z=2 Y=2",
    "B=8 S=4 T=4 P=4 H=4 H'=4 F=8 K=4 D=4 V=8 G=2 E=4 Q=2 C=16 M=16 M'=32 L=4 B'=8 Z=2 Y=2",
    "B=6 S=1 T=1 P=9 H=4 H'=4 F=8 K=4 D=4 V=8 G=2 E=4 Q=2 C=3 M=4 M'=32 L=4 B'=6 Z=1 Y=1"};
const char *const exec_inner_dims[] = {"S", "T", "H", "H'", "F", "K", "D", "V"};
const char *const exec_expert_dims[] = {"E", "C", "Q"};

uint32_t exec_roll(exec_dice *dice, uint32_t sides)
{
    dice->state++;
    return (uint32_t)(exec_mix(dice->state, 0) % sides);
}

/* ---- statements ------------------------------------------------------------------------------------- */

static void add_projection(exec_scene *s)
{
    etch_tensor *x = exec_any_value(s);
    etch_dim *from = exec_any_dim(s, x), *to = exec_new_dim(s, x);
    exec_dim_set keeps = exec_dims_without(exec_dims_of(x, NULL), from),
                 of_weight = {.at = {from}, .count = 1};
    if (!from || !to)
        return;
    exec_dim_set_add(&keeps, to);
    exec_dim_set_add(&of_weight, to);
    etch_dim *more = exec_new_dim(s, x);
    if (more && exec_roll(s->dice, 3) == 0) {
        exec_dim_set_add(&keeps, more);
        exec_dim_set_add(&of_weight, more);
    }
    if (exec_is_small(keeps))
        exec_keep_value(s, exec_product(s->m, exec_fresh(s, "p"), x, exec_weight_with(s, of_weight),
                                        exec_dims_text(s, keeps)));
}

/* Times a weight, or plus one. */
static void add_gain(exec_scene *s)
{
    etch_tensor *x = exec_any_value(s);
    exec_dim_set some = {.count = 0};
    for (uint32_t i = 0; i < x->rank; i++)
        if (strcmp(x->dims[i]->name, "B") != 0 && (some.count == 0 || exec_roll(s->dice, 3) == 0))
            exec_dim_set_add(&some, x->dims[i]);
    if (some.count == 0)
        return;
    etch_tensor *weight = exec_weight_with(s, some);
    if (exec_roll(s->dice, 2))
        exec_keep_value(
            s, exec_product(s->m, exec_fresh(s, "g"), x, weight, exec_dims_text(s, exec_dims_of(x, weight))));
    else
        exec_keep_value(s, exec_sum(s->m, exec_fresh(s, "b"), x, weight));
}

static void add_sum(exec_scene *s)
{
    etch_tensor *x = exec_any_value(s), *y = exec_any_value(s);
    if (!exec_is_small(exec_dims_of(x, y)))
        return;
    exec_keep_value(s, exec_roll(s->dice, 4) ? exec_sum(s->m, exec_fresh(s, "s"), x, y)
                                             : exec_difference(s->m, exec_fresh(s, "s"), x, y));
}

/* Of several terms, which are broadcast to the first. */
static void add_terms(exec_scene *s)
{
    etch_tensor *terms[4] = {exec_any_value(s)};
    const uint32_t count = 3 + exec_roll(s->dice, 2);
    for (uint32_t i = 1; i < count; i++) {
        etch_tensor *other = exec_any_value(s);
        terms[i] = etch_covers(terms[0], other) ? other : terms[0];
    }
    exec_keep_value(s, exec_sum_of(s->m, exec_fresh(s, "s"), terms, count, 1 + exec_roll(s->dice, count)));
}

/* Of two values, over at most one of the dims that they share. */
static void add_product(exec_scene *s)
{
    etch_tensor *x = exec_any_value(s), *y = exec_any_value(s);
    exec_dim_set keeps = exec_dims_of(x, y);
    etch_dim *summed = exec_any_dim(s, x);
    if (summed && etch_has_dim(y, summed) && keeps.count > 1 && exec_roll(s->dice, 2))
        keeps = exec_dims_without(keeps, summed);
    if (exec_is_small(keeps))
        exec_keep_value(
            s, exec_squashed(s, exec_product(s->m, exec_fresh(s, "m"), x, y, exec_dims_text(s, keeps))));
}

static void add_function(exec_scene *s)
{
    static const char *const functions[] = {"silu",     "gelu",     "tanh", "sigmoid",
                                            "softplus", "softplus", "abs",  "transpose"};
    const char *row = functions[exec_roll(s->dice, sizeof functions / sizeof *functions)];
    exec_keep_value(s, exec_call_row(s->m, exec_fresh(s, "f"), row, "", exec_any_value(s), NULL, NULL));
}

static void add_number(exec_scene *s)
{
    static const char *const rows[] = {"scale", "shift", "dropout", "softcap"};
    const char *row = rows[exec_roll(s->dice, 4)];
    exec_keep_value(s, exec_call_number(s->m, exec_fresh(s, "n"), row, 1, 4, exec_any_value(s)));
}

static void add_norm(exec_scene *s)
{
    etch_tensor *x = exec_any_value(s);
    etch_dim *over = exec_any_dim(s, x);
    const exec_dim_set along = {.at = {over}, .count = 1};
    const char *name = exec_fresh(s, "n");
    if (!over)
        return;
    switch (exec_roll(s->dice, 4)) {
    case 0:
        exec_keep_value(
            s, exec_call_row(s->m, name, "rms_norm", over->name, x, exec_weight_with(s, along), NULL));
        break;
    case 1:
        exec_keep_value(s, exec_call_row(s->m, name, "rms_norm", over->name, x, NULL, NULL));
        break;
    case 2:
        exec_keep_value(s, exec_call_row(s->m, name, "layer_norm", over->name, x, exec_weight_with(s, along),
                                         exec_weight_with(s, along)));
        break;
    default:
        exec_keep_value(s, exec_call_row(s->m, name, exec_roll(s->dice, 2) ? "softmax" : "rope", over->name,
                                         x, NULL, NULL));
        break;
    }
}

static void add_reduction(exec_scene *s)
{
    etch_tensor *x = exec_any_value(s);
    etch_dim *over = exec_any_dim(s, x);
    if (over && x->rank > 1 && exec_roll(s->dice, 2))
        exec_keep_value(s, exec_call_row(s->m, exec_fresh(s, "r"), exec_roll(s->dice, 2) ? "max" : "mean",
                                         over->name, x, NULL, NULL));
    else if (over && x->rank > 1)
        exec_keep_value(s, exec_reduce(s->m, exec_fresh(s, "r"), x,
                                       exec_dims_text(s, exec_dims_without(exec_dims_of(x, NULL), over))));
}

static void add_stopped(exec_scene *s)
{
    etch_tensor *x = exec_any_value(s);
    etch_dim *over = x->rank > 1 ? exec_any_dim(s, x) : NULL;
    etch_tensor *most = over ? exec_call_row(s->m, exec_fresh(s, "r"), "max", over->name, x, NULL, NULL) : x;
    exec_keep_value(s,
                    exec_sum(s->m, exec_fresh(s, "x"), x,
                             exec_call_row(s->m, exec_fresh(s, "h"), "stop_gradient", "", most, NULL, NULL)));
}

static void add_view(exec_scene *s)
{
    static const char *const pairs[][2] = {{"S", "T"},  {"T", "S"}, {"H", "H'"},
                                           {"H'", "H"}, {"F", "D"}, {"V", "K"}};
    etch_tensor *x = exec_any_value(s);
    uint32_t pair = exec_roll(s->dice, sizeof pairs / sizeof *pairs);
    const char *from = pairs[pair][0], *to = pairs[pair][1];
    if (!etch_has_dim(x, exec_model_dim(s->m, from)) || etch_has_dim(x, exec_model_dim(s->m, to)))
        return;
    exec_keep_value(s, pair < 4 ? exec_rename(s->m, exec_fresh(s, "v"), x, from, to)
                                : exec_slice(s->m, exec_fresh(s, "v"), x, from, to));
}

/* A sequence in chunks, and as it was. */
static void add_chunks(exec_scene *s, etch_tensor *x)
{
    etch_tensor *chunks = exec_regroup(s->m, exec_fresh(s, "v"), x, "S", "Z Y");
    exec_keep_value(s, exec_regroup(s->m, exec_fresh(s, "v"), exec_squashed(s, chunks), "Z Y", "S"));
}

/* Two dims as one, and back: the same dims, or others that are inside. */
static void add_regrouped(exec_scene *s)
{
    static const char *const pairs[][4] = {
        {"S", "H", "S H", "M"}, {"H", "S", "H S", "M"}, {"F", "K", "F K", "M'"}};
    etch_tensor *x = exec_any_value(s);
    const uint32_t pair = exec_roll(s->dice, sizeof pairs / sizeof *pairs);
    const char *parts = pairs[pair][2], *whole = pairs[pair][3];
    if (etch_has_dim(x, exec_model_dim(s->m, "S")) && exec_mix(s->dice->state, pair) % 4 == 0) {
        add_chunks(s, x);
        return;
    }
    if (!etch_has_dim(x, exec_model_dim(s->m, pairs[pair][0])) ||
        !etch_has_dim(x, exec_model_dim(s->m, pairs[pair][1])))
        return;
    etch_tensor *merged = exec_regroup(s->m, exec_fresh(s, "v"), x, parts, whole);
    if (exec_roll(s->dice, 2))
        merged = exec_squashed(s, merged);
    exec_keep_value(s, exec_regroup(s->m, exec_fresh(s, "v"), merged, whole,
                                    pairs[pair == 2 ? 2 : exec_roll(s->dice, 2)][2]));
}

/* Apart and together again, one part changed. */
static void add_parts(exec_scene *s)
{
    exec_model *m = s->m;
    etch_tensor *x = exec_any_value(s), *out[2];
    etch_dim *whole = exec_model_dim(m, "F"), *half = exec_model_dim(m, "L");
    if (!etch_has_dim(x, whole))
        return;
    exec_dim_set all = exec_dims_of(x, NULL), part = exec_dims_without(all, whole);
    exec_dim_set_add(&part, half);
    const char *const parts[] = {exec_dims_text(s, part), exec_dims_text(s, part), NULL};
    exec_split(m, x, "F", parts, out);
    etch_tensor *other =
        exec_roll(s->dice, 2) ? exec_weight_with(s, (exec_dim_set){.at = {half}, .count = 1}) : out[0];
    exec_keep_value(s, exec_concat(m, exec_fresh(s, "c"), "L L", exec_dims_text(s, all),
                                   exec_squashed(s, out[1]), other, NULL));
}

/* An objective of its own, wherever it stands: at top level, in a loop or in a module. */
static void add_objective(exec_scene *s)
{
    etch_tensor *x = exec_any_value(s);
    if (exec_roll(s->dice, 3))
        return;
    if (s->modules == 0)
        exec_sum_loss(s->m, x, exec_dims_text(s, exec_dims_of(x, NULL)));
    else /* without an input: a module has none */
        exec_tag(s->m, exec_product(s->m, "l", x, exec_squashed(s, x), ""), "loss");
}

static void add_lookup(exec_scene *s)
{
    etch_dim *dim = exec_model_dim(s->m, exec_roll(s->dice, 2) ? "H" : "F");
    exec_dim_set set = {.at = {exec_model_dim(s->m, "V"), dim}, .count = 2};
    etch_tensor *ids = s->modules ? s->ids : exec_ids(s->m, exec_fresh(s, "ids"), "B S");
    if (!ids)
        return;
    exec_keep_value(
        s, exec_call_row(s->m, exec_fresh(s, "e"), "gather", "V", exec_weight_with(s, set), ids, NULL));
}

/* Along a dim that the value lacks. */
static void add_copies(exec_scene *s)
{
    etch_tensor *x = exec_any_value(s);
    etch_dim *more = exec_new_dim(s, x);
    exec_dim_set all = exec_dims_of(x, NULL);
    if (more)
        exec_dim_set_add(&all, more);
    if (!more || !exec_is_small(all))
        return;
    exec_mark(s, EXEC_KIND_COPIES);
    exec_keep_value(s, exec_copies(s->m, exec_fresh(s, "k"), x, exec_dims_text(s, all)));
}

/* Every sequence with every one of its microbatch. */
static void add_contrast(exec_scene *s)
{
    etch_tensor *x = exec_any_value(s);
    if (x->rank != 2 || !etch_has_dim(x, exec_model_dim(s->m, "B")))
        return;
    exec_mark(s, EXEC_KIND_CONTRAST);
    etch_tensor *others = exec_rename(s->m, exec_fresh(s, "v"), x, "B", "B'");
    etch_tensor *y = exec_squashed(s, exec_product(s->m, exec_fresh(s, "m"), x, others, "B B'"));
    y = exec_product(s->m, exec_fresh(s, "m"), y, others, exec_dims_text(s, exec_dims_of(x, NULL)));
    exec_keep_value(s, y);
}

/* What follows is wide, too. */
static void add_cast(exec_scene *s)
{
    exec_mark(s, EXEC_KIND_CAST);
    exec_keep_value(s, exec_cast(s->m, exec_fresh(s, "c"), exec_any_value(s),
                                 exec_roll(s->dice, 3) ? ETCH_F32 : ETCH_BF16));
}

/* Some number along some of the value's dims; or rows of a table for the places of a dim. */
static void add_constant(exec_scene *s)
{
    exec_model *m = s->m;
    etch_tensor *x = exec_any_value(s), *with;
    exec_dim_set some = {.count = 0};
    etch_dim *along = exec_any_dim(s, x);
    for (uint32_t i = 0; i < x->rank; i++)
        if (exec_roll(s->dice, 2))
            exec_dim_set_add(&some, x->dims[i]);
    if (along && strcmp(along->name, "V") != 0 && exec_roll(s->dice, 2)) {
        const exec_dim_set table = {.at = {exec_model_dim(m, "V")}, .count = 1};
        exec_mark(s, EXEC_KIND_IOTA);
        with = exec_call_row(m, exec_fresh(s, "e"), "gather", "V", exec_weight_with(s, table),
                             exec_constant(m, exec_fresh(s, "i"), along->name, 0, 0), NULL);
    } else {
        exec_mark(s, EXEC_KIND_CONSTANT);
        with =
            exec_constant(m, exec_fresh(s, "z"), exec_dims_text(s, some), 1 - (int)exec_roll(s->dice, 3), 2);
    }
    if (exec_roll(s->dice, 2))
        exec_keep_value(
            s, exec_product(m, exec_fresh(s, "m"), x, with, exec_dims_text(s, exec_dims_of(x, NULL))));
    else
        exec_keep_value(s, exec_sum(m, exec_fresh(s, "s"), x, with));
}

/* Rows of tokens added by index, of each sequence or of all. */
static void add_scatter(exec_scene *s)
{
    etch_tensor *x = exec_any_value(s),
                *ids = s->modules ? s->ids : exec_ids(s->m, exec_fresh(s, "ids"), "B S");
    etch_dim *table = exec_model_dim(s->m, "V");
    if (!ids || !etch_covers(x, ids) || etch_has_dim(x, table))
        return;
    exec_dim_set of_y = exec_dims_without(exec_dims_of(x, NULL), exec_model_dim(s->m, "S"));
    exec_dim_set_add(&of_y, table);
    if (!exec_is_small(of_y))
        return;
    exec_mark(s, EXEC_KIND_SCATTER);
    exec_keep_value(s, exec_scatter(s->m, exec_fresh(s, "y"), x, ids, "V", exec_dims_text(s, of_y)));
}

/* A quotient: nowhere near a pole. */
static void add_quotient(exec_scene *s)
{
    etch_tensor *x = exec_any_value(s), *y = exec_any_value(s);
    if (!exec_is_small(exec_dims_of(x, y)))
        return;
    y = exec_call_row(s->m, exec_fresh(s, "u"), "square", "", exec_squashed(s, y), NULL, NULL);
    y = exec_call_row(s->m, exec_fresh(s, "u"), "rsqrt", "",
                      exec_call_number(s->m, exec_fresh(s, "u"), "shift", 1, 2, y), NULL, NULL);
    if (exec_roll(s->dice, 2))
        exec_keep_value(s,
                        exec_quotient(s->m, exec_fresh(s, "q"), x, y, exec_dims_text(s, exec_dims_of(x, y))));
    else
        exec_keep_value(s,
                        exec_product(s->m, exec_fresh(s, "q"), x,
                                     exec_call_row(s->m, exec_fresh(s, "u"), "reciprocal", "", y, NULL, NULL),
                                     exec_dims_text(s, exec_dims_of(x, y))));
}

/* Dims of a bias or a sink: some of those given, at least one. */
static etch_tensor *some_weight(exec_scene *s, exec_dim_set all)
{
    exec_dim_set some = {.count = 0};
    for (uint32_t i = 0; i < all.count; i++)
        if (exec_roll(s->dice, 2) || (i + 1 == all.count && some.count == 0))
            exec_dim_set_add(&some, all.at[i]);
    return exec_weight_with(s, some);
}

static exec_options random_options(exec_scene *s)
{
    exec_model *m = s->m;
    etch_dim *queries = exec_model_dim(m, "S"), *heads = exec_model_dim(m, "K"),
             *keys = exec_model_dim(m, "T");
    exec_options options = {.causal = exec_roll(s->dice, 2)};
    if (options.causal && exec_roll(s->dice, 3) == 0)
        options.window = 1 + (int)exec_roll(s->dice, 8);
    if (exec_roll(s->dice, 3) == 0)
        options.cap = 2;
    if (exec_roll(s->dice, 3) == 0)
        options.sink = some_weight(s, (exec_dim_set){.at = {queries, heads}, .count = 2});
    if (exec_roll(s->dice, 3) == 0)
        options.bias = some_weight(s, (exec_dim_set){.at = {queries, heads, keys}, .count = 3});
    return options;
}

/* On values with B, S and one more dim. */
static void add_attention(exec_scene *s)
{
    exec_model *m = s->m;
    etch_tensor *x = exec_any_value(s);
    etch_dim *from = exec_any_dim(s, x), *heads = exec_model_dim(m, "K"), *width = exec_model_dim(m, "D");
    exec_dim_set of_x = exec_dims_of(x, NULL),
                 rest = exec_dims_without(exec_dims_without(exec_dims_without(of_x, exec_model_dim(m, "B")),
                                                            exec_model_dim(m, "S")),
                                          from);
    if (rest.count || of_x.count != 3 || from == exec_model_dim(m, "S") || from == heads || from == width ||
        from == exec_model_dim(m, "T"))
        return;
    exec_dim_set of_q = {.at = {from, heads, width}, .count = 3}, of_k = {.at = {from, width}, .count = 2};
    bool shared = exec_roll(s->dice, 2) == 0; /* one head of keys for all queries */
    const char *keys = shared ? "B T D" : "B T K D";
    etch_tensor *seen = exec_rename(m, exec_fresh(s, "v"), x, "S", "T");
    etch_tensor *q = exec_product(m, exec_fresh(s, "q"), x, exec_weight_with(s, of_q), "B S K D");
    etch_tensor *k =
        exec_product(m, exec_fresh(s, "k"), seen, exec_weight_with(s, shared ? of_k : of_q), keys);
    etch_tensor *v =
        exec_product(m, exec_fresh(s, "v"), seen, exec_weight_with(s, shared ? of_k : of_q), keys);
    exec_keep_value(s, exec_attend_with(m, exec_fresh(s, "o"), q, k, v, "T", "D", random_options(s)));
}

/* Into the module in work. */
static etch_tensor *pass(exec_scene *s, etch_tensor *value)
{
    return etch_graph_pass(s->m->graph, ETCH_ENTER, value, value->name, nowhere);
}

/* Experts on values with B, S and one more dim, at times as a module of their own. */
static void add_experts(exec_scene *s)
{
    exec_model *m = s->m;
    etch_tensor *x = exec_any_value(s);
    etch_dim *from = exec_any_dim(s, x), *to = exec_new_dim(s, x), *e = exec_model_dim(m, "E");
    if (x->rank != 3 || !etch_has_dim(x, exec_model_dim(m, "S")) || !from || from->id == 1 || !to ||
        !etch_has_dim(x, exec_model_dim(m, "B")))
        return;
    exec_dim_set of_router = {.at = {from, e}, .count = 2}, of_expert = {.at = {e, from, to}, .count = 3};
    bool apart = exec_roll(s->dice, 2), sums = exec_roll(s->dice, 3);
    etch_tensor *r = exec_product(m, exec_fresh(s, "r"), x, exec_weight_with(s, of_router), "B S E");
    etch_tensor *p = exec_call_row(m, exec_fresh(s, "p"), "sigmoid", "", r, NULL, NULL);
    etch_tensor *idx = exec_topk(m, exec_fresh(s, "idx"), p, "E", "Q");
    etch_tensor *w = exec_call_row(m, exec_fresh(s, "w"), "gather", "E", p, idx, NULL);
    w = exec_call_row(m, exec_fresh(s, "w"), exec_roll(s->dice, 2) ? "normalize" : "softmax", "Q", w, NULL,
                      NULL);
    etch_tensor *in = exec_dispatch(m, exec_fresh(s, "xe"), x, idx, "B S", "C");
    const uint32_t op_count = m->graph->op_count;
    if (apart)
        in = exec_enter(m, etch_text(m->arena, "m%u", exec_roll(s->dice, 2)), in);
    etch_tensor *y = exec_product(m, exec_fresh(s, "ye"), in, exec_weight_with(s, of_expert),
                                  etch_text(m->arena, "E C %s", to->name));
    y = exec_squashed(s, y);
    if (apart)
        y = exec_left(s, "ye", y, op_count);
    y = exec_collect(m, exec_fresh(s, "z"), y, idx, "E", "C");
    y = exec_product(m, exec_fresh(s, "y"), y, w,
                     etch_text(m->arena, sums ? "B S %s" : "B S Q %s", to->name));
    if (exec_roll(s->dice, 3) == 0) {
        etch_tensor *aux = exec_call_row(m, exec_fresh(s, "aux"), "load_balance", "E", p, idx, NULL);
        exec_tag(m, exec_call_number(m, exec_fresh(s, "aux"), "scale", 1, 4, aux), "loss");
    }
    if (sums)
        exec_keep_value(s, y);
    else
        exec_keep_value(s, exec_reduce(m, exec_fresh(s, "y"), y, etch_text(m->arena, "B S %s", to->name)));
}

static void add_statements(exec_scene *s, uint32_t count);

/* One value or several, at times a weight and indices, enter a module. */
static void enter_some(exec_scene *s, exec_scene *inside)
{
    exec_model *m = s->m;
    etch_tensor *some[3], *weight = NULL, *ids = s->modules ? s->ids : NULL;
    const uint32_t count = 1 + exec_roll(s->dice, 3);
    for (uint32_t i = 0; i < count; i++)
        some[i] = exec_any_value(s);
    if (s->weight_count && exec_roll(s->dice, 3) == 0)
        weight = s->weights[exec_roll(s->dice, s->weight_count)];
    if (!s->modules && exec_roll(s->dice, 3) == 0)
        ids = exec_ids(m, exec_fresh(s, "ids"), "B S");
    inside->names = s->names;
    inside->value_count = inside->weight_count = 0;
    inside->values[inside->value_count++] =
        exec_enter(m, etch_text(m->arena, "m%u", exec_roll(s->dice, 2)), some[0]);
    for (uint32_t i = 1; i < count; i++)
        inside->values[inside->value_count++] = pass(s, some[i]);
    if (weight && weight->scope == s->m->graph->scope->parent)
        inside->weights[inside->weight_count++] = pass(s, weight);
    inside->ids = ids ? pass(s, ids) : NULL;
}

static void add_module(exec_scene *s)
{
    if (s->modules == 3)
        return;
    exec_scene inside = *s;
    const uint32_t op_count = s->m->graph->op_count;
    inside.modules++;
    enter_some(s, &inside);
    add_statements(&inside, 1 + exec_roll(s->dice, 4));
    s->names = inside.names;
    s->loops = inside.loops;
    exec_keep_value(s, exec_left(s, "y", exec_any_value(&inside), op_count));
}

/* A loop hands on what it was handed. */
static etch_tensor *as_wide_as(exec_scene *s, etch_tensor *y, const etch_tensor *x)
{
    return y->dtype == x->dtype ? y : exec_cast(s->m, exec_fresh(s, "c"), y, x->dtype);
}

/* `x`, changed by some value of the same or fewer dims. */
static etch_tensor *changed(exec_scene *s, etch_tensor *x)
{
    etch_tensor *y = exec_any_value(s);
    exec_dim_set shared = {.count = 0};
    for (uint32_t i = 0; i < y->rank; i++)
        if (etch_has_dim(x, y->dims[i]))
            exec_dim_set_add(&shared, y->dims[i]);
    if (y->rank == x->rank && shared.count == x->rank && exec_roll(s->dice, 2))
        return as_wide_as(s, y, x);
    etch_tensor *part = exec_reduce(s->m, y->name, y, exec_dims_text(s, shared));
    return as_wide_as(s, exec_sum(s->m, exec_fresh(s, "x"), x, exec_squashed(s, part)), x);
}

/* What one class of iterations does, with what was there before the loop and what it is handed. It may do
 * nothing. */
static void add_body(exec_scene *s, uint32_t loops, etch_tensor *const *ins, etch_tensor **outs,
                     uint32_t count, bool may_rest)
{
    exec_scene inside = *s;
    inside.depth++;
    inside.loops = loops;
    for (uint32_t i = 0; i < count; i++)
        exec_keep_value(&inside, outs[i] = ins[i]);
    if (!may_rest || exec_roll(s->dice, 4)) {
        add_statements(&inside, 2 + exec_roll(s->dice, 4));
        for (uint32_t i = 0; i < count; i++)
            outs[i] = changed(&inside, ins[i]);
    }
    s->names = inside.names;
    s->loops = inside.loops;
}

/* One segment or two, and a period: each residue of each has some class. */
static etch_pattern *any_pattern(exec_scene *s, uint32_t iterations, uint32_t classes)
{
    etch_arena *arena = s->m->arena;
    etch_pattern *pattern = ETCH_NEW(arena, etch_pattern);
    const uint32_t cut = exec_roll(s->dice, iterations + 1);
    pattern->period = 1 + exec_roll(s->dice, 3);
    for (uint32_t i = 0; i < 2; i++) {
        etch_segment segment = {.first = etch_int(s->m->sym, i ? cut : 0),
                                .end = etch_int(s->m->sym, i ? iterations : cut),
                                .class_of = ETCH_NEW_ARRAY(arena, pattern->period, uint32_t)};
        for (uint32_t r = 0; r < pattern->period; r++)
            segment.class_of[r] = exec_roll(s->dice, classes);
        ETCH_PUSH(arena, &pattern->segments, segment);
    }
    return pattern;
}

/* Of each class there are iterations: without them a spec has no body. */
static const etch_pattern *random_pattern(exec_scene *s, const etch_loop *loop)
{
    const uint32_t iterations = exec_integer(loop->count), classes = loop->bodies.count;
    etch_loop tried = *loop;
    for (uint32_t seen = 0; seen + 1 != 1u << classes;) {
        tried.pattern = any_pattern(s, iterations, classes);
        seen = 0;
        for (uint32_t i = 0; i < iterations; i++)
            seen |= 1u << exec_class(&tried, i);
    }
    return tried.pattern;
}

static void set_classes(exec_scene *s, etch_loop *loop, const etch_pattern *pattern)
{
    etch_graph_classes(s->m->graph, loop, pattern);
    for (uint32_t k = 0; k < loop->bodies.count; k++) {
        uint32_t members = 0;
        for (uint32_t i = 0; i < exec_integer(loop->count); i++)
            members += exec_class(loop, i) == k;
        ck_assert_uint_eq(exec_integer(loop->bodies.at[k]->count), members);
    }
}

static const etch_tensor *under_views(const etch_tensor *x)
{
    while (x->producer && x->producer->row->role == ETCH_ROLE_FREE)
        x = x->producer->ins[0];
    return x;
}

enum { MOST_CARRIED = 3 };

/* What the carried values of a loop are. */
typedef struct carried {
    uint32_t count;
    bool is_late; /* the second is what the first was an iteration before, the third what the second was */
    etch_tensor *ins[MOST_CARRIED], *outs[MOST_CARRIED];
} carried;

/* The end of a body. Which value leaves the loop must not depend on the number of iterations: none are
 * exchanged. */
static void carry_on(carried *c)
{
    for (uint32_t i = 1; i < c->count && c->is_late; i++)
        c->outs[i] = c->ins[i - 1];
    if (c->count == 2 && under_views(c->outs[0]) == c->ins[1] && under_views(c->outs[1]) == c->ins[0])
        c->outs[1] = c->ins[1];
    if (c->is_late && under_views(c->outs[0]) != c->ins[0])
        for (uint32_t i = 1; i < c->count; i++)
            if (under_views(c->outs[0]) == c->ins[i])
                c->outs[0] = c->ins[0];
}

/* Hands on one value or two, or three. Half of the loops have iterations of several classes. */
static void add_loop(exec_scene *s)
{
    if (s->depth == 2 || s->loops == 3)
        return;
    exec_model *m = s->m;
    carried c = {.count = 1 + exec_roll(s->dice, 2)};
    uint32_t iterations = 2 + exec_roll(s->dice, 2);
    if (s->wide) {
        static const uint32_t counts[] = {0, 1, 1, 2, 3, 4, 5};
        iterations = counts[exec_roll(s->dice, sizeof counts / sizeof *counts)];
        c.is_late = exec_roll(s->dice, 3) == 0;
        c.count = c.is_late ? 2 + exec_roll(s->dice, 2) : c.count;
    }
    const bool uniform = exec_roll(s->dice, 2) || iterations < 2;
    const uint32_t classes = uniform ? 1 : 2 + exec_roll(s->dice, iterations < 4 ? iterations - 1 : 3);
    etch_tensor *inits[] = {exec_any_value(s), exec_any_value(s), exec_any_value(s)}, *results[MOST_CARRIED];
    etch_loop *loop = etch_graph_begin(m->graph, etch_text(m->arena, "loop%u", s->loops),
                                       etch_int(m->sym, iterations), nowhere);
    for (uint32_t i = 0; i < c.count; i++)
        c.ins[i] = etch_graph_carry(m->graph, inits[c.is_late ? 0 : i], nowhere);
    add_body(s, s->loops + 1, c.ins, c.outs, c.count, classes > 1);
    for (uint32_t k = 1; k < classes; k++) {
        carry_on(&c);
        etch_graph_next_body(m->graph, c.outs, c.ins, c.count);
        add_body(s, s->loops, c.ins, c.outs, c.count, true);
    }
    carry_on(&c);
    etch_graph_end(m->graph, c.outs, results, c.count);
    if (classes > 1)
        set_classes(s, loop, random_pattern(s, loop));
    for (uint32_t i = 0; i < c.count; i++)
        exec_keep_value(s, results[i]);
}

static void add_statements(exec_scene *s, uint32_t count)
{
    static void (*const statements[])(exec_scene *) = {
        add_projection, add_projection, add_projection, add_gain,      add_sum,       add_sum,
        add_product,    add_function,   add_number,     add_norm,      add_reduction, add_stopped,
        add_view,       add_lookup,     add_parts,      add_regrouped, add_attention, add_attention,
        add_quotient,   add_terms,      add_module,     add_loop,      add_objective, add_experts,
        add_experts,    add_copies,     add_constant,   add_scatter,   add_cast,      add_contrast};
    static void (*const rare[])(exec_scene *) = {add_contrast, add_contrast, add_constant, add_scatter};
    for (uint32_t i = 0; i < count && s->value_count < EXEC_MOST_VALUES - 4; i++) {
        if (s->m->graph->serves && exec_roll(s->dice, 3) == 0)
            exec_add_cached(s);
        else if (s->rich && exec_roll(s->dice, 2))
            exec_add_kind(s);
        else if (s->rich && exec_roll(s->dice, 4) == 0)
            rare[exec_roll(s->dice, sizeof rare / sizeof *rare)](s);
        else
            statements[exec_roll(s->dice, sizeof statements / sizeof *statements)](s);
    }
}

/* ---- models ----------------------------------------------------------------------------------------- */

static void add_loss(exec_scene *s)
{
    etch_tensor *x = exec_any_value(s);
    exec_dim_set rest = exec_dims_of(x, NULL);
    etch_dim *v = exec_model_dim(s->m, "V");
    rest = exec_dims_without(exec_dims_without(rest, exec_model_dim(s->m, "B")), exec_model_dim(s->m, "S"));
    if (rest.count + 2 == x->rank && rest.count == 1 && rest.at[0] != v) {
        exec_dim_set_add(&rest, v);
        exec_head_loss(s->m, x, exec_weight_with(s, rest));
        return;
    }
    exec_sum_loss(s->m, x, exec_dims_text(s, exec_dims_of(x, NULL)));
}

/* All but the last weight may stay as they are, and buffers do. */
static void freeze_some(exec_scene *s)
{
    const etch_graph *graph = s->m->graph;
    const bool some = exec_roll(s->dice, 2);
    uint32_t last = graph->weights.count;
    while (last && graph->weights.at[last - 1]->buffer)
        last--;
    for (uint32_t i = 0; some && i + 1 < last; i++)
        graph->weights.at[i]->frozen = exec_roll(s->dice, 2) || graph->weights.at[i]->buffer;
}

static exec_scene scene_of(etch_arena *arena, exec_dice *dice, const char *dims, uint32_t micros)
{
    return (exec_scene){.m = exec_model_new(arena, dims, 1u << exec_roll(dice, micros)), .dice = dice};
}

static void add_first(exec_scene *s)
{
    static const char *const inputs[] = {"B S H", "B S F", "B H"};
    exec_keep_value(s, exec_input(s->m, "x", inputs[exec_roll(s->dice, 3)]));
    add_statements(s, 4 + exec_roll(s->dice, 10));
}

static exec_model *trained(exec_scene *s, const char **recompute)
{
    add_first(s);
    for (uint32_t i = 0; s->wide && i < 2 && exec_roll(s->dice, 3); i++)
        add_loop(s); /* layers for stages */
    if (exec_roll(s->dice, 4) == 0)
        add_loss(s);
    exec_keep_value(s, s->values[s->value_count - 1]);
    add_projection(s); /* at least one weight */
    add_loss(s);
    freeze_some(s);
    if (!s->as_written)
        etch_graph_join_sums(s->m->graph, NULL, 0);
    exec_spec_name(s->m);
    *recompute = exec_random_recompute(s->m, s->loops, s->dice);
    return s->m;
}

exec_model *exec_random_model(etch_arena *arena, exec_dice *dice, const char **recompute)
{
    exec_scene s = scene_of(arena, dice, sizes, 2);
    return trained(&s, recompute);
}

exec_model *exec_random_as_written(etch_arena *arena, exec_dice *dice, const char **recompute)
{
    exec_scene s = scene_of(arena, dice, rich_sizes[exec_roll(dice, 3)], 2);
    s.rich = s.as_written = true;
    return trained(&s, recompute);
}

exec_model *exec_random_odd_model(etch_arena *arena, exec_dice *dice, const char **recompute)
{
    exec_scene s = scene_of(arena, dice, odd_sizes[exec_roll(dice, 3)], 2);
    return trained(&s, recompute);
}

exec_model *exec_random_wide_model(etch_arena *arena, exec_dice *dice, const char **recompute)
{
    exec_scene s = scene_of(arena, dice, sizes, 3);
    s.wide = true;
    return trained(&s, recompute);
}

exec_model *exec_random_rich_model(etch_arena *arena, exec_dice *dice, const char **recompute)
{
    exec_scene s = scene_of(arena, dice, rich_sizes[exec_roll(dice, 3)], 2);
    s.rich = true;
    return trained(&s, recompute);
}

static exec_model *padded(etch_arena *arena, exec_dice *dice, bool wide, const char **recompute)
{
    exec_scene s = scene_of(arena, dice, padded_sizes[exec_roll(dice, 3)], 2);
    s.rich = true;
    s.wide = wide;
    return trained(&s, recompute);
}

exec_model *exec_random_padded_model(etch_arena *arena, exec_dice *dice, const char **recompute)
{
    return padded(arena, dice, false, recompute);
}

exec_model *exec_random_wide_padded_model(etch_arena *arena, exec_dice *dice, const char **recompute)
{
    return padded(arena, dice, true, recompute);
}

/* What is served may need no cache. */
static void mark_caches(exec_scene *s, const etch_region *region)
{
    for (uint32_t i = 0; i < region->items.count; i++) {
        const etch_op *op = region->items.at[i].op;
        const etch_loop *loop = region->items.at[i].loop;
        if (op && strcmp(etch_row_name(op->row), "append") == 0)
            exec_mark(s, op->attrs.window ? EXEC_KIND_ROLLING : EXEC_KIND_CACHE);
        for (uint32_t k = 0; loop && k < loop->bodies.count; k++)
            mark_caches(s, loop->bodies.at[k]);
    }
}

etch_training *exec_random_served_model(etch_arena *arena, exec_dice *dice, exec_model **model)
{
    exec_scene s = scene_of(arena, dice, served_sizes[exec_roll(dice, 3)], 1);
    *model = s.m;
    s.m->graph->serves = s.rich = true;
    add_first(&s);
    exec_add_cached(&s);
    exec_keep_value(&s, s.values[s.value_count - 1]);
    add_projection(&s);
    etch_graph_join_sums(s.m->graph, NULL, 0);
    exec_spec_name(s.m);
    etch_training *training = exec_serve(s.m, s.m->served = s.values[s.value_count - 1]);
    mark_caches(&s, s.m->graph->forward);
    return training;
}
