/* Rows as a picture, SVG: a Pareto front of two quantities, or a quantity over two axes. All places are whole
 * tenths of a pixel, computed from exact values. */
#include "session/sweep/sweep_int.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

__extension__ typedef __int128 wide;

/* In tenths of a pixel. */
enum { WIDTH = 7200, HEIGHT = 4800, LEFT = 900, RIGHT = 300, TOP = 300, BOTTOM = 700, KEY_WIDTH = 1500 };
enum { MOST_POINTS = 1000, MOST_TILES = 2500, LABELLED = 24, MOST_TICKS = 8, SHADES = 5 };

typedef struct drawing {
    etch_sweep *sweep;
    etch_buf *out;
    int right;
} drawing;

/* A quantity along one side of the picture. */
typedef struct scale {
    wide least, most, step;
    int from, to;
} scale;

/* ---- numbers ------------------------------------------------------------------------------------------- */

/* The value, rounded down, where it is short enough to be drawn. */
static bool floor_of(etch_exact value, wide *out)
{
    enum { MOST_DIGITS = 30 };
    if (!value.text) {
        *out = value.number / value.denominator - (value.number % value.denominator < 0);
        return true;
    }
    const bool negative = *value.text == '-';
    const char *at = value.text + negative;
    const size_t digits = strspn(at, "0123456789");
    if (digits > MOST_DIGITS || at[digits])
        return false;
    for (*out = 0; *at >= '0' && *at <= '9'; at++)
        *out = *out * 10 + (*at - '0');
    *out = negative ? -*out : *out;
    return true;
}

/* "71.6 G": three digits, of which zeros behind the point are left out. */
static const char *short_number(etch_arena *arena, wide value)
{
    static const char *const prefixes[] = {"", " k", " M", " G", " T", " P", " E", " Z", " Y", " R", " Q"};
    enum { PREFIXES = sizeof prefixes / sizeof *prefixes };
    const char *sign = value < 0 ? "\xe2\x88\x92" : "";
    uint32_t k = 0;
    wide unit = 1;
    value = value < 0 ? -value : value;
    while (k + 1 < PREFIXES && value / unit >= 1000) {
        unit *= 1000;
        k++;
    }
    const int whole = (int)(value / unit), digits = whole >= 100 ? 0 : whole >= 10 ? 1 : 2;
    int rest = (int)(value % unit * (digits == 2 ? 100 : digits == 1 ? 10 : 1) / unit);
    int shown = digits;
    while (shown > 0 && rest % 10 == 0) {
        rest /= 10;
        shown--;
    }
    return shown > 0 ? etch_text(arena, "%s%d.%0*d%s", sign, whole, shown, rest, prefixes[k])
                     : etch_text(arena, "%s%d%s", sign, whole, prefixes[k]);
}

/* The least of 1, 2, 5, 10, 20, ... of which so many make the distance. */
static wide step_for(wide distance)
{
    wide unit = 1;
    for (;; unit *= 10)
        for (int i = 1; i <= 5; i += i == 1 ? 1 : 3)
            if (distance / (unit * i) < MOST_TICKS)
                return unit * i;
}

static scale scale_of(wide least, wide most, int from, int to)
{
    const wide step = step_for(most > least ? most - least : 1);
    scale s = {.step = step, .from = from, .to = to};
    s.least = (least / step - (least % step < 0)) * step;
    s.most = (most / step + (most % step > 0)) * step;
    s.most = s.most > s.least ? s.most : s.least + step;
    return s;
}

static int place_of(const scale *s, wide value)
{
    return s->from + (int)((value - s->least) * (s->to - s->from) / (s->most - s->least));
}

/* ---- marks --------------------------------------------------------------------------------------------- */

static void put_tenths(etch_buf *out, int tenths)
{
    etch_buf_printf(out, "%d.%d", tenths / 10, tenths % 10);
}

static void put_attribute(drawing *d, const char *name, int tenths)
{
    etch_buf_printf(d->out, " %s=\"", name);
    put_tenths(d->out, tenths);
    etch_buf_puts(d->out, "\"");
}

