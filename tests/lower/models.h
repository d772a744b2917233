/* Models for the tests of lower, on those of graph, with what is given to their variables. */
#ifndef ETCH_TEST_MODELS_H
#define ETCH_TEST_MODELS_H

#include "sample.h"

#include "lower/lower.h"

/* How a model is trained and placed. */
typedef struct shape {
    void (*build)(sample *x, etch_expr layers, etch_expr steps);
    enum { PLAN_NONE, PLAN_DP, PLAN_TP, PLAN_SEQUENCE } plan;
    int64_t batch, micro, layers, steps, dp, tp;
    const char *recompute; /* a loop, "all" or NULL */
    bool clip;
} shape;

/* embedding, loop layer { norm, mlp, residual }, head. */
void build_decoder(sample *x, etch_expr layers, etch_expr steps);
/* The embedding is the head as well. */
void build_tied(sample *x, etch_expr layers, etch_expr steps);
/* loop layer { mlp; loop step { mlp, a gain of the layer, a gain of the model, the layer's input again }
 * }. */
void build_nested(sample *x, etch_expr layers, etch_expr steps);
/* Two loops one after the other; the second reads the result of the first in every iteration. */
void build_two_loops(sample *x, etch_expr layers, etch_expr steps);
void build_classes(sample *x, etch_expr layers, etch_expr steps);

typedef struct built {
    sample *x;
    etch_placed *placed;
    etch_lower_options options;
} built;

/* Builds, derives, places. Variables batch, micro, layers, steps, dp and tp have the values of the shape. */
built *build(etch_arena *arena, const shape *s);
/* Lowers; fails the test on a diagnostic. */
const etch_job *lower_built(const built *b);
/* All diagnostics as text. */
const char *diagnostics_of(const built *b);
/* The value of an expression under the shape. */
int64_t value_of(const built *b, etch_expr expr);
/* Shapes that cover what loops, plans and recomputation do; ends with a shape that has no `build`. */
extern const shape all_shapes[];

#endif
