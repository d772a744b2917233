/* etch fit: the numbers of a machine, or the factors of a stack, from measurements. */
#include "cli_int.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static void print_errors(const etch_fitting *f)
{
    for (int part = 0; part < ETCH_FIT_PARTS; part++) {
        const etch_fit_errors *e = &f->errors[part];
        if (e->rows > 0)
            cli_print_field(etch_fit_part_name((etch_fit_part)part), "%zu rows: median %.1f %%, p90 %.1f %%",
                            e->rows, 100 * e->median, 100 * e->p90);
    }
}

static json_t *errors_json(const etch_fitting *f, bool *failed)
{
    json_t *all = json_object();
    for (int part = 0; part < ETCH_FIT_PARTS; part++) {
        const etch_fit_errors *e = &f->errors[part];
        json_t *object = json_object();
        cli_json_set(object, "rows", json_integer((json_int_t)e->rows), failed);
        cli_json_set(object, "median", e->rows ? json_real(e->median) : json_null(), failed);
        cli_json_set(object, "p90", e->rows ? json_real(e->p90) : json_null(), failed);
        cli_json_set(all, etch_fit_part_name((etch_fit_part)part), object, failed);
    }
    return all;
}

static json_t *rows_json(const etch_fitting *f, bool *failed)
{
    json_t *rows = json_array();
    for (size_t i = 0; i < f->row_count; i++) {
        const etch_fit_line *line = &f->rows[i];
        json_t *row = json_object();
        cli_json_set(row, "line", json_integer((json_int_t)line->line), failed);
        cli_json_set(row, "part", cli_json_text(etch_fit_part_name(line->part)), failed);
        cli_json_set(row, "measured", json_real(line->measured), failed);
        cli_json_set(row, "low", json_real(line->predicted.low), failed);
        cli_json_set(row, "high", json_real(line->predicted.high), failed);
        if (line->cycles > 0)
            cli_json_set(row, "cycles", json_integer((json_int_t)line->cycles), failed);
        cli_json_append(rows, row, failed);
    }
    return rows;
}

static json_t *steps_json(const etch_fitting *f, bool *failed)
{
    json_t *rows = json_array();
    for (size_t i = 0; i < f->step_count; i++) {
        const etch_fit_step *step = &f->steps[i];
        json_t *row = json_object();
        cli_json_set(row, "line", json_integer((json_int_t)step->line), failed);
        cli_json_set(row, "part", cli_json_text(etch_fit_part_name(step->part)), failed);
        cli_json_set(row, "measured", json_real(step->measured), failed);
        cli_json_set(row, "predicted", json_real(step->predicted), failed);
        if (step->kept_out > 0)
            cli_json_set(row, "kept_out", json_real(step->kept_out), failed);
        cli_json_append(rows, row, failed);
    }
    return rows;
}

static bool print_json(const etch_fitting *f)
{
    bool failed = false;
    json_t *root = json_object();
    cli_json_set(root, "schema", json_string("etch-fit/1"), &failed);
    cli_json_set(root, "kind", cli_json_text(f->steps ? "steps" : etch_kernel_kind_name(f->kind)), &failed);
    cli_json_set(root, "device", cli_json_text(f->device), &failed);
    cli_json_set(root, "fit", cli_json_text(f->line), &failed);
    cli_json_set(root, "errors", errors_json(f, &failed), &failed);
    cli_json_set(root, "rows", f->steps ? steps_json(f, &failed) : rows_json(f, &failed), &failed);
    return cli_print_json(root) && !failed;
}

cli_exit cli_fit(const cli_arguments *arguments)
{
    enum { MOST_BYTES = 64 << 20 };
    const char *path = arguments->words[0];
    char *text;
    char folders[CLI_FOLDERS];
    size_t length;
    if (!arguments->machine)
        return cli_usage_error(arguments->command, "say which machine with --machine M");
    const char *why = cli_read_text(path, MOST_BYTES, &text, &length);
    if (why) {
        cli_report_unread(arguments, "", path, why);
        return CLI_IO;
    }
    const etch_fit_options fit = {.struct_size = sizeof fit,
                                  .name = path[0] == '-' && !path[1] ? CLI_PIPED_NAME : path,
                                  .text = text,
                                  .length = length,
                                  .check = arguments->check,
                                  .folders = cli_import_folders("models", folders),
                                  .stack = arguments->simulation.stack,
                                  .threads = arguments->output.threads};
    const etch_fitting *result = NULL;
    etch_status status;
    etch_session *session = cli_open_machine(arguments, &status);
    if (status == ETCH_OK)
        status = etch_session_fit(session, &fit, &result);
    free(text);
    if (result && arguments->format == ETCH_JSON && !print_json(result))
        status = ETCH_ENOMEM;
    if (result && arguments->format == ETCH_PLAIN) {
        printf("%s\n", result->line);
        print_errors(result);
    }
    return cli_close(arguments, session, status);
}
