/* Derived gradients are the slopes of the loss, and a placed graph computes what one rank computes. */
#include "exec_check.h"
#include "exec_zoo.h"
#include "suite.h"
#include "verify.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Each case has an arena of its own within the test's. */
static void each_model(etch_arena *arena,
                       void (*body)(etch_arena *arena, const exec_zoo *zoo, const char *plan))
{
    for (const exec_zoo *zoo = exec_models; zoo->name; zoo++) {
        etch_arena *own = etch_arena_new(etch_arena_mem(arena));
        body(own, zoo, NULL);
        etch_arena_free(own);
    }
}

/* ---- gradients -------------------------------------------------------------------------------------- */

static void check_gradients(etch_arena *arena, const exec_zoo *zoo, const char *plan)
{
    (void)plan;
    exec_model *m = zoo->build(arena, 2);
    const char *failure = exec_check_gradients(exec_train(m, zoo->recompute), 1, true);
    ck_assert_msg(!failure, "%s: %s", zoo->name, failure);
}

static void gradients(etch_arena *arena)
{
    each_model(arena, check_gradients);
}

START_TEST(gradients_are_slopes)
{
    etch_with_arena(gradients);
}
END_TEST

/* ---- recomputation ---------------------------------------------------------------------------------- */

static const char *const choices[] = {
    NULL,
    "all",
    "needed",
    "layer",
    "needed(layer)",
    "attention",
    "mlp",
    "needed(mlp)",
    "norm",
    "norm.n",
    "mlp.h",
    "attention,layer",
    "inner",
    "outer",
    "inner,outer",
    "residual",
    "mlp,attention",
    "inner,norm.n",
    "needed(inner,outer)",
    "hidden",
    "model",
    "norm,mlp",
    "mlp,mlp.h",
    "ln.n,mlp.h",
    "outer,norm.n",
    "needed(attention,mlp)",
    NULL,
};

/* With each choice of what is recomputed that says anything of the model. */
static void check_saved(etch_arena *arena, const exec_zoo *zoo, const char *plan)
{
    (void)plan;
    for (size_t i = 0; i < sizeof choices / sizeof *choices; i++) {
        exec_model *m = zoo->build(arena, 1);
        etch_training *training = exec_try_train(m, choices[i]);
        const char *failure = training ? exec_check_saved(training, 1) : NULL;
        ck_assert_msg(!failure, "%s, recompute %s: %s", zoo->name, choices[i] ? choices[i] : "none", failure);
    }
}

static exec_run *run_step(etch_training *training, uint64_t seed);

static void check_gradients_alike(const exec_zoo *zoo, const char *choice, const exec_run *a,
                                  const exec_run *b)
{
    for (uint32_t g = 0; g < a->env.training->gradients.count; g++) {
        const etch_tensor *x = a->env.training->gradients.at[g], *y = b->env.training->gradients.at[g];
        for (uint32_t k = 0; x && a->gradients.at[x->id] && k < exec_instances(x->region->loop); k++) {
            const exec_array *left = a->gradients.at[x->id][k], *right = b->gradients.at[y->id][k];
            if (left || right) /* not of another class of iterations */
                ck_assert_msg(memcmp(left->at, right->at, left->size * sizeof *left->at) == 0,
                              "%s, recompute %s: %s", zoo->name, choice, x->name);
        }
    }
}

/* Running things again changes no gradient. */
static void check_again(etch_arena *arena, const exec_zoo *zoo, const char *plan)
{
    (void)plan;
    const exec_run *kept = run_step(exec_train(zoo->build(arena, 1), NULL), 1);
    etch_arena_free(kept->values.arena);
    for (size_t i = 1; i < sizeof choices / sizeof *choices; i++) {
        etch_arena *own = etch_arena_new(etch_arena_mem(arena));
        etch_training *training = exec_try_train(zoo->build(own, 1), choices[i]);
        const exec_run *run = training ? run_step(training, 1) : NULL;
        if (run) {
            check_gradients_alike(zoo, choices[i], kept, run);
            etch_arena_free(run->values.arena);
        }
        etch_arena_free(own);
    }
}

