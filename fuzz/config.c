/* Whatever a text holds, reading it as a config ends with a spec or with a diagnostic. */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "import/import.h"

typedef struct job {
    etch_mem *mem;
    const uint8_t *data;
    size_t size;
} job;

static etch_status import(void *data)
{
    const job *j = data;
    etch_arena *arena = etch_arena_new(j->mem);
    etch_diags *diags = etch_diags_new(arena);
    const etch_imported_config *config =
        etch_import_config(arena, diags, "fuzz.json", (const char *)j->data, j->size);
    etch_buf messages = {.arena = arena};
    etch_diags_render(diags, &messages);
    if ((config != NULL) != (etch_error_count(diags) == 0))
        abort();
    if (config && (strncmp(config->spec, "# ", 2) != 0 || !config->file || !config->model))
        abort();
    return ETCH_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    job j = {etch_mem_new((size_t)256 << 20), data, size};
    if (!j.mem || etch_guard(j.mem, import, &j) != ETCH_OK)
        abort();
    etch_mem_free(j.mem);
    return 0;
}
