/* Numbers at the borders of machine words, and limits: they end in ETCH_ELIMIT, never in a wrong value. */
#include <gmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "etch/program.h"
#include "suite.h"
#include "symbolic/symbolic.h"

static etch_expr parse(etch_sym *sym, const char *text)
{
    size_t at;
    return etch_expr_parse(sym, text, strlen(text), &at);
}

/* ---- borders ------------------------------------------------------------------------------------------- */

static etch_expr of_gmp(etch_sym *sym, const mpq_t value)
{
    char *text = mpq_get_str(NULL, 10, value);
    etch_expr e = parse(sym, text);
    free(text);
    return e;
}

static void expect_value(etch_sym *sym, etch_expr e, const mpq_t value, const char *what)
{
    char *text = mpq_get_str(NULL, 10, value);
    ck_assert_msg(e != NULL && strcmp(etch_expr_text(sym, e), text) == 0, "%s is %s, not %s", what,
                  e ? etch_expr_text(sym, e) : "undefined", text);
    /* one value, one expression */
    ck_assert_ptr_eq(e, of_gmp(sym, value));
    free(text);
}

/* Floor and order of one number, all operations on two. */
static void check_pair(etch_sym *sym, const mpq_t x, const mpq_t y)
{
    etch_expr a = of_gmp(sym, x), b = of_gmp(sym, y);
    mpq_t value;
    mpq_init(value);
    mpq_add(value, x, y);
    expect_value(sym, etch_add(sym, a, b), value, "sum");
    mpq_sub(value, x, y);
    expect_value(sym, etch_sub(sym, a, b), value, "difference");
    mpq_mul(value, x, y);
    expect_value(sym, etch_mul(sym, a, b), value, "product");
    expect_value(sym, etch_max(sym, a, b), mpq_cmp(x, y) >= 0 ? x : y, "max");
    expect_value(sym, etch_min(sym, a, b), mpq_cmp(x, y) <= 0 ? x : y, "min");
    int order = mpq_cmp(x, y);
    ck_assert_int_eq(etch_constant_compare(sym, a, b), (order > 0) - (order < 0));
    ck_assert_int_eq(etch_at_least(sym, a, b, NULL), order >= 0 ? ETCH_YES : ETCH_NO);
    if (mpq_sgn(y) != 0) {
        mpq_div(value, x, y);
        expect_value(sym, etch_div(sym, a, b), value, "quotient");
        mpz_fdiv_q(mpq_numref(value), mpq_numref(value), mpq_denref(value));
        mpz_set_ui(mpq_denref(value), 1);
        expect_value(sym, etch_floor_div(sym, a, b), value, "floor of the quotient");
        mpq_mul(value, value, y);
        mpq_sub(value, x, value);
        expect_value(sym, etch_mod(sym, a, b), value, "remainder");
    }
    mpq_neg(value, x);
    expect_value(sym, etch_neg(sym, a), value, "negation");
    mpq_clear(value);
}

static void borders_are_exact(etch_arena *arena)
{
    static const unsigned long powers[] = {0, 1, 31, 32, 62, 63, 64, 126, 127, 128, 200};
    enum { POWERS = sizeof powers / sizeof *powers, NEAR = 5, NUMBERS = POWERS * NEAR * 2 };
    etch_sym *sym = etch_sym_new(arena);
    mpq_t *numbers = malloc(NUMBERS * sizeof *numbers);
    ck_assert_ptr_nonnull(numbers);
    for (int i = 0; i < NUMBERS; i++) {
        mpq_init(numbers[i]);
        mpz_ui_pow_ui(mpq_numref(numbers[i]), 2, powers[i / NEAR % POWERS]);
        int offset = i % NEAR - 2;
        if (offset < 0)
            mpz_sub_ui(mpq_numref(numbers[i]), mpq_numref(numbers[i]), (unsigned long)-offset);
        else
            mpz_add_ui(mpq_numref(numbers[i]), mpq_numref(numbers[i]), (unsigned long)offset);
        /* the second half: fractions and negative numbers */
        if (i >= NUMBERS / 2) {
            mpz_set_ui(mpq_denref(numbers[i]), 1 + (unsigned long)i % 7);
            mpq_canonicalize(numbers[i]);
            mpq_neg(numbers[i], numbers[i]);
            if (i % 3 == 0 && mpq_sgn(numbers[i]) != 0)
                mpq_inv(numbers[i], numbers[i]);
        }
    }
    for (int i = 0; i < NUMBERS; i++)
        for (int k = 0; k < NUMBERS; k++)
            check_pair(sym, numbers[i], numbers[k]);
    for (int i = 0; i < NUMBERS; i++)
        mpq_clear(numbers[i]);
    free(numbers);
}

