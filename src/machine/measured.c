/* Tables of kernels and their microseconds. */
#include "machine/sheet_int.h"

#include <string.h>

#include "graph/graph.h"

/* ---- values -------------------------------------------------------------------------------------------- */

/* A whole number from 1 to 2^32 - 1: products of two of them fit in 64 bits. */
static bool read_count(const etch_sheet *t, const char *name, uint64_t *out)
{
    const etch_cell at = etch_sheet_cell(t, name);
    uint64_t value = 0;
    for (uint32_t i = 0; i < at.length && value <= UINT32_MAX; i++) {
        if (at.text[i] < '0' || at.text[i] > '9')
            return etch_sheet_refuse(t, at, name, "no whole number");
        value = value * 10 + (uint64_t)(at.text[i] - '0');
    }
    if (value == 0 || value > UINT32_MAX)
        return etch_sheet_refuse(t, at, name, "no whole number from 1 to 4294967295");
    *out = value;
    return true;
}

static bool read_bytes(const etch_sheet *t, uint64_t *out)
{
    const etch_cell at = etch_sheet_cell(t, "bytes");
    uint64_t value = 0;
    bool fits = at.length > 0 && at.length < 19;
    for (uint32_t i = 0; fits && i < at.length; i++) {
        fits = at.text[i] >= '0' && at.text[i] <= '9';
        value = value * 10 + (uint64_t)(at.text[i] - '0');
    }
    if (!fits || value == 0)
        return etch_sheet_refuse(t, at, "bytes", "no whole number of bytes above 0");
    *out = value;
    return true;
}

/* NULL where the cell is empty. */
static bool read_dtype(const etch_sheet *t, const char *name, const char **out)
{
    const etch_cell at = etch_sheet_cell(t, name);
    *out = NULL;
    for (int i = 0; i < ETCH_DTYPE_COUNT; i++)
        if (etch_cell_is(at, etch_dtype_name((etch_dtype)i))) {
            *out = etch_dtype_name((etch_dtype)i);
            return true;
        }
    return at.length == 0 || etch_sheet_refuse(t, at, name, "no dtype of the language");
}

static bool read_op(const etch_sheet *t, etch_node_collective *out)
{
    const etch_cell at = etch_sheet_cell(t, "op");
    for (int i = 0; i < ETCH_NODE_COLLECTIVES; i++)
        if (etch_cell_is(at, etch_node_collective_name((etch_node_collective)i))) {
            *out = (etch_node_collective)i;
            return true;
        }
    return etch_sheet_refuse(t, at, "op", "none of all_reduce, all_gather, reduce_scatter, all_to_all");
}

/* One of two words; the first one where there is no such column. */
static bool read_word(const etch_sheet *t, const char *name, const char *no, const char *yes, bool *out)
{
    const etch_cell at = etch_sheet_cell(t, name);
    *out = etch_cell_is(at, yes);
    if (*out || etch_cell_is(at, no) || !etch_sheet_has(t, name))
        return true;
    return etch_sheet_refuse(t, at, name, etch_text(t->arena, "neither '%s' nor '%s'", no, yes));
}

static bool read_attention(const etch_sheet *t, etch_kernel_call *kernel)
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
        return etch_sheet_refuse(t, etch_sheet_cell(t, "queries"), "queries",
                                 "more queries than there are keys");
    return !etch_sheet_has(t, "value_dim") || read_count(t, "value_dim", &kernel->value_dim);
}

static bool read_kernel(const etch_sheet *t, etch_kernel_call *kernel)
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

/* What the columns are of. */
static bool choose_kind(const etch_sheet *t, const etch_device *device, etch_kernel_kind *kind)
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
        if (!etch_sheet_has_all(t, kinds[i].names))
            continue;
        const bool array = kinds[i].kind == ETCH_KERNEL_PRODUCT && device->rows > 0;
        *kind = array ? ETCH_KERNEL_SYSTOLIC : kinds[i].kind;
        return true;
    }
    etch_diag *diag = etch_error(t->diags, ETCH_E_TABLE_COLUMNS, etch_sheet_span(t, t->line),
                                 "these columns are of no kernel that can be fitted");
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        etch_buf names = {.arena = t->arena};
        for (int k = 0; kinds[i].names[k]; k++)
            etch_buf_printf(&names, "%s%s", k ? ", " : "", kinds[i].names[k]);
        etch_help(diag, "%s have the columns %s", etch_kernel_kind_name(kinds[i].kind), names.text);
    }
    etch_help(diag, "steps, of which the factors of a stack are fitted, have the columns spec, seconds");
    return false;
}

static void read_row(const etch_sheet *t, const etch_device *device, etch_kernel_kind kind,
                     etch_measurements *out)
{
    if (etch_sheet_has(t, "machine") && !etch_cell_is(etch_sheet_cell(t, "machine"), device->name))
        return;
    etch_measured row = {.kernel = {.kind = kind}, .line = t->number, .calibrates = !etch_sheet_given(t)};
    if (etch_sheet_time(t, "us", -6, "microseconds", &row.seconds) && read_kernel(t, &row.kernel))
        ETCH_PUSH(t->arena, out, row);
}

bool etch_measurements_read(etch_arena *arena, const etch_source *source, const etch_device *device,
                            etch_diags *diags, etch_kernel_kind *kind, etch_measurements *out)
{
    etch_sheet *t = ETCH_NEW(arena, etch_sheet);
    bool fits;
    if (!etch_sheet_begin(t, arena, source, diags) || !choose_kind(t, device, kind))
        return false;
    const uint32_t errors = etch_error_count(diags);
    while (etch_sheet_next(t, &fits))
        if (fits)
            read_row(t, device, *kind, out);
    if (out->count == 0 && etch_error_count(diags) == errors)
        etch_error(diags, ETCH_E_FIT, (etch_span){0, 0}, "'%s' has no row of the machine '%s'", source->path,
                   device->name);
    return etch_error_count(diags) == errors;
}
