/* Declarations that the files of ir share: calls in the making, and what is asked of them. */
#ifndef ETCH_GRAPH_IR_IR_INT_H
#define ETCH_GRAPH_IR_IR_INT_H

#include "graph/ir/row.h"

void etch_dim_add(etch_graph *graph, etch_dim_list *list, etch_dim *dim); /* unless it is there */
/* Has none of the dims size 0, for what is divided by how many elements there are? False after an error. */
bool etch_dims_have_elements(const etch_graph *graph, etch_dim_view dims);
/* Marks `to` as another name for `from`, unless that is so the other way round. */
void etch_dim_alias(etch_dim *to, const etch_dim *from);

/* Dims that a spec names stand for those that the operands have of them (etch_dim_is_meant). */
void etch_dims_mean(etch_graph *graph, etch_dim_view *dims, etch_tensor *const *ins, uint32_t count);

/* A call in the making, for the shapes of rows: what is called with what, and where. */
typedef struct etch_call {
    etch_graph *graph;
    const etch_row *row;
    /* the row that was asked for: another one when a model is served */
    const etch_row *called;
    etch_tensor *const *ins;
    uint32_t in_count;
    /* a shape may complete them */
    etch_attrs attrs;
    /* declared dims of the result; NULL: none */
    etch_dim_view want;
    etch_span span;
} etch_call;

/* Reports what is wrong with the call: "softmax: .." and what the format says. */
#define etch_call_error(call, code, ...)                                                 \
    etch_error((call)->graph->diags, code, (call)->span, "%s: %s", (call)->called->name, \
               etch_text((call)->graph->arena, __VA_ARGS__))

/* The same, where nothing more is to be said: false. */
#define etch_call_refuse(call, ...) (etch_call_error(call, __VA_ARGS__), false)

/* Reports what the language has and no rank does yet: "conv(.., causal = true) .. is part of the language but
 * is not given meaning yet", and what else there is to say. False. */
bool etch_call_later(const etch_call *call, const char *what, const char *more);
/* Has an operand this dim? */
bool etch_call_has(const etch_call *call, const etch_dim *dim);
/* The one declared dim that no operand has, and that is not `but`; NULL when there is none, or several. */
etch_dim *etch_call_new_dim(const etch_call *call, const etch_dim *but);
/* What messages say of a tensor, of dims, of a number. */
const char *etch_call_tensor(const etch_call *call, const etch_tensor *tensor);
const char *etch_call_dims(const etch_call *call, etch_dim_view dims);
const char *etch_call_number(const etch_call *call, etch_expr number);
/* Reports that a number of the call is not known to be what it should be: false. */
bool etch_call_wrong_number(const etch_call *call, const char *name, etch_expr number, const char *should);
/* Is its window, if it has one, a number of elements? False after an error. */
bool etch_call_has_window(const etch_call *call);
/* Do the keywords of the call name each dim once, and one dim where the op works along one? False after
 * an error. */
bool etch_keywords_fit(const etch_call *call);
/* Does operand `t` have every dim of `dims`? Reports the first that it lacks, which keyword `what` names. */
bool etch_shape_has(const etch_call *call, const etch_tensor *t, etch_dim_view dims, const char *what);
/* Adds dims as they are; those of `t` but those of `less`, each once. */
void etch_dims_add(const etch_call *call, etch_dim_list *out, etch_dim_view dims);
void etch_dims_add_beside(const etch_call *call, etch_dim_list *out, const etch_tensor *t,
                          etch_dim_view less);

#endif