typedef struct word {
    const char *text;
    bool is_i64;
    int64_t i64;
    bool is_u64;
    uint64_t u64;
} word;

static void words_are_read(etch_arena *arena)
{
    static const word words[] = {
        {"0", true, 0, true, 0},
        {"9223372036854775807", true, INT64_MAX, true, INT64_MAX},
        {"9223372036854775808", false, 0, true, UINT64_C(1) << 63},
        {"-9223372036854775807", true, -INT64_MAX, false, 0},
        {"-9223372036854775808", true, INT64_MIN, false, 0},
        {"-9223372036854775809", false, 0, false, 0},
        {"18446744073709551615", false, 0, true, UINT64_MAX},
        {"18446744073709551616", false, 0, false, 0},
        {"-1", true, -1, false, 0},
        {"1/2", false, 0, false, 0},
        {"a", false, 0, false, 0},
    };
    etch_sym *sym = etch_sym_new(arena);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        int64_t i64;
        uint64_t u64;
        etch_expr e = parse(sym, words[i].text);
        ck_assert_int_eq(etch_to_i64(e, &i64), words[i].is_i64);
        ck_assert_int_eq(etch_to_u64(e, &u64), words[i].is_u64);
        ck_assert(!words[i].is_i64 || i64 == words[i].i64);
        ck_assert(!words[i].is_u64 || u64 == words[i].u64);
    }
    ck_assert_ptr_eq(etch_int(sym, INT64_MIN), parse(sym, "-2^63"));
    ck_assert_ptr_eq(etch_ratio(sym, INT64_MIN, INT64_MIN), parse(sym, "1"));
    ck_assert_ptr_eq(etch_ratio(sym, INT64_MIN, -1), parse(sym, "2^63"));
    ck_assert_ptr_eq(etch_ratio(sym, 1, INT64_MIN), parse(sym, "-1/2^63"));
    ck_assert_ptr_eq(etch_ratio(sym, INT64_MIN, 6), parse(sym, "-2^62/3"));
    ck_assert_ptr_eq(etch_number(sym, "0.00000000000000000000000000001", 31), parse(sym, "1/10^29"));
}

/* ---- limits -------------------------------------------------------------------------------------------- */

typedef struct attempt {
    etch_mem *mem;
    void (*body)(etch_arena *arena);
} attempt;

static etch_status run(void *data)
{
    const attempt *a = data;
    a->body(etch_arena_new(a->mem));
    return ETCH_OK;
}

static etch_status outcome(void (*body)(etch_arena *arena))
{
    attempt a = {etch_mem_new((size_t)512 << 20), body};
    etch_status status = etch_guard(a.mem, run, &a);
    etch_mem_free(a.mem);
    return status;
}

static void too_many_terms(etch_arena *arena)
{
    parse(etch_sym_new(arena), "(a + b + c + d + e + 1)^40");
}

static void too_many_products(etch_arena *arena)
{
    parse(etch_sym_new(arena), "(a + b)^5000 * (a - b)^5000");
}

