/* Spans say file, line and column; the record keeps what it says it keeps. */
#include "suite.h"

#include <string.h>

static const char first_text[] = "dim A\n\tq = \xC3\xA9\xE4\xBD\xA0z\r\n\nlast"; /* e acute, a Chinese sign */
static const char second_text[] = "one\n";

static void places_are_found(etch_arena *arena)
{
    static const struct {
        int source;
        uint32_t offset, line, column;
    } cases[] = {
        {0, 0, 1, 1},                 /* the first byte */
        {0, 5, 1, 6},                 /* the line break belongs to its line */
        {0, 6, 2, 1},                 /* a tab is one character */
        {0, 7, 2, 2},  {0, 11, 2, 6}, /* the two bytes of e acute */
        {0, 13, 2, 7},                /* the three bytes of the sign */
        {0, 16, 2, 8},                /* z, one column behind it */
        {0, 19, 3, 1},                /* an empty line */
        {0, 20, 4, 1}, {0, 24, 4, 5}, /* the end of the text */
        {1, 0, 1, 1},  {1, 4, 2, 1},  /* behind the last line break */
    };
    etch_diags *diags = etch_diags_new(arena);
    const etch_source *sources[2];
    sources[0] = etch_source_add(diags, "first.etch", first_text, strlen(first_text));
    sources[1] = etch_source_add(diags, "second.etch", second_text, strlen(second_text));
    ck_assert_uint_eq(sources[0]->base, 1);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const etch_source *source = sources[cases[i].source];
        uint32_t at = source->base + cases[i].offset, line, column;
        ck_assert_ptr_eq(etch_source_at(diags, (etch_span){at, at + 1}, &line, &column), source);
        ck_assert_msg(line == cases[i].line && column == cases[i].column, "case %zu: %u:%u", i, line, column);
    }
}

START_TEST(test_places)
{
    etch_with_arena(places_are_found);
}
END_TEST

static void nowhere_has_no_source(etch_arena *arena)
{
    etch_diags *diags = etch_diags_new(arena);
    ck_assert_ptr_null(etch_source_at(diags, (etch_span){0, 0}, NULL, NULL));
    ck_assert_ptr_null(etch_source_at(diags, (etch_span){1, 2}, NULL, NULL));
    const etch_source *empty = etch_source_add(diags, "empty.etch", "", 0);
    ck_assert_ptr_null(etch_source_at(diags, (etch_span){0, 0}, NULL, NULL));
    ck_assert_ptr_eq(etch_source_at(diags, (etch_span){1, 1}, NULL, NULL), empty);
    ck_assert_ptr_null(etch_source_at(diags, (etch_span){2, 2}, NULL, NULL));
}

/* All texts together: at the limit, and one byte above it. */
static void texts_are_limited(etch_arena *arena)
{
    enum { HALF = ETCH_TOTAL_LIMIT / 2 };
    char *text = etch_alloc(arena, HALF);
    memset(text, '#', HALF);
    etch_diags *diags = etch_diags_new(arena);
    ck_assert_ptr_null(etch_source_add(diags, "huge.etch", text, (size_t)ETCH_TOTAL_LIMIT + 1));
    ck_assert_ptr_nonnull(etch_source_add(diags, "first.etch", text, HALF));
    ck_assert_ptr_null(etch_source_add(diags, "second.etch", text, HALF + 1));
    ck_assert_ptr_nonnull(etch_source_add(diags, "second.etch", text, HALF));
    ck_assert_ptr_nonnull(etch_source_add(diags, "empty.etch", text, 0));
    ck_assert_ptr_null(etch_source_add(diags, "third.etch", text, 1));
}

START_TEST(test_total)
{
    etch_with_arena(texts_are_limited);
}
END_TEST

START_TEST(test_nowhere)
{
    etch_with_arena(nowhere_has_no_source);
}
END_TEST

static void notes_keep_their_order(etch_arena *arena)
{
    etch_diags *diags = etch_diags_new(arena);
    etch_diag *diag = etch_warning(diags, ETCH_NO_CODE, (etch_span){0, 0}, "odd: %s", "this");
    etch_note(diag, (etch_span){0, 0}, "one");
    etch_help(diag, "do %d", 1);
    etch_note(diag, (etch_span){0, 0}, "two");
    ck_assert_ptr_eq(etch_diags_first(diags), diag);
    ck_assert_str_eq(diag->message, "odd: this");
    ck_assert_str_eq(diag->notes->message, "one");
    ck_assert_str_eq(diag->notes->next->message, "two");
    ck_assert_ptr_null(diag->notes->next->next);
    ck_assert_str_eq(diag->helps->message, "do 1");
    ck_assert_uint_eq(etch_error_count(diags), 0);
}

START_TEST(test_notes)
{
    etch_with_arena(notes_keep_their_order);
}
END_TEST

static void many_errors_are_counted_but_not_kept(etch_arena *arena)
{
    etch_diags *diags = etch_diags_new(arena);
    for (int i = 0; i < 1000; i++) {
        etch_diag *diag = etch_error(diags, ETCH_NO_CODE, (etch_span){0, 0}, "error %d", i);
        etch_note(diag, (etch_span){0, 0}, "note %d", i);
        etch_help(diag, "help %d", i);
    }
    etch_remark(diags, ETCH_NO_CODE, (etch_span){0, 0}, "still kept");
    ck_assert_uint_eq(etch_error_count(diags), 1000);
    int errors = 0;
    const etch_diag *last = NULL;
    for (const etch_diag *diag = etch_diags_first(diags); diag; diag = diag->next) {
        errors += diag->severity == ETCH_ERROR;
        last = diag;
    }
    ck_assert_int_eq(errors, 20);
    ck_assert_str_eq(last->message, "still kept");
}

START_TEST(test_many)
{
    etch_with_arena(many_errors_are_counted_but_not_kept);
}
END_TEST

START_TEST(test_codes_have_titles_and_ranges)
{
    static const int codes[] = {
#define ETCH_DIAG(name, number, title) number,
#include "base/diag.def"
#undef ETCH_DIAG
        0
    };
    ck_assert_ptr_null(etch_code_title(ETCH_NO_CODE));
    for (size_t i = 0; codes[i] != 0; i++) {
        ck_assert_int_ge(codes[i], 100);
        ck_assert_int_le(codes[i], 999);
        const char *title = etch_code_title((etch_code)codes[i]);
        ck_assert_ptr_nonnull(title);
        ck_assert_uint_gt(strlen(title), 0);
        ck_assert_int_ne(title[strlen(title) - 1], '.');
    }
}
END_TEST

Suite *etch_suite(void)
{
    Suite *suite = suite_create("sources");
    ETCH_ADD_TESTS(suite, test_places, test_nowhere, test_total, test_notes, test_many,
                   test_codes_have_titles_and_ranges);
    return suite;
}
