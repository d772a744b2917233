/* etch assemble: Chakra traces from their text form. */
#include "cli_int.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Reads a file to its end; it may be standard input. From malloc; NULL with errno when that fails. */
static char *read_stream(FILE *file, size_t *length)
{
    size_t capacity = 1 << 16;
    char *text = malloc(capacity);
    *length = 0;
    while (text) {
        *length += fread(text + *length, 1, capacity - *length, file);
        if (*length < capacity)
            break;
        char *wider = capacity <= SIZE_MAX / 2 ? realloc(text, capacity * 2) : NULL;
        if (!wider)
            free(text);
        text = wider;
        capacity *= 2;
    }
    if (text && ferror(file)) {
        free(text);
        text = NULL;
    }
    return text;
}

static char *read_text(const char *path, size_t *length)
{
    const bool standard = strcmp(path, "-") == 0;
    errno = 0;
    FILE *file = standard ? stdin : fopen(path, "rb");
    char *text = file ? read_stream(file, length) : NULL;
    if (!text)
        fprintf(stderr, "etch: cannot read '%s': %s\n", path, errno ? strerror(errno) : "read error");
    if (file && !standard)
        fclose(file);
    return text;
}

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
    char *text = read_text(path, &length);
    if (!text)
        return CLI_IO;
    const etch_session_options options = {.struct_size = sizeof options};
    const etch_assembled *result;
    etch_session *session;
    etch_status status = etch_session_open(&options, &session);
    if (status == ETCH_OK)
        status = etch_session_assemble(session, strcmp(path, "-") == 0 ? "<stdin>" : path, text, length,
                                       arguments->output.folder, &result);
    free(text);
    if (status == ETCH_OK && arguments->format == ETCH_JSON && !print_json(result))
        status = ETCH_ENOMEM;
    if (status == ETCH_OK && arguments->format == ETCH_PLAIN)
        cli_print_field("written", "%s: %" PRIu64 " bytes in %" PRIu32 " files", result->folder,
                        result->bytes, result->files);
    return cli_close(arguments, session, status);
}
