#include "exec_random.h"

#include "exec_dim_set.h"
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
const char *const exec_inner_dims[] = {"S", "T", "H", "H'", "F", "K", "D", "V"};
const char *const exec_expert_dims[] = {"E", "C", "Q"};
enum { INNER = EXEC_INNER_DIMS, MAX_VALUES = 64, MAX_ELEMENTS = 1024 };

uint32_t exec_roll(exec_dice *dice, uint32_t sides)
{
    dice->state++;
    return (uint32_t)(exec_mix(dice->state, 0) % sides);
}

/* What statements may use: in a module, what has entered it, and what it makes. Values of an ended loop or
 * module are forgotten. */
typedef struct scene {
    exec_model *m;
    exec_dice *dice;
    etch_tensor *values[MAX_VALUES], *weights[MAX_VALUES];
    etch_tensor *ids; /* in a module: indices that have entered it, or NULL */
    uint32_t value_count, weight_count, depth, modules, names, loops;
    bool wide; /* loops of any count, and values that arrive two iterations late */
} scene;

/* ---- choices ---------------------------------------------------------------------------------------- */

static const char *fresh(scene *s, const char *prefix)
{
    return etch_text(s->m->arena, "%s%u", prefix, s->names++);
}

/* Recent values are likelier, as in models. */
static etch_tensor *any_value(scene *s)
{
    uint32_t back = exec_roll(s->dice, 3) ? 3 : s->value_count;
    return s->values[s->value_count - 1 - exec_roll(s->dice, back < s->value_count ? back : s->value_count)];
}

/* A dim of the value, not the batch; NULL when it has no other. */
static etch_dim *any_dim(scene *s, const etch_tensor *x)
{
    uint32_t start = exec_roll(s->dice, x->rank);
    for (uint32_t i = 0; i < x->rank; i++) {
        etch_dim *dim = x->dims[(start + i) % x->rank];
        if (strcmp(dim->name, "B") != 0)
            return dim;
    }
    return NULL;
}

/* A dim that the value lacks, or NULL. */
static etch_dim *new_dim(scene *s, const etch_tensor *x)
{
    for (int tries = 0; tries < 8; tries++) {
        etch_dim *dim = exec_model_dim(s->m, exec_inner_dims[exec_roll(s->dice, INNER)]);
        if (!etch_has_dim(x, dim))
            return dim;
    }
    return NULL;
}

static const char *text_of(scene *s, exec_dim_set set)
{
    etch_buf text = {.arena = s->m->arena};
    etch_buf_puts(&text, "");
    for (uint32_t i = 0; i < set.count; i++)
        etch_buf_printf(&text, "%s ", set.at[i]->name);
    return text.text;
}

static bool is_small(exec_dim_set set)
{
    uint32_t elements = 1;
    for (uint32_t i = 0; i < set.count; i++)
        elements *= exec_integer(set.at[i]->size);
    return set.count <= 4 && elements <= MAX_ELEMENTS;
}

/* A weight with these dims: at times one that is there already. */
static etch_tensor *weight_with(scene *s, exec_dim_set set)
{
    for (uint32_t i = 0; i < s->weight_count && exec_roll(s->dice, 3) == 0; i++) {
        if (s->weights[i]->scope != s->m->graph->scope)
            continue;
        exec_dim_set both = exec_dims_of(s->weights[i], NULL);
        for (uint32_t k = 0; k < set.count; k++)
            exec_dim_set_add(&both, set.at[k]);
        if (both.count == set.count && s->weights[i]->rank == set.count)
            return s->weights[i];
    }
    etch_tensor *weight = exec_weight(s->m, fresh(s, "w"), text_of(s, set));
    if (s->weight_count < MAX_VALUES)
        s->weights[s->weight_count++] = weight;
    return weight;
}

static void keep(scene *s, etch_tensor *value)
{
    if (exec_roll(s->dice, 4) == 0 && value->producer)
        exec_tag(s->m, value, etch_text(s->m->arena, "t%u", exec_roll(s->dice, 4)));
    if (s->value_count < MAX_VALUES)
        s->values[s->value_count++] = value;
}

/* ---- statements ------------------------------------------------------------------------------------- */

