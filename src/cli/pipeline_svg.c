/* The order of a pipeline as a picture to scale: a row for each stage, time to the right, and what one stage
 * sends another as lines between the slots. Of the tree alone, and the same bytes for the same tree. */
#include "tree_read.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { UNIT = 28, ROW = 36, SLOT = 22, LEFT = 64, TOP = 56, MARGIN = 16 };

static const char *const kinds[ETCH_ACTION_COUNT] = {[ETCH_ACTION_FORWARD] = "f",
                                                     [ETCH_ACTION_BACKWARD] = "b",
                                                     [ETCH_ACTION_INPUT_GRADIENTS] = "i",
                                                     [ETCH_ACTION_WEIGHT_GRADIENTS] = "w"};
static const char *const names[ETCH_ACTION_COUNT] = {[ETCH_ACTION_FORWARD] = "forward",
                                                     [ETCH_ACTION_BACKWARD] = "backward",
                                                     [ETCH_ACTION_INPUT_GRADIENTS] = "gradients of inputs",
                                                     [ETCH_ACTION_WEIGHT_GRADIENTS] = "gradients of weights"};

static const char style[] =
    "text{font:11px sans-serif;fill:#222}.n{text-anchor:middle}rect{stroke:#fff}.f{fill:#9ecae1}"
    ".b,.i{fill:#fdae6b}.w{fill:#a1d99b}.m{stroke:#756bb1;stroke-width:1.2}.r{fill:#f0f0f0}";

static uint64_t x_at(uint64_t time)
{
    return LEFT + time * UNIT;
}

static uint64_t y_at(size_t stage)
{
    return TOP + stage * ROW;
}

static bool has_kind(const etch_pipeline_report *report, etch_action_kind kind)
{
    for (size_t i = 0; i < report->stages[0].slot_count; i++)
        if (report->stages[0].slots[i].kind == kind)
            return true;
    return false;
}

/* What the colors mean, of those that there are. */
static void print_legend(const etch_pipeline_report *report)
{
    uint64_t x = LEFT;
    for (int kind = 0; kind < ETCH_ACTION_COUNT; kind++) {
        if (!has_kind(report, (etch_action_kind)kind))
            continue;
        printf("<rect class=\"%s\" x=\"%" PRIu64 "\" y=\"30\" width=\"12\" height=\"12\"/>", kinds[kind], x);
        printf("<text x=\"%" PRIu64 "\" y=\"40\">%s</text>\n", x + 16, names[kind]);
        x += 36 + 6 * strlen(names[kind]);
    }
    printf("<path class=\"m\" d=\"M%" PRIu64 " 36h14\"/><text x=\"%" PRIu64 "\" y=\"40\">message</text>\n", x,
           x + 18);
}

/* A rectangle of the picture. */
typedef struct box {
    uint64_t x, y, width, height;
} box;

static void print_action(const etch_pipeline_report *report, const etch_pipeline_slot *slot, box at)
{
    char chunk[16] = "";
    if (report->chunks > 1)
        snprintf(chunk, sizeof chunk, ".%" PRIu32, slot->chunk);
    printf("<rect class=\"%s\" x=\"%" PRIu64 "\" y=\"%" PRIu64 "\" width=\"%" PRIu64 "\" height=\"%" PRIu64
           "\"/>",
           kinds[slot->kind], at.x, at.y, at.width, at.height);
    printf("<text class=\"n\" x=\"%" PRIu64 "\" y=\"%" PRIu64 "\">%" PRIu64 "%s</text>\n",
           (2 * at.x + at.width) / 2, at.y + (at.height + 8) / 2, slot->microbatch, chunk);
}

/* Actions that run together share the time: forward above, and below what goes back, its halves beside each
 * other. */
static void print_slot(const etch_pipeline_report *report, size_t stage, const etch_pipeline_slot *slots,
                       size_t count)
{
    const bool both = count > 1 && slots[0].kind == ETCH_ACTION_FORWARD;
    const uint64_t below = count - both, half = both ? SLOT / 2 : 0;
    const uint64_t width = (slots->end - slots->start) * UNIT;
    if (both)
        print_action(report, slots, (box){x_at(slots->start), y_at(stage), width, half});
    for (uint64_t i = 0; i < below; i++)
        print_action(
            report, &slots[both + i],
            (box){x_at(slots->start) + i * width / below, y_at(stage) + half, width / below, SLOT - half});
}

