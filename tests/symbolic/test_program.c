/* Compiled evaluation against the oracle, at the borders of every kind of number, and from many threads. */
#include "oracle.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- helpers ------------------------------------------------------------------------------------------- */

static etch_expr parse(etch_sym *sym, const char *text)
{
    size_t at;
    etch_expr e = etch_expr_parse(sym, text, strlen(text), &at);
    ck_assert_msg(e != NULL, "%s", text);
    return e;
}

static etch_program *compile(etch_sym *sym, uint32_t count, const etch_expr *exprs)
{
    etch_program *program;
    ck_assert_int_eq(etch_compile(sym, count, exprs, &program), ETCH_OK);
    return program;
}

static etch_workspace *new_workspace(void)
{
    etch_workspace *work;
    ck_assert_int_eq(etch_workspace_new(&work), ETCH_OK);
    return work;
}

static void check_evaluate(const etch_program *program, size_t count, const etch_column *columns,
                           int64_t *values, unsigned char *kinds, etch_workspace *work)
{
    ck_assert_int_eq(etch_program_evaluate(program, count, columns, values, kinds, work), ETCH_OK);
}

/* What the evaluation gave, as text. */
static const char *shown(etch_workspace *work, int64_t value, unsigned char kind, char *room, size_t size)
{
    switch ((etch_value_kind)kind) {
    case ETCH_VALUE_INTEGER:
        snprintf(room, size, "%lld", (long long)value);
        break;
    case ETCH_VALUE_LARGE:
    case ETCH_VALUE_RATIONAL:
        snprintf(room, size, "%s", etch_workspace_number(work, value));
        break;
    case ETCH_VALUE_UNDEFINED:
        return "undefined";
    case ETCH_VALUE_TOO_LONG:
        return "too long";
    }
    return room;
}

static const char *kind_names[] = {"integer", "large", "rational", "undefined", "too long"};

/* ---- random formulas ----------------------------------------------------------------------------------- */

enum { FORMULAS = 3, POINTS = 5 };

/* Columns of the values that `points` give to the variables of the program. */
typedef struct table {
    int64_t values[VARS][POINTS], denominators[VARS][POINTS];
    etch_column columns[VARS];
} table;

static void fill_table(table *t, const etch_program *program, point *points)
{
    for (uint32_t v = 0; v < etch_program_variables(program); v++) {
        uint32_t var = 0;
        while (strcmp(var_names[var], etch_program_variable(program, v)) != 0)
            var++;
        for (uint32_t i = 0; i < POINTS; i++) {
            t->values[v][i] = mpz_get_si(mpq_numref(points[i].at[var]));
            t->denominators[v][i] = mpz_get_si(mpq_denref(points[i].at[var]));
        }
        t->columns[v] = (etch_column){.values = t->values[v],
                                      .denominators = var_kinds[var] == VAR_REAL ? t->denominators[v] : NULL};
    }
}

static void compare(chance *c, etch_arena *arena, tree *const *trees, point *points, const int64_t *values,
                    const unsigned char *kinds, etch_workspace *work)
{
    mpq_t expected;
    mpq_init(expected);
    for (uint32_t f = 0; f < FORMULAS; f++)
        for (uint32_t i = 0; i < POINTS; i++) {
            if (!tree_value(trees[f], &points[i], expected))
                continue;
            char room[8000], *text = mpq_get_str(NULL, 10, expected);
            unsigned char kind = kinds[f * POINTS + i];
            const char *found = shown(work, values[f * POINTS + i], kind, room, sizeof room);
            bool is_integer = mpz_cmp_ui(mpq_denref(expected), 1) == 0;
            etch_value_kind right = !is_integer                                   ? ETCH_VALUE_RATIONAL
                                    : mpz_fits_slong_p(mpq_numref(expected)) != 0 ? ETCH_VALUE_INTEGER
                                                                                  : ETCH_VALUE_LARGE;
            CHANCE_ASSERT(c, strcmp(text, found) == 0 && kind == right, "%s is %s (%s), not %s, at %s",
                          tree_str(arena, trees[f]), found, kind_names[kind], text,
                          point_str(arena, &points[i]));
            free(text);
        }
    mpq_clear(expected);
}