/* Keeps numbers small. */
static etch_tensor *squashed(scene *s, etch_tensor *x)
{
    static const char *const functions[] = {"tanh", "sigmoid"};
    return exec_call_row(s->m, fresh(s, "u"), functions[exec_roll(s->dice, 2)], "", x, NULL, NULL);
}

static void add_projection(scene *s)
{
    etch_tensor *x = any_value(s);
    etch_dim *from = any_dim(s, x), *to = new_dim(s, x);
    exec_dim_set keeps = exec_dims_without(exec_dims_of(x, NULL), from),
                 of_weight = {.at = {from}, .count = 1};
    if (!from || !to)
        return;
    exec_dim_set_add(&keeps, to);
    exec_dim_set_add(&of_weight, to);
    etch_dim *more = new_dim(s, x);
    if (more && exec_roll(s->dice, 3) == 0) {
        exec_dim_set_add(&keeps, more);
        exec_dim_set_add(&of_weight, more);
    }
    if (is_small(keeps))
        keep(s, exec_product(s->m, fresh(s, "p"), x, weight_with(s, of_weight), text_of(s, keeps)));
}

/* Times a weight, or plus one. */
static void add_gain(scene *s)
{
    etch_tensor *x = any_value(s);
    exec_dim_set some = {.count = 0};
    for (uint32_t i = 0; i < x->rank; i++)
        if (strcmp(x->dims[i]->name, "B") != 0 && (some.count == 0 || exec_roll(s->dice, 3) == 0))
            exec_dim_set_add(&some, x->dims[i]);
    if (some.count == 0)
        return;
    etch_tensor *weight = weight_with(s, some);
    if (exec_roll(s->dice, 2))
        keep(s, exec_product(s->m, fresh(s, "g"), x, weight, text_of(s, exec_dims_of(x, weight))));
    else
        keep(s, exec_sum(s->m, fresh(s, "b"), x, weight));
}

static void add_sum(scene *s)
{
    etch_tensor *x = any_value(s), *y = any_value(s);
    if (!is_small(exec_dims_of(x, y)))
        return;
    keep(s, exec_roll(s->dice, 4) ? exec_sum(s->m, fresh(s, "s"), x, y)
                                  : exec_difference(s->m, fresh(s, "s"), x, y));
}

/* Of several terms, which are broadcast to the first. */
static void add_terms(scene *s)
{
    etch_tensor *terms[4] = {any_value(s)};
    const uint32_t count = 3 + exec_roll(s->dice, 2);
    for (uint32_t i = 1; i < count; i++) {
        etch_tensor *other = any_value(s);
        terms[i] = etch_covers(terms[0], other) ? other : terms[0];
    }
    keep(s, exec_sum_of(s->m, fresh(s, "s"), terms, count, 1 + exec_roll(s->dice, count)));
}

/* Of two values, over at most one of the dims that they share. */
static void add_product(scene *s)
{
    etch_tensor *x = any_value(s), *y = any_value(s);
    exec_dim_set keeps = exec_dims_of(x, y);
    etch_dim *summed = any_dim(s, x);
    if (summed && etch_has_dim(y, summed) && keeps.count > 1 && exec_roll(s->dice, 2))
        keeps = exec_dims_without(keeps, summed);
    if (is_small(keeps))
        keep(s, squashed(s, exec_product(s->m, fresh(s, "m"), x, y, text_of(s, keeps))));
}

static void add_function(scene *s)
{
    static const char *const functions[] = {"silu",     "gelu",     "tanh", "sigmoid",
                                            "softplus", "softplus", "abs",  "transpose"};
    const char *row = functions[exec_roll(s->dice, sizeof functions / sizeof *functions)];
    keep(s, exec_call_row(s->m, fresh(s, "f"), row, "", any_value(s), NULL, NULL));
}

static void add_number(scene *s)
{
    static const char *const rows[] = {"scale", "shift", "dropout", "softcap"};
    const char *row = rows[exec_roll(s->dice, 4)];
    keep(s, exec_call_number(s->m, fresh(s, "n"), row, 1, 4, any_value(s)));
}

