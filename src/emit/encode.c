/* The canonical encoding of a trace.
 *
 * Of a node's bytes only group ids and the ranks of messages differ between ranks of one class; while these
 * are equally long, so are all lengths. A chunk is therefore encoded once with blanks for them, and patched
 * for each rank. */
#include "emit/emit_int.h"

#include <string.h>

enum {
    CHUNK_BYTES = 1 << 20, /* large enough for fast writing, small enough to stay in a cache */
    LEAST_PER_BLANK = 45   /* bytes: of a collective 64 for one, of a message 90 for two */
};

/* Tags of the fields of a Node: number << 3 | wire type. */
enum { TAG_ID = 0x08, TAG_NAME = 0x12, TAG_TYPE = 0x18, TAG_DATA_DEPS = 0x2a, TAG_ATTR = 0x52 };

/* Bytes that are the same in every trace. */
typedef struct literal {
    uint8_t length;
    const char *bytes;
} literal;
#define LITERAL(text)          \
    {                          \
        sizeof(text) - 1, text \
    }
#define ATTRIBUTE(length, name, tag) LITERAL("\x0a" length name tag)

/* GlobalMetadata with its version, behind its length. */
static const literal metadata = LITERAL("\x07\x0a\x05" ETCH_TRACE_SCHEMA);
/* The whole attribute, with bool_val (27) false. */
static const literal is_cpu_op = LITERAL("\x52\x0e\x0a\x09"
                                         "is_cpu_op"
                                         "\xd8\x01\x00");
/* Attributes up to their value: the name, and the tag of the value's kind. */
static const literal num_ops = ATTRIBUTE("\x07", "num_ops", "\x48");         /* int64_val (9) */
static const literal tensor_size = ATTRIBUTE("\x0b", "tensor_size", "\x68"); /* uint64_val (13) */
static const literal comm_type = ATTRIBUTE("\x09", "comm_type", "\x48");     /* int64_val */
static const literal comm_size = ATTRIBUTE("\x09", "comm_size", "\x48");     /* int64_val */
static const literal comm_src = ATTRIBUTE("\x08", "comm_src", "\x38");       /* int32_val (7) */
static const literal comm_dst = ATTRIBUTE("\x08", "comm_dst", "\x38");       /* int32_val */
static const literal comm_tag = ATTRIBUTE("\x08", "comm_tag", "\x38");       /* int32_val */
static const literal pg_name = ATTRIBUTE("\x07", "pg_name", "\xea\x01");     /* string_val (29) */

static size_t varint_size(uint64_t value)
{
    size_t size = 1;
    for (; value >= 0x80; value >>= 7)
        size++;
    return size;
}

static uint8_t *put_varint(uint8_t *at, uint64_t value)
{
    for (; value >= 0x80; value >>= 7)
        *at++ = (uint8_t)(value | 0x80);
    *at++ = (uint8_t)value;
    return at;
}

static uint8_t *put_bytes(uint8_t *at, const char *bytes, size_t length)
{
    memcpy(at, bytes, length);
    return at + length;
}

/* ---- lengths ------------------------------------------------------------------------------------------- */

/* The lengths that precede a node's parts. */
typedef struct node_lengths {
    size_t body, name, deps;
} node_lengths;

/* A field of `length` bytes with its tag and length. */
static size_t field_size(size_t length)
{
    return 1 + varint_size(length) + length;
}

static size_t attribute_size(literal head, size_t value_size)
{
    return field_size(head.length + value_size);
}

/* The blanks of a message: the rank that sends it, then the one that receives it. */
typedef struct ends {
    uint16_t from, to;
} ends;

static ends ends_of(const etch_node *node)
{
    const uint16_t peer = (uint16_t)(ETCH_BLANK_PEERS + node->peer);
    return node->type == ETCH_NODE_SEND ? (ends){ETCH_BLANK_OWN, peer} : (ends){peer, ETCH_BLANK_OWN};
}

