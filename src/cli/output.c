/* Results on stdout. */
#include "cli_int.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void cli_print_field(const char *name, const char *format, ...)
{
    va_list args;
    printf("%-9s ", name);
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    putchar('\n');
}

void cli_json_set(json_t *object, const char *key, json_t *value, bool *failed)
{
    if (json_object_set_new(object, key, value) != 0)
        *failed = true;
}

void cli_json_append(json_t *array, json_t *value, bool *failed)
{
    if (json_array_append_new(array, value) != 0)
        *failed = true;
}

json_t *cli_json_text(const char *text)
{
    if (!text)
        return json_null();
    json_t *string = json_string(text);
    if (string)
        return string;
    /* A path may hold bytes that are not UTF-8, which JSON cannot say. */
    size_t length = strlen(text);
    char *plain = malloc(length + 1);
    for (size_t i = 0; plain && i <= length; i++)
        plain[i] = (unsigned char)text[i] < 0x80 ? text[i] : '?';
    string = plain ? json_string(plain) : NULL;
    free(plain);
    return string;
}

json_t *cli_json_location(const etch_location *location, bool *failed)
{
    if (!location->path)
        return json_null();
    json_t *object = json_object();
    cli_json_set(object, "file", cli_json_text(location->path), failed);
    cli_json_set(object, "line", json_integer((json_int_t)location->line), failed);
    cli_json_set(object, "column", json_integer((json_int_t)location->column), failed);
    cli_json_set(object, "end_line", json_integer((json_int_t)location->end_line), failed);
    cli_json_set(object, "end_column", json_integer((json_int_t)location->end_column), failed);
    return object;
}

bool cli_print_json(json_t *object)
{
    bool fine = object && json_dumpf(object, stdout, JSON_INDENT(2)) == 0;
    json_decref(object);
    putchar('\n');
    return fine;
}

cli_exit cli_finish(cli_exit status)
{
    /* A full disk may show only now. */
    bool failed = ferror(stdout) != 0;
    errno = 0;
    if (fclose(stdout) != 0)
        failed = true;
    if (!failed)
        return status;
    fprintf(stderr, "etch: cannot write the result: %s\n", errno ? strerror(errno) : "write error");
    return CLI_IO;
}

cli_exit cli_exit_of(etch_status status)
{
    switch (status) {
    case ETCH_OK:
        return CLI_DONE;
    case ETCH_EINPUT:
        return CLI_INPUT;
    case ETCH_EUNKNOWN:
        return CLI_UNKNOWN;
    case ETCH_EIO:
    case ETCH_ENOMEM:
        return CLI_IO;
    case ETCH_ELIMIT:
        return CLI_LIMIT;
    case ETCH_EINTERNAL:
        break;
    }
    return CLI_BUG;
}

void cli_json_amount(json_t *object, const etch_amount *amount, bool human, bool *failed)
{
    cli_json_set(object, amount->is_number ? "value" : "formula", cli_json_text(amount->text), failed);
    if (amount->json)
        cli_json_set(object, "expression", json_loads(amount->json, 0, NULL), failed);
    if (amount->low) {
        cli_json_set(object, "low", cli_json_text(amount->low), failed);
        cli_json_set(object, "high", cli_json_text(amount->high), failed);
    }
    if (human && amount->human)
        cli_json_set(object, "human", cli_json_text(amount->human), failed);
}
