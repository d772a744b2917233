/* Frozen contexts are shared; forks are contexts of their own, with what the frozen one knows. */
#include "oracle.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static etch_expr parse(etch_sym *sym, const char *text)
{
    size_t at;
    etch_expr e = etch_expr_parse(sym, text, strlen(text), &at);
    ck_assert_msg(e != NULL, "%s", text);
    return e;
}

static const char *const shared[] = {
    "heads/tp + floor(seq/8)",
    "2*hidden*seq^2/tp - max(hidden, seq) + 3/7",
    "floor(hidden/(tp + seq)) % 5",
    "1/(seq + tp)^2 + min(seq, 3*tp)",
    "123456789012345678901234567890*seq + floor(floor(seq/2)/3)",
    "kv",
};
enum { SHARED = sizeof shared / sizeof *shared };

/* A context with facts, and the expressions of `shared` in it. */
static etch_sym *model(etch_arena *arena, etch_expr *exprs)
{
    etch_sym *sym = etch_sym_new(arena);
    /* built before the facts: simpler under them */
    exprs[0] = parse(sym, "floor(heads/tp) + floor(seq/8)");
    etch_expr offset = etch_var(sym, "offset");
    etch_var_at_least(sym, offset, -3);
    etch_var_real(sym, etch_var(sym, "ratio"));
    ck_assert_int_eq(etch_assume_divides(sym, parse(sym, "tp"), parse(sym, "heads"), 1, NULL), ETCH_OK);
    ck_assert_int_eq(etch_assume_at_least(sym, parse(sym, "seq"), parse(sym, "4*tp"), 2, NULL), ETCH_OK);
    ck_assert_int_eq(etch_assume_equal(sym, parse(sym, "kv"), parse(sym, "heads"), 3, NULL), ETCH_OK);
    for (uint32_t i = 1; i < SHARED; i++)
        exprs[i] = parse(sym, shared[i]);
    return sym;
}

static void forks_agree(etch_arena *arena)
{
    etch_expr exprs[SHARED];
    etch_sym *sym = model(arena, exprs);
    const char *texts[SHARED];
    for (uint32_t i = 0; i < SHARED; i++)
        texts[i] = etch_expr_text(sym, i == 0 ? parse(sym, shared[0]) : exprs[i]);
    etch_sym_freeze(sym);
    ck_assert(etch_sym_is_frozen(sym));
    etch_sym *fork = etch_sym_fork(sym, arena);
    ck_assert(!etch_sym_is_frozen(fork));
    for (uint32_t i = 0; i < SHARED; i++) {
        etch_expr own = etch_sym_adopt(fork, exprs[i]);
        ck_assert_ptr_eq(own, etch_sym_adopt(fork, exprs[i]));
        ck_assert_ptr_eq(own, etch_sym_adopt(fork, own));
        ck_assert_ptr_eq(own, parse(fork, shared[i]));
        ck_assert_str_eq(etch_expr_text(fork, own), texts[i]);
    }
    ck_assert_ptr_null(etch_sym_adopt(fork, NULL));
    ck_assert_int_eq(etch_equal(fork, parse(fork, "kv // tp"), parse(fork, "heads/tp"), NULL), ETCH_YES);
    ck_assert_int_eq(etch_at_least(fork, parse(fork, "seq"), parse(fork, "3*tp + 1"), NULL), ETCH_YES);
    ck_assert_int_eq(etch_at_least(fork, parse(fork, "offset"), etch_int(fork, -3), NULL), ETCH_YES);
    ck_assert_int_eq(etch_at_least(fork, parse(fork, "offset"), etch_int(fork, -2), NULL), ETCH_NO);
    ck_assert_int_eq(etch_is_integer(fork, etch_var(fork, "ratio"), NULL), ETCH_NO);
}

START_TEST(forks_know_what_the_frozen_one_knows)
{
    etch_with_arena(forks_agree);
}
END_TEST

