/* Rows of a table by index, and added into one. */
#include "graph/ir/families/family.h"

/* Those of the indices, and of the table less `over`. */
static bool look_up(etch_call *call, etch_dim_list *out)
{
    const etch_tensor *table = call->ins[0], *ids = call->ins[1];
    const etch_attrs *attrs = &call->attrs;
    if (!etch_shape_has(call, table, attrs->over, "over") || !etch_route_fits(call, ids, attrs->over.at[0]))
        return false;
    etch_dims_add_beside(call, out, ids, (etch_dim_view){0});
    etch_dims_add_beside(call, out, table, attrs->over);
    return true;
}

/* `over`, and the dims of the rows: those that the indices lack, and of theirs those that are declared. Along
 * the others rows are added up. */
static bool scattered(etch_call *call, etch_dim_list *out)
{
    const etch_tensor *x = call->ins[0], *ids = call->ins[1];
    etch_dim *over = call->attrs.over.at[0];
    const etch_dim *lacks = etch_dim_beside(ids, x, NULL, (etch_dim_view){0});
    if (lacks)
        return etch_call_refuse(call, ETCH_E_MISSING_DIM, "the rows are %s, and the indices %s have dim %s",
                                etch_call_tensor(call, x), etch_call_tensor(call, ids), lacks->name);
    if (etch_call_has(call, over)) {
        etch_diag *diag =
            etch_call_error(call, ETCH_E_SHAPE_MISMATCH,
                            "%s is the dim that the indices choose from, and an operand has it", over->name);
        return etch_help(diag, "write y[N,..] = scatter(x, ids, over = N): N is a dim of the result");
    }
    etch_dim_add(call->graph, out, over);
    for (uint32_t i = 0; i < x->rank; i++)
        if (!etch_has_dim(ids, x->dims[i]) || etch_dim_among(call->want, x->dims[i]))
            etch_dim_add(call->graph, out, x->dims[i]);
    return etch_route_fits(call, ids, over);
}

/* Indices along a dim are a constant. */
static etch_tensor *count_up(const etch_call *call)
{
    return etch_graph_constant(call->graph, call->attrs.over, NULL, call->span);
}

static const etch_row rows[] = {
    ETCH_ROW("iota", "", "0, 1, 2, .. along a dim: a constant of integers", .needs = ETCH_KW_DIM,
             .one = ETCH_KW_DIM, .compose = count_up),
    ETCH_ROW("gather", "table ids", "rows of a table by index; moves only the rows that it reads",
             .family = ETCH_FAMILY_LOOKUP, .indices = ETCH_EXTRA_OF(1), .needs = ETCH_KW_OVER,
             .one = ETCH_KW_OVER, .shape = look_up, .touch = ETCH_TOUCH_ROWS_READ,
             .grads = ETCH_GRADS({"scatter", "d0 x1", "0"})),
    ETCH_ROW("scatter", "x ids", "rows added into a table by index, the adjoint of gather",
             .family = ETCH_FAMILY_LOOKUP, .indices = ETCH_EXTRA_OF(1), .needs = ETCH_KW_OVER,
             .one = ETCH_KW_OVER, .shape = scattered, .flop = ETCH_PER_OPERAND(1),
             .touch = ETCH_TOUCH_ROWS_WRITTEN, .grads = ETCH_GRADS({"gather", "d0 x1", "0"})),
};

ETCH_FAMILY(lookups);
