/* A dump for programs: a JSON object on a line for each node. */
#include "trace/text_int.h"

#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <string.h>

static void add_escape(etch_buf *out, unsigned char byte)
{
    if (byte == '"' || byte == '\\')
        etch_buf_printf(out, "\\%c", byte);
    else if (byte == '\n')
        etch_buf_puts(out, "\\n");
    else
        etch_buf_printf(out, "\\u%04x", byte);
}

static void add_string(etch_buf *out, etch_trace_text text)
{
    size_t start = 0;
    etch_buf_puts(out, "\"");
    for (size_t i = 0; i < text.length; i++) {
        unsigned char byte = (unsigned char)text.at[i];
        if (byte >= 0x20 && byte != '"' && byte != '\\' && byte != 0x7f)
            continue;
        etch_buf_add(out, text.at + start, i - start);
        add_escape(out, byte);
        start = i + 1;
    }
    if (start < text.length) /* an empty text may be nowhere */
        etch_buf_add(out, text.at + start, text.length - start);
    etch_buf_puts(out, "\"");
}

static void add_plain(etch_buf *out, const char *text)
{
    add_string(out, (etch_trace_text){text, strlen(text)});
}

/* Bytes need not be UTF-8, which JSON is: they are shown as hexadecimal digits. */
static void add_hex(etch_buf *out, etch_trace_text bytes)
{
    etch_buf_puts(out, "\"");
    for (size_t i = 0; i < bytes.length; i++)
        etch_buf_printf(out, "%02x", (unsigned char)bytes.at[i]);
    etch_buf_puts(out, "\"");
}

static void add_double(etch_buf *out, double number)
{
    if (isfinite(number))
        etch_text_double(out, number);
    else
        etch_buf_puts(out, isnan(number) ? "\"nan\"" : number > 0 ? "\"inf\"" : "\"-inf\"");
}

static void add_value(etch_buf *out, etch_chakra_scalar scalar, const etch_trace_value *value)
{
    switch (scalar) {
    case ETCH_SCALAR_DOUBLE:
    case ETCH_SCALAR_FLOAT:
        add_double(out, value->number);
        break;
    case ETCH_SCALAR_STRING:
        add_string(out, value->text);
        break;
    case ETCH_SCALAR_BYTES:
        add_hex(out, value->text);
        break;
    default:
        etch_text_value(out, scalar, value);
        break;
    }
}

static void add_attr(etch_buf *out, const etch_trace_attr *attr)
{
    const bool list = attr->kind != ETCH_KIND_NONE && etch_chakra_is_list(attr->kind);
    add_string(out, attr->name);
    etch_buf_puts(out, list ? ": [" : ": ");
    for (uint32_t i = 0; i < attr->count; i++) {
        if (i > 0)
            etch_buf_puts(out, ", ");
        add_value(out, etch_chakra_scalar_of(attr->kind), &attr->values[i]);
    }
    if (attr->kind == ETCH_KIND_NONE)
        etch_buf_puts(out, "null");
    if (list)
        etch_buf_puts(out, "]");
}

static void add_deps(etch_buf *out, const char *name, const uint64_t *deps, uint32_t count)
{
    etch_buf_printf(out, ", \"%s\": [", name);
    for (uint32_t i = 0; i < count; i++)
        etch_buf_printf(out, "%s%" PRIu64, i > 0 ? ", " : "", deps[i]);
    etch_buf_puts(out, "]");
}

static void add_io(etch_buf *out, const char *name, const etch_trace_io *io)
{
    if (!io->present)
        return;
    etch_buf_printf(out, ", \"%s\": {\"values\": ", name);
    add_string(out, io->values);
    etch_buf_puts(out, ", \"shapes\": ");
    add_string(out, io->shapes);
    etch_buf_puts(out, ", \"types\": ");
    add_string(out, io->types);
    etch_buf_puts(out, "}");
}

static void add_time(etch_buf *out, const char *name, uint64_t value)
{
    if (value > 0)
        etch_buf_printf(out, ", \"%s\": %" PRIu64, name, value);
}

static void add_node(etch_dump *dump, const etch_trace_node *node)
{
    etch_buf *out = &dump->out;
    const char *type = etch_chakra_type_name(node->type);
    etch_buf_puts(out, "{\"file\": ");
    etch_buf_add(out, dump->body.text, dump->body.length);
    if (dump->rank >= 0)
        etch_buf_printf(out, ", \"rank\": %" PRId64, dump->rank);
    etch_buf_printf(out, ", \"id\": %" PRIu64 ", \"name\": ", node->id);
    add_string(out, node->name);
    etch_buf_puts(out, ", \"type\": ");
    if (type)
        add_plain(out, type);
    else
        etch_buf_printf(out, "%" PRId32, node->type);
    add_deps(out, "data_deps", node->data_deps, node->data_dep_count);
    if (node->ctrl_dep_count > 0)
        add_deps(out, "ctrl_deps", node->ctrl_deps, node->ctrl_dep_count);
    add_time(out, "start_time_micros", node->start_time);
    add_time(out, "duration_micros", node->duration);
    add_io(out, "inputs", &node->inputs);
    add_io(out, "outputs", &node->outputs);
    etch_buf_puts(out, ", \"attr\": {");
    for (uint32_t i = 0; i < node->attr_count; i++) {
        if (i > 0)
            etch_buf_puts(out, ", ");
        add_attr(out, &node->attrs[i]);
    }
    etch_buf_puts(out, "}}\n");
}

/* `body` is the name of the file as JSON, for all its nodes. A name that is not UTF-8 gets question marks. */
static void begin_file(etch_dump *dump)
{
    char *name = etch_copy_text(dump->arena, dump->file, strlen(dump->file));
    json_t *probe = json_string(name);
    for (char *at = name; !probe && *at; at++)
        if ((unsigned char)*at >= 0x80)
            *at = '?';
    json_decref(probe);
    dump->body.length = 0;
    add_plain(&dump->body, name);
}

static void add_metadata(etch_dump *dump, const etch_trace_metadata *metadata)
{
    (void)dump;
    (void)metadata;
}

static void finish(etch_dump *dump)
{
    (void)dump;
}

const etch_dump_way etch_dump_as_json = {begin_file, add_metadata, add_node, finish};
