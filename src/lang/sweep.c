/* Sweeps: lists of values, and the blocks that say what to compute for all of them. */
#include "lang/lang.h"
#include "lang/names/series.h"
#include "lang/plan/lookup.h"
#include "lang/spec_int.h"

#include <string.h>

/* ---- values -------------------------------------------------------------------------------------------- */

/* What stands for several values. */
static const struct {
    const char *name;
    etch_values_kind kind;
    uint32_t least, most;
    const char *example;
} functions[] = {
    {"range", ETCH_VALUES_RANGE, 2, 3, "range(FIRST, LAST) or range(FIRST, LAST, STEP)"},
    {"powers", ETCH_VALUES_POWERS, 3, 3, "powers(BASE, FROM, TO)"},
    {"divisors", ETCH_VALUES_DIVISORS, 1, 1, "divisors(NUMBER)"},
};
enum { FUNCTIONS = sizeof functions / sizeof *functions };

typedef struct reading {
    etch_spec *spec;
    etch_lookup lookup;
} reading;

/* The function that a call names; FUNCTIONS: none of them. */
static uint32_t function_of(const etch_ast_expr *expr)
{
    uint32_t i = 0;
    while (i < FUNCTIONS && (expr->kind != ETCH_AST_CALL || strcmp(functions[i].name, expr->name.text) != 0))
        i++;
    return i;
}

/* "rang(1, 8)": nearly one of them. */
static bool is_misspelt(etch_spec *spec, const etch_ast_expr *expr)
{
    const char *names[FUNCTIONS];
    for (uint32_t i = 0; i < FUNCTIONS; i++)
        names[i] = functions[i].name;
    const char *near = expr->kind == ETCH_AST_CALL ? etch_nearest(expr->name.text, names, FUNCTIONS) : NULL;
    if (!near)
        return false;
    etch_diag *diag = etch_error(spec->diags, ETCH_E_SWEEP_VALUES, expr->name.span,
                                 "there are no values '%s'", expr->name.text);
    etch_help(diag, "did you mean '%s'?", near);
    return true;
}

static bool read_piece(const reading *r, const etch_ast_expr *expr, etch_values_piece *out)
{
    const uint32_t f = function_of(expr);
    *out = (etch_values_piece){.kind = ETCH_VALUES_NUMBER, .count = 1, .span = expr->span};
    if (f == FUNCTIONS) {
        out->at[0] = is_misspelt(r->spec, expr) ? NULL : etch_number_of(r->spec, expr, &r->lookup);
        return out->at[0] != NULL;
    }
    out->kind = functions[f].kind;
    out->count = expr->args.count;
    bool named = false;
    for (uint32_t i = 0; i < expr->args.count; i++)
        named = named || expr->args.at[i].name.text;
    if (named || out->count < functions[f].least || out->count > functions[f].most) {
        etch_diag *diag = etch_error(r->spec->diags, ETCH_E_SWEEP_VALUES, expr->span,
                                     "'%s' has other arguments", functions[f].name);
        etch_help(diag, "write %s", functions[f].example);
        return false;
    }
    for (uint32_t i = 0; i < out->count; i++)
        if (!(out->at[i] = etch_number_of(r->spec, expr->args.at[i].value, &r->lookup)))
            return false;
    return true;
}

static bool read_pieces(const reading *r, const etch_ast_expr *value, etch_values_list *out)
{
    const bool several = value->kind == ETCH_AST_LIST;
    const uint32_t count = several ? value->items.count : 1;
    etch_values_piece *pieces = ETCH_NEW_ARRAY(r->spec->arena, count, etch_values_piece);
    for (uint32_t i = 0; i < count; i++)
        if (!read_piece(r, several ? value->items.at[i] : value, &pieces[i]))
            return false;
    out->pieces = pieces;
    out->count = count;
    return true;
}

static const char *past_space(const char *text)
{
    return text + strspn(text, " \t\n");
}

bool etch_spec_report_empty_axis(etch_spec *spec, const char *text)
{
    etch_diag *diag = etch_error(spec->diags, ETCH_E_SWEEP_VALUES, (etch_span){0, 0},
                                 "an axis of a sweep needs a name and values: '%.80s'", text);
    return etch_help(diag, "write 'tp = 1, 2, 4', or range(1, 8), powers(2, 0, 3), divisors(heads)");
}

