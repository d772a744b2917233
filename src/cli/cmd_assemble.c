/* etch assemble: Chakra traces from their text form. */
#include "cli_int.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static bool print_json(const etch_assembled *result)
{
    bool failed = false;
    json_t *root = json_object();
    cli_json_set(root, "schema", json_string("etch-assemble/1"), &failed);
    cli_json_set(root, "written", cli_json_text(result->folder), &failed);
    cli_json_set(root, "files", json_integer((json_int_t)result->files), &failed);
    cli_json_set(root, "bytes", json_integer((json_int_t)result->bytes), &failed);
    return cli_print_json(root) && !failed;
}

cli_exit cli_assemble(const cli_arguments *arguments)
{
    size_t length;
    const char *path = arguments->words[0];
    if (!arguments->output.folder)
        return cli_usage_error(arguments->command, "say where the traces go with -o DIR");
    char *text;
    const char *why = cli_read_text(path, SIZE_MAX, &text, &length);
    if (why) {
        cli_report_unread(arguments, "", path, why);
        return CLI_IO;
    }
    const etch_session_options options = {.struct_size = sizeof options};
    const etch_assembled *result;
    etch_session *session;
    etch_status status = etch_session_open(&options, &session);
    if (status == ETCH_OK) {
        const etch_assembling_options assembling = {.struct_size = sizeof assembling,
                                                    .folder = arguments->output.folder,
                                                    .force = arguments->output.force,
                                                    .no_sync = arguments->output.no_sync};
        cli_catch_signals(session);
        status = etch_session_assemble(session, strcmp(path, "-") == 0 ? "<stdin>" : path, text, length,
                                       &assembling, &result);
        cli_forget_signals();
    }
    free(text);
    if (status == ETCH_OK && arguments->format == ETCH_JSON && !print_json(result))
        status = ETCH_ENOMEM;
    if (status == ETCH_OK && arguments->format == ETCH_PLAIN)
        cli_print_field("written", "%s: %" PRIu64 " bytes in %" PRIu32 " files", result->folder,
                        result->bytes, result->files);
    return cli_close(arguments, session, status);
}
