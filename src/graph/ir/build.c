/* The builder: forward graphs, one checked call at a time. */
#include <string.h>

#include "graph/ir/ir_int.h"

/* ---- dims and tensors ------------------------------------------------------------------------------- */

etch_dim *etch_graph_dim(etch_graph *graph, const char *name, etch_expr size, bool average_sized,
                         etch_span span)
{
    if (!size)
        return NULL;
    etch_dim *dim = ETCH_NEW(graph->arena, etch_dim);
    *dim = (etch_dim){
        .name = name, .size = size, .average_sized = average_sized, .id = graph->dims.count, .span = span};
    ETCH_PUSH(graph->arena, &graph->dims, dim);
    return dim;
}

etch_tensor *etch_tensor_new(etch_graph *graph, const char *name, etch_kind kind, etch_dtype dtype,
                             etch_dim_view dims, etch_span span)
{
    etch_tensor *tensor = ETCH_NEW(graph->arena, etch_tensor);
    etch_dim **copy = ETCH_NEW_ARRAY(graph->arena, dims.count, etch_dim *);
    for (uint32_t i = 0; i < dims.count; i++)
        copy[i] = dims.at[i];
    *tensor = (etch_tensor){.id = graph->tensors.count,
                            .name = name,
                            .kind = kind,
                            .dtype = dtype,
                            .dims = copy,
                            .rank = dims.count,
                            .region = graph->region,
                            .scope = graph->scope,
                            .span = span};
    ETCH_PUSH(graph->arena, &graph->tensors, tensor);
    return tensor;
}

/* Are all dims there, and each once? Reports a repeated one. */
static bool dims_are_distinct(etch_graph *graph, const char *name, etch_dim_view dims, etch_span span)
{
    for (uint32_t i = 0; i < dims.count; i++) {
        const etch_dim *dim = dims.at[i];
        if (!dim)
            return false;
        if (!etch_dim_among((etch_dim_view){dims.at, i}, dim))
            continue;
        etch_diag *diag =
            etch_error(graph->diags, ETCH_E_DIM_TWICE, span, "%s has dim %s twice", name, dim->name);
        return etch_help(diag, "write %s' for a second dim of the same size", dim->name);
    }
    return true;
}

etch_tensor *etch_graph_input(etch_graph *graph, const char *name, etch_dim_view dims, etch_dtype dtype,
                              etch_span span)
{
    if (!dims_are_distinct(graph, name, dims, span))
        return NULL;
    return etch_tensor_new(graph, name, ETCH_INPUT, dtype, dims, span);
}

