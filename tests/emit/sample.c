/* Writes a job made without lower, for tests in other languages:
 *
 *     emit_sample RECIPE SEED FOLDER      status 0; else what went wrong is on standard error */
#include "emit/emit.h"
#include "jobs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct sample {
    const char *name;
    job_recipe recipe;
} sample;

static const sample samples[] = {
    {"plain", {.mesh = {2, 2}, .families = {1, 2}, .classes = 2, .collectives = 6, .computations = 20}},
    {"mesh",
     {.mesh = {2, 3, 2}, .families = {1, 6, 5, 7}, .classes = 3, .collectives = 40, .computations = 300}},
    {"alone", {.mesh = {3}, .classes = 2, .computations = 30}},
    {"wide",
     {.mesh = {2, 60, 2}, .families = {4, 1, 2, 5}, .classes = 2, .collectives = 9, .computations = 20}},
};

static const sample *find(const char *name)
{
    for (size_t i = 0; i < sizeof samples / sizeof *samples; i++)
        if (strcmp(samples[i].name, name) == 0)
            return &samples[i];
    return NULL;
}

typedef struct task {
    etch_mem *mem;
    job_recipe recipe;
    etch_emit_options options;
} task;

static etch_status run(void *data)
{
    const task *t = data;
    etch_arena *arena = etch_arena_new(t->mem);
    etch_diags *diags = etch_diags_new(arena);
    etch_emit_result result;
    etch_buf text = {.arena = arena};
    etch_status status = etch_emit(t->mem, job_make(arena, &t->recipe), &t->options, diags, &result);
    etch_buf_puts(&text, "");
    etch_diags_render(diags, &text);
    fputs(text.text, stderr);
    return status;
}

int main(int count, char **arguments)
{
    char hash[ETCH_SHA256_TEXT];
    const sample *found = count == 4 ? find(arguments[1]) : NULL;
    if (!found) {
        fputs("emit_sample RECIPE SEED FOLDER\n", stderr);
        return 2;
    }
    etch_sha256(NULL, 0, hash);
    task t = {.mem = etch_mem_new((size_t)256 << 20), .recipe = found->recipe};
    t.recipe.seed = 1 + strtoull(arguments[2], NULL, 10);
    t.options = (etch_emit_options){
        .folder = arguments[3], .name = "tiny", .tool_version = "0.1.0", .spec_sha256 = hash, .threads = 4};
    etch_status status = t.mem ? etch_guard(t.mem, run, &t) : ETCH_ENOMEM;
    etch_mem_free(t.mem);
    return (int)status;
}
