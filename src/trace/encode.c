/* The canonical encoding of what the reader yields: fields in the order of their numbers, shortest varints,
 * packed lists, defaults left out. */
#include "trace/text_int.h"
#include "trace/trace_int.h"

#include <string.h>

void etch_put_varint(etch_buf *out, uint64_t value)
{
    char bytes[10];
    size_t length = 0;
    for (; value >= 0x80; value >>= 7)
        bytes[length++] = (char)(uint8_t)(value | 0x80);
    bytes[length++] = (char)(uint8_t)value;
    etch_buf_add(out, bytes, length);
}

size_t etch_varint_size(uint64_t value)
{
    size_t size = 1;
    for (; value >= 0x80; value >>= 7)
        size++;
    return size;
}

static void put_tag(etch_buf *out, uint32_t field, uint32_t wire)
{
    etch_put_varint(out, (uint64_t)field << 3 | wire);
}

static void put_number(etch_buf *out, uint32_t field, uint64_t value)
{
    if (value == 0)
        return;
    put_tag(out, field, ETCH_WIRE_VARINT);
    etch_put_varint(out, value);
}

static void put_bytes(etch_buf *out, uint32_t field, const char *bytes, size_t length)
{
    put_tag(out, field, ETCH_WIRE_BYTES);
    etch_put_varint(out, length);
    etch_buf_add(out, bytes, length);
}

static void put_text(etch_buf *out, uint32_t field, etch_trace_text text)
{
    if (text.length > 0)
        put_bytes(out, field, text.at, text.length);
}

static void put_fixed(etch_buf *out, uint64_t value, size_t size)
{
    char bytes[8];
    for (size_t i = 0; i < size; i++)
        bytes[i] = (char)(uint8_t)(value >> 8 * i);
    etch_buf_add(out, bytes, size);
}

/* ---- values -------------------------------------------------------------------------------------------- */

static uint64_t double_bits(double number)
{
    uint64_t bits;
    memcpy(&bits, &number, sizeof bits);
    return bits;
}

static uint64_t float_bits(double number)
{
    float narrow = (float)number;
    uint32_t bits;
    memcpy(&bits, &narrow, sizeof bits);
    return bits;
}

/* A value of any kind but text, without its tag. */
static void put_scalar(etch_buf *out, etch_chakra_scalar scalar, const etch_trace_value *value)
{
    const uint64_t bits = (uint64_t)value->integer;
    const uint64_t sign = value->integer < 0 ? UINT64_MAX : 0;
    switch (scalar) {
    case ETCH_SCALAR_DOUBLE:
        put_fixed(out, double_bits(value->number), 8);
        break;
    case ETCH_SCALAR_FLOAT:
        put_fixed(out, float_bits(value->number), 4);
        break;
    case ETCH_SCALAR_FIXED64:
    case ETCH_SCALAR_SFIXED64:
        put_fixed(out, bits, 8);
        break;
    case ETCH_SCALAR_FIXED32:
    case ETCH_SCALAR_SFIXED32:
        put_fixed(out, bits, 4);
        break;
    case ETCH_SCALAR_SINT32:
    case ETCH_SCALAR_SINT64:
        etch_put_varint(out, bits << 1 ^ sign);
        break;
    default:
        etch_put_varint(out, bits);
        break;
    }
}

/* The body of a list: its texts one by one, anything else packed. */
static void put_list(etch_buf *out, etch_buf *spare, etch_chakra_scalar scalar, const etch_trace_attr *attr)
{
    const size_t start = spare->length;
    for (uint32_t i = 0; i < attr->count; i++) {
        if (etch_wire_of(scalar) == ETCH_WIRE_BYTES)
            put_bytes(out, 1, attr->values[i].text.at, attr->values[i].text.length);
        else
            put_scalar(spare, scalar, &attr->values[i]);
    }
    if (spare->length > start)
        put_bytes(out, 1, spare->text + start, spare->length - start);
    spare->length = start;
}