/* Facts of a fork are its own, and contradictions name facts of both. */
static void own_facts(etch_arena *arena)
{
    etch_expr exprs[SHARED];
    etch_sym *sym = model(arena, exprs);
    etch_expr early = parse(sym, "floor(seq/16)");
    etch_sym_freeze(sym);
    etch_sym *one = etch_sym_fork(sym, arena), *other = etch_sym_fork(sym, arena);
    etch_expr before = etch_sym_adopt(one, early);
    ck_assert_int_eq(etch_assume_divides(one, etch_int(one, 16), etch_var(one, "seq"), 9, NULL), ETCH_OK);
    etch_expr after = etch_sym_adopt(one, early);
    ck_assert_str_eq(etch_expr_text(one, after), "seq/16");
    ck_assert_int_eq(etch_equal(one, before, after, NULL), ETCH_YES);
    ck_assert_str_eq(etch_expr_text(other, etch_sym_adopt(other, early)), "floor(seq/16)");
    int64_t culprit = 0;
    ck_assert_int_eq(etch_assume_at_least(other, parse(other, "tp"), parse(other, "seq"), 8, &culprit),
                     ETCH_EINPUT);
    ck_assert_int_eq(culprit, 2);
}

START_TEST(facts_of_forks)
{
    etch_with_arena(own_facts);
}
END_TEST

/* What is adopted is what would have been built in the fork. */
static void random_adoptions(etch_arena *arena)
{
    static const tree_shape shape = {"+-*/^fcq%MmAP", "abcde234(", 8, 4, 9};
    chance c = chance_new(91);
    for (uint32_t i = 0; i < chance_runs(1500); i++) {
        etch_arena *own = etch_arena_new(etch_arena_mem(arena));
        etch_sym *sym = etch_sym_new(own);
        declare_vars(sym, &c);
        tree *t = tree_random(own, &c, &shape);
        etch_expr e = tree_build(sym, t);
        const char *text = etch_expr_text(sym, e);
        etch_sym_freeze(sym);
        etch_sym *fork = etch_sym_fork(sym, own);
        etch_expr built = tree_build(fork, t), adopted = etch_sym_adopt(fork, e);
        CHANCE_ASSERT(&c, built == adopted, "%s: %s, not %s", tree_str(own, t), etch_expr_text(fork, adopted),
                      etch_expr_text(fork, built));
        CHANCE_ASSERT(&c, !e || strcmp(text, etch_expr_text(fork, adopted)) == 0, "%s in the fork: %s", text,
                      etch_expr_text(fork, adopted));
        etch_arena_free(own);
    }
}

START_TEST(adopted_is_built)
{
    etch_with_arena(random_adoptions);
}
END_TEST

static void adopted_sums(etch_arena *arena)
{
    etch_sym *sym = etch_sym_new(arena);
    etch_expr i = etch_index(sym, 0), n = etch_var(sym, "n");
    etch_expr body = etch_floor(sym, etch_div(sym, etch_mul(sym, i, etch_var(sym, "m")), etch_int(sym, 3)));
    etch_expr sum = etch_sum_over(sym, i, etch_int(sym, 1), n, body);
    const char *text = etch_expr_text(sym, sum);
    etch_sym_freeze(sym);
    etch_sym *fork = etch_sym_fork(sym, arena);
    ck_assert_str_eq(etch_expr_text(fork, etch_sym_adopt(fork, sum)), text);
    ck_assert_ptr_eq(etch_sym_adopt(fork, i), etch_index(fork, 0));
}

START_TEST(sums)
{
    etch_with_arena(adopted_sums);
}
END_TEST

/* ---- threads ------------------------------------------------------------------------------------------- */

enum { TASKS = 24 };

typedef struct crowd {
    const etch_sym *frozen;
    const etch_expr *exprs;
    char *results[TASKS];
} crowd;

typedef struct task {
    crowd *c;
    size_t index;
    etch_mem *mem;
} task;

