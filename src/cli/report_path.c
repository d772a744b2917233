/* The critical path: nodes that each begin when the one before ends, and that are as long as the step. */
#include "report_int.h"

#include <inttypes.h>
#include <stdlib.h>

/* A part of the path: one rank computes, or one kind of communication runs. */
typedef struct interval {
    const etch_simulation_class *class;
    /* 0: computes; else that of its axes, less one */
    uint32_t kind;
    uint64_t begins, ends;
} interval;

static void put_interval(FILE *out, const etch_simulation *s, const interval *at)
{
    const uint64_t x = cli_page_x(at->begins, s->step), end = cli_page_x(at->ends, s->step);
    char from[CLI_TIME_TEXT], to[CLI_TIME_TEXT];
    cli_page_time(at->begins, from);
    cli_page_time(at->ends, to);
    fprintf(out,
            "<rect class=\"c%" PRIu32 "\" x=\"%" PRIu64 "\" y=\"0\" width=\"%" PRIu64
            "\" height=\"10\"><title>rank %" PRIu32 ", ",
            at->kind ? 1 + (at->kind - 1) % (CLI_PAGE_COLORS - 1) : 0, x, end - x, at->class->first_rank);
    cli_page_text(out, at->kind ? s->axes[at->kind - 1] : "computing");
    fprintf(out, ": from %s to %s</title></rect>", from, to);
}

static interval interval_of(const etch_simulation *s, size_t at)
{
    const etch_simulation_class *class = &s->classes[s->path[at].class_index];
    const uint32_t i = s->path[at].node;
    const etch_simulation_node *node = &class->nodes[i];
    return (interval){class, node->work == ETCH_STEP_COMPUTES ? 0 : 1 + node->axes, class->begins[i],
                      class->begins[i] + class->lasts[i]};
}

/* How many intervals of the class, or NULL of all, there are; `*time`: what they add up to. Draws them unless
 * `out` is NULL. */
static size_t put_intervals(FILE *out, const etch_simulation *s, const etch_simulation_class *class,
                            uint64_t *time)
{
    interval now = {0};
    size_t count = 0;
    *time = 0;
    for (size_t i = 0; i <= s->path_count; i++) {
        const interval next = i < s->path_count ? interval_of(s, i) : (interval){0};
        if (now.class && now.class == next.class && now.kind == next.kind) {
            now.ends = next.ends;
            continue;
        }
        if (now.class && (!class || now.class == class)) {
            count++;
            *time += now.ends - now.begins;
            if (out)
                put_interval(out, s, &now);
        }
        now = next;
    }
    return count;
}

/* A row for each class that is on the path, to scale. */
static void put_rows(FILE *out, const etch_simulation *s)
{
    uint64_t time;
    const size_t all = put_intervals(NULL, s, NULL, &time);
    if (all > CLI_PAGE_SLOTS) {
        fprintf(out, "<p>%zu intervals are too many to be drawn.</p>", all);
        return;
    }
    for (size_t c = 0; c < s->class_count && c < CLI_PAGE_CLASSES; c++) {
        if (put_intervals(NULL, s, &s->classes[c], &time) == 0)
            continue;
        fputs("<p class=\"label\">", out);
        cli_page_class_name(out, &s->classes[c]);
        fputs(": ", out);
        cli_page_percent(out, time, s->step);
        fputs(" of the step</p>", out);
        cli_page_chart(out, 10, "bar", "what is on the critical path over time");
        put_intervals(out, s, &s->classes[c], &time);
        fputs("</svg>", out);
    }
    cli_page_axis(out, s->step);
    cli_page_left_out(out, s);
}

/* "computing 61.0 %", and the same of each axes that are on the path. `times`: by kind of a interval. */
static void put_keys(FILE *out, const etch_simulation *s, const uint64_t *times)
{
    fputs("<p class=\"keys\">", out);
    for (size_t k = 0; k <= s->axes_count; k++) {
        if (times[k] == 0)
            continue;
        fprintf(out, "<span><i class=\"c%zu\"></i>", k ? 1 + (k - 1) % (CLI_PAGE_COLORS - 1) : 0);
        cli_page_text(out, k ? s->axes[k - 1] : "computing");
        fputs(" ", out);
        cli_page_percent(out, times[k], s->step);
        fputs("</span>", out);
    }
    fputs("</p>", out);
}

static void put_free(FILE *out, const etch_simulation *s, const char *name, uint64_t step)
{
    char text[CLI_TIME_TEXT];
    fputs("<tr><td>", out);
    cli_page_text(out, name);
    cli_page_time(step, text);
    fprintf(out, "</td><td class=\"n\">%s</td><td class=\"n\">%s", text, step < s->step ? "-" : "+");
    cli_page_percent(out, step < s->step ? s->step - step : step - s->step, s->step);
    fputs("</td></tr>", out);
}

void cli_page_free(FILE *out, const etch_simulation *s)
{
    fputs("<section><h2>What the step would take</h2><p>If one of these took no time, and all else ran as it "
          "does.</p><div class=\"wide\"><table><tr><th>for nothing</th><th class=\"n\">step</th>"
          "<th class=\"n\">change</th></tr>",
          out);
    put_free(out, s, "computing", s->free_computing);
    for (size_t i = 0; i < s->axes_count; i++)
        put_free(out, s, s->axes[i], s->free_axes[i]);
    fputs("</table></div></section>", out);
}

bool cli_page_path(FILE *out, const etch_simulation *s)
{
    cli_page_sum *all = calloc(s->path_count + 1, sizeof *all);
    uint64_t *times = calloc(s->axes_count + 1, sizeof *times);
    const bool fine = all && times;
    for (size_t i = 0; fine && i < s->path_count; i++) {
        const interval at = interval_of(s, i);
        all[i] = cli_page_sum_of(s, at.class, s->path[i].node);
        times[at.kind] += at.ends - at.begins;
    }
    if (fine) {
        fputs("<section><h2>The critical path</h2><p>What the step is as long as: each begins when the one "
              "before it ends, which it waits for.</p>",
              out);
        put_keys(out, s, times);
        put_rows(out, s);
        cli_page_sums(out, s, all, cli_page_add_up(all, s->path_count), "module or axes", true);
        fputs("</section>", out);
    }
    free(all);
    free(times);
    return fine;
}
