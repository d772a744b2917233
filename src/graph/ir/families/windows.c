/* Ops that slide a window along `over`: convolutions, whose window is the dims `kernel` of a
 * second operand, and pooling, whose window is `size` long. The result has the dims `over`, or new ones in
 * place of them, `stride` times shorter: zeros around the operand see to that ("same" padding; all of them
 * before the first element when it is causal). */
#include "graph/ir/families/family.h"

/* ---- shape --------------------------------------------------------------------------------------- */

static etch_expr stride_of(const etch_call *call)
{
    return call->attrs.stride ? call->attrs.stride : etch_int(call->graph->sym, 1);
}

/* The operand with the kernel; NULL for pooling. */
static const etch_tensor *weight_of(const etch_call *call)
{
    return call->in_count > 1 ? call->ins[1] : NULL;
}

static bool kernel_fits(const etch_call *call)
{
    const etch_attrs *attrs = &call->attrs;
    const etch_tensor *x = call->ins[0], *w = weight_of(call);
    if (!etch_shape_has(call, x, attrs->over, "over"))
        return false;
    if (!w)
        return true;
    if (!etch_shape_has(call, w, attrs->kernel, "kernel"))
        return false;
    if (attrs->kernel.count != attrs->over.count) {
        etch_diag *diag = etch_error(
            call->graph->diags, ETCH_E_SHAPE_MISMATCH, call->span, "%s slides a window of %u dim%s along %u",
            call->called->name, attrs->kernel.count, attrs->kernel.count == 1 ? "" : "s", attrs->over.count);
        return etch_help(diag, "name one dim of the kernel for each: over = (Y,X), kernel = (KY,KX)");
    }
    const etch_tensor *sides[] = {x, w};
    const etch_dim_view lists[] = {attrs->kernel, attrs->over};
    for (uint32_t s = 0; s < 2; s++)
        for (uint32_t i = 0; i < attrs->over.count; i++)
            if (etch_has_dim(sides[s], lists[s].at[i])) {
                return etch_call_refuse(call, ETCH_E_SHAPE_MISMATCH,
                                        "%s has %s, which the other operand is to have alone",
                                        etch_call_tensor(call, sides[s]), lists[s].at[i]->name);
            }
    return true;
}

/* Without declared dims nothing is summed: those of both operands, less the window. */
static void default_dims(const etch_call *call, etch_dim_list *out)
{
    const etch_tensor *x = call->ins[0], *w = weight_of(call);
    etch_dims_add_beside(call, out, x, (etch_dim_view){0});
    if (w)
        etch_dims_add_beside(call, out, w, call->attrs.kernel);
}

static bool wrong_result(const etch_call *call, const char *why)
{
    etch_graph *graph = call->graph;
    etch_diag *diag = etch_error(graph->diags, ETCH_E_SHAPE_MISMATCH, call->span, "%s of %s cannot be %s: %s",
                                 call->called->name, etch_call_tensor(call, call->ins[0]),
                                 etch_call_dims(call, call->want), why);
    return etch_help(diag, "the result has the dims %s, or one new dim in place of each of them",
                     etch_call_dims(call, call->attrs.over));
}

/* Dims of the operands that the result lacks are summed, when both have them, or replaced. */
static bool operands_fit(const etch_call *call)
{
    const etch_tensor *x = call->ins[0], *w = weight_of(call);
    const etch_attrs *attrs = &call->attrs;
    for (uint32_t i = 0; i < x->rank; i++)
        if (!etch_dim_among(call->want, x->dims[i]) && !etch_dim_among(attrs->over, x->dims[i]) &&
            !(w && etch_has_dim(w, x->dims[i])))
            return wrong_result(call, etch_text(call->graph->arena, "%s is not summed", x->dims[i]->name));
    for (uint32_t i = 0; w && i < w->rank; i++)
        if (!etch_dim_among(call->want, w->dims[i]) && !etch_dim_among(attrs->kernel, w->dims[i]) &&
            !etch_has_dim(x, w->dims[i]))
            return wrong_result(
                call, etch_text(call->graph->arena, "%s of %s is not summed", w->dims[i]->name, w->name));
    return true;
}

