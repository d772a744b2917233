/* When the rows of memory over time begin: both follow the order of a stage, so that a computation is in the
 * first row, from the one before it on, that has its microbatch, direction and iteration. */
#include "timeline_int.h"

#include <stdlib.h>
#include <string.h>

const etch_memory_stage *cli_memory_stage(const etch_memory_report *memory,
                                          const etch_simulation_class *class)
{
    for (size_t i = 0; i < memory->stage_count; i++)
        if (memory->stages[i].stage == class->stage)
            return &memory->stages[i];
    return NULL;
}

static bool is_of_slot(const etch_simulation_node *node, const etch_memory_slot *slot)
{
    const bool back = strcmp(node->phase, "forward") != 0;
    return (uint64_t)node->microbatch == slot->microbatch && back == (slot->kind != ETCH_ACTION_FORWARD);
}

/* Does the row have the node? The second half of backward is one row. */
static bool has(const etch_memory_stage *stage, const etch_memory_row *row, const etch_simulation_node *node)
{
    const etch_memory_slot *slot = &stage->slots[row->slot];
    if (!is_of_slot(node, slot))
        return false;
    if (slot->kind == ETCH_ACTION_WEIGHT_GRADIENTS)
        return true;
    return row->loop ? node->layer >= 0 && (uint64_t)node->layer == row->iteration : node->layer < 0;
}

/* Is it of a row up to this one whose slot runs together with that of this one? Its turn has come again. */
static bool is_of_turn_before(const etch_memory_stage *stage, size_t row, const etch_simulation_node *node)
{
    size_t first = stage->rows[row].slot;
    while (stage->slots[first].overlaps)
        first--;
    while (row > 0 && stage->rows[row - 1].slot >= first)
        if (has(stage, &stage->rows[--row], node))
            return true;
    return false;
}

cli_memory_point *cli_memory_points(const etch_simulation_class *class, const etch_memory_stage *stage,
                                    size_t *count)
{
    cli_memory_point *points = calloc(stage->row_count + 1, sizeof *points);
    size_t row = 0;
    bool begun = false;
    *count = 0;
    for (uint32_t i = 0; points && i < class->node_count; i++) {
        const etch_simulation_node *node = &class->nodes[i];
        if (node->work != ETCH_STEP_COMPUTES || node->microbatch < 0)
            continue;
        size_t at = row;
        if (begun && is_of_turn_before(stage, row, node))
            continue;
        while (at < stage->row_count && !has(stage, &stage->rows[at], node))
            at++;
        if (at == stage->row_count || (begun && at == row))
            continue;
        points[(*count)++] = (cli_memory_point){class->begins[i], &stage->rows[at]};
        row = at;
        begun = true;
    }
    return points;
}
