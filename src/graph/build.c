/* The builder: forward graphs, one checked call at a time. */
#include <string.h>

#include "graph/row_int.h"

etch_graph *etch_graph_new(etch_arena *arena, etch_sym *sym, etch_diags *diags, etch_dtypes dtypes,
                           const char *model, etch_span span)
{
    etch_graph *graph = ETCH_NEW(arena, etch_graph);
    graph->arena = arena;
    graph->sym = sym;
    graph->diags = diags;
    graph->dtypes = dtypes;
    graph->model = model;
    graph->forward = graph->region = ETCH_NEW(arena, etch_region);
    etch_graph_enter(graph, model, span);
    return graph;
}

/* ---- dims and tensors ------------------------------------------------------------------------------- */

etch_dim *etch_graph_dim(etch_graph *graph, const char *name, etch_expr size, bool ragged, etch_span span)
{
    if (!size)
        return NULL;
    etch_dim *dim = ETCH_NEW(graph->arena, etch_dim);
    *dim = (etch_dim){.name = name, .size = size, .ragged = ragged, .id = graph->dims.count, .span = span};
    ETCH_PUSH(graph->arena, &graph->dims, dim);
    return dim;
}

etch_tensor *etch_tensor_new(etch_graph *graph, const char *name, etch_kind kind, etch_dtype dtype,
                             etch_dim *const *dims, uint32_t rank, etch_span span)
{
    etch_tensor *tensor = ETCH_NEW(graph->arena, etch_tensor);
    etch_dim **copy = ETCH_NEW_ARRAY(graph->arena, rank, etch_dim *);
    for (uint32_t i = 0; i < rank; i++)
        copy[i] = dims[i];
    *tensor = (etch_tensor){.id = graph->tensors.count,
                            .name = name,
                            .kind = kind,
                            .dtype = dtype,
                            .dims = copy,
                            .rank = rank,
                            .region = graph->region,
                            .scope = graph->scope,
                            .span = span};
    ETCH_PUSH(graph->arena, &graph->tensors, tensor);
    return tensor;
}

/* Are all dims there, and each once? Reports a repeated one. */
static bool dims_are_distinct(etch_graph *graph, const char *name, etch_dim *const *dims, uint32_t rank,
                              etch_span span)
{
    for (uint32_t i = 0; i < rank; i++) {
        if (!dims[i])
            return false;
        if (!etch_dim_among(dims, i, dims[i]))
            continue;
        etch_diag *diag =
            etch_error(graph->diags, ETCH_E_DIM_TWICE, span, "%s has dim %s twice", name, dims[i]->name);
        etch_help(diag, "write %s' for a second dim of the same size", dims[i]->name);
        return false;
    }
    return true;
}

etch_tensor *etch_graph_input(etch_graph *graph, const char *name, etch_dim *const *dims, uint32_t rank,
                              etch_dtype dtype, etch_span span)
{
    if (!dims_are_distinct(graph, name, dims, rank, span))
        return NULL;
    return etch_tensor_new(graph, name, ETCH_INPUT, dtype, dims, rank, span);
}

etch_tensor *etch_graph_weight(etch_graph *graph, const char *name, etch_dim *const *dims, uint32_t rank,
                               etch_dtype dtype, bool frozen, etch_span span)
{
    if (!dims_are_distinct(graph, name, dims, rank, span))
        return NULL;
    etch_tensor *weight = etch_tensor_new(graph, name, ETCH_WEIGHT, dtype, dims, rank, span);
    weight->frozen = frozen;
    ETCH_PUSH(graph->arena, &graph->weights, weight);
    return weight;
}

void etch_graph_label(etch_tensor *tensor, const char *name, const char **tags, uint32_t tag_count,
                      etch_span span)
{
    if (!tensor)
        return;
    tensor->name = name;
    tensor->tags = tags;
    tensor->tag_count = tag_count;
    tensor->span = span;
}

void etch_graph_state(const etch_graph *graph, etch_tensor *tensor, uint32_t op_count)
{
    if (!tensor)
        return;
    tensor->first_op = op_count;
    tensor->end_op = graph->op_count;
}

/* ---- ops -------------------------------------------------------------------------------------------- */

