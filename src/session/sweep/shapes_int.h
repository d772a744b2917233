/* Rows whose steps have one shape, and their times.
 *
 *     shapes.c     which shape the step of a row has
 *     shaped.c     times of rows that have one */
#ifndef ETCH_SESSION_SWEEP_SHAPES_INT_H
#define ETCH_SESSION_SWEEP_SHAPES_INT_H

#include "session/sweep/sweep_int.h"
#include "simulate/simulate.h"

/* Numbers of a task: bytes, FLOP, FLOP of products, keys, m, n, k, batch. */
enum { ETCH_SHAPE_NUMBERS = 8 };

/* Formulas, by number; UINT32_MAX: it has none. */
typedef struct etch_shape_numbers {
    uint32_t at[ETCH_SHAPE_NUMBERS];
} etch_shape_numbers;

typedef struct etch_flow_known {
    uint64_t microbatches;
    const etch_shape_flow *flow;
} etch_flow_known;

typedef struct etch_place_known {
    const etch_cluster *cluster;
    const uint32_t *sizes;
    const etch_shape_place *place;
} etch_place_known;

typedef struct etch_case_shape {
    /* its keys are there; else no row has it */
    bool is_known;
    /* NULL: rows that have it are run one by one */
    etch_step_shape *shape;
    const etch_step_form *form;
    const etch_job *job;
    /* kinds of products, 1 << etch_product_kind */
    unsigned kinds;
    /* what tells whether a row has it: formulas of guards, by axis of the mesh, and of microbatches */
    etch_case_program keys;
    uint32_t *guards, *mesh, microbatches;
    /* numbers of tasks */
    etch_case_program values;
    etch_shape_numbers *numbers;
    /* so many can be lowered */
    uint64_t most_microbatches;
    /* as far as rows have asked */
    ETCH_VEC(etch_flow_known) flows;
    ETCH_VEC(etch_place_known) places;
} etch_case_shape;

/* A row of a block, and what its step is of. */
typedef struct etch_row_shape {
    uint32_t row;
    etch_case_shape *shape;
    const etch_shape_flow *flow;
    const etch_shape_place *place;
    /* it is run by itself */
    bool is_left, is_timed;
    etch_step_time time;
    /* what its machine lacks; NULL: nothing */
    const char *lacks;
} etch_row_shape;

/* Finds the shapes of rows of one case, which are of one block. */
etch_status etch_case_sort_shapes(etch_sweep_block *block, etch_sweep_case *of, const etch_cluster *cluster,
                                  etch_row_shape *rows, uint32_t count);
/* Finds times of rows of a block, as far as their shapes tell them. */
etch_status etch_block_time_shapes(etch_sweep_block *block, unsigned threads, etch_row_shape *rows,
                                   uint32_t count);

#endif
