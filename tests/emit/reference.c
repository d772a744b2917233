/* The only file that sees generated code. protobuf-c's initialisers drop const, which is why its warnings
 * are off here. */
#include "reference.h"

#include "chakra.pb-c.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef ChakraProtoMsg__AttributeProto attribute;

/* One trace while it is packed. */
typedef struct packing {
    const etch_job *job;
    uint32_t rank;
    uint8_t *bytes;
    size_t length, capacity;
    bool failed;
} packing;

static uint8_t *reserve(packing *p, size_t size)
{
    if (p->length + size > p->capacity) {
        size_t capacity = 2 * (p->length + size);
        uint8_t *wider = realloc(p->bytes, capacity);
        if (!wider) {
            p->failed = true;
            return NULL;
        }
        p->bytes = wider;
        p->capacity = capacity;
    }
    return p->bytes + p->length;
}

/* The message behind its length. */
static void pack(packing *p, const ProtobufCMessage *message)
{
    size_t size = protobuf_c_message_get_packed_size(message);
    uint8_t *at = reserve(p, size + 10);
    if (!at)
        return;
    for (; size >= 128; size /= 128)
        *at++ = (uint8_t)(size % 128 + 128);
    *at++ = (uint8_t)size;
    at += protobuf_c_message_pack(message, at);
    p->length = (size_t)(at - p->bytes);
}

static attribute bool_attribute(const char *name, bool value)
{
    attribute a = CHAKRA_PROTO_MSG__ATTRIBUTE_PROTO__INIT;
    a.name = (char *)name;
    a.value_case = CHAKRA_PROTO_MSG__ATTRIBUTE_PROTO__VALUE_BOOL_VAL;
    a.bool_val = value;
    return a;
}

static attribute int64_attribute(const char *name, uint64_t value)
{
    attribute a = CHAKRA_PROTO_MSG__ATTRIBUTE_PROTO__INIT;
    a.name = (char *)name;
    a.value_case = CHAKRA_PROTO_MSG__ATTRIBUTE_PROTO__VALUE_INT64_VAL;
    a.int64_val = (int64_t)value;
    return a;
}

static attribute uint64_attribute(const char *name, uint64_t value)
{
    attribute a = CHAKRA_PROTO_MSG__ATTRIBUTE_PROTO__INIT;
    a.name = (char *)name;
    a.value_case = CHAKRA_PROTO_MSG__ATTRIBUTE_PROTO__VALUE_UINT64_VAL;
    a.uint64_val = value;
    return a;
}

static attribute string_attribute(const char *name, char *value)
{
    attribute a = CHAKRA_PROTO_MSG__ATTRIBUTE_PROTO__INIT;
    a.name = (char *)name;
    a.value_case = CHAKRA_PROTO_MSG__ATTRIBUTE_PROTO__VALUE_STRING_VAL;
    a.string_val = value;
    return a;
}

static size_t set_attributes(const packing *p, const etch_node *node, char group[16], attribute attributes[4])
{
    attributes[0] = bool_attribute("is_cpu_op", false);
    if (node->type == ETCH_NODE_COMP) {
        attributes[1] = int64_attribute("num_ops", node->flop);
        attributes[2] = uint64_attribute("tensor_size", node->bytes);
        return 3;
    }
    const etch_group_family *family = &p->job->families[node->family];
    snprintf(group, 16, "%u", (unsigned)etch_group_id(p->job, family, p->rank));
    attributes[1] = int64_attribute("comm_type", node->collective);
    attributes[2] = int64_attribute("comm_size", node->bytes);
    attributes[3] = string_attribute("pg_name", group);
    return 4;
}

enum { MOST_ATTRIBUTES = 4 + ETCH_ANNOTATION_COUNT };

/* Returns how many there are now. */
static size_t add_annotations(const etch_annotated *annotated, attribute *attributes, size_t count)
{
    for (unsigned i = 0; i < ETCH_ANNOTATION_COUNT; i++) {
        const char *name = etch_annotation_name((etch_annotation)i);
        if (!(annotated->given >> i & 1))
            continue;
        if (i == ETCH_ANNOTATION_LAYER || i == ETCH_ANNOTATION_MICROBATCH)
            attributes[count++] = int64_attribute(name, annotated->value[i].number);
        else
            attributes[count++] = string_attribute(name, (char *)annotated->value[i].text);
    }
    return count;
}

static void pack_node(packing *p, const etch_class_program *program, uint32_t id)
{
    const etch_node *node = &program->nodes[id];
    ChakraProtoMsg__Node message = CHAKRA_PROTO_MSG__NODE__INIT;
    attribute attributes[MOST_ATTRIBUTES];
    attribute *pointers[MOST_ATTRIBUTES];
    for (size_t i = 0; i < MOST_ATTRIBUTES; i++)
        pointers[i] = &attributes[i];
    char group[16];
    uint64_t *deps = malloc((node->dep_count + 1) * sizeof *deps);
    if (!deps) {
        p->failed = true;
        return;
    }
    for (uint32_t i = 0; i < node->dep_count; i++)
        deps[i] = program->deps[node->first_dep + i];
    message.id = id;
    message.name = (char *)(program->names + node->name);
    message.type = (ChakraProtoMsg__NodeType)node->type;
    message.data_deps = deps;
    message.n_data_deps = node->dep_count;
    message.attr = pointers;
    message.n_attr = set_attributes(p, node, group, attributes);
    if (program->annotated)
        message.n_attr = add_annotations(&program->annotated[id], attributes, message.n_attr);
    pack(p, &message.base);
    free(deps);
}

uint8_t *reference_trace(const etch_job *job, uint32_t rank, size_t *length)
{
    packing p = {.job = job, .rank = rank};
    const etch_class_program *program = &job->programs[job->class_of[rank]];
    ChakraProtoMsg__GlobalMetadata metadata = CHAKRA_PROTO_MSG__GLOBAL_METADATA__INIT;
    metadata.version = "0.0.4";
    pack(&p, &metadata.base);
    for (uint32_t id = 0; id < program->node_count && !p.failed; id++)
        pack_node(&p, program, id);
    if (p.failed) {
        free(p.bytes);
        return NULL;
    }
    *length = p.length;
    return p.bytes;
}
