/* Whatever text the parser of expressions is given, it ends with an error inside the text, a limit, or an
 * expression; what is printed of that is read again as the same one. */
#include "fuzz.h"

#include "symbolic/symbolic.h"

#include <stdlib.h>

typedef struct job {
    etch_mem *mem;
    const char *text;
    size_t size;
} job;

static const etch_sym_limits limits = {.terms = 500, .exponent = 1000, .digits = 500, .operations = 2000000};

static etch_status parse(void *data)
{
    const job *j = data;
    etch_sym *sym = etch_sym_new(etch_arena_new(j->mem));
    etch_sym_set_limits(sym, &limits);
    size_t at = 0;
    etch_expr e = etch_expr_parse(sym, j->text, j->size, &at);
    if (!e && at > j->size)
        abort();
    if (!e)
        return ETCH_OK;
    etch_buf out = {.arena = etch_arena_new(j->mem)};
    etch_expr_print(sym, e, &out);
    etch_expr again = etch_expr_parse(sym, out.text, out.length, &at);
    if (again != e)
        abort();
    return ETCH_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    job j = {etch_mem_new((size_t)256 << 20), (const char *)data, size};
    if (!j.mem)
        abort();
    etch_status status = etch_guard(j.mem, parse, &j);
    if (status != ETCH_OK && status != ETCH_ELIMIT)
        abort();
    etch_mem_free(j.mem);
    return 0;
}
