/* etch on a workload: bench_etch TASK FILE [SECONDS], with the tasks of the table below
 *
 * Prints "seconds per round", then what the result is worth at configuration 0: all engines must agree. */
#include "replay.h"

#include <limits.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include "symbolic/symbolic.h"

enum { BATCH = 32 }; /* contexts that one measurement covers, so that the clock costs nothing */

typedef struct bench {
    const workload *w;
    double budget;
    const char *task;
    etch_mem *mem;
    uint32_t batch;
    double seconds; /* what was found */
    uint64_t failed_checks;
} bench;

/* One replay in a context of its own. */
typedef struct run {
    etch_sym *sym;
    etch_expr vars[WORKLOAD_VARS];
    etch_expr *slots;
} run;

static run new_run(const workload *w, etch_arena *arena)
{
    run r = {.sym = etch_sym_new(arena)};
    for (uint32_t i = 0; i < w->var_count; i++)
        r.vars[i] = etch_var(r.sym, w->vars[i].name);
    r.slots = ETCH_NEW_ARRAY(arena, w->slot_count, etch_expr);
    return r;
}

static etch_expr operate(etch_sym *sym, char kind, etch_expr a, etch_expr b)
{
    switch (kind) {
    case '+':
        return etch_add(sym, a, b);
    case '-':
        return etch_sub(sym, a, b);
    case '*':
        return etch_mul(sym, a, b);
    default:
        return etch_div(sym, a, b);
    }
}

static void replay(bench *b, run *r, uint32_t from, uint32_t to)
{
    etch_expr stack[WORKLOAD_STACK];
    for (uint32_t i = from; i < to; i++) {
        const statement *s = &b->w->statements[i];
        etch_expr *top = stack;
        for (const token *t = s->tokens; t < s->tokens + s->count; t++) {
            switch (t->kind) {
            case 'v':
                *top++ = r->vars[t->value];
                break;
            case 's':
                *top++ = r->slots[t->value];
                break;
            case '#':
                *top++ = etch_int(r->sym, t->value);
                break;
            case '^':
                top[-1] = etch_pow(r->sym, top[-1], t->value);
                break;
            default:
                top--;
                top[-1] = operate(r->sym, t->kind, top[-1], top[0]);
            }
        }
        if (s->kind == 'l')
            r->slots[s->slot] = stack[0];
        else if (stack[0] != stack[1])
            b->failed_checks++;
    }
}

/* ---- tasks --------------------------------------------------------------------------------------------- */

static double build_round(void *data)
{
    bench *b = data;
    run runs[BATCH];
    etch_arena *arena = etch_arena_new(b->mem);
    for (uint32_t i = 0; i < b->batch; i++) {
        runs[i] = new_run(b->w, arena);
        replay(b, &runs[i], 0, b->w->begin);
    }
    double start = cpu_seconds();
    for (uint32_t i = 0; i < b->batch; i++)
        replay(b, &runs[i], b->w->begin, b->w->count);
    double taken = cpu_seconds() - start;
    etch_arena_free(arena);
    return taken;
}

static double print_round(void *data)
{
    bench *b = data;
    etch_buf out[BATCH];
    etch_arena *arena = etch_arena_new(b->mem);
    run r = new_run(b->w, arena);
    replay(b, &r, 0, b->w->count);
    double start = cpu_seconds();
    for (uint32_t i = 0; i < b->batch; i++) {
        out[i] = (etch_buf){.arena = arena};
        etch_expr_write(r.sym, r.slots[b->w->result], ETCH_PLAIN, ETCH_EXPANDED, &out[i]);
    }
    double taken = cpu_seconds() - start;
    etch_arena_free(arena);
    return taken;
}

static double derivatives_round(void *data)
{
    bench *b = data;
    etch_arena *arena = etch_arena_new(b->mem);
    run r = new_run(b->w, arena);
    replay(b, &r, 0, b->w->count);
    double start = cpu_seconds();
    for (uint32_t k = 0; k < b->w->var_count; k++)
        etch_diff(r.sym, r.slots[b->w->result], r.vars[k], NULL);
    double taken = cpu_seconds() - start;
    etch_arena_free(arena);
    return taken;
}

/* The value at a configuration, by substitution. */
static etch_expr value_at(const bench *b, const run *r, uint64_t i)
{
    etch_expr values[WORKLOAD_VARS];
    for (uint32_t k = 0; k < b->w->var_count; k++)
        values[k] = etch_int(r->sym, configuration(&b->w->vars[k], i));
    return etch_subst(r->sym, r->slots[b->w->result], b->w->var_count, r->vars, values);
}

