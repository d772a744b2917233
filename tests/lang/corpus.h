/* The cases of grammar/accept and grammar/reject. */
#ifndef ETCH_TEST_CORPUS_H
#define ETCH_TEST_CORPUS_H

#include "lang/syntax/syntax.h"

typedef struct corpus_case {
    const char *name; /* "params" */
    const char *path;
    const char *text;
    size_t length;
} corpus_case;
typedef ETCH_VEC(corpus_case) corpus;

/* All *.etch files of grammar/<folder>, by name. There is at least one. */
corpus corpus_read(etch_arena *arena, const char *folder);
/* The text beside a case with another ending; NULL when there is none. */
const char *corpus_beside(etch_arena *arena, const corpus_case *item, const char *ending);
/* Writes it, when ETCH_UPDATE is set; false otherwise. */
bool corpus_update(etch_arena *arena, const corpus_case *item, const char *ending, const char *text);

etch_ast_context corpus_context(etch_arena *arena);

#endif
