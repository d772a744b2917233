/* The tables of the schema, looked up. */
#include "chakra/chakra.h"

#include <string.h>

enum {
#define X(enumerator, number, name, brief) +1
    TYPE_COUNT = 0 ETCH_CHAKRA_TYPES(X),
    COLLECTIVE_COUNT = 0 ETCH_CHAKRA_COLLECTIVES(X)
#undef X
};

const char *etch_chakra_type_name(int64_t type)
{
#define X(enumerator, number, name, brief) [number] = name,
    static const char *const names[TYPE_COUNT] = {ETCH_CHAKRA_TYPES(X)};
#undef X
    return type >= 0 && type < TYPE_COUNT ? names[type] : NULL;
}

const char *etch_chakra_type_brief(int64_t type)
{
#define X(enumerator, number, name, brief) [number] = brief,
    static const char *const names[TYPE_COUNT] = {ETCH_CHAKRA_TYPES(X)};
#undef X
    return type >= 0 && type < TYPE_COUNT ? names[type] : NULL;
}

const char *etch_chakra_collective_name(int64_t collective)
{
#define X(enumerator, number, name, query) [number] = name,
    static const char *const names[COLLECTIVE_COUNT] = {ETCH_CHAKRA_COLLECTIVES(X)};
#undef X
    return collective >= 0 && collective < COLLECTIVE_COUNT ? names[collective] : NULL;
}

const char *etch_chakra_collective_query(int64_t collective)
{
#define X(enumerator, number, name, query) [number] = query,
    static const char *const names[COLLECTIVE_COUNT] = {ETCH_CHAKRA_COLLECTIVES(X)};
#undef X
    return collective >= 0 && collective < COLLECTIVE_COUNT ? names[collective] : NULL;
}

const char *etch_chakra_kind_name(unsigned kind)
{
    static const char *const names[] = {
        "double_val",  "double_list",  "float_val",    "float_list",    "int32_val",    "int32_list",
        "int64_val",   "int64_list",   "uint32_val",   "uint32_list",   "uint64_val",   "uint64_list",
        "sint32_val",  "sint32_list",  "sint64_val",   "sint64_list",   "fixed32_val",  "fixed32_list",
        "fixed64_val", "fixed64_list", "sfixed32_val", "sfixed32_list", "sfixed64_val", "sfixed64_list",
        "bool_val",    "bool_list",    "string_val",   "string_list",   "bytes_val",    "bytes_list"};
    return kind >= ETCH_KIND_DOUBLE && kind <= ETCH_KIND_LAST ? names[kind - ETCH_KIND_DOUBLE] : NULL;
}

/* ---- files --------------------------------------------------------------------------------------------- */

static size_t before(const char *file, size_t length, const char *suffix)
{
    const size_t end = strlen(suffix);
    return length > end && memcmp(file + length - end, suffix, end) == 0 ? length - end : 0;
}

size_t etch_chakra_stem(const char *file, bool *is_packed)
{
    const size_t length = strlen(file), packed = before(file, length, ETCH_CHAKRA_SUFFIX_ZSTD);
    *is_packed = packed > 0;
    return packed > 0 ? packed : before(file, length, ETCH_CHAKRA_SUFFIX);
}

/* ---- attributes ---------------------------------------------------------------------------------------- */

typedef struct attribute_row {
    const char *name;
    uint8_t length, kind;
} attribute_row;

#define X(enumerator, name, kind) {name, sizeof(name) - 1, kind},
static const attribute_row attributes[ETCH_ATTRIBUTE_COUNT] = {ETCH_CHAKRA_ATTRIBUTES(X)};
#undef X

const char *etch_chakra_attribute_name(etch_chakra_attribute attribute)
{
    return attribute < ETCH_ATTRIBUTE_COUNT ? attributes[attribute].name : NULL;
}

etch_chakra_kind etch_chakra_attribute_kind(etch_chakra_attribute attribute)
{
    return attribute < ETCH_ATTRIBUTE_COUNT ? (etch_chakra_kind)attributes[attribute].kind : ETCH_KIND_NONE;
}

etch_chakra_attribute etch_chakra_attribute_of(const char *name, size_t length)
{
    for (unsigned i = 0; i < ETCH_ATTRIBUTE_COUNT; i++)
        if (attributes[i].length == length && memcmp(attributes[i].name, name, length) == 0)
            return (etch_chakra_attribute)i;
    return ETCH_ATTRIBUTE_UNKNOWN;
}
