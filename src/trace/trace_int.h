/* Inside trace: from bytes to messages. */
#ifndef ETCH_TRACE_INT_H
#define ETCH_TRACE_INT_H

#include "trace/trace.h"

/* ---- table.c: memory of threads ------------------------------------------------------------------------ */

/* An array from malloc with room for one object more than `count`. When memory is out: `at`, and
 * `*failed`. */
void *etch_enlarge(void *at, uint32_t *capacity, size_t size, bool *failed) ETCH_MUST_CHECK;
static inline void *etch_reserve(void *at, uint32_t count, uint32_t *capacity, size_t size, bool *failed)
{
    return count < *capacity ? at : etch_enlarge(at, capacity, size, failed);
}

/* Numbers by number; all zero is an empty table. Keys and values are below 2^32 - 1. */
typedef struct etch_number_table {
    uint32_t *keys, *values;
    uint32_t count, capacity;
} etch_number_table;
/* The value of `key`, NULL when there is none; valid until the next change. */
uint32_t *etch_table_get(const etch_number_table *table, uint32_t key);
/* Adds a key that is not there. False when memory is out. */
bool etch_table_add(etch_number_table *table, uint32_t key, uint32_t value) ETCH_MUST_CHECK;
/* Removes the key whose value is at `value`. */
void etch_table_remove(etch_number_table *table, const uint32_t *value);
void etch_table_free(etch_number_table *table);

/* ---- wire.c: messages ---------------------------------------------------------------------------------- */

/* Arrays that the messages of one reader use one after the other; from malloc. */
typedef struct etch_wire {
    etch_trace_attr *attrs;
    /* by attribute: its first value */
    uint32_t *firsts;
    etch_trace_value *values;
    uint64_t *data_deps, *ctrl_deps;
    uint32_t attr_count, attr_capacity, first_capacity;
    uint32_t value_count, value_capacity;
    uint32_t data_dep_count, data_dep_capacity;
    uint32_t ctrl_dep_count, ctrl_dep_capacity;
} etch_wire;

void etch_wire_free(etch_wire *wire);

/* Decode a message of `length` bytes that stands at `offset` of a file. The results point into `bytes` and
 * `wire`. */
etch_status etch_wire_metadata(etch_wire *wire, const uint8_t *bytes, size_t length, uint64_t offset,
                               etch_trace_metadata *metadata, etch_trace_error *error) ETCH_MUST_CHECK;
etch_status etch_wire_node(etch_wire *wire, const uint8_t *bytes, size_t length, uint64_t offset,
                           etch_trace_node *node, etch_trace_error *error) ETCH_MUST_CHECK;

/* ---- unpack.c: compressed traces ----------------------------------------------------------------------- */

/* Reads from an open file, which stays its caller's, with a bounded window: some 8 MB at most. */
typedef struct etch_unpacker etch_unpacker;
/* NULL: memory is out. */
etch_unpacker *etch_unpacker_new(int file);
void etch_unpacker_free(etch_unpacker *unpacker); /* NULL is allowed */
/* Goes on with another file. */
void etch_unpacker_begin(etch_unpacker *unpacker, int file);
/* Up to `room` bytes of what was compressed, at `at`; 0 at the end. ETCH_EIO: the file cannot be read, and
 * `*error` is an errno. ETCH_EINPUT: `reason`, which has room for `size` bytes, says what is wrong.
 * ETCH_ENOMEM. */
etch_status etch_unpacker_read(etch_unpacker *unpacker, void *at, size_t room, size_t *got, int *error,
                               char *reason, size_t size) ETCH_MUST_CHECK;

/* ---- how a field is encoded ---------------------------------------------------------------------------- */

/* Wire types: how a field is encoded. */
enum {
    ETCH_WIRE_VARINT,
    ETCH_WIRE_FIXED64,
    ETCH_WIRE_BYTES,
    ETCH_WIRE_GROUP,
    ETCH_WIRE_GROUP_END,
    ETCH_WIRE_FIXED32
};

/* The wire type of one value. */
uint32_t etch_wire_of(etch_chakra_scalar scalar);
/* A varint at `at`: the bytes it takes, 0 when `end` comes first, -1 when it is longer than a varint can
 * be. */
int etch_wire_varint(const uint8_t *at, const uint8_t *end, uint64_t *value);

#endif