etch_op *etch_op_new(etch_graph *graph, const etch_row *row, etch_tensor *const *ins, uint32_t in_count,
                     uint32_t out_count, const etch_attrs *attrs, etch_phase phase, etch_span span)
{
    etch_op *op = ETCH_NEW(graph->arena, etch_op);
    *op = (etch_op){.row = row,
                    .in_count = in_count,
                    .out_count = out_count,
                    .phase = phase,
                    .scope = graph->scope,
                    .span = span,
                    .id = graph->op_count++};
    if (attrs)
        op->attrs = *attrs;
    op->ins = ETCH_NEW_ARRAY(graph->arena, in_count, etch_tensor *);
    op->outs = ETCH_NEW_ARRAY(graph->arena, out_count, etch_tensor *);
    for (uint32_t i = 0; i < in_count; i++)
        op->ins[i] = ins[i];
    return op;
}

void etch_region_add_op(etch_graph *graph, etch_region *region, etch_op *op)
{
    ETCH_PUSH(graph->arena, &region->items, (etch_item){.op = op});
    for (uint32_t i = 0; i < op->out_count; i++) {
        op->outs[i]->producer = op;
        op->outs[i]->output = i;
        op->outs[i]->region = region;
    }
}

typedef ETCH_VEC(etch_dim *) dim_list;

static void add_dim(etch_graph *graph, dim_list *list, etch_dim *dim)
{
    if (!etch_dim_among(list->at, list->count, dim))
        ETCH_PUSH(graph->arena, list, dim);
}

const char *etch_dims_text(etch_arena *arena, etch_dim *const *dims, uint32_t count)
{
    etch_buf buf = {.arena = arena};
    etch_buf_puts(&buf, "[");
    for (uint32_t i = 0; i < count; i++)
        etch_buf_printf(&buf, "%s%s", i ? "," : "", dims[i] ? dims[i]->name : "?");
    etch_buf_puts(&buf, "]");
    return buf.text;
}

static bool same_dims(etch_dim *const *a, uint32_t a_rank, etch_dim *const *b, uint32_t b_rank)
{
    if (a_rank != b_rank)
        return false;
    for (uint32_t i = 0; i < a_rank; i++)
        if (!etch_dim_among(b, b_rank, a[i]))
            return false;
    return true;
}

/* The result beside the first, if the row has one. */
static void add_extra(etch_graph *graph, etch_op *op)
{
    const etch_row *row = op->row;
    const etch_tensor *from = row->shape == SHAPE_FIRST ? op->outs[0] : op->ins[row->scores_first];
    dim_list dims = {0};
    for (uint32_t i = 0; i < from->rank; i++) {
        etch_dim *dim = from->dims[i];
        bool gone = etch_dim_among(op->attrs.over, op->attrs.over_count, dim) ||
                    etch_dim_among(op->attrs.dot, op->attrs.dot_count, dim);
        if (!gone)
            ETCH_PUSH(graph->arena, &dims, dim);
    }
    etch_dtype dtype = strcmp(row->extra, "mask") == 0 ? ETCH_BOOL : ETCH_F32;
    op->outs[1] = etch_tensor_new(graph, row->extra, ETCH_ACT, dtype, dims.at, dims.count, op->span);
    op->outs[1]->optional_result = true;
}

/* Adds an op whose result has `dims` to the region in work. */
static etch_tensor *emit(etch_graph *graph, const etch_row *row, etch_tensor *const *ins, uint32_t in_count,
                         const etch_attrs *attrs, const dim_list *dims, etch_span span)
{
    if (!dims_are_distinct(graph, "the result", dims->at, dims->count, span))
        return NULL;
    etch_op *op = etch_op_new(graph, row, ins, in_count, row->extra ? 2 : 1, attrs, ETCH_FORWARD, span);
    etch_dtype dtype = row->shape == SHAPE_LOSS               ? ETCH_F32
                       : row->role == ROLE_FREE || row->stays ? ins[0]->dtype
                                                              : graph->dtypes.act;
    op->outs[0] = etch_tensor_new(graph, row->name, ETCH_ACT, dtype, dims->at, dims->count, span);
    if (row->extra)
        add_extra(graph, op);
    etch_region_add_op(graph, graph->region, op);
    return op->outs[0];
}