static void programs_agree_with_trees(etch_arena *arena)
{
    static const tree_shape shapes[] = {
        {"+-*", "a", 5, 4, 9},
        {"+-*/*/", "abcde234(", 8, 4, 9},
        {"+-*/^fcq%MmAP", "abcde234(", 8, 4, 9},
        {"+-*fcq%MmP", "abc234", 7, 5, 1000000007},
    };
    static const uint64_t ranges[] = {4, 12, 1000, UINT64_C(1) << 31, UINT64_C(1) << 62};
    chance c = chance_new(81);
    etch_workspace *work = new_workspace();
    point points[POINTS];
    for (uint32_t i = 0; i < POINTS; i++)
        point_init(&points[i]);
    for (uint32_t run = 0; run < chance_runs(4000); run++) {
        etch_arena *own = etch_arena_new(etch_arena_mem(arena));
        etch_sym *sym = etch_sym_new(own);
        tree *trees[FORMULAS];
        etch_expr exprs[FORMULAS];
        uint32_t defined = 0;
        declare_vars(sym, &c);
        while (defined < FORMULAS) {
            trees[defined] = tree_random(own, &c, &shapes[chance_below(&c, sizeof shapes / sizeof *shapes)]);
            exprs[defined] = tree_build(sym, trees[defined]);
            defined += exprs[defined] != NULL;
        }
        etch_program *program = compile(sym, FORMULAS, exprs);
        uint64_t range = ranges[chance_below(&c, sizeof ranges / sizeof *ranges)];
        for (uint32_t i = 0; i < POINTS; i++)
            point_random(&points[i], &c, range);
        table t;
        int64_t values[FORMULAS * POINTS];
        unsigned char kinds[FORMULAS * POINTS];
        fill_table(&t, program, points);
        check_evaluate(program, POINTS, t.columns, values, kinds, work);
        compare(&c, own, trees, points, values, kinds, work);
        etch_program_free(program);
        etch_arena_free(own);
    }
    for (uint32_t i = 0; i < POINTS; i++)
        point_clear(&points[i]);
    etch_workspace_free(work);
}

START_TEST(random_formulas)
{
    etch_with_arena(programs_agree_with_trees);
}
END_TEST

/* ---- borders ------------------------------------------------------------------------------------------- */

/* Values of a and b, of a formula, and what it is. */
typedef struct border {
    const char *formula;
    int64_t a, b;
    etch_value_kind kind;
    const char *text;
} border;

#define WORD_MAX INT64_MAX

