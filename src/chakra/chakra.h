/* The header of chakra: the numbers and names of Chakra's schema (package ChakraProtoMsg), and what
 * simulators read of a trace. It is all that writing a trace and reading one have in common.
 *
 * A trace file is messages, each after its length as a varint: one GlobalMetadata, then Nodes. */
#ifndef ETCH_CHAKRA_H
#define ETCH_CHAKRA_H

#include "base/base.h"

#define ETCH_CHAKRA_VERSION "0.0.4" /* GlobalMetadata.version as generators write it */
#define ETCH_CHAKRA_SUFFIX ".et"    /* of traces: <name>.<rank>.et */
/* of one that is compressed: a zstd frame, or several */
#define ETCH_CHAKRA_SUFFIX_ZSTD ".et.zst"
#define ETCH_CHAKRA_GROUP_FILE "comm_group.json"

/* What etch says of a run, beside its traces: no part of Chakra. */
#define ETCH_MANIFEST_FILE "manifest.json"
#define ETCH_MANIFEST_FORMAT "etch-manifest"

/* ---- numbers of fields --------------------------------------------------------------------------------- */

typedef enum etch_chakra_metadata_field {
    /* string */
    ETCH_FIELD_VERSION = 1,
    /* AttributeProto, repeated */
    ETCH_FIELD_METADATA_ATTR = 2
} etch_chakra_metadata_field;

typedef enum etch_chakra_node_field {
    /* uint64 */
    ETCH_FIELD_ID = 1,
    /* string */
    ETCH_FIELD_NAME = 2,
    /* etch_chakra_type */
    ETCH_FIELD_TYPE = 3,
    /* uint64, repeated */
    ETCH_FIELD_CTRL_DEPS = 4,
    /* uint64, repeated */
    ETCH_FIELD_DATA_DEPS = 5,
    /* uint64, microseconds */
    ETCH_FIELD_START_TIME = 6,
    /* uint64, microseconds */
    ETCH_FIELD_DURATION = 7,
    /* IOInfo */
    ETCH_FIELD_INPUTS = 8,
    /* IOInfo */
    ETCH_FIELD_OUTPUTS = 9,
    /* AttributeProto, repeated */
    ETCH_FIELD_ATTR = 10
} etch_chakra_node_field;

typedef enum etch_chakra_io_field {
    ETCH_FIELD_IO_VALUES = 1,
    ETCH_FIELD_IO_SHAPES = 2,
    ETCH_FIELD_IO_TYPES = 3
} etch_chakra_io_field;

typedef enum etch_chakra_attr_field {
    ETCH_FIELD_ATTR_NAME = 1,
    /* the numbers after it are kinds of values: etch_chakra_kind */
    ETCH_FIELD_ATTR_DOC = 2
} etch_chakra_attr_field;

/* ---- node types and collectives ------------------------------------------------------------------------ */

/* X(enumerator, number, name in the schema, short name) */
#define ETCH_CHAKRA_TYPES(X)                       \
    X(INVALID, 0, "INVALID_NODE", "INVALID")       \
    X(METADATA, 1, "METADATA_NODE", "METADATA")    \
    X(MEM_LOAD, 2, "MEM_LOAD_NODE", "MEM_LOAD")    \
    X(MEM_STORE, 3, "MEM_STORE_NODE", "MEM_STORE") \
    X(COMP, 4, "COMP_NODE", "COMP")                \
    X(COMM_SEND, 5, "COMM_SEND_NODE", "COMM_SEND") \
    X(COMM_RECV, 6, "COMM_RECV_NODE", "COMM_RECV") \
    X(COMM_COLL, 7, "COMM_COLL_NODE", "COMM_COLL") \
    X(STORAGE, 8, "STORAGE_NODE", "STORAGE")       \
    X(DATA_OP, 9, "DATA_OP_NODE", "DATA_OP")
typedef enum etch_chakra_type {
#define X(enumerator, number, name, brief) ETCH_TYPE_##enumerator = number,
    ETCH_CHAKRA_TYPES(X)
#undef X
} etch_chakra_type;

/* X(enumerator, number, name in the schema, name in queries) */
#define ETCH_CHAKRA_COLLECTIVES(X)                                             \
    X(ALL_REDUCE, 0, "ALL_REDUCE", "all_reduce")                               \
    X(REDUCE, 1, "REDUCE", "reduce")                                           \
    X(ALL_GATHER, 2, "ALL_GATHER", "all_gather")                               \
    X(GATHER, 3, "GATHER", "gather")                                           \
    X(SCATTER, 4, "SCATTER", "scatter")                                        \
    X(BROADCAST, 5, "BROADCAST", "broadcast")                                  \
    X(ALL_TO_ALL, 6, "ALL_TO_ALL", "all_to_all")                               \
    X(REDUCE_SCATTER, 7, "REDUCE_SCATTER", "reduce_scatter")                   \
    X(REDUCE_SCATTER_BLOCK, 8, "REDUCE_SCATTER_BLOCK", "reduce_scatter_block") \
    X(BARRIER, 9, "BARRIER", "barrier")
typedef enum etch_chakra_collective {
#define X(enumerator, number, name, query) ETCH_COLLECTIVE_##enumerator = number,
    ETCH_CHAKRA_COLLECTIVES(X)
#undef X
} etch_chakra_collective;

/* ---- values of attributes ------------------------------------------------------------------------------ */

