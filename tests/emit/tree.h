/* Folders of a test: made, read, compared, removed. Failures of these are failures of the test. */
#ifndef ETCH_TEST_TREE_H
#define ETCH_TEST_TREE_H

#include "base/base.h"

/* A new empty folder below /tmp. */
const char *tree_new(etch_arena *arena);
/* Removes a folder with all that is in it. */
void tree_remove(const char *path);
void tree_write(const char *path, const char *text);
char *tree_read(etch_arena *arena, const char *path, size_t *length);
/* Everything below `path`, sorted: names, kinds, permissions, sizes and hashes of contents. Two of them
 * are equal when nothing differs. */
const char *tree_snapshot(etch_arena *arena, const char *path);
/* Number of entries in a folder, with hidden ones. */
uint32_t tree_count(const char *path);

#endif
