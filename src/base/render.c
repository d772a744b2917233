/* Diagnostics as text for a person. */
#include "base/base_int.h"

#include <string.h>

enum {
    /* of a source line, before it is cut */
    LINE_COLUMNS = 100,
    /* characters shown before the span in a line that is cut */
    BEFORE_SPAN = 40,
    TAB_COLUMNS = 4,
    REPLACEMENT = 0xFFFD
};

/* ---- characters ---------------------------------------------------------------------------------------- */

/* Reads one character of UTF-8 from `length` > 0 bytes; a broken one is a single byte, as U+FFFD. */
static uint32_t read_character(const char *text, size_t length, size_t *used)
{
    static const struct {
        unsigned char mask, lead;
        uint32_t least;
    } forms[] = {{0x80, 0x00, 0}, {0xE0, 0xC0, 0x80}, {0xF0, 0xE0, 0x800}, {0xF8, 0xF0, 0x10000}};
    const unsigned char *bytes = (const unsigned char *)text;
    *used = 1;
    for (size_t more = 0; more < 4 && more < length; more++) {
        if ((bytes[0] & forms[more].mask) != forms[more].lead)
            continue;
        uint32_t code = bytes[0] & (unsigned char)~forms[more].mask;
        for (size_t i = 1; i <= more; i++) {
            if ((bytes[i] & 0xC0) != 0x80)
                return REPLACEMENT;
            code = code << 6 | (bytes[i] & 0x3Fu);
        }
        bool surrogate = code >= 0xD800 && code <= 0xDFFF;
        if (code < forms[more].least || code > 0x10FFFF || surrogate)
            return REPLACEMENT;
        *used = more + 1;
        return code;
    }
    return REPLACEMENT;
}

typedef struct range {
    uint32_t first, last;
} range;

static bool in_ranges(uint32_t code, const range *ranges, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (code >= ranges[i].first && code <= ranges[i].last)
            return true;
    }
    return false;
}

#define IN(code, ranges) in_ranges((code), (ranges), sizeof(ranges) / sizeof *(ranges))

/* Characters that would move the cursor or turn the direction of what follows. */
static bool is_unsafe(uint32_t code)
{
    static const range unsafe[] = {
        {0x00, 0x1F}, {0x7F, 0x9F}, {0x200E, 0x200F}, {0x2028, 0x202E}, {0x2066, 0x2069}};
    return IN(code, unsafe);
}

/* Columns of a terminal that a character takes: the scripts that specs and paths are likely to hold. */
static unsigned character_columns(uint32_t code)
{
    static const range none[] = {{0x0300, 0x036F}, {0x0483, 0x0489}, {0x0591, 0x05BD},  {0x064B, 0x065F},
                                 {0x0E31, 0x0E31}, {0x0E34, 0x0E3A}, {0x0E47, 0x0E4E},  {0x1AB0, 0x1AFF},
                                 {0x1DC0, 0x1DFF}, {0x200B, 0x200D}, {0x20D0, 0x20FF},  {0xFE00, 0xFE0F},
                                 {0xFE20, 0xFE2F}, {0xFEFF, 0xFEFF}, {0xE0100, 0xE01EF}};
    static const range two[] = {{0x1100, 0x115F},   {0x2E80, 0x303E},  {0x3041, 0x4DBF},   {0x4E00, 0xA4CF},
                                {0xA960, 0xA97F},   {0xAC00, 0xD7A3},  {0xF900, 0xFAFF},   {0xFE30, 0xFE6F},
                                {0xFF00, 0xFF60},   {0xFFE0, 0xFFE6},  {0x1F300, 0x1F64F}, {0x1F680, 0x1F6FF},
                                {0x1F900, 0x1F9FF}, {0x20000, 0x3FFFD}};
    if (code < 0x300)
        return 1;
    if (IN(code, none))
        return 0;
    return IN(code, two) ? 2 : 1;
}

/* Appends one character made safe for a terminal; `column` counts what it takes. */
static void add_character(etch_buf *out, const char *text, size_t length, uint32_t code, unsigned *column)
{
    if (code == '\t') {
        unsigned columns = TAB_COLUMNS - *column % TAB_COLUMNS;
        etch_buf_printf(out, "%*s", (int)columns, "");
        *column += columns;
    } else if (code == REPLACEMENT || is_unsafe(code)) {
        etch_buf_puts(out, "\xEF\xBF\xBD");
        *column += 1;
    } else {
        etch_buf_add(out, text, length);
        *column += character_columns(code);
    }
}

/* A message or path: one line whatever it holds. */
static void add_clean(etch_buf *out, const char *text)
{
    unsigned column = 0;
    for (size_t length = strlen(text), used; length > 0; text += used, length -= used) {
        uint32_t code = read_character(text, length, &used);
        if (code == '\t')
            etch_buf_puts(out, " ");
        else
            add_character(out, text, used, code, &column);
    }
}

/* ---- the line of a span -------------------------------------------------------------------------------- */

/* What is shown of a line, as offsets within the source. */
typedef struct window {
    uint32_t start, end;
    bool cut_left, cut_right;
} window;