static void too_large_an_exponent(etch_arena *arena)
{
    parse(etch_sym_new(arena), "a^1000001");
}

static void too_large_an_exponent_by_steps(etch_arena *arena)
{
    parse(etch_sym_new(arena), "((a^1000)^1000)^1000");
}

static void too_many_digits(etch_arena *arena)
{
    parse(etch_sym_new(arena), "(10^90000)^2");
}

static void too_long_a_numeral(etch_arena *arena)
{
    etch_sym *sym = etch_sym_new(arena);
    size_t length = 100001;
    char *text = etch_alloc(arena, length + 1);
    memset(text, '7', length);
    (void)etch_number(sym, text, length);
}

static void too_deep_a_bracket(etch_arena *arena)
{
    etch_sym *sym = etch_sym_new(arena);
    size_t length = 10000000, at;
    char *text = etch_alloc(arena, length + 1);
    memset(text, '(', length);
    (void)etch_expr_parse(sym, text, length, &at);
}

static void too_deep_an_exponent(etch_arena *arena)
{
    etch_sym *sym = etch_sym_new(arena);
    etch_buf text = {.arena = arena};
    size_t at;
    for (int i = 0; i < 5000; i++)
        etch_buf_puts(&text, "1^");
    etch_buf_puts(&text, "1");
    (void)etch_expr_parse(sym, text.text, text.length, &at);
}

static void too_deep_a_nest(etch_arena *arena)
{
    etch_sym *sym = etch_sym_new(arena);
    etch_expr a = etch_var(sym, "a"), e = a;
    for (int64_t i = 2; i < 1000; i++)
        e = etch_floor_div(sym, etch_mul(sym, e, a), etch_int(sym, i));
}

static void too_long_a_division(etch_arena *arena)
{
    parse(etch_sym_new(arena), "a^900000/(a + b)");
}

START_TEST(test_limits)
{
    ck_assert_int_eq(outcome(too_many_terms), ETCH_ELIMIT);
    ck_assert_int_eq(outcome(too_many_products), ETCH_ELIMIT);
    ck_assert_int_eq(outcome(too_large_an_exponent), ETCH_ELIMIT);
    ck_assert_int_eq(outcome(too_large_an_exponent_by_steps), ETCH_ELIMIT);
    ck_assert_int_eq(outcome(too_many_digits), ETCH_ELIMIT);
    ck_assert_int_eq(outcome(too_long_a_numeral), ETCH_ELIMIT);
    ck_assert_int_eq(outcome(too_deep_a_bracket), ETCH_ELIMIT);
    ck_assert_int_eq(outcome(too_deep_an_exponent), ETCH_ELIMIT);
    ck_assert_int_eq(outcome(too_deep_a_nest), ETCH_ELIMIT);
    ck_assert_int_eq(outcome(too_long_a_division), ETCH_ELIMIT);
}
END_TEST

/* Just inside. */
static void large_but_allowed(etch_arena *arena)
{
    etch_sym *sym = etch_sym_new(arena);
    ck_assert_ptr_nonnull(parse(sym, "a^1000000"));
    ck_assert_ptr_nonnull(parse(sym, "10^99999"));
    ck_assert_ptr_nonnull(parse(sym, "(a + b + c + d)^30"));
    ck_assert_ptr_eq(parse(sym, "(a + b)^400/(a + b)^399"), parse(sym, "a + b"));
    etch_buf text = {.arena = arena};
    for (int i = 0; i < 20000; i++)
        etch_buf_printf(&text, "%sv%d", i ? " + " : "", i);
    etch_expr sum = parse(sym, text.text);
    ck_assert_str_eq(etch_expr_text(sym, sum), text.text);
    ck_assert_ptr_eq(etch_sub(sym, sum, sum), etch_int(sym, 0));
}

typedef struct text_in {
    etch_sym *sym;
    const char *text;
} text_in;

