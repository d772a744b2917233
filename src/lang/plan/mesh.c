/* The mesh of a plan: axes, their sizes, names for products of axes. */
#include "lang/plan/plan_int.h"

#include <string.h>

enum { STATE_NEW, STATE_OPEN, STATE_DONE, STATE_FAILED };

static int32_t find(const etch_mesh_name *names, uint32_t count, const char *name)
{
    for (uint32_t i = 0; i < count; i++)
        if (names[i].name.text == name)
            return (int32_t)i;
    return -1;
}

/* ---- axes ---------------------------------------------------------------------------------------------- */

static void add_axis(etch_plan_builder *b, const etch_ast_def *def)
{
    etch_spec *spec = b->spec;
    const int32_t other = find(b->axes.at, b->axes.count, def->name.text);
    if (other >= 0) {
        etch_diag *diag = etch_error(spec->diags, ETCH_E_MESH, def->name.span,
                                     "the mesh has two axes called '%s'", def->name.text);
        etch_note(diag, b->axes.at[other].name.span, "this is the first");
        return;
    }
    if (b->axes.count == ETCH_MAX_AXES) {
        etch_error(spec->diags, ETCH_E_MESH, def->name.span, "a mesh has at most %d axes", ETCH_MAX_AXES);
        return;
    }
    ETCH_PUSH(spec->arena, &b->axes, (etch_mesh_name){.name = def->name, .def = def});
    ETCH_PUSH(spec->arena, &b->plan->mesh, (etch_axis){.name = def->name.text, .span = def->span});
}

/* The param or dim that a name in the mesh stands for: as the plan's file sees it, else as the spec does. */
static const etch_symbol *find_number(const etch_plan_builder *b, const char *name)
{
    const etch_namespace *const spaces[] = {b->symbol->home, b->spec->main};
    for (uint32_t i = 0; i < 2; i++) {
        const etch_symbol *symbol = etch_namespace_find(spaces[i], name);
        if (symbol && (symbol->kind == ETCH_SYMBOL_PARAM || symbol->kind == ETCH_SYMBOL_DIM))
            return symbol;
    }
    return NULL;
}

/* Does an `axis` line of the plan give axes this name together? */
static bool is_product(const etch_plan_builder *b, const char *name)
{
    const etch_ast_lines *lines = &b->symbol->item->lines;
    for (uint32_t i = 0; i < lines->count; i++)
        for (uint32_t k = 0; lines->at[i].kind == ETCH_AST_AXIS && k < lines->at[i].places.count; k++)
            if (lines->at[i].places.at[k].name.text == name)
                return true;
    return false;
}

static etch_expr size_of(etch_plan_builder *b, uint32_t index);

static etch_expr mesh_name(void *data, const etch_ast_expr *expr)
{
    etch_plan_builder *b = data;
    const int32_t axis = find(b->axes.at, b->axes.count, expr->name.text);
    if (axis >= 0)
        return size_of(b, (uint32_t)axis);
    const etch_symbol *symbol = find_number(b, expr->name.text);
    if (!symbol) {
        if (!is_product(b, expr->name.text))
            etch_select_size(b->spec, b->symbol->home, expr->name);
        return etch_var(b->spec->sym, expr->name.text);
    }
    return symbol->kind == ETCH_SYMBOL_PARAM ? symbol->param->var : etch_dim_size(b->spec, symbol);
}

static etch_expr own_size(etch_plan_builder *b, etch_mesh_name *axis)
{
    etch_spec *spec = b->spec;
    const etch_symbol *symbol = find_number(b, axis->name.text);
    const bool is_param = symbol && symbol->kind == ETCH_SYMBOL_PARAM;
    if (!axis->def->value)
        return is_param ? symbol->param->var : etch_var(spec->sym, axis->name.text);
    if (is_param) {
        etch_diag *diag =
            etch_error(spec->diags, ETCH_E_MESH, axis->def->span,
                       "mesh axis '%s' has a size of its own, but a param has its name", axis->name.text);
        etch_note(diag, symbol->def->name.span, "the param is declared here");
        return NULL;
    }
    const etch_lookup lookup = {.name = mesh_name, .data = b};
    return etch_number_of(spec, axis->def->value, &lookup);
}