static const border borders[] = {
    {"a*b", 65536, 32768, ETCH_VALUE_INTEGER, "2147483648"},
    {"a*b", INT64_C(1) << 31, INT64_C(1) << 31, ETCH_VALUE_INTEGER, "4611686018427387904"},
    {"a*b", INT64_C(1) << 32, INT64_C(1) << 31, ETCH_VALUE_LARGE, "9223372036854775808"},
    {"a + b", WORD_MAX, 1, ETCH_VALUE_LARGE, "9223372036854775808"},
    {"a + b", WORD_MAX - 1, 1, ETCH_VALUE_INTEGER, "9223372036854775807"},
    {"-a - b", WORD_MAX, 1, ETCH_VALUE_INTEGER, "-9223372036854775808"},
    {"-a - b", WORD_MAX, 2, ETCH_VALUE_LARGE, "-9223372036854775809"},
    {"a*b - a*(b - 1)", WORD_MAX, WORD_MAX, ETCH_VALUE_INTEGER, "9223372036854775807"},
    {"a^2*b^2", INT64_C(1) << 16, INT64_C(1) << 16, ETCH_VALUE_LARGE, "18446744073709551616"},
    {"a*b*2", WORD_MAX, WORD_MAX, ETCH_VALUE_LARGE, "170141183460469231694793815568465002498"},
    {"a*b*2 + 4*a + 1", WORD_MAX, WORD_MAX, ETCH_VALUE_LARGE, "170141183460469231731687303715884105727"},
    {"a*b*2 + 4*a + 2", WORD_MAX, WORD_MAX, ETCH_VALUE_LARGE, "170141183460469231731687303715884105728"},
    {"-2*a*b - 4*a - 2", WORD_MAX, WORD_MAX, ETCH_VALUE_LARGE, "-170141183460469231731687303715884105728"},
    {"a^2*b", INT64_C(1) << 62, INT64_C(1) << 62, ETCH_VALUE_LARGE,
     "98079714615416886934934209737619787751599303819750539264"},
    {"a^127", 2, 1, ETCH_VALUE_LARGE, "170141183460469231731687303715884105728"},
    {"a^126*b", 2, 1, ETCH_VALUE_LARGE, "85070591730234615865843651857942052864"},
    {"a^63", 2, 1, ETCH_VALUE_LARGE, "9223372036854775808"},
    {"a^62", 2, 1, ETCH_VALUE_INTEGER, "4611686018427387904"},
    {"a^1000000", 1, 1, ETCH_VALUE_INTEGER, "1"},
    {"a^1000000", 3, 1, ETCH_VALUE_TOO_LONG, "too long"},
    {"a^200 % b", 2, 1000, ETCH_VALUE_INTEGER, "376"},
    {"a*b/3", 7, 2, ETCH_VALUE_RATIONAL, "14/3"},
    {"a*b/3", 9, 2, ETCH_VALUE_INTEGER, "6"},
    {"a/b", WORD_MAX, 2, ETCH_VALUE_RATIONAL, "9223372036854775807/2"},
    {"a/b + b/a", 2, 3, ETCH_VALUE_RATIONAL, "13/6"},
    {"a/b - b/a", 1, 1, ETCH_VALUE_INTEGER, "0"},
    {"1/(a*b)^2", WORD_MAX, WORD_MAX, ETCH_VALUE_RATIONAL,
     "1/7237005577332262210834635695349653859421902880380109739573089701262786560001"},
    {"1/(a - b)", 4, 4, ETCH_VALUE_UNDEFINED, "undefined"},
    {"1/(a - b)", 4, 2, ETCH_VALUE_RATIONAL, "1/2"},
    {"max(a, 1/(a - b))", 4, 4, ETCH_VALUE_UNDEFINED, "undefined"},
    {"floor(a/(a - b))", 4, 4, ETCH_VALUE_UNDEFINED, "undefined"},
    {"a // (b - 3)", 7, 1, ETCH_VALUE_INTEGER, "-4"},
    {"a // (b - 3)", WORD_MAX, 1, ETCH_VALUE_INTEGER, "-4611686018427387904"},
    {"(2 - a) // b", 9, 4, ETCH_VALUE_INTEGER, "-2"},
    {"(-a - 1) // (b - 2)", WORD_MAX, 1, ETCH_VALUE_LARGE, "9223372036854775808"},
    {"(-a - 1)/(b - 2)", WORD_MAX, 1, ETCH_VALUE_LARGE, "9223372036854775808"},
    {"ceil(a/b)", 7, 2, ETCH_VALUE_INTEGER, "4"},
    {"max(a/3, b/2)", 5, 3, ETCH_VALUE_RATIONAL, "5/3"},
    {"max(a/3, b/2)", 5, 4, ETCH_VALUE_INTEGER, "2"},
    {"min(a^3, b)", WORD_MAX, 5, ETCH_VALUE_INTEGER, "5"},
    {"123456789012345678901234567890*a - b", 1, 1, ETCH_VALUE_LARGE, "123456789012345678901234567889"},
    {"a/123456789012345678901234567890", 1, 1, ETCH_VALUE_RATIONAL, "1/123456789012345678901234567890"},
    {"a - 170141183460469231731687303715884105728", 1, 1, ETCH_VALUE_LARGE,
     "-170141183460469231731687303715884105727"},
    {"9223372036854775808*b - a", 1, 1, ETCH_VALUE_INTEGER, "9223372036854775807"},
};

