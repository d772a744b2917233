/* Reads the postfix form of a workload, as workload.py writes it, for the engines that are written in C. */
#ifndef ETCH_BENCH_REPLAY_H
#define ETCH_BENCH_REPLAY_H

#include <stdint.h>
#include <stdio.h>

/* kind: v variable, s slot, # integer, ^ power (all with `value`), or one of + - * / */
typedef struct token {
    char kind;
    int64_t value;
} token;

/* kind: l sets a slot, c holds two values against each other, b: what is before it is not measured */
typedef struct statement {
    char kind;
    uint32_t slot, count;
    token *tokens;
} statement;

enum { WORKLOAD_VARS = 32, WORKLOAD_STACK = 64 };

/* In configuration i its value is one of `steps` powers of two from `least` on. */
typedef struct variable {
    char *name;
    int64_t least;
    uint64_t steps, factor;
} variable;

typedef struct workload {
    variable vars[WORKLOAD_VARS];
    uint32_t var_count;
    statement *statements;
    uint32_t count, begin;       /* from where it is measured */
    uint32_t slot_count, result; /* the slot that is set last */
    int divides;                 /* there is a division */
} workload;

/* Ends the program with a message when the file is not what workload.py writes. */
workload workload_read(const char *path);
void workload_free(workload *w);

/* Processor time of this process in seconds. */
double cpu_seconds(void);

/* The value of a variable in configuration `i`. */
int64_t configuration(const variable *var, uint64_t i);

/* Calls round(data) until `budget` seconds of processor time are used, at least three times; round says how
 * many seconds of it counted, and they are divided by `batch`. The median. */
double measure(double budget, double batch, double (*round)(void *data), void *data);

#endif