/* How a value is encoded. */
typedef enum etch_chakra_scalar {
    ETCH_SCALAR_DOUBLE,
    ETCH_SCALAR_FLOAT,
    ETCH_SCALAR_INT32,
    ETCH_SCALAR_INT64,
    ETCH_SCALAR_UINT32,
    ETCH_SCALAR_UINT64,
    ETCH_SCALAR_SINT32,
    ETCH_SCALAR_SINT64,
    ETCH_SCALAR_FIXED32,
    ETCH_SCALAR_FIXED64,
    ETCH_SCALAR_SFIXED32,
    ETCH_SCALAR_SFIXED64,
    ETCH_SCALAR_BOOL,
    ETCH_SCALAR_STRING,
    ETCH_SCALAR_BYTES
} etch_chakra_scalar;

/* The number of a kind is its field in AttributeProto: odd ones hold one value, the even one after it a
 * message whose field 1 is the list of them. */
typedef enum etch_chakra_kind {
    ETCH_KIND_NONE = 0,
    ETCH_KIND_DOUBLE = 3,
    ETCH_KIND_FLOAT = 5,
    ETCH_KIND_INT32 = 7,
    ETCH_KIND_INT64 = 9,
    ETCH_KIND_UINT32 = 11,
    ETCH_KIND_UINT64 = 13,
    ETCH_KIND_SINT32 = 15,
    ETCH_KIND_SINT64 = 17,
    ETCH_KIND_FIXED32 = 19,
    ETCH_KIND_FIXED64 = 21,
    ETCH_KIND_SFIXED32 = 23,
    ETCH_KIND_SFIXED64 = 25,
    ETCH_KIND_BOOL = 27,
    ETCH_KIND_BOOL_LIST = 28,
    ETCH_KIND_STRING = 29,
    ETCH_KIND_STRING_LIST = 30,
    ETCH_KIND_BYTES = 31,
    ETCH_KIND_LAST = 32
} etch_chakra_kind;

static inline bool etch_chakra_is_list(unsigned kind)
{
    return kind % 2 == 0;
}

/* Of a kind from ETCH_KIND_DOUBLE to ETCH_KIND_LAST. */
static inline etch_chakra_scalar etch_chakra_scalar_of(unsigned kind)
{
    return (etch_chakra_scalar)((kind - ETCH_KIND_DOUBLE) / 2);
}

/* ---- attributes that simulators read ------------------------------------------------------------------- */

/* X(enumerator, name, kind of its value): simulators read exactly this kind. */
#define ETCH_CHAKRA_ATTRIBUTES(X)                      \
    X(IS_CPU_OP, "is_cpu_op", ETCH_KIND_BOOL)          \
    X(NUM_OPS, "num_ops", ETCH_KIND_INT64)             \
    X(TENSOR_SIZE, "tensor_size", ETCH_KIND_UINT64)    \
    X(COMM_TYPE, "comm_type", ETCH_KIND_INT64)         \
    X(COMM_SIZE, "comm_size", ETCH_KIND_INT64)         \
    X(PG_NAME, "pg_name", ETCH_KIND_STRING)            \
    X(COMM_SRC, "comm_src", ETCH_KIND_INT32)           \
    X(COMM_DST, "comm_dst", ETCH_KIND_INT32)           \
    X(COMM_TAG, "comm_tag", ETCH_KIND_INT32)           \
    X(COMM_PRIORITY, "comm_priority", ETCH_KIND_INT32) \
    X(INPUTS, "inputs", ETCH_KIND_STRING_LIST)         \
    X(OUTPUTS, "outputs", ETCH_KIND_STRING_LIST)       \
    X(INVOLVED_DIM, "involved_dim", ETCH_KIND_BOOL_LIST)
typedef enum etch_chakra_attribute {
#define X(enumerator, name, kind) ETCH_ATTRIBUTE_##enumerator,
    ETCH_CHAKRA_ATTRIBUTES(X)
#undef X
        ETCH_ATTRIBUTE_COUNT,
    /* of a name that simulators ignore */
    ETCH_ATTRIBUTE_UNKNOWN = ETCH_ATTRIBUTE_COUNT
} etch_chakra_attribute;

/* ---- what simulators take ------------------------------------------------------------------------------ */

enum {
    /* bytes of comm_size: simulators loop or reject below */
    ETCH_LEAST_PAYLOAD = 64,
    /* of one rank: Chakra's own feeder can crash above */
    ETCH_MOST_NODES = 1 << 20,
    /* a simulator multiplies ids by a million in 32 bits */
    ETCH_MOST_GROUP_ID = 2147,
    /* of comm_tag */
    ETCH_MOST_TAG = 499999999,
    /* The first computation of a rank must not end in the nanosecond in which it begins, or ASTRA-sim's queue
     * of events ends the program: bytes, or FLOP, that no machine of the next years gets through in one. */
    ETCH_LEAST_FIRST_BYTES = 1 << 15,
    ETCH_LEAST_FIRST_FLOP = 1 << 25,
    /* involved_dim is as long, where a collective does not have it */
    ETCH_ASSUMED_DIMENSIONS = 4
};

/* ---- names --------------------------------------------------------------------------------------------- */

/* Bytes of the name of a file before the suffix of a trace, and whether that says that it is compressed; 0:
 * it is no name of a trace. */
size_t etch_chakra_stem(const char *file, bool *is_packed);

/* Static texts, NULL for a number that the schema does not have. */
const char *etch_chakra_type_name(int64_t type);              /* "COMP_NODE" */
const char *etch_chakra_type_brief(int64_t type);             /* "COMP" */
const char *etch_chakra_collective_name(int64_t collective);  /* "ALL_REDUCE" */
const char *etch_chakra_collective_query(int64_t collective); /* "all_reduce" */
const char *etch_chakra_kind_name(unsigned kind);             /* "int64_val", "int64_list" */

const char *etch_chakra_attribute_name(etch_chakra_attribute attribute);
etch_chakra_kind etch_chakra_attribute_kind(etch_chakra_attribute attribute);
etch_chakra_attribute etch_chakra_attribute_of(const char *name, size_t length);

#endif