static void check_border(etch_arena *arena, etch_workspace *work, const border *b)
{
    etch_arena *own = etch_arena_new(etch_arena_mem(arena));
    etch_sym *sym = etch_sym_new(own);
    etch_expr e = parse(sym, b->formula);
    etch_program *program = compile(sym, 1, &e);
    etch_column columns[2];
    for (uint32_t v = 0; v < etch_program_variables(program); v++)
        columns[v] = (etch_column){.values = etch_program_variable(program, v)[0] == 'a' ? &b->a : &b->b};
    int64_t value;
    unsigned char kind;
    char room[200];
    for (int same = 0; same <= 1; same++) {
        columns[0].same = columns[1].same = same;
        check_evaluate(program, 1, columns, &value, &kind, work);
        const char *found = shown(work, value, kind, room, sizeof room);
        ck_assert_msg(kind == b->kind && strcmp(found, b->text) == 0, "%s is %s (%s), not %s (%s)",
                      b->formula, found, kind_names[kind], b->text, kind_names[b->kind]);
    }
    etch_program_free(program);
    etch_arena_free(own);
}

static void all_borders(etch_arena *arena)
{
    etch_workspace *work = new_workspace();
    for (size_t i = 0; i < sizeof borders / sizeof *borders; i++)
        check_border(arena, work, &borders[i]);
    etch_workspace_free(work);
}

START_TEST(borders_of_numbers)
{
    etch_with_arena(all_borders);
}
END_TEST

/* ---- batches ------------------------------------------------------------------------------------------- */

/* a*b^2/c + a // 3 with configurations of all kinds beside each other; what is expected is computed here. */
static void blocks_of_any_length(etch_arena *arena)
{
    enum { MOST = 1000 };
    static const size_t counts[] = {0, 1, 2, 255, 256, 257, 512, MOST};
    etch_sym *sym = etch_sym_new(arena);
    etch_expr exprs[] = {parse(sym, "a*b^2/c"), parse(sym, "a // 3")};
    etch_program *program = compile(sym, 2, exprs);
    etch_workspace *work = new_workspace();
    static int64_t a[MOST], b[MOST], c[MOST], values[2 * MOST];
    static unsigned char kinds[2 * MOST];
    for (size_t i = 0; i < MOST; i++) {
        a[i] = (int64_t)(i + 1);
        b[i] = i % 50 == 7 ? INT64_C(3000000000) : 6;
        c[i] = i % 40 == 9 ? 7 : i % 60 == 13 ? 1 : 4;
    }
    const etch_column columns[] = {{.values = a}, {.values = b}, {.values = c}};
    mpq_t expected, factor;
    mpq_inits(expected, factor, NULL);
    for (size_t n = 0; n < sizeof counts / sizeof *counts; n++) {
        size_t count = counts[n];
        check_evaluate(program, count, columns, values, kinds, work);
        for (size_t i = 0; i < count; i++) {
            char room[100], text[100];
            mpq_set_si(expected, b[i], 1);
            mpq_mul(expected, expected, expected);
            mpq_set_si(factor, a[i], (unsigned long)c[i]);
            mpq_canonicalize(factor);
            mpq_mul(expected, expected, factor);
            mpq_get_str(text, 10, expected);
            ck_assert_str_eq(shown(work, values[i], kinds[i], room, sizeof room), text);
            ck_assert_int_eq(kinds[count + i], ETCH_VALUE_INTEGER);
            ck_assert_int_eq(values[count + i], a[i] / 3);
        }
    }
    mpq_clears(expected, factor, NULL);
    etch_workspace_free(work);
    etch_program_free(program);
}

