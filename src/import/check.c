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
        return !etch_has_word("true false null [] {} [..] {..} +", word) && strcmp(word, value->text) == 0;
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
                             etch_config_shown(config->arena, &field->value), config->file,
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

/* The list that a row is of; NULL: it says nothing, or an error was reported. */
static const etch_config_field *list_of(etch_config *config, const etch_field_row *row)
{
    const etch_config_field *field = etch_config_said(config, row);
    if (!field || field->value.kind == ETCH_CONFIG_NULL)
        return NULL;
    if (field->value.kind == ETCH_CONFIG_LIST)
        return field;
    etch_error(config->diags, ETCH_E_CONFIG_VALUE, field->value.span, "'%s' takes a list", field->name);
    return NULL;
}

static uint64_t layers_of(etch_config *config)
{
    for (uint32_t i = 0; i < config->rows.count; i++)
        if (config->rows.at[i]->kind == ETCH_FIELD_LAYERS)
            return etch_config_answer_of(config, config->rows.at[i])->number;
    return 0;
}

static void check_kinds(etch_config *config, const etch_field_row *row)
{
    const etch_config_field *field = list_of(config, row);
    const uint64_t layers = layers_of(config);
    if (!field)
        return;
    if (field->value.members.count == 0 && row->absent)
        return;
    if (layers > 0 && field->value.members.count != layers) {
        etch_error(config->diags, ETCH_E_CONFIG_DISAGREE, field->value.span,
                   "'%s' has %" PRIu32 " elements for %" PRIu64 " layers", field->name,
                   field->value.members.count, layers);
        return;
    }
    for (uint32_t i = 0; i < field->value.members.count; i++) {
        const etch_config_value *kind = &field->value.members.at[i]->value;
        const char *wanted = repeated(config, row->fits, i);
        if (means(wanted, kind))
            continue;
        etch_diag *diag =
            etch_error(config->diags, ETCH_E_CONFIG_FEATURE, kind->span, "layer %" PRIu32 " is %s, and %s %s",
                       i, etch_config_shown(config->arena, kind), config->file, row->why);
        etch_help(diag, "its layers repeat: %s", row->fits);
        return;
    }
}

static void check_letters(etch_config *config, const etch_field_row *row)
{
    const etch_config_field *field = etch_config_said(config, row);
    const etch_config_answer *a = etch_config_answer_of(config, row);
    const uint64_t layers = layers_of(config);
    const int name = (int)strcspn(row->names, " ");
    if (field && field->value.kind != ETCH_CONFIG_TEXT) {
        etch_error(config->diags, ETCH_E_CONFIG_VALUE, field->value.span,
                   "'%s' takes a text with a letter for each layer", field->name);
        return;
    }
    if (!a->text || (layers > 0 && strlen(a->text) != layers)) {
        etch_error(config->diags, ETCH_E_CONFIG_DISAGREE, a->span,
                   "'%.*s' has %zu letters for %" PRIu64 " layers", name, row->names,
                   a->text ? strlen(a->text) : 0, layers);
        return;
    }
    for (const char *at = a->text; *at; at++) {
        const char letter[2] = {*at, '\0'};
        if (etch_has_word(row->fits, letter))
            continue;
        etch_diag *diag = etch_error(
            config->diags, ETCH_E_CONFIG_FEATURE, a->span, "layer %td is %s, and %s %s", at - a->text,
            etch_text(config->arena, *at >= ' ' && *at <= '~' ? "'%c'" : "of byte 0x%02x",
                      (unsigned char)*at),
            config->file, row->why);
        etch_help(diag, "its layers are: %s", row->fits);
        return;
    }
}

static void check_steps(etch_config *config, const etch_field_row *row)
{
    const etch_config_field *field = list_of(config, row);
    uint64_t step;
    if (!field || !etch_config_compute(config, row->fits, row, &step))
        return;
    const uint64_t count = layers_of(config) / step;
    bool fit = field->value.members.count == count;
    for (uint32_t i = 0; fit && i < count; i++) {
        const etch_config_value *layer = &field->value.members.at[i]->value;
        fit = layer->kind == ETCH_CONFIG_NUMBER &&
              etch_config_same_number(layer->text, etch_text(config->arena, "%" PRIu64, (i + 1) * step - 1));
    }
    if (!fit)
        etch_error(config->diags, ETCH_E_CONFIG_FEATURE, field->value.span,
                   "'%s' lists other layers than the last of every %" PRIu64 ", which %s says, and %s %s",
                   field->name, step, row->fits, config->file, row->why);
}