static void again(etch_arena *arena)
{
    each_model(arena, check_again);
}

START_TEST(recomputation_changes_no_gradient)
{
    etch_with_arena(again);
}
END_TEST

static void saved(etch_arena *arena)
{
    each_model(arena, check_saved);
}

/* What the first iteration makes, the second reads, and hands on an older value: the third reads that. */
static void saved_of_classes(etch_arena *arena)
{
    exec_model *m = exec_model_new(arena, "B=2 S=4", 1);
    etch_tensor *old = exec_sum(m, "old", exec_input(m, "x", "B S"), exec_weight(m, "w", "S"));
    etch_tensor *y = exec_repeat(m, "loop", 3, old);
    etch_tensor *made = exec_sum(m, "made", y, exec_weight(m, "v", "S"));
    etch_tensor *read = exec_call_row(m, "read", "square", "", exec_or(m, made), NULL, NULL);
    exec_sum_loss(m, read, "B S");
    exec_classes(m, "011");
    exec_end(m, old);
    const char *failure = exec_check_saved(exec_train(m, NULL), 1);
    ck_assert_msg(!failure, "%s", failure);
}

/* The last version but one leaves the inner loop and enters it again: backward reads it as what enters the
 * last iteration, and as what the next run of the loop begins with. It is one value. */
static void saved_late(etch_arena *arena, bool made)
{
    static const etch_span nowhere = {0, 0};
    exec_model *m = exec_model_new(arena, "B=2 S=4", 1);
    etch_tensor *x = exec_product(m, "x", exec_input(m, "given", "B S"), exec_weight(m, "w", "S"), "B S");
    x = exec_repeat(m, "outer", 3, x);
    exec_repeat(m, "inner", 2, x); /* carries what is handed on one iteration late */
    etch_tensor *results[2], *y = etch_graph_carry(m->graph, x, nowhere);
    etch_tensor *next = exec_sum(m, "next", y, exec_weight(m, "v", "S"));
    exec_sum_loss(m, exec_call_row(m, "read", "square", "", made ? next : y, NULL, NULL), "B S");
    etch_graph_end(m->graph, (etch_tensor *[]){y, next}, results, 2);
    x = exec_end(m, results[0]);
    exec_sum_loss(m, exec_call_row(m, "end", "square", "", x, NULL, NULL), "B S");
    const char *failure = exec_check_saved(exec_train(m, NULL), 1);
    ck_assert_msg(!failure, "%s", failure);
}

static void saved_of_versions(etch_arena *arena)
{
    saved_late(arena, false);
    saved_late(arena, true);
}

START_TEST(the_version_before_is_saved_once)
{
    etch_with_arena(saved_of_versions);
}
END_TEST

/* A loop that has no iteration reads nothing of what would enter it: what is read in front of it is kept all
 * the same. */
static void saved_beside(etch_arena *arena, const char *choice, uint32_t count)
{
    exec_model *m = exec_model_new(arena, "B=2 S=4", 1);
    etch_tensor *x = exec_product(m, "x", exec_input(m, "given", "B S"), exec_weight(m, "w", "S"), "B S");
    x = exec_repeat(m, "layer", 2, x); /* iterations of two classes */
    x = exec_call_row(m, "one", "tanh", "", exec_product(m, "one", x, exec_weight(m, "v", "S"), "B S"), NULL,
                      NULL);
    x = exec_or(m, x);
    x = exec_call_row(m, "two", "square", "", exec_product(m, "two", x, exec_weight(m, "u", "S"), "B S"),
                      NULL, NULL);
    exec_classes(m, "01");
    x = exec_end(m, x);
    exec_sum_loss(m, exec_call_row(m, "read", "square", "", x, NULL, NULL), "B S");
    x = exec_repeat(m, "depth", count, x);
    x = exec_call_row(m, "further", "square", "", x, NULL, NULL);
    exec_sum_loss(m, x, "B S");
    exec_end(m, x);
    const char *failure = exec_check_saved(exec_train(m, choice), 1);
    ck_assert_msg(!failure, "%u iterations, recompute %s: %s", count, choice ? choice : "none", failure);
}

