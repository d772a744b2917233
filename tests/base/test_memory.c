/* Accounts, guards, arenas and blocks: limits hold, traps land, nothing is lost or shared. */
#include "suite.h"

#include <string.h>

typedef struct job {
    etch_mem *mem;
    etch_arena *arena;
    size_t largest_use;
} job;

static void objects_are_zeroed_aligned_and_apart(etch_arena *arena)
{
    enum { COUNT = 2000 };
    unsigned char *objects[COUNT];
    for (size_t i = 0; i < COUNT; i++) {
        size_t size = i * 7 % 501;
        objects[i] = etch_alloc(arena, size);
        ck_assert_uint_eq((uintptr_t)objects[i] % 16, 0);
        for (size_t k = 0; k < size; k++)
            ck_assert_uint_eq(objects[i][k], 0);
        memset(objects[i], (int)(i % 255 + 1), size);
    }
    for (size_t i = 0; i < COUNT; i++) {
        for (size_t k = 0; k < i * 7 % 501; k++)
            ck_assert_uint_eq(objects[i][k], i % 255 + 1);
    }
}

START_TEST(test_objects)
{
    etch_with_arena(objects_are_zeroed_aligned_and_apart);
}
END_TEST

static etch_status fill_up(void *data)
{
    job *j = data;
    etch_arena *arena = etch_arena_new(j->mem);
    while (etch_alloc(arena, 1000))
        j->largest_use = etch_mem_used(j->mem);
    return ETCH_OK;
}

START_TEST(test_the_limit_holds_and_is_nearly_reached)
{
    const size_t limit = 1 << 20;
    job j = {.mem = etch_mem_new(limit)};
    ck_assert_int_eq(etch_guard(j.mem, fill_up, &j), ETCH_ELIMIT);
    ck_assert_uint_le(j.largest_use, limit);
    ck_assert_uint_ge(j.largest_use, limit - 3000);
    ck_assert_uint_eq(etch_mem_used(j.mem), 0); /* the arena began under the guard */
    ck_assert_int_eq(etch_guard(j.mem, fill_up, &j), ETCH_ELIMIT);
    etch_mem_free(j.mem);
}
END_TEST

static etch_status ask_too_much(void *data)
{
    const job *j = data;
    etch_alloc(etch_arena_new(j->mem), SIZE_MAX - 8);
    return ETCH_OK;
}

static etch_status overflow_product(void *data)
{
    const job *j = data;
    etch_alloc_array(etch_arena_new(j->mem), SIZE_MAX / 2, 3);
    return ETCH_OK;
}

START_TEST(test_sizes_that_overflow_are_a_limit)
{
    job j = {.mem = etch_mem_new(SIZE_MAX)};
    ck_assert_int_eq(etch_guard(j.mem, ask_too_much, &j), ETCH_ELIMIT);
    ck_assert_int_eq(etch_guard(j.mem, overflow_product, &j), ETCH_ELIMIT);
    etch_mem_free(j.mem);
}
END_TEST

static etch_status trap_seven(void *data)
{
    const job *j = data;
    etch_copy_text(etch_arena_new(j->mem), "inner", 5);
    etch_trap(j->mem, ETCH_EINTERNAL);
}

static etch_status outer(void *data)
{
    job *j = data;
    j->arena = etch_arena_new(j->mem);
    char *kept = etch_copy_text(j->arena, "kept", 4);
    size_t used = etch_mem_used(j->mem);
    ck_assert_int_eq(etch_guard(j->mem, trap_seven, j), ETCH_EINTERNAL);
    ck_assert_uint_eq(etch_mem_used(j->mem), used);
    ck_assert_str_eq(kept, "kept");
    return ETCH_EUNKNOWN;
}

START_TEST(test_a_trap_ends_the_innermost_guard_only)
{
    job j = {.mem = etch_mem_new(1 << 20)};
    ck_assert_int_eq(etch_guard(j.mem, outer, &j), ETCH_EUNKNOWN);
    ck_assert_uint_gt(etch_mem_used(j.mem), 0); /* a body that ends by itself keeps its arenas */
    etch_arena_free(j.arena);
    ck_assert_uint_eq(etch_mem_used(j.mem), 0);
    etch_mem_free(j.mem);
}
END_TEST

static etch_status free_in_any_order(void *data)
{
    const job *j = data;
    etch_arena *arenas[5];
    static const int order[] = {2, 0, 4, 1, 3};
    for (int i = 0; i < 5; i++) {
        arenas[i] = etch_arena_new(j->mem);
        etch_alloc(arenas[i], 100);
    }
    for (int i = 0; i < 5; i++)
        etch_arena_free(arenas[order[i]]);
    etch_arena_free(NULL);
    return ETCH_OK;
}

START_TEST(test_arenas_end_in_any_order)
{
    job j = {.mem = etch_mem_new(1 << 20)};
    ck_assert_int_eq(etch_guard(j.mem, free_in_any_order, &j), ETCH_OK);
    ck_assert_uint_eq(etch_mem_used(j.mem), 0);
    etch_mem_free(j.mem);
    etch_mem_free(NULL);
}
END_TEST