static void add_norm(scene *s)
{
    etch_tensor *x = any_value(s);
    etch_dim *over = any_dim(s, x);
    const exec_dim_set along = {.at = {over}, .count = 1};
    const char *name = fresh(s, "n");
    if (!over)
        return;
    switch (exec_roll(s->dice, 4)) {
    case 0:
        keep(s, exec_call_row(s->m, name, "rms_norm", over->name, x, weight_with(s, along), NULL));
        break;
    case 1:
        keep(s, exec_call_row(s->m, name, "rms_norm", over->name, x, NULL, NULL));
        break;
    case 2:
        keep(s, exec_call_row(s->m, name, "layer_norm", over->name, x, weight_with(s, along),
                              weight_with(s, along)));
        break;
    default:
        keep(s, exec_call_row(s->m, name, exec_roll(s->dice, 2) ? "softmax" : "rope", over->name, x, NULL,
                              NULL));
        break;
    }
}

static void add_reduction(scene *s)
{
    etch_tensor *x = any_value(s);
    etch_dim *over = any_dim(s, x);
    if (over && x->rank > 1 && exec_roll(s->dice, 2))
        keep(s, exec_call_row(s->m, fresh(s, "r"), exec_roll(s->dice, 2) ? "max" : "mean", over->name, x,
                              NULL, NULL));
    else if (over && x->rank > 1)
        keep(s,
             exec_reduce(s->m, fresh(s, "r"), x, text_of(s, exec_dims_without(exec_dims_of(x, NULL), over))));
}

static void add_stopped(scene *s)
{
    etch_tensor *x = any_value(s);
    etch_dim *over = x->rank > 1 ? any_dim(s, x) : NULL;
    etch_tensor *most = over ? exec_call_row(s->m, fresh(s, "r"), "max", over->name, x, NULL, NULL) : x;
    keep(s, exec_sum(s->m, fresh(s, "x"), x,
                     exec_call_row(s->m, fresh(s, "h"), "stop_gradient", "", most, NULL, NULL)));
}

static void add_view(scene *s)
{
    static const char *const pairs[][2] = {{"S", "T"},  {"T", "S"}, {"H", "H'"},
                                           {"H'", "H"}, {"F", "D"}, {"V", "K"}};
    etch_tensor *x = any_value(s);
    uint32_t pair = exec_roll(s->dice, sizeof pairs / sizeof *pairs);
    const char *from = pairs[pair][0], *to = pairs[pair][1];
    if (!etch_has_dim(x, exec_model_dim(s->m, from)) || etch_has_dim(x, exec_model_dim(s->m, to)))
        return;
    keep(s, pair < 4 ? exec_rename(s->m, fresh(s, "v"), x, from, to)
                     : exec_slice(s->m, fresh(s, "v"), x, from, to));
}

/* A sequence in chunks, and as it was. */
static void add_chunks(scene *s, etch_tensor *x)
{
    etch_tensor *chunks = exec_regroup(s->m, fresh(s, "v"), x, "S", "Z Y");
    keep(s, exec_regroup(s->m, fresh(s, "v"), squashed(s, chunks), "Z Y", "S"));
}

/* Two dims as one, and back: the same dims, or others that are inside. */
static void add_regrouped(scene *s)
{
    static const char *const pairs[][4] = {
        {"S", "H", "S H", "M"}, {"H", "S", "H S", "M"}, {"F", "K", "F K", "M'"}};
    etch_tensor *x = any_value(s);
    const uint32_t pair = exec_roll(s->dice, sizeof pairs / sizeof *pairs);
    const char *parts = pairs[pair][2], *whole = pairs[pair][3];
    if (etch_has_dim(x, exec_model_dim(s->m, "S")) && exec_mix(s->dice->state, pair) % 4 == 0) {
        add_chunks(s, x);
        return;
    }
    if (!etch_has_dim(x, exec_model_dim(s->m, pairs[pair][0])) ||
        !etch_has_dim(x, exec_model_dim(s->m, pairs[pair][1])))
        return;
    etch_tensor *merged = exec_regroup(s->m, fresh(s, "v"), x, parts, whole);
    if (exec_roll(s->dice, 2))
        merged = squashed(s, merged);
    keep(s,
         exec_regroup(s->m, fresh(s, "v"), merged, whole, pairs[pair == 2 ? 2 : exec_roll(s->dice, 2)][2]));
}

