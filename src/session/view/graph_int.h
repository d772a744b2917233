/* Declarations that the files that show a graph share: names that tell its tensors, dims and calls of modules
 * apart. */
#ifndef ETCH_SESSION_VIEW_GRAPH_INT_H
#define ETCH_SESSION_VIEW_GRAPH_INT_H

#include "session/query/query.h"

typedef struct etch_view_names {
    /* by id; unique among those of one `etch_view_naming_scope`, but for values carried on unchanged */
    const char **tensors;
    /* by scope id; unique in the caller */
    const char **calls;
} etch_view_names;

etch_view_names etch_view_name_graph(etch_arena *arena, const etch_training *training);

/* The call of a module in whose terms a tensor is named: a result belongs to the caller, what is derived to
 * where it derives from. */
const etch_scope *etch_view_naming_scope(const etch_graph *graph, const etch_tensor *tensor);
/* Does the op hand its operand on as it is: an argument, a result, the only part of a gradient? */
bool etch_view_passes(const etch_op *op);

/* The making of one report. */
/* Iterations of a loop that are alike. */
typedef struct etch_shown_loop {
    const etch_region *body;
    size_t parent;
    /* of them, with the iterations of the loops around */
    etch_expr runs;
} etch_shown_loop;

typedef struct etch_shown_op {
    const etch_op *op;
    size_t loop;
    /* which one it is of; NULL: everything is shown */
    const etch_selected *part;
} etch_shown_op;

/* A value of the forward pass that is kept for the backward pass. */
typedef struct etch_shown_saved {
    const etch_tensor *tensor;
    /* the first op that reads it */
    const etch_op *reader;
    /* how many of them one microbatch keeps */
    etch_expr times;
} etch_shown_saved;

typedef struct etch_viewing {
    etch_session *session;
    /* NULL: everything is shown */
    const char *selector;
    etch_arena *arena;
    etch_sym *sym;
    etch_compiled *p;
    const etch_graph *graph;
    /* those of tensors, else the first one; none: everything is shown */
    etch_selection parts;
    etch_view_names names;
    ETCH_VEC(etch_shown_op) ops;
    ETCH_VEC(etch_shown_loop) loops;
    /* Indices into the report, or NONE: by id. */
    size_t *op_at, *tensor_at, *scope_at, *dim_at;
    /* in the order of the forward pass */
    ETCH_VEC(etch_shown_saved) saved;
    /* by dim id: variables of the dims' names, for formulas over dims */
    etch_expr *dim_vars;
    etch_expr dim_micro;
    etch_graph_report *report;
} etch_viewing;

/* Finds the model, with the plan that the options name or, where one is needed, with the only one; the part
 * that is asked for, and what is to be seen of it. False after a reported error. */
bool etch_view_begin(etch_viewing *v, bool needs_plan);
/* Adds something to what is to be seen, before numbers are given. */
void etch_view_mention(etch_viewing *v, const etch_tensor *tensor);
void etch_view_mention_scope(etch_viewing *v, const etch_scope *scope);
/* Gives numbers to all that is to be seen, and fills the report. */
void etch_view_finish(etch_viewing *v);

/* The part that something is of that happens in `scope`, in a body of the forward pass (NULL: in none), and
 * makes `tensor`; NULL when it is of none. */
const etch_selected *etch_view_selected_of(const etch_viewing *v, etch_scope *scope,
                                           const etch_region *forward, const etch_tensor *tensor);
/* Values in force put in; and a formula over dims. */
const char *etch_view_text(const etch_viewing *v, etch_expr value);
const char *etch_view_dim_text(const etch_viewing *v, etch_expr value);
/* An etch_size_fn whose data is the etch_viewing: the name of the dim, for formulas over dims. */
etch_expr etch_view_size_by_dims(const void *viewing, const etch_dim *dim);

/* Finds the ops, loops and kept values of the part, and what they mention: fills everything up to `saved`. */
void etch_view_find(etch_viewing *v);
/* The index of the loop whose body the region is; NONE for the top level, and for what is not shown. */
size_t etch_view_loop_at(const etch_viewing *v, const etch_region *body);
/* The call in which a loop stands: that of the values which it carries on, else of its first op. */
const etch_scope *etch_view_loop_scope(const etch_viewing *v, const etch_shown_loop *shown);
const etch_scope *etch_view_scope(const etch_viewing *v, const etch_scope *scope); /* the model's for NULL */

#endif