static void put_value(etch_encoder *e, etch_buf *out, const etch_trace_attr *attr)
{
    const etch_chakra_scalar scalar = etch_chakra_scalar_of(attr->kind);
    if (etch_chakra_is_list(attr->kind)) {
        e->list.length = 0;
        put_list(&e->list, &e->packed, scalar, attr);
        put_bytes(out, attr->kind, e->list.text, e->list.length);
    } else if (etch_wire_of(scalar) == ETCH_WIRE_BYTES) {
        put_bytes(out, attr->kind, attr->values[0].text.at, attr->values[0].text.length);
    } else {
        put_tag(out, attr->kind, etch_wire_of(scalar));
        put_scalar(out, scalar, &attr->values[0]);
    }
}

void etch_encode_attr(etch_encoder *e, etch_buf *out, uint32_t field, const etch_trace_attr *attr)
{
    e->attr.length = 0;
    put_text(&e->attr, ETCH_FIELD_ATTR_NAME, attr->name);
    put_text(&e->attr, ETCH_FIELD_ATTR_DOC, attr->doc);
    if (attr->kind != ETCH_KIND_NONE)
        put_value(e, &e->attr, attr);
    put_bytes(out, field, e->attr.text, e->attr.length);
}

/* ---- messages ------------------------------------------------------------------------------------------ */

static void put_deps(etch_buf *out, uint32_t field, const uint64_t *deps, uint32_t count)
{
    size_t size = 0;
    if (count == 0)
        return;
    for (uint32_t i = 0; i < count; i++)
        size += etch_varint_size(deps[i]);
    put_tag(out, field, ETCH_WIRE_BYTES);
    etch_put_varint(out, size);
    for (uint32_t i = 0; i < count; i++)
        etch_put_varint(out, deps[i]);
}

static void put_io(etch_encoder *e, etch_buf *out, uint32_t field, const etch_trace_io *io)
{
    if (!io->present)
        return;
    e->attr.length = 0;
    put_text(&e->attr, ETCH_FIELD_IO_VALUES, io->values);
    put_text(&e->attr, ETCH_FIELD_IO_SHAPES, io->shapes);
    put_text(&e->attr, ETCH_FIELD_IO_TYPES, io->types);
    put_bytes(out, field, e->attr.text, e->attr.length);
}

void etch_encode_metadata(etch_encoder *e, etch_buf *out, const etch_trace_metadata *metadata)
{
    put_text(out, ETCH_FIELD_VERSION, metadata->version);
    for (uint32_t i = 0; i < metadata->attr_count; i++)
        etch_encode_attr(e, out, ETCH_FIELD_METADATA_ATTR, &metadata->attrs[i]);
}

void etch_encode_node(etch_encoder *e, etch_buf *out, const etch_trace_node *node)
{
    put_number(out, ETCH_FIELD_ID, node->id);
    put_text(out, ETCH_FIELD_NAME, node->name);
    put_number(out, ETCH_FIELD_TYPE, (uint64_t)(int64_t)node->type);
    put_deps(out, ETCH_FIELD_CTRL_DEPS, node->ctrl_deps, node->ctrl_dep_count);
    put_deps(out, ETCH_FIELD_DATA_DEPS, node->data_deps, node->data_dep_count);
    put_number(out, ETCH_FIELD_START_TIME, node->start_time);
    put_number(out, ETCH_FIELD_DURATION, node->duration);
    put_io(e, out, ETCH_FIELD_INPUTS, &node->inputs);
    put_io(e, out, ETCH_FIELD_OUTPUTS, &node->outputs);
    for (uint32_t i = 0; i < node->attr_count; i++)
        etch_encode_attr(e, out, ETCH_FIELD_ATTR, &node->attrs[i]);
}

void etch_encoder_begin(etch_encoder *encoder, etch_arena *arena)
{
    *encoder = (etch_encoder){.attr = {.arena = arena}, .list = {.arena = arena}, .packed = {.arena = arena}};
    etch_buf_puts(&encoder->attr, "");
    etch_buf_puts(&encoder->list, "");
    etch_buf_puts(&encoder->packed, "");
}
