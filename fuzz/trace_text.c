/* Whatever a text holds, reading it as the text form of traces ends with its files or with a diagnostic. */
#include "fuzz.h"

#include <stdlib.h>

#include "trace/text_int.h"

typedef struct job {
    etch_mem *mem;
    const uint8_t *data;
    size_t size;
} job;

static etch_status drop(void *data, const char *const *names, uint32_t name_count, const char *bytes,
                        size_t length)
{
    (void)data;
    if (name_count == 0 || !names[0] || (!bytes && length > 0))
        abort();
    return ETCH_OK;
}

static etch_status read_text(void *data)
{
    const job *j = data;
    etch_arena *arena = etch_arena_new(j->mem);
    etch_diags *diags = etch_diags_new(arena);
    const etch_source *source = etch_source_add(diags, "fuzz", (const char *)j->data, j->size);
    const etch_text_sink sink = {drop, NULL};
    etch_status status = etch_text_read(arena, diags, source, &sink);
    if ((status == ETCH_OK) != (etch_error_count(diags) == 0) || (status != ETCH_OK && status != ETCH_EINPUT))
        abort();
    return ETCH_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    job j = {etch_mem_new((size_t)256 << 20), data, size};
    if (!j.mem || etch_guard(j.mem, read_text, &j) != ETCH_OK)
        abort();
    etch_mem_free(j.mem);
    return 0;
}
