/* What the files of machine share: intervals of numbers. */
#ifndef ETCH_MACHINE_MACHINE_INT_H
#define ETCH_MACHINE_MACHINE_INT_H

#include <stdint.h>
#define MPFR_USE_INTMAX_T /* mpfr_set_uj */
#include <mpfr.h>

#include "machine/machine.h"

/* low <= value <= high, none of them negative. Every operation rounds outwards. Quick ones have ends that are
 * doubles, which nearly always tell the whole picosecond that a time is rounded to; the others have 128 bits.
 * The operands of an operation and its result are alike. */
typedef struct etch_enclosure {
    bool is_quick;
    /* of quick ones; `above` may be infinite */
    double below, above;
    /* of all others */
    mpfr_t low, high;
} etch_enclosure;

void etch_enclosure_start(etch_enclosure *range, bool is_quick);
void etch_enclosure_end(etch_enclosure *range);
void etch_enclosure_decimal(etch_enclosure *out, etch_decimal value);
void etch_enclosure_count(etch_enclosure *out, uint64_t value);
/* The result may be an operand. */
void etch_enclosure_add(etch_enclosure *out, const etch_enclosure *a, const etch_enclosure *b);
void etch_enclosure_mul(etch_enclosure *out, const etch_enclosure *a, const etch_enclosure *b);
void etch_enclosure_div(etch_enclosure *out, const etch_enclosure *a, const etch_enclosure *b);
void etch_enclosure_scale(etch_enclosure *out, uint64_t by);
/* (a^p + b^p)^(1/p) */
void etch_enclosure_norm(etch_enclosure *out, const etch_enclosure *a, const etch_enclosure *b,
                         const etch_enclosure *p);
/* The larger one, and the smaller one. */
void etch_enclosure_max(etch_enclosure *out, const etch_enclosure *a, const etch_enclosure *b);
void etch_enclosure_min(etch_enclosure *out, const etch_enclosure *a, const etch_enclosure *b);
etch_seconds etch_enclosure_seconds(const etch_enclosure *range);

/* What a device has of the bandwidth of the level, which has one. */
void etch_level_rate(const etch_level *level, etch_enclosure *out);
/* The same, nearly. */
double etch_level_rate_double(const etch_level *level);

/* An all-reduce of so many bytes or more goes through a switch that reduces. */
#define ETCH_REDUCED_FROM ((uint64_t)64 << 20)
/* .. and of so many ranks. */
enum { ETCH_REDUCED_RANKS = 4 };

/* NULL, or what the machine lacks for the formula of the kernel, besides the numbers that are fitted. */
const char *etch_kernel_lacks(etch_arena *arena, const etch_machine *machine, const etch_kernel_call *kernel);
/* The formula of the kernel's kind with the numbers of `fit`; `bare`: seconds at the peak, and of the bytes
 * at the bandwidth, of kinds that have them. NULL, or why there is no value. */
const char *etch_kernel_formula(const etch_machine *machine, const etch_kernel_call *kernel,
                                const etch_fitted *fit, const etch_enclosure bare[2], etch_enclosure *out);
/* Seconds of the kernel at the peak of its dtype, and of its bytes at the bandwidth of the device; of
 * products, attention and elementwise kernels. */
void etch_kernel_bare(const etch_device *device, const etch_kernel_call *kernel, etch_enclosure *work,
                      etch_enclosure *bytes);

#endif
