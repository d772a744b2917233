/* Charts of the page: where time goes, the pipeline to scale, memory over time. */
#include "report_int.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static size_t drawn_classes(const etch_simulation *s)
{
    return s->class_count < CLI_PAGE_CLASSES ? s->class_count : CLI_PAGE_CLASSES;
}

/* ---- where time goes ----------------------------------------------------------------------------------- */

static uint64_t put_bar(FILE *out, uint64_t from, uint64_t part, uint64_t step, const char *color,
                        const char *name)
{
    const uint64_t x = cli_page_x(from, step), end = cli_page_x(from + part, step);
    char time[CLI_TIME_TEXT];
    if (part == 0)
        return from;
    cli_page_time(part, time);
    fprintf(out, "<rect class=\"%s\" x=\"%" PRIu64 "\" y=\"0\" width=\"%" PRIu64 "\" height=\"10\"><title>",
            color, x, end - x);
    cli_page_text(out, name);
    fprintf(out, ": %s, ", time);
    cli_page_percent(out, part, step);
    fputs("</title></rect>", out);
    return from + part;
}

void cli_page_bars(FILE *out, const etch_simulation *s)
{
    char color[16];
    fputs("<section><h2>Where the time goes</h2><p class=\"keys\">", out);
    cli_page_key(out, 0, "computing");
    for (size_t i = 0; i < s->axes_count; i++)
        cli_page_key(out, (unsigned)(1 + i % (CLI_PAGE_COLORS - 1)), s->axes[i]);
    fputs("<span><i class=\"waiting\"></i>waiting</span><span><i class=\"idle\"></i>idle</span></p>", out);
    for (size_t c = 0; c < drawn_classes(s); c++) {
        const etch_simulation_class *class = &s->classes[c];
        fputs("<p class=\"label\">", out);
        cli_page_class_name(out, class);
        fputs(": computing ", out);
        cli_page_percent(out, class->computing, s->step);
        fputs("</p>", out);
        cli_page_chart(out, 10, "bar", "parts of the step");
        uint64_t at = put_bar(out, 0, class->computing, s->step, "c0", "computing");
        for (size_t i = 0; i < s->axes_count; i++) {
            snprintf(color, sizeof color, "c%d", (int)(1 + i % (CLI_PAGE_COLORS - 1)));
            at = put_bar(out, at, class->exposed[i], s->step, color, s->axes[i]);
        }
        at = put_bar(out, at, class->waiting, s->step, "waiting", "waiting");
        put_bar(out, at, class->idle, s->step, "idle", "idle");
        fputs("</svg>", out);
    }
    cli_page_left_out(out, s);
    fputs("</section>", out);
}

/* ---- the pipeline -------------------------------------------------------------------------------------- */

/* An interval of computations of one microbatch in one direction. */
typedef struct slot {
    bool back;
    int64_t microbatch;
    uint64_t begins, ends;
} slot;

static void put_slot(FILE *out, const slot *at, uint64_t step)
{
    char from[CLI_TIME_TEXT], to[CLI_TIME_TEXT];
    const uint64_t x = cli_page_x(at->begins, step), end = cli_page_x(at->ends, step);
    cli_page_time(at->begins, from);
    cli_page_time(at->ends, to);
    fprintf(out,
            "<rect class=\"slot c%d\" x=\"%" PRIu64 "\" y=\"0\" width=\"%" PRIu64
            "\" height=\"10\"><title>%s ",
            at->microbatch < 0 ? 2 : at->back, x, end > x ? end - x : 1,
            at->microbatch < 0 ? "end of the step"
            : at->back         ? "backward"
                               : "forward");
    if (at->microbatch >= 0)
        fprintf(out, "%" PRId64 " ", at->microbatch);
    fprintf(out, "from %s to %s</title></rect>", from, to);
}

/* How many intervals there are; draws them unless `out` is NULL. */
static size_t put_slots(FILE *out, const etch_simulation_class *class, uint64_t step)
{
    slot now = {0};
    size_t count = 0;
    for (uint32_t i = 0; i < class->node_count; i++) {
        const etch_simulation_node *node = &class->nodes[i];
        const bool back = strcmp(node->phase, "forward") != 0;
        if (node->work != ETCH_STEP_COMPUTES)
            continue;
        const bool same = count > 0 && now.back == back && now.microbatch == node->microbatch;
        if (!same && count > 0 && out)
            put_slot(out, &now, step);
        if (!same) {
            now = (slot){back, node->microbatch, class->begins[i], 0};
            count++;
        }
        now.ends = class->begins[i] + class->lasts[i];
    }
    if (count > 0 && out)
        put_slot(out, &now, step);
    return count;
}

bool cli_page_pipeline(FILE *out, const etch_simulation *s, const etch_memory_report *memory)
{
    size_t slots = 0;
    (void)memory;
    fputs("<section><h2>Computing, to scale</h2>", out);
    for (size_t c = 0; c < drawn_classes(s); c++)
        slots += put_slots(NULL, &s->classes[c], s->step);
    if (slots > CLI_PAGE_SLOTS) {
        fprintf(out, "<p>%zu slots are too many to be drawn: a timeline shows them.</p></section>", slots);
        return true;
    }
    fputs("<p class=\"keys\">", out);
    cli_page_key(out, 0, "forward");
    cli_page_key(out, 1, "backward");
    cli_page_key(out, 2, "end of the step");
    fputs("</p>", out);
    for (size_t c = 0; c < drawn_classes(s); c++) {
        fputs("<p class=\"label\">", out);
        cli_page_class_name(out, &s->classes[c]);
        fputs("</p>", out);
        cli_page_chart(out, 10, "bar", "slots over time");
        put_slots(out, &s->classes[c], s->step);
        fputs("</svg>", out);
    }
    cli_page_axis(out, s->step);
    cli_page_left_out(out, s);
    fputs("</section>", out);
    return true;
}

