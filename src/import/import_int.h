/* What the files of import share: values of a config, tables of fields, and the config that is being read. */
#ifndef ETCH_IMPORT_IMPORT_INT_H
#define ETCH_IMPORT_IMPORT_INT_H

#include "import/families/family.h"
#include "import/import.h"

/* ---- a config as it stands ----------------------------------------------------------------------------- */

typedef enum etch_config_kind {
    ETCH_CONFIG_NULL,
    ETCH_CONFIG_FLAG,
    ETCH_CONFIG_NUMBER,
    ETCH_CONFIG_TEXT,
    ETCH_CONFIG_LIST,
    ETCH_CONFIG_OBJECT
} etch_config_kind;

typedef struct etch_config_value {
    etch_config_kind kind;
    /* of a list or object its bracket */
    etch_span span;
    /* a text without its escapes; a number as it is written, also NaN and Infinity; "true", "null"; of lists
     * and objects "[]" and "{}" where they are empty, else "[..]" and "{..}" */
    const char *text;
    /* of a list or object */
    ETCH_VEC(struct etch_config_field *) members;
} etch_config_value;

/* A member of an object, or an element of a list. */
typedef struct etch_config_field {
    /* NULL in a list */
    const char *name;
    etch_span span;
    etch_config_value value;
} etch_config_field;

/* Reads a text in JSON, and beside it NaN, Infinity and -Infinity, which Python writes. NULL after an
 * error. */
const etch_config_value *etch_config_read(etch_arena *arena, etch_diags *diags, const etch_source *source);

/* The member of an object at a path: "rope_scaling.factor", of `length` bytes. NULL: there is none. */
const etch_config_field *etch_config_find(const etch_config_value *object, const char *path, size_t length);
/* Do the texts of two numbers mean the same number? 1, 1.0 and 10e-1 do. */
bool etch_config_same_number(const char *a, const char *b);
/* Is it a number above 0? */
bool etch_config_is_positive(const char *number);
/* The number, at most `most`. False where the text is no whole number from 0 to that. */
bool etch_config_integer(const char *number, uint64_t most, uint64_t *value);
/* The number as a fraction of whole numbers of at most 10^9, above 0 and at most 1. False: it is none. */
bool etch_config_fraction(const char *number, uint64_t *above, uint64_t *below);
/* A value for a message: quoted, short. */
const char *etch_config_shown(etch_arena *arena, const etch_config_value *value);

/* ---- words of tables ----------------------------------------------------------------------------------- */

/* The next word of a list of words, of `*length` bytes; NULL after the last. `*list` moves on. */
const char *etch_next_word(const char **list, size_t *length);
bool etch_has_word(const char *list, const char *word);

/* ---- the config that is being read --------------------------------------------------------------------- */

/* What a field comes to, by its row. */
typedef struct etch_config_answer {
    bool known;
    /* an error has been reported: nothing follows from it */
    bool broken;
    /* there is no value: null means none */
    bool none;
    /* where it is said; of what is left out, the object that lacks it */
    etch_span span;
    bool left_out;
    /* a value as `text` above */
    const char *text;
    /* where the row is a size; of a part it is divided by `per`, which is else 0 */
    uint64_t number, per;
} etch_config_answer;

typedef struct etch_config {
    etch_arena *arena;
    etch_diags *diags;
    const etch_import_family *family;
    /* "llama" */
    const char *type;
    /* the file that its values choose, and its model */
    const char *file, *model;
    /* the whole file; the object that describes the language model, which is the same without a wrapper */
    const etch_config_value *root, *body;
    /* the rows of the family and those of all; the first of a name counts */
    ETCH_VEC(const etch_field_row *) rows;
    etch_config_answer *answers;
} etch_config;

/* The row of a field by its first name; NULL: there is none. */
const etch_field_row *etch_config_row(const etch_config *config, const char *name, size_t length);
/* Where the config says it, by any of its names; NULL: nowhere. */
const etch_config_field *etch_config_said(const etch_config *config, const etch_field_row *row);
/* What a field comes to. What is wrong with it is reported once. */
const etch_config_answer *etch_config_answer_of(etch_config *config, const etch_field_row *row);
/* Does a field come to one of these words? "null" is one of them. */
bool etch_config_holds(etch_config *config, const char *field, const char *values);
/* What the family computes of a param, of `length` bytes; NULL: it does not. */
const etch_family_binding *etch_config_binding(etch_config *config, const char *param, size_t length);
/* The value of "4 * n_embd", "vocab_size up 16": words of numbers, fields, params that are computed, and
 * * / up + - between them, from the left; what is multiplied by a part is rounded down. `row`: whose value it
 * is to be, for messages; may be NULL. False after a reported error. */
bool etch_config_compute(etch_config *config, const char *text, const etch_field_row *row, uint64_t *value);
/* Holds values against what the model file can do, and with each other. */
void etch_config_check(etch_config *config);
/* Names fields that nothing reads. */
void etch_config_check_unread(etch_config *config);

#endif
