/* Sums of cotangents over the stages of a pipeline. */
#ifndef ETCH_TEST_EXEC_SUMS_H
#define ETCH_TEST_EXEC_SUMS_H

#include "graph/graph.h"

/* Goes back over no cut what is only added up behind it: of several terms that one sum reads, and nothing
 * else, their sum would do. NULL, or what is wrong. */
const char *exec_check_sums(const etch_placed *placed);

#endif
