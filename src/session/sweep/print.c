/* Rows as text: CSV, a JSON object on each line, or columns for people. Numbers are exact. */
#include "session/sweep/sweep_int.h"

#include <string.h>

const char *etch_sweep_format_name(etch_sweep_format format)
{
    static const char *const names[] = {
        [ETCH_SWEEP_CSV] = "csv", [ETCH_SWEEP_JSONL] = "jsonl", [ETCH_SWEEP_TABLE] = "table"};
    return (unsigned)format < sizeof names / sizeof *names ? names[format] : NULL;
}

static void put_number(etch_buf *out, int64_t number)
{
    char digits[24];
    char *at = digits + sizeof digits;
    uint64_t rest = number < 0 ? 0 - (uint64_t)number : (uint64_t)number;
    do
        *--at = (char)('0' + rest % 10);
    while (rest /= 10);
    if (number < 0)
        *--at = '-';
    etch_buf_add(out, at, (size_t)(digits + sizeof digits - at));
}

static void put_exact(etch_buf *out, etch_exact value)
{
    if (value.text) {
        etch_buf_puts(out, value.text);
        return;
    }
    put_number(out, value.number);
    if (value.denominator == 1)
        return;
    etch_buf_puts(out, "/");
    put_number(out, value.denominator);
}

const char *etch_exact_text(etch_arena *arena, etch_exact value)
{
    etch_buf text = {.arena = arena};
    put_exact(&text, value);
    return text.text;
}

/* ---- cells --------------------------------------------------------------------------------------------- */

/* The columns before those of axes: plan, config, run. */
static uint32_t names_count(const etch_sweep *sweep)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < sweep->request.choices.count; i++)
        count += sweep->request.choices.at[i].named;
    return count;
}

static uint32_t column_count(const etch_sweep *sweep)
{
    return names_count(sweep) + sweep->columns.count + sweep->request.exprs.count;
}

/* The choice of a column; UINT32_MAX: it is of an axis or expression, the `*i`-th. */
static uint32_t choice_at(const etch_sweep *sweep, uint32_t *i)
{
    for (uint32_t k = 0; k < sweep->request.choices.count; k++)
        if (sweep->request.choices.at[k].named && (*i)-- == 0)
            return k;
    return UINT32_MAX;
}

static const char *head_at(const etch_sweep *sweep, uint32_t i)
{
    const uint32_t choice = choice_at(sweep, &i);
    if (choice != UINT32_MAX)
        return sweep->request.choices.at[choice].name;
    if (i < sweep->columns.count)
        return sweep->columns.at[i];
    return sweep->request.exprs.at[i - sweep->columns.count];
}

/* Of a cell: a name, a number, or (NULL) nothing. */
typedef struct cell {
    const char *name;
    const etch_exact *number;
} cell;

/* `at`: by column of axes, the axis of the frame, or UINT32_MAX. */
static cell cell_at(const etch_sweep *sweep, const etch_sweep_frame *frame, const etch_exact *values,
                    const etch_exact *results, uint32_t i)
{
    const uint32_t choice = choice_at(sweep, &i);
    if (choice != UINT32_MAX)
        return (cell){frame->choices[choice], NULL};
    if (i >= sweep->columns.count)
        return (cell){NULL, &results[i - sweep->columns.count]};
    for (uint32_t a = 0; a < frame->axis_count; a++)
        if (frame->axes[a].column == i)
            return (cell){NULL, &values[a]};
    return (cell){0};
}

/* ---- lines --------------------------------------------------------------------------------------------- */

static void put_csv(etch_buf *out, const char *text)
{
    if (!text[strcspn(text, ",\"\n")]) {
        etch_buf_puts(out, text);
        return;
    }
    etch_buf_puts(out, "\"");
    for (; *text; text++)
        etch_buf_add(out, *text == '"' ? "\"\"" : text, *text == '"' ? 2 : 1);
    etch_buf_puts(out, "\"");
}

static void put_json(etch_buf *out, const char *text)
{
    etch_buf_puts(out, "\"");
    for (; *text; text++) {
        if (*text == '"' || *text == '\\')
            etch_buf_puts(out, "\\");
        if ((unsigned char)*text < 0x20)
            etch_buf_printf(out, "\\u%04x", (unsigned)*text);
        else
            etch_buf_add(out, text, 1);
    }
    etch_buf_puts(out, "\"");
}