static void saved_of_none(etch_arena *arena)
{
    for (uint32_t count = 0; count < 3; count++) {
        saved_beside(arena, NULL, count);
        saved_beside(arena, "all", count);
        saved_beside(arena, "needed", count);
    }
}

START_TEST(a_loop_without_iterations_shares_nothing)
{
    etch_with_arena(saved_of_none);
}
END_TEST

START_TEST(what_another_iteration_made_is_saved)
{
    etch_with_arena(saved_of_classes);
}
END_TEST

START_TEST(what_is_saved_is_what_backward_reads)
{
    etch_with_arena(saved);
}
END_TEST

/* ---- microbatches ----------------------------------------------------------------------------------- */

static exec_run *run_step(etch_training *training, uint64_t seed)
{
    etch_arena *arena = training->graph->arena;
    exec_run *run = exec_run_new(arena, training, exec_data_new(arena, training, seed));
    for (uint32_t m = 0; m < run->env.micro; m++) {
        exec_run_forward(run, m);
        exec_run_backward(run);
    }
    ck_assert_msg(!run->env.failure, "%s", run->env.failure);
    return run;
}

static void check_micro(etch_arena *arena, const exec_zoo *zoo, const char *plan)
{
    (void)plan;
    etch_training *once = exec_train(zoo->build(arena, 1), zoo->recompute);
    etch_training *twice = exec_train(zoo->build(arena, 2), zoo->recompute);
    const exec_run *a = run_step(once, 1), *b = run_step(twice, 1);
    ck_assert_double_eq_tol(a->loss, b->loss, 1e-12);
    for (uint32_t i = 0; i < once->gradients.count; i++) {
        const etch_tensor *gradient = once->gradients.at[i];
        for (uint32_t k = 0; gradient && k < exec_instances(gradient->region->loop); k++) {
            if (!exec_has_instance(gradient->region, k))
                continue;
            const exec_array *x = a->gradients.at[gradient->id][k];
            const exec_array *y = b->gradients.at[twice->gradients.at[i]->id][k];
            for (size_t e = 0; e < x->size; e++)
                ck_assert_msg(fabs(x->at[e] - y->at[e]) < 1e-12, "%s: %s", zoo->name, gradient->name);
        }
    }
}

static void micro(etch_arena *arena)
{
    each_model(arena, check_micro);
}

START_TEST(microbatches_change_nothing)
{
    etch_with_arena(micro);
}
END_TEST

/* ---- plans ------------------------------------------------------------------------------------------ */

static void check_plan(etch_arena *arena, const exec_zoo *zoo, const char *text)
{
    exec_model *m = zoo->build(arena, 2);
    etch_training *training = exec_train(m, zoo->recompute);
    etch_placed *placed =
        verified(etch_place(training, exec_plan(arena, m->sym, text), ETCH_GRANULARITY_KERNEL));
    etch_buf dump = {.arena = arena};
    if (!placed) {
        etch_diags_render(m->diags, &dump);
        ck_abort_msg("%s, %s: %s", zoo->name, text, dump.text);
    }
    const char *failure = exec_check_memory(placed, 1);
    etch_placed_dump(placed, &dump);
    if (failure) /* more than fits into a message of Check */
        fprintf(stderr, "%s", dump.text);
    ck_assert_msg(!failure, "%s, %s: %s", zoo->name, text, failure);
}

static void check_plans(etch_arena *arena, const exec_zoo *zoo, const char *plan)
{
    (void)plan;
    for (const char *const *text = zoo->plans; *text; text++) {
        etch_arena *own = etch_arena_new(etch_arena_mem(arena));
        check_plan(own, zoo, *text);
        etch_arena_free(own);
    }
}

