#include "suite.h"

#include <stdlib.h>

void etch_add_tests(Suite *suite, const TTest *const *tests, size_t count)
{
    TCase *tcase = tcase_create("all");
    for (size_t i = 0; i < count; i++)
        tcase_add_test(tcase, tests[i]);
    suite_add_tcase(suite, tcase);
}

typedef struct run {
    etch_mem *mem;
    void (*body)(etch_arena *arena);
} run;

static etch_status run_body(void *data)
{
    const run *r = data;
    r->body(etch_arena_new(r->mem));
    return ETCH_OK;
}

void etch_with_memory(size_t bytes, void (*body)(etch_arena *arena))
{
    run r = {etch_mem_new(bytes), body};
    ck_assert_ptr_nonnull(r.mem);
    ck_assert_int_eq(etch_guard(r.mem, run_body, &r), ETCH_OK);
    etch_mem_free(r.mem);
}

void etch_with_arena(void (*body)(etch_arena *arena))
{
    etch_with_memory((size_t)256 << 20, body);
}

int main(void)
{
    SRunner *runner = srunner_create(etch_suite());
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
