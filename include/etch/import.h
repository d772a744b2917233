/* Configs of published models, as Hugging Face keeps them (config.json), as specs. Part of etch/etch.h.
 *
 * A session takes a config wherever it takes a spec: by a path that ends with ".json", or as a text that
 * begins with `{`. docs/import.md says which families there are and what becomes of fields. */
#ifndef ETCH_IMPORT_H
#define ETCH_IMPORT_H

#include "etch/session.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct etch_import_options {
    /* sizeof(etch_import_options) */
    size_t struct_size;
    /* path of the config; with `text` its name in messages */
    const char *name;
    /* the config itself, `length` bytes; NULL: that of the file */
    const char *text;
    size_t length;
} etch_import_options;

typedef struct etch_imported {
    /* the spec: it imports the file of the family and has the config `imported`, which it uses */
    const char *spec;
    /* "llama" */
    const char *model_type;
    /* the file of models/ and its model: "llama.etch", "llama" */
    const char *file, *model;
} etch_imported;

/* Makes a spec of a config. The session needs no spec. ETCH_EINPUT: the config has errors, or asks for
 * what no file of models/ does; messages say which field. ETCH_EIO: it cannot be read. */
ETCH_API etch_status etch_session_import(etch_session *session, const etch_import_options *options,
                                         const etch_imported **imported);

#ifdef __cplusplus
}
#endif

#endif