static void plans(etch_arena *arena)
{
    each_model(arena, check_plans);
}

START_TEST(ranks_compute_what_one_computes)
{
    etch_with_arena(plans);
}
END_TEST

/* ---- weights and gradients in parts ----------------------------------------------------------------- */

/* The plan with another zero line, over all of its axes. */
static const char *with_zero(etch_arena *arena, const char *plan, const char *level, const char *options)
{
    const char *old = strstr(plan, " | zero"), *at = plan, *rest = old ? strstr(old + 3, " | ") : NULL;
    const size_t length = old ? (size_t)(old - plan) : strlen(plan);
    etch_buf text = {.arena = arena};
    etch_buf_add(&text, plan, length);
    etch_buf_printf(&text, " | zero %s ", level);
    for (bool first = true; *at && *at != '|'; first = false) {
        etch_buf_printf(&text, "%s%.*s", first ? "" : ",", (int)strcspn(at, "="), at);
        at += strcspn(at, " |");
        at += strspn(at, " ");
    }
    etch_buf_printf(&text, " %s%s", options, rest ? rest : "");
    return text.text;
}

/* Under a plan that has axes; where all of them divide all weights, there is nothing to do. */
static void check_zero(etch_arena *arena, const exec_zoo *zoo, const char *plan)
{
    static const char *const lines[][2] = {{"2", ""},
                                           {"3", ""},
                                           {"3", "kept"},
                                           {"2", "whole"},
                                           {"3", "always whole"},
                                           {"3", "root"},
                                           {"3", "weight"},
                                           {"3", "root kept weight now"}};
    static uint32_t turn; /* each plan with some of them */
    for (const char *const *text = zoo->plans; *text; text++) {
        for (uint32_t i = 0; **text && i < 1; i++, turn++) {
            etch_arena *own = etch_arena_new(etch_arena_mem(arena));
            const char *const *line = lines[turn % (sizeof lines / sizeof *lines)];
            plan = with_zero(own, *text, line[0], line[1]);
            exec_model *m = zoo->build(own, 2);
            etch_placed *placed = verified(etch_place(exec_train(m, zoo->recompute),
                                                      exec_plan(own, m->sym, plan), ETCH_GRANULARITY_KERNEL));
            const char *failure = placed ? exec_check_placed(placed, 1) : NULL;
            etch_buf dump = {.arena = own};
            if (failure) {
                etch_placed_dump(placed, &dump);
                fprintf(stderr, "%s", dump.text);
            }
            ck_assert_msg(!failure, "%s, %s: %s", zoo->name, plan, failure);
            etch_diags_render(m->diags, &dump);
            ck_assert_msg(placed || strstr(dump.text, "E0404"), "%s, %s: %s", zoo->name, plan, dump.text);
            etch_arena_free(own);
        }
    }
}

static void zero(etch_arena *arena)
{
    each_model(arena, check_zero);
}

START_TEST(parts_of_weights_and_gradients_change_nothing)
{
    etch_with_arena(zero);
}
END_TEST

static const char *dump_of(etch_arena *arena, const exec_zoo *zoo, const char *text)
{
    exec_model *m = zoo->build(arena, 2);
    etch_buf dump = {.arena = arena};
    etch_placed *placed = verified(
        etch_place(exec_train(m, zoo->recompute), exec_plan(arena, m->sym, text), ETCH_GRANULARITY_KERNEL));
    ck_assert_msg(placed != NULL, "%s, %s", zoo->name, text);
    etch_placed_dump(placed, &dump);
    return dump.text;
}

/* Where that changes anything. */
static void check_kept(etch_arena *arena, const exec_zoo *zoo, const char *plan)
{
    (void)plan;
    for (const char *const *text = zoo->plans; *text; text++) {
        etch_arena *own = etch_arena_new(etch_arena_mem(arena));
        const char *keeping = etch_text(own, "%s | keep", *text);
        if (strcmp(dump_of(own, zoo, *text), dump_of(own, zoo, keeping)) != 0)
            check_plan(own, zoo, keeping);
        etch_arena_free(own);
    }
}