/* Apart and together again, one part changed. */
static void add_parts(scene *s)
{
    exec_model *m = s->m;
    etch_tensor *x = any_value(s), *out[2];
    etch_dim *whole = exec_model_dim(m, "F"), *half = exec_model_dim(m, "L");
    if (!etch_has_dim(x, whole))
        return;
    exec_dim_set all = exec_dims_of(x, NULL), part = exec_dims_without(all, whole);
    exec_dim_set_add(&part, half);
    const char *const parts[] = {text_of(s, part), text_of(s, part), NULL};
    exec_split(m, x, "F", parts, out);
    etch_tensor *other =
        exec_roll(s->dice, 2) ? weight_with(s, (exec_dim_set){.at = {half}, .count = 1}) : out[0];
    keep(s, exec_concat(m, fresh(s, "c"), "L L", text_of(s, all), squashed(s, out[1]), other, NULL));
}

/* An objective of its own, wherever it stands: at top level, in a loop or in a module. */
static void add_objective(scene *s)
{
    etch_tensor *x = any_value(s);
    if (exec_roll(s->dice, 3))
        return;
    if (s->modules == 0)
        exec_sum_loss(s->m, x, text_of(s, exec_dims_of(x, NULL)));
    else /* without an input: a module has none */
        exec_tag(s->m, exec_product(s->m, "l", x, squashed(s, x), ""), "loss");
}

static void add_lookup(scene *s)
{
    etch_dim *dim = exec_model_dim(s->m, exec_roll(s->dice, 2) ? "H" : "F");
    exec_dim_set set = {.at = {exec_model_dim(s->m, "V"), dim}, .count = 2};
    etch_tensor *ids = s->modules ? s->ids : exec_ids(s->m, fresh(s, "ids"), "B S");
    if (!ids)
        return;
    keep(s, exec_call_row(s->m, fresh(s, "e"), "gather", "V", weight_with(s, set), ids, NULL));
}

/* Along a dim that the value lacks. */
static void add_copies(scene *s)
{
    etch_tensor *x = any_value(s);
    etch_dim *more = new_dim(s, x);
    exec_dim_set all = exec_dims_of(x, NULL);
    if (more)
        exec_dim_set_add(&all, more);
    if (more && is_small(all))
        keep(s, exec_copies(s->m, fresh(s, "k"), x, text_of(s, all)));
}

/* Every sequence with every one of its microbatch. */
static void add_contrast(scene *s)
{
    etch_tensor *x = any_value(s);
    if (x->rank != 2 || !etch_has_dim(x, exec_model_dim(s->m, "B")))
        return;
    etch_tensor *others = exec_rename(s->m, fresh(s, "v"), x, "B", "B'");
    etch_tensor *y = squashed(s, exec_product(s->m, fresh(s, "m"), x, others, "B B'"));
    y = exec_product(s->m, fresh(s, "m"), y, others, text_of(s, exec_dims_of(x, NULL)));
    keep(s, y);
}

/* What follows is wide, too. */
static void add_cast(scene *s)
{
    keep(s, exec_cast(s->m, fresh(s, "c"), any_value(s), exec_roll(s->dice, 3) ? ETCH_F32 : ETCH_BF16));
}

/* Some number along some of the value's dims; or rows of a table for the places of a dim. */
static void add_constant(scene *s)
{
    exec_model *m = s->m;
    etch_tensor *x = any_value(s), *with;
    exec_dim_set some = {.count = 0};
    etch_dim *along = any_dim(s, x);
    for (uint32_t i = 0; i < x->rank; i++)
        if (exec_roll(s->dice, 2))
            exec_dim_set_add(&some, x->dims[i]);
    if (along && strcmp(along->name, "V") != 0 && exec_roll(s->dice, 2)) {
        const exec_dim_set table = {.at = {exec_model_dim(m, "V")}, .count = 1};
        with = exec_call_row(m, fresh(s, "e"), "gather", "V", weight_with(s, table),
                             exec_constant(m, fresh(s, "i"), along->name, 0, 0), NULL);
    } else {
        with = exec_constant(m, fresh(s, "z"), text_of(s, some), 1 - (int)exec_roll(s->dice, 3), 2);
    }
    if (exec_roll(s->dice, 2))
        keep(s, exec_product(m, fresh(s, "m"), x, with, text_of(s, exec_dims_of(x, NULL))));
    else
        keep(s, exec_sum(m, fresh(s, "s"), x, with));
}

