/* Names: what each file of a spec declares, and what it sees of others. */
#include "lang/names/symbols.h"

#include <string.h>

/* ---- finding ------------------------------------------------------------------------------------------- */

const etch_symbol *etch_namespace_find(const etch_namespace *space, const char *name)
{
    return etch_map_find(&space->by_name, name);
}

/* Adds a name that the space does not have. */
static void add_name(etch_arena *arena, etch_namespace *space, const char *name, const etch_symbol *symbol)
{
    ETCH_PUSH(arena, &space->symbols, symbol);
    ETCH_PUSH(arena, &space->names, name);
    etch_map_set(arena, &space->by_name, name, symbol);
}

void etch_symbol_read(etch_spec *spec, const etch_symbol *symbol)
{
    if (!spec->read)
        spec->read = ETCH_NEW_ARRAY(spec->arena, spec->symbols.count, bool);
    spec->read[symbol->id] = true;
}

const char *etch_symbol_kind_name(etch_symbol_kind kind)
{
    static const char *const names[] = {"param",       "dim",  "module", "model",  "config", "train block",
                                        "infer block", "plan", "sweep",  "device", "cluster"};
    return names[kind];
}

void etch_suggest_name(etch_diag *diag, const char *text, const char *const *names, uint32_t count)
{
    const char *near = etch_nearest(text, names, count);
    if (near)
        etch_help(diag, "did you mean '%s'?", near);
}

bool etch_help_place_of_option(etch_diag *diag, const char *option)
{
    static const struct {
        const char *name, *place;
    } places[] = {
        {"accumulate", "a train block says it: train { model = gpt, accumulate = (B, micro) }"},
        {"dtype", "it is a line: dtype act = bf16, grads = f32"},
        {"freeze", "a train block says it: train { model = gpt, freeze = (embed, layer) }"},
        {"keep", "a plan says it: parallel p { keep = gathers }"},
        {"offload", "a plan says it: parallel p { offload = optimizer }"},
        {"prefetch", "the zero line of a plan says it: zero 3 @ dp, prefetch = 2"},
        {"schedule", "the stage line of a plan says it: stage (embed, layer, head) @ pp, schedule = zb_h1"},
    };
    for (uint32_t i = 0; i < sizeof places / sizeof *places; i++)
        if (strcmp(places[i].name, option) == 0) {
            etch_help(diag, "%s", places[i].place);
            return true;
        }
    return false;
}

const char *etch_names_listed(etch_arena *arena, const char *const *names, uint32_t count)
{
    etch_buf list = {.arena = arena};
    for (uint32_t i = 0; i < count; i++)
        etch_buf_printf(&list, "%s%s", i ? ", " : "", names[i]);
    return list.text;
}

void etch_help_dims_of(etch_spec *spec, etch_diag *diag, const char *param)
{
    for (uint32_t i = 0; i < spec->symbols.count; i++) {
        const etch_symbol *symbol = spec->symbols.at[i];
        if (symbol->kind != ETCH_SYMBOL_DIM || !symbol->def || !symbol->def->value)
            continue;
        const etch_ast_expr *size = symbol->def->value;
        if (size->kind == ETCH_AST_NAME && size->name.text == param)
            etch_help(diag, "dim %s has the size %s", symbol->name, param);
    }
}

static etch_span place_of(const etch_symbol *symbol)
{
    if (symbol->def)
        return symbol->def->name.span;
    return symbol->item->name.text ? symbol->item->name.span : symbol->item->span;
}

static const etch_source *file_of(const etch_symbol *symbol)
{
    return symbol->home->ast->source;
}

etch_diag *etch_unknown_name(etch_spec *spec, const etch_namespace *space, const char *what,
                             etch_ast_name name, const char *const *more, uint32_t more_count)
{
    etch_diag *diag =
        etch_error(spec->diags, ETCH_E_UNKNOWN_NAME, name.span, "unknown %s '%s'", what, name.text);
    const uint32_t count = space->names.count + more_count;
    const char **names = ETCH_NEW_ARRAY(spec->arena, count, const char *);
    for (uint32_t i = 0; i < more_count; i++)
        names[i] = more[i];
    for (uint32_t i = 0; i < space->names.count; i++)
        names[more_count + i] = space->names.at[i];
    for (uint32_t i = 0; i < spec->symbols.count; i++) {
        const etch_symbol *symbol = spec->symbols.at[i];
        if (symbol->name != name.text)
            continue;
        etch_note(diag, place_of(symbol), "this %s is not visible in '%s'",
                  etch_symbol_kind_name(symbol->kind), space->ast->source->path);
        etch_help(diag, "import it from '%s'", file_of(symbol)->path);
        return diag;
    }
    etch_suggest_name(diag, name.text, names, count);
    return diag;
}

/* ---- filling ------------------------------------------------------------------------------------------- */

