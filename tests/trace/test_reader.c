/* The reader of traces: every valid encoding is understood, everything else is refused at its place. */
#include "suite.h"

#include "trace/trace.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define HEAD "\x07\x0a\x05" /* GlobalMetadata with a version */ "0.0.4"
enum { HEAD_BYTES = sizeof(HEAD) - 1 };

/* A case: the bytes of one node message behind the head, and what becomes of them. */
typedef struct reading {
    const char *bytes;
    size_t length;
    const char *told; /* the node as `describe` has it, or what the error says */
    uint64_t offset;  /* of an error, from the begin of the message */
} reading;
#define BYTES(text) text, sizeof(text) - 1

static void add_text(etch_buf *out, etch_trace_text text)
{
    etch_buf_add(out, text.at, text.length);
}

static void describe_value(etch_buf *out, const etch_trace_attr *attr, uint32_t i)
{
    const etch_trace_value *value = &attr->values[i];
    switch (etch_chakra_scalar_of(attr->kind)) {
    case ETCH_SCALAR_DOUBLE:
    case ETCH_SCALAR_FLOAT:
        etch_buf_printf(out, "%g", value->number);
        break;
    case ETCH_SCALAR_STRING:
    case ETCH_SCALAR_BYTES:
        add_text(out, value->text);
        break;
    default:
        etch_buf_printf(out, "%" PRId64, value->integer);
    }
}

static const char *describe(etch_arena *arena, const etch_trace_node *node)
{
    etch_buf out = {.arena = arena};
    etch_buf_printf(&out, "%" PRIu64 " ", node->id);
    add_text(&out, node->name);
    etch_buf_printf(&out, ":%d", node->type);
    for (uint32_t i = 0; i < node->data_dep_count; i++)
        etch_buf_printf(&out, " <%" PRIu64, node->data_deps[i]);
    for (uint32_t i = 0; i < node->ctrl_dep_count; i++)
        etch_buf_printf(&out, " c<%" PRIu64, node->ctrl_deps[i]);
    for (uint32_t i = 0; i < node->attr_count; i++) {
        const etch_trace_attr *attr = &node->attrs[i];
        etch_buf_puts(&out, " ");
        add_text(&out, attr->name);
        etch_buf_printf(&out, "(%s)=", attr->kind ? etch_chakra_kind_name(attr->kind) : "");
        for (uint32_t k = 0; k < attr->count; k++) {
            etch_buf_puts(&out, k ? "," : "");
            describe_value(&out, attr, k);
        }
    }
    if (node->duration)
        etch_buf_printf(&out, " %" PRIu64 "us", node->duration);
    if (node->outputs.present) {
        etch_buf_puts(&out, " out ");
        add_text(&out, node->outputs.values);
    }
    if (node->unknown)
        etch_buf_printf(&out, " unknown %u", (unsigned)node->unknown);
    return out.text;
}

/* An attribute `a` whose message has `length` bytes in all, name included. */
#define ATTR(length, value)  \
    "\x52" length "\x0a\x01" \
    "a" value

