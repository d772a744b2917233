/* etch check: what a spec holds, what its plans demand, and what became of its check lines. */
#include "cli_int.h"

#include <stdio.h>

static void print_names(const char *what, const char *const *names, size_t count)
{
    if (count == 0)
        return;
    printf("%-9s ", what);
    for (size_t i = 0; i < count; i++)
        printf("%s%s", i ? ", " : "", names[i]);
    putchar('\n');
}

static void print_plain(const etch_check_report *report)
{
    print_names("modules", report->modules, report->module_count);
    print_names("models", report->models, report->model_count);
    print_names("configs", report->configs, report->config_count);
    print_names("plans", report->plans, report->plan_count);
    for (size_t i = 0; i < report->demand_count; i++) {
        const etch_demand *d = &report->demands[i];
        cli_print_field("requires", "%s   by plan %s, %s:%u", d->text, d->plan, d->location.path,
                        (unsigned)d->location.line);
    }
    for (size_t i = 0; i < report->verdict_count; i++) {
        const etch_verdict *v = &report->verdicts[i];
        cli_print_field(v->verdict, "%s   %s:%u", v->text, v->location.path, (unsigned)v->location.line);
    }
}

static json_t *names_json(const char *const *names, size_t count, bool *failed)
{
    json_t *array = json_array();
    for (size_t i = 0; i < count; i++)
        cli_json_append(array, cli_json_text(names[i]), failed);
    return array;
}

static bool print_json(const etch_check_report *report)
{
    bool failed = false;
    json_t *root = json_object(), *demands = json_array(), *verdicts = json_array();
    for (size_t i = 0; i < report->demand_count; i++) {
        json_t *row = json_object();
        cli_json_set(row, "plan", cli_json_text(report->demands[i].plan), &failed);
        cli_json_set(row, "requires", cli_json_text(report->demands[i].text), &failed);
        cli_json_set(row, "location", cli_json_location(&report->demands[i].location, &failed), &failed);
        cli_json_append(demands, row, &failed);
    }
    for (size_t i = 0; i < report->verdict_count; i++) {
        json_t *row = json_object();
        cli_json_set(row, "verdict", cli_json_text(report->verdicts[i].verdict), &failed);
        cli_json_set(row, "check", cli_json_text(report->verdicts[i].text), &failed);
        cli_json_set(row, "location", cli_json_location(&report->verdicts[i].location, &failed), &failed);
        cli_json_append(verdicts, row, &failed);
    }
    cli_json_set(root, "schema", json_string("etch-check/1"), &failed);
    cli_json_set(root, "modules", names_json(report->modules, report->module_count, &failed), &failed);
    cli_json_set(root, "models", names_json(report->models, report->model_count, &failed), &failed);
    cli_json_set(root, "configs", names_json(report->configs, report->config_count, &failed), &failed);
    cli_json_set(root, "plans", names_json(report->plans, report->plan_count, &failed), &failed);
    cli_json_set(root, "requires", demands, &failed);
    cli_json_set(root, "checks", verdicts, &failed);
    return cli_print_json(root) && !failed;
}

cli_exit cli_check(const cli_arguments *arguments)
{
    etch_status status;
    etch_session *session = cli_open(arguments, &status);
    const etch_check_report *report = NULL;
    if (status == ETCH_OK)
        status = etch_session_check(session, &report);
    if (report &&
        (status == ETCH_OK || report->verdict_count > 0)) { /* a spec with mistakes has no summary */
        if (arguments->format == ETCH_PLAIN)
            print_plain(report);
        else if (!print_json(report))
            status = ETCH_ENOMEM;
    }
    return cli_close(arguments, session, status);
}
