/* What was read from the disk: a spec that is loaded again is the same, whatever became of its files. Part of
 * what other modules see of lang. */
#ifndef ETCH_LANG_SYNTAX_SHELF_H
#define ETCH_LANG_SYNTAX_SHELF_H

#include "base/base.h"

/* A file, by a path that was asked for. */
typedef struct etch_shelved {
    const char *path;
    /* absolute, without links */
    const char *identity;
    /* NULL: it has been read under another path */
    const char *text;
    size_t length;
} etch_shelved;

/* Empty at first; what is read is added. */
typedef struct etch_shelf {
    /* lives longer than what is loaded */
    etch_arena *arena;
    ETCH_VEC(etch_shelved) files;
    /* paths of imports that led to no file */
    ETCH_VEC(const char *) missing;
} etch_shelf;

#endif