static void put_json_cell(etch_buf *out, cell c)
{
    if (c.name) {
        put_json(out, c.name);
    } else if (!c.number) {
        etch_buf_puts(out, "null");
    } else {
        const etch_exact *n = c.number;
        const bool fraction = n->text ? strchr(n->text, '/') != NULL : n->number % n->denominator != 0;
        const char *quote = fraction ? "\"" : "";
        etch_buf_puts(out, quote);
        put_exact(out, *c.number);
        etch_buf_puts(out, quote);
    }
}

void etch_print_head(const etch_sweep *sweep, etch_buf *out)
{
    if (sweep->options->format != ETCH_SWEEP_CSV)
        return;
    for (uint32_t i = 0; i < column_count(sweep); i++) {
        etch_buf_puts(out, i ? "," : "");
        put_csv(out, head_at(sweep, i));
    }
    etch_buf_puts(out, "\n");
}

void etch_print_row(const etch_sweep *sweep, const etch_sweep_frame *frame, const etch_exact *values,
                    const etch_exact *results, etch_buf *out)
{
    const bool json = sweep->options->format == ETCH_SWEEP_JSONL;
    const uint32_t count = column_count(sweep);
    etch_buf_puts(out, json ? "{" : "");
    for (uint32_t i = 0; i < count; i++) {
        const cell c = cell_at(sweep, frame, values, results, i);
        if (i)
            etch_buf_add(out, ",", 1);
        if (json) {
            put_json(out, head_at(sweep, i));
            etch_buf_puts(out, ":");
            put_json_cell(out, c);
        } else if (c.name) {
            put_csv(out, c.name);
        } else if (c.number) {
            put_exact(out, *c.number);
        }
    }
    etch_buf_puts(out, json ? "}\n" : "\n");
}

/* ---- columns ------------------------------------------------------------------------------------------- */

static const char *cell_text(etch_arena *arena, cell c)
{
    etch_buf text = {.arena = arena};
    if (c.number)
        put_exact(&text, *c.number);
    return c.name ? c.name : text.text ? text.text : "";
}

void etch_print_table(const etch_sweep *sweep, const etch_kept_row *rows, uint32_t count, etch_buf *out)
{
    const uint32_t columns = column_count(sweep), named = names_count(sweep);
    size_t *widths = ETCH_NEW_ARRAY(out->arena, columns, size_t);
    const char **texts = ETCH_NEW_ARRAY(out->arena, (size_t)(count + 1) * columns, const char *);
    for (uint32_t i = 0; i < columns; i++) {
        texts[i] = head_at(sweep, i);
        widths[i] = strlen(texts[i]);
    }
    for (uint32_t r = 0; r < count; r++)
        for (uint32_t i = 0; i < columns; i++) {
            const cell c = cell_at(sweep, rows[r].frame, rows[r].values, rows[r].results, i);
            const char *text = cell_text(out->arena, c);
            texts[(size_t)(r + 1) * columns + i] = text;
            widths[i] = strlen(text) > widths[i] ? strlen(text) : widths[i];
        }
    for (uint32_t r = 0; r <= count; r++) {
        for (uint32_t i = 0; i < columns; i++) {
            const char *text = texts[(size_t)r * columns + i];
            const char *between = i ? "  " : "";
            if (i >= named)
                etch_buf_printf(out, "%s%*s", between, (int)widths[i], text);
            else
                etch_buf_printf(out, "%s%-*s", between, (int)widths[i], text);
        }
        etch_buf_puts(out, "\n");
    }
}

const char *etch_frame_text(const etch_sweep *sweep, const etch_sweep_frame *frame)
{
    etch_buf text = {.arena = sweep->arena};
    for (uint32_t i = 0; i < sweep->request.choices.count; i++)
        if (frame->choices[i])
            etch_buf_printf(&text, "%s%s %s", text.length ? ", " : "", sweep->request.choices.at[i].name,
                            frame->choices[i]);
    return text.text ? text.text : "";
}

const char *etch_row_text(const etch_sweep *sweep, const etch_sweep_frame *frame, const etch_exact *values)
{
    etch_buf text = {.arena = sweep->arena};
    etch_buf_puts(&text, etch_frame_text(sweep, frame));
    for (uint32_t i = 0; i < frame->axis_count; i++) {
        etch_buf_printf(&text, "%s%s = ", text.length ? ", " : "", frame->axes[i].name);
        put_exact(&text, values[i]);
    }
    return text.length ? text.text : "no axes";
}
