/* What a plan may select: dims, tags, tensors, modules. */
#include "lang/plan_int.h"

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
        if (symbol->kind == SYMBOL_DIM)
            ETCH_PUSH(spec->arena, &n.dims, symbol->name);
        if (symbol->kind != SYMBOL_MODULE && symbol->kind != SYMBOL_MODEL)
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

void etch_select_dim(etch_spec *spec, etch_ast_name dim)
{
    const body_names n = collect(spec);
    size_t length = strlen(dim.text);
    while (length > 1 && dim.text[length - 1] == '\'')
        length--;
    if (holds(n.dims.at, n.dims.count, etch_name(spec->names, dim.text, length)))
        return;
    etch_diag *diag = etch_warning(spec->diags, ETCH_E_UNKNOWN_SHARD, dim.span,
                                   "no dim is called '%s': this has no effect", dim.text);
    etch_suggest_name(diag, dim.text, n.dims.at, n.dims.count);
}

void etch_select_tensor(etch_spec *spec, etch_ast_name selector)
{
    const body_names n = collect(spec);
    const char *dot = strchr(selector.text, '.');
    const char *first =
        dot ? etch_name(spec->names, selector.text, (size_t)(dot - selector.text)) : selector.text;
    if (dot ? holds(n.modules.at, n.modules.count, first) : holds(n.tags.at, n.tags.count, first))
        return;
    etch_diag *diag = etch_warning(spec->diags, ETCH_E_UNKNOWN_SELECTOR, selector.span,
                                   dot ? "no module is called '%s': this has no effect"
                                       : "no tensor is tagged '%s': this has no effect",
                                   first);
    if (dot)
        etch_suggest_name(diag, first, n.modules.at, n.modules.count);
    else
        etch_suggest_name(diag, first, n.tags.at, n.tags.count);
}

bool etch_select_scope(etch_spec *spec, etch_ast_name selector)
{
    const body_names n = collect(spec);
    if (holds(n.modules.at, n.modules.count, selector.text))
        return true;
    if (strchr(selector.text, '.') || holds(n.tags.at, n.tags.count, selector.text) ||
        holds(n.loops.at, n.loops.count, selector.text)) {
        etch_diag *diag = etch_error(spec->diags, ETCH_E_PLAN_LATER, selector.span,
                                     "a scope of '%s' is part of the language but is not given meaning yet",
                                     selector.text);
        etch_help(diag, "a scope speaks of modules: for MODULE { ... }");
        return false;
    }
    etch_diag *diag = etch_warning(spec->diags, ETCH_E_UNKNOWN_SELECTOR, selector.span,
                                   "no module is called '%s': this has no effect", selector.text);
    etch_suggest_name(diag, selector.text, n.modules.at, n.modules.count);
    return true;
}
