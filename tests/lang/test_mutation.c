/* Damaged specs: whatever is done to the text, the parser ends, stays in its memory, reports at most 20
 * errors with places inside the text, and either reports something or returns a tree that can be walked.
 * ETCH_TEST_SEED and ETCH_TEST_MULT in the environment choose and multiply the damage. */
#include "corpus.h"
#include "damage.h"
#include "effort.h"
#include "suite.h"

#include <inttypes.h>
#include <string.h>

typedef struct attempt {
    etch_mem *mem;
    const corpus_case *item;
    uint64_t seed;
} attempt;

static etch_status parse_damaged(void *data)
{
    const attempt *a = data;
    etch_arena *arena = etch_arena_new(a->mem);
    generator g = {a->seed};
    etch_buf text = damage_text(arena, a->item, &g);
    etch_ast_context context = corpus_context(arena);
    const etch_source *source = etch_source_add(context.diags, a->item->name, text.text, text.length);
    ck_assert_ptr_nonnull(source);
    etch_ast *ast = etch_ast_parse(&context, source);
    ck_assert_uint_le(etch_error_count(context.diags), 20);
    for (const etch_diag *diag = etch_diags_first(context.diags); diag; diag = diag->next) {
        ck_assert_uint_le(diag->span.start, diag->span.end);
        ck_assert_uint_ge(diag->span.start, source->base);
        ck_assert_uint_le(diag->span.end, source->base + source->length);
    }
    etch_buf out = {.arena = arena};
    if (etch_error_count(context.diags) == 0) {
        etch_ast_dump(ast, &out);
        ck_assert(!out.text || !strstr(out.text, "(null)"));
        ck_assert(!out.text || !strstr(out.text, "(broken)"));
    } else {
        etch_diags_render(context.diags, &out);
    }
    return ETCH_OK;
}

static void mutate_all(etch_arena *arena)
{
    uint64_t seed = etch_test_seed(20240607), rounds = etch_effort(60);
    corpus cases = corpus_read(arena, "accept");
    for (uint32_t i = 0; i < cases.count; i++) {
        for (uint64_t round = 0; round < rounds; round++) {
            attempt a = {.item = &cases.at[i], .seed = (seed + round) * 0x9E3779B97F4A7C15ULL + i + 1};
            a.mem = etch_mem_new((size_t)64 << 20);
            ck_assert_msg(etch_guard(a.mem, parse_damaged, &a) == ETCH_OK,
                          "%s, ETCH_TEST_SEED=%" PRIu64 ", round %" PRIu64, a.item->path, seed, round);
            etch_mem_free(a.mem);
        }
    }
}

START_TEST(damaged_specs_are_handled)
{
    etch_with_arena(mutate_all);
}
END_TEST

Suite *etch_suite(void)
{
    Suite *suite = suite_create("mutation");
    ETCH_ADD_TESTS(suite, damaged_specs_are_handled);
    return suite;
}
