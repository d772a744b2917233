/* Models that cover what training graphs are made of. Each is built anew for each test. */
#ifndef ETCH_TEST_EXEC_ZOO_H
#define ETCH_TEST_EXEC_ZOO_H

#include "exec_model.h"

typedef struct exec_zoo {
    const char *name;
    /* The forward graph, with `micro` microbatches. */
    exec_model *(*build)(etch_arena *arena, uint32_t micro);
    const char *recompute;
    const char *const *plans; /* ends with NULL */
} exec_zoo;

/* Ends with an entry without a name. */
extern const exec_zoo exec_models[];

/* The first of them as it is served: 4 tokens behind 2 that the caches hold. With things in the graph that
 * nobody asks for. */
etch_training *exec_served_llama(etch_arena *arena, exec_model **m);
extern const char *const exec_served_plans[];
/* exec_zoo_attention.c */
/* `sizes`: "S=4 T=6": so many new tokens, and all. Every other attention has a window; `rolling`: and caches
 * that keep no more. */
etch_training *exec_served_gemma2(etch_arena *arena, exec_model **m, const char *sizes, int window,
                                  bool rolling);
exec_model *exec_build_gemma2(etch_arena *arena, uint32_t micro);
exec_model *exec_build_sinks(etch_arena *arena, uint32_t micro);
exec_model *exec_build_shared_sinks(etch_arena *arena, uint32_t micro);
exec_model *exec_build_t5(etch_arena *arena, uint32_t micro);
extern const char *const exec_gemma2_plans[], *const exec_shared_sinks_plans[], *const exec_t5_plans[];

/* Can the model have so many microbatches, and the plan divide them? */
bool exec_zoo_has_microbatches(etch_arena *arena, const exec_zoo *zoo, const char *plan, uint32_t micro);

#endif
