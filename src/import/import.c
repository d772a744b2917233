/* From a config to a spec: the family, the file, its params. */
#include "import/import_int.h"

#include <inttypes.h>
#include <string.h>

static const etch_import_families *const files[] = {
#define FILE_OF(file) &etch_import_##file,
    ETCH_IMPORT_FAMILIES(FILE_OF)
#undef FILE_OF
};

static const etch_import_family *family_at(size_t i)
{
    for (size_t f = 0; f < sizeof files / sizeof *files; f++) {
        if (i < files[f]->count)
            return &files[f]->at[i];
        i -= files[f]->count;
    }
    return NULL;
}

bool etch_is_config(const char *name, const char *text)
{
    static const char ending[] = ".json";
    const size_t length = name ? strlen(name) : 0;
    if (length >= strlen(ending) && strcmp(name + length - strlen(ending), ending) == 0)
        return true;
    return text && text[strspn(text, " \t\r\n")] == '{';
}

/* ---- which family -------------------------------------------------------------------------------------- */

static bool has(const char *words, const char *word)
{
    return words && word && etch_has_word(words, word);
}

/* The classes that a config names, one after the other; NULL after the last. */
static const etch_config_field *class_at(const etch_config *config, uint32_t i)
{
    const etch_config_field *field = etch_config_find(config->root, "architectures", strlen("architectures"));
    if (!field || field->value.kind != ETCH_CONFIG_LIST || i >= field->value.members.count)
        return NULL;
    return field->value.members.at[i];
}

static const etch_import_family *family_of_class(const char *class)
{
    const etch_import_family *family;
    for (size_t i = 0; (family = family_at(i)) != NULL; i++)
        if (has(family->architectures, class))
            return family;
    return NULL;
}

static void refuse_family(etch_config *config, etch_span span, const char *said)
{
    ETCH_VEC(const char *) names = {0};
    size_t length;
    etch_buf list = {.arena = config->arena};
    const etch_import_family *family;
    for (size_t i = 0; (family = family_at(i)) != NULL; i++) {
        const char *types = family->types;
        for (const char *word; (word = etch_next_word(&types, &length)) != NULL;) {
            etch_buf_printf(&list, "%s%.*s", names.count ? ", " : "", (int)length, word);
            ETCH_PUSH(config->arena, &names, etch_copy_text(config->arena, word, length));
        }
    }
    etch_diag *diag = said
                          ? etch_error(config->diags, ETCH_E_CONFIG_FAMILY, span,
                                       "no family of models is known for '%.60s'", said)
                          : etch_error(config->diags, ETCH_E_CONFIG_FAMILY, span,
                                       "the config does not say what model it is of: it has no 'model_type'");
    const char *near = said ? etch_nearest(said, names.at, names.count) : NULL;
    if (near)
        etch_help(diag, "did you mean '%s'?", near);
    etch_help(diag, "model types are %s", list.text);
}

/* By the model_type; without one by the classes, the class as Diffusers writes it, or a field that only one
 * family has. */
static const etch_import_family *find_family(etch_config *config)
{
    static const char diffusers[] = "_class_name";
    const etch_config_field *type = etch_config_find(config->root, "model_type", strlen("model_type"));
    const etch_import_family *family;
    if (type && type->value.kind == ETCH_CONFIG_TEXT) {
        for (size_t i = 0; (family = family_at(i)) != NULL; i++)
            if (has(family->types, type->value.text) || has(family->wrappers, type->value.text))
                return family;
        refuse_family(config, type->value.span, type->value.text);
        return NULL;
    }
    if (type && type->value.kind != ETCH_CONFIG_NULL) {
        etch_error(config->diags, ETCH_E_CONFIG_VALUE, type->value.span, "'model_type' takes a text");
        return NULL;
    }
    const etch_config_field *class = class_at(config, 0);
    if (!class)
        class = etch_config_find(config->root, diffusers, strlen(diffusers));
    if (class && class->value.kind == ETCH_CONFIG_TEXT) {
        family = family_of_class(class->value.text);
        if (!family)
            refuse_family(config, class->span, class->value.text);
        return family;
    }
    for (size_t i = 0; (family = family_at(i)) != NULL; i++)
        if (family->mark && etch_config_find(config->root, family->mark, strlen(family->mark)))
            return family;
    refuse_family(config, config->root->span, NULL);
    return NULL;
}

