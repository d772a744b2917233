/* The protobuf encoding: fields one after the other, each a number with a wire type and what belongs to
 * it. */
#include "trace/trace_int.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { VARINT_BYTES = 10, GROUP_DEPTH = 32 };
#define MOST_TAG UINT32_MAX /* 2^29 - 1 fields of 8 wire types */

/* What is being decoded. The first failure sticks. */
typedef struct decoding {
    etch_wire *wire;
    /* the message */
    const uint8_t *bytes;
    /* of it in the file */
    uint64_t offset;
    etch_trace_error *error;
    etch_status status;
} decoding;

/* Bytes that are still to be read: a message, or a part of one. */
typedef struct span {
    const uint8_t *at, *end;
} span;

typedef struct field {
    /* where its tag is */
    const uint8_t *start;
    uint32_t number;
    uint32_t wire;
    /* varint and fixed */
    uint64_t value;
    /* bytes */
    span payload;
} field;

static bool fail(decoding *d, const uint8_t *at, const char *reason)
{
    if (d->status != ETCH_OK)
        return false;
    d->status = ETCH_EINPUT;
    d->error->offset = d->offset + (uint64_t)(at - d->bytes);
    snprintf(d->error->reason, sizeof d->error->reason, "%s", reason);
    return false;
}

/* ---- fields -------------------------------------------------------------------------------------------- */

int etch_wire_varint(const uint8_t *at, const uint8_t *end, uint64_t *value)
{
    uint64_t sum = 0;
    for (int i = 0; i < VARINT_BYTES; i++) {
        if (at + i == end)
            return 0;
        sum |= (uint64_t)(at[i] & 127) << 7 * i;
        if (at[i] < 128) {
            *value = sum;
            return i == VARINT_BYTES - 1 && at[i] > 1 ? -1 : i + 1;
        }
    }
    return -1;
}

static bool read_long_varint(decoding *d, span *in, uint64_t *value)
{
    const int length = etch_wire_varint(in->at, in->end, value);
    if (length < 0)
        return fail(d, in->at, "a varint is longer than 64 bits");
    if (length == 0)
        return fail(d, in->at, "a message ends within a varint");
    in->at += length;
    return true;
}

/* Most take one byte. */
static inline bool read_varint(decoding *d, span *in, uint64_t *value)
{
    if (in->at == in->end || *in->at >= 128)
        return read_long_varint(d, in, value);
    *value = *in->at++;
    return true;
}

static bool read_fixed(decoding *d, span *in, size_t length, uint64_t *value)
{
    if ((size_t)(in->end - in->at) < length)
        return fail(d, in->at, "a message ends within a fixed number");
    *value = 0;
    for (size_t i = 0; i < length; i++)
        *value |= (uint64_t)in->at[i] << 8 * i;
    in->at += length;
    return true;
}

static bool read_payload(decoding *d, span *in, span *payload)
{
    const uint8_t *start = in->at;
    uint64_t length;
    if (!read_varint(d, in, &length))
        return false;
    if (length > (uint64_t)(in->end - in->at))
        return fail(d, start, "a field is longer than the message that holds it");
    *payload = (span){in->at, in->at + length};
    in->at += length;
    return true;
}

static bool read_tag(decoding *d, span *in, field *f)
{
    uint64_t tag;
    f->start = in->at;
    if (!read_varint(d, in, &tag))
        return false;
    f->number = (uint32_t)(tag >> 3);
    f->wire = (uint32_t)(tag & 7);
    if (tag > MOST_TAG || f->number == 0)
        return fail(d, f->start, "a field has no number that a field can have");
    if (f->wire > ETCH_WIRE_FIXED32)
        return fail(d, f->start, "a field has no encoding that a field can have");
    return true;
}

static bool read_simple(decoding *d, span *in, field *f)
{
    switch (f->wire) {
    case ETCH_WIRE_VARINT:
        return read_varint(d, in, &f->value);
    case ETCH_WIRE_FIXED64:
        return read_fixed(d, in, 8, &f->value);
    case ETCH_WIRE_FIXED32:
        return read_fixed(d, in, 4, &f->value);
    default:
        return read_payload(d, in, &f->payload);
    }
}

