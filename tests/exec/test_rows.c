/* Each row of the op table alone: what it computes, its gradients, its FLOP, and its work divided in every
 * way. */
#include "exec_check.h"
#include "exec_model.h"
#include "suite.h"

#include "graph/row_int.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const char dims[] =
    "B=4 S=8 T=8 H=4 H'=4 K=2 D=4 V=8 P=8 B'=4 W=32 W'=32 U=1 N=12 N'=13 Y=8 X=4 Y'=4 X'=2 KY=3 KX=3 C=4 M=4";
static const char *const names[] = {"B", "S", "T", "H", "K", "D", "V", "P", "W", "N", "Y", "C", "M"};

/* ---- one case for every row that a graph may have --------------------------------------------------- */

typedef struct row_case {
    const char *name;
    etch_tensor *(*build)(exec_model *m);
} row_case;

static etch_tensor *product(exec_model *m)
{
    return exec_product(m, "y", exec_weight(m, "a", "B S H"), exec_weight(m, "b", "H K D"), "B S K D");
}

static etch_tensor *batched_product(exec_model *m)
{
    return exec_product(m, "y", exec_weight(m, "a", "B S H"), exec_weight(m, "b", "B T H"), "B S T");
}

static etch_tensor *elementwise_product(exec_model *m)
{
    return exec_product(m, "y", exec_weight(m, "a", "B S"), exec_weight(m, "b", "B S H"), "B S H");
}

static etch_tensor *square(exec_model *m)
{
    etch_tensor *a = exec_weight(m, "a", "B S");
    return exec_product(m, "y", a, a, "B S");
}

static etch_tensor *broadcast_sum(exec_model *m)
{
    return exec_sum(m, "y", exec_weight(m, "a", "B H"), exec_weight(m, "b", "S H"));
}

static etch_tensor *difference(exec_model *m)
{
    etch_tensor *inner = exec_difference(m, "d", exec_weight(m, "a", "B S H"), exec_weight(m, "b", "H"));
    return exec_difference(m, "y", exec_weight(m, "c", "S H"), inner);
}

static etch_tensor *reduction(exec_model *m)
{
    return exec_call_row(m, "y", "sum", "S H", exec_weight(m, "a", "B S H"), NULL, NULL);
}

static etch_tensor *scaled(exec_model *m)
{
    return exec_call_number(m, "y", "scale", -3, 4, exec_weight(m, "a", "B S"));
}

static etch_tensor *shifted(exec_model *m)
{
    etch_tensor *y = exec_call_number(m, "y", "shift", 3, 4, exec_weight(m, "a", "B S"));
    return exec_product(m, "y", y, y, "B S");
}

static etch_tensor *passed(exec_model *m)
{
    etch_tensor *in = exec_enter(m, "module", exec_weight(m, "a", "B S"));
    return exec_leave(m, "y", exec_call_row(m, "y", "identity", "", in, NULL, NULL));
}

static etch_tensor *renamed(exec_model *m)
{
    return exec_rename(m, "y", exec_weight(m, "a", "B S H"), "S H", "T H'");
}

static etch_tensor *cached(exec_model *m)
{
    etch_tensor *a = exec_weight(m, "a", "B S");
    return exec_product(m, "y", a, exec_cache(m, "c", a, "S", "T"), "B S T");
}

static etch_tensor *sliced(exec_model *m)
{
    return exec_slice(m, "y", exec_weight(m, "a", "P H"), "P", "S");
}

static etch_tensor *merged(exec_model *m)
{
    etch_tensor *y = exec_regroup(m, "y", exec_weight(m, "a", "B S H"), "S H", "W");
    return exec_product(m, "y", y, exec_weight(m, "w", "W V"), "B V");
}

static etch_tensor *parted(exec_model *m)
{
    etch_tensor *y = exec_regroup(m, "y", exec_weight(m, "a", "B W"), "W", "S D");
    return exec_product(m, "y", y, exec_weight(m, "w", "D V"), "B S V");
}

/* Three dims to one, and that to two others. */
static etch_tensor *reshaped(exec_model *m)
{
    etch_tensor *all = exec_regroup(m, "all", exec_weight(m, "a", "B K D H"), "K D H", "W");
    return exec_regroup(m, "y", all, "W", "H' S");
}

