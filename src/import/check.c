/* What a config says against what the file of its family does, and its fields against each other. */
#include "import/import_int.h"

#include <inttypes.h>
#include <string.h>

/* ---- values that have to fit --------------------------------------------------------------------------- */

/* Does a word of a table mean this value? Texts are no flags and no numbers. */
static bool means(const char *word, const etch_config_value *value)
{
    switch (value->kind) {
    case ETCH_CONFIG_NUMBER:
        return *word == '+' ? etch_config_is_positive(value->text)
                            : strspn(word, "-.0123456789") == strlen(word) &&
                                  etch_config_same_number(word, value->text);
    case ETCH_CONFIG_TEXT:
        return !etch_has_word("true false null none [] {} [..] {..} +", word) &&
               strcmp(word, value->text) == 0;
    case ETCH_CONFIG_NULL:
    case ETCH_CONFIG_FLAG:
    case ETCH_CONFIG_LIST:
    case ETCH_CONFIG_OBJECT:
        return strcmp(word, value->text) == 0;
    }
    return false;
}

static bool fits(etch_config *config, const char *words, const etch_config_value *value)
{
    size_t length;
    for (const char *word; (word = etch_next_word(&words, &length)) != NULL;)
        if (means(etch_copy_text(config->arena, word, length), value))
            return true;
    return false;
}

/* Does a default, which is a word itself? */
static bool default_fits(const char *words, const char *text)
{
    const bool is_number = strspn(text, "-.0123456789") == strlen(text);
    return etch_has_word(words, text) ||
           (is_number && etch_has_word(words, "+") && etch_config_is_positive(text));
}

static etch_diag *report(etch_config *config, const etch_field_row *row, etch_span span, const char *message)
{
    switch (row->verdict) {
    case ETCH_FIELD_REFUSED:
        break;
    case ETCH_FIELD_WARNED:
        return etch_warning(config->diags, ETCH_E_CONFIG_APART, span, "%s", message);
    case ETCH_FIELD_REMARKED:
        return etch_remark(config->diags, ETCH_E_CONFIG_APART, span, "%s", message);
    }
    return etch_error(config->diags, ETCH_E_CONFIG_FEATURE, span, "%s", message);
}

static const char *shown(etch_arena *arena, const etch_config_value *value)
{
    switch (value->kind) {
    case ETCH_CONFIG_TEXT:
        return strlen(value->text) > 60 ? "another text" : etch_text(arena, "\"%s\"", value->text);
    case ETCH_CONFIG_LIST:
        return value->members.count ? "a list with elements" : "[]";
    case ETCH_CONFIG_OBJECT:
        return value->members.count ? "an object with fields" : "{}";
    case ETCH_CONFIG_NULL:
    case ETCH_CONFIG_FLAG:
        return value->text;
    case ETCH_CONFIG_NUMBER:
        break;
    }
    return strlen(value->text) > 60 ? "another number" : value->text;
}

static void check_fits(etch_config *config, const etch_field_row *row)
{
    const etch_config_field *field = etch_config_said(config, row);
    const etch_config_answer *a = etch_config_answer_of(config, row);
    const int length = (int)strcspn(row->names, " ");
    if (field && (field->value.kind != ETCH_CONFIG_NULL || !row->null)) {
        if (fits(config, row->fits, &field->value))
            return;
        etch_diag *diag =
            report(config, row, field->value.span,
                   etch_text(config->arena, "'%s' is %s, and %s %s", field->name,
                             shown(config->arena, &field->value), config->file,
                             row->why ? row->why : etch_text(config->arena, "takes only: %s", row->fits)));
        if (row->verdict == ETCH_FIELD_REFUSED && row->why)
            etch_help(diag, "it takes: %s", row->fits);
        return;
    }
    if (a->none || !a->text || default_fits(row->fits, a->text))
        return;
    report(config, row, a->span,
           etch_text(config->arena, "'%.*s' is %s, which means %s, and %s %s", length, row->names,
                     field ? "null" : "left out", a->text, config->file,
                     row->why ? row->why : "has another"));
}

/* ---- kinds of layers ----------------------------------------------------------------------------------- */

