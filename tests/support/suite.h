/* A unit test is one Check suite; tests/support/main.c runs it. */
#ifndef ETCH_TEST_SUITE_H
#define ETCH_TEST_SUITE_H

#include "base/base.h"

#include <check.h>

/* Defined by each unit test. */
Suite *etch_suite(void);

/* Adds test functions to the suite as a case of their own. */
#define ETCH_ADD_TESTS(suite, ...)                               \
    etch_add_tests((suite), (const TTest *const[]){__VA_ARGS__}, \
                   sizeof((const TTest *const[]){__VA_ARGS__}) / sizeof(const TTest *))
void etch_add_tests(Suite *suite, const TTest *const *tests, size_t count);

/* Runs `body` under a guard, with an arena of a fresh account of 256 MiB, or of `bytes`; fails the test when
 * it is cut short. */
void etch_with_arena(void (*body)(etch_arena *arena));
void etch_with_memory(size_t bytes, void (*body)(etch_arena *arena));

#endif
