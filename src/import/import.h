/* The header of import: config files of published models (a Hugging Face config.json) as specs. What
 * families of models there are, and what their fields mean, are tables (families/family.h); nothing here
 * reads specs. */
#ifndef ETCH_IMPORT_IMPORT_H
#define ETCH_IMPORT_IMPORT_H

#include "base/base.h"

enum {
    /* bytes of a config: published ones have some thousands */
    ETCH_CONFIG_LIMIT = 4 << 20,
    /* objects and lists inside each other */
    ETCH_CONFIG_DEPTH = 64,
    /* of every number that is a size: more than any model has */
    ETCH_CONFIG_MOST_SIZE = 1000000000,
    /* of layers */
    ETCH_CONFIG_MOST_LAYERS = 100000
};

/* Is this a config, and not a spec? Its name ends with ".json", or its text begins as an object does, which
 * no spec can. `text` NULL: only the name is known. */
bool etch_is_config(const char *name, const char *text);

typedef struct etch_imported_config {
    /* the spec as text */
    const char *spec;
    /* what the config calls itself: "llama" */
    const char *model_type;
    /* the file of the family and its model: "llama3_2.etch", "llama3_2" */
    const char *file, *model;
} etch_imported_config;

/* Makes a spec of the `length` bytes of a config; `name` is for messages. NULL after an error, which is in
 * `diags`; so are warnings and remarks. */
const etch_imported_config *etch_import_config(etch_arena *arena, etch_diags *diags, const char *name,
                                               const char *text, size_t length);
/* Reports a config with more than ETCH_CONFIG_LIMIT bytes. */
void etch_config_report_large(etch_diags *diags, const char *name);

#endif
