/* Ops that put tensors side by side along a dim (concat), take one apart (split), or move the end of a dim
 * (slice, pad). Those of several parts fill the op's map: the dim of each part -> the dim of the whole. */
#include "graph/ir/families/family.h"

/* ---- slice and pad ------------------------------------------------------------------------------- */

/* Of `from` and `to`, does `longer` have at least the elements of `shorter`? */
static bool is_longer(const etch_call *call, const etch_dim *longer, const etch_dim *shorter)
{
    etch_graph *graph = call->graph;
    etch_truth fits = etch_at_least(graph->sym, longer->size, shorter->size, NULL);
    if (fits == ETCH_YES || etch_graph_at_least(graph, longer->size, shorter->size))
        return true;
    etch_diag *diag = etch_call_error(call, ETCH_E_UNEQUAL_SIZES, "%s = %s %s the %s = %s elements of %s",
                                      shorter->name, etch_expr_text(graph->sym, shorter->size),
                                      fits == ETCH_NO ? "can be more than" : "is not known to be within",
                                      longer->name, etch_expr_text(graph->sym, longer->size),
                                      call->attrs.from[0] == longer ? call->ins[0]->name : "the result");
    etch_help(diag, "add `assume %s <= %s`", etch_expr_text(graph->sym, shorter->size),
              etch_expr_text(graph->sym, longer->size));
    return false;
}

/* slice, pad: `over` (one dim) becomes the dim `to`. */
static bool has_map(etch_call *call)
{
    etch_attrs *attrs = &call->attrs;
    attrs->from = attrs->over;
    return etch_shape_has(call, call->ins[0], attrs->from, 1, "over");
}

static bool top(etch_call *call, etch_dim_list *out)
{
    return has_map(call) && is_longer(call, call->attrs.from[0], call->attrs.to[0]) &&
           etch_shape_replaced(call, out);
}

static bool padded(etch_call *call, etch_dim_list *out)
{
    return has_map(call) && is_longer(call, call->attrs.to[0], call->attrs.from[0]) &&
           etch_shape_replaced(call, out);
}

static const char *list_text(const etch_call *call, etch_dim *const *dims, uint32_t count)
{
    return etch_dims_text(call->graph->arena, dims, count);
}

/* The elements of all parts together. */
static etch_expr sum_of(const etch_call *call, etch_dim *const *parts, uint32_t count)
{
    etch_sym *sym = call->graph->sym;
    etch_expr sum = etch_int(sym, 0);
    for (uint32_t i = 0; i < count; i++)
        sum = etch_add(sym, sum, parts[i] ? parts[i]->size : etch_int(sym, 1));
    return sum;
}

static bool sizes_add_up(const etch_call *call, etch_dim *const *parts, uint32_t count, const etch_dim *whole)
{
    etch_graph *graph = call->graph;
    etch_expr sum = sum_of(call, parts, count);
    if (etch_equal(graph->sym, sum, whole->size, NULL) == ETCH_YES)
        return true;
    etch_diag *diag = etch_call_error(
        call, ETCH_E_UNEQUAL_SIZES, "the parts have %s elements along %s, which are not known to be its %s",
        etch_expr_text(graph->sym, sum), whole->name, etch_expr_text(graph->sym, whole->size));
    etch_note(diag, whole->span, "%s is declared here", whole->name);
    return false;
}

/* The parts and the whole are what the op works along: no rank has a part of them alone. */
static void fill_map(const etch_call *call, etch_attrs *attrs, etch_dim *const *parts, uint32_t count,
                     etch_dim *whole)
{
    etch_dim_list over = {0};
    etch_attrs_map(call->graph->arena, attrs, count);
    for (uint32_t i = 0; i < count; i++) {
        attrs->from[i] = parts[i];
        attrs->to[i] = whole;
        if (parts[i])
            etch_dim_add(call->graph, &over, parts[i]);
    }
    etch_dim_add(call->graph, &over, whole);
    attrs->over = over.at;
    attrs->over_count = over.count;
}

static bool is_one(const etch_call *call, const etch_dim *dim)
{
    etch_sym *sym = call->graph->sym;
    return etch_equal(sym, dim->size, etch_int(sym, 1), NULL) == ETCH_YES;
}

/* ---- concat -------------------------------------------------------------------------------------- */