static etch_status parse_it(void *data)
{
    const text_in *in = data;
    (void)parse(in->sym, in->text);
    return ETCH_OK;
}

/* ---- just below and just above ------------------------------------------------------------------------- */

/* Bodies of a size, which `outcome_at` gives them. */
typedef etch_status (*sized_body)(etch_arena *arena, uint32_t size);

typedef struct sized {
    sized_body body;
    etch_arena *arena;
    uint32_t size;
} sized;

static etch_status run_sized(void *data)
{
    const sized *s = data;
    return s->body(s->arena, s->size);
}

/* In no more memory than an input just below a limit may take. */
static etch_status outcome_at(sized_body body, uint32_t size)
{
    etch_mem *mem = etch_mem_new((size_t)512 << 20);
    sized s = {body, etch_arena_new(mem), size};
    etch_status status = etch_guard(mem, run_sized, &s);
    etch_mem_free(mem);
    return status;
}

static etch_status different_functions(etch_arena *arena, uint32_t count)
{
    etch_sym *sym = etch_sym_new(arena);
    etch_expr a = etch_var(sym, "a");
    for (int64_t i = 0; i < count; i++)
        (void)etch_floor_div(sym, a, etch_int(sym, i + 2));
    return ETCH_OK;
}

static etch_status brackets(etch_arena *arena, uint32_t count)
{
    etch_buf text = {.arena = arena};
    size_t at;
    for (uint32_t i = 0; i < count; i++)
        etch_buf_puts(&text, "(");
    etch_buf_puts(&text, "a");
    for (uint32_t i = 0; i < count; i++)
        etch_buf_puts(&text, ")");
    return etch_expr_parse(etch_sym_new(arena), text.text, text.length, &at) ? ETCH_OK : ETCH_EINPUT;
}

/* Of fractions, for which there is no closed form. */
static etch_status added_terms(etch_arena *arena, uint32_t count)
{
    etch_sym *sym = etch_sym_new(arena);
    etch_expr i = etch_index(sym, 0), seven = etch_int(sym, 7);
    etch_expr sum =
        etch_sum_over(sym, i, etch_int(sym, 1), etch_int(sym, count), etch_floor_div(sym, seven, i));
    int64_t value;
    ck_assert(etch_to_i64(sum, &value));
    ck_assert_int_eq(value, 7 + 3 + 2 + 1 + 1 + 1 + 1);
    return ETCH_OK;
}

static etch_status compiled(etch_sym *sym, uint32_t count, const etch_expr *exprs)
{
    etch_program *program;
    etch_status status = etch_compile(sym, count, exprs, &program);
    if (status == ETCH_OK)
        etch_program_free(program);
    return status;
}

/* Sums inside sums, each with a divisor that holds the index of the next one. */
static etch_status compiled_loops(etch_arena *arena, uint32_t count)
{
    etch_sym *sym = etch_sym_new(arena);
    etch_expr n = etch_var(sym, "n"), one = etch_int(sym, 1), sum = one;
    for (uint32_t level = 0; level < count; level++) {
        etch_expr inner = etch_index(sym, level);
        etch_expr outer = level + 1 < count ? etch_index(sym, level + 1) : etch_var(sym, "m");
        etch_expr body = etch_div(sym, sum, etch_add(sym, etch_add(sym, inner, outer), one));
        sum = etch_sum_over(sym, inner, one, n, body);
    }
    return compiled(sym, 1, &sum);
}

/* One to load a variable, and two for each of its sums with numbers: the number and the sum. */
static etch_status compiled_instructions(etch_arena *arena, uint32_t count)
{
    etch_sym *sym = etch_sym_new(arena);
    etch_expr a = etch_var(sym, "a");
    etch_expr *exprs = ETCH_NEW_ARRAY(arena, count, etch_expr);
    uint32_t made = 0;
    exprs[made++] = count % 2 ? a : etch_mul(sym, a, a); /* an even number of them: one more */
    for (uint32_t i = 0; i < (count - 1) / 2; i++)
        exprs[made++] = etch_add(sym, a, etch_int(sym, i + 1));
    return compiled(sym, made, exprs);
}