/* ---- memory -------------------------------------------------------------------------------------------- */

enum { HEIGHT = 1000 };

/* One kind stacked upon those before it: steps that last until the next one. */
static void put_area(FILE *out, const cli_memory_point *points, size_t count, unsigned kind, uint64_t peak,
                     uint64_t step)
{
    fprintf(out, "<path class=\"c%u\" d=\"", kind % CLI_PAGE_COLORS);
    for (unsigned upper = 0; upper < 2; upper++)
        for (size_t n = 0; n < 2 * count; n++) {
            const size_t at = upper ? 2 * count - 1 - n : n, i = at / 2;
            const uint64_t moment = at % 2 == 0     ? points[i].begins
                                    : i + 1 < count ? points[i + 1].begins
                                                    : step;
            uint64_t bytes = 0;
            for (unsigned k = 0; k < kind + upper; k++)
                bytes += points[i].row->bytes[k];
            const uint64_t y = (cli_page_x(bytes, peak) * HEIGHT + CLI_PAGE_WIDTH / 2) / CLI_PAGE_WIDTH;
            fprintf(out, "%s%" PRIu64 " %" PRIu64, upper == 0 && n == 0 ? "M" : "L", cli_page_x(moment, step),
                    HEIGHT - (y < HEIGHT ? y : HEIGHT));
        }
    fputs("Z\"/>", out);
}

static void put_alive(FILE *out, const etch_memory_stage *stage)
{
    enum { MOST = 16 };
    fputs("<h3>What is there at the peak</h3><div class=\"wide\"><table><tr><th>bytes<th>kind<th>tensor"
          "<th>line</tr>",
          out);
    for (size_t i = 0; i < stage->item_count && i < MOST; i++) {
        const etch_memory_item *item = &stage->items[i];
        char text[CLI_BYTES_TEXT];
        fprintf(out, "<tr><td class=\"n\">%s<td>%s<td>", cli_bytes_text(item->bytes, text),
                etch_memory_kind_name(item->kind));
        cli_page_text(out, item->module);
        fputs(".", out);
        cli_page_text(out, item->tensor);
        fputs("<td>", out);
        if (item->location.path) {
            cli_page_text(out, item->location.path);
            fprintf(out, ":%" PRIu32, item->location.line);
        }
        fputs("</tr>", out);
    }
    fputs("</table></div>", out);
    if (stage->item_count > MOST)
        fprintf(out, "<p>And %zu more.</p>", stage->item_count - MOST);
}

/* The most at a time in each of so many parts of the step: more points than a screen has are not drawn. */
static size_t thin_out(cli_memory_point *points, size_t count, uint64_t step)
{
    enum { PARTS = 1000 };
    size_t left = 0;
    for (size_t i = 0; i < count; i++) {
        const uint64_t part = cli_page_x(points[i].begins, step) / (CLI_PAGE_WIDTH / PARTS);
        cli_memory_point *last = left > 0 ? &points[left - 1] : NULL;
        if (last && cli_page_x(last->begins, step) / (CLI_PAGE_WIDTH / PARTS) == part) {
            if (points[i].row->total > last->row->total)
                last->row = points[i].row;
        } else {
            points[left++] = points[i];
        }
    }
    return left;
}

bool cli_page_memory(FILE *out, const etch_simulation *s, const etch_memory_report *memory)
{
    const etch_memory_stage *stage = &memory->stages[memory->heaviest];
    const etch_simulation_class *class = s->classes;
    char text[CLI_BYTES_TEXT];
    size_t count;
    for (size_t c = 0; c < s->class_count && class->stage != stage->stage; c++)
        class = &s->classes[c];
    cli_memory_point *points = cli_memory_points(class, stage, &count);
    if (!points)
        return false;
    const etch_memory_row *row = &stage->rows[stage->peak];
    fprintf(out, "<section><h2>Memory over time</h2><p class=\"label\">stage %" PRIu32 ", at most %s</p>",
            stage->stage, cli_bytes_text(row->total, text));
    count = thin_out(points, count, s->step);
    cli_page_chart(out, HEIGHT, "area", "bytes over time");
    for (unsigned k = 0; k < ETCH_MEMORY_KINDS && count > 0; k++)
        put_area(out, points, count, k, row->total, s->step);
    fputs("</svg>", out);
    cli_page_axis(out, s->step);
    free(points);
    fputs("<p class=\"keys\">", out);
    for (unsigned k = 0; k < ETCH_MEMORY_KINDS; k++) {
        char key[2 * CLI_BYTES_TEXT];
        if (row->bytes[k] == 0)
            continue;
        snprintf(key, sizeof key, "%s %s", etch_memory_kind_name((etch_memory_kind)k),
                 cli_bytes_text(row->bytes[k], text));
        cli_page_key(out, k % CLI_PAGE_COLORS, key);
    }
    fputs("</p>", out);
    put_alive(out, stage);
    fputs("</section>", out);
    return true;
}
