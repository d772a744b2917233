/* Answers to --why: the terms of a formula, and what they come from. */
#include "cli_int.h"

#include <stdio.h>
#include <string.h>

static const char *const columns[] = {"op", "module", "phase"};
enum { COLUMN_COUNT = sizeof columns / sizeof *columns };

static const char *cell(const etch_reason *reason, int column)
{
    const char *phase = reason->phased ? etch_phase_name(reason->phase) : NULL;
    const char *texts[COLUMN_COUNT] = {reason->op, reason->module, phase};
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
}

static int place_length(const etch_location *at)
{
    return at->path ? snprintf(NULL, 0, "%s:%u:%u", at->path, (unsigned)at->line, (unsigned)at->column) : 0;
}

/* The lines of the plan after a collective, in a column of their own. */
static void print_lines(const etch_reason *reason, int place_width)
{
    const char *before = "";
    const int missing = place_width - place_length(&reason->location);
    for (size_t i = 0; i < reason->why_count; i++) {
        const etch_phrase_view *w = &reason->why[i];
        if (!w->of_plan || !w->location.path)
            continue;
        printf("%*s%s%s, %s:%u", *before ? 0 : missing + 2, "", before, w->text, w->location.path,
               (unsigned)w->location.line);
        before = "; ";
    }
}

static void print_reason(const etch_reason *reason, int amount_width, const int *widths, int place_width)
{
    printf("  %-*s", amount_width, reason->amount.text);
    for (int i = 0; i < COLUMN_COUNT; i++)
        if (widths[i] > 0)
            printf("  %-*s", widths[i], cell(reason, i));
    print_place(&reason->location);
    print_lines(reason, place_width);
    putchar('\n');
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
    int amount_width = 0, place_width = 0, widths[COLUMN_COUNT] = {0};
    for (size_t i = 0; i < answer->term_count; i++)
        for (size_t k = 0; k < answer->terms[i].reason_count; k++) {
            const etch_reason *reason = &answer->terms[i].reasons[k];
            widen(&amount_width, reason->amount.text);
            if (place_length(&reason->location) > place_width)
                place_width = place_length(&reason->location);
            for (int column = 0; column < COLUMN_COUNT; column++)
                widen(&widths[column], cell(reason, column));
        }
    for (size_t i = 0; i < answer->term_count; i++) {
        print_amount(&answer->terms[i].amount, human);
        for (size_t k = 0; k < answer->terms[i].reason_count; k++)
            print_reason(&answer->terms[i].reasons[k], amount_width, widths, place_width);
    }
    printf("total  ");
    print_amount(&answer->amount, human);
}

json_t *cli_json_phrases(const etch_phrase_view *why, size_t count, bool *failed)
{
    json_t *list = json_array();
    for (size_t i = 0; i < count; i++) {
        json_t *phrase = json_object();
        cli_json_set(phrase, "part", cli_json_text(etch_phrase_role_name(why[i].role)), failed);
        cli_json_set(phrase, "text", cli_json_text(why[i].text), failed);
        cli_json_set(phrase, "of_plan", json_boolean(why[i].of_plan), failed);
        cli_json_set(phrase, "location", cli_json_location(&why[i].location, failed), failed);
        cli_json_append(list, phrase, failed);
    }
    return list;
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
    if (reason->why)
        cli_json_set(object, "why", cli_json_phrases(reason->why, reason->why_count, failed), failed);
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
