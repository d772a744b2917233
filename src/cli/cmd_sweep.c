/* etch sweep: a row for each configuration. etch merge: the same from its parts. */
#include "cli_int.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool write_out(void *data, const char *bytes, size_t length)
{
    (void)data;
    return fwrite(bytes, 1, length, stdout) == length;
}

/* Machines by name, and where their specs are. */
typedef struct machine_list {
    etch_sweep_machine *at;
    size_t count;
    char *names;
    char (*paths)[CLI_PATH];
} machine_list;

/* One, or a list of them. False: memory is out. */
static bool read_machines(const char *text, bool several, machine_list *out)
{
    size_t most = 1;
    for (const char *c = text; *c; c++)
        most += *c == ',';
    out->at = calloc(most, sizeof *out->at);
    out->paths = calloc(most, sizeof *out->paths);
    out->names = malloc(strlen(text) + 1);
    if (!out->at || !out->paths || !out->names)
        return false;
    char *name = strcpy(out->names, text);
    while (name) {
        char *comma = several ? strchr(name, ',') : NULL;
        if (comma)
            *comma = '\0';
        name += strspn(name, " ");
        name[strcspn(name, " ")] = '\0';
        if (*name) {
            out->at[out->count].name = name;
            out->at[out->count].spec = cli_find_machine(name, out->paths[out->count]);
            out->count++;
        }
        name = comma ? comma + 1 : NULL;
    }
    return true;
}

static void free_machines(machine_list *machines)
{
    free(machines->at);
    free(machines->paths);
    free(machines->names);
}

cli_exit cli_sweep(const cli_arguments *arguments)
{
    const char *named = arguments->machines ? arguments->machines : arguments->machine;
    char folders[CLI_FOLDERS];
    machine_list machines = {0};
    if (named && !read_machines(named, arguments->machines != NULL, &machines)) {
        free_machines(&machines);
        return cli_close(arguments, NULL, ETCH_ENOMEM);
    }
    etch_status status;
    etch_session *session = cli_open(arguments, &status);
    etch_sweep_options options = arguments->sweep;
    options.machines = machines.at;
    options.machine_count = machines.count;
    options.names_machines = arguments->machines != NULL;
    options.machine_folders = cli_import_folders("machines", folders);
    options.machine_sets = arguments->machine_sets;
    options.machine_set_count = arguments->machine_set_count;
    const etch_sweep_report *report;
    options.struct_size = sizeof options;
    options.over = arguments->over;
    options.where = arguments->where;
    options.file = arguments->output.folder;
    options.threads = arguments->output.threads;
    options.write = write_out;
    options.world = arguments->world;
    if (status == ETCH_OK) {
        cli_catch_signals(session);
        status = etch_session_sweep(session, &options, &report);
        cli_forget_signals();
    }
    free_machines(&machines);
    return cli_close(arguments, session, status);
}

cli_exit cli_merge(const cli_arguments *arguments)
{
    const etch_session_options none = {.struct_size = sizeof none};
    const etch_sweep_options options = {
        .struct_size = sizeof options, .file = arguments->output.folder, .write = write_out};
    const etch_sweep_report *report;
    etch_session *session;
    etch_status status = etch_session_open(&none, &session);
    if (status == ETCH_OK) {
        cli_catch_signals(session);
        status =
            etch_session_merge(session, arguments->words, (size_t)arguments->word_count, &options, &report);
        cli_forget_signals();
    }
    return cli_close(arguments, session, status);
}
