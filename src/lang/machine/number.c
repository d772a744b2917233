/* Numbers of machines: values with units, each said once. */
#include <string.h>

#include "graph/graph.h"
#include "lang/machine/machine_int.h"

/* ---- what has been said -------------------------------------------------------------------------------- */

bool etch_machine_has(const etch_machine_reader *reader, const char *key)
{
    for (uint32_t i = 0; i < reader->said.count; i++)
        if (strcmp(reader->said.at[i].key, key) == 0)
            return true;
    return false;
}

bool etch_machine_say(etch_machine_reader *reader, const char *key, etch_span span)
{
    for (uint32_t i = 0; i < reader->said.count; i++) {
        if (strcmp(reader->said.at[i].key, key) != 0)
            continue;
        etch_diag *diag = etch_error(reader->spec->diags, ETCH_E_MACHINE_TWICE, span,
                                     "the %s '%s' says '%s' twice", reader->what, reader->name.text, key);
        return etch_note(diag, reader->said.at[i].span, "it says so here already");
    }
    ETCH_PUSH(reader->spec->arena, &reader->said, (etch_machine_said){key, span});
    return true;
}

void etch_machine_lacks(etch_machine_reader *reader, const char *key, const char *help)
{
    if (etch_machine_has(reader, key))
        return;
    etch_diag *diag = etch_error(reader->spec->diags, ETCH_E_MACHINE_LACKS, reader->name.span,
                                 "the %s '%s' does not say '%s'", reader->what, reader->name.text, key);
    etch_help(diag, "%s", help);
}

void etch_machine_unknown(etch_machine_reader *reader, const char *what, etch_ast_name name,
                          const char *(*at)(uint32_t index))
{
    etch_buf list = {.arena = reader->spec->arena};
    ETCH_VEC(const char *) names = {0};
    for (uint32_t i = 0; at(i); i++) {
        ETCH_PUSH(reader->spec->arena, &names, at(i));
        etch_buf_printf(&list, "%s%s", i ? ", " : "", at(i));
    }
    etch_diag *diag = etch_error(reader->spec->diags, ETCH_E_MACHINE_LINE, name.span, "there is no %s '%s'",
                                 what, name.text);
    const char *near = etch_nearest(name.text, names.at, names.count);
    if (near && strcmp(near, name.text) != 0)
        etch_help(diag, "did you mean '%s'?", near);
    etch_help(diag, "there are %s", list.text);
}

/* ---- values -------------------------------------------------------------------------------------------- */

static bool refuse(etch_machine_reader *reader, const etch_ast_def *def, const char *what)
{
    etch_error(reader->spec->diags, ETCH_E_MACHINE_VALUE, def->value->span, "'%s' %s", def->name.text, what);
    return false;
}

static const char *unit_name_at(uint32_t index)
{
    const etch_machine_unit *unit = etch_machine_unit_at(index);
    return unit ? unit->name : NULL;
}

static const etch_machine_unit *unit_called(const char *name)
{
    const etch_machine_unit *unit;
    for (uint32_t i = 0; (unit = etch_machine_unit_at(i)) != NULL; i++)
        if (strcmp(unit->name, name) == 0)
            return unit;
    return NULL;
}

/* The unit of a number; that of nothing where it has none. NULL after an error. */
static const etch_machine_unit *unit_of(etch_machine_reader *reader, const etch_ast_def *def,
                                        etch_dimension dimension)
{
    static const etch_machine_unit none = {"", ETCH_OF_NOTHING, 1, 0};
    const etch_machine_unit *unit = def->unit.text ? unit_called(def->unit.text) : &none;
    if (!unit) {
        etch_machine_unknown(reader, "unit", def->unit, unit_name_at);
        return NULL;
    }
    if (unit->dimension == dimension)
        return unit;
    etch_diag *diag = etch_error(
        reader->spec->diags, ETCH_E_MACHINE_VALUE, def->unit.text ? def->unit.span : def->value->span,
        def->unit.text ? "'%s' is not in %s" : "'%s' has no unit", def->name.text, unit->name);
    etch_help(diag, "it is %s", etch_dimension_text(dimension));
    return NULL;
}

/* A constant as a decimal. */
static bool to_decimal(etch_sym *sym, etch_expr value, int32_t power, etch_decimal *out)
{
    enum { MOST_PLACES = 18 };
    etch_expr scaled = value;
    int64_t digits;
    for (int32_t places = 0; places <= MOST_PLACES; places++) {
        if (etch_to_i64(scaled, &digits)) {
            *out = etch_decimal_of(digits, power - places);
            return true;
        }
        scaled = etch_mul(sym, scaled, etch_int(sym, 10));
    }
    return false;
}

