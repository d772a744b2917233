/* Sessions as commands use them, and their messages on stderr. */
#define _POSIX_C_SOURCE 200809L

#include "cli_int.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- text ------------------------------------------------------------------------------------------- */

static bool wants_color(const cli_arguments *arguments)
{
    if (arguments->color != CLI_COLOR_AUTO)
        return arguments->color == CLI_COLOR_ALWAYS;
    const char *no_color = getenv("NO_COLOR");
    const char *terminal = getenv("TERM");
    return isatty(STDERR_FILENO) && !(no_color && *no_color) && !(terminal && strcmp(terminal, "dumb") == 0);
}

/* How a line of the text is shown: `length` characters of it after `plain` in a colour. */
typedef struct highlight {
    size_t plain, length;
    const char *color;
} highlight;

#define BOLD_RED "\033[1;31m"
#define BOLD_YELLOW "\033[1;33m"
#define BOLD_CYAN "\033[1;36m"
#define BOLD_GREEN "\033[1;32m"
#define RESET "\033[0m"

/* The caret below a source line, or the word that says what kind of message a line is. */
static highlight find_highlight(const char *line, size_t length)
{
    static const struct {
        const char *word, *color;
    } kinds[] = {{"error[", BOLD_RED},
                 {"warning[", BOLD_YELLOW},
                 {"remark[", BOLD_CYAN},
                 {"note: ", BOLD_CYAN},
                 {"help: ", BOLD_GREEN}};
    const char *bar = memchr(line, '|', length);
    if (bar && strspn(line, " 0123456789") == (size_t)(bar - line)) {
        size_t plain = (size_t)(bar - line) + 1;
        bool carets = strspn(line, " ") == plain - 1;
        return (highlight){plain, carets ? length - plain : 0, BOLD_RED};
    }
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        const char *word = strstr(line, kinds[i].word);
        if (word && word < line + length) {
            const char *end = strchr(word, ':');
            return (highlight){(size_t)(word - line), end ? (size_t)(end - word) : 0, kinds[i].color};
        }
    }
    return (highlight){0, 0, ""};
}

static void print_colored(const char *text)
{
    while (*text) {
        size_t length = strcspn(text, "\n");
        highlight h = find_highlight(text, length);
        const char *rest = text + h.plain + h.length;
        if (h.length > 0)
            fprintf(stderr, "%.*s%s%.*s" RESET, (int)h.plain, text, h.color, (int)h.length, text + h.plain);
        else
            rest = text;
        fprintf(stderr, "%.*s\n", (int)(text + length - rest), rest);
        text += length + (text[length] == '\n');
    }
}

static void print_bindings(etch_session *session)
{
    const etch_binding_row *rows;
    size_t count;
    if (etch_session_bindings(session, &rows, &count) != ETCH_OK)
        return;
    for (size_t i = 0; i < count; i++)
        fprintf(stderr, "%s = %s (%s)\n", rows[i].name, rows[i].value, etch_given_by_name(rows[i].from));
}

/* ---- JSON ------------------------------------------------------------------------------------------- */

static json_t *comments_json(const etch_comment *comments, size_t count, bool *failed)
{
    json_t *array = json_array();
    for (size_t i = 0; i < count; i++) {
        json_t *object = json_object();
        cli_json_set(object, "message", cli_json_text(comments[i].text), failed);
        cli_json_set(object, "location", cli_json_location(&comments[i].location, failed), failed);
        cli_json_append(array, object, failed);
    }
    return array;
}

static json_t *message_json(const etch_message *message, bool *failed)
{
    json_t *object = json_object();
    cli_json_set(object, "severity", cli_json_text(etch_severity_name(message->severity)), failed);
    cli_json_set(object, "code", cli_json_text(message->code), failed);
    cli_json_set(object, "message", cli_json_text(message->text), failed);
    cli_json_set(object, "location", cli_json_location(&message->location, failed), failed);
    cli_json_set(object, "notes", comments_json(message->notes, message->note_count, failed), failed);
    cli_json_set(object, "helps", comments_json(message->helps, message->help_count, failed), failed);
    return object;
}

