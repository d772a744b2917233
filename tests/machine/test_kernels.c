/* Times of kernels that can be worked out by hand, and cycles of systolic arrays against a count of them. */
#include "machine/machine.h"
#include "suite.h"

#include <string.h>

static etch_fitted fitted(const etch_decimal *numbers, int count)
{
    etch_fitted out = {.given = true};
    memcpy(out.at, numbers, (size_t)count * sizeof *numbers);
    return out;
}

/* 1 PFLOP/s, 1 TB/s, no overhead, all of both is reached. */
static etch_device plain_device(etch_arena *arena)
{
    static const etch_decimal products[] = {{0, 0}, {1, 0}, {1, 0}, {1, 0}};
    static const etch_decimal attention[] = {{1, -6}, {5, -1}, {1000, 0}, {5, -1}};
    static const etch_decimal elementwise[] = {{2, -6}, {5, -1}};
    etch_device device = {.name = "d", .bandwidth = {1, 12}};
    ETCH_PUSH(arena, &device.peaks, (etch_peak){"bf16", {1, 15}});
    ETCH_PUSH(arena, &device.peaks, (etch_peak){"f8", {2, 15}});
    device.fits[ETCH_KERNEL_PRODUCT] = fitted(products, 4);
    device.fits[ETCH_KERNEL_ATTENTION] = fitted(attention, 4);
    device.fits[ETCH_KERNEL_ELEMENTWISE] = fitted(elementwise, 2);
    return device;
}

/* The interval holds `picoseconds` * 10^-12, or rather the doubles on both sides of it, and is narrow. */
static void expect_time(etch_arena *arena, const etch_machine *machine, etch_kernel_call kernel,
                        double picoseconds)
{
    etch_seconds found;
    const char *why = etch_kernel_time(arena, machine, &kernel, &found);
    ck_assert_msg(!why, "%s", why);
    const double value = picoseconds * 1e-12;
    ck_assert_double_le(found.low, value * (1 + 1e-15));
    ck_assert_double_ge(found.high, value * (1 - 1e-15));
    ck_assert_double_le(found.high - found.low, found.low * 1e-15);
}

static void time_kernels(etch_arena *arena)
{
    const etch_device device = plain_device(arena);
    const etch_machine machine = {.device = &device};
    /* a norm of 1 is a sum: 2*2^30 FLOP at 10^15, 6*2^20 bytes at 10^12 */
    const etch_kernel_call product = {
        .kind = ETCH_KERNEL_PRODUCT, .dtype = "bf16", .m = 1024, .n = 1024, .k = 1024};
    expect_time(arena, &machine, product, 2147483.648 + 6291456);
    /* f8: operands of one byte, a result of two */
    etch_kernel_call small = product;
    small.dtype = "f8";
    expect_time(arena, &machine, small, 1073741.824 + 4194304);
    small.result = "f32";
    expect_time(arena, &machine, small, 1073741.824 + 6291456);
    /* groups: weights of each; as gradients in f32 they are the result */
    etch_kernel_call grouped = product;
    grouped.kind = ETCH_KERNEL_GROUPED;
    grouped.groups = 4;
    expect_time(arena, &machine, grouped, 2147483.648 + 12582912);
    grouped.weights = true;
    grouped.result = "f32";
    expect_time(arena, &machine, grouped, 2147483.648 + 20971520);
    const etch_kernel_call moved = {.kind = ETCH_KERNEL_ELEMENTWISE, .bytes = 1000000};
    expect_time(arena, &machine, moved, 2e6 + 2e6);
    /* 8 heads of 128, 1000 queries of 1000 keys, each sees those up to its own: 4*128*500500*8 FLOP, times
     * 1 + 1000/1000, at half of the peak */
    etch_kernel_call attention = {.kind = ETCH_KERNEL_ATTENTION,
                                  .dtype = "bf16",
                                  .batch = 1,
                                  .queries = 1000,
                                  .keys = 1000,
                                  .heads = 8,
                                  .kv_heads = 8,
                                  .head_dim = 128,
                                  .value_dim = 128,
                                  .causal = true};
    expect_time(arena, &machine, attention, 1e6 + 2050048.0 * 4);
    attention.backward = true;
    expect_time(arena, &machine, attention, 1e6 + 2050048.0 * 4 * 2.5 * 2);
    attention.backward = attention.causal = false;
    expect_time(arena, &machine, attention, 1e6 + 4096000.0 * 4);
}