START_TEST(blocks)
{
    etch_with_arena(blocks_of_any_length);
}
END_TEST

static void sharing(etch_arena *arena)
{
    etch_sym *sym = etch_sym_new(arena);
    etch_expr one = parse(sym, "a*b*c + 7"), same[] = {one, one, one};
    etch_program *single = compile(sym, 1, same), *triple = compile(sym, 3, same);
    ck_assert_uint_eq(etch_program_instructions(single), etch_program_instructions(triple));
    ck_assert_uint_eq(etch_program_formulas(triple), 3);
    etch_expr related[] = {parse(sym, "floor(a*b/7)"), parse(sym, "floor(a*b/7)*c")};
    etch_program *both = compile(sym, 2, related), *less = compile(sym, 1, related);
    /* load c, one product */
    ck_assert_uint_eq(etch_program_instructions(both), etch_program_instructions(less) + 2);
    ck_assert_uint_eq(etch_program_variables(both), 3);
    ck_assert_str_eq(etch_program_variable(both, 1), "b");
    ck_assert_ptr_null(etch_program_variable(both, 3));
    etch_program_free(single);
    etch_program_free(triple);
    etch_program_free(both);
    etch_program_free(less);
}

START_TEST(shared_subexpressions)
{
    etch_with_arena(sharing);
}
END_TEST

/* A program stays when its context has gone, also what it says of its variables. */
START_TEST(outlives_the_context)
{
    etch_mem *mem = etch_mem_new(64 << 20);
    etch_arena *arena = etch_arena_new(mem);
    etch_sym *sym = etch_sym_new(arena);
    etch_expr e = etch_add(sym, etch_var(sym, "heads"), etch_number(sym, "36893488147419103232", 20));
    etch_program *program = compile(sym, 1, &e);
    etch_mem_free(mem);
    etch_workspace *work = new_workspace();
    const int64_t heads = 1;
    const etch_column column = {.values = &heads, .same = true};
    int64_t value, num, den;
    unsigned char kind;
    check_evaluate(program, 1, &column, &value, &kind, work);
    ck_assert_str_eq(etch_program_variable(program, 0), "heads");
    ck_assert_str_eq(etch_workspace_number(work, value), "36893488147419103233");
    ck_assert(!etch_workspace_fraction(work, value, &num, &den));
    ck_assert_ptr_null(etch_workspace_number(work, value + 1));
    ck_assert_ptr_null(etch_workspace_number(work, -1));
    etch_program_free(program);
    etch_workspace_free(work);
}
END_TEST

static void refusals(etch_arena *arena)
{
    etch_sym *sym = etch_sym_new(arena);
    etch_expr none = NULL, a = etch_var(sym, "a");
    etch_program *program;
    ck_assert_int_eq(etch_compile(sym, 1, &none, &program), ETCH_EINPUT);
    ck_assert_ptr_null(program);
    ck_assert_int_eq(etch_compile(sym, 0, NULL, &program), ETCH_EINPUT);
    program = compile(sym, 1, &a);
    etch_workspace *work = new_workspace();
    const int64_t values[] = {6, 7}, denominators[] = {4, 0};
    const etch_column column = {.values = values, .denominators = denominators};
    int64_t results[2], num, den;
    unsigned char kinds[2];
    ck_assert_int_eq(etch_program_evaluate(program, 2, &column, results, kinds, work), ETCH_EINPUT);
    check_evaluate(program, 1, &column, results, kinds, work);
    ck_assert_int_eq(kinds[0], ETCH_VALUE_RATIONAL);
    ck_assert(etch_workspace_fraction(work, results[0], &num, &den));
    ck_assert(num == 3 && den == 2);
    etch_program_free(program);
    etch_workspace_free(work);
}

START_TEST(refused)
{
    etch_with_arena(refusals);
}
END_TEST

