/* Declarations that the files of the program share: the table of commands, parsed arguments, output. The
 * program uses nothing of etch but its public headers. */
#ifndef ETCH_CLI_INT_H
#define ETCH_CLI_INT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "etch/etch.h"

/* Exit statuses: part of the interface. */
typedef enum cli_exit {
    CLI_DONE = 0,
    /* the input has errors, or a check is refuted */
    CLI_INPUT = 1,
    CLI_USAGE = 2,
    /* input, output, memory */
    CLI_IO = 3,
    /* a limit, or cancelled */
    CLI_LIMIT = 4,
    /* could not be decided */
    CLI_UNKNOWN = 5,
    CLI_BUG = 70
} cli_exit;

cli_exit cli_exit_of(etch_status status);

typedef enum cli_color { CLI_COLOR_AUTO, CLI_COLOR_ALWAYS, CLI_COLOR_NEVER } cli_color;
/* What `show` shows. */
typedef enum cli_view {
    CLI_VIEW_GRAPH,
    CLI_VIEW_PIPELINE,
    CLI_VIEW_PLAN,
    CLI_VIEW_PASS,
    CLI_VIEW_COUNT
} cli_view;

struct cli_command;

/* The command line, taken apart. Texts belong to argv. */
typedef struct cli_arguments {
    /* NULL: none was given */
    const struct cli_command *command;
    /* after the command */
    const char **words;
    int word_count;
    /* all but `spec`; `sets` has room for every setting of the command line */
    etch_session_options session;
    etch_output_options output;
    etch_query_options query;
    /* ETCH_PLAIN or ETCH_JSON but for queries */
    etch_notation format;
    cli_view view;
    cli_color color;
    /* whose result is shown */
    const char *pass;
    /* the file of groups */
    const char *groups;
    /* runs with random durations, below 2^32 */
    size_t seeds;
    /* how sends end; none or both of them: under both protocols */
    bool eager, rendezvous;
    /* a list: "0,2,8-15" */
    const char *ranks;
    /* dump in the text form */
    bool text;
    /* of a sweep: `over` and `where` have room for every word of the command line */
    etch_sweep_options sweep;
    const char **over, **where;
    /* what to solve for; its names stand in `over` */
    etch_solve_options solve;
    /* --format, as far as it is one of rows, or of other results */
    const char *of_rows, *not_of_rows;
    /* the spec of the machine, and numbers of it; room as `over` */
    const char *machine;
    /* of a sweep: "a,b" */
    const char *machines;
    const char **machine_sets;
    size_t machine_set_count;
    /* options of plans; room as `over` */
    const char **plan_sets;
    /* fit nothing: how good are the numbers of the machine? */
    bool check;
    /* all but the machine */
    etch_simulation_options simulation;
    /* files for pictures of the run; NULL: none */
    const char *timeline, *report;
    /* a graph for Graphviz; `format` is ETCH_PLAIN then */
    bool dot;
    /* a pipeline as a picture; likewise */
    bool svg;
    bool human, json, quiet, verbose, help, version;
    /* it says how many threads there are */
    bool has_jobs;
    /* processes that do this together; NULL: this one alone does it */
    etch_world *world;
} cli_arguments;

/* ---- commands --------------------------------------------------------------------------------------- */

typedef struct cli_command {
    const char *name;
    /* its own: which options it takes, see options.c */
    unsigned bit;
    /* what stands after the command, for usage: "SPEC EXPR" */
    const char *words;
    /* how many words */
    int least, most;
    /* one line */
    const char *summary;
    /* paragraphs for `etch help COMMAND` */
    const char *details;
} cli_command;

/* of a command that takes any number of words */
enum { CLI_MANY_WORDS = 1 << 30 };

