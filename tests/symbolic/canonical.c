/* Reads an expression per line, writes its canonical text per line; for tests in other languages. */
#include <stdio.h>
#include <string.h>

#include "symbolic/symbolic.h"

enum { LONGEST_LINE = 1 << 20 };

static etch_status each_line(void *data)
{
    etch_arena *arena = etch_arena_new(data);
    etch_sym *sym = etch_sym_new(arena);
    char *line = etch_alloc(arena, LONGEST_LINE);
    while (fgets(line, LONGEST_LINE, stdin)) {
        size_t length = strcspn(line, "\n"), at;
        etch_expr e = etch_expr_parse(sym, line, length, &at);
        if (e)
            printf("%s\n", etch_expr_text(sym, e));
        else
            printf(at == length ? "undefined\n" : "error at %zu\n", at);
    }
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
