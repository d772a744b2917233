/* Families of models as tables: what a config of one is called, which file of models/ it is, and what its
 * fields mean. A new family is a row in a file of this folder; a new file stands in ETCH_IMPORT_FAMILIES. */
#ifndef ETCH_IMPORT_FAMILIES_FAMILY_H
#define ETCH_IMPORT_FAMILIES_FAMILY_H

#include <stddef.h>

/* What a field is held against. */
typedef enum etch_field_kind {
    /* it changes no cost: any value will do */
    ETCH_FIELD_ANY,
    /* an integer of at least 1; of layers no more than ETCH_CONFIG_MOST_LAYERS */
    ETCH_FIELD_SIZE,
    ETCH_FIELD_LAYERS,
    /* an integer of at least 0 */
    ETCH_FIELD_COUNT,
    /* how many members a list or object has, or a size */
    ETCH_FIELD_MEMBERS,
    /* a part of something: a number above 0, at most 1 */
    ETCH_FIELD_PART,
    /* one of the words of `fits` */
    ETCH_FIELD_FITS,
    /* a list with a kind for each layer, which repeats the words of `fits` */
    ETCH_FIELD_KINDS,
    /* a text with a letter for each layer, one of the words of `fits`: the value of a param that is a text */
    ETCH_FIELD_LETTERS,
    /* a list of layers, which are the last of every so many: the field that `fits` names says of how many */
    ETCH_FIELD_STEPS,
    /* a list with the words of `fits`, in any order */
    ETCH_FIELD_SET,
    /* an object that has to be there, and whose members have rows of their own */
    ETCH_FIELD_OBJECT,
    /* the dtype of what is computed and of weights */
    ETCH_FIELD_DTYPE,
    /* classes of code that comes with the config: only modules of the family's `code` */
    ETCH_FIELD_CODE
} etch_field_kind;

/* What becomes of a value that does not fit. */
typedef enum etch_field_verdict {
    ETCH_FIELD_REFUSED,
    ETCH_FIELD_WARNED,
    ETCH_FIELD_REMARKED
} etch_field_verdict;

/* What a field means. Values are words: of a text what it says, `true`, `null`, numbers, `[]` and `{}`,
 * `+` for every number above 0, `[..]` and `{..}` for what is not empty; "= 4 * n_embd" is computed of
 * other fields. A list of kinds that may be empty is "[]" where it is left out. */
typedef struct etch_field_row {
    /* its name, and those that it has or had elsewhere; "ssm_cfg.d_state" is a member of an object */
    const char *names;
    etch_field_kind kind;
    /* the param that it is the value of; NULL: of none */
    const char *param;
    /* what it is where the config leaves it out; NULL: it may not, or (any kind but sizes) it does not
     * matter */
    const char *absent;
    /* what it is where the config says null; NULL: it may not; "none": no value, and the param has none */
    const char *null;
    const char *fits;
    /* "has no biases in attention": of the model file, where the value does not fit */
    const char *why;
    etch_field_verdict verdict;
} etch_field_row;

/* A param that is computed: "ffn", "1"; of several for a param the first one counts whose field has one of
 * its values. Rules may name these params. */
typedef struct etch_family_binding {
    const char *param, *value;
    /* NULL: always */
    const char *field, *values;
} etch_family_binding;

/* Another file where a field has one of these values; the first that holds counts. */
typedef struct etch_family_variant {
    const char *field, *values, *file, *model;
} etch_family_variant;

enum { ETCH_FAMILY_TABLES = 3, ETCH_FAMILY_BINDINGS = 8, ETCH_FAMILY_VARIANTS = 3, ETCH_FAMILY_RULES = 7 };