/* Rows of tokens added by index, of each sequence or of all. */
static void add_scatter(scene *s)
{
    etch_tensor *x = any_value(s), *ids = s->modules ? s->ids : exec_ids(s->m, fresh(s, "ids"), "B S");
    etch_dim *table = exec_model_dim(s->m, "V");
    if (!ids || !etch_covers(x, ids) || etch_has_dim(x, table))
        return;
    exec_dim_set of_y = exec_dims_without(exec_dims_of(x, NULL), exec_model_dim(s->m, "S"));
    exec_dim_set_add(&of_y, table);
    if (is_small(of_y))
        keep(s, exec_scatter(s->m, fresh(s, "y"), x, ids, "V", text_of(s, of_y)));
}

/* A quotient: nowhere near a pole. */
static void add_quotient(scene *s)
{
    etch_tensor *x = any_value(s), *y = any_value(s);
    if (!is_small(exec_dims_of(x, y)))
        return;
    y = exec_call_row(s->m, fresh(s, "u"), "square", "", squashed(s, y), NULL, NULL);
    y = exec_call_row(s->m, fresh(s, "u"), "rsqrt", "",
                      exec_call_number(s->m, fresh(s, "u"), "shift", 1, 2, y), NULL, NULL);
    if (exec_roll(s->dice, 2))
        keep(s, exec_quotient(s->m, fresh(s, "q"), x, y, text_of(s, exec_dims_of(x, y))));
    else
        keep(s, exec_product(s->m, fresh(s, "q"), x,
                             exec_call_row(s->m, fresh(s, "u"), "reciprocal", "", y, NULL, NULL),
                             text_of(s, exec_dims_of(x, y))));
}

/* Dims of a bias or a sink: some of those given, at least one. */
static etch_tensor *some_weight(scene *s, exec_dim_set all)
{
    exec_dim_set some = {.count = 0};
    for (uint32_t i = 0; i < all.count; i++)
        if (exec_roll(s->dice, 2) || (i + 1 == all.count && some.count == 0))
            exec_dim_set_add(&some, all.at[i]);
    return weight_with(s, some);
}

static exec_options random_options(scene *s)
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
static void add_attention(scene *s)
{
    exec_model *m = s->m;
    etch_tensor *x = any_value(s);
    etch_dim *from = any_dim(s, x), *heads = exec_model_dim(m, "K"), *width = exec_model_dim(m, "D");
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
    etch_tensor *seen = exec_rename(m, fresh(s, "v"), x, "S", "T");
    etch_tensor *q = exec_product(m, fresh(s, "q"), x, weight_with(s, of_q), "B S K D");
    etch_tensor *k = exec_product(m, fresh(s, "k"), seen, weight_with(s, shared ? of_k : of_q), keys);
    etch_tensor *v = exec_product(m, fresh(s, "v"), seen, weight_with(s, shared ? of_k : of_q), keys);
    keep(s, exec_attend_with(m, fresh(s, "o"), q, k, v, "T", "D", random_options(s)));
}

/* Into the module in work. */
static etch_tensor *pass(scene *s, etch_tensor *value)
{
    return etch_graph_pass(s->m->graph, ETCH_ENTER, value, value->name, nowhere);
}

/* Ends a module: its statement made all ops since there were `op_count`. */
static etch_tensor *leave(scene *s, const char *prefix, etch_tensor *value, uint32_t op_count)
{
    etch_tensor *left = exec_leave(s->m, fresh(s, prefix), value);
    etch_graph_state(s->m->graph, left, op_count);
    return left;
}

