/* Arrays, texts and names. */
#include "suite.h"

#include <string.h>

static void vectors_keep_what_was_pushed(etch_arena *arena)
{
    ETCH_VEC(int) v = {0};
    for (int i = 0; i < 10000; i++)
        ETCH_PUSH(arena, &v, i * i);
    ck_assert_uint_eq(v.count, 10000);
    for (int i = 0; i < 10000; i++)
        ck_assert_int_eq(v.at[i], i * i);
}

START_TEST(test_vectors)
{
    etch_with_arena(vectors_keep_what_was_pushed);
}
END_TEST

static void texts_grow(etch_arena *arena)
{
    etch_buf buf = {.arena = arena};
    for (int i = 0; i < 1000; i++) {
        etch_buf_puts(&buf, "ab");
        etch_buf_printf(&buf, "%03d", i);
        etch_buf_add(&buf, "\0cut", 1);
    }
    ck_assert_uint_eq(buf.length, 6000);
    ck_assert_uint_eq((unsigned char)buf.text[6000], 0);
    ck_assert_mem_eq(buf.text, "ab000\0ab001\0", 12);
    ck_assert_mem_eq(buf.text + 5994, "ab999", 6);
    etch_buf empty = {.arena = arena};
    etch_buf_puts(&empty, "");
    ck_assert_str_eq(empty.text, "");
}

START_TEST(test_texts)
{
    etch_with_arena(texts_grow);
}
END_TEST

static void equal_names_are_one(etch_arena *arena)
{
    enum { COUNT = 5000 };
    etch_names *names = etch_names_new(arena);
    const char *first[COUNT];
    for (int i = 0; i < COUNT; i++)
        first[i] = etch_name_of(names, etch_text(arena, "n%d", i));
    for (int i = 0; i < COUNT; i++) {
        const char *text = etch_text(arena, "n%d", i);
        ck_assert_ptr_eq(etch_name_of(names, text), first[i]);
        ck_assert_str_eq(first[i], text);
    }
    ck_assert_ptr_eq(etch_name(names, "n12345", 3), etch_name_of(names, "n12"));
    ck_assert_ptr_ne(etch_name(names, "a\0b", 3), etch_name(names, "a\0c", 3));
    ck_assert_str_eq(etch_name(names, "", 0), "");
}

START_TEST(test_names)
{
    etch_with_arena(equal_names_are_one);
}
END_TEST

START_TEST(test_nearest)
{
    static const char *const names[] = {"hidden", "heads", "kv_heads", "layers", "dp", "tp"};
    static const struct {
        const char *text, *nearest;
    } cases[] = {
        {"hiden", "hidden"},     {"hiddden", "hidden"}, {"hidedn", "hidden"}, {"hidxyz", NULL},
        {"head", "heads"},       {"layesr", "layers"},  {"pd", "dp"},         {"cp", "dp"},
        {"kvheads", "kv_heads"}, {"x", NULL},           {"", NULL},           {"heads", "heads"},
        {"HEADS", NULL},         {"ehadsx", "heads"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *found = etch_nearest(cases[i].text, names, sizeof names / sizeof *names);
        ck_assert_pstr_eq(found, cases[i].nearest);
    }
}
END_TEST

static size_t smallest(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* The distance by the full table, for words of up to 7 letters. */
static size_t distance(const char *a, const char *b)
{
    size_t d[8][8];
    size_t rows = strlen(a), columns = strlen(b);
    for (size_t i = 0; i <= rows; i++) {
        for (size_t k = 0; k <= columns; k++) {
            if (i == 0 || k == 0) {
                d[i][k] = i + k;
                continue;
            }
            d[i][k] = smallest(d[i - 1][k], d[i][k - 1]) + 1;
            d[i][k] = smallest(d[i][k], d[i - 1][k - 1] + (a[i - 1] != b[k - 1]));
            if (i > 1 && k > 1 && a[i - 1] == b[k - 2] && a[i - 2] == b[k - 1])
                d[i][k] = smallest(d[i][k], d[i - 2][k - 2] + 1);
        }
    }
    return d[rows][columns];
}

static uint32_t next_random(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 16;
}

static void random_word(uint32_t *state, char word[8])
{
    size_t length = next_random(state) % 8;
    for (size_t i = 0; i < length; i++)
        word[i] = (char)('a' + next_random(state) % 3);
    word[length] = '\0';
}

START_TEST(test_nearest_agrees_with_the_full_table)
{
    uint32_t state = 1;
    for (int round = 0; round < 200000; round++) {
        char a[8], b[8];
        random_word(&state, a);
        random_word(&state, b);
        const char *const candidates[] = {b};
        size_t d = distance(a, b);
        bool near = d <= 2 && d < strlen(a);
        ck_assert_msg((etch_nearest(a, candidates, 1) != NULL) == near, "'%s' and '%s': distance %zu", a, b,
                      d);
    }
}
END_TEST

Suite *etch_suite(void)
{
    Suite *suite = suite_create("text");
    ETCH_ADD_TESTS(suite, test_vectors, test_texts, test_names, test_nearest,
                   test_nearest_agrees_with_the_full_table);
    return suite;
}