static void kept(etch_arena *arena)
{
    each_model(arena, check_kept);
}

START_TEST(ranks_compute_it_with_the_copies_that_forward_has_gathered)
{
    etch_with_arena(kept);
}
END_TEST

/* What is computed in front of a loop from weights that are gathered there does not wait for a product behind
 * it. */
static void in_front(etch_arena *arena)
{
    exec_model *m = exec_model_new(arena, "B=4 H=4 F=2", 2);
    etch_tensor *early = exec_product(m, "early", exec_input(m, "x", "B H"), exec_weight(m, "g", "H"), "B H");
    etch_tensor *y = exec_product(m, "y", exec_input(m, "y", "B H"), exec_weight(m, "w", "H"), "B H");
    y = exec_repeat(m, "loop", 2, y);
    y = exec_end(m, exec_product(m, "y", y, exec_weight(m, "u", "H"), "B H"));
    etch_tensor *late = exec_product(m, "late", early, exec_weight(m, "v", "H F"), "B F");
    exec_sum_loss(m, exec_sum(m, "s", exec_reduce(m, "r", late, "B"), exec_reduce(m, "r", y, "B")), "B");
    etch_placed *placed = verified(etch_place(
        exec_train(m, NULL), exec_plan(arena, m->sym, "a=2 | B@a | zero 3 a"), ETCH_GRANULARITY_KERNEL));
    ck_assert_ptr_nonnull(placed);
    const char *failure = exec_check_placed(placed, 1);
    ck_assert_msg(!failure, "%s", failure);
}

START_TEST(copies_of_weights_do_not_last_over_a_loop)
{
    etch_with_arena(in_front);
}
END_TEST

/* ---- models that are served -------------------------------------------------------------------------- */

/* Names of the ops and loops of a region. */
static void list_region(const etch_region *region, etch_buf *out)
{
    for (uint32_t i = 0; i < region->items.count; i++) {
        const etch_item *item = &region->items.at[i];
        etch_buf_printf(out, "%s ", item->op ? etch_row_name(item->op->row) : item->loop->name);
        for (uint32_t b = 0; item->loop && b < item->loop->bodies.count; b++)
            list_region(item->loop->bodies.at[b], out);
    }
}

static void check_served(etch_arena *arena, etch_training *training, etch_sym *sym, const char *plan)
{
    etch_buf dump = {.arena = arena};
    etch_placed *placed =
        verified(etch_place(training, exec_plan(arena, sym, plan), ETCH_GRANULARITY_KERNEL));
    ck_assert_msg(placed != NULL, "%s", plan);
    const char *failure = exec_check_placed(placed, 1);
    etch_placed_dump(placed, &dump);
    if (failure)
        fprintf(stderr, "%s", dump.text);
    ck_assert_msg(!failure, "%s: %s", plan, failure);
}

static void served(etch_arena *arena)
{
    for (const char *const *text = exec_served_plans; *text; text++) {
        exec_model *m;
        etch_training *training = exec_served_llama(arena, &m);
        etch_buf ops = {.arena = arena};
        list_region(m->graph->forward, &ops);
        ck_assert_msg(!strstr(ops.text, "cross_entropy") && !strstr(ops.text, "unused"), "%s", ops.text);
        ck_assert_msg(strstr(ops.text, "append") && !strstr(ops.text, "cache"), "%s", ops.text);
        check_served(arena, training, m->sym, *text);
        training = exec_served_gemma2(arena, &m, "S=4 T=6", 2, true);
        if (!strstr(*text, "S@cp"))
            check_served(arena, training, m->sym, *text);
    }
}

START_TEST(ranks_serve_what_one_serves)
{
    etch_with_arena(served);
}
END_TEST