START_TEST(test_just_below_and_above)
{
    static const struct {
        sized_body body;
        uint32_t most;
    } limits[] = {
        {different_functions, 100000},    {brackets, 500},      {added_terms, 10000000},
        {compiled_instructions, 1000000}, {compiled_loops, 64},
    };
    ck_assert_int_eq(outcome_at(limits[_i].body, limits[_i].most), ETCH_OK);
    ck_assert_int_eq(outcome_at(limits[_i].body, limits[_i].most + 1), ETCH_ELIMIT);
}
END_TEST

/* ---- what is counted ----------------------------------------------------------------------------------- */

/* 1 + a + a^2 + ... */
static etch_expr powers_up_to(etch_sym *sym, uint32_t count)
{
    etch_expr a = etch_var(sym, "a"), one = etch_int(sym, 1);
    return etch_div(sym, etch_sub(sym, etch_pow(sym, a, count), one), etch_sub(sym, a, one));
}

typedef struct counted {
    const char *what;
    etch_expr (*make)(etch_sym *sym, uint32_t size);
} counted;

static etch_expr expanded_product(etch_sym *sym, uint32_t size)
{
    char text[64];
    (void)snprintf(text, sizeof text, "(a + b + c)^%u", (unsigned)size);
    return parse(sym, text);
}

static etch_expr product_of_sums(etch_sym *sym, uint32_t size)
{
    etch_expr product = etch_int(sym, 1), a = etch_var(sym, "a");
    for (uint32_t i = 0; i < size / 8; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "v%u", (unsigned)i);
        product = etch_mul(sym, product, etch_add(sym, etch_var(sym, name), a));
    }
    return product;
}

static etch_expr joined_fractions(etch_sym *sym, uint32_t size)
{
    etch_expr sum = etch_int(sym, 0), a = etch_var(sym, "a");
    for (uint32_t i = 0; i < size / 12; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "v%u", (unsigned)i);
        sum = etch_add(sym, sum, etch_div(sym, etch_int(sym, 1), etch_add(sym, etch_var(sym, name), a)));
    }
    return sum;
}

static etch_expr dense_powers(etch_sym *sym, uint32_t size)
{
    return powers_up_to(sym, size * 50);
}

static size_t length_of(etch_sym *sym, etch_expr e)
{
    etch_collected *parts;
    const etch_expr *vars;
    const uint32_t count = etch_vars_of(sym, e, &vars);
    return etch_collect(sym, e, count, vars, &parts);
}

/* The counter grows at least as fast as what is written: a request that may count so much may write no
 * more. */
