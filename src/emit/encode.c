/* The canonical encoding of a trace.
 *
 * Of a node's bytes only group ids and the ranks of messages differ between ranks of one class; while these
 * are equally long, so are all lengths. A chunk is therefore encoded once with blanks for them, and patched
 * for each rank. */
#include "emit/emit_int.h"

#include <stdlib.h>
#include <string.h>

enum {
    /* large enough for fast writing, small enough to stay in a cache */
    CHUNK_BYTES = 1 << 20,
    /* bytes: of a collective 64 for one, of a message 90 for two */
    LEAST_PER_BLANK = 45
};

enum { WIRE_VARINT, WIRE_BYTES = 2 };
#define TAG(field, wire) ((field) << 3 | (wire))
enum {
    TAG_VERSION = TAG(ETCH_FIELD_VERSION, WIRE_BYTES),
    TAG_ID = TAG(ETCH_FIELD_ID, WIRE_VARINT),
    TAG_NAME = TAG(ETCH_FIELD_NAME, WIRE_BYTES),
    TAG_TYPE = TAG(ETCH_FIELD_TYPE, WIRE_VARINT),
    TAG_DATA_DEPS = TAG(ETCH_FIELD_DATA_DEPS, WIRE_BYTES),
    TAG_ATTR = TAG(ETCH_FIELD_ATTR, WIRE_BYTES),
    TAG_ATTR_NAME = TAG(ETCH_FIELD_ATTR_NAME, WIRE_BYTES),
    TAG_VALUES = TAG(1, WIRE_BYTES)
};

/* An attribute up to its value: the name, and the tag of the value's kind. Annotations stand after what
 * simulators read. */
typedef struct head {
    const char *name;
    /* of the name */
    uint8_t length;
    uint16_t tag;
} head;
#define HAS_LENGTH(kind) \
    ((kind) == ETCH_KIND_STRING || (kind) == ETCH_KIND_STRING_LIST || (kind) == ETCH_KIND_BOOL_LIST)
#define X(enumerator, name, kind) \
    {name, sizeof(name) - 1, TAG(kind, HAS_LENGTH(kind) ? WIRE_BYTES : WIRE_VARINT)},
#define Y(enumerator, name, text) X(enumerator, name, (text) ? ETCH_KIND_STRING : ETCH_KIND_INT64)
static const head heads[ETCH_ATTRIBUTE_COUNT + ETCH_ANNOTATION_COUNT] = {ETCH_CHAKRA_ATTRIBUTES(X)
                                                                             ETCH_ANNOTATIONS(Y)};
#undef Y
#undef X
/* An index of `heads`. */
typedef unsigned attribute;
#define ANNOTATION(i) ((attribute)ETCH_ATTRIBUTE_COUNT + (i))

/* GlobalMetadata with its version, after its length. */
enum { VERSION_BYTES = sizeof(ETCH_CHAKRA_VERSION) - 1, METADATA_BYTES = VERSION_BYTES + 3 };

_Static_assert((int)ETCH_NODE_COMP == (int)ETCH_TYPE_COMP && (int)ETCH_NODE_LOAD == (int)ETCH_TYPE_MEM_LOAD &&
                   (int)ETCH_NODE_STORE == (int)ETCH_TYPE_MEM_STORE &&
                   (int)ETCH_NODE_COLL == (int)ETCH_TYPE_COMM_COLL &&
                   (int)ETCH_NODE_SEND == (int)ETCH_TYPE_COMM_SEND &&
                   (int)ETCH_NODE_RECV == (int)ETCH_TYPE_COMM_RECV,
               "types of nodes are Chakra's");
_Static_assert((int)ETCH_COMM_ALL_REDUCE == (int)ETCH_COLLECTIVE_ALL_REDUCE &&
                   (int)ETCH_COMM_ALL_GATHER == (int)ETCH_COLLECTIVE_ALL_GATHER &&
                   (int)ETCH_COMM_ALL_TO_ALL == (int)ETCH_COLLECTIVE_ALL_TO_ALL &&
                   (int)ETCH_COMM_REDUCE_SCATTER == (int)ETCH_COLLECTIVE_REDUCE_SCATTER,
               "collectives are Chakra's");