/* The logits of a run behind `past` tokens, and the bytes that its caches hold afterwards. */
static exec_array *serve_gemma2(etch_arena *arena, int new, int past, int window, bool rolling, int64_t *held)
{
    exec_model *m;
    const char *sizes = etch_text(arena, "S=%d T=%d", new, past + new);
    etch_training *training = exec_served_gemma2(arena, &m, sizes, window, rolling);
    exec_run *run = exec_run_new(arena, training, exec_data_new(arena, training, 1));
    run->flop_matters = true;
    exec_run_forward(run, 0);
    ck_assert_msg(!run->env.failure, "%s", run->env.failure);
    etch_cost_list costs = {0};
    etch_placed_costs(etch_place(training, exec_plan(arena, m->sym, ""), ETCH_GRANULARITY_KERNEL), NULL,
                      &costs);
    *held = 0;
    for (uint32_t i = 0; i < costs.count; i++)
        if (costs.at[i].measure == ETCH_CACHED)
            *held += exec_integer(costs.at[i].each) * exec_integer(costs.at[i].times);
    return (exec_array *)(uintptr_t)exec_run_value(run, &run->env, m->served);
}

static int smaller(int a, int b)
{
    return a < b ? a : b;
}

/* Keys and values of 4 sequences, 4 heads and 2 elements in 2 bytes; of four layers two have a window. */
static void check_rolling(etch_arena *arena, int new, int past, int window)
{
    int64_t full, rolling;
    const exec_array *a = serve_gemma2(arena, new, past, window, false, &full),
                     *b = serve_gemma2(arena, new, past, window, true, &rolling);
    const int64_t token = 2 * 4 * 4 * 2 * 2, all = past + new;
    ck_assert_uint_eq(a->size, b->size);
    for (uint64_t i = 0; i < a->size; i++)
        ck_assert_msg(fabs(a->at[i] - b->at[i]) < 1e-9, "%d behind %d with %d", new, past, window);
    ck_assert_int_eq(full, 4 * token * all);
    ck_assert_int_eq(rolling, 2 * token * (all + smaller((int)all, window)));
}

static void rolling(etch_arena *arena)
{
    for (int new = 1; new <= 4; new += 3)
        for (int past = 0; past <= 5; past++)
            for (int window = 1; window <= 7; window++)
                check_rolling(arena, new, past, window);
}

START_TEST(a_rolling_cache_gives_what_one_of_all_gives)
{
    etch_with_arena(rolling);
}
END_TEST

/* ---- names of dims ---------------------------------------------------------------------------------- */

/* A renamed dim is divided as the first is: here b outside a, against the mesh's order, so that a may leave
 * it. */
static void renamed(etch_arena *arena)
{
    exec_model *m = exec_model_new(arena, "B=2 S=4 T=4 H=2", 1);
    etch_tensor *x = exec_product(m, "x", exec_input(m, "x", "B S H"), exec_weight(m, "w", "S H"), "B S H");
    etch_tensor *y = exec_rename(m, "y", x, "S", "T");
    exec_tag(m, y, "moved");
    y = exec_call_row(m, "y", "tanh", "", y, NULL, NULL);
    exec_sum_loss(m, exec_rename(m, "z", y, "T", "S"), "B S H");
    etch_training *training = exec_train(m, NULL);
    etch_placed *placed = verified(etch_place(
        training, exec_plan(arena, m->sym, "a=2 b=2 | S@b,a | pin moved T@b"), ETCH_GRANULARITY_KERNEL));
    ck_assert_ptr_nonnull(placed);
    const char *failure = exec_check_placed(placed, 1);
    ck_assert_msg(!failure, "%s", failure);
}

START_TEST(renamed_dims_keep_the_order_of_their_axes)
{
    etch_with_arena(renamed);
}
END_TEST

/* ---- positions in a sequence --------------------------------------------------------------------------- */

/* Rows and columns of a picture change places by being read in the other order. That says nothing of where
 * the queries S are: ranks that share them have an early and a late chunk each, as ever. */