static size_t attributes_size(const etch_node *node, const uint8_t *widths)
{
    if (node->type == ETCH_NODE_COMP)
        return is_cpu_op.length + attribute_size(num_ops, varint_size(node->flop)) +
               attribute_size(tensor_size, varint_size(node->bytes));
    if (node->type != ETCH_NODE_COLL)
        return is_cpu_op.length + attribute_size(comm_size, varint_size(node->bytes)) +
               attribute_size(comm_src, widths[ends_of(node).from]) +
               attribute_size(comm_dst, widths[ends_of(node).to]) +
               attribute_size(comm_tag, varint_size(node->tag));
    return is_cpu_op.length + attribute_size(comm_type, varint_size(node->collective)) +
           attribute_size(comm_size, varint_size(node->bytes)) +
           attribute_size(pg_name, 1u + widths[etch_blank_of_family(node->family)]);
}

/* proto3 leaves out a scalar that is 0 and a text or list that is empty. */
static node_lengths measure_node(const etch_program *program, uint32_t id, const uint8_t *widths)
{
    const etch_node *node = &program->nodes[id];
    node_lengths lengths = {.name = strlen(program->names + node->name)};
    for (uint32_t i = 0; i < node->dep_count; i++)
        lengths.deps += varint_size(program->deps[node->first_dep + i]);
    lengths.body = 1 + varint_size(node->type) + attributes_size(node, widths);
    if (id > 0)
        lengths.body += 1 + varint_size(id);
    if (lengths.name > 0)
        lengths.body += field_size(lengths.name);
    if (lengths.deps > 0)
        lengths.body += field_size(lengths.deps);
    return lengths;
}

uint8_t etch_id_width(uint32_t id)
{
    uint8_t width = 1;
    for (; id >= 10; id /= 10)
        width++;
    return width;
}

etch_trace_size etch_trace_measure(const etch_program *program, const uint8_t *widths)
{
    etch_trace_size size = {.bytes = metadata.length};
    size_t largest = metadata.length;
    for (uint32_t id = 0; id < program->node_count; id++) {
        node_lengths lengths = measure_node(program, id, widths);
        size_t framed = varint_size(lengths.body) + lengths.body;
        size.bytes += framed;
        if (framed > largest)
            largest = framed;
    }
    /* A chunk ends with the first node that fills it. */
    size.chunk_bytes = CHUNK_BYTES + largest;
    if (size.bytes < size.chunk_bytes)
        size.chunk_bytes = (size_t)size.bytes;
    size.chunk_patches = size.chunk_bytes / LEAST_PER_BLANK + 1;
    return size;
}

/* ---- bytes --------------------------------------------------------------------------------------------- */

static uint8_t *put_attribute(uint8_t *at, literal head, uint64_t value)
{
    *at++ = TAG_ATTR;
    at = put_varint(at, head.length + varint_size(value));
    at = put_bytes(at, head.bytes, head.length);
    return put_varint(at, value);
}

static uint8_t *leave_blank(uint8_t *at, uint16_t blank, const uint8_t *widths, etch_chunk *chunk)
{
    chunk->patches[chunk->patch_count++] =
        (etch_patch){.offset = (size_t)(at - chunk->bytes), .blank = blank};
    return at + widths[blank];
}

static uint8_t *put_group(uint8_t *at, uint16_t blank, const uint8_t *widths, etch_chunk *chunk)
{
    *at++ = TAG_ATTR;
    at = put_varint(at, pg_name.length + 1u + widths[blank]);
    at = put_bytes(at, pg_name.bytes, pg_name.length);
    *at++ = widths[blank];
    return leave_blank(at, blank, widths, chunk);
}

static uint8_t *put_rank(uint8_t *at, literal head, uint16_t blank, const uint8_t *widths, etch_chunk *chunk)
{
    *at++ = TAG_ATTR;
    at = put_varint(at, (size_t)head.length + widths[blank]);
    at = put_bytes(at, head.bytes, head.length);
    return leave_blank(at, blank, widths, chunk);
}