/* "NAME = [VALUES]" as one binding. False after an error. */
static bool parse_axis(etch_spec *spec, const char *text, const char *source_name, etch_ast_def *out)
{
    const char *sign = strchr(text, '=');
    const char *values = sign ? past_space(sign + 1) : "";
    if (!sign || !*values || strcmp(values, "[]") == 0)
        return etch_spec_report_empty_axis(spec, text);
    const char *whole =
        *values == '[' ? text : etch_text(spec->arena, "%.*s [%s]", (int)(sign + 1 - text), text, values);
    const etch_source *source = etch_source_add(spec->diags, source_name, whole, strlen(whole));
    etch_ast_defs defs = {0};
    if (!source) {
        etch_error(spec->diags, ETCH_E_SOURCES_TOO_LARGE, (etch_span){0, 0},
                   "the axes and the files of the spec are too large together");
        return false;
    }
    if (!etch_ast_parse_settings(&spec->context, source, &defs))
        return false;
    if (defs.count != 1) {
        etch_error(spec->diags, ETCH_E_SWEEP_VALUES, defs.at[1].span, "one axis stands here: '%.80s'", text);
        return false;
    }
    *out = defs.at[0];
    return true;
}

bool etch_spec_values_list(etch_spec *spec, const char *text, const char *source_name, const etch_plan *plan,
                           etch_values_list *out)
{
    etch_ast_def def = {0};
    *out = (etch_values_list){0};
    if (!parse_axis(spec, text, source_name, &def))
        return false;
    out->name = def.name.text;
    out->span = def.span;
    bool absent = false;
    if (!etch_spec_settable(spec, plan, def.name, &out->var, &absent))
        return absent;
    if (etch_series_param(spec, out->var)) {
        etch_error(spec->diags, ETCH_E_SERIES, def.span, "'%s' is a text or a list: an axis is of numbers",
                   def.name.text);
        return false;
    }
    etch_spec_range(spec, out->var, &out->real, &out->least);
    const reading r = {spec, etch_plan_lookup(spec, spec->main, plan)};
    return read_pieces(&r, def.value, out);
}

bool etch_spec_range(const etch_spec *spec, etch_expr var, bool *real, int64_t *least)
{
    for (uint32_t i = 0; i < spec->params.count; i++)
        if (spec->params.at[i].var == var) {
            *real = spec->ranges[i].type == ETCH_PARAM_REAL;
            *least = spec->ranges[i].least;
            return true;
        }
    *real = false;
    *least = 1;
    return false;
}

bool etch_spec_names(const etch_spec *spec, const char *name)
{
    const etch_symbol *symbol = etch_namespace_find(spec->main, etch_name_of(spec->names, name));
    return symbol && (symbol->kind == ETCH_SYMBOL_PARAM || symbol->kind == ETCH_SYMBOL_DIM);
}

/* ---- blocks -------------------------------------------------------------------------------------------- */

/* The items of a list, or the one that stands alone, as they are written. */
static void written_items(etch_spec *spec, const etch_ast_expr *value, const char ***at, uint32_t *count)
{
    const bool several = value->kind == ETCH_AST_LIST || value->kind == ETCH_AST_TUPLE;
    *count = several ? value->items.count : 1;
    *at = ETCH_NEW_ARRAY(spec->arena, *count, const char *);
    for (uint32_t i = 0; i < *count; i++)
        (*at)[i] = etch_written(spec, several ? value->items.at[i]->span : value->span);
}

static bool read_line(etch_spec *spec, const etch_ast_def *def, etch_sweep_block_text *out)
{
    const char *name = def->name.text;
    const char **items;
    uint32_t count;
    written_items(spec, def->value, &items, &count);
    const bool single = strcmp(name, "best") == 0 || strcmp(name, "top") == 0;
    if (single && count != 1) {
        etch_error(spec->diags, ETCH_E_SWEEP_VALUES, def->value->span, "'%s' has one value", name);
        return false;
    }
    for (uint32_t i = 0; i < count; i++) {
        if (strcmp(name, "plans") == 0)
            ETCH_PUSH(spec->arena, &out->plans, items[i]);
        else if (strcmp(name, "configs") == 0)
            ETCH_PUSH(spec->arena, &out->configs, items[i]);
        else if (strcmp(name, "runs") == 0)
            ETCH_PUSH(spec->arena, &out->runs, items[i]);
        else if (strcmp(name, "select") == 0)
            ETCH_PUSH(spec->arena, &out->select, items[i]);
        else if (strcmp(name, "pareto") == 0)
            ETCH_PUSH(spec->arena, &out->pareto, items[i]);
    }
    if (strcmp(name, "best") == 0)
        out->best = items[0];
    else if (strcmp(name, "top") == 0)
        out->top = items[0];
    else if (strcmp(name, "plans") != 0 && strcmp(name, "configs") != 0 && strcmp(name, "runs") != 0 &&
             strcmp(name, "select") != 0 && strcmp(name, "pareto") != 0)
        ETCH_PUSH(spec->arena, &out->over, etch_written(spec, def->span));
    return true;
}