/* Recursion is no deeper than the mesh has axes. */
static etch_expr size_of(etch_plan_builder *b, uint32_t index)
{
    etch_mesh_name *axis = &b->axes.at[index];
    if (axis->state == STATE_OPEN) {
        etch_error(b->spec->diags, ETCH_E_AXIS_CYCLE, axis->name.span,
                   "the size of mesh axis '%s' needs itself", axis->name.text);
        return NULL;
    }
    if (axis->state == STATE_NEW) {
        axis->state = STATE_OPEN;
        b->plan->mesh.at[index].size = own_size(b, axis);
        axis->state = STATE_DONE;
    }
    return b->plan->mesh.at[index].size;
}

static void read_axes(etch_plan_builder *b)
{
    const etch_ast_line *first = NULL;
    const etch_ast_lines *lines = &b->symbol->item->lines;
    for (uint32_t i = 0; i < lines->count; i++) {
        const etch_ast_line *line = &lines->at[i];
        if (line->kind != ETCH_AST_MESH)
            continue;
        if (first) {
            etch_diag *diag = etch_error(b->spec->diags, ETCH_E_MESH, line->span, "a plan has one mesh");
            etch_note(diag, first->span, "it is here");
            return;
        }
        first = line;
        for (uint32_t k = 0; k < line->defs.count; k++)
            add_axis(b, &line->defs.at[k]);
    }
    for (uint32_t i = 0; i < b->axes.count; i++)
        size_of(b, i);
}

/* ---- products of axes ---------------------------------------------------------------------------------- */

static void unknown_axis(etch_plan_builder *b, etch_ast_name name)
{
    etch_spec *spec = b->spec;
    ETCH_VEC(const char *) names = {0};
    etch_buf list = {.arena = spec->arena};
    for (uint32_t i = 0; i < b->axes.count; i++) {
        ETCH_PUSH(spec->arena, &names, b->axes.at[i].name.text);
        etch_buf_printf(&list, "%s%s", i ? ", " : "", b->axes.at[i].name.text);
    }
    for (uint32_t i = 0; i < b->products.count; i++)
        ETCH_PUSH(spec->arena, &names, b->products.at[i].name.text);
    etch_diag *diag = etch_error(spec->diags, ETCH_E_UNKNOWN_AXIS, name.span,
                                 "plan '%s' has no mesh axis '%s'", b->symbol->name, name.text);
    etch_suggest_name(diag, name.text, names.at, names.count);
    etch_note(diag, (etch_span){0, 0}, "its mesh is [%s]", b->axes.count ? list.text : "");
}

static bool append_axis(etch_plan_builder *b, etch_span span, uint32_t axis, etch_axis_list *out)
{
    if (out->bits >> axis & 1) {
        etch_error(b->spec->diags, ETCH_E_AXIS_REPEATED, span, "mesh axis '%s' stands twice in this list",
                   b->axes.at[axis].name.text);
        return false;
    }
    out->bits |= 1u << axis;
    out->at[out->count++] = axis;
    return true;
}

static bool append_all(etch_plan_builder *b, const etch_ast_mesh *mesh, const etch_span *at,
                       etch_axis_list *out);

/* Appends what one name stands for; `at` (may be NULL) is the place to blame instead of the name's own. */
static bool append(etch_plan_builder *b, etch_ast_name name, const etch_span *at, etch_axis_list *out)
{
    const etch_span span = at ? *at : name.span;
    const int32_t axis = find(b->axes.at, b->axes.count, name.text);
    if (axis >= 0)
        return append_axis(b, span, (uint32_t)axis, out);
    const int32_t index = find(b->products.at, b->products.count, name.text);
    if (index < 0) {
        unknown_axis(b, name);
        return false;
    }
    etch_mesh_name *product = &b->products.at[index];
    if (product->state == STATE_OPEN)
        etch_error(b->spec->diags, ETCH_E_AXIS_CYCLE, span, "'%s' is a product of itself", name.text);
    if (product->state == STATE_OPEN || product->state == STATE_FAILED)
        return false;
    const bool known = product->state == STATE_DONE;
    product->state = STATE_OPEN;
    const bool fine = append_all(b, &product->place->mesh, known ? &span : NULL, out);
    product->state = fine || known ? STATE_DONE : STATE_FAILED;
    return fine;
}

/* Recursion ends at a product that is open: no deeper than there are products. */
static bool append_all(etch_plan_builder *b, const etch_ast_mesh *mesh, const etch_span *at,
                       etch_axis_list *out)
{
    for (uint32_t i = 0; i < mesh->axes.count; i++)
        if (!append(b, mesh->axes.at[i], at, out))
            return false;
    return true;
}

