/* What the files that show a graph share: names that tell its tensors, dims and calls of modules apart. */
#ifndef ETCH_SHOW_GRAPH_INT_H
#define ETCH_SHOW_GRAPH_INT_H

#include "session/session_int.h"

typedef struct etch_view_names {
    const char *
        *tensors; /* by id; unique among those of one `etch_view_home`, but for values handed on unchanged */
    const char **calls; /* by scope id; unique in the caller */
} etch_view_names;

etch_view_names etch_view_name_graph(etch_arena *arena, const etch_training *training);

/* The call of a module in whose terms a tensor is named: a result belongs to the caller, what is derived to where
 * it derives from. */
const etch_scope *etch_view_home(const etch_graph *graph, const etch_tensor *tensor);
/* Does the op hand its operand on as it is: an argument, a result, the only part of a gradient? */
bool etch_view_passes(const etch_op *op);

/* The making of one report. */
typedef struct etch_shown_loop {
    const etch_loop *loop;
    size_t parent;
    etch_expr runs; /* iterations of it and of the loops around it */
} etch_shown_loop;

typedef struct etch_shown_op {
    const etch_op *op;
    size_t loop;
    const etch_part *part; /* which one it is of; NULL: everything is shown */
} etch_shown_op;

typedef struct etch_viewing {
    etch_session *session;
    const char *selector; /* NULL: everything is shown */
    etch_arena *arena;
    etch_sym *sym;
    const etch_pipeline *p;
    const etch_graph *graph;
    etch_parts parts; /* those of tensors, else the first one; none: everything is shown */
    etch_view_names names;
    ETCH_VEC(etch_shown_op) ops;
    ETCH_VEC(etch_shown_loop) loops;
    /* Indices into the report, or NONE: by id. */
    size_t *op_at, *loop_at, *tensor_at, *scope_at, *dim_at;
    const etch_op **reader; /* by tensor id: the first op of the backward pass that reads it; NULL: none */
    etch_sym *dim_sym;      /* formulas over dims */
    etch_expr *dim_vars;    /* by dim id: its size in them */
    etch_expr dim_micro;
    etch_graph_report *report;
} etch_viewing;

/* Finds the ops, loops and kept values of the part, and what they mention: fills everything up to `reader`. */
void etch_view_find(etch_viewing *v);
/* The call in which a loop stands: that of the values which it hands on, else of its first op. */
const etch_scope *etch_view_loop_scope(const etch_viewing *v, const etch_loop *loop);
const etch_scope *etch_view_scope(const etch_viewing *v, const etch_scope *scope); /* the model's for NULL */

#endif