/* The offset where a line that is shown from `start` has taken LINE_COLUMNS, or `end`. */
static uint32_t fill_columns(const char *text, uint32_t start, uint32_t end)
{
    unsigned column = 0;
    size_t used;
    for (uint32_t at = start; at < end; at += (uint32_t)used) {
        uint32_t code = read_character(text + at, end - at, &used);
        column += code == '\t' ? TAB_COLUMNS - column % TAB_COLUMNS : character_columns(code);
        if (column > LINE_COLUMNS)
            return at;
    }
    return end;
}

static uint32_t step_back(const char *text, uint32_t start, uint32_t at, unsigned characters)
{
    while (at > start && characters > 0) {
        at--;
        if (((unsigned char)text[at] & 0xC0) != 0x80)
            characters--;
    }
    return at;
}

static window choose_window(const char *text, etch_span line, uint32_t focus)
{
    window w = {.start = line.start, .end = fill_columns(text, line.start, line.end)};
    if (w.end < line.end) {
        w.start = step_back(text, line.start, focus, BEFORE_SPAN);
        w.end = fill_columns(text, w.start, line.end);
    }
    w.cut_left = w.start > line.start;
    w.cut_right = w.end < line.end;
    return w;
}

/* The source line with a caret at the first and tildes below the other columns of the span. */
static void render_line(etch_buf *out, etch_source_point place, uint32_t span_length)
{
    const char *text = place.entry->source.text;
    etch_span line = etch_source_line(place.entry, place.line);
    uint32_t focus = place.offset < line.end ? place.offset : line.end;
    window w = choose_window(text, line, focus);
    unsigned column = 0, from = 0, to = 0;
    size_t used;

    etch_buf_printf(out, "%5u | %s", place.line + 1, w.cut_left ? "..." : "");
    for (uint32_t at = w.start; at < w.end; at += (uint32_t)used) {
        if (at <= focus)
            from = column;
        uint32_t code = read_character(text + at, w.end - at, &used);
        add_character(out, text + at, used, code, &column);
        if (at < focus || at - focus < span_length)
            to = column;
    }
    if (focus >= w.end)
        from = column;
    etch_buf_printf(out, "%s\n      | %*s^", w.cut_right ? "..." : "", (int)(from + (w.cut_left ? 3 : 0)),
                    "");
    for (unsigned i = from + 1; i < to; i++)
        etch_buf_puts(out, "~");
    etch_buf_puts(out, "\n");
}

/* ---- a diagnostic -------------------------------------------------------------------------------------- */

/* `path:line:column: `, or nothing for nowhere. */
static bool render_place(const etch_diags *diags, etch_buf *out, etch_span span)
{
    uint32_t line, column;
    const etch_source *source = etch_source_at(diags, span, &line, &column);
    if (!source)
        return false;
    add_clean(out, source->path);
    etch_buf_printf(out, ":%u:%u: ", line, column);
    return true;
}

static void render_span(const etch_diags *diags, etch_buf *out, etch_span span)
{
    etch_source_point place = etch_source_place(diags, span.start);
    if (place.entry)
        render_line(out, place, span.end > span.start ? span.end - span.start : 0);
}

static void render_label(const etch_diags *diags, etch_buf *out, const char *kind, const etch_label *label)
{
    if (!render_place(diags, out, label->span))
        etch_buf_puts(out, "  ");
    etch_buf_printf(out, "%s: ", kind);
    add_clean(out, label->message);
    etch_buf_puts(out, "\n");
    render_span(diags, out, label->span);
}

const char *etch_severity_name(etch_severity severity)
{
    static const char *const names[ETCH_SEVERITY_COUNT] = {"error", "warning", "remark"};
    return (unsigned)severity < ETCH_SEVERITY_COUNT ? names[severity] : NULL;
}

static void render_diag(const etch_diags *diags, etch_buf *out, const etch_diag *diag)
{
    render_place(diags, out, diag->span);
    etch_buf_puts(out, etch_severity_name(diag->severity));
    if (diag->code != ETCH_NO_CODE)
        etch_buf_printf(out, "[E%04u]", (unsigned)diag->code);
    etch_buf_puts(out, ": ");
    add_clean(out, diag->message);
    etch_buf_puts(out, "\n");
    render_span(diags, out, diag->span);
    for (const etch_label *note = diag->notes; note; note = note->next)
        render_label(diags, out, "note", note);
    for (const etch_label *help = diag->helps; help; help = help->next)
        render_label(diags, out, "help", help);
}

void etch_diags_render(const etch_diags *diags, etch_buf *out)
{
    for (const etch_diag *diag = diags->first; diag; diag = diag->next)
        render_diag(diags, out, diag);
    for (int severity = ETCH_ERROR; severity <= ETCH_REMARK; severity++) {
        uint32_t count = diags->counts[severity] - diags->repeats[severity];
        if (count > ETCH_KEPT_DIAGS) {
            uint32_t more = count - ETCH_KEPT_DIAGS;
            etch_buf_printf(out, "%u more %s%s not shown\n", more,
                            etch_severity_name((etch_severity)severity), more == 1 ? "" : "s");
        }
    }
}