START_TEST(test_work_is_counted)
{
    static const counted all[] = {{"an expanded power", expanded_product},
                                  {"a product of sums", product_of_sums},
                                  {"fractions over one denominator", joined_fractions},
                                  {"a quotient of many terms", dense_powers}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        for (uint32_t size = 16; size <= 96; size += 16) {
            etch_mem *mem = etch_mem_new((size_t)4 << 30);
            etch_sym *sym = etch_sym_new(etch_arena_new(mem));
            etch_expr made = all[i].make(sym, size);
            const uint64_t operations = etch_sym_operations(sym);
            ck_assert_msg(operations >= length_of(sym, made), "%s of size %u: %llu operations counted",
                          all[i].what, (unsigned)size, (unsigned long long)operations);
            etch_mem_free(mem);
        }
}
END_TEST

/* Numbers of twice as many digits are at least twice the work. */
START_TEST(test_digits_are_counted)
{
    uint64_t before = 0;
    for (unsigned digits = 1000; digits <= 64000; digits *= 2) {
        etch_mem *mem = etch_mem_new((size_t)4 << 30);
        etch_sym *sym = etch_sym_new(etch_arena_new(mem));
        char text[64];
        (void)snprintf(text, sizeof text, "(10^%u + 1)*(10^%u + 3)", digits / 2, digits / 2);
        (void)parse(sym, text);
        const uint64_t operations = etch_sym_operations(sym);
        ck_assert_uint_ge(operations, digits / 20); /* a word holds 19 digits and a bit */
        ck_assert_uint_ge(operations * 10, before * 19);
        before = operations;
        etch_mem_free(mem);
    }
}
END_TEST

/* ---- within a budget ----------------------------------------------------------------------------------- */

enum { OPERATIONS = 1000000000 };

/* A sum of `count` products of powers of a and b, all different. */
static etch_expr long_sum(etch_sym *sym, uint32_t count)
{
    enum { WIDTH = 100 };
    etch_expr a = etch_var(sym, "a"), b = etch_var(sym, "b");
    etch_expr *terms = malloc(count * sizeof *terms);
    ck_assert_ptr_nonnull(terms);
    for (uint32_t i = 0; i < count; i++)
        terms[i] = etch_mul(sym, etch_pow(sym, a, i / WIDTH), etch_pow(sym, b, i % WIDTH));
    etch_expr sum = etch_sum(sym, count, terms);
    free(terms);
    return sum;
}

static etch_expr sum_of_variables(etch_sym *sym, uint32_t count)
{
    etch_expr *vars = malloc(count * sizeof *vars);
    ck_assert_ptr_nonnull(vars);
    for (uint32_t i = 0; i < count; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "v%u", (unsigned)i);
        vars[i] = etch_var(sym, name);
    }
    etch_expr sum = etch_sum(sym, count, vars);
    free(vars);
    return sum;
}

static void product_of_long_sums(etch_sym *sym)
{
    etch_expr sum = long_sum(sym, 10000), square = etch_mul(sym, sum, sum);
    etch_expr vars[] = {etch_var(sym, "a"), etch_var(sym, "b")},
              ones[] = {etch_int(sym, 1), etch_int(sym, 1)};
    ck_assert_ptr_eq(etch_subst(sym, square, 2, vars, ones), etch_int(sym, 100000000));
}

static void product_of_many_variables(etch_sym *sym)
{
    etch_expr sum = sum_of_variables(sym, 10000);
    (void)etch_mul(sym, sum, sum);
}

static void deep_nesting(etch_sym *sym)
{
    etch_expr a = etch_var(sym, "a"), e = a;
    for (int64_t i = 2; i < 1002; i++)
        e = etch_floor_div(sym, etch_mul(sym, e, etch_add(sym, a, etch_int(sym, i))), etch_int(sym, i));
}

static void large_power(etch_sym *sym)
{
    (void)parse(sym, "2^(2^20)");
}

static void sum_of_100000_variables(etch_sym *sym)
{
    enum { COUNT = 100000 };
    etch_expr sum = sum_of_variables(sym, COUNT);
    ck_assert_ptr_eq(etch_sub(sym, etch_mul(sym, sum, etch_int(sym, 2)), sum), sum);
    ck_assert_int_eq(etch_at_least(sym, sum, etch_int(sym, COUNT), NULL), ETCH_YES);
}

/* What is common to both is searched for when it is made, and again when it is written. */
static void maximum_of_long_sums(etch_sym *sym)
{
    etch_expr sum = sum_of_variables(sym, 100000), twice = etch_mul(sym, sum, etch_var(sym, "v5"));
    etch_expr greater = etch_max(sym, sum, etch_sub(sym, twice, etch_var(sym, "v7")));
    const char *text = etch_expr_text(sym, greater);
    ck_assert_ptr_nonnull(strstr(text, "max("));
    ck_assert_ptr_eq(parse(sym, text), greater);
}

