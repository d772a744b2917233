/* etch show: the graph of a model, what a plan makes of it, and pictures of pipelines. */
#include "graph_int.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- pipeline --------------------------------------------------------------------------------------- */

enum { NAME_LENGTH = 48 };

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
    char name[NAME_LENGTH], text[NAME_LENGTH + 1];
    uint64_t now = 0;
    int spaces = 0;
    for (size_t i = 0; i < stage->slot_count; i++) {
        const etch_pipeline_slot *slot = &stage->slots[i];
        print_waiting(slot->start - now, width, &spaces);
        name_slot(report, slot, name);
        snprintf(text, sizeof text, "%s%s", name, mark_of(slot));
        print_cell(text, (int)(slot->end - slot->start) * width, &spaces);
        now = slot->end;
    }
    print_waiting(report->time - now, width, &spaces);
    putchar('\n');
}

static void print_order(const etch_pipeline_report *report, const etch_pipeline_stage *stage)
{
    char name[NAME_LENGTH];
    for (size_t i = 0; i < stage->slot_count; i++) {
        name_slot(report, &stage->slots[i], name);
        printf("%s%s%s", i ? " " : "", name, mark_of(&stage->slots[i]));
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

static void print_pipeline_plain(const etch_pipeline_report *report)
{
    static const char in_flight[] = "in flight";
    const int label = number_width(report->stage_count - 1), unit = unit_width(report);
    print_summary(report);
    printf("\nTime to the right: forward 1, %s, waiting (.); %" PRIu64 " in all.\n",
           has_halves(report) ? "gradients of inputs (') 1 and of weights (\") 1" : "backward (') 2",
           report->time);
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

static json_t *number_json(uint64_t number)
{
    return json_integer((json_int_t)number);
}

static json_t *slot_json(const etch_pipeline_slot *slot, bool *failed)
{
    json_t *row = json_object();
    cli_json_set(row, "direction", json_string(etch_action_kind_name(slot->kind)), failed);
    cli_json_set(row, "microbatch", number_json(slot->microbatch), failed);
    cli_json_set(row, "chunk", number_json(slot->chunk), failed);
    cli_json_set(row, "start", number_json(slot->start), failed);
    cli_json_set(row, "end", number_json(slot->end), failed);
    return row;
}

static json_t *stage_json(const etch_pipeline_stage *stage, bool *failed)
{
    json_t *row = json_object(), *slots = json_array();
    for (size_t i = 0; i < stage->slot_count; i++)
        cli_json_append(slots, slot_json(&stage->slots[i], failed), failed);
    cli_json_set(row, "in_flight", number_json(stage->in_flight), failed);
    cli_json_set(row, "slots", slots, failed);
    return row;
}

static bool print_pipeline_json(const etch_pipeline_report *report)
{
    bool failed = false;
    json_t *root = json_object(), *stages = json_array();
    for (size_t i = 0; i < report->stage_count; i++)
        cli_json_append(stages, stage_json(&report->stages[i], &failed), &failed);
    cli_json_set(root, "schema", json_string("etch-show-pipeline/1"), &failed);
    cli_json_set(root, "model", cli_json_text(report->model), &failed);
    cli_json_set(root, "config", cli_json_text(report->config), &failed);
    cli_json_set(root, "plan", cli_json_text(report->plan), &failed);
    cli_json_set(root, "schedule", cli_json_text(etch_schedule_kind_name(report->schedule)), &failed);
    cli_json_set(root, "chunks", number_json(report->chunks), &failed);
    cli_json_set(root, "microbatches", number_json(report->microbatches), &failed);
    cli_json_set(root, "time", number_json(report->time), &failed);
    cli_json_set(root, "bubble", cli_json_text(report->bubble), &failed);
    cli_json_set(root, "bubble_formula", cli_json_text(report->bubble_formula), &failed);
    cli_json_set(root, "in_flight_formula", cli_json_text(report->in_flight_formula), &failed);
    cli_json_set(root, "stages", stages, &failed);
    return cli_print_json(root) && !failed;
}

static etch_status show_pipeline(const cli_arguments *arguments, etch_session *session)
{
    const etch_pipeline_report *report;
    const etch_status status = etch_session_pipeline(session, &report);
    if (status != ETCH_OK)
        return status;
    if (arguments->format == ETCH_PLAIN)
        print_pipeline_plain(report);
    else if (!print_pipeline_json(report))
        return ETCH_ENOMEM;
    return ETCH_OK;
}

/* ---- graph ------------------------------------------------------------------------------------------ */

static etch_view_options view_options(const cli_arguments *arguments)
{
    return (etch_view_options){.struct_size = sizeof(etch_view_options),
                               .part = arguments->word_count > 1 ? arguments->words[1] : NULL};
}

static etch_status show_graph(const cli_arguments *arguments, etch_session *session)
{
    const etch_graph_report *report;
    const etch_view_options options = view_options(arguments);
    const etch_status status = etch_session_graph(session, &options, &report);
    if (status != ETCH_OK)
        return status;
    const bool fine = arguments->dot                    ? cli_print_graph_dot(report)
                      : arguments->format == ETCH_PLAIN ? cli_print_graph_text(report)
                                                        : cli_print_graph_json(report);
    return fine ? ETCH_OK : ETCH_ENOMEM;
}

/* ---- plan ------------------------------------------------------------------------------------------- */

static etch_status show_plan(const cli_arguments *arguments, etch_session *session)
{
    const etch_placement_report *report;
    const etch_view_options options = view_options(arguments);
    const etch_status status = etch_session_placement(session, &options, &report);
    if (status != ETCH_OK)
        return status;
    const bool fine = arguments->dot                    ? cli_print_plan_dot(report)
                      : arguments->format == ETCH_PLAIN ? cli_print_plan_text(report)
                                                        : cli_print_plan_json(report);
    return fine ? ETCH_OK : ETCH_ENOMEM;
}

/* ---- passes ----------------------------------------------------------------------------------------- */

static etch_status show_pass(const cli_arguments *arguments, etch_session *session)
{
    const char *text;
    const etch_status status = etch_session_pass(session, arguments->pass, &text);
    if (status == ETCH_OK)
        fputs(text, stdout);
    return status;
}

/* ---- views ------------------------------------------------------------------------------------------ */

static etch_status (*const views[CLI_VIEW_COUNT])(const cli_arguments *arguments, etch_session *session) = {
    [CLI_VIEW_GRAPH] = show_graph,
    [CLI_VIEW_PIPELINE] = show_pipeline,
    [CLI_VIEW_PLAN] = show_plan,
    [CLI_VIEW_PASS] = show_pass,
};

cli_exit cli_show(const cli_arguments *arguments)
{
    if (arguments->view == CLI_VIEW_PIPELINE && (arguments->word_count > 1 || arguments->dot))
        return cli_usage_error(arguments->command, arguments->dot
                                                       ? "--pipeline has no --format dot"
                                                       : "--pipeline is of a whole plan: no module");
    if (arguments->view == CLI_VIEW_PASS &&
        (arguments->word_count > 1 || arguments->dot || arguments->format != ETCH_PLAIN))
        return cli_usage_error(arguments->command, arguments->word_count > 1
                                                       ? "--after is of a whole model: no module"
                                                       : "--after has --format plain only");
    const bool of_plan = arguments->view == CLI_VIEW_GRAPH && arguments->session.plan;
    if (arguments->session.stage && !of_plan)
        return cli_usage_error(arguments->command, "--stage is of what --plan shows");
    etch_status status;
    etch_session *session = cli_open(arguments, &status);
    if (status == ETCH_OK)
        status = views[of_plan ? CLI_VIEW_PLAN : arguments->view](arguments, session);
    return cli_close(arguments, session, status);
}