static void reshaped(etch_arena *arena)
{
    exec_model *m = exec_model_new(arena, "B=2 S=8 T=8 H=4 K=2 D=2 M=32", 1);
    etch_tensor *x = exec_product(m, "x", exec_input(m, "x", "B S H"), exec_weight(m, "w", "S H"), "B S H");
    x = exec_regroup(m, "x", exec_regroup(m, "flat", x, "H S", "M"), "M", "S H");
    exec_tag(m, x, "shared");
    etch_tensor *seen = exec_rename(m, "seen", x, "S", "T");
    etch_tensor *q = exec_product(m, "q", x, exec_weight(m, "wq", "H K D"), "B S K D");
    etch_tensor *k = exec_product(m, "k", seen, exec_weight(m, "wk", "H K D"), "B T K D");
    exec_sum_loss(m, exec_attend(m, "y", q, k, k, "T", "D", true), "B S K D");
    etch_placed *placed = verified(etch_place(
        exec_train(m, NULL), exec_plan(arena, m->sym, "a=2 | | pin shared S@a"), ETCH_GRANULARITY_KERNEL));
    ck_assert_ptr_nonnull(placed);
    const char *failure = exec_check_placed(placed, 1);
    ck_assert_msg(!failure, "%s", failure);
}

START_TEST(merged_dims_have_no_positions)
{
    etch_with_arena(reshaped);
}
END_TEST

/* Queries that no value but the attention divides: ranks that share them need two chunks each, of 6 there are
 * none. */
static void chunked(etch_arena *arena)
{
    exec_model *m = exec_model_new(arena, "B=2 S=6 T=6 H=4 D=2", 1);
    etch_tensor *x = exec_product(m, "x", exec_input(m, "x", "B H"), exec_weight(m, "w", "S H"), "B S H");
    etch_tensor *seen = exec_rename(m, "seen", x, "S", "T");
    etch_tensor *q = exec_product(m, "q", x, exec_weight(m, "wq", "H D"), "B S D");
    etch_tensor *k = exec_product(m, "k", seen, exec_weight(m, "wk", "H D"), "B T D");
    etch_tensor *y = exec_attend(m, "y", q, k, k, "T", "D", true);
    exec_sum_loss(m, exec_reduce(m, "y", y, "B D"), "B D");
    etch_placed *placed = verified(
        etch_place(exec_train(m, NULL), exec_plan(arena, m->sym, "a=2 | S@a"), ETCH_GRANULARITY_KERNEL));
    ck_assert_ptr_nonnull(placed);
    const char *failure = exec_check_requirements(placed);
    ck_assert_msg(!failure, "%s", failure);
}

START_TEST(shared_queries_are_divided_into_chunks)
{
    etch_with_arena(chunked);
}
END_TEST

/* A loop that holds nothing but one that is run again is not run again itself: what enters the inner one is
 * kept. */
static void nested(etch_arena *arena)
{
    exec_model *m = exec_model_new(arena, "B=2 H=4", 1);
    etch_tensor *x = exec_product(m, "x", exec_input(m, "x", "B H"), exec_weight(m, "w", "H"), "B H");
    x = exec_repeat(m, "outer", 2, x);
    x = exec_repeat(m, "inner", 2, x);
    x = exec_call_row(m, "x", "tanh", "", x, NULL, NULL);
    x = exec_end(m, x);
    exec_sum_loss(m, exec_end(m, x), "B H");
    etch_placed *placed = verified(
        etch_place(exec_train(m, "inner"), exec_plan(arena, m->sym, "a=2 | B@a"), ETCH_GRANULARITY_KERNEL));
    ck_assert_ptr_nonnull(placed);
    const char *failure = exec_check_placed(placed, 1);
    ck_assert_msg(!failure, "%s", failure);
}

START_TEST(a_loop_of_a_loop_keeps_what_enters_it)
{
    etch_with_arena(nested);
}
END_TEST

/* ---- slots ------------------------------------------------------------------------------------------ */

/* Tokens are divided by a into halves, then, elsewhere, by b: b's slots are those of quarters within a's,
 * which are not those of halves. So collect is not divided along b. */
