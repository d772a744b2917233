/* The order of a pipeline for people: a picture of its stages over time, and what each does in turn. */
#include "graph_int.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { NAME_LENGTH = 48, SLOT_LENGTH = 3 * NAME_LENGTH };

/* "3", and "3.1" where stages have several chunks: microbatch 3 in chunk 1. */
static void name_slot(const etch_pipeline_report *report, const etch_pipeline_slot *slot,
                      char name[NAME_LENGTH])
{
    if (report->chunks > 1)
        snprintf(name, NAME_LENGTH, "%" PRIu64 ".%" PRIu32, slot->microbatch, slot->chunk);
    else
        snprintf(name, NAME_LENGTH, "%" PRIu64, slot->microbatch);
}

/* After the name of a slot: ' of backward or of its first half, " of its second. */
static const char *mark_of(const etch_pipeline_slot *slot)
{
    return slot->kind == ETCH_ACTION_FORWARD ? "" : slot->kind == ETCH_ACTION_WEIGHT_GRADIENTS ? "\"" : "'";
}

/* How many actions, from this one on, run together. */
static size_t together(const etch_pipeline_slot *slots, size_t most)
{
    size_t count = 1;
    while (count < most && slots[count].overlaps)
        count++;
    return count;
}

/* "3'", "3&1'" of actions that run together; both halves of microbatch 1 are 1'". */
static void print_slot(const etch_pipeline_report *report, const etch_pipeline_slot *slots, size_t count,
                       char text[SLOT_LENGTH])
{
    char name[NAME_LENGTH];
    size_t length = 0;
    for (size_t i = 0; i < count; i++) {
        const bool is_second = i > 0 && slots[i - 1].kind == ETCH_ACTION_INPUT_GRADIENTS;
        name_slot(report, &slots[i], name);
        length += (size_t)snprintf(text + length, SLOT_LENGTH - length, "%s%s%s", i && !is_second ? "&" : "",
                                   is_second ? "" : name, mark_of(&slots[i]));
    }
}

static bool has_overlaps(const etch_pipeline_report *report)
{
    for (size_t i = 0; i < report->stages[0].slot_count; i++)
        if (report->stages[0].slots[i].overlaps && report->stages[0].slots[i - 1].kind == ETCH_ACTION_FORWARD)
            return true;
    return false;
}

static bool has_halves(const etch_pipeline_report *report)
{
    for (size_t i = 0; i < report->stages[0].slot_count; i++)
        if (report->stages[0].slots[i].kind == ETCH_ACTION_WEIGHT_GRADIENTS)
            return true;
    return false;
}

/* Characters of one unit of time: the longest name, the mark of a backward slot, a space. */
static int unit_width(const etch_pipeline_report *report)
{
    const etch_pipeline_slot last = {.microbatch = report->microbatches - 1, .chunk = report->chunks - 1};
    char name[NAME_LENGTH];
    name_slot(report, &last, name);
    return (int)strlen(name) + (report->trains ? 2 : 1);
}

/* Text in a cell of the row; the spaces after it are printed before the next one. */
static void print_cell(const char *text, int width, int *spaces)
{
    printf("%*s%s", *spaces, "", text);
    *spaces = width - (int)strlen(text);
}

static void print_waiting(uint64_t units, int width, int *spaces)
{
    for (uint64_t i = 0; i < units; i++)
        print_cell(".", width, spaces);
}

static void print_row(const etch_pipeline_report *report, const etch_pipeline_stage *stage, int width)
{
    char text[SLOT_LENGTH];
    uint64_t now = 0;
    int spaces = 0;
    for (size_t i = 0, count; i < stage->slot_count; i += count) {
        const etch_pipeline_slot *slot = &stage->slots[i];
        count = together(slot, stage->slot_count - i);
        print_waiting(slot->start - now, width, &spaces);
        print_slot(report, slot, count, text);
        print_cell(text, (int)(slot->end - slot->start) * width, &spaces);
        now = slot->end;
    }
    print_waiting(report->time - now, width, &spaces);
    putchar('\n');
}

static void print_order(const etch_pipeline_report *report, const etch_pipeline_stage *stage)
{
    char text[SLOT_LENGTH];
    for (size_t i = 0, count; i < stage->slot_count; i += count) {
        count = together(&stage->slots[i], stage->slot_count - i);
        print_slot(report, &stage->slots[i], count, text);
        printf("%s%s", i ? " " : "", text);
    }
    putchar('\n');
}

static int number_width(uint64_t number)
{
    return snprintf(NULL, 0, "%" PRIu64, number);
}

static void print_summary(const etch_pipeline_report *report)
{
    cli_print_field("model", "%s", report->model);
    if (report->config)
        cli_print_field("config", "%s", report->config);
    cli_print_field("plan", "%s", report->plan);
    if (report->chunks > 1)
        cli_print_field("schedule", "%s, %" PRIu32 " chunks in each stage",
                        etch_schedule_kind_name(report->schedule), report->chunks);
    else
        cli_print_field("schedule", "%s", etch_schedule_kind_name(report->schedule));
    cli_print_field("stages", "%zu", report->stage_count);
    cli_print_field("micro", "%" PRIu64, report->microbatches);
    if (report->bubble_formula && strcmp(report->bubble, report->bubble_formula) != 0)
        cli_print_field("bubble", "%s = %s", report->bubble, report->bubble_formula);
    else
        cli_print_field("bubble", "%s", report->bubble);
    if (report->in_flight_formula)
        cli_print_field("in flight", "%s", report->in_flight_formula);
}

void cli_print_pipeline_text(const etch_pipeline_report *report)
{
    static const char in_flight[] = "in flight";
    const int label = number_width(report->stage_count - 1), unit = unit_width(report);
    print_summary(report);
    printf("\nTime to the right: forward 1, %s%s, waiting (.); %" PRIu64 " in all.\n",
           has_halves(report) ? "gradients of inputs (') 1 and of weights (\") 1" : "backward (') 2",
           has_overlaps(report) ? ", of two that overlap (&) both" : "", report->time);
    for (size_t i = 0; i < report->stage_count; i++) {
        printf("stage %-*zu  ", label, i);
        print_row(report, &report->stages[i], unit);
    }
    printf("\nThe order of each stage%s\n",
           report->trains ? ", and how many microbatches it has in flight at most:" : ":");
    for (size_t i = 0; i < report->stage_count; i++) {
        printf("stage %-*zu  ", label, i);
        if (report->trains)
            printf("%s %-*" PRIu64 "  ", in_flight, number_width(report->stages[0].in_flight),
                   report->stages[i].in_flight);
        print_order(report, &report->stages[i]);
    }
}
