/* What is said of values that cannot stand together, and that nothing is lowered then. */
#include "suite.h"

#include "models.h"

#include <string.h>

static const shape plain = {build_decoder, PLAN_TP, 8, 2, 2, 1, 2, 4, NULL, true};

static etch_status lower(const built *b)
{
    const etch_job *job = NULL;
    etch_status status = etch_lower(b->x->arena, &b->options, &job);
    ck_assert((status == ETCH_OK) == (job != NULL));
    return status;
}

/* Lowers, and looks for texts in what is reported; they end with NULL. */
static void assert_reports(const built *b, etch_status expected, const char *const *texts)
{
    ck_assert_int_eq(lower(b), expected);
    const char *report = diagnostics_of(b);
    for (; *texts; texts++)
        ck_assert_msg(strstr(report, *texts) != NULL, "'%s' is not in:\n%s", *texts, report);
}

#define ASSERT_REPORTS(b, status, ...) assert_reports((b), (status), (const char *const[]){__VA_ARGS__, NULL})

static etch_expr parse(const built *b, const char *text)
{
    size_t error_at;
    etch_expr expr = etch_expr_parse(b->x->sym, text, strlen(text), &error_at);
    ck_assert_ptr_nonnull(expr);
    return expr;
}

/* Gives `name` another value. */
static void set_value(built *b, const char *name, const char *value)
{
    etch_given *given = ETCH_NEW_ARRAY(b->x->arena, b->options.values.given_count, etch_given);
    memcpy(given, b->options.values.given, b->options.values.given_count * sizeof *given);
    for (uint32_t i = 0; i < b->options.values.given_count; i++)
        if (strcmp(given[i].name, name) == 0)
            given[i].value = parse(b, value);
    b->options.values.given = given;
}

/* Leaves `name` without a value. */
static void take_value(built *b, const char *name)
{
    etch_given *given = ETCH_NEW_ARRAY(b->x->arena, b->options.values.given_count, etch_given);
    uint32_t count = 0;
    for (uint32_t i = 0; i < b->options.values.given_count; i++)
        if (strcmp(b->options.values.given[i].name, name) != 0)
            given[count++] = b->options.values.given[i];
    b->options.values.given = given;
    b->options.values.given_count = count;
}

static void missing_values_are_listed(etch_arena *arena)
{
    built *b = build(arena, &plain);
    take_value(b, "micro");
    take_value(b, "tp");
    take_value(b, "layers");
    ASSERT_REPORTS(b, ETCH_EINPUT, "error[E0520]: no value for micro, layers, tp", "mesh axis tp needs tp",
                   "loop layer needs layers", "--set micro=...,layers=...,tp=...");
    ck_assert_uint_eq(etch_error_count(b->x->diags), 1);
}

static void a_value_may_speak_of_others(etch_arena *arena)
{
    built *b = build(arena, &plain);
    set_value(b, "batch", "2*micro*dp");
    set_value(b, "micro", "dp");
    const etch_job *job = lower_built(b);
    ck_assert_str_eq(job->bindings[0].value, "8");
    ck_assert_str_eq(job->bindings[1].value, "2");
    b = build(arena, &plain);
    set_value(b, "batch", "micro");
    set_value(b, "micro", "batch");
    ASSERT_REPORTS(b, ETCH_EINPUT, "no value for");
}

static void sizes_are_positive_integers(etch_arena *arena)
{
    built *b = build(arena, &plain);
    set_value(b, "tp", "1/2");
    ASSERT_REPORTS(b, ETCH_EINPUT, "error[E0521]: tp = 1/2 is not an integer");
    b = build(arena, &plain);
    set_value(b, "tp", "0");
    ASSERT_REPORTS(b, ETCH_EINPUT, "mesh axis tp = 0 is less than 1");
    b = build(arena, &plain);
    set_value(b, "layers", "0-1");
    ASSERT_REPORTS(b, ETCH_EINPUT, "the count of loop layer = layers = -1 is less than 0",
                   "layers = -1 (set)");
    b = build(arena, &plain);
    set_value(b, "micro", "0");
    ASSERT_REPORTS(b, ETCH_EINPUT, "the number of microbatches = micro = 0 is less than 1");
    b = build(arena, &plain);
    b->x->h->size = parse(b, "batch/3");
    ASSERT_REPORTS(b, ETCH_EINPUT, "dim H = batch/3 = 8/3 is not an integer", "batch = 8 (set)");
}