static uint8_t *put_attributes(uint8_t *at, const etch_node *node, const uint8_t *widths, etch_chunk *chunk)
{
    at = put_bytes(at, is_cpu_op.bytes, is_cpu_op.length);
    if (node->type == ETCH_NODE_COMP) {
        at = put_attribute(at, num_ops, node->flop);
        return put_attribute(at, tensor_size, node->bytes);
    }
    if (node->type == ETCH_NODE_COLL) {
        at = put_attribute(at, comm_type, node->collective);
        at = put_attribute(at, comm_size, node->bytes);
        return put_group(at, etch_blank_of_family(node->family), widths, chunk);
    }
    at = put_attribute(at, comm_size, node->bytes);
    at = put_rank(at, comm_src, ends_of(node).from, widths, chunk);
    at = put_rank(at, comm_dst, ends_of(node).to, widths, chunk);
    return put_attribute(at, comm_tag, node->tag);
}

static uint8_t *put_deps(uint8_t *at, const uint32_t *deps, uint32_t count, size_t length)
{
    *at++ = TAG_DATA_DEPS;
    at = put_varint(at, length);
    for (uint32_t i = 0; i < count; i++)
        at = put_varint(at, deps[i]);
    return at;
}

static uint8_t *put_node(uint8_t *at, const etch_program *program, uint32_t id, const uint8_t *widths,
                         etch_chunk *chunk)
{
    const etch_node *node = &program->nodes[id];
    node_lengths lengths = measure_node(program, id, widths);
    at = put_varint(at, lengths.body);
    if (id > 0) {
        *at++ = TAG_ID;
        at = put_varint(at, id);
    }
    if (lengths.name > 0) {
        *at++ = TAG_NAME;
        at = put_varint(at, lengths.name);
        at = put_bytes(at, program->names + node->name, lengths.name);
    }
    *at++ = TAG_TYPE;
    at = put_varint(at, node->type);
    if (lengths.deps > 0)
        at = put_deps(at, program->deps + node->first_dep, node->dep_count, lengths.deps);
    return put_attributes(at, node, widths, chunk);
}

uint32_t etch_chunk_encode(const etch_program *program, const uint8_t *widths, uint32_t first,
                           etch_chunk *chunk)
{
    uint8_t *at = chunk->bytes;
    uint32_t id = first;
    chunk->patch_count = 0;
    if (first == 0)
        at = put_bytes(at, metadata.bytes, metadata.length);
    while (id < program->node_count && at - chunk->bytes < CHUNK_BYTES)
        at = put_node(at, program, id++, widths, chunk);
    chunk->length = (size_t)(at - chunk->bytes);
    return id;
}

static void put_digits(uint8_t *at, uint8_t width, uint32_t id)
{
    for (uint8_t i = width; i-- > 0; id /= 10)
        at[i] = (uint8_t)('0' + id % 10);
}

void etch_chunk_patch(etch_chunk *chunk, const uint8_t *widths, const uint32_t *values)
{
    for (size_t i = 0; i < chunk->patch_count; i++) {
        const etch_patch patch = chunk->patches[i];
        uint8_t *at = chunk->bytes + patch.offset;
        if (patch.blank < ETCH_BLANK_FAMILIES)
            put_varint(at, values[patch.blank]);
        else
            put_digits(at, widths[patch.blank], values[patch.blank]);
    }
}

/* ---- blanks -------------------------------------------------------------------------------------------- */

uint32_t etch_blank_count(const etch_job *job)
{
    return ETCH_BLANK_FAMILIES + job->family_count;
}

uint16_t etch_blank_of_family(uint16_t family)
{
    return (uint16_t)(ETCH_BLANK_FAMILIES + family);
}

void etch_blanks_fill(const etch_job *job, uint32_t rank, uint32_t *values)
{
    const etch_program *program = &job->programs[job->class_of[rank]];
    values[ETCH_BLANK_OWN] = rank;
    for (uint32_t i = 0; i < program->peer_count; i++)
        values[ETCH_BLANK_PEERS + i] = (uint32_t)((int64_t)rank + program->peers[i]);
    for (uint32_t i = 0; i < job->family_count; i++)
        values[ETCH_BLANK_FAMILIES + i] = etch_group_id(job, &job->families[i], rank);
}

uint8_t etch_blank_width(uint32_t blank, uint32_t value)
{
    return blank < ETCH_BLANK_FAMILIES ? (uint8_t)varint_size(value) : etch_id_width(value);
}
