/* Memory that GMP asks for: all of it is the account's, any request of it may fail, and a program that uses
 * GMP itself, with functions of its own for memory, notices nothing.
 *
 * The linker's --wrap sends the calls of malloc and its relatives here. */
#include <gmp.h>
#include <stdlib.h>
#include <string.h>

#include "etch/program.h"
#include "suite.h"
#include "symbolic/symbolic.h"

/* ---- memory of the C library --------------------------------------------------------------------------- */

/* Which call from now on fails; 0: none. */
static size_t fail_at;

static bool fails(void)
{
    return fail_at > 0 && --fail_at == 0;
}

void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_malloc(size_t size)
{
    return fails() ? NULL : __real_malloc(size);
}

void *__real_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size)
{
    return fails() ? NULL : __real_calloc(count, size);
}

void *__real_realloc(void *at, size_t size);
void *__wrap_realloc(void *at, size_t size);
void *__wrap_realloc(void *at, size_t size)
{
    return fails() ? NULL : __real_realloc(at, size);
}

/* ---- GMP of a program ---------------------------------------------------------------------------------- */

/* Calls of the functions that the program had set for GMP before it used the library, and bytes it holds. */
static size_t program_calls, program_bytes;

static void *program_allocate(size_t size)
{
    program_calls++;
    program_bytes += size;
    return __real_malloc(size);
}

static void *program_resize(void *at, size_t old_size, size_t size)
{
    program_calls++;
    program_bytes += size - old_size;
    return __real_realloc(at, size);
}

static void program_free(void *at, size_t size)
{
    program_calls++;
    program_bytes -= size;
    free(at);
}

/* 2^5000, from functions of the program. */
static void program_uses_gmp(void)
{
    const size_t before = program_calls;
    mpz_t power;
    mpz_init_set_ui(power, 1);
    mpz_mul_2exp(power, power, 5000);
    ck_assert_uint_eq(mpz_sizeinbase(power, 2), 5001);
    mpz_clear(power);
    ck_assert_uint_gt(program_calls, before);
    ck_assert_uint_eq(program_bytes, 0);
}

/* ---- formulas of long numbers -------------------------------------------------------------------------- */

static etch_expr parse(etch_sym *sym, const char *text)
{
    size_t at;
    return etch_expr_parse(sym, text, strlen(text), &at);
}

/* Every operation on numbers that GMP takes temporaries for, and their text. ETCH_EINTERNAL: one is wrong;
 * Check needs memory itself, and is not asked here. */
static etch_status use_long_numbers(void *data)
{
    etch_sym *sym = etch_sym_new(etch_arena_new(data));
    etch_expr power = parse(sym, "7^30000"), other = parse(sym, "(10^24000 + 3)/9^700");
    etch_expr sum = etch_add(sym, power, other), ratio = etch_div(sym, power, other);
    bool right = etch_constant_compare(sym, sum, power) == 1;
    right = right && etch_constant_compare(sym, etch_floor(sym, ratio), ratio) == -1;
    right = right && etch_sub(sym, sum, other) == power && etch_mul(sym, ratio, other) == power;
    right = right && etch_is_zero(etch_mod(sym, power, etch_int(sym, 7)));
    const char *text = etch_expr_text(sym, power);
    right = right && strlen(text) == 25353; /* 30,000 log10(7) = 25,352.9 */
    right = right && etch_number(sym, text, strlen(text)) == power;
    right = right && parse(sym, "(x + 1/3^200)^4/(7^90*x + 2^70)");
    return right ? ETCH_OK : ETCH_EINTERNAL;
}

START_TEST(test_a_program_with_gmp_notices_nothing)
{
    etch_mem *mem = etch_mem_new((size_t)64 << 20);
    program_uses_gmp();
    const size_t before = program_calls;
    ck_assert_int_eq(etch_guard(mem, use_long_numbers, mem), ETCH_OK);
    ck_assert_uint_eq(program_calls, before);
    program_uses_gmp();
    etch_mem_free(mem);
}
END_TEST

/* The next request to fail: each of the first, then ever fewer. */
static size_t after(size_t n)
{
    return n + 1 + n / 50;
}

START_TEST(test_every_request_may_fail)
{
    etch_status status = ETCH_ENOMEM;
    size_t failures = 0;
    for (size_t n = 1; status == ETCH_ENOMEM; n = after(n)) {
        etch_mem *mem = etch_mem_new((size_t)64 << 20);
        etch_mem_fail_after(mem, n);
        status = etch_guard(mem, use_long_numbers, mem);
        failures += status == ETCH_ENOMEM;
        ck_assert(status == ETCH_OK || etch_mem_used(mem) == 0);
        etch_mem_free(mem);
        program_uses_gmp();
    }
    ck_assert_int_eq(status, ETCH_OK);
    ck_assert_uint_gt(failures, 50);
}
END_TEST

/* The same of the C library: what GMP needs is no exception. */
START_TEST(test_every_call_may_fail)
{
    etch_status status = ETCH_ENOMEM;
    size_t failures = 0;
    for (size_t n = 1; status == ETCH_ENOMEM; n = after(n)) {
        etch_mem *mem = etch_mem_new((size_t)64 << 20);
        fail_at = n;
        status = etch_guard(mem, use_long_numbers, mem);
        fail_at = 0;
        failures += status == ETCH_ENOMEM;
        etch_mem_free(mem);
    }
    ck_assert_int_eq(status, ETCH_OK);
    ck_assert_uint_gt(failures, 50);
}
END_TEST

