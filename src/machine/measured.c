/* Tables of measurements: a line of names, then a row a line, tabs or commas between. */
#include <string.h>

#include "graph/graph.h"
#include "machine/machine.h"

enum { MOST_COLUMNS = 64 };

/* A piece of the text of the table. */
typedef struct cell {
    const char *text;
    uint32_t length;
} cell;

typedef struct table {
    etch_arena *arena;
    etch_diags *diags;
    const etch_source *source;
    const etch_device *device;
    char mark;
    cell names[MOST_COLUMNS];
    cell cells[MOST_COLUMNS];
    uint32_t column_count, cell_count;
    /* the row that is read */
    cell line;
    uint32_t number;
    etch_kernel_kind kind;
} table;

/* ---- lines and cells ----------------------------------------------------------------------------------- */

static etch_span span_of(const table *t, cell at)
{
    const uint32_t start = t->source->base + (uint32_t)(at.text - t->source->text);
    return (etch_span){start, start + at.length};
}

/* The next line that is no comment and not empty. */
static bool next_line(table *t, uint32_t *at)
{
    while (*at < t->source->length) {
        const char *text = t->source->text + *at;
        const char *end = memchr(text, '\n', t->source->length - *at);
        uint32_t length = end ? (uint32_t)(end - text) : t->source->length - *at;
        *at += length + (end != NULL);
        t->number++;
        length -= length > 0 && text[length - 1] == '\r';
        t->line = (cell){text, length};
        if (length > 0 && text[0] != '#')
            return true;
    }
    return false;
}

/* False where a line has more cells than a table may have. */
static bool split(const table *t, cell *cells, uint32_t *count)
{
    const char *at = t->line.text, *end = at + t->line.length;
    for (*count = 0; *count < MOST_COLUMNS; ++*count) {
        const char *stop = memchr(at, t->mark, (size_t)(end - at));
        stop = stop ? stop : end;
        cells[*count] = (cell){at, (uint32_t)(stop - at)};
        if (stop == end) {
            ++*count;
            return true;
        }
        at = stop + 1;
    }
    return false;
}

static bool is_text(cell at, const char *text)
{
    return strlen(text) == at.length && memcmp(at.text, text, at.length) == 0;
}

/* The index of a column; the number of columns where there is none. */
static uint32_t column_of(const table *t, const char *name)
{
    uint32_t i = 0;
    while (i < t->column_count && !is_text(t->names[i], name))
        i++;
    return i;
}

static bool has(const table *t, const char *name)
{
    return column_of(t, name) < t->column_count;
}

/* The cell of the row in a column; empty where there is no such column. */
static cell cell_of(const table *t, const char *name)
{
    const uint32_t i = column_of(t, name);
    return i < t->column_count ? t->cells[i] : (cell){t->line.text, 0};
}

/* ---- values -------------------------------------------------------------------------------------------- */

static bool refuse(const table *t, cell at, const char *name, const char *what)
{
    etch_error(t->diags, ETCH_E_TABLE_ROW, span_of(t, at.length ? at : t->line), "the column '%s' has %s",
               name, what);
    return false;
}

/* A whole number from 1 to 2^32 - 1: products of two of them fit in 64 bits. */
static bool read_count(const table *t, const char *name, uint64_t *out)
{
    const cell at = cell_of(t, name);
    uint64_t value = 0;
    for (uint32_t i = 0; i < at.length && value <= UINT32_MAX; i++) {
        if (at.text[i] < '0' || at.text[i] > '9')
            return refuse(t, at, name, "no whole number");
        value = value * 10 + (uint64_t)(at.text[i] - '0');
    }
    if (value == 0 || value > UINT32_MAX)
        return refuse(t, at, name, "no whole number from 1 to 4294967295");
    *out = value;
    return true;
}

static bool read_bytes(const table *t, uint64_t *out)
{
    const cell at = cell_of(t, "bytes");
    uint64_t value = 0;
    bool fits = at.length > 0 && at.length < 19;
    for (uint32_t i = 0; fits && i < at.length; i++) {
        fits = at.text[i] >= '0' && at.text[i] <= '9';
        value = value * 10 + (uint64_t)(at.text[i] - '0');
    }
    if (!fits || value == 0)
        return refuse(t, at, "bytes", "no whole number of bytes above 0");
    *out = value;
    return true;
}

