/* The JSON tree of a pipeline: docs/show-json.md. */
#include "graph_int.h"

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
    cli_json_set(row, "link", number_json(slot->link), failed);
    cli_json_set(row, "start", number_json(slot->start), failed);
    cli_json_set(row, "end", number_json(slot->end), failed);
    if (slot->overlaps)
        cli_json_set(row, "overlaps", json_true(), failed);
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

json_t *cli_pipeline_tree(const etch_pipeline_report *report)
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
    return cli_tree_end(root, failed);
}
