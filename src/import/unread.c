/* Fields of a config that nothing reads. */
#include "import/import_int.h"

#include <inttypes.h>
#include <string.h>

typedef enum reading { NOT_READ, READ, READ_INSIDE } reading;

/* Is a path the one of a row, or inside of it; or is the row's inside of the path? */
static reading reads(const etch_field_row *row, const char *path)
{
    const char *names = row->names;
    const size_t path_length = strlen(path);
    size_t length;
    reading result = NOT_READ;
    if (row->kind == ETCH_FIELD_OBJECT)
        return strcmp(names, path) == 0 ? READ_INSIDE : NOT_READ;
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
                    if (row->kind != ETCH_FIELD_ANY && etch_has_word(row->names, path))
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
                         etch_config_shown(u->config->arena, &field->value), u->config->type);
        return;
    }
    if (u->count++ == 0)
        u->first = field->span;
    if (strlen(path) > SHOWN_BYTES || u->listed == SHOWN_NAMES)
        return;
    etch_buf_printf(&u->names, "%s'%s'", u->listed ? ", " : "", path);
    u->listed++;
}

static void list_unread(unread *u, const etch_config_value *object, const char *prefix)
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
            list_unread(u, &field->value, path); /* paths of the tables end */
    }
}

void etch_config_check_unread(etch_config *config)
{
    unread u = {.config = config, .names = {.arena = config->arena}};
    list_unread(&u, config->body, "");
    if (config->root != config->body)
        list_unread(&u, config->root, "");
    if (u.count == 0)
        return;
    etch_diag *diag = etch_remark(config->diags, ETCH_E_CONFIG_UNREAD, u.first,
                                  "%" PRIu32 " %s not known, and not read: %s%s", u.count,
                                  u.count == 1 ? "field is" : "fields are", u.listed ? u.names.text : "",
                                  u.count > u.listed ? (u.listed ? ", .." : "with long names") : "");
    etch_help(diag, "fields that no table has are taken to change nothing that is counted");
}