static const reading readings[] = {
    /* nothing at all is a node of zeros */
    {BYTES(""), "0 :0", 0},
    {BYTES("\x08\x05\x12\x02"
           "xy"
           "\x18\x04"),
     "5 xy:4", 0},
    /* fields in any order, the last of several counts, lengths and numbers longer than they must be */
    {BYTES("\x18\x04\x08\x01\x12\x81\x00"
           "x"
           "\x08\x85\x80\x00"),
     "5 x:4", 0},
    /* dependencies packed, not packed, and both */
    {BYTES("\x28\x01\x2a\x03\x02\xac\x02\x28\x03\x2a\x00"), "0 :0 <1 <2 <300 <3", 0},
    {BYTES("\x22\x01\x07\x20\x08"), "0 :0 c<7 c<8", 0},
    /* every kind of value */
    {BYTES(ATTR("\x0e", "\x38\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01")), "0 :0 a(int32_val)=-1", 0},
    {BYTES(ATTR("\x0e", "\x48\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01")), "0 :0 a(int64_val)=-1", 0},
    {BYTES(ATTR("\x06", "\x58\x96\x01")), "0 :0 a(uint32_val)=150", 0},
    {BYTES(ATTR("\x06", "\x68\x96\x01")), "0 :0 a(uint64_val)=150", 0},
    {BYTES(ATTR("\x05", "\x78\x03")), "0 :0 a(sint32_val)=-2", 0},
    {BYTES(ATTR("\x06", "\x88\x01\x04")), "0 :0 a(sint64_val)=2", 0},
    {BYTES(ATTR("\x09", "\x9d\x01\x01\x00\x00\x80")), "0 :0 a(fixed32_val)=2147483649", 0},
    {BYTES(ATTR("\x09", "\xbd\x01\xfe\xff\xff\xff")), "0 :0 a(sfixed32_val)=-2", 0},
    {BYTES(ATTR("\x0d", "\xa9\x01\x02\x00\x00\x00\x00\x00\x00\x00")), "0 :0 a(fixed64_val)=2", 0},
    {BYTES(ATTR("\x0c", "\x19\x00\x00\x00\x00\x00\x00\xf8\x3f")), "0 :0 a(double_val)=1.5", 0},
    {BYTES(ATTR("\x08", "\x2d\x00\x00\xc0\xbf")), "0 :0 a(float_val)=-1.5", 0},
    {BYTES(ATTR("\x06", "\xd8\x01\x02")), "0 :0 a(bool_val)=1", 0},
    {BYTES(ATTR("\x08", "\xea\x01\x02"
                        "hi")),
     "0 :0 a(string_val)=hi", 0},
    {BYTES(ATTR("\x03", "")), "0 :0 a()=", 0},
    /* one value of the oneof: the last one; lists of one kind are joined */
    {BYTES(ATTR("\x09", "\x48\x01\xea\x01\x01"
                        "x")),
     "0 :0 a(string_val)=x", 0},
    {BYTES(ATTR("\x0d", "\x52\x04\x0a\x02\x01\x02\x52\x02\x08\x03")), "0 :0 a(int64_list)=1,2,3", 0},
    {BYTES(ATTR("\x09", "\x52\x02\x08\x03\x48\x09")), "0 :0 a(int64_val)=9", 0},
    {BYTES(ATTR("\x0c", "\xf2\x01\x06\x0a\x01"
                        "x"
                        "\x0a\x01"
                        "y")),
     "0 :0 a(string_list)=x,y", 0},
    {BYTES("\x38\x0a\x4a\x03\x0a\x01"
           "t"),
     "0 :0 10us out t", 0},
    /* what the schema does not know: fields of every encoding, and known ones of another */
    {BYTES("\xa0\x06\x01\xa5\x06"
           "1234"
           "\xa1\x06"
           "12345678"
           "\xa2\x06\x01"
           "x"
           "\x08\x02"),
     "2 :0 unknown 4", 0},
    {BYTES("\xa3\x06\x08\x01\x0b\x0c\xa4\x06\x08\x03"), "3 :0 unknown 1", 0},
    {BYTES("\x0a\x01"
           "x"
           "\x10\x07\x08\x01"),
     "1 :0 unknown 2", 0},
    /* broken ones */
    {BYTES("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"), "a varint is longer than 64 bits", 1},
    {BYTES("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02"), "a varint is longer than 64 bits", 1},
    {BYTES("\x18\x01\x08\xff"), "a message ends within a varint", 3},
    {BYTES("\x00\x01"), "a field has no number that a field can have", 0},
    {BYTES("\x80\x80\x80\x80\x80\x01"), "a field has no number that a field can have", 0},
    {BYTES("\x0f"), "a field has no encoding that a field can have", 0},
    {BYTES("\x12\x05"
           "ab"),
     "a field is longer than the message that holds it", 1},
    {BYTES("\x12\xff\xff\xff\xff\xff\xff\xff\xff\x0f"), "a field is longer than the message that holds it",
     1},
    {BYTES("\x12\x02\xc3"
           "x"),
     "a text is not UTF-8", 2},
    {BYTES("\x12\x03\xed\xa0\x80"), "a text is not UTF-8", 2},
    {BYTES("\x12\x02\xc0\xaf"), "a text is not UTF-8", 2},
    {BYTES(ATTR("\x0b", "\x1d"
                        "1234"
                        "\x19"
                        "12")),
     "a message ends within a fixed number", 11},
    {BYTES("\xa3\x06\x08\x01"), "a group has no end", 0},
    {BYTES("\xa3\x06\xac\x06"), "the end of a group has another number than its begin", 2},
    {BYTES("\xa4\x06"), "a group ends that has not begun", 0},
};

static void messages_are_read(etch_arena *arena)
{
    for (size_t i = 0; i < sizeof readings / sizeof *readings; i++) {
        const reading *r = &readings[i];
        etch_buf bytes = {.arena = arena};
        etch_trace_reader *reader;
        etch_trace_error error = {0};
        const etch_trace_node *node;
        etch_buf_add(&bytes, HEAD, HEAD_BYTES);
        etch_buf_add(&bytes, (const char[]){(char)r->length}, 1);
        etch_buf_add(&bytes, r->bytes, r->length);
        ck_assert_int_eq(etch_trace_open_bytes(bytes.text, bytes.length, &reader, &error), ETCH_OK);
        if (etch_trace_next(reader, &node, &error) == ETCH_OK) {
            ck_assert_ptr_nonnull(node);
            ck_assert_str_eq(describe(arena, node), r->told);
            ck_assert_int_eq(etch_trace_next(reader, &node, &error), ETCH_OK);
            ck_assert_ptr_null(node);
        } else {
            ck_assert_str_eq(error.reason, r->told);
            ck_assert_uint_eq(error.offset, HEAD_BYTES + 1 + r->offset);
        }
        etch_trace_close(reader);
    }
}