etch_tensor *etch_graph_weight(etch_graph *graph, const char *name, etch_dim_view dims, etch_dtype dtype,
                               bool frozen, etch_span span)
{
    if (!dims_are_distinct(graph, name, dims, span))
        return NULL;
    etch_tensor *weight = etch_tensor_new(graph, name, ETCH_WEIGHT, dtype, dims, span);
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

bool etch_has_tag(const etch_tensor *tensor, const char *tag)
{
    for (uint32_t i = 0; i < tensor->tag_count; i++)
        if (strcmp(tensor->tags[i], tag) == 0)
            return true;
    return false;
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

static const etch_tensor *like_which(const etch_op *op)
{
    for (uint32_t slot = 0; slot < 32; slot++)
        if (op->row->extra.like == ETCH_EXTRA_OF(slot))
            return op->ins[etch_op_index(op, slot)];
    return op->outs[0];
}

/* Dims of `from` less `over` and `dot`. */
static void add_rows(etch_graph *graph, const etch_op *op, const etch_tensor *from, etch_dim_list *dims)
{
    for (uint32_t i = 0; i < from->rank; i++) {
        etch_dim *dim = from->dims[i];
        bool gone = etch_dim_among(op->attrs.over, dim) || etch_dim_among(op->attrs.dot, dim);
        if (!gone)
            etch_dim_add(graph, dims, dim);
    }
}

/* The result beside the first, if the row has one. */
static void add_extra(etch_graph *graph, etch_op *op)
{
    etch_dim_list dims = {0};
    add_rows(graph, op, like_which(op), &dims);
    for (uint32_t slot = 0; slot < 32; slot++)
        if (op->row->extra_reads & ETCH_EXTRA_OF(slot))
            add_rows(graph, op, op->ins[etch_op_index(op, slot)], &dims);
    const etch_extra *extra = &op->row->extra;
    for (uint32_t i = 0; op->row->stays & ETCH_EXTRA_OF(1) && i < op->attrs.state.count; i++)
        etch_dim_add(graph, &dims, op->attrs.state.at[i]);
    op->outs[1] = etch_tensor_new(graph, extra->name, ETCH_ACT, extra->dtype, ETCH_DIMS(dims), op->span);
    if (extra->dtype_as_result)
        op->outs[1]->dtype = op->outs[0]->dtype;
    op->outs[1]->optional_result = true;
}

/* The class, or wider where an operand is, because a spec says so: `cast` widens what follows. */
static void promote(const etch_graph *graph, const etch_op *op, etch_tensor *result)
{
    result->dtype = graph->dtypes.act;
    for (uint32_t i = 0; i < op->in_count; i++) {
        const etch_tensor *x = op->ins[i];
        const etch_dtype both = etch_dtype_promoted(result->dtype, x->dtype);
        if (!x->dtype_of || !etch_dtype_is_real(x->dtype) || both == result->dtype)
            continue;
        result->dtype = both;
        result->dtype_of = x->dtype_of;
    }
}

static void give_dtype(const etch_graph *graph, const etch_op *op, etch_tensor *result)
{
    switch (op->row->dtype) {
    case ETCH_RESULT_ACT:
        promote(graph, op, result);
        break;
    case ETCH_RESULT_F32:
        result->dtype = ETCH_F32;
        break;
    case ETCH_RESULT_I32:
        result->dtype = ETCH_I32;
        break;
    case ETCH_RESULT_SAID:
        result->dtype = (etch_dtype)(op->attrs.dtype - 1);
        result->dtype_of = result;
        break;
    case ETCH_RESULT_AS_OPERAND:
        result->dtype = op->ins[0]->dtype;
        result->dtype_of = op->ins[0]->dtype_of;
        break;
    }
}

/* Result `i` of an op, with the dtype that its row says. */
static etch_tensor *make_result(etch_graph *graph, const etch_op *op, uint32_t i, const etch_dim_list *dims)
{
    const etch_dtype act = graph->dtypes.act;
    op->outs[i] = etch_tensor_new(graph, op->row->name, ETCH_ACT, act, ETCH_DIMS(*dims), op->span);
    give_dtype(graph, op, op->outs[i]);
    return op->outs[i];
}

/* Adds an op whose result has `dims` to the region in work. */
static etch_tensor *emit(etch_graph *graph, const etch_row *row, etch_tensor *const *ins, uint32_t in_count,
                         const etch_attrs *attrs, const etch_dim_list *dims, etch_span span)
{
    if (!dims_are_distinct(graph, "the result", ETCH_DIMS(*dims), span))
        return NULL;
    etch_op *op = etch_op_new(graph, row, ins, in_count, row->extra.name ? 2 : 1, attrs, ETCH_FORWARD, span);
    make_result(graph, op, 0, dims);
    if (row->extra.name)
        add_extra(graph, op);
    etch_region_add_op(graph, graph->region, op);
    return op->outs[0];
}

static bool is_declared(etch_dim_view declared, const etch_dim *dim)
{
    for (uint32_t i = 0; i < declared.count; i++)
        if (etch_dim_is_meant(dim, declared.at[i]))
            return true;
    return false;
}

/* Of a term of a sum: what it lacks, another term has; a statement checks the sum. */
static bool are_among(const etch_dim_list *some, etch_dim_view all)
{
    for (uint32_t i = 0; i < some->count; i++)
        if (!is_declared(all, some->at[i]))
            return false;
    return true;
}

static bool operands_are_there(etch_tensor *const *ins, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (!ins[i])
            return false;
    return true;
}

/* Dims that the call names are those of its operands. */
static void settle_dims(etch_call *call)
{
    const etch_keyword_info *info;
    for (uint32_t i = 0; (info = etch_keyword_at(i)) != NULL; i++) {
        if (info->kind == ETCH_KIND_DIMS)
            etch_dims_mean(call->graph, etch_keyword_field_of(info, &call->attrs).dims, call->ins,
                           call->in_count);
    }
    etch_dims_mean(call->graph, &call->want, call->ins, call->in_count);
}

/* ---- calls ----------------------------------------------------------------------------------------- */

bool etch_dims_have_elements(const etch_graph *graph, etch_dim_view dims)
{
    for (uint32_t i = 0; i < dims.count; i++) {
        const etch_dim *dim = dims.at[i];
        if (!dim || !etch_is_zero(dim->size))
            continue;
        etch_error(graph->diags, ETCH_E_BOUND_SIZE, dim->span, "dim %s = 0 is less than 1", dim->name);
        return false;
    }
    return true;
}

/* A sum over dims, times one over their size in the whole job. */
static etch_tensor *average(etch_graph *graph, etch_tensor *x, const etch_attrs *attrs, etch_dim_view want,
                            etch_span span)
{
    etch_dim_view over = attrs->over;
    etch_dims_mean(graph, &over, &x, 1);
    if (!etch_dims_have_elements(graph, over))
        return NULL;
    etch_tensor *sum =
        etch_graph_call(graph, etch_row_for(graph, ETCH_USE_REDUCTION), &x, 1, attrs, want, span);
    if (!sum)
        return NULL;
    const etch_expr count = etch_dims_size(graph->sym, over, NULL, NULL);
    return etch_graph_scale(graph, sum, etch_div(graph->sym, etch_int(graph->sym, 1), count), span);
}

/* Does another row take the place of this one when a model is served? */
static bool is_served_by_another(const etch_row *row, const etch_attrs *attrs)
{
    const etch_keyword_info *info;
    bool applies = row->serving && !row->serving_if;
    for (uint32_t i = 0; attrs && (info = etch_keyword_at(i)) != NULL; i++) {
        etch_attrs said = *attrs;
        const etch_keyword_field field = etch_keyword_field_of(info, &said);
        applies = applies || (row->serving_if & info->bit && etch_keyword_is_said(&field));
    }
    return applies;
}

etch_tensor *etch_graph_call(etch_graph *graph, const etch_row *row, etch_tensor *const *ins,
                             uint32_t in_count, const etch_attrs *attrs, etch_dim_view want, etch_span span)
{
    if (!operands_are_there(ins, in_count))
        return NULL;
    if (row->use == ETCH_USE_AVERAGE)
        return average(graph, ins[0], attrs, want, span);
    etch_dim_list dims = {0};
    const etch_row *called = row;
    if (graph->serves && is_served_by_another(row, attrs))
        row = etch_row_named(graph->table, row->serving);
    etch_call call = {.graph = graph,
                      .row = row,
                      .called = called,
                      .ins = ins,
                      .in_count = in_count,
                      .want = want,
                      .span = span};
    if (attrs)
        call.attrs = *attrs;
    settle_dims(&call);
    if (!etch_keywords_fit(&call))
        return NULL;
    if (row->compose)
        return row->compose(&call);
    if (!row->shape || !row->shape(&call, &dims))
        return NULL;
    if (want.at && !are_among(&dims, call.want)) {
        if (etch_dim_among(call.want, NULL))
            return NULL; /* reported where the dim was looked up */
        etch_error(graph->diags, ETCH_E_SHAPE_MISMATCH, span, "%s gives %s, declared is %s", called->name,
                   etch_dims_text(graph->arena, ETCH_DIMS(dims)), etch_dims_text(graph->arena, want));
        return NULL;
    }
    return emit(graph, row, ins, in_count, &call.attrs, &dims, span);
}

bool etch_graph_call_several(etch_graph *graph, const etch_row *row, etch_tensor *x, const etch_attrs *attrs,
                             const etch_dim_view *want, etch_tensor **out, uint32_t count, etch_span span)
{
    etch_call call = {
        .graph = graph, .row = row, .called = row, .ins = &x, .in_count = 1, .attrs = *attrs, .span = span};
    if (x)
        settle_dims(&call);
    if (!x || !etch_keywords_fit(&call) || !row->several(&call, want, count))
        return false;
    etch_op *op = etch_op_new(graph, row, &x, 1, count, &call.attrs, ETCH_FORWARD, span);
    for (uint32_t i = 0; i < count; i++) {
        etch_dim_list dims = {0};
        etch_part_dims(op, x, i, graph, &dims);
        out[i] = make_result(graph, op, i, &dims);
    }
    etch_region_add_op(graph, graph->region, op);
    return true;
}

etch_tensor *etch_graph_call_operands(etch_graph *graph, const etch_row *row, const etch_operands *operands,
                                      const etch_attrs *attrs, etch_dim_view want, etch_span span)
{
    etch_tensor *given[ETCH_MAX_OPERANDS];
    etch_attrs said = *attrs;
    uint32_t count = 0;
    for (uint32_t i = 0; i < operands->most; i++)
        if (operands->at[i])
            given[count++] = operands->at[i];
        else
            said.absent |= 1u << i;
    return etch_graph_call(graph, row, given, count, &said, want, span);
}

/* ---- operators -------------------------------------------------------------------------------------- */

/* Does `a` have dims that neither `b` nor the result has? They would be summed alone, which is nearly always
 * a slip. */
static bool sums_alone(etch_graph *graph, const etch_tensor *a, const etch_tensor *b, etch_dim_view keep,
                       etch_span span)
{
    for (uint32_t i = 0; i < a->rank; i++) {
        if (etch_has_dim(b, a->dims[i]) || etch_dim_among(keep, a->dims[i]))
            continue;
        const char *dim = a->dims[i]->name;
        etch_diag *diag = etch_error(graph->diags, ETCH_E_SUMMED_ALONE, span,
                                     "dim %s of %s is neither in the other factor %s nor in the result %s",
                                     dim, etch_tensor_text(graph->arena, a),
                                     etch_tensor_text(graph->arena, b), etch_dims_text(graph->arena, keep));
        etch_help(diag,
                  "add %s to the declared dims of the result, or write sum(.., over = %s) if it is to be "
                  "summed by itself",
                  dim, dim);
        return true;
    }
    return false;
}

/* Of two operands, by name: `use` is a product or a quotient. */
static etch_tensor *combine(etch_graph *graph, etch_use use, etch_tensor *a, etch_tensor *b,
                            etch_dim_view keep, etch_span span)
{
    const bool divides = use == ETCH_USE_QUOTIENT;
    if (!a || !b)
        return NULL;
    etch_tensor *ins[] = {a, b};
    etch_dims_mean(graph, &keep, ins, 2);
    etch_dim_list dims = {0};
    if (!keep.at && !etch_covers(a, b) && !etch_covers(b, a)) {
        etch_diag *diag =
            etch_error(graph->diags, ETCH_E_AMBIGUOUS_PRODUCT, span,
                       "%s of %s and %s: outer product or contraction?", divides ? "quotient" : "product",
                       etch_tensor_text(graph->arena, a), etch_tensor_text(graph->arena, b));
        etch_help(diag, "declare the dims of the result in a statement of its own: y[..] = %s %c %s", a->name,
                  divides ? '/' : '*', b->name);
        return NULL;
    }
    if (keep.at && (sums_alone(graph, a, b, keep, span) || sums_alone(graph, b, a, keep, span)))
        return NULL;
    for (uint32_t i = 0; i < 2; i++)
        for (uint32_t d = 0; d < ins[i]->rank; d++)
            if (!keep.at || etch_dim_among(keep, ins[i]->dims[d]))
                etch_dim_add(graph, &dims, ins[i]->dims[d]);
    return emit(graph, etch_row_for(graph, use), ins, 2, NULL, &dims, span);
}

etch_tensor *etch_graph_use(etch_graph *graph, etch_use use, etch_tensor *const *ins, uint32_t in_count,
                            const etch_attrs *attrs, etch_span span)
{
    return etch_graph_call(graph, etch_row_for(graph, use), ins, in_count, attrs, (etch_dim_view){0}, span);
}

etch_tensor *etch_graph_product(etch_graph *graph, etch_tensor *a, etch_tensor *b, etch_dim_view keep,
                                etch_span span)
{
    return combine(graph, ETCH_USE_PRODUCT, a, b, keep, span);
}

etch_tensor *etch_graph_quotient(etch_graph *graph, etch_tensor *a, etch_tensor *b, etch_dim_view keep,
                                 etch_span span)
{
    return combine(graph, ETCH_USE_QUOTIENT, a, b, keep, span);
}

etch_tensor *etch_graph_sum(etch_graph *graph, etch_tensor *const *terms, uint32_t count, uint32_t added,
                            etch_span span)
{
    etch_tensor *ins[ETCH_MAX_OPERANDS], *sum = terms[0];
    for (uint32_t next = 1; next < count && sum;) {
        etch_attrs attrs = {0};
        uint32_t used = 0;
        for (ins[used++] = sum; used < ETCH_MAX_OPERANDS && next < count; used++) {
            attrs.taken |= (uint32_t)(next >= added) << used;
            ins[used] = terms[next++];
        }
        const bool is_pair = used == 2 && attrs.taken;
        const etch_row *row = etch_row_for(graph, is_pair ? ETCH_USE_DIFFERENCE : ETCH_USE_SUM);
        sum = etch_graph_call(graph, row, ins, used, is_pair ? NULL : &attrs, (etch_dim_view){0}, span);
    }
    return sum;
}

etch_tensor *etch_graph_reduce(etch_graph *graph, etch_tensor *a, etch_dim_view keep, etch_span span)
{
    if (!a)
        return NULL;
    etch_dim_list dims = {0};
    for (uint32_t i = 0; i < a->rank; i++)
        if (is_declared(keep, a->dims[i]))
            etch_dim_add(graph, &dims, a->dims[i]);
    if (dims.count == a->rank)
        return a;
    return emit(graph, etch_row_for(graph, ETCH_USE_REDUCTION), &a, 1, NULL, &dims, span);
}

static etch_tensor *with_number(etch_graph *graph, etch_use use, etch_tensor *x, etch_expr number,
                                etch_span span)
{
    const etch_attrs attrs = {.number = number};
    return number ? etch_graph_use(graph, use, &x, 1, &attrs, span) : NULL;
}

etch_tensor *etch_graph_scale(etch_graph *graph, etch_tensor *x, etch_expr number, etch_span span)
{
    return with_number(graph, ETCH_USE_SCALE, x, number, span);
}

etch_tensor *etch_graph_shift(etch_graph *graph, etch_tensor *x, etch_expr number, etch_span span)
{
    return with_number(graph, ETCH_USE_SHIFT, x, number, span);
}

etch_tensor *etch_graph_reciprocal(etch_graph *graph, etch_tensor *x, etch_span span)
{
    return etch_graph_use(graph, ETCH_USE_RECIPROCAL, &x, 1, NULL, span);
}

etch_tensor *etch_graph_constant(etch_graph *graph, etch_dim_view dims, etch_expr number, etch_span span)
{
    const etch_dtype dtype = number ? graph->dtypes.act : ETCH_I32;
    if (!dims_are_distinct(graph, "the result", dims, span))
        return NULL;
    etch_tensor *tensor = etch_tensor_new(graph, "constant", ETCH_CONSTANT, dtype, dims, span);
    etch_constant *constant = ETCH_NEW(graph->arena, etch_constant);
    constant->number = number;
    tensor->constant = constant;
    return tensor;
}

etch_tensor *etch_graph_copies(etch_graph *graph, etch_tensor *x, etch_dim_view to, etch_span span)
{
    const etch_row *row = etch_row_for(graph, ETCH_USE_BROADCAST);
    return etch_graph_call(graph, row, &x, 1, NULL, to, span);
}

etch_tensor *etch_graph_alias(etch_graph *graph, etch_tensor *x, etch_span span)
{
    return etch_graph_use(graph, ETCH_USE_COPY, &x, 1, NULL, span);
}

/* ---- scopes and loops ------------------------------------------------------------------------------- */

void etch_graph_enter(etch_graph *graph, const char *module, etch_span call)
{
    etch_scope *scope = ETCH_NEW(graph->arena, etch_scope);
    *scope = (etch_scope){.module = module,
                          .parent = graph->scope,
                          .region = graph->region,
                          .id = graph->scopes.count,
                          .span = call};
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
    etch_tensor *passed = etch_graph_alias(graph, value, span);
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
    ETCH_PUSH(graph->arena, &graph->region->items, (etch_item){.loop = loop});
    graph->region = etch_loop_add_body(graph, loop, graph->region);
    return loop;
}

etch_tensor *etch_graph_carry(etch_graph *graph, etch_tensor *init, etch_span span)
{
    if (!init)
        return NULL;
    etch_tensor *in = etch_tensor_new(graph, init->name, ETCH_ACT, init->dtype, etch_dims_of(init), span);
    in->dtype_of = init->dtype_of;
    ETCH_PUSH(graph->arena, &graph->region->carries, (etch_carry){.init = init, .in = in});
    return in;
}

/* The body in work ends with these versions of its loop-carried values. */
static void end_body(etch_graph *graph, etch_tensor *const *outs, uint32_t count)
{
    etch_region *body = graph->region;
    for (uint32_t i = 0; i < count && i < body->carries.count; i++) {
        etch_carry *carry = &body->carries.at[i];
        const etch_tensor *in = carry->in;
        carry->out = outs[i] ? outs[i] : carry->in;
        const bool same = !outs[i] || etch_dims_same(etch_dims_of(in), etch_dims_of(outs[i]));
        if (same && (!outs[i] || in->dtype == outs[i]->dtype))
            continue;
        etch_diag *diag =
            etch_error(graph->diags, ETCH_E_CARRIED_TYPE, outs[i]->span,
                       "%s enters the loop as %s: %s and leaves an iteration as %s: %s", in->name,
                       etch_dims_text(graph->arena, etch_dims_of(in)), etch_dtype_name(in->dtype),
                       etch_dims_text(graph->arena, etch_dims_of(outs[i])), etch_dtype_name(outs[i]->dtype));
        if (same)
            etch_help(diag, "say its dtype where the loop assigns it: %s%s: %s = ..", in->name,
                      etch_dims_text(graph->arena, etch_dims_of(in)), etch_dtype_name(in->dtype));
    }
}

void etch_graph_next_body(etch_graph *graph, etch_tensor *const *outs, etch_tensor **ins, uint32_t count)
{
    const etch_region *body = graph->region;
    end_body(graph, outs, count);
    graph->region = etch_loop_add_body(graph, body->loop, body->parent);
    for (uint32_t i = 0; i < body->carries.count; i++) {
        const etch_tensor *first = body->carries.at[i].in;
        etch_tensor *in = etch_graph_carry(graph, body->carries.at[i].init, first->span);
        in->name = first->name;
        if (i < count)
            ins[i] = in;
    }
}

/* Takes a loop out of its region, whose last item it is: nothing of it runs. */
static void leave_out(etch_graph *graph, etch_loop *loop)
{
    graph->region->items.count--;
    ETCH_PUSH(graph->arena, &graph->idle_loops, loop);
}

static etch_tensor *loop_result(etch_graph *graph, const etch_loop *loop, const etch_carry *carry)
{
    const etch_tensor *in = carry->in;
    etch_tensor *result = etch_tensor_new(graph, in->name, ETCH_ACT, in->dtype, etch_dims_of(in), loop->span);
    result->dtype_of = in->dtype_of;
    return result;
}

void etch_graph_end(etch_graph *graph, etch_tensor *const *outs, etch_tensor **results, uint32_t count)
{
    etch_loop *loop = graph->region->loop;
    const bool is_idle = etch_at_least(graph->sym, etch_int(graph->sym, 0), loop->count, NULL) == ETCH_YES;
    end_body(graph, outs, count);
    graph->region = graph->region->parent;
    for (uint32_t i = 0; i < count && i < etch_loop_carries(loop)->count; i++) {
        const etch_carry *carry = &etch_loop_carries(loop)->at[i];
        results[i] = is_idle ? carry->init : loop_result(graph, loop, carry);
        etch_loop_set_result(loop, i, results[i]);
    }
    if (is_idle)
        leave_out(graph, loop);
}

/* ---- names --------------------------------------------------------------------------------------------- */

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
    return (unsigned)phase < ETCH_PHASE_COUNT ? names[phase] : NULL;
}
