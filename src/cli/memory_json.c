/* The JSON tree of memory over time: docs/cli.md. */
#include "graph_int.h"

static json_t *number_json(uint64_t number)
{
    return json_integer((json_int_t)number);
}

static json_t *row_json(const etch_memory_row *row, bool *failed)
{
    json_t *object = json_object(), *bytes = json_array();
    for (int k = 0; k < ETCH_MEMORY_KINDS; k++)
        cli_json_append(bytes, number_json(row->bytes[k]), failed);
    cli_json_set(object, "slot", number_json(row->slot), failed);
    cli_json_set(object, "loop", cli_json_text(row->loop), failed);
    cli_json_set(object, "iteration", row->loop ? number_json(row->iteration) : json_null(), failed);
    cli_json_set(object, "bytes", bytes, failed);
    cli_json_set(object, "total", number_json(row->total), failed);
    return object;
}

static json_t *slot_json(const etch_memory_slot *slot, bool *failed)
{
    json_t *object = json_object();
    cli_json_set(object, "direction", json_string(etch_action_kind_name(slot->kind)), failed);
    cli_json_set(object, "microbatch", number_json(slot->microbatch), failed);
    cli_json_set(object, "chunk", number_json(slot->chunk), failed);
    if (slot->overlaps)
        cli_json_set(object, "overlaps", json_true(), failed);
    return object;
}

static json_t *item_json(const etch_memory_item *item, bool *failed)
{
    json_t *object = json_object();
    cli_json_set(object, "tensor", cli_json_text(item->tensor), failed);
    cli_json_set(object, "module", cli_json_text(item->module), failed);
    cli_json_set(object, "kind", json_string(etch_memory_kind_name(item->kind)), failed);
    cli_json_set(object, "bytes", number_json(item->bytes), failed);
    cli_json_set(object, "location", cli_json_location(&item->location, failed), failed);
    return object;
}

static json_t *stage_json(const etch_memory_stage *stage, bool *failed)
{
    json_t *object = json_object(), *slots = json_array(), *rows = json_array(), *items = json_array();
    for (size_t i = 0; i < stage->slot_count; i++)
        cli_json_append(slots, slot_json(&stage->slots[i], failed), failed);
    for (size_t i = 0; i < stage->row_count; i++)
        cli_json_append(rows, row_json(&stage->rows[i], failed), failed);
    for (size_t i = 0; i < stage->item_count; i++)
        cli_json_append(items, item_json(&stage->items[i], failed), failed);
    cli_json_set(object, "stage", number_json(stage->stage), failed);
    cli_json_set(object, "slots", slots, failed);
    cli_json_set(object, "rows", rows, failed);
    cli_json_set(object, "peak", number_json(stage->peak), failed);
    cli_json_set(object, "alive", items, failed);
    return object;
}

json_t *cli_memory_tree(const etch_memory_report *report)
{
    bool failed = false;
    json_t *root = json_object(), *kinds = json_array(), *stages = json_array();
    for (int k = 0; k < ETCH_MEMORY_KINDS; k++)
        cli_json_append(kinds, json_string(etch_memory_kind_name((etch_memory_kind)k)), &failed);
    for (size_t i = 0; i < report->stage_count; i++)
        cli_json_append(stages, stage_json(&report->stages[i], &failed), &failed);
    cli_json_set(root, "schema", json_string("etch-memory/1"), &failed);
    cli_json_set(root, "model", cli_json_text(report->model), &failed);
    cli_json_set(root, "config", cli_json_text(report->config), &failed);
    if (report->run)
        cli_json_set(root, "run", cli_json_text(report->run), &failed);
    cli_json_set(root, "plan", cli_json_text(report->plan), &failed);
    cli_json_set(root, "kinds", kinds, &failed);
    cli_json_set(root, "heaviest", number_json(report->heaviest), &failed);
    cli_json_set(root, "stages", stages, &failed);
    return cli_tree_end(root, failed);
}
