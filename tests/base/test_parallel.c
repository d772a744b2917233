/* Work on threads: every item once, and the same answer for any number of threads. */
#include "suite.h"

#include <stdlib.h>
#include <string.h>

enum { COUNT = 3000 };

typedef struct work {
    unsigned char runs[COUNT]; /* of each item: threads touch different items only */
    uint64_t results[COUNT];
    size_t first_failure, second_failure;
} work;

static etch_status do_item(void *data, size_t i)
{
    work *w = data;
    w->runs[i]++;
    uint64_t value = i + 1;
    for (size_t k = 0; k < i % 100; k++)
        value = value * 6364136223846793005u + 1;
    w->results[i] = value;
    if (i == w->first_failure)
        return ETCH_EIO;
    return i == w->second_failure ? ETCH_EINTERNAL : ETCH_OK;
}

static const unsigned thread_counts[] = {0, 1, 2, 3, 8, 64, 1000};
enum { THREAD_CASES = sizeof thread_counts / sizeof *thread_counts };

START_TEST(test_every_item_runs_once)
{
    static work expected, got;
    memset(&expected, 0, sizeof expected);
    expected.first_failure = expected.second_failure = COUNT;
    for (size_t i = 0; i < COUNT; i++)
        do_item(&expected, i);
    for (size_t i = 0; i < THREAD_CASES; i++) {
        memset(&got, 0, sizeof got);
        got.first_failure = got.second_failure = COUNT;
        ck_assert_int_eq(etch_parallel(thread_counts[i], COUNT, do_item, &got), ETCH_OK);
        ck_assert_int_eq(memcmp(&got, &expected, sizeof got), 0);
    }
    ck_assert_int_eq(etch_parallel(4, 0, do_item, NULL), ETCH_OK);
}
END_TEST

START_TEST(test_the_smallest_failure_wins)
{
    static work w;
    for (size_t round = 0; round < 300; round++) {
        memset(&w, 0, sizeof w);
        w.first_failure = round;
        w.second_failure = round + 1 + round % 3;
        unsigned threads = thread_counts[round % THREAD_CASES];
        ck_assert_int_eq(etch_parallel(threads, COUNT, do_item, &w), ETCH_EIO);
        for (size_t i = 0; i <= round; i++)
            ck_assert_uint_eq(w.runs[i], 1);
    }
}
END_TEST

Suite *etch_suite(void)
{
    Suite *suite = suite_create("parallel");
    ETCH_ADD_TESTS(suite, test_every_item_runs_once, test_the_smallest_failure_wins);
    return suite;
}