/* The language model of a wrapper is in `text_config`. */
static bool find_body(etch_config *config)
{
    static const char inside[] = "text_config";
    const etch_config_field *type = etch_config_find(config->root, "model_type", strlen("model_type"));
    const etch_config_field *field = etch_config_find(config->root, inside, strlen(inside));
    config->body = config->root;
    const bool wraps = type && has(config->family->wrappers, type->value.text);
    if (!wraps && !(field && field->value.kind == ETCH_CONFIG_OBJECT && config->family->wrappers))
        return true;
    if (!field || field->value.kind != ETCH_CONFIG_OBJECT) {
        etch_error(config->diags, ETCH_E_CONFIG_MISSING, config->root->span,
                   "a config of '%s' has its language model in '%s', which is missing", type->value.text,
                   inside);
        return false;
    }
    config->body = &field->value;
    type = etch_config_find(config->body, "model_type", strlen("model_type"));
    if (!type || has(config->family->types, type->value.text))
        return true;
    refuse_family(config, type->value.span, type->value.text);
    return false;
}

/* Every class has the family's head, or the config contradicts itself. */
static void check_classes(etch_config *config)
{
    const etch_config_field *all = etch_config_find(config->root, "architectures", strlen("architectures"));
    if (all && all->value.kind != ETCH_CONFIG_LIST && all->value.kind != ETCH_CONFIG_NULL)
        etch_error(config->diags, ETCH_E_CONFIG_VALUE, all->value.span, "'architectures' takes a list");
    const etch_config_field *class;
    for (uint32_t i = 0; (class = class_at(config, i)) != NULL; i++) {
        const char *name = class->value.text;
        if (class->value.kind != ETCH_CONFIG_TEXT) {
            etch_error(config->diags, ETCH_E_CONFIG_VALUE, class->span,
                       "'architectures' takes names of classes");
            continue;
        }
        if (has(config->family->architectures, name))
            continue;
        if (family_of_class(name)) {
            etch_warning(config->diags, ETCH_E_CONFIG_DISAGREE, class->span,
                         "'%s' is a class of another family: the model type counts", name);
            continue;
        }
        etch_diag *diag = etch_error(config->diags, ETCH_E_CONFIG_FEATURE, class->span,
                                     "'%.80s' is not the model of %s: it may have another head, or none",
                                     name, config->family->file);
        etch_help(diag, "it describes: %s", config->family->architectures);
    }
}

/* ---- its rows and its file ----------------------------------------------------------------------------- */

/* A row of all configs for an object that is one as well. */
static void list_inside(etch_config *config, const char *part, const etch_field_row *row)
{
    etch_field_row *inside = ETCH_NEW(config->arena, etch_field_row);
    etch_buf names = {.arena = config->arena};
    const char *list = row->names;
    size_t length;
    for (const char *name; (name = etch_next_word(&list, &length)) != NULL;)
        etch_buf_printf(&names, "%s%s.%.*s", names.text && *names.text ? " " : "", part, (int)length, name);
    *inside = *row;
    inside->names = names.text;
    if (!etch_config_row(config, inside->names, strcspn(inside->names, " ")))
        ETCH_PUSH(config->arena, &config->rows, inside);
}

static void list_rows(etch_config *config)
{
    const etch_field_row *tables[ETCH_FAMILY_TABLES + 1] = {NULL};
    for (int t = 0; t < ETCH_FAMILY_TABLES; t++)
        tables[t] = config->family->fields[t];
    tables[ETCH_FAMILY_TABLES] = etch_fields_common;
    for (size_t t = 0; t < sizeof tables / sizeof *tables; t++)
        for (const etch_field_row *row = tables[t]; row && row->names; row++)
            if (!etch_config_row(config, row->names, strcspn(row->names, " ")))
                ETCH_PUSH(config->arena, &config->rows, row);
    const char *parts = config->family->parts;
    size_t length;
    for (const char *part; (part = etch_next_word(&parts, &length)) != NULL;)
        for (const etch_field_row *row = etch_fields_common; row->names; row++)
            list_inside(config, etch_copy_text(config->arena, part, length), row);
    config->answers = ETCH_NEW_ARRAY(config->arena, config->rows.count, etch_config_answer);
}

static void choose_file(etch_config *config)
{
    const etch_import_family *family = config->family;
    config->file = family->file;
    config->model = family->model;
    for (int i = 0; i < ETCH_FAMILY_VARIANTS && family->variants[i].field; i++) {
        const etch_family_variant *v = &family->variants[i];
        if (!etch_config_holds(config, v->field, v->values))
            continue;
        config->file = v->file;
        config->model = v->model;
        return;
    }
}