/* The temporaries count: with what the kept numbers need alone, the limit is reached. */
START_TEST(test_temporaries_are_charged)
{
    size_t least = 64 << 10;
    etch_status status = ETCH_ELIMIT;
    for (; status == ETCH_ELIMIT; least += 4 << 10) {
        etch_mem *mem = etch_mem_new(least);
        status = etch_guard(mem, use_long_numbers, mem);
        etch_mem_free(mem);
        program_uses_gmp();
    }
    ck_assert_int_eq(status, ETCH_OK);
}
END_TEST

/* ---- order --------------------------------------------------------------------------------------------- */

static uint64_t next_random(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *state >> 11;
}

static void random_integer(mpz_t to, uint64_t *state)
{
    mpz_set_ui(to, 0);
    for (uint64_t limbs = 1 + next_random(state) % 12; limbs > 0; limbs--) {
        mpz_mul_2exp(to, to, 64);
        mpz_add_ui(to, to, next_random(state) % 3 == 0 ? 0 : (unsigned long)next_random(state));
    }
    mpz_add_ui(to, to, 1);
}

/* Near a: num*m + d over den*m, d from -1 to 1. */
static void near(mpq_t to, const mpq_t a, uint64_t *state)
{
    random_integer(mpq_numref(to), state);
    mpz_mul(mpq_denref(to), mpq_denref(a), mpq_numref(to));
    mpz_mul(mpq_numref(to), mpq_numref(a), mpq_numref(to));
    const uint64_t shift = next_random(state) % 3;
    if (shift == 0)
        mpz_sub_ui(mpq_numref(to), mpq_numref(to), 1);
    else
        mpz_add_ui(mpq_numref(to), mpq_numref(to), (unsigned long)shift - 1);
    mpq_canonicalize(to);
}

static etch_expr of_gmp(etch_sym *sym, const mpq_t value)
{
    char *text = mpq_get_str(NULL, 10, value);
    etch_expr e = parse(sym, text);
    program_free(text, strlen(text) + 1);
    return e;
}

static void order_is_that_of_gmp(etch_arena *arena)
{
    enum { PAIRS = 4000 };
    etch_sym *sym = etch_sym_new(arena);
    uint64_t state = 5;
    mpq_t a, b;
    mpq_inits(a, b, NULL);
    for (int i = 0; i < PAIRS; i++) {
        random_integer(mpq_numref(a), &state);
        random_integer(mpq_denref(a), &state);
        mpq_canonicalize(a);
        if (i % 2 == 0)
            mpq_neg(a, a);
        near(b, a, &state);
        if (i % 16 == 0)
            mpq_neg(b, b);
        const int order = mpq_cmp(a, b);
        etch_expr x = of_gmp(sym, a), y = of_gmp(sym, b);
        ck_assert_int_eq(etch_constant_compare(sym, x, y), (order > 0) - (order < 0));
        ck_assert_int_eq(etch_constant_compare(sym, y, x), (order < 0) - (order > 0));
    }
    mpq_clears(a, b, NULL);
}

START_TEST(test_order)
{
    etch_with_arena(order_is_that_of_gmp);
}
END_TEST

/* ---- compiled evaluation ------------------------------------------------------------------------------- */

enum { CONFIGURATIONS = 3 };

typedef struct evaluation {
    const etch_program *program;
    const etch_column *columns;
    char *texts[CONFIGURATIONS];
} evaluation;

static etch_status evaluate(evaluation *e)
{
    etch_workspace *work = NULL;
    int64_t values[CONFIGURATIONS];
    unsigned char kinds[CONFIGURATIONS];
    etch_status status = etch_workspace_new(&work);
    if (status == ETCH_OK)
        status = etch_program_evaluate(e->program, CONFIGURATIONS, e->columns, values, kinds, work);
    for (int i = 0; status == ETCH_OK && i < CONFIGURATIONS; i++)
        if (kinds[i] != ETCH_VALUE_RATIONAL ||
            strcmp(e->texts[i], etch_workspace_number(work, values[i])) != 0)
            status = ETCH_EINTERNAL;
    etch_workspace_free(work);
    return status;
}

static void evaluation_may_fail(etch_arena *arena)
{
    etch_sym *sym = etch_sym_new(arena);
    etch_expr x = etch_var(sym, "x"), e = parse(sym, "(x^90 + 1)/(x^70 + 2) + floor(x^61/7)");
    static const int64_t values[CONFIGURATIONS] = {123456789, 10000019, 99999999};
    const etch_column column = {.values = values};
    etch_program *program;
    evaluation run = {.columns = &column};
    for (int i = 0; i < CONFIGURATIONS; i++) {
        etch_expr value = etch_int(sym, values[i]);
        run.texts[i] = etch_copy_string(arena, etch_expr_text(sym, etch_subst(sym, e, 1, &x, &value)));
    }
    ck_assert_int_eq(etch_compile(sym, 1, &e, &program), ETCH_OK);
    run.program = program;
    etch_status status = ETCH_ENOMEM;
    size_t n = 0;
    while (status == ETCH_ENOMEM) {
        fail_at = ++n;
        status = evaluate(&run); /* asks nothing of Check, which needs memory itself */
        fail_at = 0;
        program_uses_gmp();
    }
    ck_assert_int_eq(status, ETCH_OK);
    ck_assert_uint_gt(n, 40);
    etch_program_free(program);
}

START_TEST(test_every_call_of_an_evaluation_may_fail)
{
    etch_with_arena(evaluation_may_fail);
}
END_TEST

Suite *etch_suite(void)
{
    mp_set_memory_functions(program_allocate, program_resize, program_free);
    Suite *suite = suite_create("memory");
    ETCH_ADD_TESTS(suite, test_a_program_with_gmp_notices_nothing, test_every_request_may_fail,
                   test_every_call_may_fail, test_temporaries_are_charged, test_order,
                   test_every_call_of_an_evaluation_may_fail);
    return suite;
}
