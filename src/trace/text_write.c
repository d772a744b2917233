/* Messages as lines of text. */
#include "trace/text_int.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- values -------------------------------------------------------------------------------------------- */

/* Where the locale has another sign, it is replaced by a point. */
void etch_text_double(etch_buf *out, double number)
{
    char text[40];
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, number);
        if (digits == 17 || strtod(text, NULL) == number)
            break;
    }
    if (strpbrk(text, "nN") == NULL) /* nan, inf */
        for (char *at = text; *at; at++)
            if (!strchr("0123456789+-e", *at))
                *at = '.';
    etch_buf_puts(out, text);
}

static bool is_plain(unsigned char byte)
{
    return byte >= 0x20 && byte != 0x7f && byte != '"' && byte != '\\';
}

/* Bytes from 0x80 on stay as they are in text that is UTF-8. */
static void add_quoted(etch_buf *out, etch_trace_text text, bool utf8)
{
    size_t start = 0;
    etch_buf_puts(out, "\"");
    for (size_t i = 0; i < text.length; i++) {
        unsigned char byte = (unsigned char)text.at[i];
        if (is_plain(byte) && (utf8 || byte < 0x80))
            continue;
        etch_buf_add(out, text.at + start, i - start);
        start = i + 1;
        if (byte == '"' || byte == '\\')
            etch_buf_printf(out, "\\%c", byte);
        else if (byte == '\n')
            etch_buf_puts(out, "\\n");
        else
            etch_buf_printf(out, "\\x%02x", byte);
    }
    if (start < text.length)
        etch_buf_add(out, text.at + start, text.length - start);
    etch_buf_puts(out, "\"");
}

void etch_text_quoted(etch_buf *out, etch_trace_text text)
{
    add_quoted(out, text, true);
}

void etch_text_escaped(etch_buf *out, etch_trace_text text)
{
    add_quoted(out, text, false);
}

void etch_text_value(etch_buf *out, etch_chakra_scalar scalar, const etch_trace_value *value)
{
    switch (scalar) {
    case ETCH_SCALAR_DOUBLE:
    case ETCH_SCALAR_FLOAT:
        etch_text_double(out, value->number);
        break;
    case ETCH_SCALAR_UINT64:
    case ETCH_SCALAR_FIXED64:
        etch_buf_printf(out, "%" PRIu64, (uint64_t)value->integer);
        break;
    case ETCH_SCALAR_BOOL:
        etch_buf_puts(out, value->integer ? "true" : "false");
        break;
    case ETCH_SCALAR_STRING:
        etch_text_quoted(out, value->text);
        break;
    case ETCH_SCALAR_BYTES:
        etch_text_escaped(out, value->text);
        break;
    default:
        etch_buf_printf(out, "%" PRId64, value->integer);
        break;
    }
}

/* ---- attributes ---------------------------------------------------------------------------------------- */

static bool is_word(etch_trace_text text)
{
    for (size_t i = 0; i < text.length; i++) {
        char c = text.at[i];
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
        if (!letter && (i == 0 || c < '0' || c > '9'))
            return false;
    }
    return text.length > 0;
}

static void add_attr(etch_buf *out, const etch_trace_attr *attr)
{
    const char *kind = etch_chakra_kind_name(attr->kind);
    etch_buf_printf(out, "  %s ", kind ? kind : "no_value");
    if (is_word(attr->name))
        etch_buf_add(out, attr->name.at, attr->name.length);
    else
        etch_text_quoted(out, attr->name);
    if (kind)
        etch_buf_puts(out, " =");
    for (uint32_t i = 0; i < attr->count; i++) {
        etch_buf_puts(out, " ");
        etch_text_value(out, etch_chakra_scalar_of(attr->kind), &attr->values[i]);
    }
    if (attr->doc.length > 0) {
        etch_buf_puts(out, " doc ");
        etch_text_quoted(out, attr->doc);
    }
    etch_buf_puts(out, "\n");
}

