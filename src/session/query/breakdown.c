/* Tables: the items of one quantity, grouped by a label. */
#include "session/query/query.h"

#include <string.h>

static const char *const breakdown_names[] = {
    [ETCH_BY_NOTHING] = "",
    [ETCH_BY_OP] = "op",
    [ETCH_BY_MODULE] = "module",
    [ETCH_BY_PHASE] = "phase",
    [ETCH_BY_COLLECTIVE] = "collective",
    [ETCH_BY_AXIS] = "axis",
    [ETCH_BY_STAGE] = "stage",
    [ETCH_BY_TERM] = "term",
    [ETCH_BY_LAYER] = "layer",
    [ETCH_BY_CLASS] = "class",
};
enum { BREAKDOWN_COUNT = sizeof breakdown_names / sizeof *breakdown_names };

const char *etch_breakdown_name(etch_breakdown by)
{
    return (unsigned)by < BREAKDOWN_COUNT ? breakdown_names[by] : NULL;
}

const char *etch_cost_op_name(const etch_cost *cost)
{
    return cost->collective != ETCH_NO_COLLECTIVE ? etch_collective_name(cost->collective)
           : cost->row                            ? etch_row_name(cost->row)
                                                  : "";
}

/* llama.block.attention */
static const char *module_path(etch_arena *arena, const etch_compiled *p, const etch_scope *scope)
{
    return scope ? etch_scope_path(arena, scope, NULL) : p->model->name;
}

/* mlp in llama.block: einsum, models/llama.etch:17 */
static const char *source_label(etch_session *session, const etch_compiled *p, const etch_cost *cost)
{
    const char *op = etch_cost_op_name(cost);
    const etch_location at = etch_locate(session, cost->span);
    const char *what = *op ? op : cost->measure == ETCH_HELD ? etch_memory_label(cost) : "weight";
    const char *where = module_path(session->arena, p, cost->scope);
    return at.path ? etch_text(session->arena, "%s in %s, %s:%u", what, where, at.path, (unsigned)at.line)
                   : etch_text(session->arena, "%s in %s", what, where);
}

const char *etch_cost_label(etch_session *session, const etch_compiled *p, const etch_cost *cost,
                            etch_breakdown by)
{
    switch (by) {
    case ETCH_BY_NOTHING:
        break;
    case ETCH_BY_OP:
        return etch_cost_op_name(cost);
    case ETCH_BY_MODULE:
        return module_path(session->arena, p, cost->scope);
    case ETCH_BY_PHASE:
        return etch_phase_name(cost->phase);
    case ETCH_BY_COLLECTIVE:
        return etch_collective_name(cost->collective);
    case ETCH_BY_AXIS:
        return etch_axes_label(p->placed, etch_compiled_axes(session, p, cost->axes));
    case ETCH_BY_STAGE: /* every item of a share is of its stage */
        break;
    case ETCH_BY_LAYER:
        return etch_layer_label(session, p, cost->body);
    case ETCH_BY_CLASS:
        return etch_memory_label(cost);
    case ETCH_BY_TERM:
        return source_label(session, p, cost);
    }
    return "";
}