/* False: memory is out, which is said. */
static bool print_json(const etch_message *messages, size_t count, etch_status status)
{
    bool failed = false;
    json_t *root = json_object(), *array = json_array();
    for (size_t i = 0; i < count; i++)
        cli_json_append(array, message_json(&messages[i], &failed), &failed);
    cli_json_set(root, "schema", json_string("etch-messages/1"), &failed);
    cli_json_set(root, "status", cli_json_text(etch_status_text(status)), &failed);
    cli_json_set(root, "messages", array, &failed);
    failed = failed || json_dumpf(root, stderr, JSON_INDENT(2)) != 0;
    if (failed)
        fprintf(stderr, "etch: %s", etch_status_text(ETCH_ENOMEM));
    fputc('\n', stderr);
    json_decref(root);
    return !failed;
}

/* ---- the beginning of a session ---------------------------------------------------------------------- */

void cli_report_unread(const cli_arguments *arguments, const char *code, const char *name, const char *why)
{
    char text[CLI_PATH + 100], line[sizeof text + 20];
    snprintf(text, sizeof text, "cannot read '%.4000s': %s", name, why);
    const etch_message message = {.severity = ETCH_ERROR, .code = code, .text = text};
    if (arguments->json) {
        (void)print_json(&message, 1, ETCH_EIO); /* the status is the same */
        return;
    }
    snprintf(line, sizeof line, *code ? "error[%s]: %s\n" : "etch%s: %s\n", code, text);
    if (wants_color(arguments))
        print_colored(line);
    else
        fputs(line, stderr);
}

etch_session *cli_open(const cli_arguments *arguments, etch_status *status)
{
    etch_session_options options = arguments->session;
    etch_session *session;
    options.struct_size = sizeof options;
    char path[CLI_PATH], *text = NULL;
    const char *name = arguments->words[0];
    const bool is_piped = cli_is_piped(name);
    const char *why = is_piped ? cli_read_piped(name, &text) : NULL;
    if (why) {
        cli_report_unread(arguments, "E0203", name, why);
        *status = ETCH_EIO;
        return NULL;
    }
    char folders[CLI_FOLDERS];
    options.spec = is_piped ? CLI_PIPED_NAME : cli_find_spec(name, path);
    options.text = text;
    options.folders = cli_import_folders("models", folders);
    *status = etch_session_open(&options, &session);
    free(text);
    return session;
}

etch_session *cli_open_machine(const cli_arguments *arguments, etch_status *status)
{
    char path[CLI_PATH], folders[CLI_FOLDERS];
    const etch_session_options options = {.struct_size = sizeof options,
                                          .spec = cli_find_machine(arguments->machine, path),
                                          .folders = cli_import_folders("machines", folders),
                                          .machine_sets = arguments->machine_sets,
                                          .machine_set_count = arguments->machine_set_count};
    etch_session *session;
    *status = etch_session_open(&options, &session);
    return session;
}

/* ---- the end of a session --------------------------------------------------------------------------- */

static size_t count_errors(const etch_message *messages, size_t count)
{
    size_t errors = 0;
    for (size_t i = 0; i < count; i++)
        errors += messages[i].severity == ETCH_ERROR;
    return errors;
}

cli_exit cli_close(const cli_arguments *arguments, etch_session *session, etch_status status)
{
    size_t count = 0;
    status = etch_world_end(arguments->world, session, status);
    if (etch_world_rank(arguments->world) > 0) {
        etch_session_close(session);
        return cli_exit_of(status); /* process 0 says it */
    }
    if (!session && status == ETCH_EIO)
        return cli_exit_of(status); /* its cause has been said */
    const etch_message *messages = session ? etch_session_messages(session, &count) : NULL;
    const size_t errors = count_errors(messages, count);
    if (session && arguments->verbose && !arguments->json)
        print_bindings(session);
    if (arguments->json) {
        status = print_json(messages, count, status) ? status : ETCH_ENOMEM;
    } else if (session && (errors > 0 || !arguments->quiet)) {
        const char *text = etch_session_message_text(session);
        if (count > 0 && !*text)
            status = ETCH_ENOMEM; /* there is no room to say them */
        if (wants_color(arguments))
            print_colored(text);
        else
            fputs(text, stderr);
    }
    /* Errors that were found before memory ran out are not its cause. */
    const bool said = errors > 0 && status != ETCH_ENOMEM;
    if (status != ETCH_OK && status != ETCH_EUNKNOWN && !said && !arguments->json)
        fprintf(stderr, "etch: %s\n", etch_status_text(status));
    etch_session_close(session);
    return cli_exit_of(status);
}
