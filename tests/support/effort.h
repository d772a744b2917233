/* How much a random test tries, and from which seed. */
#ifndef ETCH_TEST_EFFORT_H
#define ETCH_TEST_EFFORT_H

#include <stdint.h>

/* How many of `usual` tries to make: ETCH_TEST_COUNT, or `usual` times ETCH_TEST_MULT, which is a whole
 * number or a part such as 1/4, of which the next whole number counts. */
uint64_t etch_effort(uint64_t usual);

/* The first seed: ETCH_TEST_SEED, or `usual`. */
uint64_t etch_test_seed(uint64_t usual);

#endif
