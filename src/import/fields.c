/* Fields by their rows: where a config says them, and what they come to. */
#include "import/import_int.h"

#include <inttypes.h>
#include <string.h>

const etch_field_row *etch_config_row(const etch_config *config, const char *name, size_t length)
{
    for (uint32_t i = 0; i < config->rows.count; i++) {
        const char *names = config->rows.at[i]->names;
        size_t first;
        const char *word = etch_next_word(&names, &first);
        if (word && first == length && memcmp(word, name, length) == 0)
            return config->rows.at[i];
    }
    return NULL;
}

const etch_config_field *etch_config_said(const etch_config *config, const etch_field_row *row)
{
    const char *names = row->names;
    size_t length;
    for (const char *name; (name = etch_next_word(&names, &length)) != NULL;) {
        const etch_config_field *field = etch_config_find(config->body, name, length);
        if (!field && config->root != config->body)
            field = etch_config_find(config->root, name, length);
        if (field)
            return field;
    }
    return NULL;
}

static int first_length(const etch_field_row *row)
{
    return (int)strcspn(row->names, " ");
}

/* ---- arithmetic ---------------------------------------------------------------------------------------- */

typedef struct computing {
    etch_config *config;
    const char *text;
    const etch_field_row *row;
} computing;

static bool refuse_computed(const computing *c, const char *why)
{
    etch_diags *diags = c->config->diags;
    const etch_span span = c->config->body->span;
    etch_diag *diag = c->row
                          ? etch_error(diags, ETCH_E_CONFIG_DISAGREE, span, "'%.*s' is left out, and %s %s",
                                       first_length(c->row), c->row->names, c->text, why)
                          : etch_error(diags, ETCH_E_CONFIG_DISAGREE, span, "%s %s", c->text, why);
    const char *text = c->text;
    size_t length;
    for (const char *word; (word = etch_next_word(&text, &length)) != NULL;) {
        const etch_field_row *row = etch_config_row(c->config, word, length);
        const etch_config_field *field = row ? etch_config_said(c->config, row) : NULL;
        if (field)
            etch_note(diag, field->value.span, "'%s' is %s", field->name, field->value.text);
    }
    return false;
}

/* A number, the value of a field, or a param that is computed. */
static bool read_factor(const computing *c, const char *word, size_t length, uint64_t *value, uint64_t *per)
{
    const char *copy = etch_copy_text(c->config->arena, word, length);
    *per = 0;
    if (etch_config_integer(copy, ETCH_CONFIG_MOST_SIZE, value))
        return true;
    const etch_field_row *row = etch_config_row(c->config, word, length);
    const etch_family_binding *binding = row ? NULL : etch_config_binding(c->config, word, length);
    if (binding)
        return etch_config_compute(c->config, binding->value, c->row, value);
    const etch_config_answer *answer = row ? etch_config_answer_of(c->config, row) : NULL;
    if (!answer || answer->broken || answer->none)
        return false; /* which has been reported */
    *value = answer->number;
    *per = answer->per;
    return true;
}

static bool apply(const computing *c, const char *op, uint64_t factor, uint64_t *value)
{
    if (*op == '*') {
        if (factor > 0 && *value > (uint64_t)INT64_MAX / factor)
            return refuse_computed(c, "is too large");
        *value *= factor;
        return true;
    }
    if (*op == '+') {
        *value += factor; /* both are far below 2^62 */
        return true;
    }
    if (*op == '-') {
        if (factor > *value)
            return refuse_computed(c, "is below 0");
        *value -= factor;
        return true;
    }
    if (factor == 0)
        return refuse_computed(c, "divides by 0");
    if (*op == 'u') {
        *value = (*value + factor - 1) / factor * factor; /* both are sizes: far below 2^63 */
        return true;
    }
    if (*value % factor != 0)
        return refuse_computed(c, "is no whole number");
    *value /= factor;
    return true;
}

bool etch_config_compute(etch_config *config, const char *text, const etch_field_row *row, uint64_t *value)
{
    const computing c = {config, text, row};
    size_t length;
    const char *word = etch_next_word(&text, &length), *op = NULL;
    *value = 1;
    for (; word; word = etch_next_word(&text, &length)) {
        uint64_t factor, per;
        if (!read_factor(&c, word, length, &factor, &per) || !apply(&c, op ? op : "*", factor, value))
            return false;
        if (per > 0)
            *value /= per;
        op = etch_next_word(&text, &length);
        if (!op)
            return true;
    }
    return false;
}

/* ---- params that are computed ------------------------------------------------------------------------- */

bool etch_config_holds(etch_config *config, const char *field, const char *values)
{
    const etch_field_row *row = etch_config_row(config, field, strlen(field));
    const etch_config_answer *a = row ? etch_config_answer_of(config, row) : NULL;
    if (!a || a->broken)
        return false;
    const char *text = a->none ? "null" : a->text;
    const bool is_number = strspn(text, "-.0123456789") == strlen(text);
    size_t length;
    for (const char *word; (word = etch_next_word(&values, &length)) != NULL;) {
        const char *copy = etch_copy_text(config->arena, word, length);
        if (strcmp(copy, text) == 0 || (is_number && etch_config_same_number(copy, text)))
            return true;
    }
    return false;
}

const etch_family_binding *etch_config_binding(etch_config *config, const char *param, size_t length)
{
    for (int i = 0; i < ETCH_FAMILY_BINDINGS && config->family->bindings[i].param; i++) {
        const etch_family_binding *b = &config->family->bindings[i];
        if (strlen(b->param) == length && memcmp(b->param, param, length) == 0 &&
            (!b->field || etch_config_holds(config, b->field, b->values)))
            return b;
    }
    return NULL;
}

/* ---- what a field comes to ----------------------------------------------------------------------------- */

