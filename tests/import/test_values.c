/* Numbers of configs as texts: which mean the same, which are above 0, which are whole. */
#include "import/import_int.h"
#include "suite.h"

START_TEST(numbers_that_are_the_same)
{
    static const char *const same[][2] = {{"1", "1.0"},   {"1", "10e-1"},   {"100", "1e2"},
                                          {"0", "-0.0"},  {"0.10", "1E-1"}, {"12.5", "125e-1"},
                                          {"NaN", "NaN"}, {"0e99", "0"},    {"1200", "0.12e+4"}};
    static const char *const other[][2] = {{"1", "-1"},       {"1", "10"},  {"1", "1.01"},
                                           {"0", "1e-9"},     {"12", "21"}, {"Infinity", "-Infinity"},
                                           {"1", "1e9999999"}};
    for (size_t i = 0; i < sizeof same / sizeof *same; i++)
        ck_assert_msg(etch_config_same_number(same[i][0], same[i][1]), "%s and %s", same[i][0], same[i][1]);
    for (size_t i = 0; i < sizeof other / sizeof *other; i++)
        ck_assert_msg(!etch_config_same_number(other[i][0], other[i][1]), "%s and %s", other[i][0],
                      other[i][1]);
}
END_TEST

START_TEST(numbers_above_zero)
{
    static const char *const above[] = {"1", "0.1", "1e-9", "Infinity"}, *const others[] = {
                                                                             "0",   "0.0",       "-1",
                                                                             "NaN", "-Infinity", "0e5"};
    for (size_t i = 0; i < sizeof above / sizeof *above; i++)
        ck_assert_msg(etch_config_is_positive(above[i]), "%s", above[i]);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        ck_assert_msg(!etch_config_is_positive(others[i]), "%s", others[i]);
}
END_TEST

START_TEST(whole_numbers)
{
    static const char *const others[] = {"", "-1", "1.0", "1e2", "101", "18446744073709551617", "NaN"};
    uint64_t value;
    ck_assert(etch_config_integer("100", 100, &value));
    ck_assert_uint_eq(value, 100);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        ck_assert_msg(!etch_config_integer(others[i], 100, &value), "%s", others[i]);
}
END_TEST

START_TEST(parts_of_one)
{
    static const struct {
        const char *text;
        uint64_t above, below;
    } parts[] = {
        {"0.25", 25, 100}, {"1", 1, 1},         {"1.0", 1, 1},   {"1e-1", 1, 10},
        {"0.50", 5, 10},   {"2.5e-1", 25, 100}, {"10e-1", 1, 1}, {"0.123456789", 123456789, 1000000000}};
    static const char *const others[] = {"0",   "-0.5",     "1.01",  "2",           "1e1",
                                         "NaN", "Infinity", "1e-10", "0.1234567891"};
    uint64_t above, below;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        ck_assert_msg(etch_config_fraction(parts[i].text, &above, &below), "%s", parts[i].text);
        ck_assert_uint_eq(above, parts[i].above);
        ck_assert_uint_eq(below, parts[i].below);
    }
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        ck_assert_msg(!etch_config_fraction(others[i], &above, &below), "%s", others[i]);
}
END_TEST

START_TEST(words_of_tables)
{
    ck_assert(etch_has_word("silu swish", "swish"));
    ck_assert(!etch_has_word("silu swish", "sw"));
    ck_assert(!etch_has_word("", "silu"));
    ck_assert(etch_is_config("a/config.json", NULL));
    ck_assert(!etch_is_config("config.json.etch", NULL));
    ck_assert(etch_is_config("-", " \n{"));
    ck_assert(!etch_is_config("-", "etch 1"));
    ck_assert(!etch_is_config(".jso", NULL));
}
END_TEST

Suite *etch_suite(void)
{
    Suite *suite = suite_create("import values");
    ETCH_ADD_TESTS(suite, numbers_that_are_the_same, numbers_above_zero, whole_numbers, parts_of_one,
                   words_of_tables);
    return suite;
}
