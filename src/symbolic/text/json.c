/* The canonical form as JSON; terms in the order of the other notations. */
#include "symbolic/text/text_int.h"

static void write_sum(etch_sym *sym, etch_expr a, etch_buf *out);

/* A string. Names are UTF-8 already. */
static void write_string(const char *text, etch_buf *out)
{
    etch_buf_puts(out, "\"");
    for (const char *c = text; *c; c++) {
        if (*c == '"' || *c == '\\')
            etch_buf_printf(out, "\\%c", *c);
        else if ((unsigned char)*c < 0x20)
            etch_buf_printf(out, "\\u%04x", (unsigned)(unsigned char)*c);
        else
            etch_buf_add(out, c, 1);
    }
    etch_buf_puts(out, "\"");
}

static void write_coefficient(etch_sym *sym, sym_coef coef, etch_buf *out)
{
    sym_coef den = sym_coef_denominator(sym, coef);
    etch_buf_puts(out, "\"");
    sym_coef_print(sym, sym_coef_numerator(sym, coef), out);
    if (!sym_coef_is_one(den)) {
        etch_buf_puts(out, "/");
        sym_coef_print(sym, den, out);
    }
    etch_buf_puts(out, "\"");
}

static void write_opaque(etch_sym *sym, const sym_power *power, etch_buf *out)
{
    static const char *const ops[] = {[ETCH_SYM_FLOOR] = "floor",
                                      [ETCH_SYM_MAX] = "max",
                                      [ETCH_SYM_SUM] = "sum",
                                      [ETCH_SYM_POW2] = "pow2",
                                      [ETCH_SYM_RECIP] = "recip"};
    etch_buf_printf(out, "{\"op\": \"%s\", ", ops[power->atom->kind]);
    if (power->atom->bound)
        etch_buf_printf(out, "\"level\": %u, ", (unsigned)power->atom->bound->bound_level);
    etch_buf_puts(out, "\"args\": [");
    for (uint32_t i = 0; i < power->atom->count; i++) {
        etch_buf_puts(out, i ? ", " : "");
        write_sum(sym, power->atom->args[i], out);
    }
    etch_buf_printf(out, "], \"power\": %d}", (int)power->exp);
}

static void write_term(etch_sym *sym, const sym_item *it, etch_buf *out)
{
    const sym_mono *mono = it->mono;
    uint32_t variables = 0;
    etch_buf_puts(out, "{\"c\": ");
    write_coefficient(sym, it->coef, out);
    etch_buf_puts(out, ", \"m\": {");
    for (; variables < mono->count && mono->at[variables].atom->kind == ETCH_SYM_VAR; variables++) {
        const sym_power *power = &mono->at[variables];
        etch_buf_puts(out, variables ? ", " : "");
        if (power->atom->name)
            write_string(power->atom->name, out);
        else
            etch_buf_printf(out, "\"#%u\"", (unsigned)power->atom->bound_level);
        etch_buf_printf(out, ": %d", (int)power->exp);
    }
    etch_buf_puts(out, "}");
    for (uint32_t i = variables; i < mono->count; i++) {
        etch_buf_puts(out, i == variables ? ", \"f\": [" : ", ");
        write_opaque(sym, &mono->at[i], out);
    }
    etch_buf_puts(out, variables < mono->count ? "]}" : "}");
}

static void write_sum(etch_sym *sym, etch_expr a, etch_buf *out)
{
    if (out->length > ETCH_SYM_LONGEST_TEXT)
        sym_limit(sym);
    sym_scratch_mark mark = sym_scratch_top(sym);
    sym_items items = sym_terms_in_order(sym, a);
    etch_buf_puts(out, "{\"terms\": [");
    for (uint32_t i = 0; i < items.count; i++) {
        etch_buf_puts(out, i ? ", " : "");
        write_term(sym, &items.at[i], out);
    }
    etch_buf_puts(out, "]}");
    sym_scratch_release(sym, mark);
}

void sym_print_json(etch_sym *sym, etch_expr a, etch_buf *out)
{
    if (a)
        write_sum(sym, a, out);
    else
        etch_buf_puts(out, "null");
}