static void check_set(etch_config *config, const etch_field_row *row)
{
    const etch_config_field *field = etch_config_said(config, row);
    if (!field || field->value.kind == ETCH_CONFIG_NULL)
        return;
    const char *words = row->fits;
    size_t length;
    uint32_t count = 0, found = 0;
    for (const char *word; (word = etch_next_word(&words, &length)) != NULL; count++) {
        const char *copy = etch_copy_text(config->arena, word, length);
        bool is_there = false;
        for (uint32_t i = 0; i < field->value.members.count && !is_there; i++)
            is_there = means(copy, &field->value.members.at[i]->value);
        found += is_there;
    }
    if (field->value.kind == ETCH_CONFIG_LIST && found == count && field->value.members.count == count)
        return;
    etch_diag *diag =
        etch_error(config->diags, ETCH_E_CONFIG_FEATURE, field->value.span, "'%s' is %s, and %s %s",
                   field->name, etch_config_shown(config->arena, &field->value), config->file, row->why);
    etch_help(diag, "it takes a list of: %s", row->fits);
}

static void check_object(etch_config *config, const etch_field_row *row)
{
    const etch_config_field *field = etch_config_said(config, row);
    if (field && field->value.kind == ETCH_CONFIG_OBJECT)
        return;
    if (field && field->value.kind != ETCH_CONFIG_NULL)
        etch_error(config->diags, ETCH_E_CONFIG_VALUE, field->value.span, "'%s' takes an object",
                   field->name);
    else
        etch_error(config->diags, ETCH_E_CONFIG_MISSING, field ? field->value.span : config->body->span,
                   "the field '%s' is missing: %s", row->names, row->why);
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
    static const char before_the_model[] =
        "AutoTokenizer AutoProcessor AutoImageProcessor AutoFeatureExtractor AutoVideoProcessor";
    const etch_config_field *field = etch_config_said(config, row);
    if (!field || field->value.kind == ETCH_CONFIG_NULL)
        return;
    bool known = field->value.kind == ETCH_CONFIG_OBJECT;
    for (uint32_t i = 0; known && i < field->value.members.count; i++)
        known = etch_has_word(before_the_model, field->value.members.at[i]->name) ||
                is_known_code(config, &field->value.members.at[i]->value);
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
                     etch_config_shown(config->arena, &field->value), config->file);
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
                                           etch_config_shown(config->arena, &other->value));
            etch_note(diag, taken->value.span, "'%s' is %s, which counts", taken->name,
                      etch_config_shown(config->arena, &taken->value));
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

/* Computes what the spec will bind, so that what has no value is reported. */
static void check_bindings(etch_config *config)
{
    uint64_t value;
    for (int i = 0; i < ETCH_FAMILY_BINDINGS && config->family->bindings[i].param; i++) {
        const etch_family_binding *b = &config->family->bindings[i];
        if (etch_config_binding(config, b->param, strlen(b->param)) == b)
            (void)etch_config_compute(config, b->value, NULL, &value);
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
        else if (row->kind == ETCH_FIELD_LETTERS)
            check_letters(config, row);
        else if (row->kind == ETCH_FIELD_STEPS)
            check_steps(config, row);
        else if (row->kind == ETCH_FIELD_SET)
            check_set(config, row);
        else if (row->kind == ETCH_FIELD_OBJECT)
            check_object(config, row);
        else if (row->kind == ETCH_FIELD_CODE)
            check_code(config, row);
        else if (row->kind == ETCH_FIELD_DTYPE)
            check_dtype(config, row);
    }
    check_bindings(config);
    for (int i = 0; i < ETCH_FAMILY_RULES && config->family->rules[i]; i++)
        check_rule(config, config->family->rules[i]);
}
