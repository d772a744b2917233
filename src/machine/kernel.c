/* How long a kernel takes: the formulas of docs/time.md, in intervals. */
#include <string.h>

#include "graph/graph.h"
#include "machine/machine_int.h"

enum {
    OVERHEAD = 0,
    REACH = 1,
    MEMORY = 2,
    NORM = 3,
    RAMP = 2,
    BACKWARD = 3,
    STEP = 1,
    WIRE = 2,
    REDUCE = 4
};

/* ---- what a kernel does -------------------------------------------------------------------------------- */

const etch_peak *etch_device_peak(const etch_device *device, const char *dtype)
{
    for (uint32_t i = 0; dtype && i < device->peaks.count; i++)
        if (strcmp(device->peaks.at[i].dtype, dtype) == 0)
            return &device->peaks.at[i];
    return NULL;
}

static bool is_attention(const etch_kernel_call *kernel)
{
    return kernel->kind == ETCH_KERNEL_ATTENTION;
}

/* Pairs of a query and a key that are computed. Each factor is below 2^32. */
static uint64_t pairs_of(const etch_kernel_call *kernel)
{
    const uint64_t q = kernel->queries, s = kernel->keys;
    return kernel->causal && s >= q ? q * (s - q) + q * (q + 1) / 2 : q * s;
}

static void flop_of(etch_enclosure *out, const etch_kernel_call *kernel)
{
    if (!is_attention(kernel)) {
        etch_enclosure_count(out, 2);
        etch_enclosure_scale(out, kernel->m);
        etch_enclosure_scale(out, kernel->n);
        etch_enclosure_scale(out, kernel->k);
        return;
    }
    etch_enclosure_count(
        out, kernel->backward ? 5 : 2); /* backward computes five products where forward has two */
    etch_enclosure_scale(out, kernel->batch);
    etch_enclosure_scale(out, kernel->heads);
    etch_enclosure_scale(out, kernel->head_dim + kernel->value_dim);
    etch_enclosure_scale(out, pairs_of(kernel));
}

static void add_product(etch_enclosure *sum, uint64_t a, uint64_t b, uint64_t c)
{
    etch_enclosure part;
    etch_enclosure_start(&part, sum->is_quick);
    etch_enclosure_count(&part, a);
    etch_enclosure_scale(&part, b);
    etch_enclosure_scale(&part, c);
    etch_enclosure_add(sum, sum, &part);
    etch_enclosure_end(&part);
}

/* Bytes that have to move: operands once, results once. Results have at least 2 bytes. */
static void bytes_of(etch_enclosure *out, const etch_kernel_call *kernel)
{
    if (kernel->kind == ETCH_KERNEL_ELEMENTWISE) {
        etch_enclosure_count(out, kernel->bytes);
        return;
    }
    const uint64_t size = etch_dtype_bytes(etch_dtype_of(kernel->dtype));
    const uint64_t least = size < 2 ? 2 : size;
    const uint64_t result = kernel->result ? etch_dtype_bytes(etch_dtype_of(kernel->result)) : least;
    etch_enclosure_count(out, 0);
    if (is_attention(kernel)) {
        const uint64_t times = kernel->backward ? 2 : 1, dims = kernel->head_dim + kernel->value_dim;
        add_product(out, times * size * kernel->batch * kernel->queries, kernel->heads, dims);
        add_product(out, times * size * kernel->batch * kernel->keys, kernel->kv_heads, dims);
        return;
    }
    const uint64_t groups = kernel->kind == ETCH_KERNEL_GROUPED ? kernel->groups : 1;
    const bool weights = kernel->kind == ETCH_KERNEL_GROUPED && kernel->weights;
    add_product(out, size, kernel->m, kernel->k);
    add_product(out, (weights ? result : size) * groups, kernel->k, kernel->n);
    add_product(out, weights ? size : result, kernel->m, kernel->n);
}

/* ---- formulas ------------------------------------------------------------------------------------------ */

/* What a formula is made of. */
typedef struct parts {
    /* seconds at the peak, and at the bandwidth */
    etch_enclosure work, bytes;
    /* the numbers that were fitted */
    etch_enclosure at[ETCH_FIT_NUMBERS];
    etch_enclosure one, other;
} parts;