static void print_slots(const etch_pipeline_report *report, size_t stage)
{
    const etch_pipeline_stage *row = &report->stages[stage];
    for (size_t i = 0, count; i < row->slot_count; i += count) {
        for (count = 1; i + count < row->slot_count && row->slots[i + count].overlaps;)
            count++;
        print_slot(report, stage, &row->slots[i], count);
    }
}

/* ---- messages --------------------------------------------------------------------------------------- */

/* A slot that another one may wait for. */
typedef struct passing {
    const etch_pipeline_slot *slot;
    size_t stage;
} passing;

/* By direction, link of the chain and microbatch; what makes gradients of weights is not there. */
static size_t cell_of(const etch_pipeline_report *report, const etch_pipeline_slot *slot, uint64_t link)
{
    const uint64_t links = report->stage_count * report->chunks;
    const bool back = slot->kind != ETCH_ACTION_FORWARD;
    return (size_t)((back * links + link) * report->microbatches + slot->microbatch);
}

/* From the end of the slot before in the chain, when that is of another stage. */
static void print_message(const etch_pipeline_report *report, const passing *cells, size_t stage,
                          const etch_pipeline_slot *slot, uint64_t last)
{
    const bool back = slot->kind != ETCH_ACTION_FORWARD;
    if (slot->kind == ETCH_ACTION_WEIGHT_GRADIENTS || slot->link == (back ? last : 0))
        return;
    const passing *from = &cells[cell_of(report, slot, back ? slot->link + 1 : slot->link - 1)];
    if (!from->slot || from->stage == stage)
        return;
    const bool down = from->stage < stage;
    printf("<path class=\"m\" d=\"M%" PRIu64 " %" PRIu64 "L%" PRIu64 " %" PRIu64 "\"/>\n",
           x_at(from->slot->end), y_at(from->stage) + (down ? SLOT : 0), x_at(slot->start),
           y_at(stage) + (down ? 0 : SLOT));
}

static void print_messages(const etch_pipeline_report *report, passing *cells)
{
    uint64_t last = 0; /* link of the chain, which may be there twice */
    for (size_t stage = 0; stage < report->stage_count; stage++)
        for (size_t i = 0; i < report->stages[stage].slot_count; i++) {
            const etch_pipeline_slot *slot = &report->stages[stage].slots[i];
            last = slot->link > last ? slot->link : last;
            if (slot->kind != ETCH_ACTION_WEIGHT_GRADIENTS)
                cells[cell_of(report, slot, slot->link)] = (passing){slot, stage};
        }
    for (size_t stage = 0; stage < report->stage_count; stage++)
        for (size_t i = 0; i < report->stages[stage].slot_count; i++)
            print_message(report, cells, stage, &report->stages[stage].slots[i], last);
}

/* ---- the picture ------------------------------------------------------------------------------------ */

bool cli_print_pipeline_svg(cli_pool *pool, const etch_pipeline_report *report)
{
    const uint64_t links = report->stage_count * report->chunks;
    passing *cells = cli_pool_take(pool, (size_t)(2 * links * report->microbatches), sizeof *cells);
    if (!cells)
        return false;
    const uint64_t width = x_at(report->time) + MARGIN, height = y_at(report->stage_count) + MARGIN;
    printf("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%" PRIu64 "\" height=\"%" PRIu64
           "\" viewBox=\"0 0 %" PRIu64 " %" PRIu64 "\">\n<style>%s</style>\n",
           width < 640 ? 640 : width, height, width < 640 ? 640 : width, height, style);
    printf("<text x=\"%d\" y=\"20\">%s, plan %s: %s, %zu stages, %" PRIu64
           " microbatches, bubble %s</text>\n",
           LEFT, report->model, report->plan, etch_schedule_kind_name(report->schedule), report->stage_count,
           report->microbatches, report->bubble);
    print_legend(report);
    for (size_t stage = 0; stage < report->stage_count; stage++) {
        printf("<rect class=\"r\" x=\"%d\" y=\"%" PRIu64 "\" width=\"%" PRIu64 "\" height=\"%d\"/>", LEFT,
               y_at(stage), report->time * UNIT, SLOT);
        printf("<text x=\"8\" y=\"%" PRIu64 "\">stage %zu</text>\n", y_at(stage) + 15, stage);
        print_slots(report, stage);
    }
    print_messages(report, cells);
    puts("</svg>");
    return true;
}
