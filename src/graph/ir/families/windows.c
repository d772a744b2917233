/* Ops that slide a window along `over`: convolutions, whose window is the dims `kernel` of a
 * second operand, and pooling, whose window is `size` long. The result has the dims `over`, or new ones in
 * place of them, `stride` times shorter: zeros around the operand see to that ("same" padding; all of them
 * before the first element when it is causal). */
#include "graph/ir/families/family.h"

/* ---- shape --------------------------------------------------------------------------------------- */

static const char *text_of(const etch_call *call, const etch_tensor *t)
{
    return etch_text(call->graph->arena, "%s", etch_tensor_text(call->graph->arena, t));
}

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
    if (!etch_shape_has(call, x, attrs->over, attrs->over_count, "over"))
        return false;
    if (!w)
        return true;
    if (!etch_shape_has(call, w, attrs->kernel, attrs->kernel_count, "kernel"))
        return false;
    if (attrs->kernel_count != attrs->over_count) {
        etch_diag *diag = etch_error(
            call->graph->diags, ETCH_E_SHAPE_MISMATCH, call->span, "%s slides a window of %u dim%s along %u",
            call->row->name, attrs->kernel_count, attrs->kernel_count == 1 ? "" : "s", attrs->over_count);
        etch_help(diag, "name one dim of the kernel for each: over = (Y,X), kernel = (KY,KX)");
        return false;
    }
    const etch_tensor *sides[] = {x, w};
    etch_dim *const *lists[] = {attrs->kernel, attrs->over};
    for (uint32_t s = 0; s < 2; s++)
        for (uint32_t i = 0; i < attrs->over_count; i++)
            if (etch_has_dim(sides[s], lists[s][i])) {
                return etch_call_refuse(call, ETCH_E_SHAPE_MISMATCH,
                                        "%s has %s, which the other operand is to have alone",
                                        text_of(call, sides[s]), lists[s][i]->name);
            }
    return true;
}

/* Without declared dims nothing is summed: those of both operands, less the window. */
static void default_dims(const etch_call *call, etch_dim_list *out)
{
    const etch_tensor *x = call->ins[0], *w = weight_of(call);
    for (uint32_t i = 0; i < x->rank; i++)
        etch_dim_add(call->graph, out, x->dims[i]);
    for (uint32_t i = 0; w && i < w->rank; i++)
        if (!etch_dim_among(call->attrs.kernel, call->attrs.kernel_count, w->dims[i]))
            etch_dim_add(call->graph, out, w->dims[i]);
}

static bool wrong_result(const etch_call *call, const char *why)
{
    etch_graph *graph = call->graph;
    etch_diag *diag = etch_error(graph->diags, ETCH_E_SHAPE_MISMATCH, call->span, "%s of %s cannot be %s: %s",
                                 call->row->name, text_of(call, call->ins[0]),
                                 etch_dims_text(graph->arena, call->want, call->want_count), why);
    etch_help(diag, "the result has the dims %s, or one new dim in place of each of them",
              etch_dims_text(graph->arena, call->attrs.over, call->attrs.over_count));
    return false;
}

/* Dims of the operands that the result lacks are summed, when both have them, or replaced. */
static bool operands_fit(const etch_call *call)
{
    const etch_tensor *x = call->ins[0], *w = weight_of(call);
    const etch_attrs *attrs = &call->attrs;
    for (uint32_t i = 0; i < x->rank; i++)
        if (!etch_dim_among(call->want, call->want_count, x->dims[i]) &&
            !etch_dim_among(attrs->over, attrs->over_count, x->dims[i]) &&
            !(w && etch_has_dim(w, x->dims[i])))
            return wrong_result(call, etch_text(call->graph->arena, "%s is not summed", x->dims[i]->name));
    for (uint32_t i = 0; w && i < w->rank; i++)
        if (!etch_dim_among(call->want, call->want_count, w->dims[i]) &&
            !etch_dim_among(attrs->kernel, attrs->kernel_count, w->dims[i]) && !etch_has_dim(x, w->dims[i]))
            return wrong_result(
                call, etch_text(call->graph->arena, "%s of %s is not summed", w->dims[i]->name, w->name));
    return true;
}