static void parts_start(parts *p, bool is_quick)
{
    etch_enclosure_start(&p->work, is_quick);
    etch_enclosure_start(&p->bytes, is_quick);
    etch_enclosure_start(&p->one, is_quick);
    etch_enclosure_start(&p->other, is_quick);
    for (int i = 0; i < ETCH_FIT_NUMBERS; i++)
        etch_enclosure_start(&p->at[i], is_quick);
}

static void parts_end(parts *p)
{
    etch_enclosure_end(&p->work);
    etch_enclosure_end(&p->bytes);
    etch_enclosure_end(&p->one);
    etch_enclosure_end(&p->other);
    for (int i = 0; i < ETCH_FIT_NUMBERS; i++)
        etch_enclosure_end(&p->at[i]);
}

/* o + ((F/(P e))^p + (Q/(B m))^p)^(1/p) */
static void time_product(parts *p, etch_enclosure *out)
{
    etch_enclosure_div(&p->work, &p->work, &p->at[REACH]);
    etch_enclosure_div(&p->bytes, &p->bytes, &p->at[MEMORY]);
    etch_enclosure_norm(out, &p->work, &p->bytes, &p->at[NORM]);
    etch_enclosure_add(out, out, &p->at[OVERHEAD]);
}

/* o + max(F (1 + s0/s)/(P e), Q/B), backward at its part of the rate */
static void time_attention(parts *p, const etch_kernel_call *kernel, etch_enclosure *out)
{
    etch_enclosure_count(&p->one, kernel->keys);
    etch_enclosure_div(&p->one, &p->at[RAMP], &p->one);
    etch_enclosure_count(&p->other, 1);
    etch_enclosure_add(&p->one, &p->one, &p->other);
    etch_enclosure_mul(&p->work, &p->work, &p->one);
    etch_enclosure_div(&p->work, &p->work, &p->at[REACH]);
    if (kernel->backward)
        etch_enclosure_div(&p->work, &p->work, &p->at[BACKWARD]);
    etch_enclosure_max(out, &p->work, &p->bytes);
    etch_enclosure_add(out, out, &p->at[OVERHEAD]);
}

/* o + Q/(B m) */
static void time_elementwise(parts *p, etch_enclosure *out)
{
    etch_enclosure_div(out, &p->bytes, &p->at[1]);
    etch_enclosure_add(out, out, &p->at[OVERHEAD]);
}

void etch_level_rate(const etch_level *level, etch_enclosure *out)
{
    etch_enclosure by;
    etch_enclosure_start(&by, out->is_quick);
    etch_enclosure_decimal(out, level->bandwidth);
    if (level->share > 1) {
        etch_enclosure_count(&by, level->share);
        etch_enclosure_div(out, out, &by);
    }
    if (level->oversubscribed.digits != 0) {
        etch_enclosure_decimal(&by, level->oversubscribed);
        etch_enclosure_div(out, out, &by);
    }
    etch_enclosure_end(&by);
}

double etch_level_rate_double(const etch_level *level)
{
    const double over = level->oversubscribed.digits ? etch_decimal_double(level->oversubscribed) : 1;
    return etch_decimal_double(level->bandwidth) / (level->share > 1 ? level->share : 1) / over;
}

static void wait_of(parts *p, uint64_t steps, etch_enclosure *out)
{
    etch_enclosure_count(out, steps);
    etch_enclosure_mul(out, out, &p->at[STEP]);
    etch_enclosure_add(out, out, &p->at[OVERHEAD]);
}

static bool is_all_reduce(const etch_kernel_call *kernel)
{
    return kernel->op == ETCH_NODE_ALL_REDUCE;
}

static bool is_reduced(const etch_level *level, const etch_kernel_call *kernel)
{
    return level->reduces && level->fit.at[REDUCE].digits != 0 && is_all_reduce(kernel) &&
           kernel->bytes >= ETCH_REDUCED_FROM && kernel->ranks >= ETCH_REDUCED_RANKS;
}

/* ((c + a steps)^q + (wire/(W e))^q)^(1/q), of the way through the ranks, and through a switch that adds up:
 * the faster one */
