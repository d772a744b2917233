/* Units, and exact decimals in them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "machine/machine.h"

static const etch_machine_unit units[] = {
    {"s", ETCH_OF_TIME, 1, 0},
    {"ms", ETCH_OF_TIME, 1, -3},
    {"us", ETCH_OF_TIME, 1, -6},
    {"ns", ETCH_OF_TIME, 1, -9},
    {"ps", ETCH_OF_TIME, 1, -12},
    {"B", ETCH_OF_BYTES, 1, 0},
    {"kB", ETCH_OF_BYTES, 1, 3},
    {"MB", ETCH_OF_BYTES, 1, 6},
    {"GB", ETCH_OF_BYTES, 1, 9},
    {"TB", ETCH_OF_BYTES, 1, 12},
    {"KiB", ETCH_OF_BYTES, 1 << 10, 0},
    {"MiB", ETCH_OF_BYTES, 1 << 20, 0},
    {"GiB", ETCH_OF_BYTES, 1 << 30, 0},
    {"MB/s", ETCH_OF_BYTES_A_SECOND, 1, 6},
    {"GB/s", ETCH_OF_BYTES_A_SECOND, 1, 9},
    {"TB/s", ETCH_OF_BYTES_A_SECOND, 1, 12},
    {"GiB/s", ETCH_OF_BYTES_A_SECOND, 1 << 30, 0},
    {"GFLOP/s", ETCH_OF_FLOP_A_SECOND, 1, 9},
    {"TFLOP/s", ETCH_OF_FLOP_A_SECOND, 1, 12},
    {"PFLOP/s", ETCH_OF_FLOP_A_SECOND, 1, 15},
    {"Hz", ETCH_OF_FREQUENCY, 1, 0},
    {"MHz", ETCH_OF_FREQUENCY, 1, 6},
    {"GHz", ETCH_OF_FREQUENCY, 1, 9},
    {"W", ETCH_OF_POWER, 1, 0},
    {"kW", ETCH_OF_POWER, 1, 3},
};
enum { UNITS = sizeof units / sizeof *units };

const etch_machine_unit *etch_machine_unit_at(uint32_t index)
{
    return index < UNITS ? &units[index] : NULL;
}

const char *etch_dimension_text(etch_dimension dimension)
{
    static const char *const texts[ETCH_DIMENSION_COUNT] = {
        [ETCH_OF_NOTHING] = "a number without a unit, as 0.8",
        [ETCH_OF_TIME] = "a time, as 20 us",
        [ETCH_OF_BYTES] = "an amount of memory, as 80 GB",
        [ETCH_OF_BYTES_A_SECOND] = "bytes a second, as 450 GB/s",
        [ETCH_OF_FLOP_A_SECOND] = "FLOP a second, as 312 TFLOP/s",
        [ETCH_OF_FREQUENCY] = "a frequency, as 1.05 GHz",
        [ETCH_OF_POWER] = "a power, as 700 W",
    };
    return texts[dimension];
}

etch_decimal etch_decimal_of(int64_t digits, int32_t power)
{
    if (digits == 0)
        return (etch_decimal){0, 0};
    while (digits % 10 == 0) {
        digits /= 10;
        power++;
    }
    return (etch_decimal){digits, power};
}

etch_decimal etch_decimal_round(double value, int places)
{
    char text[64];
    /* printf rounds to the nearest decimal, as strtod reads it back: no arithmetic of ours is between */
    snprintf(text, sizeof text, "%.*e", places - 1, value);
    int64_t digits = 0;
    int32_t power = 0;
    bool point = false;
    const char *at = text;
    for (; *at && *at != 'e'; at++) {
        if (*at < '0' || *at > '9') {
            point = true;
            continue;
        }
        digits = digits * 10 + (*at - '0');
        power -= point;
    }
    return etch_decimal_of(digits, *at == 'e' ? power + (int32_t)strtol(at + 1, NULL, 10) : power);
}

double etch_decimal_double(etch_decimal value)
{
    char text[48];
    snprintf(text, sizeof text, "%lldE%d", (long long)value.digits, (int)value.power);
    return strtod(text, NULL);
}

/* digits * 10^power without an exponent. */
static void print_number(etch_buf *out, etch_decimal value)
{
    char digits[24];
    const int length = snprintf(digits, sizeof digits, "%lld", (long long)value.digits);
    const int whole = length + value.power;
    if (value.power >= 0) {
        etch_buf_puts(out, digits);
        for (int32_t i = 0; i < value.power; i++)
            etch_buf_puts(out, "0");
        return;
    }
    etch_buf_puts(out, whole > 0 ? "" : "0.");
    for (int i = whole; i < 0; i++)
        etch_buf_puts(out, "0");
    etch_buf_add(out, digits, whole > 0 ? (size_t)whole : 0);
    etch_buf_puts(out, whole > 0 ? "." : "");
    etch_buf_puts(out, digits + (whole > 0 ? whole : 0));
}

void etch_decimal_print(etch_buf *out, etch_decimal value, etch_dimension dimension)
{
    static const struct {
        const char *unit;
        int32_t power;
    } printed[ETCH_DIMENSION_COUNT] = {
        [ETCH_OF_NOTHING] = {"", 0},
        [ETCH_OF_TIME] = {" us", -6},
        [ETCH_OF_BYTES] = {" GB", 9},
        [ETCH_OF_BYTES_A_SECOND] = {" GB/s", 9},
        [ETCH_OF_FLOP_A_SECOND] = {" TFLOP/s", 12},
        [ETCH_OF_FREQUENCY] = {" GHz", 9},
        [ETCH_OF_POWER] = {" W", 0},
    };
    if (value.digits != 0)
        value.power -= printed[dimension].power;
    print_number(out, value);
    etch_buf_puts(out, printed[dimension].unit);
}