static bool is_size(const etch_field_row *row)
{
    return row->kind == ETCH_FIELD_SIZE || row->kind == ETCH_FIELD_LAYERS || row->kind == ETCH_FIELD_COUNT ||
           row->kind == ETCH_FIELD_MEMBERS;
}

static void refuse_size(etch_config *config, const etch_field_row *row, const etch_config_field *field)
{
    static const char *const kinds[] = {[ETCH_CONFIG_NULL] = "null",
                                        [ETCH_CONFIG_FLAG] = "true or false",
                                        [ETCH_CONFIG_TEXT] = "a text",
                                        [ETCH_CONFIG_LIST] = "a list",
                                        [ETCH_CONFIG_OBJECT] = "an object"};
    const int least = row->kind != ETCH_FIELD_COUNT;
    const int most = row->kind == ETCH_FIELD_LAYERS ? ETCH_CONFIG_MOST_LAYERS : ETCH_CONFIG_MOST_SIZE;
    const etch_config_value *value = &field->value;
    if (value->kind == ETCH_CONFIG_NUMBER)
        etch_error(config->diags, ETCH_E_CONFIG_VALUE, value->span,
                   "'%s' is %.40s: it takes a whole number from %d to %d", field->name, value->text, least,
                   most);
    else
        etch_error(config->diags, ETCH_E_CONFIG_VALUE, value->span,
                   "'%s' is %s: it takes a whole number from %d to %d", field->name, kinds[value->kind],
                   least, most);
}

static void read_size(etch_config *config, const etch_field_row *row, const etch_config_field *field,
                      etch_config_answer *a)
{
    const uint64_t least = row->kind != ETCH_FIELD_COUNT;
    const uint64_t most = row->kind == ETCH_FIELD_LAYERS ? ETCH_CONFIG_MOST_LAYERS : ETCH_CONFIG_MOST_SIZE;
    a->broken = (field && field->value.kind != ETCH_CONFIG_NUMBER) ||
                !etch_config_integer(a->text, most, &a->number) || a->number < least;
    if (a->broken && field)
        refuse_size(config, row, field);
}

/* Of a list or object how many members it has. */
static void read_members(etch_config *config, const etch_field_row *row, const etch_config_field *field,
                         etch_config_answer *a)
{
    const etch_config_value *value = &field->value;
    if (value->kind != ETCH_CONFIG_LIST && value->kind != ETCH_CONFIG_OBJECT) {
        read_size(config, row, field, a);
        return;
    }
    a->number = value->members.count;
    a->broken = a->number == 0;
    if (a->broken)
        etch_error(config->diags, ETCH_E_CONFIG_VALUE, value->span, "'%s' is empty", field->name);
}

static void read_part(etch_config *config, const etch_config_field *field, etch_config_answer *a)
{
    a->broken = (field && field->value.kind != ETCH_CONFIG_NUMBER) ||
                !etch_config_fraction(a->text, &a->number, &a->per);
    if (a->broken && field)
        etch_error(config->diags, ETCH_E_CONFIG_VALUE, field->value.span,
                   "'%s' is %s: it takes a number above 0, at most 1, with at most 9 digits behind the point",
                   field->name, etch_config_shown(config->arena, &field->value));
}

/* Takes what the row says of what is left out, or null. */
static void read_otherwise(etch_config *config, const etch_field_row *row, etch_config_answer *a)
{
    if (strcmp(a->text, "none") == 0)
        a->none = true;
    else if (strncmp(a->text, "= ", 2) == 0)
        a->broken = !etch_config_compute(config, a->text + 2, row, &a->number);
    else if (is_size(row))
        read_size(config, row, NULL, a);
    else if (row->kind == ETCH_FIELD_PART)
        read_part(config, NULL, a);
    if (row->kind == ETCH_FIELD_PART)
        return;
    a->number = !is_size(row) && strcmp(a->text, "true") == 0 ? 1 : a->number;
}

static void read_left_out(etch_config *config, const etch_field_row *row, etch_config_answer *a)
{
    a->left_out = true;
    a->span = config->body->span;
    a->text = row->absent;
    if (a->text) {
        read_otherwise(config, row, a);
        return;
    }
    a->none = true;
    if (!is_size(row))
        return;
    a->broken = true;
    etch_diag *diag = etch_error(config->diags, ETCH_E_CONFIG_MISSING, a->span, "the field '%.*s' is missing",
                                 first_length(row), row->names);
    if (row->names[first_length(row)])
        etch_help(diag, "it may be called by any of these names: %s", row->names);
}

static void read_said(etch_config *config, const etch_field_row *row, const etch_config_field *field,
                      etch_config_answer *a)
{
    a->span = field->value.span;
    a->text = field->value.text;
    if (field->value.kind == ETCH_CONFIG_NULL && row->null) {
        a->text = row->null;
        read_otherwise(config, row, a);
    } else if (row->kind == ETCH_FIELD_MEMBERS) {
        read_members(config, row, field, a);
    } else if (row->kind == ETCH_FIELD_PART) {
        read_part(config, field, a);
    } else if (is_size(row)) {
        read_size(config, row, field, a);
    } else {
        a->number = field->value.kind == ETCH_CONFIG_FLAG && strcmp(a->text, "true") == 0;
    }
}

const etch_config_answer *etch_config_answer_of(etch_config *config, const etch_field_row *row)
{
    uint32_t i = 0;
    while (config->rows.at[i] != row)
        i++;
    etch_config_answer *a = &config->answers[i];
    if (a->known)
        return a;
    const etch_config_field *field = etch_config_said(config, row);
    a->known = true;
    if (field)
        read_said(config, row, field, a);
    else
        read_left_out(config, row, a);
    return a;
}
