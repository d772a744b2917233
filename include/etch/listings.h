/* Tables and names for people: no session is needed. Part of etch/etch.h. */
#ifndef ETCH_LISTINGS_H
#define ETCH_LISTINGS_H

#include <stdbool.h>
#include <stddef.h>

#include "etch/export.h"
#include "etch/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Tables for people, one line each: the ops of the language with their FLOP; the quantities of queries.
 * `*text` is the caller's, to be given to `etch_text_free`. ETCH_ENOMEM, or ETCH_OK. */
ETCH_API etch_status etch_describe_ops(char **text);
ETCH_API etch_status etch_describe_quantities(char **text);
ETCH_API etch_status etch_describe_counts(char **text);
ETCH_API void etch_text_free(char *text);

/* The passes from a model to the step of its ranks, in their order: "model", "train", "place", "stage",
 * "shard", "fuse", "step"; NULL past the last. */
ETCH_API const char *etch_pass_at(size_t i);

/* The one of `count` names that `text` was probably meant to be, or NULL. */
ETCH_API const char *etch_suggest(const char *text, const char *const *names, size_t count);

/* Is it the name, or the path, of a spec: does it end in ".etch"? */
ETCH_API bool etch_is_spec_name(const char *name);

#ifdef __cplusplus
}
#endif

#endif