/* The second operand is broadcast along K. */
static etch_tensor *joined(exec_model *m)
{
    return exec_concat(m, "y", "S H", "B K N", exec_weight(m, "a", "B K S"), exec_weight(m, "b", "B H"),
                       NULL);
}

/* Products on both sides, and a part of one element. */
static etch_tensor *joined_products(exec_model *m)
{
    etch_tensor *x = exec_weight(m, "x", "B S K");
    etch_tensor *a = exec_product(m, "a", x, exec_weight(m, "wa", "K T"), "B S T");
    etch_tensor *b = exec_product(m, "b", x, exec_weight(m, "wb", "K H"), "B S H");
    etch_tensor *c = exec_weight(m, "c", "B S");
    return exec_concat(m, "y", "T H U", "B S N'", a, b, c);
}

static etch_tensor *taken_apart(exec_model *m)
{
    static const char *const parts[] = {"B H T", "B H D", NULL};
    etch_tensor *out[2];
    exec_split(m, exec_product(m, "x", exec_weight(m, "a", "B K"), exec_weight(m, "w", "K H N"), "B H N"),
               "N", parts, out);
    etch_tensor *first = exec_call_row(m, "f", "rms_norm", "T", out[0], NULL, NULL);
    return exec_product(m, "y", first, out[1], "B H T D");
}

/* Parts of size 1, one of which nobody reads. */
static etch_tensor *singled_out(exec_model *m)
{
    static const char *const parts[] = {"B S", "B S", "B S", "B S", NULL};
    etch_tensor *out[4];
    exec_split(m, exec_weight(m, "a", "B S H"), "H", parts, out);
    return exec_product(m, "y", exec_sum(m, "s", out[0], out[3]), out[1], "B S");
}

static etch_tensor *padded(exec_model *m)
{
    etch_tensor *y = exec_pad(m, "y", exec_weight(m, "a", "B S D"), "S", "N");
    return exec_product(m, "y", y, exec_weight(m, "w", "N D H"), "B N H");
}

static etch_tensor *convolution(exec_model *m)
{
    return exec_window(m, "conv", "B Y X M", "Y X", exec_weight(m, "a", "B Y X C"),
                       exec_weight(m, "w", "KY KX C M"), "KY KX", 0, 1, false);
}

/* Half of the places, in dims of their own; and groups of channels. */
static etch_tensor *strided_convolution(exec_model *m)
{
    etch_tensor *y = exec_window(m, "conv", "B Y' X' K M", "Y X", exec_weight(m, "a", "B Y X K C"),
                                 exec_weight(m, "w", "KY KX K C M"), "KY KX", 0, 2, false);
    exec_tag(m, y, "places");
    return y;
}

/* Each channel with a kernel of its own. */
static etch_tensor *depthwise_convolution(exec_model *m)
{
    return exec_window(m, "conv", NULL, "S", exec_weight(m, "a", "B S C M"), exec_weight(m, "w", "KY C M"),
                       "KY", 0, 1, true);
}

/* The result of a product, of which a rank may have a summand. */
static etch_tensor *convolved_product(exec_model *m)
{
    etch_tensor *a = exec_product(m, "a", exec_weight(m, "x", "B S H"), exec_weight(m, "w1", "H C"), "B S C");
    return exec_window(m, "conv", "B T M", "S", a, exec_weight(m, "w2", "KY C M"), "KY", 0, 1, false);
}

static etch_tensor *pools(exec_model *m)
{
    etch_tensor *a = exec_weight(m, "a", "B Y X C");
    etch_tensor *most = exec_window(m, "max_pool", "B Y' X' C", "Y X", a, NULL, "", 3, 2, false);
    etch_tensor *mean = exec_window(m, "avg_pool", "B Y' X' C", "Y X", a, NULL, "", 2, 2, false);
    exec_tag(m, most, "places");
    exec_tag(m, mean, "places");
    return exec_product(m, "y", most, mean, "B Y' X' C");
}