static void put_escaped(etch_buf *out, const char *text)
{
    for (; *text; text++) {
        const char *name = *text == '<' ? "&lt;" : *text == '>' ? "&gt;" : *text == '&' ? "&amp;" : NULL;
        etch_buf_add(out, name ? name : text, name ? strlen(name) : 1);
    }
}

static void put_text(drawing *d, int x, int y, const char *more, const char *text)
{
    etch_buf_puts(d->out, "<text");
    put_attribute(d, "x", x);
    put_attribute(d, "y", y);
    etch_buf_printf(d->out, "%s>", more);
    put_escaped(d->out, text);
    etch_buf_puts(d->out, "</text>\n");
}

static void put_line(drawing *d, int x1, int y1, int x2, int y2, const char *color)
{
    etch_buf_puts(d->out, "<line");
    put_attribute(d, "x1", x1);
    put_attribute(d, "y1", y1);
    put_attribute(d, "x2", x2);
    put_attribute(d, "y2", y2);
    etch_buf_printf(d->out, " stroke=\"%s\"/>\n", color);
}

static void put_box(drawing *d, int x, int y, int width, int height, const char *fill)
{
    etch_buf_puts(d->out, "<rect");
    put_attribute(d, "x", x);
    put_attribute(d, "y", y);
    put_attribute(d, "width", width);
    put_attribute(d, "height", height);
    etch_buf_printf(d->out, " fill=\"%s\"/>\n", fill);
}

#define MIDDLE " text-anchor=\"middle\""
#define BEHIND " text-anchor=\"end\""

static void put_vertical(drawing *d, const char *text)
{
    etch_buf_printf(d->out, "<text transform=\"translate(18,%d) rotate(-90)\"" MIDDLE ">",
                    (TOP + HEIGHT - BOTTOM) / 20);
    put_escaped(d->out, text);
    etch_buf_puts(d->out, "</text>\n");
}

static void begin(drawing *d)
{
    etch_buf_printf(
        d->out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\" "
        "font-family=\"Helvetica, Arial, sans-serif\" font-size=\"13\">\n"
        "<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n",
        WIDTH / 10, HEIGHT / 10, WIDTH / 10, HEIGHT / 10);
}

/* ---- a front ------------------------------------------------------------------------------------------- */

typedef struct mark {
    int x, y;
    const etch_kept_row *row;
} mark;

static const char *const colors[] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"};
enum { COLORS = sizeof colors / sizeof *colors };

static int compare_marks(const void *a, const void *b)
{
    const mark *x = a, *y = b;
    return x->x != y->x   ? (x->x < y->x ? -1 : 1)
           : x->y != y->y ? (x->y > y->y ? -1 : 1)
                          : etch_order(x->row->row, y->row->row);
}

static void put_scales(drawing *d, const scale *x, const scale *y)
{
    etch_arena *arena = d->out->arena;
    for (wide at = x->least; at <= x->most; at += x->step) {
        put_line(d, place_of(x, at), TOP, place_of(x, at), HEIGHT - BOTTOM, "#e0e0e0");
        put_text(d, place_of(x, at), HEIGHT - BOTTOM + 190, MIDDLE, short_number(arena, at));
    }
    for (wide at = y->least; at <= y->most; at += y->step) {
        put_line(d, LEFT, place_of(y, at), d->right, place_of(y, at), "#e0e0e0");
        put_text(d, LEFT - 80, place_of(y, at) + 45, BEHIND, short_number(arena, at));
    }
    put_line(d, LEFT, HEIGHT - BOTTOM, d->right, HEIGHT - BOTTOM, "black");
    put_line(d, LEFT, TOP, LEFT, HEIGHT - BOTTOM, "black");
}

/* "8/16/4": the values of the axes of a row. */
static const char *label_of(etch_arena *arena, const etch_kept_row *row)
{
    etch_buf text = {.arena = arena};
    etch_buf_puts(&text, "");
    for (uint32_t i = 0; i < row->frame->axis_count; i++)
        etch_buf_printf(&text, "%s%s", i ? "/" : "", etch_exact_text(arena, row->values[i]));
    return text.text;
}

