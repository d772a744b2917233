/* How long the nodes of a step take: the formulas of kernels, with FLOP and bytes as the step has them, in
 * whole picoseconds. */
#include <math.h>
#include <string.h>

#include "graph/graph.h"
#include "machine/machine_int.h"

enum { OVERHEAD = 0, REACH = 1, MEMORY = 2, ELEMENTWISE_MEMORY = 1 };

/* A day, of one node: beyond it sums would not fit. */
#define MOST_PICOSECONDS UINT64_C(86400000000000000)

/* ---- picoseconds --------------------------------------------------------------------------------------- */

/* Rounded once, to the nearest. False where it is longer than a day. */
static bool round_time(const etch_enclosure *ps, etch_picoseconds *out)
{
    etch_enclosure off;
    if (mpfr_cmp_ui(ps->high, MOST_PICOSECONDS) >= 0)
        return false;
    etch_enclosure_start(&off, false);
    mpfr_add(off.low, ps->low, ps->high, MPFR_RNDN);
    mpfr_div_ui(off.low, off.low, 2, MPFR_RNDN);
    out->count = mpfr_get_uj(off.low, MPFR_RNDN);
    mpfr_set_uj(off.low, out->count, MPFR_RNDN);
    mpfr_sub(off.high, ps->high, off.low, MPFR_RNDU);
    mpfr_sub(off.low, off.low, ps->low, MPFR_RNDU);
    mpfr_max(off.high, off.high, off.low, MPFR_RNDU);
    out->error = mpfr_get_uj(off.high, MPFR_RNDU);
    etch_enclosure_end(&off);
    return true;
}

/* The same of doubles, where they tell: the value lies strictly between a whole number of picoseconds and one
 * half more or less. So it does in an interval of 128 bits, whose width is lost in what the last operation
 * here has added to both ends: it is rounded to the same number, with an error of 1. */
static bool round_quickly(const etch_enclosure *ps, etch_picoseconds *out)
{
    const double exact = 1e15; /* below it halves are doubles */
    if (!(ps->above < exact))
        return false;
    const double count = floor(ps->below + 0.5);
    *out = (etch_picoseconds){(uint64_t)count, 1};
    return ps->below > count - 0.5 && ps->above < count + 0.5 && (ps->above < count || ps->below > count);
}

/* What takes time, and where. */
typedef struct timing {
    etch_arena *arena;
    const etch_cluster *cluster;
    const etch_device *device;
    /* a computation; how many times as long its device takes */
    const etch_computation *computation;
    const etch_decimal *slow;
    /* of all else */
    etch_node_collective op;
    uint64_t bytes;
    const uint32_t *spread;
    uint32_t level;
} timing;

/* Seconds of the formula. NULL, or what is missing. */
typedef const char *timing_formula(const timing *t, etch_enclosure *seconds);

/* Times a number; NULL: 1. */
static void multiply(etch_enclosure *seconds, const etch_decimal *factor)
{
    etch_enclosure by;
    if (!factor)
        return;
    etch_enclosure_start(&by, seconds->is_quick);
    etch_enclosure_decimal(&by, *factor);
    etch_enclosure_mul(seconds, seconds, &by);
    etch_enclosure_end(&by);
}

/* Picoseconds of a formula, times the factor of a stack. */
static const char *evaluate(const timing *t, timing_formula *formula, const etch_decimal *factor,
                            etch_enclosure *ps)
{
    const char *why = formula(t, ps);
    if (why)
        return why;
    multiply(ps, factor);
    multiply(ps, &(etch_decimal){1, 12});
    return NULL;
}

static const char *find_time(const timing *t, timing_formula *formula, const etch_decimal *factor,
                             etch_picoseconds *out)
{
    etch_enclosure ps;
    etch_enclosure_start(&ps, true);
    const char *why = evaluate(t, formula, factor, &ps);
    const bool is_told = !why && round_quickly(&ps, out);
    etch_enclosure_end(&ps);
    if (why || is_told)
        return why;
    etch_enclosure_start(&ps, false);
    why = evaluate(t, formula, factor, &ps);
    if (!why && !round_time(&ps, out))
        why = "one node of the step takes a day or more";
    etch_enclosure_end(&ps);
    mpfr_free_cache(); /* of this thread: constants that powers are made of */
    return why;
}

/* amount/rate */
static void ratio(etch_enclosure *out, uint64_t amount, etch_decimal rate)
{
    etch_enclosure divisor;
    etch_enclosure_start(&divisor, out->is_quick);
    etch_enclosure_count(out, amount);
    etch_enclosure_decimal(&divisor, rate);
    etch_enclosure_div(out, out, &divisor);
    etch_enclosure_end(&divisor);
}