static const etch_ast_item *find_block(etch_spec *spec, const char *name)
{
    const etch_ast_items *items = &spec->main->ast->items;
    ETCH_VEC(const char *) names = {0};
    for (uint32_t i = 0; i < items->count; i++) {
        if (items->at[i].kind != ETCH_AST_SWEEP)
            continue;
        if (strcmp(items->at[i].name.text, name) == 0)
            return &items->at[i];
        ETCH_PUSH(spec->arena, &names, items->at[i].name.text);
    }
    etch_diag *diag =
        etch_error(spec->diags, ETCH_E_SWEEP_UNKNOWN, (etch_span){0, 0}, "there is no sweep '%s'", name);
    etch_suggest_name(diag, name, names.at, names.count);
    etch_buf list = {.arena = spec->arena};
    for (uint32_t i = 0; i < names.count; i++)
        etch_buf_printf(&list, "%s%s", i ? ", " : "", names.at[i]);
    etch_help(diag, names.count ? "its sweeps are %s" : "the spec has none%s",
              names.count ? list.text : "; say the axes with --over");
    return NULL;
}

const etch_sweep_block_text *etch_spec_sweep(etch_spec *spec, const char *name)
{
    const etch_ast_item *item = find_block(spec, name);
    if (!item)
        return NULL;
    etch_sweep_block_text *block = ETCH_NEW(spec->arena, etch_sweep_block_text);
    block->name = item->name.text;
    block->span = item->span;
    for (uint32_t i = 0; i < item->defs.count; i++) {
        for (uint32_t k = 0; k < i; k++)
            if (item->defs.at[k].name.text == item->defs.at[i].name.text) {
                etch_diag *diag = etch_error(spec->diags, ETCH_E_SWEEP_VALUES, item->defs.at[i].span,
                                             "'%s' is given twice", item->defs.at[i].name.text);
                etch_note(diag, item->defs.at[k].span, "it is given here already");
                return NULL;
            }
        if (!read_line(spec, &item->defs.at[i], block))
            return NULL;
    }
    for (uint32_t i = 0; i < item->tests.count; i++)
        ETCH_PUSH(spec->arena, &block->where, etch_written(spec, item->tests.at[i]->span));
    return block;
}

/* ---- numbers with units ------------------------------------------------------------------------------ */

static bool in_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '\'' || c == '.';
}

static size_t word_length(const char *text)
{
    size_t length = 0;
    while (in_word(text[length]))
        length++;
    return length;
}

/* The unit that a text begins with, the longest; 0: none. A bare B is a dim in most specs, and no unit. */
static size_t unit_at(const char *text, const etch_machine_unit **unit)
{
    size_t longest = 0;
    const etch_machine_unit *u;
    for (uint32_t i = 0; (u = etch_machine_unit_at(i)) != NULL; i++) {
        const size_t length = strlen(u->name);
        if (length > longest && strcmp(u->name, "B") != 0 && strncmp(text, u->name, length) == 0 &&
            !in_word(text[length])) {
            longest = length;
            *unit = u;
        }
    }
    return longest;
}

const char *etch_units_expand(etch_arena *arena, const char *text)
{
    etch_buf out = {.arena = arena};
    while (*text) {
        const size_t length = word_length(text);
        const char *after = text + length + strspn(text + length, " ");
        const etch_machine_unit *unit = NULL;
        const bool number = length > 0 && *text >= '0' && *text <= '9';
        const size_t used = number ? unit_at(after, &unit) : 0;
        if (used == 0) {
            etch_buf_add(&out, text, length ? length : 1);
            text += length ? length : 1;
            continue;
        }
        etch_buf_printf(&out, "(%.*s*%lld%s10^%d)", (int)length, text, (long long)unit->scale,
                        unit->power < 0 ? "/" : "*", unit->power < 0 ? -unit->power : unit->power);
        text = after + used;
    }
    return out.text ? out.text : "";
}
