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
                                      shorter->name, etch_call_number(call, shorter->size),
                                      fits == ETCH_NO ? "can be more than" : "is not known to be within",
                                      longer->name, etch_call_number(call, longer->size),
                                      call->attrs.from.at[0] == longer ? call->ins[0]->name : "the result");
    return etch_help(diag, "add `assume %s <= %s`", etch_call_number(call, shorter->size),
                     etch_call_number(call, longer->size));
}

/* slice, pad: `over` (one dim) becomes the dim `to`. */
static bool has_map(etch_call *call)
{
    etch_attrs *attrs = &call->attrs;
    attrs->from = attrs->over;
    return etch_shape_has(call, call->ins[0], attrs->from, "over");
}

static bool top(etch_call *call, etch_dim_list *out)
{
    return has_map(call) && is_longer(call, call->attrs.from.at[0], call->attrs.to.at[0]) &&
           etch_shape_replaced(call, out);
}

static bool padded(etch_call *call, etch_dim_list *out)
{
    return has_map(call) && is_longer(call, call->attrs.to.at[0], call->attrs.from.at[0]) &&
           etch_shape_replaced(call, out);
}

/* The map: the dim of each part (NULL: of size 1) -> the dim of the whole. The op works along all of them:
 * no rank has a part of them alone. False when their sizes do not add up. */
static bool map_parts(etch_call *call, etch_dim_view parts, etch_dim *whole)
{
    etch_graph *graph = call->graph;
    etch_expr sum = etch_int(graph->sym, 0), one = etch_int(graph->sym, 1);
    etch_dim_list over = {0}, to = {0};
    for (uint32_t i = 0; i < parts.count; i++) {
        sum = etch_add(graph->sym, sum, parts.at[i] ? parts.at[i]->size : one);
        ETCH_PUSH(graph->arena, &to, whole);
        if (parts.at[i])
            etch_dim_add(graph, &over, parts.at[i]);
    }
    etch_dim_add(graph, &over, whole);
    call->attrs.from = parts;
    call->attrs.to = ETCH_DIMS(to);
    call->attrs.over = ETCH_DIMS(over);
    if (etch_equal(graph->sym, sum, whole->size, NULL) == ETCH_YES)
        return true;
    etch_diag *diag = etch_call_error(
        call, ETCH_E_UNEQUAL_SIZES, "the parts have %s elements along %s, which are not known to be its %s",
        etch_call_number(call, sum), whole->name, etch_call_number(call, whole->size));
    return etch_note(diag, whole->span, "%s is declared here", whole->name);
}

/* ---- concat -------------------------------------------------------------------------------------- */

/* The declared dim that no operand has. */
static etch_dim *joined_dim(const etch_call *call)
{
    etch_dim *whole = etch_call_new_dim(call, NULL);
    if (whole)
        return whole;
    etch_diag *diag = etch_error(call->graph->diags, ETCH_E_SHAPE_MISMATCH, call->span,
                                 "%s needs declared result dims with one new dim in place of %s",
                                 call->row->name, etch_call_dims(call, call->attrs.over));
    etch_help(diag, "write y[..,D] = %s(a, b, over = (N,R)), where `dim D = N + R`", call->row->name);
    return NULL;
}

/* Operand `i` has its own part, or that is of size 1; its other dims are those of the result. */
static bool part_fits(const etch_call *call, uint32_t i, etch_dim **part)
{
    const etch_tensor *x = call->ins[i];
    etch_dim *own = call->attrs.over.at[i];
    etch_sym *sym = call->graph->sym;
    *part = etch_has_dim(x, own) ? own : NULL;
    if (!*part && etch_equal(sym, own->size, etch_int(sym, 1), NULL) != ETCH_YES)
        return etch_call_refuse(call, ETCH_E_MISSING_DIM, "%s has no dim %s, which `over` names for it",
                                etch_call_tensor(call, x), own->name);
    for (uint32_t d = 0; d < x->rank; d++)
        if (x->dims[d] != own && !etch_dim_among(call->want, x->dims[d]))
            return etch_call_refuse(call, ETCH_E_SHAPE_MISMATCH, "%s has dim %s, which the result %s lacks",
                                    etch_call_tensor(call, x), x->dims[d]->name,
                                    etch_call_dims(call, call->want));
    return true;
}

/* No part is a dim of the result as well: which of the two would an operand mean? */
static bool parts_are_gone(const etch_call *call)
{
    for (uint32_t i = 0; i < call->in_count; i++)
        if (etch_dim_among(call->want, call->attrs.over.at[i]))
            return etch_call_refuse(call, ETCH_E_SHAPE_MISMATCH,
                                    "%s is a part, and the result %s has it as well",
                                    call->attrs.over.at[i]->name, etch_call_dims(call, call->want));
    return true;
}