static etch_tensor *unary(exec_model *m)
{
    static const char *const functions[] = {"sigmoid", "silu", "gelu", "tanh", "exp", "softplus"};
    etch_tensor *a = exec_weight(m, "a", "B S"), *y = NULL;
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        etch_tensor *f = exec_call_row(m, functions[i], functions[i], "", a, NULL, NULL);
        y = y ? exec_product(m, "y", y, f, "B S") : f;
    }
    return y;
}

/* Far from where it has no slope. */
static etch_tensor *relu(exec_model *m)
{
    etch_tensor *a = exec_call_number(m, "far", "shift", 9, 8, exec_weight(m, "a", "B S"));
    etch_tensor *b = exec_call_number(m, "near", "shift", -9, 8, exec_weight(m, "b", "B S"));
    etch_tensor *up = exec_call_row(m, "up", "relu", "", a, NULL, NULL);
    return exec_sum(m, "y", up, exec_call_row(m, "down", "relu", "", b, NULL, NULL));
}

static etch_tensor *rotated(exec_model *m)
{
    return exec_call_row(m, "y", "rope", "D", exec_weight(m, "a", "B S K D"), NULL, NULL);
}

static etch_tensor *dropped(exec_model *m)
{
    return exec_call_number(m, "y", "dropout", 1, 2, exec_weight(m, "a", "B S H"));
}

static etch_tensor *root_mean_square(exec_model *m)
{
    etch_tensor *a = exec_weight(m, "a", "B S H"), *g = exec_weight(m, "g", "H");
    return exec_sum(m, "y", exec_call_row(m, "with", "rms_norm", "H", a, g, NULL),
                    exec_call_row(m, "without", "rms_norm", "S H", a, NULL, NULL));
}

static etch_tensor *layer(exec_model *m)
{
    etch_tensor *a = exec_weight(m, "a", "B S H");
    etch_tensor *full =
        exec_call_row(m, "n", "layer_norm", "H", a, exec_weight(m, "g", "H"), exec_weight(m, "b", "H"));
    etch_tensor *gain = exec_call_row(m, "n", "layer_norm", "H", full, exec_weight(m, "h", "H"), NULL);
    return exec_call_row(m, "y", "layer_norm", "S", gain, NULL, NULL);
}

static etch_tensor *probabilities(exec_model *m)
{
    return exec_call_row(m, "y", "softmax", "S", exec_weight(m, "a", "B S H"), NULL, NULL);
}

static etch_tensor *attention(exec_model *m)
{
    return exec_attend(m, "y", exec_weight(m, "q", "B S K H D"), exec_weight(m, "k", "B T K D"),
                       exec_weight(m, "v", "B T K D"), "T", "D", false);
}

static etch_tensor *causal_attention(exec_model *m)
{
    etch_tensor *x = exec_weight(m, "x", "B S H");
    etch_tensor *seen = exec_rename(m, "seen", x, "S", "T");
    etch_tensor *q = exec_product(m, "q", x, exec_weight(m, "wq", "H K D"), "B S K D");
    etch_tensor *k = exec_product(m, "k", seen, exec_weight(m, "wk", "H D"), "B T D");
    etch_tensor *v = exec_product(m, "v", seen, exec_weight(m, "wv", "H V"), "B T V");
    return exec_attend(m, "y", q, k, v, "T", "D", true);
}

/* The queries have the dim that the keys had first. */
static etch_tensor *renamed_attention(exec_model *m)
{
    etch_tensor *keys = exec_weight(m, "keys", "B T D");
    etch_tensor *x = exec_rename(m, "x", keys, "T", "S");
    etch_tensor *q = exec_product(m, "q", x, exec_weight(m, "wq", "K D"), "B S K D");
    return exec_attend(m, "y", q, keys, exec_rename(m, "v", x, "S", "T"), "T", "D", true);
}

static etch_tensor *lookup(exec_model *m)
{
    return exec_call_row(m, "y", "gather", "V", exec_weight(m, "table", "V H"), exec_ids(m, "ids", "B S"),
                         NULL);
}

static etch_tensor *entropy(exec_model *m)
{
    return exec_call_row(m, "y", "cross_entropy", "V", exec_weight(m, "z", "B S V"),
                         exec_ids(m, "labels", "B S"), NULL);
}