/* The exponent of a number, "e+04", from `i` on; false where it is none. */
static bool read_exponent(cell at, uint32_t i, int32_t *power)
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

/* Microseconds: a decimal, with or without an exponent. */
static bool read_time(const table *t, double *out)
{
    enum { MOST_DIGITS = 18 };
    const cell at = cell_of(t, "us");
    int64_t digits = 0;
    int32_t power = 0;
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
        return refuse(t, at, "us", "no decimal number of microseconds above 0");
    *out = etch_decimal_double(etch_decimal_of(digits, power - 6));
    return true;
}

/* NULL where the cell is empty. */
static bool read_dtype(const table *t, const char *name, const char **out)
{
    const cell at = cell_of(t, name);
    *out = NULL;
    for (int i = 0; i < ETCH_DTYPE_COUNT; i++)
        if (is_text(at, etch_dtype_name((etch_dtype)i))) {
            *out = etch_dtype_name((etch_dtype)i);
            return true;
        }
    return at.length == 0 || refuse(t, at, name, "no dtype of the language");
}

static bool read_op(const table *t, etch_node_collective *out)
{
    const cell at = cell_of(t, "op");
    for (int i = 0; i < ETCH_NODE_COLLECTIVES; i++)
        if (is_text(at, etch_node_collective_name((etch_node_collective)i))) {
            *out = (etch_node_collective)i;
            return true;
        }
    return refuse(t, at, "op", "none of all_reduce, all_gather, reduce_scatter, all_to_all");
}

/* One of two words; the first one where there is no such column. */
static bool read_word(const table *t, const char *name, const char *no, const char *yes, bool *out)
{
    const cell at = cell_of(t, name);
    *out = is_text(at, yes);
    if (*out || is_text(at, no) || !has(t, name))
        return true;
    return refuse(t, at, name, etch_text(t->arena, "neither '%s' nor '%s'", no, yes));
}

static bool read_attention(const table *t, etch_kernel_call *kernel)
{
    bool full;
    if (!read_count(t, "batch", &kernel->batch) || !read_count(t, "queries", &kernel->queries) ||
        !read_count(t, "keys", &kernel->keys) || !read_count(t, "heads", &kernel->heads) ||
        !read_count(t, "kv_heads", &kernel->kv_heads) || !read_count(t, "head_dim", &kernel->head_dim) ||
        !read_word(t, "phase", "forward", "backward", &kernel->backward) ||
        !read_word(t, "pairs", "causal", "all", &full))
        return false;
    kernel->causal = !full;
    kernel->value_dim = kernel->head_dim;
    if (kernel->queries > kernel->keys)
        return refuse(t, cell_of(t, "queries"), "queries", "more queries than there are keys");
    return !has(t, "value_dim") || read_count(t, "value_dim", &kernel->value_dim);
}

static bool read_kernel(const table *t, etch_kernel_call *kernel)
{
    if (!read_dtype(t, "dtype", &kernel->dtype))
        return false;
    kernel->dtype = kernel->dtype ? kernel->dtype : "bf16";
    switch (kernel->kind) {
    case ETCH_KERNEL_ATTENTION:
        return read_attention(t, kernel);
    case ETCH_KERNEL_COLLECTIVE:
        return read_op(t, &kernel->op) && read_count(t, "ranks", &kernel->ranks) &&
               read_bytes(t, &kernel->bytes);
    case ETCH_KERNEL_ELEMENTWISE:
        return read_bytes(t, &kernel->bytes);
    case ETCH_KERNEL_GROUPED:
        if (!read_count(t, "groups", &kernel->groups) ||
            !read_word(t, "gives", "rows", "weights", &kernel->weights))
            return false;
        break;
    default:
        break;
    }
    return read_dtype(t, "result", &kernel->result) && read_count(t, "m", &kernel->m) &&
           read_count(t, "n", &kernel->n) && read_count(t, "k", &kernel->k);
}