/* ---- the spec ------------------------------------------------------------------------------------------ */

static void write_params(etch_config *config, etch_buf *out)
{
    for (uint32_t i = 0; i < config->rows.count; i++) {
        const etch_field_row *row = config->rows.at[i];
        const etch_config_answer *a = row->param ? etch_config_answer_of(config, row) : NULL;
        if (a && row->kind == ETCH_FIELD_LETTERS)
            etch_buf_printf(out, "%s%s = \"%s\"", out->length ? ", " : "", row->param, a->text);
        else if (a && !a->none && row->kind != ETCH_FIELD_DTYPE)
            etch_buf_printf(out, "%s%s = %" PRIu64, out->length ? ", " : "", row->param, a->number);
    }
    for (int i = 0; i < ETCH_FAMILY_BINDINGS && config->family->bindings[i].param; i++) {
        const etch_family_binding *b = &config->family->bindings[i];
        uint64_t value;
        if (etch_config_binding(config, b->param, strlen(b->param)) == b &&
            etch_config_compute(config, b->value, NULL, &value))
            etch_buf_printf(out, "%s%s = %" PRIu64, out->length ? ", " : "", b->param, value);
    }
}

/* Files of models/ compute in bf16. */
static const char *dtype_of(const etch_config *config)
{
    for (uint32_t i = 0; i < config->rows.count; i++) {
        const etch_field_row *row = config->rows.at[i];
        const etch_config_field *field = row->kind == ETCH_FIELD_DTYPE ? etch_config_said(config, row) : NULL;
        if (!field || field->value.kind != ETCH_CONFIG_TEXT)
            continue;
        if (strstr(field->value.text, "float32"))
            return "f32";
        return strcmp(field->value.text, "float16") == 0 || strcmp(field->value.text, "torch.float16") == 0
                   ? "f16"
                   : NULL;
    }
    return NULL;
}

static const char *write_spec(etch_config *config)
{
    etch_buf out = {.arena = config->arena}, params = {.arena = config->arena};
    const char *dtype = dtype_of(config);
    etch_buf_puts(&params, "");
    write_params(config, &params);
    etch_buf_printf(&out, "# From a config of the model type %s.\netch 1\nimport \"%s\"\n", config->type,
                    config->file);
    if (dtype)
        etch_buf_printf(&out, "dtype act = %s, weights = %s\n", dtype, dtype);
    etch_buf_printf(&out, "config imported { %s }\nuse config imported\n", params.text);
    return out.text;
}

void etch_config_report_large(etch_diags *diags, const char *name)
{
    etch_error(diags, ETCH_E_CONFIG_LARGE, (etch_span){0, 0},
               "'%s' has more than the %d bytes that a config may have", name, (int)ETCH_CONFIG_LIMIT);
}

/* What the config calls itself; without that, the first name of its family, or of the family's model. */
static const char *type_of(const etch_config *config)
{
    const etch_config_field *type = etch_config_find(config->body, "model_type", strlen("model_type"));
    const char *types = config->family->types;
    if (!types)
        return config->family->model;
    return type && has(types, type->value.text) ? type->value.text
                                                : etch_copy_text(config->arena, types, strcspn(types, " "));
}

static bool read_config(etch_config *config, const etch_source *source)
{
    config->root = etch_config_read(config->arena, config->diags, source);
    config->family = config->root ? find_family(config) : NULL;
    if (!config->family || !find_body(config))
        return false;
    config->type = type_of(config);
    list_rows(config);
    check_classes(config);
    choose_file(config);
    etch_config_check(config);
    etch_config_check_unread(config);
    if (config->family->lacks)
        etch_remark(config->diags, ETCH_E_CONFIG_APART, config->root->span, "%s leaves out %s", config->file,
                    config->family->lacks);
    return true;
}

const etch_imported_config *etch_import_config(etch_arena *arena, etch_diags *diags, const char *name,
                                               const char *text, size_t length)
{
    const uint32_t errors = etch_error_count(diags);
    etch_config config = {.arena = arena, .diags = diags};
    const etch_source *source =
        length <= ETCH_CONFIG_LIMIT ? etch_source_add(diags, name, text, length) : NULL;
    if (!source) {
        etch_config_report_large(diags, name);
        return NULL;
    }
    if (!read_config(&config, source) || etch_error_count(diags) != errors)
        return NULL;
    etch_imported_config *result = ETCH_NEW(arena, etch_imported_config);
    result->model_type = config.type;
    result->file = config.file;
    result->model = config.model;
    result->spec = write_spec(&config);
    return result;
}
