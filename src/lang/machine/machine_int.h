/* What the files of lang/machine share: the numbers of a line. */
#ifndef ETCH_LANG_MACHINE_MACHINE_INT_H
#define ETCH_LANG_MACHINE_MACHINE_INT_H

#include "lang/machine/machine.h"
#include "lang/names/symbols.h"

/* A number that has been said, by its words. */
typedef struct etch_machine_said {
    const char *key;
    etch_span span;
} etch_machine_said;

/* One device or cluster, or a part of it, while its lines are read. */
typedef struct etch_machine_reader {
    etch_spec *spec;
    /* where names of its values are looked up */
    const etch_namespace *space;
    /* "device" */
    const char *what;
    etch_ast_name name;
    ETCH_VEC(etch_machine_said) said;
} etch_machine_reader;

/* What a number has to be. */
typedef struct etch_machine_field {
    /* NULL ends a table of them */
    const char *name;
    etch_dimension dimension;
    bool may_be_zero;
} etch_machine_field;

/* False, after an error, when `key` has been said before. */
bool etch_machine_say(etch_machine_reader *reader, const char *key, etch_span span);
bool etch_machine_has(const etch_machine_reader *reader, const char *key);
/* The value of a number with its unit. False after an error. */
bool etch_machine_number(etch_machine_reader *reader, const etch_ast_def *def,
                         const etch_machine_field *field, etch_decimal *out);
/* A whole number from 1 to 2^32 - 1 without a unit. */
bool etch_machine_count(etch_machine_reader *reader, const etch_ast_def *def, uint32_t *out);
/* The index of the word that the value is; `at` lists them, NULL after the last. */
bool etch_machine_word(etch_machine_reader *reader, const etch_ast_def *def,
                       const char *(*at)(uint32_t index), uint32_t *out);
/* Reports a name that is none of those that `at` lists; `what` it was to be: "line of a device". */
void etch_machine_unknown(etch_machine_reader *reader, const char *what, etch_ast_name name,
                          const char *(*at)(uint32_t index));
/* The numbers of a `fit` line. */
void etch_machine_fit(etch_machine_reader *reader, const etch_ast_line *line, etch_kernel_kind kind,
                      etch_fitted *out);
/* Reports what the machine has to say and does not. */
void etch_machine_lacks(etch_machine_reader *reader, const char *key, const char *help);

#endif
