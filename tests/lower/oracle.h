/* An interpreter of placed graphs, simple and slow: runs every step of every microbatch and remembers who
 * made each value. What it finds is what a program has to be. It shares no code with lower, and finds
 * values of the forward pass another way: backward iterations see the environment of the iteration that
 * they undo. */
#ifndef ETCH_TEST_ORACLE_H
#define ETCH_TEST_ORACLE_H

#include "models.h"

typedef struct oracle_node {
    bool collective;
    etch_collective move;
    uint32_t axes; /* of a collective, as written */
    int64_t flop, bytes;
    uint32_t *deps; /* ascending */
    uint32_t dep_count;
    char phase;         /* F, R, B, S or O */
    int64_t microbatch; /* -1: the end of the step */
} oracle_node;

typedef struct oracle {
    oracle_node *nodes;
    uint32_t count;
} oracle;

oracle oracle_run(const built *b, const shape *s);

#endif