static void square_of_100000_variables(etch_sym *sym)
{
    etch_expr sum = sum_of_variables(sym, 100000);
    (void)etch_pow(sym, sum, 2);
}

typedef struct trial {
    void (*body)(etch_sym *sym);
    const char *limit; /* that it reaches; NULL: none */
    uint32_t digits;
} trial;

static const trial trials[] = {
    {product_of_long_sums, NULL, 0},
    {product_of_many_variables, "products of terms in one multiplication: 6000000", 0},
    {deep_nesting, "depth of opaque functions: 100", 0},
    {large_power, "digits of one number: 100000", 0},
    {large_power, NULL, 400000},
    {sum_of_100000_variables, NULL, 0},
    {maximum_of_long_sums, NULL, 0},
    {square_of_100000_variables, "counted operations: 1000000000", 0},
};

typedef struct trial_run {
    const trial *t;
    etch_sym *sym;
} trial_run;

static etch_status try_it(void *data)
{
    const trial_run *r = data;
    r->t->body(r->sym);
    return ETCH_OK;
}

static void end_within_the_budget(etch_arena *arena, const trial *t)
{
    etch_sym *sym = etch_sym_new(arena);
    trial_run r = {t, sym};
    etch_sym_set_limits(sym, &(etch_sym_limits){.operations = OPERATIONS, .digits = t->digits});
    etch_status status = etch_guard(etch_arena_mem(arena), try_it, &r);
    const char *reached = etch_sym_limit_reached(sym);
    ck_assert_int_eq(status, t->limit ? ETCH_ELIMIT : ETCH_OK);
    ck_assert_msg(t->limit ? reached && strcmp(reached, t->limit) == 0 : !reached, "reached %s, not %s",
                  reached ? reached : "no limit", t->limit ? t->limit : "none");
    ck_assert(t->limit || etch_sym_operations(sym) > 0);
    ck_assert_uint_le(etch_sym_operations(sym), OPERATIONS);
}

typedef struct trial_arena {
    etch_mem *mem;
    const trial *t;
} trial_arena;

static etch_status with_arena(void *data)
{
    const trial_arena *a = data;
    end_within_the_budget(etch_arena_new(a->mem), a->t);
    return ETCH_OK;
}

/* gcc says by macros which sanitizers watch, clang by features. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#define SANITIZED (__has_feature(address_sanitizer) || __has_feature(thread_sanitizer))
#else
#define SANITIZED 0
#endif

/* Not more than a gigabyte of addresses, where the sanitizers do not need them for themselves. */
static void keep_to_a_gigabyte(void)
{
#if !SANITIZED
    const struct rlimit gigabyte = {(rlim_t)1 << 30, (rlim_t)1 << 30};
    ck_assert_int_eq(setrlimit(RLIMIT_AS, &gigabyte), 0);
#endif
}

START_TEST(test_budget)
{
    keep_to_a_gigabyte();
    trial_arena a = {etch_mem_new((size_t)1 << 30), &trials[_i]};
    ck_assert_int_eq(etch_guard(a.mem, with_arena, &a), ETCH_OK);
    etch_mem_free(a.mem);
}
END_TEST