START_TEST(times_are_those_of_the_formulas)
{
    etch_with_arena(time_kernels);
}
END_TEST

static void time_collectives(etch_arena *arena)
{
    static const etch_decimal numbers[] = {{1, -6}, {1, -6}, {5, -1}, {1, 0}, {1, 0}};
    const etch_device device = {.name = "d"};
    etch_level level = {.name = "l", .bandwidth = {1, 12}, .fit = fitted(numbers, 5)};
    const etch_machine machine = {.device = &device, .level = &level};
    etch_kernel_call call = {
        .kind = ETCH_KERNEL_COLLECTIVE, .op = ETCH_NODE_ALL_GATHER, .ranks = 4, .bytes = 1000000};
    expect_time(arena, &machine, call, 4e6 + 1.5e6); /* 3 steps, 3/4 of the bytes at half of the rate */
    call.op = ETCH_NODE_ALL_REDUCE;
    expect_time(arena, &machine, call, 7e6 + 3e6);
    call.bytes = 100000000;
    expect_time(arena, &machine, call, 7e6 + 300e6);
    level.reduces = true;
    expect_time(arena, &machine, call, 3e6 + 100e6); /* two steps, all bytes once */
    call.ranks = 2;
    expect_time(arena, &machine, call, 3e6 + 200e6); /* as before: of two ranks nothing is saved */
    call.ranks = 1;
    etch_seconds none;
    ck_assert_ptr_nonnull(etch_kernel_time(arena, &machine, &call, &none));
}

START_TEST(times_of_collectives)
{
    etch_with_arena(time_collectives);
}
END_TEST

/* Cycles counted fold by fold: what is held goes in over the rows, the rest streams past, results drain. */
static uint64_t counted(uint64_t held, uint64_t side, uint64_t across, uint64_t columns, uint64_t cycles)
{
    uint64_t sum = 0;
    for (uint64_t a = 0; a < held; a += side)
        for (uint64_t b = 0; b < across; b += columns)
            sum += cycles;
    return sum - 1;
}

START_TEST(cycles_are_those_that_are_counted)
{
    for (uint32_t i = 0; i < 4096; i++) {
        const uint32_t r = 1 + i % 5, c = 1 + i / 5 % 4;
        const uint64_t m = 1 + i % 11, n = 1 + i % 7, k = 1 + i % 13;
        etch_device device = {.name = "d", .rows = r, .columns = c};
        const etch_kernel_call product = {.kind = ETCH_KERNEL_SYSTOLIC, .m = m, .n = n, .k = k};
        const uint64_t weight = counted(k, r, n, c, 2 * r + c + m - 2);
        const uint64_t input = counted(k, r, m, c, 2 * r + c + n - 2);
        const uint64_t expected[ETCH_DATAFLOW_COUNT] = {
            [ETCH_WEIGHT_STATIONARY] = weight,
            [ETCH_INPUT_STATIONARY] = input,
            [ETCH_OUTPUT_STATIONARY] = counted(m, r, n, c, r + c + k - 2),
            [ETCH_EITHER_STATIONARY] = weight < input ? weight : input,
        };
        for (int flow = 0; flow < ETCH_DATAFLOW_COUNT; flow++) {
            uint64_t cycles;
            device.dataflow = (etch_dataflow)flow;
            ck_assert(etch_kernel_cycles(&device, &product, &cycles));
            ck_assert_uint_eq(cycles, expected[flow]);
        }
    }
}
END_TEST

START_TEST(cycles_that_do_not_fit_are_refused)
{
    const etch_device device = {.name = "d", .rows = 1, .columns = 1};
    const etch_kernel_call large = {.kind = ETCH_KERNEL_SYSTOLIC, .m = UINT32_MAX, .n = UINT32_MAX, .k = 4};
    uint64_t cycles;
    ck_assert(!etch_kernel_cycles(&device, &large, &cycles));
}
END_TEST

Suite *etch_suite(void)
{
    Suite *suite = suite_create("machine kernels");
    ETCH_ADD_TESTS(suite, times_are_those_of_the_formulas, times_of_collectives,
                   cycles_are_those_that_are_counted, cycles_that_do_not_fit_are_refused);
    return suite;
}
