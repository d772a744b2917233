/* `dtype` lines of specs and plans: which class of tensors has which dtype. */
#include "lang/names/symbols.h"

#include <string.h>

/* ---- words --------------------------------------------------------------------------------------------- */

static uint32_t find_class(etch_spec *spec, etch_ast_name name)
{
    const uint32_t class = etch_dtype_class_of(name.text);
    if (class < ETCH_DTYPE_CLASSES)
        return class;
    if (strcmp(name.text, "gemm") == 0) {
        etch_error(spec->diags, ETCH_E_LATER, name.span,
                   "the dtype of '%s' is part of the language but is not given meaning yet", name.text);
        return ETCH_DTYPE_CLASSES;
    }
    const char *names[ETCH_DTYPE_CLASSES];
    etch_buf list = {.arena = spec->arena};
    for (uint32_t c = 0; c < ETCH_DTYPE_CLASSES; c++) {
        names[c] = etch_dtype_class_name(c);
        etch_buf_printf(&list, "%s%s", c ? ", " : "", names[c]);
    }
    etch_diag *diag =
        etch_error(spec->diags, ETCH_E_DTYPE, name.span, "'%s' is no class of tensors", name.text);
    etch_suggest_name(diag, name.text, names, ETCH_DTYPE_CLASSES);
    etch_help(diag, "classes are %s", list.text);
    return ETCH_DTYPE_CLASSES;
}

/* The elements that share a scale, of `f8(block = 128)`. False after an error. */
static bool find_block(etch_spec *spec, const etch_ast_expr *value, uint32_t class, uint32_t *block)
{
    enum { MOST = 1 << 20 };
    const etch_ast_arg *arg = value->args.count == 1 ? &value->args.at[0] : NULL;
    *block = 0;
    if (!etch_dtype_class_has_blocks(class)) {
        etch_error(spec->diags, ETCH_E_DTYPE, value->span,
                   "only what goes to experts and back has scales: dispatch and combine");
        return false;
    }
    if (arg && arg->name.text && strcmp(arg->name.text, "block") == 0 && arg->value->kind == ETCH_AST_INTEGER)
        for (const char *digit = arg->value->name.text; *digit && *block <= MOST; digit++)
            *block = 10 * *block + (uint32_t)(*digit - '0');
    if (*block > 0 && *block <= MOST)
        return true;
    etch_diag *diag =
        etch_error(spec->diags, ETCH_E_DTYPE, value->span,
                   "a dtype takes the number of elements that share a scale, from 1 to %d", (int)MOST);
    etch_help(diag, "write %s(block = 128)", value->name.text);
    return false;
}

static etch_dtype find_dtype(etch_spec *spec, const etch_ast_expr *value)
{
    const bool named = value->kind == ETCH_AST_NAME || value->kind == ETCH_AST_CALL;
    etch_dtype dtype = named ? etch_dtype_of(value->name.text) : ETCH_DTYPE_COUNT;
    if (dtype != ETCH_DTYPE_COUNT || value->kind == ETCH_AST_BROKEN)
        return dtype;
    const char *names[ETCH_DTYPE_COUNT];
    etch_buf list = {.arena = spec->arena};
    for (uint32_t i = 0; i < ETCH_DTYPE_COUNT; i++) {
        names[i] = etch_dtype_name((etch_dtype)i);
        etch_buf_printf(&list, "%s%s", i ? ", " : "", names[i]);
    }
    const char *text = etch_written(spec, value->span);
    etch_diag *diag = etch_error(spec->diags, ETCH_E_DTYPE, value->span, "there is no dtype '%s'", text);
    etch_suggest_name(diag, text, names, ETCH_DTYPE_COUNT);
    etch_help(diag, "dtypes are %s", list.text);
    return ETCH_DTYPE_COUNT;
}

/* One line of a `dtype`. False after an error. */
static bool read_line(etch_spec *spec, const etch_ast_def *def, uint32_t *class, etch_dtype_line *line)
{
    *class = find_class(spec, def->name);
    *line = (etch_dtype_line){true, find_dtype(spec, def->value), 0, def->span};
    if (*class == ETCH_DTYPE_CLASSES || line->dtype == ETCH_DTYPE_COUNT ||
        (def->value->kind == ETCH_AST_CALL && !find_block(spec, def->value, *class, &line->block)))
        return false;
    if (!etch_dtype_class_is_real(*class) || etch_dtype_is_real(line->dtype))
        return true;
    etch_error(spec->diags, ETCH_E_DTYPE, def->value->span, "%s is no dtype of real numbers, which %s are",
               etch_dtype_name(line->dtype), etch_dtype_class_name(*class));
    return false;
}

