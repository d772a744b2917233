/* Small models for the tests of graph, built call by call, and kernels as text. */
#ifndef ETCH_TEST_SAMPLE_H
#define ETCH_TEST_SAMPLE_H

#include "graph/graph.h"

/* Mesh axes of every sample plan. */
enum { DP, TP };

/* Sizes: B = 8, S = 16, H = 32, F = 64, V = 128; dp = 2, tp = 4; two microbatches. A rank has 2 sequences,
 * 32 tokens. Activations and weights have 2 bytes, gradients and the optimizer's state 4. */
typedef struct sample {
    etch_arena *arena;
    etch_sym *sym;
    etch_diags *diags;
    etch_graph *graph;
    etch_dim *b, *s, *h, *f, *v;
    etch_train train; /* AdamW with a master copy of the weights; no clipping; nothing recomputed */
    etch_plan plan;   /* mesh only */
    etch_granularity granularity; /* kernels */
} sample;

sample *sample_new(etch_arena *arena);

/* The builder's calls, with names. `dims` is a text of letters: "bsh". */
etch_tensor *sample_input(sample *x, const char *name, const char *dims, etch_dtype dtype);
etch_tensor *sample_weight(sample *x, const char *name, const char *dims);
etch_tensor *sample_product(sample *x, const char *name, etch_tensor *a, etch_tensor *b, const char *dims);
etch_tensor *sample_sum(sample *x, const char *name, etch_tensor *a, etch_tensor *b);
/* A row with one or two operands; `over` is a letter or 0, `number` a constant or NULL. */
etch_tensor *sample_call(sample *x, const char *name, const char *row, etch_tensor *a, etch_tensor *b,
                         char over, etch_expr number);
void sample_tag(sample *x, etch_tensor *tensor, const char *tag);

/* A logits product and the loss on it: weight `head`, input `labels`. */
void sample_loss(sample *x, etch_tensor *value);
/* y[B,S,H] = (silu(h * w1) * (h * w3)) * w2, h = rms_norm(value): tensors h, gate, up, s, a, y. */
etch_tensor *sample_mlp(sample *x, etch_tensor *value);

/* z = x + mlp(x), a norm of z, the loss: tensors x, z (tagged residual), n. B over dp. */
sample *sample_residual(etch_arena *arena);

/* Adds a line to the plan; a pin on a tag. */
void sample_shard(sample *x, const char *dim, uint32_t axis);
void sample_pin(sample *x, const char *tag, const char *dim_dp, const char *dim_tp);

/* Derives and places; fails the test on a diagnostic. */
etch_placed *sample_place(sample *x);

/* One line for each kernel, in issue order; loops are indented:
 *     einsum+add: y x w -> z, 32768 FLOP, 4096 bytes
 *     einsum: dy a -> , adds dw, 32768 FLOP, 7168 bytes
 *     all_reduce over tp: y, 2048 bytes
 */
const char *sample_kernels(const etch_placed *placed, const etch_placed_region *region);

/* The sum of each * times over the items of `measure` and `phase`; ETCH_PHASE_COUNT: all phases. */
int64_t sample_total(sample *x, const etch_cost_list *items, etch_measure measure, etch_phase phase);
int64_t sample_value(etch_expr constant);

#endif