static bool operands_are_there(etch_tensor *const *ins, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (!ins[i])
            return false;
    return true;
}

/* ---- dims of results: one function per shape rule --------------------------------------------------- */

/* Does operand `t` have every dim of `dims`? Reports the first that it lacks. */
static bool has_dims(etch_graph *graph, const etch_row *row, const etch_tensor *t, etch_dim *const *dims,
                     uint32_t count, const char *what, etch_span span)
{
    for (uint32_t i = 0; i < count; i++) {
        if (!dims[i])
            return false;
        if (etch_has_dim(t, dims[i]))
            continue;
        etch_error(graph->diags, ETCH_E_MISSING_DIM, span, "%s: %s%s has no dim %s, which `%s` names",
                   row->name, t->name, etch_dims_text(graph->arena, t->dims, t->rank), dims[i]->name, what);
        return false;
    }
    return true;
}

static bool union_dims(etch_graph *graph, etch_tensor *const *ins, uint32_t count, dim_list *out)
{
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t d = 0; d < ins[i]->rank; d++)
            add_dim(graph, out, ins[i]->dims[d]);
    return true;
}

/* Operand 0, whose dims hold those of the other operands (gains, biases). */
static bool first_dims(etch_graph *graph, const etch_row *row, etch_tensor *const *ins, uint32_t count,
                       const etch_attrs *attrs, dim_list *out, etch_span span)
{
    if (!has_dims(graph, row, ins[0], attrs->over, attrs->over_count, "over", span))
        return false;
    for (uint32_t i = 1; i < count; i++)
        for (uint32_t d = 0; d < ins[i]->rank; d++)
            if (!etch_has_dim(ins[0], ins[i]->dims[d])) {
                etch_error(graph->diags, ETCH_E_SHAPE_MISMATCH, span, "%s: %s%s has dim %s, which %s%s lacks",
                           row->name, ins[i]->name, etch_dims_text(graph->arena, ins[i]->dims, ins[i]->rank),
                           ins[i]->dims[d]->name, ins[0]->name,
                           etch_dims_text(graph->arena, ins[0]->dims, ins[0]->rank));
                return false;
            }
    return union_dims(graph, ins, 1, out);
}

static bool attend_dims(etch_graph *graph, const etch_row *row, etch_tensor *const *ins,
                        const etch_attrs *attrs, dim_list *out, etch_span span)
{
    const etch_tensor *q = ins[0], *k = ins[1], *v = ins[2];
    if (!has_dims(graph, row, q, attrs->dot, attrs->dot_count, "dot", span) ||
        !has_dims(graph, row, k, attrs->dot, attrs->dot_count, "dot", span) ||
        !has_dims(graph, row, k, attrs->over, attrs->over_count, "over", span) ||
        !has_dims(graph, row, v, attrs->over, attrs->over_count, "over", span))
        return false;
    for (uint32_t i = 0; i < q->rank; i++)
        if (etch_dim_among(attrs->over, attrs->over_count, q->dims[i])) {
            etch_diag *diag = etch_error(
                graph->diags, ETCH_E_SHAPE_MISMATCH, span, "%s: the queries %s%s have the dim %s of the keys",
                row->name, q->name, etch_dims_text(graph->arena, q->dims, q->rank), q->dims[i]->name);
            etch_help(diag, "rename it in the keys and values: k[%s->%s']", q->dims[i]->name,
                      q->dims[i]->name);
            return false;
        }
    const etch_tensor *sides[] = {q, v};
    for (uint32_t s = 0; s < 2; s++)
        for (uint32_t i = 0; i < sides[s]->rank; i++) {
            etch_dim *dim = sides[s]->dims[i];
            bool dotted = etch_dim_among(attrs->dot, attrs->dot_count, dim) && !etch_has_dim(v, dim);
            if (!dotted && !etch_dim_among(attrs->over, attrs->over_count, dim))
                add_dim(graph, out, dim);
        }
    if (!attrs->causal)
        return true;
    const etch_op probe = {.row = row, .ins = (etch_tensor **)(uintptr_t)ins, .in_count = 3, .attrs = *attrs};
    if (etch_op_query_dim(&probe))
        return true;
    etch_diag *diag =
        etch_error(graph->diags, ETCH_E_SHAPE_MISMATCH, span,
                   "%s: which dim of %s%s is the sequence that %s pairs with?", row->name, q->name,
                   etch_dims_text(graph->arena, q->dims, q->rank), attrs->over[0]->name);
    etch_help(
        diag,
        "a causal mask needs keys that were renamed from the queries' dim: x[S->S'], or cache(k, over = S)");
    return false;
}

