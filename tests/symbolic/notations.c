/* Reads an expression per line, writes per line a JSON object: its texts in C, Python and LaTeX ("c",
 * "python", "latex": shortest, expanded, factored, relative), its canonical form ("json"), its derivative by
 * a in Python ("slope") and whether that is piecewise. The last line has all expressions as assignments to
 * r0, r1.. in C and Python. For tests in other languages. */
#include <stdio.h>
#include <string.h>

#include "symbolic/symbolic.h"

enum { LONGEST_LINE = 1 << 20 };

static const etch_form forms[] = {ETCH_SHORTEST, ETCH_EXPANDED, ETCH_FACTORED, ETCH_RELATIVE};

typedef struct writer {
    etch_arena *arena;
    etch_sym *sym;
} writer;

static void put_string(const char *text)
{
    putchar('"');
    for (; *text; text++) {
        if (*text == '\n')
            fputs("\\n", stdout);
        else if (*text == '\\')
            fputs("\\\\", stdout);
        else
            putchar(*text);
    }
    putchar('"');
}

static const char *written(writer *w, etch_expr e, etch_notation notation, etch_form form)
{
    etch_buf out = {.arena = w->arena};
    etch_expr_write(w->sym, e, notation, form, &out);
    return out.text;
}

static void put_forms(writer *w, const char *name, etch_expr e, etch_notation notation)
{
    printf("\"%s\": [", name);
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        fputs(i ? ", " : "", stdout);
        put_string(written(w, e, notation, forms[i]));
    }
    fputs("], ", stdout);
}

static void put_expression(writer *w, etch_expr e)
{
    bool piecewise;
    etch_expr slope = etch_diff(w->sym, e, etch_var(w->sym, "a"), &piecewise);
    putchar('{');
    put_forms(w, "c", e, ETCH_C);
    put_forms(w, "python", e, ETCH_PYTHON);
    put_forms(w, "latex", e, ETCH_LATEX);
    printf("\"json\": %s, \"slope\": ", written(w, e, ETCH_JSON, ETCH_EXPANDED));
    put_string(written(w, slope, ETCH_PYTHON, ETCH_EXPANDED));
    printf(", \"piecewise\": %s}\n", piecewise ? "true" : "false");
}

static void put_assignments(writer *w, uint32_t count, const etch_expr *roots)
{
    etch_buf c = {.arena = w->arena}, python = {.arena = w->arena};
    const char **names = ETCH_NEW_ARRAY(w->arena, count, const char *);
    for (uint32_t i = 0; i < count; i++)
        names[i] = etch_text(w->arena, "r%u", (unsigned)i);
    etch_exprs_write(w->sym, count, roots, names, ETCH_C, ETCH_FACTORED, &c);
    etch_exprs_write(w->sym, count, roots, names, ETCH_PYTHON, ETCH_EXPANDED, &python);
    fputs("{\"c\": ", stdout);
    put_string(c.text);
    fputs(", \"python\": ", stdout);
    put_string(python.text);
    fputs("}\n", stdout);
}

static etch_status each_line(void *data)
{
    writer w = {.arena = etch_arena_new(data)};
    w.sym = etch_sym_new(w.arena);
    char *line = etch_alloc(w.arena, LONGEST_LINE);
    ETCH_VEC(etch_expr) roots = {0};
    while (fgets(line, LONGEST_LINE, stdin)) {
        etch_expr e = etch_expr_parse(w.sym, line, strcspn(line, "\n"), NULL);
        put_expression(&w, e);
        ETCH_PUSH(w.arena, &roots, e);
    }
    put_assignments(&w, roots.count, roots.at);
    return ETCH_OK;
}

int main(void)
{
    etch_mem *mem = etch_mem_new((size_t)1 << 30);
    if (!mem)
        return 3;
    etch_status status = etch_guard(mem, each_line, mem);
    etch_mem_free(mem);
    return (int)status;
}
