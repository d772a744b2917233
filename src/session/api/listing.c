/* Tables for people that need no spec. */
#include "session/query/query.h"

#include <stdlib.h>
#include <string.h>

typedef struct description {
    etch_mem *mem;
    void (*write)(etch_buf *out);
    /* malloc'd */
    char *text;
} description;

static void write_rows(etch_buf *out, bool called)
{
    const etch_row *row;
    for (uint32_t i = 0; (row = etch_row_at(etch_table_builtin(), i)) != NULL; i++)
        if (etch_row_is_called(row) == called)
            etch_row_describe(row, out);
}

static void write_ops(etch_buf *out)
{
    etch_buf_puts(out, "Ops that a spec calls:\n");
    write_rows(out, true);
    etch_buf_puts(out, "\nOps that operators stand for, and that are derived:\n");
    write_rows(out, false);
}

static etch_status write_guarded(void *data)
{
    description *d = data;
    etch_buf out = {.arena = etch_arena_new(d->mem)};
    d->write(&out);
    d->text = malloc(out.length + 1);
    if (!d->text)
        return ETCH_ENOMEM;
    memcpy(d->text, out.text, out.length + 1);
    return ETCH_OK;
}

static etch_status describe(void (*write)(etch_buf *out), char **text)
{
    description d = {.mem = etch_mem_new(ETCH_MEMORY_LIMIT), .write = write};
    etch_status status = d.mem ? etch_guard(d.mem, write_guarded, &d) : ETCH_ENOMEM;
    etch_mem_free(d.mem);
    *text = d.text;
    return status;
}

etch_status etch_describe_ops(char **text)
{
    return describe(write_ops, text);
}

etch_status etch_describe_quantities(char **text)
{
    return describe(etch_quantity_describe_all, text);
}

etch_status etch_describe_counts(char **text)
{
    return describe(etch_count_describe, text);
}

void etch_text_free(char *text)
{
    free(text);
}
