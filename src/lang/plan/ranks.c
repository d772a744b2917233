/* Lines of a plan about its ranks as a whole: `order = (tp, dp)`, how they are numbered, and `ranks = 64`,
 * how many there are. */
#include "lang/plan/plan_int.h"

#include <string.h>

/* The axes as `order` would list them: "(dp, tp)". */
static const char *axes_text(etch_plan_builder *b)
{
    etch_buf text = {.arena = b->spec->arena};
    for (uint32_t i = 0; i < b->plan->mesh.count; i++)
        etch_buf_printf(&text, "%s%s", i ? ", " : "", b->plan->mesh.at[i].name);
    return etch_text(b->spec->arena, "(%s)", text.length ? text.text : "");
}

/* Names as a list of axes behind '@' has them. False when something else stands there. */
static bool names_of(etch_plan_builder *b, const etch_ast_expr *value, etch_ast_mesh *mesh)
{
    const bool is_list = value->kind == ETCH_AST_TUPLE;
    const uint32_t count = is_list ? value->items.count : 1;
    *mesh = (etch_ast_mesh){.span = value->span};
    for (uint32_t i = 0; i < count; i++) {
        const etch_ast_expr *item = is_list ? value->items.at[i] : value;
        if (item->kind != ETCH_AST_NAME)
            return false;
        ETCH_PUSH(b->spec->arena, &mesh->axes, item->name);
    }
    return true;
}

static void not_an_order(etch_plan_builder *b, etch_span span, const char *missing)
{
    etch_diag *diag = missing
                          ? etch_error(b->spec->diags, ETCH_E_PLAN_OPTION, span,
                                       "the order of the ranks says nothing of mesh axis '%s'", missing)
                          : etch_error(b->spec->diags, ETCH_E_PLAN_OPTION, span,
                                       "the order of the ranks is a list of the mesh axes, outermost first");
    etch_help(diag, "list each axis once; in the order of the mesh that is order = %s", axes_text(b));
}

void etch_plan_read_order(etch_plan_builder *b, const etch_ast_def *def)
{
    etch_plan *plan = b->plan;
    etch_ast_mesh mesh;
    etch_axis_list axes;
    if (def->value->kind == ETCH_AST_BROKEN)
        return;
    if (!names_of(b, def->value, &mesh)) {
        not_an_order(b, def->value->span, NULL);
        return;
    }
    if (!etch_mesh_axes(b, &mesh, &axes))
        return;
    for (uint32_t i = 0; i < plan->mesh.count; i++)
        if (!(axes.bits >> i & 1)) {
            not_an_order(b, def->value->span, plan->mesh.at[i].name);
            return;
        }
    plan->order_span = def->span;
    memcpy(plan->order, axes.at, sizeof plan->order);
    plan->order_count = axes.count;
}

void etch_plan_read_ranks(etch_plan_builder *b, const etch_ast_def *def)
{
    etch_spec *spec = b->spec;
    etch_plan *plan = b->plan;
    const etch_lookup lookup = etch_plan_lookup(spec, b->symbol->home, plan);
    if (def->value->kind == ETCH_AST_BROKEN)
        return;
    etch_expr count = etch_number_of(spec, def->value, &lookup), product = etch_plan_ranks(spec->sym, plan);
    if (!count || !product)
        return;
    plan->ranks = (etch_rank_count){.count = count, .span = def->span};
    if (etch_different(spec->sym, count, product, NULL) != ETCH_YES)
        return;
    etch_diag *diag = etch_error(spec->diags, ETCH_E_RANKS, def->span,
                                 "the mesh has %s ranks, which is never the %s that the plan asks for",
                                 etch_expr_text(spec->sym, product), etch_expr_text(spec->sym, count));
    etch_help(diag, "an axis can be computed from the others: mesh [dp = 64/tp, tp], ranks = 64");
}
