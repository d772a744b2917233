/* Inputs of the target `spec`: a spec, the files that it imports, and how it is used, in one text.
 *
 *     #plan megatron
 *     #set batch=16,seq=32
 *     etch 1
 *     import "base.etch"
 *     ..
 *     #file base.etch
 *     etch 1
 *     ..
 *
 * To the language these lines are comments. `#file NAME` begins another file, beside the first, which is
 * spec.etch. `#config`, `#plan`, `#run` and `#set` are for the first file and mean what the options of etch
 * mean. What says none of these is a bundle of one file. */
#ifndef ETCH_FUZZ_BUNDLE_H
#define ETCH_FUZZ_BUNDLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { BUNDLE_FILES = 16, BUNDLE_NAME = 64, BUNDLE_OPTION = 1024 };

typedef struct bundle_file {
    char name[BUNDLE_NAME]; /* letters, digits, '_', '-' and '.'; it begins with none of the last two */
    const uint8_t *text;    /* `size` bytes of the input */
    size_t size;
} bundle_file;

typedef enum bundle_option {
    BUNDLE_CONFIG,
    BUNDLE_PLAN,
    BUNDLE_RUN,
    BUNDLE_SET,
    BUNDLE_OPTIONS
} bundle_option;

typedef struct bundle {
    bundle_file files[BUNDLE_FILES]; /* the spec is the first */
    size_t count;
    char options[BUNDLE_OPTIONS][BUNDLE_OPTION]; /* "": not said */
} bundle;

/* "config", "plan", "run", "set" */
const char *bundle_option_name(bundle_option option);

/* Any input is a bundle. Files beyond the last that fits belong to it, and so does what follows a name that
 * is none. */
void bundle_split(bundle *b, const uint8_t *data, size_t size);

/* Writes the files into a folder that exists. False when one cannot be written. */
bool bundle_write(const bundle *b, const char *folder);
/* Removes them, and the folder. */
void bundle_remove(const bundle *b, const char *folder);

#endif