static const row_case cases[] = {
    {"product", product},
    {"batched product", batched_product},
    {"elementwise product", elementwise_product},
    {"square", square},
    {"broadcast sum", broadcast_sum},
    {"difference", difference},
    {"reduction", reduction},
    {"scaled", scaled},
    {"shifted", shifted},
    {"passed", passed},
    {"renamed", renamed},
    {"cached", cached},
    {"sliced", sliced},
    {"merged", merged},
    {"parted", parted},
    {"reshaped", reshaped},
    {"joined", joined},
    {"joined products", joined_products},
    {"taken apart", taken_apart},
    {"singled out", singled_out},
    {"padded", padded},
    {"convolution", convolution},
    {"strided convolution", strided_convolution},
    {"depthwise convolution", depthwise_convolution},
    {"convolved product", convolved_product},
    {"pools", pools},
    {"unary", unary},
    {"relu", relu},
    {"rotated", rotated},
    {"dropped", dropped},
    {"root mean square", root_mean_square},
    {"layer", layer},
    {"probabilities", probabilities},
    {"attention", attention},
    {"causal attention", causal_attention},
    {"renamed attention", renamed_attention},
    {"lookup", lookup},
    {"entropy", entropy},
};
enum { CASES = sizeof cases / sizeof *cases };

/* The case's result times random numbers, summed. */
static exec_model *build(etch_arena *arena, const row_case *c)
{
    exec_model *m = exec_model_new(arena, dims, 1);
    etch_tensor *y = c->build(m);
    etch_buf text = {.arena = arena};
    etch_buf_puts(&text, "");
    for (uint32_t i = 0; i < y->rank; i++)
        etch_buf_printf(&text, "%s ", y->dims[i]->name);
    exec_sum_loss(m, y, text.text);
    return m;
}

static void each_case(etch_arena *arena, void (*body)(etch_arena *arena, const row_case *c))
{
    for (int i = 0; i < CASES; i++) {
        etch_arena *own = etch_arena_new(etch_arena_mem(arena));
        body(own, &cases[i]);
        etch_arena_free(own);
    }
}

/* ---- gradients and FLOP ----------------------------------------------------------------------------- */

static void check_gradients(etch_arena *arena, const row_case *c)
{
    const char *failure = exec_check_gradients(exec_train(build(arena, c), NULL), 3, true);
    ck_assert_msg(!failure, "%s: %s", c->name, failure);
}

static void gradients(etch_arena *arena)
{
    each_case(arena, check_gradients);
}

START_TEST(gradients_are_slopes)
{
    etch_with_arena(gradients);
}
END_TEST

/* ---- every way to divide the work ------------------------------------------------------------------- */

static void check_divided(const row_case *c, etch_arena *outer, const char *plan)
{
    etch_arena *arena = etch_arena_new(etch_arena_mem(outer));
    exec_model *m = build(arena, c);
    etch_placed *placed =
        etch_place(exec_train(m, NULL), exec_plan(arena, m->sym, plan), ETCH_GRANULARITY_KERNEL);
    ck_assert_msg(placed || etch_error_count(m->diags), "%s, %s", c->name, plan);
    const char *failure = placed ? exec_check_placed(placed, 3) : NULL;
    etch_buf dump = {.arena = arena};
    if (failure) {
        etch_placed_dump(placed, &dump);
        fputs(dump.text, stderr);
    }
    ck_assert_msg(!failure, "%s, %s: %s", c->name, plan, failure);
    etch_arena_free(arena);
}

static bool uses_dim(const exec_model *m, const char *name)
{
    const etch_dim *dim = exec_model_dim(m, name);
    for (uint32_t i = 0; i < m->graph->tensors.count; i++)
        if (etch_has_dim(m->graph->tensors.at[i], dim))
            return true;
    return false;
}