static void add_attrs(etch_buf *out, const etch_trace_attr *attrs, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        add_attr(out, &attrs[i]);
}

/* ---- messages ------------------------------------------------------------------------------------------ */

static void add_number(etch_buf *out, const char *name, uint64_t value)
{
    if (value > 0)
        etch_buf_printf(out, "  %s %" PRIu64 "\n", name, value);
}

static void add_deps(etch_buf *out, const char *name, const uint64_t *deps, uint32_t count)
{
    if (count == 0)
        return;
    etch_buf_printf(out, "  %s", name);
    for (uint32_t i = 0; i < count; i++)
        etch_buf_printf(out, " %" PRIu64, deps[i]);
    etch_buf_puts(out, "\n");
}

static void add_io(etch_buf *out, const char *name, const etch_trace_io *io)
{
    if (!io->present)
        return;
    const etch_trace_text parts[] = {io->values, io->shapes, io->types};
    etch_buf_printf(out, "  %s", name);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        etch_buf_puts(out, " ");
        etch_text_quoted(out, parts[i]);
    }
    etch_buf_puts(out, "\n");
}

void etch_text_metadata(etch_buf *out, const etch_trace_metadata *metadata)
{
    etch_buf_puts(out, "metadata ");
    etch_text_quoted(out, metadata->version);
    etch_buf_puts(out, "\n");
    add_attrs(out, metadata->attrs, metadata->attr_count);
}

void etch_text_node(etch_buf *out, const etch_trace_node *node)
{
    const char *type = etch_chakra_type_brief(node->type);
    etch_buf_printf(out, "node %" PRIu64 " ", node->id);
    if (type)
        etch_buf_puts(out, type);
    else
        etch_buf_printf(out, "%" PRId32, node->type);
    etch_buf_puts(out, " ");
    etch_text_quoted(out, node->name);
    etch_buf_puts(out, "\n");
    add_deps(out, "ctrl_deps", node->ctrl_deps, node->ctrl_dep_count);
    add_deps(out, "data_deps", node->data_deps, node->data_dep_count);
    add_number(out, "start_time_micros", node->start_time);
    add_number(out, "duration_micros", node->duration);
    add_io(out, "inputs", &node->inputs);
    add_io(out, "outputs", &node->outputs);
    add_attrs(out, node->attrs, node->attr_count);
}

/* ---- anything else ------------------------------------------------------------------------------------- */

void etch_text_bytes(etch_buf *out, const uint8_t *bytes, size_t length)
{
    static const char digits[] = "0123456789abcdef";
    enum { OF_LINE = 32 };
    for (size_t at = 0; at < length; at += OF_LINE) {
        char line[3 * OF_LINE];
        size_t count = length - at < OF_LINE ? length - at : OF_LINE;
        for (size_t i = 0; i < count; i++) {
            line[3 * i] = ' ';
            line[3 * i + 1] = digits[bytes[at + i] >> 4];
            line[3 * i + 2] = digits[bytes[at + i] & 15];
        }
        etch_buf_puts(out, "bytes");
        etch_buf_add(out, line, 3 * count);
        etch_buf_puts(out, "\n");
    }
}

/* Only ASCII: other bytes need not be UTF-8. */
static bool is_printable(const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if ((unsigned char)text[i] < 0x20 || (unsigned char)text[i] >= 0x7f)
            return false;
    return true;
}

void etch_text_lines(etch_buf *out, const char *text, size_t length)
{
    while (length > 0) {
        const char *end = memchr(text, '\n', length);
        size_t taken = end ? (size_t)(end - text) + 1 : length;
        if (end && is_printable(text, taken - 1)) {
            etch_buf_puts(out, "| ");
            etch_buf_add(out, text, taken);
        } else {
            etch_text_bytes(out, (const uint8_t *)text, taken);
        }
        text += taken;
        length -= taken;
    }
}
