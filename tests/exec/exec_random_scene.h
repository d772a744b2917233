/* What makes a random model: the values that statements may use so far, and choices among them. */
#ifndef ETCH_TEST_EXEC_RANDOM_SCENE_H
#define ETCH_TEST_EXEC_RANDOM_SCENE_H

#include "exec_dim_set.h"
#include "exec_random.h"

enum { EXEC_MOST_VALUES = 64 };

/* What statements may use: in a module, what has entered it, and what it makes. Values of an ended loop or
 * module are forgotten. */
typedef struct exec_scene {
    exec_model *m;
    exec_dice *dice;
    etch_tensor *values[EXEC_MOST_VALUES], *weights[EXEC_MOST_VALUES];
    etch_tensor *ids; /* in a module: indices that have entered it, or NULL */
    uint32_t value_count, weight_count, depth, modules, names, loops;
    bool wide;       /* loops of any count, and values that arrive two iterations late */
    bool rich;       /* statements of exec_add_kind as well */
    bool as_written; /* sums whose parts have names stay apart */
} exec_scene;

/* The model has one of these kinds. */
void exec_mark(exec_scene *s, exec_kind kind);
/* A name that nothing has. */
const char *exec_fresh(exec_scene *s, const char *prefix);
/* Recent values are likelier, as in models. */
etch_tensor *exec_any_value(exec_scene *s);
/* A dim of the value, not the batch; NULL when it has no other. */
etch_dim *exec_any_dim(exec_scene *s, const etch_tensor *x);
/* A dim that the value lacks, or NULL. */
etch_dim *exec_new_dim(exec_scene *s, const etch_tensor *x);
const char *exec_dims_text(exec_scene *s, exec_dim_set set);
bool exec_is_small(exec_dim_set set);
/* A weight with these dims: at times one that is there already. */
etch_tensor *exec_weight_with(exec_scene *s, exec_dim_set set);
/* Statements may use it from now on. */
void exec_keep_value(exec_scene *s, etch_tensor *value);
/* Ends a module: its statement made all ops since there were `op_count`. */
etch_tensor *exec_left(exec_scene *s, const char *prefix, etch_tensor *value, uint32_t op_count);
/* Keeps numbers small. */
etch_tensor *exec_squashed(exec_scene *s, etch_tensor *x);
/* One statement of the kinds that plain models lack. */
void exec_add_kind(exec_scene *s);
/* Attention through caches, which may roll. */
void exec_add_cached(exec_scene *s);

#endif
