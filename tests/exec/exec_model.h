/* Graphs and plans for the executor, written in short: dims by names in a text, plans as text. */
#ifndef ETCH_TEST_EXEC_MODEL_H
#define ETCH_TEST_EXEC_MODEL_H

#include "graph/graph.h"

typedef struct exec_model {
    etch_arena *arena;
    etch_sym *sym;
    etch_diags *diags;
    etch_graph *graph;
    etch_train train;
    etch_tensor *served; /* of a graph that is served: what is asked for */
    uint32_t kinds;      /* of a random model: bits of exec_kind */
    uint32_t partial;    /* bits of the weights that are made next: such a one is a sum over the dim Z */
} exec_model;

/* `dims`: "B=8 S=4 H=8"; B is the batch. */
exec_model *exec_model_new(etch_arena *arena, const char *dims, uint32_t micro);
/* A dim by name; the last that was made of equal names. */
etch_dim *exec_model_dim(const exec_model *m, const char *name);

/* `dims`: "B S H". Inputs are the model's, also where a loop or a module is in work. */
etch_tensor *exec_input(exec_model *m, const char *name, const char *dims);
etch_tensor *exec_ids(exec_model *m, const char *name, const char *dims);
etch_tensor *exec_weight(exec_model *m, const char *name, const char *dims);

/* Results get `name`. */
etch_tensor *exec_product(exec_model *m, const char *name, etch_tensor *a, etch_tensor *b, const char *dims);
etch_tensor *exec_quotient(exec_model *m, const char *name, etch_tensor *a, etch_tensor *b, const char *dims);
etch_tensor *exec_sum(exec_model *m, const char *name, etch_tensor *a, etch_tensor *b);
/* The first `added` less the others. */
etch_tensor *exec_sum_of(exec_model *m, const char *name, etch_tensor *const *terms, uint32_t count,
                         uint32_t added);
etch_tensor *exec_difference(exec_model *m, const char *name, etch_tensor *a, etch_tensor *b);
/* Sums down to `dims`. */
etch_tensor *exec_reduce(exec_model *m, const char *name, etch_tensor *a, const char *dims);
/* `from` and `to`: "S" and "T". */
etch_tensor *exec_rename(exec_model *m, const char *name, etch_tensor *a, const char *from, const char *to);
/* Along `dims`, its own and others. */
etch_tensor *exec_copies(exec_model *m, const char *name, etch_tensor *a, const char *dims);
/* Every element is num/den; where that is 0/0, its index along its one dim. */
etch_tensor *exec_constant(exec_model *m, const char *name, const char *dims, int num, int den);
/* Rows of `a` added by index: `dims` of the result. */
etch_tensor *exec_scatter(exec_model *m, const char *name, etch_tensor *a, etch_tensor *ids, const char *over,
                          const char *dims);
/* A row by name; operands that are NULL are left out. `over` may be "". */
etch_tensor *exec_call_row(exec_model *m, const char *name, const char *row, const char *over, etch_tensor *a,
                           etch_tensor *b, etch_tensor *c);
/* With a number num/den. */
etch_tensor *exec_call_number(exec_model *m, const char *name, const char *row, int num, int den,
                              etch_tensor *a);
etch_tensor *exec_slice(exec_model *m, const char *name, etch_tensor *a, const char *over, const char *to);
etch_tensor *exec_pad(exec_model *m, const char *name, etch_tensor *a, const char *over, const char *to);
/* `from` and `to`: "S H" and "P", one of them a single dim. */
etch_tensor *exec_regroup(exec_model *m, const char *name, etch_tensor *a, const char *from, const char *to);
/* Operands that are NULL are left out; `over`: the part of each. */
etch_tensor *exec_concat(exec_model *m, const char *name, const char *over, const char *dims, etch_tensor *a,
                         etch_tensor *b, etch_tensor *c);
/* Fills `out`; `dims`: those of the results, NULL at the end. */
void exec_split(exec_model *m, etch_tensor *a, const char *over, const char *const *dims, etch_tensor **out);
/* `dims`: of the result; `w`: NULL for a pool, whose window is `size` long. */
etch_tensor *exec_window(exec_model *m, const char *row, const char *dims, const char *over, etch_tensor *x,
                         etch_tensor *w, const char *kernel, int size, int stride, bool causal);