/* Every limit is an option. */
static void limits_are_options(etch_arena *arena)
{
    static const struct {
        etch_sym_limits limits;
        const char *text, *reached;
    } cases[] = {
        {{.terms = 3}, "a + b + c + d", "terms of one expression: 3"},
        {{.exponent = 7}, "a^8", "exponent of one factor: 7"},
        {{.digits = 20}, "10^60", "digits of one number: 20"},
        {{.depth = 2}, "floor(a*floor(a*floor(a/2)/3)/5)", "depth of opaque functions: 2"},
        {{.nesting = 4}, "((((((a))))))", "nesting of brackets and operators: 4"},
        {{.atoms = 1}, "floor(a/2) + floor(a/3)", "opaque functions: 1"},
        {{.operations = 50}, "(a + b + c)^9", "counted operations: 50"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        etch_sym *sym = etch_sym_new(arena);
        etch_sym_set_limits(sym, &cases[i].limits);
        text_in in = {sym, cases[i].text};
        ck_assert_int_eq(etch_guard(etch_arena_mem(arena), parse_it, &in), ETCH_ELIMIT);
        ck_assert_str_eq(etch_sym_limit_reached(sym), cases[i].reached);
        /* the defaults suffice */
        sym = etch_sym_new(arena);
        ck_assert_ptr_nonnull(parse(sym, cases[i].text));
        ck_assert_ptr_null(etch_sym_limit_reached(sym));
    }
}

/* A trap leaves what an outer arena holds in order. */
typedef struct survivor {
    etch_sym *sym;
} survivor;

static etch_status overreach(void *data)
{
    survivor *s = data;
    parse(s->sym, "floor((a + b + c + d + e + max(a, b))^40)");
    return ETCH_OK;
}

static void contexts_survive_traps(etch_arena *arena)
{
    survivor s = {etch_sym_new(arena)};
    etch_expr before = parse(s.sym, "(a + b)^3 + floor(max(a, b)/c)");
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(etch_guard(etch_arena_mem(arena), overreach, &s), ETCH_ELIMIT);
        etch_sym_recover(s.sym);
        ck_assert_ptr_eq(parse(s.sym, etch_expr_text(s.sym, before)), before);
        ck_assert_int_eq(etch_at_least(s.sym, parse(s.sym, "a*b + floor(c/a)"), parse(s.sym, "a"), NULL),
                         ETCH_YES);
    }
}

/* Whichever allocation fails, the context before it is whole and no memory is lost (which the sanitizers
 * watch). */
static void build_much(etch_arena *arena)
{
    etch_sym *sym = etch_sym_new(arena);
    int64_t other;
    if (etch_assume_divides(sym, parse(sym, "t"), parse(sym, "h"), 0, &other) != ETCH_OK)
        return;
    etch_expr e =
        parse(sym, "(a + 10^30)^7/(a + b) + floor((h + a^2)/(3*t)) + max(a, b, c - 1) % 7 + 2^300/3^200");
    (void)etch_at_least(sym, e, parse(sym, "2^200*floor(a/3)"), NULL);
    (void)etch_expr_text(sym, e);
}

START_TEST(test_failing_allocations)
{
    for (size_t n = 1; n < 300; n++) {
        attempt a = {etch_mem_new((size_t)512 << 20), build_much};
        etch_mem_fail_after(a.mem, n);
        etch_status status = etch_guard(a.mem, run, &a);
        etch_mem_free(a.mem);
        ck_assert(status == ETCH_OK || status == ETCH_ENOMEM);
        if (status == ETCH_OK)
            break;
    }
}
END_TEST

#define CASE(name, function)       \
    START_TEST(name)               \
    {                              \
        etch_with_arena(function); \
    }                              \
    END_TEST

CASE(test_borders, borders_are_exact)
CASE(test_words, words_are_read)
CASE(test_large, large_but_allowed)
CASE(test_traps, contexts_survive_traps)
CASE(test_options, limits_are_options)

Suite *etch_suite(void)
{
    Suite *suite = suite_create("limits");
    ETCH_ADD_TESTS(suite, test_borders, test_words, test_limits, test_large, test_work_is_counted,
                   test_digits_are_counted, test_traps, test_options, test_failing_allocations);
    TCase *budget = tcase_create("budget");
    tcase_set_timeout(budget, 60);
    tcase_add_loop_test(budget, test_budget, 0, (int)(sizeof trials / sizeof *trials));
    suite_add_tcase(suite, budget);
    TCase *borders = tcase_create("borders");
    tcase_set_timeout(borders, 60);
    tcase_add_loop_test(borders, test_just_below_and_above, 0, 5);
    suite_add_tcase(suite, borders);
    return suite;
}