static const char *names_of(const etch_sweep *sweep, const etch_sweep_frame *frame)
{
    etch_buf text = {.arena = sweep->arena};
    for (uint32_t i = 0; i < sweep->request.choices.count; i++)
        if (frame->choices[i])
            etch_buf_printf(&text, "%s%s", text.length ? ", " : "", frame->choices[i]);
    etch_buf_puts(&text, text.length ? ": " : "");
    for (uint32_t i = 0; i < frame->axis_count; i++)
        etch_buf_printf(&text, "%s%s", i ? "/" : "", frame->axes[i].name);
    return text.text ? text.text : "";
}

/* The steps of the front, then the rows of each plan and config in a color of their own, named above. */
static void put_marks(drawing *d, const mark *marks, uint32_t count)
{
    etch_arena *arena = d->out->arena;
    etch_buf_puts(d->out, "<polyline fill=\"none\" stroke=\"#808080\" points=\"");
    for (uint32_t i = 0; i < count; i++) {
        if (i > 0) {
            put_tenths(d->out, marks[i].x);
            etch_buf_puts(d->out, ",");
            put_tenths(d->out, marks[i - 1].y);
            etch_buf_puts(d->out, " ");
        }
        put_tenths(d->out, marks[i].x);
        etch_buf_puts(d->out, ",");
        put_tenths(d->out, marks[i].y);
        etch_buf_puts(d->out, i + 1 < count ? " " : "");
    }
    etch_buf_puts(d->out, "\"/>\n");
    for (uint32_t i = 0; i < count; i++) {
        etch_buf_puts(d->out, "<circle r=\"4\"");
        put_attribute(d, "cx", marks[i].x);
        put_attribute(d, "cy", marks[i].y);
        etch_buf_printf(d->out, " fill=\"%s\"/>\n", colors[marks[i].row->frame->number % COLORS]);
        const bool hidden = i > 0 && marks[i].x == marks[i - 1].x && marks[i].y == marks[i - 1].y;
        const bool late = marks[i].x > d->right - 500;
        if (count <= LABELLED && !hidden)
            put_text(d, marks[i].x + (late ? -60 : 60), marks[i].y - 60,
                     late ? BEHIND " font-size=\"10\"" : " font-size=\"10\"", label_of(arena, marks[i].row));
    }
    int line = 0;
    for (uint32_t f = 0; f < d->sweep->frames.count; f++) {
        bool shown = false;
        for (uint32_t i = 0; i < count; i++)
            shown = shown || marks[i].row->frame->number == f;
        if (!shown)
            continue;
        const int y = TOP + 150 + 180 * line++;
        put_box(d, d->right - 130, y - 85, 90, 90, colors[f % COLORS]);
        put_text(d, d->right - 190, y, BEHIND, names_of(d->sweep, d->sweep->frames.at[f]));
    }
}

static bool draw_front(drawing *d)
{
    const etch_sweep *sweep = d->sweep;
    const uint32_t count = sweep->kept.count, a = sweep->request.pareto.at[0],
                   b = sweep->request.pareto.at[1];
    wide *values = ETCH_NEW_ARRAY(d->out->arena, 2 * (size_t)count, wide);
    wide least[2] = {0}, most[2] = {0};
    for (uint32_t i = 0; i < count; i++)
        for (int k = 0; k < 2; k++) {
            wide *value = &values[2 * i + (uint32_t)k];
            if (!floor_of(sweep->kept.at[i].results[k ? b : a], value))
                return false;
            least[k] = i == 0 || *value < least[k] ? *value : least[k];
            most[k] = i == 0 || *value > most[k] ? *value : most[k];
        }
    d->right = WIDTH - RIGHT;
    const scale x = scale_of(least[0], most[0], LEFT, d->right);
    const scale y = scale_of(least[1], most[1], HEIGHT - BOTTOM, TOP);
    mark *marks = ETCH_NEW_ARRAY(d->out->arena, count, mark);
    for (uint32_t i = 0; i < count; i++)
        marks[i] = (mark){place_of(&x, values[2 * i]), place_of(&y, values[2 * i + 1]), &sweep->kept.at[i]};
    qsort(marks, count, sizeof *marks, compare_marks);
    begin(d);
    put_scales(d, &x, &y);
    put_text(d, (LEFT + d->right) / 2, HEIGHT - 220, MIDDLE, sweep->request.exprs.at[a]);
    put_vertical(d, sweep->request.exprs.at[b]);
    put_marks(d, marks, count);
    return true;
}

