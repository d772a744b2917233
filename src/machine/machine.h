/* The header of machine: devices and clusters as numbers, how long a kernel takes on them, and the numbers of
 * a device found from measurements. Knows no syntax and no models.
 *
 * Numbers of machines are exact decimals in units of the SI: seconds, bytes, bytes a second, FLOP a second,
 * hertz. docs/time.md has the formulas, where they come from, and how far they are off. */
#ifndef ETCH_MACHINE_H
#define ETCH_MACHINE_H

#include "base/base.h"
#include "etch/time.h" /* etch_seconds, etch_kernel_call, etch_fitting */

/* ---- numbers and units --------------------------------------------------------------------------------- */

/* digits * 10^power, exactly; without zeros at its end, and 0 is 0 * 10^0. */
typedef struct etch_decimal {
    int64_t digits;
    int32_t power;
} etch_decimal;

/* What a number of a machine is of. */
typedef enum etch_dimension {
    ETCH_OF_NOTHING,
    ETCH_OF_TIME,
    ETCH_OF_BYTES,
    ETCH_OF_BYTES_A_SECOND,
    ETCH_OF_FLOP_A_SECOND,
    ETCH_OF_FREQUENCY,
    ETCH_DIMENSION_COUNT
} etch_dimension;

typedef struct etch_machine_unit {
    const char *name;
    etch_dimension dimension;
    /* in units of the SI: scale * 10^power */
    int32_t scale, power;
} etch_machine_unit;

/* The units that specs may use, NULL after the last. */
const etch_machine_unit *etch_machine_unit_at(uint32_t index);
/* "a time, as 20 us": for messages. */
const char *etch_dimension_text(etch_dimension dimension);

/* Takes zeros off the end of the digits. */
etch_decimal etch_decimal_of(int64_t digits, int32_t power);
/* The value, which is not negative, rounded to `places` significant digits. */
etch_decimal etch_decimal_round(double value, int places);
/* The nearest double; of what is fitted, and never of what is reported as exact. */
double etch_decimal_double(etch_decimal value);
/* Appends the number in the unit that specs are printed with: "2.9 us", "3350 GB/s", "989.4 TFLOP/s". */
void etch_decimal_print(etch_buf *out, etch_decimal value, etch_dimension dimension);

/* ---- devices and clusters ------------------------------------------------------------------------------ */

/* Numbers that were fitted to measurements, in the order of the row of ETCH_FITS. */
enum { ETCH_FIT_NUMBERS = 5 };
typedef struct etch_fitted {
    bool given;
    etch_decimal at[ETCH_FIT_NUMBERS];
} etch_fitted;

/* One number of a fit. */
typedef struct etch_fit_number {
    /* NULL: there are no more */
    const char *name;
    etch_dimension dimension;
    /* bounds, in units of the SI, between which it is looked for */
    double least, most;
    /* where looking for it begins: at two places, since what fits best is not always what is nearest */
    double begin[2];
    /* a machine may lack it */
    bool optional;
} etch_fit_number;

typedef struct etch_fit_row {
    const char *name;
    etch_fit_number numbers[ETCH_FIT_NUMBERS];
} etch_fit_row;

/* The numbers of a kind of kernel. */
const etch_fit_row *etch_fit_row_of(etch_kernel_kind kind);

typedef struct etch_peak {
    /* a dtype of the language */
    const char *dtype;
    etch_decimal rate;
} etch_peak;

typedef enum etch_dataflow {
    ETCH_WEIGHT_STATIONARY,
    ETCH_INPUT_STATIONARY,
    ETCH_OUTPUT_STATIONARY,
    /* of the first two the one that takes fewer cycles */
    ETCH_EITHER_STATIONARY,
    ETCH_DATAFLOW_COUNT
} etch_dataflow;
/* "weight", .. as specs say it; NULL for none. */
const char *etch_dataflow_name(etch_dataflow dataflow);

typedef struct etch_device {
    const char *name;
    ETCH_VEC(etch_peak) peaks;
    /* of what is no product; 0 where it is not given, as in what follows */
    etch_decimal other;
    etch_decimal memory, bandwidth;
    /* of the way to the memory of the host, in each direction */
    etch_decimal host;
    /* how many times as long kernels take while a collective runs on the device, 1 to 100; 0: they do not
     * take longer */
    etch_decimal slowdown;
    /* how many times the memory is gone through to add what a step of a reduction has received, 1 to 100; 0:
     * adding takes no time. Of levels whose collectives were not measured */
    etch_decimal passes;
    /* a systolic array: its sides, 0 without one */
    uint32_t rows, columns;
    etch_dataflow dataflow;
    etch_decimal clock;
    /* all but collectives, which are of a level */
    etch_fitted fits[ETCH_KERNEL_KINDS];
} etch_device;

