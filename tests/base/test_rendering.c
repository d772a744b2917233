/* Diagnostics as a person reads them, to the byte. */
#include "suite.h"

#include <string.h>

/* What one error at [from, to) of `text` looks like. */
static const char *render_error(etch_arena *arena, const char *text, uint32_t from, uint32_t to)
{
    etch_diags *diags = etch_diags_new(arena);
    const etch_source *source = etch_source_add(diags, "a.etch", text, strlen(text));
    etch_error(diags, ETCH_NO_CODE, (etch_span){source->base + from, source->base + to}, "wrong");
    etch_buf out = {.arena = arena};
    etch_diags_render(diags, &out);
    return out.text;
}

static void carets_stand_below_their_text(etch_arena *arena)
{
    static const struct {
        const char *text;
        uint32_t from, to;
        const char *expected;
    } cases[] = {
        {"dim A = hiden\n", 8, 13,
         "a.etch:1:9: error: wrong\n"
         "    1 | dim A = hiden\n"
         "      |         ^~~~~\n"},
        {"a\nb c\r\nd", 4, 5, /* the return belongs to the line break */
         "a.etch:2:3: error: wrong\n"
         "    2 | b c\n"
         "      |   ^\n"},
        {"x\n", 1, 1, /* an empty span, at the end of a line */
         "a.etch:1:2: error: wrong\n"
         "    1 | x\n"
         "      |  ^\n"},
        {"x", 1, 2, /* the end of the file */
         "a.etch:1:2: error: wrong\n"
         "    1 | x\n"
         "      |  ^\n"},
        {"", 0, 0,
         "a.etch:1:1: error: wrong\n"
         "    1 | \n"
         "      | ^\n"},
        {"\tx\ty\n", 3, 4, /* tabs end at every fourth column */
         "a.etch:1:4: error: wrong\n"
         "    1 |     x   y\n"
         "      |         ^\n"},
        {"\xC3\xA9 = \xE4\xBD\xA0\xE5\xA5\xBD + e\xCC\x81 + z\n", 5, 11, /* wide signs take two columns */
         "a.etch:1:5: error: wrong\n"
         "    1 | \xC3\xA9 = \xE4\xBD\xA0\xE5\xA5\xBD + e\xCC\x81 + z\n"
         "      |     ^~~~\n"},
        {"\xE4\xBD\xA0 + e\xCC\x81 + z\n", 12, 13, /* a combining accent takes none */
         "a.etch:1:10: error: wrong\n"
         "    1 | \xE4\xBD\xA0 + e\xCC\x81 + z\n"
         "      |          ^\n"},
        {"a\x1b[31m\xff z\n", 8, 9, /* nothing reaches the terminal that would command it */
         "a.etch:1:9: error: wrong\n"
         "    1 | a\xEF\xBF\xBD[31m\xEF\xBF\xBD z\n"
         "      |         ^\n"},
        {"one {\n  two\n}\n", 4, 13, /* a span over several lines is marked in its first */
         "a.etch:1:5: error: wrong\n"
         "    1 | one {\n"
         "      |     ^\n"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        ck_assert_str_eq(render_error(arena, cases[i].text, cases[i].from, cases[i].to), cases[i].expected);
}

START_TEST(test_carets)
{
    etch_with_arena(carets_stand_below_their_text);
}
END_TEST

/* The caret of a rendered error must stand below the letter X, whatever was cut. */
static void check_cut(const char *rendered, size_t longest)
{
    const char *line = strchr(rendered, '\n') + 1;
    const char *marks = strchr(line, '\n') + 1;
    ck_assert_uint_le((size_t)(marks - line), longest);
    ck_assert_int_eq(strchr(line, 'X') - line, strchr(marks, '^') - marks);
}

static void long_lines_are_cut_around_the_span(etch_arena *arena)
{
    enum { LENGTH = 100000 };
    static const uint32_t places[] = {0, 1, 39, 40, 99, 100, 101, 50000, LENGTH - 2, LENGTH - 1};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        char *text = etch_alloc(arena, LENGTH + 1);
        memset(text, 'a', LENGTH);
        text[places[i]] = 'X';
        check_cut(render_error(arena, text, places[i], places[i] + 1), 120);
        check_cut(render_error(arena, text, places[i], LENGTH), 120);
    }
    char *text = etch_alloc(arena, 301);
    memset(text, 'a', 300);
    ck_assert_str_eq(
        render_error(arena, text, 150, 152),
        "a.etch:1:151: error: wrong\n"
        "    1 | ...aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
        "aaaaaaaaaaaaaaa...\n"
        "      |                                            ^~\n");
}

START_TEST(test_long_lines)
{
    etch_with_arena(long_lines_are_cut_around_the_span);
}
END_TEST

static void notes_and_helps_follow(etch_arena *arena)
{
    etch_diags *diags = etch_diags_new(arena);
    const etch_source *a = etch_source_add(diags, "a.etch", "dim A\n", 6);
    const etch_source *b = etch_source_add(diags, "b\n.etch", "use A\n", 6);
    etch_diag *diag =
        etch_error(diags, ETCH_NO_CODE, (etch_span){b->base + 4, b->base + 5}, "no\tsuch\nthing");
    etch_note(diag, (etch_span){a->base + 4, a->base + 5}, "declared here");
    etch_note(diag, (etch_span){0, 0}, "tp = 3");
    etch_help(diag, "add `assume`");
    etch_warning(diags, ETCH_NO_CODE, (etch_span){0, 0}, "unused");
    etch_buf out = {.arena = arena};
    etch_diags_render(diags, &out);
    ck_assert_str_eq(out.text, "b\xEF\xBF\xBD.etch:1:5: error: no such\xEF\xBF\xBDthing\n"
                               "    1 | use A\n"
                               "      |     ^\n"
                               "a.etch:1:5: note: declared here\n"
                               "    1 | dim A\n"
                               "      |     ^\n"
                               "  note: tp = 3\n"
                               "  help: add `assume`\n"
                               "warning: unused\n");
}

START_TEST(test_notes)
{
    etch_with_arena(notes_and_helps_follow);
}
END_TEST

static void what_was_not_kept_is_said(etch_arena *arena)
{
    etch_diags *diags = etch_diags_new(arena);
    for (int i = 0; i < 21; i++)
        etch_error(diags, ETCH_NO_CODE, (etch_span){0, 0}, "e");
    for (int i = 0; i < 25; i++)
        etch_warning(diags, ETCH_NO_CODE, (etch_span){0, 0}, "w");
    etch_buf out = {.arena = arena};
    etch_diags_render(diags, &out);
    ck_assert_ptr_nonnull(strstr(out.text, "\n1 more error not shown\n5 more warnings not shown\n"));
}

START_TEST(test_more)
{
    etch_with_arena(what_was_not_kept_is_said);
}
END_TEST

Suite *etch_suite(void)
{
    Suite *suite = suite_create("rendering");
    ETCH_ADD_TESTS(suite, test_carets, test_long_lines, test_notes, test_more);
    return suite;
}