START_TEST(test_messages)
{
    etch_with_arena(messages_are_read);
}
END_TEST

/* Whole files that are refused. */
static const struct {
    const char *bytes;
    size_t length;
    const char *reason;
    uint64_t offset;
} files[] = {
    {BYTES(""), "the file is empty: there is no GlobalMetadata", 0},
    {BYTES("\x1f\x8b\x08\x00"), "the file is compressed with gzip, which simulators do not read", 0},
    {BYTES("\x80"), "the file ends within the length of a message", 0},
    {BYTES("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"), "the length of a message is no varint", 0},
    {BYTES("\x80\x80\x80\x80\x80\x80\x80\x80\x10"),
     "a message of 1152921504606846976 bytes is longer than the limit of 16777216", 0},
    {BYTES(HEAD "\x05\x08\x01"), "the file ends within a message of 5 bytes", HEAD_BYTES},
    {BYTES(HEAD "\x02\x08\x01\xff"), "the file ends within the length of a message", HEAD_BYTES + 3},
};

START_TEST(test_files)
{
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        etch_trace_reader *reader;
        etch_trace_error error;
        const etch_trace_node *node;
        etch_status status = etch_trace_open_bytes(files[i].bytes, files[i].length, &reader, &error);
        ck_assert(status == ETCH_OK || !reader);
        while (status == ETCH_OK) {
            status = etch_trace_next(reader, &node, &error);
            ck_assert(status != ETCH_OK || node);
        }
        ck_assert_int_eq(status, ETCH_EINPUT);
        ck_assert_str_eq(error.reason, files[i].reason);
        ck_assert_uint_eq(error.offset, files[i].offset);
        etch_trace_close(reader);
    }
}
END_TEST

/* A message with more of one thing than a message may have. */
static void check_limit(etch_arena *arena, const char *part, size_t length, uint32_t limit,
                        const char *reason)
{
    for (uint32_t more = 0; more < 2; more++) {
        etch_buf bytes = {.arena = arena};
        etch_trace_reader *reader;
        etch_trace_error error;
        const etch_trace_node *node;
        const uint64_t size = (uint64_t)length * (limit + more);
        etch_buf_add(&bytes, HEAD, HEAD_BYTES);
        for (uint64_t left = size; left > 0 || bytes.length == HEAD_BYTES; left >>= 7)
            etch_buf_add(&bytes, (const char[]){(char)(left >= 128 ? left | 128 : left)}, 1);
        for (uint32_t i = 0; i < limit + more; i++)
            etch_buf_add(&bytes, part, length);
        ck_assert_int_eq(etch_trace_open_bytes(bytes.text, bytes.length, &reader, &error), ETCH_OK);
        ck_assert_int_eq(etch_trace_next(reader, &node, &error), more ? ETCH_EINPUT : ETCH_OK);
        if (more)
            ck_assert_str_eq(error.reason, reason);
        etch_trace_close(reader);
    }
}

static void messages_are_limited(etch_arena *arena)
{
    check_limit(arena, BYTES("\x28\x00"), ETCH_TRACE_DEP_LIMIT, "a node has too many dependencies");
    check_limit(arena, BYTES("\x52\x00"), ETCH_TRACE_ATTR_LIMIT, "a message has too many attributes");
}

START_TEST(test_limits)
{
    etch_with_arena(messages_are_limited);
}
END_TEST

START_TEST(test_missing_file)
{
    etch_trace_reader *reader;
    etch_trace_error error;
    ck_assert_int_eq(etch_trace_open("/nowhere/to/be/found.0.et", &reader, &error), ETCH_EIO);
    ck_assert_ptr_null(reader);
    ck_assert_str_eq(error.reason, "No such file or directory");
    ck_assert_int_eq(etch_trace_open("/", &reader, &error), ETCH_EIO);
    ck_assert_str_eq(error.reason, "it is no regular file");
}
END_TEST

Suite *etch_suite(void)
{
    Suite *suite = suite_create("reader");
    ETCH_ADD_TESTS(suite, test_messages, test_files, test_limits, test_missing_file);
    return suite;
}