static void report_twice(etch_spec *spec, const char *name, etch_span at, const etch_symbol *other,
                         bool imported)
{
    etch_diag *diag = etch_error(spec->diags, ETCH_E_DEFINED_TWICE, at, "'%s' is %s", name,
                                 imported ? "imported from two files" : "defined twice");
    etch_note(diag, place_of(other), "'%s' is this %s already", name, etch_symbol_kind_name(other->kind));
    if (imported)
        etch_help(diag, "import under another name, `import \"...\" as x`, or list what you need in ( )");
    else if (other->kind == ETCH_SYMBOL_TRAIN && !other->item->name.text)
        etch_help(diag, "give train blocks names: train NAME { ... }");
}

/* Makes `symbol` visible as `name`; `at` is where it comes into the file. */
static void add(etch_spec *spec, etch_namespace *space, const char *name, const etch_symbol *symbol,
                etch_span at)
{
    const etch_symbol *other = etch_namespace_find(space, name);
    if (other) {
        if (other != symbol)
            report_twice(spec, name, at, other, symbol->home != space);
        return;
    }
    add_name(spec->arena, space, name, symbol);
}

static const etch_namespace *space_of(const etch_spec *spec, const etch_ast *ast)
{
    for (uint32_t i = 0; i < spec->spaces.count; i++)
        if (spec->spaces.at[i]->ast == ast)
            return spec->spaces.at[i];
    return NULL;
}

/* A train block without a name has none that others could see. */
static bool is_exported(const etch_symbol *symbol)
{
    return symbol->def || symbol->item->name.text;
}

static void import_listed(etch_spec *spec, etch_namespace *space, const etch_ast_item *import,
                          const etch_namespace *from)
{
    for (uint32_t i = 0; i < import->names.count; i++) {
        const etch_ast_name *name = &import->names.at[i];
        const etch_symbol *symbol = etch_namespace_find(from, name->text);
        if (symbol && is_exported(symbol)) {
            add(spec, space, name->text, symbol, name->span);
            continue;
        }
        etch_diag *diag = etch_error(spec->diags, ETCH_E_IMPORT_MISSING, name->span, "'%s' has no '%s'",
                                     import->name.text, name->text);
        etch_suggest_name(diag, name->text, from->names.at, from->names.count);
    }
}

static void import_all(etch_spec *spec, etch_namespace *space, const etch_ast_item *import,
                       const etch_namespace *from)
{
    for (uint32_t i = 0; i < from->symbols.count; i++) {
        const char *name = from->names.at[i];
        if (!is_exported(from->symbols.at[i]))
            continue;
        if (import->alias.text)
            name = etch_name_of(spec->names, etch_text(spec->arena, "%s.%s", import->alias.text, name));
        add(spec, space, name, from->symbols.at[i], import->name.span);
    }
}

static void add_imports(etch_spec *spec, etch_namespace *space)
{
    for (uint32_t i = 0; i < space->ast->items.count; i++) {
        const etch_ast_item *item = &space->ast->items.at[i];
        const etch_namespace *from = item->kind == ETCH_AST_IMPORT ? space_of(spec, item->file) : NULL;
        if (from && item->listed)
            import_listed(spec, space, item, from);
        else if (from)
            import_all(spec, space, item, from);
    }
}

static void declare(etch_spec *spec, etch_namespace *space, etch_symbol_kind kind, const etch_ast_item *item,
                    const etch_ast_def *def)
{
    etch_symbol *symbol = ETCH_NEW(spec->arena, etch_symbol);
    const char *name = def ? def->name.text : item->name.text;
    *symbol = (etch_symbol){.kind = kind,
                            .id = spec->symbols.count,
                            .name = name ? name : etch_name_of(spec->names, "train"),
                            .item = item,
                            .def = def,
                            .home = space};
    if (kind == ETCH_SYMBOL_PARAM) {
        symbol->param = &spec->params.at[spec->params.count];
        spec->params.at[spec->params.count++] = (etch_param){.name = name, .span = def->name.span};
    }
    ETCH_PUSH(spec->arena, &spec->symbols, symbol);
    add(spec, space, symbol->name, symbol, place_of(symbol));
}

static void add_own(etch_spec *spec, etch_namespace *space)
{
    static const etch_symbol_kind kinds[] = {
        [ETCH_AST_PARAM] = ETCH_SYMBOL_PARAM,     [ETCH_AST_DIMS] = ETCH_SYMBOL_DIM,
        [ETCH_AST_MODULE] = ETCH_SYMBOL_MODULE,   [ETCH_AST_MODEL] = ETCH_SYMBOL_MODEL,
        [ETCH_AST_CONFIG] = ETCH_SYMBOL_CONFIG,   [ETCH_AST_TRAIN] = ETCH_SYMBOL_TRAIN,
        [ETCH_AST_INFER] = ETCH_SYMBOL_INFER,     [ETCH_AST_PARALLEL] = ETCH_SYMBOL_PLAN,
        [ETCH_AST_SWEEP] = ETCH_SYMBOL_SWEEP,     [ETCH_AST_DEVICE] = ETCH_SYMBOL_DEVICE,
        [ETCH_AST_CLUSTER] = ETCH_SYMBOL_CLUSTER,
    };
    for (uint32_t i = 0; i < space->ast->items.count; i++) {
        const etch_ast_item *item = &space->ast->items.at[i];
        switch (item->kind) {
        case ETCH_AST_IMPORT:
        case ETCH_AST_USE:
        case ETCH_AST_ASSUME:
        case ETCH_AST_DTYPE:
        case ETCH_AST_CHECK:
            break;
        case ETCH_AST_PARAM:
        case ETCH_AST_DIMS:
            for (uint32_t k = 0; k < item->defs.count; k++)
                declare(spec, space, kinds[item->kind], item, &item->defs.at[k]);
            break;
        default:
            declare(spec, space, kinds[item->kind], item, NULL);
        }
    }
}