_Static_assert(ETCH_TAG_END == ETCH_MOST_TAG + 1, "tags of messages are those that simulators leave free");

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

static size_t head_size(attribute a)
{
    return 2u + heads[a].length + varint_size(heads[a].tag);
}

static size_t attribute_size(attribute a, size_t value_size)
{
    return field_size(head_size(a) + value_size);
}

/* A text with its length. */
static size_t text_size(const char *text)
{
    const size_t length = strlen(text);
    return varint_size(length) + length;
}

static size_t annotations_size(const etch_annotated *annotated)
{
    size_t size = 0;
    for (unsigned i = 0; i < ETCH_ANNOTATION_COUNT; i++) {
        const etch_annotation_value *value = &annotated->value[i];
        if (annotated->given >> i & 1)
            size += attribute_size(ANNOTATION(i), etch_annotation_is_text(i) ? text_size(value->text)
                                                                             : varint_size(value->number));
    }
    return size;
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

/* A list of so many bools with its length: they are packed, a byte each. */
static size_t bools_size(size_t count)
{
    return varint_size(field_size(count)) + field_size(count);
}

static size_t who_size(const etch_job *job, const etch_node *node, const uint8_t *widths)
{
    if (job->families[node->family].dimensions)
        return attribute_size(ETCH_ATTRIBUTE_INVOLVED_DIM, bools_size(etch_dimension_count(job)));
    return attribute_size(ETCH_ATTRIBUTE_PG_NAME, 1u + widths[etch_blank_of_family(node->family)]);
}

static size_t attributes_size(const etch_job *job, const etch_node *node, const uint8_t *widths)
{
    if (node->type == ETCH_NODE_COMP)
        return attribute_size(ETCH_ATTRIBUTE_IS_CPU_OP, 1) +
               attribute_size(ETCH_ATTRIBUTE_NUM_OPS, varint_size(node->flop)) +
               attribute_size(ETCH_ATTRIBUTE_TENSOR_SIZE, varint_size(node->bytes));
    if (etch_node_moves(node->type))
        return attribute_size(ETCH_ATTRIBUTE_IS_CPU_OP, 1) +
               attribute_size(ETCH_ATTRIBUTE_TENSOR_SIZE, varint_size(node->bytes));
    if (node->type != ETCH_NODE_COLL)
        return attribute_size(ETCH_ATTRIBUTE_IS_CPU_OP, 1) +
               attribute_size(ETCH_ATTRIBUTE_COMM_SIZE, varint_size(node->bytes)) +
               attribute_size(ETCH_ATTRIBUTE_COMM_SRC, widths[ends_of(node).from]) +
               attribute_size(ETCH_ATTRIBUTE_COMM_DST, widths[ends_of(node).to]) +
               attribute_size(ETCH_ATTRIBUTE_COMM_TAG, varint_size(node->tag));
    return attribute_size(ETCH_ATTRIBUTE_IS_CPU_OP, 1) +
           attribute_size(ETCH_ATTRIBUTE_COMM_TYPE, varint_size(node->collective)) +
           attribute_size(ETCH_ATTRIBUTE_COMM_SIZE, varint_size(node->bytes)) + who_size(job, node, widths);
}

/* proto3 leaves out a scalar that is 0 and a text or list that is empty. */
static node_lengths measure_node(const etch_job *job, const etch_class_program *program, uint32_t id,
                                 const uint8_t *widths)
{
    const etch_node *node = &program->nodes[id];
    node_lengths lengths = {.name = strlen(program->names + node->name)};
    for (uint32_t i = 0; i < node->dep_count; i++)
        lengths.deps += varint_size(program->deps[node->first_dep + i]);
    lengths.body = 1 + varint_size(node->type) + attributes_size(job, node, widths);
    if (program->annotated)
        lengths.body += annotations_size(&program->annotated[id]);
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

etch_trace_size etch_trace_measure(const etch_job *job, const etch_class_program *program,
                                   const uint8_t *widths)
{
    etch_trace_size size = {.bytes = METADATA_BYTES};
    size_t largest = METADATA_BYTES;
    for (uint32_t id = 0; id < program->node_count; id++) {
        node_lengths lengths = measure_node(job, program, id, widths);
        size_t framed = varint_size(lengths.body) + lengths.body;
        size.bytes += framed;
        if (framed > largest)
            largest = framed;
    }
    /* A chunk ends with the first node that fills it. */
    size.chunk_bytes = CHUNK_BYTES + largest;
    if (size.bytes < size.chunk_bytes)
        size.chunk_bytes = (size_t)size.bytes;
    size.chunk_least = CHUNK_BYTES;
    size.chunk_patches = size.chunk_bytes / LEAST_PER_BLANK + 1;
    return size;
}

/* ---- bytes --------------------------------------------------------------------------------------------- */

static uint8_t *put_metadata(uint8_t *at)
{
    *at++ = METADATA_BYTES - 1;
    *at++ = TAG_VERSION;
    *at++ = VERSION_BYTES;
    return put_bytes(at, ETCH_CHAKRA_VERSION, VERSION_BYTES);
}

static uint8_t *put_head(uint8_t *at, attribute a)
{
    const head *h = &heads[a];
    *at++ = TAG_ATTR_NAME;
    *at++ = h->length;
    at = put_bytes(at, h->name, h->length);
    return put_varint(at, h->tag);
}

static uint8_t *put_attribute(uint8_t *at, attribute a, uint64_t value)
{
    *at++ = TAG_ATTR;
    at = put_varint(at, head_size(a) + varint_size(value));
    at = put_head(at, a);
    return put_varint(at, value);
}

static uint8_t *put_text(uint8_t *at, attribute a, const char *text)
{
    const size_t length = strlen(text);
    *at++ = TAG_ATTR;
    at = put_varint(at, head_size(a) + text_size(text));
    at = put_head(at, a);
    at = put_varint(at, length);
    return put_bytes(at, text, length);
}

static uint8_t *put_annotations(uint8_t *at, const etch_annotated *annotated)
{
    for (unsigned i = 0; i < ETCH_ANNOTATION_COUNT; i++) {
        const etch_annotation_value *value = &annotated->value[i];
        if (annotated->given >> i & 1)
            at = etch_annotation_is_text(i) ? put_text(at, ANNOTATION(i), value->text)
                                            : put_attribute(at, ANNOTATION(i), value->number);
    }
    return at;
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
    at = put_varint(at, head_size(ETCH_ATTRIBUTE_PG_NAME) + 1u + widths[blank]);
    at = put_head(at, ETCH_ATTRIBUTE_PG_NAME);
    *at++ = widths[blank];
    return leave_blank(at, blank, widths, chunk);
}

/* Which dimensions take part: a bool for each, innermost first. */
static uint8_t *put_dimensions(uint8_t *at, const etch_job *job, uint64_t dimensions)
{
    const uint32_t count = etch_dimension_count(job);
    *at++ = TAG_ATTR;
    at = put_varint(at, head_size(ETCH_ATTRIBUTE_INVOLVED_DIM) + bools_size(count));
    at = put_head(at, ETCH_ATTRIBUTE_INVOLVED_DIM);
    at = put_varint(at, field_size(count));
    *at++ = TAG_VALUES;
    at = put_varint(at, count);
    for (uint32_t i = 0; i < count; i++)
        *at++ = dimensions >> i & 1;
    return at;
}

static uint8_t *put_rank(uint8_t *at, attribute a, uint16_t blank, const uint8_t *widths, etch_chunk *chunk)
{
    *at++ = TAG_ATTR;
    at = put_varint(at, head_size(a) + widths[blank]);
    at = put_head(at, a);
    return leave_blank(at, blank, widths, chunk);
}

static uint8_t *put_attributes(uint8_t *at, const etch_job *job, const etch_node *node, const uint8_t *widths,
                               etch_chunk *chunk)
{
    at = put_attribute(at, ETCH_ATTRIBUTE_IS_CPU_OP, false);
    if (node->type == ETCH_NODE_COMP) {
        at = put_attribute(at, ETCH_ATTRIBUTE_NUM_OPS, node->flop);
        return put_attribute(at, ETCH_ATTRIBUTE_TENSOR_SIZE, node->bytes);
    }
    if (etch_node_moves(node->type))
        return put_attribute(at, ETCH_ATTRIBUTE_TENSOR_SIZE, node->bytes);
    if (node->type == ETCH_NODE_COLL) {
        at = put_attribute(at, ETCH_ATTRIBUTE_COMM_TYPE, node->collective);
        at = put_attribute(at, ETCH_ATTRIBUTE_COMM_SIZE, node->bytes);
        const uint64_t dimensions = job->families[node->family].dimensions;
        return dimensions ? put_dimensions(at, job, dimensions)
                          : put_group(at, etch_blank_of_family(node->family), widths, chunk);
    }
    at = put_attribute(at, ETCH_ATTRIBUTE_COMM_SIZE, node->bytes);
    at = put_rank(at, ETCH_ATTRIBUTE_COMM_SRC, ends_of(node).from, widths, chunk);
    at = put_rank(at, ETCH_ATTRIBUTE_COMM_DST, ends_of(node).to, widths, chunk);
    return put_attribute(at, ETCH_ATTRIBUTE_COMM_TAG, node->tag);
}

static uint8_t *put_deps(uint8_t *at, const uint32_t *deps, uint32_t count, size_t length)
{
    *at++ = TAG_DATA_DEPS;
    at = put_varint(at, length);
    for (uint32_t i = 0; i < count; i++)
        at = put_varint(at, deps[i]);
    return at;
}

static uint8_t *put_node(uint8_t *at, const etch_job *job, const etch_class_program *program, uint32_t id,
                         const uint8_t *widths, etch_chunk *chunk)
{
    const etch_node *node = &program->nodes[id];
    node_lengths lengths = measure_node(job, program, id, widths);
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
    at = put_attributes(at, job, node, widths, chunk);
    return program->annotated ? put_annotations(at, &program->annotated[id]) : at;
}

uint32_t etch_chunk_encode(const etch_job *job, const etch_class_program *program, const uint8_t *widths,
                           uint32_t first, etch_chunk *chunk)
{
    uint8_t *at = chunk->bytes;
    uint32_t id = first;
    chunk->patch_count = 0;
    if (first == 0)
        at = put_metadata(at);
    while (id < program->node_count && at - chunk->bytes < CHUNK_BYTES)
        at = put_node(at, job, program, id++, widths, chunk);
    chunk->length = (size_t)(at - chunk->bytes);
    return id;
}

static void put_digits(uint8_t *at, uint8_t width, uint32_t id)
{
    for (uint8_t i = width; i-- > 0; id /= 10)
        at[i] = (uint8_t)('0' + id % 10);
}

bool etch_chunk_new(etch_chunk *chunk, const etch_trace_size *size)
{
    chunk->bytes = malloc(size->chunk_bytes);
    chunk->patches = malloc((size->chunk_patches + 1) * sizeof *chunk->patches);
    return chunk->bytes && chunk->patches;
}

void etch_chunk_free(etch_chunk *chunk)
{
    free(chunk->bytes);
    free(chunk->patches);
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
    const etch_class_program *program = &job->programs[job->class_of[rank]];
    values[ETCH_BLANK_OWN] = rank;
    for (uint32_t i = 0; i < program->peer_count; i++)
        values[ETCH_BLANK_PEERS + i] = etch_peer_rank(job, program->peers[i], rank);
    for (uint32_t i = 0; i < job->family_count; i++)
        values[ETCH_BLANK_FAMILIES + i] =
            job->families[i].dimensions ? 0 : etch_group_id(job, &job->families[i], rank);
}

uint8_t etch_blank_width(uint32_t blank, uint32_t value)
{
    return blank < ETCH_BLANK_FAMILIES ? (uint8_t)varint_size(value) : etch_id_width(value);
}