/* Experts on values with B, S and one more dim, at times as a module of their own. */
static void add_experts(scene *s)
{
    exec_model *m = s->m;
    etch_tensor *x = any_value(s);
    etch_dim *from = any_dim(s, x), *to = new_dim(s, x), *e = exec_model_dim(m, "E");
    if (x->rank != 3 || !etch_has_dim(x, exec_model_dim(m, "S")) || !from || from->id == 1 || !to ||
        !etch_has_dim(x, exec_model_dim(m, "B")))
        return;
    exec_dim_set of_router = {.at = {from, e}, .count = 2}, of_expert = {.at = {e, from, to}, .count = 3};
    bool apart = exec_roll(s->dice, 2), sums = exec_roll(s->dice, 3);
    etch_tensor *r = exec_product(m, fresh(s, "r"), x, weight_with(s, of_router), "B S E");
    etch_tensor *p = exec_call_row(m, fresh(s, "p"), "sigmoid", "", r, NULL, NULL);
    etch_tensor *idx = exec_topk(m, fresh(s, "idx"), p, "E", "Q");
    etch_tensor *w = exec_call_row(m, fresh(s, "w"), "gather", "E", p, idx, NULL);
    w = exec_call_row(m, fresh(s, "w"), exec_roll(s->dice, 2) ? "normalize" : "softmax", "Q", w, NULL, NULL);
    etch_tensor *in = exec_dispatch(m, fresh(s, "xe"), x, idx, "B S", "C");
    const uint32_t op_count = m->graph->op_count;
    if (apart)
        in = exec_enter(m, etch_text(m->arena, "m%u", exec_roll(s->dice, 2)), in);
    etch_tensor *y = exec_product(m, fresh(s, "ye"), in, weight_with(s, of_expert),
                                  etch_text(m->arena, "E C %s", to->name));
    y = squashed(s, y);
    if (apart)
        y = leave(s, "ye", y, op_count);
    y = exec_collect(m, fresh(s, "z"), y, idx, "E", "C");
    y = exec_product(m, fresh(s, "y"), y, w, etch_text(m->arena, sums ? "B S %s" : "B S Q %s", to->name));
    if (exec_roll(s->dice, 3) == 0) {
        etch_tensor *aux = exec_call_row(m, fresh(s, "aux"), "load_balance", "E", p, idx, NULL);
        exec_tag(m, exec_call_number(m, fresh(s, "aux"), "scale", 1, 4, aux), "loss");
    }
    if (sums)
        keep(s, y);
    else
        keep(s, exec_reduce(m, fresh(s, "y"), y, etch_text(m->arena, "B S %s", to->name)));
}

/* Of `x`, through weights that have `inner`: it is partial where that is divided. As it is, or in a module;
 * with a bias, and with what is linear in it. */
static etch_tensor *branch(scene *s, etch_tensor *x, etch_dim *along, etch_dim *inner)
{
    exec_model *m = s->m;
    const exec_dim_set of_weight = {.at = {along, inner}, .count = 2}, of_bias = {.at = {along}, .count = 1};
    exec_dim_set wide = exec_dims_without(exec_dims_of(x, NULL), along);
    exec_dim_set_add(&wide, inner);
    const char *dims = text_of(s, exec_dims_of(x, NULL));
    etch_tensor *h = exec_product(m, fresh(s, "h"), x, weight_with(s, of_weight), text_of(s, wide));
    const uint32_t op_count = m->graph->op_count;
    const bool apart = exec_roll(s->dice, 2);
    if (apart)
        h = exec_enter(m, etch_text(m->arena, "m%u", exec_roll(s->dice, 2)), h);
    etch_tensor *y = exec_product(m, fresh(s, "p"), h, weight_with(s, of_weight), dims);
    if (exec_roll(s->dice, 2))
        y = exec_sum(m, fresh(s, "b"), y, weight_with(s, of_bias));
    const uint32_t how = exec_roll(s->dice, 6);
    if (how < 2)
        y = exec_call_number(m, fresh(s, "n"), "scale", how ? 2 : -1, 1, y);
    else if (how == 2)
        y = exec_cast(m, fresh(s, "c"), y, y->dtype);
    else if (how == 3)
        y = exec_call_number(m, fresh(s, "n"), "shift", 1, 2, y);
    return apart ? leave(s, "y", y, op_count) : y;
}