static void assert_fact(etch_relation relation, const char *left, const char *right, const char *report)
{
    etch_mem *mem = etch_mem_new((size_t)1 << 28);
    etch_arena *arena = etch_arena_new(mem);
    built *b = build(arena, &plain);
    etch_claim fact = {
        .relation = relation, .left = parse(b, left), .right = parse(b, right), .text = "THE FACT"};
    b->options.values.facts = &fact;
    b->options.values.fact_count = 1;
    if (report)
        ASSERT_REPORTS(b, ETCH_EINPUT, "error[E0522]: assumption 'THE FACT' does not hold: ", report);
    else
        ck_assert_int_eq(lower(b), ETCH_OK);
    etch_mem_free(mem);
}

/* batch 8, micro 2, layers 2, dp 2, tp 4 */
static void assumptions_hold_or_are_named(etch_arena *arena)
{
    (void)arena;
    assert_fact(ETCH_REL_DIVIDES, "micro", "batch", NULL);
    assert_fact(ETCH_REL_DIVIDES, "micro+1", "batch", "3 does not divide 8");
    assert_fact(ETCH_REL_EQ, "micro*tp", "batch", NULL);
    assert_fact(ETCH_REL_EQ, "micro", "batch", "2 is not equal to 8");
    assert_fact(ETCH_REL_NE, "micro", "batch", NULL);
    assert_fact(ETCH_REL_NE, "micro", "dp", "2 is equal to 2");
    assert_fact(ETCH_REL_LE, "micro", "dp", NULL);
    assert_fact(ETCH_REL_LE, "batch", "dp", "8 is greater than 2");
    assert_fact(ETCH_REL_GE, "micro", "dp", NULL);
    assert_fact(ETCH_REL_GE, "micro", "tp", "2 is less than 4");
    assert_fact(ETCH_REL_LT, "micro", "tp", NULL);
    assert_fact(ETCH_REL_LT, "micro", "dp", "2 is not less than 2");
    assert_fact(ETCH_REL_GT, "tp", "micro", NULL);
    assert_fact(ETCH_REL_GT, "micro", "dp", "2 is not greater than 2");
    assert_fact(ETCH_REL_TRUE, "micro", "0", NULL);
    assert_fact(ETCH_REL_TRUE, "micro-dp", "0", "0 is false");
    assert_fact(ETCH_REL_LE, "batch", "unheard_of", NULL);
}

static void requirements_of_the_plan_are_named(etch_arena *arena)
{
    built *b = build(arena, &plain);
    set_value(b, "tp", "3");
    ASSERT_REPORTS(b, ETCH_EINPUT, "error[E0523]: V = 128 is not divisible by mesh axis tp = 3",
                   "V is declared here", "tp = 3 (set)", "note: F = 64 is not divisible either",
                   "help: tp = 2 or 4 would divide");
    b = build(arena, &plain);
    set_value(b, "tp", "128");
    ASSERT_REPORTS(b, ETCH_EINPUT, "F = 64 is not divisible by mesh axis tp = 128",
                   "help: tp = 64 would divide");
    b = build(arena, &plain);
    set_value(b, "batch", "10");
    ASSERT_REPORTS(b, ETCH_EINPUT,
                   "B = batch = 10 is not divisible by mesh axis dp * microbatches = 2 * 2 = 4",
                   "batch = 10 (set)", "micro = 2 (set)");
}

/* Do the values mean something, with `left` (may be NULL) left out? `text`: what is said when they do not. */
static void assert_open(etch_arena *arena, const char *name, const char *value, const char *left,
                        const char *text)
{
    built *b = build(arena, &plain);
    set_value(b, name, value);
    if (left)
        take_value(b, left);
    const bool fine = etch_values_check(arena, b->x->sym, b->x->diags, &b->options.values);
    ck_assert_msg(fine == !text, "%s = %s without %s", name, value, left ? left : "anything");
    ck_assert_msg(!text || strstr(diagnostics_of(b), text), "'%s' is not in:\n%s", text, diagnostics_of(b));
    ck_assert_uint_eq(etch_error_count(b->x->diags), text ? 1 : 0);
}