typedef struct etch_import_family {
    /* model_type: of the language model itself, and of configs that have it in `text_config`; NULL: none */
    const char *types, *wrappers;
    /* a field that says so where there is no model_type */
    const char *mark;
    /* objects that are configs themselves, of towers of a model: they may have the fields of all configs */
    const char *parts;
    /* classes of models that have its head */
    const char *architectures;
    /* modules of code that was published with it, and that is what the file describes */
    const char *code;
    const char *file, *model;
    /* what the file leaves out of every checkpoint, for a remark; NULL: nothing */
    const char *lacks;
    etch_family_variant variants[ETCH_FAMILY_VARIANTS];
    /* tables of fields, each ends with a row without names; of a field the first row counts */
    const etch_field_row *fields[ETCH_FAMILY_TABLES];
    etch_family_binding bindings[ETCH_FAMILY_BINDINGS];
    /* "num_key_value_heads | num_attention_heads", "a <= b", "a == b" */
    const char *rules[ETCH_FAMILY_RULES];
} etch_import_family;

typedef struct etch_import_families {
    const etch_import_family *at;
    size_t count;
} etch_import_families;

/* In the order of docs/import.md. */
#define ETCH_IMPORT_FAMILIES(FILE) \
    FILE(decoders) FILE(older) FILE(experts) FILE(latent) FILE(others) FILE(towers) FILE(adapted)
#define ETCH_IMPORT_DECLARE(file) extern const etch_import_families etch_import_##file;
ETCH_IMPORT_FAMILIES(ETCH_IMPORT_DECLARE)
#undef ETCH_IMPORT_DECLARE
/* At the end of a file of families. */
#define ETCH_IMPORT_ROWS(file, families) \
    const etch_import_families etch_import_##file = {(families), sizeof(families) / sizeof *(families)}

/* Fields of every config, and those of decoders as Llama has them. */
extern const etch_field_row etch_fields_common[], etch_fields_gated[];

/* Rows of fields. */
#define ETCH_SIZE(name, to, otherwise)                                                 \
    {                                                                                  \
        .names = (name), .kind = ETCH_FIELD_SIZE, .param = (to), .absent = (otherwise) \
    }
#define ETCH_SIZE_NULL(name, to, otherwise, nothing)                                                      \
    {                                                                                                     \
        .names = (name), .kind = ETCH_FIELD_SIZE, .param = (to), .absent = (otherwise), .null = (nothing) \
    }
#define ETCH_LAYERS(name, to, otherwise)                                                 \
    {                                                                                    \
        .names = (name), .kind = ETCH_FIELD_LAYERS, .param = (to), .absent = (otherwise) \
    }
#define ETCH_ANY(name)                          \
    {                                           \
        .names = (name), .kind = ETCH_FIELD_ANY \
    }
#define ETCH_FITS(name, values, otherwise, reason)                                                         \
    {                                                                                                      \
        .names = (name), .kind = ETCH_FIELD_FITS, .fits = (values), .absent = (otherwise), .why = (reason) \
    }
#define ETCH_WARN(name, values, otherwise, reason)                                                          \
    {                                                                                                       \
        .names = (name), .kind = ETCH_FIELD_FITS, .fits = (values), .absent = (otherwise), .why = (reason), \
        .verdict = ETCH_FIELD_WARNED                                                                        \
    }
#define ETCH_REMARK_ON(name, values, otherwise, reason)                                                     \
    {                                                                                                       \
        .names = (name), .kind = ETCH_FIELD_FITS, .fits = (values), .absent = (otherwise), .why = (reason), \
        .verdict = ETCH_FIELD_REMARKED                                                                      \
    }
#define ETCH_FLAG_TO(name, to, otherwise)                                                                    \
    {                                                                                                        \
        .names = (name), .kind = ETCH_FIELD_FITS, .fits = "true false", .param = (to), .absent = (otherwise) \
    }
#define ETCH_KINDS(name, values, reason)                                             \
    {                                                                                \
        .names = (name), .kind = ETCH_FIELD_KINDS, .fits = (values), .why = (reason) \
    }
#define ETCH_PART(name, otherwise)                                      \
    {                                                                   \
        .names = (name), .kind = ETCH_FIELD_PART, .absent = (otherwise) \
    }
/* Params that are computed; where a field has one of these values. */
#define ETCH_BIND(to, of)            \
    {                                \
        .param = (to), .value = (of) \
    }
#define ETCH_BIND_WHERE(to, of, name, words)                             \
    {                                                                    \
        .param = (to), .value = (of), .field = (name), .values = (words) \
    }
#define ETCH_NO_FIELD \
    {                 \
        .names = NULL \
    }

#endif