/* Pairs the dims `over` that are replaced with the declared dims that no operand has, in order. */
static bool pair_dims(const etch_call *call, etch_attrs *attrs)
{
    const etch_tensor *w = weight_of(call);
    uint32_t fresh = 0;
    etch_attrs_map(call->graph->arena, attrs, attrs->over_count);
    attrs->map_count = 0;
    for (uint32_t i = 0; i < attrs->over_count; i++)
        if (!etch_dim_among(call->want, call->want_count, attrs->over[i]))
            attrs->from[attrs->map_count++] = attrs->over[i];
    for (uint32_t i = 0; i < call->want_count; i++) {
        if (!call->want[i])
            return false;
        if (etch_has_dim(call->ins[0], call->want[i]) || (w && etch_has_dim(w, call->want[i])))
            continue;
        if (fresh < attrs->map_count)
            attrs->to[fresh] = call->want[i];
        fresh++;
    }
    if (fresh == attrs->map_count)
        return true;
    return wrong_result(call, etch_text(call->graph->arena, "%u new dim%s for %u", fresh,
                                        fresh == 1 ? "" : "s", attrs->map_count));
}

static bool strides_fit(const etch_call *call, const etch_attrs *attrs)
{
    etch_graph *graph = call->graph;
    etch_expr stride = stride_of(call);
    for (uint32_t i = 0; i < attrs->map_count; i++) {
        etch_expr reached = etch_mul(graph->sym, attrs->to[i]->size, stride);
        if (etch_equal(graph->sym, reached, attrs->from[i]->size, NULL) == ETCH_YES)
            continue;
        etch_diag *diag = etch_call_error(call, ETCH_E_UNEQUAL_SIZES,
                                          "%s = %s times the stride %s is not known to be %s = %s",
                                          attrs->to[i]->name, etch_expr_text(graph->sym, attrs->to[i]->size),
                                          etch_expr_text(graph->sym, stride), attrs->from[i]->name,
                                          etch_expr_text(graph->sym, attrs->from[i]->size));
        etch_note(diag, attrs->to[i]->span, "%s is declared here", attrs->to[i]->name);
        return false;
    }
    if (attrs->map_count == attrs->over_count || stride == etch_int(graph->sym, 1))
        return true;
    etch_diag *diag =
        etch_error(graph->diags, ETCH_E_SHAPE_MISMATCH, call->span,
                   "%s with a stride of %s needs declared result dims with a new dim in place of each of %s",
                   call->row->name, etch_expr_text(graph->sym, stride),
                   etch_dims_text(graph->arena, attrs->over, attrs->over_count));
    etch_help(diag, "write y[B,Y',M] = %s(..., stride = %s), where Y' is %s times shorter", call->row->name,
              etch_expr_text(graph->sym, stride), etch_expr_text(graph->sym, stride));
    return false;
}

/* A run that serves the model goes on from the last places of the one before it, which nothing holds yet. */
static bool is_kept_between_runs(const etch_call *call)
{
    bool kept = call->graph->serves && call->attrs.causal;
    if (kept)
        etch_error(call->graph->diags, ETCH_E_LATER, call->span,
                   "%s(.., causal = true) while serving a model, from places that are kept, is part of the "
                   "language but is not given meaning yet",
                   call->row->name);
    return kept;
}

static bool slide(etch_call *call, etch_dim_list *out)
{
    if (is_kept_between_runs(call))
        return false;
    if (!kernel_fits(call))
        return false;
    if (!call->want) {
        default_dims(call, out);
        return strides_fit(call, &call->attrs);
    }
    if (!operands_fit(call) || !pair_dims(call, &call->attrs) || !strides_fit(call, &call->attrs))
        return false;
    for (uint32_t i = 0; i < call->want_count; i++)
        ETCH_PUSH(call->graph->arena, out, call->want[i]);
    return true;
}

