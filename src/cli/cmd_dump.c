/* etch dump: what is in Chakra traces. */
#include "cli_int.h"

#include <stdio.h>

static bool print(void *data, const char *text, size_t length)
{
    (void)data;
    return fwrite(text, 1, length, stdout) == length;
}

cli_exit cli_dump(const cli_arguments *arguments)
{
    if (arguments->text && arguments->format == ETCH_JSON)
        return cli_usage_error(arguments->command, "--text and --format json are two forms of one dump");
    const etch_dump_as as = arguments->text                  ? ETCH_DUMP_AS_TEXT
                            : arguments->format == ETCH_JSON ? ETCH_DUMP_AS_JSON
                                                             : ETCH_DUMP_AS_SUMMARY;
    const etch_session_options none = {.struct_size = sizeof none};
    const etch_dumping_options options = {.struct_size = sizeof options, .as = as, .ranks = arguments->ranks};
    etch_session *session;
    etch_status status = etch_session_open(&none, &session);
    if (status == ETCH_OK)
        status = etch_session_dump(session, arguments->words[0], &options, print, NULL);
    return cli_close(arguments, session, status);
}