static void report_twice(etch_spec *spec, const etch_ast_def *def, etch_span earlier)
{
    etch_diag *diag = etch_error(spec->diags, ETCH_E_DEFINED_TWICE, def->span,
                                 "the dtype of '%s' is set twice", def->name.text);
    etch_note(diag, earlier, "it is set here already");
}

/* ---- specs --------------------------------------------------------------------------------------------- */

static void read_own_dtypes(etch_spec *spec, etch_namespace *space)
{
    for (uint32_t i = 0; i < space->ast->items.count; i++) {
        const etch_ast_item *item = &space->ast->items.at[i];
        for (uint32_t k = 0; item->kind == ETCH_AST_DTYPE && k < item->defs.count; k++) {
            const etch_ast_def *def = &item->defs.at[k];
            uint32_t class;
            etch_dtype_line line;
            if (!read_line(spec, def, &class, &line))
                continue;
            if (space->dtypes[class].given)
                report_twice(spec, def, space->dtypes[class].span);
            else
                space->dtypes[class] = line;
        }
    }
}

static const etch_namespace *imported_space(const etch_spec *spec, const etch_ast_item *item)
{
    for (uint32_t i = 0; item->kind == ETCH_AST_IMPORT && i < spec->spaces.count; i++)
        if (spec->spaces.at[i]->ast == item->file)
            return spec->spaces.at[i];
    return NULL;
}

/* What a file does not say itself, its imports say; they must agree. */
static void read_imported_dtypes(etch_spec *spec, etch_namespace *space)
{
    bool own[ETCH_DTYPE_CLASSES];
    for (uint32_t c = 0; c < ETCH_DTYPE_CLASSES; c++)
        own[c] = space->dtypes[c].given;
    for (uint32_t i = 0; i < space->ast->items.count; i++) {
        const etch_ast_item *item = &space->ast->items.at[i];
        const etch_namespace *from = imported_space(spec, item);
        for (uint32_t c = 0; from && c < ETCH_DTYPE_CLASSES; c++) {
            etch_dtype_line *line = &space->dtypes[c];
            if (own[c] || !from->dtypes[c].given)
                continue;
            if (line->given &&
                (line->dtype != from->dtypes[c].dtype || line->block != from->dtypes[c].block)) {
                etch_diag *diag =
                    etch_error(spec->diags, ETCH_E_DTYPES_DISAGREE, item->name.span,
                               "imports set the dtype of '%s' differently", etch_dtype_class_name(c));
                etch_note(diag, line->span, "%s here", etch_dtype_name(line->dtype));
                etch_note(diag, from->dtypes[c].span, "%s here", etch_dtype_name(from->dtypes[c].dtype));
                etch_help(diag, "set it in this file: dtype %s = %s", etch_dtype_class_name(c),
                          etch_dtype_name(line->dtype));
            }
            *line = from->dtypes[c];
        }
    }
}

void etch_dtypes_collect(etch_spec *spec)
{
    for (uint32_t i = 0; i < spec->spaces.count; i++) {
        read_own_dtypes(spec, spec->spaces.at[i]);
        read_imported_dtypes(spec, spec->spaces.at[i]);
    }
    spec->dtypes =
        (etch_dtypes){.act = ETCH_BF16, .weights = ETCH_BF16, .grads = ETCH_F32, .optim = ETCH_F32};
    for (uint32_t c = 0; c < ETCH_DTYPE_CLASSES; c++)
        if (spec->main->dtypes[c].given)
            etch_dtypes_set(&spec->dtypes, c, spec->main->dtypes[c].dtype, spec->main->dtypes[c].block);
}

/* ---- plans --------------------------------------------------------------------------------------------- */

static bool is_none(const etch_ast_expr *value)
{
    return value->kind == ETCH_AST_NAME && strcmp(value->name.text, "none") == 0;
}

void etch_precision_read(etch_spec *spec, const etch_ast_defs *defs, etch_precision *precision)
{
    for (uint32_t i = 0; i < defs->count; i++) {
        const etch_ast_def *def = &defs->at[i];
        uint32_t class = etch_dtype_class_of(def->name.text);
        const bool no_master = class == ETCH_CLASS_MASTER && is_none(def->value);
        etch_dtype_line line;
        if (!no_master && !read_line(spec, def, &class, &line))
            continue;
        if (precision->spans[class].end) {
            report_twice(spec, def, precision->spans[class]);
            continue;
        }
        precision->spans[class] = def->span;
        precision->no_master = precision->no_master || no_master;
        if (no_master)
            continue;
        precision->at[class] = (etch_dtype_said)line.dtype + 1;
        precision->blocks[class] = line.block;
    }
}
