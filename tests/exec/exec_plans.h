/* Strategies as people combine them, on models as they are shipped: random specs of up to five axes and 16
 * ranks. Equal seeds give equal specs. */
#ifndef ETCH_TEST_EXEC_PLANS_H
#define ETCH_TEST_EXEC_PLANS_H

#include "exec_random.h"

/* A model, and what plans call its parts. Texts that are NULL: there is none. */
typedef struct exec_family {
    const char *name;
    const char *text; /* of the spec: imports, or the model itself */
    const char *run;  /* fields of its train blocks */
    const char *
        /* its params: %b sequences, %s tokens of one, %h heads, %f, %v and %e: inner dim, vocabulary, experts
         * */
        sizes;
    const char *heads;    /* dim of attention that tp divides */
    const char *groups;   /* a second one, where tp is two axes */
    const char *inner;    /* dim of the MLP */
    const char *shared;   /* and of that of shared experts */
    const char *pins[2];  /* tags of the residuals */
    const char *seqs[2];  /* the sequences of their tensors */
    const char *core;     /* the module of attention proper, to which all-to-alls bring heads */
    const char *experts;  /* the module of the experts */
    const char *tower;    /* a module that may divide the batch over tp as well */
    const char *tables;   /* a module of tables that rows may be divided of */
    const char *again[4]; /* what may be run again */
    bool whole_sequences; /* context parallelism is refused */
} exec_family;

/* Ends with an entry without a name. */
extern const exec_family exec_families[];

typedef struct exec_combination {
    const exec_family *family;
    const char *text; /* a spec, to be read as a file in models/ */
    uint32_t ranks, axes;
} exec_combination;

exec_combination exec_combine(etch_arena *arena, uint64_t seed);
/* The same with sizes that the mesh does not divide, and paddings of these dims. */
exec_combination exec_combine_padded(etch_arena *arena, uint64_t seed);

#endif