/* The end of a group that has just begun: no schema has groups any more, but they may be skipped. */
static bool skip_group(decoding *d, span *in, const field *group)
{
    uint32_t open[GROUP_DEPTH] = {group->number};
    size_t depth = 1;
    while (depth > 0) {
        field f;
        if (in->at == in->end)
            return fail(d, group->start, "a group has no end");
        if (!read_tag(d, in, &f))
            return false;
        if (f.wire == ETCH_WIRE_GROUP) {
            if (depth == GROUP_DEPTH)
                return fail(d, f.start, "groups are nested too deeply");
            open[depth++] = f.number;
        } else if (f.wire == ETCH_WIRE_GROUP_END) {
            if (open[--depth] != f.number)
                return fail(d, f.start, "the end of a group has another number than its begin");
        } else if (!read_simple(d, in, &f)) {
            return false;
        }
    }
    return true;
}

/* The next field; false at the end, or when something failed. */
static bool next_field(decoding *d, span *in, field *f)
{
    if (d->status != ETCH_OK || in->at == in->end)
        return false;
    if (!read_tag(d, in, f))
        return false;
    if (f->wire == ETCH_WIRE_GROUP)
        return skip_group(d, in, f);
    if (f->wire == ETCH_WIRE_GROUP_END)
        return fail(d, f->start, "a group ends that has not begun");
    return read_simple(d, in, f);
}

/* ---- arrays -------------------------------------------------------------------------------------------- */

static void *reserve(decoding *d, void *at, uint32_t count, uint32_t *capacity, size_t size)
{
    bool failed = false;
    at = etch_reserve(at, count, capacity, size, &failed);
    if (failed)
        d->status = ETCH_ENOMEM;
    return at;
}

void etch_wire_free(etch_wire *wire)
{
    free(wire->attrs);
    free(wire->firsts);
    free(wire->values);
    free(wire->data_deps);
    free(wire->ctrl_deps);
    *wire = (etch_wire){0};
}

/* ---- text ---------------------------------------------------------------------------------------------- */

/* Bytes of the character that begins at `at`, 0 when it is not UTF-8. */
static size_t character_size(const uint8_t *at, size_t left)
{
    static const struct {
        uint8_t mask, lead;
        uint32_t least;
    } forms[] = {{0x80, 0x00, 0}, {0xe0, 0xc0, 0x80}, {0xf0, 0xe0, 0x800}, {0xf8, 0xf0, 0x10000}};
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        if ((*at & forms[i].mask) != forms[i].lead)
            continue;
        uint32_t code = *at & (uint8_t)~forms[i].mask;
        if (left <= i)
            return 0;
        for (size_t k = 1; k <= i; k++) {
            if ((at[k] & 0xc0) != 0x80)
                return 0;
            code = code << 6 | (at[k] & 0x3f);
        }
        return code < forms[i].least || code > 0x10ffff || (code >= 0xd800 && code < 0xe000) ? 0 : i + 1;
    }
    return 0;
}

static bool is_utf8(span text)
{
    while (text.at < text.end) {
        uint64_t eight;
        if (text.end - text.at >= 8) {
            memcpy(&eight, text.at, 8);
            if ((eight & UINT64_C(0x8080808080808080)) == 0) {
                text.at += 8;
                continue;
            }
        }
        if (*text.at < 0x80) {
            text.at++;
            continue;
        }
        const size_t size = character_size(text.at, (size_t)(text.end - text.at));
        if (size == 0)
            return false;
        text.at += size;
    }
    return true;
}

static etch_trace_text text_of(span payload)
{
    return (etch_trace_text){(const char *)payload.at, (size_t)(payload.end - payload.at)};
}