/* `ins`: u, dt, a, b, c. */
etch_tensor *exec_scan(exec_model *m, const char *name, etch_tensor *const ins[5], const char *over,
                       const char *state, int chunk);
/* `window`: 0 for a cache that keeps all. */
etch_tensor *exec_cache(exec_model *m, const char *name, etch_tensor *a, const char *over, const char *to,
                        int window);
/* Of `x`, along all dims but `keep`, with gain and bias unless they are NULL. */
etch_tensor *exec_batch_norm(exec_model *m, const char *name, const char *keep, etch_tensor *x,
                             etch_tensor *g, etch_tensor *b);
etch_tensor *exec_cast(exec_model *m, const char *name, etch_tensor *a, etch_dtype dtype);
etch_tensor *exec_attend(exec_model *m, const char *name, etch_tensor *q, etch_tensor *k, etch_tensor *v,
                         const char *over, const char *dot, bool causal);
/* The same with options; operands that are NULL and numbers that are 0 are left out. */
typedef struct exec_options {
    etch_tensor *sink, *bias;
    int window, cap, pairs;
    bool causal;
    bool rolling; /* caches keep the window and no more */
} exec_options;
etch_tensor *exec_attend_with(exec_model *m, const char *name, etch_tensor *q, etch_tensor *k, etch_tensor *v,
                              const char *over, const char *dot, exec_options options);
/* A softmax of scores under a causal mask, with a window unless it is 0. */
etch_tensor *exec_masked_softmax(exec_model *m, const char *name, etch_tensor *scores, const char *over,
                                 int window);

/* Routing. `over` of dispatch: the tokens' dims; the other words are one dim each. */
etch_tensor *exec_topk(exec_model *m, const char *name, etch_tensor *scores, const char *over,
                       const char *choices);
etch_tensor *exec_dispatch(exec_model *m, const char *name, etch_tensor *x, etch_tensor *idx,
                           const char *over, const char *slots);
etch_tensor *exec_collect(exec_model *m, const char *name, etch_tensor *y, etch_tensor *idx,
                          const char *experts, const char *slots);

void exec_tag(exec_model *m, etch_tensor *tensor, const char *tag);
/* Cross entropy of a head on `value`, tagged loss. */
void exec_head_loss(exec_model *m, etch_tensor *value, etch_tensor *head);
/* The sum of `value` times an input of the same dims, tagged loss. */
void exec_sum_loss(exec_model *m, etch_tensor *value, const char *dims);
etch_tensor *exec_enter(exec_model *m, const char *module, etch_tensor *argument);
etch_tensor *exec_leave(exec_model *m, const char *name, etch_tensor *result);
etch_tensor *exec_repeat(exec_model *m, const char *name, uint32_t count, etch_tensor *value);
/* Ends a body with `value` and begins that of the next class: what it is handed. */
etch_tensor *exec_or(exec_model *m, etch_tensor *value);
/* The class of each iteration of the loop in work, as digits. */
void exec_classes(exec_model *m, const char *digits);
etch_tensor *exec_end(exec_model *m, etch_tensor *value);

/* Leaves of the graph what `wanted` needs: a model that is served. */
etch_training *exec_serve(exec_model *m, etch_tensor *wanted);
/* Derives backward, unless the graph is served; fails the test on a diagnostic. `recompute`: selectors "a,b",
 * "all" or NULL; without what nobody reads: "needed", "needed(a,b)". */
etch_training *exec_train(exec_model *m, const char *recompute);
/* The same; NULL when the model has nothing that is called so. */
etch_training *exec_try_train(exec_model *m, const char *recompute);

/* A plan from text: axes first, then lines. A pin stands at the end of its line; ".." in it stands for what
 * the map says of its other dims.
 *     "dp=2 tp=2 | B@dp H@tp,cp | pin residual B@dp S@tp | zero dp | keep | contiguous | for mlp,norm F@ H@tp
 *     pin hidden F@tp"
 * `keep`: the copies that forward has gathered; `each`: gradients are reduced in each microbatch;
 * `contiguous`: causal queries in parts of unequal work; `pad V=4`. A scope inside another: "for block>mlp
 * F@tp". Stages: "stage embed,layer,head@pp interleaved virtual=2 counts=1,2,2,1"; one_f_one_b unless a
 * schedule is named. */
etch_plan *exec_plan(etch_arena *arena, etch_sym *sym, const char *text);

#endif