/* The i-th of words that repeat. */
static const char *repeated(etch_config *config, const char *words, uint32_t i)
{
    const char *list = words;
    size_t length, count = 0;
    while (etch_next_word(&list, &length))
        count++;
    list = words;
    const char *word = etch_next_word(&list, &length);
    for (size_t skip = i % count; skip > 0; skip--)
        word = etch_next_word(&list, &length);
    return etch_copy_text(config->arena, word, length);
}

static void check_kinds(etch_config *config, const etch_field_row *row)
{
    const etch_config_field *field = etch_config_said(config, row);
    if (!field || field->value.kind == ETCH_CONFIG_NULL)
        return;
    if (field->value.kind != ETCH_CONFIG_LIST) {
        etch_error(config->diags, ETCH_E_CONFIG_VALUE, field->value.span, "'%s' takes a list", field->name);
        return;
    }
    uint64_t layers = 0;
    for (uint32_t i = 0; i < config->rows.count; i++)
        if (config->rows.at[i]->kind == ETCH_FIELD_LAYERS && layers == 0)
            layers = etch_config_answer_of(config, config->rows.at[i])->number;
    if (layers > 0 && field->value.members.count != layers) {
        etch_error(config->diags, ETCH_E_CONFIG_DISAGREE, field->value.span,
                   "'%s' has %" PRIu32 " elements for %" PRIu64 " layers", field->name,
                   field->value.members.count, layers);
        return;
    }
    for (uint32_t i = 0; i < field->value.members.count; i++) {
        const etch_config_value *kind = &field->value.members.at[i]->value;
        const char *wanted = repeated(config, row->fits, i);
        if (kind->kind == ETCH_CONFIG_TEXT && strcmp(kind->text, wanted) == 0)
            continue;
        etch_diag *diag =
            etch_error(config->diags, ETCH_E_CONFIG_FEATURE, kind->span, "layer %" PRIu32 " is %s, and %s %s",
                       i, shown(config->arena, kind), config->file, row->why);
        etch_help(diag, "its layers repeat: %s", row->fits);
        return;
    }
}

/* ---- code, and dtypes ---------------------------------------------------------------------------------- */

/* Is a class, "repository--module.Class", of a module that the family's file describes? */
static bool is_known_code(const etch_config *config, const etch_config_value *value)
{
    if (value->kind == ETCH_CONFIG_LIST) {
        for (uint32_t i = 0; i < value->members.count; i++)
            if (!is_known_code(config, &value->members.at[i]->value)) /* lists are ETCH_CONFIG_DEPTH deep */
                return false;
        return true;
    }
    if (value->kind != ETCH_CONFIG_TEXT)
        return value->kind == ETCH_CONFIG_NULL;
    const char *module = strstr(value->text, "--");
    module = module ? module + 2 : value->text;
    const char *list = config->family->code;
    size_t length;
    for (const char *word; (word = etch_next_word(&list, &length)) != NULL;)
        if (strcspn(module, ".") == length && memcmp(module, word, length) == 0)
            return true;
    return false;
}

static void check_code(etch_config *config, const etch_field_row *row)
{
    const etch_config_field *field = etch_config_said(config, row);
    if (!field || field->value.kind == ETCH_CONFIG_NULL)
        return;
    bool known = field->value.kind == ETCH_CONFIG_OBJECT;
    for (uint32_t i = 0; known && i < field->value.members.count; i++)
        known = is_known_code(config, &field->value.members.at[i]->value);
    if (known) {
        etch_remark(config->diags, ETCH_E_CONFIG_APART, field->span,
                    "'%s' names code that comes with the config: %s describes what was published with %s",
                    field->name, config->file, config->model);
        return;
    }
    etch_diag *diag =
        etch_error(config->diags, ETCH_E_CONFIG_FEATURE, field->span,
                   "'%s' names code of its own: what it computes is not in the config", field->name);
    etch_help(diag, "write its model as a spec; where the code is that of %s after all, take the field out",
              config->file);
}

