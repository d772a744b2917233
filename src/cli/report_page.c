/* What all parts of the page write alike: texts, times, shares, keys. */
#include "report_int.h"

#include <inttypes.h>

void cli_page_text(FILE *out, const char *text)
{
    for (; text && *text; text++)
        switch (*text) {
        case '<':
            fputs("&lt;", out);
            break;
        case '>':
            fputs("&gt;", out);
            break;
        case '&':
            fputs("&amp;", out);
            break;
        case '"':
            fputs("&quot;", out);
            break;
        default:
            fputc(*text, out);
        }
}

void cli_page_time(uint64_t ps, char text[CLI_TIME_TEXT])
{
    static const char *const units[] = {"ps", "ns", "us", "ms", "s"};
    uint64_t scale = 1;
    unsigned unit = 0;
    for (; unit + 1 < sizeof units / sizeof *units && ps / scale >= 1000; unit++)
        scale *= 1000;
    if (scale == 1)
        snprintf(text, CLI_TIME_TEXT, "%" PRIu64 " ps", ps);
    else
        snprintf(text, CLI_TIME_TEXT, "%" PRIu64 ".%03" PRIu64 " %s", ps / scale, ps % scale / (scale / 1000),
                 units[unit]);
}

uint64_t cli_page_x(uint64_t part, uint64_t whole)
{
    __extension__ typedef unsigned __int128 wide;
    return whole ? (uint64_t)((wide)part * CLI_PAGE_WIDTH / whole) : 0;
}

void cli_page_percent(FILE *out, uint64_t part, uint64_t whole)
{
    const uint64_t tenths = (cli_page_x(part, whole) + 50) / (CLI_PAGE_WIDTH / 1000);
    fprintf(out, "%" PRIu64 ".%" PRIu64 " %%", tenths / 10, tenths % 10);
}

void cli_page_axis(FILE *out, uint64_t step)
{
    char half[CLI_TIME_TEXT], all[CLI_TIME_TEXT];
    cli_page_time(step / 2, half);
    cli_page_time(step, all);
    fprintf(out, "<p class=\"axis\"><span>0</span><span>%s</span><span>%s</span></p>", half, all);
}

void cli_page_key(FILE *out, unsigned color, const char *name)
{
    fprintf(out, "<span><i class=\"c%u\"></i>", color);
    cli_page_text(out, name);
    fputs("</span>", out);
}

void cli_page_chart(FILE *out, unsigned height, const char *kind, const char *says)
{
    fprintf(out,
            "<svg class=\"%s\" viewBox=\"0 0 %d %u\" preserveAspectRatio=\"none\" role=\"img\" "
            "aria-label=\"%s\">",
            kind, (int)CLI_PAGE_WIDTH, height, says);
}

void cli_page_class_name(FILE *out, const etch_simulation_class *c)
{
    fprintf(out, "stage %" PRIu32 ", %" PRIu32 " rank%s, first %" PRIu32, c->stage, c->ranks,
            c->ranks == 1 ? "" : "s", c->first_rank);
}

void cli_page_left_out(FILE *out, const etch_simulation *s)
{
    if (s->class_count > CLI_PAGE_CLASSES)
        fprintf(out, "<p>The first %d of %zu classes of ranks.</p>", (int)CLI_PAGE_CLASSES, s->class_count);
}
