/* etch query: one exact number or formula, or a table that adds up to it. */
#include "cli_int.h"

#include <stdio.h>
#include <string.h>

/* Columns of a table: wide enough for everything in them. */
typedef struct widths {
    int label, value;
    /* all values are numbers: align them to the right */
    bool numbers;
} widths;

static void widen(int *width, const char *text)
{
    int length = (int)strlen(text);
    if (length > *width)
        *width = length;
}

static void print_amount(const etch_amount *amount, const widths *w, bool human)
{
    const bool says = human && amount->human;
    const int width = w->numbers ? w->value : says ? -w->value : 0;
    printf("%*s", width, amount->text);
    if (says)
        printf("  (%s)", amount->human);
    putchar('\n');
}

static void print_plain(const etch_answer *answer, bool human)
{
    const char *total = answer->sum == ETCH_SUM_GREATEST ? NULL : etch_sum_kind_name(answer->sum);
    if (answer->terms) {
        cli_print_why(answer, human);
        return;
    }
    widths w = {.numbers = answer->amount.is_number};
    if (answer->by == ETCH_BY_NOTHING) {
        print_amount(&answer->amount, &w, human);
        return;
    }
    if (total) {
        widen(&w.label, total);
        widen(&w.value, answer->amount.text);
    }
    for (size_t i = 0; i < answer->row_count; i++) {
        widen(&w.label, answer->rows[i].label);
        widen(&w.value, answer->rows[i].amount.text);
        w.numbers = w.numbers && answer->rows[i].amount.is_number;
    }
    for (size_t i = 0; i < answer->row_count; i++) {
        printf("%-*s  ", w.label, answer->rows[i].label);
        print_amount(&answer->rows[i].amount, &w, human);
    }
    if (!total)
        return;
    printf("%-*s  ", w.label, total);
    print_amount(&answer->amount, &w, human);
}

static bool print_json(const etch_answer *answer, bool human)
{
    bool failed = false;
    json_t *root = json_object();
    cli_json_set(root, "schema", json_string("etch-query/1"), &failed);
    cli_json_set(root, "query", cli_json_text(answer->query), &failed);
    cli_json_amount(root, &answer->amount, human, &failed);
    cli_json_set(root, "unit", cli_json_text(etch_unit_name(answer->unit)), &failed);
    if (answer->count)
        cli_json_set(root, "count", cli_json_text(answer->count), &failed);
    if (answer->by != ETCH_BY_NOTHING) {
        json_t *rows = json_array();
        for (size_t i = 0; i < answer->row_count; i++) {
            json_t *row = json_object();
            cli_json_set(row, "label", cli_json_text(answer->rows[i].label), &failed);
            cli_json_amount(row, &answer->rows[i].amount, human, &failed);
            cli_json_append(rows, row, &failed);
        }
        cli_json_set(root, "by", cli_json_text(etch_breakdown_name(answer->by)), &failed);
        cli_json_set(root, "rows", rows, &failed);
    }
    if (answer->terms)
        cli_json_set(root, "terms", cli_json_why(answer, human, &failed), &failed);
    return cli_print_json(root) && !failed;
}

cli_exit cli_query(const cli_arguments *arguments)
{
    etch_status status = ETCH_OK;
    etch_session *machine = NULL;
    const etch_answer *answer;
    etch_query_options options = arguments->query;
    if (arguments->machine)
        options.machine = machine = cli_open_machine(arguments, &status);
    if (status != ETCH_OK)
        return cli_close(arguments, machine, status);
    etch_session *session = cli_open(arguments, &status);
    options.struct_size = sizeof options;
    options.notation = arguments->format;
    options.rows_alone = arguments->format != ETCH_JSON;
    if (status == ETCH_OK)
        status = etch_session_query(session, arguments->words[1], &options, &answer);
    if (status == ETCH_OK) {
        if (arguments->format != ETCH_JSON)
            print_plain(answer, arguments->human);
        else if (!print_json(answer, arguments->human))
            status = ETCH_ENOMEM;
    }
    etch_session_close(machine);
    return cli_close(arguments, session, status);
}