static bool lookup_dims(etch_graph *graph, const etch_row *row, etch_tensor *const *ins,
                        const etch_attrs *attrs, dim_list *out, etch_span span)
{
    if (!has_dims(graph, row, ins[0], attrs->over, attrs->over_count, "over", span))
        return false;
    union_dims(graph, ins + 1, 1, out);
    for (uint32_t i = 0; i < ins[0]->rank; i++)
        if (!etch_dim_among(attrs->over, attrs->over_count, ins[0]->dims[i]))
            add_dim(graph, out, ins[0]->dims[i]);
    return true;
}

static bool loss_dims(etch_graph *graph, const etch_row *row, etch_tensor *const *ins, uint32_t count,
                      const etch_attrs *attrs, etch_span span)
{
    if (!has_dims(graph, row, ins[0], attrs->over, attrs->over_count, "over", span))
        return false;
    if (count < 2)
        return true;
    dim_list left = {0};
    for (uint32_t i = 0; i < ins[0]->rank; i++)
        if (!etch_dim_among(attrs->over, attrs->over_count, ins[0]->dims[i]))
            add_dim(graph, &left, ins[0]->dims[i]);
    if (same_dims(left.at, left.count, ins[1]->dims, ins[1]->rank))
        return true;
    etch_error(graph->diags, ETCH_E_SHAPE_MISMATCH, span, "%s: %s%s less %s does not fit %s%s", row->name,
               ins[0]->name, etch_dims_text(graph->arena, ins[0]->dims, ins[0]->rank), attrs->over[0]->name,
               ins[1]->name, etch_dims_text(graph->arena, ins[1]->dims, ins[1]->rank));
    return false;
}

static void replace_dims(etch_graph *graph, const etch_tensor *a, const etch_attrs *attrs, dim_list *out)
{
    for (uint32_t i = 0; i < a->rank; i++) {
        etch_dim *dim = a->dims[i];
        for (uint32_t m = 0; m < attrs->map_count; m++)
            if (attrs->from[m] == dim) {
                dim = attrs->to[m];
                break;
            }
        ETCH_PUSH(graph->arena, out, dim);
    }
}

/* slice: `over` (one dim) becomes the shorter dim `to`. */
static bool top_dims(etch_graph *graph, const etch_row *row, etch_tensor *const *ins, etch_attrs *attrs,
                     dim_list *out, etch_span span)
{
    if (attrs->map_count != 1 || !attrs->to[0] || !has_dims(graph, row, ins[0], attrs->from, 1, "over", span))
        return false;
    const etch_dim *from = attrs->from[0], *to = attrs->to[0];
    etch_truth fits = etch_at_least(graph->sym, from->size, to->size, NULL);
    if (fits != ETCH_YES) {
        etch_diag *diag =
            etch_error(graph->diags, ETCH_E_UNEQUAL_SIZES, span, "%s: %s = %s %s the %s = %s elements of %s",
                       row->name, to->name, etch_expr_text(graph->sym, to->size),
                       fits == ETCH_NO ? "can be more than" : "is not known to be within", from->name,
                       etch_expr_text(graph->sym, from->size), ins[0]->name);
        etch_help(diag, "add `assume %s <= %s`", etch_expr_text(graph->sym, to->size),
                  etch_expr_text(graph->sym, from->size));
        return false;
    }
    replace_dims(graph, ins[0], attrs, out);
    return true;
}

/* Marks `to` as another name for `from`, once; not when it is renamed back. */
static void twin(etch_dim *to, const etch_dim *from)
{
    for (const etch_dim *earlier = from; earlier; earlier = earlier->twin)
        if (earlier == to)
            return;
    if (!to->twin)
        to->twin = from;
}

