/* Calls of emit as tests make them. */
#ifndef ETCH_TEST_EMITTING_H
#define ETCH_TEST_EMITTING_H

#include "emit/emit.h"

/* Options with plain values for all but the folder: traces are called "tiny". */
etch_emit_options emitting_options(const char *folder);
/* Emits and expects success without diagnostics; the result. */
etch_emit_result emitting_works(etch_arena *arena, const etch_job *job, const etch_emit_options *options);
/* Emits and expects `status` with a first diagnostic of `code` whose text, as shown to a person, contains
 * `text`. */
void emitting_fails(etch_arena *arena, const etch_job *job, const etch_emit_options *options,
                    etch_status status, etch_code code, const char *text);
/* The same for a call that succeeds with a warning. */
void emitting_warns(etch_arena *arena, const etch_job *job, const etch_emit_options *options, etch_code code,
                    const char *text);

#endif