static void time_collective(parts *p, const etch_level *level, const etch_kernel_call *kernel,
                            etch_enclosure *out)
{
    const uint64_t times = is_all_reduce(kernel) ? 2 : 1, others = kernel->ranks - 1;
    etch_enclosure_count(&p->work, kernel->bytes);
    etch_enclosure_scale(&p->work, times * others);
    etch_enclosure_count(&p->other, kernel->ranks);
    etch_enclosure_div(&p->work, &p->work, &p->other);
    etch_level_rate(level, &p->other);
    etch_enclosure_div(&p->work, &p->work, &p->other);
    etch_enclosure_div(&p->work, &p->work, &p->at[WIRE]);
    wait_of(p, times * others, &p->one);
    etch_enclosure_norm(out, &p->one, &p->work, &p->at[NORM]);
    if (!is_reduced(level, kernel))
        return;
    etch_enclosure_count(&p->work, kernel->bytes);
    etch_enclosure_div(&p->work, &p->work, &p->other);
    etch_enclosure_div(&p->work, &p->work, &p->at[REDUCE]);
    wait_of(p, 2, &p->one);
    etch_enclosure_norm(&p->bytes, &p->one, &p->work, &p->at[NORM]);
    etch_enclosure_min(out, out, &p->bytes);
}

/* ---- systolic arrays ----------------------------------------------------------------------------------- */

/* False where it does not fit. */
static bool times(uint64_t a, uint64_t b, uint64_t *out)
{
    return !__builtin_mul_overflow(a, b, out);
}

static uint64_t folds(uint64_t size, uint32_t side)
{
    return size / side + (size % side != 0);
}

/* (fill + stream - 2) cycles for each fold of two dims of the product onto the array. */
static bool folded(uint64_t fill, uint64_t stream, uint64_t down, uint64_t across, uint64_t *cycles)
{
    uint64_t one;
    return !__builtin_add_overflow(fill, stream, &one) && times(one - 2, down, &one) &&
           times(one, across, cycles);
}

bool etch_kernel_cycles(const etch_device *device, const etch_kernel_call *kernel, uint64_t *cycles)
{
    const uint32_t r = device->rows, c = device->columns;
    if (r == 0 || c == 0 || kernel->m == 0 || kernel->n == 0 || kernel->k == 0)
        return false;
    const uint64_t fill = (uint64_t)r + c, deep = folds(kernel->k, r);
    uint64_t weight = 0, input = 0;
    bool fits;
    if (device->dataflow == ETCH_OUTPUT_STATIONARY) {
        fits = folded(fill, kernel->k, folds(kernel->m, r), folds(kernel->n, c), cycles);
    } else {
        const bool any = device->dataflow == ETCH_EITHER_STATIONARY;
        const bool weights = folded(fill + r, kernel->m, deep, folds(kernel->n, c), &weight);
        const bool inputs = folded(fill + r, kernel->n, deep, folds(kernel->m, c), &input);
        const bool by_weight =
            device->dataflow == ETCH_WEIGHT_STATIONARY || (any && weights && weight <= input);
        fits = any ? weights && inputs : by_weight ? weights : inputs;
        *cycles = fits ? (by_weight ? weight : input) : 0;
    }
    if (fits)
        --*cycles;
    return fits;
}

/* b + cycles/(clock e) */
static const char *time_systolic(parts *p, const etch_device *device, const etch_kernel_call *kernel,
                                 etch_enclosure *out)
{
    uint64_t cycles;
    if (device->rows == 0)
        return "the device has no array";
    if (!etch_kernel_cycles(device, kernel, &cycles))
        return "the product takes more cycles than fit in 64 bits";
    if (device->clock.digits == 0)
        return "the device has no clock";
    etch_enclosure_count(out, cycles);
    etch_enclosure_decimal(&p->other, device->clock);
    etch_enclosure_div(out, out, &p->other);
    etch_enclosure_div(out, out, &p->at[REACH]);
    etch_enclosure_add(out, out, &p->at[OVERHEAD]);
    return NULL;
}

/* ---- public functions ---------------------------------------------------------------------------------- */

static const etch_fitted *fit_for(const etch_machine *machine, const etch_kernel_call *kernel)
{
    if (kernel->kind == ETCH_KERNEL_COLLECTIVE)
        return machine->level ? &machine->level->fit : NULL;
    const etch_fitted *own = &machine->device->fits[kernel->kind];
    const bool grouped = kernel->kind == ETCH_KERNEL_GROUPED;
    return grouped && !own->given ? &machine->device->fits[ETCH_KERNEL_PRODUCT] : own;
}

