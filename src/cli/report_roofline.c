/* The roofline of a rank's kernels: FLOP a second over FLOP a byte, both as logarithms, below what the memory
 * and the products of the device can do. */
#include "report_int.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { HEIGHT = 1000 };

/* Decimal logarithms at the edges. */
typedef struct frame {
    double left, right, bottom, top;
} frame;

static double intensity_of(const cli_page_sum *sum)
{
    return (double)sum->flop / (double)sum->bytes;
}

static double rate_of(const cli_page_sum *sum)
{
    return (double)sum->flop / ((double)sum->time * 1e-12);
}

static bool is_drawn(const cli_page_sum *sum)
{
    return sum->flop > 0 && sum->bytes > 0 && sum->time > 0;
}

/* Around all kernels and the ridge of the roof. */
static frame frame_of(const etch_simulation *s, const cli_page_sum *all, size_t count)
{
    const double ridge = log10(s->peak / s->bandwidth), peak = log10(s->peak), margin = 0.3;
    frame f = {ridge, ridge, peak, peak};
    for (size_t i = 0; i < count; i++) {
        if (!is_drawn(&all[i]))
            continue;
        f.left = fmin(f.left, log10(intensity_of(&all[i])));
        f.right = fmax(f.right, log10(intensity_of(&all[i])));
        f.bottom = fmin(f.bottom, log10(rate_of(&all[i])));
        f.top = fmax(f.top, log10(rate_of(&all[i])));
    }
    return (frame){f.left - margin, f.right + margin, f.bottom - margin, f.top + margin};
}

static long x_of(const frame *f, double intensity)
{
    return lround((log10(intensity) - f->left) / (f->right - f->left) * CLI_PAGE_WIDTH);
}

static long y_of(const frame *f, double rate)
{
    return lround((f->top - log10(rate)) / (f->top - f->bottom) * HEIGHT);
}

static void put_roof(FILE *out, const etch_simulation *s, const frame *f)
{
    const double left = pow(10, f->left), right = pow(10, f->right), ridge = s->peak / s->bandwidth;
    fprintf(out, "<path class=\"roof\" d=\"M%ld %ldL%ld %ldL%ld %ld\"/>", x_of(f, left),
            y_of(f, left * s->bandwidth), x_of(f, ridge), y_of(f, s->peak), x_of(f, right), y_of(f, s->peak));
}

static unsigned color_of(const cli_page_sum *sum)
{
    const bool backward = strcmp(sum->phase, "backward") == 0 || strcmp(sum->phase, "recompute") == 0;
    return strcmp(sum->phase, "forward") == 0 ? 0 : backward ? 1 : 2;
}

/* Its area is the share of the step. */
static void put_dot(FILE *out, const etch_simulation *s, const frame *f, const cli_page_sum *sum)
{
    const double share = (double)sum->time / (double)s->step;
    char time[CLI_TIME_TEXT];
    cli_page_time(sum->time, time);
    fprintf(out, "<path class=\"dot\" style=\"stroke:var(--c%u);stroke-width:%ld\" d=\"M%ld %ldh0\"><title>",
            color_of(sum), 6 + lround(24 * sqrt(share)), x_of(f, intensity_of(sum)), y_of(f, rate_of(sum)));
    cli_page_text(out, sum->op);
    fputs(" ", out);
    cli_page_text(out, sum->what);
    fprintf(out, ", %s: %.4g FLOP a byte, %.4g TFLOP/s, %s</title></path>", sum->phase, intensity_of(sum),
            rate_of(sum) * 1e-12, time);
}

static void put_chart(FILE *out, const etch_simulation *s, const cli_page_sum *all, size_t count)
{
    const frame f = frame_of(s, all, count);
    fprintf(out,
            "<p class=\"label\">FLOP a second, from %.4g to %.4g TFLOP/s, as logarithms. The roof: "
            "%.4g TFLOP/s of products in bf16, and left of %.3g FLOP a byte what %.4g GB/s of memory "
            "feed.</p>",
            pow(10, f.bottom) * 1e-12, pow(10, f.top) * 1e-12, s->peak * 1e-12, s->peak / s->bandwidth,
            s->bandwidth * 1e-9);
    fputs("<p class=\"keys\">", out);
    cli_page_key(out, 0, "forward");
    cli_page_key(out, 1, "backward");
    cli_page_key(out, 2, "end of the step");
    fputs("</p>", out);
    cli_page_chart(out, HEIGHT, "area", "kernels below the roof of the device");
    put_roof(out, s, &f);
    for (size_t i = 0; i < count; i++)
        if (is_drawn(&all[i]))
            put_dot(out, s, &f, &all[i]);
    fprintf(out, "</svg><p class=\"axis\"><span>%.4g</span><span>FLOP a byte</span><span>%.4g</span></p>",
            pow(10, f.left), pow(10, f.right));
}

bool cli_page_roofline(FILE *out, const etch_simulation *s)
{
    const etch_simulation_class *class = cli_page_busiest(s);
    size_t count, drawn = 0;
    cli_page_sum *all = cli_page_sums_of(s, class, true, &count);
    if (!all)
        return false;
    for (size_t i = 0; i < count; i++)
        drawn += is_drawn(&all[i]);
    fprintf(out, "<section><h2>Roofline of rank %" PRIu32 "</h2>", class->first_rank);
    if (s->peak > 0 && s->bandwidth > 0 && drawn > 0)
        put_chart(out, s, all, count);
    else
        fputs("<p>Nothing to draw: it takes a peak in bf16, a bandwidth, and kernels that have FLOP.</p>",
              out);
    if (drawn < count)
        fprintf(out, "<p>%zu kernels without FLOP are not drawn.</p>", count - drawn);
    fputs("</section>", out);
    free(all);
    return true;
}
