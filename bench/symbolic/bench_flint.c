/* FLINT on a workload: bench_flint TASK FILE [SECONDS], as bench_etch.
 *
 * fmpq_mpoly has no negative exponents: where a workload divides, each variable has a second generator for
 * its inverse, and the two are cancelled in every product. Divisors are monomials. */
#include "replay.h"

#include <stdlib.h>
#include <string.h>

#include <flint/fmpq.h>
#include <flint/fmpq_mpoly.h>

typedef struct bench {
    const workload *w;
    fmpq_mpoly_ctx_t ctx;
    slong generators;
    fmpq_mpoly_t *slots, stack[WORKLOAD_STACK], scratch;
    unsigned long failed_checks;
} bench;

static void open_bench(bench *b, const workload *w)
{
    *b = (bench){.w = w, .generators = (slong)w->var_count * (w->divides ? 2 : 1)};
    fmpq_mpoly_ctx_init(b->ctx, b->generators, ORD_LEX);
    b->slots = calloc(w->slot_count, sizeof *b->slots);
    if (!b->slots)
        abort();
    for (uint32_t i = 0; i < w->slot_count; i++)
        fmpq_mpoly_init(b->slots[i], b->ctx);
    for (uint32_t i = 0; i < WORKLOAD_STACK; i++)
        fmpq_mpoly_init(b->stack[i], b->ctx);
    fmpq_mpoly_init(b->scratch, b->ctx);
}

static void close_bench(bench *b)
{
    for (uint32_t i = 0; i < b->w->slot_count; i++)
        fmpq_mpoly_clear(b->slots[i], b->ctx);
    for (uint32_t i = 0; i < WORKLOAD_STACK; i++)
        fmpq_mpoly_clear(b->stack[i], b->ctx);
    fmpq_mpoly_clear(b->scratch, b->ctx);
    free(b->slots);
    fmpq_mpoly_ctx_clear(b->ctx);
}

/* Takes x * 1/x out of every term. */
static void cancel(bench *b, fmpq_mpoly_t p)
{
    const slong pairs = b->generators / 2;
    slong degrees[2 * WORKLOAD_VARS];
    ulong exponents[2 * WORKLOAD_VARS];
    int needed = 0;
    if (!b->w->divides || fmpq_mpoly_is_zero(p, b->ctx))
        return;
    fmpq_mpoly_degrees_si(degrees, p, b->ctx);
    for (slong i = 0; i < pairs; i++)
        needed |= degrees[i] > 0 && degrees[pairs + i] > 0;
    if (!needed)
        return;
    for (slong t = fmpq_mpoly_length(p, b->ctx); t-- > 0;) {
        int changed = 0;
        fmpq_mpoly_get_term_exp_ui(exponents, p, t, b->ctx);
        for (slong i = 0; i < pairs; i++) {
            ulong both = exponents[i] < exponents[pairs + i] ? exponents[i] : exponents[pairs + i];
            exponents[i] -= both;
            exponents[pairs + i] -= both;
            changed |= both > 0;
        }
        if (changed)
            fmpq_mpoly_set_term_exp_ui(p, t, exponents, b->ctx);
    }
    fmpq_mpoly_sort_terms(p, b->ctx);
    fmpq_mpoly_combine_like_terms(p, b->ctx);
}

/* The inverse of a monomial: exponents change places. */
static void invert(bench *b, fmpq_mpoly_t p)
{
    const slong pairs = b->generators / 2;
    ulong exponents[2 * WORKLOAD_VARS], swapped[2 * WORKLOAD_VARS];
    fmpq_t c;
    fmpq_init(c);
    fmpq_mpoly_get_term_coeff_fmpq(c, p, 0, b->ctx);
    fmpq_mpoly_get_term_exp_ui(exponents, p, 0, b->ctx);
    for (slong i = 0; i < b->generators; i++)
        swapped[i] = exponents[i < pairs ? i + pairs : i - pairs];
    fmpq_inv(c, c);
    fmpq_mpoly_zero(p, b->ctx);
    fmpq_mpoly_push_term_fmpq_ui(p, c, swapped, b->ctx);
    fmpq_clear(c);
}

static void operate(bench *b, char kind, fmpq_mpoly_t x, fmpq_mpoly_t y)
{
    switch (kind) {
    case '+':
        fmpq_mpoly_add(x, x, y, b->ctx);
        return;
    case '-':
        fmpq_mpoly_sub(x, x, y, b->ctx);
        return;
    case '/':
        invert(b, y);
        break;
    default:
        break;
    }
    fmpq_mpoly_mul(b->scratch, x, y, b->ctx);
    fmpq_mpoly_swap(x, b->scratch, b->ctx);
    cancel(b, x);
}

static void replay(bench *b, uint32_t from, uint32_t to)
{
    for (uint32_t i = from; i < to; i++) {
        const statement *s = &b->w->statements[i];
        slong top = 0;
        for (const token *t = s->tokens; t < s->tokens + s->count; t++) {
            switch (t->kind) {
            case 'v':
                fmpq_mpoly_gen(b->stack[top++], t->value, b->ctx);
                break;
            case 's':
                fmpq_mpoly_set(b->stack[top++], b->slots[t->value], b->ctx);
                break;
            case '#':
                fmpq_mpoly_set_si(b->stack[top++], t->value, b->ctx);
                break;
            case '^':
                fmpq_mpoly_pow_ui(b->stack[top - 1], b->stack[top - 1], (ulong)t->value, b->ctx);
                break;
            default:
                top--;
                operate(b, t->kind, b->stack[top - 1], b->stack[top]);
            }
        }
        if (s->kind == 'l')
            fmpq_mpoly_swap(b->slots[s->slot], b->stack[0], b->ctx);
        else if (!fmpq_mpoly_equal(b->stack[0], b->stack[1], b->ctx))
            b->failed_checks++;
    }
}

