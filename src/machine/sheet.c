/* Tables of measurements: a line of names, then a row a line, tabs or commas between. */
#include "machine/sheet_int.h"

#include <string.h>

/* ---- lines and cells ----------------------------------------------------------------------------------- */

etch_span etch_sheet_span(const etch_sheet *t, etch_cell at)
{
    const uint32_t start = t->source->base + (uint32_t)(at.text - t->source->text);
    return (etch_span){start, start + at.length};
}

/* The next line that is no comment and not empty. */
static bool next_line(etch_sheet *t)
{
    while (t->at < t->source->length) {
        const char *text = t->source->text + t->at;
        const char *end = memchr(text, '\n', t->source->length - t->at);
        uint32_t length = end ? (uint32_t)(end - text) : t->source->length - t->at;
        t->at += length + (end != NULL);
        t->number++;
        length -= length > 0 && text[length - 1] == '\r';
        t->line = (etch_cell){text, length};
        if (length > 0 && text[0] != '#')
            return true;
    }
    return false;
}

/* Where the cell ends that begins at `at`, and what is between its quotation marks, where it has any. */
static const char *cell_end(const etch_sheet *t, const char *at, const char *end, etch_cell *cell)
{
    const char *close = at < end && *at == '"' ? memchr(at + 1, '"', (size_t)(end - at - 1)) : NULL;
    if (close && (close + 1 == end || close[1] == t->mark)) {
        *cell = (etch_cell){at + 1, (uint32_t)(close - at - 1)};
        return close + 1;
    }
    const char *stop = memchr(at, t->mark, (size_t)(end - at));
    stop = stop ? stop : end;
    *cell = (etch_cell){at, (uint32_t)(stop - at)};
    return stop;
}

/* False where a line has more cells than a table may have. */
static bool split(const etch_sheet *t, etch_cell *cells, uint32_t *count)
{
    const char *at = t->line.text, *end = at + t->line.length;
    for (*count = 0; *count < ETCH_SHEET_COLUMNS; ++*count) {
        const char *stop = cell_end(t, at, end, &cells[*count]);
        if (stop == end) {
            ++*count;
            return true;
        }
        at = stop + 1;
    }
    return false;
}

bool etch_cell_is(etch_cell at, const char *text)
{
    return strlen(text) == at.length && memcmp(at.text, text, at.length) == 0;
}

/* The index of a column; the number of columns where there is none. */
static uint32_t column_of(const etch_sheet *t, const char *name)
{
    uint32_t i = 0;
    while (i < t->column_count && !etch_cell_is(t->names[i], name))
        i++;
    return i;
}

bool etch_sheet_has(const etch_sheet *t, const char *name)
{
    return column_of(t, name) < t->column_count;
}

bool etch_sheet_has_all(const etch_sheet *t, const char *const *names)
{
    while (*names && etch_sheet_has(t, *names))
        names++;
    return !*names;
}

etch_cell etch_sheet_cell(const etch_sheet *t, const char *name)
{
    const uint32_t i = column_of(t, name);
    return i < t->column_count ? t->cells[i] : (etch_cell){t->line.text, 0};
}

bool etch_sheet_given(const etch_sheet *t)
{
    return etch_sheet_has(t, "split") && !etch_cell_is(etch_sheet_cell(t, "split"), "calibration");
}

/* ---- rows ---------------------------------------------------------------------------------------------- */

bool etch_sheet_begin(etch_sheet *t, etch_arena *arena, const etch_source *source, etch_diags *diags)
{
    *t = (etch_sheet){.arena = arena, .diags = diags, .source = source};
    if (!next_line(t)) {
        etch_error(diags, ETCH_E_TABLE_COLUMNS, (etch_span){0, 0}, "'%s' has no line of columns",
                   source->path);
        return false;
    }
    t->mark = memchr(t->line.text, '\t', t->line.length) ? '\t' : ',';
    if (split(t, t->names, &t->column_count))
        return true;
    etch_error(diags, ETCH_E_TABLE_COLUMNS, etch_sheet_span(t, t->line), "a table has %d columns at most",
               (int)ETCH_SHEET_COLUMNS);
    return false;
}

bool etch_sheet_next(etch_sheet *t, bool *fits)
{
    if (!next_line(t))
        return false;
    *fits = split(t, t->cells, &t->cell_count) && t->cell_count == t->column_count;
    if (!*fits)
        etch_error(t->diags, ETCH_E_TABLE_ROW, etch_sheet_span(t, t->line),
                   "the table has %u columns, this row %u", t->column_count, t->cell_count);
    return true;
}

bool etch_sheet_refuse(const etch_sheet *t, etch_cell at, const char *name, const char *what)
{
    etch_error(t->diags, ETCH_E_TABLE_ROW, etch_sheet_span(t, at.length ? at : t->line),
               "the column '%s' has %s", name, what);
    return false;
}

/* The exponent of a number, "e+04", from `i` on; false where it is none. */
static bool read_exponent(etch_cell at, uint32_t i, int32_t *power)
{
    enum { MOST = 99 };
    int32_t value = 0;
    const bool minus = i < at.length && at.text[i] == '-';
    i += minus || (i < at.length && at.text[i] == '+');
    bool fits = i < at.length;
    for (; fits && i < at.length; i++) {
        fits = at.text[i] >= '0' && at.text[i] <= '9' && value <= MOST;
        value = value * 10 + (at.text[i] - '0');
    }
    *power += minus ? -value : value;
    return fits && value <= MOST;
}

bool etch_sheet_time(const etch_sheet *t, const char *name, int32_t power, const char *unit, double *out)
{
    enum { MOST_DIGITS = 18 };
    const etch_cell at = etch_sheet_cell(t, name);
    int64_t digits = 0;
    uint32_t i = 0;
    bool point = false, fits = at.length > 0 && at.length <= MOST_DIGITS;
    for (; fits && i < at.length && at.text[i] != 'e' && at.text[i] != 'E'; i++) {
        if (at.text[i] == '.' && !point) {
            point = true;
            continue;
        }
        fits = at.text[i] >= '0' && at.text[i] <= '9';
        digits = digits * 10 + (at.text[i] - '0');
        power -= point;
    }
    if (fits && i < at.length)
        fits = read_exponent(at, i + 1, &power);
    if (!fits || digits <= 0)
        return etch_sheet_refuse(t, at, name, etch_text(t->arena, "no decimal number of %s above 0", unit));
    *out = etch_decimal_double(etch_decimal_of(digits, power));
    return true;
}