static void check_dtype(etch_config *config, const etch_field_row *row)
{
    const etch_config_field *field = etch_config_said(config, row);
    if (!field || field->value.kind == ETCH_CONFIG_NULL)
        return;
    const char *text = field->value.text;
    if (field->value.kind == ETCH_CONFIG_TEXT && strncmp(text, "torch.", 6) == 0)
        text += 6;
    if (field->value.kind != ETCH_CONFIG_TEXT || !etch_has_word(row->fits, text))
        etch_warning(config->diags, ETCH_E_CONFIG_APART, field->value.span,
                     "'%s' is %s: sizes in bytes are those of the dtypes of %s", field->name,
                     shown(config->arena, &field->value), config->file);
}

/* ---- names that say the same --------------------------------------------------------------------------- */

static bool agree(const etch_config_value *a, const etch_config_value *b)
{
    if (a->kind != b->kind)
        return false;
    if (a->kind == ETCH_CONFIG_NUMBER)
        return etch_config_same_number(a->text, b->text);
    return a->kind == ETCH_CONFIG_LIST || a->kind == ETCH_CONFIG_OBJECT || strcmp(a->text, b->text) == 0;
}

/* A field that stands under two names, or in the wrapper as well. */
static void check_names(etch_config *config, const etch_field_row *row)
{
    const etch_config_field *taken = etch_config_said(config, row);
    const char *names = row->names;
    size_t length;
    if (!taken || row->kind == ETCH_FIELD_ANY)
        return;
    for (const char *name; (name = etch_next_word(&names, &length)) != NULL;)
        for (int outside = 0; outside < (config->root == config->body ? 1 : 2); outside++) {
            const etch_config_field *other =
                etch_config_find(outside ? config->root : config->body, name, length);
            if (!other || agree(&other->value, &taken->value))
                continue;
            etch_diag *diag = etch_warning(config->diags, ETCH_E_CONFIG_DISAGREE, other->value.span,
                                           "'%s' is %s here: it is not read", other->name,
                                           shown(config->arena, &other->value));
            etch_note(diag, taken->value.span, "'%s' is %s, which counts", taken->name,
                      shown(config->arena, &taken->value));
        }
}

/* ---- rules between fields ------------------------------------------------------------------------------ */

/* Where a field of a rule is said, the last of them; else the object. */
static etch_span place_of(const etch_config *config, const char *text)
{
    etch_span place = config->body->span;
    size_t length;
    for (const char *word; (word = etch_next_word(&text, &length)) != NULL;) {
        const etch_field_row *row = etch_config_row(config, word, length);
        const etch_config_field *field = row ? etch_config_said(config, row) : NULL;
        if (field)
            place = field->value.span;
    }
    return place;
}

static void check_rule(etch_config *config, const char *rule)
{
    static const struct {
        const char *sign, *says;
    } signs[] = {{" | ", "does not divide"}, {" <= ", "is more than"}, {" == ", "is not"}};
    for (size_t i = 0; i < sizeof signs / sizeof *signs; i++) {
        const char *at = strstr(rule, signs[i].sign);
        if (!at)
            continue;
        const char *left = etch_copy_text(config->arena, rule, (size_t)(at - rule));
        const char *right = at + strlen(signs[i].sign);
        uint64_t x, y;
        if (!etch_config_compute(config, left, NULL, &x) || !etch_config_compute(config, right, NULL, &y))
            return;
        const bool holds = i == 0 ? x > 0 && y % x == 0 : i == 1 ? x <= y : x == y;
        if (!holds)
            etch_error(config->diags, ETCH_E_CONFIG_DISAGREE, place_of(config, left),
                       "%s, %" PRIu64 ", %s %s, %" PRIu64, left, x, signs[i].says, right, y);
        return;
    }
}

void etch_config_check(etch_config *config)
{
    for (uint32_t i = 0; i < config->rows.count; i++) {
        const etch_field_row *row = config->rows.at[i];
        (void)etch_config_answer_of(config, row);
        check_names(config, row);
        if (row->kind == ETCH_FIELD_FITS)
            check_fits(config, row);
        else if (row->kind == ETCH_FIELD_KINDS)
            check_kinds(config, row);
        else if (row->kind == ETCH_FIELD_CODE)
            check_code(config, row);
        else if (row->kind == ETCH_FIELD_DTYPE)
            check_dtype(config, row);
    }
    for (int i = 0; i < ETCH_FAMILY_RULES && config->family->rules[i]; i++)
        check_rule(config, config->family->rules[i]);
}