/* ---- a quantity over two axes -------------------------------------------------------------------------- */

/* From light to dark, also in print. */
static const unsigned char shades[SHADES][3] = {
    {253, 231, 37}, {94, 201, 98}, {33, 145, 140}, {59, 82, 139}, {68, 1, 84}};

/* `part` of 1000 from the lightest. */
static const char *shade_of(etch_arena *arena, int part)
{
    const int steps = SHADES - 1, at = part >= 1000 ? steps - 1 : part * steps / 1000;
    const int within = part * steps - at * 1000;
    int mixed[3];
    for (int i = 0; i < 3; i++)
        mixed[i] = shades[at][i] + (shades[at + 1][i] - shades[at][i]) * within / 1000;
    return etch_text(arena, "#%02x%02x%02x", (unsigned)mixed[0], (unsigned)mixed[1], (unsigned)mixed[2]);
}

typedef ETCH_VEC(etch_exact) etch_exacts;

/* Where a value stands among those of its axis; adds one that is new, all rising. */
static uint32_t index_in(etch_arena *arena, etch_exacts *values, etch_exact value, bool add)
{
    uint32_t i = 0;
    while (i < values->count && etch_exact_compare(arena, values->at[i], value) < 0)
        i++;
    if (add && (i == values->count || etch_exact_compare(arena, values->at[i], value) != 0)) {
        ETCH_PUSH(arena, values, value);
        for (uint32_t k = values->count - 1; k > i; k--)
            values->at[k] = values->at[k - 1];
        values->at[i] = value;
    }
    return i;
}

static void put_cell(drawing *d, int x, int y, int width, int height, wide value, int part)
{
    enum { SMALLEST_TEXT = 450, DARK = 450 };
    put_box(d, x, y, width, height, shade_of(d->out->arena, part));
    if (width >= SMALLEST_TEXT && height >= 150)
        put_text(d, x + width / 2, y + height / 2 + 40,
                 part > DARK ? MIDDLE " font-size=\"11\" fill=\"white\"" : MIDDLE " font-size=\"11\"",
                 short_number(d->out->arena, value));
}

/* What the shades mean. */
static void put_key(drawing *d, wide least, wide most)
{
    enum { STEPS = 50, KEY_BAR = 200 };
    const int x = d->right + 300, height = HEIGHT - BOTTOM - TOP;
    for (int i = 0; i < STEPS; i++)
        put_box(d, x, HEIGHT - BOTTOM - (i + 1) * height / STEPS, KEY_BAR, height / STEPS + 5,
                shade_of(d->out->arena, i * 1000 / (STEPS - 1)));
    put_text(d, x + KEY_BAR + 60, HEIGHT - BOTTOM, "", short_number(d->out->arena, least));
    put_text(d, x + KEY_BAR + 60, TOP + 100, "", short_number(d->out->arena, most));
}