/* These return whether the field has the encoding that the schema says. */
static bool take_text(decoding *d, const field *f, etch_trace_text *text)
{
    if (f->wire != ETCH_WIRE_BYTES)
        return false;
    if (!is_utf8(f->payload))
        fail(d, f->payload.at, "a text is not UTF-8");
    *text = text_of(f->payload);
    return true;
}

static bool take_number(const field *f, uint64_t *value)
{
    if (f->wire != ETCH_WIRE_VARINT)
        return false;
    *value = f->value;
    return true;
}

/* ---- attributes ---------------------------------------------------------------------------------------- */

uint32_t etch_wire_of(etch_chakra_scalar scalar)
{
    switch (scalar) {
    case ETCH_SCALAR_DOUBLE:
    case ETCH_SCALAR_FIXED64:
    case ETCH_SCALAR_SFIXED64:
        return ETCH_WIRE_FIXED64;
    case ETCH_SCALAR_FLOAT:
    case ETCH_SCALAR_FIXED32:
    case ETCH_SCALAR_SFIXED32:
        return ETCH_WIRE_FIXED32;
    case ETCH_SCALAR_STRING:
    case ETCH_SCALAR_BYTES:
        return ETCH_WIRE_BYTES;
    default:
        return ETCH_WIRE_VARINT;
    }
}

static etch_trace_value float_value(uint64_t bits)
{
    uint32_t half = (uint32_t)bits;
    float number;
    memcpy(&number, &half, sizeof number);
    return (etch_trace_value){.number = (double)number};
}

/* The value of a field that has the encoding of `scalar`. Conversions to 32 bits drop the upper half, as
 * protobuf says. */
static etch_trace_value value_of(decoding *d, etch_chakra_scalar scalar, const field *f)
{
    etch_trace_value value = {.integer = (int64_t)f->value};
    switch (scalar) {
    case ETCH_SCALAR_DOUBLE:
        memcpy(&value.number, &f->value, sizeof value.number);
        break;
    case ETCH_SCALAR_FLOAT:
        value = float_value(f->value);
        break;
    case ETCH_SCALAR_INT32:
    case ETCH_SCALAR_SFIXED32:
        value.integer = (int32_t)(uint32_t)f->value;
        break;
    case ETCH_SCALAR_UINT32:
    case ETCH_SCALAR_FIXED32:
        value.integer = (uint32_t)f->value;
        break;
    case ETCH_SCALAR_SINT32:
        value.integer = (int32_t)((uint32_t)f->value >> 1 ^ (0 - ((uint32_t)f->value & 1)));
        break;
    case ETCH_SCALAR_SINT64:
        value.integer = (int64_t)(f->value >> 1 ^ (0 - (f->value & 1)));
        break;
    case ETCH_SCALAR_BOOL:
        value.integer = f->value != 0;
        break;
    case ETCH_SCALAR_STRING:
        if (!is_utf8(f->payload))
            fail(d, f->payload.at, "a text is not UTF-8");
        value.text = text_of(f->payload);
        break;
    case ETCH_SCALAR_BYTES:
        value.text = text_of(f->payload);
        break;
    default:
        break;
    }
    return value;
}

static void add_value(decoding *d, etch_chakra_scalar scalar, const field *f)
{
    etch_wire *w = d->wire;
    if (w->value_count == ETCH_TRACE_VALUE_LIMIT) {
        fail(d, f->start, "the attributes of a message have too many values");
        return;
    }
    w->values = reserve(d, w->values, w->value_count, &w->value_capacity, sizeof *w->values);
    if (d->status == ETCH_OK)
        w->values[w->value_count++] = value_of(d, scalar, f);
}

/* The elements of a packed list. */
static void add_packed(decoding *d, etch_chakra_scalar scalar, span in)
{
    field f = {.wire = etch_wire_of(scalar)};
    while (in.at < in.end && d->status == ETCH_OK) {
        f.start = in.at;
        if (read_simple(d, &in, &f))
            add_value(d, scalar, &f);
    }
}