/* ---- sums ---------------------------------------------------------------------------------------------- */

/* The sum over i < n, j < i of floor(i*m/3) * max(j, m - 3), and others, by loops of our own. */
static int64_t double_sum(int64_t n, int64_t m)
{
    int64_t sum = 0;
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < i; j++)
            sum += i * m / 3 * (j > m - 3 ? j : m - 3);
    return sum;
}

static void sums_are_loops(etch_arena *arena)
{
    enum { COUNT = 300 };
    etch_sym *sym = etch_sym_new(arena);
    etch_expr n = etch_var(sym, "n"), m = etch_var(sym, "m");
    etch_var_at_least(sym, n, -1);
    etch_expr i = etch_index(sym, 0), j = etch_index(sym, 1), zero = etch_int(sym, 0), one = etch_int(sym, 1);
    etch_expr inner = etch_mul(sym, etch_floor_div(sym, etch_mul(sym, i, m), etch_int(sym, 3)),
                               etch_max(sym, j, etch_sub(sym, m, etch_int(sym, 3))));
    etch_expr sums = etch_sum_over(sym, j, zero, etch_sub(sym, i, one), inner);
    etch_expr exprs[] = {etch_sum_over(sym, i, zero, etch_sub(sym, n, one), sums), etch_mul(sym, n, m),
                         etch_sum_over(sym, i, one, n, etch_div(sym, m, i))};
    etch_program *program = compile(sym, 3, exprs);
    etch_workspace *work = new_workspace();
    int64_t n_values[COUNT], m_values[COUNT], values[3 * COUNT];
    unsigned char kinds[3 * COUNT];
    for (int64_t k = 0; k < COUNT; k++) {
        n_values[k] = k % 23 - 1;
        m_values[k] = k % 40 == 3 ? INT64_C(1) << 61 : 1 + k % 7;
    }
    const etch_column columns[] = {{.values = n_values}, {.values = m_values}};
    check_evaluate(program, COUNT, columns, values, kinds, work);
    for (size_t k = 0; k < COUNT; k++) {
        ck_assert_int_ne(kinds[k], ETCH_VALUE_UNDEFINED);
        if (m_values[k] < 1000) {
            ck_assert_int_eq(kinds[k], ETCH_VALUE_INTEGER);
            ck_assert_int_eq(values[k], double_sum(n_values[k], m_values[k]));
            ck_assert_int_eq(values[COUNT + k], n_values[k] * m_values[k]);
        }
    }
    char room[100];
    /* n = 4: 1 + 1/2 + 1/3 + 1/4 = 25/12, m = 6 */
    ck_assert_int_eq(n_values[5], 4);
    ck_assert_str_eq(shown(work, values[2 * COUNT + 5], kinds[2 * COUNT + 5], room, sizeof room), "25/2");
    const int64_t endless = INT64_C(1) << 40;
    const etch_column long_columns[] = {{.values = &endless}, {.values = &endless}};
    check_evaluate(program, 1, long_columns, values, kinds, work);
    ck_assert_int_eq(kinds[0], ETCH_VALUE_TOO_LONG);
    ck_assert_int_eq(kinds[1], ETCH_VALUE_LARGE);
    etch_workspace_free(work);
    etch_program_free(program);
}

START_TEST(sums)
{
    etch_with_arena(sums_are_loops);
}
END_TEST

/* ---- long formulas ------------------------------------------------------------------------------------- */