static void open_values_are_refused_when_none_would_do(etch_arena *arena)
{
    assert_open(arena, "dp", "2", NULL, NULL);
    assert_open(arena, "layers", "0", "batch", NULL);
    assert_open(arena, "layers", "batch", "batch", NULL);
    assert_open(arena, "micro", "batch - 3", "batch", NULL);
    assert_open(arena, "tp", "2^30", "batch", "V = 128 is not divisible by mesh axis tp = 1073741824");
    assert_open(arena, "dp", "2^30", "batch", NULL); /* only traces number ranks */
    assert_open(arena, "micro", "-1", "batch", "the number of microbatches = micro = -1 is less than 1");
    assert_open(arena, "micro", "-batch^2", "batch", "microbatches = micro = -batch^2 is less than 1");
    assert_open(arena, "layers", "1/2", "batch", "layers = 1/2 is not an integer");
    assert_open(arena, "layers", "batch + 1/2", "batch",
                "the count of loop layer = layers = batch + 1/2 is not an integer");
    assert_open(arena, "dp", "0", "batch", "mesh axis dp = 0 is less than 1");
}

static void limits_are_told(etch_arena *arena)
{
    built *b = build(arena, &plain);
    set_value(b, "dp", "2^30");
    set_value(b, "batch", "2^40");
    ASSERT_REPORTS(b, ETCH_ELIMIT, "more than the 1048576 ranks");
    b = build(arena, &plain);
    set_value(b, "layers", "2^33");
    ASSERT_REPORTS(b, ETCH_ELIMIT, "error[E0911]", "loops run too often");
    b = build(arena, &plain);
    set_value(b, "micro", "2^30");
    set_value(b, "batch", "2^31");
    ASSERT_REPORTS(b, ETCH_ELIMIT, "error[E0911]");
    b = build(arena, &plain);
    set_value(b, "layers", "10^6");
    ASSERT_REPORTS(b, ETCH_ELIMIT, "error[E0911]", "the program of a rank holds at most 4194304 nodes");
    b = build(arena, &plain);
    set_value(b, "layers", "10^5");
    ASSERT_REPORTS(b, ETCH_ELIMIT, "passed a limit of the session", "a rank would run");
    b = build(arena, &plain);
    set_value(b, "batch", "2^61");
    ASSERT_REPORTS(b, ETCH_ELIMIT, "error[E0912]", "more than the 9223372036854775807 of a node");
}

static void numbers_of_nodes_are_integers(etch_arena *arena)
{
    built *b = build(arena, &plain);
    b->placed->requirements.count = 0; /* nothing else would let it come so far */
    set_value(b, "tp", "3");
    ASSERT_REPORTS(b, ETCH_EINPUT, "error[E0524]", "dim F of '", "has 64/3 elements over mesh axes tp");
    const shape split = {build_decoder, PLAN_SEQUENCE, 8, 2, 2, 1, 2, 32, NULL, true};
    b = build(arena, &split);
    b->placed->requirements.count = 0;
    b->x->s->average_sized = true; /* a size on average: half an element is rounded up */
    ck_assert_int_eq(lower(b), ETCH_OK);
}

static etch_status lower_guarded(void *data)
{
    return lower(data);
}

/* Wherever memory runs out, the call says so and gives no job, or the guard around it does. */
static void memory_may_run_out_anywhere(etch_arena *arena)
{
    size_t n = 1;
    for (etch_status status = ETCH_ENOMEM; status != ETCH_OK; n++) {
        etch_arena *own = etch_arena_new(etch_arena_mem(arena));
        built *b = build(own, &plain);
        etch_mem_fail_after(etch_arena_mem(arena), n);
        status = etch_guard(etch_arena_mem(arena), lower_guarded, b);
        etch_mem_fail_after(etch_arena_mem(arena), 0);
        ck_assert(status == ETCH_OK || status == ETCH_ENOMEM);
        etch_arena_free(own);
    }
    ck_assert_uint_gt(n, 2);
}

#define TEST(name, body)       \
    START_TEST(name)           \
    {                          \
        etch_with_arena(body); \
    }                          \
    END_TEST

TEST(test_missing, missing_values_are_listed)
TEST(test_chained, a_value_may_speak_of_others)
TEST(test_sizes, sizes_are_positive_integers)
TEST(test_facts, assumptions_hold_or_are_named)
TEST(test_requirements, requirements_of_the_plan_are_named)
TEST(test_open, open_values_are_refused_when_none_would_do)
TEST(test_limits, limits_are_told)
TEST(test_numbers, numbers_of_nodes_are_integers)
TEST(test_memory, memory_may_run_out_anywhere)

Suite *etch_suite(void)
{
    Suite *suite = suite_create("binding");
    ETCH_ADD_TESTS(suite, test_missing, test_chained, test_sizes, test_facts, test_requirements, test_open,
                   test_limits, test_numbers, test_memory);
    return suite;
}
