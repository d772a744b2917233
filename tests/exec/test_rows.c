/* Each row of the op table alone: what it computes, its gradients, its FLOP, and its work divided in every
 * way. */
#include "exec_cases.h"
#include "exec_check.h"
#include "suite.h"
#include "verify.h"

#include "graph/ir/row.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const char *const names[] = {"B", "S", "T", "H", "K", "D", "V", "P", "E", "C", "W", "N", "Y"};

static void each_case(etch_arena *arena, void (*body)(etch_arena *arena, const exec_case *c))
{
    const exec_case *c;
    for (uint32_t i = 0; (c = exec_case_at(i)) != NULL; i++) {
        etch_arena *own = etch_arena_new(etch_arena_mem(arena));
        body(own, c);
        etch_arena_free(own);
    }
}

/* ---- gradients and FLOP ----------------------------------------------------------------------------- */

static void check_gradients(etch_arena *arena, const exec_case *c)
{
    const char *failure = exec_check_gradients(exec_train(exec_case_build(arena, c, NULL), NULL), 3, true);
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

static void check_plan(exec_model *m, const exec_case *c, const char *plan)
{
    etch_placed *placed =
        verified(etch_place(exec_train(m, NULL), exec_plan(m->arena, m->sym, plan), ETCH_GRANULARITY_KERNEL));
    ck_assert_msg(placed || etch_error_count(m->diags), "%s, %s", c->name, plan);
    if (placed && !exec_requirements_hold(placed))
        return; /* chunks of a sequence are too few for two of them on each rank */
    const char *failure = placed ? exec_check_placed(placed, 3) : NULL;
    etch_buf dump = {.arena = m->arena};
    if (failure) {
        etch_placed_dump(placed, &dump);
        fputs(dump.text, stderr);
    }
    ck_assert_msg(!failure, "%s, %s: %s", c->name, plan, failure);
}

static void check_divided(const exec_case *c, etch_arena *outer, const char *plan)
{
    etch_arena *arena = etch_arena_new(etch_arena_mem(outer));
    check_plan(exec_case_build(arena, c, NULL), c, plan);
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
static void divide(etch_arena *arena, const exec_case *c)
{
    enum { COUNT = sizeof names / sizeof *names };
    const exec_model *m = exec_case_build(arena, c, NULL);
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

/* Each of the first three weights, and all, as partial sums, alone and with another dim divided. */
static void divide_sums(etch_arena *outer, const exec_case *c)
{
    enum { COUNT = sizeof names / sizeof *names };
    for (uint32_t partial = 1; partial <= 8; partial *= 2)
        for (int i = -1; i < COUNT; i++) {
            const exec_case_setting setting = {.partial = partial < 8 ? partial : UINT32_MAX};
            etch_arena *arena = etch_arena_new(etch_arena_mem(outer));
            const char *other = i < 0 ? "" : etch_text(arena, "%s@a", names[i]);
            check_plan(exec_case_build(arena, c, &setting), c, etch_text(arena, "z=2 a=2 | Z@z %s", other));
            etch_arena_free(arena);
        }
}

static void divided(etch_arena *arena)
{
    each_case(arena, divide);
    each_case(arena, divide_sums);
}

START_TEST(work_is_divided_rightly)
{
    etch_with_arena(divided);
}
END_TEST

/* Ranks that are to hold some of the places of a window make only those. */
static void stops(etch_arena *arena)
{
    static const char *const windows[] = {"strided convolution", "pools"};
    for (int i = 0; i < 2; i++) {
        const exec_case *c = exec_case_called(windows[i]);
        check_divided(c, arena, "a=2 | pin places R@a");
        check_divided(c, arena, "a=2 b=2 | K@b B@b pin places R@a");
        check_divided(c, arena, "a=2 b=2 | V@b pin places R@b Q@a");
    }
    check_divided(exec_case_called("padded"), arena, "a=2 | pin padded P@a");
    check_divided(exec_case_called("padded"), arena, "a=2 b=2 | D@b S@a pin padded P@a");
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

static bool is_covered(etch_arena *arena, const etch_row *row)
{
    const exec_case *c;
    for (uint32_t i = 0; (c = exec_case_at(i)) != NULL; i++) {
        const etch_training *training = exec_train(exec_case_build(arena, c, NULL), NULL);
        if (has_row(training->graph->forward, row) ||
            (training->backward && has_row(training->backward, row)))
            return true;
    }
    return false;
}

static void coverage(etch_arena *arena)
{
    const etch_row *row;
    for (uint32_t r = 0; (row = etch_row_at(etch_table_builtin(), r)) != NULL; r++) {
        bool of_step = row->role == ETCH_ROLE_RESHARD || row->compose || row->use == ETCH_USE_NORM ||
                       row->use == ETCH_USE_EMA || row->work ||
                       row->use == ETCH_USE_AVERAGE; /* made of others */
        ck_assert_msg(of_step || is_covered(arena, row), "no case has the row %s", row->name);
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
    exec_model *m = exec_model_new(arena, "B=4 S=8 T=8 H=4 K=2 D=4 V=8", 1);
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

/* The element of an array whose dims, in the order of `dims`, have these indices. */
static double element_at(exec_model *m, const exec_array *x, const char *const *dims, const uint32_t *index)
{
    size_t at = 0;
    for (uint32_t i = 0; i < x->rank; i++)
        for (uint32_t d = 0; dims[d]; d++)
            if (x->dims[i] == exec_model_dim(m, dims[d]))
                at = at * x->count[i] + index[d];
    return x->at[at];
}

/* The state, position by position, as its definition says. Groups B=2, heads K, width D, state H. */
static void scan_by_positions(etch_arena *arena, int chunk)
{
    static const char *const order[] = {"U'", "K", "S", "D", "H", NULL};
    exec_model *m = exec_model_new(arena, "B=2 U'=2 K=2 S=8 D=4 H=4", 1);
    etch_tensor *const ins[] = {exec_weight(m, "u", "U' S K D"), exec_weight(m, "dt", "U' S K"),
                                exec_weight(m, "a", "K"), exec_weight(m, "b", "U' S H"),
                                exec_weight(m, "c", "U' S H")};
    etch_tensor *y = exec_scan(m, "y", ins, "S", "H", chunk);
    exec_sum_loss(m, y, "U' S K D");
    etch_training *training = exec_train(m, NULL);
    exec_run *run = exec_run_new(arena, training, exec_data_new(arena, training, 5));
    exec_run_forward(run, 0);
    const exec_array *in[5], *out = exec_run_value(run, &run->env, y);
    for (int i = 0; i < 5; i++)
        in[i] = exec_run_value(run, &run->env, ins[i]);
    for (uint32_t row = 0; row < 2 * 2 * 4; row++) {
        double state[4] = {0};
        for (uint32_t t = 0; t < 8; t++) {
            uint32_t at[] = {row / 8, row / 4 % 2, t, row % 4, 0};
            double step = element_at(m, in[1], order, at), sum = 0;
            double decay = exp(-step * exp(element_at(m, in[2], order, at)));
            for (at[4] = 0; at[4] < 4; at[4]++) {
                double *h = &state[at[4]];
                *h = decay * *h + step * element_at(m, in[3], order, at) * element_at(m, in[0], order, at);
                sum += element_at(m, in[4], order, at) * *h;
            }
            ck_assert_double_eq_tol(element_at(m, out, order, at), sum, 1e-12);
        }
    }
}

static void scans(etch_arena *arena)
{
    for (int chunk = 1; chunk <= 8; chunk *= 2)
        scan_by_positions(arena, chunk);
}

START_TEST(scan_is_its_recurrence)
{
    etch_with_arena(scans);
}
END_TEST

/* A convolution with a kernel of one place. */
static void narrow_window(etch_arena *arena)
{
    exec_model *m = exec_model_new(arena, "B=4 S=8 U=1 D=4 V=8", 1);
    etch_tensor *x = exec_weight(m, "x", "B S D"), *w = exec_weight(m, "w", "U D V");
    etch_tensor *y = exec_window(m, "conv", "B S V", "S", x, w, "U", 0, 1, false);
    etch_tensor *plain = exec_product(m, "p", x, exec_reduce(m, "w1", w, "D V"), "B S V");
    ck_assert_double_lt(difference_of(m, y, plain), 1e-12);
}

START_TEST(window_of_one_place_is_a_product)
{
    etch_with_arena(narrow_window);
}
END_TEST

Suite *etch_suite(void)
{
    Suite *suite = suite_create("rows");
    ETCH_ADD_TESTS(suite, gradients_are_slopes, work_is_divided_rightly, places_of_windows_are_divided,
                   every_row_is_covered, attention_is_its_parts, causal_queries_see_no_later_key,
                   entropy_is_of_the_label, layer_norm_is_a_centred_rms_norm, scan_is_its_recurrence,
                   window_of_one_place_is_a_product);
    return suite;
}