/* ---- tasks --------------------------------------------------------------------------------------------- */

static double build_round(void *data)
{
    enum { BATCH = 8 };
    bench *b = data;
    replay(b, 0, b->w->begin);
    double start = cpu_seconds();
    for (int i = 0; i < BATCH; i++)
        replay(b, b->w->begin, b->w->count);
    return (cpu_seconds() - start) / BATCH;
}

static double print_round(void *data)
{
    bench *b = data;
    const char *names[2 * WORKLOAD_VARS];
    static char inverse[WORKLOAD_VARS][16];
    for (uint32_t i = 0; i < b->w->var_count; i++) {
        snprintf(inverse[i], sizeof inverse[i], "%s_1", b->w->vars[i].name);
        names[i] = b->w->vars[i].name;
        names[b->w->var_count + i] = inverse[i];
    }
    double start = cpu_seconds();
    char *text = fmpq_mpoly_get_str_pretty(b->slots[b->w->result], names, b->ctx);
    double taken = cpu_seconds() - start;
    flint_free(text);
    return taken;
}

/* d/dx of a polynomial in x and y = 1/x: d/dx - y^2 d/dy. */
static double derivatives_round(void *data)
{
    bench *b = data;
    const slong pairs = b->generators / 2;
    fmpq_mpoly_t dx, dy, square;
    fmpq_mpoly_init(dx, b->ctx);
    fmpq_mpoly_init(dy, b->ctx);
    fmpq_mpoly_init(square, b->ctx);
    double start = cpu_seconds();
    for (slong i = 0; i < pairs; i++) {
        fmpq_mpoly_derivative(dx, b->slots[b->w->result], i, b->ctx);
        fmpq_mpoly_derivative(dy, b->slots[b->w->result], pairs + i, b->ctx);
        fmpq_mpoly_gen(square, pairs + i, b->ctx);
        fmpq_mpoly_pow_ui(square, square, 2, b->ctx);
        fmpq_mpoly_mul(dy, dy, square, b->ctx);
        fmpq_mpoly_sub(dx, dx, dy, b->ctx);
    }
    double taken = cpu_seconds() - start;
    fmpq_mpoly_clear(dx, b->ctx);
    fmpq_mpoly_clear(dy, b->ctx);
    fmpq_mpoly_clear(square, b->ctx);
    return taken;
}

static void value_at(bench *b, uint64_t configuration_index, fmpq_t value)
{
    fmpq *values[2 * WORKLOAD_VARS], store[2 * WORKLOAD_VARS];
    for (slong i = 0; i < b->generators; i++) {
        const slong var = i % b->w->var_count;
        fmpq_init(&store[i]);
        fmpq_set_si(&store[i], configuration(&b->w->vars[var], configuration_index), 1);
        if (i != var)
            fmpq_inv(&store[i], &store[i]);
        values[i] = &store[i];
    }
    fmpq_mpoly_evaluate_all_fmpq(value, b->slots[b->w->result], values, b->ctx);
    for (slong i = 0; i < b->generators; i++)
        fmpq_clear(&store[i]);
}

static double evaluate_round(void *data)
{
    enum { CONFIGURATIONS = 100 };
    bench *b = data;
    fmpq_t value;
    fmpq_init(value);
    double start = cpu_seconds();
    for (uint64_t i = 0; i < CONFIGURATIONS; i++)
        value_at(b, i, value);
    double taken = cpu_seconds() - start;
    fmpq_clear(value);
    return taken / CONFIGURATIONS;
}

static const struct {
    const char *name;
    double (*round)(void *data);
} tasks[] = {
    {"build", build_round},       {"stress", build_round},
    {"print", print_round},       {"derivatives", derivatives_round},
    {"evaluate", evaluate_round},
};

int main(int argc, char **argv)
{
    if (argc < 3) {
        fprintf(stderr, "usage: bench_flint TASK FILE [SECONDS]\n");
        return EXIT_FAILURE;
    }
    workload w = workload_read(argv[2]);
    const double budget = argc > 3 ? strtod(argv[3], NULL) : 0.5;
    bench b;
    open_bench(&b, &w);
    replay(&b, 0, w.count);
    for (size_t i = 0; i < sizeof tasks / sizeof *tasks; i++) {
        if (strcmp(tasks[i].name, argv[1]) != 0)
            continue;
        double seconds = measure(budget, 1, tasks[i].round, &b);
        fmpq_t value;
        fmpq_init(value);
        value_at(&b, 0, value);
        char *text = fmpq_get_str(NULL, 10, value);
        printf("%.9g %s %lu\n", seconds, text, b.failed_checks);
        flint_free(text);
        fmpq_clear(value);
        close_bench(&b);
        workload_free(&w);
        flint_cleanup();
        return EXIT_SUCCESS;
    }
    fprintf(stderr, "bench_flint: no task %s\n", argv[1]);
    return EXIT_FAILURE;
}