/* A sum of 10^5 variables, and a polynomial without structure: compiled in reasonable time and space. */
static void long_formulas(etch_arena *arena)
{
    enum { TERMS = 100000, PRODUCTS = 20000 };
    etch_sym *sym = etch_sym_new(arena);
    etch_expr *terms = ETCH_NEW_ARRAY(arena, TERMS, etch_expr);
    etch_expr *products = ETCH_NEW_ARRAY(arena, PRODUCTS, etch_expr);
    for (uint32_t i = 0; i < TERMS; i++)
        terms[i] = etch_var(sym, etch_text(arena, "x%u", i));
    etch_expr exprs[] = {etch_sum(sym, TERMS, terms), NULL, NULL};
    for (uint32_t i = 0; i < PRODUCTS; i++)
        products[i] = etch_mul(sym, terms[i / 2], terms[1000 + (i * 7) % 5000]);
    exprs[1] = etch_sum(sym, PRODUCTS, products);
    for (uint32_t i = 0; i < PRODUCTS; i++)
        products[i] = etch_div(sym, terms[(i * 7) % TERMS], terms[i]);
    exprs[2] = etch_sum(sym, PRODUCTS, products);
    etch_program *program = compile(sym, 3, exprs);
    ck_assert_uint_eq(etch_program_variables(program), TERMS);
    etch_column *columns = ETCH_NEW_ARRAY(arena, TERMS, etch_column);
    const int64_t three = 3;
    for (uint32_t i = 0; i < TERMS; i++)
        columns[i] = (etch_column){.values = &three, .same = true};
    etch_workspace *work = new_workspace();
    int64_t values[3];
    unsigned char kinds[3];
    check_evaluate(program, 1, columns, values, kinds, work);
    ck_assert_int_eq(values[0], 3 * TERMS);
    ck_assert_int_eq(values[2], PRODUCTS);
    ck_assert_int_eq(values[1], 9 * PRODUCTS);
    etch_workspace_free(work);
    etch_program_free(program);
}

START_TEST(long_ones)
{
    etch_with_arena(long_formulas);
}
END_TEST

/* ---- threads ------------------------------------------------------------------------------------------- */

typedef struct crowd {
    const etch_program *program;
    const etch_column *columns;
    size_t count;
    const int64_t *values;
    const unsigned char *kinds;
} crowd;

static etch_status evaluate_again(void *data, size_t i)
{
    const crowd *c = data;
    (void)i;
    etch_workspace *work;
    int64_t *values = malloc(c->count * sizeof *values);
    unsigned char *kinds = malloc(c->count);
    etch_status status = etch_workspace_new(&work);
    if (status == ETCH_OK && values && kinds)
        status = etch_program_evaluate(c->program, c->count, c->columns, values, kinds, work);
    if (status == ETCH_OK &&
        (memcmp(values, c->values, c->count * sizeof *values) != 0 || memcmp(kinds, c->kinds, c->count) != 0))
        status = ETCH_EINTERNAL;
    etch_workspace_free(work);
    free(values);
    free(kinds);
    return status;
}

static void many_threads(etch_arena *arena)
{
    enum { COUNT = 2000 };
    etch_sym *sym = etch_sym_new(arena);
    etch_expr e = parse(sym, "a^3*b + floor(a/b)*max(a, b^2)/b");
    etch_program *program = compile(sym, 1, &e);
    etch_workspace *work = new_workspace();
    static int64_t a[COUNT], b[COUNT], values[COUNT];
    static unsigned char kinds[COUNT];
    for (int64_t i = 0; i < COUNT; i++) {
        a[i] = 1 + i * (i % 100 == 0 ? 100000000 : 1);
        b[i] = 1 + i % 17;
    }
    const etch_column columns[] = {{.values = a}, {.values = b}};
    check_evaluate(program, COUNT, columns, values, kinds, work);
    crowd c = {program, columns, COUNT, values, kinds};
    ck_assert_int_eq(etch_parallel(8, 32, evaluate_again, &c), ETCH_OK);
    etch_workspace_free(work);
    etch_program_free(program);
}

START_TEST(threads)
{
    etch_with_arena(many_threads);
}
END_TEST

Suite *etch_suite(void)
{
    Suite *suite = suite_create("program");
    ETCH_ADD_TESTS(suite, random_formulas, borders_of_numbers, blocks, shared_subexpressions,
                   outlives_the_context, refused, sums, long_ones, threads);
    return suite;
}