/* ---- computations -------------------------------------------------------------------------------------- */

/* The line that says the numbers of a kind; NULL: none does. */
static const etch_fitted *line_for(const etch_device *device, etch_kernel_kind kind)
{
    const etch_fitted *own = &device->fits[kind], *products = &device->fits[ETCH_KERNEL_PRODUCT];
    return own->given ? own : products->given ? products : NULL;
}

const char *etch_device_stands_in(const etch_device *device, etch_kernel_kind kind)
{
    const bool products = kind == ETCH_KERNEL_PRODUCT || kind == ETCH_KERNEL_GROUPED;
    if (device->fits[kind].given || (products && device->fits[ETCH_KERNEL_SYSTOLIC].given))
        return NULL;
    return line_for(device, kind) ? "those of products"
                                  : "those of FLOP at the peak or of bytes at the bandwidth, the longer ones";
}

/* Products in f32 run on what runs all else, where they have no peak of their own. */
static const char *rate_of(etch_arena *arena, const etch_device *device, const char *dtype,
                           etch_decimal *rate)
{
    const etch_peak *peak = etch_device_peak(device, dtype);
    if (peak)
        *rate = peak->rate;
    else if (strcmp(dtype, etch_dtype_name(ETCH_F32)) == 0 && device->other.digits != 0)
        *rate = device->other;
    else
        return etch_text(arena, "the device '%s' has no peak for products of %s", device->name, dtype);
    return NULL;
}

/* o + Q/(B m); of products these two numbers of their line */
static void time_moves(const etch_device *device, const etch_fitted *line, etch_enclosure *bytes,
                       etch_enclosure *out)
{
    etch_enclosure number;
    const bool own = device->fits[ETCH_KERNEL_ELEMENTWISE].given;
    etch_enclosure_start(&number, out->is_quick);
    etch_enclosure_decimal(&number, line->at[own ? ELEMENTWISE_MEMORY : MEMORY]);
    etch_enclosure_div(out, bytes, &number);
    etch_enclosure_decimal(&number, line->at[OVERHEAD]);
    etch_enclosure_add(out, out, &number);
    etch_enclosure_end(&number);
}

/* On the array of the device, no faster than its bytes are moved; false: it has none, or the product no
 * sides. */
static bool time_on_array(const etch_device *device, const etch_computation *c, etch_enclosure *bytes,
                          etch_enclosure *out)
{
    const etch_fitted *line = &device->fits[ETCH_KERNEL_SYSTOLIC];
    const etch_kernel_call call = {.kind = ETCH_KERNEL_SYSTOLIC, .m = c->m, .n = c->n, .k = c->k};
    etch_enclosure number;
    uint64_t cycles;
    if (!line->given || device->clock.digits == 0 || !etch_kernel_cycles(device, &call, &cycles) ||
        __builtin_mul_overflow(cycles, c->batch, &cycles))
        return false;
    etch_enclosure_start(&number, out->is_quick);
    etch_enclosure_count(out, cycles);
    etch_enclosure_decimal(&number, device->clock);
    etch_enclosure_div(out, out, &number);
    etch_enclosure_decimal(&number, line->at[REACH]);
    etch_enclosure_div(out, out, &number);
    etch_enclosure_decimal(&number, line->at[OVERHEAD]);
    etch_enclosure_add(out, out, &number);
    etch_enclosure_max(out, out, bytes);
    etch_enclosure_end(&number);
    return true;
}

static const char *time_kernel(const timing *t, etch_enclosure bare[2], etch_enclosure *out)
{
    const etch_device *device = t->device;
    const etch_computation *c = t->computation;
    const bool moves = c->kind == ETCH_KERNEL_ELEMENTWISE;
    const etch_fitted *line = line_for(device, c->kind);
    const bool own = device->fits[c->kind].given;
    etch_decimal rate = {0};
    const char *why = moves ? NULL : rate_of(t->arena, device, c->dtype, &rate);
    if (!why && device->bandwidth.digits == 0)
        why = etch_text(t->arena, "the device '%s' has no bandwidth", device->name);
    if (why)
        return why;
    ratio(&bare[1], c->bytes, device->bandwidth);
    if ((c->kind == ETCH_KERNEL_PRODUCT || c->kind == ETCH_KERNEL_GROUPED) &&
        time_on_array(device, c, &bare[1], out))
        return NULL;
    if (moves)
        etch_enclosure_count(&bare[0], 0);
    else
        ratio(&bare[0], c->flop, rate);
    if (!line) {
        etch_enclosure_max(out, &bare[0], &bare[1]);
    } else if (moves) {
        time_moves(device, line, &bare[1], out);
    } else {
        const etch_machine machine = {.device = device};
        const etch_kernel_call call = {.kind = own ? c->kind : ETCH_KERNEL_PRODUCT,
                                       .dtype = c->dtype,
                                       .keys = c->keys,
                                       .backward = c->backward};
        return etch_kernel_formula(&machine, &call, line, bare, out);
    }
    return NULL;
}