/* One dim on one axis and on two; two dims on two axes, also when only one of them fits all operands. */
static void divide(etch_arena *arena, const row_case *c)
{
    enum { COUNT = sizeof names / sizeof *names };
    const exec_model *m = build(arena, c);
    for (int i = 0; i < COUNT; i++) {
        if (!uses_dim(m, names[i]))
            continue;
        check_divided(c, arena, etch_text(arena, "a=2 | %s@a", names[i]));
        if (strcmp(names[i], "K") != 0)
            check_divided(c, arena, etch_text(arena, "a=2 b=2 | %s@b,a", names[i]));
        for (int k = 0; k < COUNT; k++)
            if (k != i && uses_dim(m, names[k]))
                check_divided(c, arena, etch_text(arena, "a=2 b=2 | %s@a %s@b", names[i], names[k]));
    }
}

static void divided(etch_arena *arena)
{
    each_case(arena, divide);
}

START_TEST(work_is_divided_rightly)
{
    etch_with_arena(divided);
}
END_TEST

/* Ranks that are to hold some of the places of a window make only those. */
static void stops(etch_arena *arena)
{
    static const row_case windows[] = {{"strided convolution", strided_convolution}, {"pools", pools}};
    for (int i = 0; i < 2; i++) {
        check_divided(&windows[i], arena, "a=2 | pin places Y'@a");
        check_divided(&windows[i], arena, "a=2 b=2 | B@b pin places B@b Y'@a");
        check_divided(&windows[i], arena, "a=2 b=2 | C@b pin places Y'@b X'@a");
    }
}

START_TEST(places_of_windows_are_divided)
{
    etch_with_arena(stops);
}
END_TEST

/* ---- coverage --------------------------------------------------------------------------------------- */

static bool has_row(const etch_region *region, const etch_row *row)
{
    for (uint32_t i = 0; i < region->items.count; i++)
        if (region->items.at[i].op->row == row)
            return true;
    return false;
}

static void coverage(etch_arena *arena)
{
    etch_training *trained[CASES];
    for (int i = 0; i < CASES; i++)
        trained[i] = exec_train(build(arena, &cases[i]), NULL);
    for (uint32_t r = 0; etch_row_at(etch_table_builtin(), r); r++) {
        const etch_row *row = etch_row_at(etch_table_builtin(), r);
        bool found =
            row->role == ROLE_MOVE || strcmp(row->name, "adamw") == 0 || strcmp(row->name, "grad_norm") == 0;
        for (int i = 0; i < CASES && !found; i++)
            found = has_row(trained[i]->graph->forward, row) || has_row(trained[i]->backward, row);
        ck_assert_msg(found, "no case has the row %s", row->name);
    }
}

START_TEST(every_row_is_covered)
{
    etch_with_arena(coverage);
}
END_TEST

/* ---- rows in terms of others ------------------------------------------------------------------------ */

/* The largest difference between two tensors of a graph. */
static double difference_of(exec_model *m, const etch_tensor *a, const etch_tensor *b)
{
    exec_sum_loss(m, exec_call_number(m, "any", "scale", 1, 1, exec_weight(m, "any", "B")), "B");
    etch_training *training = exec_train(m, NULL);
    exec_run *run = exec_run_new(m->arena, training, exec_data_new(m->arena, training, 5));
    exec_run_forward(run, 0);
    ck_assert_msg(!run->env.failure, "%s", run->env.failure);
    const exec_array *x = exec_run_value(run, &run->env, a), *y = exec_run_value(run, &run->env, b);
    double largest = 0;
    ck_assert(exec_arrays_alike(x, y));
    exec_walk w = exec_walk_over(2, (const exec_array *[]){x, y});
    while (exec_walk_next(&w))
        largest = fmax(largest, fabs(x->at[w.at[0]] - y->at[w.at[1]]));
    return largest;
}

/* One kernel computes what its parts compute. */
static void attention_by_parts(etch_arena *arena)
{
    exec_model *m = exec_model_new(arena, dims, 1);
    etch_tensor *q = exec_weight(m, "q", "B S K D"), *k = exec_weight(m, "k", "B T K D"),
                *v = exec_weight(m, "v", "B T K D");
    etch_tensor *scores = exec_call_number(m, "s", "scale", 1, 2, exec_product(m, "s", q, k, "B K S T"));
    etch_tensor *p = exec_call_row(m, "p", "softmax", "T", scores, NULL, NULL);
    etch_tensor *o = exec_product(m, "o", p, v, "B S K D");
    ck_assert_double_lt(difference_of(m, o, exec_attend(m, "o", q, k, v, "T", "D", false)), 1e-12);
}