const char *etch_kernel_lacks(etch_arena *arena, const etch_machine *machine, const etch_kernel_call *kernel)
{
    const etch_device *device = machine->device;
    switch (kernel->kind) {
    case ETCH_KERNEL_PRODUCT:
    case ETCH_KERNEL_GROUPED:
    case ETCH_KERNEL_ATTENTION:
        if (!etch_device_peak(device, kernel->dtype))
            return etch_text(arena, "the device '%s' has no peak for products of %s", device->name,
                             kernel->dtype ? kernel->dtype : "no dtype");
        break;
    case ETCH_KERNEL_COLLECTIVE:
        if (!machine->level)
            return "there is no cluster with a level for collectives";
        if (machine->level->bandwidth.digits == 0)
            return etch_text(arena, "the level '%s' has no bandwidth", machine->level->name);
        return kernel->ranks < 2 ? "a collective has two ranks or more" : NULL;
    case ETCH_KERNEL_SYSTOLIC:
        return NULL;
    case ETCH_KERNEL_ELEMENTWISE:
        break;
    default:
        return "there is no such kind of kernel";
    }
    if (device->bandwidth.digits == 0)
        return etch_text(arena, "the device '%s' has no bandwidth", device->name);
    return NULL;
}

void etch_kernel_bare(const etch_device *device, const etch_kernel_call *kernel, etch_enclosure *work,
                      etch_enclosure *bytes)
{
    etch_enclosure rate;
    etch_enclosure_start(&rate, bytes->is_quick);
    bytes_of(bytes, kernel);
    etch_enclosure_decimal(&rate, device->bandwidth);
    etch_enclosure_div(bytes, bytes, &rate);
    if (kernel->kind != ETCH_KERNEL_ELEMENTWISE) {
        flop_of(work, kernel);
        etch_enclosure_decimal(&rate, etch_device_peak(device, kernel->dtype)->rate);
        etch_enclosure_div(work, work, &rate);
    }
    etch_enclosure_end(&rate);
}

static const char *time_of(parts *p, const etch_machine *machine, const etch_kernel_call *kernel,
                           etch_enclosure *out)
{
    switch (kernel->kind) {
    case ETCH_KERNEL_ATTENTION:
        time_attention(p, kernel, out);
        return NULL;
    case ETCH_KERNEL_ELEMENTWISE:
        time_elementwise(p, out);
        return NULL;
    case ETCH_KERNEL_COLLECTIVE:
        time_collective(p, machine->level, kernel, out);
        return NULL;
    case ETCH_KERNEL_SYSTOLIC:
        return time_systolic(p, machine->device, kernel, out);
    default:
        time_product(p, out);
        return NULL;
    }
}

const char *etch_kernel_formula(const etch_machine *machine, const etch_kernel_call *kernel,
                                const etch_fitted *fit, const etch_enclosure bare[2], etch_enclosure *out)
{
    parts p;
    parts_start(&p, out->is_quick);
    for (int i = 0; i < ETCH_FIT_NUMBERS; i++)
        etch_enclosure_decimal(&p.at[i], fit->at[i]);
    etch_enclosure_max(&p.work, &bare[0], &bare[0]);
    etch_enclosure_max(&p.bytes, &bare[1], &bare[1]);
    const char *why = time_of(&p, machine, kernel, out);
    parts_end(&p);
    return why;
}

const char *etch_kernel_time(etch_arena *arena, const etch_machine *machine, const etch_kernel_call *kernel,
                             etch_seconds *out)
{
    const char *why = etch_kernel_lacks(arena, machine, kernel);
    const etch_fitted *fit = why ? NULL : fit_for(machine, kernel);
    if (!why && !fit->given)
        why = etch_text(arena, "the machine has no line `fit %s`", etch_kernel_kind_name(kernel->kind));
    if (why)
        return why;
    etch_enclosure bare[2], result;
    for (int i = 0; i < 2; i++)
        etch_enclosure_start(&bare[i], false);
    etch_enclosure_start(&result, false);
    if (kernel->kind != ETCH_KERNEL_COLLECTIVE && kernel->kind != ETCH_KERNEL_SYSTOLIC)
        etch_kernel_bare(machine->device, kernel, &bare[0], &bare[1]);
    why = etch_kernel_formula(machine, kernel, fit, bare, &result);
    if (!why)
        *out = etch_enclosure_seconds(&result);
    etch_enclosure_end(&result);
    for (int i = 0; i < 2; i++)
        etch_enclosure_end(&bare[i]);
    mpfr_free_cache(); /* of this thread: constants that powers are made of */
    return why;
}
