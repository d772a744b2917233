/* Two parsers of one grammar agree: the one of src/lang and the one that Bison makes of grammar/etch.y accept
 * and reject the same texts. ETCH_TEST_SEED and ETCH_TEST_MULT in the environment choose and multiply the
 * damage. */
#include "corpus.h"
#include "damage.h"
#include "effort.h"
#include "oracle.h"
#include "suite.h"

#include <inttypes.h>
#include <string.h>

typedef struct reading {
    etch_mem *mem;
    const char *text;
    size_t length;
    bool accepted;
} reading;

static etch_status read_text(void *data)
{
    reading *r = data;
    etch_ast_context context = corpus_context(etch_arena_new(r->mem));
    const etch_source *source = etch_source_add(context.diags, "text", r->text, r->length);
    ck_assert_ptr_nonnull(source);
    etch_ast_parse(&context, source);
    r->accepted = etch_error_count(context.diags) == 0;
    return ETCH_OK;
}

static bool parser_accepts(const char *text, size_t length)
{
    reading r = {.mem = etch_mem_new((size_t)64 << 20), .text = text, .length = length};
    ck_assert_int_eq(etch_guard(r.mem, read_text, &r), ETCH_OK);
    etch_mem_free(r.mem);
    return r.accepted;
}

static void agree_on_cases(etch_arena *arena)
{
    static const char *const folders[] = {"accept", "reject"};
    for (int rejected = 0; rejected < 2; rejected++) {
        corpus cases = corpus_read(arena, folders[rejected]);
        for (uint32_t i = 0; i < cases.count; i++)
            ck_assert_msg(oracle_accepts(cases.at[i].text, cases.at[i].length) == !rejected, "%s is %s",
                          cases.at[i].path, rejected ? "accepted" : "rejected");
    }
}

START_TEST(both_know_the_cases)
{
    etch_with_arena(agree_on_cases);
}
END_TEST

/* Some damage leaves a spec: without any of these the comparison would say little. */
static void agree_on_damage(etch_arena *arena)
{
    const uint64_t seed = etch_test_seed(20240607);
    const uint64_t rounds = etch_effort(10000);
    corpus cases = corpus_read(arena, "accept");
    uint64_t accepted = 0;
    for (uint64_t round = 0; round < rounds; round++) {
        etch_mem *mem = etch_mem_new((size_t)64 << 20);
        etch_arena *scratch = etch_arena_new(mem);
        generator g = {(seed + round) * 0x9E3779B97F4A7C15ULL + 1};
        etch_buf text = damage_text(scratch, &cases.at[round % cases.count], &g);
        const bool parsed = parser_accepts(text.text, text.length);
        ck_assert_msg(
            parsed == oracle_accepts(text.text, text.length),
            "%s, ETCH_TEST_SEED=%" PRIu64 ", round %" PRIu64 ": the parser %s what the grammar does not:\n%s",
            cases.at[round % cases.count].path, seed, round, parsed ? "accepts" : "rejects", text.text);
        accepted += parsed;
        etch_mem_free(mem);
    }
    ck_assert_uint_gt(accepted, rounds / 50);
}

START_TEST(both_agree_on_damaged_specs)
{
    etch_with_arena(agree_on_damage);
}
END_TEST

Suite *etch_suite(void)
{
    Suite *suite = suite_create("oracle");
    ETCH_ADD_TESTS(suite, both_know_the_cases, both_agree_on_damaged_specs);
    return suite;
}