/* Adopts, adds a fact, asks and prints, all in a fork; and compiles from the frozen context itself. */
static etch_status work(void *data)
{
    task *t = data;
    etch_arena *arena = etch_arena_new(t->mem);
    etch_sym *fork = etch_sym_fork(t->c->frozen, arena);
    etch_buf out = {.arena = arena};
    etch_expr sum = etch_int(fork, 0);
    for (uint32_t i = 0; i < SHARED; i++)
        sum = etch_add(fork, sum, etch_sym_adopt(fork, t->c->exprs[i]));
    etch_expr extra = etch_var(fork, "extra");
    if (etch_assume_divides(fork, etch_int(fork, 8), etch_var(fork, "seq"), 5, NULL) != ETCH_OK)
        return ETCH_EINTERNAL;
    sum = etch_mul(fork, etch_add(fork, sum, etch_floor_div(fork, extra, etch_var(fork, "tp"))), extra);
    etch_expr_print(fork, sum, &out);
    etch_truth divides = etch_divides(fork, etch_var(fork, "tp"), etch_var(fork, "kv"), NULL);
    etch_truth larger = etch_at_least(fork, extra, etch_var(fork, "seq"), NULL);
    etch_program *program;
    etch_status status = etch_compile(t->c->frozen, SHARED, t->c->exprs, &program);
    if (status != ETCH_OK)
        return status;
    etch_buf_printf(&out, " %d %d %zu", (int)divides, (int)larger, etch_program_instructions(program));
    etch_program_free(program);
    char *result = malloc(out.length + 1);
    t->c->results[t->index] = result;
    return result && memcpy(result, out.text, out.length + 1) ? ETCH_OK : ETCH_ENOMEM;
}

static etch_status run_task(void *data, size_t index)
{
    task t = {data, index, etch_mem_new(64 << 20)};
    if (!t.mem)
        return ETCH_ENOMEM;
    etch_status status = etch_guard(t.mem, work, &t);
    etch_mem_free(t.mem);
    return status;
}

static void eight_threads(etch_arena *arena)
{
    etch_expr exprs[SHARED];
    etch_sym *sym = model(arena, exprs);
    etch_sym_freeze(sym);
    crowd c = {.frozen = sym, .exprs = exprs};
    ck_assert_int_eq(etch_parallel(8, TASKS, run_task, &c), ETCH_OK);
    for (uint32_t i = 0; i < TASKS; i++) {
        ck_assert_str_eq(c.results[i], c.results[0]);
        if (i > 0)
            free(c.results[i]);
    }
    free(c.results[0]);
}

START_TEST(threads)
{
    etch_with_arena(eight_threads);
}
END_TEST

/* ---- limits -------------------------------------------------------------------------------------------- */

static etch_status too_much(void *data)
{
    etch_sym *sym = data;
    etch_expr a = parse(sym, "floor(a/(b + 3)) + max(a, b)/7"), two = etch_int(sym, 2);
    etch_expr power = etch_pow(sym, etch_add(sym, a, etch_var(sym, "c")), 100000);
    return power && two ? ETCH_OK : ETCH_EINTERNAL;
}

static void after_limits(etch_arena *arena)
{
    etch_sym *sym = etch_sym_new(arena);
    const etch_sym_limits limits = {.terms = 1000};
    etch_sym_set_limits(sym, &limits);
    etch_expr before = parse(sym, "a*floor(b/c)");
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(etch_guard(etch_arena_mem(arena), too_much, sym), ETCH_ELIMIT);
        ck_assert_ptr_nonnull(etch_sym_limit_reached(sym));
        etch_sym_recover(sym);
        ck_assert_ptr_null(etch_sym_limit_reached(sym));
        ck_assert_ptr_eq(parse(sym, "floor(b/c)*a"), before);
        ck_assert_int_eq(etch_at_least(sym, parse(sym, "a^2"), parse(sym, "a"), NULL), ETCH_YES);
    }
}

START_TEST(usable_after_a_limit)
{
    etch_with_arena(after_limits);
}
END_TEST

Suite *etch_suite(void)
{
    Suite *suite = suite_create("fork");
    ETCH_ADD_TESTS(suite, forks_know_what_the_frozen_one_knows, facts_of_forks, adopted_is_built, sums,
                   threads, usable_after_a_limit);
    return suite;
}