typedef struct declared {
    uint32_t names, params, plans, assumptions;
    /* which has been reported */
    bool too_many;
} declared;

static void count_item(etch_spec *spec, const etch_ast_item *item, declared *n)
{
    const bool several = item->kind == ETCH_AST_PARAM || item->kind == ETCH_AST_DIMS;
    n->names += several ? item->defs.count : 1;
    n->params += item->kind == ETCH_AST_PARAM ? item->defs.count : 0;
    n->plans += item->kind == ETCH_AST_PARALLEL;
    n->assumptions += item->kind == ETCH_AST_ASSUME ? item->tests.count : 0;
    n->too_many =
        n->names > ETCH_SPEC_NAMES || n->plans > ETCH_SPEC_PLANS || n->assumptions > ETCH_SPEC_ASSUMPTIONS;
    if (n->names > ETCH_SPEC_NAMES)
        etch_error(spec->diags, ETCH_E_SPEC_TOO_LARGE, item->span, "the spec declares more than %d names",
                   ETCH_SPEC_NAMES);
    else if (n->plans > ETCH_SPEC_PLANS)
        etch_error(spec->diags, ETCH_E_SPEC_TOO_LARGE, item->span, "the spec declares more than %d plans",
                   ETCH_SPEC_PLANS);
    else if (n->assumptions > ETCH_SPEC_ASSUMPTIONS)
        etch_error(spec->diags, ETCH_E_SPEC_TOO_LARGE, item->span, "the spec has more than %d assumptions",
                   ETCH_SPEC_ASSUMPTIONS);
}

/* What all files declare; stops where it is too much. */
static declared count_declared(etch_spec *spec)
{
    declared n = {0};
    for (uint32_t i = 0; i < spec->files.count; i++) {
        const etch_ast_items *items = &spec->files.at[i]->items;
        for (uint32_t k = 0; k < items->count && !n.too_many; k++)
            count_item(spec, &items->at[k], &n);
    }
    return n;
}

void etch_names_collect(etch_spec *spec)
{
    const declared n = count_declared(spec);
    if (n.too_many)
        return;
    /* symbols point at their params, so room for all of them is made before */
    spec->params.at = ETCH_NEW_ARRAY(spec->arena, n.params, etch_param);
    spec->params.capacity = n.params;
    spec->ranges = ETCH_NEW_ARRAY(spec->arena, n.params, etch_range);
    for (uint32_t i = 0; i < spec->files.count; i++) {
        etch_namespace *space = ETCH_NEW(spec->arena, etch_namespace);
        space->ast = spec->files.at[i];
        add_imports(spec, space);
        add_own(spec, space);
        ETCH_PUSH(spec->arena, &spec->spaces, space);
    }
    spec->main = spec->spaces.at[spec->spaces.count - 1];
    spec->dim_sizes = ETCH_NEW_ARRAY(spec->arena, spec->symbols.count, etch_expr);
    spec->dim_states = ETCH_NEW_ARRAY(spec->arena, spec->symbols.count, uint8_t);
}

/* ---- texts and kinds ----------------------------------------------------------------------------------- */

const char *etch_written(etch_spec *spec, etch_span span)
{
    const etch_source *source = etch_source_at(spec->diags, span, NULL, NULL);
    if (!source || span.end < span.start)
        return "";
    return etch_copy_text(spec->arena, source->text + (span.start - source->base), span.end - span.start);
}

const etch_symbol *etch_only_symbol(const etch_spec *spec, etch_symbol_kind kind, uint32_t *count)
{
    const etch_symbol *own = NULL, *imported = NULL;
    uint32_t own_count = 0, imported_count = 0;
    for (uint32_t i = 0; i < spec->main->symbols.count; i++) {
        const etch_symbol *symbol = spec->main->symbols.at[i];
        if (symbol->kind != kind)
            continue;
        if (symbol->home == spec->main) {
            own = symbol;
            own_count++;
        } else {
            imported = symbol;
            imported_count++;
        }
    }
    *count = own_count > 0 ? own_count : imported_count;
    return *count != 1 ? NULL : own ? own : imported;
}