/* ---- fields that nothing reads ------------------------------------------------------------------------- */

typedef enum reading { NOT_READ, READ, READ_INSIDE } reading;

/* Is a path the one of a row, or inside of it; or is the row's inside of the path? */
static reading reads(const etch_field_row *row, const char *path)
{
    const char *names = row->names;
    const size_t path_length = strlen(path);
    size_t length;
    reading result = NOT_READ;
    for (const char *name; (name = etch_next_word(&names, &length)) != NULL;) {
        const size_t shorter = length < path_length ? length : path_length;
        if (memcmp(name, path, shorter) != 0)
            continue;
        if (length == path_length || (length < path_length && path[length] == '.'))
            return READ;
        if (length > path_length && name[path_length] == '.')
            result = READ_INSIDE;
    }
    return result;
}

/* A value that switches nothing on. */
static bool is_neutral(const etch_config_value *value)
{
    return etch_has_word("null false [] {}", value->text) ||
           (value->kind == ETCH_CONFIG_NUMBER && etch_config_same_number(value->text, "0"));
}

/* Has a field of this name a cost in another family? */
static bool matters_elsewhere(const char *path)
{
    static const etch_import_families *const files[] = {
#define FILE_OF(file) &etch_import_##file,
        ETCH_IMPORT_FAMILIES(FILE_OF)
#undef FILE_OF
    };
    for (size_t f = 0; f < sizeof files / sizeof *files; f++)
        for (size_t i = 0; i < files[f]->count; i++)
            for (int t = 0; t < ETCH_FAMILY_TABLES; t++)
                for (const etch_field_row *row = files[f]->at[i].fields[t]; row && row->names; row++)
                    if (row->kind != ETCH_FIELD_ANY && reads(row, path) == READ)
                        return true;
    return false;
}

typedef struct unread {
    etch_config *config;
    etch_buf names;
    etch_span first;
    uint32_t count, listed;
} unread;

static void add_unread(unread *u, const char *path, const etch_config_field *field)
{
    enum { SHOWN_BYTES = 60, SHOWN_NAMES = 12 };
    if (matters_elsewhere(path)) {
        if (!is_neutral(&field->value))
            etch_warning(u->config->diags, ETCH_E_CONFIG_APART, field->span,
                         "'%s' is %s, which configs of %s do not have: it is not read", path,
                         shown(u->config->arena, &field->value), u->config->type);
        return;
    }
    if (u->count++ == 0)
        u->first = field->span;
    if (strlen(path) > SHOWN_BYTES || u->listed == SHOWN_NAMES)
        return;
    etch_buf_printf(&u->names, "%s'%s'", u->listed ? ", " : "", path);
    u->listed++;
}

static void check_object(unread *u, const etch_config_value *object, const char *prefix)
{
    for (uint32_t i = 0; i < object->members.count; i++) {
        const etch_config_field *field = object->members.at[i];
        const char *path = *prefix ? etch_text(u->config->arena, "%s.%s", prefix, field->name) : field->name;
        reading read = NOT_READ;
        for (uint32_t k = 0; k < u->config->rows.count && read != READ; k++) {
            const reading by = reads(u->config->rows.at[k], path);
            read = by == NOT_READ ? read : by;
        }
        if (&field->value == u->config->body || read == READ)
            continue;
        if (read == NOT_READ)
            add_unread(u, path, field);
        else if (field->value.kind == ETCH_CONFIG_OBJECT)
            check_object(u, &field->value, path); /* paths of the tables end */
    }
}

void etch_config_check_unread(etch_config *config)
{
    unread u = {.config = config, .names = {.arena = config->arena}};
    check_object(&u, config->body, "");
    if (config->root != config->body)
        check_object(&u, config->root, "");
    if (u.count == 0)
        return;
    etch_diag *diag = etch_remark(config->diags, ETCH_E_CONFIG_UNREAD, u.first,
                                  "%" PRIu32 " %s not known, and not read: %s%s", u.count,
                                  u.count == 1 ? "field is" : "fields are", u.listed ? u.names.text : "",
                                  u.count > u.listed ? (u.listed ? ", .." : "with long names") : "");
    etch_help(diag, "fields that no table has are taken to change nothing that is counted");
}
