/* Expressions that are built by any sequence of operations have the values of exact arithmetic, and what is
 * said of two of them is true of their values. The input is a program for a stack machine that works on
 * expressions and, beside them, on their values at a few points. */
#include "fuzz.h"

#include "symbolic/symbolic.h"

#include <gmp.h>
#include <stdlib.h>

enum { STACK = 24, VARS = 4, POINTS = 3, LONGEST = 48 };

static const int points[POINTS][VARS] = {{1, 1, 1, 1}, {2, 7, 3, 12}, {30, 4, 9, 1}};

/* A value that is undefined where `defined` is false. */
typedef struct value {
    mpq_t at[POINTS];
    bool defined[POINTS];
} value;

typedef struct machine {
    etch_mem *mem;
    const uint8_t *code;
    size_t size;
    etch_sym *sym;
    etch_expr vars[VARS];
    etch_expr exprs[STACK]; /* NULL: undefined for all values */
    value values[STACK];
    uint32_t top;
} machine;

static void floor_to(mpq_t q)
{
    mpz_fdiv_q(mpq_numref(q), mpq_numref(q), mpq_denref(q));
    mpz_set_ui(mpq_denref(q), 1);
}

/* a := a op b, exactly; false where it is undefined. */
static bool operate(unsigned op, mpq_t a, mpq_t b)
{
    switch (op) {
    case 0:
        mpq_add(a, a, b);
        return true;
    case 1:
        mpq_sub(a, a, b);
        return true;
    case 2:
        mpq_mul(a, a, b);
        return true;
    case 3:
    case 4:
        if (mpq_sgn(b) == 0)
            return false;
        mpq_div(a, a, b);
        if (op == 4)
            floor_to(a);
        return true;
    case 5:
        if (mpq_cmp(a, b) < 0)
            mpq_set(a, b);
        return true;
    default:
        if (mpq_cmp(a, b) > 0)
            mpq_set(a, b);
        return true;
    }
}

static void push(machine *m, etch_expr expr, const int *var, long number)
{
    value *v = &m->values[m->top];
    for (int p = 0; p < POINTS; p++) {
        mpq_set_si(v->at[p], var ? points[p][*var] : number, 1);
        v->defined[p] = true;
    }
    m->exprs[m->top++] = expr;
}

static void binary(machine *m, unsigned op)
{
    static etch_expr (*const operations[])(etch_sym * sym, etch_expr a, etch_expr b) = {
        etch_add, etch_sub, etch_mul, etch_div, etch_floor_div, etch_max, etch_min};
    m->top--;
    value *a = &m->values[m->top - 1], *b = &m->values[m->top];
    for (int p = 0; p < POINTS; p++)
        a->defined[p] = a->defined[p] && b->defined[p] && operate(op, a->at[p], b->at[p]);
    m->exprs[m->top - 1] = operations[op](m->sym, m->exprs[m->top - 1], m->exprs[m->top]);
}

static void check_value(machine *m, uint32_t i)
{
    for (int p = 0; m->exprs[i] && p < POINTS; p++) {
        etch_expr numbers[VARS];
        for (int k = 0; k < VARS; k++)
            numbers[k] = etch_int(m->sym, points[p][k]);
        if (!m->values[i].defined[p])
            continue;
        etch_expr found = etch_subst(m->sym, m->exprs[i], VARS, m->vars, numbers);
        char *text = mpq_get_str(NULL, 10, m->values[i].at[p]);
        size_t at, length = 0;
        while (text[length])
            length++;
        if (!found || found != etch_expr_parse(m->sym, text, length, &at))
            abort();
        free(text);
    }
}

/* A yes must be true at every point where both have a value. */
static void compare(machine *m, uint32_t i, uint32_t j)
{
    etch_expr a = m->exprs[i], b = m->exprs[j];
    const bool equal = etch_equal(m->sym, a, b, NULL) == ETCH_YES;
    const bool apart = etch_different(m->sym, a, b, NULL) == ETCH_YES;
    const bool least = etch_at_least(m->sym, a, b, NULL) == ETCH_YES;
    const bool above = etch_above(m->sym, a, b, NULL) == ETCH_YES;
    for (int p = 0; p < POINTS; p++) {
        if (!m->values[i].defined[p] || !m->values[j].defined[p])
            continue;
        int order = mpq_cmp(m->values[i].at[p], m->values[j].at[p]);
        if ((equal && order != 0) || (apart && order == 0) || (least && order < 0) || (above && order <= 0))
            abort();
    }
}

static etch_status run(void *data)
{
    static const etch_sym_limits limits = {
        .terms = 300, .exponent = 200, .digits = 300, .operations = 2000000};
    machine *m = data;
    m->sym = etch_sym_new(etch_arena_new(m->mem));
    etch_sym_set_limits(m->sym, &limits);
    for (int k = 0; k < VARS; k++)
        m->vars[k] = etch_var(m->sym, (const char *const[]){"a", "b", "c", "d"}[k]);
    for (size_t i = 0; i < m->size && i < LONGEST; i++) {
        const uint8_t byte = m->code[i];
        const int var = byte & 3;
        if (byte < 64 && m->top < STACK)
            push(m, m->vars[var], &var, 0);
        else if (byte < 96 && m->top < STACK)
            push(m, etch_int(m->sym, byte - 80), NULL, byte - 80);
        else if (byte >= 96 && m->top >= 2)
            binary(m, byte % 7);
    }
    for (uint32_t i = 0; i < m->top; i++)
        check_value(m, i);
    for (uint32_t i = 0; i + 1 < m->top && i < 4; i++)
        compare(m, i, i + 1);
    return ETCH_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    machine m = {.mem = etch_mem_new((size_t)256 << 20), .code = data, .size = size};
    if (!m.mem)
        abort();
    for (int i = 0; i < STACK * POINTS; i++)
        mpq_init(m.values[i / POINTS].at[i % POINTS]);
    etch_status status = etch_guard(m.mem, run, &m);
    for (int i = 0; i < STACK * POINTS; i++)
        mpq_clear(m.values[i / POINTS].at[i % POINTS]);
    etch_mem_free(m.mem);
    if (status != ETCH_OK && status != ETCH_ELIMIT)
        abort();
    return 0;
}
