/* Specs that a test writes, and what became of them. */
#ifndef ETCH_TEST_SPECS_H
#define ETCH_TEST_SPECS_H

#include "lang/lang.h"
#include "lang/model/blocks.h"
#include "lang/names/symbols.h"
#include "lang/plan/lookup.h"

typedef struct spec_scene {
    etch_arena *arena;
    char folder[64];
    ETCH_VEC(const char *) files; /* names, without the folder */
    etch_sym *sym;
    etch_diags *diags;
    etch_spec *spec; /* NULL: it has errors */
    etch_status status;
} spec_scene;

/* Writes files and loads the first, "a.etch". `text` holds them all: each further one begins with a line
 * "--- NAME". The line "etch 1" is put at the head of each. */
spec_scene specs_load(etch_arena *arena, const char *text);
/* Removes the files. */
void specs_end(const spec_scene *scene);

/* What was reported, one line each, indented notes and helps:
 *
 *     E0210 a.etch:3:7 unknown name 'x'
 *       note b.etch:1:2 it is declared here
 *       help did you mean 'y'?
 *
 * Warnings and remarks begin with "warning " and "remark ". */
const char *specs_messages(const spec_scene *scene);

/* One text and what is reported when it is loaded; nothing for an empty text. */
typedef struct spec_case {
    const char *text, *messages;
} spec_case;

/* "a = 1 (set), b = 2*c (default)" */
const char *specs_settings(const spec_scene *scene, const etch_settings *settings);
/* Compares and says both texts when they differ. */
void specs_expect(const char *what, const char *found, const char *expected);

#endif