/* Two of them beside each other, with what they are of, added in some order and under some names. */
static void add_branches(scene *s)
{
    exec_model *m = s->m;
    etch_tensor *x = any_value(s);
    etch_dim *along = any_dim(s, x), *inner = new_dim(s, x);
    exec_dim_set wide = exec_dims_of(x, NULL);
    if (!along || !inner)
        return;
    exec_dim_set_add(&wide, inner);
    if (!is_small(wide))
        return;
    etch_tensor *a = branch(s, x, along, inner), *b = branch(s, x, along, inner);
    etch_tensor *const terms[] = {a, x, b};
    const uint32_t how = exec_roll(s->dice, 4);
    if (how == 0)
        keep(s, exec_sum_of(m, fresh(s, "s"), terms, 3, 2 + exec_roll(s->dice, 2)));
    else if (how == 1)
        keep(s, exec_sum(m, fresh(s, "s"), exec_sum(m, fresh(s, "s"), x, a), b));
    else if (how == 2)
        keep(s, exec_sum(m, fresh(s, "s"), x, exec_difference(m, fresh(s, "s"), a, b)));
    else
        keep(s, exec_difference(m, fresh(s, "s"), x, exec_sum(m, fresh(s, "s"), a, b)));
}

static void add_statements(scene *s, uint32_t count);