/* A block holds the bytes that it was given, wherever it moves. */
static void expect_bytes(const unsigned char *block, size_t size, size_t value)
{
    ck_assert_uint_eq((uintptr_t)block % 16, 0);
    for (size_t i = 0; i < size; i++)
        ck_assert_uint_eq(block[i], value);
}

static etch_status use_blocks(void *data)
{
    const job *j = data;
    enum { COUNT = 9 };
    unsigned char *blocks[COUNT];
    for (size_t i = 0; i < COUNT; i++)
        blocks[i] = memset(etch_block_new(j->mem, 10 * i), (int)i + 1, 10 * i);
    ck_assert_uint_ge(etch_mem_used(j->mem), 10 * COUNT * (COUNT - 1) / 2);
    for (size_t step = 0; step < COUNT; step++) {
        const size_t i = step * 4 % COUNT, size = i % 2 ? 70000 : 5; /* in an order of their own */
        blocks[i] = etch_block_resize(j->mem, blocks[i], size);
        expect_bytes(blocks[i], i % 2 || i == 0 ? 10 * i : size, i + 1);
        memset(blocks[i], (int)i + 1, size);
    }
    etch_arena_new(j->mem);
    for (size_t step = 0; step < COUNT - 2; step++) { /* two stay */
        const size_t i = step * 2 % COUNT;
        expect_bytes(blocks[i], i % 2 ? 70000 : 5, i + 1);
        etch_block_free(j->mem, blocks[i]);
    }
    return ETCH_OK;
}

static etch_status block_within(void *data)
{
    const job *j = data;
    use_blocks(data);
    etch_trap(j->mem, ETCH_EINTERNAL);
}

static etch_status blocks_around(void *data)
{
    job *j = data;
    unsigned char *kept = memset(etch_block_new(j->mem, 100), 7, 100);
    const size_t used = etch_mem_used(j->mem);
    ck_assert_int_eq(etch_guard(j->mem, block_within, j), ETCH_EINTERNAL);
    ck_assert_uint_eq(etch_mem_used(j->mem), used); /* what began under the inner guard is gone */
    expect_bytes(kept, 100, 7);
    etch_block_resize(j->mem, kept, j->largest_use);
    return ETCH_OK;
}

START_TEST(test_blocks)
{
    job j = {.mem = etch_mem_new(1 << 20), .largest_use = 2 << 20};
    ck_assert_int_eq(etch_guard(j.mem, use_blocks, &j), ETCH_OK);
    ck_assert_uint_gt(etch_mem_used(j.mem), 0);
    etch_mem_free(j.mem); /* with what is left of them */
    j.mem = etch_mem_new(1 << 20);
    ck_assert_int_eq(etch_guard(j.mem, blocks_around, &j), ETCH_ELIMIT);
    ck_assert_uint_eq(etch_mem_used(j.mem), 0);
    j.largest_use = SIZE_MAX - 3;
    ck_assert_int_eq(etch_guard(j.mem, blocks_around, &j), ETCH_ELIMIT);
    etch_mem_free(j.mem);
}
END_TEST

/* A bit of everything in base that allocates. */
static etch_status use_everything(void *data)
{
    const job *j = data;
    etch_arena *arena = etch_arena_new(j->mem);
    etch_names *names = etch_names_new(arena);
    ETCH_VEC(const char *) all = {0};
    for (int i = 0; i < 200; i++)
        ETCH_PUSH(arena, &all, etch_name_of(names, etch_text(arena, "name%d", i)));
    etch_diags *diags = etch_diags_new(arena);
    const etch_source *source = etch_source_add(diags, "a.etch", "dim A\n", 6);
    etch_diag *diag = etch_error(diags, ETCH_NO_CODE, (etch_span){source->base, source->base + 3}, "wrong");
    etch_note(diag, (etch_span){0, 0}, "note");
    etch_help(diag, "help");
    etch_buf out = {.arena = arena};
    etch_diags_render(diags, &out);
    etch_block_free(j->mem, etch_block_resize(j->mem, etch_block_new(j->mem, 10), 100000));
    ck_assert_str_eq(all.at[199], "name199");
    return ETCH_OK;
}

START_TEST(test_every_allocation_may_fail)
{
    etch_status status = ETCH_ENOMEM;
    size_t n = 0;
    while (status == ETCH_ENOMEM) {
        job j = {.mem = etch_mem_new((size_t)64 << 20)};
        etch_mem_fail_after(j.mem, ++n);
        status = etch_guard(j.mem, use_everything, &j);
        if (status != ETCH_OK)
            ck_assert_uint_eq(etch_mem_used(j.mem), 0);
        etch_mem_free(j.mem);
    }
    ck_assert_int_eq(status, ETCH_OK);
    ck_assert_uint_gt(n, 4);
}
END_TEST

Suite *etch_suite(void)
{
    Suite *suite = suite_create("memory");
    ETCH_ADD_TESTS(suite, test_objects, test_the_limit_holds_and_is_nearly_reached,
                   test_sizes_that_overflow_are_a_limit, test_a_trap_ends_the_innermost_guard_only,
                   test_arenas_end_in_any_order, test_blocks, test_every_allocation_may_fail);
    return suite;
}