static void map_one(etch_graph *graph, etch_attrs *attrs, etch_dim *from, etch_dim *to)
{
    attrs->from = ETCH_NEW(graph->arena, etch_dim *);
    attrs->to = ETCH_NEW(graph->arena, etch_dim *);
    attrs->from[0] = from, attrs->to[0] = to, attrs->map_count = 1;
}

/* cache, when serving: `over` is added behind what the cache holds already, which makes `to`. Both belong to
 * one memory that is filled along them. */
static bool appended_dims(etch_graph *graph, const etch_row *row, etch_tensor *const *ins, etch_attrs *attrs,
                          etch_dim *to, dim_list *out, etch_span span)
{
    etch_dim *from = attrs->over[0];
    etch_truth fits = etch_at_least(graph->sym, to->size, from->size, NULL);
    if (fits != ETCH_YES) {
        etch_diag *diag =
            etch_error(graph->diags, ETCH_E_UNEQUAL_SIZES, span, "%s: %s = %s %s the %s = %s elements of %s",
                       row->name, to->name, etch_expr_text(graph->sym, to->size),
                       fits == ETCH_NO ? "cannot hold" : "is not known to hold", from->name,
                       etch_expr_text(graph->sym, from->size), ins[0]->name);
        etch_help(diag, "declare what the cache holds after the run: dim %s ~ past + %s", to->name,
                  from->name);
        return false;
    }
    twin(to, from);
    attrs->over = ETCH_NEW_ARRAY(graph->arena, 2, etch_dim *);
    attrs->over[0] = from, attrs->over[1] = to, attrs->over_count = 2;
    map_one(graph, attrs, from, to);
    replace_dims(graph, ins[0], attrs, out);
    return true;
}

/* cache, when training: the one new dim among `want` takes the size of `over`. */
static bool cached_dims(etch_graph *graph, const etch_row *row, etch_tensor *const *ins, etch_attrs *attrs,
                        etch_dim *const *want, uint32_t want_rank, dim_list *out, etch_span span)
{
    if (attrs->over_count != 1 || !has_dims(graph, row, ins[0], attrs->over, 1, "over", span))
        return false;
    etch_dim *from = attrs->over[0], *to = NULL;
    uint32_t fresh = 0;
    for (uint32_t i = 0; want && i < want_rank; i++)
        if (want[i] && !etch_has_dim(ins[0], want[i]))
            to = want[i], fresh++;
    if (fresh != 1) {
        etch_diag *diag = etch_error(graph->diags, ETCH_E_SHAPE_MISMATCH, span,
                                     "%s needs declared result dims with one new dim in place of %s",
                                     row->name, from->name);
        etch_help(diag, "write kc[B,T,K,D] = %s(k, over = %s)", row->name, from->name);
        return false;
    }
    if (graph->serves)
        return appended_dims(graph, row, ins, attrs, to, out, span);
    etch_expr extra = etch_sub(graph->sym, to->size, from->size);
    if (!etch_is_zero(etch_subst(graph->sym, extra, graph->default_count, graph->default_vars,
                                 graph->default_values))) {
        etch_diag *diag = etch_error(graph->diags, ETCH_E_CACHE_NOT_EMPTY, span,
                                     "%s = %s is not %s = %s, but training starts with an empty cache",
                                     to->name, etch_expr_text(graph->sym, to->size), from->name,
                                     etch_expr_text(graph->sym, from->size));
        etch_note(diag, to->span, "%s is declared here", to->name);
        return false;
    }
    to->size = from->size;
    twin(to, from);
    map_one(graph, attrs, from, to);
    attrs->over_count = 0;
    replace_dims(graph, ins[0], attrs, out);
    return true;
}