/* ---- FLOP ---------------------------------------------------------------------------------------- */

/* Sizes, but 1 for a dim that shorter ones replace: a window stops at the places of those. */
static etch_expr size_of_stops(const void *data, const etch_dim *dim)
{
    const etch_flop_call *call = data;
    const etch_attrs *attrs = &call->op->attrs;
    return etch_dim_among(attrs->from, attrs->map_count, dim) ? etch_int(call->sym, 1)
                                                              : etch_flop_size(call, dim);
}

static etch_expr window_flop(const etch_flop_call *call)
{
    const etch_attrs *attrs = &call->op->attrs;
    etch_flop_call stops = *call;
    stops.size = size_of_stops;
    stops.data = call;
    etch_expr count = etch_flop_times(call, call->op->row->flop.constants[0], etch_flop_dims(&stops));
    for (uint32_t i = 0; attrs->size && i < attrs->over_count; i++)
        count = etch_mul(call->sym, count, attrs->size);
    return count;
}

static const etch_flop per_stop = {window_flop, "# FLOP per stop of the window, place in it and channel"};

/* ---- rows ---------------------------------------------------------------------------------------- */

#define POOL(label, sums, args, text)                                                                    \
    {                                                                                                    \
        .name = label, .operands = "x", .options = ETCH_KW_STRIDE, .needs = ETCH_KW_OVER | ETCH_KW_SIZE, \
        .shape = slide, .over = ETCH_FACTOR_WHOLE, .linear = sums,                                       \
        .flop = {.by = &per_stop, .constants = {1}}, .grads = ETCH_GRADS({label "_dx", args, "0"}),      \
        .help = text                                                                                     \
    }
#define POOL_DX(label, names, sums, text)                                            \
    {                                                                                \
        .name = label, .operands = names, .over = ETCH_FACTOR_WHOLE, .linear = sums, \
        .flop = {.by = &per_stop, .constants = {1}}, .help = text                    \
    }

static const etch_row rows[] = {
    {.name = "conv",
     .operands = "x w",
     .options = ETCH_KW_STRIDE | ETCH_KW_CAUSAL,
     .needs = ETCH_KW_OVER | ETCH_KW_KERNEL,
     .shape = slide,
     .over = ETCH_FACTOR_WHOLE,
     .linear = ETCH_LINEAR_EACH,
     .flop = {.by = &per_stop, .constants = {2}},
     .matmul = true,
     .grads = ETCH_GRADS({"conv_dx", "d0 x1", "0"}, {"conv_dw", "d0 x0", "1"}),
     .help = "convolution: dims of both operands that the result has are not summed (depthwise, groups)"},
    {.name = "conv_dx",
     .operands = "d w",
     .over = ETCH_FACTOR_WHOLE,
     .linear = ETCH_LINEAR_EACH,
     .flop = {.by = &per_stop, .constants = {2}},
     .matmul = true,
     .help = "gradient of what is convolved"},
    {.name = "conv_dw",
     .operands = "d x",
     .over = ETCH_FACTOR_WHOLE,
     .flop = {.by = &per_stop, .constants = {2}},
     .matmul = true,
     .help = "gradient of the kernel"},
    POOL("max_pool", ETCH_LINEAR_NO, "d0 x0 y0", "the largest element of each window"),
    POOL_DX("max_pool_dx", "d x y", ETCH_LINEAR_NO,
            "the cotangent goes to the first element that is the largest; found by comparing again"),
    POOL("avg_pool", ETCH_LINEAR_EACH, "d0", "the mean of each window"),
    POOL_DX("avg_pool_dx", "d", ETCH_LINEAR_EACH,
            "an equal share of the cotangent to each element of the window"),
};

ETCH_FAMILY(windows);
