/* Tokens, their places, and where statements end. */
#include "lang/syntax/lexer_int.h"
#include "suite.h"

#include <string.h>

/* The tokens of `text` by their texts, separated by spaces; the end of a statement is "$". */
static const char *tokens_of(etch_arena *arena, const char *text)
{
    etch_diags *diags = etch_diags_new(arena);
    etch_lexer lexer;
    etch_lexer_start(&lexer, etch_source_add(diags, "test", text, strlen(text)), diags, false);
    etch_buf out = {.arena = arena};
    etch_buf_puts(&out, "");
    for (;;) {
        etch_token token = etch_lexer_next(&lexer);
        if (token.kind == ETCH_TOKEN_END) {
            break;
        }
        etch_buf_puts(&out, out.length ? " " : "");
        if (token.kind == ETCH_TOKEN_NEWLINE) {
            etch_buf_puts(&out, "$");
        } else {
            etch_buf_add(&out, token.text, token.span.end - token.span.start);
        }
    }
    ck_assert_uint_eq(etch_error_count(diags), 0);
    return out.text;
}

static void statement_ends(etch_arena *arena)
{
    static const struct {
        const char *text, *tokens;
    } cases[] = {
        {"", ""},
        {"\n\n\n", ""},
        {"a\n\n\nb", "a $ b"},
        {"a;;b;\n;", "a $ $ b $ $"},
        {"a,\nb", "a , b"},
        {"a +\n-\n*\n/\n^\n=\nb", "a + - * / ^ = b"},
        {"a //\nb", "a // $ b"},
        {"a %\nb", "a % $ b"},
        {"a ==\nb", "a == $ b"},
        {"a ->\nb", "a -> $ b"},
        {"f(\na\n,b\n)\nc", "f ( a , b ) $ c"},
        {"[(\n)\n]\nc", "[ ( ) ] $ c"},
        {"(a;b)", "( a ; b )"},
        {"{\na\n}\n", "{ $ a $ } $"},
        {"a # b\nc", "a $ c"},
        {"a, # b\n# c\nd", "a , d"},
        {"(\n{\na\n}", "( { $ a $ }"},
        {")\na", ") $ a"},
        {"a\r\nb\r\n", "a $ b $"},
        {"a = ;b", "a = $ b"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ck_assert_str_eq(tokens_of(arena, cases[i].text), cases[i].tokens);
    }
}

START_TEST(newlines_end_statements_outside_brackets_unless_the_last_token_continues)
{
    etch_with_arena(statement_ends);
}
END_TEST

static void splitting(etch_arena *arena)
{
    static const struct {
        const char *text, *tokens;
    } cases[] = {
        {"H'' h'x _a1", "H'' h' x _a1"},
        {"1.5 1..2 1.x 0.25.5", "1.5 1 .. 2 1 . x 0.25 . 5"},
        {"a->b-->c", "a -> b - -> c"},
        {"<=>===!=<", "<= >= == != <"},
        {"///a", "// / a"},
        {"...x", ".. . x"},
        {"\"a # b\" \"\"", "\"a # b\" \"\""},
        {"models model'", "models model'"},
        {"@~|:;^%", "@ ~ | : $ ^ %"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ck_assert_str_eq(tokens_of(arena, cases[i].text), cases[i].tokens);
    }
}

START_TEST(the_longest_token_is_taken)
{
    etch_with_arena(splitting);
}
END_TEST

static void places(etch_arena *arena)
{
    static const char text[] = "\xEF\xBB\xBF"
                               "etch 1 # \xC3\xA9\n  dim H' = 2\n";
    etch_diags *diags = etch_diags_new(arena);
    etch_source_add(diags, "first", "xx", 2);
    const etch_source *source = etch_source_add(diags, "test", text, sizeof text - 1);
    etch_lexer lexer;
    etch_lexer_start(&lexer, source, diags, false);
    static const struct {
        etch_token_kind kind;
        uint32_t start, end, column;
        bool first;
    } expected[] = {
        {ETCH_TOKEN_ETCH, 3, 7, 0, true},        {ETCH_TOKEN_INTEGER, 8, 9, 5, false},
        {ETCH_TOKEN_NEWLINE, 14, 14, 11, false}, {ETCH_TOKEN_DIM, 17, 20, 2, true},
        {ETCH_TOKEN_NAME, 21, 23, 6, false},     {ETCH_TOKEN_ASSIGN, 24, 25, 9, false},
        {ETCH_TOKEN_INTEGER, 26, 27, 11, false}, {ETCH_TOKEN_NEWLINE, 27, 27, 12, false},
        {ETCH_TOKEN_END, 28, 28, 0, true},
    };
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        etch_token token = etch_lexer_next(&lexer);
        ck_assert_int_eq(token.kind, expected[i].kind);
        ck_assert_uint_eq(token.span.start - source->base, expected[i].start);
        ck_assert_uint_eq(token.column, expected[i].column);
        ck_assert(token.first_on_line == expected[i].first);
        if (token.kind != ETCH_TOKEN_NEWLINE) {
            ck_assert_uint_eq(token.span.end - source->base, expected[i].end);
        }
    }
    ck_assert_int_eq(etch_lexer_next(&lexer).kind, ETCH_TOKEN_END);
}

START_TEST(tokens_know_their_bytes_and_lines)
{
    etch_with_arena(places);
}
END_TEST

static etch_code first_error(etch_arena *arena, const char *text, size_t length, uint32_t *offset)
{
    etch_diags *diags = etch_diags_new(arena);
    const etch_source *source = etch_source_add(diags, "test", text, length);
    etch_lexer lexer;
    etch_lexer_start(&lexer, source, diags, false);
    while (etch_lexer_next(&lexer).kind != ETCH_TOKEN_END) {
    }
    const etch_diag *diag = etch_diags_first(diags);
    ck_assert_ptr_nonnull(diag);
    ck_assert_ptr_null(diag->next);
    *offset = diag->span.start - source->base;
    return diag->code;
}

static void bad_texts(etch_arena *arena)
{
    static const struct {
        const char *text;
        size_t length;
        etch_code code;
        uint32_t offset;
    } cases[] = {
        {"a\0b", 3, ETCH_E_CONTROL_CHARACTER, 1},
        {"a\x1B[0m", 5, ETCH_E_CONTROL_CHARACTER, 1},
        {"\x7F", 1, ETCH_E_CONTROL_CHARACTER, 0},
        {"\xC2\x85", 2, ETCH_E_CONTROL_CHARACTER, 0},
        {"a\rb", 3, ETCH_E_CONTROL_CHARACTER, 1},
        {"# a\0", 4, ETCH_E_CONTROL_CHARACTER, 3},
        {"\"a\0\"", 4, ETCH_E_CONTROL_CHARACTER, 2},
        {"\x80", 1, ETCH_E_BAD_UTF8, 0},
        {"\xC3", 1, ETCH_E_BAD_UTF8, 0},
        {"\xC1\xBF", 2, ETCH_E_BAD_UTF8, 0},
        {"\xE0\x9F\xBF", 3, ETCH_E_BAD_UTF8, 0},
        {"\xF4\x90\x80\x80", 4, ETCH_E_BAD_UTF8, 0},
        {"\xF5\x80\x80\x80", 4, ETCH_E_BAD_UTF8, 0},
        {"\xED\xBF\xBF", 3, ETCH_E_BAD_UTF8, 0},
        {"# \xE2\x82", 4, ETCH_E_BAD_UTF8, 2},
        {"\"abc", 4, ETCH_E_OPEN_STRING, 0},
        {"12ab", 4, ETCH_E_BAD_NUMBER, 0},
        {"x $", 3, ETCH_E_BAD_CHARACTER, 2},
        {"a \xF0\x9F\x98\x80", 6, ETCH_E_BAD_CHARACTER, 2},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint32_t offset = 0;
        ck_assert_int_eq(first_error(arena, cases[i].text, cases[i].length, &offset), cases[i].code);
        ck_assert_uint_eq(offset, cases[i].offset);
    }
}

START_TEST(what_is_no_text_is_reported_once_at_its_byte)
{
    etch_with_arena(bad_texts);
}
END_TEST

Suite *etch_suite(void)
{
    Suite *suite = suite_create("lexer");
    ETCH_ADD_TESTS(suite, newlines_end_statements_outside_brackets_unless_the_last_token_continues,
                   the_longest_token_is_taken, tokens_know_their_bytes_and_lines,
                   what_is_no_text_is_reported_once_at_its_byte);
    return suite;
}
