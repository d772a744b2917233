/* etch sweep: a row for each configuration. etch merge: the same from its parts. */
#include "cli_int.h"

#include <stdio.h>

static bool write_out(void *data, const char *bytes, size_t length)
{
    (void)data;
    return fwrite(bytes, 1, length, stdout) == length;
}

cli_exit cli_sweep(const cli_arguments *arguments)
{
    etch_status status;
    etch_session *session = cli_open(arguments, &status);
    etch_sweep_options options = arguments->sweep;
    const etch_sweep_report *report;
    options.struct_size = sizeof options;
    options.over = arguments->over;
    options.where = arguments->where;
    options.file = arguments->output.folder;
    options.threads = arguments->output.threads;
    options.write = write_out;
    if (status == ETCH_OK) {
        cli_catch_signals(session);
        status = etch_session_sweep(session, &options, &report);
        cli_forget_signals();
    }
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