static void add_list(decoding *d, etch_chakra_scalar scalar, span in)
{
    field f;
    while (next_field(d, &in, &f)) {
        if (f.number != 1)
            continue;
        if (f.wire == etch_wire_of(scalar))
            add_value(d, scalar, &f);
        else if (f.wire == ETCH_WIRE_BYTES)
            add_packed(d, scalar, f.payload);
    }
}

/* A value; what was there before counts no more, but lists of one kind are joined. */
static bool take_value(decoding *d, const field *f, etch_trace_attr *attr, uint32_t first)
{
    if (f->number < ETCH_KIND_DOUBLE || f->number > ETCH_KIND_LAST)
        return false;
    const etch_chakra_scalar scalar = etch_chakra_scalar_of(f->number);
    const bool list = etch_chakra_is_list(f->number);
    if (f->wire != (list ? (uint32_t)ETCH_WIRE_BYTES : etch_wire_of(scalar)))
        return false;
    if (!list || attr->kind != f->number)
        d->wire->value_count = first;
    attr->kind = (uint8_t)f->number;
    if (list)
        add_list(d, scalar, f->payload);
    else
        add_value(d, scalar, f);
    return true;
}

static void add_attribute(decoding *d, const field *f)
{
    etch_wire *w = d->wire;
    span in = f->payload;
    const uint32_t first = w->value_count;
    etch_trace_attr attr = {.known = ETCH_ATTRIBUTE_UNKNOWN};
    field part;
    if (w->attr_count == ETCH_TRACE_ATTR_LIMIT) {
        fail(d, f->start, "a message has too many attributes");
        return;
    }
    w->attrs = reserve(d, w->attrs, w->attr_count, &w->attr_capacity, sizeof *w->attrs);
    w->firsts = reserve(d, w->firsts, w->attr_count, &w->first_capacity, sizeof *w->firsts);
    while (next_field(d, &in, &part)) {
        if (part.number == ETCH_FIELD_ATTR_NAME)
            take_text(d, &part, &attr.name);
        else if (part.number == ETCH_FIELD_ATTR_DOC)
            take_text(d, &part, &attr.doc);
        else
            take_value(d, &part, &attr, first);
    }
    if (d->status != ETCH_OK)
        return;
    attr.known = etch_chakra_attribute_of(attr.name.at, attr.name.length);
    attr.count = w->value_count - first;
    w->firsts[w->attr_count] = first;
    w->attrs[w->attr_count++] = attr;
}

/* Values have their final place only now. */
static const etch_trace_attr *finish_attributes(etch_wire *w)
{
    for (uint32_t i = 0; i < w->attr_count; i++)
        w->attrs[i].values = w->attrs[i].count > 0 ? w->values + w->firsts[i] : NULL;
    return w->attrs;
}

/* ---- messages ------------------------------------------------------------------------------------------ */

static bool add_dep(decoding *d, uint64_t dep, const uint8_t *at, uint64_t **deps, uint32_t *count,
                    uint32_t *capacity)
{
    if (*count == ETCH_TRACE_DEP_LIMIT)
        return fail(d, at, "a node has too many dependencies");
    *deps = reserve(d, *deps, *count, capacity, sizeof **deps);
    if (d->status == ETCH_OK)
        (*deps)[(*count)++] = dep;
    return d->status == ETCH_OK;
}

static bool take_deps(decoding *d, const field *f, uint64_t **deps, uint32_t *count, uint32_t *capacity)
{
    if (f->wire == ETCH_WIRE_VARINT) {
        add_dep(d, f->value, f->start, deps, count, capacity);
        return true;
    }
    if (f->wire != ETCH_WIRE_BYTES)
        return false;
    span in = f->payload;
    uint64_t dep;
    while (in.at < in.end && read_varint(d, &in, &dep))
        if (!add_dep(d, dep, in.at, deps, count, capacity))
            break;
    return true;
}