/* Pairs the dims `over` that are replaced with the declared dims that no operand has, in order. */
static bool pair_dims(const etch_call *call, etch_attrs *attrs)
{
    etch_arena *arena = call->graph->arena;
    const etch_tensor *w = weight_of(call);
    etch_dim_list from = {0}, to = {0};
    for (uint32_t i = 0; i < attrs->over.count; i++)
        if (!etch_dim_among(call->want, attrs->over.at[i]))
            ETCH_PUSH(arena, &from, attrs->over.at[i]);
    for (uint32_t i = 0; i < call->want.count; i++) {
        etch_dim *dim = call->want.at[i];
        if (!dim)
            return false;
        if (!etch_has_dim(call->ins[0], dim) && !(w && etch_has_dim(w, dim)))
            ETCH_PUSH(arena, &to, dim);
    }
    attrs->from = ETCH_DIMS(from);
    attrs->to = ETCH_DIMS(to);
    return from.count == to.count || wrong_result(call, etch_text(arena, "%u new dim%s for %u", to.count,
                                                                  to.count == 1 ? "" : "s", from.count));
}

static bool strides_fit(const etch_call *call, const etch_attrs *attrs)
{
    etch_graph *graph = call->graph;
    etch_expr stride = stride_of(call);
    for (uint32_t i = 0; i < attrs->to.count; i++) {
        etch_expr reached = etch_mul(graph->sym, attrs->to.at[i]->size, stride);
        if (etch_equal(graph->sym, reached, attrs->from.at[i]->size, NULL) == ETCH_YES)
            continue;
        etch_diag *diag =
            etch_call_error(call, ETCH_E_UNEQUAL_SIZES,
                            "%s = %s times the stride %s is not known to be %s = %s", attrs->to.at[i]->name,
                            etch_call_number(call, attrs->to.at[i]->size), etch_call_number(call, stride),
                            attrs->from.at[i]->name, etch_call_number(call, attrs->from.at[i]->size));
        return etch_note(diag, attrs->to.at[i]->span, "%s is declared here", attrs->to.at[i]->name);
    }
    if (attrs->to.count == attrs->over.count || stride == etch_int(graph->sym, 1))
        return true;
    etch_diag *diag =
        etch_error(graph->diags, ETCH_E_SHAPE_MISMATCH, call->span,
                   "%s with a stride of %s needs declared result dims with a new dim in place of each of %s",
                   call->called->name, etch_call_number(call, stride), etch_call_dims(call, attrs->over));
    return etch_help(diag, "write y[B,Y',M] = %s(..., stride = %s), where Y' is %s times shorter",
                     call->called->name, etch_call_number(call, stride), etch_call_number(call, stride));
}

static bool slide(etch_call *call, etch_dim_list *out)
{
    if (!kernel_fits(call))
        return false;
    if (!call->want.at) {
        default_dims(call, out);
        return strides_fit(call, &call->attrs);
    }
    if (!operands_fit(call) || !pair_dims(call, &call->attrs) || !strides_fit(call, &call->attrs))
        return false;
    etch_dims_add(call, out, call->want);
    return true;
}

/* A dim of the places before a run that its first window sees: all of the window but one. */
static etch_dim *places_before(const etch_call *call)
{
    etch_graph *graph = call->graph;
    const etch_dim *kernel = call->attrs.kernel.at[0];
    const etch_expr size = etch_sub(graph->sym, kernel->size, etch_int(graph->sym, 1));
    etch_dim *dim =
        etch_graph_dim(graph, etch_text(graph->arena, "%s-1", kernel->name), size, false, kernel->span);
    dim->may_be_empty = true;
    return dim;
}

/* When serving, along one dim and at each place: what the last windows have seen goes into the next run. */
static bool slide_on(etch_call *call, etch_dim_list *out)
{
    const etch_attrs *attrs = &call->attrs;
    if (!slide(call, out))
        return false;
    if (attrs->over.count > 1 || stride_of(call) != etch_int(call->graph->sym, 1))
        return etch_call_later(
            call, "(.., causal = true) with a stride, or along several dims, while serving,", "");
    etch_dim **state = ETCH_NEW_ARRAY(call->graph->arena, 1, etch_dim *);
    state[0] = places_before(call);
    call->attrs.state = (etch_dim_view){state, 1};
    return true;
}

