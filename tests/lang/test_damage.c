/* Specs that parse but say nonsense: names exchanged, lines left out, doubled or moved. Whatever they say,
 * reading and elaborating them ends, and what fails is reported. ETCH_TEST_SEED and ETCH_TEST_MULT in the
 * environment choose and multiply the damage. */
#define _XOPEN_SOURCE 700 /* mkdtemp */
#include "effort.h"
#include "lang/lang.h"
#include "suite.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

/* ---- texts --------------------------------------------------------------------------------------------- */

typedef struct piece {
    const char *text;
    size_t length;
} piece;
typedef ETCH_VEC(piece) pieces;

static bool in_word(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

/* Words that are not at the start of a line, so that most lines keep their kind. */
static pieces words_of(etch_arena *arena, const char *text)
{
    pieces words = {0};
    for (const char *at = text; *at;) {
        const char *start = at;
        while (in_word(*at))
            at++;
        const bool first = start == text || start[-1] == '\n';
        if (at > start && !first)
            ETCH_PUSH(arena, &words, (piece){start, (size_t)(at - start)});
        at += at == start;
    }
    return words;
}

static pieces lines_of(etch_arena *arena, const char *text)
{
    pieces lines = {0};
    while (*text) {
        const char *end = strchr(text, '\n');
        const size_t length = end ? (size_t)(end - text) + 1 : strlen(text);
        ETCH_PUSH(arena, &lines, (piece){text, length});
        text += length;
    }
    return lines;
}

/* Puts another word of the text, or a number, in the place of one. */
static const char *exchange_word(etch_arena *arena, const char *text, generator *g)
{
    static const char *const others[] = {"0", "1", "2", "0.5", "99999999999999999999", "none", "true"};
    const pieces words = words_of(arena, text);
    if (words.count == 0)
        return text;
    const piece *old = &words.at[draw(g, words.count)];
    piece new = words.at[draw(g, words.count)];
    if (draw(g, 5) == 0) {
        new.text = others[draw(g, sizeof others / sizeof *others)];
        new.length = strlen(new.text);
    }
    etch_buf out = {.arena = arena};
    etch_buf_add(&out, text, (size_t)(old->text - text));
    etch_buf_add(&out, new.text, new.length);
    etch_buf_puts(&out, old->text + old->length);
    return out.text;
}

static const char *exchange_lines(etch_arena *arena, const char *text, generator *g)
{
    const pieces lines = lines_of(arena, text);
    const uint32_t at = draw(g, lines.count), other = draw(g, lines.count), how = draw(g, 3);
    etch_buf out = {.arena = arena};
    etch_buf_puts(&out, "");
    for (uint32_t i = 0; i < lines.count; i++) {
        const piece *line = how == 0 && i == at ? &lines.at[other] : &lines.at[i];
        if (how == 1 && i == at)
            continue;
        etch_buf_add(&out, line->text, line->length);
        if (how == 2 && i == at)
            etch_buf_add(&out, lines.at[other].text, lines.at[other].length);
    }
    return out.text;
}

static const char *damage(etch_arena *arena, const char *text, generator *g)
{
    do {
        text = draw(g, 3) == 0 ? exchange_lines(arena, text, g) : exchange_word(arena, text, g);
    } while (draw(g, 3) == 0);
    return text;
}

/* ---- one attempt --------------------------------------------------------------------------------------- */

typedef struct attempt {
    etch_mem *mem;
    const char *folder;
    const char *main, *base; /* texts */
    uint64_t seed;
} attempt;

static const char *put(etch_arena *arena, const char *folder, const char *name, const char *text)
{
    const char *path = etch_text(arena, "%s/%s", folder, name);
    FILE *file = fopen(path, "wb");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_ge(fputs(text, file), 0);
    ck_assert_int_eq(fclose(file), 0);
    return path;
}

static etch_expr some_value(void *data, const etch_quantity *quantity)
{
    (void)quantity;
    return etch_var(data, "quantity");
}

/* Everything that a session asks of a spec. Whoever says no must have said why. */
static void use(etch_spec *spec, etch_sym *sym, etch_diags *diags)
{
    static const char *const names[] = {"flops", "matmul_flops", "params", "elementwise", NULL};
    const etch_quantities quantities = {some_value, sym, names, names};
    const char *const *plans, *const *configs;
    const uint32_t plan_count = etch_spec_list(spec, ETCH_LIST_PLANS, &plans);
    const uint32_t config_count = etch_spec_list(spec, ETCH_LIST_CONFIGS, &configs);
    for (uint32_t i = 0; i <= plan_count; i++) {
        uint32_t errors = etch_error_count(diags);
        const etch_plan *plan =
            i < plan_count ? etch_spec_plan(spec, plans[i], true, (etch_span){0, 0}) : NULL;
        ck_assert(i == plan_count || plan || etch_error_count(diags) > errors);
        const char *const sets[] = {"seq=64"};
        for (uint32_t c = 0; c <= config_count; c++) {
            etch_settings settings;
            errors = etch_error_count(diags);
            const bool fine = etch_spec_bind(spec, NULL, c < config_count ? configs[c] : NULL, sets, c & 1,
                                             c & 2, plan, &settings);
            ck_assert(fine == (etch_error_count(diags) == errors));
            if (!fine || i != c % (plan_count + 1))
                continue;
            errors = etch_error_count(diags);
            const etch_model *model = etch_spec_elaborate(spec, NULL, &settings, NULL);
            ck_assert((model != NULL) == (etch_error_count(diags) == errors));
        }
    }
    const etch_claim *claims;
    const uint32_t errors = etch_error_count(diags);
    const uint32_t count = etch_spec_checks(spec, &quantities, &claims);
    for (uint32_t i = 0; i < count; i++)
        ck_assert(claims[i].left || etch_error_count(diags) > errors);
}

static etch_status read_damaged(void *data)
{
    const attempt *a = data;
    etch_arena *arena = etch_arena_new(a->mem);
    generator g = {a->seed};
    const bool hurt_base = draw(&g, 4) == 0;
    const char *path = put(arena, a->folder, "main.etch", hurt_base ? a->main : damage(arena, a->main, &g));
    put(arena, a->folder, "base.etch", hurt_base ? damage(arena, a->base, &g) : a->base);
    etch_sym *sym = etch_sym_new(arena);
    etch_diags *diags = etch_diags_new(arena);
    etch_status status;
    etch_spec *spec = etch_spec_load(arena, sym, diags, &(etch_spec_source){.path = path}, &status);
    ck_assert((spec != NULL) == (etch_error_count(diags) == 0));
    ck_assert((spec != NULL) == (status == ETCH_OK));
    if (spec)
        use(spec, sym, diags);
    etch_buf out = {.arena = arena};
    etch_diags_render(diags, &out);
    ck_assert(!out.text || !strstr(out.text, "(null)"));
    return ETCH_OK;
}

static const char *read_model(etch_arena *arena, const char *name)
{
    const char *root = getenv("ETCH_SOURCE_DIR"), *why;
    char *text;
    size_t length;
    ck_assert_ptr_nonnull(root);
    ck_assert_int_eq(
        etch_read_file(arena, etch_text(arena, "%s/models/%s", root, name), 1 << 20, &text, &length, &why),
        ETCH_OK);
    return text;
}

/* The same model with layers of several kinds. */
static const char *with_conditions(etch_arena *arena, const char *text)
{
    static const char body[] = "x = block(x)";
    const char *at = strstr(text, body);
    ck_assert_ptr_nonnull(at);
    return etch_text(
        arena,
        "%.*sif layer < 2 { x = block(x) } else if layer %% 3 == 1 { x = x + mlp(norm(x)) }\n"
        "    repeat 3 as inner {\n"
        "      if inner == layers - 2 { x = block(x) } else { if layer != 5 { x = x + norm(x) } }\n"
        "    }%s",
        (int)(at - text), text, at + strlen(body));
}

static void damage_all(etch_arena *arena)
{
    const char *const llama = read_model(arena, "llama.etch");
    const char *const mains[] = {llama, read_model(arena, "gpt.etch"), with_conditions(arena, llama)};
    const uint64_t seed = etch_test_seed(20240607), rounds = etch_effort(600);
    char folder[] = "/tmp/etch_damage_XXXXXX";
    ck_assert_ptr_nonnull(mkdtemp(folder));
    attempt a = {.folder = folder, .base = read_model(arena, "base.etch")};
    for (uint64_t round = 0; round < rounds; round++) {
        a.main = mains[round % (sizeof mains / sizeof *mains)];
        a.seed = (seed + round) * 0x9E3779B97F4A7C15ULL + 1;
        a.mem = etch_mem_new((size_t)128 << 20);
        const etch_status status = etch_guard(a.mem, read_damaged, &a);
        ck_assert_msg(status == ETCH_OK || status == ETCH_ELIMIT,
                      "ETCH_TEST_SEED=%" PRIu64 ", round %" PRIu64, seed, round);
        etch_mem_free(a.mem);
    }
    remove(etch_text(arena, "%s/main.etch", folder));
    remove(etch_text(arena, "%s/base.etch", folder));
    ck_assert_int_eq(rmdir(folder), 0);
}

START_TEST(specs_that_say_nonsense_are_handled)
{
    etch_with_arena(damage_all);
}
END_TEST

Suite *etch_suite(void)
{
    Suite *suite = suite_create("damage");
    ETCH_ADD_TESTS(suite, specs_that_say_nonsense_are_handled);
    return suite;
}
