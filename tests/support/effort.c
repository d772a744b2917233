#include "effort.h"

#include <stdio.h>
#include <stdlib.h>

/* Reads a number of the environment and moves `text` behind it; a test must not run on a number that it takes
 * for another. */
static uint64_t number(const char *name, const char **text)
{
    char *end;
    const uint64_t value = strtoull(*text, &end, 10);
    if (end == *text) {
        fprintf(stderr, "%s: a number is expected at '%s'\n", name, *text);
        abort();
    }
    *text = end;
    return value;
}

static void expect_end(const char *name, const char *text)
{
    if (*text) {
        fprintf(stderr, "%s: '%s' is too much\n", name, text);
        abort();
    }
}

static uint64_t number_of(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    if (!text)
        return otherwise;
    const uint64_t value = number(name, &text);
    expect_end(name, text);
    return value;
}

uint64_t etch_effort(uint64_t usual)
{
    const char *text = getenv("ETCH_TEST_MULT");
    uint64_t times = 1, parts = 1;
    if (text) {
        times = number("ETCH_TEST_MULT", &text);
        if (*text == '/') {
            text++;
            parts = number("ETCH_TEST_MULT", &text);
        }
        expect_end("ETCH_TEST_MULT", text);
    }
    if (parts == 0) {
        fprintf(stderr, "ETCH_TEST_MULT: a part of 0\n");
        abort();
    }
    return number_of("ETCH_TEST_COUNT", (usual * times + parts - 1) / parts);
}

uint64_t etch_test_seed(uint64_t usual)
{
    return number_of("ETCH_TEST_SEED", usual);
}