bool etch_mesh_axes(etch_plan_builder *b, const etch_ast_mesh *mesh, etch_axis_list *out)
{
    *out = (etch_axis_list){0};
    return append_all(b, mesh, NULL, out);
}

static void add_product(etch_plan_builder *b, const etch_ast_place *place)
{
    const int32_t axis = find(b->axes.at, b->axes.count, place->name.text);
    const int32_t product = find(b->products.at, b->products.count, place->name.text);
    if (axis >= 0 || product >= 0) {
        etch_diag *diag = etch_error(b->spec->diags, ETCH_E_MESH, place->name.span,
                                     "'%s' is a name of mesh axes already", place->name.text);
        etch_note(diag, axis >= 0 ? b->axes.at[axis].name.span : b->products.at[product].name.span,
                  "it is declared here");
        return;
    }
    ETCH_PUSH(b->spec->arena, &b->products, (etch_mesh_name){.name = place->name, .place = place});
}

static bool mesh_speaks_of(const etch_plan_builder *b, etch_expr var)
{
    for (uint32_t i = 0; i < b->plan->mesh.count; i++) {
        const etch_expr *vars = NULL, size = b->plan->mesh.at[i].size;
        const uint32_t count = size ? etch_vars_of(b->spec->sym, size, &vars) : 0;
        for (uint32_t v = 0; v < count; v++)
            if (vars[v] == var)
                return true;
    }
    return false;
}

/* `axis dp = (edp, ep)` beside `edp = dp/ep`: the product must be what the mesh calls by its name. */
static void check_product(etch_plan_builder *b, const etch_product *product)
{
    etch_spec *spec = b->spec;
    const etch_symbol *symbol = find_number(b, product->name);
    const bool is_param = symbol && symbol->kind == ETCH_SYMBOL_PARAM;
    etch_expr var = is_param ? symbol->param->var : etch_var(spec->sym, product->name);
    etch_expr size = etch_plan_value(spec, b->plan, product->name);
    if (size && mesh_speaks_of(b, var) && etch_equal(spec->sym, size, var, NULL) == ETCH_NO)
        etch_error(spec->diags, ETCH_E_AXIS_PRODUCT, product->span,
                   "the axes of '%s' are %s ranks together, but the mesh calls another number '%s'",
                   product->name, etch_expr_text(spec->sym, size), product->name);
}

static void read_products(etch_plan_builder *b)
{
    const etch_ast_lines *lines = &b->symbol->item->lines;
    for (uint32_t i = 0; i < lines->count; i++)
        for (uint32_t k = 0; lines->at[i].kind == ETCH_AST_AXIS && k < lines->at[i].places.count; k++)
            add_product(b, &lines->at[i].places.at[k]);
    for (uint32_t i = 0; i < b->products.count; i++) {
        const etch_mesh_name *name = &b->products.at[i];
        etch_product product = {.name = name->name.text, .span = name->place->span};
        etch_axis_list axes = {0};
        if (!append(b, name->name, NULL, &axes))
            continue;
        memcpy(product.axes, axes.at, sizeof axes.at);
        product.axis_count = axes.count;
        ETCH_PUSH(b->spec->arena, &b->plan->products, product);
        check_product(b, &product);
    }
}

void etch_mesh_build(etch_plan_builder *b)
{
    read_axes(b);
    read_products(b);
}

/* ---- names of meshes, for values ----------------------------------------------------------------------- */

/* Does a name occur in the expression? Trees are no higher than ETCH_AST_DEPTH. */
static bool occurs(const etch_ast_expr *expr, const char *name)
{
    if (expr->kind == ETCH_AST_NAME)
        return expr->name.text == name;
    if (expr->kind == ETCH_AST_BINARY || expr->kind == ETCH_AST_NEGATE)
        return occurs(expr->left, name) || (expr->right && occurs(expr->right, name));
    for (uint32_t i = 0; expr->kind == ETCH_AST_CALL && i < expr->args.count; i++)
        if (occurs(expr->args.at[i].value, name))
            return true;
    return false;
}