static const char *time_computation(const timing *t, etch_enclosure *out)
{
    etch_enclosure bare[2];
    etch_enclosure_start(&bare[0], out->is_quick);
    etch_enclosure_start(&bare[1], out->is_quick);
    const char *why = time_kernel(t, bare, out);
    etch_enclosure_end(&bare[0]);
    etch_enclosure_end(&bare[1]);
    if (!why)
        multiply(out, t->slow);
    return why;
}

const char *etch_computation_time(etch_arena *arena, const etch_device *device, const etch_stack *stack,
                                  const etch_decimal *slow, const etch_computation *computation,
                                  etch_picoseconds *out)
{
    const timing t = {.arena = arena, .device = device, .computation = computation, .slow = slow};
    const bool attends = computation->kind == ETCH_KERNEL_ATTENTION;
    return find_time(&t, time_computation, !stack ? NULL : attends ? &stack->attention : &stack->all, out);
}

/* ---- communication ------------------------------------------------------------------------------------- */

/* latency steps + wire/W of a level without a line of its own. */
static void time_plain(const etch_level *level, uint64_t steps, const etch_enclosure *wire,
                       etch_enclosure *out)
{
    etch_enclosure number;
    etch_enclosure_start(&number, out->is_quick);
    etch_level_rate(level, &number);
    etch_enclosure_div(out, wire, &number);
    etch_enclosure_decimal(&number, level->latency);
    etch_enclosure_scale(&number, steps);
    etch_enclosure_add(out, out, &number);
    etch_enclosure_end(&number);
}

/* Of the level's line: seconds that `kernel` takes; of a message, a collective of two ranks that sends half
 * of its buffer. */
static void time_fitted(const etch_level *level, const etch_kernel_call *kernel, etch_enclosure *out)
{
    const etch_machine machine = {.level = level};
    etch_enclosure bare[2];
    etch_enclosure_start(&bare[0], out->is_quick);
    etch_enclosure_start(&bare[1], out->is_quick);
    etch_enclosure_count(&bare[0], 0);
    etch_enclosure_count(&bare[1], 0);
    (void)etch_kernel_formula(&machine, kernel, &level->fit, bare, out); /* a collective has a value */
    etch_enclosure_end(&bare[0]);
    etch_enclosure_end(&bare[1]);
}

static const char *check_level(etch_arena *arena, const etch_level *level)
{
    return level->bandwidth.digits ? NULL : etch_text(arena, "the level '%s' has no bandwidth", level->name);
}

static const char *check_passes(etch_arena *arena, const etch_device *device)
{
    const bool moves = device->passes.digits == 0 || device->bandwidth.digits != 0;
    return moves ? NULL : etch_text(arena, "the device '%s' has no bandwidth", device->name);
}

/* Of a reduction: what each rank receives to add is gone through in the memory so many times. */
static void add_passes(const etch_device *device, etch_node_collective op, etch_enclosure *received,
                       etch_enclosure *out)
{
    etch_enclosure number;
    if (device->passes.digits == 0 || (op != ETCH_NODE_ALL_REDUCE && op != ETCH_NODE_REDUCE_SCATTER))
        return;
    etch_enclosure_start(&number, out->is_quick);
    etch_enclosure_decimal(&number, device->passes);
    etch_enclosure_mul(received, received, &number);
    etch_enclosure_decimal(&number, device->bandwidth);
    etch_enclosure_div(received, received, &number);
    etch_enclosure_add(out, out, received);
    etch_enclosure_end(&number);
}

