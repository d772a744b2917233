/* Tables of the page: communication by axes, and the kernels that take longest. */
#include "report_int.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* What nodes that are alike add up to. */
typedef struct sum {
    const char *op, *what, *phase;
    uint64_t count, bytes, flop, time;
} sum;

static int by_name(const void *a, const void *b)
{
    const sum *x = a, *y = b;
    int order = strcmp(x->op, y->op);
    order = order ? order : strcmp(x->what, y->what);
    return order ? order : strcmp(x->phase, y->phase);
}

static int by_time(const void *a, const void *b)
{
    const sum *x = a, *y = b;
    return x->time != y->time ? (x->time > y->time ? -1 : 1) : by_name(a, b);
}

/* The sums over nodes that compute, or that communicate, the longest first. From malloc; NULL: memory is
 * out. */
static sum *sums_of(const etch_simulation *s, const etch_simulation_class *class, bool computes,
                    size_t *count)
{
    sum *all = calloc((size_t) class->node_count + 1, sizeof *all);
    size_t nodes = 0, last = 0;
    for (uint32_t i = 0; all && i < class->node_count; i++) {
        const etch_simulation_node *node = &class->nodes[i];
        if ((node->work == ETCH_STEP_COMPUTES) != computes)
            continue;
        all[nodes++] = (sum){.op = node->op,
                             .what = !computes      ? s->axes[node->axes]
                                     : node->module ? node->module
                                                    : "",
                             .phase = node->phase,
                             .count = 1,
                             .bytes = node->bytes,
                             .flop = node->flop,
                             .time = class->lasts[i]};
    }
    if (nodes > 1)
        qsort(all, nodes, sizeof *all, by_name);
    for (size_t i = 1; i < nodes; i++) {
        if (by_name(&all[last], &all[i]) != 0) {
            all[++last] = all[i];
            continue;
        }
        all[last].count++;
        all[last].bytes += all[i].bytes;
        all[last].flop += all[i].flop;
        all[last].time += all[i].time;
    }
    *count = nodes > 0 ? last + 1 : 0;
    if (*count > 1)
        qsort(all, *count, sizeof *all, by_time);
    return all;
}

static bool put_table(FILE *out, const etch_simulation *s, const etch_simulation_class *class, bool computes)
{
    enum { MOST = 24 };
    size_t count;
    sum *all = sums_of(s, class, computes, &count);
    fprintf(out,
            "<div class=\"wide\"><table><tr><th>op<th>%s<th>phase<th>runs<th>bytes<th>time<th>of the "
            "step</tr>",
            computes ? "module" : "axes");
    for (size_t i = 0; all && i < count && i < MOST; i++) {
        char bytes[CLI_BYTES_TEXT], time[CLI_TIME_TEXT];
        cli_page_time(all[i].time, time);
        fputs("<tr><td>", out);
        cli_page_text(out, all[i].op);
        fputs("<td>", out);
        cli_page_text(out, all[i].what);
        fprintf(out, "<td>%s<td class=\"n\">%" PRIu64 "<td class=\"n\">%s<td class=\"n\">%s<td class=\"n\">",
                all[i].phase, all[i].count, cli_bytes_text(all[i].bytes, bytes), time);
        cli_page_percent(out, all[i].time, s->step);
        fputs("</tr>", out);
    }
    fputs("</table></div>", out);
    if (all && count > MOST)
        fprintf(out, "<p>And %zu more.</p>", count - MOST);
    free(all);
    return all != NULL;
}

bool cli_page_work(FILE *out, const etch_simulation *s)
{
    const etch_simulation_class *class = s->classes;
    for (size_t c = 1; c < s->class_count; c++)
        if (s->classes[c].computing > class->computing)
            class = &s->classes[c];
    fprintf(out,
            "<section><h2>Communication of rank %" PRIu32 "</h2><p>Stage %" PRIu32
            ", which computes the longest; also what runs beside computing.</p>",
            class->first_rank, class->stage);
    bool fine = put_table(out, s, class, false);
    fprintf(out, "</section><section><h2>Kernels of rank %" PRIu32 "</h2>", class->first_rank);
    fine = put_table(out, s, class, true) && fine;
    fputs("</section>", out);
    return fine;
}
