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

static const etch_row rows[] = {
    ETCH_ROW("gather", "table ids", "rows of a table by index; moves only the rows that it reads",
             .family = ETCH_FAMILY_LOOKUP, .indices = ETCH_EXTRA_OF(1), .needs = ETCH_KW_OVER,
             .one = ETCH_KW_OVER, .shape = look_up, .touch = ETCH_TOUCH_ROWS_READ,
             .grads = ETCH_GRADS({"scatter", "d0 x1", "0"})),
    ETCH_ROW("scatter", "d ids", "rows added into a table by index", .family = ETCH_FAMILY_LOOKUP,
             .flop = ETCH_PER_OPERAND(1), .touch = ETCH_TOUCH_ROWS_WRITTEN),
};

ETCH_FAMILY(lookups);
