/* etch check: what a spec holds, what its plans require, and what became of its check lines. */
#include "cli_int.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void print_names(const char *what, const char *const *names, size_t count)
{
    if (count == 0)
        return;
    printf("%-9s ", what);
    for (size_t i = 0; i < count; i++)
        printf("%s%s", i ? ", " : "", names[i]);
    putchar('\n');
}

/* What is true of a plan. */
typedef struct plan_fact {
    const char *plan, *text;
    etch_location location;
} plan_fact;

/* One line for what several plans have in common, with the place of the first. `joint`: "by", "of". */
static void print_facts(const char *label, const char *joint, const plan_fact *facts, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        size_t before = 0, same = 0;
        for (size_t k = 0; k < count; k++) {
            const bool equal = strcmp(facts[k].text, facts[i].text) == 0;
            before += equal && k < i;
            same += equal;
        }
        if (before > 0)
            continue;
        printf("%-9s %s   %s plan%s ", label, facts[i].text, joint, same > 1 ? "s" : "");
        for (size_t k = i; k < count; k++)
            if (strcmp(facts[k].text, facts[i].text) == 0)
                printf("%s, ", facts[k].plan);
        printf("%s:%u\n", facts[i].location.path, (unsigned)facts[i].location.line);
    }
}

static bool print_plans(const etch_check_report *report)
{
    const size_t most = report->requirement_count + report->absence_count + report->unsuited_count + 1;
    plan_fact *facts = calloc(most, sizeof *facts);
    if (!facts)
        return false;
    for (size_t i = 0; i < report->requirement_count; i++)
        facts[i] = (plan_fact){report->requirements[i].plan, report->requirements[i].text,
                               report->requirements[i].location};
    print_facts("requires", "by", facts, report->requirement_count);
    for (size_t i = 0; i < report->absence_count; i++)
        facts[i] =
            (plan_fact){report->absences[i].plan, report->absences[i].text, report->absences[i].location};
    print_facts("lacks", "of", facts, report->absence_count);
    for (size_t i = 0; i < report->unsuited_count; i++)
        facts[i] =
            (plan_fact){report->unsuited[i].plan, report->unsuited[i].text, report->unsuited[i].location};
    print_facts("unsuited", "for", facts, report->unsuited_count);
    free(facts);
    return true;
}

static bool print_plain(const etch_check_report *report)
{
    print_names("modules", report->modules, report->module_count);
    print_names("models", report->models, report->model_count);
    print_names("configs", report->configs, report->config_count);
    print_names("plans", report->plans, report->plan_count);
    for (size_t i = 0; i < report->plan_file_count; i++)
        cli_print_field("takes", "%zu of %zu plan%s of %s", report->plan_files[i].taken,
                        report->plan_files[i].declared, report->plan_files[i].declared == 1 ? "" : "s",
                        report->plan_files[i].file);
    if (!print_plans(report))
        return false;
    for (size_t i = 0; i < report->verdict_count; i++) {
        const etch_verdict *v = &report->verdicts[i];
        cli_print_field(etch_truth_name(v->truth), "%s   %s:%u", v->text, v->location.path,
                        (unsigned)v->location.line);
    }
    return true;
}

static json_t *names_json(const char *const *names, size_t count, bool *failed)
{
    json_t *array = json_array();
    for (size_t i = 0; i < count; i++)
        cli_json_append(array, cli_json_text(names[i]), failed);
    return array;
}

/* NULL where there are none. */
static json_t *unsuited_json(const etch_check_report *report, bool *failed)
{
    json_t *array = report->unsuited_count > 0 ? json_array() : NULL;
    for (size_t i = 0; i < report->unsuited_count; i++) {
        json_t *row = json_object();
        cli_json_set(row, "plan", cli_json_text(report->unsuited[i].plan), failed);
        cli_json_set(row, "because", cli_json_text(report->unsuited[i].text), failed);
        cli_json_set(row, "location", cli_json_location(&report->unsuited[i].location, failed), failed);
        cli_json_append(array, row, failed);
    }
    return array;
}

static json_t *takes_json(const etch_check_report *report, bool *failed)
{
    json_t *array = json_array();
    for (size_t i = 0; i < report->plan_file_count; i++) {
        json_t *row = json_object();
        cli_json_set(row, "file", cli_json_text(report->plan_files[i].file), failed);
        cli_json_set(row, "taken", json_integer((json_int_t)report->plan_files[i].taken), failed);
        cli_json_set(row, "declared", json_integer((json_int_t)report->plan_files[i].declared), failed);
        cli_json_append(array, row, failed);
    }
    return array;
}

static bool print_json(const etch_check_report *report)
{
    bool failed = false;
    json_t *root = json_object(), *requirements = json_array(), *absences = json_array(),
           *verdicts = json_array();
    json_t *unsuited = unsuited_json(report, &failed);
    for (size_t i = 0; i < report->requirement_count; i++) {
        json_t *row = json_object();
        cli_json_set(row, "plan", cli_json_text(report->requirements[i].plan), &failed);
        cli_json_set(row, "requires", cli_json_text(report->requirements[i].text), &failed);
        cli_json_set(row, "location", cli_json_location(&report->requirements[i].location, &failed), &failed);
        cli_json_append(requirements, row, &failed);
    }
    for (size_t i = 0; i < report->absence_count; i++) {
        json_t *row = json_object();
        cli_json_set(row, "plan", cli_json_text(report->absences[i].plan), &failed);
        cli_json_set(row, "lacks", cli_json_text(report->absences[i].text), &failed);
        cli_json_set(row, "location", cli_json_location(&report->absences[i].location, &failed), &failed);
        cli_json_append(absences, row, &failed);
    }
    for (size_t i = 0; i < report->verdict_count; i++) {
        json_t *row = json_object();
        cli_json_set(row, "verdict", cli_json_text(etch_truth_name(report->verdicts[i].truth)), &failed);
        cli_json_set(row, "check", cli_json_text(report->verdicts[i].text), &failed);
        cli_json_set(row, "location", cli_json_location(&report->verdicts[i].location, &failed), &failed);
        cli_json_append(verdicts, row, &failed);
    }
    cli_json_set(root, "schema", json_string("etch-check/1"), &failed);
    cli_json_set(root, "modules", names_json(report->modules, report->module_count, &failed), &failed);
    cli_json_set(root, "models", names_json(report->models, report->model_count, &failed), &failed);
    cli_json_set(root, "configs", names_json(report->configs, report->config_count, &failed), &failed);
    cli_json_set(root, "plans", names_json(report->plans, report->plan_count, &failed), &failed);
    cli_json_set(root, "takes", takes_json(report, &failed), &failed);
    cli_json_set(root, "requires", requirements, &failed);
    cli_json_set(root, "lacks", absences, &failed);
    if (unsuited)
        cli_json_set(root, "unsuited", unsuited, &failed);
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
        if (!(arguments->format == ETCH_PLAIN ? print_plain(report) : print_json(report)))
            status = ETCH_ENOMEM;
    }
    return cli_close(arguments, session, status);
}