static bool infer(etch_graph *graph, const etch_row *row, etch_tensor *const *ins, uint32_t count,
                  etch_attrs *attrs, etch_dim *const *want, uint32_t want_rank, dim_list *out, etch_span span)
{
    switch (row->shape) {
    case SHAPE_UNION:
        return union_dims(graph, ins, count, out);
    case SHAPE_FIRST:
        return first_dims(graph, row, ins, count, attrs, out, span);
    case SHAPE_ATTEND:
        return attend_dims(graph, row, ins, attrs, out, span);
    case SHAPE_LOOKUP:
        return lookup_dims(graph, row, ins, attrs, out, span);
    case SHAPE_LOSS:
        return loss_dims(graph, row, ins, count, attrs, span);
    case SHAPE_TOP:
        return top_dims(graph, row, ins, attrs, out, span);
    case SHAPE_CACHED:
        return cached_dims(graph, row, ins, attrs, want, want_rank, out, span);
    case SHAPE_RENAMED:
        replace_dims(graph, ins[0], attrs, out);
        return true;
    case SHAPE_KEPT: /* a call of `sum`: all but `over` */
        if (!has_dims(graph, row, ins[0], attrs->over, attrs->over_count, "over", span))
            return false;
        for (uint32_t i = 0; i < ins[0]->rank; i++)
            if (!etch_dim_among(attrs->over, attrs->over_count, ins[0]->dims[i]))
                add_dim(graph, out, ins[0]->dims[i]);
        attrs->over_count = 0; /* the kept dims say it */
        return true;
    case SHAPE_TARGETS:
        break;
    }
    return false;
}

etch_tensor *etch_graph_call(etch_graph *graph, const etch_row *row, etch_tensor *const *ins,
                             uint32_t in_count, const etch_attrs *attrs, etch_dim *const *want,
                             uint32_t want_rank, etch_span span)
{
    if (!operands_are_there(ins, in_count))
        return NULL;
    dim_list dims = {0};
    etch_attrs used = attrs ? *attrs : (etch_attrs){0};
    if (!infer(graph, row, ins, in_count, &used, want, want_rank, &dims, span))
        return NULL;
    if (want && !same_dims(dims.at, dims.count, want, want_rank)) {
        for (uint32_t i = 0; i < want_rank; i++)
            if (!want[i])
                return NULL; /* reported where the dim was looked up */
        etch_error(graph->diags, ETCH_E_SHAPE_MISMATCH, span, "%s gives %s, declared is %s", row->name,
                   etch_dims_text(graph->arena, dims.at, dims.count),
                   etch_dims_text(graph->arena, want, want_rank));
        return NULL;
    }
    if (graph->serves && row->serving)
        row = etch_row_named(row->serving);
    return emit(graph, row, ins, in_count, &used, &dims, span);
}

/* ---- operators -------------------------------------------------------------------------------------- */

/* Does `a` have dims that neither `b` nor the result has? They would be summed alone, which is nearly always
 * a slip. */
static bool sums_alone(etch_graph *graph, const etch_tensor *a, const etch_tensor *b, etch_dim *const *keep,
                       uint32_t rank, etch_span span)
{
    for (uint32_t i = 0; i < a->rank; i++) {
        if (etch_has_dim(b, a->dims[i]) || etch_dim_among(keep, rank, a->dims[i]))
            continue;
        const char *dim = a->dims[i]->name;
        etch_diag *diag = etch_error(
            graph->diags, ETCH_E_SUMMED_ALONE, span,
            "dim %s of %s%s is neither in the other factor %s%s nor in the result %s", dim, a->name,
            etch_dims_text(graph->arena, a->dims, a->rank), b->name,
            etch_dims_text(graph->arena, b->dims, b->rank), etch_dims_text(graph->arena, keep, rank));
        etch_help(diag,
                  "add %s to the declared dims of the result, or write sum(.., over = %s) if it is to be "
                  "summed by itself",
                  dim, dim);
        return true;
    }
    return false;
}

static bool contains(const etch_tensor *a, const etch_tensor *b)
{
    for (uint32_t i = 0; i < b->rank; i++)
        if (!etch_has_dim(a, b->dims[i]))
            return false;
    return true;
}