static bool draw_map(drawing *d)
{
    const etch_sweep *sweep = d->sweep;
    etch_arena *arena = d->out->arena;
    etch_exacts xs = {0}, ys = {0};
    wide least = 0, most = 0, value = 0;
    for (uint32_t i = 0; i < sweep->kept.count; i++) {
        index_in(arena, &ys, sweep->kept.at[i].values[0], true);
        index_in(arena, &xs, sweep->kept.at[i].values[1], true);
        if (!floor_of(sweep->kept.at[i].results[0], &value))
            return false;
        least = i == 0 || value < least ? value : least;
        most = i == 0 || value > most ? value : most;
    }
    d->right = WIDTH - KEY_WIDTH;
    const int width = (d->right - LEFT) / (int)xs.count, height = (HEIGHT - BOTTOM - TOP) / (int)ys.count;
    begin(d);
    for (uint32_t i = 0; i < sweep->kept.count; i++) {
        const etch_kept_row *row = &sweep->kept.at[i];
        const int x = (int)index_in(arena, &xs, row->values[1], false);
        const int y = (int)index_in(arena, &ys, row->values[0], false);
        (void)floor_of(row->results[0], &value);
        put_cell(d, LEFT + x * width, HEIGHT - BOTTOM - (y + 1) * height, width, height, value,
                 most > least ? (int)((value - least) * 1000 / (most - least)) : 0);
    }
    const uint32_t every_x = xs.count / 20 + 1, every_y = ys.count / 20 + 1;
    for (uint32_t i = 0; i < xs.count; i += every_x)
        put_text(d, LEFT + (int)i * width + width / 2, HEIGHT - BOTTOM + 190, MIDDLE,
                 etch_exact_text(arena, xs.at[i]));
    for (uint32_t i = 0; i < ys.count; i += every_y)
        put_text(d, LEFT - 80, HEIGHT - BOTTOM - (int)i * height - height / 2 + 45, BEHIND,
                 etch_exact_text(arena, ys.at[i]));
    put_text(d, (LEFT + d->right) / 2, HEIGHT - 220, MIDDLE, sweep->frames.at[0]->axes[1].name);
    put_vertical(d, sweep->frames.at[0]->axes[0].name);
    put_text(d, (LEFT + d->right) / 2, TOP - 110, MIDDLE, sweep->request.exprs.at[0]);
    put_key(d, least, most);
    return true;
}

/* ---- the whole ----------------------------------------------------------------------------------------- */

static bool refuse(etch_sweep *sweep, const char *why)
{
    etch_diag *diag = etch_error(sweep->session->diags, ETCH_E_SWEEP_PLOT, (etch_span){0, 0}, "%s", why);
    return etch_help(diag,
                     "a picture shows a Pareto front of two expressions, or one expression over two axes "
                     "of one plan and config") &&
           false;
}

/* Is it along a side of the picture, or the shade? */
static bool is_drawn(const etch_sweep_request *r, uint32_t expr)
{
    for (uint32_t i = 0; i < r->pareto.count; i++)
        if (r->pareto.at[i] == expr)
            return true;
    return r->pareto.count == 0 && expr == 0;
}

static bool refuse_measured(etch_sweep *sweep, const char *expr)
{
    etch_diag *diag =
        etch_error(sweep->session->diags, ETCH_E_SWEEP_PLOT, (etch_span){0, 0},
                   "pictures are of whole numbers, and '%s' is of digits behind the point", expr);
    return etch_help(diag, "ask for billionths: '10^9*%s'", expr) && false;
}

bool etch_plot_fits(etch_sweep *sweep)
{
    const etch_sweep_request *r = &sweep->request;
    for (uint32_t i = 0; i < sweep->frames.count; i++)
        for (uint32_t k = 0; !sweep->frames.at[i]->refused && k < r->exprs.count; k++)
            if (is_drawn(r, k) && sweep->frames.at[i]->measured[k])
                return refuse_measured(sweep, r->exprs.at[k]);
    if (sweep->part)
        return refuse(sweep, "a part of a sweep has no picture, nor has what goes on later");
    if (r->pareto.count == 2)
        return true;
    if (r->pareto.count > 0 || r->has_best)
        return refuse(sweep, "rows like these have no picture");
    if (sweep->frames.count != 1 || sweep->frames.at[0]->axis_count != 2)
        return refuse(sweep, "the rows have other than two axes");
    return true;
}

bool etch_plot(etch_sweep *sweep, etch_buf *out)
{
    drawing d = {.sweep = sweep, .out = out};
    const bool front = sweep->request.pareto.count == 2;
    if (sweep->kept.count > (front ? (uint32_t)MOST_POINTS : (uint32_t)MOST_TILES))
        return refuse(sweep, front ? "a front of more than 1000 rows is not drawn"
                                   : "more than 2500 rows are not drawn");
    if (!(front ? draw_front : draw_map)(&d))
        return refuse(sweep, "a number is too long to be drawn");
    etch_buf_puts(out, "</svg>\n");
    return true;
}
