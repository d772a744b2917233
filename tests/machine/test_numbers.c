/* Exact decimals, their rounding, and how they are printed. */
#include "machine/machine.h"
#include "suite.h"

#include <string.h>

static void expect_printed(etch_arena *arena, etch_decimal value, etch_dimension dimension, const char *text)
{
    etch_buf out = {.arena = arena};
    etch_decimal_print(&out, value, dimension);
    ck_assert_str_eq(out.text, text);
}

static void print_all(etch_arena *arena)
{
    expect_printed(arena, etch_decimal_of(0, 0), ETCH_OF_TIME, "0 us");
    expect_printed(arena, etch_decimal_of(29, -7), ETCH_OF_TIME, "2.9 us");
    expect_printed(arena, etch_decimal_of(1, -3), ETCH_OF_TIME, "1000 us");
    expect_printed(arena, etch_decimal_of(5, -10), ETCH_OF_TIME, "0.0005 us");
    expect_printed(arena, etch_decimal_of(335, 10), ETCH_OF_BYTES_A_SECOND, "3350 GB/s");
    expect_printed(arena, etch_decimal_of(9894, 11), ETCH_OF_FLOP_A_SECOND, "989.4 TFLOP/s");
    expect_printed(arena, etch_decimal_of(1 << 30, 0), ETCH_OF_BYTES, "1.073741824 GB");
    expect_printed(arena, etch_decimal_of(81, -2), ETCH_OF_NOTHING, "0.81");
    expect_printed(arena, etch_decimal_of(12345, -2), ETCH_OF_NOTHING, "123.45");
    expect_printed(arena, etch_decimal_of(INT64_MAX, 0), ETCH_OF_NOTHING, "9223372036854775807");
}

START_TEST(numbers_are_printed_exactly)
{
    etch_with_arena(print_all);
}
END_TEST

static void expect_rounded(double value, int places, int64_t digits, int32_t power)
{
    const etch_decimal found = etch_decimal_round(value, places);
    ck_assert_int_eq(found.digits, digits);
    ck_assert_int_eq(found.power, power);
    ck_assert_double_eq(etch_decimal_double(found), etch_decimal_double((etch_decimal){digits, power}));
}

START_TEST(values_are_rounded_to_digits)
{
    expect_rounded(0.77184, 4, 7718, -4);
    expect_rounded(0.77186, 4, 7719, -4);
    expect_rounded(9.9996, 4, 1, 1);
    expect_rounded(2.9e-6, 4, 29, -7);
    expect_rounded(123456, 4, 1235, 2);
    expect_rounded(0, 4, 0, 0);
}
END_TEST

START_TEST(units_have_names_once)
{
    for (uint32_t i = 0; etch_machine_unit_at(i); i++)
        for (uint32_t k = 0; k < i; k++)
            ck_assert_str_ne(etch_machine_unit_at(i)->name, etch_machine_unit_at(k)->name);
}
END_TEST

Suite *etch_suite(void)
{
    Suite *suite = suite_create("machine numbers");
    ETCH_ADD_TESTS(suite, numbers_are_printed_exactly, values_are_rounded_to_digits, units_have_names_once);
    return suite;
}
