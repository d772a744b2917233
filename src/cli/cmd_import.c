/* etch import: the config of a published model as a spec. */
#include "cli_int.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of what comes from a pipe: far more than a config may have, which is then said as of a file. */
enum { MOST_BYTES = 256 << 20 };

/* Writes the spec to a file that does not exist yet, unless `force`. Has said why it could not. */
static cli_exit write_file(const cli_arguments *arguments, const char *spec)
{
    const char *path = arguments->output.folder;
    FILE *file = fopen(path, arguments->output.force ? "w" : "wx");
    if (!file && errno == EEXIST) {
        fprintf(stderr, "etch: '%s' is there already: --force replaces it\n", path);
        return CLI_INPUT;
    }
    bool failed = !file || fputs(spec, file) == EOF;
    const int error = errno;
    failed = (file && fclose(file) != 0) || failed;
    if (failed)
        fprintf(stderr, "etch: cannot write '%s': %s\n", path, strerror(errno ? errno : error));
    return failed ? CLI_IO : CLI_DONE;
}

cli_exit cli_import(const cli_arguments *arguments)
{
    const char *name = arguments->words[0];
    const bool is_piped = cli_is_piped(name);
    char *text = NULL;
    size_t length = 0;
    const char *why = is_piped ? cli_read_text(name, MOST_BYTES, &text, &length) : NULL;
    if (why) {
        cli_report_unread(arguments, "E0203", name, why);
        return CLI_IO;
    }
    const etch_session_options options = {.struct_size = sizeof options};
    const etch_import_options import = {.struct_size = sizeof import,
                                        .name = is_piped ? CLI_PIPED_NAME : name,
                                        .text = text,
                                        .length = length};
    const etch_imported *imported = NULL;
    etch_session *session;
    etch_status status = etch_session_open(&options, &session);
    if (status == ETCH_OK)
        status = etch_session_import(session, &import, &imported);
    free(text);
    cli_exit written = CLI_DONE;
    if (imported && arguments->output.folder)
        written = write_file(arguments, imported->spec);
    else if (imported)
        fputs(imported->spec, stdout);
    const cli_exit closed = cli_close(arguments, session, status);
    return closed == CLI_DONE ? written : closed;
}