static void apart(etch_arena *arena)
{
    exec_model *m = exec_model_new(arena, "B=8 S=8 H=4 V=4 E=4 Q=2 C=32", 1);
    etch_tensor *x = exec_call_row(m, "x", "tanh", "", exec_weight(m, "x", "B S H"), NULL, NULL);
    exec_tag(m, x, "tokens");
    etch_tensor *p = exec_product(m, "p", x, exec_weight(m, "wp", "H E"), "B S E");
    etch_tensor *idx = exec_topk(m, "idx", p, "E", "Q");
    etch_tensor *xe = exec_dispatch(m, "xe", x, idx, "B S", "C");
    etch_tensor *ye = exec_product(m, "ye", xe, exec_weight(m, "we", "E H V"), "E C V");
    etch_tensor *z = exec_collect(m, "z", ye, idx, "E", "C");
    exec_tag(m, z, "results");
    z = exec_product(m, "y", z, exec_call_row(m, "w", "gather", "E", p, idx, NULL), "B S V");
    exec_sum_loss(m, z, "B S V");
    etch_training *training = exec_train(m, NULL);
    etch_placed *placed = verified(
        etch_place(training, exec_plan(arena, m->sym, "a=2 b=2 | E@a | pin tokens B@a | pin results B@b"),
                   ETCH_GRANULARITY_KERNEL));
    ck_assert_ptr_nonnull(placed);
    const char *failure = exec_check_placed(placed, 1);
    ck_assert_msg(!failure, "%s", failure);
}

START_TEST(shards_of_slots_mean_the_same_everywhere)
{
    etch_with_arena(apart);
}
END_TEST

/* The last iteration hands on what is older than the loop. What is computed of that is run again, so backward
 * reads it. */
static void handed(etch_arena *arena)
{
    exec_model *m = exec_model_new(arena, "B=2 H=4", 1);
    etch_tensor *given = exec_input(m, "given", "B H");
    etch_tensor *x = exec_product(m, "x", given, exec_weight(m, "v", "H"), "B H");
    etch_tensor *y = exec_product(m, "y", given, exec_weight(m, "w", "H"), "B H");
    x = exec_repeat(m, "loop", 2, exec_enter(m, "part", x));
    exec_or(m, exec_call_row(m, "z", "tanh", "", x, NULL, NULL));
    exec_classes(m, "01");
    x = exec_end(m, y);
    x = exec_leave(m, "s", exec_product(m, "s", x, x, "B H"));
    exec_sum_loss(m, x, "B H");
    const char *failure = exec_check_saved(exec_train(m, "part"), 1);
    ck_assert_msg(!failure, "%s", failure);
}

START_TEST(what_a_loop_hands_on_is_kept_when_it_is_run_again)
{
    etch_with_arena(handed);
}
END_TEST

Suite *etch_suite(void)
{
    Suite *suite = suite_create("models");
    ETCH_ADD_TESTS(suite, gradients_are_slopes, recomputation_changes_no_gradient,
                   what_is_saved_is_what_backward_reads, what_another_iteration_made_is_saved,
                   the_version_before_is_saved_once, microbatches_change_nothing,
                   ranks_compute_what_one_computes, parts_of_weights_and_gradients_change_nothing,
                   copies_of_weights_do_not_last_over_a_loop, renamed_dims_keep_the_order_of_their_axes,
                   ranks_serve_what_one_serves, a_rolling_cache_gives_what_one_of_all_gives,
                   shards_of_slots_mean_the_same_everywhere, merged_dims_have_no_positions,
                   shared_queries_are_divided_into_chunks, a_loop_of_a_loop_keeps_what_enters_it,
                   what_a_loop_hands_on_is_kept_when_it_is_run_again);
    ETCH_ADD_TESTS(suite, ranks_compute_it_with_the_copies_that_forward_has_gathered,
                   a_loop_without_iterations_shares_nothing);
    return suite;
}