enum {
    CLI_CHECK = 1 << 0,
    CLI_QUERY = 1 << 1,
    CLI_LOWER = 1 << 2,
    CLI_HELP = 1 << 3,
    CLI_SHOW = 1 << 4,
    CLI_VERIFY = 1 << 5,
    CLI_DUMP = 1 << 6,
    CLI_ASSEMBLE = 1 << 7,
    CLI_PROVE = 1 << 8,
    CLI_FIT = 1 << 9,
    CLI_SIMULATE = 1 << 10,
    CLI_IMPORT = 1 << 11,
    CLI_SWEEP = 1 << 12,
    CLI_SOLVE = 1 << 13,
    CLI_MERGE = 1 << 14,
    CLI_MEMORY = 1 << 15,
    /* what computes rows of a spec */
    CLI_ROWS = CLI_SWEEP | CLI_SOLVE,
    CLI_SPEC = CLI_CHECK | CLI_QUERY | CLI_LOWER | CLI_SHOW | CLI_PROVE | CLI_SIMULATE | CLI_MEMORY,
    CLI_EVERY = CLI_SPEC | CLI_ROWS | CLI_MERGE | CLI_HELP | CLI_VERIFY | CLI_DUMP | CLI_ASSEMBLE | CLI_FIT |
                CLI_IMPORT
};

/* The i-th command, NULL after the last. */
const cli_command *cli_command_at(size_t i);
const cli_command *cli_command_of(const char *name);

cli_exit cli_check(const cli_arguments *arguments);
cli_exit cli_query(const cli_arguments *arguments);
cli_exit cli_prove(const cli_arguments *arguments);
cli_exit cli_lower(const cli_arguments *arguments);
cli_exit cli_show(const cli_arguments *arguments);
cli_exit cli_verify(const cli_arguments *arguments);
cli_exit cli_dump(const cli_arguments *arguments);
cli_exit cli_assemble(const cli_arguments *arguments);
cli_exit cli_fit(const cli_arguments *arguments);
cli_exit cli_simulate(const cli_arguments *arguments);
cli_exit cli_memory(const cli_arguments *arguments);
cli_exit cli_import(const cli_arguments *arguments);
cli_exit cli_sweep(const cli_arguments *arguments);
cli_exit cli_solve(const cli_arguments *arguments);
cli_exit cli_merge(const cli_arguments *arguments);
cli_exit cli_help(const cli_arguments *arguments);
cli_exit cli_help_overview(void);
/* Prints the specs that come with etch, "models" or "machines", each with the first line of its comment. */
cli_exit cli_print_installed(const char *kind);
cli_exit cli_help_command(const cli_command *command);
/* Prints the manual page, in the language of man(7). */
cli_exit cli_print_manual(void);
/* Print what shells need to complete command lines. */
void cli_print_bash(void);
void cli_print_zsh(void);
void cli_print_fish(void);
/* A page of the documentation, `topics` ends with a NULL name; made from docs/ by CMake. */
typedef struct cli_topic {
    const char *name;
    const unsigned char *text;
    size_t length;
} cli_topic;
extern const cli_topic cli_topics[];

/* ---- options ---------------------------------------------------------------------------------------- */

/* How many texts a list of a command line has at most, and how many lists there are. */
enum { CLI_TEXT_LISTS = 6 };
size_t cli_text_room(int argc, char *const *argv);
/* Takes a command line apart, in place; `sets` has room for CLI_TEXT_LISTS lists. Anything but CLI_DONE has
 * been said on stderr. */
