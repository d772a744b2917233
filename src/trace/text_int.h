/* The text form of traces: docs/trace-text.md says what it looks like. */
#ifndef ETCH_TRACE_TEXT_INT_H
#define ETCH_TRACE_TEXT_INT_H

#include "trace/trace.h"

/* ---- encode.c: the canonical encoding ------------------------------------------------------------------ */

/* Room that messages use one after the other. */
typedef struct etch_encoder {
    etch_buf attr, list, packed;
} etch_encoder;

void etch_encoder_begin(etch_encoder *encoder, etch_arena *arena);
/* Append the bytes of a message, or one attribute as field number `field`, without a length in front. What
 * `offset`, `length`, `bytes` and `unknown` say does not count. */
void etch_encode_metadata(etch_encoder *encoder, etch_buf *out, const etch_trace_metadata *metadata);
void etch_encode_node(etch_encoder *encoder, etch_buf *out, const etch_trace_node *node);
void etch_encode_attr(etch_encoder *encoder, etch_buf *out, uint32_t field, const etch_trace_attr *attr);
void etch_put_varint(etch_buf *out, uint64_t value);
size_t etch_varint_size(uint64_t value);

/* ---- text_write.c: messages as lines ------------------------------------------------------------------- */

void etch_text_metadata(etch_buf *out, const etch_trace_metadata *metadata);
void etch_text_node(etch_buf *out, const etch_trace_node *node);
/* Bytes that no other line stands for, as `bytes` lines. */
void etch_text_bytes(etch_buf *out, const uint8_t *bytes, size_t length);
/* A piece of a text file: whole lines as they are where that is possible, else as bytes. */
void etch_text_lines(etch_buf *out, const char *text, size_t length);
/* `text` in quotes; the second for what need not be UTF-8. */
void etch_text_quoted(etch_buf *out, etch_trace_text text);
void etch_text_escaped(etch_buf *out, etch_trace_text text);
/* A number as text from which the same number is read, whatever the locale. */
void etch_text_double(etch_buf *out, double number);
/* One value of an attribute. */
void etch_text_value(etch_buf *out, etch_chakra_scalar scalar, const etch_trace_value *value);

/* ---- text_read.c: lines as files ----------------------------------------------------------------------- */

/* What is done with each file of a text. The `names` of a `file` line share the bytes. A status that is not
 * ETCH_OK ends the reading. */
typedef struct etch_text_sink {
    etch_status (*put)(void *data, const char *const *names, uint32_t name_count, const char *bytes,
                       size_t length);
    void *data;
} etch_text_sink;

/* Reads a text; mistakes are diagnostics; after a thousand it ends. ETCH_EINPUT when there were any; files
 * may have been put before. */
etch_status etch_text_read(etch_arena *arena, etch_diags *diags, const etch_source *source,
                           const etch_text_sink *sink) ETCH_MUST_CHECK;

/* ---- dump.c -------------------------------------------------------------------------------------------- */

/* A dump while it is made. */
typedef struct etch_dump {
    etch_arena *arena;
    etch_diags *diags;
    const etch_dump_options *options;
    /* goes to the sink piece by piece */
    etch_buf out;
    /* name of the file at hand, without its folder */
    const char *file;
    /* of the file at hand, -1 when its name says none */
    int64_t rank;
    /* of the last message of the file that was read */
    uint64_t end;
    /* metadata of some file was read */
    bool any;
    etch_encoder encoder;
    etch_buf body;
    struct etch_summary *summary;
} etch_dump;

/* What one form of a dump does with what is read. */
typedef struct etch_dump_way {
    /* a file */
    void (*begin)(etch_dump *dump);
    void (*metadata)(etch_dump *dump, const etch_trace_metadata *metadata);
    void (*node)(etch_dump *dump, const etch_trace_node *node);
    /* after all files */
    void (*finish)(etch_dump *dump);
} etch_dump_way;

extern const etch_dump_way etch_dump_as_summary; /* dump_summary.c */
extern const etch_dump_way etch_dump_as_json;    /* dump_json.c */
extern const etch_dump_way etch_dump_as_text;    /* dump_text.c */

struct etch_summary *etch_summary_new(etch_arena *arena);

#endif