/* The columns of a program's variables; they are no part of what is measured. */
static etch_column *new_columns(const bench *b, etch_arena *arena, const etch_program *program, size_t count)
{
    const size_t vars = etch_program_variables(program);
    etch_column *columns = ETCH_NEW_ARRAY(arena, vars, etch_column);
    for (size_t k = 0; k < vars; k++) {
        int64_t *values = ETCH_NEW_ARRAY(arena, count, int64_t);
        const variable *var = b->w->vars;
        while (strcmp(var->name, etch_program_variable(program, k)) != 0)
            var++;
        for (size_t i = 0; i < count; i++)
            values[i] = configuration(var, i);
        columns[k] = (etch_column){.values = values};
    }
    return columns;
}

/* The first values must be those of substitution. */
static void check_values(bench *b, const run *r, const int64_t *values, const unsigned char *kinds,
                         etch_workspace *workspace)
{
    enum { CHECKED = 100 };
    for (size_t i = 0; i < CHECKED; i++) {
        const char *found = kinds[i] == ETCH_VALUE_INTEGER
                                ? etch_expr_text(r->sym, etch_int(r->sym, values[i]))
                                : etch_workspace_number(workspace, values[i]);
        if (!found || strcmp(found, etch_expr_text(r->sym, value_at(b, r, i))) != 0)
            b->failed_checks++;
    }
}

static double evaluate_round(void *data)
{
    bench *b = data;
    const size_t count = b->budget < 0.1 ? 10000 : 1000000;
    etch_arena *arena = etch_arena_new(b->mem);
    run r = new_run(b->w, arena);
    replay(b, &r, 0, b->w->count);
    etch_program *program;
    etch_workspace *workspace;
    if (etch_compile(r.sym, 1, &r.slots[b->w->result], &program) != ETCH_OK ||
        etch_workspace_new(&workspace) != ETCH_OK)
        etch_trap(b->mem, ETCH_ENOMEM);
    etch_column *columns = new_columns(b, arena, program, count);
    int64_t *values = ETCH_NEW_ARRAY(arena, count, int64_t);
    unsigned char *kinds = ETCH_NEW_ARRAY(arena, count, unsigned char);
    double start = cpu_seconds();
    if (etch_program_evaluate(program, count, columns, values, kinds, workspace) != ETCH_OK)
        etch_trap(b->mem, ETCH_ENOMEM);
    double taken = cpu_seconds() - start;
    check_values(b, &r, values, kinds, workspace);
    etch_workspace_free(workspace);
    etch_program_free(program);
    etch_arena_free(arena);
    return taken / (double)count;
}

static const struct {
    const char *name;
    double (*round)(void *data);
    uint32_t batch;
} tasks[] = {
    {"build", build_round, BATCH},   {"stress", build_round, 1}, /* the same, of something large */
    {"print", print_round, BATCH},   {"derivatives", derivatives_round, 1},
    {"evaluate", evaluate_round, 1},
};

static void print_result(bench *b)
{
    etch_arena *arena = etch_arena_new(b->mem);
    run r = new_run(b->w, arena);
    replay(b, &r, 0, b->w->count);
    printf("%.9g %s %llu\n", b->seconds, etch_expr_text(r.sym, value_at(b, &r, 0)),
           (unsigned long long)b->failed_checks);
    etch_arena_free(arena);
}

static etch_status go(void *data)
{
    bench *b = data;
    for (size_t i = 0; i < sizeof tasks / sizeof *tasks; i++) {
        if (strcmp(tasks[i].name, b->task) != 0)
            continue;
        b->batch = tasks[i].batch;
        b->seconds = measure(b->budget, tasks[i].batch, tasks[i].round, b);
        print_result(b);
        return ETCH_OK;
    }
    return ETCH_EINPUT;
}

int main(int argc, char **argv)
{
    if (argc < 3) {
        fprintf(stderr, "usage: bench_etch TASK FILE [SECONDS]\n");
        return EXIT_FAILURE;
    }
    /* Memory that a round gave back serves the next one, as it does in the other engines, instead of being
     * asked from the kernel again. */
    mallopt(M_TRIM_THRESHOLD, INT_MAX);
    mallopt(M_MMAP_THRESHOLD, INT_MAX);
    workload w = workload_read(argv[2]);
    bench b = {.w = &w, .task = argv[1], .budget = argc > 3 ? strtod(argv[3], NULL) : 0.5};
    b.mem = etch_mem_new((size_t)2 << 30);
    etch_status status = b.mem ? etch_guard(b.mem, go, &b) : ETCH_ENOMEM;
    etch_mem_free(b.mem);
    workload_free(&w);
    if (status != ETCH_OK)
        fprintf(stderr, "bench_etch: %s %s: status %d\n", argv[1], argv[2], (int)status);
    return status == ETCH_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}
