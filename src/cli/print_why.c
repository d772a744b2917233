/* Answers to --why: the terms of a formula, and what they come from. */
#include "cli_int.h"

#include <stdio.h>
#include <string.h>

static const char *const columns[] = {"op", "module", "phase"};
enum { COLUMN_COUNT = sizeof columns / sizeof *columns };

static const char *cell(const etch_reason *reason, int column)
{
    const char *texts[COLUMN_COUNT] = {reason->op, reason->module, reason->phase};
    return texts[column] ? texts[column] : "";
}

static void widen(int *width, const char *text)
{
    int length = (int)strlen(text);
    if (length > *width)
        *width = length;
}

static void print_place(const etch_location *at)
{
    if (at->path)
        printf("  %s:%u:%u", at->path, (unsigned)at->line, (unsigned)at->column);
    putchar('\n');
}

static void print_reason(const etch_reason *reason, int amount_width, const int *widths)
{
    printf("  %-*s", amount_width, reason->amount.text);
    for (int i = 0; i < COLUMN_COUNT; i++)
        if (widths[i] > 0)
            printf("  %-*s", widths[i], cell(reason, i));
    print_place(&reason->location);
}

static void print_amount(const etch_amount *amount, bool human)
{
    printf("%s", amount->text);
    if (human && amount->human)
        printf("  (%s)", amount->human);
    putchar('\n');
}

void cli_print_why(const etch_answer *answer, bool human)
{
    int amount_width = 0, widths[COLUMN_COUNT] = {0};
    for (size_t i = 0; i < answer->term_count; i++)
        for (size_t k = 0; k < answer->terms[i].reason_count; k++) {
            const etch_reason *reason = &answer->terms[i].reasons[k];
            widen(&amount_width, reason->amount.text);
            for (int column = 0; column < COLUMN_COUNT; column++)
                widen(&widths[column], cell(reason, column));
        }
    for (size_t i = 0; i < answer->term_count; i++) {
        print_amount(&answer->terms[i].amount, human);
        for (size_t k = 0; k < answer->terms[i].reason_count; k++)
            print_reason(&answer->terms[i].reasons[k], amount_width, widths);
    }
    printf("total  ");
    print_amount(&answer->amount, human);
}

static json_t *json_reason(const etch_reason *reason, bool human, bool *failed)
{
    json_t *object = json_object();
    cli_json_amount(object, &reason->amount, human, failed);
    for (int i = 0; i < COLUMN_COUNT; i++)
        cli_json_set(object, columns[i], *cell(reason, i) ? cli_json_text(cell(reason, i)) : json_null(),
                     failed);
    cli_json_set(object, "tensor", cli_json_text(reason->tensor), failed);
    cli_json_set(object, "location", cli_json_location(&reason->location, failed), failed);
    return object;
}

json_t *cli_json_why(const etch_answer *answer, bool human, bool *failed)
{
    json_t *terms = json_array();
    for (size_t i = 0; i < answer->term_count; i++) {
        json_t *term = json_object(), *from = json_array();
        cli_json_amount(term, &answer->terms[i].amount, human, failed);
        for (size_t k = 0; k < answer->terms[i].reason_count; k++)
            cli_json_append(from, json_reason(&answer->terms[i].reasons[k], human, failed), failed);
        cli_json_set(term, "from", from, failed);
        cli_json_append(terms, term, failed);
    }
    return terms;
}