static bool line_mentions(const etch_ast_line *line, const char *name)
{
    for (uint32_t i = 0; line->kind == ETCH_AST_MESH && i < line->defs.count; i++) {
        const etch_ast_def *def = &line->defs.at[i];
        if (def->name.text == name || (def->value && occurs(def->value, name)))
            return true;
    }
    for (uint32_t i = 0; line->kind == ETCH_AST_AXIS && i < line->places.count; i++)
        if (line->places.at[i].name.text == name)
            return true;
    return false;
}

bool etch_plan_mentions(const etch_symbol *symbol, const char *name)
{
    for (uint32_t k = 0; k < symbol->item->lines.count; k++)
        if (line_mentions(&symbol->item->lines.at[k], name))
            return true;
    return false;
}

bool etch_plans_mention(const etch_spec *spec, const char *name)
{
    for (uint32_t i = 0; i < spec->symbols.count; i++)
        if (spec->symbols.at[i]->kind == ETCH_SYMBOL_PLAN && etch_plan_mentions(spec->symbols.at[i], name))
            return true;
    return false;
}

static bool is_param_var(const etch_spec *spec, etch_expr var)
{
    for (uint32_t i = 0; i < spec->params.count; i++)
        if (spec->params.at[i].var == var)
            return true;
    return false;
}

uint32_t etch_plan_vars(etch_spec *spec, const etch_plan *plan, const etch_axis **vars)
{
    ETCH_VEC(etch_axis) list = {0};
    for (uint32_t i = 0; i < plan->mesh.count; i++) {
        const etch_axis *axis = &plan->mesh.at[i];
        const etch_expr *used = NULL;
        const uint32_t count = etch_vars_of(spec->sym, axis->size, &used);
        for (uint32_t v = 0; v < count; v++) {
            bool known = is_param_var(spec, used[v]);
            for (uint32_t k = 0; k < list.count; k++)
                known = known || list.at[k].size == used[v];
            if (!known)
                ETCH_PUSH(spec->arena, &list,
                          (etch_axis){.name = etch_var_name(used[v]), .size = used[v], .span = axis->span});
        }
    }
    *vars = list.at;
    return list.count;
}

etch_expr etch_plan_value(etch_spec *spec, const etch_plan *plan, const char *name)
{
    for (uint32_t i = 0; i < plan->mesh.count; i++)
        if (strcmp(plan->mesh.at[i].name, name) == 0)
            return plan->mesh.at[i].size;
    for (uint32_t i = 0; i < plan->products.count; i++) {
        const etch_product *product = &plan->products.at[i];
        if (strcmp(product->name, name) != 0)
            continue;
        etch_expr size = etch_int(spec->sym, 1);
        for (uint32_t k = 0; k < product->axis_count; k++)
            size = etch_mul(spec->sym, size, plan->mesh.at[product->axes[k]].size);
        return size;
    }
    const etch_axis *vars;
    const uint32_t count = etch_plan_vars(spec, plan, &vars);
    for (uint32_t i = 0; i < count; i++)
        if (strcmp(vars[i].name, name) == 0)
            return vars[i].size;
    return NULL;
}

typedef struct plan_names {
    etch_spec *spec;
    const etch_namespace *space;
    const etch_plan *plan;
} plan_names;

static etch_expr name_with_plan(void *data, const etch_ast_expr *expr)
{
    const plan_names *n = data;
    const char *name = expr->name.text;
    const etch_symbol *symbol = etch_namespace_find(n->space, name);
    if (!symbol || (symbol->kind != ETCH_SYMBOL_PARAM && symbol->kind != ETCH_SYMBOL_DIM)) {
        etch_expr value = n->plan ? etch_plan_value(n->spec, n->plan, name) : NULL;
        if (!n->plan && etch_plans_mention(n->spec, name))
            value = etch_var(n->spec->sym, name);
        if (value)
            return value;
    }
    const char *names[ETCH_MAX_AXES];
    const uint32_t count = n->plan ? n->plan->mesh.count : 0;
    for (uint32_t i = 0; i < count; i++)
        names[i] = n->plan->mesh.at[i].name;
    return etch_global_value(n->spec, n->space, expr, names, count);
}

etch_lookup etch_plan_lookup(etch_spec *spec, const etch_namespace *space, const etch_plan *plan)
{
    plan_names *n = ETCH_NEW(spec->arena, plan_names);
    *n = (plan_names){spec, space, plan};
    return (etch_lookup){.name = name_with_plan, .data = n};
}
