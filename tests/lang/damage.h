/* Specs with something wrong, from a seed. */
#ifndef ETCH_TEST_DAMAGE_H
#define ETCH_TEST_DAMAGE_H

#include "corpus.h"

typedef struct generator {
    uint64_t state; /* not 0 */
} generator;

/* A damaged copy of a case: pieces put in, ranges left out or doubled, the end cut off. */
etch_buf damage_text(etch_arena *arena, const corpus_case *item, generator *g);

#endif