/* One value or several, at times a weight and indices, enter a module. */
static void enter_some(scene *s, scene *inside)
{
    exec_model *m = s->m;
    etch_tensor *some[3], *weight = NULL, *ids = s->modules ? s->ids : NULL;
    const uint32_t count = 1 + exec_roll(s->dice, 3);
    for (uint32_t i = 0; i < count; i++)
        some[i] = any_value(s);
    if (s->weight_count && exec_roll(s->dice, 3) == 0)
        weight = s->weights[exec_roll(s->dice, s->weight_count)];
    if (!s->modules && exec_roll(s->dice, 3) == 0)
        ids = exec_ids(m, fresh(s, "ids"), "B S");
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

static void add_module(scene *s)
{
    if (s->modules == 3)
        return;
    scene inside = *s;
    const uint32_t op_count = s->m->graph->op_count;
    inside.modules++;
    enter_some(s, &inside);
    add_statements(&inside, 1 + exec_roll(s->dice, 4));
    s->names = inside.names;
    s->loops = inside.loops;
    keep(s, leave(s, "y", any_value(&inside), op_count));
}

/* A loop hands on what it was handed. */
static etch_tensor *as_wide_as(scene *s, etch_tensor *y, const etch_tensor *x)
{
    return y->dtype == x->dtype ? y : exec_cast(s->m, fresh(s, "c"), y, x->dtype);
}

/* `x`, changed by some value of the same or fewer dims. */
static etch_tensor *changed(scene *s, etch_tensor *x)
{
    etch_tensor *y = any_value(s);
    exec_dim_set shared = {.count = 0};
    for (uint32_t i = 0; i < y->rank; i++)
        if (etch_has_dim(x, y->dims[i]))
            exec_dim_set_add(&shared, y->dims[i]);
    if (y->rank == x->rank && shared.count == x->rank && exec_roll(s->dice, 2))
        return as_wide_as(s, y, x);
    etch_tensor *part = exec_reduce(s->m, y->name, y, text_of(s, shared));
    return as_wide_as(s, exec_sum(s->m, fresh(s, "x"), x, squashed(s, part)), x);
}

/* What one class of iterations does, with what was there before the loop and what it is handed. It may do
 * nothing. */
static void add_body(scene *s, uint32_t loops, etch_tensor *const *ins, etch_tensor **outs, uint32_t count,
                     bool may_rest)
{
    scene inside = *s;
    inside.depth++;
    inside.loops = loops;
    for (uint32_t i = 0; i < count; i++)
        keep(&inside, outs[i] = ins[i]);
    if (!may_rest || exec_roll(s->dice, 4)) {
        add_statements(&inside, 2 + exec_roll(s->dice, 4));
        for (uint32_t i = 0; i < count; i++)
            outs[i] = changed(&inside, ins[i]);
    }
    s->names = inside.names;
    s->loops = inside.loops;
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
static void add_loop(scene *s)
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
    etch_tensor *inits[] = {any_value(s), any_value(s), any_value(s)}, *results[MOST_CARRIED];
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
        exec_random_classes(s->m, loop, s->dice);
    for (uint32_t i = 0; i < c.count; i++)
        keep(s, results[i]);
}

static void add_statements(scene *s, uint32_t count)
{
    static void (*const statements[])(scene *) = {
        add_projection, add_projection, add_projection, add_gain,      add_sum,       add_sum,
        add_product,    add_function,   add_number,     add_norm,      add_reduction, add_stopped,
        add_view,       add_lookup,     add_parts,      add_regrouped, add_attention, add_attention,
        add_quotient,   add_terms,      add_module,     add_loop,      add_objective, add_experts,
        add_experts,    add_copies,     add_constant,   add_scatter,   add_cast,      add_contrast,
        add_branches,   add_branches};
    for (uint32_t i = 0; i < count && s->value_count < MAX_VALUES - 4; i++)
        statements[exec_roll(s->dice, sizeof statements / sizeof *statements)](s);
}

/* ---- models ----------------------------------------------------------------------------------------- */

static void add_loss(scene *s)
{
    etch_tensor *x = any_value(s);
    exec_dim_set rest = exec_dims_of(x, NULL);
    etch_dim *v = exec_model_dim(s->m, "V");
    rest = exec_dims_without(exec_dims_without(rest, exec_model_dim(s->m, "B")), exec_model_dim(s->m, "S"));
    if (rest.count + 2 == x->rank && rest.count == 1 && rest.at[0] != v) {
        exec_dim_set_add(&rest, v);
        exec_head_loss(s->m, x, weight_with(s, rest));
        return;
    }
    exec_sum_loss(s->m, x, text_of(s, exec_dims_of(x, NULL)));
}

/* All but the last weight may stay as they are. */
static void freeze_some(scene *s)
{
    const etch_graph *graph = s->m->graph;
    const bool some = exec_roll(s->dice, 2);
    for (uint32_t i = 0; some && i + 1 < graph->weights.count; i++)
        graph->weights.at[i]->frozen = exec_roll(s->dice, 2);
}

static exec_model *random_model(etch_arena *arena, exec_dice *dice, const char *dims, bool wide, bool joined,
                                const char **recompute)
{
    scene s = {
        .m = exec_model_new(arena, dims, 1u << exec_roll(dice, wide ? 3 : 2)), .dice = dice, .wide = wide};
    static const char *const inputs[] = {"B S H", "B S F", "B H"};
    keep(&s, exec_input(s.m, "x", inputs[exec_roll(dice, 3)]));
    add_statements(&s, 4 + exec_roll(dice, 10));
    for (uint32_t i = 0; wide && i < 2 && exec_roll(dice, 3); i++)
        add_loop(&s); /* layers for stages */
    if (exec_roll(dice, 4) == 0)
        add_loss(&s);
    keep(&s, s.values[s.value_count - 1]);
    add_projection(&s); /* at least one weight */
    add_loss(&s);
    freeze_some(&s);
    if (joined)
        etch_graph_join_sums(s.m->graph, NULL, 0);
    exec_spec_name(s.m);
    *recompute = exec_random_recompute(s.m, s.loops, dice);
    return s.m;
}

exec_model *exec_random_model(etch_arena *arena, exec_dice *dice, const char **recompute)
{
    return random_model(arena, dice, sizes, false, true, recompute);
}

exec_model *exec_random_model_as_written(etch_arena *arena, exec_dice *dice, const char **recompute)
{
    return random_model(arena, dice, sizes, false, false, recompute);
}

exec_model *exec_random_odd_model(etch_arena *arena, exec_dice *dice, const char **recompute)
{
    return random_model(arena, dice, odd_sizes[exec_roll(dice, 3)], false, true, recompute);
}

exec_model *exec_random_wide_model(etch_arena *arena, exec_dice *dice, const char **recompute)
{
    return random_model(arena, dice, sizes, true, true, recompute);
}