/* The declared dim that no operand has. */
static etch_dim *joined_dim(const etch_call *call)
{
    etch_dim *whole = NULL;
    uint32_t fresh = 0;
    for (uint32_t i = 0; i < call->want_count; i++) {
        bool had = false;
        for (uint32_t k = 0; k < call->in_count; k++)
            had = had || etch_has_dim(call->ins[k], call->want[i]);
        if (!had)
            whole = call->want[i], fresh++;
    }
    if (fresh == 1)
        return whole;
    etch_diag *diag = etch_error(call->graph->diags, ETCH_E_SHAPE_MISMATCH, call->span,
                                 "%s needs declared result dims with one new dim in place of %s",
                                 call->row->name, list_text(call, call->attrs.over, call->attrs.over_count));
    etch_help(diag, "write y[..,D] = %s(a, b, over = (N,R)), where `dim D = N + R`", call->row->name);
    return NULL;
}

/* Operand `i` has its own part, or that is of size 1; its other dims are those of the result. */
static bool part_fits(const etch_call *call, uint32_t i, etch_dim **part)
{
    const etch_tensor *x = call->ins[i];
    etch_dim *own = call->attrs.over[i];
    const char *text = etch_dims_text(call->graph->arena, x->dims, x->rank);
    *part = own;
    if (!etch_has_dim(x, own)) {
        *part = NULL;
        if (!is_one(call, own)) {
            return etch_call_refuse(call, ETCH_E_MISSING_DIM, "%s%s has no dim %s, which `over` names for it",
                                    x->name, text, own->name);
        }
    }
    for (uint32_t d = 0; d < x->rank; d++) {
        if (x->dims[d] == own || etch_dim_among(call->want, call->want_count, x->dims[d]))
            continue;
        return etch_call_refuse(call, ETCH_E_SHAPE_MISMATCH, "%s%s has dim %s, which the result %s lacks",
                                x->name, text, x->dims[d]->name,
                                list_text(call, call->want, call->want_count));
    }
    return true;
}

/* No part is a dim of the result as well: which of the two would an operand mean? */
static bool parts_are_gone(const etch_call *call)
{
    for (uint32_t i = 0; i < call->in_count; i++) {
        const etch_dim *own = call->attrs.over[i];
        if (!etch_dim_among(call->want, call->want_count, own))
            continue;
        return etch_call_refuse(call, ETCH_E_SHAPE_MISMATCH, "%s is a part, and the result %s has it as well",
                                own->name, list_text(call, call->want, call->want_count));
    }
    return true;
}

static bool joined(etch_call *call, etch_dim_list *out)
{
    etch_attrs *attrs = &call->attrs;
    for (uint32_t i = 0; i < call->want_count; i++)
        if (!call->want[i])
            return false;
    if (attrs->over_count != call->in_count) {
        etch_diag *diag =
            etch_call_error(call, ETCH_E_SHAPE_MISMATCH, "`over` names %u dim%s for %u operands",
                            attrs->over_count, attrs->over_count == 1 ? "" : "s", call->in_count);
        etch_help(diag, "name the dim of each operand: %s(a, b, over = (N,R))", call->row->name);
        return false;
    }
    etch_dim *whole = joined_dim(call);
    if (!whole || !parts_are_gone(call))
        return false;
    etch_dim **parts = ETCH_NEW_ARRAY(call->graph->arena, call->in_count, etch_dim *);
    for (uint32_t i = 0; i < call->in_count; i++)
        if (!part_fits(call, i, &parts[i]))
            return false;
    if (!sizes_add_up(call, parts, call->in_count, whole))
        return false;
    fill_map(call, attrs, parts, call->in_count, whole);
    for (uint32_t i = 0; i < call->want_count; i++)
        ETCH_PUSH(call->graph->arena, out, call->want[i]);
    return true;
}

/* ---- split --------------------------------------------------------------------------------------- */