etch_tensor *etch_graph_product(etch_graph *graph, etch_tensor *a, etch_tensor *b, etch_dim *const *keep,
                                uint32_t keep_rank, etch_span span)
{
    if (!a || !b)
        return NULL;
    etch_tensor *ins[] = {a, b};
    dim_list dims = {0};
    if (!keep && !contains(a, b) && !contains(b, a)) {
        etch_diag *diag = etch_error(graph->diags, ETCH_E_AMBIGUOUS_PRODUCT, span,
                                     "product of %s%s and %s%s: outer product or contraction?", a->name,
                                     etch_dims_text(graph->arena, a->dims, a->rank), b->name,
                                     etch_dims_text(graph->arena, b->dims, b->rank));
        etch_help(diag, "declare the dims of the result in a statement of its own: y[..] = %s * %s", a->name,
                  b->name);
        return NULL;
    }
    if (keep &&
        (sums_alone(graph, a, b, keep, keep_rank, span) || sums_alone(graph, b, a, keep, keep_rank, span)))
        return NULL;
    for (uint32_t i = 0; i < 2; i++)
        for (uint32_t d = 0; d < ins[i]->rank; d++)
            if (!keep || etch_dim_among(keep, keep_rank, ins[i]->dims[d]))
                add_dim(graph, &dims, ins[i]->dims[d]);
    return emit(graph, etch_row_named("einsum"), ins, 2, NULL, &dims, span);
}

etch_tensor *etch_graph_sum(etch_graph *graph, etch_tensor *a, etch_tensor *b, bool subtract, etch_span span)
{
    etch_tensor *ins[] = {a, b};
    return etch_graph_call(graph, etch_row_named(subtract ? "sub" : "add"), ins, 2, NULL, NULL, 0, span);
}

etch_tensor *etch_graph_reduce(etch_graph *graph, etch_tensor *a, etch_dim *const *keep, uint32_t keep_rank,
                               etch_span span)
{
    if (!a)
        return NULL;
    dim_list dims = {0};
    for (uint32_t i = 0; i < a->rank; i++)
        if (etch_dim_among(keep, keep_rank, a->dims[i]))
            add_dim(graph, &dims, a->dims[i]);
    if (dims.count == a->rank)
        return a;
    return emit(graph, etch_row_named("sum"), &a, 1, NULL, &dims, span);
}

etch_tensor *etch_graph_rename(etch_graph *graph, etch_tensor *a, etch_dim *const *from, etch_dim *const *to,
                               uint32_t count, etch_span span)
{
    if (!a)
        return NULL;
    etch_attrs attrs = {.map_count = count};
    attrs.from = ETCH_NEW_ARRAY(graph->arena, count, etch_dim *);
    attrs.to = ETCH_NEW_ARRAY(graph->arena, count, etch_dim *);
    for (uint32_t i = 0; i < count; i++) {
        if (!from[i] || !to[i])
            return NULL;
        attrs.from[i] = from[i], attrs.to[i] = to[i];
        if (!etch_has_dim(a, from[i])) {
            etch_error(graph->diags, ETCH_E_MISSING_DIM, span, "%s%s has no dim %s to rename", a->name,
                       etch_dims_text(graph->arena, a->dims, a->rank), from[i]->name);
            return NULL;
        }
        if (etch_equal(graph->sym, from[i]->size, to[i]->size, NULL) != ETCH_YES) {
            etch_error(graph->diags, ETCH_E_UNEQUAL_SIZES, span,
                       "%s = %s and %s = %s are not known to be equal", from[i]->name,
                       etch_expr_text(graph->sym, from[i]->size), to[i]->name,
                       etch_expr_text(graph->sym, to[i]->size));
            return NULL;
        }
        twin(to[i], from[i]);
    }
    return etch_graph_call(graph, etch_row_named("rename"), &a, 1, &attrs, NULL, 0, span);
}

/* ---- scopes and loops ------------------------------------------------------------------------------- */

void etch_graph_enter(etch_graph *graph, const char *module, etch_span call)
{
    etch_scope *scope = ETCH_NEW(graph->arena, etch_scope);
    *scope = (etch_scope){.module = module, .parent = graph->scope, .id = graph->scopes.count, .span = call};
    ETCH_PUSH(graph->arena, &graph->scopes, scope);
    graph->scope = scope;
}

void etch_graph_leave(etch_graph *graph)
{
    graph->scope = graph->scope->parent;
}

etch_tensor *etch_graph_pass(etch_graph *graph, etch_edge edge, etch_tensor *value, const char *name,
                             etch_span span)
{
    etch_tensor *passed = etch_graph_call(graph, etch_row_named("identity"), &value, 1, NULL, NULL, 0, span);
    if (!passed)
        return NULL;
    passed->producer->edge = edge;
    passed->name = name;
    return passed;
}

