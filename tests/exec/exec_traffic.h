/* Bytes that kernels of a rank read and write, counted on a run: what enters a kernel's set of steps is read
 * once, what leaves it is written once. Which steps are a kernel is the product's answer; who reads what, and
 * how many elements that are, is seen. */
#ifndef ETCH_TEST_EXEC_TRAFFIC_H
#define ETCH_TEST_EXEC_TRAFFIC_H

#include "exec_run.h"

/* What a row moves of an operand or a result that it does not move as a whole: a convention of the row. */
typedef struct exec_convention {
    const char *row;
    bool reads_rows;  /* of the first operand as many elements as the result has: rows by occurrence */
    bool writes_rows; /* of the first result as many elements as the first operand has */
    const char *why;
} exec_convention;

/* Ends with a row that is NULL. */
extern const exec_convention exec_conventions[];

/* How often a rank runs an attention whose blocks go round, and adds gradients to those that have come. */
typedef struct exec_rounds {
    uint32_t runs, sums;
} exec_rounds;

typedef struct exec_traffic exec_traffic;

exec_traffic *exec_traffic_new(etch_arena *arena, const etch_placed *placed);
/* A step has been run. */
void exec_traffic_note(exec_traffic *traffic, const exec_env *env, const etch_step *step);
/* The next step that is run is one of these, on the first rank. */
void exec_traffic_go_round(exec_traffic *traffic, exec_rounds rounds);
/* A loop begins with the value, or hands it on. */
void exec_traffic_leave(exec_traffic *traffic, const etch_value *value);
/* Runs a microbatch on all ranks and compares all kernels of the first. NULL, or what differs. */
const char *exec_check_traffic(const etch_placed *placed, uint64_t seed);

#endif
