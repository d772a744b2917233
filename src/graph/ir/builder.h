/* Building a forward graph, one checked call at a time. Part of what other modules see of graph.
 *
 * Errors go to the diagnostics of the graph; a builder call that reports one returns NULL, and NULL operands
 * are taken silently (result NULL), so that one mistake gives one message. */
#ifndef ETCH_GRAPH_IR_BUILDER_H
#define ETCH_GRAPH_IR_BUILDER_H

#include "graph/ir/ir.h"

/* An expression with the defaults of params put in, for a question that decides structure. */
etch_expr etch_graph_with_defaults(etch_graph *graph, etch_expr expr);
/* Likewise, without the defaults of params that are left open: they may still get any value. */
etch_expr etch_graph_with_values(etch_graph *graph, etch_expr expr);
etch_graph *etch_graph_new(etch_arena *arena, etch_sym *sym, etch_diags *diags, etch_dtypes dtypes,
                           const char *model, etch_span span);
/* Before the first op. Of rows with the same use the first counts. */
void etch_graph_use_table(etch_graph *graph, const etch_table *table);
/* A new dim. Two calls make two dims, whatever their names. */
etch_dim *etch_graph_dim(etch_graph *graph, const char *name, etch_expr size, bool average_sized,
                         etch_span span);
/* Calls of modules, in a stack: scopes name where ops belong. */
void etch_graph_enter(etch_graph *graph, const char *module, etch_span call);
void etch_graph_leave(etch_graph *graph);
/* Passes a value into the current scope (an argument, after etch_graph_enter) or out of it (a result, before
 * etch_graph_leave). */
etch_tensor *etch_graph_pass(etch_graph *graph, etch_edge edge, etch_tensor *value, const char *name,
                             etch_span span);
/* An input or a weight. A dim that appears twice is an error (help: write H'). */
etch_tensor *etch_graph_input(etch_graph *graph, const char *name, etch_dim_view dims, etch_dtype dtype,
                              etch_span span);
etch_tensor *etch_graph_weight(etch_graph *graph, const char *name, etch_dim_view dims, etch_dtype dtype,
                               bool frozen, etch_span span);

/* `row` applied to operands (a missing optional operand is not in `ins`). The row checks dims and infers
 * those of the result. `want` (`at` NULL: none): dims declared for the statement; rows that cannot infer
 * need them, the results of others have no dims but these. Result 0. */
etch_tensor *etch_graph_call(etch_graph *graph, const etch_row *row, etch_tensor *const *ins,
                             uint32_t in_count, const etch_attrs *attrs, etch_dim_view want, etch_span span);

/* Does the row have several results (as many as are declared)? */
bool etch_row_is_several(const etch_row *row);
/* A call of such a row on one operand; fills `out`, one result for the declared dims of each of `want`. False
 * after an error. */
bool etch_graph_call_several(etch_graph *graph, const etch_row *row, etch_tensor *x, const etch_attrs *attrs,
                             const etch_dim_view *want, etch_tensor **out, uint32_t count, etch_span span);
/* The same with operands by place. */
etch_tensor *etch_graph_call_operands(etch_graph *graph, const etch_row *row, const etch_operands *operands,
                                      const etch_attrs *attrs, etch_dim_view want, etch_span span);

/* The operators. `etch_graph_product` multiplies two tensors and keeps exactly the dims `keep` (those of the
 * operands that are not kept are summed); keep.at == NULL: nothing is summed, and one operand's dims must
 * contain the other's (else an error that asks "outer product or contraction?"); `etch_graph_quotient` is the
 * same for a / b. `etch_graph_sum` adds the first `added` of the terms, one at least, and takes the others
 * away, with broadcast by name. */
etch_tensor *etch_graph_product(etch_graph *graph, etch_tensor *a, etch_tensor *b, etch_dim_view keep,
                                etch_span span);
etch_tensor *etch_graph_quotient(etch_graph *graph, etch_tensor *a, etch_tensor *b, etch_dim_view keep,
                                 etch_span span);
etch_tensor *etch_graph_sum(etch_graph *graph, etch_tensor *const *terms, uint32_t count, uint32_t added,
                            etch_span span);
