/* Names that a plan may select: dims, tags, tensors, modules. */
#include "lang/plan/plan_int.h"

#include <string.h>

/* Names that bodies of modules and models hold. */
typedef struct body_names {
    etch_spec *spec;
    ETCH_VEC(const char *) dims, tags, loops, modules;
} body_names;

static void collect_tags(body_names *n, const etch_ast_names *tags)
{
    for (uint32_t i = 0; i < tags->count; i++)
        ETCH_PUSH(n->spec->arena, &n->tags, tags->at[i].text);
}

/* Blocks are nested no deeper than the parser allows. */
static void collect_body(body_names *n, const etch_ast_body *body)
{
    etch_arena *arena = n->spec->arena;
    for (uint32_t i = 0; i < body->count; i++) {
        const etch_ast_stmt *stmt = &body->at[i];
        switch (stmt->kind) {
        case ETCH_AST_WEIGHT:
        case ETCH_AST_LET:
            collect_tags(n, &stmt->tags);
            break;
        case ETCH_AST_DIM:
            for (uint32_t k = 0; k < stmt->dims.count; k++)
                ETCH_PUSH(arena, &n->dims, stmt->dims.at[k].name.text);
            break;
        case ETCH_AST_INSTANCE:
            break;
        case ETCH_AST_REPEAT:
            ETCH_PUSH(arena, &n->loops, stmt->index.text ? stmt->index.text : "loop");
            collect_body(n, &stmt->body);
            break;
        case ETCH_AST_IF:
            for (uint32_t k = 0; k < stmt->arms.count; k++)
                collect_body(n, &stmt->arms.at[k].body);
            break;
        }
    }
}

static body_names collect(etch_spec *spec)
{
    body_names n = {.spec = spec};
    for (uint32_t i = 0; i < spec->symbols.count; i++) {
        const etch_symbol *symbol = spec->symbols.at[i];
        if (symbol->kind == ETCH_SYMBOL_DIM)
            ETCH_PUSH(spec->arena, &n.dims, symbol->name);
        if (symbol->kind != ETCH_SYMBOL_MODULE && symbol->kind != ETCH_SYMBOL_MODEL)
            continue;
        ETCH_PUSH(spec->arena, &n.modules, symbol->name);
        collect_body(&n, &symbol->item->body);
    }
    return n;
}

/* Names are interned. */
static bool holds(const char *const *names, uint32_t count, const char *name)
{
    for (uint32_t i = 0; i < count; i++)
        if (names[i] == name)
            return true;
    return false;
}

/* A plan of an imported file is made for many models: notes what this one lacks. False for a plan of the
 * spec's own file, where the name is a mistake. */
static bool note_lack(etch_spec *spec, etch_span span, const char *kind, const char *name)
{
    etch_plan *plan = spec->shared_plan;
    if (!plan)
        return false;
    const char *text = etch_text(spec->arena, "%s %s", kind, name);
    for (uint32_t i = 0; i < plan->lacks.count; i++)
        if (strcmp(plan->lacks.at[i].text, text) == 0)
            return true;
    ETCH_PUSH(spec->arena, &plan->lacks, (etch_pending){.text = text, .span = span});
    return true;
}

bool etch_select_dim(etch_spec *spec, etch_ast_name dim)
{
    const body_names n = collect(spec);
    size_t length = strlen(dim.text);
    while (length > 1 && dim.text[length - 1] == '\'')
        length--;
    if (holds(n.dims.at, n.dims.count, etch_name(spec->names, dim.text, length)))
        return true;
    if (note_lack(spec, dim.span, "dim", dim.text))
        return false;
    etch_diag *diag = etch_warning(spec->diags, ETCH_E_UNKNOWN_SHARD, dim.span,
                                   "no dim is called '%s': this has no effect", dim.text);
    etch_suggest_name(diag, dim.text, n.dims.at, n.dims.count);
    etch_help_dims_of(spec, diag, dim.text);
    return false;
}

void etch_select_size(etch_spec *spec, const etch_namespace *space, etch_ast_name name)
{
    ETCH_VEC(const char *) names = {0};
    if (note_lack(spec, name.span, "param", name.text))
        return;
    for (uint32_t i = 0; i < space->symbols.count; i++)
        if (space->symbols.at[i]->kind == ETCH_SYMBOL_PARAM || space->symbols.at[i]->kind == ETCH_SYMBOL_DIM)
            ETCH_PUSH(spec->arena, &names, space->names.at[i]);
    etch_diag *diag =
        etch_warning(spec->diags, ETCH_E_UNKNOWN_NAME, name.span,
                     "'%s' is no param, dim or mesh axis: a size that only this mesh speaks of", name.text);
    etch_suggest_name(diag, name.text, names.at, names.count);
    etch_help(diag, "`param %s` in the spec declares it", name.text);
}

static bool body_holds(const etch_ast_body *body, const char *name)
{
    for (uint32_t i = 0; i < body->count; i++) {
        const etch_ast_stmt *stmt = &body->at[i];
        if (stmt->kind == ETCH_AST_REPEAT && body_holds(&stmt->body, name))
            return true;
        for (uint32_t k = 0; stmt->kind == ETCH_AST_IF && k < stmt->arms.count; k++)
            if (body_holds(&stmt->arms.at[k].body, name))
                return true;
        bool names = stmt->kind == ETCH_AST_WEIGHT || stmt->kind == ETCH_AST_LET;
        for (uint32_t k = 0; names && k < stmt->tensors.count; k++)
            if (stmt->tensors.at[k].name.text == name)
                return true;
    }
    return false;
}

