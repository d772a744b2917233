/* A dump from which the same bytes can be made again. */
#include "trace/text_int.h"

#include <string.h>

/* Whether a name can stand without quotes. */
static bool is_plain(const char *name)
{
    for (; *name; name++)
        if (*name <= ' ' || *name > '~' || strchr("\"=#\\", *name))
            return false;
    return true;
}

/* Of a compressed trace, the name that what it holds has by itself. */
static void begin_file(etch_dump *dump)
{
    bool is_packed;
    const size_t stem = etch_chakra_stem(dump->file, &is_packed);
    const size_t length = is_packed ? stem + strlen(ETCH_CHAKRA_SUFFIX) : strlen(dump->file);
    const etch_trace_text name = {dump->file, length};
    etch_buf_puts(&dump->out, "file ");
    if (is_plain(dump->file))
        etch_buf_add(&dump->out, dump->file, length);
    else
        etch_text_escaped(&dump->out, name);
    etch_buf_puts(&dump->out, "\n");
}

/* The varint before a message takes all bytes since the one before: there is one way to do that. */
static void add_frame(etch_dump *dump, uint64_t offset, uint64_t length)
{
    uint8_t frame[10];
    size_t size = (size_t)(offset - dump->end);
    for (size_t i = 0; i < size; i++, length >>= 7)
        frame[i] = (uint8_t)((length & 127) | (i + 1 < size ? 128 : 0));
    etch_text_bytes(&dump->out, frame, size);
}

/* Whether the lines of a message, whose canonical form is in `body`, give back what is in the file. */
static bool is_canonical(const etch_dump *dump, uint64_t offset, uint64_t length, const uint8_t *bytes)
{
    return offset - dump->end == etch_varint_size(length) && dump->body.length == length &&
           (length == 0 || memcmp(dump->body.text, bytes, (size_t)length) == 0);
}

static void add_bytes(etch_dump *dump, const char *what, uint64_t offset, uint64_t length,
                      const uint8_t *bytes)
{
    etch_buf_printf(&dump->out, "# %s is not in the canonical encoding\n", what);
    add_frame(dump, offset, length);
    etch_text_bytes(&dump->out, bytes, (size_t)length);
}

static void add_metadata(etch_dump *dump, const etch_trace_metadata *metadata)
{
    dump->body.length = 0;
    etch_encode_metadata(&dump->encoder, &dump->body, metadata);
    if (is_canonical(dump, metadata->offset, metadata->length, metadata->bytes))
        etch_text_metadata(&dump->out, metadata);
    else
        add_bytes(dump, "the metadata", metadata->offset, metadata->length, metadata->bytes);
}

static void add_node(etch_dump *dump, const etch_trace_node *node)
{
    dump->body.length = 0;
    etch_encode_node(&dump->encoder, &dump->body, node);
    if (is_canonical(dump, node->offset, node->length, node->bytes))
        etch_text_node(&dump->out, node);
    else
        add_bytes(dump, "this node", node->offset, node->length, node->bytes);
}

static void finish(etch_dump *dump)
{
    (void)dump;
}

const etch_dump_way etch_dump_as_text = {begin_file, add_metadata, add_node, finish};