static bool joined(etch_call *call, etch_dim_list *out)
{
    etch_attrs *attrs = &call->attrs;
    if (etch_dim_among(call->want, NULL))
        return false;
    if (attrs->over.count != call->in_count) {
        etch_diag *diag =
            etch_call_error(call, ETCH_E_SHAPE_MISMATCH, "`over` names %u dim%s for %u operands",
                            attrs->over.count, attrs->over.count == 1 ? "" : "s", call->in_count);
        return etch_help(diag, "name the dim of each operand: %s(a, b, over = (N,R))", call->row->name);
    }
    etch_dim *whole = joined_dim(call);
    if (!whole || !parts_are_gone(call))
        return false;
    etch_dim **parts = ETCH_NEW_ARRAY(call->graph->arena, call->in_count, etch_dim *);
    for (uint32_t i = 0; i < call->in_count; i++)
        if (!part_fits(call, i, &parts[i]))
            return false;
    etch_dims_add(call, out, call->want);
    return map_parts(call, (etch_dim_view){parts, call->in_count}, whole);
}

/* ---- split --------------------------------------------------------------------------------------- */

/* The dim that result `want` has in place of the whole; NULL for none. */
static bool find_part(const etch_call *call, const etch_dim *whole, etch_dim_view want, etch_dim **part)
{
    const etch_tensor *x = call->ins[0];
    uint32_t fresh = 0, kept = 0;
    for (uint32_t i = 0; i < want.count; i++) {
        if (!want.at[i])
            return false;
        if (!etch_has_dim(x, want.at[i]))
            *part = want.at[i], fresh++;
        else
            kept += want.at[i] != whole;
    }
    if (fresh <= 1 && kept + 1 == x->rank && kept + fresh == want.count)
        return true;
    etch_diag *diag = etch_call_error(call, ETCH_E_SHAPE_MISMATCH, "a part of %s along %s cannot be %s",
                                      etch_call_tensor(call, x), whole->name, etch_call_dims(call, want));
    return etch_help(diag, "a part has one dim in place of %s, or none where its size is 1", whole->name);
}

static bool taken_apart(etch_call *call, const etch_dim_view *want, uint32_t count)
{
    if (!etch_shape_has(call, call->ins[0], call->attrs.over, "over"))
        return false;
    etch_dim *whole = call->attrs.over.at[0];
    etch_dim **parts = ETCH_NEW_ARRAY(call->graph->arena, count, etch_dim *);
    for (uint32_t i = 0; i < count; i++)
        if (!find_part(call, whole, want[i], &parts[i]))
            return false;
    return map_parts(call, (etch_dim_view){parts, count}, whole);
}

/* ---- rows ---------------------------------------------------------------------------------------- */

static const etch_row rows[] = {
    ETCH_FREE("slice", "x", "the first elements of a dim", .needs = ETCH_KW_OVER | ETCH_KW_TO,
              .one = ETCH_KW_OVER | ETCH_KW_TO, .shape = top, .over = ETCH_FACTOR_WHOLE,
              .grads = ETCH_GRADS({"slice_dx", "d0", "0"})),
    ETCH_POINTWISE("slice_dx", "d", "gradient of slice: added into the first elements",
                   .over = ETCH_FACTOR_WHOLE, .linear = ETCH_LINEAR_EACH, .flop = ETCH_PER_OPERAND(1),
                   .touch = ETCH_TOUCH_ROWS_WRITTEN),
    ETCH_POINTWISE(
        "concat", "x y...",
        "operands side by side along a new dim, whose size is the sum; what one lacks is broadcast",
        .needs = ETCH_KW_OVER, .each = ETCH_KW_OVER, .shape = joined, .over = ETCH_FACTOR_WHOLE,
        .linear = ETCH_LINEAR_JOINT, .grads = ETCH_GRADS({"split", "d0", "all"}),
        .dtype = ETCH_RESULT_AS_OPERAND),
    ETCH_FREE("split", "x", "(a, b) = split(x, over = D): the parts of a dim", .needs = ETCH_KW_OVER,
              .one = ETCH_KW_OVER, .several = taken_apart, .over = ETCH_FACTOR_WHOLE,
              .grads = ETCH_GRADS({"concat", "d", "0"})),
    ETCH_POINTWISE("pad", "x", "zeros behind the last element of a dim", .needs = ETCH_KW_OVER | ETCH_KW_TO,
                   .one = ETCH_KW_OVER | ETCH_KW_TO, .shape = padded, .over = ETCH_FACTOR_WHOLE,
                   .linear = ETCH_LINEAR_EACH, .grads = ETCH_GRADS({"pad_dx", "d0", "0"}),
                   .dtype = ETCH_RESULT_AS_OPERAND),
    ETCH_FREE("pad_dx", "d", "gradient of pad: the first elements", .over = ETCH_FACTOR_WHOLE),
};

ETCH_FAMILY(parts);