/* Does a module or model called `module` hold a tensor called `name`? */
static bool module_holds(const etch_spec *spec, const char *module, const char *name)
{
    for (uint32_t i = 0; i < spec->symbols.count; i++) {
        const etch_symbol *symbol = spec->symbols.at[i];
        bool is_module = symbol->kind == ETCH_SYMBOL_MODULE || symbol->kind == ETCH_SYMBOL_MODEL;
        if (!is_module || symbol->name != module)
            continue;
        const etch_ast_item *item = symbol->item;
        for (uint32_t k = 0; k < item->inputs.count; k++)
            if (item->inputs.at[k].name.text == name)
                return true;
        if (body_holds(&item->body, name))
            return true;
    }
    return false;
}

/* The modules that a path goes through, each but the last of which calls the next. False after a warning. */
static bool select_path(etch_spec *spec, const body_names *n, etch_ast_name selector, const char *end)
{
    for (const char *at = selector.text; at < end; at++) {
        size_t length = strcspn(at, ".");
        if (at + length > end)
            length = (size_t)(end - at);
        const char *module = etch_name(spec->names, at, length);
        if (!holds(n->modules.at, n->modules.count, module)) {
            if (note_lack(spec, selector.span, "part", selector.text))
                return false;
            etch_diag *diag = etch_warning(spec->diags, ETCH_E_UNKNOWN_SELECTOR, selector.span,
                                           "no module is called '%s': this has no effect", module);
            etch_suggest_name(diag, module, n->modules.at, n->modules.count);
            return false;
        }
        at += length;
    }
    return true;
}

/* "module.tensor", or "module.module" where that may be selected: is it there? */
static bool select_in_module(etch_spec *spec, const body_names *n, etch_ast_name selector, bool modules)
{
    const char *dot = strrchr(selector.text, '.'), *first = dot;
    const char *last = etch_name_of(spec->names, dot + 1);
    while (first > selector.text && first[-1] != '.')
        first--;
    const char *module = etch_name(spec->names, first, (size_t)(dot - first));
    if (!select_path(spec, n, selector, dot))
        return false;
    if (module_holds(spec, module, last) || (modules && holds(n->modules.at, n->modules.count, last)))
        return true;
    if (note_lack(spec, selector.span, modules ? "part" : "tensor", selector.text))
        return false;
    etch_warning(spec->diags, ETCH_E_UNKNOWN_SELECTOR, selector.span,
                 "module '%s' has no tensor '%s': this has no effect", module, last);
    return false;
}

void etch_select_tensor(etch_spec *spec, etch_ast_name selector)
{
    const body_names n = collect(spec);
    if (strchr(selector.text, '.')) {
        select_in_module(spec, &n, selector, false);
        return;
    }
    if (holds(n.tags.at, n.tags.count, selector.text) || note_lack(spec, selector.span, "tag", selector.text))
        return;
    etch_diag *diag = etch_warning(spec->diags, ETCH_E_UNKNOWN_SELECTOR, selector.span,
                                   "no tensor is tagged '%s': this has no effect", selector.text);
    etch_suggest_name(diag, selector.text, n.tags.at, n.tags.count);
}

bool etch_select_part(etch_spec *spec, etch_ast_name selector)
{
    const body_names n = collect(spec);
    if (strchr(selector.text, '.'))
        return select_in_module(spec, &n, selector, true);
    ETCH_VEC(const char *) names = {0};
    for (uint32_t i = 0; i < n.loops.count; i++)
        ETCH_PUSH(spec->arena, &names, n.loops.at[i]);
    for (uint32_t i = 0; i < n.tags.count; i++)
        ETCH_PUSH(spec->arena, &names, n.tags.at[i]);
    for (uint32_t i = 0; i < n.modules.count; i++)
        ETCH_PUSH(spec->arena, &names, n.modules.at[i]);
    if (holds(names.at, names.count, selector.text))
        return true;
    if (note_lack(spec, selector.span, "loop, tag or module", selector.text))
        return false;
    etch_diag *diag =
        etch_warning(spec->diags, ETCH_E_UNKNOWN_SELECTOR, selector.span,
                     "no loop, tag or module is called '%s': this has no effect", selector.text);
    etch_suggest_name(diag, selector.text, names.at, names.count);
    return false;
}

void etch_select_loop(etch_spec *spec, etch_ast_name selector)
{
    const body_names n = collect(spec);
    if (holds(n.loops.at, n.loops.count, selector.text))
        return;
    const bool is_other = strchr(selector.text, '.') || holds(n.tags.at, n.tags.count, selector.text) ||
                          holds(n.modules.at, n.modules.count, selector.text);
    etch_diag *diag = is_other ? etch_error(spec->diags, ETCH_E_PLAN_OPTION, selector.span, "'%s' is no loop",
                                            selector.text)
                               : etch_warning(spec->diags, ETCH_E_UNKNOWN_SELECTOR, selector.span,
                                              "no loop is called '%s': this has no effect", selector.text);
    etch_suggest_name(diag, selector.text, n.loops.at, n.loops.count);
}
