/* Runs a fuzz target without a fuzzer: on every file of the folders that are named, and on mutations of each
 * that are the same in every run.
 *
 *     fuzz_spec_plain [-COUNT] FOLDER... COUNT inputs are made of each file, itself the first of them; 200 */
#define _POSIX_C_SOURCE 200809L

#include "fuzz.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LARGEST = 1 << 20, INPUTS = 200 };

typedef struct input {
    uint8_t *bytes;
    size_t size;
} input;

static uint32_t next_random(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

/* Changes a byte, drops a stretch, or repeats one. */
static void mutate(input *in, uint32_t *state)
{
    if (in->size == 0)
        return;
    size_t at = next_random(state) % in->size;
    size_t length = 1 + next_random(state) % 16;
    if (length > in->size - at)
        length = in->size - at;
    switch (next_random(state) % 3) {
    case 0:
        in->bytes[at] = (uint8_t)next_random(state);
        break;
    case 1:
        memmove(in->bytes + at, in->bytes + at + length, in->size - at - length);
        in->size -= length;
        break;
    default:
        memmove(in->bytes + at + length, in->bytes + at, in->size - at);
        in->size += length;
        break;
    }
}

/* The target gets a copy of exactly the input's size, so that a sanitizer sees reads past its end. */
static int run_once(const input *in)
{
    uint8_t *exact = malloc(in->size ? in->size : 1);
    if (!exact)
        return 1;
    memcpy(exact, in->bytes, in->size);
    LLVMFuzzerTestOneInput(exact, in->size);
    free(exact);
    return 0;
}

static int run_file(const char *path, int inputs)
{
    FILE *file = fopen(path, "rb");
    input original = {malloc(LARGEST), 0}, changed = {malloc(LARGEST + 16 * INPUTS), 0};
    int failed = !file || !original.bytes || !changed.bytes;
    if (!failed)
        original.size = fread(original.bytes, 1, LARGEST, file);
    if (file)
        fclose(file);
    uint32_t state = 1;
    for (int i = 0; !failed && i < inputs; i++) {
        memcpy(changed.bytes, original.bytes, original.size);
        changed.size = original.size;
        for (int k = 0; k < i; k++)
            mutate(&changed, &state);
        failed = run_once(&changed);
    }
    free(original.bytes);
    free(changed.bytes);
    return failed;
}

static int run_folder(const char *folder, int inputs)
{
    struct dirent **entries;
    int count = scandir(folder, &entries, NULL, alphasort);
    int failed = count <= 2; /* a folder without inputs tests nothing */
    for (int i = 0; i < count; i++) {
        char path[4096];
        snprintf(path, sizeof path, "%s/%s", folder, entries[i]->d_name);
        if (!failed && entries[i]->d_name[0] != '.') {
            failed = run_file(path, inputs);
            if (failed)
                fprintf(stderr, "cannot run %s\n", path);
        }
        free(entries[i]);
    }
    if (count >= 0)
        free(entries);
    return failed;
}

int main(int argc, char **argv)
{
    const bool counted = argc > 1 && argv[1][0] == '-';
    const int inputs = counted ? atoi(argv[1] + 1) : INPUTS, first = counted ? 2 : 1;
    int failed = argc <= first || inputs < 1 || inputs > INPUTS;
    for (int i = first; !failed && i < argc; i++)
        failed = run_folder(argv[i], inputs);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
