/* Times of nodes, in whole picoseconds, against the same formulas written down for 300 bits. */
#include <mpfr.h>
#include <stdio.h>
#include <string.h>

#include "effort.h"
#include "machine/machine.h"
#include "suite.h"

enum { BITS = 300 };
/* far more than what 300 bits are off */
#define HARDLY 0x1p-40

/* A number of 10^power. */
static void set(mpfr_t out, uint64_t digits, int power)
{
    char text[64];
    snprintf(text, sizeof text, "%llue%d", (unsigned long long)digits, power);
    mpfr_set_str(out, text, 10, MPFR_RNDN);
}

/* Pseudo-random numbers: the same ones on every machine. */
static uint64_t next(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *state >> 20;
}

/* The nearest whole picosecond, or one of the two, which is off by no more than it says. */
static void expect(mpfr_t seconds, const char *why, const etch_picoseconds *found)
{
    mpfr_t ps, off;
    mpfr_init2(ps, BITS);
    mpfr_init2(off, BITS);
    ck_assert_msg(!why, "%s", why);
    set(ps, 1, 12);
    mpfr_mul(ps, ps, seconds, MPFR_RNDN);
    mpfr_sub_ui(off, ps, found->count, MPFR_RNDN);
    mpfr_abs(off, off, MPFR_RNDN);
    ck_assert(mpfr_cmp_d(off, 0.5 + HARDLY) <= 0);
    ck_assert(mpfr_cmp_d(off, (double)found->error + HARDLY) <= 0);
    ck_assert_uint_le(found->error, 1);
    mpfr_clear(ps);
    mpfr_clear(off);
}

/* (a^p + b^p)^(1/p) */
static void norm(mpfr_t a, mpfr_t b, mpfr_t p)
{
    mpfr_pow(a, a, p, MPFR_RNDN);
    mpfr_pow(b, b, p, MPFR_RNDN);
    mpfr_add(a, a, b, MPFR_RNDN);
    mpfr_ui_div(b, 1, p, MPFR_RNDN);
    mpfr_pow(a, a, b, MPFR_RNDN);
}

static void divide(mpfr_t at, uint64_t digits, int power)
{
    mpfr_t by;
    mpfr_init2(by, BITS);
    set(by, digits, power);
    mpfr_div(at, at, by, MPFR_RNDN);
    mpfr_clear(by);
}

/* o + ((F/(P e))^p + (Q/(B m))^p)^(1/p), with the numbers of an H100 */
static void time_products(etch_arena *arena)
{
    static const etch_decimal numbers[] = {{328, -8}, {7718, -4}, {8454, -4}, {2419, -3}};
    etch_device device = {.name = "d", .bandwidth = {335, 10}};
    ETCH_PUSH(arena, &device.peaks, (etch_peak){"bf16", {9894, 11}});
    device.fits[ETCH_KERNEL_PRODUCT].given = true;
    memcpy(device.fits[ETCH_KERNEL_PRODUCT].at, numbers, sizeof numbers);
    mpfr_t work, bytes, p;
    mpfr_inits2(BITS, work, bytes, p, (mpfr_ptr)0);
    uint64_t state = 1;
    for (unsigned i = 0; i < etch_effort(3000); i++) {
        etch_computation c = {.kind = ETCH_KERNEL_PRODUCT, .dtype = "bf16"};
        c.flop = next(&state) % (UINT64_C(1) << (10 + i % 40));
        c.bytes = 1 + next(&state) % (UINT64_C(1) << (5 + i % 30));
        etch_picoseconds found;
        const char *why = etch_computation_time(arena, &device, NULL, NULL, &c, &found);
        set(work, c.flop, 0);
        set(bytes, c.bytes, 0);
        set(p, 2419, -3);
        divide(work, 9894, 11);
        divide(work, 7718, -4);
        divide(bytes, 335, 10);
        divide(bytes, 8454, -4);
        norm(work, bytes, p);
        set(bytes, 328, -8);
        mpfr_add(work, work, bytes, MPFR_RNDN);
        expect(work, why, &found);
    }
    mpfr_clears(work, bytes, p, (mpfr_ptr)0);
}

START_TEST(products_take_what_their_formula_says)
{
    etch_with_arena(time_products);
}
END_TEST

/* latency + bytes/W: many of these are whole picoseconds, or lie halfway between two. */
static void time_messages(etch_arena *arena)
{
    etch_device device = {.name = "d"};
    etch_cluster cluster = {.name = "c", .device = &device};
    ETCH_PUSH(arena, &cluster.levels, (etch_level){.name = "l", .bandwidth = {64, 10}, .latency = {5, -7}});
    mpfr_t seconds, latency;
    mpfr_inits2(BITS, seconds, latency, (mpfr_ptr)0);
    for (uint64_t i = 0; i < 4096; i++) {
        const uint64_t bytes = i % 2 ? i << i % 40 : i;
        etch_picoseconds found;
        const char *why = etch_message_time(arena, &cluster, NULL, 0, bytes, &found);
        set(seconds, bytes, 0);
        set(latency, 5, -7);
        divide(seconds, 64, 10);
        mpfr_add(seconds, seconds, latency, MPFR_RNDN);
        expect(seconds, why, &found);
    }
    mpfr_clears(seconds, latency, (mpfr_ptr)0);
}

START_TEST(messages_take_what_their_formula_says)
{
    etch_with_arena(time_messages);
}
END_TEST

/* Numbers that no double holds. */
static void time_extremes(etch_arena *arena)
{
    etch_device device = {.name = "d", .bandwidth = {1, 300}};
    const etch_computation c = {.kind = ETCH_KERNEL_ELEMENTWISE, .bytes = 1000};
    etch_picoseconds found;
    ck_assert_ptr_null(etch_computation_time(arena, &device, NULL, NULL, &c, &found));
    ck_assert_uint_eq(found.count, 0);
    ck_assert_uint_eq(found.error, 1);
    device.bandwidth = (etch_decimal){1, 2000};
    ck_assert_ptr_null(etch_computation_time(arena, &device, NULL, NULL, &c, &found));
    ck_assert_uint_eq(found.count, 0);
    device.bandwidth = (etch_decimal){1, -2000};
    ck_assert_ptr_nonnull(etch_computation_time(arena, &device, NULL, NULL, &c, &found));
    device.bandwidth = (etch_decimal){1, 3};
    const etch_decimal never = {1, -2000};
    ck_assert_ptr_null(etch_computation_time(arena, &device, NULL, &never, &c, &found));
    ck_assert_uint_eq(found.count, 0);
}

START_TEST(numbers_beyond_doubles_are_exact)
{
    etch_with_arena(time_extremes);
}
END_TEST

Suite *etch_suite(void)
{
    Suite *suite = suite_create("machine step times");
    ETCH_ADD_TESTS(suite, products_take_what_their_formula_says, messages_take_what_their_formula_says,
                   numbers_beyond_doubles_are_exact);
    return suite;
}