/* Sums one tensor down to `keep`; the tensor itself when nothing is to sum. */
etch_tensor *etch_graph_reduce(etch_graph *graph, etch_tensor *a, etch_dim_view keep, etch_span span);
/* `x[S->S']`: each dim `from[i]` becomes `to[i]`, of equal size (proved, else an error). */
etch_tensor *etch_graph_rename(etch_graph *graph, etch_tensor *a, etch_dim *const *from, etch_dim *const *to,
                               uint32_t count, etch_span span);

/* `x[(N,P)->M]`, `x[M->(N,P)]`: the dims `from` become the dims `to`, one side of which is a single dim; the
 * outer dims stand first. The products of the sizes are equal (proved, else an error). */
typedef struct etch_regroup {
    etch_dim_view from, to;
} etch_regroup;

etch_tensor *etch_graph_regroup(etch_graph *graph, etch_tensor *a, const etch_regroup *groups, uint32_t count,
                                etch_span span);
/* x times, or plus, a number. */
etch_tensor *etch_graph_scale(etch_graph *graph, etch_tensor *x, etch_expr number, etch_span span);
etch_tensor *etch_graph_shift(etch_graph *graph, etch_tensor *x, etch_expr number, etch_span span);
/* 1/x. */
etch_tensor *etch_graph_reciprocal(etch_graph *graph, etch_tensor *x, etch_span span);
/* A constant, which no op makes: every element is `number`, or, where that is NULL, its index along the one
 * dim: of a microbatch, where that has a part of the dim. */
etch_tensor *etch_graph_constant(etch_graph *graph, etch_dim_view dims, etch_expr number, etch_span span);
/* The value along the dims `to`, which are its own and others. */
etch_tensor *etch_graph_copies(etch_graph *graph, etch_tensor *x, etch_dim_view to, etch_span span);
/* Another name for the same value. */
etch_tensor *etch_graph_alias(etch_graph *graph, etch_tensor *x, etch_span span);
/* Names a result as the statement's left side does, and gives it tags (kept pointers must outlive the graph).
 */
void etch_graph_label(etch_tensor *tensor, const char *name, const char **tags, uint32_t tag_count,
                      etch_span span);
/* Says that the statement made `tensor` and all ops since there were `op_count` of them. */
void etch_graph_state(const etch_graph *graph, etch_tensor *tensor, uint32_t op_count);

/* Passes go as deep as loops are nested: whoever builds a graph for others nests no more. */
enum { ETCH_LOOPS_NESTED = 400 };

/* Loops. Between begin and end the builder works in the body. `etch_graph_carry` (right after begin) makes
 * the body's version of a value that the body changes; `etch_graph_end` gets the body's last version of each
 * carried value, in the same order (dims must be equal), and fills `results` with the values after the loop:
 * of a loop that is known to have no iteration those before it, and nothing of it is in the graph. */
etch_loop *etch_graph_begin(etch_graph *graph, const char *name, etch_expr count, etch_span span);

etch_tensor *etch_graph_carry(etch_graph *graph, etch_tensor *init, etch_span span);
/* Ends a body with its last versions and begins that of another class; fills `ins` with its versions of the
 * carried values. `etch_graph_classes` says, before or after the end, which iterations are of which class. */
void etch_graph_next_body(etch_graph *graph, etch_tensor *const *outs, etch_tensor **ins, uint32_t count);
void etch_graph_classes(etch_graph *graph, etch_loop *loop, const etch_pattern *pattern);
void etch_graph_end(etch_graph *graph, etch_tensor *const *outs, etch_tensor **results, uint32_t count);
/* Warns of each weight that nothing reads, or that neither `results` (NULL: failed ones) nor a loss depend
 * on. */
void etch_graph_warn_unused(const etch_graph *graph, etch_tensor *const *results, uint32_t count);
/* Leaves of a forward graph what `wanted` and the caches need, and marks `wanted` as outputs: no partial sum
 * is left of them. NULL entries are skipped. */
void etch_graph_keep(etch_graph *graph, etch_tensor *const *wanted, uint32_t count);
/* Makes one op of a sum and of those of its terms that are sums themselves, and nothing but terms. Comes
 * last. `spoken`: selectors of plans, as "module.tensor"; what they select stays an op of its own. */
void etch_graph_join_sums(etch_graph *graph, const char *const *spoken, uint32_t count);

#endif
