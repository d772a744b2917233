/* Damaged specs: whatever is done to the text, the parser ends, stays in its memory, reports at most 20
 * errors with places inside the text, and either reports something or returns a tree that can be walked.
 * ETCH_TEST_SEED and ETCH_TEST_MULT in the environment choose and multiply the damage. */
#include "corpus.h"
#include "suite.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

typedef struct generator {
    uint64_t state;
} generator;

/* xorshift64* */
static uint32_t draw(generator *g, uint32_t below)
{
    g->state ^= g->state >> 12;
    g->state ^= g->state << 25;
    g->state ^= g->state >> 27;
    return below ? (uint32_t)((g->state * 0x2545F4914F6CDD1DULL) >> 33) % below : 0;
}

static const char *const pieces[] = {
    "(",      ")",      "[",     "]",   "{",    "}",      ",",     ";",
    "\n",     "=",      "==",    "->",  "..",   "'",      "\"",    "#",
    "~",      "@",      ":",     "|",   "^",    "-",      "*",     "/",
    "//",     "module", "model", "if",  "else", "repeat", "as",    "tag",
    "weight", "dim",    "param", "for", "zero", "etch",   "sweep", "where",
    "x",      "1.5",    "7",     "$",   "\r",   "\t",     "\xC3",  "\xE2\x86\x92",
    "import", "{{{{"};

static void insert(etch_buf *out, generator *g)
{
    uint32_t count = sizeof pieces / sizeof *pieces;
    if (draw(g, 12) == 0) {
        char byte = (char)draw(g, 256);
        etch_buf_add(out, &byte, 1);
    } else {
        etch_buf_puts(out, pieces[draw(g, count)]);
    }
}

/* One damaged copy: pieces put in, ranges left out or doubled, the end cut off. */
static etch_buf damage(etch_arena *arena, const corpus_case *item, generator *g)
{
    etch_buf out = {.arena = arena};
    etch_buf_puts(&out, "");
    uint32_t wounds = 1 + draw(g, 4), length = (uint32_t)item->length, at = 0;
    for (uint32_t i = 0; i < wounds && at < length; i++) {
        uint32_t next = at + draw(g, length - at);
        etch_buf_add(&out, item->text + at, next - at);
        uint32_t range = draw(g, draw(g, 4) ? 6 : 200);
        range = range < length - next ? range : length - next;
        at = next;
        switch (draw(g, 4)) {
        case 0:
            at += range;
            break;
        case 1:
            etch_buf_add(&out, item->text + at, range);
            break;
        case 2:
            insert(&out, g);
            at += draw(g, 3) == 0 && at < length;
            break;
        default:
            insert(&out, g);
            break;
        }
    }
    if (at < length && draw(g, 10) != 0) {
        etch_buf_add(&out, item->text + at, length - at);
    }
    return out;
}

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
    etch_buf text = damage(arena, a->item, &g);
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

static uint64_t number_from(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    return text && *text ? strtoull(text, NULL, 10) : otherwise;
}

static void mutate_all(etch_arena *arena)
{
    uint64_t seed = number_from("ETCH_TEST_SEED", 20240607), rounds = 60 * number_from("ETCH_TEST_MULT", 1);
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