bool etch_machine_number(etch_machine_reader *reader, const etch_ast_def *def,
                         const etch_machine_field *field, etch_decimal *out)
{
    etch_sym *sym = reader->spec->sym;
    const etch_lookup lookup = etch_global_lookup(reader->spec, reader->space);
    etch_expr value = etch_number_of(reader->spec, def->value, &lookup);
    const etch_machine_unit *unit = value ? unit_of(reader, def, field->dimension) : NULL;
    if (!unit)
        return false;
    if (!etch_is_constant(value))
        return refuse(reader, def, "depends on params, which numbers of machines do not");
    if (!to_decimal(sym, etch_mul(sym, value, etch_int(sym, unit->scale)), unit->power, out))
        return refuse(reader, def, "is no decimal number of at most 18 digits");
    if (out->digits < 0)
        return refuse(reader, def, "is below 0");
    if (out->digits == 0 && !field->may_be_zero)
        return refuse(reader, def, "is 0: leave out what the machine does not have");
    return true;
}

bool etch_machine_count(etch_machine_reader *reader, const etch_ast_def *def, uint32_t *out)
{
    const etch_machine_field field = {def->name.text, ETCH_OF_NOTHING, false};
    etch_decimal value;
    if (!etch_machine_number(reader, def, &field, &value))
        return false;
    uint64_t count = (uint64_t)value.digits;
    for (int32_t i = 0; i < value.power && count <= UINT32_MAX; i++)
        count *= 10;
    if (value.power < 0 || count > UINT32_MAX)
        return refuse(reader, def, "is no whole number below 2^32");
    *out = (uint32_t)count;
    return true;
}

bool etch_machine_word(etch_machine_reader *reader, const etch_ast_def *def,
                       const char *(*at)(uint32_t index), uint32_t *out)
{
    const etch_ast_expr *value = def->value;
    if (def->unit.text)
        return refuse(reader, def, "takes a word, and no unit");
    if (value->kind != ETCH_AST_NAME)
        return refuse(reader, def, "takes a word");
    for (*out = 0; at(*out); ++*out)
        if (strcmp(at(*out), value->name.text) == 0)
            return true;
    etch_machine_unknown(reader, def->name.text, value->name, at);
    return false;
}

/* ---- fits ---------------------------------------------------------------------------------------------- */

static int number_called(const etch_fit_row *row, const char *name)
{
    for (int i = 0; i < ETCH_FIT_NUMBERS && row->numbers[i].name; i++)
        if (strcmp(row->numbers[i].name, name) == 0)
            return i;
    return -1;
}

static void report_number(etch_machine_reader *reader, const etch_fit_row *row, etch_ast_name name)
{
    const char *names[ETCH_FIT_NUMBERS];
    uint32_t count = 0;
    for (; count < ETCH_FIT_NUMBERS && row->numbers[count].name; count++)
        names[count] = row->numbers[count].name;
    etch_diag *diag = etch_error(reader->spec->diags, ETCH_E_MACHINE_LINE, name.span,
                                 "a fit of %s has no number '%s'", row->name, name.text);
    etch_suggest_name(diag, name.text, names, count);
}

void etch_machine_fit(etch_machine_reader *reader, const etch_ast_line *line, etch_kernel_kind kind,
                      etch_fitted *out)
{
    const etch_fit_row *row = etch_fit_row_of(kind);
    const uint32_t errors = etch_error_count(reader->spec->diags);
    const char *first = etch_text(reader->spec->arena, "fit %s", row->name);
    if (!etch_machine_say(reader, first, line->span))
        return;
    for (uint32_t i = 0; i < line->defs.count; i++) {
        const etch_ast_def *def = &line->defs.at[i];
        const int at = number_called(row, def->name.text);
        if (at < 0) {
            report_number(reader, row, def->name);
            continue;
        }
        const bool time = row->numbers[at].dimension == ETCH_OF_TIME;
        const etch_machine_field field = {def->name.text, row->numbers[at].dimension, time};
        const char *key = etch_text(reader->spec->arena, "%s %s", first, def->name.text);
        if (etch_machine_say(reader, key, def->span))
            (void)etch_machine_number(reader, def, &field, &out->at[at]);
    }
    for (int i = 0; i < ETCH_FIT_NUMBERS && row->numbers[i].name; i++)
        if (!row->numbers[i].optional)
            etch_machine_lacks(reader, etch_text(reader->spec->arena, "%s %s", first, row->numbers[i].name),
                               "`etch fit` finds the numbers of a machine from measurements");
    out->given = etch_error_count(reader->spec->diags) == errors;
}