static bool take_io(decoding *d, const field *f, etch_trace_io *io)
{
    span in = f->payload;
    field part;
    if (f->wire != ETCH_WIRE_BYTES)
        return false;
    io->present = true;
    while (next_field(d, &in, &part)) {
        if (part.number == ETCH_FIELD_IO_VALUES)
            take_text(d, &part, &io->values);
        else if (part.number == ETCH_FIELD_IO_SHAPES)
            take_text(d, &part, &io->shapes);
        else if (part.number == ETCH_FIELD_IO_TYPES)
            take_text(d, &part, &io->types);
    }
    return true;
}

static bool take_attribute(decoding *d, const field *f)
{
    if (f->wire != ETCH_WIRE_BYTES)
        return false;
    add_attribute(d, f);
    return true;
}

static bool take_node_field(decoding *d, const field *f, etch_trace_node *node)
{
    etch_wire *w = d->wire;
    uint64_t type;
    switch (f->number) {
    case ETCH_FIELD_ID:
        return take_number(f, &node->id);
    case ETCH_FIELD_NAME:
        return take_text(d, f, &node->name);
    case ETCH_FIELD_TYPE:
        if (!take_number(f, &type))
            return false;
        node->type = (int32_t)(uint32_t)type;
        return true;
    case ETCH_FIELD_CTRL_DEPS:
        return take_deps(d, f, &w->ctrl_deps, &w->ctrl_dep_count, &w->ctrl_dep_capacity);
    case ETCH_FIELD_DATA_DEPS:
        return take_deps(d, f, &w->data_deps, &w->data_dep_count, &w->data_dep_capacity);
    case ETCH_FIELD_START_TIME:
        return take_number(f, &node->start_time);
    case ETCH_FIELD_DURATION:
        return take_number(f, &node->duration);
    case ETCH_FIELD_INPUTS:
        return take_io(d, f, &node->inputs);
    case ETCH_FIELD_OUTPUTS:
        return take_io(d, f, &node->outputs);
    case ETCH_FIELD_ATTR:
        return take_attribute(d, f);
    default:
        return false;
    }
}

static decoding begin(etch_wire *wire, const uint8_t *bytes, uint64_t offset, etch_trace_error *error)
{
    wire->attr_count = wire->value_count = wire->data_dep_count = wire->ctrl_dep_count = 0;
    return (decoding){.wire = wire, .bytes = bytes, .offset = offset, .error = error, .status = ETCH_OK};
}

etch_status etch_wire_metadata(etch_wire *wire, const uint8_t *bytes, size_t length, uint64_t offset,
                               etch_trace_metadata *metadata, etch_trace_error *error)
{
    decoding d = begin(wire, bytes, offset, error);
    span in = {bytes, bytes + length};
    field f;
    *metadata = (etch_trace_metadata){.offset = offset, .length = length, .bytes = bytes};
    while (next_field(&d, &in, &f)) {
        bool known = false;
        if (f.number == ETCH_FIELD_VERSION)
            known = take_text(&d, &f, &metadata->version);
        else if (f.number == ETCH_FIELD_METADATA_ATTR)
            known = take_attribute(&d, &f);
        metadata->unknown += !known;
    }
    metadata->attrs = finish_attributes(wire);
    metadata->attr_count = wire->attr_count;
    return d.status;
}

etch_status etch_wire_node(etch_wire *wire, const uint8_t *bytes, size_t length, uint64_t offset,
                           etch_trace_node *node, etch_trace_error *error)
{
    decoding d = begin(wire, bytes, offset, error);
    span in = {bytes, bytes + length};
    field f;
    *node = (etch_trace_node){.offset = offset, .length = length, .bytes = bytes};
    while (next_field(&d, &in, &f))
        node->unknown += !take_node_field(&d, &f, node);
    node->attrs = finish_attributes(wire);
    node->attr_count = wire->attr_count;
    node->data_deps = wire->data_deps;
    node->data_dep_count = wire->data_dep_count;
    node->ctrl_deps = wire->ctrl_deps;
    node->ctrl_dep_count = wire->ctrl_dep_count;
    return d.status;
}
