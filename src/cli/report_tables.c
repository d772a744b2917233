/* Tables of the page: communication by axes, and the kernels that take longest. */
#include "report_int.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- sums ---------------------------------------------------------------------------------------------- */

static int by_name(const void *a, const void *b)
{
    const cli_page_sum *x = a, *y = b;
    int order = strcmp(x->op, y->op);
    order = order ? order : strcmp(x->what, y->what);
    order = order ? order : strcmp(x->phase, y->phase);
    return order ? order : (x->rank > y->rank) - (x->rank < y->rank);
}

static int by_time(const void *a, const void *b)
{
    const cli_page_sum *x = a, *y = b;
    return x->time != y->time ? (x->time > y->time ? -1 : 1) : by_name(a, b);
}

cli_page_sum cli_page_sum_of(const etch_simulation *s, const etch_simulation_class *class, uint32_t node)
{
    const etch_simulation_node *of = &class->nodes[node];
    const bool computes = of->work == ETCH_STEP_COMPUTES;
    return (cli_page_sum){.op = of->op,
                          .what = !computes    ? s->axes[of->axes]
                                  : of->module ? of->module
                                               : "",
                          .phase = of->phase,
                          .rank = class->first_rank,
                          .count = 1,
                          .bytes = of->bytes,
                          .flop = of->flop,
                          .time = class->lasts[node]};
}

size_t cli_page_add_up(cli_page_sum *all, size_t count)
{
    size_t last = 0;
    if (count < 2)
        return count;
    qsort(all, count, sizeof *all, by_name);
    for (size_t i = 1; i < count; i++) {
        if (by_name(&all[last], &all[i]) != 0) {
            all[++last] = all[i];
            continue;
        }
        all[last].count++;
        all[last].bytes += all[i].bytes;
        all[last].flop += all[i].flop;
        all[last].time += all[i].time;
    }
    qsort(all, last + 1, sizeof *all, by_time);
    return last + 1;
}

cli_page_sum *cli_page_sums_of(const etch_simulation *s, const etch_simulation_class *class, bool computes,
                               size_t *count)
{
    cli_page_sum *all = calloc((size_t) class->node_count + 1, sizeof *all);
    size_t nodes = 0;
    for (uint32_t i = 0; all && i < class->node_count; i++)
        if ((class->nodes[i].work == ETCH_STEP_COMPUTES) == computes)
            all[nodes++] = cli_page_sum_of(s, class, i);
    *count = all ? cli_page_add_up(all, nodes) : 0;
    return all;
}

/* ---- tables -------------------------------------------------------------------------------------------- */

void cli_page_sums(FILE *out, const etch_simulation *s, const cli_page_sum *all, size_t count,
                   const char *what, bool ranks)
{
    enum { MOST = 24 };
    fprintf(out,
            "<div class=\"wide\"><table><tr><th>op<th>%s<th>phase%s<th>runs<th>bytes<th>time<th>of the "
            "step</tr>",
            what, ranks ? "<th>rank" : "");
    for (size_t i = 0; i < count && i < MOST; i++) {
        char bytes[CLI_BYTES_TEXT], time[CLI_TIME_TEXT];
        cli_page_time(all[i].time, time);
        fputs("<tr><td>", out);
        cli_page_text(out, all[i].op);
        fputs("<td>", out);
        cli_page_text(out, all[i].what);
        fprintf(out, "<td>%s", all[i].phase);
        if (ranks)
            fprintf(out, "<td class=\"n\">%" PRIu32, all[i].rank);
        fprintf(out, "<td class=\"n\">%" PRIu64 "<td class=\"n\">%s<td class=\"n\">%s<td class=\"n\">",
                all[i].count, cli_bytes_text(all[i].bytes, bytes), time);
        cli_page_percent(out, all[i].time, s->step);
        fputs("</tr>", out);
    }
    fputs("</table></div>", out);
    if (count > MOST)
        fprintf(out, "<p>And %zu more.</p>", count - MOST);
}

static bool put_table(FILE *out, const etch_simulation *s, const etch_simulation_class *class, bool computes)
{
    size_t count;
    cli_page_sum *all = cli_page_sums_of(s, class, computes, &count);
    cli_page_sums(out, s, all, count, computes ? "module" : "axes", false);
    free(all);
    return all != NULL;
}

const etch_simulation_class *cli_page_busiest(const etch_simulation *s)
{
    const etch_simulation_class *class = s->classes;
    for (size_t c = 1; c < s->class_count; c++)
        if (s->classes[c].computing > class->computing)
            class = &s->classes[c];
    return class;
}

bool cli_page_work(FILE *out, const etch_simulation *s)
{
    const etch_simulation_class *class = cli_page_busiest(s);
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