cli_exit cli_parse(int argc, char **argv, const char **sets, cli_arguments *arguments);
/* One option of the table. */
typedef struct cli_option {
    /* 0: none */
    char letter;
    /* "--set NAME=EXPR" */
    char text[64];
    /* lines */
    const char *help;
    unsigned commands;
} cli_option;
/* False after the last. */
bool cli_option_at(size_t i, cli_option *option);
/* Prints the options that one of the commands takes, or only those that `all` of them take. */
void cli_print_options(unsigned commands, bool all);
/* Says what is wrong with the command line, and which help to read. */
cli_exit cli_usage_error(const cli_command *command, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* ---- sessions and messages -------------------------------------------------------------------------- */

/* The path of a spec: as it is named when that is there or says a folder, else the file of that name in a
 * folder of ETCH_PATH, or among the installed models and machines; in `path` then. */
enum { CLI_PATH = 4096 };
const char *cli_find_spec(const char *name, char path[CLI_PATH]);
/* Folders in which imports are looked for: those of ETCH_PATH and the installed `kind`, "models" or
 * "machines", a colon between them, in `folders`. */
enum { CLI_FOLDERS = 4 * CLI_PATH };
const char *cli_import_folders(const char *kind, char folders[CLI_FOLDERS]);
/* The folder of the installed `kind`; false: there is none. */
bool cli_installed_folder(const char *kind, char path[CLI_PATH]);
/* The path of a machine as that of a spec, whose name may lack the ".etch" of its file. */
const char *cli_find_machine(const char *name, char path[CLI_PATH]);
/* Reads all of a file, or of the standard input for "-", with a NUL behind `*length` bytes; the caller frees
 * `*text`. NULL, or why it cannot be read. `limit`: most bytes. */
const char *cli_read_text(const char *name, size_t limit, char **text, size_t *length);
/* Does a name say that the file is a tar archive, X.tar? */
bool cli_is_archive(const char *path);
/* Is the name that of a pipe, or "-", the standard input? Such a spec is read once, and its imports are
 * relative to the current folder. */
bool cli_is_piped(const char *name);
/* Reads it as `cli_read_text` does, and refuses NUL bytes. */
const char *cli_read_piped(const char *name, char **text);
#define CLI_PIPED_NAME "<input>" /* in messages */
/* Says on stderr that what a command reads cannot be read, in the form of a session's message. `code`:
 * "E0203", or "" for none. */
void cli_report_unread(const cli_arguments *arguments, const char *code, const char *name, const char *why);
/* Opens a session on the first word. The result is NULL when memory is out or, which is said at once, a piped
 * spec cannot be read; `*status` says how it went. */
etch_session *cli_open(const cli_arguments *arguments, etch_status *status);
/* The same on the spec of a machine, with none of the options. */
etch_session *cli_open_machine(const cli_arguments *arguments, etch_status *status);
/* Puts the session's messages on stderr, closes it, and says how the program is to end. */
cli_exit cli_close(const cli_arguments *arguments, etch_session *session, etch_status status);

/* ---- signals ---------------------------------------------------------------------------------------- */

/* From now on the first signal that asks for an end cancels what the session writes, and the second ends the
 * program at once. */
void cli_catch_signals(etch_session *session);
/* The session has ended its work: a signal has nothing to cancel any more. */
void cli_forget_signals(void);

/* ---- results on stdout ------------------------------------------------------------------------------ */

/* "name<padding>value". */
void cli_print_field(const char *name, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* A JSON object for stdout, consumed. False when memory was out on the way. */
bool cli_print_json(json_t *object);
/* Adds `value` (consumed, may be NULL when memory is out) to an object or array; failures stick to
 * `*failed`. */
void cli_json_set(json_t *object, const char *key, json_t *value, bool *failed);
void cli_json_append(json_t *array, json_t *value, bool *failed);
json_t *cli_json_text(const char *text); /* null for NULL; bytes that are not UTF-8 become ? */
json_t *cli_json_location(const etch_location *location, bool *failed);
/* Adds a number or formula to an object. */
void cli_json_amount(json_t *object, const etch_amount *amount, bool human, bool *failed);
/* The terms of an answer, and what they come from. */
void cli_print_why(const etch_answer *answer, bool human);
json_t *cli_json_why(const etch_answer *answer, bool human, bool *failed);
json_t *cli_json_phrases(const etch_phrase_view *why, size_t count, bool *failed);
/* Closes stdout. A result that could not be written is a failure of its own. */
cli_exit cli_finish(cli_exit status);

#endif