etch_loop *etch_graph_begin(etch_graph *graph, const char *name, etch_expr count, etch_span span)
{
    etch_loop *loop = ETCH_NEW(graph->arena, etch_loop);
    *loop = (etch_loop){.name = name, .count = count, .id = graph->loop_count++, .span = span};
    loop->body = ETCH_NEW(graph->arena, etch_region);
    loop->body->loop = loop;
    loop->body->parent = graph->region;
    ETCH_PUSH(graph->arena, &graph->region->items, (etch_item){.loop = loop});
    graph->region = loop->body;
    return loop;
}

etch_tensor *etch_graph_carry(etch_graph *graph, etch_tensor *init, etch_span span)
{
    if (!init)
        return NULL;
    etch_tensor *in = etch_tensor_new(graph, init->name, ETCH_ACT, init->dtype, init->dims, init->rank, span);
    ETCH_PUSH(graph->arena, &graph->region->loop->carries, (etch_carry){.init = init, .in = in});
    return in;
}

void etch_graph_end(etch_graph *graph, etch_tensor *const *outs, etch_tensor **results, uint32_t count)
{
    etch_loop *loop = graph->region->loop;
    graph->region = graph->region->parent;
    for (uint32_t i = 0; i < count && i < loop->carries.count; i++) {
        etch_carry *carry = &loop->carries.at[i];
        const etch_tensor *in = carry->in;
        carry->out = outs[i] ? outs[i] : carry->in;
        if (outs[i] && !same_dims(in->dims, in->rank, outs[i]->dims, outs[i]->rank))
            etch_error(graph->diags, ETCH_E_CARRIED_TYPE, outs[i]->span,
                       "%s enters the loop as %s and leaves an iteration as %s", in->name,
                       etch_dims_text(graph->arena, in->dims, in->rank),
                       etch_dims_text(graph->arena, outs[i]->dims, outs[i]->rank));
        carry->result = etch_tensor_new(graph, in->name, ETCH_ACT, in->dtype, in->dims, in->rank, loop->span);
        results[i] = carry->result;
    }
}

/* ---- dtypes and phases ------------------------------------------------------------------------------ */

static const struct {
    const char *name;
    uint32_t bytes;
} dtypes[ETCH_DTYPE_COUNT] = {
    [ETCH_F64] = {"f64", 8}, [ETCH_F32] = {"f32", 4}, [ETCH_BF16] = {"bf16", 2},
    [ETCH_F16] = {"f16", 2}, [ETCH_F8] = {"f8", 1},   [ETCH_I64] = {"i64", 8},
    [ETCH_I32] = {"i32", 4}, [ETCH_I8] = {"i8", 1},   [ETCH_BOOL] = {"bool", 1},
};

const char *etch_dtype_name(etch_dtype dtype)
{
    return dtypes[dtype].name;
}
uint32_t etch_dtype_bytes(etch_dtype dtype)
{
    return dtypes[dtype].bytes;
}

etch_dtype etch_dtype_of(const char *name)
{
    for (int i = 0; i < ETCH_DTYPE_COUNT; i++)
        if (strcmp(dtypes[i].name, name) == 0)
            return (etch_dtype)i;
    return ETCH_DTYPE_COUNT;
}

static const char *label_of(const etch_scope *scope, const char *const *labels)
{
    return labels ? labels[scope->id] : scope->module;
}

const char *etch_scope_path(etch_arena *arena, const etch_scope *scope, const char *const *labels)
{
    size_t length = 0;
    for (const etch_scope *s = scope; s; s = s->parent)
        length += strlen(label_of(s, labels)) + 1;
    char *path = etch_alloc(arena, length), *at = path + length;
    for (const etch_scope *s = scope; s; s = s->parent) {
        const char *label = label_of(s, labels);
        *--at = s == scope ? '\0' : '.';
        at -= strlen(label);
        memcpy(at, label, strlen(label));
    }
    return path;
}

const char *etch_phase_name(etch_phase phase)
{
    static const char *const names[ETCH_PHASE_COUNT] = {"forward", "recompute", "backward", "sync",
                                                        "optimizer"};
    return names[phase];
}
