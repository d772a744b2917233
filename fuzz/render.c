/* Whatever a source and a span hold, a rendered diagnostic is text that a terminal shows as it is. */
#include "fuzz.h"

#include "base/base.h"

#include <stdlib.h>

typedef struct job {
    etch_mem *mem;
    const uint8_t *data;
    size_t size;
} job;

static void check_safe(const etch_buf *out)
{
    for (size_t i = 0; i < out->length; i++) {
        unsigned char byte = (unsigned char)out->text[i];
        if ((byte < 0x20 && byte != '\n') || byte == 0x7F)
            abort();
    }
}

/* The first four bytes are a span, the rest is the source. */
static etch_status render(void *data)
{
    const job *j = data;
    if (j->size < 4)
        return ETCH_OK;
    etch_arena *arena = etch_arena_new(j->mem);
    etch_diags *diags = etch_diags_new(arena);
    const etch_source *source = etch_source_add(diags, "fuzz.etch", (const char *)j->data + 4, j->size - 4);
    uint32_t start = j->data[0] * 256u + j->data[1], length = j->data[2] * 256u + j->data[3];
    etch_error(diags, ETCH_NO_CODE, (etch_span){source->base + start, source->base + start + length}, "here");
    etch_buf out = {.arena = arena};
    etch_diags_render(diags, &out);
    check_safe(&out);
    return ETCH_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    job j = {etch_mem_new((size_t)64 << 20), data, size};
    if (!j.mem || etch_guard(j.mem, render, &j) != ETCH_OK)
        abort();
    etch_mem_free(j.mem);
    return 0;
}
