/* What a fuzz target defines. It returns 0; a defect is an abort. */
#ifndef ETCH_FUZZ_H
#define ETCH_FUZZ_H

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif
