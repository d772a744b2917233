/* Sessions: a spec that was read, its messages, the values in force, checks. Part of etch/etch.h. */
#ifndef ETCH_SESSION_H
#define ETCH_SESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "etch/export.h"
#include "etch/kinds.h"
#include "etch/relation.h"
#include "etch/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- sessions ----------------------------------------------------------------------------------------- */

typedef struct etch_session etch_session;

/* Everything but `struct_size` may be zero. */
typedef struct etch_session_options {
    /* sizeof(etch_session_options) */
    size_t struct_size;
    /* path of the spec, or of a config (etch/import.h), which ends with ".json"; NULL, without `text`:
     * only `etch_session_verify` and dumps can be asked for */
    const char *spec;
    /* the spec, or config, itself; `spec` is then its name in messages, and where its imports are relative
     * to */
    const char *text;
    /* `model_count` models that the program builds (etch/builder.h) */
    const struct etch_network_model *models;
    size_t model_count;
    /* a config of the spec; NULL: the one that `use config` names, or none */
    const char *config;
    /* a plan of the spec; NULL: the one that `use plan` names, or the only one */
    const char *plan;
    /* a train or infer block; NULL: the only train block, else the only infer block or model */
    const char *run;
    /* pipeline stage that quantities of a rank are of: "0", .., "first", "middle", "last"; NULL: heaviest */
    const char *stage;
    /* which work of a rank is one node, and so what `traffic` counts */
    etch_granularity granularity;
    /* what of the work counts as FLOP: a preset, or items, or a preset and what differs from it,
     * "megatron,causal=full": `etch_describe_counts`; NULL: all of it, as executed */
    const char *count;
    /* `set_count` texts "NAME=EXPR", also several joined by commas; before the config. "NAME=NAME" leaves the
     * name without a value, whatever the config and the spec say; "tokens=EXPR": the tokens of a step, from
     * which the one name of it without a value follows */
    const char *const *sets;
    size_t set_count;
    /* bind params that have only a default, and mesh axes without a size to 1, in queries and checks;
     * `etch_session_lower` always does. Queries and views bind those defaults anyway that the config in force
     * leaves out, and remark on it */
    bool defaults;
    /* bytes that the session may hold; 0: ETCH_MEMORY_LIMIT */
    size_t memory_limit;
    /* folders, a colon between them, in which imports are looked for that are not beside the file that they
     * stand in; NULL: none. Those of a config (etch/import.h) are the files of its family: the folder of
     * models/ has to be among them */
    const char *folders;
    /* `machine_set_count` texts "PART.NAME = NUMBER UNIT": numbers of devices, levels and stacks of the spec,
     * in place of those that it says; commas join several of one part */
    const char *const *machine_sets;
    size_t machine_set_count;
    /* `plan_set_count` texts "plan.NAME = VALUE": options in place of those that plans say, for the whole
     * plan: `schedule = gpipe`, `recompute = none`; commas join several,
     * and what is no option of plans goes to `sets` */
    const char *const *plan_sets;
    size_t plan_set_count;
} etch_session_options;

#define ETCH_MEMORY_LIMIT ((size_t)4 << 30)

/* Reads the spec and what it imports. `*session` is a session also after an error, for its messages (and NULL
 * only with ETCH_ENOMEM); it then refuses everything else with the same status. `options` NULL: all zero.
 * ETCH_EINPUT: the spec has errors. ETCH_EIO: it cannot be read. */
ETCH_API etch_status etch_session_open(const etch_session_options *options, etch_session **session);

/* Ends a session and frees all that belongs to it. NULL is allowed. */
ETCH_API void etch_session_close(etch_session *session);

/* Ends all that the session has handed out so far: answers, reports, texts, and messages, which begin anew.
 * The session goes on with the spec as it was read. A program that asks without end calls this when it is
 * through with an answer, or with some: what the session holds then does not grow with the questions that it
 * was asked. Errors are said again to whoever asks again; remarks on the spec itself need not be. ETCH_OK; or
 * that status of a session that refuses everything, and then nothing has ended. */
ETCH_API etch_status etch_session_release(etch_session *session);

/* Asks a running call that reads or writes traces, or the next one, to end soon, leaving nothing behind. It
 * then returns ETCH_ELIMIT. */
ETCH_API void etch_session_cancel(etch_session *session);

/* ---- messages ----------------------------------------------------------------------------------------- */