/* ---- FLOP ---------------------------------------------------------------------------------------- */

/* Sizes, but 1 for a dim that shorter ones replace: a window stops at the places of those. */
static etch_expr size_of_stops(const void *data, const etch_dim *dim)
{
    const etch_flop_call *call = data;
    const etch_attrs *attrs = &call->op->attrs;
    return etch_dim_among(attrs->from, dim) ? etch_int(call->sym, 1) : etch_flop_size(call, dim);
}

static etch_expr window_flop(const etch_flop_call *call)
{
    const etch_attrs *attrs = &call->op->attrs;
    etch_flop_call stops = *call;
    stops.size = size_of_stops;
    stops.data = call;
    etch_expr count = etch_flop_each(call, etch_flop_dims(&stops));
    for (uint32_t i = 0; attrs->size && i < attrs->over.count; i++)
        count = etch_mul(call->sym, count, attrs->size);
    return count;
}

static const etch_flop per_stop = {window_flop, "# FLOP per stop of the window, place in it and channel"};

/* ---- rows ---------------------------------------------------------------------------------------- */

#define POOL(label, sums, args, text)                                                           \
    ETCH_ROW(label, "x", text, .options = ETCH_KW_STRIDE, .needs = ETCH_KW_OVER | ETCH_KW_SIZE, \
             .shape = slide, .over = ETCH_FACTOR_WHOLE, .linear = sums,                         \
             .flop = {.by = &per_stop, .constants = {1}}, .grads = ETCH_GRADS({label "_dx", args, "0"}))
#define POOL_DX(label, names, sums, text)                                   \
    ETCH_ROW(label, names, text, .over = ETCH_FACTOR_WHOLE, .linear = sums, \
             .flop = {.by = &per_stop, .constants = {1}})

static const etch_row rows[] = {
    ETCH_ROW("conv", "x w",
             "convolution: dims of both operands that the result has are not summed (depthwise, groups)",
             .options = ETCH_KW_STRIDE | ETCH_KW_CAUSAL, .needs = ETCH_KW_OVER | ETCH_KW_KERNEL,
             .shape = slide, .over = ETCH_FACTOR_WHOLE, .linear = ETCH_LINEAR_EACH,
             .flop = {.by = &per_stop, .constants = {2}}, .matmul = true,
             .grads = ETCH_GRADS({"conv_dx", "d0 x1", "0"}, {"conv_dw", "d0 x0", "1"}),
             .serving = "conv_from", .serving_if = ETCH_KW_CAUSAL),
    ETCH_ROW("conv_dx", "d w", "gradient of what is convolved", .over = ETCH_FACTOR_WHOLE,
             .linear = ETCH_LINEAR_EACH, .flop = {.by = &per_stop, .constants = {2}}, .matmul = true),
    ETCH_ROW("conv_dw", "d x", "gradient of the kernel", .over = ETCH_FACTOR_WHOLE,
             .flop = {.by = &per_stop, .constants = {2}}, .matmul = true),
    ETCH_FROM_STATE("conv", "x w", "causal conv when a model is served: the places before the run are kept",
                    ETCH_EXTRA_OF(0), .options = ETCH_KW_STRIDE | ETCH_KW_CAUSAL,
                    .needs = ETCH_KW_OVER | ETCH_KW_KERNEL, .shape = slide_on, .over = ETCH_FACTOR_WHOLE,
                    .flop = {.by = &per_stop, .constants = {2}}, .matmul = true,
                    .extra_reads = ETCH_EXTRA_OF(0)),
    POOL("max_pool", ETCH_LINEAR_NO, "d0 x0 y0", "the largest element of each window"),
    POOL_DX("max_pool_dx", "d x y", ETCH_LINEAR_NO,
            "the cotangent goes to the first element that is the largest; found by comparing again"),
    POOL("avg_pool", ETCH_LINEAR_EACH, "d0", "the mean of each window"),
    POOL_DX("avg_pool_dx", "d", ETCH_LINEAR_EACH,
            "an equal share of the cotangent to each element of the window"),
};

ETCH_FAMILY(windows);
