/* The same traces by protobuf-c: what ours are held against. */
#ifndef ETCH_TEST_REFERENCE_H
#define ETCH_TEST_REFERENCE_H

#include "lower/lower.h"

/* The whole trace of `rank`, from malloc. NULL when memory is out. */
uint8_t *reference_trace(const etch_job *job, uint32_t rank, size_t *length);

#endif