/* A range of characters. Lines and columns (characters) count from 1; the end is after the last one. */
typedef struct etch_location {
    /* as it was given or written in an import; NULL: nowhere in a file */
    const char *path;
    uint32_t line, column;
    uint32_t end_line, end_column;
} etch_location;

typedef struct etch_comment {
    etch_location location;
    const char *text;
} etch_comment;

/* One message: an error of the input, a warning, or a remark on a result. */
typedef struct etch_message {
    etch_severity severity;
    /* "E0203"; never changes its meaning. "" for none */
    const char *code;
    etch_location location;
    /* one line */
    const char *text;
    /* what is known */
    const etch_comment *notes;
    /* what would help; mostly nowhere in a file */
    const etch_comment *helps;
    size_t note_count, help_count;
} etch_message;

/* All messages so far (since the latest release), in the order of their discovery; at most 20 of each
 * severity. `*count` of them. */
ETCH_API const etch_message *etch_session_messages(etch_session *session, size_t *count);

/* The same as text for a person, with source lines and carets. "" when there are none. */
ETCH_API const char *etch_session_message_text(etch_session *session);

/* What a status means, in a few words: "memory is out". A static text. */
ETCH_API const char *etch_status_text(etch_status status);

/* ---- values in force ---------------------------------------------------------------------------------- */

typedef struct etch_binding_row {
    /* of a param or a mesh axis, or `tokens` */
    const char *name;
    /* a number, or a formula in other params */
    const char *value;
    etch_given_by from;
} etch_binding_row;

/* What binds params and axes, each once, in order of declaration. */
ETCH_API etch_status etch_session_bindings(etch_session *session, const etch_binding_row **rows,
                                           size_t *count);

/* ---- check -------------------------------------------------------------------------------------------- */

/* What a plan requires of the values that it is used with. */
typedef struct etch_plan_requirement {
    const char *plan;
    /* "tp | kv_heads" */
    const char *text;
    etch_location location;
} etch_plan_requirement;

/* What a plan of an imported file speaks of and the models lack. The plan holds without it. */
typedef struct etch_absence {
    const char *plan;
    /* "dim A" */
    const char *text;
    etch_location location;
} etch_absence;

/* A plan of an imported file that a model of the spec cannot be placed by, and that nothing says is used: no
 * mistake of the spec. */
typedef struct etch_unsuited {
    const char *plan;
    /* what stands against it, as it would be reported of the plan in use */
    const char *text;
    etch_location location;
} etch_unsuited;

/* How many plans of an imported file the models take: of those that it declares, the spec sees them, and they
 * are not unsuited. */
typedef struct etch_plan_count {
    const char *file;
    size_t taken, declared;
} etch_plan_count;

/* What became of a `check` line of the spec. */
typedef struct etch_verdict {
    /* ETCH_YES: proved; ETCH_NO: refuted */
    etch_truth truth;
    /* as written */
    const char *text;
    etch_location location;
} etch_verdict;

typedef struct etch_check_report {
    /* names, in order of declaration, imports first */
    const char *const *modules;
    const char *const *models;
    const char *const *configs;
    const char *const *plans;
    size_t module_count, model_count, config_count, plan_count;
    const etch_plan_requirement *requirements;
    size_t requirement_count;
    const etch_absence *absences;
    size_t absence_count;
    const etch_verdict *verdicts;
    size_t verdict_count;
    const etch_unsuited *unsuited;
    size_t unsuited_count;
    /* none where one plan alone was asked for, or there is no model */
    const etch_plan_count *plan_files;
    size_t plan_file_count;
} etch_check_report;

/* Builds every model of the spec, derives what it trains, places every plan, and decides the `check` lines
 * of the spec. Reads modules that no model calls and, without `config` and `sets`, looks at the values of
 * every config. Values of `sets`, of the config and, with `defaults`, of the defaults take the place of
 * params, and assumptions and requirements that they contradict are errors.
 * ETCH_EINPUT: errors, or a check line is refuted. ETCH_EUNKNOWN: otherwise fine, but a check line could be
 * neither proved nor refuted (a warning says which). `*report` is complete with ETCH_OK and ETCH_EUNKNOWN;
 * otherwise it is NULL or holds what was found. */
ETCH_API etch_status etch_session_check(etch_session *session, const etch_check_report **report);

#ifdef __cplusplus
}
#endif

#endif
