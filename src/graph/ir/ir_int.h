/* Declarations that the files of ir share: calls in the making, and the rules of their shapes. */
#ifndef ETCH_GRAPH_IR_IR_INT_H
#define ETCH_GRAPH_IR_IR_INT_H

#include "graph/ir/row.h"

void etch_dim_add(etch_graph *graph, etch_dim_list *list, etch_dim *dim); /* unless it is there */
/* Has none of the dims size 0, for what is divided by how many elements there are? False after an error. */
bool etch_dims_have_elements(const etch_graph *graph, etch_dim *const *dims, uint32_t count);
/* Marks `to` as another name for `from`, unless that is so the other way round. */
void etch_dim_alias(etch_dim *to, const etch_dim *from);

/* A call in the making, for the rules of shape.c: what is called with what, and where. */
typedef struct etch_call {
    etch_graph *graph;
    const etch_row *row;
    /* the row that was asked for: another one when a model is served */
    const etch_row *called;
    etch_tensor *const *ins;
    uint32_t in_count;
    /* a rule may complete them */
    etch_attrs attrs;
    /* declared dims of the result; NULL: none */
    etch_dim *const *want;
    uint32_t want_count;
    etch_span span;
} etch_call;

/* Dims of the result by the row's shape rule. False after an error. */
bool etch_shape_infer(etch_call *call, etch_dim_list *out);
/* The options of attention: do mask, cap, pairs, sink and bias go together, and with the dims? Forgets a
 * window that hides nothing. False after an error. */
bool etch_attend_check(etch_call *call);
/* Do the keywords of the call name each dim once, and one dim where the op works along one? False after an
 * error. */
bool etch_keywords_fit(const etch_call *call);
/* Does operand `t` have every dim of `dims`? Reports the first that it lacks, which keyword `what` names. */
bool etch_shape_has(const etch_call *call, const etch_tensor *t, etch_dim *const *dims, uint32_t count,
                    const char *what);
bool etch_shape_scan(const etch_call *call, etch_dim_list *out);
bool etch_shape_window(etch_call *call, etch_dim_list *out);
bool etch_shape_joined(etch_call *call, etch_dim_list *out);
/* Of an op with several results: completes the attrs from the declared dims. False after an error. */
bool etch_shape_parts(etch_call *call, const etch_result_dims *want, uint32_t count);
etch_expr etch_scan_flop(etch_sym *sym, const etch_op *op, etch_size_fn size, const void *data);

/* ---- shape_route.c: routing ---------------------------------------------------------------------------- */

/* The dim that the elements of `indices` choose among, when an op of the graph has chosen them; else NULL. */
etch_dim *etch_route_indexed(const etch_tensor *indices);
/* Do the indices choose from `dim`, as far as that is known? Reports it when they do not. */
bool etch_route_fits(const etch_call *call, const etch_tensor *indices, const etch_dim *dim);
bool etch_shape_chosen(etch_call *call, etch_dim_list *out);
bool etch_shape_routed(etch_call *call, etch_dim_list *out);
bool etch_shape_returned(etch_call *call, etch_dim_list *out);
/* For messages: "idx[B,S,K]". */
const char *etch_call_operand_text(const etch_call *call, const etch_tensor *operand);
/* Adds the dims of `t` but those of `less`. */
void etch_dims_add_beside(const etch_call *call, etch_dim_list *out, const etch_tensor *t,
                          etch_dim *const *less, uint32_t less_count);
/* The loss that keeps the load of experts even. */
etch_tensor *etch_compose_load_balance(const etch_call *call);

#endif