typedef enum etch_topology {
    ETCH_SWITCH,
    ETCH_RING,
    ETCH_FULL,
    ETCH_TORUS,
    ETCH_TOPOLOGY_COUNT
} etch_topology;
/* "switch", .. as specs say it; NULL for none. */
const char *etch_topology_name(etch_topology topology);

enum { ETCH_LEVEL_SIDES = 6 };

typedef struct etch_level {
    const char *name;
    etch_topology kind;
    /* `side_count` sides of a torus, else one number; 0: as many as there are */
    uint32_t sides[ETCH_LEVEL_SIDES], side_count;
    /* so many of these take part in steps; 0: all */
    uint32_t use;
    /* so many devices, which follow each other, have one port, and send at once; 0: each has its own */
    uint32_t share;
    /* all of them together send so many times what the level carries, 1 to 100; 0: as much */
    etch_decimal oversubscribed;
    /* of a device, in one direction; 0 where it is not given */
    etch_decimal bandwidth;
    etch_decimal latency;
    /* does the switch add up what it is sent? */
    bool reduces;
    etch_fitted fit;
} etch_level;

/* What runs on a cluster: factors that measured steps have and kernels do not tell. */
typedef struct etch_stack {
    const char *name;
    /* how many times as long kernels take: of attention, and all else, collectives and messages too */
    etch_decimal attention, all;
    /* the host launches a kernel in so many whole picoseconds */
    uint64_t launch;
} etch_stack;

typedef struct etch_cluster {
    const char *name;
    const etch_device *device;
    /* does a send end when its bytes have arrived, whether its receive is posted or not? */
    bool eager;
    /* innermost first */
    ETCH_VEC(etch_level) levels;
    ETCH_VEC(etch_stack) stacks;
} etch_cluster;
/* NULL: it has none of that name. */
const etch_stack *etch_cluster_stack(const etch_cluster *cluster, const char *name);

/* Appends a device, or a cluster, as specs have it. */
void etch_device_print(etch_buf *out, const etch_device *device);
void etch_cluster_print(etch_buf *out, const etch_cluster *cluster);
/* Appends "fit products overhead = 2.9 us, ...". */
void etch_fitted_print(etch_buf *out, etch_kernel_kind kind, const etch_fitted *fitted);

/* ---- kernels ------------------------------------------------------------------------------------------- */

/* What a kernel is asked of: a device, and of collectives a level too. */
typedef struct etch_machine {
    const etch_device *device;
    /* may be NULL */
    const etch_level *level;
} etch_machine;

/* An exact interval around the time that the formula gives. NULL; or what is missing, as a text for people:
 * "the device has no peak for products of f8". */
const char *etch_kernel_time(etch_arena *arena, const etch_machine *machine, const etch_kernel_call *kernel,
                             etch_seconds *out);
/* The cycles of a product on the systolic array of the device. False where there is no array or they do not
 * fit in 64 bits. */
bool etch_kernel_cycles(const etch_device *device, const etch_kernel_call *kernel, uint64_t *cycles);

/* ---- what a step runs ---------------------------------------------------------------------------------- */

/* Whole picoseconds; the value of the formula is at most `error` away. */
typedef struct etch_picoseconds {
    uint64_t count, error;
} etch_picoseconds;

/* One node of a step that computes. */
typedef struct etch_computation {
    /* products, grouped, attention or elementwise */
    etch_kernel_kind kind;
    /* of the operands of products and of attention */
    const char *dtype;
    bool backward;
    /* FLOP of its products; bytes that it reads and writes; keys of attention */
    uint64_t flop, bytes, keys;
    /* of products: `batch` times m and k by k and n; 0: not known */
    uint64_t m, n, k, batch;
} etch_computation;

/* The peak of products of a dtype; NULL: the device has none. */
const etch_peak *etch_device_peak(const etch_device *device, const char *dtype);
/* NULL where the device has a line of its own for the kind; else what stands in, for people: "those of
 * products". */
const char *etch_device_stands_in(const etch_device *device, etch_kernel_kind kind);
/* Each sets `out` and returns NULL; or what is missing. The formulas' seconds are those of the `stack`, which
 * may be NULL; a device that is `slow`, or NULL, takes so many times as long. */