START_TEST(attention_is_its_parts)
{
    etch_with_arena(attention_by_parts);
}
END_TEST

/* The first query of a causal attention sees the first value alone. */
static void first_query(etch_arena *arena)
{
    exec_model *m = exec_model_new(arena, "B=4 S=4 T=4 D=4 ONE=1 ONE'=1", 1);
    etch_tensor *q = exec_weight(m, "q", "B S D"), *k = exec_weight(m, "k", "B S D"),
                *v = exec_weight(m, "v", "B S D");
    etch_tensor *o = exec_attend(m, "o", q, exec_rename(m, "k", k, "S", "T"),
                                 exec_rename(m, "v", v, "S", "T"), "T", "D", true);
    ck_assert_double_lt(
        difference_of(m, exec_slice(m, "o", o, "S", "ONE"), exec_slice(m, "v", v, "S", "ONE")), 1e-12);
}

START_TEST(causal_queries_see_no_later_key)
{
    etch_with_arena(first_query);
}
END_TEST

/* Minus the logarithm of the probability of the label, which a lookup finds: sum over labels of one-hot. */
static void entropy_by_parts(etch_arena *arena)
{
    exec_model *m = exec_model_new(arena, "B=4 V=8", 1);
    etch_tensor *z = exec_weight(m, "z", "V"), *labels = exec_ids(m, "labels", "B");
    etch_tensor *zero = exec_call_number(m, "zero", "scale", 0, 1, exec_weight(m, "any", "B"));
    etch_tensor *logits = exec_sum(m, "logits", zero, z);
    etch_tensor *p = exec_call_row(m, "p", "softmax", "V", z, NULL, NULL);
    etch_tensor *right = exec_call_row(m, "right", "gather", "V", p, labels, NULL);
    etch_tensor *l = exec_call_row(m, "l", "cross_entropy", "V", logits, labels, NULL);
    exec_sum_loss(m, l, "");
    etch_training *training = exec_train(m, NULL);
    exec_run *run = exec_run_new(arena, training, exec_data_new(arena, training, 5));
    exec_run_forward(run, 0);
    double mean = 0;
    for (size_t i = 0; i < 4; i++)
        mean -= log(exec_run_value(run, &run->env, right)->at[i]) / 4;
    ck_assert_double_eq_tol(exec_run_value(run, &run->env, l)->at[0], mean, 1e-12);
}

START_TEST(entropy_is_of_the_label)
{
    etch_with_arena(entropy_by_parts);
}
END_TEST

/* A layer norm without its mean is a root mean square norm of what the mean was taken from. */
static void norms(etch_arena *arena)
{
    exec_model *m = exec_model_new(arena, "B=4 H=4", 1);
    etch_tensor *a = exec_weight(m, "a", "B H"), *g = exec_weight(m, "g", "H"), *b = exec_weight(m, "b", "H");
    etch_tensor *mean = exec_call_number(m, "mean", "scale", 1, 4, exec_reduce(m, "sum", a, "B"));
    etch_tensor *centred = exec_difference(m, "c", a, mean);
    etch_tensor *parts = exec_sum(m, "y", exec_call_row(m, "n", "rms_norm", "H", centred, g, NULL), b);
    ck_assert_double_lt(difference_of(m, parts, exec_call_row(m, "y", "layer_norm", "H", a, g, b)), 1e-12);
}

START_TEST(layer_norm_is_a_centred_rms_norm)
{
    etch_with_arena(norms);
}
END_TEST

Suite *etch_suite(void)
{
    Suite *suite = suite_create("rows");
    ETCH_ADD_TESTS(suite, gradients_are_slopes, work_is_divided_rightly, places_of_windows_are_divided,
                   every_row_is_covered, attention_is_its_parts, causal_queries_see_no_later_key,
                   entropy_is_of_the_label, layer_norm_is_a_centred_rms_norm);
    return suite;
}