/* ---- the table ----------------------------------------------------------------------------------------- */

static bool has_all(const table *t, const char *const *names)
{
    while (*names && has(t, *names))
        names++;
    return !*names;
}

/* What the columns are of. */
static bool choose_kind(table *t)
{
    static const struct {
        etch_kernel_kind kind;
        const char *const names[8];
    } kinds[] = {
        {ETCH_KERNEL_ATTENTION, {"us", "batch", "queries", "keys", "heads", "kv_heads", "head_dim"}},
        {ETCH_KERNEL_COLLECTIVE, {"us", "op", "ranks", "bytes"}},
        {ETCH_KERNEL_GROUPED, {"us", "m", "n", "k", "groups"}},
        {ETCH_KERNEL_PRODUCT, {"us", "m", "n", "k"}},
        {ETCH_KERNEL_ELEMENTWISE, {"us", "bytes"}},
    };
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (!has_all(t, kinds[i].names))
            continue;
        const bool array = kinds[i].kind == ETCH_KERNEL_PRODUCT && t->device->rows > 0;
        t->kind = array ? ETCH_KERNEL_SYSTOLIC : kinds[i].kind;
        return true;
    }
    etch_diag *diag = etch_error(t->diags, ETCH_E_TABLE_COLUMNS, span_of(t, t->line),
                                 "these columns are of no kernel that can be fitted");
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        etch_buf names = {.arena = t->arena};
        for (int k = 0; kinds[i].names[k]; k++)
            etch_buf_printf(&names, "%s%s", k ? ", " : "", kinds[i].names[k]);
        etch_help(diag, "%s have the columns %s", etch_kernel_kind_name(kinds[i].kind), names.text);
    }
    return false;
}

static bool read_names(table *t, uint32_t *at)
{
    if (!next_line(t, at)) {
        etch_error(t->diags, ETCH_E_TABLE_COLUMNS, (etch_span){0, 0}, "'%s' has no line of columns",
                   t->source->path);
        return false;
    }
    t->mark = memchr(t->line.text, '\t', t->line.length) ? '\t' : ',';
    if (split(t, t->names, &t->column_count))
        return choose_kind(t);
    etch_error(t->diags, ETCH_E_TABLE_COLUMNS, span_of(t, t->line), "a table has %d columns at most",
               (int)MOST_COLUMNS);
    return false;
}

static bool read_row(table *t, etch_measurements *out)
{
    if (!split(t, t->cells, &t->cell_count) || t->cell_count != t->column_count) {
        etch_error(t->diags, ETCH_E_TABLE_ROW, span_of(t, t->line), "the table has %u columns, this row %u",
                   t->column_count, t->cell_count);
        return false;
    }
    if (has(t, "machine") && !is_text(cell_of(t, "machine"), t->device->name))
        return true;
    etch_measured row = {.kernel = {.kind = t->kind}, .line = t->number};
    row.calibrates = !has(t, "split") || is_text(cell_of(t, "split"), "calibration");
    if (!read_time(t, &row.seconds) || !read_kernel(t, &row.kernel))
        return false;
    ETCH_PUSH(t->arena, out, row);
    return true;
}

bool etch_measurements_read(etch_arena *arena, const etch_source *source, const etch_device *device,
                            etch_diags *diags, etch_kernel_kind *kind, etch_measurements *out)
{
    table *t = ETCH_NEW(arena, table);
    uint32_t at = 0;
    *t = (table){.arena = arena, .diags = diags, .source = source, .device = device};
    if (!read_names(t, &at))
        return false;
    *kind = t->kind;
    const uint32_t errors = etch_error_count(diags);
    while (next_line(t, &at))
        (void)read_row(t, out);
    if (out->count == 0 && etch_error_count(diags) == errors)
        etch_error(diags, ETCH_E_FIT, (etch_span){0, 0}, "'%s' has no row of the machine '%s'", source->path,
                   device->name);
    return etch_error_count(diags) == errors;
}