/* `ranks` of them on one level; what each sends is (ranks - 1)/ranks of the buffer. */
static void time_on_level(const etch_device *device, const etch_level *level, etch_node_collective op,
                          uint64_t ranks, uint64_t bytes, etch_enclosure *out)
{
    const etch_kernel_call kernel = {
        .kind = ETCH_KERNEL_COLLECTIVE, .op = op, .ranks = ranks, .bytes = bytes};
    if (level->fit.given) {
        time_fitted(level, &kernel, out);
        return;
    }
    const uint64_t times = op == ETCH_NODE_ALL_REDUCE ? 2 : 1;
    etch_enclosure share, wire;
    etch_enclosure_start(&share, out->is_quick);
    etch_enclosure_start(&wire, out->is_quick);
    etch_enclosure_count(&share, bytes);
    etch_enclosure_scale(&share, ranks - 1);
    etch_enclosure_count(&wire, ranks);
    etch_enclosure_div(&share, &share, &wire);
    etch_enclosure_count(&wire, times);
    etch_enclosure_mul(&wire, &wire, &share);
    time_plain(level, times * (ranks - 1), &wire, out);
    add_passes(device, op, &share, out);
    etch_enclosure_end(&share);
    etch_enclosure_end(&wire);
}

/* Bytes of the buffer on a level: what the levels inside have left to it, rounded up. Of an all-to-all what
 * is for ranks that far away or nearer. */
static uint64_t bytes_on(etch_node_collective op, uint64_t bytes, uint64_t inside, uint64_t here,
                         uint64_t all)
{
    __extension__ typedef unsigned __int128 wide;
    if (op == ETCH_NODE_ALL_TO_ALL)
        return (uint64_t)(((wide)bytes * inside * here + all - 1) / all);
    return bytes / inside + (bytes % inside != 0);
}

static const char *time_collective(const timing *t, etch_enclosure *sum)
{
    const etch_cluster *cluster = t->cluster;
    const char *why = check_passes(t->arena, cluster->device);
    etch_enclosure part;
    uint64_t inside = 1, all = 1;
    etch_enclosure_start(&part, sum->is_quick);
    etch_enclosure_count(sum, 0);
    for (uint32_t l = 0; l < cluster->levels.count; l++)
        all *= t->spread[l];
    for (uint32_t l = 0; !why && l < cluster->levels.count; inside *= t->spread[l++]) {
        const etch_level *level = &cluster->levels.at[l];
        if (t->spread[l] < 2)
            continue;
        why = check_level(t->arena, level);
        if (why)
            continue;
        const uint64_t here = bytes_on(t->op, t->bytes, inside, t->spread[l], all);
        time_on_level(cluster->device, level, t->op, t->spread[l], here, &part);
        etch_enclosure_add(sum, sum, &part);
    }
    etch_enclosure_end(&part);
    return why;
}

const char *etch_collective_time(etch_arena *arena, const etch_cluster *cluster, const etch_stack *stack,
                                 etch_node_collective op, uint64_t bytes, const uint32_t *spread,
                                 etch_picoseconds *out)
{
    const timing t = {.arena = arena, .cluster = cluster, .op = op, .bytes = bytes, .spread = spread};
    return find_time(&t, time_collective, stack ? &stack->all : NULL, out);
}

static const char *time_message(const timing *t, etch_enclosure *seconds)
{
    const etch_level *level = &t->cluster->levels.at[t->level];
    etch_enclosure wire;
    const char *why = check_level(t->arena, level);
    etch_enclosure_start(&wire, seconds->is_quick);
    etch_enclosure_count(&wire, t->bytes);
    if (!why && level->fit.given) {
        const etch_kernel_call kernel = {
            .kind = ETCH_KERNEL_COLLECTIVE, .op = ETCH_NODE_ALL_GATHER, .ranks = 2, .bytes = 2 * t->bytes};
        time_fitted(level, &kernel, seconds);
    } else if (!why) {
        time_plain(level, 1, &wire, seconds);
    }
    etch_enclosure_end(&wire);
    return why;
}

const char *etch_message_time(etch_arena *arena, const etch_cluster *cluster, const etch_stack *stack,
                              uint32_t level, uint64_t bytes, etch_picoseconds *out)
{
    const timing t = {.arena = arena, .cluster = cluster, .level = level, .bytes = bytes};
    return find_time(&t, time_message, stack ? &stack->all : NULL, out);
}

static const char *time_host(const timing *t, etch_enclosure *seconds)
{
    if (t->device->host.digits == 0)
        return etch_text(t->arena,
                         "the device '%s' has no way to the memory of its host: write its bytes a second, as "
                         "host = 64 GB/s",
                         t->device->name);
    ratio(seconds, t->bytes, t->device->host);
    return NULL;
}

const char *etch_host_time(etch_arena *arena, const etch_device *device, const etch_stack *stack,
                           uint64_t bytes, etch_picoseconds *out)
{
    const timing t = {.arena = arena, .device = device, .bytes = bytes};
    return find_time(&t, time_host, stack ? &stack->all : NULL, out);
}