/* The dim that result `want` has in place of the whole; `*good` false after an error. */
static etch_dim *part_of(const etch_call *call, const etch_dim *whole, const etch_result_dims *want,
                         bool *good)
{
    const etch_tensor *x = call->ins[0];
    etch_dim *part = NULL;
    uint32_t fresh = 0, kept = 0;
    for (uint32_t i = 0; i < want->count; i++) {
        if (!want->at[i]) {
            *good = false;
            return NULL;
        }
        if (!etch_has_dim(x, want->at[i]))
            part = want->at[i], fresh++;
        else
            kept += want->at[i] != whole;
    }
    if (fresh <= 1 && kept + 1 == x->rank && kept + fresh == want->count)
        return part;
    etch_diag *diag = etch_call_error(call, ETCH_E_SHAPE_MISMATCH, "a part of %s along %s cannot be %s",
                                      etch_tensor_text(call->graph->arena, x), whole->name,
                                      list_text(call, want->at, want->count));
    etch_help(diag, "a part has one dim in place of %s, or none where its size is 1", whole->name);
    *good = false;
    return NULL;
}

static bool taken_apart(etch_call *call, const etch_result_dims *want, uint32_t count)
{
    const etch_tensor *x = call->ins[0];
    if (!etch_shape_has(call, x, call->attrs.over, 1, "over"))
        return false;
    etch_dim *whole = call->attrs.over[0];
    etch_dim **parts = ETCH_NEW_ARRAY(call->graph->arena, count, etch_dim *);
    bool good = true;
    for (uint32_t i = 0; i < count && good; i++)
        parts[i] = part_of(call, whole, &want[i], &good);
    if (!good || !sizes_add_up(call, parts, count, whole))
        return false;
    fill_map(call, &call->attrs, parts, count, whole);
    return true;
}

/* ---- rows ---------------------------------------------------------------------------------------- */

static const etch_row rows[] = {
    {.name = "slice",
     .operands = "x",
     .needs = ETCH_KW_OVER | ETCH_KW_TO,
     .one = ETCH_KW_OVER | ETCH_KW_TO,
     .shape = top,
     .role = ETCH_ROLE_FREE,
     .over = ETCH_FACTOR_WHOLE,
     .linear = ETCH_LINEAR_EACH,
     .grads = ETCH_GRADS({"slice_dx", "d0", "0"}),
     .dtype = ETCH_RESULT_AS_OPERAND,
     .help = "the first elements of a dim"},
    {.name = "slice_dx",
     .operands = "d",
     .role = ETCH_ROLE_POINTWISE,
     .over = ETCH_FACTOR_WHOLE,
     .linear = ETCH_LINEAR_EACH,
     .flop = {.by = &etch_flop_per_operand, .constants = {1}},
     .touch = ETCH_TOUCH_ROWS_WRITTEN,
     .help = "gradient of slice: added into the first elements"},
    {.name = "concat",
     .operands = "x y...",
     .needs = ETCH_KW_OVER,
     .each = ETCH_KW_OVER,
     .shape = joined,
     .role = ETCH_ROLE_POINTWISE,
     .over = ETCH_FACTOR_WHOLE,
     .linear = ETCH_LINEAR_JOINT,
     .grads = ETCH_GRADS({"split", "d0", "all"}),
     .dtype = ETCH_RESULT_AS_OPERAND,
     .help = "operands side by side along a new dim, whose size is the sum; what one lacks is broadcast"},
    {.name = "split",
     .operands = "x",
     .needs = ETCH_KW_OVER,
     .one = ETCH_KW_OVER,
     .several = taken_apart,
     .role = ETCH_ROLE_FREE,
     .over = ETCH_FACTOR_WHOLE,
     .linear = ETCH_LINEAR_EACH,
     .grads = ETCH_GRADS({"concat", "d", "0"}),
     .dtype = ETCH_RESULT_AS_OPERAND,
     .help = "(a, b) = split(x, over = D): the parts of a dim"},
    {.name = "pad",
     .operands = "x",
     .needs = ETCH_KW_OVER | ETCH_KW_TO,
     .one = ETCH_KW_OVER | ETCH_KW_TO,
     .shape = padded,
     .role = ETCH_ROLE_POINTWISE,
     .over = ETCH_FACTOR_WHOLE,
     .linear = ETCH_LINEAR_EACH,
     .grads = ETCH_GRADS({"pad_dx", "d0", "0"}),
     .dtype = ETCH_RESULT_AS_OPERAND,
     .help = "zeros behind the last element of a dim"},
    {.name = "pad_dx",
     .operands = "d",
     .role = ETCH_ROLE_FREE,
     .over = ETCH_FACTOR_WHOLE,
     .linear = ETCH_LINEAR_EACH,
     .dtype = ETCH_RESULT_AS_OPERAND,
     .help = "gradient of pad: the first elements"},
};

ETCH_FAMILY(parts);