const char *etch_computation_time(etch_arena *arena, const etch_device *device, const etch_stack *stack,
                                  const etch_decimal *slow, const etch_computation *computation,
                                  etch_picoseconds *out);
/* A collective whose largest buffer is `bytes`, among ranks that lie on the levels of the cluster as `spread`
 * says: so many on each inside one on the next, at most. The sum over the levels, innermost first. */
const char *etch_collective_time(etch_arena *arena, const etch_cluster *cluster, const etch_stack *stack,
                                 etch_node_collective op, uint64_t bytes, const uint32_t *spread,
                                 etch_picoseconds *out);
/* A message between two ranks that are together on the level, and on none inside it. */
const char *etch_message_time(etch_arena *arena, const etch_cluster *cluster, const etch_stack *stack,
                              uint32_t level, uint64_t bytes, etch_picoseconds *out);

/* Bytes between the memories of the device and its host, in one direction. */
const char *etch_host_time(etch_arena *arena, const etch_device *device, const etch_stack *stack,
                           uint64_t bytes, etch_picoseconds *out);

/* ---- measurements -------------------------------------------------------------------------------------- */

/* One row of a table. */
typedef struct etch_measured {
    etch_kernel_call kernel;
    /* from 1, of the file */
    uint32_t line;
    double seconds;
    /* may be fitted: the table does not say otherwise */
    bool calibrates;
} etch_measured;

typedef ETCH_VEC(etch_measured) etch_measurements;

/* Reads a table of kernels and their microseconds, tab or comma between its columns, which its first line
 * names: docs/time.md lists them. Rows of another machine than `machine` are left out; lines that begin with
 * # are none. What is wrong goes to `diags`; false after an error. */
bool etch_measurements_read(etch_arena *arena, const etch_source *source, const etch_device *device,
                            etch_diags *diags, etch_kernel_kind *kind, etch_measurements *out);

/* Finds the numbers of the kind that fit best: least squares of the logarithms, over what calibrates and is
 * large enough, but for every third of these rows. ETCH_EINPUT with `*why` set where there are too few rows
 * or the device lacks what the formula needs; ETCH_ENOMEM. */
etch_status etch_fit_find(etch_arena *arena, const etch_machine *machine, etch_kernel_kind kind,
                          const etch_measurements *rows, etch_fitted *out, const char **why) ETCH_MUST_CHECK;
/* How rows take part in a fit, as a list by row. */
const etch_fit_part *etch_fit_parts(etch_arena *arena, const etch_measurements *rows);

/* ---- measured steps ------------------------------------------------------------------------------------ */

/* A row of a table of steps. What has no column, or an empty cell, is NULL. */
typedef struct etch_measured_step {
    const char *spec, *config, *plan, *run, *sets, *granularity;
    double seconds;
    /* from 1, of the file; the cell of its spec */
    uint32_t line;
    etch_span span;
    bool calibrates;
} etch_measured_step;

typedef ETCH_VEC(etch_measured_step) etch_measured_steps;

/* Does the table have the columns of steps? Reports nothing. */
bool etch_is_table_of_steps(etch_arena *arena, const etch_source *source);
/* As etch_measurements_read; rows of another stack are left out, too. */
bool etch_measured_steps_read(etch_arena *arena, const etch_source *source, const etch_device *device,
                              const char *stack, etch_diags *diags, etch_measured_steps *out);

/* Steps that were measured and can be run. */
typedef struct etch_step_runs {
    uint32_t count;
    /* in seconds, by row */
    const double *measured;
    /* fills the seconds, by row, that the rows of `which` take with a stack */
    etch_status (*run)(void *data, const etch_stack *stack, const bool *which, double *seconds);
    void *data;
} etch_step_runs;

/* The factors `all` and `attention` for which the squares of the logarithms of measured over run are least,
 * of the rows of `which`, to 12 digits. `stack` has those to begin with. Not `*apart`: the rows do not tell
 * attention from all else, and its factor stays as it was. A status of `run` that is not ETCH_OK ends it. */
etch_status etch_factors_find(etch_arena *arena, const etch_step_runs *runs, const bool *which,
                              etch_stack *stack, bool *apart) ETCH_MUST_CHECK;
/* Appends "stack NAME { all = 1.1, attention = 1 }". */
void etch_stack_print_line(etch_buf *out, const etch_stack *stack);

#endif
